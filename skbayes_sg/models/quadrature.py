"""Rules for means over normal distributions of a row's outputs."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import roots_genlaguerre

_ONE_OUTPUT, _MORE_OUTPUTS = (5, 1), (2, 4)  # radii and frames of the rule for means


@cache
def normal_nodes(dim: int) -> tuple[NDArray, NDArray]:
    """Nodes (nodes, dim) and weights (nodes,) of a rule for the mean over N(0, I).

    Radii are those of a Gauss-Laguerre rule, directions random orthogonal frames in pairs +-. In
    one dimension it is a Gauss-Hermite rule.
    """
    n_radii, n_frames = _ONE_OUTPUT if dim == 1 else _MORE_OUTPUTS
    half, share = roots_genlaguerre(n_radii, dim / 2 - 1)
    rng = np.random.default_rng(0)
    frames = [np.linalg.qr(rng.standard_normal((dim, dim)))[0] for _ in range(n_frames)]
    directions = np.concatenate(frames + [-frame for frame in frames])
    nodes = np.concatenate([radius * directions for radius in np.sqrt(2 * half)])
    return nodes, np.repeat(share / share.sum(), len(directions)) / len(directions)


def symmetric_root(matrices: NDArray) -> NDArray:
    """R with R R = A of each positive semi-definite matrix, (..., k, k)."""
    values, vectors = np.linalg.eigh(matrices)
    scaled = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    return scaled @ vectors.swapaxes(-1, -2)
