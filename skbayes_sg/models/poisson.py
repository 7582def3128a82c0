"""Poisson regression."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, pdtr

from skbayes_sg.data.rows import Data, InMemory
from skbayes_sg.models.log_link import LogLink, poisson_counts, sums_of_means


class Poisson(LogLink):
    """Counts y with mean and variance ``mu = exp(eta)``."""

    counts = True

    @classmethod
    def averaged(cls, y: NDArray, counts: NDArray) -> tuple[NDArray, NDArray]:
        """A sum of k observations has the mean k mu."""
        return sums_of_means(y, counts), np.log(counts)[:, None]

    @classmethod
    def notices(cls, data: Data) -> list[str]:
        """A warning of numbers that are no counts, as rates are not."""
        if not (data.sample.y % 1).any():
            return []
        if has_weighted_fractions(data.sample):
            return [
                "y holds fractions, as rates do, and sample_weight says how often a row was seen: "
                "give the counts as y, and exposure; otherwise dispersion is not known, and "
                "intervals are those of counts"
            ]
        return ["y holds fractions, which no counts have; intervals are those of counts"]

    def variance(self, outputs: NDArray) -> NDArray:
        return self.mean(outputs)

    def excess_kurtosis(self, outputs: NDArray) -> NDArray:
        """Excess kurtosis of y, (chains, n)."""
        return 1 / self.mean(outputs)

    def value(self, outputs: NDArray, y: NDArray) -> NDArray:
        """y eta - mu - log y!"""
        return y * outputs[:, 0] - self.mean(outputs) - gammaln(y + 1)

    def residual(self, outputs: NDArray, y: NDArray) -> NDArray:
        """y - mu"""
        return (y - self.mean(outputs))[:, None]

    def expected(self, outputs: NDArray) -> NDArray:
        """mu"""
        return np.exp(outputs)[:, None]

    def observed_at(self, outputs: NDArray, y: NDArray) -> NDArray:
        return self.expected(outputs)

    def row_terms(
        self,
        theta: NDArray,
        root: NDArray | None,
        X: NDArray,
        y: NDArray,
        observed: bool = False,
    ) -> tuple[NDArray, NDArray]:
        """The mean of mu over a normal eta is known: that of a lognormal variable."""
        eta = self.outputs(theta, X)[0]
        if root is not None:
            eta = eta + 0.5 * self.output_variance(root, X)
        mu = np.exp(eta)
        return y - mu, mu[None]

    def distribution(self, y: NDArray, outputs: NDArray) -> NDArray:
        mean = self.mean(outputs)
        below = (y >= 0) * pdtr(np.maximum(np.floor(y), 0), mean)
        # a step at the mean, of so large numbers, of which pdtr knows nothing from 1e306 on
        return np.where(y > 1e300, mean <= y, below)

    def draw(self, outputs: NDArray, rng: np.random.Generator) -> NDArray:
        return poisson_counts(self.mean(outputs), rng)

    def polynomials(self, own: NDArray) -> NDArray:
        """All cumulants are mu."""
        return np.ones((4, 1, len(own), 1))

    # -- expansion around an anchor: what remains of y is nothing ------------------------------

    def expand_rows(self, outputs: NDArray, y: NDArray) -> tuple[NDArray, ...]:
        """The mean."""
        return (np.exp(outputs[0, 0]),)

    def difference(self, change: NDArray, at_anchor: tuple[NDArray, ...]) -> NDArray:
        """-mu (e^c - 1)"""
        np.expm1(change, out=change)
        change *= -at_anchor[0]
        return change

    def remainder(self, change: NDArray, at_anchor: tuple[NDArray, ...]) -> NDArray:
        """-mu (e^c - 1 - c)"""
        return at_anchor[0] * change + self.difference(change, at_anchor)

    def bregman_remainder(
        self, change: NDArray, at_anchor: tuple[NDArray, ...]
    ) -> tuple[NDArray, NDArray]:
        linear = at_anchor[0] * change[:, 0]
        difference = self.difference(change, at_anchor)
        return linear + difference[:, 0], difference


def has_weighted_fractions(rows: InMemory) -> bool:
    """Whether y has fractions and weights, which then are not the numbers of equal counts."""
    if rows.weight is None:
        return False
    seen = rows.weight > 0
    given = np.ones(rows.n_rows) if rows.given is None else rows.given
    return bool((rows.y[seen] % 1).any() and (rows.weight[seen] != given[seen]).any())
