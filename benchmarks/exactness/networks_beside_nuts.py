"""At temperature 1: how often a fit of a network is silent where NUTS says that it is wrong.

    python -m benchmarks.exactness.networks_beside_nuts
    python -m benchmarks.exactness.networks_beside_nuts --first 4 --n-problems 2

Small networks, DRBMs and regressions by networks on rows of which a quarter is held out. Their
posterior is sampled in double precision by NUTS of NumPyro, with a likelihood written in JAX that
shares no code with the package: four chains of 1,000 draws, whose halves agree as the column
"reference" says (the largest distance of two chains' average to that of the other two).

Truth is the total variation between averaged probabilities of rows held out, as mean over rows. Of
a regression they are those of the three thirds of the reference's normal approximation. A fit is
wrong beyond .03. It is right up to .015, if the standard deviation of these probabilities over the
draws is also that of NUTS within 20 %, as median over them; averages of samplers that go to a mode
may be right while their draws are none of a posterior. The default is fitted from five seeds, and
every other sampler from one. A fit speaks by a ConvergenceWarning or an error.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine, make_moons
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from benchmarks.common.harness import Claim, Report, benchmark
from skbayes_sg import BayesianMLPClassifier, BayesianMLPRegressor, DRBMClassifier
from skbayes_sg.samplers import HMC, IASG, SGFS, SGHMC, SGLD, ConstantSGD, MomentumSGD

BAYES: dict[str, Any] = {"prior_precision": 1.0, "temperature": 1.0}
LOGISTIC = BayesianMLPClassifier((4,), **BAYES)
TANH = BayesianMLPClassifier((4,), "tanh", **BAYES)
WAVES = BayesianMLPRegressor((4,), "tanh", **BAYES)
PROBLEMS: list[tuple[str, Any]] = [
    ("wine", LOGISTIC),
    ("iris", DRBMClassifier(3, **BAYES)),
    ("moons", TANH),
    ("diabetes", BayesianMLPRegressor((4,), **BAYES)),
    ("breast cancer", TANH),
    ("waves", WAVES),
]
NAMES = ("sgfs", "sghmc", "sgld", "sgd", "constant_sgd", "momentum_sgd", "iasg", "hmc")
INSTANCES = (
    SGFS(0.0, "diag"),
    SGFS(5.0, "diag"),
    SGFS(5.0, "kron"),
    SGLD(1e-2),
    SGLD(1e-6),
    SGHMC(),
    SGHMC(1e-4),
    ConstantSGD("diag"),
    MomentumSGD(),
    MomentumSGD(structure="diag"),
    IASG(structure="diag"),
    HMC(1),
)
SEEDS = 5  # of the default
WRONG, RIGHT, SPREAD = 0.03, 0.015, 0.2
_CHAINS, _DRAWS = 4, 1000
_THIRDS = norm.ppf([1 / 3, 2 / 3])


def rows_of(name: str) -> list[NDArray]:
    """X, X_test, y, y_test."""
    rng = np.random.default_rng(0)
    if name == "moons":
        X, y = make_moons(200, noise=0.25, random_state=1)
    elif name == "waves":
        X = rng.uniform(-2, 2, (120, 1))
        y = np.sin(2 * X[:, 0]) + 0.2 * rng.standard_normal(120)
    elif name == "breast cancer":
        X, y = load_breast_cancer(return_X_y=True)
        X = PCA(6, random_state=0).fit_transform((X - X.mean(axis=0)) / X.std(axis=0))[:300]
        y = y[:300]
    else:
        loaders: dict[str, Any] = {"iris": load_iris, "wine": load_wine, "diabetes": load_diabetes}
        X, y = (part[:200] for part in loaders[name](return_X_y=True))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    classes = y if y.dtype.kind == "i" else None
    return train_test_split(X, y, random_state=0, stratify=classes)


class Reference(NamedTuple):
    """What NUTS predicts for the rows held out."""

    p: NDArray
    """(rows, classes or thirds)"""
    sd: NDArray
    """over draws"""
    ends: NDArray | None
    """(2, rows): of the thirds of a regression"""
    error: float
    """the largest total variation of two chains to the other two"""


def reference(name: str, model: Any) -> Reference:
    """By NUTS, in double precision."""
    import jax
    import jax.numpy as jnp
    from numpyro.infer import MCMC, NUTS

    jax.config.update("jax_enable_x64", True)
    X, X_test, y, _ = rows_of(name)
    regression, drbm = y.dtype.kind == "f", isinstance(model, DRBMClassifier)
    n_classes = 1 if regression else int(y.max()) + 1
    if drbm:
        h = model.n_hidden
        shapes = [(h, X.shape[1]), (h, n_classes), (h,), (n_classes,)]
    else:
        (h,), n_outputs = model.hidden_layer_sizes, 1 if n_classes < 3 else n_classes
        shapes = [(X.shape[1], h), (h,), (h, n_outputs), (n_outputs,)]
    ends = np.cumsum([0] + [int(np.prod(shape)) for shape in shapes])
    activation: Any = {"logistic": jax.nn.sigmoid, "tanh": jnp.tanh}
    location, scale = (y.mean(), y.std()) if regression else (0.0, 1.0)

    def outputs(theta, rows):
        of_shape = zip(ends[:-1], ends[1:], shapes, strict=True)
        a, b, c, d = (theta[i:j].reshape(shape) for i, j, shape in of_shape)
        if drbm:
            return d + jax.nn.softplus((rows @ a.T)[:, :, None] + b + c[:, None]).sum(axis=1)
        z = activation[model.activation](rows @ a + b) @ c + d
        return jnp.concatenate([0 * z, z], axis=1) if n_classes == 2 else z

    def potential(theta):
        weights, z = theta[: ends[-1]], outputs(theta, X)
        if regression:
            a = theta[-1]  # log of the noise variance
            residuals = (y - location) / scale - z[:, 0]
            loss = 0.5 * jnp.sum(residuals**2 * jnp.exp(-a) + a) + 0.5 * (a / 3) ** 2
        else:
            loss = -jnp.sum(jax.nn.log_softmax(z)[jnp.arange(len(y)), y])
        return loss + 0.5 * jnp.sum(weights**2)

    length = {"num_warmup": 500, "num_samples": _DRAWS, "num_chains": _CHAINS}
    kernel = NUTS(potential_fn=potential, max_tree_depth=7)
    mcmc = MCMC(kernel, **length, chain_method="vectorized", progress_bar=False)
    start = 0.5 * np.random.default_rng(0).standard_normal((_CHAINS, ends[-1] + regression))
    mcmc.run(jax.random.PRNGKey(0), init_params=start)
    draws = mcmc.get_samples(group_by_chain=True)
    z = np.asarray(jax.vmap(jax.vmap(lambda theta: outputs(theta, X_test)))(draws))
    thirds = None
    if regression:
        mean = location + scale * z[..., 0]
        noise = scale * np.exp(0.5 * np.asarray(draws)[..., -1:])
        width = np.sqrt(mean.var(axis=(0, 1)) + (noise**2).mean())
        thirds = mean.mean(axis=(0, 1)) + width * _THIRDS[:, None]
        p = of_thirds(norm.cdf((thirds[:, None, None] - mean) / noise))
    else:
        p = np.asarray(jax.nn.softmax(z))
    halves = [
        distance(p[[0, i]].mean((0, 1)), np.delete(p, [0, i], 0).mean((0, 1))) for i in (1, 2)
    ]
    return Reference(p.mean(axis=(0, 1)), p.std(axis=(0, 1)), thirds, max(halves))


def of_thirds(below: NDArray) -> NDArray:
    """Probabilities (..., 3) of the thirds, from those (2, ...) of y below either end."""
    return np.stack([below[0], below[1] - below[0], 1 - below[1]], axis=-1)


def distance(p: NDArray, q: NDArray) -> float:
    """Total variation, as mean over rows."""
    return float(0.5 * np.abs(p - q).sum(axis=1).mean())


def predicted(model: Any, X: NDArray, truth: Reference) -> NDArray:
    """Probabilities (draws, rows, classes or thirds)."""
    if truth.ends is None:
        return model.predict_draws(X, kind="mean")
    draws = model.draws_.reshape(-1, model.draws_.shape[-1]).astype(np.float64)
    outputs = model.model_.outputs(draws, X)
    return of_thirds(np.stack([model.model_.distribution(y, outputs) for y in truth.ends]))


def cases() -> Iterator[tuple[str, Any, int]]:
    """Row, sampler, seed."""
    for seed in range(SEEDS):
        yield "default", None, seed
    for name in NAMES:
        yield name, name, 0
    for sampler in INSTANCES:
        yield type(sampler).__name__, sampler, 0


def audit(number: int) -> Iterator[dict]:
    """One dict for each fit of a problem."""
    name, model = PROBLEMS[number]
    truth = reference(name, model)
    X, X_test, y, _ = rows_of(name)
    for row, sampler, seed in cases():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit = clone(model).set_params(sampler=sampler, random_state=seed)
            try:
                fit.fit(X, y)
            except (ValueError, FloatingPointError):
                yield {"sampler": row, "reference": truth.error}
                continue
        said = [str(one.message) for one in caught if one.category is ConvergenceWarning]
        p = predicted(fit, X_test, truth)
        off = distance(p.mean(axis=0), truth.p)
        spread = float(np.median(p.std(axis=0) / np.maximum(truth.sd, 1e-6)))
        wrong, right = off > WRONG, off <= RIGHT and abs(spread - 1) <= SPREAD
        if (wrong and not said) or (right and said):
            error = fit.diagnostics_["prediction_error"]
            print(name, type(model).__name__, sampler, f"{off:.4f} {error:.4f}", said, flush=True)
        yield {
            "sampler": row,
            "reference": truth.error,
            "off": off,
            "said": bool(said),
            "wrong": wrong,
            "right": right,
            "draws": fit.draws_.shape[1],
        }


def table(found: list[dict]) -> tuple[list[dict], list[Claim]]:
    """Rows and claims."""
    rows = []
    for name in dict.fromkeys(one["sampler"] for one in found):
        some = [one for one in found if one["sampler"] == name]
        ended = [one for one in some if "off" in one]
        rows.append(
            {
                "sampler": name,
                "fits": len(some),
                "errors": len(some) - len(ended),
                "wrong": sum(one["wrong"] for one in ended),
                "silent": sum(one["wrong"] and not one["said"] for one in ended),
                "right": sum(one["right"] for one in ended),
                "alarmed": sum(one["right"] and one["said"] for one in ended),
                "off": float(np.median([one["off"] for one in ended])) if ended else np.nan,
                "draws": float(np.median([one["draws"] for one in ended])) if ended else np.nan,
                "reference": max(one["reference"] for one in some),
            }
        )
    count = {key: sum(row[key] for row in rows) for key in ("silent", "right", "alarmed")}
    share = 100 * count["alarmed"] / count["right"] if count["right"] else None
    claims = [
        Claim("networks at temperature 1: wrong fits that are silent", count["silent"], high=0),
        Claim("networks at temperature 1: alarms in % of the right fits", share, high=2.0),
        Claim(
            "networks at temperature 1: total variation between halves of NUTS",
            max(row["reference"] for row in rows),
            high=RIGHT / 2,
        ),
    ]
    return rows, claims


def main(report: Report, first: int, n_problems: int) -> None:
    """A row for each sampler."""
    found: list[dict] = []
    for number in range(first, min(first + n_problems, len(PROBLEMS))):
        found += audit(number)
        report.save(*table(found))  # should the rest be cut short


if __name__ == "__main__":
    benchmark(
        main,
        threads=1,
        first={"type": int, "default": 0},
        n_problems={"type": int, "default": len(PROBLEMS)},
    )
