"""The discriminative restricted Boltzmann machine."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.linalg.scores import Factor, Scores
from skbayes_sg.models.base import FREE, HIDDEN_VARIANCE, Network, NullDirections
from skbayes_sg.models.mlp import times_rows
from skbayes_sg.models.softmax import Categorical, softmax


class DRBM(Categorical, Network):
    """p(y = k | x) with binary hidden units summed out (Larochelle & Bengio 2008).

    ``log p(y | x) = d_y + sum_j softplus(o_jy) - logsumexp_k(d_k + sum_j softplus(o_jk))``,
    ``o_jk = c_j + U_jk + W_j x`` (math/networks.md#drbm; Ahn et al. 2012, section 5.3)

    H + 1 directions change no probability; the prior alone determines them.

    Parameters
    ----------
    n_features, n_classes : int
    n_hidden : int
    """

    def __init__(self, n_features: int, n_classes: int, n_hidden: int = 41) -> None:
        self.n_classes = self.n_logits = n_classes
        self.n_hidden = n_hidden
        self.shapes = {
            "W": (n_hidden, n_features),
            "U": (n_hidden, n_classes),
            "c": (n_hidden,),
            "d": (n_classes,),
        }
        self.axes = {
            "W": ("hidden", "feature"),
            "U": ("hidden", "class"),
            "c": ("hidden",),
            "d": ("class",),
        }

    @property
    def row_size(self) -> int:
        """Numbers that a row needs: pairs of hidden unit and class, for every virtual label."""
        return self.n_hidden * self.n_logits * (3 + self.n_logits)

    @property
    def widest(self) -> int:
        return self.n_hidden * self.n_logits

    def null_directions(self) -> list[NullDirections]:
        """U_j. + a against c_j - a for each hidden unit, and a shift of d."""
        blocks = self.unpack(np.arange(self.dim))
        of_hidden = np.column_stack([blocks["U"], blocks["c"]])
        signs = np.append(np.ones(self.n_logits), -1.0)
        return [
            NullDirections(of_hidden, signs),
            NullDirections(blocks["d"][None], np.ones(self.n_logits)),
        ]

    def plus_known(self, outputs: NDArray, X: NDArray) -> NDArray:
        """Outputs with offsets; of two classes the second logit has the log odds."""
        super().plus_known(outputs[:, -self.n_offsets :], X)
        return outputs

    def units(self) -> list[NDArray]:
        """Coordinates of each hidden unit, then the biases of the classes."""
        names = self.unpack(np.arange(self.dim))
        hidden = [
            np.concatenate([names["W"][j], names["U"][j], names["c"][j : j + 1]])
            for j in range(self.n_hidden)
        ]
        return [*hidden, names["d"]]

    def _rows_of_classes(self, name: str, block: NDArray) -> dict[str, NDArray]:
        """Columns of U."""
        return {f"{name}[:, {k}]": column for k, column in enumerate(block.T)}

    def reference_precision(self, input_square: float) -> NDArray:
        """Precision under which each part of a hidden unit's input has standard deviation 3.

        The prior of d is nearly flat.
        """
        hidden = 1 / HIDDEN_VARIANCE
        return self.spread({"W": input_square * hidden, "U": hidden, "c": hidden, "d": FREE})

    def init(self, rng: np.random.Generator) -> NDArray:
        """Normal weights that keep the scale of inputs of unit size; zero biases."""
        n_hidden, n_features = self.shapes["W"]
        weights = rng.standard_normal(n_hidden * n_features) * n_features**-0.5
        classes = rng.standard_normal(n_hidden * self.n_logits) * n_hidden**-0.5
        return np.concatenate([weights, classes, np.zeros(n_hidden + self.n_logits)])[None]

    def fisher_diagonal(self, theta: NDArray, X: NDArray) -> Scores:
        """One virtual label in place of K.

        With s_jk = sigmoid(o_jk) it gives p_k (1 - p_k) s_jk^2 for U, and for W x^2 times the
        variance of s_jk under p.
        """
        z, active = self._forward(theta, X)
        p = softmax(z)
        spread = active - np.einsum("chkn,ckn->chn", active, p)[:, :, None]
        e = np.sqrt(np.einsum("chkn,chkn,ckn->chn", spread, spread, p))
        root = np.sqrt(p * (1 - p))
        active *= root[:, None]
        A = active.reshape(len(theta), -1, active.shape[-1])
        X = self.features(X)
        return Scores(Factor(e, X), Factor(A, None), Factor(e, None), Factor(root, None))

    def _forward(self, theta: NDArray, X: NDArray) -> tuple[NDArray, NDArray]:
        """Logits, and the probability sigmoid(o_jk) that hidden unit j is on under class k.

        t = tanh(o / 2) cannot overflow, and gives sigmoid(o) = (1 + t) / 2 and softplus(o) = o / 2
        + |o / 2| + log 2 - log(1 + |t|). The factors 1 + |t| lie between 1 and 2, so one logarithm
        of a product serves a hundred units.
        """
        blocks = self.unpack(theta.astype(X.dtype, copy=False))
        z = times_rows(0.5 * blocks["W"], self.features(X))
        z += 0.5 * blocks["c"][..., None]
        o = z[:, :, None] + 0.5 * blocks["U"][..., None]  # half of it
        active = np.tanh(o)
        o += np.abs(o)
        z = o.sum(axis=1)
        factors = np.abs(active, out=o)
        factors += 1
        for start in range(0, self.n_hidden, 100):  # 2^100 is within float32
            z -= np.log(factors[:, start : start + 100].prod(axis=1))
        z += (blocks["d"] + self.n_hidden * math.log(2.0))[..., None]
        active += 1
        active *= 0.5
        return self.plus_known(z, X), active

    def _backward(self, error: NDArray, X: NDArray, kept: NDArray) -> Scores:
        """A_jk = sigmoid(o_jk) (1[y = k] - p_k) in U; its sum over k, times x, in W."""
        if error.ndim == 3:
            A = np.multiply(kept, error[:, None], out=kept)
        else:  # of virtual labels
            A = kept[:, None] * error[:, :, None]
        e = A.sum(axis=-2)
        A = A.reshape(*A.shape[:-3], -1, A.shape[-1])
        X = self.features(X)
        return Scores(Factor(e, X), Factor(A, None), Factor(e, None), Factor(error, None))
