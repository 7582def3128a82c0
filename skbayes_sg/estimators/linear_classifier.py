"""The base of classifiers with coefficients: streams, and what their warnings mean."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import of_columns
from skbayes_sg.estimators.classifier import WEIGHTS, BayesianClassifier
from skbayes_sg.estimators.fit_guard import all_or_nothing
from skbayes_sg.estimators.inputs import class_factors, require_two
from skbayes_sg.estimators.linear_model import LinearModel
from skbayes_sg.estimators.out_of_core import FirstPass, source_of, weights_or_none
from skbayes_sg.estimators.updating import update
from skbayes_sg.inference.precision import SEPARATED
from skbayes_sg.posterior import Posterior

_CERTAIN = 100.0  # a logit; a probability is 1 in double precision from 37 on


class LinearClassifier(LinearModel, BayesianClassifier):
    """A classifier whose logits are linear in its coefficients. The model is the subclass's."""

    _has_rows = True

    @all_or_nothing
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Update the posterior by a chunk of rows: the posterior of one is the prior of the next.

        Rows come in chunks of any size from one row, and in any order. They are kept up to a
        budget, a sixteenth of `sklearn.get_config()["working_memory"]`: 64 MB by default. The
        posterior is a normal distribution around the present mean
        (math/streams.md#streams-as-bayesian-updating). It is found again from the rows that are
        kept whenever it has moved and is asked for. Beyond the budget the oldest rows are summed up
        at the present mean, and are kept no longer. A sample of them says what that leaves out:
        `diagnostics_` then has ``folded_shift``, by how many posterior standard deviations the mean
        is off in the worst direction, its Monte Carlo error ``folded_shift_se``, and
        ``folded_variance``, by what share variances are. A ConvergenceWarning names a large shift.
        It is large where the order of a long stream is not random, or where the truth drifts.

        Each chunk is judged before it is learned. `log_loss_path_` has its log loss beside what the
        posterior predicted. Where the truth moves, the posterior mean lags behind, and each chunk
        would have a smaller log loss if it had gone on where the last ones pulled it:
        ``diagnostics_["drift"]`` is that slope of the log losses in its standard errors, which is
        near 0 or below where nothing moves, whether the model is right or not
        (math/streams.md#drift). A ConvergenceWarning says when it passes 5. Rows that are sorted
        by y drift too.

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
        (5000, (8, 256, 21))
        """
        X, y, known = self._validate_chunk(X, y, classes)
        seen = getattr(self, "n_samples_seen_", 0) + X.shape[0]
        posterior = self._bind(X, y, known, sample_weight, n_total=X.shape[0])
        update(self, posterior, {"classes_": known, "n_samples_seen_": seen})
        return self

    def _explained(self, posterior: Posterior, warnings: list[str]) -> list[str]:
        """That a plane separates the classes, where chains have learned the precision.

        And a column whose prior alone allows a coefficient that makes rows certain.

        Where it separates the classes, its posterior is as wide as the prior, and no number of
        draws helps. An intercept takes the mean of a column, however far from zero.
        """
        fit = self._fit
        assert fit is not None
        if fit.scales is None and fit.learned is not None and is_separated(self, posterior):
            warnings = [*warnings, SEPARATED]
        if not warnings:
            return []
        precision = self.model_.unpack(posterior.prior.precision)["coef"].max(axis=0)
        columns = of_columns(posterior.data)
        square = columns.variance + (0.0 if self.fit_intercept else columns.mean**2)
        logits = np.sqrt(square / precision)
        column = int(logits.argmax())
        if not logits[column] > _CERTAIN:
            return warnings
        name = getattr(self, "feature_names_in_", range(len(logits)))[column]
        return [
            *warnings,
            f"the prior of column {name!r} of X allows logits of {logits[column]:.1g}, far beyond "
            "certainty; scale the columns, for example by StandardScaler, or raise prior_precision "
            "for it",
        ]

    def _bind_blocks(self, X, y, sample_weight) -> tuple[Posterior, dict[str, Any]]:
        """Posterior of rows out of core, and the facts about them."""
        source = source_of(X, y, sample_weight)
        found = FirstPass(source, labels=True)
        classes, factors = self._classes_of(found.labels), None
        totals = np.zeros(len(classes))
        totals[np.searchsorted(classes, found.labels)] = found.totals
        present = totals > 0
        if self.class_weight is not None:
            factors = class_factors(self.class_weight, totals, classes)
            present &= factors > 0
        require_two(present.sum())
        model, dtype = self._make_model(source.n_features, classes), source.dtype

        def encode(y: NDArray, weight: NDArray | None) -> tuple[NDArray, NDArray | None]:
            codes = np.searchsorted(classes, y)
            if factors is not None:
                weight = factors[codes] if weight is None else weight * factors[codes]
            return model.encode(codes, dtype), weights_or_none(WEIGHTS, weight, dtype)

        data = found.data(encode)
        prior = self._prior(model, data, classes)
        return Posterior(model, data, prior), {"classes_": classes, "n_samples_seen_": X.shape[0]}


def is_separated(estimator: Any, posterior: Posterior) -> bool:
    """Whether the posterior mean is right about every row in memory."""
    rows, model = posterior.data.sample, estimator.model_
    mean = estimator._moments(estimator.draws_)[0][None]
    batches = map(rows.load, rows.blocks(model.row_size))
    return all(model.is_right(mean, batch.X, batch.y).all() for batch in batches)
