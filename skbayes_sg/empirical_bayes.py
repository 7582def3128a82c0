"""Learning the prior precision while sampling: variational EM inside the sampler.

The precision lambda of a block of P weights maximises the evidence where ``lambda E||theta||^2 = P``, the mean over
the posterior under it (MATH 3.7; Mandt, Hoffman & Blei 2017, sections 3.2 and 6.3). While the chains move, its
logarithm rho follows

    rho <- rho - r_t (lambda ||theta||^2 / P - 1 - mean_k beta_k (theta_k dU/dtheta_k - 1)),  r_t = (1 + t/50)^-0.6 / 2

without the sum over beta as in the paper. That sum is a control variate: integration by parts makes
``E[theta_k dU/dtheta_k] = 1`` under any posterior exp(-U) (MATH 6). With beta_k = lambda / (lambda + information_k),
the prior's share in what is known of theta_k, the square of a coordinate that the data do not determine is replaced by
what the data say of it, which is nothing: it adds no noise, and a sampler that leaves it at zero (constant SGD on a
constant column, MATH trap 12) no bias.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit
from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_limits

from skbayes_sg.chains import burn, check_divergence, in_parallel
from skbayes_sg.diagnostics import SteinSums
from skbayes_sg.samplers.base import Sampler, State

BOUNDS = (1e-6, 1e6)
_LONGEST_MOVE = 1.0  # of rho at one update
_DECAY = 50
_POWER = 0.6
_JUDGED_ROWS = 2000  # from which the information is measured
_STILL = 0.05  # movement of rho that never matters
_SHARE_OF_SD = 0.25  # movement that is small beside what the data leave open
_VAGUE = 1.0
_NO_INFORMATION = 0.01
_STEIN_LIMIT = 0.1
_BY_CHANCE = 1e-3


class VariationalEM(BaseEstimator):
    """Have the prior precision learned: ``prior_precision=VariationalEM()``, or "em" for short.

    Parameters
    ----------
    per : {"block", "feature", "class"}, default="block"
        What has a precision of its own: each block of weights (a layer of a network); each feature (automatic
        relevance determination: features of no use are switched off); or each class. Intercepts and biases keep theirs.
    hyperprior : tuple (shape, rate), optional
        Gamma prior of every precision, ``lambda = (P/2 + shape) / (E||theta||^2 / 2 + rate)``; the rate is in the
        inverse unit of a precision. By default flat in log lambda: the evidence alone decides.
    n_updates : int, default=250
        Updates of the precisions, `thin` sampler steps apart, after a burn-in; the second half of the path is averaged.

    Notes
    -----
    Source: Mandt, Hoffman & Blei 2017, sections 3.2 and 6.3; MATH 3.7; the fixed point is MacKay's. Precisions
    stay within [1e-6, 1e6].

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sg import BayesianLinearRegressionSGFS, VariationalEM
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BayesianLinearRegressionSGFS(prior_precision=VariationalEM(n_updates=500), random_state=0)
    >>> bool(0.02 < model.fit(X, y).prior_precision_[0] < 0.05)
    True
    """

    def __init__(self, per: str = "block", hyperprior: tuple[float, float] | None = None, n_updates: int = 250) -> None:
        self.per = per
        self.hyperprior = hyperprior
        self.n_updates = n_updates

    def validate(self) -> None:
        """Refuse impossible parameters.

        Raises
        ------
        ValueError, TypeError
            Naming the parameter.
        """
        if self.per not in ("block", "feature", "class"):
            raise ValueError(f'per must be "block", "feature" or "class", got {self.per!r}')
        if isinstance(self.n_updates, bool) or not isinstance(self.n_updates, Integral):
            raise TypeError(f"n_updates must be an integer, got {self.n_updates!r}")
        if self.n_updates < 8:
            raise ValueError(f"n_updates must be at least 8, got {self.n_updates}")
        pair = self.hyperprior
        if pair is None:
            return
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2 and all(isinstance(v, Real) for v in pair)):
            raise ValueError(f"hyperprior must be None or a pair of numbers (shape, rate), got {pair!r}")
        if not all(0 <= float(value) < np.inf for value in pair):
            raise ValueError(f"hyperprior must hold finite numbers of at least 0, got {pair!r}")


class _Members(NamedTuple):
    """Coordinates of all blocks, and the block of each."""

    coordinates: NDArray
    block: NDArray
    sizes: NDArray  # (blocks,)

    @classmethod
    def of(cls, blocks: dict[str, NDArray]) -> _Members:
        sizes = np.array([len(block) for block in blocks.values()])
        return cls(np.concatenate(list(blocks.values())), np.repeat(np.arange(len(sizes)), sizes), sizes)

    def mean(self, values: NDArray) -> NDArray:
        """Of values (D,) over each block, (blocks,)."""
        return np.bincount(self.block, values[self.coordinates]) / self.sizes

    def spread(self, values: NDArray, otherwise: NDArray) -> NDArray:
        """A value for each block (blocks,) as one for each of its coordinates, the others as they are, (D,)."""
        spread = otherwise.copy()
        spread[self.coordinates] = values[self.block]
        return spread


class _Path(NamedTuple):
    """What one group of chains went through."""

    log_precision: NDArray  # (updates, blocks)
    state: State
    stein: SteinSums  # of the second half
    information: NDArray  # at the end, (D,)
    at_first: NDArray  # share of the data in what is known, under the precision to start from, (D,)


@dataclass
class Learned:
    """Prior precisions, how they came about, and what is wrong with them."""

    labels: list[str]
    values: NDArray
    """(blocks,)"""
    path: NDArray
    """(updates, blocks), the geometric mean of the groups of chains."""
    precision: NDArray
    """(D,)"""
    states: list[State]
    change: NDArray
    """Of log precision, (blocks,): from the third quarter of the path to the last, or between groups, the larger."""
    uncertainty: NDArray
    """Standard deviation of log precision that the data leave, (blocks,): infinite where they say nothing."""
    stein: NDArray
    """Drawn over wanted variance, mean over each block, (blocks,)."""
    stein_error: NDArray
    """What chance alone may make of it, in one fit of a thousand."""
    silent: NDArray
    """Whether the data say nothing about a block, under the precision to start from, (blocks,)."""
    one_each: bool
    """Whether blocks are single features, of which none can be known but vaguely."""

    def complaints(self) -> list[str]:
        """What the user must be told."""
        found = (self._moving(), self._at_bounds(), self._uninformed(), self._misdrawn())
        return [complaint for complaint in found if complaint]

    def _named(self, which: NDArray) -> str:
        names = [self.labels[i] for i in np.flatnonzero(which)]
        return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")

    def _moving(self) -> str | None:
        allowed = np.maximum(_STILL, _SHARE_OF_SD * self.uncertainty)
        moving = (self.change > allowed) & ~self._bound
        if not moving.any():
            return None
        worst = np.flatnonzero(moving)[(self.change / allowed)[moving].argmax()]
        return (
            f"prior_precision_path_ still moves for {self._named(moving)}: that of {self.labels[worst]} by a factor of "
            f"{np.exp(self.change[worst]):.2f} over its last half; raise n_updates of VariationalEM, or n_chains"
        )

    @property
    def _bound(self) -> NDArray:
        return (self.values <= BOUNDS[0] * 1.01) | (self.values >= BOUNDS[1] / 1.01)

    def _at_bounds(self) -> str | None:
        low, high = self.values <= BOUNDS[0] * 1.01, self.values >= BOUNDS[1] / 1.01
        if low.any():
            return (
                f"the learned precision of {self._named(low)} is at its lower limit, {BOUNDS[0]:g}: the weights have "
                "no bound, as with separable classes or columns of tiny numbers; scale the columns of X, or give "
                "VariationalEM a hyperprior"
            )
        high &= np.isfinite(self.uncertainty)  # else the weights are switched off, and how far does not matter
        if high.any():
            return (
                f"the learned precision of {self._named(high)} is at its upper limit, {BOUNDS[1]:g}: columns of large "
                "numbers, or weights of no use; scale the columns of X"
            )
        return None

    def _uninformed(self) -> str | None:
        if self.silent.any():
            return (
                f"the data say nothing about {self._named(self.silent)} (zero columns): its precision was not learned"
            )
        vague = (self.uncertainty > _VAGUE) & ~self._bound
        if self.one_each or not vague.any():
            return None
        return (
            f"the data hardly determine the precision of {self._named(vague)}: log precision is known to "
            f"{self.uncertainty[vague].max():.1f} at best (few weights, or few rows for them); give VariationalEM a "
            "hyperprior, or prior_precision a number"
        )

    def _misdrawn(self) -> str | None:
        off = np.abs(self.stein - 1)
        wrong = (off > _STEIN_LIMIT) & (off > self.stein_error)
        if not wrong.any():
            return None
        worst = np.where(wrong, off, 0).argmax()
        return (
            f"while the precision of {self._named(wrong)} was learned, the variances drawn in {self.labels[worst]} "
            f"were {self.stein[worst]:.2f} times those wanted: the precision may be biased; use SGFS, or HMC, or raise "
            "burn_in"
        )


def fit_prior(
    em: VariationalEM,
    sampler: Sampler,
    posterior,
    states: list[State],
    blocks: dict[str, NDArray],
    *,
    burn_in: int,
    thin: int,
    n_jobs: int | None = None,
) -> Learned:
    """Burn in, then let the precisions of `blocks` follow the chains.

    Every group of chains has a path of its own, averaged over its chains; the result is the mean over groups of log
    precision. So groups run in parallel, and their disagreement is a measure of the Monte Carlo error.

    Parameters
    ----------
    em : VariationalEM
    sampler : Sampler
    posterior : Posterior
        Under the precisions to start from; those outside `blocks` stay.
    states : list of State
        Where the groups of chains are; copied.
    blocks : dict of str to array
        Coordinates of each block, by label.
    burn_in : int
        Sampler steps under the first precisions.
    thin : int
        Sampler steps per update.
    n_jobs : int, optional
        Processes (joblib); the result does not depend on it.

    Returns
    -------
    Learned

    Raises
    ------
    FloatingPointError
        If a chain diverges.
    """
    members = _Members.of(blocks)
    follow = partial(_follow, em, sampler, posterior, members, burn_in, thin)
    paths: list[_Path] = in_parallel(follow, states, n_jobs)
    each = np.stack([path.log_precision for path in paths])  # (groups, updates, blocks)
    half, three_quarters = em.n_updates // 2, 3 * em.n_updates // 4
    of_group = each[:, half:].mean(axis=1)
    path = each.mean(axis=0)
    values = np.exp(of_group.mean(axis=0))
    precision = members.spread(values, posterior.prior_precision)
    moved = np.abs(path[three_quarters:].mean(axis=0) - path[half:three_quarters].mean(axis=0))
    stein, stein_error = _stein_of_blocks([p.stein for p in paths], list(blocks.values()))
    final = posterior.with_prior(precision)
    for p in paths:
        sampler.change_prior(p.state, final)
    share = _data_share(final, paths[0].state.theta, paths[0].information)
    return Learned(
        list(blocks),
        values,
        np.exp(path),
        precision,
        [p.state for p in paths],
        np.maximum(moved, np.ptp(of_group, axis=0) / 2),
        np.array([_uncertainty(share[block]) for block in blocks.values()]),
        stein,
        stein_error,
        np.array([paths[0].at_first[block].max() < _NO_INFORMATION for block in blocks.values()]),
        em.per == "feature",
    )


def _follow(
    em: VariationalEM, sampler: Sampler, posterior, members: _Members, burn_in: int, thin: int, state: State
) -> _Path:
    """One group of chains, and the precisions that follow it."""
    state = copy.deepcopy(state)
    initial = posterior.prior_precision
    rho = np.log(members.mean(initial))
    path = np.empty((em.n_updates, len(rho)))
    with threadpool_limits(1, "blas"), np.errstate(over="ignore", invalid="ignore"):
        burn(sampler, posterior, state, burn_in)
        information, stein = _information(posterior, state), SteinSums(state.theta)
        at_first = _data_share(posterior, state.theta, information)
        for t in range(em.n_updates):
            if t in (em.n_updates // 8, em.n_updates // 4, em.n_updates // 2):
                sampler.restart(state, posterior)
                stein = SteinSums(state.theta)
                information = _information(posterior, state)
            prior_share = 1 - _data_share(posterior, state.theta, information)
            excess = np.zeros(posterior.dim)
            for _ in range(thin):
                theta = state.theta.copy()
                sampler.step(state, posterior)
                squares = posterior.prior.scaled_squares(theta)
                excess += (squares - 1 + prior_share * (theta * state.gradient + 1)).mean(axis=0)
                if t >= em.n_updates // 2:
                    stein.add(theta[None], np.asarray(state.gradient)[None])
            check_divergence(sampler, state, state.theta)
            rho = path[t] = _moved(em, rho, members.mean(excess) / thin, members.sizes, t)
            posterior = posterior.with_prior(members.spread(np.exp(rho), initial))
            sampler.change_prior(state, posterior)
    return _Path(path, state, stein, information, at_first)


def _moved(em: VariationalEM, rho: NDArray, excess: NDArray, sizes: NDArray, t: int) -> NDArray:
    """One Robbins-Monro step of rho, with the hyperprior's part, within the bounds."""
    shape, rate = (0.0, 0.0) if em.hyperprior is None else em.hyperprior
    excess = excess + 2 * (rate * np.exp(rho) - shape) / sizes
    step = 0.5 * (1 + t / _DECAY) ** -_POWER * excess
    return np.clip(rho - np.clip(step, -_LONGEST_MOVE, _LONGEST_MOVE), *np.log(BOUNDS))


def _information(posterior, state: State) -> NDArray:
    """What the data know of each parameter at the first chain, (D,): from up to 2,000 rows, as it is but a weight."""
    rows = np.unique(np.linspace(0, posterior.n_rows - 1, _JUDGED_ROWS).astype(int))
    return posterior.information(state.theta[:1], rows, "diag").diagonal()


def _data_share(posterior, theta: NDArray, information: NDArray) -> NDArray:
    """Share of the data in what is known of each parameter: 0 means that only the prior knows it, (D,)."""
    prior = posterior.prior.curvature(theta).values
    return information / (information + prior)


def _uncertainty(share: NDArray) -> float:
    """Standard deviation of log lambda from the expected curvature of the log evidence, correlations left out."""
    return float(np.inf if share.max() < _NO_INFORMATION else (0.5 * np.sum(share**2)) ** -0.5)


def _stein_of_blocks(sums: list[SteinSums], blocks: list[NDArray]) -> tuple[NDArray, NDArray]:
    """Stein ratio of each block, and the bound of its error from the spread of the chains (Student's t, Bonferroni)."""
    mean = np.mean([s.mean() for s in sums], axis=0)
    each = np.concatenate([s.ratio(mean) for s in sums])  # (chains, D)
    of_block: NDArray = np.stack([each[:, block].mean(axis=1) for block in blocks], axis=1)
    if len(each) == 1:
        return of_block[0], np.full(len(blocks), np.inf)
    se = of_block.std(axis=0, ddof=1) / np.sqrt(len(each))
    return of_block.mean(axis=0), se * stdtrit(len(each) - 1, 1 - _BY_CHANCE / (2 * len(blocks)))
