"""Chains that sample the prior precision: coordinates, density, gradients and noise."""

import numpy as np
import pytest

from skbayes_sg.inference.evidence import Hyperprior, locate
from skbayes_sg.models import Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.hierarchical import HierarchicalTarget, JointPosterior
from skbayes_sg.posterior.laplace import posterior_mean
from skbayes_sg.posterior.mode import find_mode
from skbayes_sg.priors import GaussianPrior


def made(n_classes=2, n_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 3)) * np.array([1.0, 0.1, 5.0]) + 1.0
    score = X @ rng.standard_normal((3, n_classes)) + rng.gumbel(size=(n_rows, n_classes))
    y = score.argmax(axis=1)
    y = 2.0 * y - 1 if n_classes == 2 else y
    model = Softmax(3, n_classes, True)
    k = 1 if n_classes == 2 else n_classes
    unit = np.append(np.tile([1.0, 0.01, 25.0], k), np.ones(k))
    precision = np.append(np.tile([1.0, 0.01, 25.0], k), np.full(k, 0.01))
    prior = GaussianPrior(precision, 0.0, unit, X.mean(axis=0))
    posterior = Posterior(model, Posterior.of(model, X, y).data, prior)
    precision = Hyperprior().of(posterior)
    located = locate(precision, posterior)
    posterior = located.learned.under(posterior)
    mode = posterior_mean(posterior, find_mode(posterior, located.near, np.random.default_rng(0)))
    return posterior, HierarchicalTarget.at(posterior, mode, located.sampled)


def points(target, n=6, seed=1):
    return np.random.default_rng(seed).standard_normal((n, target.dim))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_coordinates_lead_there_and_back(n_classes):
    _, target = made(n_classes)
    x = points(target)
    theta = target.coordinates.inverse_transform(x)
    np.testing.assert_allclose(target.coordinates.transform(theta), x, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_density_is_that_of_the_posterior_times_the_jacobian(n_classes):
    posterior, target = made(n_classes)
    precision, x = target.coordinates.precision, points(target)
    theta = target.coordinates.inverse_transform(x)
    expected = []
    for one, at in zip(theta, x, strict=True):
        under = posterior.with_prior(precision.given(posterior.prior, np.exp(one[-1])))
        value = under.log_prob(one[None, :-1])[0] + precision.log_density(one[-1])
        steps = 1e-6 * np.eye(target.dim)
        ahead, behind = (target.coordinates.inverse_transform(at + s * steps) for s in (1, -1))
        expected.append(value + np.linalg.slogdet((ahead - behind) / 2e-6)[1])
    found, gradient = target.slope(x)
    np.testing.assert_allclose(found - found[0], np.array(expected) - expected[0], atol=2e-3)
    np.testing.assert_allclose(gradient, target.full_gradient(x), rtol=1e-4, atol=1e-4)
    v = points(target, seed=2)
    up, down = (target.slope(x + step * v)[0] for step in (1e-2, -1e-2))
    np.testing.assert_allclose((up - down) / 2e-2, (gradient * v).sum(axis=1), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_joint_posterior_has_the_gradient_of_the_model(n_classes):
    posterior, target = made(n_classes)
    joint = JointPosterior(posterior, target.coordinates.precision)
    theta = target.coordinates.inverse_transform(points(target, 2))
    gradient = joint.full_gradient(theta)
    for one, of_one in zip(theta, gradient, strict=True):
        under = posterior.with_prior(joint.precision.given(posterior.prior, np.exp(one[-1])))
        np.testing.assert_allclose(of_one[:-1], under.full_gradient(one[None, :-1])[0], rtol=1e-9)

        def value(rho, one=one):
            prior = joint.precision.given(posterior.prior, np.exp(rho))
            return prior.log_density(one[None, :-1])[0] + joint.precision.log_density(rho)

        slope = (value(one[-1] + 1e-5) - value(one[-1] - 1e-5)) / 2e-5
        assert of_one[-1] == pytest.approx(slope, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_given_the_precision_all_directions_are_about_standard(n_classes):
    """Curvature near the identity along every v, and no correlation with the precision."""
    _, target = made(n_classes)
    curvature = target.anchor.curvature.dense()
    for r in (-1.5, 0.0, 1.5):
        x = np.zeros((1, target.dim))
        x[0, -1] = r
        steps = 0.3 * np.eye(target.dim)
        hessian = -(target.full_gradient(x + steps) - target.full_gradient(x - steps)) / 0.6
        root = np.linalg.inv(np.linalg.cholesky(curvature[:-1, :-1]))
        values = np.linalg.eigvalsh(root @ hessian[:-1, :-1] @ root.T)
        assert values.min() > 0.5
        assert values.max() < 2.0


def test_minibatches_are_unbiased_and_their_noise_is_known():
    _, target = made(2, 6000)
    assert target.anchor.batch_size < target.anchor.pool_size
    rows = target.minibatches(64, False, np.random.default_rng(0), 1)
    x = 0.5 * points(target, 4)
    each = np.stack([target.noisy_gradient(x, rows.draw()) for _ in range(4000)])
    error = each.std(axis=0) / np.sqrt(len(each))
    assert (np.abs(each.mean(axis=0) - target.full_gradient(x)) < 5 * error + 1e-4).all()
    x = points(target, 200)  # as far out as the points of the noise, which is of fourth order
    x[:, :-1] *= 2 / np.linalg.norm(x[:, :-1], axis=1, keepdims=True)
    each = np.stack([target.noisy_gradient(x, rows.draw()) for _ in range(400)])
    drawn = each.var(axis=0).mean(axis=0) / rows.noise_factor / target.n_total
    known = target.anchor.noise.dense().diagonal()
    np.testing.assert_allclose(drawn, known, rtol=0.15)
