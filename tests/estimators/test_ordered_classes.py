"""Regression of ordered classes: its posterior, the order, and what comes out."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLogisticRegression, BayesianOrdinalClassifier
from skbayes_sg.models import Ordinal

COEF, CUTS = np.array([1.0, -0.5, 0.0]), np.array([-1.0, 0.5])
WORDS = np.array(["low", "middle", "high"])
CERTAIN = 5.0  # Monte Carlo errors


def simulated(n_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 3))
    return X, np.digitize(X @ COEF + rng.logistic(size=n_rows), CUTS)


def test_moments_are_those_of_the_posterior(seed):
    """By importance sampling from Student's t around the draws; the prior precision is given."""
    X, y = simulated(60, seed)
    model = BayesianOrdinalClassifier(prior_precision=1.0, random_state=seed).fit(X, y)
    draws = model.draws_.reshape(-1, 5)
    rng, root = np.random.default_rng(1), np.linalg.cholesky(np.cov(draws.T))
    scale = np.sqrt(5 / rng.chisquare(5, size=(200_000, 1)))
    z = rng.standard_normal((len(scale), 5)) * scale
    theta, family = draws.mean(axis=0) + z @ root.T, Ordinal(3, np.arange(3))
    target = np.concatenate(
        [family.log_likelihood(part, X, y).sum(axis=1) for part in np.array_split(theta, 100)]
    )
    target -= 0.5 * theta**2 @ [1.0, 1.0, 1.0, 0.01, 0.25]
    log_weight = target + 5 * np.log1p((z**2).sum(axis=1) / 5)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    assert 1 / (weight**2).sum() > 20_000  # effective draws
    mean = weight @ theta
    sd = np.sqrt(weight @ (theta - mean) ** 2)
    error = CERTAIN / np.sqrt(model.diagnostics_["ess_min"])
    assert (np.abs(draws.mean(axis=0) - mean) < (error + 0.02) * sd).all()
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=error + 0.02)


def test_the_truth_is_in_the_posterior_of_many_rows(seed):
    X, y = simulated(1500, seed)
    model = BayesianOrdinalClassifier(random_state=seed).fit(X, y)
    assert (np.abs(model.coef_ - COEF) < CERTAIN * model.coef_std_).all()
    sd = model.threshold_samples_.std(axis=(0, 1))
    assert (np.abs(model.thresholds_ - CUTS) < CERTAIN * sd).all()
    np.testing.assert_allclose(model.threshold_samples_[..., 0], -model.intercept_samples_)


def test_two_classes_are_logistic_regression():
    X, y = simulated(200)
    ordinal = BayesianOrdinalClassifier(prior_precision=1.0, random_state=0).fit(X, y > 0)
    logistic = BayesianLogisticRegression(prior_precision=1.0, random_state=0).fit(X, y > 0)
    error = CERTAIN * np.sqrt(2 / logistic.diagnostics_["ess_min"])
    assert (np.abs(ordinal.coef_ - logistic.coef_[0]) < error * ordinal.coef_std_).all()
    np.testing.assert_allclose(ordinal.predict_proba(X), logistic.predict_proba(X), atol=0.02)


def test_labels_of_any_names_have_the_order_that_is_given():
    X, y = simulated()
    numbers = BayesianOrdinalClassifier(random_state=0).fit(X, y)
    words = BayesianOrdinalClassifier(categories=WORDS, random_state=0).fit(X, WORDS[y])
    assert words.categories_.tolist() == WORDS.tolist()
    assert words.classes_.tolist() == sorted(WORDS)
    np.testing.assert_array_equal(words.draws_, numbers.draws_)
    expected = numbers.predict_proba(X)[:, np.argsort(WORDS)]
    np.testing.assert_allclose(words.predict_proba(X), expected)
    assert (words.predict(X) == WORDS[numbers.predict(X)]).all()
    column = pd.Series(pd.Categorical(WORDS[y], [*WORDS, "unseen"], ordered=True))
    of_column = BayesianOrdinalClassifier(random_state=0).fit(X, column)
    np.testing.assert_array_equal(of_column.draws_, numbers.draws_)


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
        (["low", "high"], "must be the labels of y"),
        (["low", "middle", "high", "top"], "must be the labels of y"),
        (["low", "low", "middle", "high"], "each label once"),
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
    model = BayesianOrdinalClassifier(categories=WORDS, random_state=0).fit(X, WORDS[y])
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


def test_streams_end_where_all_rows_do():
    X, y = simulated(1000)
    stream = BayesianOrdinalClassifier(prior_precision=1.0, random_state=0)
    for rows in np.array_split(np.arange(1000), 20):
        stream.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    whole = BayesianOrdinalClassifier(prior_precision=1.0, random_state=0).fit(X, y)
    assert (np.abs(stream.coef_ - whole.coef_) < 0.15 * whole.coef_std_).all()
    np.testing.assert_allclose(stream.coef_std_, whole.coef_std_, rtol=0.08)
    np.testing.assert_allclose(stream.thresholds_, whole.thresholds_, atol=0.02)


def test_a_chunk_that_overflows_is_refused_and_leaves_the_stream_as_it_was():
    X, y = simulated(100)
    stream = BayesianOrdinalClassifier(prior_precision=1.0, random_state=0)
    before = stream.partial_fit(X, y, classes=[0, 1, 2]).coef_
    with pytest.raises(FloatingPointError, match="posterior_ is not finite; scale the columns"):
        stream.partial_fit(1e20 * X, y)
    np.testing.assert_array_equal(stream.coef_, before)
