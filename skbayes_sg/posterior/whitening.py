"""Coordinates in which the curvature at a point is about the identity."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import helmert

from skbayes_sg.data import row_blocks
from skbayes_sg.data.minibatches import deterministic_rng
from skbayes_sg.data.threads import total_of
from skbayes_sg.linalg.coordinates import LowRank, reproducible_eigh
from skbayes_sg.linalg.scores import Scores, dense, with_ones
from skbayes_sg.linalg.sizes import elements_at_a_time, has_matrix, has_matrix_once
from skbayes_sg.posterior import Posterior

_KRYLOV = 8, 10  # vectors of a block, and blocks
_SPARSE = (
    0.05  # share of numbers that are not zero, above which a product of dense copies is faster
)


def low_rank(posterior: Posterior, theta: NDArray, outliers: bool = True) -> LowRank:
    """Coordinates around theta (1, D) without a D x D matrix.

    The columns that the rows determine better than the prior does, up to a thousand, get a matrix.
    The others get their diagonal. What stands out of the curvature then is of low rank, and block
    Lanczos iterations find it. Of a factor with so many levels that all other columns are at most a
    thousand these get the matrix that is left when the levels, whose curvature is diagonal, are
    eliminated, and nothing stands out (math/high_dimensional.md#a-diagonal-a-block-and-low-rank).
    """
    model, single, sample = posterior.predictor, posterior.single, posterior.data.sample
    columns = model.columns()
    if len(columns) == 1:  # those of one output are all, in their order
        columns = np.arange(posterior.dim)[None]

    # square roots of the Fisher of all rows, block by block, scaled to the population
    roots = [single.fisher(theta, rows) for rows in single.data.sample.blocks(model.row_size)]
    scale = math.sqrt(single.n_total / single.n_rows)
    if scale != 1:
        roots = [root.scaled(np.full(root.n_rows, scale)) for root in roots]

    # Outputs are turned to the eigenvectors of their Fisher, summed over rows. Where classes are
    # alike all directions of these are, and rounding would choose.
    V = helmert(len(columns), full=True).T
    if outliers:
        V = reproducible_eigh(np.sum([root.unit_moment() for root in roots], axis=0))[1]
    along = V if len(V) > 1 else None
    information = np.sum([root.squares(along) for root in roots], axis=0)[columns]
    prior = posterior.prior.curvature(theta).diagonal()
    precision = (V**2).T @ prior[columns]

    # Of dense rows that are so few that a matrix of them is smaller than one of columns, all
    # eigenvectors with information are found, and the prior alone is scaled.
    one = model.shapes["coef"][0] == 1 and "log_noise" not in model.shapes
    few = outliers and one and sample.is_dense
    few = few and posterior.n_rows <= posterior.dim and has_matrix_once(posterior.n_rows)
    if few:
        information = np.zeros_like(information)

    level = _levels(posterior)
    if level is not None:
        return _without_levels(theta, roots, level, information, precision)

    # columns that the data determine, by information over precision of the prior
    most = 1000
    if outliers and sample.is_dense:
        most = int(8000 / math.sqrt(len(columns)))  # the matrices of all outputs together
    ratio = (information / precision).max(axis=0)
    ratio = ratio[: posterior.data.n_features + ("intercept" in model.shapes)]
    leading = np.argsort(-ratio, kind="stable")[:most]
    leading = np.sort(leading[ratio[leading] > 1])
    grams, diagonal = _gram(roots, leading, along), range(len(leading))
    # of columns that are nearly equal, products in single precision need not be definite
    grams[:, diagonal, diagonal] += precision[:, leading] + 1e-6 * grams[:, diagonal, diagonal]
    lower = np.linalg.cholesky(grams)
    none = np.zeros((posterior.dim, 0))
    coordinates = LowRank(
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
        return coordinates
    if few:
        B = np.concatenate([root.rows() for root in roots]) * coordinates.scale
        values, U = np.linalg.eigh(B @ B.T)
        kept = values > 1e-4  # of the precision of the prior: others are not worth their cost
        Q, values = (B.T @ U[:, kept]) / np.sqrt(values[kept]), 1 + values[kept]
    else:
        Q, values = _outliers(coordinates, roots, prior)
    return replace(coordinates, Q=Q, stretch=1 / np.sqrt(values))


def _levels(posterior: Posterior) -> NDArray | None:
    """Columns of one output of which no row has two, if all others may have a matrix.

    They are the longest run of neighbours, as the levels of a factor are.
    """
    sample, model = posterior.data.sample, posterior.predictor
    others = posterior.dim - posterior.data.n_features
    if not sample.sparse_rows or others != int("intercept" in model.shapes):
        return None
    X = sample.X
    if not X.has_sorted_indices:
        X = X.sorted_indices()
    # of neighbours in a row a run has one: it begins after the last left one whose right one it has
    first = np.zeros(X.shape[1], X.indices.dtype)
    same_row = np.ones(max(X.nnz - 1, 0), bool)
    within = X.indptr[1:-1]
    same_row[within[(within > 0) & (within < X.nnz)] - 1] = False
    np.maximum.at(first, X.indices[1:][same_row], X.indices[:-1][same_row] + 1)
    first = np.maximum.accumulate(first[: posterior.data.n_features])
    last = np.arange(len(first))
    end = int(np.argmax(last - first))
    level = np.arange(first[end], end + 1)
    return level if has_matrix(posterior.dim - len(level)) else None


def _without_levels(
    theta: NDArray,
    roots: list[Scores],
    level: NDArray,
    information: NDArray,
    precision: NDArray,
) -> LowRank:
    """Coordinates from the Cholesky factor of the curvature in which the levels come first.

    Their block D is diagonal, so that of the products C of levels and others the factor has
    D^-1/2 C and that of the Schur complement (Bates et al. 2015, section 3).
    """
    dim = theta.size
    others = np.setdiff1d(np.arange(dim), level)
    diagonal = information + precision
    gram, cross = _gram(roots, others)[0], np.zeros((len(others), len(level)))
    for root in roots:
        left, X = root.factors[0]
        assert X is not None
        weight = np.square(left).reshape(-1, root.n_rows).sum(axis=0)
        row_bytes = len(others) * X.dtype.itemsize
        for rows in row_blocks(root.n_rows, row_bytes, 8 * elements_at_a_time()):
            part = dense(X[rows][:, others[others < X.shape[1]]])
            if part.shape[1] < len(others):
                part = with_ones(part)
            cross += (part * weight[rows, None]).T @ X[rows][:, level]
    follows = np.zeros((len(others), dim))
    follows[:, level] = cross / diagonal[0, level]
    schur = gram - follows[:, level] @ cross.T
    schur[np.diag_indices_from(schur)] += precision[0, others] + 1e-6 * gram.diagonal()
    lower = np.linalg.cholesky(schur)
    none = np.zeros((dim, 0))
    return LowRank(
        centre=theta,
        columns=np.arange(dim)[None],
        V=np.ones((1, 1)),
        scale=1 / np.sqrt(diagonal),
        leading=others,
        roots=np.linalg.inv(lower).T[None],
        inverses=lower.T[None].copy(),
        Q=none,
        stretch=none[0],
        follows=follows,
    )


def _gram(roots: list[Scores], leading: NDArray, along: NDArray | None = None) -> NDArray:
    """Second moment of the leading columns along directions in the outputs, (outputs, m, m).

    Products are in single precision: coordinates need no more.
    """
    m = len(leading)
    gram = np.zeros((roots[0].shapes[0][0], m, m))
    for root in roots:
        right, weight = root.rights[0], root.unit_squares(0, along)[0]
        weight = weight.astype(right.dtype, copy=False)
        X = right[:, leading[leading < right.shape[1]]]
        if sparse.issparse(X) and X.nnz <= _SPARSE * math.prod(X.shape):
            if X.shape[1] < m:  # the intercept's
                X = sparse.hstack([X, np.ones((X.shape[0], 1), X.dtype)], format="csr")
            for total, root_weight in zip(gram, np.sqrt(weight), strict=True):
                scaled = sparse.csr_array(X.multiply(root_weight[:, None]))
                total += (scaled.T @ scaled).toarray()
            continue
        # a block of sparse rows has many more than dense ones would have
        for rows in row_blocks(X.shape[0], m * X.dtype.itemsize, 8 * elements_at_a_time()):
            part = dense(X[rows])
            if part.shape[1] < m:
                part = np.concatenate([part, np.ones((len(part), 1), part.dtype)], axis=1)
            for total, root_weight in zip(gram, np.sqrt(weight[:, rows]), strict=True):
                scaled = part * root_weight[:, None]
                total += scaled.T @ scaled  # NumPy sends A.T @ A to syrk
    return gram


def _outliers(coordinates: LowRank, roots: list[Scores], prior: NDArray) -> tuple[NDArray, NDArray]:
    """The eigenvectors of the curvature in these coordinates that stand out, and their values.

    They are of a Krylov space of blocks (Golub & Underwood 1977), as a product of the rows with
    eight vectors takes little longer than with one. Those that are not precise yet stretch the
    coordinates by about what their values say, which does no harm.
    """
    dim, dtype = len(prior), roots[0].rights[0].dtype

    def curvature(u: NDArray) -> NDArray:
        v = coordinates.inverse_transform(u) - coordinates.centre
        rounded = v.astype(dtype)
        (rows,) = total_of(lambda root: (root.gram_matvec(rounded),), roots)
        return coordinates.pullback(rows + prior * v)

    width, n_blocks = _KRYLOV
    n = width * min(n_blocks, dim // width)
    basis, projected = np.empty((dim, n)), np.zeros((n, n))
    block = deterministic_rng("Lanczos").standard_normal((dim, width))
    for start in range(0, n, width):
        for _ in range(2):  # twice is enough
            before = basis[:, :start]
            block = np.linalg.qr(block - before @ (before.T @ block))[0]
        end = start + width
        basis[:, start:end] = block
        block = curvature(np.ascontiguousarray(block.T)).T
        projected[:end, start:end] = basis[:, :end].T @ block
    values, rotation = np.linalg.eigh(projected, UPLO="U")
    out = (values > 2.5) | (values < 1 / 2.5)  # they are worth their cost in every step
    return basis @ rotation[:, out], values[out]
