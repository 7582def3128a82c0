"""The draws of an estimator in the formats of other packages."""

from __future__ import annotations

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skbayes_sg.inspection import export


class Exported:
    """The part of an estimator that hands its draws on."""

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
        (32, 125, 150)
        """
        check_is_fitted(self, "model_")
        return export.to_arviz(self, X, y, sample_weight, log_likelihood, posterior_predictive)
