"""BayesianLinearRegression as a user meets it, against the exact conjugate posteriors."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, polygamma
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import BayesianRidge, Ridge

from skbayes_sg import BayesianLinearRegression, BayesianRobustRegressor, theory
from skbayes_sg.samplers import IASG, SGFS, SGLD, ConstantSGD, MomentumSGD, PolynomialDecay

BLR = BayesianLinearRegression
SHORT = {"n_chains": 2, "n_draws": 60, "burn_in": 40, "random_state": 0}
pytestmark = pytest.mark.usefixtures("_short_runs_may_warn")


def generated(n_rows=8000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 4)) @ (np.eye(4) + 0.5 * rng.standard_normal((4, 4)))
    return X, 3.0 + X @ rng.standard_normal(4) + 2.0 * rng.standard_normal(n_rows)


@pytest.fixture(scope="module")
def many():
    return generated()


def conjugate(X, y, noise_variance, weight=None, prior=1.0, intercept=1e-6, shape=None, rate=1e-6):
    """Exact mean and covariance of (coefficients, intercept[, log noise variance])."""
    weight = np.ones(len(y)) if weight is None else weight
    X = np.column_stack([X, np.ones(len(X))])
    scale = 1.0 if noise_variance is None else noise_variance
    precision = (X * weight[:, None]).T @ X / scale + np.diag(
        [prior] * (X.shape[1] - 1) + [intercept]
    )
    mean = np.linalg.solve(precision, X.T @ (weight * y) / scale)
    if noise_variance is not None:
        return mean, np.linalg.inv(precision)
    if shape is None:  # by default coefficients that rows determine take from it
        known = np.diag([prior] * (X.shape[1] - 1) + [intercept])
        shape = 1e-6 - (len(mean) - np.trace(np.linalg.solve(precision, known))) / 2
    a = shape + weight.sum() / 2
    b = rate + 0.5 * (weight @ y**2 - mean @ precision @ mean)
    cov = np.zeros((len(mean) + 1,) * 2)
    cov[:-1, :-1] = np.linalg.inv(precision) * b / (a - 1)
    cov[-1, -1] = polygamma(1, a)
    return np.append(mean, np.log(b) - digamma(a)), cov


def compare(model, mean, cov):
    """Means within .1 posterior sd; variances along the posterior's own axes within .1 or five
    standard errors.
    """
    draws = model.draws_.reshape(-1, len(mean))
    off = np.abs(draws.mean(axis=0) - mean) / np.sqrt(cov.diagonal())
    assert off.max() < 0.1
    values, vectors = np.linalg.eigh(cov)
    ratio = ((draws - mean) @ vectors).var(axis=0) / values
    assert np.abs(ratio - 1).max() < max(0.1, 5 * np.sqrt(2 / model.diagnostics_["ess_min"]))
    return ratio


# -- exactness --------------------------------------------------------------------------------


@pytest.mark.convergence_warnings
@pytest.mark.parametrize("noise_variance", [4.0, 1.0, None])
def test_defaults_agree_with_the_conjugate_posterior(many, noise_variance, seed):
    model = BLR(prior_precision=1.0, noise_variance=noise_variance, random_state=seed).fit(*many)
    compare(model, *conjugate(*many, noise_variance))


@pytest.mark.convergence_warnings
def test_few_rows_and_the_handouts_prior(seed):
    X, y = generated(60)
    model = BLR(noise_prior=(1.0, 1.0), n_draws=500, prior_precision=0.01, random_state=seed).fit(
        X, y
    )
    assert type(model.sampler_).__name__ == "IndependentDraws"
    compare(model, *conjugate(X, y, None, prior=0.01, shape=1.0, rate=1.0))


@pytest.mark.parametrize(
    "sampler",
    [SGFS(alpha=1.0), ConstantSGD(), MomentumSGD(), SGLD(preconditioner="diag"), IASG(), "hmc"],
    ids=str,
)
@pytest.mark.quick("hmc")
def test_every_sampler_finds_the_posterior_mean(sampler, seed):
    data = generated(1000)
    mean, cov = conjugate(*data, None)
    model = BLR(sampler, n_draws=60, burn_in=300, random_state=seed).fit(*data)
    se = np.sqrt(cov.diagonal() / min(model.diagnostics_["ess_min"], 1000))
    # IASG and SGLD leave the mode by more than the posterior does, where the log noise is not
    # quadratic
    bias = 0.3 * np.sqrt(cov.diagonal())
    assert np.all(np.abs(model.draws_.mean(axis=(0, 1)) - mean) < 5 * se + bias)


def test_weights_are_repetitions(many):
    X, y = many[0][:200], many[1][:200]
    weight = np.random.default_rng(1).integers(0, 4, 200)
    weighted = BLR(n_draws=500, random_state=0, prior_precision=1.0).fit(X, y, sample_weight=weight)
    compare(weighted, *conjugate(X, y, None, weight))


def test_sgd_is_the_map_estimate(many):
    X, y = many
    model = BLR("sgd", n_chains=4, n_draws=50, random_state=0).fit(X, y)
    ridge = Ridge(alpha=1.0).fit(X, y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, atol=0.02)
    assert model.intercept_ == pytest.approx(ridge.intercept_, abs=0.05)
    assert model.noise_variance_ == pytest.approx(4.0, rel=0.1)


# -- theory beside the fit --------------------------------------------------------------------


@pytest.mark.parametrize(
    "sampler",
    [
        SGFS(),
        SGFS(alpha=1.0, structure="diag"),
        ConstantSGD("scalar"),
        MomentumSGD(),
        IASG(),
        SGLD(step_size=1e-4),
    ],
    ids=str,
)
@pytest.mark.quick("SGFS()")
def test_predicted_covariance_is_what_was_drawn(many, sampler):
    X, y = many
    slow = {"SGLD": {"burn_in": 1000, "thin": 10}, "IASG": {"burn_in": 1000}}
    how = slow.get(type(sampler).__name__, {"burn_in": 300})
    model = BLR(sampler, noise_variance=4.0, n_draws=200, random_state=0, **how).fit(X, y)
    predicted = model.predicted_covariance(X, y)
    draws = model.draws_.reshape(-1, 5)
    ratio = draws.var(axis=0) / predicted.diagonal()
    assert np.abs(ratio - 1).max() < max(0.03, 5 * np.sqrt(2 / model.diagnostics_["ess_min"]))
    bias = np.abs(predicted.diagonal() / conjugate(X, y, 4.0)[1].diagonal() - 1).max()
    exact = isinstance(sampler, MomentumSGD) or sampler.get_params() == SGFS().get_params()
    assert (bias < 0.02) == exact


@pytest.mark.parametrize("batch_size", [5, 10, 50])
@pytest.mark.quick("10")
def test_predicted_covariance_counts_noise_far_from_the_mode_without_chance(batch_size):
    """Against least squares in closed form, where noise grows with the spread of the points."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 3))
    y = X @ [1.0, 0.0, -1.0] + 2 * rng.standard_normal(1000)
    sampler = IASG(structure="scalar", batch_size=batch_size)
    one = {"n_chains": 1, "n_draws": 4, "fit_intercept": False, "prior_precision": 1.0}
    model = BLR(sampler, noise_variance=4.0, random_state=0, **one).fit(X, y)
    K = model.states_[0].memory.preconditioner.dense()
    window = model.states_[0].memory.window.length
    Lam, M = theory.lsq_noise(
        X,
        y,
        lambda Lam, M: theory.stationary_cov(Lam, M, K),
        batch_size,
        False,
        4.0,
    )
    expected = theory.iasg_cov(Lam, M, K, window)
    np.testing.assert_allclose(
        model.predicted_covariance(X, y).diagonal(), expected.diagonal(), rtol=0.02
    )


@pytest.mark.parametrize(
    "sampler",
    ["sgd", SGLD(PolynomialDecay(1e-5, 1.0, 0.0)), SGLD(1e-5, clip=("norm", 1e3))],
    ids=["decreasing", "changing", "clipped"],
)
def test_steps_that_decrease_change_or_are_clipped_have_no_stationary_distribution(many, sampler):
    model = BLR(sampler, **SHORT).fit(*many)
    with pytest.raises(ValueError, match="no stationary distribution"):
        model.predicted_covariance(*many)


# -- what a fit leaves behind -----------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted(many):
    return BLR(prior_precision=1.0, random_state=0).fit(*many)


def test_attributes_and_shapes(fitted):
    assert fitted.draws_.shape == (32, 40, 6)
    assert fitted.coef_.shape == fitted.coef_std_.shape == (4,)
    assert fitted.coef_samples_.shape == (32, 40, 4)
    assert fitted.intercept_samples_.shape == fitted.noise_variance_samples_.shape == (32, 40)
    assert isinstance(fitted.intercept_, float)
    assert isinstance(fitted.noise_variance_, float)
    assert fitted.prior_precision_.tolist() == [1, 1, 1, 1, 1e-6]
    np.testing.assert_allclose(np.log(fitted.noise_variance_samples_), fitted.draws_[..., -1])
    assert all(type(value) is float for value in fitted.diagnostics_.values())


def test_given_noise_variance_and_no_intercept(many):
    model = BLR(noise_variance=4.0, fit_intercept=False, **SHORT).fit(*many)
    assert model.draws_.shape == (2, 60, 4)
    assert model.noise_variance_ == 4.0
    assert model.intercept_ == 0.0


def test_predictive_distribution(many, fitted):
    """Mean and standard deviation are those of the mixture over draws."""
    X, _ = many
    mean, std = fitted.predict(X[:50], return_std=True)
    centres = fitted.draws_.reshape(-1, 6)[:, :5] @ np.column_stack([X[:50], np.ones(50)]).T
    np.testing.assert_allclose(mean, centres.mean(axis=0))
    np.testing.assert_allclose(std**2, centres.var(axis=0) + fitted.noise_variance_samples_.mean())
    few = fitted.predict(X[:3], return_std=True)[1]
    np.testing.assert_allclose(few, std[:3], rtol=1e-12)


@pytest.mark.parametrize(("n_rows", "noise_variance"), [(20, None), (20, 4.0), (2000, None)])
def test_intervals_are_quantiles_of_the_mixture_over_draws(n_rows, noise_variance, seed):
    """Within five Monte Carlo errors of the mixture: with the model the interval has no more."""
    X, y = generated(n_rows + 40)
    model = BLR(noise_variance=noise_variance, random_state=seed).fit(X[:n_rows], y[:n_rows])
    draws = model.draws_.reshape(-1, model.draws_.shape[-1])
    centres = draws[:, :5] @ np.column_stack([X[n_rows:], np.ones(40)]).T
    scale = np.sqrt(model.noise_variance_samples_).reshape(-1, 1)
    for end, q in zip(model.predict_interval(X[n_rows:], level=0.8).T, (0.1, 0.9), strict=True):
        below = stats.norm.cdf(end, centres, scale)
        error = below.std(axis=0) / np.sqrt(model.diagnostics_["ess_min"])
        assert (np.abs(below.mean(axis=0) - q) < 5 * error).all()


@pytest.mark.parametrize("shape", [1.5, 30.0])
def test_intervals_are_those_of_students_distribution(many, shape, seed):
    """The closed form, where half a dozen rows leave the noise variance open."""
    X, y = many[0][:6], many[1][:6]
    model = BLR(
        prior_precision=1.0,
        noise_prior=(shape, 2.0),
        n_draws=500,
        intercept_precision=1.0,
        random_state=seed,
    )
    low, high = model.fit(X, y).predict_interval(many[0][:50], level=0.9).T
    A = np.column_stack([X - X.mean(axis=0), np.ones(6)])  # where the intercept has its prior
    precision = A.T @ A + np.eye(5)
    mean = np.linalg.solve(precision, A.T @ y)
    rate = 2.0 + 0.5 * (y @ y - mean @ precision @ mean)
    a = np.column_stack([many[0][:50] - X.mean(axis=0), np.ones(50)])
    width = 1 + np.einsum("ni,in->n", a, np.linalg.solve(precision, a.T))
    distribution = stats.t(2 * shape + 6, a @ mean, np.sqrt(rate / (shape + 3) * width))
    few = 5 / np.sqrt(model.diagnostics_["ess_min"])  # errors of a log scale and of a mean, in sd
    assert (
        np.abs(np.log((high - low) / (distribution.ppf(0.95) - distribution.ppf(0.05)))).max() < few
    )
    assert (np.abs(low + high - 2 * a @ mean) / 2 < few * distribution.std()).all()


def test_coverage_of_new_rows():
    """80 % intervals hold 80 % of rows that were not seen, within five binomial errors."""
    X, y = generated(14_000)
    model = BLR(n_draws=100, random_state=0).fit(X[:8000], y[:8000])
    low, high = model.predict_interval(X[8000:], level=0.8).T
    inside = np.mean((y[8000:] > low) & (y[8000:] < high))
    assert abs(inside - 0.8) < 5 * np.sqrt(0.16 / 6000)


def test_diabetes_next_to_bayesian_ridge():
    X, y = load_diabetes(return_X_y=True)
    ridge = BayesianRidge().fit(X, y)
    model = BLR(prior_precision=ridge.lambda_, noise_variance=1 / ridge.alpha_, random_state=0).fit(
        X, y
    )
    mean, std = model.predict(X, return_std=True)
    expected, expected_std = ridge.predict(X, return_std=True)
    assert np.abs(mean - expected).max() < 0.1 * np.std(y)
    np.testing.assert_allclose(std, expected_std, rtol=0.03)


def test_constant_column_and_constant_target(many):
    X, y = many
    model = BLR(random_state=0, prior_precision=1.0).fit(np.column_stack([X, np.zeros(8000)]), y)
    noise = model.noise_variance_samples_.mean()
    assert model.coef_samples_[..., 4].var() == pytest.approx(
        noise, rel=0.15
    )  # the prior, scaled by the noise
    flat = BLR(**SHORT, prior_precision=1.0).fit(X, np.full(8000, 2.5))
    np.testing.assert_allclose(flat.predict(X[:5]), 2.5, atol=1e-3)
    assert 0 < flat.noise_variance_ < 1e-4


def test_units_of_y_do_not_matter(many):
    X, y = many
    for scale in (1e-4, 1e6):
        model = BLR(random_state=0).fit(X, scale * y)
        assert model.noise_variance_ / scale**2 == pytest.approx(4.0, rel=0.1)


# -- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"noise_variance": 0.0}, "noise_variance must be positive"),
        ({"noise_variance": np.inf}, "noise_variance must be positive"),
        ({"noise_prior": 1.0}, "noise_prior must be a pair"),
        ({"noise_prior": (1.0, -1.0)}, "noise_prior: the rate must be positive"),
        ({"prior_precision": [1.0, 2.0]}, r"one per feature, shape \(4,\)"),
        ({"intercept_precision": 0.0}, "intercept_precision must be positive"),
        ({"sampler": "adam"}, "sampler must be one of"),
        ({"sampler": ConstantSGD("scalar", step_size=1.0)}, "spectral radius"),
    ],
    ids=str,
)
def test_impossible_parameters_are_named(many, parameters, message):
    with pytest.raises(ValueError, match=message):
        BLR(**parameters).fit(*many)


def test_impossible_data_are_named(many):
    X, y = many
    with pytest.raises(ValueError, match="sample_weight is zero for all rows"):
        BLR().fit(X, y, sample_weight=np.zeros(8000))
    with pytest.raises(ValueError, match="products underflow or overflow in float32"):
        BLR().fit(X.astype(np.float32), np.where(np.arange(8000) == 3, 1e39, y))
    with pytest.raises(ValueError, match="level must be below 1"):
        BLR(**SHORT).fit(X, y).predict_interval(X, level=90)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "prior",
    [{"prior": "horseshoe"}, {"prior_groups": "feature"}, {}],
    ids=["horseshoe", "ard", "one"],
)
@pytest.mark.quick("ard", "one")
def test_intervals_under_a_sampled_precision_are_those_of_the_draws(prior, seed):
    """Far from the rows, where a shrunk coefficient makes the predictive distribution skewed."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((18, 5))
    y = 0.6 * X[:, 0] + rng.standard_normal(18)
    model = BLR(random_state=seed, **prior).fit(X, y)
    far = np.array([[8.0, 0, 0, 0, 0], [0, 0, -12.0, 0, 0]])
    centre = model.coef_samples_ @ far.T + model.intercept_samples_[..., None]
    scale = np.sqrt(model.noise_variance_samples_)[..., None]
    ends = model.predict_interval(far, 0.9)
    for end, q in zip(ends.T, (0.05, 0.95), strict=True):
        below = stats.norm.cdf(end, centre, scale)
        some = below.reshape(-1, 2)  # an interval is of 500 of the draws
        assert (np.abs(some.mean(axis=0) - q) < 5 * some.std(axis=0) / np.sqrt(500)).all()
    mean, std = model.predict(far, return_std=True)
    total = np.sqrt(centre.var(axis=(0, 1)) + (scale**2).mean())
    np.testing.assert_allclose(std, total, rtol=1e-6)
    np.testing.assert_allclose(mean, centre.mean(axis=(0, 1)), rtol=1e-6)


@pytest.mark.parametrize("n_features", [12, 30])
def test_intervals_of_as_many_columns_as_rows_are_those_of_the_draws(n_features, seed):
    """Weak precisions leave next to no noise, and spread the coefficients."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((15, n_features)), rng.standard_normal(15)
    model = BLR(random_state=seed).fit(X, y)
    new = rng.standard_normal((20, n_features))
    centre = model.coef_samples_ @ new.T + model.intercept_samples_[..., None]
    scale = np.sqrt(model.noise_variance_samples_)[..., None]
    levels = [0.025, 0.5, 0.975]
    for end, q in zip(model.predict_quantiles(new, levels).T, levels, strict=True):
        below = stats.norm.cdf(end, centre, scale).mean(axis=(0, 1))
        assert np.abs(below - q).max() < 1e-3


@pytest.mark.filterwarnings("ignore")
def test_intervals_under_a_horseshoe_are_skewed():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((18, 5))
    y = 0.6 * X[:, 0] + rng.standard_normal(18)
    model = BLR(prior="horseshoe", random_state=0).fit(X, y)
    far = np.array([[10.0, 0, 0, 0, 0]])
    (low, high), middle = model.predict_interval(far)[0], model.predict(far)[0]
    assert max((high - middle) / (middle - low), (middle - low) / (high - middle)) > 1.15


@pytest.mark.parametrize("n_rows", [14, 27])
@pytest.mark.quick("14")
def test_a_weak_given_precision_is_least_squares_with_its_t_intervals(n_rows, seed):
    """If coefficients took no degrees of freedom, intervals would be .57 times as wide."""
    rng = np.random.default_rng(seed)
    n_features = 2 * n_rows // 3
    X = rng.standard_normal((n_rows, n_features)) + 3.0
    y = 7.0 + X @ (4 * rng.standard_normal(n_features)) + 0.5 * rng.standard_normal(n_rows)
    A = np.column_stack([X, np.ones(n_rows)])
    right, rest, *_ = np.linalg.lstsq(A, y)
    freedom = n_rows - n_features - 1
    error = np.sqrt(rest[0] / freedom * np.linalg.inv(A.T @ A).diagonal())
    weak = {"prior_precision": 1e-9, "intercept_precision": 1e-9, "random_state": seed}
    model = BLR(n_draws=1000, **weak).fit(X, y)
    shape, rate = model.posterior_.noise
    assert 2 * shape == pytest.approx(freedom, rel=1e-4)
    assert 2 * rate == pytest.approx(rest[0] + 2e-6 * y.var(), rel=1e-5)
    np.testing.assert_allclose(model.posterior_.mean, right, rtol=1e-4, atol=1e-4)
    below = stats.t.cdf((model.coef_samples_ - right[:-1]) / error[:-1], freedom)
    for level in (0.025, 0.25, 0.75, 0.975):
        sd = np.sqrt(level * (1 - level) / below[..., 0].size)
        assert (np.abs((below < level).mean(axis=(0, 1)) - level) < 5 * sd).all()
    new = rng.standard_normal((20, n_features)) + 3.0
    a = np.column_stack([new, np.ones(20)])
    width = np.sqrt(rest[0] / freedom * (1 + np.vecdot(a @ np.linalg.inv(A.T @ A), a)))
    expected = a @ right + np.outer(stats.t.ppf([0.05, 0.95], freedom), width)
    few = 5 / np.sqrt(model.draws_[..., 0].size) * width[:, None]
    assert (np.abs(model.predict_interval(new, 0.9) - expected.T) < 2 * few).all()
    stream = BLR(**weak)
    for rows in np.array_split(np.arange(n_rows), 5):
        stream.partial_fit(X[rows], y[rows])
    np.testing.assert_allclose(stream.posterior_.noise, (shape, rate), rtol=1e-3)
    split = BLR(**weak).fit(X[:-5], y[:-5]).partial_fit(X[-5:], y[-5:])
    np.testing.assert_allclose(split.posterior_.noise, (shape, rate), rtol=1e-3)


def test_a_strong_given_precision_keeps_the_degrees_of_freedom_of_all_rows():
    X, y = generated(30)
    shape, _ = BLR(prior_precision=1e9, random_state=0).fit(X, y).posterior_.noise
    assert 2 * shape == pytest.approx(29, abs=1e-3)  # without the intercept's
    shape, _ = BLR(prior_precision=1e-9, noise_prior=(2.0, 1.0)).fit(X, y).posterior_.noise
    assert 2 * shape == pytest.approx(34)


def test_no_row_that_tells_the_noise_is_warned_of():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((8, 12)), rng.standard_normal(8)
    with pytest.warns(UserWarning, match="so weak that coefficients fit all rows"):
        model = BLR(prior_precision=1e-6, random_state=0).fit(X, y)
    assert 2 * model.posterior_.noise[0] == pytest.approx(1, abs=1e-4)


# -- numbers far from zero, and far from one ---------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        BLR(random_state=0),
        BLR(prior_precision=1e-4, random_state=0),
        BayesianRobustRegressor(prior_precision=1.0, **SHORT | {"n_draws": 20}),
    ],
    ids=str,
)
@pytest.mark.parametrize("location", [pytest.param(3e7, marks=pytest.mark.slow), -2e9])
def test_y_far_from_zero_keeps_its_digits_beside_columns_in_single_precision(model, location):
    rng = np.random.default_rng(5)
    X = np.round(rng.standard_normal((150, 3)), 2).astype(np.float32)
    y = location + X @ [0.7, 0.0, -0.4] + 0.3 * rng.standard_normal(150)
    exact = isinstance(model, BLR)
    single, double = clone(model).fit(X, y), clone(model).fit(X.astype(float), y)
    pairs = [(stream(model, X, y), stream(model, X.astype(float), y))]
    if exact:  # else `posterior_` depends on the draws, by which it is found
        pairs.append((single, double))
    for one, other in pairs:
        sd = np.sqrt(other.posterior_.covariance.diagonal())[:4]
        apart = (one.posterior_.mean - other.posterior_.mean)[:4]
        # the mode is found to a few hundredths of a standard deviation
        assert (np.abs(apart) < (1e-3 if exact else 0.05) * sd).all()
        np.testing.assert_allclose(
            np.sqrt(one.posterior_.covariance.diagonal())[:4], sd, rtol=1e-3 if exact else 0.05
        )
    ess = min(single.diagnostics_["ess_min"], double.diagnostics_["ess_min"])
    assert (np.abs(single.coef_ - double.coef_) < 5 * np.sqrt(2 / ess) * double.coef_std_).all()
    apart = np.abs(single.predict(X) - double.predict(X))
    assert (apart < 5 * np.sqrt(2 / ess) * np.sqrt(double.posterior_.covariance.trace())).all()


def stream(model, X, y):
    model = clone(model)
    for rows in np.array_split(np.arange(len(y)), 4):
        model.partial_fit(X[rows], y[rows])
    return model


@pytest.mark.parametrize("dtype", [np.float32, float])
def test_rows_on_disk_keep_the_digits_of_y(dtype, monkeypatch, tmp_path):
    monkeypatch.setattr("skbayes_sg.data.blockwise.bytes_to_keep", lambda: 0)
    rng = np.random.default_rng(6)
    X = np.round(rng.standard_normal((3000, 2)), 2).astype(dtype)
    y = 5e8 + X[:, 0] + 0.5 * rng.standard_normal(3000)
    np.save(tmp_path / "X.npy", X)
    stored = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = BLR(random_state=0).fit(stored, y)
    whole = BLR(random_state=0).fit(X.astype(float), y)
    apart = model.posterior_.mean - whole.posterior_.mean
    assert (np.abs(apart) < 1e-2 * np.sqrt(whole.posterior_.covariance.diagonal())).all()


def test_numbers_whose_products_underflow_are_named():
    X, y = np.random.default_rng(7).standard_normal((2, 40, 2))
    for cls in (BLR, BayesianRobustRegressor):
        with pytest.raises(ValueError, match="y holds numbers that differ"):
            cls().fit(X, y[:, 0] * 1e-165)
        with pytest.raises(ValueError, match="y holds numbers that differ"):
            cls().fit(X.astype(np.float32), y[:, 0] * 1e-39)
        with pytest.raises(ValueError, match=r"X holds numbers .* in column\(s\) 1,"):
            cls().fit(X * [1.0, 1e-90], y[:, 0])
    one, other = (BLR(random_state=0).fit(X, unit * y[:, 0]) for unit in (1.0, 1e-60))
    np.testing.assert_allclose(other.coef_ * 1e60, one.coef_, rtol=1e-6)


def test_one_row_is_enough_for_a_fit_as_for_a_stream():
    with pytest.warns(ConvergenceWarning, match="one value in all rows"):
        model = BLR(random_state=0).fit([[1.0, 2.0]], [3.0])
    assert abs(model.predict([[1.0, 2.0]])[0] - 3) < 0.5
