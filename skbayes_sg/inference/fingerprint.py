"""By what a warm start and a checkpoint know that they go on with the same fit."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skbayes_sg.inference.options import Choice, Options
from skbayes_sg.posterior import Posterior
from skbayes_sg.samplers import Sampler


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """Data, prior, sampler and numbers of a fit."""

    sampler: Sampler
    precision: str
    n_chains: int | str
    gradient: NDArray
    """Of the log posterior at a random point, and the number of rows. It changes with every row,
    label, weight and prior precision."""
    draws: tuple
    """n_draws, burn_in, thin, and the seed where it is a number"""

    @classmethod
    def of(cls, options: Options, choice: Choice, posterior: Posterior) -> Fingerprint:
        """One pass over the rows."""
        somewhere = np.random.default_rng(0).standard_normal((1, posterior.dim))
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = np.append(posterior.full_gradient(somewhere), posterior.data.n_rows)
        seed = options.random_state if isinstance(options.random_state, Integral) else None
        draws = (options.n_draws, options.burn_in, options.thin, seed)
        precision = repr(options.precision)
        return cls(clone(choice.sampler), precision, options.n_chains, gradient, draws)

    def matches(self, other: Fingerprint | None) -> bool:
        """Whether data, prior, sampler and number of chains are the same.

        A warm start with an equal one goes on as if the fit had never stopped.
        """
        return (
            other is not None
            and self.n_chains == other.n_chains
            and self.precision == other.precision
            and self.gradient.shape == other.gradient.shape
            and np.allclose(self.gradient, other.gradient, rtol=1e-9, atol=0.0)
            and same_parameters(self.sampler, other.sampler)
        )


def same_parameters(a: Sampler, b: Sampler) -> bool:
    """Whether two samplers have the same formula and the same parameters."""
    ours, theirs = a.get_params(), b.get_params()
    return type(a) is type(b) and all(_equal(ours[name], theirs[name]) for name in ours)


def _equal(a: Any, b: Any) -> bool:
    """As ``np.array_equal``, which in NumPy 2.0 fails for a string and a number."""
    return np.shape(a) == np.shape(b) and bool(np.all(a == b))
