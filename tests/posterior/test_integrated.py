"""Chains under one precision that is integrated out, beside those that have it as a coordinate."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLogisticRegressionSGFS, diagnostics
from skbayes_sg.posterior.hierarchical import HierarchicalTarget, IntegratedTarget
from skbayes_sg.samplers import HMC


def rows(n_classes):
    X, y = load_diabetes(return_X_y=True)
    cuts = np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1])
    return StandardScaler().fit_transform(X), np.digitize(y, cuts)


def fitted(n_classes=2, **parameters):
    X, y = rows(n_classes)
    model = BayesianLogisticRegressionSGFS(random_state=0, **parameters).fit(X, y)
    return model, model._run.target(model._posterior_of(X, y, None))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_gradient_is_that_of_the_log_density(n_classes):
    _, target = fitted(n_classes)
    assert isinstance(target, IntegratedTarget)
    rng = np.random.default_rng(0)
    u, v = rng.standard_normal((2, 5, target.dim))
    ends = [target.slope(u + sign * 1e-3 * v)[0] for sign in (1, -1)]
    gradient = target.slope(u)[1]
    along = np.sum(gradient * v, axis=1)
    np.testing.assert_allclose((ends[0] - ends[1]) / 2e-3, along, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(target.full_gradient(u), gradient, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_precision_and_coefficients_are_those_of_chains_that_move_both(n_classes):
    found, _ = fitted(n_classes, n_draws=250)
    hmc = HMC(variance_reduction="control_variate")
    other, target = fitted(n_classes, n_draws=250, sampler=hmc)
    assert isinstance(target, HierarchicalTarget)
    for one, two in (
        (np.log(found.prior_precision_draws_), np.log(other.prior_precision_draws_)),
        (found.draws_, other.draws_),
    ):
        one, two = one.astype(float), two.astype(float)
        sd = two.std(axis=(0, 1))
        ess = np.minimum(diagnostics.ess_bulk(one), diagnostics.ess_bulk(two))
        error = (one.mean(axis=(0, 1)) - two.mean(axis=(0, 1))) / sd
        assert np.abs(error * np.sqrt(ess / 2)).max() < 4.5
        ratio = one.std(axis=(0, 1)) / sd
        assert np.abs((ratio - 1) * np.sqrt(ess)).max() < 4.5
