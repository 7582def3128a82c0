"""`summary()`: every column against its definition, and the units before a scaler."""

import copy
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from arviz_stats.base import array_stats
from scipy import stats
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianOrdinalClassifier,
    DRBMClassifier,
)
from skbayes_sg.inspection.table import Table
from skbayes_sg.samplers import SGLD, CosineCycle, PolynomialDecay

pytestmark = [
    pytest.mark.usefixtures("_short_searches"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
SHORT = {"n_chains": 4, "n_draws": 50, "burn_in": 20, "random_state": 0}
RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 3)) * [1e-3, 1, 50] + [0, 3, 1e4]
FRAME = pd.DataFrame(X, columns=["age", "income", "debt"])
Z = StandardScaler().fit_transform(X)
PAIR = np.where(Z @ [1, -1, 0.5] + RNG.logistic(size=300) > 0, "yes", "no")
TRIPLE = np.array(["cold", "mild", "hot"])[
    (Z @ RNG.standard_normal((3, 3)) + RNG.gumbel(size=(300, 3))).argmax(axis=1)
]
NUMBERS = Z @ [1, -1, 0.5] + RNG.standard_normal(300)


def logistic(data=Z, y=PAIR, **changes):
    return BayesianLogisticRegression(**SHORT | changes).fit(data, y)


@pytest.fixture(scope="module")
def pair():
    return logistic()


@pytest.fixture(scope="module")
def triple():
    return logistic(y=TRIPLE)


def test_columns_are_what_they_are_called(pair):
    for figure in ("mean", "sd"):
        as_drawn = array_stats.mcse(pair.draws_, method=figure, chain_axis=0, draw_axis=1)
        assert (pair.summary(full=True)[f"mcse_{figure}"] < 0.3 * as_drawn).all()
    pair = copy.copy(pair)
    pair._fit = replace(pair._fit, batches=None)  # of draws that are not matched
    table, draws = pair.summary(level=0.8, rope=0.3, full=True), pair.draws_
    assert table.index.tolist() == ["x0", "x1", "x2", "intercept"]
    ends = np.quantile(draws, [0.1, 0.9], axis=(0, 1))
    axes = {"chain_axis": 0, "draw_axis": 1}
    shortest = np.transpose([array_stats.hdi(draws[..., j].ravel(), 0.8) for j in range(4)])
    sides = draws[..., :3] > 0.3, draws[..., :3] < -0.3
    wrong = 1 - np.max([side.mean(axis=(0, 1)) for side in sides], axis=0)
    expected = {
        "mean": np.append(pair.coef_, pair.intercept_),
        "sd": draws.std(axis=(0, 1)),
        "eti80_lb": ends[0],
        "eti80_ub": ends[1],
        "hdi80_lb": shortest[0],
        "hdi80_ub": shortest[1],
        "odds_ratio": np.exp(np.median(draws, axis=(0, 1))),
        "odds_ratio_eti80_lb": np.exp(ends[0]),
        "odds_ratio_eti80_ub": np.exp(ends[1]),
        "p_direction": (np.sign(draws) == np.sign(np.median(draws, axis=(0, 1)))).mean(axis=(0, 1)),
        "p_rope": (np.abs(draws) <= 0.3).mean(axis=(0, 1)),
        "ess_bulk": array_stats.ess(draws, method="bulk", **axes),
        "ess_tail": array_stats.ess(draws, method="tail", prob=(0.05, 0.95), **axes),
        "r_hat": array_stats.rhat(draws, method="rank", **axes),
        "mcse_mean": array_stats.mcse(draws, method="mean", **axes),
        "mcse_sd": array_stats.mcse(draws, method="sd", **axes),
        "fdr": [*(wrong[wrong <= one].mean() for one in wrong), np.nan],
    }
    assert table.columns.tolist() == list(expected)
    for name, column in expected.items():
        rtol = 0.1 if name == "mcse_sd" else 1e-10  # ArviZ takes another effective number
        np.testing.assert_allclose(table[name], column, rtol=rtol, err_msg=name)
    np.testing.assert_allclose(table["sd"].to_numpy()[:3], pair.coef_std_[0])


def test_by_default_there_are_the_main_columns_at_most_seven(pair, triple):
    for table, model in ((pair.summary(), pair), (triple.summary(), triple)):
        names = ["mean", "sd", "eti95_lb", "eti95_ub", "odds_ratio"]
        assert table.columns.tolist() == [*names, "odds_ratio_eti95_lb", "odds_ratio_eti95_ub"]
        whole = model.summary(full=True)[table.columns]
        if model is triple:  # odds of a class where all columns are zero
            ratios = [name for name in whole if name.startswith("odds_ratio")]
            assert whole.loc[(slice(None), "intercept"), ratios].notna().all(axis=None)
            whole.loc[(slice(None), "intercept"), ratios] = np.nan
        pd.testing.assert_frame_equal(table, whole)
    line = BayesianLinearRegression(**SHORT).fit(Z, NUMBERS)
    names = ["mean", "sd", "eti95_lb", "eti95_ub", "p_direction"]
    assert line.summary().columns.tolist() == names
    assert line.summary(rope=1.0).columns.tolist() == [*names, "p_rope", "fdr"]
    assert [name for name in line.summary(groups=True) if name.startswith("p_")] == []


def test_the_coefficients_that_matter_most_come_first(pair, triple):
    """By their probability beyond the region of equivalence, or by size; other rows follow."""
    whole = pair.summary(rope=1.0)
    assert whole["fdr"].nunique() == 3
    table = pair.summary(rope=1.0, most=2)
    assert table.index.tolist() == [*whole["fdr"].iloc[:3].nsmallest(2).index, "intercept"]
    pd.testing.assert_frame_equal(table, whole.loc[table.index])
    whole = triple.summary(full=True)
    table = triple.summary(full=True, most=1)
    size = (whole["mean"] / whole["sd"]).abs().drop("intercept", level="term")
    assert table.index[0] == size.idxmax()
    assert table.index.get_level_values("term").tolist()[1:] == ["intercept"] * 3
    with pytest.raises(ValueError, match="most must be"):
        pair.summary(most=0)


def test_what_is_wide_is_no_discovery(pair):
    """A coefficient of which nothing is known is beyond any small region, on either side."""
    rng = np.random.default_rng(0)
    model = copy.copy(pair)
    model.draws_ = rng.standard_normal(pair.draws_.shape) * [1.0, 0.01, 0.1, 1] + [0, 0.04, 0.5, 0]
    table = model.summary(rope=0.02, most=2)
    assert table.index.tolist() == ["x2", "x1", "intercept"]
    whole = model.summary(rope=0.02)
    assert whole["p_rope"].idxmin() == "x2"
    assert whole["p_rope"]["x0"] < 0.03
    error = 1 - stats.norm.cdf([25.0, 2.0, 0.0])  # of the third about half, less what is inside
    wanted = np.cumsum(error) / [1, 2, 3]
    found = whole["fdr"][["x2", "x1", "x0"]]
    np.testing.assert_allclose(found, wanted, atol=5 * np.sqrt(0.25 / 200) / 3)
    # signs alone
    table = model.summary(rope=0, full=True)
    assert (table["p_rope"] == 0).all()
    wrong = np.sort(1 - table["p_direction"].to_numpy()[:3])
    np.testing.assert_allclose(np.sort(table["fdr"][:3]), np.cumsum(wrong) / [1, 2, 3])


@pytest.mark.parametrize("rope", [0.0, 0.01, 0.3])
@pytest.mark.quick("0.01")
def test_false_discoveries_are_as_many_as_expected(seed, rope):
    """Over data sets whose coefficients are drawn from the prior of the fit."""
    rng, wrong, listed, expected = np.random.default_rng(seed), 0, 0, 0.0
    for k in range(12):
        X, coef = rng.standard_normal((40, 10)), 0.5 * rng.standard_normal(10)
        y = X @ coef + rng.standard_normal(40)
        model = BayesianLinearRegression(
            prior_precision=4.0, noise_variance=1.0, fit_intercept=False, random_state=k
        ).fit(X, y)
        table = model.summary(rope=rope)
        chosen = (table["fdr"] <= 0.2).to_numpy()
        right = np.sign(table["mean"].to_numpy()) * coef > rope
        wrong += int((chosen & ~right).sum())
        listed += int(chosen.sum())
        expected += float(np.where(chosen, table["fdr"], 0).max() * chosen.sum())
    assert listed > 30
    assert abs(wrong - expected) < 4.5 * np.sqrt(expected)


def test_noise_is_no_discovery_beside_a_region_of_two_standard_deviations(seed):
    rng, listed = np.random.default_rng(seed), 0
    for k in range(5):
        X, y = rng.standard_normal((60, 30)), rng.standard_normal(60)
        table = BayesianLinearRegression(random_state=k).fit(X, y).summary(rope=0.3)
        listed += (table["fdr"] < 0.05).sum()
    assert listed <= 1


def test_the_region_of_equivalence_is_a_half_width_or_two_ends(pair):
    draws = pair.draws_
    found = pair.summary(rope=(-0.1, 0.5))["p_rope"]
    np.testing.assert_allclose(found, ((draws >= -0.1) & (draws <= 0.5)).mean(axis=(0, 1)))
    for rope in (-1.0, (0.5, -0.1), (0.1,), (0.1, 0.2, 0.3), np.nan):
        with pytest.raises(ValueError, match="rope must be"):
            pair.summary(rope=rope)


def test_a_table_says_of_which_class_its_odds_are(pair, triple):
    table, turned = pair.summary(full=True), pair.summary(positive="no", full=True)
    assert table.columns.name == table.attrs["quantity"] == "yes against no"
    assert turned.columns.name == turned.attrs["quantity"] == "no against yes"
    np.testing.assert_allclose(turned["mean"], -table["mean"])
    np.testing.assert_allclose(turned["eti95_lb"], -table["eti95_ub"])
    np.testing.assert_allclose(turned["odds_ratio"], 1 / table["odds_ratio"])
    np.testing.assert_allclose(turned["p_direction"], table["p_direction"])
    pd.testing.assert_frame_equal(pair.summary(positive="yes", full=True), table)
    assert triple.summary().columns.name == "against the mean over classes"
    assert triple.summary(reference="hot").columns.name == "against hot"
    line = BayesianLinearRegression(**SHORT).fit(Z, NUMBERS)
    assert line.summary().columns.name is None
    grades = np.digitize(NUMBERS, [-1, 1])
    ordered = BayesianOrdinalClassifier(**SHORT).fit(Z, grades)
    assert ordered.summary().columns.name == "higher classes against lower"
    for model, positive in ((triple, "hot"), (line, 1), (ordered, 2)):
        with pytest.raises(ValueError, match="positive is a class of two"):
            model.summary(positive=positive)
    with pytest.raises(ValueError, match="positive must be one of"):
        pair.summary(positive="perhaps")


def test_levels_name_the_columns(pair):
    assert {"eti95_lb", "odds_ratio_eti95_ub"} < set(pair.summary().columns)
    assert "eti99.5_ub" in pair.summary(0.995).columns
    for level, kind in ((0, ValueError), (95, ValueError), ("high", TypeError)):
        with pytest.raises(kind, match="level"):
            pair.summary(level)


def test_the_noise_variance_of_a_regression_has_a_row_and_no_odds():
    table = BayesianLinearRegression(**SHORT).fit(FRAME, NUMBERS).summary()
    assert table.index.tolist() == ["age", "income", "debt", "intercept", "noise_variance"]
    assert not [name for name in table.columns if "odds" in name]
    given = {"noise_variance": 1.0, "fit_intercept": False}
    model = BayesianLinearRegression(**SHORT, **given).fit(FRAME, NUMBERS)
    assert model.summary().index.tolist() == ["age", "income", "debt"]


def test_the_noise_variance_is_that_of_its_draws():
    model = BayesianLinearRegression(**SHORT).fit(Z, NUMBERS)
    row = model.summary().loc["noise_variance"]
    assert row["mean"] == pytest.approx(model.noise_variance_)
    assert row["sd"] == pytest.approx(model.noise_variance_samples_.std())
    assert row["p_direction"] == pytest.approx(1, rel=1e-12)


# -- units --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scaler",
    [
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
        MinMaxScaler((-1, 1)),
        RobustScaler(),
        MaxAbsScaler(),
        make_pipeline(MinMaxScaler(), StandardScaler()),
    ],
    ids=str,
)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_before_a_scaler_the_line_is_the_same(scaler, fit_intercept):
    scaler = clone(scaler).fit(FRAME)
    scaled = scaler.transform(FRAME)
    model = logistic(scaled, n_draws=8, fit_intercept=fit_intercept)
    table = model.summary(scaler=scaler)
    mean = table["mean"]
    assert table.index.tolist()[:3] == ["age", "income", "debt"]
    line = X @ mean.to_numpy()[:3] + mean.get("intercept", 0.0)
    np.testing.assert_allclose(line, scaled @ model.coef_[0] + model.intercept_, rtol=1e-6)
    unit = X.std(axis=0) / scaled.std(axis=0)
    np.testing.assert_allclose(table["sd"].to_numpy()[:3] * unit, model.coef_std_[0], rtol=1e-9)


def test_of_three_classes_too(triple):
    scaler = StandardScaler().fit(X)
    table = triple.summary(scaler=scaler, reference="cold")["mean"]
    line = X @ table["hot"].to_numpy()[:3] + table["hot", "intercept"]
    coef, intercept = triple.coef_[1] - triple.coef_[0], np.diff(triple.intercept_)[0]
    np.testing.assert_allclose(line, Z @ coef + intercept, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "scaler",
    [
        PowerTransformer(),
        QuantileTransformer(n_quantiles=9),
        FunctionTransformer(np.abs),  # which has no inverse, and would pass for one that is undone
        PCA(3),
        "standard",
    ],
    ids=str,
)
def test_what_is_no_scaler_is_refused(pair, scaler):
    scaler = scaler if isinstance(scaler, str) else scaler.fit(X)
    with pytest.raises(ValueError, match="shift and stretch each column"):
        pair.summary(scaler=scaler)


def test_before_a_column_transformer_numbers_have_their_units_and_levels_their_names(seed):
    """With factors, imputed numbers and a scaler behind all: the line is that of raw columns."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"city": rng.choice(list("abc"), 200), "age": rng.normal(40, 10, 200)})
    frame["weight"] = rng.normal(70, 9, 200)
    y = frame["age"] / 5 + (frame["city"] == "b") + rng.standard_normal(200)
    columns = ColumnTransformer(
        [
            ("words", OneHotEncoder(sparse_output=False), ["city"]),
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["weight"]),
        ],
        remainder="passthrough",
    )
    for steps in ([columns], [columns, MinMaxScaler()]):
        model = BayesianLinearRegression(prior_precision=1.0, random_state=0)
        pipeline = make_pipeline(*steps, model).fit(frame, y)
        table = model.summary(scaler=pipeline[:-1])["mean"]
        names = [*(f"words__city_{c}" for c in "abc"), "numbers__weight", "remainder__age"]
        assert table.index.tolist() == [*names, "intercept", "noise_variance"]
        of_words = table[[f"words__city_{c}" for c in frame["city"]]].to_numpy()
        line = of_words + table["numbers__weight"] * frame["weight"]
        line += table["remainder__age"] * frame["age"] + table["intercept"]
        np.testing.assert_allclose(line, pipeline.predict(frame), rtol=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_words_may_be_imputed_before_they_are_encoded_and_steps_may_pass_on(fit_intercept):
    """Also with a column that says what was missing, and with another imputer."""
    frame = FRAME.assign(town=RNG.choice(["Ghent", "Antwerp", "Bruges"], 300))
    frame.loc[::9, "income"] = np.nan
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["income"]),
        (make_pipeline(KNNImputer(), MinMaxScaler()), ["debt"]),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), ["town"]),
        verbose_feature_names_out=False,
    )
    model = BayesianLogisticRegression(fit_intercept=fit_intercept, **SHORT)
    pipeline = make_pipeline("passthrough", columns, MinMaxScaler((1, 2)), model).fit(frame, PAIR)
    mean = model.summary(scaler=pipeline[:-1])["mean"]
    towns = [f"town_{name}" for name in ("Antwerp", "Bruges", "Ghent")]
    assert mean.index.tolist()[1:-1] == ["missingindicator_income", "debt", *towns]
    missing = frame["income"].isna()
    line = mean["income"] * frame["income"].fillna(frame["income"].mean())
    line += mean["missingindicator_income"] * missing + mean["debt"] * frame["debt"]
    line += mean[[f"town_{name}" for name in frame["town"]]].to_numpy() + mean["intercept"]
    expected = pipeline[:-1].transform(frame) @ model.coef_[0] + model.intercept_
    np.testing.assert_allclose(line, expected, rtol=1e-6, atol=1e-9)


def test_a_part_that_does_more_than_scale_is_refused(pair):
    with pytest.raises(ValueError, match="PowerTransformer"):
        pair.summary(scaler=make_column_transformer((PowerTransformer(), [0, 1, 2])).fit(X))


def test_a_scaler_of_other_columns_or_without_a_fit_is_refused(pair):
    with pytest.raises(ValueError, match="fitted on 2 columns, the estimator on 3"):
        pair.summary(scaler=StandardScaler().fit(X[:, :2]))
    with pytest.raises(ValueError, match="fitted on 900 columns, the estimator on 3"):
        pair.summary(scaler=OneHotEncoder().fit(X))
    with pytest.raises(NotFittedError):
        pair.summary(scaler=StandardScaler())


# -- classes ------------------------------------------------------------------------------------


def test_rows_of_three_classes_are_contrasts(triple):
    table, coef = triple.summary(), triple.model_.unpack(triple.draws_)["coef"]
    assert table.index.names == ["class", "term"]
    assert table.loc["hot"].index.tolist() == ["x0", "x1", "x2", "intercept"]
    np.testing.assert_allclose(table["mean"].to_numpy().reshape(3, 4).sum(axis=0), 0, atol=1e-12)
    centred = coef - coef.mean(axis=2, keepdims=True)
    np.testing.assert_allclose(
        table["sd"].to_numpy().reshape(3, 4)[:, :3], centred.std(axis=(0, 1))
    )
    # of the attributes too
    np.testing.assert_array_equal(triple.coef_samples_, centred)
    np.testing.assert_allclose(triple.coef_std_, table["sd"].to_numpy().reshape(3, 4)[:, :3])
    found = np.column_stack([triple.coef_, triple.intercept_])
    np.testing.assert_allclose(found, table["mean"].to_numpy().reshape(3, 4))
    intercepts = triple.model_.unpack(triple.draws_)["intercept"]
    intercepts = intercepts - intercepts.mean(axis=2, keepdims=True)
    np.testing.assert_array_equal(triple.intercept_samples_, intercepts)
    against = triple.summary(reference="hot")
    assert against.index.unique("class").tolist() == ["cold", "mild"]
    np.testing.assert_allclose(
        against.loc["mild", "sd"].to_numpy()[:3], (coef[:, :, 2] - coef[:, :, 1]).std(axis=(0, 1))
    )


def test_a_reference_that_is_none_is_refused(pair, triple):
    with pytest.raises(ValueError, match="reference must be one of the classes"):
        triple.summary(reference="tepid")
    with pytest.raises(ValueError, match="reference is for more than two classes"):
        pair.summary(reference="yes")
    linear = BayesianLinearRegression(**SHORT).fit(Z, NUMBERS)
    with pytest.raises(ValueError, match="reference is for more than two classes"):
        linear.summary(reference=0)


# -- draws --------------------------------------------------------------------------------------


def test_weights_of_the_draws_count():
    model = logistic(sampler=SGLD(PolynomialDecay(0.05, 3.0, 0.6), batch_size=50))
    table, weights = model.summary(full=True), model.draw_weights_
    assert np.ptp(weights) > 0
    flat = model.draws_.reshape(-1, 4)
    each = np.tile(weights, 4) / 4
    np.testing.assert_allclose(table["mean"], each @ flat)
    above = each @ (flat > 0)
    np.testing.assert_allclose(table["p_direction"], np.maximum(above, 1 - above))
    low = np.quantile(flat, 0.025, axis=0, weights=each, method="inverted_cdf")
    np.testing.assert_allclose(table["eti95_lb"], low)
    assert (table["ess_bulk"] < 200).all()


def test_draws_of_weight_zero_are_left_out():
    model = logistic(sampler=SGLD(CosineCycle(0.01, 0.001, 20), batch_size=50), thin=1)
    counting = model.draw_weights_ > 0
    assert counting.sum() < 50
    table = model.summary()
    model.draws_, model.draw_weights_ = model.draws_[:, counting], model.draw_weights_[counting]
    pd.testing.assert_frame_equal(model.summary(), table)


def test_a_stream_has_a_summary_from_its_first_chunk():
    model = BayesianLogisticRegression(**SHORT)
    with pytest.raises(NotFittedError):
        model.summary()
    table = model.partial_fit(Z, PAIR, classes=["no", "yes"]).summary()
    np.testing.assert_allclose(table["mean"].iloc[0], model.coef_samples_[..., 0, 0].mean())


@pytest.mark.parametrize(
    "model", [BayesianMLPClassifier((2,), **SHORT), DRBMClassifier(2, **SHORT)]
)
@pytest.mark.quick("model0")
@pytest.mark.usefixtures("_short_searches")
def test_networks_have_a_row_for_each_block(model):
    table = clone(model).fit(Z, PAIR).summary()
    fitted = clone(model).fit(Z, PAIR)
    blocks = fitted.model_.unpack(fitted.draws_)
    assert table.index.tolist() == list(blocks)
    assert table["n_parameters"].sum() == fitted.draws_.shape[2]
    for name, block in blocks.items():
        axes = tuple(range(2, block.ndim))
        scale = np.sqrt(np.square(block, dtype=float).mean(axis=axes))
        assert table.loc[name, "mean"] == pytest.approx(scale.mean())
        assert table.loc[name, "eti95_ub"] == pytest.approx(np.quantile(scale, 0.975))
    precision = fitted.model_.unpack(fitted.prior_precision_)
    prior = {name: np.mean(1 / block) ** 0.5 for name, block in precision.items()}
    np.testing.assert_allclose(table["prior_scale"], list(prior.values()))


# -- tables -------------------------------------------------------------------------------------


def test_a_feature_may_have_the_name_of_a_row_of_ours():
    frame = FRAME.set_axis(["intercept", "income", "noise_variance"], axis=1)
    table = BayesianLinearRegression(**SHORT).fit(frame, NUMBERS).summary()
    assert table.index.tolist() == [*frame.columns, "(intercept)", "(noise_variance)"]


def test_without_pandas_there_are_arrays_that_print_as_a_table(pair, triple, monkeypatch):
    frames = pair.summary(), triple.summary()
    monkeypatch.setitem(sys.modules, "pandas", None)
    tables = pair.summary(), triple.summary()
    for table, frame in zip(tables, frames, strict=True):
        assert isinstance(table, Table)
        assert table["index"] == frame.index.tolist()
        for name in frame.columns:
            np.testing.assert_array_equal(table[name], frame[name].to_numpy())
    lines = repr(tables[0]).splitlines()
    assert lines[0].split() == frames[0].columns.tolist()
    assert lines[4].split()[:2] == ["intercept", f"{pair.intercept_[0]:.4g}"]
    assert len({len(line) for line in lines}) == 1
    assert repr(tables[1]).splitlines()[1].startswith("cold x0")
