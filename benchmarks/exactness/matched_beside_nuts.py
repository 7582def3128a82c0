"""Errors of matched draws beside those of NUTS with as many draws, as they come and matched.

    python -m benchmarks.exactness.matched_beside_nuts [--seeds 8]

Logistic regression under a given prior precision, by the default and by NUTS of NumPyro with four
chains, whose likelihood is written in JAX and shares no code with the package. Draws of NUTS are
also matched by the formulas of the package, with gradients written out in NumPy. Errors are spreads
over seeds in posterior standard deviations, as root mean squares over parameters. One minute.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.harness import Claim, Report, benchmark
from benchmarks.exactness.matched import simulated
from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.linalg.coordinates import Identity
from skbayes_sg.posterior.matched import matched

CHAINS, WARM_UP = 4, 300
OF_INTERCEPT = 0.01  # prior precision; that of coefficients is 1


class Density:
    """What matching asks of a target."""

    coordinates, n_rows, posterior = Identity(), 1, SimpleNamespace(widest=1)

    def __init__(self, X: NDArray, y: NDArray) -> None:
        self.Z = np.column_stack([X, np.ones(len(X))])
        self.sign, self.dim = np.where(y, 1.0, -1.0), self.Z.shape[1]
        self.precision = np.append(np.ones(X.shape[1]), OF_INTERCEPT)

    def full_gradient(self, theta: NDArray) -> NDArray:
        """Of the log density at points (n, D)."""
        residual = self.sign / (1 + np.exp(self.sign * (theta @ self.Z.T)))
        return residual @ self.Z - self.precision * theta

    def nuts(self, n_draws: int) -> Any:
        """A sampler of so many draws in all."""
        import jax
        import jax.numpy as jnp
        from numpyro.infer import MCMC, NUTS

        jax.config.update("jax_enable_x64", True)
        rows = jnp.asarray(self.sign[:, None] * self.Z)

        def energy(theta: Any) -> Any:
            return jax.nn.softplus(-rows @ theta).sum() + 0.5 * jnp.sum(self.precision * theta**2)

        kernel, each = NUTS(potential_fn=energy), n_draws // CHAINS
        how = {"num_chains": CHAINS, "chain_method": "vectorized", "progress_bar": False}
        return MCMC(kernel, num_warmup=WARM_UP, num_samples=each, **how)


def numbers(draws: NDArray) -> list[NDArray]:
    """Mean, standard deviation and 2.5 % point of each parameter."""
    flat = draws.reshape(-1, draws.shape[-1]).astype(np.float64)
    return [flat.mean(axis=0), flat.std(axis=0), np.quantile(flat, 0.025, axis=0)]


def main(report: Report, seeds: int) -> None:
    """A row for each way to draw."""
    import jax

    rows, claims = [], []
    for name in ("logistic", "few rows"):
        _, X, y = simulated(name)
        model, density = BayesianLogisticRegression(prior_precision=1.0), Density(X, y)
        model.set_params(intercept_precision=OF_INTERCEPT)
        found: dict[str, list] = {"default": [], "NUTS": [], "NUTS, matched": []}
        for seed in range(seeds):
            found["default"].append(numbers(model.set_params(random_state=seed).fit(X, y).draws_))
            if seed == 0:
                n_draws = model.draws_[..., 0].size
                nuts = density.nuts(n_draws)
            nuts.run(jax.random.PRNGKey(seed), init_params=np.zeros((CHAINS, density.dim)))
            draws = np.asarray(nuts.get_samples(group_by_chain=True))
            after = matched(density, draws)  # type: ignore[arg-type]
            assert after is not None
            found["NUTS"].append(numbers(draws))
            found["NUTS, matched"].append(numbers(after[0]))
        mean, sd = np.mean(found["NUTS, matched"], axis=0)[:2]
        for how, each in found.items():
            error = np.sqrt(((np.std(each, axis=0, ddof=1) / sd) ** 2).mean(axis=1))
            row = {"set": name, "by": how, "draws": n_draws}
            rows.append(row | dict(zip(("mean", "sd", "2.5 %"), error.round(4), strict=True)))
            print(rows[-1], flush=True)
        apart = np.abs(np.mean(found["default"], axis=0)[0] - mean) / sd
        worse = rows[-3]["mean"] / rows[-1]["mean"]
        claims += [
            Claim(f"{name}: distance of means to those of NUTS, in sds",
                  float(apart.max()), high=0.01),
            Claim(f"{name}: error of a mean over that of NUTS, matched", float(worse), high=1.5),
        ]  # fmt: skip
    report.save(rows, claims)


if __name__ == "__main__":
    benchmark(main, threads=1, seeds={"type": int, "default": 8})
