"""The base of estimators with coefficients and an intercept: plan, prior, theory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from skbayes_sg.chains.tuning import raise_alpha
from skbayes_sg.data import InMemory
from skbayes_sg.estimators.coefficient_prior import CoefficientPrior
from skbayes_sg.estimators.out_of_core import RowsNeededError
from skbayes_sg.inference import diagnose
from skbayes_sg.inference.plan import Plan, Start
from skbayes_sg.inference.request import Choice
from skbayes_sg.inspection.summary import of_coefficients, of_groups
from skbayes_sg.linalg import Diag
from skbayes_sg.linalg.layouts import FULL
from skbayes_sg.linalg.sizes import has_matrix, is_sorted_soon
from skbayes_sg.models import Model
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.control_variates.expansion import ExpandedTarget
from skbayes_sg.posterior.mode import InitialPoint, find_mode
from skbayes_sg.posterior.noise_of_points import mean_noise
from skbayes_sg.posterior.nonzero_columns import nonzero_columns
from skbayes_sg.posterior.precision import covariance_over
from skbayes_sg.posterior.whitening import affordable, is_high_dimensional
from skbayes_sg.priors.scales import OnePrecision
from skbayes_sg.samplers import HMC, IASG, SGFS, SGLD, ConstantSGD, MomentumSGD, UnderdampedLangevin
from skbayes_sg.samplers.base import NoAnchorError, NoGainError
from skbayes_sg.samplers.independent_draws import IndependentDraws


@dataclass(frozen=True)
class OneMode(Plan):
    """Chains start around the one mode; control variates can be anchored there."""

    def first(self, posterior: Posterior) -> Choice:
        model = posterior.model
        if isinstance(model, Predictor) and model.conjugate and affordable(posterior):
            return Choice(
                IndependentDraws(),
                "the posterior is conjugate: its draws are independent and exact",
            )
        if not has_matrix(posterior.dim):
            _require_rows(posterior, _too_many(posterior.dim))
        return Choice(
            UnderdampedLangevin(),
            "the posterior is near enough to Gaussian for control variates",
        )

    def presets(self, dim: int) -> dict[str, Choice]:
        """Samplers by name, for `dim` parameters; 0 if the number is not known yet.

        "sgfs" has no control variates, since its parameters hold for any posterior then. With
        control variates alpha = 0, posteriors far from Gaussian and streams are refused.
        """
        if has_matrix(dim):
            why = (
                "exact for any number of rows, and slower than sampler=None, which adds control "
                "variates where the posterior is near Gaussian"
            )
            scaled = Choice(SGLD(preconditioner="diag"), "each parameter has a step of its own")
            return {"sgfs": Choice(SGFS(), why), "sgld": scaled}
        why = _too_many(dim)
        # large minibatches, and noise in proportion to P, bear rows with heavy tails
        sgfs = SGFS(structure="kron", alpha=3.0, B="precision", batch_size=2000)
        return {
            "sgfs": Choice(sgfs, why, raise_alpha),
            "constant_sgd": Choice(ConstantSGD(structure="kron"), why),
            "momentum_sgd": Choice(MomentumSGD(structure="diag"), why),
            "iasg": Choice(IASG(structure="diag"), why),
        }

    def fallback(self, posterior: Posterior, refused: NoGainError) -> Choice:
        """HMC on a pool of rows, or on all where they are few or there is no anchor."""
        if isinstance(refused, NoAnchorError):
            _require_rows(posterior, str(refused))
            return Choice(HMC(), str(refused))
        hmc = HMC(target_accept=_ACCEPT, variance_reduction="control_variate")
        return Choice(hmc, str(refused))

    def start(
        self,
        posterior: Posterior,
        rng: np.random.Generator,
        n_chains: int,
        last: NDArray | None,
        initial: InitialPoint | None = None,
    ) -> Start:
        """Over-dispersed around the mode, or where the last fit stopped."""
        sample = posterior.data.sample
        guess = initial or posterior.model.guess(sample.y, sample.weight)
        mode = find_mode(posterior, guess if last is None else last.mean(axis=0)[None], rng)
        # A diagonal ignores correlations. Twice its width starts chains too far out to learn
        # useful matrices.
        factor = 1.0 if isinstance(mode.curvature, Diag) else 2.0
        spread = mode.curvature.inverse().cholesky()
        normals = rng.standard_normal((n_chains, posterior.dim))
        return Start(mode.theta + factor * spread.matvec(normals) if last is None else last, mode)


def _require_outputs(model: Model) -> None:
    """Refuse a model of which samplers and control variates cannot ask the outputs of rows."""
    if not isinstance(model, Predictor):
        raise TypeError(
            "an estimator with coefficients needs a model that derives from Predictor, and "
            f"{type(model).__name__} does not; derive it from "
            "skbayes_sg.models.predictor.Predictor and write what that asks for, or sample it by "
            "chains.run_chain"
        )


def _require_rows(posterior: Posterior, why: str) -> None:
    """Refuse another sampler than that with control variates where rows are read in blocks."""
    if posterior.of_sample is not posterior:
        raise RowsNeededError(f"{why}; another sampler visits rows at each step")


def _too_many(dim: int) -> str:
    return f"{dim} parameters are too many for full matrices"


_ACCEPT = 0.9  # at HMC's own .8 single chains of nearly separable classes are stuck for a while


class LinearPredictor(CoefficientPrior):
    """An estimator whose response depends on coefficients times features plus intercept."""

    _ratio = ""
    """Name of the exponential of a coefficient, where it is a ratio."""

    def _plan(self) -> OneMode:
        return OneMode()

    def _determined(self, posterior: Posterior) -> Posterior:
        """Without columns of zeros, where there are very many parameters."""
        _require_outputs(posterior.model)
        high_dimensional = self.sampler is None and is_high_dimensional(posterior)
        return nonzero_columns(posterior) if high_dimensional else posterior

    def _agreement(self, posterior: Posterior, n_gradients: int) -> dict[str, float]:
        """Also what gradients say of single parameters, where a pass over the rows is at hand."""
        draws, weights, sampler = self._with_precision(), self.draw_weights_, self.sampler_
        figures = diagnose.of_draws(draws) | diagnose.of_spread(draws)
        if posterior.of_sample is not posterior:
            return figures
        figures |= diagnose.of_gradients(self._joint(posterior), draws, weights, n_gradients)
        # with an anchor the sampler has measured the columns itself
        if np.isfinite(sampler.steepest_column) and sampler.variance_reduction is None:
            figures |= diagnose.of_columns(posterior, self.draws_, weights)
        return figures

    def _require_passes(self) -> None:
        asked = self._asked(self.sampler)
        if asked is None or asked.sampler.variance_reduction is not None:
            return
        raise RowsNeededError(f"sampler={self.sampler!r}, unlike None, visits rows at each step")

    def _merges(self, model: Model, data: InMemory, streaming: bool) -> bool:
        """Whether equal rows are to be merged, which they are when the data are few.

        After merging, a weight of 2 and two copies of a row give bitwise the same draws.
        """
        few = is_sorted_soon(data.n_rows, model.dim)
        return few and not streaming and self.sampler is None

    def predicted_covariance(self, X, y, sample_weight: ArrayLike | None = None) -> NDArray:
        """Covariance of the draws of this fit in theory (math/stationary.md#predicted-covariance).

        Only estimators with coefficients have this method, because the theory is that of a
        posterior with one mode, near a Gaussian. Networks have many modes.

        The result is the stationary covariance of the fitted sampler, as its chains froze it after
        burn-in. Its curvature is that of all rows at the posterior mean. Its gradient noise is the
        mean over the points of a chain, whose covariance is the one that is predicted: exact for
        noise that is quadratic in the parameters, as that of linear regression. Where the prior
        precision is sampled, the curvature is the inverse covariance of a mixture of normal
        distributions over it. The call costs some passes over the data for each parameter, up to 32
        parameters. The result differs from the posterior covariance (the inverse curvature) by the
        sampler's bias. It differs from the covariance of
        the draws by Monte Carlo error and by the posterior's deviation from a Gaussian.

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
            If the sampler has no stationary distribution: its steps decrease, are clipped, or are
            unstable on these data. Also for very many parameters.
        NotFittedError
            If there was no `fit`, only `partial_fit`.

        Examples
        --------
        >>> from sklearn.datasets import make_regression
        >>> from skbayes_sg import BayesianLinearRegressionSGFS
        >>> X, y = make_regression(n_samples=1000, n_features=3, noise=1.0, random_state=0)
        >>> model = BayesianLinearRegressionSGFS("constant_sgd", n_draws=250, random_state=0)
        >>> drawn = model.fit(X, y).draws_.reshape(-1, 5).var(axis=0)
        >>> bool((abs(drawn / model.predicted_covariance(X, y).diagonal() - 1) < 0.3).all())
        True
        """
        check_is_fitted(self, "model_")
        if self._run is None or self._stream is not None:
            raise NotFittedError(
                "predicted_covariance needs a `fit`: a stream has no stationary distribution"
            )
        run, posterior = self._run, self._posterior_of(X, y, sample_weight)
        if is_high_dimensional(posterior):
            raise ValueError(
                f"predicted_covariance is a matrix of all parameters; {posterior.dim} parameters "
                "are too many for one"
            )
        target = run.target(posterior)
        theta = self._moments(self.draws_)[0][None]
        posterior = run.under(posterior)
        if run.sampled is not None:
            scales = run.sampled.scales
            if not (isinstance(scales, OnePrecision)):
                raise ValueError(
                    "predicted_covariance needs one prior precision for all columns; set "
                    "prior_groups=None and prior=None"
                )
            mixture = covariance_over(scales, posterior, target, theta)
            if target.closed_form is not None or target.samples_precision:
                return mixture
            curvature = np.linalg.inv(mixture)
        else:
            curvature = posterior.expand(theta, FULL).curvature.dense()
        Lam = target.coordinates.pullback_matrix(curvature)
        distributions = [run.sampler.stationary_distribution(state, target) for state in run.states]
        c = run.states[0].rows.noise_factor
        M = np.zeros_like(Lam)
        if c > 0:
            assert isinstance(target, Posterior | ExpandedTarget)
            M = mean_noise(target, target.coordinates.transform(theta), distributions[0], Lam, c)
        each = [distribution.covariance(Lam, M) for distribution in distributions]
        mean = np.average(each, axis=0, weights=[len(state.theta) for state in run.states])
        return target.coordinates.covariance(mean)

    def summary(
        self,
        level: float = 0.95,
        *,
        scaler=None,
        reference=None,
        beyond=None,
        direction=False,
        groups=False,
    ):
        """Table of the posterior: one row per coefficient, intercept and sampled noise variance.

        Parameters
        ----------
        level : float in (0, 1), default=0.95
            Posterior probability of the equal-tailed intervals.
        scaler : fitted transformer, optional
            The steps before this estimator: a StandardScaler, a ColumnTransformer or a Pipeline of
            them, ``pipeline[:-1]``. The table is then in the units before them, intercept included.
            Only steps that shift and stretch each column can be undone; columns of encoders keep
            their units. Column names come from them where the estimator has none.
        reference : label, optional
            For more than two classes: the class that the others are compared with.
        beyond : float, optional
            A size of coefficients that matters: the table then has the posterior probability of a
            larger one.
        direction : bool, default=False
            Add the probability of direction: the posterior probability that a number has the sign
            of its median.
        groups : bool, default=False
            A table of the groups of `prior_groups` instead: how far their coefficients spread.

        Returns
        -------
        pandas.DataFrame
            Its index are the names of the columns of X, "intercept", and "noise_variance" or
            "dispersion". Without pandas it is a `sklearn.utils.Bunch` of arrays that prints as a
            table.

            - ``mean``, ``sd``: of the posterior.
            - ``eti95_lb``, ``eti95_ub``: ends of the equal-tailed interval.
            - ``p_positive``: posterior probability that the number is above 0.
            - ``odds_ratio``, ``odds_ratio_eti95_lb``, ``odds_ratio_eti95_ub``: of classifiers, the
              posterior median of exp(coefficient) and its interval: the factor of the odds per unit
              of the column. In the row of an intercept they are the odds where all columns are 0.
              With a log link ``rate_ratio``: the factor of the mean. NaN in the row of a
              dispersion, which is no coefficient.
            - ``ess_bulk``, ``ess_tail``: effective number of independent draws for the centre, and
              for the 5 % and 95 % quantiles.
            - ``r_hat``: 1 where the chains agree. The fit warns above its
              ``diagnostics_["r_hat_limit"]``: 1.05, or more for many chains.
            - ``mcse_mean``: Monte Carlo error of ``mean``.
            - ``p_beyond``: probability that the absolute value is above `beyond`, if given.
            - ``p_direction``: from 0.5 where the sign is open to 1 where it is certain, if asked.

            Of groups, the numbers are those of the root mean square of their coefficients' prior
            standard deviations, in the units of X: of a factor's levels, the standard deviation of
            random intercepts. ``n_coefficients`` counts them. ``attrs`` holds the prior precisions
            that were learned.

        Raises
        ------
        ValueError
            If `scaler` does more than shift and stretch columns, if `reference` is not one of at
            least three classes, if a stream has not drawn yet, or if `groups` is asked for where
            the prior is given.

        Notes
        -----
        With more than two classes, to add one number to the coefficients of all classes changes no
        probability, so only differences mean something. The rows, with the class as first level of
        the index, are differences to the mean over the classes, or to `reference`. The prior alone
        knows that common number. It is part of `coef_std_`, which is therefore larger.

        Weights of draws (`draw_weights_`) count in every column.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.preprocessing import StandardScaler
        >>> from skbayes_sg import BayesianLogisticRegressionSGFS
        >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        >>> model = BayesianLogisticRegressionSGFS(random_state=0)
        >>> pipeline = make_pipeline(StandardScaler(), model).fit(X.iloc[:, :3], y)
        >>> table = model.summary(scaler=pipeline[0])
        >>> table.index.tolist()
        ['mean radius', 'mean texture', 'mean perimeter', 'intercept']
        >>> bool(table.loc["mean texture", "odds_ratio_eti95_ub"] < 1)
        True
        """
        if groups:
            return of_groups(self, level)
        table = of_coefficients(self, level, scaler, reference, beyond)
        if direction:
            table["p_direction"] = np.maximum(table["p_positive"], 1 - table["p_positive"])
        return table
