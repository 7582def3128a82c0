"""How often a fit of a network is silent on a wrong result, and how often it warns of a right one.

    python -m benchmarks.exactness.audit_networks
    python -m benchmarks.exactness.audit_networks --n-problems 25

A problem is a data set (iris, wine, breast cancer, 400 digits in ten principal components, two
moons, in turn) and a model (an MLP of few or many units, logistic, tanh or relu, or a DRBM, in
turn). Each sampler by name, and good and bad ones as instances, fits it at temperature 0.1, and the
default also at its own. Each does so from two seeds. Temperature 1 is the subject of
`networks_beside_nuts`, as NUTS samples what is sampled there. A fit is wrong if one of these is,
none of which is a figure that the fit was judged by:

- accuracy on its own rows is below the share of the largest class;
- log loss of rows held out is above that of the class shares;
- the Stein ratio, here from gradients of all rows at the kept draws, is above 2;
- probabilities of rows held out differ from those of the other seed by .1 as root mean square.

It is right if none of them is, by half: accuracy and log loss are better than those of the shares,
the ratio is at most 1.5, and probabilities of two seeds differ by .02 at most. Samplers that go to
a mode on purpose ("sgd"), or average their draws ("iasg"), have no Stein ratio.

A fit speaks by a ConvergenceWarning or an error. Rows are a temperature and a sampler.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_moons
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.exactness.audit import interval
from skbayes_sg import BayesianMLPClassifier, DRBMClassifier
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import HMC, IASG, SGD, SGFS, SGHMC, SGLD, ConstantSGD, MomentumSGD

LOADERS = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "digits": load_digits,
    "two moons": None,
}
MODELS: dict[str, Any] = {
    "MLP, 5 logistic": BayesianMLPClassifier((5,)),
    "MLP, 30 relu": BayesianMLPClassifier((30,), "relu"),
    "MLP, 5 tanh": BayesianMLPClassifier((5,), "tanh"),
    "MLP, 30 logistic": BayesianMLPClassifier((30,)),
    "DRBM, 5": DRBMClassifier(5),
    "DRBM, 30": DRBMClassifier(30),
}
NAMES = ("sgfs", "sghmc", "sgld", "sgd", "constant_sgd", "momentum_sgd", "iasg", "hmc")
SHORT = {"n_draws": 20, "burn_in": 20, "thin": 1}
_POINTS = 200  # draws at which gradients of all rows are taken


class Split(NamedTuple):
    """Rows to learn from, and rows held out."""

    X: NDArray
    X_test: NDArray
    y: NDArray
    y_test: NDArray


def split_of(name: str, seed: int) -> Split:
    """A third is held out; of digits all but 400."""
    if name == "two moons":
        X, y = make_moons(300, noise=0.2, random_state=seed)
    else:
        X, y = LOADERS[name](return_X_y=True)
    if name == "digits":
        X = PCA(10, random_state=0).fit_transform(X)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    size: Any = 400 if name == "digits" else 2 / 3
    return Split(*train_test_split(X, y, train_size=size, stratify=y, random_state=seed))


def settings() -> Iterator[tuple[str, Any, dict]]:
    """A name of the row, the sampler, and parameters of the estimator."""
    yield "default", None, {}
    for name in NAMES:
        yield name, name, {}
    yield "sgfs", SGFS(0.0), {}
    yield "sgfs", SGFS(0.0, "diag", batch_size=20), {}
    yield "sgfs", SGFS(2.0, "diag"), {}
    yield "sgfs", SGFS(6.0, "kron"), SHORT
    yield "sghmc", SGHMC(0.3), {}
    yield "sghmc", SGHMC(1e-5), SHORT
    yield "sgld", SGLD(1e-2), {}
    yield "sgld", SGLD(1e-8), SHORT
    yield "sgd", SGD(1.0, batch_size=20), {}
    yield "constant_sgd", ConstantSGD("diag", batch_size=20), {}
    yield "momentum_sgd", MomentumSGD(0.5, "diag", batch_size=20), {}
    yield "iasg", IASG(structure="diag", batch_size=20), {}
    yield "hmc", HMC(1), SHORT


def cases() -> Iterator[tuple[float | None, str, Any, dict]]:
    """Temperature, row, sampler, parameters."""
    for temperature in (None, 0.1):
        for name, sampler, more in settings():
            if temperature is not None or sampler is None:
                yield temperature, name, sampler, more


class Fit(NamedTuple):
    """A fit that ended, what it said, and what it is judged by."""

    said: list[str]
    gain: float
    """accuracy on its own rows, less the share of the largest class"""
    loss: float
    """log loss of rows held out, over that of the class shares"""
    stein: float
    """NaN where it has no meaning"""
    proba: NDArray


def fitted(model: Any, split: Split) -> Fit | None:
    """None after an error, which names the cause."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(split.X, split.y)
        except (ValueError, FloatingPointError):
            return None
    said = [str(one.message) for one in caught if one.category is ConvergenceWarning]
    shares = np.bincount(split.y) / len(split.y)
    proba = model.predict_proba(split.X_test)
    return Fit(
        said,
        model.score(split.X, split.y) - shares.max(),
        log_loss(split.y_test, proba) / log_loss(split.y_test, np.tile(shares, (len(proba), 1))),
        stein(model, split) if model.sampler_.draws_are_points else np.nan,
        proba,
    )


def stein(model: Any, split: Split) -> float:
    """Drawn over wanted variance, by gradients of all rows at evenly spaced draws."""
    y = model.model_.encode(split.y, split.X.dtype)
    posterior = Posterior.of(model.model_, split.X, y, model.prior_precision_)
    draws = model.draws_[:, :: max(1, model.draws_[..., 0].size // _POINTS)].astype(np.float64)
    theta = draws.reshape(-1, draws.shape[-1])
    gradient = posterior.tempered(model.diagnostics_["temperature"]).full_gradient(theta)
    return float(-((theta - theta.mean(axis=0)) * gradient).mean())


def diagnosed(fit: Fit, other: Fit, mode: bool) -> tuple[bool, bool]:
    """Whether a fit is wrong, and whether it is right; the stein ratio of a mode does not count."""
    apart = float(np.sqrt(((fit.proba - other.proba) ** 2).mean()))
    ratio = 1.0 if mode or np.isnan(fit.stein) else fit.stein
    wrong = fit.gain < 0 or fit.loss > 1 or apart > 0.1 or ratio > 2
    right = fit.gain > 0 and fit.loss < 1 and apart < 0.02 and ratio < 1.5
    return bool(wrong), bool(right)


def audit(number: int) -> Iterator[dict]:
    """One row for each fit of a problem."""
    data = list(LOADERS)[number % len(LOADERS)]
    kind = list(MODELS)[(number + number // len(MODELS)) % len(MODELS)]
    split = split_of(data, number)
    for temperature, name, sampler, more in cases():
        model = clone(MODELS[kind]).set_params(sampler=sampler, temperature=temperature, **more)
        pair = [fitted(clone(model).set_params(random_state=s), split) for s in (0, 1)]
        key = {"temperature": temperature or 0.05, "sampler": name}
        for fit, other in (pair, pair[::-1]):
            if fit is None:
                yield key
                continue
            wrong, right = diagnosed(fit, other or fit, name == "sgd")
            what = f"{data}, {kind}, {sampler}, {more}"
            yield key | {"what": what, "fit": fit, "wrong": wrong, "right": right}


def row(temperature: float, sampler: str, some: list[dict]) -> dict:
    """Counts of wrong, silent, right and alarmed."""
    ended = [one for one in some if "fit" in one]
    wrong = [one for one in ended if one["wrong"]]
    right = [one for one in ended if one["right"]]
    silent = sum(not one["fit"].said for one in wrong)
    alarmed = sum(bool(one["fit"].said) for one in right)
    return {
        "temperature": temperature,
        "sampler": sampler,
        "fits": len(some),
        "errors": len(some) - len(ended),
        "wrong": len(wrong),
        "silent": silent,
        "silent to %": 100 * interval(silent, len(some))[1],
        "right": len(right),
        "alarmed": alarmed,
    }


def tell(one: dict) -> None:
    """Print a silent or an alarmed fit."""
    fit = one["fit"]
    if (one["wrong"] and not fit.said) or (one["right"] and fit.said):
        kind = "silent" if one["wrong"] else "alarmed"
        figures = [f"{name} {getattr(fit, name):.3g}" for name in fit._fields[1:4]]
        said = [text[:40] for text in fit.said]
        print(kind, one["temperature"], one["what"], *figures, said, flush=True)


def main(report: Report, n_problems: int) -> None:
    """A row and a claim for each temperature and sampler."""
    found: list[dict] = []
    for number in range(n_problems):
        new = list(audit(number))
        found += new
        for one in new:
            if "fit" in one:
                tell(one)
        report.save(*table(found))  # should the rest be cut short


def table(found: list[dict]) -> tuple[list[dict], list[Claim]]:
    """Rows and claims."""
    rows, claims = [], []
    for key in dict.fromkeys((one["temperature"], one["sampler"]) for one in found):
        some = [one for one in found if (one["temperature"], one["sampler"]) == key]
        rows.append(row(*key, some))
        what = f"networks at temperature {key[0]:g}, {key[1]}: wrong fits that are silent"
        claims.append(Claim(what, rows[-1]["silent"], high=0))
    default = [one for one in rows if one["sampler"] == "default"]
    right = sum(one["right"] for one in default)
    share = 100 * sum(one["alarmed"] for one in default) / right if right else None
    claims.append(Claim("false alarm in % of the right fits of defaults", share, high=5.0))
    return rows, claims


if __name__ == "__main__":
    benchmark(main, threads=1, n_problems={"type": int, "default": 6})
