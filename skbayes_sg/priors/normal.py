"""Normal priors, and the precision matrices that they have."""

from __future__ import annotations

from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from skbayes_sg.diagnostics.gradients import fewest
from skbayes_sg.diagnostics.judgements import RIGHT
from skbayes_sg.linalg import Dense, Diag
from skbayes_sg.linalg.sizes import elements_at_a_time, has_matrix


def standardised(draws: NDArray) -> NDArray:
    """Draws (n, D) moved by one affine map to the mean 0 and the covariance 1.

    Where draws are few for all pairs of coordinates, or coordinates many, each is moved by itself;
    too few draws stay as they are.
    """
    n, dim = draws.shape
    if n < fewest(1):
        return draws
    away = draws - draws.mean(axis=0)
    if n < fewest(dim) or not has_matrix(dim):
        return away / away.std(axis=0)
    return solve_triangular(np.linalg.cholesky(away.T @ away / n), away.T, lower=True).T


class Sheared:
    """S^T diag(values) S of coefficients and intercepts: a diagonal at the means of the columns.

    S adds to each intercept its coefficients times the means, which gives the output there.

    Parameters
    ----------
    values : array of shape (D,)
        Of the coefficients, output by output, of one intercept for each output, and of others.
    centre : array of shape (features,)
        The means.
    n_others : int, default=0
    """

    def __init__(self, values: NDArray, centre: NDArray, n_others: int = 0) -> None:
        self.values, self.centre, self.n_others = values, centre, n_others
        self.dim = values.size
        self._n_outputs = (self.dim - n_others) // (len(centre) + 1)
        self._n_coef = self._n_outputs * len(centre)

    def shear(self, v: NDArray) -> NDArray:
        """S v."""
        coef, rest = v[..., : self._n_coef], v[..., self._n_coef :]
        of_means = coef.reshape(*v.shape[:-1], self._n_outputs, -1) @ self.centre
        at_means = rest[..., : self._n_outputs] + of_means
        return np.concatenate([coef, at_means, rest[..., self._n_outputs :]], axis=-1)

    def matvec(self, v: NDArray) -> NDArray:
        v = self.values * self.shear(v)
        coef, rest = v[..., : self._n_coef], v[..., self._n_coef :]
        coef = coef.reshape(*v.shape[:-1], self._n_outputs, -1)
        coef = coef + rest[..., : self._n_outputs, None] * self.centre
        return np.concatenate([coef.reshape(*v.shape[:-1], -1), rest], axis=-1)

    def __mul__(self, scale: float) -> Sheared:
        return Sheared(scale * self.values, self.centre, self.n_others)

    def inverse(self) -> Dense:
        return Dense(self.dense()).inverse()

    def cholesky(self) -> Dense:
        return Dense(self.dense()).cholesky()

    def diagonal(self) -> NDArray:
        coef, rest = self.values[: self._n_coef], self.values[self._n_coef :]
        coef = coef.reshape(self._n_outputs, -1)
        coef = coef + rest[: self._n_outputs, None] * self.centre**2
        return np.concatenate([coef.ravel(), rest])

    def dense(self) -> NDArray:
        return self.matvec(np.eye(self.dim))

    def squares(self, v: NDArray) -> NDArray:
        """Terms of v^T A v in the coordinates in which it is diagonal."""
        return self.values * self.shear(v) ** 2

    def plain(self) -> Dense:
        """The same matrix, in a storage that can be added."""
        return Dense(self.dense())


Precision = Diag | Dense | Sheared


class GaussianPrior:
    """Normal prior N(mean, precision^-1).

    Parameters
    ----------
    precision : array of shape (D,), Diag or Dense
        An array holds 1 / variance of independent parameters.
    mean : float or array of shape (D,), default=0.0
    unit : array of shape (D,), optional
        Precisions for a learned precision of 1; by default ones.
    centre : array of shape (features,), optional
        Means of the columns, at which the intercepts have their prior; by default zero.
    n_others : int, default=0
        Parameters behind the intercepts.
    """

    quadratic = True
    noise: tuple[float, float] | None = None
    """Shape and rate of the noise variance, where the prior is of that too."""
    by_expected = False
    """Whether, as a posterior, its precision is the expected information of rows for want of a
    positive definite observed one."""
    misfit = RIGHT
    """How far, as a posterior, it is from that for which it stands."""

    def __init__(
        self,
        precision: NDArray | Precision,
        mean: NDArray | float = 0.0,
        unit: NDArray | None = None,
        centre: NDArray | None = None,
        n_others: int = 0,
    ) -> None:
        self.operator: Precision
        if not isinstance(precision, np.ndarray):
            self.operator, self.precision = precision, precision.diagonal()
        else:
            self.precision = precision
            self.operator = (
                Diag(precision) if centre is None else Sheared(precision, centre, n_others)
            )
        mean = np.asarray(mean, dtype=self.precision.dtype)
        self.mean = np.broadcast_to(mean, self.precision.shape)
        self.unit = np.ones(len(self.mean)) if unit is None else unit
        self.centre, self.n_others = centre, n_others

    def with_precision(self, precision: NDArray) -> GaussianPrior:
        return self.in_units(precision, self.unit)

    def in_units(self, precision: NDArray, unit: NDArray) -> GaussianPrior:
        """With other precisions of independent parameters, for other units."""
        return GaussianPrior(precision, self.mean, unit, self.centre, self.n_others)

    def independent(self, theta: NDArray) -> NDArray:
        return self.precision

    def log_density(self, theta: NDArray) -> NDArray:
        return -0.5 * self.operator.squares(theta - self.mean).sum(axis=1)

    def gradient(self, theta: NDArray) -> NDArray:
        if theta.dtype == np.float32 and isinstance(self.operator, Diag):
            precision, mean = self._single
            return (mean - theta) * precision
        return -self.operator.matvec(theta - self.mean)

    @cached_property
    def _single(self) -> tuple[NDArray, NDArray]:
        """Precision and mean for chains in single precision."""
        return self.precision.astype(np.float32), self.mean.astype(np.float32)

    def curvature(self, theta: NDArray) -> Diag | Dense:
        return self.operator.plain()

    def hessian(self, theta: NDArray) -> NDArray:
        return self.operator.dense()

    def scaled_squares(self, theta: NDArray) -> NDArray:
        return self.operator.squares(theta - self.mean)

    # -- as a posterior -----------------------------------------------------------------------

    def restricted(self, kept: NDArray) -> GaussianPrior:
        """The prior of some parameters, which are independent of the others."""
        return GaussianPrior(self.precision[kept], self.mean[kept], self.unit[kept])

    @property
    def mode(self) -> NDArray:
        """Point of the largest density, (1, D)."""
        return self.mean[None].copy()

    def standard(self) -> GaussianPrior:
        """The distribution in its own whitened coordinates."""
        return GaussianPrior(np.ones(self.operator.dim))

    def as_expected(self) -> GaussianPrior:
        """The distribution, marked as one that the expected information had to make."""
        marked = GaussianPrior(self.operator.plain(), self.mean)
        marked.by_expected = True
        return marked

    def updated(self, theta: NDArray, gradient: NDArray, curvature: Diag | Dense) -> Self:
        """The posterior with this gradient (1, D) and curvature at theta (1, D), if quadratic."""
        mean = theta + curvature.inverse().matvec(gradient)
        return type(self)(curvature, mean[0])

    def mixed(self, base: Self, share: float) -> Self:
        """Density proportional to ``self^share base^(1 - share)``: forgetting.

        Source: math/streams.md#logistic-regression-as-an-update.
        """
        b = base.operator.plain() * (1 - share)
        precision: Diag | Dense = self.operator.plain() * share + b
        shift = precision.inverse().matvec(b.matvec(base.mean - self.mean))
        mixture = type(self)(precision, self.mean + shift)
        if self.by_expected:
            mixture.by_expected = True
        return mixture

    @classmethod
    def of_draws(cls, draws: NDArray, weights: NDArray) -> Self:
        """Independent normal distributions with the moments of draws (S, D), weights of sum 1."""
        parts = np.array_split(draws, 1 + draws.size // elements_at_a_time(), axis=1)
        means, squares = [], []
        for part in parts:  # in double precision, some columns at a time
            part = part.astype(np.float64, copy=False)
            means.append(weights @ part)
            squares.append(weights @ (part - means[-1]) ** 2)
        return cls(Diag(1.0 / np.concatenate(squares)), np.concatenate(means))

    def draw(self, rng: np.random.Generator, n_draws: int, matched: bool = False) -> NDArray:
        """Independent draws, (n_draws, D), or moved together to mean and covariance of all."""
        z = rng.standard_normal((n_draws, self.operator.dim))
        return self.mean + self.scaled(standardised(z) if matched else z)

    def scaled(self, z: NDArray) -> NDArray:
        """Deviations from the mean, of draws z (n, D) of the standard normal distribution."""
        return self.operator.inverse().cholesky().matvec(z)

    @property
    def variance(self) -> NDArray:
        """Variance of each parameter, (D,)."""
        return self.operator.inverse().diagonal()
