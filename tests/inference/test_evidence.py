"""About where a sampled precision is, before the chains, and what the chains make of it."""

import warnings

import numpy as np
import pytest
from helpers import warnings_of
from sklearn.datasets import load_diabetes, load_wine
from sklearn.preprocessing import StandardScaler

from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
    BayesianRobustRegressor,
    PriorPrecisionDisplay,
    VariationalEM,
)
from skbayes_sg.data import InMemory, of_columns
from skbayes_sg.inference.diagnose import of_gradients
from skbayes_sg.models import Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.priors.scales import OnePrecision
from skbayes_sg.samplers import HMC, SGFS

CERTAIN = 5.0  # Monte Carlo errors


def labels(n_rows, n_features=8, size=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    return X, X @ rng.standard_normal(n_features) * size + rng.logistic(size=n_rows) > 0


def log_precision(model):
    """Mean and standard deviation of log precision, and the errors of both."""
    rho = np.log(model.prior_precision_draws_[..., 0])
    error = rho.mean(axis=1).std(ddof=1) / np.sqrt(len(rho))
    return rho.mean(), rho.std(), error


def test_noise_has_a_finite_precision_and_units_do_not_matter():
    """Warnings are errors."""
    X, _ = labels(500, 20)
    y = np.random.default_rng(1).random(500) < 0.5
    here, there = (
        BayesianLogisticRegression(random_state=0).fit(unit * X, y) for unit in (1.0, 16.0)
    )
    assert 5 < here.prior_precision_blocks_["coef"] < 60
    np.testing.assert_allclose(here.prior_precision_[:20], there.prior_precision_[:20] / 256)


@pytest.mark.parametrize("rows", [(400, 8, 1.0), (150, 60, 0.3)])
@pytest.mark.quick("rows0")
def test_short_and_long_trajectories_agree_on_the_precision(rows, seed):
    """Langevin dynamics and HMC, within Monte Carlo errors."""
    X, y = labels(*rows, seed)
    fits = [
        BayesianLogisticRegression(sampler, random_state=seed).fit(X, y)
        for sampler in (None, HMC(variance_reduction="control_variate"))
    ]
    (mean, sd, error), (other_mean, other_sd, other_error) = map(log_precision, fits)
    assert abs(mean - other_mean) < CERTAIN * np.hypot(error, other_error)
    assert sd == pytest.approx(other_sd, rel=0.15)
    stds = fits[0].coef_std_ / fits[1].coef_std_
    assert np.abs(stds - 1).max() < 0.15


def test_separable_classes_have_a_wide_distribution():
    """Intervals show what rows do not know, and no sentence has to."""
    X, _ = labels(100, 4)
    y = X[:, 0] > X[:, 1]
    model = BayesianLogisticRegression(fit_intercept=False, random_state=0)
    said = warnings_of(model, X, y)
    assert not any("precision" in text for text in said)
    _, sd, error = log_precision(model)
    assert sd > 1
    assert error < 0.3 * sd
    assert PriorPrecisionDisplay.from_estimator(model).labels == ["coef"]


@pytest.mark.parametrize("sampler", [SGFS(), "hmc"])
@pytest.mark.quick("hmc")
def test_samplers_by_name_sample_the_precision_too(sampler, seed):
    """Their draws are as wide as independent ones."""
    X, y = load_diabetes(return_X_y=True)
    exact = BayesianLinearRegression(random_state=0).fit(X, y)
    model = BayesianLinearRegression(sampler, random_state=seed).fit(X, y)
    assert model.prior_precision_draws_.shape == (*model.draws_.shape[:2], 1)
    np.testing.assert_allclose(model.coef_std_, exact.coef_std_, rtol=0.1)
    covariance = model.predicted_covariance(X, y).diagonal()[:10]
    np.testing.assert_allclose(np.sqrt(covariance), exact.coef_std_, rtol=0.1)


@pytest.mark.parametrize("sampler", [None, "hmc"])
@pytest.mark.quick("hmc")
def test_hmc_by_name_has_the_tails_of_few_separable_rows_too(sampler, seed):
    """One coefficient, whose distribution quadrature knows; its tail is far from normal."""
    X, y = np.array([[-1.3], [-0.8], [-0.4], [0.5], [0.9], [1.1]]), np.repeat([0, 1], 3)
    model = BayesianLogisticRegression(
        sampler, fit_intercept=False, n_draws=500, random_state=seed
    ).fit(X, y)
    unit = model.prior_precision_[0] / model.prior_precision_blocks_["coef"]
    rho, beta = np.linspace(-12, 6, 361), np.linspace(-20, 250, 5401)
    # a Gamma prior of shape 1/2 and mean 1, which ends about a thousandth of that
    density = 0.5 * rho - 0.5 * np.exp(rho) - 1e-3 * np.exp(-rho)
    density = (density + 0.5 * rho)[:, None] - 0.5 * unit * np.exp(rho)[:, None] * beta**2
    density = density - np.logaddexp(0, -(np.outer(2 * y - 1, beta) * X)).sum(axis=0)
    share = np.exp(density - density.max()).sum(axis=0)
    below = np.cumsum(share) / share.sum()
    ess = min(model.diagnostics_["ess_min"], model.diagnostics_["ess_tail_min"])
    for level in (0.05, 0.5, 0.95):
        found = np.interp(np.quantile(model.coef_samples_, level), beta, below)
        assert abs(found - level) < 5 * np.sqrt(level * (1 - level) / ess)


def test_a_bias_along_the_scale_is_seen(seed):
    """The same draws, all coefficients a fifth too large, with the precisions that fit them."""
    X, y = labels(300, 20, 0.3)
    X = StandardScaler().fit_transform(X)
    model = BayesianLogisticRegression(fit_intercept=False, random_state=seed).fit(X, y)
    right, error = (model.diagnostics_[name] for name in ("scale_shift", "scale_shift_se"))
    assert abs(right) < 5 * error
    posterior = Posterior.of(Softmax(20, 2, False), X, np.where(y, 1.0, -1.0), 1.0)
    scales = OnePrecision(np.arange(20), np.zeros(20, int), ["coef"], 20 / 10)
    draws = np.concatenate([model.draws_, np.log(model.prior_precision_draws_)], axis=2)
    same = of_gradients(posterior, draws, model.draw_weights_, 256, scales)
    assert abs(same["scale_shift"]) < 5 * same["scale_shift_se"]
    draws[..., :20] *= 1.2
    draws[..., -1] -= 2 * np.log(1.2)
    wrong = of_gradients(posterior, draws, model.draw_weights_, 256, scales)
    assert wrong["scale_shift"] > 0.2 + 5 * wrong["scale_shift_se"]


@pytest.mark.parametrize("prior", ["horseshoe", "student_t"])
@pytest.mark.parametrize(
    "kind",
    [
        BayesianLogisticRegression,
        BayesianLinearRegression,
        BayesianPoissonRegressor,
        BayesianNegativeBinomialRegressor,
        BayesianGammaRegressor,
        BayesianRobustRegressor,
        BayesianOrdinalClassifier,
    ],
)
@pytest.mark.quick(
    "BayesianLogisticRegression", "BayesianLinearRegression", "BayesianPoissonRegressor"
)
def test_priors_of_many_scales_do_not_depend_on_the_zeros_of_the_columns(kind, prior):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((50, 3)) * [1.0, 5.0, 0.2]
    y = rng.integers(1, 4, 50)
    shifted = X + np.array([2020.0, -40.0, 3.0])
    found = []
    for rows in (X, shifted):
        model = kind(prior=prior, n_chains=2, n_draws=4, burn_in=4, random_state=0)
        with warnings.catch_warnings(action="ignore"):  # few draws
            found.append(model.fit(rows, y)._fit.scales)
    eta = rng.standard_normal((5, found[0].dim))
    before, after = (scales.log_hyperprior(eta) for scales in found)
    np.testing.assert_allclose(after, before, rtol=1e-6)


def test_only_a_sampled_precision_has_draws():
    X, y = labels(100)
    given = BayesianLogisticRegression(prior_precision=1.0, random_state=0).fit(X, y)
    em = VariationalEM(hyperprior=(0.5, 0.5), n_updates=8)
    learned = BayesianLogisticRegression(prior_precision=em, random_state=0, n_draws=8)
    with warnings.catch_warnings(action="ignore"):  # few draws
        learned.fit(X, y)
    for model in (given, learned):
        assert not hasattr(model, "prior_precision_draws_")
    again = BayesianLogisticRegression(random_state=0).fit(X, y)
    assert again.prior_precision_draws_.shape == (32, 40, 1)
    again.set_params(prior_precision=1.0).fit(X, y)
    assert not hasattr(again, "prior_precision_draws_")


def test_the_geometric_mean_is_reported():
    X, y = labels(200)
    model = BayesianLogisticRegression(random_state=0).fit(X, y)
    value = np.exp(np.log(model.prior_precision_draws_.astype(float)).mean())
    assert model.prior_precision_blocks_["coef"] == pytest.approx(value)
    assert model.prior_precision_path_[-1, 0] == pytest.approx(value)
    np.testing.assert_allclose(model.prior_precision_[:8] / X.var(axis=0), value)


def test_a_stream_learns_from_all_its_chunks():
    X, y = labels(600)
    model = BayesianLogisticRegression(random_state=0)
    for n in (300, 600):
        model.partial_fit(X[n - 300 : n], y[n - 300 : n], classes=[False, True])
        fitted = BayesianLogisticRegression(random_state=0).fit(X[:n], y[:n])
        mean, sd, _ = log_precision(fitted)
        assert abs(np.log(model.prior_precision_blocks_["coef"]) - mean) < 0.5 * sd
    two_rows = BayesianLogisticRegression().partial_fit(X[:2], y[:2], classes=[False, True])
    assert (two_rows.prior_precision_[:8] / X[:2].var(axis=0) > 0.05).all()
    assert (two_rows.prior_precision_[:8] / X[:2].var(axis=0) < 6).all()


def test_weights_classes_and_the_summary():
    X, y = labels(300)
    kinds = y.astype(int) + (X[:, 0] > 1)
    weight = np.random.default_rng(2).integers(0, 3, 300)
    a, b = (BayesianLogisticRegression(random_state=0) for _ in range(2))
    a.fit(X, kinds, sample_weight=weight)
    b.fit(np.repeat(X, weight, axis=0), np.repeat(kinds, weight))
    assert a.prior_precision_[0] == pytest.approx(b.prior_precision_[0], rel=1e-6)
    learned = a.prior_precision_blocks_["coef"]
    assert a.summary().attrs["prior precision of coef"] == learned
    unit = of_columns(InMemory.of(np.repeat(X, weight, axis=0), weight)).unit
    np.testing.assert_allclose(a.prior_precision_[:8], learned * unit**2, rtol=1e-6)
    assert a.coef_.shape == (3, 8)


def test_columns_without_a_scale_are_not_worse_off():
    """One precision for columns a thousand times as large as others."""
    X, y = labels(1000)
    far = X * np.geomspace(1, 1e3, 8)
    here, there = (
        BayesianLogisticRegression(prior_precision=how, n_draws=50, random_state=0)
        .fit(far[:500], y[:500])
        .predict_proba(far[500:])
        for how in ("learned", 1.0)
    )
    right = np.arange(500), y[500:].astype(int)
    assert np.log(here[right]).mean() > np.log(there[right]).mean() - 0.01


def test_many_classes_learn_their_precision_in_the_chains(seed):
    """The precision of the coefficients that were drawn is 11; the data leave some 10 %."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((600, 100))
    z = X @ rng.standard_normal((100, 11)) * 0.3 + rng.gumbel(size=(600, 11))
    model = BayesianLogisticRegression(n_draws=20, random_state=seed)
    with warnings.catch_warnings(action="ignore"):  # few draws
        model.fit(X, z.argmax(axis=1))
    assert 5 < model.prior_precision_[0] < 20


@pytest.mark.slow
def test_chains_that_found_their_coordinates_do_not_burn_in_again(monkeypatch):
    """Nearly separable classes: the first coordinates do not hold, the last ones do."""
    X, y = load_wine(return_X_y=True)
    calls = {"start": 0, "step": 0}

    def counting(name):
        method = getattr(HMC, name)

        def counted(*args):
            calls[name] += 1
            return method(*args)

        return counted

    for name in calls:
        monkeypatch.setattr(HMC, name, counting(name))
    model = BayesianLogisticRegression(random_state=0, n_draws=128)
    with warnings.catch_warnings(action="ignore"):  # few draws
        model.fit(StandardScaler().fit_transform(X), y)
    n_draws = model.draws_.shape[1]
    assert calls["start"] > len(model.states_) == 1
    n_estimates = calls["step"] - calls["start"] * model.burn_in_ - n_draws  # steps that are timed
    assert 0 <= n_estimates < model.burn_in_ / 2
    assert model.n_iter_ == model.burn_in_ + n_draws
