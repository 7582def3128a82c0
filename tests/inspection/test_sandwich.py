"""Sandwich covariances: the formula written anew, rows that stand for others, what is refused."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse, stats
from scipy.special import expit
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPRegressor,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
    BayesianRobustRegressor,
)
from skbayes_sg.diagnostics import moments
from skbayes_sg.inspection import sandwich_summary

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = {"n_chains": 4, "n_draws": 250, "random_state": 0}
RNG = np.random.default_rng(0)
N = 240
X = RNG.standard_normal((N, 3))
FRAME = pd.DataFrame(X, columns=["age", "income", "debt"])
Z = np.column_stack([X, np.ones(N)])
CLUSTER = np.repeat(np.arange(40), 6)
NOISE = RNG.standard_normal(40)[CLUSTER] + np.exp(0.5 * X[:, 0]) * RNG.standard_normal(N)
NUMBERS = X @ [1, -1, 0.5] + NOISE
YEARS = RNG.uniform(0.5, 3.0, N)
COUNTS = RNG.poisson(YEARS * np.exp(0.3 * NUMBERS))
PAIR = (NUMBERS > 0).astype(int)
TRIPLE = np.array(["cold", "mild", "hot"])[np.digitize(NUMBERS, [-1, 1])]
PRIOR = {"prior_precision": 3.0, "intercept_precision": 0.5}


def formula(residual, curvature, unit=1.0, labels=None, weight=1.0, repeats=1.0):
    """Standard deviations from residuals and curvatures of rows in their linear predictor.

    The intercept has its prior at the means of the columns, of rows that are repeated.
    """
    hessian = Z.T @ (Z * np.broadcast_to(weight * curvature, N)[:, None])
    scores = Z * residual[:, None]
    if labels is None:
        spread = scores.T @ (scores * np.broadcast_to(weight, N)[:, None])
    else:
        weighted = scores * np.broadcast_to(weight, N)[:, None]
        totals = np.array([weighted[labels == label].sum(axis=0) for label in np.unique(labels)])
        spread = totals.T @ totals
    at_means = np.average(Z, axis=0, weights=np.broadcast_to(repeats, N))
    P = (np.diag([3.0, 3.0, 3.0, 0.0]) + 0.5 * np.outer(at_means, at_means)) / unit
    inverse = np.linalg.inv(hessian + P)
    return np.sqrt((inverse @ (spread + P) @ inverse).diagonal())


def linear(model, offset=0.0):
    """Residuals and curvatures of linear regression with a noise variance of 1."""
    return NUMBERS - offset - X @ model.coef_ - model.intercept_, np.ones(N)


def logistic(model, offset=0.0):
    p = expit(X @ model.coef_[0] + model.intercept_[0] + offset)
    return PAIR - p, p * (1 - p)


def poisson(model, offset=0.0):
    mu = np.exp(X @ model.coef_ + model.intercept_ + offset)
    return COUNTS - mu, mu


MODELS = {
    "linear": (BayesianLinearRegression(noise_variance=1.0, **PRIOR, **SHORT), NUMBERS, linear),
    "logistic": (BayesianLogisticRegression(**PRIOR, **SHORT), PAIR, logistic),
    "poisson": (BayesianPoissonRegressor(**PRIOR, **SHORT), COUNTS, poisson),
}


# -- the formula ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_standard_deviations_are_those_of_the_formula(name):
    model, y, parts = MODELS[name]
    model = clone(model).fit(FRAME, y)
    for labels in (None, CLUSTER):
        found = sandwich_summary(model, FRAME, y, groups=labels)
        assert found.index.tolist() == [*FRAME, "intercept"]
        sd = formula(*parts(model), labels=labels)
        np.testing.assert_allclose(found["sd"], sd, rtol=1e-6)
        table = model.summary()
        np.testing.assert_allclose(found["mean"], table["mean"], rtol=1e-12)
        np.testing.assert_allclose(found["ratio"], sd / table["sd"], rtol=1e-6)
        assert found.attrs == {"n_groups": N if labels is None else 40}
    half = (found["eti95_ub"] - found["eti95_lb"]) / 2
    np.testing.assert_allclose(half, stats.norm.ppf(0.975) * sd, rtol=1e-6)
    assert "eti90_lb" in sandwich_summary(model, FRAME, y, level=0.9)


@pytest.mark.parametrize("name", MODELS)
def test_offsets_and_weights_count_as_in_the_fit(name):
    model, y, parts = MODELS[name]
    offset, weight = np.log(YEARS), 1.0 + np.arange(N) % 3
    known = {"offset": offset, "sample_weight": weight}
    model = clone(model).fit(FRAME, y, **known)
    for labels in (None, CLUSTER):
        found = sandwich_summary(model, FRAME, y, groups=labels, **known)
        sd = formula(*parts(model, offset), labels=labels, weight=weight, repeats=weight)
        np.testing.assert_allclose(found["sd"], sd, rtol=1e-6)
    if name == "poisson":
        given = {"exposure": YEARS, "sample_weight": weight}
        same = sandwich_summary(model, FRAME, y, groups=CLUSTER, **given)
        np.testing.assert_allclose(same["sd"], sd, rtol=1e-6)
    with pytest.raises(ValueError, match="fitted with an offset or exposure"):
        sandwich_summary(model, FRAME, y, sample_weight=weight)


def test_a_sampled_noise_variance_takes_no_part():
    """Of the coefficients the prior is in its units, and the sandwich does not depend on it."""
    model = BayesianLinearRegression(**PRIOR, **SHORT).fit(FRAME, NUMBERS)
    at = np.exp(moments(model.draws_, model.draw_weights_)[0][-1])
    residual, curvature = linear(model)
    found = sandwich_summary(model, FRAME, NUMBERS)
    sd = formula(residual / at, curvature / at, unit=at)
    # the mean of the draws is a Monte Carlo error from that at which nothing of it is left
    np.testing.assert_allclose(found["sd"], sd, rtol=5e-3)
    assert found.index.tolist() == [*FRAME, "intercept"]


def test_a_weak_prior_leaves_hc0_in_the_units_before_a_scaler():
    raw = FRAME * [10.0, 0.1, 1.0] + [50.0, 3.0, 0.0]
    model = BayesianLinearRegression(prior_precision=1e-6, **SHORT)
    pipeline = make_pipeline(StandardScaler(), model).fit(raw, NUMBERS)
    found = sandwich_summary(pipeline, raw, NUMBERS, scaler=pipeline[:-1])
    W = np.column_stack([raw, np.ones(N)])
    inverse = np.linalg.inv(W.T @ W)
    residual = NUMBERS - W @ inverse @ W.T @ NUMBERS
    hc0 = inverse @ (W.T * residual**2) @ W @ inverse
    np.testing.assert_allclose(found["sd"], np.sqrt(hc0.diagonal()), rtol=5e-3)
    assert found.index.tolist() == [*raw, "intercept"]
    scaled = sandwich_summary(pipeline, raw, NUMBERS)
    assert scaled.index.tolist() == [*raw, "intercept"]
    expected = scaled["sd"].iloc[0] / raw["age"].std(ddof=0)
    np.testing.assert_allclose(found["sd"].iloc[0], expected, rtol=1e-9)


def test_under_a_right_model_and_a_strong_prior_it_is_the_posterior():
    """Of a strong one half of the precision is the prior's.

    A ratio has an error of about .02 by the rows and .016 by the draws.
    """
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((2000, 3))
    y = rng.poisson(np.exp(rows @ [0.3, -0.2, 0.0]))
    for precision in (1e-3, 2000.0):
        model = BayesianPoissonRegressor(prior_precision=precision, random_state=0).fit(rows, y)
        found = sandwich_summary(model, rows, y)
        np.testing.assert_allclose(found["ratio"], 1, atol=0.13)


# -- rows that stand for others ---------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_a_weight_is_a_repetition(name):
    model, y, _ = MODELS[name]
    weight = np.arange(N) % 3
    model = clone(model).fit(FRAME, y, sample_weight=weight)
    repeated = np.repeat(np.arange(N), weight)
    again = clone(model).fit(FRAME.iloc[repeated], y[repeated])
    for labels in (None, CLUSTER):
        of_repeated = None if labels is None else labels[repeated]
        one = sandwich_summary(model, FRAME, y, groups=labels, sample_weight=weight)
        two = sandwich_summary(again, FRAME.iloc[repeated], y[repeated], groups=of_repeated)
        np.testing.assert_allclose(one["sd"], two["sd"], rtol=1e-9)


def test_means_of_several_observations_are_groups_of_these():
    """The score of a mean is that of the sum of its observations, which may have another spread."""
    model = clone(MODELS["linear"][0])
    rows = FRAME.iloc[::6]
    mean = NUMBERS.reshape(-1, 6).mean(axis=1)
    single = np.repeat(rows.to_numpy(), 6, axis=0)
    one = clone(model).fit(rows, mean, var_weights=np.full(40, 6))
    two = clone(model).fit(single, NUMBERS)
    ours = sandwich_summary(one, rows, mean, var_weights=np.full(40, 6))
    theirs = sandwich_summary(two, single, NUMBERS, groups=CLUSTER)
    np.testing.assert_allclose(ours["sd"], theirs["sd"], rtol=1e-6)
    counts = COUNTS.reshape(-1, 6)
    given = {"var_weights": np.full(40, 6)}
    rate = clone(MODELS["poisson"][0]).fit(rows, counts.mean(axis=1), **given)
    ours = sandwich_summary(rate, rows, counts.mean(axis=1), **given)
    known = {"exposure": np.full(40, 6.0)}
    total = clone(rate).fit(rows, counts.sum(axis=1), **known)
    theirs = sandwich_summary(total, rows, counts.sum(axis=1), **known)
    np.testing.assert_allclose(ours["sd"], theirs["sd"], rtol=1e-6)


def test_noise_of_means_is_scaled():
    """Where it is sampled, the variance of a mean of k is that of one over k."""
    k = 1.0 + np.arange(N) % 4
    model = BayesianLinearRegression(**PRIOR, **SHORT).fit(FRAME, NUMBERS, var_weights=k)
    at = np.exp(moments(model.draws_, model.draw_weights_)[0][-1])
    residual, curvature = linear(model)
    sd = formula(k * residual / at, k * curvature / at, unit=at)
    found = sandwich_summary(model, FRAME, NUMBERS, var_weights=k)
    np.testing.assert_allclose(found["sd"], sd, rtol=5e-3)


def test_a_class_weight_scales_scores():
    model = clone(MODELS["logistic"][0]).set_params(class_weight={0: 1.0, 1: 3.0})
    model.fit(FRAME, PAIR)
    residual, curvature = logistic(model)
    factor = np.where(PAIR == 1, 3.0, 1.0)
    sd = formula(factor * residual, factor * curvature, repeats=factor)
    np.testing.assert_allclose(sandwich_summary(model, FRAME, PAIR)["sd"], sd, rtol=1e-6)


@pytest.mark.parametrize("kind", ["numpy", "sparse", "polars", "pyarrow", "float32"])
def test_rows_come_in_any_form(kind):
    model, y, _ = MODELS["poisson"]
    given = {
        "numpy": X,
        "sparse": sparse.csr_array(X),
        "polars": pl.DataFrame(FRAME.to_dict("list")),
        "pyarrow": pa.table(FRAME.to_dict("list")),
        "float32": X.astype(np.float32),
    }[kind]
    expected = sandwich_summary(clone(model).fit(X, y), X, y, groups=CLUSTER)
    found = sandwich_summary(clone(model).fit(given, y), given, y, groups=CLUSTER)
    np.testing.assert_allclose(found["sd"], expected["sd"], rtol=1e-4)


# -- tables -----------------------------------------------------------------------------------


def test_differences_of_classes_are_those_of_the_summary():
    model = BayesianLogisticRegression(prior_precision=1e-4, **SHORT).fit(FRAME, TRIPLE)
    for reference in (None, "hot"):
        found = sandwich_summary(model, FRAME, TRIPLE, reference=reference)
        summary = model.summary(reference=reference)
        assert found.index.equals(summary.index)
        np.testing.assert_allclose(found["mean"], summary["mean"], atol=1e-9)
    # by hand, of the classes against the last one
    eta = X @ model.coef_.T + model.intercept_
    p = np.exp(eta - eta.max(axis=1, keepdims=True))
    p = (p / p.sum(axis=1, keepdims=True))[:, [0, 2]]
    assert model.classes_.tolist() == ["cold", "hot", "mild"]
    residual = np.column_stack([TRIPLE == "cold", TRIPLE == "mild"]) - p
    scores = (residual[:, :, None] * Z[:, None]).reshape(N, -1)
    each = np.einsum("nk,kl->nkl", p, np.eye(2)) - p[:, :, None] * p[:, None]
    hessian = np.einsum("nkl,ni,nj->kilj", each, Z, Z).reshape(8, 8)
    inverse = np.linalg.inv(hessian)
    sd = np.sqrt((inverse @ scores.T @ scores @ inverse).diagonal())
    np.testing.assert_allclose(found["sd"], sd, rtol=1e-3)


@pytest.mark.parametrize("name", ["ordinal", "robust", "negative binomial", "gamma", "learned"])
@pytest.mark.quick("ordinal", "gamma")
def test_other_families_have_rows_for_their_coefficients(name):
    models = {
        "ordinal": (BayesianOrdinalClassifier(categories=["cold", "mild", "hot"]), TRIPLE),
        "robust": (BayesianRobustRegressor(), NUMBERS),
        "negative binomial": (BayesianNegativeBinomialRegressor(), COUNTS),
        "gamma": (BayesianGammaRegressor(), np.exp(NUMBERS / 3)),
        "learned": (BayesianLinearRegression(prior_groups="feature"), NUMBERS),
    }
    model, y = models[name]
    model.set_params(**SHORT).fit(FRAME, y)
    found = sandwich_summary(model, FRAME, y)
    assert found.index.tolist() == [*FRAME, *["intercept"] * (name != "ordinal")]
    assert ((found["ratio"] > 0.5) & (found["ratio"] < 2)).all()


def test_groups_may_be_a_column():
    model, y, _ = MODELS["linear"]
    narrow = FRAME[["age", "income"]]
    model, wide = clone(model).fit(narrow, y), narrow.assign(patient=CLUSTER.astype(str))
    steps = ColumnTransformer([("keep", "passthrough", ["age", "income"])])
    pipeline = make_pipeline(steps, clone(model)).fit(wide, y)
    found = sandwich_summary(pipeline, wide, y, groups="patient")
    expected = sandwich_summary(model, narrow, y, groups=CLUSTER)
    np.testing.assert_allclose(found["sd"], expected["sd"], rtol=1e-9)


def test_without_pandas_it_prints_as_a_table(monkeypatch):
    model, y, _ = MODELS["linear"]
    model = clone(model).fit(X, y)
    monkeypatch.setitem(sys.modules, "pandas", None)
    table = sandwich_summary(model, X, y)
    assert repr(table).splitlines()[0].split() == ["mean", "sd", "eti95_lb", "eti95_ub", "ratio"]


# -- what is refused --------------------------------------------------------------------------


@pytest.mark.usefixtures("_short_searches")
def test_what_has_no_sandwich_is_named():
    model, y, _ = MODELS["linear"]
    fitted = clone(model).fit(FRAME, y)
    with pytest.raises(ValueError, match=r"sandwich_summary needs X and y of the fit.*had 240"):
        sandwich_summary(fitted, FRAME[:50], y[:50])
    with pytest.raises(ValueError, match="groups must have shape"):
        sandwich_summary(fitted, FRAME, y, groups=CLUSTER[:50])
    with pytest.raises(ValueError, match="groups is missing in row 3"):
        sandwich_summary(fitted, FRAME, y, groups=np.where(np.arange(N) == 3, np.nan, CLUSTER))
    with pytest.raises(ValueError, match="groups: X has no column 'patient'"):
        sandwich_summary(fitted, FRAME, y, groups="patient")
    with pytest.raises(ValueError, match="groups: all rows are in one group"):
        sandwich_summary(fitted, FRAME, y, groups=np.zeros(N))
    with pytest.raises(ValueError, match="this model's is none"):
        sandwich_summary(fitted, FRAME, y, exposure=YEARS)
    stream = clone(model).partial_fit(FRAME, y)
    with pytest.raises(ValueError, match="partial_fit has seen are not kept"):
        sandwich_summary(stream, FRAME, y)
    labels = clone(MODELS["logistic"][0]).fit(FRAME, PAIR)
    with pytest.raises(ValueError, match="labels have none"):
        sandwich_summary(labels, FRAME, PAIR, var_weights=np.ones(N))
    network = BayesianMLPRegressor((2,), n_chains=2, n_draws=5, burn_in=10, thin=1, random_state=0)
    with pytest.raises(ValueError, match="coef_, which BayesianMLPRegressor has not"):
        sandwich_summary(network.fit(X, NUMBERS), X, NUMBERS)


def test_rows_of_no_weight_are_no_groups():
    rng = np.random.default_rng(8)
    X, weight = rng.standard_normal((60, 2)), np.arange(60) % 3.0
    y = X[:, 0] + rng.standard_normal(60)
    model = BayesianLinearRegression(prior_precision=1.0, random_state=0).fit(X, y, weight)
    assert sandwich_summary(model, X, y, sample_weight=weight).attrs["n_groups"] == 40


def test_rates_with_their_exposures_as_weights_are_refused():
    """A weight is a repetition, of which the sandwich would count as many as years."""
    model = BayesianPoissonRegressor(**SHORT).fit(X, COUNTS / YEARS, sample_weight=YEARS)
    with pytest.raises(ValueError, match="give the counts as y, and exposure"):
        sandwich_summary(model, X, COUNTS / YEARS, sample_weight=YEARS)
    of_counts = BayesianPoissonRegressor(**SHORT).fit(X, COUNTS, exposure=YEARS)
    table = sandwich_summary(of_counts, X, COUNTS, exposure=YEARS)
    assert (table["sd"] > 0).all()
