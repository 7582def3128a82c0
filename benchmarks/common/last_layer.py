"""laplace-torch's Laplace approximation of the last layer, around a fitted network."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.neural_network import MLPClassifier, MLPRegressor

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
_STEPS, _STEP = 100, 0.1  # of Adam, as in laplace-torch's example of a regression


class LastLayer:
    """Laplace at its defaults: Kronecker factors, and a prior precision by marginal likelihood."""

    def __init__(self, network: MLPClassifier, X: NDArray, y: NDArray) -> None:
        torch.manual_seed(0)
        code = torch.tensor(np.searchsorted(network.classes_, y))
        self._laplace = Laplace(_in_torch(network), "classification")
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


class LastLayerOfRegression:
    """Laplace at its defaults: noise and prior precision by marginal likelihood."""

    def __init__(self, network: MLPRegressor, X: NDArray, y: NDArray) -> None:
        torch.manual_seed(0)
        self._laplace = Laplace(_in_torch(network), "regression")
        rows = TensorDataset(_tensor(X), _tensor(y[:, None]))
        self._laplace.fit(DataLoader(rows, batch_size=_ROWS))
        logs = [torch.zeros(1, requires_grad=True) for _ in range(2)]
        optimiser = torch.optim.Adam(logs, lr=_STEP)
        for _ in range(_STEPS):
            optimiser.zero_grad()
            (-self._laplace.log_marginal_likelihood(*(log.exp() for log in logs))).backward()
            optimiser.step()

    def predict(self, X: NDArray) -> tuple[NDArray, NDArray]:
        """Mean and standard deviation of y, (n,) each."""
        mean, variance = (part.detach().numpy().ravel() for part in self._laplace(_tensor(X)))
        return mean, np.sqrt(variance + self._laplace.sigma_noise.item() ** 2)


def _in_torch(network: MLPClassifier | MLPRegressor):
    """The layers of a fitted network of relu units."""
    layers: list = []
    for coef, intercept in zip(network.coefs_, network.intercepts_, strict=True):
        layer = torch.nn.Linear(*coef.shape)
        layer.weight.data, layer.bias.data = _tensor(coef.T.copy()), _tensor(intercept)
        layers += [torch.nn.ReLU(), layer] if layers else [layer]
    return torch.nn.Sequential(*layers)


def _tensor(X: NDArray):
    """In single precision."""
    return torch.tensor(X, dtype=torch.float32)
