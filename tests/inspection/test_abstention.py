import matplotlib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skbayes_sg import AbstentionDisplay

matplotlib.use("Agg")
pytestmark = pytest.mark.usefixtures("_closed_figures")
RNG = np.random.default_rng(0)
P = RNG.dirichlet([1.0, 1.0, 1.0], 60)
Y = RNG.integers(0, 3, 60)
WRONG = P.argmax(axis=1) != Y


def test_the_curve_is_the_error_rate_of_the_most_certain_rows():
    display = AbstentionDisplay.from_predictions(Y, P)
    order = np.argsort(-P.max(axis=1))
    risk = [np.mean(P[order[:n]].argmax(axis=1) != Y[order[:n]]) for n in range(1, 61)]
    np.testing.assert_allclose(display.line_.get_ydata(), risk)
    np.testing.assert_allclose(display.line_.get_xdata(), np.arange(1, 61) / 60)
    assert display.area == pytest.approx(np.mean(risk))
    assert display.ax_.get_legend().get_texts()[0].get_text() == f"area {display.area:.3g}"


def test_equal_uncertainties_share_their_errors_whatever_their_order():
    tied = np.round(P.max(axis=1), 1)
    areas = {
        round(AbstentionDisplay(WRONG[i], -tied[i]).area, 12)
        for i in (np.arange(60), np.arange(60)[::-1], RNG.permutation(60))
    }
    assert len(areas) == 1
    np.testing.assert_allclose(AbstentionDisplay(WRONG, np.zeros(60)).risk, np.mean(WRONG))


def test_the_best_order_has_the_smallest_area():
    areas = [AbstentionDisplay(WRONG, u).area for u in (WRONG, P[:, 0], ~WRONG)]
    assert areas == sorted(areas)


def test_any_classifier_is_drawn_by_its_probabilities():
    X = RNG.standard_normal((60, 2))
    other = LogisticRegression().fit(X, Y)
    display = AbstentionDisplay.from_estimator(other, X, Y)
    np.testing.assert_allclose(display.uncertainty, 1 - other.predict_proba(X).max(axis=1))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        AbstentionDisplay.from_predictions(Y, P[:59])


def test_a_second_curve_stretches_the_axes():
    first = AbstentionDisplay.from_predictions([0, 1, 1, 0], [0.1, 0.9, 0.4, 0.2])
    AbstentionDisplay.from_predictions([0, 1, 1, 0], [0.9, 0.1, 0.4, 0.2], ax=first.ax_)
    low, high = first.ax_.get_ylim()
    assert low == 0
    assert high > 1


def test_an_integer_weight_is_a_repetition():
    """Of the area and of the curve, whose points of weighted rows lie among those of repeated ones;
    also where rows are tied, and where one has the weight 0."""
    weight = np.random.default_rng(1).integers(0, 4, 60)
    again = np.repeat(np.arange(60), weight)
    tied = np.round(P[:, :-1], 1)
    for proba in (P, np.column_stack([tied, 1 - tied.sum(axis=1)])):
        one = AbstentionDisplay.from_predictions(Y, proba, sample_weight=weight)
        other = AbstentionDisplay.from_predictions(Y[again], proba[again])
        alone = AbstentionDisplay.from_predictions(Y, proba)
        assert one.area == pytest.approx(other.area, rel=1e-12)
        assert abs(alone.area - other.area) > 1e-3
        at = np.rint(one.coverage * weight.sum()).astype(int) - 1
        np.testing.assert_allclose(one.risk, other.risk[at])
    with pytest.raises(ValueError, match="at least one non-zero"):
        AbstentionDisplay.from_predictions(Y, P, sample_weight=np.zeros(60))
