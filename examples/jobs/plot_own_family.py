"""
A distribution of your own
==========================

A new regression is its distribution: the log density, its derivatives, and
what predictions need. ``check_family`` looks for errors in them. Here it is
the geometric distribution, whose maximum of the likelihood statsmodels has as
a negative binomial distribution with ``alpha=1``.
"""

import numpy as np
import statsmodels.api as sm
from matplotlib import pyplot as plt
from skbayes_sg import CoefficientsDisplay
from skbayes_sg.estimators.linear_model import LinearRegressor
from skbayes_sg.models import check_family
from skbayes_sg.models.log_link import LogLink

# %%
# The family
# ----------
# ``outputs[:, 0]`` is the linear predictor, the logarithm of the mean.


class Geometric(LogLink):
    """Counts of failures before a success, of mean mu."""

    canonical = False
    counts = True

    @classmethod
    def require_targets(cls, y):
        if (y < 0).any() or (y % 1).any():
            raise ValueError("y holds numbers that are no counts")

    def value(self, outputs, y):
        mu = np.exp(outputs[:, 0])
        return y * outputs[:, 0] - (y + 1) * np.log1p(mu)

    def residual(self, outputs, y):
        mu = np.exp(outputs[:, 0])
        return ((y - mu) / (1 + mu))[:, None]

    def observed_at(self, outputs, y):
        mu = np.exp(outputs[:, 0])
        return ((y + 1) * mu / (1 + mu) ** 2)[:, None, None]

    def expected(self, outputs):
        mu = np.exp(outputs[:, 0])
        return (mu / (1 + mu))[:, None, None]

    def mean(self, outputs):
        return np.exp(outputs[:, 0])

    def variance(self, outputs):
        mu = np.exp(outputs[:, 0])
        return mu * (1 + mu)

    def distribution(self, y, outputs):
        mu = np.exp(outputs[:, 0])
        whole = np.maximum(np.floor(y) + 1, 0.0)
        return 1 - (mu / (1 + mu)) ** whole

    def draw(self, outputs, rng):
        return rng.geometric(1 / (1 + np.exp(outputs[:, 0]))) - 1


class GeometricRegressor(LinearRegressor):
    """Regression of counts of failures."""

    _family = Geometric


check_family(Geometric)

# %%
# A fit beside statsmodels
# ------------------------

rng = np.random.default_rng(0)
X = rng.normal(size=(1000, 3))
y = rng.geometric(1 / (1 + np.exp(0.5 + X @ [0.8, -0.4, 0.0]))) - 1
model = GeometricRegressor(random_state=0).fit(X, y)
family = sm.families.NegativeBinomial(alpha=1.0)
glm = sm.GLM(y, sm.add_constant(X), family).fit()
print("posterior  ", model.coef_.round(3), model.coef_std_.round(3))
print("statsmodels", glm.params[1:].round(3), glm.bse[1:].round(3))
print(model.predict_interval(X[:3]))
CoefficientsDisplay.from_estimator(model)
plt.show()
