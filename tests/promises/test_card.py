"""What the package says of itself in one paragraph, a sentence a test.

Where another file tests a claim at length, the test here is of what that file leaves out. "Must
pass scikit-learn's check_estimator suite" is `tests/promises/test_sklearn.py`,
`test_estimator_checks`; that the draws do not depend on the number of processes is
`tests/promises/test_promises.py`; that a learned precision is the one of largest evidence is
`tests/inference/test_empirical_bayes.py`; scripts as users write them are run by
`tests/repository/test_examples.py`.
"""

import threading

import numpy as np
import pytest
from joblib import parallel_config
from scipy.special import expit
from sklearn.base import is_classifier, is_regressor
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import skbayes_sg
from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    DRBMClassifier,
    VariationalEM,
)
from skbayes_sg.samplers import SAMPLERS, SGLD

SHORT = {"n_chains": 2, "n_draws": 8, "burn_in": 20, "thin": 2, "random_state": 0}
ESTIMATORS = {
    "logistic": BayesianLogisticRegression(**SHORT, prior_precision=1.0),
    "linear": BayesianLinearRegression(**SHORT, prior_precision=1.0),
    "network": BayesianMLPClassifier((3,), **SHORT),
    "machine": DRBMClassifier(3, **SHORT),
}
EACH = pytest.mark.parametrize("name", ESTIMATORS)
pytestmark = pytest.mark.usefixtures("_short_runs_may_warn", "_short_searches")

X, SPECIES = load_iris(return_X_y=True)
X = MinMaxScaler().fit_transform(X)
LENGTH = X[:, 2] + 0.1 * np.random.default_rng(0).standard_normal(150)


def estimator(name, **changes):
    """A new one, and its y."""
    template = ESTIMATORS[name]
    model = type(template)(**template.get_params(deep=False) | changes)
    return model, (SPECIES if is_classifier(model) else LENGTH)


@EACH
def test_estimators_sample_posteriors_from_minibatches(name):
    """scikit-learn-compatible estimators that sample Bayesian posteriors from minibatches."""
    model, y = estimator(name, sampler="constant_sgd", warm_start=True)
    model.set_params(sampler__batch_size=30).fit(X, y)
    first = model.draws_
    model.fit(X, y)  # goes on, without a search for the mode and without burn-in
    assert model.draws_.shape[:2] == (2, 8)
    assert len(np.unique(np.concatenate([first, model.draws_]).reshape(32, -1), axis=0)) == 32
    assert model.n_passes_ == pytest.approx(2 * 8 * 2 * 30 / 150)  # chains, draws, thin, rows


@EACH
@pytest.mark.parametrize("sampler", sorted(SAMPLERS))
def test_fit_runs_a_stochastic_gradient_sampler(name, sampler, monkeypatch):
    """Fit runs a stochastic-gradient sampler: every one, in every estimator."""
    monkeypatch.setattr("skbayes_sg.inference.warm_up.choose_alpha", None)  # alpha = 0 will do
    model, y = estimator(name, sampler=sampler)
    if SAMPLERS[sampler].variance_reduction is not None and name in ("network", "machine"):
        with pytest.raises(ValueError, match=r'need one mode to anchor at.*; use sampler="hmc"'):
            model.fit(X, y)
        return
    model.fit(X, y)
    assert type(model.sampler_) is SAMPLERS[sampler]
    assert np.isfinite(model.draws_).all()
    assert np.ptp(model.draws_, axis=1).max() > 0


def test_the_samplers_of_the_papers_have_names():
    """Stochastic Gradient Fisher Scoring first of all, and every other sampler of the papers."""
    ahn, mandt = {"sgfs", "sgld", "sgd", "hmc"}, {"constant_sgd", "momentum_sgd", "iasg"}
    assert set(SAMPLERS) == ahn | mandt | {"sghmc", "underdamped_langevin"}


def softmax(z):
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def of_one_draw(name, b):
    """Class probabilities of the rows of X under one draw, written out."""
    if name == "logistic":
        return softmax(X @ b["coef"].T + b["intercept"])
    if name == "network":
        hidden = expit(X @ b["coef_0"].T + b["intercept_0"])
        return softmax(hidden @ b["coef_1"].T + b["intercept_1"])
    inputs = (X @ b["W"].T + b["c"])[:, :, None] + b["U"]
    return softmax(np.logaddexp(0, inputs).sum(axis=1) + b["d"])


@pytest.mark.parametrize("name", ["logistic", "network", "machine"])
def test_predict_proba_averages_over_posterior_draws(name):
    """predict_proba averages over posterior draws."""
    model, y = estimator(name)
    model.fit(X, y)
    blocks = model.model_.unpack(model.draws_.reshape(16, -1).astype(np.float64))
    each = [of_one_draw(name, {k: v[s] for k, v in blocks.items()}) for s in range(16)]
    np.testing.assert_allclose(model.predict_proba(X), np.mean(each, axis=0), atol=1e-6)
    assert np.std(each, axis=0).max() > 0.01


@EACH
def test_the_prior_precision_can_be_learned_by_constant_sgd(name):
    """The prior precision can be learned by constant-SGD variational EM.

    The path ends where its last values say, and it has moved.
    """
    model, y = estimator(name, sampler="constant_sgd", prior_precision=VariationalEM(n_updates=12))
    model.set_params(sampler__batch_size=30).fit(X, y)
    path = model.prior_precision_path_
    assert len(path) == 12
    assert (path > 0).all()
    assert np.ptp(np.log(path), axis=0).min() > 0.01
    in_units = model.prior_precision_ / model._fit.prior.unit[: len(model.prior_precision_)]
    learned = list(model.prior_precision_blocks_.values())
    assert all(np.isclose(in_units, value).any() for value in learned)


def test_chains_run_in_parallel_through_joblib():
    """Chains run in parallel through joblib: two that wait for each other both arrive."""
    meeting, met = threading.Barrier(2), []

    def wait(t):
        if t == 3 and threading.current_thread() is not threading.main_thread():
            meeting.wait(timeout=30)
            met.append(threading.get_ident())
        return 1e-6

    model, y = estimator("linear", sampler=SGLD(step_size=wait), n_jobs=2)
    with parallel_config(backend="threading"):
        model.set_params(n_draws=4, burn_in=0, thin=2).fit(X, y)
    assert len(set(met)) == 2


def test_the_estimators_are_those_of_the_card():
    """Estimators: three classifiers and a regression, out of the package itself."""
    classifiers = "BayesianLogisticRegression", "BayesianMLPClassifier", "DRBMClassifier"
    assert all(is_classifier(getattr(skbayes_sg, name)()) for name in classifiers)
    assert is_regressor(skbayes_sg.BayesianLinearRegression())


@EACH
def test_it_is_used_in_pipelines_and_grid_searches(name):
    """It is used in pipelines and GridSearchCV: here alpha of "sgfs" is searched for."""
    model, y = estimator(name, sampler="sgfs")
    form = model._asked("sgfs").sampler
    pipeline = make_pipeline(MinMaxScaler(), model)
    alpha = f"{pipeline.steps[-1][0]}__sampler__alpha"
    search = GridSearchCV(pipeline, {alpha: [5.0, 20.0]}, cv=2).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    ran = search.best_estimator_[-1].sampler_
    assert ran.alpha == search.best_params_[alpha]
    assert (ran.structure, ran.B) == (form.structure, form.B)
    assert model.sampler == "sgfs"


@EACH
def test_it_is_used_by_scripts(name):
    """By fit/predict scripts: predictions are in the units of y, better than a constant's."""
    model, y = estimator(name)
    found = model.set_params(burn_in="auto").fit(X[::2], y[::2]).predict(X[1::2])
    assert found.dtype == y.dtype
    assert np.mean((found - y[1::2]) ** 2) < 0.5 * np.var(y[1::2])
