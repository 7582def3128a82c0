"""The precision that is learned before the chains: its fixed point, its hyperprior, its limits."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import BayesianRidge

from skbayes_sg import (
    BayesianLinearRegressionSGFS,
    BayesianLogisticRegressionSGFS,
    PriorPrecisionDisplay,
)
from skbayes_sg.data import InMemory, of_columns
from skbayes_sg.inference import evidence, evidence_search
from skbayes_sg.inference.evidence import NormalEM, learn_before
from skbayes_sg.models import Linear, Softmax
from skbayes_sg.posterior import Posterior


def labels(n_rows, n_features=8, size=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    return X, X @ rng.standard_normal(n_features) * size + rng.logistic(size=n_rows) > 0


def bound(X, y, precision=1.0):
    """The posterior of two classes, without an intercept."""
    return Posterior.of(Softmax(X.shape[1], 2, False), X, np.where(y, 1.0, -1.0), precision)


def test_linear_regression_finds_the_precision_of_bayesian_ridge(monkeypatch):
    """But for the hyperprior, whose shape is nothing here."""
    monkeypatch.setattr(evidence, "_SHAPE", 1e-12)
    X, y = load_diabetes(return_X_y=True)
    ridge = BayesianRidge().fit(X, y)
    model = BayesianLinearRegressionSGFS(random_state=0).fit(X, y)
    assert model.prior_precision_[0] == pytest.approx(ridge.lambda_ / ridge.alpha_, rel=0.01)


@pytest.mark.parametrize("mean", [0.0, 2.0])
def test_the_fixed_point_holds_for_the_draws(mean, seed):
    """lambda (E ||theta - mean||^2 + 2 b) = P + 2 a, within five Monte Carlo errors and 3 %."""
    X, y = labels(400)
    model = BayesianLogisticRegressionSGFS(
        sampler="hmc", prior_mean=mean, fit_intercept=False, n_draws=100, random_state=seed
    ).fit(X, y)
    unit = of_columns(InMemory.of(X, y)).unit
    squares = np.sum((unit * (model.coef_samples_[..., 0, :] - mean)) ** 2, axis=2)
    shape, rate = NormalEM().hyperprior(np.mean((X**2).mean(axis=0) / unit**2))
    learned = model.prior_precision_blocks_["coef"]
    ratio = learned * (squares.mean(axis=1) + 2 * rate) / (8 + 2 * shape)
    error = ratio.std(ddof=1) / np.sqrt(len(ratio))
    assert abs(ratio.mean() - 1) < 0.03 + 5 * error


def test_noise_has_a_finite_precision_and_units_do_not_matter():
    X, _ = labels(500, 20)
    y = np.random.default_rng(1).random(500) < 0.5
    learned, onward, _ = learn_before(NormalEM(), bound(X, y))
    assert 5 < learned.values[0] <= 21  # (P + 2 a) / 2 b
    assert onward is None
    assert not learned.complaints()
    scaled, *_ = learn_before(NormalEM(), bound(10 * X, y, 100.0))
    assert scaled.values[0] == pytest.approx(100 * learned.values[0], rel=0.02)


def test_one_coefficient_keeps_a_wide_prior(seed):
    """The maximum of the evidence would often be at infinity."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((100, 1)), rng.random(100) < 0.5
    assert learn_before(NormalEM(), bound(X, y))[0].values[0] < 2


def test_separable_classes_go_on_in_the_chains():
    X, _ = labels(100, 4)
    y = X[:, 0] > X[:, 1]
    learned, onward, _ = learn_before(NormalEM(), bound(X, y))
    assert onward is not None
    model = BayesianLogisticRegressionSGFS(fit_intercept=False, n_draws=100, random_state=0)
    with pytest.warns(ConvergenceWarning, match="the data hardly determine the prior precision"):
        model.fit(X, y)
    path = model.prior_precision_path_[:, 0]
    assert len(path) > len(learned.path)
    assert model.prior_precision_[0] < learned.values[0]
    assert PriorPrecisionDisplay.from_estimator(model).labels == ["coef"]


def test_random_signs_find_the_trace_of_many_parameters(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 40))
    y = X @ rng.standard_normal(40) * 0.2 + rng.standard_normal(300)
    posterior = Posterior.of(Linear(40, False, 1.0), X, y, 1.0)
    exact = learn_before(NormalEM(), posterior)[0]
    monkeypatch.setattr("skbayes_sg.linalg.sizes._IN_EVERY_STEP", 10)
    found = learn_before(NormalEM(), posterior)[0]
    assert found.values[0] == pytest.approx(exact.values[0], rel=0.05)
    assert found.values[0] != exact.values[0]


def search(posterior, precision):
    """A search for the precision, from that of a weak prior."""
    gamma = NormalEM().hyperprior(precision)
    return evidence_search.Search(posterior, np.arange(posterior.dim), gamma)


def test_steps_towards_the_mean_end_at_the_variational_law():
    """Ten rows a coefficient: at the mode the precision is too high."""
    X, y = labels(1000, 100, 0.15)
    at_mode, in_mean, nearer = (search(bound(X, y), 1.0) for _ in range(3))
    for one in (at_mode, in_mean, nearer):
        one.run(one.at_mode)
    in_mean.run(in_mean.in_mean)
    nearer.run(nearer.nearer_mean)
    off = np.array([at_mode.path[-1], nearer.path[-1]]) - in_mean.path[-1]
    assert off[0] > 0.1
    assert abs(off[1]) < 0.02
    assert nearer.near().is_mean
    assert not at_mode.near().is_mean
    np.testing.assert_allclose(nearer.guess, in_mean.guess, atol=0.05)


def test_no_step_leads_to_the_mean_of_a_very_skewed_posterior():
    X, _ = labels(60, 40)
    one = search(bound(X, X[:, 0] > 0), 1e-3)
    one.run(one.at_mode, near=np.inf)
    assert one.nearer_mean() is None
    assert not one.near().is_mean


def test_where_a_later_step_is_refused_the_law_at_the_mode_stays():
    """As with a hundred events in 9,000 rows, and a thousand columns that say nothing of them."""
    X, y = labels(1000, 100, 0.15)
    one = search(bound(X, y), 1.0)
    one.run(one.at_mode)
    path, guess, posterior = list(one.path), one.guess, one.posterior
    laws = iter([one.nearer_mean, lambda: None])
    one.run(lambda: next(laws)(), near=0.0)
    assert one.path == path
    assert one.guess is guess
    assert one.posterior is posterior
    assert not one.is_mean


def test_few_rows_a_parameter_have_a_precision_that_the_draws_confirm(monkeypatch, seed):
    """The score of log precision at the draws, in its standard deviations, is near zero."""
    X, y = labels(1000, 100, 0.15, seed)
    scores = []
    for limit in (2_000_000, 0):
        monkeypatch.setattr(evidence, "_MANY_NUMBERS", limit)
        model = BayesianLogisticRegressionSGFS(random_state=seed).fit(X, y)
        scores.append(model.diagnostics_["precision_score"])
        assert len(model.prior_precision_path_) < 12  # no updates in chains
    assert np.abs(scores).max() < 0.4


def test_steps_in_the_chains_grow_until_the_excess_changes_its_sign():
    onward = evidence._FewOnward((0.5, 0.5), 20, 3.0)
    pace = np.ones(2)
    for t, agrees in enumerate([True, True, True]):
        pace = onward.pace(t, pace, np.array([agrees, t < 2]))
    np.testing.assert_allclose(pace, [1.3**2, 1.3 * 0.5])


def test_a_stream_learns_from_its_first_chunk():
    X, y = labels(600)
    model = BayesianLogisticRegressionSGFS(random_state=0)
    model.partial_fit(X[:300], y[:300], classes=[False, True])
    alone = BayesianLogisticRegressionSGFS(random_state=0).fit(X[:300], y[:300])
    assert model.prior_precision_[0] == pytest.approx(alone.prior_precision_[0], rel=0.01)
    before = model.prior_precision_.copy()
    np.testing.assert_array_equal(model.partial_fit(X[300:], y[300:]).prior_precision_, before)
    one_row = BayesianLogisticRegressionSGFS().partial_fit(X[:1], y[:1], classes=[False, True])
    assert 0.3 < one_row.prior_precision_[0] < 3


def test_weights_classes_and_the_summary():
    X, y = labels(300)
    kinds = y.astype(int) + (X[:, 0] > 1)
    weight = np.random.default_rng(2).integers(0, 3, 300)
    a, b = (BayesianLogisticRegressionSGFS(random_state=0) for _ in range(2))
    a.fit(X, kinds, sample_weight=weight)
    b.fit(np.repeat(X, weight, axis=0), np.repeat(kinds, weight))
    assert a.prior_precision_[0] == pytest.approx(b.prior_precision_[0], rel=1e-6)
    learned = a.prior_precision_blocks_["coef"]
    assert a.summary().attrs == {"prior precision of coef": learned}
    unit = of_columns(InMemory.of(np.repeat(X, weight, axis=0), weight)).unit
    np.testing.assert_allclose(a.prior_precision_[:8], learned * unit**2, rtol=1e-6)
    assert a.coef_.shape == (3, 8)


def test_columns_without_a_scale_are_not_worse_off():
    """One precision for columns a thousand times as large as others."""
    X, y = labels(1000)
    far = X * np.geomspace(1, 1e3, 8)
    here, there = (
        BayesianLogisticRegressionSGFS(prior_precision=how, n_draws=50, random_state=0)
        .fit(far[:500], y[:500])
        .predict_proba(far[500:])
        for how in ("em", 1.0)
    )
    right = np.arange(500), y[500:].astype(int)
    assert np.log(here[right]).mean() > np.log(there[right]).mean() - 0.01


def test_many_classes_learn_their_precision_in_the_chains(seed):
    """The precision of the coefficients that were drawn is 11; the data leave some 10 %."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((600, 100))
    z = X @ rng.standard_normal((100, 11)) * 0.3 + rng.gumbel(size=(600, 11))
    model = BayesianLogisticRegressionSGFS(n_draws=20, random_state=seed)
    with warnings.catch_warnings(action="ignore"):  # few draws
        model.fit(X, z.argmax(axis=1))
    assert 5 < model.prior_precision_[0] < 20
