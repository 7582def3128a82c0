"""What a prior is."""

from __future__ import annotations

from typing import Protocol

from numpy.typing import NDArray

from skbayes_sg.linalg import Dense, Diag


class Prior(Protocol):
    """Log density up to a constant, its gradient and its curvature, at theta (chains, D).

    Attributes
    ----------
    precision : array of shape (D,)
        1 / variance of each parameter, where parameters are independent; 0 for one whose prior is
        not normal. Of other priors, the diagonal of the precision matrix.
    unit : array of shape (D,)
        Precision of each parameter for a learned precision of 1.
    mean : array of shape (D,)
        0 for a parameter whose prior is not normal.
    quadratic : bool
        Whether the log density is quadratic in theta.
    """

    precision: NDArray
    mean: NDArray
    unit: NDArray
    quadratic: bool

    def with_precision(self, precision: NDArray) -> Prior:
        """The same prior with other precisions (D,) of independent parameters."""

    def independent(self, theta: NDArray) -> NDArray:
        """Curvature of each parameter where parameters are independent, (D,)."""

    def log_density(self, theta: NDArray) -> NDArray:
        """Log density of each chain, (chains,)."""

    def gradient(self, theta: NDArray) -> NDArray:
        """Gradient of each chain, (chains, D)."""

    def curvature(self, theta: NDArray) -> Diag | Dense:
        """Minus the expected Hessian, averaged over the chains."""

    def hessian(self, theta: NDArray) -> NDArray:
        """Minus the second derivatives of the log density at one theta (1, D), (D, D)."""

    def scaled_squares(self, theta: NDArray) -> NDArray:
        """Precision times squared deviation of each parameter: of mean 1, (chains, D).

        Of priors whose parameters are not independent, the deviation times -gradient.
        """
