"""Estimators whose posterior has many modes: their prior, temperature and diagnostics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from skbayes_sg.chains.run import rows_touched
from skbayes_sg.data import InMemory, evenly_spaced, of_columns, row_blocks
from skbayes_sg.diagnostics import agreement
from skbayes_sg.estimators.base import BayesianEstimator, with_offset
from skbayes_sg.inference import diagnose
from skbayes_sg.inference.many_modes import ManyModes
from skbayes_sg.inference.options import Options
from skbayes_sg.inference.result import Fit, Ran
from skbayes_sg.inspection.summary import of_blocks
from skbayes_sg.models import Model
from skbayes_sg.posterior import Posterior
from skbayes_sg.priors import Prior
from skbayes_sg.samplers import Sampler
from skbayes_sg.samplers.base import RunLength
from skbayes_sg.streams.online_chain import ChainStream
from skbayes_sg.validation import real_array, require_bounded, require_positive, warn

_DIAGNOSED_ROWS = 100
_FAR_INPUT = 1e3
_FAR_MEANS = 5.0  # of the columns of X, in their standard deviations
_COLD = 0.05  # the temperature at which chains in many modes predict classes best
_CHAINS, _CHAINS_IN_MODES = 4, 8
_CHAINS_OF_STREAM = 8  # one chain keeps as many draws as each of eight of a fit


@dataclass(eq=False, repr=False)
class Multimodal(BayesianEstimator):
    """Chains start from independent random points, and are compared by their predictions.

    Single weights of hidden units have no meaning, since units can be permuted and modes differ in
    other ways too. So R-hat and effective sizes are those of predictive probabilities and of the
    log posterior.

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(30,)
        Units of each hidden layer.
    activation : {"logistic", "tanh", "relu"}, default="logistic"
        Of the hidden units.
    sampler : Sampler, str or None, default=None
        A sampler, or "sgfs", "sghmc", "sgld", "sgd", "constant_sgd", "momentum_sgd", "iasg" or
        "hmc": in the form that suits a network, with diagonal matrices and short steps (see
        `sampler_reason_`). None: SGHMC in single precision, from modes that its steps without noise
        find first, at a temperature other than 1. At temperature 1 HMC, which is exact in each
        mode, up to 1e7 rows times parameters (or times 20 of the exponentials of a row, if that is
        larger). For more rows "sgfs": SGFS with diagonal matrices; the Stein ratio of short runs
        chooses its alpha.
    prior_precision : "scale", float, array (n_groups,) or VariationalEM, default="scale"
        1 / variance of the normal prior: one number, or one per group of weights and biases, which
        is a layer. "scale" follows the inputs, so that their unit does not matter. A priori the
        weighted sum into a hidden unit has standard deviation 3, and the last layer has precision
        0.01. ``VariationalEM()`` starts from "scale" and learns the precision of each group's
        weights in the sampler; biases keep theirs.
    prior_mean : float or array, default=0.0
        Mean of the normal prior: one number, or one for each entry of `prior_precision`. As hidden
        units can be permuted, a mean other than 0 is seldom useful.
    temperature : float, optional
        T: the likelihood is raised to the power 1/T, so that each row counts as 1/T rows. Only a T
        of 1 is the posterior; below it probabilities are better on curated data
        (math/networks.md#temperature). The default is 0.05, or 1 if a sampler is given or the prior
        is learned.
    n_chains : int or "auto", default="auto"
        Independent chains, each from its own random point, which find at most as many modes. "auto"
        is 8 for the default sampler in modes, else 4.
    n_draws : int or "auto", default="auto"
        Draws kept per chain. A draw takes 4 bytes per parameter. "auto" is 20 for the default
        sampler at a temperature other than 1, else 50, or fewer so that the draws of all chains
        stay below 256 MB. At temperature 1 there are up to sixteen times as many, within these 256
        MB and a minute, until averaged predictions are known (networks.md#at-temperature-1).
    burn_in : int or "auto", default="auto"
        Sampler steps before the first kept draw; see the sampler's `run_length`.
    thin : int or "auto", default="auto"
        Sampler steps per kept draw; see the sampler's `run_length`.

    Attributes
    ----------
    draws_ : float32 array of shape (n_chains, n_draws, dim)
        Posterior draws; ``model_.unpack(draws_)`` gives them by name.
    prior_precision_path_ : array of shape (updates, blocks), where the prior was learned
        Path of the precisions, as geometric means over groups of chains.
    prior_precision_blocks_ : dict of str to float, where the prior was learned
        Learned precision of each block, in the order of the columns of the path.
    diagnostics_ : dict of str to float
        ``r_hat_max``, ``ess_min``, ``ess_tail_min`` of the class probabilities of a hundred rows
        and of the log posterior, because weights of hidden units have no meaning of their own.
        ``between_chains``, the share of the probabilities' variance that lies between chains (near
        1: each chain is in a mode of its own). ``prediction_error``, the standard error of averaged
        probabilities by the choice of the chains. ``prediction_drift``, how far they are from those
        over the second half of the draws. ``prediction_gain``, the log loss of the shares of the
        classes minus theirs, on these rows of the fit. ``temperature``. ``ess_per_pass``.
        ``stein_ratio`` (drawn over wanted variance of the weights about the mean of all chains) and
        its standard error ``stein_se``. At temperature 1 ``information_ratio``, the same where rows
        know the weights best, and ``information_ratio_se``, if there are some 30 draws.
        ``accept_rate`` for HMC.
    """

    _: KW_ONLY
    sampler: Sampler | str | None = None
    prior_precision: ArrayLike | str = "scale"
    prior_mean: ArrayLike = 0.0
    temperature: float | None = None
    categorical_features: Any = "from_dtype"
    n_chains: int | str = "auto"
    n_draws: int | str = "auto"
    burn_in: int | str = "auto"
    thin: int | str = "auto"
    warm_start: bool = False
    n_jobs: int | None = None
    random_state: Any = None

    _injected = "precision"  # B of the default SGFS
    _default_temperature = _COLD

    def _plan(self, twin: Callable[[Fit], Any] | None = None) -> ManyModes:
        def predictions(fit: Fit, posterior: Posterior, n_gradients: int) -> dict[str, float]:
            assert twin is not None
            return agreement_of(twin(fit), posterior, n_gradients)

        return ManyModes(self._injected, self._temperature(), self._in_modes(), predictions)

    # -- parameters ---------------------------------------------------------------------------

    def _temperature(self) -> float:
        """The temperature in numbers: by default Bayes's for a given sampler or a learned prior."""
        if self.temperature is None:
            is_bayes = self.sampler is not None or self._em() is not None
            return 1.0 if is_bayes else self._default_temperature
        require_positive("temperature", self.temperature, "1 is Bayes; below it the fit is colder")
        if self._em() is not None and self.temperature != 1:
            raise ValueError(
                "temperature must be 1 where prior_precision is learned, got "
                f"{self.temperature!r}: a prior is learned from a posterior; give prior_precision "
                "numbers"
            )
        return float(self.temperature)

    def _tempered(self, posterior: Posterior, streaming: bool) -> Posterior:
        """The posterior at the temperature; a stream is at 1 by default."""
        if streaming and self.temperature is None:
            return posterior
        return posterior.tempered(self._temperature())

    def _in_modes(self) -> bool:
        """Whether the default sampler of chains in modes runs."""
        return self.sampler is None and self._temperature() != 1

    def _options(self, dim: int) -> Options:
        options = super()._options(dim)
        if options.n_chains != "auto":
            return options
        return options._replace(n_chains=_CHAINS_IN_MODES if self._in_modes() else _CHAINS)

    def _prior(
        self, model: Any, data: InMemory, classes: NDArray | None = None, streaming: bool = False
    ) -> Prior:
        """Normal, of one mean and one precision, or of one for each group of blocks.

        Or of a precision that follows the scale of the inputs, from which learning starts too. A
        stream keeps that of its first chunk.
        """
        mean = of_groups(model, "prior_mean", self.prior_mean)
        require_bounded("prior_mean", mean)
        learned = self._em() is not None
        if learned or isinstance(self.prior_precision, str):
            if not learned and self.prior_precision != "scale":
                raise ValueError(
                    'prior_precision must be "scale", a VariationalEM or numbers, '
                    f"got {self.prior_precision!r}"
                )
            first = not (streaming and self._stream is not None)
            square = input_square_of(data) if first else self._input_square
            return model.prior(model.reference_precision(square), mean)
        precision = of_groups(model, "prior_precision", self.prior_precision)
        numbers = np.asarray(self.prior_precision, np.float64)
        if not (np.isfinite(numbers).all() and numbers.min() > 0):
            raise ValueError(
                f"prior_precision must be positive and finite, got {self.prior_precision!r}"
            )
        return model.prior(precision, mean)

    def _require_streams(self) -> None:
        if self._em() is not None:
            raise AttributeError(
                "prior_precision: partial_fit does not learn it, as a stream passes once; learn it "
                "with fit on a part of the data, and give the numbers"
            )
        asked = self._asked(self.sampler)
        if asked is not None and asked.sampler.refuses_streams:
            name = type(asked.sampler).__name__
            raise AttributeError(f"sampler: {name} {asked.sampler.refuses_streams}")

    def _notices(self, posterior: Posterior, facts: dict[str, Any]) -> list[str]:
        """A warning about columns that are far from zero, or whose values saturate hidden units.

        The first layer sees rows by their differences, and its prior is scaled to squares of X.
        Means three times as large as standard deviations do no harm, and ten times as large ones
        do (tests/promises/test_messages.py).
        """
        columns = of_columns(posterior.data)
        names = self._column_names
        variance = columns.variance.sum()
        shift = np.sqrt((columns.mean**2).sum() / variance) if variance > 0 else 0.0
        if shift > _FAR_MEANS:
            column = int(np.abs(columns.mean).argmax())
            return [
                f"the means of the columns of X are {shift:.0f} times as large as their standard "
                f"deviations, most of all that of column {names[column]!r}, so that hidden units "
                "hardly tell rows apart; take the means off, for example by StandardScaler"
            ]
        far = np.abs(posterior.data.sample.take(slice(0, 1000))).max(axis=0)
        if far.max() <= _FAR_INPUT:
            return []
        column = int(far.argmax())
        return [
            f"column {names[column]!r} of X holds values up to {far[column]:.3g}, which saturate "
            "the hidden units; scale the columns, for example by StandardScaler"
        ]

    # -- diagnostics --------------------------------------------------------------------------

    def diagnose(self, X, *, offset=None) -> dict[str, float]:
        """Agreement of the chains on predictions for X, for example for held-out rows.

        Predictions are probabilities: of the classes, or in a regression of y below its predictive
        mean less one predictive standard deviation, and plus one.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Some hundred rows are enough.
        offset : array-like, optional
            As in `fit`.

        Returns
        -------
        dict of str to float
            ``r_hat_max``, ``ess_min``, ``ess_tail_min`` over the probabilities whose posterior
            standard deviation is above 0.01 (NaN if there are none). ``between_chains``: the share
            of their variance that lies between chains. 0 means that the chains sample one
            distribution. Near 1 each chain is in a mode of its own. ``prediction_error``: standard
            error of the averages over all chains, as root mean square. ``prediction_drift``: how
            far they are from those over the second half of the draws, beyond chance, as root mean
            square. Both are of the same probabilities, 0 if there are none, and NaN for one chain
            or one draw.
        """
        check_is_fitted(self, "model_")
        X = with_offset(self, self._validate_data(X, reset=False), offset)
        return agreement.of_predictions(agreement.that_matter(self._under_draws(X)), None)

    def summary(self, level: float = 0.95, *, full: bool = False):
        """Table of the posterior: one row per block of weights or biases.

        A single weight has no meaning, because hidden units can be permuted. The root mean square
        of a block does not change with that, and is what the prior describes.

        Parameters
        ----------
        level : float in (0, 1), default=0.95
            Posterior probability of the intervals.
        full : bool, default=False
            Whether to return all columns instead of the main ones.

        Returns
        -------
        pandas.DataFrame
            Its index are the blocks of `model_`. ``n_parameters``; ``prior_scale``, the root mean
            square that the prior expects; ``mean``, ``sd``, ``eti95_lb`` and ``eti95_ub`` of the
            root mean square; if `full` ``hdi95_lb``, ``hdi95_ub``, ``ess_bulk``, ``ess_tail``,
            ``r_hat``, ``mcse_mean`` and ``mcse_sd`` of it. Without pandas it is a
            `sklearn.utils.Bunch` of arrays that prints as a table.

        Raises
        ------
        ValueError
            If a stream has no draws yet.
        """
        return of_blocks(self, level, full)

    def _under_draws(self, X) -> NDArray:
        """Probabilities that the draws predict for rows of X, (chains, draws, ..., rows)."""
        raise NotImplementedError

    def _gain(self, p: NDArray, few: Posterior, posterior: Posterior) -> float:
        """Mean log probability of few rows of the fit, above what it is without X.

        p are the probabilities `_under_draws` of these rows.
        """
        raise NotImplementedError


def agreement_of(estimator: Multimodal, posterior: Posterior, n_gradients: int) -> dict[str, float]:
    """Agreement on what is predicted for a hundred rows, and on their log posterior."""
    rows = evenly_spaced(posterior.n_rows, _DIAGNOSED_ROWS)
    few = Posterior(posterior.model, posterior.data.sample.some(rows), posterior.prior)
    draws = estimator._draws.counting()
    flat = draws.flat
    blocks = row_blocks(len(flat), 4 * few.model.row_size * len(rows))
    log_probs = [few.log_prob(flat[block].astype(np.float64)) for block in blocks]
    p = estimator._under_draws(few.data.sample.X)
    streams = estimator._stream is not None and estimator.temperature is None
    temperature = 1.0 if streams else estimator._temperature()
    figures = agreement.of_predictions(agreement.that_matter(p), np.concatenate(log_probs)) | {
        "prediction_gain": estimator._gain(p, few, posterior),
        "temperature": temperature,
    }
    if temperature == 1 and n_gradients:
        figures |= diagnose.of_information(posterior, draws.values, n_gradients)
    return figures


def of_groups(model: Model, name: str, asked: ArrayLike) -> NDArray:
    """A parameter of the prior, one number or one per group of blocks, for each weight."""
    groups, values = model.groups, real_array(name, asked)
    if values.shape not in ((), (len(groups),)):
        named = ", ".join("+".join(group) for group in groups)
        raise ValueError(f"{name} must be one number or {len(groups)}, for {named}; got {asked!r}")
    of_group = zip(groups, np.broadcast_to(values, len(groups)), strict=True)
    return model.spread({block: value for group, value in of_group for block in group})


def input_square_of(data: InMemory) -> float:
    """Mean over rows of the sum of squares."""
    return max(data.column_squares().sum(), np.finfo(np.float32).tiny)


# -- a stream of data, which one chain follows ------------------------------------------------


def follow(estimator: Any, posterior: Posterior, attributes: dict[str, Any]) -> None:
    """Take the steps of a chunk; `attributes` are fitted attributes of the subclass.

    The chain starts at the mean of an earlier fit, or where a fit of the first chunk would.
    """
    plan, options = estimator._plan(), estimator._options(posterior.dim)
    asked, stream = options.sampler, estimator._stream
    sampler = clone((asked or plan.first(posterior)).sampler)
    sampler.asked_for = asked is not None
    if asked is None and sampler.refuses_streams:
        sampler = plan.of_minibatches()
    fresh = stream is None or not stream.goes_on_with(sampler, posterior)
    square = input_square_of(posterior.data.sample) if stream is None else estimator._input_square
    if fresh:
        sampler.validate(posterior)
        seed = options.seeded().seed
        assert seed is not None
        start_seed, chain_seed = seed.spawn(2)
        if getattr(estimator, "draws_", np.empty(0)).shape[-1] == posterior.dim:
            theta = estimator._draws.mean()[None]
        else:
            theta, _ = plan.start(posterior, np.random.default_rng(start_seed), 1, None)
        rng = np.random.default_rng(chain_seed)
        stream = ChainStream.begin(sampler, posterior, theta, rng)
    stream = stream.chunk(posterior)
    options = options._replace(least=RunLength(0, 1))  # that of chains in modes is for a fit
    burn_in, thin = options.length(stream.run_length())
    if fresh and burn_in > 0:
        warn(
            f"partial_fit: the first {burn_in} steps of {stream.sampler.rows_per_step} "
            "rows are burn-in (set burn_in); until then predictions use one point, not a "
            "posterior",
        )
    most, _, said = plan.n_draws(options, _CHAINS_OF_STREAM, posterior.dim)
    warn(said, UserWarning)
    stream = stream.follow(posterior, burn_in, thin, most, plan.dtype)

    estimator.__dict__.update(attributes)
    estimator._input_square, estimator._stream = square, stream
    estimator.model_ = posterior.model
    draws = np.stack(stream.kept or [stream.state.theta.copy()], axis=1)
    weights = np.full(draws.shape[1], 1 / draws.shape[1])
    n_passes = rows_touched(stream.sampler, [stream.state]) / posterior.n_total
    ran = Ran(stream.sampler, n_iter=stream.state.t)
    engine = None if estimator._fit is None else estimator._fit.engine
    facts = (posterior.model, posterior.prior, draws, weights, n_passes)
    estimator._fit = Fit(engine, *facts, learned=None, ran=ran)
    enough = len(stream.kept) >= 8
    estimator.diagnostics_ = agreement_of(estimator, posterior, 0) if enough else {}
