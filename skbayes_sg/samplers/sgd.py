"""Stochastic gradient descent, annealed to the mode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skbayes_sg.linalg import Diag
from skbayes_sg.samplers.base import Report, Sampler
from skbayes_sg.samplers.schedules import (
    POSITIVE,
    PolynomialDecay,
    Schedule,
    is_auto,
    value_at,
)
from skbayes_sg.samplers.stationary import Linearised, LinearStep, StationaryDistribution
from skbayes_sg.samplers.target import State, Target


@dataclass(eq=False, repr=False)
class SGD(Sampler):
    """Stochastic gradient descent with decreasing steps: it converges to the mode, for comparison.

    ``theta += step_size(t) * gradient``

    Its points are no posterior draws. The mean of the kept points, such as `coef_` of an estimator,
    is Polyak's averaged iterate, a MAP estimate. With a constant step and ``thin=1`` its covariance
    about the mode depends on the number of rows read only, not on step, batch size or
    preconditioner (Mandt et al. 2017, Eq. 37 to 42; math/averaging.md#averages-of-all-iterates).
    With ``batch_size`` at least the number of rows it is gradient descent.

    Parameters
    ----------
    step_size : float, callable or "auto", default="auto"
        eta_t, in units of a variance of theta. "auto": eta_0 (1 + t / 1000)^-0.75, or eta_0 where
        every step sees all rows. eta_0 is 0.5 / largest eigenvalue of the curvature at the start.
    batch_size : int, default=500
        Rows per minibatch.
    replace : bool, default=False
        Draw the rows of a minibatch with replacement.

    Notes
    -----
    Source: Karagiannis, handout 4, Algorithms 10 and 13; Robbins & Monro 1951.

    Examples
    --------
    >>> from skbayes_sg.samplers import SGD, PolynomialDecay
    >>> SGD(step_size=PolynomialDecay(a=1.0, b=1000.0, power=1.0)).step_size(0)
    0.001
    """

    remedy = "lower step_size"
    bias_remedy = "SGD goes to the mode; use SGFS or ConstantSGD for a posterior"

    step_size: Schedule | str = "auto"
    batch_size: int = 500
    replace: bool = False

    def validate(self, target: Target) -> None:
        super().validate(target)
        if not is_auto(self.step_size):
            value_at(self.step_size, 0, "step_size", POSITIVE)

    def start(self, state: State, target: Target) -> None:
        """Make the automatic schedule, from the largest curvature at the start."""
        if self.step_size != "auto":
            return
        linearised = Linearised(state, target)
        largest = 2.0 * linearised.largest(linearised.curvature)
        scale, power = 1000.0, 0.0 if state.rows.full_data else 0.75
        state.memory = PolynomialDecay(a=scale**power / largest, b=scale, power=power)

    def step(self, state: State, target: Target) -> None:
        state.gradient = target.grad_estimate(state.theta, state.rows.draw())
        state.theta += self._eta(state) * state.gradient
        state.t += 1

    def _eta(self, state: State) -> float:
        if self.step_size == "auto":
            return state.memory(state.t)
        return value_at(self.step_size, state.t, "step_size", POSITIVE)

    def stationary_distribution(self, state: State, target: Target) -> StationaryDistribution:
        """The distribution of constant steps; there is none for a schedule."""
        if self.step_size == "auto" or callable(self.step_size):
            why = (
                "SGD with decreasing steps has no stationary distribution but the mode; use "
                "ConstantSGD"
            )
            return LinearStep(None, unknown=why)
        return LinearStep(Diag(np.full(target.dim, self._eta(state))))

    def report(self, state: State) -> Report:
        """Decreasing steps end at the mode, whatever the spread of the draws so far."""
        report = super().report(state)
        if self.step_size == "auto" or callable(self.step_size):
            report.warnings.append(
                "SGD with decreasing steps goes to the mode: its draws have no stationary "
                "distribution, and their standard deviations mean nothing; use SGFS or "
                "ConstantSGD for a posterior"
            )
        return report
