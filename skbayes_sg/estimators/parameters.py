"""The constructor parameters that all estimators share: names, limits and what they stand for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from skbayes_sg.chains.run import LONG
from skbayes_sg.inference.request import Choice
from skbayes_sg.inference.variational_em import VariationalEM
from skbayes_sg.samplers import SAMPLERS, Sampler
from skbayes_sg.samplers.base import Parameterised
from skbayes_sg.validation import require_integer

_DRAWS, _MOST_DRAWS = 2048, 16_384  # of all chains, where their number is "auto"
_MOST_BYTES = 400 << 20  # of draws whose number is "auto"
_FEWEST = 8  # draws of a chain


def _share(n_chains: int) -> int:
    """Draws of each chain at first."""
    return max(_FEWEST, _DRAWS // n_chains)


def _held(dim: int, n_chains: int) -> int:
    """Draws of each chain that 400 megabytes hold."""
    return max(_FEWEST, _MOST_BYTES // (4 * dim) // n_chains)


class CommonParameters(Parameterised):
    """Parameters of a fit, whatever is fitted: the sampler, the prior, length and seed of a run.

    Every constructor has them in this order. Parameters of the model stand where a user of
    scikit-learn expects them: hidden units first, as in MLPClassifier, and the rest after
    `prior_precision`. From `n_chains` on all go by keyword.
    """

    sampler: Any
    prior_precision: Any
    n_chains: int | str
    n_draws: int | str
    burn_in: int | str
    thin: int | str
    warm_start: bool
    n_jobs: int | None
    random_state: Any

    def _draws_to_keep(self, dim: int, n_chains: int) -> int:
        """Number of draws of each of some chains, at first.

        With "auto" they are 2,048 in all, or as many as 400 megabytes hold.
        """
        if self.n_draws != "auto":
            return int(self.n_draws)
        return min(_share(n_chains), _held(dim, n_chains))

    def _most_draws(self, dim: int, n_chains: int) -> int:
        """Draws of each chain up to which a fit goes on while chains do not agree.

        With "auto" they are 16,384 in all, or as many as 400 megabytes hold.
        """
        if self.n_draws != "auto":
            return int(self.n_draws)
        return min(_MOST_DRAWS // n_chains, _held(dim, n_chains))

    def _first_draws(self, dim: int, n_chains: int, n_drawn: int) -> int:
        """Draws of each chain at first, or those for which a fit had so many when it was killed."""
        n_draws = self._draws_to_keep(dim, n_chains)
        while n_draws < n_drawn:
            n_draws = min(2 * n_draws, self._most_draws(dim, n_chains))
        return n_draws

    def _said_of_draws(self, dim: int, n_chains: int, n_draws: int) -> list[str]:
        """What is said where memory bounds the number of draws."""
        if self.n_draws != "auto" or _held(dim, n_chains) >= _share(n_chains):
            return []
        return [
            f"{n_chains} chains keep {n_draws} draws each of {dim} parameters, and not "
            f"{_share(n_chains)}: they fill {_MOST_BYTES >> 20} MB; n_draws sets another number"
        ]

    def set_params(self, **params):
        """Set parameters of the estimator, and those of its sampler as ``sampler__<parameter>``.

        A sampler given by name becomes an instance first, in the form that the name stands for.

        Parameters
        ----------
        **params : dict
            For example ``sampler="sgfs", sampler__alpha=2.0``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If there is no such parameter, or if ``sampler=None`` leaves the sampler to `fit`.
        TypeError
            If parameters are set of a sampler that is none.

        Examples
        --------
        >>> from skbayes_sg import BayesianMLPClassifier
        >>> BayesianMLPClassifier(sampler="sgfs").set_params(sampler__alpha=2.0).sampler
        SGFS(B='precision', alpha=2.0, structure='diag')
        """
        of_sampler = {name: params[name] for name in params if name.startswith("sampler__")}
        sampler = params.get("sampler", self.sampler)
        if of_sampler and not isinstance(sampler, Sampler):
            asked = self._asked(sampler)
            if asked is None:
                raise ValueError(
                    f"Invalid parameter {next(iter(of_sampler))!r} for estimator {self}: with "
                    "sampler=None, fit chooses the sampler by the data. Name it in the same call, "
                    'for example set_params(sampler="sgfs", sampler__alpha=2.0)'
                )
            sampler = asked.sampler.set_params(
                **{name.removeprefix("sampler__"): value for name, value in of_sampler.items()}
            )
            others = {name: params[name] for name in params if name not in of_sampler}
            params = others | {"sampler": sampler}
        return super().set_params(**params)

    def _asked(self, sampler: Any, dim: int = 0) -> Choice | None:
        """The sampler that the user gives, by name or as an instance; None for the best default."""
        if sampler is None:
            return None
        if isinstance(sampler, str):
            name = sampler.lower()
            if name not in SAMPLERS:
                raise ValueError(
                    f"sampler must be one of {sorted(SAMPLERS)} or an instance, got {sampler!r}"
                )
            form = self._plan().presets(dim).get(name)
            form = form or Choice(SAMPLERS[name](), "its defaults")
            reason = f'"{name}" stands for {form.sampler}: {form.reason}'
            return replace(form, reason=reason, given=True)
        if not isinstance(sampler, Sampler):
            raise TypeError(
                f"sampler must be a Sampler instance, a name out of {sorted(SAMPLERS)} or None, "
                f"got {sampler!r}"
            )
        return Choice(sampler, "as given", given=True)

    def _validate_parameters(self) -> None:
        for name, least in {"n_chains": 1, "n_draws": 4, "burn_in": 0, "thin": 1}.items():
            value = getattr(self, name)
            if not (isinstance(value, str) and value == "auto"):
                require_integer(name, value, least, ' or "auto"')

    def _em(self) -> VariationalEM | Any:
        """How the prior precision is to be learned; None if it is given."""
        if not isinstance(self.prior_precision, VariationalEM):
            return None
        self.prior_precision.validate()
        return self.prior_precision

    def _seed(self) -> np.random.SeedSequence:
        """128 bits from `random_state`: an int, None, a RandomState, or a Generator."""
        if isinstance(self.random_state, np.random.Generator):
            bits = self.random_state.integers(2**32, size=4, dtype=np.uint32)
        else:
            bits = check_random_state(self.random_state).randint(2**32, size=4, dtype=np.uint32)
        return np.random.SeedSequence(bits.tolist())


def announced(seconds: float) -> list[str]:
    """What is said before chains that take more than a minute."""
    if seconds <= LONG:
        return []
    minutes = f"{seconds / 60:.0f} minute" + ("s" if seconds >= 90 else "")
    return [
        f"the chains will take about {minutes} on one core; a smaller n_draws takes less, and "
        "n_jobs uses more cores"
    ]
