"""Under each draw: log density of the prior, log likelihood of given rows, and new rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import row_blocks
from skbayes_sg.linalg.scores import dense
from skbayes_sg.linalg.sizes import elements_at_a_time
from skbayes_sg.priors.joint import JointPrior

_DRAWS_AT_ONCE = 64  # beyond, a product costs as much per draw


class Given(NamedTuple):
    """The data that were given, as the model takes them."""

    X: Any
    """(rows, features), dense or sparse"""
    y: NDArray | None
    """(rows,): numbers, or numbers of classes"""
    targets: NDArray | None
    """(rows,): in the model's own coding"""
    weight: NDArray | None
    model: Any
    """The model of the estimator, or one with a column for each new level of the rows."""

    @classmethod
    def to(cls, estimator: Any, X: Any, y: Any, metadata: Any) -> Given:
        """Validate X, y and what else is known of the rows for an estimator."""
        model = estimator.model_
        if y is None:
            predicts, X, *_ = estimator._to_predict(X, metadata.known(X))
            if predicts is not model:  # it has columns for new levels, see `with_new_levels`
                n, more = model.shapes["coef"][1], predicts.shapes["coef"][1]
                X = X[:, np.append(np.arange(n), np.arange(more, X.shape[1]))]
            return cls(X, None, None, None, model)
        X, y, weight = estimator._checked_rows(X, y, metadata)
        if hasattr(estimator, "classes_"):
            y = np.searchsorted(estimator.classes_, y)
        return cls(X, y, model.encode(y, X.dtype), weight, model)

    @classmethod
    def of_fit(cls, asking: str, estimator: Any, X: Any, y: Any, metadata: Any) -> Given:
        """`to`, of the rows that the fit had, all of which make up its likelihood."""
        if estimator._stream is not None:
            raise ValueError(
                f"{asking} needs the likelihood of all rows, and those that partial_fit has "
                "seen are not kept; fit the model to rows at hand"
            )
        data = cls.to(estimator, X, y, metadata)
        if data.targets is None or data.X.shape[0] != estimator.n_samples_seen_:
            raise ValueError(
                f"{asking} needs X and y of the fit, as all of its rows make up the "
                f"likelihood; it had {estimator.n_samples_seen_} rows, and X has "
                f"{data.X.shape[0]}"
            )
        return data

    def with_new_levels(
        self, estimator: Any, rows: Any, flat: NDArray, kept: NDArray
    ) -> tuple[Given, NDArray]:
        """These data with columns for levels that are new, and draws (draws, D) with their effects.

        `rows` are as they were given, and `kept` the numbers of the draws of each chain.
        """
        n_chains, n_draws = estimator.draws_.shape[:2]
        numbers = (n_draws * np.arange(n_chains)[:, None] + kept).ravel()
        model, X, flat = estimator._with_new_levels(rows, self.X, flat, numbers)
        return self._replace(X=X, model=model), flat

    def blocks(self, row_bytes: int) -> Iterator[tuple[NDArray, slice]]:
        """Blocks of dense rows, and their numbers."""
        for rows in row_blocks(self.X.shape[0], row_bytes, 8 * elements_at_a_time()):
            yield dense(self.X[rows]), rows


def kept_draws(estimator: Any) -> tuple[NDArray, NDArray]:
    """Numbers of the draws that stand for all without weights, and these, (chains, draws, D)."""
    draws = estimator._draws
    return draws.standing(), draws.resampled().values.astype(np.float64, copy=False)


def prior_sd_draws(estimator: Any) -> NDArray:
    """Root mean square of the prior sds of each group's coefficients, (chains, draws, groups).

    In the units of the coefficients.
    """
    scales, prior = estimator._fit.scales, estimator._fit.prior
    counts, varying = counted_coefficients(estimator), told_by_rows(estimator)
    squares = scales.summed(varying / prior.unit[None, scales.block])
    drawn = estimator.prior_precision_draws_.astype(np.float64)
    variance = squares[0] / np.maximum(counts, 1) / drawn
    if not prior.quadratic:  # it is in units of the noise variance
        variance = variance * np.exp(estimator.draws_[..., -1:])
    return np.sqrt(variance)


def told_by_rows(estimator: Any) -> NDArray:
    """1 for each coefficient with a group whose column varies, 0 for others: held at zero."""
    columns, model = estimator._columns, estimator.model_
    varies = np.ones(model.dim)
    if columns is not None:
        model.unpack(varies)["coef"][:] = columns.unit > 0
    return varies[estimator._fit.scales.block]


def counted_coefficients(estimator: Any) -> NDArray:
    """Coefficients of each group whose columns vary, (groups,)."""
    return estimator._fit.scales.summed(told_by_rows(estimator)[None])[0]


def log_priors(estimator: Any, flat: NDArray, kept: NDArray) -> dict[str, NDArray]:
    """Log densities of the parameters under sampled precisions, and of the logarithms of these.

    Their names are "parameters" and "hyperparameters", of which the latter is there only where a
    precision is sampled; (draws,) each, up to constants.
    """
    prior, scales = estimator._fit.prior, estimator._fit.scales
    if estimator._fit.hyper_draws is None:
        return {"parameters": prior.log_density(flat)}
    eta = estimator._fit.hyper_draws[:, kept].reshape(len(flat), -1).astype(np.float64)
    joint = prior.log_density(flat) + JointPrior(scales, prior).log_density(flat, eta)
    above = scales.log_hyperprior(eta)
    return {"parameters": joint - above, "hyperparameters": above}


def log_likelihoods(flat: NDArray, data: Given) -> Iterator[NDArray]:
    """Log likelihood of each row, times its weight: (draws, rows), some draws at a time."""
    assert data.targets is not None
    model = data.model
    for draws in _draw_blocks(flat):
        parts = [
            model.log_likelihood(draws, X, data.targets[rows])
            for X, rows in data.blocks(8 * len(draws) * model.widest)
        ]
        pointwise = np.concatenate(parts, axis=1).astype(np.float64, copy=False)
        yield pointwise if data.weight is None else pointwise * data.weight


def new_rows(estimator: Any, flat: NDArray, data: Given) -> Iterator[NDArray]:
    """A draw of y for each row and draw, (draws, rows), the same in every call."""
    model, rng = data.model, np.random.default_rng(0)
    for draws in _draw_blocks(flat):
        blocks = data.blocks(8 * len(draws) * model.widest)
        if not hasattr(estimator, "classes_"):
            outputs = np.concatenate([model.outputs(draws, X) for X, _ in blocks], axis=2)
            yield model.draw(outputs, rng)
            continue
        mean = np.concatenate([model.predict(draws, X) for X, _ in blocks], axis=2)
        u = rng.random((len(draws), 1, mean.shape[2]))
        # one output is the probability of the second class; of more, the last takes what is left
        if mean.shape[1] == 1:
            yield (u < mean).sum(axis=1)
        else:
            yield (u > np.cumsum(mean[:, :-1], axis=1)).sum(axis=1)


def _draw_blocks(flat: NDArray) -> Iterator[NDArray]:
    for start in range(0, len(flat), _DRAWS_AT_ONCE):
        yield flat[start : start + _DRAWS_AT_ONCE]
