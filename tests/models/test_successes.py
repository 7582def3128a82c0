"""Binomial and beta-binomial families: SciPy's distributions, and rows of single trials."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit

from skbayes_sg.data import Batch
from skbayes_sg.linalg import FULL
from skbayes_sg.models import BetaBinomial, Binomial, Softmax, check_family

RNG = np.random.default_rng(0)
EACH = pytest.mark.parametrize("model", [Binomial(2), BetaBinomial(2)], ids=["plain", "beta"])
TRIALS = [1, 3, 33, 70, 3000]
SHARES = [0.5, 0.02, 0.97]
CORRELATIONS = [1e-5, 0.01, 0.3, 0.8]


def at(share, correlation, trials, n=1):
    outputs = np.empty((1, 3, n))
    outputs[:, 0], outputs[:, 1], outputs[:, 2] = logit(share), logit(correlation), trials
    return outputs


def scipys(share, correlation, trials):
    s = 1 / correlation - 1
    return stats.betabinom(trials, s * share, s * (1 - share))


def rows_and_trials(n=12):
    """Rows with offsets and trials, successes, and each trial as a row of logistic regression."""
    X, offset = RNG.standard_normal((n, 2)), RNG.normal(size=n)
    trials = RNG.integers(1, 9, n)
    y = RNG.binomial(trials, 0.4).astype(float)
    of_trial = np.repeat(np.arange(n), trials)
    first = np.cumsum(trials) - trials
    labels = np.where(np.arange(len(of_trial)) - first[of_trial] < y[of_trial], 1.0, -1.0)
    rows = np.column_stack([X, offset, trials])
    return rows, y, rows[of_trial, :3], labels


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("trials", TRIALS)
@pytest.mark.parametrize("correlation", CORRELATIONS)
def test_beta_binomial_is_scipys(share, correlation, trials):
    model, wanted = BetaBinomial(1), scipys(share, correlation, trials)
    every = np.arange(trials + 1.0)
    mass = wanted.pmf(every)
    y = every[np.unique(np.rint(trials * np.linspace(0, 1, 60) ** 2).astype(int))]
    outputs = at(share, correlation, trials, len(y))
    np.testing.assert_allclose(model.value(outputs, y)[0], wanted.logpmf(y), atol=1e-8)
    below = np.cumsum(mass)[y.astype(int)]
    np.testing.assert_allclose(
        model.distribution(y, outputs)[0], below, atol=3e-5
    )  # of a rule of 8 nodes
    np.testing.assert_array_equal(
        model.distribution(y + 0.7, outputs), model.distribution(y, outputs)
    )
    outside = model.distribution(np.where(y > trials / 2, trials + 5.0, -0.5), outputs)[0]
    np.testing.assert_array_equal(outside, y > trials / 2)
    np.testing.assert_allclose(model.mean(outputs)[0], wanted.mean())
    np.testing.assert_allclose(model.variance(outputs)[0], wanted.var())

    residual = model.residual(at(share, correlation, trials, trials + 1), every)[0]
    information = (mass * residual) @ residual.T
    found = model.expected(outputs[:, :, :1])[0, ..., 0]
    scale = np.sqrt(np.outer(found.diagonal(), found.diagonal())) + 1e-9
    np.testing.assert_allclose(found / scale, information / scale, atol=0.3)  # of cells


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("trials", TRIALS)
def test_binomial_is_scipys(share, trials):
    model, wanted = Binomial(1), stats.binom(trials, share)
    y = np.unique(np.rint(trials * np.linspace(0, 1, 60)))
    outputs = at(share, 0.5, trials, len(y))[:, ::2]
    np.testing.assert_allclose(model.value(outputs, y)[0], wanted.logpmf(y), rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(model.distribution(y, outputs)[0], wanted.cdf(y), atol=1e-12)
    np.testing.assert_allclose(model.distribution(y - 0.1, outputs)[0], wanted.cdf(y - 1))
    np.testing.assert_allclose(model.mean(outputs)[0], wanted.mean())
    np.testing.assert_allclose(model.variance(outputs)[0], wanted.var())
    kurtosis = wanted.stats(moments="k")
    np.testing.assert_allclose(model.excess_kurtosis(outputs)[0], kurtosis)


@pytest.mark.parametrize("trials", [1, 17, 60, 5000])
@EACH
def test_moments_of_the_log_loss_are_those_of_all_counts(model, trials):
    theta, X = np.array([[0.0, 0.0, -1.0, -2.0]])[:, : model.dim], np.zeros((2, 4))
    X[:, 3] = trials
    every = np.arange(trials + 1.0)
    rows = np.repeat(X[:1], trials + 1, axis=0)
    log_mass = model.log_likelihood(theta, rows, every)[0]
    mean = -np.exp(log_mass) @ log_mass
    variance = np.exp(log_mass) @ (log_mass + mean) ** 2
    found = model.log_loss_moments(theta, X)
    np.testing.assert_allclose(found[0], mean, rtol=0.01)
    np.testing.assert_allclose(found[1], variance, rtol=0.1)


def test_a_beta_binomial_of_next_to_no_correlation_is_binomial():
    outputs = at(0.3, 1e-7, 40, 41)  # of less digits are lost
    y = np.arange(41.0)
    plain = Binomial(1)
    np.testing.assert_allclose(
        BetaBinomial(1).value(outputs, y), plain.value(outputs[:, ::2], y), atol=3e-4
    )
    np.testing.assert_allclose(
        BetaBinomial(1).distribution(y, outputs), plain.distribution(y, outputs[:, ::2]), atol=1e-5
    )


def test_a_row_of_trials_is_as_many_rows_of_logistic_regression():
    """Log density but for a constant, gradient, information; at a point and over a distribution."""
    rows, y, each, labels = rows_and_trials()
    model, single = Binomial(2), Softmax(2, 2)
    theta = RNG.standard_normal((3, 3))
    of_rows = model.log_likelihood(theta, rows, y).sum(axis=1)
    of_trials = single.log_likelihood(theta, each, labels).sum(axis=1)
    np.testing.assert_allclose(np.diff(of_rows), np.diff(of_trials), rtol=1e-12)
    ways = stats.binom(rows[:, 3], 0.5).logpmf(y) + rows[:, 3] * np.log(2)
    np.testing.assert_allclose(of_rows - of_trials, ways.sum(), rtol=1e-12)
    np.testing.assert_allclose(
        model.scores(theta, rows, y).total(), single.scores(theta, each, labels).total(), rtol=1e-12
    )
    information = [
        one.information(theta[:1], Batch(X, targets, None), FULL).dense()
        for one, X, targets in ((model, rows, y), (single, each, labels))
    ]
    np.testing.assert_allclose(*information, rtol=1e-12)
    for scale in (None, 0.2, 5.0):
        root = None if scale is None else scale * np.eye(3)
        sums = []
        for one, X, targets in ((model, rows, y), (single, each, labels)):
            residual, between = one.row_terms(theta[:1], root, X, targets)
            batch = Batch(X, targets, None)
            total = one.times_inputs(residual[None], X).total()
            sums.append((total, one.moment_of(between, batch).dense()))
        for found, wanted in zip(*sums, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("far", "trials"), [(0.3, 40), (3.0, 40), (60.0, 40), (0.3, 1_000_000)])
def test_an_expansion_has_no_difference_of_nearly_equal_numbers(far, trials, dtype):
    """A million rare trials are a few events, which single precision has to tell apart."""
    model = Binomial(1)
    eta = np.array([-13.0, -3.0, 0.0, 2.0, 13.0])
    outputs = np.stack([eta, np.full(5, float(trials))])[None]
    y = np.rint(trials * expit(eta))
    change = (far * np.linspace(-1, 1, 7)[:, None, None] * np.ones((7, 1, 5))).astype(dtype)
    at_anchor = tuple(each.astype(dtype) for each in model.expand_rows(outputs, y))
    after = model.moved(outputs, change.astype(np.float64))
    difference = model.residual(after, y) - model.residual(outputs, y)
    found = model.difference(change.copy(), at_anchor)
    assert found.dtype == dtype
    rtol = 2e-5 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(found, difference, rtol=rtol)
    beyond = model.value(after, y) - model.value(outputs, y)
    beyond -= (model.residual(outputs, y) * change).sum(axis=1)
    value, slope = model.bregman_remainder(change.copy(), at_anchor)
    np.testing.assert_array_equal(slope, found)
    size = np.abs(difference * change).max(axis=1)  # of what cancels
    assert (np.abs(value - beyond) <= rtol * size + 1e-6).all()
    linear = model.expected(outputs)[0] * change
    remainder = model.remainder(change.copy(), at_anchor)
    np.testing.assert_allclose(
        remainder, difference + linear, rtol=rtol, atol=rtol * np.abs(difference).max()
    )


@EACH
def test_without_trials_outputs_are_those_of_a_share(model):
    theta, X = RNG.standard_normal((2, model.dim)), RNG.standard_normal((5, 2))
    share = expit(theta[:, :2] @ X.T + theta[:, [2]])
    np.testing.assert_allclose(model.predict(theta, X)[:, 0], share)
    offset = np.column_stack([X, np.ones(5)])
    np.testing.assert_allclose(model.predict(theta, offset)[:, 0], expit(logit(share) + 1))
    rows = np.column_stack([offset, np.full(5, 7.0)])
    np.testing.assert_allclose(model.predict(theta, rows)[:, 0], 7 * expit(logit(share) + 1))


@EACH
def test_chains_may_have_rows_and_trials_of_their_own(model):
    X = np.concatenate([RNG.standard_normal((3, 5, 3)), RNG.integers(1, 9, (3, 5, 1))], axis=2)
    y, theta = RNG.binomial(X[..., 3].astype(int), 0.5), RNG.standard_normal((3, model.dim))
    together = model.scores(theta, X, y).total()
    for c in range(3):
        one = theta[[c]]
        np.testing.assert_allclose(together[c], model.scores(one, X[c], y[c]).total()[0])
        np.testing.assert_allclose(
            model.log_likelihood(theta, X, y)[c], model.log_likelihood(one, X[c], y[c])[0]
        )


@EACH
def test_the_guess_has_the_share_of_all_trials(model):
    rows, y, _, _ = rows_and_trials(2000)
    rows[:, :2] = 0
    rows[:, 2] = 0.7
    weight = RNG.uniform(0.5, 2.0, 2000)
    theta = model.guess(y, weight, rows[:, 2:])
    share = model.predict(theta, rows[:1, :3])[0, 0, 0]
    assert share == pytest.approx((weight @ y) / (weight @ rows[:, 3]), rel=1e-3)


@EACH
def test_a_family_is_right_where_probabilities_are_next_to_zero_and_one(model):
    outputs = np.empty((2, 3, 4))
    outputs[:, 0] = [-12.0, -8.0, 8.0, 12.0]
    outputs[:, 1] = [[-8.0], [-1.0]]
    outputs[:, 2] = [1_000_000, 4000, 4000, 400_000]
    far = outputs if model.own else outputs[:, ::2]
    y = np.asarray(model.draw(far, RNG), np.float64)
    for found in (model.value(far, y), model.residual(far, y), model.observed_at(far, y)):
        assert np.isfinite(found).all()
    extreme = far.copy()
    extreme[:, 0] = [-800.0, -40.0, 40.0, 800.0]
    edge = np.where(extreme[0, 0] < 0, 0.0, extreme[0, -1])
    assert (model.value(extreme, edge) <= 0).all()
    assert np.isfinite(model.residual(extreme, edge)).all()
    assert np.isfinite(model.distribution(edge, extreme)).all()


def test_the_checker_takes_trials_as_they_are_given():
    check_family(BetaBinomial, at(0.2, 0.05, [5, 80, 200], 3))
