"""Ideas that were to make steep posteriors cheaper, each beside the HMC that default fits run.

    python -m benchmarks.exactness.steep_ideas  # some fifteen minutes

Where classes are nearly separable, trajectories of HMC take dozens of gradients. All variants start
from draws of a default fit, in a metric that is the covariance of these, adapt their step for
`BURN_IN` trajectories and are judged by the next `DRAWS`. "ESS per gradient" is the smallest of
all coefficients and the log precision, over that of the first variant.

leapfrog            what the package runs: acceptance .9, trajectories of length .7 to 2.8 in units
                    of the metric, precision and coefficients together in partially non-centred
                    coordinates
accept .65, .8      other acceptance rates
half, 1.4 times     trajectories half as long, and 1.4 times as long
partial refreshment short trajectories that keep most of the momentum, which turns round where one
                    is rejected: generalised HMC (Horowitz 1991), as tuned by MEADS (Hoffman &
                    Sountsov 2022)
unbent              the same in coordinates whose margins a sinh-arcsinh map makes nearly normal
                    (Jones & Pewsey 2009)
two stages          a splitting of two gradients a step with the smallest error of the energy
                    (Blanes, Casas & Sanz-Serna 2014)
multiple time steps four steps with a quarter of the rows, and a line for the others, for each of
                    all rows (Tuckerman, Berne & Martyna 1992); a gradient of a quarter of the rows
                    counts as a quarter
integrated          the coefficients alone under one precision that is integrated out, which is
                    drawn after each trajectory
and scale moves     the same, with six Metropolis steps along the scale, of all coordinates and of
                    those that rows say little of
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

from benchmarks.common.harness import Report, benchmark
from benchmarks.exactness.screened_rows import screened
from benchmarks.prediction.quality import SETS, split
from skbayes_sg import BayesianLogisticRegressionSGFS, diagnostics
from skbayes_sg.posterior.hierarchical import IntegratedTarget
from skbayes_sg.priors.integrated_precision import IntegratedPrecision

NAMES = "wine", "iris", "KDD 99", "breast cancer", "separable"
CHAINS, BURN_IN, DRAWS = 32, 80, 250
LENGTH = 0.7, 2.8  # of trajectories, in units of the metric
TWO_STAGES = 0.21178  # b of the kicks b h, (1 - 2 b) h, b h
MOVES, SIZES = 6, (0.05, 0.2, 0.7)
UPDATES = 8  # with partial refreshment, for each draw
SHARE, INNER = 0.25, 4  # of the rows in inner steps, and how many of them an outer one has
QUANTILES = np.linspace(0.02, 0.98, 25)


class Variant(NamedTuple):
    """How trajectories are made."""

    accept: float = 0.9
    kicks: tuple[float, ...] = (0.5,)
    """Of a step until its middle: (1/2,), or (b, 1 - 2b) and b."""
    integrated: bool = False
    moves: int = 0
    stretch: float = 1.0
    kept: float = 0.0
    """Share of the momentum that a trajectory takes over."""
    unbent: bool = False
    inner: bool = False


VARIANTS = {
    "leapfrog": Variant(),
    "accept .65": Variant(accept=0.65),
    "accept .8": Variant(accept=0.8),
    "half as long": Variant(stretch=0.5),
    "1.4 times as long": Variant(stretch=1.4),
    "partial refreshment": Variant(accept=0.95, stretch=1 / UPDATES, kept=0.8),
    "unbent": Variant(unbent=True),
    "two stages": Variant(kicks=(TWO_STAGES, 1 - 2 * TWO_STAGES)),
    "multiple time steps": Variant(inner=True),
    "integrated": Variant(integrated=True),
    "and scale moves": Variant(integrated=True, moves=MOVES),
}


class Unbent:
    """A target in coordinates z whose margins are about normal.

    x = m + s sinh((asinh z + e) / d) for each coordinate, from quantiles of points (n, D).
    """

    def __init__(self, target, points: NDArray) -> None:
        self.target = target
        normal, quantiles = norm.ppf(QUANTILES), np.quantile(points, QUANTILES, axis=0).T
        fits = [
            least_squares(self._misfit, (x.mean(), 0.0, 0.0, 0.0), args=(x, normal))
            for x in quantiles
        ]
        m, log_s, self.e, log_d = np.array([fit.x for fit in fits]).T
        self.m, self.s, self.d = m, np.exp(log_s), np.exp(log_d)

    @staticmethod
    def _misfit(parameters, quantiles: NDArray, normal: NDArray) -> NDArray:
        m, log_s, e, log_d = parameters
        u = np.clip((np.arcsinh(normal) + e) / np.exp(log_d), -20, 20)
        return m + np.exp(log_s) * np.sinh(u) - quantiles

    def there(self, x: NDArray) -> NDArray:
        """z of x."""
        return np.sinh(self.d * np.arcsinh((x - self.m) / self.s) - self.e)

    def back(self, z: NDArray) -> NDArray:
        """x of z."""
        return self.m + self.s * np.sinh((np.arcsinh(z) + self.e) / self.d)

    def slope(self, z: NDArray) -> tuple[NDArray, NDArray]:
        """Log density of z and its gradient."""
        u, root = (np.arcsinh(z) + self.e) / self.d, np.sqrt(1 + z * z)
        rate = self.s * np.cosh(u) / (self.d * root)
        value, gradient = self.target.slope(self.m + self.s * np.sinh(u))
        gradient = gradient * rate + np.tanh(u) / (self.d * root) - z / root**2
        return value + np.log(rate).sum(axis=1), gradient

    def full_gradient(self, z: NDArray) -> NDArray:
        """Gradient of the log density."""
        return self.slope(z)[1]


class Chains:
    """HMC chains on a target, in the metric of the points that they start from."""

    def __init__(self, target, points: NDArray, variant: Variant, rng: np.random.Generator):
        self.target, self.variant, self.rng = target, variant, rng
        self.root = np.linalg.cholesky(np.cov(points, rowvar=False))
        self.x = points[rng.choice(len(points), CHAINS, replace=False)]
        self.value, self.slope = target.slope(self.x)
        self.p = rng.standard_normal(self.x.shape)
        self.log_step, self.gradients = np.log(0.2), 0.0
        self.some = screened(target, points[:2000], SHARE) if variant.inner else None

    def trajectory(self, t: int) -> None:
        """One for each chain. As in the package one in ten is short, and is not adapted to."""
        rng, variant, short = self.rng, self.variant, t % 10 == 9
        length = variant.stretch * rng.uniform(*LENGTH)
        n = 5 if short else min(100, int(np.ceil(length / np.exp(self.log_step))))
        h = min(length / n, np.exp(self.log_step))
        if short:
            h = np.exp(self.log_step) * 10.0 ** -rng.uniform(0.5, 1.5)
        fresh = rng.standard_normal(self.x.shape)
        p = variant.kept * self.p + np.sqrt(1 - variant.kept**2) * fresh
        energy = 0.5 * np.vecdot(p, p) - self.value
        x, end, value, _ = (self._path if self.some is None else self._split)(p, h, n)
        change = energy + value - 0.5 * np.vecdot(end, end)
        chance = np.exp(np.minimum(0.0, np.where(np.isfinite(change), change, -np.inf)))
        accept = rng.random(CHAINS) < chance
        self.p = np.where(accept[:, None], end, -p)
        self._take(accept, x, value)
        if t < BURN_IN and not short:
            self.log_step += (chance.mean() - variant.accept) * (t + 5) ** -0.6

    def _path(self, p: NDArray, h: float, n: int) -> tuple[NDArray, ...]:
        """Ends of n steps: points, momenta, log density and its gradient."""
        x, root, kicks = self.x, self.root, self.variant.kicks
        p = p + kicks[0] * h * self.slope @ root
        for i in range(n):
            for kick in kicks[1:]:
                x = x + 0.5 * h * p @ root.T
                p = p + kick * h * self.target.full_gradient(x) @ root
            x = x + h / len(kicks) * p @ root.T
            if i < n - 1:  # two half kicks
                p = p + 2 * kicks[0] * h * self.target.full_gradient(x) @ root
        value, slope = self.target.slope(x)
        self.gradients += n * len(kicks)
        return x, p + kicks[0] * h * slope @ root, value, slope

    def _split(self, p: NDArray, h: float, n: int) -> tuple[NDArray, ...]:
        """The same with steps of some rows within those of the others."""
        assert self.some is not None
        x, root, outer = self.x, self.root, -(-n // INNER)
        slope, few = self.slope, self.some(x)
        for _ in range(outer):
            p = p + 0.5 * INNER * h * (slope - few) @ root
            for _ in range(INNER):
                p = p + 0.5 * h * few @ root
                x = x + h * p @ root.T
                few = self.some(x)
                p = p + 0.5 * h * few @ root
            value, slope = self.target.slope(x)
            p = p + 0.5 * INNER * h * (slope - few) @ root
        self.gradients += outer * (1 + SHARE * INNER)
        return x, p, value, slope

    def moves(self, powers: list[NDArray], from_mean: NDArray) -> None:
        """Metropolis steps along the scale, whose powers each coordinate moves by."""
        for k in range(self.variant.moves):
            power = powers[k % len(powers)]
            size = self.rng.choice(SIZES) * self.rng.standard_normal(CHAINS)
            grown = np.exp(size[:, None] * power)
            x = grown * self.x + (grown - 1) * from_mean
            value = self.target.slope(x)[0]
            change = value - self.value + size * power.sum()
            self._take(np.log(self.rng.random(CHAINS)) < change, x, value)
        self.gradients += self.variant.moves

    def _take(self, accept: NDArray, x: NDArray, value: NDArray) -> None:
        self.x = np.where(accept[:, None], x, self.x)
        self.value = np.where(accept, value, self.value)
        self.slope = self.target.slope(self.x)[1]


def run(target, points: NDArray, variant: Variant) -> dict:
    """One variant from draws in the coordinates (v, r) of a default fit."""
    rng, c = np.random.default_rng(0), target.coordinates
    draw: Callable[[Chains], NDArray] = lambda chains: chains.x  # noqa: E731
    if variant.unbent:
        unbent = Unbent(target, points)
        chains = Chains(unbent, unbent.there(points), variant, rng)

        def draw(chains: Chains) -> NDArray:
            return unbent.back(chains.x)

    elif not variant.integrated:
        chains = Chains(target, points, variant, rng)
    else:
        u = c.rotated(c.point(points).u, back=True)
        alone = IntegratedTarget(target.given, c.scales)
        chains, precision = Chains(alone, u, variant, rng), IntegratedPrecision(c.scales)

        def draw(chains: Chains) -> NDArray:
            drawn = precision.draw(alone._squares(chains.x)[1], rng)
            return np.append(chains.x, drawn[:, None], axis=1)

        known = np.minimum(alone._root**2 * alone._at, 1.0)
        powers = [np.ones_like(known), known]
        from_mean = -alone.coordinates.transform(target.prior.mean[None])[0]
    draws = []
    for t in range(BURN_IN + DRAWS):
        if t == BURN_IN:
            chains.gradients = 0
        for _ in range(UPDATES if variant.kept else 1):
            chains.trajectory(t)
        if variant.moves:
            chains.moves(powers, from_mean)
        draws.append(draw(chains))
    kept = np.stack(draws[BURN_IN:], axis=1)
    ess = diagnostics.ess_bulk(kept)
    return {
        "step": float(np.exp(chains.log_step)),
        "gradients a draw": chains.gradients / DRAWS,
        "ESS": float(ess.min()),
        "ESS per gradient": float(ess.min() / chains.gradients),
    }


def on_set(name: str) -> list[dict]:
    """All variants on one set."""
    X, _, y, _ = split(*SETS[name](), 0)
    model = BayesianLogisticRegressionSGFS(random_state=0, n_draws=500).fit(X, y)
    target = model._run.target(model._posterior_of(X, y, None))
    eta = np.log(model.prior_precision_draws_.astype(np.float64))
    both = np.concatenate([model.draws_.astype(np.float64), eta], axis=2)
    points = target.coordinates.transform(both.reshape(-1, both.shape[2]))
    rows = [{"set": name, "variant": v} | run(target, points, VARIANTS[v]) for v in VARIANTS]
    first = rows[0]["ESS per gradient"]
    return [row | {"ESS per gradient": row["ESS per gradient"] / first} for row in rows]


def main(report: Report) -> None:
    """All sets."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    with np.errstate(all="ignore"):  # trajectories that diverge in burn-in are rejected
        report.save([row for name in NAMES for row in on_set(name)], [])


if __name__ == "__main__":
    benchmark(main, threads=1)
