"""Draws whose means and covariances are those that their gradients imply.

The expectation of the gradient of a log density is known: it is zero, and that of its product with
the distance from the mean is minus the identity (by parts). So gradients at the draws are control
variates for means and covariances (zero-variance MCMC: Assaraf & Caffarel 1999; Mira, Solgi &
Imparato 2013). One affine map for all chains takes the draws to the moments so estimated, and
whatever is read off the draws has the smaller error. Near a normal distribution that of means and
standard deviations is ten times smaller (math/matched.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import row_blocks
from skbayes_sg.diagnostics.batches import Batches, batches_a_chain, starts_of
from skbayes_sg.diagnostics.gradients import fewest
from skbayes_sg.linalg.sizes import elements_at_a_time, has_matrix
from skbayes_sg.samplers.target import Target

_EXPLAINED = 0.8  # of the variance of a product of two coordinates, for its mean to be corrected
_ROUNDS = 5  # in each errors of the covariance are about squared
_SETTLED = 0.003  # of the covariance: below what chance leaves
_MOST_STRETCH = 2.0  # of a standard deviation; gradients that ask for more do not explain the draws
_DRAWS_A_TERM = 3  # for control variates to count together
_MOST_TERMS = 600  # which take as long as some tens of gradients


def matched(target: Target, theta: NDArray) -> tuple[NDArray, Batches | None] | None:
    """Draws moved to the mean and covariance that gradients at them imply.

    Parameters
    ----------
    target : Target
        What the chains moved on.
    theta : array of shape (n_chains, n_draws, D)
        Draws with equal weights, in the coordinates of the model, hyperparameters last.

    Returns
    -------
    array of shape (n_chains, n_draws, D)
    Batches or None
        What at least 16 batches of them say. None where coordinates are taken one by one.

    It is None if there are too few draws, or if they do not move along a direction.
    """
    n_chains, n_draws, dim = theta.shape
    n = n_chains * n_draws
    if n < fewest(1):
        return None
    in_pairs = n >= fewest(dim) and has_matrix(dim)  # products of all pairs of coordinates
    # of many parameters each such array has hundreds of megabytes, and the precision of the draws
    flat = theta.reshape(n, dim).astype(np.float64 if in_pairs else theta.dtype)
    x = _in_place(target.coordinates.transform, flat.copy() if in_pairs else flat)
    h = gradients(target, x)
    centre = x.mean(axis=0, dtype=np.float64)
    spread = np.concatenate([x[:, part].std(axis=0, dtype=np.float64) for part in _parts(x)])
    if not (np.isfinite(h).all() and (spread > 0).all()):
        return None
    w = np.subtract(x, centre, out=x)
    w /= spread
    h *= spread
    try:
        control = _of_all_pairs(w, h) if in_pairs else _one_by_one(w, h)
        if in_pairs:
            control = _together(w, h, control)
    except np.linalg.LinAlgError:
        return None
    batches = None
    if in_pairs:
        starts = starts_of(n_chains, n_draws, batches_a_chain(n_chains, n_draws))
        batches = control.batches(flat, w, h, starts)
    del h
    moved = control.moved(w)
    moved *= spread
    moved += centre
    with np.errstate(over="ignore", invalid="ignore"):
        moved = _in_place(target.coordinates.inverse_transform, moved)
    if not np.isfinite(moved).all():  # curved coordinates have an exponential
        return None
    return moved.reshape(theta.shape), batches


def _in_place(function: Callable[[NDArray], NDArray], draws: NDArray) -> NDArray:
    """`function` of draws (n, D) in place of them, some at a time."""
    for rows in row_blocks(len(draws), 8 * draws.shape[1], 8 * elements_at_a_time()):
        draws[rows] = function(draws[rows])
    return draws


def _parts(draws: NDArray) -> list[slice]:
    """Some coordinates of draws (n, D) at a time."""
    return list(row_blocks(draws.shape[1], len(draws), elements_at_a_time()))


def gradients(target: Target, x: NDArray) -> NDArray:
    """Gradients h at draws (n, D) of the chains, from all rows or from the whole pool."""
    h = np.empty_like(x)
    n_parts = min(len(x), 1 + len(x) * target.point_size // elements_at_a_time())
    with np.errstate(over="ignore", invalid="ignore"):
        for part in np.array_split(np.arange(len(x)), n_parts):
            h[part] = target.full_gradient(x[part])
    return h


class _Terms(NamedTuple):
    """Control variates that count together, for whatever is averaged over the draws.

    An average less what a regression on all of them explains is a weighted average, with the same
    weights for all quantities.
    """

    values: NDArray
    """(terms, n), less their means, in single precision"""
    means: NDArray
    """(terms,), where their expectations are 0"""
    grams: tuple[NDArray, NDArray]
    """Products of the values of either half of the draws, (terms, terms)."""

    def weights(self) -> NDArray:
        """Weights of the draws in an average, (n,)."""
        slope = np.linalg.solve(sum(self.grams), self.means)
        return 1 / self.values.shape[1] - slope @ self.values

    def weights_of(self, starts: NDArray) -> NDArray:
        """Weights of the draws in averages of batches that begin at these numbers, (batches, n).

        The slopes of one half are those of the other, which do not fit its errors.
        """
        n = self.values.shape[1]
        size = np.diff(np.append(starts, n))
        means = np.add.reduceat(self.values, starts, axis=1, dtype=np.float64) / size
        means += self.means[:, None]
        weights = np.repeat(np.eye(len(size)) / size, size, axis=1)
        for batches, draws, gram in (
            (starts < n // 2, slice(n // 2, n), self.grams[1]),
            (starts >= n // 2, slice(n // 2), self.grams[0]),
        ):
            explained = np.linalg.solve(gram, means[:, batches]).T @ self.values[:, draws]
            weights[batches, draws] -= explained - explained.mean(axis=1, keepdims=True)
        return weights

    @property
    def of_half(self) -> float:
        """Variance of an average by the slopes of all draws over that by those of a half.

        Slopes of independent draws add that share of the variance which they have of the draws.
        """
        n_terms, n = self.values.shape
        return (n - 2 * n_terms) / (n - n_terms)


class _Control(NamedTuple):
    """Control variates of draws w (n, D), scaled and of mean 0, by the gradients h there.

    A matrix (D, D) is a vector of its diagonal, (D,), where coordinates are taken one by one.
    """

    mean: NDArray
    """The mean by the gradients, (D,)."""
    of_mean: NDArray
    """Slopes of w over h: the mean is that of w - h of_mean."""
    root: NDArray
    """Root of the covariance by the gradients, in whose units products are taken."""
    own: NDArray
    """Root of the covariance of the draws."""
    slope: NDArray
    """Slopes of products of two coordinates over their control variates, in units of the root."""
    terms: _Terms | None = None
    """Control variates that count together, in place of these slopes."""

    def moved(self, w: NDArray) -> NDArray:
        """Draws with this mean and covariance."""
        if self.root.ndim == 1:
            moved = w * (self.root / self.own).astype(w.dtype)
            moved += self.mean
            return moved
        return self.mean + np.linalg.solve(self.own, w.T).T @ self.root.T

    def batches(self, theta: NDArray, w: NDArray, h: NDArray, starts: NDArray) -> Batches:
        """What batches of draws that begin at these numbers say, under the slopes of all.

        Parameters are taken as linear in w. What they are beside is left as it was drawn, so that
        errors are too large, at most by half as a rule, where coordinates are curved. Terms that
        count together take parameters as they are.
        """
        if self.terms is not None:
            return _batches_of(self.terms, theta, starts)
        size, dim = np.diff(np.append(starts, len(w)))[:, None], w.shape[1]
        of_theta, of_h = (np.add.reduceat(values, starts, axis=0) / size for values in (theta, h))
        linear = w.T @ (theta - theta.mean(axis=0)) / len(w)  # of coordinates about independent
        linear = np.linalg.solve(w.T @ w / len(w), linear)
        mean = of_theta - of_h @ self.of_mean @ linear
        if size.min() <= dim:
            return Batches(mean, None)
        c, g = (w - self.mean) @ np.linalg.inv(self.root).T, h @ self.root
        to_theta, lower = self.root.T @ linear, np.tril_indices(dim)
        away = theta - theta.mean(axis=0) - self.mean @ linear
        covariance = np.empty((len(starts), len(lower[0])), np.float32)
        for k, (start, n) in enumerate(zip(starts, size[:, 0], strict=True)):
            batch = slice(start, start + n)
            F, S = away[batch].T @ away[batch] / n, c[batch].T @ g[batch] / n
            error = self.slope * (0.5 * (S + S.T) + np.eye(dim))
            covariance[k] = (F - to_theta.T @ error @ to_theta)[lower]
        return Batches(mean, covariance)


def _of_all_pairs(w: NDArray, h: NDArray) -> _Control:
    """Control variates for each mean and for each product of two coordinates.

    With c the distance from the mean, the mean of ``c_i c_j`` has the control variate ``s_ij =
    (c_i h_j + c_j h_i) / 2 + delta_ij`` in coordinates whose covariance is the identity. It counts
    where it explains most of the variance: else what it adds moves the shape of a distribution that
    is far from normal. The coordinates are those of the covariance that is found, so that the
    result is exact for a normal distribution.
    """
    n, dim = w.shape
    middle = h.mean(axis=0)
    away = h - middle
    of_mean = np.linalg.solve(away.T @ away, away.T @ w)
    mean = -middle @ of_mean  # what is left of w at h = 0, its expectation
    root = own = np.linalg.cholesky(w.T @ w / n)
    apart = w - mean
    for _ in range(_ROUNDS):
        c, g = np.linalg.solve(root, apart.T).T, h @ root
        F, S = c.T @ c / n, c.T @ g / n
        S = 0.5 * (S + S.T)
        squares, products = c * c, c * g
        FS = squares.T @ products / n
        FS = 0.5 * (FS + FS.T) - F * S
        FF = squares.T @ squares / n - F * F
        SS = squares.T @ (g * g) / n
        SS = 0.25 * (SS + SS.T + 2 * products.T @ products / n) - S * S
        explained = FS * FS > _EXPLAINED * FF * SS
        slope = np.divide(FS, SS, out=np.zeros_like(FS), where=explained)
        V = F - slope * (S + np.eye(dim))
        stretch = np.linalg.eigvalsh(V)
        if not 1 / _MOST_STRETCH**2 < stretch[0] <= stretch[-1] < _MOST_STRETCH**2:
            return _Control(mean, of_mean, own, own, np.zeros_like(slope))
        root = root @ np.linalg.cholesky(V)
        if np.abs(V - np.eye(dim)).max() < _SETTLED:
            break
    return _Control(mean, of_mean, root, own, slope)


def _one_by_one(w: NDArray, h: NDArray) -> _Control:
    """Control variates for each coordinate alone, where there are many for the draws.

    Some coordinates at a time: there are a dozen temporary arrays.
    """
    controls = [
        _of_each(w[:, part].astype(np.float64), h[:, part].astype(np.float64)) for part in _parts(w)
    ]
    mean, of_mean, root, own, slope = map(np.concatenate, list(zip(*controls, strict=True))[:5])
    return _Control(mean, of_mean, root, own, slope)


def _of_each(w: NDArray, h: NDArray) -> _Control:
    """Control variates for the coordinates of some columns, one by one."""
    middle = h.mean(axis=0)
    away = h - middle
    square = (away * away).mean(axis=0)
    of_mean = np.divide(
        (away * w).mean(axis=0), square, out=np.zeros_like(square), where=square > 0
    )
    mean, own = -middle * of_mean, np.ones(len(middle))
    root = own
    for _ in range(_ROUNDS):
        c, g = (w - mean) / root, h * root
        F, S = c * c, c * g
        f, s = F.mean(axis=0), S.mean(axis=0)
        FS, FF, SS = ((F - f) * (S - s)).mean(axis=0), F.var(axis=0), S.var(axis=0)
        explained = FS * FS > _EXPLAINED * FF * SS
        slope = np.divide(FS, SS, out=np.zeros_like(FS), where=explained)
        stretch = root * np.sqrt(np.maximum(f - slope * (s + 1), 0.0))
        inside = (stretch > 1 / _MOST_STRETCH) & (stretch < _MOST_STRETCH)
        root = np.where(inside, stretch, own)
    return _Control(mean, of_mean, root, own, slope)


def _together(w: NDArray, h: NDArray, control: _Control) -> _Control:
    """All control variates at once, if one for each product leaves some products as they are.

    Far from a normal distribution means and products depend on further gradients. Slopes from one
    half of the draws are to explain, in the other half, as much of the squares as is asked of the
    control variate of a product. They do not where draws are few for so many terms, or where their
    distribution falls off slowly.
    """
    n, dim = w.shape
    n_terms = dim * (dim + 3) // 2
    if control.slope.all() or n_terms > min(n // _DRAWS_A_TERM, _MOST_TERMS):
        return control
    c, g = np.linalg.solve(control.own, w.T), control.own.T @ h.T
    apart = c - np.linalg.solve(control.own, control.mean)[:, None]
    own, slopes = apart.astype(np.float32), g.astype(np.float32)
    i, j = np.tril_indices(dim)
    products = 0.5 * (own[i] * slopes[j] + own[j] * slopes[i])
    values = np.concatenate([slopes, products + (i == j)[:, None]])
    means = values.mean(axis=1, dtype=np.float64)
    values -= means[:, None]

    squares = own * own
    squares -= squares.mean(axis=1, keepdims=True)
    halves = [(values[:, half], squares[:, half]) for half in (slice(n // 2), slice(n // 2, n))]
    first, second = (_with(fitted, fitted) for fitted, _ in halves)
    terms, unexplained = _Terms(values, means, (first, second)), 0.0
    for gram, (fitted, of_fitted), (tested, of_tested) in zip(
        terms.grams, halves, reversed(halves), strict=True
    ):
        slope = np.linalg.solve(gram, _with(fitted, of_fitted)).astype(np.float32)
        unexplained += np.square(of_tested - slope.T @ tested).sum()
    if unexplained * terms.of_half > (1 - _EXPLAINED) * np.square(squares).sum():
        return control

    weights = terms.weights()
    mean = c @ weights
    away = c - mean[:, None]
    V = (weights * away) @ away.T
    stretch = np.linalg.eigvalsh(V)
    if not 1 / _MOST_STRETCH**2 < stretch[0] <= stretch[-1] < _MOST_STRETCH**2:
        return control
    root = control.own @ np.linalg.cholesky(V)
    return control._replace(mean=control.own @ mean, root=root, terms=terms)


def _with(values: NDArray, others: NDArray) -> NDArray:
    """Products of numbers in single precision, to be solved for in double precision."""
    return (values @ others.T).astype(np.float64)


def _batches_of(terms: _Terms, theta: NDArray, starts: NDArray) -> Batches:
    """What batches of draws say, by slopes of the other half of the draws."""
    weights, lower = terms.weights_of(starts), np.tril_indices(theta.shape[1])
    mean = weights @ theta
    away = theta - mean.mean(axis=0)
    covariance = np.stack([((of_batch[:, None] * away).T @ away)[lower] for of_batch in weights])
    scale = np.sqrt(terms.of_half)
    return Batches(scale * mean, (scale * covariance).astype(np.float32))
