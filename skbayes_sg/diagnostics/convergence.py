"""R-hat, effective sample sizes and Monte Carlo errors of draws, as ArviZ computes them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri
from scipy.stats import rankdata

from skbayes_sg.diagnostics.limits import ESS_LIMIT, R_HAT_LIMIT

_MANY_ELEMENTS = 1 << 23  # of draws that are looked at at a time


def r_hat(draws: NDArray, weights: NDArray | None = None) -> NDArray:
    """Rank-normalised split R-hat, the larger of bulk and folded (tail); shape (D,).

    R-hat is 1 for chains that agree. Above 1.05 they do not (`R_HAT_LIMIT`). It is NaN
    where a parameter never moves. It compares chains, which all have the same weights: of these it
    only uses which are 0.

    Examples
    --------
    >>> import numpy as np
    >>> draws = np.random.default_rng(0).standard_normal((4, 1000, 2))
    >>> bool((r_hat(draws) < 1.01).all())
    True
    """
    return r_hat_and_ess_bulk(draws, weights)[0]


def r_hat_limit(n_chains: int, means_are_known: bool) -> float:
    """The limit of R-hat: 1.05, and higher for many chains if their means are known otherwise.

    It is then the R-hat at which the mean of all draws is as good as that of `ESS_LIMIT`
    independent ones (math/diagnostics.md#many-chains).
    """
    return max(R_HAT_LIMIT, (1 + 2 * n_chains / ESS_LIMIT) ** 0.5 if means_are_known else 1.0)


def ess_bulk(draws: NDArray, weights: NDArray | None = None) -> NDArray:
    """Effective number of independent draws for the centre of each marginal; shape (D,)."""
    return r_hat_and_ess_bulk(draws, weights)[1]


def r_hat_and_ess_bulk(draws: NDArray, weights: NDArray | None = None) -> tuple[NDArray, NDArray]:
    """`r_hat` and `ess_bulk` from one ranking of the draws, which is most of their cost."""
    draws, weights = _counting(draws, weights)
    halves = _split(draws)
    bulk, ranked = _of_ranks(halves)
    tails, _ = _of_ranks(np.abs(halves - np.median(halves, axis=(0, 1))))
    return np.maximum(bulk, tails), _ess(ranked, weights)


def least_agreed(draws: NDArray, n: int) -> NDArray:
    """Numbers of up to 2 n parameters whose half chains agree least, ascending.

    n of them by the variance of the half chains' means over the variance within, and n by that of
    the distances from the mean. To rank the draws of all parameters takes far longer.
    """
    shares: tuple[list[NDArray], ...] = ([], [])  # of values, of distances
    for columns in np.array_split(draws, 1 + draws.size // _MANY_ELEMENTS, axis=-1):
        halves = _split(columns)
        distance = np.abs(halves - halves.mean(axis=(0, 1)))
        for share, values in zip(shares, (halves, distance), strict=True):
            between, within = values.mean(axis=1).var(axis=0), values.var(axis=1).mean(axis=0)
            with np.errstate(invalid="ignore"):  # a parameter that never moves is never agreed on
                share.append(np.nan_to_num(between / within, nan=np.inf))
    worst = [np.argsort(-np.concatenate(share), kind="stable")[:n] for share in shares]
    return np.unique(np.concatenate(worst))


def ess_tail(draws: NDArray, weights: NDArray | None = None) -> NDArray:
    """The smaller of the effective sizes for the 5 % and the 95 % quantile; shape (D,)."""
    draws, weights = _counting(draws, weights)
    low = _split((draws <= quantile(draws, 0.05, weights)).astype(float))
    high = _split((draws <= quantile(draws, 0.95, weights)).astype(float))
    return np.minimum(_ess(low, weights), _ess(high, weights))


def ess_mean(draws: NDArray, weights: NDArray | None = None) -> NDArray:
    """Effective number of independent draws for the mean of each parameter; shape (D,)."""
    draws, weights = _counting(draws, weights)
    return _ess(_split(draws), weights)


def mcse_mean(draws: NDArray, weights: NDArray | None = None) -> NDArray:
    """Monte Carlo error of the mean of each parameter, in its units; shape (D,).

    The posterior standard deviation over the square root of `ess_mean`.

    Examples
    --------
    >>> import numpy as np
    >>> draws = np.random.default_rng(0).standard_normal((4, 1000, 1))
    >>> bool(abs(mcse_mean(draws)[0] * 4000**0.5 - 1) < 0.1)
    True
    """
    draws, weights = _counting(draws, weights)
    if weights is None:
        sd = draws.std(axis=(0, 1), ddof=1, dtype=np.float64)
    else:
        sd = moments(draws, weights)[1]
    return sd / np.sqrt(ess_mean(draws, weights))


def sd_error(draws: NDArray, weights: NDArray | None = None) -> NDArray:
    """Relative Monte Carlo error of the standard deviation of each parameter; shape (D,).

    Half of that of the mean square distance from the mean. Of n independent normal draws it is
    1 / sqrt(2 n). A few draws far out in a heavy tail decide a variance, and neither bulk nor
    quantiles tell how few (math/diagnostics.md#heavy-tails).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> draws = np.stack([rng.standard_normal((4, 1000)), rng.standard_t(3, (4, 1000))], axis=2)
    >>> normal, heavy = sd_error(draws)
    >>> bool(abs(normal * 8000**0.5 - 1) < 0.2), bool(heavy > 3 * normal)
    (True, True)
    """
    square = (draws - moments(draws, weights)[0]) ** 2
    mean, spread = moments(square, weights)
    return 0.5 * spread / np.sqrt(ess_mean(square, weights)) / mean


def moments(draws: NDArray, weights: NDArray | None = None) -> tuple[NDArray, NDArray]:
    """Mean and standard deviation over chains and draws, with divisor n; shapes (D,)."""
    if draws.size > _MANY_ELEMENTS and draws.shape[-1] > 1:
        parts = np.array_split(draws, 1 + draws.size // _MANY_ELEMENTS, axis=-1)
        means, sds = zip(*(moments(block, weights) for block in parts if block.size), strict=True)
        return np.concatenate(means, axis=-1), np.concatenate(sds, axis=-1)
    shares = np.full(draws.shape[1], 1.0) if weights is None else weights
    shares = shares / shares.sum()
    mean = np.tensordot(shares, draws, axes=(0, 1)).mean(axis=0)
    square = np.tensordot(shares, (draws - mean) ** 2, axes=(0, 1)).mean(axis=0)
    return mean, np.sqrt(square)


def share(events: NDArray, weights: NDArray | None = None) -> NDArray:
    """Posterior probability of events, from whether each draw has them; shape (D,).

    It is yes / (yes + no), of the summed weights of the draws that have the event and of those that
    have it not. Rounding is monotone, so that the computed yes + no is never below the computed
    yes, and no order of summation makes a probability that is above 1.

    Parameters
    ----------
    events : bool array of shape (chains, draws, D)
    weights : array of shape (draws,), optional
        Of the draws, the same in all chains; by default equal.

    Examples
    --------
    >>> import numpy as np
    >>> events = np.array([[[True, True], [True, False], [True, False]]])
    >>> share(events, np.array([0.1, 0.1, 0.8]))
    array([1. , 0.1])
    """
    counts = np.ones(events.shape[1]) if weights is None else weights
    yes, no = (counts @ cases.sum(axis=0) for cases in (events, ~events))
    return yes / (yes + no)


def quantile(draws: NDArray, q: float | NDArray, weights: NDArray | None = None) -> NDArray:
    """Quantiles over chains and draws: interpolated, or those of the weighted sample; (..., D)."""
    if weights is None or np.ptp(weights) == 0:
        return np.quantile(draws, q, axis=(0, 1))
    flat = draws.reshape(-1, draws.shape[-1])
    tiled = np.tile(weights, len(draws))
    return np.quantile(flat, q, axis=0, weights=tiled, method="inverted_cdf")


def hdi(draws: NDArray, level: float, weights: NDArray | None = None) -> NDArray:
    """Ends of the shortest interval that holds a share `level` of the draws, (2, D).

    Of weighted draws, as many as have a weight stand for all (`systematic`).

    Examples
    --------
    >>> import numpy as np
    >>> draws = np.random.default_rng(0).exponential(size=(4, 1000, 1))
    >>> bool(hdi(draws, 0.5)[1, 0] < np.quantile(draws, 0.75))
    True
    """
    if weights is not None and np.ptp(weights) > 0:
        draws = draws[:, systematic(weights, int(np.count_nonzero(weights)))]
    ordered = np.sort(draws.reshape(-1, draws.shape[-1]), axis=0)
    inside = int(level * len(ordered))
    first = (ordered[inside:] - ordered[: len(ordered) - inside]).argmin(axis=0)
    return np.take_along_axis(ordered, np.stack([first, first + inside]), axis=0)


def autocorrelation_time(draws: NDArray) -> NDArray:
    """Integrated autocorrelation time 1 + 2 sum_s rho(s), in draws; shape (D,).

    Geyer's initial monotone sequence decides where the sum ends.
    """
    return draws.shape[0] * draws.shape[1] / ess_mean(draws)


def systematic(weights: NDArray, n: int) -> NDArray:
    """Positions of `n` draws that stand for the weighted ones, in order: systematic resampling.

    A draw of weight w is there n w times, rounded up or down. Of equal weights they are evenly
    spaced.

    Examples
    --------
    >>> import numpy as np
    >>> systematic(np.array([0.1, 0.1, 0.8]), 5)
    array([0, 2, 2, 2, 2])
    """
    ends = np.cumsum(weights)
    points = (np.arange(n) + 0.5) * (ends[-1] / n)
    return np.minimum(np.searchsorted(ends, points), np.flatnonzero(weights)[-1])


def _counting(draws: NDArray, weights: NDArray | None) -> tuple[NDArray, NDArray | None]:
    """The draws whose weight is not 0, and their weights; None if these are equal."""
    if weights is None:
        return draws, None
    if not weights.all():
        draws, weights = draws[:, weights > 0], weights[weights > 0]
    return draws, None if np.ptp(weights) == 0 else weights


def _split(draws: NDArray) -> NDArray:
    """Halves of each chain as chains of their own; the middle draw of an odd number is left out."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]], axis=0)


def _of_ranks(draws: NDArray) -> tuple[NDArray, NDArray]:
    """R-hat of the normal scores of the ranks, (D,), and these; ties have their mean rank."""
    flat = np.ascontiguousarray(draws.reshape(-1, draws.shape[-1]).T)  # (D, draws)
    scores = ndtri((rankdata(flat, axis=1) - 3 / 8) / (flat.shape[1] + 1 / 4))
    ranked = np.ascontiguousarray(scores.T).reshape(draws.shape)
    n = draws.shape[1]
    between = n * ranked.mean(axis=1).var(axis=0, ddof=1)
    within = ranked.var(axis=1, ddof=1).mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt((between / within + n - 1) / n), ranked


def _ess(x: NDArray, weights: NDArray | None) -> NDArray:
    """Effective size for the (weighted) mean of split chains; shape (D,).

    The weighted mean has the error of the plain mean of n w (x - mean), its influence function, and
    the effective size is the variance of x over the square of that error. Autocorrelations are
    summed as far as Geyer's initial monotone positive sequence goes, for all parameters at once.
    """
    ratio = 1.0
    if weights is not None:
        shares = np.broadcast_to(weights[:, None], (len(x) // 2, len(weights), 1))
        shares = _split(shares) / _split(shares).sum()
        mean = (shares * x).sum(axis=(0, 1))
        variance = (shares * (x - mean) ** 2).sum(axis=(0, 1))
        influence = shares.size * shares * (x - mean)
        moving = variance > 0
        of_plain = influence.var(axis=(0, 1))
        ratio = np.divide(variance, of_plain, out=np.ones(len(mean)), where=moving)
        x = influence
    x = x.astype(np.float64, copy=False)
    chains, n, dim = x.shape
    autocovariance = np.empty((n, dim))  # mean over the chains
    length = next_fast_len(2 * n)
    step = max(1, (1 << 22) // (chains * n))  # parameters per FFT: bounded memory
    for start in range(0, dim, step):
        columns = x[..., start : start + step]
        spectrum = rfft(columns - columns.mean(axis=1, keepdims=True), n=length, axis=1)
        power = (spectrum.real**2 + spectrum.imag**2).mean(axis=0)
        autocovariance[:, start : start + step] = irfft(power, n=length, axis=0)[:n] / n
    variance_within = autocovariance[0] * n / (n - 1)
    variance = autocovariance[0].copy()
    if chains > 1:
        variance += x.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1 - (variance_within - autocovariance) / variance
    rho[0] = 1.0

    n_pairs = (n - 3) // 2  # Geyer pairs rho(2t) + rho(2t + 1)
    pairs = rho[0 : 2 * n_pairs : 2] + rho[1 : 2 * n_pairs : 2]
    positive = np.logical_and.accumulate(pairs > 0, axis=0)
    kept = positive.sum(axis=0)  # leading positive pairs
    monotone = np.minimum.accumulate(pairs, axis=0)
    total = np.where(positive, monotone, 0.0).sum(axis=0)
    # the even lag after the last positive pair still counts, once, if it is positive (Stan, ArviZ)
    extra = np.maximum(rho[2 * kept, np.arange(dim)], 0.0)
    tau = -1 + 2 * total + extra
    size = chains * n
    constant = np.ptp(x, axis=(0, 1)) < np.finfo(float).resolution
    return ratio * np.where(constant, float(size), size / np.maximum(tau, 1 / np.log10(size)))
