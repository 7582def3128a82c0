"""Simulation-based calibration: is the posterior the posterior? Long runs, `make slow`.

Parameters from the prior, data from the model, draws from the sampler: the rank of the true
parameter among the draws is uniform if the draws are right (Talts et al. 2018).
"""

import numpy as np
import pytest
from scipy.stats import chi2

from skbayes_sg import BayesianLogisticRegressionSGFS
from skbayes_sg.samplers import HMC, SGFS

N_REPLICATES, N_BINS, DIM = 200, 10, 5


def rank_of_truth(sampler, n_rows, replicate):
    """Share of 99 nearly independent draws below the true parameter, for each parameter."""
    rng = np.random.default_rng([n_rows, replicate])
    theta = rng.standard_normal(DIM)
    X = rng.standard_normal((n_rows, DIM - 1))
    p = 1 / (1 + np.exp(-X @ theta[:-1] - theta[-1]))
    y = (rng.random(n_rows) < p).astype(int)
    model = BayesianLogisticRegressionSGFS(
        sampler, 1.0, intercept_precision=1.0, n_draws=200, thin=5, random_state=replicate
    )
    draws = model.fit(X, y).draws_.reshape(-1, DIM)
    some = draws[rng.choice(len(draws), 99, replace=False)]
    return (some < theta).sum(axis=0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("sampler", "n_rows"),
    [
        (HMC(), 50),
        (HMC(), 1000),
        (SGFS(batch_size=200), 1000),
        (SGFS(variance_reduction="control_variate"), 1000),
    ],
    ids=str,
)
def test_ranks_of_the_truth_are_uniform(sampler, n_rows):
    """Chi-squared over ten bins for each parameter; the smallest of five p-values above 0.001."""
    ranks = np.array([rank_of_truth(sampler, n_rows, r) for r in range(N_REPLICATES)])
    expected = N_REPLICATES / N_BINS
    for k in range(DIM):
        counts = np.bincount(ranks[:, k] * N_BINS // 100, minlength=N_BINS)
        assert chi2.sf(((counts - expected) ** 2 / expected).sum(), N_BINS - 1) > 0.001
