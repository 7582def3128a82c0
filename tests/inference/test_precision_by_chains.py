"""The precision of more parameters than a matrix is worth, as chains find it in rounds."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
)
from skbayes_sg.callbacks import TimeLimit
from skbayes_sg.inference.updates import Evidence
from skbayes_sg.samplers import UnderdampedLangevin

pytestmark = pytest.mark.usefixtures("_short_runs_may_warn")


@pytest.fixture
def no_matrix(monkeypatch):
    """As if 20 parameters were too many for a matrix."""
    monkeypatch.setattr("skbayes_sg.linalg.sizes._IN_EVERY_STEP", 20)
    monkeypatch.setattr("skbayes_sg.linalg.sizes._ONCE", 20)


def collinear(n_rows, n_columns, rng, noise=0.05):
    """Columns of ten factors, which nearly all of them repeat."""
    factors = rng.standard_normal((n_rows, 10))
    X = factors @ rng.standard_normal((10, n_columns))
    X += noise * rng.standard_normal(X.shape)
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("noise", [0.05, 10.0], ids=["collinear", "independent"])
def test_it_is_where_the_evidence_is_largest(no_matrix, noise, seed):
    """Of a linear regression, in closed form; a step of EM would be next to nothing."""
    rng = np.random.default_rng(seed)
    X = collinear(400, 60, rng, noise)
    y = X @ rng.normal(0, 0.1, 60) + rng.standard_normal(400)
    model = BayesianLinearRegression(
        noise_variance=1.0, fit_intercept=False, n_draws=10, random_state=0
    )
    model.fit(X, y)
    learned, unit = (
        model._fit.engine.learned,
        model.prior_precision_[0] / model._fit.engine.learned.values[0],
    )
    values, vectors = np.linalg.eigh(X.T @ X)
    pull = (vectors.T @ X.T @ y) ** 2
    first = learned.path[0, 0]

    def minus_log_evidence(rho):
        lam = unit * np.exp(rho)
        evidence = 0.5 * np.sum(rho - np.log(values + lam) + pull / (values + lam))
        return -evidence - 0.5 * rho + 0.5 * np.exp(rho) / first

    best = minimize_scalar(minus_log_evidence, bounds=(-8, 8), method="bounded").x
    h = 0.01
    bend = (
        minus_log_evidence(best + h) + minus_log_evidence(best - h) - 2 * minus_log_evidence(best)
    )
    width = h / np.sqrt(bend)
    assert abs(best - np.log(first)) > width  # it had to move
    assert abs(np.log(learned.values[0]) - best) < max(0.05, 0.5 * width) + 0.25 * width
    assert width / 3 < learned.uncertainty[0] < 3 * width


@pytest.mark.slow
def test_it_is_within_what_is_sampled_where_a_matrix_serves(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    X = collinear(300, 12, rng, 0.2)
    y = (X @ rng.normal(0, 0.3, (12, 4)) + rng.gumbel(size=(300, 4))).argmax(axis=1)
    sampled = BayesianLogisticRegression(random_state=0).fit(X, y)
    for limit in ("_IN_EVERY_STEP", "_ONCE"):
        monkeypatch.setattr(f"skbayes_sg.linalg.sizes.{limit}", 20)
    found = BayesianLogisticRegression(random_state=0).fit(X, y)
    draws = np.log(sampled.prior_precision_draws_)
    assert not hasattr(found, "prior_precision_draws_")
    away = np.log(found._fit.engine.learned.values[0]) - draws.mean()
    assert abs(away) < 1.5 * draws.std()
    ratio = found.draws_.std(axis=(0, 1)) / sampled.draws_.std(axis=(0, 1))
    assert abs(np.median(ratio) - 1) < 0.25
    # whatever the number of chains, and whatever sampler goes on from there
    values = found._fit.engine.learned.values
    for other in ({"n_chains": 2}, {"sampler": "sgfs", "n_draws": 10, "burn_in": 20}):
        model = BayesianLogisticRegression(**other, random_state=0)
        np.testing.assert_allclose(model.fit(X, y)._fit.engine.learned.values, values, rtol=1e-4)
        assert len(model.draws_) == other.get("n_chains", len(model.draws_))


def test_chains_that_are_thrown_go_on_by_metropolis_steps(no_matrix, monkeypatch):
    def thrown(self, state, target):
        raise FloatingPointError("diverged")

    monkeypatch.setattr(UnderdampedLangevin, "step", thrown)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 30))
    y = (X[:, 0] + rng.logistic(size=150) > 0).astype(int)
    model = BayesianLogisticRegression(n_draws=8, burn_in=8, random_state=0).fit(X, y)
    assert type(model.sampler_).__name__ == "HMC"
    assert "threw the chains" in model.sampler_reason_


def test_only_the_last_round_of_trajectories_is_a_whole_burn_in(no_matrix, monkeypatch):
    monkeypatch.setattr(UnderdampedLangevin, "refusal", lambda self, target: "it is too steep")
    found, steps = [], Evidence.steps
    monkeypatch.setattr(Evidence, "steps", lambda *args: found.append(steps(*args)) or found[-1])
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 30))
    y = (X[:, 0] + rng.logistic(size=150) > 0).astype(int)
    model = BayesianLogisticRegression(n_draws=8, random_state=0).fit(X, y)
    assert type(model.sampler_).__name__ == "HMC"
    whole = model.sampler_.run_length(model._fit.engine.states[0]).burn_in
    assert found[-1] == whole
    assert len(found) > 2
    assert set(found[:-1]) == {whole // 4}


def test_a_precision_that_was_not_found_is_told_with_what_can_be_done(no_matrix, monkeypatch, seed):
    """Its chains are not those of n_chains, so that more of these are no remedy."""
    monkeypatch.setattr("skbayes_sg.inference.updates.Evidence.rounds", 1)
    rng = np.random.default_rng(seed)
    X = collinear(400, 60, rng, 10.0)
    y = rng.standard_normal(400)
    model = BayesianLinearRegression(noise_variance=1.0, n_draws=10, random_state=0).fit(X, y)
    (said,) = model._fit.engine.learned.warnings()
    assert "was not found: after 2 values" in said
    assert "n_chains" not in said


def test_a_fit_whose_time_is_up_keeps_the_precision_that_it_has(no_matrix):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 30))
    y = (X[:, 0] + rng.logistic(size=150) > 0).astype(int)
    model = BayesianLogisticRegression(random_state=0)
    with pytest.warns(UserWarning, match="time was up before the first draw.*rounds of warm-up"):
        model.set_callbacks(TimeLimit(seconds=1e-9)).fit(X, y)
    learned = model._fit.engine.learned
    assert len(learned.path) == 1
    assert np.isfinite(model.draws_).all()
