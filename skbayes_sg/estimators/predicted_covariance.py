"""The covariance that chains of constant steps should have, by theory.

Around the posterior mean a step is linear, and its stationary covariance solves a linear equation
with the curvature and the covariance of the gradient noise (math/stationary.md).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from skbayes_sg.data.minibatches import deterministic_rng
from skbayes_sg.inference.engine import Engine
from skbayes_sg.linalg import FULL
from skbayes_sg.linalg.coordinates import affine
from skbayes_sg.posterior import Posterior, is_high_dimensional
from skbayes_sg.posterior.control_variates import Expanded
from skbayes_sg.posterior.gaussian import expanded_twice, known_at
from skbayes_sg.posterior.precision import JointDistribution
from skbayes_sg.posterior.scored import ScoredPosterior
from skbayes_sg.posterior.target import ChainTarget
from skbayes_sg.priors.scales import OnePrecision, Scales
from skbayes_sg.samplers.stationary import LinearStep, StationaryDistribution


def predicted_covariance(engine: Engine, posterior: Posterior, theta: NDArray) -> NDArray:
    """The covariance of the draws of an engine, (D, D).

    Parameters
    ----------
    engine : Engine
        Of a fit.
    posterior : Posterior
        Of its rows, under the given prior.
    theta : array of shape (1, D)
        The mean of the draws.

    Raises
    ------
    ValueError
        If there is no such distribution.
    """
    if is_high_dimensional(posterior):
        raise ValueError(
            f"predicted_covariance is a matrix of all parameters; {posterior.dim} parameters "
            "are too many for one"
        )
    target = engine.target(posterior)
    posterior = engine.under(posterior)
    if engine.sampled is not None:
        scales = engine.sampled.scales
        if not (isinstance(scales, OnePrecision)):
            raise ValueError(
                "predicted_covariance needs one prior precision for all columns; set "
                "prior_groups=None and prior=None"
            )
        mixture = covariance_over(scales, posterior, target, theta)
        if target.sampled is not None:
            return mixture
        curvature = np.linalg.inv(mixture)
    else:
        curvature = posterior.expand(theta, FULL).curvature.dense()
    density = target.density if isinstance(target, ChainTarget) else target
    coordinates = affine(density.coordinates)
    jacobian = np.eye(posterior.dim)
    if isinstance(density.posterior, ScoredPosterior):  # to first order about the mean
        theta = density.posterior.score.transform(theta)
        jacobian = density.posterior.score.jacobian(theta)
        curvature = jacobian.T @ curvature @ jacobian
    Lam = coordinates.pullback_matrix(curvature)
    distributions = [
        engine.sampler.stationary_distribution(state, target) for state in engine.states
    ]
    c = engine.states[0].rows.noise_factor
    M = np.zeros_like(Lam)
    if c > 0:
        assert isinstance(density, Posterior | Expanded)
        M = mean_noise(density, coordinates.transform(theta), distributions[0], Lam, c)
    covariances = [distribution.covariance(Lam, M) for distribution in distributions]
    mean = np.average(covariances, axis=0, weights=[len(state.theta) for state in engine.states])
    return jacobian @ coordinates.covariance(mean) @ jacobian.T


def covariance_over(scales: Scales, posterior: Posterior, target: Any, theta: NDArray) -> NDArray:
    """Covariance of the parameters, normal given the precision, (D, D).

    `theta` (1, D) is near the posterior mean.
    """
    if target.closed_form is not None:
        whitened = target.coordinates.whitened
        return whitened.covariance(target.closed_form.covariance)
    conjugate = posterior.model.conjugate
    expansion = expanded_twice(posterior, theta) if conjugate else posterior.expand(theta, FULL)
    joint, T = JointDistribution.of(known_at(posterior, expansion), posterior.normal_prior, scales)
    if joint.noise is not None:
        T = block_diag(T, 1.0)
    return T @ joint.covariance @ T.T


def mean_noise(
    density: Posterior | Expanded,
    theta: NDArray,
    stationary: StationaryDistribution,
    Lam: NDArray,
    noise_factor: float,
) -> NDArray:
    """M in the mean over the points of a chain around theta (1, D), (D, D).

    The points have the covariance that M gives them, so M is a fixed point. With Sigma = R R^T the
    mean is that over theta +- sqrt(D) R e_k, which is exact for an M that is quadratic in the
    parameters. Beyond 32 parameters the e_k are 32 random orthogonal directions.
    """
    of_points = replace(stationary, window=1) if isinstance(stationary, LinearStep) else stationary
    scale = noise_factor * density.n_total
    M = scale * density.score_covariance(theta)
    for _ in range(30):  # small steps need two or three
        values, vectors = np.linalg.eigh(of_points.covariance(Lam, M))
        root, dim = vectors * np.sqrt(values.clip(0)), len(values)
        if dim > 32:
            normals = deterministic_rng("points").standard_normal((dim, 32))
            root = root @ np.linalg.qr(normals)[0]
        points = theta + np.sqrt(dim) * np.concatenate([root.T, -root.T])
        last, M = M, scale * np.mean([density.score_covariance(p[None]) for p in points], axis=0)
        if abs(np.trace(M - last)) <= 0.003 * np.trace(M):
            break
    return M
