"""The posterior of a fit as a value: `posterior_`, and the prior of another fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import Columns, Data, of_columns
from skbayes_sg.data.factors import Design
from skbayes_sg.estimators.new_levels import Levels, with_effects
from skbayes_sg.frames import column_names
from skbayes_sg.inference.deferred import Deferred
from skbayes_sg.inference.precision import Hyperprior
from skbayes_sg.linalg import Dense, Diag
from skbayes_sg.linalg.sizes import has_matrix
from skbayes_sg.models import Model
from skbayes_sg.priors import (
    ConditionedPrior,
    Distribution,
    GaussianPrior,
    NormalInverseGammaPrior,
    NormalPrior,
    without_rows,
)
from skbayes_sg.priors.scales import OnePrecision, Precisions, Scales
from skbayes_sg.streams.growth import Growth
from skbayes_sg.validation import warn

BY_EXPECTED = (
    "the observed information of the rows and the prior is not positive definite where the "
    "posterior is, as with few rows or between clusters of outliers: standard deviations of "
    "posterior_ are those by the expected information, and may be wrong"
)
MISFIT = (
    "prior: no normal distribution stands for the posterior of a coefficient in the first fit, as "
    "where rows of a level have one class only, and this fit takes one for it: along its line the "
    "mean is off by {:.2f} standard deviations, or these are {:.2f} times the right ones, or "
    "across such lines its log density is off by {:.2f}; fit all rows at once"
)
REST = "other"
"""The group of columns of which nothing else is said."""
_KNOWN = 0.1  # relative error of a standard deviation that may be taken as known
_FLAT = 10.0  # standard deviation of the effect of a level that nothing shrinks


@dataclass(frozen=True, eq=False, repr=False)
class FittedPosterior:
    """Posterior of coefficients and intercepts as a normal distribution.

    Where the noise variance was sampled, it is the normal-inverse-gamma distribution: the
    coefficients are normal given the noise variance, with `precision` in units of 1 / noise
    variance.

    Attributes
    ----------
    mean : array of shape (n,)
        Coefficients class by class, then intercepts, as in `draws_`.
    precision : array of shape (n, n)
    covariance : array of shape (n, n)
        Of the coefficients and intercepts, whatever the noise variance.
    noise : tuple (shape, rate) or None
        Inverse-gamma distribution of a sampled noise variance.
    family : str
        Of the response and its link, such as "Poisson": a parameter means the same in no other.
    shapes : dict of str to tuple of int
        Blocks of the parameters.
    feature_names : tuple of str or None
    classes : array or None
    ranks : array or None
        Of ordered classes, the place of each in their order.
    prior : the kind of `distribution`, ConditionedPrior or None
        The prior that is in it: what is beyond it the rows have said.
    scales : Scales or None
        Precisions of it that were sampled with the coefficients.
    columns : Columns or None
        Of all rows that are in it, where the prior is in their units.
    held : array of shape (n, 2) or None
        Of coefficients whose column has had one value in all rows: the precision that holds each at
        its prior mean, and that which it has for a unit of 1 of its column; 0 of the others.
    spread : tuple (middle, half) or None
        Of y, where it has a unit.
    design : Design or None
        Of rows with factors, whose columns of levels the coefficients belong to.
    levels : dict of str to Levels
        Factors, with the distribution of the effects of new levels.
    own_factors : tuple of str
        Names of factors that have a precision of their own from their third level on.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skbayes_sg import BayesianLogisticRegression
    >>> X, y = make_classification(400, 4, random_state=0)
    >>> january = BayesianLogisticRegression(random_state=0).fit(X[:300], y[:300])
    >>> february = BayesianLogisticRegression(prior=january.posterior_, random_state=0)
    >>> february.fit(X[300:], y[300:]).posterior_
    FittedPosterior(coef: 1 x 4, intercept: 1)
    """

    found: Any
    family: str
    shapes: dict[str, tuple[int, ...]]
    feature_names: tuple[str, ...] | None
    classes: NDArray | None
    ranks: NDArray | None = None
    prior: NormalPrior | None = None
    scales: Scales | None = None
    columns: Columns | None = None
    held: NDArray | None = None
    spread: tuple[float, float] | None = None
    design: Design | None = None
    levels: Mapping[str, Levels] = field(default_factory=dict)
    own_factors: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        estimator: Any,
        fit: Any,
        distribution: Distribution | Deferred[Distribution],
        spread: tuple[float, float] | None,
    ) -> FittedPosterior:
        """What an estimator shows of its fit, or stream, and a distribution of its parameters."""
        model, names = estimator.model_, getattr(estimator, "feature_names_in_", None)
        prior, scales, columns = fit.prior, fit.scales, estimator._columns
        held = None
        if isinstance(estimator.prior, FittedPosterior):
            before = estimator.prior.with_columns_of(model, estimator._design)
            held = None if columns is None else before.still_held(columns)
            if held is not None and scales is not None:  # under precisions that are others now
                ratio = prior.precision[: len(held)] / np.where(held[:, 0] > 0, held[:, 0], 1.0)
                held = held * ratio[:, None]
        elif columns is not None and estimator._em() is not None:  # a given precision holds none
            held = _held_by(prior, model, columns)
        return cls(
            distribution,
            type(model).__name__,
            model.shapes,
            None if names is None else tuple(names),
            getattr(estimator, "classes_", None),
            getattr(model, "ranks", None),
            prior,
            scales,
            columns,
            held,
            spread,
            estimator._design,
            with_effects(estimator),
            estimator._own_factors,
        )

    def __repr__(self) -> str:
        sizes = (f"{name}: {' x '.join(map(str, shape))}" for name, shape in self.shapes.items())
        return f"FittedPosterior({', '.join(sizes)})"

    @property
    def distribution(self) -> Any:
        """Distribution of the model's parameters, normal or normal-inverse-gamma; read for the
        first time it may be computed from the rows."""
        return self.found.value if isinstance(self.found, Deferred) else self.found

    @property
    def mean(self) -> NDArray:
        return np.array(self.distribution.mean[: self.distribution.operator.dim])

    @property
    def precision(self) -> NDArray:
        self._warn()
        return self.distribution.operator.dense()

    @property
    def covariance(self) -> NDArray:
        self._warn()
        noise = 1.0 if self.noise is None else self.distribution.noise_variance
        return noise * self.distribution.operator.inverse().dense()

    @property
    def noise(self) -> tuple[float, float] | None:
        if isinstance(self.distribution, GaussianPrior):
            return None
        return self.distribution.shape, self.distribution.rate

    def _warn(self) -> None:
        """Warn where a width is used that the draws of a fit do not have."""
        if self.distribution.by_expected:
            warn(f"{BY_EXPECTED}; the draws of a fit are not affected")

    def prior_of(
        self,
        model: Model,
        estimator: Any,
        classes: NDArray | None,
        data: Data,
        streaming: bool,
    ) -> NormalPrior:
        """The prior of a model, if its parameters are the same.

        It is the distribution itself, or, where precisions are sampled again, what the rows have
        said beside the weak prior that they are sampled from. A coefficient that was held, because
        its column had one value, has the prior of the others if the column has another value in the
        rows of `data`. In a stream none is held (`opened`).

        Raises
        ------
        ValueError
            If family, features, classes, intercept or noise differ.
        """
        self._warn()
        names = getattr(estimator, "feature_names_in_", None)
        if names is not None and self.feature_names is not None:
            _require_same_names(self.feature_names, tuple(names))
        if self.design is not None:
            grown = self.with_columns_of(model, estimator._design)
            if grown is not self:
                if self.hyperprior(estimator._design) is None:
                    warn(self._said_of_spreads(estimator._design), UserWarning)
                return grown.prior_of(model, estimator, classes, data, streaming)
        if self.family != type(model).__name__:
            raise ValueError(
                f"prior is the posterior of the model {self.family}, and the model of this fit is "
                f"{type(model).__name__}, whose parameters mean something else; give the "
                "posterior_ of a fit of the same kind of estimator"
            )
        if self.shapes != model.shapes:
            raise ValueError(
                f"prior is {self!r}, and the parameters of this fit are {model.shapes}: features, "
                "number of classes, whether there is an intercept, and whether the noise variance "
                "is given must be the same"
            )
        if classes is not None and not np.array_equal(np.asarray(self.classes), classes):
            raise ValueError(f"prior has the classes {self.classes!r}, and y has {classes!r}")
        if not np.array_equal(self.ranks, getattr(model, "ranks", None)):  # type: ignore[arg-type]
            raise ValueError(
                "prior is of classes in another order than categories have now; give the "
                "categories of that fit"
            )
        distribution, prior, misfit = self.distribution, self.prior, self.distribution.misfit
        if (misfit.is_large or misfit.is_uneven) and not distribution.by_expected:
            warn(MISFIT.format(*misfit))
        if self.held is not None:
            unit = self._unit_of(of_columns(data))
            unit = np.where(unit > 0, unit, self._open_unit * streaming)
            distribution, prior = self._released(unit)
        if self.hyperprior(estimator._design) is None:
            return distribution
        return self._beside_weak(distribution, prior)

    def hyperprior(self, design: Design | None) -> Hyperprior | None:
        """Of precisions that rows with these factors are to sample again.

        None where the fit sampled none, or a scale of each column; above 1,000 parameters, of which
        the distribution is no matrix; and where the information of the rows is not positive
        definite without the precisions that the fit found.
        """
        n_outputs, n_columns = self.shapes["coef"]
        n_after = n_columns if design is None else design.n_columns
        dim = sum(map(prod, self.shapes.values())) + n_outputs * (n_after - n_columns)
        if not (isinstance(self.scales, Precisions) and has_matrix(dim) and self._tells_alone):
            return None
        groups, factors = dict[str, set[int]](), [] if design is None else design.all_factors
        for g, label in enumerate(self.scales.labels):
            columns = set((self.scales.block[self.scales.group == g] % n_columns).tolist())
            for factor in factors:
                if columns & set(factor.columns):
                    columns |= set(factor.columns)
            groups[label] = columns
        own = [each for each in factors if each.name in self.own_factors and each.tells_spread]
        if isinstance(self.scales, OnePrecision):
            if not own:
                return Hyperprior()
            rest = f"{REST} columns" if REST in self.own_factors else REST
            groups = {rest: groups.popitem()[1]}
        for factor in own:  # which may have shared one so far
            for columns in groups.values():
                columns.difference_update(factor.columns)
            groups[factor.name] = set(factor.columns)
        return Hyperprior({label: tuple(sorted(each)) for label, each in groups.items() if each})

    @cached_property
    def _tells_alone(self) -> bool:
        """Whether the distribution is proper under precisions of next to nothing."""
        return self._beside_weak(self.distribution, self.prior, 1e-3).is_proper

    def _beside_weak(self, distribution: Any, prior: Any, times: float = 1.0) -> ConditionedPrior:
        """What the rows of a distribution have said, beside a prior of weak precisions."""
        rows = ConditionedPrior.of(distribution, without_rows(prior))
        return rows.beside(self._weak(rows.alone, times))

    def _weak(self, prior: Any, times: float = 1.0) -> Any:
        """A prior with the weak precisions that hyperpriors are around, so many times."""
        assert self.scales is not None
        return self.scales.given(
            prior, np.full(len(self.scales.labels), np.log(times * self.scales.unit))
        )

    def design_of(self, X: Any) -> Design | None:
        """How rows become a matrix whose first columns are those of this posterior.

        Raises
        ------
        ValueError
            If they have other features.
        """
        if self.design is None:
            return None
        names = tuple(str(name) for name in column_names(X))
        if self.feature_names is not None:
            _require_same_names(self.feature_names, names)
        return self.design.with_levels_of(X)

    def with_columns_of(self, model: Any, design: Design | None) -> FittedPosterior:
        """This posterior with coefficients for the levels of more rows, distributed as new ones."""
        n_columns = self.shapes["coef"][1]
        if self.design is None or design is None or design.n_columns == n_columns:
            return self
        before = model.on_columns(n_columns, "intercept" in self.shapes)
        growth, prior = Growth.of(before, model), self.prior
        n_outputs = self.shapes["coef"][0]
        mean, sd = np.zeros((n_outputs, growth.n_more)), np.full(growth.n_more, _FLAT)
        unit = np.ones((n_outputs, growth.n_more))
        coef = before.unpack(np.arange(before.dim))["coef"]
        for factor in design.all_factors:
            new = [column - n_columns for column in factor.columns if column >= n_columns]
            levels = self.levels[factor.name]
            if (effect := levels.given) is not None:
                mean[:, new], sd[new] = effect[0][:, None], effect[1]
            if prior is not None and levels.seen.levels:
                unit[:, new] = prior.unit[coef[:, [levels.seen.columns[-1]]]]
        noise = 1.0 if self.noise is None else self.distribution.noise_variance
        precision = np.tile(noise / sd**2, n_outputs)
        facts = precision, unit.ravel(), mean.ravel()
        held, hyperprior, scales = self.held, self.hyperprior(design), None
        if held is not None:
            held = growth.vector(held.T).T
        if hyperprior is not None:
            scales = hyperprior.scales_of(model, growth.prior(self._weak(prior), *facts))
        return replace(
            self,
            found=growth.distribution(self.distribution, *facts),
            prior=None if prior is None else growth.prior(prior, *facts),
            scales=scales,
            shapes=model.shapes,
            columns=None if self.columns is None else growth.columns(self.columns),
            held=held,
            design=design,
        )

    def _said_of_spreads(self, design: Design) -> list[str]:
        """Warnings that the spread of levels which these rows add to is not learned again."""
        n_columns, warnings = self.shapes["coef"][1], []
        for factor in design.all_factors:
            levels = self.levels[factor.name]
            if max(factor.columns) < n_columns or levels.given is None or levels.error <= _KNOWN:
                continue
            warnings.append(
                f"prior: new levels of {factor.name!r} take the standard deviation of effects "
                f"from the first fit, {levels.given[1]:.2g}, which it knew to {levels.error:.0%}, "
                "and it is not learned again: effects and intervals are wrong by about as much; "
                "fit all rows at once, or call partial_fit of the first fit, which learns it again"
            )
        return warnings

    def opened(self) -> tuple[Any, Any]:
        """Distribution and prior in which no coefficient is held, for a stream: what has been added
        to a large number cannot be told from it later."""
        return (
            (self.distribution, self.prior)
            if self.held is None
            else self._released(self._open_unit)
        )

    @property
    def _open_unit(self) -> NDArray:
        """Unit of columns of one value: the size of that."""
        assert self.columns is not None
        return self._of_each(np.maximum(1.0, np.abs(self.columns.mean)))

    def _released(self, unit: NDArray) -> tuple[Any, Any]:
        """Distribution and prior where a coefficient that was held has the prior of its unit.

        Rows say of the coefficient of a column of the value c what they say of the intercept, c
        times. So does the prior, which is at the means of the columns.
        """
        assert self.held is not None
        assert self.columns is not None
        precision = self.held[:, 1] * unit**2
        free = np.flatnonzero((self.held[:, 0] > 0) & (precision > 0))
        distribution, prior, held = self.distribution, self.prior, self.held
        if not len(free):
            return distribution, prior
        assert prior is not None
        value = self._of_each(self.columns.mean)[free]

        def of_rows(density: Distribution) -> Distribution:
            operator = density.operator.plain()
            if isinstance(operator, Diag):
                values = operator.values.copy()
                values[free] = precision[free]
                operator = Diag(values)
            else:
                matrix = operator.dense().copy()
                information = matrix[free, free] - held[free, 0]
                if "intercept" in self.shapes:
                    n_outputs, n_columns = self.shapes["coef"]
                    information = value * matrix[free, n_outputs * n_columns + free // n_columns]
                matrix[free, free] = np.where(value == 0, 0.0, information) + precision[free]
                operator = Dense(matrix)
            if isinstance(density, NormalInverseGammaPrior):
                return NormalInverseGammaPrior(operator, density.noise, density.mean[:-1])
            found = GaussianPrior(operator, density.mean)
            found.by_expected = density.by_expected
            return found

        # the prior alone, with the same precision in the other unit of a column
        alone = without_rows(prior)
        each, unit = alone.precision.copy(), alone.unit.copy()
        unit[free] *= precision[free] / held[free, 0]
        each[free] = precision[free]
        alone = alone.in_units(each, unit)
        if isinstance(prior, ConditionedPrior):
            return of_rows(distribution), ConditionedPrior.of(of_rows(prior.whole), alone)
        return of_rows(distribution), alone

    def still_held(self, columns: Columns) -> NDArray | None:
        """`held` after more rows, None if no coefficient is."""
        if self.held is None:
            return None
        held = np.where(self._unit_of(columns)[:, None] > 0, 0.0, self.held)
        return held if held.any() else None

    def _unit_of(self, columns: Columns) -> NDArray:
        """The unit of the column of each coefficient that is held, with those of more rows."""
        assert self.columns is not None
        assert self.held is not None
        apart = 0.5 * np.abs(columns.mean - self.columns.mean)  # a value before, another one now
        return self._of_each(np.where(columns.unit > 0, columns.unit, apart))

    def _of_each(self, columns: NDArray) -> NDArray:
        """A number of each column, for each parameter; 0 of those without a column."""
        assert self.held is not None
        numbers, n_outputs = np.zeros(len(self.held)), self.shapes["coef"][0]
        numbers[: n_outputs * len(columns)] = np.tile(columns, n_outputs)
        return numbers


def _held_by(prior: Any, model: Any, columns: Columns) -> NDArray | None:
    """`FittedPosterior.held` under a learned prior."""
    if columns.unit.all():
        return None
    n_outputs, n_normal = model.shapes["coef"][0], model.dim - ("log_noise" in model.shapes)
    is_held = np.zeros(n_normal, bool)
    is_held[: n_outputs * len(columns.unit)] = np.tile(columns.unit == 0, n_outputs)
    precision, unit = prior.precision[:n_normal], prior.unit[:n_normal]
    of_unit = precision / unit / model.unit**2
    return np.where(is_held[:, None], np.column_stack([precision, of_unit]), 0.0)


def _require_same_names(ours: tuple[str, ...], theirs: tuple[str, ...]) -> None:
    if ours == theirs:
        return
    missing = [name for name in ours if name not in theirs] or ["none"]
    new = [name for name in theirs if name not in ours] or ["none"]
    raise ValueError(
        "prior has other features, or in another order: missing in X are "
        f"{', '.join(missing[:5])}; new are {', '.join(new[:5])}; select the columns of X by "
        "prior.feature_names"
    )
