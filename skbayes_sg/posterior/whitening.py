"""Coordinates in which the curvature at a point is about the identity."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from skbayes_sg.data.minibatches import deterministic_rng
from skbayes_sg.linalg.coordinates import LowRank, reproducible_eigh
from skbayes_sg.linalg.scores import Factor, Scores, dense
from skbayes_sg.linalg.sizes import has_matrix_once
from skbayes_sg.models.predictor import Predictor
from skbayes_sg.posterior import Posterior

_LEADING = 1000  # sparse columns at most that get a matrix
_MOST_LEADING = 8000  # dense ones, of one output; of more so that their matrices are no larger
_PAIRS, _RESTARTS = 8, 5  # of Lanczos iterations at each end of the spectrum
_SETTLED = 1e-2  # relative error of an eigenvalue
_OUTLIER = 2.5  # an eigenvalue, or its inverse, that is worth its cost in every step


def _with_ones(X: NDArray, c: int) -> NDArray:
    return X if X.shape[1] == c else np.concatenate([X, np.ones((len(X), 1), X.dtype)], axis=1)


def low_rank(posterior: Posterior, theta: NDArray, outliers: bool = True) -> LowRank:
    """Coordinates around theta (1, D) without a D x D matrix.

    The columns that the rows determine better than the prior does, up to a thousand, get a matrix.
    The others get their diagonal. What stands out of the curvature then is of low rank, and Lanczos
    iterations find it (math/high_dimensional.md#a-diagonal-a-block-and-low-rank).
    """
    columns = _columns_of(posterior)
    roots = _fisher_blocks(posterior.single, theta)
    # where classes are alike all directions of their eigenvectors are, and rounding would choose
    V = _rotation_of_outputs(roots) if outliers else helmert(len(columns), full=True).T
    rotated = [_rotated(root, V) for root in roots]
    information = np.sum([root.squares() for root in rotated], axis=0)[columns]
    prior = posterior.prior.curvature(theta).diagonal()
    precision = (V**2).T @ prior[columns]
    by_rows = outliers and _few_rows(posterior)
    if by_rows:  # their Fisher is of low rank
        information = np.zeros_like(information)
    most = _LEADING
    if outliers and posterior.data.sample.is_dense:
        most = int(_MOST_LEADING / math.sqrt(len(columns)))
    leading = _leading(posterior, (information / precision).max(axis=0), most)
    grams = _gram(rotated, leading)
    grams[:, range(len(leading)), range(len(leading))] += precision[:, leading]
    lower = np.linalg.cholesky(grams)
    none = np.zeros((posterior.dim, 0))
    found = LowRank(
        centre=theta,
        columns=columns,
        V=V,
        scale=1 / np.sqrt(information + precision),
        leading=leading,
        roots=np.linalg.inv(lower).swapaxes(1, 2),
        inverses=lower.swapaxes(1, 2).copy(),
        Q=none,
        stretch=none[0],
    )
    if not outliers:  # an optimiser finds them by itself
        return found
    find = _of_rows if by_rows else _outliers
    Q, values = find(found, roots, prior)
    return replace(found, Q=Q, stretch=1 / np.sqrt(values))


def _columns_of(posterior: Posterior) -> NDArray:
    """Coordinates of theta of each output; those of one output are all, in their order."""
    assert isinstance(posterior.model, Predictor)
    columns = posterior.model.columns()
    return columns if len(columns) > 1 else np.arange(posterior.dim)[None]


def _fisher_blocks(posterior: Posterior, theta: NDArray) -> list[Scores]:
    """Square roots of the Fisher of all rows, block by block, scaled to the population."""
    rows = posterior.data.sample.blocks(posterior.model.row_size)
    root = math.sqrt(posterior.n_total / posterior.n_rows)
    each = [posterior.fisher(theta, block) for block in rows]
    return each if root == 1 else [one.scaled(np.full(one.n_rows, root)) for one in each]


def _rotation_of_outputs(roots: list[Scores]) -> NDArray:
    """Eigenvectors of the Fisher of the outputs, summed over rows, (outputs, outputs)."""
    k = roots[0].shapes[0][0]
    lefts = [root.factors[0].left.reshape(-1, k, root.n_rows) for root in roots]
    moment = np.sum([np.tensordot(left, left, ([0, 2], [0, 2])) for left in lefts], axis=0)
    return reproducible_eigh(moment.astype(np.float64))[1]


def _rotated(root: Scores, V: NDArray) -> Scores:
    """The same scores with the outputs turned, V^T."""
    if len(V) == 1:
        return root
    rotation = V.T.astype(root.factors[0].left.dtype)
    return Scores(*(Factor(rotation @ left, right) for left, right in root.factors))


def _few_rows(posterior: Posterior) -> bool:
    """Whether rows are dense and so few that a matrix of them is smaller than one of columns."""
    rows = posterior.n_rows
    dense = posterior.data.sample.is_dense
    one = posterior.model.shapes["coef"][0] == 1 and "log_noise" not in posterior.model.shapes
    return dense and one and rows <= posterior.dim and has_matrix_once(rows)


def _leading(posterior: Posterior, ratio: NDArray, most: int) -> NDArray:
    """Columns that the data determine, by information over precision of the prior, (c,)."""
    inputs = ratio[: posterior.data.n_features + ("intercept" in posterior.model.shapes)]
    first = np.argsort(-inputs, kind="stable")[:most]
    return np.sort(first[inputs[first] > 1])


def _gram(roots: list[Scores], leading: NDArray) -> NDArray:
    """Second moment of the leading columns of each output, (outputs, m, m)."""
    m = len(leading)
    gram = np.zeros((roots[0].shapes[0][0], m, m))
    for root in roots:
        left, right = root.factors[0]
        assert right is not None
        labels = left.reshape(-1, *left.shape[-2:])
        weight = np.einsum("qkn,qkn->kn", labels, labels)
        X = dense(right[:, leading[leading < right.shape[1]]])
        X = _with_ones(X, m).astype(np.float64, copy=False)
        for total, each in zip(gram, np.sqrt(weight), strict=True):
            scaled = X * each[:, None]
            total += scaled.T @ scaled  # NumPy sends A.T @ A to syrk
    return gram


def _of_rows(coordinates: LowRank, roots: list[Scores], prior: NDArray) -> tuple[NDArray, NDArray]:
    """All eigenvectors with information, and their values, where the prior alone is scaled."""
    B = np.concatenate([root.rows() for root in roots]) * coordinates.scale
    values, U = np.linalg.eigh(B @ B.T)
    some = values > 1e-4  # of the precision of the prior: others are not worth their cost
    Q = (B.T @ U[:, some]) / np.sqrt(values[some])
    return Q, 1 + values[some]


def _outliers(coordinates: LowRank, roots: list[Scores], prior: NDArray) -> tuple[NDArray, NDArray]:
    """The eigenvectors of the curvature in these coordinates that stand out, and their values.

    They are the largest and the smallest, to a per cent. Iterations that do not settle find fewer.
    """
    dtype = roots[0].factors[0].left.dtype

    def curvature(u: NDArray) -> NDArray:
        v = coordinates.inverse_transform(u.reshape(1, -1)) - coordinates.centre
        rows = sum(root.gram_matvec(v.astype(dtype)) for root in roots)
        return coordinates.pullback(rows + prior * v)[0]

    dim = len(prior)
    operator = LinearOperator((dim, dim), matvec=curvature, dtype=np.float64)
    start = deterministic_rng("Lanczos").standard_normal(dim)
    found = [_eigenvectors(operator, which, start) for which in ("LA", "SA")]
    Q = np.linalg.qr(np.concatenate(found, axis=1))[0]
    images = np.stack([curvature(q) for q in Q.T], axis=1)
    values, rotation = np.linalg.eigh(Q.T @ images)
    out = (values > _OUTLIER) | (values < 1 / _OUTLIER)
    return Q @ rotation[:, out], values[out]


def _eigenvectors(operator: LinearOperator, which: str, start: NDArray) -> NDArray:
    """Eigenvectors of the largest or smallest eigenvalues, (D, r)."""
    try:
        return eigsh(operator, _PAIRS, which=which, v0=start, tol=_SETTLED, maxiter=_RESTARTS)[1]
    except ArpackNoConvergence as few:
        return few.eigenvectors
