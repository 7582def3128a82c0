"""About where a sampled prior precision is, before the chains start.

Under each precision there is a normal law of the posterior, and beside it a law of log precision
(`JointLaw`). Its mean is the next precision. A few such steps lead to where the two agree to half a
standard deviation, and the chains do the rest. Source: math.md#a-sampled-precision.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.chains.deadline import time_is_up
from skbayes_sg.data.random import fixed_rng
from skbayes_sg.inference.learned_prior import Learned
from skbayes_sg.inference.variational_em import VariationalEM
from skbayes_sg.linalg import Operator
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.gaussian import Law, expanded_twice, known_at, updated
from skbayes_sg.posterior.mode import InitialPoint, find_mode
from skbayes_sg.posterior.precision import Carry, JointLaw, Sampled, SampledPrecision

_SHAPE = 0.5  # of the hyperprior; the prior of the coefficients is then Cauchy's
_LEAST = 1e-3  # precision, over that of the weak prior
_NEAR = 0.5  # standard deviations of log precision
_MOST_LAWS = 8
_ENOUGH_ROWS, _ROWS_A_PARAMETER = 20_000, 100
_MANY_NUMBERS = 2_000_000  # rows times parameters, where the mode is the mean
_NO_INFORMATION = 0.01
_UPDATES = 40  # of chains that start from the weak prior
_FASTER, _SLOWER = 1.3, 0.5  # steps whose excess keeps its sign, and those where it changes


@dataclass(frozen=True)
class Hyperprior:
    """What ``prior_precision="learned"`` stands for where the posterior has one mode.

    All coefficients share one precision, which is sampled. Its prior is Gamma of shape 1/2 around
    the precision of a weak prior: one that knows as much as a row (the unit information prior), or
    under which the outputs of rows have a variance of 10, whichever is stronger. It ends about a
    thousandth of that, so that means exist also where a plane separates the classes.
    """

    per = "block"

    def of(self, posterior: Posterior) -> SampledPrecision:
        """The precision, and its prior; `posterior` is under the precision of that weak prior."""
        (block,) = posterior.model.prior_blocks(self.per).values()
        unit = SampledPrecision(block, _SHAPE, _SHAPE).of(posterior.prior)
        return SampledPrecision(block, _SHAPE, _SHAPE / unit, _LEAST * unit)


class Located(NamedTuple):
    """About where the precision is."""

    sampled: Sampled
    learned: Learned
    carry: Carry
    near: InitialPoint | None
    """Near the mode; None where that is of a part of the rows."""


def locate(precision: SampledPrecision, posterior: Posterior) -> Located:
    """About where the precision is, from normal laws of the posterior under some of its values.

    Parameters
    ----------
    precision : SampledPrecision
    posterior : Posterior
        Under the first precision, of few enough parameters for a curvature.
    """
    few = _few_rows(posterior)
    model = few.model
    assert isinstance(model, Predictor)
    here = InitialPoint(model.guess(few.data.sample.y, few.data.sample.weight), None)
    path, silent = [precision.of(few.prior)], False
    for _ in range(_MOST_LAWS):
        try:
            law, information = _normal_law(few, here)
        except np.linalg.LinAlgError:  # separable classes under next to no prior
            if len(path) == 1:
                raise
            path.pop()
            few = few.with_prior(precision.given(few.prior, path[-1]))
            break
        joint, T = JointLaw.of(law, few.prior, precision)
        if len(path) == 1:
            silent = len(precision.block) - joint.at * joint.j.sum() < _NO_INFORMATION
        path.append(float(np.exp(joint.mean)))
        few = few.with_prior(precision.given(few.prior, path[-1]))
        here = InitialPoint(law.mode, information + few.prior.curvature(law.mode))
        if model.conjugate or abs(np.log(path[-1] / path[-2])) < _NEAR * joint.sd or time_is_up():
            break
    all_rows = few.data is posterior.data
    return Located(
        Sampled(precision, joint.mean, joint.sd),
        as_learned(precision, few, np.array(path), silent),
        Carry(joint, law.mean[: joint.dim], T, float(np.log(path[-1]))),
        here if all_rows else None,
    )


def as_learned(
    precision: SampledPrecision, posterior: Posterior, path: NDArray, silent: bool
) -> Learned:
    """A precision without figures of chains; `posterior` is under it."""
    (label,) = posterior.model.prior_blocks("block")
    return Learned(
        [label],
        path[-1:],
        path[:, None],
        posterior.prior.precision.copy(),
        states=[],
        change=np.zeros(1),
        uncertainty=np.zeros(1),
        stein=np.ones(1),
        stein_error=np.full(1, np.inf),
        silent=np.array([silent]),
        one_each=False,
        hyperprior=True,
    )


def _normal_law(posterior: Posterior, here: InitialPoint) -> tuple[Law, Operator]:
    """The law at the mode or in the mean, and the likelihood's part of its curvature."""
    model, guess = posterior.model, here.theta
    assert isinstance(model, Predictor)
    if model.conjugate:
        mode = expanded_twice(posterior, guess)
        law, curvature = known_at(posterior.prior, mode), mode.curvature
    elif _worth_a_mean(posterior):
        law = updated(posterior, guess)
        guess, curvature = law.mode, law.operator  # type: ignore[assignment]
    else:
        mode = find_mode(posterior, here if here.curvature else guess, fixed_rng("prior"))
        law, curvature = known_at(posterior.prior, mode), mode.curvature
        guess = mode.theta
    return law, curvature + posterior.prior.curvature(guess) * -1.0


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
    """Whether the mean law may differ from that at the mode, and is affordable.

    With ten rows for each of a hundred coefficients the precision at the mode is a tenth too high.
    """
    assert isinstance(posterior.model, Predictor)
    outputs = posterior.model.widest
    few = posterior.n_rows * posterior.dim * outputs <= _MANY_NUMBERS
    few |= outputs == 1 and posterior.n_rows < _ROWS_A_PARAMETER * posterior.dim
    return few and has_matrix(posterior.dim)


# -- very many parameters ---------------------------------------------------------------------


class _InChains(VariationalEM):
    """Updates whose steps grow while the excess keeps its sign, and are halved where it changes.

    They start far from the maximum, are few, and cannot wait for a slow decay (Kesten 1958; Jacobs
    1988).
    """

    def pace(self, t: int, before: NDArray, agrees: NDArray) -> NDArray:
        return before * np.where(agrees, _FASTER if t > 0 else 1.0, _SLOWER)


def in_chains(precision: SampledPrecision) -> VariationalEM:
    """How chains of very many parameters learn the precision, which they do not sample."""
    return _InChains(hyperprior=(precision.shape, precision.rate), n_updates=_UPDATES)
