"""Whether networks know what they have not seen: epistemic uncertainty of points off the data.

    python -m benchmarks.prediction.far_points
    python -m benchmarks.prediction.far_points --seeds 1 --n-real 0

Five sets of two columns with known gaps: two moons; bands, where the rows of both classes have an
empty stripe between them; an annulus with an empty hole; a line, on which the classes alternate
around an empty stretch; XOR of four clouds. "gap" are points in the hole of each; "far" are points
at 2 to 4 times the largest distance of a row from the centre. Columns are standardised. Real sets
are digits without eights and nines, whose images are the far points, and wine and covertype (2,000
rows), whose far points are rows held out, 3 times as far from the centre.

Figures are AUROCs of `predict_uncertainty(X).epistemic` of such points against rows held out: 0.5
says nothing, below it unseen points count as better known. "range" is that of how far columns are
outside the range of the rows of the fit, which needs no model. "confident" is the share of far
points whose largest probability is above .95. Each network is fitted at the default temperature and
at 1. On two moons that overlap, a longer burn-in and more chains are tried too.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine, make_moons
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from benchmarks.common.datasets import covertype
from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.prediction.networks import auroc
from skbayes_sg import BayesianMLPClassifier, DRBMClassifier

MODELS: dict[str, Any] = {
    "30 logistic": BayesianMLPClassifier((30,)),
    "30 tanh": BayesianMLPClassifier((30,), "tanh"),
    "30 relu": BayesianMLPClassifier((30,), "relu"),
    "DRBM, 30": DRBMClassifier(30),
}
N_ROWS, N_POINTS = 300, 400


class Problem(NamedTuple):
    """Rows, points in a gap between them, and points far from all."""

    name: str
    X: NDArray
    y: NDArray
    gap: NDArray | None
    far: NDArray


def toys(seed: int) -> list[Problem]:
    """Sets of two columns, standardised."""
    rng = np.random.default_rng(seed)

    def uniform(n: int, low: float, high: float) -> NDArray:
        return rng.uniform(low, high, n)

    n, m = 2 * N_ROWS, N_POINTS
    found = []
    X, y = make_moons(n, noise=0.1, random_state=seed)
    angle = uniform(m, 0, np.pi)  # half way between the moons
    gap = np.column_stack([0.5 + 0.5 * np.cos(angle), 0.25 + 0.1 * np.sin(angle)])
    found.append(_standard("two moons", X, y, gap, rng))
    side = rng.choice([-1, 1], n)
    X = np.column_stack([side * uniform(n, 1, 2), rng.standard_normal(n)])
    y = (X[:, 1] + 0.5 * side + 0.2 * rng.standard_normal(n) > 0).astype(int)
    gap = np.column_stack([uniform(m, -0.5, 0.5), rng.standard_normal(m)])
    found.append(_standard("bands", X, y, gap, rng))
    angle, radius = uniform(n, 0, 2 * np.pi), uniform(n, 1, 1.5)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    y = (np.sin(2 * angle) + 0.2 * rng.standard_normal(n) > 0).astype(int)
    angle, radius = uniform(m, 0, 2 * np.pi), uniform(m, 0, 0.5)
    gap = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    found.append(_standard("annulus", X, y, gap, rng))
    x = rng.choice([-1, 1], n) * uniform(n, 1, 3)
    X = np.column_stack([x, 0.1 * rng.standard_normal(n)])
    y = (np.sin(3 * x) + 0.2 * rng.standard_normal(n) > 0).astype(int)
    gap = np.column_stack([uniform(m, -0.7, 0.7), 0.1 * rng.standard_normal(m)])
    found.append(_standard("line", X, y, gap, rng))
    corner = rng.choice([-1, 1], (n, 2))
    X, y = 1.5 * corner + 0.4 * rng.standard_normal((n, 2)), (corner.prod(axis=1) > 0).astype(int)
    found.append(_standard("XOR", X, y, uniform(2 * m, -0.5, 0.5).reshape(m, 2), rng))
    return found


def _standard(name: str, X: NDArray, y: NDArray, gap: NDArray, rng: Any) -> Problem:
    mean, sd = X.mean(axis=0), X.std(axis=0)
    X, gap = (X - mean) / sd, (gap - mean) / sd
    away = rng.standard_normal((N_POINTS, 2))
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    reach = np.linalg.norm(X, axis=1).max()
    return Problem(name, X, y, gap, away * reach * rng.uniform(2, 4, (N_POINTS, 1)))


def real(seed: int) -> list[Problem]:
    """Digits without two classes, and tables whose rows are stretched."""
    rng = np.random.default_rng(seed)
    X, y = load_digits(return_X_y=True)
    found = [Problem("digits", X[y < 8] / 16, y[y < 8], None, X[y >= 8] / 16)]
    tables = {"wine": load_wine(return_X_y=True), "covertype": covertype()}
    for name, (X, y) in tables.items():
        some = rng.permutation(len(X))[:4000]
        X, y = X[some], y[some]
        X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
        found.append(Problem(name, X, y, None, 3 * X[rng.permutation(len(X))[:N_POINTS]]))
    return found


def beyond(X: NDArray, rows: NDArray) -> NDArray:
    """How far outside the range of the rows the worst column is, in ranges."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    return (np.maximum(low - X, X - high) / np.maximum(high - low, 1e-9)).max(axis=1)


def measure(problem: Problem, model: Any, seed: int) -> dict:
    """One fit to half of the rows; the others are held out."""
    X, X_test, y, y_test = train_test_split(
        problem.X, problem.y, test_size=0.5, stratify=problem.y, random_state=seed
    )
    model = clone(model).set_params(random_state=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    inside = model.predict_uncertainty(X_test).epistemic
    row = {
        "data": problem.name,
        "temperature": model.diagnostics_["temperature"],
        "seed": seed,
        "log loss": float(log_loss(y_test, model.predict_proba(X_test))),
        "far": auroc(inside, model.predict_uncertainty(problem.far).epistemic),
        "confident": float((model.predict_proba(problem.far).max(axis=1) > 0.95).mean()),
        "range": auroc(beyond(X_test, X), beyond(problem.far, X)),
        "drift": model.diagnostics_["prediction_drift"],
        "warnings": len(caught),
    }
    if problem.gap is not None:
        row["gap"] = auroc(inside, model.predict_uncertainty(problem.gap).epistemic)
    return row


def means(rows: list[dict]) -> list[dict]:
    """Over the seeds."""
    table = []
    for key in dict.fromkeys((r["data"], r["model"], r["temperature"]) for r in rows):
        here = [r for r in rows if (r["data"], r["model"], r["temperature"]) == key]
        figures = [name for name in here[0] if name not in ("data", "model", "temperature", "seed")]
        mean = {name: float(np.mean([row[name] for row in here])) for name in figures}
        table.append(dict(zip(("data", "model", "temperature"), key, strict=True)) | mean)
    return table


def claims(rows: list[dict]) -> list[Claim]:
    """Means over the seeds and the toy sets, of each network."""
    table = [row for row in means(rows) if "gap" in row]
    far, gap = {}, {}
    for temperature in (0.05, 1.0):
        for units in MODELS:
            here = [r for r in table if (r["model"], r["temperature"]) == (units, temperature)]
            far[units, temperature] = float(np.mean([row["far"] for row in here]))
            gap[units, temperature] = float(np.mean([row["gap"] for row in here]))
    bounded = [units for units in MODELS if "relu" not in units]
    return [
        Claim("AUROC of points in gaps, default", [gap[u, 0.05] for u in MODELS], low=0.7),
        Claim("AUROC of far points, default", [far[u, 0.05] for u in MODELS], low=0.5),
        Claim("AUROC of far points at T = 1, bounded units", [far[u, 1.0] for u in bounded], 0.8),
        Claim("AUROC of far points at T = 1, relu", far["30 relu", 1.0], low=0.5),
        Claim("AUROC of far points by range", min(row["range"] for row in table), low=0.99),
    ]


def remedies(seeds: int) -> list[dict]:
    """Two moons that overlap: what a longer burn-in, more chains and temperature 1 change."""
    settings: dict[str, dict] = {
        "default": {},
        "burn_in=2000": {"burn_in": 2000},
        "n_chains=32": {"n_chains": 32},
        "temperature=1": {"temperature": 1.0},
    }
    rows = []
    for seed in range(seeds):
        X, y = make_moons(400, noise=0.3, random_state=seed)
        problem = _standard("overlap", X, y, X[:1], np.random.default_rng(seed))
        for setting, changes in settings.items():
            model = clone(MODELS["30 logistic"]).set_params(**changes)
            found = measure(problem._replace(gap=None), model, seed)
            rows.append({"setting": setting} | found)
    return rows


def main(report: Report, seeds: int, n_real: int) -> None:
    """Every set, network and temperature."""
    rows: list[dict] = []
    for seed in range(seeds):
        for problem in toys(seed) + (real(seed) if seed < n_real else []):
            for units, model in MODELS.items():
                for temperature in (None, 1.0):
                    fit = clone(model).set_params(temperature=temperature)
                    found = measure(problem, fit, seed)
                    rows.append({"model": units} | found)
        report.show(means(rows), f"after seed {seed}")
        report.save(rows, claims(rows))  # should the rest be cut short
    report.save(remedies(seeds), name="far_points_remedies", title="two moons that overlap")


if __name__ == "__main__":
    benchmark(
        main,
        threads=1,
        seeds={"type": int, "default": 3},
        n_real={"type": int, "default": 1, "help": "seeds with real data sets"},
    )
