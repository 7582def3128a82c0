"""Bayesian updating: the posterior of one chunk of rows is the prior of the next.

The posterior of linear regression is of the family of its prior, so updating is exact. That of
logistic regression is kept as a normal distribution (math.md#streams-as-bayesian-updating). Nothing
is drawn at random, so that errors do not add up over chunks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skbayes_sg.anchor import find_mode
from skbayes_sg.data import InMemory
from skbayes_sg.layouts import FULL
from skbayes_sg.linalg import Dense, Diag
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Expansion, Posterior
from skbayes_sg.priors import GaussianPrior, NormalInverseGammaPrior
from skbayes_sg.whitening import FULL_CURVATURE_DIM

SETTLED_ROWS = 1000
"""Rows from which a normal distribution may stand for a chunk. Fewer wait for more."""

_NEAR = 0.01  # squared distance per parameter of a step whose end is as good as the mode
_MOST_STEPS = 25
_SETTLED = 0.1  # relative change of the curvature, and squared shift, that one step can make
_LONGEST_STEP = 1.0  # in posterior standard deviations per parameter

Law = GaussianPrior | NormalInverseGammaPrior


@dataclass(frozen=True, eq=False)
class Stream:
    """What is known after some chunks.

    A normal distribution is a poor likelihood of few rows, and an update cannot be taken back. So
    rows of logistic regression wait until there are a thousand, and are then settled together; each
    update includes all that wait.

    Attributes
    ----------
    prior : GaussianPrior or NormalInverseGammaPrior
        Before any row. Forgetting leads back to it.
    settled : the same
        Posterior of all rows but those that wait.
    posterior : the same
        Posterior of all rows.
    seed : SeedSequence
        Of the draws.
    waiting : InMemory, optional
        Rows that wait.
    """

    prior: Law
    settled: Law
    posterior: Law
    seed: np.random.SeedSequence
    waiting: InMemory | None = None

    def after(self, chunk: Posterior, guess: NDArray, forgetting: float) -> Stream:
        """The stream after one more chunk.

        Parameters
        ----------
        chunk : Posterior
            Its model and data; its prior is not used.
        guess : array of shape (1, D)
            Start of the search for the mode.
        forgetting : float in (0, 1]
            Factor of the information of all earlier rows.
        """
        rows, settled = chunk.data.sample, self.settled
        if forgetting < 1:
            settled = settled.mixed(self.prior, forgetting)  # type: ignore[arg-type]
        if self.waiting is not None:
            rows = _joined(self.waiting, forgetting, rows)
        now = updated(Posterior(chunk.model, rows, settled), guess)
        assert isinstance(chunk.model, Predictor)
        alone = chunk.model.conjugate or chunk.dim > FULL_CURVATURE_DIM
        if alone or rows.n_rows >= SETTLED_ROWS:
            return replace(self, settled=now, posterior=now, waiting=None)
        return replace(self, settled=settled, posterior=now, waiting=rows)

    def draws(self, n_draws: int) -> NDArray:
        """Independent draws of the posterior, (n_draws, D); the same at every call."""
        return self.posterior.draw(np.random.default_rng(self.seed), n_draws)


def updated(posterior: Posterior, guess: NDArray) -> Law:
    """The posterior as a distribution of the prior's family (math.md).

    Above 1,000 parameters its precision is a diagonal, and its mean is the mode.
    """
    prior = posterior.prior
    assert isinstance(posterior.model, Predictor)
    assert isinstance(prior, Law)
    if posterior.dim > FULL_CURVATURE_DIM:
        mode = find_mode(posterior, guess, np.random.default_rng(0))
        left = np.where(prior.precision > 0, 0.0, mode.gradient)  # a diagonal makes no good step
        diagonal = Diag(mode.curvature.diagonal())
        return prior.updated(mode.theta, left, diagonal)
    return (_solved if posterior.model.conjugate else _smoothed)(posterior, prior, guess)


def _solved(posterior: Posterior, prior: Law, theta: NDArray) -> Law:
    """The conjugate posterior, from an expansion at theta and once more at its own mode.

    Far from the mode a sum of squares would be the small difference of two large ones.
    """
    for _ in range(2):
        here = _expanded(posterior, theta)
        law = prior.updated(theta, here.gradient, here.curvature)  # type: ignore[arg-type]
        theta = law.mode
    return law


def _smoothed(posterior: Posterior, prior: Law, guess: NDArray) -> Law:
    """Steps from the mode to where the gradient vanishes in the mean over the posterior.

    The precision is the curvature in that mean. One step is enough near a normal distribution.
    Elsewhere, as with separable classes, the wide law at the mode and its mean curvature contradict
    each other; half steps lead to the law that agrees with its own means.
    """
    here = _expanded(posterior, guess)
    precision = here.curvature
    step = precision.inverse().matvec(here.gradient)
    theta = guess + step
    if np.sum(step * here.gradient) > _NEAR * posterior.dim:
        mode = find_mode(posterior, guess, np.random.default_rng(0))
        theta, precision = mode.theta, mode.curvature
    for _ in range(_MOST_STEPS):
        covariance = precision.inverse().dense()
        root = np.linalg.cholesky(covariance)
        gradient, curvature = posterior.smoothed(theta, root)
        shift = gradient @ covariance
        length = np.sum(shift * gradient) / posterior.dim
        change = np.sum(covariance * curvature.dense()) / posterior.dim - 1
        if abs(change) < _SETTLED and length < _SETTLED:
            theta, precision = theta + shift, curvature
            break
        precision = precision * 0.5 + curvature * 0.5
        shift = 0.5 * precision.inverse().matvec(gradient)
        length = np.sqrt(np.sum(shift * precision.matvec(shift)) / posterior.dim)
        theta = theta + shift / max(length, _LONGEST_STEP)
    assert isinstance(precision, Dense)
    return GaussianPrior(precision, theta[0])


def _expanded(posterior: Posterior, theta: NDArray) -> Expansion:
    with np.errstate(over="ignore", invalid="ignore"):
        here = posterior.expand(theta, FULL)
    if not np.isfinite(here.curvature.diagonal()).all():
        raise ValueError(
            "X holds values whose squares overflow; scale its columns, for example by "
            "StandardScaler"
        )
    return here


def _joined(old: InMemory, share: float, new: InMemory) -> InMemory:
    """Old rows, their weights times `share`, and new ones."""
    weight = None
    if share < 1 or old.weighted or new.weighted:
        ours, theirs = (
            np.ones(rows.n_rows, rows.X.dtype) if rows.weight is None else rows.weight
            for rows in (old, new)
        )
        weight = np.concatenate([share * ours, theirs])
    if sparse.issparse(old.X) or sparse.issparse(new.X):
        X = sparse.vstack([sparse.csr_array(old.X), sparse.csr_array(new.X)], format="csr")
    else:
        X = np.concatenate([old.X, new.X])
    y = np.concatenate([old.y, new.y])
    return InMemory.of(X, y, weight, takes_sparse=True)
