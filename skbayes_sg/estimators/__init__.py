"""scikit-learn estimators."""

from skbayes_sg.estimators.logistic import BayesianLogisticRegressionSGFS

__all__ = ["BayesianLogisticRegressionSGFS"]
