"""Data sets, references and tables shared by the benchmarks."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.mode import find_mode
from skbayes_sg.models import Softmax
from skbayes_sg.posterior import Posterior

RESULTS = Path(__file__).parent / "results"
DATA = Path(os.environ.get("SKBAYES_SG_DATA", Path(__file__).parents[2] / "shared" / "data"))


def mnist() -> tuple[NDArray, NDArray]:
    """60,000 training digits (uint8 pixels) and labels, from the data folder or OpenML."""
    if (DATA / "mnist.npz").exists():
        with np.load(DATA / "mnist.npz", allow_pickle=False) as archive:
            return archive["X"], archive["y"]
    from sklearn.datasets import fetch_openml

    X, y = fetch_openml("mnist_784", version=1, as_frame=False, return_X_y=True)
    return X[:60000], y[:60000].astype(int)


def regression_data(name: str) -> tuple[NDArray, NDArray]:
    """The wine (white, 4,898 x 11) or protein (45,730 x 9) data, from the data folder or OpenML, in float64."""
    stored, openml = {
        "wine": ("winequality_white", "wine-quality-white"),
        "protein": ("casp", "physicochemical-protein"),
    }[name]
    if (DATA / f"{stored}.npz").exists():
        with np.load(DATA / f"{stored}.npz", allow_pickle=False) as archive:
            return archive["X"].astype(np.float64), archive["y"].astype(np.float64)
    from sklearn.datasets import fetch_openml

    X, y = fetch_openml(openml, version=1, as_frame=False, return_X_y=True)
    y = y.astype(np.float64) + (2 if name == "wine" else 0)  # OpenML counts the wine grades 3 to 9 from 1
    return X.astype(np.float64), y


def skin_data() -> tuple[NDArray, NDArray]:
    """The skin segmentation pixels (245,057 x 3, 0 to 255) in float64, and y = 1 for skin, else -1."""
    if (DATA / "skin_nonskin.npz").exists():
        with np.load(DATA / "skin_nonskin.npz", allow_pickle=False) as archive:
            X, y = archive["X"], archive["y"]
    else:
        from sklearn.datasets import fetch_openml

        X, y = fetch_openml("skin-segmentation", version=1, as_frame=False, return_X_y=True)
    return X.astype(np.float64), np.where(y.astype(int) == 1, 1.0, -1.0)


def mnist_7_vs_9(dtype: type = np.float64) -> tuple[NDArray, NDArray]:
    """The first 10,000 sevens and nines, projected to 50 dimensions (Ahn et al. 5.1); y = 1 for a nine, else -1."""
    X, y = mnist()
    rows = np.flatnonzero((y == 7) | (y == 9))[:10_000]
    projection = np.random.default_rng(0).normal(0.0, np.sqrt(1 / 50), (784, 50))
    return (X[rows] / 255.0 @ projection).astype(dtype), np.where(y[rows] == 9, 1, -1).astype(dtype)


def logistic_posterior(X: NDArray, y: NDArray, prior_precision: float = 1.0) -> Posterior:
    """Binary logistic regression with the same prior on all coefficients and the intercept."""
    return Posterior(Softmax(X.shape[1], 2), X, y, prior_precision)


class Reference(NamedTuple):
    """Posterior moments that are sharper than anything compared with them."""

    mean: NDArray
    cov: NDArray
    mode: NDArray
    curvature: NDArray
    efficiency: float
    """effective over drawn, of the importance weights"""
    half_split: tuple[float, float]
    """E1 and E2 between two halves of the draws: twice the error of the whole"""


def importance_reference(posterior: Posterior, n_draws: int = 120_000) -> Reference:
    """Moments by importance sampling from the Laplace approximation.

    Antithetic pairs, and the Gaussian itself as control variate: with weights w of mean one,
    E_p f = E_q f + E_q[(w - 1) f], where the first term is known.
    """
    rng = np.random.default_rng(2012)
    mode = find_mode(posterior, np.zeros((1, posterior.dim)), rng)
    for _ in range(3):  # Newton steps to rounding: the proposal's centre must not cost efficiency
        here = posterior.expand(mode.theta, "full")
        mode = mode._replace(theta=mode.theta + here.curvature.inverse().matvec(here.gradient))
    Lam = posterior.expand(mode.theta, "full").curvature.dense()
    root = np.linalg.cholesky(np.linalg.inv(Lam))
    z = rng.standard_normal((n_draws // 2, posterior.dim))
    z = np.stack([z, -z], axis=1).reshape(-1, posterior.dim)
    shift = z @ root.T
    log_weight = np.concatenate([posterior.log_prob(mode.theta + s) for s in np.array_split(shift, n_draws // 200)])
    log_weight += 0.5 * (z * z).sum(axis=1)
    weight = np.exp(log_weight - log_weight.max())
    efficiency = weight.mean() ** 2 / (weight**2).mean()

    def moments(part: slice) -> tuple[NDArray, NDArray]:
        w = weight[part] / weight[part].mean() - 1.0
        offset = w @ shift[part] / len(w)
        second = np.linalg.inv(Lam) + (shift[part] * w[:, None]).T @ shift[part] / len(w)
        return mode.theta[0] + offset, second - np.outer(offset, offset)

    half = n_draws // 2
    (m0, c0), (m1, c1) = moments(slice(0, half)), moments(slice(half, None))
    split = (np.abs(m0 - m1).sum() / np.abs(m0).sum(), np.abs(c0 - c1).sum() / np.abs(c0).sum())
    mean, cov = moments(slice(None))
    return Reference(mean, cov, mode.theta[0], Lam, float(efficiency), (float(split[0]), float(split[1])))


def write_csv(name: str, rows: list[dict]) -> Path:
    """Results beside the script that makes them."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / name
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(dict.fromkeys(key for row in rows for key in row)))
        writer.writeheader()
        writer.writerows(rows)
    return path


def print_table(rows: list[dict]) -> None:
    """Aligned columns; numbers to three or four digits."""
    names = list(dict.fromkeys(key for row in rows for key in row))
    cells = [[_format(row.get(name, "")) for name in names] for row in rows]
    widths = [max(len(name), *(len(line[i]) for line in cells)) for i, name in enumerate(names)]
    for line in [names, *cells]:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def _format(value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
