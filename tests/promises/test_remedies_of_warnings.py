"""What a warning says to do can be done, and silences it.

A case is a warning with its remedy, a call that leads to it, and the same call after the remedy,
which must not lead to it. Every message of the package that ends with a remedy and is not
raised where it is written has a case here, or stands in `ELSEWHERE` with the test that tries it.
Errors are in test_remedies.py.
"""

import re
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from messages import remedies, said_by, untried
from sklearn.preprocessing import StandardScaler
from test_remedies import (
    COUNTS,
    EXPOSURE,
    LINE,
    PAIR,
    SHORT,
    THREE,
    WEIGHT,
    N,
    X,
    cancer,
    fitted,
    linear,
    logistic,
    negative_binomial,
    network,
    ordered,
    ordinal,
    poisson,
    scaled_cancer,
    stream,
    with_checkpoint,
)

import skbayes_sg
from skbayes_sg import (
    BayesianBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianRobustRegressor,
    PriorPrecisionDisplay,
    VariationalEM,
    callbacks,
)
from skbayes_sg.samplers import HMC, IASG, SAMPLERS, SGD, SGFS, SGLD, ConstantSGD

LONG = {"n_chains": 8, "n_draws": 400, "burn_in": 100}
LEARNED = {"prior_precision": "learned"}
OF_ONE = np.where(np.arange(N) < N // 2, 0.0, LINE)  # half of the rows on a line
WALL = pd.DataFrame({"level": (np.arange(N) % 8 == 0) * 1.0, "age": X["age"]})
NEVER = np.where(WALL["level"] == 1, "no", PAIR)
VARIED = np.array([0, 20])[np.arange(N) % 2]  # successes of 20
BY_LABEL = np.argsort(LINE)


def binomial(**changes):
    return BayesianBinomialRegressor(**SHORT | {"prior_precision": 1.0} | changes)


def robust(**changes):
    return BayesianRobustRegressor(**SHORT | changes)


def damaged(remove=False):
    """The path of a file that is no checkpoint, or of none."""
    path = Path(tempfile.mkdtemp()) / "fit"
    path.write_bytes(b"not")
    if remove:
        path.unlink()
    return path


def chunks(order):
    """Ten chunks of rows that are sorted by y, or as they come."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((1000, 2))
    y = rows[:, 0] + rng.standard_normal(1000)
    by = np.argsort(y) if order == "sorted" else np.arange(1000)
    return [(rows[some], y[some], {}) for some in np.split(by, 10)]


CASES = {
    # -- rows --
    "weights of one row": (
        "the weights of 40 rows sum to 1",
        "give sample_weight / sample_weight.mean()",
        lambda: linear().fit(X, LINE, sample_weight=np.full(N, 1 / N)),
        lambda: linear().fit(X, LINE, sample_weight=np.full(N, 1 / N) / (1 / N)),
    ),
    "weights that are numbers of observations": (
        "sample_weight are whole numbers",
        "give their numbers as var_weights",
        lambda: linear().fit(X, LINE, sample_weight=20 * WEIGHT),
        lambda: linear().fit(X, LINE, var_weights=20 * WEIGHT),
    ),
    "a fit without trials": (
        "trials is missing",
        "give trials, one number for each row or one for all",
        lambda: binomial().fit(X, VARIED),
        lambda: (
            binomial().fit(X, VARIED, trials=20),
            binomial().fit(X, VARIED, trials=np.full(N, 20)),
        ),
    ),
    "a prediction without trials": (
        "trials is missing",
        "give trials, one number for each row or one for all, or ask for the share",
        lambda: fitted("shares").predict_interval(X, kind="observation"),
        lambda: (
            fitted("shares").predict_interval(X, trials=20, kind="observation"),
            fitted("shares").predict_interval(X, kind="mean"),
        ),
    ),
    "successes that vary": (
        "counts of successes vary",
        "set overdispersed=True",
        lambda: binomial().fit(X, VARIED, trials=20),
        lambda: binomial(overdispersed=True).fit(X, VARIED, trials=20),
    ),
    "trials of one": (
        "trials are 1 in all rows",
        "set overdispersed=False",
        lambda: binomial(overdispersed=True).fit(X, VARIED // 20, trials=1),
        lambda: binomial(overdispersed=False).fit(X, VARIED // 20, trials=1),
    ),
    "counts that vary": (
        "counts vary",
        "take BayesianNegativeBinomialRegressor",
        lambda: poisson().fit(X, VARIED),
        lambda: negative_binomial().fit(X, VARIED),
    ),
    "rates with weights": (
        "y holds fractions, as rates do",
        "give the counts as y, and exposure",
        lambda: poisson().fit(X, COUNTS / EXPOSURE, sample_weight=EXPOSURE),
        lambda: poisson().fit(X, COUNTS, exposure=EXPOSURE),
    ),
    "rates of the negative binomial": (
        "y times sample_weight is whole",
        "give the count as y, and exposure",
        lambda: negative_binomial().fit(X, 2 * COUNTS, sample_weight=np.full(N, 0.5)),
        lambda: negative_binomial().fit(X, COUNTS, exposure=np.full(N, 0.5)),
    ),
    "a column of one value": (
        "one value in all rows",
        "leave such columns out, or give prior_precision a number",
        lambda: linear(**LEARNED).fit(X.assign(age=3.0), LINE),
        lambda: (
            linear(**LEARNED).fit(X.drop(columns="age"), LINE),
            linear(prior_precision=1.0).fit(X.assign(age=3.0), LINE),
        ),
    ),
    "a column of ones without an intercept": (
        "though the data tell it",
        "leave such columns out and set fit_intercept=True, or give prior_precision a number",
        lambda: linear(fit_intercept=False, **LEARNED).fit(X.assign(age=1.0), LINE),
        lambda: (
            linear(**LEARNED).fit(X.drop(columns="age"), LINE),
            linear(fit_intercept=False, prior_precision=1.0).fit(X.assign(age=1.0), LINE),
        ),
    ),
    "a column of roundings": (
        "as the rounding errors",
        "or scale them if their differences mean something",
        lambda: linear(**LEARNED).fit(X * [1e-15, 1, 1], LINE),
        lambda: (
            linear(**LEARNED).fit(X * [1e-15, 1, 1] * [1e15, 1, 1], LINE),
            linear(**LEARNED).fit(X.drop(columns="age"), LINE),
        ),
    ),
    "a prior beyond certainty": (
        "far beyond certainty",
        "scale the columns, for example by StandardScaler, or raise prior_precision",
        lambda: logistic().fit(*cancer()),
        lambda: logistic().fit(*scaled_cancer()),
    ),
    "means far from zero": (
        "the means of the columns of X are",
        "take the means off, for example by StandardScaler",
        lambda: network("hmc").fit(X + 40, LINE),
        lambda: network("hmc").fit(StandardScaler().fit_transform(X + 40), LINE),
    ),
    "inputs that saturate": (
        "saturate the hidden units",
        "scale the columns, for example by StandardScaler",
        lambda: network("hmc").fit(5e3 * (X - X.mean()), LINE),
        lambda: network("hmc").fit(StandardScaler().fit_transform(5e3 * X), LINE),
    ),
    "predictions beyond numbers": (
        "are infinite",
        "such rows lie far from those of the fit",
        lambda: fitted("counts").predict(1e5 * X),
        lambda: fitted("counts").predict(X),
    ),
    "levels that no row has": (
        "no row has the level",
        "take unused categories off the column, or give categories",
        lambda: ordinal(None).fit(X, ordered("cold mild hot boiling")),
        lambda: (
            ordinal(None).fit(X, ordered("cold mild hot boiling").cat.remove_unused_categories()),
            ordinal(["cold", "mild", "hot", "boiling"]).fit(X, ordered("cold mild hot boiling")),
        ),
    ),
    "labels without an order": (
        "without an order",
        "give categories, from the lowest to the highest",
        lambda: ordinal(None).fit(X, THREE),
        lambda: ordinal(["cold", "mild", "hot"]).fit(X, THREE),
    ),
    "y of one value": (
        "y has one value in all rows",
        "check that y is the column that was meant",
        lambda: linear().fit(X, np.ones(N)),
        lambda: linear().fit(X, LINE),
    ),
    "y in steps": (
        "y is in steps of",
        "take BayesianOrdinalClassifier for few steps",
        lambda: robust().fit(X, np.digitize(LINE, [1.2]) * 1.0),
        lambda: BayesianOrdinalClassifier(**SHORT).fit(X, np.digitize(LINE, [1.2])),
    ),
    # -- streams --
    "sorted rows": (
        "the truth moves along this stream",
        "if rows are sorted, shuffle them",
        lambda: stream(linear(), *chunks("sorted")),
        lambda: stream(linear(), *chunks("shuffled")),
    ),
    # -- chains --
    "chains that do not agree": (
        "r_hat_max is",
        "raise n_draws or thin",
        lambda: logistic(sampler="hmc").fit(X, PAIR),
        lambda: logistic(sampler="hmc", **LONG).fit(X, PAIR),
    ),
    "few draws": (
        "ess_min is",
        "too few effective draws; raise n_draws or thin",
        lambda: logistic(sampler=HMC(), n_draws=12, burn_in=100).fit(X, PAIR),
        lambda: logistic(sampler=HMC(), **LONG).fit(X, PAIR),
    ),
    "a step that is too long": (
        "stein_ratio is",
        "lower step_size",
        lambda: logistic(sampler=SGLD(0.1), **LONG).fit(X, PAIR),
        lambda: logistic(sampler=SGLD(0.01), **LONG | {"thin": 20}).fit(X, PAIR),
    ),
    "a wall": (
        "column_steepness is",
        'use sampler=None or "hmc"',
        lambda: logistic(sampler="constant_sgd", prior_precision=0.01).fit(WALL, NEVER),
        lambda: logistic(sampler="hmc", prior_precision=0.01).fit(WALL, NEVER),
    ),
    "what only the prior knows": (
        "least_known is",
        'use sampler=None or "hmc", or give prior_precision a number',
        lambda: logistic(sampler=SGFS(batch_size=10), **LEARNED).fit(X.assign(a=X["age"]), PAIR),
        lambda: (
            logistic(sampler="hmc", **LEARNED).fit(X.assign(a=X["age"]), PAIR),
            logistic(sampler=SGFS(batch_size=10)).fit(X.assign(a=X["age"]), PAIR),
        ),
    ),
    "a plane between the classes": (
        "a plane separates the classes",
        "give prior_precision a number that you believe in",
        lambda: logistic(prior_precision=VariationalEM(n_updates=8)).fit(X, X["age"] > 0),
        lambda: logistic(prior_precision=1.0).fit(X, X["age"] > 0),
    ),
    "no time": (
        "the time was up before the first draw",
        "raise seconds",
        lambda: logistic(sampler="hmc").set_callbacks(callbacks.TimeLimit(1e-9)).fit(X, PAIR),
        lambda: logistic(sampler="hmc").set_callbacks(callbacks.TimeLimit(1e3)).fit(X, PAIR),
    ),
    "the mode for a posterior": (
        "SGD with decreasing steps goes to the mode",
        "use SGFS or ConstantSGD for a posterior",
        lambda: logistic(sampler=SGD()).fit(X, PAIR),
        lambda: (
            logistic(sampler=SGFS()).fit(X, PAIR),
            logistic(sampler=ConstantSGD()).fit(X, PAIR),
        ),
    ),
    "averages of a diagonal": (
        "averages correlated parameters less",
        'use structure="full", or SGFS',
        lambda: logistic(sampler=IASG(structure="diag")).fit(X, PAIR),
        lambda: (
            logistic(sampler=IASG(structure="full")).fit(X, PAIR),
            logistic(sampler=SGFS()).fit(X, PAIR),
        ),
    ),
    "averages of one step": (
        "IASG: one step for all directions",
        'use structure="full"',
        lambda: logistic(sampler=IASG(structure="scalar")).fit(X * [9, 1, 1], PAIR),
        lambda: logistic(sampler=IASG(structure="full")).fit(X * [9, 1, 1], PAIR),
    ),
    "gradients that are clipped": (
        "SGLD clipped the gradient",
        "set clip=None and lower step_size",
        lambda: logistic(sampler=SGLD(1e-3, clip=("norm", 0.1))).fit(X, PAIR),
        lambda: logistic(sampler=SGLD(1e-4, clip=None)).fit(X, PAIR),
    ),
    "a file that is no checkpoint": (
        "is not a whole checkpoint",
        "remove it to start the fit anew, or give another path",
        lambda: with_checkpoint(damaged()).fit(X, LINE),
        lambda: (
            with_checkpoint(damaged().with_name("other")).fit(X, LINE),
            with_checkpoint(damaged(remove=True)).fit(X, LINE),
        ),
    ),
    "the burn-in of a stream": (
        "are burn-in",
        "set burn_in",
        lambda: network(None).set_params(burn_in=9).partial_fit(X, LINE, n_total=N),
        lambda: network(None).set_params(burn_in=0).partial_fit(X, LINE, n_total=N),
    ),
    "the path of a precision that was given": (
        "its prior precision was not learned",
        'fit with prior_precision="learned"',
        lambda: PriorPrecisionDisplay.from_estimator(fitted("two")),
        lambda: PriorPrecisionDisplay.from_estimator(fitted("learned")),
    ),
    "averages that are not the theory's": (
        "IASG: theory expects",
        "use SGFS",
        lambda: linear(sampler=IASG(batch_size=10), prior_precision=100.0).fit(X, LINE),
        lambda: linear(sampler=SGFS(batch_size=10), prior_precision=100.0).fit(X, LINE),
    ),
    "noise of single rows": (
        "the gradient noise is measured from",
        'use covariance="minibatch" with minibatches of several rows',
        lambda: logistic(sampler=ConstantSGD(covariance="single_row", batch_size=5)).fit(X, PAIR),
        lambda: logistic(sampler=ConstantSGD(covariance="minibatch", batch_size=5)).fit(X, PAIR),
    ),
}

ELSEWHERE = {
    "": [
        # without a remedy, or endings of other messages
        "1 is Bayes; below it the fit is colder",
        "y holds fractions, which no counts have",
        "the draws of a fit are not affected",
        "call fit, or give more rows",
        "and the effect of new levels is zero",
        "their columns do not tell what the slope is of",
        "bring weights and precisions of the prior nearer to 1",
        "give every parameter a positive prior precision",
        "and control variates need it",
        "in double precision",
        # figures that no small fit has; test_messages_name_parameters
        "pool_error is",
        "mean_shift is",
        "scale_shift is",
        "prediction_error and prediction_drift are not known",
        "prediction_drift is",
        "information_ratio is",
        "stein_ratio is",
        "prediction_gain is",
        "accept_rate is",
        "the learned precision",
        "the prior precision was not found",
        "the variances drawn in",
        "sd_error is",
        "the fit stopped at",
    ],
    "chains/test_chains.py": ["diverged by step"],
    "chains/test_tuning.py": ["SGFS chose alpha"],
    "data/test_on_disk.py": ["needs rows at random; give"],
    "estimators/test_factors.py": ["of X has levels", "which it knew to"],
    "estimators/test_named_samplers.py": ["next to no noise"],
    "estimators/test_path.py": ["rely on em_precisions"],
    "estimators/test_robust.py": ["outweigh", "this takes minutes"],
    "inference/test_rare_levels.py": ["no normal distribution stands"],
    "inspection/test_effects.py": ["products of columns that move"],
    "streams/test_stream_is_fit.py": ["summed up far from"],
    "streams/test_stream_orders.py": ["no longer kept"],
    "models/test_checks.py": ["writes into its argument"],
    "posterior/test_one_by_one.py": ["which columns matter"],
    "posterior/test_sparse.py": ["chains keep", "prior of the intercept moves"],
    "promises/test_contract.py": ["no stationary distribution in closed form"],
    "promises/test_failures.py": [
        "checkpoint is not written",
        "memory is full",
        "a worker process ended",
    ],
    "promises/test_parameters.py": ["give one as sampler"],
    "promises/test_promises.py": [
        "needs rows that it can draw again",
        "on one core",
        "of memory",
    ],
    "promises/test_remedies.py": [
        "give the factor as one column of categories",
        "or encode it, for example with OneHotEncoder",
        "at least one row needs a positive weight",
    ],
    "samplers/test_hmc.py": ["hardly moved"],
    "samplers/test_sgd.py": ["but the mode; use ConstantSGD"],
    "samplers/test_sghmc.py": ["has no stationary distribution; give numbers"],
    "test_callbacks.py": ["draws, which are kept"],
}
"""Parts of messages by the test that tries their remedy, and that holds these words."""


@cache
def said(name):
    """The warnings of a case, or its error."""
    return said_by(CASES[name][2])


@pytest.mark.parametrize("name", CASES)
def test_a_remedy_can_be_applied_and_silences_the_warning(name):
    warning, remedy, _, right = CASES[name]
    assert any(warning in line and remedy in line for line in said(name).split("\n"))
    assert warning not in said_by(right)


NAMED = {"seconds", "kind", "offset", "trials", "limit"}  # of callbacks, calls and displays
NAMED |= {"expected_nonzero", "time_step"}  # of priors and of theory
NAMED |= {"transform", "sparse_output", "mmap_mode", "working_memory"}  # of scikit-learn and NumPy
NAMED |= {
    name
    for cls in vars(skbayes_sg).values()
    if hasattr(cls, "get_params")
    for name in cls._get_param_names()
}
NAMED |= {name for cls in SAMPLERS.values() for name in cls().get_params()}


def test_messages_name_parameters():
    """What is to be raised or lowered is one, and what is given a value with an "="."""
    found = set()
    for _, _, pattern in remedies():
        text = re.sub(r"\\(.)", r"\1", pattern)
        found |= set(re.findall(r"\b(?:raise|lower|set|or) ([a-z]+_\w+)", text))
        found |= set(re.findall(r"\b(\w+)=", text))
    assert not found - NAMED


def test_every_remedy_is_tried():
    patterns = [pattern for _, raised, pattern in remedies() if not raised]
    assert not untried(patterns, [said(name) for name in CASES], ELSEWHERE)
