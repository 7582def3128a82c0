"""Is the posterior the posterior? Calibration by simulation, and Geweke's joint test.

The simulations are those of the benchmarks of the same names. Here are their tools, controls that
they must detect, and short forms of them (`make slow`).
"""

import sys
from pathlib import Path

import numpy as np
import pytest

from skbayes_sg.samplers import HMC, SGFS, UnderdampedLangevin

sys.path.insert(0, str(Path(__file__).parents[2]))
rank_tests = pytest.importorskip("benchmarks.common.rank_tests")
simulation_calibration = pytest.importorskip("benchmarks.exactness.simulation_calibration")
joint_test = pytest.importorskip("benchmarks.exactness.joint_test")
posteriors = pytest.importorskip("benchmarks.exactness.posteriors")
sys.path.pop(0)

N, N_RANKS = 300, rank_tests.N_RANKED + 1


def test_the_band_has_its_level(seed):
    """Of 500 sets of uniform ranks a share of .05 leave the band, and their p values say so."""
    rng = np.random.default_rng(seed)
    low, high = rank_tests.band(N)
    outside, p_values = [], []
    for _ in range(500):
        ranked = rng.integers(N_RANKS, size=(N, 1))
        share = np.bincount(ranked[:, 0], minlength=N_RANKS)[:-1].cumsum() / N
        outside.append(np.any((share < low - 1e-9) | (share > high + 1e-9)))
        p_values.append(rank_tests.diagnose_run(ranked).p_value)
    np.testing.assert_array_equal(outside, np.array(p_values) < 0.0501)
    assert abs(np.mean(outside) - 0.05) < 5 * np.sqrt(0.05 * 0.95 / 500)


@pytest.mark.parametrize(("scale", "shift"), [(0.6, 0.0), (1.7, 0.0), (1.0, 0.5)])
def test_draws_with_a_wrong_scale_or_place_are_detected(scale, shift, seed):
    rng = np.random.default_rng(seed)
    truths = rng.standard_normal((N, 1))
    draws = shift + scale * rng.standard_normal((N, rank_tests.N_RANKED, 1))
    found = [rank_tests.ranks(truth, each) for truth, each in zip(truths, draws, strict=True)]
    assert rank_tests.diagnose_run(np.array(found)).p_value < 0.001


def test_coverage_counts_the_ranks_of_central_intervals():
    ranked = np.arange(N_RANKS)[:, None]
    assert rank_tests.diagnose_run(ranked).coverage == 0.9
    assert rank_tests.spaced(np.arange(4000)).shape == (rank_tests.N_RANKED,)


@pytest.mark.slow
def test_the_joint_test_passes_hmc_and_detects_a_prior_that_is_too_narrow(seed):
    problem = joint_test.problems()["logistic"]
    rng = np.random.default_rng(seed)
    draws = joint_test.independent(problem, 500, rng)
    for kernel, right in [(joint_test.hmc, True), (joint_test.narrow, False)]:
        means = joint_test.successive(problem, kernel, 40, 10, rng)
        assert (joint_test.compared(draws, means)[1] > 1e-4) is right


def test_what_is_beyond_the_monte_carlo_errors_of_both_runs():
    one, many = np.ones(2), np.full(2, np.inf)
    true = posteriors.Moments(0 * one, one, many, many, np.ones(()))
    few = np.array([100.0, 400.0])
    fitted = posteriors.Moments(np.array([0.2, 0.2]), np.array([0.8, 1.2]), few, few, np.ones(()))
    found = posteriors.beyond(fitted, true)
    assert found["mean beyond"] == pytest.approx(0.2 - 3 / 20)
    assert found["sd beyond"] == pytest.approx(0.2 - 3 / np.sqrt(800))
    exact = posteriors.exact(np.arange(6.0)[:, None], np.array([0.0, 2, 1, 4, 3, 5]), 1e-9)
    np.testing.assert_allclose(
        exact.mean[:2], np.polyfit(np.arange(6), [0, 2, 1, 4, 3, 5], 1), 1e-5
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("sampler", "n_rows"),
    [
        (HMC(), 50),
        (HMC(), 1000),
        (SGFS(batch_size=200), 1000),
        (UnderdampedLangevin(), 1000),
    ],
    ids=str,
)
def test_ranks_of_the_truth_are_uniform(sampler, n_rows):
    """200 replicates; the p value of all parameters and the log likelihood is above 0.001."""
    case = simulation_calibration.Case("", simulation_calibration.logistic(n_rows, sampler=sampler))
    ranked = simulation_calibration.ranked(case, 200)
    assert rank_tests.diagnose_run(ranked).p_value > 0.001
