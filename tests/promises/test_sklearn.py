"""scikit-learn's own suite, and life in pipelines and searches."""

import html
import re
import warnings
from email.message import Message

import numpy as np
import pandas as pd
import pytest
import sklearn
from conftest import differences, leaves
from helpers import OfManyTrials
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

from skbayes_sg import (
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
)
from skbayes_sg.estimators import notebook
from skbayes_sg.samplers import SGFS, SGLD, UnderdampedLangevin

pytestmark = pytest.mark.usefixtures("_short_searches")
SHORT = {"n_chains": 2, "n_draws": 50, "burn_in": 50, "random_state": 0}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_html_shows_diagnostics_first():
    X = np.random.default_rng(0).standard_normal((200, 2))
    model = BayesianLogisticRegression(**SHORT)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, X[:, 0] > 0)
    alone, within = model._repr_html_(), pipeline._repr_html_()
    assert "random_state" in alone
    assert 'href="https://scikit-learn.org' not in alone
    assert "StandardScaler.html" in within
    figures = f"{model.diagnostics_['r_hat_max']:.4g}", model.sampler_reason_
    order = [alone.index(each) for each in ("Diagnostics<", *figures, "Parameters<")]
    assert order == sorted(order)
    assert (model._warnings[0] if model._warnings else ">none<") in html.unescape(alone)
    assert "coef_samples_" not in alone  # hundreds of numbers
    assert "Diagnostics<" not in type(model)()._repr_html_()
    if parse_version(sklearn.__version__) >= parse_version("1.9"):
        assert alone.index("coef_std_") > order[-1]


@pytest.mark.parametrize("site", ["https://example.org/", "https://example.org", None])
def test_html_links_to_the_page_of_the_class_if_there_is_a_site(site, monkeypatch):
    found = Message()
    found["Project-URL"] = "Repository, https://code.example.org"
    if site:
        found["Project-URL"] = f"Documentation, {site}"
    monkeypatch.setattr(notebook, "metadata", lambda name: found)
    shown = make_pipeline(StandardScaler(), BayesianLogisticRegression())._repr_html_()
    pages = re.findall(r'href="([^"]*BayesianLogisticRegression[^"]*)"', shown)
    page = "https://example.org/api/generated/skbayes_sg.BayesianLogisticRegression.html"
    assert {each.partition("#")[0] for each in pages} == ({page} if site else set())
    assert "code.example.org" not in shown


TINY = {"n_chains": 2, "n_draws": 8, "burn_in": 10, "thin": 1}
GIVEN = TINY | {"prior_precision": 1.0}  # how it is sampled is the same in all regressions
ALONE = TINY | {"n_chains": 1}  # each chain of a network looks for a mode


OF_FRACTIONS = (  # checks whose y is not whole, which no such count is
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_regressor_data_not_an_array",
    "check_regressors_no_decision_function",
    "check_regressors_train",
)


def refused(estimator):
    """Checks that an estimator does not pass, with the reason."""
    if isinstance(estimator, (BayesianNegativeBinomialRegressor, OfManyTrials)):
        return dict.fromkeys(OF_FRACTIONS, "y is not whole")
    return {}


def every_check_of(*estimators, only=None):
    """`parametrize_with_checks` with a list: pytest 9.1 warns of scikit-learn 1.7's generator."""
    mark = parametrize_with_checks(list(estimators), expected_failed_checks=refused).mark
    names, cases = mark.args
    if only is not None:  # those expected to fail are values with a mark
        checks = [(case, getattr(case, "values", case)[1]) for case in cases]
        cases = [case for case, check in checks if check.func.__name__ in only]
    return pytest.mark.parametrize(names, list(cases), **mark.kwargs)


OF_EACH_PATH = (  # of coefficients and of networks, of classes and of numbers
    BayesianLogisticRegression(**GIVEN),
    BayesianLinearRegression(**TINY),
    BayesianMLPClassifier((5,), **ALONE),
)
ON_THE_SAME_PATHS = (
    BayesianMLPRegressor((2,), **ALONE),
    BayesianLogisticRegression(**TINY),
    BayesianPoissonRegressor(**GIVEN),
    BayesianNegativeBinomialRegressor(**GIVEN),
    OfManyTrials(**GIVEN),
    OfManyTrials(**GIVEN, overdispersed=True),
    BayesianGammaRegressor(**GIVEN),
    BayesianOrdinalClassifier(**GIVEN),
    BayesianRobustRegressor(**GIVEN),
    BayesianRobustRegressor("hmc", **GIVEN),
    DRBMClassifier(2, **ALONE),
)
WITHOUT_A_FIT = (  # what a class says of itself, and what it refuses
    "check_all_zero_sample_weights_error",
    "check_classifiers_one_label",
    "check_classifiers_one_label_sample_weights",
    "check_classifiers_regression_target",
    "check_complex_data",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_empty_data_messages",
    "check_estimators_unfitted",
    "check_fit1d",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_regressor_multioutput",
    "check_requires_y_none",
    "check_set_params",
    "check_supervised_y_no_nan",
    "check_valid_tag_types",
)


@pytest.mark.filterwarnings("ignore")  # tiny and odd data: the warnings are expected
@every_check_of(*OF_EACH_PATH)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore")
@every_check_of(*ON_THE_SAME_PATHS, only=WITHOUT_A_FIT)
def test_estimator_checks_without_a_fit(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@every_check_of(
    *ON_THE_SAME_PATHS,
    BayesianLogisticRegression(**TINY, prior="horseshoe"),
    BayesianLinearRegression(**TINY, prior="student_t"),
    BayesianLinearRegression(**TINY, noise_variance=1.0, fit_intercept=False),
    BayesianMLPClassifier((5,), "relu", **ALONE),
    BayesianLogisticRegression("sgfs", **GIVEN | {"burn_in": 200}),  # for weights of 1e7 to 1
)
def test_estimator_checks_at_more_settings(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@every_check_of(
    BayesianLogisticRegression(),
    BayesianLinearRegression(),
    BayesianPoissonRegressor(),
    BayesianNegativeBinomialRegressor(),
    OfManyTrials(),
    BayesianGammaRegressor(),
    BayesianOrdinalClassifier(),
    BayesianRobustRegressor(),
    BayesianMLPClassifier(),
    BayesianMLPRegressor(),
    DRBMClassifier(),
)
def test_estimator_checks_at_defaults(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, 1500),
            "income": rng.lognormal(10, 1, 1500),
            "city": rng.choice(["Rome", "Oslo", "Lima"], 1500),
            "job": rng.choice([f"job {i}" for i in range(30)], 1500),
        }
    )
    logit = 0.1 * (frame.age - 40) + (frame.city == "Oslo") - 0.5
    return frame, np.where(rng.random(1500) < 1 / (1 + np.exp(-logit)), "buys", "leaves")


@pytest.fixture
def pipeline():
    columns = make_column_transformer(
        (StandardScaler(), ["age", "income"]), (OneHotEncoder(), ["city", "job"])
    )
    return make_pipeline(columns, BayesianLogisticRegression(SGFS(), **SHORT))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_grid_search_in_a_pipeline(table, pipeline):
    name = "bayesianlogisticregression"
    grid = [
        {f"{name}__sampler__alpha": [0.0, 2.0], f"{name}__prior_precision": [0.1, 10.0]},
        {
            f"{name}__sampler": [
                "sgld",
                SGLD(preconditioner="diag"),
                SGFS(alpha=3.0, structure="diag"),
            ]
        },
    ]
    pipeline[-1].set_params(thin=1, n_draws=8, burn_in=20)
    X, y = (part[:300] for part in table)
    search = GridSearchCV(pipeline, grid, cv=2, scoring="neg_log_loss", n_jobs=1).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(search.cv_results_["params"]) == 7
    assert search.best_estimator_.score(X, y) > 0.6


def test_refused_and_diverging_settings_score_nan_in_a_search(table, pipeline):
    """One is refused before any step, the other stopped on its way; the search goes on."""
    grid = {
        "bayesianlogisticregression__sampler": [
            SGLD(step_size=1e3),
            SGLD(step_size=lambda t: 1e3),
            SGFS(),
        ]
    }
    pipeline.set_params(bayesianlogisticregression__prior_precision=10.0)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        search = GridSearchCV(pipeline, grid, cv=2).fit(*table)
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [True, True, False]
    (failed,) = [str(w.message) for w in heard if w.category is FitFailedWarning]
    assert re.search(r"ValueError: SGLD.* is unstable on these data: the spectral radius", failed)
    assert re.search(r"FloatingPointError: SGLD.* diverged by step", failed)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_drop_in_for_logistic_regression(table, pipeline):
    """Full run: log loss of the posterior average is no worse than that of the point estimate."""
    X, y = table
    pipeline[-1].set_params(n_draws=100, burn_in=100, prior_precision=1.0)
    ours = cross_val_score(pipeline, X, y, cv=3, scoring="neg_log_loss").mean()
    theirs = cross_val_score(
        make_pipeline(pipeline[0], LogisticRegression()), X, y, cv=3, scoring="neg_log_loss"
    )
    assert ours > theirs.mean() - 0.005


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_inside_other_meta_estimators(table, pipeline):
    X, y = table
    calibrated = CalibratedClassifierCV(pipeline, cv=2).fit(X, y)
    proba = calibrated.predict_proba(X)
    plain = pipeline.fit(X, y).predict_proba(X)
    assert (
        np.corrcoef(proba[:, 1], plain[:, 1])[0, 1] > 0.99
    )  # a monotone map of two fits to halves
    assert abs(proba[:, 0].mean() - np.mean(y == calibrated.classes_[0])) < 0.03


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("of_pairs", [OneVsRestClassifier, OneVsOneClassifier])
@pytest.mark.parametrize("first", ["fit", "partial_fit"])
@pytest.mark.quick("partial_fit")
def test_chunks_reach_the_classifiers_of_pairs_of_classes(of_pairs, first):
    """Also chunks that lack classes, and after a fit."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    X = rng.standard_normal((300, 2)) + 4 * np.array([[0, 0], [0, 1], [1, 0]])[y]
    model = of_pairs(BayesianLogisticRegression(**SHORT))
    if first == "fit":
        model.fit(X[:150], y[:150])
    else:
        model.partial_fit(X[:150], y[:150], classes=[0, 1, 2])
    for chunk in np.array_split(150 + np.argsort(y[150:], kind="stable"), 3):
        model.partial_fit(X[chunk], y[chunk])
    assert model.score(X, y) > 0.9
    assert {one.n_samples_seen_ for one in model.estimators_} <= {200, 300}


def test_chunks_reach_an_estimator_that_selects_columns_or_has_one_output_of_several():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5))
    Y = (2 * X[:, :2] + rng.logistic(size=(300, 2)) > 0).astype(int)
    model = BayesianLogisticRegression(**SHORT)
    selected, several = SelectFromModel(model), MultiOutputClassifier(model)
    for rows in np.array_split(np.arange(300), 3):
        selected.partial_fit(X[rows], Y[rows, 0], classes=[0, 1])
        several.partial_fit(X[rows], Y[rows], classes=[[0, 1], [0, 1]])
    assert selected.get_support()[0]
    assert several.score(X, Y) > 0.5
    assert [one.n_samples_seen_ for one in several.estimators_] == [300, 300]


def test_clone_and_nested_parameters():
    model = BayesianLogisticRegression(SGFS(alpha=1.0))
    model.set_params(sampler__alpha=3.0, sampler__structure="diag")
    assert clone(model).sampler.get_params()["alpha"] == 3.0
    assert model.sampler is not clone(model).sampler


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_sampler_given_is_not_touched_where_it_leaves_a_choice(table, pipeline):
    sampler = UnderdampedLangevin()
    given, before = sampler.get_params(), leaves(sampler)
    pipeline.set_params(
        bayesianlogisticregression__sampler=sampler, bayesianlogisticregression__n_draws=5
    )
    pipeline.fit(*table)
    assert pipeline[-1].sampler is sampler
    assert sampler.get_params() == given
    assert not differences(before, leaves(sampler))
    assert given["alpha"] == given["batch_size"] == "auto"
    assert isinstance(pipeline[-1].sampler_.alpha, float)
    assert isinstance(pipeline[-1].sampler_.batch_size, int)
