"""Automatic relevance determination: a prior precision for every feature, learned while sampling.

Of thirty features six matter. One precision for all must compromise; one for each switches the
others off. Prints the log loss of both beside a fixed prior, and draws the precisions on their way
and the coefficients that come out.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot as plt
from sklearn.metrics import log_loss

from skbayes_sg import BayesianLogisticRegressionSGFS, PriorPrecisionDisplay, VariationalEM

PICTURE = Path(__file__).with_name("learned_prior.png")
RELEVANT = 6


def rows(n, rng, coef):
    """Standard normal features, labels by logistic regression."""
    X = rng.standard_normal((n, len(coef)))
    return X, rng.random(n) < 1 / (1 + np.exp(-X @ coef))


def main():
    """Fit three priors, print their losses, draw."""
    rng = np.random.default_rng(0)
    coef = np.concatenate([[2.0, -1.5, 1.0, -1.0, 0.7, 0.5], np.zeros(24)])
    (X, y), (X_test, y_test) = rows(400, rng, coef), rows(20_000, rng, coef)
    priors = {
        "fixed, precision 1": 1.0,
        "one for all, learned": "em",
        "one for each feature, learned": VariationalEM(per="feature"),
    }
    fitted = {}
    print(f"{'prior':32}{'log loss':>9}{'error of the coefficients':>28}")
    for name, prior in priors.items():
        model = BayesianLogisticRegressionSGFS(prior_precision=prior, random_state=0).fit(X, y)
        error = np.sqrt(np.mean((model.coef_[0] - coef) ** 2))
        print(f"{name:32}{log_loss(y_test, model.predict_proba(X_test)):9.4f}{error:28.3f}")
        fitted[name] = model
    p = 1 / (1 + np.exp(-X_test @ coef))
    print(f"{'the coefficients themselves':32}{log_loss(y_test, p):9.4f}")

    ard = fitted["one for each feature, learned"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    PriorPrecisionDisplay.from_estimator(ard, ax=left)
    left.set_title(f"of {len(coef)} features x0 to x{RELEVANT - 1} matter")
    each = np.arange(len(coef))
    for shift, (name, model), colour in zip(
        (-0.2, 0.2), list(fitted.items())[1:], ("C1", "C0"), strict=True
    ):
        right.errorbar(
            each + shift, model.coef_[0], 2 * model.coef_std_[0], fmt=".", color=colour, label=name
        )
    right.plot(each, coef, "_", color="k", markersize=10, label="truth")
    right.set(xlabel="feature", ylabel="coefficient, +- 2 posterior standard deviations")
    right.legend(frameon=False)
    figure.savefig(PICTURE, dpi=120)

    off = int(np.sum(ard.coef_std_[0] < 0.5 * fitted["one for all, learned"].coef_std_[0]))
    print(
        f"\nWhat you saw: {off} features were switched off: their posterior is less than half as"
        f"\nwide as under one precision for all. The picture is in {PICTURE}"
    )


if __name__ == "__main__":
    main()
