"""Targets with known answers, and the seeds that tests run at.

Statistical tests take the fixture `seed`: 42 by default, or every seed of the range in the
environment variable SKBAYES_SG_SEEDS ("0-19").
"""

import copy
import gc
import os
import sys
import warnings
from collections.abc import Iterator
from functools import cached_property

import numpy as np
import pytest
from hypothesis import settings
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from skbayes_sg.linalg.scores import Factor, Scores
from skbayes_sg.models import Model
from skbayes_sg.posterior import Posterior

settings.register_profile(
    "the same every time", derandomize=True, deadline=None, max_examples=50, database=None
)
settings.load_profile("the same every time")

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, ps or a safe fork")
POSIX = pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")


def seeds():
    """The seeds that statistical tests run at, as text."""
    return os.environ.get("SKBAYES_SG_SEEDS", "42")


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        first, _, last = seeds().partition("-")
        metafunc.parametrize("seed", range(int(first), int(last or first) + 1))


@pytest.hookimpl(tryfirst=True)  # before those that are slow are left out
def pytest_collection_modifyitems(config, items):
    """Cases that are not `quick` are slow; and the last file first if SKBAYES_SG_BACKWARDS is set.

    No file may need another before it.
    """
    quick = {}  # cases that stay, by test
    for item in items:
        if marker := item.get_closest_marker("quick"):
            named = {*item.callspec.id.split("-"), item.callspec.id} & set(marker.args)
            quick.setdefault((str(item.path), item.originalname), []).extend(named)
            if not named:
                item.add_marker("slow")
    without = [name for name, cases in quick.items() if not cases]
    narrowed = config.getoption("lf", False) or any("::" in str(arg) for arg in config.args)
    if without and not narrowed:
        raise pytest.UsageError(f"no case has a name that is said to be quick: {without}")
    if os.environ.get("SKBAYES_SG_BACKWARDS"):
        files = list(dict.fromkeys(item.path for item in items))
        items.sort(key=lambda item: -files.index(item.path))


def pytest_collection_finish():
    """Modules and tests live to the end: the collector of garbage need not visit them again."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"seeds of statistical tests: {seeds()} (SKBAYES_SG_SEEDS)")


class GaussianTarget(Model):
    """Rows x_i, log p(x_i | theta) = -0.5 (x_i - theta)^T A (x_i - theta): scores A (x_i - theta).

    Curvature N A and score covariance A Cov(x) A are constant in theta and chosen apart, so every
    linear recursion has a stationary distribution in closed form. A may be singular.
    """

    def __init__(self, A):
        self.A = A
        self.shapes = {"theta": (len(A),)}

    def init(self, rng):
        return np.zeros((1, self.dim))

    def units(self):
        """Pairs of coordinates, the blocks of structure="block"."""
        return np.split(np.arange(self.dim), np.arange(2, self.dim, 2))

    def _residual(self, theta, X):
        X = X if X.ndim == 3 else X[None]
        return X - theta[:, None]

    def predict(self, theta, X):
        return np.zeros((len(theta), 1, X.shape[-2]))

    def log_likelihood(self, theta, X, y):
        r = self._residual(theta, X)
        return -0.5 * np.einsum("cnd,de,cne->cn", r, self.A, r)

    def scores(self, theta, X, y):
        left = np.swapaxes(self._residual(theta, X) @ self.A, 1, 2)
        return Scores(Factor(np.ascontiguousarray(left), None))

    def fisher(self, theta, X):
        values, vectors = np.linalg.eigh(self.A)
        root = vectors * np.sqrt(np.maximum(values, 0))  # (k, q)
        left = np.broadcast_to(
            root.T[None, :, :, None], (len(theta), self.dim, self.dim, X.shape[-2])
        )
        return Scores(Factor(left, None))


class KnownGaussian:
    """A posterior with `GaussianTarget` and everything that theory asks of it."""

    def __init__(
        self, n_rows=200, dim=4, seed=0, prior_precision=None, misspecified=True, null=False
    ):
        rng = np.random.default_rng(seed)
        root = rng.standard_normal((dim, dim))
        A = root @ root.T / dim + 0.5 * np.eye(dim)
        mix = (
            rng.standard_normal((dim, dim)) / np.sqrt(dim)
            if misspecified
            else np.linalg.inv(np.linalg.cholesky(A))
        )
        X = rng.standard_normal((n_rows, dim)) @ mix
        if null:
            A[-1] = A[:, -1] = 0.0
        lam = (
            np.linspace(5.0, 60.0, dim)
            if prior_precision is None
            else np.full(dim, float(prior_precision))
        )
        self.posterior = Posterior.of(GaussianTarget(A), X, np.zeros(n_rows), lam)
        self.A, self.Lam, self.N = A, n_rows * A + np.diag(lam), n_rows
        self.mean = np.linalg.solve(self.Lam, n_rows * A @ X.mean(axis=0))
        self.I1 = A @ np.cov(X.T) @ A


@pytest.fixture
def gaussian():
    return KnownGaussian()


@pytest.fixture
def as_drawn(monkeypatch):
    """Draws as the chains drew them: those of two halves are not matched to gradients of both."""
    monkeypatch.setattr("skbayes_sg.inference.sample.matched", lambda target, draws: None)


@pytest.fixture
def _short_runs_may_warn(request):
    """Unless these warnings are what is tested."""
    if "convergence_warnings" not in request.keywords:
        warnings.simplefilter("ignore", ConvergenceWarning)


@pytest.fixture
def _closed_figures():
    """Pictures do not stay in memory."""
    yield
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.close("all")


@pytest.fixture(scope="module")
def _short_searches():
    """Chains of networks take some ten steps to a mode, and as few for each alpha tried."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skbayes_sg.chains.tuning._BURN_INS", 1)
        patch.setattr("skbayes_sg.samplers.sghmc._FEWEST_STEPS", 8)
        patch.setattr("skbayes_sg.samplers.sghmc._CHEAP", 0.0)
        patch.setattr("skbayes_sg.chains.tuning._SETTLING", 40)
        patch.setattr("skbayes_sg.chains.tuning._STEPS", 20)
        yield


def start(sampler, posterior, n_chains, seed=0, theta=None):
    """A state of chains at zero, or at theta."""
    theta = np.zeros((n_chains, posterior.dim)) if theta is None else theta
    return sampler.init(posterior, theta, np.random.default_rng(seed))


def noise_of(known, state):
    """Covariance of the minibatch gradients of a `KnownGaussian`."""
    c = state.rows.noise_factor * (1 - 1 / known.N if state.rows.replace else 1.0)
    return c * known.N * known.I1


def z_scores(estimates, truth):
    """Mean of independent estimates (first axis) minus the truth, in Monte-Carlo errors.

    The error is estimated too. Student's t of few estimates becomes the normal score that is as
    rare: of eight, one entry in six hundred is beyond five estimated errors.
    """
    se = estimates.std(axis=0, ddof=1) / np.sqrt(len(estimates))
    t = (estimates.mean(axis=0) - truth) / np.where(se > 0, se, 1e-300)
    return np.sign(t) * stats.norm.isf(stats.t.sf(np.abs(t), len(estimates) - 1))


def assert_moments(samples, mean, covariance):
    """Mean and covariance of independent samples (n, D), within five Monte-Carlo errors."""
    assert np.abs(z_scores(samples, mean)).max() < 5
    centred = samples - mean
    assert np.abs(z_scores(np.einsum("ci,cj->cij", centred, centred), covariance)).max() < 5


def second_moments(draws, mean):
    """Per chain: average of (theta - mean)(theta - mean)^T over draws (chains, draws, D)."""
    centred = draws - mean
    return np.einsum("csi,csj->cij", centred, centred) / draws.shape[1]


def logistic_data(n_rows=300, n_features=4, seed=0, dtype=np.float64):
    """Binary logistic data, targets -1 and 1."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    p = 1 / (1 + np.exp(-X @ rng.standard_normal(n_features)))
    return X.astype(dtype), np.where(rng.random(n_rows) < p, 1.0, -1.0).astype(dtype)


def leaves(value, path=""):
    """Everything that an object holds, {path: digest}: to see whether it is as it was."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return {path: (value.dtype, value.shape, value.tobytes())}
    if isinstance(value, np.random.Generator):
        return leaves([value.bit_generator.state, value.bit_generator.seed_seq.state], path)
    if isinstance(value, Iterator):
        value = list(copy.copy(value))  # what is still to come
    if isinstance(value, dict):
        parts = [(f"{path}[{key!r}]", part) for key, part in value.items()]
    elif isinstance(value, (list, tuple, np.ndarray)):
        parts = [(f"{path}[{i}]", part) for i, part in enumerate(value)]
    elif hasattr(value, "__dict__") and not callable(value) and not isinstance(value, type):
        state, kind = vars(value), type(value)
        if kind.__getstate__ is not object.__getstate__ and not isinstance(value, BaseEstimator):
            state = value.__getstate__()
        parts = [
            (f"{path}.{name}", part)
            for name, part in state.items()
            if not isinstance(getattr(kind, name, None), cached_property)  # computed from others
        ]
    else:
        return {path: repr(value)}
    found = {path: (type(value), len(parts))}
    for where, part in parts:
        found |= leaves(part, where)
    return found


def differences(before, after):
    """Paths at which two sets of leaves differ."""
    return sorted(
        path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
    )
