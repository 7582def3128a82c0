"""
Model checks by ArviZ and scikit-learn
======================================

ArviZ draws traces and ranks of chains, and posterior predictive checks, for
any Bayesian model, and scikit-learn draws the calibration of any classifier.
Each takes two lines: ``to_arviz`` exports the draws with their names, and
``predict_proba`` returns the probabilities.
"""

import numpy as np
from matplotlib import pyplot as plt
from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
)
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

try:
    import arviz_plots
except ImportError:  # calibration alone is then drawn
    arviz_plots = None
    print("without its pictures: pip install 'arviz-plots[matplotlib]'")

# %%
# Do the chains agree?
# --------------------
# Ranks of the draws of each chain among all draws, of the three coefficients
# that agree least. The line of each chain lies within the band if it is like
# the others.

X, y = load_diabetes(return_X_y=True, as_frame=True)
X = StandardScaler().set_output(transform="pandas").fit_transform(X)
model = BayesianLinearRegression(
    "hmc", n_chains=4, n_draws=500, random_state=0
).fit(X, y)
tree = model.to_arviz(X, y, posterior_predictive=True)
worst = model.summary(full=True)["r_hat"][list(X.columns)].nlargest(3)
print(worst.round(3).to_string())
if arviz_plots is not None:
    arviz_plots.plot_rank(
        tree,
        var_names="coef",
        coords={"feature": list(worst.index)},
        figure_kwargs={"figsize": (9.5, 2.8), "layout": "constrained"},
    )
    plt.show()

# %%
# Do the data look like the model's?
# ----------------------------------
# Sets of patients that the model makes up, beside those that were seen.
# Progression is skewed and never negative, and normal noise knows neither:
# where the sets leave the line of the data, so do the intervals of
# predictions.

smallest = tree["posterior_predictive"]["y"].min(dim="row")
middle = np.median(smallest)
print(f"smallest progression: {y.min():.0f}, in the sets {middle:.0f}")
if arviz_plots is not None:
    arviz_plots.plot_ppc_dist(
        tree,
        kind="ecdf",
        num_samples=40,
        figure_kwargs={"figsize": (7, 3.5), "layout": "constrained"},
    )
    plt.gca().set(title="", xlabel="progression", ylabel="share below")
    plt.show()

# %%
# Do probabilities hold?
# ----------------------
# Of the rows with a probability of 90 %, nine of ten should be of that class.
# scikit-learn counts them in bins.

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, train_size=100, random_state=0
)
pipeline = make_pipeline(
    StandardScaler(), BayesianLogisticRegression(random_state=0)
)
proba = pipeline.fit(X_train, y_train).predict_proba(X_test)[:, 1]
CalibrationDisplay.from_predictions(y_test, proba, n_bins=5, name="posterior")
plt.show()
