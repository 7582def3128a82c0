"""Poisson, negative binomial and Gamma regression: their posteriors, and what comes out."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import GammaRegressor, PoissonRegressor
from sklearn.metrics import d2_tweedie_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
)
from skbayes_sg.data import InMemory
from skbayes_sg.estimators import dispersion
from skbayes_sg.models import Gamma, NegativeBinomial, Poisson

EACH = {
    "Poisson": BayesianPoissonRegressor,
    "negative binomial": BayesianNegativeBinomialRegressor,
    "Gamma": BayesianGammaRegressor,
}
REGRESSOR = pytest.mark.parametrize("cls", EACH.values(), ids=EACH)
COEF, INTERCEPT, DISPERSION = np.array([0.5, -0.3, 0.0]), 0.7, 0.4
CERTAIN = 5.0  # Monte Carlo errors


def simulated(cls, n_rows=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 3))
    mu = np.exp(X @ COEF + INTERCEPT)
    varied = rng.gamma(1 / DISPERSION, mu * DISPERSION)
    if cls is BayesianGammaRegressor:
        return X, varied
    return X, rng.poisson(mu if cls is BayesianPoissonRegressor else varied)


def by_importance(model, X, y):
    """Moments of the posterior by importance sampling from Student's t around the draws.

    The prior precision is given. test_generalized_linear.py has the densities beside SciPy's.
    """
    rng, draws = np.random.default_rng(1), model.draws_.reshape(-1, model.draws_.shape[2])
    mean, root = draws.mean(axis=0), np.linalg.cholesky(np.cov(draws.T))
    scale = np.sqrt(5 / rng.chisquare(5, size=(200_000, 1)))
    z = rng.standard_normal((len(scale), len(mean))) * scale
    theta = mean + z @ root.T
    family = {
        BayesianPoissonRegressor: Poisson,
        BayesianGammaRegressor: Gamma,
        BayesianNegativeBinomialRegressor: NegativeBinomial,
    }[type(model)](X.shape[1])
    target = np.concatenate(
        [family.log_likelihood(part, X, y).sum(axis=1) for part in np.array_split(theta, 100)]
    )
    precision = np.array([1.0, 1.0, 1.0, 0.01, 1.5**-2])[: len(mean)]
    centre = np.array([0.0, 0.0, 0.0, 0.0, -1.0])[: len(mean)]
    target -= 0.5 * ((theta - centre) ** 2) @ precision
    proposal = -0.5 * (5 + len(mean)) * np.log1p((z**2).sum(axis=1) / 5)
    weight = np.exp(target - proposal - (target - proposal).max())
    weight /= weight.sum()
    assert 1 / (weight**2).sum() > 20_000  # effective draws
    moment = weight @ theta
    return moment, np.sqrt(weight @ (theta - moment) ** 2)


@REGRESSOR
@pytest.mark.quick("Gamma")
def test_moments_are_those_of_the_posterior(cls, seed):
    X, y = simulated(cls, 60, seed)
    model = cls(prior_precision=1.0, random_state=seed).fit(X, y)
    mean, sd = by_importance(model, X, y)
    draws = model.draws_.reshape(-1, len(mean))
    error = CERTAIN / np.sqrt(model.diagnostics_["ess_min"])
    assert (np.abs(draws.mean(axis=0) - mean) < (error + 0.02) * sd).all()
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=error + 0.02)


@REGRESSOR
@pytest.mark.quick("Poisson", "Gamma")
def test_the_truth_is_in_the_posterior_of_many_rows(cls, seed):
    X, y = simulated(cls, 800, seed)
    model = cls(random_state=seed).fit(X, y)
    assert (np.abs(model.coef_ - COEF) < CERTAIN * model.coef_std_).all()
    assert abs(model.intercept_ - INTERCEPT) < CERTAIN * model.intercept_samples_.std()
    if cls is not BayesianPoissonRegressor:
        assert abs(model.dispersion_ - DISPERSION) < CERTAIN * model.dispersion_samples_.std()
    new = simulated(cls, 100, seed + 1)
    ends = model.predict_interval(new[0], 0.8)
    inside = ((ends[:, 0] <= new[1]) & (new[1] <= ends[:, 1])).mean()
    assert inside > 0.8 - CERTAIN * np.sqrt(0.16 / 100)
    if cls is BayesianGammaRegressor:
        assert inside < 0.8 + CERTAIN * np.sqrt(0.16 / 100)


@REGRESSOR
@pytest.mark.quick("Poisson")
def test_equal_numbers_leave_no_deviance_to_explain(cls):
    """As of R^2 the score is 0: a fold of rare counts may be all zeros."""
    X, y = simulated(cls, 60)
    model = cls(n_draws=20, random_state=0).fit(X, y)
    assert model.score(X, np.full(60, 2)) == 0
    assert model.score(X, np.append(np.full(59, 2), 5), np.append(np.ones(59), 0)) == 0
    with pytest.raises(ValueError, match=r"positive|negative"):
        model.score(X, np.full(60, -1))


@pytest.mark.parametrize(
    ("cls", "twin", "power"),
    [(BayesianPoissonRegressor, PoissonRegressor, 1), (BayesianGammaRegressor, GammaRegressor, 2)],
)
def test_under_a_weak_prior_of_many_rows_it_is_the_twin(cls, twin, power):
    X, y = simulated(cls, 1000)
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    model = cls(random_state=0).fit(X, y, sample_weight=weight)
    other = twin(alpha=0).fit(X, y, sample_weight=weight)
    assert (np.abs(model.coef_ - other.coef_) < 0.2 * model.coef_std_).all()
    expected = d2_tweedie_score(y, model.predict(X), sample_weight=weight, power=power)
    assert model.score(X, y, weight) == pytest.approx(expected)


@REGRESSOR
@pytest.mark.quick("Poisson")
def test_streams_end_where_all_rows_do(cls):
    X, y = simulated(cls, 1000)
    stream = cls(prior_precision=1.0, random_state=0)
    for rows in np.array_split(np.arange(1000), 20):
        stream.partial_fit(X[rows], y[rows])
    whole = cls(prior_precision=1.0, random_state=0).fit(X, y)
    assert (np.abs(stream.coef_ - whole.coef_) < 0.15 * whole.coef_std_).all()
    np.testing.assert_allclose(stream.coef_std_, whole.coef_std_, rtol=0.08)


@REGRESSOR
@pytest.mark.quick("Poisson")
def test_the_unit_of_columns_does_not_matter(cls):
    X, y = simulated(cls, 200)
    one = cls(random_state=0).fit(X, y)
    moved = X * [1000.0, 0.01, 1.0] + [1e4, 5.0, -3.0]
    other = cls(random_state=0).fit(moved, y)
    error = CERTAIN * np.sqrt(2 / one.diagnostics_["ess_min"]) * one.coef_std_
    assert (np.abs(other.coef_ * [1000.0, 0.01, 1.0] - one.coef_) < error).all()
    np.testing.assert_allclose(other.coef_std_ * [1000.0, 0.01, 1.0], one.coef_std_, rtol=0.1)
    assert (np.abs(other.predict(moved) / one.predict(X) - 1) < 2 * error.sum()).all()


def test_a_pipeline_of_factors_has_ratios_of_rates():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"city": rng.choice(list("abc"), 900), "age": rng.normal(40, 10, 900)})
    rate = np.exp(0.02 * (frame["age"] - 40) + 0.7 * (frame["city"] == "b"))
    y = rng.poisson(rate)
    encoder = OneHotEncoder(sparse_output=False)
    columns = make_column_transformer((encoder, ["city"]), remainder="passthrough")
    columns.set_output(transform="pandas")
    model = BayesianPoissonRegressor(prior_groups="prefix", random_state=0)
    pipeline = make_pipeline(columns, model).fit(frame, y)
    table = pipeline[-1].summary()
    assert list(table.columns[4:7]) == ["rate_ratio", "rate_ratio_eti95_lb", "rate_ratio_eti95_ub"]
    ratio = table["rate_ratio"]
    assert 1.01 < ratio["remainder__age"] < 1.03
    assert ratio["onehotencoder__city_b"] / ratio["onehotencoder__city_a"] > 1.5


@REGRESSOR
def test_predictions_are_averages_over_draws(cls):
    X, y = simulated(cls, 100)
    model = cls(random_state=0).fit(X, y)
    outputs = model.model_.outputs(model.draws_.reshape(-1, model.draws_.shape[2]), X[:5])
    mean, std = model.predict(X[:5], return_std=True)
    each = model.model_.mean(outputs)
    # a few of them stand for all
    assert (np.abs(mean - each.mean(axis=0)) < 0.02 * each.std(axis=0)).all()
    variance = model.model_.variance(outputs).mean(axis=0) + each.var(axis=0)
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=0.005)
    draws = model.model_.draw(np.repeat(outputs, 5, axis=0), np.random.default_rng(0))
    ends = model.predict_interval(X[:5], 0.9)
    below = (draws < ends[:, :1].T).mean(axis=0)
    above = (draws > ends[:, 1:].T).mean(axis=0)
    assert (below < 0.05 + 0.01).all()
    assert (above < 0.05 + 0.01).all()


@pytest.mark.parametrize(
    ("cls", "wrong", "said"),
    [
        (BayesianPoissonRegressor, -1.0, "negative numbers, which are no counts"),
        (BayesianNegativeBinomialRegressor, -0.1, "negative numbers, which are no counts"),
        (BayesianGammaRegressor, 0.0, "not positive, which no Gamma variable is"),
    ],
)
def test_impossible_numbers_are_refused(cls, wrong, said):
    X, y = simulated(cls, 50)
    y = y.astype(float)
    y[7] = wrong
    for fit in (cls().fit, cls().partial_fit):
        with pytest.raises(ValueError, match=said):
            fit(X, y)


def test_counts_that_vary_more_than_those_of_poisson_are_told(seed):
    X, y = simulated(BayesianPoissonRegressor, 300, seed)
    model = BayesianPoissonRegressor(random_state=0).fit(X, y)
    assert model.diagnostics_["dispersion"] == pytest.approx(1, abs=CERTAIN * np.sqrt(3 / 300))
    X, y = simulated(BayesianNegativeBinomialRegressor, 300, seed)
    with pytest.warns(ConvergenceWarning, match="take BayesianNegativeBinomialRegressor"):
        BayesianPoissonRegressor(random_state=0).fit(X, y)


def test_numbers_that_are_no_counts_are_told():
    X, y = simulated(BayesianPoissonRegressor, 50)
    with pytest.warns(ConvergenceWarning, match="fractions, which no counts have"):
        BayesianPoissonRegressor(random_state=0).fit(X, y + 0.5)


@pytest.mark.parametrize("kind", [BayesianNegativeBinomialRegressor, BayesianGammaRegressor])
def test_a_dispersion_has_no_ratio_of_rates(kind):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((60, 2))
    table = kind(n_draws=50, random_state=0).fit(X, rng.poisson(3, 60) + 1.0).summary()
    ratios = table.filter(like="rate_ratio")
    assert ratios.shape == (4, 3)
    assert ratios.loc["dispersion"].isna().all()
    terms = ["x0", "x1", "intercept"]
    assert (ratios.loc[terms] > 0).all(axis=None)
    ends = np.exp(table.loc[terms, ["eti95_lb", "eti95_ub"]])
    np.testing.assert_allclose(ratios.loc[terms].iloc[:, 1:], ends)
    assert table.drop(columns=ratios.columns).loc["dispersion"].notna().all()


@pytest.mark.parametrize("prior", [None, "horseshoe"])
@pytest.mark.quick("None")
def test_the_dispersion_has_no_need_of_more_rows_than_columns(prior, seed):
    """It was the sum of all squared residuals there, and each fit warned of 15 to 35."""
    rng = np.random.default_rng([9, seed])
    X = rng.standard_normal((40, 80))
    mean = np.exp(0.5 + X[:, 0])
    model = BayesianPoissonRegressor(prior=prior, random_state=0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X, rng.poisson(mean))
    assert not any("dispersion is" in str(one.message) for one in said)
    with pytest.warns(ConvergenceWarning, match="dispersion is"):
        model.fit(X[:, :5], rng.poisson(mean * rng.gamma(0.1, 10.0, 40)))


# -- exposures --------------------------------------------------------------------------------


def rates(n_rows, exposure, seed, extra=1.0):
    """Counts over exposures; `extra` times as dispersed as Poisson's."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 3))
    mean = exposure * np.exp(X @ COEF + INTERCEPT)
    return X, extra * rng.poisson(mean / extra) / exposure


def pearson(model, X, y, weight):
    """As a textbook has it, of the counts; effective parameters are those of 256 of the draws."""
    kept = weight > 0
    count = (y * weight)[kept]

    def squares(eta):
        mean = weight[kept] * np.exp(eta)
        return ((count - mean) ** 2 / mean).sum(axis=-1)

    coef, intercept = model.coef_samples_[..., None], model.intercept_samples_[..., None]
    at_mean = squares(X[kept] @ model.coef_ + model.intercept_)
    at_draws = squares((X[kept] @ coef)[..., 0] + intercept)
    freedom = kept.sum() - (at_draws.mean() - at_mean)
    error = at_draws.std() / np.sqrt(256)
    return pytest.approx(at_mean / freedom, rel=CERTAIN * error / freedom)


def test_rates_have_the_dispersion_of_their_counts_if_exposure_tells_them(seed):
    """A weight is a repetition: of a rate it cannot tell from how large a count it is."""
    exposure = np.random.default_rng(seed).choice([0.21, 0.43, 5.3], 300)
    X, y = rates(300, exposure, seed)
    model = BayesianPoissonRegressor(random_state=0)
    for call in (model.fit, clone(model).partial_fit):
        with pytest.warns(ConvergenceWarning, match="give the counts as y, and exposure"):
            call(X, y, sample_weight=exposure)
    assert np.isnan(model.diagnostics_["dispersion"])
    of_rates = model.coef_
    model.fit(X, np.rint(y * exposure), exposure=exposure)
    assert model.diagnostics_["dispersion"] == pytest.approx(1, abs=CERTAIN * np.sqrt(5 / 300))
    assert np.abs(model.coef_ - of_rates).max() < 0.2 * model.coef_std_.min()  # one posterior


def test_fractions_that_are_merged_have_no_weights():
    """Amounts of which some are equal: their dispersion is about the mean, as of any numbers."""
    X = np.repeat(np.eye(3), 40, axis=0)
    y = np.tile([0.5, 1.0, 2.5, 4.0], 30)
    with pytest.warns(ConvergenceWarning, match="fractions, which no counts have"):
        model = BayesianPoissonRegressor(prior_precision=1.0, random_state=0).fit(X, y)
    assert model.diagnostics_["dispersion"] == pearson(model, X, y, np.ones(120))


@pytest.mark.parametrize("exposed", [False, True])
def test_the_dispersion_of_weighted_counts_is_that_of_repeated_rows(exposed, seed):
    rng = np.random.default_rng(seed)
    X, times = rng.standard_normal((150, 3)), rng.integers(1, 4, 150)
    exposure = rng.uniform(0.5, 2.0, 150)
    y = rng.poisson(exposure * np.exp(X @ COEF + INTERCEPT))
    known = {"exposure": exposure} if exposed else {}
    again = {name: np.repeat(each, times) for name, each in known.items()}
    model = BayesianPoissonRegressor(random_state=0)
    weighted = clone(model).fit(X, y, sample_weight=times.astype(float), **known)
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(y, times), **again)
    found = weighted.diagnostics_["dispersion"]
    assert found == pytest.approx(repeated.diagnostics_["dispersion"], rel=1e-6)
    assert found == pytest.approx(1, abs=CERTAIN * np.sqrt(3 * 14 / 6 / 150))  # E w^2 / E w


def test_rows_that_are_merged_keep_their_degrees_of_freedom(seed):
    """Of factors alone, where hundreds of rows are equal, and counts are few."""
    rng = np.random.default_rng(seed)
    X = np.eye(3)[rng.integers(0, 3, 800)]
    y, one = rng.poisson(0.05, 800), np.ones(800)
    model = BayesianPoissonRegressor(prior_precision=1.0, random_state=0).fit(X, y)
    assert model.diagnostics_["dispersion"] == pearson(model, X, y, one)


def test_a_negative_binomial_variable_is_whole():
    X, y = simulated(BayesianNegativeBinomialRegressor, 60)
    model = BayesianNegativeBinomialRegressor(random_state=0)
    for method in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match="give the count as y, and exposure"):
            method(X, y / 3, sample_weight=np.full(60, 3.0))
    with pytest.warns(ConvergenceWarning, match="give the count as y, and exposure"):
        model.fit(X, 4 * y, sample_weight=np.full(60, 0.25))  # rates that are whole


def test_fractions_are_told_in_a_stream_as_in_a_fit():
    X, y = simulated(BayesianPoissonRegressor, 40)
    with pytest.warns(ConvergenceWarning, match="fractions, which no counts have"):
        BayesianPoissonRegressor().partial_fit(X, y + 0.25)


@pytest.mark.parametrize("kind", ["mean", "observation"])
def test_intervals_hold_the_draws_of_all_chains(kind):
    """Where half of the chains say that y is e^3 times as much, its upper quantile is too."""
    model = BayesianGammaRegressor(n_chains=8, n_draws=250, random_state=0)
    X, y = simulated(BayesianGammaRegressor, 200)
    model.fit(X, y)
    before = model.predict_interval(X[:5], 0.5, kind=kind)
    own = model.model_.unpack(np.arange(model.draws_.shape[2]))["intercept"].ravel()
    model.draws_[4:, :, own] += 3.0
    after = model.predict_interval(X[:5], 0.5, kind=kind)
    assert (after[:, 1] > 5 * before[:, 1]).all()
    assert (after[:, 0] < 3 * before[:, 0]).all()


def test_the_dispersion_of_a_sample_lacks_its_share_of_the_degrees_of_freedom():
    """20 coefficients take 20 degrees from all rows, and two from a tenth of them."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((400, 19))
    y = rng.poisson(5.0, 400).astype(float)
    model = BayesianPoissonRegressor(prior_precision=1e-3, random_state=0).fit(X, y)
    rows = InMemory.of(X, y)
    freedom = {more: 1 / dispersion.pearson(model, rows, more)[0] for more in (1.0, 10.0, 1e9)}
    lost = freedom[1e9] - freedom[1.0]
    assert lost > 0
    assert freedom[1e9] - freedom[10.0] == pytest.approx(0.1 * lost, rel=1e-6)
    assert 400 * lost / freedom[1e9] == pytest.approx(20, rel=0.3)
