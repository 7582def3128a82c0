"""What a fit prepares: seeds, samplers, and what a question may not change."""

import copy
from dataclasses import replace

import numpy as np
import pytest

from skbayes_sg import BayesianLogisticRegression, BayesianMLPClassifier
from skbayes_sg.inference.one_mode import OneMode
from skbayes_sg.samplers import SGFS, SGLD, PolynomialDecay

SHORT = {"n_chains": 2, "n_draws": 8, "burn_in": 20, "thin": 1}
pytestmark = pytest.mark.usefixtures("_short_runs_may_warn")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    return X, (X[:, 0] + rng.logistic(size=300) > 0).astype(int)


def position(random_state):
    return random_state.get_state()[2]


@pytest.mark.parametrize(("stein", "enough"), [(2.5, True), (1.9, False)])
def test_chains_that_were_thrown_out_do_not_go_on(data, stein, enough):
    """They disagree; steps with a Metropolis test, and those that were asked for, may go on."""
    figures = {"r_hat_max": 1.2, "r_hat_limit": 1.05, "ess_min": 90.0, "ess_tail_min": 80.0}
    figures |= {"stein_ratio": stein}
    for sampler, expected in ((None, enough), ("hmc", False), ("sgld", False)):
        model = BayesianLogisticRegression(sampler, random_state=0, **SHORT, prior_precision=1.0)
        fit = replace(model.fit(*data)._fit, figures=figures)
        assert OneMode().is_enough(fit) == expected


def test_a_resumed_fit_takes_no_numbers_from_random_state(data):
    random_state = np.random.RandomState(0)
    model = BayesianLogisticRegression(
        SGFS(batch_size=50),
        warm_start=True,
        random_state=random_state,
        **SHORT,
        prior_precision=1.0,
    )
    model.fit(*data)
    before = position(random_state)
    model.fit(*data)
    assert position(random_state) == before
    model.fit(*(part[:200] for part in data))
    assert position(random_state) != before


def test_a_refused_call_takes_none_either(data):
    random_state = np.random.RandomState(0)
    before = position(random_state)
    model = BayesianLogisticRegression(
        SGFS(batch_size=0), random_state=random_state, **SHORT, prior_precision=1.0
    )
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        model.fit(*data)
    with pytest.raises(ValueError, match="classes must be given"):
        model.set_params(sampler=None).partial_fit(*data)
    assert position(random_state) == before


def test_a_question_between_two_fits_changes_no_draw(data):
    sampler = SGFS(PolynomialDecay(30.0, 100.0, 0.3), structure="scalar", batch_size=50)
    model = BayesianLogisticRegression(
        sampler, warm_start=True, random_state=0, **SHORT, prior_precision=1.0
    )
    model.fit(*data)
    asked = copy.deepcopy(model)
    asked.predicted_covariance(*data)
    np.testing.assert_array_equal(asked.fit(*data).draws_, model.fit(*data).draws_)


def test_temperature_zero_goes_with_a_matrix_as_preconditioner(data):
    sampler = SGLD(1e-3, temperature=0.0, preconditioner=np.eye(4), batch_size=50)
    model = BayesianLogisticRegression(sampler, random_state=0, **SHORT, prior_precision=1.0).fit(
        *data
    )
    assert np.isfinite(model.draws_).all()


def test_integers_of_numpy_are_integers(data):
    draws = [
        BayesianLogisticRegression(
            SGFS(1.0, refresh_every=every, batch_size=50),
            random_state=0,
            **SHORT,
            prior_precision=1.0,
        )
        .fit(*data)
        .draws_
        for every in (7, np.int64(7), 1)
    ]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert (draws[0] != draws[2]).any()


def test_a_stream_of_a_network_keeps_the_scale_of_its_first_chunk(data):
    X, y = data
    model = BayesianMLPClassifier((3,), random_state=0, **SHORT)
    model.partial_fit(X[:100], y[:100], classes=[0, 1], n_total=100)
    first = model.prior_precision_.copy()
    model.partial_fit(5 * X[100:200], y[100:200], n_total=100)
    np.testing.assert_array_equal(model.prior_precision_, first)
    numbers = BayesianMLPClassifier((3,), prior_precision=7.0, random_state=0, **SHORT)
    numbers.partial_fit(X[:100], y[:100], classes=[0, 1], n_total=300)
    numbers.set_params(prior_precision="scale").partial_fit(5 * X[:100], y[:100], n_total=300)
    np.testing.assert_array_equal(numbers.prior_precision_, first)
