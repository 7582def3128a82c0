"""Sums of predictions over rows: a portfolio's claims, a region's deaths, a list's buyers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skbayes_sg import frames
from skbayes_sg.inspection.drawing import fitted_step
from skbayes_sg.inspection.names import labels_by
from skbayes_sg.inspection.responses import REMEDY, given_of, rows_of, table_of_outputs
from skbayes_sg.inspection.summary import figures_of
from skbayes_sg.linalg.sizes import elements_at_a_time


def totals(
    model: Any,
    X: ArrayLike,
    *,
    by: ArrayLike | None = None,
    kind: str = "observation",
    level: float = 0.95,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    trials: ArrayLike | None = None,
):
    """Sums of predictions over rows, with posterior intervals.

    Parameters
    ----------
    model : fitted estimator or Pipeline
        The steps of a Pipeline before the estimator transform the rows.
    X : array-like of shape (n_rows, n_features)
        Rows as the model is given them.
    by : array-like of shape (n_rows,), or the name of a column of X, optional
        What rows belong to; each value has a sum. By default there is one sum of all rows.
    kind : {"observation", "mean"}, default="observation"
        "observation": of new observations, whose noise partly cancels in a sum. "mean": of their
        means, whose uncertainty does not, as the rows share the parameters.
    level : float in (0, 1), default=0.95
        Posterior probability of the equal-tailed intervals.
    offset, exposure, trials : float or array-like of shape (n_rows,), optional
        As in `predict`.

    Returns
    -------
    pandas.DataFrame
        A row for each value of `by`, and for each of more than two classes or one response: the
        number of rows of a class, or the sum of y. Of two classes it is that of ``classes_[1]``.
        Columns ``mean``, ``sd`` and the ends of the interval; ``attrs`` has the numbers of rows.
        ``sd`` is NaN of new observations of `BayesianRobustRegressor`, which have no variance.
        Without pandas, a Bunch of arrays.

    Raises
    ------
    ValueError
        If `by` has another number of rows or missing cells, or `level` is not between 0 and 1.

    Notes
    -----
    An interval of a sum is not the sum of intervals. Under each draw the predictions of all rows
    are added up, so that what the rows share, the parameters, does not cancel, and what is each
    row's own does.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import BayesianPoissonRegressor
    >>> from skbayes_sg.inspection import totals
    >>> rng = np.random.default_rng(0)
    >>> X, years = rng.standard_normal((500, 2)), rng.uniform(0.5, 2, 500)
    >>> y = rng.poisson(years * np.exp(X @ [0.5, 0.0]))
    >>> model = BayesianPoissonRegressor(random_state=0).fit(X, y, exposure=years)
    >>> table = totals(model, X, exposure=years)
    >>> bool(abs(table["mean"].iloc[0] - y.sum()) < 2 * table["sd"].iloc[0])
    True
    """
    rows: Any = rows_of(X)
    n_rows = len(rows)
    estimator, before = fitted_step(totals, model, REMEDY, "predict_draws")
    labels, member = np.array(["all"]), np.zeros(n_rows, int)
    if by is not None:
        labels, member = labels_by("by", by, rows)
    known = {"offset": offset, "exposure": exposure, "trials": trials}
    taken = given_of(estimator.predict_draws, **known)
    given = {name: np.asarray(each) for name, each in taken.items()}
    rng, total = np.random.default_rng(0), None
    n_blocks = 1 + n_rows * estimator.draws_[..., 0].size // elements_at_a_time()
    for some in np.array_split(np.arange(n_rows), min(n_rows, n_blocks)):
        of_some = {name: each[some] if each.ndim else each for name, each in given.items()}
        block = frames.take(rows, some)
        block = block if before is None else before.transform(block)
        drawn = estimator.predict_draws(block, kind, random_state=rng, **of_some)
        each = _numbers(estimator, drawn, kind)
        groups = (member[some][:, None] == np.arange(len(labels))).astype(np.float64)
        part = np.einsum("snk,ng->sgk", each, groups, optimize=True)
        total = part if total is None else total + part
    assert total is not None
    flat = total.reshape(1, len(total), -1)
    weights = np.full(len(total), 1 / len(total))
    columns = figures_of(flat, weights, level, null=None)
    if kind == "observation" and not getattr(estimator.model_, "has_variance", True):
        columns["sd"][:] = np.nan
    words = [str(label) for label in labels]
    counts = dict(zip(words, np.bincount(member).tolist(), strict=True))
    return table_of_outputs(estimator, ["by"], [(word,) for word in words], columns, counts)


def _numbers(estimator: Any, drawn: NDArray, kind: str) -> NDArray:
    """What is added up, (draws, rows, outputs): numbers, probabilities, or zeros and ones."""
    if not hasattr(estimator, "classes_"):
        return drawn if drawn.ndim == 3 else drawn[..., None]
    classes = estimator.classes_[1:] if len(estimator.classes_) == 2 else estimator.classes_
    if kind == "mean":
        return drawn[..., -len(classes) :]
    return (drawn[..., None] == classes).astype(np.float64)
