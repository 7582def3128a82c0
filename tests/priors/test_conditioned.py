"""What other rows have said, beside independent priors of any precisions."""

import numpy as np
import pytest

from skbayes_sg.linalg import Dense
from skbayes_sg.priors import (
    ConditionedPrior,
    GaussianPrior,
    NormalInverseGammaPrior,
    with_rows,
    without_rows,
)

N, D = 12, 4
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, N, D))  # of two fits
Y = X @ [1.0, -2.0, 0.5, 0.0] + RNG.standard_normal((2, N))
MEAN = np.array([0.5, 0.0, -1.0, 0.0])
PRECISIONS = np.array([[1.0, 2.0, 3.0, 4.0], [0.1, 20.0, 0.3, 40.0]])


def regression(prior, X, y):
    """The posterior of a linear regression, with noise of variance 1 or sampled, by one solve."""
    precision = prior.operator.dense() + X.T @ X
    of_prior = prior.operator.dense() @ prior.mean[:D]
    mean = np.linalg.solve(precision, of_prior + X.T @ y)
    if prior.noise is None:
        return GaussianPrior(Dense(precision), mean)
    shape, rate = prior.noise
    energy = y @ y + prior.mean[:D] @ of_prior - mean @ precision @ mean
    return NormalInverseGammaPrior(
        Dense(precision), (shape + 0.5 * len(y), rate + 0.5 * energy), mean
    )


def independent(kind, precision):
    if kind == "normal":
        return GaussianPrior(precision, MEAN)
    return NormalInverseGammaPrior(precision, (2.0, 3.0), MEAN)


@pytest.mark.parametrize("kind", ["normal", "inverse gamma"])
def test_rows_are_taken_from_one_prior_to_another(kind):
    """The posterior is that of one solve under the other prior, and with rows of another fit."""
    before, after = (independent(kind, precision) for precision in PRECISIONS)
    found = ConditionedPrior.of(regression(before, X[0], Y[0]), before)
    for prior, precision in ((before, found.precision), (after, after.precision)):
        under = found.with_precision(precision)
        right = regression(prior, X[0], Y[0])
        assert without_rows(under).mean is under.mean
        np.testing.assert_allclose(under.precision, prior.precision)
        np.testing.assert_allclose(with_rows(under).mean, right.mean, atol=1e-12)
        np.testing.assert_allclose(with_rows(under).noise or 1, right.noise or 1, rtol=1e-12)
        theta = RNG.standard_normal((3, len(right.mean)))
        np.testing.assert_allclose(
            np.diff(under.log_density(theta)), np.diff(right.log_density(theta)), rtol=1e-9
        )
        np.testing.assert_allclose(under.gradient(theta), right.gradient(theta), rtol=1e-9)
        both = regression(with_rows(under), X[1], Y[1])
        right = regression(prior, X.reshape(-1, D), Y.ravel())
        np.testing.assert_allclose(both.mean, right.mean, atol=1e-12)
        np.testing.assert_allclose(both.operator.dense(), right.operator.dense(), rtol=1e-12)
        np.testing.assert_allclose(both.noise or 1, right.noise or 1, rtol=1e-12)


def test_rows_whose_information_is_not_positive_need_a_prior():
    """As observed information between clusters of outliers."""
    prior = GaussianPrior(np.full(D, 2.0))
    posterior = GaussianPrior(Dense(np.diag([1.0, 3.0, 3.0, 3.0])))
    found = ConditionedPrior.of(posterior, prior)
    assert found.is_proper
    assert not found.with_precision(np.full(D, 0.5)).is_proper
