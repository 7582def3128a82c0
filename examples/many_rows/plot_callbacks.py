"""
Callbacks: progress, early stopping, checkpoints
================================================

Callbacks are called between blocks of draws. Here one of our own records how
well the chains agree, ``ConvergenceStop`` ends the sampling when they agree
well enough, and ``Checkpoint`` saves a fit that is interrupted.
"""

import contextlib
import tempfile
import warnings
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from skbayes_sg import BayesianLogisticRegression, callbacks
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

BLUE, ORANGE = "#0072B2", "#D55E00"
X, y = load_wine(return_X_y=True)
X = scale(X)

# %%
# A callback of our own
# ---------------------
# ``after_block`` gets the fit so far, and returns whether to end it.


class Record(callbacks.Callback):
    """Writes down two figures after each block of draws."""

    def __init__(self):
        self.rows = []

    def after_block(self, progress):
        """R-hat and the smallest effective number of the draws so far."""
        if progress.telling and progress.drawn % 40 == 0:
            figures = progress.fitted().diagnostics_
            self.rows.append(
                (progress.drawn, figures["r_hat_max"], figures["ess_min"])
            )
        return False


# %%
# Stop when it is enough
# ----------------------

model = BayesianLogisticRegression(
    "hmc", prior_precision=1.0, n_chains=8, n_draws=1000, random_state=0
)
unbroken, stopped = Record(), Record()
whole = clone(model).set_callbacks(unbroken).fit(X, y)
early = (
    clone(model)
    .set_callbacks(stopped, callbacks.ConvergenceStop(ess=800))
    .fit(X, y)
)
for name, fit in (("whole", whole), ("early", early)):
    figures = fit.diagnostics_
    r_hat, ess = figures["r_hat_max"], figures["ess_min"]
    print(f"{name}: {fit.draws_.shape[1]} draws of each chain, ", end="")
    print(f"R-hat {r_hat:.3f}, effective draws {ess:.0f}")
apart = np.abs(whole.coef_ - early.coef_) / whole.coef_std_
print(f"their means differ by at most {apart.max():.2f} standard deviations")

# %%
# The picture
# -----------

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
drawn, r_hat, ess = np.array(unbroken.rows).T
for ax, figure_so_far, limit, label in (
    (axes[0], r_hat, 1.01, "largest R-hat"),
    (axes[1], ess, 800, "smallest effective number of draws"),
):
    ax.plot(drawn, figure_so_far, color=BLUE, linewidth=1.5)
    ax.axhline(limit, color="0.5", linewidth=1, linestyle="--")
    ax.annotate(
        f"asked for: {limit}",
        (drawn[-1], limit),
        (0, 4),
        textcoords="offset points",
        ha="right",
        color="0.4",
    )
    ax.axvline(early.draws_.shape[1], color=ORANGE, linewidth=1.5)
    ax.set(xlabel="draws of each chain", ylabel=label)
axes[0].set_ylim(1.0, 1.1)
axes[1].set_ylim(bottom=0)
axes[1].annotate(
    "ConvergenceStop",
    (early.draws_.shape[1], 0.94),
    (5, 0),
    xycoords=("data", "axes fraction"),
    textcoords="offset points",
    color=ORANGE,
)
plt.show()

# %%
# After an interrupt
# ------------------
# Ctrl-C ends the fit. The estimator has the draws so far, with a warning, and
# the checkpoint keeps the state of the chains. The same call goes on from
# there, and ends with the draws of the unbroken fit.


class Interrupt(callbacks.Callback):
    """Ctrl-C after some draws, once."""

    def after_block(self, progress):
        """Interrupt."""
        if progress.drawn >= 300:
            raise KeyboardInterrupt
        return False


with tempfile.TemporaryDirectory() as folder:
    checkpoint = callbacks.Checkpoint(Path(folder, "fit.npz"), every=3600)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ConvergenceWarning)
        part = clone(model).set_callbacks(checkpoint, Interrupt())
        with contextlib.suppress(KeyboardInterrupt):
            part.fit(X, y)
    print(f"interrupted with {part.draws_.shape[1]} draws of each chain:")
    print(str(said[0].message).partition(";")[0])
    again = clone(model).set_callbacks(checkpoint).fit(X, y)
print(
    f"the same draws as unbroken: {np.array_equal(again.draws_, whole.draws_)}"
)
