"""A posterior in coordinates that have the normal score of a parameter of its family."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import NDArray

from skbayes_sg.linalg.coordinates import Coordinates
from skbayes_sg.linalg.normal_score import NormalScore
from skbayes_sg.models.predictor import Family
from skbayes_sg.models.scored import Scored
from skbayes_sg.posterior.base import Expansion, Posterior
from skbayes_sg.priors import Prior
from skbayes_sg.priors.scored import ScoredPrior


class ScoredPosterior(Posterior):
    """The posterior of x, which has a normal score in the place of a parameter.

    Parameters
    ----------
    natural : Posterior
        Of theta, with a `Family`.
    score : NormalScore
    """

    def __init__(self, natural: Posterior, score: NormalScore) -> None:
        family = natural.model
        if not isinstance(family, Family):
            raise TypeError(f"{type(family).__name__} has no parameter of its own")
        super().__init__(Scored(family, score), natural.data, ScoredPrior(natural.prior, score))
        self.natural, self.score = natural, score

    def with_prior(self, prior: Prior) -> ScoredPosterior:
        """Under another prior of theta."""
        return ScoredPosterior(self.natural.with_prior(prior), self.score)

    def expansion_at(self, theta: NDArray) -> Expansion:
        """Of second order, by the observed information, at one theta (1, D) of the model."""
        return self.observed_expansion(self.score.transform(theta))


@dataclass(frozen=True, eq=False)
class ScoredCoordinates:
    """Coordinates u of x."""

    inner: Coordinates
    score: NormalScore

    def transform(self, theta: NDArray) -> NDArray:
        """u of theta, (n, D)."""
        return self.inner.transform(self.score.transform(theta))

    def inverse_transform(self, u: NDArray) -> NDArray:
        """theta of u, (..., D)."""
        return self.score.inverse_transform(self.inner.inverse_transform(u))
