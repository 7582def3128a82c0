"""Bayesian updating: the posterior of one chunk of rows is the prior of the next.

The posterior of linear regression is of the family of its prior, so updating is exact. That of
logistic regression is kept as a normal distribution (math/streams.md#streams-as-bayesian-updating),
and so are rows, up to a budget: their likelihood is expanded again wherever the posterior has
moved. Nothing is drawn at random, so that errors do not add up over chunks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import Columns, InMemory, of_columns, with_columns
from skbayes_sg.data.kept_rows import InBlocks, KeptRows, joined, n_bytes, total_weight
from skbayes_sg.diagnostics.judgements import RIGHT, Misfit
from skbayes_sg.diagnostics.limits import (
    SHIFT_LIMIT,
    STREAM_DENSITY_LIMIT,
    STREAM_SPREAD_LIMIT,
)
from skbayes_sg.inference.precision import (
    Hyperprior,
    LearnedPrecision,
    estimate_precision,
    precision_beside,
)
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.models.base import Classification
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Posterior, affordable
from skbayes_sg.posterior.gaussian import (
    Distribution,
    expanded,
    folded,
    under,
    updated,
    with_observed,
)
from skbayes_sg.posterior.marginal_scales import MarginalScales
from skbayes_sg.posterior.misfit import misfit_of
from skbayes_sg.priors import GaussianPrior, NormalInverseGammaPrior, NormalPrior, with_rows
from skbayes_sg.priors.scales import Sampled
from skbayes_sg.streams.drift import Drift
from skbayes_sg.streams.folded_rows import FoldedRows, Remainder, with_folded

HELD = 1e6  # a column of one value has a coefficient whose outputs are held at a millionth
_GROWN = 0.5  # share of new rows, from which all that are kept are worth a pass
_MOVED, _MOVED_A_ROW = 0.3, 3e-5  # squared distances per parameter, in posterior variances
_ROWS_A_PARAMETER = 4
_LEFT_FREE = 0.75  # of the budget after rows were folded, so that they are folded in large parts
_OF_CHECK = 0.5  # of the budget at most, for the rows that check what was folded
_ENOUGH = 10  # rare rows for each parameter, from which their likelihood is nearly normal
_MOST_ROWS = 40_000  # from which precisions before that are learned
_ASKED_AGAIN = 1.1  # times as many rows, after which the prior is asked again
_MOST_ROUNDS, _NEAR = 4, 0.1  # of learned precisions and distributions; of a log precision's sd


MISFIT = (
    "no normal distribution stands for the posterior of a coefficient, as where rows of a level "
    "have one class only: along its line the mean is off by diagnostics_['mean_shift'] standard "
    f"deviations (limit {SHIFT_LIMIT}), or these are diagnostics_['sd_ratio'] times the right ones "
    f"(limit {STREAM_SPREAD_LIMIT} from 1), or across such lines its log density is off by "
    f"diagnostics_['density_sd'] (limit {STREAM_DENSITY_LIMIT}); call fit"
)


@dataclass(frozen=True, eq=False)
class Stream:
    """What is known after some chunks: `folded`, and the likelihood of the rows that are kept.

    Attributes
    ----------
    prior : GaussianPrior, NormalInverseGammaPrior or ConditionedPrior
        In the units of all rows so far. Forgetting leads back to it.
    folded : GaussianPrior or NormalInverseGammaPrior
        Posterior of the rows that are not kept.
    posterior : the same
        Posterior of all rows, from the last expansion of the kept ones and updates since.
    seed : SeedSequence
        Seed of the draws.
    model : Predictor, optional
        None before any row.
    kept : KeptRows
    centre : array of shape (D,), optional
        Mean of the posterior when the kept rows were last expanded.
    fresh : float
        Weight of the rows since then.
    sample : FoldedRows, optional
        A sample of the rows that were folded.
    remainder : Remainder, optional
        That of these, when last looked at.
    counts : dict of float to float
        Sum of the weights of each label: an integer weight is a repetition.
    columns : Columns, optional
        Those of all rows so far, where the prior is in their units, or at their means.
    stand_in : InMemory, optional
        Rows that have the location and the unit of y of rows that are not kept.
    asked_at : tuple of float
        `n_rows` and `rare` when the prior was last asked.
    weak : the kind of `prior`, optional
        That which rows ask for, before a precision is learned; of a conjugate model all rows.
    hyperprior : Hyperprior, optional
        That of precisions that are learned again.
    learned : LearnedPrecision, optional
        None where the precision is given.
    summed : bool
        Whether the rows of a fit, or of a stream without its rows, are in `folded`.
    in_units : bool
        Whether a precision is learned, and is relative to the units of the columns.
    said : frozenset of str
        Kinds of warnings, each of which is given once.
    misfit : Misfit
        When last looked at, after rows of the total weight `diagnosed_at`.
    drift : Drift
    """

    prior: NormalPrior
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
    columns: Columns | None = None
    stand_in: InMemory | None = None
    asked_at: tuple[float, float] = (0.0, 0.0)
    weak: NormalPrior | None = None
    hyperprior: Hyperprior | None = None
    learned: LearnedPrecision | None = None
    summed: bool = False
    in_units: bool = False
    said: frozenset[str] = frozenset()
    misfit: Misfit = RIGHT
    diagnosed_at: float = 0
    drift: Drift = field(default_factory=Drift)

    def after(
        self,
        rows: InMemory,
        guess: NDArray,
        forgetting_factor: float = 1.0,
        budget: float = np.inf,
    ) -> Stream:
        """The stream after one more chunk.

        Parameters
        ----------
        rows : InMemory
            A chunk, which the stream was `told`.
        guess : array of shape (1, D)
            Start of the search for the mode.
        forgetting_factor : float in (0, 1]
            Factor of the information of all earlier rows.
        budget : float
            Bytes of the rows that may be kept.
        """
        model = self.model
        assert model is not None
        before = self._forgotten(forgetting_factor) if forgetting_factor < 1 else self
        posterior = Posterior(model, rows, before.posterior)
        distribution = with_observed(posterior, updated(posterior, guess))
        before = replace(
            before, drift=before.drift.after(model, rows, before.posterior, distribution)
        )
        if model.conjugate:
            return replace(before, folded=distribution, posterior=distribution)
        first = not before.kept.blocks
        now = replace(
            before,
            posterior=distribution,
            kept=before.kept.with_rows(rows),
            centre=distribution.mean if first else before.centre,
            fresh=0.0 if first else before.fresh + total_weight(rows),
        )
        if now.fresh > _GROWN * now.kept.weight:
            now = now._expanded()
        return now._within(budget)._checked(since=before)

    @property
    def now(self) -> Stream:
        """The stream as it is read, which does not change how it goes on.

        The sums of a conjugate likelihood are all of it, so that units and precisions are those of
        all rows.
        """
        is_whole = self.model is not None and self.model.conjugate and self.weak is not None
        return self._of_all_sums if is_whole else self

    @cached_property
    def _of_all_sums(self) -> Stream:
        return self.renewed(self.in_units) if self.hyperprior is None else self.learning()

    @cached_property
    def distribution(self) -> Distribution:
        """The posterior of all rows."""
        now = self.now
        distribution: Any = under(now._expanded().posterior, now.prior, now.held_prior)
        if not distribution.quadratic and has_matrix(len(distribution.mean)):
            distribution = distribution.less_determined(now.prior)
        return distribution

    @cached_property
    def marginal(self) -> Distribution:
        """The same with the moments over all precisions of the prior, where these are learned.

        Its draws stand for those of a fit, which samples precisions.
        """
        given, sampled = self.distribution, self.sampled
        if sampled is None:
            return given
        beside = MarginalScales(sampled.scales, given, self.now.held_prior)
        try:
            mean, operator = beside.over(sampled.centre, sampled.width)
        except np.linalg.LinAlgError:
            return given
        if isinstance(given, NormalInverseGammaPrior):
            return NormalInverseGammaPrior(operator, given.noise, mean)
        found = GaussianPrior(operator, mean)
        return found.as_expected() if given.by_expected else found

    @property
    def sampled(self) -> Sampled | None:
        """Precisions of the prior beside the distribution, where these are learned and known."""
        given, learned = self.distribution, self.now.learned
        tells = given.noise is None or given.noise[0] > 1
        return learned.sampled if learned and tells and has_matrix(len(given.mean)) else None

    def hyper_draws(self, n_draws: int) -> NDArray | None:
        """Their hyperparameters, (n_draws, K): quantiles in a random order; None of none.

        They are the same at every call.
        """
        if self._hyperparameters is None:
            return None
        rng, levels = np.random.default_rng(self.seed.generate_state(4)), np.arange(n_draws) + 0.5
        each = zip(*self._hyperparameters, strict=True)
        drawn = [np.interp(rng.permutation(levels) / n_draws, below, at) for at, below in each]
        return np.stack(drawn, axis=1)

    @cached_property
    def _hyperparameters(self) -> tuple[NDArray, NDArray] | None:
        """Values of them, and their distribution functions."""
        if self.sampled is None:
            return None
        scales, centre, width, _ = self.sampled
        beside = MarginalScales(scales, self.distribution, self.now.held_prior)
        try:
            return beside.distributions(centre, width)
        except np.linalg.LinAlgError:  # as where `marginal` has no moments over them
            return None

    @cached_property
    def held_prior(self) -> NormalPrior:
        """The prior, with the coefficients of columns that have had one value held at its mean.

        It is so where the posterior is read. On the way no number is that large: what rows say of
        the column when it varies is not to be lost in its rounding errors.
        """
        columns = self.columns if self.in_units else None
        if self.model is None or columns is None or columns.unit.all():
            return self.prior
        precision = self.prior.precision.copy()
        coef = self.model.unpack(precision[None])["coef"]
        coef *= np.where(columns.unit > 0, 1.0, HELD**2)
        return self.prior.with_precision(precision)

    def draws(self, n_draws: int) -> NDArray:
        """Draws of the posterior with its mean and covariance, (n_draws, D).

        They are the same at every call.
        """
        return self.marginal.draw(np.random.default_rng(self.seed), n_draws, matched=True)

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
        misfits = self.misfit.is_large or self.misfit.is_uneven
        return misfits and self.n_rows >= 1.1 * self.diagnosed_at

    # -- what is learned from rows is asked again when others come --------------------------------

    def told(self, model: Predictor, rows: InMemory, asks_columns: bool) -> Stream:
        """With what a chunk says of columns, of labels, and of y where no row is kept."""
        columns = None
        if asks_columns:
            columns = of_columns(rows) if self.columns is None else self.columns.and_of(rows)
        counts = _counted(self.counts, rows, _has_labels(model))
        now = replace(self, columns=columns, counts=counts)
        if not model.conjugate:
            return now
        both = rows if self.stand_in is None else joined([self.stand_in, rows])
        return replace(now, stand_in=standing_for(model.spread_of_y(both), both))

    def rows_that_tell(self, rows: InMemory | None = None) -> InMemory:
        """Rows with the location and the unit of y of all so far, and their columns.

        They are those that are kept and a chunk that is not yet, and some that stand for others.
        """
        assert self.model is not None
        parts = [] if self.stand_in is None else [self.stand_in]
        if not self.model.conjugate:
            parts += [] if self.sample is None else [self.sample.weighted]
            parts += [*self.kept.blocks, *([] if rows is None else [rows])]
        together = joined(parts)
        return together if self.columns is None else with_columns(together, self.columns)

    def is_due(self, before: Stream) -> bool:
        """Whether the prior is to be asked again: rows, or the rarer labels, have grown by a tenth,
        or a column varies that had one value."""
        ours, theirs = self.columns, before.columns
        if ours is not None and theirs is not None and ((theirs.unit == 0) & (ours.unit > 0)).any():
            return True
        n_rows, rare = self.asked_at
        return self.n_rows >= _ASKED_AGAIN * n_rows or self.rare + 1 >= _ASKED_AGAIN * (rare + 1)

    def renewed(self, keeps: bool) -> Stream:
        """Under the prior that all rows so far ask for; `keeps`: with the precision that it has for
        the unit of each column."""
        model, prior = self.model, self.weak
        assert model is not None
        assert prior is not None
        if keeps:
            block = model.unpack(np.arange(model.dim))["coef"].ravel()
            precision = prior.precision.copy()
            for_unit = self.prior.precision[block] / self.prior.unit[block]
            precision[block] = for_unit * prior.unit[block]
            prior = prior.with_precision(precision)
        return self._under(prior)

    def learning(self) -> Stream:
        """With the precision that all rows lead to.

        The sums of a conjugate likelihood are all of it, and the normal distribution of many rows
        nearly is. While they are few, the posterior is found under several precisions.
        """
        model, weak, hyperprior = self.model, self.weak, self.hyperprior
        assert model is not None
        assert weak is not None
        assert hyperprior is not None
        whole = not (model.conjugate or self.summed or self.sample is not None)
        few = whole and self.kept.data.n_rows <= _MOST_ROWS
        if few and (self.rare < _ENOUGH * model.dim or not has_matrix(model.dim)):
            rows = self.kept.data.sample
            if self.columns is not None:
                with_columns(rows, self.columns)
            posterior = Posterior(model, rows, weak)
            if not affordable(posterior):
                return self
            learned = estimate_precision(hyperprior.of(posterior), posterior).learned
            now = self._under(weak.with_precision(learned.precision))._expanded(True)
            return replace(now, learned=learned)
        if not has_matrix(model.dim):
            return self
        scales, now = hyperprior.scales_of(model, weak), self
        eta, path = scales.start(self.prior), [scales.of(self.prior)]
        for _ in range(_MOST_ROUNDS):
            learned = precision_beside(scales, now.posterior, now.prior, eta)
            assert learned.sampled is not None
            change, eta = np.abs(learned.sampled.centre - eta[0]), learned.sampled.centre[None]
            path.append(learned.values)
            now = now._under(weak.with_precision(learned.precision))
            if (change < _NEAR * learned.sampled.width).all() or model.conjugate:
                break
            now = now._expanded(True)
        return replace(now, learned=replace(learned, path=np.array(path)))

    def _under(self, prior: NormalPrior) -> Stream:
        """The same rows under another prior."""
        whole = with_rows(prior)
        if self.posterior is with_rows(self.prior):
            return replace(self, prior=prior, folded=whole, posterior=whole)
        posterior = under(self.posterior, self.prior, prior)
        if self.folded is self.posterior:
            folded = posterior
        elif self.summed or self.sample is not None:
            folded = under(self.folded, self.prior, prior)
        else:
            folded = whole
        return replace(self, prior=prior, folded=folded, posterior=posterior)

    @property
    def has_left_what_is_summed(self) -> bool:
        """Whether the mean is farther from that of rows that are summed up than rows in random
        order lead it: by five standard deviations of its squared distance."""
        assert self.model is not None
        if not self.summed or self.model.conjugate:
            return False
        step, dim = self.posterior.mean - self.folded.mean, self.model.dim
        of_rows = self.folded.operator.plain() + self.prior.operator.plain() * -1.0
        return float(step @ of_rows.matvec(step)) > dim + 5 * np.sqrt(2 * dim)

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
        model, distribution = self.model, self._expanded().posterior
        if model is None or model.conjugate or not has_matrix(model.dim):
            return self
        if not self.kept.blocks:  # all rows are a normal distribution
            return replace(self, misfit=RIGHT, diagnosed_at=self.n_rows)
        kept = Posterior(model, self.kept.data, self.folded)
        return replace(self, misfit=misfit_of(kept, distribution), diagnosed_at=self.n_rows)

    def _expanded(self, always: bool = False) -> Stream:
        """With the kept rows expanded here, if they were far from here."""
        if self.model is None or not self.kept.blocks or not (always or self.moved):
            return self
        posterior = Posterior(self.model, self.kept.data, self.folded)
        distribution = expanded(posterior, self.posterior)
        return replace(self, posterior=distribution, centre=distribution.mean, fresh=0.0)

    def _forgotten(self, share: float) -> Stream:
        prior: Any = with_rows(self.prior)
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
        centre = now.posterior.as_expected() if summed.by_expected else now.posterior
        sample = with_folded(now.sample, now.model, old, centre, _OF_CHECK * budget)
        return replace(now, folded=summed, kept=kept, sample=sample)

    def _checked(self, since: Stream) -> Stream:
        """With a look at the folded rows, if there are new ones, or the posterior has moved."""
        same = self.sample is since.sample and self.centre is since.centre and not self.moved
        if self.sample is None or same:
            return self
        assert self.model is not None
        return replace(self, remainder=self.sample.remainder(self.model, self.posterior))


def standing_for(
    spread: tuple[float, float] | None, rows: InMemory, weight: float | None = None
) -> InMemory | None:
    """Two rows that have the location and the unit of y of some, and their weight or another.

    They are zero in all columns.
    """
    if spread is None:
        return None
    (middle, half), X = spread, np.zeros((2, rows.X.shape[1]), rows.X.dtype)
    total = total_weight(rows) if weight is None else weight
    y = np.array([middle - half, middle + half], rows.y.dtype)
    stand_in = InMemory.of(X, y, np.full(2, 0.5 * total, X.dtype), takes_sparse=True)
    return replace(stand_in, n_known=rows.n_known)


def _has_labels(model: Predictor | None) -> bool:
    return isinstance(model, Classification)


def _counted(before: dict[float, float], rows: InMemory, labels: bool) -> dict[float, float]:
    """Total weights of each label, or of all numbers, with those of new rows."""
    y = rows.y if labels else np.zeros(rows.n_rows)
    labels_seen, member = np.unique(y, return_inverse=True)
    new = dict(zip(labels_seen.tolist(), np.bincount(member, rows.weight).tolist(), strict=True))
    return {label: before.get(label, 0) + new.get(label, 0) for label in before | new}
