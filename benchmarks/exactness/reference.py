"""Posteriors of regressions by other means than the package's, of which nothing is imported here.

Densities are written from docs/math/priors.md, docs/math/models.md and the docstrings, in JAX. The
posterior under one learned precision, or a given one, is a sum over a grid of its logarithm and an
importance sample of the other parameters: at each node from Student's t with seven degrees of
freedom at the conditional modes, in two widths, and from the prior, so that no weight is far above
the highest likelihood. Modes are followed from the strongest precision to the weakest and back.
Priors with more hyperparameters, and problems whose importance weights are not reliable, take
NumPyro's NUTS, in coordinates in which the prior of the coefficients does not depend on its
precision.

Coefficients ``b`` are in units of the columns, intercepts ``alpha`` at their means, ``own`` are the
other parameters of a family, and ``eta`` the hyperparameters.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from numpy.typing import NDArray

jax.config.update("jax_enable_x64", True)

LEARNED, GIVEN, GROUPS = "learned", "given", "groups"
HORSESHOE, STUDENT_T = "horseshoe", "student_t"
NOISE_PRIOR = (1e-6, 1e-6)  # shape, and rate over the variance of y, of linear regression
INTERCEPT_PRECISION = {"linear": 1e-6}  # else:
OTHER_INTERCEPT_PRECISION = 0.01
LEAST_SCALE = 1e-5  # of robust regression, in units of y, where y is not in steps
SLAB_SCALE, SLAB_DF, T_DF = 2.0, 4.0, 4.0
PAD = 64  # rows are padded to multiples, so that few shapes are compiled
STEP, BELOW, ABOVE = 0.25, 10.5, 4.5  # of the grid of log precision, around that of a weak prior
WIDTHS, SHARES, DF = np.array([1.0, 1.8]), np.array([0.7, 0.3]), 7.0
FROM_PRIOR = 0.4  # of the draws, where the prior of all parameters is proper
BLOCK = 8192
CHAINS, WARM_UP = 4, 1000


class Form(NamedTuple):
    """What a density is compiled for."""

    family: str
    prior: str
    outputs: int
    features: int
    own: int
    group: tuple[int, ...]
    """group of each column"""


class Rows(NamedTuple):
    """Numbers of a density; X in units of the columns, from their means."""

    X: Any
    y: Any
    weight: Any
    unit: Any
    mean: Any
    """of the columns, over their units; 0 for one that has one value, and a coefficient of 0"""
    start: Any
    """mean of the prior of an intercept, or 0, and a typical value"""
    intercept_precision: Any
    own_mean: Any
    own_sd: Any
    noise: Any
    """shape and rate, of linear regression"""
    y_unit: Any
    least: Any
    """scale of robust regression"""
    weak: Any
    """precision of the weak prior"""
    given: Any
    tau: Any


class Result(NamedTuple):
    """Weighted draws of named quantities, and whether they may be trusted."""

    names: list[str]
    draws: NDArray
    weight: NDArray
    method: str
    ess: float
    figure: float
    """Pareto's k of the importance weights, or the largest R-hat"""
    halves: float
    """largest difference of figures of two independent halves, in standard deviations"""
    reliable: bool


# -- the problem ------------------------------------------------------------------------------


def bind(
    family: str, X: NDArray, y: NDArray, weight: NDArray | None = None, prior: Any = LEARNED
) -> tuple[Form, Rows]:
    """A density of rows; `prior` is a name, a given precision, or the group of each column."""
    X, y = np.asarray(X, float), np.asarray(y, float)
    w = np.ones(len(y)) if weight is None else np.asarray(weight, float)
    kind = prior if isinstance(prior, str) else GIVEN if np.isscalar(prior) else GROUPS
    p, total = X.shape[1], w.sum()
    mean, variance, unit = columns(X, w)
    first = (np.sqrt(variance) / np.where(unit > 0, unit, 1.0)) ** 2
    weak = max(first[first > 0].mean(), first.sum() / 10)
    unit = np.where((unit > 0) & (kind != GIVEN), unit, 1.0)
    y_unit, start, own_mean, own_sd, noise = 1.0, 0.0, [], [], (1.0, 1.0)
    outputs, classes = 1, int(y.max()) + 1 if family in ("logistic", "ordinal") else 0
    if family == "logistic" and classes > 2:
        outputs = classes
    elif family == "ordinal":
        shares = np.bincount(y.astype(int), w, classes) + 0.5
        odds = np.cumsum(shares)[:-1] / (shares.sum() - np.cumsum(shares)[:-1])
        start = -np.log(odds[(classes - 2) // 2])
        own_mean, own_sd = [0.0] * (classes - 2), [2.0] * (classes - 2)
    elif family in ("poisson", "negative_binomial", "gamma"):
        start = np.log((w @ y + 0.5) / (total + 1))
        if family != "poisson":
            own_mean, own_sd = [-1.0], [1.5]
    elif family == "robust":
        low, start, high = np.quantile(y, [0.25, 0.5, 0.75], weights=w, method="inverted_cdf")
        sd = np.sqrt(np.average((y - w @ y / total) ** 2, weights=w))
        y_unit = (high - low) / 1.349 or sd or 1.0
        own_mean, own_sd = [np.log(y_unit), 2.0], [2.0, 1.0]
    elif family == "linear":
        start, spread = np.average(y, weights=w), np.average((y - w @ y / total) ** 2, weights=w)
        taken = determined(X, w, float(prior)) if kind == GIVEN else 0.0
        noise = (NOISE_PRIOR[0] - 0.5 * taken, NOISE_PRIOR[1] * spread)
        own_mean, own_sd = [np.log(spread)], [np.inf]
    unit = unit / y_unit
    precision = INTERCEPT_PRECISION.get(family, OTHER_INTERCEPT_PRECISION) / y_unit**2
    pad = -len(y) % PAD
    rows = Rows(
        X=np.pad((X - mean) / unit, ((0, pad), (0, 0))),
        y=np.pad(y, (0, pad), mode="edge"),
        weight=np.pad(w, (0, pad)),
        unit=unit,
        mean=np.where((variance > 0) | (kind == GIVEN), mean, 0.0) / unit,
        start=np.array([0.0 if kind == GIVEN else start, start]),
        intercept_precision=precision,
        own_mean=np.array(own_mean),
        own_sd=np.array(own_sd),
        noise=np.array(noise),
        y_unit=y_unit,
        least=max(LEAST_SCALE * y_unit, 0.5 * step_of(y, total)),
        weak=weak,
        given=float(prior) * y_unit**2 if kind == GIVEN else 1.0,
        tau=1.0,
    )
    group = tuple(prior) if kind == GROUPS else tuple(range(p))
    form = Form(family, kind, outputs, p, len(own_mean), group)
    if kind == HORSESHOE:
        expected = min(max(1.0, 0.1 * p), 0.5 * p)
        rows = rows._replace(tau=expected / (p - expected) / np.sqrt(information(form, rows)))
    return form, rows


def columns(X: NDArray, w: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Means, variances and units: half the root mean square distance from a value of most rows."""
    mean, total = w @ X / w.sum(), w.sum()
    median = np.quantile(X, 0.5, axis=0, weights=w, method="inverted_cdf")
    away = X - median
    others, square = w @ (away != 0), w @ away**2
    variance = np.maximum(w @ (X - mean) ** 2 / total, 0) * (others > 0)
    unit = np.where(others < total / 2, 0.25 * square / np.maximum(others, 1e-300), variance)
    return mean, variance, np.sqrt(unit)


def determined(X: NDArray, w: NDArray, precision: float) -> float:
    """Parameters that the rows determine, which take degrees of freedom from the noise."""
    Z = np.column_stack([X - w @ X / w.sum(), np.ones(len(X))])
    prior = np.append(np.full(X.shape[1], precision), INTERCEPT_PRECISION["linear"])
    known = (Z.T * w) @ Z
    return min(np.trace(np.linalg.solve(known + np.diag(prior), known)), w.sum() - 1)


def step_of(y: NDArray, total: float) -> float:
    """The greatest number of which all differences are multiples, if half of y is repetitions."""
    values = np.unique(y)
    left = np.diff(values) if 1 < len(values) <= total / 2 else np.zeros(0)
    found, rounding = 0.0, 1e-9 * np.abs(values).max()
    while len(left):
        found = left.min()
        left = np.abs(left - found * np.rint(left / found))
        left = left[left > rounding]
    return float(found)


def information(form: Form, rows: Rows) -> float:
    """Mean information about a coefficient where all are 0, beside the intercept."""
    if form.family == "logistic":
        each = 1 / form.outputs * (1 - 1 / form.outputs) if form.outputs > 1 else 0.25
    elif form.family == "robust":  # expected, at the centre of the priors
        scale, nu = scale_and_freedom(rows, rows.own_mean)
        each = (nu + 1) / (nu + 3) / scale**2
    elif form.family == "linear":
        each = 1.0
    else:
        theta = jnp.append(jnp.zeros(form.features), starting(form, rows)[form.features :])
        if form.own and form.family != "ordinal":
            theta = theta.at[-1].set(0.0)  # a dispersion of 1
        blank = rows._replace(X=jnp.zeros_like(rows.X))

        def at(shift: Any) -> Any:
            return log_likelihood(form, blank, theta.at[form.features].add(shift))

        each = -jax.grad(jax.grad(at))(0.0) / rows.weight.sum()
    spread = np.asarray(rows.weight) @ np.asarray(rows.X) ** 2
    return float(each * spread.mean())


# -- densities --------------------------------------------------------------------------------


def split(form: Form, theta: Any) -> tuple[Any, Any, Any]:
    """Coefficients (outputs, features), intercepts (outputs,), own parameters."""
    k = form.outputs * form.features
    b = theta[:k].reshape(form.outputs, form.features)
    return b, theta[k : k + form.outputs], theta[k + form.outputs :]


def scale_and_freedom(rows: Rows, own: Any) -> tuple[Any, Any]:
    """Of robust regression."""
    return rows.least + jnp.exp(own[0]), 1 + jnp.exp(own[1])


def log_likelihood(form: Form, rows: Rows, theta: Any) -> Any:
    """Weighted sum over the rows."""
    b, alpha, own = split(form, theta)
    eta, y = rows.X @ b.T + alpha, rows.y
    if form.outputs > 1:
        codes = y.astype(int)
        each = jnp.take_along_axis(jax.nn.log_softmax(eta), codes[:, None], axis=1)[:, 0]
        return rows.weight @ each
    eta = eta[:, 0]
    if form.family == "logistic":
        each = y * eta - jax.nn.softplus(eta)
    elif form.family == "ordinal":
        cuts = jnp.concatenate([jnp.zeros(1), jnp.cumsum(jnp.exp(own))])
        cuts -= cuts[form.own // 2]  # the middle one is minus the intercept
        k, last = y.astype(int), form.own + 1
        upper, lower = cuts[jnp.minimum(k, last - 1)], cuts[jnp.maximum(k - 1, 0)]
        gap = jnp.exp(own[jnp.clip(k - 1, 0, max(form.own - 1, 0))]) if form.own else 1.0
        inner = (k > 0) & (k < last)
        each = jnp.where(k < last, jax.nn.log_sigmoid(upper - eta), 0.0)
        each += jnp.where(k > 0, jax.nn.log_sigmoid(eta - lower), 0.0)
        each += jnp.where(inner, jnp.log(-jnp.expm1(-gap)), 0.0)
    elif form.family == "poisson":
        each = y * eta - jnp.exp(eta)
    elif form.family == "negative_binomial":
        r = jnp.exp(-own[0])
        log_share = jax.nn.softplus(eta + own[0])  # log(1 + phi mu)
        each = gammaln(y + r) - gammaln(r) + y * (eta + own[0]) - (y + r) * log_share
    elif form.family == "gamma":
        nu = jnp.exp(-own[0])
        each = nu * (jnp.log(nu) - eta - y * jnp.exp(-eta)) + (nu - 1) * jnp.log(y) - gammaln(nu)
    elif form.family == "robust":
        s, nu = scale_and_freedom(rows, own)
        tails = 0.5 * (nu + 1) * jnp.log1p(((y - eta) / s) ** 2 / nu)
        each = gammaln(0.5 * (nu + 1)) - gammaln(0.5 * nu) - 0.5 * jnp.log(nu) - jnp.log(s) - tails
    else:
        each = -0.5 * own[0] - 0.5 * (y - eta) ** 2 * jnp.exp(-own[0])
    return rows.weight @ each


def log_given(form: Form, rows: Rows, theta: Any, ell: Any) -> Any:
    """Prior of the parameters under log precisions of the columns (features,)."""
    b, alpha, own = split(form, theta)
    noise = own[0] if form.family == "linear" else 0.0
    away = alpha - rows.start[0]  # where columns have their means
    value = 0.5 * (ell - noise - jnp.exp(ell - noise) * b**2).sum()
    value += 0.5 * (-noise - jnp.exp(-noise) * rows.intercept_precision * away**2).sum()
    if form.family == "linear":  # of log s^2, with its Jacobian
        return value - rows.noise[0] * noise - rows.noise[1] * jnp.exp(-noise)
    return value - 0.5 * (((own - rows.own_mean) / rows.own_sd) ** 2).sum()


def log_precisions(form: Form, rows: Rows, eta: Any) -> tuple[Any, Any]:
    """Of the columns, and log density of the hyperparameters."""
    least = 0.0 if form.family == "linear" else rows.weak / 1000  # of groups
    if form.prior == GIVEN:
        return jnp.full(form.features, jnp.log(rows.given)), 0.0
    if form.prior == LEARNED:
        return jnp.full(form.features, eta[0]), _one(rows, eta[0])
    if form.prior == GROUPS:
        each = -0.5 * eta - jnp.log1p(rows.weak * jnp.exp(-eta)) - least * jnp.exp(-eta)
        return eta[jnp.array(form.group)], each.sum()
    if form.prior == STUDENT_T:
        w = eta[1:]
        return eta[0] + w, _one(rows, eta[0]) + 0.5 * T_DF * (w - jnp.exp(w)).sum()
    log_tau, log_slab, local = eta[0], eta[1], eta[2:]
    value = _half_cauchy(log_tau - jnp.log(rows.tau)) + _half_cauchy(local).sum()
    value += -0.5 * SLAB_DF * (log_slab + SLAB_SCALE**2 * jnp.exp(-log_slab))
    return jnp.logaddexp(-2 * (log_tau + local), -log_slab), value


def _one(rows: Rows, rho: Any) -> Any:
    """Gamma of shape 1/2 and mean that of the weak prior, which ends at a thousandth of it."""
    lam = jnp.exp(rho) / rows.weak
    return 0.5 * rho - 0.5 * lam - 1e-3 / lam


def _half_cauchy(log_scale: Any) -> Any:
    return log_scale - jnp.log1p(jnp.exp(2 * log_scale))


def log_joint(form: Form, rows: Rows, theta: Any, eta: Any) -> Any:
    """Up to a constant."""
    ell, hyper = log_precisions(form, rows, eta)
    return log_likelihood(form, rows, theta) + log_given(form, rows, theta, ell) + hyper


def starting(form: Form, rows: Rows) -> Any:
    """No effects, and other parameters as in the prior."""
    alpha = jnp.full(form.outputs, rows.start[1])
    return jnp.concatenate([jnp.zeros(form.outputs * form.features), alpha, rows.own_mean])


def quantities(form: Form, rows: Rows, theta: Any, eta: Any) -> tuple[list[str], NDArray]:
    """What a user sees, of draws (n, D) and (n, K)."""
    k, p = form.outputs, form.features
    coef = theta[:, : k * p].reshape(-1, k, p) / rows.unit
    intercept = theta[:, k * p : k * p + k] - coef @ (rows.mean * rows.unit)
    own = theta[:, k * p + k :]
    names = [f"coef {c},{j}" if k > 1 else f"coef {j}" for c in range(k) for j in range(p)]
    parts = [coef.reshape(-1, k * p)]
    if form.family == "ordinal":
        cuts = np.pad(np.cumsum(np.exp(own), axis=1), ((0, 0), (1, 0)))
        parts.append(cuts - cuts[:, [form.own // 2]] - intercept)
        names += [f"threshold {c}" for c in range(parts[-1].shape[1])]
    else:
        if form.family == "robust":
            own = np.log(np.array(scale_and_freedom(rows, own.T))).T
        parts += [intercept, own]
        names += [f"intercept {c}" for c in range(k)] + [f"own {c}" for c in range(form.own)]
    if form.prior in (LEARNED, GROUPS):
        parts.append(eta)
        names += [f"log precision {c}" for c in range(eta.shape[1])]
    return names, np.concatenate(parts, axis=1)


# -- importance sampling ----------------------------------------------------------------------


@partial(jax.jit, static_argnums=0)
def _modes(form: Form, rows: Rows, starts: Any, grid: Any) -> tuple[Any, ...]:
    """Modes at nodes of the grid from each start, roots of covariances, log evidences."""

    def newton(theta, eta, steps):
        density = partial(log_joint, form, rows, eta=eta)

        def step(_, theta):
            slope, bend = jax.grad(density)(theta), -jax.hessian(density)(theta)
            values, axes = jnp.linalg.eigh(bend)
            size = jnp.maximum(jnp.abs(values), 1e-9 * jnp.abs(values).max())
            ahead = axes @ ((axes.T @ slope) / size)
            lengths = jnp.append(0.0, 2.0 ** -jnp.arange(12.0))
            found = jax.vmap(density)(theta + lengths[:, None] * ahead)
            return theta + lengths[jnp.nanargmax(found)] * ahead

        return jax.lax.fori_loop(0, steps, step, theta)

    def here(theta, eta):
        density = partial(log_joint, form, rows, eta=eta)
        values, axes = jnp.linalg.eigh(-jax.hessian(density)(theta))
        size = jnp.maximum(jnp.abs(values), 1e-9 * jnp.abs(values).max())
        return theta, axes / jnp.sqrt(size), density(theta) - 0.5 * jnp.log(size).sum()

    def along(start, grid):
        def node(theta, eta):
            theta = newton(theta, eta, 8)
            return theta, here(theta, eta)

        return jax.lax.scan(node, newton(start, grid[0], 60), grid)

    def both(start):
        last, forth = along(start, grid)
        _, back = along(last, grid[::-1])
        return jax.tree.map(lambda a, b: jnp.stack([a, b[::-1]]), forth, back)

    found = jax.vmap(both)(starts)  # (starts, directions, nodes, ...)
    return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]).swapaxes(0, 1), found)


@partial(jax.jit, static_argnums=0)
def _log_weights(form: Form, rows: Rows, grid: Any, modes: Any, log_share: Any, draws: Any) -> Any:
    """Of draws (theta, node), over the density of the mixture of all modes of the node."""
    centre, root, _ = modes
    inverse = jnp.linalg.inv(root)
    log_det = jnp.linalg.slogdet(inverse)[1]
    dim = centre.shape[-1]
    constant = gammaln(0.5 * (DF + dim)) - gammaln(0.5 * DF) - 0.5 * dim * jnp.log(DF * jnp.pi)
    of_prior = _share_of_prior(form)

    def one(theta, node):
        z = jnp.einsum("mij,mj->mi", inverse[node], theta - centre[node])
        square = (z**2).sum(axis=-1)[:, None] / WIDTHS**2
        log_t = -0.5 * (DF + dim) * jnp.log1p(square / DF) - dim * jnp.log(WIDTHS)
        mixture = log_t + jnp.log(SHARES) + (log_det[node] + log_share[node])[:, None]
        log_q = constant + jnp.log(1 - of_prior) + jax.scipy.special.logsumexp(mixture)
        if of_prior:
            ell, _ = log_precisions(form, rows, grid[node])
            log_p = log_given(form, rows, theta, ell) - 0.5 * dim * jnp.log(2 * jnp.pi)
            log_p += 0.5 * form.outputs * jnp.log(rows.intercept_precision)
            log_p -= jnp.log(rows.own_sd).sum()
            of_node = jax.scipy.special.logsumexp(log_share[node])
            log_q = jnp.logaddexp(log_q, jnp.log(of_prior) + of_node + log_p)
        return log_joint(form, rows, theta, grid[node]) - log_q

    return jax.vmap(one)(*draws)


def _share_of_prior(form: Form) -> float:
    return 0.0 if form.family == "linear" else FROM_PRIOR


def _from_prior(form: Form, rows: Rows, eta: NDArray, rng: np.random.Generator) -> NDArray:
    """Parameters (n, D) under hyperparameters (n, K)."""
    shape = len(eta), form.outputs
    ell = np.asarray(jax.vmap(lambda each: log_precisions(form, rows, each)[0])(eta))
    b = rng.standard_normal((*shape, form.features)) * np.exp(-0.5 * ell)[:, None]
    alpha = rows.start[0] + rng.standard_normal(shape) / np.sqrt(rows.intercept_precision)
    own = rows.own_mean + rows.own_sd * rng.standard_normal((len(eta), form.own))
    return np.concatenate([b.reshape(len(eta), form.outputs * form.features), alpha, own], axis=1)


def importance(form: Form, rows: Rows, n_draws: int, seed: int = 0) -> Result:
    """Under one precision, given or learned."""
    rng = np.random.default_rng(seed)
    around = np.log(rows.weak) + np.arange(ABOVE, -BELOW, -STEP)
    grid = around[:, None] if form.prior == LEARNED else np.zeros((1, 0))
    starts = np.asarray(starting(form, rows))[None]
    if form.family == "robust":  # whose likelihood may have another mode where few rows fit exactly
        starts = np.concatenate([starts, starts])
        starts[1, -2:] -= 6.0, 2.0
    modes = tuple(map(np.asarray, _modes(form, rows, starts, grid)))
    centre, root, log_evidence = modes
    top = np.exp(log_evidence - log_evidence.max())
    share = 0.8 * top / top.sum() + 0.2 * top ** (1 / 3) / (top ** (1 / 3)).sum()
    places = (np.arange(n_draws) + rng.random()) / n_draws
    chosen = np.searchsorted(np.cumsum(share.ravel()), places).clip(0, share.size - 1)
    chosen = rng.permutation(chosen)  # so that halves are alike
    node, mode = np.unravel_index(chosen, share.shape)
    z = rng.standard_normal((n_draws, centre.shape[-1]))
    z *= np.sqrt(DF / rng.chisquare(DF, n_draws))[:, None]
    z *= rng.choice(WIDTHS, n_draws, p=SHARES)[:, None]
    theta = centre[node, mode] + np.einsum("nij,nj->ni", root[node, mode], z)
    prior = rng.random(n_draws) < _share_of_prior(form)
    theta[prior] = _from_prior(form, rows, grid[node[prior]], rng)
    parts = [
        _log_weights(form, rows, grid, modes, np.log(share), (theta[part], node[part]))
        for part in np.arange(n_draws).reshape(-1, BLOCK)
    ]
    log_w = np.concatenate(parts)
    log_w = np.where(np.isfinite(log_w), log_w, -np.inf)
    weight = np.exp(log_w - log_w.max())
    eta = grid[node] + STEP * (rng.random((n_draws, 1)) - 0.5)  # the grid is finer than its width
    names, found = quantities(form, rows, theta, eta[:, : grid.shape[1]])
    ess, k = weight.sum() ** 2 / (weight @ weight), pareto_k(weight)
    weight /= weight.sum()
    halves = _between_halves(found, weight)
    reliable = ess > 1500 and k < 0.7 and halves < 0.2
    return Result(names, found, weight, "importance", ess, k, halves, reliable)


def pareto_k(weight: NDArray) -> float:
    """Shape of the tail of the weights (Zhang & Stephens 2009; Vehtari et al. 2024)."""
    n = int(min(0.2 * len(weight), 3 * np.sqrt(len(weight))))
    tail = np.sort(weight)[-n - 1 :]
    x = tail[1:] - tail[0]
    if not x[0] > 0:
        return float("inf") if x[-1] > 0 else 0.0
    m = 30 + int(np.sqrt(n))
    b = (1 - np.sqrt(m / (np.arange(1, m + 1) - 0.5))) / (3 * x[n // 4]) + 1 / x[-1]
    k = np.log1p(-b[:, None] * x).mean(axis=1)
    log_l = n * (np.log(-b / k) - k - 1)
    share = np.exp(log_l - log_l.max())
    return float(np.log1p(-(share @ b / share.sum()) * x).mean())


# -- what is compared -------------------------------------------------------------------------


def figures(draws: NDArray, weight: NDArray | None = None) -> NDArray:
    """Mean, standard deviation, 5 % and 95 % quantile of each quantity, (4, quantities)."""
    weight = np.full(len(draws), 1 / len(draws)) if weight is None else weight / weight.sum()
    mean = weight @ draws
    sd = np.sqrt(weight @ (draws - mean) ** 2)
    ends = []
    for column in draws.T:
        order = np.argsort(column)
        places = np.cumsum(weight[order]) - 0.5 * weight[order]
        ends.append(np.interp([0.05, 0.95], places, column[order]))
    return np.array([mean, sd, *np.transpose(ends)])


def _between_halves(draws: NDArray, weight: NDArray) -> float:
    """Largest difference of means and quantiles in sds, and half that of the log sds."""
    half = len(draws) // 2
    one, two = figures(draws[:half], weight[:half]), figures(draws[half:], weight[half:])
    shifts = np.abs(one - two)[[0, 2, 3]] / (0.5 * (one[1] + two[1]))
    return float(max(shifts.max(), np.abs(np.log(one[1] / two[1])).max()))


# -- NUTS -------------------------------------------------------------------------------------


def nuts(form: Form, rows: Rows, n_draws: int, seed: int = 0) -> Result:
    """By NumPyro, in four chains and in coordinates that hardly depend on the hyperparameters."""
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
    from numpyro.infer import MCMC, NUTS

    n_hyper = {GIVEN: 0, LEARNED: 1, GROUPS: max(form.group) + 1}.get(
        form.prior, form.features + (2 if form.prior == HORSESHOE else 1)
    )
    k = form.outputs * form.features
    weak = np.full((1, 1), np.log(rows.weak))
    start = np.asarray(starting(form, rows))[None]
    centre, root, _ = (a[0, 0] for a in _modes(form._replace(prior=LEARNED), rows, start, weak))
    # 1 where rows know the coefficient under the weak prior, 0 where the prior does (Gorinova,
    # Moore & Hoffman 2020)
    noise = np.exp(centre[-1]) if form.family == "linear" else 1.0
    sd = np.sqrt((root**2).sum(axis=1))
    centred = np.clip(1 - rows.weak / noise * sd[:k] ** 2, 0, 1)
    if form.prior in (HORSESHOE, STUDENT_T):  # scales of single columns reach farther
        centred = centred**20
    typical = np.full(n_hyper, np.log(rows.weak))
    if form.prior == HORSESHOE:
        typical = np.concatenate([[np.log(rows.tau), np.log(SLAB_SCALE**2)], np.zeros(n_hyper - 2)])
    elif form.prior == STUDENT_T:
        typical[1:] = 0.0
    shift = np.concatenate([centred * centre[:k], centre[k:], typical])
    scale = np.concatenate([sd[:k] ** centred, sd[k:], np.ones(n_hyper)])

    def unpack(z):
        theta, eta = jnp.split(scale * z + shift, [len(centre)])
        ell, _ = log_precisions(form, rows, eta)
        log_sd = -0.5 * ell + (0.5 * theta[-1] if form.family == "linear" else 0.0)
        log_sd = (1 - centred) * jnp.tile(log_sd, form.outputs)
        return theta.at[:k].multiply(jnp.exp(log_sd)), eta, log_sd.sum()

    def potential(z):
        theta, eta, jacobian = unpack(z)
        return -log_joint(form, rows, theta, eta) - jacobian

    kernel = NUTS(potential_fn=potential, dense_mass=True, target_accept_prob=0.99)
    options = {"num_chains": CHAINS, "chain_method": "vectorized", "progress_bar": False}
    mcmc = MCMC(kernel, num_warmup=WARM_UP, num_samples=n_draws // CHAINS, **options)
    begin = 0.3 * np.random.default_rng(seed).standard_normal((CHAINS, len(shift)))
    mcmc.run(jax.random.PRNGKey(seed), init_params=begin, extra_fields=("diverging",))
    chains = np.asarray(mcmc.get_samples(group_by_chain=True))
    theta, eta, _ = jax.vmap(unpack)(chains.reshape(-1, len(shift)))
    names, found = quantities(form, rows, np.asarray(theta), np.asarray(eta))
    by_chain = found.reshape(CHAINS, -1, found.shape[1])
    ess, r_hat = effective_sample_size(by_chain).min(), split_gelman_rubin(by_chain).max()
    diverging = float(np.asarray(mcmc.get_extra_fields()["diverging"]).mean())
    weight, halves = (
        np.full(len(found), 1 / len(found)),
        _between_halves(found, np.ones(len(found))),
    )
    reliable = ess > 400 and r_hat < 1.02 and diverging < 0.01 and halves < 0.3
    of_nuts = ("nuts", float(ess), float(r_hat), halves)
    return Result(names, found, weight, *of_nuts, bool(reliable))


def reference(form: Form, rows: Rows) -> Result:
    """By importance sampling where that is reliable, else by NUTS."""
    if form.prior in (GIVEN, LEARNED):
        for blocks in (8, 64):
            found = importance(form, rows, blocks * BLOCK)
            if found.reliable:
                return found
    found = nuts(form, rows, 6000)
    return found if found.reliable else nuts(form, rows, 24_000, seed=1)


def longer(form: Form, rows: Rows) -> Result:
    """Eight times as long, and by NUTS first: its chains find regions that no mode stands for.

    Neither the weights nor the halves of importance sampling tell of such a region. In robust
    regression with few rows for each column there are some.
    """
    found = nuts(form, rows, 48_000, seed=2)
    if found.reliable or form.prior not in (GIVEN, LEARNED):
        return found
    weighted = importance(form, rows, 64 * BLOCK, seed=2)
    return weighted if weighted.reliable else found
