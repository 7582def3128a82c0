"""One parameter as a function of its normal score: a monotone change of a single coordinate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline, PPoly

_NEWTON_STEPS = 50  # at most; from a table three are enough


@dataclass(frozen=True, eq=False)
class NormalScore:
    """``theta_j = f(z)``, where z is about standard normal, and members beside it.

    With F the distribution function of the parameter, f is that of its quantiles at Phi(z), and z
    its normal score. The other members follow it by shifts, ``theta_i = x_i + h_i(z)``; whatever
    is no member stays as it is. All of them are cubic splines with straight ends, so that second
    derivatives are continuous. Coordinates x have z in the place of theta_j.

    Attributes
    ----------
    members : integer array of shape (k,)
        Coordinates of theta.
    which : int
        Place of j among them.
    breaks : array of shape (m + 1,)
        Ends of the pieces, in z.
    coefficients : array of shape (4, m, k)
        Of f and of the shifts.
    """

    members: NDArray
    which: int
    breaks: NDArray
    coefficients: NDArray

    @classmethod
    def through(cls, members: NDArray, which: int, z: NDArray, values: NDArray) -> NormalScore:
        """From scores z (m,), and values of f and of the shifts there, (m, k).

        Raises
        ------
        ValueError
            If f does not rise.
        """
        spline = CubicSpline(z, values, bc_type="natural")  # no bend at the ends
        ends = np.array([z[0] - 1.0, z[-1]])
        lines = np.zeros((4, 2, values.shape[1]))
        lines[2] = spline(z[[0, -1]], 1)
        lines[3] = values[[0, -1]] - lines[2] * [[1.0], [0.0]]
        coefficients = np.concatenate([lines[:, :1], spline.c, lines[:, 1:]], axis=1)
        breaks = np.concatenate([ends[:1], z, z[-1:] + 1.0])
        score = cls(members, which, breaks, coefficients)
        fine = np.linspace(breaks[0], breaks[-1], 16 * len(breaks))
        if not (score.curves(fine, 1)[:, which] > 0).all():
            raise ValueError("quantiles do not rise")
        return score

    def curves(self, z: NDArray, order: int = 0) -> NDArray:
        """f and shifts at scores z (...), or derivatives of them, (..., k)."""
        # straight beyond the ends, as the first and the last piece are
        return PPoly.construct_fast(self.coefficients, self.breaks)(z, order)

    @property
    def _own(self) -> int:
        """j"""
        return int(self.members[self.which])

    def inverse_transform(self, x: NDArray) -> NDArray:
        """theta of x, (..., D)."""
        theta, values = x.copy(), self.curves(x[..., self._own])
        theta[..., self._own] = 0.0
        theta[..., self.members] += values
        return theta

    def transform(self, theta: NDArray) -> NDArray:
        """x of theta, (..., D)."""
        x, z = theta.copy(), self._score(theta[..., self._own].astype(np.float64))
        x[..., self.members] -= self.curves(z)
        x[..., self._own] = z
        return x

    def _score(self, values: NDArray) -> NDArray:
        """z where f has these values, by Newton steps from a table."""
        table = self.curves(self.breaks)[:, self.which]
        slopes = self.curves(self.breaks[[0, -1]], 1)[:, self.which]
        z = np.interp(values, table, self.breaks)
        z = z + np.minimum(values - table[0], 0.0) / slopes[0]
        z = z + np.maximum(values - table[-1], 0.0) / slopes[1]
        for _ in range(_NEWTON_STEPS):
            step = values - self.curves(z)[..., self.which]
            step /= self.curves(z, 1)[..., self.which]
            z = z + step
            if not (np.abs(step) > 1e-10).any():
                break
        return z

    # -- derivatives -------------------------------------------------------------------------------

    def pullback(self, x: NDArray, gradient: NDArray) -> NDArray:
        """The gradient over x of a function that has this gradient over theta, (..., D)."""
        pulled = gradient.astype(np.float64)
        slopes = self.curves(x[..., self._own], 1)
        pulled[..., self._own] = (gradient[..., self.members] * slopes).sum(axis=-1)
        return pulled

    def jacobian(self, x: NDArray) -> NDArray:
        """d theta / d x at one x (1, D): (D, D)."""
        matrix = np.eye(x.shape[1])
        matrix[self.members, self._own] = self.curves(x[0, self._own], 1)
        return matrix

    def bend(self, x: NDArray, gradient: NDArray) -> float:
        """What f and shifts that bend add to a second derivative over z, at one x (1, D).

        Of a function with this gradient over theta (1, D): ``sum_i g_i h_i''(z)``.
        """
        return float(gradient[0, self.members] @ self.curves(x[0, self._own], 2))

    def log_volume(self, x: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """log f'(z), (...), and its first two derivatives."""
        z = x[..., self._own]
        first, second, third = (self.curves(z, order)[..., self.which] for order in (1, 2, 3))
        slope = second / first
        return np.log(first), slope, third / first - slope**2
