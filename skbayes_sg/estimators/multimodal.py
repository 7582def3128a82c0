"""Classifiers whose posterior has many modes: where their chains start, and how they are judged."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skbayes_sg import diagnostics
from skbayes_sg.estimators.base import R_HAT_LIMIT, STEIN_LIMIT
from skbayes_sg.estimators.checks import column_squares, real_array
from skbayes_sg.estimators.classifier import BayesianClassifier
from skbayes_sg.linalg import Diag
from skbayes_sg.mode import Mode
from skbayes_sg.posterior import Posterior
from skbayes_sg.rows import row_blocks
from skbayes_sg.samplers import HMC, SGFS, Sampler, State

_MOST_DRAWS = 50  # per chain
_DRAW_BYTES = 1 << 28  # what the draws of all chains may take by default
_MANY_BYTES = 1 << 30  # above this the user is told
_JUDGED_ROWS = 100
_MATTERS = 0.01  # a probability known to one per cent needs no more agreement
_BETWEEN_LIMIT = 0.5
_FAR_INPUT = 1e3
_FEW_PRODUCTS = 1e7
_EXPONENTIAL = 20  # what one costs in products


class MultimodalClassifier(BayesianClassifier):
    """Chains start from independent random points, and are compared by what they predict.

    Weights of hidden units have no meaning of their own: units can change places, and modes differ in more
    than that. So R-hat and effective sizes are those of predictive probabilities and of the log posterior.
    """

    prior_precision: ArrayLike | str
    _input_square: float
    _may_be_auto = ("n_draws", "burn_in", "thin")
    _draw_dtype = np.float32
    _injected = "precision"  # B of the default SGFS

    # -- parameters ---------------------------------------------------------------------------------

    def _draws_to_keep(self, dim: int) -> int:
        """Per chain: as asked, or 50 and less where that would take more than 256 MB."""
        of_each = self.n_chains * dim * np.dtype(self._draw_dtype).itemsize
        if self.n_draws == "auto":
            return max(4, min(_MOST_DRAWS, _DRAW_BYTES // of_each))
        n_draws = super()._draws_to_keep(dim)
        if n_draws * of_each > _MANY_BYTES:
            warnings.warn(
                f"{self.n_chains} chains of {n_draws} draws of {dim} parameters take {n_draws * of_each / 1e9:.1f} GB "
                'of memory; lower n_draws, or set n_draws="auto"',
                UserWarning,
                stacklevel=5,
            )
        return n_draws

    def _prior(self, X, weight: NDArray | None) -> NDArray:
        """Prior precision of every parameter: by the scale of the inputs, or one number, or one per group of blocks.

        Where it is to be learned, the one to start from is by scale.
        """
        learned = self._em() is not None
        if learned or isinstance(self.prior_precision, str):
            if not learned and self.prior_precision != "scale":
                raise ValueError(f'prior_precision must be "scale", "em" or numbers, got {self.prior_precision!r}')
            if self._stream is None:  # a stream keeps the scale of its first chunk
                self._input_square = max(column_squares(X, weight).sum(), np.finfo(np.float32).tiny)
            return self.model_.reference_precision(self._input_square)
        groups = self.model_.groups
        precision = real_array("prior_precision", self.prior_precision)
        if precision.shape not in ((), (len(groups),)):
            named = ", ".join("+".join(group) for group in groups)
            raise ValueError(
                f"prior_precision must be one number or {len(groups)}, for {named}; got {self.prior_precision!r}"
            )
        if not (np.isfinite(precision).all() and precision.min() > 0):
            raise ValueError(f"prior_precision must be positive and finite, got {self.prior_precision!r}")
        of_group = zip(groups, np.broadcast_to(precision, len(groups)), strict=True)
        return self.model_.spread({name: value for group, value in of_group for name in group})

    def _resolve_sampler(self, posterior: Posterior) -> Sampler:
        sampler = super()._resolve_sampler(posterior)
        if sampler.variance_reduction is not None:
            raise ValueError(
                f'sampler: variance_reduction="{sampler.variance_reduction}" needs one mode to anchor at, which '
                f"{type(self).__name__} does not have; set it to None"
            )
        return sampler

    def _bind(self, X, y: NDArray, weight: NDArray | None, n_total: float | None = None) -> Posterior:
        """Few rows are merged: chains that forget nothing of a rounding error then see weights as repetitions."""
        posterior = super()._bind(X, y, weight, n_total)
        if n_total is not None or not self._few(posterior) or self.sampler is not None:
            return posterior
        posterior = posterior.merged()
        return posterior.with_prior(self._prior(posterior.X, posterior.sample_weight))

    def _few(self, posterior: Posterior) -> bool:
        """Whether a gradient from all rows costs some milliseconds at most."""
        return posterior.n_rows * max(posterior.dim, _EXPONENTIAL * self.model_.widest) <= _FEW_PRODUCTS

    def _default_sampler(self, posterior: Posterior) -> Sampler:
        return HMC(structure="diag", single_gradients=True) if self._few(posterior) else self._stream_sampler()

    def _stream_sampler(self) -> Sampler:
        """Noise is injected in proportion to the curvature: the scores of a network that fits its labels vanish."""
        return SGFS(structure="diag", B=self._injected)

    def _reason(self, sampler: Sampler, posterior: Posterior) -> str:
        if self.sampler is not None:
            return "as given"
        size = f"{posterior.n_rows} rows times {posterior.dim} parameters"
        if isinstance(sampler, HMC):
            return f"{size} are so few that all rows at every step, and exactness, cost little"
        return f"{size} are too many for gradients of all rows"

    # -- sampling -----------------------------------------------------------------------------------

    def _start(self, posterior: Posterior, rng: np.random.Generator) -> Mode:
        """A random point; its fall-off is the prior's."""
        return Mode(self.model_.init(rng), Diag(posterior.prior_precision), 0.0)

    def _new_states(
        self, asked: Sampler, posterior: Posterior, seed: np.random.SeedSequence
    ) -> tuple[Sampler, Posterior, list[State], float]:
        """Chains at random points of their own, or where the last fit stopped."""
        self._look_at_scale(posterior)
        start_seed, chain_seed = seed.spawn(2)
        rng = np.random.default_rng(start_seed)
        theta = np.concatenate([self._start(posterior, rng).theta for _ in range(self.n_chains)])
        sampler = clone(asked)
        sampler.settle(posterior)
        self._anchor = None
        self.sampler_reason_ = self._reason(sampler, posterior)
        theta = self._last_positions(posterior.dim, theta)
        states = self._chains(sampler, asked, posterior, theta, chain_seed)
        return sampler, posterior, states, self._pilot_passes(sampler, posterior, states)

    def _look_at_scale(self, posterior: Posterior) -> None:
        """Warn of columns whose values saturate every hidden unit."""
        some = posterior.take(slice(0, 1000))
        far = np.abs(some).max(axis=0)
        if far.max() > _FAR_INPUT:
            column = int(far.argmax())
            name = getattr(self, "feature_names_in_", range(len(far)))[column]
            warnings.warn(
                f"column {name!r} of X holds values up to {far[column]:.3g}, which saturate the hidden units; scale "
                "the columns, for example by StandardScaler",
                ConvergenceWarning,
                stacklevel=6,
            )

    def _read_off(self, posterior: Posterior) -> None:
        self.prior_precision_ = np.array(posterior.prior_precision)

    # -- verdict ------------------------------------------------------------------------------------

    def _of_draws(self, posterior: Posterior) -> dict[str, float]:
        """Agreement of the chains on a hundred of the rows: their probabilities, and the log posterior from them."""
        rows = np.unique(np.linspace(0, posterior.n_rows - 1, _JUDGED_ROWS).astype(int))
        weight = None if posterior.sample_weight is None else posterior.sample_weight[rows]
        few = Posterior(
            self.model_, posterior.take(rows), posterior.y[rows], posterior.prior_precision, weight, posterior.n_total
        )
        draws = self._counting_draws().reshape(-1, self.draws_.shape[-1])
        blocks = row_blocks(len(draws), 4 * self.model_.row_size * len(rows))
        log_prob = np.concatenate([few.log_prob(draws[block].astype(np.float64)) for block in blocks])
        return self._agreement(few.X, log_prob)

    def _counting_draws(self) -> NDArray:
        """Without those that a cyclical step size gives no weight."""
        return self.draws_ if self.draw_weights_.all() else self.draws_[:, self.draw_weights_ > 0]

    def diagnose(self, X) -> dict[str, float]:
        """How far the chains agree on the class probabilities of X, for example of held-out rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Some hundred rows are enough.

        Returns
        -------
        dict of str to float
            ``r_hat_max``, ``ess_min``, ``ess_tail_min`` over the probabilities whose posterior standard deviation is
            above 0.01 (NaN if there are none), and ``between_chains``: the share of the probabilities' variance
            that lies between chains. 0 means that they sample one law; near 1 each sits in a mode of its own.
        """
        X = self._check_predict(X)
        return self._agreement(X, None)

    def _agreement(self, X, log_prob: NDArray | None) -> dict[str, float]:
        counting = self._counting_draws()
        draws = counting.reshape(-1, counting.shape[-1]).astype(X.dtype, copy=False)
        p = np.concatenate([p.reshape(len(p), -1) for _, p in self._probabilities(X, draws)], axis=1)
        p = p[:, p.std(axis=0) > _MATTERS].reshape(*counting.shape[:2], -1)
        between, within = p.mean(axis=1).var(axis=0).sum(), p.var(axis=1).mean(axis=0).sum()
        share = between / (between + within) if p.size and between + within > 0 else 0.0
        if log_prob is not None:
            p = np.concatenate([p, log_prob.reshape(*p.shape[:2], 1)], axis=2)
        if not p.size or p.shape[1] < 4:
            return {"r_hat_max": np.nan, "ess_min": np.nan, "ess_tail_min": np.nan, "between_chains": float(share)}
        r_hat, ess = diagnostics.r_hat_and_ess_bulk(p)
        return {
            "r_hat_max": float(np.max(r_hat)),
            "ess_min": float(np.min(ess)),
            "ess_tail_min": float(np.min(diagnostics.ess_tail(p))),
            "between_chains": float(share),
        }

    def _complaints(self) -> list[str]:
        found, complaints = self.diagnostics_, []
        share = found["between_chains"]
        if share > _BETWEEN_LIMIT:
            complaints.append(
                f"{share:.0%} of the variance of the predicted probabilities lies between the chains; "
                "they sit in different modes, and predictions weigh the modes by the number of chains in each; "
                "raise n_chains, or burn_in if the chains still move"
            )
        elif found["r_hat_max"] > R_HAT_LIMIT:
            complaints.append(
                f"r_hat_max of the predicted probabilities and the log posterior is {found['r_hat_max']:.2f}, above "
                f"{R_HAT_LIMIT}: the chains do not agree; raise burn_in, or n_draws and thin"
            )
        ratio = found["stein_ratio"]
        if ratio < 1 - STEIN_LIMIT:
            complaints.append(
                f"stein_ratio is {ratio:.2f}, below 1: the weights have not been through their posterior yet, which "
                "is wider than the draws; raise thin or n_draws"
            )
            return complaints
        return [*complaints, *self._stein_complaint()]
