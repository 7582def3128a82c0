"""What regressions with a log link share."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from skbayes_sg.models.base import Response
from skbayes_sg.models.predictor import Family

_COUNTED = 1e11
"""The largest mean of counts that NumPy draws: of larger ones its differences of terms as large as
the mean times its logarithm lose digits, and beyond integers of 64 bits it refuses."""


class LogLink(Family, Response):
    """A response of mean ``mu = exp(eta)``, which is not negative."""

    ratio = "rate_ratio"
    log_link = True
    variance_power = 1.0

    @classmethod
    def require_targets(cls, y: NDArray) -> None:
        if (y < 0).any():
            raise ValueError("y holds negative numbers, which are no counts")

    def mean(self, outputs: NDArray) -> NDArray:
        return np.exp(outputs[:, 0])

    def mean_over(self, weights: NDArray, theta: NDArray, X: NDArray) -> NDArray:
        if type(self).mean is not LogLink.mean:  # of a subclass with another mean
            return super().mean_over(weights, theta, X)
        eta = self.eta(theta, X)
        return weights @ np.exp(eta, out=eta)

    def polynomials(self, own: NDArray) -> NDArray:
        """Coefficients of the first four cumulants of y, if they are polynomials of mu.

        Those of mu, mu^2 and so on, (4, powers, chains, n), where `own` (chains, parameters, n) are
        the outputs that all rows share; their n may be 1.
        """
        raise NotImplementedError

    @property
    def has_cumulants(self) -> bool:
        return super().has_cumulants or self._is_of_draw("polynomials")

    def cumulants(self, outputs: NDArray) -> NDArray:
        mu, coef = self.mean(outputs), self.polynomials(outputs[:, 1:])
        return _polynomials(coef, (mu ** (k + 1) for k in range(coef.shape[1])))

    @property
    def _adds_powers(self) -> bool:
        """Whether no subclass has another mean, or cumulants of its own."""
        kind = type(self)
        return kind.cumulants is LogLink.cumulants and kind.mean is LogLink.mean

    def _of_draws(self, theta: NDArray) -> NDArray:
        """The coefficients of `polynomials`, which are the same for all rows."""
        return self.polynomials(theta[:, self.dim - len(self.own) :, None])

    def sums_of_terms(self, theta: NDArray, X: NDArray, member: NDArray) -> NDArray:
        """Sums of powers of mu."""
        if not self._adds_powers:
            return super().sums_of_terms(theta, X, member)
        mu = self.eta(theta, X)
        np.exp(mu, out=mu)
        power, sums = mu.copy(), [mu @ member]
        for _ in range(1, self._of_draws(theta[:1]).shape[1]):
            power *= mu
            sums.append(power @ member)
        return np.stack(sums)[..., None]

    def cumulants_of_sums(self, theta: NDArray, sums: NDArray) -> NDArray:
        if not self._adds_powers:
            return super().cumulants_of_sums(theta, sums)
        return _polynomials(self._of_draws(theta), sums[..., 0])[..., None]

    def log_loss_moments(self, theta: NDArray, X: NDArray) -> tuple[NDArray, NDArray]:
        """Moments for counts, from cells of them at some eta, and interpolated in between."""
        outputs = self.outputs(theta, X, np.float64)
        eta, own = outputs[0, 0], outputs[:, 1:, :1]
        if (outputs[:, 1:] != own).any():  # sums of several numbers of counts
            return np.full(len(eta), np.nan), np.full(len(eta), np.nan)
        knots, moments = np.linspace(eta.min() - 1e-3, eta.max() + 1e-3, 17), np.empty((17, 2))
        for moment, knot in zip(moments, knots, strict=True):
            moment[:] = self._moments_of_cells(
                np.concatenate([np.full((1, 1, 1), knot), own], axis=1)
            )
        if not np.isfinite(moments).all():  # of counts that overflow
            return np.full(len(eta), np.nan), np.full(len(eta), np.nan)
        mean, variance = CubicSpline(knots, moments)(eta).T
        return mean, np.maximum(variance, 0.0)

    def _moments_of_cells(self, outputs: NDArray) -> tuple[float, float]:
        """Mean and variance of -log p(y) under one row's outputs, from the middles of cells."""
        mean, variance = float(self.mean(outputs)[0, 0]), float(self.variance(outputs)[0, 0])
        if not np.isfinite(variance):
            return np.nan, np.nan
        reach = 12 * np.sqrt(variance)
        top = mean + reach + 40 * (1 + variance / max(mean, 1e-300))
        far = np.geomspace(1, top + 1, 80) - 1
        near = np.linspace(max(mean - reach, 0), mean + reach, 80)
        edges = np.unique(np.floor(np.append(far, near)))
        last = np.append(edges[1:] - 1, np.floor(top))  # a cell has the counts from edge to last
        outputs = np.repeat(outputs, len(last), axis=2)
        mass = np.diff(self.distribution(last[None], outputs)[0], prepend=0.0)
        loss = -self.value(outputs, np.floor(0.5 * (edges + last))[None])[0]
        loss[mass <= 0] = 0
        mean = float(mass @ loss)
        return mean, float(mass @ (loss - mean) ** 2)

    def guess(self, y: NDArray, weight: NDArray | None, known: NDArray | None = None) -> NDArray:
        """The intercept under which y has its sum, as if one row more had a mean of one half."""
        theta = np.zeros((1, self.dim))
        if self.fit_intercept:
            weights = np.ones(len(y)) if weight is None else weight.astype(np.float64)
            exposure = np.ones(len(y)) if known is None else np.exp(known[:, 0])
            total = weights @ exposure + (1.0 if known is None else exposure.mean())
            mean = (weights @ y.astype(np.float64) + 0.5) / total
            theta[0, self._n_coef] = np.log(mean)
        return theta


def sums_of_means(y: NDArray, counts: NDArray) -> NDArray:
    """The counts of which y, means of so many counts, were computed."""
    total = y * counts
    whole = np.rint(total)
    if (np.abs(total - whole) > 1e-4 * np.maximum(1.0, total)).any():
        raise ValueError(
            "y times var_weights is not whole: they are the numbers of counts of which y is the "
            "mean"
        )
    return whole


def _polynomials(coef: NDArray, powers: Iterable[NDArray]) -> NDArray:
    """Of coefficients (4, powers, chains, .), (4, chains, n); infinite powers times 0 are 0."""
    terms = (np.where(c == 0, 0.0, c * p) for c, p in zip(coef.swapaxes(0, 1), powers, strict=True))
    return np.asarray(sum(terms))


def poisson_counts(mean: NDArray, rng: np.random.Generator) -> NDArray:
    """Poisson counts; about the largest means they are rounded normal numbers.

    The two distribution functions then differ by 2e-7 at most, 0.07 over the root of the mean.
    """
    counted = mean <= _COUNTED
    counts = rng.poisson(np.where(counted, mean, 0.0))
    if counted.all():
        return counts
    far = mean * (1 + rng.standard_normal(mean.shape) / np.sqrt(np.maximum(mean, 1.0)))
    return np.where(counted, counts, np.rint(far))
