"""Validation loss over prior precisions, and at the precisions that variational EM learns."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.utils import Bunch

from skbayes_sg.chains.run import in_parallel
from skbayes_sg.estimators.base import BayesianEstimator
from skbayes_sg.inference.variational_em import VariationalEM
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.samplers import ConstantSGD, Sampler
from skbayes_sg.validation import is_integer, real_array, require_integer, warn

_SEGMENT = 5  # values fitted one after another; each fit starts where the last one stopped
_FIRST_BATCH, _LARGEST_BATCH = 20, 100  # bounds of the first size that is tried
_SMALLEST_BATCH = 1
_BATCHES_PER_PASS = 200
_SCALAR_UPDATES = 1000  # by default: a scalar step forgets the start slowly
_REFUSED = "constant SGD cannot run on these data; rely on em_precisions"


def hyperparameter_path(
    estimator: BayesianEstimator,
    X,
    y,
    X_val,
    y_val,
    *,
    prior_precisions: int | ArrayLike = 10,
    em: VariationalEM | None = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Bunch:
    """Validation loss over prior precisions, and at the precisions learned by variational EM.

    Variational EM learns the precision without the validation data. It runs twice: in the
    estimator's own sampler (``em_...``), and in constant SGD as Mandt et al. do (``sgd_em_...``).
    Compare the two. The first is the one to rely on. The second is right where the posterior is
    nearly normal. In regressions it is elsewhere within the standard deviation that the posterior
    of the precision has, if the evidence has a maximum, which it may lack where planes separate the
    classes; in networks it may be off by a factor of ten, and warns
    (math/constant_sgd.md#learning-the-prior-in-constant-sgd).

    As in `sklearn.linear_model.lasso_path`, the fits over the values go from the strongest prior
    down, and each starts where the last one stopped. They do so in runs of five.

    Parameters
    ----------
    estimator : estimator of this package
        It is not changed. Its `prior_precision`, `warm_start` and `n_jobs` are not used. Constant
        SGD does not use its `sampler`, `burn_in` and `thin` either.
    X, y : training data
    X_val, y_val : data on which the loss is measured
    prior_precisions : int or array-like of floats, default=10
        The values, or the number of values between 1e-4 and 1e4 on a logarithmic scale
        (LogisticRegressionCV's ``1 / C``).
    em : VariationalEM, optional
        How the prior is learned, in both fits. By default ``VariationalEM()``, and with 1,000
        updates where constant SGD has a scalar step, which forgets its start slowly.
    sample_weight : array-like of shape (n_rows,), optional
        Of the training rows.
    n_jobs : int, optional
        Processes (joblib): for the groups of chains while the prior is learned, then for the runs
        of values. The results do not depend on it.

    Returns
    -------
    sklearn.utils.Bunch
        ``prior_precisions`` (n,), descending. ``loss`` (n,), the mean negative log predictive
        probability (density for regression) of the validation rows, in nats. ``n_passes`` (n,),
        rows read over rows, by all chains. ``em_blocks``, labels of the blocks of weights that
        have a precision each.

        For each of the two fits that learn the prior: ``em_precisions`` (blocks,), the learned
        precisions; ``em_path`` (updates, blocks), the way to them; ``em_loss``; ``em_n_passes``;
        ``em_sampler``, the sampler that ran; ``em_warnings``, a list of str, why not to trust the
        fit (empty: nothing is known against it). The names of constant SGD's are
        ``sgd_em_precisions`` and so on.

        Where constant SGD cannot run, its path is empty, its numbers are NaN, its sampler is None,
        and ``sgd_em_warnings`` has the reason.

    Raises
    ------
    ValueError, TypeError
        If values are not positive numbers, or if `fit` raises.

    Warns
    -----
    ConvergenceWarning
        What the fits warn of. Those of constant SGD are one warning, with the ratio of its
        precisions to ``em_precisions``.

    Notes
    -----
    Source: Mandt, Hoffman & Blei 2017, sections 3.2 and 6.3. In regressions with up to 1,000
    parameters constant SGD has the exact step of a normal posterior, ``ConstantSGD("full")``, whose
    iterates are spread as the posterior is. Larger regressions and networks have the scalar step of
    Theorem 1, one for all directions, ``ConstantSGD("scalar")``, as in the paper. Minibatches have
    a two-hundredth of the rows, but at least 20 and at most 100. Where a scalar step is unstable,
    the size is halved, down to one row. Smaller minibatches have smaller steps and so need more of
    them, but no more passes (math/constant_sgd.md#minibatches-of-a-scalar-step).

    A scalar step moves slowly along directions of little curvature: to forget a point there takes
    as many passes as the mean curvature is larger. So standardise the columns of X.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import train_test_split
    >>> from skbayes_sg import BayesianLogisticRegression, VariationalEM, hyperparameter_path
    >>> X, y = make_classification(400, 5, n_informative=5, n_redundant=0, random_state=0)
    >>> X, X_val, y, y_val = train_test_split(X, y, random_state=0)
    >>> model = BayesianLogisticRegression(n_draws=50, random_state=0)
    >>> asked = {"prior_precisions": [1.0, 100.0], "em": VariationalEM(n_updates=60)}
    >>> with warnings.catch_warnings(action="ignore"):  # of few effective draws of constant SGD
    ...     path = hyperparameter_path(model, X, y, X_val, y_val, **asked)
    >>> bool(path.em_loss < 1.01 * path.loss.min())
    True
    >>> bool(0.9 < path.sgd_em_precisions[0] / path.em_precisions[0] < 1.1)
    True
    """
    values = _grid(prior_precisions)
    data = _Data(X, y, sample_weight, X_val, y_val)
    model = clone(estimator).set_params(
        prior_precision=VariationalEM() if em is None else em, warm_start=False, n_jobs=n_jobs
    )
    learner = clone(model)
    own, labels = _learned(learner, data), list(learner.prior_precision_blocks_)
    bound = learner.model_
    structure = "full" if bound.fixed_inputs and has_matrix(bound.dim) else "scalar"
    if em is None and structure == "scalar":
        model.set_params(prior_precision=VariationalEM(n_updates=_SCALAR_UPDATES))
    by_sgd = _learned_by_sgd(model, structure, data, len(labels))
    if by_sgd.warnings:  # one is said, as the rest concerns the estimator's own
        n_more = len(by_sgd.warnings) - 1
        more = f" (and {n_more} more in sgd_em_warnings)" if n_more else ""
        ratio = by_sgd.precisions / own.precisions
        ends = " to ".join(dict.fromkeys([f"{ratio.min():.2g}", f"{ratio.max():.2g}"]))
        beside = f" learned {ends} times em_precisions" if by_sgd.sampler is not None else ""
        warn(f"constant SGD (sgd_em_...){beside}: {by_sgd.warnings[0]}{more}")
    runs: list[Any] = np.split(values, range(_SEGMENT, len(values), _SEGMENT))
    results = in_parallel(partial(_fit_run, estimator, data), runs, n_jobs)
    losses, passes = zip(*results, strict=True)
    return Bunch(
        prior_precisions=values,
        loss=np.concatenate(losses),
        n_passes=np.concatenate(passes),
        em_blocks=labels,
        **own.named("em_"),
        **by_sgd.named("sgd_em_"),
    )


def _grid(prior_precisions: Any) -> NDArray:
    if is_integer(prior_precisions):
        require_integer("prior_precisions", prior_precisions, 1)
        return np.logspace(4, -4, prior_precisions)
    values = np.sort(np.atleast_1d(real_array("prior_precisions", prior_precisions)))[::-1]
    if values.ndim != 1 or not values.size or not (np.isfinite(values).all() and values.min() > 0):
        raise ValueError(
            f"prior_precisions must be positive finite numbers, got {prior_precisions!r}"
        )
    return values


class _Data(NamedTuple):
    """Training rows, and those on which the loss is measured."""

    X: Any
    y: Any
    sample_weight: ArrayLike | None
    X_val: Any
    y_val: Any

    def fit(self, model: BayesianEstimator) -> float:
        """Fit, and return the mean negative log predictive probability, or density."""
        model.fit(self.X, self.y, sample_weight=self.sample_weight)
        if is_classifier(model):
            proba = model.predict_proba(self.X_val)
            return float(log_loss(self.y_val, proba, labels=model.classes_))
        mean, std = model.predict(self.X_val, return_std=True)
        z = (np.asarray(self.y_val) - mean) / std
        return float(np.mean(0.5 * z * z + np.log(std) + 0.5 * np.log(2 * np.pi)))


def _fit_run(estimator: BayesianEstimator, data: _Data, values: NDArray) -> tuple[list, list]:
    """Losses and passes of a run of values."""
    model = clone(estimator).set_params(warm_start=True, n_jobs=None)
    loss, passes = [], []
    for value in values:
        loss.append(data.fit(model.set_params(prior_precision=value)))
        passes.append(model.n_passes_)
    return loss, passes


class _Learned(NamedTuple):
    """What a fit that learned its prior adds to the result; by default of one that cannot run."""

    precisions: NDArray
    path: NDArray
    warnings: list[str]
    loss: float = np.nan
    n_passes: float = np.nan
    sampler: Sampler | None = None

    def named(self, prefix: str) -> dict[str, Any]:
        """All under their names in the result."""
        return {prefix + name: value for name, value in self._asdict().items()}


def _learned(model: BayesianEstimator, data: _Data) -> _Learned:
    """Fit, and what it learned."""
    loss = data.fit(model)
    precisions = np.array(list(model.prior_precision_blocks_.values()))
    learned = (precisions, model.prior_precision_path_, model._warnings)
    return _Learned(*learned, loss, model.n_passes_, model.sampler_)


def _learned_by_sgd(
    model: BayesianEstimator, structure: str, data: _Data, n_blocks: int
) -> _Learned:
    """The prior that constant SGD learns, with the largest minibatches whose step is stable."""
    n_rows = len(data.y)
    size = int(np.clip(n_rows // _BATCHES_PER_PASS, _FIRST_BATCH, _LARGEST_BATCH))
    while True:
        model = clone(model).set_params(
            sampler=ConstantSGD(structure, batch_size=size), burn_in="auto", thin="auto"
        )
        try:
            with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
                return _learned(model, data)
        except (ValueError, FloatingPointError) as error:
            if size <= _SMALLEST_BATCH:
                nothing = np.full(n_blocks, np.nan), np.empty((0, n_blocks))
                return _Learned(*nothing, [f"{_REFUSED} ({error})"])
        size = max(size // 2, _SMALLEST_BATCH)
