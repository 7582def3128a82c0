"""Iterate averaging stochastic gradient descent (Mandt, Hoffman & Blei 2017)."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skbayes_sg import theory
from skbayes_sg.linalg import DIAGONAL, FULL, Diag, Layout, Operator
from skbayes_sg.samplers.base import Report, RunLength
from skbayes_sg.samplers.constant_sgd import ConstantStep, relative_noise
from skbayes_sg.samplers.stationary import LinearStep
from skbayes_sg.samplers.target import State, Target
from skbayes_sg.validation import require_integer


@dataclass
class _Window:
    length: int = 1  # T
    averaging: float = 0.0  # variance of a draw over M / Lam^2, of "full"
    expected: tuple[float, float] = (1.0, 1.0)  # smallest and largest variance ratio, of "full"
    slowest: float = math.inf  # step * smallest eigenvalue * T
    condition: float = 1.0  # condition number of Lam
    total: NDArray | float = 0.0  # of the iterates of the present window
    filled: int = 0
    average: NDArray | None = None  # of the last whole window


@dataclass(eq=False, repr=False)
class IASG(ConstantStep):
    """Iterate averaging: a draw is the mean of a window of successive iterates of constant SGD.

    For standard errors that are right where the model is wrong (the sandwich covariance).

    ``theta += step_size H gradient``;  draw = mean of `window` iterates

    Where the model is right and the prior negligible, the average of about one pass has the
    posterior's covariance for any preconditioner. Elsewhere it has that of the sandwich
    Lam^-1 M Lam^-1 / window.

    Parameters
    ----------
    window : "pass" or int, default="pass"
        Iterates per draw, T. "pass" with "full" and "diag": about one pass over the rows, the
        number at which the mean variance ratio is 1 in theory, and ten at most. "pass" with
        "scalar": the noise factor (N/n, or N/n - 1 without replacement).
    structure : {"full", "diag", "scalar"}, default="full"
        "full": H = Lam^-1, the curvature measured in burn-in, so that all directions average alike.
        "diag": H = 1 / Lam_kk, for more parameters than a matrix can have. Correlated parameters
        average less, and the fit warns. "scalar": H = 1, as in the paper.
    step_size : float or "auto", default="auto"
        Multiplies H gradient. "auto" with "full" and "diag": 5 / window, at most 0.5. The iterates
        then spread over 2.5 posterior variances, and successive windows are nearly independent.
        "auto" with "scalar": 1 / largest eigenvalue of Lam.
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
    Source: Mandt et al. 2017, Algorithm 1 and section 5.2, with erratum math/errata.md#e8;
    math/averaging.md#iterate-averaging. Rows are drawn afresh at every step, because averages over
    a reshuffled epoch have almost no variance. ``thin="auto"`` records one draw per window; a
    smaller `thin` repeats draws. A scalar step can serve all directions only if (n/N) times the
    condition number of the curvature is small (Eq. 47). The fit warns with the condition number
    otherwise. Iterates spread farther than their averages, the more the smaller the minibatches.
    Where they leave the region in which the posterior is nearly normal, the covariance of the
    averages is not known, and `predicted_covariance` refuses.

    Examples
    --------
    >>> from skbayes_sg.samplers import IASG
    >>> IASG(window=100)
    IASG(window=100)
    """

    draws_are_points = False
    bias_remedy = "use SGFS"

    window: str | int = "pass"
    structure: str = "full"
    step_size: float | str = "auto"
    batch_size: int | str = "auto"
    replace: bool = False
    covariance: str = "minibatch"

    def validate(self, target: Target) -> None:
        super().validate(target)
        if self.window != "pass":
            require_integer("window", self.window, 1, ' or "pass"')

    # -- motion -------------------------------------------------------------------------------

    def _average_afresh(self, state: State, target: Target) -> None:
        super()._average_afresh(state, target)
        state.memory.window = _Window()

    def _move(self, state: State, change: NDArray) -> None:
        window = state.memory.window
        state.theta += change
        window.total = window.total + state.theta
        window.filled += 1
        if window.filled >= window.length:
            window.average = window.total / window.filled
            window.total, window.filled = 0.0, 0

    def freeze(self, state: State, target: Target) -> None:
        """Start a window with the frozen step; the first draw is the last average of burn-in."""
        super().freeze(state, target)
        window = state.memory.window
        window.total, window.filled = 0.0, 0
        if self.structure == "full":
            ratios = relative_noise(*self._noise_and_curvature(state, target)) * window.averaging
            window.expected = float(ratios.min()), float(ratios.max())

    def draw(self, state: State) -> tuple[NDArray, float]:
        """The average of the last whole window; the point itself in the first window."""
        average = state.memory.window.average
        return (state.theta if average is None else average), 1.0

    # -- the operators ------------------------------------------------------------------------

    def _layout(self, state: State, target: Target) -> Layout:
        return DIAGONAL if self.structure == "diag" else FULL

    def _operators(self, state: State, target: Target) -> tuple[Operator, None]:
        """K; sets the length of the window as well."""
        window, steps = state.memory.window, state.rows.noise_factor  # of a pass
        M, Lam = self._noise_and_curvature(state, target)
        auto, one_pass = self.step_size == "auto", self.window == "pass"
        if self.structure == "scalar":  # K = h: directions of small curvature average least
            eigenvalues = np.linalg.eigvalsh(Lam.dense())
            h = 1 / eigenvalues[-1] if auto else float(self.step_size)
            window.length = max(1, round(steps)) if one_pass else int(self.window)
            window.slowest = h * eigenvalues[0] * window.length
            window.condition = eigenvalues[-1] / eigenvalues[0]
            return Diag(np.full(Lam.dim, h)), None
        # K = k Lam^-1, with the same F = 1 - k in every direction of a full Lam
        covariance = Lam.inverse()
        # a window of ten passes at most: where it were more, rows contradict the model: it is said
        if self.structure == "full":
            noise = float(np.sum(covariance.dense() * M.dense())) / Lam.dim
        else:
            noise = float(covariance.diagonal() @ M.diagonal()) / Lam.dim
        noise = min(noise, 10.0 * max(steps, 1.0))
        length = noise if one_pass else float(self.window)
        k = min(0.5, 5 / max(length, 1.0)) if auto else float(self.step_size)
        window.length = right_on_average(noise, 1 - k) if one_pass else int(self.window)
        window.averaging = averaged_variance(1 - k, window.length)
        return covariance * k, None

    _burn_in_operators = _operators

    # -- distribution and report ------------------------------------------------------------------

    def run_length(self, state: State) -> RunLength:
        """At least two windows of burn-in; one draw per window."""
        burn_in, _ = super().run_length(state)
        return RunLength(max(burn_in, 2 * state.memory.window.length), state.memory.window.length)

    def stationary_distribution(self, state: State, target: Target) -> LinearStep:
        """Averages hide how far the iterates go: the curvature that they met is compared."""
        linear = super().stationary_distribution(state, target)
        _, met = self._noise_and_curvature(state, target)
        return replace(linear, window=state.memory.window.length, met=met)

    def report(self, state: State) -> Report:
        report, window = super().report(state), state.memory.window
        if self.structure == "diag":
            report.warnings.append(
                'IASG with structure="diag" averages correlated parameters less, so that their '
                'variances are too small by an unknown factor; use structure="full", or SGFS'
            )
        if window.slowest < 10:
            report.warnings.append(
                "IASG: one step for all directions leaves variances up to "
                f"{-theory.iasg_error(window.slowest):.0%} too small, as the condition number of "
                f"the curvature is {window.condition:.3g} (Mandt et al. Eq. 47); "
                'use structure="full"'
            )
        low, high = window.expected
        if low < 0.75 or high > 1.33:
            report.warnings.append(
                f"IASG: theory expects from {low:.2f} to {high:.2f} times the posterior's "
                "variance, by direction: the scatter of the rows is not the model's, the prior "
                "counts, or the window is off; use SGFS"
            )
        return report


def right_on_average(noise: float, rho: float) -> int:
    """The T at which `noise` times `averaged_variance` is nearest to 1.

    It falls with T, or with even and with odd T where rho < 0: no list of all T is needed, which
    heavy weights make long.
    """
    nearest: list[int] = []
    for first in (1, 2):
        lengths = range(first, math.ceil(max(noise, 1.0)) + 2, 2)
        below = bisect_left(lengths, -1.0, key=lambda T: -noise * averaged_variance(rho, T))
        nearest += lengths[max(0, below - 1) : below + 1]
    return min(sorted(nearest), key=lambda T: abs(noise * averaged_variance(rho, T) - 1))


def averaged_variance(rho: float, T: int) -> float:
    """Variance of the mean of T iterates over M / Lam^2, F = rho.

    Source: math/averaging.md#iterate-averaging.
    """
    return (1 - 2 * rho * (1 - rho**T) / (T * (1 - rho * rho))) / T
