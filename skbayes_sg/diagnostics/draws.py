"""Draws and what each of them counts, as one value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.diagnostics import convergence


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws of quantities, and how much each counts in a mean.

    Whoever averages over draws and forgets their weights has the mean of another distribution, so
    tables, effects, displays, predictions and exports read this value and no bare array.

    Parameters
    ----------
    values : array of shape (n_chains, n_draws, ...)
    weights : array of shape (n_draws,)
        The same in all chains, summing to 1. Draws of weight 0 do not count.

    Examples
    --------
    >>> import numpy as np
    >>> draws = Draws(np.array([[[0.0], [1.0], [2.0]]]), np.array([0.5, 0.0, 0.5]))
    >>> draws.mean()
    array([1.])
    >>> draws.of(draws.values**2).mean()
    array([2.])
    >>> draws.counting().values.shape
    (1, 2, 1)
    """

    values: NDArray
    weights: NDArray

    @classmethod
    def equal(cls, values: NDArray) -> Draws:
        """Draws that count alike."""
        return cls(values, np.full(values.shape[1], 1 / values.shape[1]))

    def of(self, values: NDArray) -> Draws:
        """Other quantities under the same draws, (n_chains, n_draws, ...)."""
        return Draws(values, self.weights)

    @property
    def flat(self) -> NDArray:
        """Chain after chain, (n_chains * n_draws, ...)."""
        return self.values.reshape(-1, *self.values.shape[2:])

    @property
    def flat_weights(self) -> NDArray:
        """Weights of `flat`, summing to 1."""
        n_chains = len(self.values)
        return np.tile(self.weights / n_chains, n_chains)

    @property
    def count_alike(self) -> bool:
        return bool(np.ptp(self.weights) == 0)

    @property
    def n_counting(self) -> int:
        """Draws of each chain whose weight is not 0."""
        return int(np.count_nonzero(self.weights))

    def counting(self) -> Draws:
        """Those whose weight is not 0."""
        counts = self.weights > 0
        return self if counts.all() else Draws(self.values[:, counts], self.weights[counts])

    def standing(self, n: int | None = None) -> NDArray:
        """Numbers of `n` draws of each chain that stand for all and count alike.

        By default as many as count (`systematic`).
        """
        n = self.n_counting if n is None else n
        return convergence.systematic(self.weights, n)

    def resampled(self, n: int | None = None) -> Draws:
        """The draws `standing` for all; themselves where as many count alike."""
        n = self.n_counting if n is None else n
        if self.count_alike and n == len(self.weights):
            return self
        return Draws.equal(self.values[:, self.standing(n)])

    def moments(self) -> tuple[NDArray, NDArray]:
        """Mean and standard deviation, (...,) each."""
        return convergence.moments(self.values, self.weights)

    def mean(self) -> NDArray:
        return self.moments()[0]

    def quantile(self, q: float | NDArray) -> NDArray:
        """Quantiles of quantities (n_chains, n_draws, K): (..., K)."""
        return convergence.quantile(self.values, q, self.weights)

    def share(self, events: NDArray) -> NDArray:
        """Posterior probability of events that each draw has or has not."""
        return convergence.share(events, self.weights)
