"""Bayesian logistic and multinomial regression."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike, NDArray

from skbayes_sg.estimators.gaussian_posterior import FittedPosterior
from skbayes_sg.estimators.linear_classifier import LinearClassifier
from skbayes_sg.models import Softmax
from skbayes_sg.priors.shrinkage import Horseshoe, StudentT
from skbayes_sg.samplers import Sampler
from skbayes_sg.validation import keep_parameters


class BayesianLogisticRegressionSGFS(LinearClassifier):
    """Logistic regression with a posterior instead of a point, sampled from minibatches.

    It stands where `LogisticRegression` would. In place of one best value `fit` draws some thousand
    values of the coefficients, each as often as rows and prior make it plausible. `predict_proba`
    averages over them. `summary` and `predict_interval` say how far they differ.

    ``p(y = k | x) = softmax(coef x + intercept)_k`` with normal priors. Two classes have one logit;
    K > 2 have K.

    Parameters
    ----------
    sampler : Sampler, str or None, default=None
        A sampler, or "sgfs", "sghmc", "sgld", "sgd", "constant_sgd", "momentum_sgd", "iasg", "hmc"
        or "underdamped_langevin": with its own defaults up to 1,000 parameters, and without full
        matrices above. None: "underdamped_langevin" where the posterior is near Gaussian enough for
        control variates, HMC on the same pool of rows elsewhere. `sampler_reason_` says what ran.
    prior_precision : float, array (n_features,), "learned" or VariationalEM, default="learned"
        1 / variance of the prior of each coefficient (LogisticRegression's 1/C): one number, or one
        per feature, in squared units of its column of X. "learned": one for all coefficients,
        sampled with them under a weak hyperprior (math/priors.md#a-sampled-precision); above 1,000
        parameters it is learned in the chains, and then fixed. Such a precision is relative to a
        unit of each column (math/priors.md#units-of-the-columns), so a default fit does not change
        when columns are shifted or scaled; a given one is in the units of X. A `VariationalEM`
        learns one per class or feature, in the sampler.
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
        their own are random intercepts, and the model is a hierarchical one
        (math/priors.md#groups).
    forgetting_factor : float in (0, 1], default=1.0
        For streams that drift: `partial_fit` multiplies the information of all earlier rows by it
        before each chunk. The prior is not forgotten. 1 forgets nothing.
    n_chains : int or "auto", default="auto"
        Independent chains. "auto" is 32 where one product of matrices serves all chains of a group
        (HMC, control variates), 16 above 10,000 parameters, and 8 otherwise. Such groups have up to
        64 chains, others four.
    n_draws : int or "auto", default="auto"
        Draws kept per chain by each `fit`. "auto" is 2,048 over the number of chains, and twice as
        many up to three times, while R-hat is above its limit or the effective draws of bulk or
        tails are fewer than 400 (Vehtari et al. 2021). It adds none that take more than a minute,
        and keeps at most what 400 MB hold, with a warning where that is less than 2,048. A fit that
        ends short of 400 warns, but not of more than 200 where time is the reason.
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
        the chains only, and burns in.
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
        Posterior means and standard deviations, in double precision whatever that of X.
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
    log_loss_path_ : array of shape (n_chunks, 3), of a stream
        Of the last 10,000 chunks: the log loss of a row before the chunk was learned, in the
        weighted mean, at the posterior mean; its mean and its standard deviation if the model is
        right. NaN for the first rows, before which there is only the prior.
    n_iter_ : int
        Steps of each chain so far.
    burn_in_, thin_ : int
        Steps before the first kept draw, and for each, in the last fit.
    n_passes_ : float
        Rows read by the last fit, search for the mode included, over rows. Chains that share a
        minibatch read it once.
    diagnostics_ : dict of str to float
        ``r_hat_max`` and ``r_hat_limit``, above which the fit warns
        (math/diagnostics.md#many-chains). ``ess_min`` (bulk), ``ess_tail_min``, ``ess_per_pass``.
        ``sd_error``, the largest relative Monte Carlo error of a standard deviation.
        ``stein_ratio`` (drawn over wanted variance, averaged over directions; 1 for exact draws of
        any posterior) and its standard error ``stein_se``. ``mean_shift`` and ``sd_ratio`` with
        standard errors ``mean_shift_se`` and ``sd_ratio_se``: how far the worst parameter's mean is
        off, in posterior standard deviations, and its standard deviation drawn over wanted, by
        gradients of all rows; NaN where these would cost more than a tenth of the fit
        (math/diagnostics.md#moments-from-gradients). ``accept_rate`` for HMC.

    See Also
    --------
    skbayes_sg.samplers.SGFS : the default sampler and its formula.

    Notes
    -----
    Source: Ahn, Korattikara & Welling 2012, with corrections (math/errata.md#errata). The chains
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
        keep_parameters(self, locals())

    def _make_model(self, n_features: int, classes: NDArray) -> Softmax:
        return Softmax(n_features, len(classes), self.fit_intercept)
