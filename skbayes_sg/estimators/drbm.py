"""Discriminative restricted Boltzmann machine."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike, NDArray

from skbayes_sg.estimators.multimodal_classifier import MultimodalClassifier
from skbayes_sg.models import DRBM
from skbayes_sg.samplers import Sampler
from skbayes_sg.validation import keep_parameters, require_integer


class DRBMClassifier(MultimodalClassifier):
    """Discriminative restricted Boltzmann machine with a posterior instead of a point.

    A network of one hidden layer, whose units are on or off with probabilities (Larochelle &
    Bengio 2008). `fit` keeps many values of the weights, and predictions average over them.

    ``p(y = k | x)`` is proportional to ``exp(d_k + sum_j softplus(c_j + U_jk + W_j x))``. The
    binary hidden units are summed out exactly. Priors are independent normals of mean zero.
    Predictions average over draws of all chains. Scale the columns of X, to [0, 1] for example.

    Parameters
    ----------
    n_hidden : int, default=41
        Hidden units.
    sampler : Sampler, str or None, default=None
        A sampler, or "sgfs", "sghmc", "sgld", "sgd", "constant_sgd", "momentum_sgd", "iasg" or
        "hmc": in the form that suits a network, with diagonal matrices and short steps (see
        `sampler_reason_`). None: SGHMC in single precision, from modes that its steps without noise
        find first, at a temperature other than 1. At temperature 1 HMC, which is exact in each
        mode, up to 1e7 rows times parameters (or times 20 of the exponentials of a row, if that is
        larger). For more rows "sgfs": SGFS with diagonal matrices and ``B="bounded"``; the Stein
        ratio of short runs chooses its alpha.
    prior_precision : "scale", float, array of shape (4,) or VariationalEM, default="scale"
        1 / variance of the normal prior: one number, or one per block W, U, c, d. "scale" follows
        the inputs, so that their unit does not matter. A priori each part of the input of a hidden
        unit has standard deviation 3, and the biases of the classes have precision 0.01.
        ``VariationalEM()`` starts from "scale" and learns the precisions of W and U in the sampler;
        biases keep theirs.
    prior_mean : float or array, default=0.0
        Mean of the normal prior: one number, or one for each entry of `prior_precision`. Units of a
        hidden layer can change places, so a mean other than 0 is of use where they are told apart.
    temperature : float, optional
        T: the likelihood counts to the power 1/T, each row as 1/T rows. 1 is Bayes. Any other T is
        not, and below 1 probabilities are better on curated data (math/networks.md#temperature). By
        default it is 0.05 with ``sampler=None``. It is 1 if a sampler is given, or a prior is
        learned.
    n_chains : int or "auto", default="auto"
        Independent chains, each from a random point of its own. They find at most as many modes.
        "auto" is 8 for the default sampler at a temperature other than 1, else 4.
    n_draws : int or "auto", default="auto"
        Draws kept per chain. A draw takes 4 bytes per parameter. "auto" is 20 for the default
        sampler at a temperature other than 1, else 50, or fewer so that the draws of all chains
        stay below 256 MB. At temperature 1 it doubles up to four times, within these 256 MB and a
        minute, until averaged predictions are known (networks.md#at-temperature-1).
    burn_in : int or "auto", default="auto"
        Sampler steps before the first kept draw; see the sampler's `run_length`.
    thin : int or "auto", default="auto"
        Sampler steps per kept draw; see the sampler's `run_length`.
    warm_start : bool, default=False
        `fit` goes on where the last fit stopped, without burn-in. With other data or parameters it
        keeps the positions of the chains only, and burns in.
    n_jobs : int, optional
        Processes for the chains (joblib). The draws do not depend on it.
    random_state : int, RandomState, Generator or None
    class_weight : dict, "balanced" or None, default=None
        Factors of the classes' log likelihoods.
    n_predict_draws : int, optional
        Number of evenly spaced draws that predict, instead of all. The Monte Carlo error of a
        probability is its posterior standard deviation (at most 1/2) over the square root of this
        number.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,), where X had string column names
    draws_ : float32 array of shape (n_chains, n_draws, dim)
        Posterior draws; ``model_.unpack(draws_)`` gives them by name.
    draw_weights_ : array of shape (n_draws,)
        Weights of the draws of a chain, equal unless the sampler's step size decreases.
    sampler_ : Sampler
        The sampler that ran, with numbers in place of "auto".
    sampler_reason_ : str
        Why this sampler ran, or what its name stood for.
    states_ : list of State
        Checkpoint of the chains, for `warm_start`.
    model_ : DRBM
    prior_precision_ : array of shape (dim,)
    prior_precision_path_ : array of shape (updates, blocks), where the prior was learned
        Path of the precisions, as geometric means over groups of chains.
    prior_precision_blocks_ : dict of str to float, where the prior was learned
        Learned precision of each block, in the order of the columns of the path.
    n_samples_seen_ : int
        Rows of the last `fit`, and of all chunks that `partial_fit` has read since.
    n_iter_ : int
        Steps of each chain so far.
    burn_in_, thin_ : int
        Steps before the first kept draw, and for each, in the last fit.
    n_passes_ : float
        Rows read by all chains in the last fit, over rows.
    diagnostics_ : dict of str to float
        ``r_hat_max``, ``ess_min``, ``ess_tail_min`` of the class probabilities of a hundred rows
        and of the log posterior, because weights of hidden units have no meaning of their own.
        ``between_chains``, the share of the probabilities' variance that lies between chains (near
        1: each chain is in a mode of its own). ``prediction_error``, the standard error of averaged
        probabilities by the choice of the chains. ``prediction_drift``, how far they are from
        those over the second half of the draws. ``prediction_gain``, the log loss of the shares of
        the classes minus theirs, on these rows of the fit. ``temperature``. ``ess_per_pass``.
        ``stein_ratio`` (drawn over wanted variance of the weights about the mean of all chains) and
        its standard error ``stein_se``. At temperature 1 ``information_ratio``, the same where rows
        know the weights best, and ``information_ratio_se``, if there are some 30 draws.
        ``accept_rate`` for HMC.

    See Also
    --------
    BayesianLogisticRegressionSGFS : without hidden units; one mode.

    Notes
    -----
    Source: Larochelle & Bengio 2008; Ahn, Korattikara & Welling 2012, section 5.3;
    math/networks.md#drbm. The paper's machine for 40 features and 23 classes has 2,647 parameters.
    There is no `predicted_covariance`: the theory is that of a posterior with one Gaussian mode.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.preprocessing import minmax_scale
    >>> from skbayes_sg import DRBMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> with warnings.catch_warnings(action="ignore"):  # two short chains do not agree well
    ...     model = DRBMClassifier(5, n_chains=2, random_state=0).fit(minmax_scale(X), y)
    >>> bool(model.score(minmax_scale(X), y) > 0.95)
    True
    """

    _injected = "bounded"  # scores of a class vanish for most rows, and are large for a few

    n_hidden: int

    def __init__(
        self,
        n_hidden: int = 41,
        *,
        sampler: Sampler | str | None = None,
        prior_precision: ArrayLike | str = "scale",
        prior_mean: ArrayLike = 0.0,
        temperature: float | None = None,
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

    def _make_model(self, n_features: int, classes: NDArray) -> DRBM:
        require_integer("n_hidden", self.n_hidden, 1)
        return DRBM(n_features, len(classes), int(self.n_hidden))
