"""
Which columns? Leave-one-out with ArviZ
=======================================

More columns fit better, and may predict worse. Cross-validation measures this
by fitting again and again, Pareto-smoothed importance sampling (ArviZ) from
the draws of one fit. Here are both, for four models of the progress of
diabetes.
"""

import warnings

import numpy as np
from matplotlib import pyplot as plt
from scipy.special import logsumexp
from scipy.stats import norm
from skbayes_sg import BayesianLinearRegression
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

try:
    import arviz_stats
except ImportError:  # cross-validation alone is then drawn
    arviz_stats = None
    print("without leave-one-out: pip install 'arviz-stats[xarray]'")

BLUE, ORANGE = "#0072B2", "#D55E00"

# %%
# Four sets of columns
# --------------------
# The last one has all squares and products. The prior, learned for each model,
# keeps them small.

X, y = load_diabetes(return_X_y=True, as_frame=True)
X, y = (
    X.sample(frac=1, random_state=0),
    y.sample(frac=1, random_state=0).to_numpy(),
)
sets = {
    "bmi": X[["bmi"]],
    "bmi, bp, s5": X[["bmi", "bp", "s5"]],
    "all ten": X,
    "all ten, squares, products": PolynomialFeatures(
        2, include_bias=False
    ).fit_transform(X),
}


def log_density(model, X, y):
    """Log predictive density of each row, averaged over draws."""
    coef = model.coef_samples_.reshape(-1, X.shape[1])
    mean = X @ coef.T + model.intercept_samples_.ravel()
    sd = np.sqrt(model.noise_variance_samples_.ravel())
    return logsumexp(norm.logpdf(y[:, None], mean, sd), axis=1) - np.log(
        len(coef)
    )


# %%
# Score each
# ----------
# The score of a row is the log density that its outcome was given by a model
# that had not seen it. ``to_arviz`` hands over draws and likelihoods. Beside
# it stands the same score of the rows that were learned from, which flatters
# the larger models. ArviZ also says how far its own figure can be trusted:
# where Pareto's k is large for a patient, one fit says too little of the fit
# without that patient.

scores = {}
for name, columns in sets.items():
    columns = np.asarray(columns)
    left_out = np.empty(len(y))
    for train, test in KFold(10).split(columns):
        pipeline = make_pipeline(
            StandardScaler(), BayesianLinearRegression(random_state=0)
        )
        pipeline.fit(columns[train], y[train])
        left_out[test] = log_density(
            pipeline[-1], pipeline[:-1].transform(columns[test]), y[test]
        )
    scaled = StandardScaler().fit_transform(columns)
    model = BayesianLinearRegression(random_state=0).fit(scaled, y)
    scores[name] = {
        "learned from": log_density(model, scaled, y),
        "ten folds": left_out,
    }
    if arviz_stats is not None:
        data = model.to_arviz(scaled, y, log_likelihood=True)
        with warnings.catch_warnings(
            action="ignore"
        ):  # it warns of what is printed here
            loo = arviz_stats.loo(data, pointwise=True)
        scores[name]["leave-one-out"] = loo.elpd_i.to_numpy()
        large = np.sum(loo.pareto_k > loo.good_k)
        print(f"{name}: Pareto's k is too large for {large:.0f} patients")

reference = scores["all ten"]
print(
    f"{'sum over patients':28}" + "".join(f"{kind:>16}" for kind in reference)
)
for name, kinds in scores.items():
    print(
        f"{name:28}"
        + "".join(f"{each.sum():16.1f}" for each in kinds.values())
    )

# %%
# The picture
# -----------
# Differences to the model of all ten columns, patient by patient, so that what
# they share cancels. Bars are two standard errors of the sum.

figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
styles = {
    "learned from": ("0.6", "^", "the rows learned from"),
    "ten folds": (ORANGE, "s", "ten folds, ten fits"),
    "leave-one-out": (BLUE, "o", "leave-one-out, one fit"),
}
place = np.arange(len(scores))
for shift, kind in zip((-0.22, 0.0, 0.22), styles, strict=True):
    if kind not in reference:
        continue
    colour, marker, label = styles[kind]
    differences = np.array(
        [kinds[kind] - reference[kind] for kinds in scores.values()]
    )
    error = 2 * differences.std(axis=1, ddof=1) * np.sqrt(len(y))
    ax.errorbar(
        differences.sum(axis=1),
        place + shift,
        xerr=error,
        fmt=marker,
        color=colour,
        label=label,
    )
ax.axvline(0, color="0.6", linewidth=0.8, zorder=0)
ax.set_yticks(place, scores)
ax.invert_yaxis()
ax.set(xlabel="log predictive density, difference to all ten columns")
ax.legend(frameon=False, loc="lower left")
plt.show()
