"""Bayesian logistic and multinomial regression."""

from __future__ import annotations

from numpy.typing import NDArray

from skbayes_sg.estimators.linear_model import LinearClassifier
from skbayes_sg.models import Softmax


class BayesianLogisticRegression(LinearClassifier):
    """Bayesian logistic regression, which takes the place of `LogisticRegression`.

    Instead of one best value `fit` draws some thousand values of the coefficients from their
    posterior. `predict_proba` averages over these draws; `summary` and `predict_interval` return
    their intervals.

    ``p(y = k | x) = softmax(coef x + intercept)_k`` with normal priors. Two classes have one logit;
    K > 2 have K.

    Parameters
    ----------
    sampler : Sampler, str or None, default=None
    prior_precision : float, array (n_features,), "learned" or VariationalEM, default="learned"
        1 / variance of the prior of each coefficient (LogisticRegression's 1/C): one number, or one
        per feature, in squared units of its column of X. "learned": one for all coefficients,
        sampled with them under a weak hyperprior (math/priors.md#a-sampled-precision). Above 1,000
        parameters it is found by chains, and then fixed, unless columns are more than rows, and
        rows are few (math/high_dimensional.md#fewer-rows-than-columns). Such a precision is
        relative to a unit of each column (math/priors.md#units-of-the-columns), so a default fit
        does not change when columns are shifted or scaled; a given one is in the units of X. A
        `VariationalEM` learns one per class or feature, in the sampler.
    fit_intercept : bool, default=True
    intercept_precision : float, default=0.01
        Prior precision of the intercepts, where columns have their means
        (math/priors.md#units-of-the-columns): a standard deviation of 10 logits.
    prior_mean : float or array of shape (n_features,) or (n_logits, n_features), default=0.0
        Mean of the prior of each coefficient; a learned precision is learned around it. That of
        intercepts is 0.
    prior : {"horseshoe", "student_t"}, Horseshoe, StudentT or FittedPosterior, optional
        In place of the normal prior: one for columns of which few matter (`priors.Horseshoe`), or
        some matter much more (`priors.StudentT`). Or the `posterior_` of another fit, with the same
        features and classes: then also in place of `prior_mean` and `intercept_precision`.
    prior_groups : {"share", "feature", "prefix"}, dict or callable, optional
    new_levels : {"sample", "zero", "refuse"}, default="sample"
    forgetting_factor : float in (0, 1], default=1.0
    categorical_features : {"from_dtype"}, list or None, default="from_dtype"
    n_chains : int or "auto", default="auto"
    n_draws : int or "auto", default="auto"
    burn_in : int or "auto", default="auto"
    thin : int or "auto", default="auto"
    warm_start : bool, default=False
    n_jobs : int, optional
    random_state : int, RandomState, Generator or None
    class_weight : dict, "balanced" or None, default=None
    n_predict_draws : int, "auto" or None, default="auto"

    Attributes
    ----------
    classes_
    n_features_in_
    feature_names_in_
    draws_ : array of shape (n_chains, n_draws, dim)
        In single precision if they would take more than a megabyte in double.
        Posterior draws: coefficients class by class, then intercepts.
    draw_weights_
    factors_
    coef_names_
    coef_, coef_std_ : arrays of shape (n_logits, n_features)
    intercept_ : array of shape (n_logits,)
    posterior_
    coef_samples_ : array of shape (n_chains, n_draws, n_logits, n_features)
    intercept_samples_ : array of shape (n_chains, n_draws, n_logits)
    sampler_
    sampler_reason_
    states_
    model_ : Softmax
    prior_precision_
    prior_precision_path_
    prior_precision_blocks_
    prior_precision_draws_
    n_samples_seen_
    log_loss_path_
    n_iter_
    burn_in_, thin_
    n_passes_
    diagnostics_

    See Also
    --------
    skbayes_sg.samplers.SGFS : the sampler that ``sampler="sgfs"`` takes, and its formula.

    Notes
    -----
    Source: Ahn, Korattikara & Welling 2012, with corrections (math/errata.md#errata). The chains
    start around the mode, twice as wide as the posterior. A fit that should not be trusted issues a
    ConvergenceWarning, which names the figure and the parameter to change.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skbayes_sg import BayesianLogisticRegression
    >>> X, y = make_classification(n_samples=10_000, random_state=0)
    >>> model = BayesianLogisticRegression(random_state=0).fit(X, y)
    >>> model.predict_proba(X[:3]).shape
    (3, 2)
    >>> bool(abs(model.diagnostics_["stein_ratio"] - 1) < 0.1)
    True
    """

    def _make_model(self, n_features: int, classes: NDArray) -> Softmax:
        return Softmax(n_features, len(classes), self.fit_intercept)


class BayesianLogisticRegressionSGFS(BayesianLogisticRegression):
    """`BayesianLogisticRegression` under the name of Stochastic Gradient Fisher Scoring.

    That is the sampler of Ahn, Korattikara & Welling (2012), which ``sampler="sgfs"`` takes.
    Parameters, methods and attributes are those of `BayesianLogisticRegression`, and so is the
    sampler by default.
    """
