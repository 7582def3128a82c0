"""Samplers: one update formula each, with its tuning parameters."""

from skbayes_sg.samplers.base import Sampler, State
from skbayes_sg.samplers.hmc import HMC
from skbayes_sg.samplers.schedules import CosineCycle, PolynomialDecay
from skbayes_sg.samplers.sgd import IASG, SGD, ConstantSGD, MomentumSGD
from skbayes_sg.samplers.sgfs import SGFS
from skbayes_sg.samplers.sgld import SGLD

__all__ = [
    "HMC",
    "IASG",
    "SGD",
    "SGFS",
    "SGLD",
    "ConstantSGD",
    "CosineCycle",
    "MomentumSGD",
    "PolynomialDecay",
    "Sampler",
    "State",
]
