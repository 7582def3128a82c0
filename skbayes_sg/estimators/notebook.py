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
    """Diagnostics before fitted attributes, and a "?" that leads to the page of the class.

    scikit-learn 1.9 asks for the table of fitted attributes; earlier versions show none.
    """

    _doc_link_module = "skbayes_sg"
    _doc_link_template = DOCUMENTATION + "api/generated/skbayes_sg.{estimator_name}.html"
    diagnostics_: dict[str, float]
    sampler_reason_: str
    _warnings: list[str]

    def _get_fitted_attr_html(self, doc_link: str = "") -> _Attributes:
        attributes = super()._get_fitted_attr_html(doc_link)  # type: ignore[misc]
        for name in [*attributes]:  # hundreds of numbers that nobody reads
            if name.endswith(("draws_", "samples_", "states_", "path_")):
                del attributes[name]
        return _Attributes(self._diagnostics_html(), attributes)

    def _diagnostics_html(self) -> str:
        figures = getattr(self, "diagnostics_", {})
        rows = [(text, f"{figures[k]:.4g}") for k, text in _FIGURES.items() if k in figures]
        if hasattr(self, "sampler_reason_"):
            rows.append(("sampler", self.sampler_reason_))
        rows += [("warning", each) for each in getattr(self, "_warnings", ())] or [
            ("warnings", "none")
        ]
        return _TABLE.format("".join(_ROW.format(*map(html.escape, row)) for row in rows))


class _Attributes:
    """A table before that of scikit-learn, with the two methods that it asks for."""

    def __init__(self, before: str, attributes: Any) -> None:
        self.before, self.attributes = before, attributes

    def __len__(self) -> int:
        return 1 + len(self.attributes)

    def _repr_html_inner(self) -> str:
        return self.before + self.attributes._repr_html_inner()
