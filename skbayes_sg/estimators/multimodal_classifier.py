"""Classifiers whose posterior has many modes: labels, and what chains say of them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import InMemory
from skbayes_sg.data.row_metadata import RowMetadata
from skbayes_sg.estimators.base import all_or_nothing, of_chunk, where_it_streams
from skbayes_sg.estimators.class_probabilities import probabilities
from skbayes_sg.estimators.classifier import BayesianClassifier, chunk_of
from skbayes_sg.estimators.multimodal import Multimodal, follow
from skbayes_sg.posterior import Posterior
from skbayes_sg.streams.online_chain import population


@dataclass(eq=False, repr=False)
class MultimodalClassifier(Multimodal, BayesianClassifier):
    """A classifier whose chains are compared by class probabilities."""

    _: KW_ONLY
    class_weight: dict | str | None = None
    n_predict_draws: int | str | None = "auto"

    @where_it_streams
    @all_or_nothing
    def partial_fit(self, X, y, classes=None, n_total: float | None = None, offset=None) -> Self:
        """Move one chain along a stream of data, one step per `batch_size` rows of this chunk.

        The chunks of all calls must be independent random samples of one population. A file read in
        order, or epoch after epoch, makes the variances too small. There is one chain, because
        chains fed the same rows would coalesce. The last `n_draws` points after burn-in are kept,
        `thin` steps apart. Until burn-in is over (ten passes over `n_total` rows by default) the
        present point alone predicts. One pass gives about one effective draw, so prefer `fit` on a
        memory-mapped X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            At least two rows.
        y : array-like of shape (n_rows,)
        classes : array-like, required in the first call
            All labels that may occur.
        n_total : float, optional
            Rows of the population: the scale of the likelihood, the same in every call. By default
            the rows seen so far, this chunk included. Then the posterior narrows with the stream,
            the automatic burn-in never ends, and one point that follows the mode predicts.
        offset : array-like of shape (n_rows,) or (n_rows, n_classes), optional
            As in `fit`, in all chunks or in none.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data or parameters are invalid; raised before any step.
        FloatingPointError
            If the chain diverges.
        """
        X, y, labels = chunk_of(self, X, y, classes)
        metadata = RowMetadata(None, offset)
        attributes = of_chunk(self, X, metadata) | {"classes_": labels}
        total = population(n_total, X.shape[0], attributes["n_samples_seen_"])
        follow(self, self._bind(X, y, labels, metadata, total), attributes)
        return self

    def _under_draws(self, X) -> NDArray:
        """Probabilities (chains, draws, classes, rows)."""
        counting = self._draws.counting()
        draws = counting.flat.astype(X.dtype, copy=False)
        p = np.concatenate([block for _, block in probabilities(self.model_, X, draws)], axis=2)
        return p.reshape(*counting.values.shape[:2], *p.shape[1:])

    def _gain(self, p: NDArray, few: Posterior, posterior: Posterior) -> float:
        mean = self._draws.counting().of(p).mean().T
        return gain_over_shares(mean, few.data.sample, posterior.data.sample)


def gain_over_shares(proba: NDArray, rows: InMemory, all_rows: InMemory) -> float:
    """Log loss of the shares of the classes minus that of averaged probabilities (n, classes).

    Both are means over the same rows of the fit, in nats, with their weights.
    """
    two = proba.shape[1] == 2  # of one logit their labels are -1 and 1
    y, all_y = (np.where(y > 0, y, 0) if two else y for y in (rows.y, all_rows.y))
    y, all_y = y.astype(np.intp), all_y.astype(np.intp)
    share = np.bincount(all_y, all_rows.weight, proba.shape[1])
    weight = np.ones(len(y)) if rows.weight is None else rows.weight
    counted = weight > 0
    own = np.maximum(proba[counted, y[counted]], np.finfo(np.float64).tiny)
    gain = np.log(own) - np.log(share[y[counted]] / share.sum())
    return float(np.average(gain, weights=weight[counted]))
