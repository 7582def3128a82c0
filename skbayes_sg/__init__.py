"""Bayesian posteriors from minibatches, behind the scikit-learn API."""

from skbayes_sg import callbacks, diagnostics, theory
from skbayes_sg.empirical_bayes import VariationalEM
from skbayes_sg.estimators import (
    BayesianLinearRegressionSGFS,
    BayesianLogisticRegressionSGFS,
    BayesianMLPClassifier,
    DRBMClassifier,
    hyperparameter_path,
)
from skbayes_sg.inspection import PriorPrecisionDisplay

__version__ = "0.1.0"

__all__ = [
    "BayesianLinearRegressionSGFS",
    "BayesianLogisticRegressionSGFS",
    "BayesianMLPClassifier",
    "DRBMClassifier",
    "PriorPrecisionDisplay",
    "VariationalEM",
    "callbacks",
    "diagnostics",
    "hyperparameter_path",
    "theory",
]
