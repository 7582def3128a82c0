"""What rounds of burn-in tell: where coordinates, precision or expansion are to be next.

Each update is asked after a round, and gives the next `Start`, or None where chains may go on from
where they are (`warm_up`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.chains.run import (
    Chain,
    burn_chain,
    cut_short,
    elements_of_step,
    in_parallel,
    rows_touched,
    start_chains,
)
from skbayes_sg.inference.diagnose import THROWN_RATIO
from skbayes_sg.inference.engine import Engine
from skbayes_sg.inference.precision import (
    BOUNDS,
    NO_INFORMATION,
    LearnedPrecision,
    as_learned,
)
from skbayes_sg.inference.start import Start
from skbayes_sg.inference.variational_em import (
    ControlVariate,
    DiagonalControlVariate,
    MatrixControlVariate,
    StochasticEM,
    VariationalEM,
    fit_prior,
)
from skbayes_sg.linalg.coordinates import LowRank
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.gaussian import InitialPoint, Mode, distance
from skbayes_sg.posterior.one_by_one import OneByOneTarget
from skbayes_sg.priors.scales import OnePrecision, Sampled, Scales
from skbayes_sg.samplers.target import ModelPosterior, Target

SELF_AVERAGING = 10_000
"""Parameters of which one point has about the mean square of many."""
THROWN = "control variates threw the chains while the prior was learned"
_FARTHEST = 1.5  # widths of a hyperparameter from its centre, as far as the curves of it reach
_NEAR = 0.3  # of log precision: widths of coordinates then differ by a seventh at most
_SHORTEST_MOVE, _LONGEST_MOVE = 0.3, 1.0  # of log precision at first, and at all
_FLATTEST = 0.05  # slope of a Newton step
_LONGER = 4  # times the burn-in of a sampler, where chance hides a move
_SHORTER = 0.25  # of it, for trajectories while log precision still moves
_UNMOVED = 0.1  # squared posterior standard deviations, for each parameter


class Update(ABC):
    """What is told by rounds of burn-in, each from a start of its own."""

    rounds = 4
    """Their number, at most."""

    @abstractmethod
    def steps(self, engine: Engine, target: Target) -> int:
        """Steps of burn-in until the next look; 0 where nothing is left to tell."""

    def burn(
        self, start: Start, engine: Engine, target: Target, n_steps: int
    ) -> tuple[Engine, Sequence[NDArray]]:
        """The engine after so many steps, and points of its chains in the second half of them.

        The points (points, D) of each chain are in the coordinates of the model.
        """
        apart = engine.sampler.run_length(engine.states[0]).thin  # nearer points tell little more
        burn = partial(burn_chain, engine.sampler, target, n_steps, keep=apart)
        elements = elements_of_step(target, engine.states)
        chains: list[Chain] = in_parallel(burn, engine.states, start.options.n_jobs, elements)
        burnt = replace(engine.at(chains), burnt=n_steps)
        cut_short("steps of burn-in", burnt.states[0].t - engine.states[0].t, n_steps)
        read = rows_touched(engine.sampler, burnt.states)
        read -= rows_touched(engine.sampler, engine.states)
        passes = engine.passes + read / start.posterior.data.n_rows
        fewest = min(chain.draws.shape[1] for chain in chains)  # groups differ in time
        points = [points for chain in chains for points in chain.draws[:, :fewest]]
        return replace(burnt, passes=passes), points

    @abstractmethod
    def __call__(
        self, start: Start, burnt: Engine, target: Target, points: Sequence[NDArray]
    ) -> Start | None:
        """The next start, or None where these steps were burn-in."""


class Recentre(Update):
    """Coordinates with curves, about where chains have a sampled precision.

    On a posterior far from normal no normal distribution tells where it is.
    """

    def steps(self, engine: Engine, target: Target) -> int:
        if engine.sampled is None or target.scale_move is None or engine.length.burn_in < 2:
            return 0
        # the burn-in that the sampler asks for
        return min(engine.length.burn_in, engine.sampler.run_length(engine.states[0]).burn_in)

    def __call__(
        self, start: Start, burnt: Engine, target: Target, points: Sequence[NDArray]
    ) -> Start | None:
        learned, sampled = burnt.learned, burnt.sampled
        assert learned is not None
        assert sampled is not None
        scales = sampled.scales
        late = np.concatenate([of_chain[len(of_chain) // 2 :] for of_chain in points])
        eta = late[:, -scales.dim :]
        centre = eta.mean(axis=0)
        if (np.abs(centre - sampled.centre) <= _FARTHEST * sampled.width).all():
            return None
        sampled = Sampled(scales, centre, np.maximum(sampled.width, eta.std(axis=0)))
        ell = scales.log_precisions(centre[None])
        values = np.append(learned.path, np.exp(ell), axis=0)
        prior = scales.given(start.posterior.prior, ell[0])
        learned, initial = as_learned(sampled, prior, values, learned.uninformed), None
        if start.path is not None:
            start.path.found(float(centre[0]), float(sampled.width[0]))
            initial = start.path.initial(float(centre[0]))
        return start.after(burnt, learned=learned, initial=initial)


class AtMeans(Update):
    """Coordinates of one coefficient at a time, about the means of the chains.

    Chains start from the prior, and each of some rounds tells where the coordinates of the next are
    to be taken. Those of groups stay where their precisions do.
    """

    def steps(self, engine: Engine, target: Target) -> int:
        return engine.length.burn_in if engine.length.burn_in >= 2 else 0

    def __call__(
        self, start: Start, burnt: Engine, target: Target, points: Sequence[NDArray]
    ) -> Start | None:
        sampled, mean = burnt.sampled, np.concatenate(points).mean(axis=0)[None]
        assert sampled is not None
        theta, eta = np.split(mean, [start.posterior.dim], axis=1)
        has_groups = isinstance(target, OneByOneTarget) and target.has_groups
        if has_groups and (np.abs(eta - sampled.centre) < _NEAR).all():
            return None
        learned = at_eta(sampled.scales, start.posterior, eta)
        return start.after(burnt, learned=learned, initial=InitialPoint(theta, None))


def at_eta(scales: Scales, posterior: Posterior, eta: NDArray) -> LearnedPrecision:
    """Sampled precisions about hyperparameters eta, (1, K)."""
    ell = scales.log_precisions(eta)
    prior = scales.given(posterior.prior, ell[0])
    sampled = Sampled(scales, eta[0], np.ones(scales.dim))
    return as_learned(sampled, prior, np.exp(ell), np.zeros(ell.size, dtype=bool))


class Evidence(Update):
    """The precision under which the rows are most probable, as chains tell it.

    With theta counted from the prior's mean, and f the gradient of the log likelihood, the slope of
    the log evidence over rho = log lambda is P/2 - lambda/2 E||theta||^2 = -E[theta . f]/2 (by
    parts). What rows say nothing of has no part in the latter, nor in gamma = lambda |m|^2 -
    E[theta . f], the number of coefficients that they know. A step of EM is this slope over P / 2,
    which is next to nothing of collinear columns. MacKay's (1992), of log(gamma / lambda |m|^2), is
    Newton's where gamma does not depend on lambda; the next ones are Newton's by the secant.
    Source: math/priors.md#a-sampled-precision.

    Parameters
    ----------
    scales : OnePrecision
    posterior : Posterior
        Under the first precision.

    Attributes
    ----------
    posterior : Posterior
        Under the present one.
    learned : LearnedPrecision
    """

    rounds = 12

    def __init__(self, scales: Scales, posterior: Posterior) -> None:
        self.scales, self.posterior = scales, posterior
        self._weights = scales.weights(posterior.prior)
        self._shape, self._rate = 2 * OnePrecision.shape, 2 * OnePrecision.shape / scales.unit
        self._rho, self._moves = [float(np.log(scales.of(posterior.prior)[0]))], list[float]()
        self._step, self._width, self._longer, self._settled = 0.0, 0.0, 1, False
        self._uninformed = np.zeros(1, bool)

    def steps(self, engine: Engine, target: Target) -> int:
        # Trajectories forget in a few where they start. The last round is burn-in, and all of it.
        short = engine.sampler.rejects and not self._settled
        burn_in = engine.sampler.run_length(engine.states[0]).burn_in
        return int((_SHORTER if short else 1) * self._longer * burn_in)

    def move(self, posterior: Posterior, points: Sequence[NDArray]) -> tuple[float, float, float]:
        """MacKay's move of log precision, its error by chance, and gamma.

        `points` (points, D) of each chain are under the present precision.
        """
        # Means of different chains are independent, so that chance has no part in lambda |m|^2,
        # the mean of one times the force of another.
        prior, n_chains, (n_points, dim) = posterior.prior, len(points), points[0].shape
        virial, means, forces = np.empty((n_chains, n_points)), *np.empty((2, n_chains, dim))
        for chain, theta in enumerate(points):
            force = posterior.split.full_gradient(theta) - prior.gradient(theta)
            away, force = theta - prior.mean, np.where(self._weights > 0, force, 0.0)
            virial[chain] = -np.einsum("nd,nd->n", away, force)
            means[chain], forces[chain] = away.mean(axis=0), force.mean(axis=0)
        product = means.sum(axis=0) @ forces.sum(axis=0) - np.sum(means * forces)
        of_mean = float(product) / (n_chains * (n_chains - 1))
        gamma = max(float(virial.mean()) + of_mean, 0.0) + self._shape  # the hyperprior's as well
        of_mean = max(of_mean, 0.0) + self._rate * np.exp(self._rho[-1])
        halves = np.concatenate([half.mean(axis=1) for half in np.array_split(virial, 2, axis=1)])
        chance = 2 * float(halves.std(ddof=1)) / np.sqrt(len(halves)) / gamma
        return float(np.log(gamma / of_mean)), chance, gamma

    def __call__(
        self, start: Start, burnt: Engine, target: Target, points: Sequence[NDArray]
    ) -> Start | None:
        posterior, expansion, rho = start.posterior, burnt.expansion, self._rho
        assert expansion is not None
        move, chance, gamma = self.move(posterior, points)
        self._moves.append(move)

        # A first step is MacKay's, and long enough to tell a slope. Half of what the rows leave
        # open of rho does not matter, and longer runs tell what chance hides.
        first = len(self._moves) == 1
        slope = -1.0 if first else float(np.polyfit(rho[-3:], self._moves[-3:], 1)[0])
        slope = max(-1.0, min(slope, -_FLATTEST))
        ahead = np.clip(-move / slope, -_LONGEST_MOVE, _LONGEST_MOVE)
        ahead = np.copysign(max(abs(ahead), _SHORTEST_MOVE * first), ahead)
        self._step = float(np.clip(rho[-1] + ahead, *np.log(BOUNDS))) - rho[-1]
        self._width = (-0.5 * gamma * slope) ** -0.5
        if first:
            of_prior = posterior.prior.curvature(expansion.theta).diagonal()
            share = 1 - of_prior / expansion.curvature.diagonal()
            self._uninformed = np.array([share[self._weights > 0].max() < NO_INFORMATION])
        enough = max(0.05, 0.5 * self._width)
        told = chance < -slope * enough or self._longer == _LONGER
        stays = abs(self._step) < enough and told and not first
        if stays and (self._settled or not burnt.sampler.rejects):
            return None
        self._settled = stays
        self._longer = self._longer if told else min(_LONGER, 2 * self._longer)
        rho.append(rho[-1] + self._step)
        prior = self.scales.given(posterior.prior, np.array(rho[-1:]))
        self.posterior = posterior.with_prior(prior)
        near = target.coordinates if isinstance(target.coordinates, LowRank) else None
        initial = InitialPoint(expansion.theta, None, near)
        return start.after(burnt, posterior=self.posterior, initial=initial)

    @property
    def learned(self) -> LearnedPrecision:
        path, precision = np.exp(np.array(self._rho))[:, None], self.posterior.prior.precision
        return LearnedPrecision(
            self.scales.labels,
            path[-1],
            path,
            precision,
            self._uninformed,
            change=np.array([abs(self._step)]),
            uncertainty=np.array([self._width]),
        )


class ByEM(Update):
    """The precision that chains learn by variational EM, and the expansion that follows it.

    Without an expansion that takes one round. With one, rounds go on until it stays.

    Parameters
    ----------
    em : VariationalEM
    start : Start

    Attributes
    ----------
    posterior : Posterior
        Under the present precision.
    learned : LearnedPrecision or None
        None before a round whose chains were not thrown.
    """

    def __init__(self, em: VariationalEM, start: Start) -> None:
        self.em, self.posterior, self._first = em, start.posterior, start.choice
        self.learned: LearnedPrecision | None = None
        self._expansion: Mode | None = None  # of the last round whose chains were not thrown
        # a matrix where there is one mode and the matrix is affordable
        model = self.posterior.model
        self._kind: Callable[[ModelPosterior, NDArray], ControlVariate] = MatrixControlVariate
        if not (model.fixed_inputs and has_matrix(self.posterior.dim)):
            self._kind = partial(DiagonalControlVariate, null=model.null_directions())

    def steps(self, engine: Engine, target: Target) -> int:
        learned = self.learned
        moves = learned is None or (learned.excess > 1).any() or self.has_moved(engine.expansion)
        return self.em.n_updates if moves else 0

    def has_moved(self, expansion: Mode | None) -> bool:
        """Whether an expansion is elsewhere than that of the last round."""
        before = self._expansion
        return before is None or (expansion is not None and distance(before, expansion) > _UNMOVED)

    def burn(
        self, start: Start, engine: Engine, target: Target, n_steps: int
    ) -> tuple[Engine, Sequence[NDArray]]:
        """The engine after the updates of the precision, which are told in place of points."""
        options, states, sampler = start.options, engine.states, engine.sampler
        few = -(-SELF_AVERAGING // (target.dim * len(states)))  # chains of each group
        if few < len(states[0].theta) and engine.expansion is not None:
            theta = np.concatenate([state.theta[:few] for state in states])
            theta = target.coordinates.inverse_transform(theta)
            states = start_chains(sampler, target, theta, options.spawn(1)[0])
        blocks = start.posterior.model.prior_blocks(self.em.per)
        following = StochasticEM(self.em, sampler, blocks, engine.length, self._kind)
        self._told, moved = fit_prior(following, target, states, options.n_jobs)
        read = rows_touched(sampler, moved) - rows_touched(sampler, states)
        passes = engine.passes + read / start.posterior.data.n_rows
        length = options.length(sampler.run_length(moved[0]))
        return replace(engine, states=moved, length=length, passes=passes), []

    def __call__(
        self, start: Start, burnt: Engine, target: Target, points: Sequence[NDArray]
    ) -> Start | None:
        learned, near, initial = self._told, target.coordinates, None
        if burnt.expansion is not None and isinstance(near, LowRank):
            initial = InitialPoint(burnt.expansion.theta, None, near)
        # the Stein ratio of chains that left the region in which the expansion serves
        thrown = burnt.expansion is not None and not np.max(learned.stein) < THROWN_RATIO
        if thrown and start.choice is self._first and not start.choice.asked_for:
            self._expansion = None
            return replace(start.with_fallback(THROWN), initial=initial)
        if self.learned is not None:  # a precision may have grown until the data say nothing more
            path = np.append(self.learned.path, learned.path, axis=0)
            learned = replace(learned, uninformed=self.learned.uninformed, path=path)
        prior = self.posterior.prior.with_precision(learned.precision)
        self.learned, self.posterior = learned, self.posterior.with_prior(prior)
        self._expansion = burnt.expansion
        if burnt.expansion is None:
            return None
        return replace(start, posterior=self.posterior, initial=initial)
