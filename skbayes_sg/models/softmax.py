"""Logistic and multinomial regression."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.models.base import NullDirections
from skbayes_sg.models.categorical import Categorical
from skbayes_sg.scores import Factor, Scores


class Softmax(Categorical):
    """p(y = k | x) = softmax(coef x + intercept)_k.

    Two classes need one logit (the second class against the first). K > 2 classes keep all K
    columns, so the prior treats them alike. The prior alone determines directions that shift all
    logits.

    Parameters
    ----------
    n_features, n_classes : int
    fit_intercept : bool, default=True
    """

    fixed_inputs = True

    def __init__(self, n_features: int, n_classes: int, fit_intercept: bool = True) -> None:
        super().__init__(n_classes, 1 if n_classes == 2 else n_classes)
        self.shapes = {"coef": (self.n_logits, n_features)}
        if fit_intercept:
            self.shapes["intercept"] = (self.n_logits,)
        self._n_features = n_features
        self._n_coef = self.n_logits * n_features
        self._dim = self._n_coef + (self.n_logits if fit_intercept else 0)

    @property
    def dim(self) -> int:
        """Number of parameters."""
        return self._dim

    def init(self, rng: np.random.Generator) -> NDArray:
        """Zero: the log posterior is concave, so any start leads to the mode."""
        return np.zeros((1, self.dim))

    def null_directions(self) -> list[NullDirections]:
        """Of K > 2 columns: the same shift of all classes, feature by feature."""
        if self.n_logits == 1:
            return []
        blocks = self.unpack(np.arange(self.dim))
        return [NullDirections(np.atleast_2d(b.T), np.ones(self.n_logits)) for b in blocks.values()]

    def logits(self, theta: NDArray, X: NDArray) -> NDArray:
        theta = theta.astype(X.dtype, copy=False)
        coef = theta[:, : self._n_coef]
        if X.ndim == 3:
            z = coef.reshape(-1, self.n_logits, self._n_features) @ X.swapaxes(1, 2)
        else:  # rows shared by the chains: one product for all
            z = coef.reshape(-1, self._n_features).dot(X.T).reshape(len(theta), self.n_logits, -1)
        if self._dim > self._n_coef:
            z += theta[:, self._n_coef :, None]
        return z

    def scores(self, theta: NDArray, X: NDArray, y: NDArray) -> Scores:
        """Residual times input: (1[y = k] - p_k) x."""
        return self._times_input(self.residual(self.logits(theta, X), y), X)

    def fisher(self, theta: NDArray, X: NDArray) -> Scores:
        """sqrt(p (1 - p)) x; for K classes the scores of K virtual labels times sqrt(p_label)."""
        return self._times_input(self.residual_root(self.logits(theta, X)), X)

    def _times_input(self, left: NDArray, X: NDArray) -> Scores:
        if self._dim > self._n_coef:
            return Scores(Factor(left, X), Factor(left, None))
        return Scores(Factor(left, X))
