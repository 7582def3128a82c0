"""scikit-learn's face: estimators, their input and their files.

Imports all that is below, and callbacks.
"""

from skbayes_sg.estimators.drbm import DRBMClassifier
from skbayes_sg.estimators.linear import BayesianLinearRegressionSGFS
from skbayes_sg.estimators.logistic import BayesianLogisticRegressionSGFS
from skbayes_sg.estimators.mlp import BayesianMLPClassifier
from skbayes_sg.estimators.path import hyperparameter_path

__all__ = [
    "BayesianLinearRegressionSGFS",
    "BayesianLogisticRegressionSGFS",
    "BayesianMLPClassifier",
    "DRBMClassifier",
    "hyperparameter_path",
]
