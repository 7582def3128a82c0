"""Other samplers of the same logistic regressions: effective draws per second, error, memory.

    python -m benchmarks.peers.peers  # lr10k, every method, one round of 10 s
    python -m benchmarks.peers.peers --full  # all data, three rounds of 60 s: 3 h
    python -m benchmarks.peers.peers --data mn79 1e6x50 --methods ours numpyro-nuts  # a part
    python -m benchmarks.peers.peers --quick --data lr300  # smoke run of a minute, nothing written
    python -m benchmarks.peers.peers --show-code  # what a user of each method writes

Data are float32, with prior precision 1 on all 51 parameters: lr300, lr3k and lr10k, synthetic
with 300, 3,000 and 10,000 rows and 50 columns, condition number of cov X about 100; mn79, MNIST 7
against 9; 1e6x50, synthetic. Every run is a process of its own on one core; the methods take turns,
and medians over the rounds are reported. Each data set has a CSV.

"default" is one `fit`, "ours" 128 chains (two groups of 64) that go on for as long as wanted, both
with the default sampler. "gaussian" makes and stores independent draws of a Gaussian of the same
covariance in NumPy, in double precision as `fit` does: normals and one product, which no sampler
can undercut.

Columns. "set-up s": mode, compilation, adaptation and burn-in. "draws/s", "ESS/s": of the worst
parameter (bulk; weights for importance sampling), by the wall time of sampling; the estimator's
own diagnostics are not in it, as the peers compute none: "with diag." is the rate of whole `fit`
calls. One default `fit` is timed as it is, mode, burn-in and diagnostics included. "ESS/pass": by
row gradients (or densities) over rows. "E1", "E2": errors of mean and covariance (Ahn et al. Eq.
14) after so many seconds of sampling; blank where a run was shorter. "var min", "var max": drawn
over wanted variance, extremes over all directions. "MiB": peak memory of the process, data,
libraries and kept draws included. "lines": what a user writes, given X, y (-1 or 1) and A (X and
a column of ones), as arrays of the library.

What is done for the peers: all start at the mode; SGLD has the best of three steps, judged by E2
against the reference in untimed pilot runs. The reference is importance sampling from the Laplace
approximation. At 300 rows that fails (two in a thousand draws are effective), and the reference is
a long HMC run of the package. posteriors (needs the whole of torch) and sgmcmcjax 0.2.13 (imports
a module that JAX has removed) are not among the methods.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy.linalg import eigh
from sklearn.linear_model import LogisticRegression

from benchmarks.common.datasets import correlated, million, mnist_7_vs_9
from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import Stopwatch
from benchmarks.common.timing import Clock
from skbayes_sg import BayesianLogisticRegression, diagnostics
from skbayes_sg.samplers import HMC

CHECKPOINTS = (1, 10, 60)
BATCH = 500
FEW_ROWS = 1000  # below, importance sampling is no reference
BLOCK = 4096  # draws that stay in cache
KEPT = 10_000_000  # numbers kept for the effective sample size, the first ones
CAPACITY = 2048  # draws of a compiled loop before they leave it
ITSELF = [sys.executable, "-m", "benchmarks.peers.peers"]
ONE_CORE = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM")} | {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
}


# -- data and reference ---------------------------------------------------------------------------


DATA = {
    "lr300": partial(correlated, 300),
    "lr3k": partial(correlated, 3000),
    "lr10k": correlated,
    "mn79": mnist_7_vs_9,
    "1e6x50": million,
}


class Problem:
    """Data and reference as `prepare` left them; X or A is read when a method asks for it."""

    def __init__(self, folder: Path, pilot: float = 0.0) -> None:
        self.folder = folder
        self.pilot = pilot  # seconds of a trial run
        self.y = np.load(folder / "y.npy")
        self.n_rows = len(self.y)

    @cached_property
    def features(self) -> np.ndarray:
        """X."""
        return np.load(self.folder / "X.npy")

    @cached_property
    def design(self) -> np.ndarray:
        """A: X and a column of ones."""
        return np.load(self.folder / "A.npy")

    @cached_property
    def reference(self) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean and covariance."""
        return np.load(self.folder / "mean.npy"), np.load(self.folder / "cov.npy")


def prepare(name: str, path: str, n_draws: int) -> None:
    """Write data and reference to the folder; a folder that has them is left alone.

    At a million rows the posterior is nearly Gaussian, the weights are nearly one, and a 400th of
    the draws does. An HMC draw is worth more than a weighted one: a quarter of them does.
    """
    folder = Path(path)
    if (folder / "cov.npy").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    X, y = (part.astype(np.float32) for part in DATA[name]())
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    np.save(folder / "A.npy", np.column_stack([X, np.ones_like(y)]))
    problem = Problem(folder)
    if problem.n_rows < FEW_ROWS:
        size, kind = n_draws // 4, "HMC"
        halves = [by_hmc(problem, size // 2, seed) for seed in (2012, 2013)]
    else:
        size, kind = (
            n_draws if problem.n_rows <= 10_000 else max(4000, n_draws // 400),
            "importance",
        )
        sampler = Importance(problem, seed=2012)
        halves = [sampler.reference(size // 2) for _ in range(2)]
    mean, cov = (sum(parts) / 2 for parts in zip(*halves, strict=True))
    E1, E2, *_ = errors(*halves[0], *halves[1])
    differ = f"halves differ by E1 {E1:.5f}, E2 {E2:.4f}"
    print(f"{name}: reference of {size:,} {kind} draws; {differ}", flush=True)
    np.save(folder / "mean.npy", mean)
    np.save(folder / "cov.npy", cov)


def by_hmc(problem: Problem, n_draws: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance by the package's HMC on all rows, in double precision, 64 chains."""
    model = BayesianLogisticRegression(
        HMC(),
        intercept_precision=1.0,
        n_chains=64,
        n_draws=n_draws // 64,
        random_state=seed,
        prior_precision=1.0,
    ).fit(problem.features.astype(np.float64), problem.y)
    draws = model.draws_.reshape(-1, model.draws_.shape[-1])
    return draws.mean(axis=0), np.cov(draws.T)


def errors(mean, cov, true_mean, true_cov) -> tuple[float, float, float, float]:
    """E1, E2, smallest and largest variance ratio over all directions."""
    ratios = eigh(cov, true_cov, eigvals_only=True)
    E1, E2 = diagnostics.mean_error(mean, true_mean), diagnostics.covariance_error(cov, true_cov)
    return E1, E2, float(ratios[0]), float(ratios[-1])


class Moments:
    """Running weighted mean and covariance; sums about a fixed origin, so that nothing cancels."""

    def __init__(self, origin: np.ndarray) -> None:
        self.origin = origin
        self.weight, self.square = 0.0, 0.0
        self.first, self.second = np.zeros(len(origin)), np.zeros((len(origin), len(origin)))

    def add(self, draws: np.ndarray, weight: np.ndarray | None = None) -> None:
        """Add draws (..., D), in blocks that stay in cache."""
        draws = draws.reshape(-1, len(self.origin))
        weight = np.ones(len(draws)) if weight is None else weight.ravel()
        for start in range(0, len(draws), 4096):
            x, w = draws[start : start + 4096] - self.origin, weight[start : start + 4096]
            self.weight += w.sum()
            self.square += w @ w
            self.first += w @ x
            self.second += (x * w[:, None]).T @ x

    def estimate(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance."""
        offset = self.first / self.weight
        return self.origin + offset, self.second / self.weight - np.outer(offset, offset)


# -- methods: set-up in the constructor, then `draw` ----------------------------------------------


class Method:
    """A sampler that is set up.

    `draw(n)` gives about n more draws (chains, draws, D), and weights or None.
    """

    needs = "skbayes_sg"
    once = False  # `draw` is one complete run
    passes = 0.0  # row gradients over rows since the set-up
    aside = 0.0  # seconds that are not counted
    setting = ""
    exact: tuple[np.ndarray, np.ndarray] | None = (
        None  # mean and covariance, where known without drawing
    )

    def draw(self, n: int) -> tuple[np.ndarray, np.ndarray | None]:
        """More draws."""
        raise NotImplementedError


class DefaultFit(Method):
    """`fit` at its defaults, but for the prior of the intercept that all methods share."""

    once = True

    def __init__(self, problem: Problem, seed: int) -> None:
        self.X, self.y = problem.features, problem.y
        self.model = BayesianLogisticRegression(
            intercept_precision=1.0, random_state=seed, prior_precision=1.0
        )

    def draw(self, n: int) -> tuple[np.ndarray, None]:
        """The draws of one fit."""
        self.model.fit(self.X, self.y)
        self.passes = self.model.n_passes_
        return self.model.draws_, None


class ManyChains(Method):
    """128 chains that go on for as long as wanted."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.X, self.y = problem.features, problem.y
        self.watch = Stopwatch()
        self.model = BayesianLogisticRegression(
            intercept_precision=1.0,
            n_chains=128,
            n_draws=4,
            warm_start=True,
            random_state=seed,
            prior_precision=1.0,
        ).fit(self.X, self.y)

    @property
    def aside(self) -> float:
        """Seconds of diagnostics."""
        return self.watch.seconds

    def draw(self, n: int) -> tuple[np.ndarray, None]:
        """The next n draws of each chain."""
        self.model.set_params(n_draws=n).fit(self.X, self.y)
        self.passes += self.model.n_passes_
        return self.model.draws_, None


def laplace(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Mode, by a Newton step for the digits that float32 rows cost, and inverse Hessian."""
    A, y = problem.design, problem.y
    mode = (
        LogisticRegression(fit_intercept=False, solver="newton-cholesky")
        .fit(A, y)
        .coef_[0]
        .astype(np.float64)
    )
    p = 1 / (1 + np.exp(-(A @ mode.astype(A.dtype))))
    cov = np.linalg.inv((A * (p * (1 - p))[:, None]).T @ A + np.eye(len(mode)))
    return mode + cov @ (((y > 0) - p) @ A - mode), cov


class Laplace(Method):
    """Independent draws of the Gaussian at the mode; errors are of the Gaussian itself."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.mode, cov = laplace(problem)
        self.exact = self.mode, cov
        self.root = np.linalg.cholesky(cov)

    def draw(self, n: int) -> tuple[np.ndarray, None]:
        """Independent draws."""
        return (self.mode + self.rng.standard_normal((n, len(self.mode))) @ self.root.T)[None], None


class Gaussian(Method):
    """Independent draws of a Gaussian with the mean and covariance of the reference."""

    needs = "numpy"

    def __init__(self, problem: Problem, seed: int) -> None:
        self.exact = problem.reference
        self.mean = self.exact[0]
        self.root = np.linalg.cholesky(self.exact[1]).T
        self.rng = np.random.Generator(np.random.SFC64(seed))
        self.normals = np.empty((BLOCK, len(self.mean)))

    def draw(self, n: int) -> tuple[np.ndarray, None]:
        """Normals and one product, block by block."""
        draws = np.empty((n, len(self.mean)))
        for start in range(0, n, BLOCK):
            some = draws[start : start + BLOCK]
            z = self.normals[: len(some)]
            self.rng.standard_normal(out=z)
            np.dot(z, self.root, out=some)
            some += self.mean
        return draws[None], None


class Importance(Laplace):
    """The same draws, weighted: exact. Blocks stay in cache, and logits are float32."""

    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__(problem, seed)
        self.exact = None
        self.rows = problem.design * -problem.y[:, None]
        self.at_mode = self._log_prob(self.mode[None])

    def draw(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Draws and weights."""
        z = self.rng.standard_normal((n, len(self.mode)))
        theta = self.mode + z @ self.root.T
        log_weight = self._log_prob(theta) - self.at_mode + 0.5 * (z * z).sum(axis=1)
        self.passes += n
        return theta[None], np.exp(log_weight)[None]

    def _log_prob(self, theta: np.ndarray) -> np.ndarray:
        value = -0.5 * (theta * theta).sum(axis=1)
        short = theta.astype(np.float32)
        for first in range(0, len(theta), 128):
            some = slice(first, first + 128)
            for start in range(0, len(self.rows), 2048):
                z = short[some] @ self.rows[start : start + 2048].T
                np.exp(z, out=z)
                z += 1
                value[some] -= np.log(z, out=z).sum(axis=1)
        return value

    def reference(self, n_draws: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance; the Gaussian is control variate, E_p f = E_q f + E_q (w - 1) f."""
        weighted, plain = Moments(self.mode), Moments(self.mode)
        for _ in range(0, n_draws, 2000):
            draws, weight = self.draw(2000)
            weighted.add(draws, weight)
            plain.add(draws)
        offset = weighted.first / weighted.weight - plain.first / plain.weight
        second = weighted.second / weighted.weight - plain.second / plain.weight
        return self.mode + offset, self.root @ self.root.T + second - np.outer(offset, offset)


class Bootstrap(Method):
    """One refit for each draw, on rows drawn with replacement."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.A, self.y, self.rng = problem.design, problem.y, np.random.default_rng(seed)

    def draw(self, n: int) -> tuple[np.ndarray, None]:
        """One refit."""
        rows = self.rng.integers(len(self.A), size=len(self.A))
        model = LogisticRegression(fit_intercept=False, max_iter=1000).fit(
            self.A[rows], self.y[rows]
        )
        self.passes += float(model.n_iter_[0])
        return model.coef_[None], None


class Jax(Method):
    """A kernel of a JAX library: `step(key, state, data) -> state, position, passes`."""

    def __init__(self, problem: Problem, seed: int) -> None:
        import jax.numpy as jnp
        from jax import random

        self.key = random.key(seed)
        self.data = jnp.asarray(problem.design), jnp.asarray(problem.y)
        self.mode, self.cov = laplace(problem)
        self.start = jnp.asarray(self.mode, jnp.float32)

    def new_key(self):
        """A key that was not used before."""
        from jax import random

        self.key, key = random.split(self.key)
        return key

    def compile(self, step) -> None:
        """A loop over `step` that is compiled once for every number of draws, and run."""
        import jax
        import jax.numpy as jnp

        def collect(n, key, state, data, buffer):
            def body(i, carry):
                state, passes, buffer = carry
                state, position, more = step(jax.random.fold_in(key, i), state, data)
                return state, passes + more, buffer.at[i].set(position)

            return jax.lax.fori_loop(0, n, body, (state, jnp.float32(0), buffer))

        self.collect = jax.jit(collect, donate_argnums=4)
        self.buffer = jnp.zeros((CAPACITY, len(self.start)), jnp.float32)
        self.draw(1)
        self.passes = 0.0

    def draw(self, n: int) -> tuple[np.ndarray, None]:
        """The next draws of the chain, as many as the loop holds."""
        n = min(n, CAPACITY)
        self.state, passes, self.buffer = self.collect(
            n, self.new_key(), self.state, self.data, self.buffer
        )
        draws = np.array(self.buffer)[None, :n]
        self.passes += float(passes)
        return draws, None

    @property
    def warm_up(self) -> int:
        """Draws to adapt step size and mass matrix."""
        return 1000 if len(self.data[0]) <= 100_000 else 300


class BlackjaxNUTS(Jax):
    """NUTS of blackjax: window adaptation, dense mass matrix."""

    needs = "blackjax"

    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__(problem, seed)
        import blackjax
        import jax

        def log_prob(data):
            A, y = data
            return lambda theta: -0.5 * theta @ theta - jax.nn.softplus(-y * (A @ theta)).sum()

        def adapt(key, start, data):
            window = blackjax.window_adaptation(
                blackjax.nuts, log_prob(data), is_mass_matrix_diagonal=False
            )
            return window.run(key, start, num_steps=self.warm_up)[0]

        self.state, parameters = jax.jit(adapt)(self.new_key(), self.start, self.data)

        def step(key, state, data):
            state, info = blackjax.nuts(log_prob(data), **parameters).step(key, state)
            return state, state.position, info.num_integration_steps

        self.compile(step)


class NumpyroNUTS(Jax):
    """NUTS of numpyro: dense mass matrix."""

    needs = "numpyro"

    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__(problem, seed)
        import numpyro
        import numpyro.distributions as dist
        from numpyro.infer import NUTS, init_to_value

        def model(A, y):
            theta = numpyro.sample("theta", dist.Normal(0, 1).expand([A.shape[1]]).to_event(1))
            numpyro.sample("y", dist.Bernoulli(logits=A @ theta), obs=y)

        A, y = self.data
        self.data = A, (y > 0).astype(A.dtype)
        kernel = NUTS(
            model, dense_mass=True, init_strategy=init_to_value(values={"theta": self.start})
        )
        self.state = kernel.init(self.new_key(), self.warm_up, None, self.data, {})

        def step(key, state, data):
            state = kernel.sample(state, data, {})
            return state, state.z["theta"], state.num_steps

        self.compile(step)
        for start in range(
            1, self.warm_up, CAPACITY
        ):  # the kernel adapts in its first draws; one was drawn
            self.draw(min(CAPACITY, self.warm_up - start))
        self.passes = 0.0


class BlackjaxSGLD(Jax):
    """SGLD of blackjax: independent rows, every 20th point kept, best step of three."""

    needs = "blackjax"
    thin = 20
    cost = 1  # row gradients for each row of a minibatch

    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__(problem, seed)
        import blackjax
        import jax
        import jax.numpy as jnp

        self.n_rows = problem.n_rows
        kernel = blackjax.sgld(self._gradient())

        def step(key, state, data):
            position, step_size = state
            A, y = data

            def once(i, position):
                draw, move = jax.random.split(jax.random.fold_in(key, i))
                rows = jax.random.randint(draw, (BATCH,), 0, self.n_rows)
                return kernel.step(move, position, (A[rows], y[rows]), step_size)

            position = jax.lax.fori_loop(0, self.thin, once, position)
            return (position, step_size), position, self.thin * self.cost * BATCH / self.n_rows

        self.state = self.start, jnp.float32(0)
        self.compile(step)
        with Clock() as pilots:
            self._choose_step(problem)
        self.aside = pilots.seconds

    def _steps(self) -> dict[str, float]:
        """Steps where gradient noise widens the stiffest direction 1.25, 2, 4 times, by name."""
        share = min(BATCH / self.n_rows, 0.3)  # a step of two over lambda_max is unstable
        unit = np.linalg.eigvalsh(self.cov)[0]
        return {f"{c * share:.2g}/lambda_max": c * share * unit for c in (0.5, 2, 6)}

    def _gradient(self):
        """Estimator of the gradient from a minibatch."""
        import jax
        from blackjax.sgmcmc.gradients import grad_estimator

        return grad_estimator(
            lambda theta: -0.5 * theta @ theta,
            lambda theta, row: -jax.nn.softplus(-row[1] * (row[0] @ theta)),
            self.n_rows,
        )

    def _choose_step(self, problem: Problem) -> None:
        """The step of smallest E2 after a pilot run from the mode."""
        import jax.numpy as jnp

        found = {}
        for name, size in self._steps().items():
            self.state, moments, spent = (self.start, jnp.float32(size)), Moments(self.mode), 0.0
            while spent < problem.pilot:
                with Clock() as clock:
                    moments.add(self.draw(100)[0])
                spent += clock.seconds
            E2 = diagnostics.covariance_error(moments.estimate()[1], problem.reference[1])
            found[name] = E2 if np.isfinite(E2) else np.inf
        self.setting = min(found, key=found.get)
        self.state, self.passes = (self.start, jnp.float32(self._steps()[self.setting])), 0.0


class BlackjaxSGLDCV(BlackjaxSGLD):
    """The same with control variates at the mode."""

    cost = 2

    def _steps(self) -> dict[str, float]:
        unit = np.linalg.eigvalsh(self.cov)[0]
        return {f"{c}/lambda_max": c * unit for c in (0.1, 0.3, 0.5)}

    def _gradient(self):
        from blackjax.sgmcmc.gradients import control_variates

        return control_variates(super()._gradient(), self.start, self.data)


METHODS = {
    "default": DefaultFit,
    "ours": ManyChains,
    "blackjax-nuts": BlackjaxNUTS,
    "numpyro-nuts": NumpyroNUTS,
    "blackjax-sgld": BlackjaxSGLD,
    "blackjax-sgld-cv": BlackjaxSGLDCV,
    "laplace": Laplace,
    "gaussian": Gaussian,
    "importance": Importance,
    "bootstrap": Bootstrap,
}

CODE = {
    "default": """
from skbayes_sg import BayesianLogisticRegression
model = BayesianLogisticRegression(intercept_precision=1.0).fit(X, y)
draws = model.draws_
""",
    "ours": """
from skbayes_sg import BayesianLogisticRegression
model = BayesianLogisticRegression(intercept_precision=1.0, n_chains=128, n_draws=500).fit(X, y)
draws = model.draws_
""",
    "blackjax-nuts": """
import blackjax
import jax
import jax.numpy as jnp
def log_prob(theta):
    return -0.5 * theta @ theta - jax.nn.softplus(-y * (A @ theta)).sum()
warm, run = jax.random.split(jax.random.key(0))
window = blackjax.window_adaptation(blackjax.nuts, log_prob, is_mass_matrix_diagonal=False)
(state, parameters), _ = window.run(warm, jnp.zeros(A.shape[1]), num_steps=1000)
kernel = blackjax.nuts(log_prob, **parameters)
def step(state, key):
    state, info = kernel.step(key, state)
    return state, state.position
draws = jax.lax.scan(step, state, jax.random.split(run, 5000))[1]
""",
    "numpyro-nuts": """
import jax
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS
def model(A, y):
    theta = numpyro.sample("theta", dist.Normal(0, 1).expand([A.shape[1]]).to_event(1))
    numpyro.sample("y", dist.Bernoulli(logits=A @ theta), obs=y)
mcmc = MCMC(NUTS(model, dense_mass=True), num_warmup=1000, num_samples=5000)
mcmc.run(jax.random.key(0), A, y > 0)
draws = mcmc.get_samples()["theta"]
""",
    "blackjax-sgld": """
import blackjax
import jax
from blackjax.sgmcmc.gradients import grad_estimator
from sklearn.linear_model import LogisticRegression
mode = jax.numpy.asarray(LogisticRegression(fit_intercept=False).fit(A, y).coef_[0])
def log_prior(theta):
    return -0.5 * theta @ theta
def log_likelihood(theta, row):
    return -jax.nn.softplus(-row[1] * (row[0] @ theta))
kernel = blackjax.sgld(grad_estimator(log_prior, log_likelihood, len(A)))
def step(theta, key):
    draw, move = jax.random.split(key)
    rows = jax.random.randint(draw, (500,), 0, len(A))
    theta = kernel.step(move, theta, (A[rows], y[rows]), step_size)  # found by trying several
    return theta, theta
draws = jax.lax.scan(step, mode, jax.random.split(jax.random.key(0), 100_000))[1]
""",
    "laplace": """
import numpy as np
from sklearn.linear_model import LogisticRegression
mode = LogisticRegression(fit_intercept=False).fit(A, y).coef_[0]
p = 1 / (1 + np.exp(-A @ mode))
cov = np.linalg.inv((A * (p * (1 - p))[:, None]).T @ A + np.eye(len(mode)))
draws = np.random.default_rng(0).multivariate_normal(mode, cov, 5000)
""",
    "gaussian": """
import numpy as np
rng = np.random.Generator(np.random.SFC64(0))
draws = np.empty((200_000, len(mean)))
for some in np.array_split(draws, 50):
    np.dot(rng.standard_normal(some.shape), np.linalg.cholesky(cov).T, out=some)
    some += mean
""",
    "bootstrap": """
import numpy as np
from sklearn.linear_model import LogisticRegression
rng = np.random.default_rng(0)
draws = []
for _ in range(1000):
    rows = rng.integers(len(A), size=len(A))
    draws.append(LogisticRegression(fit_intercept=False).fit(A[rows], y[rows]).coef_[0])
""",
}
CODE["blackjax-sgld-cv"] = (
    CODE["blackjax-sgld"]
    .replace("import grad_e", "import control_variates, grad_e")
    .replace(
        "kernel = blackjax.sgld(grad_estimator(log_prior, log_likelihood, len(A)))",
        "gradient = grad_estimator(log_prior, log_likelihood, len(A))\n"
        "kernel = blackjax.sgld(control_variates(gradient, mode, (A, y)))",
    )
)
CODE["importance"] = (
    CODE["laplace"]
    + """\
z = np.linalg.solve(np.linalg.cholesky(cov), (draws - mode).T)
log_weight = 0.5 * (z * z).sum(axis=0) - 0.5 * (draws * draws).sum(axis=1)
for some in np.array_split(np.arange(len(draws)), 50):
    log_weight[some] -= np.logaddexp(0, -y * (draws[some] @ A.T)).sum(axis=1)
weight = np.exp(log_weight - log_weight.max())
"""
)


# -- one run, in a process of its own -------------------------------------------------------------


class Run:
    """A method at work: its clock, moments and kept draws, and the moments at each checkpoint."""

    def __init__(self, method: Method, origin: np.ndarray, limit: float) -> None:
        self.method, self.limit, self.at_start = method, limit, method.aside
        self.clock, self.count, self.moments = 0.0, 0, Moments(origin)
        self.kept: list[np.ndarray] = []
        self.reached: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def go(self) -> None:
        """Draw until the time is over."""
        n = 4
        while self.clock < self.limit:
            before = self.method.aside
            with Clock() as clock:
                draws, self.weight = self.method.draw(n)
            spent = clock.seconds - (self.method.aside - before)  # a part of this very call
            self._take_in(draws, spent)
            if self.method.once:
                ahead = [t for t in CHECKPOINTS if t >= self.clock]
                self.reached = {t: self.moments.estimate() for t in ahead[:1]}
                break
            for t in CHECKPOINTS:
                if t <= self.clock and t not in self.reached:
                    self.reached[t] = self.estimate()
            ahead = [t for t in (*CHECKPOINTS, self.limit) if t > self.clock]
            n = next_size(n, draws.shape, spent, min(ahead, default=0) - self.clock)

    def _take_in(self, draws: np.ndarray, spent: float) -> None:
        self.clock += spent
        self.count += draws.shape[0] * draws.shape[1]
        self.moments.add(draws, self.weight)
        if sum(map(np.size, self.kept)) < KEPT:
            self.kept.append(draws.astype(np.float32))
            aside = self.method.aside - self.at_start
            self.kept_at = self.clock, aside, self.method.passes

    def estimate(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance."""
        return self.method.exact or self.moments.estimate()

    def effective(self) -> dict:
        """Effective draws per second and per pass, from the draws kept, or from all weights."""
        clock, aside, passes = self.clock, 0.0, self.method.passes
        if self.weight is None:
            kept = np.concatenate(self.kept, axis=1)
            if kept.shape[1] < 20:
                return {}
            clock, aside, passes = self.kept_at
            ess = float(diagnostics.ess_bulk(kept).min())
        else:
            ess = float(self.moments.weight**2 / self.moments.square)
        found = {"ESS/s": ess / clock}
        if aside:
            found["with diag."] = ess / (clock + aside)
        if passes:
            found["ESS/pass"] = ess / passes
        return found


def measure(name: str, problem: Problem, seconds: float, seed: int) -> dict:
    """Set up, draw until the time is over, and say how it went."""
    true = problem.reference
    with Clock() as clock:
        method = METHODS[name](problem, seed)
    figures = {"setting": method.setting}
    if not method.once:
        figures["set-up s"] = clock.seconds - method.aside  # a part of this very set-up
    run = Run(method, true[0], seconds)
    run.go()
    figures["MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures |= run.effective()
    figures["draws/s"] = run.count / run.clock
    for t, (mean, cov) in run.reached.items():
        figures[f"E1 {t}s"], figures[f"E2 {t}s"], *_ = errors(mean, cov, *true)
    # the covariance of fewer draws has no inverse to speak of
    if method.exact or run.count > 10 * len(true[0]):
        *_, figures["var min"], figures["var max"] = errors(*run.estimate(), *true)
    return figures


def next_size(n: int, shape: tuple, spent: float, left: float) -> int:
    """Draws of the next call, until the next checkpoint.

    They take at most a second and 64 MiB, and are at most eight times more than before.
    """
    wanted = shape[1] * min(1.0, max(left, 0.0) + 1e-3) / spent
    most = (1 << 23) // (shape[0] * shape[2])
    return max(4, min(int(wanted) + 1, 8 * n, most))


def in_process(name: str, folder: Path, seconds: float, seed: int, cpu: int) -> dict:
    """`measure` in a process pinned to one core; its figures, or why there are none."""
    if find_spec(METHODS[name].needs) is None:
        return {"setting": "not installed"}
    job = [
        *ITSELF,
        "--worker",
        json.dumps([name, str(folder), seconds, seed, cpu]),
    ]
    done = subprocess.run(
        job, env=os.environ | ONE_CORE, capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return {"setting": "failed"}
    return json.loads(done.stdout.splitlines()[-1])


def work(name: str, folder: str, seconds: float, seed: int, cpu: int) -> None:
    """What the process does."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {cpu})
    warnings.simplefilter("ignore")
    print(json.dumps(measure(name, Problem(Path(folder), pilot=seconds / 20), seconds, seed)))


# -- table and verdict ----------------------------------------------------------------------------

ORDER = ["method", "data", "setting", "set-up s", "draws/s", "ESS/s", "with diag.", "ESS/pass"]
ORDER += [f"{error} {t}s" for t in CHECKPOINTS for error in ("E1", "E2")] + [
    "var min",
    "var max",
    "MiB",
    "lines",
]


def summary(name: str, data: str, runs: list[dict]) -> dict:
    """Medians over the rounds, in the order of the columns."""
    row = {"method": name, "data": data, "lines": len(CODE[name].strip().splitlines())}
    row["setting"] = " | ".join(dict.fromkeys(run["setting"] for run in runs))
    for column in ORDER:
        values = [run[column] for run in runs if isinstance(run.get(column), float)]
        if values and column not in row:
            row[column] = float(np.median(values))
    return {column: row.get(column) for column in ORDER}


def claims(rows: list[dict]) -> list[Claim]:
    """What the estimator promises on lr10k."""
    table = {row["method"]: row for row in rows if row["data"] == "lr10k"}
    if not table:
        return []

    def figure(method: str, column: str) -> float | None:
        return table.get(method, {}).get(column)

    def times(one: float | None, other: float | None) -> float | None:
        return None if one is None or other is None else one / other

    ours = {column: figure("ours", column) for column in ORDER}
    nuts = [figure(f"{library}-nuts", "ESS/s") for library in ("blackjax", "numpyro")]
    nuts = max((rate for rate in nuts if rate is not None), default=None)
    ratios = None if ours["var min"] is None else (ours["var min"], ours["var max"])
    laplace = times(figure("laplace", "E1 1s"), ours["E1 1s"])
    return [
        Claim("with diagnostics", times(ours["with diag."], nuts), low=80),
        Claim("many chains: variance ratios", ratios, 0.97, 1.03),
        Claim("many chains: ESS per pass", ours["ESS/pass"], low=25, strict=True),
        Claim("many chains: E2 after 10 s", ours["E2 10s"], high=0.02),
        Claim("many chains: E1 of Laplace over E1 after 1 s", laplace, low=20),
    ]


def compare(folder: Path, names: list[str], methods: list[str], options: dict) -> list[dict]:
    """All rounds, the methods in turn; one row per data set and method."""
    cpu = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    for data in names:
        # apart, as a process starts with the peak memory of the one that starts it
        job = json.dumps([data, str(folder / data), options["reference_draws"]])
        subprocess.run([*ITSELF, "--prepare", job], check=True)
    runs = {(data, name): [] for data in names for name in methods}
    for seed in range(options["repeats"]):
        for (data, name), done in runs.items():
            done.append(in_process(name, folder / data, options["seconds"], seed, cpu))
            result = done[-1].get("ESS/s", done[-1]["setting"])
            print(f"round {seed + 1}: {data} {name} {result}", flush=True)
    return [summary(name, data, done) for (data, name), done in runs.items()]


def main(report: Report, data: list[str], methods: list[str], folder: Path | None, **rest) -> None:
    """Compare, or one of the jobs of a comparison."""
    if rest["prepare"]:
        return prepare(*rest["prepare"])
    if rest["worker"]:
        return work(*rest["worker"])
    if rest["show_code"]:
        return print("\n".join(f"# {name}\n{CODE[name].strip()}\n" for name in methods))
    options = {name: rest[name] for name in ("seconds", "repeats", "reference_draws")}
    if rest["full"]:
        data, options = list(DATA), options | {"seconds": 60.0, "repeats": 3}
    if rest["quick"]:
        options = {"seconds": 1.0, "repeats": 1, "reference_draws": 100_000}
    with tempfile.TemporaryDirectory() as scratch:
        rows = compare(folder or Path(scratch), data, methods, options)
    if rest["quick"]:
        report.show(rows)
        return report.diagnose_run(claims(rows))
    for name in data:
        mine = [row for row in rows if row["data"] == name]
        report.save(mine, claims(mine), name=f"peers_{name}")


if __name__ == "__main__":
    job = {"type": json.loads, "help": argparse.SUPPRESS}
    flag = {"action": "store_true"}
    benchmark(
        main,
        data={"nargs": "+", "choices": list(DATA), "default": ["lr10k"]},
        methods={"nargs": "+", "choices": list(METHODS), "default": list(METHODS)},
        seconds={"type": float, "default": 10.0, "help": "of sampling, for each run"},
        repeats={"type": int, "default": 1, "help": "rounds; medians are reported"},
        reference_draws={"type": int, "default": 4_000_000, "help": "at 10,000 rows; then fewer"},
        folder={"type": Path, "help": "keep data and reference here, and take them from here"},
        full=flag | {"help": "all data, three rounds of 60 s"},
        quick=flag | {"help": "one round of one second, a rough reference; nothing is written"},
        show_code=flag | {"help": "print what a user of each method writes"},
        prepare=job,
        worker=job,
    )
