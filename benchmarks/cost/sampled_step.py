"""What a step costs with sampled prior precisions, over that with given ones.

    python -m benchmarks.cost.sampled_step

Default fits to generated labels, and the same sampler under the precision that they found. Steps
are those of one group of chains after burn-in, by the median of 300, on one BLAS thread. A step of
HMC is a trajectory, and has so many gradients. "floor" is the ratio if nothing came on top of the
step without but the fewest NumPy calls that write down what a sampled precision adds to a gradient,
into memory that is there: without the functions around them, and without the Metropolis steps of
HMC along the scale and the shorter steps of its trajectories. Some ten seconds.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.preprocessing import StandardScaler

from benchmarks.common.harness import Claim, Report, benchmark
from skbayes_sg import BayesianLogisticRegressionSGFS
from skbayes_sg.samplers import HMC

RATIO = 1.2
STEPS, WARM_UP = 300, 20


def sets() -> dict[str, tuple[NDArray, NDArray]]:
    """By name."""
    X, y = load_breast_cancer(return_X_y=True)
    shapes = {"10,000 x 20": (10_000, 20), "600 x 300": (600, 300), "3,000 x 54": (3000, 54)}
    made = {
        name: make_classification(*shape, n_informative=min(20, shape[1] - 4), random_state=0)
        for name, shape in shapes.items()
    }
    return {"breast cancer": (StandardScaler().fit_transform(X), y)} | made


def of_coordinates(n_chains: int, dim: int) -> Callable[[], None]:
    """What a gradient of HMC has more, in as few operations as write it down.

    With u = m + s v, log s = a + b r and a mean m that bends in r, the gradient g over u leads to
    g s over v, and over r to the sum of g (dm/dr + b s v) less half of the prior's squares.
    """
    rng = np.random.default_rng(0)
    basis, curves = rng.standard_normal((n_chains, 3)), rng.standard_normal((3, 3 * dim))
    x, g, root = rng.standard_normal((n_chains, dim)), np.ones((n_chains, dim)), np.ones(dim)
    curved, rest, u = np.empty((n_chains, 3 * dim)), np.empty_like(x), np.empty_like(x)
    mean, scale, shift = (curved[:, k * dim : (k + 1) * dim] for k in range(3))

    def operations() -> None:
        np.dot(basis, curves, out=curved)
        np.exp(scale, out=scale)
        np.multiply(scale, x, out=rest)
        np.add(mean, rest, out=u)
        np.multiply(u, root, out=u)
        np.vecdot(u, u)
        np.subtract(g, u, out=u)
        np.multiply(rest, root, out=rest)
        np.add(shift, rest, out=rest)
        np.vecdot(u, rest)
        np.multiply(u, scale, out=u)

    return operations


def of_squares(n_chains: int, dim: int) -> Callable[[], None]:
    """The same of Langevin steps, where the precision is integrated out.

    The gradient has y = sqrt(j) theta + origin more, times sqrt(j) and a function of its square.
    """
    rng = np.random.default_rng(0)
    theta, g, root = rng.standard_normal((n_chains, dim)), np.ones((n_chains, dim)), np.ones(dim)
    y, knots = np.empty_like(theta), np.linspace(-10.0, 10.0, 2048)
    values = np.exp(-knots)

    def operations() -> None:
        np.multiply(theta, root, out=y)
        np.add(y, root, out=y)
        squares = np.vecdot(y, y)
        np.log(squares, out=squares)
        more = np.interp(squares, knots, values)
        np.subtract(1.0, more, out=more)
        np.multiply(y, root, out=y)
        np.multiply(y, more[:, None], out=y)
        np.add(g, y, out=g)

    return operations


def median_us(operations: Callable[[], None], n: int = 5000) -> float:
    """Microseconds of a call."""
    each = []
    for _ in range(n):
        begin = time.perf_counter()
        operations()
        each.append(time.perf_counter() - begin)
    return 1e6 * float(np.median(each))


def microseconds(model: Any, X: NDArray, y: NDArray) -> tuple[float, int, float]:
    """Of a step of the first group of chains, rows of its minibatch, and gradients of a step."""
    run = model._run
    target = run.target(model._posterior_of(X, y, None))
    state = copy.deepcopy(run.states[0])
    each, read = [], run.sampler.report(state).rows_touched
    for _ in range(WARM_UP + STEPS):
        begin = time.perf_counter()
        run.sampler.step(state, target)
        each.append(time.perf_counter() - begin)
    read = (run.sampler.report(state).rows_touched - read) / len(each)
    of_a_gradient = state.rows.size * (len(state.theta) if isinstance(run.sampler, HMC) else 1)
    us = 1e6 * float(np.median(each[WARM_UP:]))
    return us, state.rows.size, read / of_a_gradient


def row(name: str, X: NDArray, y: NDArray) -> dict:
    """Of one set."""
    sampled = BayesianLogisticRegressionSGFS(random_state=0, n_draws=20).fit(X, y)
    given = BayesianLogisticRegressionSGFS(
        clone(sampled.sampler_),
        prior_precision=sampled.prior_precision_[: X.shape[1]],
        random_state=0,
        n_draws=20,
    ).fit(X, y)
    (with_it, rows, more), (without, given_rows, gradients) = (
        microseconds(m, X, y) for m in (sampled, given)
    )
    fewest = of_coordinates if isinstance(sampled.sampler_, HMC) else of_squares
    bare = gradients * median_us(fewest(len(given.states_[0].theta), given.draws_.shape[2]))
    return {
        "set": name,
        "sampler": type(sampled.sampler_).__name__,
        "rows of a minibatch, sampled": rows,
        "given": given_rows,
        "us, sampled": with_it,
        "us, given": without,
        "gradients, sampled": more,
        "gradients, given": gradients,
        "ratio": with_it / without,
        "floor": 1 + bare / without,
    }


def main(report: Report) -> None:
    """All sets."""
    rows = [row(name, *data) for name, data in sets().items()]
    claims = [Claim(f"{r['set']}: step over that without", r["ratio"], high=RATIO) for r in rows]
    report.save(rows, claims)


if __name__ == "__main__":
    benchmark(main, threads=1)
