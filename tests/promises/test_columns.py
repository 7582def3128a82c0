"""Units of the columns: a default fit does not change when columns are shifted and scaled.

And one under a given prior not when they are shifted.
"""

import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression
from skbayes_sg.data import InMemory, of_columns

DIABETES, PROGRESSION = load_diabetes(return_X_y=True)
SHORT = {"n_draws": 20, "random_state": 0}
MODELS = {
    "linear": BayesianLinearRegression(**SHORT),
    "two classes": BayesianLogisticRegression(**SHORT),
    "three classes": BayesianLogisticRegression(**SHORT),
}
TARGETS = {
    "linear": PROGRESSION,
    "two classes": PROGRESSION > 140,
    "three classes": np.digitize(PROGRESSION, [100, 180]),
}


def outputs(model, X, y, at=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    at = X if at is None else at
    return model.predict_proba(at) if hasattr(model, "classes_") else model.predict(at)


def stretched(draw):
    """Factors from 1e-8 to 1e8, and shifts of up to a hundred standard deviations."""
    factor = 10 ** np.array(draw(st.lists(st.floats(-8, 8), min_size=10, max_size=10)))
    shift = np.array(draw(st.lists(st.floats(-100, 100), min_size=10, max_size=10)))
    return factor, shift * DIABETES.std(axis=0)


@cache
def in_its_own_units(name):
    return outputs(MODELS[name], DIABETES, TARGETS[name]), MODELS[name].coef_


@pytest.mark.parametrize("name", MODELS)
@given(data=st.data())
@settings(max_examples=4)
@pytest.mark.quick("two classes", "linear")
def test_a_default_fit_is_the_same_for_columns_in_other_units(name, data):
    factor, shift = data.draw(st.composite(stretched)())
    model, y = MODELS[name], TARGETS[name]
    before, coef = in_its_own_units(name)
    after = outputs(model, (DIABETES + shift) * factor, y)
    np.testing.assert_allclose(after, before, atol=1e-4 * before.std())
    np.testing.assert_allclose(model.coef_ * factor, coef, atol=1e-4 * np.abs(coef).max())


@given(power=st.floats(-8, 8), shift=st.floats(-1e6, 1e6))
@settings(max_examples=4)
def test_a_default_regression_is_the_same_for_y_in_other_units(power, shift):
    """Also in a stream: noise variance, standard deviations and predictions follow y."""
    model, factor = BayesianLinearRegression(**SHORT), 10**power
    for step in (len(DIABETES), 150):
        found = []
        for y in (PROGRESSION, (PROGRESSION + shift) * factor):
            one = clone(model)
            if step < len(DIABETES):
                for first in range(0, len(DIABETES), step):
                    one.partial_fit(DIABETES[first : first + step], y[first : first + step])
            else:
                one.fit(DIABETES, y)
            found.append(np.r_[one.coef_, one.coef_std_, np.sqrt(one.noise_variance_).mean()])
        np.testing.assert_allclose(found[1] / factor, found[0], rtol=1e-5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("prior", "chunks"),
    [
        ({}, 0),
        ({}, 3),
        ({"prior_groups": {2: "flat"}}, 3),  # without chains
        ({"prior": "horseshoe"}, 0),
    ],
)
def test_a_learned_prior_is_in_units_of_a_noise_variance_that_is_given(prior, chunks):
    """Also of the intercept, of a column that is not shrunken, and of the slab of the horseshoe."""
    found = []
    for factor in (2.0**-20, 2.0**20):  # which leaves all digits of y
        y = PROGRESSION * factor
        model = BayesianLinearRegression(noise_variance=(55 * factor) ** 2, **SHORT, **prior)
        if not chunks:
            model.fit(DIABETES, y)
        for rows in np.array_split(np.arange(len(y)), chunks) if chunks else ():
            model.partial_fit(DIABETES[rows], y[rows])
        of_intercept = model.intercept_, model.intercept_samples_.std()
        found.append(np.r_[model.coef_, model.coef_std_, of_intercept] / factor)
    np.testing.assert_allclose(found[1], found[0], atol=1e-5 * np.abs(found[0]).max())


@given(data=st.data())
@settings(max_examples=4)
def test_a_stream_is_the_same_for_columns_in_other_units(data):
    factor, shift = data.draw(st.composite(stretched)())
    found = []
    for X in (DIABETES, (DIABETES + shift) * factor):
        model = BayesianLogisticRegression(**SHORT)
        for rows in np.array_split(np.arange(len(X)), 3):
            model.partial_fit(X[rows], TARGETS["two classes"][rows], classes=[False, True])
        found.append(model.coef_ * (1 if X is DIABETES else factor))
    np.testing.assert_allclose(found[1], found[0], atol=1e-4 * np.abs(found[0]).max())


@pytest.mark.parametrize("chunks", [0, 4])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "prior", [{"prior_precision": 3.0}, {"prior_precision": 3.0, "prior_mean": 0.7}]
)
def test_a_given_prior_is_the_same_for_shifted_columns(prior, name, chunks):
    """That of the intercept is at their means, not at their zeros, a thousand deviations away."""
    X, y, found = DIABETES / DIABETES.std(axis=0), TARGETS[name], []
    if name == "linear":
        y = (y - y.mean()) / y.std()
    for shift in (0.0, np.arange(-500.0, 500.0, 100.0)):
        model = clone(MODELS[name]).set_params(**prior)
        if chunks:
            more = {} if name == "linear" else {"classes": np.unique(y)}
            for rows in np.array_split(np.arange(len(X)), chunks):
                model.partial_fit((X + shift)[rows], y[rows], **more)
        else:
            model.fit(X + shift, y)
        at_zero = model.intercept_ + model.coef_ @ np.broadcast_to(shift, 10)
        found.append(np.append(np.append(model.coef_, model.coef_std_), at_zero))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-6)


def test_a_learned_precision_around_a_prior_mean_is_the_same_for_shifted_columns():
    X, y = DIABETES / DIABETES.std(axis=0), TARGETS["two classes"]
    model = BayesianLogisticRegression(prior_mean=0.7, **SHORT)
    before, after = (outputs(model, X + shift, y) for shift in (0.0, 500.0))
    np.testing.assert_allclose(after, before, atol=1e-4)


def test_a_given_precision_is_that_of_ridge_regression_which_does_not_shrink_an_intercept():
    years = np.column_stack([DIABETES, 1950.0 + np.arange(len(DIABETES)) % 70])
    ridge = Ridge(alpha=0.3).fit(years, PROGRESSION)
    model = BayesianLinearRegression(prior_precision=0.3, **SHORT).fit(years, PROGRESSION)
    found = np.append(ridge.coef_, ridge.intercept_)
    np.testing.assert_allclose(model.posterior_.mean[:12], found, rtol=1e-6)


def test_a_given_precision_holds_no_column_of_one_value():
    """So that of the next fit, in which the column varies, is the same number."""
    X, more = DIABETES.copy(), 100 * DIABETES[::-1]
    X[:, 3] = 5.0
    given = {"noise_variance": 1.0, "prior_precision": 0.5, "random_state": 0, "n_draws": 20}
    y = (PROGRESSION - PROGRESSION.mean()) / PROGRESSION.std()
    first = BayesianLinearRegression(**given).fit(X, y).posterior_
    following = BayesianLinearRegression(prior=first, **given | {"prior_precision": "learned"})
    both = BayesianLinearRegression(**given).fit(np.r_[X, more], np.r_[y, y])
    found, whole = following.fit(more, y).posterior_, both.posterior_
    np.testing.assert_allclose(found.mean, whole.mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.covariance, whole.covariance, rtol=1e-4, atol=1e-9)


def test_sparse_rows_and_single_precision_in_other_units():
    y, factor = TARGETS["two classes"], np.geomspace(1e-6, 1e6, 10)
    model, X = BayesianLogisticRegression(**SHORT), np.maximum(DIABETES, 0)
    p = outputs(model, X, y)
    rows = sparse.csr_array(X * factor)
    np.testing.assert_allclose(outputs(model, rows, y), p, atol=1e-6)
    single = (DIABETES * factor).astype(np.float32)
    np.testing.assert_allclose(
        outputs(model, single, y), outputs(model, DIABETES, y), atol=2e-3
    )  # chains of another pool of rows agree to a part of their Monte Carlo error


def test_raw_columns_are_as_good_as_standardised_ones():
    X, y = load_wine(return_X_y=True)
    model = BayesianLogisticRegression(**SHORT)
    outputs(model, X, y == 2)
    assert model.score(X, y == 2) == LogisticRegression(max_iter=10_000).fit(X, y == 2).score(
        X, y == 2
    )
    years = np.column_stack([DIABETES, 1950 + np.arange(len(DIABETES)) % 70])
    linear = BayesianLinearRegression(**SHORT).fit(years, PROGRESSION)
    best = LinearRegression().fit(years, PROGRESSION).score(years, PROGRESSION)
    assert linear.score(years, PROGRESSION) > best - 0.01


def test_units_by_their_definition():
    rng = np.random.default_rng(0)
    amounts = np.where(rng.random(900) < 0.7, 3.0, 3.0 + rng.exponential(size=900))
    X = np.column_stack([rng.standard_normal(900), rng.random(900) < 0.02, amounts])
    rare, others = X[:, 1].mean(), amounts[amounts != 3] - 3
    found = of_columns(InMemory.of(X, X[:, 0]))
    expected = [X[:, 0].std(), 0.5, 0.5 * np.sqrt(np.mean(others**2))]
    np.testing.assert_allclose(found.unit, expected)
    np.testing.assert_allclose(found.mean, X.mean(axis=0))
    np.testing.assert_allclose(found.variance, X.var(axis=0))
    standard = StandardScaler().fit_transform(X)
    of_standard = of_columns(InMemory.of(standard, X[:, 0])).unit
    np.testing.assert_allclose(of_standard[1], 0.5 / np.sqrt(rare * (1 - rare)))


def test_weights_are_repetitions_and_sparse_rows_have_the_units_of_dense_ones():
    rng = np.random.default_rng(1)
    X = rng.poisson(0.4, (300, 5)) * rng.exponential(size=5)
    X = np.column_stack([X, rng.random((300, 2)) < 0.9])  # of which most rows are not zero
    weight = rng.integers(1, 4, 300)
    repeated = of_columns(InMemory.of(np.repeat(X, weight, axis=0), np.zeros(weight.sum())))
    weighted = of_columns(InMemory.of(X, np.zeros(300), weight.astype(float)))
    np.testing.assert_allclose(weighted[:3], repeated[:3])
    entries = InMemory(sparse.csr_array(X), np.zeros(300), None, 300.0, sparse_rows=True)
    plain = of_columns(InMemory.of(X, np.zeros(300)))
    np.testing.assert_allclose(of_columns(entries)[:3], plain[:3])


def test_a_level_that_few_rows_have_is_looked_for_in_all():
    X = np.random.default_rng(0).standard_normal((50_000, 2))
    X[:, 1] = np.arange(50_000) == 12_347  # not one of the rows that are looked at
    np.testing.assert_allclose(of_columns(InMemory.of(X, X[:, 0])).unit[1], 0.5)


@pytest.mark.convergence_warnings
def test_a_column_of_one_value_is_held_at_zero_and_named():
    X = np.column_stack([DIABETES, np.full(len(DIABETES), 2000.0)])
    model = BayesianLogisticRegression(**SHORT)
    with pytest.warns(ConvergenceWarning, match="column 10 of X: one value in all rows"):
        model.fit(X, TARGETS["two classes"])
    alone = BayesianLogisticRegression(**SHORT)
    p = outputs(alone, DIABETES, TARGETS["two classes"])
    assert abs(model.coef_[0, 10] * 2000) < 1e-4
    assert np.abs(model.predict_proba(X) - p).mean() < 0.01
    model.set_params(prior_precision=1.0).fit(X, TARGETS["two classes"])
    assert model.coef_std_[0, 10] > 1e-4


@pytest.mark.convergence_warnings
def test_what_rounding_leaves_of_a_column_of_one_value_is_held_at_zero():
    """StandardScaler makes -8e-16 of a column of .1: no unit, beside new rows with other values."""
    X = StandardScaler().fit_transform(np.column_stack([DIABETES, np.full(len(DIABETES), 0.1)]))
    assert 0 < np.abs(X[:, 10]).max() < 1e-14
    model = BayesianLogisticRegression(**SHORT)
    with pytest.warns(ConvergenceWarning, match="column 10 of X: one value in all rows"):
        model.fit(X, TARGETS["two classes"])
    moved = X.copy()
    moved[:, 10] = 2.0
    assert np.abs(model.predict_proba(moved) - model.predict_proba(X)).max() < 1e-4


@pytest.mark.convergence_warnings
def test_a_column_of_rounding_errors_is_named():
    """Shares that sum to one but for them, without the mean: a unit of 1e-16."""
    shares = np.random.default_rng(0).random((len(DIABETES), 4))
    total = (shares / shares.sum(axis=1, keepdims=True)).sum(axis=1)
    X = StandardScaler().fit_transform(np.column_stack([DIABETES, total]))
    assert len(np.unique(X[:, 10])) > 1
    with pytest.warns(ConvergenceWarning, match="column 10 of X: numbers below 1e-13"):
        BayesianLogisticRegression(**SHORT).fit(X, TARGETS["two classes"])


@pytest.mark.convergence_warnings
@pytest.mark.parametrize("prior", ["horseshoe", "student_t"])
def test_columns_of_one_value_alone_leave_the_intercept(prior):
    """Rows inform no coefficient, and the scale of the horseshoe is over their information."""
    y = PROGRESSION[:40] - PROGRESSION[:40].mean()
    model = BayesianLinearRegression(prior=prior, random_state=0)
    with (
        pytest.warns(ConvergenceWarning, match="its precision was not learned"),
        pytest.warns(ConvergenceWarning, match="one value in all rows"),
    ):
        model.fit(np.zeros((40, 3)), y)
    assert np.abs(model.predict(np.zeros((1, 3)))[0]) < y.std()


def test_a_column_keeps_its_coefficient_up_to_where_it_is_refused(seed):
    """The error of a mean grows as the square of the distance; a fifth of the limit is a check."""
    rng = np.random.default_rng(seed)
    X = StandardScaler().fit_transform(rng.standard_normal((150, 2)))
    y = X @ [1.0, 0.3] + 0.5 * rng.standard_normal(150)
    model, moved = BayesianLinearRegression(**SHORT), {}
    near = clone(model).fit(X, y)
    for away in (5e5, 2.8e6):
        far = clone(model).fit(X + np.array([away, -away]), y)
        moved[away] = np.abs(far.posterior_.mean[:2] - near.posterior_.mean[:2]).max()
    assert moved[5e5] < 0.005 * near.coef_std_.min()
    assert moved[2.8e6] < 0.1 * near.coef_std_.min()
    with pytest.raises(ValueError, match=r"column 1 of X is 4e\+06 of its standard deviations"):
        clone(model).fit(X + np.array([0, 4e6]), y)
