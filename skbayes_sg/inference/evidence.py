"""About where sampled precisions of the prior are, before the chains start.

Under each precision there is a normal distribution of the posterior, and beside it a distribution
of log precision (`JointDistribution`). Its mean is the next precision. A few such steps lead to
where the two agree to half a standard deviation, and the chains do the rest. Source:
math/priors.md#a-sampled-precision.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.chains.parallel import time_is_up
from skbayes_sg.data import deterministic_rng
from skbayes_sg.data.columns import of_columns
from skbayes_sg.inference.learned_prior import Learned
from skbayes_sg.inference.variational_em import VariationalEM
from skbayes_sg.linalg import DIAGONAL, Operator
from skbayes_sg.linalg.sizes import has_cheap_passes, has_matrix
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.gaussian import (
    Distribution,
    InitialPoint,
    expanded_twice,
    find_mode,
    known_at,
    updated,
)
from skbayes_sg.posterior.marginal_scales import MarginalScales
from skbayes_sg.posterior.non_centred import Sampled
from skbayes_sg.posterior.normal_path import NormalPath
from skbayes_sg.posterior.precision import JointDistribution
from skbayes_sg.priors import Prior
from skbayes_sg.priors.scales import Groups, OnePrecision, Scales
from skbayes_sg.priors.shrinkage import Horseshoe, StudentT

_NEAR = 0.5  # standard deviations of log precision
_MOST_APPROXIMATIONS = 8
_ENOUGH_ROWS, _ROWS_A_PARAMETER = 20_000, 100
_NO_INFORMATION = 0.01
_UPDATES = 40  # of chains that start from the weak prior
_FASTER, _SLOWER = 1.3, 0.5  # steps whose excess keeps its sign, and those where it changes


@dataclass(frozen=True)
class Hyperprior:
    """What a prior whose precisions are sampled stands for where the posterior has one mode.

    All coefficients share one precision, or each group of columns has its own. Their priors are
    around the precision of a weak prior: one that knows as much as a row (the unit information
    prior), or under which the outputs of rows have a variance of 10, whichever is stronger. They
    end about a thousandth of that, so that means exist also where a plane separates the classes.

    Attributes
    ----------
    groups : dict of str to tuple of int, optional
        Columns of X of each group, by label. None: one group of all.
    shrinkage : Horseshoe or StudentT, optional
        In place of a precision for each group, with one group for each column.
    """

    groups: dict[str, tuple[int, ...]] | None = None
    shrinkage: Horseshoe | StudentT | None = None
    per = "block"

    @property
    def is_one(self) -> bool:
        """Whether there is one precision, whose distribution beside a normal one is known."""
        return self.groups is None

    def of(self, posterior: Posterior) -> Scales:
        """The precisions and their prior; `posterior` is under the precision of that weak prior."""
        coef = posterior.model.unpack(np.arange(posterior.dim))["coef"]
        labels, group = ["coef"], np.zeros(coef.shape, int)
        if self.groups is not None:
            labels = list(self.groups)
            for g, columns in enumerate(self.groups.values()):
                group[:, list(columns)] = g
        kind: type[Scales] = OnePrecision if self.is_one else Groups
        prior, first = posterior.prior, coef[0, 0]
        unit = float(prior.precision[first] / prior.unit[first])
        found = kind(coef.ravel(), group.ravel(), labels, unit)
        if self.shrinkage is None:
            return found
        return self.shrinkage.scales(found, _mean_information(posterior, found))


def _mean_information(posterior: Posterior, scales: Scales) -> float:
    """Of the rows about a coefficient, in units of the prior, where all coefficients are 0.

    The intercept, which is not known either, is eliminated. All rows are equally informative there,
    so that the columns' variances take the place of their mean squares: what is known of a
    coefficient does not depend on where its column has its zero.
    """
    sample, model = posterior.data.sample, posterior.model
    theta = model.guess(sample.y, sample.weight)
    here = posterior.of_sample.expand(theta, DIAGONAL).curvature.diagonal()
    here = here - posterior.prior.curvature(theta).diagonal()
    noise = 1.0 if posterior.prior.quadratic else np.exp(theta[0, -1])
    if "intercept" in model.shapes:
        of_rows = model.unpack(here)["intercept"].reshape(-1, 1)
        here[scales.block] = (of_rows * of_columns(posterior.data).variance).ravel()
    each = noise * here[scales.block] / posterior.prior.unit[scales.block]
    return float(each.mean())


class Located(NamedTuple):
    """What is known of the precisions before the chains start."""

    sampled: Sampled | None = None
    """Where chains that sample them look for them; None: they are given, or learned."""
    learned: Learned | None = None
    """About where they are."""
    initial: InitialPoint | None = None
    """Near the mode; None where that is of a part of the rows, or not needed."""
    path: NormalPath | None = None
    """Normal distributions under one precision, where one does not say all."""


def locate(scales: Scales, posterior: Posterior) -> Located:
    """About where precisions are, from Gaussian approximations under some of their values.

    Parameters
    ----------
    scales : Scales
    posterior : Posterior
        Under the first precisions, of few enough parameters for a curvature.
    """
    few = _few_rows(posterior)
    if isinstance(scales, OnePrecision) and not few.predictor.conjugate:
        found = _along_path(NormalPath(few, scales, _worth_a_mean(few)))
    else:
        found = _step_by_step(scales, few)
    # the mode of a conjugate model is a step from any point
    serves = few.data is posterior.data and not few.predictor.conjugate
    return found if serves else found._replace(initial=None)


def _along_path(path: NormalPath) -> Located:
    """One precision, from the weak prior to the mean of its logarithm."""
    scales, first = path.scales, path.posterior.prior
    rho = [float(scales.start(first)[0, 0])]
    uninformed = np.array([path.at(rho[0]).known < _NO_INFORMATION])
    for _ in range(_MOST_APPROXIMATIONS):
        centre, width = path.moments()
        rho.append(centre)
        if abs(path.near(centre).rho - centre) < _NEAR * width or time_is_up():
            break
        try:
            path.at(centre)
        except np.linalg.LinAlgError:  # separable classes under next to no prior
            rho[-1] = path.near(centre).rho
            break
    sampled = Sampled(scales, np.array(rho[-1:]), np.array([width]))
    values = np.append(scales.of(first)[None], np.exp(np.array(rho[1:]))[:, None], axis=0)
    learned = as_learned(scales, path.under(rho[-1]), values, uninformed)
    return Located(sampled, learned, path.initial(rho[-1]), path)


def _step_by_step(scales: Scales, posterior: Posterior) -> Located:
    """Several precisions, or those of a conjugate model, from one distribution to another."""
    model = posterior.predictor
    rows = posterior.data.sample
    here = InitialPoint(model.guess(rows.y, rows.weight), None)
    path, uninformed = [np.log(scales.of(posterior.prior))], np.zeros(len(scales.labels), bool)
    eta = scales.start(posterior.prior)
    for _ in range(_MOST_APPROXIMATIONS):
        try:
            distribution, information = _normal_approximation(posterior, here)
        except np.linalg.LinAlgError:  # separable classes under next to no prior
            if len(path) == 1:
                raise
            path.pop()
            posterior = posterior.with_prior(scales.given(posterior.prior, path[-1]))
            break
        found = _beside(scales, distribution, posterior.prior, eta)
        if len(path) == 1:
            uninformed = found.known < _NO_INFORMATION
        before, eta = eta, found.centre[None]
        path.append(scales.log_precisions(eta)[0])
        posterior = posterior.with_prior(scales.given(posterior.prior, path[-1]))
        prior = posterior.prior.curvature(distribution.mode)
        here = InitialPoint(distribution.mode, information + prior)
        close = np.abs(eta - before) < _NEAR * found.width
        known = model.conjugate and isinstance(scales, OnePrecision)
        if known or close.all() or time_is_up():
            break
    learned = as_learned(scales, posterior, np.exp(path), uninformed)
    sampled = Sampled(scales, found.centre, found.width)
    return Located(sampled, learned, here)


class _Beside(NamedTuple):
    """The hyperparameters beside a normal distribution of the posterior."""

    centre: NDArray
    """(K,)"""
    width: NDArray
    """(K,)"""
    known: NDArray
    """What the data know of the coefficients of each group, as a number of them."""


def _beside(scales: Scales, distribution: Distribution, prior: Prior, eta: NDArray) -> _Beside:
    """Mean and width of one log precision, whose distribution is known; else the mode, from eta."""
    if isinstance(scales, OnePrecision):
        joint, _ = JointDistribution.of(distribution, prior, scales)
        known = scales.sizes - joint.at * joint.j.sum()
        return _Beside(np.array([joint.mean]), np.array([joint.sd]), known)
    marginal = MarginalScales(scales, distribution, prior)
    centre = marginal.mode(eta)
    return _Beside(centre, marginal.width(centre), marginal.known(scales.of(prior)))


def as_learned(scales: Scales, posterior: Posterior, path: NDArray, uninformed: NDArray) -> Learned:
    """Precisions without figures of chains; `posterior` is under the last of the path."""
    precision = posterior.prior.precision.copy()
    return Learned(scales.labels, path[-1], path, precision, uninformed)


def _normal_approximation(
    posterior: Posterior, here: InitialPoint
) -> tuple[Distribution, Operator]:
    """The distribution at the mode or in the mean, and the likelihood's part of its curvature."""
    model, guess = posterior.predictor, here.theta
    if model.conjugate:
        mode = expanded_twice(posterior, guess)
        distribution, curvature = known_at(posterior.prior, mode), mode.curvature
    elif _worth_a_mean(posterior):
        distribution = updated(posterior, guess)
        guess, curvature = distribution.mode, distribution.operator  # type: ignore[assignment]
    else:
        mode = find_mode(posterior, here if here.curvature else guess, deterministic_rng("prior"))
        distribution, curvature = known_at(posterior.prior, mode), mode.curvature
        guess = mode.theta
    return distribution, curvature + posterior.prior.curvature(guess) * -1.0


def _few_rows(posterior: Posterior) -> Posterior:
    """The posterior of some rows alone, where there are very many.

    They know the precision of P coefficients nearly as well as all rows: its logarithm has an
    uncertainty of sqrt(2 / P) however many rows there are. And the more rows, the less it matters.
    """
    data, dim = posterior.data.sample, posterior.dim
    m = max(_ENOUGH_ROWS, _ROWS_A_PARAMETER * dim)
    if data.n_rows > 2 * m:
        rows = deterministic_rng("prior rows").choice(data.n_rows, m, replace=False)
        data = data.some(np.sort(rows))
    elif posterior.of_sample is posterior:
        return posterior
    alone = replace(data, n_total=float(data.n_rows))
    return Posterior(posterior.model, alone, posterior.prior)


def _worth_a_mean(posterior: Posterior) -> bool:
    """Whether the mean distribution may differ from that at the mode, and is affordable.

    With ten rows for each of a hundred coefficients the precision at the mode is a tenth too high.
    """
    outputs = posterior.predictor.widest
    few = has_cheap_passes(posterior.n_rows, posterior.dim, outputs)
    few |= outputs == 1 and posterior.n_rows < _ROWS_A_PARAMETER * posterior.dim
    return few and has_matrix(posterior.dim)


# -- very many parameters ---------------------------------------------------------------------


class _InChains(VariationalEM):
    """Updates whose steps grow while the excess keeps its sign, and are halved where it changes.

    They start far from the maximum, are few, and cannot wait for a slow decay (Kesten 1958; Jacobs
    1988).
    """

    asked_for = False

    def pace(self, t: int, before: NDArray, agrees: NDArray) -> NDArray:
        return before * np.where(agrees, _FASTER if t > 0 else 1.0, _SLOWER)


def in_chains(scales: Scales) -> VariationalEM:
    """How chains of very many parameters learn the precision, which they do not sample."""
    assert isinstance(scales, OnePrecision)
    return _InChains(hyperprior=(scales.shape, scales.rate), n_updates=_UPDATES)
