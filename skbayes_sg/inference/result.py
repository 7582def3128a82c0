"""What a fit has found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import evenly_spaced
from skbayes_sg.diagnostics.batches import Batches
from skbayes_sg.inference.deferred import Deferred
from skbayes_sg.inference.engine import Engine
from skbayes_sg.inference.precision import LearnedPrecision
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.models import Model
from skbayes_sg.posterior.gaussian import Distribution
from skbayes_sg.priors import Prior
from skbayes_sg.priors.scales import Scales
from skbayes_sg.samplers import Sampler

_BLUR = 1e-3  # rounding error of a draw, in posterior standard deviations
_TELL_DIRECTIONS = 512  # draws, or two for each parameter


class Ran(NamedTuple):
    """What ran: None where nothing did, as in the stream of a regression."""

    sampler: Sampler | None = None
    reason: str | None = None
    n_iter: int | None = None
    burn_in: int | None = None
    thin: int | None = None


_NOTHING = Ran()


@dataclass(frozen=True, eq=False)
class Fit:
    """What a fit has found. It holds no rows.

    Attributes
    ----------
    engine : Engine, optional
        As its chains stopped: a warm start goes on from it. A compact copy has none.
    model : Model
    prior : Prior
        With the precisions that were learned, or the geometric means of those that were drawn.
    draws : array of shape (n_chains, n_draws, D)
    weights : array of shape (n_draws,)
        Weights of the draws, summing to 1.
    n_passes : float
        Rows read over rows.
    learned : LearnedPrecision, optional
        Precisions of the prior that were learned or sampled.
    scales, hyper_draws : Scales and array of shape (n_chains, n_draws, K), optional
        Hyperparameters, where they are sampled.
    batches : Batches, optional
        What batches of draws that were matched to their gradients say of mean and covariance, each
        by itself; hyperparameters that are coordinates of the chains come last.
    gaussian : Distribution, optional
        The normal distribution that stands for the posterior, or what computes it.
    figures : dict of str to float
    warnings : list of str
        About the chains.
    notes : list of str
        About what callbacks and a time limit left out.
    interrupted : bool
        Whether Ctrl-C ended it.
    ran : Ran
    values : dict
        Attributes of the estimator that were asked for, by name.
    """

    engine: Engine | None
    model: Model
    prior: Prior
    draws: NDArray
    weights: NDArray
    n_passes: float
    learned: LearnedPrecision | None
    scales: Scales | None = None
    hyper_draws: NDArray | None = None
    batches: Batches | None = None
    gaussian: Distribution | Deferred[Distribution] | None = None
    figures: dict[str, float] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()
    interrupted: bool = False
    ran: Ran = _NOTHING
    values: dict[str, Any] = field(default_factory=dict, init=False)

    def __getstate__(self) -> dict[str, Any]:
        """The state with draws in single precision where that holds them."""
        state = dict(vars(self))
        if self.draws.dtype == np.float64:
            with np.errstate(over="ignore"):
                single = self.draws.astype(np.float32)
            if (single == self.draws).all():
                state |= {"draws": single, "in_double": True}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if state.pop("in_double", False):
            state["draws"] = state["draws"].astype(np.float64)
        vars(self).update(state)

    @property
    def prior_precision_draws(self) -> NDArray:
        """Precision of each group under each draw, (n_chains, n_draws, groups)."""
        assert self.scales is not None
        assert self.hyper_draws is not None
        eta = self.hyper_draws
        ell = self.scales.log_precisions(eta.reshape(-1, eta.shape[-1]))
        return np.exp(ell).reshape(*eta.shape[:2], -1)


def held_in_single_precision(draws: NDArray) -> NDArray:
    """Draws in their precision, rounded to numbers of single precision where files hold these.

    Moments of them are as precise as before. They stay as they are where rounding would blur them,
    and where draws are too few to tell.
    """
    n_chains, n_draws, dim = draws.shape
    if n_chains * n_draws < 2 * dim:
        return draws
    return in_single_precision(draws).astype(draws.dtype)


def in_single_precision(draws: NDArray) -> NDArray:
    """Draws (chains, draws, D) rounded to float32, or as they are where that would blur them.

    It would if a mean is some ten thousand standard deviations away from zero, or if draws hardly
    move along a direction in which rounding does. A column far from zero has such a direction: its
    coefficient moves with the intercept, and outputs of rows with neither. With variance at least v
    of the scaled draws along each direction, errors of e in each parameter are at most e / sqrt(v)
    standard deviations. That is asked where there are twice as many draws as parameters.
    """
    if draws.dtype == np.float32:
        return draws
    with np.errstate(over="ignore", invalid="ignore"):
        spread, rounded = draws.std(axis=(0, 1)), draws.astype(np.float32)
        error = np.abs(rounded - draws).max(axis=(0, 1))
        if not ((error <= _BLUR * spread) & np.isfinite(error)).all():
            return draws
    moving = spread > 0
    flat, error = draws[..., moving].reshape(-1, moving.sum()), error[moving]
    n, dim = flat.shape
    if dim and has_matrix(dim) and n >= 2 * dim:
        spaced = flat[evenly_spaced(n, max(2 * dim, _TELL_DIRECTIONS))]
        scale = spaced.std(axis=0)
        spaced = (spaced - spaced.mean(axis=0)) / scale
        least = (float((error / scale).max()) / _BLUR) ** 2
        try:
            np.linalg.cholesky(spaced.T @ spaced / len(spaced) - least * np.eye(dim))
        except np.linalg.LinAlgError:
            return draws
    return rounded
