"""Control variates: minibatch gradients corrected by those at an anchor.

    gradient = G_a + (N/n) sum over the minibatch of [g_i(theta) - g_i(a)] + grad log prior

G_a is the gradient of all rows at the anchor a, a point near the posterior mean
(math.md#control-variates). The noise is that of the differences g_i(theta) - g_i(a), which are
small near the anchor. So the bound of one effective draw per pass (Mandt et al. 2017, section 5.2)
does not hold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.anchor import Mode, laplace_points
from skbayes_sg.layouts import FULL
from skbayes_sg.linalg import Dense, Diag, Operator
from skbayes_sg.posterior import Posterior
from skbayes_sg.priors import Prior
from skbayes_sg.rows import Minibatches, Rows
from skbayes_sg.scores import Scores

_PROJECTIONS = 16
_EXACT_LEVERAGE = 1e9


class Differences:
    """Scores minus those at an anchor, and their noise before any step.

    The residuals of all rows at the anchor are kept, so that a difference costs no more than a
    score.

    Parameters
    ----------
    posterior : Posterior
        Of a model with `fixed_inputs`.
    mode : Mode
        The anchor, with the curvature of the posterior there.

    Attributes
    ----------
    gradient : array of shape (1, D)
        Of the log likelihood of all rows at the anchor.
    """

    def __init__(self, posterior: Posterior, mode: Mode) -> None:
        self.posterior = posterior
        self.mode = mode
        self._residuals: list[NDArray] = []
        total = np.zeros((1, posterior.dim))
        for rows in posterior.data.blocks(posterior.model.row_size):
            scores = posterior.scores(mode.theta, rows)
            total += scores.total()
            self._keep(scores, rows)
        self.gradient = total * (posterior.n_total / posterior.n_rows)

    def _keep(self, scores: Scores, rows: Rows) -> None:
        """Residuals of the distinct left factors, (k, N) each."""
        lefts = scores.lefts()
        if not self._residuals:
            n_rows = self.posterior.n_rows
            self._residuals = [np.empty((*left.shape[1:-1], n_rows), left.dtype) for left in lefts]
        for kept, left in zip(self._residuals, lefts, strict=True):
            kept[..., rows] = left[0]

    def scores(self, theta: NDArray, rows: Rows) -> Scores:
        """Scores at theta minus those at the anchor."""
        at_anchor = [kept[..., rows] for kept in self._residuals]
        return self.posterior.scores(theta, rows).minus(at_anchor)

    @cached_property
    def noise(self) -> Operator:
        """Covariance of one row's difference, (D, D), in the mean over the Laplace approximation.

        A step with the mean noise keeps the second moments of the posterior (math.md#mean-noise).
        The mean is taken over the points and rows of `laplace_points`. They are the same at every
        call, so a choice based on it does not depend on the seed of the chains.
        """
        theta, blocks = laplace_points(self.posterior, self.mode)
        dim, n_rows = self.posterior.dim, sum(len(block) for block in blocks)
        total, moment = np.zeros_like(theta), Dense(np.zeros((dim, dim)))
        for block in blocks:
            scores = self.scores(theta, block)
            total += scores.total()
            moment = moment + scores.pooled().moment(FULL)
        mean = total / n_rows
        return (moment * (1.0 / n_rows) + Dense(-(mean.T @ mean))) * (1.0 / len(theta))

    def largest_row(self, curvature: Operator) -> float:
        """N times the largest leverage, the weight of a row in the curvature; the average is D.

        A row counts N/n times in a minibatch, and its step must not carry the chain far beyond the
        mode (math.md#the-largest-row). The value is exact where that takes less than a second.
        Otherwise it comes from 16 random projections of each row, good to a third.
        """
        posterior = self.posterior
        sketch = curvature.inverse().cholesky().dense()
        if posterior.n_rows * posterior.dim**2 > _EXACT_LEVERAGE:
            rng = np.random.default_rng(0)
            normals = rng.standard_normal((posterior.dim, _PROJECTIONS))
            sketch = sketch @ (normals / np.sqrt(_PROJECTIONS))
        largest = 0.0
        for rows in posterior.data.blocks(posterior.model.row_size):
            root = posterior.fisher(self.mode.theta, rows)
            projected = root.rows() @ sketch.astype(root.factors[0].left.dtype)
            largest = max(largest, float(np.einsum("ij,ij->i", projected, projected).max()))
        return posterior.n_total * largest


@dataclass(frozen=True, eq=False)
class Anchor:
    """The anchor under the present prior.

    Attributes
    ----------
    theta : array of shape (1, D)
    curvature : Operator
        Model Fisher of all rows plus the prior's curvature, there.
    differences : Differences
        The scores of all rows there; they do not depend on the prior.
    """

    theta: NDArray
    curvature: Operator
    differences: Differences

    @property
    def noise(self) -> Operator:
        """Covariance of one row's change of score."""
        return self.differences.noise

    def noise_number(self) -> float:
        """kappa = n Tr(Lam^-1 M) / D for minibatches of n rows; D + 1 for Gaussian rows."""
        dim, n_total = self.theta.size, self.differences.posterior.n_total
        share = np.sum(self.curvature.inverse().dense() * self.noise.dense()) / dim
        return float(n_total**2 * share)

    def largest_row(self) -> float:
        """N times the largest leverage of a row."""
        return self.differences.largest_row(self.curvature)

    def under(self, old: Prior, new: Prior) -> Anchor:
        """The same point under another prior; the noise stays that around the anchor."""
        change = new.curvature(self.theta).values - old.curvature(self.theta).values
        return replace(self, curvature=self.curvature + Diag(change))


class AnchoredPosterior(Posterior):
    """A posterior whose scores are differences from those at the anchor; gradients stay unbiased.

    The chains of a group share their minibatches. Each chain multiplies the noise by its own
    distance from the anchor, so the noises of different chains are uncorrelated.

    Parameters
    ----------
    posterior : Posterior
    anchor : Anchor
    """

    anchor: Anchor

    def __init__(self, posterior: Posterior, anchor: Anchor) -> None:
        super().__init__(posterior.model, posterior.data, posterior.prior)
        self.anchor = anchor

    @classmethod
    def at(cls, posterior: Posterior, mode: Mode) -> AnchoredPosterior:
        """The posterior anchored at a mode: one pass over the rows."""
        differences = Differences(posterior, mode)
        return cls(posterior, Anchor(mode.theta, mode.curvature, differences))

    def with_prior(self, prior: Prior) -> AnchoredPosterior:
        """The same data and anchor under another prior."""
        return AnchoredPosterior(super().with_prior(prior), self.anchor.under(self.prior, prior))

    def minibatches(
        self, batch_size: int, replace: bool, rng: np.random.Generator, n_chains: int
    ) -> Minibatches:
        """One stream for all chains of the group."""
        return Minibatches(self.n_rows, batch_size, replace, rng, 1, self.n_total, shared=True)

    def scores(self, theta: NDArray, rows: Rows) -> Scores:
        """Scores at theta minus those at the anchor."""
        return self.anchor.differences.scores(theta, rows)

    def gradient(self, theta: NDArray, scores: Scores) -> NDArray:
        gradient = super().gradient(theta, scores)
        gradient += self.anchor.differences.gradient
        return gradient
