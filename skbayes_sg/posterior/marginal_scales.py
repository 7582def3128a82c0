"""The hyperparameters of a prior beside normal parameters, which are integrated out.

With C the precision matrix of the distribution under the precisions of ell(eta), and h that times
its mean,

    log p(eta | data) = log p(eta) - log det(C) / 2 + h^T C^-1 h / 2 + const

and the last term is that of Student's t where the noise variance is sampled too. Source:
math/priors.md#a-sampled-precision; MacKay 1992.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from skbayes_sg.priors import Distribution, Prior
from skbayes_sg.priors.scales import Scales

_ALONG = np.array([-4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0])  # widths from the mode


class MarginalScales:
    """Log density of hyperparameters beside a normal distribution.

    Parameters
    ----------
    scales : Scales
    distribution : Distribution
        Of the parameters, under `prior`.
    prior : Prior
    """

    def __init__(self, scales: Scales, distribution: Distribution, prior: Prior) -> None:
        self._scales, n = scales, distribution.operator.dim
        self._unit = scales.weights(prior)[:n]
        away = np.where(self._unit > 0, distribution.mean[:n] - prior.mean[:n], 0.0)
        precision = distribution.operator.dense()
        self._slope = precision @ away
        self._free = precision - np.diag(scales.members(prior)[0][:n])
        self._centre = distribution.mean[:n] - away
        self._noise = None
        if distribution.noise is not None:
            shape, rate = distribution.noise
            self._noise = shape, rate + 0.5 * float(self._slope @ away)

    def _solved(self, ell: NDArray) -> tuple[NDArray, NDArray, NDArray, float]:
        """Precisions, covariance and mean of the parameters under ell, and log det C."""
        lam = np.zeros_like(self._unit)
        block = self._scales.block
        lam[block] = np.exp(ell)[self._scales.group] * self._unit[block]
        factor = cho_factor(self._free + np.diag(lam), lower=True)
        covariance = cho_solve(factor, np.eye(len(lam)))
        log_det = 2 * float(np.log(factor[0].diagonal()).sum())
        return lam, covariance, covariance @ self._slope, log_det

    def _of_energy(self, energy: float) -> tuple[float, float]:
        """The term of h^T C^-1 h / 2, and its derivative."""
        if self._noise is None:
            return energy, 1.0
        shape, rate = self._noise
        return -shape * np.log(rate - energy), shape / (rate - energy)

    def log_density(self, eta: NDArray) -> tuple[float, NDArray]:
        """Of eta (K,), up to a constant, and its gradient."""
        scales, eta = self._scales, eta[None]
        lam, covariance, mean, log_det = self._solved(scales.log_precisions(eta)[0])
        value, factor = self._of_energy(0.5 * float(mean @ self._slope))
        each = -0.5 * lam * (covariance.diagonal() + factor * mean**2)
        value += float(scales.log_density(eta)[0]) - 0.5 * log_det
        return value, scales.slope(eta, self._grouped(each[None]))[0]

    def _grouped(self, each: NDArray) -> NDArray:
        return self._scales.summed(each[:, self._scales.block])

    def mode(self, start: NDArray) -> NDArray:
        """The most probable eta (K,), from a start (1, K)."""

        def minus(eta: NDArray) -> tuple[float, NDArray]:
            value, gradient = self.log_density(eta)
            return -value, -gradient

        bounds = np.column_stack([start[0] - 20.0, start[0] + 20.0])
        return minimize(minus, start[0], jac=True, method="L-BFGS-B", bounds=bounds).x

    def width(self, eta: NDArray) -> NDArray:
        """About the standard deviation of each hyperparameter at the mode, (K,)."""
        scales, at = self._scales, eta[None]
        lam, covariance, mean, _ = self._solved(scales.log_precisions(at)[0])
        factor = self._of_energy(0.5 * float(mean @ self._slope))[1]
        squares = 0.5 * lam * (covariance.diagonal() + factor * mean**2)
        group = np.full(len(lam), -1)
        group[scales.block] = scales.group
        both = lam * mean
        pairs = (
            0.5 * np.outer(lam, lam) * covariance**2 + factor * np.outer(both, both) * covariance
        )
        same = np.where(group[:, None] == group, pairs, 0.0).sum(axis=1)
        of_ell = self._grouped((squares - same)[None])[0]
        slopes = scales.pullback(np.repeat(at, len(of_ell), axis=0), np.eye(len(of_ell)))
        curvature = of_ell @ slopes**2 + scales.hyperprior_curvature(at)
        return 1 / np.sqrt(np.maximum(curvature, 0.1))  # within three natural logarithms

    def over(self, eta: NDArray, width: NDArray) -> tuple[NDArray, NDArray]:
        """Mean and covariance of the parameters over all eta, from about their mode and widths.

        One eta varies at a time: what several of them add to the moments is summed. With a noise
        variance the covariance is in units of its mean under eta.
        """
        here = self._moments(eta)
        mean, covariance, value, noise = here
        more_mean, more = np.zeros_like(mean), np.zeros_like(covariance)
        for k in range(len(eta)):
            points = np.repeat(eta[None], len(_ALONG), axis=0)
            points[:, k] += _ALONG * width[k]
            each = [self._moments(point) for point in points]
            share = np.exp(np.array([one[2] for one in each]) - value)
            share /= share.sum()
            means = np.array([one[0] for one in each])
            middle = share @ means
            more_mean += middle - mean
            away = means - middle
            more += (away.T * share) @ away / noise
            for part, one in zip(share, each, strict=True):
                more += part * (one[3] / noise * one[1] - covariance)
        return mean + more_mean, covariance + more

    def _moments(self, eta: NDArray) -> tuple[NDArray, NDArray, float, float]:
        """Mean and covariance given eta, log density of eta, and what noise variances go with."""
        ell = self._scales.log_precisions(eta[None])[0]
        _, covariance, mean, log_det = self._solved(ell)
        energy = 0.5 * float(mean @ self._slope)
        value = self._of_energy(energy)[0] + float(self._scales.log_density(eta[None])[0])
        noise = 1.0 if self._noise is None else (self._noise[1] - energy) / (self._noise[0] - 1)
        return self._centre + mean, covariance, value - 0.5 * log_det, noise

    def known(self, precisions: NDArray) -> NDArray:
        """What the data know of the coefficients of each group, as a number of them."""
        lam, covariance = self._solved(np.log(precisions))[:2]
        return self._grouped((1 - lam * covariance.diagonal())[None])[0]
