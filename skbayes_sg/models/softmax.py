"""Logistic and multinomial regression."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.models.base import Model
from skbayes_sg.scores import Factor, Scores


class Softmax(Model):
    """p(y = k | x) = softmax(coef x + intercept)_k.

    Two classes need one logit (the second class against the first). K > 2 classes keep all K
    columns, so the prior treats them alike; the direction that shifts all logits is known by the
    prior alone. Arrays are class-major, (chains, K, n): one product serves all chains and classes.

    Parameters
    ----------
    n_features, n_classes : int
    fit_intercept : bool, default=True

    Notes
    -----
    Targets are -1.0 and 1.0 in X's dtype for two classes, integer codes for more: see `encode`.
    """

    def __init__(self, n_features: int, n_classes: int, fit_intercept: bool = True) -> None:
        self.n_logits = 1 if n_classes == 2 else n_classes
        self.shapes = {"coef": (self.n_logits, n_features)}
        if fit_intercept:
            self.shapes["intercept"] = (self.n_logits,)
        self.binary = n_classes == 2
        self._n_features = n_features
        self._n_coef = self.n_logits * n_features
        self._dim = self._n_coef + (self.n_logits if fit_intercept else 0)

    @property
    def dim(self) -> int:
        """Number of parameters."""
        return self._dim

    def encode(self, codes: NDArray, dtype: np.dtype) -> NDArray:
        """Class numbers 0, 1, ... as the targets of this model, to go with X of the given dtype."""
        return (2 * codes - 1).astype(dtype) if self.binary else codes

    def init(self, rng: np.random.Generator) -> NDArray:
        """Zero: the log posterior is concave, any start will do."""
        return np.zeros((1, self.dim))

    def logits(self, theta: NDArray, X: NDArray) -> NDArray:
        """(chains, logits, n) in X's dtype."""
        theta = theta.astype(X.dtype, copy=False)
        coef = theta[:, : self._n_coef]
        if X.ndim == 3:
            z = coef.reshape(-1, self.n_logits, self._n_features) @ X.swapaxes(1, 2)
        else:  # rows shared by the chains: one product for all
            z = coef.reshape(-1, self._n_features).dot(X.T).reshape(len(theta), self.n_logits, -1)
        if self._dim > self._n_coef:
            z += theta[:, self._n_coef :, None]
        return z

    def predict(self, theta: NDArray, X: NDArray) -> NDArray:
        """Class probabilities (chains, logits, n); for two classes that of the second class."""
        z = self.logits(theta, X)
        if not self.binary:
            return _softmax(z)
        np.negative(z, out=z)
        with np.errstate(over="ignore"):  # exp(-z) = inf is probability 0
            np.exp(z, out=z)
        z += 1
        return np.reciprocal(z, out=z)

    def log_likelihood(self, theta: NDArray, X: NDArray, y: NDArray) -> NDArray:
        """-log(1 + e^(-y z)) with y = -1 or 1, or z_y - logsumexp(z)."""
        z = self.logits(theta, X)
        if self.binary:
            z = y * z[:, 0]
            return np.minimum(z, 0) - np.log1p(np.exp(-np.abs(z)))
        z -= z.max(axis=1, keepdims=True)
        return z[_at(y, z)] - np.log(np.exp(z).sum(axis=1))

    def scores(self, theta: NDArray, X: NDArray, y: NDArray) -> Scores:
        """Residual times input: (1[y = k] - p_k) x."""
        if self.binary:
            half = self.logits(0.5 * theta, X)
            residual = np.tanh(half, out=half)  # sigmoid(z) = (1 + tanh(z / 2)) / 2 cannot overflow
            np.subtract(y[..., None, :], residual, out=residual)
            residual *= 0.5
        else:
            p = _softmax(self.logits(theta, X))
            residual = np.negative(p, out=p)
            residual[_at(y, residual)] += 1
        return self._times_input(residual, X)

    def fisher(self, theta: NDArray, X: NDArray) -> Scores:
        """sqrt(p (1 - p)) x; for K classes the scores of K virtual labels times sqrt(p_label)."""
        z = self.logits(theta, X)
        if self.binary:
            half = np.exp(-0.5 * np.abs(z))
            return self._times_input(half / (1 + half * half), X)
        p = _softmax(z)
        virtual = np.eye(self.n_logits, dtype=X.dtype)[None, :, :, None] - p[:, None]  # (chains, label, class, n)
        return self._times_input(np.sqrt(p)[:, :, None] * virtual, X)

    def _times_input(self, left: NDArray, X: NDArray) -> Scores:
        if self._dim > self._n_coef:
            return Scores(Factor(left, X), Factor(left, None))
        return Scores(Factor(left, X))


def _at(y: NDArray, z: NDArray) -> tuple[NDArray, ...]:
    """Index of each row's own class in z (chains, K, n); y is (n,) or (chains, n)."""
    chains, rows = np.ogrid[: z.shape[0], : z.shape[2]]
    return chains, y, rows


def _softmax(z: NDArray) -> NDArray:
    """Over axis 1, in place."""
    z -= z.max(axis=1, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis=1, keepdims=True)
    return z
