"""The no-U-turn sampler of NumPyro on a Gaussian posterior, from a start that it does not know."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def nuts(
    mode: NDArray, Lam: NDArray, start: NDArray, n_passes: float, n_adapt: int, seed: int
) -> tuple[NDArray, NDArray]:
    """Draws (chains, draws, D) from the first on, and gradients spent until each (chains, draws).

    A gradient of all rows is one pass. The step adapts for `n_adapt` draws, which are kept, by dual
    averaging from a step that the start suggests; the metric is the identity, as in Hoffman &
    Gelman (2014). A new chain takes five gradients a draw or more, so `n_passes` are covered.
    """
    import jax
    from numpyro.infer import MCMC, NUTS

    jax.config.update("jax_enable_x64", True)

    def potential(theta):
        return 0.5 * (theta - mode) @ Lam @ (theta - mode)

    kernel = NUTS(potential_fn=potential, adapt_mass_matrix=False, find_heuristic_step_size=True)
    draws, steps = [], []
    length = {"num_chains": len(start), "chain_method": "vectorized", "progress_bar": False}
    mcmc = MCMC(kernel, num_warmup=n_adapt, num_samples=max(1, int(n_passes / 3)), **length)
    key = jax.random.PRNGKey(seed)
    fields = ("num_steps",)
    mcmc.warmup(key, extra_fields=fields, collect_warmup=True, init_params=np.array(start))
    for part in range(2):
        if part:
            mcmc.run(jax.random.PRNGKey(seed + 1), extra_fields=fields)
        draws.append(np.asarray(mcmc.get_samples(group_by_chain=True)))
        steps.append(np.asarray(mcmc.get_extra_fields(group_by_chain=True)["num_steps"]))
    return np.concatenate(draws, axis=1), np.cumsum(np.concatenate(steps, axis=1), axis=1)
