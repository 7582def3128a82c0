"""Random data, parameters and sequences of calls, and what must hold after every call.

A call ends with a finite model whose probabilities sum to 1, or with an error of this package or
of scikit-learn's validation that names a parameter or the data. No warning of NumPy or SciPy leaks.
A refused call leaves the estimator as it was, and so does a question. `make fuzz` runs thousands of
cases; `python tests/tools/fuzz.py 500` runs 500. A tenth as many are default fits, to rows that
strain the numbers rather than the arguments: rare events, many rows, levels of one row, odd units.
`python tests/tools/fuzz.py defaults 50` runs these alone.
"""

import copy
import pickle
import re
import signal
import sys
import time
import traceback
import warnings
from collections import Counter, defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone, is_classifier

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
    VariationalEM,
)
from skbayes_sg.priors import Horseshoe, StudentT
from skbayes_sg.samplers import (
    HMC,
    IASG,
    SGD,
    SGFS,
    SGHMC,
    SGLD,
    ConstantSGD,
    CosineCycle,
    MomentumSGD,
    PolynomialDecay,
    UnderdampedLangevin,
)
from skbayes_sg.samplers import SAMPLERS as SAMPLERS_BY_NAME

sys.path.insert(0, str(Path(__file__).parents[1]))

from conftest import differences, leaves

_SECONDS = 20.0  # of the processor; a case takes less than one
_SECONDS_OF_DEFAULT = 120.0  # most take less than one; 100,000 rows and networks take several
_OF_A_SEED = 20  # cases; later ones of a seed are variations of earlier ones
_ERRORS = (ValueError, TypeError, FloatingPointError)
_WARNINGS = (UserWarning, DeprecationWarning, FutureWarning)  # ConvergenceWarning is a UserWarning

# -- data -------------------------------------------------------------------------------------

SHAPES = {"few": (5, 2), "row": (30, 1), "small": (40, 3), "wide": (12, 20), "long": (150, 4)}
COLUMNS = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "cauchy": lambda rng, shape: rng.standard_cauchy(shape),
    "counts": lambda rng, shape: rng.poisson(1.0, shape).astype(float),
    "lognormal": lambda rng, shape: rng.lognormal(0.0, 3.0, shape),
    "zero": lambda rng, shape: np.zeros(shape),
}
CHANGES = {
    "": lambda X: None,
    "constant column": lambda X: X.__setitem__((slice(None), 0), 1.0),
    "equal columns": lambda X: X.__setitem__((slice(None), -1), X[:, 0]),
    "equal rows": lambda X: X.__setitem__(slice(len(X) // 2), X[0]),
    "zero column": lambda X: X.__setitem__((slice(None), 0), 0.0),
    "column times 1e6": lambda X: X.__setitem__((slice(None), 0), X[:, 0] * 1e6),
    "column times 1e-6": lambda X: X.__setitem__((slice(None), 0), X[:, 0] * 1e-6),
    "times 1e20": lambda X: np.multiply(X, 1e20, out=X),
    "times 1e155": lambda X: np.multiply(X, 1e155, out=X),
    "times 1e300": lambda X: np.multiply(X, 1e300, out=X),
    "NaN": lambda X: X.__setitem__((1, 0), np.nan),
    "infinity": lambda X: X.__setitem__((1, 0), np.inf),
}
CONTAINERS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "float16": lambda X: X.astype(np.float16),
    "integer": lambda X: np.clip(np.nan_to_num(X), -1e9, 1e9).astype(int),
    "bool": lambda X: X > 0,
    "object": lambda X: X.astype(object),
    "Fortran": lambda X: np.asfortranarray(X),
    "reversed": lambda X: X[::-1],
    "read only": lambda X: _read_only(X.copy()),
    "list": lambda X: X.tolist(),
    "frame": lambda X: pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]),
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_array,
}
LABELS = {
    "integers": lambda k: k,
    "strings": lambda k: np.array(["a", "b", "c"])[k],
    "objects": lambda k: np.array(["a", "b", "c"], dtype=object)[k],
    "floats": lambda k: k * 1.0,
    "bools": lambda k: k > 0,
    "list": lambda k: k.tolist(),
    "column": lambda k: k[:, None],
    "series": lambda k: pd.Series(np.array(["a", "b", "c"])[k]),
    "category": lambda k: pd.Series(np.array(["a", "b", "c"])[k], dtype="category"),
    "mixed": lambda k: np.array([1, "b", 2.5], dtype=object)[k],
    "None among them": lambda k: np.array(["a", None, "c"], dtype=object)[k],
    "fractions": lambda k: k + 0.5,
    "one class": lambda k: np.zeros_like(k),
    "rare": lambda k: (np.arange(len(k)) == 0).astype(int),
    "separable": lambda k: (np.arange(len(k)) < len(k) / 2).astype(int),
    "complex": lambda k: k * 1j,
}
NUMBERS = {
    "noise": lambda y: y,
    "constant": lambda y: np.ones_like(y),
    "zero": lambda y: np.zeros_like(y),
    "times 1e20": lambda y: y * 1e20,
    "times 1e300": lambda y: y * 1e300,
    "times 1e-300": lambda y: y * 1e-300,
    "NaN": lambda y: np.where(np.arange(len(y)) == 1, np.nan, y),
    "text": lambda y: np.full(len(y), "a"),
    "column": lambda y: y[:, None],
    "float32": lambda y: y.astype(np.float32),
    "integers": lambda y: y.astype(int),
    "complex": lambda y: y * 1j,
    "object": lambda y: y.astype(object),
}
WEIGHTS = {
    "none": lambda w: None,
    "ones": lambda w: np.ones_like(w),
    "uniform": lambda w: w,
    "integers": lambda w: np.floor(4 * w),
    "zero": lambda w: np.zeros_like(w),
    "one row": lambda w: (np.arange(len(w)) == 0) * 1.0,
    "two rows": lambda w: (np.arange(len(w)) < 2) * 1.0,
    "huge": lambda w: w * 1e200,
    "large": lambda w: w * 1e10,
    "tiny": lambda w: w * 1e-200,
    "NaN": lambda w: w * np.nan,
    "negative": lambda w: -w,
    "list": lambda w: w.tolist(),
    "float32": lambda w: w.astype(np.float32),
    "too few": lambda w: w[1:],
    "text": lambda w: np.full(len(w), "a"),
}


def one_of(table):
    """The first entry, the plain one, in half of the cases."""
    names = list(table)
    return st.sampled_from(names[:1] * len(names) + names)


def _read_only(X):
    X.flags.writeable = False
    return X


DATA = st.fixed_dictionaries(
    {
        "shape": st.sampled_from(sorted(SHAPES)),
        "columns": one_of(COLUMNS),
        "change": one_of(CHANGES),
        "container": one_of(CONTAINERS),
        "labels": one_of(LABELS),
        "numbers": one_of(NUMBERS),
        "weights": one_of(WEIGHTS),
        "seed": st.integers(0, 9),
    }
)


def made(data, classifier):
    """X, y and weights."""
    rng = np.random.default_rng(data["seed"])
    shape = SHAPES[data["shape"]]
    with np.errstate(all="ignore"):
        X = COLUMNS[data["columns"]](rng, shape)
        noisy = X[:, 0] + rng.standard_normal(len(X))
        y = np.digitize(noisy, [-0.5, 0.5])
        CHANGES[data["change"]](X)
        X = CONTAINERS[data["container"]](X)
        y = LABELS[data["labels"]](y) if classifier else NUMBERS[data["numbers"]](noisy)
        weight = WEIGHTS[data["weights"]](rng.random(shape[0]))
    return X, y, weight


# -- parameters -------------------------------------------------------------------------------

STEPS = st.sampled_from([1e-8, 1e-4, 0.1, 1.0, 1e4])
BATCHES = st.sampled_from([1, 2, 5, 20, 500, "auto"])
PRIORS = st.sampled_from(
    [
        1.0,
        "learned",
        1e-8,
        1e8,
        1e300,
        1e-300,
        0.0,
        -1.0,
        np.nan,
        None,
        "scale",
        [1.0],
        [1.0] * 3,
        "yes",
    ]
)
STRUCTURES = st.sampled_from(["full", "kron", "diag", "block", "scalar", "sqrt", "none"])


def some(cls, **strategies):
    """Instances with some of these parameters set."""
    return st.fixed_dictionaries({}, optional=strategies).map(lambda given: cls(**given))


ALPHAS = st.sampled_from(["auto", 0.0, 0.5, 3.0, -1.0, 1e6])
REDUCED = st.sampled_from([None, "control_variate"])
SCHEDULES = st.sampled_from([PolynomialDecay(1e-3, 10.0, 0.55), CosineCycle(1e-3, 0.1, 10)])
SAMPLER_NAMES = sorted(SAMPLERS_BY_NAME)
SAMPLERS = st.one_of(
    st.none(),
    st.none(),
    st.sampled_from([*SAMPLER_NAMES, "nuts", 3]),
    some(
        SGFS,
        alpha=ALPHAS,
        structure=STRUCTURES,
        batch_size=BATCHES,
        replace=st.booleans(),
        variant=st.sampled_from(["exact", "paper", "mandt"]),
        B=st.sampled_from(["noise", "precision", "bounded", 1.0, -1.0]),
    ),
    some(UnderdampedLangevin, alpha=ALPHAS, batch_size=BATCHES, replace=st.booleans()),
    some(
        SGLD,
        step_size=STEPS,
        preconditioner=st.sampled_from([None, "diag"]),
        temperature=st.sampled_from([1.0, 0.5]),
        clip=st.sampled_from([None, ("norm", 1.0), ("value", 0.1)]),
        batch_size=BATCHES,
        variance_reduction=REDUCED,
    ),
    some(SGLD, step_size=SCHEDULES, batch_size=BATCHES),
    some(
        SGHMC,
        step_size=st.one_of(STEPS, SCHEDULES),
        damping=st.sampled_from([0.1, 1.0, 0.0]),
        temperature=st.sampled_from([1.0, 0.0, 2.0]),
        batch_size=BATCHES,
        share_rows=st.booleans(),
        single=st.booleans(),
    ),
    some(SGD, step_size=STEPS, batch_size=BATCHES),
    some(
        ConstantSGD,
        structure=STRUCTURES,
        correction=st.sampled_from(["discrete", "ou"]),
        step_size=STEPS,
        batch_size=BATCHES,
    ),
    some(
        MomentumSGD,
        structure=STRUCTURES,
        damping=st.sampled_from([0.01, 0.5]),
        batch_size=BATCHES,
    ),
    some(IASG, structure=STRUCTURES, window=st.sampled_from(["pass", 1, 7]), batch_size=BATCHES),
    some(
        HMC,
        n_leapfrog=st.sampled_from([1, 5]),
        target_accept=st.sampled_from([0.1, 0.8]),
        structure=STRUCTURES,
        single_gradients=st.booleans(),
    ),
)
LENGTHS = {
    "n_chains": st.sampled_from([1, 2, 3, 5]),
    "n_draws": st.sampled_from([4, 8, 12]),
    "burn_in": st.sampled_from([0, 1, 10, 30]),
    "thin": st.sampled_from([1, 2]),
}
EMS = st.builds(
    VariationalEM,
    per=st.sampled_from(["block", "class", "feature", "layer"]),
    n_updates=st.just(8),
    hyperprior=st.sampled_from([(0.0, 0.0), (1.0, 1.0)]),
)
COMMON = {
    **LENGTHS,
    "sampler": SAMPLERS,
    "prior_precision": st.one_of(st.just(1.0), st.just(1.0), PRIORS, EMS),
    "warm_start": st.booleans(),
}
MEANS = st.sampled_from([0.0, 0.0, 1.0, 1e300, np.nan, [1.0] * 3])
FORGETTING = st.sampled_from([1.0, 1.0, 0.5, 1e-300, 0.0])
CLASS_WEIGHTS = st.sampled_from(
    [None, None, None, "balanced", {0: 2.0}, {"a": 3.0}, {0: 0.0}, {0: 1e300}, {1: -1.0}]
)
GROUPS = st.sampled_from([None, None, "feature", "prefix", {"a": [0]}, {"a": [0], "b": 99}, str, 3])
SHRINKAGE = st.sampled_from(
    [None, None, None, "horseshoe", "student_t", "laplace", Horseshoe(1.0), StudentT(0.0)]
)
INTERCEPTS = st.sampled_from([0.01, 1e-300, 1e300, 0.0])
FAMILY = {
    "intercept_precision": INTERCEPTS,
    "prior_mean": MEANS,
    "prior_groups": GROUPS,
    "prior": SHRINKAGE,
    "forgetting_factor": FORGETTING,
}
REGRESSIONS = {
    cls: {**FAMILY, "fit_intercept": st.booleans()}
    for cls in (
        BayesianPoissonRegressor,
        BayesianNegativeBinomialRegressor,
        BayesianGammaRegressor,
        BayesianRobustRegressor,
        BayesianBinomialRegressor,
    )
}
REGRESSIONS[BayesianBinomialRegressor]["overdispersed"] = st.sampled_from([False, True, 2])
OWN = {
    **REGRESSIONS,
    BayesianOrdinalClassifier: {
        **FAMILY,
        "categories": st.sampled_from([None, None, [0, 1], ["a", "b"], ["b", "a", "c"], 3, "ab"]),
        "class_weight": CLASS_WEIGHTS,
    },
    BayesianLogisticRegression: {
        "class_weight": CLASS_WEIGHTS,
        "fit_intercept": st.booleans(),
        "intercept_precision": INTERCEPTS,
        "n_predict_draws": st.sampled_from([None, 1, 5]),
        "prior_mean": MEANS,
        "prior_groups": GROUPS,
        "prior": SHRINKAGE,
        "forgetting_factor": FORGETTING,
    },
    BayesianLinearRegression: {
        "fit_intercept": st.booleans(),
        "intercept_precision": INTERCEPTS,
        "noise_variance": st.sampled_from([None, None, 1.0, 1e-12, 1e12, 1e300, 0.0]),
        "noise_prior": st.sampled_from([(1e-6, 1e-6), (1.0, 1.0), (1e-300, 1e-300), (3, 1e10)]),
        "prior_mean": MEANS,
        "prior_groups": GROUPS,
        "prior": SHRINKAGE,
        "forgetting_factor": FORGETTING,
    },
    BayesianMLPClassifier: {
        "hidden_layer_sizes": st.sampled_from([(1,), (3,), (2, 2), 3, (), (0,)]),
        "activation": st.sampled_from(["logistic", "relu", "tanh", "sine"]),
        "temperature": st.sampled_from([1.0, 0.05, 0.0]),
        "class_weight": CLASS_WEIGHTS,
    },
    DRBMClassifier: {
        "n_hidden": st.sampled_from([1, 2, 3, 5, 0]),
        "temperature": st.sampled_from([1.0, 0.05, 0.0]),
        "class_weight": CLASS_WEIGHTS,
    },
}
SMALL = {BayesianMLPClassifier: {"hidden_layer_sizes": (2,)}, DRBMClassifier: {"n_hidden": 2}}


def estimators(cls):
    more = st.fixed_dictionaries({}, optional={**COMMON, **OWN[cls]})
    always = st.fixed_dictionaries(LENGTHS)  # never the long automatic runs
    small = SMALL.get(cls, {})
    return st.tuples(always, more).map(
        lambda two: cls(**{**small, **two[0], **two[1], "random_state": 0})
    )


ESTIMATORS = st.sampled_from(list(OWN)).flatmap(estimators)

# -- calls ------------------------------------------------------------------------------------

CALLS = st.one_of(
    st.tuples(st.just("fit"), DATA),
    st.tuples(st.just("partial_fit"), DATA),
    st.tuples(st.just("again"), st.none()),
    st.tuples(st.just("set_params"), st.fixed_dictionaries({}, optional=COMMON)),
    st.tuples(st.sampled_from(["pickle", "clone", "copy", "summary"]), st.none()),
    st.tuples(st.just("predict"), DATA),
)
CASES = st.fixed_dictionaries(
    {
        "model": ESTIMATORS,
        "calls": st.lists(CALLS, max_size=3),
        "first": st.tuples(st.sampled_from(["fit", "fit", "fit", "partial_fit"]), DATA),
    }
)


_NAMES = {name for cls in OWN for name in cls().get_params()}
_NAMES |= {name for cls in SAMPLERS_BY_NAME.values() for name in cls().get_params()}
_NAMES |= {*VariationalEM().get_params(), "X", "y", "sample_weight", "classes", "fitted", "data"}
_NAMES |= {"feature names", "trials"}
_SUBJECTS = re.compile(rf"\b({'|'.join(sorted(_NAMES))})\b")


# -- default fits -----------------------------------------------------------------------------

SMALL[BayesianMLPRegressor] = SMALL[BayesianMLPClassifier]
N_ROWS = [12, 50, 50, 400, 400, 5_000, 100_000]
_ROWS_OF_NETWORKS = 400
_COUNTS = (
    BayesianPoissonRegressor,
    BayesianNegativeBinomialRegressor,
    BayesianBinomialRegressor,
)
EVENTS = {
    "usual": lambda n, level: np.ones(n, dtype=bool),
    "16": lambda n, level: np.arange(n) % -(-n // 16) == 0,
    "one in fifty": lambda n, level: np.arange(n) % 50 == 0,
    "one": lambda n, level: np.arange(n) == n // 2,
    "none in a level": lambda n, level: level > 0,
    "all in a level": lambda n, level: level == 0,
    "first rows": lambda n, level: np.arange(n) < n // 10,
}
"""Rows that differ from most others: of the other classes, counts above 0, numbers of their own."""
LEVELS = {
    "none": None,
    "four": lambda n: np.arange(n) % 4,
    "one row each": lambda n: np.where(np.arange(n) < 3, 1 + np.arange(n), 0),
    "unequal": lambda n: np.minimum(np.sqrt(np.arange(n)).astype(int), 30),
    "of all rows but one": lambda n: (np.arange(n) == 0) * 1,
}
COPIES = {  # weights of rows
    "none": lambda n: None,
    "a million": lambda n: np.full(n, 1e6),
    "unequal": lambda n: 10.0 ** (np.arange(n) % 7 - 1),
    "whole": lambda n: np.arange(n) % 4 * 1.0,
}
UNITS = [1.0, 1e8, 1e-8, 1e4, 1e-4]
DEFAULT_FITS = st.fixed_dictionaries(
    {
        "cls": st.sampled_from([*OWN, BayesianMLPRegressor]),
        "n": st.sampled_from(N_ROWS),
        "events": st.sampled_from(sorted(EVENTS)),
        "levels": one_of(LEVELS),
        "copies": one_of(COPIES),
        "unit of X": st.sampled_from([1.0, *UNITS]),
        "unit of y": st.sampled_from([1.0, *UNITS]),
        "far": st.sampled_from([0.0, 0.0, 100.0, -1e4]),
        "classes": st.sampled_from([2, 3]),
        "call": st.sampled_from(["fit", "fit", "partial_fit"]),
        "seed": st.integers(0, 9),
    }
)


def awkward(case):
    """Rows of a default fit, y and weights; a data frame if there are levels."""
    cls, rng = case["cls"], np.random.default_rng(case["seed"])
    n = min(case["n"], _ROWS_OF_NETWORKS) if cls in SMALL else case["n"]
    X = rng.standard_normal((n, 2))
    eta = X @ [1.0, -0.5]
    X = (X + case["far"]) * [1.0, case["unit of X"]]
    levels = LEVELS[case["levels"]]
    level = (np.arange(n) % 4) if levels is None else levels(n)
    event = EVENTS[case["events"]](n, level)
    if is_classifier(cls()):
        ends = [0.0, 1.0][: case["classes"] - 1]
        y = np.where(event, np.digitize(eta + rng.logistic(size=n), ends), 0)
    elif cls in _COUNTS:
        most = 100 if cls is BayesianBinomialRegressor else 1e9
        mean = np.exp(0.5 * eta) * (case["unit of y"] if case["unit of y"] > 1 else 1.0)
        y = np.where(event, np.minimum(rng.poisson(mean), most), 0)
    elif cls is BayesianGammaRegressor:
        y = np.where(event, np.exp(eta) * rng.gamma(2, 0.5, n), 1.0) * case["unit of y"]
    else:
        y = np.where(event, eta + rng.standard_normal(n), 1.0) * case["unit of y"]
    if levels is not None:
        X = pd.DataFrame(X, columns=["a", "b"])
        X["level"] = pd.Categorical(np.char.add("l", level.astype(str)))
    return X, y, COPIES[case["copies"]](n)


def run_default(case):
    """Fit an estimator at its defaults, ask it everything, and return how it ended."""
    X, y, weight = awkward(case)
    model = case["cls"](**SMALL.get(case["cls"], {}), random_state=0)
    more = {"sample_weight": weight} | _trials_of(model)
    if case["call"] == "partial_fit":
        if case["cls"] in SMALL:
            more = {"n_total": len(y)}
        if is_classifier(model):
            more["classes"] = np.unique(y) if len(np.unique(y)) > 1 else [0, 1]
    try:
        with heard():
            getattr(model, case["call"])(X, y, **more)
    except _ERRORS as error:
        _check_error(error)
        return f"{type(error).__name__}: {error}"[:60]
    with heard():
        _check_model(model, X, case["call"])
        if case["call"] == "fit" or case["cls"] not in SMALL:  # a stream of a network is in burn-in
            _summary(model, None)
        if isinstance(X, pd.DataFrame):
            model.predict(X[:3].assign(level="new"), **_trials_of(model))
    return "fitted"


class BrokenPromiseError(AssertionError):
    """What must hold does not."""


def run(case):
    """Make the calls of a case, check what must hold after each, and return how they ended."""
    model, last, ends = clone(case["model"]), None, []
    for name, argument in [case["first"], *case["calls"]]:
        if name in CHANGES_OF_THE_OBJECT:
            model = CHANGES_OF_THE_OBJECT[name](model, argument)
        elif name in QUESTIONS:
            ends.append(_ask(model, name, argument))
        else:
            name, argument = last if name == "again" and last else (name, argument)
            if argument is not None:
                last = name, argument
                ends.append(_fit(model, name, argument))
    return ends


CHANGES_OF_THE_OBJECT = {
    "set_params": lambda model, given: model.set_params(**given),
    "clone": lambda model, _: clone(model),
    "copy": lambda model, _: copy.deepcopy(model),
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
}


def _summary(model, _):
    table = model.summary(full=True)
    numbers = pd.DataFrame(table).select_dtypes("number")
    of_chains, ratio = ("r_hat", "ess"), getattr(model.model_, "ratio", "") or "odds"
    unbounded = [c for c in numbers if c.startswith((*of_chains, ratio))]  # exponentials are, too
    known = numbers.drop(columns=unbounded)
    sampled = hasattr(model, "draws_") and getattr(model, "noise_variance_", 0.0) < np.inf
    if sampled and not np.isfinite(known.to_numpy(dtype=float)).all():
        raise BrokenPromiseError("summary is not finite")


def _predictions(model, data):
    X = made(data, is_classifier(model))[0]
    if not is_classifier(model):
        return model.predict(X)
    proba = model.predict_proba(X)
    if not np.allclose(proba.sum(axis=1), 1.0):
        raise BrokenPromiseError("probabilities do not sum to 1")
    return proba


QUESTIONS = {"summary": _summary, "predict": _predictions}


def _ask(model, name, argument):
    """A question changes nothing, whether it is answered or refused."""
    before = leaves(model)
    try:
        with heard():
            QUESTIONS[name](model, argument)
        end = "answered"
    except _ERRORS as error:
        _check_error(error)
        end = f"{type(error).__name__}: {error}"[:40]
    changed = [path for path in differences(before, leaves(model)) if not _is_cache(path)]
    if changed:
        raise BrokenPromiseError(f"{name} changed {changed[0]}")
    return end


def _is_cache(path):
    return "random_state" in path


def _fit(model, name, data):
    X, y, weight = made(data, is_classifier(model))
    more = {"sample_weight": weight}
    if name == "partial_fit":
        if hasattr(model, "hidden_layer_sizes") or hasattr(model, "n_hidden"):
            more = {"n_total": [None, 1000][data["seed"] % 2]}
        if is_classifier(model) and not hasattr(model, "draws_"):
            more["classes"] = _classes(y)
    more |= _trials_of(model)
    before = leaves(model)
    if not hasattr(model, name):  # hidden where parameters leave no stream
        return f"no {name}"
    try:
        with heard():
            getattr(model, name)(X, y, **more)
    except _ERRORS as error:
        _check_error(error)
        changed = differences(before, leaves(model))
        changed = [path for path in changed if "random_state" not in path]
        if changed:
            raise BrokenPromiseError(f"a refused {name} changed {changed[0]}") from error
        return f"{type(error).__name__}: {error}"[:40]
    with heard():
        _check_model(model, X, name)
    return "fitted"


def _trials_of(model):
    """Enough for most counts that are made."""
    return {"trials": 100} if isinstance(model, BayesianBinomialRegressor) else {}


def _classes(y):
    try:
        return np.unique(y)
    except TypeError:
        return list(dict.fromkeys(np.ravel(y).tolist()))


@contextmanager
def heard():
    """Turn a warning that is not one of the package into an error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for one in caught:
        if not issubclass(one.category, _WARNINGS):
            where = f"{Path(one.filename).name}:{one.lineno}"
            raise BrokenPromiseError(f"{one.category.__name__}: {one.message} @{where}")


def _check_error(error):
    """An error is one of this package or of scikit-learn's validation, and says of what."""
    if not _SUBJECTS.search(str(error)):
        raise BrokenPromiseError(f"an error about nothing: {error}") from error
    last = traceback.extract_tb(error.__traceback__)[-1]
    if isinstance(error, np.linalg.LinAlgError) or not (
        {"skbayes_sg", "sklearn"} & {*Path(last.filename).parts}
    ):
        where = f"{Path(last.filename).name}:{last.lineno}"
        raise BrokenPromiseError(f"{type(error).__name__}: {error} @{where}") from error


def _check_model(model, X, name):
    some = X.iloc[:7] if hasattr(X, "iloc") else X[:7]
    answers = {"draws_": model.draws_, "prior_precision_": model.prior_precision_}
    answers["predict_interval"] = model.predict_interval(some, **_trials_of(model))
    if is_classifier(model):
        proba = model.predict_proba(some)
        answers |= {"predict_proba": proba, "uncertainty": model.predict_uncertainty(some).total}
        if np.isfinite(proba).all() and not np.allclose(proba.sum(axis=1), 1.0):
            raise BrokenPromiseError("probabilities do not sum to 1")
    else:
        mean, std = model.predict(some, return_std=True, **_trials_of(model))
        answers["mean"] = mean
        if getattr(model, "noise_variance_", 0.0) < np.inf:
            if not isinstance(model, BayesianRobustRegressor):  # whose noise may have no variance
                answers["std"] = std
        elif name == "fit":  # a stream of less than three rows has no mean of the noise variance
            raise BrokenPromiseError("noise_variance_ is not finite")
    for name, values in answers.items():
        if not np.isfinite(values).all():
            raise BrokenPromiseError(f"{name} is not finite")
    if (np.diff(answers["predict_interval"], axis=-1) < 0).any():
        raise BrokenPromiseError("an interval ends before it begins")


# -- many cases -------------------------------------------------------------------------------


def _too_long(*_):
    raise BrokenPromiseError("no end")


class Found(NamedTuple):
    """What random cases led to, by kind."""

    failures: dict  # kind: times
    ended: Counter  # of (estimator, end of a call)
    seconds: dict  # estimator: processor time of each case


def explore(n_cases, first=0):
    """Run so many random calls, and print the first of each kind of failure."""

    def one(case):
        name = type(case["model"]).__name__
        return [(name, end) for end in run(case)]

    return _explored(CASES, one, n_cases, first, _SECONDS)


def explore_defaults(n_cases, first=0):
    """Run so many default fits, and print the first of each kind of failure."""

    def one(case):
        return [(case["cls"].__name__, run_default(case))]

    return _explored(DEFAULT_FITS, one, n_cases, first, _SECONDS_OF_DEFAULT)


def _explored(cases, ends_of, n_cases, first, seconds):
    found = Found({}, Counter(), defaultdict(list))
    signal.signal(signal.SIGVTALRM, _too_long)

    def one(case):
        name, start = case.get("cls", type(case.get("model"))).__name__, time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        try:
            found.ended.update(ends_of(case))
        except Exception as error:
            last = traceback.extract_tb((error.__cause__ or error).__traceback__)[-1]
            kind = name, str(error)[:60], last.filename, last.lineno
            if kind not in found.failures:
                print(f"\n{type(error).__name__}: {str(error)[:300]}\n    {case}", flush=True)
            found.failures[kind] = found.failures.get(kind, 0) + 1
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            found.seconds[name].append(time.process_time() - start)

    for number in range(first, first + -(-n_cases // _OF_A_SEED)):
        some_cases = settings(
            max_examples=_OF_A_SEED,
            deadline=None,
            database=None,
            derandomize=False,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )(given(cases)(one))
        seed(number)(some_cases)()
    return found


def main(n_cases=3000, first=0):
    """Run so many cases; print each kind of failure once, and return how many kinds there are."""
    n_kinds = 0
    if "defaults" in sys.argv:
        runs = [explore_defaults(n_cases, first)]
    else:
        runs = [explore(n_cases, first), explore_defaults(n_cases // 10, first)]
    for found in runs:
        fitted = sum(times for (_, end), times in found.ended.items() if end == "fitted")
        kinds = len(found.failures)
        print(f"\n{found.ended.total()} calls, {fitted} fitted; {kinds} kinds of failure")
        n_kinds += kinds
        for kind, times in sorted(found.failures.items(), key=lambda item: -item[1]):
            print(times, *kind)
        if "-v" in sys.argv:
            print(*found.ended.most_common(), sep="\n")
            for name, seconds in found.seconds.items():
                print(f"{name}: {np.mean(seconds):.2f} s, at most {max(seconds):.2f} s")
    return n_kinds


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, filter(str.isdigit, sys.argv)))))
