"""What a frozen step of SGFS costs, against the floor of the calls that it cannot avoid.

    python -m benchmarks.cost.step_cost

Binary logistic regression has 10,000 rows, 50 features and an intercept. The step takes 500 rows
drawn without replacement, full matrices, frozen, one BLAS thread. All figures are microseconds
per chain and step. The floor is the gather of X and y, two matrix-vector products, sigmoid and
one D x D product, one after another on fresh rows with nothing around them, and the drawing of
500 integers. Then comes the step as the package takes it, and its parts, timed alone on warm
caches: their rest is blank where it is not larger than its scatter. Chains advance vectorised,
one, two or four to a group (eight chains, the default, are two groups of four). Some 20 seconds.
"""

from __future__ import annotations

import itertools

import numpy as np

from benchmarks.common.harness import Report, benchmark
from benchmarks.common.internals import Posterior, begin, logistic_posterior
from benchmarks.common.timing import median, microseconds, rest
from skbayes_sg.chains.run import Length, run_chain
from skbayes_sg.samplers import SGFS

N, N_FEATURES, BATCH = 10_000, 50, 500


def frozen_state(posterior: Posterior, group: int):
    """Sampler and state of a group of chains after burn-in."""
    sampler = SGFS(batch_size=BATCH)
    state = begin(sampler, posterior, np.zeros((group, posterior.dim)), seed=0)
    return sampler, run_chain(sampler, posterior, state, Length(1, 200)).state


def floor(posterior: Posterior, group: int) -> dict[str, float]:
    """The unavoidable calls on fresh rows, with nothing around them; and row numbers alone."""
    X, y = posterior.data.X, posterior.data.y
    rng = np.random.Generator(np.random.SFC64(0))
    drawn = [np.sort(rng.integers(N, size=(group, BATCH)), axis=1) for _ in range(200)]
    weights = rng.standard_normal((group, 1, N_FEATURES)).astype(X.dtype)
    force = rng.standard_normal((group, posterior.dim))
    gain = rng.standard_normal((posterior.dim, posterior.dim))
    fresh = itertools.cycle(drawn)

    def calls() -> None:
        rows = next(fresh)
        block = X.take(rows, axis=0)
        y.take(rows)
        z = weights @ block.swapaxes(1, 2)
        np.tanh(z, out=z)
        z @ block
        force.dot(gain)

    def numbers() -> None:
        rng.integers(N, size=(64 * group, BATCH), dtype=np.int32)

    return {
        "row numbers": median(microseconds(numbers, 30)) / 64,
        "gather, products, sigmoid": median(microseconds(calls)),
    }


def split(posterior: Posterior, sampler: SGFS, state) -> dict[str, float | None]:
    """The step as taken, its parts timed alone, and what is left over."""
    rows = state.rows.draw()
    scores, memory, theta = posterior.scores(state.theta, rows), state.memory, state.theta
    z = state.normals.standard_normal(theta.shape)

    def gather():
        return posterior.data.take(rows), posterior.data.y.take(rows)

    parts = {
        "row numbers": lambda: state.rows.draw(),
        "gather and scores": lambda: posterior.model.scores(theta, *gather()),
        "gradient": lambda: posterior.gradient(theta, scores),
        "noise": lambda: memory.noise_root.matvec(state.normals.standard_normal(theta.shape)),
        "P^-1 force": lambda: memory.preconditioner.matvec(z),
    }
    times = {name: microseconds(part) for name, part in parts.items()}
    step = microseconds(lambda: sampler.step(state, posterior))
    found = {name: median(part) for name, part in times.items()}
    found["of it gather"] = median(microseconds(gather))
    return found | {"rest": rest(step, *times.values()), "step": median(step)}


def measure(dtype: type, group: int) -> tuple[dict, dict, dict]:
    """Floor, step and their ratio for one precision and group size."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, N_FEATURES)).astype(dtype)
    y = np.where(rng.random(N) < 0.5, 1.0, -1.0).astype(dtype)
    posterior = logistic_posterior(X, y)
    sampler, state = frozen_state(posterior, group)
    lowest, taken = floor(posterior, group), split(posterior, sampler, state)
    key = {"dtype": np.dtype(dtype).name, "chains": group}
    total, bare, step = sum(lowest.values()), lowest["gather, products, sigmoid"], taken["step"]
    ratio = {"step us": step / group, "floor us": total / group, "step / floor": step / total}
    ratio |= {"floor without row numbers us": bare / group, "step / that": step / bare}

    def each(parts: dict) -> dict:
        return {name: value and value / group for name, value in parts.items()}

    return key | each(lowest), key | each(taken), key | ratio


def main(report: Report) -> None:
    """All precisions and group sizes."""
    cases = [(dtype, group) for dtype in (np.float32, np.float64) for group in (1, 2, 4)]
    floors, steps, ratios = zip(*(measure(*case) for case in cases), strict=True)
    report.show(list(floors), "microseconds per chain and step: floor")
    report.show(list(steps), "step")
    report.save(list(ratios), title="ratio")


if __name__ == "__main__":
    benchmark(main, threads=1)
