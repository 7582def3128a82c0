"""Estimators whose posterior has many modes follow a stream of data with one chain."""

from __future__ import annotations

from typing import Any

import numpy as np

from skbayes_sg.chains.run import rows_touched
from skbayes_sg.estimators.base import BayesianEstimator
from skbayes_sg.estimators.fit_guard import warn
from skbayes_sg.inference.online_chain import ChainStream
from skbayes_sg.inference.request import run_length
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import Sampler

_CHAINS_OF_STREAM = 8  # one chain keeps as many draws as each of eight of a fit


class FollowsStream(BayesianEstimator):
    """An estimator whose `partial_fit` moves a chain: no normal distribution has many modes."""

    _stream: ChainStream | None = None

    def _stream_sampler(self) -> Sampler:
        """The sampler of a stream if the default one needs rows that it can draw again."""
        raise NotImplementedError

    def _follow_stream(self, posterior: Posterior, **attributes: Any) -> None:
        """Take the steps of a chunk; `attributes` are fitted attributes of the subclass."""
        if self._em() is not None:
            raise ValueError(
                "prior_precision: partial_fit does not learn it, as a stream passes once; learn it "
                "with fit on a part of the data, and give the numbers"
            )
        sampler, stream = self._sampler_of_stream(posterior), self._stream
        fresh = stream is None or not stream.goes_on_with(sampler, posterior)
        if fresh:
            stream = self._new_chain(sampler, posterior)
        assert stream is not None
        stream = stream.chunk(posterior)
        burn_in, thin = run_length(self.burn_in, self.thin, stream.run_length())
        if fresh:
            warn(
                [
                    f"partial_fit: the first {burn_in} steps of {stream.sampler.rows_per_step} "
                    "rows are burn-in (set burn_in); until then predictions use one point, not a "
                    "posterior"
                ]
            )
        most = self._draws_to_keep(posterior.dim, _CHAINS_OF_STREAM)
        stream = stream.follow(posterior, burn_in, thin, most, self._draw_dtype)
        self._keep_stream(stream, posterior, attributes)

    def _sampler_of_stream(self, posterior: Posterior) -> Sampler:
        asked = self._asked(self.sampler, posterior.dim)
        sampler = (asked or self._plan().first(posterior)).sampler
        if sampler.refuses_streams:
            if asked is not None:
                name = type(sampler).__name__
                raise ValueError(f"sampler: {name} {sampler.refuses_streams}")
            return self._stream_sampler()
        return sampler

    def _new_chain(self, sampler: Sampler, posterior: Posterior) -> ChainStream:
        """A chain at the mean of an earlier fit, or where a fit of the first chunk would start."""
        sampler.validate(posterior)
        start_seed, chain_seed = self._seed().spawn(2)
        if getattr(self, "draws_", np.empty(0)).shape[-1] == posterior.dim:
            theta = self.draws_.mean(axis=(0, 1), dtype=np.float64)[None]
        else:
            start = self._plan().start(posterior, np.random.default_rng(start_seed), 1, None)
            theta = start.theta if start.mode is None else start.mode.theta
        return ChainStream.begin(sampler, posterior, theta, np.random.default_rng(chain_seed))

    def _keep_stream(
        self, stream: ChainStream, posterior: Posterior, attributes: dict[str, Any]
    ) -> None:
        """Write all fitted attributes."""
        for name in ("burn_in_", "thin_"):  # of a fit
            self.__dict__.pop(name, None)
        self.__dict__.update(attributes)
        self.model_, self.sampler_, self._stream = posterior.model, stream.sampler, stream
        self.draws_ = np.stack(stream.kept or [stream.state.theta.copy()], axis=1)
        self.draw_weights_ = np.full(self.draws_.shape[1], 1 / self.draws_.shape[1])
        self.n_iter_ = stream.state.t
        touched = rows_touched(stream.sampler, [stream.state])
        self.n_passes_ = touched / posterior.n_total
        self._keep_learned(None)
        self._read_off(posterior)
        self.diagnostics_ = self._agreement(posterior, 0) if len(stream.kept) >= 8 else {}
