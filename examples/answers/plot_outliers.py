"""
Typing errors
=============

The decimal point is in the wrong place in some rows. These rows move the line
of linear regression and widen all its intervals.
:class:`~skbayes_sg.BayesianRobustRegressor` has noise of Student's t, in which
a few distant values are no surprise, so that nobody has to find or remove the
rows.
"""

import numpy as np
from matplotlib import pyplot as plt
from skbayes_sg import BayesianLinearRegression, BayesianRobustRegressor
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

# %%
# Ten times too large
# -------------------
# The progression of diabetes, with the errors in every twentieth row.

X, y = load_diabetes(return_X_y=True, as_frame=True)
X[:] = StandardScaler().fit_transform(X)
wrong = y.copy()
wrong[::20] *= 10
print(f"{(wrong != y).sum()} of {len(y)} rows are ten times too large")

# %%
# Three fits
# ----------
# The degrees of freedom are sampled. With the errors there are few of them;
# without, the noise is nearly normal, and robust regression is close to linear
# regression.

fits = {
    "linear, right rows": BayesianLinearRegression(random_state=0).fit(X, y),
    "linear, typing errors": BayesianLinearRegression(random_state=0).fit(
        X, wrong
    ),
    "robust, typing errors": BayesianRobustRegressor(random_state=0).fit(
        X, wrong
    ),
}
robust_of_right = BayesianRobustRegressor(random_state=0).fit(X, y)
robust = fits["robust, typing errors"]
print(f"degrees of freedom with errors {robust.degrees_of_freedom_:.1f}, ")
print(f"without {robust_of_right.degrees_of_freedom_:.0f}")
right = fits["linear, right rows"]
for name, model in fits.items():
    away = np.abs(model.coef_ - right.coef_).mean()
    sd = model.coef_std_.mean()
    print(f"{name:24} mean error {away:5.2f}, standard deviation {sd:5.2f}")

# %%
# The picture
# -----------
# Intervals of each coefficient, of posterior probability .9.

figure, ax = plt.subplots(figsize=(8, 4.8), layout="constrained")
styles = zip(
    fits.items(),
    ("0.45", "#D55E00", "#0072B2"),
    (-0.22, 0.0, 0.22),
    strict=True,
)
for (name, model), colour, shift in styles:
    draws = model.coef_samples_.reshape(-1, X.shape[1])
    low, high = np.quantile(draws, [0.05, 0.95], axis=0)
    at = np.arange(X.shape[1]) + shift
    ax.hlines(at, low, high, color=colour, lw=2.5, label=name)
    ax.plot(model.coef_, at, "o", color=colour, ms=4)
ax.axvline(0, color="0.8", lw=1, zorder=0)
ax.set(
    xlabel="progression per standard deviation of the column",
    yticks=range(X.shape[1]),
)
ax.set_yticklabels(X.columns)
ax.invert_yaxis()
ax.legend(frameon=False)
plt.show()
