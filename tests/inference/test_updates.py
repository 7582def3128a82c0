"""Each update of the warm-up by itself: made-up points lead to the next start, or to none."""

from dataclasses import replace

import numpy as np
import pytest

from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression, VariationalEM
from skbayes_sg.inference.start import Start, begin
from skbayes_sg.inference.updates import AtMeans, ByEM, Evidence, Recentre
from skbayes_sg.priors import Horseshoe

POINTS = (4, 40)  # chains and points


class HasBegunError(Exception):
    """Ends a fit where its chains have begun."""


def begun(monkeypatch, model, X, y):
    """What the warm-up of a fit begins from: start, engine and target."""

    def watched(start):
        raise HasBegunError(start, *begin(start))

    monkeypatch.setattr("skbayes_sg.inference.warm_up.begin", watched)
    with pytest.raises(HasBegunError) as told:
        model.fit(X, y)
    return told.value.args


def classes(n_rows, n_columns):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n_rows, n_columns))
    return X, (X[:, 0] + rng.logistic(size=n_rows) > 0).astype(int)


def points_about(rng, start, engine, shift):
    """Standard normal parameters, and hyperparameters `shift` widths from their centre."""
    sampled = engine.sampled
    theta = rng.standard_normal((*POINTS, start.posterior.dim))
    eta = rng.standard_normal((*POINTS, sampled.scales.dim)) * 0.1 + shift
    return np.append(theta, sampled.centre + sampled.width * eta, axis=2)


@pytest.mark.parametrize(("shift", "stays"), [(-1.3, True), (1.3, True), (1.7, False)])
def test_a_precision_within_the_reach_of_the_curves_stays(monkeypatch, shift, stays):
    model = BayesianLogisticRegression("hmc", n_draws=8, random_state=0)
    start, engine, target = begun(monkeypatch, model, *classes(40, 3))
    points = points_about(np.random.default_rng(0), start, engine, shift)
    update = Recentre()
    assert update.steps(engine, target) > 0
    moved = update(start, engine, target, points)
    assert (moved is None) == stays
    if not stays:
        late = points[:, POINTS[1] // 2 :, -1]
        np.testing.assert_allclose(moved.learned.sampled.centre, [late.mean()])
        np.testing.assert_allclose(moved.learned.values, [np.exp(late.mean())])
        assert len(moved.learned.path) == len(engine.learned.path) + 1
        assert moved.options.last is engine.last


def test_a_given_precision_leaves_nothing_to_tell(monkeypatch):
    model = BayesianLogisticRegression("hmc", 1.0, n_draws=8, random_state=0)
    _, engine, target = begun(monkeypatch, model, *classes(40, 3))
    assert Recentre().steps(engine, target) == 0


def test_coordinates_of_one_coefficient_at_a_time_are_taken_at_the_means(monkeypatch):
    model = BayesianLogisticRegression(prior=Horseshoe(), burn_in=2, n_draws=8, random_state=0)
    start, engine, target = begun(monkeypatch, model, *classes(20, 30))
    points = points_about(np.random.default_rng(0), start, engine, 0.5)
    moved = AtMeans()(start, engine, target, points)
    mean, dim = points.mean(axis=(0, 1)), start.posterior.dim
    np.testing.assert_allclose(moved.initial.theta, [mean[:dim]])
    np.testing.assert_allclose(moved.learned.sampled.centre, mean[dim:])
    assert AtMeans().steps(engine, target) == 2


def test_the_move_of_the_evidence_is_that_of_mackay(monkeypatch, seed):
    """gamma and |m|^2 of a conjugate model are known; points are exact draws."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 20))
    y = X @ rng.standard_normal(20) * 0.3 + rng.standard_normal(60)
    model = BayesianLinearRegression(noise_variance=1.0, fit_intercept=False, random_state=0)
    start, _, _ = begun(monkeypatch, model, X, y)
    asked = start.options.precision
    posterior = start.posterior
    scales, precision = asked.of(posterior), posterior.prior.precision
    covariance = np.linalg.inv(X.T @ X + np.diag(precision))
    mean = covariance @ X.T @ y
    root = np.linalg.cholesky(covariance)
    update, found = Evidence(scales, posterior), []
    for _ in range(120):
        points = mean + rng.standard_normal((8, 200, 20)) @ root.T
        found.append(update.move(posterior, points)[0])
    # with what the hyperprior adds to the number of coefficients and to their squares
    gamma = 20 - precision @ covariance.diagonal() + 2 * scales.shape
    squares = precision @ mean**2 + 2 * scales.shape / scales.unit * scales.of(posterior.prior)[0]
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert abs(np.mean(found) - np.log(gamma / squares)) < 4 * error
    assert error < 0.01


def test_em_goes_on_until_neither_precision_nor_anchor_moves(monkeypatch):
    em = VariationalEM(n_updates=60)
    model = BayesianLogisticRegression(prior_precision=em, n_draws=8, random_state=0)
    start, engine, target = begun(monkeypatch, model, *classes(400, 3))
    update = ByEM(em, start)
    burnt, points = update.burn(start, engine, target, update.steps(engine, target))
    moved = update(start, burnt, target, points)
    np.testing.assert_array_equal(moved.posterior.prior.precision, update.learned.precision)
    update.learned = replace(update.learned, change=np.zeros(1))
    assert not update.has_moved(burnt.expansion)
    assert update.steps(burnt, target) == 0
    far = burnt.expansion._replace(theta=burnt.expansion.theta + 1.0)
    assert update.has_moved(far)
    assert update.steps(replace(burnt, expansion=far), target) > 0
    update.learned = replace(update.learned, change=np.ones(1), uncertainty=np.full(1, 0.1))
    assert update.steps(burnt, target) > 0


def test_em_takes_another_sampler_where_its_chains_were_thrown(monkeypatch):
    em = VariationalEM(n_updates=60)
    model = BayesianLogisticRegression(prior_precision=em, n_draws=8, random_state=0)
    start, engine, target = begun(monkeypatch, model, *classes(400, 3))
    update = ByEM(em, start)
    burnt, points = update.burn(start, engine, target, 60)
    update._told = replace(update._told, stein=np.full(1, 3.0))
    moved = update(start, burnt, target, points)
    assert type(moved.choice.sampler).__name__ == "HMC"
    assert update.learned is None
    assert isinstance(moved, Start)
    # the second time, the figure is told as a warning
    assert update(moved, burnt, target, points) is not None
    assert (update.learned.stein == 3.0).all()
