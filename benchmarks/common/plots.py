"""What several figures draw."""

from __future__ import annotations

import numpy as np
from matplotlib.patches import Ellipse
from numpy.typing import NDArray


def ellipse(ax, mean: NDArray, cov: NDArray, n_sd: float = 2.0, **style) -> None:
    """Outline of a 2-D normal distribution, `n_sd` standard deviations around the mean."""
    values, vectors = np.linalg.eigh(cov)
    angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
    width, height = 2 * n_sd * np.sqrt(values[::-1])
    ax.add_patch(Ellipse(mean, width, height, angle=angle, fill=False, **style))
