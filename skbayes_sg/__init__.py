"""Bayesian posteriors from minibatches, behind the scikit-learn API."""

from skbayes_sg import diagnostics, theory
from skbayes_sg.empirical_bayes import VariationalEM
from skbayes_sg.estimators import (
    BayesianLinearRegressionSGFS,
    BayesianLogisticRegressionSGFS,
    BayesianMLPClassifier,
    DRBMClassifier,
    hyperparameter_path,
)
from skbayes_sg.inspection import (
    AbstentionDisplay,
    CoefficientsDisplay,
    CovarianceDisplay,
    PriorPrecisionDisplay,
    ReliabilityDisplay,
    TraceDisplay,
    UncertaintyDisplay,
)

__version__ = "0.1.0"

__all__ = [
    "AbstentionDisplay",
    "BayesianLinearRegressionSGFS",
    "BayesianLogisticRegressionSGFS",
    "BayesianMLPClassifier",
    "CoefficientsDisplay",
    "CovarianceDisplay",
    "DRBMClassifier",
    "PriorPrecisionDisplay",
    "ReliabilityDisplay",
    "TraceDisplay",
    "UncertaintyDisplay",
    "VariationalEM",
    "diagnostics",
    "hyperparameter_path",
    "theory",
]
