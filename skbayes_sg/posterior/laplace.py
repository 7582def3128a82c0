"""The Gaussian approximation at a mode: its points, and the step from there to the mean."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import deterministic_rng
from skbayes_sg.linalg import FULL, Diag
from skbayes_sg.linalg.sizes import elements_at_a_time, has_matrix
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.mode import Mode
from skbayes_sg.posterior.whitening import is_high_dimensional

_SMALL_SHIFT = 0.02  # in posterior standard deviations per parameter
_LARGE_SHIFT = 0.25  # an expansion at the mode says little of a mean so far away
_POINT_ROWS = 50_000
_FEWEST_POINTS = 32
_MOST_POINTS = 128


def posterior_mean(posterior: Posterior, mode: Mode) -> Mode:
    """The mode moved one step towards the mean of the posterior.

    Source: math/mode_and_mean.md#posterior-mean.

    The step leads to where the gradient vanishes in the mean over the Laplace approximation: one
    step towards the fixed point of Gaussian variational inference. On a skewed posterior the new
    point is nearer to the mean than the mode is, and its curvature is nearer to the mean curvature.
    With very many parameters the mode stays: chains use all rows, so any anchor serves.
    A move of less than a fiftieth of a posterior standard deviation per parameter is not worth its
    cost, and the expansion says too little about a move of more than a quarter. Rows on disk are
    expanded here for the first time.
    """
    if is_high_dimensional(posterior):
        return mode
    if isinstance(mode.curvature, Diag):
        mode = mode._replace(curvature=posterior.expand(mode.theta, FULL).curvature)
    shift, length = step_to_mean(posterior, mode)
    moves = _SMALL_SHIFT <= length <= _LARGE_SHIFT
    if not moves and posterior.of_sample is posterior:
        return mode
    centre = mode.theta + shift if moves else mode.theta
    here = posterior.expand(centre, FULL)
    return Mode(centre, here.curvature, here.gradient, mode.passes + 1)


def step_to_mean(posterior: Posterior, mode: Mode) -> tuple[NDArray, float]:
    """The step of `posterior_mean` (1, D), and its length in posterior sd per parameter."""
    theta, blocks = laplace_points(posterior, mode)
    theta = np.concatenate([theta, 2 * mode.theta - theta])  # in pairs: odd powers cancel
    change = np.zeros((1, posterior.dim))
    for block in blocks:
        at_mode = posterior.scores(mode.theta, block).total()
        change += posterior.scores(theta, block).total().mean(axis=0) - at_mode
    n_rows = sum(len(block) for block in blocks)
    gradient = change * (posterior.n_total / n_rows)
    at_points = posterior.prior.gradient(theta).mean(axis=0)
    gradient += at_points - posterior.prior.gradient(mode.theta)
    shift = mode.curvature.inverse().matvec(gradient)
    return shift, float(np.sqrt(max(0.0, np.sum(shift * gradient)) / posterior.dim))


def laplace_points(posterior: Posterior, mode: Mode) -> tuple[NDArray, list[NDArray]]:
    """Points that stand for the Laplace approximation, and up to 50,000 rows in blocks.

    The points and rows are the same at every call. The points are random orthogonal frames, or a
    part of one where D is large. Their second moment is exact for whole frames, so the mean of a
    function that is quadratic in the distance from the centre is exact too. As many normal draws
    would leave an error of some per cent.
    """
    rng = deterministic_rng("points")
    dim = posterior.dim
    n_frames = -(-_FEWEST_POINTS // dim)
    if not has_matrix(dim):
        frames = [np.linalg.qr(rng.standard_normal((dim, _MOST_POINTS)))[0].T]
    else:
        frames = [np.linalg.qr(rng.standard_normal((dim, dim)))[0] for _ in range(n_frames)]
    points = np.sqrt(dim) * np.concatenate(frames)[: _MOST_POINTS if dim > _MOST_POINTS else None]
    points[1::2] *= -1  # a sign changes no second moment, and one dimension has but two directions
    rows = np.arange(posterior.n_rows)
    if posterior.n_rows > _POINT_ROWS:
        rows = np.sort(rng.choice(posterior.n_rows, _POINT_ROWS, replace=False))
    theta = mode.theta + mode.curvature.inverse().cholesky().matvec(points)
    return theta, np.array_split(rows, 1 + len(rows) * len(theta) // elements_at_a_time())


def distance(anchor: Mode, other: Mode) -> float:
    """Squared distance in posterior standard deviations of `other`, per parameter."""
    shift = other.theta - anchor.theta
    return float(np.sum(shift * other.curvature.matvec(shift))) / shift.size
