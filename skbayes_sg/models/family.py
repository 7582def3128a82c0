"""Models whose rows depend on one linear predictor, and on parameters that all rows share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import Batch
from skbayes_sg.linalg import Dense, Operator
from skbayes_sg.linalg.scores import Scores, dense, outer_products
from skbayes_sg.models.base import OutputModel
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.models.quadrature import normal_nodes, symmetric_root


class Family(Predictor, OutputModel):
    """p(y | x) = f(y; eta, own) with ``eta = coef . x + intercept``.

    A family is its f: log density, gradient and curvature in the outputs of a row. These are eta,
    and the parameters that all rows share, `own`, such as the logarithm of a dispersion. Arrays of
    outputs are (chains, outputs, n), and in double precision: differences of special functions lose
    half of their digits.

    Parameters
    ----------
    n_features : int
    fit_intercept : bool, default=True
    """

    def __init__(self, n_features: int, fit_intercept: bool = True) -> None:
        self._set_blocks(1, n_features, fit_intercept, self.own)
        self.fit_intercept = fit_intercept

    # -- the family ---------------------------------------------------------------------------

    @abstractmethod
    def value(self, outputs: NDArray, y: NDArray) -> NDArray:
        """log f, (chains, n)."""

    @abstractmethod
    def residual(self, outputs: NDArray, y: NDArray) -> NDArray:
        """Gradient of log f over the outputs, (chains, outputs, n)."""

    @abstractmethod
    def expected(self, outputs: NDArray) -> NDArray:
        """Fisher information of the outputs, (chains, outputs, outputs, n)."""

    @abstractmethod
    def observed_at(self, outputs: NDArray, y: NDArray) -> NDArray:
        """Minus the second derivatives of log f, as `expected`."""

    # -- the model ----------------------------------------------------------------------------

    @property
    def widest(self) -> int:
        return 1 + len(self.own)

    def outputs(self, theta: NDArray, X: NDArray) -> NDArray:
        """eta and own parameters; rows are shared, or (chains, n, features)."""
        eta = self.linear_predictors(theta, X)
        if not self.own:
            return eta
        own = theta[:, -len(self.own) :, None].astype(X.dtype, copy=False)
        return np.concatenate([eta, np.broadcast_to(own, (*own.shape[:2], X.shape[-2]))], axis=1)

    def log_likelihood(self, theta: NDArray, X: NDArray, y: NDArray) -> NDArray:
        return self.value(self._forward(theta, X)[0], y).astype(X.dtype, copy=False)

    def value_and_residual(self, z: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
        return self.value(z, y), self.residual(z, y)

    def residual_root(self, z: NDArray) -> NDArray:
        """The columns of a root of the information of a row's outputs, as virtual labels."""
        information = self.expected(z)
        if self.widest == 1:
            return np.sqrt(information[:, 0])
        roots = symmetric_root(information.transpose(0, 3, 1, 2))
        return np.ascontiguousarray(roots.transpose(0, 3, 2, 1))

    def _forward(self, theta: NDArray, X: NDArray) -> tuple[NDArray, None]:
        """In double precision, which the special functions of a family need."""
        return self.outputs(theta, X).astype(np.float64, copy=False), None

    def _backward(self, error: NDArray, X: NDArray, kept: None) -> Scores:
        return self.times_inputs(error.astype(X.dtype, copy=False), X)

    def moment_of(self, between: NDArray, batch: Batch) -> Operator:
        """Of outputs that have inputs of their own: those of the shared parameters are ones."""
        if len(between) == 1 and not between.min() < 0:
            return super().moment_of(between, batch)
        X = dense(batch.X).astype(np.float64, copy=False)
        if self.fit_intercept:
            X = np.hstack([X, np.ones((len(X), 1))])
        weighted = between if batch.weight is None else between * batch.weight
        of_eta = X.T @ (weighted[0, 0][:, None] * X)
        mixed = X.T @ weighted[0, 1:].T
        moment = np.block([[of_eta, mixed], [mixed.T, weighted[1:, 1:].sum(axis=2)]])
        return Dense(0.5 * (moment + moment.T))

    def row_terms(
        self,
        theta: NDArray,
        root: NDArray | None,
        X: NDArray,
        y: NDArray,
        observed: bool = False,
    ) -> tuple[NDArray, NDArray]:
        outputs, _ = self._forward(theta, X)
        if root is None:
            information = self.observed_at(outputs, y) if observed else self.expected(outputs)
            return self.residual(outputs, y)[0], information[0]
        deviation = self.outputs(root.T, X)  # along each column, (D, outputs, n)
        spread = symmetric_root(outer_products(deviation))
        nodes, weights = normal_nodes(self.widest)
        at_nodes = (spread @ nodes.T).transpose(2, 1, 0) + outputs
        residual = self.residual(at_nodes, y)
        between = self.observed_at(at_nodes, y) if observed else self.expected(at_nodes)
        return np.tensordot(weights, residual, 1), np.tensordot(weights, between, 1)

    # -- expansion around an anchor -----------------------------------------------------------

    def _of(self, n_features: int, fit_intercept: bool) -> Self:
        return type(self)(n_features, fit_intercept)

    def expand_rows(self, outputs: NDArray, y: NDArray) -> tuple[NDArray, ...]:
        """Outputs, y, and value, residual and curvature of the row."""
        outputs = outputs.astype(np.float64, copy=False)
        value, residual = self.value(outputs, y)[0], self.residual(outputs, y)[0]
        return outputs[0], y, value, residual, self.observed_at(outputs, y)[0]

    def difference(self, change: NDArray, at_anchor: tuple[NDArray, ...]) -> NDArray:
        outputs, y, _, residual, _ = at_anchor
        after = self.residual(outputs.astype(np.float64) + change, y)
        return (after - residual).astype(change.dtype, copy=False)

    def remainder(self, change: NDArray, at_anchor: tuple[NDArray, ...]) -> NDArray:
        linear = np.einsum("kln,cln->ckn", at_anchor[-1], change)
        return linear + self.difference(change, at_anchor)

    def bregman_remainder(
        self, change: NDArray, at_anchor: tuple[NDArray, ...]
    ) -> tuple[NDArray, NDArray]:
        outputs, y, there, residual, _ = at_anchor
        after = outputs.astype(np.float64) + change
        value = self.value(after, y) - there - (residual * change).sum(axis=1)
        return value, (self.residual(after, y) - residual).astype(change.dtype, copy=False)


def once(own: NDArray) -> NDArray:
    """(..., 1) where it is the same for all rows of a chain: psi takes longer than to look."""
    return own[..., :1] if (own == own[..., :1]).all() else own
