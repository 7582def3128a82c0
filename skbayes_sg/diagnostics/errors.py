"""Errors of a mean and of a covariance against a reference."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def mean_error(mean: NDArray, reference: NDArray) -> float:
    """Error E1 of a mean (Ahn et al. Eq. 14): ``sum |mean - reference| / sum |reference|``."""
    return float(np.abs(mean - reference).sum() / np.abs(reference).sum())


def covariance_error(covariance: NDArray, reference: NDArray) -> float:
    """Error E2 of a covariance (Ahn et al. Eq. 14), over D^2 entries.

    ``sum |covariance - reference| / sum |reference|``
    """
    return float(np.abs(covariance - reference).sum() / np.abs(reference).sum())
