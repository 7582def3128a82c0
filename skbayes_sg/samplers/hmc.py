"""Hamiltonian Monte Carlo on all rows, or on a pool of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data.minibatches import Minibatches
from skbayes_sg.linalg import DIAGONAL, FULL, Dense, Diag, Layout, Operator, stored
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.samplers.base import NEEDS_ROWS_AGAIN, Report, RunLength, Sampler
from skbayes_sg.samplers.schedules import value_at
from skbayes_sg.samplers.stationary import ExactDistribution
from skbayes_sg.samplers.target import FastGradient, ScaleMove, State, Target
from skbayes_sg.validation import require_choice, require_integer

_LONG_STEP, _MOST_SHORT = 0.7, 8  # with the gradient, in metric units, and short steps of one
_MANY_CHAINS = 8  # of a group, from which few steps of burn-in have many points
_RESTARTS = 3  # of a burn-in (run.restarts)
_STEPS_A_MOVE = 8  # leapfrog steps of a trajectory for each Metropolis step along the scale


class RescaledCurvature:
    """The metric of one mode: the curvature, rescaled along its axes to the spread of the draws.

    It is the curvature at the mean of the draws, or at the anchor. The Fisher in the mean over the
    posterior would weigh walls that chains rarely touch (math/hamiltonian.md#hmc). The axes are the
    eigenvectors, so that directions without data stay apart from the others. Where coefficients
    and the precision of their prior grow together, the spread along that direction is measured as
    well: far from a normal distribution it is several times that of all its coordinates. About an
    anchor the operators are in single precision where all scales are near 1 in the coordinates of
    the chains.

    Attributes
    ----------
    inverse : Operator
        Inverse of the metric.
    root : Operator
        Momenta are ``root z`` with z normal.
    length : RunLength
        Burn-in from which it is known: some hundred points determine the standard deviations. Half
        as many serve where the coordinates follow the posterior. Each step is a draw.
    """

    def __init__(self, target: Target, theta: NDArray, layout: Layout) -> None:
        self._layout, self._points = layout, list[NDArray]()  # each (chains, D)
        many = len(theta) >= _MANY_CHAINS
        follows = target.sampled is not None and target.sampled.curves is not None
        self.length = RunLength((32 if follows else 64) if many else 150, 1)
        self._axes: tuple[NDArray, NDArray, NDArray] | None = None
        curvature = self._curvature(target, theta)
        self._set(target, curvature.inverse(), curvature.cholesky())

    def see(self, target: Target, theta: NDArray, t: int) -> None:
        """Keep the points of a step of burn-in."""
        self._points.append(theta)

    def restart(self, target: Target, theta: NDArray) -> None:
        """Compute the operators from what was seen in ten steps or more, and forget it."""
        seen, self._points = self._points, []
        if len(seen) < 10:
            return
        points = np.concatenate(seen)
        curvature = self._curvature(target, points)
        diagonal = curvature.diagonal()
        d = np.sqrt(diagonal)
        along, roots, vectors = points * d, np.ones(len(d)), None  # of unit curvature, by axis
        if not self._layout.diagonal:
            if self._axes is None or not np.array_equal(self._axes[0], diagonal):  # by the prior
                values, vectors = np.linalg.eigh(curvature.dense() / np.outer(d, d))
                # any positive metric is right: rounding may make the smallest values negative
                roots = np.sqrt(np.maximum(values, np.finfo(float).eps * len(values)))
                self._axes = diagonal, roots, vectors
            _, roots, vectors = self._axes
            along = (along @ vectors) * roots
        n = len(points)  # a standard deviation equal to the curvature's counts for ten draws
        scale = np.sqrt((n * along.var(axis=0) + 10.0) / (n + 10.0))
        inverse: Operator
        root: Operator
        if vectors is None:
            inverse, root = Diag((scale / d) ** 2), Diag(d / scale)
        else:
            wide, narrow = (vectors * (scale / roots)) / d[:, None], d[:, None] * vectors
            narrow *= roots / scale  # the inverse of wide, transposed
            if target.scale_move is not None:
                axis = _along(target.scale_move, points.mean(axis=0, keepdims=True)) @ narrow
                axis /= np.linalg.norm(axis)
                spread = np.sqrt((n * (along / scale @ axis).var() + 10.0) / (n + 10.0))
                wide += np.outer(wide @ axis, (spread - 1) * axis)
                narrow += np.outer(narrow @ axis, (1 / spread - 1) * axis)
            inverse, root = Dense(wide @ wide.T), Dense(narrow)
        self._set(target, inverse, root)

    def _set(self, target: Target, inverse: Operator, root: Operator) -> None:
        single = target.anchor is not None and target.anchor.has_unit_scales
        dtype = np.float32 if single else np.float64
        self.inverse, self.root = stored(inverse, dtype), stored(root, dtype)

    def _curvature(self, target: Target, points: NDArray) -> Operator:
        if target.anchor is not None:
            return self._layout.keep(target.anchor.curvature)
        centre = points.mean(axis=0, keepdims=True)
        return target.posterior.curvature(centre, slice(None), self._layout)


class AveragedFisher:
    """The metric of many modes: model Fisher in the mean over burn-in, plus the prior's curvature.

    The spread of chains in different modes says nothing of one mode. Attributes `inverse` and
    `root` are those of `RescaledCurvature`; so is `length`, but that burn-in takes 150 to 300
    steps, and a draw up to three: few parameters make a draw cost less than a trajectory.
    """

    def __init__(self, target: Target, theta: NDArray, layout: Layout) -> None:
        self._layout, self._count = layout, 1.0
        few = target.dim < 250
        if len(theta) >= _MANY_CHAINS:
            self.length = RunLength(150, 3 if few else 2)
        else:
            self.length = RunLength(200 if layout.diagonal else 300, 1 if few else 2)
        self._information = target.posterior.information(theta, slice(None), layout)
        self.restart(target, theta)

    def see(self, target: Target, theta: NDArray, t: int) -> None:
        """Learn from the points theta (chains, D) of step t: every fifth, one chain in turn."""
        if t % 5 == 0:
            chain = t // 5 % len(theta)
            point = theta[chain : chain + 1]
            information = target.posterior.information(point, slice(None), self._layout)
            self._count += 1
            self._information.blend(information, 1 / self._count)  # type: ignore[arg-type]

    def restart(self, target: Target, theta: NDArray) -> None:
        """Compute the operators from what was seen, at the points theta, and forget old points."""
        metric = self._information + target.prior.curvature(theta)
        self.inverse, self.root = metric.inverse(), metric.cholesky()
        self._count = self._count**0.5


class _Path(NamedTuple):
    """The steps of a trajectory: long ones with the gradient, each of so many short ones."""

    h: float | NDArray
    """Length of a short step, of all chains or of each, (chains, 1)."""
    n_long: int
    n_short: int = 1
    fast: FastGradient = FastGradient(lambda theta: 0.0, 0, 0.0)
    """Gradient of the short steps."""
    is_short: bool = False
    """Whether it is one of the trajectories with far shorter steps, whose acceptance says nothing
    of the step"""


@dataclass
class _Memory:
    metric: AveragedFisher | RescaledCurvature
    log_prob: NDArray  # (chains,) at theta
    gradient: NDArray  # (chains, D) at theta
    log_step: NDArray  # (chains, 1), and (1, 1) after the last restart
    accepted: NDArray  # (chains,): sum of acceptance probabilities since the freeze
    adapting: bool = True
    restarts: int = 0  # of burn-in
    steps: int = 0  # since the last restart, or the freeze; without short ones
    rows_touched: float = 0.0
    figures: dict[str, float] = field(default_factory=dict)  # of the anchor


@dataclass(eq=False, repr=False)
class HMC(Sampler):
    """Hamiltonian Monte Carlo with the gradient of all rows, or of a pool of them.

    A draw is the end of a trajectory, as of a ball that rolls without friction. It is right for any
    posterior with one mode, so it is the reference for other samplers.

    Leapfrog steps of ``H = -log posterior + p^T Lam^-1 p / 2`` are accepted with probability
    ``min(1, exp(-change of H))``. So the posterior is the stationary distribution for any shape of
    it.

    Parameters
    ----------
    n_leapfrog : int, optional
        Leapfrog steps per draw. By default a trajectory has a random length, uniform on [0.7, 2.8]
        in units of the metric. That is around a quarter period, and below the half period at which
        draws of a Gaussian merely change sign.
    target_accept : float, default=0.8
        Acceptance rate to which burn-in adapts the step.
    structure : {"auto", "full", "diag"}, default="auto"
        Form of the metric. "full" follows correlations, at a D x D product per leapfrog step.
        "auto": "full" up to 1,000 parameters.
    single_gradients : bool, default=False
        Compute gradients in single precision, which is faster for rows in double. The distribution
        stays exact: leapfrog steps along any function of theta preserve volume and are reversible,
        and the energy has all digits. Columns whose scale is far from 1 lower the acceptance rate.
    variance_reduction : {None, "control_variate"}, default=None
        "control_variate": all rows are expanded to second order at an anchor near the posterior
        mean, and a pool of rows stands for what is left. Up to some thousand rows the pool has all
        of them, and nothing is approximated. Otherwise the choice of the pool moves the posterior
        mean by about ``diagnostics_["pool_error"]`` standard deviations
        (math/control_variates.md#pools). With thousands of rows the short steps of a trajectory
        have the expansion and the rows that it describes worst, and every few steps the gradient
        of all rows makes up for the others (math/hamiltonian.md#two-time-scales).

    Notes
    -----
    The metric Lam of a posterior with one mode is its curvature at the anchor, or at the mean of
    the draws, rescaled to their standard deviations. Elsewhere it is the model Fisher plus prior
    precision, averaged over burn-in. In half of this each chain has a step of its own, so that none
    stays where that of the others is too long. Metric and step are frozen after burn-in.
    Source: math/hamiltonian.md#hmc; Ahn et al. 2012, section 5, use HMC as the truth.

    Examples
    --------
    >>> from skbayes_sg.samplers import HMC
    >>> HMC(target_accept=0.9)
    HMC(target_accept=0.9)
    """

    remedy = "raise target_accept"
    bias_remedy = "raise burn_in"
    refuses_streams = NEEDS_ROWS_AGAIN
    shares_rows = True
    follows_coordinates = True
    rejects = True

    n_leapfrog: int | None = None
    target_accept: float = 0.8
    structure: str = "auto"
    single_gradients: bool = False
    variance_reduction: str | None = None

    def validate(self, target: Target) -> None:
        if self.n_leapfrog is not None:
            require_integer("n_leapfrog", self.n_leapfrog, 1, " or None")
        value_at(self.target_accept, None, "target_accept", "(0, 1)")
        require_choice("structure", self.structure, ("auto", "full", "diag"))
        require_choice("single_gradients", self.single_gradients, (True, False))
        require_choice("variance_reduction", self.variance_reduction, (None, "control_variate"))

    def refusal(self, target: Target) -> str | None:
        return None if target.anchor is None else target.anchor.far_from_mode

    # -- motion -------------------------------------------------------------------------------

    def minibatches(self, target: Target, rng: np.random.Generator, n_chains: int) -> Minibatches:
        """Every step uses all rows."""
        return target.minibatches(target.n_rows, False, rng, n_chains)

    def start(self, state: State, target: Target) -> None:
        layout: Layout = FULL if has_matrix(target.dim) else DIAGONAL  # costs less than a gradient
        if self.structure != "auto":
            layout = target.posterior.layout(self.structure)
        learned = RescaledCurvature if target.posterior.one_mode else AveragedFisher
        log_prob, gradient = target.logdensity_and_grad(state.theta)
        state.memory = _Memory(
            learned(target, state.theta, layout),
            log_prob,
            gradient,
            # the scaling of the best step with D
            log_step=np.full((len(state.theta), 1), math.log(target.dim**-0.25)),
            accepted=np.zeros(len(state.theta)),
            figures={} if target.anchor is None else target.anchor.figures,
        )

    def step(self, state: State, target: Target) -> None:
        memory, normals = state.memory, state.normals
        inverse, root = memory.metric.inverse, memory.metric.root
        dtype = root.diagonal().dtype  # momenta have the precision of the metric
        momentum = root.matvec(normals.standard_normal(state.theta.shape, dtype=dtype))
        energy = _kinetic(momentum, inverse) - memory.log_prob
        path = self._path(state, target)
        if len(memory.log_step) > 1:  # where it is far narrower, a chain rejects the others' step
            own = np.exp(memory.log_step - np.median(memory.log_step))
            path = path._replace(h=path.h * own.astype(dtype))
        theta, log_prob, gradient = self._trajectory(state, target, momentum, path)

        change = energy + log_prob - _kinetic(momentum, inverse)
        chance = np.exp(np.minimum(0.0, _or_never(change)))
        accept = normals.random(len(chance)) < chance
        state.gradient = memory.gradient
        state.theta = np.where(accept[:, None], theta, state.theta)
        memory.gradient = np.where(accept[:, None], gradient, memory.gradient)
        memory.log_prob = np.where(accept, log_prob, memory.log_prob)

        memory.rows_touched += (
            path.n_long * len(accept) * (state.rows.size + path.n_short * path.fast.n_rows)
        )
        if not path.is_short:
            memory.steps += 1
            memory.accepted += chance
            if memory.adapting:  # Robbins and Monro's step of the log step
                gain = (memory.steps + 5) ** -0.6
                excess = chance[:, None] - self.target_accept
                if memory.restarts >= _RESTARTS:  # then one for all, of which they know more
                    excess = excess.mean()
                memory.log_step = _bounded(memory.log_step + excess * gain)
                memory.metric.see(target, state.theta, state.t)
        if target.scale_move is not None:
            for _ in range(path.n_long * path.n_short // _STEPS_A_MOVE):
                self._rescale(state, target, target.scale_move)
        state.t += 1

    def _path(self, state: State, target: Target) -> _Path:
        """The steps of a trajectory, of random length so that none is near a period."""
        h = math.exp(np.median(state.memory.log_step))
        if state.t % 10 == 9:  # for a chain that comes to where the posterior is far narrower
            h *= 10.0 ** -state.normals.uniform(0.5, 1.5)
            return _Path(h, self.n_leapfrog or 5, is_short=True)
        if self.n_leapfrog is not None:
            return _Path(h * state.normals.uniform(0.8, 1.2), self.n_leapfrog)
        # pi is half a period of a Gaussian; shorter where walls need steps so short
        length = min(state.normals.uniform(0.7, 2.8), 100 * h)
        fast, n_short = target.fast_gradient, 1
        if fast is not None:  # an error of .3 in a long step at most
            longest = 0.3 / max(fast.error, 0.3 / _LONG_STEP)
            n_short = max(1, min(_MOST_SHORT, int(longest / h)))
        n_long = math.ceil(length / (n_short * h))
        path = _Path(length / (n_long * n_short), n_long, n_short)
        return path if fast is None or n_short == 1 else path._replace(fast=fast)

    def _trajectory(
        self, state: State, target: Target, momentum: NDArray, path: _Path
    ) -> tuple[NDArray, NDArray, NDArray]:
        """The end of a trajectory, its log density and gradient; momenta change in place.

        A long step has the gradient less the fast one, and holds short steps with that (Tuckerman,
        Berne & Martyna 1992). Without a fast gradient these are leapfrog steps.
        """
        followed = target.single if self.single_gradients else target
        h, inverse, fast = path.h, state.memory.metric.inverse, path.fast.gradient
        long, theta, gradient = path.n_short * h, state.theta, state.memory.gradient
        force = fast(theta)
        momentum += (0.5 * long) * (gradient - force)  # in the precision of the metric
        momentum += (0.5 * h) * force
        for n_left in reversed(range(path.n_long)):
            for _ in range(path.n_short):
                theta = theta + h * inverse.matvec(momentum)
                force = fast(theta)
                momentum += h * force
            if n_left:
                momentum += long * (followed.full_gradient(theta) - force)
        log_prob, gradient = target.logdensity_and_grad(theta)
        momentum += (0.5 * long) * (gradient - force)
        momentum -= (0.5 * h) * force
        return theta, log_prob, gradient

    def _rescale(self, state: State, target: Target, move: ScaleMove) -> None:
        """A Metropolis step along the scale of the coefficients (Liu & Sabatti 2000)."""
        memory, n = state.memory, len(state.theta)
        # 2.4 deviations are best where one coordinate moves alone; here it is one given the rest
        log_scale = 1.7 * move.sd * state.normals.standard_normal(n)
        theta, volume = move.rescaled(state.theta, log_scale)
        log_prob, gradient = target.logdensity_and_grad(theta)
        change = log_prob - memory.log_prob + volume
        accept = np.log(state.normals.random(n)) < _or_never(change)
        state.theta = np.where(accept[:, None], theta, state.theta)
        memory.gradient = np.where(accept[:, None], gradient, memory.gradient)
        memory.log_prob = np.where(accept, log_prob, memory.log_prob)
        memory.rows_touched += state.rows.size * n

    def restart(self, state: State, target: Target) -> None:
        """Compute the metric from what was seen so far, and adapt the step to it afresh."""
        self._renew(state, target)
        memory = state.memory
        memory.steps, memory.restarts = 0, memory.restarts + 1
        if memory.restarts >= _RESTARTS:
            memory.log_step = np.median(memory.log_step, keepdims=True)

    def freeze(self, state: State, target: Target) -> None:
        """Compute the last metric, and stop adapting."""
        self._renew(state, target)
        memory = state.memory
        memory.adapting, memory.steps, memory.accepted = False, 0, 0.0 * memory.accepted

    def change_prior(self, state: State, target: Target) -> None:
        """Update log posterior and gradient at theta; the metric follows at the next restart."""
        state.memory.log_prob, state.memory.gradient = target.logdensity_and_grad(state.theta)

    def _renew(self, state: State, target: Target) -> None:
        """Compute the metric from what was seen, and keep the step in units of theta."""
        memory = state.memory
        before = np.log(memory.metric.inverse.diagonal())
        memory.metric.restart(target, state.theta)
        after = np.log(memory.metric.inverse.diagonal())
        log_step = memory.log_step + 0.5 * float(np.mean(before - after))
        if not np.isfinite(log_step).all():
            raise FloatingPointError(
                f"the metric of {self} overflows; scale the columns of X and the numbers in y, or "
                "divide the weights by a constant"
            )
        memory.log_step = _bounded(log_step)

    # -- distribution and report ------------------------------------------------------------------

    def run_length(self, state: State) -> RunLength:
        """The run that the metric needs to be learned."""
        return state.memory.metric.length

    def stationary_distribution(self, state: State, target: Target) -> ExactDistribution:
        return ExactDistribution()

    def report(self, state: State) -> Report:
        """Also rates of acceptance, which say whether chains are stuck, and figures of the anchor.

        Ten trajectories are the fewest that have a rate.
        """
        memory, warnings = state.memory, []
        rates = memory.accepted / max(1, memory.steps)
        rate, wanted = float(rates.mean()), self.target_accept
        n_stuck = int(np.sum(rates < 0.1 * wanted))
        if memory.steps >= 10 and rate < 0.5 * wanted:
            warnings.append(
                f"accept_rate is {rate:.2f}, far below the {wanted} that steps are tuned for: the "
                "energy is not resolved; scale the columns of X, use float64, or divide the "
                "weights by a constant"
            )
        elif memory.steps >= 10 and n_stuck:
            warnings.append(
                f"{n_stuck} of {len(rates)} chains hardly moved, the others accept "
                f"{np.median(rates):.2f} of their steps: the posterior has walls that the step "
                f"does not resolve; {self.advice}"
            )
        return Report(memory.rows_touched, {"accept_rate": rate} | memory.figures, warnings)


def _or_never(change: NDArray) -> NDArray:
    """Changes of log density (chains,), minus infinity where a density overflows."""
    return np.where(np.isfinite(change), change, -np.inf)


def _bounded(log_step: NDArray) -> NDArray:
    """A step below 2, where oscillators in metric units are stable, and above rounding errors."""
    return np.clip(log_step, math.log(1e-4), math.log(1.5))


def _along(move: ScaleMove, point: NDArray) -> NDArray:
    """Direction (D,) in which a move along the scale starts at a point (1, D)."""
    step = np.array([1e-4])
    return (move.rescaled(point, step)[0] - move.rescaled(point, -step)[0])[0] / 2e-4


def _kinetic(momentum: NDArray, inverse: Operator) -> NDArray:
    return 0.5 * np.einsum("cd,cd->c", momentum, inverse.matvec(momentum), dtype=np.float64)
