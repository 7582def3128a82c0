"""Coordinates in which the curvature at a point is about the identity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.coordinates import Coordinates, Kronecker, Whitened
from skbayes_sg.data import Batch
from skbayes_sg.layouts import FULL
from skbayes_sg.models import Softmax
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Posterior

FULL_CURVATURE_DIM = 1000
"""Largest D for which matrices of any model may be D x D in every step."""

_WIDEST = 4000
"""Largest number of columns of a model for which a square matrix of them is made."""

_LARGEST = 1 << 28  # numbers of all rows in single precision: a gigabyte


def many_outputs(posterior: Posterior) -> bool:
    """Whether Kronecker coordinates take the place of a D x D curvature."""
    model = posterior.model
    if not isinstance(model, Softmax) or model.binary or posterior.dim <= FULL_CURVATURE_DIM:
        return False
    c = model.columns().shape[1]
    in_memory = posterior.data.sample.n_rows == posterior.data.n_rows
    return in_memory and c <= _WIDEST and c * posterior.n_rows <= _LARGEST


def affordable(posterior: Posterior) -> bool:
    """Whether a curvature without Kronecker factors is worth its cost, once per fit."""
    if posterior.dim <= FULL_CURVATURE_DIM:
        return True
    fixed = posterior.model.fixed_inputs and not many_outputs(posterior)
    return fixed and posterior.dim <= _WIDEST and posterior.data.sample.is_dense


def whitening(posterior: Posterior, theta: NDArray) -> Coordinates:
    """Coordinates around theta (1, D), from one or two passes over the rows."""
    if many_outputs(posterior):
        return kronecker(posterior, theta)
    curvature = posterior.expand(theta, FULL).curvature.dense()
    assert isinstance(posterior.model, Predictor)
    return Whitened.of(posterior.model.columns(), theta, curvature)


def kronecker(posterior: Posterior, theta: NDArray) -> Kronecker:
    """The eigenvectors of the Kronecker factors of the Fisher, and its diagonal along them.

    The factors are the means over rows of the Fisher of the outputs, and of its trace times the
    outer product of the row's inputs (George et al. 2018, EKFAC; math.md#many-outputs).
    """
    model = posterior.model
    assert isinstance(model, Softmax)
    columns = model.columns()
    k, c = columns.shape
    scale = posterior.n_total / posterior.n_rows

    def factors(batch: Batch) -> tuple[NDArray, NDArray]:
        root, X = _root(model, theta, batch), _with_ones(batch.X, c)
        trace = np.einsum("lkn,lkn->n", root, root) / k
        return np.einsum("lkn,ljn->kj", root, root), (X * trace[:, None]).T @ X

    of_outputs, of_inputs = posterior.data.reduce(factors, c)
    V = np.linalg.eigh(of_outputs.astype(np.float64))[1]
    prior = posterior.prior.curvature(theta).diagonal()[columns]
    root = np.sqrt(prior.mean(axis=0))
    W = np.linalg.eigh(of_inputs.astype(np.float64) / np.outer(root, root))[1]
    U = W / root[:, None]

    def along(batch: Batch) -> tuple[NDArray]:
        turned = np.einsum("lkn,kj->ljn", _root(model, theta, batch), V.astype(batch.X.dtype))
        squares = (_with_ones(batch.X, c) @ U.astype(batch.X.dtype)) ** 2
        return (np.einsum("ljn,ljn->jn", turned, turned) @ squares,)

    (values,) = posterior.data.reduce(along, c)
    values = scale * values.astype(np.float64) + (V**2).T @ prior @ U**2
    return Kronecker(theta, columns, V, U, W.T * root, 1 / np.sqrt(values))


class BarePrior:
    """A normal prior of independent parameters, in terms of the bare model of whitened columns.

    Parameters
    ----------
    precision : array of shape (outputs, c)
    U : array of shape (c, c)
        From bare parameters of an output to those of the model.
    """

    def __init__(self, precision: NDArray, U: NDArray) -> None:
        same = precision[:1] if (precision == precision[0]).all() else precision
        self._forms = np.stack([(U.T * p) @ U for p in same]).astype(np.float32)

    def force(self, change: NDArray) -> NDArray:
        """Precision times a change of the bare parameters, (chains, D)."""
        c, n = self._forms.shape[-1], len(change)
        if len(self._forms) == 1:  # the same for all outputs
            return (change.reshape(-1, c) @ self._forms[0]).reshape(n, -1)
        blocks = np.einsum("nkc,kcd->nkd", change.reshape(n, -1, c), self._forms)
        return blocks.reshape(n, -1)


def _root(model: Softmax, theta: NDArray, batch: Batch) -> NDArray:
    """Square root of the weighted Fisher of the outputs of each row, (labels, outputs, n)."""
    root = model.residual_root(model.logits(theta, batch.X))[0]
    return root if batch.weight is None else root * np.sqrt(batch.weight)


def _with_ones(X: NDArray, c: int) -> NDArray:
    return X if X.shape[1] == c else np.concatenate([X, np.ones((len(X), 1), X.dtype)], axis=1)
