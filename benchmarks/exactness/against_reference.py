"""Small random problems of seven families, each fit beside a reference that shares no code with it.

    python -m benchmarks.exactness.against_reference
    python -m benchmarks.exactness.against_reference --family gamma --kinds tiny "n < p" --count 2
    python -m benchmarks.exactness.against_reference --prior horseshoe --sampler hmc --first 5

A fit is wrong where, for any coefficient, intercept or threshold, shape parameter or log precision,
a mean is off by more than .3 posterior standard deviations, a ratio of standard deviations is
outside .75 to 1.3, or a 5 % or 95 % quantile is off by more than .35 standard deviations, under at
least two of three random states and against a reference eight times as long as the first one, by
NUTS. The reference (`reference.py`) has to be reliable by its own figures; where it is not even by
NUTS, the problem is undecided and says so. A fit speaks by a ConvergenceWarning about itself: those
that are about the data (a column of one value, overdispersed counts) are no alarms. Fits that are
refused are counted, and so are those that take more than a minute of the processor.

It goes on where it was stopped: a row of the CSV is not computed again, unless with --anew. All
twenty kinds and seven families with five problems each take about an hour on one core, most of it
for compiling; set JAX_COMPILATION_CACHE_DIR to keep what is compiled.
"""

from __future__ import annotations

import signal
import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from benchmarks.common.harness import RESULTS, Claim, Report, benchmark, read_rows, write_csv
from benchmarks.exactness import reference
from benchmarks.exactness.random_problems import FAMILIES, KINDS, Problem, prior_of, problem

MEAN, RATIO, QUANTILE = 0.3, (0.75, 1.3), 0.35
SECONDS = 60.0
PRIORS = ("learned", "given", "groups", "horseshoe", "student_t")
_OF_THE_DATA = (
    "one value in all rows",
    "dispersion",
    "no counts",
    "than the rounding",
    "outweigh all others",
    "no row is left",
)
_KEY = ("family", "kind", "number", "prior", "sampler")


def fitted(one: Problem, prior: str, sampler: str | None, seed: int) -> tuple[Any, list[str]]:
    """A fit, or None where it is refused or takes too long, and what it said."""
    model = FAMILIES[one.family](sampler, **prior_of(prior, one.X)[0], random_state=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            model.fit(one.X, one.y, sample_weight=one.weight)
        except (ValueError, FloatingPointError, TimeoutError, np.linalg.LinAlgError) as error:
            return None, [f"{type(error).__name__}: {error}"]
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    said = [str(each.message) for each in caught if each.category is ConvergenceWarning]
    return model, [text for text in said if not any(part in text for part in _OF_THE_DATA)]


def drawn(model: Any, one: Problem, prior: str) -> NDArray:
    """Draws of the quantities of `reference.quantities`, from the public attributes."""
    own = {
        "robust": ("scale_samples_", "degrees_of_freedom_samples_"),
        "linear": ("noise_variance_samples_",),
        "gamma": ("dispersion_samples_",),
        "negative_binomial": ("dispersion_samples_",),
    }.get(one.family, ())
    blocks = model.model_.unpack(model.draws_)  # of three classes before their mean is taken off
    parts = [blocks["coef"], blocks["intercept"]]
    if one.family == "ordinal":
        parts[1] = model.threshold_samples_
    parts += [np.log(getattr(model, name)) for name in own]
    if prior in (reference.LEARNED, reference.GROUPS):
        parts.append(np.log(model.prior_precision_draws_))
    n_draws = int(np.prod(parts[0].shape[:2]))
    return np.concatenate([each.reshape(n_draws, -1) for each in parts], axis=1)


def beside(found: NDArray, exact: NDArray, names: list[str], held: NDArray) -> dict[str, Any]:
    """The worst differences of figures (4, quantities), but for coefficients that are held."""
    keep = ~held
    off = np.abs(found - exact)[[0, 2, 3]] / exact[1]
    ratio = np.where(keep, found[1] / exact[1], 1.0)
    off[:, held] = 0
    quantile = off[1:].max(axis=0)
    excess = np.max([off[0] / MEAN, quantile / QUANTILE, np.abs(np.log(ratio)) / 0.27], axis=0)
    return {
        "mean off": off[0].max(),
        "lowest ratio": ratio.min(),
        "highest ratio": ratio.max(),
        "quantile off": quantile.max(),
        "worst": names[int(excess.argmax())],
    }


def is_wrong(row: dict[str, Any]) -> bool:
    """Beyond one of the limits."""
    within = RATIO[0] <= row["lowest ratio"] and row["highest ratio"] <= RATIO[1]
    return not (row["mean off"] <= MEAN and row["quantile off"] <= QUANTILE and within)


def row_of(one: Problem, prior: str, sampler: str | None) -> dict[str, Any]:
    """One fit and the reference; where it is wrong, two more and a longer reference."""
    begin = time.process_time()
    model, said = fitted(one, prior, sampler, 0)
    seconds = time.process_time() - begin
    n, p = one.X.shape
    key = (one.family, one.kind, one.number, prior, sampler or "default")
    row: dict[str, Any] = dict(zip(_KEY, key, strict=True))
    row |= {"n": n, "p": p, "seconds": round(seconds, 2), "warned": int(bool(said))}
    row["said"] = said[0][:90] if said else ""
    if model is None:
        return row | {"verdict": "late" if "TimeoutError" in said[0] else "refused"}
    form, rows = reference.bind(one.family, one.X, one.y, one.weight, prior_of(prior, one.X)[1])
    held = np.zeros(drawn(model, one, prior).shape[1], bool)
    if prior != "given":
        held[: form.outputs * p] = np.tile(np.ptp(one.X, axis=0) == 0, form.outputs)

    def compared(model: Any, exact: reference.Result) -> dict[str, Any]:
        of_exact = reference.figures(exact.draws, exact.weight)
        of_fit = reference.figures(drawn(model, one, prior))
        return beside(of_fit, of_exact, exact.names, held)

    exact = reference.reference(form, rows)
    row |= compared(model, exact)
    wrong, silent = int(is_wrong(row)), int(is_wrong(row) and not said)
    if wrong:
        exact = reference.longer(form, rows)
        again = [(model, said), *(fitted(one, prior, sampler, seed) for seed in (1, 2))]
        pairs = [(compared(model, exact), said) for model, said in again if model is not None]
        row |= pairs[0][0]
        wrong = sum(is_wrong(each) for each, _ in pairs)
        silent = sum(is_wrong(each) and not said for each, said in pairs)
    row |= {"wrong of 3": wrong, "silent of 3": silent, "reference": exact.method}
    row |= {"ess": exact.ess, "k or R-hat": exact.figure, "halves": exact.halves}
    row = {key: float(f"{v:.4g}") if isinstance(v, float) else v for key, v in row.items()}
    verdict = "undecided" if not exact.reliable else "wrong" if wrong >= 2 else "right"
    return row | {"verdict": verdict}


def claims(rows: list[dict[str, Any]]) -> list[Claim]:
    """Of all rows."""
    of = {name: [row for row in rows if row["verdict"] == name] for name in ("right", "wrong")}
    silent = sum(row["silent of 3"] > 0 for row in of["wrong"])
    decided = len(of["right"]) + len(of["wrong"])
    alarmed = sum(row["warned"] for row in of["right"])
    late = sum(row["verdict"] == "late" for row in rows)
    of_sgfs = [row for row in of["wrong"] if row["sampler"] == "sgfs"]
    of_sgfs = [row for row in of_sgfs if row["family"] == "logistic"]
    return [
        Claim(f"silent and wrong, of {decided} fits", silent, high=0),
        Claim(
            "false alarms in % of the right fits", 100 * alarmed / max(1, len(of["right"])), high=2
        ),
        Claim(
            f"without a reliable reference in %, of {len(rows)}", _share(rows, "undecided"), high=5
        ),
        Claim("refused in %", _share(rows, "refused"), high=5),
        Claim(f"fits of more than {SECONDS:.0f} s", late, high=0),
        Claim("wrong logistic fits by SGFS", len(of_sgfs), high=2),
        Claim("of these silent", sum(row["silent of 3"] > 0 for row in of_sgfs), high=0),
    ]


def _share(rows: list[dict[str, Any]], verdict: str) -> float:
    return 100 * sum(row["verdict"] == verdict for row in rows) / max(1, len(rows))


def _late(*_: Any) -> None:
    raise TimeoutError(f"{SECONDS} s of the processor")


def main(
    report: Report,
    family: list[str],
    kinds: list[str],
    prior: list[str],
    sampler: list[str],
    first: int,
    count: int,
    anew: bool,
) -> None:
    """Problem by problem; the CSV has all rows that were ever asked for."""
    signal.signal(signal.SIGPROF, _late)
    path = RESULTS / f"{report.name}.csv"
    rows = read_rows(path) if path.exists() else []
    asked = [
        (f, kind, number, p, s)
        for number in range(first, first + count)
        for kind in kinds
        for f in family
        for p in prior
        for s in sampler
    ]
    if anew:
        rows = [row for row in rows if tuple(row[key] for key in _KEY) not in asked]
    done = {tuple(row[key] for key in _KEY) for row in rows}
    for key in asked:
        if key in done:
            continue
        f, kind, number, p, s = key
        rows.append(row_of(problem(f, kind, number), p, None if s == "default" else s))
        print(*rows[-1].values(), flush=True)
        write_csv(path, rows, claims(rows), report.command)
    report.save(rows, claims(rows))


if __name__ == "__main__":
    benchmark(
        main,
        threads=1,
        family={"nargs": "+", "default": list(FAMILIES), "choices": list(FAMILIES)},
        kinds={"nargs": "+", "default": list(KINDS), "choices": list(KINDS)},
        prior={"nargs": "+", "default": ["learned"], "choices": list(PRIORS)},
        sampler={"nargs": "+", "default": ["default"]},
        first={"type": int, "default": 0},
        count={"type": int, "default": 5},
        anew={"action": "store_true"},
    )
