"""The posterior mode and its curvature: where chains start.

Fisher scoring with step halving on growing subsets of the rows. A subset of m rows fixes the mode to
about sqrt(N / m) posterior standard deviations, so all rows are visited only in the last two or
three iterations. Where a D x D curvature is too dear, L-BFGS in coordinates scaled by the
diagonal of the curvature.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from skbayes_sg.linalg import Operator
from skbayes_sg.posterior import Expansion

_CHORD_STEPS = 8

_SMALL_SHIFT = 0.02
_PILOT_ROWS = 50_000
_PILOT_POINTS = 32
_MOST_POINTS = 128
_PILOT_CELLS = 1 << 20  # residuals held at a time

FULL_CURVATURE_DIM = 1000
"""Largest D for which a D x D curvature is worth its cost."""


class Mode(NamedTuple):
    """A centre of the posterior, where the log posterior is largest, and how it falls off."""

    theta: NDArray
    """(1, D)"""
    curvature: Operator
    """Model Fisher plus prior precision there."""
    passes: float
    """Rows touched over rows."""


def find_mode(posterior, theta: NDArray, rng: np.random.Generator) -> Mode:
    """Mode of a posterior whose model Fisher is its curvature, from the start theta (1, D).

    The result is good to a few hundredths of a posterior standard deviation, but where there are more than 1,000
    parameters, and 50 gradients have to do: it starts chains, it is not an estimate. Nothing is raised when the
    iterations run out (separable data under a weak prior); burn-in covers what is left and the diagnostics judge it.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        some = np.arange(min(posterior.n_rows, 1000))
        if not np.isfinite(posterior.expand(theta, "diag", some).curvature.diagonal()).all():
            raise ValueError("X holds values whose squares overflow; scale its columns, for example by StandardScaler")
        return _scaled_lbfgs(posterior, theta) if posterior.dim > FULL_CURVATURE_DIM else _staged(posterior, theta, rng)


def _staged(posterior, theta: NDArray, rng: np.random.Generator) -> Mode:
    """Fisher scoring on ever more rows; the curvature of the rows before serves for the steps on those to come."""
    passes, curvature = 0.0, None
    for size in _stages(posterior):
        rows = None if size == posterior.n_rows else np.sort(rng.choice(posterior.n_rows, size, replace=False))
        # squared distance to the mode in posterior standard deviations, per parameter: a subset's
        # mode is off by N/m, more digits of it are wasted
        enough = posterior.dim * (1e-3 if rows is None else 0.1 * posterior.n_rows / size)
        theta, iterations = _fisher_scoring(posterior, theta, rows, enough, curvature)
        curvature = posterior.expand(theta, "full", rows).curvature
        passes += (iterations + 1) * size / posterior.n_rows
    assert curvature is not None
    return Mode(theta, curvature, passes)


def _stages(posterior) -> list[int]:
    """Sizes of the nested problems: 20 rows a parameter, then ten times more, up to all rows."""
    size = max(2000, 20 * posterior.dim)
    sizes = []
    while size < posterior.n_rows / 2:
        sizes.append(size)
        size *= 10
    return [*sizes, posterior.n_rows]


def _fisher_scoring(
    posterior, theta: NDArray, rows: NDArray | None, enough: float, curvature: Operator | None
) -> tuple[NDArray, int]:
    """Steps P^-1 gradient, halved until the log posterior does not fall; stops at decrement `enough`.

    P is the given curvature for the first few steps, at a fifth of the cost of one at every point: m rows put it
    within sqrt(D / m) of that of all. Then, or where none is given, it is that of the rows at the point itself.
    """
    here = _look(posterior, theta, rows, curvature)
    for iteration in range(1, 51):
        if iteration == _CHORD_STEPS and curvature is not None:
            curvature = None
            here = _look(posterior, theta, rows, curvature)
        step = here.curvature.inverse().matvec(here.gradient)
        if np.sum(step * here.gradient) < enough:
            return theta + step, iteration
        slack = 1e-6 * abs(here.log_prob)  # float32 rows sum the likelihood to about seven digits
        for _ in range(30):
            ahead = _look(posterior, theta + step, rows, curvature)
            if ahead.log_prob >= here.log_prob - slack:
                break
            step *= 0.5
        theta, here = theta + step, ahead
    return theta, iteration


def _look(posterior, theta: NDArray, rows: NDArray | None, curvature: Operator | None) -> Expansion:
    if curvature is None:
        return posterior.expand(theta, "full", rows)
    value, gradient = posterior.slope(theta, rows)
    return Expansion(value, gradient, curvature)


def _scaled_lbfgs(posterior, theta: NDArray) -> Mode:
    scale = 1.0 / np.sqrt(posterior.expand(theta, "diag").curvature.diagonal())

    def objective(u: NDArray) -> tuple[float, NDArray]:
        value, gradient = posterior.slope((u * scale)[None])
        return -value, -gradient[0] * scale

    result = minimize(objective, theta[0] / scale, jac=True, method="L-BFGS-B", options={"maxiter": 50})
    theta = (result.x * scale)[None]
    return Mode(theta, posterior.expand(theta, "diag").curvature, result.nfev + 2.0)


def posterior_mean(posterior, mode: Mode) -> Mode:
    """The mode moved to where the gradient vanishes in the mean over the Laplace approximation around it.

    On a skewed posterior this is nearer to the mean, and the curvature there nearer to the mean curvature, than at
    the mode (the fixed point of Gaussian variational inference, one step towards it). A move of less
    than a fiftieth of a posterior standard deviation per parameter is not made.
    """
    theta, blocks = pilot(posterior, mode.theta, mode.curvature)
    theta = np.concatenate([theta, 2 * mode.theta - theta])  # in pairs: what is odd in the distance cancels
    change = np.zeros((1, posterior.dim))
    for block in blocks:
        at_mode = posterior.scores(mode.theta, block).total()
        change += posterior.scores(theta, block).total().mean(axis=0) - at_mode
    n_rows = sum(len(block) for block in blocks)
    gradient = change * (posterior.n_total / n_rows)
    gradient += posterior.prior.gradient(theta).mean(axis=0) - posterior.prior.gradient(mode.theta)
    shift = mode.curvature.inverse().matvec(gradient)
    if np.sum(shift * gradient) < posterior.dim * _SMALL_SHIFT**2:
        return mode
    return Mode(mode.theta + shift, posterior.expand(mode.theta + shift, "full").curvature, mode.passes + 1)


def pilot(posterior, centre: NDArray, curvature: Operator) -> tuple[NDArray, list[NDArray]]:
    """Points that stand for the Laplace approximation, and up to 50,000 rows in blocks: the same ones every time.

    The points are random orthogonal frames (a part of one where D is large), so their second moment is exact:
    a mean of what is quadratic in the distance from the centre needs no more, where as many normal draws would
    leave some per cent.
    """
    rng = np.random.default_rng(0)
    dim = posterior.dim
    frames = [np.linalg.qr(rng.standard_normal((dim, dim)))[0] for _ in range(-(-_PILOT_POINTS // dim))]
    points = np.sqrt(dim) * np.concatenate(frames)[: _MOST_POINTS if dim > _MOST_POINTS else None]
    rows = np.arange(posterior.n_rows)
    if posterior.n_rows > _PILOT_ROWS:
        rows = np.sort(rng.choice(posterior.n_rows, _PILOT_ROWS, replace=False))
    theta = centre + curvature.inverse().cholesky().matvec(points)
    return theta, np.array_split(rows, 1 + len(rows) * len(theta) // _PILOT_CELLS)
