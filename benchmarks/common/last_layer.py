"""laplace-torch's Laplace approximation of the last layer, around a fitted MLPClassifier."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.neural_network import MLPClassifier

try:
    import torch
    from laplace import Laplace
    from torch.utils.data import DataLoader, TensorDataset
except ImportError:
    INSTALLED = False
else:
    INSTALLED = True
_ROWS = 200  # of a batch, to learn from and to predict
_SAMPLES = 100  # draws of the logits of a row


class LastLayer:
    """Laplace at its defaults: Kronecker factors, and a prior precision by marginal likelihood."""

    def __init__(self, network: MLPClassifier, X: NDArray, y: NDArray) -> None:
        torch.manual_seed(0)
        layers: list = []
        for coef, intercept in zip(network.coefs_, network.intercepts_, strict=True):
            layer = torch.nn.Linear(*coef.shape)
            layer.weight.data, layer.bias.data = (
                _tensor(coef.T.copy()),
                _tensor(intercept),
            )
            layers += [torch.nn.ReLU(), layer] if layers else [layer]
        code = torch.tensor(np.searchsorted(network.classes_, y))
        self._laplace = Laplace(torch.nn.Sequential(*layers), "classification")
        self._laplace.fit(DataLoader(TensorDataset(_tensor(X), code), batch_size=_ROWS))
        self._laplace.optimize_prior_precision(method="marglik")

    def predict_proba(self, X: NDArray) -> NDArray:
        """Probabilities (n, classes) by the probit approximation."""
        batches = _tensor(X).split(_ROWS)
        p = np.concatenate([self._laplace(rows).numpy() for rows in batches])
        return p / p.sum(axis=1, keepdims=True)

    def draws(self, X: NDArray) -> NDArray:
        """Probabilities under draws of the last layer, (draws, n, classes)."""
        draw = self._laplace.predictive_samples
        batches = _tensor(X).split(_ROWS)
        return np.concatenate([draw(rows, n_samples=_SAMPLES).numpy() for rows in batches], axis=1)


def _tensor(X: NDArray):
    """In single precision."""
    return torch.tensor(X, dtype=torch.float32)
