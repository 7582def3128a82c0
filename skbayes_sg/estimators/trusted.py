"""Which types a file of a fitted model may hold, for loaders that ask."""

from __future__ import annotations

import inspect
import sys

_ROOMS = (  # whose types are values: to make one reads no file, opens nothing and runs nothing else
    "chains",
    "data",
    "diagnostics",
    "estimators",
    "inference",
    "linalg",
    "models",
    "posterior",
    "priors",
    "samplers",
)


def trusted_types() -> list[str]:
    """Names of this package's types that a saved estimator may hold, for ``skops.io.load``.

    skops loads no type that is neither its own, NumPy's or scikit-learn's nor in the list
    `trusted`. This is that list for all estimators of this package, with their models, priors,
    posteriors, samplers and the states of their chains. A type of your own, such as a sampler,
    is not in it. The names are those of the installed version.

    Returns
    -------
    list of str
        Sorted names, with their modules.

    Examples
    --------
    >>> from skbayes_sg import trusted_types
    >>> "skbayes_sg.estimators.poisson.BayesianPoissonRegressor" in trusted_types()
    True
    """
    folders = tuple(f"skbayes_sg.{room}." for room in _ROOMS)
    return sorted(
        f"{name}.{kind.__qualname__}"
        for name, module in list(sys.modules.items())
        if name.startswith(folders) and name != "skbayes_sg.data.dask"  # which is optional
        for kind in vars(module).values()
        if inspect.isclass(kind) and kind.__module__ == name
    )
