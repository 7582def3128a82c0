"""Fewer rows than columns: chains move along the rows, and the prior has the rest."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import hadamard

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
)
from skbayes_sg.data import InMemory
from skbayes_sg.diagnostics import ess_bulk
from skbayes_sg.models import Linear, Poisson, Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.row_space import RowSpace, row_space
from skbayes_sg.priors.normal import GaussianPrior

N, P = 6, 15
Q = np.linspace(0.5, 3.0, P)  # precisions of the columns


def wide(kind="linear", store=np.asarray, mean=0.0, offset=False):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P))
    model, y = {
        "linear": (Linear(P, noise_variance=0.3), X[:, 0] + rng.standard_normal(N)),
        "counts": (Poisson(P), rng.poisson(2.0, N).astype(float)),
        "classes": (Softmax(P, 3), np.arange(N) % 3),
    }[kind]
    k = model.widest
    known = rng.standard_normal((N, k * offset))
    data = InMemory.of(store(np.hstack([X, known])), y, None, None, model.takes_sparse)
    data = replace(data, n_known=k * offset)
    whole = Posterior(model, data, model.prior(np.ones(model.dim)))
    precision = np.append(np.tile(2 * Q, k), np.full(k, 0.1))
    means = mean * np.linspace(1.0, 1.3, k * P)
    return whole.with_prior(GaussianPrior(precision, np.append(means, np.full(k, 0.4))))


def lifted(part, u, rest):
    """All parameters without the prior's part, from u and the others."""
    draws = np.append(u, rest, axis=1)[None]
    with pytest.MonkeyPatch.context() as patch:
        zeros = type("", (), {"standard_normal": lambda self, shape, dtype: np.zeros(shape)})
        patch.setattr("skbayes_sg.posterior.nonzero_columns._seeded_by", lambda draws: zeros())
        return part.completed([draws])[0]


@pytest.mark.parametrize("kind", ["linear", "counts", "classes"])
@pytest.mark.parametrize("mean", [0.0, 0.7])
@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_the_log_posterior_along_the_rows_is_that_of_all_coefficients(kind, mean, offset, store):
    whole = wide(kind, store, mean, offset)
    part, k = RowSpace(whole, Q), whole.model.widest
    assert part.dim == k * (N + 1)
    rng = np.random.default_rng(1)
    u, rest = rng.standard_normal((4, k * N)), rng.standard_normal((4, k))
    theta = lifted(part, u, rest)
    values = whole.log_prob(theta)
    ours = part.log_prob(np.append(u, rest, axis=1))
    np.testing.assert_allclose(ours - ours[0], values - values[0], rtol=1e-9, atol=1e-9)


def test_the_precision_of_all_coefficients_follows():
    part = RowSpace(wide(), Q)
    other = part.with_prior(part.prior.with_precision(np.append(np.full(N, 5.0), 0.1)))
    np.testing.assert_allclose(other.all_columns.prior.precision, np.append(5 * Q, 0.1))
    assert part.all_columns.prior.precision[0] == 2 * Q[0]


@pytest.mark.parametrize("relative", [None, 3.0])
def test_draws_have_the_covariance_of_the_posterior(relative):
    """In closed form; at a precision three times that of the prior where a draw says so."""
    whole, n = wide(mean=0.7), 40_000
    part = RowSpace(whole, Q)
    at = 1.0 if relative is None else relative
    there = part.with_prior(part.prior.with_precision(np.append(np.full(N, 2.0 * at), 0.1)))

    def moments(posterior):
        zero = np.zeros((1, posterior.dim))
        curvature = posterior.expand(zero, posterior.layout("full")).curvature.dense()
        covariance = np.linalg.inv(curvature)
        return (posterior.full_gradient(zero) @ covariance)[0], covariance

    mean, covariance = moments(there)
    rng = np.random.default_rng(2)
    here = rng.multivariate_normal(mean, covariance, (8, n // 8))
    each = None if relative is None else np.full((8, n // 8), relative)
    draws = part.completed([here], each).reshape(n, -1)
    mean, covariance = moments(there.all_columns)
    sd = np.sqrt(covariance.diagonal())
    assert np.abs((draws.mean(axis=0) - mean) / sd).max() < 4.5 / np.sqrt(n)
    error = (np.cov(draws.T) - covariance) / np.outer(sd, sd)
    assert np.abs(error).max() < 4.5 * np.sqrt(2 / n)


def test_it_serves_few_rows_of_many_columns_under_one_precision():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 1100))
    counts = rng.poisson(1.0, 20).astype(float)
    assert isinstance(row_space(Posterior.of(Poisson(1100), X, counts)), RowSpace)
    classes = Posterior.of(Softmax(1100, 3), X, np.arange(20) % 3)
    assert isinstance(row_space(classes), RowSpace)
    unequal = np.append(np.repeat([1.0, 2.0, 1.0], 1100), np.ones(3))  # a class has its own
    assert row_space(classes.with_prior(GaussianPrior(unequal))) is None
    assert row_space(Posterior.of(Linear(1100), X, counts)) is None  # that has a closed form
    assert row_space(Posterior.of(Poisson(1100), 0.0 * X, counts)) is None


def test_rows_that_are_too_many_for_a_matrix_are_not_multiplied(monkeypatch):
    monkeypatch.setattr("skbayes_sg.linalg.sizes._ONCE", 20)
    monkeypatch.setattr("skbayes_sg.posterior.row_space.RowSpace", None)
    X = np.random.default_rng(0).standard_normal((20, 1100))
    assert row_space(Posterior.of(Poisson(1100), X, np.ones(20))) is None


def test_a_learned_precision_of_very_many_columns_is_that_of_the_evidence():
    """By quadrature over log lambda. Chains once learned e^6 for e^5, in silence."""
    rng = np.random.default_rng(0)
    n, p, s2 = 30, 4100, 0.25
    X = rng.standard_normal((n, p))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = X @ (0.1 * rng.standard_normal(p)) + np.sqrt(s2) * rng.standard_normal(n)
    model = BayesianLinearRegression(noise_variance=s2, random_state=0).fit(X, y)
    U, scale, Vt = np.linalg.svd(X, full_matrices=False)
    U, scale, Vt = U[:, : n - 1], scale[: n - 1], Vt[: n - 1]  # columns have means of zero
    along, rho, unit = U.T @ y, np.linspace(-5, 12, 2001), p / 10 / s2
    variance = s2 + (scale**2)[:, None] / np.exp(rho)
    log_density = -0.5 * (np.log(variance) + along[:, None] ** 2 / variance).sum(axis=0)
    log_density += 0.5 * rho - 0.5 / unit * np.exp(rho) - 1e-3 * unit * np.exp(-rho)
    share = np.exp(log_density - log_density.max())
    share /= share.sum()
    mean = share @ rho
    sd = np.sqrt(share @ (rho - mean) ** 2)
    found = np.log(model.prior_precision_draws_).ravel()
    assert abs(found.mean() - mean) < 4.5 * sd / np.sqrt(found.size)
    np.testing.assert_allclose(found.std(), sd, rtol=4.5 / np.sqrt(found.size))
    # a coefficient has variance 1 / lambda but for the n directions of the rows
    lam = np.exp(rho)
    left = 1 - (Vt**2).T @ (scale**2 / (scale**2 + s2 * lam[:, None])).T
    expected = np.sqrt((left / lam) @ share)
    ratio = model.draws_[..., :p].std(axis=(0, 1)) / expected
    assert abs(np.median(ratio) - 1) < 0.02


@pytest.mark.filterwarnings("ignore:sd_error", "ignore:ess_tail_min")
def test_labels_of_orthogonal_rows_leave_the_precision_its_prior(seed):
    """Of one length too, they have the probability 2^-n under every precision.

    Chains of the first engine do not agree on it, and the next one looks for it again.
    """
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], 16)
    X, y = np.hstack([hadamard(16) * signs[:, None]] * 63), np.arange(16) % 2
    model = BayesianLogisticRegression(fit_intercept=False, random_state=seed).fit(X, y)
    assert "UnderdampedLangevin ran first" in model.sampler_reason_
    assert model.diagnostics_["r_hat_max"] < 1.05
    rho, unit = np.linspace(-12, 15, 2001), X.shape[1] / 10
    log_density = 0.5 * rho - 0.5 / unit * np.exp(rho) - 1e-3 * unit * np.exp(-rho)
    share = np.exp(log_density - log_density.max())
    share /= share.sum()
    mean, found = share @ rho, np.log(model.prior_precision_draws_)
    sd = np.sqrt(share @ (rho - mean) ** 2)
    error = 4.5 / np.sqrt(ess_bulk(found)[0])
    assert abs(found.mean() - mean) < error * sd
    np.testing.assert_allclose(found.std(), sd, rtol=error)


def test_counts_are_predicted_as_from_the_columns_that_span_the_rows():
    """X of 1,200 columns has a copy of 20 in units that make the two priors the same."""
    rng = np.random.default_rng(3)
    Z = rng.standard_normal((60, 20))
    y = rng.poisson(np.exp(0.5 + 0.3 * Z[:, 0])).astype(float)
    basis = np.linalg.qr(rng.standard_normal((1200, 20)))[0]
    wide_rows = Z @ basis.T
    few = BayesianPoissonRegressor(prior_precision=4.0, random_state=0).fit(Z, y)
    many = BayesianPoissonRegressor(prior_precision=4.0, random_state=0).fit(wide_rows, y)
    a, b = (m.predict(x, return_std=True) for m, x in ((few, Z), (many, wide_rows)))
    error = sum(1 / m.diagnostics_["ess_min"] for m in (few, many)) ** 0.5
    assert np.abs(a[0] - b[0]).max() < 5 * error * a[1].max()
    across = many.draws_[..., :1200] - many.draws_[..., :1200] @ basis @ basis.T
    np.testing.assert_allclose((across**2).mean() * 1200 / 1180, 0.25, rtol=0.01)


def test_a_prior_mean_is_a_part_of_the_outputs():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((20, 4100))
    y = X.sum(axis=1) / 40 + rng.standard_normal(20)
    mean = np.linspace(-0.1, 0.2, 4100)
    asked = {"noise_variance": 1.0, "n_draws": 20, "random_state": 0}
    about = BayesianLinearRegression(prior_mean=mean, **asked).fit(X, y)
    without = BayesianLinearRegression(**asked).fit(X, y - X @ mean)
    sd = without.draws_.std(axis=(0, 1))
    away = (about.draws_[..., :4100] - mean - without.draws_[..., :4100]) / sd[:4100]
    assert np.abs(away.mean(axis=(0, 1))).max() < 6 * np.sqrt(2 / away[..., 0].size)
    ratio = about.coef_std_ / without.coef_std_
    np.testing.assert_allclose(np.median(ratio), 1.0, rtol=0.05)
