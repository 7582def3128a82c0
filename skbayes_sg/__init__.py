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
from skbayes_sg.inspection import PriorPrecisionDisplay
from skbayes_sg.version import __version__

__all__ = [
    "BayesianLinearRegressionSGFS",
    "BayesianLogisticRegressionSGFS",
    "BayesianMLPClassifier",
    "DRBMClassifier",
    "PriorPrecisionDisplay",
    "VariationalEM",
    "__version__",
    "diagnostics",
    "hyperparameter_path",
    "theory",
]
