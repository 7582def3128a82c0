"""Linear regression with the noise of Student's t."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, polygamma, psi, stdtr

from skbayes_sg.data import Data, of_targets
from skbayes_sg.models.base import Response, notices_of_means
from skbayes_sg.models.predictor import Family, once

_MANY = 10_000  # rows, with which a fit by HMC takes about a minute


class Student(Family, Response):
    """y = eta + s t, with t of nu degrees of freedom: ``s = s_0 + exp(a)``, ``nu = 1 + exp(b)``.

    With ``r = (y - eta) / s`` a row has the weight ``w = (nu + 1) / (nu + r^2)``, which is small
    for an outlier (Lange, Little & Taylor 1989). The least scale s_0 is a hundred-thousandth of the
    unit of y, or the largest error of its rounding if that is more: where columns can fit every
    row, the likelihood has no largest value without it. From one degree of freedom on,
    rows that lie on a line exactly outweigh the others only if they are more than half
    (math/models.md#robust-regression).

    Parameters
    ----------
    n_features : int
    fit_intercept : bool, default=True
    unit : float, default=1.0
        Of y, in which the scale has its prior.
    resolution : float, default=0.0
        Of y, if its values are multiples of a number.
    """

    fits_perfectly = True
    residual_scale = -2, 1.0
    own = ("log_scale", "log_freedom_above_one")
    own_sd = (2.0, 1.0)
    canonical = False
    has_location = True
    has_variance = False  # up to two degrees of freedom

    def __init__(
        self,
        n_features: int,
        fit_intercept: bool = True,
        unit: float = 1.0,
        resolution: float = 0.0,
    ) -> None:
        super().__init__(n_features, fit_intercept)
        self.unit, self.resolution, self.own_mean = unit, resolution, (float(np.log(unit)), 2.0)

    @classmethod
    def of_data(cls, data: Data, fit_intercept: bool) -> Student:
        """The unit of y is its interquartile range over that of a normal variable of sd 1."""
        rows = data.sample
        low, high = quantiles(rows.y, rows.weight, [0.25, 0.75])
        unit = (high - low) / 1.349 or np.sqrt(of_targets(data)[1]) or 1.0
        of_y = float(unit), resolution(rows.y, rows.weight)
        return cls(data.n_features, fit_intercept, *of_y)

    def spread_of_y(self, data: Data) -> tuple[float, float]:
        """Median and half range of the quartiles, in steps of the resolution if y has one."""
        low, high = quantiles(data.sample.y, data.sample.weight, [0.25, 0.75])
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        if not half:
            half = np.sqrt(of_targets(data)[1])
        step = self.resolution
        ends = np.array([middle - half, middle + half])
        low, high = np.rint(ends / step) * step if step else ends
        return float(0.5 * (low + high)), float(0.5 * (high - low))

    @classmethod
    def notices(cls, data: Data) -> list[str]:
        """Also that a fit will be long, where most of many rows have the same y.

        The scale is then at its least, where its logarithm has a posterior that no expansion
        stands for: every step is one over all rows.
        """
        notices, rows = list[str](), data.sample
        low, high = quantiles(rows.y, rows.weight, [0.25, 0.75])
        if low == high and data.n_rows > _MANY:
            notices.append(
                f"half of {data.n_rows:,.0f} rows or more have y = {low:.3g}: there is next to no "
                "noise to learn a scale from, and this takes minutes; model whether y is this "
                "number by a classifier, and the other rows by a regression"
            )
        return notices + notices_of_means(
            data,
            "whose noise is not Student's, give the observations, or take BayesianLinearRegression "
            "with var_weights",
        )

    def natural(self, name: str, block: NDArray) -> tuple[str, NDArray]:
        if name == "log_freedom_above_one":
            return "degrees_of_freedom", 1 + np.exp(block)
        return ("scale", self.least_scale + np.exp(block)) if name == "log_scale" else (name, block)

    @property
    def least_scale(self) -> float:
        """s_0"""
        return max(self.smallest_scale, 0.5 * self.resolution)

    @property
    def smallest_scale(self) -> float:
        """s_0 of numbers without a resolution"""
        return 1e-5 * self.unit

    def _shared(self, outputs: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """s, nu, and the derivatives of log s over a and of nu over b.

        They are (chains, n), or (chains, 1) where they are the same for all rows of a chain.
        """
        more, above_one = np.exp(once(outputs[:, 1:])).swapaxes(0, 1)
        s = self.least_scale + more
        return s, 1 + above_one, more / s, above_one

    def log_loss_moments(self, theta: NDArray, X: NDArray) -> tuple[NDArray, NDArray]:
        """The logarithm of 1 + r^2 / nu is that of a ratio of Gamma variables."""
        s, nu, *_ = (shared[0, 0] for shared in self._shared(self.outputs(theta, X, np.float64)))
        half, more = 0.5 * nu, 0.5 * (nu + 1)
        mean = more * (psi(more) - psi(half)) + gammaln(half) - gammaln(more)
        mean += 0.5 * np.log(np.pi * nu * s**2)
        variance = more**2 * (polygamma(1, half) - polygamma(1, more))
        return np.full(X.shape[-2], mean), np.full(X.shape[-2], variance)

    def variance(self, outputs: NDArray) -> NDArray:
        """s^2 nu / (nu - 2), which is infinite up to two degrees of freedom"""
        s, nu, *_ = self._shared(outputs)
        with np.errstate(divide="ignore"):
            variance = np.where(nu > 2, s**2 * nu / (nu - 2), np.inf)
        return np.broadcast_to(variance, outputs[:, 0].shape)

    def width(self, outputs: NDArray) -> NDArray:
        return np.broadcast_to(self._shared(outputs)[0], outputs[:, 0].shape)

    def guess(self, y: NDArray, weight: NDArray | None, known: NDArray | None = None) -> NDArray:
        """The median of y as intercept; scale and degrees of freedom as in the prior."""
        theta = np.zeros((1, self.dim))
        theta[0, -2:] = self.own_mean
        if self.fit_intercept:
            theta[0, self._n_coef] = quantiles(y, weight, [0.5])[0]
        return theta

    def value(self, outputs: NDArray, y: NDArray) -> NDArray:
        s, nu, *_ = self._shared(outputs)
        r = (y - outputs[:, 0]) / s
        tails = 0.5 * (nu + 1) * np.log1p(r * r / nu)
        return gammaln(0.5 * (nu + 1)) - gammaln(0.5 * nu) - 0.5 * np.log(np.pi * nu * s**2) - tails

    def residual(self, outputs: NDArray, y: NDArray) -> NDArray:
        """w r / s;  w r^2 - 1, times the derivative of log s; that over nu, times that of nu"""
        s, nu, of_a, of_b = self._shared(outputs)
        r = (y - outputs[:, 0]) / s
        q = r * r
        w = (nu + 1) / (nu + q)
        of_nu = _of_freedom(nu) - 0.5 * np.log1p(q / nu) + 0.5 * w * q / nu
        return np.stack([w * r / s, of_a * (w * q - 1), of_b * of_nu], axis=1)

    def expected(self, outputs: NDArray) -> NDArray:
        s, nu, of_a, of_b = self._shared(outputs)
        information = np.zeros((len(outputs), 3, *outputs.shape[1:]))
        information[:, 0, 0] = (nu + 1) / (nu + 3) / s**2
        information[:, 1, 1] = of_a**2 * 2 * nu / (nu + 3)
        information[:, 1, 2] = information[:, 2, 1] = -of_a * 2 * of_b / (nu + 1) / (nu + 3)
        bend = polygamma(1, 0.5 * nu) - polygamma(1, 0.5 * (nu + 1))
        information[:, 2, 2] = of_b**2 * (0.25 * bend - 0.5 * (nu + 5) / (nu * (nu + 1) * (nu + 3)))
        return information

    def observed_at(self, outputs: NDArray, y: NDArray) -> NDArray:
        s, nu, of_a, of_b = self._shared(outputs)
        r = (y - outputs[:, 0]) / s
        q = r * r
        w, far = (nu + 1) / (nu + q), 1 / (nu + q)
        information = np.empty((len(outputs), 3, *outputs.shape[1:]))
        information[:, 0, 0] = w * (nu - q) * far / s**2
        information[:, 0, 1] = information[:, 1, 0] = of_a * 2 * nu * far * w * r / s
        information[:, 1, 1] = of_a * (of_a * 2 * nu * far * w * q - (1 - of_a) * (w * q - 1))
        of_w = (q - 1) * far**2 * of_b
        information[:, 0, 2] = information[:, 2, 0] = -of_w * r / s
        information[:, 1, 2] = information[:, 2, 1] = -of_a * of_w * q
        bend = 0.25 * (polygamma(1, 0.5 * (nu + 1)) - polygamma(1, 0.5 * nu)) + 0.5 / nu**2
        bend = bend + 0.5 * q * (far / nu + (q - 1) * far**2 / nu - w / nu**2)
        information[:, 2, 2] = -(of_b**2) * bend - self.residual(outputs, y)[:, 2]
        return information

    def distribution(self, y: NDArray, outputs: NDArray) -> NDArray:
        s, nu, *_ = self._shared(outputs)
        return stdtr(nu, (y - outputs[:, 0]) / s)

    def draw(self, outputs: NDArray, rng: np.random.Generator) -> NDArray:
        s, nu, *_ = self._shared(outputs)
        return outputs[:, 0] + s * rng.standard_t(np.broadcast_to(nu, outputs[:, 0].shape))


def quantiles(y: NDArray, weight: NDArray | None, levels: list[float]) -> NDArray:
    """Quantiles of weighted numbers; a weight of two is a repetition."""
    weight = np.ones(len(y)) if weight is None else weight
    return np.quantile(y.astype(np.float64), levels, weights=weight, method="inverted_cdf")


def resolution(y: NDArray, weight: NDArray | None) -> float:
    """The largest number of which all differences of y are multiples; 0 if there is none.

    It is that of integers, or of amounts in cents. Numbers of which fewer than half are repetitions
    have none: a few of them are multiples of something by chance.
    """
    values = np.unique(y).astype(np.float64)
    n_rows = len(y) if weight is None else weight.sum()
    if not 1 < len(values) <= 0.5 * n_rows:
        return 0.0
    error = 4 * np.finfo(y.dtype).eps * np.abs(values).max()  # of a difference
    unit, differences = 0.0, np.diff(values)
    while len(differences):  # Euclid's algorithm
        unit = differences.min()
        times = np.rint(differences / unit)
        remainders = np.abs(differences - times * unit)
        differences = remainders[remainders > (1 + times) * error]
    return float(unit)


def _of_freedom(nu: NDArray) -> NDArray:
    """Derivative of the logarithm of the constant of the density."""
    return 0.5 * (psi(0.5 * (nu + 1)) - psi(0.5 * nu) - 1 / nu)
