"""Expected responses of rows under each draw, of an estimator or a Pipeline; their table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight

from skbayes_sg import frames
from skbayes_sg.data import of_blocks, row_blocks
from skbayes_sg.data.row_metadata import RowMetadata, offset_of
from skbayes_sg.diagnostics.draws import Draws
from skbayes_sg.diagnostics.limits import ENOUGH_ESS
from skbayes_sg.inspection.drawing import fitted_step
from skbayes_sg.inspection.summary import FEWEST_DRAWS, figures_of
from skbayes_sg.inspection.table import table
from skbayes_sg.linalg.scores import dense
from skbayes_sg.linalg.sizes import elements_at_a_time
from skbayes_sg.validation import require_choice, require_integer, warn

_ROWS = 2048  # of which responses are summed at once
_CACHED = 1 << 22  # bytes of their responses under a few draws
REMEDY = "give an estimator of this package (of a search its best_estimator_)"


def rows_of(X: ArrayLike) -> Any:
    """A data frame as it is, and anything else as an array of numbers; both may have gaps."""
    if frames.is_frame(X):
        return X
    if frames.is_lazy(X):
        raise ValueError(
            f"X must hold rows in memory, got {type(X).__name__}; give some of them by X.collect() "
            "or X.compute()"
        )
    frames.require_no_dates(X)
    return check_array(X, dtype=np.float64, ensure_all_finite="allow-nan", input_name="X")


def weights_of(sample_weight: ArrayLike | None, X: Any) -> NDArray:
    """Weights of the rows, not all of them zero."""
    return _check_sample_weight(sample_weight, np.empty((len(X), 1)), ensure_non_negative=True)


def under_draws(
    asking: Callable, model: Any, X: Any, offset: ArrayLike | None = None
) -> Iterator[tuple[NDArray, NDArray]]:
    """Blocks of rows, and their expected responses, (chains, draws, outputs, rows)."""
    for rows, fitted, draws, block in _blocks(asking, model, X, offset, slice(None)):
        flat = draws.reshape(-1, draws.shape[-1])
        n_parts = 1 + len(rows) * len(flat) * fitted.widest // elements_at_a_time()
        parts = np.array_split(np.arange(len(rows)), min(len(rows), n_parts))
        of_part = partial(_expected, fitted, flat, block)
        for part, responses in zip(parts, of_blocks(of_part, parts), strict=True):
            _require_finite(responses, rows[part])
            yield rows[part], responses.reshape(*draws.shape[:2], *responses.shape[1:])


def sums_under_draws(
    asking: Callable,
    model: Any,
    X: Any,
    weight: NDArray,
    offset: ArrayLike | None = None,
    kept: Any = slice(None),
) -> NDArray:
    """Expected responses summed over rows by weights (rows, k), (chains, draws, outputs, k).

    `kept` are the numbers of the draws of each chain. A few of these at a time, as then the
    responses of many rows stay in cache.
    """
    total: Any = 0.0
    for rows, fitted, draws, block in _blocks(asking, model, X, offset, kept):
        flat, of_rows = draws.reshape(-1, draws.shape[-1]), weight[rows]
        for some in row_blocks(len(rows), 1, _ROWS):
            part, numbers, weights = block[some], rows[some], of_rows[some]

            def of_few(few, fitted=fitted, flat=flat, part=part, numbers=numbers, weights=weights):
                responses = _expected(fitted, flat[few], part, slice(None))
                sums = responses @ weights
                if not np.isfinite(sums).all():
                    _require_finite(responses, numbers)
                return sums

            few = row_blocks(len(flat), 8 * len(numbers) * fitted.widest, _CACHED)
            sums = np.concatenate(list(of_blocks(of_few, few)))
            total = total + sums.reshape(*draws.shape[:2], *sums.shape[1:])
    return total


def _blocks(
    asking: Callable, model: Any, X: Any, offset: ArrayLike | None, kept: Any
) -> Iterator[tuple[NDArray, Any, NDArray, Any]]:
    """Blocks: numbers of rows, the model, draws (chains, draws, D), and rows as it takes them.

    Columns that are zero in all rows of a block are left out.
    """
    estimator, before = fitted_step(asking, model, REMEDY, "draws_")
    n_chains, n_draws = estimator.draws_.shape[:2]
    offsets = None if offset is None else np.asarray(offset)
    n_blocks = 1 + len(X) * estimator.n_features_in_ // elements_at_a_time()
    for rows in np.array_split(np.arange(len(X)), min(len(X), n_blocks)):
        block = frames.take(X, rows)
        block = block if before is None else before.transform(block)
        block_offset = offsets[rows] if offsets is not None and offsets.ndim else offsets
        fitted, block, every, _ = estimator._to_predict(block, block_offset, np.float64, every=True)
        block = block.astype(np.float64, copy=False)
        fitted, flat, block = fitted.on_nonzero_columns(every.flat, block)
        block = block if fitted.keeps_sparse(block) else dense(block)  # few columns may be left
        yield rows, fitted, flat.reshape(n_chains, n_draws, -1)[:, kept], block


def _expected(model: Any, draws: NDArray, X: NDArray, rows: Any) -> NDArray:
    with np.errstate(over="ignore"):
        return model.predict(draws, X[rows])


def _require_finite(responses: NDArray, rows: NDArray) -> None:
    infinite = np.isinf(responses)
    if infinite.any():
        raise ValueError(
            "X: the mean of y is beyond the largest number under some draws, as in row "
            f"{rows[infinite.any(axis=(0, 1)).argmax()]}; leave out rows so far from those of the "
            "fit"
        )


def draws_enough(estimator: Any, n_draws: int | str | None) -> tuple[NDArray, Draws]:
    """Numbers of evenly spaced draws of each chain, and these draws.

    They are ``n_draws`` of all chains together. "auto" are as many as there are effective ones, and
    at least as many as a fit should have; all where draws were matched, as some of them are not;
    None are all.
    """
    draws = estimator._draws
    all_draws = np.arange(len(draws.weights)), draws
    if isinstance(n_draws, str):
        require_choice("n_draws", n_draws, ("auto",))
        if estimator._batches is not None:
            return all_draws
        figures = estimator.diagnostics_
        effective = min(figures.get(name, np.inf) for name in ("ess_min", "ess_tail_min"))
        n_draws = None if not np.isfinite(effective) else int(max(effective, ENOUGH_ESS))
    if n_draws is None:
        return all_draws
    least = FEWEST_DRAWS * len(estimator.draws_)
    require_integer("n_draws", n_draws, least, ', "auto" or None')
    n_each = -(-n_draws // len(estimator.draws_))
    if n_each >= draws.n_counting:
        return all_draws
    return draws.standing(n_each), draws.resampled(n_each)


def given_of(method: Callable, **metadata: Any) -> dict[str, Any]:
    """What is known of rows, as far as it is given, for a method of an estimator.

    Raises
    ------
    ValueError
        If the method does not take it.
    """
    passed = {name: value for name, value in metadata.items() if value is not None}
    wrong = passed.keys() - signature(method).parameters.keys()
    if wrong:
        name = type(method.__self__).__name__  # type: ignore[attr-defined]
        raise ValueError(f"{', '.join(sorted(wrong))}: {name} takes none")
    return passed


def warn_of_rows(result: str, counts: dict[str, int], n_rows: int) -> None:
    """Say how many rows are left out for want of a cell, by column."""
    if counts:
        words = ", ".join(f"{column} ({n} of {n_rows})" for column, n in counts.items())
        warn(f"rows are left out of {result} where the cell is missing: {words}", UserWarning)


def table_of_outputs(
    estimator: Any,
    names: list[str],
    labels: list[tuple[Any, ...]],
    columns: dict[str, NDArray],
    attrs: dict[str, Any] | None = None,
):
    """A table with a row for each label, and each class or response where there are several."""
    n_outputs = len(columns["mean"]) // len(labels)
    if n_outputs > 1:
        outputs, of_output = range(n_outputs), "response"
        if hasattr(estimator, "classes_"):
            outputs, of_output = estimator.classes_.tolist(), "class"
        labels = [(*label, output) for label in labels for output in outputs]
        names = [*names, of_output]
    return table(
        labels if len(names) > 1 else [label for (label,) in labels], names, columns, attrs
    )


def prediction_summary(
    model: Any,
    X: ArrayLike,
    *,
    level: float = 0.95,
    full: bool = False,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    trials: ArrayLike | None = None,
):
    """Predictions for each row: the posterior of the expected response, with intervals.

    Parameters
    ----------
    model : fitted estimator or Pipeline
        The steps of a Pipeline before the estimator transform the rows.
    X : array-like of shape (n_rows, n_features)
        Rows as the model is given them.
    level : float in (0, 1), default=0.95
        Posterior probability of the intervals.
    full : bool, default=False
        Whether to return all columns of `summary` instead of the main ones.
    offset, exposure, trials : float or array-like of shape (n_rows,), optional
        As in `predict`.

    Returns
    -------
    pandas.DataFrame
        A row for each row of X, by its label where X is a data frame, and for each of more than two
        classes or one response. Without pandas, a Bunch of arrays.

        - ``mean``, ``sd``, ``eti95_lb``, ``eti95_ub``: of the probability of ``classes_[1]``, or of
          each of more than two classes, and of the expected response of a regression. They do not
          include the noise of observations.
        - ``obs_eti95_lb``, ``obs_eti95_ub``: of regressions, ends of an interval for a new
          observation, noise included, as in `predict_interval`; in binomial regression only with
          `trials`.
        - if `full`: ``hdi95_lb``, ``hdi95_ub``, ``ess_bulk``, ``ess_tail``, ``r_hat``,
          ``mcse_mean`` and ``mcse_sd`` as in `summary`.

    Raises
    ------
    ValueError
        If `level` is not between 0 and 1, if the estimator has no draws, or if the mean of y
        overflows.

    Notes
    -----
    The columns are those of ``summary_frame`` in statsmodels, by the names of ArviZ.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skbayes_sg import BayesianLinearRegression
    >>> from skbayes_sg.inspection import prediction_summary
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = make_pipeline(StandardScaler(), BayesianLinearRegression(random_state=0)).fit(X, y)
    >>> rows = prediction_summary(model, X.head())
    >>> bool((rows["obs_eti95_lb"] < rows["eti95_lb"]).all())
    True
    """
    rows: Any = rows_of(X)
    estimator, before = fitted_step(prediction_summary, model, REMEDY, "draws_")
    parts, log_link = [], getattr(estimator.model_, "log_link", False)
    offset = offset_of(offset, exposure, log_link, rows)
    of_rows = given_of(estimator.predict, offset=offset, trials=trials)
    columns_of_rows = RowMetadata(None, offset, trials=trials).known(rows)
    for _, responses in under_draws(prediction_summary, model, rows, columns_of_rows):
        rows_last = np.moveaxis(responses, 2, 3)  # the outputs of a row beside each other
        flat = rows_last.reshape(*responses.shape[:2], -1)
        kinds = {"null": None, "full": full, "estimator": estimator}
        parts.append(figures_of(estimator._draws.of(flat), level, **kinds))
    columns = {name: np.concatenate([figures[name] for figures in parts]) for name in parts[0]}
    labels = frames.row_labels(rows)
    has_shares = getattr(estimator.model_, "n_given", 0) > 0 and trials is None
    if not (hasattr(estimator, "classes_") or has_shares):
        inputs = rows if before is None else before.transform(rows)
        ends = estimator.predict_interval(inputs, level, **of_rows)
        low, high = f"obs_eti{100 * level:g}_lb", f"obs_eti{100 * level:g}_ub"
        columns |= {low: ends[..., 0].ravel(), high: ends[..., 1].ravel()}
    return table_of_outputs(estimator, ["row"], [(label,) for label in labels], columns)
