"""Quantiles of mixtures over draws: product rules of few nodes, and all draws where they differ.

Source: math/monte_carlo.md#predictive-quantiles.
"""

from __future__ import annotations

from math import factorial
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import herme2poly
from numpy.typing import NDArray
from scipy.special import ndtri

from skbayes_sg.data import row_blocks
from skbayes_sg.estimators.mixture_predictions import Mixture, outputs_of
from skbayes_sg.linalg.scores import dense
from skbayes_sg.linalg.sizes import elements_at_a_time
from skbayes_sg.models.base import Response
from skbayes_sg.models.predictor import Predictor

_OF_NORMAL = (3, 2), (5, 3)
_OF_DRAWS = (5, 2), (8, 3), (11, 4)
_OF_SEVERAL = (4, 2), (6, 3), (8, 4)
"""Nodes of the predictor, and of each parameter that rows share, of one rule after another: of
normal scores, for narrow rows, and of scores with the moments of the draws, for others. Where rows
share several parameters their nodes are multiplied, and the predictor has fewer."""
_NARROW = 0.1  # widths of y by which a predictor's standard deviation moves the mean
_PROMISED = 1e-3  # error of the probability below a quantile
_OF_OUTSIDE = 0.04  # the same, of the probability outside a central interval
_LAST = 0.015  # coefficients of a distribution function on the last polynomials of a rule
_CHANCE = 0.75  # least share of rows that stand under a rule which is to be relied on
_FEW = 32  # rows whose quantiles, in units of their widths, those of others begin at
_BLOCK_BYTES = 1 << 19  # of draws of predictors, which stay in the cache with one of their powers
_OF_SEARCH = 0.5  # of the tolerance of a probability, in a search
_OF_WIDTH = 1e-9  # no closer are jumps of a distribution function found
_FARTHEST = 8.0  # normal quantile that stands for probabilities of 0 and 1 in a search
_LEAST_SIZE = 1e-6  # of a polynomial, beside that of numbers of variance 1
_BEYOND = 1.2  # steps to a quantile, so that it is between two numbers
_ROUNDING = 4 * np.finfo(np.float64).eps
_SMALLEST = np.finfo(np.float64).smallest_subnormal
_LARGEST = np.finfo(np.float64).max / 2  # differences of such numbers do not overflow


class Rule(NamedTuple):
    """A rule for means over each row's mixture: outputs of the model, and their weights."""

    outputs: NDArray
    """(nodes, outputs, n)"""
    weights: NDArray
    """(nodes, n), with the sum 1; some may be negative"""
    last: NDArray | None = None
    """(2, nodes): a function's coefficients on the predictor's last two polynomials are sums"""

    @property
    def n_rows(self) -> int:
        return self.weights.shape[1]

    def of(self, rows: Any) -> Rule:
        """That of some rows."""
        return Rule(self.outputs[..., rows], self.weights[:, rows], self.last)

    def mean(self, values: NDArray) -> NDArray:
        """Of numbers under each node, (nodes, n): (n,)."""
        return np.einsum("sn,sn->n", self.weights, values)


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def mixture_quantiles(mixture: Mixture, levels: NDArray) -> tuple[NDArray, NDArray]:
    """Quantiles of each row's mixture, (n, levels), and the mean width of its components, (n,).

    Of counts one is the first number at which the distribution function reaches its level.

    The distribution function of a mixture is a mean over all draws, of a function of the row's
    linear predictor and of the parameters that rows share. It is smooth on the scale of their
    spread, so that the mean of a polynomial through a few of its numbers is nearly its own, and is
    inverted under such a rule. A quantile stands where the next finer rule gives it the same
    probability. Where a predictor moves by little of the width of y, as after a fit to many rows,
    the draws give the rule its mean and standard deviation alone. Elsewhere, as in rows so far from
    those of the fit that their means vary as much as y does, it is searched for again under that
    rule, and in the end under all draws. So are quantiles of few draws, and of a model that is no
    function of one predictor. Where few rows stand, those that do agree by chance, and are searched
    for again like the others.
    """
    model, X, draws, _ = mixture
    parts = list[tuple[NDArray, NDArray]]()
    if not (isinstance(model, Predictor) and model.shapes["coef"][0] == 1):
        size = 8 * len(draws.flat) * model.widest * len(levels)
        for block in row_blocks(X.shape[0], size, 8 * elements_at_a_time()):
            rule = _all_draws(mixture, X[block])  # a row of several responses has as many mixtures
            nowhere = np.full((rule.n_rows, len(levels)), np.nan)
            width = rule.mean(model.width(rule.outputs))
            parts.append((inverted(model, rule, levels, nowhere), width))
    else:
        rules, narrow = ProductRules(mixture), _are_narrow(mixture)
        size = 8 * (64 * model.widest * len(levels) + X.shape[1])  # also of sparse rows
        for block in row_blocks(X.shape[0], size, 8 * elements_at_a_time()):
            some = mixture._replace(X=X[block])
            parts.append(_of_block(some, rules, narrow[block], levels))
    found, of_rows = zip(*parts, strict=True)
    return np.concatenate(found), np.concatenate(of_rows)


def _of_block(
    mixture: Mixture, rules: ProductRules, narrow: NDArray, levels: NDArray
) -> tuple[NDArray, NDArray]:
    """`mixture_quantiles` of a block of rows, some of which are `narrow`."""
    model, X, draws, _ = mixture
    ends, widths = np.full((X.shape[0], len(levels)), np.nan), np.empty(X.shape[0])
    left, moments = np.arange(X.shape[0]), np.zeros(0)
    n_effective = 1 / np.sum(draws.flat_weights**2)
    few = [n for n in (*_OF_NORMAL, *rules.numbers) if 4 * rules.n_nodes(n) < n_effective]
    for numbers in (*few, None):  # of few draws there are as many
        rows_here = left[narrow[left]] if numbers in _OF_NORMAL else left
        if numbers in rules.numbers and not moments.size:
            moments = np.zeros((X.shape[0], rules.numbers[-1][0], rules.terms.shape[1]))
            moments[left] = rules.moments(X[left])
        stand = np.zeros(len(rows_here), bool)
        n_nodes = len(draws.flat) if numbers is None else rules.n_nodes(numbers)
        size = 8 * n_nodes * model.widest * len(levels)
        for block in row_blocks(len(rows_here), size, 8 * elements_at_a_time()):
            rows = rows_here[block]
            if numbers is None:
                rule = _all_draws(mixture, X[rows])
            else:
                of_draws = None if numbers in _OF_NORMAL else moments[rows]
                rule = rules.rule(X[rows], numbers, of_draws)
            stand[block] = known = _stand(model, rule, ends[rows], levels)
            widths[rows] = rule.mean(model.width(rule.outputs))
            off = rows[~known]
            ends[off] = inverted(model, rule.of(~known), levels, ends[off])
        if len(stand) and stand.mean() > _CHANCE:  # else they agree by chance
            left = np.setdiff1d(left, rows_here[stand], assume_unique=True)
    return ends, widths


def _are_narrow(mixture: Mixture) -> NDArray:
    """Whether the predictor of a row moves its mean by little of the width of y, (n,)."""
    model, X, _, _ = mixture
    draws, weights = mixture.draws.flat, mixture.draws.flat_weights
    middle, columns = weights @ draws, model.columns()[0]
    root = _root((draws - middle)[:, columns], weights)
    found = list[NDArray]()
    for rows in row_blocks(X.shape[0], 8 * len(columns), _BLOCK_BYTES):
        block = X[rows] if model.keeps_sparse(X) else dense(X[rows])
        outputs = model.outputs(middle[None], block.astype(np.float64, copy=False))
        further = outputs.copy()
        further[:, 0] += np.linalg.norm(_with_ones(model, X[rows]) @ root.T, axis=1)
        change, width = model.mean(further) - model.mean(outputs), model.width(outputs)
        found.append(((np.abs(change) < _NARROW * width) & np.isfinite(width))[0])
    return np.concatenate(found)


def _root(away: NDArray, weights: NDArray) -> NDArray:
    """R of which R^T R is the weighted covariance of draws (draws, columns), less their means."""
    return np.asarray(np.linalg.qr(np.sqrt(weights)[:, None] * away, mode="r"))


def _with_ones(model: Predictor, X: Any) -> NDArray:
    """Features of rows, dense, with a column of ones if there is an intercept."""
    features = dense(model.features(X))
    if not model.fit_intercept:
        return features
    return np.column_stack([features, np.ones(len(features))])


def _shared(mixture: Mixture) -> NDArray:
    """Draws of the d parameters that all rows share, (draws, d)."""
    draws = mixture.draws.flat
    return draws[:, draws.shape[1] - _n_shared(mixture.model) :]


def _n_shared(model: Predictor) -> int:
    """Parameters of a model that all rows share."""
    return model.dim - model.columns().size


def _all_draws(mixture: Mixture, X: Any) -> Rule:
    """The rule for rows whose nodes are the draws."""
    model, theta, weights = mixture.model, mixture.draws.flat, mixture.draws.flat_weights
    outputs = np.concatenate(list(outputs_of(model, X, theta)), axis=-1)
    return Rule(outputs, np.broadcast_to(weights[:, None], (len(theta), outputs.shape[-1])))


def _tolerance(level: Any) -> Any:
    """Of the probability below a quantile, under two rules: the finer one may be off as well."""
    return 0.25 * np.minimum(_PROMISED, _OF_OUTSIDE * 2 * np.minimum(level, 1 - level))


def _stand(model: Response, rule: Rule, ends: NDArray, levels: NDArray) -> NDArray:
    """Whether a rule gives all ends (n, levels) of a row their probabilities.

    An end of counts has less than its level before it, and as much or more up to it.
    """
    stand = np.isfinite(ends).all(axis=1)
    (known,) = np.nonzero(stand)
    if len(known):
        rule = rule.of(known)
        for end, level in zip(ends[known].T, levels, strict=True):
            values = model.distribution(end, rule.outputs)
            below = before = rule.mean(values)
            if model.counts:
                before = rule.mean(model.distribution(end - 1, rule.outputs))
            error = _tolerance(level)
            stand[known] &= (below > level - error) & (before < level + error)
            if rule.last is not None:
                stand[known] &= (np.abs(rule.last @ values) < _LAST).all(axis=0)
    return stand


# -- rules of few nodes -----------------------------------------------------------------------


class ProductRules:
    """Rules for the distributions that draws give a row's predictor and the shared parameters.

    These are functions of scores that are uncorrelated, of mean 0 and variance 1: linear of the
    shared parameters, and of the predictor a part that is quadratic in their scores, and one that
    is linear in a score of its own. Nodes are products of those of Gauss rules of each score, for
    the draws of the shared ones, which all rows have, and for a normal predictor's. A function is
    taken for the polynomial through its numbers at the nodes, whose mean over the draws is exact:
    its coefficients on orthonormal polynomials, times the means of products of these.
    """

    def __init__(self, mixture: Mixture) -> None:
        self.model, draws = mixture.model, mixture.draws
        theta, self.weights = draws.flat, draws.flat_weights
        own = _shared(mixture)
        self.middle = self.weights @ own
        self.root = _root(own - self.middle, self.weights)
        self.scores = (own - self.middle) @ np.linalg.pinv(self.root)
        self.numbers = _OF_DRAWS if own.shape[1] < 2 else _OF_SEVERAL
        n_own, n_shared = self.numbers[-1]
        self.of_predictor = np.diag(np.sqrt(np.arange(1.0, n_own)), 1)
        self.of_predictor += self.of_predictor.T
        each = [orthonormal(score, self.weights, n_shared) for score in self.scores.T]
        self.of_scores = [jacobi for _, jacobi in each]
        self.terms = (self.weights * _products([of_draws for of_draws, _ in each], len(theta))).T
        coef = theta[:, self.model.columns()[0]]
        self.coef, self.rest = _regressed(coef, self.scores, self.weights)
        self.rest_root = _root(self.rest, self.weights)

    def n_nodes(self, numbers: tuple[int, int]) -> int:
        """Of the predictor's score and of each other one as many as given."""
        return numbers[0] * numbers[1] ** self.scores.shape[1]

    def moments(self, X: Any) -> NDArray:
        """Means over the draws of products of polynomials, (n, degrees, terms).

        They are Hermite polynomials of the predictor's score, times all products (terms) of those
        of other scores.
        """
        some, n_own = _with_ones(self.model, X), self.numbers[-1][0]
        scale = np.linalg.norm(some @ self.rest_root.T, axis=1)
        over = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
        terms = self.terms.astype(np.float32)
        found = np.empty((len(some), n_own, terms.shape[1]))
        found[:, 0] = self.terms.sum(axis=0)
        for rows in row_blocks(len(some), 8 * len(self.rest), _BLOCK_BYTES):
            # numbers of size 1 have digits to spare in single precision
            z = np.empty((len(some[rows]), len(self.rest)), np.float32)
            np.multiply(some[rows] @ self.rest.T, over[rows, None], out=z, casting="same_kind")
            power = z.copy()
            for degree in range(1, n_own):
                found[rows, degree] = power @ terms
                power *= z
        return _hermite_of_powers(n_own) @ found

    def rule(self, X: Any, numbers: tuple[int, int], moments: NDArray | None) -> Rule:
        """For rows; without moments of the draws, as if the predictor's score were normal."""
        some, (n_own, n_shared) = _with_ones(self.model, X), numbers
        z, at_z = gauss_rule(self.of_predictor[:n_own, :n_own])
        scores, at_scores = np.zeros((1, 0)), np.ones((1, 1))
        for jacobi in self.of_scores:
            nodes, at_nodes = gauss_rule(jacobi[:n_shared, :n_shared])
            scores = np.column_stack(
                [np.repeat(scores, n_shared, axis=0), np.tile(nodes, len(scores))]
            )
            at_scores = np.kron(at_scores, at_nodes)
        known = dense(X[:, self.model.shapes["coef"][1] :]).T  # an offset, and what is given
        n_outputs = 1 + scores.shape[1]
        outputs = np.empty((len(scores), n_own, n_outputs + len(known[1:]), len(some)))
        scale = np.linalg.norm(some @ self.rest_root.T, axis=1)
        outputs[:, :, 0] = (_quadratic(scores) @ self.coef @ some.T)[:, None] + np.outer(z, scale)
        outputs[:, :, 0] += known[:1].sum(axis=0)
        outputs[:, :, 1:n_outputs] = (self.middle + scores @ self.root)[:, None, :, None]
        outputs[:, :, n_outputs:] = known[1:]

        if moments is None:
            moments = np.zeros((1, self.numbers[-1][0], self.terms.shape[1]))
            moments[:, 0] = self.terms.sum(axis=0)
        degrees = (self.numbers[-1][1],) * self.scores.shape[1]
        fewer = (slice(None), slice(n_own), *[slice(n_shared)] * len(degrees))
        series = moments.reshape(*moments.shape[:2], *degrees)[fewer]
        weights = at_z.T @ series.reshape(len(moments), n_own, -1) @ at_scores
        weights = np.broadcast_to(weights.T, (len(scores), n_own, len(some)))
        last = at_scores[0][:, None] * at_z[-2:, None]
        flat = outputs.reshape(-1, *outputs.shape[2:])
        return Rule(flat, weights.reshape(len(flat), -1), last.reshape(2, -1))


def orthonormal(values: NDArray, weights: NDArray, n: int) -> tuple[NDArray, NDArray]:
    """Polynomials of draws that are orthonormal under their weights, (n, draws), and Jacobi matrix.

    By Stieltjes' procedure; beyond as many as there are different numbers they are 0.
    """
    found, jacobi = np.zeros((n, len(values))), np.zeros((n, n))
    found[0] = 1
    for k in range(n):
        jacobi[k, k] = weights @ (values * found[k] ** 2)
        if k + 1 < n:
            rest = (values - jacobi[k, k]) * found[k] - jacobi[k, k - 1] * found[k - 1] * (k > 0)
            size = np.sqrt(weights @ rest**2)
            if size < _LEAST_SIZE:
                break
            found[k + 1] = rest / size
            jacobi[k, k + 1] = jacobi[k + 1, k] = size
    return found, jacobi


def gauss_rule(jacobi: NDArray) -> tuple[NDArray, NDArray]:
    """Nodes (n,), and orthonormal polynomials at them times their weights, (n, nodes).

    Nodes are eigenvalues of the Jacobi matrix, and weights the squares of the first entries of its
    eigenvectors, whose others are to these as the polynomials are (Golub & Welsch 1969).
    """
    nodes, vectors = np.linalg.eigh(jacobi)
    return nodes, vectors[0] * vectors


def _products(of_scores: list[NDArray], n: int) -> NDArray:
    """Products over scores, of each polynomial (terms, n), in all combinations, (terms ** d, n)."""
    found = np.ones((1, n))
    for each in of_scores:
        found = (found[:, None] * each).reshape(-1, n)
    return found


def _hermite_of_powers(n: int) -> NDArray:
    """Coefficients (n, n) of powers in each of the orthonormal Hermite polynomials."""
    found = np.zeros((n, n))
    for k, row in enumerate(found):
        row[: k + 1] = herme2poly(np.eye(n)[k]) / np.sqrt(factorial(k))
    return found


def _quadratic(scores: NDArray) -> NDArray:
    """1, each score, and the products of two, (m, terms)."""
    first, second = np.triu_indices(scores.shape[1])
    return np.column_stack([np.ones(len(scores)), scores, scores[:, first] * scores[:, second]])


def _regressed(values: NDArray, scores: NDArray, weights: NDArray) -> tuple[NDArray, NDArray]:
    """Coefficients (terms, .) of draws (draws, .) on quadratic terms of scores, and residuals."""
    terms, root = _quadratic(scores), np.sqrt(weights)[:, None]
    coef = (np.linalg.pinv(root * terms) * root.T) @ values
    return coef, values - terms @ coef


# -- inversion --------------------------------------------------------------------------------


def inverted(model: Response, rule: Rule, levels: NDArray, near: NDArray) -> NDArray:
    """Quantiles (n, levels) of mixtures whose components and weights are those of a rule.

    A search begins at the quantile of a normal distribution, or at quantiles `near` them. The
    normal quantile of the probability below a number is nearly a straight line, and is followed to
    where it has that of the level: by the width of the mixture until the quantile lies between two
    numbers, and then by the line through these. Where a distribution function jumps, the line is of
    no use, and every fourth number is halfway between them. Of counts the search ends between two
    neighbours. Positive numbers are searched for on the log scale, where none of them over- or
    underflows.
    """
    scale, n_rows = SearchScale.of(model, rule), rule.n_rows
    rows, q = np.repeat(np.arange(n_rows), len(levels)), np.tile(levels, n_rows)
    (least, most), width, wanted = scale.limits, scale.width[rows], ndtri(q)
    t = scale.t(near.ravel(), rows)
    usual, unknown = ndtri(levels), ~np.isfinite(t)
    if n_rows > 2 * _FEW and unknown.all():
        few = np.arange(0, n_rows, n_rows // _FEW)
        ends = scale.t(inverted(model, rule.of(few), levels, near[few]), few[:, None])
        usual = np.median((ends - scale.centre[few, None]) / scale.width[few, None], axis=0)
    t[unknown] = (scale.centre[rows] + width * np.tile(usual, n_rows))[unknown]
    low, high = np.full(len(q), -np.inf), np.full(len(q), np.inf)
    at_low, at_high = low.copy(), high.copy()  # normal quantiles there, less those wanted
    step, n_between, found = np.zeros(len(q)), np.zeros(len(q), int), np.full(len(q), np.nan)
    was_low = np.full(len(q), 2)
    left = np.arange(len(q))
    while len(left):
        here = np.clip(np.floor(t[left]) if model.counts else t[left], least, most)
        some = rule.of(rows[left])
        below = some.mean(model.distribution(scale.y(here, rows[left]), some.outputs))
        at = np.clip(ndtri(np.clip(np.nan_to_num(below, nan=1.0), 0, 1)), -_FARTHEST, _FARTHEST)
        at -= wanted[left]
        is_low = below < q[left]
        for side, ends, values, others in (
            (is_low, low, at_low, at_high),
            (~is_low, high, at_high, at_low),
        ):
            again = left[side & (was_low[left] == is_low)]
            others[again] *= 0.5  # an end that stays twice would stay for long (Illinois)
            ends[left[side]], values[left[side]] = here[side], at[side]
        was_low[left] = is_low

        gap = high[left] - low[left]
        close = np.maximum(1.0 if model.counts else _OF_WIDTH, _ROUNDING * np.abs(here))
        off = np.abs(below - q[left])
        is_found = (off <= _OF_SEARCH * _tolerance(q[left])) & (not model.counts)
        found[left] = np.where(is_found, here, high[left])
        beyond = np.where(is_low, here == most, here == least)
        found[left[beyond]] = np.where(is_low, np.inf, -np.inf)[beyond]
        goes_on = ~(is_found | beyond | (gap <= close))
        left, is_low, gap, at = left[goes_on], is_low[goes_on], gap[goes_on], at[goes_on]

        between = np.isfinite(gap)
        n_between[left] += between
        share = at_low[left] / (at_low[left] - at_high[left])
        follows = (share > 0) & (share < 1) & (n_between[left] % 4 != 0)
        share = np.where(follows, share, 0.5)
        inside = low[left] + share * gap
        if model.counts:
            inside = np.clip(np.floor(inside), low[left] + 1, high[left] - 1)
        step[left] = np.maximum(2 * step[left], _BEYOND * np.abs(at) * width[left]) + model.counts
        t[left] = np.where(between, inside, here[goes_on] + np.where(is_low, 1, -1) * step[left])
    ends = scale.y(found, rows)
    ends[found == np.inf] = np.inf
    ends[found == -np.inf] = 0.0 if model.log_link else -np.inf
    return ends.reshape(-1, len(levels))


class SearchScale(NamedTuple):
    """Where quantiles are searched for: y itself if it counts, its logarithm if it is positive.

    Other numbers are measured from the mean of the mixture in units of its width, since they may
    lie far from zero.
    """

    is_log: bool
    origin: NDArray
    unit: NDArray
    """y is ``origin + unit t``, or exp(t)"""
    centre: NDArray
    width: NDArray
    """of the mixture, of t"""
    limits: tuple[float, float]
    """of t"""

    @classmethod
    def of(cls, model: Response, rule: Rule) -> SearchScale:
        zeros, ones = np.zeros(rule.n_rows), np.ones(rule.n_rows)
        sizes = np.abs(rule.weights)
        rule = Rule(rule.outputs, sizes / sizes.sum(axis=0))
        if model.log_link and not model.counts:
            eta, at_one = rule.outputs[:, 0], rule.outputs.copy()
            at_one[:, 0] = 0
            centre = rule.mean(eta)
            within = np.log1p(model.width(at_one) ** 2)  # of a lognormal variable
            width = np.sqrt(rule.mean(within + (eta - centre) ** 2))
            return cls(True, zeros, ones, centre, width, (np.log(_SMALLEST), np.log(_LARGEST)))
        each = model.mean(rule.outputs)
        mean = rule.mean(each)
        width = np.sqrt(rule.mean(model.width(rule.outputs) ** 2 + (each - mean) ** 2))
        if not model.counts:
            return cls(False, mean, width, zeros, ones, (-_LARGEST, _LARGEST))
        lost = ~np.isfinite(width) | (width == 0)  # means have over- or underflowed
        if lost.any():
            some = np.nan_to_num(each[:, lost], posinf=0.0)
            mean[lost] = np.minimum(rule.of(lost).mean(some), _LARGEST / 8)
            width[lost] = np.clip(some.max(axis=0), 1.0, _LARGEST / 8)
        return cls(False, zeros, ones, mean, width, (-1.0, _LARGEST))

    def y(self, t: NDArray, rows: NDArray) -> NDArray:
        """At t, of the rows of these numbers."""
        return np.exp(t) if self.is_log else self.origin[rows] + self.unit[rows] * t

    def t(self, y: NDArray, rows: NDArray) -> NDArray:
        """At y."""
        with np.errstate(divide="ignore"):
            return np.log(y) if self.is_log else (y - self.origin[rows]) / self.unit[rows]
