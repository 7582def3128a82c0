"""A diagonal at the means of the columns: the precision of coefficients and their intercepts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.linalg import Dense


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

    n_others = 0  # in files of version 0.3

    def __init__(self, values: NDArray, centre: NDArray, n_others: int = 0) -> None:
        self.values = values
        self.centre = centre
        self.n_others = n_others

    @property
    def dim(self) -> int:
        return self.values.size

    def _split(self, v: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Coefficients (..., outputs, features), intercepts (..., outputs), and others."""
        outputs = (self.dim - self.n_others) // (len(self.centre) + 1)
        n_coef = outputs * len(self.centre)
        coef, intercept, others = np.split(v, [n_coef, n_coef + outputs], axis=-1)
        return coef.reshape(*v.shape[:-1], outputs, -1), intercept, others

    def shear(self, v: NDArray) -> NDArray:
        """S v."""
        coef, intercept, others = self._split(v)
        flat = v[..., : coef.shape[-1] * coef.shape[-2]]
        return np.concatenate([flat, intercept + coef @ self.centre, others], axis=-1)

    def matvec(self, v: NDArray) -> NDArray:
        coef, intercept, others = self._split(self.values * self.shear(v))
        coef = coef + intercept[..., None] * self.centre
        return np.concatenate([coef.reshape(*v.shape[:-1], -1), intercept, others], axis=-1)

    def __mul__(self, scale: float) -> Sheared:
        return Sheared(scale * self.values, self.centre, self.n_others)

    def inverse(self) -> Dense:
        return Dense(self.dense()).inverse()

    def cholesky(self) -> Dense:
        return Dense(self.dense()).cholesky()

    def diagonal(self) -> NDArray:
        coef, intercept, others = self._split(self.values)
        coef = coef + intercept[..., None] * self.centre**2
        return np.concatenate([coef.ravel(), intercept, others])

    def dense(self) -> NDArray:
        return self.matvec(np.eye(self.dim))
