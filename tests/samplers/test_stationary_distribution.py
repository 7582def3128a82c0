"""Every sampler against its stationary distribution, before any use: simulated covariance,
entry by entry.

Curvature and noise do not commute, so that no formula is right by accident. On linear regression
the prediction includes the noise's growth with the distance from the mode, and is exact.
"""

import numpy as np
import pytest
from conftest import KnownGaussian, noise_of, second_moments, z_scores

from skbayes_sg import theory
from skbayes_sg.chains.run import Length, run_chain
from skbayes_sg.models import Linear
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import HMC, IASG, SGD, SGFS, SGHMC, SGLD, ConstantSGD, MomentumSGD

SAMPLERS = [
    *[
        SGFS(
            alpha=alpha,
            structure=structure,
            replace=replace,
        )
        for structure in ("full", "diag", "block")
        for replace in (False, True)
        for alpha in (0.0, 2.0)
    ],
    SGFS(structure="scalar"),
    SGFS(structure="kron"),
    SGFS(alpha=1.0, B="precision"),
    SGFS(alpha=1.0, B="bounded"),
    SGFS(variant="mandt", alpha=1.0, batch_size=5),
    SGFS(variant="mandt", structure="diag", h_max=3e-4),
    SGFS(variant="mandt", structure="scalar", h_max=3e-4, replace=True),
    *[SGLD(step_size=3e-4, temperature=temperature) for temperature in (1.0, 0.3, 2.0)],
    SGLD(step_size=0.1, preconditioner="diag"),
    SGD(step_size=3e-4),
    *[ConstantSGD(structure=s) for s in ("full", "kron", "diag", "scalar", "sqrt")],
    *[
        ConstantSGD(s, correction="ou", replace=True, batch_size=2)
        for s in ("full", "diag", "scalar", "sqrt")
    ],
    ConstantSGD(structure="full", step_size=1.0),
    MomentumSGD(),
    MomentumSGD(damping=0.5, structure="diag", replace=True),
    MomentumSGD(damping=0.1, structure="scalar"),
    MomentumSGD(damping=1.0),
    MomentumSGD(batch_size=1),
    SGHMC(step_size=0.01),
    SGHMC(step_size=0.02, damping=0.3, temperature=0.5, replace=True),
    SGFS(alpha=1.0, batch_size=1, replace=True),
    ConstantSGD("diag", batch_size=1, replace=True),
    ConstantSGD(covariance="single_row"),
    IASG(),
    IASG(window=7, step_size=0.3),
    IASG(structure="diag"),
    IASG(structure="scalar", replace=True),
    HMC(),
]


def first_of_each(kind_of):
    """Of each kind the first sampler; the others are slow."""
    seen, kinds = set(), map(kind_of, SAMPLERS)
    for sampler, kind in zip(SAMPLERS, kinds, strict=True):
        marks = [pytest.mark.slow] if kind in seen else []
        seen.add(kind)
        yield pytest.param(sampler, id=repr(sampler), marks=marks)


def simulated(sampler, posterior, mean, seed, burn_in=400, every=5):
    """Draws of independent chains that start near the mode, and the frozen state they leave."""
    if sampler.get_params().get("batch_size") in (200, 500, "auto"):
        sampler.set_params(batch_size=20)
    theta = np.tile(mean, (96, 1))
    state = sampler.init(posterior, theta, np.random.default_rng(seed))
    thin = (
        sampler.run_length(state).thin
        if isinstance(sampler, IASG)
        else 1
        if isinstance(sampler, HMC)
        else every
    )
    return run_chain(sampler, posterior, state, Length(40, burn_in, thin))


def agree(chain, mean, predicted):
    assert np.abs(z_scores(chain.draws.mean(axis=1), mean)).max() < 5
    assert np.abs(z_scores(second_moments(chain.draws, mean), predicted)).max() < 5


P = np.diag([1.0, 0.5, 2.0, 1.5]) + 0.2
GIVEN = [
    *[
        pytest.param(SGLD(3e-4, temperature, P), id=f"P given, temperature {temperature}")
        for temperature in (1.0, 0.3)
    ],
    *[
        pytest.param(SGFS(2.0, structure=s, B=300 * P), id=f"B given, {s}")
        for s in ("block", "diag")
    ],
    *[
        pytest.param(SGFS(8.0, structure=s, C=1e-3 * P), id=f"C given, {s}")
        for s in ("full", "diag")
    ],
]


def class_and_structure(sampler):
    return type(sampler), sampler.get_params().get("structure")


@pytest.mark.parametrize("sampler", [*first_of_each(class_and_structure), *GIVEN])
def test_gaussian_target(gaussian, sampler, seed):
    burn_in = 400 if sampler.get_params().get("batch_size") == 1 else 200  # one row teaches less
    chain = simulated(sampler, gaussian.posterior, gaussian.mean, seed, burn_in, every=3)
    M = noise_of(gaussian, chain.state)
    predicted = sampler.stationary_distribution(chain.state, gaussian.posterior).covariance(
        gaussian.Lam, M
    )
    agree(chain, gaussian.mean, predicted)
    if isinstance(sampler, SGFS) and (sampler.structure, sampler.variant) == ("full", "exact"):
        # what was learnt in burn-in is near enough to be exact
        assert theory.kl_gauss(predicted, np.linalg.inv(gaussian.Lam)) < 0.01


@pytest.fixture(scope="module")
def regression():
    """Skewed features, uneven noise: the scatter of the scores is not the curvature."""
    rng = np.random.default_rng(3)
    X = rng.exponential(size=(200, 3)) @ (np.eye(3) + 0.4 * rng.standard_normal((3, 3)))
    y = X @ rng.standard_normal(3) + (0.5 + X[:, 0]) * rng.standard_normal(200)
    return X, y, Posterior.of(Linear(3, fit_intercept=False, noise_variance=1.5), X, y, 2.0)


@pytest.mark.parametrize("sampler", list(first_of_each(type)))
def test_linear_regression_with_real_minibatches(regression, sampler, seed):
    X, y, posterior = regression
    Lam = X.T @ X / 1.5 + 2 * np.eye(3)
    mean = np.linalg.solve(Lam, X.T @ y / 1.5)
    chain = simulated(sampler, posterior, mean, seed)
    state = chain.state

    def of_points(Lam, M):
        if isinstance(sampler, IASG):  # the noise is that of the iterates, not of their averages
            return theory.stationary_cov(Lam, M, state.memory.preconditioner.dense())
        return sampler.stationary_distribution(state, posterior).covariance(Lam, M)

    if isinstance(sampler, HMC):
        predicted = np.linalg.inv(Lam)
    else:
        settings = (sampler.batch_size, sampler.replace, 1.5, 2.0)
        Lam, M = theory.lsq_noise(X, y, of_points, *settings)
        predicted = sampler.stationary_distribution(state, posterior).covariance(Lam, M)
        if isinstance(sampler, SGFS):
            root = state.memory.noise_root.dense()
            W = root @ root.T
            np.testing.assert_allclose(
                theory.lsq_cov(X, y, state.memory.preconditioner.dense(), *settings, W), predicted
            )
    agree(chain, mean, predicted)


def test_the_bias_that_the_continuous_time_formulas_leave(seed):
    """Mandt's Theorem 2 at n/N = 0.1: variances 1 / (1 - n/N) too large, as predicted."""
    known = KnownGaussian(misspecified=False, prior_precision=1e-3)
    for correction, ratio in [("ou", 1 / 0.9), ("discrete", 1.0)]:
        sampler = ConstantSGD(correction=correction, replace=True)
        chain = simulated(sampler, known.posterior, known.mean, seed)
        moments = second_moments(chain.draws, known.mean)
        drawn = np.einsum("cij,ij->c", moments, known.Lam) / 4
        M = 10 * known.N * known.I1 * (1 - 1 / known.N)
        predicted = sampler.stationary_distribution(chain.state, known.posterior).covariance(
            known.Lam, M
        )
        assert np.trace(predicted @ known.Lam) / 4 == pytest.approx(ratio, abs=0.05)
        assert np.abs(z_scores(drawn, np.trace(predicted @ known.Lam) / 4)) < 5
