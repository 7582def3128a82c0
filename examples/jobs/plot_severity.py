"""
The pure premium of an actuary
==============================

What a policy costs a year is the number of its claims, times what a claim
costs. Two regressions describe them, and their product, draw by draw, the
premium with its interval.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from skbayes_sg import BayesianGammaRegressor, BayesianPoissonRegressor
from skbayes_sg.inspection import predict_draws
from sklearn.linear_model import GammaRegressor, PoissonRegressor

# %%
# The policies
# ------------
# Simulated. Some were insured for a part of the year (``years``), and the
# cost of a policy is the average of its claims.

rng, n = np.random.default_rng(0), 5000
book = pd.DataFrame({"age": rng.uniform(-1, 1, n)})
book["city"] = rng.integers(2, size=n)
years = rng.uniform(0.2, 1.0, n)
rate = np.exp(-1.6 - 0.5 * book["age"] + 0.4 * book["city"])
claims = rng.poisson(years * rate)
size = np.exp(7.0 + 0.3 * book["age"])
with_claim = claims > 0
shape = claims[with_claim] / 0.8  # of the mean of so many claims
average = rng.gamma(shape, size[with_claim] / shape)

# %%
# Frequency and severity
# ----------------------
# ``exposure`` and ``var_weights`` are the numbers of years and of claims that
# a row stands for. scikit-learn has the same means by weights, and no errors.

often = BayesianPoissonRegressor(random_state=0)
often.fit(book, claims, exposure=years)
much = BayesianGammaRegressor(random_state=0)
much.fit(book[with_claim], average, var_weights=claims[with_claim])
glm = PoissonRegressor(alpha=0.0)
glm.fit(book, claims / years, sample_weight=years)
gamma = GammaRegressor(alpha=0.0)
gamma.fit(book[with_claim], average, sample_weight=claims[with_claim])
for name, ours, theirs in (("often", often, glm), ("much", much, gamma)):
    both = (*ours.coef_, *ours.coef_std_, *theirs.coef_)
    words = "{:5} {:.3f} {:.3f} (sd {:.3f} {:.3f}), scikit-learn {:.3f} {:.3f}"
    print(words.format(name, *both))

# %%
# The premium
# -----------
# Draws of the two posteriors are independent, so that any two can be paired.

ages = pd.DataFrame({"age": np.linspace(-1, 1, 21), "city": 1})
yearly = predict_draws(often, ages, kind="mean", exposure=1.0)
cost = predict_draws(much, ages, kind="mean")
few = min(len(yearly), len(cost))
premium = rng.permutation(yearly)[:few] * cost[:few]
low, middle, high = np.quantile(premium, [0.025, 0.5, 0.975], axis=0)
true = np.exp(-1.6 - 0.5 * ages["age"] + 0.4 + 7.0 + 0.3 * ages["age"])
inside = ((low < true) & (true < high)).mean()
print(f"the true premium is in {inside:.0%} of the intervals")
figure, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
ax.fill_between(ages["age"], low, high, alpha=0.3, label="95 %")
ax.plot(ages["age"], middle, label="premium")
ax.plot(ages["age"], true, "--", color="0.3", label="truth")
ax.set(xlabel="age, scaled", ylabel="cost of a year, in a city")
ax.legend(frameon=False)
plt.show()
