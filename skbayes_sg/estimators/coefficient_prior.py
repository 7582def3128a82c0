"""The prior of coefficients and intercepts: given, to be learned, or the posterior of a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import Columns, Data, of_columns
from skbayes_sg.estimators.gaussian_posterior import FittedPosterior
from skbayes_sg.estimators.prior_groups import shrinkage_of
from skbayes_sg.inference.evidence import Hyperprior
from skbayes_sg.inference.learned_prior import BOUNDS
from skbayes_sg.inference.variational_em import VariationalEM
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.models import Linear
from skbayes_sg.models.predictor import Family, Predictor
from skbayes_sg.priors import Prior
from skbayes_sg.validation import real_array, require_bounded, require_positive

_PRIOR_VARIANCE = 10.0  # of outputs
_FARTHEST = 3e6  # standard deviations of a column from zero: of its squares three digits are left
_HELD = 1e6  # a column of one value has a coefficient whose outputs are held at a millionth


def prior_of(
    estimator: Any,
    model: Predictor,
    data: Data,
    classes: NDArray | None = None,
    streaming: bool = False,
) -> Prior:
    """The posterior of another fit, or independent normal priors, as an estimator's parameters say.

    A column that has one value has no unit. Its coefficient is held at zero; but in a stream, where
    other values may come, it is that of a column of zeros and ones.
    """
    em, with_intercept = estimator._em(), estimator.fit_intercept
    mean = real_array("prior_mean", estimator.prior_mean)
    if estimator.prior is not None and shrinkage_of(estimator.prior) is None:
        if not isinstance(estimator.prior, FittedPosterior):
            raise TypeError(
                f"prior must be the posterior_ of another fit, or None, got {estimator.prior!r}"
            )
        if isinstance(estimator.prior_precision, VariationalEM) or np.any(mean):
            raise ValueError(
                "prior stands in place of prior_precision and prior_mean; leave both at their "
                "defaults, or prior=None"
            )
        return estimator.prior.prior_of(model, estimator, classes)

    # The mean of every parameter: 0 for intercepts and the log noise variance. Under a learned
    # precision the intercept of a regression has that of y.
    shape = model.shapes["coef"]
    if mean.shape not in ((), shape[1:], shape):
        raise ValueError(
            f"prior_mean must be one number, one per feature, shape {shape[1:]}, or one per "
            f"class and feature, shape {shape}; got {mean.shape}"
        )
    require_bounded("prior_mean", mean)
    of_coef = np.broadcast_to(mean, shape).ravel()
    mean = np.append(of_coef, np.zeros(model.dim - len(of_coef)))
    if isinstance(model, Family):
        mean[model.dim - len(model.own) :] = model.own_mean
    if isinstance(model, Family | Linear) and with_intercept and em is not None:
        guess = model.guess(data.sample.y, data.sample.weight)
        mean[data.n_features] = guess[0, data.n_features]
    if em is None:
        return model.prior(_precision(estimator, model, _given_precision(estimator, model)), mean)

    # Units of the coefficients, and the first precision to learn from.
    columns = of_columns(data)
    if with_intercept:
        _require_digits(estimator, columns)
    size = np.where(columns.mean == 0, 1.0, np.abs(columns.mean))
    held = 1.0 if streaming else _HELD * size
    square = (np.where(columns.unit > 0, columns.unit, held) / model.unit) ** 2
    noise = getattr(model, "noise_variance", None) or 1.0
    first = _first_precision(em, columns, with_intercept) / noise
    # Intercepts have their prior at the means of the columns, where they are independent of the
    # coefficients, whatever the columns' zeros are. Above 1,000 parameters, which have no matrix,
    # the priors are at zero.
    n_outputs, n_own = shape[0], len(model.own)
    intercepts = n_outputs * with_intercept
    unit = np.append(np.tile(square, n_outputs), np.ones(intercepts + n_own))
    units: dict[str, Any] = {"unit": unit} | ({"n_others": n_own} if n_own else {})
    if intercepts and has_matrix(model.dim):
        units["centre"] = columns.mean
    return model.prior(_precision(estimator, model, first * square), mean, **units)


def _require_digits(estimator: Any, columns: Columns) -> None:
    """Raise ValueError for a column so far from zero that products of rows lose its spread.

    Information about its coefficient beside the intercept is a difference of such products, of
    relative rounding error eps (mean / sd)^2 (tests/promises/test_columns.py).
    """
    with np.errstate(divide="ignore"):
        far = np.abs(columns.mean) / np.sqrt(columns.variance)
    far = np.where(columns.variance > 0, far, 0.0)
    column = int(far.argmax())
    if far[column] > _FARTHEST:
        name = getattr(estimator, "feature_names_in_", range(len(far)))[column]
        raise ValueError(
            f"column {name!r} of X is {far[column]:.1g} of its standard deviations away from "
            "zero, which leaves double precision no digits for its coefficient; take off the "
            "mean, for example by StandardScaler, or leave out a column that has one value but "
            "for rounding errors"
        )


def _given_precision(estimator: Any, model: Predictor) -> NDArray:
    """`prior_precision`, one number or one per feature."""
    n_features = model.shapes["coef"][1]
    if isinstance(estimator.prior_precision, str):
        raise ValueError(
            'prior_precision must be "learned", a number or one per feature, '
            f"got {estimator.prior_precision!r}"
        )
    given = np.asarray(estimator.prior_precision, object)
    if given.ndim == 0:
        require_positive("prior_precision", given.item(), "use a small number for a weak prior")
    precision = real_array("prior_precision", estimator.prior_precision)
    if precision.ndim > 0 and precision.shape != (n_features,):
        raise ValueError(
            f"prior_precision must be one number or one per feature, shape ({n_features},), "
            f"got {precision.shape}"
        )
    if not (np.isfinite(precision).all() and precision.min() > 0):
        raise ValueError(
            "prior_precision must be positive and finite for every feature; use small numbers"
        )
    return precision


def _first_precision(
    em: VariationalEM | Hyperprior, columns: Columns, with_intercept: bool
) -> NDArray:
    """The first precision to learn from, in units of the columns, (features,).

    A prior with as much information as one row, in units of 1 / noise variance for linear
    regression. With many columns that is next to nothing, and the mode under it far
    away. So the variance of the outputs of rows under the prior is 10 at most.
    """
    square = columns.variance if with_intercept else columns.variance + columns.mean**2
    square = square / np.where(columns.unit > 0, columns.unit, np.inf) ** 2
    if em.per != "feature" and square.any():
        strongest = max(square[square > 0].mean(), square.sum() / _PRIOR_VARIANCE)
        return np.full(len(square), strongest)
    return np.clip(np.where(square > 0, square, 1.0), *BOUNDS)


def _precision(estimator: Any, model: Predictor, precision: NDArray) -> NDArray:
    """Precisions of the coefficients, of the intercepts, and of what else all rows share.

    It is 0 for the log noise variance, which has a prior of its own.
    """
    given = estimator.intercept_precision
    require_positive("intercept_precision", given, "use a small number for a weak prior")
    require_bounded("intercept_precision", np.array(given))
    blocks = [np.broadcast_to(precision.astype(float), model.shapes["coef"]).ravel()]
    if estimator.fit_intercept:
        blocks.append(np.full(model.shapes["intercept"], float(given / model.unit**2)))
    noise = [np.zeros(1)] if "log_noise" in model.shapes else []
    return np.concatenate([*blocks, np.array(model.own_sd) ** -2.0, *noise])
