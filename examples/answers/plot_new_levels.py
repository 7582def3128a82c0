"""
New levels: schools without training data
=========================================

Pupils of 40 schools took a test after some hours of preparation. Schools
differ in their level and in the gain from an hour. Some have sent two pupils
and some fifty. What is known about each school? And what should be expected
from the pupils of a school without any result yet?

Mixed models answer with random intercepts and slopes. Here these are two
groups of columns, one column for each school in each, and the standard
deviation of each group is sampled with its coefficients. The data are
simulated, so that the truth is known.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from skbayes_sg import BayesianLinearRegression

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
    return pd.DataFrame({"school": school, "hours": hours}), score, truth


sizes = np.sort(np.exp(rng.uniform(np.log(2), np.log(50), 40)).astype(int))
pupils, score, truth = pupils_of(sizes)
print(f"{len(pupils)} pupils of {len(sizes)} schools", end=", ")
print(f"{sizes.min()} to {sizes.max()} in each")

# %%
# Two groups of columns
# ---------------------
# One column for each school is 1 for its pupils, and one has their hours. The
# hours stand in the table by themselves, too: their coefficient is the slope
# of all schools, and those of the group are deviations from it.


def columns_of(pupils):
    """Hours, and for each school of the fit an intercept and a slope."""
    of = {k: (pupils["school"] == k).astype(float) for k in range(len(sizes))}
    school = pd.DataFrame(of).add_prefix("school ")
    slope = pd.DataFrame(of).mul(pupils["hours"], axis=0).add_prefix("slope ")
    return pd.concat([pupils[["hours"]], school, slope], axis=1)


X = columns_of(pupils)
groups = {name: [c for c in X if c.startswith(name)] for name in truth}
model = BayesianLinearRegression(prior_groups=groups, n_draws=1000)
model.set_params(random_state=0).fit(X, score)
spread = model.summary(groups=True).loc[["school", "slope"]]
print(spread[["n_coefficients", "mean", "eti95_lb", "eti95_ub"]].round(2))
noise = np.sqrt(model.noise_variance_)
print(f"noise {noise:.2f}, slope of all {model.coef_[0]:.2f}")

# %%
# Shrinkage
# ---------
# By itself a school of two pupils has a line through two points, which may go
# anywhere. In the posterior it is drawn towards the line of all schools, as
# far as its pupils leave open, and a school of fifty stays where they are. The
# dashed lines are the level and the slope of all schools.

alone = np.full((len(sizes), 2), np.nan)
for k in range(len(sizes)):
    of_school = pupils["school"] == k
    hours = pupils.loc[of_school, "hours"]
    gain, level = np.polyfit(hours, score[of_school], 1)
    alone[k] = level, gain
coef = pd.Series(model.coef_, model.feature_names_in_)
shift = {"school": model.intercept_, "slope": coef["hours"]}
true_mean = {"school": LEVEL, "slope": GAIN}

figure, axes = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
for ax, name, by_itself in zip(axes, groups, alone.T, strict=True):
    own = coef[groups[name]].to_numpy() + shift[name]
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
# Its pupils have zeros in all columns of schools, and their hours in the
# column of hours. That a school is new does not mean that it is average: its
# intercept and its slope are drawn from the distributions of all schools,
# whose standard deviations the fit has sampled. The prediction is that of an
# average school, and the interval is wide. With ``new_levels="zero"`` the
# school would be taken for an average one.

new = pd.DataFrame({"school": -1, "hours": np.linspace(-4, 4, 41)})
rows = columns_of(new)
mean = model.predict(rows)
sampled = model.predict_interval(rows)
zero = model.set_params(new_levels="zero").predict_interval(rows)
model.set_params(new_levels="sample")
largest = columns_of(new.assign(school=len(sizes) - 1))
seen = model.predict_interval(largest)

figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for k in range(len(sizes)):
    slope = GAIN + truth["slope"][k]
    line = LEVEL + truth["school"][k] + slope * new["hours"]
    ax.plot(4 + new["hours"], line, color="0.7", linewidth=0.7, zorder=0)
ax.plot([], [], color="0.7", linewidth=0.7, label="true lines of schools")
for ends, style, colour, name in (
    (sampled, "-", BLUE, "pupil of a new school"),
    (zero, "--", ORANGE, 'new_levels="zero"'),
):
    ax.plot(4 + new["hours"], ends, style, color=colour)
    ax.plot([], [], style, color=colour, label=name)
ax.plot(4 + new["hours"], mean, color=BLUE, linewidth=3, label="prediction")
ax.set(xlabel="hours", ylabel="score", title="95 % intervals")
ax.legend(frameon=False, loc="upper left", fontsize="small")
plt.show()
for hours in (0, 4, 8):
    at = np.flatnonzero(new["hours"] == hours - 4).item()
    for name, ends in (("new school", sampled), ("largest", seen)):
        print(f"{hours} hours, {name:10} {ends[at].round(1)}")

# %%
# Coverage
# --------
# Four hundred other schools, ten pupils each. Pupils of one school share its
# line, so that they are counted as one for the error of the share.

others, came, _ = pupils_of(np.full(400, 10))
rows = columns_of(others.assign(school=-1))
for choice in ("sample", "zero"):
    low, high = model.set_params(new_levels=choice).predict_interval(rows).T
    within = ((low < came) & (came < high)).reshape(400, 10).mean(axis=1)
    error = within.std(ddof=1) / 400**0.5
    share = f"{within.mean():.1%} ± {error:.1%}"
    print(f"{choice:6} {share} within 95 % intervals")
