"""Learning the prior precision while sampling: variational EM inside the sampler.

The precision lambda of a block of P weights maximises the evidence where
``lambda E||theta||^2 = P``, the mean over the posterior under it
(math/priors.md#learning-the-prior; Mandt, Hoffman & Blei 2017, sections 3.2 and 6.3). While the
chains move, its logarithm rho follows

    rho <- rho - r_t (lambda ||theta||^2 / P - 1 + term),  r_t = (1 + t/50)^-0.6 / 2

without the term as in the paper. The term is a control variate of mean zero.

Integration by parts makes ``E[theta_k (A dU/dtheta)_k] = A_kk`` under any posterior exp(-U), for
any matrix A (math/diagnostics.md#stein-ratio). So ``theta_k (A dU/dtheta)_k - A_kk`` has mean zero,
also with theta_k counted from the prior mean. It may be subtracted from the square of a weight. A
is the prior's share of what is known, ``Lam_0 (Lam_0 + F)^-1``, with the prior's curvature Lam_0
and the information F of the data. What the data do not determine of the square is then replaced by
its mean under the Gaussian approximation. A sampler that draws too little or too much there, or
stands still as constant SGD does, biases nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from skbayes_sg.bases import BaseEstimator
from skbayes_sg.chains.run import (
    burn,
    cut_short,
    elements_of_step,
    in_parallel,
    iterate_steps,
    one_thread,
    restarts,
    time_is_up,
)
from skbayes_sg.data import evenly_spaced
from skbayes_sg.diagnostics.gradients import SteinSums, stein_ratios
from skbayes_sg.inference.precision import BOUNDS, NO_INFORMATION, LearnedPrecision
from skbayes_sg.linalg import DIAGONAL, FULL
from skbayes_sg.linalg.coordinates import affine
from skbayes_sg.models import NullDirections
from skbayes_sg.samplers import Sampler, State
from skbayes_sg.samplers.base import RunLength
from skbayes_sg.samplers.schedules import Schedule, value_at
from skbayes_sg.samplers.target import ModelPosterior, Target
from skbayes_sg.validation import real_array, require_choice, require_integer

_LONGEST_MOVE = 1.0  # of rho at one update
_DECAY, _POWER = 50.0, 0.6  # of Robbins and Monro's steps
_FEWEST_UPDATES = 4  # whose second half has two parts to compare


def _robbins_monro(t: int) -> float:
    return 0.5 * (1 + t / _DECAY) ** -_POWER


@dataclass(eq=False, repr=False)
class VariationalEM(BaseEstimator):
    """Learn the prior precision in the sampler: ``prior_precision=VariationalEM()``.

    The precision says how strongly coefficients are pulled to the prior mean. While the chains
    move, it follows them to the value under which the rows are most probable (the evidence).

    Parameters
    ----------
    per : {"block", "feature", "class"}, default="block"
        The groups of weights that have a precision of their own: each block of weights (a layer of
        a network), each feature (automatic relevance determination, which switches off useless
        features), or each class. Intercepts and biases keep their precision.
    hyperprior : tuple (shape, rate), optional
        Gamma prior of every precision, ``lambda = (P/2 + shape) / (E||theta||^2 / 2 + rate)``. The
        rate is in the inverse unit of a precision. Precisions of the regressions are relative to
        units of the columns of X (math/priors.md#units-of-the-columns). By default the prior is
        flat in log lambda, and the evidence alone decides.
    n_updates : int, default=250
        Updates of the precisions after a burn-in, `thin` sampler steps apart. The second half of
        the path is averaged.
    rho : float or callable, optional
        The paper's rho_t: step of log precision in update t = 0, 1, ..., for squares of the weights
        that are twice what the precision expects. By default ``(1 + t/50)**-0.6 / 2``.

    Notes
    -----
    Source: Mandt, Hoffman & Blei 2017, sections 3.2 and 6.3; math/priors.md#learning-the-prior. The
    fixed point is MacKay's. Precisions stay within [1e-6, 1e6].

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sg import BayesianLinearRegression, VariationalEM
    >>> X, y = load_diabetes(return_X_y=True)
    >>> em = VariationalEM(n_updates=200)
    >>> model = BayesianLinearRegression(prior_precision=em, random_state=0)
    >>> bool(0.02 < model.fit(X, y).prior_precision_[0] < 0.05)
    True
    """

    per: str = "block"
    hyperprior: tuple[float, float] | None = None
    n_updates: int = 250
    rho: Schedule | None = None

    def pace(self, t: int) -> float:
        """Step of log precision in update t, for an excess of 1."""
        rho = _robbins_monro if self.rho is None else self.rho
        step = value_at(rho, t, "rho")
        if not step > 0:
            raise ValueError(f"rho must be positive, rho({t}) is {step}")
        return step

    def validate(self) -> None:
        """Refuse impossible parameters.

        Raises
        ------
        ValueError, TypeError
            The message names the parameter.
        """
        require_choice("per", self.per, ("block", "feature", "class"))
        require_integer("n_updates", self.n_updates, 8)
        self.pace(0)
        if self.hyperprior is None:
            return
        pair = real_array("hyperprior", self.hyperprior)
        if pair.shape != (2,):
            raise ValueError(
                "hyperprior must be None or a pair of numbers (shape, rate), got "
                f"{self.hyperprior!r}"
            )
        if not ((pair >= 0) & (pair < np.inf)).all():
            raise ValueError(
                f"hyperprior must hold finite numbers of at least 0, got {self.hyperprior!r}"
            )


class _Members(NamedTuple):
    """Coordinates of all blocks, and block and unit of each."""

    coordinates: NDArray
    block: NDArray
    unit: NDArray
    sizes: NDArray  # (blocks,)

    @classmethod
    def of(cls, blocks: dict[str, NDArray], unit: NDArray) -> _Members:
        sizes = np.array([len(block) for block in blocks.values()])
        coordinates = np.concatenate(list(blocks.values()))
        return cls(coordinates, np.repeat(np.arange(len(sizes)), sizes), unit[coordinates], sizes)

    def mean(self, values: NDArray) -> NDArray:
        """Mean of values (D,) over each block, (blocks,)."""
        return np.bincount(self.block, values[self.coordinates]) / self.sizes

    def spread(self, values: NDArray, otherwise: NDArray) -> NDArray:
        """Precisions of blocks (blocks,) as those of parameters, `otherwise` elsewhere, (D,)."""
        spread = otherwise.copy()
        spread[self.coordinates] = values[self.block] * self.unit
        return spread


_DIAGONAL_ROWS = 2000  # from which a diagonal is measured
_ROWS_PER_PARAMETER = 20  # from which a matrix is


class MatrixControlVariate:
    """A is a matrix: directions that the data leave open may be any.

    Parameters
    ----------
    posterior : ModelPosterior
    theta : array of shape (1, D)
        Where the curvatures are measured.
    """

    def __init__(self, posterior: ModelPosterior, theta: NDArray) -> None:
        rows = evenly_spaced(
            posterior.n_rows, max(_DIAGONAL_ROWS, _ROWS_PER_PARAMETER * posterior.dim)
        )
        prior = posterior.prior.curvature(theta)
        curvature = posterior.information(theta, rows, FULL) + prior
        self._prior = posterior.prior.independent(theta)
        self._covariance = curvature.inverse().dense()
        self._A = self._prior[:, None] * self._covariance

    def term(self, posterior: ModelPosterior, theta: NDArray, gradient: NDArray) -> NDArray:
        """The term at theta (chains, D), with the gradient of the log posterior there."""
        return (theta - posterior.prior.mean) * gradient.dot(self._A.T) + self._A.diagonal()

    def shares(self, block: NDArray) -> tuple[float, float]:
        """The data's largest share of what is known of a parameter, and the sum of their squares.

        Eigenvalues have the same sum of squares.
        """
        root = np.sqrt(self._prior[block])
        share = np.eye(len(block)) - root[:, None] * self._covariance[np.ix_(block, block)] * root
        return float(share.diagonal().max()), float(np.sum(share**2))


class DiagonalControlVariate:
    """A is diagonal, but for directions that are known to change no probability.

    Along such a direction, sum_k s_k theta_k with signs s, the gradient is the prior's alone. Its
    share is c_k = lambda_k / sum lambda, and the rest of each coordinate has beta_k as its own:

        beta_k (theta_k g_k + 1) + (1 - beta_k) c_k (s_k theta_k sum_j s_j g_j + 1)

    Parameters
    ----------
    posterior : ModelPosterior
    theta : array of shape (1, D)
        Where the information of the data is measured.
    null : sequence of NullDirections
    """

    def __init__(
        self, posterior: ModelPosterior, theta: NDArray, null: Sequence[NullDirections]
    ) -> None:
        rows = evenly_spaced(posterior.n_rows, _DIAGONAL_ROWS)
        self._information = posterior.information(theta, rows, DIAGONAL).diagonal()
        self._prior = posterior.prior.curvature(theta).diagonal()
        self._null = null

    def term(self, posterior: ModelPosterior, theta: NDArray, gradient: NDArray) -> NDArray:
        """As in `MatrixControlVariate`."""
        prior = posterior.prior.curvature(theta).diagonal()
        theta = theta - posterior.prior.mean
        beta = prior / (self._information + prior)
        term = beta * (theta * gradient + 1)
        for coordinates, signs in self._null:
            of_prior = prior[coordinates]
            share = of_prior / of_prior.sum(axis=1, keepdims=True)  # (directions, members)
            along = (signs * gradient[:, coordinates]).sum(axis=2, keepdims=True)
            rest = (1 - beta[coordinates]) * share
            term[:, coordinates] += rest * (signs * theta[:, coordinates] * along + 1)
        return term

    def shares(self, block: NDArray) -> tuple[float, float]:
        """As in `MatrixControlVariate`."""
        share = self._information[block] / (self._information[block] + self._prior[block])
        return float(share.max()), float(np.sum(share**2))


ControlVariate = MatrixControlVariate | DiagonalControlVariate
"""A term of mean zero for each parameter, and what the data know of it."""


class _Path(NamedTuple):
    """The path of the precisions of one group of chains."""

    log_precision: NDArray  # (updates, blocks)
    state: State
    stein: SteinSums  # since the last restart, of the second half
    uninformed: NDArray  # whether the data say nothing, under the first precision, (blocks,)


@dataclass(frozen=True, eq=False)
class StochasticEM:
    """Variational EM whose expectations are means over the steps of chains.

    Parameters
    ----------
    em : VariationalEM
    sampler : Sampler
    blocks : dict of str to array
        Coordinates of each block, by label.
    length : RunLength
        Sampler steps under the first precisions, and per update.
    kind : function, default=MatrixControlVariate
        Measures a `ControlVariate` of a posterior at a point (1, D).
    """

    em: VariationalEM
    sampler: Sampler
    blocks: dict[str, NDArray]
    length: RunLength
    kind: Callable[[ModelPosterior, NDArray], ControlVariate] = MatrixControlVariate

    def path(self, target: Target, state: State) -> _Path:
        """Move one group of chains, and its precisions with it. `state` is copied."""
        em, sampler, state = self.em, self.sampler, copy.deepcopy(state)
        members = _Members.of(self.blocks, target.prior.unit)
        initial = target.prior.precision
        rho = np.log(members.mean(initial / target.prior.unit))
        path = np.empty((em.n_updates, len(rho)))
        shape, rate = (0.0, 0.0) if em.hyperprior is None else em.hyperprior
        thin = self.length.thin
        with one_thread(), np.errstate(over="ignore", invalid="ignore"):
            burn(sampler, target, state, self.length.burn_in)
            control = self.control_variate(target, state)
            stein = SteinSums(target.coordinates.inverse_transform(state.theta))
            largest = [control.shares(block)[0] for block in self.blocks.values()]
            for t in range(em.n_updates):
                if t >= _FEWEST_UPDATES and time_is_up():
                    path = path[:t]
                    break
                if t in restarts(em.n_updates):
                    sampler.restart(state, target)
                    control = self.control_variate(target, state)
                    stein = SteinSums(target.coordinates.inverse_transform(state.theta))
                # over the steps of an update, each parameter's scaled square minus 1, with its
                # control variate
                excess, coordinates = np.zeros(target.dim), affine(target.coordinates)
                for block in iterate_steps(sampler, target, state, thin):
                    thetas = coordinates.inverse_transform(block.thetas)
                    gradients = coordinates.pushforward(block.gradients)
                    for theta, gradient in zip(thetas, gradients, strict=True):
                        square = target.prior.scaled_squares(theta) - 1
                        square = square + control.term(target.posterior, theta, gradient)
                        excess += square.mean(axis=0)
                        stein.add(theta[None], gradient[None])
                of_hyperprior = 2 * (rate * np.exp(rho) - shape) / members.sizes
                now = members.mean(excess) / thin + of_hyperprior
                step = np.clip(em.pace(t) * now, -_LONGEST_MOVE, _LONGEST_MOVE)
                rho = path[t] = np.clip(rho - step, *np.log(BOUNDS))
                precision = members.spread(np.exp(rho), initial)
                target = target.with_prior(target.prior.with_precision(precision))
                sampler.change_prior(state, target)
        return _Path(path, state, stein, np.array(largest) < NO_INFORMATION)

    def control_variate(self, target: Target, state: State) -> ControlVariate:
        """The control variate at the point of the first chain."""
        return self.kind(target.posterior, target.coordinates.inverse_transform(state.theta[:1]))


def fit_prior(
    following: StochasticEM, target: Target, states: list[State], n_jobs: int | None = None
) -> tuple[LearnedPrecision, list[State]]:
    """Burn in, then let the precisions of blocks follow the chains.

    Every group of chains has a path of its own, with excesses averaged over its chains. The result
    is the mean over groups of log precision. So groups run in parallel, and their disagreement
    measures the Monte Carlo error.

    Parameters
    ----------
    following : StochasticEM
    target : Target
        Under the first precisions. Precisions outside the blocks do not change.
    states : list of State
        The groups of chains; copied.
    n_jobs : int, optional
        Processes (joblib); the result does not depend on it.

    Returns
    -------
    LearnedPrecision
    list of State
        Where the chains stopped.

    Raises
    ------
    FloatingPointError
        If a chain diverges.
    """
    em, blocks = following.em, following.blocks
    paths: list[_Path] = in_parallel(
        partial(following.path, target), states, n_jobs, elements_of_step(target, states)
    )
    n_updates = min(len(path.log_precision) for path in paths)
    cut_short("updates of the prior precision", n_updates, em.n_updates)
    # (groups, updates, blocks)
    log_precisions = np.stack([path.log_precision[:n_updates] for path in paths])
    half, three_quarters = n_updates // 2, 3 * n_updates // 4
    of_group = log_precisions[:, half:].mean(axis=1)
    path = log_precisions.mean(axis=0)
    values = np.exp(of_group.mean(axis=0))
    members = _Members.of(blocks, target.prior.unit)
    precision = members.spread(values, target.prior.precision)
    moved = np.abs(path[three_quarters:].mean(axis=0) - path[half:three_quarters].mean(axis=0))
    final = target.with_prior(target.prior.with_precision(precision))
    for p in paths:
        following.sampler.change_prior(p.state, final)
    # Standard deviation of log precision, from the expected curvature of the log evidence: half the
    # sum of the squared shares of the data (math/priors.md#learning-the-prior). And the Stein ratio
    # of each block, with a bound of its error by chance from the spread of the chains (Student's t,
    # Bonferroni).
    control = following.control_variate(final, paths[0].state)
    stein_of_chains = stein_ratios([p.stein for p in paths])  # (chains, D)
    n_chains, of_blocks, uncertainty = len(stein_of_chains), [], []
    for block in blocks.values():
        of_blocks.append(stein_of_chains[:, block].mean(axis=1))
        largest, squares = control.shares(block)
        uncertainty.append(np.inf if largest < NO_INFORMATION else (0.5 * squares) ** -0.5)
    stein: NDArray = np.stack(of_blocks, axis=1)
    stein_error = np.full(len(blocks), np.inf)
    if n_chains > 1:
        by_chance = stdtrit(n_chains - 1, 1 - 1e-3 / (2 * len(blocks)))
        stein_error = stein.std(axis=0, ddof=1) / np.sqrt(n_chains) * by_chance
    learned = LearnedPrecision(
        list(blocks),
        values,
        np.exp(path),
        precision,
        paths[0].uninformed,
        None,
        np.maximum(moved, np.ptp(of_group, axis=0) / 2),
        np.array(uncertainty),
        stein.mean(axis=0),
        stein_error,
        em.per == "feature",
        em.hyperprior is not None,
        True,
    )
    return learned, [p.state for p in paths]
