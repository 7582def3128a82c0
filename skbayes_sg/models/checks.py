"""Whether a family of one's own is what it says: derivatives, draws and distribution function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sg.data import evenly_spaced
from skbayes_sg.models.base import Response
from skbayes_sg.models.predictor import Family

_CHAINS, _ROWS, _DRAWS = 4, 7, 20_000
_STEP = 1e-3  # of differences of fourth order
_EXACT = 1e-5  # relative error of what has a closed form
_METRIC = 1 / 3  # relative error of expected information, which is a metric alone
_SPREAD = 0.05  # relative error of a variance, beside that of its estimate
_BY_CHANCE = 6.0  # standard errors


def check_family(family: type[Family] | Family, outputs: NDArray | None = None) -> None:
    """Compare the methods of a family with each other, by differences and by simulation.

    A fit does not find an error in a derivative or a distribution function: its chains sample the
    posterior that they describe, and predictions are those of another distribution. Call it in a
    test of the family. It takes about a second, and is the same in every call.

    Parameters
    ----------
    family : class that derives from Family and Response, such as from LogLink, or an instance
    outputs : array of shape (chains, outputs, rows), optional
        Where the family is checked: linear predictors in ``outputs[:, 0]``, then the parameters in
        `own`, then numbers that are given of each row, if there are any. By default linear
        predictors are between -1.5 and 2, own parameters within half a standard deviation of the
        mean of their priors, and numbers of trials between 1 and 40. Give outputs of the size that
        your data have, if these are of another.

    Raises
    ------
    AssertionError
        If anything is wrong. The message has a line for each finding, which names the method and
        what it disagrees with.
    TypeError
        If it is no family with predictions.

    Notes
    -----
    What is compared, for c chains, k outputs and n rows:

    - shapes, and that no method writes into its arguments;
    - `residual` with differences of `value`, and `observed_at` with differences of `residual`, to a
      relative error of 1e-5;
    - `expected`, which has to be positive semi-definite, with the mean of `observed_at` over draws,
      to a third of its size, as it is a metric and no part of the posterior; if `canonical`, it is
      `observed_at`, which then does not depend on y;
    - `draw` with `residual`, whose mean over draws is zero, with `mean`, `variance` and
      `distribution`, to six standard errors of 20,000 draws;
    - `distribution` with `value`: its jumps are the probabilities of numbers that are drawn
      repeatedly, and its slope is the density of others;
    - `difference`, `remainder`, `bregman_remainder` and `row_terms` with what they are made of;
    - `counts` and `log_link` with draws and means, and `require_targets`, which must not refuse
      what `draw` returns.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sg.models import Poisson, check_family
    >>> check_family(Poisson)
    >>> class Halved(Poisson):
    ...     def residual(self, outputs, y):
    ...         return super().residual(outputs, y) / 2
    >>> check_family(Halved)
    Traceback (most recent call last):
        ...
    AssertionError: Halved is wrong in what follows.
    - residual[:, 0] is 0.5 times the derivative of value
    - observed_at[:, 0, 0] is 2 times minus the derivative of residual[:, 0]
    """
    model = family(1) if isinstance(family, type) else family
    name = type(model).__name__
    if not (isinstance(model, Family) and isinstance(model, Response)):
        raise TypeError(
            f"{name} must derive from Family and Response, as LogLink does, to be checked"
        )
    rng = np.random.default_rng(0)
    outputs = _typical(model, rng) if outputs is None else np.asarray(outputs, np.float64)
    with np.errstate(all="ignore"):
        problems = list(_of_declaration(model)) or list(_of_shapes(model, outputs, rng))
        if not problems:
            problems += _of_derivatives(model, outputs, rng)
            problems += [] if problems else _of_expansions(model, outputs, rng)
            problems += _of_draws(model, outputs, rng)
    if problems:
        raise AssertionError("\n- ".join([f"{name} is wrong in what follows.", *problems]))


def _typical(model: Family, rng: np.random.Generator) -> NDArray:
    """Outputs of some size, (chains, outputs, rows)."""
    outputs = np.empty((_CHAINS, model.widest + model.n_given, _ROWS))
    outputs[:, 0] = np.linspace(-1.5, 2.0, _ROWS) + rng.uniform(-0.2, 0.2, (_CHAINS, 1))
    own = zip(model.own_mean, model.own_sd, strict=False)
    for k, (mean, sd) in enumerate(own, 1):
        outputs[:, k] = mean + sd * rng.uniform(-0.5, 0.5, (_CHAINS, 1))
    outputs[:, model.widest :] = np.rint(np.geomspace(1, 40, _ROWS))
    return outputs


def _of_declaration(model: Family) -> Iterator[str]:
    for name in ("own_mean", "own_sd"):
        if len(getattr(model, name)) != len(model.own):
            yield (
                f"{name} has {len(getattr(model, name))} number(s), and own has {len(model.own)} "
                "name(s) of parameters"
            )


# -- shapes -------------------------------------------------------------------------------------


def _of_shapes(model: Any, outputs: NDArray, rng: np.random.Generator) -> Iterator[str]:
    """Also of chains that have rows of their own, as minibatches of some samplers are."""
    c, k, n = len(outputs), model.widest, outputs.shape[2]
    yield from _has_shape("draw", lambda o: model.draw(o, rng), outputs, (c, n))
    if np.shape(model.draw(outputs.copy(), rng)) != (c, n):
        return
    y = np.asarray(model.draw(outputs.copy(), rng), np.float64)
    for name, shape in {
        "value": (c, n),
        "residual": (c, k, n),
        "observed_at": (c, k, k, n),
    }.items():
        for targets in (y[0], y):
            call = getattr(model, name)
            problems = list(_has_shape(name, lambda o, t=targets: call(o, t), outputs, shape))  # noqa: B023
            if problems:
                yield problems[0]
                break
    yield from _has_shape("expected", model.expected, outputs, (c, k, k, n))
    for name in ("mean", "variance", "width"):
        yield from _has_shape(name, getattr(model, name), outputs, (c, n))
    yield from _has_shape("distribution", lambda o: model.distribution(y[0], o), outputs, (c, n))


def _has_shape(name: str, call: Any, outputs: NDArray, shape: tuple[int, ...]) -> Iterator[str]:
    letters = {2: "(chains, rows)", 3: "(chains, outputs, rows)"}
    words = letters.get(len(shape), "(chains, outputs, outputs, rows)")
    argument = outputs.copy()
    try:
        result = call(argument)
    except (IndexError, ValueError, TypeError) as error:
        yield f"{name} raises {type(error).__name__}: {error}"
        return
    if np.shape(result) != shape:
        yield f"{name} has the shape {np.shape(result)}, and should have {words} = {shape}"
    elif not np.isfinite(result).all() and name not in ("variance", "width"):
        yield f"{name} has numbers that are not finite"
    if not np.array_equal(argument, outputs):
        yield f"{name} writes into its argument outputs, which others read; take a copy"


# -- derivatives --------------------------------------------------------------------------------


def _of_derivatives(model: Any, outputs: NDArray, rng: np.random.Generator) -> Iterator[str]:
    y, k = np.asarray(model.draw(outputs, rng), np.float64), model.widest
    residual, observed = model.residual(outputs, y), model.observed_at(outputs, y)
    expected = model.expected(outputs)
    for a in range(k):
        slope = _slope(lambda o: model.value(o, y), outputs, a)
        yield from _compared(f"residual[:, {a}]", residual[:, a], slope, "the derivative of value")
    for a in range(k):
        bends = -_slope(lambda o: model.residual(o, y), outputs, a)
        for b in range(a + 1):
            reference = f"minus the derivative of residual[:, {b}]"
            yield from _compared(
                f"observed_at[:, {a}, {b}]", observed[:, a, b], bends[:, b], reference
            )
    for name, matrix in {"observed_at": observed, "expected": expected}.items():
        if not np.allclose(matrix, matrix.swapaxes(1, 2), rtol=1e-9, atol=1e-12):
            yield f"{name} is not symmetric in its axes of outputs"
    values = np.linalg.eigvalsh(expected.transpose(0, 3, 1, 2))
    if (values.min(axis=-1) < -1e-9 * np.abs(values).max(axis=-1)).any():
        yield "expected is not positive semi-definite, and it has to be for all parameters"
    if model.canonical:
        reference = "observed_at, which it is where canonical = True"
        yield from _compared("expected", expected, observed, reference)
        other = model.observed_at(outputs, np.asarray(model.draw(outputs, rng), np.float64))
        if not np.allclose(other, observed, rtol=1e-9):
            yield "observed_at depends on y, so that canonical has to be False"


def _slope(function: Any, outputs: NDArray, a: int) -> NDArray:
    """Derivative of a function of outputs along one of them, by differences of fourth order."""
    step = np.zeros((1, outputs.shape[1], 1))
    step[:, a] = _STEP
    near, far = (function(outputs + d * step) - function(outputs - d * step) for d in (1, 2))
    return (8 * near - far) / (12 * _STEP)


def _compared(
    name: str, values: NDArray, wanted: NDArray, reference: str, error: NDArray | float = 0.0
) -> Iterator[str]:
    """A sentence about values that are not the wanted ones, but for an error by chance."""
    values, wanted = np.broadcast_arrays(values, wanted)
    limit = _EXACT * (1 + np.abs(wanted)) + error
    wrong = ~(np.abs(values - wanted) <= limit)
    if not wrong.any():
        return
    ratio = values[wrong] / wanted[wrong]
    exact = np.ptp(ratio) <= 1e-3 * np.abs(ratio).max() and len(ratio) > 1
    if exact and np.isfinite(ratio).all():
        yield f"{name} is {ratio.mean():.3g} times {reference}"
        return
    worst = np.nanargmax(np.where(wrong, np.abs(values - wanted) / (limit + 1e-300), -1.0))
    value, right = values.flat[worst], wanted.flat[worst]
    yield f"{name} is not {reference}: {value:.4g} in place of {right:.4g}"


# -- expansions ---------------------------------------------------------------------------------


def _of_expansions(model: Any, outputs: NDArray, rng: np.random.Generator) -> Iterator[str]:
    """What control variates and streams ask for, which few families write themselves."""
    before, k = outputs[:1], model.widest
    y = np.asarray(model.draw(before, rng), np.float64)[0]
    change = 0.3 * rng.standard_normal((_CHAINS, k, outputs.shape[2]))
    after = model.moved(before, change)
    at_anchor = model.expand_rows(before.copy(), y)
    difference = model.residual(after, y) - model.residual(before, y)
    yield from _compared(
        "difference",
        model.difference(change.copy(), at_anchor),
        difference,
        "the change of residual",
    )
    linear = np.einsum("kln,cln->ckn", model.observed_at(before, y)[0], change)
    yield from _compared(
        "remainder",
        model.remainder(change.copy(), at_anchor),
        difference + linear,
        "the change of residual and observed_at times that of outputs",
    )
    value, slope = model.bregman_remainder(change.copy(), at_anchor)
    beyond = model.value(after, y) - model.value(before, y)
    beyond = beyond - (model.residual(before, y) * change).sum(axis=1)
    reference = "the change of value beyond residual times that of outputs"
    yield from _compared("bregman_remainder[0]", value, beyond, reference)
    yield from _compared("bregman_remainder[1]", slope, difference, "the change of residual")

    single = model.on_columns(1, True)
    theta = 0.3 * rng.standard_normal((1, single.dim))
    theta[0, 2:] = outputs[0, 1:k, 0]
    X = rng.standard_normal((outputs.shape[2], 1))
    if model.n_given:
        X = np.column_stack([X, np.zeros(len(X)), outputs[0, k:].T])
    at_rows = single.outputs(theta, X, np.float64)
    y = np.asarray(model.draw(at_rows, rng), np.float64)[0]
    for observed, name in ((False, "expected"), (True, "observed_at")):
        residual, between = single.row_terms(theta, None, X, y, observed)
        information = model.observed_at(at_rows, y) if observed else model.expected(at_rows)
        yield from _compared("row_terms[0]", residual, model.residual(at_rows, y)[0], "residual")
        yield from _compared("row_terms[1]", between, information[0], name)
    root = 0.2 * np.eye(single.dim)
    over, wanted = (
        row_terms(theta, root, X, y, True)
        for row_terms in (single.row_terms, _row_terms_of(single))
    )
    for i, (term, at_nodes) in enumerate(zip(over, wanted, strict=True)):
        yield from _compared(
            f"row_terms[{i}] over a normal distribution",
            term,
            at_nodes,
            "the mean at its nodes",
            0.01 * np.abs(at_nodes),
        )


def _row_terms_of(model: Any) -> Any:
    return lambda *arguments: Family.row_terms(model, *arguments)


# -- draws --------------------------------------------------------------------------------------


def _of_draws(model: Any, outputs: NDArray, rng: np.random.Generator) -> Iterator[str]:
    rows = outputs[: min(2, len(outputs))].transpose(1, 0, 2).reshape(1, outputs.shape[1], -1)
    rows = rows[:, :, :: max(1, rows.shape[2] // 6)]  # the points of a simulation
    many = np.repeat(rows, _DRAWS, axis=0)
    y = np.asarray(model.draw(many, rng), np.float64)
    try:
        model.require_targets(y.ravel())
    except ValueError as refusal:
        yield f"require_targets refuses numbers that were drawn: {refusal}"
    whole = bool((y == np.rint(y)).all())
    if model.counts and not whole:
        yield "counts is True, and numbers are drawn that are not whole"
    if whole and not model.counts:
        yield "draws are whole numbers, so that counts has to be True"
    if model.log_link:
        twice = rows.copy()
        twice[:, 0] += np.log(2.0)
        reference = "2 mean of eta, as an exposure would have it where log_link = True"
        yield from _compared(
            "mean of eta + log 2", model.mean(twice), 2 * model.mean(rows), reference
        )

    residual, observed = model.residual(many, y), model.observed_at(many, y)
    mean, error = _mean_of(residual)
    for a in range(model.widest):
        if (np.abs(mean[a]) > error[a] + _EXACT * np.abs(residual[:, a]).mean(axis=0)).any():
            yield (
                f"the mean of residual[:, {a}] over draws is not zero, so that draw and value are "
                "of different distributions, or value lacks a term that depends on outputs"
            )
    information, error = _mean_of(observed)
    expected = model.expected(rows)[0]
    diagonal = np.einsum("kkn->kn", np.abs(information))
    scale = np.sqrt(diagonal[:, None] * diagonal[None])
    for a in range(model.widest):
        for b in range(a + 1):
            limit = _METRIC * scale[a, b] + error[a, b]
            reference = "the mean of observed_at over draws"
            name = f"expected[:, {a}, {b}]"
            yield from _compared(name, expected[a, b], information[a, b], reference, limit)

    mean, error = _mean_of(y)
    yield from _compared("mean", model.mean(rows)[0], mean, "that of draws", error)
    square, error = _mean_of((y - mean) ** 2)
    variance = model.variance(rows)[0]
    square = np.where(np.isfinite(variance), square, variance)
    limit = error + _SPREAD * square
    with np.errstate(invalid="ignore"):
        yield from _compared("variance", variance, square, "that of draws", limit)
    if model.has_cumulants:
        cumulants = model.cumulants(rows)[:, 0]
        yield from _compared("cumulants[0]", cumulants[0], model.mean(rows)[0], "mean")
        yield from _compared("cumulants[1]", cumulants[1], variance, "variance")
        third, error = _mean_of((y - mean) ** 3)
        limit = error + _SPREAD * np.abs(third)
        yield from _compared("cumulants[2]", cumulants[2], third, "that of draws", limit)
        fourth, error = _mean_of((y - mean) ** 4)
        limit = error + _SPREAD * fourth
        wanted = fourth - 3 * variance**2
        yield from _compared("cumulants[3]", cumulants[3], wanted, "that of draws", limit)
    if not (np.isfinite(width := model.width(rows)) & (width > 0)).all():
        yield "width has numbers that are not positive and finite"
    yield from _of_distribution(model, rows, y)


def _mean_of(values: NDArray) -> tuple[NDArray, NDArray]:
    """Mean over draws, and by how much it may be off by chance."""
    return values.mean(axis=0), _BY_CHANCE * values.std(axis=0) / np.sqrt(len(values))


def _of_distribution(model: Any, rows: NDArray, y: NDArray) -> Iterator[str]:
    """Whether the distribution function is that of draws (draws, n) of some rows, and of `value`.

    A number that was drawn twice has a probability, and any other has a density.
    """
    of_draws, of_value = list[str](), list[str]()
    for row in range(rows.shape[2]):
        values, numbers = np.unique(y[:, row], return_counts=True)
        places = evenly_spaced(len(values), 40)
        points, repeated = values[places], numbers[places] > 1
        outputs = np.repeat(rows[:, :, [row]], len(points), axis=2)

        def below(points: NDArray, outputs: NDArray = outputs) -> NDArray:
            return np.asarray(model.distribution(points, outputs)[0])

        F, share = below(points), np.cumsum(numbers)[places] / len(y)
        if not ((F >= 0) & (F <= 1 + 1e-12)).all() or (np.diff(F) < -1e-9).any():
            of_draws.append("distribution is not between 0 and 1, or decreases")
        chance = _BY_CHANCE * np.sqrt(F * (1 - F) / len(y)) + 10 / len(y)
        of_draws += _compared("distribution", F, share, "the share of draws below", chance)

        density = np.exp(model.value(outputs, points)[0])
        step = 1e-3 * np.minimum(y[:, row].std(), np.abs(points) + 1e-300)
        near, far = (below(points + d * step) - below(points - d * step) for d in (1, 2))
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = (8 * near - far) / (12 * step)
        before = points - 1 if model.counts else points - 1e-9 * (1 + np.abs(points))
        wanted = np.where(repeated | model.counts, F - below(before), slope)
        limit = 1e-4 * density.max() + 1e-3 * density
        reference = "the jump or slope of distribution"
        of_value += _compared("exp(value)", density, wanted, reference, limit)
    yield from of_draws[:1]
    yield from of_value[:1]
