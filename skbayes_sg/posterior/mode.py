"""The posterior mode and its curvature: where chains start.

Fisher scoring with step halving runs on growing subsets of the rows. A subset of m rows fixes the
mode to about sqrt(N / m) posterior standard deviations. So all rows are read only in the last two
or three iterations. Where a curvature costs as much as tens of gradients, L-BFGS runs in
coordinates whitened by the curvature at the start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from skbayes_sg.linalg import DIAGONAL, FULL, Dense, Layout, Operator
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Expansion, Posterior
from skbayes_sg.posterior.whitening import is_high_dimensional, whitening
from skbayes_sg.priors import Prior

_CHORD_STEPS = 8
_FLAT = 0.005  # largest entry of the gradient in whitened coordinates
_ENOUGH = 1e-3  # squared distance to the mode, in posterior standard deviations per parameter
_LARGEST_PART = 1 << 25  # numbers


class Mode(NamedTuple):
    """A centre of the posterior and the curvature there."""

    theta: NDArray
    """(1, D)"""
    curvature: Operator
    """Model Fisher plus prior precision there."""
    gradient: NDArray
    """Of the log posterior there, (1, D)."""
    passes: float
    """Rows touched over rows."""

    def under(self, before: Prior, after: Prior) -> Mode:
        """The same point under another prior, which moves gradient and curvature."""
        gradient = self.gradient - before.gradient(self.theta) + after.gradient(self.theta)
        information = self.curvature + before.curvature(self.theta) * -1.0
        curvature = information + after.curvature(self.theta)
        return self._replace(curvature=curvature, gradient=gradient)


class InitialPoint(NamedTuple):
    """A point near the mode, such as the mode under a similar prior."""

    theta: NDArray
    """(1, D)"""
    curvature: Operator | None
    """Of the posterior near there; None where parameters are too many for a matrix."""


def find_mode(
    posterior: Posterior, start: NDArray | InitialPoint, rng: np.random.Generator
) -> Mode:
    """Mode of a posterior whose model Fisher is its curvature, from a start (1, D).

    From an `InitialPoint` no subsets of rows are searched, and its curvature serves for the first
    steps.

    Accurate to a few hundredths of a posterior standard deviation. Nothing is raised when the
    iterations run out (separable data under a weak prior). Burn-in covers the remaining distance,
    and the diagnostics judge the result.

    Raises
    ------
    ValueError
        If squares of values of X overflow.
    """
    theta, curvature = start if isinstance(start, InitialPoint) else (start, None)
    with np.errstate(over="ignore", invalid="ignore"):
        finite_expansion(posterior.of_rows(slice(0, 1000)), theta, DIAGONAL)
        if has_matrix(posterior.dim):
            sample = posterior.of_sample
            stages = _stages(sample) if curvature is None else [sample.n_rows]
            # of 5,000 rows scoring takes .05 s and L-BFGS .02 s at 250 columns, .5 and .3 s at 900
            if curvature is None and sample.dim >= 250 and len(stages) == 1:
                found = _whitened_lbfgs(sample, theta, None)
            else:
                found = _staged(sample, InitialPoint(theta, curvature), stages, rng)
            return _on_all_rows(posterior, found)
        return _whitened_lbfgs(posterior, theta, curvature)


def finite_expansion(posterior: Posterior, theta: NDArray, layout: Layout) -> Expansion:
    """`Posterior.expand`, with a ValueError if squares of values of X overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        here = posterior.expand(theta, layout)
    if not np.isfinite(here.curvature.diagonal()).all():
        raise ValueError(
            "X holds values whose squares overflow; scale its columns, for example by "
            "StandardScaler"
        )
    return here


def _staged(
    posterior: Posterior, start: InitialPoint, stages: list[int], rng: np.random.Generator
) -> Mode:
    """Fisher scoring on ever more rows.

    The curvature of one stage serves for the first steps of the next.
    """
    (theta, curvature), passes = start, 0.0
    for size in stages:
        part, full = posterior, size == posterior.n_rows
        if not full:
            part = posterior.of_rows(np.sort(rng.choice(posterior.n_rows, size, replace=False)))
        # Squared distance to the mode, in posterior standard deviations. A subset's mode is off by
        # N/m per parameter, so more digits of it are of no use.
        enough = posterior.dim * (_ENOUGH if full else 0.1 * posterior.n_rows / size)
        found = _fisher_scoring(part, theta, enough, curvature)
        theta, iterations = found.theta + found.step, found.iterations
        here = part.expand(theta, FULL)
        curvature = here.curvature
        passes += (iterations + 1) * size / posterior.n_rows
    return Mode(theta, here.curvature, here.gradient, passes)


def _on_all_rows(posterior: Posterior, mode: Mode) -> Mode:
    """The mode of all rows from that of the sample, where a sample is all that is in memory.

    Each step is one pass. A step with the curvature of m rows leaves D / m of the squared distance,
    so the last step need not be short. The curvature stays that of the sample. Source:
    math/high_dimensional.md#rows-on-disk.
    """
    if posterior.of_sample is posterior:
        return mode
    enough = _ENOUGH * max(posterior.dim, posterior.n_rows)
    found = _fisher_scoring(posterior, mode.theta, enough, mode.curvature)
    passes = found.iterations + mode.passes * posterior.n_rows / posterior.data.n_rows
    return mode._replace(theta=found.theta + found.step, passes=passes)


def _stages(posterior: Posterior) -> list[int]:
    """Sizes of the nested problems: 20 rows a parameter, then ten times more, up to all rows.

    A part is copied, so it has some million numbers at most.
    """
    size = max(2000, 20 * posterior.dim)
    sizes = []
    while size < posterior.n_rows / 2 and size * posterior.data.n_features <= _LARGEST_PART:
        sizes.append(size)
        size *= 10
    return [*sizes, posterior.n_rows]


class _Found(NamedTuple):
    """The last point of a search, and the step that leads from there to the mode."""

    theta: NDArray
    here: Expansion
    step: NDArray
    iterations: int


def _fisher_scoring(
    posterior: Posterior, theta: NDArray, enough: float, curvature: Operator | None
) -> _Found:
    """Steps P^-1 gradient, halved until the log posterior does not fall.

    Stops before the step when gradient . P^-1 gradient is below `enough`. In the first few steps P
    is the given curvature, which costs a fifth of a curvature at every point: m rows determine it
    to a relative error of sqrt(D / m). Later, or where none is given, P is the curvature of the
    rows at the point itself.
    """
    here = _look(posterior, theta, curvature)
    for iteration in range(1, 51):
        if iteration == _CHORD_STEPS and curvature is not None:
            curvature = None
            here = _look(posterior, theta, curvature)
        metric = _for_steps(posterior, theta, here) if curvature is None else here.curvature
        step = metric.inverse().matvec(here.gradient)
        if np.sum(step * here.gradient) < enough:
            return _Found(theta, here, step, iteration)
        slack = 1e-6 * abs(here.log_prob)  # float32 rows sum the likelihood to about seven digits
        for _ in range(30):
            ahead = _look(posterior, theta + step, curvature)
            if ahead.log_prob >= here.log_prob - slack:
                break
            step *= 0.5
        theta, here = theta + step, ahead
    return _Found(theta, here, np.zeros_like(theta), iteration)


def _for_steps(posterior: Posterior, theta: NDArray, here: Expansion) -> Operator:
    """The curvature, and no less for single parameters than the rows have it.

    Of counts that vary less than a negative binomial variable can, it is many times the Fisher
    information about the dispersion, with which steps would overshoot for ever.
    """
    model = posterior.model
    if not isinstance(model, Predictor) or model.canonical:
        return here.curvature
    observed = posterior.observed(theta) + posterior.prior.hessian(theta)
    more = np.maximum(observed.diagonal() - here.curvature.diagonal(), 0.0)
    return here.curvature + Dense(np.diag(more))


def _look(posterior: Posterior, theta: NDArray, curvature: Operator | None) -> Expansion:
    if curvature is None:
        return posterior.expand(theta, FULL)
    value, gradient = posterior.slope(theta)
    return Expansion(float(value[0]), gradient, curvature)


def _whitened_lbfgs(posterior: Posterior, theta: NDArray, curvature: Operator | None) -> Mode:
    """L-BFGS in whitened coordinates, where a gradient costs far less than a curvature."""
    coordinates = whitening(posterior, theta, curvature)

    def objective(u: NDArray) -> tuple[float, NDArray]:
        value, gradient = posterior.slope(coordinates.inverse_transform(u[None]))
        return -float(value[0]), -coordinates.pullback(gradient)[0]

    start = coordinates.transform(theta)[0]
    bound = {"maxiter": 300, "gtol": _FLAT, "maxcor": 20}
    result = minimize(objective, start, jac=True, method="L-BFGS-B", options=bound)
    theta = coordinates.inverse_transform(result.x[None])
    here = posterior.expand(theta, DIAGONAL if is_high_dimensional(posterior) else FULL)
    return Mode(theta, here.curvature, here.gradient, result.nfev + 2.0)
