"""Regression of ordered classes: its posterior, the order, and what comes out."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import KFold, cross_val_predict, cross_val_score
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLogisticRegression, BayesianOrdinalClassifier
from skbayes_sg.models import Ordinal

COEF, CUTS = np.array([1.0, -0.5, 0.0]), np.array([-1.0, 0.5])
WORDS = np.array(["low", "middle", "high"])
CERTAIN = 5.0  # Monte Carlo errors


QUICK = {"n_chains": 4, "n_draws": 20, "burn_in": 20, "random_state": 0}


def simulated(n_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 3))
    return X, np.digitize(X @ COEF + rng.logistic(size=n_rows), CUTS)


@pytest.mark.parametrize(
    "levels",
    [
        pytest.param([0, 1, 2], id="all"),
        pytest.param([0, 2, 3], id="inner"),
        pytest.param([1, 2, 3], id="end"),
    ],
)
@pytest.mark.quick("inner")
def test_moments_are_those_of_the_posterior(levels, seed):
    """By importance sampling from Student's t around the draws; the prior precision is given.

    A level may have no row.
    """
    X, y = simulated(60, seed)
    y, order = np.array(levels)[y], np.arange(max(levels) + 1)
    model = BayesianOrdinalClassifier(prior_precision=1.0, categories=order, random_state=seed)
    draws = model.fit(X, y).draws_.reshape(-1, dim := 2 + len(order))
    rng, root = np.random.default_rng(1), np.linalg.cholesky(np.cov(draws.T))
    scale = np.sqrt(5 / rng.chisquare(5, size=(60_000, 1)))
    z = rng.standard_normal((len(scale), dim)) * scale
    theta, family = draws.mean(axis=0) + z @ root.T, Ordinal(3, order)
    target = np.concatenate(
        [family.log_likelihood(part, X, y).sum(axis=1) for part in np.array_split(theta, 100)]
    )
    target -= 0.5 * theta**2 @ [1.0, 1.0, 1.0, 0.01, *[0.25] * (dim - 4)]
    log_weight = target + 0.5 * (5 + dim) * np.log1p((z**2).sum(axis=1) / 5)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    effective = 1 / (weight**2).sum()
    assert effective > 3000
    mean = weight @ theta
    sd = np.sqrt(weight @ (theta - mean) ** 2)
    error = CERTAIN * np.sqrt(1 / model.diagnostics_["ess_min"] + 1 / effective)
    assert (np.abs(draws.mean(axis=0) - mean) < error * sd).all()
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=error)


def test_the_truth_is_in_the_posterior_of_many_rows(seed):
    X, y = simulated(1500, seed)
    model = BayesianOrdinalClassifier(random_state=seed).fit(X, y)
    assert (np.abs(model.coef_ - COEF) < CERTAIN * model.coef_std_).all()
    sd = model.threshold_samples_.std(axis=(0, 1))
    assert (np.abs(model.thresholds_ - CUTS) < CERTAIN * sd).all()
    np.testing.assert_allclose(model.threshold_samples_[..., 0], -model.intercept_samples_)
    more = BayesianOrdinalClassifier(categories=range(-1, 3), random_state=seed).fit(X, y)
    np.testing.assert_allclose(more.threshold_samples_[..., 1], -more.intercept_samples_)
    assert (np.diff(more.threshold_samples_) > 0).all()


def test_two_classes_are_logistic_regression():
    X, y = simulated(200)
    ordinal = BayesianOrdinalClassifier(prior_precision=1.0, random_state=0).fit(X, y > 0)
    logistic = BayesianLogisticRegression(prior_precision=1.0, random_state=0).fit(X, y > 0)
    error = CERTAIN * np.sqrt(2 / logistic.diagnostics_["ess_min"])
    assert (np.abs(ordinal.coef_ - logistic.coef_[0]) < error * ordinal.coef_std_).all()
    np.testing.assert_allclose(ordinal.predict_proba(X), logistic.predict_proba(X), atol=0.02)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_labels_of_any_names_have_the_order_that_is_given():
    X, y = simulated()
    numbers = BayesianOrdinalClassifier(**QUICK).fit(X, y)
    words = BayesianOrdinalClassifier(categories=WORDS, **QUICK).fit(X, WORDS[y])
    assert words.categories_.tolist() == WORDS.tolist()
    assert words.classes_.tolist() == sorted(WORDS)
    np.testing.assert_array_equal(words.draws_, numbers.draws_)
    expected = numbers.predict_proba(X)[:, np.argsort(WORDS)]
    np.testing.assert_allclose(words.predict_proba(X), expected)
    assert (words.predict(X) == WORDS[numbers.predict(X)]).all()
    column = pd.Series(pd.Categorical(WORDS[y], WORDS, ordered=True))
    of_column = BayesianOrdinalClassifier(**QUICK).fit(X, column)
    np.testing.assert_array_equal(of_column.draws_, numbers.draws_)
    with pytest.warns(DataConversionWarning):
        of_frame = BayesianOrdinalClassifier(**QUICK).fit(X, column.to_frame())
    np.testing.assert_array_equal(of_frame.draws_, numbers.draws_)


# a gap that only the prior knows has far tails, which a fit may have to say
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_levels_that_no_row_has_are_classes():
    X, y = simulated(120)
    order = ["none", *WORDS]
    given = BayesianOrdinalClassifier(categories=order, **QUICK).fit(X, WORDS[y])
    column = pd.Series(pd.Categorical(WORDS[y], order, ordered=True))
    with pytest.warns(UserWarning, match=r"no row has the level \['none'\]"):
        of_column = BayesianOrdinalClassifier(**QUICK).fit(X, column)
    np.testing.assert_array_equal(of_column.draws_, given.draws_)
    assert given.categories_.tolist() == of_column.categories_.tolist() == order
    p = given.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert 0 < p[:, given.classes_ == "none"].max() < 0.1
    weighted = BayesianOrdinalClassifier(categories=order, class_weight="balanced", **QUICK)
    assert weighted.fit(X, WORDS[y]).predict_proba(X).shape == (120, 4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.slow
def test_a_fold_may_lack_a_rare_level():
    X, y = simulated(90, seed=4)
    y = np.append(y, 3)
    X = np.vstack([X, [[4.0, 0.0, 0.0]]])
    model = BayesianOrdinalClassifier(categories=[0, 1, 2, 3], **QUICK)
    found = cross_val_predict(model, X, y, cv=KFold(3), method="predict_proba")
    assert found.shape == (91, 4)
    assert 0 < found[-1, 3] < 0.5  # of the fold without it
    assert np.isfinite(cross_val_score(model, X, y, cv=KFold(3), scoring="accuracy")).all()


def stream_of(model, X, chunks, **first):
    for rows, y in chunks:
        model.partial_fit(X[rows], y, **first)
    return model


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_stream_keeps_the_order_that_it_is_given():
    X, y = simulated(200, seed=2)
    parts = np.split(np.arange(200), [80, 130])
    numbers = BayesianOrdinalClassifier(**QUICK)
    expected = stream_of(numbers, X, [(rows, y[rows]) for rows in parts], classes=[0, 1, 2])
    column = pd.Series(pd.Categorical(WORDS[y], WORDS, ordered=True))
    columns = [(rows, column.iloc[rows]) for rows in parts]
    words = [(rows, WORDS[y[rows]]) for rows in parts]
    for chunks, classes in [
        (columns, None),
        (columns, sorted(WORDS)),
        (columns, column.cat.categories),
        (words, column.dtype),
        (words, column),
        (columns[:1] + words[1:], None),
    ]:
        found = stream_of(BayesianOrdinalClassifier(**QUICK), X, chunks, classes=classes)
        assert found.categories_.tolist() == WORDS.tolist()
        np.testing.assert_array_equal(found.coef_, expected.coef_)
    given = stream_of(BayesianOrdinalClassifier(categories=WORDS, **QUICK), X, words)
    np.testing.assert_array_equal(given.coef_, expected.coef_)
    fitted = BayesianOrdinalClassifier(**QUICK).fit(X[:80], column[:80])
    assert fitted.partial_fit(X[80:], column[80:]).categories_.tolist() == WORDS.tolist()


def test_orders_that_contradict_each_other_are_refused():
    X, y = simulated(90)
    column = pd.Series(pd.Categorical(WORDS[y], WORDS, ordered=True))
    turned = column.cat.reorder_categories(WORDS[::-1])
    with pytest.raises(ValueError, match=r"y has ordered categories .* the order of the stream is"):
        BayesianOrdinalClassifier().partial_fit(X, column, classes=turned.dtype)
    model = BayesianOrdinalClassifier(random_state=0).partial_fit(X[:50], column[:50])
    before = model.coef_
    with pytest.raises(ValueError, match="y has ordered categories"):
        model.partial_fit(X[50:], turned[50:])
    with pytest.raises(ValueError, match="categories must stay"):
        model.set_params(categories=WORDS[::-1]).partial_fit(X[50:], column[50:])
    with pytest.raises(ValueError, match="classes has missing labels"):
        model.set_params(categories=WORDS).partial_fit(X, column, classes=[None, *WORDS])
    np.testing.assert_array_equal(model.coef_, before)


def test_thresholds_are_exported_with_their_names():
    X, y = simulated(100)
    model = BayesianOrdinalClassifier(prior_precision=1.0, categories=WORDS, random_state=0)
    model.fit(X, WORDS[y])
    thresholds = model.to_arviz()["posterior"]["thresholds"]
    assert thresholds.coords["threshold"].values.tolist() == ["low | middle", "middle | high"]
    np.testing.assert_array_equal(thresholds, model.threshold_samples_)


def test_words_without_an_order_are_told():
    X, y = simulated(60)
    with pytest.warns(UserWarning, match="alphabetical order; give categories"):
        model = BayesianOrdinalClassifier(random_state=0).fit(X, WORDS[y])
    assert model.categories_.tolist() == ["high", "low", "middle"]


@pytest.mark.parametrize(
    ("categories", "said"),
    [
        (["low", "high"], r"must have all labels.*\['middle'\] have no place"),
        (["low", "low", "middle", "high"], "each label once"),
        ([None, "low", "middle", "high"], "categories has missing labels"),
        ([["low", "middle", "high"]], "each label once"),
    ],
)
def test_categories_that_do_not_order_the_labels_are_refused(categories, said):
    X, y = simulated(60)
    for fit in ("fit", "partial_fit"):
        model = BayesianOrdinalClassifier(categories=categories)
        more = {"classes": sorted(WORDS)} if fit == "partial_fit" else {}
        with pytest.raises(ValueError, match=said):
            getattr(model, fit)(X, WORDS[y], **more)


def test_summary_has_thresholds_in_the_units_of_the_columns():
    X, y = simulated()
    moved = X * [10.0, 1.0, 1.0] + [5.0, 0.0, -2.0]
    model = BayesianOrdinalClassifier(categories=WORDS, n_predict_draws=None, random_state=0).fit(
        X, WORDS[y]
    )
    table = model.summary()
    assert table.index.tolist() == ["x0", "x1", "x2", "low | middle", "middle | high"]
    np.testing.assert_allclose(table["mean"].iloc[3:], model.thresholds_)
    median = np.median(model.coef_samples_[..., 0])
    assert table.loc["x0", "odds_ratio"] == pytest.approx(np.exp(median))
    # odds of "low" where all columns are 0
    p = expit(model.threshold_samples_[..., 0]).mean()
    at_zero = dict(zip(model.classes_, model.predict_proba(np.zeros((1, 3)))[0], strict=True))
    assert at_zero["low"] == pytest.approx(p, abs=1e-6)
    scaler = StandardScaler().fit(moved)
    scaled = BayesianOrdinalClassifier(random_state=0).fit(scaler.transform(moved), y)
    natural = BayesianOrdinalClassifier(random_state=0).fit(moved, y)
    found, expected = scaled.summary(scaler=scaler), natural.summary()
    error = CERTAIN * np.sqrt(2 / natural.diagnostics_["ess_min"]) * expected["sd"]
    assert (np.abs(found["mean"] - expected["mean"]).to_numpy() < error.to_numpy()).all()
    with pytest.raises(ValueError, match="without an order"):
        model.summary(reference="low")


@pytest.mark.slow
def test_streams_end_where_all_rows_do():
    X, y = simulated(1000)
    stream = BayesianOrdinalClassifier(prior_precision=1.0, random_state=0)
    for rows in np.array_split(np.arange(1000), 20):
        stream.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    whole = BayesianOrdinalClassifier(prior_precision=1.0, random_state=0).fit(X, y)
    assert (np.abs(stream.coef_ - whole.coef_) < 0.15 * whole.coef_std_).all()
    np.testing.assert_allclose(stream.coef_std_, whole.coef_std_, rtol=0.08)
    np.testing.assert_allclose(stream.thresholds_, whole.thresholds_, atol=0.02)


@pytest.mark.slow  # a thousand passes look for a mode
def test_a_chunk_that_overflows_is_refused_and_leaves_the_stream_as_it_was():
    X, y = simulated(100)
    stream = BayesianOrdinalClassifier(prior_precision=1.0, random_state=0)
    before = stream.partial_fit(X, y, classes=[0, 1, 2]).coef_
    with pytest.raises((FloatingPointError, ValueError), match="scale the columns of X"):
        stream.partial_fit(1e20 * X, y)
    np.testing.assert_array_equal(stream.coef_, before)
