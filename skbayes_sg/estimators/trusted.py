"""Which types a file of a fitted model may hold, for loaders that ask."""

from __future__ import annotations

import inspect
import sys

from skbayes_sg import callbacks

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
    "streams",
)


_OF_PIPELINES = (  # values too, which skops 0.14 does not trust by itself
    "numpy.dtype",
    "sklearn.compose._column_transformer.make_column_selector",
)


def trusted_types() -> list[str]:
    """Names of the types that a saved estimator or pipeline may hold, for ``skops.io.load``.

    skops loads no type that is neither its own, NumPy's or scikit-learn's nor in the list
    `trusted`. This is that list for all estimators of this package, with their models, priors,
    posteriors, samplers, the states of their chains and the callbacks of this package; and of
    pipelines that prepare the columns of a data frame. To load a callback does nothing; the next
    `fit` calls it, and a `Checkpoint` then writes to the path that the file names. A type of your
    own, such as a sampler, is not in it. The names are those of the installed version.

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
    own = [
        f"{name}.{kind.__qualname__}"
        for name, module in list(sys.modules.items())
        if name.startswith(folders) and name != "skbayes_sg.data.dask"  # which is optional
        for kind in vars(module).values()
        if inspect.isclass(kind) and kind.__module__ == name
    ]
    called = [f"{callbacks.__name__}.{name}" for name in callbacks.__all__]
    return sorted([*own, *called, *_OF_PIPELINES])
