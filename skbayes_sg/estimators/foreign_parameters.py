"""What a constructor does not take, and what it is called here: parameters, and their values."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from inspect import Parameter, Signature, signature
from typing import Any

from skbayes_sg.samplers import SAMPLERS

_HERE = {
    # scikit-learn
    "C": ("prior_precision", "=1 / C"),
    "alpha": ("prior_precision", ", the strength of the penalty"),
    "penalty": ("prior", ', normal by default, or "horseshoe" for few columns that matter'),
    "l1_ratio": ("prior", '="horseshoe" in place of an l1 penalty'),
    "solver": ("sampler", ""),
    "max_iter": ("n_draws", " for the length of a fit, after burn_in"),
    "tol": ("n_draws", " for the length of a fit, which goes on until its chains agree"),
    "n_components": ("n_hidden", ""),
    "early_stopping": ("n_draws", " for the length of a fit: draws do not overfit as steps do"),
    # probabilistic languages
    "chains": ("n_chains", ""),
    "draws": ("n_draws", ""),
    "n_samples": ("n_draws", ""),
    "num_samples": ("n_draws", ""),
    "tune": ("burn_in", ""),
    "warmup": ("burn_in", ""),
    "num_warmup": ("burn_in", ""),
    "cores": ("n_jobs", ""),
    "seed": ("random_state", ""),
}
"""By keyword the parameter of estimators that have it, and what more to say."""
_OF_FIT = {
    "class_weight": "give fit the weights of its rows as sample_weight",
    "exposure": "give it to fit, with the rows",
    "offset": "give it to fit, with the rows",
    "sample_weight": "give it to fit, with the rows",
    "trials": "give it to fit, with the rows",
}
"""By keyword what to do where no parameter stands for it."""
_VALUES = {
    "prior": {
        **dict.fromkeys(("normal", "gaussian", "l2", "ridge"), "None is the normal prior"),
        **dict.fromkeys(("laplace", "l1", "lasso"), '"horseshoe" is for few columns that matter'),
    },
    "sampler": {
        "nuts": '"hmc" is its nearest relation here',
        "mcmc": "None chooses one",
        "auto": "None chooses one",
    },
}
"""By parameter what a word of other packages is called here."""


class SignatureOfInit:
    """The signature of a class that has a `__new__` for any keywords: that of its `__init__`."""

    def __get__(self, instance: Any, owner: type) -> Signature:
        found = signature(owner.__init__)  # type: ignore[misc]
        return found.replace(parameters=list(found.parameters.values())[1:])


def require_known_parameters(cls: type, args: tuple, given: dict[str, Any]) -> None:
    """Raise TypeError for what the constructor of a class does not take.

    The message is under the name of the class, which is not that of the base whose `__init__` it
    has. Of a keyword it says what the parameter is called here, as far as that is known.
    """
    known = SignatureOfInit().__get__(None, cls).parameters
    kinds = {one.kind for one in known.values()}
    if kinds & {Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL}:
        return
    first = [name for name, one in known.items() if one.kind is not Parameter.KEYWORD_ONLY]
    if len(args) > len(first):
        raise TypeError(
            f"{cls.__name__} takes {', '.join(first)} by position, and got {len(args)} values; "
            "give the others by keyword"
        )
    for name in given:
        if name not in known:
            raise TypeError(f"{cls.__name__} has no parameter {name!r}; {_remedy(name, known)}")


def called_here(parameter: str, word: str) -> str:
    """What to say of a word that a parameter does not take; empty where nothing is known of it."""
    if "~" in word:
        return "; formulas are for the packages that make columns of them, as formulaic"
    remedy = _VALUES[parameter].get(word.lower())
    return f"; {remedy}" if remedy else ""


def _remedy(name: str, known: Mapping[str, Parameter]) -> str:
    parameter, more = _HERE.get(name, ("", ""))
    if parameter in known:
        return f"give {parameter}{more}"
    if name in _OF_FIT:
        return _OF_FIT[name]
    of = [each.__name__ for each in SAMPLERS.values() if name in signature(each).parameters]
    if of and "sampler" in known:
        return f"it is a parameter of {', '.join(of)} in skbayes_sg.samplers; give one as sampler"
    if alike := get_close_matches(name, known, n=1):
        return f"did you mean {alike[0]}?"
    return f"it has {', '.join(known)}"
