"""A sampler, its chains and its length, ready to run on a target."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.chains.run import Chain, Execution, Length, run_chains, seconds
from skbayes_sg.inference.learned_prior import Learned
from skbayes_sg.inference.request import Request, Signature
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.gaussian import Mode
from skbayes_sg.posterior.non_centred import Sampled
from skbayes_sg.posterior.targets import target_of
from skbayes_sg.samplers import Sampler, State
from skbayes_sg.samplers.base import RunLength
from skbayes_sg.samplers.target import Target


@dataclass(frozen=True, eq=False)
class Run:
    """Chains ready to burn in, or to go on, with numbers for all parameters and without data.

    Attributes
    ----------
    sampler : Sampler
        With numbers in place of "auto".
    reason : str
        Why this sampler runs.
    states : list of State
    length : RunLength
    passes : float
        Rows read so far over rows.
    anchor : Mode, optional
        Of control variates, or of a distribution in closed form.
    learned : Learned, optional
        The learned prior; of a sampled precision, one that is near.
    sampled : Sampled, optional
        Precisions of the prior, if they are sampled.
    signature : Signature, optional
        The fingerprint for the next warm start.
    warnings : list of str
        Warnings of the preparation.
    last : array of shape (n_chains, D)
        The points where the chains stopped, in the coordinates of the model, hyperparameters last.
    burnt : int
        Steps of the burn-in that are done.
    """

    sampler: Sampler
    reason: str
    states: list[State]
    length: RunLength
    passes: float
    anchor: Mode | None = None
    learned: Learned | None = None
    signature: Signature | None = None
    warnings: tuple[str, ...] = ()
    sampled: Sampled | None = None
    last: NDArray = field(default_factory=lambda: np.empty((0, 0)))
    burnt: int = 0

    def target(self, posterior: Posterior) -> Target:
        """The target of the chains: the posterior under the learned prior, anchored if asked."""
        return target_of(self.under(posterior), self.anchor, self.sampler, self.sampled)

    def under(self, posterior: Posterior) -> Posterior:
        """The posterior under the learned prior, if there is one."""
        return posterior if self.learned is None else self.learned.under(posterior)

    def sample(self, target: Target, n_draws: int, execution: Execution) -> list[Chain]:
        """Burn in, and draw; see `run_chains`."""
        return run_chains(self.sampler, target, self.states, self.steps(n_draws), execution)

    def seconds(self, target: Target, n_draws: int) -> float:
        """An estimate of the time on one core that burn-in and draws take."""
        return seconds(self.sampler, target, self.states, self.steps(n_draws).n_steps)

    def steps(self, n_draws: int) -> Length:
        """What is left to run for so many draws."""
        return Length(n_draws, max(0, self.length.burn_in - self.burnt), self.length.thin)

    def signed(self, signature: Signature | None) -> Run:
        """The run with its fingerprint, for a warm start."""
        return replace(self, signature=signature)

    def at(self, chains: list[Chain]) -> Run:
        """The run where these chains stopped."""
        last = np.concatenate([chain.last for chain in chains])
        return replace(self, states=[chain.state for chain in chains], last=last)

    def resumed(self, request: Request) -> Run:
        """The run from the present points of its chains, without burn-in if it is over."""
        length = request.length(self.sampler, self.states)
        if not self.last.size:
            return replace(self, length=length)
        return replace(self, length=RunLength(0, length.thin), passes=0.0, warnings=())
