"""Annealed SGFS weighs draws by the step from them (math/sgfs.md#weights-of-annealed-draws)."""

import numpy as np
import pytest
from conftest import KnownGaussian, start, z_scores

from skbayes_sg.chains.run import Length, run_chain
from skbayes_sg.models import Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import SGFS, CosineCycle


def steps(alpha, gamma):
    """K over the posterior variance, in one direction with B = gamma I_N."""
    return 2 / (gamma * (1 + alpha**2))


@pytest.mark.parametrize("gamma", [2.0, 10.0])
@pytest.mark.parametrize(
    "alpha", [lambda t: 0.02 + t / 200, lambda t: 0.5 * (1 + t / 50) ** 0.5], ids=["line", "root"]
)
def test_weights_by_the_step_have_nearly_the_least_variance(alpha, gamma):
    """Each step is exact at its alpha, so that draws have equal variances and correlations
    prod F_t, and the best weights of their mean solve a linear system.
    """
    alphas = alpha(np.arange(1500.0))
    decay = np.cumsum(np.log(np.maximum(1e-300, np.abs(1 - steps(alphas, gamma)[:-1]))))
    decay = np.concatenate([[0.0], decay])
    covariance = np.exp(-np.abs(decay[:, None] - decay))
    least = 1 / np.linalg.solve(covariance, np.ones(1500)).sum()

    def variance(weights):
        weights = weights / weights.sum()
        return weights @ covariance @ weights / least

    assert variance(steps(alphas, gamma)) < 1.06
    assert variance(np.ones(1500)) > 1.25
    assert variance(4 / alphas**2) > 1.08  # eps alone, without bound at alpha = 0


def test_the_weight_is_the_step_over_the_longest():
    """In proportion to 1 / (1 + alpha^2) for B in the shape of P, and to eps = 4/alpha^2 for C."""
    known = KnownGaussian(prior_precision=1e-9, misspecified=False)
    alphas = np.array([3.0, 0.0, 1.0, 7.0])
    for parameters in ({}, {"B": "precision"}, {"structure": "diag"}, {"variant": "paper"}):
        plain = {"batch_size": 20, "replace": True, "curvature": "empirical"}
        sampler = SGFS(lambda t: alphas[t], **plain, **parameters)
        state = start(sampler, known.posterior, 2)
        weights = []
        for t in range(4):
            state.t = t
            sampler.refresh(state, known.posterior)
            weights.append(sampler.draw(state)[1])
        np.testing.assert_allclose(weights, weights[1] / (1 + alphas**2))
        assert weights[1] >= 1 - 1e-9  # 1, or more where coordinates are correlated
    by_C = SGFS(lambda t: 20.0 + t, C=np.full(4, 1e-3), batch_size=20)
    state = start(by_C, known.posterior, 1)
    first = by_C.draw(state)[1]
    state.t = 20
    by_C.refresh(state, known.posterior)
    assert by_C.draw(state)[1] / first == pytest.approx(0.25)


def test_constant_steps_and_the_first_part_of_a_cycle(gaussian):
    constant = SGFS(3.0, batch_size=20)
    assert constant.draw(start(constant, gaussian.posterior, 1))[1] == 1.0
    cycle = SGFS(CosineCycle(1.0, 9.0, 100), batch_size=20)
    state = start(cycle, gaussian.posterior, 1)
    weights = run_chain(cycle, gaussian.posterior, state, Length(100)).weights
    assert (weights[:50] == 0).all()
    assert (np.diff(weights[50:]) <= 0).all()
    assert weights[50] > 2 * weights[99] > 0


def test_on_a_skewed_posterior_the_weighted_mean_is_nearer(seed):
    """Three events in 60 rows: against quadrature, and against equal weights of the same draws."""
    X, y = np.linspace(-1, 1, 60)[:, None], np.where(np.arange(60) % 20 == 7, 1.0, -1.0)
    posterior = Posterior.of(Softmax(1, 2), X, y, 0.3)
    axes = np.meshgrid(np.linspace(-5, 5, 200), np.linspace(-8, 1, 200), indexing="ij")
    grid = np.stack(axes, axis=-1).reshape(-1, 2)
    log = np.concatenate([posterior.log_prob(part) for part in np.array_split(grid, 100)])
    weight = np.exp(log - log.max()) / np.exp(log - log.max()).sum()
    mean = weight @ grid
    sd = np.sqrt(weight @ (grid - mean) ** 2)

    sampler = SGFS(lambda t: max(0.02, (t - 100) / 100) ** 0.5, batch_size=15)
    state = start(sampler, posterior, 120, seed, np.tile(mean, (120, 1)))
    chain = run_chain(sampler, posterior, state, Length(2000, 100))
    alphas = np.maximum(0.02, np.arange(2000) / 100) ** 0.5

    def squared_errors(weights):
        means = np.einsum("t,ctd->cd", weights / weights.sum(), chain.draws)
        return (((means - mean) / sd) ** 2).mean(axis=1)

    ours = squared_errors(chain.weights)
    assert z_scores(ours - squared_errors(np.ones(2000)), 0.0) < -3
    assert z_scores(ours - squared_errors(1 / alphas**2), 0.0) < -3
