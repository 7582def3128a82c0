"""The precisions of the prior: what is asked, about where they are, and what was learned.

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

from skbayes_sg.chains.run import time_is_up
from skbayes_sg.data import deterministic_rng
from skbayes_sg.diagnostics import STEIN_LIMIT
from skbayes_sg.linalg import Dense, Diag
from skbayes_sg.linalg.sizes import has_cheap_passes, has_matrix
from skbayes_sg.models import Model
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.gaussian import (
    InitialPoint,
    NormalPath,
    expanded_twice,
    find_mode,
    known_at,
    updated,
)
from skbayes_sg.posterior.information import mean_information
from skbayes_sg.posterior.marginal_scales import MarginalScales
from skbayes_sg.posterior.precision import JointDistribution
from skbayes_sg.priors import Distribution, NormalPrior, Prior
from skbayes_sg.priors.scales import Groups, OnePrecision, Sampled, Scales
from skbayes_sg.priors.shrinkage import ScaleMixture

BOUNDS = (1e-6, 1e6)
"""Smallest and largest learned precision."""

SEPARATED = (
    "a plane separates the classes: rows bound coefficients and prior precision from one side "
    "only, and intervals are too narrow; give prior_precision a number that you believe in"
)
_NONE = -1  # of a coefficient that is not shrunken: the number of its group
_NEAR = 0.5  # standard deviations of log precision
_MOST_APPROXIMATIONS = 8
_ROWS_A_PARAMETER = 100
NO_INFORMATION = 0.01
"""What rows know of coefficients, as their number, below which they say nothing of them."""


@dataclass(frozen=True)
class Hyperprior:
    """What a prior whose precisions are sampled stands for where the posterior has one mode.

    All coefficients share one precision, or each group of columns has its own. Their priors are
    around the precision of a weak prior: one that knows as much as a row (the unit information
    prior), or under which the outputs of rows have a variance of 10, whichever is stronger. They
    end about a thousandth of that, so that means exist also where a plane separates the classes.
    Those of groups in linear regression do not end: there they are the variance of the noise over
    that of a group's coefficients, which may be a million times as large, and rows bound all
    coefficients (math/priors.md#where-posterior-means-exist).

    Attributes
    ----------
    groups : dict of str to tuple of int, optional
        Columns of X of each group, by label. None: one group of all. The precisions of columns in
        no group are those of the weak prior.
    shrinkage : ScaleMixture, optional
        In place of a precision for each group, with one group for each column.
    """

    groups: dict[str, tuple[int, ...]] | None = None
    shrinkage: ScaleMixture | None = None
    per = "block"

    def of(self, posterior: Posterior) -> Scales:
        """The precisions and their prior; `posterior` is under the precision of that weak prior."""
        scales = self.scales_of(posterior.model, posterior.prior)
        if self.shrinkage is None:
            return scales
        return self.shrinkage.scales(scales, mean_information(posterior, scales))

    def scales_of(self, model: Model, prior: Prior) -> Scales:
        """The precisions, but for shrinkage; `prior` is that weak prior."""
        coef = model.unpack(np.arange(model.dim))["coef"]
        labels, group = ["coef"], np.zeros(coef.shape, int)
        if self.groups is not None:
            labels, group[:] = list(self.groups), _NONE
            for g, columns in enumerate(self.groups.values()):
                group[:, list(columns)] = g
        block, group = coef[group != _NONE], group[group != _NONE]
        unit = float(prior.precision[block[0]] / prior.unit[block[0]])
        members = (block, group, labels)
        if self.groups is None:
            return OnePrecision(*members, unit)
        return Groups(*members, unit, ends=not model.conjugate)


def remedy_of(asked_for: bool, hyperprior: bool) -> str:
    """Where the precision has no bounds: whether the user gave VariationalEM, and a hyperprior."""
    number = "give prior_precision a number"
    return f"{number}, or VariationalEM a hyperprior" if asked_for and not hyperprior else number


@dataclass
class LearnedPrecision:
    """Learned prior precisions, their path, and the figures behind the warnings."""

    labels: list[str]
    values: NDArray
    """(blocks,)"""
    path: NDArray
    """(updates, blocks), the geometric mean over the groups of chains."""
    precision: NDArray
    """(D,)"""
    uninformed: NDArray
    """Whether a block has no data under the first precision, (blocks,)."""
    sampled: Sampled | None = None
    """Where chains that sample them look for them; None: chains learned them."""
    change: NDArray | float = 0.0
    """Change of log precision, (blocks,).

    The larger of two: the change from the third quarter of the path to the last, and half the range
    over groups of chains. Or the next step, where the evidence is climbed.
    """
    uncertainty: NDArray | float = 0.0
    """Standard deviation of log precision given the data, (blocks,); infinite without data."""
    stein: NDArray | float = 1.0
    """Drawn over wanted variance, mean over each block, (blocks,)."""
    stein_error: NDArray | float = 0.0
    """Bound of |stein - 1| by chance, exceeded in one fit of a thousand, (blocks,)."""
    one_each: bool = False
    """Whether blocks are single features. The precision of one feature is always vague."""
    hyperprior: bool = True
    """Whether a hyperprior holds what the data leave vague."""
    asked_for: bool = False
    """Whether the user gave VariationalEM, and so has its parameters."""

    @property
    def blocks(self) -> dict[str, float]:
        """The precision of each block by its label."""
        return dict(zip(self.labels, self.values.tolist(), strict=True))

    def under(self, posterior: Posterior) -> Posterior:
        """A posterior under the prior with these precisions."""
        return posterior.with_prior(posterior.prior.with_precision(self.precision))

    @property
    def excess(self) -> NDArray:
        """Changes over those that do not matter, (blocks,): above 1 a precision still moves.

        A change of log precision by .05 never matters, nor does a share of its uncertainty.
        """
        share = 1.0 if self.hyperprior else 0.25
        return self.change / np.maximum(0.05, share * np.asarray(self.uncertainty))

    def warnings(self) -> list[str]:
        """Warnings about the learned precisions; none where these are the first ones yet."""
        if self.sampled is not None and len(self.path) == 1:
            return []
        said, values = [], self.values
        change, uncertainty, stein, _ = np.broadcast_arrays(  # one number of sampled ones
            self.change, self.uncertainty, self.stein, values
        )
        low, high = values <= BOUNDS[0] * 1.01, values >= BOUNDS[1] / 1.01

        def named(which: NDArray) -> str:
            names = [self.labels[i] for i in np.flatnonzero(which)]
            others = f" and {len(names) - 3} more" if len(names) > 3 else ""
            return ", ".join(names[:3]) + others

        if low.any():
            said.append(
                f"the learned precision of {named(low)} is at its lower limit, {BOUNDS[0]:g}: the "
                "weights have no bound, as with separable classes or columns of tiny numbers; "
                f"scale the columns of X, or {remedy_of(self.asked_for, self.hyperprior)}"
            )
        elif (used := high & np.isfinite(uncertainty)).any():  # others are switched off
            said.append(
                f"the learned precision of {named(used)} is at its upper limit, {BOUNDS[1]:g}: "
                "columns of large numbers, or weights of no use; scale the columns of X"
            )

        inside = ~(low | high)
        vague = (uncertainty > 1.0) & inside  # of log precision
        if self.uninformed.any():
            said.append(
                f"the data say nothing about {named(self.uninformed)} (zero or constant columns): "
                "its precision was not learned"
            )
        elif vague.any() and not (self.one_each or self.hyperprior):
            said.append(
                f"the data hardly determine the precision of {named(vague)}: log precision is "
                f"known to {uncertainty[vague].max():.1f} at best (few weights, or few rows for "
                f"them); {remedy_of(self.asked_for, self.hyperprior)}"
            )

        excess = self.excess
        moving = (excess > 1) & inside
        if moving.any():
            worst = np.where(moving, excess, 0).argmax()
            label, factor = self.labels[worst], np.exp(change[worst])
            said.append(
                f"prior_precision_path_ still moves for {named(moving)}: that of {label} by a "
                f"factor of {factor:.2f} over its last half; raise n_chains, or give "
                "prior_precision a number, or raise n_updates of VariationalEM"
                if self.asked_for
                else f"the prior precision was not found: after {len(self.path)} values the next "
                f"step from {values[worst]:.3g} is a factor of {factor:.2f}; give prior_precision "
                "a number"
            )

        off = np.abs(stein - 1)
        wrong = (off > STEIN_LIMIT) & (off > self.stein_error)
        if wrong.any():
            worst = np.where(wrong, off, 0).argmax()
            said.append(
                f"while the precision of {named(wrong)} was learned, the variances drawn in "
                f"{self.labels[worst]} were {stein[worst]:.2f} times those wanted: the precision "
                'may be biased; use sampler="sgfs" or "hmc", or raise burn_in'
            )
        return said


def as_learned(
    sampled: Sampled, prior: Prior, path: NDArray, uninformed: NDArray
) -> LearnedPrecision:
    """Precisions without figures of chains; `prior` has the last of the path."""
    precision, labels = prior.precision.copy(), sampled.scales.labels
    return LearnedPrecision(labels, path[-1], path, precision, uninformed, sampled)


# -- about where they are, before the chains start ---------------------------------------------


class PrecisionEstimate(NamedTuple):
    """What is known of sampled precisions before the chains start."""

    learned: LearnedPrecision
    """Precisions about where they are."""
    initial: InitialPoint | None = None
    """A point near the mode; None where that is of a part of the rows, or not needed."""
    path: NormalPath | None = None
    """Normal distributions under one precision, where one does not say all."""


def estimate_precision(scales: Scales, posterior: Posterior) -> PrecisionEstimate:
    """About where precisions are, from Gaussian approximations under some of their values.

    Parameters
    ----------
    scales : Scales
    posterior : Posterior
        Under the first precisions, of few enough parameters for a curvature.
    """
    # Of very many rows, some know the precision of P coefficients nearly as well as all: its
    # logarithm has an uncertainty of sqrt(2 / P) however many rows there are. And the more rows,
    # the less it matters.
    all_rows, data, dim = posterior, posterior.data.sample, posterior.dim
    m = max(20_000, _ROWS_A_PARAMETER * dim)
    few = data.n_rows > 2 * m
    if few:
        rows = deterministic_rng("prior rows").choice(data.n_rows, m, replace=False)
        data = data.some(np.sort(rows))
    if few or posterior.of_sample is not posterior:
        alone = replace(data, n_total=float(data.n_rows))
        posterior = Posterior(posterior.model, alone, posterior.prior)
    # With ten rows for each of a hundred coefficients the precision at the mode is a tenth too
    # high, so that the distribution is that which agrees with its own means, where affordable.
    outputs, n_rows = posterior.predictor.widest, posterior.n_rows
    in_mean = has_cheap_passes(n_rows, dim, outputs)
    in_mean |= outputs == 1 and n_rows < _ROWS_A_PARAMETER * dim
    in_mean &= has_matrix(dim)
    # the mode of a conjugate model is a step from any point
    serves = posterior.data is all_rows.data and not posterior.predictor.conjugate
    if posterior.predictor.conjugate or not isinstance(scales, OnePrecision):
        learned, near = _step_by_step(scales, posterior, in_mean)
        return PrecisionEstimate(learned, near if serves else None)

    # one precision, from the weak prior to the mean of its logarithm
    path, first = NormalPath(posterior, scales, in_mean), posterior.prior
    rho = [float(np.log(scales.of(first)[0]))]
    uninformed = np.array([path.at(rho[0]).n_determined < NO_INFORMATION])
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
    values = np.append(scales.of(first)[None], np.exp(np.array(rho[1:]))[:, None], axis=0)
    sampled = Sampled(scales, np.array(rho[-1:]), np.array([width]))
    initial = path.initial(rho[-1]) if serves else None
    learned = as_learned(sampled, scales.given(first, np.array(rho[-1:])), values, uninformed)
    return PrecisionEstimate(learned, initial, path)


def precision_beside(
    scales: Scales, distribution: Distribution, prior: NormalPrior, eta: NDArray
) -> LearnedPrecision:
    """About where precisions are beside a distribution under a prior, without a row.

    The search for them starts at eta, (1, K).
    """
    centre, width, n_determined = _beside(scales, distribution, prior, eta)
    path = np.exp([np.log(scales.of(prior)), scales.log_precisions(centre[None])[0]])
    after = scales.given(prior, np.log(path[-1]))
    return as_learned(Sampled(scales, centre, width), after, path, n_determined < NO_INFORMATION)


def _beside(
    scales: Scales, distribution: Distribution, prior: NormalPrior, eta: NDArray
) -> tuple[NDArray, NDArray, NDArray]:
    """Centre and width of hyperparameters, (K,), and the number of coefficients that rows know.

    The centre of one log precision is its mean, as its distribution is known; that of several is
    their mode. What rows know is told for each group.
    """
    if isinstance(scales, OnePrecision):
        joint, _ = JointDistribution.of(distribution, prior, scales)
        n_determined = scales.sizes - joint.lam_0 * joint.j.sum()
        return np.array([joint.mean]), np.array([joint.sd]), n_determined
    marginal = MarginalScales(scales, distribution, prior)
    centre = marginal.mode(eta)
    return centre, marginal.width(centre), marginal.known(scales.of(prior))


def _step_by_step(
    scales: Scales, posterior: Posterior, in_mean: bool
) -> tuple[LearnedPrecision, InitialPoint]:
    """Several precisions, or those of a conjugate model, from one distribution to another.

    `in_mean`: whether these are worth more than the distribution at the mode.
    """
    model, rows = posterior.predictor, posterior.data.sample
    one = scales if isinstance(scales, OnePrecision) else None
    near = InitialPoint(model.guess(rows.y, rows.weight, rows.known), None)
    path, uninformed = [np.log(scales.of(posterior.prior))], np.zeros(len(scales.labels), bool)
    eta = scales.start(posterior.prior)
    for _ in range(_MOST_APPROXIMATIONS):
        # the distribution at the mode or in the mean, and the curvature there
        curvature: Diag | Dense
        try:
            if in_mean and not model.conjugate:
                distribution = updated(posterior, near.theta)
                theta, curvature = distribution.mode, distribution.operator.plain()
            else:
                if model.conjugate:
                    mode = expanded_twice(posterior, near.theta)
                    theta = near.theta
                else:
                    rng = deterministic_rng("prior")
                    mode = find_mode(posterior, near.theta, rng, near.curvature)
                    theta = mode.theta
                distribution, curvature = known_at(posterior, mode), mode.curvature
        except np.linalg.LinAlgError:  # separable classes under next to no prior
            if len(path) == 1:
                raise
            path.pop()
            posterior = posterior.with_prior(scales.given(posterior.prior, path[-1]))
            break
        information = curvature + posterior.prior.curvature(theta) * -1.0
        before = eta
        centre, width, n_determined = _beside(scales, distribution, posterior.normal_prior, eta)
        if len(path) == 1:
            uninformed = n_determined < NO_INFORMATION
        eta = centre[None]
        path.append(scales.log_precisions(eta)[0])
        posterior = posterior.with_prior(scales.given(posterior.prior, path[-1]))
        prior = posterior.prior.curvature(distribution.mode)
        near = InitialPoint(distribution.mode, information + prior)
        close = np.abs(eta - before) < _NEAR * width
        if (model.conjugate and one is not None) or close.all() or time_is_up():
            break
    sampled = Sampled(scales, centre, width)
    return as_learned(sampled, posterior.prior, np.exp(path), uninformed), near
