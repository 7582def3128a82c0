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
        Of the coefficients, output by output, and of one intercept for each output.
    centre : array of shape (features,)
        The means.
    """

    def __init__(self, values: NDArray, centre: NDArray) -> None:
        self.values = values
        self.centre = centre

    @property
    def dim(self) -> int:
        return self.values.size

    def _split(self, v: NDArray) -> tuple[NDArray, NDArray]:
        """Coefficients (..., outputs, features) and intercepts (..., outputs)."""
        outputs = self.dim // (len(self.centre) + 1)
        coef = v[..., :-outputs]
        return coef.reshape(*v.shape[:-1], outputs, -1), v[..., -outputs:]

    def shear(self, v: NDArray) -> NDArray:
        """S v."""
        coef, intercept = self._split(v)
        return np.concatenate([v[..., : -intercept.shape[-1]], intercept + coef @ self.centre], -1)

    def matvec(self, v: NDArray) -> NDArray:
        coef, intercept = self._split(self.values * self.shear(v))
        coef = coef + intercept[..., None] * self.centre
        return np.concatenate([coef.reshape(*v.shape[:-1], -1), intercept], axis=-1)

    def __mul__(self, scale: float) -> Sheared:
        return Sheared(scale * self.values, self.centre)

    __rmul__ = __mul__

    def inverse(self) -> Dense:
        return Dense(self.dense()).inverse()

    def cholesky(self) -> Dense:
        return Dense(self.dense()).cholesky()

    def diagonal(self) -> NDArray:
        coef, intercept = self._split(self.values)
        coef = coef + intercept[..., None] * self.centre**2
        return np.append(coef, intercept)

    def dense(self) -> NDArray:
        return self.matvec(np.eye(self.dim))
