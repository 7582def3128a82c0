"""BayesianLogisticRegression as a user meets it."""

import copy
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import logistic_data, z_scores
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
)
from skbayes_sg.estimators.class_probabilities import batch_error
from skbayes_sg.inspection import totals
from skbayes_sg.models import Softmax
from skbayes_sg.samplers import HMC, SGD, SGFS, SGLD, ConstantSGD, PolynomialDecay

BLR = BayesianLogisticRegression
SHORT = {"n_chains": 2, "n_draws": 60, "burn_in": 40, "random_state": 0}
pytestmark = pytest.mark.usefixtures("_short_runs_may_warn")


@pytest.fixture(scope="module")
def binary():
    X, y = logistic_data(3000, 4)
    return X, np.where(y > 0, "yes", "no")


@pytest.fixture(scope="module")
def fitted(binary):
    return BLR("sgfs", prior_precision=1.0, random_state=0).fit(*binary)


# -- what a fit leaves behind -----------------------------------------------------------------


@pytest.mark.convergence_warnings
def test_sgfs_agrees_with_the_exact_posterior(binary, fitted):
    """HMC on the same posterior; bounds in Monte-Carlo errors."""
    X, y = binary
    exact = BLR(HMC(), n_draws=80, random_state=1).fit(X, y)
    draws, truth = fitted.draws_.reshape(-1, 5), exact.draws_.reshape(-1, 5)
    ess = fitted.diagnostics_["ess_min"]
    se = truth.std(axis=0) * np.sqrt(1 / ess + 1 / exact.diagnostics_["ess_min"])
    assert np.all(np.abs(draws.mean(axis=0) - truth.mean(axis=0)) < 5 * se)
    ratio = draws.std(axis=0) / truth.std(axis=0)
    assert np.all(np.abs(ratio - 1) < 5 * np.sqrt(0.5 / ess + 0.5 / exact.diagnostics_["ess_min"]))


def test_attributes_and_shapes(binary, fitted):
    X, _ = binary
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert fitted.draws_.shape == (8, 576, 5)
    assert fitted.coef_.shape == fitted.coef_std_.shape == (1, 4)
    assert fitted.intercept_.shape == (1,)
    assert fitted.coef_samples_.shape == (8, 576, 1, 4)
    assert fitted.intercept_samples_.shape == (8, 576, 1)
    assert fitted.n_features_in_ == 4
    np.testing.assert_allclose(fitted.coef_, fitted.coef_samples_.mean(axis=(0, 1)))
    np.testing.assert_allclose(fitted.coef_std_, fitted.coef_samples_.std(axis=(0, 1)))
    np.testing.assert_array_equal(fitted.prior_precision_, [1, 1, 1, 1, 0.01])
    assert all(type(value) is float for value in fitted.diagnostics_.values())
    assert {"r_hat_max", "ess_min", "ess_per_pass", "stein_ratio"} <= set(fitted.diagnostics_)
    assert isinstance(fitted.sampler_, SGFS)
    steps_per_draw = max(1, round(6 / 5))
    assert fitted.n_iter_ == 1000 + 576 * steps_per_draw
    assert fitted.n_passes_ == pytest.approx(fitted.n_iter_ * 8 * 500 / len(X), rel=0.01)


def test_three_classes_have_three_columns():
    X, y = load_iris(return_X_y=True)
    model = BLR(**SHORT, prior_precision=1.0).fit(X, y)
    assert model.sampler_.batch_size == 149  # two equal rows are one
    assert model.diagnostics_["steepness"] > 2
    assert model.coef_.shape == (3, 4)
    assert model.predict_proba(X).shape == (150, 3)
    assert model.score(X, y) > 0.9


def test_what_only_the_prior_knows_of_three_classes_is_no_part_of_their_coefficients():
    """A prior of a hundredth of the precision changes next to nothing.

    The sum over the classes would have ten times the standard deviation.
    """
    rng = np.random.default_rng(3)
    X = rng.standard_normal((2000, 2))
    y = (X @ [[1.0, 0, -1], [0, 1, -1]] + rng.gumbel(size=(2000, 3))).argmax(axis=1)
    fits = [
        BLR(prior_precision=p, intercept_precision=p, random_state=0).fit(X, y) for p in (1, 0.01)
    ]
    for model in fits:
        np.testing.assert_allclose(model.coef_.sum(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(model.intercept_.sum(), 0, atol=1e-12)
        np.testing.assert_allclose(model.coef_std_, model.coef_samples_.std(axis=(0, 1)))
    one, other = fits
    np.testing.assert_allclose(other.coef_std_, one.coef_std_, rtol=0.1)
    apart = np.abs(other.coef_ - one.coef_)
    assert (apart < 0.3 * one.coef_std_).all()
    blocks = [each.model_.unpack(each.draws_)["coef"].sum(axis=2).std() for each in fits]
    assert blocks[1] > 5 * blocks[0]


def test_predictions_average_over_draws(binary, fitted):
    X, _ = binary
    few = fitted.predict_proba(X[:50])
    assert len(fitted.predict_draws(X[:50])) == 419  # every eleventh, at least 400
    fitted = clone(fitted).set_params(n_predict_draws=None).fit(*binary)
    draws = fitted.predict_draws(X[:50], kind="mean")
    proba = fitted.predict_proba(X[:50])
    np.testing.assert_allclose(few, proba, atol=0.005)
    np.testing.assert_allclose(proba, draws.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_allclose(fitted.predict_log_proba(X[:50]), np.log(proba))
    np.testing.assert_array_equal(fitted.predict(X[:50]), fitted.classes_[proba.argmax(axis=1)])
    one = Softmax(4, 2).predict(fitted.draws_[0, :1], X[:50])[0, 0]
    np.testing.assert_allclose(draws[0, :, 1], one)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_smallest_probabilities_are_those_of_their_logarithms(dtype):
    """Also below the number at which the softmax of a draw ends."""
    X, y = load_iris(return_X_y=True)
    model = BLR(**SHORT, prior_precision=1.0).fit(X, y)
    along = model.coef_[0] - model.coef_[2]
    far = (along * np.linspace(1, 300, 600)[:, None]).astype(dtype)
    log_p, p = model.predict_log_proba(far), model.predict_proba(far)
    tiny = np.finfo(dtype).tiny
    assert p.min() == tiny
    assert ((p > tiny) & (p < tiny**0.9)).any()
    some = p > tiny
    np.testing.assert_allclose(np.log(p[some]), log_p[some], rtol=1e-5, atol=1e-5)


def test_probabilities_stay_within_0_and_1(binary):
    X, y = binary
    far = np.vstack([X[:50] * 100, -X[:50] * 100])
    for dtype in (np.float32, np.float64):
        model = BLR(**SHORT).fit(X.astype(dtype), y)
        proba = model.predict_proba(far.astype(dtype))
        assert proba.min() >= 0
        assert proba.max() <= 1
        assert (model.predict_log_proba(far.astype(dtype)) <= 0).all()


def test_intervals_and_uncertainty(binary, fitted):
    X, _ = binary
    ends = fitted.predict_interval(X[:50], level=0.8)
    draws = fitted.predict_draws(X[:50], kind="mean")
    np.testing.assert_allclose(ends[..., 0], np.quantile(draws, 0.1, axis=0))
    np.testing.assert_allclose(ends[..., 1], np.quantile(draws, 0.9, axis=0))
    u = fitted.predict_uncertainty(X[:50])
    p = fitted.predict_proba(X[:50])
    np.testing.assert_allclose(u.total, -(p * np.log(p)).sum(axis=1))
    np.testing.assert_allclose(u.total, u.aleatoric + u.epistemic)
    assert (u.epistemic > 0).all()
    with pytest.raises(ValueError, match="level must be below 1"):
        fitted.predict_interval(X, level=90)


def test_draws_weighted_by_a_decreasing_step(binary):
    X, y = binary
    model = BLR(SGLD(PolynomialDecay(0.05, 10, 1.0)), **SHORT).fit(X, y)
    w = model.draw_weights_
    assert w.sum() == pytest.approx(1)
    assert w[0] > 2 * w[-1]
    np.testing.assert_allclose(
        model.coef_, np.average(model.coef_samples_, axis=1, weights=w).mean(axis=0)
    )
    under_each = np.concatenate([model.model_.predict(draws, X) for draws in model.draws_])[:, 0]
    expected = np.average(under_each, axis=0, weights=np.tile(w, 2))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected)
    # new draws count alike, and so do their sums: a draw is there once more, or less, by rounding
    off = np.ptp(under_each, axis=0) / len(under_each)
    mean = model.predict_draws(X, kind="mean").mean(axis=0)[:, 1]
    assert (np.abs(mean - expected) <= 2 * off).all()
    table = totals(model, X, kind="mean")
    of_sums = under_each.sum(axis=1)
    assert abs(table["mean"].iloc[0] - expected.sum()) <= 2 * np.ptp(of_sums) / len(of_sums)
    spread = np.sqrt(np.average((of_sums - expected.sum()) ** 2, weights=np.tile(w, 2)))
    assert table["sd"].iloc[0] == pytest.approx(spread, rel=0.2)
    assert model.predict_interval(X[:9]).shape == (9, 2, 2)


@pytest.mark.parametrize(("n_draws", "known"), [(4, False), (7, False), (8, True), (20, True)])
def test_a_standard_error_needs_eight_draws(binary, n_draws, known):
    X, y = binary
    model = BLR(**SHORT | {"n_chains": 1, "n_draws": n_draws}).fit(X, y)
    error = model.predict_uncertainty(X[:9]).standard_error
    assert error.shape == (9, 2)
    assert (np.isfinite(error) == known).all()


def test_the_standard_error_of_few_batches_is_that_of_independent_draws(seed):
    """The square of the error has the mean of the variance of the mean: divisor n - 1."""
    draws = np.random.default_rng(seed).standard_normal((8, 20_000))
    found = batch_error(draws - draws.mean(axis=0), np.full(8, 1 / 8), 4)
    assert np.abs(z_scores(found[:, None] ** 2, 1 / 8)).max() < 5


def test_without_intercept(binary):
    model = BLR(fit_intercept=False, **SHORT).fit(*binary)
    assert model.intercept_.tolist() == [0.0]
    assert model.draws_.shape[2] == 4


# -- exact weights ----------------------------------------------------------------------------


@pytest.mark.slow
def test_weights_are_repetitions_in_distribution(binary, seed):
    """With minibatches: weighted rows have the posterior of repeated ones."""
    X, y = binary
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    short = {"n_draws": 80, "burn_in": 200}
    weighted = BLR("sgfs", random_state=seed, **short).fit(X, y, sample_weight=weight)
    repeated = BLR("sgfs", random_state=seed + 10_000, **short).fit(
        X.repeat(weight, axis=0), y.repeat(weight)
    )
    ess = min(weighted.diagnostics_["ess_min"], repeated.diagnostics_["ess_min"])
    difference = (weighted.coef_ - repeated.coef_) / repeated.coef_std_
    assert np.abs(difference).max() < 5 * np.sqrt(2 / ess)
    assert np.abs(weighted.coef_std_ / repeated.coef_std_ - 1).max() < 5 * np.sqrt(1 / ess)


def test_class_weight_multiplies_sample_weight(binary):
    X, y = binary
    sample_weight = np.linspace(0.5, 2.0, len(y))
    by_class = BLR(class_weight={"no": 3.0, "yes": 0.5}, **SHORT).fit(
        X, y, sample_weight=sample_weight
    )
    by_hand = BLR(**SHORT).fit(X, y, sample_weight=sample_weight * np.where(y == "no", 3.0, 0.5))
    np.testing.assert_array_equal(by_class.draws_, by_hand.draws_)
    share = {label: np.average(y == label, weights=sample_weight) for label in ("no", "yes")}
    balanced = BLR(class_weight="balanced", **SHORT).fit(X, y, sample_weight=sample_weight)
    inverse = BLR(class_weight={label: 0.5 / share[label] for label in share}, **SHORT)
    np.testing.assert_allclose(
        balanced.draws_, inverse.fit(X, y, sample_weight=sample_weight).draws_
    )
    assert np.abs(balanced.draws_ - by_class.draws_).max() > 0.01


# -- reproducibility --------------------------------------------------------------------------


def test_warm_start_on_other_data_burns_in_again(binary):
    """Other rows, labels, weights, prior, sampler or chains: never the old frozen matrices."""
    X, y = (part[:300] for part in binary)
    flipped = np.where(y == "yes", "no", "yes")
    shorter = SHORT | {"burn_in": 20, "n_draws": 8}
    for sampler in ("sgfs", "hmc"):
        first = BLR(sampler, thin=1, warm_start=True, **shorter).fit(X, y)
        for change, data, weight in [
            ({}, (X[:200], y[:200]), None),
            ({}, (X, flipped), None),
            ({}, (X, y), np.full(len(y), 3.0)),
            ({"prior_precision": 5.0}, (X, y), None),
            ({"class_weight": {"no": 2.0}}, (X, y), None),
            ({"sampler": SGFS(alpha=0.5)}, (X, y), None),
            ({"n_chains": 3}, (X, y), None),
        ]:
            model = copy.deepcopy(first).set_params(**change)
            model.fit(*data, sample_weight=weight)
            assert model.n_iter_ == 20 + 8
            assert len(model.draws_) == model.n_chains


@pytest.mark.parametrize("cls", [BayesianPoissonRegressor, BayesianGammaRegressor])
def test_rows_far_from_zero_are_told_from_others(cls):
    """Random coefficients of such columns once led to gradients that are infinite, or all alike."""
    rng = np.random.default_rng(0)
    X = 1e4 + 1e3 * rng.standard_normal((100, 8))
    y = rng.poisson(np.exp((X[:, 0] - 1e4) / 2e3)) + 0.5 * (cls is BayesianGammaRegressor)
    model = cls(n_chains=4, n_draws=8, burn_in=10, warm_start=True, random_state=0)
    with warnings.catch_warnings(action="ignore"):
        assert model.fit(X, y).burn_in_ == 10
        assert model.fit(X, y).burn_in_ == 0
        assert model.fit(X, y[::-1]).burn_in_ == 10


def test_the_seed_decides_and_may_be_of_any_kind(binary):
    X, y = binary
    a, b = (BLR(**SHORT).fit(X, y).draws_ for _ in range(2))
    np.testing.assert_array_equal(a, b)
    same = BLR(**{**SHORT, "random_state": np.random.RandomState(0)}).fit(X, y).draws_
    np.testing.assert_array_equal(same, a)
    for seed in (1, np.random.default_rng(0), None):
        assert not np.array_equal(BLR(**{**SHORT, "random_state": seed}).fit(X, y).draws_, a)


# -- kinds of input ---------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_ten_rows_a_constant_column_and_columns_in_the_millions(scale):
    X, y = logistic_data(10, 3)
    X[:, 1] = 7.0
    X[:, 2] *= scale
    model = BLR(random_state=0, prior_precision=1.0).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    assert (
        model.coef_std_[0, 1] > 0.5
    )  # known by the prior, and by nothing else apart from the intercept


@pytest.mark.convergence_warnings
@pytest.mark.slow
def test_one_row_of_leverage_does_not_spoil_the_others():
    """A single row a thousand sds out: the fit agrees with exact HMC, without a warning."""
    X, y = logistic_data(2000, 3)
    X[7] *= 1000
    model = BLR("sgfs", random_state=0).fit(X, y)  # warnings are errors
    exact = BLR(HMC(), random_state=0).fit(X, y)
    assert np.abs(model.coef_std_ / exact.coef_std_ - 1).max() < 0.15
    assert np.abs((model.coef_ - exact.coef_) / exact.coef_std_).max() < 0.15


@pytest.mark.convergence_warnings
@pytest.mark.slow
def test_too_many_columns_for_a_matrix(monkeypatch):
    monkeypatch.setattr("skbayes_sg.linalg.sizes._ONCE", 300)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((250, 340))
    y = rng.integers(3, size=250)
    model = BLR(n_chains=1, n_draws=4, burn_in=8, thin=1, random_state=0)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert model.sampler_.variance_reduction == "control_variate"
    with pytest.warns(ConvergenceWarning):
        model.set_params(sampler="sgfs").fit(X, y)
    assert model.sampler_.structure == "kron"
    assert "is stable" in model.sampler_reason_


# -- the warnings ------------------------------------------------------------------------------


@pytest.mark.convergence_warnings
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (BLR(n_chains=2, n_draws=10), r"ess_min is \d+, below 100: .*n_draws"),
        (BLR(SGLD(step_size=1e-7), burn_in=2, thin=1), r"r_hat_max is \d.*burn_in"),
        (
            BLR(SGLD(step_size=2e-3, batch_size=20), thin=5),
            r"stein_ratio is \d+\.\d+, .*too large.*step_size",
        ),
        (
            BLR(SGLD(clip=("norm", 1.0)), n_draws=40, burn_in=100, thin=1),
            "clipped the gradient in 100% of the kept steps",
        ),
    ],
    ids=["few draws", "slow chain", "large step", "clipped"],
)
@pytest.mark.quick("few draws", "clipped")
def test_a_poor_fit_says_so_with_figure_and_knob(binary, model, message):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.set_params(random_state=0).fit(*binary)
    assert all(w.category is ConvergenceWarning for w in caught)
    assert any(re.search(message, str(w.message)) for w in caught)
    assert all(w.filename == __file__ for w in caught)


@pytest.mark.convergence_warnings
@pytest.mark.parametrize("scaled", [True, False])
def test_breast_cancer_as_it_comes_and_scaled(scaled):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X) if scaled else X
    model = BLR(random_state=0, prior_precision=1.0).fit(X, y)
    if scaled:
        reference = LogisticRegression(max_iter=1000).fit(X, y)
        assert np.corrcoef(model.coef_[0], reference.coef_[0])[0, 1] > 0.9
    assert abs(model.diagnostics_["stein_ratio"] - 1) < 0.05
    assert model.score(X, y) > 0.95


def test_divergence_raises(binary):
    X, y = binary
    with pytest.raises(FloatingPointError, match=r"SGLD.*diverged.*lower step_size"):
        BLR(SGLD(step_size=lambda t: 10.0), prior_precision=10.0, **SHORT).fit(X, y)


@pytest.mark.parametrize(
    "sampler", [SGLD(step_size=10.0), SGD(step_size=10.0), ConstantSGD("scalar", step_size=10.0)]
)
def test_an_unstable_constant_step_is_refused_with_its_radius_and_the_remedy(binary, sampler):
    with pytest.raises(
        ValueError, match=r"spectral radius of its step is \d.*, not below 1; .*step_size"
    ):
        BLR(sampler, prior_precision=10.0, **SHORT).fit(*binary)


# -- bad input --------------------------------------------------------------------------------


def broken(X, y, what):
    X, y = X.copy(), y.copy()
    if what == "nan":
        X[3, 1] = np.nan
    elif what == "inf":
        X[3, 1] = np.inf
    elif what == "one class":
        y[:] = "yes"
    elif what == "1-D":
        X = X[:, 0]
    elif what == "text":
        X = pd.DataFrame(X, columns=["age", "b", "c", "d"]).assign(job="clerk")
    elif what == "lengths":
        y = y[:-1]
    elif what == "continuous":
        y = np.linspace(0, 1, len(y))
    return X, y


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("nan", "contains NaN"),
        ("inf", "contains infinity"),
        ("one class", "one class only.*at least two classes"),
        ("1-D", "Expected 2D array"),
        ("text", "column.* 'job'; give such a column the type category"),
        ("lengths", "inconsistent numbers of samples"),
        ("continuous", "Unknown label type: continuous"),
    ],
)
def test_bad_data_are_refused_before_any_sampling(binary, what, message, monkeypatch):
    monkeypatch.setattr("skbayes_sg.inference.sample.run_chains", None)
    with pytest.raises(ValueError, match=message):
        BLR().fit(*broken(*binary, what))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (lambda n: ["a"] * n, "sample_weight must hold real numbers"),
        (lambda n: np.ones(n) * 1j, "sample_weight must hold real numbers"),
        (lambda n: np.full(n, -1.0), "sample_weight must be finite and not negative"),
        (lambda n: np.full(n, np.nan), "sample_weight must be finite"),
        (lambda n: np.zeros(n), "sample_weight is zero for all rows"),
        (lambda n: np.ones(n - 1), "sample_weight.shape"),
    ],
)
def test_bad_weights(binary, weight, message):
    X, y = binary
    with pytest.raises(ValueError, match=message):
        BLR().fit(X, y, sample_weight=weight(len(y)))


def test_class_weights_and_labels_that_cannot_be_are_named(binary):
    X, y = binary
    with pytest.raises(ValueError, match="class_weight is zero for all rows"):
        BLR(class_weight={"no": 0.0, "yes": 0.0}).fit(X, y)
    with pytest.raises(ValueError, match="shares of the classes in a stream are not known"):
        BLR(class_weight="balanced").partial_fit(X, y, classes=["no", "yes"])
    with pytest.raises(ValueError, match=r"'maybe'.* not among the classes"):
        BLR(**SHORT).fit(X, y).predicted_covariance(X, np.where(y == "no", "maybe", y))


def test_weights_that_leave_one_class(binary):
    X, y = binary
    with pytest.raises(ValueError, match="one class only"):
        BLR().fit(X, y, sample_weight=(y == "yes").astype(float))


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"sampler": "nuts"}, ValueError, "sampler must be one of"),
        ({"sampler": 3}, TypeError, "sampler must be a Sampler instance"),
        ({"sampler": SGFS}, TypeError, r"sampler must be a Sampler instance.*; give SGFS\(\)$"),
        ({"sampler": SGFS(batch_size=0)}, ValueError, "batch_size must be at least 1"),
        ({"prior_precision": 0.0}, ValueError, "prior_precision must be positive"),
        ({"prior_precision": -1}, ValueError, "prior_precision must be positive"),
        (
            {"prior_precision": [1.0, 2.0]},
            ValueError,
            r"prior_precision must be one number or one per feature.*\(4,\)",
        ),
        ({"prior_precision": [1.0, 1.0, 1.0, 0.0]}, ValueError, "prior_precision must be positive"),
        ({"prior_precision": ["a"] * 4}, ValueError, "prior_precision must hold real numbers"),
        ({"prior_precision": [[1], [2, 3]]}, ValueError, "prior_precision must hold real numbers"),
        ({"class_weight": {"no": -1}}, ValueError, "class_weight must be finite and not negative"),
        ({"burn_in": np.array([1, 2])}, TypeError, "burn_in must be an integer"),
        ({"prior_precision": "strong"}, ValueError, 'prior_precision must be "learned", a number'),
        ({"intercept_precision": "weak"}, TypeError, "intercept_precision must be a number"),
        ({"intercept_precision": 0.0}, ValueError, "intercept_precision must be positive"),
        ({"intercept_precision": 1e300}, ValueError, "intercept_precision must hold finite numb"),
        ({"n_chains": 0}, ValueError, "n_chains must be at least 1"),
        ({"n_draws": 3}, ValueError, "n_draws must be at least 4"),
        ({"n_draws": 10.0}, TypeError, "n_draws must be an integer"),
        ({"burn_in": -1}, ValueError, "burn_in must be at least 0"),
        ({"burn_in": "long"}, TypeError, 'burn_in must be an integer or "auto"'),
        ({"thin": 0}, ValueError, "thin must be at least 1"),
    ],
)
def test_bad_parameters_are_named_before_any_sampling(
    binary, parameters, error, message, monkeypatch
):
    monkeypatch.setattr("skbayes_sg.inference.sample.run_chains", None)
    with pytest.raises(error, match=message):
        BLR(**parameters).fit(*binary)


@pytest.mark.convergence_warnings
def test_a_column_whose_prior_allows_any_logit_is_named_with_what_helps():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    X -= X.mean(axis=0)  # the plane between the classes is where the intercept has its prior
    y = X[:, 1] > 0
    far = X * [1, 1e6, 1]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        BLR(n_draws=20, random_state=0, prior_precision=1.0).fit(far, y)
    assert "column 1 of X allows logits of 1e+06" in str(caught[-1].message)
    for fit_intercept in (True, False):  # an intercept takes the mean of a column
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = BLR(n_chains=4, n_draws=5, random_state=0, prior_precision=1.0)
            model.set_params(fit_intercept=fit_intercept).fit(X + np.array([0, 0, 1e4]), y)
        said = [str(each.message) for each in caught]
        assert any("column 2 of X allows logits of 1e+04" in one for one in said) != fit_intercept
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BLR(random_state=0, prior_precision=1.0).fit(StandardScaler().fit_transform(far), y)
        BLR(prior_precision=[1.0, 1e12, 1.0], random_state=0).fit(far, y)


@pytest.mark.parametrize("missing", [None, pd.NA, np.nan], ids=repr)
def test_missing_labels_are_named(missing):
    X = np.random.default_rng(0).standard_normal((20, 2))
    y = pd.Series(np.where(X[:, 0] > 0, "up", "down"), dtype=object)
    y[4] = missing
    for labels in (y, y.astype("string")):
        with pytest.raises(ValueError, match="y has missing labels; leave out the rows"):
            BLR().fit(X, labels)
        with pytest.raises(ValueError, match="y has missing labels; leave out the rows"):
            BLR().partial_fit(X, labels, classes=["down", "up"])
