"""Means of y over chains, which predictions ask for, are those under each chain."""

import numpy as np
import pytest
from scipy import sparse

from skbayes_sg.models import Binomial, Gamma, NegativeBinomial, Poisson, Student

RNG = np.random.default_rng(5)
KINDS = [Poisson, NegativeBinomial, Gamma, Binomial, Student]


class WithZeros(Poisson):
    """Half of the counts are zero whatever their mean."""

    def mean(self, outputs):
        return 0.5 * super().mean(outputs)


class OfPairs(Binomial):
    """Two successes in a row."""

    def mean(self, outputs):
        return super().mean(outputs) ** 2


@pytest.mark.parametrize("kind", [*KINDS, WithZeros, OfPairs])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("form", ["dense", "offset", "sparse", "single"])
def test_means_over_chains_are_those_under_each(kind, fit_intercept, form):
    model = kind(4, fit_intercept)
    X, theta = RNG.normal(size=(30, 4)), RNG.normal(0, 0.4, (12, model.dim))
    weights = RNG.dirichlet(np.ones(12))
    if form == "offset":
        known = [RNG.normal(size=30), *([RNG.integers(1, 9, 30)] * model.n_given)]
        X = np.column_stack([X, *known])
    wanted = weights @ model.mean(model.outputs(theta, X))
    if form == "sparse":
        X = sparse.csr_array(X)
    if form == "single":
        X, theta, weights = (each.astype(np.float32) for each in (X, theta, weights))
    found = model.mean_over(weights, theta, X)
    assert found.shape == (30,)
    np.testing.assert_allclose(
        found, wanted, rtol=1e-5 if form == "single" else 1e-12, atol=1e-6 * (form == "single")
    )
