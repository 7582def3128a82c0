"""A scale mixture of one's own is one class: R2D2, the example of CONTRIBUTING.

Zhang, Naughton, Bondell & Reich 2022, Journal of the American Statistical Association 117, with
normal kernels: the variances of the coefficients are shares of a total, in Dirichlet proportions,
and the share of the variance of y that they explain is Beta(a q, b).
"""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone

from skbayes_sg import BayesianLinearRegression, BayesianLogisticRegression
from skbayes_sg.priors import ScaleMixture
from skbayes_sg.priors.scales import Scales


@dataclass(frozen=True)
class R2D2(ScaleMixture):
    """l_j | xi ~ Gamma(a, xi), xi ~ Gamma(b, 1): l_j is the variance of coefficient j."""

    a: float = 0.5
    b: float = 0.5

    def scales(self, columns, information):
        return VarianceShares(columns, self.a, self.b)


class VarianceShares(Scales):
    """eta = (log xi, log l_1, ..., log l_q)."""

    def __init__(self, columns, a, b):
        super().__init__(columns.block, columns.group, columns.labels, columns.unit)
        self.a, self.b, self.q = a, b, len(columns.labels)
        self.dim = 1 + self.q
        self.of_scale = np.append(-2.0, np.full(self.q, 2.0))

    def log_precisions(self, eta):
        return -eta[:, 1:]

    def pullback(self, eta, slopes):
        return np.append(np.zeros_like(slopes[:, :1]), -slopes, axis=1)

    def log_hyperprior(self, eta):
        xi, var = np.exp(eta[:, 0]), np.exp(eta[:, 1:])
        shapes = (self.b + self.a * self.q) * eta[:, 0] + self.a * eta[:, 1:].sum(axis=1)
        return shapes - xi * (1 + var.sum(axis=1))

    def hyperprior_slope(self, eta):
        xi, var = np.exp(eta[:, :1]), np.exp(eta[:, 1:])
        of_xi = self.b + self.a * self.q - xi * (1 + var.sum(axis=1, keepdims=True))
        return np.append(of_xi, self.a - xi * var, axis=1)

    def hyperprior_curvature(self, eta):
        xi, var = np.exp(eta[0, 0]), np.exp(eta[0, 1:])
        return np.append(xi * (1 + var.sum()), xi * var)

    def start(self, prior):
        return np.append(np.log(self.b), np.full(self.q, np.log(self.a / self.b)))[None]


def test_its_derivatives_are_those_of_its_density():
    columns = Scales.__new__(VarianceShares)
    Scales.__init__(columns, np.arange(4), np.arange(4), list("abcd"), 1.0)
    scales = R2D2(0.7, 1.3).scales(columns, 1.0)
    rng = np.random.default_rng(0)
    eta, h = rng.standard_normal((3, 5)), 1e-5
    slope = scales.hyperprior_slope(eta)
    for k, step in enumerate(h * np.eye(5)):
        above, below = scales.log_hyperprior(eta + step), scales.log_hyperprior(eta - step)
        np.testing.assert_allclose((above - below) / (2 * h), slope[:, k], rtol=1e-6)
        here = eta[:1]
        above, below = scales.hyperprior_slope(here + step), scales.hyperprior_slope(here - step)
        second = -(above - below)[0, k] / (2 * h)
        np.testing.assert_allclose(second, scales.hyperprior_curvature(here)[k], rtol=1e-6)


def test_its_posterior_is_that_of_quadrature(seed):
    """Two orthogonal columns of a known noise variance: each has a closed form given eta."""
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.standard_normal((60, 2)))[0] * np.sqrt(60)
    y = X @ [0.4, 0.05] + rng.standard_normal(60)
    model = BayesianLinearRegression(
        noise_variance=1.0, fit_intercept=False, prior=R2D2(), n_draws=512, random_state=seed
    ).fit(X, y)
    # over a grid of log xi and of log l_j, which are independent given xi
    sums, known, each = X.T @ y, 60.0, []
    x, log_var = np.linspace(-8, 6, 113)[:, None], np.linspace(-14, 7, 211)
    for j in range(2):
        precision = np.exp(-log_var)
        evidence = 0.5 * np.log(precision / (known + precision))
        evidence = evidence + 0.5 * sums[j] ** 2 / (known + precision)
        prior = 0.5 * x + 0.5 * log_var - np.exp(x + log_var)
        mean = sums[j] / (known + precision)
        each.append((np.exp(prior + evidence), mean))
    total = [w.sum(axis=1) for w, _ in each]
    of_xi = np.exp(0.5 * x[:, 0] - np.exp(x[:, 0])) * total[0] * total[1]
    of_xi /= of_xi.sum()
    for j, (w, mean) in enumerate(each):
        expected = float(of_xi @ ((w * mean).sum(axis=1) / total[j]))
        draws = model.coef_samples_[..., j]
        error = model.summary(full=True).loc[str(f"x{j}"), "mcse_mean"]
        assert abs(draws.mean() - expected) < 5 * max(error, 1e-3)


@pytest.mark.filterwarnings("ignore:r_hat_max")
def test_it_is_a_parameter_as_any():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 8))
    y = 4 * (X[:, 0] - X[:, 1]) + rng.logistic(size=200) > 0
    model = BayesianLogisticRegression(prior=R2D2(a=0.2), random_state=0)
    assert clone(model).get_params()["prior"] == R2D2(a=0.2)
    coef = model.fit(X, y).coef_
    assert set(np.argsort(-np.abs(coef[0]))[:2]) == {0, 1}
