"""The engine of a fit: a sampler with numbers for all its parameters, and its chains.

An engine is frozen and holds no data: `Engine.target` makes what the chains move on from the engine
and a posterior. `warm_up` starts it, and `sample` runs it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.chains.run import Chain, Length
from skbayes_sg.inference.options import Fingerprint
from skbayes_sg.inference.precision import LearnedPrecision
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.gaussian import Mode
from skbayes_sg.posterior.one_by_one import OneByOneTarget, is_one_by_one
from skbayes_sg.posterior.targets import target_of
from skbayes_sg.priors.scales import Sampled
from skbayes_sg.samplers import Sampler, State
from skbayes_sg.samplers.base import RunLength
from skbayes_sg.samplers.target import Target


@dataclass(frozen=True, eq=False)
class Engine:
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
    expansion : Mode, optional
        The expansion of control variates, or of a distribution in closed form.
    learned : LearnedPrecision, optional
        The learned prior; of a sampled precision, one that is near. None: the prior is given.
    fingerprint : Fingerprint, optional
        That of this fit, for the next warm start.
    warnings : tuple of str
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
    expansion: Mode | None = None
    learned: LearnedPrecision | None = None
    fingerprint: Fingerprint | None = None
    warnings: tuple[str, ...] = ()
    last: NDArray = field(default_factory=partial(np.empty, (0, 0)))
    burnt: int = 0

    @property
    def sampled(self) -> Sampled | None:
        """Precisions of the prior, if they are sampled."""
        return None if self.learned is None else self.learned.sampled

    def target(self, posterior: Posterior) -> Target:
        """The target of the chains: the posterior under the learned prior, expanded if asked."""
        sampled, expansion, sampler = self.sampled, self.expansion, self.sampler
        if sampled is not None and sampler.rejects and is_one_by_one(posterior, sampled.scales):
            assert expansion is not None
            # in coordinates of the given precision, as at first
            return OneByOneTarget(posterior, sampled, expansion.theta)
        return target_of(self.under(posterior), expansion, sampler, sampled)

    @property
    def n_chains(self) -> int:
        """Chains of all groups."""
        n_chains = 0
        for state in self.states:
            n_chains += len(state.theta)
        return n_chains

    def under(self, posterior: Posterior) -> Posterior:
        """The posterior under the learned prior, if there is one."""
        return posterior if self.learned is None else self.learned.under(posterior)

    def steps(self, n_draws: int) -> Length:
        """What is left to run for so many draws."""
        return Length(n_draws, max(0, self.length.burn_in - self.burnt), self.length.thin)

    def at(self, chains: list[Chain]) -> Engine:
        """The engine where these chains stopped."""
        states, last = list[State](), list[NDArray]()
        for chain in chains:
            states.append(chain.state)
            last.append(chain.last)
        return replace(self, states=states, last=np.concatenate(last))
