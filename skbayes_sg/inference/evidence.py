"""Learning one prior precision before the chains start: variational EM with a normal law.

The E-step is the normal law of the posterior, at the mode and then in the mean (`variational`). The
M-step is MacKay's. Between two E-steps the law follows the precision in closed form, since the
likelihood's part of it stays. So a few searches for the mode do. A Gamma hyperprior holds the
precision where the data hardly determine it. Source: math.md#the-default-prior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data.random import fixed_rng
from skbayes_sg.inference.evidence_search import NEAR, Search
from skbayes_sg.inference.learned_prior import Learned
from skbayes_sg.inference.variational_em import VariationalEM
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.mode import InitialPoint
from skbayes_sg.posterior.whitening import affordable

_SHAPE = 0.5  # of the hyperprior; the prior of the coefficients is then Cauchy's
_ROUGHLY = 0.6  # change of log precision, where other laws, or the chains, go on from there
_ENOUGH_ROWS, _ROWS_A_PARAMETER = 20_000, 100
_MANY_NUMBERS = 2_000_000  # rows times parameters, where the mode is the mean
_SKEWED = 0.3  # of the log precisions at the mode and in the mean
_UPDATES, _FEW_UPDATES = 60, 20  # of chains that go on; few where each is dear
_FROM_FAR = 40  # of chains that start from the weak prior
_CHEAP_UPDATES = 100  # parameters up to which an update of chains takes less than their draws
_FASTER, _SLOWER = 1.3, 0.5  # steps whose excess keeps its sign, and those where it changes


@dataclass(frozen=True)
class NormalEM:
    """What ``prior_precision="em"`` stands for where the posterior has one mode.

    All coefficients share one precision. Its hyperprior is Gamma of shape 1/2 around the precision
    of a weak prior: one that knows as much as a row (the unit information prior), or under which
    the outputs of rows have a variance of 10, whichever is stronger.
    """

    per = "block"

    def hyperprior(self, unit: float) -> tuple[float, float]:
        """Shape and rate, from the precision of that weak prior."""
        return _SHAPE, _SHAPE / unit


class _Onward(VariationalEM):
    """Updates in the chains, in Newton steps of the evidence: they start near its maximum."""

    def __init__(self, hyperprior: tuple[float, float], n_updates: int, first_step: float) -> None:
        super().__init__(hyperprior=hyperprior, n_updates=n_updates)
        self.first_step = first_step


class _FewOnward(_Onward):
    """Few updates, whose steps cannot wait for a slow decay.

    The curvature of the evidence at the mode may be far from that in the mean. So steps grow while
    the excess keeps its sign, and are halved where it changes (Kesten 1958; Jacobs 1988).
    """

    def pace(self, t: int, before: NDArray, agrees: NDArray) -> NDArray:
        return before * np.where(agrees, _FASTER if t > 0 else 1.0, _SLOWER)


def learn_before(
    em: NormalEM, posterior: Posterior
) -> tuple[Learned | None, VariationalEM | None, InitialPoint | None]:
    """The precision of all coefficients, before any chain.

    Parameters
    ----------
    em : NormalEM
    posterior : Posterior
        Under the precision of the weak prior of `NormalEM`.

    Returns
    -------
    Learned or None
        None where there are too many parameters for a curvature.
    VariationalEM or None
        How chains should go on from there, if no normal law will do.
    InitialPoint or None
        Near the mode under the learned precision; None where that is of a part of the rows.
    """
    ((label, block),) = posterior.model.prior_blocks(em.per).items()
    prior = posterior.prior
    gamma = em.hyperprior(float(prior.precision[block[0]] / prior.unit[block[0]]))
    if not affordable(posterior):
        return None, _FewOnward(gamma, _FROM_FAR, VariationalEM.first_step), None
    few = _few_rows(posterior)
    found = Search(few, block, gamma)
    normal = _searched(found, posterior)
    learned, near = found.learned(label), found.near() if few is posterior else None
    if normal:
        return learned, None, near
    first_step = len(block) * found.uncertainty**2 / 2
    if posterior.dim > _CHEAP_UPDATES:
        return learned, _FewOnward(gamma, _FEW_UPDATES, first_step), near
    return learned, _Onward(gamma, _UPDATES, first_step), near


def _searched(found: Search, posterior: Posterior) -> bool:
    """Find the precision, and say whether the normal law of the posterior serves for it."""
    exact = _worth_a_mean(posterior)
    nearer = not exact and _off_the_mode(posterior)
    found.run(found.at_mode, _ROUGHLY if nearer else NEAR)
    at_mode = found.path[-1]
    if exact:
        found.run(found.in_mean)
        return abs(found.path[-1] - at_mode) <= _SKEWED
    if not found.is_normal():
        return False
    if nearer:
        found.run(found.nearer_mean)
    return True


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
    small = has_matrix(posterior.dim) and few
    return small and not posterior.model.conjugate and posterior.of_sample is posterior


def _off_the_mode(posterior: Posterior) -> bool:
    """Whether rows are so few that the mode gives another precision, and steps to the mean cheap.

    With ten rows for each of a hundred coefficients that of the mode is a tenth too high.
    """
    model, here = posterior.model, posterior.of_sample is posterior
    assert isinstance(model, Predictor)
    single = model.widest == 1 and not model.conjugate
    return here and single and posterior.n_rows < _ROWS_A_PARAMETER * posterior.dim
