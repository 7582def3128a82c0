"""
Theory of a sampler beside its draws
====================================

Constant SGD with one step size for all directions does not sample the posterior. But the covariance
of its draws is known from theory, for your own data, and so can be reported. Here it is for
diabetes, beside the default sampler.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLinearRegressionSGFS, CovarianceDisplay
from skbayes_sg.samplers import ConstantSGD

# %%
# Five columns, two samplers
# --------------------------

X, y = load_diabetes(return_X_y=True, as_frame=True)
X = X[["bmi", "bp", "s3", "s5", "s6"]]
X = StandardScaler().set_output(transform="pandas").fit_transform(X)
models = {
    name: BayesianLinearRegressionSGFS(
        sampler, prior_precision=1e-3, noise_variance=3000.0, n_draws=500, random_state=0
    ).fit(X, y)
    for name, sampler in (
        ("default", None),
        ("constant SGD", ConstantSGD("scalar", batch_size=40)),
    )
}

# %%
# The picture
# -----------
# On the left are the draws of two coefficients, with ellipses of the covariance as drawn and as
# predicted. On the right are all covariances. The ellipse of constant SGD is smaller and rounder
# than that of the posterior, and theory says so.

figure, rows = plt.subplots(2, 2, figsize=(9, 8.5), layout="constrained")
print(f"{'covariance of s3 and s5':28}{'predicted':>10}{'drawn':>8}")
for axes, (name, model) in zip(rows, models.items(), strict=True):
    display = CovarianceDisplay.from_estimator(model, X, y, parameters=["s3", "s5"], ax=axes)
    axes[0].set_title(f"{name}: {axes[0].get_title()}", fontsize="medium")
    i, j = display.pair
    print(f"{name:28}{display.predicted[i, j]:10.2f}{display.drawn[i, j]:8.2f}")
for axis in ("x", "y"):  # the same scale above and below
    axes = rows[:, 0]
    ends = [getattr(ax, f"get_{axis}lim")() for ax in axes]
    for ax in axes:
        getattr(ax, f"set_{axis}lim")(min(low for low, _ in ends), max(high for _, high in ends))
plt.show()
