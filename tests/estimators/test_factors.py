"""A data frame with categories is a mixed model: estimators take it as it is."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from scipy import stats
from sklearn import clone, config_context
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skbayes_sg import (
    BayesianBinomialRegressor,
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
    BayesianRobustRegressor,
    CoefficientsDisplay,
    DRBMClassifier,
    callbacks,
    inspection,
    trusted_types,
)
from skbayes_sg.inspection import average_effects, totals

N, LEVELS = 300, 12
RNG = np.random.default_rng(20)
MEMBER = RNG.integers(LEVELS, size=N)
AGE = RNG.standard_normal(N)
ETA = 0.5 + 0.4 * AGE + RNG.standard_normal(LEVELS)[MEMBER]
CITY = np.array([f"c{k:02d}" for k in range(LEVELS)])[MEMBER]
ROWS = pd.DataFrame({"city": pd.Categorical(CITY), "age": AGE})
INDICATORS = (MEMBER[:, None] == np.arange(LEVELS)).astype(float)
COLUMNS = np.column_stack([INDICATORS, AGE])
GROUPS = {"city": range(LEVELS), "other": [LEVELS]}
NUMBERS = ETA + 0.5 * RNG.standard_normal(N)
COUNTS = RNG.poisson(np.exp(0.5 * ETA))
LABELS = (ETA + RNG.logistic(size=N) > 0).astype(int)
GRADES = np.digitize(ETA + RNG.logistic(size=N), [-1, 1])
EACH = [
    (BayesianLogisticRegression, LABELS),
    (BayesianOrdinalClassifier, GRADES),
    (BayesianLinearRegression, NUMBERS),
    (BayesianRobustRegressor, NUMBERS),
    (BayesianPoissonRegressor, COUNTS),
    (BayesianNegativeBinomialRegressor, COUNTS),
    (BayesianGammaRegressor, np.exp(0.3 * NUMBERS)),
    (BayesianBinomialRegressor, LABELS),
]
NEW = pd.DataFrame({"city": ["Rome", "Rome", "Oslo", None], "age": 0.0})
SHORT = {"n_chains": 4, "n_draws": 40, "burn_in": 20, "thin": 1, "random_state": 0}
quick = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@quick
@pytest.mark.parametrize(("cls", "y"), EACH, ids=lambda each: getattr(each, "__name__", ""))
@pytest.mark.quick(
    "BayesianLogisticRegression",
    "BayesianLinearRegression",
    "BayesianPoissonRegressor",
    "BayesianBinomialRegressor",
)
def test_a_fit_is_that_of_one_hot_columns(cls, y):
    more = {"trials": 1} if cls is BayesianBinomialRegressor else {}
    model = cls(**SHORT).fit(ROWS, y, **more)
    columns = cls(prior_groups=GROUPS, **SHORT).fit(COLUMNS, y, **more)
    np.testing.assert_array_equal(model.draws_, columns.draws_)
    assert model.prior_precision_blocks_ == columns.prior_precision_blocks_
    assert model.n_features_in_ == 2
    assert model.coef_names_.tolist() == [*(f"city[c{k:02d}]" for k in range(LEVELS)), "age"]
    assert model.factors_["city"].levels == tuple(np.unique(CITY))
    asked = [(each, X) for each, X in ((model, ROWS), (columns, COLUMNS))]
    np.testing.assert_allclose(*(each.predict(X[:40], **more) for each, X in asked), rtol=1e-9)
    found = (each.predict_interval(X[:40], **more) for each, X in asked)
    np.testing.assert_allclose(*found, rtol=1e-9)


@quick
@pytest.mark.parametrize(
    ("cls", "y"),
    [(BayesianMLPClassifier, LABELS), (BayesianMLPRegressor, NUMBERS), (DRBMClassifier, LABELS)],
)
@pytest.mark.usefixtures("_short_searches")
def test_networks_have_the_columns_without_pooling(cls, y):
    short = {"n_chains": 2, "n_draws": 4, "burn_in": 4, "thin": 1, "random_state": 0}
    model, columns = cls(**short).fit(ROWS, y), cls(**short).fit(COLUMNS, y)
    np.testing.assert_array_equal(model.draws_, columns.draws_)
    np.testing.assert_array_equal(model.predict(ROWS), columns.predict(COLUMNS))
    zeros = np.zeros((1, LEVELS + 1))
    np.testing.assert_array_equal(model.predict(NEW[2:3]), columns.predict(zeros))


@quick
def test_columns_are_factors_by_type_name_number_or_mask():
    y, kind = LABELS, BayesianLogisticRegression
    expected = kind(**SHORT).fit(ROWS, y).draws_
    text = ROWS.astype({"city": object})
    array = np.column_stack([CITY.astype(object), AGE])
    for asked, rows in (
        (["city"], text),
        ([0], text),
        ([True, False], text),
        ([0], array),
        ([-2], array.tolist()),
        (np.array([True, False]), np.column_stack([MEMBER, AGE])),
    ):
        model = kind(categorical_features=asked, **SHORT).fit(rows, y)
        np.testing.assert_array_equal(model.draws_, expected)
        model.predict(rows)
    with pytest.raises(ValueError, match=r"column\(s\) 'city'; give .* type category"):
        kind(**SHORT).fit(text, y)
    numbers = ROWS.assign(city=pd.Categorical(MEMBER))
    assert kind(categorical_features=None, **SHORT).fit(numbers, y).coef_.shape == (1, 2)
    scaled = make_column_transformer(
        (StandardScaler(), ["age"]), remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    pipeline = make_pipeline(scaled, kind(**SHORT)).fit(ROWS, y)
    assert "city" in pipeline[-1].factors_


@quick
def test_what_is_made_of_a_fit_knows_the_factors():
    model = BayesianLinearRegression(**SHORT).fit(ROWS, NUMBERS)
    for copy in (pickle.loads(pickle.dumps(model)), model.compact()):
        np.testing.assert_allclose(copy.predict(NEW), model.predict(NEW), rtol=1e-4)
    search = GridSearchCV(BayesianLinearRegression(**SHORT), {"prior_groups": [None, "share"]})
    search.fit(ROWS, NUMBERS)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    again = BayesianLinearRegression(**SHORT, warm_start=True).fit(ROWS, NUMBERS)
    again.fit(ROWS[:200], NUMBERS[:200])
    again.fit(COLUMNS, NUMBERS)  # another design
    assert again.factors_ == {}
    assert again.predict(COLUMNS).shape == (N,)


@quick
def test_files_and_warm_starts_know_the_factors(tmp_path):
    io = pytest.importorskip("skops.io")
    model = BayesianLinearRegression(**SHORT).fit(ROWS, NUMBERS)
    twin = io.loads(io.dumps(model), trusted=trusted_types())
    np.testing.assert_array_equal(twin.predict(NEW), model.predict(NEW))
    checkpoint = callbacks.Checkpoint(tmp_path / "fit.npz", every=1e-9)
    cut = BayesianLinearRegression(**SHORT).set_callbacks(callbacks.TimeLimit(1e-9), checkpoint)
    with warnings.catch_warnings(action="ignore"):
        cut.fit(ROWS, NUMBERS)
    assert cut.draws_.shape[1] < model.draws_.shape[1]
    again = BayesianLinearRegression(**SHORT).set_callbacks(checkpoint).fit(ROWS, NUMBERS)
    np.testing.assert_array_equal(again.draws_, model.draws_)
    halves = BayesianLinearRegression(**(SHORT | {"n_draws": 20}), warm_start=True)
    halves.fit(ROWS, NUMBERS).set_params(n_draws=20).fit(ROWS, NUMBERS)
    assert halves.factors_["city"].levels == model.factors_["city"].levels


@quick
def test_folds_without_a_level_predict_it_as_a_new_one():
    """Each fold leaves out all rows of some levels."""
    model = BayesianLinearRegression(**SHORT)
    each = cross_validate(
        model, ROWS, NUMBERS, groups=MEMBER, cv=GroupKFold(3), return_estimator=True
    )
    assert np.isfinite(each["test_score"]).all()
    seen = [set(one.factors_["city"].levels) for one in each["estimator"]]
    assert all(len(levels) < LEVELS for levels in seen)
    assert set.union(*seen) == set(CITY)
    refusing = model.set_params(new_levels="refuse")
    with pytest.raises(ValueError, match="'city' that the fit did not see"):
        cross_validate(
            refusing, ROWS, NUMBERS, groups=MEMBER, cv=GroupKFold(3), error_score="raise"
        )


@quick
def test_metadata_goes_with_frames_of_factors():
    years = 1 + np.arange(N) % 2
    with config_context(enable_metadata_routing=True):
        model = BayesianPoissonRegressor(**SHORT).set_fit_request(exposure=True)
        model.set_score_request(exposure=True)
        found = cross_validate(
            model, ROWS, COUNTS, cv=2, params={"exposure": years}, return_estimator=True
        )
    half = np.arange(N) >= N // 2
    alone = BayesianPoissonRegressor(**SHORT).fit(ROWS[half], COUNTS[half], exposure=years[half])
    np.testing.assert_array_equal(found["estimator"][0].draws_, alone.draws_)


@quick
def test_decimal_levels_are_the_same_in_any_precision():
    tenths = MEMBER / 10
    for dtype, other in ((np.float32, np.float64), (np.float64, np.float32)):
        model = BayesianLinearRegression(categorical_features=[1], new_levels="refuse", **SHORT)
        model.fit(np.column_stack([AGE, tenths]).astype(dtype), NUMBERS)
        model.predict(np.column_stack([AGE, tenths]).astype(other))
        assert model.coef_names_[2] == "x1[0.1]"


@quick
def test_missing_cells_of_a_dictionary_without_words_are_new(fitted):
    arrow = pytest.importorskip("pyarrow")
    nothing = arrow.array([None, None], arrow.string()).dictionary_encode()
    rows = arrow.table({"city": nothing, "age": [0.0, 0.0]})
    np.testing.assert_array_equal(fitted.predict(rows), fitted.predict(NEW[3:4])[[0, 0]])


def test_columns_of_the_same_name_are_refused():
    twice = ROWS.assign(town=ROWS["city"]).rename(columns={"town": "city"})
    for rows in (twice, twice[["city"]], ROWS[["age", "age"]]):
        with pytest.raises(ValueError, match=r"several columns with the name '(city|age)'"):
            BayesianLinearRegression().fit(rows, NUMBERS)


# -- which columns share a precision --------------------------------------------------------------


@quick
@pytest.mark.parametrize(
    ("asked", "groups"),
    [
        (None, {"city": 12, "shift": 3, "other": 2}),
        ("share", {"coef": 17}),
        ("feature", {"city": 12, "age": 1, "shift": 3, "debt": 1}),
        ({"shift": "share"}, {"city": 12, "other": 5}),
        ({"age": "own"}, {"city": 12, "shift": 3, "age": 1, "other": 1}),
        ({"places": ["city", "shift"]}, {"places": 15, "other": 2}),
        ({"age": "flat"}, {"city": 12, "shift": 3, "other": 1}),
        ({"shift": "flat", "age": "own"}, {"city": 12, "age": 1, "other": 1}),
        (lambda name: name[0], {"c": 12, "a": 1, "s": 3, "d": 1}),
    ],
)
def test_groups_are_said_by_the_names_of_factors(asked, groups):
    shift = pd.Categorical(np.array(["day", "late", "night"])[np.arange(N) % 3])
    rows = ROWS.assign(shift=shift, debt=np.cos(np.arange(N)))
    model = BayesianLinearRegression(prior_groups=asked, **SHORT).fit(rows, NUMBERS)
    sizes = model.summary(groups=True)["n_coefficients"].to_dict()
    assert sizes == groups


def test_a_word_of_a_column_that_is_not_there_is_refused():
    model = BayesianLinearRegression(prior_groups={"town": "flat"}, **SHORT)
    with pytest.raises(ValueError, match="column 'town': X has no such column"):
        model.fit(ROWS, NUMBERS)
    model = BayesianLinearRegression(prior_groups={"age": "flat", "a": ["age"]}, **SHORT)
    with pytest.raises(ValueError, match="'age' is in the groups 'flat' and 'a'"):
        model.fit(ROWS, NUMBERS)


def least_squares(X, y):
    """Estimates, and standard errors."""
    X = np.column_stack([X, np.ones(len(X))])
    coef, (square,), *_ = np.linalg.lstsq(X, y, rcond=None)
    variance = square / (len(X) - X.shape[1]) * np.linalg.inv(X.T @ X).diagonal()
    return coef, np.sqrt(variance)


def test_flat_columns_are_not_shrunken():
    """Of few rows, beside columns of no effect: least squares, where the default shrinks them."""
    rng = np.random.default_rng(4)
    treated = np.arange(40) % 2
    X = np.column_stack([treated, rng.standard_normal((40, 8))])
    y = 0.8 * treated + 0.5 * X[:, 1] + rng.standard_normal(40)
    names = [f"x{k}" for k in range(1, 9)]
    arm = pd.Categorical(np.where(treated, "drug", "control"))
    rows = pd.DataFrame(X[:, 1:], columns=names).assign(arm=arm)
    flat = dict.fromkeys(["arm", "x1"], "flat")
    model = BayesianLinearRegression(prior_groups=flat, random_state=0).fit(rows, y)
    shrunken = BayesianLinearRegression(random_state=0).fit(rows, y)
    assert model.coef_names_[-1] == "arm[drug]"
    assert list(model.prior_precision_blocks_) == ["other"]
    # the others at their means
    coef, error = least_squares(X[:, :2], y - X[:, 2:] @ model.coef_[1:8])
    np.testing.assert_allclose(model.coef_[[-1, 0]], coef[:2], atol=0.1 * error[:2].min())
    assert (model.coef_std_[[-1, 0]] > 0.95 * error[:2]).all()
    assert abs(shrunken.coef_[0]) < 0.9 * abs(coef[1])


# -- new levels -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    return BayesianLinearRegression(random_state=0).fit(ROWS, NUMBERS)


def test_each_new_level_has_an_effect_of_its_own(fitted):
    draws = fitted.predict_draws(NEW, kind="mean")
    correlation = np.corrcoef(draws.T)
    assert correlation[0, 1] == pytest.approx(1)
    error = 4 / np.sqrt(len(draws))
    known = fitted.predict_draws(ROWS[:1], kind="mean")
    intercept = (fitted.intercept_samples_.var() / draws.var(axis=0)).mean()
    for one, other in ((0, 2), (0, 3), (2, 3)):
        assert correlation[one, other] == pytest.approx(intercept, abs=error)
    assert known.std() < 0.5 * draws.std(axis=0).min()


def test_a_new_level_is_the_same_in_every_call_and_order(fitted):
    draws = fitted.predict_draws(NEW, kind="mean")
    again = fitted.predict_draws(NEW.iloc[[3, 2, 0]], kind="mean")
    np.testing.assert_array_equal(again, draws[:, [3, 2, 0]])
    many = pd.DataFrame({"city": [f"new {k}" for k in range(1500)] + ["Oslo"], "age": 0.0})
    np.testing.assert_allclose(
        fitted.predict_draws(many, kind="mean")[:, -1], draws[:, 2], rtol=1e-9
    )


def test_new_levels_are_named_where_they_are_refused(fitted):
    refusing = pickle.loads(pickle.dumps(fitted)).set_params(new_levels="refuse")
    with pytest.raises(ValueError, match=r"row 0 .*'city' .*see: 'Rome', 'Oslo', 'missing'; leave"):
        refusing.predict(NEW)
    refusing.predict(ROWS)
    zero = refusing.set_params(new_levels="zero").predict(NEW)
    np.testing.assert_allclose(zero, fitted.intercept_, atol=1e-9)


def test_a_level_without_rows_is_new():
    """Rows of no weight, and categories without rows, beside a frame that has never had them."""
    gone = MEMBER == 3
    few = BayesianLinearRegression(random_state=0).fit(ROWS[~gone], NUMBERS[~gone])
    weighted = BayesianLinearRegression(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weighted.fit(ROWS, NUMBERS, sample_weight=(~gone).astype(float))
    asked = ROWS[gone][:2].assign(age=0.0)
    sd = [each.predict(asked, return_std=True)[1] for each in (few, weighted)]
    np.testing.assert_allclose(*sd, rtol=0.05)
    spread = [each.summary(groups=True).loc["city"] for each in (few, weighted)]
    np.testing.assert_allclose(spread[0]["mean"], spread[1]["mean"], rtol=0.05)
    assert [int(each["n_coefficients"]) for each in spread] == [LEVELS - 1] * 2
    for each in (few, weighted):
        assert each.factors_["city"].levels == tuple(np.delete(np.unique(CITY), 3))
        with pytest.raises(ValueError, match="see: 'c03'"):
            each.set_params(new_levels="refuse").predict(asked)


def test_sums_over_new_levels_have_the_spread_of_independent_ones(fitted):
    """The spread of five is sqrt(5) times that of one, but for what they share."""
    five = pd.DataFrame({"city": [f"n{k}" for k in range(5)], "age": 0.0})
    draws = fitted.predict_draws(five, kind="mean")
    shared = fitted.intercept_samples_.var()
    own = draws.var(axis=0).mean() - shared
    expected = np.sqrt(5 * own + 25 * shared)
    error = 4 * expected / np.sqrt(2 * len(draws))
    assert draws.sum(axis=1).std() == pytest.approx(expected, abs=2 * error)
    table = totals(fitted, five)
    noise = 5 * fitted.noise_variance_
    assert table["sd"].iloc[0] == pytest.approx(np.sqrt(expected**2 + noise), rel=0.15)


def test_effects_move_a_factor_from_level_to_level(fitted):
    table = average_effects(fitted, ROWS, ["city"])
    steps = fitted.coef_[1:LEVELS] - fitted.coef_[0]
    np.testing.assert_allclose(table["mean"], steps, atol=1e-6)


@quick
@pytest.mark.parametrize("columns", [False, True])
def test_rows_of_new_levels_have_likelihoods_and_draws_under_their_effects(columns):
    """As ArviZ reads them; an effect of zero would be surer than it is."""
    rows, new = (COLUMNS, np.zeros((4, LEVELS + 1))) if columns else (ROWS, NEW)
    asked = {"prior_groups": GROUPS if columns else None, "random_state": 0}
    model = BayesianLogisticRegression(**asked).fit(rows, LABELS)
    y = np.array([1, 0, 1, 1])
    tree = model.to_arviz(new, y, log_likelihood=True, posterior_predictive=True)
    each = tree["log_likelihood"]["y"].values.reshape(-1, 4)
    proba = model.predict_proba(new)
    np.testing.assert_allclose(np.exp(each).mean(axis=0), proba[np.arange(4), y], atol=0.02)
    spread = (ROWS[:4], COLUMNS[:4])[columns]
    known = model.to_arviz(spread, LABELS[:4], log_likelihood=True)["log_likelihood"]["y"].values
    assert np.exp(each).std(axis=0).mean() > 1.5 * np.exp(known).std(axis=(0, 1)).mean()
    share = tree["posterior_predictive"]["y"].values.mean(axis=(0, 1))
    np.testing.assert_allclose(share, proba[:, 1], atol=4 * 0.5 / np.sqrt(len(each)))
    assert tree["constant_data"]["X"].shape == (4, LEVELS + 1 if columns else 1)


# -- columns of zeros and ones that were made elsewhere -------------------------------------------


def sd_of_a_new_level(columns, zero):
    model = BayesianLinearRegression(prior_groups={"city": range(LEVELS)}, random_state=0)
    return model.fit(columns, NUMBERS).predict(zero, return_std=True)[1]


def test_scaled_columns_are_a_factor(fitted):
    expected = fitted.predict(NEW[2:3], return_std=True)[1]
    zero, mean, sd = np.zeros((1, LEVELS + 1)), COLUMNS.mean(axis=0), COLUMNS.std(axis=0)
    for columns, row in ((COLUMNS / sd, zero), ((COLUMNS - mean) / sd, (zero - mean) / sd)):
        np.testing.assert_allclose(sd_of_a_new_level(columns, row), expected, rtol=0.05)


def test_a_shift_of_all_prior_means_moves_the_intercept_alone(fitted):
    shifted = BayesianLinearRegression(prior_mean=[3.0, 0.0], random_state=0).fit(ROWS, NUMBERS)
    np.testing.assert_allclose(shifted.coef_[:LEVELS] - 3, fitted.coef_[:LEVELS], atol=0.05)
    for rows in (ROWS[:5], NEW):
        ends = [each.predict_interval(rows) for each in (fitted, shifted)]
        np.testing.assert_allclose(*ends, atol=0.15)


def test_factors_within_a_prefix_are_told_apart_or_refused():
    other = (np.arange(N)[:, None] % 3 == np.arange(3)).astype(float)
    both = np.hstack([INDICATORS, other])
    names = [f"all__city_{k}" for k in range(LEVELS)] + [f"all__shift_{k}" for k in range(3)]
    with pytest.raises(ValueError, match=r"several factors .*city_0 to .*, 'all__shift_0 to"):
        BayesianLinearRegression(prior_groups="prefix", **SHORT).fit(
            pd.DataFrame(both, columns=names), NUMBERS
        )
    asked = {"prior_groups": {"both": range(LEVELS + 3)}, "random_state": 0}
    model = BayesianLinearRegression(**asked).fit(both, NUMBERS)
    assert [len(each.levels) for each in model.factors_.values()] == [LEVELS, 3]
    known = both[:1].copy()
    known[:, :LEVELS] = 0
    assert model.predict(known, return_std=True)[1] > 1.3 * model.predict(both[:1], True)[1]


def test_an_effect_of_a_column_of_a_level_is_its_coefficient():
    """To set it to zero makes no new level."""
    model = BayesianLinearRegression(prior_groups=GROUPS, random_state=0).fit(COLUMNS, NUMBERS)
    table = average_effects(model, COLUMNS, [0])
    np.testing.assert_allclose(table["mean"].iloc[0], model.coef_[0], atol=1e-6)
    np.testing.assert_allclose(table["sd"].iloc[0], model.coef_std_[0], rtol=1e-3)


def test_a_scale_for_each_column_gives_new_levels_one_of_them():
    model = BayesianLinearRegression(prior="horseshoe", random_state=0).fit(ROWS, NUMBERS)
    draws = model.predict_draws(NEW[2:3], kind="mean")[:, 0]
    spread = stats.iqr(draws) / 1.349
    assert 0.3 < spread / model.coef_[:LEVELS].std() < 2


# -- streams --------------------------------------------------------------------------------------

IN_ORDER = np.argsort(MEMBER, kind="stable")  # so that most levels come late


def streamed(cls, y, order, rows=ROWS, **more):
    model = cls(random_state=0, **more)
    labels = {"classes": [0, 1]} if cls is BayesianLogisticRegression else {}
    for chunk in order:
        model.partial_fit(rows.iloc[chunk], y[chunk], **labels)
    return model


def of_levels(model):
    """Means and standard deviations by name."""
    return pd.DataFrame(
        {"mean": model.coef_.ravel(), "sd": model.coef_std_.ravel()}, model.coef_names_
    ).sort_index()


@quick
@pytest.mark.parametrize(
    ("cls", "y"),
    [
        (BayesianLinearRegression, NUMBERS),
        (BayesianPoissonRegressor, COUNTS),
        (BayesianLogisticRegression, LABELS),
    ],
)
@pytest.mark.quick("BayesianLinearRegression-y0", "BayesianLogisticRegression-y2")
def test_levels_may_come_in_any_chunk(cls, y):
    """The state grows, in any order of the chunks, and is that of all rows."""
    chunks = np.array_split(IN_ORDER, 3)
    fit = of_levels(cls(random_state=0).fit(ROWS, y))
    for order in (chunks, chunks[::-1])[: 2 if cls is BayesianLinearRegression else 1]:
        model = streamed(cls, y, order)
        found = of_levels(model)
        assert list(found.index) == list(fit.index)
        shift = (found["mean"] - fit["mean"]) / fit["sd"]
        assert np.abs(shift).max() < 0.3
        np.testing.assert_allclose(found["sd"], fit["sd"], rtol=0.12)
        assert set(model.factors_["city"].levels) == set(CITY)
    again = pickle.loads(pickle.dumps(model)).partial_fit(NEW, y[: len(NEW)])
    assert set(again.coef_names_) - set(fit.index) == {"city[Oslo]", "city[Rome]", "city[missing]"}
    compact = model.compact().partial_fit(NEW, y[: len(NEW)])
    assert set(compact.coef_names_) == set(again.coef_names_)


@quick
@pytest.mark.parametrize(
    ("cls", "y"), [(BayesianLinearRegression, NUMBERS), (BayesianPoissonRegressor, COUNTS)]
)
@pytest.mark.quick("BayesianLinearRegression-y0")
def test_a_factor_has_a_precision_of_its_own_from_the_third_level_on(cls, y):
    """Two have the one of numbers. One row of a third level changes it in a stream as in a fit."""
    two, all_rows = MEMBER < 2, MEMBER < 3
    model = cls(random_state=0).partial_fit(ROWS[two], y[two])
    fit = cls(random_state=0).fit(ROWS[two], y[two])
    assert list(model.prior_precision_blocks_) == list(fit.prior_precision_blocks_) == ["coef"]
    third = np.flatnonzero(MEMBER == 2)
    model.partial_fit(ROWS.iloc[third[:1]], y[third[:1]])
    assert list(model.prior_precision_blocks_) == ["city", "other"]
    model.partial_fit(ROWS.iloc[third[1:]], y[third[1:]])
    # three levels have tails that know no fourth moment: of 2,048 draws sds are a fifth off
    fit = cls(n_draws=400, random_state=0).fit(ROWS[all_rows], y[all_rows])
    assert list(fit.prior_precision_blocks_) == ["city", "other"]
    found, whole = of_levels(model), of_levels(fit)
    assert np.abs((found["mean"] - whole["mean"]) / whole["sd"]).max() < 0.3
    np.testing.assert_allclose(found["sd"], whole["sd"], rtol=0.2)


@quick
@pytest.mark.parametrize("asked", [None, "share", {"city": "share"}, {"city": "flat"}])
def test_the_next_fit_knows_which_precision_a_third_level_has(asked):
    """That which the first fit asked for, and a fit of all rows has."""
    few, five = MEMBER < 2, MEMBER < 5
    model = BayesianLinearRegression(prior_groups=asked, **SHORT)
    first = clone(model).fit(ROWS[few], NUMBERS[few])
    assert len(first.prior_precision_blocks_) == 1
    first.set_params(prior_groups=None if asked == "share" else "share")  # after the fit
    rows, y = ROWS[five & ~few], NUMBERS[five & ~few]
    fit = clone(model).fit(ROWS[five], NUMBERS[five])
    following = BayesianLinearRegression(prior=first.posterior_, **SHORT)
    for found in (clone(following).fit(rows, y), clone(following).partial_fit(rows, y)):
        sizes, expected = (each.summary(groups=True)["n_coefficients"] for each in (found, fit))
        assert sizes.to_dict() == expected.to_dict()


def test_numbers_keep_their_precision_when_two_levels_become_five():
    """Effects of levels that are far larger than theirs, and so those of new ones."""
    rng = np.random.default_rng(0)
    member = np.append(rng.integers(2, size=200), rng.integers(5, size=200))
    X = rng.standard_normal((400, 3))
    effects = np.array([1.5, -1.5, 3.0, -2.0, 0.5])
    y = X @ [0.2, -0.1, 0.0] + effects[member] + rng.standard_normal(400)
    rows = pd.DataFrame(X, columns=list("abc")).assign(g=pd.Categorical(member))
    early, model = np.arange(400) < 200, BayesianLinearRegression(random_state=0)
    prior = clone(model).fit(rows[early], y[early]).posterior_
    following = BayesianLinearRegression(prior=prior, random_state=0).fit(rows[~early], y[~early])
    fit = model.fit(rows, y)
    np.testing.assert_allclose(following.coef_[:3], fit.coef_[:3], atol=0.1 * fit.coef_std_[0])
    new = rows[:1].assign(g=9)
    widths = [each.predict(new, return_std=True)[1] for each in (following, fit)]
    np.testing.assert_allclose(*widths, rtol=0.15)


def test_a_single_level_says_nothing_against_others():
    """Its column has one value, and its effect is in the intercept; that of a new level is not."""
    rng = np.random.default_rng(6)
    member, x = rng.integers(5, size=200), rng.standard_normal(200)
    y = 0.5 * x + 2 * rng.standard_normal(5)[member] + 0.5 * rng.standard_normal(200)
    rows, one = pd.DataFrame({"g": pd.Categorical(member), "x": x}), member == 0
    model = BayesianLinearRegression(random_state=0)
    for first in (clone(model).fit(rows[one], y[one]), clone(model).partial_fit(rows[one], y[one])):
        asked = pd.DataFrame({"g": [0, 1], "x": 0.0})
        known, new = np.diff(first.predict_interval(asked), axis=1).ravel()
        assert new > 2 * known
        following = BayesianLinearRegression(prior=first.posterior_, random_state=0)
        following.fit(rows[~one], y[~one])
        fit = clone(model).fit(rows, y)
        names = fit.coef_names_.tolist()
        order = [following.coef_names_.tolist().index(name) for name in names]
        np.testing.assert_allclose(following.coef_[order], fit.coef_, atol=0.1 * fit.coef_std_[0])
        assert following.noise_variance_ == pytest.approx(fit.noise_variance_, rel=0.05)


@quick
def test_a_stream_of_late_levels_is_that_of_columns_which_were_there():
    """To the digits of one solve, under a given precision: nothing is learned."""
    chunks = np.array_split(IN_ORDER, 6)
    given = {"prior_precision": 2.0}
    late = streamed(BayesianLinearRegression, NUMBERS, chunks, **given)
    columns = pd.DataFrame(COLUMNS, columns=[f"city[c{k:02d}]" for k in range(LEVELS)] + ["age"])
    first = streamed(BayesianLinearRegression, NUMBERS, chunks, columns, **given)
    pd.testing.assert_frame_equal(
        of_levels(late), pd.DataFrame(of_levels(first)), rtol=1e-9, check_names=False
    )
    assert late.noise_variance_ == pytest.approx(first.noise_variance_, rel=1e-9)


@quick
def test_a_stream_goes_on_from_a_fit_with_levels_of_its_own():
    few = MEMBER < 8
    model = BayesianLinearRegression(random_state=0).fit(ROWS[few], NUMBERS[few])
    model.partial_fit(ROWS[~few], NUMBERS[~few])
    fit = of_levels(BayesianLinearRegression(random_state=0).fit(ROWS, NUMBERS))
    found = of_levels(model)
    assert np.abs((found["mean"] - fit["mean"]) / fit["sd"]).max() < 0.4
    np.testing.assert_allclose(found["sd"], fit["sd"], rtol=0.15)


@pytest.mark.parametrize("cls", [BayesianMLPClassifier, BayesianMLPRegressor, DRBMClassifier])
def test_a_network_says_that_a_late_level_has_no_columns(cls):
    early = MEMBER < 8
    y = NUMBERS if cls is BayesianMLPRegressor else LABELS
    more = {} if cls is BayesianMLPRegressor else {"classes": [0, 1]}
    model = cls(n_draws=8, burn_in=8, thin=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.partial_fit(ROWS[early], y[early], n_total=N, **more)
    late = np.flatnonzero(MEMBER == 8)
    with pytest.warns(UserWarning, match="column 'city' of X has levels .* did not have, 'c08'"):
        model.partial_fit(ROWS.iloc[late], y[late], n_total=N)


@quick
def test_a_row_without_a_level_in_a_later_chunk_is_said():
    """Columns of the first chunk are a factor, and those of the second are none."""
    asked = {"prior_groups": {"city": range(LEVELS)}, "random_state": 0}
    model = BayesianLinearRegression(**asked).partial_fit(COLUMNS[:200], NUMBERS[:200])
    assert list(model.factors_) == ["city"]
    without = COLUMNS[200:].copy()
    without[3, :LEVELS] = 0
    with pytest.warns(UserWarning, match="'city' of prior_groups is taken for no factor"):
        model.partial_fit(without, NUMBERS[200:])
    assert model.factors_ == {"city": "no factor: some rows have none of its columns"}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model.partial_fit(without, NUMBERS[200:])


@quick
def test_a_chunk_of_one_level_has_columns_of_a_factor():
    """Of which one is 1 in all of its rows."""
    asked = {"prior_groups": {"city": range(LEVELS)}, "random_state": 0}
    model = BayesianLinearRegression(**asked)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for chunk in (MEMBER == 2, MEMBER == 5, MEMBER != 7):
            model.partial_fit(COLUMNS[chunk], NUMBERS[chunk])
            known = COLUMNS[chunk][:1]
            assert model.predict(np.zeros_like(known), True)[1] > model.predict(known, True)[1]
    assert [len(each.levels) for each in model.factors_.values()] == [LEVELS - 1]
    with pytest.raises(ValueError, match=r"row 1 .* 'city' that the fit did not see: 'x7'"):
        model.set_params(new_levels="refuse").predict(np.stack([COLUMNS[0], np.eye(LEVELS + 1)[7]]))


# -- the posterior of a fit as the prior of the next ----------------------------------------------


@quick
@pytest.mark.quick("BayesianLinearRegression-y0", "BayesianLogisticRegression-y2")
@pytest.mark.parametrize(
    ("cls", "y"),
    [
        (BayesianLinearRegression, NUMBERS),
        (BayesianPoissonRegressor, COUNTS),
        (BayesianLogisticRegression, LABELS),
    ],
)
def test_the_next_fit_learns_the_spread_of_levels_from_the_rows_of_both(cls, y):
    """In a frame whose later rows have levels of their own, and in a stream."""
    few = MEMBER < 8
    whole = cls(random_state=0).fit(ROWS, y)
    first = cls(random_state=0).fit(ROWS[few], y[few])
    prior, classes = first.posterior_, {}
    if cls is BayesianLogisticRegression:
        classes = {"classes": [0, 1]}
    second = cls(prior=prior, random_state=0)
    with warnings.catch_warnings(action="error", category=UserWarning):
        second.fit(ROWS[~few], y[~few])
        third = cls(prior=second.posterior_, random_state=0).fit(ROWS[::20], y[::20])
        stream = cls(prior=prior, random_state=0)
        for some in (~few & (MEMBER < 11), MEMBER >= 11):
            stream.partial_fit(ROWS[some], y[some], **classes)
    fit, groups = of_levels(whole), whole.summary(groups=True)
    for found in map(of_levels, (second, stream)):
        assert list(found.index) == list(fit.index)
        assert np.abs((found["mean"] - fit["mean"]) / fit["sd"]).max() < 0.2
        np.testing.assert_allclose(found["sd"], fit["sd"], rtol=0.15)
    np.testing.assert_allclose(second.summary(groups=True)["mean"], groups["mean"], rtol=0.1)
    np.testing.assert_allclose(second.summary(groups=True)["sd"], groups["sd"], rtol=0.25)
    widths = [np.diff(each.predict_interval(NEW)).mean() for each in (whole, second, third)]
    np.testing.assert_allclose(widths, widths[0], rtol=0.1)


def test_the_next_fit_knows_the_levels_of_columns(seed):
    model = BayesianLinearRegression(random_state=seed)
    first = clone(model).set_params(prior_groups=GROUPS).fit(COLUMNS[:150], NUMBERS[:150])
    later = clone(model).set_params(prior=first.posterior_).fit(COLUMNS[150:], NUMBERS[150:])
    whole = clone(model).set_params(prior_groups=GROUPS).fit(COLUMNS, NUMBERS)
    zero = np.zeros((1, LEVELS + 1))
    width = [np.diff(each.predict_interval(zero)).mean() for each in (whole, later)]
    assert width[1] == pytest.approx(width[0], rel=0.1)
    with pytest.raises(ValueError, match="row 0 of X has a level of 'city'"):
        later.set_params(new_levels="refuse").predict(zero)


def test_a_spread_that_is_not_learned_again_is_taken_from_the_first_fit():
    """Of a prior with a scale for each column; a number is as well known as the user says."""
    few = MEMBER < 8
    first = BayesianLinearRegression(prior="student_t", **SHORT)
    given = BayesianLinearRegression(prior_precision=2.0, **SHORT)
    with warnings.catch_warnings(action="ignore"):
        first.fit(ROWS[few], NUMBERS[few])
        given.fit(ROWS[few], NUMBERS[few])
    second = BayesianLinearRegression(prior=first.posterior_, **SHORT)
    with pytest.warns(UserWarning, match=r"new levels of 'city' take .*, which it knew to \d+%"):
        second.fit(ROWS[~few], NUMBERS[~few])
    widths = [np.diff(each.predict_interval(NEW)).mean() for each in (first, second)]
    assert widths[1] == pytest.approx(widths[0], rel=0.3)
    with warnings.catch_warnings(action="error", category=UserWarning):
        BayesianLinearRegression(prior=given.posterior_, **SHORT).fit(ROWS[~few], NUMBERS[~few])


def test_the_next_fit_has_the_columns_of_the_first():
    model = BayesianLinearRegression(**SHORT)
    with warnings.catch_warnings(action="ignore"):
        model.fit(ROWS, NUMBERS)
    with pytest.raises(ValueError, match="prior has other features"):
        BayesianLinearRegression(prior=model.posterior_).fit(ROWS[["age", "city"]], NUMBERS)


# -- slopes by level ------------------------------------------------------------------------------

DAYS = np.tile(np.arange(6.0), 15)
PERSON = np.repeat(np.arange(15), 6)
LINES = np.random.default_rng(30).standard_normal((2, 15)) * [[2.0], [0.7]]
REACTION = 5 + DAYS + LINES[0, PERSON] + LINES[1, PERSON] * DAYS
REACTION = REACTION + np.random.default_rng(31).standard_normal(90)
VISITS = pd.DataFrame({"days": DAYS, "person": pd.Categorical(PERSON)})
SLOPES = {"prior_groups": {("days", "person"): "own"}, "random_state": 0}


def test_slopes_by_level_are_those_of_columns_of_products():
    model = BayesianLinearRegression(**SLOPES).fit(VISITS, REACTION)
    member = (PERSON[:, None] == np.arange(15)).astype(float)
    columns = np.column_stack([DAYS, member, member * DAYS[:, None]])
    groups = {"other": [0], "person": range(1, 16), "slopes": range(16, 31)}
    products = BayesianLinearRegression(prior_groups=groups, random_state=0).fit(columns, REACTION)
    np.testing.assert_allclose(model.coef_, products.coef_, rtol=1e-6)
    assert model.coef_names_[[0, 1, -1]].tolist() == ["days", "person[0]", "days:person[14]"]
    assert model.factors_["days:person"] == "slopes of 'days' by level"
    new = pd.DataFrame({"days": [0.0, 1.0, 3.0], "person": -1})
    zero = np.zeros((3, 31))
    zero[:, 0] = new["days"]
    sd, expected = (
        each.predict(rows, return_std=True)[1] for each, rows in ((model, new), (products, zero))
    )
    n_draws = model.draws_[..., 0].size  # of effects, by other seeds
    np.testing.assert_allclose(sd, expected, rtol=4 / np.sqrt(n_draws))
    spread = model.summary(groups=True)["mean"]
    np.testing.assert_allclose(
        sd**2 - model.noise_variance_,
        spread["person"] ** 2 + (new["days"] * spread["days:person"]) ** 2,
        rtol=0.4,
    )


@quick
def test_slopes_of_levels_that_come_late():
    model = BayesianLinearRegression(**SLOPES)
    for rows in np.array_split(np.arange(90), 3):
        model.partial_fit(VISITS.iloc[rows], REACTION[rows])
    found = of_levels(model)
    fit = of_levels(BayesianLinearRegression(**SLOPES).fit(VISITS, REACTION))
    assert list(found.index) == list(fit.index)
    assert np.abs((found["mean"] - fit["mean"]) / fit["sd"]).max() < 0.5


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({("person", "days"): "own"}, r"\('person', 'days'\) must be a column of numbers"),
        ({("days", "person"): "flat"}, r"\('days', 'person'\) has the value 'flat'"),
        ({("day", "person"): "own"}, "column 'day': X has no such column"),
    ],
)
def test_impossible_slopes_are_refused(asked, said):
    with pytest.raises(ValueError, match=said):
        BayesianLinearRegression(prior_groups=asked).fit(VISITS, REACTION)


def test_a_factor_may_have_the_name_of_the_rest():
    rows = VISITS.rename(columns={"person": "other"})
    model = BayesianLinearRegression(random_state=0).fit(rows, REACTION)
    assert list(model.prior_precision_blocks_) == ["other columns", "other"]


# -- reading --------------------------------------------------------------------------------------


def test_a_level_may_be_the_reference_of_its_factor(fitted):
    table = fitted.summary(reference={"city": "c03"})
    assert ("city", "c03") not in table.index
    draws = fitted.coef_samples_[..., :LEVELS]
    against = np.delete(draws - draws[..., [3]], 3, axis=2).reshape(-1, LEVELS - 1)
    rows = [("city", f"c{k:02d}") for k in range(LEVELS) if k != 3]
    np.testing.assert_allclose(table.loc[rows, "mean"], against.mean(axis=0), rtol=1e-6)
    ends = np.quantile(against, 0.025, axis=0)
    np.testing.assert_allclose(table.loc[rows, "eti95_lb"], ends, atol=0.01)
    intercept = fitted.intercept_ + fitted.coef_[3]
    assert table.loc[("intercept", ""), "mean"] == pytest.approx(intercept, rel=1e-6)
    np.testing.assert_allclose(table.loc["age"], fitted.summary().loc["age"], rtol=1e-9)
    for wrong in ({"town": "c03"}, {"city": "c99"}):
        with pytest.raises(ValueError, match=r"reference: a .* must be one of"):
            fitted.summary(reference=wrong)


def test_few_levels_are_compared_with_the_first():
    """Their mean, and so the intercept, is known no better than that of any few draws."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"age": rng.normal(50, 9, 300), "sex": rng.choice(["f", "m"], 300)})
    frame["ward"] = rng.choice([f"w{k}" for k in range(5)], 300)
    frame = frame.astype({"sex": "category", "ward": "category"})
    y = 0.7 * (frame["sex"] == "m") + rng.standard_normal(300)
    model = BayesianLinearRegression(random_state=0).fit(frame, y)
    table, every = model.summary(), model.summary(reference={})
    assert table.loc["sex"].index.tolist() == ["m"]
    assert every.loc["sex"].index.tolist() == ["f", "m"]
    assert table.loc["ward"].index.tolist() == [f"w{k}" for k in range(5)]
    pd.testing.assert_frame_equal(table, model.summary(reference={"sex": "f"}))
    assert table.loc[("sex", "m"), "sd"] < 0.5 * every.loc[("sex", "m"), "sd"]
    assert table.loc[("intercept", ""), "sd"] < every.loc[("intercept", ""), "sd"]
    assert (
        inspection.sandwich_summary(model, frame, y).index.tolist()[:2] == table.index.tolist()[:2]
    )
    alone = BayesianLinearRegression(fit_intercept=False, random_state=0).fit(frame, y)
    assert alone.summary().loc["sex"].index.tolist() == ["f", "m"]


@quick
def test_a_flat_factor_is_read_as_it_is_or_against_another_level():
    model = BayesianLinearRegression(prior_groups={"city": "flat"}, **SHORT).fit(ROWS, NUMBERS)
    assert model.summary().index[0] == ("city", "c01")
    same = model.summary(reference={"city": "c00"})
    pd.testing.assert_frame_equal(same, model.summary())
    other = model.summary(reference={"city": "c02"})
    assert other.loc["city"].index[:3].tolist() == ["c01", "c00", "c03"]
    steps = model.coef_[0] - model.coef_[1], -model.coef_[1]
    np.testing.assert_allclose(other["mean"].iloc[:2], steps, rtol=1e-6)


@quick
def test_numbers_of_a_scaled_frame_are_read_in_their_units():
    scaled = make_column_transformer(
        (StandardScaler(), ["age"]), remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    model = BayesianLinearRegression(random_state=0)
    pipeline = make_pipeline(scaled, model).fit(ROWS.assign(age=40 + 9 * AGE), NUMBERS)
    table, plain = model.summary(scaler=pipeline[:-1])["mean"], model.summary()["mean"]
    assert table["age", ""] == pytest.approx(plain["age", ""] / (9 * AGE.std()))
    assert table["city", "c05"] == pytest.approx(plain["city", "c05"])


@pytest.fixture(scope="module")
def of_many_levels():
    """Sixty persons of eight rows, and two colours of a person."""
    rng = np.random.default_rng(5)
    person, colour = np.repeat(np.arange(60), 8), rng.integers(2, size=480)
    rows = pd.DataFrame({"person": person, "colour": np.array(["r", "b"])[colour]})
    rows = rows.astype("category").assign(age=rng.standard_normal(480))
    y = 2 * rows["age"] + rng.standard_normal(60)[person] + rng.standard_normal(480)
    return BayesianLinearRegression(random_state=0).fit(rows, y), rows, y


def test_a_table_has_factors_and_levels_as_levels_of_its_index(fitted, of_many_levels):
    table = fitted.summary()
    assert table.index.names == ["term", "level"]
    np.testing.assert_allclose(table.loc["city", "mean"], fitted.coef_[:LEVELS])
    assert table.loc["city"].index.tolist() == list(fitted.factors_["city"].levels)
    others = [("age", ""), ("intercept", ""), ("noise_variance", "")]
    assert table.index[LEVELS:].tolist() == others
    printed = inspection.to_latex(table).splitlines()
    assert printed[2] == r"\begin{tabular}{llrrrr}"
    assert printed[6].startswith("city & c00 & ")

    model, rows, y = of_many_levels
    table, groups = model.summary(), model.summary(groups=True)
    assert table.index[0] == ("person", "sd of 60 levels")
    assert table.index[1:3].tolist() == [("colour", "r"), ("age", "")]
    for column in ("mean", "sd", "eti95_lb", "eti95_ub"):
        assert table[column].iloc[0] == groups.loc["person", column]
    assert np.isnan(table["p_direction"].iloc[0])
    every = model.summary(most=None)
    assert every.loc[("person", 41), "mean"] == pytest.approx(model.coef_[41])
    assert every.index[60:].tolist() == table.index[1:].tolist()
    np.testing.assert_array_equal(every.iloc[60:], table.iloc[1:])
    against = model.summary(reference={"person": 7})
    assert len(against.loc["person"]) == 59
    with_region = model.summary(rope=0.5)  # false discoveries are among the rows that are shown
    assert np.isnan(with_region["fdr"].iloc[0])
    assert with_region.loc["age", "fdr"].iloc[0] < 0.01
    assert len(model.summary(most=3)) == 5
    index = inspection.sandwich_summary(model, rows, y).index
    assert index[:2].tolist() == [("person", 0), ("person", 1)]


@quick
def test_many_levels_have_one_row_for_each_class():
    """Of the differences that the rows are of: to the mean over classes, or to one of them."""
    person = np.arange(300) % 60
    rows = pd.DataFrame({"person": pd.Categorical(person), "age": AGE[person % N]})
    y = np.array(["a", "b", "c"])[np.random.default_rng(3).integers(3, size=300)]
    model = BayesianLogisticRegression(**SHORT).fit(rows, y)
    groups = model.summary(groups=True).loc["person", ["mean", "sd", "eti95_ub"]]
    for reference, classes, times in ((None, "abc", np.sqrt(2 / 3)), ("b", "ac", np.sqrt(2))):
        table = model.summary(reference=reference)
        assert table.index[:2].tolist() == [
            (classes[0], "person", "sd of 60 levels"),
            (classes[0], "age", ""),
        ]
        found = table.xs("sd of 60 levels", level="level")
        assert found.index.get_level_values("class").tolist() == list(classes)
        np.testing.assert_allclose(found[groups.index], np.tile(times * groups, (len(classes), 1)))
        assert found["odds_ratio"].isna().all()
    assert len(model.summary(most=None)) == 3 * 62


def test_a_stream_knows_how_far_levels_spread(of_many_levels):
    """As the fit of the same rows does, also in the table and for a new level."""
    fit, rows, y = of_many_levels
    stream = clone(fit)
    for some in np.array_split(np.random.default_rng(0).permutation(len(y)), 3):
        stream.partial_fit(rows.iloc[some], y[some])
    table, groups = stream.summary(), stream.summary(groups=True)
    assert ("person", "sd of 60 levels") in table.index
    for found in (table.xs("sd of 60 levels", level="level").iloc[0], groups.loc["person"]):
        right = fit.summary(groups=True).loc["person"]
        assert found["mean"] == pytest.approx(right["mean"], rel=0.02)
        assert found["sd"] == pytest.approx(right["sd"], rel=0.2)  # beside a noise variance
    few = [BayesianLinearRegression(random_state=0) for _ in range(2)]
    rows, y = rows.iloc[:40], y[:40]  # five persons
    few[0].fit(rows, y)
    few[1].partial_fit(rows, y)
    new = rows.iloc[:1].assign(person=999)
    width = [np.diff(model.predict_interval(new)).item() for model in few]
    assert width[1] == pytest.approx(width[0], rel=0.1)


@quick
def test_tables_of_several_classes_have_levels_too():
    model = BayesianLogisticRegression(**SHORT).fit(ROWS, GRADES)
    table = model.summary()
    assert table.index.names == ["class", "term", "level"]
    np.testing.assert_allclose(table.loc[(2, "city"), "mean"], model.coef_[2, :LEVELS])


@quick
def test_levels_that_look_alike_have_different_names():
    labels = np.array([1, "1", None, "missing"], object)[np.arange(N) % 4]
    rows = pd.DataFrame({"code": labels, "age": AGE})
    model = BayesianLinearRegression(categorical_features=["code"], **SHORT).fit(rows, NUMBERS)
    assert model.coef_names_.tolist() == [
        "code[1]",
        "code['1']",
        "code['missing']",
        "code['(missing)']",
        "age",
    ]
    every = model.summary(reference={})
    assert every.loc["code"].index.tolist() == [1, "1", "missing", "(missing)"]
    empty = ROWS.assign(city=pd.Categorical(np.where(MEMBER < 6, "", "Rome")))
    model = BayesianLinearRegression(**SHORT).fit(empty, NUMBERS)
    assert model.summary(reference={}).loc["city"].index.tolist() == ["(empty)", "Rome"]
    assert ("city", "(empty)") not in model.summary(reference={"city": ""}).index


def test_a_picture_has_levels_below_their_factor(fitted):
    display = CoefficientsDisplay.from_estimator(fitted, max_features=None)
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names[:2] == ["age", "city"]
    assert sorted(names[2:]) == list(fitted.factors_["city"].levels)
    own = CoefficientsDisplay.from_estimator(fitted, features="city", max_features=3)
    assert len(own.feature_names) == LEVELS
    assert own.ax_.get_yticklabels()[0].get_text() == "city"
    np.testing.assert_allclose(own.mean[0], fitted.coef_[:LEVELS])
    both = CoefficientsDisplay.from_estimator(fitted, features=["age", "city[c04]"])
    np.testing.assert_allclose(both.mean[0], fitted.coef_[[4, LEVELS]])
    by_name = CoefficientsDisplay.from_estimator(fitted, by=lambda name: name[0])
    assert by_name.feature_names[0] == "city[c00]"
    with pytest.raises(ValueError, match="features: X has no column 'town'"):
        CoefficientsDisplay.from_estimator(fitted, features=["town"])
    plt.close("all")


def test_arviz_has_a_factor_as_a_dimension(fitted):
    tree = fitted.to_arviz(NEW.assign(city=["c03", "Rome", None, "c00"]), np.zeros(4))
    posterior = tree["posterior"]
    assert posterior["coef"].dims == ("chain", "draw", "feature")
    assert posterior["feature"].values.tolist() == ["age"]
    assert posterior["city"].values.tolist() == list(fitted.factors_["city"].levels)
    of_city = posterior["coef_city"].sel(city="c03")
    np.testing.assert_array_equal(of_city, fitted.coef_samples_[..., 3])
    data = tree["constant_data"]
    assert data["X"].shape == (4, 1)
    assert data["city_idx"].values.tolist() == [3, -1, -1, 0]


@quick
def test_arviz_has_slopes_along_the_levels_of_their_factor():
    """And zeros of the level that the others of a flat factor are compared with."""
    rows = VISITS.rename(columns={"person": "group"})  # a dimension of ArviZ
    asked = {("days", "group"): "own", "group": "flat"}
    model = BayesianLinearRegression(prior_groups=asked, **SHORT).fit(rows, REACTION)
    posterior = model.to_arviz()["posterior"]
    for name, columns in (("coef_days:group", range(15, 30)), ("coef_group", [0, *range(1, 15)])):
        assert posterior[name].dims[2:] == ("group_level",)
        expected = model.coef_samples_[..., list(columns)]
        if name == "coef_group":
            expected = np.where(np.arange(15) == 0, 0.0, expected)
        np.testing.assert_array_equal(posterior[name], expected)
    assert posterior["group_level"].values.tolist() == list(range(15))
    alone = BayesianLinearRegression(**SHORT).fit(rows[["group"]], REACTION)
    assert "coef" not in alone.to_arviz()["posterior"]


def test_sensitivity_is_of_the_rows_of_the_table(fitted):
    found = inspection.prior_sensitivity(fitted, ROWS, NUMBERS)
    assert found.index.tolist() == fitted.summary().index.tolist()


@quick
def test_a_factor_of_an_array_behind_a_step_that_names_columns():
    """Names before a step are those of its columns, and not of the levels."""
    array = np.column_stack([MEMBER, AGE])
    model = BayesianLinearRegression(categorical_features=[0], **SHORT)
    pipeline = make_pipeline(FunctionTransformer(feature_names_out="one-to-one"), model)
    pipeline.fit(array, NUMBERS)
    display = CoefficientsDisplay.from_estimator(pipeline, max_features=None)
    assert len(display.feature_names) == LEVELS + 1
    shifted = FunctionTransformer(np.copy, np.copy, feature_names_out="one-to-one").fit(array)
    same = model.summary(scaler=shifted)
    pd.testing.assert_frame_equal(same, model.summary())
    found = inspection.sandwich_summary(pipeline, array, NUMBERS)
    assert found.loc["x0"].index.tolist() == list(range(LEVELS))
    plt.close("all")


def test_the_only_level_of_a_factor_says_nothing_of_others():
    """What the rows know is intercept and effect together; effects have the prior's spread."""
    rows, y = ROWS[:80].assign(city=pd.Categorical(["c00"] * 80)), NUMBERS[:80]
    fitted, streamed = (BayesianLinearRegression(random_state=0) for _ in range(2))
    fitted.fit(rows, y)
    for part in (slice(0, 50), slice(50, 80)):
        streamed.partial_fit(rows[part], y[part])
    at = list(fitted.coef_names_).index("city[c00]")
    new = pd.DataFrame({"city": ["c00", "Rome"], "age": 0.0})
    for each in (fitted, streamed):
        effect = each.coef_std_[at]
        seen, unseen = each.predict(new, return_std=True)[1]
        assert unseen**2 - seen**2 == pytest.approx(2 * effect**2, rel=0.15)
        # the unit of a level is half its range, as where other rows have others
        ratio = each.prior_precision_[at] / each.prior_precision_[1 - at]
        assert ratio == pytest.approx(0.25 / rows["age"].var(ddof=0), rel=1e-3)
    assert streamed.coef_std_[at] == pytest.approx(fitted.coef_std_[at], rel=0.2)
