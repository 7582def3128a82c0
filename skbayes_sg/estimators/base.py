"""What all estimators share: parameters, start, sampling, verdict."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from skbayes_sg import diagnostics
from skbayes_sg.chains import Chain, run_chains, start_chains
from skbayes_sg.control_variates import AnchoredPosterior
from skbayes_sg.empirical_bayes import Learned, VariationalEM, fit_prior
from skbayes_sg.estimators.checks import columns_without_numbers, require_integer
from skbayes_sg.linalg import Diag
from skbayes_sg.mode import Mode, posterior_mean
from skbayes_sg.pilots import choose_alpha, raise_alpha
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import HMC, IASG, SGD, SGFS, SGLD, ConstantSGD, MomentumSGD, Sampler, State
from skbayes_sg.samplers.base import NoGainError

SAMPLERS: dict[str, type[Sampler]] = {
    "sgfs": SGFS,
    "sgld": SGLD,
    "sgd": SGD,
    "constant_sgd": ConstantSGD,
    "momentum_sgd": MomentumSGD,
    "iasg": IASG,
    "hmc": HMC,
}

R_HAT_LIMIT = 1.05
_ROUNDS = 4
_THROWN = 2.0  # Stein ratio of chains that left the Gaussian regime
_FAR_FROM_ANCHOR = 0.1  # in squared posterior standard deviations per parameter
ESS_LIMIT = 100  # a standard deviation from 100 draws is good to 7 %
STEIN_LIMIT = 0.1


class BayesianEstimator(BaseEstimator):
    """Samples a posterior. Subclasses bind model and data and read their parameters off the draws."""

    # constructor parameters that subclasses set
    sampler: Any
    prior_precision: Any
    n_chains: int
    n_draws: int | str
    burn_in: int | str
    thin: int | str
    warm_start: bool
    n_jobs: int | None
    random_state: Any

    _may_be_auto: tuple[str, ...] = ("burn_in", "thin")
    _draw_dtype: type = np.float64

    # set by fit
    states_: list[State]
    sampler_: Sampler
    sampler_reason_: str
    model_: Any
    prior_precision_path_: NDArray
    prior_precision_blocks_: list[str]
    _anchor: Mode | None
    draws_: NDArray
    draw_weights_: NDArray
    diagnostics_: dict[str, float]
    _learned: Learned | None = None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- data ---------------------------------------------------------------------------------------

    def _validate_data(self, X, y="no_validation", reset: bool = True, **more):
        """X as float32 or float64, dense in C order or CSR, without a copy where it is that already (and y).

        C order because rows are gathered; data frames come in Fortran order.
        """
        kinds = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}
        try:
            return validate_data(self, X, y, reset=reset, **kinds, **more)
        except (ValueError, TypeError) as error:
            columns = columns_without_numbers(X)
            if columns:
                raise ValueError(
                    f"X holds text or dates in column(s) {', '.join(map(repr, columns))}; encode them first, "
                    "for example with OneHotEncoder in a ColumnTransformer"
                ) from error
            raise

    def _check_predict(self, X):
        check_is_fitted(self)
        return self._validate_data(X, reset=False)

    # -- parameters ---------------------------------------------------------------------------------

    def _validate_run_length(self) -> None:
        for name, least in {"n_chains": 1, "n_draws": 4, "burn_in": 0, "thin": 1}.items():
            value, may_be_auto = getattr(self, name), name in self._may_be_auto
            if not (may_be_auto and isinstance(value, str) and value == "auto"):
                require_integer(name, value, least, ' or "auto"' if may_be_auto else "")

    def _resolve_sampler(self, posterior: Posterior) -> Sampler:
        """The sampler to use: a clone of the given one, one by name, or the best default."""
        if self.sampler is None:
            return self._default_sampler(posterior)
        if isinstance(self.sampler, str):
            if self.sampler not in SAMPLERS:
                raise ValueError(f"sampler must be one of {sorted(SAMPLERS)} or an instance, got {self.sampler!r}")
            return SAMPLERS[self.sampler]()
        if not isinstance(self.sampler, Sampler):
            raise TypeError(
                f"sampler must be a Sampler instance, a name out of {sorted(SAMPLERS)} or None, got {self.sampler!r}"
            )
        return clone(self.sampler)

    def _default_sampler(self, posterior: Posterior) -> Sampler:
        raise NotImplementedError

    def _seed(self) -> np.random.SeedSequence:
        """128 bits from `random_state`: an int, None, a RandomState, or a Generator."""
        if isinstance(self.random_state, np.random.Generator):
            return np.random.SeedSequence(self.random_state.integers(2**32, size=4, dtype=np.uint32).tolist())
        bits = check_random_state(self.random_state).randint(2**32, size=4, dtype=np.uint32)
        return np.random.SeedSequence(bits.tolist())

    # -- sampling -----------------------------------------------------------------------------------

    def _start(self, posterior: Posterior, rng: np.random.Generator) -> Mode:
        raise NotImplementedError

    def _sample(self, posterior: Posterior) -> None:
        """Run the chains and set every fitted attribute that does not depend on the model."""
        asked = self._resolve_sampler(posterior)
        asked.validate(posterior)
        about = self._fingerprint(posterior) if self.warm_start else None
        resume = about is not None and self._same(asked, about)
        if resume:
            sampler, states, burn_in, start_passes = self.sampler_, self.states_, 0, 0.0
            posterior = self._under(sampler, self._with_learned_prior(posterior))
        else:
            with threadpool_limits(1, "blas"):  # passes over blocks: two threads take three times as long as one
                sampler, posterior, states, start_passes = self._begin(asked, posterior)
            burn_in = self._burn_in_of(sampler, states[0])
            for state in states:
                if burn_in == 0 and state.t > 0:  # it comes from pilots, or from learning the prior
                    sampler.freeze(state, posterior)
        touched_before = sum(sampler.rows_touched(state) for state in states)
        thin = self._thin_of(sampler, states[0])
        n_draws = self._draws_to_keep(posterior.dim)
        length = {"n_draws": n_draws, "burn_in": burn_in, "thin": thin}
        chains = run_chains(sampler, posterior, states, **length, n_jobs=self.n_jobs, dtype=self._draw_dtype)
        self._about, self._asked, self._asked_em = about, asked, repr(self._em())
        self.sampler_ = sampler
        self.states_ = [chain.state for chain in chains]
        self.draws_ = np.concatenate([chain.draws for chain in chains])
        if not chains[0].weights.any():
            raise ValueError("no draw falls into the part of a cycle that counts; raise n_draws, or change thin")
        self.draw_weights_ = chains[0].weights / chains[0].weights.sum()
        self.n_iter_ = self.states_[0].t
        passes = (sum(sampler.rows_touched(state) for state in self.states_) - touched_before) / posterior.n_rows
        self.n_passes_ = start_passes + passes
        kept = n_draws * thin / (n_draws * thin + burn_in)
        self._judge(posterior, chains, kept_passes=kept * passes)

    def _begin(self, asked: Sampler, posterior: Posterior) -> tuple[Sampler, Posterior, list[State], float]:
        """Chains ready to burn in, under the prior that is given or learned here."""
        em, seed = self._em(), self._seed()
        self._learned = None
        for name in ("prior_precision_path_", "prior_precision_blocks_"):
            self.__dict__.pop(name, None)
        blocks = {} if em is None else self.model_.prior_blocks(em.per)
        sampler, bound, states, passes = self._new_states(asked, posterior, seed)
        if em is None:
            return sampler, bound, states, passes
        paths = []
        for _ in range(_ROUNDS):  # one, unless an anchor was far from where the precision led
            length = {"burn_in": self._burn_in_of(sampler, states[0]), "thin": self._thin_of(sampler, states[0])}
            learned = fit_prior(em, sampler, bound, states, blocks, **length, n_jobs=self.n_jobs)
            passes += self._pilot_passes(sampler, posterior, learned.states)
            passes -= self._pilot_passes(sampler, posterior, states)
            if self._anchor is not None and self.sampler is None and not learned.stein.max() < _THROWN:
                asked = self._plain_sampler(posterior, heavy=True)
                sampler, bound, states, more = self._new_states(asked, posterior, seed)
                passes += more
                self.sampler_reason_ = "control variates threw the chains while the prior was learned"
                continue
            self._learned = learned
            paths.append(learned.path)
            posterior = self._with_learned_prior(posterior)
            if self._anchor is None:
                bound, states = posterior, learned.states
                break
            anchor = self._anchor
            sampler, bound, states, more = self._new_states(asked, posterior, seed)
            passes += more
            if self._anchor is None or _distance(anchor, self._anchor) < _FAR_FROM_ANCHOR:
                break
        self.prior_precision_path_, self.prior_precision_blocks_ = np.concatenate(paths), list(blocks)
        return sampler, bound, states, passes

    def _em(self) -> VariationalEM | None:
        """How the prior precision is to be learned; None if it is given."""
        if isinstance(self.prior_precision, str) and self.prior_precision == "em":
            return VariationalEM()
        if not isinstance(self.prior_precision, VariationalEM):
            return None
        self.prior_precision.validate()
        return self.prior_precision

    def _with_learned_prior(self, posterior: Posterior) -> Posterior:
        return posterior if self._learned is None else posterior.with_prior(self._learned.precision)

    def _burn_in_of(self, sampler: Sampler, state: State) -> int:
        return sampler.auto_burn_in(state) if self.burn_in == "auto" else int(self.burn_in)

    def _thin_of(self, sampler: Sampler, state: State) -> int:
        return sampler.auto_thin(state) if self.thin == "auto" else int(self.thin)

    def _draws_to_keep(self, dim: int) -> int:
        """Per chain."""
        return int(self.n_draws)

    def _fingerprint(self, posterior: Posterior) -> NDArray:
        """The gradient of the log posterior at a random point: one pass over the data.

        It changes with every row, label, weight and prior precision.
        """
        somewhere = np.random.default_rng(0).standard_normal((1, posterior.dim))
        with np.errstate(over="ignore", invalid="ignore"):
            return np.append(posterior.full_gradient(somewhere), posterior.n_rows)

    def _same(self, sampler: Sampler, about: NDArray) -> bool:
        """Whether a warm start can go on as if the last fit had never stopped."""
        before = getattr(self, "_about", None)
        return (
            before is not None
            and before.shape == about.shape
            and np.allclose(about, before, rtol=1e-9, atol=0.0)
            and self._asked_em == repr(self._em())
            and sum(len(state.theta) for state in self.states_) == self.n_chains
            and same_parameters(sampler, self._asked)
        )

    def _new_states(
        self, asked: Sampler, posterior: Posterior, seed: np.random.SeedSequence
    ) -> tuple[Sampler, Posterior, list[State], float]:
        """Settled sampler, its posterior, and chains, over-dispersed around the mode or where the last fit stopped."""
        start_seed, chain_seed = seed.spawn(2)
        rng = np.random.default_rng(start_seed)
        mode = self._start(posterior, rng)
        spread = mode.curvature.inverse().cholesky()
        # without correlations twice as wide is far out, where matrices are not those that the chain will need
        factor = 1.0 if isinstance(mode.curvature, Diag) else 2.0
        theta = mode.theta + factor * spread.matvec(rng.standard_normal((self.n_chains, posterior.dim)))
        theta = self._last_positions(posterior.dim, theta)
        sampler, posterior = self._settled(asked, posterior, mode)
        states = self._chains(sampler, asked, posterior, theta, chain_seed)
        refuse_unstable(sampler, posterior, states[0])
        passes = mode.passes if self._anchor is None else self._anchor.passes + 1
        return sampler, posterior, states, passes + self._pilot_passes(sampler, posterior, states)

    def _chains(
        self, sampler: Sampler, asked: Sampler, posterior: Posterior, theta: NDArray, seed: np.random.SeedSequence
    ) -> list[State]:
        """Chains at theta; where alpha is open and correlations are dropped, at the end of the pilots that set it.

        With the default for many parameters, alpha is raised until the step is stable.
        """
        if not (isinstance(asked, SGFS) and isinstance(asked.alpha, str) and asked.structure != "full"):
            states = start_chains(sampler, posterior, theta, seed)
            if self.sampler is None and isinstance(sampler, SGFS) and sampler.structure == "kron":
                alpha = raise_alpha(sampler, posterior, states)
                self.sampler_reason_ += f"; alpha={alpha:g} is stable"
            return states
        sampler.alpha, ratio, states = choose_alpha(sampler, posterior, theta, seed, self.n_jobs)
        self.sampler_reason_ += f"; alpha={sampler.alpha:g} by the Stein ratio of short runs, {ratio:.2f}"
        return states

    @staticmethod
    def _pilot_passes(sampler: Sampler, posterior: Posterior, states: list[State]) -> float:
        """What new chains have read before they burn in."""
        return sum(sampler.rows_touched(state) for state in states) / posterior.n_rows

    def _last_positions(self, dim: int, otherwise: NDArray) -> NDArray:
        """Where the chains of the last fit are, if a warm start can go on there."""
        states = getattr(self, "states_", [])
        if self.warm_start and states and states[0].theta.shape[1] == dim:
            last = np.concatenate([state.theta for state in states])
            return last if len(last) == self.n_chains else otherwise
        return otherwise

    def _last_mean(self, otherwise: NDArray) -> NDArray:
        """The mean of these positions (1, D), from where the mode is not far; else the given point."""
        last = self._last_positions(otherwise.shape[1], otherwise)
        return otherwise if last is otherwise else last.mean(axis=0, keepdims=True)

    def _settled(self, asked: Sampler, posterior: Posterior, mode: Mode) -> tuple[Sampler, Posterior]:
        """The sampler with nothing left open, and the posterior that estimates gradients in the way it asks for."""
        sampler = clone(asked)
        self._anchor = self._anchor_near(posterior, mode) if asked.variance_reduction else None
        try:
            anchored = self._under(sampler, posterior)
            sampler.settle(anchored)
            self.sampler_reason_ = self._reason(sampler, posterior)
            return sampler, anchored
        except NoGainError as no_gain:
            if self.sampler is not None:
                raise
            plain = self._plain_sampler(posterior, no_gain.heavy)
            plain.settle(posterior)
            self._anchor, self.sampler_reason_ = None, str(no_gain)
            return plain, posterior

    def _under(self, sampler: Sampler, posterior: Posterior) -> Posterior:
        """The posterior, anchored at the mode of this fit if the sampler asks for control variates."""
        if sampler.variance_reduction is None:
            return posterior
        assert self._anchor is not None
        return AnchoredPosterior(posterior, self._anchor.theta, self._anchor.curvature)

    @staticmethod
    def _anchor_near(posterior: Posterior, mode: Mode) -> Mode:
        """The posterior mean as nearly as the Laplace approximation tells, with a full curvature."""
        if isinstance(mode.curvature, Diag):
            mode = mode._replace(curvature=posterior.expand(mode.theta, "full").curvature)
        return posterior_mean(posterior, mode)

    def _reason(self, sampler: Sampler, posterior: Posterior) -> str:
        """Why this sampler."""
        raise NotImplementedError

    def _plain_sampler(self, posterior: Posterior, heavy: bool) -> Sampler:
        """Where the default does not pay."""
        raise NotImplementedError

    # -- verdict ------------------------------------------------------------------------------------

    def _judge(self, posterior: Posterior, chains: list[Chain], kept_passes: float) -> None:
        """Set `diagnostics_` and warn with figure and knob."""
        stein, stein_se = diagnostics.stein_ratio_of_sums([chain.stein for chain in chains])
        self.diagnostics_ = self._of_draws(posterior)
        self.diagnostics_ |= {
            "ess_per_pass": self.diagnostics_["ess_min"] / kept_passes,
            "stein_ratio": stein if self.sampler_.draws_are_points else np.nan,
            "stein_se": stein_se if self.sampler_.draws_are_points else np.nan,
        }
        figures = [self.sampler_.figures(chain.state) for chain in chains]
        self.diagnostics_ |= {name: float(np.mean([f[name] for f in figures])) for name in figures[0]}
        each = [self.sampler_.complaints(chain.state) for chain in chains]
        complaints = max(each, key=len)  # the groups say the same, each with figures of its own
        if self._learned is not None:
            complaints = [*complaints, *self._learned.complaints()]
        for complaint in dict.fromkeys([*complaints, *self._complaints()]):
            warnings.warn(complaint, ConvergenceWarning, stacklevel=4)

    def _of_draws(self, posterior: Posterior) -> dict[str, float]:
        """What the draws say of themselves."""
        r_hat, ess = diagnostics.r_hat_and_ess_bulk(self.draws_)
        return {
            "r_hat_max": float(np.max(r_hat)),
            "ess_min": float(np.min(ess)),
            "ess_tail_min": float(np.min(diagnostics.ess_tail(self.draws_))),
        }

    def _complaints(self) -> list[str]:
        """What `diagnostics_` must be told of, figure and knob."""
        found, complaints = self.diagnostics_, []
        if not found["r_hat_max"] <= R_HAT_LIMIT:
            complaints.append(
                f"r_hat_max is {found['r_hat_max']:.3f}, above {R_HAT_LIMIT}: the chains do not agree; "
                "raise burn_in, or n_draws and thin"
            )
        if found["ess_min"] < ESS_LIMIT:
            complaints.append(
                f"ess_min is {found['ess_min']:.0f}, below {ESS_LIMIT}: too few effective draws; raise n_draws or thin"
            )
        return [*complaints, *self._stein_complaint()]

    def _stein_complaint(self) -> list[str]:
        """A Stein ratio that is not 1."""
        ratio, se = self.diagnostics_["stein_ratio"], self.diagnostics_["stein_se"]
        off = abs(ratio - 1.0)
        if not off > STEIN_LIMIT or off < 4 * se:
            return []
        return [
            f"stein_ratio is {ratio:.3f}, not 1 within {STEIN_LIMIT}: posterior variances are too "
            f"{'large' if ratio > 1 else 'small'}, on average over directions; {self.sampler_.bias_remedy}"
        ]

    def to_arviz(self):
        """The draws as an ArviZ data tree (needs the extra ``arviz``).

        Returns
        -------
        xarray.DataTree
            Group "posterior" with one variable per parameter block, dimensions (chain, draw, ...).

        Raises
        ------
        ImportError
            If arviz-base is not installed; says how to.
        """
        check_is_fitted(self)
        try:
            from arviz_base import from_dict
        except ImportError as error:
            raise ImportError('to_arviz needs arviz-base: pip install "skbayes_sg[arviz]"') from error
        return from_dict({"posterior": self.model_.unpack(self.draws_)})

    def _flat_draws(self, dtype: np.dtype) -> tuple[NDArray, NDArray]:
        """All draws (S, D) and their weights (S,), summing to 1."""
        draws = self.draws_.reshape(-1, self.draws_.shape[-1]).astype(dtype, copy=False)
        n_chains = self.draws_.shape[0]
        return draws, np.tile(self.draw_weights_ / n_chains, n_chains)


def _distance(anchor: Mode, other: Mode) -> float:
    """Squared distance in posterior standard deviations, per parameter."""
    shift = other.theta - anchor.theta
    return float(np.sum(shift * other.curvature.matvec(shift))) / shift.size


def refuse_unstable(sampler: Sampler, posterior: Posterior, state: State) -> None:
    """Raise ValueError, with the spectral radius and the remedy, for a step that does not settle on these data."""
    radius = sampler.spectral_radius(copy.deepcopy(state), posterior)
    if radius >= 1:
        raise ValueError(
            f"{sampler} is unstable on these data: the spectral radius of its step is {radius:.3g}, not below 1; "
            f"{sampler.remedy}"
        )


def same_parameters(a: Sampler, b: Sampler) -> bool:
    """Whether two samplers are the same formula with the same parameters."""
    ours, theirs = a.get_params(), b.get_params()
    return type(a) is type(b) and all(np.array_equal(ours[name], theirs[name]) for name in ours)
