"""Discriminative restricted Boltzmann machine."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import NDArray

from skbayes_sg.estimators.multimodal_classifier import MultimodalClassifier
from skbayes_sg.models import DRBM
from skbayes_sg.validation import require_integer


@dataclass(eq=False, repr=False)
class DRBMClassifier(MultimodalClassifier):
    """Bayesian discriminative restricted Boltzmann machine.

    A network with one hidden layer of random binary units (Larochelle & Bengio 2008). `fit` keeps
    many values of the weights, and predictions average over them.

    ``p(y = k | x)`` is proportional to ``exp(d_k + sum_j softplus(c_j + U_jk + W_j x))``. The
    binary hidden units are summed out exactly. Priors are independent normals of mean zero. Scale
    the columns of X, to [0, 1] for example.

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
    temperature : float, optional
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
    draws_
    draw_weights_
    sampler_
    sampler_reason_
    states_
    model_ : DRBM
    prior_precision_
    prior_precision_path_
    prior_precision_blocks_
    n_samples_seen_
    n_iter_
    burn_in_, thin_
    n_passes_
    diagnostics_

    See Also
    --------
    BayesianLogisticRegression : without hidden units; one mode.

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

    n_hidden: int = 41

    _injected = "bounded"  # scores of a class vanish for most rows, and are large for a few

    def _make_model(self, n_features: int, classes: NDArray) -> DRBM:
        require_integer("n_hidden", self.n_hidden, 1)
        return DRBM(n_features, len(classes), int(self.n_hidden))
