"""Samplers: one update formula each, with its tuning parameters, and what they ask of a target.

Imports bases, data, linalg, priors, theory and validation; never models.
"""

import inspect
import re

from skbayes_sg.samplers.base import Sampler
from skbayes_sg.samplers.constant_sgd import ConstantSGD
from skbayes_sg.samplers.hmc import HMC
from skbayes_sg.samplers.iasg import IASG
from skbayes_sg.samplers.langevin import UnderdampedLangevin
from skbayes_sg.samplers.momentum_sgd import MomentumSGD
from skbayes_sg.samplers.schedules import CosineCycle, PolynomialDecay
from skbayes_sg.samplers.sgd import SGD
from skbayes_sg.samplers.sgfs import SGFS
from skbayes_sg.samplers.sghmc import SGHMC
from skbayes_sg.samplers.sgld import SGLD
from skbayes_sg.samplers.target import State

__all__ = [
    "HMC",
    "IASG",
    "SGD",
    "SGFS",
    "SGHMC",
    "SGLD",
    "ConstantSGD",
    "CosineCycle",
    "MomentumSGD",
    "PolynomialDecay",
    "Sampler",
    "State",
    "UnderdampedLangevin",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__


def _snake_case(name: str) -> str:
    """ConstantSGD: constant_sgd."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


SAMPLERS: dict[str, type[Sampler]] = {
    _snake_case(name): kind
    for name in __all__
    if issubclass(kind := globals()[name], Sampler) and not inspect.isabstract(kind)
}
"""Every sampler by the name that `sampler="..."` of an estimator takes, in capitals or not."""
