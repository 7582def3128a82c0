"""Monte Carlo errors of draws that were moved to moments that are known."""

import numpy as np
import pytest

from skbayes_sg.diagnostics.batches import Batches, batches_a_chain, starts_of
from skbayes_sg.priors.normal import standardised


def some_draws(seed, chains=8, n_draws=200, dim=4):
    z = standardised(np.random.default_rng(seed).normal(size=(chains * n_draws, dim)))
    return z.reshape(chains, n_draws, dim)


def cubic(theta):
    a, b = theta[..., 0], theta[..., 1]
    return np.stack([2 * a - b, a + 0.3 * a * b + 0.1 * b**2, a + 0.2 * (b**3 - 3 * b)], axis=-1)


def test_what_goes_with_known_moments_has_no_error(seed):
    theta = some_draws(seed)
    of_mean, of_sd = Batches.exact(4, 1600).errors(theta, cubic(theta))
    assert of_mean[0] < 1e-9
    assert of_mean[1] < 0.2 * np.sqrt(0.11 / 1600)  # what products of draws say of each other
    assert of_sd[0] < 1e-9  # the square of what is linear


def test_errors_are_those_over_repetitions(seed):
    found = [cubic(some_draws([seed, k])) for k in range(60)]
    means = np.array([[each.mean(axis=(0, 1)), each.std(axis=(0, 1))] for each in found])
    spread = means.std(axis=0, ddof=1)
    told = [Batches.exact(4, 1600).errors(some_draws([seed, k]), found[k]) for k in range(60)]
    told = np.sqrt(np.mean(np.square(told), axis=0))
    # E[(.2 He_3)^2] = .24
    assert spread[0, 2] == pytest.approx(np.sqrt(0.24 / 1600), rel=4.5 / np.sqrt(120))
    of_rest = [(0, 2), (1, 1), (1, 2)]
    for place in of_rest:
        assert 0.6 < told[place] / spread[place] < 1.6


def test_errors_do_not_depend_on_the_units(seed):
    theta, rng = some_draws(seed, dim=3) @ (np.eye(3) + 0.3), np.random.default_rng(seed)
    theta[..., 1] += theta[..., 0]
    batches = Batches(rng.normal(size=(16, 3)), rng.normal(size=(16, 6)).astype(np.float32))
    lower, turn = np.tril_indices(3), np.diag([1.0, 1e3, -1e-3])
    matrix = np.zeros((16, 3, 3))
    matrix[:, *lower] = matrix[:, *lower[::-1]] = batches.covariance
    turned = Batches(batches.mean @ turn, (turn.T @ matrix @ turn)[:, *lower])
    values = cubic(theta)
    one, other = batches.errors(theta, values), turned.errors(theta @ turn + 5, values)
    np.testing.assert_allclose(one, other, rtol=1e-6)
    # a parameter that does not move tells nothing
    still = np.concatenate([theta, np.full_like(theta[..., :1], 7.0)], axis=2)
    wider = Batches(np.c_[batches.mean, np.zeros(16)], None)
    narrow = Batches(batches.mean, None).errors(theta, values)
    np.testing.assert_allclose(wider.errors(still, values), narrow, rtol=1e-9)


def test_without_covariances_all_but_linear_parts_are_as_drawn(seed):
    theta = some_draws(seed, dim=2)
    batches, values = Batches(np.zeros((16, 2)), None), cubic(theta)
    of_mean, of_sd = batches.errors(theta, values)
    assert of_mean[0] < 1e-9
    assert of_mean[1] == pytest.approx(np.sqrt((0.09 + 0.02) / 1600), rel=0.7)
    assert of_sd[0] == pytest.approx(np.sqrt(5 / 3200), rel=0.7)


def test_a_quantity_that_does_not_move_has_no_error():
    theta = some_draws(0)
    errors = Batches.exact(4, 1600).errors(theta, np.full((8, 200, 1), 0.1))
    np.testing.assert_allclose(errors, 0, atol=1e-15)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((8, 5), 8), ((8, 40), 16), ((3, 40), 18), ((40, 40), 40)],
)
def test_batches_are_chains_or_parts_of_them(shape, expected):
    starts = starts_of(*shape, batches_a_chain(*shape))
    assert len(starts) == expected
    sizes = np.diff(np.append(starts, shape[0] * shape[1]))
    assert np.ptp(sizes) <= 1
    assert set(np.arange(shape[0]) * shape[1]) <= set(starts)
