"""Groups of columns and sparse priors, beside NUTS with the same model.

    python -m benchmarks.exactness.hierarchical [--only barley]

Mixed models: yields of barley (Fisher's field trials: random intercepts of varieties and sites),
extramarital affairs (1,500 rows of Fair 1978: random intercepts of both occupations), and eight
schools, made up, with few rows each. Slopes by subject, crossed and nested factors stand beside
restricted maximum likelihood too (common/mixed_models.py; ``mixed_models.csv``), and so do 500
students crossed with 100 lecturers in 5,000 rows. Sparse priors: 420 rows of 100 columns of which
five matter, under the horseshoe and Student's t, and fewer rows than columns, of which three
matter: 100 of 150 under the horseshoe, as a regression and as two classes, and 60 of 100 under
Student's t, as a regression.

The reference is NumPyro's NUTS in eight chains, whose density is written here anew, non-centred.
Under Student's t with more columns than rows it is that of the scales, with coefficients and noise
integrated out: the noise may be so small that coefficients interpolate the rows, and chains of
coefficients hardly come there. "mean error" is the worst difference of means of coefficients and of
log precisions of groups (beside REML of the log noise variance too), in standard deviations of the
reference, and "sd ratio" the standard deviation that is farthest from the reference's. "beyond" is
what is beyond four Monte Carlo errors of both runs, since the worst of many counts: .1 and 10 % are
allowed.

References are kept in benchmarks/results, see reference.py; to make one needs the extra ``bench``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from benchmarks.common import classification, mixed_models
from benchmarks.common.beside_nuts import all_sets, differences, figures, heard
from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.mixed_models import Mixed
from benchmarks.common.reference import cached
from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression
from skbayes_sg.priors import Horseshoe

ERRORS = 4.0
"""Monte Carlo errors that are allowed on top"""
CHAINS, WARM_UP, DRAWS = 8, 1500, 3000


class Problem(NamedTuple):
    """Rows, groups of columns, and the rest of the prior."""

    X: NDArray
    y: NDArray
    linear: bool
    prior: dict[str, Any]
    mixed: Mixed | None = None
    """The table of a regression with random effects whose REML is known"""
    integrated: bool = False
    """Whether the reference has coefficients and noise integrated out"""


def indicators(labels) -> NDArray:
    """One column for each label."""
    return (np.asarray(labels)[:, None] == np.unique(labels)).astype(float)


def grouped(y: NDArray, linear: bool, **parts: NDArray) -> Problem:
    """Parts of columns, each a group."""
    X, groups, start = np.column_stack(list(parts.values())), {}, 0
    for name, part in parts.items():
        groups[name] = range(start, start + part.shape[1])
        start += part.shape[1]
    return Problem(X, y, linear, {"prior_groups": groups})


def barley() -> Problem:
    """Bushels per acre in 1931 and 1932."""
    from vega_datasets import local_data

    rows = local_data.barley()
    year = indicators(rows["year"])[:, 1:]
    sites, varieties = indicators(rows["site"]), indicators(rows["variety"])
    y = rows["yield"].to_numpy()
    return grouped(y, True, year=year, variety=varieties, site=sites)


def affairs() -> Problem:
    """Whether there was an affair, of 1,500 women."""
    from statsmodels.api import datasets

    rows = datasets.fair.load_pandas().data.sample(1500, random_state=0)
    slopes = rows[["rate_marriage", "age", "yrs_married", "children", "religious", "educ"]]
    own, husband = indicators(rows["occupation"]), indicators(rows["occupation_husb"])
    y = (rows["affairs"] > 0).to_numpy().astype(int)
    slopes = StandardScaler().fit_transform(slopes)
    return grouped(y, False, slopes=slopes, own=own, husband=husband)


def schools() -> Problem:
    """Whether pupils pass, twenty in each of eight schools, by a mark."""
    rng = np.random.default_rng(8)
    school, mark = np.repeat(np.arange(8), 20), rng.standard_normal((160, 1))
    logit = 0.8 * mark[:, 0] + 0.5 * rng.standard_normal(8)[school]
    y = (logit + rng.logistic(size=160) > 0).astype(int)
    return grouped(y, False, mark=mark, school=indicators(school))


def sleepstudy() -> Problem:
    """Intercepts and slopes by subject, which are independent."""
    mixed = mixed_models.sleepstudy()
    x, subject = mixed.rows[["x"]].to_numpy(float), indicators(mixed.rows["subject"])
    y = mixed.rows["y"].to_numpy()
    return grouped(y, True, x=x, intercepts=subject, slopes=x * subject)._replace(mixed=mixed)


def factors(mixed: Mixed) -> Problem:
    """A column for each level."""
    parts = {name: indicators(mixed.rows[name]) for name in mixed.effects}
    x, y = mixed.rows[["x"]].to_numpy(float), mixed.rows["y"].to_numpy()
    return grouped(y, True, x=x, **parts)._replace(mixed=mixed)


def sparse(prior: Any) -> Problem:
    """Five of a hundred columns matter."""
    X, y = classification.sparse_truth()
    return Problem(StandardScaler().fit_transform(X[:420]), y[:420], False, {"prior": prior})


def wide(linear: bool) -> Problem:
    """Three of 150 columns matter, and there are 100 rows.

    With ten times the draws of a default fit: the standard deviation of a column that is in the
    spike is decided by its rare visits to the slab.
    """
    rng = np.random.default_rng(1)
    X = rng.standard_normal((100, 150))
    outputs = X[:, :3] @ [3.0, -2.0, 1.0]
    y = outputs + rng.standard_normal(100) if linear else outputs + rng.logistic(size=100) > 0
    how = {"prior": Horseshoe(5), "n_draws": 4096}
    return Problem(X, y if linear else y.astype(int), linear, how)


def outliers() -> Problem:
    """Three of a hundred columns matter, and there are sixty rows."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 100))
    y = X[:, :3] @ [3.0, -2.0, 1.0] + rng.standard_normal(60)
    return Problem(X, y, True, {"prior": "student_t"}, integrated=True)


SETS: dict[str, Callable[[], Problem]] = {
    "barley": barley,
    "affairs": affairs,
    "schools": schools,
    "sleepstudy": sleepstudy,
    "crossed": lambda: factors(mixed_models.crossed()),
    "nested": lambda: factors(mixed_models.nested()),
    "horseshoe": lambda: sparse("horseshoe"),
    "horseshoe, five": lambda: sparse(Horseshoe(expected_nonzero=5)),
    "student_t": lambda: sparse("student_t"),
    "student_t, wide": outliers,
    "wide, regression": lambda: wide(linear=True),
    "wide, classes": lambda: wide(linear=False),
}


def log_precisions(scales: Any, eta: Any) -> tuple[Any, Any]:
    """Of the groups, and the log density of eta (jax)."""
    import jax.numpy as jnp

    if hasattr(scales, "log_tau"):
        log_tau, log_slab, local = eta[0], eta[1], eta[2:]
        value = log_tau - jnp.logaddexp(2 * scales.log_tau, 2 * log_tau)
        value += (local - jnp.log1p(jnp.exp(2 * local))).sum()
        value -= scales.half_df * log_slab + scales.rate * jnp.exp(-log_slab)
        slab = jnp.exp(log_slab)
        tau2 = jnp.exp(2 * (log_tau + local))
        return -jnp.log(slab * tau2 / (slab + tau2)), value
    shared = scales._shared if hasattr(scales, "_shared") else scales
    rho = eta[: shared.dim]
    value = -shared.least * jnp.exp(-rho)
    if shared is scales:  # half-Cauchy
        value += -0.5 * rho - jnp.log1p(scales.unit * jnp.exp(-rho))
        return rho, value.sum()
    value += shared.shape * rho - shared.rate * jnp.exp(rho)
    w = eta[1:]
    return rho + w, value.sum() + scales.half_df * (w - jnp.exp(w)).sum()


def potential(problem: Problem, model: Any) -> tuple[Callable, Callable, int]:
    """Minus the log density of z, intercept, log noise and eta; what is compared; the dimension.

    What is compared is a function of a draw, and of a key that it may draw more with.
    """
    import jax.numpy as jnp

    X, y, scales, prior = problem.X, problem.y, model._fit.scales, model._fit.prior
    k = X.shape[1]
    unit, group, centre = np.sqrt(prior.unit[:k]), scales.group[:k], X.mean(axis=0)
    middle = prior.mean[k]
    sign = 2.0 * y - 1
    # one coefficient that rows know well is centred: else a curved ridge with its precision
    loose = np.ones(k) if problem.mixed is None else 1.0 * (np.bincount(group)[group] > 1)
    if problem.linear:  # sums of squares by a triangular factor, of rows no more than parameters
        Q, R = np.linalg.qr(np.column_stack([np.ones(len(y)), X - centre]))
        away = (y - middle) @ Q
        squares = ((y - middle) ** 2).sum() - (away**2).sum()

    def parts(q):
        eta = q[k + 2 :]
        ell, of_eta = log_precisions(scales, eta)
        noise = q[k + 1]
        root = jnp.exp(0.5 * noise) if problem.linear else 1.0
        beta = root * q[:k] * jnp.exp(-0.5 * loose * ell[group]) / unit
        return beta, q[k] * root + middle, noise, ell, of_eta

    def minus_log_density(q):
        beta, at_means, noise, ell, of_eta = parts(q)
        rest = (1 - loose) * ell[group]
        value = of_eta + 0.5 * (rest - jnp.exp(rest) * q[:k] ** 2).sum()
        value -= 0.5 * model.intercept_precision * q[k] ** 2
        if problem.linear:
            theta = jnp.concatenate([at_means[None] - middle, beta])
            rest = squares + ((away - R @ theta) ** 2).sum()
            value -= 0.5 * len(y) * noise + 0.5 * jnp.exp(-noise) * rest
            value -= prior.shape * noise + prior.rate * jnp.exp(-noise)
        else:
            outputs = at_means + (X - centre) @ beta
            value -= jnp.logaddexp(0.0, -sign * outputs).sum() + 0.5 * noise**2
        return -value

    def compared(q, key):
        beta, at_means, noise, ell, _ = parts(q)
        found = [beta, at_means[None] - beta @ centre]
        found += [ell] if problem.mixed is None else [ell - noise, noise[None]]
        return jnp.concatenate(found)

    return minus_log_density, compared, k + 2 + scales.dim


def of_scales(problem: Problem, model: Any) -> tuple[Callable, Callable, int]:
    """As `potential`, of eta alone: what is compared is drawn given it.

    y is normal given eta and the noise, whose inverse gamma prior makes it Student's t. Draws of
    coefficients are those of the prior, corrected by what they leave of y (Matheron's rule).
    """
    import jax
    import jax.numpy as jnp

    scales, prior, (n, k) = model._fit.scales, model._fit.prior, problem.X.shape
    centre, unit, group = problem.X.mean(axis=0), prior.unit[:k], scales.group[:k]
    Z = np.column_stack([problem.X - centre, np.ones(n)])  # the intercept at the means is last
    away, shape = problem.y - prior.mean[k], prior.shape + 0.5 * n

    def given(eta):
        ell, of_eta = log_precisions(scales, eta)
        variance = jnp.append(jnp.exp(-ell[group]) / unit, 1 / model.intercept_precision)
        factor = jax.scipy.linalg.cho_factor((Z * variance) @ Z.T + jnp.eye(n), lower=True)
        rate = prior.rate + 0.5 * away @ jax.scipy.linalg.cho_solve(factor, away)
        return ell, variance, factor, rate, of_eta

    def minus_log_density(eta):
        _, _, factor, rate, of_eta = given(eta)
        return jnp.log(factor[0].diagonal()).sum() + shape * jnp.log(rate) - of_eta

    def compared(eta, key):
        ell, variance, factor, rate, _ = given(eta)
        of_noise, of_prior, of_rows = jax.random.split(key, 3)
        root = jnp.sqrt(rate / jax.random.gamma(of_noise, shape))
        theta = root * jnp.sqrt(variance) * jax.random.normal(of_prior, (k + 1,))
        left = away - Z @ theta - root * jax.random.normal(of_rows, (n,))
        theta += variance * (Z.T @ jax.scipy.linalg.cho_solve(factor, left))
        at_means = theta[k] + prior.mean[k]
        return jnp.concatenate([theta[:k], (at_means - theta[:k] @ centre)[None], ell])

    return minus_log_density, compared, scales.dim


def by_nuts(problem: Problem, model: Any) -> dict[str, NDArray]:
    """Means and standard deviations of what is compared, with effective draws and R-hat."""
    import jax
    from numpyro.infer import MCMC, NUTS

    jax.config.update("jax_enable_x64", True)
    density = of_scales if problem.integrated else potential
    minus_log_density, compared, dim = density(problem, model)
    kernel = NUTS(potential_fn=minus_log_density, target_accept_prob=0.98)
    length = {"num_warmup": WARM_UP, "num_samples": DRAWS, "num_chains": CHAINS}
    mcmc = MCMC(kernel, chain_method="vectorized", progress_bar=False, **length)
    start = 0.1 * np.random.default_rng(0).standard_normal((CHAINS, dim))
    if problem.linear and not problem.integrated:
        start[:, problem.X.shape[1] + 1] += np.log(np.var(problem.y))
    mcmc.run(jax.random.PRNGKey(2012), init_params=start)
    keys = jax.random.split(jax.random.PRNGKey(1), (CHAINS, DRAWS))
    draws = jax.vmap(jax.vmap(compared))(mcmc.get_samples(group_by_chain=True), keys)
    return figures(np.asarray(draws))


def reference_of(name: str, problem: Problem, model: Any) -> list[NDArray]:
    """What `by_nuts` found, computed once."""
    somewhere = np.ones((1, model._fit.scales.dim))  # to know the hyperprior by its density there
    about = np.append(model._fit.scales.log_hyperprior(somewhere), [CHAINS, DRAWS])
    file = "hierarchical_" + name.replace(" ", "_").replace(",", "")
    return cached(file, partial(by_nuts, problem, model), problem.X, problem.y, about)


def compared_draws(model: Any, problem: Problem) -> NDArray:
    """Of coefficients, intercept and log precisions, (chains, draws, quantities).

    Of a mixed model precisions are not in units of the noise, and the log noise variance is last.
    """
    ell, draws = np.log(model.prior_precision_draws_.astype(np.float64)), model.draws_.astype(float)
    k = problem.X.shape[1]
    found = [draws[..., : k + 1]]
    noise = draws[..., k + 1 :]
    found += [ell] if problem.mixed is None else [ell - noise, noise]
    return np.concatenate(found, axis=2)


def beside_reml(
    estimates: list[NDArray],
    problem: Problem,
    model: Any,
    draws: NDArray,
    reference: list[NDArray] | None = None,
) -> list[dict]:
    """Effects of x, and standard deviations of groups and noise: here, by NUTS, and by REML.

    `reference` is NUTS', if it ran. "away" is how far REML is from the posterior mean, in posterior
    standard deviations. Standard deviations are compared by their logarithms: "mean" is then the
    exponential of the mean.
    """
    mixed = problem.mixed
    assert mixed is not None
    k, unit, groups = problem.X.shape[1], np.sqrt(model._fit.prior.unit), [*mixed.effects]
    place = {"x": 0, "intercept": k}
    place |= {name: k + 2 + number for number, name in enumerate(groups)} | {"noise": -1}
    columns = problem.prior["prior_groups"]
    scale = {name: 1 / unit[columns[name][0]] for name in groups} | {"noise": 1.0}
    moments = {} if reference is None else {"NUTS ": reference[:2]}
    moments[""], rows = [draws.mean(axis=(0, 1)), draws.std(axis=(0, 1))], []
    for name, (estimate, error) in zip(place, estimates, strict=True):
        row = {"what": name, "REML": estimate, "REML error": None if np.isnan(error) else error}
        for of, (means, sds) in moments.items():
            mean, sd = means[place[name]], sds[place[name]]
            away = (estimate - mean) / sd
            if name in scale:
                power = 0.5 if name == "noise" else -0.5
                mean, sd = scale[name] * np.exp(power * mean), 0.5 * sd
                away = np.log(estimate / mean) / sd
                sd *= mean
            row |= {f"{of}mean": mean, f"{of}sd": sd, f"{of}away": away}
        rows.append(row)
    return rows


def by_mixed_lm(name: str, problem: Problem) -> list[NDArray]:
    """REML of statsmodels."""
    table = problem.mixed
    assert table is not None
    make = partial(mixed_models.reml, table)
    return cached(f"hierarchical_{name}_reml", make, problem.X, problem.y)


def compare(mixed: list[dict], name: str) -> dict:
    """A fit and its reference; what REML says is added to `mixed`."""
    problem = SETS[name]()
    kind = BayesianLinearRegression if problem.linear else BayesianLogisticRegression
    model = kind(random_state=0, **problem.prior)
    about_fit = heard(model, problem.X, problem.y)
    reference = reference_of(name, problem, model)
    draws = compared_draws(model, problem)
    if problem.mixed is not None:
        beside = beside_reml(by_mixed_lm(name, problem), problem, model, draws, reference)
        mixed += [{"set": name} | row for row in beside]
    return {
        "set": name,
        "rows": len(problem.y),
        "columns": problem.X.shape[1],
        "hyperparameters": model._fit.scales.dim,
        **about_fit,
        **differences(draws, reference, ERRORS),
        "R-hat": model.diagnostics_["r_hat_max"],
        "ESS": model.diagnostics_["ess_min"],
        "NUTS R-hat": reference[4].max(),
        "NUTS ESS": reference[2].min(),
    }


def larger() -> tuple[list[dict], list[Claim]]:
    """Crossed factors of 500 and 100 levels; REML is MixedLM's on fewer."""
    small = factors(mixed_models.crossed())
    ours = np.array([*mixed_models.reml_of_factors(mixed_models.crossed()).values()])
    apart = np.nanmax(np.abs(ours / np.array(by_mixed_lm("crossed", small)) - 1))
    table = mixed_models.crossed(500, 100, 5000)
    problem, name = factors(table), "crossed, 500 x 100"
    model = BayesianLinearRegression(random_state=0, **problem.prior)
    seconds = heard(model, problem.X, problem.y)["seconds"]
    estimates = [*mixed_models.reml_of_factors(table).values()]
    reference, draws = reference_of(name, problem, model), compared_draws(model, problem)
    rows = beside_reml(estimates, problem, model, draws, reference)
    away = [abs(row["away"]) for row in rows]
    beyond = differences(draws, reference, ERRORS)
    found = [
        Claim(f"{name}: CPU seconds", seconds, high=60.0),
        Claim(f"{name}: R-hat", model.diagnostics_["r_hat_max"], high=1.05),
        Claim(f"{name}: effective draws", model.diagnostics_["ess_min"], low=400),
        Claim(f"{name}: mean error beyond Monte Carlo errors", beyond["mean beyond"], high=0.1),
        Claim(f"{name}: sd error beyond Monte Carlo errors", beyond["sd beyond"], high=0.1),
        Claim(f"{name}: REML's distance in posterior standard deviations", away, high=0.5),
        Claim("crossed: estimates and errors over MixedLM's, less 1", float(apart), high=0.01),
    ]
    return [{"set": name} | row for row in rows], found


def main(report: Report, only: list[str] | None) -> None:
    """All sets, and where there are mixed models among them a larger one."""
    mixed: list[dict] = []
    all_sets(report, SETS, only, partial(compare, mixed))
    if mixed:
        more, found = larger()
        title = "beside restricted maximum likelihood"
        report.save(mixed + more, found, name="mixed_models", title=title)


if __name__ == "__main__":
    benchmark(main, threads=1, only={"nargs": "+"})
