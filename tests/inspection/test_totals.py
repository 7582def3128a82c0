import numpy as np
import pandas as pd
import pytest
import sklearn

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
)
from skbayes_sg.inspection import totals

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 2))
Y = X @ [1.0, -0.5] + 2 + 0.7 * RNG.standard_normal(300)
REGION = np.array(["north", "south"])[(X[:, 0] > 0).astype(int)]


def test_a_sum_has_the_moments_of_the_normal_posterior():
    model = BayesianLinearRegression(prior_precision=1.0, random_state=0).fit(X, Y)
    Z = np.column_stack([X, np.ones(300)])
    for label in ("north", "south"):
        rows = label == REGION
        along = Z[rows].sum(axis=0)
        mean = along @ model.posterior_.mean
        of_line = along @ model.posterior_.covariance @ along
        for kind, noise in {"mean": 0.0, "observation": rows.sum() * model.noise_variance_}.items():
            found = totals(model, X, by=REGION, kind=kind).loc[label]
            sd = np.sqrt(of_line + noise)
            assert abs(found["mean"] - mean) < 5 * sd / np.sqrt(2000)
            np.testing.assert_allclose(found["sd"], sd, rtol=0.1)
            width = found["eti95_ub"] - found["eti95_lb"]
            np.testing.assert_allclose(width, 2 * 1.96 * sd, rtol=0.12)


def test_blocks_have_random_numbers_of_their_own():
    model = BayesianLinearRegression(prior_precision=1.0, random_state=0).fit(X, Y)
    whole = totals(model, X)
    with sklearn.config_context(working_memory=1):
        parts = totals(model, X)
    np.testing.assert_allclose(parts["sd"], whole["sd"], rtol=0.1)
    assert abs(parts["mean"].iloc[0] - whole["mean"].iloc[0]) < 0.2 * whole["sd"].iloc[0]


def test_blocks_have_groups_and_exposures_of_their_own():
    """Sums of means have no random numbers, and so do not depend on the blocks."""
    years = np.linspace(0.5, 4.0, 300)
    y = np.random.default_rng(1).poisson(years * np.exp(0.5 * X[:, 0]))
    model = BayesianPoissonRegressor(random_state=0).fit(X, y, exposure=years)
    group = np.repeat(["early", "late", "later"], [90, 30, 180])
    whole = totals(model, X, by=group, kind="mean", exposure=years)
    assert model.draws_[..., 0].size * 300 > 4 * (1 << 14)
    with sklearn.config_context(working_memory=1):
        parts = totals(model, X, by=group, kind="mean", exposure=years)
    np.testing.assert_allclose(parts.to_numpy(), whole.to_numpy(), rtol=1e-6)
    assert parts.attrs == {"early": 90, "late": 30, "later": 180}


def test_numbers_of_rows_of_each_class():
    labels = np.array(["a", "b", "c"])[np.digitize(Y, [1.5, 2.5])]
    frame = pd.DataFrame({"u": X[:, 0], "v": X[:, 1]})
    model = BayesianLogisticRegression(random_state=0).fit(frame, labels)
    table = totals(model, frame)
    assert table.index.names == ["by", "class"]
    assert table["mean"].sum() == pytest.approx(300)
    assert table.attrs == {"all": 300}
    seen = pd.Series(labels).value_counts()
    for name in "abc":
        row = table.loc[("all", name)]
        assert abs(row["mean"] - seen[name]) < 3 * row["sd"]
    two = BayesianLogisticRegression(n_predict_draws=None, random_state=0)
    two.fit(frame, labels == "a")
    one = totals(two, frame, kind="mean")
    assert one["mean"].iloc[0] == pytest.approx(two.predict_proba(frame)[:, 1].sum(), rel=1e-6)


def test_sums_have_exposures_and_columns_to_group_by():
    years = RNG.uniform(0.5, 2.0, 300)
    frame = pd.DataFrame({"u": X[:, 0], "group": (X[:, 1] > 0).astype(float)})
    y = RNG.poisson(years * np.exp(0.5 * frame["u"]))
    model = BayesianPoissonRegressor(random_state=0).fit(frame, y, exposure=years)
    table = totals(model, frame, by="group", exposure=years, kind="mean")
    predicted = model.predict(frame, exposure=years)
    expected = [predicted[frame["group"] == group].sum() for group in (0, 1)]
    np.testing.assert_allclose(table["mean"], expected, rtol=1e-6)
    with pytest.raises(ValueError, match="fitted with an offset or exposure"):
        totals(model, frame)
    with pytest.raises(ValueError, match="by must have shape"):
        totals(model, frame, by=[1, 2], exposure=1)
