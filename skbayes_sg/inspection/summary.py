"""Tables of posterior draws: coefficients by name, and blocks of the weights of networks."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skbayes_sg import diagnostics
from skbayes_sg.diagnostics.draws import Draws
from skbayes_sg.inspection.names import column_labels, logit_names
from skbayes_sg.inspection.table import table
from skbayes_sg.inspection.under_draws import counted_coefficients, prior_sd_draws
from skbayes_sg.validation import (
    is_word,
    require_choice,
    require_integer,
    require_level,
    require_positive,
)

FEWEST_DRAWS = 4  # of a chain, for R-hat of its halves
_MANY_LEVELS = 50
_FEW_LEVELS = 5  # of fewer the variance is hardly known (Gelman & Hill 2007, section 12.9)
"""Up to as many each have a row"""
_FAR_PROBE = 2.0**30  # so far that the origin takes no digits of the unit
_REMEDY = (
    "scaler must be fitted and shift and stretch each column, as StandardScaler does, or be a "
    "ColumnTransformer or Pipeline of such steps, encoders and imputers"
)


def coefficients_of(estimator: Any, theta: NDArray) -> NDArray:
    """Coefficients, and the intercept last if there is one, of points (chains, draws, D).

    The shape is (chains, draws, logits, features [+ 1]). Of more than two classes they are
    differences to the mean over these.
    """
    model, blocks = estimator.model_, estimator.model_.unpack(theta)
    parts = [model.natural("coef", blocks["coef"])[1]]
    if "intercept" in blocks:
        parts.append(model.natural("intercept", blocks["intercept"])[1][..., None])
    return np.concatenate(parts, axis=3)


def of_groups(estimator: Any, level: float, full: bool):
    """The table of `LinearModel.summary` with ``groups=True``."""
    require_draws(estimator)
    if not hasattr(estimator, "prior_precision_draws_"):
        raise ValueError(
            "summary: groups=True needs a prior whose precisions are sampled, as those of "
            'prior_precision="learned" are'
        )
    columns = _figures_of_groups(estimator, level, full)
    return table(estimator._fit.scales.labels, ["group"], columns)


def _figures_of_groups(
    estimator: Any, level: float, full: bool, times: float = 1.0
) -> dict[str, NDArray]:
    """Coefficients of each group, and figures of so many times their standard deviation."""
    counts = counted_coefficients(estimator).astype(int)
    draws = estimator._draws.of(times * prior_sd_draws(estimator))
    kinds = {"null": None, "full": full, "estimator": estimator}
    return {"n_coefficients": counts} | figures_of(draws, level, **kinds)


def of_coefficients(
    estimator: Any,
    level: float,
    *,
    scaler: Any,
    reference: Any,
    positive: Any,
    rope: Any,
    most: Any,
    full: bool,
):
    """The table of `LinearModel.summary`."""
    require_draws(estimator)
    by_default = is_word(most, "auto")
    if most is not None and not by_default:
        require_integer("most", most, 1, ', "auto" or None')
    if reference is None:
        reference = first_levels(estimator)
    coefficients, features, logits = as_asked(estimator, estimator.draws_, scaler, reference)
    if is_turned(estimator, positive):
        coefficients = -coefficients
    long_factors: dict[int, int] = {}
    if by_default:
        asked = reference if isinstance(reference, Mapping) else {}
        groups = _long_factors(estimator, asked)
        coefficients, features, long_factors = _in_one_row(coefficients, features, groups)
    labels, names, values = quantities(estimator, coefficients, features, logits)
    draws, ratio = estimator._draws.of(values), estimator.model_.ratio
    kinds = {"ratio": ratio, "rope": rope, "full": full}
    columns = figures_of(draws, level, estimator=estimator, **kinds)
    if ratio and not hasattr(estimator, "_terms_beside"):
        n_coefficients = coefficients[0, 0].size  # rows after them are others, as a dispersion
        for name in (name for name in columns if name.startswith(ratio)):
            columns[name][n_coefficients:] = np.nan
    # Rows of coefficients, as opposed to intercepts and parameters of the family.
    rows = np.arange(len(labels))
    per_logit = len(labels) // max(1, len(logits))
    matters = rows % per_logit < len(features) if logits else rows < len(features)
    long_factors = {
        row + k * per_logit: group
        for k in range(max(1, len(logits)))
        for row, group in long_factors.items()
    }
    matters[list(long_factors)] = False
    if long_factors:
        # coefficients of classes are independent a priori, and the rows are differences of them
        n_classes = estimator.model_.shapes["coef"][0]
        against_one = len(logits) < n_classes
        times = float(np.sqrt(2.0 if against_one else 1 - 1 / n_classes)) if logits else 1.0
        of_groups = _figures_of_groups(estimator, level, full, times)
    for row, group in long_factors.items():  # a standard deviation has no sign, and no ratio
        n_levels = of_groups["n_coefficients"][group] // n_classes
        labels[row] = (*labels[row][:-1], f"sd of {n_levels} levels")
        for name, values in columns.items():
            values[row] = of_groups[name][group] if name in of_groups else np.nan
    if logits and ratio and not full:  # odds of a class where all columns are 0
        for name in (name for name in columns if name.startswith(ratio)):
            columns[name][~matters] = np.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.nan_to_num(np.abs(columns["mean"]) / columns["sd"])
    first = np.argsort(-size, kind="stable")
    if rope is not None:
        error = _wrong_about_the_sign(draws, rope)
        columns["fdr"] = np.where(matters, _expected_share(error, among=matters), np.nan)
        first = first[np.argsort(error[first], kind="stable")]
    if most is not None and not by_default:
        rows = np.append(first[matters[first]][:most], rows[~matters])
        labels = [labels[i] for i in rows]
        columns = {name: column[rows] for name, column in columns.items()}
    compared = compared_classes(estimator, reference, positive)
    attrs = {} if compared is None else {"quantity": compared}
    attrs |= {
        f"prior precision of {block}": value
        for block, value in getattr(estimator, "prior_precision_blocks_", {}).items()
    }
    return table(labels, names, columns, attrs)


def _long_factors(estimator: Any, but: Container[str]) -> dict[str, int]:
    """Factors of many levels whose precision is sampled and theirs alone: numbers of the groups."""
    design, groups = estimator._design, dict[str, int]()
    if design is None or not hasattr(estimator, "prior_precision_draws_"):
        return {}
    scales = estimator._fit.scales
    for factor in design.all_factors:
        group = estimator._levels[factor.name].group
        if len(factor.levels) <= _MANY_LEVELS or factor.name in but or group not in scales.labels:
            continue
        number = scales.labels.index(group)
        if scales.sizes[number] == len(factor.levels) * estimator.model_.shapes["coef"][0]:
            groups[factor.name] = number
    return groups


def _in_one_row(
    coefficients: NDArray, features: list[tuple], long: dict[str, int]
) -> tuple[NDArray, list[tuple], dict[int, int]]:
    """Coefficients and labels with the first level alone of each factor of these groups.

    And, by the number of that level's row, the group.
    """
    kept, rows = list[int](), dict[int, int]()
    for k, label in enumerate(features):
        group = long.get(label[0]) if label[-1] != "" else None
        if group is None or group not in rows.values():
            if group is not None:
                rows[len(kept)] = group
            kept.append(k)
    intercept = range(len(features), coefficients.shape[3])
    return coefficients[..., [*kept, *intercept]], [features[k] for k in kept], rows


def _wrong_about_the_sign(draws: Draws, rope: Any) -> NDArray:
    """Probability that a quantity is not beyond a region on the side where it mostly is, (rows,).

    Around 0 it is the local false sign rate (Stephens 2017, eq. 8).
    """
    lower, upper = _ends_of(rope, null=0.0)
    below, above = map(draws.share, (draws.values < lower, draws.values > upper))
    return 1 - np.maximum(below, above)


def _expected_share(error: NDArray, among: NDArray) -> NDArray:
    """Mean error of all rows `among` these whose error is at most that of the row, (rows,)."""
    ranked = np.sort(error[among])
    of_lists = np.cumsum(ranked) / (1 + np.arange(len(ranked)))
    return of_lists[np.searchsorted(ranked, error, side="right") - 1]


def is_turned(estimator: Any, positive: Any) -> bool:
    """Whether the class that odds and probabilities are of is ``classes_[0]`` of two."""
    if positive is None:
        return False
    classes = list(getattr(estimator, "classes_", []))
    if len(classes) != 2 or hasattr(estimator, "_terms_beside") or logit_names(estimator):
        raise ValueError(
            "positive is a class of two; with more, and in an order, leave it out; reference is a "
            "class of more than two"
        )
    require_choice("positive", positive, classes)
    return bool(positive == classes[0])


def compared_classes(estimator: Any, reference: Any, positive: Any) -> str | None:
    """The class that log odds are of, and what they are against; None of a regression."""
    if isinstance(reference, Mapping):  # of factors
        reference = None
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        return None
    if hasattr(estimator, "_terms_beside"):
        return "higher classes against lower"
    if logit_names(estimator):
        return f"against {'the mean over classes' if reference is None else reference}"
    first, second = classes[::-1] if is_turned(estimator, positive) else classes
    return f"{second} against {first}"


def first_levels(estimator: Any) -> dict[str, Any] | None:
    """The first level of each factor of so few levels that they are compared with it.

    Neither such a factor's levels nor the intercept are known by themselves: a few levels say next
    to nothing of the mean of all that there could be, about which they are drawn. Their differences
    are known.
    """
    design = estimator._design
    if design is None or not estimator.fit_intercept:
        return None
    few = [factor for factor in design.factors.values() if 1 < len(factor.levels) < _FEW_LEVELS]
    return {factor.name: factor.levels[0] for factor in few} or None


def as_asked(
    estimator: Any, theta: NDArray, scaler: Any, reference: Any
) -> tuple[NDArray, list[tuple], list[str]]:
    """`coefficients_of` columns before a scaler, of differences of classes, and their labels."""
    coefficients = coefficients_of(estimator, theta)
    features, logits = column_labels(estimator), logit_names(estimator)
    if scaler is not None:  # of columns x in place of (x - origin) / unit
        origin, unit = _units_of_columns(estimator, scaler)
        n = len(features)
        coef, intercept = coefficients[..., :n] / unit, coefficients[..., n:]
        if origin.any():  # a shift makes an intercept
            shift = (coef @ origin)[..., None]
            intercept = intercept - shift if intercept.size else -shift
        coefficients = np.concatenate([coef, intercept], axis=3)
        if not hasattr(estimator, "feature_names_in_") and estimator._design is None:
            features = [(str(name),) for name in scaler.get_feature_names_out()]
    if isinstance(reference, Mapping):
        coefficients, features = _against_levels(estimator, coefficients, features, reference)
        reference = None
    if logits or reference is not None:
        position = _position(reference, estimator)
        if position is not None:
            against = coefficients[:, :, [position]]
            coefficients = np.delete(coefficients - against, position, axis=2)
        logits = [name for k, name in enumerate(logits) if k != position]
    return coefficients, features, logits


def _units_of_columns(estimator: Any, scaler: Any) -> tuple[NDArray, NDArray]:
    """Origin and unit before a scaler of each column that has coefficients."""
    design = estimator._design
    if design is None:
        return units_before(scaler, estimator.n_features_in_)
    if design.slopes:
        raise ValueError(
            "scaler: a shift of a column that has slopes by level moves the intercepts of the "
            "levels; leave scaler out"
        )
    origin, unit = units_before(scaler, estimator.n_features_in_)
    of_levels = [j for factor in design.all_factors for j in factor.columns if j >= 0]
    origin, unit = design.spread(origin), design.spread(unit)
    origin[of_levels], unit[of_levels] = 0.0, 1.0
    return origin, unit


def _against_levels(
    estimator: Any, coefficients: NDArray, features: list[tuple], reference: Mapping[str, Any]
) -> tuple[NDArray, list[tuple]]:
    """Coefficients of levels as differences to one of their factor, and the labels that are left.

    The intercept is then that of the level, and its coefficient is left out.
    """
    design = estimator._design
    factors = {} if design is None else {factor.name: factor for factor in design.factors.values()}
    dropped = []
    for name, level in reference.items():
        require_choice("reference: a factor", name, factors)
        factor = factors[name]
        require_choice(f"reference: a level of {name!r}", level, factor.levels)
        if coefficients.shape[3] == len(features):
            raise ValueError(
                f"reference: without an intercept there is none to take the effect of {level!r}; "
                "fit with fit_intercept=True"
            )
        baseline = factor.columns[factor.levels.index(level)]
        if baseline < 0:  # the others are compared with it already
            continue
        effect = coefficients[..., [baseline]]
        coefficients, features = coefficients.copy(), list(features)
        coefficients[..., [column for column in factor.columns if column >= 0]] -= effect
        coefficients[..., -1:] += effect
        if min(factor.columns) < 0:  # the first level takes the place of this one
            coefficients[..., [baseline]], features[baseline] = -effect, (name, factor.labels[0])
        else:
            dropped.append(baseline)
    remaining = [label for k, label in enumerate(features) if k not in dropped]
    return np.delete(coefficients, dropped, axis=3), remaining


def quantities(
    estimator: Any, coefficients: NDArray, features: list[tuple], logits: list[str]
) -> tuple[list, list[str], NDArray]:
    """The coefficients of features and logits, and all other parameters as users know them.

    These are the labels of the rows of a table, the names of the levels of the labels, and draws
    (chains, draws, rows).
    """
    blocks = estimator.model_.unpack(estimator.draws_)
    own_blocks = [block for block in blocks.items() if block[0] not in ("coef", "intercept")]
    of_family = dict(estimator.model_.natural(*block) for block in own_blocks)
    if hasattr(estimator, "_terms_beside"):
        of_family = estimator._terms_beside(coefficients[..., -1])
        coefficients = coefficients[..., :-1]
    names = ["intercept"] * (coefficients.shape[3] - len(features)) + list(of_family)
    # a name that a feature has too stands in parentheses
    taken, no_level = {name for name, *_ in features}, ("",) * (len(features[0]) - 1)
    terms = features + [(f"({name})" if name in taken else name, *no_level) for name in names]
    of_logits = coefficients.reshape(*coefficients.shape[:2], -1)
    draws = np.concatenate([of_logits, *of_family.values()], axis=2)
    levels = ["term", "level"][: len(terms[0])]
    if logits:
        return [(label, *term) for label in logits for term in terms], ["class", *levels], draws
    return [term if no_level else term[0] for term in terms], levels, draws


def of_blocks(estimator: Any, level: float, full: bool):
    """The table of `Multimodal.summary`."""
    require_draws(estimator)
    named = estimator.model_.unpack(estimator.draws_)
    blocks = {name: named[name] for group in estimator.model_.groups for name in group}
    sizes = {name: block[0, 0].size for name, block in blocks.items()}
    variances = estimator.model_.unpack(1 / estimator.prior_precision_)
    scales = [
        # chain by chain: squares of all draws in double would take twice the memory of the draws
        [np.square(chain.reshape(len(chain), -1), dtype=np.float64).mean(axis=1) for chain in block]
        for block in blocks.values()
    ]
    draws = estimator._draws.of(np.sqrt(np.moveaxis(np.array(scales), 0, 2)))
    columns = {
        "n_parameters": np.array(list(sizes.values())),
        "prior_scale": np.sqrt([variances[name].mean() for name in blocks]),
    }
    kinds = {"null": None, "full": full, "estimator": estimator}
    columns |= figures_of(draws, level, **kinds)
    return table(list(blocks), ["block"], columns)


def figures_of(
    draws: Draws,
    level: float,
    *,
    ratio: str = "",
    null: float | None = 0.0,
    rope: Any = None,
    full: bool = False,
    estimator: Any = None,
) -> dict[str, NDArray]:
    """Figures of each quantity, from draws (chains, draws, quantities): the main ones, or all.

    `ratio` is the name of its exponential, if that has one, and `null` the value of no effect, None
    of what is never negative. The main ones are at most seven. `estimator` has the draws of which
    the quantities are functions.
    """
    require_level(level)
    mean, sd = draws.moments()
    ends = f"eti{100 * level:g}_lb", f"eti{100 * level:g}_ub"
    levels = np.array([(1 - level) / 2, 0.5, (1 + level) / 2])
    low, middle, high = draws.quantile(levels)
    columns = {"mean": mean, "sd": sd, ends[0]: low, ends[1]: high}
    if full:
        shortest = diagnostics.hdi(draws.values, level, draws.weights)
        columns |= dict(zip((end.replace("eti", "hdi") for end in ends), shortest, strict=True))
    if ratio:  # exp is monotone: its quantiles are those of the coefficients
        names = ratio, *(f"{ratio}_{end}" for end in ends)
        with np.errstate(over="ignore"):
            columns |= dict(zip(names, np.exp([middle, low, high]), strict=True))
    if null is not None and (full or not ratio):
        above = draws.share(draws.values > null)
        columns["p_direction"] = np.maximum(above, 1 - above)
    if rope is not None:
        lower, upper = _ends_of(rope, null)
        columns["p_rope"] = draws.share((draws.values >= lower) & (draws.values <= upper))
    if full:
        weighted = draws.values, draws.weights
        r_hat, ess = diagnostics.r_hat_and_ess_bulk(*weighted)
        columns |= {"ess_bulk": ess, "ess_tail": diagnostics.ess_tail(*weighted)}
        errors = _monte_carlo_errors(draws, estimator)
        columns |= {"r_hat": r_hat, "mcse_mean": errors[0], "mcse_sd": errors[1]}
    return columns


def _monte_carlo_errors(draws: Draws, estimator: Any) -> tuple[NDArray, NDArray]:
    """Errors of means and standard deviations, (K,), of functions of the draws of an estimator."""
    batches = None if estimator is None else estimator._batches
    if batches is None or draws.values.shape[:2] != estimator.draws_.shape[:2]:
        weighted = draws.values, draws.weights
        of_sd = draws.moments()[1] * diagnostics.sd_error(*weighted)
        return diagnostics.mcse_mean(*weighted), of_sd
    theta = estimator.draws_
    if batches.mean.shape[1] > theta.shape[2]:  # with hyperparameters, as coordinates of the chains
        theta = np.concatenate([theta, estimator._fit.hyper_draws], axis=2)
    return batches.errors(theta, draws.values)


def _ends_of(rope: Any, null: float | None) -> tuple[float, float]:
    """Ends of a region of practical equivalence, which a number is the half width of."""
    if np.ndim(rope) == 0:
        if isinstance(rope, bool) or rope != 0:  # at 0 there is no size, only a sign
            remedy = "give the largest effect that does not matter, or two ends"
            require_positive("rope", rope, remedy)
        centre = null or 0.0
        return centre - rope, centre + rope
    ends = np.asarray(rope, dtype=np.float64)
    if ends.shape != (2,) or not ends[0] < ends[1]:
        raise ValueError(f"rope must be a number or two ends, the lower one first, got {rope!r}")
    return float(ends[0]), float(ends[1])


def require_draws(estimator: Any, asking: str = "summary") -> None:
    """Raise unless there are draws enough for what asks."""
    check_is_fitted(estimator, "draws_")
    counting = estimator._draws.n_counting
    if counting < FEWEST_DRAWS:
        raise ValueError(
            f"{asking} needs at least {FEWEST_DRAWS} draws of each chain, and there are "
            f"{counting}: the burn-in of partial_fit is not over, or n_draws is too small"
        )


def _position(reference: Any, estimator: Any) -> int | None:
    """Number of the class that is the reference."""
    if reference is None:
        return None
    if not logit_names(estimator):
        raise ValueError(
            "reference is for more than two classes without an order; with two, coefficients are "
            "those of classes_[1] against classes_[0]"
        )
    classes = estimator.classes_
    (numbers,) = np.nonzero(classes == reference)
    if len(numbers) != 1:
        raise ValueError(f"reference must be one of the classes {classes!r}, got {reference!r}")
    return int(numbers[0])


# -- units before a scaler --------------------------------------------------------------------


def units_before(step: Any, n_columns: int) -> tuple[NDArray, NDArray]:
    """Origin and unit of each column before a step: x = origin + unit * column.

    Columns that an encoder makes, and those that an imputer fills, are in units of their own.

    Raises
    ------
    ValueError
        If the step does more than shift and stretch each column, or has other columns.
    """
    if isinstance(step, Pipeline):
        origin, unit = np.zeros(n_columns), np.ones(n_columns)
        for _, stage in reversed(step.steps):
            before, stretch = units_before(stage, n_columns)
            origin, unit = before + stretch * origin, stretch * unit
            if hasattr(stage, "categories_"):  # the columns before an encoder are others
                break
        return origin, unit
    if isinstance(step, ColumnTransformer):
        return _of_parts(step, n_columns)
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return np.zeros(n_columns), np.ones(n_columns)
    if hasattr(step, "categories_") or hasattr(step, "missing_values"):  # an encoder, or an imputer
        check_is_fitted(step)
        _require_columns(len(step.get_feature_names_out()), n_columns)
        return np.zeros(n_columns), np.ones(n_columns)
    return _of_scaler(step, n_columns)


def _of_parts(step: ColumnTransformer, n_columns: int) -> tuple[NDArray, NDArray]:
    """Origin and unit of the columns that each transformer gives."""
    check_is_fitted(step)
    transformers = [
        (transformer, step.output_indices_[name]) for name, transformer, _ in step.transformers_
    ]
    _require_columns(max(columns.stop for _, columns in transformers), n_columns)
    origin, unit = np.zeros(n_columns), np.ones(n_columns)
    for transformer, columns in transformers:
        if columns.stop > columns.start:
            origin[columns], unit[columns] = units_before(transformer, columns.stop - columns.start)
    return origin, unit


def _of_scaler(scaler: Any, n_columns: int) -> tuple[NDArray, NDArray]:
    """Origin and unit by what a scaler makes of three rows when it is undone."""
    one_way = getattr(scaler, "func", None) is not None and scaler.inverse_func is None
    if one_way or not hasattr(scaler, "inverse_transform"):
        raise ValueError(f"{_REMEDY}; got {scaler!r}")
    check_is_fitted(scaler)
    _require_columns(scaler.n_features_in_, n_columns)
    ramp = np.arange(1.0, n_columns + 1) / n_columns
    probes = np.stack([np.zeros(n_columns), np.full(n_columns, _FAR_PROBE), ramp])
    try:
        with np.errstate(all="ignore"):
            origin, far, of_ramp = np.asarray(scaler.inverse_transform(probes), dtype=np.float64)
            unit = (far - origin) / _FAR_PROBE
            expected = origin + unit * ramp
    except (ValueError, TypeError) as error:
        raise ValueError(f"{_REMEDY}; {scaler!r} cannot undo any numbers") from error
    if not np.allclose(of_ramp, expected, rtol=1e-9, atol=1e-9 * np.abs(unit).min()):
        raise ValueError(f"{_REMEDY}; {scaler!r} does something else")
    return origin, unit


def _require_columns(n_given: int, n_columns: int) -> None:
    if n_given != n_columns:
        raise ValueError(
            f"scaler was fitted on {n_given} columns, the estimator on {n_columns}; give the step "
            "that comes right before the estimator"
        )
