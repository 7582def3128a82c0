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
    "n_iter": ("n_draws", " for the length of a fit, after burn_in"),
    "epochs": ("n_draws", " for the length of a fit, after burn_in"),
    "max_iter": ("n_draws", " for the length of a fit, after burn_in"),
    "tol": ("n_draws", " for the length of a fit, which goes on until its chains agree"),
    "n_components": ("n_hidden", ""),
    "early_stopping": ("n_draws", " for the length of a fit: draws do not overfit as steps do"),
    # probabilistic languages
    "chains": ("n_chains", ""),
    "draws": ("n_draws", ""),
    "n_samples": ("n_draws", ""),
    "num_samples": ("n_draws", ""),
    "iter": ("n_draws", ""),
    "tune": ("burn_in", ""),
    "warmup": ("burn_in", ""),
    "num_warmup": ("burn_in", ""),
    "cores": ("n_jobs", ""),
    "seed": ("random_state", ""),
}
"""The parameter that a foreign keyword stands for, and what more to say."""
_OF_FIT = {
    "class_weight": "give fit the weights of its rows as sample_weight",
    "exposure": "give it to fit, with the rows",
    "offset": "give it to fit, with the rows",
    "sample_weight": "give it to fit, with the rows",
    "trials": "give it to fit, with the rows",
    "weights": "give fit the weights of its rows as sample_weight",
    "family": "each family is an estimator of its own, such as BayesianPoissonRegressor",
    "link": "each family is an estimator of its own, such as BayesianPoissonRegressor",
    "formula": "formulas are for the packages that make columns of them, as formulaic",
    "learning_rate": "give as sampler one with a step_size, such as SGLD(step_size=1e-4)",
    "learning_rate_init": "give as sampler one with a step_size, such as SGLD(step_size=1e-4)",
    "verbose": "set_callbacks(ProgressBar()) of sklearn.callback shows how far a fit is",
}
"""What to do about a keyword that no parameter stands for."""
_VALUES = {
    "prior": {
        **dict.fromkeys(("normal", "gaussian", "l2", "ridge"), "None is the normal prior"),
        **dict.fromkeys(("laplace", "l1", "lasso"), '"horseshoe" is for few columns that matter'),
        **dict.fromkeys(("cauchy", "t"), '"student_t" has heavy tails'),
        **dict.fromkeys(("flat", "uniform", "improper"), "None, with prior_precision=1e-6"),
    },
    "sampler": {
        "nuts": '"hmc" is its nearest relation here',
        "mcmc": "None chooses one",
        "auto": "None chooses one",
        **dict.fromkeys(
            ("laplace", "vi", "advi"), "None, whose posterior_ is a normal distribution"
        ),
    },
}
"""What a word of other packages for the value of a parameter is called here."""


class SignatureOfInit:
    """The signature of a class that has a `__new__` for any keywords: that of its `__init__`."""

    def __get__(self, instance: Any, owner: type) -> Signature:
        of_init = signature(owner.__init__)  # type: ignore[misc]
        return of_init.replace(parameters=list(of_init.parameters.values())[1:])


def require_known_parameters(cls: type, args: tuple, keywords: dict[str, Any]) -> None:
    """Raise TypeError for what the constructor of a class does not take.

    The message is under the name of the class, which is not that of the base whose `__init__` it
    has. Of a keyword it says what the parameter is called here, as far as that is known.
    """
    parameters = SignatureOfInit().__get__(None, cls).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    if kinds & {Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL}:
        return
    first = [
        name
        for name, parameter in parameters.items()
        if parameter.kind is not Parameter.KEYWORD_ONLY
    ]
    if len(args) > len(first):
        raise TypeError(
            f"{cls.__name__} takes {', '.join(first)} by position, and got {len(args)} values; "
            "give the others by keyword"
        )
    for name in keywords:
        if name not in parameters:
            raise TypeError(
                f"{cls.__name__} has no parameter {name!r}; {_remedy(name, parameters)}"
            )


def called_here(parameter: str, word: str) -> str:
    """What to say of a word that a parameter does not take; empty where nothing is known of it."""
    if "~" in word:
        return "; formulas are for the packages that make columns of them, as formulaic"
    remedy = _VALUES[parameter].get(word.lower())
    return f"; {remedy}" if remedy else ""


def _remedy(name: str, parameters: Mapping[str, Parameter]) -> str:
    parameter, more = _HERE.get(name, ("", ""))
    if parameter in parameters:
        return f"give {parameter}{more}"
    if name in _OF_FIT:
        return _OF_FIT[name]
    samplers = [cls.__name__ for cls in SAMPLERS.values() if name in signature(cls).parameters]
    if samplers and "sampler" in parameters:
        names = ", ".join(samplers)
        return f"it is a parameter of {names} in skbayes_sg.samplers; give one as sampler"
    if alike := get_close_matches(name, parameters, n=1):
        return f"did you mean {alike[0]}?"
    return f"it has {', '.join(parameters)}"
