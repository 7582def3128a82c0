"""
Transfer by prior
=================

There are many patients of one group, and few of another. What was learned from
the first group can be the prior for the second in two ways. ``prior=`` takes
the whole posterior, as if both groups were one. ``prior_mean=`` takes only the
coefficients, and learns from the second group how much to trust them.
"""

import warnings

import numpy as np
from matplotlib import pyplot as plt
from skbayes_sg import BayesianLinearRegression
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

# %%
# Two groups
# ----------
# The two sexes of the diabetes data, coded only by number there. The larger
# group is known, and from 8 to 100 of the smaller one come to it.

X, y = load_diabetes(return_X_y=True, as_frame=True)
small = X["sex"] > X["sex"].median()
X = X.drop(columns="sex")
if small.mean() > 0.5:
    small = ~small
X[:] = StandardScaler().fit(X[~small]).transform(X)
source = BayesianLinearRegression(random_state=0).fit(X[~small], y[~small])
print(f"{(~small).sum()} patients known, {small.sum()} of the other group")
sizes, n_splits = (8, 16, 32, 64, 100), 8

# %%
# Four ways to learn
# ------------------
# Eight patients hardly determine a prior precision, and a fit that learns one
# warns of it: its intervals are too narrow. The picture is about predictions.

warnings.filterwarnings("ignore", "precision_s", ConvergenceWarning)
models = {
    "from scratch": BayesianLinearRegression(random_state=0),
    "prior_mean, precision learned": BayesianLinearRegression(
        prior_mean=source.coef_, random_state=0
    ),
    "prior, the whole posterior": BayesianLinearRegression(
        prior=source.posterior_, random_state=0
    ),
}
errors = {name: np.empty((len(sizes), n_splits)) for name in models}
untouched = np.empty(n_splits)
for seed in range(n_splits):
    rest, test, y_rest, y_test = train_test_split(
        X[small], y[small], test_size=90, random_state=seed
    )
    untouched[seed] = np.sqrt(np.mean((source.predict(test) - y_test) ** 2))
    for i, n in enumerate(sizes):
        for name, model in models.items():
            predicted = model.fit(rest[:n], y_rest[:n]).predict(test)
            errors[name][i, seed] = np.sqrt(np.mean((predicted - y_test) ** 2))

print(f"{'root mean square error':32}" + "".join(f"{n:>8}" for n in sizes))
for name, each in errors.items():
    print(
        f"{name:32}" + "".join(f"{error:8.1f}" for error in each.mean(axis=1))
    )
print(f"{'the source as it is':32}{untouched.mean():8.1f}")

# %%
# The picture
# -----------
# Lines are means over eight divisions, bands their standard errors.

figure, ax = plt.subplots(figsize=(8, 4.6), layout="constrained")
styles = zip(
    models, ("0.45", "#0072B2", "#D55E00"), (":", "-", "--"), strict=True
)
for name, colour, line in styles:
    mean = errors[name].mean(axis=1)
    error = errors[name].std(axis=1, ddof=1) / np.sqrt(n_splits)
    ax.fill_between(
        sizes,
        mean - error,
        mean + error,
        color=colour,
        alpha=0.15,
        linewidth=0,
    )
    ax.plot(sizes, mean, color=colour, linestyle=line, linewidth=2, label=name)
ax.axhline(untouched.mean(), color="0.2", linewidth=0.8)
ax.annotate(
    "the source as it is",
    (sizes[-1], untouched.mean()),
    (0, 3),
    textcoords="offset points",
    ha="right",
    color="0.2",
)
ax.set(
    xscale="log",
    xlabel="patients of the new group to learn from",
    ylabel="root mean square error, new patients",
)
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.legend(frameon=False)
plt.show()
