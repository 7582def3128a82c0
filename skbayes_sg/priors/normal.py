"""Normal priors."""

from __future__ import annotations

from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.linalg import Dense, Diag
from skbayes_sg.priors.precision import (
    Precision,
    as_operator,
    independent_precision,
    mixed_normals,
    moments,
    normals,
    plain,
    squares_of,
)


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
    given_unit: NDArray | None = None
    centre: NDArray | None = None
    n_others: int = 0
    by_expected = False
    """Whether, as a posterior, its precision is the expected information of rows for want of a
    positive definite observed one."""

    def __init__(
        self,
        precision: NDArray | Precision,
        mean: NDArray | float = 0.0,
        unit: NDArray | None = None,
        centre: NDArray | None = None,
        n_others: int = 0,
    ) -> None:
        self.operator = as_operator(precision, centre, n_others)
        self.precision = independent_precision(precision)
        self.given_unit, self.centre, self.n_others = unit, centre, n_others
        mean = np.asarray(mean, dtype=self.precision.dtype)
        self.mean = np.broadcast_to(mean, self.precision.shape)

    @property
    def unit(self) -> NDArray:
        return np.ones(len(self.mean)) if self.given_unit is None else self.given_unit

    def with_precision(self, precision: NDArray) -> GaussianPrior:
        return GaussianPrior(precision, self.mean, self.given_unit, self.centre, self.n_others)

    def independent(self, theta: NDArray) -> NDArray:
        return self.precision

    def log_density(self, theta: NDArray) -> NDArray:
        return -0.5 * self.scaled_squares(theta).sum(axis=1)

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
        return plain(self.operator)

    def hessian(self, theta: NDArray) -> NDArray:
        return self.operator.dense()

    def scaled_squares(self, theta: NDArray) -> NDArray:
        return squares_of(self.operator, theta - self.mean)

    # -- as a posterior -----------------------------------------------------------------------

    @property
    def mode(self) -> NDArray:
        """Point of the largest density, (1, D)."""
        return self.mean[None].copy()

    def updated(self, theta: NDArray, gradient: NDArray, curvature: Diag | Dense) -> Self:
        """The posterior with this gradient (1, D) and curvature at theta (1, D), if quadratic."""
        mean = theta + curvature.inverse().matvec(gradient)
        return type(self)(curvature, mean[0])

    def mixed(self, other: Self, share: float) -> Self:
        """Density proportional to ``self^share other^(1 - share)``: forgetting.

        Source: math/streams.md#logistic-regression-as-an-update.
        """
        found = type(self)(*mixed_normals(self, other, share))
        if self.by_expected:
            found.by_expected = True
        return found

    @classmethod
    def of_draws(cls, draws: NDArray, weights: NDArray) -> Self:
        """Independent normal distributions with the moments of weighted draws (S, D)."""
        return cls(*moments(draws, weights))

    def draw(self, rng: np.random.Generator, n_draws: int) -> NDArray:
        """Independent draws, (n_draws, D)."""
        return self.mean + normals(self.operator, rng, n_draws)

    @property
    def variance(self) -> NDArray:
        """Variance of each parameter, (D,)."""
        return self.operator.inverse().diagonal()
