"""A few draws that predict averages as all do.

Class probabilities and means of y are averages over draws, so their time is proportional to the
number of draws. A few, evenly spaced, have the mean and covariance of all after one affine map;
where the posterior is near a normal distribution the averages under them are then those under all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from skbayes_sg.data import InMemory
from skbayes_sg.diagnostics.draws import Draws
from skbayes_sg.diagnostics.gradients import fewest
from skbayes_sg.estimators.class_probabilities import averaged
from skbayes_sg.estimators.mixture_predictions import mixture_moments
from skbayes_sg.linalg.scores import dense
from skbayes_sg.models.base import Response
from skbayes_sg.posterior import Posterior

_FEW = 128, 256, 512  # draws that are tried in turn
_OFF = 0.0025  # of a probability of rows of the fit, half of what other rows are to be off by; and
# of a standard deviation of y, relative to it
_SDS = 4.0  # posterior standard deviations of a mean of y, of which it is off by no more
_ROWS = 128  # of the fit, which tell, and as many of those that are known least
_CANDIDATES, _SPREAD = 1024, 64  # rows out of which these are, and draws whose spread says so
_MOST = 1 << 20  # numbers in all draws, of which any average takes no longer than a second


class FewDraws:
    """How many draws predict averages as all do: `count`, or all where that is None.

    They are moved when they are first asked for, and are no part of a file.
    """

    def __init__(self, count: int | None) -> None:
        self.count = count
        self._moved: NDArray | None = None

    def of(self, draws: NDArray) -> tuple[NDArray, NDArray]:
        """Numbers of the draws that predict, out of all (n, D), and these as they were moved."""
        if self.count is None:
            return np.arange(len(draws)), draws
        if self._moved is None:
            self._moved = moved(draws, self.count)
        return _spaced(len(draws), self.count), self._moved

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_moved": None}


def few_draws(posterior: Posterior, draws: NDArray) -> FewDraws | None:
    """The fewest draws that predict averages as all do, by the rows of the fit.

    Where none of a few do these are all draws. None if draws are so many numbers that this would
    take long.

    Parameters
    ----------
    posterior : Posterior
        Of classes, or of numbers whose mean is not linear in the parameters.
    draws : array of shape (n, D)
        Of equal weights.
    """
    if draws.size > _MOST:
        return None
    if len(draws) <= _FEW[0]:  # nor may so few have so many columns that rows are too many numbers
        return FewDraws(None)
    data, model = posterior.data.sample, posterior.model
    X = _telling_rows(model, data, draws[_spaced(len(draws), _SPREAD)])
    under_all, unit = _averages(model, X, draws), np.ones((1, 1))
    if isinstance(model, Response):
        means = model.mean(model.outputs(draws, X.astype(np.float64, copy=False)))
        unit = np.stack([_SDS * means.std(axis=0), under_all[1]])
    for k in (k for k in _FEW if k < len(draws)):
        try:
            some = moved(draws, k)
        except np.linalg.LinAlgError:  # a parameter that does not move
            return None
        off = (_averages(model, X, some) - under_all) / unit
        if np.abs(off).max() <= _OFF:
            return FewDraws(k)
    return FewDraws(None)


def moved(draws: NDArray, k: int) -> NDArray:
    """Some of the draws, moved to the mean of all, and where they are enough to the covariance."""
    n, dim = draws.shape
    every = draws.astype(np.float64)
    away = every[_spaced(n, k)]
    away -= away.mean(axis=0)
    if k >= fewest(dim):
        own = np.linalg.cholesky(away.T @ away / k)
        of_all = np.linalg.cholesky(np.cov(every.T, bias=True))
        away = solve_triangular(own, away.T, lower=True).T @ of_all.T
    return (every.mean(axis=0) + away).astype(draws.dtype)


def _telling_rows(model: Any, data: InMemory, draws: NDArray) -> NDArray:
    """Some evenly spaced rows, and those whose predictions vary most from draw to draw."""
    candidates = dense(data.load(_spaced(data.n_rows, min(_CANDIDATES, data.n_rows))).X)
    if isinstance(model, Response):
        each = model.outputs(draws, candidates)[:, :1]
    else:
        each = model.predict(draws, candidates)
    largest = np.argsort(-each.var(axis=0).max(axis=0))[:_ROWS]
    spaced = _spaced(len(candidates), min(_ROWS, len(candidates)))
    return candidates[np.union1d(spaced, largest)]


def _spaced(n: int, k: int) -> NDArray:
    return np.linspace(0, n - 1, k).round().astype(int)


def _averages(model: Any, X: NDArray, draws: NDArray) -> NDArray:
    """Probabilities of classes, (classes, n), or mean and standard deviation of y, (2, n)."""
    alike = Draws.equal(draws[None])
    if not isinstance(model, Response):
        return averaged(model, X, alike).T
    outputs = model.outputs(draws, X.astype(np.float64, copy=False))
    return np.stack(mixture_moments(model, outputs, alike.weights))
