"""
Theory of a sampler beside its draws
====================================

Constant SGD with one step size for all directions does not sample the posterior. But the covariance
of its draws is known from theory, for your own data, and so can be reported. Here it is for
diabetes, beside the default sampler.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLinearRegressionSGFS
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
# Each point is an entry of the covariance matrix: what theory predicts against what was drawn. The
# draws of constant SGD have smaller variances than the posterior, and theory says so. Its points
# scatter more, because its draws are dependent.

figure, panels = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained")
print(f"{'standard deviations':22}{'':10}" + "".join(f"{name:>7}" for name in X.columns))
for ax, (name, model) in zip(panels, models.items(), strict=True):
    predicted = model.predicted_covariance(X, y)
    drawn = np.cov(model.draws_.reshape(-1, len(predicted)).T)
    ax.axline((0, 0), slope=1, color="0.7", linewidth=1)
    ax.plot(predicted.ravel(), drawn.ravel(), ".", color="#0072B2")
    ax.set(xlabel="predicted covariance", ylabel="drawn covariance", title=name)
    for kind, matrix in (("predicted", predicted), ("drawn", drawn)):
        sd = np.sqrt(matrix.diagonal())[: len(X.columns)]
        print(f"{name:22}{kind:10}" + "".join(f"{each:7.2f}" for each in sd))
plt.show()
