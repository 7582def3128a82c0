"""Geweke's joint distribution test of every model, and of every sampler that claims to be exact.

    python -m benchmarks.exactness.joint_test

The joint distribution of parameters and data is simulated in two ways (Geweke 2004).
Marginal-conditional: parameters from the prior, data from the model. Successive-conditional: in
turn new data given the parameters, and a step of the sampler given the data. If likelihood,
gradient, prior and sampler are all right, both distributions are the same. What is compared are
means of all parameters, of their squares, and of the log likelihood and its square. 100 chains of
the second kind start from the first, so they are in the joint distribution from the beginning. The
standard error comes from the means of whole chains, which are independent however slowly each of
them moves. The verdict is the smallest p value of a case, corrected for the number of its
comparisons (Holm).

A kernel may not look at the parameters when it chooses a metric, so it learns that at a point which
does not depend on them. "exact" are kernels whose distribution is the posterior. "near" are
samplers that are exact on Gaussian posteriors, on others: the largest error of a mean beyond two
standard errors has a limit, in standard deviations of the joint distribution. "wrong" are controls
that must be detected: HMC that accepts every trajectory, and HMC under half the prior variance.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.common.internals import (
    ChainTarget,
    Expanded,
    Posterior,
    State,
    mode_of,
    posterior_of,
)
from skbayes_sg.models import DRBM, MLP, Linear, Model, Softmax
from skbayes_sg.samplers import HMC, SGFS, Sampler, UnderdampedLangevin

CHAINS, ROUNDS, INDEPENDENT = 100, 20, 3000
SMALLEST_P = 0.001
LARGEST_ERROR = 0.05
NOISE = 0.5
"""variance, where it is given"""
NOISE_PRIOR = (6.0, 5.0)
"""shape and rate, where it is sampled"""
HMC_STEPS, LONGEST_STEP = 3, 1.5

Kernel = Callable[[Posterior, NDArray, np.random.Generator], NDArray]
"""Moves theta (1, D) given the data of the posterior."""


class Problem(NamedTuple):
    """A model, the inputs of its rows, and the precision of its prior."""

    model: Model
    X: NDArray
    precision: float = 1.0

    def bound(self, y: NDArray) -> Posterior:
        """The posterior given targets."""
        return posterior_of(self.model, self.X, y, self.precision)

    def prior(self):
        """The prior."""
        return self.model.prior(np.full(self.model.dim, self.precision))

    def targets(self, theta: NDArray, rng: np.random.Generator) -> NDArray:
        """New targets given theta (1, D), in the model's coding."""
        predicted = self.model.predict(theta, self.X)[0]  # (outputs, n)
        if isinstance(self.model, Linear):
            sampled = self.model.noise_variance is None
            variance = np.exp(theta[0, -1]) if sampled else self.model.noise_variance
            return predicted[0] + np.sqrt(variance) * rng.standard_normal(len(self.X))
        below = predicted.cumsum(axis=0) if len(predicted) > 1 else 1 - predicted
        codes = (rng.random(len(self.X)) > below[: len(predicted)]).sum(axis=0)
        return self.model.encode(np.minimum(codes, max(1, len(predicted) - 1)), self.X.dtype)

    def moments(self, theta: NDArray, y: NDArray) -> NDArray:
        """What is compared, at one theta (1, D)."""
        value = self.model.log_likelihood(theta, self.X, y).sum()
        return np.concatenate([theta[0], theta[0] ** 2, [value, value**2]])


# -- kernels --------------------------------------------------------------------------------------


def hmc(posterior: Posterior, theta: NDArray, rng: np.random.Generator, spoil=None) -> NDArray:
    """Some trajectories, with the metric of a fixed point."""
    fixed = np.random.default_rng(0).standard_normal(theta.shape) / 2
    state = _at(HMC(), posterior, fixed, rng)
    sampler = HMC()
    sampler.freeze(state, posterior)
    state.theta = posterior.coordinates.transform(theta)
    sampler.change_prior(state, posterior)
    state.t = int(rng.integers(10))  # one trajectory of ten is short
    for _ in range(HMC_STEPS):
        if spoil is not None:
            spoil(state)
        sampler.step(state, posterior)
    return posterior.coordinates.inverse_transform(state.theta)


def accepting(posterior: Posterior, theta: NDArray, rng: np.random.Generator) -> NDArray:
    """HMC of long steps that accepts every trajectory."""

    def spoil(state: State) -> None:
        state.memory.log_step = np.log(LONGEST_STEP)
        state.memory.log_prob = np.full(1, -np.inf)

    return hmc(posterior, theta, rng, spoil)


def narrow(posterior: Posterior, theta: NDArray, rng: np.random.Generator) -> NDArray:
    """HMC under half the prior variance."""
    prior = posterior.prior
    return hmc(posterior.with_prior(prior.with_precision(2 * prior.precision)), theta, rng)


def anchored_hmc(posterior: Posterior, theta: NDArray, rng: np.random.Generator) -> NDArray:
    """HMC around an anchor, in whitened coordinates, on a pool of all rows."""
    return hmc(ChainTarget(Expanded.at(posterior, mode_of(posterior))), theta, rng)


def momentum(posterior: Posterior, theta: NDArray, rng: np.random.Generator) -> NDArray:
    """The default sampler: control variates and the step with momentum, through its burn-in.

    Its chains start at rest, which is not their distribution, and have forgotten that in the end.
    Data for which it is refused get HMC, as in a default fit.
    """
    target = ChainTarget(Expanded.at(posterior, mode_of(posterior)))
    sampler = UnderdampedLangevin()
    if sampler.refusal(target) is not None:
        return hmc(target, theta, rng)
    sampler.resolve_auto(target)
    state = _at(sampler, target, theta, rng)
    for _ in range(sampler.run_length(state).burn_in):
        sampler.step(state, target)
    return target.coordinates.inverse_transform(state.theta)


def sgfs(alpha: float) -> Kernel:
    """Three steps of SGFS with all rows, whose matrices are those of the mode.

    With minibatches they would be averages over a burn-in, which looks at the parameters.
    """

    def kernel(posterior: Posterior, theta: NDArray, rng: np.random.Generator) -> NDArray:
        sampler = SGFS(alpha=alpha)
        sampler.resolve_auto(posterior)
        state = _at(sampler, posterior, mode_of(posterior).theta, rng)
        sampler.freeze(state, posterior)
        state.theta = theta.copy()
        for _ in range(3):
            sampler.step(state, posterior)
        return state.theta

    return kernel


def _at(sampler: Sampler, posterior: Posterior, theta: NDArray, rng) -> State:
    return sampler.init(posterior, posterior.coordinates.transform(theta), rng)


# -- the test -------------------------------------------------------------------------------------


def independent(problem: Problem, n_draws: int, rng: np.random.Generator) -> NDArray:
    """Marginal-conditional simulation: moments (n_draws, functions)."""
    found = []
    for theta in problem.prior().draw(rng, n_draws):
        found.append(problem.moments(theta[None], problem.targets(theta[None], rng)))
    return np.array(found)


def successive(
    problem: Problem, kernel: Kernel, n_chains: int, n_rounds: int, rng: np.random.Generator
) -> NDArray:
    """Successive-conditional simulation: means of each chain (n_chains, functions)."""
    means = []
    for theta in problem.prior().draw(rng, n_chains)[:, None]:
        total = 0.0
        for _ in range(n_rounds):
            y = problem.targets(theta, rng)
            theta = kernel(problem.bound(y), theta, rng)
            total = total + problem.moments(theta, y)
        means.append(total / n_rounds)
    return np.array(means)


def compared(draws: NDArray, means: NDArray) -> tuple[NDArray, float, float]:
    """z scores, the smallest p value after Holm, and the largest error."""
    difference = means.mean(axis=0) - draws.mean(axis=0)
    squares = [each.var(axis=0, ddof=1) / len(each) for each in (draws, means)]
    standard_error = np.sqrt(squares[0] + squares[1])
    z = difference / standard_error
    p = 2 * student.sf(np.abs(z), len(means) - 1)
    error = (np.abs(difference) - 2 * standard_error) / draws.std(axis=0)
    return z, min(1.0, float(len(z) * p.min())), max(0.0, float(error.max()))


def problems() -> dict[str, Problem]:
    """Of eight rows each, so that data and parameters forget each other soon."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((8, 3)) @ np.array([[1.0, 0.5, 0], [0, 1, 0.5], [0, 0, 1]])
    few = X[:, :2]
    return {
        "linear, noise given": Problem(Linear(3, noise_variance=NOISE), X),
        "linear, noise sampled": Problem(Linear(3, noise_prior=NOISE_PRIOR), X),
        "logistic": Problem(Softmax(3, 2), X),
        "multinomial": Problem(Softmax(2, 3), few),
        "DRBM": Problem(DRBM(2, 3, 2), few),
        "network": Problem(MLP(2, 2, (2,)), few),
    }


CASES: list[tuple[str, str, Kernel, str]] = [
    *[(name, "HMC", hmc, "exact") for name in problems()],
    *[
        (name, "HMC, control variates", anchored_hmc, "exact")
        for name in ("linear, noise sampled", "logistic", "multinomial")
    ],
    ("linear, noise given", "SGFS, all rows, alpha 0", sgfs(0.0), "exact"),
    ("linear, noise given", "SGFS, all rows, alpha 2", sgfs(2.0), "exact"),
    ("linear, noise given", "SGFS, control variates", momentum, "exact"),
    *[
        (name, "SGFS, control variates", momentum, "near")
        for name in ("linear, noise sampled", "logistic", "multinomial")
    ],
    *[(name, "HMC accepting all", accepting, "wrong") for name in ("logistic", "network")],
    *[(name, "HMC, prior too narrow", narrow, "wrong") for name in ("logistic", "network")],
]


def run(name: str, problem: Problem, label: str, kernel: Kernel, claim: str) -> dict:
    """One case."""
    rng = np.random.default_rng([len(name), len(label)])
    draws = independent(problem, INDEPENDENT, rng)
    means = successive(problem, kernel, CHAINS, ROUNDS, rng)
    z, p_value, error = compared(draws, means)
    row = {"model": name, "sampler": label, "claim": claim, "comparisons": len(z)}
    return row | {"largest z": float(np.abs(z).max()), "p value": round(p_value, 6), "error": error}


def claim_of(row: dict) -> Claim:
    """What the row must show."""
    name = f"{row['model']}, {row['sampler']}"
    if row["claim"] == "near":
        return Claim(f"{name}: largest error in sd", row["error"], high=LARGEST_ERROR)
    if row["claim"] == "wrong":
        return Claim(f"{name} is detected: p value", row["p value"], high=SMALLEST_P, strict=True)
    return Claim(f"{name}: p value", row["p value"], low=SMALLEST_P)


def main(report: Report) -> None:
    """All cases."""
    rows, named = [], problems()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, label, kernel, claim in CASES:
            rows.append(run(name, named[name], label, kernel, claim))
            rows[-1]["verdict"] = claim_of(rows[-1]).verdict
            print(*rows[-1].values(), flush=True)
    report.save(rows, map(claim_of, rows))


if __name__ == "__main__":
    benchmark(main, threads=1)
