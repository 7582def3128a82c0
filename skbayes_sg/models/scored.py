"""A family of which one own parameter is a function of its normal score."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.linalg.normal_score import NormalScore
from skbayes_sg.models.predictor import Family, once


class Scored(Family):
    """The same distribution of y in other coordinates of the parameters that all rows share.

    Where rows bound such a parameter from one side only, as a dispersion of counts that are
    Poisson, its posterior is skewed and an expansion in it describes few rows. In its normal score
    a row is a smooth function too, by the chain rule, and the posterior is near normal.

    Parameters
    ----------
    family : Family
    score : NormalScore
        Its members are the own parameters.
    """

    def __init__(self, family: Family, score: NormalScore) -> None:
        vars(self).update(vars(family))
        self.family, self.score = family, score
        self.own, self.n_given, self.has_location = family.own, family.n_given, family.has_location
        self.canonical, self.has_other_curvature = False, True
        # in the order of the outputs, of which the linear predictor is the first
        self._of_outputs = replace(score, members=1 + np.arange(len(family.own)))

    def _natural(self, outputs: NDArray) -> tuple[NDArray, NDArray]:
        """The family's outputs, and the scores (chains, 1) or (chains, n)."""
        last = 1 + len(self.own)
        own = once(outputs[:, 1:last])
        natural = self._of_outputs.inverse_transform(
            np.concatenate([np.zeros_like(own[:, :1]), own], axis=1).swapaxes(1, 2)
        )
        inner = outputs.copy()
        inner[:, 1:last] = natural.swapaxes(1, 2)[:, 1:]
        return inner, own[:, self.score.which]

    def predict(self, theta: NDArray, X: NDArray) -> NDArray:
        return self.family.predict(self.score.inverse_transform(theta), X)

    def value(self, outputs: NDArray, y: NDArray) -> NDArray:
        return self.family.value(self._natural(outputs)[0], y)

    def residual(self, outputs: NDArray, y: NDArray) -> NDArray:
        natural, z = self._natural(outputs)
        return self._pulled(self.family.residual(natural, y), z)

    def expected(self, outputs: NDArray) -> NDArray:
        natural, z = self._natural(outputs)
        return self._pulled_matrix(self.family.expected(natural), z)

    def observed_at(self, outputs: NDArray, y: NDArray) -> NDArray:
        natural, z = self._natural(outputs)
        information = self._pulled_matrix(self.family.observed_at(natural, y), z)
        own, bends = 1 + self.score.which, self._slopes(z, 2)
        bent = (self.family.residual(natural, y)[:, 1:] * bends).sum(axis=1)
        information[:, own, own] -= bent
        return information

    def _slopes(self, z: NDArray, order: int = 1) -> NDArray:
        """Derivatives of the own parameters over the score, (chains, own, n)."""
        return np.moveaxis(self.score.curves(z, order), -1, 1)

    def _pulled(self, gradient: NDArray, z: NDArray) -> NDArray:
        """Gradients over the family's outputs, (chains, outputs, n), over these."""
        own = 1 + self.score.which
        gradient[:, own] = (gradient[:, 1:] * self._slopes(z)).sum(axis=1)
        return gradient

    def _pulled_matrix(self, matrix: NDArray, z: NDArray) -> NDArray:
        """Quadratic forms (chains, outputs, outputs, n), likewise."""
        own, slopes = 1 + self.score.which, self._slopes(z)
        matrix[:, own] = (matrix[:, 1:] * slopes[:, :, None]).sum(axis=1)
        matrix[:, :, own] = (matrix[:, :, 1:] * slopes[:, None]).sum(axis=2)
        return matrix
