"""What estimators with coefficients and an intercept share: the default sampler, the start and the prior."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from skbayes_sg.empirical_bayes import BOUNDS, VariationalEM
from skbayes_sg.estimators.checks import column_squares, real_array, require_positive
from skbayes_sg.mode import FULL_CURVATURE_DIM, Mode, find_mode
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import HMC, SGFS, Sampler, State

FEW_ROWS = 5000
"""Up to here all rows: exact for any posterior, in about two seconds at 50 features; SGFS with control variates takes a
sixth of that (benchmarks/few_rows.py)."""


class LinearPredictor:
    """A mixin: the response depends on coefficients times features plus intercept."""

    prior_precision: ArrayLike
    fit_intercept: bool
    intercept_precision: float
    model_: Any
    sampler: Any
    sampler_: Sampler
    states_: list[State]
    draws_: NDArray
    draw_weights_: NDArray
    _under: Any
    _em: Any
    _last_mean: Any
    _with_learned_prior: Any
    _posterior_of: Any  # the posterior under validated data, of the fitted shape

    def _default_sampler(self, posterior: Posterior) -> Sampler:
        if posterior.dim > FULL_CURVATURE_DIM:
            return _careful()
        return HMC() if posterior.n_rows <= FEW_ROWS else SGFS(variance_reduction="control_variate")

    def _plain_sampler(self, posterior: Posterior, heavy: bool) -> Sampler:
        """Rows that control variates cannot bear throw other minibatch samplers too: all rows, where affordable."""
        if posterior.n_rows <= 4 * FEW_ROWS:
            return HMC()
        return _careful() if heavy else SGFS()

    def _reason(self, sampler: Sampler, posterior: Posterior) -> str:
        if self.sampler is not None:
            return "as given"
        if posterior.dim > FULL_CURVATURE_DIM:
            return f"{posterior.dim} parameters are too many for full matrices"
        if posterior.n_rows <= FEW_ROWS:
            return f"{posterior.n_rows} rows are so few that all of them, and exactness, cost little"
        return f"{posterior.n_rows} rows: control variates bring more effective draws than they cost"

    def _start(self, posterior: Posterior, rng: np.random.Generator) -> Mode:
        return find_mode(posterior, self._last_mean(self.model_.init(rng)), rng)

    def _prior(self, X, weight: NDArray | None) -> NDArray:
        """Prior precision of every parameter, from the two constructor parameters."""
        n_features = self.model_.shapes["coef"][1]
        em = self._em()
        if em is not None:
            return self._spread(self._unit_information(em, X, weight))
        if isinstance(self.prior_precision, str):
            raise ValueError(f'prior_precision must be "em", a number or one per feature, got {self.prior_precision!r}')
        if np.isscalar(self.prior_precision) or self.prior_precision is None:
            require_positive("prior_precision", self.prior_precision, "use a small number for a weak prior")
        precision = real_array("prior_precision", self.prior_precision)
        if precision.ndim == 0:
            require_positive("prior_precision", float(precision), "use a small number for a weak prior")
        elif precision.shape != (n_features,):
            raise ValueError(
                f"prior_precision must be one number or one per feature, shape ({n_features},), got {precision.shape}"
            )
        elif not (np.isfinite(precision).all() and precision.min() > 0):
            raise ValueError("prior_precision must be positive and finite for every feature; use small numbers")
        return self._spread(precision)

    def _unit_information(self, em: VariationalEM, X, weight: NDArray | None) -> NDArray:
        """Where learning starts: a prior that knows as much as one row, in units of the noise for linear regression."""
        square = column_squares(X, weight)
        square = square if em.per == "feature" else np.full(len(square), square.mean())
        return np.clip(np.where(square > 0, square, 1.0), *BOUNDS)

    def _spread(self, precision: NDArray) -> NDArray:
        """That of the coefficients and of the intercepts, one after another."""
        require_positive("intercept_precision", self.intercept_precision, "use a small number for a weak prior")
        blocks = [np.broadcast_to(precision.astype(float), self.model_.shapes["coef"]).ravel()]
        if self.fit_intercept:
            blocks.append(np.full(self.model_.shapes["intercept"], float(self.intercept_precision)))
        return np.concatenate(blocks)

    def predicted_covariance(self, X, y, sample_weight: ArrayLike | None = None) -> NDArray:
        """What theory expects of this fit, to set beside the covariance that was drawn.

        Stationary covariance of the fitted sampler, as its chains froze it after burn-in, under the curvature
        of all rows at the posterior mean and the mean gradient noise at eight draws: some ten passes over the
        data. It differs from the posterior's (the inverse curvature) by the sampler's known bias, and from the
        drawn one by Monte Carlo error and by what is not Gaussian.

        Parameters
        ----------
        X, y, sample_weight :
            The data of the fit.

        Returns
        -------
        array of shape (dim, dim)
            In the order of `draws_`.

        Raises
        ------
        ValueError
            If the sampler has no stationary law: decreasing steps, clipping, or a step that is unstable here.
        NotFittedError
            If there was no `fit`, only `partial_fit`.

        Examples
        --------
        >>> from sklearn.datasets import make_regression
        >>> from skbayes_sg import BayesianLinearRegressionSGFS
        >>> X, y = make_regression(n_samples=8000, n_features=3, noise=1.0, random_state=0)
        >>> model = BayesianLinearRegressionSGFS("constant_sgd", random_state=0).fit(X, y)
        >>> drawn = model.draws_.reshape(-1, 5).var(axis=0)
        >>> bool((abs(drawn / model.predicted_covariance(X, y).diagonal() - 1) < 0.3).all())
        True
        """
        check_is_fitted(self, "states_", msg="predicted_covariance needs a `fit`: a stream has no stationary law")
        posterior = self._with_learned_prior(self._posterior_of(X, y, sample_weight))
        theta = np.average(self.draws_.mean(axis=0), axis=0, weights=self.draw_weights_)[None]
        Lam = posterior.expand(theta, "full").curvature.dense()
        posterior = self._under(self.sampler_, posterior)
        some = self.draws_[:, -1][:8, None]
        I1 = np.mean([posterior.score_covariance(draw) for draw in some], axis=0)
        M = self.states_[0].rows.noise_factor * posterior.n_total * I1
        each = [self.sampler_.stationary_covariance(state, Lam, M) for state in self.states_]
        return np.average(each, axis=0, weights=[len(state.theta) for state in self.states_])

    def _moments(self, samples: NDArray) -> tuple[NDArray, NDArray]:
        """Weighted mean and standard deviation over chains and draws."""
        mean = np.tensordot(self.draw_weights_, samples, axes=(0, 1)).mean(axis=0)
        square = np.tensordot(self.draw_weights_, (samples - mean) ** 2, axes=(0, 1)).mean(axis=0)
        return mean, np.sqrt(square)


def _careful() -> SGFS:
    """For many parameters or rows of heavy tails: large minibatches, and injected noise in proportion to P."""
    return SGFS(structure="kron", alpha=3.0, B="precision", batch_size=2000)
