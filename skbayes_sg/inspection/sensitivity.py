"""How much a posterior depends on its prior and on its likelihood, by power scaling."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax, xlogy

from skbayes_sg.data.row_metadata import RowMetadata, metadata_of_fit
from skbayes_sg.diagnostics import r_hat_and_ess_bulk
from skbayes_sg.diagnostics.limits import SENSITIVITY_LIMIT
from skbayes_sg.inspection.drawing import OF_COEFFICIENTS, fitted_step
from skbayes_sg.inspection.names import column_labels, logit_names
from skbayes_sg.inspection.summary import coefficients_of, quantities, require_draws
from skbayes_sg.inspection.table import table
from skbayes_sg.inspection.under_draws import Given, kept_draws, log_likelihoods, log_priors

_ONE_IN_THOUSAND = 0.65  # quantile of the value of independent numbers, over sd / sqrt(draws)


def prior_sensitivity(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    var_weights: ArrayLike | None = None,
    trials: ArrayLike | None = None,
):
    """How fast each marginal posterior changes with the power of the prior and of the likelihood.

    The posterior is compared with those in proportion to ``prior^alpha likelihood`` and to
    ``prior likelihood^alpha``, for alpha a little below and above 1. A posterior that the rows
    determine changes with the likelihood only. The power of the prior of a learned precision is
    changed separately.

    Parameters
    ----------
    model : fitted regression or classifier with coefficients, or a Pipeline that ends in one
        The steps of a Pipeline before the estimator transform the rows.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        The rows of the fit.
    y : array-like of shape (n_rows,)
    sample_weight, offset, var_weights, trials : array-like, optional
        Those of the fit; of an exposure the logarithm is the offset.

    Returns
    -------
    pandas.DataFrame
        A row for each row of `summary`. Without pandas, a Bunch of arrays. Its columns:

        - ``prior``, ``likelihood``: distance of the posteriors per doubling of the power of the
          parameters' prior, or of the likelihood.
        - ``hyperprior``: the same of the prior of precisions, where they are sampled.
        - ``diagnosis``: "potential prior-data conflict" where the likelihood's value, and that of
          the prior or the hyperprior, are above a limit, "potential strong prior or weak
          likelihood" where one of the latter is and the likelihood's is not, and "-" elsewhere.

        ``attrs`` has the limit of each column: 0.05, or if many parameters make the values less
        certain the value that chance exceeds once in a thousand.

    Raises
    ------
    ValueError
        If the model is a network, whose hidden units have no marginals of their own; if it was
        updated by ``partial_fit``, as the likelihood of the rows of a stream is not kept; if there
        are fewer than four draws of each chain; or if X has not as many rows as the fit.

    Notes
    -----
    A draw has the weight ``prior^(alpha - 1)``, or that of the likelihood, with alpha = 0.99 and
    1.01: no model is fitted again. With distribution functions P of all draws and Q of the weighted
    ones, the distance is that of Jensen and Shannon for cumulative distributions,

        ``d^2 = int [P log2(2 P / (P + Q)) + Q log2(2 Q / (P + Q))] dx / int (P + Q) dx``

    from the smallest draw to the largest, or the same of 1 - P and 1 - Q if that is larger. A value
    is ``d / |log2 alpha|``, the mean of both alphas. Source: Kallioinen, Paananen, Bürkner &
    Vehtari 2023, Statistics and Computing 34.

    Weights so near to 1 need no Pareto smoothing.

    ``prior`` is that of all parameters, and where a precision lambda is sampled that given lambda:
    it says how much a coefficient depends on being pooled with the others, towards the prior mean.
    With lambda integrated out, coefficients theta (K,) about 0 have about the density
    ``(theta . theta)^(-alpha K / 2)``, whose pull towards 0 is in proportion to alpha, so what a
    power of 2 does is what a precision of twice the learned one would do. ``hyperprior`` measures
    whether the assumptions about lambda matter, as they hardly do if the rows determine it.

    Chance moves a value by about a third of the standard deviation of the log density over the root
    of the number of independent draws. The log prior of K parameters has one of about the root of
    ``K / 2``. So with hundreds of parameters small values have no meaning, unless `n_draws` is
    raised.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sg import BayesianLinearRegression
    >>> from skbayes_sg.inspection import prior_sensitivity
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = BayesianLinearRegression(prior_precision=1.0, random_state=0).fit(X, y)
    >>> prior_sensitivity(model, X, y).loc["bmi", "diagnosis"]
    'potential prior-data conflict'
    """
    estimator, before = fitted_step(prior_sensitivity, model, OF_COEFFICIENTS, "coef_", "draws_")
    rows = X if before is None else before.transform(X)
    metadata = RowMetadata(sample_weight, offset, var_weights, trials)
    metadata = metadata_of_fit(estimator, metadata)
    data = Given.of_fit("prior_sensitivity", estimator, rows, y, metadata)
    require_draws(estimator, "prior_sensitivity")
    kept, draws = kept_draws(estimator)
    flat = draws.reshape(-1, draws.shape[2])
    blocks = log_likelihoods(flat, data)
    likelihood = np.concatenate([block.sum(axis=1) for block in blocks])
    priors = log_priors(estimator, flat, kept)
    densities = {"prior": priors["parameters"]}
    if "hyperparameters" in priors:
        densities["hyperprior"] = priors["hyperparameters"]
    densities["likelihood"] = likelihood
    features, logits = column_labels(estimator, before), logit_names(estimator)
    coefficients = coefficients_of(estimator, estimator.draws_)
    labels, names, drawn = quantities(estimator, coefficients, features, logits)
    values = drawn[:, kept].reshape(len(flat), -1).T.astype(np.float64)
    columns, limits = {}, {}
    for name, scaled in densities.items():
        columns[name] = np.array([rate_of_change(quantity, scaled) for quantity in values])
        limits[name] = max(SENSITIVITY_LIMIT, _by_chance(scaled.reshape(draws.shape[:2])))
    above = {name: column > limits[name] for name, column in columns.items()}
    informed = above.pop("likelihood")
    strong = np.any(list(above.values()), axis=0)
    words = ["potential prior-data conflict", "potential strong prior or weak likelihood"]
    diagnosis = np.select([strong & informed, strong], words, "-")
    attrs = {f"limit of {name}": limit for name, limit in limits.items()}
    return table(labels, names, columns | {"diagnosis": diagnosis}, attrs)


def _by_chance(log_density: NDArray) -> float:
    """The value that one in a thousand independent quantities exceeds, of (chains, draws)."""
    _, ess = r_hat_and_ess_bulk(log_density[..., None])
    return float(_ONE_IN_THOUSAND * log_density.std() / np.sqrt(ess[0]))


def rate_of_change(values: NDArray, log_density: NDArray) -> float:
    """Distance per doubling of a power of the density, from draws (n,) of a quantity."""
    order, n = np.argsort(values), len(values)
    widths, steps = np.diff(values[order]), np.arange(1, n) / n
    rates = []
    for alpha in (0.99, 1.01):
        weights = softmax((alpha - 1) * log_density)[order]
        below = _distance(widths, steps, np.cumsum(weights)[:-1])
        above = _distance(widths[::-1], steps, np.cumsum(weights[::-1])[:-1])
        rates.append(max(below, above) / abs(np.log2(alpha)))
    return float(np.mean(rates))


def _distance(widths: NDArray, p: NDArray, q: NDArray) -> float:
    """Distance of distribution functions between draws, with gaps ``widths``, (n - 1,) each."""
    middle = 0.5 * (p + q)
    divergence = widths @ (xlogy(p, p / middle) + xlogy(q, q / middle)) / np.log(2)
    total = widths @ (p + q)
    # a column of one value has no coefficient but zero
    return float(np.sqrt(max(divergence, 0.0) / total)) if total > 0 else 0.0
