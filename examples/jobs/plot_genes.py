"""
A few genes of two thousand for a biologist
===========================================

Sixty samples, two kinds of tissue, two thousand genes. Which genes matter, and
how many of those on the list are there by chance?
"""

import numpy as np
from matplotlib import pyplot as plt
from skbayes_sg import BayesianLogisticRegression, CoefficientsDisplay
from skbayes_sg.priors import Horseshoe
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss

# %%
# The samples
# -----------
# Simulated, so that the truth is known: genes 0, 10 and 20 matter. A thousand
# further samples show how good the predictions are.

rng = np.random.default_rng(0)
X = rng.standard_normal((1060, 2000))
log_odds = X[:, [0, 10, 20]] @ [4.0, -3.0, 2.0]
y = (rng.random(len(X)) < 1 / (1 + np.exp(-log_odds))).astype(int)
train, new = slice(60), slice(60, None)

# %%
# The lasso, a normal prior and a horseshoe that expects five genes
# -----------------------------------------------------------------
# The normal prior shrinks all genes alike and finds none. The penalty of the
# lasso is chosen by cross-validation, which has twelve samples in each fold.

lasso = LogisticRegressionCV(
    l1_ratios=[1.0],
    solver="liblinear",
    scoring="neg_log_loss",
    random_state=0,
    use_legacy_attributes=False,
)
normal = BayesianLogisticRegression(random_state=0)
sparse = BayesianLogisticRegression(prior=Horseshoe(5), random_state=0)
for name, model in {
    "lasso": lasso,
    "normal": normal,
    "horseshoe": sparse,
}.items():
    p = model.fit(X[train], y[train]).predict_proba(X[new])
    print(f"log loss, {name}: {log_loss(y[new], p):.2f}")
print("genes of the lasso:", np.flatnonzero(lasso.coef_).tolist())

# %%
# The list
# --------
# ``fdr`` is the share of genes down to this one that are expected to have a
# log odds ratio below .1, or one of the other sign. The third gene is not
# found: sixty samples are too few for it.

table = sparse.summary(rope=0.1, most=5)
print(table[["mean", "sd", "fdr"]].round(2))
CoefficientsDisplay.from_estimator(sparse, max_features=8)
plt.show()
