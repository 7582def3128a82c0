"""Sampling along a stream of data: the engine of `partial_fit`."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skbayes_sg.chains import check_divergence
from skbayes_sg.estimators.base import BayesianEstimator, refuse_unstable, same_parameters
from skbayes_sg.estimators.checks import require_positive
from skbayes_sg.pilots import stable_alpha
from skbayes_sg.posterior import Posterior
from skbayes_sg.rows import Partition
from skbayes_sg.samplers import SGFS, SGLD, Sampler, State


def population(n_total: float | None, chunk: int, seen: int) -> float:
    """Rows that a chunk stands for: as given, or all seen so far."""
    if chunk < 2:
        raise ValueError(f"X must have at least 2 rows in each call of partial_fit, got n_samples = {chunk}")
    if n_total is None:
        return float(seen)
    require_positive("n_total", n_total, "give the number of rows of the population")
    if not chunk <= n_total <= 1e15:
        raise ValueError(f"n_total must lie between the chunk's rows, {chunk}, and 1e15, got {n_total}")
    return float(n_total)


class StreamingEstimator(BayesianEstimator):
    """One chain that takes a step per `batch_size` rows of each chunk and is never frozen.

    One chain only: chains fed the same rows coalesce where nothing is injected.
    """

    _stream: State | None = None
    _asked: Sampler
    _kept: list[NDArray]
    n_rows_seen_: int

    def _follow(self, posterior: Posterior) -> None:
        """Take the chunk's steps and keep the last `n_draws` points after burn-in, `thin` steps apart."""
        if self._em() is not None:
            raise ValueError(
                "prior_precision: partial_fit does not learn it, as a stream passes once; learn it with fit on a part "
                "of the data, and give the numbers"
            )
        sampler = self._resolve_sampler(posterior)
        if not sampler.follows_streams or sampler.variance_reduction is not None:
            if self.sampler is not None:
                name = type(sampler).__name__
                raise ValueError(
                    f"sampler: {name} needs rows that it can draw again; use SGFS or SGLD with partial_fit"
                )
            sampler = self._stream_sampler()
        if isinstance(sampler, SGLD) and isinstance(sampler.step_size, str):
            raise ValueError("sampler: SGLD needs a step_size with partial_fit, a number or a callable")
        if self._stream is not None:
            unchanged = same_parameters(sampler, self._asked) and self._stream.theta.shape[1] == posterior.dim
            self._stream = self._stream if unchanged else None  # another formula needs another memory
        if self._stream is None:
            self._asked = clone(sampler)
            stream = self._start_stream(sampler, posterior)
        else:
            sampler, stream = self.sampler_, self._stream
        stream.rows = Partition(posterior.n_rows, sampler.rows_per_step, stream.rows.rng, posterior.n_total)
        burn_in = sampler.auto_burn_in(stream) if self.burn_in == "auto" else int(self.burn_in)
        thin = sampler.auto_thin(stream) if self.thin == "auto" else int(self.thin)
        most = self._draws_to_keep(posterior.dim)
        if self._stream is None:
            self._stream, self._kept = stream, []
            warnings.warn(
                f"partial_fit: the first {burn_in} steps of {sampler.rows_per_step} rows are burn-in (set burn_in); "
                "until then predictions use one point, not a posterior",
                ConvergenceWarning,
                stacklevel=4,
            )
        for _ in range(stream.rows.n_parts):
            if stream.t >= burn_in and stream.t % thin == 0:
                self._kept = [*self._kept, sampler.draw(stream).astype(self._draw_dtype)][-most:]
            sampler.step(stream, posterior)
            check_divergence(sampler, stream, stream.theta)
        self.sampler_ = sampler
        self.draws_ = np.stack(self._kept or [stream.theta.copy()], axis=1)
        self.draw_weights_ = np.full(self.draws_.shape[1], 1 / self.draws_.shape[1])
        self.n_iter_ = stream.t
        self.n_passes_ = sampler.rows_touched(stream) / posterior.n_total
        self.diagnostics_ = self._of_draws(posterior) if len(self._kept) >= 8 else {}

    def _stream_sampler(self) -> Sampler:
        """Where the default sampler needs rows that it can draw again."""
        return SGFS()

    def _start_stream(self, sampler: Sampler, posterior: Posterior) -> State:
        """At the mean of an earlier fit, or at the mode of the first chunk."""
        sampler.validate(posterior)
        start_seed, chain_seed = self._seed().spawn(2)
        if getattr(self, "draws_", np.empty(0)).shape[-1] == posterior.dim:
            theta = self.draws_.mean(axis=(0, 1))[None]
        else:
            theta = self._start(posterior, np.random.default_rng(start_seed)).theta
        state = sampler.init(posterior, theta, np.random.default_rng(chain_seed))
        if isinstance(sampler, SGFS) and isinstance(sampler.alpha, str) and sampler.structure != "full":
            sampler.alpha = stable_alpha(sampler, posterior, state)
            sampler.start(state, posterior)
        refuse_unstable(sampler, posterior, state)
        return state
