"""
Mixed columns with missing cells
================================

A table with words, numbers and gaps, as in most competitions. Does the
posterior predict as well as ``LogisticRegression``, and are its probabilities
calibrated?
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from skbayes_sg import BayesianLogisticRegression
from sklearn.calibration import CalibrationDisplay
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

# %%
# Flights
# -------
# Simulated: delays depend on the hour, the distance and sixty airports, some
# with few flights. A twentieth of the distances is missing.

rng = np.random.default_rng(0)
airport, n = rng.zipf(1.3, 4000) % 60, 4000
flights = pd.DataFrame({"hour": rng.integers(6, 24, n)})
flights["distance"] = rng.gamma(2.0, 500.0, n)
flights["airport"] = [f"A{k}" for k in airport]
score = 0.1 * flights["hour"] - 3.5 + 0.7 * rng.normal(size=60)[airport]
late = rng.random(n) < 1 / (1 + np.exp(-score))
flights.loc[rng.random(n) < 0.05, "distance"] = np.nan

# %%
# Two pipelines
# -------------
# Only the last step differs. All probabilities are of rows that were held out.

numbers = make_column_selector(dtype_include="number")
figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
for model in (
    LogisticRegression(),
    BayesianLogisticRegression(random_state=0),
):
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore"), ["airport"]),
    )
    pipeline = make_pipeline(columns, model)
    p = cross_val_predict(pipeline, flights, late, method="predict_proba")
    name = type(model).__name__
    print(f"{name:26} log loss {log_loss(late, p):.4f}", end=", ")
    print(f"area {roc_auc_score(late, p[:, 1]):.3f}")
    CalibrationDisplay.from_predictions(
        late, p[:, 1], n_bins=8, strategy="quantile", name=name, ax=ax
    )
plt.show()
