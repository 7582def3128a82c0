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
    change: NDArray = field(default_factory=lambda: np.zeros(1))
    """Change of log precision, (blocks,).

    The larger of two: the change from the third quarter of the path to the last, and half the range
    over groups of chains.
    """
    uncertainty: NDArray = field(default_factory=lambda: np.zeros(1))
    """Standard deviation of log precision given the data, (blocks,); infinite without data."""
    stein: NDArray = field(default_factory=lambda: np.ones(1))
    """Drawn over wanted variance, mean over each block, (blocks,)."""
    stein_error: NDArray = field(default_factory=lambda: np.zeros(1))
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
        found = [self._at_bounds(), self._uninformed(), self._moving(), self._misdrawn()]
        return [warning for warning in found if warning]

    def _named(self, which: NDArray) -> str:
        names = [self.labels[i] for i in np.flatnonzero(which)]
        return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")

    @property
    def _remedy(self) -> str:
        return remedy_of(self.asked_for, self.hyperprior)

    def _moving(self) -> str | None:
        share = 1.0 if self.hyperprior else _SHARE_OF_SD
        allowed = np.maximum(_STILL, share * self.uncertainty)
        moving = (self.change > allowed) & ~self._bound
        if not moving.any():
            return None
        worst = np.flatnonzero(moving)[(self.change / allowed)[moving].argmax()]
        return (
            f"prior_precision_path_ still moves for {self._named(moving)}: that of "
            f"{self.labels[worst]} by a factor of {np.exp(self.change[worst]):.2f} over its last "
            "half; raise n_chains, or give prior_precision a number"
            + self.asked_for
            * ", or raise n_updates of VariationalEM"
        )

    @property
    def _bound(self) -> NDArray:
        return (self.values <= BOUNDS[0] * 1.01) | (self.values >= BOUNDS[1] / 1.01)

    def _at_bounds(self) -> str | None:
        low, high = self.values <= BOUNDS[0] * 1.01, self.values >= BOUNDS[1] / 1.01
        if low.any():
            return (
                f"the learned precision of {self._named(low)} is at its lower limit, "
                f"{BOUNDS[0]:g}: the weights have no bound, as with separable classes or columns "
                f"of tiny numbers; scale the columns of X, or {self._remedy}"
            )
        # where the uncertainty is infinite, the weights are switched off
        high &= np.isfinite(self.uncertainty)
        if high.any():
            return (
                f"the learned precision of {self._named(high)} is at its upper limit, "
                f"{BOUNDS[1]:g}: columns of large numbers, or weights of no use; scale the columns "
                "of X"
            )
        return None

    def _uninformed(self) -> str | None:
        if self.uninformed.any():
            return (
                f"the data say nothing about {self._named(self.uninformed)} (zero or constant "
                "columns): its precision was not learned"
            )
        vague = (self.uncertainty > _VAGUE) & ~self._bound
        if self.one_each or self.hyperprior or not vague.any():
            return None
        return (
            f"the data hardly determine the precision of {self._named(vague)}: log precision is "
            f"known to {self.uncertainty[vague].max():.1f} at best (few weights, or few rows for "
            f"them); {self._remedy}"
        )

    def _misdrawn(self) -> str | None:
        off = np.abs(self.stein - 1)
        wrong = (off > STEIN_LIMIT) & (off > self.stein_error)
        if not wrong.any():
            return None
        worst = np.where(wrong, off, 0).argmax()
        return (
            f"while the precision of {self._named(wrong)} was learned, the variances drawn in "
            f"{self.labels[worst]} were {self.stein[worst]:.2f} times those wanted: the precision "
            'may be biased; use sampler="sgfs" or "hmc", or raise burn_in'
        )
