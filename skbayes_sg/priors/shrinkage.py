"""Priors of coefficients most of which are near zero: the regularised horseshoe and Student's t.

Each column has a scale of its own, shared by the classes, beside one that all columns share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from skbayes_sg.priors.base import Prior
from skbayes_sg.priors.scales import OnePrecision, Scales
from skbayes_sg.validation import require_positive


class ScaleMixture(ABC):
    """A prior under which each column has a scale of its own, sampled with the coefficients.

    A prior of one's own derives from it, as a frozen dataclass whose fields are its parameters, and
    is given to an estimator as ``prior=``. It writes `scales`: what the precision of each column is
    a function of, and the density of that.
    """

    def validate(self, n_features: int) -> None:
        """Raise ValueError or TypeError if a parameter is impossible for so many columns."""
        return

    @abstractmethod
    def scales(self, columns: Scales, information: float) -> Scales:
        """The scales that are sampled.

        Parameters
        ----------
        columns : Scales
            With a group for each column: its `block`, `group`, `labels` and `unit` are those of the
            scales.
        information : float
            What rows know of a coefficient in the mean, in squared units of its column; 0 where no
            column varies.
        """


@dataclass(frozen=True)
class Horseshoe(ScaleMixture):
    """The regularised horseshoe: most coefficients are nearly zero, and some are not.

    ``beta_j ~ N(0, tau^2 l_j^2 c^2 / (c^2 + tau^2 l_j^2))`` with half-Cauchy tau and l_j, and an
    inverse gamma c^2. It is for many columns few of which matter, also where columns are more than
    rows. Where a plane separates the classes, the slab alone bounds the coefficients. In units of
    the columns (math/priors.md#units-of-the-columns).

    Parameters
    ----------
    expected_nonzero : float, optional
        Columns that are expected to matter. It sets the scale of tau, so that a tenth or ten times
        as many are no surprise. By default a tenth of all columns, and at least one.
    slab_scale : float, default=2.0
        c of coefficients that matter, in logits per unit of a column, or in noise standard
        deviations.
    slab_df : float, default=4.0
        Degrees of freedom of Student's t, which is their prior.

    Notes
    -----
    Source: Piironen & Vehtari 2017, Electronic Journal of Statistics 11, Eqs. 2.8 and 3.12.

    Examples
    --------
    >>> from skbayes_sg import BayesianLogisticRegression
    >>> from skbayes_sg.priors import Horseshoe
    >>> BayesianLogisticRegression(prior=Horseshoe(expected_nonzero=5)).prior.slab_scale
    2.0
    """

    expected_nonzero: float | None = None
    slab_scale: float = 2.0
    slab_df: float = 4.0

    def validate(self, n_features: int) -> None:
        require_positive("prior: slab_scale", self.slab_scale, "it is the size of effects")
        require_positive("prior: slab_df", self.slab_df, "4 has heavy tails, 100 is nearly normal")
        if self.expected_nonzero is None:
            return
        require_positive("prior: expected_nonzero", self.expected_nonzero, "it counts columns")
        if not self.expected_nonzero < n_features:
            raise ValueError(
                f"prior: expected_nonzero must be below the number of columns, {n_features}, got "
                f"{self.expected_nonzero}; where all columns matter use prior=None"
            )

    def scales(self, columns: Scales, information: float) -> Scales:
        n = len(columns.labels)
        # a tenth of the columns are expected not to be zero unless the user says more
        expected = self.expected_nonzero or min(max(1.0, 0.1 * n), 0.5 * n)
        of_rows = information or 1.0  # no column varies: their coefficients are held at zero anyhow
        return _Regularised(columns, self, expected / (n - expected) / np.sqrt(of_rows))


@dataclass(frozen=True)
class StudentT(ScaleMixture):
    """Student's t: coefficients of one scale, with outliers.

    ``beta_j ~ N(0, 1 / (lambda w_j))`` with ``w_j ~ Gamma(df / 2, df / 2)`` for each column. lambda
    has the hyperprior that it has for a normal prior.

    Parameters
    ----------
    df : float, default=4.0
        Degrees of freedom: the fewer, the farther out single coefficients may be.

    Examples
    --------
    >>> from skbayes_sg.priors import StudentT
    >>> StudentT(df=3)
    StudentT(df=3)
    """

    df: float = 4.0

    def validate(self, n_features: int) -> None:
        require_positive("prior: df", self.df, "4 has heavy tails, 100 is nearly normal")

    def scales(self, columns: Scales, information: float) -> Scales:
        return _Outliers(columns, self.df)


class _Regularised(Scales):
    """eta = (log tau, log c^2, log l_1, ..., log l_q)."""

    has_heavy_tails = True

    def __init__(self, columns: Scales, horseshoe: Horseshoe, tau: float) -> None:
        super().__init__(columns.block, columns.group, columns.labels, columns.unit)
        self.dim = 2 + len(columns.labels)
        self.of_scale = np.append(1.0, np.zeros(self.dim - 1))
        self.half_df = 0.5 * horseshoe.slab_df
        self.rate = self.half_df * horseshoe.slab_scale**2
        self.log_tau = float(np.log(tau))

    def log_precisions(self, eta: NDArray) -> NDArray:
        return np.logaddexp(-2 * (eta[:, :1] + eta[:, 2:]), -eta[:, 1:2])

    def precisions(self, eta: NDArray) -> NDArray:
        return np.exp(-2 * (eta[:, :1] + eta[:, 2:])) + np.exp(-eta[:, 1:2])

    def pullback(self, eta: NDArray, slopes: NDArray) -> NDArray:
        spike = 1 / (1 + np.exp(2 * (eta[:, :1] + eta[:, 2:]) - eta[:, 1:2]))
        local = -2 * spike * slopes
        slab = (spike - 1) * slopes
        shared = [local.sum(axis=1, keepdims=True), slab.sum(axis=1, keepdims=True)]
        return np.concatenate([*shared, local], axis=1)

    def log_hyperprior(self, eta: NDArray) -> NDArray:
        cauchy = self._cauchy(eta)
        value = (cauchy - np.logaddexp(0.0, 2 * cauchy)).sum(axis=1)
        return value - self.half_df * eta[:, 1] - self.rate * np.exp(-eta[:, 1])

    def hyperprior_slope(self, eta: NDArray) -> NDArray:
        slope = -np.tanh(self._cauchy(eta))
        of_slab = self.rate * np.exp(-eta[:, 1:2]) - self.half_df
        return np.concatenate([slope[:, :1], of_slab, slope[:, 1:]], axis=1)

    def hyperprior_curvature(self, eta: NDArray) -> NDArray:
        inside = expit(2 * self._cauchy(eta))
        curvature = 4 * inside * (1 - inside)
        return np.insert(curvature, 1, self.rate * np.exp(-eta[:, 1]), axis=1)[0]

    def _cauchy(self, eta: NDArray) -> NDArray:
        """Log tau and log l over their scales, (n, 1 + q)."""
        return np.concatenate([eta[:, :1] - self.log_tau, eta[:, 2:]], axis=1)

    def start(self, prior: Prior) -> NDArray:
        shared = [self.log_tau, np.log(self.rate / self.half_df)]
        return np.append(shared, np.zeros(self.dim - 2))[None]


class _Outliers(Scales):
    """eta = (log lambda, log w_1, ..., log w_q)."""

    def __init__(self, columns: Scales, df: float) -> None:
        super().__init__(columns.block, columns.group, columns.labels, columns.unit)
        self.dim = 1 + len(columns.labels)
        self.of_scale = np.append(-2.0, np.zeros(self.dim - 1))
        self.half_df = 0.5 * df
        shared = np.zeros_like(columns.group)
        self._shared = OnePrecision(columns.block, shared, ["coef"], columns.unit)

    def log_precisions(self, eta: NDArray) -> NDArray:
        return eta[:, :1] + eta[:, 1:]

    def pullback(self, eta: NDArray, slopes: NDArray) -> NDArray:
        return np.append(slopes.sum(axis=1, keepdims=True), slopes, axis=1)

    def log_hyperprior(self, eta: NDArray) -> NDArray:
        w = eta[:, 1:]
        return self._shared.log_hyperprior(eta[:, :1]) + self.half_df * (w - np.exp(w)).sum(axis=1)

    def hyperprior_slope(self, eta: NDArray) -> NDArray:
        own = self.half_df * (1 - np.exp(eta[:, 1:]))
        return np.append(self._shared.hyperprior_slope(eta[:, :1]), own, axis=1)

    def hyperprior_curvature(self, eta: NDArray) -> NDArray:
        own = self.half_df * np.exp(eta[0, 1:])
        return np.append(self._shared.hyperprior_curvature(eta[:, :1]), own)

    def start(self, prior: Prior) -> NDArray:
        return np.append(np.log(self.of(prior)[:1]), np.zeros(len(self.labels)))[None]
