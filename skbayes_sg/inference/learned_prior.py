"""A learned prior precision, its path, and the warnings about it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.diagnostics import STEIN_LIMIT
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import State

BOUNDS = (1e-6, 1e6)
"""Smallest and largest learned precision."""

SEPARATED = (
    "a plane separates the classes: rows bound coefficients and prior precision from one side "
    "only, and intervals are too narrow; give prior_precision a number that you believe in"
)
_STILL = 0.05  # change of log precision that never matters
_SHARE_OF_SD = 0.25  # change that never matters, in standard deviations of log precision
_VAGUE = 1.0  # largest standard deviation of log precision without a warning


def remedy_of(asked_for: bool, hyperprior: bool) -> str:
    """Where the precision has no bounds: whether the user gave VariationalEM, and a hyperprior."""
    number = "give prior_precision a number"
    return f"{number}, or VariationalEM a hyperprior" if asked_for and not hyperprior else number


@dataclass
class Learned:
    """Learned prior precisions, their path, and the figures behind the warnings."""

    labels: list[str]
    values: NDArray
    """(blocks,)"""
    path: NDArray
    """(updates, blocks), the geometric mean over the groups of chains."""
    precision: NDArray
    """(D,)"""
    uninformed: NDArray
    """Whether a block has no data under the first precision, (blocks,)."""
    states: list[State] = field(default_factory=list)
    change: NDArray | float = 0.0
    """Change of log precision, (blocks,).

    The larger of two: the change from the third quarter of the path to the last, and half the range
    over groups of chains.
    """
    uncertainty: NDArray | float = 0.0
    """Standard deviation of log precision given the data, (blocks,); infinite without data."""
    stein: NDArray | float = 1.0
    """Drawn over wanted variance, mean over each block, (blocks,)."""
    stein_error: NDArray | float = 0.0
    """Bound of |stein - 1| by chance, exceeded in one fit of a thousand, (blocks,)."""
    one_each: bool = False
    """Whether blocks are single features. The precision of one feature is always vague."""
    hyperprior: bool = True
    """Whether a hyperprior holds what the data leave vague."""
    asked_for: bool = False
    """Whether the user gave VariationalEM, and so has its parameters."""

    def under(self, posterior: Posterior) -> Posterior:
        """The same data under this prior."""
        return posterior.with_prior(posterior.prior.with_precision(self.precision))

    def warnings(self) -> list[str]:
        """Warnings about the learned precisions."""
        found, values = [], self.values
        shape = values.shape  # one number where chains did not learn them
        change, uncertainty, stein = (
            np.broadcast_to(each, shape) for each in (self.change, self.uncertainty, self.stein)
        )
        low, high = values <= BOUNDS[0] * 1.01, values >= BOUNDS[1] / 1.01
        remedy = remedy_of(self.asked_for, self.hyperprior)

        def named(which: NDArray) -> str:
            names = [self.labels[i] for i in np.flatnonzero(which)]
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            return ", ".join(names[:3]) + more

        if low.any():
            found.append(
                f"the learned precision of {named(low)} is at its lower limit, {BOUNDS[0]:g}: the "
                "weights have no bound, as with separable classes or columns of tiny numbers; "
                f"scale the columns of X, or {remedy}"
            )
        elif (used := high & np.isfinite(uncertainty)).any():  # others are switched off
            found.append(
                f"the learned precision of {named(used)} is at its upper limit, {BOUNDS[1]:g}: "
                "columns of large numbers, or weights of no use; scale the columns of X"
            )

        inside = ~(low | high)
        vague = (uncertainty > _VAGUE) & inside
        if self.uninformed.any():
            found.append(
                f"the data say nothing about {named(self.uninformed)} (zero or constant columns): "
                "its precision was not learned"
            )
        elif vague.any() and not (self.one_each or self.hyperprior):
            found.append(
                f"the data hardly determine the precision of {named(vague)}: log precision is "
                f"known to {uncertainty[vague].max():.1f} at best (few weights, or few rows for "
                f"them); {remedy}"
            )

        share = 1.0 if self.hyperprior else _SHARE_OF_SD
        excess = change / np.maximum(_STILL, share * uncertainty)
        moving = (excess > 1) & inside
        if moving.any():
            worst = np.where(moving, excess, 0).argmax()
            found.append(
                f"prior_precision_path_ still moves for {named(moving)}: that of "
                f"{self.labels[worst]} by a factor of {np.exp(change[worst]):.2f} over its last "
                "half; raise n_chains, or give prior_precision a number"
                + self.asked_for
                * ", or raise n_updates of VariationalEM"
            )

        off = np.abs(stein - 1)
        wrong = (off > STEIN_LIMIT) & (off > self.stein_error)
        if wrong.any():
            worst = np.where(wrong, off, 0).argmax()
            found.append(
                f"while the precision of {named(wrong)} was learned, the variances drawn in "
                f"{self.labels[worst]} were {stein[worst]:.2f} times those wanted: the precision "
                'may be biased; use sampler="sgfs" or "hmc", or raise burn_in'
            )
        return found
