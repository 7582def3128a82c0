"""Scores of classifiers: a formula, the order of the probabilities, and who asks for them."""

import warnings

import numpy as np
import pytest
import sklearn
from scipy import sparse
from scipy.special import expit, log_expit, logit, logsumexp
from short_fits import MODELS, RNG, SHORT, X
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.multioutput import ClassifierChain
from sklearn.utils.fixes import parse_version

from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.samplers import ConstantSGD

pytestmark = [
    pytest.mark.usefixtures("_short_runs_may_warn", "_short_searches"),
    pytest.mark.filterwarnings("ignore:y holds labels"),  # words, which the alphabet then orders
]
NOISE = RNG.standard_normal(200)
LABELS = {2: np.where(X[:, 0] + NOISE > 0, "yes", "no"), 3: np.digitize(X[:, 0] + NOISE, [-1, 1])}
CLASSIFIERS = [name for name, model in MODELS.items() if is_classifier(model)]


@pytest.fixture(scope="module", params=[2, 3], ids=["two", "three"])
def n_classes(request):
    return request.param


@pytest.fixture(scope="module", params=CLASSIFIERS)
def fitted(request, n_classes, _short_searches):
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        warnings.filterwarnings("ignore", "y holds labels")
        return clone(MODELS[request.param]).fit(X, LABELS[n_classes])


def test_scores_are_logits_or_logarithms_of_the_averaged_probabilities(fitted, n_classes):
    proba, scores = fitted.predict_proba(X), fitted.decision_function(X)
    np.testing.assert_allclose(scores, logit(proba[:, 1]) if n_classes == 2 else np.log(proba))


def test_they_predict_the_same_classes(fitted, n_classes):
    scores = fitted.decision_function(X)
    best = (scores > 0).astype(int) if n_classes == 2 else scores.argmax(axis=1)
    np.testing.assert_array_equal(fitted.classes_[best], fitted.predict(X))


def test_they_have_the_order_of_the_probabilities(fitted, n_classes):
    proba, scores = fitted.predict_proba(X), fitted.decision_function(X)
    if n_classes == 2:
        proba, scores = proba[:, 1:], scores[:, None]
    for p, score, label in zip(proba.T, scores.T, fitted.classes_[-proba.shape[1] :], strict=True):
        assert (np.diff(score[np.argsort(p)]) >= 0).all()
        is_label = LABELS[n_classes] == label
        assert roc_auc_score(is_label, score) == roc_auc_score(is_label, p)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("direction", [-1, 1])
def test_they_are_finite_and_in_order_where_probabilities_round(direction, dtype):
    """Rows along a line, the last of them so far out that exp of their logits is no number."""
    model = clone(MODELS["logistic"]).fit(X, LABELS[2])
    line = np.zeros((400, 4), dtype)
    line[:, 0] = direction * np.geomspace(0.1, 1e6, 400)
    scores, p = model.decision_function(line), model.predict_proba(line)[:, 1]
    assert p[-1] == pytest.approx(float(direction > 0), abs=1e-6)
    assert np.isfinite(scores).all()
    assert (direction * np.diff(scores) > 0).all()
    z = line.astype(float) @ model.coef_samples_.reshape(-1, 4).T
    z += model.intercept_samples_.reshape(-1)
    expected = logsumexp(log_expit(z), axis=1) - logsumexp(log_expit(-z), axis=1)
    np.testing.assert_allclose(scores, expected, rtol=1e-3 if dtype == np.float32 else 1e-7)


def test_they_are_finite_far_out(fitted):
    far = 1e6 * X
    assert np.isfinite(fitted.decision_function(far)).all()
    assert np.isfinite(fitted.predict_log_proba(far)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("distance", [1e2, 1e6])
def test_no_probability_is_rounded_to_zero(fitted, dtype, distance):
    far = (distance * X).astype(dtype)
    proba, log_proba = fitted.predict_proba(far), fitted.predict_log_proba(far)
    assert proba.min() > 0
    np.testing.assert_allclose(proba, np.exp(log_proba), atol=1e-6)


def test_a_row_without_evidence_scores_as_it_is_predicted():
    """All draws say 1/2, and the sum of their weights may round above or below 1."""
    model = clone(MODELS["logistic"]).set_params(fit_intercept=False).fit(X, LABELS[2])
    zero = np.zeros((1, 4))
    score = model.decision_function(zero)[0]
    assert abs(score) < 1e-12
    assert model.predict(zero)[0] == model.classes_[int(score > 0)]


def test_draws_have_their_weights_and_rows_may_be_sparse():
    sampler = ConstantSGD(step_size="auto", batch_size=20)
    model = BayesianLogisticRegression(sampler, 1.0, **SHORT).fit(X, LABELS[2])
    model.draw_weights_ = np.arange(40.0) / np.arange(40.0).sum()
    model.set_params(n_predict_draws=None)
    far = 30 * X
    z = far @ model.coef_samples_.reshape(-1, 4).T + model.intercept_samples_.reshape(-1)
    weights = np.tile(model.draw_weights_ / 3, 3)
    up, down = (logsumexp(log_expit(side), axis=1, b=weights) for side in (z, -z))
    for rows in (far, sparse.csr_array(far)):
        np.testing.assert_allclose(model.decision_function(rows), up - down, rtol=1e-6)


# -- who asks for them ------------------------------------------------------------------------


@pytest.fixture
def model():
    return clone(MODELS["logistic"])


def test_in_a_chain_of_classifiers(model):
    targets = np.column_stack([X[:, 0] > 0, X[:, 1] + NOISE > 0]).astype(int)
    chain = ClassifierChain(model, chain_method="decision_function").fit(X, targets)
    scores = chain.decision_function(X)
    last = chain.estimators_[1].decision_function(np.column_stack([X, scores[:, 0]]))
    np.testing.assert_array_equal(scores[:, 1], last)


def test_in_bagging(model, n_classes):
    bag = BaggingClassifier(model, n_estimators=3, random_state=0).fit(X, LABELS[n_classes])
    each = [
        one.decision_function(X[:, columns])
        for one, columns in zip(bag.estimators_, bag.estimators_features_, strict=True)
    ]
    np.testing.assert_allclose(bag.decision_function(X), np.mean(each, axis=0))


def test_a_threshold_of_scores_is_one_of_probabilities(model):
    model.fit(X, LABELS[2])
    how = {"threshold": 0.7, "response_method": "decision_function", "pos_label": "yes"}
    by_score = FixedThresholdClassifier(FrozenEstimator(model), **how).fit(X, LABELS[2])
    expected = np.where(model.predict_proba(X)[:, 1] >= expit(0.7), "yes", "no")
    np.testing.assert_array_equal(by_score.predict(X), expected)


def test_a_tuned_threshold(model):
    how = {"response_method": "decision_function", "cv": 2, "random_state": 0}
    y = (LABELS[2] == "yes").astype(int)
    tuned = TunedThresholdClassifierCV(model, **how).fit(X, y)
    expected = tuned.estimator_.decision_function(X) >= tuned.best_threshold_
    np.testing.assert_array_equal(tuned.predict(X), expected)


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.8"), reason="its first version is 1.8"
)
def test_calibrated_by_a_temperature(model, n_classes):
    """One number divides the scores, so classes keep their order."""
    frozen = FrozenEstimator(model.fit(X, LABELS[n_classes]))
    calibrated = CalibratedClassifierCV(frozen, method="temperature").fit(X, LABELS[n_classes])
    np.testing.assert_array_equal(calibrated.predict(X), model.predict(X))
    beta = calibrated.calibrated_classifiers_[0].calibrators[0].beta_
    assert 0.5 < beta < 2
