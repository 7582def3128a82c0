"""What a row stands for: offsets, exposures, means of several observations, new levels."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import sklearn
from scipy import sparse, stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
    BayesianRobustRegressor,
    DRBMClassifier,
)
from skbayes_sg.data import InMemory
from skbayes_sg.data.row_metadata import RowMetadata
from skbayes_sg.estimators import one_hot
from skbayes_sg.estimators.one_hot import levels_of, tallies_of
from skbayes_sg.inspection import prediction_summary, prior_sensitivity
from skbayes_sg.models import (
    DRBM,
    MLP,
    Gamma,
    Linear,
    NegativeBinomial,
    Poisson,
    Softmax,
    Student,
)
from skbayes_sg.models.ordinal import Ordinal
from skbayes_sg.posterior import Posterior

RNG = np.random.default_rng(0)
N, P = 400, 2
X = RNG.standard_normal((N, P))
EXPOSURE = RNG.uniform(0.2, 5.0, N)
OFFSET = np.log(EXPOSURE)
MEAN = EXPOSURE * np.exp(0.3 + X @ [0.5, -0.4])
COUNTS = RNG.poisson(MEAN).astype(float)
SPREAD_COUNTS = RNG.poisson(MEAN * RNG.gamma(2.0, 0.5, N)).astype(float)
AMOUNTS = RNG.gamma(3.0, MEAN / 3.0)
LOGIT = X @ [1.0, -1.0] + OFFSET
BINARY = (LOGIT + RNG.logistic(size=N) > 0).astype(int)
GRADES = np.digitize(LOGIT + RNG.logistic(size=N), [-1.0, 1.0])
NUMBERS = LOGIT + 0.5 * RNG.standard_normal(N)
WEAK = {"prior_precision": 1e-4, "random_state": 0}
SHORT = {"n_chains": 2, "n_draws": 8, "burn_in": 20, "thin": 1, "random_state": 0}
LOG_LINKS = {
    BayesianPoissonRegressor: COUNTS,
    BayesianNegativeBinomialRegressor: SPREAD_COUNTS,
    BayesianGammaRegressor: AMOUNTS,
}
MODELS = {
    "two classes": (Softmax(P, 2), 2.0 * BINARY - 1, 1),
    "three classes": (Softmax(P, 3), GRADES, 3),
    "Poisson": (Poisson(P), COUNTS, 1),
    "Gamma": (Gamma(P), AMOUNTS, 2),
    "negative binomial": (NegativeBinomial(P), COUNTS, 2),
    "linear": (Linear(P), NUMBERS, 2),
    "Student": (Student(P), NUMBERS, 1),
    "ordinal": (Ordinal(P, np.arange(3)), GRADES, 1),
    "network": (MLP(P, 2, (3,)), 2.0 * BINARY - 1, 1),
    "machine of two classes": (DRBM(P, 2, 3), BINARY, 1),
    "machine": (DRBM(P, 3, 3), GRADES, 3),
}


def posterior(name, sparse_rows=False):
    """With known parts of the outputs of 40 rows."""
    model, y, n_known = MODELS[name]
    known = np.random.default_rng(1).standard_normal((40, n_known))
    rows = np.hstack([X[:40], known])
    rows = sparse.csr_array(rows) if sparse_rows else rows
    data = replace(InMemory.of(rows, y[:40]), n_known=n_known)
    return Posterior(model, data, model.prior(np.ones(model.dim))), known


# -- offsets in models ------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_the_gradient_is_that_of_the_density_with_known_parts(name):
    target, _ = posterior(name)
    theta = 0.3 * np.random.default_rng(2).standard_normal((1, target.dim))
    steps = 1e-5 * np.eye(target.dim)
    difference = target.log_prob(theta + steps) - target.log_prob(theta - steps)
    np.testing.assert_allclose(target.full_gradient(theta)[0], difference / 2e-5, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_a_known_part_is_added_to_the_outputs(name):
    target, known = posterior(name)
    theta = 0.3 * np.random.default_rng(2).standard_normal((3, target.dim))
    model, rows = target.model, target.data.X
    with_known = model.outputs(theta, rows)
    without = model.outputs(theta, np.ascontiguousarray(rows[:, :P]))
    expected = np.zeros_like(without)
    if name == "machine of two classes":  # the log odds of the second class
        expected[:, 1:] = known.T
    else:
        expected[:, : known.shape[1]] = known.T
    np.testing.assert_allclose(with_known - without, expected, atol=1e-12)


def test_columns_that_are_known_have_no_unit():
    target, _ = posterior("three classes")
    assert target.data.n_features == P
    assert target.data.column_squares().shape == (P,)
    assert target.data.with_columns(np.array([1])).n_features == 1
    assert target.data.merged().n_features == P


# -- fits -------------------------------------------------------------------------------------


def test_an_exposure_is_the_weight_of_a_rate():
    model = BayesianPoissonRegressor(**WEAK).fit(X, COUNTS, exposure=EXPOSURE)
    with pytest.warns(ConvergenceWarning, match="give the counts as y, and exposure"):
        rates = BayesianPoissonRegressor(**WEAK).fit(X, COUNTS / EXPOSURE, sample_weight=EXPOSURE)
    np.testing.assert_allclose(model.coef_, rates.coef_, atol=0.1 * rates.coef_std_.min())
    np.testing.assert_allclose(model.posterior_.mean, rates.posterior_.mean, rtol=1e-6)
    expected = EXPOSURE * rates.predict(X)
    np.testing.assert_allclose(model.predict(X, exposure=EXPOSURE), expected, rtol=0.02)


@pytest.mark.parametrize("cls", LOG_LINKS, ids=lambda cls: cls.__name__)
@pytest.mark.quick("BayesianPoissonRegressor", "BayesianGammaRegressor")
def test_an_offset_is_the_logarithm_of_an_exposure(cls):
    first = cls(**WEAK).fit(X, LOG_LINKS[cls], exposure=EXPOSURE)
    second = cls(**WEAK).fit(X, LOG_LINKS[cls], offset=OFFSET)
    np.testing.assert_array_equal(first.draws_, second.draws_)
    ends = first.predict_interval(X[:5], exposure=EXPOSURE[:5])
    np.testing.assert_array_equal(ends, second.predict_interval(X[:5], offset=OFFSET[:5]))


@pytest.mark.parametrize("cls", LOG_LINKS, ids=lambda cls: cls.__name__)
@pytest.mark.quick("BayesianPoissonRegressor", "BayesianGammaRegressor")
def test_a_unit_of_exposure_moves_the_intercept_alone(cls):
    """Under a weak prior: half the exposure in its new unit has the intercept less log 2."""
    first = cls(**WEAK).fit(X, LOG_LINKS[cls], exposure=EXPOSURE)
    second = cls(**WEAK).fit(X, LOG_LINKS[cls], exposure=2 * EXPOSURE)
    sd = first.coef_std_
    np.testing.assert_allclose(first.coef_, second.coef_, atol=0.3 * sd.min())
    assert abs(first.intercept_ - second.intercept_ - np.log(2)) < 0.3 * sd.min()


@pytest.mark.parametrize("cls", [BayesianLinearRegression, BayesianRobustRegressor])
@pytest.mark.quick("BayesianLinearRegression")
def test_an_offset_of_a_line_is_taken_off_y(cls):
    far = 1e7 + OFFSET
    model = cls(random_state=0).fit(X.astype(np.float32), NUMBERS + far, offset=far)
    other = cls(random_state=0).fit(X.astype(np.float32), (NUMBERS + far) - far)
    np.testing.assert_array_equal(model.draws_, other.draws_)
    expected = other.predict(X[:5]) + far[:5]
    np.testing.assert_allclose(model.predict(X[:5], offset=far[:5]), expected, atol=1e-6)
    ends = model.predict_interval(X[:5], offset=far[:5]) - far[:5, None]
    np.testing.assert_allclose(ends, other.predict_interval(X[:5]), atol=1e-4)


@pytest.mark.parametrize("k", [2, 3])
def test_an_offset_along_the_columns_moves_the_coefficients(k):
    """X b as offset, and a prior mean of m, are a prior mean of m + b without it."""
    y = BINARY if k == 2 else GRADES
    shift = np.array([[0.7, -0.4]]) if k == 2 else np.array([[0.7, -0.4], [0.1, 0.2], [0.0, 0.5]])
    given = {"prior_precision": 4.0, "random_state": 0}
    offset = X @ shift.T
    offset = offset[:, 0] if k == 2 else offset
    model = BayesianLogisticRegression(prior_mean=-shift, **given).fit(X, y, offset=offset)
    other = BayesianLogisticRegression(**given).fit(X, y)
    np.testing.assert_allclose(
        model.posterior_.mean[: shift.size] + shift.ravel(),
        other.posterior_.mean[: shift.size],
        atol=1e-4,
    )
    error = 5 * other.coef_std_ / np.sqrt(400)
    against = shift - (shift.mean(axis=0) if k == 3 else 0)
    assert (np.abs(model.coef_ + against - other.coef_) < error).all()
    p, q = model.predict_proba(X, offset=offset), other.predict_proba(X)
    assert np.abs(p - q).max() < 0.03


def test_an_offset_of_ordered_classes_moves_what_thresholds_are_compared_with():
    model = BayesianOrdinalClassifier(**WEAK).fit(X, GRADES, offset=OFFSET)
    assert (np.abs(model.coef_ - [1.0, -1.0]) < 4 * model.coef_std_).all()
    moved = model.predict_proba(X[:5], offset=OFFSET[:5] + 30.0)
    np.testing.assert_allclose(moved[:, 2], 1.0, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "y", "n_offsets"),
    [
        (BayesianMLPClassifier((2,), **SHORT), BINARY, 1),
        (BayesianMLPClassifier((2,), **SHORT), GRADES, 3),
        (DRBMClassifier(2, **SHORT), BINARY, 1),
        (BayesianMLPRegressor((2,), **SHORT), NUMBERS, 1),
        (BayesianMLPRegressor((2,), **SHORT), np.column_stack([NUMBERS, COUNTS]), 2),
    ],
    ids=["two classes", "three classes", "machine", "regression", "two responses"],
)
@pytest.mark.usefixtures("_short_searches")
def test_networks_have_offsets(model, y, n_offsets):
    offset = OFFSET if n_offsets == 1 else np.tile(OFFSET[:, None], (1, n_offsets))
    offset = offset * (np.arange(n_offsets) + 1) if n_offsets > 1 else offset
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = model.fit(X, y, offset=offset)
    with pytest.raises(ValueError, match="was fitted with an offset"):
        model.predict(X)
    there = model.predict(X[:5], offset=0)
    if hasattr(model, "classes_"):
        far = np.full(5, 50.0) if n_offsets == 1 else np.tile([0.0, 0.0, 50.0], (5, 1))
        assert (model.predict(X[:5], offset=far) == model.classes_[-1]).all()
    else:
        moved = model.predict(X[:5], offset=offset[:5])
        np.testing.assert_allclose(moved, there + offset[:5], rtol=1e-5)


@pytest.mark.parametrize("cls", LOG_LINKS, ids=lambda cls: cls.__name__)
def test_the_prior_of_the_intercept_knows_the_exposures(cls):
    """Few rows under a learned precision, in units a million apart: the same but the intercept."""
    rows, y = slice(8), LOG_LINKS[cls]
    ours, theirs = (
        cls(random_state=0)._bind(X[rows], *given)
        for given in (
            (y[rows], RowMetadata(offset=OFFSET[rows])),
            (y[rows], RowMetadata(offset=OFFSET[rows] + np.log(1e6))),
        )
    )
    moved = ours.prior.mean[P] - theirs.prior.mean[P]
    assert moved == pytest.approx(np.log(1e6), abs=1e-9)
    expected = np.log((y[rows].sum() + 0.5) / (EXPOSURE[rows].sum() + EXPOSURE[rows].mean()))
    assert ours.prior.mean[P] == pytest.approx(expected, abs=1e-9)


def test_the_prior_of_a_threshold_knows_the_offsets():
    ours, theirs = (
        BayesianOrdinalClassifier(random_state=0)._bind(
            X, GRADES, np.arange(3), RowMetadata(offset=OFFSET + more)
        )
        for more in (0.0, 5.0)
    )
    assert ours.prior.mean[P] - theirs.prior.mean[P] == pytest.approx(5.0)


def test_a_stream_of_means_of_counts_has_no_expected_log_loss():
    stream = BayesianNegativeBinomialRegressor(**WEAK)
    y = np.random.default_rng(4).poisson(3.0 * K) / K
    for some in np.array_split(np.arange(N), 3):
        stream.partial_fit(X[some], y[some], var_weights=K[some])
    assert np.isfinite(stream.log_loss_path_[1:, 0]).all()
    assert np.isnan(stream.log_loss_path_[:, 1:]).all()


# -- predictions ask for what the fit had ----------------------------------------------------


def test_predictions_ask_for_the_offset_of_the_fit():
    model = BayesianPoissonRegressor(**WEAK).fit(X, COUNTS, exposure=EXPOSURE)
    for call in (model.predict, model.predict_interval, model.predict_draws):
        with pytest.raises(ValueError, match="fitted with an offset or exposure"):
            call(X)
        assert len(call(X, exposure=1)) == len(call(X, offset=0.0))
    with pytest.raises(ValueError, match="fitted with an offset or exposure"):
        model.score(X, COUNTS)
    assert model.score(X, COUNTS, exposure=EXPOSURE) > 0.3
    twice = model.predict(X, exposure=2 * EXPOSURE)
    np.testing.assert_allclose(twice, 2 * model.predict(X, exposure=EXPOSURE), rtol=1e-9)
    table = prediction_summary(model, X[:5], exposure=EXPOSURE[:5])
    apart = np.abs(table["mean"] - model.predict(X[:5], exposure=EXPOSURE[:5]))
    assert (apart < 0.02 * table["sd"]).all()  # a few draws in place of all
    ends = model.predict_interval(X[:5], exposure=EXPOSURE[:5])
    np.testing.assert_array_equal(table[["obs_eti95_lb", "obs_eti95_ub"]], ends)
    tree = pytest.importorskip("arviz_base") and model.to_arviz(
        X, COUNTS, offset=OFFSET, log_likelihood=True, posterior_predictive=True
    )
    each = tree["log_likelihood"]["y"].to_numpy().reshape(-1, N)
    mu = model.predict_draws(X, kind="mean", exposure=EXPOSURE)
    np.testing.assert_allclose(each, stats.poisson.logpmf(COUNTS, mu), rtol=1e-8)
    assert tree["constant_data"]["X"].shape == (N, P)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"offset": OFFSET[:5]}, r"offset must have shape \(400,\), got \(5,\)"),
        ({"offset": np.full(N, np.nan)}, "offset must hold finite numbers"),
        ({"exposure": 0 * EXPOSURE}, "exposure must be positive and finite"),
        ({"exposure": EXPOSURE, "offset": OFFSET}, "offset and exposure say the same"),
        ({"var_weights": EXPOSURE[:5]}, r"var_weights must have shape \(400,\)"),
        ({"var_weights": -EXPOSURE}, "var_weights must be positive"),
        ({"var_weights": np.full(N, 2.5)}, "y times var_weights is not whole"),
    ],
)
def test_impossible_metadata_is_refused_by_name(given, message):
    model = BayesianPoissonRegressor(**SHORT)
    with pytest.raises(ValueError, match=message):
        model.fit(X, COUNTS + 1, **given)
    assert not hasattr(model, "model_")


def test_a_line_has_no_exposure_and_student_no_means():
    with pytest.raises(ValueError, match="exposure multiplies a mean that is an exponential"):
        BayesianLinearRegression().fit(X, NUMBERS, exposure=EXPOSURE)
    with pytest.raises(ValueError, match="is not of its family"):
        BayesianRobustRegressor().fit(X, NUMBERS, var_weights=EXPOSURE)
    with pytest.raises(ValueError, match="is not of its family"):
        BayesianMLPRegressor(**SHORT).fit(X, NUMBERS, var_weights=EXPOSURE)


def test_more_classes_have_an_offset_each():
    with pytest.raises(ValueError, match=r"shape \(400, 3\), one for each class"):
        BayesianLogisticRegression(**SHORT).fit(X, GRADES, offset=OFFSET)


# -- streams, routing, disk and workers -------------------------------------------------------


def test_a_stream_with_offsets_is_the_posterior_of_all_rows():
    stream = BayesianLogisticRegression(**WEAK)
    for rows in np.array_split(np.arange(N), 4):
        stream.partial_fit(X[rows], BINARY[rows], classes=[0, 1], offset=OFFSET[rows])
    whole = BayesianLogisticRegression(**WEAK).fit(X, BINARY, offset=OFFSET)
    sd = np.sqrt(whole.posterior_.covariance.diagonal())
    assert (np.abs(stream.posterior_.mean - whole.posterior_.mean) < 0.02 * sd).all()
    with pytest.raises(ValueError, match="for all chunks of a stream or for none"):
        stream.partial_fit(X[:9], BINARY[:9])


@pytest.mark.parametrize("cls", [BayesianLinearRegression, BayesianGammaRegressor])
def test_a_stream_may_begin_with_means_of_one_observation(cls):
    y, k = (AMOUNTS if cls is BayesianGammaRegressor else NUMBERS), np.where(np.arange(N) < 9, 1, K)
    stream = cls(**WEAK)
    for rows in (slice(1), slice(1, 9), slice(9, N)):
        stream.partial_fit(X[rows], y[rows], var_weights=k[rows])
    whole = cls(**WEAK).fit(X, y, var_weights=k)
    sd = np.sqrt(whole.posterior_.covariance.diagonal()[: P + 1])
    shift = stream.posterior_.mean[: P + 1] - whole.posterior_.mean[: P + 1]
    assert (np.abs(shift) < 0.02 * sd).all()


def test_offsets_are_routed_through_searches():
    with sklearn.config_context(enable_metadata_routing=True):
        model = BayesianPoissonRegressor(random_state=0)
        model.set_fit_request(exposure=True).set_score_request(exposure=True)
        search = GridSearchCV(model, {"prior_precision": [0.1, 10.0]}, cv=2)
        search.fit(X, COUNTS, exposure=EXPOSURE)
        assert search.best_score_ > 0.3
        scores = cross_val_score(model, X, COUNTS, cv=2, params={"exposure": EXPOSURE})
        assert scores.min() > 0.3


class Table:
    """Rows that are read as a stored table is."""

    def __init__(self, values):
        self.values, self.shape, self.dtype = values, values.shape, values.dtype

    def __getitem__(self, rows):
        return self.values[rows]


def test_offsets_of_rows_that_are_read_in_blocks(monkeypatch):
    monkeypatch.setattr("skbayes_sg.data.blockwise.bytes_to_keep", lambda: 1000)
    given = {"prior_precision": 1.0, "random_state": 0}
    model = BayesianPoissonRegressor(**given).fit(Table(X), COUNTS, exposure=EXPOSURE)
    memory = BayesianPoissonRegressor(**given).fit(X, COUNTS, exposure=EXPOSURE)
    np.testing.assert_allclose(model.posterior_.mean, memory.posterior_.mean, rtol=1e-4)
    found = model.predict(Table(X), exposure=EXPOSURE)
    np.testing.assert_allclose(found, model.predict(X, exposure=EXPOSURE), rtol=1e-10)
    line = BayesianLinearRegression(**given)
    line.fit(Table(X), NUMBERS + OFFSET, offset=OFFSET)
    expected = BayesianLinearRegression(**given).fit(X, NUMBERS)
    np.testing.assert_allclose(line.posterior_.mean, expected.posterior_.mean, rtol=1e-8)
    with pytest.raises(ValueError, match="rows that are read in blocks have none"):
        BayesianGammaRegressor().fit(Table(X), AMOUNTS, var_weights=np.ones(N))


def test_offsets_of_rows_on_workers():
    da = pytest.importorskip("dask.array")
    rows, given = da.from_array(X, chunks=(100, P)), {"prior_precision": 1.0, "random_state": 0}
    y, exposure = (da.from_array(each, chunks=100) for each in (COUNTS, EXPOSURE))
    model = BayesianPoissonRegressor(**given).fit(rows, y, exposure=exposure)
    memory = BayesianPoissonRegressor(**given).fit(X, COUNTS, exposure=EXPOSURE)
    np.testing.assert_allclose(model.posterior_.mean, memory.posterior_.mean, rtol=1e-4)
    lazy = model.predict(rows, exposure=exposure).compute()
    np.testing.assert_allclose(lazy, model.predict(X, exposure=EXPOSURE), rtol=1e-10)


# -- means of several observations ------------------------------------------------------------

K = np.random.default_rng(3).integers(1, 9, N).astype(float)


@pytest.mark.parametrize("name", ["Gamma", "negative binomial", "Poisson", "linear"])
def test_a_mean_of_several_has_the_distribution_of_their_mean(name):
    model, y, _ = MODELS[name]
    if name in ("negative binomial", "Poisson"):
        y = np.random.default_rng(4).poisson(3.0 * K) / K
    targets, known = type(model).averaged(y, K)
    rows = np.hstack([X, known])
    theta = 0.3 * np.random.default_rng(2).standard_normal((1, model.dim))
    found = model.log_likelihood(theta, rows, targets)[0]
    eta = X @ theta[0, :P] + theta[0, P]
    own = theta[0, -1]
    expected = {
        "Gamma": lambda: stats.gamma.logpdf(y, K * np.exp(-own), scale=np.exp(eta + own) / K),
        "negative binomial": lambda: stats.nbinom.logpmf(
            np.rint(K * y), K * np.exp(-own), 1 / (1 + np.exp(own + eta))
        ),
        "Poisson": lambda: stats.poisson.logpmf(np.rint(K * y), K * np.exp(eta)),
        "linear": lambda: stats.norm.logpdf(y, eta, np.exp(0.5 * own) / np.sqrt(K)),
    }[name]()
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_means_of_a_line_have_the_conjugate_posterior():
    """Weighted least squares, whose noise variance has a degree of freedom for each row."""
    given = {"prior_precision": 0.5, "noise_prior": (2.0, 3.0), "intercept_precision": 0.1}
    model = BayesianLinearRegression(**given, random_state=0).fit(X, NUMBERS, var_weights=K)
    Z = np.column_stack([X, np.ones(N)])
    at_means = np.append(X.mean(axis=0), 1.0)  # of the columns, where the intercept has its prior
    precision = (Z.T * K) @ Z + np.diag([0.5, 0.5, 0.0]) + 0.1 * np.outer(at_means, at_means)
    mean = np.linalg.solve(precision, (Z.T * K) @ NUMBERS)
    rate = 3.0 + 0.5 * (K @ NUMBERS**2 - mean @ precision @ mean)
    shape, found = 2.0 + 0.5 * N, model.posterior_
    np.testing.assert_allclose(found.mean, mean, rtol=1e-8)
    np.testing.assert_allclose(found.noise, (shape, rate), rtol=1e-8)
    np.testing.assert_allclose(
        found.covariance, rate / (shape - 1) * np.linalg.inv(precision), rtol=1e-7
    )
    fixed = BayesianLinearRegression(noise_variance=2.0, prior_precision=1.0, random_state=0)
    ours = fixed.fit(X, NUMBERS, var_weights=K).draws_
    np.testing.assert_array_equal(ours, fixed.fit(X, NUMBERS, sample_weight=K).draws_)


def test_deviations_of_means_are_those_of_the_single_observations():
    """The same posterior but for what the means do not say of the dispersion."""
    rng, k = np.random.default_rng(5), K[:300].astype(int)
    rows = np.repeat(np.arange(300), k)
    mu = np.exp(1 + X[:300] @ [0.3, 0.0])
    single = rng.gamma(1 / 0.8, 0.8 * mu[rows])
    mean = np.bincount(rows, single) / k
    model = BayesianGammaRegressor(random_state=0)
    apart = model.fit(X[rows], single).coef_std_
    together = model.fit(X[:300], mean, var_weights=k)
    assert (np.abs(together.coef_std_ / apart - 1) < 0.2).all()
    assert 0.6 < together.dispersion_ < 1.0


def test_what_is_asked_of_the_rows_of_a_fit_knows_their_means():
    given = {"noise_variance": 2.0, "prior_precision": 1.0, "random_state": 0}
    model = BayesianLinearRegression(**given).fit(X, NUMBERS, var_weights=K)
    # under a known noise variance the mean of k is k rows
    rows = BayesianLinearRegression(**given).fit(X, NUMBERS, K)
    np.testing.assert_array_equal(
        model.predicted_covariance(X, NUMBERS, var_weights=K),
        rows.predicted_covariance(X, NUMBERS, sample_weight=K),
    )
    of_means = prior_sensitivity(model, X, NUMBERS, var_weights=K)
    of_rows = prior_sensitivity(rows, X, NUMBERS, sample_weight=K)
    np.testing.assert_array_equal(of_means["likelihood"], of_rows["likelihood"])
    model = BayesianGammaRegressor(random_state=0).fit(X, AMOUNTS, var_weights=K)
    drawn = model.draws_.reshape(-1, P + 2)[:, : P + 1].var(axis=0)
    found = model.predicted_covariance(X, AMOUNTS, var_weights=K).diagonal()[: P + 1]
    assert (np.abs(drawn / found - 1) < 0.3).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.usefixtures("_short_searches")
def test_the_likelihood_of_means_is_exported():
    pytest.importorskip("arviz_base")
    model = BayesianGammaRegressor(**SHORT).fit(X, AMOUNTS, var_weights=K)
    tree = model.to_arviz(X, AMOUNTS, var_weights=K, log_likelihood=True)
    theta = model.draws_[:, :, None].astype(float)
    mean, own = np.exp(theta[..., :P] @ X.T + theta[..., P, None])[:, :, 0], theta[..., -1]
    expected = stats.gamma.logpdf(AMOUNTS, K * np.exp(-own), scale=mean * np.exp(own) / K)
    np.testing.assert_allclose(tree["log_likelihood"]["y"], expected, rtol=1e-6)
    with pytest.raises(ValueError, match="var_weights needs y"):
        model.to_arviz(X, var_weights=K, posterior_predictive=True)
    with pytest.raises(ValueError, match="BayesianMLPClassifier takes none"):
        BayesianMLPClassifier(**SHORT).fit(X, BINARY).to_arviz(X, BINARY, var_weights=K)
    with pytest.raises(ValueError, match="give the single observations"):
        BayesianMLPRegressor(**SHORT).fit(X, NUMBERS).to_arviz(X, NUMBERS, var_weights=K)


def test_means_have_no_noise_of_students():
    with pytest.warns(UserWarning, match="whose noise is not Student's"):
        BayesianRobustRegressor(random_state=0).fit(X, NUMBERS, sample_weight=K)


@pytest.mark.parametrize(
    ("cls", "y"), [(BayesianLinearRegression, NUMBERS), (BayesianGammaRegressor, AMOUNTS)]
)
@pytest.mark.quick("BayesianLinearRegression")
def test_weights_that_look_like_numbers_of_observations_are_asked_about(cls, y):
    with pytest.warns(UserWarning, match="give their numbers as var_weights"):
        cls(random_state=0).fit(X, y, sample_weight=K)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cls(random_state=0).fit(X, y, var_weights=K)
        bootstrap = np.bincount(np.random.default_rng(0).integers(N, size=N), minlength=N)
        cls(random_state=0).fit(X, y, sample_weight=bootstrap)


# -- new levels -------------------------------------------------------------------------------

LEVELS = 20
MEMBER = np.random.default_rng(6).integers(LEVELS, size=N)
INDICATORS = (MEMBER[:, None] == np.arange(LEVELS)).astype(float)
CITIES = np.hstack([INDICATORS, X[:, :1]])
EFFECT = 1.5 * np.random.default_rng(7).standard_normal(LEVELS)
IN_CITIES = X[:, 0] + EFFECT[MEMBER] + 0.5 * np.random.default_rng(8).standard_normal(N)
NEW = np.hstack([np.zeros((200, LEVELS)), X[:200, :1]])
GROUPS = {"prior_groups": {"city": range(LEVELS)}, "random_state": 0}


def test_a_new_level_has_the_spread_of_the_levels():
    model = BayesianLinearRegression(**GROUPS).fit(CITIES, IN_CITIES)
    mean, sd = model.predict(NEW, return_std=True)
    tau = np.sqrt((1 / model.prior_precision_draws_[..., 0]).mean() / model._fit.prior.unit[0])
    tau = np.sqrt((tau**2) * model.noise_variance_)
    expected = np.sqrt(tau**2 + model.noise_variance_ + EFFECT.var() / LEVELS)
    np.testing.assert_allclose(sd, expected, rtol=0.15)
    known = model.predict(CITIES[:200], return_std=True)[1]
    assert (known < 0.6 * sd).all()
    ends = model.predict_interval(NEW)
    np.testing.assert_allclose(np.diff(ends)[:, 0], 2 * 1.96 * sd, rtol=0.15)
    zero = model.set_params(new_levels="zero").predict(NEW, return_std=True)
    np.testing.assert_allclose(zero[0], mean, atol=0.1)
    assert (zero[1] < 0.6 * sd).all()
    with pytest.raises(ValueError, match=r"row 3 of X has a level of 'city'"):
        model.set_params(new_levels="refuse").predict(np.vstack([CITIES[:3], NEW]))


def test_probabilities_of_a_new_level_are_averages_over_levels():
    y = (X[:, 0] + EFFECT[MEMBER] + RNG.logistic(size=N) > 0).astype(int)
    model = BayesianLogisticRegression(**GROUPS).fit(CITIES, y)
    p = model.predict_proba(NEW)[:, 1]
    tau = np.sqrt((1 / model.prior_precision_draws_[..., 0]).mean() / model._fit.prior.unit[0])
    u = stats.norm.ppf((np.arange(2000) + 0.5) / 2000) * tau
    at_mean = model.coef_[0, -1] * NEW[:, -1] + model.intercept_[0]
    expected = (1 / (1 + np.exp(-(at_mean[:, None] + u)))).mean(axis=1)
    np.testing.assert_allclose(p, expected, atol=0.05)
    np.testing.assert_allclose(model.predict_proba(sparse.csr_array(NEW))[:, 1], p, atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(NEW[:7])[:, 1], p[:7], rtol=1e-12)
    wide = np.diff(model.predict_interval(NEW)[:, 1]).ravel()
    narrow = np.diff(model.set_params(new_levels="zero").predict_interval(NEW)[:, 1]).ravel()
    assert (wide > 1.5 * narrow).all()


def test_rows_that_may_be_all_zeros_are_no_new_level():
    """A factor without its first level, and columns that are no indicators."""
    asked = {"prior_groups": {"city": range(LEVELS - 1)}, "random_state": 0}
    model = BayesianLinearRegression(**asked)
    with pytest.warns(UserWarning, match="'city' of prior_groups is taken for no factor"):
        model.fit(CITIES[:, 1:], IN_CITIES)
    assert not model._levels
    assert model.factors_ == {"city": "no factor: some rows have none of its columns"}
    refusing = BayesianLinearRegression(**asked, new_levels="refuse")
    with pytest.raises(ValueError, match="new_levels=\"refuse\" cannot refuse: the group 'city'"):
        refusing.fit(CITIES[:, 1:], IN_CITIES)
    with pytest.raises(ValueError, match='new_levels="refuse" cannot refuse'):
        model.set_params(new_levels="refuse").predict(CITIES[:3, 1:])
    model = BayesianLinearRegression(prior_groups="feature", random_state=0)
    assert not model.fit(X, NUMBERS)._levels


def test_slopes_of_a_new_level_are_said_to_be_zero():
    both = np.hstack([CITIES, INDICATORS * X[:, 1:]])
    groups = {"city": range(LEVELS), "slope": range(LEVELS + 1, 2 * LEVELS + 1)}
    model = BayesianLinearRegression(prior_groups=groups, random_state=0).fit(both, IN_CITIES)
    new = np.hstack([NEW, np.zeros((200, LEVELS))])
    with pytest.warns(UserWarning, match="slopes of 'slope' of zero"):
        model.predict_interval(new)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict_interval(both[:5])


SLOPES = {
    "prior_groups": {"city": range(LEVELS), "slope": range(LEVELS + 1, 2 * LEVELS + 1)},
    "random_state": 0,
}


@pytest.mark.parametrize(
    ("sort", "numbers"),
    [(np.asarray, X[:, 0]), (sparse.csr_array, X[:, 0] > 0)],
    ids=["numbers", "sparse zeros and ones"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.quick("sparse zeros and ones")
def test_slopes_of_a_new_level_are_of_the_column_that_is_their_sum(sort, numbers):
    """Their sd is that of intercepts beside that of slopes, in proportion to the column."""
    slope = np.random.default_rng(9).standard_normal(LEVELS)
    noise = 0.1 * np.random.default_rng(10).standard_normal(N)
    y = EFFECT[MEMBER] + slope[MEMBER] * numbers + noise
    rows = np.hstack([INDICATORS, numbers[:, None], INDICATORS * numbers[:, None]])
    model = BayesianLinearRegression(**SLOPES).fit(sort(rows), y)
    assert model._levels["slope"].slope_of == LEVELS
    new = np.zeros((3, rows.shape[1]))
    new[:, LEVELS] = [0, 1, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sd = model.predict(sort(new), return_std=True)[1]
    spread = model.summary(groups=True)["mean"]
    expected = np.hypot(spread["city"], new[:, LEVELS] * spread["slope"])
    np.testing.assert_allclose(sd, expected, rtol=0.25)  # and means of twenty effects
    new[:, 0] = 1  # a city that was seen, with a slope that was not, but at 0
    model.set_params(new_levels="refuse")
    with pytest.raises(ValueError, match="row 1 of X has a level of 'slope'"):
        model.predict(sort(new))


def test_factors_are_found_in_sparse_rows_without_a_dense_copy(monkeypatch):
    """A factor, slopes of a column, rows with two members; stored zeros are no levels."""
    two = INDICATORS + np.roll(INDICATORS, 1, axis=1)
    rows = np.hstack([INDICATORS, X[:, :1], INDICATORS * X[:, :1], two])
    ends = np.cumsum([LEVELS, 1, LEVELS, LEVELS])
    groups = {"city": list(range(ends[0])), "slope": list(range(ends[1], ends[2]))}
    groups["two"] = list(range(ends[2], ends[3]))
    names = [f"x{column}" for column in range(ends[3])]
    stored = sparse.csr_array(rows + 1.0)  # of which a number is stored in each place
    stored.data -= 1.0
    found, why = levels_of(tallies_of(groups, InMemory.of(rows, NUMBERS)), groups, names)
    assert list(found) == ["city", "slope"]
    assert found["slope"].slope_of == LEVELS
    assert why == {"two": "some rows have several of its columns"}
    seen = []
    del groups["two"]  # of which it is asked where factors within it may end
    monkeypatch.setattr(one_hot, "dense", lambda X: seen.append(X.shape) or X.toarray())
    for kept in (sparse.csr_array(rows), stored):
        data = replace(InMemory.of(rows, NUMBERS), X=kept, sparse_rows=True)
        assert levels_of(tallies_of(groups, data), groups, names)[0] == found
    assert all(n == 100 or columns < LEVELS for n, columns in seen)


def test_a_stream_knows_the_levels_of_its_chunks():
    stream = BayesianLinearRegression(**GROUPS)
    for rows in np.array_split(np.arange(N), 4):
        stream.partial_fit(CITIES[rows], IN_CITIES[rows])
    new, known = (np.diff(stream.predict_interval(rows)).mean() for rows in (NEW, CITIES))
    assert new > 1.5 * known


# -- a prediction is a distribution -----------------------------------------------------------


@pytest.mark.parametrize(
    ("cls", "y"),
    [
        (BayesianLinearRegression, NUMBERS),
        (BayesianRobustRegressor, NUMBERS),
        (BayesianPoissonRegressor, RNG.poisson(MEAN / EXPOSURE)),
        (BayesianNegativeBinomialRegressor, SPREAD_COUNTS),
        (BayesianGammaRegressor, AMOUNTS),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
@pytest.mark.quick("BayesianLinearRegression", "BayesianPoissonRegressor", "BayesianGammaRegressor")
def test_quantiles_draws_and_moments_agree(cls, y):
    model = cls(random_state=0).fit(X, y)
    rows = X[:50]
    quantiles = model.predict_quantiles(rows, [0.025, 0.25, 0.75, 0.975])
    assert (np.diff(quantiles) >= 0).all()
    np.testing.assert_allclose(quantiles[:, [0, 3]], model.predict_interval(rows), rtol=1e-6)
    draws = model.predict_draws(rows)
    assert draws.shape == (model.draws_[..., 0].size, 50)
    for q, ends in zip((0.025, 0.25, 0.75, 0.975), quantiles.T, strict=True):
        below = (draws <= ends).mean(axis=0)  # of counts at least q
        error = 5 * np.sqrt(q * (1 - q) / len(draws))
        assert (below > q - error).all()
        if not model.model_.counts:
            assert (below < q + error).all()
    each = model.predict_draws(rows, kind="mean")
    # `predict` has a few draws in place of all
    apart = np.abs(each.mean(axis=0) - model.predict(rows))
    assert (apart < 0.02 * each.std(axis=0)).all()
    ends = model.predict_interval(rows, kind="mean")
    np.testing.assert_allclose(ends.T, np.quantile(each, [0.025, 0.975], axis=0), rtol=1e-6)
    assert (np.diff(ends) < np.diff(model.predict_interval(rows))).all()
    with pytest.raises(ValueError, match="kind must be one of"):
        model.predict_draws(rows, kind="line")
    with pytest.raises(ValueError, match="levels must be probabilities"):
        model.predict_quantiles(rows, [0.5, 1.0])


def test_labels_are_drawn_with_their_probabilities():
    model = BayesianLogisticRegression(n_predict_draws=None, random_state=0)
    model.fit(X, np.array(["a", "b", "c"])[GRADES])
    labels, p = model.predict_draws(X[:50]), model.predict_proba(X[:50])
    assert labels.shape == (model.draws_[..., 0].size, 50)
    for k, label in enumerate(model.classes_):
        share = (labels == label).mean(axis=0)
        error = 5 * np.sqrt(p[:, k] * (1 - p[:, k]) / len(labels)) + 1e-3
        assert (np.abs(share - p[:, k]) < error).all()
    np.testing.assert_array_equal(labels, model.predict_draws(X[:50]))
