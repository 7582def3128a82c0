"""Parameters of a fitted estimator by name, in the order of its draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from skbayes_sg.inspection.names import feature_names, logit_names
from skbayes_sg.validation import is_integer


def names_of_inputs(model: Any, before: Pipeline | None) -> list[str]:
    """Names of the features of a model; those that the steps before it give, if it knows none."""
    if before is not None and not hasattr(model, "feature_names_in_"):
        try:
            return [str(name) for name in before.get_feature_names_out()]
        except AttributeError:  # a step that does not name its columns
            pass
    return feature_names(model)


def parameter_names(model: Any, before: Pipeline | None = None) -> list[str]:
    """Name of every parameter, in the order of the last axis of `draws_`.

    Coefficients have the name of their feature, with the class behind it if there are more than
    two; intercepts that of their class. Weights of networks are counted.
    """
    names: list[str] = []
    for block, shape in model.model_.shapes.items():
        if block == "coef":
            features, logits = names_of_inputs(model, before), logit_names(model)
            names += [f"{x}[{k}]" for k in logits for x in features] if logits else features
        elif block == "intercept" and logit_names(model):
            names += [f"intercept[{label}]" for label in logit_names(model)]
        elif shape == (1,):
            names.append(block)
        else:
            names += [f"{block}[{', '.join(map(str, at))}]" for at in np.ndindex(*shape)]
    return names


def positions(
    parameters: Iterable[str | int], names: Sequence[str], argument: str = "parameters"
) -> list[int]:
    """Positions of parameters, or of features, that are given by name or position.

    Raises
    ------
    ValueError
        If there is no such name; the message has the argument and some names.
    """
    found = []
    for parameter in [parameters] if isinstance(parameters, str) else parameters:
        if is_integer(parameter) and 0 <= int(parameter) < len(names):
            found.append(int(parameter))
        elif parameter in names:
            found.append(list(names).index(str(parameter)))
        else:
            some = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
            raise ValueError(
                f"{argument}: there is no {parameter!r}; give positions below {len(names)}, or "
                f"names such as {some}"
            )
    return found
