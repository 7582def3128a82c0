"""Regressions with random effects: their rows, and restricted maximum likelihood.

REML has no prior, and its standard errors leave out how uncertain the standard deviations are. It
is statsmodels' where that ends soon, and elsewhere that of Henderson's mixed model equations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

SLEEP = Path(__file__).with_name("sleepstudy.csv")


class Mixed(NamedTuple):
    """A table, and what MixedLM has to be told of it."""

    rows: pd.DataFrame
    """y, x and the factors"""
    groups: str | None
    """The factor within which all others are nested, or None"""
    effects: dict[str, str]
    """Formulas of the random effects by name"""


def sleepstudy() -> Mixed:
    """Reaction times by day without sleep: intercepts and slopes of 18 subjects, independent."""
    rows = pd.read_csv(SLEEP, comment="#").rename(columns={"reaction": "y", "days": "x"})
    return Mixed(rows, "subject", {"intercepts": "1", "slopes": "0 + x"})


def crossed(students: int = 60, lecturers: int = 20, n: int = 600) -> Mixed:
    """So many marks of lecturers by students, with the spreads of lme4's InstEval."""
    rng = np.random.default_rng(60)
    student, lecturer = rng.integers(students, size=n), rng.integers(lecturers, size=n)
    x = rng.integers(2, size=n)  # of another department
    y = 3.3 - 0.1 * x + 0.33 * rng.standard_normal(students)[student]
    y += 0.51 * rng.standard_normal(lecturers)[lecturer] + 1.18 * rng.standard_normal(n)
    rows = pd.DataFrame({"y": y, "x": x, "student": student, "lecturer": lecturer})
    return Mixed(rows, None, {"student": "0 + C(student)", "lecturer": "0 + C(lecturer)"})


def nested() -> Mixed:
    """960 pupils in 120 classes of thirty schools."""
    rng = np.random.default_rng(120)
    classroom = np.repeat(np.arange(120), 8)
    school, x = classroom // 4, rng.standard_normal(960)
    y = 0.5 * x + 0.5 * rng.standard_normal(30)[school]
    y += 0.4 * rng.standard_normal(120)[classroom] + rng.standard_normal(960)
    rows = pd.DataFrame({"y": y, "x": x, "school": school, "classroom": classroom})
    return Mixed(rows, "school", {"school": "1", "classroom": "0 + C(classroom)"})


def reml(mixed: Mixed) -> dict[str, NDArray]:
    """Estimates and standard errors, which standard deviations of effects and noise do not have."""
    from statsmodels.api import MixedLM

    rows = mixed.rows
    groups = np.zeros(len(rows)) if mixed.groups is None else rows[mixed.groups]
    model: Any = MixedLM.from_formula("y ~ x", rows, vc_formula=mixed.effects, groups=groups)
    fit = model.fit(
        method="powell"
    )  # its default ends six below this likelihood of crossed factors
    assert fit.converged
    found = {"x": (fit.params["x"], fit.bse["x"])}
    found["intercept"] = (fit.params["Intercept"], fit.bse["Intercept"])
    variances = dict(zip(model.exog_vc.names, fit.vcomp, strict=True))
    for name in mixed.effects:
        found[name] = (np.sqrt(variances[name]), np.nan)
    found["noise"] = (np.sqrt(fit.scale), np.nan)
    return {name: np.array(both) for name, both in found.items()}


def reml_of_factors(mixed: Mixed) -> dict[str, NDArray]:
    """As `reml`, of intercepts by level alone, in time that grows with the levels.

    With W = (1, x, Z), where Z are indicators of levels, C = W'W + diag(0, 0, ratios) and the
    variance of each factor that of the noise over its ratio, -2 log restricted likelihood is
    ``log det C - sum(log ratios) + (n - 2) log(y'y - y'W C^-1 W'y)``, and C^-1 times the noise
    variance has the squared standard errors (Henderson 1975; Bates et al. 2015, section 3.3).
    """
    levels = [pd.get_dummies(mixed.rows[name], dtype=float).to_numpy() for name in mixed.effects]
    sizes, n = [each.shape[1] for each in levels], len(mixed.rows)
    y = mixed.rows["y"].to_numpy(float)
    W = np.column_stack([mixed.rows["x"].to_numpy(float), np.ones(n), *levels])
    square, pull = W.T @ W, W.T @ y

    def solved(log_ratios: NDArray) -> tuple[tuple[NDArray, bool], float]:
        more = np.append(np.zeros(2), np.repeat(np.exp(log_ratios), sizes))
        factor = cho_factor(square + np.diag(more), lower=True)
        return factor, float(y @ y - pull @ cho_solve(factor, pull))

    def deviance(log_ratios: NDArray) -> float:
        factor, left = solved(log_ratios)
        log_det = 2 * np.log(factor[0].diagonal()).sum() - log_ratios @ sizes
        return float(log_det + (n - 2) * np.log(left))

    how = {"xatol": 1e-5, "fatol": 1e-8}
    fit = minimize(deviance, np.ones(len(sizes)), method="Nelder-Mead", options=how)
    assert fit.success
    factor, left = solved(fit.x)
    noise, estimates = left / (n - 2), cho_solve(factor, pull)
    errors = np.sqrt(noise * cho_solve(factor, np.eye(len(pull), 2)).diagonal())
    found = {"x": (estimates[0], errors[0]), "intercept": (estimates[1], errors[1])}
    for name, log_ratio in zip(mixed.effects, fit.x, strict=True):
        found[name] = (np.sqrt(noise / np.exp(log_ratio)), np.nan)
    found["noise"] = (np.sqrt(noise), np.nan)
    return {name: np.array(both) for name, both in found.items()}
