"""
Coverage of prediction intervals
================================

A 90 % interval should contain nine of ten new patients, whether there were
twenty training rows or two hundred. Linear regression with a posterior is
compared with ridge regression and its usual interval, the prediction plus and
minus a multiple of the residual standard deviation.
"""

import numpy as np
from matplotlib import pyplot as plt
from scipy.stats import norm
from skbayes_sg import BayesianLinearRegression
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

ORANGE, BLUE = "#D55E00", "#0072B2"
LEVELS = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
X, y = load_diabetes(return_X_y=True)

# %%
# Intervals of all levels
# -----------------------


def intervals(rows, seed):
    """Ends at each level on new patients, of both, and the truth."""
    split = train_test_split(X, y, train_size=rows, random_state=seed)
    scaler = StandardScaler().fit(split[0])
    X_train, X_test = map(scaler.transform, split[:2])
    model = BayesianLinearRegression(random_state=0).fit(X_train, split[2])
    ridge = RidgeCV(np.logspace(-3, 3, 13)).fit(X_train, split[2])
    sd = np.std(split[2] - ridge.predict(X_train))
    half = sd * norm.ppf(0.5 + LEVELS / 2)[:, None, None] * [-1, 1]
    ours = np.array(
        [model.predict_interval(X_test, level=level) for level in LEVELS]
    )
    return {
        "RidgeCV": ridge.predict(X_test)[:, None] + half,
        "posterior": ours,
    }, split[3]


# %%
# Measured coverage
# -----------------
# The share of new patients within, as means over ten splits.

sizes, n_splits = (20, 40, 200), 10
coverage = {
    name: np.zeros((len(sizes), n_splits, len(LEVELS)))
    for name in ("RidgeCV", "posterior")
}
width = {name: np.zeros(len(sizes)) for name in coverage}
for i, rows in enumerate(sizes):
    for seed in range(n_splits):
        ends, truth = intervals(rows, seed)
        for name, each in ends.items():
            within = (each[..., 0] < truth) & (truth < each[..., 1])
            coverage[name][i, seed] = within.mean(axis=1)
            width[name][i] += np.diff(each[-2], axis=-1).mean() / n_splits
print("90 % intervals: share of new patients within, and mean width")
for name, shares in coverage.items():
    at_90 = shares[..., list(LEVELS).index(0.9)]
    for rows, share, wide in zip(sizes, at_90, width[name], strict=True):
        error = share.std(ddof=1) / np.sqrt(n_splits)
        print(f"{name:10}{rows:5} rows: {share.mean():6.1%} ", end="")
        print(f"± {error:.1%}, {wide:.0f} wide")

# %%
# The picture
# -----------
# Above: on the diagonal an interval keeps its promise, below it the interval
# is too narrow. Bars are two standard errors. Below: one split of the fewest
# rows. Thick bars are 90 % intervals of the posterior, thin lines the ends of
# ridge regression's, dots the patients.

figure = plt.figure(figsize=(9.5, 7), layout="constrained")
upper, lower = figure.subfigures(2, 1, height_ratios=(1.1, 1))
for ax, i in zip(
    upper.subplots(1, len(sizes), sharey=True), range(len(sizes)), strict=True
):
    ax.plot([0.4, 1], [0.4, 1], color="0.6", linewidth=1)
    for (name, shares), colour, marker in zip(
        coverage.items(), (ORANGE, BLUE), "so", strict=True
    ):
        error = 2 * shares[i].std(axis=0, ddof=1) / np.sqrt(n_splits)
        ax.errorbar(
            LEVELS,
            shares[i].mean(axis=0),
            error,
            fmt=marker,
            color=colour,
            label=name,
        )
    ax.set(
        xlabel="level",
        xlim=(0.45, 1),
        ylim=(0.3, 1),
        title=f"{sizes[i]} rows to learn from",
    )
    if i == 0:
        ax.set_ylabel("share of new patients within")
        ax.legend(frameon=False, loc="upper left")

ends, truth = intervals(sizes[0], seed=0)
ridge, ours = (ends[name][list(LEVELS).index(0.9)] for name in coverage)
some = np.argsort(ours.mean(axis=1))[::5]
ax = lower.subplots()
place = np.arange(len(some))
ax.vlines(
    place, *ours[some].T, color=BLUE, linewidth=4, alpha=0.3, label="posterior"
)
ax.plot(place, ridge[some], color=ORANGE, linewidth=1)
ax.plot([], [], color=ORANGE, linewidth=1, label="RidgeCV")
outside = (truth < ours[:, 0]) | (truth > ours[:, 1])
ax.plot(place, truth[some], ".", color="0.2", markersize=5, label="patient")
ax.set(
    xlabel="new patients, in the order of their predictions",
    ylabel="progression",
    xticks=[],
)
ax.set_title(f"90 % intervals after {sizes[0]} rows", loc="left")
ax.margins(x=0.01)
ax.legend(frameon=False, loc="upper left", ncols=3)
plt.show()
