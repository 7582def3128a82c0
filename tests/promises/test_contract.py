"""What every exported sampler must do, on every kind of posterior; a new one is found by itself."""

import copy
import inspect
import pickle
from io import BytesIO

import numpy as np
import pytest
from conftest import KnownGaussian, logistic_data
from helpers import mode_from_zero
from sklearn.base import clone

from skbayes_sg import samplers, stored
from skbayes_sg.models import Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.control_variates import Expanded
from skbayes_sg.posterior.target import ChainTarget
from skbayes_sg.samplers import SAMPLERS, Sampler, UnderdampedLangevin

EXPORTED = [
    cls
    for name in samplers.__all__
    if inspect.isclass(cls := getattr(samplers, name))
    and issubclass(cls, Sampler)
    and not inspect.isabstract(cls)
]


def small(cls):
    """With minibatches of 30 rows, where it has any."""
    sampler = cls()
    return sampler.set_params(batch_size=30) if "batch_size" in sampler.get_params() else sampler


def posteriors():
    X, y = logistic_data(120, 3)
    yield "gaussian", KnownGaussian().posterior
    yield "binary", Posterior.of(Softmax(3, 2), X, y, 1.0)
    yield (
        "binary float32, weighted",
        Posterior.of(
            Softmax(3, 2),
            X.astype(np.float32),
            y.astype(np.float32),
            1.0,
            np.linspace(0.5, 2, 120, dtype=np.float32),
        ),
    )
    yield "three classes", Posterior.of(Softmax(3, 3), X, np.arange(120) % 3, 1.0)


def anchored(posterior):
    return ChainTarget(Expanded.at(posterior, mode_from_zero(posterior)))


ON_EVERYTHING = [
    pytest.param(
        cls,
        posterior if cls.variance_reduction is None else anchored(posterior),
        id=f"{cls.__name__}-{name}",
    )
    for cls in EXPORTED
    for name, posterior in posteriors()
    if cls.variance_reduction is None or name != "gaussian"  # a `Predictor` has an anchor
]


def test_every_sampler_has_a_name():
    assert set(SAMPLERS.values()) == set(EXPORTED)
    assert SAMPLERS["underdamped_langevin"] is UnderdampedLangevin


@pytest.mark.parametrize(("cls", "posterior"), ON_EVERYTHING)
@pytest.mark.quick("binary float32, weighted", "three classes")
def test_a_state_is_the_whole_checkpoint(cls, posterior):
    sampler = clone(small(cls))
    sampler.resolve_auto(posterior)
    state = sampler.init(posterior, np.zeros((3, posterior.dim)), np.random.default_rng(0))
    for _ in range(5):
        sampler.step(state, posterior)
    file = BytesIO()
    stored.write(file, state)
    twins = [copy.deepcopy(state), pickle.loads(pickle.dumps(state)), stored.read(file)]
    for s in (state, *twins):
        for _ in range(70):
            sampler.step(s, posterior)
    for twin in twins:
        np.testing.assert_array_equal(state.theta, twin.theta)
    assert state.t == 75
    assert state.theta.shape == state.gradient.shape == (3, posterior.dim)
    assert sampler.draw(state)[0].dtype == np.float64
    assert np.isfinite(state.theta).all()


def test_a_sampler_without_a_distribution_says_so(gaussian):
    class Still(Sampler):
        batch_size, replace = 30, False

        def step(self, state, target):
            state.gradient = 0.0 * state.theta

    state = Still().init(gaussian.posterior, np.zeros((1, 4)), np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"^Still has no stationary distribution in closed form$"):
        Still().stationary_distribution(state, gaussian.posterior).covariance(
            gaussian.Lam, gaussian.Lam
        )


@pytest.mark.parametrize(("cls", "posterior"), ON_EVERYTHING)
@pytest.mark.quick("binary float32, weighted", "three classes")
def test_chains_of_a_group_are_not_copies_of_each_other(cls, posterior):
    sampler = small(cls)
    sampler.resolve_auto(posterior)
    state = sampler.init(posterior, np.zeros((2, posterior.dim)), np.random.default_rng(0))
    for _ in range(5):
        sampler.step(state, posterior)
    assert (state.theta[0] != state.theta[1]).all()


@pytest.mark.parametrize("cls", EXPORTED)
def test_parameters_are_kept_as_given_and_documented(cls):
    sampler = cls()
    for name in inspect.signature(cls).parameters:
        assert f"\n{name} : " in inspect.getdoc(cls)
        assert getattr(sampler, name) == inspect.signature(cls).parameters[name].default
    assert sampler.get_params() == clone(sampler).get_params()


@pytest.mark.parametrize(
    "cls",
    [cls for cls in EXPORTED if cls is not UnderdampedLangevin],  # which has a pool of rows
)
def test_samplers_of_one_seed_meet_on_the_same_rows(cls):
    posterior = KnownGaussian().posterior
    state = small(cls).init(posterior, np.zeros((1, 4)), np.random.default_rng(7))
    reference = posterior.minibatches(30, False, np.random.default_rng(7).spawn(2)[1], 1)
    theirs, ours = (stream.rng.bit_generator.seed_seq for stream in (state.rows, reference))
    assert (theirs.entropy, theirs.spawn_key) == (ours.entropy, ours.spawn_key)
