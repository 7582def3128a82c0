"""Pictures, summaries and effects of fitted estimators, in the manner of scikit-learn's displays.

Imports data, diagnostics, frames, linalg, priors, validation and version. Estimators come as
arguments.
"""

from skbayes_sg.inspection.abstention import AbstentionDisplay
from skbayes_sg.inspection.coefficients import CoefficientsDisplay
from skbayes_sg.inspection.effects import average_effects, contrast
from skbayes_sg.inspection.pipelines import (
    predict_draws,
    predict_interval,
    predict_quantiles,
    summary,
)
from skbayes_sg.inspection.printed import rounded, to_html, to_latex
from skbayes_sg.inspection.prior_precision import PriorPrecisionDisplay
from skbayes_sg.inspection.responses import prediction_summary
from skbayes_sg.inspection.sandwich import sandwich_summary
from skbayes_sg.inspection.sensitivity import prior_sensitivity
from skbayes_sg.inspection.totals import totals
from skbayes_sg.inspection.uncertainty import UncertaintyDisplay

__all__ = [
    "AbstentionDisplay",
    "CoefficientsDisplay",
    "PriorPrecisionDisplay",
    "UncertaintyDisplay",
    "average_effects",
    "contrast",
    "predict_draws",
    "predict_interval",
    "predict_quantiles",
    "prediction_summary",
    "prior_sensitivity",
    "rounded",
    "sandwich_summary",
    "summary",
    "to_html",
    "to_latex",
    "totals",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
