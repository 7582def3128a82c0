"""The discriminative restricted Boltzmann machine, against the sum over all hidden states."""

from itertools import product

import numpy as np
import pytest
from helpers import scaled_iris
from scipy.special import logsumexp

from skbayes_sg import DRBMClassifier
from skbayes_sg.models import DRBM
from skbayes_sg.samplers import SGFS

SHORT = {"n_chains": 2, "n_draws": 20, "burn_in": 50, "thin": 1, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def iris():
    return scaled_iris()


def enumerated(b, x):
    """log p(y | x) from the joint energy, summed over all 2^H hidden states (Larochelle & Bengio
    2008, Eq. 2).
    """
    n_hidden, n_classes = b["U"].shape
    joint = np.empty(n_classes)
    for k in range(n_classes):
        states = (np.array(h) for h in product((0, 1), repeat=n_hidden))
        joint[k] = b["d"][k] + logsumexp([h @ (b["c"] + b["U"][:, k] + b["W"] @ x) for h in states])
    return joint - logsumexp(joint)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_probabilities_are_those_of_the_sum_over_hidden_states(n_classes):
    rng = np.random.default_rng(0)
    model = DRBM(5, n_classes, 7)
    theta, X = rng.standard_normal((1, model.dim)), rng.standard_normal((4, 5))
    b = {name: block[0] for name, block in model.unpack(theta).items()}
    for i, x in enumerate(X):
        expected = enumerated(b, x)
        for k in range(n_classes):
            y = model.encode(np.full(4, k), X.dtype)
            assert abs(model.log_likelihood(theta, X, y)[0, i] - expected[k]) < 1e-12
        p = model.predict(theta, X)[0, :, i]
        np.testing.assert_allclose(p, np.exp(expected)[-len(p) :], atol=1e-13)


def test_dimensions_and_units():
    model = DRBM(40, 23, 41)
    assert model.dim == 2647
    assert [len(unit) for unit in model.units()] == [64] * 41 + [23]
    assert DRBM(9, 6, 2).dim == 18 + 12 + 2 + 6


@pytest.mark.parametrize("structure", ["diag", "block", "full"])
@pytest.mark.quick("diag")
def test_every_structure_learns_iris(iris, structure):
    sampler = SGFS(structure=structure, alpha=6.0, batch_size=50)
    model = DRBMClassifier(6, sampler=sampler, **SHORT | {"burn_in": 300, "thin": 2}).fit(*iris)
    assert model.score(*iris) > 0.9
    assert np.isfinite(model.draws_).all()


def test_default_fit(iris):
    model = DRBMClassifier(6, random_state=0).fit(*iris)
    assert model.score(*iris) > 0.95
    assert model.draws_.dtype == np.float32
    assert set(model.model_.unpack(model.draws_)) == {"W", "U", "c", "d"}
    np.testing.assert_allclose(model.predict_proba(iris[0]).sum(axis=1), 1)


def test_bad_parameters_are_named(iris):
    with pytest.raises(ValueError, match="n_hidden must be at least 1"):
        DRBMClassifier(0, **SHORT).fit(*iris)
    with pytest.raises(ValueError, match="one number or 4, for W, U, c, d"):
        DRBMClassifier(3, prior_precision=[1.0, 2.0], **SHORT).fit(*iris)


@pytest.mark.slow
def test_many_rows_take_sgfs_whose_noise_is_bounded_from_below(iris, monkeypatch):
    monkeypatch.setattr("skbayes_sg.inference.many_modes.has_cheap_gradients", lambda n: False)
    monkeypatch.setattr("skbayes_sg.chains.tuning._SETTLING", 200)
    monkeypatch.setattr("skbayes_sg.chains.tuning._STEPS", 100)
    model = DRBMClassifier(n_hidden=3, temperature=1.0, **SHORT).fit(*iris)
    assert isinstance(model.sampler_, SGFS)
    assert model.sampler_.B == "bounded"
    assert model.score(*iris) > 0.6
