"""Bayesian updating: the posterior of one chunk is the prior of the next."""

import pickle

import numpy as np
import pytest
from conftest import differences, leaves
from scipy import sparse
from sklearn.base import clone

from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression, VariationalEM
from skbayes_sg.data import InMemory
from skbayes_sg.linalg import FULL
from skbayes_sg.models import Softmax
from skbayes_sg.posterior import Posterior

ROWS, FEATURES = 600, 4
RNG = np.random.default_rng(0)
X = RNG.standard_normal((ROWS, FEATURES)) * [1.0, 10.0, 0.1, 3.0] + 2
Y = X @ [1.0, -0.2, 3.0, 0.0] + 100 + 2 * RNG.standard_normal(ROWS)
Z = (X - 2) @ [0.5, 0.1, -4.0, 0.3]
LABELS = np.where(Z + RNG.logistic(size=ROWS) > 0, "yes", "no")
SPECIES = np.array(["a", "b", "c"])[
    (np.stack([Z, -Z, 0 * Z], axis=1) + RNG.gumbel(size=(ROWS, 3))).argmax(axis=1)
]
NOISE = (1e-6, 1e-6)
LINEAR = BayesianLinearRegression(random_state=0, prior_precision=1.0, noise_prior=NOISE)
GIVEN = BayesianLinearRegression(noise_variance=4.0, prior_precision=0.3, random_state=0)
LOGISTIC = BayesianLogisticRegression(random_state=0, prior_precision=1.0)
EXACT = pytest.mark.parametrize("model", [LINEAR, GIVEN], ids=["sampled noise", "given noise"])
EACH = pytest.mark.parametrize("model", [LINEAR, LOGISTIC], ids=["linear", "logistic"])


def y_of(model):
    return LABELS if isinstance(model, BayesianLogisticRegression) else Y


def after(model, *chunks, data=X, weight=None, y=None):
    """A new estimator after chunks of rows."""
    model, y = clone(model), y_of(model) if y is None else y
    more = {} if isinstance(model, BayesianLinearRegression) else {"classes": np.unique(y)}
    for rows in chunks:
        own = None if weight is None else weight[rows]
        model.partial_fit(data[rows], y[rows], sample_weight=own, **more)
    return model


def chunks_of(size, rows=ROWS):
    return np.split(np.arange(rows), range(size, rows, size))


def off(model, other):
    """Distance of the means and largest variance ratio, in directions that `other` whitens."""
    ours, theirs = model.posterior_, other.posterior_
    root = np.linalg.cholesky(theirs.precision)
    shift = root.T @ (ours.mean - theirs.mean)
    inverse = np.linalg.inv(root)
    values = np.linalg.eigvalsh(inverse @ ours.precision @ inverse.T)
    return np.sqrt(np.mean(shift**2)), np.abs(np.log(values)).max()


# -- linear regression: exact -----------------------------------------------------------------


def closed_form(model, X, y, weight, repeats):
    """Precision, mean, and shape and rate of the noise (Karagiannis, section 4)."""
    columns = np.column_stack([X, np.ones(len(X))])
    at_means = np.average(columns, axis=0, weights=repeats)  # where the intercept has its prior
    prior = np.diag(np.append(np.full(X.shape[1], model.prior_precision), 0.0))
    prior += model.intercept_precision * np.outer(at_means, at_means)
    scale = model.noise_variance or 1.0
    precision = prior + (columns.T * weight) @ columns / scale
    mean = np.linalg.solve(precision, columns.T @ (weight * y) / scale)
    rest = y - columns @ mean
    shape, rate = NOISE
    energy = weight @ rest**2 + mean @ prior @ mean
    return precision, mean, (shape + weight.sum() / 2, rate + energy / 2)


@EXACT
@pytest.mark.parametrize("size", [1, 250])
@pytest.mark.quick("250")
def test_linear_regression_is_that_of_all_rows_for_any_chunks_in_any_order(model, size):
    weight = np.random.default_rng(1).integers(0, 3, ROWS).astype(float)
    chunks = [rows for rows in chunks_of(size)[::-1] if weight[rows].any()]
    found = after(model, *chunks, weight=weight)
    precision, mean, noise = closed_form(model, X, Y, weight, weight)
    sd = np.sqrt(np.diag(np.linalg.inv(precision)))
    np.testing.assert_allclose(found.posterior_.mean / sd, mean / sd, atol=1e-7)
    np.testing.assert_allclose(found.posterior_.precision, precision, rtol=1e-9)
    np.testing.assert_allclose(np.append(found.coef_, found.intercept_), found.posterior_.mean)
    if model.noise_variance is None:
        np.testing.assert_allclose(found.posterior_.noise, noise, rtol=1e-8)
        assert found.noise_variance_ == pytest.approx(noise[1] / (noise[0] - 1))
        sd = sd * np.sqrt(found.noise_variance_)
    np.testing.assert_allclose(found.coef_std_, sd[:-1], rtol=1e-8)
    assert found.n_samples_seen_ == sum(map(len, chunks))


@EXACT
def test_forgetting_discounts_the_rows_and_not_the_prior(model):
    found = after(model.set_params(forgetting_factor=0.7), *chunks_of(100))
    model.set_params(forgetting_factor=1.0)
    weight = 0.7 ** np.repeat(np.arange(5, -1, -1), 100)
    precision, mean, noise = closed_form(model, X, Y, weight, np.ones(ROWS))
    np.testing.assert_allclose(found.posterior_.precision, precision, rtol=1e-9)
    np.testing.assert_allclose(found.posterior_.mean, mean, rtol=1e-6)
    if model.noise_variance is None:
        np.testing.assert_allclose(found.posterior_.noise, noise, rtol=1e-8)


def test_forgetting_discounts_rows_of_logistic_regression_that_wait_and_that_do_not():
    rows = np.random.default_rng(2).permutation(np.tile(np.arange(ROWS), 3))
    chunks = np.split(rows, [500, 1000, 1400])
    model = clone(LOGISTIC).set_params(forgetting_factor=0.5)
    found = after(model, *chunks)
    weight = np.repeat([0.125, 0.25, 0.5, 1.0], [500, 500, 400, 400])
    data, labels = X[rows], LABELS[rows]
    exact = clone(LOGISTIC).partial_fit(data, labels, ["no", "yes"], sample_weight=weight)
    distance, ratio = off(found, exact)
    assert distance < 0.05
    assert ratio < 0.05
    assert off(after(LOGISTIC, *chunks), exact)[1] > 0.5


def test_before_the_noise_variance_has_a_mean_nothing_is_made_up():
    model = after(LINEAR, [0])
    assert np.isinf(model.noise_variance_)
    assert np.isinf(model.coef_std_).all()
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(after(LINEAR, [0], [1], [2]).coef_std_).all()


# -- logistic regression ----------------------------------------------------------------------


@pytest.mark.usefixtures("_short_runs_may_warn")  # R-hat of 50 draws passes 1.05 at times
@pytest.mark.parametrize("labels", [LABELS, SPECIES], ids=["two", "three"])
def test_the_posterior_of_one_chunk_is_that_of_a_fit(labels, seed):
    model = after(LOGISTIC, np.arange(ROWS), y=labels)
    drawn = BayesianLogisticRegression(
        "hmc", n_draws=50, random_state=seed, prior_precision=1.0
    ).fit(X, labels)
    draws = drawn.draws_.reshape(-1, model.model_.dim)
    variance = draws.var(axis=0)
    own = model.posterior_.covariance.diagonal()
    error = 5 / np.sqrt(len(draws))
    # the normal distribution is off by some hundredths: the posterior is slightly skewed
    assert np.abs((model.posterior_.mean - draws.mean(axis=0)) / np.sqrt(variance)).max() < (
        0.02 + error
    )
    np.testing.assert_allclose(own / variance, 1.0, atol=0.03 + np.sqrt(2) * error)


@pytest.mark.parametrize(("n_classes", "scale"), [(2, 0.8), (3, 0.3), (6, 0.2), (9, 0.2)])
def test_gradient_and_curvature_are_means_over_normal_draws(n_classes, scale, seed):
    rng = np.random.default_rng(seed)
    model, y = Softmax(2, n_classes), rng.integers(n_classes, size=30)
    posterior = Posterior.of(model, rng.standard_normal((30, 2)), model.encode(y, X.dtype))
    theta, normals = rng.standard_normal((1, model.dim)), rng.standard_normal((4000, model.dim))
    root = scale * np.tril(rng.standard_normal((model.dim, model.dim))) / np.sqrt(model.dim)
    gradient, curvature = posterior.expected_under_gaussian(theta, root)
    each = posterior.full_gradient(theta + normals @ root.T)
    error = np.abs(gradient - each.mean(axis=0)) / each.std(axis=0)
    assert error.max() < 5 / np.sqrt(4000) + 0.01  # of the rule for many classes
    ours, there = (
        np.trace(C.dense()) for C in (curvature, posterior.expand(theta, FULL).curvature)
    )
    found = [
        posterior.expand(theta + z @ root.T, FULL).curvature.diagonal().sum() for z in normals[:400]
    ]
    assert abs(ours - np.mean(found)) < 5 * np.std(found) / 20 + 0.01 * abs(there - ours)


@pytest.mark.parametrize("n_classes", [2, 3, 9])
def test_a_weight_repeats_a_row_in_the_mean_over_normal_draws(n_classes):
    rng = np.random.default_rng(0)
    model, y = Softmax(2, n_classes), rng.integers(n_classes, size=12)
    X, y, times = rng.standard_normal((12, 2)), model.encode(y, np.float64), rng.integers(1, 4, 12)
    theta, root = rng.standard_normal((1, model.dim)), 0.3 * np.eye(model.dim)
    weighted = Posterior.of(model, X, y, 1.0, times.astype(float)).expected_under_gaussian(
        theta, root
    )
    repeated = Posterior.of(
        model, X.repeat(times, axis=0), y.repeat(times)
    ).expected_under_gaussian(theta, root)
    np.testing.assert_allclose(weighted[0], repeated[0], rtol=1e-9)
    np.testing.assert_allclose(weighted[1].dense(), repeated[1].dense(), rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("_short_runs_may_warn")
def test_separable_labels_leave_a_wide_posterior(seed):
    """Its skewness is out of reach of a normal distribution, its place and its width are not."""
    data = np.random.default_rng(seed).standard_normal((60, 3))
    labels = np.where(data[:, 0] > 0, "yes", "no")
    model = clone(LOGISTIC).set_params(prior_precision=0.01)
    drawn = clone(model).set_params(sampler="hmc", n_draws=80).fit(data, labels)
    found = model.partial_fit(data, labels, classes=["no", "yes"])
    assert abs(found.coef_[0, 0] - drawn.coef_[0, 0]) < 0.4 * drawn.coef_std_[0, 0]
    assert 0.6 < found.coef_std_[0, 0] / drawn.coef_std_[0, 0] < 1.1
    assert np.isfinite(after(model, *chunks_of(10, 60), data=data, y=labels).coef_).all()


def off_its_own_means(model, data, labels, weight=None):
    """How far gradient and curvature of all rows, in their means over it, are from 0 and its own.

    In whitened directions: the root mean square of the step that the gradient wants, and the
    largest logarithm of a ratio of variances.
    """
    distribution, softmax = model.posterior_.distribution, model.model_
    y = softmax.encode(np.searchsorted(model.classes_, labels), data.dtype)
    prior = softmax.prior(model.prior_precision_, centre=data.mean(axis=0))
    rows = InMemory.of(data, y, weight)
    covariance = distribution.operator.inverse().dense()
    root = np.linalg.cholesky(covariance)
    gradient, curvature = Posterior(softmax, rows, prior).expected_under_gaussian(
        distribution.mean[None], root
    )
    values = np.linalg.eigvalsh(root.T @ curvature.dense() @ root)
    return np.sqrt(np.mean((gradient @ root) ** 2)), np.abs(np.log(values)).max()


@pytest.mark.parametrize("size", [1, 7, 300])
@pytest.mark.filterwarnings("ignore:no normal distribution")  # at the beginning that is so
@pytest.mark.quick("7", "300")
def test_chunks_of_few_rows_lose_nothing(size):
    found = after(LOGISTIC, *chunks_of(size))
    distance, ratio = off_its_own_means(found, X, LABELS)
    assert distance < 5e-3
    assert ratio < 0.02  # of the distance that is allowed before rows are expanded again
    assert found.n_samples_seen_ == ROWS


def test_many_chunks_lead_to_the_posterior_of_all_rows_in_any_order():
    rows = np.random.default_rng(3).permutation(np.tile(np.arange(ROWS), 20))
    exact = after(LOGISTIC, rows)
    for order in (rows, rows[::-1]):
        distance, ratio = off(after(LOGISTIC, *np.split(order, 60)), exact)
        assert distance < 0.03
        assert ratio < 0.05


@pytest.mark.filterwarnings("ignore:the truth moves")  # as sorted rows do
def test_a_first_chunk_may_lack_classes_and_later_ones_too():
    of_a = np.flatnonzero(SPECIES == "a")
    rest = np.flatnonzero(SPECIES != "a")
    model = clone(LOGISTIC).partial_fit(X[of_a[:1]], SPECIES[of_a[:1]], classes=list("abc"))
    assert model.predict_proba(X[:2]).shape == (2, 3)
    model.partial_fit(X[of_a[1:]], SPECIES[of_a[1:]]).partial_fit(X[rest], SPECIES[rest])
    distance, _ = off(model, after(LOGISTIC, np.arange(ROWS), y=SPECIES))
    assert distance < 1e-3


def test_classes_are_named_first_and_stay():
    with pytest.raises(ValueError, match="classes must be given in the first call"):
        clone(LOGISTIC).partial_fit(X, LABELS)
    model = after(LOGISTIC, np.arange(50))
    with pytest.raises(ValueError, match="not those of the first call"):
        model.partial_fit(X, LABELS, classes=["no", "yes", "perhaps"])
    with pytest.raises(ValueError, match="not among the classes"):
        model.partial_fit(X, np.where(LABELS == "no", "maybe", LABELS))


# -- rows -------------------------------------------------------------------------------------


@EACH
def test_a_weight_of_two_is_the_row_twice(model):
    weight = np.where(np.arange(ROWS) % 3 == 0, 2.0, 1.0)
    twice = np.sort(np.append(np.arange(ROWS), np.arange(0, ROWS, 3)))
    weighted = after(model, *chunks_of(300), weight=weight)
    repeated = after(model, *np.split(twice, [400]))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6)
    np.testing.assert_allclose(weighted.coef_std_, repeated.coef_std_, rtol=1e-6)
    assert np.abs(weighted.coef_ / after(model, *chunks_of(300)).coef_ - 1).max() > 1e-4


@EACH
def test_sparse_and_float32_chunks_are_those_numbers(model):
    data = np.where(np.abs(X - 2) < 0.5, 0.0, X).astype(np.float32)
    wide = after(model, *chunks_of(150), data=data.astype(np.float64))
    for other in (sparse.csr_array(data.astype(np.float64)), sparse.csr_matrix(data), data):
        found = after(model, *chunks_of(150), data=other)
        np.testing.assert_allclose(found.coef_, wide.coef_, rtol=0.01, atol=1e-4)
        np.testing.assert_allclose(found.coef_std_, wide.coef_std_, rtol=1e-3)


def test_sparse_chunks_that_stay_sparse_join_dense_rows_that_wait(monkeypatch):
    data = sparse.csr_array(np.where(np.abs(X - 2) < 0.5, 0.0, X))
    whole = after(LOGISTIC, np.arange(ROWS), data=data)
    model = clone(LOGISTIC).partial_fit(data[:10], LABELS[:10], classes=["no", "yes"])
    monkeypatch.setattr("skbayes_sg.data.rows.bytes_to_keep", lambda: 0)
    for rows in (slice(10, 300), slice(300, ROWS)):
        model.partial_fit(data[rows], LABELS[rows])
    assert sparse.issparse(model._stream.kept.blocks[-1].X)
    assert off(model, whole)[0] < 5e-3


@EACH
@pytest.mark.quick("logistic")
def test_above_a_thousand_parameters_the_precision_is_a_diagonal(model):
    data = np.random.default_rng(4).standard_normal((100, 1001))
    whole = after(model, np.arange(100), data=data)
    halves = after(model, *chunks_of(50, 100), data=data)
    for one in (whole, halves):
        precision = one.posterior_.precision
        assert np.count_nonzero(precision) == len(precision)
    assert halves.n_samples_seen_ == 100


# -- draws, copies, and what stays ------------------------------------------------------------


@EACH
def test_draws_are_of_the_present_posterior_and_are_not_kept(model):
    model = after(model, np.arange(ROWS))
    assert not {"draws_", "coef_samples_"} & set(vars(model))
    assert model.draws_.shape == (8, 256, model.model_.dim)
    model.set_params(n_draws=500)
    np.testing.assert_array_equal(model.draws_, model.draws_)
    n = model.posterior_.distribution.operator.dim
    draws = model.draws_.reshape(-1, model.model_.dim)[:, :n]
    sd = np.sqrt(model.posterior_.covariance.diagonal())
    # moved to these moments, exactly where the noise is known
    of_noise = 0.0 if model.posterior_.noise is None else 1 / np.sqrt(model.posterior_.noise[0])
    assert np.abs((draws.mean(axis=0) - model.posterior_.mean) / sd).max() < 1e-9 + of_noise / 200
    np.testing.assert_allclose(draws.std(axis=0) / sd, 1.0, atol=1e-9 + of_noise / 50)
    assert model.coef_samples_.shape[-1] == FEATURES
    assert model.intercept_samples_.shape[:2] == (8, 500)
    assert model.set_params(n_chains=2, n_draws=6).draws_.shape[:2] == (2, 6)
    with pytest.raises(AttributeError, match="no draws_ before fit"):
        _ = clone(model).draws_


@pytest.mark.parametrize("columns", [FEATURES, 400], ids=["a matrix", "a diagonal"])
@pytest.mark.quick("a matrix")
def test_coefficients_of_three_classes_are_against_their_mean(columns):
    """Their standard deviations are those of the draws, without what only the prior knows."""
    data = np.zeros((ROWS, columns))
    data[:, :FEATURES] = X
    model = after(LOGISTIC, np.arange(ROWS), data=data, y=SPECIES).set_params(n_draws=500)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(model.intercept_.sum(), 0, atol=1e-9)
    found = model.coef_std_[:, :FEATURES]
    draws = model.coef_samples_[..., :FEATURES].std(axis=(0, 1))
    np.testing.assert_allclose(draws / found, 1.0, atol=5 / np.sqrt(8000))
    table = model.summary()["sd"].to_numpy().reshape(3, -1)[:, :FEATURES]
    np.testing.assert_allclose(table, draws)


def test_noise_variances_are_drawn_too():
    model = after(LINEAR, np.arange(ROWS)).set_params(n_draws=500)
    drawn = model.noise_variance_samples_
    assert abs(drawn.mean() / model.noise_variance_ - 1) < 5 * np.sqrt(2 / ROWS / 4000)
    assert drawn.std() == pytest.approx(model.noise_variance_ * np.sqrt(2 / ROWS), rel=0.1)
    mean, std = model.predict(X, return_std=True)
    assert np.mean(np.abs(Y - mean) < 1.645 * std) == pytest.approx(0.9, abs=0.05)
    assert (after(GIVEN, np.arange(9)).noise_variance_samples_ == 4.0).all()


@EACH
def test_a_stream_goes_on_out_of_a_pickle(model):
    first, *others = chunks_of(90)
    one = after(model, first)
    for rows in others:
        twin = pickle.loads(pickle.dumps(one))
        assert not differences(leaves(one), leaves(twin))
        for each in (one, twin):
            each.partial_fit(X[rows], y_of(model)[rows])
        np.testing.assert_array_equal(one.draws_, twin.draws_)
        one = twin


@EACH
def test_an_interrupted_chunk_leaves_the_model_as_it_was(model, monkeypatch):
    def interrupt(*given):
        raise KeyboardInterrupt

    more = {} if model is LINEAR else {"classes": ["no", "yes"]}
    for one in (clone(model), after(model, np.arange(300))):
        before = leaves(one)
        with monkeypatch.context() as patch:
            patch.setattr("skbayes_sg.streams.bayesian_updating.updated", interrupt)
            with pytest.raises(KeyboardInterrupt):
                one.partial_fit(X, y_of(model), **more)
        assert not differences(before, leaves(one))


# -- after a fit, and under a prior that is learned -------------------------------------------


@EACH
def test_a_stream_goes_on_from_a_fit(model):
    first, second = chunks_of(300)
    one = clone(model).fit(X[first], y_of(model)[first])
    one.partial_fit(X[second], y_of(model)[second])
    whole = after(model, np.arange(ROWS))
    distance, ratio = off(one, whole)
    assert distance < 0.05
    assert ratio < (0.15 if model is LOGISTIC else 1e-6)  # 300 rows are settled early
    assert one.n_samples_seen_ == ROWS
    assert one.draws_.shape[:2] == (8, 256)
    assert not hasattr(one, "sampler_")
    one.fit(X[first], y_of(model)[first])
    np.testing.assert_array_equal(one.draws_, clone(model).fit(X[first], y_of(model)[first]).draws_)


@EACH
def test_a_learned_prior_is_that_of_the_first_chunk(model):
    em = VariationalEM(n_updates=40)  # the intercept's prior is at the means of the columns
    model = clone(model).set_params(prior_precision=em, intercept_precision=1e-9)
    chunks = chunks_of(300)
    streamed = after(model, *chunks)
    fitted = clone(model).fit(X[chunks[0]], y_of(model)[chunks[0]])
    np.testing.assert_allclose(streamed.prior_precision_, fitted.prior_precision_, rtol=0.3)
    assert streamed.prior_precision_blocks_.keys() == {"coef"}
    given = clone(model).set_params(prior_precision=streamed.prior_precision_[: X.shape[1]])
    np.testing.assert_allclose(streamed.coef_, after(given, *chunks).coef_, rtol=1e-6)


@EACH
def test_a_learned_prior_needs_rows_and_says_so(model):
    model = clone(model).set_params(prior_precision=VariationalEM("feature", n_updates=12))
    with pytest.raises(ValueError, match="first chunk, which needs at least 2 rows"):
        after(model, [0])
    model.set_params(prior_precision=VariationalEM(n_updates=12))
    with pytest.warns(UserWarning, match="coef"):
        after(model, [*np.flatnonzero(LABELS == "no")[:2], *np.flatnonzero(LABELS == "yes")[:2]])


# -- refusals ---------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"forgetting_factor": 0.0}, ValueError, r"forgetting_factor must lie in \(0, 1\]"),
        ({"forgetting_factor": 1.1}, ValueError, r"forgetting_factor must lie in \(0, 1\]"),
        ({"forgetting_factor": "slowly"}, TypeError, "forgetting_factor must be a number"),
        ({"fit_intercept": False}, ValueError, "must stay as in the first chunk"),
    ],
)
def test_what_a_stream_refuses(model, parameters, error, message):
    one = after(model, np.arange(300))
    before = leaves(one)
    with pytest.raises(error, match=message):
        one.set_params(**parameters).partial_fit(X, y_of(model))
    assert not differences(before, leaves(one.set_params(**model.get_params())))


@EACH
def test_values_whose_squares_overflow_are_refused(model):
    with pytest.raises(ValueError, match="squares overflow"):
        after(model, np.arange(ROWS), data=X * 1e200)
