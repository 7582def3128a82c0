"""The search for one prior precision with normal laws of the posterior, and the laws.

A law knows what the coefficients would be under other precisions, since the likelihood's part of it
stays. The search follows it to MacKay's fixed point, and finds another law there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from skbayes_sg.chains.deadline import time_is_up
from skbayes_sg.data.random import fixed_rng
from skbayes_sg.inference.learned_prior import BOUNDS, Learned
from skbayes_sg.linalg import Dense, Operator
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.gaussian import Law, expanded_twice, known_at, updated
from skbayes_sg.posterior.laplace import LARGE_SHIFT, step_to_mean
from skbayes_sg.posterior.mode import InitialPoint, Mode, find_mode
from skbayes_sg.priors import GaussianPrior, NormalInverseGammaPrior

NEAR = 0.1
"""Change of log precision over which a law may be followed and not found anew."""

_MOST_LAWS = 10
_MOST_STEPS = 100
_STILL = 0.01  # change of log precision
_FARTHEST = 3.0
_POINTS = 200  # that stand for a law, in a mean of every row's own function
_NO_INFORMATION = 0.01


class _Share(NamedTuple):
    """The data's share in what is known of a block, and the mean that follows from it."""

    trace: float
    squares: float
    """Trace of the square."""
    squares_of_mean: float
    """Of the block, from the prior mean; over the noise variance where that is their unit."""


_Known = Callable[[float, float], _Share]
"""What is known under another log precision, and a precision larger by so much."""


class Search:
    """The way of log precision, and the law there."""

    def __init__(self, posterior: Posterior, block: NDArray, gamma: tuple[float, float]) -> None:
        self.posterior, self.block, self.gamma = posterior, block, gamma
        rows = posterior.data.sample
        self.guess = posterior.model.guess(rows.y, rows.weight)
        self.information: Operator | None = None  # of the likelihood, near the guess
        self.unit = posterior.prior.unit[block]
        self.path = [float(np.log(posterior.prior.precision[block[0]] / self.unit[0]))]
        self.silent = self.is_mean = False
        self.uncertainty = np.inf

    def run(self, law: Callable[[], _Known | None], near: float = NEAR) -> None:
        """Find a law and follow it, in turn, until log precision changes by less than `near`.

        Changes shrink by a factor from law to law, so the sum of those to come is known. Where no
        law can be found all is left as it was.
        """
        before_all = vars(self) | {"path": list(self.path)}
        changes: list[float] = []
        for _ in range(_MOST_LAWS):
            before = self.path[-1]
            if (known := law()) is None:
                vars(self).update(before_all)
                return
            self._follow(known)
            changes.append(self.path[-1] - before)
            still = abs(changes[-1]) < NEAR
            if still and len(changes) > 1 and 0 < (r := changes[-1] / changes[-2]) < 1 - NEAR:
                self.path[-1] += changes[-1] * r / (1 - r)
            prior = self.posterior.prior.with_precision(self._precision())
            self.posterior = self.posterior.with_prior(prior)
            if abs(changes[-1]) < near or time_is_up():
                break

    def learned(self, label: str) -> Learned:
        """What was found."""
        return Learned(
            [label],
            np.exp(self.path[-1:]),
            np.exp(np.array(self.path))[:, None],
            self._precision(),
            states=[],
            change=np.zeros(1),
            uncertainty=np.array([self.uncertainty]),
            stein=np.ones(1),
            stein_error=np.full(1, np.inf),
            silent=np.array([self.silent]),
            one_each=False,
            hyperprior=True,
            gamma=self.gamma,
        )

    def is_normal(self) -> bool:
        """Whether the law is exact, or the mean near the mode, by one step towards it."""
        here, model = self.near(), self.posterior.model
        assert isinstance(model, Predictor)
        few = has_matrix(self.posterior.dim)  # a step costs as much as a mode beyond
        if model.conjugate or not (few and isinstance(here.curvature, Dense)):
            return True
        mode = Mode(here.theta, here.curvature, np.zeros_like(here.theta), 0.0)
        return step_to_mean(self.posterior, mode)[1] <= LARGE_SHIFT

    def near(self) -> InitialPoint:
        """The last mode or mean, and the curvature there under the present precision."""
        if self.information is None:
            return InitialPoint(self.guess, None)
        prior = self.posterior.prior.curvature(self.guess)
        return InitialPoint(self.guess, self.information + prior, self.is_mean)

    def _precision(self) -> NDArray:
        precision = self.posterior.prior.precision.copy()
        precision[self.block] = np.exp(self.path[-1]) * self.unit
        return precision

    def at_mode(self) -> _Known:
        """From the normal law at the mode."""
        posterior = self.posterior
        assert isinstance(posterior.model, Predictor)
        if posterior.model.conjugate:
            mode = expanded_twice(posterior, self.guess)
        else:
            mode = find_mode(posterior, self._start(), fixed_rng("prior"))
        return self._with_law(known_at(posterior.prior, mode), mode.theta, mode.curvature)

    def in_mean(self) -> _Known:
        """From the normal law whose gradient and curvature are their own means."""
        law = updated(self.posterior, self.guess)
        return self._with_law(law, law.mode, Dense(law.operator.dense()))

    def nearer_mean(self) -> _Known | None:
        """From a law one step nearer to that one; None where the posterior is too skewed for it.

        A mean over the law takes points in place of its whole covariance (`laplace_points`).
        """
        posterior, here = self.posterior, self.near()
        assert here.curvature is not None
        lower = here.curvature.cholesky().dense()
        dim = posterior.dim
        frame = fixed_rng("probes").standard_normal((dim, min(dim, _POINTS)))
        frame = np.linalg.qr(frame)[0] * np.sqrt(dim / frame.shape[1])
        root = solve_triangular(lower, frame, lower=True, trans="T")
        gradient, curvature = posterior.smoothed(here.theta, root)
        shift = curvature.inverse().matvec(gradient)
        if np.sum(shift * gradient) > LARGE_SHIFT**2 * dim:
            return None
        mean = here.theta + shift
        self.is_mean = True
        law = GaussianPrior(curvature, mean[0])  # type: ignore[arg-type]
        return self._with_law(law, mean, curvature)

    def _start(self) -> NDArray | InitialPoint:
        """Where to look for the next mode."""
        return self.guess if self.information is None else self.near()

    def _updated(self, known: float, squares: float) -> float:
        """Log precision, from the number of known coefficients and the sum of squared means."""
        shape, rate = self.gamma
        rho = np.log((max(known, 0.0) + 2 * shape) / (squares + 2 * rate))
        return float(np.clip(rho, *np.log(BOUNDS)))

    def _follow(self, share: _Known) -> None:
        """Repeat MacKay's ``lambda = (P - lambda tr C + 2 a) / (sum of squared means + 2 b)``."""
        start = rho = self.path[-1]
        for step in range(_MOST_STEPS):
            found = share(rho, np.exp(rho) - np.exp(start))
            if step == 0 and len(self.path) == 1:
                self.silent = found.trace < _NO_INFORMATION
            before, rho = rho, self._updated(found.trace, found.squares_of_mean)
            self.uncertainty = (0.5 * found.squares + self.gamma[0]) ** -0.5
            if abs(rho - before) < _STILL or abs(rho - start) > _FARTHEST:
                break
        self.path.append(float(np.clip(rho, start - _FARTHEST, start + _FARTHEST)))

    def _with_law(self, law: Law, guess: NDArray, curvature: Operator) -> _Known:
        """What is known at other precisions from the law at this one.

        For the precision lambda + delta the law's precision grows by delta along the block.
        """
        prior = self.posterior.prior
        self.information = curvature + prior.curvature(guess) * -1.0
        self.guess = law.mode
        away = np.zeros(law.operator.dim)
        away[self.block] = (law.mean - prior.mean)[self.block]
        if not has_matrix(len(away)):
            return self._along_eigenvectors(law, away[self.block])
        unit = prior.unit[: len(away)]

        def share(rho: float, delta: float) -> _Share:
            pull = delta * unit * away
            trace, squares, moved = self._share(law, delta, rho, pull)
            dev = (away - moved)[self.block]
            of_mean = float(self.unit @ dev**2) * _inverse_noise(law, float(pull @ (away - moved)))
            return _Share(trace, squares, of_mean)

        return share

    def _share(
        self, law: Law, delta: float, rho: float, vector: NDArray
    ) -> tuple[float, float, NDArray]:
        """Trace of the data's share ``I - lambda C``, and of its square, and C times a vector.

        C is the covariance under a prior precision that is larger by delta.

        """
        matrix, block, lam = law.operator.dense(), self.block, np.exp(rho)
        matrix[block, block] += delta * self.unit
        root_unit = np.sqrt(self.unit)
        covariance = Dense(matrix).inverse().matrix
        share = -lam * root_unit[:, None] * covariance[np.ix_(block, block)] * root_unit
        share.flat[:: len(block) + 1] += 1
        return float(share.trace()), float(np.sum(share**2)), covariance @ vector

    def _along_eigenvectors(self, law: Law, away: NDArray) -> _Known:
        """The same where D is large: the eigenvectors of the precision serve for all of them.

        They are those of the block, without the other parameters, in units of the prior. `away` is
        the distance of the block from its prior mean.
        """
        matrix, root_unit, inside = law.operator.dense(), np.sqrt(self.unit), self.block
        others = np.setdiff1d(np.arange(len(matrix)), inside)
        across = matrix[np.ix_(others, inside)]
        alone = matrix[np.ix_(inside, inside)]
        alone -= across.T @ np.linalg.solve(matrix[np.ix_(others, others)], across)
        values, vectors = np.linalg.eigh(alone / np.outer(root_unit, root_unit))
        along = (root_unit * away) @ vectors

        def share(rho: float, delta: float) -> _Share:
            known = 1 - np.exp(rho) / (values + delta)
            left = along * values / (values + delta)
            of_mean = float(left @ left) * _inverse_noise(law, delta * float(along @ left))
            return _Share(float(known.sum()), float(known @ known), of_mean)

        return share


def _inverse_noise(law: Law, energy: float) -> float:
    """Mean of 1 / noise variance where the precision is in its units; else 1.

    `energy` is twice what the change of the precision adds to the rate.
    """
    if not isinstance(law, NormalInverseGammaPrior):
        return 1.0
    return law.shape / (law.rate + 0.5 * energy)
