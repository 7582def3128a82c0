"""Fitted estimators as files, as copies with less in them, and as ArviZ reads them."""

from __future__ import annotations

import copy
import sys
from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skbayes_sg.diagnostics import systematic
from skbayes_sg.estimators.fit_guard import warn
from skbayes_sg.estimators.renamed import with_new_names
from skbayes_sg.inspection import export
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.validation import require_integer
from skbayes_sg.version import __version__

FORMAT = 9
"""Of the fitted attributes. It is raised when their names or meaning change."""
_OF_DISTRIBUTION = ("coef_", "coef_std_", "intercept_", "posterior_")
_MOVED = {
    "anchor": "posterior.gaussian",
    "posterior.mode": "posterior.gaussian",
    "chain_stream": "inference.online_chain",
    "empirical_bayes": "inference.variational_em",
    "estimators.fitted_posterior": "estimators.gaussian_posterior",
    "evidence": "inference.evidence",
    "folded_rows": "inference.folded_rows",
    "kept_rows": "data.kept_rows",
    "layouts": "linalg.layouts",
    "learned_prior": "inference.learned_prior",
    "plan": "inference.prepare",
    "request": "inference.request",
    "rows": "data.minibatches",
    "samplers.anchored": "samplers.langevin",
    "samplers.formulas": "samplers.sgfs_formulas",
    "samplers.metric": "samplers.mass_matrix",
    "stream": "inference.bayesian_updating",
    "uncertain_precision": "estimators.renamed",
}
"""Modules whose classes are in files of version 0.3 and before, and where they are now."""
for _old, _new in _MOVED.items():  # a file that names a missing module cannot even say its version
    sys.modules[f"skbayes_sg.{_old}"] = import_module(f"skbayes_sg.{_new}")

_BLUR = 1e-3  # rounding error of a draw, in posterior standard deviations
_TELL_DIRECTIONS = 512  # draws, or two for each parameter


class Stored(BaseEstimator):
    """The part of an estimator that hands it on; its pickles say in which format they are."""

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_written_by": (FORMAT, __version__)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = with_new_names(state)
        written, version = state.pop("_written_by", (0, "before 0.1.0"))
        super().__setstate__(state)
        if written != FORMAT:
            warn(
                f"this {type(self).__name__} was written by skbayes_sg {version} in format "
                f"{written}, and skbayes_sg {__version__} reads format {FORMAT}: fit it again, "
                f"or load it with skbayes_sg {version}",
                UserWarning,
            )

    def compact(self, n_draws: int | None = None) -> Self:
        """A copy for predictions that takes less space, in memory and in files.

        Draws are in single precision, unless that would blur their spread. The states of the chains
        are left out, so that a warm start has nothing to go on from, and `predicted_covariance`
        nothing to predict. All else stays: `coef_`, `coef_std_` and `diagnostics_` are those of all
        draws.

        Parameters
        ----------
        n_draws : int, optional
            Draws to keep, of all chains together, evenly spaced. The Monte Carlo error of a
            prediction is its posterior standard deviation over the square root of their number. By
            default all are kept.

        Returns
        -------
        estimator of the same kind

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError, TypeError
            If `n_draws` is not an integer of at least the number of chains.

        Examples
        --------
        >>> import pickle
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.preprocessing import scale
        >>> from skbayes_sg import BayesianLogisticRegressionSGFS
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = BayesianLogisticRegressionSGFS(random_state=0).fit(scale(X), y)
        >>> small = model.compact(n_draws=320)
        >>> small.draws_.shape
        (32, 10, 31)
        >>> len(pickle.dumps(small)) < len(pickle.dumps(model)) / 10
        True
        """
        check_is_fitted(self, "draws_")
        n_chains, weights = len(self.draws_), self.draw_weights_
        kept = np.flatnonzero(weights)
        if n_draws is not None:
            require_integer("n_draws", n_draws, n_chains)
            if n_draws // n_chains < len(kept):
                kept, weights = systematic(weights, n_draws // n_chains), np.ones_like(weights)
        small = copy.copy(self)
        small.__dict__.pop("states_", None)
        for name in _OF_DISTRIBUTION:
            if hasattr(self, name):  # a stream computes it
                setattr(small, name, getattr(self, name))
        small._run = small._ready = small._stream = None
        small.draws_ = in_single_precision(self.draws_[:, kept])
        if getattr(self, "_hyper_draws", None) is not None:
            small._hyper_draws = self._hyper_draws[:, kept]
        small.draw_weights_ = weights[kept] / weights[kept].sum()
        return small

    def to_arviz(
        self,
        X=None,
        y=None,
        *,
        sample_weight: ArrayLike | None = None,
        log_likelihood: bool = False,
        posterior_predictive: bool = False,
    ):
        """The draws as ArviZ reads them, with names (needs ArviZ: the extra ``arviz``).

        Parameters
        ----------
        X, y, sample_weight : array-like, optional
            The data of the fit, or others: held-out rows for `log_likelihood`, or X alone for
            `posterior_predictive`.
        log_likelihood : bool, default=False
            Add the log likelihood of each row under each draw, for ``loo`` and ``compare``. It
            takes 8 bytes for each row and draw, and is refused beyond half of the available memory
            (Linux). The log likelihood of a row of weight w, by
            `sample_weight` or `class_weight`, is that of w rows.
        posterior_predictive : bool, default=False
            Add a new label or number for each row under each draw.

        Returns
        -------
        xarray.DataTree
            `arviz.InferenceData` if an ArviZ below 1.0 is installed.

            - ``posterior``: a variable for each block of parameters, dimensions (chain, draw) and
              "feature", "class" or hidden units, by name. Two classes have no dimension "class":
              coefficients are those of ``classes_[1]``. A sampled noise variance is one variable.
            - ``sample_stats``, if X and y are given after a `fit`: ``lp``, the log posterior given
              these rows, up to a constant. Steps and acceptance are not recorded draw by draw.
              Their figures, with `diagnostics_`, the sampler and the reason for it, are attributes
              of the tree.
            - ``log_prior``, where ``sample_stats`` is: the log density of the prior of all
              ``parameters``, up to a constant. Where a precision is sampled, that of the precision
              stands in place of the coefficients'. With `log_likelihood` it is what
              ``psense_summary`` asks for; see `inspection.prior_sensitivity`.
            - ``log_likelihood``, ``posterior_predictive``: ``y``, dimensions (chain, draw, row).
            - ``observed_data``, ``constant_data``: y and X, where given. Labels are their number in
              `classes_`, here and in ``posterior_predictive``.

        Raises
        ------
        ImportError
            If ArviZ is not installed; the message says how to install it.
        ValueError
            If X or y is missing for what was asked, or does not fit the estimator.

        Notes
        -----
        Hidden units of a network can change places, so R-hat of its weights says little: judge a
        network by `diagnostics_` and `diagnose`.

        ArviZ knows no weights of draws. Where `draw_weights_` differ, draws are repeated and left
        out in proportion to their weights (systematic resampling), the same in every chain.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from skbayes_sg import BayesianLogisticRegressionSGFS
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = BayesianLogisticRegressionSGFS(random_state=0).fit(X, y)
        >>> tree = model.to_arviz(X, y, log_likelihood=True)
        >>> tree["posterior"]["coef"].dims
        ('chain', 'draw', 'class', 'feature')
        >>> tree["log_likelihood"]["y"].shape
        (32, 64, 150)
        """
        check_is_fitted(self, "model_")
        return export.to_arviz(self, X, y, sample_weight, log_likelihood, posterior_predictive)


def in_single_precision(draws: NDArray) -> NDArray:
    """Draws (chains, draws, D) rounded to float32, or as they are where that would blur them.

    It would if a mean is some ten thousand standard deviations away from zero, or if draws hardly
    move in a direction in which rounding does.
    """
    if draws.dtype == np.float32:
        return draws
    with np.errstate(over="ignore", invalid="ignore"):
        spread = draws.std(axis=(0, 1))
        rounded = draws.astype(np.float32)
        error = np.abs(rounded - draws).max(axis=(0, 1))
        fine = (error <= _BLUR * spread) & np.isfinite(error)
    if not fine.all() or _is_blurred_across(draws[..., spread > 0], error[spread > 0]):
        return draws
    return rounded


def _is_blurred_across(draws: NDArray, error: NDArray) -> bool:
    """Whether rounding errors of parameters are large along a direction in which draws hardly move.

    A column far from zero has such a direction: its coefficient moves with the intercept, and
    outputs of rows with neither. With variance at least v of the scaled draws along each direction,
    errors of e in each parameter are at most e / sqrt(v) standard deviations. It is asked where
    there are twice as many draws as parameters.
    """
    flat = draws.reshape(-1, draws.shape[-1])
    n, dim = flat.shape
    if not dim or not has_matrix(dim) or n < 2 * dim:
        return False
    some = flat[np.linspace(0, n - 1, min(n, max(2 * dim, _TELL_DIRECTIONS))).astype(int)]
    scale = some.std(axis=0)
    some = (some - some.mean(axis=0)) / scale
    least = (float((error / scale).max()) / _BLUR) ** 2
    try:
        np.linalg.cholesky(some.T @ some / len(some) - least * np.eye(dim))
    except np.linalg.LinAlgError:
        return True
    return False
