"""The bases of the classifiers' models: class probabilities, and those from logits."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from skbayes_sg.models.base import Model, NullDirections, OutputModel


class Classification(Model):
    """p(y = k | x) of some classes."""

    @abstractmethod
    def encode(self, codes: NDArray, dtype: np.dtype) -> NDArray:
        """Class numbers 0, 1, ... as the targets of this model, to go with X of the given dtype."""

    @abstractmethod
    def log_predict(self, theta: NDArray, X: NDArray) -> NDArray:
        """Logarithms of the probabilities of all classes, (chains, classes, n), in X's dtype.

        They are finite: no probability is computed that could underflow.
        """

    def log_loss_moments(self, theta: NDArray, X: NDArray) -> tuple[NDArray, NDArray]:
        log_p = self.log_predict(theta, X)[0].astype(np.float64, copy=False)
        p = np.exp(log_p)
        mean = -np.sum(p * log_p, axis=0)
        return mean, np.sum(p * (log_p + mean) ** 2, axis=0)


class Categorical(Classification, OutputModel):
    """p(y = k | x) = softmax(z)_k of logits z that a subclass computes, (chains, logits, n).

    Arrays are class-major: one product serves all chains and classes. Two classes may have one
    logit, that of the second class against the first, or two, as a DRBM has. With K logits the
    prior treats K classes alike. With one logit, targets are -1.0 and 1.0 in X's dtype, otherwise
    integer codes; see `encode`.

    Parameters
    ----------
    n_classes, n_logits : int
    """

    def __init__(self, n_classes: int, n_logits: int) -> None:
        self.binary = n_classes == 2
        self.n_logits = n_logits

    def null_directions(self) -> list[NullDirections]:
        """Of K > 2 logits: the same shift of all, weight by weight and of the intercepts."""
        if self.n_logits == 1:
            return []
        last = list(self.unpack(np.arange(self.dim)).values())[-2:]
        return [NullDirections(np.atleast_2d(b.T), np.ones(self.n_logits)) for b in last]

    def _rows_of_classes(self, name: str, block: NDArray) -> dict[str, NDArray]:
        return {f"{name}[{k}]": row for k, row in enumerate(block)}

    def logits(self, theta: NDArray, X: NDArray) -> NDArray:
        """Logits, (chains, logits, n) in X's dtype; the caller may overwrite them."""
        return self._forward(theta, X)[0]

    def encode(self, codes: NDArray, dtype: np.dtype) -> NDArray:
        return (2 * codes - 1).astype(dtype) if self.n_logits == 1 else codes

    def predict(self, theta: NDArray, X: NDArray) -> NDArray:
        """Class probabilities (chains, classes, n); for two classes that of the second class."""
        z = self.logits(theta, X)
        if self.n_logits > 1:
            return softmax(z)[:, 1:] if self.binary else softmax(z)
        np.negative(z, out=z)
        with np.errstate(over="ignore"):  # exp(-z) = inf is probability 0
            np.exp(z, out=z)
        z += 1
        return np.reciprocal(z, out=z)

    def log_predict(self, theta: NDArray, X: NDArray) -> NDArray:
        z = self.logits(theta, X)
        if self.n_logits > 1:
            return log_softmax(z, axis=1)
        return np.concatenate([_log_sigmoid(-z), _log_sigmoid(z)], axis=1)

    def value_and_residual(self, z: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
        """Log likelihoods (chains, n) at logits z, and `residual`. It overwrites z.

        They are -log(1 + e^(-y z)) with y = -1 or 1, or z_y - logsumexp(z).
        """
        if self.n_logits == 1:
            return _log_sigmoid(y * z[:, 0]), self.residual(z, y)
        z -= z.max(axis=1, keepdims=True)
        value = z[_at(y, z)]
        np.exp(z, out=z)
        total = z.sum(axis=1, keepdims=True)
        value -= np.log(total[:, 0])
        z /= -total
        z[_at(y, z)] += 1
        return value, z

    def residual(self, z: NDArray, y: NDArray) -> NDArray:
        """Gradient of the log likelihood in the logits, 1[y = k] - p_k, (chains, logits, n).

        It overwrites z.
        """
        if self.n_logits == 1:
            z *= 0.5
            residual = np.tanh(z, out=z)  # sigmoid(z) = (1 + tanh(z / 2)) / 2 cannot overflow
            np.subtract(y[..., None, :], residual, out=residual)
            residual *= 0.5
            return residual
        p = softmax(z)
        residual = np.negative(p, out=p)
        residual[_at(y, residual)] += 1
        return residual

    def residual_root(self, z: NDArray) -> NDArray:
        """A square root of the Fisher matrix of the logits.

        For one logit it is sqrt(p (1 - p)), (chains, 1, n). For K logits it is the residuals of K
        virtual labels times sqrt(p_label), (chains, K, K, n).
        """
        if self.n_logits == 1:
            half = np.exp(-0.5 * np.abs(z))
            return half / (1 + half * half)
        p = softmax(z)
        virtual = np.eye(self.n_logits, dtype=z.dtype)[:, :, None] - p[:, None]
        return np.sqrt(p)[:, :, None] * virtual


def sigmoid(z: NDArray) -> NDArray:
    """By the hyperbolic tangent, which NumPy has in vector instructions; in place."""
    z *= 0.5
    np.tanh(z, out=z)  # cannot overflow
    z += 1
    z *= 0.5
    return z


def _log_sigmoid(z: NDArray) -> NDArray:
    return np.minimum(z, 0) - np.log1p(np.exp(-np.abs(z)))


def exponentials(z: NDArray) -> tuple[NDArray, NDArray]:
    """The largest of axis 1, and the sum of the exponentials over that of it, (chains, 1, n) each.

    z becomes these exponentials.
    """
    top = z.max(axis=1, keepdims=True)
    z -= top
    np.exp(z, out=z)
    return top, z.sum(axis=1, keepdims=True)


def softmax(z: NDArray) -> NDArray:
    """Softmax over axis 1, in place."""
    z /= exponentials(z)[1]
    return z


def _at(y: NDArray, z: NDArray) -> tuple[NDArray, ...]:
    """Index of each row's own class in z (chains, K, n); y is (n,) or (chains, n)."""
    return np.arange(z.shape[0])[:, None], y, np.arange(z.shape[2])
