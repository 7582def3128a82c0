"""What a notebook shows of an estimator: first whether its draws can be trusted."""

from __future__ import annotations

import html
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any

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


def doc_link_template() -> str:
    """Address of the page of a class, for scikit-learn; "" if `[project.urls]` has no site."""
    try:
        urls = metadata("skbayes_sg").get_all("Project-URL") or []
    except PackageNotFoundError:  # a checkout on the path
        return ""
    site = dict(url.split(", ", 1) for url in urls).get("Documentation")
    return f"{site.rstrip('/')}/api/generated/skbayes_sg.{{estimator_name}}.html" if site else ""


def with_diagnostics(estimator: Any, table: Any) -> Any:
    """scikit-learn's table of parameters, with the diagnostics of a fitted estimator before it."""
    if hasattr(estimator, "diagnostics_"):
        inner = table._repr_html_inner
        table._repr_html_inner = lambda: _diagnostics(estimator) + inner()
    return table


def without_draws(attributes: Any) -> Any:
    """scikit-learn's table of attributes less the hundreds of numbers that nobody reads."""
    for name in [*attributes]:
        if name == "model_" or name.endswith(("draws_", "samples_", "states_", "path_")):
            del attributes[name]
    return attributes


def _diagnostics(estimator: Any) -> str:
    figures = estimator.diagnostics_
    rows = [(text, f"{figures[k]:.4g}") for k, text in _FIGURES.items() if k in figures]
    warnings = getattr(estimator, "_warnings", ())
    rows += [("warning", warning) for warning in warnings] or [("warnings", "none")]
    if hasattr(estimator, "sampler_reason_"):
        rows.append((f"sampler, {type(estimator.sampler_).__name__}", estimator.sampler_reason_))
    return _TABLE.format("".join(_ROW.format(*map(html.escape, row)) for row in rows))
