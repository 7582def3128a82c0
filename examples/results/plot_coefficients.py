"""
A table of coefficients and a forest plot
=========================================

Which measurements of a cell nucleus indicate a malignant tumour? The table and
the plot give an interval for each. Columns that measure nearly the same thing
share one effect, which a point estimate does not show.
"""

import numpy as np
from matplotlib import pyplot as plt
from skbayes_sg import BayesianLogisticRegression, CoefficientsDisplay
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

# %%
# The table
# ---------
# ``summary()`` has one row for each coefficient: its mean, its interval and
# the odds ratio per standard deviation of the column. Here are the first rows;
# ``full=True`` has more columns.

data = load_breast_cancer(as_frame=True)
model = BayesianLogisticRegression(random_state=0)
pipeline = make_pipeline(
    StandardScaler().set_output(transform="pandas"), model
)
pipeline.fit(data.data, data.target_names[data.target])
print(model.summary().iloc[:6, :4].round(2).to_string())

# %%
# The forest plot
# ---------------
# Thick bars hold half of the posterior, thin ones 95 %. The axis of odds
# ratios is logarithmic.

effects = CoefficientsDisplay.from_estimator(pipeline, odds_ratio=True)
effects.ax_.set_title("per standard deviation of each measurement")
plt.show()

# %%
# How much do columns share?
# --------------------------
# Radius, perimeter and area are nearly one measurement. How the effect of a
# larger nucleus is divided among them is uncertain. That there is one, their
# sum, is less so.

columns = [
    data.data.columns.get_loc(f"worst {name}")
    for name in ("radius", "perimeter", "area")
]
draws = model.coef_samples_[:, :, 0, columns].reshape(-1, 3)
effects = dict(zip(data.data.columns[columns], draws.T, strict=True))
for name, each in (effects | {"their sum": draws.sum(axis=1)}).items():
    low, high = np.quantile(each, [0.025, 0.975])
    positive = np.mean(each > 0)
    print(f"{name:16} {low:5.2f} to {high:5.2f}, P(above 0) = {positive:.3f}")
