"""Groups of columns, the horseshoe and Student's t: what they are given, and what comes out."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
)
from skbayes_sg.diagnostics import ess_bulk
from skbayes_sg.estimators.coefficient_prior import column_groups
from skbayes_sg.priors import Horseshoe, StudentT
from skbayes_sg.samplers import HMC

NAMES = ["city__a", "city__b", "age", "kind__x", "kind__y"]
CERTAIN = 5.0  # Monte Carlo errors


def random_intercepts(n_rows=1500, n_levels=20, sd=0.8, seed=0):
    """Two columns and the levels of a factor, as indicators."""
    rng = np.random.default_rng(seed)
    level = rng.integers(n_levels, size=n_rows)
    x, effects = rng.standard_normal((n_rows, 2)), sd * rng.standard_normal(n_levels)
    logit = x @ [1.0, -0.5] + effects[level] - 0.5
    X = np.column_stack([x, np.eye(n_levels)[level]])
    return X, rng.random(n_rows) < 1 / (1 + np.exp(-logit)), effects


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (None, None),
        ("feature", {name: (j,) for j, name in enumerate(NAMES)}),
        ("prefix", {"city": (0, 1), "other": (2,), "kind": (3, 4)}),
        ({"a": [0, "city__b"], "b": "age"}, {"a": (0, 1), "b": (2,), "other": (3, 4)}),
        ({"last": -1, "rest": range(4)}, {"last": (4,), "rest": (0, 1, 2, 3)}),
        (lambda name: name[-1], {"a": (0,), "b": (1,), "e": (2,), "x": (3,), "y": (4,)}),
    ],
)
def test_groups_are_columns_by_label(asked, expected):
    assert column_groups(asked, 5, NAMES) == expected


def test_a_prefix_ends_at_the_first_separator():
    """A level may hold one of its own."""
    names = ["city__a__north", "city__b__north", "kind__c__south", "x_"]
    expected = {"city": (0, 1), "kind": (2,), "other": (3,)}
    assert column_groups("prefix", 4, names) == expected


@pytest.mark.parametrize(
    ("asked", "names", "said"),
    [
        ("level", NAMES, 'must be "share", "feature", "prefix", a dict'),
        (3, NAMES, "must be"),
        ("prefix", None, "X has none"),
        ("prefix", ["a", "b"], "and none is"),
        (str.upper, None, "X has none"),
        ({"a": ["nowhere"]}, NAMES, "'nowhere': X has no such column"),
        ({"a": ["age"]}, None, "X has no column names"),
        ({"a": [5]}, NAMES, "none with number 5"),
        ({"a": []}, NAMES, "'a' has no columns"),
        ({"a": [0, 1], "b": [1]}, NAMES, "column 'city__b' is in the groups 'a' and 'b'"),
        ({"other": [0]}, NAMES, "would be a group 'other'"),
    ],
)
def test_impossible_groups_are_named(asked, names, said):
    with pytest.raises(ValueError, match="prior_groups") as raised:
        column_groups(asked, 5 if names is None else len(names), names)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"prior": "laplace"}, 'prior must be "horseshoe" or "student_t"'),
        ({"prior": Horseshoe(slab_scale=0.0)}, "slab_scale"),
        ({"prior": Horseshoe(expected_nonzero=4)}, "below the number of columns, 4"),
        ({"prior": StudentT(df=-1)}, "df"),
        ({"prior": "horseshoe", "prior_groups": "feature"}, "prior_groups must be None"),
        ({"prior": "horseshoe", "prior_precision": 1.0}, 'must be "learned"'),
        ({"prior_groups": "feature", "prior_precision": 1.0}, 'must be "learned"'),
        ({"prior_groups": "feature", "sampler": "sgfs"}, "set sampler=None"),
    ],
)
@pytest.mark.parametrize("kind", [BayesianLogisticRegression, BayesianLinearRegression])
def test_impossible_priors_are_named(kind, parameters, said):
    X = np.random.default_rng(0).standard_normal((40, 4))
    with pytest.raises(ValueError, match=said):
        kind(**parameters).fit(X, X[:, 0] > 0)


def test_a_prior_of_many_scales_needs_a_fit():
    X = np.random.default_rng(0).standard_normal((40, 4))
    with pytest.raises(AttributeError) as hidden:
        BayesianLinearRegression(prior="horseshoe").partial_fit(X, X[:, 0])
    assert "partial_fit keeps a normal posterior" in str(hidden.value.__cause__)


def test_levels_of_a_factor_are_random_intercepts(seed):
    """Their standard deviation is found, and one group of all columns mixes it with the others."""
    X, y, effects = random_intercepts(seed=seed)
    groups = {"slopes": [0, 1], "city": range(2, 22)}
    model = BayesianLogisticRegression(prior_groups=groups, random_state=seed).fit(X, y)
    table = model.summary(groups=True, full=True)
    assert table.index.tolist() == ["slopes", "city"]
    assert table["n_coefficients"].tolist() == [2, 20]
    low, high = table.loc["city", ["eti95_lb", "eti95_ub"]]
    assert low < effects.std() < high
    assert high < 2.5 * low
    assert table["r_hat"].max() < 1.05
    assert np.corrcoef(model.coef_[0, 2:], effects)[0, 1] > 0.9
    assert model.prior_precision_draws_.shape == (*model.draws_.shape[:2], 2)
    assert list(model.prior_precision_blocks_) == ["slopes", "city"]
    prior_sd = model.to_arviz()["posterior"]["prior_sd"]
    assert prior_sd.coords["group"].values.tolist() == ["slopes", "city"]
    assert float(prior_sd[..., 1].mean()) == pytest.approx(table.loc["city", "mean"])


@pytest.mark.slow
def test_levels_that_may_all_be_alike_have_a_long_tail_of_precisions(seed):
    """Beside HMC, in whose coordinates the precision is one."""
    rng, level = np.random.default_rng(seed), np.arange(240) % 12
    y = rng.poisson(np.exp(1 + np.linspace(-0.2, 0.2, 12)[level]))
    given = {"prior_groups": {"level": range(12)}, "random_state": 0}
    chosen, reference = (
        BayesianPoissonRegressor(sampler, n_draws=n_draws, **given).fit(np.eye(12)[level], y)
        for sampler, n_draws in ((None, 100), ("hmc", 300))
    )
    far = np.quantile(reference.prior_precision_draws_, 0.95)
    share = np.mean(chosen.prior_precision_draws_ > far)
    n_effective = ess_bulk((chosen.prior_precision_draws_ > far).astype(float))[0]
    assert abs(share - 0.05) < CERTAIN * np.sqrt(0.05 * 0.95 / n_effective)


@pytest.mark.parametrize("noise_variance", [None, 3000.0])
def test_sufficient_statistics_lead_to_the_exact_posterior(noise_variance, seed):
    """HMC on them beside independent draws, with one precision, whose distribution is known."""
    X, y = load_diabetes(return_X_y=True)
    given = {"noise_variance": noise_variance, "n_draws": 125, "random_state": seed}
    exact, ours = (
        BayesianLinearRegression(sampler, **given).fit(X, y)
        for sampler in (None, HMC(variance_reduction="control_variate"))
    )
    assert type(exact.sampler_).__name__ == "IndependentDraws"
    draws = [
        np.append(one.draws_, np.log(one.prior_precision_draws_), axis=2).reshape(4000, -1)
        for one in (exact, ours)
    ]
    error = np.hypot(*(each.std(axis=0) / np.sqrt(2000) for each in draws))  # of half the draws
    assert (np.abs(draws[0].mean(axis=0) - draws[1].mean(axis=0)) < CERTAIN * error).all()
    ratio = draws[0].std(axis=0) / draws[1].std(axis=0)
    assert np.abs(ratio - 1).max() < CERTAIN * np.sqrt(2 / 2000)


def test_hmc_by_name_samples_the_precisions_of_groups_too(seed):
    X, y, _ = random_intercepts(400, 8, seed=1)
    given = {"prior_groups": {"slopes": [0, 1]}, "random_state": seed}
    default, named = (BayesianLogisticRegression(s, **given).fit(X, y) for s in (None, "hmc"))
    assert named.sampler_.variance_reduction is None
    draws = [
        np.append(one.draws_, np.log(one.prior_precision_draws_), axis=2)
        for one in (default, named)
    ]
    error = np.hypot(*(each.std(axis=(0, 1)) / np.sqrt(ess_bulk(each)) for each in draws))
    apart = draws[0].mean(axis=(0, 1)) - draws[1].mean(axis=(0, 1))
    assert (np.abs(apart) < CERTAIN * error).all()
    with pytest.raises(ValueError, match='sampler=None and "hmc" can do'):
        BayesianLogisticRegression("sgfs", **given).fit(X, y)


def test_standard_deviations_of_groups_are_in_the_units_of_the_coefficients(seed):
    """Of a linear regression too, whose precisions are in units of the noise variance."""
    rng = np.random.default_rng(seed)
    level, effects = rng.integers(30, size=600), 2.0 * rng.standard_normal(30)
    X = np.column_stack([rng.standard_normal(600), np.eye(30)[level]])
    y = X[:, 0] + effects[level] + 0.2 * rng.standard_normal(600)
    model = BayesianLinearRegression(prior_groups={"slope": 0}, random_state=seed).fit(X, y)
    table = model.summary(groups=True, full=True)
    low, high = table.loc["other", ["eti95_lb", "eti95_ub"]]
    assert low < effects.std() < high < 2 * low
    assert table["r_hat"].max() < 1.05


@pytest.mark.filterwarnings("ignore:r_hat_max")  # it is asserted below
def test_sparse_truth_is_sparse_under_the_horseshoe(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 40))
    y = X[:, :4] @ [2.0, -2.0, 1.5, 1.5] + rng.logistic(size=300) > 0
    noise = {}
    for prior in (None, "student_t", "horseshoe", Horseshoe(5)):
        model = BayesianLogisticRegression(prior=prior, n_chains=8, n_draws=64, random_state=seed)
        table = model.fit(X, y).summary(rope=0.5, full=True)
        assert table["p_rope"].to_numpy()[:4].max() < 0.1
        assert table["r_hat"].max() < 1.1
        noise[str(prior)] = np.abs(model.coef_[0, 4:]).mean()
        assert model.prior_precision_draws_.shape[2] == (1 if prior is None else 40)
    normal, student_t, horseshoe, told = noise.values()
    assert student_t < 0.9 * normal
    assert max(horseshoe, told) < 0.5 * normal


@pytest.mark.slow
def test_units_of_columns_and_of_y_do_not_matter():
    X, y, _ = random_intercepts(400, 6)
    units = 10.0 ** np.arange(-4, 4)
    for groups in ("feature", {"a": [0, 1], "b": range(2, 8)}):
        fits = [
            BayesianLogisticRegression(prior_groups=groups, random_state=0).fit(one, y)
            for one in (X, X * units)
        ]
        np.testing.assert_allclose(
            fits[0].predict_proba(X), fits[1].predict_proba(X * units), atol=0.02
        )
    X, y = load_diabetes(return_X_y=True)
    fits = [
        BayesianLinearRegression(noise_variance=3000.0 * s**2, random_state=0).fit(X, s * y)
        for s in (1.0, 1000.0)
    ]
    np.testing.assert_allclose(fits[1].coef_, 1000 * fits[0].coef_, rtol=1e-5)


def test_a_pipeline_of_factors_is_a_hierarchical_model():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"city": rng.choice(list("abcdef"), 500), "age": rng.normal(size=500)})
    y = (frame["age"] + (frame["city"] < "c") + rng.logistic(size=500) > 0).map(
        {True: "y", False: "n"}
    )
    encoder = OneHotEncoder(sparse_output=False)
    columns = ColumnTransformer([("city", encoder, ["city"])], remainder="passthrough")
    model = BayesianLogisticRegression(prior_groups="prefix", random_state=0)
    pipeline = make_pipeline(columns.set_output(transform="pandas"), model).fit(frame, y)
    assert pipeline[-1].summary(groups=True).index.tolist() == ["city", "remainder"]


def test_a_given_prior_has_no_table_of_groups():
    X, y, _ = random_intercepts(100, 3)
    model = BayesianLogisticRegression(prior_precision=1.0, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="precisions are sampled"):
        model.summary(groups=True)
    with pytest.raises(ValueError, match="rope"):
        model.summary(rope=-1)


def test_streams_learn_a_precision_for_each_group():
    X, y, _ = random_intercepts(800, 10)
    groups = {"slopes": [0, 1], "city": range(2, 12)}
    model = BayesianLogisticRegression(prior_groups=groups, random_state=0)
    whole = BayesianLogisticRegression(prior_groups=groups, random_state=0).fit(X, y)
    for rows in np.array_split(np.arange(800), 4):
        model.partial_fit(X[rows], y[rows], classes=[False, True])
    assert list(model.prior_precision_blocks_) == ["slopes", "city"]
    of_city = (each.prior_precision_draws_[..., 1] for each in (model, whole))
    draws, right = (np.log(each.astype(np.float64)) for each in of_city)
    assert draws.shape == model.draws_.shape[:2]
    assert draws.mean() == pytest.approx(right.mean(), abs=0.5 * right.std())
    assert draws.std() == pytest.approx(right.std(), rel=0.3)
    np.testing.assert_array_equal(draws, np.log(model.prior_precision_draws_[..., 1]))


def test_columns_far_from_zero_have_a_start_near_the_mode():
    """The search for it began with a curvature in units of another noise, and ended at e^500."""
    rng = np.random.RandomState(42)
    X, y = rng.normal(loc=100, size=(100, 2)), rng.normal(size=100)
    model = BayesianLinearRegression(prior="horseshoe", n_chains=2, n_draws=20, random_state=0)
    with warnings.catch_warnings(action="ignore"):  # few draws
        model.fit(X, y)
    assert model.noise_variance_ == pytest.approx(y.var(), rel=0.2)


@pytest.mark.slow
def test_nothing_is_said_of_precisions_that_chains_sample():
    X, y, _ = random_intercepts()
    with warnings.catch_warnings(action="error"):
        model = BayesianLogisticRegression(prior_groups="feature", random_state=0).fit(X, y)
    assert model.diagnostics_["r_hat_max"] < model.diagnostics_["r_hat_limit"]


def test_many_weak_coefficients_do_not_keep_their_precision_from_mixing(seed):
    """300 rows of 100 columns: no direction is steep, yet the distribution is far from normal."""
    rng = np.random.default_rng([4, seed])
    X = rng.standard_normal((300, 100))
    y = X @ rng.standard_normal(100) / 3 + rng.logistic(size=300) > 0
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = BayesianLogisticRegression(random_state=seed).fit(X, y)
    assert ess_bulk(np.log(model.prior_precision_draws_))[0] > 250 or said


def test_columns_of_zeros_do_not_count_in_the_spread_of_a_group():
    """As the levels of another fold; the standard deviation was half of the right one."""
    rng = np.random.default_rng(0)
    member = rng.integers(12, size=300)
    y = rng.normal(0, 2.0, 12)[member] + rng.standard_normal(300)
    levels = np.eye(12)[member]
    spread = []
    for n_empty in (0, 40):
        X = np.hstack([levels, np.zeros((300, n_empty))])
        groups = {"place": list(range(X.shape[1]))}
        model = BayesianLinearRegression(prior_groups=groups, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spread.append(model.fit(X, y).summary(groups=True).loc["place", "mean"])
    assert spread[1] == pytest.approx(spread[0], rel=0.1)
