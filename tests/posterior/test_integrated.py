"""Chains under precisions that are integrated out, beside those that have them as coordinates."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLogisticRegression, BayesianPoissonRegressor, diagnostics
from skbayes_sg.models import Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.control_variates import Expanded
from skbayes_sg.posterior.gaussian import find_mode
from skbayes_sg.posterior.targets import integrated_out
from skbayes_sg.priors.joint import IntegratedJoint
from skbayes_sg.priors.scales import OnePrecision, Sampled
from skbayes_sg.samplers import HMC, UnderdampedLangevin


def rows(n_classes):
    X, y = load_diabetes(return_X_y=True)
    cuts = np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1])
    return StandardScaler().fit_transform(X), np.digitize(y, cuts)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_gradient_is_that_of_the_log_density(n_classes):
    X, y = rows(n_classes)
    model, rng = Softmax(10, n_classes), np.random.default_rng(0)
    posterior = Posterior.of(model, X, model.encode(y, X.dtype), 1.0)
    mode = find_mode(posterior, np.zeros((1, model.dim)), rng)
    coef = model.unpack(np.arange(model.dim))["coef"].ravel()
    scales = OnePrecision(coef, np.zeros(len(coef), int), ["coef"], 0.7)
    density = Expanded.at(posterior, mode, along=scales)
    sampled = Sampled(scales, np.zeros(1), np.ones(1))
    target = integrated_out(density, sampled)
    u, v = rng.standard_normal((2, 5, target.dim))
    ends = [target.logdensity_and_grad(u + sign * 1e-3 * v)[0] for sign in (1, -1)]
    gradient = target.logdensity_and_grad(u)[1]
    along = np.sum(gradient * v, axis=1)
    np.testing.assert_allclose((ends[0] - ends[1]) / 2e-3, along, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(target.full_gradient(u), gradient, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.quick("2")
def test_precision_and_coefficients_are_those_of_chains_that_move_both(n_classes):
    found, other = (
        BayesianLogisticRegression(sampler, n_draws=250, random_state=0).fit(*rows(n_classes))
        for sampler in (None, HMC(variance_reduction="control_variate"))
    )
    assert isinstance(found.sampler_, UnderdampedLangevin)
    require_same(found, other)


@pytest.mark.parametrize("kind", [BayesianPoissonRegressor, BayesianLogisticRegression])
@pytest.mark.quick("BayesianPoissonRegressor")
def test_precisions_of_several_groups_are_those_of_chains_that_move_them(kind):
    """Of sixteen levels of thirty rows, of six others, and of two columns."""
    rng, n = np.random.default_rng(5), 480
    levels, others, x = rng.integers(16, size=n), rng.integers(6, size=n), rng.normal(size=(n, 2))
    eta = x @ [0.5, -0.3] + rng.normal(0, 0.7, 16)[levels] + rng.normal(0, 0.6, 6)[others]
    y = rng.poisson(np.exp(eta))
    X = np.column_stack([x, np.eye(16)[levels], np.eye(6)[others]])
    groups = {"level": list(range(2, 18)), "town": list(range(18, 24))}
    y = y if kind is BayesianPoissonRegressor else np.minimum(y, 1)
    found, other = (
        kind(sampler, n_draws=100, random_state=0, prior_groups=groups).fit(X, y)
        for sampler in (None, HMC(variance_reduction="control_variate"))
    )
    assert isinstance(found.sampler_, UnderdampedLangevin)
    assert found.prior_precision_draws_.shape[-1] == 3
    require_same(found, other)


def require_same(found, other):
    """Precisions and coefficients, but for chance."""
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


def levels(n_levels):
    """A column of ones for each level of a factor, and labels of two classes."""
    rng = np.random.default_rng(n_levels)
    level = rng.integers(n_levels, size=1000)
    logit = rng.standard_normal(n_levels)[level]
    return np.eye(n_levels)[level], (logit + rng.logistic(size=1000) > 0).astype(int)


@pytest.mark.parametrize(
    ("n_levels", "n_classes", "kind"),
    [(2, 2, HMC), (3, 2, HMC), (8, 2, UnderdampedLangevin), (2, 3, HMC)],
)
def test_few_levels_beside_an_intercept_have_their_precision_as_a_coordinate(
    n_levels, n_classes, kind
):
    """Rows do not know the shift of all, and few coefficients tell how small its precision is."""
    X, y = levels(n_levels)
    y[: 250 * (n_classes - 2)] = 2
    model = BayesianLogisticRegression(random_state=0).fit(X, y)
    assert isinstance(model.sampler_, kind)


@pytest.mark.slow
def test_what_rows_do_not_know_of_two_levels_is_as_wide_as_it_is(monkeypatch):
    """Steps of one length, with the precision integrated out, draw it a quarter too narrow."""
    X, y = levels(2)
    long = BayesianLogisticRegression("hmc", n_draws=4000, random_state=9).fit(X, y)
    wanted, tails, kurtosis = long.coef_samples_.std(), IntegratedJoint.tails, []

    def recorded(joint, u, covariance):
        found = tails(joint, u, covariance)
        kurtosis.append(found[1].max())
        return found

    def ratios():
        """Logarithms of the standard deviations of ten seeds over that of the long run."""
        fits = [BayesianLogisticRegression(random_state=seed).fit(X, y) for seed in range(10)]
        return np.log([fit.coef_samples_.std() / wanted for fit in fits])

    monkeypatch.setattr(IntegratedJoint, "tails", recorded)
    found = ratios()
    error = np.hypot(np.std(found, ddof=1) / 10**0.5, long.diagnostics_["sd_error"])
    assert abs(found.mean()) < 4 * error < 0.2
    assert min(kurtosis) > 100
    monkeypatch.setattr("skbayes_sg.posterior.targets._HEAVY", np.inf)
    assert 0.65 < np.exp(ratios().mean()) < 0.85
