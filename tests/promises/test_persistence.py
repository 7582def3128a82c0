"""Files of fitted models: their size, their format, and what is in them."""

import copy
import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

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
    DRBMClassifier,
    trusted_types,
)
from skbayes_sg.callbacks import ConvergenceStop, TimeLimit
from skbayes_sg.data.minibatches import Minibatches, SamplingFrame
from skbayes_sg.diagnostics import systematic
from skbayes_sg.estimators import base
from skbayes_sg.inference import sample
from skbayes_sg.samplers import SGFS, SGLD, PolynomialDecay

pytestmark = [
    pytest.mark.usefixtures("_short_searches"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
SHORT = {"n_chains": 3, "n_draws": 8, "burn_in": 8, "thin": 2, "random_state": 0}
RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 4))
LABELS = np.where(X[:, 0] + RNG.logistic(size=200) > 0, "yes", "no")
NUMBERS = X[:, 0] + RNG.standard_normal(200)
COUNTS = np.floor(np.exp(NUMBERS))
MODELS = [
    BayesianLogisticRegression(**SHORT),
    BayesianLinearRegression(**SHORT),
    BayesianLinearRegression(noise_variance=1.0, **SHORT),
    BayesianMLPClassifier((3,), **SHORT),
    BayesianMLPRegressor((3,), **SHORT),
    DRBMClassifier(3, **SHORT),
]
EVERY = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
PAGE = Path(__file__).parents[2] / "docs" / "persistence.md"


def fitted(model):
    return clone(model).fit(X, LABELS if is_classifier(model) else NUMBERS)


def predicted(model):
    return model.predict_proba(X) if is_classifier(model) else model.predict(X)


# -- size ---------------------------------------------------------------------------------------


@EVERY
@pytest.mark.quick("BayesianLogisticRegression", "BayesianMLPClassifier")
def test_a_pickle_holds_the_draws_once(model):
    """Draws alone are all that grows with their number."""
    short = fitted(model)
    long = fitted(clone(model).set_params(n_draws=408))
    grown = len(pickle.dumps(long)) - len(pickle.dumps(short))
    weights = 8 * 400 + 4 * 400 * hasattr(long, "prior_precision_draws_") * len(long.draws_)
    assert grown < 1.05 * (long.draws_.nbytes - short.draws_.nbytes + weights)


def test_the_file_of_a_default_fit_is_less_than_a_megabyte():
    rows = RNG.standard_normal((2000, 50))
    y = rows[:, 0] + RNG.logistic(size=2000) > 0
    model = BayesianLogisticRegression(random_state=0).fit(rows, y)
    assert model.draws_.shape == (32, 40, 51)
    assert len(pickle.dumps(model)) / 1e6 < 0.85


def test_a_file_holds_draws_in_single_precision_and_a_reader_gets_the_same_numbers():
    model = BayesianLogisticRegression(random_state=0).fit(X, LABELS)
    file = pickle.dumps(model)
    kept = pickle.loads(file)
    assert model.draws_.dtype == kept.draws_.dtype == np.float64
    np.testing.assert_array_equal(kept.draws_, model.draws_)
    assert kept._fit.draws is kept.draws_
    assert len(file) < 1.5 * model.draws_.nbytes


@pytest.mark.parametrize(("rows", "length"), [(X + 1e5, {}), (X, {"n_chains": 2, "n_draws": 4})])
def test_draws_that_would_be_blurred_or_too_few_to_tell_stay_double(rows, length):
    """A column far from zero has a coefficient that moves with the intercept."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesianLogisticRegression(random_state=0, **length).fit(rows, LABELS)
    assert (model.draws_ != model.draws_.astype(np.float32)).any()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).draws_, model.draws_)


def test_many_draws_are_single_and_go_on_as_those_of_one_fit(monkeypatch):
    """The chains are in double precision."""
    double = fitted(clone(MODELS[0]).set_params(prior_precision=1.0, n_draws=20))
    monkeypatch.setattr(sample, "_LARGE_DRAWS", 100)
    long = fitted(clone(MODELS[0]).set_params(prior_precision=1.0, n_draws=20))
    assert long.draws_.dtype == np.float32
    np.testing.assert_array_equal(long.draws_, double.draws_.astype(np.float32))
    np.testing.assert_allclose(long.coef_, double.coef_, rtol=1e-6)
    np.testing.assert_allclose(long.coef_std_, double.coef_std_, rtol=1e-5)
    for name, figure in double.diagnostics_.items():
        # the two draws around a median are as far from it, and rounding ranks them
        close = 1e-2 if name == "r_hat_max" else 1e-4
        assert long.diagnostics_[name] == pytest.approx(figure, rel=close), name
    half = fitted(clone(MODELS[0]).set_params(prior_precision=1.0, n_draws=14, warm_start=True))
    first, half = half.draws_, pickle.loads(pickle.dumps(half))
    half.set_params(n_draws=6).fit(X, LABELS)
    np.testing.assert_array_equal(np.concatenate([first, half.draws_], axis=1), long.draws_)


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("size", [20, 300])
def test_rows_drawn_ahead_are_drawn_again_out_of_a_pickle(replace, size):
    stream = Minibatches(
        SamplingFrame(1000), size, replace, np.random.Generator(np.random.SFC64(0)), 2
    )
    for _ in range(3):
        stream.draw()
    saved = pickle.dumps(stream)
    assert len(saved) < 3000
    twins = pickle.loads(saved), copy.deepcopy(stream)
    for _ in range(300):
        rows = stream.draw()
        for twin in twins:
            np.testing.assert_array_equal(twin.draw(), rows)


# -- format -------------------------------------------------------------------------------------


@EVERY
def test_a_file_of_another_format_is_refused(model, monkeypatch):
    for one in (clone(model), fitted(model)):
        saved = pickle.dumps(one)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            twin = pickle.loads(saved)
        assert vars(twin).keys() == vars(one).keys()
    written = f"written by skbayes_sg {base.__version__} in format {base.FORMAT}"
    said = f"this {type(model).__name__} was {written}, and "
    monkeypatch.setattr(base, "FORMAT", 1000)
    monkeypatch.setattr(base, "__version__", "1.2.3")
    with pytest.raises(
        ValueError, match=re.escape(f"{said}skbayes_sg 1.2.3 reads format 1000 alone: fit it again")
    ):
        pickle.loads(saved)


def test_a_file_without_a_format_is_refused_too():
    model = BayesianLogisticRegression()
    with pytest.raises(ValueError, match=r"written by skbayes_sg before 0\.1\.0 in format 0"):
        model.__setstate__(dict(vars(model)))


# -- compact ------------------------------------------------------------------------------------


@EVERY
def test_a_compact_model_predicts_the_same_in_single_precision(model):
    one = fitted(model)
    small = one.compact()
    assert small.draws_.dtype == np.float32
    np.testing.assert_array_equal(small.draws_, one.draws_.astype(np.float32))
    np.testing.assert_allclose(predicted(small), predicted(one), atol=1e-5)
    assert small.diagnostics_ == one.diagnostics_
    assert one.states_
    assert len(pickle.dumps(small)) < len(pickle.dumps(one))
    twin = pickle.loads(pickle.dumps(small))
    np.testing.assert_array_equal(predicted(twin), predicted(small))
    y = LABELS if is_classifier(model) else NUMBERS
    small.set_params(warm_start=True).fit(X, y)  # which starts anew
    np.testing.assert_array_equal(small.draws_, one.draws_)


def test_fewer_draws_are_evenly_spaced():
    one = fitted(MODELS[0])
    small = one.compact(n_draws=13)
    assert small.draws_.shape == (3, 4, 5)
    np.testing.assert_array_equal(small.draws_, one.draws_[:, ::2].astype(np.float32))
    np.testing.assert_array_equal(small.coef_, one.coef_)
    assert one.compact(n_draws=10**6).draws_.shape == one.draws_.shape
    with pytest.raises(NotFittedError, match="predicted_covariance needs a `fit`"):
        small.predicted_covariance(X, LABELS)


def test_weighted_draws_are_thinned_by_their_weights():
    sampler = SGLD(PolynomialDecay(0.05, 3.0, 0.6), batch_size=50)
    model = clone(MODELS[0]).set_params(sampler=sampler, n_draws=100).fit(X, LABELS)
    small = model.compact(n_draws=60)
    kept = systematic(model.draw_weights_, 20)
    np.testing.assert_array_equal(small.draws_, model.draws_[:, kept].astype(np.float32))
    np.testing.assert_allclose(small.draw_weights_, 1 / 20)
    np.testing.assert_allclose(model.compact().draw_weights_, model.draw_weights_)


def test_draws_that_single_precision_would_blur_stay_double():
    draws = 1.0 + 1e-6 * RNG.standard_normal((2, 50, 3))
    assert sample.in_single_precision(draws) is draws
    assert sample.in_single_precision(draws - 1.0).dtype == np.float32
    assert sample.in_single_precision(1e300 * (draws - 1.0)).dtype == np.float64


def test_draws_that_single_precision_would_blur_in_one_direction_stay_double():
    """Those of an intercept and the coefficient of a column far from zero."""
    coef, output = np.random.default_rng(0).standard_normal((2, 4, 300)) + 1.5
    fixed = np.zeros_like(coef)  # the coefficient of a column of one value

    def rounded(far):
        draws = np.stack([coef, output - far * coef, fixed], axis=2)
        single = sample.in_single_precision(draws)
        error = single[..., 1] + far * single[..., 0].astype(float) - output
        return single.dtype, np.abs(error).max()

    dtype, error = rounded(50.0)
    assert (dtype, error < 1e-3) == (np.float32, True)
    dtype, error = rounded(1e5)
    assert (dtype, error < 1e-9) == (np.float64, True)
    few = np.random.default_rng(0).standard_normal((4, 10, 30))  # which tell no direction
    assert sample.in_single_precision(few).dtype == np.float32


def test_compact_refuses_what_it_cannot_do():
    with pytest.raises(NotFittedError):
        MODELS[0].compact()
    one = fitted(MODELS[0])
    with pytest.raises(ValueError, match="n_draws must be at least 3"):
        one.compact(n_draws=2)
    with pytest.raises(TypeError, match="n_draws must be an integer"):
        one.compact(n_draws=3.0)


def test_systematic_resampling_keeps_each_share_to_one_draw(seed):
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=40) * (rng.random(40) < 0.7)
    for n in (1, 7, 40, 333):
        found = systematic(weights, n)
        assert (np.diff(found) >= 0).all()
        counts = np.bincount(found, minlength=40)
        assert (np.abs(counts - n * weights / weights.sum()) < 1 + 1e-9).all()
        assert (counts[weights == 0] == 0).all()
    np.testing.assert_array_equal(systematic(np.full(40, 0.3), 40), np.arange(40))


# -- skops --------------------------------------------------------------------------------------


OTHERS = [
    (BayesianPoissonRegressor(**SHORT), COUNTS),
    (BayesianNegativeBinomialRegressor(**SHORT), COUNTS),
    (BayesianBinomialRegressor(**SHORT), COUNTS),
    (BayesianBinomialRegressor(overdispersed=True, **SHORT), COUNTS),
    (BayesianGammaRegressor(**SHORT), np.exp(NUMBERS)),
    (BayesianRobustRegressor(**SHORT), NUMBERS),
    (BayesianOrdinalClassifier(**SHORT), np.digitize(NUMBERS, [-1, 1])),
    (BayesianLogisticRegression(prior="horseshoe", **SHORT), LABELS),
    (BayesianLinearRegression(prior_groups="feature", **SHORT), NUMBERS),
]


@pytest.mark.parametrize(
    ("model", "y"),
    [*((model, LABELS if is_classifier(model) else NUMBERS) for model in MODELS), *OTHERS],
    ids=lambda one: getattr(type(one), "__name__", "") if hasattr(one, "fit") else "y",
)
@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.quick("False")
def test_skops_loads_every_estimator_by_the_trusted_types(model, y, compact):
    io = pytest.importorskip("skops.io")
    known = {"trials": y.max()} if isinstance(model, BayesianBinomialRegressor) else {}
    one = clone(model).fit(X, y, **known)
    one = one.compact() if compact else one
    twin = io.loads(io.dumps(one), trusted=trusted_types())
    np.testing.assert_array_equal(predicted(twin), predicted(one))


def test_every_estimator_is_trusted_and_nothing_that_acts():
    names = {name.rpartition(".")[2] for name in trusted_types()}
    assert not [name for name in trusted_types() if "Runner" in name or ".dask." in name]
    assert {type(model).__name__ for model, _ in OTHERS} <= names
    assert {type(model).__name__ for model in MODELS} <= names


def test_a_pipeline_of_a_data_frame_with_callbacks_comes_out_of_skops():
    io, pd = pytest.importorskip("skops.io"), pytest.importorskip("pandas")
    frame = pd.DataFrame({"size": NUMBERS, "kind": np.where(X[:, 1] > 0, "a", "b")})
    columns = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include=float)),
        (OneHotEncoder(), make_column_selector(dtype_exclude=float)),
    )
    model = BayesianLogisticRegression(**SHORT).set_callbacks(TimeLimit(60), ConvergenceStop())
    one = make_pipeline(columns, model).fit(frame, LABELS)
    twin = io.loads(io.dumps(one), trusted=trusted_types())
    np.testing.assert_array_equal(twin.predict_proba(frame), one.predict_proba(frame))
    assert [type(each) for each in twin[-1]._skl_callbacks] == [TimeLimit, ConvergenceStop]


@EVERY
@pytest.mark.quick("BayesianLogisticRegression", "BayesianMLPClassifier")
def test_a_model_resumes_out_of_skops(model):
    io = pytest.importorskip("skops.io")
    one = fitted(clone(model).set_params(warm_start=True, sampler=SGFS(batch_size=20)))
    twin = io.loads(io.dumps(one), trusted=trusted_types())
    y = LABELS if is_classifier(model) else NUMBERS
    for each in (one, twin):
        each.fit(X, y)
    np.testing.assert_array_equal(twin.draws_, one.draws_)


def test_the_example_of_the_page_runs(tmp_path, monkeypatch):
    pytest.importorskip("skops.io")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 2
    names = {}
    monkeypatch.setattr(BayesianLogisticRegression, "fit", short_fit)
    for block in blocks:
        exec(compile(block, "persistence.md", "exec"), names)
    assert names["model"].draws_.dtype == np.float32


FIT = BayesianLogisticRegression.fit


def short_fit(model, *data):
    return FIT(model.set_params(n_draws=10, burn_in=20), *data)
