"""
Claims by policy years
======================

An insurer knows how many claims the lorries of 600 firms had last year. Some
firms insured two lorries, others two hundred, and a count says little without
its **exposure**: here the policy years. The model describes the claims in one
policy year. Which firms have more of them, by what factor, and how many claims
should be expected from a firm of any size next year?

The firms are simulated, so that the truth is known. Firms that are alike in
all columns still differ, by a factor with a standard deviation of one half:
their counts are negative binomial.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from skbayes_sg import BayesianNegativeBinomialRegressor
from skbayes_sg.inspection import totals

ORANGE, BLUE = "#D55E00", "#0072B2"
REGIONS = ["north", "east", "south", "west"]
TRUTH = pd.Series({"age": 0.10, "night": 0.45, "city": 0.30, "gps": -0.25})
SPREAD = 0.5

# %%
# The firms
# ---------
# Age of the lorries in years, and whether the firm drives at night, in cities,
# and with trackers. The larger firms have trackers more often, so that raw
# counts would say that trackers are bad for you.

rng = np.random.default_rng(5)


def firms_of_a_year(size):
    """Table of firms, their policy years, and their claims."""
    years = np.exp(rng.normal(2.5, 1.2, size)).round(1) + 0.5
    firms = pd.DataFrame(
        {
            "age": rng.gamma(4.0, 1.5, size).round(1),
            "night": rng.integers(2, size=size),
            "city": rng.integers(2, size=size),
            "gps": (years > np.exp(rng.normal(2.5, 1.0, size))).astype(int),
        }
    )
    rate = 0.06 * np.exp(firms @ TRUTH)
    own = rng.gamma(1 / SPREAD**2, SPREAD**2, size)
    return firms, years, rng.poisson(years * rate * own)


firms, years, claims = firms_of_a_year(600)
region = rng.choice(REGIONS, 600)
print(firms.assign(years=years, claims=claims).head(4).to_string())

# %%
# Rate ratios
# -----------
# The exposure stands beside the table and the counts. Without it the model has
# to explain with four columns what is due to the size of a firm. The fit says
# so: the ratio for trackers is near three, and the dispersion, which is the
# variance of the factor of a firm, is four times too large.

model = BayesianNegativeBinomialRegressor(random_state=0)
model.fit(firms, claims, exposure=years)
without = BayesianNegativeBinomialRegressor(random_state=0).fit(firms, claims)
columns = ["rate_ratio", "rate_ratio_eti95_lb", "rate_ratio_eti95_ub"]
ratios = model.summary().loc[TRUTH.index, columns]
wrong = without.summary().loc[TRUTH.index, columns]
print(ratios.assign(truth=np.exp(TRUTH)).round(2).to_string())
print(f"trackers without exposure: {wrong.loc['gps', 'rate_ratio']:.2f}")
print(f"dispersion: {model.dispersion_:.2f}, without exposure", end=" ")
print(f"{without.dispersion_:.2f}, true {SPREAD**2:.2f}")

# %%
# The picture
# -----------
# Left: rate ratios with 95 % intervals, and the truth as lines. Right: what is
# expected of a firm with lorries six years old that drive at night and in
# cities, by its size. The interval of the mean grows in proportion to the
# exposure. That of the claims themselves has the chance of single claims,
# which matters for small firms, and what the firm has of its own, which no
# size averages out.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9.5, 4), layout="constrained", width_ratios=(1, 1.2)
)
place = np.arange(len(TRUTH))
true = np.exp(TRUTH)
left.vlines(true, place - 0.3, place + 0.3, color="0.4", label="truth")
for shift, table, colour, name in (
    (-0.12, ratios, BLUE, "with exposure"),
    (0.12, wrong, ORANGE, "without"),
):
    middle, low, high = table.to_numpy().T
    left.hlines(place + shift, low, high, color=colour, linewidth=1.5)
    left.plot(middle, place + shift, "o", color=colour, label=name)
left.axvline(1, color="0.8", zorder=0)
left.set_yticks(place, TRUTH.index)
left.set(xscale="log", xlabel="rate ratio")
left.set_xticks([0.5, 1, 2, 4], ["0.5", "1", "2", "4"])
left.minorticks_off()
left.legend(frameon=False, loc="lower right", fontsize="small")

firm = pd.DataFrame({"age": [6.0], "night": [1], "city": [1], "gps": [0]})
sizes = np.arange(1.0, 101.0)
rows = pd.concat([firm] * len(sizes), ignore_index=True)
for kind, alpha in (("observation", 0.2), ("mean", 0.5)):
    ends = model.predict_interval(rows, exposure=sizes, kind=kind)
    label = {"observation": "claims", "mean": "their mean"}[kind]
    right.fill_between(sizes, *ends.T, color=BLUE, alpha=alpha, label=label)
mean = sizes * 0.06 * np.exp(firm @ TRUTH).item()
right.plot(sizes, mean, color="0.3", label="true mean")
right.set(xlabel="policy years", ylabel="claims")
right.margins(x=0)
right.legend(frameon=False, loc="upper left")
plt.show()

for size in (1, 10, 100):
    low, high = model.predict_interval(firm, exposure=size)[0]
    expected = model.predict(firm, exposure=size)[0]
    print(f"{size:3} years: {expected:5.1f} claims, ", end="")
    print(f"in 95 % of such firms {low:.0f} to {high:.0f}")

# %%
# Next year
# ---------
# Other firms, with the exposures that they have signed for. Their intervals
# should hold what 95 % of them will claim. Counts are whole numbers, so that
# intervals of few claims hold somewhat more.

others, signed, came = firms_of_a_year(2000)
low, high = model.predict_interval(others, exposure=signed).T
within = (low <= came) & (came <= high)
for name, some in (("small", signed < 10), ("large", signed >= 50)):
    print(f"{name} firms within their intervals: {within[some].mean():.1%}")

# %%
# A reserve is set aside for a region and not for a firm. ``totals`` adds up
# the predictions under every draw: what each firm has of its own cancels for
# the most part, and what all firms share, the coefficients, does not. The sums
# of the ends of the intervals, on the right, would be far too careful.

where = rng.choice(REGIONS, 2000)
sums = totals(model, others, by=where, exposure=signed)
table = sums[["mean", "eti95_lb", "eti95_ub"]].round().astype(int)
each = pd.DataFrame({"came": came, "low": low, "high": high}).groupby(where)
table["came"] = each["came"].sum()
ends = each[["low", "high"]].sum()
table["sums of ends"] = [f"{a:.0f} to {b:.0f}" for a, b in ends.to_numpy()]
print(table.to_string())
