"""The joint prior in the coordinates of the model, and pulled back to whitened ones."""

import numpy as np
import pytest

from skbayes_sg.linalg import Dense
from skbayes_sg.linalg.coordinates import Whitened
from skbayes_sg.posterior.marginal_scales import MarginalScales
from skbayes_sg.priors import GaussianPrior, Horseshoe, NormalInverseGammaPrior, StudentT
from skbayes_sg.priors.joint import IntegratedJoint, JointPrior
from skbayes_sg.priors.scales import Groups, OnePrecision

UNIT = np.array([1.0, 0.2, 3.0, 0.5, 1.0])  # of four coefficients and an intercept
KINDS = ("one", "integrated", "groups", "integrated groups", "horseshoe", "student_t")
NOISE = pytest.mark.parametrize("noise", [None, (2.0, 3.0)], ids=["given noise", "sampled noise"])


def made(kind, noise=None, coordinates=None):
    """The joint prior, the given one, and its scales."""
    block = np.arange(4)
    group = {"groups": block // 2, "one": 0 * block, "integrated": 0 * block}.get(kind, block)
    group = block // 2 if kind == "integrated groups" else group
    one = group.max() == 0
    scales = (OnePrecision if one else Groups)(block, group, list("abcd")[: group.max() + 1], 0.7)
    if kind == "horseshoe":
        scales = Horseshoe(1.0).scales(scales, 20.0)
    if kind == "student_t":
        scales = StudentT(3.0).scales(scales, 20.0)
    lam, mean = np.exp(0.3 * np.arange(len(scales.labels))), np.array([0.4, -1.0, 0.0, 2.0, 0.1])
    precision = np.append(lam[group], 0.3) * UNIT
    if noise is None:
        given = GaussianPrior(precision, mean, UNIT)
    else:
        given = NormalInverseGammaPrior(precision, noise, mean, UNIT)
    kind_of = IntegratedJoint if kind.startswith("integrated") else JointPrior
    return kind_of(scales, given, coordinates), given, scales


def points(joint, dim, n=6):
    rng = np.random.default_rng(3)
    n_hyper = 0 if isinstance(joint, IntegratedJoint) else joint.scales.dim
    return rng.standard_normal((n, dim)), 0.5 * rng.standard_normal((n, n_hyper))


def whitened(given, columns=((0, 1, 2, 3, 4),)):
    """Coordinates along the groups, around a point away from the prior's mean."""
    root = np.random.default_rng(1).standard_normal((5, 9))
    members = given.precision * (np.arange(5) < 4), np.arange(5) // 2 * (np.arange(5) < 4)
    return Whitened.along(np.array(columns), np.linspace(-1, 1, 5)[None], root @ root.T, *members)


@NOISE
@pytest.mark.parametrize("kind", [kind for kind in KINDS if "integrated" not in kind])
def test_it_is_the_prior_under_each_precision_times_the_hyperprior(kind, noise):
    joint, given, scales = made(kind, noise)
    theta, eta = points(joint, 5 + (noise is not None))
    expected = [
        scales.given(given, ell).log_density(one[None])[0]
        + scales.log_hyperprior(at[None])[0]
        + 0.5 * ell @ scales.sizes  # the factors that densities of priors leave out
        for one, at, ell in zip(theta, eta, scales.log_precisions(eta), strict=True)
    ]
    found = given.log_density(theta) + joint.log_density(theta, eta)
    np.testing.assert_allclose(found - found[0], np.array(expected) - expected[0], atol=1e-9)


@NOISE
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pulled", [False, True], ids=["theta", "u"])
def test_its_gradient_is_that_of_its_log_density(kind, noise, pulled):
    if pulled and noise is not None:
        pytest.skip("whitened coordinates are in units of the noise")
    coordinates = whitened(made("groups")[1]) if pulled else None
    joint, _, _ = made(kind, noise, coordinates)
    x, eta = points(joint, 5 + (noise is not None))
    v, w = points(joint, x.shape[1])
    ends = [joint.log_density(x + s * 1e-5 * v, eta + s * 1e-5 * w) for s in (1, -1)]
    of_x, of_eta = joint.gradient(x, eta)
    along = (of_x * v).sum(axis=1) + (of_eta * w).sum(axis=1)
    # a table has the means of an integrated precision to four digits
    np.testing.assert_allclose((ends[0] - ends[1]) / 2e-5, along, rtol=1e-3, atol=1e-4)
    value, *both = joint.value_and_grad(x, eta)
    np.testing.assert_array_equal(value, joint.log_density(x, eta))
    np.testing.assert_array_equal(both[0], of_x)
    np.testing.assert_array_equal(both[1], of_eta)


@pytest.mark.parametrize("kind", ["one", "integrated", "groups", "integrated groups"])
def test_pulled_back_it_is_the_same_function(kind):
    c = whitened(made("groups")[1])
    here, there = made(kind, coordinates=c)[0], made(kind)[0]
    u, eta = points(here, 5)
    theta = c.inverse_transform(u)
    np.testing.assert_allclose(
        here.log_density(u, eta), there.log_density(theta, eta), rtol=1e-9, atol=1e-9
    )
    of_theta, of_eta = there.gradient(theta, eta)
    np.testing.assert_allclose(here.gradient(u, eta)[0], c.pullback(of_theta), atol=1e-8)
    np.testing.assert_allclose(here.gradient(u, eta)[1], of_eta, atol=1e-8)


def test_a_funnel_is_along_the_coefficients_of_its_group_as_far_as_they_are_large():
    """Beside the curvature by differences, where a precision is known by many coefficients."""
    rng, n = np.random.default_rng(2), 80
    group, unit = np.arange(2 * n) % 2, rng.uniform(0.5, 2.0, 2 * n)
    scales = Groups(np.arange(2 * n), group, list("ab"), 0.7)
    lam = np.array([2.0, 9.0])
    given = GaussianPrior(lam[group] * unit, np.zeros(2 * n), unit)
    joint, none = IntegratedJoint(scales, given), np.empty((1, 0))
    theta = rng.standard_normal((1, 2 * n)) / np.sqrt(given.precision)
    less = joint.funnels(theta, np.zeros(2 * n))
    assert (less[0, group == 1] == 0).all()
    assert (less[1, group == 0] == 0).all()
    for k in (0, 1):
        along = np.where(group == k, theta, 0.0)
        ends = [joint.gradient(theta + s * 1e-3 * along, none)[0] @ along[0] for s in (1, -1)]
        at = joint.integrated.mean(joint.distances(theta)[1])[0, k]
        own = (lam[k] - at) * np.sum(unit * along**2)  # of the mean of the precision there
        bend = float((ends[0] - ends[1])[0]) / 2e-3
        np.testing.assert_allclose((less @ along[0])[k] ** 2, bend - own, rtol=0.05)


def test_a_sum_of_squares_is_as_vague_as_its_normal_draws(seed):
    """Of groups with coefficients far from zero and next to it."""
    rng, group = np.random.default_rng(seed), np.array([0, 0, 0, 1, 2])
    scales = Groups(np.arange(5), group, list("abc"), 0.7)
    unit = rng.uniform(0.5, 2.0, 5)
    joint = IntegratedJoint(scales, GaussianPrior(unit, np.zeros(5), unit))
    mean, sd = np.array([[1.0, -2.0, 0.5, 2.0, 0.1]]), np.array([0.3, 0.4, 0.5, 0.5, 0.5])
    draws = mean + sd * rng.standard_normal((40_000, 5))
    squares = joint.distances(draws)[1]
    found = joint.vagueness(mean, sd**2)
    expected = squares.var(axis=0) / squares.mean(axis=0) ** 2
    np.testing.assert_allclose(found, expected, rtol=0.1)  # some five Monte Carlo errors
    z = 2.0 / 0.5
    assert found[1] == pytest.approx((4 * z**2 + 2) / (z**2 + 1) ** 2)
    assert found[1] < 0.25 < 1.5 < found[2]


def test_the_tails_of_a_precision_are_those_of_its_evidence():
    """Of many that are hardly known each, of some that are known, of one.

    The share above the median where coefficients are next to zero, and the kurtosis of those that
    rows know least.
    """
    rng = np.random.default_rng(5)
    group = np.repeat([0, 1, 2], [20, 20, 1])
    z = np.concatenate([1.2 * rng.standard_normal(20), 6 * rng.standard_normal(20), [5.0]])
    scales = Groups(np.arange(41), group, list("abc"), 0.7)
    unit, lam = rng.uniform(0.5, 2.0, 41), np.array([1.5, 0.05, 0.1])
    given = GaussianPrior(lam[group] * unit, np.zeros(41), unit)
    sd = 1 / np.sqrt(unit + given.precision)  # one row tells as much as lambda = 1
    mean = z * unit / (unit + given.precision) / np.sqrt(unit)
    joint = IntegratedJoint(scales, given)
    found, kurtosis = joint.tails(mean[None], np.diag(sd**2))

    beside = GaussianPrior(Dense(np.diag(sd**-2)), mean)
    marginal, ell = MarginalScales(scales, beside, given), np.linspace(-8, 20, 281)
    for k in range(3):
        eta = np.where(np.arange(3) == k, ell[:, None], np.log(lam))
        value = np.array([marginal.log_density(each)[0] for each in eta])
        share = np.exp(value - value.max())
        share /= share.sum()
        low, median = np.interp([0.158655, 0.5], share.cumsum(), ell)
        expected = share[ell > 4 * median - 3 * low].sum()
        assert found[k] == pytest.approx(expected, rel=0.05, abs=1e-3)
        own = unit[group == k][:, None]  # variances under each precision
        variance = 1 / (sd[group == k, None] ** -2 + own * (np.exp(ell) - lam[k]))
        wanted = 3 * (share * variance**2).sum(axis=1) / (share * variance).sum(axis=1) ** 2
        light = wanted.max() < kurtosis[k] < 5  # a bound
        assert light or kurtosis[k] == pytest.approx(wanted.max(), rel=0.02)
    assert found[0] > 0.02
    assert (found[1:] < 0.002).all()
