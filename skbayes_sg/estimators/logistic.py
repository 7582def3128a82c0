"""Bayesian logistic and multinomial regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skbayes_sg.estimators.classifier import BayesianClassifier
from skbayes_sg.estimators.fit_guard import all_or_nothing
from skbayes_sg.estimators.gaussian_posterior import FittedPosterior
from skbayes_sg.estimators.inputs import classes_of
from skbayes_sg.estimators.linear_model import LinearPredictor
from skbayes_sg.estimators.out_of_core import FirstPass, elsewhere, source_of, weights_or_none
from skbayes_sg.models import Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.priors.shrinkage import Horseshoe, StudentT
from skbayes_sg.samplers import Sampler

_CERTAIN = 100.0  # a logit; a probability is 1 in double precision from 37 on


class BayesianLogisticRegressionSGFS(LinearPredictor, BayesianClassifier):
    """Logistic regression with a posterior instead of a point, sampled from minibatches.

    It stands where `LogisticRegression` would. In place of one best value `fit` draws some thousand
    values of the coefficients, each as often as rows and prior make it plausible. `predict_proba`
    averages over them. `summary` and `predict_interval` say how far they differ.

    ``p(y = k | x) = softmax(coef x + intercept)_k`` with normal priors. Two classes have one logit;
    K > 2 have K.

    Parameters
    ----------
    sampler : Sampler, str or None, default=None
        A sampler, or "sgfs", "sgld", "sgd", "constant_sgd", "momentum_sgd", "iasg" or "hmc": with
        its own defaults up to 1,000 parameters, and without full matrices above. None: SGFS with
        control variates where the posterior is near Gaussian, HMC on the same pool of rows
        elsewhere. `sampler_reason_` says what ran.
    prior_precision : float, array (n_features,), "learned" or VariationalEM, default="learned"
        1 / variance of the prior of each coefficient (LogisticRegression's 1/C): one number, or one
        per feature, in squared units of its column of X. "learned": one for all coefficients,
        sampled with them under a weak hyperprior (math.md#a-sampled-precision); above 1,000
        parameters it is learned in the chains, and then fixed. Such a precision is relative to a
        unit of each column (math.md#units-of-the-columns), so a default fit does not change when
        columns are shifted or scaled; a given one is in the units of X. A `VariationalEM` learns
        one per class or feature, in the sampler.
    fit_intercept : bool, default=True
    intercept_precision : float, default=0.01
        Prior precision of the intercepts: a standard deviation of 10 logits.
    prior_mean : float or array of shape (n_features,) or (n_logits, n_features), default=0.0
        Mean of the prior of each coefficient; a learned precision is learned around it. That of
        intercepts is 0.
    prior : {"horseshoe", "student_t"}, Horseshoe, StudentT or FittedPosterior, optional
        In place of the normal prior: one for columns of which few matter (`priors.Horseshoe`), or
        some matter much more (`priors.StudentT`). Or the `posterior_` of another fit, with the same
        features and classes: then also in place of `prior_mean` and `intercept_precision`.
    prior_groups : {"feature", "prefix"}, dict or callable, optional
        Columns that share a learned precision; by default all do. "feature": each has its own. A
        dict has columns, by name or number, by the label of their group; columns of no group are a
        group "other". A function maps a column's name to a label. "prefix": the part of the name
        before "__", as `ColumnTransformer` names the levels of a factor. Levels with a precision of
        their own are random intercepts, and the model is a hierarchical one (math.md#groups).
    forgetting_factor : float in (0, 1], default=1.0
        For streams that drift: `partial_fit` multiplies the information of all earlier rows by it
        before each chunk. The prior is not forgotten. 1 forgets nothing.
    forgetting : float in (0, 1], default="deprecated"
        .. deprecated:: 0.4
            Renamed to `forgetting_factor`; it goes in 0.5.
    n_chains : int or "auto", default="auto"
        Independent chains. "auto" is 32 where one product of matrices serves all chains of a group
        (HMC, control variates), 16 above 10,000 parameters, and 8 otherwise. Such groups have up to
        64 chains, others four.
    n_draws : int or "auto", default="auto"
        Draws kept per chain by each `fit`. "auto" is 4,000 over the number of chains, or as many as
        400 MB hold, with a warning.
    burn_in : int or "auto", default="auto"
        Sampler steps before the first kept draw. "auto" is 64 for HMC, or 150 with fewer than 16
        chains in a group, 25 or more for SGFS with control variates, and
        max(1000, 10 (1 + alpha^2) rows / batch_size) without.
    thin : int or "auto", default="auto"
        Sampler steps per kept draw. "auto" is 1 for HMC, 2 or more for SGFS with control
        variates, and (1 + alpha^2) rows / (5 batch_size), a fifth of the autocorrelation time,
        without.
    warm_start : bool, default=False
        `fit` goes on where the last fit stopped, without burn-in: the new draws are those that one
        longer fit would have drawn next. With other data or parameters it keeps the positions of
        the chains only, and burns in. If the last fit was interrupted before its fourth draw, its
        mode and learned prior serve again.
    n_jobs : int, optional
        Processes for the chains (joblib). The draws do not depend on it.
    random_state : int, RandomState, Generator or None
    class_weight : dict, "balanced" or None, default=None
        Factors of the classes' log likelihoods.
    n_predict_draws : int, optional
        Number of evenly spaced draws that predict, instead of all. The time of a prediction is
        proportional to it. The Monte Carlo error of a probability is its posterior standard
        deviation (at most 1/2) over the square root of this number; see `predict_uncertainty`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,), where X had string column names
    draws_ : array of shape (n_chains, n_draws, dim)
        In single precision if they would take more than a megabyte in double.
        Posterior draws: coefficients class by class, then intercepts.
    draw_weights_ : array of shape (n_draws,)
        Weights of the draws of a chain, equal unless the sampler's step size decreases.
    coef_, coef_std_ : arrays of shape (n_logits, n_features)
        Posterior means and standard deviations.
    intercept_ : array of shape (n_logits,)
    posterior_ : FittedPosterior
        Normal approximation of the posterior: `mean`, `covariance`, `precision`. It may be the
        `prior` of another fit, and `partial_fit` goes on from it. It does not depend on the draws;
        above 1,000 parameters it has their means and variances.
    coef_samples_ : array of shape (n_chains, n_draws, n_logits, n_features)
    intercept_samples_ : array of shape (n_chains, n_draws, n_logits)
    sampler_ : Sampler
        The sampler that ran, with numbers in place of "auto".
    sampler_reason_ : str
        Why this sampler ran, or what its name stood for.
    states_ : list of State
        Checkpoint of the chains, for `warm_start`.
    model_ : Softmax
    prior_precision_ : array of shape (dim,)
        In the units of X.
    prior_precision_path_ : array of shape (updates, blocks), where the prior was learned
        Path of the precisions: those on the way to the last, or geometric means over groups of
        chains.
    prior_precision_blocks_ : dict of str to float, where the prior was learned
        Learned precision of each block, in the order of the columns of the path and in units of
        the columns of X: that of standardised columns.
    prior_precision_draws_ : array of shape (n_chains, n_draws, 1), where the prior was sampled
        The precision of each draw; `prior_precision_blocks_` is its geometric mean.
    n_samples_seen_ : int
        Rows of the last `fit`, and of all chunks that `partial_fit` has read since.
    n_rows_seen_ : int
        .. deprecated:: 0.4
            Renamed to `n_samples_seen_`; it goes in 0.5.
    n_iter_ : int
        Steps of each chain so far.
    burn_in_, thin_ : int
        Steps before the first kept draw, and for each, in the last fit.
    n_passes_ : float
        Rows read by the last fit, search for the mode included, over rows. Chains that share a
        minibatch read it once.
    diagnostics_ : dict of str to float
        ``r_hat_max`` and ``r_hat_limit``, above which the fit warns (math.md#many-chains).
        ``ess_min`` (bulk), ``ess_tail_min``, ``ess_per_pass``. ``stein_ratio`` (drawn over wanted
        variance, averaged over directions; 1 for exact draws of any posterior)
        and its standard error ``stein_se``. ``mean_shift`` and ``sd_ratio`` with standard errors
        ``mean_shift_se`` and ``sd_ratio_se``: how far the worst parameter's mean is off, in
        posterior standard deviations, and its standard deviation drawn over wanted, by gradients of
        all rows; NaN where these would cost more than a tenth of the fit
        (math.md#moments-from-gradients). ``accept_rate`` for HMC.

    See Also
    --------
    skbayes_sg.samplers.SGFS : the default sampler and its formula.

    Notes
    -----
    Source: Ahn, Korattikara & Welling 2012, with corrections (math.md#errata). The chains
    start around the mode, twice as wide as the posterior. A fit that should not be trusted issues a
    ConvergenceWarning, which names the figure and the parameter to change.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skbayes_sg import BayesianLogisticRegressionSGFS
    >>> X, y = make_classification(n_samples=10_000, random_state=0)
    >>> model = BayesianLogisticRegressionSGFS(random_state=0).fit(X, y)
    >>> model.predict_proba(X[:3]).shape
    (3, 2)
    >>> bool(abs(model.diagnostics_["stein_ratio"] - 1) < 0.1)
    True
    """

    def __init__(
        self,
        sampler: Sampler | str | None = None,
        prior_precision: ArrayLike = "learned",
        *,
        fit_intercept: bool = True,
        intercept_precision: float = 0.01,
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
        class_weight: dict | str | None = None,
        n_predict_draws: int | None = None,
    ) -> None:
        self.sampler = sampler
        self.prior_precision = prior_precision
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
        self.class_weight = class_weight
        self.n_predict_draws = n_predict_draws

    _ratio = "odds_ratio"

    def _make_model(self, n_features: int, n_classes: int) -> Softmax:
        return Softmax(n_features, n_classes, self.fit_intercept)

    def _bind(
        self, X, y: NDArray, classes: NDArray, weight: NDArray | None, n_total: float | None = None
    ) -> Posterior:
        return self._few_merged(super()._bind(X, y, classes, weight, n_total), n_total, classes)

    @all_or_nothing
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Update the posterior by a chunk of rows: the posterior of one is the prior of the next.

        Rows come in chunks of any size from one row, and in any order. They are kept up to a
        budget, a sixteenth of `sklearn.get_config()["working_memory"]`: 64 MB by default. The
        posterior is a normal distribution around the present mean
        (math.md#streams-as-bayesian-updating). It is found again from the rows that are kept
        whenever it has moved and is asked for. Beyond the budget the oldest rows are summed up at
        the present mean, and are kept no longer. A sample of them says what that leaves out:
        `diagnostics_` then has ``folded_shift``, by how many posterior standard deviations the mean
        is off in the worst direction, its Monte Carlo error ``folded_shift_se``, and
        ``folded_variance``, by what share variances are. A ConvergenceWarning names a large shift.
        It is large where the order of a long stream is not random, or where the truth drifts.

        Nothing is sampled: `sampler` must be None, and `draws_` are independent draws of the
        present posterior, made whenever they are asked for. After `fit` it goes on from
        `posterior_`. A prior precision that is to be learned is learned from the first chunk, and
        again each time the rows outside the largest class have doubled, until there were ten of
        them for each parameter. Above 1,000 parameters the precision of the posterior is a
        diagonal.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            A chunk may lack classes.
        classes : array-like, required in the first call
            All labels that may occur.
        sample_weight : array-like of shape (n_rows,), optional
            Factor of each row's log likelihood; an integer weight is a repetition.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data or parameters are impossible; raised before any update.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import make_classification
        >>> from skbayes_sg import BayesianLogisticRegressionSGFS
        >>> X, y = make_classification(5000, random_state=0)
        >>> model = BayesianLogisticRegressionSGFS(random_state=0)
        >>> for rows in np.array_split(np.arange(5000), 100):
        ...     model = model.partial_fit(X[rows], y[rows], classes=[0, 1])
        >>> model.n_samples_seen_, model.draws_.shape
        (5000, (8, 500, 21))
        """
        X, y, known = self._validate_chunk(X, y, classes)
        weight = self._weights(y, known, sample_weight)
        seen = getattr(self, "n_samples_seen_", 0) + X.shape[0]
        posterior = self._bind(X, y, known, weight, n_total=X.shape[0])
        self._update(posterior, classes_=known, n_samples_seen_=seen)
        return self

    def _coefs(self, draws: NDArray) -> NDArray:
        return self.model_.unpack(draws)["coef"]

    def _intercepts(self, draws: NDArray) -> NDArray:
        blocks = self.model_.unpack(draws)
        return blocks.get("intercept", np.zeros((*draws.shape[:2], self.model_.n_logits)))

    def _causes(self, posterior: Posterior) -> list[str]:
        """A column whose coefficient may make a row certain many times over, by its prior alone.

        Where it separates the classes, its posterior is as wide as the prior, and no number of
        draws helps.
        """
        precision = self.model_.unpack(posterior.prior.precision)["coef"].max(axis=0)
        logits = np.sqrt(posterior.data.sample.column_squares() / precision)
        column = int(logits.argmax())
        if not logits[column] > _CERTAIN:
            return []
        name = getattr(self, "feature_names_in_", range(len(logits)))[column]
        return [
            f"the prior of column {name!r} of X allows logits of {logits[column]:.1g}, far beyond "
            "certainty; scale the columns, for example by StandardScaler, or raise prior_precision "
            "for it"
        ]

    def _separated(self, posterior: Posterior) -> bool:
        """Whether the posterior mean is right about every row."""
        rows = posterior.data.sample
        mean = self._moments(self.draws_)[0][None]
        for block in rows.blocks(self.model_.row_size):
            batch = rows.load(block)
            if not self.model_.is_right(mean, batch.X, batch.y).all():
                return False
        return True

    def _bind_blocks(self, X, y, sample_weight) -> tuple[Posterior, dict[str, Any]]:
        """Posterior of rows elsewhere, and the facts about them."""
        source = source_of(X, y, sample_weight)
        found = FirstPass(source, labels=True)
        classes, present = classes_of(found.labels), found.counts > 0
        factors = None
        if self.class_weight is not None:
            counts = found.counts[present]
            factors = self._class_weights(classes[present], classes, counts)
            present &= factors > 0
        if present.sum() < 2:
            raise ValueError(
                "y holds one class only (among rows of positive weight); at least two classes are "
                "needed"
            )
        model, dtype = self._make_model(source.n_features, len(classes)), source.dtype

        def encode(y: NDArray, weight: NDArray | None) -> tuple[NDArray, NDArray | None]:
            codes = np.searchsorted(classes, y)
            if factors is not None:
                weight = factors[codes] if weight is None else weight * factors[codes]
            return model.encode(codes, dtype), weights_or_none(weight, dtype)

        data = found.data(encode)
        prior = self._prior(model, data, classes)
        return Posterior(model, data, prior), {"classes_": classes, "n_samples_seen_": X.shape[0]}

    def _posterior_of(self, X, y, sample_weight: ArrayLike | None) -> Posterior:
        if elsewhere(X):
            return self._bind_blocks(X, y, sample_weight)[0]
        return super()._posterior_of(X, y, sample_weight)

    def _read_off(self, posterior: Posterior) -> None:
        """Coefficients from the draws."""
        self.prior_precision_ = self._precision_of(posterior)
        self.coef_, self.coef_std_ = self._moments(self.coef_samples_)
        self.intercept_, _ = self._moments(self.intercept_samples_)
