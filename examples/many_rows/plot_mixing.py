"""
How SGFS mixes: ellipses that move with alpha
=============================================

With constant steps the noise of stochastic gradients produces draws, whose
distribution is known before any run: an ellipse, as in Figure 1 of Mandt,
Hoffman & Blei (2017). In SGFS (Ahn, Korattikara & Welling 2012) alpha trades
the speed of mixing against the bias of matrices without correlations.
"""

import warnings

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.patches import Ellipse
from skbayes_sg import BayesianLinearRegression, diagnostics
from skbayes_sg.samplers import SGFS
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

BLUE, ORANGE, BLACK = "#0072B2", "#D55E00", "0.1"

# %%
# Two correlated coefficients
# ---------------------------
# Two blood values of diabetes patients. The noise variance is given, so that
# the posterior is Gaussian and an ellipse says all of it.

X, y = load_diabetes(return_X_y=True, as_frame=True)
X, y = scale(X[["s3", "s4"]]), y.to_numpy() - y.mean()
prior_precision = 1e-4
model = BayesianLinearRegression(
    noise_variance=np.var(y),
    prior_precision=prior_precision,
    fit_intercept=False,
    n_chains=8,
    n_draws=8000,
    thin=1,
    random_state=0,
)
curvature = X.T @ X / np.var(y) + prior_precision * np.eye(2)
posterior = np.linalg.inv(curvature)
mean = posterior @ X.T @ y / np.var(y)

# %%
# Eight samplers
# --------------
# At alpha = 0 the noise of minibatches is all that moves a chain: it is
# constant SGD with the preconditioner of Mandt et al., in full and diagonal. A
# larger alpha adds noise to the gradient and shortens the steps.
# ``predicted_covariance`` is the covariance of the draws in theory.

ALPHAS = (0.0, 0.5, 1.0, 2.0)
warnings.simplefilter(
    "ignore", ConvergenceWarning
)  # the diagonal ones are wrong, and say so
fits = {}
print("drawn over posterior variance, in the narrowest and widest direction")
print(f"{'':17}{'drawn':>12}{'by theory':>14}{'steps to forget':>18}")
for structure in ("full", "diag"):
    for alpha in ALPHAS:
        sampler = SGFS(alpha, structure, batch_size=40)
        fit = clone(model).set_params(sampler=sampler).fit(X, y)
        distribution = fit.predicted_covariance(X, y)
        drawn = np.cov(fit.draws_.reshape(-1, 2).T)
        ratios = [
            np.linalg.eigvals(curvature @ matrix).real
            for matrix in (drawn, distribution)
        ]
        forgets = diagnostics.autocorrelation_time(fit.draws_).max()
        shown = "".join(
            f"{min(ratio):10.2f}{max(ratio):5.2f}" for ratio in ratios
        )
        print(f"{structure:5} alpha = {alpha:3}{shown}{forgets:14.0f}")
        fits[structure, alpha] = fit.draws_[0], distribution, forgets

# %%
# The picture
# -----------
# Black ellipses are the posterior, blue ones the distribution of the draws by
# theory, with two standard deviations each. Dots are 2000 draws, and the
# orange line is a chain for its last fifty steps. With full matrices the two
# ellipses agree for any alpha, and a small one mixes fastest. With diagonal
# ones only a large alpha finds the shape, and the orange line hardly moves.


def ellipse(covariance, **style):
    """Two standard deviations around the mean."""
    values, axes = np.linalg.eigh(covariance)
    angle = np.degrees(np.arctan2(*axes[::-1, 1]))
    return Ellipse(
        mean, 4 * values[1] ** 0.5, 4 * values[0] ** 0.5, angle=angle, **style
    )


figure, axes = plt.subplots(
    2,
    len(ALPHAS),
    figsize=(10.5, 5.6),
    layout="constrained",
    sharex=True,
    sharey=True,
)
for ax, ((structure, alpha), (draws, distribution, forgets)) in zip(
    axes.flat, fits.items(), strict=True
):
    ax.plot(
        *draws[:: len(draws) // 2000].T,
        ".",
        color="0.75",
        markersize=2,
        zorder=0,
    )
    ax.add_patch(ellipse(distribution, facecolor=BLUE, alpha=0.15))
    ax.add_patch(
        ellipse(
            distribution,
            fill=False,
            edgecolor=BLUE,
            linewidth=2,
            linestyle="--",
        )
    )
    ax.add_patch(
        ellipse(posterior, fill=False, edgecolor=BLACK, linewidth=1.2)
    )
    ax.plot(*draws[-50:].T, ".-", color=ORANGE, linewidth=0.8, markersize=3)
    name = {"full": "full matrices", "diag": "diagonal"}[structure]
    ax.set_title(
        f"{name}, alpha = {alpha:g}\nforgets in {forgets:.0f} steps",
        fontsize="medium",
    )
half = 3.6 * np.sqrt(posterior.diagonal())
axes[0, 0].set(xlim=(mean[0] - half[0], mean[0] + half[0]))
axes[0, 0].set(ylim=(mean[1] - half[1], mean[1] + half[1]))
for ax in axes[-1]:
    ax.set_xlabel("coefficient of s3")
for ax in axes[:, 0]:
    ax.set_ylabel("coefficient of s4")
plt.show()
