"""How often a fit is silent on a wrong result, and how often it warns of a right one.

    python -m benchmarks.exactness.audit
    python -m benchmarks.exactness.audit --n-problems 200
    python -m benchmarks.exactness.audit --n-problems 34 --samplers default stream hmc

Each sampler fits problems of known posterior (`audit_problems.py`) at its defaults and at two bad
settings: one whose distribution is wrong (a step too large, or a structure too poor), one too short
or with minibatches too small. "stream" is the default in ten chunks of sorted labels, and in one
that keeps a quarter of the rows, and what holds at the end of what it has said counts, with what it
says where it is read; priors are learned from a first chunk there, so it skips those problems. The
worst parameter counts. With s the Monte Carlo error that the draws of the fit themselves have,

- a result is wrong if a mean is off by more than .3 posterior standard deviations + 3 s, or a
  standard deviation by more than 20 % + 3 s,
- it is right if these errors + 3 s are within .3 and 20 %: the run is long enough to say so,
- and between the two it is neither.

A fit speaks by a ConvergenceWarning or an error. False silence: wrong, and the fit did not speak.
False alarm: right, and it did. Intervals are those of Clopper and Pearson, 95 %. A second table has
the shapes of the problems.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.exactness.audit_problems import Problem, problems
from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression, diagnostics
from skbayes_sg.estimators.updating import _warnings_of
from skbayes_sg.samplers import (
    HMC,
    IASG,
    SGD,
    SGFS,
    SGHMC,
    SGLD,
    ConstantSGD,
    MomentumSGD,
    UnderdampedLangevin,
)

MEAN, SPREAD = 0.3, 0.2  # errors in posterior standard deviations, and relative
_ERRORS = 3.0  # Monte Carlo errors
_SEED = 1
SHORT = {"n_draws": 40, "burn_in": 10, "thin": 1}
FEWER = {"n_draws": 150}  # to save time
RIGHT = (("default", "defaults"), ("stream", "sorted"), ("hmc", "defaults"))
"""samplers and settings that have to be right"""


class Fit(NamedTuple):
    """What a fit said of a problem, and what it got wrong."""

    sampler: str
    setting: str
    problem: Problem
    said: tuple[str, ...]
    surely: tuple[float, float]
    """largest errors less 3 s, of means and of standard deviations; NaN after an error"""
    at_most: tuple[float, float]
    """largest error plus 3 s"""
    figures: dict[str, float]
    seconds: float

    @property
    def wrong(self) -> bool:
        """Beyond the Monte Carlo error."""
        return bool(self.surely[0] > MEAN or self.surely[1] > SPREAD)

    @property
    def right(self) -> bool:
        """Within the limits, whatever the Monte Carlo error."""
        return bool(self.at_most[0] <= MEAN and self.at_most[1] <= SPREAD)


def settings(problem: Problem) -> Iterator[tuple[str, str, Any, dict]]:
    """Sampler, setting, instance or name, and parameters of the estimator."""
    long = 1.0 / problem.exact.largest  # half of the largest stable step
    n = problem.X.shape[0]
    few = max(5, n // 50)  # rows of a minibatch
    yield "default", "defaults", None, {}
    yield "default", "small batch", UnderdampedLangevin(1.5, batch_size=5), {}
    yield "default", "short", None, SHORT
    if "prior_precision" in problem.given:
        yield "stream", "sorted", None, {}
        yield "stream", "quarter kept", None, {}
    yield "sgfs", "defaults", "sgfs", {}
    yield "sgfs", "poor structure", SGFS(0.5, "diag", batch_size=few), FEWER
    yield "sgfs", "short", SGFS(batch_size=few), SHORT
    yield "constant_sgd", "defaults", "constant_sgd", {}
    yield "constant_sgd", "poor structure", ConstantSGD("scalar", batch_size=few), FEWER
    yield "constant_sgd", "short", ConstantSGD("diag", batch_size=few), SHORT
    yield "momentum_sgd", "defaults", "momentum_sgd", {}
    yield "momentum_sgd", "poor structure", MomentumSGD(0.5, "diag", batch_size=few), FEWER
    yield "momentum_sgd", "short", MomentumSGD(batch_size=few), SHORT
    yield "iasg", "defaults", "iasg", {}
    yield "iasg", "poor structure", IASG(structure="scalar", batch_size=few), FEWER
    yield "iasg", "short window", IASG(window=5, batch_size=few), FEWER
    yield "sgld", "defaults", "sgld", {}
    yield "sgld", "step too large", SGLD(long, batch_size=few), FEWER
    yield "sgld", "short", SGLD(preconditioner="diag", batch_size=few), SHORT
    yield "sghmc", "defaults", "sghmc", {}
    yield "sghmc", "step too large", SGHMC(0.3, batch_size=few), {"n_draws": 60}
    yield "sghmc", "short", SGHMC(batch_size=few), SHORT
    yield "sgd", "defaults", "sgd", {}
    yield "sgd", "step too large", SGD(long, batch_size=few), FEWER
    yield "sgd", "small batch", SGD(batch_size=few), FEWER
    yield "hmc", "defaults", "hmc", {}
    yield "hmc", "one leapfrog step", HMC(n_leapfrog=1, target_accept=0.3), FEWER
    yield "hmc", "short", HMC(), SHORT


def run(model: Any, problem: Problem, setting: str) -> None:
    """Fit, or follow a stream of rows whose labels are sorted."""
    X, y = problem.X, problem.y
    share = {"sorted": 1.0, "quarter kept": 0.25}.get(setting)
    if share is None:
        model.fit(X, y)
        return
    kept = 16 * share * X.shape[0] * 8 * (X.shape[1] + 1) / 2**20
    more = {"classes": np.unique(y)} if hasattr(model, "predict_proba") else {}
    budget = config_context(working_memory=1024 if share == 1.0 else kept)
    with budget, warnings.catch_warnings(action="ignore"):  # each kind comes once
        for rows in np.array_split(np.argsort(y, kind="stable"), min(10, len(y))):
            model.partial_fit(X[rows], y[rows], **more)
    for kind, text in _warnings_of(model._stream, 1.0).items():
        if kind != "drift":  # that rows are sorted is so, and says nothing of the posterior
            warnings.warn(text, ConvergenceWarning, stacklevel=1)
    model.coef_  # noqa: B018


def fits(problem: Problem, seed: int, samplers: list[str] | None) -> Iterator[Fit]:
    """Every sampler at every setting, or some samplers."""
    linear = problem.kind in ("linear", "noise")
    cls = BayesianLinearRegression if linear else BayesianLogisticRegression
    for name, setting, sampler, more in settings(problem):
        if samplers and name not in samplers:
            continue
        model = cls(sampler, **problem.given, **more, random_state=seed)
        start = process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                run(model, problem, setting)
            except (ValueError, FloatingPointError) as error:
                nothing = (np.nan, np.nan)
                yield Fit(name, setting, problem, (str(error),), nothing, nothing, {}, 0.0)
                continue
        seconds = process_time() - start
        said = [str(one.message) for one in caught if one.category is ConvergenceWarning]
        yield Fit(
            name,
            setting,
            problem,
            tuple(said),
            *errors(model, problem),
            model.diagnostics_,
            seconds,
        )


def errors(model: Any, problem: Problem) -> tuple[tuple[float, float], tuple[float, float]]:
    """Largest errors of means and standard deviations, less and plus three Monte Carlo errors."""
    draws = model.draws_.astype(np.float64)
    weights = None if np.ptp(model.draw_weights_) == 0 else model.draw_weights_
    mean, sd = diagnostics.moments(draws, weights)
    ratio = sd / problem.exact.sd
    away = np.abs(mean - problem.exact.mean) / problem.exact.sd, np.abs(ratio - 1)
    mc = [_ERRORS * ratio * error for error in _monte_carlo(draws, mean, sd, weights)]
    pairs = list(zip(away, mc, strict=True))
    surely, at_most = (
        [float(np.max(off + sign * error)) for off, error in pairs] for sign in (-1, 1)
    )
    return (surely[0], surely[1]), (at_most[0], at_most[1])


def _monte_carlo(
    draws: NDArray, mean: NDArray, sd: NDArray, weights: NDArray | None
) -> tuple[NDArray, NDArray]:
    """Relative Monte Carlo errors of means (in their sd) and of standard deviations."""
    with np.errstate(invalid="ignore", divide="ignore"):
        of_mean = diagnostics.mcse_mean(draws, weights) / sd
        of_square = diagnostics.mcse_mean((draws - mean) ** 2, weights) / (sd * sd)
    return np.nan_to_num(of_mean), 0.5 * np.nan_to_num(of_square)


def interval(k: int, n: int) -> tuple[float, float]:
    """Clopper and Pearson's 95 % interval of a share."""
    low = beta.ppf(0.025, k, n - k + 1) if k else 0.0
    return float(low), float(beta.ppf(0.975, k + 1, n - k)) if k < n else 1.0


def row(sampler: str, setting: str, some: list[Fit]) -> dict:
    """Counts of wrong, silent, right and alarmed."""
    wrong = [fit for fit in some if fit.wrong]
    right = [fit for fit in some if fit.right]
    silent = sum(not fit.said for fit in wrong)
    alarmed = sum(bool(fit.said) for fit in right)
    return {
        "sampler": sampler,
        "setting": setting,
        "fits": len(some),
        "errors": sum(bool(np.isnan(fit.surely[0])) for fit in some),
        "wrong": len(wrong),
        "silent": silent,
        "silent %": 100 * silent / len(some),
        "silent to %": 100 * interval(silent, len(some))[1],
        "right": len(right),
        "alarmed": alarmed,
        "alarmed %": 100 * alarmed / len(right) if right else None,
        "alarmed to %": 100 * interval(alarmed, len(right))[1] if right else None,
    }


def _in_words(fit: Fit) -> str:
    """What a silent or an alarmed fit was."""
    kind = "silent" if fit.wrong else "alarmed"
    where = f"{fit.sampler}, {fit.setting}: {fit.problem.name}, {fit.problem.kind}"
    sizes = f"{fit.problem.X.shape}, surely {fit.surely}, at most {fit.at_most}"
    return f"{kind}: {where} {sizes} {[one[:40] for one in fit.said]} {fit.figures}"


def main(report: Report, n_problems: int, samplers: list[str] | None) -> None:
    """One row per sampler and setting, and one for all settings of a sampler; then per shape."""
    found: list[Fit] = []
    for seed, problem in enumerate(problems(n_problems, _SEED)):
        some = list(fits(problem, seed, samplers))
        found += some
        if not some:
            continue
        slowest = max(some, key=lambda fit: fit.seconds)
        print(
            f"{seed} {problem.name}, {problem.kind}, {problem.X.shape}: "
            f"{sum(fit.seconds for fit in some):.1f} s, "
            f"{slowest.sampler} with {slowest.setting} {slowest.seconds:.1f} s",
            flush=True,
        )
        for fit in some:
            if (fit.wrong and not fit.said) or (fit.right and fit.said):
                print(_in_words(fit), flush=True)
    rows, shapes = [], []
    for sampler in dict.fromkeys(fit.sampler for fit in found):
        mine = [fit for fit in found if fit.sampler == sampler]
        for setting in dict.fromkeys(fit.setting for fit in mine):
            rows.append(row(sampler, setting, [fit for fit in mine if fit.setting == setting]))
        rows.append(row(sampler, "all", mine))
        for shape in dict.fromkeys(fit.problem.name for fit in mine):
            some = [fit for fit in mine if fit.problem.name == shape]
            shapes.append({"shape": shape} | row(sampler, "all", some))
    names = "" if samplers is None else "_" + "_".join(samplers)
    report.save(rows, claims(rows), name=f"audit{names}")
    report.save(shapes, name=f"audit_shapes{names}", title="shapes")


def claims(rows: list[dict]) -> list[Claim]:
    """Of all samplers, and of those that have to be right."""
    every = [row for row in rows if row["setting"] == "all"]
    ours = [row for row in rows if (row["sampler"], row["setting"]) in RIGHT]
    alarmed = [row["alarmed %"] for row in ours if row["alarmed %"] is not None]
    said = [row["alarmed %"] or 0.0 for row in every if row["sampler"] != "sgd"]
    return [
        Claim(
            "false silence in % of the fits of each sampler",
            [row["silent %"] for row in every],
            high=1.0,
            strict=True,
        ),
        Claim(
            "false alarm in % of the right fits of each sampler but SGD",
            said,
            high=5.0,
            strict=True,
        ),
        *(
            Claim(f"wrong fits: {row['sampler']}, {row['setting']}", row["wrong"], high=0)
            for row in ours
        ),
        Claim("false alarm in % of the right fits where no fit may be wrong", alarmed, high=2.0),
    ]


if __name__ == "__main__":
    benchmark(
        main,
        threads=1,
        n_problems={"type": int, "default": 34},
        samplers={"nargs": "+"},
    )
