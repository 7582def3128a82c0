"""Which form of a posterior chains move on: a density, a joint prior and coordinates for it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from skbayes_sg.linalg import Dense, Operator
from skbayes_sg.posterior import Posterior, is_high_dimensional
from skbayes_sg.posterior.all_rows import AllRows
from skbayes_sg.posterior.conjugate import Closed, Quadratic
from skbayes_sg.posterior.control_variates import Expanded
from skbayes_sg.posterior.gaussian import Mode, NormalPath
from skbayes_sg.posterior.non_centred import PartiallyNonCentred
from skbayes_sg.posterior.scored import ScoredPosterior
from skbayes_sg.posterior.target import ChainTarget, Density
from skbayes_sg.priors.joint import IntegratedJoint, IntegratedPrior, JointPrior
from skbayes_sg.priors.scales import Precisions, Sampled
from skbayes_sg.samplers import Sampler
from skbayes_sg.samplers.base import Need
from skbayes_sg.samplers.target import Anchor, Target

_MOST_LESS = 0.8  # of the curvature along a direction: then chains take far longer along it anyway
_VAGUE = 0.25  # relative variance of a sum of squares: one coefficient is four sds from zero
_NEAR_ZERO = 0.01  # of a log precision; a normal one has a tenth of it that far above its median
_HEAVY = 20.0  # kurtosis of what rows do not know: beyond 100 these steps draw it a quarter short
_SLOWEST = 4  # times the relaxation of a coefficient that an integrated precision may take


def target_of(
    posterior: Posterior,
    expansion: Mode | None,
    sampler: Sampler,
    sampled: Sampled | None = None,
    path: NormalPath | None = None,
) -> Target:
    """What the chains of a sampler move on.

    `expansion` is that of its control variates. Where `sampled` says so the prior precision is
    sampled too: it is a coordinate of samplers that follow coordinates, and integrated out for
    others. With precisions and a Metropolis test `expansion` is at the mode, also without control
    variates. One precision that is a coordinate bends the others as the distributions of `path` do.
    """
    if expansion is None or (sampled is not None and not sampler.follows_coordinates):
        if sampled is not None:
            integrated = IntegratedPrior(posterior.prior, sampled.scales.independent())
            posterior, sampled = posterior.with_prior(integrated), None
        if expansion is None:
            return posterior
    if expansion.score is not None:
        scored = ScoredPosterior(posterior, expansion.score)
        posterior, expansion = scored, scored.expansion_at(expansion.theta)

    # what is known of the rows
    density: Density
    if Need.CLOSED_FORM in sampler.needs:
        scales = None if sampled is None else sampled.scales
        return ChainTarget(Closed(posterior, expansion, scales), sampled=sampled)
    if is_high_dimensional(posterior):
        return ChainTarget(AllRows.low_rank(posterior, expansion))
    if sampled is None:
        density = Expanded.at(posterior, expansion, sampler.follows_coordinates)
        return ChainTarget(density)
    scales = sampled.scales
    if posterior.model.conjugate:
        density = Quadratic(posterior, expansion, scales)
    elif sampler.variance_reduction is None:
        density = AllRows.whitened(posterior, expansion, scales)
    else:
        density = Expanded.at(posterior, expansion, along=scales)

    # Precisions are coordinates of the chains where Metropolis steps go through a funnel, and where
    # rows say little of most coefficients: the sum of squares that tells a precision is then slow.
    # Else they are integrated out. The variance of the logarithm of one beside all coefficients is
    # given, and the square of its width beside none.
    apart = isinstance(scales, Precisions) and isinstance(density, Expanded)
    apart &= not sampler.rejects
    apart = apart and bool((sampled.width**2 <= _SLOWEST * 2 / scales.sizes).all())
    chain_target = integrated_out(density, sampled) if apart else None
    return chain_target or with_coordinates(density, sampled, path)


def with_coordinates(density: Density, sampled: Sampled, path: NormalPath | None) -> ChainTarget:
    """Precisions as coordinates of the chains beside the parameters, which hardly depend on them.

    The coordinates follow normal distributions under several precisions where there is a `path`.
    """
    whitened, prior, anchor = density.whitening, density.posterior.prior, density.anchor
    assert anchor is not None
    joint = JointPrior(sampled.scales, prior, whitened)
    moves = PartiallyNonCentred(whitened, prior, sampled, joint)
    if path is not None:
        with suppress(np.linalg.LinAlgError):  # separable classes under next to no prior
            moves = PartiallyNonCentred(whitened, prior, moves.curved(path), joint)
    curvature = moves.bordered(anchor.curvature, np.ones(moves.n_hyper))
    noise = partial(_bordered_noise, moves, anchor)
    anchor = replace(anchor, curvature=curvature, measured=noise)
    return ChainTarget(density, joint, moves, moves.sampled, anchor)


def _bordered_noise(moves: PartiallyNonCentred, anchor: Anchor) -> Operator:
    return moves.bordered(anchor.noise, np.zeros(moves.n_hyper))


def integrated_out(density: Density, sampled: Sampled) -> ChainTarget | None:
    """Precisions that chains need not move, since the prior without them is known.

    With steps that know how much less of a curvature a funnel has, a precision forgets itself as
    fast as a coefficient. It is None where the coefficients of a group may all be next to zero, or
    anywhere, so that its precision has a long tail, which such steps do not follow, and where
    several precisions have a group of few coefficients that are hardly known.
    """
    scales, whitened, anchor = sampled.scales.independent(), density.whitening, density.anchor
    assert anchor is not None
    joint = IntegratedJoint(scales, density.posterior.prior, whitened)
    covariance = anchor.curvature.inverse()
    at_mode, variances = whitened.transform(anchor.theta), covariance.diagonal()
    if len(scales.sizes) > 1 and (joint.vagueness(at_mode, variances) > _VAGUE).any():
        return None
    near_zero, kurtosis = joint.tails(at_mode, covariance.dense())
    if (near_zero > _NEAR_ZERO).any() or (kurtosis > _HEAVY).any():
        return None
    less = joint.funnels(at_mode, variances)
    share, V = np.linalg.eigh(less @ covariance.matvec(less).T)
    less = np.sqrt(np.minimum(1.0, _MOST_LESS / np.maximum(share, 1e-300)))[:, None] * (V.T @ less)
    curvature = Dense(anchor.curvature.dense() - less.T @ less)
    anchor = replace(anchor, curvature=curvature)
    return ChainTarget(density, joint, sampled=sampled, anchor=anchor)
