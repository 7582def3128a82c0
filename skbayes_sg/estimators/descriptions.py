"""Descriptions of parameters and attributes that several estimators share.

The docstring of an estimator has an entry for each of its parameters and attributes. `described`
completes those that are only named, so that every class says all of its own on its page, and each
paragraph is written once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

Class = TypeVar("Class", bound=type)

_ALL = """
warm_start : bool, default=False
    `fit` goes on where the last fit stopped, without burn-in: the new draws are those that one
    longer fit would have drawn next. With other data or parameters it keeps the positions of the
    chains only, and burns in.
n_jobs : int, optional
    Processes for the chains (joblib). By default they run in threads where steps are long, as many
    as BLAS may use (OMP_NUM_THREADS). The draws do not depend on it.
random_state : int, RandomState, Generator or None
    Seed of the draws: an integer gives the same ones in every fit.
class_weight : dict, "balanced" or None, default=None
    Factors of the classes' log likelihoods. "balanced": inverse to the shares of the classes.
n_predict_draws : int, "auto" or None, default="auto"
    Number of evenly spaced draws that predict; None takes all. The time of a prediction is
    proportional to it. The Monte Carlo error of a probability is its posterior standard deviation
    (at most 1/2) over the square root of this number; see `predict_uncertainty`. "auto" takes 400
    to 800, every so many of all: as many as a fit has effective ones at least.
classes_ : array of shape (n_classes,)
    The labels, sorted: the order of the columns of probabilities.
n_features_in_ : int
    Columns of X in the last fit.
feature_names_in_ : array of shape (n_features,), where X had string column names
    Their names.
draw_weights_ : array of shape (n_draws,)
    Weights of the draws of a chain, equal unless the sampler's step size decreases.
sampler_ : Sampler
    The sampler that ran, with numbers in place of "auto".
sampler_reason_ : str
    Why this sampler ran, or what its name stood for.
states_ : list of State
    Where the chains stopped, for `warm_start`.
model_ : Model
    The model whose parameters were drawn: ``model_.unpack(draws_)`` gives them by name.
prior_precision_ : array of shape (dim,)
    Of the parameters in the order of `draws_`, in the units of X.
n_samples_seen_ : int
    Rows of the last `fit`, and of all chunks that `partial_fit` has read since.
n_iter_ : int
    Steps of each chain so far.
burn_in_, thin_ : int
    Steps before the first kept draw, and for each, in the last fit.
n_passes_ : float
    Rows read by the last fit, search for the mode included, over rows. Chains that share a
    minibatch read it once.
"""

_OF_COEFFICIENTS = """
sampler : Sampler, str or None, default=None
    A sampler, or "sgfs", "sghmc", "sgld", "sgd", "constant_sgd", "momentum_sgd", "iasg", "hmc" or
    "underdamped_langevin": with its own defaults up to 1,000 parameters, and without full matrices
    above. None: "underdamped_langevin" where the posterior is near Gaussian enough for control
    variates, HMC on the same pool of rows elsewhere. `sampler_reason_` says what ran.
prior_precision : float, array (n_features,), "learned" or VariationalEM, default="learned"
    1 / variance of the prior of each coefficient: one number, or one per feature, in squared units
    of its column of X. "learned": one for all coefficients, sampled with them under a weak
    hyperprior (math/priors.md#a-sampled-precision); above 1,000 parameters it is learned in the
    chains, and then fixed. Such a precision is relative to a unit of each column
    (math/priors.md#units-of-the-columns), so a default fit does not change when columns are shifted
    or scaled; a given one is in the units of X. A `VariationalEM` learns one per class or feature,
    in the sampler.
fit_intercept : bool, default=True
    Whether there is an intercept. Without one the response of a row of zeros is fixed.
prior_mean : float or array of shape (n_features,) or (1, n_features), default=0.0
    Mean of the prior of each coefficient; a learned precision is learned around it.
prior : {"horseshoe", "student_t"}, Horseshoe, StudentT or FittedPosterior, optional
    In place of the normal prior: one for columns of which few matter (`priors.Horseshoe`), or some
    matter much more (`priors.StudentT`). Or the `posterior_` of another fit of the same kind, with
    the same features: then also in place of `prior_mean` and `intercept_precision`.
prior_groups : {"feature", "prefix"}, dict or callable, optional
    Columns that share a learned precision; by default all do. "feature": each has its own. A dict
    has columns, by name or number, by the label of their group; columns of no group are a group
    "other". A function maps a column's name to a label. "prefix": the part of the name before "__",
    as `ColumnTransformer` names the levels of a factor. Levels with a precision of their own are
    random intercepts, and the model is a hierarchical one (math/priors.md#groups).
new_levels : {"sample", "zero", "refuse"}, default="sample"
    What is predicted for a level of a factor of `prior_groups` that the fit never saw, which is a
    row of zeros in its columns where each row of the fit had a one. "sample": its effect is drawn
    from the distribution of the levels' effects, whose standard deviation each draw has. "zero":
    the effect is zero. "refuse": a ValueError (math/priors.md#new-levels).
forgetting_factor : float in (0, 1], default=1.0
    For streams that drift: `partial_fit` multiplies the information of all earlier rows by it
    before each chunk. The prior is not forgotten. 1 forgets nothing.
n_chains : int or "auto", default="auto"
    Independent chains. "auto" is 32 where one product of matrices serves all chains of a group
    (HMC, control variates), 16 where steps of HMC are long (4,000 outputs of rows or more), and 8
    otherwise. With control variates and more than 1,000 parameters it is 8 of dense rows and 16 of
    sparse ones. Such groups have up to 64 chains, others four.
n_draws : int or "auto", default="auto"
    Draws kept per chain by each `fit`. "auto" is 2,048 over the number of chains, at most 128
    above 1,000 parameters, and half as many more each time, up to eight times, while R-hat is above
    its limit or the effective draws of bulk or tails are fewer than 400 (Vehtari et al. 2021). It
    adds none that take more than a minute, and keeps at most what 400 MB hold, with a warning where
    that is less. A fit that ends short of 400 warns, but not of more than 200 where time is the
    reason.
burn_in : int or "auto", default="auto"
    Sampler steps before the first kept draw. "auto" is 64 for HMC, or 150 with fewer than 8 chains
    in a group, 25 or more for SGFS with control variates, and
    max(1000, 10 (1 + alpha^2) rows / batch_size) without.
thin : int or "auto", default="auto"
    Sampler steps per kept draw. "auto" is 1 for HMC, 2 or more for SGFS with control variates, and
    (1 + alpha^2) rows / (5 batch_size), a fifth of the autocorrelation time, without.
coef_, coef_std_ : arrays of shape (n_features,)
    Posterior means and standard deviations, in double precision whatever that of X.
intercept_ : float
    Posterior mean.
coef_samples_ : array of shape (n_chains, n_draws, n_features)
    Draws of `coef_`, a view of `draws_`.
intercept_samples_ : array of shape (n_chains, n_draws)
    Draws of `intercept_`.
posterior_ : FittedPosterior
    Normal approximation of the posterior: `mean`, `covariance`, `precision`. It may be the `prior`
    of another fit, and `partial_fit` goes on from it. It does not depend on the draws; above 1,000
    parameters it has their means and variances.
prior_precision_path_ : array of shape (updates, blocks), where the prior was learned
    Path of the precisions: those on the way to the last, or geometric means over groups of chains.
prior_precision_blocks_ : dict of str to float, where the prior was learned
    Learned precision of each block, in the order of the columns of the path and in units of the
    columns of X: that of standardised columns.
prior_precision_draws_ : array of shape (n_chains, n_draws, n_groups), where the prior was sampled
    The precisions of each draw; `prior_precision_blocks_` are their geometric means.
log_loss_path_ : array of shape (n_chunks, 3), of a stream
    Of the last 10,000 chunks: the log loss of a row before the chunk was learned, in the weighted
    mean, at the posterior mean; its mean and its standard deviation if the model is right. NaN for
    the first rows, before which there is only the prior.
diagnostics_ : dict of str to float
    ``r_hat_max`` and ``r_hat_limit``, above which the fit warns (math/diagnostics.md#many-chains).
    ``ess_min`` (bulk), ``ess_tail_min``, ``ess_per_pass``. ``sd_error``, the largest relative Monte
    Carlo error of a standard deviation. ``stein_ratio`` (drawn over wanted variance, averaged over
    directions; 1 for exact draws of any posterior) and its standard error ``stein_se``.
    ``mean_shift`` and ``sd_ratio`` with standard errors ``mean_shift_se`` and ``sd_ratio_se``: how
    far the worst parameter's mean is off, in posterior standard deviations, and its standard
    deviation drawn over wanted, by gradients of all rows; NaN where these would cost more than a
    tenth of the fit (math/diagnostics.md#moments-from-gradients). ``accept_rate`` for HMC.
"""

_OF_NETWORKS = """
hidden_layer_sizes : int or sequence of int, default=(30,)
    Units of each hidden layer.
activation : {"logistic", "tanh", "relu"}, default="logistic"
    Of the hidden units.
sampler : Sampler, str or None, default=None
    A sampler, or "sgfs", "sghmc", "sgld", "sgd", "constant_sgd", "momentum_sgd", "iasg" or "hmc":
    in the form that suits a network, with diagonal matrices and short steps (see
    `sampler_reason_`). None: SGHMC in single precision, from modes that its steps without noise
    find first, at a temperature other than 1. At temperature 1 HMC, which is exact in each mode, up
    to 1e7 rows times parameters (or times 20 of the exponentials of a row, if that is larger). For
    more rows "sgfs": SGFS with diagonal matrices; the Stein ratio of short runs chooses its alpha.
prior_precision : "scale", float, array (n_groups,) or VariationalEM, default="scale"
    1 / variance of the normal prior: one number, or one per group of weights and biases, which is a
    layer. "scale" follows the inputs, so that their unit does not matter. A priori the weighted sum
    into a hidden unit has standard deviation 3, and the last layer has precision 0.01.
    ``VariationalEM()`` starts from "scale" and learns the precision of each group's weights in the
    sampler; biases keep theirs.
prior_mean : float or array, default=0.0
    Mean of the normal prior: one number, or one for each entry of `prior_precision`. Hidden units
    can change places, so a mean other than 0 is of use where they are told apart.
temperature : float, optional
    T: the likelihood counts to the power 1/T, each row as 1/T rows. 1 is Bayes. Any other T is not,
    and below 1 probabilities are better on curated data (math/networks.md#temperature). By default
    it is 0.05 with ``sampler=None``. It is 1 if a sampler is given, or a prior is learned.
n_chains : int or "auto", default="auto"
    Independent chains, each from a random point of its own. They find at most as many modes. "auto"
    is 8 for the default sampler in modes, else 4.
n_draws : int or "auto", default="auto"
    Draws kept per chain. A draw takes 4 bytes per parameter. "auto" is 20 for the default sampler
    at a temperature other than 1, else 50, or fewer so that the draws of all chains stay below 256
    MB. At temperature 1 there are up to sixteen times as many, within these 256 MB and a minute,
    until averaged predictions are known (networks.md#at-temperature-1).
burn_in : int or "auto", default="auto"
    Sampler steps before the first kept draw; see the sampler's `run_length`.
thin : int or "auto", default="auto"
    Sampler steps per kept draw; see the sampler's `run_length`.
draws_ : float32 array of shape (n_chains, n_draws, dim)
    Posterior draws; ``model_.unpack(draws_)`` gives them by name.
prior_precision_path_ : array of shape (updates, blocks), where the prior was learned
    Path of the precisions, as geometric means over groups of chains.
prior_precision_blocks_ : dict of str to float, where the prior was learned
    Learned precision of each block, in the order of the columns of the path.
diagnostics_ : dict of str to float
    ``r_hat_max``, ``ess_min``, ``ess_tail_min`` of the class probabilities of a hundred rows and of
    the log posterior, because weights of hidden units have no meaning of their own.
    ``between_chains``, the share of the probabilities' variance that lies between chains (near 1:
    each chain is in a mode of its own). ``prediction_error``, the standard error of averaged
    probabilities by the choice of the chains. ``prediction_drift``, how far they are from those
    over the second half of the draws. ``prediction_gain``, the log loss of the shares of the
    classes minus theirs, on these rows of the fit. ``temperature``. ``ess_per_pass``.
    ``stein_ratio`` (drawn over wanted variance of the weights about the mean of all chains) and its
    standard error ``stein_se``. At temperature 1 ``information_ratio``, the same where rows know
    the weights best, and ``information_ratio_se``, if there are some 30 draws. ``accept_rate`` for
    HMC.
"""


def _entries(text: str) -> dict[str, str]:
    """Entries of a section, by the names before the colon."""
    each = re.split(r"^(?=\w)", text.strip("\n") + "\n", flags=re.MULTILINE)[1:]
    return {entry.partition(" :")[0]: entry for entry in each}


_SHARED = _entries(_ALL)
OF_COEFFICIENTS = _SHARED | _entries(_OF_COEFFICIENTS)
OF_NETWORKS = _SHARED | _entries(_OF_NETWORKS)


def described(table: dict[str, str]) -> Callable[[Class], Class]:
    """Complete the entries of a class's docstring that have no description, or not even a type."""

    def completed(match: re.Match[str]) -> str:
        head, _, body = table.get(match[1], "").partition("\n")
        if not body:
            return match[0]
        head = match[0].rstrip("\n") if " : " in match[0] else f"    {head}"
        return "\n".join([head, *(f"    {line}" for line in body.splitlines())]) + "\n"

    def decorated(cls: Class) -> Class:
        if cls.__doc__ is not None:  # as under python -OO
            entry = r"^    (\w+(?:, \w+)*)(?: : .*)?\n(?=    \w|\n)"
            before, parameters, rest = cls.__doc__.partition("    Parameters\n")
            entries, notes, after = rest.partition("    Notes\n")
            entries = re.sub(entry, completed, entries, flags=re.MULTILINE)
            cls.__doc__ = before + parameters + entries + notes + after
        return cls

    return decorated
