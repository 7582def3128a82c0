"""How many draws a fit makes where n_draws is "auto"."""

import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
)
from skbayes_sg.callbacks import Callback, Checkpoint, FitSoFar
from skbayes_sg.chains.run import LONG
from skbayes_sg.diagnostics import agreement, judgements
from skbayes_sg.inference import diagnose, one_mode, sample

X, Y = make_classification(80, 4, random_state=0)


@pytest.fixture
def never_enough(monkeypatch):
    monkeypatch.setattr(judgements, "ENOUGH_ESS", 1e9)


def fitted(*callbacks, **parameters):
    model = BayesianLogisticRegression(random_state=0, **parameters)
    return model.set_callbacks(*callbacks).fit(X, Y)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"sampler": "hmc"},
        # two columns follow from the others, where SGFS suits no sampled precision, and says so
        {"sampler": "sgfs", "prior_precision": 1.0},
    ],
    ids=["default", "hmc", "sgfs"],
)
@pytest.mark.quick("hmc")
def test_a_fit_goes_on_until_they_are_enough(parameters, monkeypatch):
    """And so has the draws, and the figures, of a fit that was asked for as many."""
    parameters = {"n_chains": 8} | parameters
    enough = 4.0 * fitted(n_draws=64, **parameters).diagnostics_["ess_tail_min"]
    monkeypatch.setattr(judgements, "ENOUGH_ESS", enough)
    for name in ("_DRAWS", "_NORMAL_DRAWS"):
        monkeypatch.setattr(one_mode, name, 8 * 64)
    found = fitted(**parameters)
    n_draws = found.draws_.shape[1]
    rounds = [64]
    while rounds[-1] < 2048:
        rounds.append(rounds[-1] + rounds[-1] // 2)  # half as many again
    assert n_draws in rounds[1:]
    before = fitted(n_draws=rounds[rounds.index(n_draws) - 1], **parameters)
    assert not judgements.is_enough(before.diagnostics_)
    assert min(found.diagnostics_["ess_min"], found.diagnostics_["ess_tail_min"]) >= enough
    given = fitted(n_draws=n_draws, **parameters)
    np.testing.assert_array_equal(found.draws_, given.draws_)
    assert found.diagnostics_ == pytest.approx(given.diagnostics_, rel=1e-9, nan_ok=True)
    assert (found.n_iter_, found.n_passes_) == (given.n_iter_, given.n_passes_)


def test_draws_are_no_more_than_enough():
    assert fitted().draws_.shape[1] == 64


@pytest.mark.usefixtures("never_enough")
def test_the_most_draws_are_those_asked_for_or_eight_times_the_first():
    """The fit says that they are too few, unless their number was asked for."""
    assert fitted(n_draws=20).draws_.shape[1] == 20
    with pytest.warns(ConvergenceWarning, match=r"stopped at 512 draws .*set n_draws above 512"):
        assert fitted().draws_.shape[1] == 512


@pytest.mark.parametrize(
    ("bulk", "tail", "most", "said"),
    [
        (
            450,
            399,
            64,
            r"^ess_tail_min is 399, below 400: .* the ends of intervals; .* at 64 draws",
        ),
        (101, 450, 64, r"^ess_min is 101, below 400: .* means; .* the most that it draws"),
        (
            450,
            199,
            512,
            r"^ess_tail_min is 199, .* at 64 draws of each chain; set n_draws above 64",
        ),
        (250, 201, 512, None),  # a doubling that takes too long would suffice
        (400, 400, 64, None),
        (99, 50, 64, None),  # which has a warning of its own
    ],
)
def test_a_promise_that_is_missed_is_said_once(bulk, tail, most, said):
    figures = {"r_hat_max": 1.01, "r_hat_limit": 1.05, "ess_min": bulk, "ess_tail_min": tail}
    found = judgements.of_few_draws(figures, 64, most)
    assert len(found) == (said is not None)
    assert said is None or re.search(said, found[0])
    assert not judgements.of_few_draws(figures | {"r_hat_max": 1.1}, 64, most)


def test_a_fit_says_that_its_tails_are_known_from_few_draws(monkeypatch):
    few = {"r_hat_max": 1.01, "ess_min": 194.0, "ess_tail_min": 97.0}
    monkeypatch.setattr(agreement, "of_draws", lambda draws: few)
    monkeypatch.setattr(one_mode, "_MOST_DRAWS", 2048)  # no doubling
    with pytest.warns(ConvergenceWarning, match="ess_tail_min is 97, below 400.* 64 draws of each"):
        fitted()


HEAVY = {"r_hat_max": 1.01, "r_hat_limit": 1.05, "ess_min": 900.0, "ess_tail_min": 900.0}
HEAVY |= {"stein_ratio": 1.0, "stein_se": 0.01}


@pytest.mark.parametrize(("error", "said"), [(0.05, 0), (0.13, 0), (0.2, 1), (np.nan, 0)])
def test_a_standard_deviation_that_few_draws_decide_is_said(error, said):
    figures = HEAVY | {"sd_error": error}
    found = judgements.of_few_draws(figures, 512, 512)
    assert len(found) == said
    assert not said or re.search(r"^sd_error is 0.20, .* to 20% only, .* at 512 draws", found[0])
    assert judgements.is_enough(figures) == (not error > 0.1)
    assert not judgements.of_few_draws(figures | {"ess_min": 99.0}, 512, 512)


@pytest.mark.convergence_warnings
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.slow
def test_fits_with_heavy_tails_agree_in_their_spread(seed, monkeypatch):
    """Four counts and a sparse prior: effective draws are enough long before variances are known.

    Log ratios of the standard deviations of two fits have an error of sqrt(2) sd_error.
    """
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((5, 5)), np.array([0.0, 3, 1, 0, 2])
    model = BayesianNegativeBinomialRegressor(prior="student_t")
    one, other = (clone(model).set_params(random_state=seed + k).fit(X, y) for k in (0, 1000))
    for fit in (one, other):
        assert fit.diagnostics_["sd_error"] <= 0.1 or fit.draws_.shape[1] == 512
    limit = 0.8 * clone(one).set_params(n_draws=64).fit(X, y).diagnostics_["sd_error"]
    error = np.hypot(one.diagnostics_["sd_error"], other.diagnostics_["sd_error"])
    assert (np.abs(np.log(one.coef_std_ / other.coef_std_)) < 5 * error).all()
    monkeypatch.setattr(judgements, "SD_ERROR_LIMIT", limit)
    assert clone(one).fit(X, y).draws_.shape[1] > 64


@pytest.mark.usefixtures("never_enough")
@pytest.mark.filterwarnings("ignore:ess_", "ignore:the chains .*will take")
def test_draws_that_take_long_or_are_wrong_are_no_more(monkeypatch):
    monkeypatch.setattr(sample, "seconds", lambda *given: LONG + 1)
    assert fitted().draws_.shape[1] == 64
    monkeypatch.setattr(sample, "seconds", lambda *given: LONG)
    assert fitted().draws_.shape[1] > 64
    monkeypatch.setattr(judgements, "of_bias", lambda figures, remedy="": ["wrong"])
    with pytest.warns(ConvergenceWarning, match="wrong"):
        assert fitted(sampler="hmc").draws_.shape[1] == 64


@pytest.mark.usefixtures("never_enough")
@pytest.mark.filterwarnings("ignore:r_hat_max is", "ignore:wrong")
def test_bias_is_judged_of_chains_that_agree(monkeypatch):
    """Until then a fit goes on."""
    monkeypatch.setattr(judgements, "of_bias", lambda figures, remedy="": ["wrong"])
    monkeypatch.setattr(judgements, "agrees", lambda figures: False)
    found = fitted(sampler="hmc", prior_precision=1.0)
    assert found.draws_.shape[1] == 512
    assert found.burn_in_ == found.n_iter_ - 512


class Ends(Callback):
    """Ends the sampling, or kills the fit, at so many draws."""

    def __init__(self, at, kills=False):
        self.at, self.kills = at, kills
        self.seen: list[FitSoFar] = []

    def after_block(self, progress):
        self.seen.append(progress)
        if progress.drawn >= self.at and self.kills:
            raise RuntimeError
        return progress.drawn >= self.at


@pytest.mark.usefixtures("never_enough")
@pytest.mark.parametrize(("at", "asked"), [(64, {64}), (90, {64, 96})])
def test_callbacks_see_each_round_and_end_it(at, asked):
    ends = Ends(at)
    with pytest.warns(ConvergenceWarning, match=rf"Ends ended .* has ({at}|{at + 1}) of 96 draws"):
        assert at <= fitted(ends).draws_.shape[1] < at + 2
    assert {progress.n_draws for progress in ends.seen} == asked


@pytest.mark.slow
def test_a_killed_fit_goes_on_to_the_same_number_of_draws(tmp_path, monkeypatch):
    """Where the draws would be enough before it, too."""
    figures = fitted().diagnostics_
    enough = 1.2 * min(figures["ess_min"], figures["ess_tail_min"])
    monkeypatch.setattr(judgements, "ENOUGH_ESS", enough)
    whole, checkpoint = fitted(), Checkpoint(tmp_path / "fit.npz", every=1e-9)
    assert whole.draws_.shape[1] == 96
    with pytest.raises(RuntimeError):
        fitted(checkpoint, Ends(90, kills=True))
    np.testing.assert_array_equal(fitted(checkpoint).draws_, whole.draws_)


def test_many_chains_have_draws_too():
    assert fitted(n_chains=600).draws_.shape[:2] == (600, 8)


def test_chains_that_do_not_agree_say_by_how_much_and_how_many_draws_would():
    """R-hat squared less 1 falls as one over the number of draws."""
    figures = {"r_hat_max": 1.06, "r_hat_limit": 1.05, "ess_min": 256.0}
    (said,) = judgements.of_disagreement(figures, 512)
    assert "off by about 0.06 of" in said
    advised = int(re.search(r"n_draws=(\d+)", said)[1])
    enough = 512 * (1.06**2 - 1) / (1.05**2 - 1)
    assert enough <= advised <= 1.1 * enough
    assert "raise n_draws or thin, or burn_in" in said
    far = judgements.of_disagreement(figures | {"r_hat_max": np.inf}, 20)[0]
    assert "n_draws=2000 " in far
    assert not judgements.of_disagreement(figures | {"r_hat_max": 1.05}, 512)


@pytest.mark.parametrize("sampler", [None, "hmc"])
def test_exact_draws_are_not_said_to_be_off_in_their_scale(sampler, monkeypatch):
    """Gradients with heavy tails, as where columns outnumber rows, once said so of one in nine."""
    of_gradients = diagnose.of_gradients

    def off(*arguments):
        return of_gradients(*arguments) | {"scale_shift": 0.5, "scale_shift_se": 0.01}

    monkeypatch.setattr(diagnose, "of_gradients", off)
    model = BayesianLinearRegression(sampler, random_state=0, n_draws=64)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X, X[:, 0])
    told = any("scale_shift is 0.50" in str(each.message) for each in said)
    assert told == (sampler == "hmc")
    assert model.diagnostics_["scale_shift"] == 0.5
