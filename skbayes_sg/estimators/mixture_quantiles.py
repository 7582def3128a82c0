"""Quantiles of mixtures over draws: Gauss rules of few nodes, and all draws where they differ.

Source: math/monte_carlo.md#predictive-quantiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize.elementwise import find_root
from scipy.special import ndtri

from skbayes_sg.data import row_blocks
from skbayes_sg.estimators.mixture_predictions import Mixture, outputs_of
from skbayes_sg.linalg.scores import dense
from skbayes_sg.linalg.sizes import elements_at_a_time
from skbayes_sg.models.base import Response
from skbayes_sg.models.predictor import Predictor

_RULES = ((2, 1), (4, 3), (8, 4))
"""Nodes under each group of draws, and halvings of all draws to groups"""
_BLOCK_BYTES = 1 << 20  # of outputs, which stay in the cache while a rule is made of them
_AGREED = 0.003  # of the probability outside a central interval, between two rules
_OF_AN_END = 1e-5  # relative error of the probability outside a central interval
_OF_WIDTH = 1e-9  # no closer are jumps of a distribution function found
_NEAR = 0.02  # of the width: about what quantiles under two rules differ by
_SMALLEST = np.finfo(np.float64).smallest_subnormal
_LARGEST = np.finfo(np.float64).max / 2  # differences of such numbers do not overflow


class Rule(NamedTuple):
    """A rule for means over each row's mixture: outputs of the model, and their weights."""

    outputs: NDArray
    """(nodes, outputs, n)"""
    weights: NDArray
    """(nodes, n)"""

    @classmethod
    def joined(cls, rules: Sequence[Rule], axis: int) -> Rule:
        """Rules of blocks of nodes (0) or of rows (-1) as one."""
        return cls(*(np.concatenate(parts, axis=axis) for parts in zip(*rules, strict=True)))

    @property
    def n_rows(self) -> int:
        return self.weights.shape[1]

    def of(self, rows: Any) -> Rule:
        """That of some rows."""
        return Rule(self.outputs[..., rows], self.weights[:, rows])

    def beside(self, given: NDArray) -> Rule:
        """With further outputs (1, ., n) that no draw moves."""
        given = np.broadcast_to(given, (len(self.outputs), *given.shape[1:]))
        return Rule(np.concatenate([self.outputs, given], axis=1), self.weights)

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
    quantile stands where a coarser rule agrees about its probability. Rows where the two differ, as
    those so far from the rows of the fit that their means vary as much as y does, get more nodes,
    and in the end all draws. So do all rows of a model that is no function of one predictor.
    """
    model, X, draws, weights, _ = mixture
    is_of_one_predictor = isinstance(model, Predictor) and model.shapes["coef"][0] == 1
    if not is_of_one_predictor:
        return _under_all_draws(mixture, levels)
    ends, widths = np.full((X.shape[0], len(levels)), np.nan), np.empty(X.shape[0])
    first = model.outputs(draws, X[:1])
    n_own = first.shape[1] - model.n_given  # numbers of each row follow, the same under all draws
    own = first[:, 1:n_own, 0]
    left = np.arange(X.shape[0])
    for n_nodes, n_halvings in _RULES:
        if 4 * n_nodes << n_halvings >= len(draws):  # a rule takes longer than it saves
            break
        shared = SharedParameters.of(own, weights, n_halvings)
        size = 8 * n_nodes * len(shared.groups) * model.widest * len(levels)
        agreed = np.zeros(len(left), bool)
        for block in row_blocks(len(left), size, 8 * elements_at_a_time()):
            rows = left[block]
            each = [
                gauss_rules(outputs[:, 0], weights, shared, n_nodes)
                for outputs in outputs_of(model, X[rows], draws, _BLOCK_BYTES)
            ]
            fine, coarse = (Rule.joined(rules, -1) for rules in zip(*each, strict=True))
            if model.n_given:
                given = model.outputs(draws[:1], dense(X[rows]))[:, n_own:]
                fine, coarse = (rule.beside(given) for rule in (fine, coarse))
            ends[rows] = found = inverted(model, fine, levels, ends[rows])
            widths[rows] = fine.mean(model.width(fine.outputs))
            agreed[block] = _agree(model, fine, coarse, found, levels)
        left = left[~agreed]
    if len(left):
        of_left = mixture._replace(X=X[left])
        ends[left], widths[left] = _under_all_draws(of_left, levels, ends[left])
    return ends, widths


def _under_all_draws(
    mixture: Mixture, levels: NDArray, near: NDArray | None = None
) -> tuple[NDArray, NDArray]:
    model, X, draws, weights, _ = mixture
    ends, widths, stop = [], [], 0
    for outputs in outputs_of(model, X, draws):
        start, stop = stop, stop + outputs.shape[2]
        rule = Rule(outputs, np.broadcast_to(weights[:, None], (len(draws), stop - start)))
        ends.append(inverted(model, rule, levels, None if near is None else near[start:stop]))
        widths.append(rule.mean(model.width(outputs)))
    return np.concatenate(ends), np.concatenate(widths)


# -- Gauss rules ------------------------------------------------------------------------------


class SharedParameters(NamedTuple):
    """Groups of draws with like values of the d parameters that all rows share."""

    groups: list[NDArray]
    """numbers of the draws of each"""
    values: NDArray
    """(groups, d): of each group, with the mean and variances of all draws"""
    coarse: NDArray
    """(groups, d): the same of half as many groups"""

    @classmethod
    def of(cls, values: NDArray, weights: NDArray, n_halvings: int) -> SharedParameters:
        """Halves of halves of the draws, along their principal axes in turn.

        The means of groups vary less than the draws. They are spread out along each axis, so that
        their variance is that of all draws.
        """
        mean = weights @ values
        centred = values - mean
        variance, axes = np.linalg.eigh(centred.T @ (weights[:, None] * centred))
        along = (centred @ axes)[:, ::-1]  # the widest first
        groups, found = [np.arange(len(values))], [np.zeros((1, values.shape[1]))]
        for halving in range(n_halvings if values.shape[1] else 0):
            axis = halving % values.shape[1]
            order = [group[np.argsort(along[group, axis], kind="stable")] for group in groups]
            groups = [half for group in order for half in np.array_split(group, 2)]
            share = np.array([weights[group].sum() for group in groups])
            each = np.array([weights[group] @ along[group] for group in groups]) / share[:, None]
            between = share @ each**2
            wider = np.divide(variance[::-1], between, out=np.ones_like(between), where=between > 0)
            found.append(each * np.sqrt(np.where(wider < 4, wider, 1.0)))
        back = [mean + each @ axes[:, ::-1].T for each in found]
        coarse = np.repeat(back[-2], 2, axis=0) if len(back) > 1 else back[-1]
        return cls(groups, back[-1], coarse)


def gauss_rules(
    eta: NDArray, weights: NDArray, shared: SharedParameters, n_nodes: int
) -> tuple[Rule, Rule]:
    """A rule for each row, whose predictor has the draws `eta` (draws, n), and a coarser one.

    Under each group of draws the polynomials that are orthogonal with respect to its draws are
    found one after another (Stieltjes' procedure). Nodes are the eigenvalues of the Jacobi matrix
    of their recurrence, and weights the squares of the first entries of its eigenvectors (Golub &
    Welsch 1969). The coarser rule has a node less, and half of the groups.
    """
    n = eta.shape[1]
    fine, coarse = list[Rule](), list[Rule]()
    for number, group in enumerate(shared.groups):
        share = weights[group].sum()
        each = eta[group]
        mean = weights[group] / share @ each
        each -= mean
        sd = np.sqrt(weights[group] / share @ (each * each))
        # What follows is in single precision. It has digits to spare for nodes of numbers of size
        # 1, and each array is read and written in half of the time.
        each *= np.divide(1, sd, out=np.zeros(n), where=sd > 0)
        z = each.astype(np.float32)
        below = np.sqrt(weights[group] / share).astype(np.float32)[:, None]
        p, size = z * below, np.ones(n, np.float32)
        jacobi = np.zeros((n, n_nodes, n_nodes))
        jacobi[:, 0, 1] = jacobi[:, 1, 0] = sd > 0
        for k in range(1, n_nodes):
            along = z * p
            centre = np.einsum("sn,sn->n", along, p)
            jacobi[:, k, k] = centre
            if k + 1 < n_nodes:
                along -= centre * p
                along -= size * below
                size = np.sqrt(np.einsum("sn,sn->n", along, along))
                size[size < 1e-3] = 0  # rounding is left of as few different draws as nodes
                along *= np.divide(1, size, out=np.zeros_like(size), where=size > 0)
                jacobi[:, k, k + 1] = jacobi[:, k + 1, k] = size
                below, p = p, along
        for rules, values, m in (
            (fine, shared.values, n_nodes),
            (coarse, shared.coarse, n_nodes - 1),
        ):
            nodes, vectors = np.linalg.eigh(jacobi[:, :m, :m])
            outputs = np.empty((m, 1 + values.shape[1], n))
            outputs[:, 0] = mean + sd * nodes.T
            outputs[:, 1:] = values[number][:, None]
            rules.append(Rule(outputs, share * vectors[:, 0].T ** 2))
    return Rule.joined(fine, 0), Rule.joined(coarse, 0)


def _agree(model: Response, fine: Rule, coarse: Rule, ends: NDArray, levels: NDArray) -> NDArray:
    """Whether a coarser rule gives the ends (n, levels) of a row about the same probabilities."""
    agreed = np.isfinite(ends).all(axis=1)
    for end, level in zip(ends.T, levels, strict=True):
        p, q = (rule.mean(model.distribution(end, rule.outputs)) for rule in (fine, coarse))
        agreed &= np.abs(p - q) <= _AGREED * 2 * min(level, 1 - level)
    return agreed


# -- inversion --------------------------------------------------------------------------------


def inverted(model: Response, rule: Rule, levels: NDArray, near: NDArray | None = None) -> NDArray:
    """Quantiles (n, levels) of mixtures whose components and weights are those of a rule.

    They are found between two numbers, at first a width of the mixture on either side of the
    quantile of a normal distribution, or a fiftieth of that around quantiles `near` them. Of counts
    the search ends between two neighbours, and of other numbers at a distance that is nothing
    beside the width, since a distribution function may jump. Positive numbers are searched for on
    the log scale, where none of them over- or underflows.
    """
    scale = SearchScale.of(model, rule)
    rows, q = np.repeat(np.arange(rule.n_rows), len(levels)), np.tile(levels, rule.n_rows)
    least, most = scale.limits
    start, distance = scale.centre[rows] + scale.width[rows] * ndtri(q), scale.width[rows]
    if near is not None:
        from_near = scale.t(near.ravel(), rows)
        known = np.isfinite(from_near)
        start = np.where(known, from_near, start)
        distance = np.where(known, 0.0 if model.counts else _NEAR * distance, distance)

    def short_of(t: NDArray, rows: NDArray, q: NDArray) -> NDArray:
        some = rule.of(rows)
        below = some.mean(model.distribution(scale.y(t, rows), some.outputs))
        return (below - q) / (2 * np.minimum(q, 1 - q))

    def bracket(side: int) -> tuple[NDArray, NDArray]:
        """Numbers on one side of the quantiles, and the quantiles that are beyond the last."""
        t, left, step = np.empty(len(q)), np.arange(len(q)), distance.copy()
        if model.counts and side < 0:
            step += 1  # it is above the count before it
        beyond = np.zeros(len(q), bool)
        while len(left):
            t[left] = np.clip(start[left] + side * step[left], least, most)
            is_below = short_of(t[left], rows[left], q[left]) < 0
            wrong = is_below if side > 0 else ~is_below
            is_last = t[left] == (most if side > 0 else least)
            beyond[left[wrong & is_last]] = True
            left = left[wrong & ~is_last]
            step[left] = 2 * step[left] + model.counts
        return t, beyond

    (low, below), (high, above) = bracket(-1), bracket(1)
    t = high.copy()
    between = ~(below | above)
    if model.counts:
        between &= high - low > 1
    found = find_root(
        short_of,
        (low[between], high[between]),
        args=(rows[between], q[between]),
        tolerances={
            "xatol": 1.0 if model.counts else _OF_WIDTH,
            "xrtol": 4 * np.finfo(np.float64).eps,
            "fatol": 0.0 if model.counts else _OF_AN_END,
        },
    )
    t[between] = found.bracket[1] if model.counts else found.x
    ends = scale.y(np.floor(t) if model.counts else t, rows)
    ends[above], ends[below] = np.inf, 0.0 if model.log_link else -np.inf
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
