"""Logistic and multinomial regression."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from skbayes_sg.data import Batch
from skbayes_sg.linalg import FULL, Layout, Operator
from skbayes_sg.linalg.scores import Scores, outer_products
from skbayes_sg.models.categorical import Categorical, exponentials, softmax
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.models.quadrature import normal_nodes, symmetric_root

_WIDE_LOGIT = 3.0  # standard deviation above which ten nodes are too few


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
        super().__init__(n_classes, 1 if n_classes == 2 else n_classes)
        self._set_blocks(self.n_logits, n_features, fit_intercept)
        self._n_coef = self.n_logits * n_features
        self._dim = self._n_coef + (self.n_logits if fit_intercept else 0)

    @property
    def dim(self) -> int:
        """Number of parameters."""
        return self._dim

    @property
    def widest(self) -> int:
        return self.n_logits

    def _forward(self, theta: NDArray, X: NDArray) -> tuple[NDArray, None]:
        return self.linear_predictors(theta, X), None

    def _backward(self, error: NDArray, X: NDArray, kept: None) -> Scores:
        """Error times input: for `scores` (1[y = k] - p_k) x, for `fisher` sqrt(p (1 - p)) x."""
        return self.times_inputs(error, X)

    def information(self, theta: NDArray, batch: Batch, layout: Layout) -> Operator:
        """As `fisher` has it, for K classes from diag(p) - p p^T: K virtual labels cost K times."""
        if self.n_logits == 1 or layout is not FULL:
            return super().information(theta, batch, layout)
        return self.moment_of(_between(softmax(self.logits(theta, batch.X))[0]), batch)

    def row_terms(
        self,
        theta: NDArray,
        root: NDArray | None,
        X: NDArray,
        y: NDArray,
        observed: bool = False,
    ) -> tuple[NDArray, NDArray]:
        """The logits of each row are normal (math/streams.md#logistic-regression-as-an-update)."""
        z = self.logits(theta, X)
        if root is None:
            residual = self.residual(z.copy(), y)[0]
            if self.n_logits == 1:
                return residual, self.residual_root(z).reshape(1, 1, -1) ** 2
            return residual, _between(softmax(z)[0])
        deviation = self.logits(root.T, X)  # of the logits along each column, (D, logits, n)
        if self.n_logits == 1:
            sd = np.sqrt(np.einsum("dkn,dkn->n", deviation, deviation))
            p, slope = _mean_probability(z[0, 0], sd)
            return (0.5 * (y + 1) - p)[None], slope[None, None]
        p, weights = self._at_nodes(z[0], deviation)
        mean = p @ weights
        residual = -mean.T
        residual[y, range(len(y))] += 1
        between = (p * -weights) @ p.swapaxes(1, 2)
        between[:, range(self.n_logits), range(self.n_logits)] += mean
        return residual, between.transpose(1, 2, 0)

    def _at_nodes(self, z: NDArray, deviation: NDArray) -> tuple[NDArray, NDArray]:
        """Probabilities of each row at the nodes of its logits, (n, K, nodes), and weights."""
        spread = symmetric_root(outer_products(deviation))
        nodes, weights = (each.astype(z.dtype) for each in normal_nodes(self.n_logits))
        return softmax(spread @ nodes.T + z.T[:, :, None]), weights

    def is_right(self, theta: NDArray, X: NDArray, y: NDArray) -> NDArray:
        """Whether the label of each row has the largest logit, at one theta (1, D), (n,)."""
        z = self.logits(theta, X)[0]
        return z[0] * y > 0 if self.n_logits == 1 else z.argmax(axis=0) == y

    # -- expansion around an anchor -----------------------------------------------------------

    def _of(self, n_features: int, fit_intercept: bool) -> Softmax:
        return Softmax(n_features, 2 if self.binary else self.n_logits, fit_intercept)

    def expand_rows(self, outputs: NDArray, y: NDArray) -> tuple[NDArray, ...]:
        """Logits and probabilities; for one logit half of both, and the derivative of the half."""
        if self.n_logits > 1:
            return outputs[0], softmax(outputs.copy())[0]
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
        z, p = at_anchor
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
        z, p = at_anchor
        value = np.einsum("kn,ckn->cn", p, change)
        change += z
        there, of_anchor = exponentials(z[None].copy())
        top, total = exponentials(change)
        value += ((there + np.log(of_anchor)) - (top + np.log(total)))[:, 0]
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
    return size + np.log1p(np.exp(-2 * size))


def _mean_probability(mean: NDArray, sd: NDArray) -> tuple[NDArray, NDArray]:
    """Mean of p = sigmoid(z) and of p (1 - p) over z ~ N(mean, sd^2).

    A logistic variable less a wide normal one is nearly normal, of the sum of both variances. The
    error of p is below 0.002 where that takes over from quadrature.
    """
    nodes, weights = normal_nodes(1)
    each = expit(mean + sd * nodes.astype(mean.dtype))
    p, slope = weights @ each, weights @ (each * (1 - each))
    wide = sd > _WIDE_LOGIT
    if wide.any():
        scale = np.sqrt(sd[wide] ** 2 + np.pi**2 / 3)
        at = mean[wide] / scale
        p[wide], slope[wide] = ndtr(at), np.exp(-0.5 * at * at) / (scale * np.sqrt(2 * np.pi))
    return p.astype(mean.dtype, copy=False), slope.astype(mean.dtype, copy=False)


def _between(p: NDArray) -> NDArray:
    """diag(p) - p p^T of each row, (K, K, n), of probabilities (K, n)."""
    between = p[:, None] * -p
    between[range(len(p)), range(len(p))] += p
    return between
