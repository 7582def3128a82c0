"""
Counts in groups for an ecologist
=================================

Ticks were counted on chicks of 80 broods. Broods differ, and most chicks have
few ticks. How many does a chick have at another altitude, and how many may a
chick of a new brood have?
"""

import numpy as np
import pandas as pd
import statsmodels.api as sm
from matplotlib import pyplot as plt
from skbayes_sg import BayesianNegativeBinomialRegressor

# %%
# The chicks
# ----------
# Simulated, so that the truth is known: broods differ by a standard deviation
# of .8, and a step of altitude changes the mean by a factor of exp(-0.9).

rng = np.random.default_rng(1)
brood = np.repeat(np.arange(80), 4)
altitude = rng.normal(size=80)
mean = np.exp(1.0 - 0.9 * altitude + 0.8 * rng.normal(size=80))[brood]
ticks = rng.negative_binomial(3, 3 / (3 + mean))
chicks = pd.DataFrame({"altitude": altitude[brood]})
chicks["brood"] = pd.Categorical([f"B{k}" for k in brood])

# %%
# The model, and one without broods
# ---------------------------------
# A column of categories has random intercepts. statsmodels' negative binomial
# regression takes all chicks for independent: its standard error of the
# altitude is too small.

model = BayesianNegativeBinomialRegressor(
    prior_groups={"altitude": "flat"}, random_state=0
).fit(chicks, ticks)
print(model.summary().loc[["altitude", "brood"], ["mean", "sd"]].round(2))
single = sm.NegativeBinomial(ticks, sm.add_constant(chicks["altitude"]))
single = single.fit(disp=False)
of_altitude = single.params["altitude"], single.bse["altitude"]
print("statsmodels, altitude: {:.2f} ({:.2f})".format(*of_altitude))
spread = model.summary(groups=True).loc["brood", ["mean", "sd"]]
print("sd of broods: {:.2f} ({:.2f}), true 0.80".format(*spread))
zeros = (model.predict_draws(chicks) == 0).mean(axis=1)
low, high = np.quantile(zeros, [0.025, 0.975])
print(
    f"zeros: {np.mean(ticks == 0):.2f}, of the model {low:.2f} to {high:.2f}"
)

# %%
# A new brood
# -----------

grid = pd.DataFrame({"altitude": np.linspace(-2, 2, 41), "brood": "new"})
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
low, high = model.predict_interval(grid).T
ax.fill_between(grid["altitude"], low, high, alpha=0.25, label="95 %")
ax.plot(grid["altitude"], model.predict(grid), label="mean of new broods")
ax.plot(chicks["altitude"], ticks, ".", color="0.5", markersize=3)
ax.set(xlabel="altitude", ylabel="ticks", ylim=(0, np.quantile(ticks, 0.995)))
ax.legend(frameon=False)
plt.show()
