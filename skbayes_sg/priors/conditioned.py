"""Independent priors beside what other rows have said, such as those of an earlier fit.

The posterior of the rows of a first fit is its prior times a likelihood that is normal, or normal
inverse gamma with the noise variance. Its natural parameters are those of the posterior less those
of the prior (math/streams.md#streams-as-bayesian-updating). So the prior of the next fit is that
likelihood times the independent priors again, whose precisions may be sampled with the rows of
both.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.linalg import Dense, Diag
from skbayes_sg.priors.normal import GaussianPrior, Precision
from skbayes_sg.priors.normal_inverse_gamma import NormalInverseGammaPrior

Distribution = GaussianPrior | NormalInverseGammaPrior
"""A prior that is the posterior of other rows."""


class ConditionedPrior:
    """A prior of independent parameters, times the likelihood of other rows.

    Its `precision`, `unit` and `mean` are those of independent parameters, and so is what depends
    on sampled precisions. Densities are those of both.

    Parameters
    ----------
    alone : GaussianPrior or NormalInverseGammaPrior
        The prior without the rows.
    theta, gradient : arrays of shape (1, D)
        A point, and the gradient of the log likelihood there.
    information : Diag or Dense
        Minus its second derivatives.
    by_expected : bool, default=False
        Whether they are expected ones, for want of a positive definite matrix.

    Attributes
    ----------
    whole : the kind of `alone`
        The product as a distribution.
    """

    free_shape = None

    def __init__(
        self,
        alone: Distribution,
        theta: NDArray,
        gradient: NDArray,
        information: Diag | Dense,
        by_expected: bool = False,
    ) -> None:
        self.alone, self.by_expected = alone, by_expected
        self._of_rows = theta, gradient, information
        self.precision, self.unit, self.mean = alone.precision, alone.unit, alone.mean
        self.quadratic = alone.quadratic

    @classmethod
    def of(
        cls,
        posterior: Distribution,
        prior: Distribution,
    ) -> ConditionedPrior:
        """What the rows of a posterior have said beside its prior, at its mode.

        So that no small number is the difference of large ones, it is taken where the gradient of
        the posterior is zero.
        """
        theta = posterior.mode
        information = posterior.curvature(theta) + prior.curvature(theta) * -1.0
        return cls(prior, theta, -prior.gradient(theta), information, posterior.by_expected)

    @cached_property
    def whole(self) -> Distribution:
        theta, gradient, information = self._of_rows
        gradient = gradient + self.alone.gradient(theta)
        found = self.alone.updated(theta, gradient, information + self.alone.curvature(theta))
        return found.as_expected() if self.by_expected else found

    def beside(self, alone: Distribution) -> ConditionedPrior:
        """The same rows with another prior."""
        return ConditionedPrior(alone, *self._of_rows, self.by_expected)

    def with_precision(self, precision: NDArray) -> ConditionedPrior:
        return self.beside(self.alone.with_precision(precision))

    @property
    def is_proper(self) -> bool:
        """Whether the product has a positive definite curvature where the rows were expanded."""
        theta, _, information = self._of_rows
        try:
            (information + self.alone.curvature(theta)).cholesky()
        except np.linalg.LinAlgError:
            return False
        return True

    @property
    def operator(self) -> Precision:
        return self.whole.operator

    @property
    def noise(self) -> tuple[float, float] | None:
        """Of the prior without the rows."""
        return self.alone.noise

    @property
    def mode(self) -> NDArray:
        return self.whole.mode

    def independent(self, theta: NDArray) -> NDArray:
        return self.curvature(theta).diagonal()

    def log_density(self, theta: NDArray) -> NDArray:
        return self.whole.log_density(theta)

    def gradient(self, theta: NDArray) -> NDArray:
        return self.whole.gradient(theta)

    def curvature(self, theta: NDArray) -> Diag | Dense:
        return self.whole.curvature(theta)

    def hessian(self, theta: NDArray) -> NDArray:
        return self.whole.hessian(theta)

    def scaled_squares(self, theta: NDArray) -> NDArray:
        return self.whole.scaled_squares(theta)

    def updated(self, theta: NDArray, gradient: NDArray, curvature: Diag | Dense) -> Distribution:
        """The posterior with this gradient (1, D) and curvature at theta (1, D)."""
        return self.whole.updated(theta, gradient, curvature)


NormalPrior = Distribution | ConditionedPrior
"""A prior under which the posterior of a normal likelihood is a `Distribution`."""


def without_rows(prior: Any) -> Any:
    """The independent priors alone, where a prior has what other rows said beside them."""
    return prior.alone if isinstance(prior, ConditionedPrior) else prior


def with_rows(prior: NormalPrior) -> Distribution:
    """A prior and what other rows said as one distribution."""
    return prior.whole if isinstance(prior, ConditionedPrior) else prior
