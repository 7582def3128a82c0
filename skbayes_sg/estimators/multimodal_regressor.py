"""Regressions whose posterior has many modes: their responses, and what chains say of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from skbayes_sg import diagnostics
from skbayes_sg.data import InMemory
from skbayes_sg.data.passes import row_blocks
from skbayes_sg.estimators.fit_guard import all_or_nothing
from skbayes_sg.estimators.mixture_predictions import MixturePredictions
from skbayes_sg.estimators.multimodal import Multimodal
from skbayes_sg.estimators.predictive import mixture_moments
from skbayes_sg.estimators.targets import BayesianRegressor
from skbayes_sg.inference.online_chain import population
from skbayes_sg.inference.request import Request
from skbayes_sg.models import GaussianMLP
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers.base import RunLength

_LEAST = RunLength(burn_in=5000, thin=100)


class MultimodalRegressor(MixturePredictions, Multimodal, BayesianRegressor):
    """A network with normal noise, of one response or several."""

    noise_variance_: float | NDArray
    _default_temperature = 1.0

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _make_model(self, n_features: int, centre: NDArray, scale: NDArray) -> GaussianMLP:
        """The model of responses about `centre`, in units of `scale`."""
        raise NotImplementedError

    def _in_modes(self) -> bool:
        return self.sampler is None and self._em() is None

    def _request(self, dim: int) -> Request:
        """With chains that have time to leave modes in which the noise is too small."""
        request = super()._request(dim)
        return request._replace(least=_LEAST) if self._in_modes() else request

    # -- data ---------------------------------------------------------------------------------

    def _validate_pair(self, X, y, reset: bool) -> tuple[Any, NDArray]:
        X, y = super()._validate_pair(X, y, reset)
        n_responses = 1 if y.ndim == 1 else y.shape[1]
        if not reset and n_responses != self.model_.n_responses:
            raise ValueError(
                f"y has {n_responses} column(s), but {type(self).__name__} was fitted to "
                f"{self.model_.n_responses}"
            )
        return X, y

    def _bind(
        self, X, y: NDArray, sample_weight: ArrayLike | None, n_total: float | None = None
    ) -> Posterior:
        streaming = n_total is not None
        X, y, weight = self._of_weight(X, y, sample_weight, n_total)
        data = InMemory.of(X, y.reshape(len(y), -1), weight, n_total)
        posterior = self._scaled(data, streaming)
        if self._merges(posterior, streaming):
            posterior = self._scaled(data.merged(), streaming)
        return self._tempered(posterior, streaming)

    def _scaled(self, data: InMemory, streaming: bool) -> Posterior:
        """The posterior given responses by their mean and spread; a stream keeps those it has."""
        if streaming and hasattr(self, "model_"):
            centre, scale = self.model_.centre, self.model_.scale
        else:
            centre = np.average(data.y, axis=0, weights=data.weight)
            square = np.average((data.y - centre) ** 2, axis=0, weights=data.weight)
            scale = np.where(np.ptp(data.y, axis=0) > 0, np.sqrt(square), 1.0)
        model = self._make_model(data.n_features, centre, scale)
        data = replace(data, y=model.encode(data.y, data.X.dtype))
        return Posterior(model, data, self._prior(model, data, streaming=streaming))

    @all_or_nothing
    def partial_fit(self, X, y, sample_weight=None, n_total: float | None = None):
        """Move one chain along a stream of data, one step per `batch_size` rows of this chunk.

        See `BayesianMLPClassifier.partial_fit`. The first chunk says what mean and spread of y are,
        so it must not be tiny.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            At least two rows.
        y : array-like of shape (n_rows,) or (n_rows, n_responses)
        sample_weight : array-like of shape (n_rows,), optional
            Factor of each row's log likelihood; an integer weight is a repetition.
        n_total : float, optional
            Rows of the population: the scale of the likelihood, the same in every call. By default
            the rows seen so far, this chunk included.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data or parameters are impossible; raised before any step.
        FloatingPointError
            If the chain diverges.
        """
        self._validate_parameters()
        X, y = self._validate_pair(X, y, reset=not hasattr(self, "model_"))
        seen = getattr(self, "n_samples_seen_", 0) + X.shape[0]
        total = population(n_total, X.shape[0], seen)
        self._follow_stream(self._bind(X, y, sample_weight, total), n_samples_seen_=seen)
        return self

    # -- draws --------------------------------------------------------------------------------

    @property
    def noise_variance_samples_(self) -> NDArray:
        """Draws of the noise variance, (n_chains, n_draws), or (n_chains, n_draws, n_responses)."""
        log_noise = self.model_.unpack(self.draws_)["log_noise"].astype(np.float64)
        noise = np.exp(log_noise) * self.model_.scale**2
        return noise if self.model_.n_responses > 1 else noise[..., 0]

    def _read_off(self, posterior: Posterior) -> None:
        super()._read_off(posterior)
        noise = diagnostics.moments(self.noise_variance_samples_, self.draw_weights_)[0]
        self.noise_variance_ = noise if self.model_.n_responses > 1 else float(noise)

    def _of_rows(self, parts: list[NDArray]) -> NDArray:
        """One axis more where there are several responses, which each row has one after another."""
        found, n_responses = super()._of_rows(parts), self.model_.n_responses
        return found.reshape(-1, n_responses, *found.shape[1:]) if n_responses > 1 else found

    def _under_draws(self, X) -> NDArray:
        """That y is below its predictive mean less a standard deviation, and plus one."""
        draws = self._counting_draws()
        flat, found = draws.reshape(-1, draws.shape[-1]), []
        for outputs in self._outputs(X, flat):
            mean, sd = mixture_moments(self.model_, outputs, np.full(len(flat), 1 / len(flat)))
            ends = mean - sd, mean + sd
            found.append(np.stack([self.model_.distribution(y, outputs) for y in ends], axis=1))
        return np.concatenate(found, axis=2).reshape(*draws.shape[:2], 2, -1)

    def _gain(self, p: NDArray, few: Posterior, posterior: Posterior) -> float:
        """Mean log density above that of a normal distribution of the mean and spread of y."""
        draws, weights = self._flat_draws(np.dtype(np.float64))
        rows, model = few.data.sample, self.model_
        blocks = row_blocks(len(draws), 8 * model.row_size * rows.n_rows)
        each = [model.log_likelihood(draws[some], rows.X, rows.y) for some in blocks]
        own = logsumexp(np.concatenate(each), axis=0, b=weights[:, None])
        square = np.square(rows.y, dtype=np.float64) + np.log(2 * np.pi * model.scale**2)
        return float(np.average(own + 0.5 * square.sum(axis=1), weights=rows.weight))
