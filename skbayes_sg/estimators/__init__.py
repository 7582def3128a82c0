"""scikit-learn estimators."""

from skbayes_sg.estimators.linear import BayesianLinearRegressionSGFS
from skbayes_sg.estimators.logistic import BayesianLogisticRegressionSGFS

__all__ = ["BayesianLinearRegressionSGFS", "BayesianLogisticRegressionSGFS"]
