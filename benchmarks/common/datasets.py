"""Every data set of the benchmarks, loaded here and nowhere else.

The folder named by SKBAYES_SG_DATA is looked into first (default: shared/data beside the
repository). What is not there comes from scikit-learn's fetchers.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets

DATA = Path(os.environ.get("SKBAYES_SG_DATA", Path(__file__).parents[3] / "shared" / "data"))
SYMBOLIC = ("protocol_type", "service", "flag")
"""columns of KDD99 that hold names"""


def _stored(name: str) -> dict[str, NDArray] | None:
    """The arrays of an archive in the data folder, or None."""
    if not (DATA / f"{name}.npz").exists():
        return None
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as archive:
        return dict(archive)


def _openml(name: str) -> tuple[NDArray, NDArray]:
    return datasets.fetch_openml(name, version=1, as_frame=False, return_X_y=True)


def standardised(X: NDArray) -> NDArray:
    """Columns of mean 0 and variance 1."""
    return (X - X.mean(axis=0)) / X.std(axis=0)


def mnist(part: str = "train") -> tuple[NDArray, NDArray]:
    """60,000 digits (pixels from 0 to 255) and labels, or the 10,000 of the part ``"test"``."""
    found = _stored("mnist")
    if found is None:
        X, y = _openml("mnist_784")
        rows = slice(60_000) if part == "train" else slice(60_000, None)
        return X[rows], y[rows].astype(int)
    suffix = "" if part == "train" else "_test"
    return found[f"X{suffix}"], found[f"y{suffix}"].astype(int)


def mnist_7_vs_9(dtype: type = np.float64) -> tuple[NDArray, NDArray]:
    """The first 10,000 sevens and nines in 50 random projections (Ahn et al. 5.1).

    y is 1 for a nine, else -1.
    """
    X, y = mnist()
    rows = np.flatnonzero((y == 7) | (y == 9))[:10_000]
    projection = np.random.default_rng(0).normal(0.0, np.sqrt(1 / 50), (784, 50))
    X = X[rows] / 255.0 @ projection
    return X.astype(dtype), np.where(y[rows] == 9, 1, -1).astype(dtype)


def regression(name: str) -> tuple[NDArray, NDArray]:
    """The data ``"wine"`` (white, 4,898 x 11) or ``"protein"`` (45,730 x 9) in float64."""
    stored, openml = {
        "wine": ("winequality_white", "wine-quality-white"),
        "protein": ("casp", "physicochemical-protein"),
    }[name]
    found = _stored(stored)
    if found is not None:
        return found["X"].astype(np.float64), found["y"].astype(np.float64)
    X, y = _openml(openml)
    shift = 2 if name == "wine" else 0  # OpenML counts the wine grades 3 to 9 from 1
    return X.astype(np.float64), y.astype(np.float64) + shift


def skin() -> tuple[NDArray, NDArray]:
    """Skin segmentation: pixels (245,057 x 3, 0 to 255) in float64, and y = 1 for skin, else -1."""
    found = _stored("skin_nonskin")
    X, y = _openml("skin-segmentation") if found is None else (found["X"], found["y"])
    return X.astype(np.float64), np.where(y.astype(int) == 1, 1.0, -1.0)


def covertype() -> tuple[NDArray, NDArray]:
    """Covertype in float32: a sample of 92,962 rows from the folder, or all 581,012."""
    found = _stored("covtype_92962")
    X, y = datasets.fetch_covtype(return_X_y=True) if found is None else (found["X"], found["y"])
    return X.astype(np.float32), y


class KDD99(NamedTuple):
    """The 10 % file of the KDD Cup 1999: 494,021 connections."""

    X: NDArray
    """float64, names as their ranks in alphabetical order"""
    y: NDArray
    """numbers of the 23 classes"""
    feature_names: list[str]
    target_names: NDArray
    """in alphabetical order"""


def kdd99() -> KDD99:
    """The 10 % file, from the data folder or scikit-learn."""
    found = _stored("kddcup99_10percent")
    if found is not None:
        features = found["feature_names"].tolist()
        return KDD99(found["X"], found["y"].astype(int), features, found["target_names"])
    data = datasets.fetch_kddcup99(percent10=True)
    columns = [
        np.unique(column.astype(str), return_inverse=True)[1] if name in SYMBOLIC else column
        for name, column in zip(data.feature_names, data.data.T, strict=True)
    ]
    names, y = np.unique(np.char.rstrip(data.target.astype(str), "."), return_inverse=True)
    return KDD99(np.stack(columns, axis=1).astype(np.float64), y, list(data.feature_names), names)


def diamonds() -> tuple[NDArray, NDArray]:
    """53,940 diamonds in float32: seven numbers, colour and clarity as 0 or 1; y is the cut."""
    found = _stored("diamonds")
    if found is not None:
        return found["X"], found["y"]
    table = datasets.fetch_openml("diamonds", version=1, as_frame=True, parser="auto").frame
    numbers = table[["carat", "depth", "table", "price", "x", "y", "z"]].to_numpy(np.float32)
    categories = [table[name].astype(str).to_numpy() for name in ("color", "clarity")]
    ones = [(column[:, None] == np.unique(column)).astype(np.float32) for column in categories]
    return np.concatenate([numbers, *ones], axis=1), table["cut"].astype(str).to_numpy()


def million() -> tuple[NDArray, NDArray]:
    """Synthetic logistic regression, 1,000,000 x 50 in float32; y is 1 or -1."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_000_000, 50)).astype(np.float32)
    z = X @ rng.standard_normal(50) * 0.3 + rng.logistic(size=len(X))
    return X, np.where(z > 0, 1, -1).astype(np.float32)


def correlated(n_rows: int = 10_000) -> tuple[NDArray, NDArray]:
    """Synthetic logistic regression with 50 correlated columns of variances 10 to 0.1.

    The coefficients are from a standard normal prior; y is 1 or -1.
    """
    rng = np.random.default_rng(10)
    rotation = np.linalg.qr(rng.standard_normal((50, 50)))[0]
    X = (rng.standard_normal((n_rows, 50)) * np.geomspace(10**0.5, 10**-0.5, 50)) @ rotation
    theta = rng.standard_normal(51)
    return X, np.where(X @ theta[:-1] + theta[-1] + rng.logistic(size=len(X)) > 0, 1, -1)
