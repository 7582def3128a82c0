"""
Three classes against a reference for a teacher
===============================================

Multinomial regression in R compares each class with a reference. Here the
coefficients are against the mean over the classes, unless ``reference`` names
one, and then they are those of ``multinom`` and ``MNLogit``.
"""

import pandas as pd
import statsmodels.api as sm
from matplotlib import pyplot as plt
from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.inspection import average_effects
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

# %%
# Wines of three growers
# ----------------------
# Two columns that tell the growers apart, but not perfectly, in standard
# deviations: the intercept has a prior of its own, and is near zero then.

X, grower = load_wine(return_X_y=True, as_frame=True)
scaler = StandardScaler().set_output(transform="pandas")
X = scaler.fit_transform(X[["alcohol", "malic_acid"]])
grower = grower.map({0: "first", 1: "second", 2: "third"})
model = BayesianLogisticRegression(prior_precision=1e-6, random_state=0)
model.fit(X, grower)
table = model.summary(reference="first")[["mean", "sd"]]
table = table.drop("intercept", level="term")

# %%
# Beside statsmodels
# ------------------
# Without shrinkage the two agree, up to the difference of a mean and a mode.

columns = sm.add_constant(X)
logit = sm.MNLogit(pd.factorize(grower, sort=True)[0], columns)
logit = logit.fit(disp=False)
rows = [(k, name) for k in range(2) for name in X.columns]
table["MNLogit"] = [logit.params.loc[name].iloc[k] for k, name in rows]
table["its error"] = [logit.bse.loc[name].iloc[k] for k, name in rows]
print(table.round(2).to_string())

# %%
# Probabilities
# -------------
# What a standard deviation of alcohol changes in the probability of each.

effects = average_effects(model, X)
print(effects[["mean", "eti95_lb", "eti95_ub"]].round(2).to_string())
alcohol = effects.loc["alcohol"]
figure, ax = plt.subplots(figsize=(6, 2.5), layout="constrained")
ax.hlines(alcohol.index, alcohol["eti95_lb"], alcohol["eti95_ub"])
ax.plot(alcohol["mean"], alcohol.index, "o")
ax.axvline(0, color="0.7", zorder=0)
ax.set(xlabel="change of the probability with a sd of alcohol")
plt.show()
