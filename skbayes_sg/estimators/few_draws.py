"""A few draws that predict as all do.

Probabilities are averages over draws, so their time is proportional to the number of draws. A few,
evenly spaced, have the mean and covariance of all after one affine map; where the posterior is near
a normal distribution the averages under them are then those under all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from skbayes_sg.diagnostics.gradients import fewest
from skbayes_sg.estimators.class_probabilities import averaged
from skbayes_sg.linalg.scores import dense
from skbayes_sg.posterior import Posterior

_FEW = 128, 256, 512  # draws that are tried in turn
_OFF = 0.0025  # of a probability of rows of the fit, half of what other rows are to be off by
_ROWS = 128  # of the fit, which tell
_MOST = 1 << 20  # numbers in all draws, of which any average takes no longer than a second


class FewDraws(NamedTuple):
    """Numbers of some draws, chain by chain, and these draws as they were moved, (k, D).

    Both are None where all draws predict.
    """

    numbers: NDArray | None
    draws: NDArray | None


def few_draws(posterior: Posterior, draws: NDArray) -> FewDraws | None:
    """The fewest draws that predict as all do, by the rows of the fit.

    Where none of a few do these are all draws. None if draws are so many numbers that this would
    take long.

    Parameters
    ----------
    posterior : Posterior
        Of classes.
    draws : array of shape (n, D)
        Of equal weights.
    """
    n, dim = draws.shape
    if draws.size > _MOST:
        return None
    data = posterior.data.sample
    rows = np.linspace(0, data.n_rows - 1, min(_ROWS, data.n_rows)).astype(int)
    X, model = dense(data.load(rows).X), posterior.model
    under_all = averaged(model, X, draws, np.full(n, 1 / n))
    every, mean = draws.astype(np.float64), draws.mean(axis=0, dtype=np.float64)
    for k in (k for k in _FEW if k < n):
        numbers = np.linspace(0, n - 1, k).round().astype(int)
        away = every[numbers] - every[numbers].mean(axis=0)
        if k >= fewest(dim):
            try:
                own = np.linalg.cholesky(away.T @ away / k)
                of_all = np.linalg.cholesky(np.cov(every.T, bias=True))
            except np.linalg.LinAlgError:  # a parameter that does not move
                return None
            away = solve_triangular(own, away.T, lower=True).T @ of_all.T
        moved = (mean + away).astype(draws.dtype)
        off = averaged(model, X, moved, np.full(k, 1 / k)) - under_all
        if np.abs(off).max() <= _OFF:
            return FewDraws(numbers, moved)
    return FewDraws(None, None)
