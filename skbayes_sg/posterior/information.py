"""What the rows know of the coefficients, beside what a prior of sampled precision does."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import of_columns
from skbayes_sg.linalg import DIAGONAL, FULL
from skbayes_sg.posterior import Posterior
from skbayes_sg.priors import without_rows
from skbayes_sg.priors.scales import Scales


def mean_information(posterior: Posterior, scales: Scales) -> float:
    """Information of the rows about a coefficient, in units of the prior, where all are 0.

    The intercept, which is not known either, is eliminated. All rows are equally informative there,
    so that the columns' variances take the place of their mean squares: what is known of a
    coefficient does not depend on where its column has its zero.
    """
    sample, model = posterior.data.sample, posterior.model
    theta = model.guess(sample.y, sample.weight, sample.known)
    information = posterior.of_sample.expand(theta, DIAGONAL).curvature.diagonal()
    information = information - posterior.prior.curvature(theta).diagonal()
    noise = 1.0 if posterior.prior.quadratic else np.exp(theta[0, -1])
    if "intercept" in model.shapes:
        of_rows = model.unpack(information)["intercept"].reshape(-1, 1)
        information[scales.block] = (of_rows * of_columns(posterior.data).variance).ravel()
    of_coef = noise * information[scales.block] / posterior.prior.unit[scales.block]
    return float(of_coef.mean())


def least_known(posterior: Posterior, scales: Scales, theta: NDArray) -> dict[str, float]:
    """Share of the rows in what is known of the direction that they know least, at theta (1, D).

    Of coefficients whose precision is sampled. Where the prior alone knows a direction of them, the
    posterior there is a mixture over precisions, with tails as heavy as those of Student's t. Steps
    as long as a normal posterior allows draw lighter ones, and no identity of gradients tells, as
    those are linear in the draws as the steps are (math/diagnostics.md#directions-without-data).
    Columns of one value, whose coefficients are held at zero, do not count.
    """
    curvature = posterior.expand(theta, FULL).curvature.dense()
    of_prior = without_rows(posterior.prior).curvature(theta).dense()
    block = scales.block
    others = np.setdiff1d(np.arange(posterior.dim), block)
    if len(others):  # intercepts and the like are eliminated
        beside = curvature[np.ix_(others, block)]
        lost = beside.T @ np.linalg.solve(curvature[np.ix_(others, others)], beside)
    else:
        lost = 0.0
    of_block = np.ix_(block, block)
    information, of_prior = curvature[of_block] - lost - of_prior[of_block], of_prior[of_block]
    counts = information.diagonal() > 1e-9 * of_prior.diagonal()
    if not counts.any() or not np.isfinite(information).all():  # chains may have left the posterior
        return {}
    information, of_prior = information[np.ix_(counts, counts)], of_prior[np.ix_(counts, counts)]
    root = np.linalg.cholesky(of_prior)
    values = np.linalg.eigvalsh(np.linalg.solve(root, np.linalg.solve(root, information).T))
    # of several classes no rows know the shift of all, and no probability depends on it
    counted = block[counts]
    null = [np.isin(c, counted).all(axis=1).sum() for c, _ in posterior.model.null_directions()]
    values = values[int(sum(null)) :]
    if not len(values):
        return {}
    least = max(0.0, float(values[0]))
    return {"least_known": least / (1 + least)}
