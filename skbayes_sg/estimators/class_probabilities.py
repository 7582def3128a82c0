"""Predictions of classes: probabilities averaged over draws of the posterior.

Averages of rows in double precision are computed in single precision where that is precise enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import of_blocks, row_blocks
from skbayes_sg.diagnostics.draws import Draws
from skbayes_sg.linalg.scores import dense
from skbayes_sg.linalg.sizes import elements_at_a_time
from skbayes_sg.models import Model
from skbayes_sg.models.base import Classification

_BLOCK_ROWS = 256  # rows of a prediction block
_PARTS = 8  # of a block: a thread takes as long to start as a part
_SPARSE_ROWS = 1 << 14  # of a prediction block of sparse rows
_SIZE = 128.0  # of the terms of a logit: roundings of 2^-24 of each then move none by a millionth
_MANY = 1 << 22  # logits; fewer are the same to the last digits in any batch
_SURE = 1e-3  # of a class: below, one less a probability has lost digits in single precision
BLOCK_BYTES = 1 << 20  # of a prediction block, which decides how many draws: it stays in cache


def averaged(model: Any, X, draws: Draws, single: bool = True) -> NDArray:
    """Averaged probabilities of rows, (n_rows, n_classes), blocks of rows in threads.

    `single`: whether rows in double precision may be multiplied in single precision, which is twice
    as fast, where they are many and no probability changes by more than about a millionth.
    """
    theta, weights = draws.flat, draws.flat_weights
    if single:
        # parameters beside coefficients are exponents
        linear = model.fixed_inputs and model.shapes.keys() <= {"coef", "intercept"}
        single = (
            linear
            and are_many(model, X, theta)
            and X.dtype == np.float64
            and not model.keeps_sparse(X)
        )
    in_single = theta.astype(np.float32) if single else theta
    square = np.square(in_single).mean(axis=0) if single else None

    def of_part(some: Any) -> NDArray:
        if square is None:
            return _averaged(model, some, theta, weights)
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = dense(some).astype(np.float32)
            largest = np.full_like(rounded[:1], max(rounded.max(), -rounded.min()))
            # a row of nothing but the largest number is a bound that costs next to nothing
            sizes = (model.size_of_terms(square, rows).max() for rows in (largest, rounded))
            precise = any(size <= _SIZE for size in sizes)
        if not precise:
            return _averaged(model, some, theta, weights)
        found = _averaged(model, rounded, in_single, weights)
        if found.shape[1] == 1:  # the probability of the other class is what is left
            (sure,) = np.nonzero(found[:, 0] > 1 - _SURE)
            if len(sure):
                found[sure] = _averaged(model, some[sure], theta, weights)
        return found

    step = _draws_at_a_time(model, in_single.dtype if single else X.dtype)
    # as many numbers in a part under a few draws
    part = _SPARSE_ROWS if model.keeps_sparse(X) else _BLOCK_ROWS * max(1, step // len(theta))

    def of_block(rows: slice) -> NDArray:
        some = X[rows]
        return np.concatenate([of_part(some[at]) for at in row_blocks(some.shape[0], 1, part)])

    blocks = row_blocks(X.shape[0], 1, _PARTS * part)
    return all_classes(np.concatenate(list(of_blocks(of_block, blocks))))


def are_many(model: Any, X: Any, draws: NDArray) -> bool:
    """Whether rows have so many logits under the draws that they are not computed to all digits."""
    return X.shape[0] * len(draws) * model.widest > _MANY


def _averaged(model: Any, X, draws: NDArray, weights: NDArray) -> NDArray:
    """Averages of a block in the precision of X, (n_rows, outputs) in float64."""
    total: Any = 0.0
    weights = (weights / weights.max()).astype(X.dtype)  # equal ones are not rounded
    X, blocks = _prepared(model, X, draws, _draws_at_a_time(model, X.dtype))
    for some in blocks:
        total = total + model.mean_probabilities(draws[some], weights[some], X)
    mean = total / weights.sum(dtype=np.float64)
    return mean.astype(np.float64, copy=False)


def _draws_at_a_time(model: Any, dtype: np.dtype) -> int:
    return max(1, BLOCK_BYTES // (_BLOCK_ROWS * model.widest * dtype.itemsize))


def log_averaged(model: Any, X, draws: Draws) -> NDArray:
    """Logarithms of averaged probabilities, finite also where these round to 0."""
    proba, least = averaged(model, X, draws), np.sqrt(np.finfo(X.dtype).eps)
    log_proba = np.log(np.maximum(proba, least))
    # below `least`, 1 - p has lost half of its digits; at most log(least) keeps the order
    tail = rows_below(proba, least)
    exact = np.minimum(log_average(model, X[tail], draws), np.log(least))
    log_proba[tail] = np.where(proba[tail] < least, exact, log_proba[tail])
    return log_proba


def rows_below(proba: NDArray, least: float) -> NDArray:
    """Numbers of the rows of which a class has less.

    `any` of each of so many rows takes far longer.
    """
    return np.unique(np.nonzero(proba < least)[0])


def log_average(model: Classification, X, draws: Draws) -> NDArray:
    """Logarithms of averaged probabilities that no rounding touches, (n_rows, n_classes)."""
    theta, weights = draws.flat, draws.flat_weights
    found = np.empty((X.shape[0], model.n_classes))
    for rows in row_blocks(len(found), 8 * len(theta) * model.n_classes, 16 * BLOCK_BYTES):
        some = X[rows] if model.keeps_sparse(X) else dense(X[rows])
        parts = row_blocks(len(theta), theta.shape[1], elements_at_a_time())
        each = np.concatenate([model.log_predict(theta[part], some) for part in parts])
        largest = each.max(axis=0)
        each -= largest
        np.exp(each, out=each)
        found[rows] = (largest + np.log(np.tensordot(weights, each, axes=1))).T
    return found


def probabilities(model: Any, X, draws: NDArray) -> Iterator[tuple[slice, NDArray]]:
    """Row blocks and their probabilities under every draw, (S, classes, rows) in float64."""
    for rows in row_blocks(X.shape[0], 8 * len(draws) * model.n_classes, 16 * BLOCK_BYTES):
        yield rows, all_classes(under_each(model, X[rows], draws).astype(np.float64))


def under_each(model: Model, X: Any, draws: NDArray) -> NDArray:
    """Predictions of a block of rows under every draw, (S, outputs, n)."""
    X, blocks = _prepared(model, X, draws, len(draws))
    return np.concatenate([model.predict(draws[some], X) for some in blocks])


def _prepared(model: Model, X: Any, draws: NDArray, step: int) -> tuple[Any, list[slice]]:
    """A block of rows as it is multiplied, and the numbers of up to `step` draws at a time."""
    if model.keeps_sparse(X):
        return X, row_blocks(len(draws), 1, max(1, elements_at_a_time() // draws.shape[1]))
    return dense(X), row_blocks(len(draws), 1, step)


def all_classes(proba: NDArray) -> NDArray:
    """Both classes, on axis 1, from the second one; more classes are scaled to sum to 1."""
    if proba.shape[1] == 1:
        # none is above 1, and weights sum to 1 but for rounding: so much is what is cut off
        proba = np.minimum(proba, 1.0)
        return np.concatenate([1.0 - proba, proba], axis=1)
    return proba / proba.sum(axis=1, keepdims=True)


def batch_error(deviation: NDArray, weights: NDArray, n_batches: int) -> NDArray:
    """Standard error of a weighted mean over axis 0, by batch means; NaN for fewer than 8 draws."""
    if len(weights) < 2 * n_batches:
        n_batches = len(weights) // 2
    if n_batches < 4:
        return np.full(deviation.shape[1:], np.nan)
    batches = np.array_split(np.arange(len(weights)), n_batches)
    square = sum(np.tensordot(weights[batch], deviation[batch], axes=1) ** 2 for batch in batches)
    return np.sqrt(square * (n_batches / (n_batches - 1)))
