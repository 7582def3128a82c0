"""The posteriors of Mandt, Hoffman & Blei (2017), section 6.1, and the methods of their Table 1.

All have prior precision 1, no intercept, and rows drawn with replacement (noise factor N/S):

- wine: 4,898 x 11, linear regression, noise variance 1, columns divided by max |x|, not centred,
  S = 100;
- skin: 245,057 x 3, logistic regression, columns centred, then divided by 255, the largest value
  a pixel can have (mandt_readings.py has other scales), S = 10,000;
- protein: 45,730 x 9 (the paper: 8 features), linear regression as for wine, S = 100.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.datasets import regression, skin
from benchmarks.common.internals import Posterior, Sampler, exact_mode, posterior_of
from skbayes_sg import theory
from skbayes_sg.data.minibatches import Minibatches, SamplingFrame
from skbayes_sg.models import Linear, Softmax
from skbayes_sg.samplers import SGFS, SGLD, ConstantSGD

BATCH_SIZE = {"wine": 100, "skin": 10_000, "protein": 100}
EPSILON = {"wine": 1e-3, "skin": 1e-5, "protein": 1e-6}  # section 6.1, of SGLD


class Problem(NamedTuple):
    """A posterior of section 6.1, its Gaussian approximation, and the noise of its minibatches."""

    name: str
    posterior: Posterior
    mode: NDArray
    """(1, D)"""
    Lam: NDArray
    I1: NDArray
    """covariance of one row's score at the mode"""
    M: NDArray
    """covariance of the minibatch gradient there"""
    batch_size: int


class Method(NamedTuple):
    """A sampler of the package, and K and W of its step by theory."""

    sampler: Sampler
    K: NDArray
    injected: NDArray | float = 0.0


def problem(name: str) -> Problem:
    """Data scaled as in the module's docstring, and the mode to rounding."""
    if name == "skin":
        X, y = skin()
        X = (X - X.mean(axis=0)) / 255
        model = Softmax(X.shape[1], 2, fit_intercept=False)
    else:
        X, y = regression(name)
        # rows of a column-major array are slow to take
        X = np.ascontiguousarray(X / np.abs(X).max(axis=0))
        model = Linear(X.shape[1], fit_intercept=False, noise_variance=1.0)
    posterior = posterior_of(model, X, y, 1.0)
    mode, Lam = exact_mode(posterior)
    I1 = posterior.score_covariance(mode)
    M = theory.noise_cov(I1, posterior.n_rows, BATCH_SIZE[name], replace=True)
    return Problem(name, posterior, mode, Lam, I1, M, BATCH_SIZE[name])


def methods(given: Problem) -> dict[str, Method]:
    """Samplers of Table 1, and three more, with the preconditioners that theory gives them."""
    rows = {"batch_size": given.batch_size, "replace": True}
    n, N, eye = given.batch_size, given.posterior.n_rows, np.eye(len(given.Lam))
    gamma_I_N = (n + N) / n * N * given.I1  # P of Ahn's Algorithm 1
    eta = EPSILON[given.name] / 2

    def sgd(structure: str, correction: str = "ou") -> Method:
        kind = "ou-" + structure if correction == "ou" else structure
        K = theory.optimal_preconditioner(given.Lam, given.M, kind)
        return Method(ConstantSGD(structure, correction, **rows), matrix(K, len(eye)))

    def sgfs(structure: str, variant: str, P: NDArray) -> Method:
        return Method(SGFS(structure=structure, variant=variant, **rows), 2 * np.linalg.inv(P))

    return {
        "constant SGD": sgd("scalar"),
        "SGD-d": sgd("diag"),
        "SGD-f": sgd("full"),
        "SGD sqrt": sgd("sqrt"),
        "exact K": sgd("full", "discrete"),
        "SGLD": Method(SGLD(step_size=eta, **rows), eta * eye, 2 / eta * eye),
        "SGFS-d": sgfs("diag", "paper", gamma_I_N * eye),
        "SGFS-f": sgfs("full", "paper", gamma_I_N),
        "SGFS-d, Eq. 36": sgfs("diag", "mandt", given.M * eye),
        "SGFS-f, Eq. 36": sgfs("full", "mandt", given.M),
    }


def matrix(K, dim: int) -> NDArray:
    """A number or a diagonal as a matrix."""
    return K if np.ndim(K) == 2 else np.eye(dim) * K


def mean_field(given: Problem) -> NDArray:
    """Variances (D,) of the nearest Gaussian without correlations in KL(q||p)."""
    return 1 / given.Lam.diagonal()


class MeanField(NamedTuple):
    """Means and standard deviations (runs, D) that black-box variational inference ends with."""

    mean: NDArray
    sd: NDArray

    def divergence(self, given: Problem) -> NDArray:
        """KL of each run from the posterior, (runs,)."""
        cov = np.linalg.inv(given.Lam)
        each = zip(self.mean, self.sd, strict=True)
        return np.array([theory.kl_gauss(np.diag(s * s), cov, m, given.mode[0]) for m, s in each])


def bbvi(given: Problem, n_runs: int, n_steps: int, rate: float, seed: int = 0) -> MeanField:
    """Black-box variational inference: Adam on reparametrised gradients, from N(0, .01 I).

    theta = mean + sd z with one z per step, the gradient of the log posterior there from the
    minibatch that the samplers use, plus the entropy's gradient, which is 1 for each log sd. Adam
    has its usual constants, and its rate falls linearly to 0, without which the means keep
    wandering.
    """
    rng = np.random.default_rng(seed)
    posterior, D = given.posterior, given.posterior.dim
    frame = SamplingFrame(posterior.n_rows)
    rows = Minibatches(frame, given.batch_size, True, rng, n_chains=n_runs)
    at = np.concatenate([np.zeros((n_runs, D)), np.full((n_runs, D), np.log(0.1))], axis=1)
    first, second = np.zeros_like(at), np.zeros_like(at)
    for t in range(1, n_steps + 1):
        sd, z = np.exp(at[:, D:]), rng.standard_normal((n_runs, D))
        theta = at[:, :D] + sd * z
        push = posterior.gradient(theta, posterior.scores(theta, rows.draw()))
        slope = np.concatenate([push, push * z * sd + 1], axis=1)
        first += 0.1 * (slope - first)
        second += 0.001 * (slope * slope - second)
        unbiased = first / (1 - 0.9**t), second / (1 - 0.999**t)
        at += rate * (1 - t / n_steps) * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)
    return MeanField(at[:, :D], np.exp(at[:, D:]))
