"""Bayesian linear regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import column_or_1d

from skbayes_sg.data import Data, InMemory, of_targets
from skbayes_sg.estimators.fit_guard import all_or_nothing
from skbayes_sg.estimators.gaussian_posterior import FittedPosterior
from skbayes_sg.estimators.out_of_core import FirstPass, elsewhere, source_of, weights_or_none
from skbayes_sg.estimators.regression_predictions import LinearPredictions
from skbayes_sg.estimators.updating import OfStream
from skbayes_sg.inference.bayesian_updating import Stream
from skbayes_sg.inference.learned_prior import Learned
from skbayes_sg.models import Linear, Model
from skbayes_sg.posterior import Posterior
from skbayes_sg.priors import NormalInverseGammaPrior
from skbayes_sg.priors.shrinkage import Horseshoe, StudentT
from skbayes_sg.samplers import Sampler
from skbayes_sg.validation import checked_weights, in_dtype, real_array, require_positive

_WEAK = 1e-6  # rows that the prior of the noise variance counts for, twice


class BayesianLinearRegressionSGFS(RegressorMixin, LinearPredictions):
    """Linear regression with a posterior instead of a point, drawn exactly.

    It stands where `Ridge` or `BayesianRidge` would. `fit` draws some thousand values of
    coefficients and noise. `predict` averages over them, `predict_interval` is of a new y.

    ``y = coef . x + intercept + noise`` with normal noise and normal priors. The noise variance is
    given, or sampled on the log scale under an inverse-gamma prior.

    Parameters
    ----------
    sampler : Sampler, str or None, default=None
        A sampler, or "sgfs", "sgld", "sgd", "constant_sgd", "momentum_sgd", "iasg" or "hmc": with
        its own defaults up to 1,000 parameters, and without full matrices above. None: the
        posterior is conjugate, and its draws are independent and exact, without steps
        (math.md#independent-draws); the rows are read twice. That takes a matrix of all parameters:
        up to 1,000, or 4,000 where rows are dense. Above: SGFS with control variates where the
        posterior is near Gaussian, HMC elsewhere. `sampler_reason_` says what ran.
    prior_precision : float, array (n_features,), "learned" or VariationalEM, default="learned"
        1 / variance of the prior of each coefficient. Where the noise variance is sampled, in units
        of 1 / noise variance: the posterior mean is then ``Ridge(alpha=prior_precision)``.
        "learned": one for all, sampled with the coefficients under a weak hyperprior
        (math.md#a-sampled-precision); above the number of parameters that have a matrix it is
        learned in the chains, and then fixed. Such a precision is relative to a unit of each column
        (math.md#units-of-the-columns), so a default fit does not change when columns are shifted or
        scaled; a given one is in the units of X. A `VariationalEM` learns one per feature, in the
        sampler.
    noise_variance : float, optional
        In squared units of y; by default it is sampled.
    noise_prior : tuple (shape, rate), optional
        Inverse-gamma prior of a sampled noise variance, by default (1e-6, 1e-6 variances of y).
    fit_intercept : bool, default=True
    intercept_precision : float, default=1e-6
        As `prior_precision`, for the intercept. Where the noise variance is sampled, the default is
        a standard deviation of 1,000 noise standard deviations. Under a learned `prior_precision`
        the mean of this prior is that of y.
    prior_mean : float or array of shape (n_features,) or (1, n_features), default=0.0
        Mean of the prior of each coefficient; a learned precision is learned around it. That of
        intercepts is 0.
    prior : {"horseshoe", "student_t"}, Horseshoe, StudentT or FittedPosterior, optional
    prior_groups : {"feature", "prefix"}, dict or callable, optional
        Both as in `BayesianLogisticRegressionSGFS`.
    forgetting_factor : float in (0, 1], default=1.0
        `partial_fit` multiplies the information of earlier rows by it before each chunk.
    forgetting : float in (0, 1], default="deprecated"
        .. deprecated:: 0.4
            Renamed to `forgetting_factor`; it goes in 0.5.
    n_chains : int or "auto", default="auto"
        Independent chains: 32 by default, for HMC and with control variates (16 above 10,000
        parameters), 8 otherwise. Of independent draws they are groups, which the diagnostics
        compare as those of a chain.
    n_draws : int or "auto", default="auto"
        Draws kept per chain by each `fit`. "auto" is 4,000 over the number of chains, or as many as
        400 MB hold, with a warning.
    burn_in : int or "auto", default="auto"
        Sampler steps before the first kept draw.
    thin : int or "auto", default="auto"
        Sampler steps per kept draw.
    warm_start : bool, default=False
        `fit` goes on where the last fit stopped; see `BayesianLogisticRegressionSGFS`.
    n_jobs : int, optional
        Processes for the chains (joblib). The draws do not depend on it.
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,), where X had string column names
    draws_ : array of shape (n_chains, n_draws, dim)
        In single precision if they would take more than a megabyte in double.
        Posterior draws: coefficients, then intercept and log noise variance, if any.
    draw_weights_ : array of shape (n_draws,)
        Weights of the draws of a chain, equal unless the sampler's step size decreases.
    coef_, coef_std_ : arrays of shape (n_features,)
        Posterior means and standard deviations.
    intercept_ : float
    noise_variance_ : float
        Posterior mean, or the given value.
    coef_samples_ : array of shape (n_chains, n_draws, n_features)
    intercept_samples_, noise_variance_samples_ : arrays of shape (n_chains, n_draws)
    sampler_, sampler_reason_, states_, model_, n_iter_, n_passes_, burn_in_, thin_ :
    diagnostics_, posterior_, n_samples_seen_, n_rows_seen_ :
        As in `BayesianLogisticRegressionSGFS`. Of independent draws ``ess_per_pass`` is infinite,
        since none of them reads a row, and `posterior_` is their law.
    prior_precision_, prior_precision_path_, prior_precision_blocks_, prior_precision_draws_ :
        As there; the last three only if the prior was learned, or sampled.

    Notes
    -----
    Source: Karagiannis, handout 4, section 4, with errata math.md#e22 to math.md#e24; Ahn et al.
    2012; Mandt et al. 2017, section 6.1. With a given noise variance, or the handout's prior, the
    posterior is known in closed form, and the tests compare with it. If the given noise variance is
    too small, every minibatch sampler is slow, as gradient noise grows with the true variance.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sg import BayesianLinearRegressionSGFS
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BayesianLinearRegressionSGFS(random_state=0).fit(X, y)
    >>> mean, std = model.predict(X[:2], return_std=True)
    >>> mean.shape, bool(50 < std[0] < 70)
    ((2,), True)
    """

    intercept_ = OfStream(lambda self: float(self._moments_of_law()[2]))

    def __init__(
        self,
        sampler: Sampler | str | None = None,
        prior_precision: ArrayLike = "learned",
        noise_variance: float | None = None,
        *,
        noise_prior: tuple[float, float] | None = None,
        fit_intercept: bool = True,
        intercept_precision: float = 1e-6,
        prior_mean: ArrayLike = 0.0,
        prior: FittedPosterior | Horseshoe | StudentT | str | None = None,
        prior_groups: Any = None,
        forgetting_factor: float = 1.0,
        forgetting: float | str = "deprecated",
        n_chains: int | str = "auto",
        n_draws: int | str = "auto",
        burn_in: int | str = "auto",
        thin: int | str = "auto",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.sampler = sampler
        self.prior_precision = prior_precision
        self.noise_variance = noise_variance
        self.noise_prior = noise_prior
        self.fit_intercept = fit_intercept
        self.intercept_precision = intercept_precision
        self.prior_mean = prior_mean
        self.prior = prior
        self.prior_groups = prior_groups
        self.forgetting_factor = forgetting_factor
        self.forgetting = forgetting
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.burn_in = burn_in
        self.thin = thin
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state

    # -- data ---------------------------------------------------------------------------------

    def _validate_pair(self, X, y, reset: bool) -> tuple[Any, NDArray]:
        """X, and y as a vector in float64."""
        X, y = self._validate_data(X, y, reset=reset)
        y = real_array("y", column_or_1d(y, warn=True))
        if np.isnan(y).any():  # None of an object array
            raise ValueError("y contains NaN; leave out the rows without a target")
        with np.errstate(over="ignore"):
            if not np.isfinite(y @ y):
                raise ValueError("y holds values whose squares overflow; divide it by its scale")
        return X, y

    def _bind(
        self, X, y: NDArray, sample_weight: ArrayLike | None, n_total: float | None = None
    ) -> Posterior:
        """Posterior of the model given validated data, without rows of weight 0."""
        weight = checked_weights(sample_weight, len(y))
        if not (weight > 0).any():
            raise ValueError(
                "sample_weight is zero for all rows; at least one row needs a positive weight"
            )
        if n_total is None and not weight.all():
            kept = np.flatnonzero(weight)
            X, y, weight = X[kept], y[kept], weight[kept]
        if n_total is None and len(y) < 2:
            raise ValueError(
                f"X must have at least 2 rows of positive weight, got n_samples = {len(y)}"
            )
        weights = None if (weight == 1).all() else in_dtype("sample_weight", weight, X.dtype)
        y = in_dtype("y", y, X.dtype)
        data = InMemory.of(X, y, weights, n_total, Linear.takes_sparse)
        model = self._make_model(data)
        prior = self._prior(model, data, streaming=n_total is not None)
        posterior = Posterior(model, data, prior)
        return self._few_merged(posterior, n_total)

    def _bind_blocks(self, X, y, sample_weight) -> tuple[Posterior, dict[str, Any]]:
        """Posterior of rows elsewhere, and the facts about them."""
        source = source_of(X, y, sample_weight)
        found = FirstPass(source, labels=False)
        if found.n_weighted < 2:
            raise ValueError("X must have at least 2 rows of positive weight")

        def encode(y: NDArray, weight: NDArray | None) -> tuple[NDArray, NDArray | None]:
            return in_dtype("y", y, source.dtype), weights_or_none(weight, source.dtype)

        data = found.data(encode)
        model = self._make_model(data)
        return Posterior(model, data, self._prior(model, data)), {"n_samples_seen_": X.shape[0]}

    def _make_model(self, data: Data) -> Linear:
        given = self.noise_variance
        if given is not None:
            require_positive("noise_variance", given, "leave it None to have it sampled")
            given = float(given)
        return Linear(data.n_features, self.fit_intercept, given, self._noise(data))

    def _noise(self, data: Data) -> tuple[float, float]:
        """Shape and rate of the prior of the noise variance."""
        pair = self.noise_prior
        if pair is None:
            variance = of_targets(data)[1]
            return _WEAK, _WEAK * (variance if variance > 0 else 1.0)
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
            raise ValueError(f"noise_prior must be a pair (shape, rate), got {pair!r}")
        for name, value in zip(("shape", "rate"), pair, strict=True):
            require_positive(f"noise_prior: the {name}", value, "a small one is a weak prior")
        return float(pair[0]), float(pair[1])

    def _mean(self, model: Model, data: Data) -> NDArray:
        """Prior mean of every parameter; under a learned precision the intercept has that of y."""
        mean = super()._mean(model, data)
        if self.fit_intercept and self._em() is not None:
            mean[data.n_features] = of_targets(data)[0]
        return mean

    def _precision(self, model: Model, precision: NDArray) -> NDArray:
        """Prior precision of every parameter; 0 for the log noise variance, with its own prior."""
        precision = super()._precision(model, precision)
        return precision if self.noise_variance is not None else np.append(precision, 0.0)

    def _checked_rows(self, X, y, sample_weight: ArrayLike | None):
        X, y = self._validate_pair(X, y, reset=False)
        return X, y, checked_weights(sample_weight, len(y))

    def _posterior_of(self, X, y, sample_weight: ArrayLike | None) -> Posterior:
        if elsewhere(X):
            return self._bind_blocks(X, y, sample_weight)[0]
        return self._bind(*self._validate_pair(X, y, reset=False), sample_weight)

    # -- fitting ------------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        """Sample the posterior.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            float32 stays float32. Sparse rows of more than 1,000 columns stay sparse with the
            default sampler, others are made dense one minibatch at a time. Rows may be on disk or
            on workers, as in `BayesianLogisticRegressionSGFS`.
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
            Factor of each row's log likelihood; an integer weight is a repetition.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data or parameters are impossible; raised before any sampling.
        FloatingPointError
            If a chain diverges.
        """
        self._validate_parameters()
        if self._fitted_in_blocks(X, y, sample_weight):
            return self
        X, y = self._validate_pair(X, y, reset=True)
        self._run_chains(self._bind(X, y, sample_weight), X, y, n_samples_seen_=X.shape[0])
        return self

    @all_or_nothing
    def partial_fit(self, X, y, sample_weight=None):
        """Update the posterior by a chunk of rows: the posterior of one is the prior of the next.

        The update is exact up to 1,000 parameters: any chunks in any order lead to the posterior of
        all rows (math.md#streams-as-bayesian-updating). `coef_std_` and `noise_variance_` are
        infinite until the noise variance has a mean, at three rows or so. For the rest see
        `BayesianLogisticRegressionSGFS.partial_fit`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
            Factor of each row's log likelihood; an integer weight is a repetition.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data or parameters are impossible; raised before any update.
        """
        self._validate_parameters()
        X, y = self._validate_pair(X, y, reset=not hasattr(self, "model_"))
        seen = getattr(self, "n_samples_seen_", 0) + X.shape[0]
        self._update(self._bind(X, y, sample_weight, n_total=X.shape[0]), n_samples_seen_=seen)
        return self

    def _keep_stream(
        self,
        stream: Stream,
        posterior: Posterior,
        learned: Learned | None,
        attributes: dict[str, Any],
    ) -> None:
        super()._keep_stream(stream, posterior, learned, attributes)
        law = stream.law
        self.noise_variance_ = float(self.noise_variance or 0)
        if not isinstance(law, NormalInverseGammaPrior):
            return
        if law.unbounded:
            raise ValueError(
                "sample_weight: weights so small leave the noise variance without bounds; give "
                "larger weights, or noise_prior a larger shape, or noise_variance a number"
            )
        self.noise_variance_ = law.noise_variance

    def _precision_of(self, posterior: Posterior) -> NDArray:
        n_normal = posterior.dim - ("log_noise" in posterior.model.shapes)
        return posterior.prior.precision[:n_normal].copy()

    def _coefs(self, draws: NDArray) -> NDArray:
        return self.model_.unpack(draws)["coef"][..., 0, :]

    def _intercepts(self, draws: NDArray) -> NDArray:
        blocks = self.model_.unpack(draws)
        return blocks["intercept"][..., 0] if self.fit_intercept else np.zeros(draws.shape[:2])

    def _read_off(self, posterior: Posterior) -> None:
        """Coefficients and noise variance from the draws."""
        self.prior_precision_ = self._precision_of(posterior)
        self.coef_, self.coef_std_ = self._moments(self.coef_samples_)
        self.intercept_ = float(self._moments(self.intercept_samples_)[0])
        noise = self.noise_variance or self._moments(self.noise_variance_samples_)[0]
        self.noise_variance_ = float(noise)
