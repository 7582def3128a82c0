"""Gradient noise in the mean over the points of a stationary chain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import deterministic_rng
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.control_variates import ExpandedTarget
from skbayes_sg.samplers.stationary import LinearStep, StationaryDistribution

_MOST_POINTS = 64


def mean_noise(
    target: Posterior | ExpandedTarget,
    theta: NDArray,
    stationary: StationaryDistribution,
    Lam: NDArray,
    noise_factor: float,
) -> NDArray:
    """M in the mean over the points of a chain around theta (1, D), (D, D).

    The points have the covariance that M gives them, so M is a fixed point. With Sigma = R R^T the
    mean is that over theta +- sqrt(D) R e_k, which is exact for an M that is quadratic in the
    parameters. Beyond 32 parameters the e_k are 32 random orthogonal directions.
    """
    of_points = replace(stationary, window=1) if isinstance(stationary, LinearStep) else stationary
    scale = noise_factor * target.n_total
    M = scale * target.score_covariance(theta)
    for _ in range(30):  # small steps need two or three
        points = theta + _around(of_points.covariance(Lam, M))
        last, M = M, scale * np.mean([target.score_covariance(p[None]) for p in points], axis=0)
        if abs(np.trace(M - last)) <= 0.003 * np.trace(M):
            break
    return M


def _around(covariance: NDArray) -> NDArray:
    """Points (n, D) of mean zero, with this second moment where there are 2 D of them."""
    values, vectors = np.linalg.eigh(covariance)
    root, dim = vectors * np.sqrt(values.clip(0)), len(values)
    if 2 * dim > _MOST_POINTS:
        normals = deterministic_rng("points").standard_normal((dim, _MOST_POINTS // 2))
        root = root @ np.linalg.qr(normals)[0]
    return np.sqrt(dim) * np.concatenate([root.T, -root.T])
