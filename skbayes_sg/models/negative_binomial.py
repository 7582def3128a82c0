"""Negative binomial regression."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammainc, gammaln, psi

from skbayes_sg.data.rows import Data
from skbayes_sg.models.gamma import diagonal, information_of_shape, trigamma
from skbayes_sg.models.log_link import LogLink, poisson_counts, sums_of_means
from skbayes_sg.models.predictor import once

_REMEDY = "give the count as y, and exposure"


class NegativeBinomial(LogLink):
    """Counts y of mean mu and variance ``mu + phi mu^2`` (NB2); the size is ``r = 1 / phi``.

    A Poisson count whose rate is mu times a Gamma variable of mean 1 and variance ``phi = exp(a)``.
    """

    counts = True
    own = ("log_dispersion",)
    own_mean, own_sd = (-1.0,), (1.5,)
    canonical = False

    @classmethod
    def require_targets(cls, y: NDArray) -> None:
        super().require_targets(y)
        if (y != np.rint(y)).any():
            raise ValueError(
                "y holds numbers that are not whole, and the negative binomial distribution is one "
                "of counts; where y is a count over an exposure, " + _REMEDY
            )

    @classmethod
    def averaged(cls, y: NDArray, counts: NDArray) -> tuple[NDArray, NDArray]:
        """A sum of k observations has the mean k mu and the size k r."""
        total = sums_of_means(y, counts)
        return total, np.column_stack([np.log(counts), -np.log(counts)])

    @classmethod
    def notices(cls, data: Data) -> list[str]:
        """A warning of weights that are exposures, where rates happen to be whole."""
        rows = data.sample
        if rows.weight is None or data.n_rows != rows.n_rows:
            return []
        counted = rows.y > 0
        weight, total = rows.weight[counted], (rows.weight * rows.y)[counted]
        if (weight == np.rint(weight)).all() or (total != np.rint(total)).any():
            return []
        return [
            "sample_weight holds numbers that are not whole, and y times sample_weight is whole: "
            "where y is a count over an exposure, coefficients and dispersion are wrong; " + _REMEDY
        ]

    def natural(self, name: str, block: NDArray) -> tuple[str, NDArray]:
        return ("dispersion", np.exp(block)) if name == "log_dispersion" else (name, block)

    def variance(self, outputs: NDArray) -> NDArray:
        mu = self.mean(outputs)
        return mu + np.exp(outputs[:, 1]) * mu**2

    def value(self, outputs: NDArray, y: NDArray) -> NDArray:
        """log(Gamma(y + r) / (Gamma(r) y!)) + y (eta + a) - (y + r) log(1 + phi mu)"""
        eta, a = outputs[:, 0], once(outputs[:, 1])
        r, log_share = np.exp(-a), np.logaddexp(0.0, eta + a)
        rising = _of_sum(gammaln, y, r) - gammaln(r)
        return rising - gammaln(y + 1) + y * (eta + a) - (y + r) * log_share

    def residual(self, outputs: NDArray, y: NDArray) -> NDArray:
        """(y - mu) / (1 + phi mu), and -r (psi(y + r) - psi(r) - log(1 + phi mu)) + that of eta"""
        mu, phi = np.exp(outputs[:, 0]), np.exp(once(outputs[:, 1]))
        of_eta = (y - mu) / (1 + phi * mu)
        rising = _of_sum(psi, y, 1 / phi) - psi(1 / phi) - np.log1p(phi * mu)
        return np.stack([of_eta, of_eta - rising / phi], axis=1)

    def expected(self, outputs: NDArray) -> NDArray:
        """Information, mu / (1 + phi mu) of eta; of a nearly, for r of 1 and more: a metric.

        Exactly that of a is ``mu^2 / (2 r (r + 1))`` for small mu, and that of the Gamma
        distribution for large mu; between these limits roots are added as resistances are.
        """
        mu, phi = np.exp(outputs[:, 0]), np.exp(once(outputs[:, 1]))
        r = 1 / phi
        few = mu * phi / np.sqrt(2 * (1 + phi))
        many = np.sqrt(information_of_shape(r))
        return diagonal(mu / (1 + phi * mu), (few * many / (few + many)) ** 2)

    def observed_at(self, outputs: NDArray, y: NDArray) -> NDArray:
        mu, phi = np.exp(outputs[:, 0]), np.exp(once(outputs[:, 1]))
        r, share = 1 / phi, phi * mu / (1 + phi * mu)
        of_eta, of_a = self.residual(outputs, y).swapaxes(0, 1)
        information = np.empty((len(mu), 2, 2, mu.shape[-1]), mu.dtype)
        information[:, 0, 0] = (mu + share * (y - mu)) / (1 + phi * mu)
        information[:, 0, 1] = information[:, 1, 0] = of_eta * share
        bend = _of_sum(trigamma, y, r) - trigamma(r)
        information[:, 1, 1] = of_a - of_eta * (1 - share) - share * r - r**2 * bend
        return information

    def distribution(self, y: NDArray, outputs: NDArray) -> NDArray:
        r, n = np.exp(-outputs[:, 1]), np.maximum(np.floor(y), 0) + 1
        p = r / (r + self.mean(outputs))
        continuous = 1e12  # counts, whose steps no longer matter, and betainc loses all digits
        if n.max(initial=0) > continuous:  # its limit, a Gamma variable
            n = np.broadcast_to(n, p.shape)
            reached = np.where(n > continuous, gammainc(r, n * p), betainc(r, n, p))
        else:
            reached = betainc(r, n, p)
        return (y >= 0) * reached

    def draw(self, outputs: NDArray, rng: np.random.Generator) -> NDArray:
        r = np.exp(-outputs[:, 1])
        return poisson_counts(rng.gamma(r, self.mean(outputs) / r), rng)

    def polynomials(self, own: NDArray) -> NDArray:
        """Each is ``mu + phi mu^2`` times the derivative in mu of the one before (Morris 1982)."""
        coef = np.zeros((4, 4, *own[:, 0].shape))
        coef[:, 0] = 1
        phi = np.exp(own[:, 0])
        coef[1:, 1] = np.multiply.outer([1, 3, 7], phi)
        coef[2:, 2] = np.multiply.outer([2, 12], phi**2)
        coef[3, 3] = 6 * phi**3
        return coef


def _of_sum(function: Callable[[NDArray], NDArray], y: NDArray, r: NDArray) -> NDArray:
    """A function of y + r, (chains, n): of counts that many rows share it is computed once."""
    most = y.max(initial=0)
    if r.shape[-1] > 1 or y.ndim > 1 or 2 * most >= len(y):
        return function(y + r)
    return function(np.arange(most + 1) + r)[:, y.astype(np.intp)]
