import tracemalloc
import warnings

import numpy as np
import pytest
from conftest import z_scores
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from test_low_rank import text

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
    VariationalEM,
)
from skbayes_sg.diagnostics import ess_mean
from skbayes_sg.linalg import FULL
from skbayes_sg.models import Linear, NegativeBinomial, Poisson, Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.control_variates import Expanded
from skbayes_sg.posterior.gaussian import find_mode
from skbayes_sg.posterior.nonzero_columns import NonzeroColumns

SHORT = {"n_chains": 4, "n_draws": 10, "burn_in": 5, "thin": 1, "random_state": 0}


@pytest.fixture
def no_small_ones(monkeypatch):
    monkeypatch.setattr("skbayes_sg.data.rows.bytes_to_keep", lambda: 0)


def rare(n_rows, n_columns, entries=10):
    """CSR rows of few entries, most of them in a column of their own, and labels."""
    rng = np.random.default_rng(0)
    columns = rng.integers(n_columns, size=n_rows * entries)
    ends = np.arange(0, len(columns) + 1, entries)
    values = rng.standard_normal(len(columns))
    X = sparse.csr_array((values, columns, ends), shape=(n_rows, n_columns))
    return X, (X.sum(axis=1) + rng.logistic(size=n_rows) > 0).astype(int)


def every_column(n_rows, n_columns, seed=0):
    """Rows like text in which every column occurs, and their linear predictor."""
    X, _ = text(n_rows, n_columns, seed=seed)
    X[np.arange(n_columns) % n_rows, np.arange(n_columns)] += 1.0
    return X, X @ np.random.default_rng(seed).standard_normal(n_columns) / 2


def quiet(model, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data)


MODELS = {
    "logistic": lambda p: Softmax(p, 2),
    "three classes": lambda p: Softmax(p, 3, fit_intercept=False),
    "Poisson": Poisson,
    "negative binomial": NegativeBinomial,
    "linear": lambda p: Linear(p, True, None, (1.0, 1.0)),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("kind", MODELS)
def test_sums_over_rows_of_levels_are_those_of_dense_rows(kind, weighted, no_small_ones):
    """Two numbers a row: a column for each of forty levels, and one that is their slope."""
    rng, n, p = np.random.default_rng(0), 300, 41
    X = np.zeros((n, p))
    X[np.arange(n), rng.integers(40, size=n)] = 1.0
    X[:, 40] = rng.standard_normal(n)
    model = MODELS[kind](p)
    codes = rng.integers(3 if kind == "three classes" else 2, size=n)
    y = model.encode(codes, X.dtype) if isinstance(model, Softmax) else codes.astype(float)
    weight = rng.uniform(0.5, 2.0, n) if weighted else None
    ours, dense = (Posterior.of(model, rows, y, 1.3, weight) for rows in (sparse.csr_array(X), X))
    assert ours.data.sample.sparse_rows
    assert dense.data.sample.is_dense
    theta, root = 0.3 * rng.standard_normal((1, model.dim)), 0.1 * np.eye(model.dim)
    root[-1, :] += 0.02
    pairs = [(p.expand(theta, FULL)) for p in (ours, dense)]
    for name in ("log_prob", "gradient"):
        found, expected = (getattr(one, name) for one in pairs)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    found, expected = (one.curvature.dense() for one in pairs)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    if model.conjugate:
        return
    for observed in {False, model.has_other_curvature}:
        pairs = [p.expected_under_gaussian(theta, root, observed) for p in (ours, dense)]
        np.testing.assert_allclose(pairs[0][0], pairs[1][0], rtol=1e-7, atol=1e-8)
        found, expected = (curvature.dense() for _, curvature in pairs)
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)
    found, expected = (
        Expanded.at(p, find_mode(p, 0 * theta, np.random.default_rng(0))) for p in (ours, dense)
    )
    u = rng.standard_normal((4, model.dim))
    for one, two in zip(found.logdensity_and_grad(u), expected.logdensity_and_grad(u), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_nothing_of_rows_times_columns_is_made():
    X, y = rare(1500, 40_000, entries=3)  # 480 MB if dense
    few = SHORT | {"n_chains": 2, "n_draws": 4}
    tracemalloc.start()
    model = quiet(BayesianLogisticRegression(**few), X, y)
    proba = model.predict_proba(X[:100])
    model.predict_interval(X[:100])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.draws_.shape == (2, 4, 40_001)
    assert peak < 6e7
    assert proba.shape == (100, 2)


def test_all_forms_of_a_posterior_have_the_prior_that_it_was_given():
    X, y = rare(300, 1200)
    posterior = Posterior.of(Softmax(1200, 2), X, np.where(y, 1.0, -1.0))
    posterior = NonzeroColumns(posterior, posterior.prior, posterior.data.sample.nonzero_columns)
    forms = ("single", "split", "of_sample")
    before = [getattr(posterior, form).prior.precision for form in forms]
    prior = posterior.prior.with_precision(3 * before[0])
    moved = posterior.with_prior(prior)
    for form, precision in zip(forms, before, strict=True):
        assert getattr(moved, form).prior is prior
        np.testing.assert_array_equal(getattr(posterior, form).prior.precision, precision)


def test_numbers_of_a_row_in_any_order_and_in_parts_are_the_same_row(no_small_ones):
    X, y = rare(1100, 1200, entries=4)
    order, given = np.arange(X.nnz).reshape(-1, 4)[:, ::-1].ravel(), X.copy()
    given.sum_duplicates()
    parts = sparse.csr_array(
        (np.repeat(X.data[order] / 2, 2), np.repeat(X.indices[order], 2), 2 * X.indptr), X.shape
    )
    kept = parts.copy()
    fits = [
        quiet(BayesianLogisticRegression(**SHORT), rows, y).draws_ for rows in (given, X, parts)
    ]
    np.testing.assert_array_equal(fits[1], fits[0])
    np.testing.assert_array_equal(fits[2], fits[0])
    np.testing.assert_array_equal(parts.data, kept.data)
    np.testing.assert_array_equal(parts.indices, kept.indices)


def test_columns_that_never_occur_are_in_the_units_of_the_noise():
    """Given its variance they are normal, of that variance over their precision."""
    rng, model = np.random.default_rng(0), Linear(5, True, None, (1.0, 1.0))
    X, precision = rng.standard_normal((50, 5)) * [1, 1, 0, 1, 0], np.array([1.0, 1, 4, 1, 9, 1, 1])
    data = Posterior.of(model, X, X[:, 0]).data
    posterior = Posterior(model, data, model.prior(precision))
    columns = NonzeroColumns(posterior, posterior.prior, np.array([0, 1, 3]))
    here = rng.standard_normal((2, 5000, 5))
    here[..., -1] = rng.choice([-4.0, 0.0, 4.0], (2, 5000))  # log noise variances
    draws = columns.completed([here])
    np.testing.assert_array_equal(draws[..., [0, 1, 3, 5, 6]], here)
    normal = draws[..., [2, 4]] * np.sqrt(precision[[2, 4]]) / np.exp(0.5 * here[..., -1:])
    for log_noise in (-4.0, 0.0, 4.0):
        some = normal[here[..., -1] == log_noise]
        assert np.abs(z_scores(some, 0.0)).max() < 5
        assert np.abs(z_scores(some**2, 1.0)).max() < 5


@pytest.mark.slow
def test_the_prior_is_learned_by_one_chain_of_each_group(no_small_ones, monkeypatch):
    monkeypatch.setattr("skbayes_sg.inference.updates.SELF_AVERAGING", 1000)
    X, eta = every_column(300, 1200)
    y = eta + np.random.default_rng(4).standard_normal(300)
    em = VariationalEM(n_updates=60)
    model = BayesianLinearRegression(noise_variance=1.0, prior_precision=em, **SHORT)
    learned = quiet(model, sparse.csr_array(X), y).prior_precision_
    share = learned[:1200] / learned[0]  # in units of the columns
    best = max(np.geomspace(0.5, 50, 400), key=lambda p: evidence(X / share**0.5, y, p))
    learned = learned[0]
    assert abs(np.log(learned / best)) < 0.05


def evidence(X, y, precision):
    """Log evidence of a prior precision, with the default prior of the intercept."""
    C = X @ X.T / precision + 1 / 0.01 + np.eye(len(y))
    return -0.5 * np.linalg.slogdet(C)[1] - 0.5 * y @ np.linalg.solve(C, y)


def test_linear_regression_has_the_exact_posterior(no_small_ones, seed):
    X, eta = every_column(100, 600, seed)
    y = eta + np.random.default_rng(seed).standard_normal(100)
    model = BayesianLinearRegression(
        noise_variance=1.0, prior_precision=3.0, intercept_precision=0.5, random_state=seed
    ).fit(sparse.csr_array(X), y)
    X1 = np.column_stack([X, np.ones(100)])
    at_means = X1.mean(axis=0)  # where the intercept has its prior
    precision = X1.T @ X1 + np.diag(np.append(np.full(600, 3.0), 0.0))
    precision += 0.5 * np.outer(at_means, at_means)
    mean = np.linalg.solve(precision, X1.T @ y)
    # in directions of the posterior, from the one that rows determine best to one of the prior
    values, axes = np.linalg.eigh(precision)
    along = (model.draws_ - mean) @ axes * np.sqrt(values)
    # matched draws have the exact mean, and each coordinate of the chains its exact spread
    assert np.abs(along.mean(axis=(0, 1))).max() < 0.01
    squares = along**2
    z = (squares.mean(axis=(0, 1)) - 1) / squares.std(axis=(0, 1)) * np.sqrt(ess_mean(squares))
    assert np.abs(z).max() < 6
    assert np.mean(squares) == pytest.approx(1, abs=0.01)


def test_columns_of_zeros_follow_the_prior(no_small_ones):
    X, eta = every_column(100, 1300)
    X[:, 1100:] = 0
    y = (eta > 0).astype(int)
    mean = np.where(np.arange(1300) < 1200, 0.0, 5.0)
    model = BayesianLogisticRegression(prior_precision=4.0, prior_mean=mean, random_state=0)
    coef = model.fit(sparse.csr_matrix(X), y).coef_samples_[:, :, 0, 1100:]
    assert coef.shape[-1] == 200
    n = coef.size
    assert abs((coef - mean[1100:]).mean()) < 5 * 0.5 / np.sqrt(n)
    assert abs(coef.var() * 4 - 1) < 0.05 or abs(coef[..., :100].var() * 4 - 1) < 5 * np.sqrt(2 / n)
    within = (coef - mean[1100:]).reshape(-1, 200)
    assert abs(np.mean(within**2) * 4 - 1) < 5 * np.sqrt(2 / n)
    neighbours = np.corrcoef(within.T)[0, 1:]
    assert np.abs(neighbours).max() < 5 / np.sqrt(len(within))
    error = 0.5 / np.sqrt(len(within))
    np.testing.assert_allclose(model.coef_[0, 1100:], mean[1100:], atol=4.5 * error)
    assert model.prior_precision_.shape == (1301,)


def test_sparse_and_dense_rows_have_the_same_predictions(no_small_ones):
    X, eta = every_column(100, 1300)
    y, given = (eta > 0).astype(int), SHORT | {"prior_precision": 1.0}
    model = quiet(BayesianLogisticRegression(**given), sparse.csr_array(X), y)
    for method, options in {
        "predict_proba": {},
        "predict_interval": {},
        "predict_draws": {"kind": "mean"},
    }.items():
        ours, theirs = (
            getattr(model, method)(rows, **options) for rows in (sparse.csr_array(X), X)
        )
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    linear = quiet(BayesianLinearRegression(**given), sparse.csr_array(X), eta)
    for options in ({}, {"return_std": True}):
        ours, theirs = (linear.predict(rows, **options) for rows in (sparse.csr_array(X), X))
        np.testing.assert_allclose(ours, theirs, atol=1e-10)


@pytest.mark.usefixtures("as_drawn")
@pytest.mark.slow
def test_a_warm_start_goes_on_as_if_it_had_never_stopped(no_small_ones):
    X, eta = every_column(100, 1200)
    X[:, 1150:] = 0
    X, y = sparse.csr_array(X), (eta > 0).astype(int)
    given = SHORT | {"prior_precision": 1.0, "n_draws": 32}  # of 2 steps: a whole stretch
    once = quiet(BayesianLogisticRegression(**given | {"n_draws": 64}), X, y)
    twice = BayesianLogisticRegression(warm_start=True, **given)
    first = quiet(twice, X, y).draws_
    second = quiet(twice, X, y).draws_
    np.testing.assert_array_equal(once.draws_, np.concatenate([first, second], axis=1))
    elsewhere = quiet(BayesianLogisticRegression(n_jobs=2, **given), X, y)
    np.testing.assert_array_equal(elsewhere.draws_, first)


def test_what_memory_does_not_hold_is_said_and_theory_of_so_much_refused(
    no_small_ones, monkeypatch
):
    monkeypatch.setattr("skbayes_sg.inference.one_mode._MOST_BYTES", 4 * 1201 * 320)
    X, y = rare(60, 1200)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = BayesianLogisticRegression(
            prior_precision=1.0, burn_in=5, thin=1, random_state=0
        ).fit(X, y)
    expected = "32 chains keep 10 draws each of 1201 parameters, and not 40"
    assert any(expected in str(w.message) and "n_draws" in str(w.message) for w in said)
    assert model.draws_.shape == (32, 10, 1201)
    with pytest.raises(ValueError, match="1201 parameters"):
        model.predicted_covariance(X, y)


def test_a_large_sparse_matrix_is_no_table_on_disk():
    from skbayes_sg.data import is_stored

    assert not is_stored(sparse.csr_array((10**6, 10**6)))


def test_three_classes_and_streams(no_small_ones):
    X, eta = every_column(100, 400)
    y = np.digitize(eta, [-1, 1])
    model = quiet(BayesianLogisticRegression(**SHORT), sparse.csr_array(X), y)
    assert model.coef_.shape == (3, 400)
    assert (model.predict(sparse.csr_array(X)) == y).mean() > 0.8
    chunk = BayesianLogisticRegression().partial_fit(sparse.csr_array(X), y > 0, [False, True])
    assert (chunk.predict(sparse.csr_array(X)) == (y > 0)).mean() > 0.85


@pytest.mark.convergence_warnings
@pytest.mark.parametrize("kind", ["logistic", "Poisson"])
@pytest.mark.quick("logistic")
def test_a_prior_of_the_intercept_at_zero_says_what_it_moves(kind):
    """With more than 1,000 parameters it is at the columns' zeros: of years that is no prior."""
    rng = np.random.default_rng(0)
    year, rest = rng.integers(2000, 2011, 300), rare(300, 1000)[0]
    eta = 0.3 * (year - 2005)
    if kind == "logistic":
        model, y = BayesianLogisticRegression(), (eta + rng.logistic(size=300) > 0).astype(int)
    else:
        model, y = BayesianPoissonRegressor(), rng.poisson(np.exp(eta))
    model.set_params(random_state=0, prior_precision=1.0, n_draws=64)
    found = {}
    for zero in (0, 2005):
        X = sparse.hstack([sparse.csr_array((year - zero)[:, None]), rest], format="csr")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            found[zero] = model.fit(X, y).coef_.ravel()[0] / model.coef_std_.ravel()[0]
        said = [str(each.message) for each in caught]
        name = "prior of the intercept moves the coefficient of column 0"
        assert any(name in text for text in said) == (zero == 0)
    assert found[0] < 0.5 * found[2005]
