"""Names of before version 0.4: the same numbers, and a FutureWarning at the user's line."""

import copy
import inspect
import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from conftest import differences, leaves
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV

from skbayes_sg import (
    BayesianLinearRegressionSGFS,
    BayesianLogisticRegressionSGFS,
    BayesianMLPClassifier,
    DRBMClassifier,
)
from skbayes_sg.estimators.renamed import DEPRECATED
from skbayes_sg.samplers import SGLD, Sampler

X = np.random.default_rng(0).standard_normal((120, 3))
NUMBERS = X[:, 0] + np.random.default_rng(1).standard_normal(120)
SHORT = {"n_chains": 2, "n_draws": 4, "burn_in": 4, "thin": 1, "random_state": 0}
REGRESSIONS = [
    BayesianLogisticRegressionSGFS(prior_precision=1.0, **SHORT),
    BayesianLinearRegressionSGFS(prior_precision=1.0, **SHORT),
]
NETWORKS = [
    cls(2, sampler=SGLD(1e-4, batch_size=20), prior_precision=1.0, **SHORT)
    for cls in (BayesianMLPClassifier, DRBMClassifier)
]
EACH = pytest.mark.parametrize("model", REGRESSIONS, ids=lambda model: type(model).__name__)
EVERY = pytest.mark.parametrize(
    "model", REGRESSIONS + NETWORKS, ids=lambda model: type(model).__name__
)
FILES = sorted((Path(__file__).parent / "versions" / "0.3.0").glob("*.pickle"))
OF_PARAMETER = re.escape(
    "forgetting was renamed to forgetting_factor in version 0.4, and goes in 0.5: use "
    "forgetting_factor"
)
OF_ATTRIBUTE = r"n_rows_seen_ was renamed to n_samples_seen_ in version 0\.4.* use n_samples_seen_$"
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def y_of(model):
    return NUMBERS > 0 if is_classifier(model) else NUMBERS


def streamed(model):
    """After three chunks of 40 rows."""
    model, y = clone(model), y_of(model)
    for rows in np.split(np.arange(120), 3):
        model.partial_fit(X[rows], y[rows], **{"classes": [False, True]} if y.dtype == bool else {})
    return model


# -- the parameter ----------------------------------------------------------------------------


@EACH
def test_the_old_parameter_gives_the_same_numbers_and_a_warning_in_each_call(model):
    new = streamed(clone(model).set_params(forgetting_factor=0.7))
    with pytest.warns(FutureWarning, match=OF_PARAMETER) as caught:
        old = streamed(clone(model).set_params(forgetting=0.7))
    assert [each.filename for each in caught] == [__file__] * 3
    np.testing.assert_array_equal(old.posterior_.mean, new.posterior_.mean)
    np.testing.assert_array_equal(old.posterior_.precision, new.posterior_.precision)
    assert np.abs(old.coef_ - streamed(model).coef_).max() > 0.01


@EACH
def test_fit_warns_too_although_it_forgets_nothing(model):
    plain = clone(model).fit(X, y_of(model))
    with pytest.warns(FutureWarning, match=OF_PARAMETER) as caught:
        old = clone(model).set_params(forgetting=0.7).fit(X, y_of(model))
    assert [each.filename for each in caught if each.category is FutureWarning] == [__file__]
    np.testing.assert_array_equal(old.draws_, plain.draws_)


@EACH
def test_both_names_are_refused_and_nothing_changes(model):
    one = streamed(model).set_params(forgetting=0.7, forgetting_factor=0.9)
    before = leaves(one)
    for call in (one.fit, one.partial_fit):
        with pytest.raises(ValueError, match="forgetting_factor and forgetting are two names"):
            call(X, y_of(model))
    assert not differences(before, leaves(one))


@EACH
@pytest.mark.filterwarnings("ignore:forgetting was renamed:FutureWarning")
def test_an_impossible_value_is_refused_by_the_name_that_was_given(model):
    with pytest.raises(ValueError, match=r"^forgetting must lie in \(0, 1\]"):
        streamed(clone(model).set_params(forgetting=2.0))
    with pytest.raises(TypeError, match=r"^forgetting must be a number"):
        streamed(clone(model).set_params(forgetting="slowly"))


@EACH
def test_clone_and_parameters_keep_either_name_without_a_word(model):
    assert model.get_params()["forgetting"] == DEPRECATED
    for given in ({"forgetting": 0.7}, {"forgetting_factor": 0.7}):
        one = type(model)(**given)
        twins = clone(one), clone(model).set_params(**one.get_params()), copy.deepcopy(one)
        for twin in (*twins, pickle.loads(pickle.dumps(one))):
            assert twin.get_params() == one.get_params()
            assert given.items() <= twin.get_params().items()
            assert repr(twin) == f"{type(model).__name__}({next(iter(given))}=0.7)"


def test_a_search_takes_either_name():
    found = {}
    for name in ("forgetting", "forgetting_factor"):
        search = GridSearchCV(clone(REGRESSIONS[1]), {name: [0.5, 0.9]}, cv=2, error_score="raise")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found[name] = search.fit(X, NUMBERS).cv_results_["mean_test_score"]
        said = [each for each in caught if each.category is FutureWarning]
        assert {each.filename for each in said} <= {__file__}
        assert len(said) == (5 if name == "forgetting" else 0)  # two values, two splits, and again
    np.testing.assert_array_equal(found["forgetting"], found["forgetting_factor"])


# -- the attribute ----------------------------------------------------------------------------


@EVERY
def test_the_old_attribute_is_the_new_one_and_warns(model):
    for one, rows in ((clone(model).fit(X, y_of(model)), 120), (streamed(model), 120)):
        assert one.n_samples_seen_ == rows
        with pytest.warns(FutureWarning, match=OF_ATTRIBUTE) as caught:
            assert one.n_rows_seen_ == rows
        assert [each.filename for each in caught] == [__file__]
        assert "n_rows_seen_" not in vars(one)


@EVERY
def test_before_a_fit_there_is_neither_name_and_no_warning(model):
    assert not hasattr(model, "n_samples_seen_")
    assert not hasattr(model, "n_rows_seen_")


@EVERY
def test_the_reference_says_when_the_old_names_go(model):
    said = r"\.\. deprecated:: 0\.4\n\s+Renamed to `{}`.* goes in 0\.5\."
    assert re.search(said.format("n_samples_seen_"), inspect.getdoc(type(model).n_rows_seen_))
    page = inspect.getdoc(type(model))
    assert "n_samples_seen_" in page
    described = re.search(r"\nforgetting : .*\n\s+" + said.format("forgetting_factor"), page)
    assert (described is None) == (model in NETWORKS)


# -- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_of_an_older_version_has_the_new_names(path):
    with pytest.warns(UserWarning, match=r"written by skbayes_sg 0\.3\.0 in format 3"):
        model = pickle.loads(path.read_bytes())
    assert model.n_samples_seen_ == 60
    assert "n_rows_seen_" not in vars(model)
    with pytest.warns(FutureWarning, match=OF_ATTRIBUTE):
        assert model.n_rows_seen_ == 60
    assert repr(clone(model)) == repr(model)


@EACH
def test_a_stream_of_an_older_file_goes_on_with_its_factor_and_without_a_warning(model):
    new = streamed(clone(model).set_params(forgetting_factor=0.7))
    state = new.__getstate__()
    state["forgetting"] = state.pop("forgetting_factor")
    state["n_rows_seen_"] = state.pop("n_samples_seen_")
    before, old = dict(state), type(model).__new__(type(model))
    old.__setstate__(state)
    assert state == before
    assert old.get_params() == new.get_params()
    for each in (old, new):
        each.partial_fit(X, y_of(model))
    assert old.n_samples_seen_ == 240
    np.testing.assert_array_equal(old.posterior_.mean, new.posterior_.mean)


@EACH
@pytest.mark.filterwarnings("ignore:forgetting was renamed:FutureWarning")
def test_a_file_of_today_keeps_the_name_that_was_given(model):
    one = streamed(clone(model).set_params(forgetting=0.7))
    assert pickle.loads(pickle.dumps(one)).get_params() == one.get_params()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_former_word_for_a_learned_precision_works_and_warns():
    X, y = np.sin(np.arange(60.0) ** 2).reshape(20, 3), np.cos(np.arange(20.0) ** 3)
    short = {"n_chains": 2, "n_draws": 8, "random_state": 0}
    with pytest.warns(FutureWarning, match='"em" was renamed to prior_precision="learned"'):
        old = BayesianLinearRegressionSGFS(prior_precision="em", **short).fit(X, y)
    new = BayesianLinearRegressionSGFS(**short).fit(X, y)
    np.testing.assert_array_equal(old.draws_, new.draws_)


class Former(Sampler):
    """A sampler of a user, with the former name of a method."""

    batch_size, replace = 20, False

    def step(self, state, target):
        """Stay."""

    def law(self, state, target):
        return "theirs"


def test_the_former_name_of_a_method_of_samplers_works_and_warns(gaussian):
    said = "law of a sampler was renamed to stationary_distribution in version 0.4, and goes in 0.5"
    sampler, theta = SGLD(1e-5, batch_size=20), np.zeros((1, 4))
    state = sampler.init(gaussian.posterior, theta, np.random.default_rng(0))
    with pytest.warns(FutureWarning, match=said):
        old = sampler.law(state, gaussian.posterior)
    new = sampler.stationary_distribution(state, gaussian.posterior)
    assert differences(leaves(old), leaves(new)) == []
    with pytest.warns(FutureWarning, match=said):
        assert Former().stationary_distribution(state, gaussian.posterior) == "theirs"
