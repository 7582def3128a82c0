"""Pictures of fitted estimators, in the manner of scikit-learn's displays."""

from skbayes_sg.inspection.prior_precision import PriorPrecisionDisplay

__all__ = ["PriorPrecisionDisplay"]
