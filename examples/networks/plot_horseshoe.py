"""
Which of sixty columns matter?
==============================

Three of sixty columns matter, and there are 120 rows. Under a normal prior
all coefficients are shrunk alike: those that matter too much, the others too
little. A **horseshoe** has a scale for each column. It hardly shrinks large
coefficients and shrinks the others to nearly nothing, as the lasso does, but
with intervals.
"""

import numpy as np
from matplotlib import pyplot as plt
from skbayes_sg import BayesianLinearRegression
from sklearn.linear_model import LassoCV

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.55"

# %%
# The rows
# --------

rng = np.random.default_rng(1)
truth = np.zeros(60)
truth[[3, 17, 41]] = 1.5, -1.0, 0.6
X = rng.standard_normal((120, len(truth)))
y = X @ truth + 1.5 * rng.standard_normal(len(X))
X_new = rng.standard_normal((5000, len(truth)))
mean_new = X_new @ truth

# %%
# Three fits
# ----------

normal = BayesianLinearRegression(random_state=0).fit(X, y)
horseshoe = BayesianLinearRegression(prior="horseshoe", random_state=0)
horseshoe.fit(X, y)
lasso = LassoCV().fit(X, y)
matter = truth != 0
for name, model in (
    ("normal prior", normal),
    ("horseshoe", horseshoe),
    ("LassoCV", lasso),
):
    error = np.sqrt(np.mean((model.predict(X_new) - mean_new) ** 2))
    kept = (np.abs(model.coef_[~matter]) > 0.05).sum()
    print(f"{name:13} error of the mean {error:.2f}", end=", ")
    print(f"{kept} of 57 columns that say nothing are beyond 0.05")

# %%
# How probable is it that a coefficient is large enough to matter? ``rope``
# is the region of practical equivalence; what is outside of it counts.

summary = horseshoe.summary(rope=0.2)
outside = 1 - summary["p_rope"].drop(["intercept", "noise_variance"])
print(outside.nlargest(5).round(2).to_string())

# %%
# The picture
# -----------
# Intervals of 95 %. Those of the horseshoe are wide where a column matters,
# or may, and almost points elsewhere.

figure, ax = plt.subplots(figsize=(9, 4), layout="constrained")
place = np.arange(len(truth))
for shift, model, colour, name in (
    (-0.2, normal, ORANGE, "normal prior"),
    (0.2, horseshoe, BLUE, "horseshoe"),
):
    draws = model.coef_samples_.reshape(-1, len(truth))
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    ax.vlines(place + shift, low, high, color=colour, linewidth=2, label=name)
    ax.plot(place + shift, model.coef_, ".", color=colour, markersize=4)
ax.plot(place[matter], truth[matter], "_", color="black", ms=16, label="truth")
ax.axhline(0, color="0.8", linewidth=0.8, zorder=0)
ax.set(xlabel="column", ylabel="coefficient")
ax.margins(x=0.01)
ax.legend(frameon=False, loc="upper right")
plt.show()
