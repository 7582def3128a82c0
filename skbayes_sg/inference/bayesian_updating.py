"""Bayesian updating: the posterior of one chunk of rows is the prior of the next.

The posterior of linear regression is of the family of its prior, so updating is exact. That of
logistic regression is kept as a normal distribution (math/streams.md#streams-as-bayesian-updating),
and so are rows, up to a budget: their likelihood is expanded again wherever the posterior has
moved. Nothing is drawn at random, so that errors do not add up over chunks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import InMemory
from skbayes_sg.data.kept_rows import InBlocks, KeptRows, n_bytes, weight_of
from skbayes_sg.diagnostics.limits import SHIFT_LIMIT
from skbayes_sg.inference.drift import Drift
from skbayes_sg.inference.folded_rows import FoldedRows, Remainder, with_folded
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.models.base import Classification
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.control_variates import moments_along
from skbayes_sg.posterior.gaussian import (
    Distribution,
    expanded,
    folded,
    in_the_mean,
    updated,
    with_observed,
)

_GROWN = 0.5  # share of new rows, from which all that are kept are worth a pass
_MOVED, _MOVED_A_ROW = 0.3, 3e-5  # squared distances per parameter, in posterior variances
_ROWS_A_PARAMETER = 4
_SPREAD = 0.2  # relative error of a standard deviation: rows of one class, in order, come near it
_LEFT_FREE = 0.75  # of the budget after rows were folded, so that they are folded in large parts
_OF_CHECK = 0.5  # of the budget at most, for the rows that check what was folded
_ENOUGH_TO_LEARN = 10  # rare rows for each parameter, from which a learned prior stays


class Misfit(NamedTuple):
    """How far a normal distribution is off along the lines of coefficients."""

    mean_shift: float = 0.0
    """Largest error of a mean, in its standard deviations."""
    sd_ratio: float = 1.0
    """A standard deviation of it over the right one, where that is furthest from 1."""

    def warnings(self) -> list[str]:
        """A warning where a mean or a standard deviation is wrong."""
        if self.mean_shift <= SHIFT_LIMIT and abs(self.sd_ratio - 1) <= _SPREAD:
            return []
        return [
            "no normal distribution stands for the posterior of a coefficient, as where rows of a "
            "level have one class only: along its line the mean is off by mean_shift = "
            f"{self.mean_shift:.2f} standard deviations (limit {SHIFT_LIMIT}), which are "
            f"sd_ratio = {self.sd_ratio:.2f} times the right ones (limit {_SPREAD} from 1); "
            "call fit"
        ]


RIGHT = Misfit()


@dataclass(frozen=True, eq=False)
class Stream:
    """What is known after some chunks: `folded`, and the likelihood of the rows that are kept.

    Attributes
    ----------
    prior : GaussianPrior or NormalInverseGammaPrior
        Before any row. Forgetting leads back to it.
    folded : the same
        Posterior of the rows that are not kept.
    posterior : the same
        Posterior of all rows, from the last expansion of the kept ones and updates since.
    seed : SeedSequence
        Of the draws.
    model : Predictor, optional
        None before any row.
    kept : KeptRows
    centre : array of shape (D,), optional
        Mean of the posterior when the kept rows were last expanded.
    fresh : float
        Weight of the rows since then.
    sample : FoldedRows, optional
        Of the rows that were folded.
    remainder : Remainder, optional
        Of these, when last looked at.
    counts : dict of float to float
        Sum of the weights of each label: an integer weight is a repetition.
    learned_from : float, optional
        `rare` rows when the prior was learned; None where it is given.
    misfit : Misfit
        When last looked at, after rows of the total weight `diagnosed_at`.
    drift : Drift
    """

    prior: Distribution
    folded: Distribution
    posterior: Distribution
    seed: np.random.SeedSequence
    model: Predictor | None = None
    kept: KeptRows = field(default_factory=KeptRows)
    centre: NDArray | None = None
    fresh: float = 0.0
    sample: FoldedRows | None = None
    remainder: Remainder | None = None
    counts: dict[float, float] = field(default_factory=dict)
    learned_from: float | None = None
    misfit: Misfit = RIGHT
    diagnosed_at: float = 0
    drift: Drift = field(default_factory=Drift)

    def after(
        self,
        chunk: Posterior,
        guess: NDArray,
        forgetting_factor: float = 1.0,
        budget: float = np.inf,
    ) -> Stream:
        """The stream after one more chunk.

        Parameters
        ----------
        chunk : Posterior
            Its model and data; its prior is not used.
        guess : array of shape (1, D)
            Start of the search for the mode.
        forgetting_factor : float in (0, 1]
            Factor of the information of all earlier rows.
        budget : float
            Bytes of the rows that may be kept.
        """
        model, rows = chunk.predictor, chunk.data.sample
        before = self._forgotten(forgetting_factor) if forgetting_factor < 1 else self
        posterior = Posterior(model, rows, before.posterior)
        distribution = with_observed(posterior, updated(posterior, guess))
        before = replace(
            before, drift=before.drift.after(model, rows, before.posterior, distribution)
        )
        if model.conjugate:
            return replace(before, model=model, folded=distribution, posterior=distribution)
        first = not before.kept.blocks
        now = replace(
            before,
            model=model,
            posterior=distribution,
            kept=before.kept.with_rows(rows),
            centre=distribution.mean if first else before.centre,
            fresh=0.0 if first else before.fresh + weight_of(rows).sum(dtype=np.float64),
            counts=_counted(before.counts, rows, _has_labels(model)),
        )
        if now.fresh > _GROWN * now.kept.weight:
            now = now._expanded()
        return now._within(budget)._checked(since=before)

    @cached_property
    def distribution(self) -> Distribution:
        """The posterior of all rows. To ask for it does not change how the stream goes on."""
        found: Any = self._expanded().posterior
        if not found.quadratic and has_matrix(len(found.mean)):
            found = found.less_determined(self.prior)
        return found

    def draws(self, n_draws: int) -> NDArray:
        """Independent draws of the posterior, (n_draws, D); the same at every call."""
        return self.distribution.draw(np.random.default_rng(self.seed), n_draws)

    @property
    def rare(self) -> float:
        """Weight of rows of other labels than the most frequent one: what a learned prior rests on.

        Of numbers, all rows.
        """
        if not _has_labels(self.model):
            return self.n_rows
        return self.n_rows - max(self.counts.values(), default=0)

    @property
    def n_rows(self) -> float:
        """Total weight of the rows: their number, where none has a weight."""
        return sum(self.counts.values())

    @property
    def begins(self) -> bool:
        """Whether it has so few rows that another shape of the distribution is no surprise."""
        return self.n_rows < _ROWS_A_PARAMETER * len(self.prior.mean)

    @property
    def may_have_mended(self) -> bool:
        """Whether its distribution did not fit, and rows have grown by a tenth since."""
        return bool(self.misfit.warnings()) and self.n_rows >= 1.1 * self.diagnosed_at

    @property
    def may_learn(self) -> bool:
        """Whether a prior was learned from few rows, and can be learned from twice as many."""
        if self.learned_from is None or self.sample is not None:
            return False
        little = self.learned_from < _ENOUGH_TO_LEARN * len(self.prior.mean)
        return little and self.rare + 1 >= 2 * (self.learned_from + 1)

    def under(self, prior: Distribution) -> Stream:
        """The same rows, all of which are kept, under another prior."""
        assert self.model is not None
        posterior = Posterior(self.model, self.kept.data.sample, prior)
        found = with_observed(posterior, updated(posterior, self.posterior.mode))
        return replace(
            self, prior=prior, folded=prior, posterior=found, centre=found.mean, fresh=0.0
        )

    @property
    def moved(self) -> bool:
        """Whether the kept rows were expanded too far from here.

        The distance is that of rows in random order after they have grown by 30 %. What it changes
        in the curvature falls with the root of the number of rows, so less is allowed for few.
        """
        if self.centre is None:
            return False
        step = self.posterior.mean - self.centre
        square = step @ self.posterior.operator.matvec(step) / len(step)
        return bool(square > min(_MOVED, _MOVED_A_ROW * self.kept.weight))

    def diagnosed(self) -> Stream:
        """With the misfit of the distribution of all rows, by the rows that are kept.

        Above 1,000 columns none is looked for.
        """
        model, distribution = self.model, self.distribution
        if model is None or model.conjugate or not has_matrix(model.dim):
            return self
        if not self.kept.blocks:  # all rows are a normal distribution
            return replace(self, misfit=RIGHT, diagnosed_at=self.n_rows)
        lines = distribution.operator.inverse().dense()
        lines /= np.sqrt(lines.diagonal())[:, None]
        of_prior = np.sum(lines * self.folded.operator.matvec(lines), axis=1)

        kept = Posterior(model, self.kept.data, self.folded)
        forces = partial(kept.forces_along, distribution.mode)
        mean, sd = moments_along(forces, lines, of_prior)
        sd = np.append(sd, self._sd_by_curvature(kept))
        with np.errstate(divide="ignore"):  # of a line too narrow for the grid of `moments_along`
            worst = 1 / sd[np.abs(np.log(sd)).argmax()]
        found = Misfit(float(np.abs(mean).max()), float(worst))
        return replace(self, misfit=found, diagnosed_at=self.n_rows)

    def _sd_by_curvature(self, kept: Posterior) -> NDArray:
        """Standard deviations by the observed information, over those of the distribution.

        `moments_along` takes slopes within a half of the normal ones for normal, which lets
        standard deviations from 0.82 to 1.41 times the right ones pass. Empty where the model has
        no other curvature, and infinite where this one is not positive definite.
        """
        distribution = self.distribution
        if not kept.predictor.has_other_curvature:
            return np.empty(0)
        _, curvature = in_the_mean(kept, distribution)
        try:
            found = np.sqrt(curvature.inverse().diagonal() / distribution.variance)
        except np.linalg.LinAlgError:
            return np.array([np.inf])
        return found

    def _expanded(self) -> Stream:
        """With the kept rows expanded here, if they were far from here."""
        if self.model is None or not self.kept.blocks or not self.moved:
            return self
        posterior = Posterior(self.model, self.kept.data, self.folded)
        distribution = expanded(posterior, self.posterior)
        return replace(self, posterior=distribution, centre=distribution.mean, fresh=0.0)

    def _forgotten(self, share: float) -> Stream:
        prior: Any = self.prior
        return replace(
            self,
            folded=self.folded.mixed(prior, share),
            posterior=self.posterior.mixed(prior, share),
            kept=self.kept.forgotten(share),
            fresh=share * self.fresh,
            sample=None if self.sample is None else self.sample.forgotten(share),
            drift=self.drift.forgotten(share),
        )

    def _within(self, budget: float) -> Stream:
        """With the oldest rows folded at the present mean, if rows take more than the budget.

        The sample of them grows meanwhile, and takes some of it.
        """
        kept_budget = budget - (0 if self.sample is None else n_bytes(self.sample.rows))
        if not self.kept.split(kept_budget)[0]:
            return self
        now = self._expanded()
        assert now.model is not None
        old, kept = now.kept.split(_LEFT_FREE * kept_budget)
        summed = folded(Posterior(now.model, InBlocks(old), now.folded), now.posterior)
        at = now.posterior.as_expected() if summed.by_expected else now.posterior
        sample = with_folded(now.sample, now.model, old, at, _OF_CHECK * budget)
        return replace(now, folded=summed, kept=kept, sample=sample)

    def _checked(self, since: Stream) -> Stream:
        """With a look at the folded rows, if there are new ones, or the posterior has moved."""
        same = self.sample is since.sample and self.centre is since.centre and not self.moved
        if self.sample is None or same:
            return self
        assert self.model is not None
        return replace(self, remainder=self.sample.remainder(self.model, self.posterior))


def _has_labels(model: Predictor | None) -> bool:
    return isinstance(model, Classification)


def _counted(before: dict[float, float], rows: InMemory, labels: bool) -> dict[float, float]:
    """Total weights of each label, or of all numbers, with those of new rows."""
    each = rows.y if labels else np.zeros(rows.n_rows)
    found, member = np.unique(each, return_inverse=True)
    new = dict(zip(found.tolist(), np.bincount(member, rows.weight).tolist(), strict=True))
    return {label: before.get(label, 0) + new.get(label, 0) for label in before | new}
