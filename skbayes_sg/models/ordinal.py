"""Ordinal regression: cumulative logits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import exprel, log_expit, logit

from skbayes_sg.models.base import Classification
from skbayes_sg.models.predictor import Family, once
from skbayes_sg.models.softmax import sigmoid


class Ordinal(Family, Classification):
    """``log(P(y <= k) / P(y > k)) = cut_k - coef . x`` for ordered classes k = 0, ..., K - 1.

    The intercept is minus the middle cut point, the lower one of two, and the others follow on both
    sides at gaps ``g = exp(a)``, so they are always in order (McCullagh 1980). From the end of the
    order the intercept would be the sum of gaps that no row may know. The likelihood of a row
    between two of them factors,

        P(y = k) = sigmoid(upper - eta) sigmoid(eta - lower) (1 - exp(lower - upper)),

    and no difference of nearly equal numbers is taken.

    Parameters
    ----------
    n_features : int
    ranks : array of shape (K,)
        Place in the order, from 0, of each class of the estimator, which sorts them by their names.
    fit_intercept : bool, default=True
    """

    canonical = False
    ratio = "odds_ratio"

    def __init__(self, n_features: int, ranks: NDArray, fit_intercept: bool = True) -> None:
        self.ranks, self.n_classes = ranks, len(ranks)
        self._middle = (self.n_classes - 2) // 2
        self.own = tuple(f"log_gap_{k}" for k in range(1, self.n_classes - 1))
        self.own_mean = (0.0,) * len(self.own)
        self.own_sd = (2.0,) * len(self.own)  # of the log of a gap: from a 50th to fifty logits
        super().__init__(n_features, fit_intercept)
        self.has_other_curvature = self.n_classes > 2  # of two classes it is logistic regression

    def guess(self, y: NDArray, weight: NDArray | None, known: NDArray | None = None) -> NDArray:
        """The cut points under which classes have their shares, as if each had half a row more."""
        shares = np.bincount(y, weight, self.n_classes) + 0.5
        cuts = logit(np.cumsum(shares)[:-1] / shares.sum())
        theta = np.zeros((1, self.dim))
        theta[0, self.dim - len(self.own) :] = np.log(np.diff(cuts))
        if self.fit_intercept:
            theta[0, self._n_coef] = -cuts[self._middle]
            if known is not None:
                theta[0, self._n_coef] -= np.average(known[:, 0], weights=weight)
        return theta

    def thresholds(self, draws: NDArray, intercepts: NDArray) -> NDArray:
        """Cut points (., ., K - 1) of draws (., ., D) that have these intercepts."""
        gaps = np.exp(draws[..., self.dim - len(self.own) : self.dim, None])
        return self._inner_cuts(gaps)[..., 0] - intercepts[..., None]

    # -- the family ---------------------------------------------------------------------------

    def value(self, outputs: NDArray, y: NDArray) -> NDArray:
        eta, gaps = outputs[:, 0], self._gaps(outputs)
        upper, lower = (_of_class(cuts, y) for cuts in self._cuts(gaps))
        within = _of_class(self._log_within(outputs, gaps), y)
        return log_expit(upper - eta) + log_expit(eta - lower) + within

    def residual(self, outputs: NDArray, y: NDArray) -> NDArray:
        """sigmoid(lower - eta) - sigmoid(eta - upper); and of log gap j of a row of class k

        g_j (s_k sigmoid(eta - upper) - s_(k - 1) sigmoid(lower - eta) + [j = k] / (e^g_j - 1))

        where s_k is 1 if gap j is between the middle and cut k above it, -1 below, and 0 elsewhere.
        """
        gaps = self._gaps(outputs)
        above, below = self._tails(outputs, gaps, y)
        of_upper, of_lower, between = self._signs(y)
        of_gaps = gaps * (of_upper * above[:, None] - of_lower * below[:, None])
        of_gaps += between / exprel(gaps)
        return np.concatenate([(below - above)[:, None], of_gaps], axis=1)

    def expected(self, outputs: NDArray) -> NDArray:
        """Outer products of residuals, in the mean over the classes."""
        total, n = 0.0, outputs.shape[-1]
        for k in range(self.n_classes):
            y = np.full(n, k)
            root = np.exp(0.5 * self.value(outputs, y))[:, None] * self.residual(outputs, y)
            total = total + root[:, :, None] * root[:, None]
        return np.asarray(total)

    def observed_at(self, outputs: NDArray, y: NDArray) -> NDArray:
        """Information, as of two logistic regressions, of y above either cut, and of the gap."""
        gaps = self._gaps(outputs)
        above, below = self._tails(outputs, gaps, y)
        of_upper, of_lower, between = self._signs(y)
        along = -np.ones_like(outputs)
        information = np.zeros((*outputs.shape[:2], *outputs.shape[1:]))
        for tail, sign in ((above, of_upper), (below, of_lower)):
            along[:, 1:] = gaps * sign
            information += (tail * (1 - tail))[:, None, None] * along[:, :, None] * along[:, None]
        bend = between * (np.exp(-0.5 * gaps) / exprel(-gaps)) ** 2  # (g / (2 sinh(g / 2)))^2
        own = np.arange(1, outputs.shape[1])
        information[:, own, own] += bend - self.residual(outputs, y)[:, 1:]
        return information

    @staticmethod
    def _gaps(outputs: NDArray) -> NDArray:
        """(chains, K - 2, n), or (chains, K - 2, 1) where they are the same for all rows."""
        return np.exp(once(outputs[:, 1:]))

    @staticmethod
    def _log_within(outputs: NDArray, gaps: NDArray) -> NDArray:
        """log(1 - exp(-g)) of each class, 0 at the ends; also where g itself is rounded to 0."""
        inner = outputs[:, 1:, : gaps.shape[-1]] + np.log(exprel(-gaps))
        return np.pad(inner, ((0, 0), (1, 1), (0, 0)))

    def _tails(self, outputs: NDArray, gaps: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
        """Probabilities of a class above the upper cut point, and below the lower one."""
        upper, lower = (_of_class(cuts, y) for cuts in self._cuts(gaps))
        return sigmoid(outputs[:, 0] - upper), sigmoid(lower - outputs[:, 0])

    def _signs(self, y: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Signs of gaps in the upper cut point of a class and in the lower one; the gap between.

        (K - 2, n)
        """
        gap = np.arange(1, self.n_classes - 1)[:, None]
        y, is_below = y[..., None, :], (gap <= self._middle).astype(int)
        return (gap <= y) - is_below, (gap < y) - is_below, gap == y

    def _inner_cuts(self, gaps: NDArray) -> NDArray:
        """Cut points less the middle one, (..., K - 1, .), of gaps (..., K - 2, .)."""
        first = np.zeros_like(gaps, shape=(*gaps.shape[:-2], 1, gaps.shape[-1]))
        from_first = np.cumsum(np.concatenate([first, gaps], axis=-2), axis=-2)
        return from_first - from_first[..., [self._middle], :]

    def _cuts(self, gaps: NDArray) -> tuple[NDArray, NDArray]:
        """Upper and lower ends of the classes on the scale of eta, (chains, K, .) each."""
        inner = self._inner_cuts(gaps)
        end = np.full_like(inner[:, :1], np.inf)
        return np.concatenate([inner, end], axis=1), np.concatenate([-end, inner], axis=1)

    # -- classes ------------------------------------------------------------------------------

    def encode(self, codes: NDArray, dtype: np.dtype) -> NDArray:
        """The places of the classes."""
        return self.ranks[codes]

    def predict(self, theta: NDArray, X: NDArray) -> NDArray:
        """Class probabilities (chains, classes, n); for two classes that of the second class."""
        p = np.exp(self.log_predict(theta, X))
        return p[:, 1:] if self.n_classes == 2 else p

    def log_predict(self, theta: NDArray, X: NDArray) -> NDArray:
        # log(1 - exp(-g)) of a wide gap is a sum of logarithms, which may round above 0
        return np.minimum(self._log_of_places(theta, X)[:, self.ranks], 0.0)

    def _log_of_places(self, theta: NDArray, X: NDArray) -> NDArray:
        """Logarithms of the probabilities of the classes in their order, (chains, K, n)."""
        outputs = self.outputs(theta, X)
        gaps = self._gaps(outputs)
        upper, lower = self._cuts(gaps)
        eta, within = outputs[:, :1], self._log_within(outputs, gaps)
        return log_expit(upper - eta) + log_expit(eta - lower) + within

    def is_right(self, theta: NDArray, X: NDArray, y: NDArray) -> NDArray:
        """Whether the class of each row is the likeliest one, at one theta (1, D), (n,)."""
        return self._log_of_places(theta, X)[0].argmax(axis=0) == y


def _of_class(table: NDArray, y: NDArray) -> NDArray:
    """Entries (chains, n) of the classes y from a table (chains, K, n) or (chains, K, 1)."""
    y = y.astype(np.intp, copy=False)  # a pool has them in the precision of X
    if table.shape[-1] == 1 and y.ndim == 1:
        return table[..., 0].take(y, axis=1)
    table = np.broadcast_to(table, (*table.shape[:2], y.shape[-1]))
    classes = np.broadcast_to(y, (len(table), y.shape[-1]))[:, None]
    return np.take_along_axis(table, classes, axis=1)[:, 0]
