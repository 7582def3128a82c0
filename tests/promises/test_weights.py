"""An integer weight is a repetition of its row, in every number that is computed of rows."""

import warnings

import numpy as np
import pytest
from helpers import TRIALS, OfManyTrials
from sklearn.base import clone, is_classifier

from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
    BayesianRobustRegressor,
    DRBMClassifier,
)
from skbayes_sg.inspection import average_effects, prior_sensitivity

SHORT = {"n_chains": 2, "n_draws": 20, "burn_in": 20, "thin": 1, "random_state": 0}
pytestmark = pytest.mark.usefixtures("_short_searches")
BALANCED = {"class_weight": "balanced"}
MODELS = {
    "logistic": BayesianLogisticRegression(**SHORT),
    "logistic, balanced": BayesianLogisticRegression(**BALANCED, **SHORT),
    "logistic, precision given": BayesianLogisticRegression(
        prior_precision=1.0, **BALANCED, **SHORT
    ),
    "horseshoe, balanced": BayesianLogisticRegression(prior="horseshoe", **BALANCED, **SHORT),
    "ordinal, balanced": BayesianOrdinalClassifier(**BALANCED, **SHORT),
    "linear": BayesianLinearRegression(**SHORT),
    "robust": BayesianRobustRegressor(**SHORT),
    "Poisson": BayesianPoissonRegressor(**SHORT),
    "Gamma": BayesianGammaRegressor(**SHORT),
    "negative binomial": BayesianNegativeBinomialRegressor(**SHORT),
    "binomial": OfManyTrials(**SHORT),
    "beta-binomial": OfManyTrials(overdispersed=True, **SHORT),
    "network": BayesianMLPClassifier((2,), **SHORT),
    "network, balanced": BayesianMLPClassifier((2,), **BALANCED, **SHORT),
    "machine, balanced": DRBMClassifier(2, **BALANCED, **SHORT),
    "network of numbers": BayesianMLPRegressor((2,), **SHORT),
}
RNG = np.random.default_rng(12)
N = 90
X = np.column_stack([RNG.standard_normal(N), RNG.integers(0, 2, N), 30 + 5 * RNG.random(N)])
WEIGHT = RNG.integers(0, 8, N)
REPEATED = np.random.default_rng(3).permutation(np.repeat(np.arange(N), WEIGHT))
ETA = X[:, 0] + 0.5 * X[:, 1]
LABELS = np.digitize(ETA + RNG.logistic(size=N), [-1.0, 2.0])
# which the weights make rarer or more frequent
COUNTS = RNG.poisson(np.exp(0.5 * ETA + 0.3))
NUMBERS = ETA + RNG.standard_normal(N)
ONE_A_PATH = (  # all others take one of these paths through a fit
    "logistic, balanced",
    "linear",
    "Poisson",
    "negative binomial",
    "binomial",
    "network, balanced",
    "network of numbers",
)


def each(names):
    """The parametrisation by models, those of `make slow` marked."""
    marks = {name: [pytest.mark.slow] * (name not in ONE_A_PATH) for name in names}
    return pytest.mark.parametrize("name", [pytest.param(k, marks=marks[k]) for k in names])


def y_of(model):
    if is_classifier(model):
        return LABELS
    if getattr(model._family, "counts", False):
        return COUNTS
    return np.exp(NUMBERS) if isinstance(model, BayesianGammaRegressor) else NUMBERS


def figures(model):
    """Every number that a fit keeps, and that its public functions compute without rows."""
    found = {
        name: value
        for name, value in vars(model).items()
        if name.endswith("_") and not name.startswith("_") and name != "n_passes_"
    }
    if hasattr(model, "coef_"):
        found |= {"coef": model.coef_, "coef_std": model.coef_std_, "intercept": model.intercept_}
    table = model.summary(full=True)
    found |= {f"summary {key}": table[key] for key in table}
    for name, value in model.diagnostics_.items():
        if "pass" not in name:
            found[name] = value
    return {
        name: np.asarray(value)
        for name, value in found.items()
        if np.asarray(value).dtype.kind in "fiu" and name != "n_samples_seen_"
    }


def require_same(weighted, repeated, exact, rtol=1e-7, **tolerance):
    assert weighted.keys() == repeated.keys()
    assert weighted
    for name, value in weighted.items():
        if exact:
            np.testing.assert_array_equal(value, repeated[name], err_msg=name)
        else:
            np.testing.assert_allclose(value, repeated[name], rtol, 1e-7, err_msg=name, **tolerance)


def pair(name, call):
    """The model of weighted rows, that of repeated ones, and that of rows without weights."""
    model, y = MODELS[name], y_of(MODELS[name])
    with warnings.catch_warnings(action="ignore"):  # chains are short
        return (
            call(clone(model), X, y, WEIGHT),
            call(clone(model), X[REPEATED], y[REPEATED], None),
            call(clone(model), X, y, None),
        )


def fit(model, X, y, weight):
    return model.fit(X, y, sample_weight=weight)


@each(MODELS)
def test_a_fit_of_weighted_rows_is_that_of_repeated_rows_to_the_last_bit(name):
    """Equal rows are merged, so sums, units, starting values and hyperpriors are the same."""
    weighted, repeated, alone = pair(name, fit)
    require_same(figures(weighted), figures(repeated), exact=True)
    np.testing.assert_array_equal(weighted.draws_, repeated.draws_)
    assert np.abs(weighted.draws_.mean(axis=1) - alone.draws_.mean(axis=1)).max() > 1e-3
    y = y_of(weighted)
    score = weighted.score(X, y, sample_weight=WEIGHT)
    assert score == pytest.approx(repeated.score(X[REPEATED], y[REPEATED]), rel=1e-9)


COEFFICIENTS = [name for name in MODELS if hasattr(MODELS[name], "intercept_precision")]
OF_RANKS = ("r_hat", "ess_bulk", "ess_tail")  # equal draws differ by rounding of means over rows


@each(COEFFICIENTS)
def test_inspection_of_weighted_rows_is_that_of_repeated_rows(name):
    weighted, repeated, _ = pair(name, fit)
    y, known = y_of(weighted), {}
    if isinstance(weighted, OfManyTrials):
        known["trials"] = TRIALS
    for one, other in [
        (
            average_effects(weighted, X, [0, 1], sample_weight=WEIGHT),
            average_effects(repeated, X[REPEATED], [0, 1]),
        ),
        (
            prior_sensitivity(weighted, X, y, sample_weight=WEIGHT, **known),
            prior_sensitivity(repeated, X[REPEATED], y[REPEATED], **known),
        ),
    ]:
        columns = one.select_dtypes("number").columns.difference(OF_RANKS)
        assert len(columns) > 1
        np.testing.assert_allclose(one[columns], other[columns], rtol=1e-6, atol=1e-9)


@each([name for name in COEFFICIENTS if "horseshoe" not in name])
def test_a_stream_of_weighted_rows_is_that_of_repeated_rows(name):
    """Chunk by chunk, also in when a prior precision is learned again."""
    model, y = MODELS[name], y_of(MODELS[name])
    classes = {}
    if is_classifier(model):
        model = clone(model).set_params(class_weight={1: 2.0})
        classes = {"classes": [0, 1, 2]}
    weighted, repeated, alone = (clone(model) for _ in range(3))
    with warnings.catch_warnings(action="ignore"):  # chunks are small
        for rows in np.array_split(np.arange(N), 3):
            again = np.repeat(rows, WEIGHT[rows])
            weighted.partial_fit(X[rows], y[rows], sample_weight=WEIGHT[rows], **classes)
            repeated.partial_fit(X[again], y[again], **classes)
            alone.partial_fit(X[rows], y[rows], **classes)
            for attribute in ("coef_", "coef_std_", "intercept_", "prior_precision_"):
                one, other = getattr(weighted, attribute), getattr(repeated, attribute)
                np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9, err_msg=attribute)
    assert np.abs((weighted.coef_ - alone.coef_) / alone.coef_std_).max() > 0.05
