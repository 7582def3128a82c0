"""Minibatch gradients corrected by those at an anchor: the noise of a score becomes that of its change.

    gradient = G_a + (N/n) sum over the minibatch of [g_i(theta) - g_i(a)] + grad log prior

with the gradient G_a of all rows at the anchor a, near the posterior mean (MATH 9). Near the anchor the noise is
next to nothing, so the bound of one effective draw per pass (Mandt et al. 2017, section 5.2) does not hold.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skbayes_sg.linalg import Dense, Diag, Operator
from skbayes_sg.mode import pilot
from skbayes_sg.posterior import Posterior, Rows
from skbayes_sg.rows import Minibatches
from skbayes_sg.scores import Scores

_PROJECTIONS = 16
_EXACT_LEVERAGE = 1e9


class AnchoredPosterior(Posterior):
    """A posterior whose scores are differences from those at the anchor; the gradient stays unbiased.

    The residuals of all rows at the anchor are kept, so that a step costs no more than without. The chains of a
    group share their minibatches: each multiplies the noise by its own distance from the anchor, which
    leaves them uncorrelated.

    Parameters
    ----------
    posterior : Posterior
        Of a model whose scores are residuals times inputs that do not depend on theta.
    anchor : array of shape (1, D)
    curvature : Operator
        Model Fisher of all rows plus prior curvature, there.
    """

    shares_rows = True

    def __init__(self, posterior: Posterior, anchor: NDArray, curvature: Operator) -> None:
        self.__dict__.update(posterior.__dict__)
        self.anchor = anchor
        self.anchor_curvature = curvature
        self._residuals: list[NDArray] = []
        total = np.zeros((1, self.dim))
        for rows in self._blocks(None):
            scores = super().scores(anchor, rows)
            total += scores.total()
            self._keep(scores, rows)
        self._anchor_gradient = total * (self.n_total / self.n_rows)

    def with_prior(self, prior_precision: ArrayLike) -> AnchoredPosterior:
        """The same data and anchor under another prior; the noise stays that around the anchor."""
        other = super().with_prior(prior_precision)
        assert isinstance(other, AnchoredPosterior)
        old, new = self.prior.curvature(self.anchor), other.prior.curvature(self.anchor)
        other.anchor_curvature = self.anchor_curvature + Diag(new.values - old.values)
        return other

    def _keep(self, scores: Scores, rows: Rows) -> None:
        """Residuals of the distinct left factors, (k, N) each."""
        lefts = scores.lefts()
        if not self._residuals:
            self._residuals = [np.empty((*left.shape[1:-1], self.n_rows), left.dtype) for left in lefts]
        for kept, left in zip(self._residuals, lefts, strict=True):
            kept[..., rows] = left[0]

    def minibatches(self, batch_size: int, replace: bool, rng: np.random.Generator, n_chains: int) -> Minibatches:
        """One stream for all chains of the group."""
        return Minibatches(self.n_rows, batch_size, replace, rng, 1, self.n_total, shared=True)

    def scores(self, theta: NDArray, rows: Rows) -> Scores:
        """Scores at theta minus those at the anchor."""
        return super().scores(theta, rows).minus([kept[..., rows] for kept in self._residuals])

    def gradient(self, theta: NDArray, scores: Scores) -> NDArray:
        gradient = super().gradient(theta, scores)
        gradient += self._anchor_gradient
        return gradient

    def full_gradient(self, theta: NDArray) -> NDArray:
        return super().full_gradient(theta) + self._anchor_gradient

    @cached_property
    def noise(self) -> Operator:
        """Covariance of one row's change of score, (D, D), in the mean over the Laplace approximation.

        The mean over the posterior is what keeps its second moments where they are (MATH 2). From points that
        stand for it and up to 50,000 rows, the same ones every time: a choice made by it does not
        depend on the seed of the chains.
        """
        theta, blocks = pilot(self, self.anchor, self.anchor_curvature)
        total, moment = np.zeros_like(theta), Dense(np.zeros((self.dim, self.dim)))
        n_rows = sum(len(block) for block in blocks)
        for block in blocks:
            scores = self.scores(theta, block)
            total += scores.total()
            moment = moment + scores.pooled().moment("full")
        mean = total / n_rows
        return (moment * (1.0 / n_rows) + Dense(-(mean.T @ mean))) * (1.0 / len(theta))

    def noise_number(self) -> float:
        """kappa = n Tr(Lam^-1 M) / D, noise over curvature in minibatches of one row: D + 1 for Gaussian rows."""
        share = np.sum(self.anchor_curvature.inverse().dense() * self.noise.dense()) / self.dim
        return float(self.n_total**2 * share)

    def largest_row(self) -> float:
        """N times the largest leverage: how much a row weighs in the curvature, the average one being D.

        A row that enters a minibatch counts N/n times, and must not throw the chain far beyond the mode. Exact, or
        from 16 random projections of each row, good to a third, where that would take more than a second.
        """
        sketch = self.anchor_curvature.inverse().cholesky().dense()
        if self.n_rows * self.dim**2 > _EXACT_LEVERAGE:
            rng = np.random.default_rng(0)
            sketch = sketch @ (rng.standard_normal((self.dim, _PROJECTIONS)) / np.sqrt(_PROJECTIONS))
        largest = 0.0
        for rows in self._blocks(None):
            root = self.fisher(self.anchor, rows)
            projected = root.rows() @ sketch.astype(root.factors[0].left.dtype)
            largest = max(largest, float(np.einsum("ij,ij->i", projected, projected).max()))
        return self.n_total * largest
