"""Schedules of step size and alpha."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.preprocessing import scale

from skbayes_sg import BayesianMLPClassifier
from skbayes_sg.samplers import SGFS, SGLD, CosineCycle, PolynomialDecay
from skbayes_sg.samplers.schedules import value_at, weight_at

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_a_cycle_falls_along_a_cosine_and_starts_again():
    cycle = CosineCycle(0.1, 0.0, 50, keep=0.2)
    values = np.array([cycle(t) for t in range(150)])
    np.testing.assert_allclose(values[:50], 0.05 * (1 + np.cos(np.pi * np.arange(50) / 50)))
    np.testing.assert_array_equal(values[:50], values[100:])
    assert [cycle.weight(t) for t in (0, 39, 40, 49, 50, 90)] == [0, 0, 1, 1, 0, 1]
    assert weight_at(PolynomialDecay(1, 1, 1), 3) == weight_at(0.1, 3) == 1.0


def test_a_polynomial_decays_as_it_says():
    decay = PolynomialDecay(2.0, 1000.0, 0.5)
    np.testing.assert_allclose(
        [decay(t) for t in (0, 3000, 8000)], 2.0 / np.sqrt([1000, 4000, 9000])
    )


def test_values_are_finite_numbers_or_refused_by_name():
    assert value_at(2, 0, "x") == 2.0
    assert value_at(np.float32(0.5), 0, "x") == 0.5
    assert value_at(lambda t: 3 * t, 7, "x") == 21.0
    for bad in (np.nan, np.inf, None, True, "1"):
        with pytest.raises(ValueError, match="x must be a finite number"):
            value_at(bad, 0, "x")


@pytest.mark.parametrize(
    "sampler",
    [
        SGLD(step_size=CosineCycle(2e-3, 1e-4, 100), batch_size=50),
        SGFS(alpha=CosineCycle(3.0, 10.0, 100), structure="diag", B="precision", batch_size=50),
    ],
    ids=["step_size", "alpha"],
)
@pytest.mark.quick("step_size")
def test_draws_of_the_bold_half_of_a_cycle_do_not_count(sampler):
    X, y = load_iris(return_X_y=True)
    model = BayesianMLPClassifier(
        (4,), sampler=sampler, n_chains=2, n_draws=40, burn_in=500, thin=10, random_state=0
    )
    model.fit(scale(X), y)
    assert (model.draw_weights_.reshape(4, 10)[:, :5] == 0).all()
    assert (model.draw_weights_.reshape(4, 10)[:, 5:] > 0).all()
    assert model.predict_draws(scale(X), kind="mean").shape == (40, 150, 3)
    assert model.score(scale(X), y) > 0.9


def test_a_run_too_short_for_its_cycle_says_so():
    X, y = load_iris(return_X_y=True)
    sampler = SGLD(step_size=CosineCycle(1e-3, 1e-4, 10_000), batch_size=50)
    with pytest.raises(ValueError, match="part of a cycle that counts"):
        BayesianMLPClassifier(
            (4,), sampler=sampler, n_draws=10, burn_in=0, thin=1, random_state=0
        ).fit(scale(X), y)
