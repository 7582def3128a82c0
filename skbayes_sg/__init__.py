"""Bayesian posteriors from minibatches, behind the scikit-learn API."""

from skbayes_sg import callbacks, diagnostics, inspection, priors, samplers, theory
from skbayes_sg.estimators import (
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianLinearRegressionSGFS,
    BayesianLogisticRegression,
    BayesianLogisticRegressionSGFS,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
    BayesianRobustRegressor,
    DRBMClassifier,
    hyperparameter_path,
    trusted_types,
)
from skbayes_sg.inference.variational_em import VariationalEM
from skbayes_sg.inspection import (
    AbstentionDisplay,
    CoefficientsDisplay,
    PriorPrecisionDisplay,
    UncertaintyDisplay,
)
from skbayes_sg.version import __version__

__all__ = [
    "AbstentionDisplay",
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
    "CoefficientsDisplay",
    "DRBMClassifier",
    "PriorPrecisionDisplay",
    "UncertaintyDisplay",
    "VariationalEM",
    "__version__",
    "callbacks",
    "diagnostics",
    "hyperparameter_path",
    "inspection",
    "priors",
    "samplers",
    "theory",
    "trusted_types",
]
