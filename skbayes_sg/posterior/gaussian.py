"""Gaussian approximations of a posterior: exact, or the nearest in the variational sense.

The posterior of linear regression is of the family of its prior. That of logistic regression is
replaced by the normal distribution at which gradient and curvature agree with their own means
(math/streams.md#streams-as-bayesian-updating).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import InMemory
from skbayes_sg.data.kept_rows import joined
from skbayes_sg.linalg import DIAGONAL, FULL, Dense, Diag, Operator
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.mode import Mode, find_mode, finite_expansion
from skbayes_sg.priors import GaussianPrior, NormalInverseGammaPrior, Prior
from skbayes_sg.priors.normal import plain

_NEAR = 0.01  # squared distance per parameter of a step whose end is as good as the mode
_MOST_STEPS = 25
_CONVERGED = 0.1  # relative change of the curvature, and squared shift, that one step can make
_CLOSE = 0.01  # the same of a last step, where steps go on from a distribution
_LONGEST_STEP = 1.0  # in posterior standard deviations per parameter

Distribution = GaussianPrior | NormalInverseGammaPrior
Means = Callable[[NDArray, NDArray], tuple[NDArray, Operator]]
"""Gradient and curvature in the mean over N(theta, root root^T), of theta (1, D) and root."""


def updated(posterior: Posterior, guess: NDArray) -> Distribution:
    """The posterior as a distribution of the prior's family, by the expected information.

    Where the observed information is another one, `with_observed` goes on from here. Above 1,000
    parameters its precision is a diagonal, and its mean is the mode. Source:
    math/streams.md#streams-as-bayesian-updating.
    """
    prior = posterior.prior
    assert isinstance(posterior.model, Predictor)
    assert isinstance(prior, Distribution)
    if not has_matrix(posterior.dim):
        mode = find_mode(posterior, guess, np.random.default_rng(0))
        left = np.where(prior.precision > 0, 0.0, mode.gradient)  # a diagonal makes no good step
        diagonal = Diag(mode.curvature.diagonal())
        return prior.updated(mode.theta, left, diagonal)
    if posterior.model.conjugate:
        return known_at(prior, expanded_twice(posterior, guess))
    return _variational(posterior, guess)


def expanded_twice(posterior: Posterior, theta: NDArray) -> Mode:
    """The expansion of a conjugate posterior near its mode, from one at theta (1, D).

    Far from the mode a sum of squares would be the small difference of two large ones.
    """
    first = finite_expansion(posterior, theta, FULL)
    near = known_at(posterior.prior, Mode(theta, first.curvature, first.gradient, 1.0)).mode
    here = finite_expansion(posterior, near, FULL)
    return Mode(near, here.curvature, here.gradient, 2.0)


def known_at(prior: Prior, here: Mode) -> Distribution:
    """The posterior from its expansion at a point: exact if conjugate."""
    assert isinstance(prior, Distribution)
    return prior.updated(here.theta, here.gradient, here.curvature)  # type: ignore[arg-type]


def distribution_at(anchor: Mode, posterior: Posterior) -> Distribution:
    """The posterior from its expansion: exact if conjugate, else normal around the anchor."""
    assert isinstance(posterior.model, Predictor)
    if posterior.model.conjugate:
        return known_at(posterior.prior, anchor)
    at_mode = anchor._replace(gradient=np.zeros_like(anchor.gradient))
    if not posterior.model.has_other_curvature:
        return known_at(posterior.prior, at_mode)
    theta = anchor.theta
    observed = Dense(posterior.observed(theta) + posterior.prior.hessian(theta))
    if not _is_definite(observed):
        return by_expected(known_at(posterior.prior, at_mode))
    return known_at(posterior.prior, at_mode._replace(curvature=observed))


def _variational(posterior: Posterior, guess: NDArray) -> Distribution:
    """Steps from the mode to where the gradient vanishes in the mean over the posterior.

    The precision is the curvature in that mean. One step is enough near a normal distribution.
    Elsewhere, as with separable classes, the wide distribution at the mode and its mean curvature
    contradict each other; half steps lead to the distribution that agrees with its own means.
    """
    here = finite_expansion(posterior, guess, FULL)
    precision = here.curvature
    step = precision.inverse().matvec(here.gradient)
    theta = guess + step
    if np.sum(step * here.gradient) > _NEAR * posterior.dim:
        mode = find_mode(posterior, guess, np.random.default_rng(0))
        theta, precision = mode.theta, mode.curvature
    return _agreeing(posterior.expected_under_gaussian, theta, precision, _CONVERGED)


def followed(posterior: Posterior, before: Posterior, near: GaussianPrior) -> GaussianPrior:
    """The normal distribution of a posterior from that of the same rows under another prior."""
    precision = carried(near, before, posterior)
    gradient = posterior.prior.gradient(near.mode) - before.prior.gradient(near.mode)
    theta = near.mode + precision.inverse().matvec(gradient)
    return _agreeing(posterior.expected_under_gaussian, theta, precision, _CLOSE)


def carried(normal: GaussianPrior, before: Posterior, after: Posterior) -> Operator:
    """The precision of a normal distribution under another prior, which the rows do not see."""
    there, here = (posterior.prior.curvature(normal.mode) for posterior in (before, after))
    return plain(normal.operator) + (here + there * -1.0)


def _agreeing(means: Means, theta: NDArray, precision: Operator, limit: float) -> GaussianPrior:
    """The normal distribution that agrees with its own means, from one near it."""
    for _ in range(_MOST_STEPS):
        covariance = precision.inverse().dense()
        root = np.linalg.cholesky(covariance)
        gradient, curvature = means(theta, root)
        shift = gradient @ covariance
        if _is_near(shift, gradient, covariance, curvature, limit):
            theta, precision = theta + shift, curvature
            break
        precision = precision * 0.5 + curvature * 0.5
        shift = 0.5 * precision.inverse().matvec(gradient)
        length = np.sqrt(np.sum(shift * precision.matvec(shift)) / theta.size)
        theta = theta + shift / max(length, _LONGEST_STEP)
    assert isinstance(precision, Dense)
    return GaussianPrior(precision, theta[0])


def _is_near(
    shift: NDArray, gradient: NDArray, covariance: NDArray, curvature: Operator, limit: float
) -> bool:
    """Whether a step changes squared shift and curvature by less than a limit per parameter."""
    length = np.sum(shift * gradient) / len(covariance)
    change = np.sum(covariance * curvature.dense()) / len(covariance) - 1
    return bool(abs(change) < limit and length < limit)


def _is_definite(matrix: Operator) -> bool:
    try:
        matrix.cholesky()
    except np.linalg.LinAlgError:
        return False
    return True


def by_expected(distribution: Distribution) -> Distribution:
    """The distribution, marked as one that the expected information had to make."""
    assert isinstance(distribution, GaussianPrior)
    marked = GaussianPrior(plain(distribution.operator), distribution.mean)
    marked.by_expected = True
    return marked


# -- rows in blocks ---------------------------------------------------------------------------


def expanded(
    model: Predictor, blocks: Sequence[InMemory], prior: Distribution, near: Distribution
) -> Distribution:
    """The posterior of these rows, from a distribution that is near it: mostly in one pass."""
    distribution, most = near, 0 if not has_matrix(model.dim) else _MOST_STEPS
    for _ in range(most):
        gradient, curvature = in_the_mean(model, blocks, prior, distribution)
        covariance = distribution.operator.inverse().dense()
        shift = gradient @ covariance
        close = _is_near(shift, gradient, covariance, curvature, _CONVERGED)
        if not (close and _is_definite(curvature)):
            break
        assert isinstance(curvature, Dense)
        distribution = GaussianPrior(curvature, distribution.mean + shift[0])
        if _is_near(shift, gradient, covariance, curvature, _CLOSE):
            return by_expected(distribution) if prior.by_expected else distribution
    found = updated(Posterior(model, joined(blocks), prior), distribution.mode)
    return with_observed(model, blocks, prior, found)


def with_observed(
    model: Predictor, blocks: Sequence[InMemory], prior: Distribution, near: Distribution
) -> Distribution:
    """The posterior of these rows, from that by the expected information, which is near it.

    Its precision is the observed information and the prior's, in the mean over itself: where an
    effect bends, the expected information makes standard deviations that are half or twice the
    right ones, however many rows there are. The observed one need not be positive definite, as
    between clusters of outliers; then `near` stays, with a mark. It stays without one where the
    two agree, and above 1,000 parameters. Source: math/streams.md#observed-information.
    """
    if not (model.has_other_curvature and has_matrix(model.dim)):
        return near
    means = _means(model, blocks, prior, observed=True)
    try:
        found = _agreeing(means, near.mode, plain(near.operator), _CLOSE)
    except np.linalg.LinAlgError:
        return by_expected(near)
    if not _is_definite(plain(found.operator)):
        return by_expected(near)
    return by_expected(found) if prior.by_expected else found


def folded(
    model: Predictor, blocks: Sequence[InMemory], prior: Distribution, distribution: Distribution
) -> Distribution:
    """The prior times the likelihood of these rows as expanded at a distribution.

    It is by the expected information where the distribution is, and where the observed one is not
    positive definite.
    """
    theta, expected = distribution.mode, distribution.by_expected
    if not expected:
        gradient, curvature = in_the_mean(model, blocks, prior, distribution)
        expected = model.has_other_curvature and not _is_definite(curvature)
    if expected:
        gradient, curvature = in_the_mean(model, blocks, prior, distribution, observed=False)
    found: Distribution = prior.updated(theta, gradient, curvature)  # type: ignore[arg-type]
    return by_expected(found) if expected else found


def in_the_mean(
    model: Predictor,
    blocks: Sequence[InMemory],
    prior: Distribution,
    distribution: Distribution,
    observed: bool = True,
) -> tuple[NDArray, Operator]:
    """Gradient and curvature of rows and prior in the mean over a distribution.

    The curvature is the observed one, where the model has another than the expected one, if
    `observed`. Above 1,000 parameters they are those at the mode, and the curvature is a diagonal,
    and expected.
    """
    theta = distribution.mode
    if has_matrix(model.dim):
        root = distribution.operator.inverse().cholesky().dense()
        observed &= model.has_other_curvature
        return _means(model, blocks, prior, observed)(theta, root)
    gradient, curvature = prior.gradient(theta), FULL.keep(prior.curvature(theta))
    for rows in blocks:
        here = Posterior(model, rows, _flat(model)).expand(theta, DIAGONAL)
        gradient, curvature = gradient + here.gradient, here.curvature + curvature
    return gradient, curvature


def _means(
    model: Predictor, blocks: Sequence[InMemory], prior: Distribution, observed: bool
) -> Means:
    """`Posterior.expected_under_gaussian` of rows in blocks."""

    def means(theta: NDArray, root: NDArray) -> tuple[NDArray, Operator]:
        gradient, curvature = prior.gradient(theta), FULL.keep(prior.curvature(theta))
        for rows in blocks:
            alone = Posterior(model, rows, _flat(model))
            slope, information = alone.expected_under_gaussian(theta, root, observed)
            gradient, curvature = gradient + slope, information + curvature
        return gradient, curvature

    return means


def _flat(model: Predictor) -> GaussianPrior:
    """No prior."""
    return GaussianPrior(Diag(np.zeros(model.dim)))
