"""Bayesian posteriors from minibatches, behind the scikit-learn API."""

from skbayes_sg import callbacks, diagnostics, inspection, priors, samplers, theory
from skbayes_sg.estimators.binomial import BayesianBinomialRegressor
from skbayes_sg.estimators.drbm import DRBMClassifier
from skbayes_sg.estimators.gamma import BayesianGammaRegressor
from skbayes_sg.estimators.linear import BayesianLinearRegression, BayesianLinearRegressionSGFS
from skbayes_sg.estimators.logistic import (
    BayesianLogisticRegression,
    BayesianLogisticRegressionSGFS,
)
from skbayes_sg.estimators.mlp import BayesianMLPClassifier
from skbayes_sg.estimators.mlp_regressor import BayesianMLPRegressor
from skbayes_sg.estimators.negative_binomial import BayesianNegativeBinomialRegressor
from skbayes_sg.estimators.ordinal import BayesianOrdinalClassifier
from skbayes_sg.estimators.path import hyperparameter_path
from skbayes_sg.estimators.poisson import BayesianPoissonRegressor
from skbayes_sg.estimators.robust import BayesianRobustRegressor
from skbayes_sg.estimators.trusted import trusted_types
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
    "BayesianBinomialRegressor",
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


def __dir__() -> list[str]:
    """The public names; the rooms of the package are modules too."""
    return __all__
