"""scikit-learn's base classes, with the types that scikit-learn does not declare.

To a type checker a class with a base of unknown type has a constructor that takes anything. What is
declared here is what this package and its users rely on. All other attributes, such as those that
`fit` sets and the requests of metadata routing, may be anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:

    class BaseEstimator:
        """The class of `sklearn.base`."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...
        def __getstate__(self) -> dict[str, Any]: ...
        def __setstate__(self, state: dict[str, Any]) -> None: ...
        def _get_params_html(self, *args: Any, **kwargs: Any) -> Any: ...
        def _get_fitted_attr_html(self, doc_link: str = "") -> Any: ...
        def __getattr__(self, name: str) -> Any: ...

    class ClassifierMixin:
        """The class of `sklearn.base`."""

    class RegressorMixin:
        """The class of `sklearn.base`."""

else:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

__all__ = ["BaseEstimator", "ClassifierMixin", "RegressorMixin"]
