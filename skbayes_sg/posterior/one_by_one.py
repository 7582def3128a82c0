"""Coordinates in which each coefficient follows its own scale, without a matrix of all of them.

Under a prior with a scale for each column, or for each group of thousands of levels, coefficients
are known by the prior or by the rows, and which of the two changes with the scale. With lambda the
prior precision of a coefficient beta, and the rows' normal likelihood N(b, s^2 / k) of it as if all
others were known, where s is the noise standard deviation of a regression and 1 elsewhere,

    beta = m + k b / (k + lambda) + s v / sqrt(k + lambda)

This is the posterior of beta given lambda if v is standard normal. So v hardly depends on lambda: a
coefficient in the spike is not centred, one that rows determine is centred, and one between the two
moves from one to the other as its scale grows (partially non-centred parametrisations, Papaspilio-
poulos, Roberts & Skold 2007). Any k and b are right, since chains move on the density of v and the
hyperparameters; good ones make it nearly that of independent standard normal numbers. They are
taken at the mean of the points that chains have been to
(math/priors.md#coordinates-by-coefficient).
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skbayes_sg.data import Batch
from skbayes_sg.data.columns import of_columns
from skbayes_sg.data.minibatches import Minibatches, Rows, SamplingFrame
from skbayes_sg.linalg import DIAGONAL, FULL, Dense, Diag, Operator
from skbayes_sg.linalg.coordinates import LowRank
from skbayes_sg.linalg.scores import dense
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.whitening import low_rank
from skbayes_sg.priors import ConditionedPrior, without_rows
from skbayes_sg.priors.scales import OnePrecision, Sampled, Scales
from skbayes_sg.samplers.target import Anchor, ScaleMove, Target

_FEW_ROWS = 1.5  # for each coefficient; from two on chains about the mode draw the same, and sooner
_SHARE = 0.1
"""Share of the rows' information about a coefficient that counts, unless the likelihood is normal.
Where coefficients are larger rows know less of them: with the whole of it, coordinates are so
narrow there that chains hardly come to the tails (standard deviations of separable classes three
quarters of NUTS', ``python -m benchmarks.exactness.hierarchical``). The scale of a group of many
levels is known, and has no such tails: there all of it counts."""
_MANY = 100


def is_one_by_one(posterior: Posterior, scales: Scales) -> bool:
    """Whether the hyperparameters are sampled in such coordinates.

    Where rows are fewer than scales, no matrix of all parameters whitens the posterior of a
    coefficient that is in the spike now and in the slab then; and of very many there is none. Where
    coefficients may fit all rows, the joint mode of a likelihood with a scale of its own is at
    scale zero, in a funnel that chains about the mode do not leave. Rows of an earlier fit are no
    independent prior, and are there beside these.
    """
    if isinstance(posterior.prior, ConditionedPrior):
        return False
    n_rows = posterior.data.n_rows
    if posterior.predictor.fits_perfectly and n_rows < _FEW_ROWS * len(scales.block):
        return True
    many = not isinstance(scales, OnePrecision)
    return many and (n_rows < len(scales.labels) or not has_matrix(posterior.dim))


class _Point(NamedTuple):
    """What a gradient needs of points of the chains."""

    theta: NDArray
    """(chains, D)"""
    eta: NDArray
    """(chains, K)"""
    rest: NDArray
    """Parameters that are no coefficients, with intercepts at the means of the columns."""
    z: NDArray
    """(chains, K)"""
    root: NDArray
    """T(z) / z."""
    steepness: NDArray
    """The derivative of T."""
    noise: NDArray
    """s, (chains, 1)."""
    lam: NDArray
    """Prior precision of each coefficient, (chains, P), in units of 1 / s^2."""
    variance: NDArray
    """1 / (k + lambda)."""
    sd: NDArray
    """s / sqrt(k + lambda)."""
    fixed: NDArray
    """k b / (k + lambda)."""
    moving: NDArray
    """s v / sqrt(k + lambda)."""


class OneByOneTarget(Target):
    """A posterior with hyperparameters, in coordinates of one coefficient at a time.

    A point x is (v, r, z): v in the place of the coefficients; other parameters r, in units of
    about their standard deviations, with intercepts at the means of the columns; and z, of which
    the hyperparameters are ``start + T(z)`` with ``T(z) = z sqrt(pi / 2 + z^2 / 4)``. That takes a
    nearly standard normal z to the logarithm of a half-Cauchy number, whose density falls as slowly
    as exp(-|log l|): a scale goes from spike to slab and back within one trajectory. Every step
    takes all rows.

    Parameters
    ----------
    posterior : Posterior
        With all rows in memory.
    sampled : Sampled
    theta : array of shape (1, D)
        The point at which k and b are those of the rows.
    """

    posterior: Posterior
    anchor: Anchor
    sampled: Sampled

    def __init__(self, posterior: Posterior, sampled: Sampled, theta: NDArray) -> None:
        self.posterior, self.coordinates = posterior, self
        self.sampled, self.scales = sampled, sampled.scales
        self.n_rows, self.n_total = posterior.n_rows, posterior.n_total
        model, prior, data = posterior.predictor, posterior.prior, posterior.data.sample
        self.prior = prior
        n, dim = math.prod(model.shapes["coef"]), posterior.dim  # coefficients come first in theta
        self.dim, self._n = dim + self.scales.dim, n
        self._start = self.scales.start(prior)
        self._alone = np.array_equal(self.scales.group, np.arange(n))
        self._group = np.zeros(n, np.intp)
        self._group[self.scales.block] = self.scales.group
        self._flat = np.setdiff1d(np.arange(n), self.scales.block)  # not shrunken: precisions given
        self._given = prior.precision[self._flat]
        self.has_groups = self.scales.dim == len(self.scales.labels) < len(self.scales.block)
        if not (data.is_dense or data.sparse_rows):
            data = replace(data, X=data.take(slice(None)))
        self._data = data
        alone = without_rows(prior)
        self._of_rest = alone.restricted(np.arange(n, dim))
        # whether intercepts have their prior at the means of the columns, as coordinates have them
        self._centred = alone.centre is not None or not model.fit_intercept

        # The rows' information about each parameter, with the intercepts at the columns' means.
        fisher = posterior.fisher(theta, slice(None), DIAGONAL)
        information = fisher.squares() * self.n_total / self.n_rows
        gradient = self._scores(theta)[0]
        self._means = None
        if model.fit_intercept:
            self._means = means = of_columns(posterior.data).mean
            blocks = model.unpack(np.arange(dim))
            root, X = fisher.factors[0]
            square = (root * root).reshape(-1, *root.shape[-2:]).sum(axis=0)
            total = square.sum(axis=1)[:, None] * means - 2 * (square @ X)
            information[blocks["coef"]] += total * means * self.n_total / self.n_rows
            gradient[blocks["coef"]] -= gradient[blocks["intercept"]][:, None] * means
        all_counts = model.conjugate | (self.scales.sizes > _MANY)
        share = np.where(all_counts, 1.0, _SHARE)[self._group]
        share *= 1.0 if prior.quadratic else float(np.exp(theta[0, -1]))  # in units of the noise
        k, pull = share * np.maximum(information[:n], 0.0), share * gradient[:n]
        self._mean, self._unit = prior.mean[:n], prior.unit[:n]
        self._k, self._kb = k, k * (theta[0, :n] - self._mean) + pull
        self._centre = self._sheared(theta, 1.0)[0, n:]
        fixed = information[n:] + self._of_rest.independent(theta[:, n:])
        self._width = 1 / np.sqrt(fixed)
        # v and z are about standard normal, but z of a group is known by its members: the variance
        # of a log precision of n that rows know is 2 / n, and T' is sqrt(pi / 2) at 0
        # With fewer rows than columns a regression may interpolate them, and its noise be anything;
        # the slab of a horseshoe bounds coefficients in units of the noise.
        may = n > self.n_rows and not self.scales.has_heavy_tails
        may &= model.fits_perfectly or not prior.quadratic
        if may and has_matrix(self.n_rows):
            self.scale_move = ScaleMove(self.rescaled, 1.0)
        curvature = np.ones(self.dim)
        self._axes: LowRank | None = None
        if self.has_groups:
            share = self._k / (self._k + self._precisions(self._start)[0])
            curvature[dim:] += 0.25 * np.pi * self._summed(share[None] ** 2)[0]
            if not has_matrix(self.dim):
                self._axes, self._scale = self._whitened(theta)
        self._sd = 1 / np.sqrt(curvature)
        metric: Operator = Diag(curvature)
        # Under one precision the posterior has one shape, in which what rows know to the noise's
        # width lies across what they do not know; as scales of columns change, so does the shape.
        one = isinstance(self.scales, OnePrecision) and has_matrix(self.dim)
        if one:
            metric = self._joint_curvature(theta, curvature)
        anchor = Anchor.of_all(theta, metric, self.n_rows, self.n_total)
        self.anchor = replace(anchor, has_unit_scales=not one)

    @property
    def point_size(self) -> int:
        return max(self.dim, self.posterior.point_size)

    @cached_property
    def single(self) -> OneByOneTarget:
        twin = copy.copy(self)
        twin._data = self._data.split
        for name in ("_start", "_k", "_kb", "_mean", "_unit", "_means", "_centre", "_width"):
            value = getattr(self, name)
            setattr(twin, name, None if value is None else value.astype(np.float32))
        if self._axes is not None:
            twin._axes, twin._scale = self._axes.single, self._scale.astype(np.float32)
        return twin

    def _whitened(self, theta: NDArray) -> tuple[LowRank, NDArray]:
        """Axes along which (v, r) is about standard normal, and the scale of (v, r) in theta.

        Rows know the intercept and the mean of a factor's levels together much better than either.
        """
        centre = self.sampled.centre[None]
        prior = self.scales.given(self.prior, self.scales.log_precisions(centre)[0])
        axes = low_rank(self.posterior.with_prior(prior), theta)
        point = self._point(self.transform(np.append(theta, centre, axis=1)))
        scale = np.append(point.sd[0], self._width)
        return replace(axes, centre=np.zeros_like(theta)), scale

    def _joint_curvature(self, theta: NDArray, curvature: NDArray) -> Dense:
        """Curvature of all parameters at theta, and of each hyperparameter by itself."""
        n, dim = self._n, self.posterior.dim
        point = self._point(self.transform(np.append(theta, self._start, axis=1)))
        by_v_and_r = np.diag(np.append(point.sd[0], self._width))
        steps = self._sheared(by_v_and_r, -1.0)  # of theta
        of_rest = self._width**2 * self._of_rest.independent(theta[:, n:])
        joint = np.diag(curvature)
        joint[:dim, :dim] = np.diag(np.append(point.lam[0] * point.variance[0], of_rest))
        information = self.posterior.information(theta, slice(None), FULL).dense()
        joint[:dim, :dim] += steps @ information @ steps.T
        return Dense(joint)

    def _scores(self, theta: NDArray) -> NDArray:
        """Gradient of the log likelihood of all rows, (chains, D)."""
        model = self.posterior.model

        def total(batch: Batch) -> tuple[NDArray]:
            scores = model.scores(theta, batch.X, batch.y).scaled(batch.weight)
            return (scores.total(theta.dtype),)

        (gradient,) = self._data.reduce(total, model.row_size)
        return gradient * (self.n_total / self.n_rows)

    def _sheared(self, theta: NDArray, sign: float) -> NDArray:
        """Parameters (n, D) with intercepts moved to the means of the columns, or back."""
        if self._means is None:
            return theta
        n, sheared = self._n, theta.copy()
        of_means = theta[:, :n].reshape(len(theta), -1, len(self._means)) @ self._means
        sheared[:, n : n + of_means.shape[1]] += sign * of_means
        return sheared

    def _precisions(self, eta: NDArray) -> NDArray:
        """Prior precision of each coefficient in units of 1 / noise variance, (n, P).

        At most some power of the largest number of eta's precision: a chain that came to where one
        overflows had gradients that are NaN, in single precision from scales of e^-44 on, and
        stayed there.
        """
        lam = np.minimum(self.scales.precisions(eta), np.finfo(eta.dtype).max ** 0.8)
        lam = (lam if self._alone else lam[:, self._group]) * self._unit
        lam[:, self._flat] = self._given
        return lam

    def _summed(self, values: NDArray) -> NDArray:
        """Sums of numbers of all coefficients (n, P) over the groups, (n, groups)."""
        return self.scales.summed(values[:, self.scales.block] if len(self._flat) else values)

    # -- coordinates ---------------------------------------------------------------------------

    def inverse_transform(self, x: NDArray) -> NDArray:
        """(theta, eta) of x, (..., D + K)."""
        point = self._point(x.reshape(-1, self.dim))
        return np.concatenate([point.theta, point.eta], axis=1).reshape(x.shape)

    def transform(self, theta: NDArray) -> NDArray:
        """x of (theta, eta), (n, D + K)."""
        theta, eta = np.split(theta, [self.posterior.dim], axis=1)
        coef, rest = np.split(self._sheared(theta, 1.0), [self._n], axis=1)
        variance = 1 / (self._k + self._precisions(eta))
        noise = 1.0 if self.prior.quadratic else np.exp(0.5 * theta[:, -1:])
        v = (coef - self._mean - self._kb * variance) / (noise * np.sqrt(variance))
        u = eta - self._start  # T(z): a quadratic equation in z^2
        z = np.sign(u) * np.sqrt(np.hypot(np.pi, 2 * u) - np.pi)
        x = np.concatenate([v, (rest - self._centre) / self._width, z], axis=1)
        if self._axes is not None:
            dim = self.posterior.dim
            x[:, :dim] = self._axes.transform(self._sheared(x[:, :dim] * self._scale, -1.0))
        return x

    def _point(self, x: NDArray) -> _Point:
        of_theta, z = np.split(x, [self.posterior.dim], axis=1)
        if self._axes is not None:
            of_theta = self._sheared(self._axes.inverse_transform(of_theta), 1.0) / self._scale
        v, rest = np.split(of_theta, [self._n], axis=1)
        square = z * z
        root = np.sqrt(0.5 * np.pi + 0.25 * square)
        steepness, eta = (0.5 * np.pi + 0.5 * square) / root, self._start + z * root
        rest = self._centre + self._width * rest
        noise = np.ones((len(x), 1), x.dtype)
        if not self.prior.quadratic:
            noise = np.exp(0.5 * rest[:, -1:])
        lam = self._precisions(eta)
        variance = 1 / (self._k + lam)
        sd = noise * np.sqrt(variance)
        fixed, moving = self._kb * variance, sd * v
        theta = np.concatenate([self._mean + fixed + moving, rest], axis=1)
        theta = self._sheared(theta, -1.0)
        return _Point(theta, eta, rest, z, root, steepness, noise, lam, variance, sd, fixed, moving)

    # -- a move along the noise --------------------------------------------------------------------

    @cached_property
    def _interpolation(self) -> tuple[NDArray, NDArray, int]:
        """Variances W, the inverse of Z W Z^T, and its rank.

        Of all changes of coefficients that change rows by r, W Z^T (Z W Z^T)^-1 r is the likeliest
        under the prior. Z has the rows of X, less the means beside an intercept, which is last.
        """
        variance = 1 / self._precisions(self.sampled.centre[None])[0]
        X, means = self.posterior.model.features(self._data.X), self._means
        if means is not None and not sparse.issparse(X):
            X, means = X - means, np.zeros_like(means)
        between = dense((X * variance) @ X.T)
        if means is not None:
            along = X @ (variance * means)
            between += variance @ means**2 - along - along[:, None]
            variance = np.append(variance, between.diagonal().mean())
            between += variance[-1]
        values, vectors = np.linalg.eigh(between)
        kept = values > 1e-8 * values[-1]
        inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
        return variance, inverse, int(kept.sum())

    def rescaled(self, theta: NDArray, log_scale: NDArray) -> tuple[NDArray, NDArray]:
        """Points whose residuals and noise are exp(`log_scale`) times as large.

        Prior precisions stay the same in units of y. So likelihood and volume cancel, those of
        other models than the normal one nearly, and the prior alone says how far a chain goes
        towards coefficients that interpolate the rows. Trajectories hardly go there: in units of a
        noise that vanishes it is infinitely far (math/priors.md#coordinates-by-coefficient).
        """
        point, model = self._point(theta), self.posterior.predictor
        X, y = self._data.X, self._data.y
        variance, inverse, rank = self._interpolation
        residual = model.perfect_outputs(y) - model.outputs(point.theta, X)[:, 0]
        pull = -np.expm1(log_scale)[:, None] * (residual @ inverse)
        moved, change = self._sheared(point.theta, 1.0), pull @ model.features(X)
        if self._means is not None:
            total = pull.sum(axis=1, keepdims=True)
            change = np.append(change - total * self._means, total, axis=1)
        moved[:, : len(variance)] += variance * change
        assert model.residual_scale is not None
        scale, times = model.residual_scale
        moved[:, scale] += times * log_scale
        eta = point.eta
        if not self.prior.quadratic:  # precisions are in units of the noise
            eta = eta - self.scales.of_scale * log_scale[:, None]
        x = self.transform(np.append(self._sheared(moved, -1.0), eta, axis=1))
        volume = rank * log_scale + _log_volume(point) - _log_volume(self._point(x))
        return x, volume

    def cloud(self, theta: NDArray, rng: np.random.Generator) -> NDArray:
        """Draws from the prior of coefficients, and of scales as far as members leave them open."""
        return self.inverse_transform(self._sd * rng.standard_normal((len(theta), self.dim)))

    def centred(self, theta: NDArray) -> NDArray:
        return np.append(theta, self._start, axis=1)

    # -- the density ---------------------------------------------------------------------------

    def minibatches(
        self, batch_size: int, replace: bool, rng: np.random.Generator, n_chains: int
    ) -> Minibatches:
        """All rows."""
        frame = SamplingFrame(self.n_rows, None, self.anchor.probability)
        return Minibatches(frame, self.n_rows, False, rng)

    def grad_estimate(self, theta: NDArray, rows: Rows) -> NDArray:
        """Gradient from all rows."""
        point = self._point(theta.astype(self._k.dtype, copy=False))
        return self._pulled_back(point, self._scores(point.theta))

    def logdensity_and_grad(self, theta: NDArray) -> tuple[NDArray, NDArray]:
        point, scale = self._point(theta), self.n_total / self.n_rows
        model = self.posterior.model

        def total(batch: Batch) -> tuple[NDArray, NDArray]:
            of_rows, scores = model.value_and_scores(point.theta, batch.X, batch.y)
            of_rows = of_rows if batch.weight is None else of_rows * batch.weight
            return of_rows.sum(axis=1, dtype=np.float64), scores.scaled(batch.weight).total()

        of_rows, gradient = self._data.reduce(total, model.row_size)
        value = scale * of_rows
        rest = point.rest if self._centred else point.theta[:, self._n :]
        value += self._of_rest.log_density(rest)
        away = (point.fixed + point.moving) / point.noise
        # of the coefficients: sqrt(lambda) / s of their density, times 1 / v' of the Jacobian
        value += 0.5 * (np.log(point.lam * point.variance) - point.lam * away * away).sum(axis=1)
        value += self.scales.log_hyperprior(point.eta) + np.log(point.steepness).sum(axis=1)
        return value, self._pulled_back(point, scale * gradient)

    def _pulled_back(self, point: _Point, gradient: NDArray) -> NDArray:
        """Gradient over x, from that of the log likelihood over theta, which it overwrites."""
        n, z, noise = self._n, point.z, point.noise
        of_coef, of_rest = gradient[:, :n], gradient[:, n:]
        if not self._centred:
            of_rest += self._of_rest.gradient(point.theta[:, n:])
        if self._means is not None:
            shape = len(z), -1, len(self._means)
            of_coef.reshape(shape)[:] -= of_rest[:, : n // shape[2], None] * self._means
        if self._centred:
            of_rest += self._of_rest.gradient(point.rest)

        # of the coefficients, and of their log precisions through b's part, v's part and the prior
        away = (point.fixed + point.moving) / noise
        pulled = point.lam * away
        of_coef -= pulled / noise
        prior_share = point.lam * point.variance  # share of the prior in what is known
        of_ell = (point.fixed + 0.5 * point.moving) * of_coef
        of_ell += 0.5
        of_ell *= -prior_share
        pulled *= away
        of_ell -= 0.5 * pulled
        of_eta = self.scales.slope(point.eta, of_ell if self._alone else self._summed(of_ell))
        if not self.prior.quadratic:
            pulled += point.moving * of_coef
            of_rest[:, -1] += 0.5 * pulled.sum(axis=1)
        of_coef *= point.sd
        of_rest *= self._width
        if self._axes is not None:
            gradient /= self._scale
            if self._means is not None:
                of_coef.reshape(shape)[:] += of_rest[:, : n // shape[2], None] * self._means
            gradient = self._axes.pullback(gradient)
        of_jacobian = z / (0.5 * np.pi + 0.5 * z * z) - 0.25 * z / point.root**2
        return np.concatenate([gradient, of_eta * point.steepness + of_jacobian], axis=1)


def _log_volume(point: _Point) -> NDArray:
    """Log volume of parameters and hyperparameters over that of x, up to a constant, (chains,)."""
    return np.log(point.sd).sum(axis=1) + np.log(point.steepness).sum(axis=1)
