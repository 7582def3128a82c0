"""Calibration by simulation: is the posterior the posterior?

    python -m benchmarks.exactness.simulation_calibration [--parts models learned families ...]

Parameters from the prior, data from the model, a fit: the rank of the true parameter among draws is
uniform if the draws are those of the posterior (Talts et al. 2018). Ranked are all parameters, and
the log likelihood of the data, which sees errors that single parameters do not (Modrák et al.
2023). Of a network only functions that do not depend on the order of its units are ranked:
logits of three new rows, and the log likelihood.

"models" are default fits, and a small network at temperature 1. "exact" cases have a p value of all
their quantities (rank_tests.py).

"networks" are a small network of numbers, whose noise variance has its prior. Ranked are its means
of three new rows, the log noise variance and the log likelihood.

"learned" are default fits of data whose prior precision is drawn from the hyperprior. The fits
sample it, and it is ranked too. "separable" are those data of which a plane separates the classes.
"wide" are such fits of fewer rows than columns, of which the first 60 are ranked.

"sparse" are default fits of more columns than rows under the horseshoe and under Student's t, from
whose priors the coefficients are drawn; and of fewer rows than one and a half for a column under
the default prior, of numbers with outliers and of positive ones, from a thousandth to a thousand.

"families" are regressions of 60 rows with a log link, whose dispersion has its prior, and of
ordered classes; and of Student's t.

"samplers" are those of the package on linear regression with known noise, correlated columns, and
minibatches of a tenth of the rows. "near" are those whose step has a small error, known in closed
form: 90 % intervals must cover 87 to 93 % in the mean over quantities. "wrong" are those whose
distribution is not the posterior, by design or by too long a step. They must be detected.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import chain
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.optimize import linprog

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import hmc_draws, posterior_of
from benchmarks.common.rank_tests import diagnose_run, pictures, ranks, spaced
from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
    BayesianRobustRegressor,
)
from skbayes_sg.models import Gamma, GaussianMLP, NegativeBinomial, Ordinal, Poisson, Student
from skbayes_sg.models.log_link import LogLink
from skbayes_sg.models.predictor import Family
from skbayes_sg.priors import Horseshoe, StudentT
from skbayes_sg.samplers import HMC, IASG, SGD, SGFS, SGHMC, SGLD, ConstantSGD, MomentumSGD

SMALLEST_P = {"exact": 0.001, "learned": 0.01}
COVERAGE = {"near": (0.87, 0.93), "learned": (0.885, 0.915)}
"""limits of the coverage of 90 % intervals"""
SHAPE, RATE = 3.0, 2.0
"""inverse-gamma prior of a sampled noise variance"""
LEAST_NOISE = 0.1
"""mean squared residual of a plane, below which data are left out"""
CORRELATION = 0.5
"""of the columns, where samplers are compared"""
EXACT = [None, HMC(), HMC(variance_reduction="control_variate")]
"""None is the default, SGFS with control variates"""
SHORT = {"n_chains": 8, "n_draws": 25, "burn_in": 250, "thin": 8}
LONG = {"n_chains": 8, "n_draws": 25, "burn_in": 500, "thin": 30}
WINDOWS = {"n_chains": 8, "n_draws": 25}

Ranked = tuple[NDArray, NDArray]
"""quantities (Q,) and draws of them (N_RANKED, Q)"""


class Case(NamedTuple):
    """What is simulated, how often, and what is claimed."""

    name: str
    one: Callable[[int], Ranked]
    """simulates, fits, and returns the quantities of a replicate"""
    claim: str = "exact"
    """"exact", "near" (coverage is within its limits), "learned" (both), or "wrong" (must be
    detected)"""
    replicates: int = 1000


# -- models ---------------------------------------------------------------------------------------


def _learned(rng: np.random.Generator, learned: bool, n_columns: int) -> float:
    """The precision 1, or one from the hyperprior of standardised columns."""
    if not learned:
        return 1.0
    unit = max(1.0, n_columns / 10)
    while True:  # rejection: the factor that ends the tail is at most 1
        precision = rng.gamma(0.5, 2.0 * unit)
        if rng.random() < np.exp(-1e-3 * unit / precision):
            return precision


def _columns(rng: np.random.Generator, n_rows: int, n_columns: int) -> NDArray:
    """Standardised columns."""
    X = rng.standard_normal((n_rows, n_columns))
    return (X - X.mean(axis=0)) / X.std(axis=0)


def logistic(
    n_rows: int,
    n_columns: int = 4,
    n_classes: int = 2,
    learned: bool = False,
    separable: bool = False,
    sampler=None,
) -> Callable[[int], Ranked]:
    """Logistic or multinomial regression; the intercepts have precision 1.

    With `separable`, data of which no plane separates the classes are left out.
    """

    def one(replicate: int) -> Ranked:
        rng = np.random.default_rng([n_rows, n_columns, n_classes, learned, replicate])
        n_logits = 1 if n_classes == 2 else n_classes
        precision = _learned(rng, learned, n_columns)
        coef = rng.standard_normal((n_logits, n_columns)) / np.sqrt(precision)
        intercept = rng.standard_normal(n_logits)
        X = _columns(rng, n_rows, n_columns)
        y = _labels(X @ coef.T + intercept, rng)
        truth = np.concatenate([coef.ravel(), intercept])
        if len(np.unique(y)) < n_classes or (separable and not _separated(X, y)):
            return truth[:0], truth[:0]
        model = BayesianLogisticRegression(
            sampler, "learned" if learned else 1.0, intercept_precision=1.0, random_state=replicate
        )
        model.fit(X, y)
        draws = spaced(model.draws_.reshape(-1, len(truth)))
        truth, draws = _with_likelihood(
            truth, draws, lambda theta: _of_labels(theta, X, y, n_logits)
        )
        truth, draws = _of_some_columns(X, truth, draws)
        return _with_precision(truth, draws, precision, model) if learned else (truth, draws)

    return one


def family_of(estimator: Callable, family: Family, n_rows: int) -> Callable[[int], Ranked]:
    """Regression of a family; coefficients and intercept have precision 1."""

    def one(replicate: int) -> Ranked:
        rng = np.random.default_rng([n_rows, family.widest, family.counts, replicate])
        own = np.array(family.own_mean) + np.array(family.own_sd) * rng.standard_normal(
            len(family.own)
        )
        truth = np.append(rng.standard_normal(family.dim - len(own)), own)
        X = _columns(rng, n_rows, family.shapes["coef"][1])
        y = family.draw(family.outputs(truth[None], X), rng)[0]
        if isinstance(family, LogLink) and not (y.any() and (family.counts or (y > 1e-300).all())):
            return truth[:0], truth[:0]
        model = estimator(None, 1.0, intercept_precision=1.0, random_state=replicate).fit(X, y)
        draws = spaced(model.draws_.reshape(-1, len(truth)))
        return _with_likelihood(
            truth, draws, lambda theta: family.log_likelihood(theta[None], X, y).sum()
        )

    return one


class Robust(BayesianRobustRegressor):
    """With priors in the unit from which the data are drawn, not in that of the data."""

    def _make_model(self, data) -> Student:
        return Student(data.n_features, self.fit_intercept)


def ordinal(n_classes: int, n_rows: int) -> Callable[[int], Ranked]:
    """Cumulative logits; data that lack a class are left out."""
    family = Ordinal(3, np.arange(n_classes))

    def one(replicate: int) -> Ranked:
        rng = np.random.default_rng([n_rows, n_classes, replicate])
        truth = np.append(
            rng.standard_normal(4), family.own_sd * rng.standard_normal(n_classes - 2)
        )
        X = _columns(rng, n_rows, 3)
        each = family.predict(truth[None], X)[0].cumsum(axis=0)
        y = (rng.random(n_rows) > each[:-1]).sum(axis=0)
        if len(np.unique(y)) < n_classes:
            return truth[:0], truth[:0]
        model = BayesianOrdinalClassifier(
            None, 1.0, intercept_precision=1.0, random_state=replicate
        )
        draws = spaced(model.fit(X, y).draws_.reshape(-1, len(truth)))
        return _with_likelihood(
            truth, draws, lambda theta: family.log_likelihood(theta[None], X, y).sum()
        )

    return one


def _labels(logits: NDArray, rng: np.random.Generator) -> NDArray:
    """Classes of rows with these logits (n, K), or (n, 1) of two classes."""
    if logits.shape[1] == 1:
        return (logits[:, 0] + rng.logistic(size=len(logits)) > 0).astype(int)
    return np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)


def _of_labels(theta: NDArray, X: NDArray, y: NDArray, n_logits: int) -> float:
    """Log likelihood of the labels."""
    split = n_logits * X.shape[1]
    z = X @ theta[:split].reshape(n_logits, -1).T + theta[split:]
    if n_logits == 1:
        return -float(np.logaddexp(0, np.where(y == 1, -z[:, 0], z[:, 0])).sum())
    return float((z[np.arange(len(y)), y] - np.logaddexp.reduce(z, axis=1)).sum())


def _with_likelihood(truth: NDArray, draws: NDArray, of: Callable[[NDArray], float]) -> Ranked:
    """Parameters and the log likelihood."""
    return np.append(truth, of(truth)), np.column_stack([draws, [of(draw) for draw in draws]])


def _of_some_columns(X: NDArray, truth: NDArray, draws: NDArray) -> Ranked:
    """The first 60 coefficients where rows are fewer than columns, and all that is none."""
    n_rows, n_columns = X.shape
    if n_columns <= n_rows:
        return truth, draws
    kept = np.append(np.arange(min(n_columns, 60)), np.arange(n_columns, len(truth)))
    return truth[kept], draws[:, kept]


def _with_precision(truth: NDArray, draws: NDArray, precision: float, model) -> Ranked:
    """And the prior precision."""
    sampled = spaced(model.prior_precision_draws_.reshape(-1, 1))
    return np.append(truth, precision), np.column_stack([draws, sampled])


def _separated(X: NDArray, y: NDArray) -> bool:
    """Whether a plane separates the classes: a linear program finds one."""
    signed = np.where(y == 1, 1, -1)[:, None] * np.column_stack([X, np.ones(len(X))])
    found = linprog(np.zeros(signed.shape[1]), -signed, -np.ones(len(X)), bounds=(None, None))
    return bool(found.success)


def _of_numbers(theta: NDArray, X: NDArray, y: NDArray) -> float:
    """Log likelihood of numbers given coefficients and the log noise variance."""
    residual = y - X @ theta[:-1]
    return -0.5 * float(residual @ residual * np.exp(-theta[-1]) + len(y) * theta[-1])


def linear(n_rows: int, n_columns: int = 4, learned: bool = False) -> Callable[[int], Ranked]:
    """Linear regression; the noise variance is sampled, and the last parameter is its logarithm.

    Learned ones have no intercept: its prior is around the mean of y, which is not simulated.
    """

    def one(replicate: int) -> Ranked:
        rng = np.random.default_rng([n_rows, n_columns, learned, replicate])
        noise = RATE / rng.gamma(SHAPE)
        precision = np.append(np.full(n_columns, _learned(rng, learned, n_columns)), 1.0)
        coef = rng.standard_normal(n_columns + 1) * np.sqrt(noise / precision)
        Z = np.column_stack([_columns(rng, n_rows, n_columns), np.ones(n_rows)])
        if learned:
            coef, Z = coef[:-1], Z[:, :-1]
        y = Z @ coef + rng.normal(0, np.sqrt(noise), n_rows)
        model = BayesianLinearRegression(
            prior_precision="learned" if learned else 1.0,
            noise_prior=(SHAPE, RATE),
            fit_intercept=not learned,
            intercept_precision=1.0,
            random_state=replicate,
        )
        model.fit(Z[:, :n_columns], y)
        draws = spaced(model.draws_.reshape(-1, len(coef) + 1))
        truth, draws = _with_likelihood(
            np.append(coef, np.log(noise)), draws, lambda theta: _of_numbers(theta, Z, y)
        )
        truth, draws = _of_some_columns(Z[:, :n_columns], truth, draws)
        return _with_precision(truth, draws, precision[0], model) if learned else (truth, draws)

    return one


def sparse(linear: bool, n_rows: int = 20, n_columns: int = 30) -> Callable[[int], Ranked]:
    """More columns than rows under the horseshoe, without an intercept, whose prior is about y.

    Ranked are the first coefficients, the log noise variance of a regression, the log likelihood,
    log tau and log c^2.
    """
    prior, few = Horseshoe(expected_nonzero=3.0), 5
    # the mean information about a coefficient, where all are zero
    tau = 3.0 / (n_columns - 3.0) / np.sqrt(n_rows if linear else n_rows / 4)
    half_df = 0.5 * prior.slab_df

    def one(replicate: int) -> Ranked:
        rng = np.random.default_rng([n_rows, n_columns, linear, replicate])
        X = _columns(rng, n_rows, n_columns)
        noise = RATE / rng.gamma(SHAPE) if linear else 1.0
        tau_drawn = tau * abs(rng.standard_cauchy())
        slab = half_df * prior.slab_scale**2 / rng.gamma(half_df)
        spike = (tau_drawn * np.abs(rng.standard_cauchy(n_columns))) ** 2
        coef = np.sqrt(noise * spike * slab / (spike + slab)) * rng.standard_normal(n_columns)
        how = {"prior": prior, "fit_intercept": False, "random_state": replicate}
        if linear:
            y = X @ coef + rng.normal(0, np.sqrt(noise), n_rows)
            model = BayesianLinearRegression(noise_prior=(SHAPE, RATE), **how)
        else:
            y = _labels((X @ coef)[:, None], rng)
            if np.ptp(y) == 0:
                return np.empty(0), np.empty((0, 0))
            model = BayesianLogisticRegression(**how)
        model.fit(X, y)
        draws = spaced(model.draws_.reshape(-1, n_columns + linear)).astype(float)
        shared = spaced(model._fit.hyper_draws[..., :2].reshape(-1, 2))

        def likelihood(theta: NDArray) -> float:
            if linear:
                return _of_numbers(theta, X, y)
            return _of_labels(np.append(theta, 0.0), X, y, 1)

        truth = np.append(coef, np.log(noise)) if linear else coef
        truth, draws = _with_likelihood(truth, draws, likelihood)
        kept = np.append(np.arange(few), np.arange(n_columns, len(truth)))
        truth = np.concatenate([truth[kept], np.log([tau_drawn, slab])])
        return truth, np.column_stack([draws[:, kept], shared])

    return one


def outliers(n_rows: int = 20, n_columns: int = 30) -> Callable[[int], Ranked]:
    """More columns than rows under Student's t, without an intercept.

    Ranked are the first coefficients, the log noise variance, the log likelihood and log lambda.
    """
    prior, few = StudentT(), 5

    def one(replicate: int) -> Ranked:
        rng = np.random.default_rng([n_rows, n_columns, replicate])
        X = _columns(rng, n_rows, n_columns)
        noise, precision = RATE / rng.gamma(SHAPE), _learned(rng, True, n_columns)
        w = rng.gamma(0.5 * prior.df, 2 / prior.df, size=n_columns)
        coef = np.sqrt(noise / (precision * w)) * rng.standard_normal(n_columns)
        y = X @ coef + rng.normal(0, np.sqrt(noise), n_rows)
        model = BayesianLinearRegression(
            prior=prior, noise_prior=(SHAPE, RATE), fit_intercept=False, random_state=replicate
        )
        model.fit(X, y)
        draws = spaced(model.draws_.reshape(-1, n_columns + 1)).astype(float)
        shared = spaced(model._fit.hyper_draws[..., :1].reshape(-1, 1))
        truth, draws = _with_likelihood(
            np.append(coef, np.log(noise)), draws, lambda theta: _of_numbers(theta, X, y)
        )
        kept = np.append(np.arange(few), np.arange(n_columns, len(truth)))
        truth = np.append(truth[kept], np.log(precision))
        return truth, np.column_stack([draws[:, kept], shared])

    return one


def few_rows(estimator: Callable, family: Family, n_rows: int = 16) -> Callable[[int], Ranked]:
    """A family whose coefficients may fit all rows, without an intercept, under the default prior.

    Data that span more than six orders of magnitude are left out, whatever the parameters.
    """
    n_columns, few = family.shapes["coef"][1], 4

    def one(replicate: int) -> Ranked:
        rng = np.random.default_rng([n_rows, n_columns, family.widest, replicate])
        precision, own_sd = _learned(rng, True, n_columns), np.array(family.own_sd)
        own = np.array(family.own_mean) + own_sd * rng.standard_normal(len(own_sd))
        coef = rng.standard_normal(n_columns) / np.sqrt(precision)
        truth, X = np.append(coef, own), _columns(rng, n_rows, n_columns)
        with np.errstate(over="ignore", invalid="ignore"):
            y = family.draw(family.outputs(truth[None], X), rng)[0]
        if not np.abs(y).max() < 1e3 or (isinstance(family, LogLink) and not y.min() > 1e-3):
            return truth[:0], truth[:0]
        model = estimator(fit_intercept=False, random_state=replicate).fit(X, y)
        draws = spaced(model.draws_.reshape(-1, len(truth))).astype(float)
        sampled = spaced(model.prior_precision_draws_.reshape(-1, 1))
        truth, draws = _with_likelihood(
            truth, draws, lambda theta: family.log_likelihood(theta[None], X, y).sum()
        )
        kept = np.append(np.arange(few), np.arange(n_columns, len(truth)))
        return np.append(truth[kept], precision), np.column_stack([draws[:, kept], sampled])

    return one


def network(n_rows: int = 50, n_units: int = 3) -> Callable[[int], Ranked]:
    """A small network at temperature 1, in longer chains than the default's."""

    def one(replicate: int) -> Ranked:
        rng = np.random.default_rng([n_rows, n_units, replicate])
        X = _columns(rng, n_rows + 3, 2)
        into = X @ rng.standard_normal((2, n_units)) + rng.standard_normal(n_units)
        hidden = 1 / (1 + np.exp(-into))
        z = hidden @ rng.standard_normal(n_units) + rng.standard_normal()
        y = _labels(z[:, None], rng)[:n_rows]
        if len(np.unique(y)) < 2:
            return z[:0], z[:0]
        model = BayesianMLPClassifier(
            n_units,
            prior_precision=1.0,
            temperature=1.0,
            n_chains=16,
            n_draws=60,
            random_state=replicate,
        )
        proba = model.fit(X[:n_rows], y).predict_draws(X, kind="mean")
        logits = np.log(proba[..., 1] / proba[..., 0]).reshape(-1, len(X))
        truth, draws = z, spaced(logits)
        signs = np.where(y == 1, -1, 1)

        def quantities(z: NDArray) -> NDArray:
            return np.append(z[n_rows:], -np.logaddexp(0, signs * z[:n_rows]).sum())

        return quantities(truth), np.stack([quantities(draw) for draw in draws])

    return one


def network_with_noise(n_rows: int = 50, n_units: int = 3) -> Callable[[int], Ranked]:
    """A small network of numbers, by HMC in the unit of its prior: `fit` takes that from y.

    Of data near a plane, whose noise is next to nothing, chains do not find all modes. They are
    left out.
    """
    model = GaussianMLP(2, np.zeros(1), np.ones(1), (n_units,))

    def one(replicate: int) -> Ranked:
        rng = np.random.default_rng([n_rows, n_units, replicate])
        X = _columns(rng, n_rows + 3, 2)
        truth = rng.standard_normal((1, model.dim)) * np.append(np.ones(model.dim - 1), 3.0)
        y = model.draw(model.outputs(truth, X), rng)[0, :n_rows, None]
        plane = np.column_stack([X[:n_rows], np.ones(n_rows)])
        if np.linalg.lstsq(plane, y)[1][0] < LEAST_NOISE * n_rows:
            return truth[0, :0], truth[0, :0]
        posterior = posterior_of(model, X[:n_rows], y, 1.0)
        draws = hmc_draws(posterior, rng.standard_normal((16, model.dim)), rng)

        def quantities(theta: NDArray) -> NDArray:
            z = model.predict(theta, X[n_rows:])[:, 0]
            likelihood = model.log_likelihood(theta, X[:n_rows], y).sum(axis=1)
            return np.column_stack([z, theta[:, -1], likelihood])

        return quantities(truth)[0], quantities(spaced(draws.reshape(-1, model.dim)))

    return one


# -- samplers -------------------------------------------------------------------------------------


def known_noise(sampler, n_rows: int = 200, n_columns: int = 4, **how) -> Callable[[int], Ranked]:
    """Linear regression with noise variance 1 and correlated columns."""

    def one(replicate: int) -> Ranked:
        rng = np.random.default_rng([n_rows, n_columns, replicate])
        coef = rng.standard_normal(n_columns + 1)
        common = rng.standard_normal((n_rows, 1)) * np.sqrt(CORRELATION)
        X = common + rng.standard_normal((n_rows, n_columns)) * np.sqrt(1 - CORRELATION)
        y = X @ coef[:-1] + coef[-1] + rng.standard_normal(n_rows)
        model = BayesianLinearRegression(
            sampler, 1.0, 1.0, intercept_precision=1.0, random_state=replicate, **how
        )
        draws = spaced(model.fit(X, y).draws_.reshape(-1, n_columns + 1))

        def likelihood(theta: NDArray) -> float:
            residual = y - X @ theta[:-1] - theta[-1]
            return -0.5 * float(residual @ residual)

        return _with_likelihood(coef, draws, likelihood)

    return one


def cases(part: str) -> list[Case]:
    """All cases of "models", "learned" or "samplers"."""
    if part == "models":
        return [
            Case("logistic, 200 rows", logistic(200)),
            Case("logistic, 6,000 rows", logistic(6000)),
            Case("linear, noise sampled, 50 rows", linear(50)),
            Case("multinomial, 3 classes, 200 rows", logistic(200, 4, 3)),
            Case("network, 50 rows", network(), replicates=500),
        ]
    if part == "networks":
        return [Case("network with noise, 50 rows", network_with_noise(), replicates=500)]
    if part == "learned":
        listed = [
            Case("logistic, 4 columns", logistic(200, 4, learned=True)),
            Case("logistic, 20 columns", logistic(400, 20, learned=True)),
            Case("logistic, 100 columns", logistic(300, 100, learned=True)),
            Case("separable, 4 columns", logistic(12, 4, learned=True, separable=True)),
            Case("linear, 4 columns", linear(50, 4, learned=True)),
            Case("linear, 60 columns", linear(50, 60, learned=True)),
        ]
        return [case._replace(claim="learned") for case in listed]
    if part == "wide":
        return [
            Case("linear, 30 x 4,100", linear(30, 4100, learned=True), "learned"),
            Case("logistic, 30 x 1,100", logistic(30, 1100, learned=True), "learned", 500),
        ]
    if part == "sparse":
        return [
            Case("horseshoe, linear, 20 x 30", sparse(linear=True), replicates=500),
            Case("horseshoe, classes, 20 x 30", sparse(linear=False), replicates=500),
            Case("Student's t, linear, 20 x 30", outliers(), replicates=500),
            Case(
                "outliers, 16 x 12",
                few_rows(Robust, Student(12, fit_intercept=False)),
                replicates=500,
            ),
            Case(
                "Gamma, 16 x 12",
                few_rows(BayesianGammaRegressor, Gamma(12, fit_intercept=False)),
                replicates=500,
            ),
        ]
    if part == "families":
        return [
            Case("Poisson", family_of(BayesianPoissonRegressor, Poisson(3), 60), replicates=400),
            Case(
                "negative binomial",
                family_of(BayesianNegativeBinomialRegressor, NegativeBinomial(3), 60),
                replicates=400,
            ),
            Case("Gamma", family_of(BayesianGammaRegressor, Gamma(3), 60), replicates=400),
            Case("robust", family_of(Robust, Student(3), 60), replicates=400),
            Case("ordinal, 3 classes", ordinal(3, 60), replicates=400),
        ]
    few = {"batch_size": 20}
    return [
        *[Case(repr(sampler) if sampler else "default", known_noise(sampler)) for sampler in EXACT],
        *[
            Case(repr(sampler), known_noise(sampler, **length), claim, 300)
            for claim, length, sampler in [
                ("exact", SHORT, SGFS(**few)),
                ("exact", LONG, SGFS(alpha=2.0, **few)),
                ("exact", SHORT, ConstantSGD(**few)),
                ("exact", SHORT, MomentumSGD(**few)),
                ("exact", WINDOWS, IASG(**few)),
                ("near", SHORT, ConstantSGD(correction="ou", **few)),
                ("near", LONG, SGFS(alpha=5.0, structure="diag", **few)),
                ("near", LONG, SGLD(**few)),
                ("near", LONG, SGLD(variance_reduction="control_variate")),
                ("near", LONG, SGHMC(**few)),
                ("wrong", LONG, SGLD(step_size=0.002, **few)),
                ("wrong", SHORT, SGFS(alpha=0.0, structure="diag", **few)),
                ("wrong", LONG, ConstantSGD("scalar", **few)),
                ("wrong", LONG, SGD(step_size=0.001, **few)),
                ("wrong", SHORT, SGD(**few)),
            ]
        ],
    ]


# -- the table ------------------------------------------------------------------------------------


def _one(case: Case, replicate: int) -> Ranked:
    """One replicate, in a process of its own, which warns as it likes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return case.one(replicate)


def ranked(case: Case, replicates: int) -> NDArray:
    """Ranks (replicates, Q); those without a fit are left out.

    To leave data out by a rule that looks at the data alone leaves the ranks of others uniform.
    """
    found = Parallel(n_jobs=-1)(delayed(_one)(case, replicate) for replicate in range(replicates))
    return np.array([ranks(*each) for each in found if len(each[0])])


def row_of(case: Case, found: NDArray) -> dict:
    """Figures of a case."""
    ranked = diagnose_run(found)
    return {
        "case": case.name,
        "claim": case.claim,
        "replicates": len(found),
        "quantities": found.shape[1],
        "deviation": ranked.deviation,
        "standardised": ranked.standardised,
        "p value": ranked.p_value,
        "coverage": ranked.coverage,
        "error": ranked.coverage_error,
    }


def claims_of(row: dict) -> list[Claim]:
    """What the row must show."""
    name, kind = row["case"], row["claim"]
    if kind == "wrong":
        most = SMALLEST_P["exact"]
        return [Claim(f"{name} is detected: p value", row["p value"], high=most, strict=True)]
    claims = []
    if kind in SMALLEST_P:
        claims.append(Claim(f"{name}: p value", row["p value"], low=SMALLEST_P[kind]))
    if kind in COVERAGE:
        coverage = f"{name}: coverage of 90 % intervals"
        claims.append(Claim(coverage, row["coverage"], *COVERAGE[kind]))
    return claims


def main(report: Report, parts: list[str], divide: int) -> None:
    """A table and a picture for each part."""
    for part in parts:
        listed = cases(part)
        found = {case.name: ranked(case, case.replicates // divide) for case in listed}
        rows = [row_of(case, found[case.name]) for case in listed]
        claims = [claims_of(row) for row in rows]
        for row, of_row in zip(rows, claims, strict=True):
            row["verdict"] = "FAIL" if any(c.verdict == "FAIL" for c in of_row) else "ok"
        name = f"calibration_{part}"
        report.save(rows, chain(*claims), {name: pictures(found)}, name=name)


if __name__ == "__main__":
    names = ["models", "networks", "learned", "wide", "sparse", "families", "samplers"]
    parts = {"nargs": "+", "choices": names, "default": names}
    fewer = {"type": int, "default": 1, "help": "divides the number of replicates"}
    benchmark(main, threads=1, parts=parts, divide=fewer)
