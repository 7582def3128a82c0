"""After the same rows a stream is the fit to them, whatever rows come first.

Means within a fifth of a standard deviation, standard deviations within 0.8 to 1.25 of those of the
fit; never an exception.
"""

import itertools
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
    BayesianRobustRegressor,
)
from skbayes_sg.data import InMemory, of_columns

FAMILIES = {
    "linear": BayesianLinearRegression,
    "logistic": BayesianLogisticRegression,
    "softmax": BayesianLogisticRegression,
    "ordinal": BayesianOrdinalClassifier,
    "Poisson": BayesianPoissonRegressor,
    "NB": BayesianNegativeBinomialRegressor,
    "Gamma": BayesianGammaRegressor,
    "robust": BayesianRobustRegressor,
}
ROWS = ["nothing", "offset", "exposure", "weights", "var_weights", "groups"]
ORDERS = ["random", "sorted", "constant", "small", "rest", "level", "grows"]
FIRST = [1, 5, 30, 400]
LABELS, LOG = ("logistic", "softmax", "ordinal"), ("Poisson", "NB", "Gamma")
LEVELS = np.array([0.7, -0.7, 0.3, -0.3, 1.0, -1.0])


def possible(family, rows, order, first):
    if family == "robust" and order == "rest" and first == 400:
        return False  # two modes: see test_a_stream_says_that_most_rows_have_no_noise
    if rows == "exposure":
        return family in LOG
    return rows != "var_weights" or family in ("linear", *LOG)


def drawn(family, z, counts, rng):
    """y of linear predictors z, means of so many observations."""
    if family in LABELS:
        noisy = z + rng.logistic(size=len(z))
        several = np.stack([z, 0 * z, -0.5 * z], axis=1) + rng.gumbel(size=(len(z), 3))
        return {
            "logistic": lambda: (noisy > 0).astype(int),
            "softmax": lambda: several.argmax(axis=1),
            "ordinal": lambda: np.digitize(noisy, [-1, 1]),
        }[family]()
    if family == "robust":
        return z + rng.standard_t(4, len(z))
    one = {
        "linear": lambda: z + rng.standard_normal(len(z)),
        "Poisson": lambda: rng.poisson(np.exp(z)),
        "NB": lambda: rng.poisson(np.exp(z) * rng.gamma(2, 0.5, len(z))),
        "Gamma": lambda: np.exp(z) * rng.gamma(2, 0.5, len(z)),
    }[family]
    each = np.array([one() for _ in range(3)])
    return np.where(np.arange(3)[:, None] < counts, each, 0).sum(axis=0) / counts


def problem(family, rows, order, first, n, seed):
    """X, y, what else is given of the rows, and groups."""
    rng = np.random.default_rng(seed)
    early = np.arange(n) < max(first, n // 6)
    X, groups = rng.standard_normal((n, 3)), None
    eta = 0.5 * X[:, 0] - 0.3 * X[:, 1]
    if rows == "groups" or order == "level":
        level = rng.integers(6, size=n)
        level[early] %= 4 if order == "level" else 6
        X, groups = np.column_stack([np.eye(6)[level], X]), {"level": list(range(6))}
        eta = eta + LEVELS[level]
    column = X[:, -1]
    if order in ("constant", "small"):
        unit = 0.01 if order == "small" else 1.0
        column[:] = np.where(early, 0.0, unit * column)
        eta = eta + 0.4 * column / unit
    elif order == "grows":
        eta, column[:] = eta + 0.4 * column, column * np.geomspace(1, 1000, n)
        eta = eta + 0.3 * column / 1000
    given = {}
    if rows == "offset":
        offset = 0.5 * rng.standard_normal(n)
        given["offset"] = offset
        if family == "softmax":  # one for each class
            given["offset"] = np.stack([offset, 0 * offset, -0.5 * offset], axis=1)
        eta = eta + offset
    elif rows == "exposure":
        given["exposure"] = rng.uniform(0.5, 3, n)
        eta = eta + np.log(given["exposure"])
    elif rows == "weights":
        given["sample_weight"] = rng.integers(1, 4, n).astype(float)
    counts = np.ones(n, int)
    if rows == "var_weights":
        counts = rng.integers(1, 4, n)
        given["var_weights"] = counts.astype(float)
    y = drawn(family, eta, counts, rng)
    if order == "rest":
        if family in ("linear", "robust"):
            y = np.where(early, 7.0, 60 + 5 * y)
        else:
            y[early] = 1e-3 * y[early] if family == "Gamma" else 0
    if order == "sorted":
        by_y = np.argsort(y, kind="stable")
        X, y, given = X[by_y], y[by_y], {name: each[by_y] for name, each in given.items()}
    return X, y, given, groups


def streamed(model, chunks, X, y, given):
    model, more = clone(model), {}
    if hasattr(model, "predict_proba"):
        more = {"classes": np.unique(y)}
    for rows in chunks:
        own = {name: each[rows] for name, each in given.items()}
        model.partial_fit(X[rows], y[rows], **own, **more)
    return model


def moments_of(model):
    draws = model.intercept_samples_.reshape(-1, np.size(model.intercept_)).astype(float)
    mean = np.append(np.ravel(model.coef_), model.intercept_)
    return mean, np.append(np.ravel(model.coef_std_), draws.std(axis=0))


def assert_is_the_fit(family, rows, order, first, n, seed):
    X, y, given, groups = problem(family, rows, order, first, n, seed)
    model = FAMILIES[family](prior_groups=groups, random_state=0)
    fitted = clone(model).fit(X, y, **given)
    chunks = [np.arange(first), *np.array_split(np.arange(first, n), 4)]
    stream = streamed(model, chunks, X, y, given)
    (mean, sd), (expected, right) = moments_of(stream), moments_of(fitted)
    assert (np.abs(mean - expected) < 0.2 * right).all()
    assert (0.8 * right < sd).all()
    assert (sd < 1.25 * right).all()


EVERY = [
    (family, rows, order, first)
    for family, rows, order, first in itertools.product(FAMILIES, ROWS, ORDERS, FIRST)
    if possible(family, rows, order, first)
]


def of_each_kind():
    """For each family two problems, in which each order and kind of rows comes."""
    found = []
    for f, family in enumerate(FAMILIES):
        kinds = [rows for rows in ROWS if possible(family, rows, "random", 1)]
        for k in range(2):
            first, order = FIRST[(k + f) % 3], ORDERS[(2 * k + f) % len(ORDERS)]
            found.append((family, kinds[(k + f) % len(kinds)], order, first))
    return found


@pytest.mark.filterwarnings("ignore")  # of beginnings, of rows in order, and of short fits
@pytest.mark.parametrize(("family", "rows", "order", "first"), of_each_kind())
@pytest.mark.quick("logistic", "linear", "Poisson", "Gamma", "softmax")
def test_a_stream_is_the_fit(family, rows, order, first, seed):
    assert_is_the_fit(family, rows, order, first, 300, seed)


@pytest.mark.filterwarnings("ignore")
def test_a_stream_says_that_most_rows_have_no_noise(seed):
    """Under the noise of Student's t they are a spike beside the mode of the others."""
    X, y, given, _ = problem("robust", "weights", "rest", 400, 600, seed)
    chunks = [np.arange(400), *np.array_split(np.arange(400, 600), 4)]
    model = BayesianRobustRegressor(random_state=0, n_draws=64)
    for said_by in (
        lambda: model.fit(X, y, **given),
        lambda: streamed(model, chunks, X, y, given),
    ):
        with pytest.warns(UserWarning, match=r"[678]\d% of the rows have y = 7: without noise"):
            said_by()


def by_tenths(cases):
    """In an order by chance, so that ``-m slow -k tenth3`` is the same random tenth of all."""
    order = np.random.default_rng(0).permutation(len(cases))
    ids = ["-".join(map(str, case)) for case in cases]
    return [pytest.param(*cases[i], id=f"{ids[i]}-tenth{k % 10}") for k, i in enumerate(order)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("family", "rows", "order", "first"), by_tenths(EVERY))
def test_a_stream_is_the_fit_in_every_case(family, rows, order, first, seed):
    assert_is_the_fit(family, rows, order, first, 600, seed)


# -- what is exact ----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:the truth moves")
@pytest.mark.parametrize("groups", [None, {"level": [0, 1, 2, 3, 4, 5]}])
@pytest.mark.parametrize("size", [1, 7, 50])
@pytest.mark.quick("7", "50")
def test_sums_of_a_linear_stream_have_the_units_and_the_precisions_of_all_rows(size, groups, seed):
    X, y, _, _ = problem("linear", "groups", "rest", 20, 100, seed)
    X[:, -1] *= np.where(np.arange(100) < 30, 0, 1e-4)
    model = BayesianLinearRegression(prior_groups=groups, random_state=0)
    whole = streamed(model, [np.arange(100)], X, y, {})
    parts = streamed(model, np.split(np.arange(100), range(size, 100, size)), X, y, {})
    ours, theirs = (list(one.prior_precision_blocks_.values()) for one in (parts, whole))
    # a log precision is known to .5: that of what levels have in common rests on rounding errors
    np.testing.assert_allclose(ours, theirs, rtol=0.05)
    np.testing.assert_allclose(parts.noise_variance_, whole.noise_variance_, rtol=1e-3)
    np.testing.assert_allclose(parts.coef_std_, whole.coef_std_, rtol=0.02)
    assert (np.abs(parts.coef_ - whole.coef_) < 0.01 * whole.coef_std_).all()


@pytest.mark.parametrize("size", [1, 4, 60])
def test_columns_of_chunks_are_those_of_all_rows(size):
    rng = np.random.default_rng(size)
    X = np.column_stack(
        [
            rng.standard_normal(240) + 1e6,
            rng.random(240) < 0.1,
            np.arange(240) > 170,  # the rarer value comes late
            np.arange(240) < 60,  # the rarer value comes first
            np.full(240, 0.1),
            rng.poisson(0.3, 240) * rng.exponential(size=240),
        ]
    )
    weight = rng.integers(1, 4, 240).astype(float)
    whole = of_columns(InMemory.of(X, np.zeros(240), weight))
    found = None
    for start in range(0, 240, size):
        rows = slice(start, start + size)
        part = InMemory.of(X[rows], np.zeros(len(X[rows])), weight[rows])
        found = of_columns(part) if found is None else found.and_of(part)
    assert found.n_rows == whole.n_rows
    np.testing.assert_allclose(found.mean, whole.mean)
    np.testing.assert_allclose(found.variance, whole.variance, rtol=1e-9)
    np.testing.assert_allclose(found.unit[:5], whole.unit[:5], rtol=1e-9)
    np.testing.assert_allclose(found.unit[5], whole.unit[5], rtol=0.1)
    assert found.unit[4] == 0


# -- a column that has had one value ----------------------------------------------------------

HELD = pytest.mark.filterwarnings("ignore:column 2 of X. one value")
VALUES = pytest.mark.parametrize("value", [0.0, 3.0])
SOME = pytest.mark.parametrize("family", ["linear", "logistic", "Poisson", "robust"])


def with_a_late_column(family, value, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 3))
    X[:150, 2] = value
    eta = 0.5 * X[:, 0] + 0.4 * X[:, 2]
    return X, drawn(family, eta, np.ones(400, int), rng)


@HELD
@VALUES
@SOME
@pytest.mark.quick("linear", "logistic")
def test_a_coefficient_that_was_held_is_released_when_its_column_varies(family, value, seed):
    X, y = with_a_late_column(family, value, seed)
    first, then = slice(0, 150), slice(150, 400)
    model = FAMILIES[family](random_state=0)
    whole = clone(model).fit(X, y)
    early = clone(model).fit(X[first], y[first])
    assert early.coef_std_.ravel()[2] < 1e-4
    on = clone(model).set_params(prior=early.posterior_).fit(X[then], y[then])
    copied = pickle.loads(pickle.dumps(early)).partial_fit(X[then], y[then])
    for one in (on, copied, early.compact().partial_fit(X[then], y[then])):
        (mean, sd), (expected, right) = moments_of(one), moments_of(whole)
        assert (np.abs(mean - expected) < 0.25 * right).all()
        assert (0.8 * right < sd).all()
        assert (sd < 1.25 * right).all()


@SOME
def test_a_column_that_comes_late_is_no_misfit(family, seed):
    """Warnings are errors: its coefficient is held where the posterior is read, and not before."""
    X, y = with_a_late_column(family, 0.0, seed)
    chunks = np.split(np.arange(400), [140, 280])
    streamed(FAMILIES[family](random_state=0), chunks, X, y, {})


@HELD
@SOME
@pytest.mark.quick("linear", "logistic", "Poisson")
def test_a_mark_stays_while_the_column_has_that_value(family, seed):
    X, y = with_a_late_column(family, 3.0, seed)
    parts = np.split(np.arange(400), [70, 150])
    model, prior = FAMILIES[family](random_state=0), None
    for rows in parts[:2]:
        one = clone(model).set_params(prior=prior).fit(X[rows], y[rows])
        prior = one.posterior_
        assert (prior.held[:, 0] > 0).tolist()[:3] == [False, False, True]
        assert one.coef_std_.ravel()[2] < 1e-4
    last = clone(model).set_params(prior=prior).fit(X[parts[2]], y[parts[2]])
    assert last.posterior_.held is None
    whole = clone(model).fit(X, y)
    assert abs(last.coef_.ravel()[2] / whole.coef_.ravel()[2] - 1) < 0.1


# -- a stream without its rows ----------------------------------------------------------------


@pytest.mark.parametrize("family", ["linear", "logistic", "Poisson", "ordinal"])
def test_a_compact_copy_of_a_stream_goes_on(family, seed):
    X, y, _, _ = problem(family, "nothing", "random", 0, 400, seed)
    model = FAMILIES[family](random_state=0)
    stream = streamed(model, np.split(np.arange(200), 2), X, y, {})
    copied = stream.compact()
    for one in (stream, copied):
        one.partial_fit(X[200:], y[200:])
    assert copied.n_samples_seen_ == stream.n_samples_seen_
    (mean, sd), (expected, right) = moments_of(copied), moments_of(stream)
    limit = 1e-6 if family == "linear" else 0.2
    assert (np.abs(mean - expected) < limit * right).all()
    np.testing.assert_allclose(sd, right, rtol=0.2 * limit + 0.1)


def test_rows_that_were_summed_up_elsewhere_are_not_silent():
    """A machine at rest is fitted, and its rows are not kept."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    y = np.where(np.arange(400) < 150, 7, 60 + 5 * X[:, 0]) + 0.3 * rng.standard_normal(400)
    model = BayesianRobustRegressor(random_state=0).fit(X[:150], y[:150])
    with pytest.warns(ConvergenceWarning, match="summed up far from where the posterior now is"):
        model.partial_fit(X[150:], y[150:])


def test_each_kind_of_warning_comes_once_and_in_the_same_words():
    said = set()
    for seed in range(2):
        X, y, _, _ = problem("Poisson", "nothing", "sorted", 0, 600, seed)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            model = BayesianPoissonRegressor(random_state=0)
            streamed(model, np.split(np.arange(600), 20), X, y, {})
        found = [str(one.message) for one in found]
        assert len(found) == len(set(found)) > 0
        said |= set(found)
    assert sum("the truth moves" in one for one in said) == 1
