"""Hamiltonian Monte Carlo on all rows: the exact answer where the data are few."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.linalg import Diag, Layout, Operator
from skbayes_sg.samplers.base import Sampler, State
from skbayes_sg.samplers.schedules import value_at

_MEASURE_EVERY = 5
_LONGEST_STEP = 1.5  # in metric units, where 2 is the limit of stability of a unit-frequency oscillator
_LARGEST_METRIC = 1000
_SHORTEST_STEP = 0.02  # a hundred leapfrog steps a draw; who needs less has lost the digits of the energy


@dataclass
class _Memory:
    information: Operator  # running average: model Fisher
    prior: Any  # the one under which log_prob and gradient are
    log_prob: NDArray  # (chains,) at theta
    gradient: NDArray  # (chains, D) at theta
    log_step: float
    count: float = 1.0
    adapting: bool = True
    inverse: Operator | None = None  # inverse metric
    root: Operator | None = None  # square root of the metric: momenta
    steps: int = 0  # since the freeze
    accepted: float = 0.0
    rows_touched: float = field(default=0.0)


class HMC(Sampler):
    """Hamiltonian Monte Carlo with the gradient of all rows.

    Leapfrog steps of ``H = -log posterior + p^T Lam^-1 p / 2``, accepted with probability
    ``min(1, exp(-change of H))``, so that the posterior is the stationary law whatever its shape.

    Parameters
    ----------
    n_leapfrog : int, optional
        Leapfrog steps per draw. By default as many as a trajectory of random length needs, uniform on
        [0.5, 2] in units of the metric: around a quarter period, and never near the half period at
        which draws of a Gaussian merely change sign.
    target_accept : float, default=0.8
        Acceptance rate to which burn-in adapts the step.
    structure : {"auto", "full", "diag"}, default="auto"
        Of the metric. A matrix ("auto": up to 1,000 parameters) follows correlations, at a product with it per leapfrog
        step.
    single_gradients : bool, default=False
        Gradients in single precision, faster where rows are in double. Leapfrog steps along any function of theta
        keep volume and can be reversed, and the energy has all digits, so that the law stays exact; columns
        whose scale is far from one lower the acceptance rate.

    Notes
    -----
    The metric Lam is the model Fisher plus prior precision, averaged over burn-in; metric and step are
    frozen with it. Source: MATH 3.8; Ahn et al. 2012, section 5, use HMC as the truth.

    Examples
    --------
    >>> from skbayes_sg.samplers import HMC
    >>> HMC(target_accept=0.9)
    HMC(target_accept=0.9)
    """

    remedy = "raise target_accept"
    follows_streams = False

    def __init__(
        self,
        n_leapfrog: int | None = None,
        target_accept: float = 0.8,
        structure: str = "auto",
        single_gradients: bool = False,
    ) -> None:
        self.n_leapfrog = n_leapfrog
        self.target_accept = target_accept
        self.structure = structure
        self.single_gradients = single_gradients

    def validate(self, posterior) -> None:
        L = self.n_leapfrog
        if L is not None and not (isinstance(L, Integral) and not isinstance(L, bool) and L >= 1):
            raise ValueError(f"n_leapfrog must be None or an integer of at least 1, got {L!r}")
        if callable(self.target_accept) or not 0 < value_at(self.target_accept, 0, "target_accept") < 1:
            raise ValueError(f"target_accept must lie between 0 and 1, got {self.target_accept!r}")
        if self.structure not in ("auto", "full", "diag"):
            raise ValueError(f'structure must be "auto", "full" or "diag", got {self.structure!r}')
        if not isinstance(self.single_gradients, (bool, np.bool_)):
            raise ValueError(f"single_gradients must be True or False, got {self.single_gradients!r}")

    def minibatches(self, posterior, rng: np.random.Generator, n_chains: int):
        """Every step uses all rows."""
        return posterior.minibatches(posterior.n_rows, False, rng, n_chains)

    def start(self, state: State, posterior) -> None:
        state.memory = _Memory(
            information=posterior.information(state.theta, slice(None), self._layout(posterior)),
            prior=posterior.prior,
            log_prob=posterior.log_prob(state.theta),
            gradient=self._gradient(posterior, state.theta),
            log_step=math.log(posterior.dim**-0.25),  # the scaling of the best step with D
        )
        self._factorise(state)

    def step(self, state: State, posterior) -> None:
        memory = state.memory
        momentum = memory.root.matvec(state.noise.standard_normal(state.theta.shape))
        energy = _kinetic(momentum, memory.inverse) - memory.log_prob
        h, n_leapfrog = self._trajectory(state)

        theta, gradient = state.theta, memory.gradient
        momentum = momentum + 0.5 * h * gradient
        for _ in range(n_leapfrog):
            theta = theta + h * memory.inverse.matvec(momentum)
            gradient = self._gradient(posterior, theta)
            momentum = momentum + h * gradient
        momentum = momentum - 0.5 * h * gradient
        log_prob = posterior.log_prob(theta)

        change = energy + log_prob - _kinetic(momentum, memory.inverse)
        chance = np.exp(np.minimum(0.0, np.where(np.isnan(change), -np.inf, change)))
        accept = state.noise.random(len(chance)) < chance
        state.gradient = memory.gradient
        state.theta = np.where(accept[:, None], theta, state.theta)
        memory.gradient = np.where(accept[:, None], gradient, memory.gradient)
        memory.log_prob = np.where(accept, log_prob, memory.log_prob)

        memory.rows_touched += (n_leapfrog + 1) * posterior.n_rows * len(accept)  # gradients, and the energy
        memory.steps += 1
        memory.accepted += chance.mean()
        if memory.adapting:
            self._adapt(state, posterior, chance.mean())
        state.t += 1

    def _gradient(self, posterior, theta: NDArray) -> NDArray:
        return (posterior.single if self.single_gradients else posterior).full_gradient(theta)

    def _trajectory(self, state: State) -> tuple[float, int]:
        """Step and number of steps of this trajectory, random so that no direction is near its period."""
        h = math.exp(state.memory.log_step)
        if self.n_leapfrog is not None:
            return h * state.noise.uniform(0.8, 1.2), self.n_leapfrog
        length = state.noise.uniform(0.5, 2.0)
        n_leapfrog = math.ceil(length / h)
        return length / n_leapfrog, n_leapfrog

    # -- what is learnt in burn-in --------------------------------------------------------------------

    def _layout(self, posterior) -> Layout:
        """A matrix as metric while its product costs less than a gradient, or near to it."""
        if self.structure == "auto":
            return "full" if posterior.dim <= _LARGEST_METRIC else "diag"
        return posterior.layout(self.structure)

    def _adapt(self, state: State, posterior, chance: float) -> None:
        """Robbins-Monro on the log step; the Fisher of one chain after the other into the average."""
        memory = state.memory
        memory.log_step += (chance - self.target_accept) * (memory.steps + 5) ** -0.6
        memory.log_step = float(np.clip(memory.log_step, math.log(_SHORTEST_STEP), math.log(_LONGEST_STEP)))
        if state.t % _MEASURE_EVERY == 0:
            turn = state.t // _MEASURE_EVERY % len(state.theta)
            memory.count += 1
            information = posterior.information(state.theta[turn : turn + 1], slice(None), self._layout(posterior))
            memory.information.blend(information, 1 / memory.count)

    def _factorise(self, state: State) -> None:
        metric = state.memory.information + state.memory.prior.curvature(state.theta)
        state.memory.inverse, state.memory.root = metric.inverse(), metric.cholesky()

    def restart(self, state: State, posterior) -> None:
        """A new metric, and the step adapts afresh to it."""
        self._factorise(state)
        state.memory.count = math.sqrt(state.memory.count)
        state.memory.steps = 0

    def change_prior(self, state: State, posterior) -> None:
        """Log posterior and gradient at theta; the metric follows at the next restart."""
        memory = state.memory
        memory.log_prob = memory.log_prob + posterior.prior.log_density(state.theta)
        memory.log_prob -= memory.prior.log_density(state.theta)
        memory.gradient = memory.gradient + posterior.prior.gradient(state.theta)
        memory.gradient -= memory.prior.gradient(state.theta)
        memory.prior = posterior.prior

    def freeze(self, state: State, posterior) -> None:
        """The last metric is the average of the most draws; the step was adapted to the one before, near enough."""
        self._factorise(state)
        memory = state.memory
        memory.adapting, memory.steps, memory.accepted = False, 0, 0.0

    # -- what the estimator asks ----------------------------------------------------------------------

    def auto_burn_in(self, state: State) -> int:
        """Draws forget their predecessor in one or two steps; the metric needs some hundred, a diagonal fewer."""
        return 200 if isinstance(state.memory.information, Diag) else 300

    def auto_thin(self, state: State) -> int:
        """Two where there are many parameters, as the widest of many directions is the slower."""
        return 1 if state.theta.shape[1] <= 200 else 2

    def stationary_covariance(self, state: State, Lam: NDArray, M: NDArray) -> NDArray:
        """That of the posterior, whatever its shape; here of its Gaussian approximation, Lam^-1."""
        return np.linalg.inv(Lam)

    def rows_touched(self, state: State) -> float:
        return state.memory.rows_touched

    def figures(self, state: State) -> dict[str, float]:
        return {"accept_rate": state.memory.accepted / max(1, state.memory.steps)}

    def complaints(self, state: State) -> list[str]:
        rate = self.figures(state)["accept_rate"]
        if rate >= 0.5 * self.target_accept or state.memory.steps < 10:
            return []
        return [
            f"accept_rate is {rate:.2f}, far below target_accept={self.target_accept}: the energy is not resolved; "
            "scale the columns of X, use float64, or divide the weights by a constant"
        ]


def _kinetic(momentum: NDArray, inverse: Operator) -> NDArray:
    return 0.5 * np.sum(momentum * inverse.matvec(momentum), axis=1)
