"""Models whose rows depend on theta through outputs that are linear in it."""

from __future__ import annotations

import copy
from abc import abstractmethod
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import get_blas_funcs
from scipy.special import roots_genlaguerre

from skbayes_sg.data.rows import Batch, Data, nonzero_columns
from skbayes_sg.linalg import Dense, Operator
from skbayes_sg.linalg.operators import FULL
from skbayes_sg.linalg.scores import (
    Factor,
    Scores,
    dense,
    gram_of_rows,
    outer_products,
    scaled_rows,
    with_ones,
)
from skbayes_sg.models.base import Model


class Predictor(Model):
    """A row's log likelihood is a function of its outputs, which are linear in theta.

    The outputs are the linear predictors eta, such as logits, and parameters that all rows share,
    such as the log noise variance. So a row's score is a residual in the outputs times the row's
    inputs. Its expansion around an anchor needs the outputs at the anchor only
    (math/control_variates.md#second-order-control-variates). Arrays of outputs are (chains,
    outputs, n). The blocks are "coef", "intercept", and the shared parameters.

    Parameters
    ----------
    n_etas, n_features : int
    fit_intercept : bool
    shared : tuple of str
        Names of the shared parameters.
    """

    fixed_inputs = True
    takes_sparse = True
    canonical = True
    """Whether `observed` needs no pass over the rows, each of which has `observed_at`."""

    fits_perfectly = False
    """Whether a scale of its own goes to zero, and the density to infinity, where all rows fit; of
    a conjugate model it is integrated out."""
    residual_scale: tuple[int, float] | None = None
    """Which of theta is the logarithm of the size of residuals, and how many times that; None
    without such a parameter."""
    own: tuple[str, ...] = ()
    """Names of the shared parameters that have normal priors of their own."""
    own_mean: tuple[float, ...] = ()
    own_sd: tuple[float, ...] = ()
    """Means and standard deviations of their normal priors."""
    has_location = False
    """Whether rows depend on y - eta alone, so that y and intercept may be far from zero."""
    unit = 1.0
    """Unit of the outputs, in which intercepts and learned precisions have their priors."""
    precision_of_rows: type | None = None
    """Dtype of the outputs from which rows are computed; by default that of X."""

    def __init__(
        self,
        n_etas: int,
        n_features: int,
        fit_intercept: bool = True,
        shared: tuple[str, ...] = (),
    ) -> None:
        row = "class" if n_etas > 1 else None
        self.shapes = {"coef": (n_etas, n_features)}
        self.axes = {"coef": (row, "feature"), "intercept": (row,)}
        if fit_intercept:
            self.shapes["intercept"] = (n_etas,)
        self.shapes |= dict.fromkeys(shared, (1,))
        self.axes |= dict.fromkeys(shared, (None,))
        self.fit_intercept, self._shared_names = fit_intercept, shared
        self._n_coef = n_etas * n_features
        self.dim = self._n_coef + n_etas * fit_intercept + len(shared)
        self.widest = n_etas + len(self.own)
        self.row_size = n_features + self.widest
        self.has_other_curvature = not self.canonical
        """Whether the observed information of a row differs from the expected one."""

    def on_columns(self, n_columns: int, fit_intercept: bool = False) -> Self:
        """The same model on other columns, one of which may be an intercept's."""
        twin = copy.copy(self)
        n_etas = self.shapes["coef"][0]
        Predictor.__init__(twin, n_etas, n_columns, fit_intercept, self._shared_names)
        twin.has_other_curvature = self.has_other_curvature
        return twin

    def on_nonzero_columns(self, theta: NDArray, X: Any) -> tuple[Self, NDArray, Any]:
        """The same without the columns that are zero in all of these rows.

        Where a factor has one level in all rows, these are the columns of its other levels.
        """
        n_features = self.shapes["coef"][1]
        columns = nonzero_columns(self.features(X))
        if len(columns) in (0, n_features):  # a product of no columns has no shape
            return self, theta, X
        known = np.arange(n_features, X.shape[1])
        coef = theta[:, : self._n_coef].reshape(len(theta), -1, n_features)[:, :, columns]
        parts = [coef.reshape(len(theta), -1), theta[:, self._n_coef :]]
        model = self.on_columns(len(columns), self.fit_intercept)
        return model, np.concatenate(parts, axis=1), X[:, np.append(columns, known)]

    def spread_of_y(self, data: Data) -> tuple[float, float] | None:
        """Middle m and half width h of y: two rows of m - h and m + h have its location and unit.

        None where y has none.
        """
        return None

    def perfect_outputs(self, y: NDArray) -> NDArray:
        """Outputs of rows that fit perfectly, from which residuals are counted."""
        return y

    def init(self, rng: np.random.Generator) -> NDArray:
        """Zero: the mode is found in a few scoring steps."""
        return np.zeros((1, self.dim))

    def columns(self) -> NDArray:
        """Coordinates of each eta's coefficients, its intercept last, (etas, columns)."""
        k = self.shapes["coef"][0]
        coef = np.arange(self._n_coef).reshape(k, -1)
        if not self.fit_intercept:
            return coef
        return np.column_stack([coef, np.arange(self._n_coef, self._n_coef + k)])

    def etas(self, theta: NDArray, X: NDArray) -> NDArray:
        """Coefficients times x plus intercepts, (chains, etas, n).

        The intercept of a model that has a location is added in double precision: in single
        precision y = 1e8 + noise and its mean would be equal for most rows.
        """
        k, n_features = self.shapes["coef"]
        coef = theta[:, : self._n_coef].astype(X.dtype, copy=False)
        many = len(theta) * k > n_features and not self.has_location
        if X.ndim == 3:
            z = coef.reshape(-1, k, n_features) @ X.swapaxes(1, 2)
        elif self.fit_intercept and many and not sparse.issparse(X):
            # a column more takes less than a pass over so many outputs
            intercept = theta[:, self._n_coef : self._n_coef + k, None]
            coef = np.concatenate([coef.reshape(-1, k, n_features), intercept], 2, dtype=X.dtype)
            return (coef.reshape(-1, n_features + 1) @ with_ones(X).T).reshape(len(coef), k, -1)
        else:  # one product for all chains
            z = (coef.reshape(-1, n_features) @ X.T).reshape(len(coef), k, -1)
        if self.fit_intercept:
            intercept = theta[:, self._n_coef : self._n_coef + k, None]
            if self.has_location:
                z = z + intercept
            else:
                z += intercept.astype(X.dtype, copy=False)
        return z

    def outputs(self, theta: NDArray, X: NDArray, dtype: type | None = None) -> NDArray:
        """`etas`, and shared parameters, (chains, outputs, n).

        They are in X's dtype or another. Rows of X are shared by the chains, or (chains, n,
        features). Columns of X beyond the features are known parts of the first outputs, such as
        offsets, and are added to them; of directions, they are left out (`features`).
        """
        with_known, X = X, self.features(X)
        z = self.etas(theta, X)
        if self._shared_names:
            shared = theta[:, -len(self._shared_names) :, None].astype(X.dtype, copy=False)
            shared = np.broadcast_to(shared, (*shared.shape[:2], X.shape[-2]))
            z = np.concatenate([z, shared], axis=1)
        if with_known is not X:
            z = self.plus_known(z, with_known)
        return z if dtype is None else z.astype(dtype, copy=False)

    def plus_known(self, outputs: NDArray, X: NDArray) -> NDArray:
        """Outputs with an offset, and behind them the numbers that are given of each row."""
        if not self.n_given:
            return super().plus_known(outputs, X)
        known = dense(X[..., self.shapes["coef"][1] :]).swapaxes(-1, -2)
        outputs[:, :1] += known[..., :1, :]
        given = known[..., 1:, :]
        given = np.broadcast_to(given, (len(outputs), *given.shape[-2:]))
        return np.concatenate([outputs, given], axis=1)

    def size_of_terms(self, square: NDArray, X: NDArray) -> NDArray:
        """Root of the sum of squares of the terms of the largest eta of each row, (n,).

        `square` (D,) are mean squares of the parameters.
        """
        features, columns = self.features(X), self.columns()
        largest = square[columns].max(axis=0)
        total = (features * features) @ largest[: features.shape[1]]
        if self.fit_intercept:
            total += largest[-1]
        if features is not X:  # known parts, as offsets
            total += (X[:, features.shape[1] :] ** 2).sum(axis=1)
        return np.sqrt(total)

    def output_variance(self, root: NDArray, X: NDArray) -> NDArray:
        """Variance of the one output of each row under N(., root root^T), (n,).

        `root` (D, D) is lower triangular, which halves the products.
        """
        X = self.features(X)
        n, root = X.shape[1], root.astype(X.dtype, copy=False)
        if sparse.issparse(X):
            along = (X @ root[:n, :n]).T
        else:
            (trmm,) = get_blas_funcs(("trmm",), (X,))
            along = trmm(1.0, root[:n, :n].T, X.T)
        if not self.fit_intercept:
            return np.einsum("dn,dn->n", along, along)
        along += root[n, :n, None]
        return np.einsum("dn,dn->n", along, along) + root[n, n] ** 2

    def times_inputs(self, left: NDArray, X: NDArray) -> Scores:
        """Scores of residuals in the outputs, (chains, [labels,] outputs, n), of shared rows."""
        X = self.features(X)
        k = self.shapes["coef"][0]
        coef, shared = left[..., :k, :], left[..., k:, :]
        factors = [Factor(coef, X)]
        if self.fit_intercept:
            factors.append(Factor(coef, None))
        if shared.shape[-2]:
            factors.append(Factor(shared, None))
        return Scores(*factors)

    # -- a row, from its outputs; what takes outputs may overwrite them ------------------------

    def value(self, outputs: NDArray, y: NDArray) -> NDArray:
        """Log likelihood of each row, (chains, n)."""
        raise NotImplementedError

    def residual(self, outputs: NDArray, y: NDArray) -> NDArray:
        """Gradient of `value` over the outputs, (chains, outputs, n)."""
        raise NotImplementedError

    def value_and_residual(self, outputs: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
        """Both; a model may share work between the two."""
        return self.value(outputs, y), self.residual(outputs, y)

    def residual_root(self, outputs: NDArray) -> NDArray:
        """A square root of the Fisher matrix of the outputs, (chains, [labels,] outputs, n)."""
        raise NotImplementedError

    def log_likelihood(self, theta: NDArray, X: NDArray, y: NDArray) -> NDArray:
        value = self.value(self.outputs(theta, X, self.precision_of_rows), y)
        return value.astype(X.dtype, copy=False)

    def scores(self, theta: NDArray, X: NDArray, y: NDArray) -> Scores:
        residual = self.residual(self.outputs(theta, X, self.precision_of_rows), y)
        return self.times_inputs(residual.astype(X.dtype, copy=False), X)

    def value_and_scores(self, theta: NDArray, X: NDArray, y: NDArray) -> tuple[NDArray, Scores]:
        outputs = self.outputs(theta, X, self.precision_of_rows)
        value, residual = self.value_and_residual(outputs, y)
        return value, self.times_inputs(residual.astype(X.dtype, copy=False), X)

    def fisher(self, theta: NDArray, X: NDArray) -> Scores:
        root = self.residual_root(self.outputs(theta, X, self.precision_of_rows))
        return self.times_inputs(root.astype(X.dtype, copy=False), X)

    # -- second derivatives --------------------------------------------------------------------

    def observed(self, information: NDArray, gradient: NDArray) -> NDArray:
        """Minus the Hessian of the log likelihood of some rows at one theta, (D, D).

        From the rows' model Fisher (D, D) and gradient (1, D) there. By default the two agree.
        """
        return information

    def observed_at(self, outputs: NDArray, y: NDArray) -> NDArray:
        """Minus the second derivatives of rows in their outputs, (chains, outputs, outputs, n)."""
        raise NotImplementedError

    def row_terms(
        self,
        theta: NDArray,
        root: NDArray | None,
        X: NDArray,
        y: NDArray,
        observed: bool = False,
    ) -> tuple[NDArray, NDArray]:
        """Residuals of rows (K, n), and the Fisher of their outputs (K, K, n).

        They are means over N(theta, root root^T) with a lower triangular root (D, D), or at theta
        (1, D) without one. Where the model `has_other_curvature`, `observed` asks for minus the
        second derivatives in place of the Fisher. Models that are conjugate need no such means.
        """
        raise NotImplementedError

    def moment_of(self, between: NDArray, batch: Batch) -> Operator:
        """Weighted second moment of scores whose residuals have products `between`, (K, K, n).

        Of a row it is ``kron(between, x x^T)``. Summed in float64, as `Scores.gram`.
        """
        if len(between) == 1:
            root = self.times_inputs(np.sqrt(between), batch.X)
            return root.moment(FULL, batch.weight)
        columns = self.columns()
        X = self.features(batch.X).astype(np.float64, copy=False)
        if columns.shape[1] > X.shape[1]:
            X = with_ones(X)
        weighted = X if batch.weight is None else scaled_rows(X, batch.weight)
        moment = np.empty((self.dim, self.dim))
        for k, row in enumerate(between):  # the blocks of output k and those from k on
            own, later = columns[k][None, None, :], columns[k:, :, None]
            moment[later, own] = gram_of_rows(weighted, row[k:], X)
            moment[own.swapaxes(1, 2), later.swapaxes(1, 2)] = moment[later, own]
        return Dense(0.5 * (moment + moment.T))

    # -- expansion around an anchor ------------------------------------------------------------

    @abstractmethod
    def expand_rows(self, outputs: NDArray, y: NDArray) -> tuple[NDArray, ...]:
        """What `remainder` needs of each row at an anchor with these outputs (1, outputs, n).

        Each array is (..., n).
        """

    @abstractmethod
    def difference(self, change: NDArray, at_anchor: tuple[NDArray, ...]) -> NDArray:
        """Change of the rows' residuals, ``residual(eta + change) - residual(eta)``.

        (chains, outputs, n). It overwrites `change`, (chains, outputs, n).
        """

    @abstractmethod
    def remainder(self, change: NDArray, at_anchor: tuple[NDArray, ...]) -> NDArray:
        """What is not linear in the rows' residuals, (chains, outputs, n).

        ``residual(eta + change) - residual(eta) - (its Jacobian at eta) change``. It overwrites
        `change`, (chains, outputs, n).
        """

    @abstractmethod
    def bregman_remainder(
        self, change: NDArray, at_anchor: tuple[NDArray, ...]
    ) -> tuple[NDArray, NDArray]:
        """What is not linear in the rows' log likelihoods, (chains, n), and `difference`.

        ``l(eta + change) - l(eta) - residual(eta) . change``. It overwrites `change`, (chains,
        outputs, n).
        """

    def forces_along(
        self,
        directions: NDArray,
        distances: NDArray,
        X: NDArray,
        at_anchor: tuple[NDArray, ...],
        weight: NDArray | None,
    ) -> NDArray:
        """Changes of the log likelihood's slope along lines from an anchor, (distances, lines).

        Directions are (lines, D), and `at_anchor` is of `expand_rows`. The outputs of a row change
        in proportion to the distance, so they are multiplied once for each line.
        """
        along = self.outputs(directions, self.features(X))
        weighted = along if weight is None else along * weight
        forces = np.empty((len(distances), len(directions)))
        for force, distance in zip(forces, distances, strict=True):
            difference = self.difference(along * along.dtype.type(distance), at_anchor)
            force[:] = np.einsum("lkn,lkn->l", difference, weighted)
        return forces


class Family(Predictor):
    """p(y | x) = f(y; eta, own) with ``eta = coef . x + intercept``.

    A family is its f: log density (`value`), gradient (`residual`) and curvature (`expected` and
    `observed_at`) in the outputs of a row. These are eta, and the parameters that all rows share,
    `own`, such as the logarithm of a dispersion. Outputs are in double precision: differences of
    special functions lose half of their digits. Numbers that are given of each row, `n_given`,
    follow them: `residual`, `expected` and `observed_at` have no entries for these.

    Parameters
    ----------
    n_features : int
    fit_intercept : bool, default=True
    """

    precision_of_rows = np.float64

    def __init__(self, n_features: int, fit_intercept: bool = True) -> None:
        super().__init__(1, n_features, fit_intercept, self.own)

    @classmethod
    def of_data(cls, data: Data, fit_intercept: bool) -> Self:
        """The model of such rows; a family may take the unit of y from them."""
        return cls(data.n_features, fit_intercept)

    @abstractmethod
    def value(self, outputs: NDArray, y: NDArray) -> NDArray:
        """log f, (chains, n)."""

    @abstractmethod
    def residual(self, outputs: NDArray, y: NDArray) -> NDArray:
        """Gradient of log f over the outputs, (chains, outputs, n)."""

    @abstractmethod
    def expected(self, outputs: NDArray) -> NDArray:
        """Fisher information of the outputs, (chains, outputs, outputs, n)."""

    @abstractmethod
    def observed_at(self, outputs: NDArray, y: NDArray) -> NDArray:
        """Minus the second derivatives of log f, as `expected`."""

    def eta(self, theta: NDArray, X: NDArray) -> NDArray:
        """The linear predictor with its offset, (chains, n), and nothing that rows share."""
        features = self.features(X)
        eta = self.etas(theta, features)[:, 0]
        if features is not X:
            eta += dense(X[:, features.shape[1]].reshape(1, -1))
        return eta

    def residual_root(self, outputs: NDArray) -> NDArray:
        """The columns of a root of the information of a row's outputs, as virtual labels."""
        information = self.expected(outputs)
        if self.widest == 1:
            return np.sqrt(information[:, 0])
        roots = symmetric_root(information.transpose(0, 3, 1, 2))
        return np.ascontiguousarray(roots.transpose(0, 3, 2, 1))

    def row_terms(
        self,
        theta: NDArray,
        root: NDArray | None,
        X: NDArray,
        y: NDArray,
        observed: bool = False,
    ) -> tuple[NDArray, NDArray]:
        outputs = self.outputs(theta, X, np.float64)
        if root is None:
            information = self.observed_at(outputs, y) if observed else self.expected(outputs)
            return self.residual(outputs, y)[0], information[0]
        deviation = self.outputs(root.T, self.features(X))  # along each column, (D, outputs, n)
        spread = symmetric_root(outer_products(deviation))
        nodes, weights = normal_nodes(self.widest)
        at_nodes = self.moved(outputs, (spread @ nodes.T).transpose(2, 1, 0))
        residual = self.residual(at_nodes, y)
        between = self.observed_at(at_nodes, y) if observed else self.expected(at_nodes)
        return np.tensordot(weights, residual, 1), np.tensordot(weights, between, 1)

    def moment_of(self, between: NDArray, batch: Batch) -> Operator:
        """The moment where outputs have inputs of their own: shared parameters have ones."""
        if len(between) == 1 and not between.min() < 0:
            return super().moment_of(between, batch)
        X = self.features(batch.X).astype(np.float64, copy=False)
        if self.fit_intercept:
            X = with_ones(X)
        weighted = between if batch.weight is None else between * batch.weight
        of_eta = gram_of_rows(X, weighted[0, 0], X)
        mixed = X.T @ weighted[0, 1:].T
        moment = np.block([[of_eta, mixed], [mixed.T, weighted[1:, 1:].sum(axis=2)]])
        return Dense(0.5 * (moment + moment.T))

    # -- expansion around an anchor ------------------------------------------------------------

    def moved(self, outputs: NDArray, change: NDArray) -> NDArray:
        """Outputs ([chains,] outputs [+ n_given], n) and a change of them, (chains, outputs, n)."""
        outputs = outputs.astype(np.float64, copy=False)
        learned, given = outputs[..., : self.widest, :], outputs[..., self.widest :, :]
        after = learned + change
        if not given.size:
            return after
        given = np.broadcast_to(given, (len(after), *given.shape[-2:]))
        return np.concatenate([after, given], axis=1)

    def expand_rows(self, outputs: NDArray, y: NDArray) -> tuple[NDArray, ...]:
        """Outputs, y, and value, residual and curvature of the row."""
        outputs = outputs.astype(np.float64, copy=False)
        value, residual = self.value(outputs, y)[0], self.residual(outputs, y)[0]
        return outputs[0], y, value, residual, self.observed_at(outputs, y)[0]

    def difference(self, change: NDArray, at_anchor: tuple[NDArray, ...]) -> NDArray:
        outputs, y, _, residual, _ = at_anchor
        after = self.residual(self.moved(outputs, change), y)
        return (after - residual).astype(change.dtype, copy=False)

    def remainder(self, change: NDArray, at_anchor: tuple[NDArray, ...]) -> NDArray:
        linear = np.einsum("kln,cln->ckn", at_anchor[-1], change)
        return linear + self.difference(change, at_anchor)

    def bregman_remainder(
        self, change: NDArray, at_anchor: tuple[NDArray, ...]
    ) -> tuple[NDArray, NDArray]:
        outputs, y, value_of_anchor, residual, _ = at_anchor
        after = self.moved(outputs, change)
        value = self.value(after, y) - value_of_anchor - (residual * change).sum(axis=1)
        return value, (self.residual(after, y) - residual).astype(change.dtype, copy=False)


def once(own: NDArray) -> NDArray:
    """(..., 1) where it is the same for all rows of a chain: psi takes longer than to look."""
    return own[..., :1] if (own == own[..., :1]).all() else own


# -- means over normal distributions of a row's outputs ----------------------------------------


@cache
def normal_nodes(dim: int) -> tuple[NDArray, NDArray]:
    """Nodes (nodes, dim) and weights (nodes,) of a rule for the mean over N(0, I).

    Radii are those of a Gauss-Laguerre rule, directions random orthogonal frames in pairs +-. In
    one dimension it is a Gauss-Hermite rule.
    """
    n_radii, n_frames = (5, 1) if dim == 1 else (2, 4)
    half, share = roots_genlaguerre(n_radii, dim / 2 - 1)
    frames = np.random.default_rng(0).standard_normal((n_frames, dim, dim))
    frames = np.linalg.qr(frames)[0].reshape(-1, dim)
    directions = np.concatenate([frames, -frames])
    nodes = (np.sqrt(2 * half)[:, None, None] * directions).reshape(-1, dim)
    return nodes, np.repeat(share / share.sum(), len(directions)) / len(directions)


def symmetric_root(matrices: NDArray) -> NDArray:
    """R with R R = A of each positive semi-definite matrix, (..., k, k)."""
    values, vectors = np.linalg.eigh(matrices)
    scaled = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    return scaled @ vectors.swapaxes(-1, -2)
