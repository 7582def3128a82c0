import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes

from skbayes_sg import BayesianLinearRegressionSGFS, CovarianceDisplay

matplotlib.use("Agg")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = {"n_chains": 4, "n_draws": 20, "burn_in": 8, "thin": 1, "random_state": 0}
X, Y = load_diabetes(return_X_y=True, as_frame=True)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    return BayesianLinearRegressionSGFS(**SHORT).fit(X, Y)


def test_entries_are_both_covariances_in_predicted_standard_deviations(model):
    display = CovarianceDisplay.from_estimator(model, X, Y)
    predicted = model.predicted_covariance(X, Y)
    drawn = np.cov(model.draws_.reshape(-1, 12).T, bias=True)
    np.testing.assert_allclose(display.drawn, drawn)
    sd = np.sqrt(predicted.diagonal())
    variances, covariances = (bars[0].get_xydata() for bars in display.entries_)
    np.testing.assert_allclose(variances, np.c_[np.ones(12), drawn.diagonal() / sd**2])
    upper = np.triu_indices(12, 1)
    expected = [(matrix / np.outer(sd, sd))[upper] for matrix in (predicted, drawn)]
    np.testing.assert_allclose(covariances, np.transpose(expected))


def test_ellipses_hold_ninety_percent(model):
    """A point of an ellipse has the Mahalanobis distance of that quantile: -2 log(0.1)."""
    display = CovarianceDisplay.from_estimator(model, X, Y, parameters=["bmi", 3])
    matrices = display.drawn, display.predicted
    for patch, matrix in zip(display.ellipses_, matrices, strict=True):
        away = patch.get_transform().transform_path(patch.get_path())
        away = display.axes_[0].transData.inverted().transform(away.vertices[:-1:3])
        away = away - display.mean[[2, 3]]
        inverse = np.linalg.inv(matrix[2:4, 2:4])
        distance = np.einsum("ni,ij,nj->n", away, inverse, away)
        np.testing.assert_allclose(distance, -2 * np.log(0.1), rtol=1e-3)
    assert (display.axes_[0].get_xlabel(), display.axes_[0].get_ylabel()) == ("bmi", "bp")


def test_intervals_hold_the_truth_as_often_as_they_say(seed):
    """Of 95 % of entries, within four Monte Carlo errors."""
    rng = np.random.default_rng(seed)
    truth = np.array([[1.0, 0.6], [0.6, 2.0]])
    draws = rng.multivariate_normal(np.zeros(2), truth, size=(400, 8, 200))
    covered = [CovarianceDisplay(truth, each, ["a", "b"]).covered for each in draws]
    assert abs(np.mean(covered) - 0.95) < 4 * np.std(covered) / 20


def test_weights_of_draws_count():
    rng = np.random.default_rng(0)
    draws, weights = rng.standard_normal((3, 10, 2)), rng.dirichlet(np.ones(10))
    display = CovarianceDisplay(np.eye(2), draws, ["a", "b"], weights=weights)
    expected = np.cov(draws.reshape(-1, 2).T, aweights=np.tile(weights, 3), bias=True)
    np.testing.assert_allclose(display.drawn, expected)


def test_the_most_correlated_pair_is_drawn_by_default():
    predicted = np.eye(3) + 0.5 * np.eye(3)[[2, 1, 0]]
    draws = np.random.default_rng(0).standard_normal((2, 30, 3))
    assert CovarianceDisplay(predicted, draws, list("abc")).pair == (0, 2)


def test_one_chain_has_no_intervals():
    draws = np.random.default_rng(0).standard_normal((1, 30, 2))
    display = CovarianceDisplay(np.eye(2), draws, ["a", "b"]).plot()
    assert np.isnan(display.covered)
    assert display.axes_[1].get_title() == "all entries"
    assert not any(bars.has_yerr for bars in display.entries_)


def test_what_is_not_there_is_refused(model):
    with pytest.raises(ValueError, match="there is no 'weight'"):
        CovarianceDisplay.from_estimator(model, X, Y, parameters=["bmi", "weight"])
    with pytest.raises(ValueError, match="parameters must be two different ones"):
        CovarianceDisplay.from_estimator(model, X, Y, parameters=["bmi"])
    one = BayesianLinearRegressionSGFS(fit_intercept=False, noise_variance=1.0, **SHORT)
    with pytest.raises(ValueError, match="the posterior has one parameter"):
        CovarianceDisplay.from_estimator(one.fit(X[["bmi"]], Y / 100), X[["bmi"]], Y / 100)
