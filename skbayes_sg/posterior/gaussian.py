"""Gaussian approximations of a posterior: at its mode, around its mean, and the variational one.

All of them come from Newton's iteration ``theta += P^-1 gradient``, which differs in where gradient
and curvature P are evaluated:

- at theta itself: Fisher scoring, whose limit is the mode (`find_mode`);
- in the mean over the normal distribution N(theta, P^-1): its limit is the distribution at which
  gradient and curvature agree with their own means, the nearest in the variational sense
  (`updated`; math/streams.md#streams-as-bayesian-updating). One such step leads from the mode to
  about the mean of the posterior, where control variates are anchored (`posterior_mean`).

The posterior of linear regression is of the family of its prior, and one step from any point leads
to it.

Of a prior precision lambda that is sampled, a few of these distributions tell where it is, and how
the parameters depend on it (`NormalPath`). The derivative of the density of rho = log lambda is
known from the mean of one number, the sum Q of squares of the coefficients:

    d log p(rho | y) / d rho = d log p(rho) / d rho + P / 2 - lambda E[Q | lambda] / 2

so that integration over rho gives the density (thermodynamic integration, Gelman & Meng 1998).
Source: math/priors.md#a-sampled-precision.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import cumulative_trapezoid
from scipy.interpolate import CubicHermiteSpline
from scipy.optimize import minimize

from skbayes_sg.data.minibatches import deterministic_rng
from skbayes_sg.data.threads import total_of
from skbayes_sg.diagnostics import systematic
from skbayes_sg.linalg import Dense, Diag, Operator
from skbayes_sg.linalg.coordinates import Affine, LowRank, Whitened
from skbayes_sg.linalg.operators import DIAGONAL, FULL
from skbayes_sg.linalg.sizes import elements_at_a_time, has_matrix
from skbayes_sg.posterior import Expansion, Posterior, is_high_dimensional
from skbayes_sg.posterior.whitening import low_rank
from skbayes_sg.priors import Distribution, GaussianPrior, NormalPrior, Prior
from skbayes_sg.priors.scales import OnePrecision

_ENOUGH = 1e-3  # squared distance to the mode, in posterior standard deviations per parameter
_MOST_POINTS = 128
_MOST_STEPS = 25
_NEARLY = 0.3  # the same, below which a whole step is tried
_FEW_DRAWS = 8  # whose mean curvature is near that over all
_CONVERGED = 0.1  # relative change of the curvature, and squared shift, that one step can make
_WIDTH = 0.5  # of a log precision, before chains have found it
CLOSE = 0.01  # the same of a last step, where steps go on from a distribution

Means = Callable[[NDArray, NDArray], tuple[NDArray, Dense]]
"""Gradient and curvature in the mean over N(theta, root root^T), of theta (1, D) and root."""


Mode = Expansion
"""An expansion at a centre of the posterior."""


class InitialPoint(NamedTuple):
    """A point near the mode, such as the mode under a similar prior."""

    theta: NDArray
    """(1, D)"""
    curvature: Diag | Dense | None
    """Curvature of the posterior there; None where parameters are too many for a matrix."""
    coordinates: LowRank | None = None
    """Coordinates in which it is about the identity, where they are too many."""


# -- at a point -------------------------------------------------------------------------------


def find_mode(
    posterior: Posterior,
    theta: NDArray,
    rng: np.random.Generator,
    curvature: Diag | Dense | None = None,
    coordinates: Affine | None = None,
) -> Mode:
    """Mode of a posterior whose model Fisher is its curvature, from theta (1, D).

    Fisher scoring with step halving runs on growing subsets of the rows. A subset of m rows fixes
    the mode to about sqrt(N / m) posterior standard deviations. So all rows are read only in the
    last two or three iterations. Where a curvature costs as much as tens of gradients, L-BFGS runs
    in whitened coordinates. Where a `curvature` near the mode is known, theta is near it too: no
    subsets are searched, and that curvature serves for the first steps. L-BFGS may run in known
    `coordinates`.

    Accurate to a few hundredths of a posterior standard deviation. Nothing is raised when the
    iterations run out (separable data under a weak prior). Burn-in covers the remaining distance,
    and the diagnostics judge the result.

    Raises
    ------
    ValueError
        If squares of values of X overflow.
    """
    dim, sample = posterior.dim, posterior.of_sample
    n_rows = sample.n_rows
    with np.errstate(over="ignore", invalid="ignore"):
        if not has_matrix(dim):
            return _whitened_lbfgs(posterior, theta, curvature, coordinates)

        # 20 rows a parameter, then ten times more, up to all. A part is copied, so it has 2^25
        # numbers at most.
        sizes, size = [n_rows], max(2000, 20 * dim)
        while curvature is None and size < n_rows / 2 and size * sample.data.n_features <= 1 << 25:
            sizes.insert(-1, size)
            size *= 10
        # of 5,000 rows scoring takes .05 s and L-BFGS .02 s at 250 columns, .5 and .3 s at 900
        if curvature is None and dim >= 250 and len(sizes) == 1:
            mode = _whitened_lbfgs(sample, theta, None, coordinates)
        else:
            passes = 0.0
            for size in sizes:
                part, enough = sample, dim * _ENOUGH
                if size < n_rows:
                    part = sample.of_rows(np.sort(rng.choice(n_rows, size, replace=False)))
                    # its mode is off by N/m per parameter: more digits of it are of no use
                    enough = dim * (0.1 * n_rows / size)
                theta, iterations = _fisher_scoring(part, theta, enough, curvature)
                expansion = part.expand(theta, FULL)
                curvature = expansion.curvature  # for the first steps of the next part
                passes += (iterations + 1) * size / n_rows
            mode = expansion._replace(passes=passes)

        # All rows, where a sample is all that is in memory, and each step a pass. A step with the
        # curvature of m rows leaves D / m of the squared distance, so the last one need not be
        # short, and the curvature stays (math/high_dimensional.md#rows-on-disk).
        if sample is posterior:
            return mode
        enough = _ENOUGH * max(dim, n_rows)
        theta, iterations = _fisher_scoring(posterior, mode.theta, enough, mode.curvature)
        passes = iterations + mode.passes * n_rows / posterior.data.n_rows
        return mode._replace(theta=theta, passes=passes)


def finite(expansion: Expansion) -> Expansion:
    """The first expansion of a fit, or a ValueError if squares of values of X overflow in it."""
    if not np.isfinite(expansion.curvature.diagonal()).all():
        raise ValueError(
            "X holds values whose squares overflow; scale its columns, for example by "
            "MaxAbsScaler, which takes no squares"
        )
    return expansion


def _fisher_scoring(
    posterior: Posterior, theta: NDArray, enough: float, curvature: Diag | Dense | None
) -> tuple[NDArray, int]:
    """Steps P^-1 gradient, halved until the log posterior does not fall: the mode, and how many.

    Stops after the step before which gradient . P^-1 gradient is below `enough`. In the first few
    steps P is the given curvature, which costs a fifth of a curvature at every point: m rows
    determine it to a relative error of sqrt(D / m). Later, or where none is given, P is the
    curvature of the rows at the point itself.
    """
    if curvature is None:
        current = finite(posterior.expand(theta, FULL))
    else:
        value, gradient = posterior.logdensity_and_grad(theta)
        current = Expansion(theta, float(value[0]), gradient, curvature)
    for iteration in range(1, 51):
        if iteration == 8 and curvature is not None:
            curvature = None
            current = posterior.expand(theta, FULL)
        metric = current.curvature
        if curvature is None and not posterior.predictor.canonical:
            # No less for single parameters than the rows have it: of counts that vary less than a
            # negative binomial variable can, it is many times the Fisher information about the
            # dispersion, with which steps would overshoot for ever.
            observed = posterior.observed(theta) + posterior.prior.hessian(theta)
            excess = np.maximum(observed.diagonal() - metric.diagonal(), 0.0)
            metric = metric + Dense(np.diag(excess))
        step = metric.inverse().matvec(current.gradient)
        if np.sum(step * current.gradient) < enough:
            return theta + step, iteration
        slack = 1e-6 * abs(current.log_prob)  # of rows in float32 a sum has about seven digits
        for _ in range(30):
            if curvature is None:
                following = posterior.expand(theta + step, FULL)
            else:
                value, gradient = posterior.logdensity_and_grad(theta + step)
                following = Expansion(theta + step, float(value[0]), gradient, curvature)
            if following.log_prob >= current.log_prob - slack:
                break
            step *= 0.5
        theta, current = theta + step, following
    return theta, iteration


def _whitened_lbfgs(
    posterior: Posterior,
    theta: NDArray,
    curvature: Diag | Dense | None,
    coordinates: Affine | None,
) -> Mode:
    """L-BFGS in whitened coordinates, where a gradient costs far less than a curvature.

    Where a curvature is known at theta, that at the mode is not summed over the rows again. Their
    information is scaled to the diagonal there, and what gradients say of it along the way from
    theta is the update of BFGS (Nocedal & Wright 2006, equation 6.19).
    """
    wide, known_curvature, start = is_high_dimensional(posterior), curvature, theta
    if wide and coordinates is None:
        finite(posterior.of_rows(slice(0, 1000)).expand(theta, DIAGONAL))
        coordinates = low_rank(posterior, theta, outliers=False)
    elif coordinates is None:
        curvature = known_curvature or finite(posterior.expand(theta, FULL)).curvature
        coordinates = Whitened.of(posterior.predictor.columns(), theta, curvature.dense())

    def objective(u: NDArray) -> tuple[float, NDArray]:
        value, gradient = posterior.logdensity_and_grad(coordinates.inverse_transform(u[None]))
        return -float(value[0]), -coordinates.pullback(gradient)[0]

    # until the largest entry of the gradient is a two hundredth of what it is one deviation off
    bound = {"maxiter": 300, "gtol": 0.005, "maxcor": 20}
    result = minimize(
        objective, coordinates.transform(start)[0], jac=True, method="L-BFGS-B", options=bound
    )
    theta = coordinates.inverse_transform(result.x[None])
    mode = posterior.expand(theta, DIAGONAL if wide or known_curvature else FULL)
    if known_curvature and not wide:
        prior = posterior.prior.curvature(theta)
        information = (known_curvature + prior * -1.0).dense()
        there = mode.curvature.diagonal() - prior.diagonal()
        ratio = np.sqrt(there / np.maximum(information.diagonal(), np.finfo(float).tiny))
        scaled = Dense(information * np.outer(ratio, ratio)) + prior
        way, change = theta - start, posterior.logdensity_and_grad(start)[1] - mode.gradient
        before = scaled.matvec(way)
        if min(np.sum(way * change), np.sum(way * before)) > 0:
            update = change.T @ change / np.sum(way * change)
            scaled += Dense(update - before.T @ before / np.sum(way * before))
        mode = mode._replace(curvature=scaled)
    return mode._replace(passes=result.nfev + 2.0)


def expanded_twice(posterior: Posterior, theta: NDArray) -> Mode:
    """The expansion of a conjugate posterior near its mode, from one at theta (1, D).

    Far from the mode a sum of squares would be the small difference of two large ones.
    """
    near = known_at(posterior, finite(posterior.expand(theta, FULL))).mode
    return finite(posterior.expand(near, FULL))._replace(passes=2.0)


def known_at(posterior: Posterior, expansion: Mode) -> Distribution:
    """The posterior from its expansion at a point: exact if conjugate."""
    return posterior.normal_prior.updated(expansion.theta, expansion.gradient, expansion.curvature)


def distribution_at(expansion: Mode, posterior: Posterior) -> Distribution:
    """The posterior from its expansion: exact if conjugate, else normal around its centre."""
    if posterior.predictor.conjugate:
        return known_at(posterior, expansion)
    at_mode = expansion._replace(gradient=np.zeros_like(expansion.gradient))
    if not posterior.predictor.has_other_curvature:
        return known_at(posterior, at_mode)
    theta = expansion.theta
    observed = Dense(posterior.observed(theta) + posterior.prior.hessian(theta))
    if not _is_definite(observed):
        return known_at(posterior, at_mode).as_expected()
    return known_at(posterior, at_mode._replace(curvature=observed))


def distance(before: Mode, after: Mode) -> float:
    """Squared distance in posterior standard deviations of `after`, per parameter."""
    shift = after.theta - before.theta
    return float(np.sum(shift * after.curvature.matvec(shift))) / shift.size


# -- one step in the mean ---------------------------------------------------------------------


def posterior_mean(posterior: Posterior, mode: Mode) -> Mode:
    """The mode moved one step towards the mean of the posterior.

    Source: math/mode_and_mean.md#posterior-mean.

    The step leads to where the gradient vanishes in the mean over the Laplace approximation: one
    step towards the fixed point of Gaussian variational inference. On a skewed posterior the new
    point is nearer to the mean than the mode is, and its curvature is nearer to the mean curvature.
    With very many parameters the mode stays: chains use all rows, so any anchor serves.
    A move of less than a fiftieth of a posterior standard deviation per parameter is not worth its
    cost, and the expansion says too little about a move of more than a quarter. Rows on disk are
    expanded here for the first time; of more than 1,000 parameters the curvature at the mode may
    be that of another one, scaled.
    """
    if is_high_dimensional(posterior):
        return mode
    points, rows = laplace_points(posterior, mode)
    n_outputs = 2 * len(rows) * len(points) * posterior.predictor.widest
    blocks = np.array_split(rows, 1 + int(n_outputs // elements_at_a_time()))
    points = np.concatenate([points, 2 * mode.theta - points])  # in pairs: odd powers cancel

    def change(block: NDArray) -> tuple[NDArray]:
        at_mode = posterior.scores(mode.theta, block).total()
        return (posterior.scores(points, block).total().mean(axis=0) - at_mode,)

    gradient = total_of(change, blocks)[0] * (posterior.n_total / len(rows))
    at_points = posterior.prior.gradient(points).mean(axis=0)
    gradient += at_points - posterior.prior.gradient(mode.theta)
    shift = mode.curvature.inverse().matvec(gradient)
    length = float(np.sqrt(max(0.0, np.sum(shift * gradient)) / posterior.dim))
    moves = 0.02 <= length <= 0.25
    if not moves and posterior.of_sample is posterior and has_matrix(posterior.dim):
        return mode
    centre = mode.theta + shift if moves else mode.theta
    return posterior.expand(centre, FULL)._replace(passes=mode.passes + 1)


def laplace_points(posterior: Posterior, mode: Mode) -> tuple[NDArray, NDArray]:
    """Points that stand for the Laplace approximation, and up to 50,000 rows.

    The points and rows are the same at every call. The points are random orthogonal frames, 32 at
    least, or a part of one where D is large. Their second moment is exact for whole frames, so the
    mean of a function that is quadratic in the distance from the centre is exact too. As many
    normal draws would leave an error of some per cent.
    """
    points, rng = _frames(posterior.dim)
    rows = np.arange(posterior.n_rows)
    if posterior.n_rows > 50_000:
        rows = np.sort(copy.deepcopy(rng).choice(posterior.n_rows, 50_000, replace=False))
    return mode.away(points), rows


@lru_cache(maxsize=1)
def _frames(dim: int) -> tuple[NDArray, np.random.Generator]:
    """The points of a standard normal distribution, and the generator from there on."""
    rng = deterministic_rng("points")
    if has_matrix(dim):
        frames = np.linalg.qr(rng.standard_normal((-(-32 // dim), dim, dim)))[0].reshape(-1, dim)
    else:
        frames = np.linalg.qr(rng.standard_normal((dim, _MOST_POINTS)))[0].T
    points = np.sqrt(dim) * frames[: _MOST_POINTS if dim > _MOST_POINTS else None]
    points[1::2] *= -1  # a sign changes no second moment, and one dimension has but two directions
    return points, rng


# -- in the mean ------------------------------------------------------------------------------


def updated(posterior: Posterior, guess: NDArray) -> Distribution:
    """The posterior as a distribution of the prior's family, by the expected information.

    Newton steps lead from the mode to where the gradient vanishes in the mean over the posterior,
    whose precision is the curvature in that mean. One is enough near a normal distribution, and the
    mode is not searched for where a step from `guess` ends as near. Elsewhere, as with separable
    classes, the wide distribution at the mode and its mean curvature contradict each other; half
    steps lead to the distribution that agrees with its own means.

    Where the observed information is another one, `with_observed` goes on from here. Above 1,000
    parameters the precision is a diagonal, and the mean is the mode. Source:
    math/streams.md#streams-as-bayesian-updating.
    """
    prior = posterior.normal_prior
    if not has_matrix(posterior.dim):
        mode = find_mode(posterior, guess, np.random.default_rng(0))
        # a diagonal makes no good step
        gradient = np.where(prior.precision > 0, 0.0, mode.gradient)
        diagonal = Diag(mode.curvature.diagonal())
        return prior.updated(mode.theta, gradient, diagonal)
    if posterior.predictor.conjugate:
        return known_at(posterior, expanded_twice(posterior, guess))
    expansion = finite(posterior.expand(guess, FULL))
    precision = expansion.curvature
    step = precision.inverse().matvec(expansion.gradient)
    theta = guess + step
    if np.sum(step * expansion.gradient) > 0.01 * posterior.dim:  # a tenth of a standard deviation
        columns, rng = posterior.predictor.columns(), np.random.default_rng(0)
        whitened = Whitened.of(columns, guess, precision.dense())
        mode = find_mode(posterior, guess, rng, coordinates=whitened)
        theta, precision = mode.theta, mode.curvature
    return agreeing(posterior.expected_under_gaussian, theta, precision, _CONVERGED)


def agreeing_with(posterior: Posterior, draws: NDArray, weights: NDArray) -> Distribution:
    """As `updated`, from draws (n, D) of the posterior, which are nearer than the mode.

    It starts from their mean and from the curvature in the mean over eight of them. Half steps from
    the mode of separable classes are slow, and end where variances are half as large.
    """
    mean = (weights @ draws)[None]
    if posterior.predictor.conjugate or not has_matrix(posterior.dim):
        return updated(posterior, mean)
    curvature = np.zeros((posterior.dim, posterior.dim))
    for draw in draws[systematic(weights, _FEW_DRAWS)].astype(np.float64):
        curvature += finite(posterior.expand(draw[None], FULL)).curvature.dense() / _FEW_DRAWS
    return agreeing(posterior.expected_under_gaussian, mean, Dense(curvature), _CONVERGED)


def agreeing(means: Means, theta: NDArray, precision: Diag | Dense, limit: float) -> GaussianPrior:
    """The normal distribution that agrees with its own means, from one near it.

    Newton steps are taken by halves, no longer than a posterior standard deviation per parameter,
    until a whole one changes shift and curvature by less than `limit`. A whole one is tried once
    where it is near: it is enough for posteriors near a normal one, and those far from it would
    swing to and fro.
    """
    tried = False
    for _ in range(_MOST_STEPS):
        covariance = precision.inverse().dense()
        root = np.linalg.cholesky(covariance)
        gradient, curvature = means(theta, root)
        shift = gradient @ covariance
        if _is_near(shift, gradient, covariance, curvature, limit):
            theta, precision = theta + shift, curvature
            break
        whole = not tried and _is_near(shift, gradient, covariance, curvature, _NEARLY)
        tried, share = tried or whole, 1.0 if whole else 0.5
        precision = curvature * share + precision * (1 - share)
        shift = share * precision.inverse().matvec(gradient)
        length = np.sqrt(np.sum(shift * precision.matvec(shift)) / theta.size)
        theta = theta + shift / max(length, 1.0)
    return GaussianPrior(precision, theta[0])


def _is_near(
    shift: NDArray, gradient: NDArray, covariance: NDArray, curvature: Operator, limit: float
) -> bool:
    """Whether a step changes squared shift and curvature by less than a limit per parameter."""
    length = np.sum(shift * gradient) / len(covariance)
    change = np.sum(covariance * curvature.dense()) / len(covariance) - 1
    return bool(abs(change) < limit and length < limit)


def _is_definite(matrix: Operator) -> bool:
    try:
        matrix.cholesky()
    except np.linalg.LinAlgError:
        return False
    return True


# -- of a stream ------------------------------------------------------------------------------


def expanded(posterior: Posterior, near: Distribution) -> Distribution:
    """The posterior from a distribution that is near it: mostly in one pass."""
    prior, distribution = posterior.normal_prior, near
    for _ in range(_MOST_STEPS * has_matrix(posterior.dim)):
        gradient, curvature = in_the_mean(posterior, distribution)
        covariance = distribution.operator.inverse().dense()
        shift = gradient @ covariance
        close = _is_near(shift, gradient, covariance, curvature, _CONVERGED)
        if not (close and _is_definite(curvature)):
            break
        distribution = GaussianPrior(curvature, distribution.mean + shift[0])
        if _is_near(shift, gradient, covariance, curvature, CLOSE):
            return distribution.as_expected() if prior.by_expected else distribution
    return with_observed(posterior, updated(posterior.of_sample, distribution.mode))


def with_observed(posterior: Posterior, near: Distribution) -> Distribution:
    """The posterior from that by the expected information, which is near it.

    Its precision is the observed information and the prior's, in the mean over itself: where an
    effect bends, the expected information makes standard deviations that are half or twice the
    right ones, however many rows there are. The observed one need not be positive definite, as
    between clusters of outliers; then `near` stays, with a mark. It stays without one where the
    two agree, and above 1,000 parameters. Source: math/streams.md#observed-information.
    """
    if not (posterior.predictor.has_other_curvature and has_matrix(posterior.dim)):
        return near
    means = partial(posterior.expected_under_gaussian, observed=True)
    try:
        distribution = agreeing(means, near.mode, near.operator.plain(), CLOSE)
    except np.linalg.LinAlgError:
        return near.as_expected()
    if not _is_definite(distribution.operator.plain()):
        return near.as_expected()
    return distribution.as_expected() if posterior.normal_prior.by_expected else distribution


def under(distribution: Distribution, before: NormalPrior, after: NormalPrior) -> Distribution:
    """What the rows of a distribution say, under another prior than the one that is in it.

    They say what its natural parameters have beyond those of the prior. So that no small number is
    the difference of large ones, these are taken at its mode, where its gradient is zero. For a
    conjugate likelihood it is exact. Where the other prior is too weak to make the observed
    information of rows positive definite, the distribution stays.
    """
    theta = distribution.mode
    gradient = after.gradient(theta) - before.gradient(theta)
    curvature = distribution.curvature(theta) + before.curvature(theta) * -1.0
    curvature = curvature + after.curvature(theta)
    if not _is_definite(curvature):
        return distribution
    changed = after.updated(theta, gradient, curvature)
    return changed.as_expected() if distribution.by_expected else changed


def folded(posterior: Posterior, distribution: Distribution) -> Distribution:
    """The prior times the likelihood of the rows as expanded at a distribution.

    It is by the expected information where the distribution is, and where the observed one is not
    positive definite.
    """
    expected = distribution.by_expected
    if not expected:
        gradient, curvature = in_the_mean(posterior, distribution)
        expected = posterior.predictor.has_other_curvature and not _is_definite(curvature)
    if expected:
        gradient, curvature = in_the_mean(posterior, distribution, observed=False)
    product = posterior.normal_prior.updated(distribution.mode, gradient, curvature)
    return product.as_expected() if expected else product


def in_the_mean(
    posterior: Posterior, distribution: Distribution, observed: bool = True
) -> tuple[NDArray, Any]:
    """Gradient and curvature in the mean over a distribution.

    The curvature is the observed one, where the model has another than the expected one, if
    `observed`. Above 1,000 parameters they are those at the mode, and the curvature is a diagonal,
    and expected.
    """
    if not has_matrix(posterior.dim):
        expansion = posterior.expand(distribution.mode, DIAGONAL)
        return expansion.gradient, expansion.curvature
    root = distribution.operator.inverse().cholesky().dense()
    observed &= posterior.predictor.has_other_curvature
    return posterior.expected_under_gaussian(distribution.mode, root, observed)


# -- under several values of one prior precision -----------------------------------------------


class Node(NamedTuple):
    """The posterior under one precision."""

    rho: float
    """Log precision."""
    prior: Prior
    normal: Distribution
    n_determined: float
    """What the data know of the coefficients, as a number of them."""


class NormalPath:
    """Normal distributions under values of one precision, as they are asked for.

    Parameters
    ----------
    posterior : Posterior
        Of a `Predictor`, with a normal prior.
    scales : OnePrecision
    in_mean : bool
        Whether gradient and curvature vanish, and agree, in the mean over each distribution. Else
        it is that at the mode.

    Attributes
    ----------
    curve : array of shape (3, n)
        Log precision of each distribution, in their order, the logarithm of E[Q], and its
        derivative over log precision, if the likelihood is normal.
    """

    def __init__(self, posterior: Posterior, scales: OnePrecision, in_mean: bool) -> None:
        self.posterior, self.scales, self.in_mean = posterior, scales, in_mean
        self._weights = scales.weights(posterior.prior)
        self._nodes: list[Node] = []
        self.curve = np.empty((3, 0))
        self._by_chains: tuple[float, float] | None = None

    def near(self, rho: float) -> Node:
        """The known distribution whose precision is nearest."""
        return self._nodes[np.abs(self.curve[0] - rho).argmin()]

    def at(self, rho: float, within: float = 0.0) -> Node:
        """The distribution under a log precision, or a known one that is near."""
        prior = self.scales.given(self.posterior.prior, np.array([rho]))
        posterior = self.posterior.with_prior(prior)
        if not self._nodes:
            rows = self.posterior.data.sample
            theta, precision = posterior.model.guess(rows.y, rows.weight, rows.known), None
        else:
            near = self.near(rho)
            if abs(near.rho - rho) <= within:
                return near
            theta, precision, _ = self.initial(rho)
        normal: Distribution
        if not self.in_mean:
            mode = find_mode(posterior, theta, deterministic_rng("prior"), precision)
            normal = known_at(posterior, mode)
        elif precision is None:
            normal = updated(posterior, theta)
        else:  # of the same rows: the prior alone changes the gradient in the mean
            gradient = prior.gradient(theta) - near.prior.gradient(theta)
            theta = theta + precision.inverse().matvec(gradient)
            normal = agreeing(posterior.expected_under_gaussian, theta, precision, CLOSE)

        weights, covariance = self._weights, normal.operator.inverse().dense()
        away = np.where(weights > 0, normal.mean - self.posterior.prior.mean, 0.0)
        of_rows = weights @ covariance.diagonal()
        squares, pull = weights @ away**2 + of_rows, weights * away
        if not np.isfinite(squares):  # as of rows that are all one but for a few of a large sample
            raise np.linalg.LinAlgError("the distribution under a precision is not finite")
        variance = 2 * weights @ covariance**2 @ weights + 4 * pull @ covariance @ pull
        slope = -0.5 * np.exp(rho) * variance / squares
        n_determined = self.scales.sizes[0] - np.exp(rho) * of_rows
        k = int(self.curve[0].searchsorted(rho))
        self.curve = np.insert(self.curve, k, (rho, np.log(squares), slope), axis=1)
        self._nodes.insert(k, Node(rho, prior, normal, float(n_determined)))
        return self._nodes[k]

    def initial(self, rho: float) -> InitialPoint:
        """Near the mode under a log precision, from the nearest distribution."""
        near = self.near(rho)
        theta = near.normal.mode
        prior = self.scales.given(self.posterior.prior, np.array([rho]))
        change = prior.curvature(theta) + near.prior.curvature(theta) * -1.0
        return InitialPoint(theta, near.normal.operator.plain() + change)

    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation of log precision, as chains found them if they did."""
        if self._by_chains is not None:
            return self._by_chains
        rho, value, slope = self.curve
        grid = np.linspace(rho[0] - 3.0, rho[-1] + 3.0, 1000)
        inside = np.clip(grid, rho[0], rho[-1])
        between = CubicHermiteSpline(rho, value, slope)(inside) if len(rho) > 1 else value
        beyond = (grid - inside) * np.where(grid < rho[0], slope[0], slope[-1])
        half = -0.5 * np.exp(grid + between + beyond)
        force = self.scales.slope(grid[:, None], half[:, None])[:, 0]
        log_density = cumulative_trapezoid(force, grid, initial=0.0)
        share = np.exp(log_density - log_density.max())
        share /= share.sum()
        mean = share @ grid
        return float(mean), float(np.sqrt(share @ (grid - mean) ** 2))

    def found(self, rho: float, width: float) -> None:
        """Take mean and standard deviation of log precision from chains."""
        self._by_chains = rho, width

    def around(self) -> list[Node]:
        """Three distributions, from about 1.5 standard deviations below the mean to as much above.

        One that is half a deviation off serves. They tell the mean more precisely, so it may take a
        few rounds. Far from a normal posterior chains find the precision elsewhere: until they do,
        the deviation is half at least, and they move in steps as long.
        """
        told = self._by_chains is not None
        for _ in range(4):
            rho, width = self.moments()
            width = width if told else max(width, _WIDTH)
            nodes = [self.at(rho + k * width, 0.5 * width) for k in (-1.5, 0.0, 1.5)]
            if abs(self.moments()[0] - rho) < 0.5 * width:
                break
        if not told:
            rho, width = self.moments()
            self.found(rho, max(width, _WIDTH))
        return nodes
