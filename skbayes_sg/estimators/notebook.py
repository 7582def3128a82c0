"""What a notebook shows of an estimator: first whether its draws can be trusted."""

from __future__ import annotations

import html
from typing import Any

DOCUMENTATION = "https://skbayes-sg.github.io/skbayes_sg/"  # as in pyproject.toml

_FIGURES = {  # of `diagnostics_`, in the order in which a reader asks for them
    "r_hat_max": "R-hat of the chains, largest",
    "ess_min": "effective draws, fewest",
    "stein_ratio": "Stein ratio, 1 if the spread is right",
    "prediction_error": "standard error of averaged predictions",
    "prediction_drift": "drift of averaged predictions",
    "drift": "evidence that the stream drifts",
}
_ROW = '<tr class="default"><td class="param">{}</td><td>{}</td></tr>'
_TABLE = """
<div class="estimator-table"><details open><summary>Diagnostics</summary>
<table class="parameters-table"><tbody>{}</tbody></table></details></div>
"""


class NotebookMixin:
    """Diagnostics before parameters, no draws, and a "?" that leads to the page of the class.

    The methods are those that scikit-learn asks for the parts of its diagram: its table of
    parameters, before which the diagnostics stand, and from version 1.9 on that of attributes.
    """

    _doc_link_module = "skbayes_sg"
    _doc_link_template = DOCUMENTATION + "api/generated/skbayes_sg.{estimator_name}.html"
    diagnostics_: dict[str, float]
    sampler_: Any
    sampler_reason_: str
    _warnings: list[str]

    def _get_params_html(self, *args: Any, **kwargs: Any) -> Any:
        table = super()._get_params_html(*args, **kwargs)  # type: ignore[misc]
        if hasattr(self, "diagnostics_"):
            inner = table._repr_html_inner
            table._repr_html_inner = lambda: self._diagnostics_html() + inner()
        return table

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        attributes = super()._get_fitted_attr_html(doc_link)  # type: ignore[misc]
        for name in [*attributes]:
            if name == "model_" or name.endswith(("draws_", "samples_", "states_", "path_")):
                del attributes[name]  # hundreds of numbers that nobody reads
        return attributes

    def _diagnostics_html(self) -> str:
        figures = self.diagnostics_
        rows = [(text, f"{figures[k]:.4g}") for k, text in _FIGURES.items() if k in figures]
        rows += [("warning", each) for each in getattr(self, "_warnings", ())] or [
            ("warnings", "none")
        ]
        if hasattr(self, "sampler_reason_"):
            rows.append((type(self.sampler_).__name__, self.sampler_reason_))
        return _TABLE.format("".join(_ROW.format(*map(html.escape, row)) for row in rows))
