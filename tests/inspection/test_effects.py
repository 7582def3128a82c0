"""Average effects and contrasts: formulas, units before a Pipeline, columns of words, errors."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianPoissonRegressor,
)
from skbayes_sg.inspection import average_effects, contrast, prediction_summary
from skbayes_sg.inspection.products import products

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = {"n_chains": 4, "n_draws": 25, "burn_in": 20, "random_state": 0}
RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 3)) * [1, 5, 0.1] + [0, 20, 1]
Z = (X[:, 0] - 0.3 * X[:, 1] + 6) / 2
Y = RNG.logistic(size=200) < Z
FRAME = pd.DataFrame(X, columns=["age", "income", "debt"])
FRAME["town"] = RNG.choice(["Ghent", "Antwerp", "Bruges"], 200)
FRAME["owner"] = RNG.integers(0, 2, 200)


@pytest.fixture(scope="module")
def binary():
    return BayesianLogisticRegression(**SHORT).fit(X, Y)


@pytest.fixture(scope="module")
def pipeline():
    columns = make_column_transformer(
        (StandardScaler(), ["age", "income", "debt"]),
        (OneHotEncoder(sparse_output=False), ["town"]),
        ("passthrough", ["owner"]),
    )
    model = BayesianLogisticRegression(**SHORT)
    return make_pipeline(columns, model).fit(FRAME, Y)


def test_derivatives_are_those_of_the_logistic_function(binary):
    p = binary.predict_draws(X, kind="mean")[..., 1]
    expected = (p * (1 - p)).mean(axis=1)[:, None] * binary.coef_samples_.reshape(-1, 3)
    table = average_effects(binary, X)
    assert table.index.tolist() == ["x0", "x1", "x2"]
    assert table.columns.tolist() == ["mean", "sd", "eti95_lb", "eti95_ub", "p_direction"]
    np.testing.assert_allclose(table["mean"], expected.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(table["sd"], expected.std(axis=0), rtol=1e-4)
    low = np.quantile(expected, 0.025, axis=0)
    np.testing.assert_allclose(table["eti95_lb"], low, rtol=1e-4)
    weights = RNG.random(200)
    weighted = average_effects(binary, X, [1], sample_weight=weights)["mean"].item()
    each = (
        np.average(p * (1 - p), axis=1, weights=weights) * binary.coef_samples_[..., 0, 1].ravel()
    )
    assert weighted == pytest.approx(each.mean(), rel=1e-5)


def test_a_contrast_of_weighted_rows_is_that_of_repeated_rows(binary):
    """For all draws of a fit whose draws weigh alike."""
    rows, more = X[:30], X[:30] + np.array([1.0, -2.0, 0.05])
    times = np.arange(30) // 8
    weighted = contrast(binary, more, rows, sample_weight=times, n_draws=None)
    repeated = contrast(
        binary, *(np.repeat(part, times, axis=0) for part in (more, rows)), n_draws=None
    )
    np.testing.assert_allclose(weighted.to_numpy(), repeated.to_numpy(), rtol=1e-10)
    alike = contrast(binary, more, rows, n_draws=None)
    assert abs(alike["mean"] - weighted["mean"]).item() > 1e-3


def test_of_a_regression_they_are_its_coefficients():
    model = make_pipeline(StandardScaler(), BayesianLinearRegression(**SHORT)).fit(X, Z)
    table, expected = average_effects(model, X), model[-1].summary(scaler=model[0])
    for column in ("mean", "sd", "eti95_lb", "eti95_ub"):
        np.testing.assert_allclose(table[column], expected[column][:3], rtol=1e-6, atol=1e-9)


@pytest.mark.usefixtures("_short_searches")
def test_of_classes_they_sum_to_nothing():
    labels = np.digitize(Z, [-1, 1])
    model = BayesianMLPClassifier((4,), sampler="hmc", **SHORT).fit(X, labels)
    table = average_effects(model, X, [0])
    assert table.index.tolist() == [("x0", 0), ("x0", 1), ("x0", 2)]
    assert abs(table["mean"].sum()) < 1e-9
    step = np.array([1e-3, 0, 0])
    p = [model.predict_proba(rows).mean(axis=0) for rows in (X + step, X - step)]
    np.testing.assert_allclose(table["mean"], (p[0] - p[1]) / 2e-3, rtol=1e-4, atol=1e-8)


def test_differences_are_in_the_units_that_a_pipeline_is_given(pipeline):
    table = average_effects(pipeline, FRAME, kind="difference")
    names = ["age", "income", "debt", "town[Bruges]", "town[Ghent]", "owner"]
    assert table.index.tolist() == names

    def mean(**values):
        return pipeline.predict_proba(FRAME.assign(**values))[:, 1].mean()

    expected = [
        mean(age=FRAME["age"] + 1) - mean(),
        mean(income=FRAME["income"] + 1) - mean(),
        mean(debt=FRAME["debt"] + 1) - mean(),
        mean(town="Bruges") - mean(town="Antwerp"),
        mean(town="Ghent") - mean(town="Antwerp"),
        mean(owner=1) - mean(owner=0),
    ]
    np.testing.assert_allclose(table["mean"], expected, rtol=1e-6, atol=1e-9)
    derivatives = average_effects(pipeline, FRAME, kind="derivative")
    assert derivatives.index.tolist() == ["age", "income", "debt", "owner"]


def test_contrasts_are_of_averages_under_each_draw(pipeline):
    poor, rich = FRAME.assign(income=15.0), FRAME.assign(income=25.0)
    draws = [
        pipeline[-1].predict_draws(pipeline[:-1].transform(rows), kind="mean")[..., 1].mean(axis=1)
        for rows in (rich, poor)
    ]
    difference, ratio = (contrast(pipeline, rich, poor, scale=k) for k in ("difference", "ratio"))
    assert difference["mean"].item() == pytest.approx((draws[0] - draws[1]).mean())
    assert ratio["mean"].item() == pytest.approx((draws[0] / draws[1]).mean())
    assert ratio["eti95_ub"].item() == pytest.approx(np.quantile(draws[0] / draws[1], 0.975))
    assert difference.index.tolist() == ["difference"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": ["wealth"]}, "X has no column 'wealth'"),
        ({"features": ["town"], "kind": "derivative"}, "'town' holds words"),
        ({"kind": "slope"}, "kind must be"),
        ({"level": 1.5}, "level"),
        ({"sample_weight": -np.ones(200)}, "[Nn]egative"),
    ],
)
def test_errors_say_what_to_do(pipeline, arguments, message):
    with pytest.raises(ValueError, match=message):
        average_effects(pipeline, FRAME, **arguments)


# -- kinds, references, groups, scales ------------------------------------------------------------


def test_auto_is_differences_of_levels_and_few_numbers_and_derivatives_of_others(pipeline):
    frame = FRAME.assign(income=FRAME["income"].clip(15, 24).round())  # ten whole numbers
    table = average_effects(pipeline, frame)
    numbers, words = (
        average_effects(pipeline, frame, kind=k) for k in ("derivative", "difference")
    )
    assert table.index.tolist() == ["age", "income", "debt", "town[Bruges]", "town[Ghent]", "owner"]
    for term in table.index:
        expected = numbers if term in ("age", "debt") else words
        pd.testing.assert_series_equal(table.loc[term], expected.loc[term])
    frame.loc[0, "income"] = 25.0
    eleven = average_effects(pipeline, frame, "income")
    pd.testing.assert_frame_equal(eleven, average_effects(pipeline, frame, 1, kind="derivative"))


@pytest.mark.parametrize("ordered", [False, True])
def test_levels_are_compared_with_the_first_category_or_with_what_is_asked_for(pipeline, ordered):
    order = ["Paris", "Ghent", "Bruges", "Antwerp"]  # of which no row is from Paris
    typed = FRAME.assign(town=pd.Categorical(FRAME["town"], order, ordered=ordered))
    table = average_effects(pipeline, typed, "town")
    assert table.index.tolist() == ["town[Bruges]", "town[Antwerp]"]
    assert table.attrs["reference of town"] == "Ghent"
    expected = [mean_of(pipeline, FRAME, town=t) for t in ("Bruges", "Antwerp", "Ghent")]
    np.testing.assert_allclose(table["mean"], np.subtract(expected[:2], expected[2]), rtol=1e-6)
    asked = average_effects(pipeline, FRAME, "town", reference={"town": "Ghent"})
    assert asked.index.tolist() == ["town[Antwerp]", "town[Bruges]"]
    pd.testing.assert_frame_equal(asked.iloc[::-1], table)
    numbers = average_effects(pipeline, FRAME, reference={"owner": 1})
    assert numbers.index[-1] == "owner[0]"
    back = average_effects(pipeline, FRAME, "owner")["mean"].item()
    assert numbers["mean"].iloc[-1] == pytest.approx(-back)


def test_the_reference_of_an_enum_is_its_first_level():
    polars = pytest.importorskip("polars")
    town = polars.Series(
        "town", FRAME["town"].tolist(), dtype=polars.Enum(["Ghent", "Bruges", "Antwerp"])
    )
    frame = polars.DataFrame([town, polars.Series("age", FRAME["age"].to_numpy())])
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["town"]), remainder="passthrough"
    )
    model = make_pipeline(columns, BayesianLogisticRegression(**SHORT)).fit(frame, Y)
    table = average_effects(model, frame)
    assert table.index.tolist() == ["town[Bruges]", "town[Antwerp]", "age"]


def test_effects_by_a_column_average_to_that_of_all_rows(pipeline):
    weights = RNG.random(200)
    every = average_effects(pipeline, FRAME, ["age", "owner"], sample_weight=weights)
    for by in ("town", FRAME["town"]):
        table = average_effects(pipeline, FRAME, ["age", "owner"], by=by, sample_weight=weights)
        assert table.index.names == ["term", "town" if isinstance(by, str) else "by"]
        assert table.loc["age"].index.tolist() == ["Antwerp", "Bruges", "Ghent"]
        shares = pd.Series(weights).groupby(FRAME["town"]).sum() / weights.sum()
        for term in ("age", "owner"):
            total = (table.loc[term, "mean"] * shares).sum()
            assert total == pytest.approx(every.loc[term, "mean"], rel=1e-9)
        of_ghent = FRAME["town"] == "Ghent"
        alone = average_effects(pipeline, FRAME[of_ghent], "owner", sample_weight=weights[of_ghent])
        np.testing.assert_allclose(table.loc[("owner", "Ghent")], alone.loc["owner"])
    labels = np.digitize(Z, [-1, 1])
    three = BayesianLogisticRegression(**SHORT).fit(X, labels)
    table = average_effects(three, X, 0, by=FRAME["town"])
    assert table.index.names == ["term", "by", "class"]
    np.testing.assert_allclose(table["mean"].groupby("by").sum(), 0, atol=1e-9)
    alone = average_effects(three, X[of_ghent], 0)
    # rows of one town have a standard deviation, and so a step, of their own
    np.testing.assert_allclose(table.loc[("x0", "Ghent")], alone.loc["x0"], rtol=1e-4)


def test_draws_that_are_taken_stand_for_all_with_their_weights():
    """The first half of the draws says 1, and weighs most; the second half says -1."""
    model = BayesianLinearRegression(prior_precision=1.0, **SHORT).fit(X, Z)
    half, weights = model.draws_.shape[1] // 2, np.geomspace(1.0, 0.01, model.draws_.shape[1])
    model.draws_[:, :half, 0], model.draws_[:, half:, 0] = 1.0, -1.0
    model.draw_weights_ = weights / weights.sum()
    first = model.draw_weights_[:half].sum()
    every = average_effects(model, X, [0], n_draws=None)["mean"].item()
    assert every == pytest.approx(2 * first - 1, abs=1e-6)
    some = average_effects(model, X, [0], n_draws=4 * 12)["mean"].item()
    assert some == pytest.approx(every, abs=2 / 12)


@pytest.mark.parametrize("kind", ["derivative", "difference"])
def test_blocks_of_rows_have_offsets_of_their_own(kind, monkeypatch):
    years = np.geomspace(0.1, 10.0, 200)
    y = np.random.default_rng(2).poisson(years * np.exp(0.5 * X[:, 0]))
    model = BayesianPoissonRegressor(**SHORT).fit(X, y, exposure=years)
    known = {"exposure": years, "kind": kind}
    whole = average_effects(model, X, [0, 2], **known)
    rows = prediction_summary(model, X, exposure=years)
    monkeypatch.setattr("skbayes_sg.inspection.responses.elements_at_a_time", lambda: 100)
    np.testing.assert_allclose(average_effects(model, X, [0, 2], **known), whole, rtol=1e-9)
    np.testing.assert_allclose(prediction_summary(model, X, exposure=years), rows, rtol=1e-9)


def test_halves_are_no_counts():
    """A step of one unit is a comparison of whole numbers; of halves it may leave the data."""
    halves = np.column_stack([RNG.integers(0, 4, 200) / 2, X[:, 0]])
    model = BayesianLogisticRegression(**SHORT).fit(halves, halves[:, 0] > 0.7 + 0.3 * X[:, 0])
    found = average_effects(model, halves, [0])["mean"].item()
    slope, step = (
        average_effects(model, halves, [0], kind=kind)["mean"].item()
        for kind in ("derivative", "difference")
    )
    assert abs(slope - step) > 0.01
    assert found == slope
    whole = BayesianLogisticRegression(**SHORT).fit(2 * halves, Y)
    found, step = (average_effects(whole, 2 * halves, [0], kind=k) for k in ("auto", "difference"))
    pd.testing.assert_frame_equal(found, step)


def test_the_region_around_no_effect_is_around_one_for_ratios():
    rates = np.random.default_rng(3).poisson(np.exp(1 + 0.1 * X[:, 0]))
    model = BayesianPoissonRegressor(**SHORT).fit(X[:, :1], rates)
    table = average_effects(model, X[:, :1], scale="ratio", rope=0.1, n_draws=None)
    ratios = np.exp(model.coef_samples_[..., 0])
    share = ((ratios >= 0.9) & (ratios <= 1.1)).mean()
    assert 0.05 < share < 0.95
    assert table["p_rope"].item() == pytest.approx(share, abs=1e-9)


def test_odds_ratios_and_risk_ratios_are_those_of_average_probabilities(pipeline):
    draws = {}
    for owner in (0, 1):
        rows = pipeline[:-1].transform(FRAME.assign(owner=owner))
        draws[owner] = pipeline[-1].predict_draws(rows, kind="mean")[..., 1].mean(axis=1)
    ratio = draws[1] / draws[0]
    odds = ratio * (1 - draws[0]) / (1 - draws[1])
    for scale, expected, words in (
        ("ratio", ratio, "risk ratio of True"),
        ("odds_ratio", odds, "odds ratio of True"),
    ):
        table = average_effects(pipeline, FRAME, "owner", scale=scale, rope=0.1, full=True)
        assert table.attrs["quantity"] == table.columns.name == words
        assert table["mean"].item() == pytest.approx(expected.mean(), rel=1e-6)
        assert table["eti95_ub"].item() == pytest.approx(np.quantile(expected, 0.975), rel=1e-6)
        above = (expected > 1).mean()
        assert table["p_direction"].item() == pytest.approx(max(above, 1 - above))
        assert table["p_rope"].item() == pytest.approx((abs(expected - 1) <= 0.1).mean())
        pairs = FRAME.assign(owner=1), FRAME.assign(owner=0)
        same = contrast(pipeline, *pairs, scale=scale, rope=(0.9, 1.1), full=True)
        np.testing.assert_allclose(same, table)
        assert same.columns.name == words


def test_a_class_may_be_turned(pipeline):
    for scale in ("difference", "odds_ratio"):
        table = average_effects(pipeline, FRAME, scale=scale)
        other = average_effects(pipeline, FRAME, scale=scale, positive=False)
        assert other.columns.name.endswith("of False")
        np.testing.assert_allclose(other["p_direction"], table["p_direction"])
        if scale == "difference":
            np.testing.assert_allclose(other["eti95_lb"], -table["eti95_ub"])
    same = average_effects(pipeline, FRAME, positive=True)
    pd.testing.assert_frame_equal(same, average_effects(pipeline, FRAME))
    pair = FRAME, FRAME.assign(owner=0)
    np.testing.assert_allclose(
        contrast(pipeline, *pair)["mean"], -contrast(pipeline, *pair, positive=False)["mean"]
    )


@pytest.fixture(scope="module")
def counts():
    people = np.exp(RNG.normal(1, 1, 200))
    y = RNG.poisson(people * np.exp(0.3 * X[:, 0] + 0.5 * FRAME["owner"]))
    frame = FRAME[["age", "owner"]]
    return frame, people, BayesianPoissonRegressor(**SHORT).fit(frame, y, exposure=people)


def test_rate_ratios_are_exponentials_of_coefficients_whatever_the_exposure(counts):
    frame, people, model = counts
    expected = np.exp(model.coef_samples_.reshape(-1, 2))
    for known in ({"exposure": people}, {"offset": np.log(people)}, {"exposure": 3.0}):
        table = average_effects(model, frame, scale="ratio", **known)
        assert table.columns.name == "rate ratio"
        np.testing.assert_allclose(table["mean"], expected.mean(axis=0), rtol=1e-4)
        np.testing.assert_allclose(table["sd"], expected.std(axis=0), rtol=1e-3)


def test_differences_are_in_proportion_to_the_exposure(counts):
    frame, people, model = counts
    rates = [model.predict(frame.assign(owner=v), exposure=people) for v in (0, 1)]
    table = average_effects(model, frame, "owner", exposure=people)
    assert table["mean"].item() == pytest.approx(np.mean(rates[1] - rates[0]), rel=1e-6)
    double = average_effects(model, frame, "owner", exposure=2 * people)
    np.testing.assert_allclose(double[["mean", "sd"]], 2 * table[["mean", "sd"]], rtol=1e-9)
    pair = frame.assign(owner=1), frame.assign(owner=0)
    same = contrast(model, *pair, exposure=people)
    np.testing.assert_allclose(same["mean"], table["mean"])
    with pytest.raises(ValueError, match="was fitted with an offset or exposure"):
        average_effects(model, frame)
    gaps = frame.assign(age=frame["age"].where(frame["age"] < 0.5))
    imputing = make_pipeline(SimpleImputer(), model)
    imputing[0].fit(frame)
    with pytest.warns(UserWarning, match="age"), pytest.warns(UserWarning, match="feature names"):
        some = average_effects(imputing, gaps, "age", kind="difference", exposure=people)
    there = gaps["age"].notna().to_numpy()
    alone = average_effects(model, frame[there], "age", kind="difference", exposure=people[there])
    assert some["mean"].item() == pytest.approx(alone["mean"].item(), rel=1e-9)


def test_as_many_evenly_spaced_draws_are_used_as_there_are_effective_ones():
    model = BayesianLogisticRegression(
        n_chains=4, n_draws=400, burn_in=20, thin=1, n_predict_draws=None, random_state=0
    ).fit(X, Y)
    every = average_effects(model, X, n_draws=None)
    p = model.predict_draws(X, kind="mean")[..., 1]
    draws = ((p * (1 - p)).mean(axis=1)[:, None] * model.coef_samples_.reshape(-1, 3)).reshape(
        4, 400, 3
    )
    np.testing.assert_allclose(every["mean"], draws.mean(axis=(0, 1)), rtol=1e-5)
    found = average_effects(model, X, n_draws=320)
    spaced = draws[:, 2::5]
    np.testing.assert_allclose(found["mean"], spaced.mean(axis=(0, 1)), rtol=1e-5)
    model.diagnostics_ |= {"ess_min": 700.0, "ess_tail_min": 900.0}
    pd.testing.assert_frame_equal(average_effects(model, X), every)  # matched, all together
    model._fit = replace(model._fit, batches=None)  # as those of a sampler that was named
    for ess, n in ((700.0, 175), (30.0, 100), (5000.0, 400), (np.nan, 400)):
        model.diagnostics_ |= {"ess_min": ess, "ess_tail_min": 2 * ess}
        expected = every if n == 400 else average_effects(model, X, n_draws=4 * n)
        pd.testing.assert_frame_equal(average_effects(model, X), expected)
    for n_draws in (15, "all", 40.0):
        with pytest.raises((ValueError, TypeError), match="n_draws must be"):
            average_effects(model, X, n_draws=n_draws)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"reference": {"town": "Rome"}}, "no row of column 'town' has the level 'Rome'"),
        ({"reference": {"village": "Rome"}}, "reference: X has no column 'village'"),
        ({"reference": "Ghent"}, "reference must be a dict"),
        ({"reference": {"town": "Ghent"}, "features": "age"}, "no levels of column 'town'"),
        ({"by": "village"}, "by: X has no column 'village'"),
        ({"by": [1, 2]}, "by must have shape"),
        ({"by": [None, "a"] * 100}, "by is missing in row 0"),
        ({"offset": np.ones(150)}, "a number for each of 200 rows"),
        ({"offset": np.ones(250)}, "a number for each of 200 rows"),
        ({"scale": "logit"}, "scale must be"),
        ({"positive": "yes"}, "positive must be one of"),
        ({"exposure": 1.0}, "exposure multiplies a mean"),
        ({"by": "town", "sample_weight": (FRAME["town"] != "Ghent") * 1.0}, "zero for all rows"),
    ],
)
def test_what_cannot_be_compared_is_refused(pipeline, arguments, message):
    with pytest.raises(ValueError, match=message):
        average_effects(pipeline, FRAME, **arguments)


def test_a_regression_has_no_odds_no_class_and_ratios_of_positive_means_only():
    line = BayesianLinearRegression(**SHORT).fit(X, Z)
    assert average_effects(line, X).columns.name == "mean of y"
    for arguments, message in (
        ({"scale": "odds_ratio"}, "this regression has no odds"),
        ({"positive": 1}, "positive is a class of two"),
        ({"scale": "ratio"}, "a ratio is of means above 0"),
    ):
        with pytest.raises(ValueError, match=message):
            average_effects(line, X * [1, 2, 1], **arguments)


# -- rows with missing cells ------------------------------------------------------------------


def with_gaps(missing):
    """The frame with such cells in a column of each kind, and the rows that have them."""
    rng = np.random.default_rng(2)
    frame, gaps = FRAME.copy(), {}
    for name, share in (("age", 0.1), ("owner", 0.3), ("town", 0.2)):
        gaps[name] = rng.random(200) < share
        column = frame[name].astype(object if missing is pd.NA or name == "town" else float)
        column[gaps[name]] = missing
        frame[name] = column
    return frame, gaps


def imputing(missing=np.nan):
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "income", "debt"]),
        (SimpleImputer(strategy="most_frequent"), ["owner"]),
        (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), ["town"]),
    )
    return make_pipeline(columns, BayesianLogisticRegression(**SHORT))


@pytest.fixture(scope="module")
def gaps_and_model():
    frame, gaps = with_gaps(np.nan)
    return frame, gaps, imputing().fit(frame, Y)


def mean_of(model, frame, **values):
    return model.predict_proba(frame.assign(**values))[:, 1].mean()


def test_a_column_of_two_values_is_one_where_cells_are_missing(gaps_and_model):
    frame, _, model = gaps_and_model
    table = average_effects(model, frame, ["owner", "town"], kind="difference")
    assert table.index.tolist() == ["owner", "town[Bruges]", "town[Ghent]"]
    assert not [fact for fact in table.attrs if "left out" in fact]  # all rows can be compared
    expected = [
        mean_of(model, frame, owner=1.0) - mean_of(model, frame, owner=0.0),
        mean_of(model, frame, town="Bruges") - mean_of(model, frame, town="Antwerp"),
        mean_of(model, frame, town="Ghent") - mean_of(model, frame, town="Antwerp"),
    ]
    np.testing.assert_allclose(table["mean"], expected, rtol=1e-6)


@pytest.mark.parametrize("kind", ["derivative", "difference"])
def test_rows_that_cannot_be_moved_are_left_out_and_counted(gaps_and_model, kind):
    frame, gaps, model = gaps_and_model
    n = int(gaps["age"].sum())
    assert n > 10
    weights = np.random.default_rng(0).random(200)
    with pytest.warns(UserWarning, match=re.escape(f"age ({n} of 200)")):
        table = average_effects(model, frame, ["age", "debt"], kind=kind, sample_weight=weights)
    assert table.attrs["rows left out of age"] == n
    there = ~gaps["age"]
    complete = average_effects(model, frame[there], "age", kind=kind, sample_weight=weights[there])
    for name in table:
        assert table.loc["age", name] == pytest.approx(complete.loc["age", name], rel=1e-9)
    assert table.notna().all(axis=None)


@pytest.mark.parametrize("missing", [None, pd.NA])
def test_all_kinds_of_missing_cells_are_missing(gaps_and_model, missing):
    frame, _, model = gaps_and_model
    other, _ = with_gaps(missing)
    impute = make_pipeline(  # scikit-learn's steps take NaN alone
        FunctionTransformerToNaN(), *[step for _, step in model.steps]
    )
    for kind, features in (("derivative", ["age"]), ("difference", ["age", "owner", "town"])):
        with pytest.warns(UserWarning, match="age"):
            tables = [average_effects(impute, X, features, kind=kind) for X in (frame, other)]
        pd.testing.assert_frame_equal(*tables, rtol=1e-7)
        assert tables[0].attrs == tables[1].attrs != {}


class FunctionTransformerToNaN(StandardScaler):
    """Takes None and NA to NaN, and numbers among objects to floats."""

    def transform(self, X):
        X = X.copy()
        for name in ("age", "owner"):
            X[name] = pd.to_numeric(X[name]).astype(float)
        X["town"] = X["town"].astype(object).where(X["town"].notna(), np.nan)
        return X

    def __sklearn_is_fitted__(self):
        return True


def test_of_arrays_too():
    rows = X.copy()
    gaps = np.random.default_rng(1).random(200) < 0.2
    rows[gaps, 1] = np.nan
    model = make_pipeline(SimpleImputer(), BayesianLogisticRegression(**SHORT)).fit(rows, Y)
    with pytest.warns(UserWarning, match="x1"):
        table = average_effects(model, rows)
    assert table.attrs["rows left out of x1"] == gaps.sum()
    complete = average_effects(model, rows[~gaps], 1)
    assert table.loc["x1", "sd"] == pytest.approx(complete.loc["x1", "sd"], rel=1e-9)
    assert table.notna().all(axis=None)


def test_columns_that_have_nothing_to_compare_are_refused(pipeline):
    for values, message in (
        ({"town": np.full(200, None, dtype=object)}, "all cells of column 'town' are missing"),
        ({"town": "Ghent"}, "'town' has one value"),
        ({"town": [1, "Ghent"] * 100}, "no order among them"),
    ):
        with pytest.raises(ValueError, match=message):
            average_effects(pipeline, FRAME.assign(**values), "town", kind="difference")
    with pytest.raises(ValueError, match="no columns"):
        average_effects(pipeline, FRAME, [])


# -- frames of other libraries, categories ----------------------------------------------------


@pytest.mark.parametrize("library", ["pyarrow", "polars"])
def test_frames_of_all_libraries_have_the_same_effects(library):
    pytest.importorskip(library)
    frame = FRAME.drop(columns="town")
    native = _frame_of(library, frame)
    model = make_pipeline(StandardScaler(), BayesianLogisticRegression(**SHORT))
    model.fit(native, Y)
    assert model[0].feature_names_in_.tolist() == ["age", "income", "debt", "owner"]
    gaps = frame.assign(age=frame["age"].where(frame["age"] < 1))
    for kind in ("derivative", "difference"):
        expected = average_effects(model, frame, kind=kind)
        assert expected.index.tolist() == ["age", "income", "debt", "owner"]
        pd.testing.assert_frame_equal(average_effects(model, native, kind=kind), expected)
        named = average_effects(model, native, "owner", kind=kind)
        pd.testing.assert_frame_equal(named, expected.loc[["owner"]])
    imputing = make_pipeline(SimpleImputer(), *[clone(step) for _, step in model.steps])
    imputing.fit(frame, Y)
    with pytest.warns(UserWarning, match="age"):
        tables = [average_effects(imputing, X) for X in (gaps, _frame_of(library, gaps))]
    pd.testing.assert_frame_equal(*tables)
    assert tables[0].attrs == tables[1].attrs
    assert tables[0].attrs["rows left out of age"] == gaps["age"].isna().sum()
    labels = prediction_summary(model, native).index
    assert labels.tolist() == list(range(200))
    difference = contrast(model, native, _frame_of(library, frame.assign(owner=0)))
    expected = contrast(model, frame, frame.assign(owner=0))
    pd.testing.assert_frame_equal(difference, expected)


def _frame_of(library, frame):
    import pyarrow

    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    if library == "pyarrow":
        return table
    import polars

    return polars.from_arrow(table)


@pytest.mark.parametrize("dtype", ["category", "string", "string[pyarrow]", "object"])
def test_categories_keep_their_type(pipeline, dtype):
    plain = average_effects(pipeline, FRAME, ["town"], kind="difference")
    seen = []

    class Recorder(StandardScaler):
        def transform(self, rows):
            seen.append(rows["town"].dtype)
            return rows

        def __sklearn_is_fitted__(self):
            return True

    typed = FRAME.assign(town=FRAME["town"].astype(dtype)).set_index(FRAME.index[::-1])
    model = make_pipeline(Recorder(), *[step for _, step in pipeline.steps])
    table = average_effects(model, typed, ["town"], kind="difference")
    pd.testing.assert_frame_equal(table, plain)
    assert set(seen) == {typed["town"].dtype}


def test_numbers_as_categories_are_compared_as_levels(pipeline):
    typed = FRAME.assign(owner=FRAME["owner"].astype("category"))
    table = average_effects(pipeline, typed, ["owner"], kind="difference")
    assert table.index.tolist() == ["owner[1]"]
    expected = average_effects(pipeline, FRAME, ["owner"], kind="difference")
    np.testing.assert_allclose(table, expected)
    with pytest.raises(ValueError, match="'owner' holds words"):
        average_effects(pipeline, typed, ["owner"], kind="derivative")


# -- words ------------------------------------------------------------------------------------


def test_a_feature_may_stand_alone(pipeline, binary):
    for alone in ("age", np.str_("age"), 0, np.int64(0)):
        pd.testing.assert_frame_equal(
            average_effects(pipeline, FRAME, alone), average_effects(pipeline, FRAME, ["age"])
        )
    assert average_effects(binary, X, 2).index.tolist() == ["x2"]
    assert average_effects(binary, X, [2, 0, 2]).index.tolist() == ["x2", "x0", "x2"]
    with pytest.raises(ValueError, match="X has no column 'ag'"):
        average_effects(pipeline, FRAME, "ag")


@pytest.mark.parametrize(
    "function",
    [average_effects, prediction_summary, lambda model, rows: contrast(model, rows, rows)],
)
def test_an_estimator_without_draws_is_told_so(function):
    fitted = LogisticRegression().fit(X, Y)
    search = GridSearchCV(BayesianLogisticRegression(**SHORT), {"n_draws": [20]}, cv=2)
    for model in (fitted, make_pipeline(StandardScaler(), fitted).fit(X, Y), search.fit(X, Y)):
        name = "GridSearchCV" if model is search else "LogisticRegression"
        with pytest.raises(ValueError, match=f"draws_, which {name} has not; give an estimator"):
            function(model, X)
    with pytest.raises(NotFittedError):
        function(BayesianLogisticRegression(), X)


def test_lazy_rows_and_rows_too_far_out_are_refused(binary):
    dask = pytest.importorskip("dask.dataframe")
    lazy = dask.from_pandas(FRAME[["age", "income", "debt"]], npartitions=2)
    with pytest.raises(ValueError, match=r"rows in memory.*X\.compute\(\)"):
        average_effects(binary, lazy)
    counts = BayesianPoissonRegressor(**SHORT).fit(X[:, :1], np.rint(np.exp(X[:, 0])))
    with pytest.raises(ValueError, match="beyond the largest number under some draws, as in row 1"):
        average_effects(counts, [[0.0], [1e5], [1e5]], kind="derivative")


def test_products_that_do_not_move_with_their_factors_are_named():
    """By their numbers, whatever their names are; other columns are none."""
    rows = FRAME[["age", "income", "owner", "town"]].assign(
        mine=FRAME["age"] * FRAME["owner"],
        square=FRAME["income"].astype(np.float32) ** 2,
        there=FRAME["income"] * (FRAME["town"] == "Ghent"),
        twice=2 * FRAME["age"],
        total=FRAME["age"] + FRAME["income"],
    )
    age, income, owner, town, mine, square, there, twice, total = range(9)
    for moved, found in (
        (age, {mine: age}),
        (owner, {mine: owner}),
        (town, {there: town}),
        (income, {square: income, there: income}),
        (twice, {}),
        (total, {}),
        (mine, {}),
    ):
        assert products(rows, [moved]) == found
    nearly = rows.assign(mine=rows["mine"] + 0.1 * (np.arange(200) == 77))
    assert products(nearly, [owner]) == {}
    rows = rows[["age", "owner", "mine"]]
    model = BayesianLinearRegression(**SHORT).fit(rows, X[:, 0])
    shown = r"products of columns that move: 'mine' \(of 'age'\); they stay"
    with pytest.warns(UserWarning, match=shown):
        average_effects(model, rows)
    with warnings.catch_warnings(action="error"):
        average_effects(model, rows, "mine")


def test_products_of_arrays_are_found_in_all_rows():
    """Those of rows that are looked at first may be none of all."""
    wide = np.repeat(X, 5, axis=0)
    product = wide[:, 0] * wide[:, 1]
    assert products(np.column_stack([wide, product]), [1]) == {3: 1}
    product[501] += 1.0
    assert products(np.column_stack([wide, product]), [1]) == {}
    gaps = np.column_stack([wide, wide[:, 0] * wide[:, 1]])
    gaps[3, 2] = np.nan
    assert products(gaps, [0, 1, 2]) == {3: 0}
    gaps[3, 0] = np.nan
    assert products(gaps, [0, 1, 2]) == {}
