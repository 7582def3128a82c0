"""What a fit of coefficients warns of in its rows: columns, and classes that a plane separates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import Columns, of_columns
from skbayes_sg.diagnostics.draws import Draws
from skbayes_sg.diagnostics.limits import CERTAIN_ERRORS
from skbayes_sg.linalg.scores import dense
from skbayes_sg.linalg.sizes import has_matrix_once
from skbayes_sg.posterior import Posterior

_ROUNDING = 1e-13  # of numbers up to some hundred, in double precision
_CERTAIN = 100.0  # a logit; a probability is 1 in double precision from 37 on


def of_columns_without_unit(
    columns: Columns, of_levels: Collection[int], names: Sequence[Any], fit_intercept: bool
) -> list[str]:
    """Columns of one value, and of rounding errors, where the prior is in units of the columns.

    A level without rows is no such column: it is predicted as a new one. Without an intercept a
    column of ones would be one, and rows know its coefficient.
    """
    warnings = list[str]()
    size = np.maximum(columns.unit, np.abs(columns.mean))
    of_number = np.ones(len(size), bool)
    of_number[list(of_levels)] = False
    is_intercept = (columns.unit == 0) & (columns.mean != 0) & of_number & (not fit_intercept)
    for which, problem in (
        (
            is_intercept,
            "one value, as an intercept, and so no unit for a learned prior_precision: the "
            "coefficient is held at zero, though the data tell it; leave such columns out and set "
            "fit_intercept=True, or give prior_precision a number",
        ),
        (
            (columns.unit == 0) & of_number & ~is_intercept,
            "one value in all rows, so the data say nothing about the coefficient, which is "
            "held at zero; leave such columns out, or give prior_precision a number",
        ),
        (
            (columns.unit > 0) & (size < _ROUNDING),
            f"numbers below {_ROUNDING:g}, as the rounding errors that are left of a column of "
            "one value when its mean is taken off; leave such columns out, or scale them if "
            "their differences mean something",
        ),
    ):
        (numbers,) = np.nonzero(which)
        if len(numbers):
            examples = ", ".join(repr(names[column]) for column in numbers[:3])
            more = f" and {len(numbers) - 3} more" if len(numbers) > 3 else ""
            warnings.append(f"column {examples}{more} of X: {problem}")
    return warnings


def moved_by_intercepts(
    posterior: Posterior, draws: Draws, sd: NDArray, precision: float, ess: float
) -> NDArray:
    """How far a prior of intercepts at the columns' zeros moves coefficients, (columns,).

    In posterior standard deviations, of the output where it is farthest.

    Without this prior, of precision l and mean m, the means of a normal posterior would be farther
    by ``Cov(theta, b) (1 - l Cov(b))^-1 l (E[b] - m)``, b being the intercepts. With several
    classes b and the coefficients, with standard deviations `sd` (outputs, columns), are
    differences to their mean over the classes. Correlations that `ess` draws have by chance are
    left out.
    """
    model, weights = posterior.predictor, draws.flat_weights
    blocks = model.unpack(draws.flat)
    b = blocks["intercept"] - model.unpack(posterior.prior.mean)["intercept"]
    several = b.shape[1] > 1
    b = b - b.mean(axis=1, keepdims=True) if several else b.astype(np.float64)
    mean = weights @ b
    deviation = b - mean
    values, V = np.linalg.eigh((weights[:, None] * deviation).T @ deviation)
    pull = V @ (precision * (V.T @ mean) / np.maximum(1 - precision * values, 0.1))
    along, coef = deviation @ pull, blocks["coef"]  # in single precision, where they are large
    moved = np.einsum("n,nkj->kj", (weights * along).astype(coef.dtype), coef)
    moved = np.abs(moved - moved.mean(axis=0) if several else moved) / sd
    moved[moved < CERTAIN_ERRORS / np.sqrt(ess) * np.sqrt(weights @ along**2)] = 0.0
    return moved.max(axis=0)


def of_certain_rows(posterior: Posterior, names: Sequence[Any]) -> list[str]:
    """A column whose prior alone allows a coefficient that makes the class of rows certain.

    An intercept takes the mean of a column, however far from zero.
    """
    model = posterior.predictor
    precision = model.unpack(posterior.prior.precision)["coef"].max(axis=0)
    columns = of_columns(posterior.data)
    square = columns.variance + (0.0 if model.fit_intercept else columns.mean**2)
    logits = np.sqrt(square / precision)
    column = int(logits.argmax())
    if not logits[column] > _CERTAIN:
        return []
    return [
        f"the prior of column {names[column]!r} of X allows logits of {logits[column]:.1g}, far "
        "beyond certainty; scale the columns, for example by StandardScaler, or raise "
        "prior_precision for it"
    ]


def is_separated(
    posterior: Posterior, is_right: Callable[[NDArray, NDArray, NDArray], NDArray], mean: NDArray
) -> bool:
    """Whether a plane goes between the classes of the rows in memory.

    It does where the posterior mean (1, D) `is_right` about each of them; and between any two sets
    of rows that are linearly independent, as those of fewer rows than columns mostly are. Then the
    posterior is as wide as the prior, and no number of draws helps.
    """
    rows = posterior.data.sample
    batches = map(rows.load, rows.blocks(posterior.predictor.row_size))
    if all(is_right(mean, batch.X, batch.y).all() for batch in batches):
        return True
    if rows.n_rows > rows.n_features or not has_matrix_once(rows.n_rows):
        return False
    X = rows.X[:, : rows.n_features]
    gram = dense(X @ X.T).astype(np.float64, copy=False)
    gram.flat[:: len(gram) + 1] -= np.finfo(X.dtype).eps ** 0.5 * gram.diagonal().max()
    try:
        np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        return False
    return True
