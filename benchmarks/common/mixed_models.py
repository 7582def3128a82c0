"""Regressions with random effects: their rows, and restricted maximum likelihood by statsmodels.

REML has no prior, and its standard errors leave out how uncertain the standard deviations are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

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


def crossed() -> Mixed:
    """600 marks of twenty lecturers by sixty students, with the spreads of lme4's InstEval."""
    rng, n = np.random.default_rng(60), 600
    student, lecturer = rng.integers(60, size=n), rng.integers(20, size=n)
    x = rng.integers(2, size=n)  # of another department
    y = 3.3 - 0.1 * x + 0.33 * rng.standard_normal(60)[student]
    y += 0.51 * rng.standard_normal(20)[lecturer] + 1.18 * rng.standard_normal(n)
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
