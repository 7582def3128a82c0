"""
More zeros than a count should have
===================================

How many fish does a party of visitors catch? Half of the parties in a park
caught none. Some fished without luck, and others did not fish at all, which
nobody wrote down. A Poisson model has one rate for both. It predicts too few
zeros, and its effects are those of a mixture of anglers and hikers.

A **zero-inflated** count is zero with some probability, and otherwise a
Poisson count. The package has no such estimator, but a family of some forty
lines is enough, and ``check_family`` tests its derivatives and draws before it
is fitted.
"""

import warnings

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from scipy.special import expit, gammaln, pdtr
from skbayes_sg import BayesianPoissonRegressor
from skbayes_sg.estimators.linear_model import (
    LinearRegressor,
    mean_of,
    of_draws,
)
from skbayes_sg.inspection import average_effects
from skbayes_sg.models import check_family
from skbayes_sg.models.log_link import LogLink
from sklearn.exceptions import ConvergenceWarning

ORANGE, BLUE = "#D55E00", "#0072B2"
TRUTH = pd.Series({"people": 0.25, "camper": 0.5, "child": -0.6})
HIKERS = 0.4

# %%
# A family
# --------
# Outputs of a row are its linear predictor, and the logit of the probability
# of a zero that all rows share. For a zero, ``w`` is the probability that it
# is one of those that could be nothing else; all derivatives are made of it.


class ZeroInflated(LogLink):
    """Counts that are zero with the probability pi, and else Poisson."""

    own = ("logit_zero",)
    own_mean, own_sd = (-1.0,), (2.0,)
    canonical = False
    counts = True

    def parts(self, outputs):
        """Mean of the Poisson part, pi, probability of a zero, and w."""
        mu, pi = np.exp(outputs[:, 0]), expit(outputs[:, 1])
        zero = pi + (1 - pi) * np.exp(-mu)
        return mu, pi, zero, pi / zero

    def value(self, outputs, y):
        mu, pi, zero, _ = self.parts(outputs)
        some = np.log1p(-pi) + y * outputs[:, 0] - mu - gammaln(y + 1)
        return np.where(y == 0, np.log(zero), some)

    def residual(self, outputs, y):
        mu, pi, _, w = self.parts(outputs)
        of_eta = np.where(y == 0, -mu * (1 - w), y - mu)
        return np.stack([of_eta, np.where(y == 0, w, 0.0) - pi], axis=1)

    def observed_at(self, outputs, y):
        mu, pi, _, w = self.parts(outputs)
        w = np.where(y == 0, w, 0.0)
        found = np.empty((len(mu), 2, 2, mu.shape[-1]))
        found[:, 0, 0] = mu * (1 - w) - mu**2 * w * (1 - w)
        found[:, 0, 1] = found[:, 1, 0] = -mu * w * (1 - w)
        found[:, 1, 1] = pi * (1 - pi) - w * (1 - w)
        return found

    def expected(self, outputs):
        zero = self.parts(outputs)[2][:, None, None]
        n = outputs.shape[-1]
        of_zeros = self.observed_at(outputs, np.zeros(n))
        of_others = self.observed_at(outputs, np.ones(n))
        return zero * of_zeros + (1 - zero) * of_others

    def mean(self, outputs):
        mu, pi, _, _ = self.parts(outputs)
        return (1 - pi) * mu

    def variance(self, outputs):
        mu, pi, _, _ = self.parts(outputs)
        return (1 - pi) * mu * (1 + pi * mu)

    def distribution(self, y, outputs):
        mu, pi, _, _ = self.parts(outputs)
        below = pi + (1 - pi) * pdtr(np.maximum(np.floor(y), 0.0), mu)
        return np.where(y < 0, 0.0, below)

    def draw(self, outputs, rng):
        mu, pi, _, _ = self.parts(outputs)
        return np.where(rng.random(mu.shape) < pi, 0, rng.poisson(mu))

    def natural(self, name, block):
        if name == "logit_zero":
            return "zero_share", expit(block)
        return name, block


check_family(ZeroInflated)

# %%
# Its estimator
# -------------
# ``_family`` is all that it needs; the other lines make an attribute of the
# parameter that all rows share. An error in a derivative would have been named
# above: this one leaves out ``w``.


class ZeroInflatedRegressor(LinearRegressor):
    """Regression of counts with more zeros than Poisson's."""

    _family = ZeroInflated
    zero_share_samples_ = of_draws("logit_zero")
    zero_share_ = mean_of("zero_share_samples_")


class Wrong(ZeroInflated):
    """Zeros that all count as those of anglers."""

    def residual(self, outputs, y):
        found = super().residual(outputs, y)
        found[:, 0] = y - self.parts(outputs)[0]
        return found


try:
    check_family(Wrong)
except AssertionError as error:
    print(str(error).splitlines()[1])

# %%
# Two fits
# --------

rng = np.random.default_rng(1)
size = 500
parties = pd.DataFrame(
    {
        "people": rng.integers(1, 6, size),
        "camper": rng.integers(2, size=size),
        "child": rng.integers(2, size=size),
    }
)
mean = np.exp(0.3 + parties @ TRUTH)
fish = np.where(rng.random(size) < HIKERS, 0, rng.poisson(mean))

model = ZeroInflatedRegressor(random_state=0).fit(parties, fish)
with warnings.catch_warnings():  # of a dispersion far above one
    warnings.simplefilter("ignore", ConvergenceWarning)
    plain = BayesianPoissonRegressor(random_state=0).fit(parties, fish)
columns = ["rate_ratio", "rate_ratio_eti95_lb", "rate_ratio_eti95_ub"]
tables = {}
for name, each in (("Poisson", plain), ("zero-inflated", model)):
    tables[name] = each.summary().loc[TRUTH.index, columns]
    print(name)
    print(tables[name].assign(truth=np.exp(TRUTH)).round(2).to_string())
print("dispersion of Poisson", round(plain.diagnostics_["dispersion"], 1))
print(f"share of hikers {model.zero_share_:.2f}, true {HIKERS}")

# %%
# Predictions
# -----------
# Draws, quantiles and effects are there without another line. Half of all new
# parties will bring nothing home, and the median says so.

levels = [0.1, 0.5, 0.9]
family = pd.DataFrame({"people": [4], "camper": [1], "child": [1]})
print("zero-inflated:", model.predict_quantiles(family, levels)[0])
print("Poisson:      ", plain.predict_quantiles(family, levels)[0])
effects = average_effects(model, parties, ["camper", "child"])
print(effects[["mean", "eti95_lb", "eti95_ub"]].round(2).to_string())

# %%
# The picture
# -----------
# How many parties catch so many fish, in the data and in data that the models
# generate, with 95 % intervals over the draws.

most = 12
bins = np.arange(most + 1)
figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
ax.bar(bins, np.bincount(fish, minlength=50)[bins], color="0.85", label="data")
for shift, name, each, colour in (
    (-0.15, "Poisson", plain, ORANGE),
    (0.15, "zero-inflated", model, BLUE),
):
    new = each.predict_draws(parties)
    counts = np.stack([(new == k).sum(axis=1) for k in bins], axis=1)
    low, high = np.quantile(counts, [0.025, 0.975], axis=0)
    ax.vlines(bins + shift, low, high, color=colour, linewidth=2, label=name)
ax.set(xlabel="fish", ylabel="parties", xlim=(-0.7, most + 0.7))
ax.legend(frameon=False)
plt.show()
