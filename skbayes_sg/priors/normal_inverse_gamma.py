"""The conjugate prior of linear regression with unknown noise."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.special import digamma, gammainc, polygamma

from skbayes_sg.diagnostics.judgements import RIGHT
from skbayes_sg.linalg import Dense, Diag
from skbayes_sg.priors.normal import GaussianPrior, Precision, standardised


class NormalInverseGammaPrior:
    """Coefficients N(mean, s2 precision^-1) given s2, and s2 ~ IG(shape, rate), on gamma = log s2.

    s2 is the noise variance, and gamma the last coordinate. Source: Karagiannis, handout 4, section
    4, with its Eq. 4.2 corrected (math/errata.md#e23, math/errata.md#e24: -d/2, not +d/2). The
    curvature in gamma is d/2 + shape, the prior expectation of minus the second derivative. With
    the likelihood's N/2 it is exact at the mode (math/models.md#log-noise-variance).

    Parameters
    ----------
    precision : array of shape (D - 1,), Diag or Dense
        In units of 1 / s2.
    noise : tuple (shape, rate)
        phi and psi of the handout; the rate has the unit of s2.
    mean : float or array of shape (D - 1,), default=0.0
    unit : array of shape (D - 1,), optional
        Precisions for a learned precision of 1; by default ones.
    centre : array of shape (features,), optional
        Means of the columns, at which the intercept has its prior; by default zero.
    """

    quadratic = False
    by_expected = False  # the two informations agree
    misfit = RIGHT  # it is the posterior itself
    free_shape: float | None = None
    """Shape before `determined_by`, where that is asked for."""

    def __init__(
        self,
        precision: NDArray | Precision,
        noise: tuple[float, float],
        mean: NDArray | float = 0.0,
        unit: NDArray | None = None,
        centre: NDArray | None = None,
    ) -> None:
        coef = GaussianPrior(precision, mean, unit, centre)  # given s2 = 1
        self.operator, self.centre = coef.operator, centre
        self.shape, self.rate = noise
        self.precision, self.unit = np.append(coef.precision, 0.0), np.append(coef.unit, 1.0)
        self.mean = np.append(coef.mean, 0.0)
        self._slope = 0.5 * self.operator.dim + self.shape

    def with_precision(self, precision: NDArray) -> NormalInverseGammaPrior:
        return self.in_units(precision, self.unit)

    def in_units(self, precision: NDArray, unit: NDArray) -> NormalInverseGammaPrior:
        """With other precisions of independent parameters, for other units."""
        rest = self.noise, self.mean[:-1], unit[:-1], self.centre
        return NormalInverseGammaPrior(precision[:-1], *rest)

    def independent(self, theta: NDArray) -> NDArray:
        inverse = np.exp(-theta[:, -1]).mean()
        return np.append(inverse * self.precision[:-1], self._slope)

    def _split(self, theta: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Deviation of the coefficients, e^-gamma, and half the deviation's scaled square norm."""
        coef, inverse = theta[:, :-1] - self.mean[:-1], np.exp(-theta[:, -1:])
        squares = self.operator.matvec(coef) * coef
        return coef, inverse, 0.5 * inverse * squares.sum(axis=1, keepdims=True)

    def log_density(self, theta: NDArray) -> NDArray:
        _, inverse, energy = self._split(theta)
        return -(self._slope * theta[:, -1:] + energy + self.rate * inverse)[:, 0]

    def gradient(self, theta: NDArray) -> NDArray:
        coef, inverse, energy = self._split(theta)
        of_noise = energy + self.rate * inverse - self._slope
        return np.concatenate([-inverse * self.operator.matvec(coef), of_noise], axis=1)

    def curvature(self, theta: NDArray) -> Diag | Dense:
        inverse = np.exp(-theta[:, -1]).mean()
        of_coef = self.operator.plain() * inverse
        return of_coef.bordered(np.ones(of_coef.dim), np.array([self._slope]))

    def hessian(self, theta: NDArray) -> NDArray:
        coef, inverse, energy = self._split(theta)
        corner = (energy + self.rate * inverse).item()
        hessian = block_diag(inverse * self.operator.dense(), corner)
        hessian[-1, :-1] = hessian[:-1, -1] = -(inverse * self.operator.matvec(coef))[0]
        return hessian

    def scaled_squares(self, theta: NDArray) -> NDArray:
        """Scaled squares of the coefficients; 0 for the log noise variance."""
        coef, inverse = theta[:, :-1] - self.mean[:-1], np.exp(-theta[:, -1:])
        squares = self.operator.squares(coef)
        return np.concatenate([inverse * squares, np.zeros_like(inverse)], axis=1)

    def determined_by(self, n_rows: float, n_determined: float) -> Self:
        """The same where each coefficient that n rows determine takes half a unit of the shape.

        The density of the coefficients has a factor 1 / s for each of them. Where rows determine
        them and the prior does not, that would count as a row that tells s. So n rows tell s as
        n - n_determined, and at least as one (math/priors.md#a-given-precision).
        """
        prior = type(self)(
            self.operator,
            (self.shape - 0.5 * min(n_determined, max(n_rows - 1, 0.0)), self.rate),
            self.mean[:-1],
            self.unit[:-1],
            self.centre,
        )
        prior.precision, prior.free_shape = self.precision, self.shape
        return prior

    # -- as a posterior -----------------------------------------------------------------------

    @property
    def coef(self) -> GaussianPrior:
        """The distribution of the coefficients, for a noise variance of 1."""
        return GaussianPrior(self.operator, self.mean[:-1], self.unit[:-1])

    @property
    def noise(self) -> tuple[float, float]:
        """Shape and rate of the noise variance."""
        return self.shape, self.rate

    def restricted(self, kept: NDArray) -> NormalInverseGammaPrior:
        """The prior of some parameters, the last of which is the log noise variance."""
        coef = kept[:-1]
        return NormalInverseGammaPrior(
            self.precision[coef], self.noise, self.mean[coef], self.unit[coef]
        )

    def standard(self) -> NormalInverseGammaPrior:
        """The distribution in its own whitened coordinates, given the noise."""
        return NormalInverseGammaPrior(np.ones(self.operator.dim), self.noise)

    def as_expected(self) -> Self:
        """Itself: the two informations agree."""
        return self

    def less_determined(self, prior: Self) -> Self:
        """The posterior of a stream under its prior, less what its rows determine.

        As `determined_by`, with tr(X'X (X'X + Lam)^-1) coefficients, from both precisions.
        """
        if prior.free_shape is None:
            return self
        n_rows = 2 * (self.shape - prior.shape)
        of_prior = self.operator.inverse().dense() * prior.operator.dense()
        plain = type(self)(
            self.operator, (prior.free_shape + 0.5 * n_rows, self.rate), self.mean[:-1]
        )
        posterior = plain.determined_by(n_rows, self.operator.dim - float(of_prior.sum()))
        posterior.free_shape = None
        return posterior

    @property
    def mode(self) -> NDArray:
        """Point of the largest density, (1, D)."""
        return np.append(self.mean[:-1], np.log(self.rate / self._slope))[None]

    def updated(self, theta: NDArray, gradient: NDArray, curvature: Diag | Dense) -> Self:
        """The posterior with this gradient (1, D) and curvature at theta (1, D).

        It is of the same family, so that the curvature of the coefficients gives its precision, the
        curvature in gamma its shape, and the gradient in gamma the rate
        (math/streams.md#streams-as-bayesian-updating).
        """
        s2 = np.exp(theta[0, -1])
        precision = curvature.leading(self.operator.dim) * s2
        slope = curvature.diagonal()[-1]
        scaled = s2 * gradient[:, :-1]
        step = precision.inverse().matvec(scaled)
        rate = s2 * (gradient[0, -1] + slope) - 0.5 * np.sum(step * scaled)
        rate = max(float(rate), self.rate)  # rows never lower it, but rounding may
        shape = slope - 0.5 * self.operator.dim
        return type(self)(precision, (float(shape), rate), (theta[:, :-1] + step)[0])

    def mixed(self, base: Self, share: float) -> Self:
        """Density proportional to ``self^share base^(1 - share)``: forgetting.

        Source: math/streams.md#logistic-regression-as-an-update.
        """
        rest = 1 - share
        coef = self.coef.mixed(base.coef, share)
        ours, theirs = self.mean[:-1] - coef.mean, base.mean[:-1] - coef.mean
        energy = share * (ours @ self.operator.matvec(ours))
        energy += rest * (theirs @ base.operator.matvec(theirs))
        shape = share * self.shape + rest * base.shape
        rate = share * self.rate + rest * base.rate + 0.5 * energy
        return type(self)(coef.operator, (shape, float(rate)), coef.mean)

    @classmethod
    def of_draws(cls, draws: NDArray, weights: NDArray) -> Self:
        """The distribution with the moments of weighted draws (S, D), without correlations.

        They are mean and variance of each coefficient, and mean and variance of 1 / s2.
        """
        coef = GaussianPrior.of_draws(draws[:, :-1], weights)
        noise = draws[:, -1].astype(np.float64, copy=False)
        inverse = np.exp(-noise)
        centre = weights @ inverse
        variance = weights @ (inverse - centre) ** 2
        precision = coef.operator * float(weights @ np.exp(noise))
        return cls(precision, (float(centre**2 / variance), float(centre / variance)), coef.mean)

    def draw(self, rng: np.random.Generator, n_draws: int, matched: bool = False) -> NDArray:
        """Independent draws, (n_draws, D), or moved together to moments of the distribution.

        These are mean and variance of the log noise variance, and of the coefficients those in
        units of the noise, which does not go with them. Coefficients themselves may have no
        variance.
        """
        noise = np.log(self.rate) - np.log(rng.gamma(self.shape, size=(n_draws, 1)))
        z = rng.standard_normal((n_draws, self.operator.dim))
        if matched:
            joint = standardised(np.concatenate([noise, z], axis=1))
            moments = np.log(self.rate) - digamma(self.shape), np.sqrt(polygamma(1, self.shape))
            noise, z = moments[0] + moments[1] * joint[:, :1], joint[:, 1:]
        coef = self.mean[:-1] + np.exp(0.5 * noise) * self.coef.scaled(z)
        return np.concatenate([coef, noise], axis=1)

    @property
    def noise_variance(self) -> float:
        """Mean of s2; infinite for a shape of at most 1."""
        return self.rate / (self.shape - 1) if self.shape > 1 else np.inf

    @property
    def unbounded(self) -> bool:
        """Whether draws of s2 overflow: of a million more than one, in the mean."""
        above = gammainc(self.shape, self.rate / np.finfo(np.float64).max)
        return not above <= 1e-6  # NaN for the smallest shapes

    @property
    def variance(self) -> NDArray:
        """Variance of each coefficient, infinite for a shape of at most 1, and of gamma, (D,)."""
        of_coef = self.noise_variance * self.operator.inverse().diagonal()
        return np.append(of_coef, polygamma(1, self.shape))
