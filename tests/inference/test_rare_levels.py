"""Walls along single coefficients, and a second run where the first drew another distribution."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import logistic_data
from helpers import mode_from_zero, warnings_of
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from skbayes_sg import BayesianLogisticRegression, VariationalEM
from skbayes_sg.callbacks import Callback, Checkpoint
from skbayes_sg.chains.run import go_on, run_chains
from skbayes_sg.data.row_metadata import RowMetadata
from skbayes_sg.diagnostics.judgements import Misfit
from skbayes_sg.estimators.warnings_of_rows import is_separated
from skbayes_sg.linalg import FULL
from skbayes_sg.models import Softmax
from skbayes_sg.posterior import Posterior, steepness
from skbayes_sg.posterior.control_variates import Expanded
from skbayes_sg.posterior.gaussian import find_mode
from skbayes_sg.posterior.steepness import column_steepness, steepness_of_draws
from skbayes_sg.posterior.target import ChainTarget
from skbayes_sg.samplers import HMC, SGFS, SGLD, ConstantSGD, UnderdampedLangevin

BY_NAME = {"random_state": 0, "burn_in": 300, "n_draws": 250, "thin": 1}


def one_hot(seed, n_rows=None):
    """Two normal columns and a factor of five levels, the rarest with one class only."""
    rng = np.random.default_rng(seed)
    n = int(10 ** rng.uniform(2.7, 4))
    n = n_rows or n
    level = np.searchsorted(np.cumsum([0.6, 0.3, 0.07, 0.02, 0.01]), rng.random(n)).clip(0, 4)
    X = np.column_stack([rng.standard_normal((n, 2)), np.eye(5)[level][:, 1:]])
    y = rng.random(n) < 1 / (1 + np.exp(-X[:, 0] + 0.5))
    return scale(X), np.where(level == 4, 0, y)


def anchored(X, y, n_classes=2, precision=1.0):
    y = np.where(y, 1.0, -1.0) if n_classes == 2 else y
    posterior = Posterior.of(Softmax(X.shape[1], n_classes), X, y, precision)
    mode = mode_from_zero(posterior)
    return ChainTarget(Expanded.at(posterior, mode))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_forces_along_lines_are_those_of_the_gradient(n_classes):
    X, y = logistic_data(300, 4)
    y = y > 0 if n_classes == 2 else np.digitize(X @ np.ones(4), [-1, 1])
    target = anchored(X, y, n_classes)
    lines, distances = np.random.default_rng(0).standard_normal((3, target.dim)), np.arange(-2, 3.0)
    origin = target.coordinates.transform(target.anchor.theta)
    precision = target.coordinates.pullback_matrix(np.eye(target.dim))
    rows = target.density._rows
    at_anchor = rows.X, rows.at_anchor, rows.full_weight
    forces = rows.model.forces_along(lines, distances, *at_anchor)
    for force, distance in zip(forces, distances, strict=True):
        change = target.full_gradient(origin + distance * lines) - target.full_gradient(origin)
        wanted = np.sum((change + distance * lines @ precision) * lines, axis=1)
        np.testing.assert_allclose(force, wanted, atol=2e-4 * np.abs(forces).max())


def test_what_lies_between_is_looked_at_where_it_may_matter():
    """A wall between two and three standard deviations, of a mean slope of 26 over four."""
    walls = np.array([1.0, 100.0])

    def forces(directions, distances):
        asked.append(len(distances))
        wall = np.clip(distances - 2, 0, 1)[:, None] * (walls[: len(directions)] - 1)
        return -(distances[:, None] + wall)

    for limit, expected, lengths in ((50.0, 100.0, [2, 9]), (150.0, 25.75, [2])):
        asked = []
        found = column_steepness(forces, np.eye(2), np.zeros(2), limit)
        if lengths == [2]:
            assert found == pytest.approx(expected)
        assert asked == lengths
    walls = np.array([1.0, 1.0])
    assert column_steepness(forces, np.eye(2), np.zeros(2), 50.0) == pytest.approx(1.0)


def test_a_gaussian_posterior_has_no_walls_and_a_rare_level_of_one_class_has():
    X, y = logistic_data(20_000, 3)
    assert anchored(X, y > 0).anchor.column_steepness < 1.5
    assert anchored(*one_hot(9), precision=0.1).anchor.column_steepness > 100


@pytest.mark.convergence_warnings
def test_the_default_is_hmc_where_a_coefficient_has_a_wall():
    X, y = one_hot(22)
    model = BayesianLogisticRegression(prior_precision=0.1, random_state=0, n_draws=50)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model.fit(X, y)
    assert isinstance(model.sampler_, HMC)
    assert "along the line of a coefficient its gradient is up to" in model.sampler_reason_
    assert model.diagnostics_["column_steepness"] > 50


@pytest.mark.convergence_warnings
@pytest.mark.parametrize("sampler", [SGFS(), ConstantSGD(batch_size="auto")])
@pytest.mark.quick("sampler0")
def test_a_sampler_by_name_says_that_a_wall_stops_its_noise(sampler):
    X, y = one_hot(2)
    model = BayesianLogisticRegression(sampler, 3.0, **BY_NAME)
    said = f"column_steepness is .* above {sampler.steepest_column:g}: the posterior of a coef"
    assert any(re.match(said, text) for text in warnings_of(model, X, y))


@pytest.mark.convergence_warnings
def test_the_limit_of_a_wall_depends_on_where_noise_comes_from():
    """Injected noise is not stopped, so the limit rises with its share; SGLD has none."""
    X, y = one_hot(2)
    steep = BayesianLogisticRegression(SGFS(2.0), 30.0, **BY_NAME).fit(X, y)
    assert 1.5 < steep.diagnostics_["column_steepness"] < steep.sampler_.steepest_column == 75
    assert SGFS().steepest_column == 15
    assert SGLD().steepest_column == np.inf
    assert ConstantSGD().steepest_column == 5


@pytest.mark.parametrize(("most", "within"), [(8000, 0.1), (2000, 0.4)])
def test_columns_are_followed_about_draws_as_about_the_anchor(most, within, monkeypatch):
    """On some of the rows too, which stand for all."""
    X, y = one_hot(9, 8000)
    precision = np.full(7, 3.0)
    posterior = Posterior.of(Softmax(6, 2), X, np.where(y, 1.0, -1.0), precision)
    rng = np.random.default_rng(0)
    mode = find_mode(posterior, np.zeros((1, 7)), rng).theta
    covariance = posterior.expand(mode, FULL).curvature.inverse().dense()
    draws = rng.multivariate_normal(mode[0], covariance, (4, 5000))
    monkeypatch.setattr(steepness, "_OUTPUTS", 7 * most)
    found = steepness_of_draws(posterior, draws, np.full(5000, 1 / 5000))["column_steepness"]
    monkeypatch.setattr(
        "skbayes_sg.posterior.control_variates.STEEP_COLUMN", 0.0
    )  # no place is left out
    assert found == pytest.approx(anchored(X, y, precision=3.0).anchor.column_steepness, rel=within)


@pytest.mark.slow
@pytest.mark.parametrize("number", [4, 9, 10, 21])
def test_standard_deviations_of_rare_levels(number):
    X, y = one_hot(number)
    model = BayesianLogisticRegression(prior_precision=0.1, random_state=0).fit(X, y)
    long = BayesianLogisticRegression(
        HMC(n_leapfrog=4), 0.1, n_chains=32, n_draws=1500, burn_in=600, random_state=1
    ).fit(X, y)
    ess = model.diagnostics_["ess_min"]
    ratio = model.coef_std_ / long.coef_std_
    assert np.abs(ratio - 1).max() < 5 * np.sqrt(0.5 / ess)


@pytest.mark.slow
def test_no_chain_starts_so_far_up_a_wall_that_it_flies_off():
    """One that did was 18 standard deviations out in the tail after burn-in, and R-hat 1.06."""
    X, y = one_hot(10)
    model = BayesianLogisticRegression(prior_precision=0.1, random_state=0).fit(X, y)
    rare = model.draws_[..., np.argmax(model.coef_std_)]
    assert np.abs(rare - np.median(rare)).max() < 10 * np.diff(np.quantile(rare, [0.16, 0.84])) / 2


@pytest.mark.convergence_warnings
def test_a_default_whose_draws_are_wrong_is_replaced_before_it_is_kept(monkeypatch):
    X, y = logistic_data(400, 4)
    model = BayesianLogisticRegression(prior_precision=1.0, random_state=0)
    first = model.fit(X, y > 0)
    assert isinstance(first.sampler_, UnderdampedLangevin)
    coef, passes = first.coef_, first.n_passes_

    def wrong_of_sgfs(figures, bias_remedy=""):
        return [] if "accept_rate" in figures else ["sd_ratio is 2.00, not 1"]

    monkeypatch.setattr("skbayes_sg.diagnostics.judgements.of_bias", wrong_of_sgfs)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model.fit(X, y > 0)
    assert isinstance(model.sampler_, HMC)
    assert model.sampler_reason_.startswith(
        "UnderdampedLangevin ran first, and sd_ratio is 2.00, not 1"
    )
    assert model.n_passes_ > passes
    np.testing.assert_allclose(model.coef_, coef, atol=0.1 * model.coef_std_.max())
    for asked in (
        {"sampler": UnderdampedLangevin()},
        {"burn_in": 60},
    ):
        other = BayesianLogisticRegression(prior_precision=1.0, random_state=0, **asked)
        with pytest.warns(ConvergenceWarning, match="sd_ratio is 2"):
            other.fit(X, y > 0)
        assert isinstance(other.sampler_, UnderdampedLangevin)
    monkeypatch.setattr("skbayes_sg.inference.sample.time_is_up", lambda: True)
    with pytest.warns(ConvergenceWarning, match="sd_ratio is 2"):
        model.fit(X, y > 0)
    assert isinstance(model.sampler_, UnderdampedLangevin)


def test_an_interrupt_of_the_second_sampler_keeps_its_draws(monkeypatch):
    X, y = logistic_data(400, 4)
    calls = []

    def interrupted(sampler, *args):
        calls.extend([sampler] * isinstance(sampler, HMC))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return go_on(sampler, *args)

    monkeypatch.setattr(
        "skbayes_sg.diagnostics.judgements.of_bias",
        lambda figures, *_: [] if "accept_rate" in figures else ["sd_ratio is 2.00, not 1"],
    )
    monkeypatch.setattr("skbayes_sg.chains.run.go_on", interrupted)
    monkeypatch.setattr("skbayes_sg.chains.run._SECONDS", 0.0)
    model = BayesianLogisticRegression(prior_precision=1.0, n_draws=256, random_state=0)
    said = r"interrupted: each chain has \d+ of \d+ draws"
    with pytest.warns(ConvergenceWarning, match=said), pytest.raises(KeyboardInterrupt):
        model.fit(X, y > 0)
    assert isinstance(model.sampler_, HMC)
    assert 4 <= model.draws_.shape[1] < 256


class Killed(Callback):
    """Ends a fit, as a killed process, after so many blocks of the second sampler."""

    def __init__(self, n_blocks):
        self.left = n_blocks

    def after_block(self, progress):
        self.left -= isinstance(progress.engine.sampler, HMC)
        if self.left == 0:
            raise MemoryError
        return False


def test_a_fit_that_was_killed_in_its_second_sampler_goes_on_there(tmp_path, monkeypatch):
    X, y = logistic_data(400, 4)
    monkeypatch.setattr(
        "skbayes_sg.diagnostics.judgements.of_bias",
        lambda figures, *_: [] if "accept_rate" in figures else ["sd_ratio is 2.00, not 1"],
    )
    whole = BayesianLogisticRegression(prior_precision=1.0, n_draws=64, random_state=0)
    whole.fit(X, y > 0)
    part, checkpoint = clone(whole), Checkpoint(tmp_path / "fit.npz", every=1e-9)
    with pytest.raises(MemoryError):
        part.set_callbacks(checkpoint, Killed(20)).fit(X, y > 0)
    part.set_callbacks(checkpoint).fit(X, y > 0)
    np.testing.assert_array_equal(part.draws_, whole.draws_)
    assert part.sampler_reason_ == whole.sampler_reason_


def _is_separated(model, X, y):
    posterior = model._posterior_of(X, y, RowMetadata())
    return is_separated(posterior, model.model_.is_right, model._draws.mean()[None])


@pytest.mark.convergence_warnings
def test_a_plane_between_the_classes_is_said_under_a_learned_prior():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 4))
    y = X[:, 0] > 0
    em = VariationalEM(hyperprior=(0.5, 0.5), n_updates=20)
    model = BayesianLogisticRegression(prior_precision=em, random_state=0, n_draws=50)
    said = warnings_of(model, X, y)
    assert any("a plane separates the classes" in text for text in said)
    assert _is_separated(model, X, y)
    y[0] = ~y[0]
    assert not _is_separated(model, X, y)


def test_a_plane_goes_between_any_rows_that_are_linearly_independent():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 40)), np.arange(30) < 3
    model = BayesianLogisticRegression(prior_precision=1e4, random_state=0, n_draws=50)
    model.fit(X, y)
    assert not model.predict(X).any()  # the mean is wrong about three rows
    assert _is_separated(model, X, y)
    X[0] = X[-1]  # of another class
    assert not _is_separated(model, X, y)


@pytest.mark.convergence_warnings
def test_a_stream_of_rare_levels_says_that_no_normal_distribution_will_do():
    X, y = one_hot(9)
    model = BayesianLogisticRegression(prior_precision=0.1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="no normal distribution stands.*call fit"):
        model.partial_fit(X, y, classes=[0, 1])
    assert model.diagnostics_["sd_ratio"] < 0.8
    X, y = logistic_data(3000, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        for rows in np.array_split(np.arange(3000), 6):
            model = BayesianLogisticRegression(random_state=0)
            model.partial_fit(X[rows], y[rows], classes=[-1, 1])
    assert model.diagnostics_["mean_shift"] < 0.05
    assert model.diagnostics_["sd_ratio"] == pytest.approx(1.0, abs=0.05)


def test_moments_along_lines_are_those_of_the_exact_density(seed):
    """Of one coefficient there is nothing else: against quadrature of its posterior."""
    rng = np.random.default_rng(seed)
    X, wrong = rng.exponential(size=(12, 1)), 0
    for y in (np.zeros(12, bool), X[:, 0] > 1):
        model = BayesianLogisticRegression(prior_precision=0.1, fit_intercept=False, random_state=0)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model.partial_fit(X, y, classes=[False, True])
        b = np.linspace(-40, 40, 40_001)
        z = np.where(y, 1, -1)[:, None] * X * b
        log_density = -np.logaddexp(0, -z).sum(axis=0) - 0.05 * b * b
        density = np.exp(log_density - log_density.max())
        mean = density @ b / density.sum()
        sd = np.sqrt(density @ (b - mean) ** 2 / density.sum())
        own, figures = model.posterior_.covariance.item() ** 0.5, model.diagnostics_
        shift = abs(model.posterior_.mean.item() - mean) / own
        # the distribution is near the one whose expected gradient is zero
        assert figures["mean_shift"] == pytest.approx(shift, abs=0.15)
        assert figures["sd_ratio"] == pytest.approx(own / sd, rel=0.1)
        wrong += bool(said)
    assert wrong > 0


@pytest.mark.parametrize("rare", [True, False])
def test_a_prior_says_that_no_normal_distribution_stands_for_its_posterior(rare):
    """Rows of a level of one class, of which more rows than one have the other class later."""
    rng = np.random.default_rng(1)
    member = np.repeat([0, 1, 2], [60, 60, 20])
    y = rng.random(140) < np.array([0.4, 0.6, 0.0 if rare else 0.5])[member]
    rows = pd.DataFrame({"level": pd.Categorical(member), "x": rng.standard_normal(140)})
    model = BayesianLogisticRegression(prior_groups={"level": "flat"}, random_state=0)
    first = model.fit(rows, y)
    following = BayesianLogisticRegression(prior=first.posterior_, random_state=0)
    said = warnings_of(following, rows, rng.random(140) < 0.5)
    assert [text.startswith("prior: no normal distribution stands") for text in said] == [
        True
    ] * rare


@pytest.mark.convergence_warnings
@pytest.mark.parametrize("repeats", [3, 8])
def test_walls_around_many_directions_are_seen_across_their_lines(repeats):
    """Levels of one class each: the stream's precision is too large, and all coefficients small.

    Along the line of each coefficient the normal distribution fits all the while.
    """
    member = np.arange(8 * repeats) % 8
    X, y = (member[:, None] == np.arange(8)).astype(float), member > 3
    model = BayesianLogisticRegression(random_state=0).partial_fit(X, y, classes=[False, True])
    with pytest.warns(ConvergenceWarning, match="no normal distribution stands.*density_sd"):
        ours = model.coef_std_
    figures = model.diagnostics_
    assert figures["density_sd"] > 0.3
    assert not Misfit(figures["mean_shift"], figures["sd_ratio"]).is_large
    assert (ours < 0.3 * model.fit(X, y).coef_std_).all()


@pytest.mark.convergence_warnings
def test_a_stream_of_few_rows_says_so_where_it_is_read():
    """Not in `partial_fit`: more rows are on their way."""
    member, rng = np.arange(24) % 8, np.random.default_rng(0)
    X, y = (member[:, None] == np.arange(8)).astype(float), member > 3
    model = BayesianLogisticRegression(prior_precision=0.001, fit_intercept=False, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model.partial_fit(X, y, classes=[False, True])
    with pytest.warns(ConvergenceWarning, match="no normal distribution stands.*call fit"):
        model.coef_  # noqa: B018
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model.partial_fit(rng.standard_normal((2000, 8)), rng.random(2000) < 0.5)
        model.coef_  # noqa: B018


@pytest.mark.parametrize("sampler", [UnderdampedLangevin, HMC])
def test_chains_that_were_thrown_take_the_whole_pool_or_make_place(sampler, monkeypatch):
    """Precisions given such draws are hardly ever accepted: they would be drawn for hours."""
    X, y = logistic_data(2000, 3)
    honest, batches = run_chains, []

    def thrown(first, target, *rest):
        chains = honest(first, target, *rest)
        if first.rejects:
            return chains
        batches.append(first.batch_size)
        if sampler is UnderdampedLangevin and first.batch_size == target.anchor.pool_size:
            return chains
        return [chain._replace(draws=1e12 * chain.draws) for chain in chains]

    monkeypatch.setattr("skbayes_sg.inference.sample.run_chains", thrown)
    model = BayesianLogisticRegression(random_state=0).fit(X, y)
    assert isinstance(model.sampler_, sampler)
    assert "diverged by step" in model.sampler_reason_
    assert ("on minibatches" in model.sampler_reason_) == (sampler is UnderdampedLangevin)
    assert batches[0] < 200
    assert batches[1:] == [2000]
    monkeypatch.undo()
    right = BayesianLogisticRegression(random_state=1).fit(X, y)
    np.testing.assert_allclose(model.coef_std_, right.coef_std_, rtol=0.05)
    assert (np.abs(model.coef_ - right.coef_) < 0.1 * right.coef_std_).all()
