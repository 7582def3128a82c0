"""scikit-learn's face: estimators, their input and their files.

Imports all that is below, and callbacks.
"""

from skbayes_sg.estimators.drbm import DRBMClassifier
from skbayes_sg.estimators.gamma import BayesianGammaRegressor
from skbayes_sg.estimators.linear import BayesianLinearRegressionSGFS
from skbayes_sg.estimators.logistic import BayesianLogisticRegressionSGFS
from skbayes_sg.estimators.mlp import BayesianMLPClassifier
from skbayes_sg.estimators.mlp_regressor import BayesianMLPRegressor
from skbayes_sg.estimators.negative_binomial import BayesianNegativeBinomialRegressor
from skbayes_sg.estimators.ordinal import BayesianOrdinalClassifier
from skbayes_sg.estimators.path import hyperparameter_path
from skbayes_sg.estimators.poisson import BayesianPoissonRegressor
from skbayes_sg.estimators.robust import BayesianRobustRegressor
from skbayes_sg.estimators.trusted import trusted_types

BayesianLinearRegression = BayesianLinearRegressionSGFS
BayesianLogisticRegression = BayesianLogisticRegressionSGFS

__all__ = [
    "BayesianGammaRegressor",
    "BayesianLinearRegression",
    "BayesianLinearRegressionSGFS",
    "BayesianLogisticRegression",
    "BayesianLogisticRegressionSGFS",
    "BayesianMLPClassifier",
    "BayesianMLPRegressor",
    "BayesianNegativeBinomialRegressor",
    "BayesianOrdinalClassifier",
    "BayesianPoissonRegressor",
    "BayesianRobustRegressor",
    "DRBMClassifier",
    "hyperparameter_path",
    "trusted_types",
]
