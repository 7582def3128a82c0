"""Models whose rows depend on theta through outputs that are linear in it."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import Batch
from skbayes_sg.linalg import FULL, Dense, Operator
from skbayes_sg.linalg.scores import Factor, Scores, dense
from skbayes_sg.models.base import Model, times_rows


class Predictor(Model):
    """A row's log likelihood is a function of its outputs eta, which are linear in theta.

    The outputs are the logits, or the mean and the log noise variance. So a row's score is a
    residual in the outputs times the row's inputs. Its expansion around an anchor needs the outputs
    at the anchor only (math/control_variates.md#second-order-control-variates). The blocks "coef"
    and "intercept" come first.
    """

    fixed_inputs = True
    takes_sparse = True
    conjugate = False
    """Whether the posterior is of the prior's family, so that one expansion gives it exactly."""
    canonical = True
    """Whether `observed` needs no pass over the rows, each of which has `observed_at`."""

    @property
    def has_other_curvature(self) -> bool:
        """Whether the observed information of a row differs from the expected one."""
        return not self.canonical

    own: tuple[str, ...] = ()
    """Names of the parameters that all rows share beside coefficients, which come last."""
    own_mean: tuple[float, ...] = ()
    own_sd: tuple[float, ...] = ()
    """Of their normal priors."""
    has_location = False
    """Whether rows depend on y - eta alone, so that y and intercept may be far from zero."""
    unit = 1.0
    """Of the outputs, in which intercepts and learned precisions have their priors."""

    def _set_blocks(
        self, n_logits: int, n_features: int, fit_intercept: bool, own: tuple[str, ...] = ()
    ) -> None:
        """Set the parameter blocks: coefficients, intercepts, and numbers that all rows share."""
        self._n_features = n_features
        self.shapes = {"coef": (n_logits, n_features)}
        if fit_intercept:
            self.shapes["intercept"] = (n_logits,)
        self.shapes |= dict.fromkeys(own, (1,))
        row = "class" if n_logits > 1 else None
        self.axes = {"coef": (row, "feature"), "intercept": (row,)}
        self.axes |= dict.fromkeys(own, (None,))

    def _of(self, n_features: int, fit_intercept: bool) -> Predictor:
        """The same model of other columns, for the next two."""
        raise NotImplementedError

    def on_columns(self, n_columns: int) -> Predictor:
        """The same model on other columns, one of which may be an intercept's."""
        return self._of(n_columns, False)

    def with_columns(self, n_features: int) -> Predictor:
        """The same model of another number of features."""
        return self._of(n_features, "intercept" in self.shapes)

    def outputs(self, theta: NDArray, X: NDArray) -> NDArray:
        """Outputs of shared rows, (chains, outputs, n); by default the linear predictors."""
        return self.linear_predictors(theta, X)

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

    def init(self, rng: np.random.Generator) -> NDArray:
        """Zero: the mode is found in a few scoring steps."""
        return np.zeros((1, self.dim))

    def linear_predictors(self, theta: NDArray, X: NDArray) -> NDArray:
        """Each row of coefficients times x, plus its intercept, (chains, rows, n) in X's dtype.

        Rows of X are shared by the chains, or (chains, n, features). The intercept of a model that
        has a location is added in double precision: in single precision y = 1e8 + noise and its
        mean would be equal for most rows.
        """
        k, n_features = self.shapes["coef"][0], self._n_features
        coef = theta[:, : k * n_features].astype(X.dtype, copy=False)
        z = times_rows(coef.reshape(-1, k, n_features), X)
        if "intercept" not in self.shapes:
            return z
        intercept = theta[:, k * n_features : k * (n_features + 1), None]
        if self.has_location:
            return z + intercept
        z += intercept.astype(X.dtype, copy=False)
        return z

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

        They are means over N(theta, root root^T), or at theta (1, D) without a root (D, D). Where
        the model `has_other_curvature`, `observed` asks for minus the second derivatives in place
        of the Fisher. Models that are conjugate need no such means.
        """
        raise NotImplementedError

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
        along = self.outputs(directions, X)
        weighted = along if weight is None else along * weight
        found = np.empty((len(distances), len(directions)))
        for force, distance in zip(found, distances, strict=True):
            left = self.difference(along * along.dtype.type(distance), at_anchor)
            force[:] = np.einsum("lkn,lkn->l", left, weighted)
        return found

    def expected_under_gaussian(
        self, theta: NDArray, root: NDArray, batch: Batch, observed: bool = False
    ) -> tuple[Scores, Operator]:
        """Scores, and `information` of all pairs, in the mean over N(theta, root root^T).

        `observed` as in `row_terms`.
        """
        residual, between = self.row_terms(theta, root, batch.X, batch.y, observed)
        return self.times_inputs(residual[None], batch.X), self.moment_of(between, batch)

    def times_inputs(self, left: NDArray, X: NDArray) -> Scores:
        """Scores of residuals in the outputs, (chains, [labels,] outputs, n), of shared rows."""
        k = self.shapes["coef"][0]
        coef, own = left[..., :k, :], left[..., k:, :]
        factors = [Factor(coef, X)]
        if "intercept" in self.shapes:
            factors.append(Factor(coef, None))
        if own.shape[-2]:
            factors.append(Factor(own, None))
        return Scores(*factors)

    def moment_of(self, between: NDArray, batch: Batch) -> Operator:
        """Weighted second moment of scores whose residuals have products `between`, (K, K, n).

        Of a row it is ``kron(between, x x^T)``. Summed in float64, as `Scores.gram`.
        """
        if len(between) == 1:
            root = self.times_inputs(np.sqrt(between), batch.X)
            return root.scaled(batch.root_weight).moment(FULL)
        columns, n = self.columns(), len(batch.y)
        X = dense(batch.X).astype(np.float64, copy=False)
        if columns.shape[1] > X.shape[1]:
            X = np.concatenate([X, np.ones((n, 1))], axis=1)
        left = X.T if batch.weight is None else X.T * batch.weight
        moment = np.empty((self.dim, self.dim))
        for k, row in enumerate(between):  # the blocks of output k and those from k on
            own, others = columns[k][None, None, :], columns[k:, :, None]
            moment[others, own] = left @ (row[k:, :, None] * X)
            moment[own.swapaxes(1, 2), others.swapaxes(1, 2)] = moment[others, own]
        return Dense(0.5 * (moment + moment.T))

    def columns(self) -> NDArray:
        """Coordinates of each output's coefficients, its intercept last, (outputs, columns)."""
        blocks = self.unpack(np.arange(self.dim))
        coef = blocks["coef"]
        if "intercept" not in blocks:
            return coef
        return np.concatenate([coef, blocks["intercept"][:, None]], axis=1)
