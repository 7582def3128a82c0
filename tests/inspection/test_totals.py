import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from scipy.stats import ks_2samp, nbinom

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
)
from skbayes_sg.inspection import average_effects, prediction_summary, totals
from skbayes_sg.inspection.totals import _drawn_at_once
from skbayes_sg.models.gamma import Gamma
from skbayes_sg.models.linear import Linear
from skbayes_sg.models.mlp import GaussianMLP
from skbayes_sg.models.negative_binomial import NegativeBinomial
from skbayes_sg.models.poisson import Poisson
from skbayes_sg.models.student import Student

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
    assert (np.abs(table["mean"] - expected) < 0.02 * table["sd"]).all()  # of fewer draws
    with pytest.raises(ValueError, match="fitted with an offset or exposure"):
        totals(model, frame)
    with pytest.raises(ValueError, match="by must have shape"):
        totals(model, frame, by=[1, 2], exposure=1)


@pytest.mark.parametrize("n_rows", [1, 5, 50, 5000])
@pytest.mark.parametrize("name", ["poisson", "negative_binomial", "gamma", "normal"])
def test_sums_drawn_at_once_are_those_of_rows(name, n_rows, seed):
    """Where cumulants hold, the Kolmogorov-Smirnov distance from sums of drawn rows is chance's."""
    rng = np.random.default_rng(seed)
    n_draws = 4000 if n_rows < 5000 else 1000
    model = {
        "poisson": Poisson,
        "negative_binomial": NegativeBinomial,
        "gamma": Gamma,
        "normal": Linear,
    }[name](2)
    outputs = np.full((1, 1 if name == "poisson" else 2, n_rows), -1.5)
    outputs[0, 0] = rng.uniform(-0.5, 0.5, n_rows)
    cumulants = model.cumulants(outputs).sum(axis=-1)[..., None, None]
    cumulants = np.repeat(cumulants, n_draws, axis=1)
    total, holds = _drawn_at_once(cumulants, model.counts, rng)
    assert model.has_cumulants
    if n_rows <= 5:  # too few for most families; sums of normal variables are always normal
        assert holds[0] == (name == "normal")
    else:
        assert holds[0]
    if holds[0]:
        rows = [model.draw(outputs, rng).sum() for _ in range(n_draws)]
        assert ks_2samp(total[:, 0, 0], rows).pvalue > 1e-5
        assert abs(total.mean() - cumulants[0, 0, 0, 0]) < 4.5 * total.std() / np.sqrt(n_draws)


@pytest.mark.parametrize(("mu", "phi"), [(0.2, 0.5), (2.0, 0.5), (1.0, 3.0)])
def test_cumulants_of_counts_are_those_of_their_probabilities(mu, phi):
    y = np.arange(2000.0)
    outputs = np.log([[[mu], [phi]]])
    many = np.repeat(outputs, len(y), axis=2)
    for model, given in ((Poisson(1), many[:, :1]), (NegativeBinomial(1), many)):
        p = np.exp(model.value(given.copy(), y)[0])
        mean = p @ y
        second, third, fourth = (p @ (y - mean) ** k for k in (2, 3, 4))
        expected = [mean, second, third, fourth - 3 * second**2]
        found = model.cumulants(given[:, :, :1])[:, 0, 0]
        np.testing.assert_allclose(found, expected, rtol=1e-8)


class Sevenfold(Poisson):
    """With a mean that is not the exponential of the linear predictor."""

    def mean(self, outputs):
        return 7 * super().mean(outputs)


class Wider(Poisson):
    """With cumulants that are not those of its base."""

    def cumulants(self, outputs):
        return 2 * super().cumulants(outputs)


@pytest.mark.parametrize(
    "model",
    [
        *(cls(3) for cls in (Poisson, Sevenfold, Wider, NegativeBinomial, Gamma, Linear)),
        *(GaussianMLP(3, np.zeros(k), np.ones(k), (4,)) for k in (1, 2)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_cumulants_of_sums_are_those_of_rows_added_up(model):
    """With dispersions that differ from draw to draw, of sums of one row and of many."""
    rng = np.random.default_rng(0)
    has_offset = "coef" in model.shapes
    theta, rows = rng.normal(0, 0.5, (6, model.dim)), rng.standard_normal((40, 3 + has_offset))
    sums = np.repeat([0, 1, 2], [1, 32, 7])
    each = model.cumulants(model.outputs(theta, rows)).reshape(4, 6, 40, -1)
    terms = model.sums_of_terms(theta, rows, sums[:, None] == [0, 1, 2])
    found = model.cumulants_of_sums(theta, terms)
    np.testing.assert_allclose(found, np.add.reduceat(each, [0, 1, 33], axis=2), rtol=1e-12)


def test_the_error_of_sums_of_counts_is_what_was_promised():
    """Beside the negative binomial distribution that a sum of equal rows has."""
    n, mu, phi = np.array([100, 300]), 0.2, 0.5
    cumulants = NegativeBinomial(1).cumulants(np.log([[[mu], [phi]]]))[:, :, 0] * n
    cumulants = np.repeat(cumulants[:, None, :, None], 200_000, axis=1)
    total, holds = _drawn_at_once(cumulants, True, np.random.default_rng(0))
    assert holds.all()
    for k, size in enumerate(n):
        y = np.arange(200.0)
        exact = nbinom.cdf(y, size / phi, 1 / (1 + phi * mu))
        found = np.searchsorted(np.sort(total[:, k, 0]), y, side="right") / len(total)
        chance = 4.5 * np.sqrt(exact * (1 - exact) / len(total))
        assert (np.abs(found - exact) < 1e-3 + chance).all()


def test_draws_of_another_kind_are_added_up_row_by_row():
    class Doubled(Poisson):
        def draw(self, outputs, rng):
            return 2 * super().draw(outputs, rng)

    assert Poisson(1).has_cumulants
    assert not Doubled(1).has_cumulants
    assert not Student(1).has_cumulants


def test_groups_of_few_and_of_many_rows(monkeypatch):
    rng = np.random.default_rng(2)
    y = rng.poisson(np.exp(0.5 * X[:, 0]))
    model = BayesianPoissonRegressor(random_state=0).fit(X, y)
    group = np.where(np.arange(300) % 100 == 7, "few", "many")
    at_once = totals(model, X, by=group)
    monkeypatch.setattr(Poisson, "has_cumulants", False)
    by_row = totals(model, X, by=group)
    error = by_row["sd"] / np.sqrt(model.draws_[..., 0].size)
    assert (abs(at_once["mean"] - by_row["mean"]) < 4.5 * np.sqrt(2) * error).all()
    np.testing.assert_allclose(at_once["sd"], by_row["sd"], rtol=0.15)
    assert at_once.attrs == {"few": 3, "many": 297}


def test_draws_count_as_their_weights_say_in_sums_drawn_at_once():
    counts = np.random.default_rng(1).poisson(np.exp(0.3 * Y))
    model = BayesianPoissonRegressor(random_state=0).fit(X, counts)
    late = np.arange(model.draws_.shape[1]) >= model.draws_.shape[1] // 2
    model.draws_ = model.draws_ + np.where(late, 0.0, 1.0)[:, None]  # others predict far more
    model.draw_weights_ = np.where(late, 3.0, 1.0) / np.where(late, 3.0, 1.0).sum()
    flat = model.draws_.reshape(-1, 3)
    weights = np.tile(model.draw_weights_, len(model.draws_)) / len(model.draws_)
    sums = np.exp(X @ flat[:, :2].T + flat[:, 2]).sum(axis=0)
    mean = weights @ sums
    sd, found = np.sqrt(weights @ (sums - mean) ** 2 + mean), totals(model, X).iloc[0]
    assert abs(found["mean"] - mean) < 4.5 * sd / np.sqrt(len(sums))
    assert found["sd"] == pytest.approx(sd, rel=4.5 / np.sqrt(len(sums)))


def test_labels_of_a_table_keep_their_type():
    """Numbers are looked up as numbers: classes, groups and rows."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=90), "site": np.repeat([10, 20, 30], 30)})
    three = BayesianLogisticRegression(n_draws=8, random_state=0).fit(frame, np.arange(90) % 3)
    assert three.summary().loc[(2, "a"), "sd"] > 0
    assert totals(three, frame, by="site").loc[(20, 1), "mean"] > 0
    assert average_effects(three, frame, "a", by="site").loc[("a", 30, 0), "sd"] > 0
    rows = frame.iloc[5:8].set_axis([7, 8, 9])
    assert prediction_summary(three, rows).loc[(8, 2), "mean"] > 0
    assert totals(three, frame, by="site").attrs.keys() >= {10, 20, 30}


def test_sparse_rows_have_the_sums_of_dense_ones():
    rows = sparse.random_array((60, 4), density=0.4, rng=np.random.default_rng(0), format="coo")
    y = np.random.default_rng(1).poisson(2.0, 60)
    model = BayesianPoissonRegressor(n_draws=32, random_state=0).fit(rows.tocsr(), y)
    group = np.repeat(["a", "b"], 30)
    dense = totals(model, rows.toarray(), by=group)
    pd.testing.assert_frame_equal(totals(model, rows, by=group), dense)
