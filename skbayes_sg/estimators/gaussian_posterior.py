"""The posterior of a fit as a value: `posterior_`, and the prior of another fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.models import Model
from skbayes_sg.posterior.gaussian import Distribution
from skbayes_sg.priors import GaussianPrior, NormalInverseGammaPrior
from skbayes_sg.validation import warn

BY_EXPECTED = (
    "the observed information of the rows and the prior is not positive definite where the "
    "posterior is, as with few rows or between clusters of outliers: standard deviations of "
    "posterior_ are those by the expected information, and may be wrong"
)


@dataclass(frozen=True, eq=False, repr=False)
class FittedPosterior:
    """Posterior of coefficients and intercepts as a normal distribution.

    Where the noise variance was sampled, it is the normal-inverse-gamma distribution: the
    coefficients are normal given the noise variance, with `precision` in units of 1 / noise
    variance.

    Attributes
    ----------
    mean : array of shape (n,)
        Coefficients class by class, then intercepts, as in `draws_`.
    precision : array of shape (n, n)
    covariance : array of shape (n, n)
        Of the coefficients and intercepts, whatever the noise variance.
    noise : tuple (shape, rate) or None
        Inverse-gamma distribution of a sampled noise variance.
    family : str
        Of the response and its link, such as "Poisson": a parameter means the same in no other.
    shapes : dict of str to tuple of int
        Blocks of the parameters.
    feature_names : tuple of str or None
    classes : array or None
    ranks : array or None
        Of ordered classes, the place of each in their order.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skbayes_sg import BayesianLogisticRegressionSGFS
    >>> X, y = make_classification(400, 4, random_state=0)
    >>> january = BayesianLogisticRegressionSGFS(random_state=0).fit(X[:300], y[:300])
    >>> february = BayesianLogisticRegressionSGFS(prior=january.posterior_, random_state=0)
    >>> february.fit(X[300:], y[300:]).posterior_
    FittedPosterior(coef: 1 x 4, intercept: 1)
    """

    distribution: GaussianPrior | NormalInverseGammaPrior
    family: str
    shapes: dict[str, tuple[int, ...]]
    feature_names: tuple[str, ...] | None
    classes: NDArray | None
    ranks: NDArray | None = None

    @classmethod
    def of(cls, estimator: Any, distribution: Distribution) -> FittedPosterior:
        """What a fitted estimator shows of a distribution of its model's parameters."""
        model, names = estimator.model_, getattr(estimator, "feature_names_in_", None)
        return cls(
            distribution,
            type(model).__name__,
            model.shapes,
            None if names is None else tuple(names),
            getattr(estimator, "classes_", None),
            getattr(model, "ranks", None),
        )

    def __repr__(self) -> str:
        sizes = (f"{name}: {' x '.join(map(str, shape))}" for name, shape in self.shapes.items())
        return f"FittedPosterior({', '.join(sizes)})"

    @property
    def mean(self) -> NDArray:
        return np.array(self.distribution.mean[: self.distribution.operator.dim])

    @property
    def precision(self) -> NDArray:
        self._warn()
        return self.distribution.operator.dense()

    @property
    def covariance(self) -> NDArray:
        self._warn()
        noise = 1.0 if self.noise is None else self.distribution.noise_variance  # type: ignore[union-attr]
        return noise * self.distribution.operator.inverse().dense()

    @property
    def noise(self) -> tuple[float, float] | None:
        if isinstance(self.distribution, GaussianPrior):
            return None
        return self.distribution.shape, self.distribution.rate

    def _warn(self) -> None:
        """Where its width is used: the draws of a fit do not have it."""
        if self.distribution.by_expected:
            warn(f"{BY_EXPECTED}; the draws of a fit are not affected")

    def prior_of(
        self, model: Model, estimator: Any, classes: NDArray | None
    ) -> GaussianPrior | NormalInverseGammaPrior:
        """The prior of a model, if its parameters are the same.

        Raises
        ------
        ValueError
            If family, features, classes, intercept or noise differ.
        """
        self._warn()
        names = getattr(estimator, "feature_names_in_", None)
        if names is not None and self.feature_names is not None:
            _require_same_names(self.feature_names, tuple(names))
        if self.family != type(model).__name__:
            raise ValueError(
                f"prior is the posterior of the model {self.family}, and the model of this fit is "
                f"{type(model).__name__}, whose parameters mean something else; give the "
                "posterior_ of a fit of the same kind of estimator"
            )
        if self.shapes != model.shapes:
            raise ValueError(
                f"prior is {self!r}, and the parameters of this fit are {model.shapes}: features, "
                "number of classes, whether there is an intercept, and whether the noise variance "
                "is given must be the same"
            )
        if classes is not None and not np.array_equal(np.asarray(self.classes), classes):
            raise ValueError(f"prior has the classes {self.classes!r}, and y has {classes!r}")
        if not np.array_equal(self.ranks, getattr(model, "ranks", None)):  # type: ignore[arg-type]
            raise ValueError(
                "prior is of classes in another order than categories have now; give the "
                "categories of that fit"
            )
        return self.distribution


def _require_same_names(ours: tuple[str, ...], theirs: tuple[str, ...]) -> None:
    if ours == theirs:
        return
    missing = [name for name in ours if name not in theirs] or ["none"]
    new = [name for name in theirs if name not in ours] or ["none"]
    raise ValueError(
        "prior has other features, or in another order: missing in X are "
        f"{', '.join(missing[:5])}; new are {', '.join(new[:5])}; select the columns of X by "
        "prior.feature_names"
    )
