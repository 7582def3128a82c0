"""Conventions that scikit-learn's own suite does not check: metadata, tags, names, progress."""

import inspect
import pickle
import re
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.fixes import parse_version

import skbayes_sg
from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    DRBMClassifier,
    priors,
    samplers,
)

ESTIMATORS = [
    name
    for name in skbayes_sg.__all__
    if hasattr(getattr(skbayes_sg, name), "fit") and not name.endswith("SGFS")
]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 3)) * [1.0, 5.0, 0.1]
Z = X[:, 0] + RNG.logistic(size=300)
Y = np.where(Z > 0, "yes", "no")
WEIGHT = RNG.integers(0, 4, 300).astype(float)
SHORT = {"n_chains": 2, "n_draws": 5, "burn_in": 10, "thin": 1, "random_state": 0}
CLASSIFIERS = [
    BayesianLogisticRegression(**SHORT),
    BayesianMLPClassifier((2,), **SHORT),
    DRBMClassifier(2, **SHORT),
]
REGRESSION, NETWORK = BayesianLinearRegression(**SHORT), BayesianMLPRegressor(2, **SHORT)
EVERY = pytest.mark.parametrize(
    "model", [*CLASSIFIERS, REGRESSION, NETWORK], ids=lambda model: type(model).__name__
)

pytestmark = [
    pytest.mark.usefixtures("_short_searches"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def targets(model):
    return Y if is_classifier(model) else Z


@pytest.fixture
def _routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# -- metadata ---------------------------------------------------------------------------------


@EVERY
@pytest.mark.usefixtures("_routing")
def test_a_pipeline_in_a_search_hands_on_the_weights_that_are_asked_for(model):
    asking = clone(model).set_fit_request(sample_weight=True)
    pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asking)
    scorer = get_scorer("accuracy" if is_classifier(model) else "r2")
    scorer.set_score_request(sample_weight=True)
    grid = {f"{type(model).__name__.lower()}__n_draws": [5]}
    search = GridSearchCV(pipeline, grid, cv=2, scoring=scorer)
    search.fit(X, targets(model), sample_weight=WEIGHT)
    scaled = StandardScaler().fit_transform(X)
    expected = clone(model).fit(scaled, targets(model), sample_weight=WEIGHT)
    np.testing.assert_array_equal(search.best_estimator_[-1].draws_, expected.draws_)


@EVERY
@pytest.mark.usefixtures("_routing")
def test_weights_that_nobody_decided_on_are_refused(model):
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        make_pipeline(scaler, clone(model)).fit(X, targets(model), sample_weight=WEIGHT)


def test_the_typed_program_misspells_a_parameter_of_every_estimator_sampler_and_prior():
    """There mypy says whether it knows the parameters: an ignored error that is none is one."""
    wrong = set()
    for line in Path(__file__).with_name("typed_program.py").read_text().splitlines():
        call = re.fullmatch(r" +(\w+)\((\w+)=.*\)  # type: ignore\[call-arg\]", line)
        if call is not None:
            name, parameter = call.groups()
            found = [
                getattr(part, name)
                for part in (skbayes_sg, samplers, priors)
                if name in part.__all__
            ]
            assert parameter not in inspect.signature(found[0]).parameters
            wrong.add(name)
    given = {"VariationalEM", "Horseshoe", "StudentT", "PolynomialDecay", "CosineCycle"}
    assert wrong == {*ESTIMATORS, *given, *(kind.__name__ for kind in samplers.SAMPLERS.values())}


@pytest.mark.usefixtures("_routing")
def test_a_pipeline_hands_on_return_std():
    pipeline = make_pipeline(
        StandardScaler(), clone(REGRESSION).set_predict_request(return_std=True)
    )
    mean, std = pipeline.fit(X, Z).predict(X, return_std=True)
    assert mean.shape == std.shape == (300,)


# -- tags -------------------------------------------------------------------------------------


@EVERY
def test_tags_say_what_is_accepted(model):
    tags = get_tags(model)
    assert tags.input_tags.sparse
    assert tags.target_tags.required
    assert tags.target_tags.multi_output == (model is NETWORK)
    assert not tags.input_tags.allow_nan
    assert not tags.input_tags.string
    assert not tags.non_deterministic
    dense, thin = (clone(model).fit(rows, targets(model)) for rows in (X, sparse.csc_array(X)))
    np.testing.assert_allclose(dense.draws_, thin.draws_, rtol=1e-6)
    with pytest.raises(ValueError, match="NaN"):
        clone(model).fit(np.where(X > 2, np.nan, X), targets(model))
    pair = np.column_stack([targets(model)] * 2)
    if model is NETWORK:
        assert clone(model).fit(X, pair).predict(X).shape == (300, 2)
        return
    with pytest.raises(ValueError, match=r"y should be a 1d array|multioutput|Multi"):
        clone(model).fit(X, pair)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_classifiers_take_many_classes_as_their_tags_say(model):
    assert get_tags(model).classifier_tags.multi_class
    assert not get_tags(model).classifier_tags.multi_label
    names = np.array(["a", "b", "c"])[np.digitize(Z, [-1, 1])]
    assert clone(model).fit(X, names).predict_proba(X[:4]).shape == (4, 3)


# -- names of columns -------------------------------------------------------------------------


@EVERY
def test_frames_of_the_steps_before_bring_their_names(model):
    pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["age", "income", "debt"])
    pipeline = make_pipeline(StandardScaler(), clone(model)).set_output(transform="pandas")
    pipeline.fit(frame, targets(model))
    assert pipeline[-1].feature_names_in_.tolist() == ["age", "income", "debt"]
    plain = make_pipeline(StandardScaler(), clone(model)).fit(X, targets(model))
    np.testing.assert_allclose(pipeline[-1].draws_, plain[-1].draws_, rtol=1e-9)
    with pytest.raises(ValueError, match="feature names"):
        pipeline[-1].predict(frame[["debt", "income", "age"]])


# -- progress ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")  # of processes and of scikit-learn's experimental feature
@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.9"), reason="callbacks came with 1.9"
)
def test_a_search_in_processes_shows_its_progress(capsys, monkeypatch):
    pytest.importorskip("rich")
    from sklearn.callback import ProgressBar

    monkeypatch.setenv("COLUMNS", "200")
    model = CLASSIFIERS[0]
    grid = {"prior_precision": [0.1, 10.0]}
    search = GridSearchCV(clone(model), grid, cv=2, n_jobs=2)
    search.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(X, Y)
    silent = GridSearchCV(clone(model), grid, cv=2).fit(X, Y)
    np.testing.assert_array_equal(search.best_estimator_.draws_, silent.best_estimator_.draws_)
    shown = capsys.readouterr().out
    fits = [line for line in shown.splitlines() if "BayesianLogisticRegression - fit" in line]
    draws = [line for line in shown.splitlines() if "BayesianLogisticRegression - draw" in line]
    assert len(fits) == len(draws) == 5  # two candidates, two splits, and the best one again
    assert all("100%" in line for line in fits + draws)


@pytest.mark.parametrize("name", ["BayesianLinearRegression", "BayesianLogisticRegression"])
def test_the_name_of_the_paper_is_a_class_of_its_own(name):
    """With its own repr and step name, and the parameters, draws and persistence of the other."""
    plain, other = getattr(skbayes_sg, name), getattr(skbayes_sg, f"{name}SGFS")
    assert other.__mro__[1] is plain
    assert name in other.__doc__
    assert inspect.signature(other) == inspect.signature(plain)
    model = other(n_draws=5).set_params(**SHORT)
    assert repr(model).startswith(f"{name}SGFS(")
    assert make_pipeline(model).steps[0][0] == f"{name}SGFS".lower()
    assert make_pipeline(plain()).steps[0][0] == name.lower()
    y = Y if is_classifier(model) else Z
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, same = pickle.loads(pickle.dumps(clone(model).fit(X, y))), plain(**SHORT).fit(X, y)
    assert type(found) is other
    np.testing.assert_array_equal(found.draws_, same.draws_)
    with pytest.raises(TypeError, match=rf"{name}SGFS.*C"):
        other(C=1.0)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_docstring_describes_every_parameter_and_attribute(name):
    cls = getattr(skbayes_sg, name)
    before, _, notes = inspect.cleandoc(cls.__doc__).partition("Notes\n-----\n")
    assert notes
    lines = before.splitlines()
    for parameter in inspect.signature(cls).parameters:
        (at,) = [n for n, line in enumerate(lines) if line.startswith(f"{parameter} : ")]
        assert lines[at + 1].startswith("    "), parameter
    attributes = lines[lines.index("Attributes") + 2 :]
    for line, following in pairwise([*attributes, ""]):
        if line and line[0].isalpha() and line.split(" :")[0].endswith("_"):
            assert " : " in line, line
            assert following.startswith("    "), line
