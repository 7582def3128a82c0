"""The sampled prior precision of default fits, beside NUTS with the same hyperprior.

    python -m benchmarks.exactness.sampled_precision [--only iris]
    python -m benchmarks.exactness.sampled_precision --many  # five minutes

Columns are standardised. The reference is NumPyro's NUTS in eight chains, whose density is written
here anew: log likelihood, normal prior given lambda, and the density of rho = log lambda. Its
coefficients are non-centred, except for sets with many rows, and its metric is dense.

"mean error" is the difference of the means of rho in standard deviations of the reference, and "sd
ratio" that of the standard deviations. "beyond" is what is beyond two Monte Carlo errors of both
runs: .1 and 10 % are allowed. References are kept in benchmarks/results, see reference.py; to make
one needs the extra ``bench``. Linear regression needs none: the density of rho is known.

--many compares the one precision that fits of more than 1,000 parameters have with the sampled one
that they would have with a matrix, whose limit is raised for that (many_parameters.csv). "away" is
the distance from its mean, in its standard deviations, and "sd ratio" the median over coefficients
of their standard deviations. "independent" columns; "smooth" ones, as of spectra, of which
neighbours are alike; "factors", of which three or ten nearly make up all; sparse rows of "text".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from benchmarks.common import classification
from benchmarks.common.beside_nuts import all_sets, differences, figures, heard
from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.reference import cached
from benchmarks.cost import seconds
from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.linalg import sizes

ERRORS = 2.0
"""Monte Carlo errors that are allowed on top"""
LENGTH = 8, 1500, 4000
"""Chains, steps of warm-up and draws of a reference"""
SHORTER = {"digits": (4, 800, 1500)}
"""of 220 parameters and half an hour"""
CENTRED = "KDD 99", "covertype", "noise", "digits"
"""Sets whose rows know nearly all of the coefficients."""

Set = tuple[NDArray, NDArray]


def digits() -> Set:
    """Ten digits in twenty principal columns."""
    X, y = load_digits(return_X_y=True)
    return PCA(20, random_state=0).fit_transform(X), y


SETS: dict[str, Callable[[], Set]] = {
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "iris": lambda: load_iris(return_X_y=True),
    "digits": digits,
    "separable": classification.separable,
    "noise": classification.noise,
    "few rows": classification.few_rows,
    "sparse truth": classification.sparse_truth,
    "KDD 99": lambda: tuple(part[:2100] for part in classification.kdd99()),
    "covertype": classification.covertype,
}


def _hyperprior(model) -> tuple[float, float, float]:
    scales = model._fit.scales
    return scales.shape, scales.rate, scales.least


def potential(X: NDArray, y: NDArray, model, centred: bool) -> tuple[Callable, int]:
    """Minus the joint log density of (coefficients, intercepts, rho), and its dimension.

    Coefficients are in units of the prior, and times the root of lambda if not centred.
    """
    import jax
    import jax.numpy as jnp

    precision, outputs = model._fit.scales, model.coef_.shape[0]
    unit = np.sqrt(model._fit.prior.unit[: X.shape[1]])
    Z, centre, of_intercept = X / unit, X.mean(axis=0) / unit, model.intercept_precision
    size, rows = outputs * X.shape[1], np.arange(len(y))

    def minus_log_density(q):
        rho, lam = q[-1], jnp.exp(q[-1])
        b = q[:size].reshape(outputs, -1)
        beta = b if centred else b / jnp.sqrt(lam)
        logits = Z @ beta.T + q[size:-1]
        if outputs == 1:
            likelihood = -jnp.logaddexp(0.0, jnp.where(y == 1, -1.0, 1.0) * logits[:, 0]).sum()
        else:
            likelihood = (logits[rows, y] - jax.nn.logsumexp(logits, axis=1)).sum()
        at_means = q[size:-1] + beta @ centre
        prior = -0.5 * of_intercept * (at_means**2).sum()
        prior += precision.shape * rho - precision.rate * lam - precision.least / lam
        prior += -0.5 * lam * (b**2).sum() + 0.5 * size * rho if centred else -0.5 * (b**2).sum()
        return -(likelihood + prior)

    return minus_log_density, size + outputs + 1


def by_nuts(name: str, X: NDArray, y: NDArray, model) -> dict[str, NDArray]:
    """Mean and standard deviation of rho, with effective draws of both and R-hat."""
    import jax
    from numpyro.infer import MCMC, NUTS

    jax.config.update("jax_enable_x64", True)
    minus_log_density, dim = potential(X, y, model, name in CENTRED)
    chains, warm_up, draws = SHORTER.get(name, LENGTH)
    kernel = NUTS(potential_fn=minus_log_density, dense_mass=dim < 400, target_accept_prob=0.95)
    length = {"num_warmup": warm_up, "num_samples": draws, "num_chains": chains}
    mcmc = MCMC(kernel, chain_method="sequential", progress_bar=False, **length)
    start = 0.1 * np.random.default_rng(0).standard_normal((chains, dim))
    start[:, -1] += np.log(model.prior_precision_blocks_["coef"])
    mcmc.run(jax.random.PRNGKey(2012), init_params=start)
    rho = np.asarray(mcmc.get_samples(group_by_chain=True))[..., -1:]
    return figures(rho)


def compare(name: str) -> dict:
    """A default fit and its reference."""
    X, y = SETS[name]()
    X = StandardScaler().fit_transform(np.asarray(X, np.float64)[:, np.std(X, axis=0) > 0])
    y = np.unique(y, return_inverse=True)[1]
    model = BayesianLogisticRegression(random_state=0)
    about_fit = heard(model, X, y)
    file = f"precision_{name}".replace(" ", "_").lower()
    chains, _, draws = SHORTER.get(name, LENGTH)
    about = np.array([*_hyperprior(model), model.intercept_precision, chains, draws])
    reference = cached(file, partial(by_nuts, name, X, y, model), X, y, about)
    mean, sd, _, _, r_hat = (one.item() for one in reference)
    rho = np.log(model.prior_precision_draws_.astype(np.float64))
    ours = {key: one.item() for key, one in figures(rho).items()}
    return {
        "set": name,
        "rows": len(X),
        "parameters": model.draws_.shape[2],
        "sampler": type(model.sampler_).__name__,
        **about_fit,
        "mean": ours["mean"],
        "sd": ours["sd"],
        "NUTS mean": mean,
        "NUTS sd": sd,
        "NUTS R-hat": r_hat,
        **differences(rho, reference, ERRORS),
        "R-hat": ours["r_hat"],
        "ESS": ours["ess"],
    }


# -- more parameters than a matrix is worth ---------------------------------------------------


def of_columns(kind: str, n_rows: int, n_columns: int, rng: np.random.Generator) -> NDArray:
    """Standardised columns that are independent, smooth, or made of a few factors."""
    X = rng.standard_normal((n_rows, n_columns))
    if kind == "smooth":
        place = np.arange(n_columns)
        near = np.exp(-0.5 * ((place[:, None] - place) / (0.1 * n_columns)) ** 2)
        X = X @ np.linalg.cholesky(near + 1e-6 * np.eye(n_columns)).T
    elif kind != "independent":
        n_factors = {"three factors": 3, "ten factors": 10}[kind]
        factors = rng.standard_normal((n_rows, n_factors))
        X = 0.05 * X + factors @ rng.standard_normal((n_factors, n_columns))
    return (X - X.mean(axis=0)) / X.std(axis=0)


def classes(kind: str, shape: tuple[int, int, int], spread: float) -> Set:
    """Rows of classes whose logits have this standard deviation."""
    rng = np.random.default_rng(0)
    X = of_columns(kind, *shape[:2], rng)
    logits = X @ rng.standard_normal((shape[1], shape[2]))
    logits *= spread / logits.std()
    return X, (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)


MANY: dict[str, Callable[[], tuple]] = {
    "independent, 1,200 x 150, 8 classes": partial(classes, "independent", (1200, 150, 8), 1.5),
    "smooth, 1,200 x 200, 6 classes": partial(classes, "smooth", (1200, 200, 6), 1.0),
    "smooth, 1,200 x 200, 6 classes, weak": partial(classes, "smooth", (1200, 200, 6), 0.3),
    "three factors, 1,500 x 150, 8 classes": partial(classes, "three factors", (1500, 150, 8), 0.3),
    "ten factors, 1,500 x 150, 8 classes": partial(classes, "ten factors", (1500, 150, 8), 2.0),
    "text, 20,000 x 1,500, 2 classes": partial(seconds.text, 20_000, 1500),
}


def compare_many(report: Report) -> None:
    """All of these, with and without a matrix."""
    rows, found, limit = [], [], sizes._IN_EVERY_STEP
    for name, data in MANY.items():
        X, y = data()
        model = BayesianLogisticRegression(random_state=0)
        about_fit = heard(model, X, y)
        try:
            sizes._IN_EVERY_STEP = 4000
            sampled = BayesianLogisticRegression(random_state=0)
            sampled.fit(X.toarray() if sparse.issparse(X) else X, y)
        finally:
            sizes._IN_EVERY_STEP = limit
        rho = np.log(sampled.prior_precision_draws_.astype(np.float64))
        away = (np.log(model.prior_precision_blocks_["coef"]) - rho.mean()) / rho.std()
        ratio = np.median(model.draws_.std(axis=(0, 1)) / sampled.draws_.std(axis=(0, 1)))
        rows.append({"set": name, "parameters": model.draws_.shape[2], **about_fit})
        rows[-1] |= {"sampled mean": rho.mean(), "sampled sd": rho.std(), "away": away}
        rows[-1] |= {"sd ratio": ratio}
        found.append(Claim(f"{name}: away", away, -1.0, 1.0))
        found.append(Claim(f"{name}: sd ratio", ratio, 0.85, 1.18))
    report.save(rows, found, name="many_parameters")


def main(report: Report, only: list[str] | None, many: bool) -> None:
    """All sets."""
    if many:
        compare_many(report)
    else:
        all_sets(report, SETS, only, compare)


if __name__ == "__main__":
    benchmark(main, threads=1, only={"nargs": "+"}, many={"action": "store_true"})
