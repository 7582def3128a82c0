"""Chains that sample the prior precision: coordinates, density and gradients."""

import numpy as np
import pytest

from skbayes_sg.models import Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.control_variates import Expanded
from skbayes_sg.posterior.gaussian import NormalPath, find_mode, posterior_mean
from skbayes_sg.posterior.targets import with_coordinates
from skbayes_sg.priors import GaussianPrior, Horseshoe, StudentT
from skbayes_sg.priors.scales import Groups, OnePrecision, Sampled

PRIORS = ("one", "curved", "groups", "columns", "horseshoe", "student_t")
CASES = pytest.mark.parametrize(
    ("hyperprior", "n_classes"), [(name, k) for name in PRIORS for k in (2, 3)]
)


def scales_of(hyperprior, coef):
    """Of coefficients at these places, (classes, columns): one precision, or some of columns."""
    group_of_column = {"one": [0, 0, 0], "curved": [0, 0, 0], "groups": [0, 1, 0]}
    group = np.tile(group_of_column.get(hyperprior, [0, 1, 2]), len(coef))
    kind = OnePrecision if group.max() == 0 else Groups
    found = kind(coef.ravel(), group, ["a", "b", "c"][: group.max() + 1], 1.0)
    if hyperprior == "horseshoe":
        return Horseshoe(expected_nonzero=1).scales(found, 50.0)
    return StudentT(3.0).scales(found, 50.0) if hyperprior == "student_t" else found


def moments_along(path, eta):
    """Mean and standard deviation of one log precision, from normal distributions near eta."""
    for _ in range(3):
        path.at(eta)
        eta, width = path.moments()
    return np.array([eta]), np.array([width])


def made(hyperprior="one", n_classes=2, n_rows=300, seed=0):
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
    scales = scales_of(hyperprior, model.unpack(np.arange(model.dim))["coef"].reshape(-1, 3))
    centre = scales.start(prior)[0]
    width = np.full(scales.dim, 0.7)
    if isinstance(scales, OnePrecision):
        path = NormalPath(posterior, scales, True)
        centre, width = moments_along(path, centre[0])
    posterior = posterior.with_prior(scales.given(prior, scales.log_precisions(centre[None])[0]))
    guess = model.guess(posterior.data.y, None)
    mode = posterior_mean(posterior, find_mode(posterior, guess, np.random.default_rng(0)))
    density, sampled = Expanded.at(posterior, mode, along=scales), Sampled(scales, centre, width)
    along = path if hyperprior == "curved" else None
    return posterior, with_coordinates(density, sampled, along)


def points(target, n=6, seed=1):
    return np.random.default_rng(seed).standard_normal((n, target.dim))


def parts(target, theta):
    """Parameters and hyperparameters of one point (D + K,), each (1, .)."""
    return np.split(theta[None], [-target.coordinates.n_hyper], axis=1)


def under(posterior, scales, eta):
    return posterior.with_prior(scales.given(posterior.prior, scales.log_precisions(eta)[0]))


@CASES
def test_coordinates_lead_there_and_back(hyperprior, n_classes):
    _, target = made(hyperprior, n_classes)
    x = points(target)
    theta = target.coordinates.inverse_transform(x)
    np.testing.assert_allclose(target.coordinates.transform(theta), x, atol=1e-9)


@CASES
def test_the_density_is_that_of_the_posterior_times_the_jacobian(hyperprior, n_classes):
    posterior, target = made(hyperprior, n_classes)
    scales, x = target.coordinates.scales, points(target)
    expected = []
    for one, at in zip(target.coordinates.inverse_transform(x), x, strict=True):
        theta, eta = parts(target, one)
        value = under(posterior, scales, eta).log_prob(theta)[0] + scales.log_density(eta)[0]
        steps = 1e-6 * np.eye(target.dim)
        ahead, behind = (target.coordinates.inverse_transform(at + s * steps) for s in (1, -1))
        expected.append(value + np.linalg.slogdet((ahead - behind) / 2e-6)[1])
    found, gradient = target.logdensity_and_grad(x)
    np.testing.assert_allclose(found - found[0], np.array(expected) - expected[0], atol=2e-3)
    np.testing.assert_allclose(gradient, target.full_gradient(x), rtol=1e-4, atol=1e-4)
    v = points(target, seed=2)
    up, down = (target.logdensity_and_grad(x + step * v)[0] for step in (1e-2, -1e-2))
    np.testing.assert_allclose((up - down) / 2e-2, (gradient * v).sum(axis=1), rtol=2e-2, atol=2e-2)


@CASES
def test_a_move_along_the_scale_knows_by_what_volumes_grow(hyperprior, n_classes):
    """It multiplies distances from the prior's mean, and is undone by its inverse."""
    posterior, target = made(hyperprior, n_classes)
    c, x, log_scale = target.coordinates, points(target, 3), np.array([0.3, -0.2, 0.05])
    move = target.scale_move.rescaled
    moved, volume = move(x, log_scale)
    before, after = (np.split(c.inverse_transform(one), [-c.n_hyper], axis=1) for one in (x, moved))
    mean = posterior.prior.mean
    np.testing.assert_allclose(
        after[0] - mean, np.exp(log_scale)[:, None] * (before[0] - mean), rtol=1e-6, atol=1e-9
    )
    ell = [c.scales.log_precisions(one[1]) for one in (before, after)]
    if hyperprior != "horseshoe":  # whose slab has a scale of its own
        np.testing.assert_allclose(
            ell[1] - ell[0], np.repeat(-2 * log_scale[:, None], ell[0].shape[1], axis=1)
        )
    back, shrunk = move(moved, -log_scale)
    np.testing.assert_allclose(back, x, atol=1e-8)
    np.testing.assert_allclose(shrunk, -volume, atol=1e-8)
    steps = 1e-6 * np.eye(target.dim)
    for one, s, expected in zip(x, log_scale, volume, strict=True):
        both = [
            target.scale_move.rescaled(one + sign * steps, np.full(target.dim, s))[0]
            for sign in (1, -1)
        ]
        found = np.linalg.slogdet((both[0] - both[1]) / 2e-6)[1]
        assert found == pytest.approx(expected, abs=1e-4)


@CASES
def test_the_hyperprior_curves_as_it_says(hyperprior, n_classes):
    _, target = made(hyperprior, n_classes)
    scales, eta = target.coordinates.scales, target.coordinates.centre[None] + 0.3
    steps = 1e-4 * np.eye(scales.dim)
    hessian = scales.hyperprior_slope(eta + steps) - scales.hyperprior_slope(eta - steps)
    np.testing.assert_allclose(
        -hessian.diagonal() / 2e-4, scales.hyperprior_curvature(eta), rtol=1e-5, atol=1e-8
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_curves_go_through_normal_distributions_of_a_path(n_classes):
    """At each of three precisions points of the distribution there are standard."""
    posterior, target = made("one", n_classes)
    scales = target.coordinates.scales
    path = NormalPath(posterior, scales, True)
    moments_along(path, scales.start(posterior.prior)[0, 0])
    path.around()  # which moves their mean
    sampled = target.sampled
    c = with_coordinates(target.density, sampled, path).coordinates
    for node in path.around():
        root = node.normal.operator.inverse().cholesky().dense()
        theta = np.vstack([node.normal.mean, node.normal.mean + root.T])
        x = c.transform(np.hstack([theta, np.full((len(theta), 1), node.rho)]))
        np.testing.assert_allclose(x[0, :-1], 0.0, atol=1e-8)
        spread = np.sqrt(((x[1:, :-1] - x[0, :-1]) ** 2).sum(axis=0))
        np.testing.assert_allclose(spread, 1.0, atol=0.1)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_given_the_precision_all_directions_are_about_standard(n_classes):
    """Curvature near the identity along every v, and no correlation with the precision."""
    _, target = made("one", n_classes)
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
