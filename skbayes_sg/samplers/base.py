"""The base of all samplers: parameters of an update formula, which moves a state.

The whole package has one convention. Gradients are those of the log posterior, summed over rows. A
``step_size`` multiplies the gradient (eta of Karagiannis; Welling & Teh's epsilon is
``2 * step_size``).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from enum import Flag, auto
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.bases import BaseEstimator
from skbayes_sg.data.minibatches import Minibatches
from skbayes_sg.samplers.schedules import is_auto
from skbayes_sg.samplers.stationary import LinearStep, StationaryDistribution
from skbayes_sg.samplers.target import State, Target
from skbayes_sg.validation import require_integer

NEEDS_ROWS_AGAIN = "needs rows that it can draw again; use SGFS or SGLD with partial_fit"

WITHOUT_ANCHOR = 'use sampler="hmc", or sampler=None, which chooses by the data'


class NoExpansionError(ValueError):
    """There is no point around which the posterior could be expanded."""


class Need(Flag):
    """What a sampler may need of a posterior."""

    ROWS = auto()
    """Rows in memory, since each step reads some."""
    MODE = auto()
    """One mode, about which the posterior is expanded."""
    CLOSED_FORM = auto()
    """A closed form of its distribution."""
    ONE_PRECISION = auto()
    """One precision of the prior, if any is sampled: it is integrated out."""


class RunLength(NamedTuple):
    """Burn-in and thinning in steps."""

    burn_in: int
    """Steps before the first draw."""
    thin: int
    """Steps per kept draw."""


class Report(NamedTuple):
    """Cost, figures and warnings of a sampler after a run."""

    rows_touched: float
    """Rows read since the start, for all chains of the group."""
    figures: dict[str, float]
    """Entries for the estimator's `diagnostics_`."""
    warnings: list[str]
    """Warnings, with figure and remedy."""


class Sampler(BaseEstimator, ABC):
    """A transition that moves a group of vectorised chains.

    A new sampler writes `step`, and `start` if it keeps a memory; all else has defaults. The
    methods of every sampler stand in this order: `needs`, `validate`, `follows_precision`,
    `refusal`, `resolve_auto` (parameters); `start`, `step`, `restart`, `freeze`, `change_prior`,
    `draw` (motion); `run_length`, `stationary_distribution`, `report` (theory and figures).
    """

    variance_reduction: str | None = None
    """"control_variate": the sampler needs an anchored posterior."""
    batch_size: int | str  # of the samplers that draw minibatches
    replace: bool

    asked_for = True
    """Whether the user gave the sampler, and so has its parameters."""
    remedy_of_default = "scale the columns of X, or raise burn_in"
    """Remedy for both, where the user did not ask for the sampler: of every estimator."""
    follows_coordinates = False
    """Whether a linear change of coordinates changes nothing but the coordinates of the draws."""
    rejects = False
    """Whether steps may be rejected, so that draws are exact for any shape of the posterior."""
    draws_are_points = True
    """Whether draws are points of the chain, so that its Stein ratio holds for them."""

    @property
    def remedy(self) -> str:
        """Remedy when a chain diverges: of parameters of the sampler, or of every estimator."""
        return "take smaller steps"

    @property
    def bias_remedy(self) -> str:
        """The same when the Stein ratio is not 1."""
        return "take smaller steps"

    @property
    def advice(self) -> str:
        """What to do when a chain diverges, in parameters that the user has."""
        return self.remedy if self.asked_for else self.remedy_of_default

    @property
    def bias_advice(self) -> str:
        """What to do when the distribution is wrong, in parameters that the user has."""
        return self.bias_remedy if self.asked_for else self.remedy_of_default

    # -- parameters ---------------------------------------------------------------------------

    @property
    def needs(self) -> Need:
        """What a posterior must have; a fit asks for it before the first pass over the rows."""
        needs = Need.ROWS if self.variance_reduction is None else Need.MODE
        return needs if self.rejects else needs | Need.ONE_PRECISION

    @property
    def refuses_streams(self) -> str:
        """Why it cannot sample from a stream of data; empty if it can."""
        return "" if self.variance_reduction is None else NEEDS_ROWS_AGAIN

    @property
    def steepest_column(self) -> float:
        """Column steepness up to which its draws are right (math/control_variates.md#steepness)."""
        return np.inf

    @property
    def needs_pilots(self) -> bool:
        """Whether short runs must choose a parameter; see `tuning`."""
        return False

    @property
    def starts_at_mode(self) -> bool:
        """Whether a start away from the mode may never be forgotten in some direction."""
        return False

    @property
    def shares_rows(self) -> bool:
        """Whether the chains of a group use the same minibatch, in one matrix product."""
        return self.variance_reduction is not None

    @property
    def rows_per_step(self) -> int:
        """The batch size; 500 if it is "auto"."""
        return 500 if self.batch_size == "auto" else int(self.batch_size)

    def validate(self, target: Target) -> None:
        """Refuse parameters that are impossible, or impossible for this posterior.

        Raises
        ------
        ValueError, TypeError
            The message names the parameter and the remedy.
        """
        if not is_auto(self.batch_size):
            require_integer("batch_size", self.batch_size, 1)

    def follows_precision(self, target: Target) -> bool:
        """Whether a sampled precision of the prior is one of the coordinates of its chains.

        Else it is integrated out, or the sampler needs control variates.
        """
        return self.rejects

    def refusal(self, target: Target) -> str | None:
        """Why draws of this sampler would be wrong on a target; None if they would not."""
        return None

    def resolve_auto(self, target: Target) -> str:
        """Choose parameters that are "auto" for this target, in place, and say by what figures."""
        return ""

    # -- motion -------------------------------------------------------------------------------

    def init(self, target: Target, theta: NDArray, rng: np.random.Generator) -> State:
        """State of a group of chains at theta (chains, D), with streams spawned from `rng`.

        Whether parameters are possible is a question to `validate`, which a fit asks first.
        """
        normals, rows = rng.spawn(2)
        state = State(theta.copy(), normals, self.minibatches(target, rows, len(theta)))
        self.start(state, target)
        return state

    def minibatches(self, target: Target, rng: np.random.Generator, n_chains: int) -> Minibatches:
        """The stream of rows of a group of chains."""
        return target.minibatches(self.rows_per_step, self.replace, rng, n_chains)

    def start(self, state: State, target: Target) -> None:
        """Fill ``state.memory`` before the first step."""

    @abstractmethod
    def step(self, state: State, target: Target) -> None:
        """Move the group by one transition, in place.

        Leave the gradient that was used in ``state.gradient``.
        """

    def restart(self, state: State, target: Target) -> None:
        """Forget averages from far out, when a part of burn-in is over (see `run.restarts`)."""

    def freeze(self, state: State, target: Target) -> None:
        """Stop adapting, when burn-in is over."""

    def change_prior(self, state: State, target: Target) -> None:
        """Update the memory, when the posterior has another prior than at the last step."""

    def draw(self, state: State) -> tuple[NDArray, float]:
        """The draw to record, (chains, D), and its weight."""
        return state.theta, 1.0

    # -- distribution and report ------------------------------------------------------------------

    def run_length(self, state: State) -> RunLength:
        """Burn-in and thinning of ``burn_in="auto"`` and ``thin="auto"``.

        Burn-in takes 10 N/n steps. The first half forgets the start (to e^-10 at the
        autocorrelation time N/n of SGFS), the second half averages the matrices. A draw per fifth
        of N/n steps loses no effective draw.
        """
        passes = state.rows.noise_factor + 1
        return RunLength(max(1000, math.ceil(10 * passes)), max(1, round(passes / 5)))

    def stationary_distribution(self, state: State, target: Target) -> StationaryDistribution:
        """Stationary distribution of the present step in theory."""
        return LinearStep(
            None, unknown=f"{type(self).__name__} has no stationary distribution in closed form"
        )

    def report(self, state: State) -> Report:
        """Rows read, figures and warnings. A minibatch that chains share counts once."""
        n_streams = 1 if state.rows.shared else len(state.theta)
        return Report(state.t * state.rows.size * n_streams, {}, [])
