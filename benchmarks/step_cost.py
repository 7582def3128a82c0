"""What a frozen step of SGFS costs, against the floor of the calls that it cannot avoid.

    python benchmarks/step_cost.py

Binary logistic regression, 10,000 rows, 50 features and intercept, minibatches of 500 rows drawn without
replacement, full matrices, frozen, one BLAS thread. Prints microseconds per chain and step: the floor is
the gather of X and y, two matrix-vector products, sigmoid and one D x D product, one after another on
fresh rows with nothing around them, and the drawing of 500 integers; then the step as the package takes
it, and its split (parts timed alone, on warm caches). Chains advance in lock step, one, two or four to a
group (eight chains, the default, are two groups of four).
"""

from __future__ import annotations

import itertools
import timeit

import numpy as np
from common import print_table, write_csv
from threadpoolctl import threadpool_limits

from skbayes_sg.chains import run_chain
from skbayes_sg.models import Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import SGFS

N, N_FEATURES, BATCH = 10_000, 50, 500


def microseconds(function, n_calls: int = 2000, repeats: int = 9) -> float:
    """Median over repeats of the mean time of a call."""
    return float(np.median(timeit.repeat(function, number=n_calls, repeat=repeats))) / n_calls * 1e6


def frozen_state(posterior: Posterior, group: int):
    """Sampler and state of a group of chains after burn-in."""
    sampler = SGFS(batch_size=BATCH)
    state = sampler.init(posterior, np.zeros((group, posterior.dim)), np.random.Generator(np.random.SFC64(0)))
    return sampler, run_chain(sampler, posterior, state, n_draws=1, burn_in=200).state


def floor(posterior: Posterior, group: int) -> dict[str, float]:
    """The unavoidable calls one after another on fresh rows, with nothing around them; and row numbers alone."""
    X, y = posterior.X, posterior.y
    rng = np.random.Generator(np.random.SFC64(0))
    drawn = [np.sort(rng.integers(N, size=(group, BATCH)), axis=1) for _ in range(200)]
    weights = rng.standard_normal((group, 1, N_FEATURES)).astype(X.dtype)
    force, gain = rng.standard_normal((group, posterior.dim)), rng.standard_normal((posterior.dim, posterior.dim))
    fresh = itertools.cycle(drawn)

    def calls() -> None:
        rows = next(fresh)
        block = X.take(rows, axis=0)
        y.take(rows)
        z = weights @ block.swapaxes(1, 2)
        np.tanh(z, out=z)
        z @ block
        force.dot(gain)

    return {
        "row numbers": microseconds(lambda: rng.integers(N, size=(64 * group, BATCH), dtype=np.int32), 30) / 64,
        "gather, products, sigmoid": microseconds(calls),
    }


def split(posterior: Posterior, sampler: SGFS, state) -> dict[str, float]:
    """The step as taken, by part; the parts are timed alone, what is left over is the last column."""
    rows = state.rows.draw()
    scores, memory, theta = posterior.scores(state.theta, rows), state.memory, state.theta
    z = state.noise.standard_normal(theta.shape)
    parts = {
        "row numbers": microseconds(lambda: state.rows.draw()),
        "gather": microseconds(lambda: posterior.take(rows)) + microseconds(lambda: posterior.y.take(rows)),
        "scores": microseconds(lambda: posterior.model.scores(theta, posterior.take(rows), posterior.y.take(rows))),
        "gradient": microseconds(lambda: posterior.gradient(theta, scores)),
        "noise": microseconds(lambda: memory.kick.matvec(state.noise.standard_normal(theta.shape))),
        "P^-1 force": microseconds(lambda: memory.gain.matvec(z)),
    }
    parts["scores"] -= parts["gather"]
    step = microseconds(lambda: sampler.step(state, posterior))
    return parts | {"rest": step - sum(parts.values()), "step": step}


def main() -> None:
    """All precisions and group sizes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, N_FEATURES))
    y = np.where(rng.random(N) < 0.5, 1.0, -1.0)
    summary, floors, splits = [], [], []
    for dtype in (np.float32, np.float64):
        posterior = Posterior(Softmax(N_FEATURES, 2), X.astype(dtype), y.astype(dtype), 1.0)
        for group in (1, 2, 4):
            sampler, state = frozen_state(posterior, group)
            lowest, taken = floor(posterior, group), split(posterior, sampler, state)
            key = {"dtype": np.dtype(dtype).name, "chains": group}
            total, bare = sum(lowest.values()), lowest["gather, products, sigmoid"]
            floors.append(key | {name: value / group for name, value in lowest.items()})
            splits.append(key | {name: value / group for name, value in taken.items()})
            step = taken["step"]
            summary.append(
                key
                | {"step us": step / group, "floor us": total / group, "step / floor": step / total}
                | {"floor without row numbers us": bare / group, "step / that": step / bare}
            )
    print("per chain and step, microseconds\n\nfloor")
    print_table(floors)
    print("\nstep")
    print_table(splits)
    print("\nratio")
    print_table(summary)
    write_csv("step_cost.csv", summary)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
