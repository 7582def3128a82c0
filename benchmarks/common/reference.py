"""Posterior moments by importance sampling or long runs, sharper than what is compared with them.

Long runs take minutes. They are kept in benchmarks/results, or in the folder that
SKBAYES_SG_REFERENCES names, and made anew when the data change.
"""

from __future__ import annotations

import os
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.harness import RESULTS
from benchmarks.common.internals import Posterior, exact_mode
from skbayes_sg import BayesianLogisticRegression, diagnostics
from skbayes_sg.samplers import HMC

FOLDER = Path(os.environ.get("SKBAYES_SG_REFERENCES", RESULTS))
_LARGEST = 200  # parameters of a covariance that is kept
_FULL_METRIC = 8000  # parameters; correlated ones are slow under a diagonal metric


class Reference(NamedTuple):
    """Moments, where they are from, and how good they are."""

    mean: NDArray
    cov: NDArray
    mode: NDArray
    curvature: NDArray
    efficiency: float
    """effective over drawn, of the importance weights"""
    half_split: tuple[float, float]
    """E1 and E2 between two halves of the draws: twice the error of the whole"""


def importance_reference(
    posterior: Posterior, n_draws: int = 120_000, seed: int = 2012
) -> Reference:
    """Moments by importance sampling from the Laplace approximation.

    Draws come in antithetic pairs. The Gaussian itself is the control variate: with weights w of
    mean one, E_p f = E_q f + E_q[(w - 1) f], where the first term is known.
    """
    rng = np.random.default_rng(seed)
    mode, Lam = exact_mode(posterior, rng)
    laplace = np.linalg.inv(Lam)
    z = rng.standard_normal((n_draws // 2, posterior.dim))
    z = np.stack([z, -z], axis=1).reshape(-1, posterior.dim)
    shift = z @ np.linalg.cholesky(laplace).T
    blocks = np.array_split(shift, n_draws // 200)
    log_weight = np.concatenate([posterior.log_prob(mode + block) for block in blocks])
    log_weight += 0.5 * (z * z).sum(axis=1)
    weight = np.exp(log_weight - log_weight.max())

    def moments(part: slice) -> tuple[NDArray, NDArray]:
        w = weight[part] / weight[part].mean() - 1.0
        offset = w @ shift[part] / len(w)
        second = laplace + (shift[part] * w[:, None]).T @ shift[part] / len(w)
        return mode[0] + offset, second - np.outer(offset, offset)

    halves = [moments(slice(n_draws // 2)), moments(slice(n_draws // 2, None))]
    split = [np.abs(a - b).sum() / np.abs(a).sum() for a, b in zip(*halves, strict=True)]
    mean, cov = moments(slice(None))
    efficiency = float(weight.mean() ** 2 / (weight**2).mean())
    return Reference(mean, cov, mode[0], Lam, efficiency, (float(split[0]), float(split[1])))


class LongRun(NamedTuple):
    """Moments of a long HMC run on all rows."""

    mean: NDArray
    """(D,), in the order of `draws_`"""
    sd: NDArray
    cov: NDArray
    """(D, D), or empty above 200 parameters"""
    ess: float
    """effective draws, of the worst parameter, or axis where there is a covariance"""
    r_hat: float
    """of the worst parameter"""


def long_run(name: str, X: NDArray, y: NDArray, n_draws: int = 1000) -> LongRun:
    """The default logistic regression by HMC, 32 chains; from the folder if it is there."""
    length = np.array(n_draws)
    return LongRun(*cached(f"{name}_hmc", lambda: _hmc(X, y, n_draws), X, y, length))


def _hmc(X: NDArray, y: NDArray, n_draws: int) -> dict[str, NDArray]:
    n_classes = len(np.unique(y))
    dim = (X.shape[1] + 1) * (1 if n_classes == 2 else n_classes)
    structure = "full" if dim <= _FULL_METRIC else "diag"
    model = BayesianLogisticRegression(
        HMC(structure=structure, single_gradients=True),
        n_chains=32,
        n_draws=n_draws,
        burn_in=400,
        random_state=2012,
        prior_precision=1.0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draws = model.fit(X, y).draws_
    flat = draws.reshape(-1, draws.shape[-1])
    cov, along = np.empty((0, 0)), draws
    if flat.shape[1] <= _LARGEST:
        cov = np.cov(flat.T)
        along = draws @ np.linalg.eigh(cov)[1]
    found = (flat.mean(axis=0), flat.std(axis=0), cov)
    ess = diagnostics.ess_mean(along).min()
    figures = (ess, model.diagnostics_["r_hat_max"])
    return dict(zip(LongRun._fields, (*found, *figures), strict=True))


def cached(name: str, make: Callable[[], dict[str, NDArray]], *data: NDArray) -> list[NDArray]:
    """The arrays that `make` gives, kept in the folder for as long as the data are the same."""
    path = FOLDER / f"{name}.npz"
    key = zlib.crc32(b"".join(np.ascontiguousarray(part).tobytes() for part in data))
    if path.exists():
        with np.load(path) as archive:
            kept = dict(archive)
        if kept.pop("key") == key:
            return list(kept.values())
    found = {name: np.asarray(value) for name, value in make().items()}
    np.savez_compressed(path, key=key, **found)
    return list(found.values())
