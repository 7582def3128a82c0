"""Weights under which some rows have the sums that all rows have.

The error of a pool is a function of theta that is small beside the log posterior. To first order it
moves the posterior mean by Sigma E[g], and the covariance by Sigma E[H] Sigma, with g and H its
gradient and Hessian in the mean over the posterior (by parts). Both means are sums over rows of
numbers that are known of each row, so the weights of the pool can be such that they vanish:
calibration estimators of survey statistics (Deville & Sarndal 1992, their case of weights that are
bounded from below). Source: math/control_variates.md#pools.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import Batch
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.models.scored import Scored
from skbayes_sg.posterior.base import Posterior
from skbayes_sg.posterior.gaussian import Mode

_MOST_SUMS = 512  # of a pool, with as many equations
_SETTLED = 1e-3  # of the errors that sums had by the choice of rows
_NEWTON_STEPS = 30


def has_sums(posterior: Posterior) -> bool:
    """Whether such weights are worth it: there are means over a normal distribution to match.

    In a normal score they take longer than the rows that they save.
    """
    model = posterior.predictor
    none = model.conjugate or isinstance(model, Scored)
    return not none and 2 * posterior.dim * model.widest <= _MOST_SUMS


def calibrated(
    posterior: Posterior, mode: Mode, points: NDArray, batch: Batch, weight: NDArray
) -> tuple[NDArray, float]:
    """Weights of the rows of a pool, of which it has the mean gradient and curvatures of all.

    Curvatures are those along the line of each parameter, on which its variance depends. The means
    are over the normal distribution of the mode. A row counts once at least, so that the density
    stays log-concave where that of all rows is.

    Parameters
    ----------
    posterior : Posterior
    mode : Mode
    points : array of shape (points, D)
        Points that stand for the same distribution, at which the error is measured.
    batch : Batch
        The rows of the pool.
    weight : array of shape (m,)
        The inverse of their inclusion probabilities.

    Returns
    -------
    array of shape (m,)
    float
        Error of the mean gradient over the points and their reflections, in posterior standard
        deviations per direction.
    """
    sums = _Sums(posterior.predictor, mode)
    row_size = 2 * posterior.dim * posterior.predictor.widest
    (wanted,) = posterior.data.reduce(lambda rows: (sums.of(rows).sum(axis=0),), row_size)
    weight = _solved(sums.of(batch), wanted, weight)

    away = points - mode.theta
    away = np.concatenate([away, -away])
    n_outputs = len(away) * posterior.predictor.widest
    (at_points,) = posterior.data.reduce(lambda rows: (sums.rest(rows, away),), n_outputs)
    heavier = weight if batch.weight is None else weight * batch.weight
    error = sums.rest(batch._replace(weight=heavier), away) - at_points
    error *= posterior.n_total / posterior.data.n_rows
    return weight, float(np.sqrt(np.mean((error @ sums.root) ** 2)))


class _Sums:
    """What sums over rows are to agree."""

    def __init__(self, model: Predictor, mode: Mode) -> None:
        covariance = mode.curvature.inverse()
        self.model, self.theta = model, mode.theta
        self.root = covariance.cholesky().dense()
        self._lines = covariance.dense() / np.sqrt(covariance.diagonal())[:, None]

    def of(self, batch: Batch) -> NDArray:
        """Mean gradient, and mean curvature along lines, beyond those at the mode, (n, 2 D)."""
        model, (X, y, weight, _) = self.model, batch
        observed = model.has_other_curvature
        residual, between = model.row_terms(self.theta, self.root, X, y, observed)
        residual_there, between_there = model.row_terms(self.theta, None, X, y, observed)
        gradient = model.times_inputs((residual - residual_there)[None], X).rows()
        along = model.outputs(self._lines, model.features(X))
        bent = np.einsum("dkn,kln,dln->nd", along, between - between_there, along, optimize=True)
        found = np.concatenate([gradient, bent], axis=1, dtype=np.float64)
        return found if weight is None else found * weight[:, None]

    def rest(self, batch: Batch, away: NDArray) -> NDArray:
        """Gradient beyond the expansion, in the mean over points away from the mode, (1, D)."""
        model, (X, y, weight, _) = self.model, batch
        at_anchor = model.expand_rows(model.outputs(self.theta, X), y)
        remainder = model.remainder(model.outputs(away, model.features(X)), at_anchor)
        mean = remainder.mean(axis=0, keepdims=True, dtype=np.float64)
        return model.times_inputs(mean, X).scaled(weight).total()


def _solved(terms: NDArray, wanted: NDArray, weight: NDArray) -> NDArray:
    """Weights 1 + (w - 1) max(0, 1 + terms . x), whose sums of the terms (m, sums) are as wanted.

    x is where a convex function has its minimum, to which Newton steps lead: without the bound the
    weights are those that are nearest to w, and steps of one length end there.
    """
    size = np.sqrt(weight @ terms**2)  # about the error of the sums under the given weights
    told = size > 0
    terms, wanted = terms[:, told] / size[told], wanted[told] / size[told]
    others, missing = weight - 1.0, wanted - terms.sum(axis=0)
    x = np.zeros(len(missing))
    for _ in range(_NEWTON_STEPS):
        factor = np.maximum(0.0, 1.0 + terms @ x)
        short = missing - (others * factor) @ terms
        if np.abs(short).max(initial=0.0) <= _SETTLED:
            break
        counts = others * (factor > 0)
        hessian = (terms.T * counts) @ terms
        hessian[np.diag_indices_from(hessian)] += 1e-9  # sums may be the same twice
        x += np.linalg.solve(hessian, short)
    return 1.0 + others * factor
