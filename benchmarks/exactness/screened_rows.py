"""Would fewer rows do in the leapfrog steps of HMC? On many rows they would, on few they would not.

    python -m benchmarks.exactness.screened_rows

Leapfrog steps may follow any function of the parameters: the distribution stays exact, as
trajectories are accepted by the energy of all rows. So rows whose force is nearly linear over the
posterior might be replaced by the linear function that fits their sum best, by least squares over
the draws of a default fit. Kept are the rows whose forces are farthest from linear. Where most rows
are certain of their class, few should be needed.

"force error" is the root mean square of the force's error over draws, in units in which the
posterior has variance 1; "step" is what burn-in adapts to at the same acceptance rate; "gradients"
are those for a draw, each of them cheaper in proportion to the rows kept. "ESS per gradient" is the
smallest of all parameters, over that with all rows. A row of the table pays if its share of rows is
below that ratio. Some two minutes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from benchmarks.common.harness import Report, benchmark
from benchmarks.prediction.quality import SETS, split
from skbayes_sg import BayesianLogisticRegressionSGFS, diagnostics
from skbayes_sg.chains.run import Length, run_chain, start_chains
from skbayes_sg.samplers import HMC

NAMES = "KDD 99", "covertype", "separable", "wine"
SHARES = 1.0, 0.5, 0.25, 0.12
BURN_IN, DRAWS, POINTS = 64, 125, 2000

Force = Callable[[NDArray], NDArray]


class Screened(HMC):
    """HMC whose leapfrog steps follow another force; that at both ends of a trajectory is exact."""

    force: Force

    def _gradient(self, target, theta: NDArray) -> NDArray:
        return self.force(theta)


def screened(target, points: NDArray, share: float) -> Force:
    """The force on chains of a sampled precision with a part of the rows, at points (n, D)."""
    given, coordinates = target.given, target.coordinates
    rows, model = given._rows, given._rows.model
    change = _whitened(coordinates, points) - given._origin
    outputs = model.outputs(change, rows.X)
    forces = model.difference(outputs.copy(), rows.at_anchor) * rows.full_weight
    bend = (forces * (outputs - outputs.mean(axis=0))).mean(axis=0) / outputs.var(axis=0)
    left = forces - forces.mean(axis=0) - bend * (outputs - outputs.mean(axis=0))
    size = np.sqrt((left**2).mean(axis=0).sum(axis=0)) * np.linalg.norm(rows.X, axis=1)
    order = np.argsort(-size)
    kept, dropped = np.split(order, [round(share * len(order))])
    total = model.times_inputs(forces[..., dropped], rows.X[dropped]).total().astype(np.float64)
    basis = np.column_stack([np.ones(len(change)), change])
    line = np.linalg.lstsq(basis, total, rcond=None)[0]
    some = replace(
        rows,
        X=rows.X[kept],
        at_anchor=tuple(each[..., kept] for each in rows.at_anchor),
        full_weight=rows.full_weight[kept],
    )

    def force(x: NDArray) -> NDArray:
        at = coordinates.point(x)
        change = coordinates.rotated(at.u, back=True) - given._origin
        left = model.difference(model.outputs(change, some.X), some.at_anchor) * some.full_weight
        rest = model.times_inputs(left, some.X).total() + line[0] + change @ line[1:]
        rest = given._with_expansion(rest, change, given._bend(change))
        return coordinates.gradient(at, coordinates.rotated(rest))

    return force


def _whitened(coordinates, x: NDArray) -> NDArray:
    return coordinates.rotated(coordinates.point(x).u, back=True)


def on_set(name: str) -> list[dict]:
    """All shares of the rows of one set."""
    X, _, y, _ = split(*SETS[name](), 0)
    hmc = HMC(variance_reduction="control_variate")
    model = BayesianLogisticRegressionSGFS(hmc, n_draws=DRAWS, random_state=0).fit(X, y)
    target = model._run.target(model._posterior_of(X, y, None))
    eta = np.log(model.prior_precision_draws_)
    both = np.concatenate([model.draws_, eta], axis=2).astype(np.float64)
    points = target.coordinates.transform(both.reshape(-1, both.shape[2])[-POINTS:])
    exact, root = target.full_gradient(points), np.linalg.cholesky(np.cov(points.T))
    found = []
    for share in SHARES:
        sampler = Screened(variance_reduction="control_variate")
        sampler.force = target.full_gradient if share == 1 else screened(target, points, share)
        error = (sampler.force(points) - exact) @ root
        seed = np.random.SeedSequence(0)
        (state,) = start_chains(sampler, target, both[:, -1], seed)[:1]
        chain = run_chain(sampler, target, state, Length(DRAWS, BURN_IN))
        memory = chain.state.memory
        gradients = memory.rows_touched / (chain.state.rows.size * len(state.theta))
        gradients /= BURN_IN + DRAWS
        ess = diagnostics.ess_bulk(chain.draws).min() / (DRAWS * gradients)
        found.append(
            {
                "set": name,
                "share of rows": share,
                "force error": float(np.sqrt((error**2).sum(axis=1).mean())),
                "step": float(np.exp(memory.log_step)),
                "gradients": gradients,
                "ESS per gradient": float(ess),
            }
        )
    first = found[0]["ESS per gradient"]
    return [row | {"ESS per gradient": row["ESS per gradient"] / first} for row in found]


def main(report: Report) -> None:
    """All sets."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    report.save([row for name in NAMES for row in on_set(name)], [])


if __name__ == "__main__":
    benchmark(main, threads=1)
