"""Bayesian linear regression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_blas_funcs
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from skbayes_sg.data import Batch, Data, of_targets, row_blocks
from skbayes_sg.estimators import updating
from skbayes_sg.estimators.from_fit import FromFit
from skbayes_sg.estimators.linear_model import LinearRegressor
from skbayes_sg.estimators.mixture_predictions import Mixture
from skbayes_sg.linalg.scores import dense
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.models import Linear, Model
from skbayes_sg.posterior import Posterior
from skbayes_sg.priors import Distribution, NormalInverseGammaPrior, Prior
from skbayes_sg.validation import require_positive

_WEAK = 1e-6  # rows that the prior of the noise variance counts for, twice
_LEFT = 1.01  # rows beside those that coefficients take, of which one is always left
_BLOCK_BYTES = 1 << 18  # of a prediction block, which stays in cache


@dataclass(eq=False, repr=False)
class BayesianLinearRegression(LinearRegressor):
    """Bayesian linear regression, which takes the place of `Ridge` or `BayesianRidge`.

    `fit` draws some thousand values of the coefficients and the noise variance, by default exactly.
    `predict` averages over these draws, and `predict_interval` returns an interval for a new
    observation.

    ``y = coef . x + intercept + noise`` with normal noise and normal priors. The noise variance is
    given, or sampled on the log scale under an inverse-gamma prior.

    Parameters
    ----------
    sampler : Sampler, str or None, default=None
        A sampler, or "sgfs", "sghmc", "sgld", "sgd", "constant_sgd", "momentum_sgd", "iasg", "hmc"
        or "underdamped_langevin": with its own defaults up to 1,000 parameters, and without full
        matrices above. None: the posterior is conjugate, and its draws are independent and exact,
        without steps (math/streams.md#independent-draws); the rows are read twice. That takes a
        matrix of all parameters: up to 1,000, or 4,000 where rows are dense. Above:
        "underdamped_langevin" where the posterior is near Gaussian enough for control variates, HMC
        elsewhere. `sampler_reason_` says what ran.
    prior_precision : float, array (n_features,), "learned" or VariationalEM, default="learned"
        1 / variance of the prior of each coefficient. Where the noise variance is sampled, in units
        of 1 / noise variance: the posterior mean is then ``Ridge(alpha=prior_precision)``.
        "learned": one for all, sampled with the coefficients under a weak hyperprior
        (math/priors.md#a-sampled-precision). Above the number of parameters that have a matrix it
        is found by chains, and then fixed, unless columns are more than rows, and rows are few
        (math/high_dimensional.md#fewer-rows-than-columns). Such a precision is relative to a unit
        of each column (math/priors.md#units-of-the-columns), so a default fit does not change when
        columns are shifted or scaled; a given one is in the units of X. A `VariationalEM` learns
        one per feature, in the sampler.
    noise_variance : float, optional
        In squared units of y; by default it is sampled.
    noise_prior : tuple (shape, rate), optional
        Inverse-gamma prior of a sampled noise variance, by default (1e-6, 1e-6 variances of y).
        By default, where `prior_precision` is given, each coefficient that the rows determine takes
        a degree of freedom from the noise, as in least squares, which is the limit of weak
        precisions with its t intervals (math/priors.md#a-given-precision). Above 1,000 parameters
        none does. A pair is used as it is.
    fit_intercept : bool, default=True
    intercept_precision : float, default=1e-6
        As `prior_precision`, for the intercept where columns have their means. If the noise
        variance is sampled, or `prior_precision` is learned, the default is a standard deviation of
        1,000 noise standard deviations. Under a learned one the mean of this prior is that of y.
    prior_mean : float or array of shape (n_features,) or (1, n_features), default=0.0
    prior : {"horseshoe", "student_t"}, Horseshoe, StudentT or FittedPosterior, optional
    prior_groups : {"share", "feature", "prefix"}, dict or callable, optional
    new_levels : {"sample", "zero", "refuse"}, default="sample"
    forgetting_factor : float in (0, 1], default=1.0
    categorical_features : {"from_dtype"}, list or None, default="from_dtype"
    n_chains : int or "auto", default="auto"
        Independent chains: 32 by default, for HMC and with control variates (16 where steps of HMC
        are long, 8 or 16 above 1,000 parameters), 8 otherwise. Independent draws are divided into
        as many groups, which the diagnostics compare like chains.
    n_draws : int or "auto", default="auto"
    burn_in : int or "auto", default="auto"
    thin : int or "auto", default="auto"
    warm_start : bool, default=False
    n_jobs : int, optional
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    n_features_in_
    feature_names_in_
    draws_ : array of shape (n_chains, n_draws, dim)
        In single precision if they would take more than a megabyte in double.
        Posterior draws: coefficients, then intercept and log noise variance, if any.
    draw_weights_
    factors_
    coef_names_
    coef_, coef_std_
    intercept_
    noise_variance_ : float
        Posterior mean, or the given value.
    coef_samples_
    intercept_samples_, noise_variance_samples_ : arrays of shape (n_chains, n_draws)
        Draws of both.
    sampler_
    sampler_reason_
    states_
    model_ : Linear
    n_iter_
    n_passes_
    burn_in_, thin_
    diagnostics_
    posterior_
    n_samples_seen_
    log_loss_path_
    prior_precision_
    prior_precision_path_
    prior_precision_blocks_
    prior_precision_draws_

    Notes
    -----
    For independent draws ``ess_per_pass`` is infinite, since none of them reads a row, and
    `posterior_` is their distribution. Source: Karagiannis, handout 4, section 4, with errata
    math/errata.md#e22 to math/errata.md#e24; Ahn et al. 2012; Mandt et al. 2017, section 6.1. With
    a given noise variance, or the handout's prior, the posterior is known in closed form, and the
    tests compare with it. If the given noise variance is too small, every minibatch sampler is
    slow, as gradient noise grows with the true variance.

    Given noise variance and prior precision the posterior of the coefficients is normal, and so is
    y: where the precision is given, its quantiles are those of the mixture of these distributions
    over the draws of the noise variance. Where it is sampled, predictive distributions may be
    skewed, and their widths depend on it: they are quantiles of the mixture over draws of all
    parameters (math/monte_carlo.md#predictive-intervals).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sg import BayesianLinearRegression
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BayesianLinearRegression(random_state=0).fit(X, y)
    >>> mean, std = model.predict(X[:2], return_std=True)
    >>> mean.shape, bool(50 < std[0] < 70)
    ((2,), True)
    """

    noise_variance: float | None = None
    noise_prior: tuple[float, float] | None = None
    _: KW_ONLY
    intercept_precision: float = 1e-6

    _family = Linear
    noise_variance_ = FromFit(lambda self, fit: self._mean_noise(fit), kept=True)

    # -- the model ---------------------------------------------------------------------------

    def _make_model(self, data: Data) -> Linear:
        noise_variance = self.noise_variance
        if noise_variance is not None:
            require_positive("noise_variance", noise_variance, "leave it None to have it sampled")
            noise_variance = float(noise_variance)
        return Linear(data.n_features, self.fit_intercept, noise_variance, self._noise(data))

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

    def _prior(
        self, model: Model, data: Data, classes: NDArray | None = None, streaming: bool = False
    ) -> Prior:
        """Prior; under a given precision coefficients that rows determine take from its shape.

        In a stream these are known at its end. Above 1,000 parameters none are counted.
        """
        prior = super()._prior(model, data, classes, streaming)
        is_given = self._em() is None and self.prior is None and self.noise_prior is None
        if not (is_given and isinstance(prior, NormalInverseGammaPrior) and has_matrix(model.dim)):
            return prior
        if streaming:
            return prior.determined_by(0.0, 0.0)
        n_rows, information = information_of(data, prior.centre)
        root = np.sqrt(prior.precision[:-1])
        eigenvalues = np.maximum(np.linalg.eigvalsh(information / np.outer(root, root)), 0.0)
        return prior.determined_by(n_rows, float(np.sum(eigenvalues / (1 + eigenvalues))))

    def _notices(self, posterior: Posterior, facts: dict[str, Any]) -> list[str]:
        """Also a warning of a precision so weak that no row is left to tell the noise."""
        notices, prior = super()._notices(posterior, facts), posterior.prior
        if not isinstance(prior, NormalInverseGammaPrior) or prior.free_shape is None:
            return notices
        weight = posterior.data.sample.weight
        n_rows = posterior.n_rows if weight is None else float(weight.sum())
        if n_rows - 2 * (prior.free_shape - prior.shape) < _LEFT:
            notices.append(
                f"prior_precision={self.prior_precision!r} is so weak that coefficients fit all "
                "rows, and no row is left to tell the noise variance, which has one degree of "
                'freedom; raise prior_precision, leave it "learned", or give noise_variance or '
                "noise_prior"
            )
        return notices

    # -- fitting ------------------------------------------------------------------------------

    def _require_bounds(self, distribution: Distribution) -> None:
        if isinstance(distribution, NormalInverseGammaPrior) and distribution.unbounded:
            raise ValueError(
                "sample_weight: weights so small leave the noise variance without bounds; give "
                "larger weights, or noise_prior a larger shape, or noise_variance a number"
            )

    def _mean_noise(self, fit: Any) -> float:
        if isinstance(fit, updating.StreamFit):
            return updating.noise_of(self)
        noise = self.noise_variance or self._draws.of(self.noise_variance_samples_).mean()
        return float(noise)

    # -- predictions --------------------------------------------------------------------------

    @property
    def noise_variance_samples_(self) -> NDArray:
        """Draws of the noise variance, or the given value, (n_chains, n_draws)."""
        noise, draws = self.model_.noise_variance, self.draws_
        return np.exp(draws[..., -1]) if noise is None else np.full(draws.shape[:2], noise)

    def _moments(self, mixture: Mixture, return_std: bool) -> tuple[NDArray, ...]:
        X = mixture.X
        if mixture.model is not self.model_:  # with effects of new levels
            return super()._moments(mixture, return_std)
        if not return_std:
            mean = np.asarray(self.model_.features(X) @ self.coef_).ravel() + self.intercept_
            mean = self.model_.plus_known(mean[None, None], X)[0, 0]
            return mean, mean, np.sqrt(self.noise_variance_)
        mean, square = self._response(X, np.ones(1))
        std = np.sqrt(square + self.noise_variance_)
        return mean, std, std

    def _quantiles(self, mixture: Mixture, q: NDArray, kind: str) -> tuple[NDArray, ...]:
        """Quantiles of y without draws of coefficients, where these are normal given the noise.

        Under a sampled precision they are not: the weaker it is, the further coefficients spread
        and the closer the line comes to the rows, up to all of them where columns are more.
        """
        is_normal = self._fit.hyper_draws is None
        if kind == "mean" or not is_normal or mixture.model is not self.model_:
            return super()._quantiles(mixture, q, kind)
        noise = np.sqrt(self.noise_variance_samples_).ravel()
        mean, square = self._response(mixture.X, noise)
        weights, wider = self._draws.flat_weights, np.sqrt(1 + square)
        halves = [scale_mixture_quantile(level, weights, noise) for level in q]
        return mean[:, None] + wider[:, None] * np.array(halves), wider * noise.mean()

    def _response(self, X, scale: NDArray) -> tuple[NDArray, NDArray]:
        """The mean of y without noise, and mean square of (its draws - mean) / scale, (n_rows,).

        The square is the squared length of root x + shift, plus rest. Among many rows the root is
        triangular, so that a row costs as much as half a product with a matrix of D x D.
        """
        X, with_offsets = self.model_.features(X), X
        factor = (np.sqrt(self._draws.flat_weights) / scale)[:, None]
        root = self.coef_samples_.reshape(-1, X.shape[1]) - self.coef_
        shift = self.intercept_samples_.reshape(-1, 1) - self.intercept_
        root, shift, remainder = root * factor, shift * factor, 0.0
        times: Callable[[NDArray], NDArray] = partial(np.matmul, root)
        if root.shape[1] < min(len(root), X.shape[0]):
            R = np.asarray(np.linalg.qr(np.hstack([root, shift]), mode="r"))
            root, shift, remainder = R[:-1, :-1], R[:-1, -1:], float(R[-1, -1]) ** 2
            times = partial(get_blas_funcs("trmm", (root,)), 1.0, root)
        mean, square = np.empty((2, X.shape[0]))
        sparse = self.model_.keeps_sparse(X)
        row_size = 8 * (len(root) if sparse else max(root.shape))
        for rows in row_blocks(X.shape[0], row_size, _BLOCK_BYTES):
            block = (X[rows] if sparse else dense(X[rows])).astype(np.float64, copy=False)
            mean[rows] = block @ self.coef_ + self.intercept_
            z = (block @ root.T).T if sparse else times(block.T)
            z += shift
            square[rows] = np.vecdot(z.T, z.T) + remainder
        return self.model_.plus_known(mean[None, None], with_offsets)[0, 0], square


def information_of(data: Data, centre: NDArray | None) -> tuple[float, NDArray]:
    """Total weight of the rows, and the weighted second moments of columns and intercept.

    The latter is at `centre`, and there is none without.
    """
    dim = data.n_features + (centre is not None)

    def of_batch(batch: Batch) -> tuple[float, NDArray]:
        X = dense(batch.X).astype(np.float64, copy=False)
        X, columns = X[:, : data.n_features], X[:, data.n_features :]
        if centre is not None:
            X = np.column_stack([X - centre, np.ones(len(X))])
        weight = np.ones(len(X)) if batch.weight is None else batch.weight.astype(np.float64)
        precise = weight if columns.shape[1] < 2 else weight * np.exp(-columns[:, 1])
        return float(weight.sum()), (X.T * precise) @ X

    return data.reduce(of_batch, dim, pairs=True)


def scale_mixture_quantile(q: float, weights: NDArray, scale: NDArray) -> float:
    """Quantile of the mixture of N(0, scale[s]^2), whose components' quantiles enclose it."""
    ends = ndtri(q) * np.array([scale.min(), scale.max()])
    low, high = ends.min(), ends.max()
    if high - low <= 1e-9 * scale.min():
        return float(low)
    return brentq(lambda x: weights @ ndtr(x / scale) - q, low, high, xtol=1e-9 * scale.min())


class BayesianLinearRegressionSGFS(BayesianLinearRegression):
    """`BayesianLinearRegression` under the name of Stochastic Gradient Fisher Scoring.

    That is the sampler of Ahn, Korattikara & Welling (2012), which ``sampler="sgfs"`` takes.
    Parameters, methods and attributes are those of `BayesianLinearRegression`, and so is the
    sampler by default.
    """
