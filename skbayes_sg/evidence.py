"""Learning one prior precision before the chains start: variational EM with a normal law.

The E-step is the normal law of the posterior, at the mode and then in the mean (`variational`). The
M-step is MacKay's. Between two E-steps the law follows the precision in closed form, since the
likelihood's part of it stays. So a few searches for the mode do. A Gamma hyperprior holds the
precision where the data hardly determine it. Source: math.md#the-default-prior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from skbayes_sg.anchor import LARGE_SHIFT, Mode, Near, find_mode, step_to_mean
from skbayes_sg.empirical_bayes import VariationalEM
from skbayes_sg.learned_prior import BOUNDS, Learned
from skbayes_sg.linalg import Dense, Operator
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Posterior
from skbayes_sg.priors import NormalInverseGammaPrior
from skbayes_sg.rows import fixed_rng
from skbayes_sg.variational import Law, updated
from skbayes_sg.whitening import FULL_CURVATURE_DIM, affordable, kronecker, many_outputs

_SHAPE = 0.5  # of the hyperprior; the prior of the coefficients is then Cauchy's
_MOST_LAWS = 10
_MOST_STEPS = 100
_STILL = 0.01  # change of log precision
_NEAR = 0.1  # change of log precision over which a law may be followed and not found anew
_FARTHEST = 3.0
_ENOUGH_ROWS, _ROWS_A_PARAMETER = 20_000, 100
_MANY_NUMBERS = 2_000_000  # rows times parameters, where the mode is the mean
_PROBES = 64
_SKEWED = 0.3  # of the log precisions at the mode and in the mean
_UPDATES, _FEW_UPDATES = 60, 20  # of chains that go on; few where each is dear
_CHEAP_UPDATES = 100  # parameters up to which an update of chains takes less than their draws
_NO_INFORMATION = 0.01


@dataclass(frozen=True)
class NormalEM:
    """What ``prior_precision="em"`` stands for where the posterior has one mode.

    All coefficients share one precision. Its hyperprior is Gamma of shape 1/2 around the precision
    of a prior that knows as much as one row (the unit information prior).
    """

    per = "block"

    def hyperprior(self, unit: float) -> tuple[float, float]:
        """Shape and rate, from the precision of the unit information prior."""
        return _SHAPE, _SHAPE / unit


class _Onward(VariationalEM):
    """Few updates in the chains, in Newton steps of the evidence: they start near its maximum."""

    def __init__(self, hyperprior: tuple[float, float], n_updates: int, first_step: float) -> None:
        super().__init__(hyperprior=hyperprior, n_updates=n_updates)
        self.first_step = first_step


class _Share(NamedTuple):
    """What the data know of a block, and the law's covariance times some vector."""

    trace: float
    squares: float
    """Trace of the square."""
    moved: NDArray
    """(d,)"""


def learn_before(
    em: NormalEM, posterior: Posterior
) -> tuple[Learned | None, VariationalEM | None, Near | None]:
    """The precision of all coefficients, before any chain.

    Parameters
    ----------
    em : NormalEM
    posterior : Posterior
        Under the precision of the unit information prior.

    Returns
    -------
    Learned or None
        None where there are too many parameters for a curvature.
    VariationalEM or None
        How chains should go on from there, if no normal law will do.
    Near or None
        Near the mode under the learned precision; None where that is of a part of the rows.
    """
    ((label, block),) = posterior.model.prior_blocks(em.per).items()
    gamma = em.hyperprior(float(posterior.prior.precision[block[0]]))
    if not (many_outputs(posterior) or affordable(posterior)):
        return None, VariationalEM(hyperprior=gamma), None
    few = _few_rows(posterior)
    found = _Search(few, block, gamma)
    found.run(mean=False)
    at_mode = found.path[-1]
    if _worth_a_mean(posterior):
        found.run(mean=True)
        normal = abs(found.path[-1] - at_mode) <= _SKEWED
    else:
        normal = not many_outputs(posterior) and found.is_normal()
    learned, near = found.learned(label), found.near() if few is posterior else None
    if normal:
        return learned, None, near
    n_updates = _UPDATES if posterior.dim <= _CHEAP_UPDATES else _FEW_UPDATES
    onward = _Onward(gamma, n_updates, len(block) * found.uncertainty**2 / 2)
    return learned, onward, near


def _few_rows(posterior: Posterior) -> Posterior:
    """The posterior of some rows alone, where there are very many.

    They know the precision of P coefficients nearly as well as all rows: its logarithm has an
    uncertainty of sqrt(2 / P) however many rows there are. And the more rows, the less it matters.
    """
    data, dim = posterior.data.sample, posterior.dim
    m = max(_ENOUGH_ROWS, _ROWS_A_PARAMETER * dim)
    if data.n_rows > 2 * m:
        rows = fixed_rng("prior rows").choice(data.n_rows, m, replace=False)
        data = data.some(np.sort(rows))
    elif posterior.of_sample is posterior:
        return posterior
    alone = replace(data, n_total=float(data.n_rows))
    return Posterior(posterior.model, alone, posterior.prior)


def _worth_a_mean(posterior: Posterior) -> bool:
    """Whether the mean law may differ from that at the mode, and is affordable."""
    assert isinstance(posterior.model, Predictor)
    few = posterior.n_rows * posterior.dim * posterior.model.widest <= _MANY_NUMBERS
    small = posterior.dim <= FULL_CURVATURE_DIM and few
    return small and not posterior.model.conjugate and posterior.of_sample is posterior


class _Search:
    """The way of log precision, and the law there."""

    def __init__(self, posterior: Posterior, block: NDArray, gamma: tuple[float, float]) -> None:
        self.posterior, self.block, self.gamma = posterior, block, gamma
        rows = posterior.data.sample
        self.guess = posterior.model.guess(rows.y, rows.weight)
        self.information: Operator | None = None  # of the likelihood, near the guess
        self.path = [float(np.log(posterior.prior.precision[block[0]]))]
        self.silent = False
        self.uncertainty = np.inf

    def run(self, mean: bool) -> None:
        """Find the law and follow it, in turn, until the precision stays.

        Changes shrink by a factor from law to law, so the sum of those to come is known.
        """
        changes: list[float] = []
        for _ in range(_MOST_LAWS):
            before = self.path[-1]
            if many_outputs(self.posterior):
                self._one_step()
            else:
                self._follow(self._law(mean))
            changes.append(self.path[-1] - before)
            still = abs(changes[-1]) < _NEAR
            if still and len(changes) > 1 and 0 < (r := changes[-1] / changes[-2]) < 1 - _NEAR:
                self.path[-1] += changes[-1] * r / (1 - r)
            prior = self.posterior.prior.with_precision(self._precision())
            self.posterior = self.posterior.with_prior(prior)
            if still:
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
        few = self.posterior.dim <= FULL_CURVATURE_DIM  # a step costs as much as a mode beyond
        if model.conjugate or not (few and isinstance(here.curvature, Dense)):
            return True
        mode = Mode(here.theta, here.curvature, np.zeros_like(here.theta), 0.0)
        return step_to_mean(self.posterior, mode)[1] <= LARGE_SHIFT

    def near(self) -> Near:
        """The last mode or mean, and the curvature there under the present precision."""
        if self.information is None:
            return Near(self.guess, None)
        prior = self.posterior.prior.curvature(self.guess)
        return Near(self.guess, self.information + prior)

    def _precision(self) -> NDArray:
        precision = self.posterior.prior.precision.copy()
        precision[self.block] = np.exp(self.path[-1])
        return precision

    def _law(self, mean: bool) -> Law:
        """The law of the posterior: of the mode, or the variational one."""
        prior: Law = self.posterior.prior  # type: ignore[assignment]
        curvature: Operator
        if mean:
            law = updated(self.posterior, self.guess)
            here, curvature = law.mode, law.operator
        else:
            mode = find_mode(self.posterior, self._start(), fixed_rng("prior"))
            here, curvature = mode.theta, mode.curvature
            law = prior.updated(here, mode.gradient, curvature)  # type: ignore[arg-type]
        self.information = curvature + prior.curvature(here) * -1.0
        self.guess = law.mode
        return law

    def _start(self) -> NDArray | Near:
        """Where to look for the next mode."""
        return self.guess if self.information is None else self.near()

    def _one_step(self) -> None:
        """MacKay's step where a curvature has Kronecker factors.

        In their coordinates the curvature is about the identity, of which the data have the rest
        that the prior leaves. They have all of the intercepts.
        """
        posterior, block = self.posterior, self.block
        mode = self.guess = find_mode(posterior, self.guess, fixed_rng("prior")).theta
        prior = posterior.prior.curvature(mode).diagonal()
        share = 1 - kronecker(posterior, mode).pulled_diagonal(prior)
        known = share.sum() - (posterior.dim - len(block))
        squares = np.sum((mode[0] - posterior.prior.mean)[block] ** 2)
        self.path.append(self._updated(known, float(squares)))
        self.uncertainty = (0.5 * np.sum(share**2) + self.gamma[0]) ** -0.5

    def _updated(self, known: float, squares: float) -> float:
        """Log precision, from the number of known coefficients and the sum of squared means."""
        shape, rate = self.gamma
        rho = np.log((max(known, 0.0) + 2 * shape) / (squares + 2 * rate))
        return float(np.clip(rho, *np.log(BOUNDS)))

    def _follow(self, law: Law) -> None:
        """MacKay's iteration, with the law of other precisions from this law.

        ``lambda = (P - lambda tr C + 2 a) / (sum of squared means + 2 b)``. For the precision
        lambda + delta the law's precision grows by delta along the block.
        """
        start, prior = self.path[-1], self.posterior.prior
        away = np.zeros(law.operator.dim)
        away[self.block] = (law.mean - prior.mean)[self.block]
        rho = start
        for step in range(_MOST_STEPS):
            delta = np.exp(rho) - np.exp(start)
            share = self._share(law, delta, rho, delta * away)
            dev = (away - share.moved)[self.block]
            squares = float(dev @ dev) * _inverse_noise(law, delta * away, share.moved, away)
            if step == 0 and len(self.path) == 1:
                self.silent = share.trace < _NO_INFORMATION
            before, rho = rho, self._updated(share.trace, squares)
            self.uncertainty = (0.5 * share.squares + self.gamma[0]) ** -0.5
            if abs(rho - before) < _STILL or abs(rho - start) > _FARTHEST:
                break
        self.path.append(float(np.clip(rho, start - _FARTHEST, start + _FARTHEST)))

    def _share(self, law: Law, delta: float, rho: float, vector: NDArray) -> _Share:
        """Of the data's share ``I - lambda C``, under a prior precision that is larger by delta.

        Exact, or by random signs where D is large.
        """
        matrix, block, lam = law.operator.dense(), self.block, np.exp(rho)
        matrix[block, block] += delta
        if len(matrix) <= FULL_CURVATURE_DIM:
            covariance = Dense(matrix).inverse().matrix
            share = -lam * covariance[np.ix_(block, block)]
            share.flat[:: len(block) + 1] += 1
            return _Share(float(share.trace()), float(np.sum(share**2)), covariance @ vector)
        root = Dense(matrix).cholesky()
        signs = np.zeros((len(matrix), _PROBES))
        signs[block] = fixed_rng("prior").choice([-1.0, 1.0], (len(block), _PROBES))
        solved = cho_solve((root.matrix, True), np.column_stack([signs, vector]))
        known = signs[block] - lam * solved[block, :-1]
        trace = float(np.sum(signs[block] * known)) / _PROBES
        return _Share(trace, float(np.sum(known**2)) / _PROBES, solved[:, -1])


def _inverse_noise(law: Law, pull: NDArray, moved: NDArray, away: NDArray) -> float:
    """Mean of 1 / noise variance where the precision is in its units; else 1."""
    if not isinstance(law, NormalInverseGammaPrior):
        return 1.0
    return law.shape / (law.rate + 0.5 * float(pull @ (away - moved)))
