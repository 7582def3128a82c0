"""Monte Carlo errors of draws that were moved together to known moments.

Their spread does not tell what is left of the errors. Batches of them do, each of which is asked
what it alone would say of a quantity (math/matched.md#remaining-errors).
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.diagnostics.convergence import moments

_TINY = np.finfo(np.float64).tiny
_FEWEST = 16  # whose spread tells an error to a fifth of it


class Batches(NamedTuple):
    """What batches of draws say of the moments of the parameters, each by itself.

    A batch is a chain or a part of one (`starts_of`). The estimates are independent, and only their
    differences count.
    """

    mean: NDArray
    """(batches, D)"""
    covariance: NDArray | None
    """Lower triangles, (batches, D (D + 1) / 2), in single precision. None where a batch has not
    more draws than parameters."""

    @classmethod
    def exact(cls, dim: int, n_draws: int) -> Self:
        """Batches of draws that have moments in closed form."""
        tells, n_pairs = n_draws // _FEWEST > dim, dim * (dim + 1) // 2
        covariance = np.zeros((_FEWEST, n_pairs), np.float32) if tells else None
        return cls(np.zeros((_FEWEST, dim)), covariance)

    def errors(self, theta: NDArray, values: NDArray) -> tuple[NDArray, NDArray]:
        """Monte Carlo errors of means and standard deviations of functions of the parameters.

        A quantity is taken for a linear and a quadratic function of the parameters plus a rest. Of
        the first two a batch says what it says of the moments of the parameters, and of the rest
        its mean.

        Parameters
        ----------
        theta : array of shape (chains, draws, D)
            The parameters, as they were moved.
        values : array of shape (chains, draws, K)
            The quantities under them.

        Returns
        -------
        arrays of shape (K,)
        """
        n_chains, n_draws, dim = theta.shape
        starts = starts_of(n_chains, n_draws, len(self.mean) // n_chains)
        size = np.diff(np.append(starts, n_chains * n_draws))[:, None]
        theta = theta.reshape(-1, dim).astype(np.float64)
        deviation = theta - theta.mean(axis=0)
        to_x = _whitening(deviation)
        x, of_x = deviation @ to_x, (self.mean - self.mean.mean(axis=0)) @ to_x
        of_pairs, spread = None, np.ones((dim, dim))
        if self.covariance is not None:
            of_pairs, lower = np.empty((len(starts), dim, dim)), np.tril_indices(dim)
            of_pairs[:, *lower] = of_pairs[:, *lower[::-1]] = self.covariance
            of_pairs = to_x.T @ of_pairs @ to_x
            square = x * x
            spread = square.T @ square / len(x) - (x.T @ x / len(x)) ** 2
            spread *= 2 - np.eye(dim)  # the form below has each pair of two twice

        def error(quantity: NDArray, along: NDArray) -> float:
            """Error of the mean of a quantity (draws,) of mean 0, with its square along a line."""
            slope = x.T @ quantity / len(x)
            residual, estimate = quantity - x @ slope, of_x @ slope
            if of_pairs is not None:
                # first along the line, as each of the products has an error of chance
                square = (x @ along) ** 2
                curved = square - square.mean() - x @ (x.T @ square / len(x))
                bend = curved @ residual / max(curved @ curved, _TINY) * np.outer(along, along)
                uncurved = residual - (curved @ residual / max(curved @ curved, _TINY)) * curved
                bend += (x * uncurved[:, None]).T @ x / len(x) / spread
                square = ((x @ bend) * x).sum(axis=1)
                slope = x.T @ square / len(x)
                residual = residual - (square - x @ slope)
                estimate = estimate + np.einsum("bij,ij->b", of_pairs, bend) - of_x @ slope
            estimate = estimate + np.add.reduceat(residual, starts) / size[:, 0]
            return estimate.std(ddof=1) / np.sqrt(len(estimate))

        mean, sd = moments(values)
        errors = np.zeros((2, len(sd)))
        for k in np.flatnonzero(sd > 0):
            apart = (values[..., k].ravel() - mean[k]) / sd[k]
            along = x.T @ apart / len(x)
            errors[:, k] = sd[k] * error(apart, along), 0.5 * sd[k] * error(apart**2 - 1, along)
        return errors[0], errors[1]


def starts_of(n_chains: int, n_draws: int, parts: int) -> NDArray:
    """Numbers of the draws, chain by chain, with which batches begin."""
    return (np.arange(n_chains)[:, None] * n_draws + np.arange(parts) * n_draws // parts).ravel()


def batches_a_chain(n_chains: int, n_draws: int) -> int:
    """How many a chain is, so that there are enough in all."""
    return -(-_FEWEST // n_chains) if n_draws >= _FEWEST else 1


def _whitening(deviation: NDArray) -> NDArray:
    """W such that deviation W has the covariance 1, or 0 where rows (n, D) do not move."""
    scale = deviation.std(axis=0)
    scale[scale == 0] = np.inf
    value, vector = np.linalg.eigh((deviation / scale).T @ (deviation / scale) / len(deviation))
    moves = value > len(value) * np.finfo(np.float64).eps * value.max()
    return vector / scale[:, None] * np.where(moves, 1 / np.sqrt(np.where(moves, value, 1.0)), 0.0)
