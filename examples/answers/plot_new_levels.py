"""
New levels: schools without training data
=========================================

Pupils of 40 schools took a test after some hours of preparation. Schools
differ in their level and in the gain from an hour. Some have sent two pupils
and some fifty. What is known about each school? And what should be expected
from the pupils of a school without any result yet?

Mixed models answer with random intercepts and slopes. The column of schools is
a **factor**: each school has an intercept and a slope, and the standard
deviation of each kind is sampled with them. The data are simulated, so that
the truth is known.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from skbayes_sg import BayesianLinearRegression
from skbayes_sg.inspection import totals

ORANGE, BLUE = "#D55E00", "#0072B2"
SD = {"school": 6.0, "slope": 1.5, "noise": 5.0}
LEVEL, GAIN = 60.0, 2.0

# %%
# The pupils
# ----------
# Hours are counted from four, the usual number. A school has a level of its
# own and a slope of its own, both about those of all schools.

rng = np.random.default_rng(0)


def pupils_of(sizes):
    """School, hours and score of each pupil, and the truth of each school."""
    own = {k: rng.normal(0, SD[k], len(sizes)) for k in ("school", "slope")}
    truth = pd.DataFrame(own)
    school = np.repeat(np.arange(len(sizes)), sizes)
    hours = rng.normal(0, 2, len(school)).round(2)
    slope = GAIN + own["slope"][school]
    mean = LEVEL + own["school"][school] + slope * hours
    score = rng.normal(mean, SD["noise"])
    rows = pd.DataFrame({"school": [f"S{k}" for k in school], "hours": hours})
    return rows.astype({"school": "category"}), score, truth


sizes = np.sort(np.exp(rng.uniform(np.log(2), np.log(50), 40)).astype(int))
pupils, score, truth = pupils_of(sizes)
print(f"{len(pupils)} pupils of {len(sizes)} schools", end=", ")
print(f"{sizes.min()} to {sizes.max()} in each")

# %%
# The model
# ---------
# A column of categories is a factor by its type. ``("hours", "school")`` gives
# each school a slope too. The slope of hours is that of all schools, and
# ``"flat"`` says that it is not shrunken; those of schools are deviations
# from it.

groups = {"hours": "flat", ("hours", "school"): "own"}
model = BayesianLinearRegression(prior_groups=groups, random_state=0)
model.fit(pupils, score)
spread = model.summary(groups=True)
print(spread[["n_coefficients", "mean", "eti95_lb", "eti95_ub"]].round(2))
print(model.summary().loc[["hours", "intercept"]].iloc[:, :4].round(2))

# %%
# Shrinkage
# ---------
# By itself a school of two pupils has a line through two points, which may go
# anywhere. In the posterior it is drawn towards the line of all schools, as
# far as its pupils leave open, and a school of fifty stays where they are. The
# dashed lines are the level and the slope of all schools.

alone = np.full((len(sizes), 2), np.nan)
for k in range(len(sizes)):
    of_school = pupils["school"] == f"S{k}"
    hours = pupils.loc[of_school, "hours"]
    gain, level = np.polyfit(hours, score[of_school], 1)
    alone[k] = level, gain
table = model.summary()["mean"]
shift = {"school": table["intercept", ""], "slope": table["hours", ""]}
of = {"school": table["school"], "slope": table["hours:school"]}
true_mean = {"school": LEVEL, "slope": GAIN}

figure, axes = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
for ax, name, by_itself in zip(axes, of, alone.T, strict=True):
    own = of[name][[f"S{k}" for k in range(len(sizes))]].to_numpy()
    own = own + shift[name]
    right = truth[name] + true_mean[name]
    ax.vlines(sizes, by_itself, own, color="0.85", linewidth=1, zorder=0)
    ax.plot(sizes, by_itself, "s", color=ORANGE, markersize=4, label="alone")
    ax.plot(sizes, own, "o", color=BLUE, markersize=4, label="posterior")
    ax.axhline(shift[name], color=BLUE, linewidth=0.8, linestyle="--")
    title = {"school": "score after four hours", "slope": "points an hour"}
    ax.set(xscale="log", xlabel="pupils of the school", ylabel=title[name])
    ax.set_xticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
    ax.minorticks_off()
    limits = right.min(), right.max()
    around = 1.1 * np.ptp(limits)
    ax.set_ylim(limits[0] - around, limits[1] + around)
    errors = [np.abs(x - right).mean() for x in (by_itself, own)]
    print(f"{name}: mean error alone {errors[0]:.2f}", end=", ")
    print(f"of the posterior {errors[1]:.2f}")
axes[0].legend(frameon=False)
plt.show()

# %%
# A new school
# ------------
# Any name that is not in the training data is a new school. It need not be an
# average one: its intercept and its slope are drawn from the distributions of
# all schools, whose standard deviations the fit has sampled. The prediction is
# that of an average school, and the interval is wide. ``new_levels="zero"``
# would treat the school as an average one.

rows = pd.DataFrame({"school": "new", "hours": np.linspace(-4, 4, 41)})
mean = model.predict(rows)
sampled = model.predict_interval(rows)
zero = model.set_params(new_levels="zero").predict_interval(rows)
model.set_params(new_levels="sample")
largest = rows.assign(school=f"S{len(sizes) - 1}")
seen = model.predict_interval(largest)

figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for k in range(len(sizes)):
    slope = GAIN + truth["slope"][k]
    line = LEVEL + truth["school"][k] + slope * rows["hours"]
    ax.plot(4 + rows["hours"], line, color="0.7", linewidth=0.7, zorder=0)
ax.plot([], [], color="0.7", linewidth=0.7, label="true lines of schools")
for ends, style, colour, name in (
    (sampled, "-", BLUE, "pupil of a new school"),
    (zero, "--", ORANGE, 'new_levels="zero"'),
):
    ax.plot(4 + rows["hours"], ends, style, color=colour)
    ax.plot([], [], style, color=colour, label=name)
ax.plot(4 + rows["hours"], mean, color=BLUE, linewidth=3, label="prediction")
ax.set(xlabel="hours", ylabel="score", title="95 % intervals")
ax.legend(frameon=False, loc="upper left", fontsize="small")
plt.show()
for hours in (0, 4, 8):
    at = np.flatnonzero(rows["hours"] == hours - 4).item()
    for name, ends in (("new school", sampled), ("largest", seen)):
        print(f"{hours} hours, {name:10} {ends[at].round(1)}")

# %%
# Coverage
# --------
# Four hundred other schools, ten pupils each. Pupils of one school share its
# line, so that they are counted as one for the error of the share. Each new
# name has a draw of its own, the same for all of its pupils, so that sums over
# new schools are right too: here over the pupils of five.

others, came, _ = pupils_of(np.full(400, 10))
others["school"] = "other " + others["school"].astype(str)


def shown(what, within):
    """Share of rows within, and its error over schools."""
    error = within.std(ddof=1) / len(within) ** 0.5
    print(f"{what:22} {within.mean():.1%} ± {error:.1%} within 95 %")


for choice in ("sample", "zero"):
    low, high = model.set_params(new_levels=choice).predict_interval(others).T
    within = ((low < came) & (came < high)).reshape(400, 10).mean(axis=1)
    shown(f'pupils, "{choice}"', within)
model.set_params(new_levels="sample")
five = np.repeat(np.arange(80), 50)
table = totals(model, others, by=five)
total = np.bincount(five, came)
low, high = table[["eti95_lb", "eti95_ub"]].to_numpy().T
shown("sums over five schools", (low < total) & (total < high))
