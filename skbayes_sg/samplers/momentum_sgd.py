"""Constant-step SGD with momentum (Mandt, Hoffman & Blei 2017)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from numpy.typing import NDArray

from skbayes_sg.linalg import Operator
from skbayes_sg.samplers.constant_sgd import ConstantStep
from skbayes_sg.samplers.schedules import value_at
from skbayes_sg.samplers.stationary import LinearStep
from skbayes_sg.samplers.target import State, Target


@dataclass(eq=False, repr=False)
class MomentumSGD(ConstantStep):
    """Constant-step SGD with momentum.

    As `ConstantSGD`, with a velocity that keeps most of the last step.

    ``velocity = (1 - damping) velocity + step_size H (gradient + eta)``,  ``theta += velocity``

    H, the automatic step and the injected noise eta are those of `ConstantSGD` with P = M / damping
    + Lam / (2 - damping). For "full" the stationary distribution is the posterior's, in discrete
    time, for any damping, curvature Lam and noise M.

    Parameters
    ----------
    damping : float, default=0.2
        mu in (0, 1]; 1 is SGD without momentum. The autocorrelation time depends on step / damping
        only.
    structure : {"full", "diag", "scalar"}, default="full"
        "scalar" is the paper's: for small batches its step over damping is 2 D / Tr M.
    step_size : float or "auto", default="auto"
        Multiplies H gradient (the paper's eps / N).
    batch_size : int or "auto", default="auto"
        Rows per minibatch, n. "auto": a twentieth of the rows, at least 2 and at most 500.
    replace : bool, default=False
        Draw the rows of a minibatch with replacement.
    covariance : {"minibatch", "single_row"}, default="minibatch"
        Estimator of the gradient noise: all rows of the minibatch, or one of them, at random (Mandt
        et al. Eq. 25, bias removed), which needs n times as many steps. Minibatches of one row
        measure it over steps (math/gradient_noise.md#minibatches-of-one-row).

    Notes
    -----
    Source: Mandt et al. 2017, section 3.3 with erratum math/errata.md#e7 (its Eq. 31 lacks a
    commutator); math/momentum.md#momentum. In one dimension Var = (h m / (2 mu lam)) / (1 - h lam /
    (2 (2 - mu))). P follows from Var = 1 / lam. Lam, M and K are diagonal together in some
    coordinates, so the matrix case decouples.

    Examples
    --------
    >>> from skbayes_sg.samplers import MomentumSGD
    >>> MomentumSGD(damping=0.1)
    MomentumSGD(damping=0.1)
    """

    damping: float = 0.2
    structure: str = "full"
    step_size: float | str = "auto"
    batch_size: int | str = "auto"
    replace: bool = False
    covariance: str = "minibatch"

    def validate(self, target: Target) -> None:
        super().validate(target)
        value_at(self.damping, None, "damping", "(0, 1]")

    def _move(self, state: State, change: NDArray) -> None:
        state.memory.velocity = (1 - self.damping) * state.memory.velocity + change
        state.theta += state.memory.velocity

    def _precision(self, M: Operator, Lam: Operator) -> Operator:
        return Lam * (1 / (2 - self.damping)) + M * (1 / self.damping)

    def stationary_distribution(self, state: State, target: Target) -> LinearStep:
        return replace(super().stationary_distribution(state, target), damping=self.damping)
