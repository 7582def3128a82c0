"""The inner parts of the package that benchmarks take, built here and nowhere else."""

from __future__ import annotations

import time
from inspect import isfunction

import numpy as np
from numpy.typing import NDArray

from skbayes_sg import (
    diagnostics,
)
from skbayes_sg.chains.run import Length, iterate_steps, restarts, run_chain
from skbayes_sg.linalg import FULL, Dense
from skbayes_sg.models import Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.all_rows import AllRows
from skbayes_sg.posterior.control_variates import Expanded
from skbayes_sg.posterior.gaussian import Mode, find_mode, posterior_mean
from skbayes_sg.posterior.target import ChainTarget
from skbayes_sg.samplers import HMC, Sampler, State


def posterior_of(model, X: NDArray, y: NDArray, prior_precision) -> Posterior:
    """A model bound to data and a Gaussian prior."""
    return Posterior.of(model, X, y, prior_precision)


def logistic_posterior(X: NDArray, y: NDArray, prior_precision: float = 1.0) -> Posterior:
    """Binary logistic regression with the same prior on all coefficients and the intercept."""
    return posterior_of(Softmax(X.shape[1], 2), X, y, prior_precision)


def hmc_draws(posterior: Posterior, theta: NDArray, rng: np.random.Generator) -> NDArray:
    """Sixty draws of each chain from theta (chains, D), after burn-in: (chains, draws, D)."""
    sampler = HMC()
    state = sampler.init(posterior, theta, rng)
    return run_chain(sampler, posterior, state, Length(n_draws=60, burn_in=500, thin=5)).draws


def mode_of(posterior: Posterior, rng: np.random.Generator | None = None) -> Mode:
    """The mode as `fit` finds it, from zero."""
    rng = np.random.default_rng(0) if rng is None else rng
    return find_mode(posterior, np.zeros((1, posterior.dim)), rng)


def mode_at(theta: NDArray, curvature: NDArray) -> Mode:
    """A mode that is known: theta (D,) and the curvature (D, D) there."""
    return Mode(theta[None], np.nan, np.zeros((1, len(theta))), Dense(curvature), 0.0)


def exact_mode(
    posterior: Posterior, rng: np.random.Generator | None = None
) -> tuple[NDArray, NDArray]:
    """Mode (1, D) to rounding, by three Newton steps more, and the curvature (D, D) there."""
    theta = mode_of(posterior, rng).theta
    for _ in range(3):
        here = posterior.expand(theta, FULL)
        theta = theta + here.curvature.inverse().matvec(here.gradient)
    return theta, posterior.expand(theta, FULL).curvature.dense()


def low_rank_posterior(X, y: NDArray, precision: NDArray) -> ChainTarget:
    """The posterior of the default logistic regression, in the coordinates of its chains.

    precision : of each coefficient and the intercept, (D,)
    """
    model = Softmax(X.shape[1], 2)
    posterior = posterior_of(model, X, model.encode(y, X.dtype), precision)
    return ChainTarget(AllRows.low_rank(posterior, mode_of(posterior)))


def anchored(posterior: Posterior, mode: Mode) -> tuple[ChainTarget, float]:
    """The posterior with control variates near its mean, and the passes that the anchor took."""
    centre = posterior_mean(posterior, mode)
    return ChainTarget(Expanded.at(posterior, centre)), centre.passes


def begin(sampler: Sampler, posterior: Posterior, theta: NDArray, seed: int) -> State:
    """State of vectorised chains that start at theta (chains, D)."""
    theta = posterior.coordinates.transform(theta)
    return sampler.init(posterior, theta, np.random.Generator(np.random.SFC64(seed)))


def full_path(
    sampler: Sampler, posterior: Posterior, state: State, n_steps: int, thin: int
) -> tuple[NDArray, NDArray]:
    """Every `thin`-th point of a run from its first step on, (points, chains, D), and weights.

    The state is moved. The sampler learns in the first half of the run, as `chains.burn` has it,
    which keeps no points.
    """
    draws, weights, done = [], [], 0
    for until in (*restarts(n_steps // 2), n_steps // 2, n_steps):
        recorded = range(-done % thin, until - done, thin)
        for part in iterate_steps(sampler, posterior, state, until - done, recorded):
            draws.append(part.draws.copy())
            weights.append(part.weights.copy())
        if until < n_steps:
            (sampler.freeze if until == n_steps // 2 else sampler.restart)(state, posterior)
        done = until
    return np.concatenate(draws), np.concatenate(weights)


def learned_precisions(model) -> list[float]:
    """Prior precisions that variational EM learned, one for each block."""
    return list(model.prior_precision_blocks_.values())


class Stopwatch:
    """Seconds spent in the package's diagnostics, whichever of its public functions `fit` calls."""

    def __init__(self) -> None:
        self.seconds, self.running = 0.0, False
        for name, function in list(vars(diagnostics).items()):
            public = isfunction(function) and not name.startswith("_")
            if public and function.__module__ == diagnostics.__name__:
                setattr(diagnostics, name, self._timed(function))

    def _timed(self, function):
        def call(*args):
            if self.running:  # called by another one
                return function(*args)
            self.running, begin = True, time.perf_counter()
            result = function(*args)
            self.seconds, self.running = self.seconds + time.perf_counter() - begin, False
            return result

        return call
