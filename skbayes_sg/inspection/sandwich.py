"""Standard errors of coefficients that do not take the model at its word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import ndtri

from skbayes_sg.data import Batch
from skbayes_sg.data.row_metadata import RowMetadata, metadata_of_fit, offset_of
from skbayes_sg.inspection.drawing import OF_COEFFICIENTS, fitted_step
from skbayes_sg.inspection.names import column_labels, labels_by
from skbayes_sg.inspection.summary import as_asked, first_levels, quantities, require_draws
from skbayes_sg.inspection.table import table
from skbayes_sg.inspection.under_draws import Given
from skbayes_sg.linalg import FULL
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.validation import checked_weights, require_level

_SMALLEST = np.finfo(np.float64).tiny


def sandwich_summary(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    scaler: Any = None,
    reference: Any = None,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    var_weights: ArrayLike | None = None,
    trials: ArrayLike | None = None,
):
    """Coefficients with standard deviations that hold where the distribution of y is wrong.

    Intervals of a posterior assume that the model is right: that counts vary as Poisson counts do,
    that noise has one variance, that rows are independent. If only the mean of y is modelled well,
    the posterior mean is still near the right coefficients, and its error can be estimated from the
    spread of the rows' scores.

    Parameters
    ----------
    model : fitted regression or classifier with coefficients, or a Pipeline that ends in one
        The steps of a Pipeline before the estimator transform the rows.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        The rows of the fit.
    y : array-like of shape (n_rows,)
    groups : array-like of shape (n_rows,), or the name of a column of X, optional
        Rows of one group may depend on each other, as visits of a patient do; groups are
        independent. By default each row is a group.
    level : float in (0, 1), default=0.95
        Probability of the intervals.
    scaler, reference : optional
        As in `summary`.
    sample_weight, offset, exposure, var_weights, trials : array-like, optional
        Those of the fit. A weight of k is k equal rows, which are independent without `groups`.

    Returns
    -------
    pandas.DataFrame
        A row for each coefficient and intercept, as in `summary`; thresholds, dispersions and noise
        variances have none. ``attrs`` has the number of independent groups, or of rows. Without
        pandas, a Bunch of arrays. Its columns:

        - ``mean``: of the posterior.
        - ``sd``: by the sandwich.
        - ``eti95_lb``, ``eti95_ub``: ends of the equal-tailed interval of a normal distribution
          with these.
        - ``ratio``: ``sd`` over the standard deviation of the posterior. Near 1 where the model is
          right; NaN of a coefficient that is held at zero.

    Raises
    ------
    ValueError
        If the model is a network or has more than 1,000 parameters, if it was updated by
        ``partial_fit``, if X has not as many rows as the fit, if there are fewer than two groups,
        or if the posterior is not peaked at its mean.

    Notes
    -----
    The covariance is ``H^-1 (M + P) H^-1`` at the posterior mean. H is minus the Hessian of the log
    posterior, P is the precision of the prior, under the geometric mean of precisions that were
    sampled, and M the sum of the outer products of the rows' scores, or of the sums of scores over
    groups (math/models.md#sandwich-covariance). If the model is right, M is on average the part of
    H due to the rows, and the covariance is that of the posterior, H^-1.

    There is no correction for few groups: with fewer than about forty, standard deviations are too
    small. The covariance is that of coefficients, and does not apply to predictive intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg import BayesianLinearRegression
    >>> from skbayes_sg.inspection import sandwich_summary
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 2))
    >>> y = X @ [0.5, 0.0] + np.exp(X[:, 0]) * rng.standard_normal(1000)  # of unequal noise
    >>> model = BayesianLinearRegression(random_state=0).fit(X, y)
    >>> (sandwich_summary(model, X, y)["ratio"] > 1.2).tolist()
    [True, False, False]
    """
    require_level(level)
    estimator, before = fitted_step(sandwich_summary, model, OF_COEFFICIENTS, "coef_", "draws_")
    offset = offset_of(offset, exposure, getattr(estimator.model_, "log_link", False), X)
    metadata = RowMetadata(sample_weight, offset, var_weights, trials)
    metadata = metadata_of_fit(estimator, metadata)
    rows = X if before is None else before.transform(X)
    data = Given.of_fit("sandwich_summary", estimator, rows, y, metadata)
    require_draws(estimator, "sandwich_summary")
    of_counts = getattr(estimator.model_, "counts", False)
    if sample_weight is not None and of_counts and (np.asarray(data.targets) % 1).any():
        raise ValueError(
            "y holds fractions, as rates do, and sample_weight says how often a row was seen: give "
            "the counts as y, and exposure, in fit and here"
        )
    counts = checked_weights(sample_weight, data.X.shape[0])
    member, n_groups = None, int(np.count_nonzero(counts))
    if groups is not None:
        labels, member = labels_by("groups", groups, X)
        n_groups = len(labels)
        if n_groups < 2:
            raise ValueError(
                "groups: all rows are in one group, and scores of all rows sum to nothing; leave "
                "groups out, or give labels of rows that depend on each other"
            )
    covariance = _covariance(estimator, data, counts, member)

    # rows of the table are linear in the parameters
    if reference is None:
        reference = first_levels(estimator)
    coefficients, features, logits = as_asked(estimator, estimator.draws_, scaler, reference)
    axes = as_asked(estimator, np.eye(estimator.model_.dim)[None], scaler, reference)[0][0]
    if hasattr(estimator, "_terms_beside"):  # an intercept is a part of thresholds
        axes = axes[..., :-1]
    along = axes.reshape(len(axes), -1)
    n = along.shape[1]
    if scaler is None and not isinstance(reference, Mapping):
        features = column_labels(estimator, before)
    terms, names, values = quantities(estimator, coefficients, features, logits)
    mean, posterior_sd = estimator._draws.of(values[..., :n]).moments()
    sd = np.sqrt(np.einsum("dq,de,eq->q", along, covariance, along, optimize=True))
    columns = {"mean": mean, "sd": sd}
    for end, q in {"lb": (1 - level) / 2, "ub": (1 + level) / 2}.items():
        columns[f"eti{100 * level:g}_{end}"] = mean + ndtri(q) * sd
    ratio = np.divide(sd, posterior_sd, out=np.full(n, np.nan), where=posterior_sd > 0)
    return table(terms[:n], names, columns | {"ratio": ratio}, {"n_groups": n_groups})


def _covariance(estimator: Any, data: Given, counts: NDArray, member: NDArray | None) -> NDArray:
    """The sandwich of all parameters, (D, D), of rows that are so many equal rows each."""
    model, prior, y, weight = estimator.model_, estimator._fit.prior, data.targets, data.weight
    assert y is not None
    assert weight is not None
    if not has_matrix(model.dim):
        raise ValueError(
            f"sandwich_summary needs a matrix of all parameters, and {model.dim} are too many"
        )
    mean = estimator._draws.mean().astype(np.float64)[None]
    information, gradient = np.zeros((model.dim, model.dim)), np.zeros((1, model.dim))
    spread = prior.curvature(mean).dense()
    totals = np.zeros((0 if member is None else member.max() + 1, model.dim))
    for X, rows in data.blocks(8 * model.dim * model.widest):
        batch = Batch(X.astype(np.float64, copy=False), y[rows], weight[rows])
        scores = model.scores(mean, batch.X, batch.y).scaled(batch.weight)
        gradient += scores.total()
        if model.canonical:
            information += model.information(mean, batch, FULL).dense()
        else:
            outputs = model.outputs(mean, batch.X)
            information += model.moment_of(model.observed_at(outputs, batch.y)[0], batch).dense()
        if member is not None:
            np.add.at(totals, member[rows], scores.rows())
            continue
        root_counts = np.sqrt(np.maximum(counts[rows], _SMALLEST))  # a weight of 0 has a score of 0
        spread += scores.scaled(1 / root_counts).moment(FULL).dense()
    spread += totals.T @ totals
    if model.canonical:
        information = model.observed(information, gradient)
    try:
        factor = cho_factor(information + prior.hessian(mean))
    except np.linalg.LinAlgError:
        raise ValueError(
            "the Hessian of the log posterior is not definite at its mean, so the posterior is not "
            "near a normal distribution there; fit more rows, or fewer columns"
        ) from None
    return cho_solve(factor, cho_solve(factor, spread).T)
