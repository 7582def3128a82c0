"""Draws matched to their gradients: exact where the posterior is normal, unbiased elsewhere."""

import numpy as np
import pytest
from scipy.special import digamma, polygamma

from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression
from skbayes_sg.inspection import average_effects
from skbayes_sg.linalg.coordinates import Identity
from skbayes_sg.posterior import matched as of_gradients
from skbayes_sg.posterior.matched import matched


class Density:
    """A target whose gradient is a function of the draws."""

    coordinates, point_size = Identity(), 1

    def __init__(self, gradient, dim):
        self.full_gradient, self.dim = gradient, dim


def moved(gradient, draws):
    found = matched(Density(gradient, draws.shape[-1]), draws)
    assert found is not None
    return found


def a_normal(seed, dim):
    rng = np.random.default_rng(seed)
    root = np.tril(rng.normal(size=(dim, dim))) + 3 * np.eye(dim)
    return rng.normal(size=dim) * 5, root @ root.T, rng


def test_moments_of_a_normal_distribution_are_exact(seed):
    mean, covariance, rng = a_normal(seed, 6)
    draws = rng.multivariate_normal(mean, covariance, (4, 100))
    precision = np.linalg.inv(covariance)
    after, batches = moved(lambda x: -(x - mean) @ precision, draws)
    flat, sd = after.reshape(-1, 6), np.sqrt(covariance.diagonal())
    np.testing.assert_allclose(flat.mean(axis=0), mean, rtol=0, atol=1e-8 * sd.max())
    error = (np.cov(flat.T, bias=True) - covariance) / np.outer(sd, sd)
    np.testing.assert_allclose(error, 0, atol=0.003)  # where rounds end
    # what each batch says has no error of chance either
    np.testing.assert_allclose(batches.mean, np.tile(mean, (16, 1)), atol=1e-8 * sd.max())
    spread = np.ptp(batches.covariance, axis=0)
    np.testing.assert_allclose(spread, 0, atol=0.02 * sd.max() ** 2)  # squares of where rounds end
    known = np.diff(batches.covariance.mean(axis=0) - covariance[np.tril_indices(6)])
    np.testing.assert_allclose(known, 0, atol=0.01 * sd.max() ** 2)


def test_draws_of_another_width_become_those_of_the_density(seed):
    """A step without a Metropolis test is too wide by some per cent, which gradients see."""
    mean, covariance, rng = a_normal(seed, 3)
    draws = rng.multivariate_normal(mean + 0.2, 1.2 * covariance, (4, 200))
    precision = np.linalg.inv(covariance)
    after, _ = moved(lambda x: -(x - mean) @ precision, draws)
    sd = np.sqrt(covariance.diagonal())
    error = (np.cov(after.reshape(-1, 3).T, bias=True) - covariance) / np.outer(sd, sd)
    np.testing.assert_allclose(error, 0, atol=0.003)  # where rounds end


def test_coordinates_are_taken_one_by_one_where_they_are_many(seed):
    rng = np.random.default_rng(seed)
    draws = 3 + 2 * rng.normal(size=(2, 30, 50))
    after, batches = moved(lambda x: -(x - 3) / 4, draws)
    flat = after.reshape(-1, 50)
    np.testing.assert_allclose(flat.mean(axis=0), 3, atol=1e-9)
    np.testing.assert_allclose(flat.std(axis=0), 2, rtol=0.003)
    assert batches is None


def test_some_coordinates_at_a_time_are_moved_as_all_are(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    draws = rng.gamma(5.0, size=(2, 30, 50))
    whole, _ = moved(lambda x: 4 / x - 1, draws)
    monkeypatch.setattr("skbayes_sg.posterior.matched.elements_at_a_time", lambda: 130)
    parts, _ = moved(lambda x: 4 / x - 1, draws)
    np.testing.assert_allclose(parts, whole, rtol=1e-9)


def test_moments_of_a_skewed_distribution_are_unbiased_and_nearer(seed):
    """log Gamma(20): mean, sd and gradients in closed form."""
    shape, errors = 20.0, {"before": [], "after": []}
    mean, sd = digamma(shape), np.sqrt(polygamma(1, shape))
    for stream in np.random.SeedSequence(seed).spawn(200):
        draws = np.log(np.random.default_rng(stream).gamma(shape, size=(4, 250, 1)))
        after, _ = moved(lambda x: shape - np.exp(x), draws)
        for name, each in {"before": draws, "after": after}.items():
            errors[name].append([each.mean() - mean, each.std() - sd])
    before, after = (np.array(errors[name]) for name in ("before", "after"))
    spread = after.std(axis=0, ddof=1)
    assert (spread < 0.5 * before.std(axis=0, ddof=1)).all()
    # a bias of order 1 / n is allowed for, an eighth of the error of one fit
    assert (np.abs(after.mean(axis=0)) < 4.5 * spread / np.sqrt(200) + spread / 8).all()


def test_a_covariance_that_gradients_do_not_explain_is_that_of_the_draws(seed):
    """Student's t with four degrees of freedom: squares of its draws hardly follow gradients."""
    rng = np.random.default_rng(seed)
    draws = rng.standard_t(4, size=(4, 500, 1))
    after, _ = moved(lambda x: -5 * x / (4 + x**2), draws)
    shift = (after - draws).ravel()
    np.testing.assert_allclose(shift, shift[0], rtol=0, atol=0.02 * np.abs(draws).max())


def mixed_skewed(seed, shape, n_seeds):
    """Means and sds of three mixed log Gamma variables after matching, and errors told."""
    turn, found = np.linalg.qr(np.vander([1.0, 2.0, 4.0]))[0], []
    for stream in np.random.SeedSequence(seed).spawn(n_seeds):
        draws = np.log(np.random.default_rng(stream).gamma(shape, size=(4, 200, 3))) @ turn
        after, batches = moved(lambda x: (shape - np.exp(x @ turn.T)) @ turn, draws)
        flat = after.reshape(-1, 3)
        found.append([flat.mean(axis=0), flat.std(axis=0), *batches.errors(after, after)])
    found = np.array(found)
    mean = digamma(shape) * turn.sum(axis=0)
    sd = np.full(3, np.sqrt(polygamma(1, shape)))
    return found[:, :2] - [mean, sd], found[:, 2:]


@pytest.mark.parametrize("shape", [4.0, 30.0])
def test_errors_told_are_those_over_seeds(shape, seed):
    """Where control variates count together, and where each product has its own."""
    off, told = mixed_skewed(seed, shape, 60)
    ratio = told.mean(axis=0) / off.std(axis=0, ddof=1)
    # three spreads of sixty numbers are known to 5 % together
    assert (np.abs(np.log(ratio.mean(axis=1))) < np.log(1.3)).all()


def test_control_variates_that_count_together_are_nearer_and_unbiased(seed, monkeypatch):
    """Of products that their own control variates do not explain."""
    together, _ = mixed_skewed(seed, 4.0, 60)
    monkeypatch.setattr(of_gradients, "_MOST_TERMS", 0)
    apart, _ = mixed_skewed(seed, 4.0, 60)
    spread, other = together.std(axis=0, ddof=1), apart.std(axis=0, ddof=1)
    mean, sd = np.sqrt(np.square(spread / other).mean(axis=1))
    assert mean < 0.6
    assert sd < 0.85
    # a bias of order 1 / n is allowed for, an eighth of the error of one fit
    assert (np.abs(together.mean(axis=0)) < 4.5 * spread / np.sqrt(60) + spread / 8).all()


@pytest.mark.parametrize("wrong", ["few", "still", "infinite"])
def test_draws_that_tell_nothing_stay(wrong):
    draws = np.random.default_rng(0).normal(size=(2, 8 if wrong == "few" else 50, 3))
    if wrong == "still":
        draws[..., 1] = 1.0
    slope = -np.inf if wrong == "infinite" else -1.0
    assert matched(Density(lambda x: slope * x, 3), draws) is None


# -- in a fit ---------------------------------------------------------------------------------


def some_classes(n=400):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 4))
    return X, X @ [1.0, -0.5, 0.25, 0.0] + rng.logistic(size=n) > 0


@pytest.mark.slow
def test_errors_over_seeds_are_those_that_tables_tell():
    """Of coefficients, and of average effects, which are curved in them."""
    X, y = some_classes()
    found = {"coefficients": [], "effects": []}
    for seed in range(12):
        model = BayesianLogisticRegression(random_state=seed).fit(X, y)
        effects = average_effects(model, X[:50], full=True)
        for name, table in {"coefficients": model.summary(full=True), "effects": effects}.items():
            found[name].append(table[["mean", "sd", "mcse_mean", "mcse_sd"]].to_numpy())
    for tables in map(np.array, found.values()):
        true = tables[..., :2].std(axis=0, ddof=1)
        assert (true < 0.01 * tables[..., 1].mean(axis=0)[:, None]).all()  # .03 as they come
        ratio = np.sqrt(np.square(tables[..., 2:]).mean(axis=0)) / true
        # the spread of twelve seeds is known to a fifth, and the worst of five counts
        assert ((ratio > 0.5) & (ratio < 2.2)).all()
        assert 0.7 < np.sqrt(np.square(ratio).mean()) < 1.5


def test_errors_of_some_draws_are_those_as_they_come():
    X, y = some_classes()
    model = BayesianLogisticRegression(random_state=0).fit(X, y)
    every, some = (
        average_effects(model, X[:50], full=True, n_draws=n)["mcse_mean"] for n in ("auto", 640)
    )
    assert (some > 5 * every).all()


def test_exact_draws_have_the_mean_of_the_distribution_in_closed_form(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 3))
    y = X @ [1.0, 2.0, 0.0] + rng.normal(size=80)
    model = BayesianLinearRegression(
        prior_precision=1.0, noise_variance=1.0, random_state=seed
    ).fit(X, y)
    known, sd = model.posterior_, model.draws_.std(axis=(0, 1))
    np.testing.assert_allclose(model.draws_.mean(axis=(0, 1)), known.mean, atol=1e-6 * sd.max())


def test_a_named_sampler_and_chains_that_do_not_agree_show_their_own_draws():
    X, y = some_classes(60)
    for sampler in ("underdamped_langevin", "hmc", "sgfs"):
        model = BayesianLogisticRegression(sampler, prior_precision=1.0, random_state=0)
        assert model.fit(X, y)._batches is None
    assert BayesianLogisticRegression(random_state=0).fit(X, y)._batches is not None


def test_errors_of_a_fit_are_not_those_of_a_stream_after_it():
    X, y = some_classes()
    model = BayesianLogisticRegression(random_state=0).fit(X[:300], y[:300])
    assert (model.summary(full=True)["mcse_mean"] > 1e-6).all()
    model.partial_fit(X[300:], y[300:])
    for stream in (model, model.compact()):  # draws have the moments of the stream
        table = stream.summary(full=True)
        assert (table[["mcse_mean", "mcse_sd"]].to_numpy() < 1e-9).all()
    few = model.compact(n_draws=320).summary(full=True)
    np.testing.assert_allclose(few["mcse_mean"], few["sd"] / np.sqrt(320), rtol=0.35)
    # a few draws that are asked for are too few to be moved
    table = model.set_params(n_chains=2, n_draws=10).summary(full=True)
    np.testing.assert_allclose(table["mcse_mean"], table["sd"] / np.sqrt(20), rtol=0.9)
