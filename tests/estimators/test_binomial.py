"""Regression of successes out of trials: its posterior, and what comes out."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from scipy.special import expit, logit, xlogy
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import (
    BayesianBinomialRegressor,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
    CoefficientsDisplay,
)
from skbayes_sg.estimators import dispersion
from skbayes_sg.inspection import (
    average_effects,
    contrast,
    prediction_summary,
    prior_sensitivity,
    sandwich_summary,
    totals,
)

SHORT = {"n_chains": 4, "n_draws": 60, "random_state": 0, "prior_precision": 1.0}
EACH = pytest.mark.parametrize("overdispersed", [False, True])
COEF = np.array([0.6, -0.4, 0.0])


def simulated(n_rows, correlation=0.0, most=30, seed=0):
    rng = np.random.default_rng(seed)
    X, trials = rng.standard_normal((n_rows, 3)), rng.integers(1, most, n_rows)
    p = expit(X @ COEF - 0.5)
    if correlation:
        s = 1 / correlation - 1
        p = rng.beta(s * p, s * (1 - p))
    return X, rng.binomial(trials, p), trials


def y_of_poisson(X):
    return np.random.default_rng(0).poisson(1.0, len(X))


def row_by_row(X, y, trials):
    """A row for each trial, of classes 0 and 1."""
    single = np.concatenate([np.repeat(X, y, axis=0), np.repeat(X, trials - y, axis=0)])
    return single, np.repeat([1, 0], [y.sum(), (trials - y).sum()])


@pytest.fixture(scope="module")
def fits():
    X, y, trials = simulated(150, 0.2)
    each = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of the plain model's dispersion
        for overdispersed in (False, True):
            model = BayesianBinomialRegressor(overdispersed=overdispersed, random_state=0)
            each[overdispersed] = model.fit(X, y, trials=trials)
    return each


# -- the posterior --------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", ["learned", 1.0])
def test_the_posterior_is_that_of_logistic_regression_row_by_row(prior, seed):
    X, y, trials = simulated(120, seed=seed)
    how = {"prior_precision": prior, "random_state": seed}
    ours = BayesianBinomialRegressor(**how).fit(X, y, trials=trials)
    theirs = BayesianLogisticRegression(**how).fit(*row_by_row(X, y, trials))
    sd = theirs.coef_std_[0]
    error = sd * np.sqrt(sum(1 / one.diagnostics_["ess_min"] for one in (ours, theirs)))
    # a learned prior is in units of the columns, and those of rows and of trials are not the same
    more = 0.1 * sd if prior == "learned" else 0.0
    assert (np.abs(ours.coef_ - theirs.coef_[0]) < 5 * error + more).all()
    np.testing.assert_allclose(ours.coef_std_, sd, rtol=0.15)
    np.testing.assert_allclose(ours.predict(X), theirs.predict_proba(X)[:, 1], atol=0.01)


def test_a_row_of_weight_two_is_two_rows_and_merged_rows_stay_apart_by_trials():
    X, y, trials = simulated(40)
    twice = BayesianBinomialRegressor(**SHORT)
    twice.fit(np.tile(X, (2, 1)), np.tile(y, 2), trials=np.tile(trials, 2))
    weighted = BayesianBinomialRegressor(**SHORT).fit(X, y, np.full(40, 2.0), trials=trials)
    np.testing.assert_allclose(twice.coef_, weighted.coef_, rtol=1e-9)
    same = np.zeros((4, 1))  # rows that differ in their trials alone
    with pytest.warns(ConvergenceWarning, match="dispersion"):
        model = BayesianBinomialRegressor(**SHORT).fit(same, [2, 2, 2, 2], trials=[2, 4, 8, 90])
    assert model.predict(same[:1])[0] == pytest.approx(8 / 104, abs=0.02)


def quadrature(log_density, *grids):
    """Means and standard deviations on a grid of each parameter."""
    mesh = np.meshgrid(*grids, indexing="ij")
    log_p = log_density(*mesh)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    means = [np.sum(p * one) for one in mesh]
    pairs = zip(mesh, means, strict=True)
    return np.array(means), np.sqrt([np.sum(p * (one - mean) ** 2) for one, mean in pairs])


def test_an_intercept_alone_has_the_posterior_of_a_share(seed):
    y, trials = np.array([3, 0, 7, 1]), np.array([11, 4, 20, 9])
    model = BayesianBinomialRegressor(prior_precision=1.0, random_state=seed)
    model.fit(np.zeros((4, 1)), y, trials=trials)
    k, n = y.sum(), trials.sum()

    def log_density(eta):
        beta = stats.beta(k, n - k).logpdf(expit(eta)) + np.log(expit(eta) * expit(-eta))
        return beta + stats.norm(0, 10).logpdf(eta)

    mean, sd = quadrature(log_density, np.linspace(-4, 3, 4001))
    draws = model.intercept_samples_.ravel()
    ess = model.diagnostics_["ess_min"]
    assert abs(draws.mean() - mean[0]) < 5 * sd[0] / np.sqrt(ess)
    assert draws.std() == pytest.approx(sd[0], rel=5 / np.sqrt(2 * ess))


def test_the_correlation_has_the_posterior_of_quadrature(seed):
    rng = np.random.default_rng(1)
    trials = rng.integers(2, 30, 60)
    y = rng.binomial(trials, rng.beta(1.2, 2.4, 60))
    model = BayesianBinomialRegressor(prior_precision=1.0, overdispersed=True, random_state=seed)
    model.fit(np.zeros((60, 1)), y, trials=trials)

    def log_density(eta, a):
        s = np.exp(-a)
        rows = (
            stats.betabinom(n, s * expit(eta), s * expit(-eta)).logpmf(k)
            for k, n in zip(y, trials, strict=True)
        )
        return sum(rows) + stats.norm(0, 10).logpdf(eta) + stats.norm(-3, 2).logpdf(a)

    mean, sd = quadrature(log_density, np.linspace(-1.8, 0.8, 61), np.linspace(-4, 1.0, 61))
    draws = np.stack([model.intercept_samples_, logit(model.correlation_samples_)], -1)
    draws, ess = draws.reshape(-1, 2), model.diagnostics_["ess_min"]
    assert (np.abs(draws.mean(axis=0) - mean) < 5 * sd / np.sqrt(ess)).all()
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=5 / np.sqrt(2 * ess))
    assert model.correlation_ == pytest.approx(model.correlation_samples_.mean(), rel=1e-6)


@pytest.mark.parametrize("n_sets", [4, 40])
@EACH
@pytest.mark.quick("False-4")
def test_intervals_hold_the_truth_as_often_as_they_say(overdispersed, n_sets):
    """Of three coefficients and 24 new rows of each data set."""
    hits, within = 0, 0
    for seed in range(n_sets):
        X, y, trials = simulated(120, 0.15 * overdispersed, seed=seed)
        model = BayesianBinomialRegressor(overdispersed=overdispersed, random_state=seed)
        model.fit(X[:96], y[:96], trials=trials[:96])
        low, high = np.quantile(model.coef_samples_.reshape(-1, 3), [0.1, 0.9], axis=0)
        hits += ((low <= COEF) & (high >= COEF)).sum()
        ends = model.predict_interval(X[96:], 0.8, trials=trials[96:]).T
        within += ((ends[0] <= y[96:]) & (y[96:] <= ends[1])).sum()
    assert abs(hits / (3 * n_sets) - 0.8) < 4 * np.sqrt(0.16 / (3 * n_sets))
    share = within / (24 * n_sets)
    assert share > 0.8 - 4 * np.sqrt(0.16 / (24 * n_sets))  # at least: counts are whole
    assert share < 0.98


# -- what else is known of rows -------------------------------------------------------------------


@EACH
def test_one_number_of_trials_is_that_of_all_rows(overdispersed):
    X, y, _ = simulated(50, most=5)
    model = BayesianBinomialRegressor(overdispersed=overdispersed, **SHORT)
    one = clone(model).fit(X, y, trials=6)
    each = clone(model).fit(X, y, trials=np.full(50, 6))
    np.testing.assert_array_equal(one.draws_, each.draws_)


@EACH
@pytest.mark.quick("False")
def test_an_offset_is_a_known_part_of_the_logit(overdispersed):
    X, y, trials = simulated(300, 0.1 * overdispersed)
    model = BayesianBinomialRegressor(overdispersed=overdispersed, random_state=0)
    full = clone(model).fit(X, y, trials=trials)
    offset = 0.6 * X[:, 0]
    part = clone(model).fit(X, y, offset=offset, trials=trials)
    shift = full.coef_ - part.coef_ - [0.6, 0.0, 0.0]
    assert (np.abs(shift) < 0.3 * full.coef_std_).all()
    np.testing.assert_allclose(part.predict(X, offset=offset), full.predict(X), atol=0.02)
    count = part.predict(X, offset=offset, trials=trials)
    np.testing.assert_allclose(count, trials * part.predict(X, offset=offset), rtol=1e-12)
    for ask in (
        lambda: part.predict(X),
        lambda: part.predict(X, trials=trials),
        lambda: part.predict_draws(X, trials=3),
        lambda: part.score(X, y, trials=trials),
    ):
        with pytest.raises(ValueError, match="was fitted with an offset"):
            ask()


@EACH
@pytest.mark.parametrize("kind", ["sparse", "float32", "disk", "dask", "frame"])
@pytest.mark.quick("False", "disk-True")
def test_rows_may_be_anywhere(overdispersed, kind, tmp_path):
    X, y, trials = simulated(80, 0.1 * overdispersed)
    X = np.round(X, 1)  # the same in single precision as in double
    model = BayesianBinomialRegressor(overdispersed=overdispersed, **SHORT)
    known = clone(model).fit(X, y, trials=trials)
    rows, given, sizes = X, y, trials
    if kind == "sparse":
        rows = sparse.csr_array(X)
    elif kind == "float32":
        rows = X.astype(np.float32)
    elif kind == "frame":
        rows, given, sizes = pd.DataFrame(X, columns=list("abc")), pd.Series(y), pd.Series(trials)
    elif kind == "dask":
        da = pytest.importorskip("dask.array")
        rows, given, sizes = (da.from_array(each, chunks=25) for each in (X, y, trials))
    else:
        rows = np.lib.format.open_memmap(tmp_path / "rows.npy", "w+", X.dtype, X.shape)
        rows[:] = X
    with config_context(working_memory=1e-3 if kind == "disk" else None):
        found = clone(model).fit(rows, given, trials=sizes)
        share, count = found.predict(rows), found.predict(rows, trials=sizes)
        ends = found.predict_interval(rows, trials=sizes)
        score = found.score(rows, given, trials=sizes)
    np.testing.assert_allclose(found.coef_, known.coef_, atol=0.3 * known.coef_std_.min())
    np.testing.assert_allclose(share, known.predict(X), atol=0.05)
    np.testing.assert_allclose(count, trials * np.asarray(share), rtol=1e-5)
    assert np.asarray(ends).shape == (80, 2)
    assert score == pytest.approx(known.score(X, y, trials=trials), abs=0.05)


def test_what_is_wrong_with_rows_elsewhere_is_said():
    da = pytest.importorskip("dask.array")
    X, y, trials = simulated(60)
    rows = da.from_array(X, chunks=20)
    for sizes, words in (
        (np.where(np.arange(60) == 47, 0, trials), "whole numbers from 1 on"),
        (np.where(np.arange(60) == 47, 0.5, trials), "whole numbers from 1 on"),
        (np.maximum(y - 1, 1), "y is larger than trials"),
    ):
        given = da.from_array(y, chunks=20), da.from_array(sizes, chunks=20)
        with pytest.raises(ValueError, match=words):
            BayesianBinomialRegressor(**SHORT).fit(rows, given[0], trials=given[1])
    one = BayesianBinomialRegressor(**SHORT)
    with pytest.warns(ConvergenceWarning, match="dispersion"):
        one.fit(rows, y, trials=trials.max())
    assert one.n_samples_seen_ == 60


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of sorted rows
@EACH
@pytest.mark.quick("False")
def test_a_stream_is_its_fit_in_any_order(overdispersed):
    X, y, trials = simulated(300, 0.15 * overdispersed)
    how = {"prior_precision": 1.0, "random_state": 0, "overdispersed": overdispersed}
    fit = BayesianBinomialRegressor(**how).fit(X, y, trials=trials)
    streams = []
    for order in (np.arange(300), np.argsort(y / trials)):
        stream = BayesianBinomialRegressor(**how)
        for rows in np.array_split(order, 7):
            stream.partial_fit(X[rows], y[rows], trials=trials[rows])
        streams.append(stream)
        np.testing.assert_allclose(stream.coef_, fit.coef_, atol=0.2 * fit.coef_std_.min())
        np.testing.assert_allclose(stream.coef_std_, fit.coef_std_, rtol=0.1)
    same = 1e-3 * fit.coef_std_.min()
    np.testing.assert_allclose(streams[0].coef_, streams[1].coef_, atol=same)
    loss, mean, sd = streams[0].log_loss_path_[2:].T  # after hundred rows
    assert (np.abs(loss - mean) < 4 * sd).all()


@EACH
@pytest.mark.quick("False")
def test_a_stream_that_folds_its_rows_has_the_posterior_of_all(overdispersed, monkeypatch):
    X, y, trials = simulated(600, 0.15 * overdispersed)
    how = {"prior_precision": 1.0, "random_state": 0, "overdispersed": overdispersed}
    fit = BayesianBinomialRegressor(**how).fit(X, y, trials=trials)
    stream = BayesianBinomialRegressor(**how)
    with config_context(working_memory=0.05):  # 3 kB of rows
        for rows in np.array_split(np.arange(600), 12):
            stream.partial_fit(X[rows], y[rows], trials=trials[rows])
        np.testing.assert_allclose(stream.coef_, fit.coef_, atol=0.4 * fit.coef_std_.min())
    assert "folded_shift" in stream.diagnostics_


def test_it_goes_on_from_files_and_compact_copies(fits):
    X, _, _ = simulated(20, seed=5)
    for model in fits.values():
        twin, small = pickle.loads(pickle.dumps(model)), model.compact()
        np.testing.assert_array_equal(twin.predict(X), model.predict(X))
        np.testing.assert_allclose(small.predict(X), model.predict(X), rtol=1e-5)
        np.testing.assert_array_equal(
            twin.predict_interval(X, trials=9), model.predict_interval(X, trials=9)
        )


def test_the_posterior_is_a_prior_of_the_same_family_alone(fits):
    X, y, trials = simulated(50, seed=7)
    after = BayesianBinomialRegressor(prior=fits[False].posterior_, random_state=0)
    after.fit(X, y, trials=trials)
    assert (after.coef_std_ < fits[False].coef_std_).all()
    with pytest.raises(ValueError, match="BetaBinomial"):
        clone(after).set_params(overdispersed=True).fit(X, y, trials=trials)


def test_trials_are_routed_through_cross_validation():
    X, y, trials = simulated(90)
    with config_context(enable_metadata_routing=True):
        model = BayesianBinomialRegressor(**SHORT)
        model.set_fit_request(trials=True).set_score_request(trials=True)
        pipeline = make_pipeline(StandardScaler(), model)
        found = cross_validate(pipeline, X, y, cv=3, params={"trials": trials})
    assert (found["test_score"] > 0.1).all()


# -- predictions ----------------------------------------------------------------------------------


@EACH
def test_predictions_are_those_of_draws(fits, overdispersed):
    model, (X, _, _) = fits[overdispersed], simulated(3, seed=9)
    trials = np.array([1, 12, 300])
    share = model.predict_draws(X, "mean")
    # a few draws stand for all in averages
    assert (np.abs(model.predict(X) - share.mean(axis=0)) < 0.02 * share.std(axis=0)).all()
    np.testing.assert_allclose(
        model.predict_draws(X, "mean", trials=trials), trials * share, rtol=1e-9
    )
    rng = np.random.default_rng(0)
    each = [model.predict_draws(X, random_state=rng, trials=trials) for _ in range(20)]
    each = np.concatenate(each)
    assert (each == np.rint(each)).all()
    assert ((each >= 0) & (each <= trials)).all()
    mean, sd = model.predict(X, return_std=True, trials=trials)
    np.testing.assert_allclose(mean, trials * model.predict(X), rtol=1e-9)
    assert (np.abs(each.mean(axis=0) - mean) < 5 * sd / np.sqrt(len(share))).all()
    np.testing.assert_allclose(each.std(axis=0), sd, rtol=0.03)
    levels = np.array([0.1, 0.5, 0.9])
    for level, quantile in zip(
        levels, model.predict_quantiles(X, levels, trials=trials).T, strict=True
    ):
        assert ((each <= quantile).mean(axis=0) > level - 0.02).all()
        assert ((each <= quantile - 1).mean(axis=0) < level + 0.02).all()
    wanted = np.quantile(share, [0.05, 0.95], axis=0).T
    np.testing.assert_allclose(model.predict_interval(X, 0.9, kind="mean"), wanted, atol=2e-3)


@EACH
def test_totals_and_summaries_are_those_of_draws(fits, overdispersed):
    model, (X, _, trials) = fits[overdispersed], simulated(30, seed=9)
    sums = model.predict_draws(X, trials=trials).sum(axis=1)
    table = totals(model, X, trials=trials)
    assert table["mean"].iloc[0] == pytest.approx(sums.mean(), rel=0.02)
    assert table["sd"].iloc[0] == pytest.approx(sums.std(), rel=0.1)
    shares = totals(model, X, kind="mean")["mean"].iloc[0]
    assert shares == pytest.approx(model.predict(X).sum(), rel=1e-3)
    table = prediction_summary(model, X)
    assert "obs_eti95_lb" not in table
    np.testing.assert_allclose(table["mean"], model.predict(X), rtol=2e-3)
    table = prediction_summary(model, X, trials=trials)
    np.testing.assert_allclose(table["mean"], trials * model.predict(X), rtol=2e-3)
    ends = model.predict_interval(X, trials=trials)
    np.testing.assert_array_equal(table[["obs_eti95_lb", "obs_eti95_ub"]], ends)
    plain = BayesianPoissonRegressor(**SHORT).fit(X, y_of_poisson(X))
    for function in (totals, prediction_summary):
        with pytest.raises(ValueError, match="trials: BayesianPoissonRegressor takes none"):
            function(plain, X, trials=trials)
    with pytest.raises(ValueError, match="exposure: BayesianBinomialRegressor takes none"):
        totals(model, X, exposure=2.0, trials=trials)


@EACH
def test_effects_are_on_the_share(fits, overdispersed):
    model, (X, _, _) = fits[overdispersed], simulated(150)
    effects = average_effects(model, X, n_draws=None)
    assert effects.attrs["quantity"] == "share"
    coef, intercept = model.coef_samples_.reshape(-1, 3), model.intercept_samples_.ravel()
    p = expit(X @ coef.T + intercept)
    wanted = ((p * (1 - p)).mean(axis=0)[:, None] * coef).mean(axis=0)
    np.testing.assert_allclose(effects["mean"], wanted, rtol=1e-3, atol=1e-6)
    a, b = X.copy(), X.copy()
    a[:, 0], b[:, 0] = 1.0, 0.0
    high, low = (expit(one @ coef.T + intercept).mean(axis=0) for one in (a, b))
    for kind, each in {
        "difference": high - low,
        "ratio": high / low,
        "odds_ratio": high / (1 - high) * (1 - low) / low,
    }.items():
        table = contrast(model, a, b, scale=kind, n_draws=None)
        assert table["mean"].iloc[0] == pytest.approx(each.mean(), rel=1e-6)
    assert table.attrs["quantity"] == "odds ratio"


def test_tables_and_displays_have_odds_ratios(fits):
    table = fits[True].summary()
    np.testing.assert_allclose(table["odds_ratio"].iloc[:3], np.exp(fits[True].coef_), rtol=0.03)
    assert table.index.tolist() == ["x0", "x1", "x2", "intercept", "correlation"]
    assert np.isnan(table.loc["correlation", "odds_ratio"])
    assert "correlation" not in fits[False].summary().index
    pytest.importorskip("matplotlib")
    display = CoefficientsDisplay.from_estimator(fits[False], odds_ratio=True)
    assert display.ax_.get_xlabel() == "odds ratio"


@EACH
def test_the_score_is_the_share_of_the_deviance_that_is_explained(fits, overdispersed):
    model, (X, y, trials) = fits[overdispersed], simulated(40, seed=3)
    weight = np.linspace(0.5, 2.0, 40)

    def deviance(p):
        each = xlogy(y, y / (trials * p)) + xlogy(trials - y, (trials - y) / (trials * (1 - p)))
        return 2 * weight @ each

    share = np.full(40, weight @ y / (weight @ trials))
    wanted = 1 - deviance(model.predict(X)) / deviance(share)
    assert model.score(X, y, weight, trials=trials) == pytest.approx(wanted)
    best = model.score(X, np.zeros(40), trials=trials)
    assert best == 0.0  # of a share of zero nothing is left to explain


def test_the_likelihood_of_the_fit_is_asked_with_its_trials():
    X, y, trials = simulated(200, 0.25)
    with pytest.warns(ConvergenceWarning, match="dispersion"):
        model = BayesianBinomialRegressor(**SHORT | {"n_draws": 200}).fit(X, y, trials=trials)
    table = sandwich_summary(model, X, y, trials=trials)
    ratio = np.sqrt(model.diagnostics_["dispersion"])
    np.testing.assert_allclose(table["ratio"], ratio, rtol=0.35)
    assert (prior_sensitivity(model, X, y, trials=trials)["likelihood"] > 0.05).all()
    covariance = model.predicted_covariance(X, y, trials=trials)
    np.testing.assert_allclose(np.sqrt(covariance.diagonal())[:3], model.coef_std_, rtol=0.3)
    pytest.importorskip("arviz_base")
    tree = model.to_arviz(X, y, trials=trials, log_likelihood=True, posterior_predictive=True)
    found = tree["log_likelihood"]["y"].to_numpy().reshape(-1, 200)
    at = model.draws_.reshape(-1, 4)
    p = expit(at[:, :3] @ X.T + at[:, 3:])
    np.testing.assert_allclose(found, stats.binom(trials, p).logpmf(y), rtol=1e-6, atol=1e-6)
    new = tree["posterior_predictive"]["y"].to_numpy()
    assert (new <= trials).all()
    for ask in (sandwich_summary, prior_sensitivity):
        with pytest.raises(ValueError, match="trials of the fit"):
            ask(model, X, y)
    with pytest.raises(ValueError, match="trials of the fit"):
        model.to_arviz(X, y)
    plain = BayesianPoissonRegressor(**SHORT).fit(X, y_of_poisson(X))
    with pytest.raises(ValueError, match="trials: BayesianPoissonRegressor takes none"):
        plain.to_arviz(X, y_of_poisson(X), trials=trials)


# -- dispersion -----------------------------------------------------------------------------------


def test_the_dispersion_is_pearsons_and_warns_where_it_is_large():
    X, y, trials = simulated(300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BayesianBinomialRegressor(prior_precision=1e-3, random_state=0)
        model.fit(X, y, trials=trials)
    p = expit(X @ model.coef_ + model.intercept_)
    pearson = np.sum((y - trials * p) ** 2 / (trials * p * (1 - p))) / (300 - 4)
    assert model.diagnostics_["dispersion"] == pytest.approx(pearson, rel=0.01)
    assert pearson == pytest.approx(1.0, abs=0.4)
    X, y, trials = simulated(300, 0.2)
    with pytest.warns(ConvergenceWarning, match=r"dispersion is .*set overdispersed=True"):
        model.fit(X, y, trials=trials)
    assert model.diagnostics_["dispersion"] > 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(overdispersed=True).fit(X, y, trials=trials)
    assert "dispersion" not in model.diagnostics_


@pytest.mark.slow
def test_the_error_of_the_dispersion_is_that_of_repeated_data():
    """Rare successes, whose squares have long tails."""
    rng = np.random.default_rng(4)
    X, trials = np.zeros((60, 1)), np.full(60, 40)
    found = []
    for _ in range(20):
        y = rng.binomial(trials, 0.02)
        model = BayesianBinomialRegressor(**SHORT).fit(X, y, trials=trials)
        data = model._posterior_of(X, y, _metadata(trials)).data
        found.append(dispersion.pearson(model, data, 1.0))
    value, error = np.transpose(found)
    assert value.mean() == pytest.approx(1.0, abs=5 * value.std() / np.sqrt(20))
    assert error.mean() == pytest.approx(value.std(), rel=0.6)


def _metadata(trials):
    from skbayes_sg.data.row_metadata import RowMetadata

    return RowMetadata(trials=trials)


def test_single_trials_say_nothing_of_a_correlation():
    X, y, _ = simulated(80, most=2)
    model = BayesianBinomialRegressor(overdispersed=True, **SHORT)
    with pytest.warns(ConvergenceWarning, match=r"trials are 1 in all rows.*overdispersed=False"):
        model.fit(X, y, trials=1)


def test_it_is_as_the_maximum_likelihood_of_all_trials_under_a_weak_prior():
    X, y, trials = simulated(200)
    model = BayesianBinomialRegressor(prior_precision=1e-4, random_state=0)
    model.fit(X, y, trials=trials)
    twice = np.concatenate([X, X]), np.repeat([1, 0], 200)
    likely = LogisticRegression(C=1e4, tol=1e-8)
    likely.fit(*twice, sample_weight=np.concatenate([y, trials - y]))
    assert (np.abs(model.coef_ - likely.coef_[0]) < 0.15 * model.coef_std_).all()


# -- what is refused ------------------------------------------------------------------------------


BAD = {
    "negative": ({"y": [-1, 2, 3]}, "y holds negative numbers"),
    "fractions": ({"y": [0.5, 2, 3]}, r"y holds numbers that are not whole.*give y \* trials"),
    "too many": ({"y": [1, 2, 9]}, r"y is larger than trials in 1 row.* y = 9 of trials = 8"),
    "none": ({"trials": [5, 0, 8]}, "trials must be whole numbers from 1 on"),
    "negative trials": ({"trials": [5, -6, 8]}, "trials must be whole numbers from 1 on"),
    "fractions of trials": ({"trials": [5, 6.5, 8]}, "trials must be whole numbers from 1 on"),
    "missing numbers": ({"trials": [5, np.nan, 8]}, "trials must be whole numbers from 1 on"),
    "infinite": ({"trials": [5, np.inf, 8]}, "trials must be whole numbers from 1 on"),
    "words": ({"trials": ["a", "b", "c"]}, "trials must hold real numbers"),
    "another shape": ({"trials": [5, 6]}, r"trials must have shape \(3,\).*got \(2,\)"),
    "a column": ({"trials": [[5], [6], [8]]}, r"trials must have shape \(3,\)"),
    "without": ({"trials": None}, "trials is missing.*give trials.*trials=1"),
}


@pytest.mark.parametrize("method", ["fit", "partial_fit", "score"])
@pytest.mark.parametrize(("changes", "words"), BAD.values(), ids=BAD)
def test_successes_and_trials_that_are_none_are_refused(changes, words, method, fits):
    given = {"X": np.eye(3), "y": [1, 2, 3], "trials": [5, 6, 8]} | changes
    model = fits[False] if method == "score" else BayesianBinomialRegressor(**SHORT)
    with pytest.raises(ValueError, match=words):
        getattr(model, method)(**given)


def test_predictions_that_need_trials_say_so(fits):
    model, X = fits[False], np.eye(3)
    for ask in (
        lambda: model.predict(X, return_std=True),
        lambda: model.predict_interval(X),
        lambda: model.predict_quantiles(X, [0.5]),
        lambda: model.predict_draws(X),
        lambda: totals(model, X),
    ):
        with pytest.raises(ValueError, match=r"trials is missing: .*share of successes"):
            ask()
    with pytest.raises(ValueError, match="trials must be whole numbers"):
        model.predict(X, trials=0)
    with pytest.raises(AttributeError, match="logit_correlation"):
        _ = model.correlation_
    with pytest.raises(ValueError, match="overdispersed must be one of"):
        BayesianBinomialRegressor(overdispersed="yes").fit(X, [1, 1, 0], trials=3)


def test_trials_that_single_precision_cannot_hold_are_refused():
    X = np.eye(3, dtype=np.float32)
    many = [20_000_001, 5, 6]
    with pytest.raises(ValueError, match="trials are too many for the digits of float32"):
        BayesianBinomialRegressor(**SHORT).fit(X, [1, 2, 3], trials=many)
    model = BayesianBinomialRegressor(**SHORT).fit(X, [1, 2, 3], trials=[7, 5, 6])
    assert model.predict(X).dtype == np.float32
