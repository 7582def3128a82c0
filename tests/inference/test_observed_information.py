"""Normal posteriors of families whose observed information differs from the expected one.

The reference shares no code with the package: densities of SciPy, a mode by its simplex and
quasi-Newton search, and importance sampling from Student's t around it.
"""

import warnings

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import expit
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning

from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianRobustRegressor,
)
from skbayes_sg.inference import one_mode

N = 600
COEFS = slice(0, 2)
# what is tested is `posterior_`, which hardly depends on the draws
FEW = {"prior_precision": 1.0, "n_chains": 4, "n_draws": 20, "burn_in": 20, "random_state": 0}
IGNORED = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def columns(seed=3):
    rng = np.random.default_rng(seed)
    return rng, np.c_[rng.uniform(-2, 2, N), rng.standard_normal(N)]


def gamma_density(theta, B, y):
    shape = np.exp(-theta[3])
    return stats.gamma.logpdf(y, shape, scale=np.exp(B @ theta[:3]) / shape)


def counts_density(theta, B, y):
    size = np.exp(-theta[3])
    return stats.nbinom.logpmf(y, size, size / (size + np.exp(B @ theta[:3])))


def robust_density(theta, B, y):
    return stats.t.logpdf(y, np.exp(theta[4]), B @ theta[:3], np.exp(theta[3]))


def ordinal_density(theta, B, y):
    eta = B @ theta[:3]
    below = np.stack([0 * eta, expit(-eta), expit(np.exp(theta[3]) - eta), 0 * eta + 1])
    return np.log(np.diff(below, axis=0)[y, range(len(y))])


def case(name):
    """Estimator, X, y, density, and means and precisions of the own parameters' priors.

    The truth bends where the model has a line, or its noise changes along it.
    """
    rng, X = columns()
    valley, ridge = 1.2 * np.abs(X[:, 0]), -0.9 * np.abs(X[:, 0])
    dispersion = ([-1.0], [1.5**-2])
    if name == "Gamma valley":
        y = rng.gamma(5, np.exp(valley) / 5)
        return BayesianGammaRegressor, X, y, gamma_density, *dispersion
    if name == "Gamma ridge":
        y = rng.gamma(5, np.exp(ridge) / 5)
        return BayesianGammaRegressor, X, y, gamma_density, *dispersion
    if name == "counts valley":
        y = rng.poisson(2 * np.exp(valley) * rng.gamma(6, 1 / 6, N))
        return BayesianNegativeBinomialRegressor, X, y, counts_density, *dispersion
    if name == "counts ridge":
        y = rng.poisson(8 * np.exp(ridge) * rng.gamma(6, 1 / 6, N))
        return BayesianNegativeBinomialRegressor, X, y, counts_density, *dispersion
    if name == "robust":
        y = X[:, 0] + rng.standard_normal(N) * (0.1 + X[:, 0] ** 2)
        return BayesianRobustRegressor, X, y, robust_density, None, [0.25, 1.0]
    y = np.digitize(2 * np.abs(X[:, 0]) + rng.logistic(size=N), [1.0, 3.0])
    return BayesianOrdinalClassifier, X, y, ordinal_density, [0.0], [0.25]


NAMES = ["Gamma valley", "Gamma ridge", "counts valley", "counts ridge", "robust", "ordinal"]


def right(density, X, y, own_mean, own_precision, unit):
    """Means and standard deviations of the coefficients of the posterior, and effective draws."""
    B = np.c_[X, np.ones(len(X))]
    # the intercept's prior has ten units of the outputs, of robust regression a thousand
    of_intercept = 1e-6 if own_mean is None else 0.01
    own_mean = [np.log(unit), 2.0] if own_mean is None else own_mean
    centre = np.array([0.0, 0.0, 0.0, *own_mean])
    precision = np.array([1.0, 1.0, of_intercept, *own_precision])
    precision[:3] /= unit**2

    def loss(theta):
        return 0.5 * (theta - centre) ** 2 @ precision - density(theta, B, y).sum()

    start = optimize.minimize(loss, centre, method="Nelder-Mead", options={"maxiter": 5000}).x
    mode = optimize.minimize(loss, start, method="BFGS").x
    d, h = len(mode), 1e-4
    steps = h * np.eye(d)
    hessian = np.array(
        [
            [
                loss(mode + a + b) - loss(mode + a - b) - loss(mode - a + b) + loss(mode - a - b)
                for a in steps
            ]
            for b in steps
        ]
    ) / (4 * h * h)
    rng = np.random.default_rng(0)
    z = rng.standard_normal((4000, d)) / np.sqrt(rng.chisquare(8, (4000, 1)) / 8)
    theta = mode + z @ np.linalg.cholesky(np.linalg.inv(hessian)).T
    log_weight = 0.5 * (8 + d) * np.log1p((z**2).sum(axis=1) / 8)
    log_weight -= [loss(each) for each in theta]
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    mean = weight @ theta
    sd = np.sqrt(weight @ (theta - mean) ** 2)
    return mean[COEFS], sd[COEFS], 1 / (weight**2).sum()


def check(mean, sd, wanted, normal=0.02):
    """Within five Monte Carlo errors of the reference, and what is not normal in the posterior."""
    right_mean, right_sd, n = wanted
    assert n > 1500
    np.testing.assert_allclose(sd, right_sd, rtol=5 / np.sqrt(2 * n) + normal)
    assert (np.abs(mean - right_mean) < (5 / np.sqrt(n) + 0.05) * right_sd).all()


@IGNORED
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.quick("Gamma valley")
def test_standard_deviations_are_right_where_the_model_is_not(name):
    cls, X, y, density, own_mean, own_precision = case(name)
    fit = cls(**FEW).fit(X, y)
    unit = fit.model_.unit
    wanted = right(density, X, y, own_mean, own_precision, unit)
    posterior = fit.posterior_.distribution
    check(posterior.mean[COEFS], np.sqrt(posterior.variance)[COEFS], wanted)
    stream = cls(prior_precision=1.0, random_state=0)
    first = {"classes": [0, 1, 2]} if cls is BayesianOrdinalClassifier else {}
    for rows in np.split(np.arange(N), [200, 400]):
        stream.partial_fit(X[rows], y[rows], **first)
    check(np.ravel(stream.coef_), np.ravel(stream.coef_std_), wanted, 0.04)


@IGNORED
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.quick("Gamma valley", "ordinal")
def test_rows_that_are_not_read_again_have_it_at_the_mode(name, monkeypatch):
    cls, X, y, *_ = case(name)
    whole = cls(**FEW).fit(X, y).posterior_.distribution
    monkeypatch.setattr(one_mode, "has_cheap_passes", lambda *_: False)
    at_mode = cls(**FEW).fit(X, y).posterior_.distribution
    assert not np.array_equal(at_mode.mean, whole.mean)
    np.testing.assert_allclose(at_mode.variance[COEFS], whole.variance[COEFS], rtol=0.06)


@pytest.mark.parametrize("name", ["Gamma ridge", "counts valley", "counts ridge"])
@pytest.mark.quick("Gamma ridge")
def test_folded_rows_keep_it(name):
    cls, X, y, *_ = case(name)
    stream = cls(prior_precision=1.0, random_state=0)
    whole = cls(prior_precision=1.0, random_state=0).partial_fit(X, y)
    with config_context(working_memory=200 * 3 * 8 * 16 / 2**20):  # of which a sixteenth
        for rows in np.split(np.arange(N), 12):
            stream.partial_fit(X[rows], y[rows])
    assert "folded_shift" in stream.diagnostics_
    np.testing.assert_allclose(stream.coef_std_, whole.coef_std_, rtol=0.1)
    assert (np.abs(stream.coef_ - whole.coef_) < 0.3 * whole.coef_std_).all()


def test_the_expected_information_stands_in_with_a_warning():
    """Three counts for four parameters."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3, 3)), np.array([0, 0, 30])
    wide = {"prior_precision": 1e-4, "fit_intercept": False, "random_state": 0}
    model = BayesianNegativeBinomialRegressor(**wide)
    model.partial_fit(X, y)
    with pytest.warns(ConvergenceWarning, match="not positive definite.*call fit"):
        deviations = model.coef_std_
    assert (deviations > 0).all()
    rows = np.repeat(np.arange(3), 100)
    more = X[rows] + rng.standard_normal((300, 3))
    model.partial_fit(more, rng.negative_binomial(3, 0.5, 300))
    with warnings.catch_warnings(action="error"):
        assert (model.coef_std_ > 0).all()
    fit = BayesianNegativeBinomialRegressor(**wide)
    with warnings.catch_warnings():  # of other things
        warnings.simplefilter("ignore")
        fit.fit(X, [0, 0, 300])  # the mean of the draws is farther out
    with pytest.warns(ConvergenceWarning, match="not positive definite.* not affected"):
        assert (fit.posterior_.covariance.diagonal() > 0).all()
    after = BayesianNegativeBinomialRegressor(
        prior=fit.posterior_, fit_intercept=False, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="not positive definite"):
        after.fit(more, rng.negative_binomial(3, 0.5, 300))
