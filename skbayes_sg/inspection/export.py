"""Draws, log likelihoods and predictions of a fitted estimator, as ArviZ reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg import frames
from skbayes_sg.data.factors import NONE, Design, Factor, labels_of
from skbayes_sg.inspection.names import feature_names
from skbayes_sg.inspection.under_draws import (
    Given,
    kept_draws,
    log_likelihoods,
    log_priors,
    new_rows,
    prior_sd_draws,
)
from skbayes_sg.linalg.scores import dense
from skbayes_sg.version import __version__

Group = dict[str, NDArray]
_DIMENSIONS = ("chain", "draw", "feature", "group", "class", "threshold", "row")


def to_arviz(
    estimator: Any,
    X: Any,
    y: Any,
    metadata: Any,
    log_likelihood: bool,
    posterior_predictive: bool,
) -> Any:
    """What `BayesianEstimator.to_arviz` returns."""
    _require("X", X, {"y": y is not None, "posterior_predictive": posterior_predictive})
    of_rows = {
        "sample_weight": metadata.sample_weight is not None,
        "var_weights": metadata.var_weights is not None,
    }
    _require("y", y, of_rows | {"log_likelihood": log_likelihood})
    kept, draws = kept_draws(estimator)
    groups, dims, coords = _posterior(estimator, draws, kept)
    if X is not None:
        data = Given.to(estimator, X, y, metadata)
        shape, flat = draws.shape[:2], draws.reshape(-1, draws.shape[2])
        _require_memory(len(flat), data.X.shape[0], log_likelihood + posterior_predictive)
        with_new, predict = data.with_new_levels(estimator, X, flat, kept)
        if y is not None:
            groups |= _of_likelihood(estimator, predict, shape, with_new, log_likelihood)
            if estimator._stream is None:
                lp = groups["sample_stats"]["lp"]
                lp /= estimator.diagnostics_.get("temperature", 1.0)
                priors = log_priors(estimator, flat, kept)
                lp += np.sum(list(priors.values()), axis=0).reshape(shape)
                groups["log_prior"] = {
                    name: density.reshape(shape) for name, density in priors.items()
                }
            else:  # it has been through more rows than these
                del groups["sample_stats"]
            groups["observed_data"] = {"y": np.asarray(data.y)}
        if posterior_predictive:
            new = np.concatenate(list(new_rows(estimator, predict, with_new)))
            new = new.reshape(*shape, data.X.shape[0], -1)  # the last axis are responses
            groups["posterior_predictive"] = {"y": new if new.shape[3] > 1 else new[..., 0]}
        constant, dims_of_rows = _rows(estimator, X, data)
        groups["constant_data"] = constant
        dims |= dims_of_rows | {"y": ["row"]}
        coords["row"] = np.arange(data.X.shape[0])
    attributes = {
        "inference_library": "skbayes_sg",
        "inference_library_version": __version__,
        "sampler": " ".join(repr(getattr(estimator, "sampler_", None)).split()),
        "sampler_reason": getattr(estimator, "sampler_reason_", ""),  # a stream has none
        **estimator.diagnostics_,
    }
    try:
        from arviz_base import from_dict
    except ImportError as error:
        raise ImportError("to_arviz needs arviz-base: pip install arviz-base") from error
    return from_dict(groups, dims=dims, coords=coords, attrs={"/": attributes})


def _require(name: str, value: Any, needed_by: dict[str, bool]) -> None:
    """Raise ValueError if data are missing for something that was asked."""
    asking = [asked for asked, needs in needed_by.items() if needs]
    if value is None and asking:
        raise ValueError(f"to_arviz: {asking[0]} needs {name}, the data of the fit")


def _require_memory(n_draws: int, n_rows: int, n_groups: int) -> None:
    """Refuse a number for each row and draw that the memory at hand cannot hold."""
    available = _memory()
    needed = 8 * n_draws * n_rows * n_groups
    if available is None or needed <= available:
        return
    most = max(1, available // (8 * n_draws * n_groups))
    raise ValueError(
        f"to_arviz: a number for each of {n_rows} rows under each of {n_draws} draws takes "
        f"{needed / 1e9:.3g} GB, and half of the available memory is {available / 1e9:.3g} GB; "
        f"give at most {most} rows, for example a random sample of them, or fit with a smaller "
        "n_draws"
    )


def _memory() -> int | None:
    """Half of the bytes of memory that Linux calls available; None elsewhere."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        kilobytes = next(line.split()[1] for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return None
    return 1024 * int(kilobytes) // 2


# -- groups -----------------------------------------------------------------------------------


def _posterior(
    estimator: Any, draws: NDArray, kept: NDArray
) -> tuple[dict[str, Group], dict[str, list[str]], dict[str, Any]]:
    """Blocks of parameters as variables, names of their axes, and labels along these."""
    variables, dims = {}, {}
    for name, block in estimator.model_.unpack(draws).items():
        axes = estimator.model_.axes[name]
        sizes = [n for n, axis in zip(block.shape[2:], axes, strict=True) if axis is not None]
        dims_of = [axis for axis in axes if axis is not None]
        name, block = estimator.model_.natural(name, block)
        variables[name] = block.reshape(*block.shape[:2], *sizes)
        dims[name] = dims_of
    coords: dict[str, Any] = {"feature": feature_names(estimator)}
    if estimator._design is not None and "coef" in variables:
        coords = _by_factor(estimator._design, variables, dims)
    if hasattr(estimator, "prior_precision_draws_"):
        variables["prior_sd"] = prior_sd_draws(estimator)[:, kept]
        dims["prior_sd"] = ["group"]
        coords["group"] = list(estimator.prior_precision_blocks_)
    if hasattr(estimator, "threshold_samples_"):
        variables["thresholds"] = estimator.threshold_samples_[:, kept]
        dims["thresholds"] = ["threshold"]
        coords["threshold"] = estimator._names_of_thresholds()
    if any("class" in axes for axes in dims.values()):
        coords["class"] = estimator.classes_.tolist()
    return {"posterior": variables}, dims, coords


def _by_factor(design: Design, variables: Group, dims: dict[str, list[str]]) -> dict[str, Any]:
    """Give each factor a variable of its own, with its levels as a dimension; the coordinates.

    Slopes by level share the levels of the factor. A level that others are compared with has zeros.
    """
    coef, axes = variables["coef"], dims["coef"]
    numbers = list(design.numbers.values())
    names = design.column_names
    coords: dict[str, Any] = {"feature": [names[number] for number in numbers]}
    if numbers:
        variables["coef"] = coef[..., numbers]
    else:
        del variables["coef"], dims["coef"]
    of_slopes = [
        (design.factors[column].name, factor) for (_, column), factor in design.slopes.items()
    ]
    for name, factor in [(factor.name, factor) for factor in design.factors.values()] + of_slopes:
        name = f"{name}_level" if name in _DIMENSIONS else name
        columns = np.array(factor.columns)
        effects = np.where(columns == NONE, 0.0, coef[..., columns])
        variables[f"coef_{factor.name}"] = effects
        dims[f"coef_{factor.name}"] = [*axes[:-1], name]
        coords[name] = _coordinate(factor)
    return coords


def _coordinate(factor: Factor) -> list[Any]:
    """The levels of one type, as files need it."""
    labels = factor.labels
    if len({type(label) for label in labels}) == 1 and isinstance(labels[0], str | int | float):
        return labels
    texts = list(map(str, labels))
    return texts if len(set(texts)) == len(texts) else list(map(repr, labels))


def _rows(estimator: Any, X: Any, data: Given) -> tuple[Group, dict[str, list[str]]]:
    """The features of rows; of a fit with factors columns of numbers, and numbers of levels.

    Those are -1 of levels that the fit never saw.
    """
    features, design = estimator.model_.features(data.X), estimator._design
    if design is None or "coef" not in estimator.model_.shapes:
        return {"X": dense(features)}, {"X": ["row", "feature"]}
    arrays = {"X": dense(features[:, list(design.numbers.values())])}
    dims = {"X": ["row", "feature"]}
    for column, factor in design.factors.items():
        arrays[f"{factor.name}_idx"] = factor.codes(labels_of(frames.as_table(X), column))
        dims[f"{factor.name}_idx"] = ["row"]
    return arrays, dims


def _of_likelihood(
    estimator: Any, flat: NDArray, shape: tuple[int, ...], data: Given, pointwise: bool
) -> dict[str, Group]:
    """Log likelihood of all rows as ``lp``, and of each row if asked."""
    totals, parts = [], []
    for block in log_likelihoods(flat, data):
        totals.append(block.sum(axis=1))
        if pointwise:
            parts.append(block)
    groups = {"sample_stats": {"lp": np.concatenate(totals).reshape(shape)}}
    if pointwise:
        groups["log_likelihood"] = {"y": np.concatenate(parts).reshape(*shape, -1)}
    return groups
