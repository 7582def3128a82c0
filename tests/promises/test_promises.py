"""What every estimator promises, whatever its model and sampler: each for each, in tiny runs."""

import copy
import pickle
import tracemalloc
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import differences, leaves
from helpers import OfManyTrials
from joblib import parallel_config
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
    BayesianRobustRegressor,
    DRBMClassifier,
    VariationalEM,
)
from skbayes_sg.chains.run import LONG
from skbayes_sg.inference.one_mode import OneMode
from skbayes_sg.inference.updates import AtMeans
from skbayes_sg.priors import StudentT
from skbayes_sg.samplers import SGFS, SGHMC, SGLD, UnderdampedLangevin

OF_COUNTS = (BayesianNegativeBinomialRegressor, BayesianPoissonRegressor, OfManyTrials)
CLASSIFIERS = (BayesianLogisticRegression, BayesianOrdinalClassifier)
REGRESSORS = (BayesianLinearRegression, BayesianRobustRegressor)
LINEAR = (*REGRESSORS, *CLASSIFIERS, *OF_COUNTS)
SHORT = {"n_chains": 3, "n_draws": 8, "burn_in": 8, "thin": 2, "random_state": 0}
MINIBATCHES = SGFS(structure="diag", alpha=2.0, batch_size=30)
CONTROLLED = UnderdampedLangevin(batch_size=32)
EM = VariationalEM(n_updates=12)
MODELS = {
    "logistic": BayesianLogisticRegression(**SHORT),
    "logistic, minibatches": BayesianLogisticRegression(MINIBATCHES, **SHORT),
    "logistic, control variates": BayesianLogisticRegression(CONTROLLED, **SHORT),
    "linear": BayesianLinearRegression(**SHORT),
    "linear, minibatches": BayesianLinearRegression(MINIBATCHES, **SHORT),
    "linear, learned prior": BayesianLinearRegression(prior_precision=EM, **SHORT),
    "robust": BayesianRobustRegressor(**SHORT),
    "ordinal": BayesianOrdinalClassifier(categories=["cold", "mild", "hot"], **SHORT),
    "Poisson": BayesianPoissonRegressor(**SHORT),
    "negative binomial": BayesianNegativeBinomialRegressor(prior_precision=1.0, **SHORT),
    "binomial": OfManyTrials(**SHORT),
}
NETWORKS = {
    "network": BayesianMLPClassifier(3, **SHORT),
    "machine": DRBMClassifier(3, **SHORT),
    "neural regression": BayesianMLPRegressor(3, **SHORT),
}
for name, network in NETWORKS.items():
    MODELS[name] = network
    if is_classifier(network):
        MODELS[f"{name}, Bayes"] = clone(network).set_params(temperature=1.0)
    MODELS[f"{name}, minibatches"] = clone(network).set_params(sampler=MINIBATCHES)


ONE_A_PATH = (  # all others take one of these paths through a fit, and their turn in `make slow`
    "logistic",
    "logistic, minibatches",
    "logistic, control variates",
    "linear",
    "network",
    "network, minibatches",
    "neural regression",
)


def such(*words):
    """The parametrisation by those models whose name ends in one of the words."""
    names = [name for name in MODELS if name.endswith(words)]
    slow = {name: [pytest.mark.slow] * (name not in ONE_A_PATH) for name in names}
    models = [pytest.param(MODELS[name], id=name, marks=slow[name]) for name in names]
    return pytest.mark.parametrize("model", models)


EVERY = such(*MODELS)
ONE_EACH = such("logistic", "linear", *NETWORKS)
NETWORK = such(*NETWORKS)
MINIBATCH = such("minibatches")
CHAIN_STREAMS = such(*(f"{name}, minibatches" for name in NETWORKS))
pytestmark = [
    pytest.mark.usefixtures("_short_searches"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 4))
X[np.abs(X) < 0.3] = 0.0
FRAME = pd.DataFrame(X, columns=list("abcd"))
LABELS = np.array(["hot", "mild", "cold"])[
    (X @ RNG.standard_normal((4, 3)) + RNG.gumbel(size=(300, 3))).argmax(axis=1)
]
NUMBERS = X @ RNG.standard_normal(4) + RNG.standard_normal(300)


COUNTS = RNG.poisson(np.exp(0.3 * NUMBERS))


def y_of(model):
    if isinstance(model, OF_COUNTS):
        return COUNTS
    return LABELS if is_classifier(model) else NUMBERS


def fitted(model, data=X, weight=None, **changes):
    model = clone(model).set_params(**changes)
    return model.fit(data, y_of(model), sample_weight=weight)


def classes_of(model):
    return {"classes": ["cold", "hot", "mild"]} if is_classifier(model) else {}


def of_stream(model, n_total=300):
    """What partial_fit takes beside the rows."""
    return classes_of(model) | ({} if isinstance(model, LINEAR) else {"n_total": n_total})


@cache
def _fitted_once(model, changes):
    return fitted(model, **dict(changes))


def copy_of_fitted(model, **changes):
    """A fit that nobody has asked anything yet, at the price of a copy."""
    return copy.deepcopy(_fitted_once(model, tuple(changes.items())))


def fitted_anew(model, **changes):
    """In place of a copy, for the fixtures of a test to have a part in it."""
    return _fitted_once.__wrapped__(model, tuple(changes.items()))


def streamed(model, rows=slice(None)):
    return model.partial_fit(X[rows], y_of(model)[rows], **of_stream(model))


def predicted(model, data=X):
    if is_classifier(model):
        return model.predict_proba(data)
    return np.column_stack(model.predict(data, return_std=True))


def same_draws(a, b):
    for name in ("draws_", "prior_precision_", "prior_precision_path_"):
        if hasattr(a, name):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


# -- the draws depend on data, parameters and seed alone --------------------------------------


@EVERY
def test_draws_are_the_same_for_every_n_jobs_and_backend(model):
    alone = copy_of_fitted(model)
    assert len(np.unique(alone.draws_[:, -1], axis=0)) == 3
    with parallel_config(backend="loky"):  # threads are in test_callbacks.py
        same_draws(fitted(model, n_jobs=2), alone)


def drawn(model):
    """Draws of the parameters, and of the precisions where these are sampled.

    As draws are held: those of fits of a few are not rounded.
    """
    precisions = getattr(model, "prior_precision_draws_", model.draws_[..., :0])
    return np.append(model.draws_, precisions, axis=2).astype(np.float32)


@pytest.mark.usefixtures("as_drawn")
@EVERY
def test_a_warm_start_goes_on_as_one_long_run_also_out_of_a_pickle(model):
    long = fitted_anew(model, n_draws=14)
    halves = fitted_anew(model, warm_start=True)
    first, twin = drawn(halves), pickle.loads(pickle.dumps(halves))
    stopped = halves._fit.engine.last
    for half in (halves, twin, copy.deepcopy(twin)):
        half.set_params(n_draws=6).fit(X, y_of(model))
        assert half.n_iter_ == long.n_iter_
        both = np.concatenate([first, drawn(half)], axis=1)
        np.testing.assert_array_equal(both, drawn(long))
        if isinstance(model, LINEAR) and half.sampler_.draws_are_points:
            points = stopped[:, : half.draws_.shape[2]].astype(np.float32)  # as draws are held
            np.testing.assert_array_equal(half.draws_[:, 0].astype(np.float32), points)


@EVERY
def test_copies_predict_the_same_and_clones_are_unfitted(model):
    one = copy_of_fitted(model)
    for twin in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        assert not differences(leaves(one), leaves(twin))
        np.testing.assert_array_equal(predicted(twin), predicted(one))
    again = clone(one)
    assert set(vars(again)) == set(again.get_params(deep=False))
    same_draws(again.fit(X, y_of(model)), one)


# -- weights ----------------------------------------------------------------------------------


@such("logistic", "linear", *NETWORKS, "Bayes")
def test_an_integer_weight_is_a_repetition(model):
    """To the last bit where chains forget nothing of a rounding error."""
    weight = np.random.default_rng(1).integers(0, 4, 300)
    weighted = fitted(model, weight=weight)
    twice = np.random.default_rng(2).permutation(np.repeat(np.arange(300), weight))
    repeated = clone(model).fit(X[twice], y_of(model)[twice])
    exact = not hasattr(weighted, "coef_")
    np.testing.assert_allclose(
        weighted.draws_, repeated.draws_, rtol=0.0, atol=0.0 if exact else 1e-9
    )
    assert np.abs(weighted.draws_ - copy_of_fitted(model).draws_).max() > 1e-3


@EVERY
def test_weight_zero_leaves_a_row_out(model):
    kept = np.arange(300) % 5 > 0
    same_draws(
        fitted(model, weight=kept.astype(float)), clone(model).fit(X[kept], y_of(model)[kept])
    )


# -- kinds of input ---------------------------------------------------------------------------


@EVERY
def test_sparse_matrices_frames_and_memory_maps_are_arrays(model, tmp_path):
    array = copy_of_fitted(model)
    np.save(tmp_path / "X.npy", X)
    for other in (
        sparse.csc_array(X),
        FRAME,
        np.load(tmp_path / "X.npy", mmap_mode="r"),
    ):
        same = fitted(model, other)
        same_draws(same, array)
        np.testing.assert_allclose(predicted(same, other), predicted(array), rtol=1e-12)


@ONE_EACH
def test_names_of_columns_are_kept_and_must_match(model):
    named = fitted(model, FRAME)
    assert named.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        named.predict(FRAME[list("dcba")])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        named.predict(X)


@EVERY
def test_float32_stays_float32(model):
    """Were it made float64 on the way, the draws would be those of the same numbers in float64."""
    narrow, wide = (
        fitted(model, X.astype(np.float32).astype(dtype)) for dtype in (np.float32, np.float64)
    )
    in_single = getattr(narrow.sampler_, "single", False)  # whatever the rows are
    assert np.array_equal(narrow.draws_, wide.draws_) == in_single
    np.testing.assert_allclose(predicted(narrow, X.astype(np.float32)), predicted(wide), atol=0.01)


@MINIBATCH
def test_rows_on_disk_are_not_copied(model, tmp_path):
    """What a fit needs grows by less than a row for each row."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / "X.npy", rng.standard_normal((30_000, 40), dtype=np.float32))
    mapped, peaks = np.load(tmp_path / "X.npy", mmap_mode="r"), []
    y = np.sign(mapped[:, 0] + 0.5 + rng.logistic(size=30_000)) + 1
    for n_rows in (15_000, 30_000):
        tracemalloc.start()
        clone(model).set_params(n_draws=4).fit(mapped[:n_rows], y[:n_rows])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 0.7 * (mapped.nbytes / 2)


# -- streams ----------------------------------------------------------------------------------


@CHAIN_STREAMS
def test_a_stream_goes_on_out_of_a_pickle(model):
    first, second = slice(0, 150), slice(150, 300)
    one = streamed(clone(model).set_params(burn_in=2), first)
    twin = pickle.loads(pickle.dumps(one))
    for part in (one, twin):
        streamed(part, second)
    same_draws(one, twin)
    np.testing.assert_array_equal(predicted(one), predicted(twin))
    assert one.n_samples_seen_ == 300
    assert one.n_iter_ == 10
    assert one.draws_.shape[:2] == (1, 4)


@pytest.mark.usefixtures("as_drawn")
@EVERY
def test_a_stream_in_between_does_not_disturb_a_warm_start(model):
    long = fitted_anew(model, n_draws=14)
    halves = fitted_anew(model, warm_start=True)
    if isinstance(model, LINEAR) and model.sampler is not None:
        assert not hasattr(halves, "partial_fit")
    else:
        streamed(halves)
    same = halves.set_params(n_draws=6).fit(X, y_of(model))
    np.testing.assert_array_equal(drawn(same), drawn(long)[:, 8:])


# -- what is refused or interrupted leaves no trace -------------------------------------------


def with_entry(value):
    broken = X.copy()
    broken[3, 1] = value
    return broken


OTHER_LABELS = np.arange(300) % 5
REFUSED = {  # parameters, X, y of classifiers and of regressions, weight, what is said
    "NaN": ({}, with_entry(np.nan), None, None, "contains NaN"),
    "infinity": ({}, with_entry(np.inf).astype(np.float32), None, None, "contains infinity"),
    "text": ({}, FRAME.assign(job="clerk"), None, None, "'job'; give such"),
    "one class, or NaN": ({}, X, ["hot", np.nan], None, "one class only|contains NaN"),
    "labels of several types, or text": (
        {},
        X,
        [np.resize(np.array([1, "b", 2.5], dtype=object), 300), "hot"],
        None,
        "several types, float, int, str|must hold real numbers",
    ),
    "no label, or none": (
        {},
        X,
        [np.resize(np.array(["a", None], dtype=object), 300), None],
        None,
        "y has missing labels|y contains NaN",
    ),
    "negative weights of other classes and columns": (
        {},
        X[:, :2],
        [OTHER_LABELS, NUMBERS],
        -1.0,
        "sample_weight must be finite and not negative",
    ),
    "numbers whose squares overflow": (
        {},
        X * 1e300,
        None,
        None,
        "squares overflow|is singular in double precision|too large|not finite|diverged",
    ),
    "targets whose squares overflow": (
        {},
        X * [1e300, 1, 1, 1],
        [LABELS, NUMBERS * 1e300],
        None,
        "squares overflow|is singular in double precision|too large|not finite|diverged",
    ),
    "no weight at all": ({}, X, None, 0.0, "sample_weight is zero for all rows"),
    "one draw": ({"n_draws": 1}, X, None, None, "n_draws must be at least 4"),
    "no prior": (
        {"prior_precision": -1.0},
        X[:, :3],
        None,
        None,
        "prior_precision must be positive",
    ),
    "no such sampler": ({"sampler": "nuts"}, X[:, :3], None, None, "sampler must be one of"),
    "unstable": ({"sampler": SGLD(1e6)}, X[:, :3], None, None, "unstable|diverged"),
}


@cache
def _of_each_past(model):
    return fitted(model, FRAME, warm_start=True), copy_of_fitted(model), streamed(clone(model))


def of_each_past(model):
    """After a fit of a table, for a warm start; after a fit; after a stream. For one test each."""
    return copy.deepcopy(_of_each_past(model))


def refuse(model, parameters, data, y, weight, message):
    """Ask for the impossible, and put the parameters back."""
    before = model.get_params(deep=False)
    weight = None if weight is None else np.full(300, weight)
    y = y_of(model) if y is None else np.full(300, y[0 if is_classifier(model) else 1])
    with pytest.raises((ValueError, TypeError, FloatingPointError), match=message):
        model.set_params(**parameters).fit(data, y, sample_weight=weight)
    model.set_params(**before)


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
@ONE_EACH
def test_a_refused_fit_leaves_the_model_as_it_was(model, case):
    new = clone(model)
    refuse(new, *case)
    assert not differences(leaves(clone(model)), leaves(new))
    with pytest.raises(NotFittedError):
        new.predict(X)
    of_a_table, _, of_a_stream = of_each_past(model)
    for old, data in ((of_a_table, FRAME), (of_a_stream, X)):
        before, prediction = leaves(old), predicted(old, data)
        refuse(old, *case)
        assert not differences(before, leaves(old))
        np.testing.assert_array_equal(predicted(old, data), prediction)


REFUSED_CHUNKS = {  # parameters, X, y or None, what is said
    "NaN": ({}, with_entry(np.nan), None, "contains NaN"),
    "other columns": ({}, X[:, :2], None, "2 features, but .* expecting 4"),
    "labels of several types, or text": (
        {},
        X,
        np.resize(np.array([1, "b"], dtype=object), 300),
        "several types, int, str|must hold real numbers",
    ),
    "numbers whose squares overflow": ({}, X * 1e155, None, "squares overflow"),
    "unknown label, or text": (
        {},
        X,
        np.full(300, "freezing"),
        "not among the classes|must hold real numbers",
    ),
    "no rows": ({}, X[:0], None, "0 sample"),
    "one draw": ({"n_draws": 1}, X, None, "n_draws must be at least 4"),
}
OF_CHAINS = {
    "one row": ({}, X[:1], None, 300, "at least 2 rows|minimum of 2"),
    "population smaller than the chunk": ({}, X, None, 10, "n_total must lie between"),
    "diverging": ({"sampler": SGLD(lambda t: 1e6, batch_size=2)}, X, None, 300, "diverged"),
}


def refuse_chunk(model, parameters, data, y, message, n_total=300):
    """After a stream, a fit and nothing."""
    y = y_of(model)[: len(data)] if y is None else y
    _, of_a_fit, of_a_stream = of_each_past(model)
    models = [of_a_stream, of_a_fit, clone(model)]
    for old in models[:2] if "expecting 4" in message else models:
        before, given = leaves(old), old.get_params(deep=False)
        with pytest.raises((ValueError, TypeError, FloatingPointError), match=message):
            old.set_params(**parameters).partial_fit(data, y, **of_stream(model, n_total))
        assert not differences(before, leaves(old.set_params(**given)))


@pytest.mark.parametrize("case", REFUSED_CHUNKS.values(), ids=REFUSED_CHUNKS)
@ONE_EACH
def test_a_refused_chunk_leaves_the_model_as_it_was(model, case):
    refuse_chunk(model, *case)


def require_hidden(model, parameters, why):
    one = clone(model).set_params(sampler=None, prior_precision=1.0)
    assert hasattr(one, "partial_fit")
    with pytest.raises(AttributeError, match="no attribute 'partial_fit'") as refused:
        one.set_params(**parameters).partial_fit(X, y_of(model))
    assert why in str(refused.value.__cause__)


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"sampler": "hmc"}, "set sampler=None"),
        ({"sampler": SGFS()}, "set sampler=None"),
        ({"prior": "horseshoe", "prior_precision": "learned"}, "set prior=None"),
        ({"prior": StudentT(3.0), "prior_precision": "learned"}, "set prior=None"),
    ],
    ids=str,
)
@such("logistic", "linear")
def test_partial_fit_is_hidden_where_regressions_would_refuse(model, parameters, why):
    """As scikit-learn's estimators do; the reason is the cause of the error."""
    require_hidden(model, parameters, why)


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"sampler": "hmc"}, "HMC needs rows that it can draw again"),
        ({"sampler": SGHMC()}, "SGHMC needs rows that it can draw again"),
        ({"prior_precision": EM}, "does not learn it"),
    ],
    ids=str,
)
@NETWORK
def test_partial_fit_is_hidden_where_networks_would_refuse(model, parameters, why):
    require_hidden(model, parameters, why)


@pytest.mark.parametrize("case", OF_CHAINS.values(), ids=OF_CHAINS)
@NETWORK
def test_a_chunk_that_a_chain_refuses_leaves_the_model_as_it_was(model, case):
    parameters, data, y, n_total, message = case
    refuse_chunk(model, parameters, data, y, message, n_total)


@such("logistic", "network", "machine")
def test_a_stream_needs_its_classes_first(model):
    with pytest.raises(ValueError, match="classes must be given"):
        clone(model).partial_fit(X, LABELS)


ALARM = {"steps": np.inf}


def small_step(t):
    ALARM["steps"] -= 1
    if ALARM["steps"] < 0:
        raise KeyboardInterrupt
    return 1e-5


@pytest.mark.parametrize("before", ["nothing", "fit", "partial_fit"])
@ONE_EACH
def test_an_interrupted_fit_or_chunk_leaves_the_model_as_it_was(model, before, monkeypatch):
    again = {"fit": lambda one: one.fit(X, y_of(model)), "partial_fit": streamed}
    if isinstance(model, LINEAR):  # their stream takes no steps
        again["partial_fit"] = again["fit"]
    slow = SGLD(step_size=small_step, batch_size=10)
    one = clone(model).set_params(sampler=slow, warm_start=before == "fit")
    if before != "nothing":
        again[before](one)
    was, interrupted = leaves(one), {}
    for how, run in again.items():
        with monkeypatch.context() as patch:
            patch.setitem(ALARM, "steps", 15)
            with pytest.raises(KeyboardInterrupt):
                run(one)
        interrupted[how] = differences(was, leaves(one))
    assert interrupted == {"fit": [], "partial_fit": []}


@pytest.mark.parametrize("stop", [7, 30, 43])  # steps to a mode, 40, and of burn-in
@NETWORK
def test_an_interrupted_search_for_modes_leaves_the_network_as_it_was(model, stop, monkeypatch):
    step, taken = SGHMC.step, []

    def counted(*call):
        taken.append(call)
        if len(taken) == stop:
            raise KeyboardInterrupt
        step(*call)

    of_a_fit, of_a_stream = copy_of_fitted(model, warm_start=True), of_each_past(model)[2]
    for one in (clone(model), of_a_fit, of_a_stream):
        before = leaves(one)
        taken.clear()
        with monkeypatch.context() as patch:
            patch.setattr(SGHMC, "step", counted)
            with pytest.raises(KeyboardInterrupt):
                one.fit(
                    X * 2.0, y_of(model)
                )  # other rows than those that a warm start goes on with
        assert len(taken) == stop
        assert not differences(before, leaves(one))


@ONE_EACH
def test_a_warning_made_an_error_leaves_no_half_fitted_model(model):
    """As it was, or as without the filter."""
    y, far = y_of(model), X * [1, 1, 1, 1e5]
    one, whole = copy_of_fitted(model), copy_of_fitted(model)
    before, after = leaves(one), leaves(whole.fit(far, y))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        with pytest.raises(ConvergenceWarning):
            one.fit(far, y)
    assert not differences(before, leaves(one)) or not differences(after, leaves(one))


# -- questions --------------------------------------------------------------------------------

QUERIES = {
    "predict": lambda model, y: model.predict(X),
    "predict_proba": lambda model, y: model.predict_proba(X),
    "predict_log_proba": lambda model, y: model.predict_log_proba(X),
    "decision_function": lambda model, y: model.decision_function(X),
    "predict_draws": lambda model, y: model.predict_draws(X, kind="mean"),
    "predict_interval": lambda model, y: model.predict_interval(X[:9], level=0.5),
    "predict_uncertainty": lambda model, y: model.predict_uncertainty(X),
    "score": lambda model, y: model.score(X, y),
    "diagnose": lambda model, y: model.diagnose(X),
    "summary": lambda model, y: model.summary(),
    "to_arviz": lambda model, y: model.to_arviz(
        X, y, log_likelihood=True, posterior_predictive=True
    ),
    "compact": lambda model, y: model.compact(),
    "predicted_covariance": lambda model, y: model.predicted_covariance(X[:200], y[:200]),
    "__repr__": lambda model, y: repr(model),
    "get_params": lambda model, y: model.get_params(),
}


@EVERY
def test_a_question_changes_nothing(model):
    """Not even an attribute for an equal one; but a fit keeps what was read off it."""
    one, changed = copy_of_fitted(model), {}
    for name in ("coef_", "posterior_", "noise_variance_"):
        getattr(one, name, None)
    asked = [name for name in QUERIES if hasattr(one, name)]
    assert {"predict", "score", "predict_interval", "to_arviz"} < set(asked)
    for name in asked:
        held, before = dict(vars(one)), leaves(one)
        QUERIES[name](one, y_of(model))
        replaced = [attribute for attribute in held if vars(one)[attribute] is not held[attribute]]
        if replaced or differences(before, leaves(one)):
            changed[name] = replaced, differences(before, leaves(one))
    assert changed == {}


@ONE_EACH
def test_rows_whose_squares_overflow_are_refused_by_every_prediction(model):
    one = copy_of_fitted(model)
    for dtype in (np.float64, np.float32):
        far = X.astype(dtype) * dtype(2.0 * np.sqrt(np.finfo(dtype).max))
        for rows in (far, sparse.csr_matrix(far)):
            for name in ("predict", "predict_interval", "score"):
                y = [y_of(model)] if name == "score" else []
                with pytest.raises(ValueError, match="X holds values whose squares overflow"):
                    getattr(one, name)(rows, *y)


# -- warnings ---------------------------------------------------------------------------------


def fit(model, *data, **more):
    model.fit(*data, **more)  # the user's line


def partial_fit(model, *data, **more):
    model.partial_fit(*data, **more)  # the user's line


def warned_at(function, *data, **more):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*data, **more)
    ours = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert ours
    return {(w.filename, w.lineno) for w in ours}


def line_of(function):
    return {(__file__, function.__code__.co_firstlineno + 1)}


@such(*(name for name in MODELS if not isinstance(MODELS[name], OfManyTrials)))  # a line more
def test_warnings_of_fit_name_the_users_line(model):
    """In a pipeline too; of networks the warning of a column far from one is among them."""
    far = X if isinstance(model, LINEAR) else X * [1, 1, 1, 1e5]
    for one in (clone(model), make_pipeline(FunctionTransformer(), clone(model))):
        assert warned_at(fit, one, far, y_of(model)) == line_of(fit)


@pytest.mark.filterwarnings("always::sklearn.exceptions.ConvergenceWarning")
def test_warnings_in_a_worker_name_the_line_that_fits(recwarn):
    """The user's line is unknown there; it used to be one of Python's multiprocessing."""
    with parallel_config(backend="threading"):  # whose warnings come here
        cross_val_score(MODELS["logistic"], X, LABELS, n_jobs=2, cv=2)
    assert {Path(one.filename).name for one in recwarn} == {"_validation.py"}


@CHAIN_STREAMS
def test_warnings_of_partial_fit_name_the_users_line(model):
    warned = warned_at(partial_fit, clone(model), X, y_of(model), **classes_of(model))
    assert warned == line_of(partial_fit)


class HeardError(Exception):
    """Raised in place of a warning, so that what is warned of is not done."""


@NETWORK
def test_the_warning_of_draws_that_fill_the_memory_names_the_users_line(model, monkeypatch):
    def heard(message, category, filename, lineno, *more):
        raise HeardError(str(message), filename, lineno)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        monkeypatch.setattr(warnings, "showwarning", heard)
        with pytest.raises(HeardError, match="GB of memory") as caught:
            fit(clone(model).set_params(n_draws=10**9), X, y_of(model))
    assert {caught.value.args[1:]} == line_of(fit)


def test_a_long_fit_is_announced(monkeypatch):
    """From the time that its steps are expected to take, which a busy machine does not change."""
    model = BayesianLogisticRegression(random_state=0)
    X, y = np.random.default_rng(0).standard_normal((60, 2)), np.arange(60) % 2
    monkeypatch.setattr("skbayes_sg.inference.sample.seconds", lambda *given: LONG + 1)
    with pytest.warns(UserWarning, match="the chains will take about 1 minute on one core"):
        model.fit(X, y)
    monkeypatch.setattr("skbayes_sg.inference.sample.seconds", lambda *given: 125 * 60)
    with pytest.warns(UserWarning, match="the chains will take about 125 minutes on one core"):
        model.fit(X, y)
    monkeypatch.setattr("skbayes_sg.inference.sample.seconds", lambda *given: LONG)
    with warnings.catch_warnings(action="error"):
        model.fit(X, y)


def test_a_long_warm_up_is_announced_before_it_begins(monkeypatch):
    """By its first round and the first draws."""
    lengths = []
    model = BayesianLogisticRegression(prior="horseshoe", n_draws=500, random_state=0)
    X, y = np.random.default_rng(0).standard_normal((2, 3)), np.arange(2)

    def burn(*given):
        raise RuntimeError("no step was taken before")

    monkeypatch.setattr(AtMeans, "burn", burn)
    for time in (LONG, LONG + 1):
        monkeypatch.setattr(
            "skbayes_sg.inference.warm_up.seconds",
            lambda *given, time=time: lengths.append(given[-1]) or time,
        )
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            with pytest.raises(RuntimeError, match="no step"):
                model.fit(X, y)
        said = "warm-up and chains will take at least about 1 minute on one core"
        assert [said in str(one.message) for one in seen] == [True] * (time > LONG)
    assert lengths[0].n_draws == 500
    assert lengths[0].burn_in >= 128  # a round, and the burn-in


def test_a_long_preparation_is_announced_before_it_begins(monkeypatch):
    """By one pass over the rows, of which fits of many parameters take thousands."""
    model = BayesianLogisticRegression(random_state=0)
    X, y = np.random.default_rng(0).standard_normal((450, 400)), np.arange(450) % 3

    def begin(start):
        raise RuntimeError("nothing was prepared before")

    monkeypatch.setattr("skbayes_sg.inference.warm_up.begin", begin)
    for time in (LONG, LONG + 1):
        monkeypatch.setattr(
            "skbayes_sg.inference.warm_up.seconds_of_passes", lambda *given, time=time: time
        )
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            with pytest.raises(RuntimeError, match="nothing was prepared"):
                model.fit(X, y)
        said = "preparation and chains will take at least about 1 minute on one core"
        assert [said in str(one.message) for one in seen] == [True] * (time > LONG)


def test_chains_that_go_on_for_long_say_so_once(monkeypatch):
    model = BayesianLogisticRegression(random_state=0)
    X, y = np.random.default_rng(0).standard_normal((60, 2)), np.arange(60) % 2
    monkeypatch.setattr("skbayes_sg.inference.sample.seconds", lambda *given: 25.0)
    monkeypatch.setattr(OneMode, "is_enough", lambda plan, fit: False)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.fit(X, y)
    said = [str(one.message) for one in seen if "the chains do not agree yet" in str(one.message)]
    assert len(said) == 1
    assert "will take about 1 minute on one core" in said[0]
