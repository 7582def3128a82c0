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

from skbayes_sg.data import InMemory
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Posterior
from skbayes_sg.variational import Law, updated
from skbayes_sg.whitening import FULL_CURVATURE_DIM

SETTLED_ROWS = 1000
"""Rows from which a normal distribution may stand for a chunk. Fewer wait for more."""


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
