"""Binomial and beta-binomial regression: successes out of so many trials."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import (
    betainc,
    expit,
    gammaln,
    log_expit,
    logit,
    polygamma,
    psi,
    roots_hermitenorm,
)

from skbayes_sg.data.rows import Data
from skbayes_sg.linalg.scores import dense
from skbayes_sg.models.base import Response
from skbayes_sg.models.predictor import Family, once
from skbayes_sg.models.softmax import of_normal_logits

_COARSE = 20, 1, np.linspace(-3.3, 3.3, 7)  # cells of a metric
_TERMS = 32  # of a tail that are added up one by one
_NODES = 8  # of the rule for longer tails
_MOST = 80.0  # logits, from where on exponentials overflow in single precision
_TINY = 1e-12  # the least parameter of a Beta variable that can be drawn


class Binomial(Family, Response):
    """Successes y out of n trials, each with the probability ``p = sigmoid(eta)``.

    The trials of a row are the last of its outputs. Without them outputs are those of one trial,
    whose mean is the share of successes.
    """

    counts = True
    n_given = 1
    ratio = "odds_ratio"

    @classmethod
    def require_targets(cls, y: NDArray) -> None:
        if (y < 0).any():
            raise ValueError("y holds negative numbers, and it is how many of the trials succeeded")
        if (y != np.rint(y)).any():
            raise ValueError(
                "y holds numbers that are not whole, and it is how many of the trials succeeded; "
                "where y is a share, give y * trials"
            )

    @classmethod
    def require_together(cls, y: NDArray, known: NDArray) -> None:
        """Successes are no more than trials."""
        trials = known[:, -1]
        (wrong,) = np.nonzero(y > trials)
        if len(wrong):
            row = int(wrong[0])
            raise ValueError(
                f"y is larger than trials in {len(wrong)} row(s), the first of which has y = "
                f"{y[row]:g} of trials = {trials[row]:g}: y is how many of the trials succeeded"
            )

    def guess(self, y: NDArray, weight: NDArray | None, known: NDArray | None = None) -> NDArray:
        """The intercept under which y has its sum, as if there were one trial more, half of it a
        success.
        """
        theta = np.zeros((1, self.dim))
        theta[0, self.dim - len(self.own) :] = self.own_mean
        if self.fit_intercept and known is not None:
            weights = np.ones(len(y)) if weight is None else weight.astype(np.float64)
            offset, trials = known.T
            n = weights @ trials
            share = (weights @ y.astype(np.float64) + 0.5) / (n + 1)
            theta[0, self._n_coef] = logit(share) - (weights * trials) @ offset / n
        return theta

    # -- the distribution ----------------------------------------------------------------------

    def trials(self, outputs: NDArray) -> NDArray:
        """Trials of each row, (chains, n), or (1, n) where they are the same for all chains."""
        if outputs.shape[1] == self.widest:
            return np.ones((1, 1), outputs.dtype)
        trials = outputs[:, -1]
        return trials[:1] if (trials == trials[:1]).all() else trials

    def mean(self, outputs: NDArray) -> NDArray:
        return self.trials(outputs) * expit(outputs[:, 0])

    def mean_over(self, weights: NDArray, theta: NDArray, X: NDArray) -> NDArray:
        """The weighted sum by NumPy's exponential, which is faster than SciPy's `expit`."""
        if type(self).mean is not Binomial.mean:  # of a subclass with another mean
            return super().mean_over(weights, theta, X)
        p = self.eta(theta, X)
        np.negative(p, out=p)
        with np.errstate(over="ignore"):  # exp(-eta) = inf is probability 0
            np.exp(p, out=p)
        p += 1
        share = weights @ np.divide(1, p, out=p)
        has_trials = X.shape[1] > self.shapes["coef"][1] + 1
        return share * dense(X[:, -1:]).ravel() if has_trials else share

    def variance(self, outputs: NDArray) -> NDArray:
        return self.mean(outputs) * expit(-outputs[:, 0])

    def excess_kurtosis(self, outputs: NDArray) -> NDArray:
        """Excess kurtosis of y, (chains, n)."""
        between = expit(outputs[:, 0]) * expit(-outputs[:, 0])
        return (1 / between - 6) / self.trials(outputs)

    def value(self, outputs: NDArray, y: NDArray) -> NDArray:
        """y log p + (n - y) log(1 - p), and the number of ways to have y successes"""
        eta, n = outputs[:, 0], self.trials(outputs)
        return y * log_expit(eta) + (n - y) * log_expit(-eta) + log_ways(n, y)

    def residual(self, outputs: NDArray, y: NDArray) -> NDArray:
        """y - n p"""
        return (y - self.mean(outputs))[:, None]

    def expected(self, outputs: NDArray) -> NDArray:
        """n p (1 - p)"""
        return self.variance(outputs)[:, None, None]

    def observed_at(self, outputs: NDArray, y: NDArray) -> NDArray:
        return self.expected(outputs)

    def row_terms(
        self,
        theta: NDArray,
        root: NDArray | None,
        X: NDArray,
        y: NDArray,
        observed: bool = False,
    ) -> tuple[NDArray, NDArray]:
        """The terms of logistic regression, times the number of trials."""
        outputs = self.outputs(theta, X, np.float64)
        eta, n = outputs[0, 0], self.trials(outputs)[0]
        if root is None:
            p, slope = expit(eta), expit(eta) * expit(-eta)
        else:
            p, slope = of_normal_logits(eta, np.sqrt(self.output_variance(root, X)))
        return (y - n * p)[None], (n * slope)[None, None]

    def log_loss_moments(self, theta: NDArray, X: NDArray) -> tuple[NDArray, NDArray]:
        """Moments from cells of counts."""
        cells = self.cells(self.outputs(theta, X, np.float64))
        loss = -self.value(cells.outputs, cells.middle)[0].reshape(cells.mass.shape)
        mean = np.sum(cells.mass * loss, axis=0)
        return mean, np.sum(cells.mass * (loss - mean) ** 2, axis=0)

    def cells(self, outputs: NDArray, fine: bool = True) -> Cells:
        """The counts of each row under one chain's outputs, in some cells of neighbours.

        Cells are single counts of few trials, and at either end of many, where the distribution may
        be steep; from there they grow, but for those near the mean.
        """
        n_single, per_size, deviations = (50, 5, np.linspace(-5, 5, 21)) if fine else _COARSE
        mean, sd = self.mean(outputs)[0], self.width(outputs)[0]
        n = np.broadcast_to(self.trials(outputs)[0], mean.shape)
        most = n.max(initial=1)
        if most <= n_single:
            edges = np.arange(most + 2)[:, None]
        else:
            steps = np.rint(np.geomspace(1, most + 1, int(3 + per_size * np.log(most))))
            steps = np.append(0, np.unique(steps))[:, None]
            edges = np.concatenate([steps + 0 * n, n + 1 - steps, mean + deviations[:, None] * sd])
            edges = np.rint(edges)
        edges = np.sort(np.clip(edges, 0, n + 1), axis=0)
        counts = np.diff(edges, axis=0)
        middle = np.clip(np.floor(edges[:-1] + 0.5 * (counts - 1)), 0, n)
        repeated = np.tile(outputs, (1, 1, len(middle)))
        log_mass = self.value(repeated, middle.ravel())[0].reshape(middle.shape)
        mass = counts * np.exp(log_mass)
        return Cells(repeated, middle.ravel(), mass / mass.sum(axis=0))

    def distribution(self, y: NDArray, outputs: NDArray) -> NDArray:
        n, q, y = self.trials(outputs), expit(-outputs[:, 0]), np.floor(y)
        inside = np.clip(y, 0, n - 1)
        return np.where(y < 0, 0.0, np.where(y >= n, 1.0, betainc(n - inside, inside + 1, q)))

    def draw(self, outputs: NDArray, rng: np.random.Generator) -> NDArray:
        return rng.binomial(self.trials(outputs).astype(np.int64), expit(outputs[:, 0]))

    # -- expansion around an anchor: what remains of y is nothing -------------------------------

    def expand_rows(self, outputs: NDArray, y: NDArray) -> tuple[NDArray, ...]:
        """p, 1 - p and n."""
        eta, n = outputs[0, 0].astype(np.float64), self.trials(outputs)[0]
        return expit(eta), expit(-eta), np.broadcast_to(n, eta.shape)

    def difference(self, change: NDArray, at_anchor: tuple[NDArray, ...]) -> NDArray:
        """-n p q (e^c - 1) / (q + p e^c), without a difference of nearly equal numbers."""
        p, q, n = at_anchor
        return -n * p * q * _parts(change, p, q)[0]

    def remainder(self, change: NDArray, at_anchor: tuple[NDArray, ...]) -> NDArray:
        p, q, n = at_anchor
        return n * p * q * change + self.difference(change, at_anchor)

    def bregman_remainder(
        self, change: NDArray, at_anchor: tuple[NDArray, ...]
    ) -> tuple[NDArray, NDArray]:
        """-n (log(q + p e^c) - p c)"""
        p, q, n = at_anchor
        ratio, beyond = _parts(change, p, q)
        return (-n * beyond)[:, 0], -n * p * q * ratio


def _parts(change: NDArray, p: NDArray, q: NDArray) -> tuple[NDArray, NDArray]:
    """(e^c - 1) / (q + p e^c), and log(q + p e^c) - p c.

    The second is the same for failures, of which p and q, and c and -c change places. Both are
    computed for what is rarer of the two, whose numbers do not cancel.
    """
    sign = np.where(p <= q, 1, -1).astype(change.dtype)
    along, rarer = sign * change, np.minimum(p, q)
    growth = np.expm1(np.minimum(along, _MOST))
    grown = rarer * growth
    return sign * growth / (1 + grown), np.log1p(grown) + np.maximum(
        along - _MOST, 0
    ) - rarer * along


class Cells(NamedTuple):
    """Cells of counts of some rows."""

    outputs: NDArray
    """(1, outputs, cells x rows)"""
    middle: NDArray
    """(cells x rows,)"""
    mass: NDArray
    """(cells, rows)"""


class BetaBinomial(Binomial):
    """Successes y out of n trials whose probability varies from row to row.

    It is a Beta variable of mean ``p = sigmoid(eta)`` and variance ``rho p (1 - p)``, so that y has
    the variance ``n p (1 - p) (1 + (n - 1) rho)``. The correlation rho of two trials of a row is
    ``sigmoid(a)``. The parameters of the Beta variable are ``s p`` and ``s (1 - p)`` with
    ``s = 1 / rho - 1 = exp(-a)`` (Prentice 1986).
    """

    own = ("logit_correlation",)
    own_mean, own_sd = (-3.0,), (2.0,)
    canonical = False

    @classmethod
    def notices(cls, data: Data) -> list[str]:
        known = data.sample.known
        if known is None or (known[:, 1] > 1).any():
            return []
        return [
            "trials are 1 in all rows, and a row of one trial says nothing of how its probability "
            "varies: correlation_ is that of the prior; set overdispersed=False"
        ]

    def natural(self, name: str, block: NDArray) -> tuple[str, NDArray]:
        return ("correlation", expit(block)) if name == "logit_correlation" else (name, block)

    def variance(self, outputs: NDArray) -> NDArray:
        more = (self.trials(outputs) - 1) * expit(outputs[:, 1])
        return super().variance(outputs) * (1 + more)

    def value(self, outputs: NDArray, y: NDArray) -> NDArray:
        """log of (s p)_y (s q)_(n - y) / (s)_n, with rising factorials, and the number of ways"""
        eta, a, n = outputs[:, 0], once(outputs[:, 1]), self.trials(outputs)
        s = np.exp(-a)
        of_p, of_q = (
            _log_rising(log_expit(z) - a, s * expit(z), k) for z, k in ((eta, y), (-eta, n - y))
        )
        return of_p + of_q - _log_rising(-a, s, n) + log_ways(n, y)

    def residual(self, outputs: NDArray, y: NDArray) -> NDArray:
        """q A_p - p A_q, and A_s - A_p - A_q, with the slopes A of the logarithms of the factors"""
        p, q, (of_p, of_q, of_s) = self._terms(outputs, y, _slope)
        return np.stack([q * of_p - p * of_q, of_s - of_p - of_q], axis=1)

    def observed_at(self, outputs: NDArray, y: NDArray) -> NDArray:
        p, q, (of_p, of_q, of_s) = self._terms(outputs, y, _slope)
        _, _, (bend_p, bend_q, bend_s) = self._terms(outputs, y, _bend)
        of_eta = q * of_p - p * of_q
        information = np.empty((len(p), 2, 2, p.shape[-1]), p.dtype)
        information[:, 0, 0] = (p - q) * of_eta - q**2 * bend_p - p**2 * bend_q
        information[:, 0, 1] = information[:, 1, 0] = of_eta + q * bend_p - p * bend_q
        information[:, 1, 1] = of_s - of_p - of_q + bend_s - bend_p - bend_q
        return information

    def expected(self, outputs: NDArray) -> NDArray:
        """Outer products of residuals, in the mean over some cells of counts: only a metric."""
        matrices = np.empty((len(outputs), 2, 2, outputs.shape[-1]))
        for information, of_chain in zip(matrices, outputs, strict=True):
            cells = self.cells(of_chain[None].astype(np.float64, copy=False), fine=False)
            residual = self.residual(cells.outputs, cells.middle)[0].reshape(2, *cells.mass.shape)
            information[:] = np.einsum("kcn,lcn,cn->kln", residual, residual, cells.mass)
        return matrices

    def row_terms(
        self,
        theta: NDArray,
        root: NDArray | None,
        X: NDArray,
        y: NDArray,
        observed: bool = False,
    ) -> tuple[NDArray, NDArray]:
        """The metric is that at theta: cells under each node would take most of a fit."""
        if root is None or observed:
            return Family.row_terms(self, theta, root, X, y, observed)
        residual, _ = Family.row_terms(self, theta, root, X, y, observed=True)
        return residual, self.expected(self.outputs(theta, X, np.float64))[0]

    expand_rows, difference = Family.expand_rows, Family.difference
    remainder, bregman_remainder = Family.remainder, Family.bregman_remainder

    def _terms(
        self, outputs: NDArray, y: NDArray, term: Callable[[NDArray, NDArray], NDArray]
    ) -> tuple[NDArray, NDArray, tuple[NDArray, NDArray, NDArray]]:
        """p and q, and a term of each of the three rising factorials, of s p, s q and s."""
        eta, s, n = outputs[:, 0], np.exp(-once(outputs[:, 1])), self.trials(outputs)
        p, q = expit(eta), expit(-eta)
        return p, q, (term(s * p, y), term(s * q, n - y), term(s, n))

    def distribution(self, y: NDArray, outputs: NDArray) -> NDArray:
        """Sums of few terms, and elsewhere means over Beta variables.

        There are y successes or fewer if the y + 1st of n uniform variables, a Beta variable, is
        larger than the probability of the row, another one.
        """
        eta, a = outputs[:, 0], outputs[:, 1]
        n, y = np.broadcast_to(self.trials(outputs), eta.shape), np.floor(y)
        y = np.broadcast_to(y, eta.shape)
        probability = np.where(y < 0, 0.0, 1.0)
        inside = (y >= 0) & (y < n)
        few = np.minimum(y + 1, n - y) <= _TERMS
        for rows, function in ((inside & few, self._by_terms), (inside & ~few, _by_nodes)):
            if rows.any():
                probability[rows] = function(eta[rows], a[rows], n[rows], y[rows])
        return probability

    def _by_terms(self, eta: NDArray, a: NDArray, n: NDArray, y: NDArray) -> NDArray:
        """P(y or fewer), from the end that is nearer."""
        turned = y + 1 > n - y  # P(fewer than n - y failures), taken from 1
        eta, last = np.where(turned, -eta, eta), np.where(turned, n - y - 1, y)
        s, log_mass = np.exp(-a), self.value(np.stack([eta, a, n])[None], last)[0]
        alpha, beta, total = s * expit(eta), s * expit(-eta), np.exp(log_mass)
        for k in range(1, int(last.max(initial=0)) + 1):
            count = last - k  # from P(count + 1) to P(count)
            j = np.maximum(count, 0)
            of_alpha = np.where(j > 0, np.log(np.maximum(alpha + j, _TINY)), log_expit(eta) - a)
            log_mass = log_mass + np.log((j + 1) * (beta + n - j - 1) / (n - j)) - of_alpha
            total += np.where(count >= 0, np.exp(log_mass), 0.0)
        return np.where(turned, 1 - total, total)

    def draw(self, outputs: NDArray, rng: np.random.Generator) -> NDArray:
        eta, s = outputs[:, 0], np.exp(-outputs[:, 1])
        p = rng.beta(np.maximum(s * expit(eta), _TINY), np.maximum(s * expit(-eta), _TINY))
        return rng.binomial(self.trials(outputs).astype(np.int64), p)


def log_ways(n: NDArray, y: NDArray) -> NDArray:
    """Logarithm of the number of ways to have y successes in n trials."""
    return gammaln(n + 1) - gammaln(y + 1) - gammaln(n - y + 1)


# With x (x + 1) ... (x + k - 1) of a small x the first factor is taken apart.


def _log_rising(log_x: NDArray, x: NDArray, k: NDArray) -> NDArray:
    """Logarithm of x (x + 1) ... (x + k - 1)."""
    return np.where(k > 0, log_x + gammaln(x + np.maximum(k, 1)) - gammaln(x + 1), 0.0)


def _slope(x: NDArray, k: NDArray) -> NDArray:
    """x times its derivative."""
    return np.where(k > 0, 1 + x * (psi(x + np.maximum(k, 1)) - psi(x + 1)), 0.0)


def _bend(x: NDArray, k: NDArray) -> NDArray:
    """x^2 times its second derivative."""
    more = polygamma(1, x + np.maximum(k, 1)) - polygamma(1, x + 1)
    return np.where(k > 0, x**2 * more - 1, 0.0)


def _by_nodes(eta: NDArray, a: NDArray, n: NDArray, y: NDArray) -> NDArray:
    """P(y or fewer), (rows,): of the two Beta variables the narrower one has nodes."""
    s = np.exp(-a)
    alpha, beta, probability = s * expit(eta), s * expit(-eta), np.empty_like(eta)
    of_trials = 1 / (y + 1) + 1 / (n - y) <= 1 / alpha + 1 / beta
    for rows, first, second in ((of_trials, y + 1, n - y), (~of_trials, alpha, beta)):
        x, weights = _beta_nodes(first[rows], second[rows])
        if rows is of_trials:
            below = betainc(alpha[rows, None], beta[rows, None], x)
        else:
            below = betainc((n - y)[rows, None], (y + 1)[rows, None], 1 - x)
        probability[rows] = below @ weights
    return probability


def _beta_nodes(a: NDArray, b: NDArray) -> tuple[NDArray, NDArray]:
    """Nodes (rows, nodes) and weights for means over Beta variables, neither of a small parameter.

    The logit of one is nearly normal. Its cumulants are sums of those of the logarithms of two
    Gamma variables, and nodes of a normal variable go through the expansion of Cornish and Fisher.
    """
    z, weights = roots_hermitenorm(_NODES)
    of_a, of_b = _log_gamma_cumulants(a), _log_gamma_cumulants(b)
    signs = (-1, 1, -1, 1)
    mean, variance, third, fourth = (
        (cumulant + sign * other)[:, None]
        for cumulant, other, sign in zip(of_a, of_b, signs, strict=True)
    )
    sd = np.sqrt(variance)
    skewness, kurtosis = third / sd**3, fourth / variance**2
    beyond = skewness * (z**2 - 1) / 6 + kurtosis * (z**3 - 3 * z) / 24
    beyond = beyond - skewness**2 * (2 * z**3 - 5 * z) / 36
    return expit(mean + sd * (z + beyond)), weights / weights.sum()


def _log_gamma_cumulants(a: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Cumulants of the log of a Gamma variable, psi and its derivatives, for shapes not small."""
    r = 1 / a
    return (
        np.log(a) - r / 2 - r**2 / 12 + r**4 / 120,
        r + r**2 / 2 + r**3 / 6 - r**5 / 30,
        -(r**2) - r**3 - r**4 / 2,
        2 * r**3 + 3 * r**4 + 2 * r**5,
    )
