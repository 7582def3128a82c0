"""
Complications of so many operations
===================================

Sixty hospitals report how many of their operations had complications. Some
have done twenty, others two thousand, so that a share says little before the
number of **trials** is known: here the operations. Does a checklist help, by
how much, and which hospitals are really worse than others like them?

The hospitals are simulated, so that the truth is known. Hospitals that are
alike in all columns still differ. Their counts are beta-binomial, and vary
many times as much as binomial ones would.
"""

import warnings

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from scipy.special import expit
from skbayes_sg import BayesianBinomialRegressor
from skbayes_sg.inspection import average_effects
from sklearn.exceptions import ConvergenceWarning

ORANGE, BLUE = "#D55E00", "#0072B2"
TRUTH = pd.Series({"checklist": -0.5, "emergencies": 0.4, "teaching": 0.0})
CORRELATION = 0.02  # of two operations of one hospital

# %%
# The hospitals
# -------------
# Whether there is a checklist, the share of emergencies in units of ten per
# cent, and whether it is a teaching hospital. Large ones have a checklist more
# often.

rng = np.random.default_rng(7)


def hospitals(size):
    """Table of hospitals, their operations, and complications of these."""
    operations = np.exp(rng.normal(5.0, 1.2, size)).astype(int) + 20
    table = pd.DataFrame(
        {
            "checklist": (operations > rng.gamma(2.0, 150, size)).astype(int),
            "emergencies": rng.gamma(4.0, 0.5, size).round(1),
            "teaching": rng.integers(2, size=size),
        }
    )
    p = expit(-2.8 + table @ TRUTH)
    s = 1 / CORRELATION - 1
    own = rng.beta(s * p, s * (1 - p))
    return table, operations, rng.binomial(operations, own)


table, operations, complications = hospitals(60)
shown = table.assign(operations=operations, complications=complications)
print(shown.head(4).to_string())

# %%
# Two models
# ----------
# A binomial model takes all operations to be independent. The fit measures the
# dispersion, which would be one if they were, and warns that its intervals are
# too narrow. With ``overdispersed=True`` the correlation of two operations of
# one hospital is learned.

plain = BayesianBinomialRegressor(random_state=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    plain.fit(table, complications, trials=operations)
print("dispersion", round(plain.diagnostics_["dispersion"], 1))

model = BayesianBinomialRegressor(overdispersed=True, random_state=0)
model.fit(table, complications, trials=operations)
columns = ["odds_ratio", "odds_ratio_eti95_lb", "odds_ratio_eti95_ub"]
ratios = {"binomial": plain, "beta-binomial": model}
for name, each in ratios.items():
    ratios[name] = each.summary().loc[TRUTH.index, columns]
    print(name)
    print(ratios[name].assign(truth=np.exp(TRUTH)).round(2).to_string())
print(f"correlation {model.correlation_:.3f}, true {CORRELATION}")

# %%
# What a checklist does to the share of complications, in the mean over
# hospitals, is an effect and no ratio:

effect = average_effects(model, table, ["checklist"])
low, high = effect[["eti95_lb", "eti95_ub"]].iloc[0]
print(f"{100 * low:.1f} to {100 * high:.1f} complications in 100 operations")

# %%
# The picture
# -----------
# Left: odds ratios with 95 % intervals, and the truth as lines. Right: each
# hospital's share over the one that is expected of it, by its size. The
# intervals of the binomial model, here of a hospital of mean columns, become
# narrow as it grows, so that large hospitals seem to stand out. Those of the
# other model do not, because what a hospital has of its own is not averaged
# out by more operations. One that is still outside is worth a visit.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9.5, 4), layout="constrained", width_ratios=(1, 1.3)
)
place, true = np.arange(len(TRUTH)), np.exp(TRUTH)
left.vlines(true, place - 0.3, place + 0.3, color="0.4", label="truth")
for shift, colour, (name, each) in zip(
    (0.12, -0.12), (ORANGE, BLUE), ratios.items(), strict=True
):
    middle, low, high = each.to_numpy().T
    left.hlines(place + shift, low, high, color=colour, linewidth=1.5)
    left.plot(middle, place + shift, "o", color=colour, label=name)
left.axvline(1, color="0.8", zorder=0)
left.set_yticks(place, TRUTH.index)
left.set(xscale="log", xlabel="odds ratio")
left.set_xticks([0.5, 0.7, 1, 1.5], ["0.5", "0.7", "1", "1.5"])
left.minorticks_off()
left.legend(frameon=False, loc="upper left", fontsize="small")

sizes = np.geomspace(20, 4000, 25).astype(int)
usual = pd.DataFrame([table.mean()] * len(sizes))
outside = {}
for name, each, colour in (
    ("beta-binomial", model, BLUE),
    ("binomial", plain, ORANGE),
):
    ends = each.predict_interval(usual, trials=sizes)
    ends = ends / each.predict(usual, trials=sizes)[:, None]
    right.fill_between(sizes, *ends.T, color=colour, alpha=0.3, label=name)
    ends = each.predict_interval(table, trials=operations)
    wrong = (complications < ends[:, 0]) | (complications > ends[:, 1])
    outside[name] = int(wrong.sum())
expected = model.predict(table, trials=operations)
right.plot(operations, complications / expected, "o", ms=4, color="0.3")
right.set(xscale="log", xlabel="operations", ylim=(0, 3.5))
right.set_xlim(sizes[0], sizes[-1])
right.set_ylabel("complications over expected ones")
right.legend(frameon=False, loc="upper right", title="95 % of hospitals")
plt.show()
print("hospitals outside of their intervals:", outside)

# %%
# Next year
# ---------
# Other hospitals, which the models have not seen. Predictions take the number
# of operations that are planned; without it they are of the share.

others, planned, came = hospitals(100)
for name, each in (("binomial", plain), ("beta-binomial", model)):
    low, high = each.predict_interval(others, trials=planned).T
    within = np.mean((low <= came) & (came <= high))
    print(f"within intervals of 95 %, {name}: {within:.1%}")
print("shares:", model.predict(others.head(3)).round(3))
