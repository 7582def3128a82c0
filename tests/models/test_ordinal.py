"""Cumulative logits: probabilities, derivatives, and the limit of two classes."""

import numpy as np
import pytest
from scipy.special import expit

from skbayes_sg.models import Ordinal, Softmax

RNG = np.random.default_rng(0)
STEP = 1e-5
SIZES = pytest.mark.parametrize("n_classes", [2, 3, 5])
OF_ROWS = pytest.mark.parametrize("n_own", [1, 8], ids=["gaps of a chain", "gaps of a row"])


def some(n_classes, n_own=8):
    """Outputs of eight rows under two chains, whose gaps are the same for all rows or differ."""
    model = Ordinal(3, RNG.permutation(n_classes))
    outputs = np.repeat(RNG.normal(size=(2, model.widest, n_own)), 8 // n_own, axis=2)
    outputs[:, 0] = RNG.normal(size=(2, 8))
    return model, outputs, RNG.integers(n_classes, size=8)


@SIZES
@OF_ROWS
def test_probabilities_are_differences_of_cumulative_logits(n_classes, n_own):
    model, outputs, _ = some(n_classes, n_own)
    cuts = np.cumsum(np.exp(outputs[:, 1:]), axis=1)
    cuts = np.concatenate([0 * outputs[:, :1], cuts], axis=1)
    cuts -= cuts[:, [(n_classes - 2) // 2]]
    ends = np.zeros((2, 1, 8))
    up_to = np.concatenate([ends, expit(cuts - outputs[:, :1]), ends + 1], axis=1)
    for k, p in enumerate(np.diff(up_to, axis=1).swapaxes(0, 1)):
        np.testing.assert_allclose(np.exp(model.value(outputs, np.full(8, k))), p, atol=1e-15)


@SIZES
@OF_ROWS
def test_residuals_and_curvature_are_derivatives(n_classes, n_own):
    model, outputs, y = some(n_classes, n_own)
    steps = STEP * np.eye(model.widest)[:, None, :, None]
    slopes = [model.value(outputs + e, y) - model.value(outputs - e, y) for e in steps]
    np.testing.assert_allclose(
        np.stack(slopes, 1) / (2 * STEP), model.residual(outputs, y), atol=1e-7
    )
    bends = [model.residual(outputs - e, y) - model.residual(outputs + e, y) for e in steps]
    np.testing.assert_allclose(
        np.stack(bends, 1) / (2 * STEP), model.observed_at(outputs, y), atol=1e-7
    )


@SIZES
@OF_ROWS
def test_expected_curvature_is_the_mean_over_the_classes(n_classes, n_own):
    model, outputs, _ = some(n_classes, n_own)
    classes = [np.full(8, k) for k in range(n_classes)]
    each = [np.exp(model.value(outputs, y))[:, None, None] for y in classes]
    mean = sum(p * model.observed_at(outputs, y) for p, y in zip(each, classes, strict=True))
    np.testing.assert_allclose(model.expected(outputs), mean, atol=1e-12)


@SIZES
def test_classes_are_where_their_names_are(n_classes):
    model, X = some(n_classes)[0], RNG.normal(size=(9, 3))
    theta = RNG.normal(size=(4, model.dim))
    outputs, codes = model.outputs(theta, X), np.arange(n_classes)
    expected = [model.value(outputs, model.encode(np.full(9, k), X.dtype)) for k in codes]
    np.testing.assert_allclose(model.log_predict(theta, X), np.stack(expected, 1))
    p = model.predict(theta, X)
    assert p.shape == (4, 1 if n_classes == 2 else n_classes, 9)
    np.testing.assert_allclose(p, np.exp(np.stack(expected, 1))[:, -p.shape[1] :])


def test_two_classes_are_logistic_regression():
    X, theta = RNG.normal(size=(9, 3)), RNG.normal(size=(4, 4))
    codes = RNG.integers(2, size=9)
    ordinal, softmax = Ordinal(3, np.arange(2)), Softmax(3, 2)
    np.testing.assert_allclose(
        ordinal.log_likelihood(theta, X, codes),
        softmax.log_likelihood(theta, X, softmax.encode(codes, X.dtype)),
    )


def test_the_guess_has_the_shares_of_the_classes():
    y, weight = np.repeat([0, 1, 2], [10, 30, 60]), np.repeat([2.0, 1.0, 0.5], [10, 30, 60])
    model = Ordinal(3, np.arange(3))
    p = model.predict(model.guess(y, weight), np.zeros((1, 3)))[0, :, 0]
    np.testing.assert_allclose(p, (np.array([20, 30, 30]) + 0.5) / 81.5)


def test_classes_that_hardly_differ_have_finite_logarithms():
    """No probability is a difference of nearly equal numbers."""
    model = Ordinal(1, np.arange(3))
    outputs = np.array([[[-30.0, 0.0, 30.0, 300.0, 0.0], [-40.0] * 4 + [-900.0]]])
    for k in range(3):
        y = np.full(5, k)
        assert np.isfinite(model.value(outputs, y)).all()
        assert np.isfinite(model.residual(outputs, y)).all()
        assert np.isfinite(model.observed_at(outputs, y)).all()
    middle = model.value(outputs, np.full(5, 1))[0, [1, 4]]
    np.testing.assert_allclose(middle, np.array([-40, -900]) + np.log(0.25))
