"""
Average marginal effects of a measurement
=========================================

A coefficient behind a scaler has a unit that nobody measures in, and an odds
ratio is not a change of probability. ``average_effects`` answers in the units
of the columns: by how many percentage points does the risk of a bad year
change with one point more of body mass index, on average over the patients?
And is the answer the same for both sexes?
"""

import numpy as np
from matplotlib import pyplot as plt
from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.inspection import average_effects, contrast
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

BLUE, GREY = "#0072B2", "0.55"

# %%
# The patients
# ------------
# 442 patients with diabetes as they were measured. The outcome is whether the
# disease progressed by more than the median in a year.

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X["sex"] = X["sex"].map({1: "one", 2: "other"})  # the data do not say which
worse = y > y.median()
numbers = X.drop(columns="sex").columns

# %%
# Effects in units of the columns
# -------------------------------
# The whole pipeline goes in, with the table as it was measured. Of numbers an
# effect is the slope of the probability, of words the difference to the first
# one. In percentage points:

columns = make_column_transformer(
    (StandardScaler(), numbers),
    (OneHotEncoder(drop="first", sparse_output=False), ["sex"]),
)
model = BayesianLogisticRegression(random_state=0)
pipeline = make_pipeline(columns, model).fit(X, worse)
effects = 100 * average_effects(pipeline, X)
print(effects[["mean", "eti95_lb", "eti95_ub"]].round(2).to_string())

# %%
# A point of body mass index is two percentage points of risk. The same in
# each sex? The slope is steepest where probabilities are near one half, so it
# may differ although the model has one coefficient.

by_sex = 100 * average_effects(pipeline, X, "bmi", by="sex")
print(by_sex[["mean", "eti95_lb", "eti95_ub"]].round(2).to_string())

# %%
# Two whole values can be compared as well: everybody at 30 and at 25, all
# else as it is, as a difference, a ratio of risks, or an odds ratio.

heavy, light = X.assign(bmi=30.0), X.assign(bmi=25.0)
for kind in ("difference", "ratio"):
    found = contrast(pipeline, heavy, light, scale=kind).iloc[0]
    low, high = found["eti95_lb"], found["eti95_ub"]
    print(f"{kind:10} {found['mean']:.2f} [{low:.2f}, {high:.2f}]")

# %%
# The picture
# -----------
# Left, the average probability if everybody had this body mass index, with
# intervals of 50 and 95 %. Right, the effect of each number, times the
# standard deviation of its column so that one axis serves all.

grid = np.linspace(18, 42, 13)
average = [
    pipeline[-1]
    .predict_draws(columns.transform(X.assign(bmi=bmi)), kind="mean")[:, :, 1]
    .mean(axis=1)
    for bmi in grid
]
ends = np.quantile(average, [0.025, 0.25, 0.5, 0.75, 0.975], axis=1)
figure, (left, right) = plt.subplots(
    1, 2, figsize=(9.5, 4.2), layout="constrained"
)
left.fill_between(grid, ends[0], ends[4], color=BLUE, alpha=0.2, lw=0)
left.fill_between(grid, ends[1], ends[3], color=BLUE, alpha=0.4, lw=0)
left.plot(grid, ends[2], color=BLUE, lw=2)
left.plot(X["bmi"], np.full(len(X), -0.02), "|", color=GREY, ms=6)
left.set(xlabel="body mass index of everybody", ylim=(-0.05, 1))
left.set_ylabel("average probability of a bad year")

scaled = effects.loc[numbers].mul(X[numbers].std(), axis=0)
scaled = scaled.reindex(scaled["mean"].abs().sort_values().index)
place = np.arange(len(scaled))
sure = (scaled["eti95_lb"] > 0) | (scaled["eti95_ub"] < 0)
colours = np.where(sure, BLUE, GREY)
ends = scaled["eti95_lb"], scaled["eti95_ub"]
right.hlines(place, *ends, colors=colours, lw=2)
right.scatter(scaled["mean"], place, c=colours, zorder=3)
right.axvline(0, color="0.6", lw=0.8, zorder=0)
right.set_yticks(place, scaled.index)
right.set_xlabel("percentage points per standard deviation")
plt.show()
