"""
Aleatoric and epistemic uncertainty
===================================

Iris flowers are classified by the size of their petals, by a regression and by
a network. Uncertainty has two parts. More flowers would remove the epistemic
part, which grows away from the data, but not the aleatoric part, which is
large where species overlap.
"""

import numpy as np
from matplotlib import pyplot as plt
from skbayes_sg import (
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    UncertaintyDisplay,
)
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

# %%
# Two models
# ----------

data = load_iris(as_frame=True)
X, y = data.data.iloc[:, 2:], data.target_names[data.target]
models = [
    BayesianLogisticRegression(n_predict_draws=500, random_state=0),
    BayesianMLPClassifier((6,), random_state=0),
]

# %%
# The picture
# -----------
# It reaches far beyond the flowers, and each panel has its own scale. Along
# the borders epistemic uncertainty grows with the distance, because any small
# turn of a border moves it far out there. But neither model doubts everything
# new: where all borders that the flowers allow agree, a petal larger than any
# seen is virginica, with certainty. The network's default is colder than
# Bayes, so that more of its doubt is aleatoric.

figure, rows = plt.subplots(
    2, 3, figsize=(11, 6.5), layout="constrained", sharex=True, sharey=True
)
for axes, model in zip(rows, models, strict=True):
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    display = UncertaintyDisplay.from_estimator(
        pipeline, X, y=y, margin=1.0, ax=axes
    )
    name = type(model).__name__.removesuffix("SGFS")
    axes[0].set_ylabel(f"{name}\n{axes[0].get_ylabel()}")
    inside = model.predict_uncertainty(pipeline[:-1].transform(X)).epistemic
    corner = display.values["epistemic"][-1, 0]
    print(f"{name}: epistemic uncertainty, in nats, {np.median(inside):.3f}")
    print(f"at the median flower, {corner:.3f} at short wide petals")
plt.show()
