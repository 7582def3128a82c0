"""Class probabilities from logits: the softmax, and logistic and multinomial regression."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, ndtr

from skbayes_sg.data.rows import Batch
from skbayes_sg.linalg import Dense, Operator
from skbayes_sg.linalg.operators import FULL, Layout
from skbayes_sg.linalg.scores import (
    CategoricalScores,
    Scores,
    dense,
    outer_products,
    with_ones,
)
from skbayes_sg.models.base import Classification, NullDirections
from skbayes_sg.models.predictor import Predictor, normal_nodes, symmetric_root

_LEAST = {np.dtype(t): 0.9 * np.log(np.finfo(t).tiny) for t in (np.float32, np.float64)}
"""The least numbers whose exponentials are taken; those are not subnormal."""


class Categorical(Classification):
    """p(y = k | x) = softmax(z)_k of logits z that a subclass computes, (chains, logits, n).

    Arrays are class-major: one product serves all chains and classes. Two classes may have one
    logit, that of the second class against the first, or two, as a DRBM has. With K logits the
    prior treats K classes alike. With one logit, targets are -1.0 and 1.0 in X's dtype, otherwise
    integer codes; see `encode`.

    Attributes
    ----------
    n_logits : int
    """

    ratio = "odds_ratio"
    n_logits: int

    def null_directions(self) -> list[NullDirections]:
        """The same shift of all of K > 2 logits, weight by weight and of the intercepts."""
        if self.n_logits == 1:
            return []
        last = list(self.unpack(np.arange(self.dim)).values())[-2:]
        return [NullDirections(np.atleast_2d(b.T), np.ones(self.n_logits)) for b in last]

    @property
    def n_offsets(self) -> int:
        """One number for two classes, the log odds of the second, or one for each class."""
        return 1 if self.n_classes == 2 else self.n_classes

    def _rows_of_classes(self, name: str, block: NDArray) -> dict[str, NDArray]:
        return {f"{name}[{k}]": row for k, row in enumerate(block)}

    def encode(self, codes: NDArray, dtype: np.dtype) -> NDArray:
        return (2 * codes - 1).astype(dtype) if self.n_logits == 1 else codes

    def predict(self, theta: NDArray, X: NDArray) -> NDArray:
        """Class probabilities (chains, classes, n); for two classes that of the second class."""
        z = self.outputs(theta, X)
        if self.n_logits > 1:
            return softmax(z)[:, 1:] if self.n_classes == 2 else softmax(z)
        np.negative(z, out=z)
        with np.errstate(over="ignore"):  # exp(-z) = inf is probability 0
            np.exp(z, out=z)
        z += 1
        return np.divide(1, z, out=z)

    def log_predict(self, theta: NDArray, X: NDArray) -> NDArray:
        z = self.outputs(theta, X)
        if self.n_logits > 1:
            return log_softmax(z, axis=1)
        z = np.concatenate([-z, z], axis=1)
        return np.minimum(z, 0) - _log1p_exp(-np.abs(z))

    def value(self, z: NDArray, y: NDArray) -> NDArray:
        """Log likelihoods (chains, n) at logits z, which it overwrites."""
        return self.value_and_residual(z, y)[0]

    def value_and_residual(self, z: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
        """Log likelihoods (chains, n) at logits z, and `residual`. It overwrites z.

        They are -log(1 + e^(-y z)) with y = -1 or 1, or z_y - logsumexp(z).
        """
        if self.n_logits == 1:
            right = y * z[:, 0]
            return np.minimum(right, 0) - _log1p_exp(-np.abs(right)), self.residual(z, y)
        value = z[_at(y, z)]
        top, total = exponentials(z)
        value -= top[:, 0]  # first, as the difference of large logits is small
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
        z /= -exponentials(z)[1]
        z[_at(y, z)] += 1
        return z

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


class Softmax(Categorical, Predictor):
    """p(y = k | x) = softmax(coef x + intercept)_k.

    Two classes need one logit (the second class against the first). K > 2 classes keep all K
    columns, so the prior treats them alike. The prior alone determines directions that shift all
    logits.

    Parameters
    ----------
    n_features, n_classes : int
    fit_intercept : bool, default=True
    """

    def __init__(self, n_features: int, n_classes: int, fit_intercept: bool = True) -> None:
        self.n_classes = n_classes
        self.n_logits = 1 if n_classes == 2 else n_classes
        Predictor.__init__(self, self.n_logits, n_features, fit_intercept)

    def natural(self, name: str, block: NDArray) -> tuple[str, NDArray]:
        """A block, less the mean over its K > 2 classes, which only the prior knows.

        It changes no probability.
        """
        if self.n_logits == 1:
            return name, block
        classes = -2 if name == "coef" else -1
        return name, block - block.mean(axis=classes, keepdims=True)

    def mean_probabilities(self, theta: NDArray, weights: NDArray, X: NDArray) -> NDArray:
        """The weighted sum in few passes over logits, as many as rows, chains and classes."""
        theta, k = theta.astype(X.dtype, copy=False), self.n_logits
        coef = theta[:, : self._n_coef].reshape(len(theta), k, -1)
        features = self.features(X)
        offsets = None if features is X else dense(X[:, features.shape[1] :])
        # a column more takes less than a pass over the logits
        inputs = with_ones(features) if self.fit_intercept else features
        if k == 1:
            z = inputs @ np.negative(theta).T  # rows first, which is the faster product
            if offsets is not None:
                z -= offsets
            with np.errstate(over="ignore"):  # exp(-z) = inf is probability 0
                np.exp(z, out=z)
            z += 1
            return (np.divide(1, z, out=z) @ weights)[:, None]

        # class by class, so that what is summed over classes are long rows
        if self.fit_intercept:
            coef = np.concatenate([coef, theta[:, self._n_coef :, None]], axis=2)
        by_class = coef.swapaxes(0, 1).reshape(-1, coef.shape[2])
        z = (by_class @ inputs.T).reshape(k, len(theta), -1)
        if offsets is not None:
            z += offsets.T[:, None]
        _, total = exponentials(z, axis=0)
        z *= np.divide(weights[:, None], total, out=total)
        return (np.ones(len(theta), z.dtype) @ z).T

    def fisher(self, theta: NDArray, X: NDArray) -> Scores:
        if self.n_logits == 1:
            return super().fisher(theta, X)
        rights = [self.features(X), *[None] * self.fit_intercept]
        return CategoricalScores(softmax(self.outputs(theta, X)), rights)

    def information(self, theta: NDArray, batch: Batch, layout: Layout) -> Operator:
        """As `fisher` has it. All of it, for K classes, by one product of the inputs times p.

        Of a row it is ``kron(diag(p) - p p^T, x x^T)``, and p p^T has rank one.
        """
        if self.n_logits == 1 or layout is not FULL:
            return super().information(theta, batch, layout)
        p = softmax(self.outputs(theta, batch.X))[0].astype(np.float64, copy=False)
        X = dense(self.features(batch.X)).astype(np.float64, copy=False)
        X = with_ones(X) if self.fit_intercept else X
        weight = 1.0 if batch.weight is None else batch.weight
        columns = self.columns()
        moment = np.empty((self.dim, self.dim))
        products = ((np.sqrt(weight) * p)[:, None] * X.T).reshape(-1, len(X))
        moment[np.ix_(columns.ravel(), columns.ravel())] = -(products @ products.T)
        for own, root in zip(columns, np.sqrt(weight * p * (1 - p)), strict=True):
            scaled = X * root[:, None]
            moment[np.ix_(own, own)] = scaled.T @ scaled  # NumPy sends A.T @ A to syrk
        return Dense(moment)

    def row_terms(
        self,
        theta: NDArray,
        root: NDArray | None,
        X: NDArray,
        y: NDArray,
        observed: bool = False,
    ) -> tuple[NDArray, NDArray]:
        """The logits of each row are normal (math/streams.md#logistic-regression-as-an-update)."""
        z = self.outputs(theta, X)
        if root is None:
            residual = self.residual(z.copy(), y)[0]
            if self.n_logits == 1:
                return residual, self.residual_root(z).reshape(1, 1, -1) ** 2
            return residual, _between(softmax(z)[0])
        if self.n_logits == 1:
            p, slope = of_normal_logits(z[0, 0], np.sqrt(self.output_variance(root, X)))
            p, slope = p.astype(z.dtype, copy=False), slope.astype(z.dtype, copy=False)
            return (0.5 * (y + 1) - p)[None], slope[None, None]
        # of the logits along each column, (D, logits, n)
        deviation = self.outputs(root.T, self.features(X))
        spread = symmetric_root(outer_products(deviation))
        nodes, weights = (numbers.astype(z.dtype) for numbers in normal_nodes(self.n_logits))
        p = softmax(spread @ nodes.T + z[0].T[:, :, None])  # (n, K, nodes)
        mean = p @ weights
        residual = -mean.T
        residual[y, range(len(y))] += 1
        between = (p * -weights) @ p.swapaxes(1, 2)
        between[:, range(self.n_logits), range(self.n_logits)] += mean
        return residual, between.transpose(1, 2, 0)

    def is_right(self, theta: NDArray, X: NDArray, y: NDArray) -> NDArray:
        """Whether the label of each row has the largest logit, at one theta (1, D), (n,)."""
        z = self.outputs(theta, X)[0]
        return z[0] * y > 0 if self.n_logits == 1 else z.argmax(axis=0) == y

    # -- expansion around an anchor -----------------------------------------------------------

    def expand_rows(self, outputs: NDArray, y: NDArray) -> tuple[NDArray, ...]:
        """Logits, probabilities and log sum exp; for one logit z/2, p - 1/2 and dp/dz."""
        if self.n_logits > 1:
            p = outputs.copy()
            top, total = exponentials(p)
            p /= total
            return outputs[0], p[0], (top + np.log(total))[0, 0]
        half = 0.5 * outputs[0]
        tanh = np.tanh(half)
        return half, 0.5 * tanh, 0.25 * (1 - tanh * tanh)

    def difference(self, change: NDArray, at_anchor: tuple[NDArray, ...]) -> NDArray:
        """p_a - p, with p = 1/2 + tanh(z/2)/2 for one logit."""
        if self.n_logits == 1:
            half, tanh, _ = at_anchor
            change *= 0.5
            change += half
            np.tanh(change, out=change)
            change *= 0.5
            return np.subtract(tanh, change, out=change)
        z, p, _ = at_anchor
        change += z
        after = softmax(change)
        return np.subtract(p, after, out=after)

    def bregman_remainder(
        self, change: NDArray, at_anchor: tuple[NDArray, ...]
    ) -> tuple[NDArray, NDArray]:
        """-(A(z + c) - A(z) - p c) for A = log sum exp z, whose gradient is p."""
        if self.n_logits == 1:
            half, tanh, _ = at_anchor
            value = tanh * change[:, 0] + _log_cosh(half)
            value -= _log_cosh(half + 0.5 * change[:, 0])
            return value, self.difference(change, at_anchor)
        z, p, log_sum = at_anchor
        value = np.einsum("kn,ckn->cn", p, change)
        change += z
        top, total = exponentials(change)
        value += log_sum - (top + np.log(total))[:, 0]
        change /= total
        return value, np.subtract(p, change, out=change)

    def remainder(self, change: NDArray, at_anchor: tuple[NDArray, ...]) -> NDArray:
        """p_a - p + (diag p_a - p_a p_a^T) change."""
        if self.n_logits == 1:
            linear = at_anchor[2] * change
        else:
            p = at_anchor[1]
            linear = change - np.einsum("kn,ckn->cn", p, change)[:, None]
            linear *= p
        linear += self.difference(change, at_anchor)
        return linear


def _log_cosh(x: NDArray) -> NDArray:
    """Up to a constant."""
    size = np.abs(x)
    return size + _log1p_exp(-2 * size)


def _log1p_exp(x: NDArray) -> NDArray:
    """log(1 + e^x) of numbers that are not positive, without subnormal numbers."""
    return np.log1p(np.exp(np.maximum(x, _LEAST[x.dtype])))


def _between(p: NDArray) -> NDArray:
    """diag(p) - p p^T of each row, (K, K, n), of probabilities (K, n)."""
    between = p[:, None] * -p
    between[range(len(p)), range(len(p))] += p
    return between


def of_normal_logits(mean: NDArray, sd: NDArray) -> tuple[NDArray, NDArray]:
    """Means of p and of p (1 - p) over normal logits, (n,) each."""
    nodes, weights = normal_nodes(1)
    at_nodes = expit(mean + sd * nodes.astype(mean.dtype))
    p, slope = weights @ at_nodes, weights @ (at_nodes * (1 - at_nodes))
    # A logistic variable less a wide normal one is nearly normal, of the sum of both variances:
    # from three logits on ten nodes are too few, and the error of p is below 0.002 there.
    wide = sd > 3.0
    if wide.any():
        scale = np.sqrt(sd[wide] ** 2 + np.pi**2 / 3)
        ratio = mean[wide] / scale
        p[wide] = ndtr(ratio)
        slope[wide] = np.exp(-0.5 * ratio * ratio) / (scale * np.sqrt(2 * np.pi))
    return p, slope


def sigmoid(z: NDArray) -> NDArray:
    """1 / (1 + exp(-z)) in place, by the hyperbolic tangent, which NumPy has vectorised."""
    z *= 0.5
    np.tanh(z, out=z)  # cannot overflow
    z += 1
    z *= 0.5
    return z


def exponentials(z: NDArray, axis: int = 1) -> tuple[NDArray, NDArray]:
    """What logits are counted from, and the sum of the exponentials over that, of length 1 in axis.

    z, (chains, logits, n) or in another order, becomes these exponentials. They are counted from
    the largest of the axis, or from 0 where none is subnormal or infinite: that takes fewer passes.
    """
    least = _LEAST[z.dtype]
    if z.max(initial=0.0) < -least and z.min(initial=0.0) > least:
        total = _sum(np.exp(z, out=z), axis)
        return np.zeros_like(total), total
    top = z.max(axis=axis, keepdims=True)
    z -= top
    # Exponentials are not subnormal numbers, with which processors are some tens of times slower.
    if z.min(initial=0.0) < least:
        # NumPy takes twice as long for the larger of numbers and one scalar
        np.maximum(z, np.full(z.shape[-1], least, z.dtype), out=z)
    return top, _sum(np.exp(z, out=z), axis)


def _sum(z: NDArray, axis: int) -> NDArray:
    """The sum over an axis, of length 1 in it; a product where that axis is the last but one."""
    if axis != z.ndim - 2:
        return z.sum(axis=axis, keepdims=True)
    return np.ones((1, z.shape[axis]), z.dtype) @ z


def softmax(z: NDArray) -> NDArray:
    """Softmax over axis 1, in place."""
    z /= exponentials(z)[1]
    return z


def _at(y: NDArray, z: NDArray) -> tuple[NDArray, ...]:
    """Index of each row's own class in z (chains, K, n); y is (n,) or (chains, n)."""
    return np.arange(z.shape[0])[:, None], y, np.arange(z.shape[2])
