"""Quantiles of mixtures over draws: Gauss rules of few nodes, and all draws where they differ.

Source: math/monte_carlo.md#predictive-quantiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from skbayes_sg.data import row_blocks
from skbayes_sg.estimators.mixture_predictions import Mixture, outputs_of
from skbayes_sg.linalg.scores import dense
from skbayes_sg.linalg.sizes import elements_at_a_time
from skbayes_sg.models.base import Response
from skbayes_sg.models.predictor import Predictor

_OF_PREDICTOR = ((0, (3, 5)), (0, (8,)))
_OF_BOTH = ((0, (3,)), (1, (5,)), (2, (8,)))
"""Halvings of the draws, and nodes along the predictor, of one rule after another: where there are
no parameters that rows share, and where there are. Nodes in a row are those of one pass."""
_NARROW = 0.1  # widths of y by which a predictor's standard deviation moves the mean
_PROMISED = 1e-3  # error of the probability below a quantile
_OF_OUTSIDE = 0.04  # the same, of the probability outside a central interval
_LAST = 0.015  # coefficients of a distribution function on the last polynomials of a rule
_CHANCE = 0.75  # least share of rows that stand under a rule which is to be relied on
_FEW = 32  # rows whose quantiles, in units of their widths, those of others begin at
_BLOCK_BYTES = 1 << 19  # of outputs, which stay in the cache while a rule is made of them
_OF_AN_END = 1e-4  # relative error of the probability outside a central interval, in a search
_OF_WIDTH = 1e-9  # no closer are jumps of a distribution function found
_FARTHEST = 8.0  # normal quantile that stands for probabilities of 0 and 1 in a search
_LEAST_SQUARE = 1e-4  # of a polynomial, beside that of the one before it
_BEYOND = 1.2  # steps to a quantile, so that it is between two numbers
_ROUNDING = 4 * np.finfo(np.float64).eps
_SMALLEST = np.finfo(np.float64).smallest_subnormal
_LARGEST = np.finfo(np.float64).max / 2  # differences of such numbers do not overflow


class Rule(NamedTuple):
    """A rule for means over each row's mixture: outputs of the model, and their weights."""

    outputs: NDArray
    """(nodes, outputs, n)"""
    weights: NDArray
    """(nodes, n)"""
    last: NDArray | None = None
    """(2, nodes, n): weights times the last two of the polynomials that are orthogonal with them"""

    @classmethod
    def joined(cls, rules: Sequence[Rule]) -> Rule:
        """Rules under groups of draws as one."""
        outputs, weights, last = zip(*rules, strict=True)
        return cls(np.concatenate(outputs), np.concatenate(weights), np.concatenate(last, axis=1))

    @property
    def n_rows(self) -> int:
        return self.weights.shape[1]

    def of(self, rows: Any) -> Rule:
        """That of some rows."""
        last = None if self.last is None else self.last[..., rows]
        return Rule(self.outputs[..., rows], self.weights[:, rows], last)

    def beside(self, given: NDArray) -> Rule:
        """With further outputs (1, ., n) that no draw moves."""
        given = np.broadcast_to(given, (len(self.outputs), *given.shape[1:]))
        return self._replace(outputs=np.concatenate([self.outputs, given], axis=1))

    def mean(self, values: NDArray) -> NDArray:
        """Of numbers under each node, (nodes, n): (n,)."""
        return np.einsum("sn,sn->n", self.weights, values)


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def mixture_quantiles(mixture: Mixture, levels: NDArray) -> tuple[NDArray, NDArray]:
    """Quantiles of each row's mixture, (n, levels), and the mean width of its components, (n,).

    Of counts one is the first number at which the distribution function reaches its level.

    The distribution function of a mixture is a mean over all draws, of a function of the row's
    linear predictor and of the parameters that rows share. It is smooth on the scale of their
    spread, and is inverted under Gauss rules for the distribution that the draws give them. A
    quantile stands where the next finer rule gives it the same probability. Where a predictor moves
    by little of the width of y, as after a fit to many rows, the draws give the rule its mean and
    standard deviation alone. Elsewhere, as in rows so far from those of the fit that their means
    vary as much as y does, it is searched for again under that rule, and in the end under all
    draws. So are quantiles of few draws, and of a model
    that is no function of one predictor. Where few rows stand, those that do agree by chance, and
    are searched for again like the others.
    """
    model, X, _, _ = mixture
    draws, weights = mixture.draws.flat, mixture.draws.flat_weights
    stages, n_levels = _stages(model), len(levels)
    if not stages:  # a row of several responses has as many mixtures
        parts = list[tuple[NDArray, NDArray]]()
        size = 8 * len(draws) * model.widest * n_levels
        for block in row_blocks(X.shape[0], size, 8 * elements_at_a_time()):
            rule = _all_draws(mixture._replace(X=X[block]))
            nowhere = np.full((rule.n_rows, n_levels), np.nan)
            width = rule.mean(model.width(rule.outputs))
            parts.append((inverted(model, rule, levels, nowhere), width))
        found, of_rows = zip(*parts, strict=True)
        return np.concatenate(found), np.concatenate(of_rows)
    ends, widths = np.full((X.shape[0], n_levels), np.nan), np.empty(X.shape[0])
    left, narrow = np.arange(X.shape[0]), _are_narrow(mixture)
    of_narrow = [(narrow, *stage) for stage in stages[:2]]
    of_all = [(np.ones_like(narrow), *stage) for stage in (*stages, (0, None))]
    for these, n_halvings, numbers in (*of_narrow, *of_all):
        normal = these is narrow
        rows_here = left[these[left]]
        if not len(rows_here):
            continue
        groups, n_nodes = list[SharedParameters](), len(draws)
        if numbers is not None:
            groups = SharedParameters.groups(_shared(mixture), weights, n_halvings)
            n_nodes = max(numbers) * sum(len(group.weights) for group in groups)
            if 4 * n_nodes * np.sum(weights**2) >= 1:  # of effective draws there are as few
                continue
        size, stand = 8 * n_nodes * model.widest * n_levels, np.zeros(len(rows_here), bool)
        for block in row_blocks(len(rows_here), size, 8 * elements_at_a_time()):
            rows = rows_here[block]
            some = mixture._replace(X=X[rows])
            rules = [_all_draws(some)] if numbers is None else _rules(some, groups, numbers, normal)
            for rule in rules:
                stand[block] = known = _stand(model, rule, ends[rows], levels)
                widths[rows] = rule.mean(model.width(rule.outputs))
                off = rows[~known]
                ends[off] = inverted(model, rule.of(~known), levels, ends[off])
        if stand.mean() > _CHANCE:  # else they agree by chance
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


def _stages(model: Any) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Gauss rules, one finer than the other; none for models of more than one predictor."""
    if not (isinstance(model, Predictor) and model.shapes["coef"][0] == 1):
        return ()
    return _OF_BOTH if _n_shared(model) else _OF_PREDICTOR


def _shared(mixture: Mixture) -> NDArray:
    """Draws of the d parameters that all rows share, (draws, d)."""
    draws = mixture.draws.flat
    return draws[:, draws.shape[1] - _n_shared(mixture.model) :]


def _n_shared(model: Predictor) -> int:
    """Parameters of a model that all rows share."""
    return model.dim - model.columns().size


def _all_draws(mixture: Mixture) -> Rule:
    """The rule whose nodes are the draws."""
    model, X, _, _ = mixture
    draws, weights = mixture.draws.flat, mixture.draws.flat_weights
    outputs = np.concatenate(list(outputs_of(model, X, draws)), axis=-1)
    return Rule(outputs, np.broadcast_to(weights[:, None], (len(draws), outputs.shape[-1])))


def _rules(
    mixture: Mixture, groups: list[SharedParameters], numbers: Sequence[int], normal: bool
) -> Iterator[Rule]:
    """Gauss rules for rows, with some numbers of nodes of the predictor.

    `normal`: whether predictors given the shared parameters are taken as such.
    """
    model, X, draws, _ = mixture
    coef = draws.flat[:, model.columns()[0]]
    of_groups = list[Given]()
    for group in groups:
        of, share = group.draws, group.draw_weights
        means, rest = _regressed(coef[of], group.scores, share)
        if normal:
            some = _with_ones(model, X)
            scale = np.linalg.norm(some @ _root(rest, share).T, axis=1)
            of_groups.append(Given.normal(means @ some.T, scale, group.scores, max(numbers)))
            continue
        parts = list[Given]()
        for block in row_blocks(X.shape[0], 8 * len(of), _BLOCK_BYTES):
            some = _with_ones(model, X[block])
            parts.append(Given.of(means @ some.T, some @ rest.T, group.scores, share, max(numbers)))
        of_groups.append(Given(*(np.concatenate(p, axis=-1) for p in zip(*parts, strict=True))))
    known = dense(X[:, model.shapes["coef"][1] :]).T  # an offset, and what is given of rows
    for n_nodes in numbers:
        pairs = zip(groups, of_groups, strict=True)
        rule = Rule.joined([group.with_predictors(each, n_nodes) for group, each in pairs])
        rule.outputs[:, 0] += known[:1].sum(axis=0)
        yield rule.beside(known[None, 1:]) if model.n_given else rule


def _tolerance(level: float) -> float:
    """Of the probability below a quantile, under two rules: the finer one may be off as well."""
    return 0.25 * min(_PROMISED, _OF_OUTSIDE * 2 * min(level, 1 - level))


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
                rest = np.einsum("ksn,sn->kn", rule.last, values)
                stand[known] &= (np.abs(rest) < _LAST).all(axis=0)
    return stand


# -- Gauss rules ------------------------------------------------------------------------------


class Given(NamedTuple):
    """Numbers given d scores: a mean that is quadratic in them, and residuals scale times z.

    The logarithm of the scale is linear in the scores. It has the slopes with which squares of the
    residuals have their covariance with the scores, if these are normal. z has a Gauss rule.
    """

    coef: NDArray
    """(terms, n), of the mean"""
    slopes: NDArray
    """(d, n), of the logarithm of the scale"""
    scale: NDArray
    """(n,), where the scores are 0"""
    jacobi: NDArray
    """(k, k, n), or (k, k, 1), of the polynomials that are orthogonal with respect to draws of z"""

    @classmethod
    def normal(cls, coef: NDArray, scale: NDArray, scores: NDArray, n_nodes: int) -> Given:
        """With normal residuals of this scale, whatever the scores: nodes of Gauss and Hermite."""
        beside = np.sqrt(np.arange(1.0, n_nodes))
        jacobi = np.diag(beside, 1) + np.diag(beside, -1)
        return cls(coef, np.zeros((scores.shape[1], len(scale))), scale, jacobi[..., None])

    @classmethod
    def of(
        cls, coef: NDArray, rest: NDArray, scores: NDArray, weights: NDArray, n_nodes: int
    ) -> Given:
        """Of residuals `rest` (n, draws) under scores (draws, d)."""
        z, slopes, scale = standardised(rest, scores, weights)
        power = z * np.sqrt(weights).astype(z.dtype)  # times the root of weights
        moments = np.ones((2 * n_nodes, len(z)))
        moments[1] = z @ weights.astype(z.dtype)
        for k in range(1, n_nodes):
            moments[2 * k], below = np.vecdot(power, power), power
            power = power * z
            moments[2 * k + 1] = np.vecdot(below, power)
        return cls(coef, slopes, scale, jacobi_of(moments))

    def at(self, scores: NDArray, n_nodes: int) -> tuple[NDArray, NDArray, NDArray]:
        """Under some scores (m, d): the numbers (m, k, n), z (k, n), and weights at each z.

        Nodes are the eigenvalues of the Jacobi matrix, and weights the squares of the first entries
        of its eigenvectors (Golub & Welsch 1969). Times the j-th orthogonal polynomial, weights are
        the products of first and j-th entries: they are (k polynomials, k, n).
        """
        z, vectors = np.linalg.eigh(np.moveaxis(self.jacobi[:n_nodes, :n_nodes], -1, 0))
        scale = self.scale * np.exp(scores @ self.slopes)
        values = (_quadratic(scores) @ self.coef)[:, None] + scale[:, None] * z.T
        along = np.swapaxes(vectors[:, :1] * vectors, 0, 1).swapaxes(1, 2)
        return values, z.T, np.broadcast_to(along, (*along.shape[:2], values.shape[-1]))


def _quadratic(scores: NDArray) -> NDArray:
    """1, each score, and the products of two, (m, terms)."""
    first, second = np.triu_indices(scores.shape[1])
    return np.column_stack([np.ones(len(scores)), scores, scores[:, first] * scores[:, second]])


def _regressed(values: NDArray, scores: NDArray, weights: NDArray) -> tuple[NDArray, NDArray]:
    """Coefficients (terms, .) of draws (draws, .) on quadratic terms of scores, and residuals."""
    terms, root = _quadratic(scores), np.sqrt(weights)[:, None]
    coef = (np.linalg.pinv(root * terms) * root.T) @ values
    return coef, values - terms @ coef


def standardised(
    rest: NDArray, scores: NDArray, weights: NDArray
) -> tuple[NDArray, NDArray, NDArray]:
    """Residuals (n, draws) over their scales: z (n, draws), slopes (d, n) and scale at 0 (n,).

    z is in single precision: numbers of size 1 have digits to spare, and each array is read and
    written in half of the time.
    """
    scale = np.sqrt(np.square(rest, out=np.empty_like(rest)) @ weights)
    z = np.empty(rest.shape, np.float32)
    over = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
    np.multiply(rest, over[:, None], out=z, casting="same_kind")
    if not scores.shape[1]:
        return z, np.zeros((0, len(z))), scale
    single = scores.astype(z.dtype)
    slopes = 0.5 * (z * z) @ (weights.astype(z.dtype)[:, None] * single)
    factor = -slopes @ single.T
    z *= np.exp(factor, out=factor)
    return z, slopes.T.astype(np.float64), scale


def jacobi_of(moments: NDArray) -> NDArray:
    """Jacobi matrices (k, k, n) of distributions with 2 k moments (2 k, n).

    They are those of the recurrence of orthogonal polynomials, by Chebyshev's algorithm (Gautschi
    2004, section 2.1.7). Where a distribution has fewer numbers than nodes, nothing but rounding is
    left for further entries, and they are 0.
    """
    n_nodes, n_rows = len(moments) // 2, moments.shape[1]
    jacobi = np.zeros((n_nodes, n_nodes, n_rows))
    before, here, square = np.zeros_like(moments), moments, np.zeros(n_rows)
    jacobi[0, 0] = centre = slope = here[1] / here[0]
    for k in range(1, n_nodes):
        after, of = np.zeros_like(moments), slice(k, 2 * n_nodes - k)
        after[of] = here[k + 1 : 2 * n_nodes - k + 1] - centre * here[of] - square * before[of]
        square = after[k] / here[k - 1]
        is_left = square > _LEAST_SQUARE
        square = np.where(is_left, square, 0.0)
        after[:, ~is_left] = 0
        after[k, ~is_left] = 1.0
        next_slope = after[k + 1] / after[k]
        centre, slope = next_slope - slope, next_slope
        jacobi[k, k] = centre
        jacobi[k, k - 1] = jacobi[k - 1, k] = np.sqrt(square)
        before, here = here, after
    return jacobi


class SharedParameters(NamedTuple):
    """Nodes of the d parameters that all rows share, on which predictors depend, of some draws."""

    draws: NDArray
    """(m,): their numbers"""
    draw_weights: NDArray
    """(m,), with the sum 1"""
    scores: NDArray
    """(m, d): of the parameters, each standardised given those before it"""
    nodes: NDArray
    """(nodes, d), of the scores"""
    values: NDArray
    """(nodes, d), of the parameters"""
    weights: NDArray
    """(nodes,), with the share of the draws as their sum"""

    @classmethod
    def of(cls, own: NDArray, weights: NDArray, draws: NDArray, n_nodes: int) -> SharedParameters:
        """Of draws (all, d): one parameter after another, given those before it."""
        share, own = weights[draws].sum(), own[draws]
        weights = weights[draws] / share
        scores, nodes, values, each = own[:, :0], np.zeros((1, 0)), np.zeros((1, 0)), np.ones(1)
        for column in own.T:
            coef, rest = _regressed(column[:, None], scores, weights)
            given = Given.of(coef, rest.T, scores, weights, n_nodes)
            value, z, along = (part[..., 0] for part in given.at(nodes, n_nodes))
            scores = np.column_stack([scores, standardised(rest.T, scores, weights)[0][0]])
            nodes, values = (np.repeat(before, n_nodes, axis=0) for before in (nodes, values))
            nodes = np.column_stack([nodes, np.tile(z, len(each))])
            values, each = (
                np.column_stack([values, value.ravel()]),
                np.outer(each, along[0]).ravel(),
            )
        return cls(draws, weights, scores, nodes, values, share * each)

    @classmethod
    def groups(cls, own: NDArray, weights: NDArray, n_halvings: int) -> list[SharedParameters]:
        """Of halves of halves of draws (draws, d), by their scores in turn."""
        n_nodes = max(4 - own.shape[1] - n_halvings, 2)
        draws = [np.arange(len(own))]
        scores = cls.of(own, weights, draws[0], n_nodes).scores
        for k in range(n_halvings):
            by = scores[:, k % own.shape[1]]
            order = [group[np.argsort(by[group], kind="stable")] for group in draws]
            draws = [half for group in order for half in np.array_split(group, 2)]
        return [cls.of(own, weights, group, n_nodes) for group in draws]

    def with_predictors(self, predictors: Given, n_nodes: int) -> Rule:
        """A rule for each row."""
        etas, _, along = predictors.at(self.nodes, n_nodes)
        n_shared, d = self.values.shape
        outputs = np.empty((n_shared, n_nodes, 1 + d, etas.shape[-1]))
        outputs[:, :, 0] = etas
        outputs[:, :, 1:] = self.values[:, None, :, None]
        each = (self.weights[:, None, None] * along[:, None]).reshape(n_nodes, -1, etas.shape[-1])
        return Rule(outputs.reshape(-1, *outputs.shape[2:]), each[0], each[-2:])


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
        at = np.clip(np.nan_to_num(ndtri(below), nan=_FARTHEST), -_FARTHEST, _FARTHEST)
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
        off = np.abs(below - q[left]) / (2 * np.minimum(q[left], 1 - q[left]))
        is_found = (off <= _OF_AN_END) & (not model.counts)
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
