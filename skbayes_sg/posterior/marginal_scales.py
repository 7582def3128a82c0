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

    def known(self, precisions: NDArray) -> NDArray:
        """What the data know of the coefficients of each group, as a number of them."""
        lam, covariance = self._solved(np.log(precisions))[:2]
        return self._grouped((1 - lam * covariance.diagonal())[None])[0]
