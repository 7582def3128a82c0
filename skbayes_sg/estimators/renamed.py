"""Names that became those of the field: code and files with the old ones work, and code is warned.

They are the names of scikit-learn and of recursive least squares. A parameter goes scikit-learn's
way: the old one stays in the constructor, and its default says that it is deprecated.
"""

from __future__ import annotations

from typing import Any

from skbayes_sg.estimators.fit_guard import warn

DEPRECATED = "deprecated"  # the default of a parameter that has another name now
_SINCE, _UNTIL = "0.4", "0.5"
_PARAMETERS = {"forgetting": "forgetting_factor"}
_ATTRIBUTES = {"n_rows_seen_": "n_samples_seen_"}


class PrecisionLaw(tuple):
    """Of files of version 0.3: what the uncertainty of a learned precision added to the draws."""

    def __new__(cls, *fields: Any) -> PrecisionLaw:
        return super().__new__(cls, fields)


def read_by_old_name(estimator: Any, old: str) -> Any:
    """A fitted attribute, with a warning; before `fit` there is neither."""
    value = getattr(estimator, _ATTRIBUTES[old])
    _warn_of(old, _ATTRIBUTES[old])
    return value


def name_in_use(estimator: Any, old: str) -> str:
    """The name by which the user gives a parameter: the old one, or the new one."""
    value = getattr(estimator, old, DEPRECATED)  # estimators since 0.4 never had it
    is_unset = isinstance(value, str) and value == DEPRECATED
    return _PARAMETERS[old] if is_unset else old


def require_one_name(estimator: Any, old: str, default: float) -> None:
    """Warn of a parameter that is given by its old name, and refuse one that is given by both.

    Raises
    ------
    ValueError
        If the new name does not have its default either: two values can differ.
    """
    if name_in_use(estimator, old) != old:
        return
    new = _PARAMETERS[old]
    if getattr(estimator, new) != default:
        raise ValueError(
            f"{new} and {old} are two names of one parameter, and both are given; give {new} alone"
        )
    _warn_of(old, new)


def warn_of_old_word(prior_precision: Any) -> None:
    """Warn of the former name of a learned precision of the regressions."""
    if isinstance(prior_precision, str) and prior_precision == "em":
        _warn_of('prior_precision="em"', 'prior_precision="learned"')


def with_new_names(state: dict[str, Any]) -> dict[str, Any]:
    """The state of an estimator, which a version with the old names may have written."""
    state = dict(state)
    for old, new in (_PARAMETERS | _ATTRIBUTES).items():
        if old in state and new not in state:
            state[new] = state.pop(old)
            if old in _PARAMETERS:  # the constructor still has it
                state[old] = DEPRECATED
    if "prior_mean" in state and "fit_intercept" in state:  # a regression
        word = state.get("prior_precision")
        if isinstance(word, str) and word == "em":
            state["prior_precision"] = "learned"
        state.setdefault("prior_groups", None)  # since 0.4
    return state


def _warn_of(old: str, new: str) -> None:
    said = f"{old} was renamed to {new} in version {_SINCE}, and goes in {_UNTIL}: use {new}"
    warn(said, FutureWarning)
