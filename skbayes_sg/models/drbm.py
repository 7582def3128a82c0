"""The discriminative restricted Boltzmann machine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.models.categorical import Categorical
from skbayes_sg.scores import Factor, Scores

_HIDDEN_VARIANCE = 10.0
_FREE = 0.01
_FACTORS = 100  # 2^100 is within float32


class DRBM(Categorical):
    """p(y = k | x) with binary hidden units summed out (Larochelle & Bengio 2008).

    ``log p(y | x) = d_y + sum_j softplus(o_jy) - logsumexp_k(d_k + sum_j softplus(o_jk))``,
    ``o_jk = c_j + U_jk + W_j x`` (MATH 3.10; Ahn et al. 2012, section 5.3)

    H + 1 directions change no probability of K classes, but for the hidden units' joint shift: the prior alone
    knows them.

    Parameters
    ----------
    n_features, n_classes : int
    n_hidden : int
    """

    def __init__(self, n_features: int, n_classes: int, n_hidden: int = 41) -> None:
        super().__init__(n_classes, n_classes)
        self.n_hidden = n_hidden
        self.shapes = {"W": (n_hidden, n_features), "U": (n_hidden, n_classes), "c": (n_hidden,), "d": (n_classes,)}

    @property
    def row_size(self) -> int:
        """Numbers that a row needs in memory: every pair of hidden unit and class, for every virtual label."""
        return self.n_hidden * self.n_logits * (3 + self.n_logits)

    @property
    def widest(self) -> int:
        return self.n_hidden * self.n_logits

    def units(self) -> list[NDArray]:
        """What belongs to each hidden unit; then the biases of the classes."""
        names = self.unpack(np.arange(self.dim))
        hidden = [np.concatenate([names["W"][j], names["U"][j], names["c"][j : j + 1]]) for j in range(self.n_hidden)]
        return [*hidden, names["d"]]

    def _rows_of_classes(self, name: str, block: NDArray) -> dict[str, NDArray]:
        """Columns of U."""
        return {f"{name}[:, {k}]": column for k, column in enumerate(block.T)}

    def reference_precision(self, input_square: float) -> NDArray:
        """Prior under which each part of a hidden unit's input has standard deviation 3; d is nearly free."""
        hidden = 1 / _HIDDEN_VARIANCE
        return self.spread({"W": input_square * hidden, "U": hidden, "c": hidden, "d": _FREE})

    def init(self, rng: np.random.Generator) -> NDArray:
        """Normal weights that keep the scale of unit inputs; zero biases."""
        n_hidden, n_features = self.shapes["W"]
        weights = rng.standard_normal(n_hidden * n_features) * n_features**-0.5
        classes = rng.standard_normal(n_hidden * self.n_logits) * n_hidden**-0.5
        return np.concatenate([weights, classes, np.zeros(n_hidden + self.n_logits)])[None]

    def logits(self, theta: NDArray, X: NDArray) -> NDArray:
        o, d = self._inputs(theta, X)
        return self._free_energy(o, 1 + _exp_minus_abs(o)) + d[..., None]

    def scores(self, theta: NDArray, X: NDArray, y: NDArray) -> Scores:
        """A_jk = sigmoid(o_jk) (1[y = k] - p_k) in U; its sum over k, times x, in W."""
        z, active = self._forward(theta, X)
        return self._factors(self.residual(z, y), active, X)

    def fisher(self, theta: NDArray, X: NDArray) -> Scores:
        """The same for the residuals of K virtual labels times sqrt(p_label)."""
        z, active = self._forward(theta, X)
        return self._factors(self.residual_root(z), active[:, None], X)

    def _inputs(self, theta: NDArray, X: NDArray) -> tuple[NDArray, NDArray]:
        """o (chains, hidden, classes, n) and d (chains, classes)."""
        blocks = self.unpack(theta.astype(X.dtype, copy=False))
        if X.ndim == 3:
            z = blocks["W"] @ X.swapaxes(1, 2)
        else:
            z = blocks["W"].reshape(-1, X.shape[1]).dot(X.T).reshape(len(theta), self.n_hidden, -1)
        z += blocks["c"][..., None]
        return z[:, :, None] + blocks["U"][..., None], blocks["d"]

    def _forward(self, theta: NDArray, X: NDArray) -> tuple[NDArray, NDArray]:
        """Logits, and the probability sigmoid(o_jk) that hidden unit j is on under class k."""
        o, d = self._inputs(theta, X)
        small = _exp_minus_abs(o)
        larger = 1 + small
        active = np.where(o > 0, 1, small)
        active /= larger
        return self._free_energy(o, larger) + d[..., None], active

    def _free_energy(self, o: NDArray, larger: NDArray) -> NDArray:
        """Sum over hidden units of softplus(o) = max(o, 0) + log(1 + e^-|o|), given 1 + e^-|o|; overwrites o.

        One logarithm of a product serves a hundred units: the factors lie between 1 and 2.
        """
        z = np.maximum(o, 0, out=o).sum(axis=1)
        for start in range(0, self.n_hidden, _FACTORS):
            z += np.log(larger[:, start : start + _FACTORS].prod(axis=1))
        return z

    def _factors(self, residual: NDArray, active: NDArray, X: NDArray) -> Scores:
        """Of residuals (chains, ..., classes, n) and `active` (chains, ..., hidden, classes, n), ... virtual labels."""
        A = active * residual[..., None, :, :]
        e = A.sum(axis=-2)
        A = A.reshape(*A.shape[:-3], -1, A.shape[-1])
        return Scores(Factor(e, X), Factor(A, None), Factor(e, None), Factor(residual, None))


def _exp_minus_abs(o: NDArray) -> NDArray:
    small = np.abs(o)
    np.negative(small, out=small)
    return np.exp(small, out=small)
