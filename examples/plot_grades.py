"""
Grades, and how few rows they need
==================================

Stages of a disease have an order. Multinomial regression does not know it, and has coefficients
for each stage. :class:`~skbayes_sg.BayesianOrdinalClassifier` has one for each column, which says
how it moves the odds of later stages against earlier ones. Where that is true, fewer rows are
enough.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLogisticRegression, BayesianOrdinalClassifier

# %%
# Four stages
# -----------
# The progression of diabetes after a year, cut at its quartiles.

X, y = load_diabetes(return_X_y=True, as_frame=True)
X[:] = StandardScaler().fit_transform(X)
stages = ["mild", "moderate", "severe", "very severe"]
stage = np.array(stages)[np.digitize(y, np.quantile(y, [0.25, 0.5, 0.75]))]

# %%
# The table
# ---------
# An odds ratio of 1.5 says that a standard deviation more of the column makes the odds of any later
# stage half as large again, wherever the line between early and late is drawn. The last rows are
# the thresholds between stages, on the scale of log odds.

model = BayesianOrdinalClassifier(categories=stages, random_state=0).fit(X, stage)
table = model.summary()
columns = ["mean", "odds_ratio", "odds_ratio_eti95_lb", "odds_ratio_eti95_ub"]
print(table[columns].round(2).to_string())

# %%
# Log loss of new patients
# ------------------------
# From 60 to 240 patients, over six divisions; 200 others are predicted.

sizes, n_splits = (60, 120, 240), 6
models = {
    "ordinal": BayesianOrdinalClassifier(categories=stages, random_state=0),
    "multinomial": BayesianLogisticRegression(random_state=0),
    "LogisticRegressionCV": LogisticRegressionCV(
        l1_ratios=(0,), scoring="neg_log_loss", max_iter=2000, use_legacy_attributes=False
    ),
}
losses = {name: np.empty((len(sizes), n_splits)) for name in models}
for seed in range(n_splits):
    rest, test, of_rest, of_test = train_test_split(
        X, stage, test_size=200, random_state=seed, stratify=stage
    )
    for i, n in enumerate(sizes):
        for name, each in models.items():
            proba = each.fit(rest[:n], of_rest[:n]).predict_proba(test)
            losses[name][i, seed] = log_loss(of_test, proba, labels=sorted(stages))
print(f"{'log loss':22}" + "".join(f"{n:>8}" for n in sizes))
for name, loss in losses.items():
    print(f"{name:22}" + "".join(f"{one:8.2f}" for one in loss.mean(axis=1)))

# %%
# The picture
# -----------
# Bands are standard errors over divisions. The dotted line is the loss of equal probabilities.

figure, ax = plt.subplots(figsize=(8, 4.4), layout="constrained")
styles = zip(losses, ("#0072B2", "#D55E00", "0.45"), ("-", "--", ":"), strict=True)
for name, colour, line in styles:
    mean = losses[name].mean(axis=1)
    error = losses[name].std(axis=1, ddof=1) / np.sqrt(n_splits)
    ax.plot(sizes, mean, line, color=colour, label=name)
    ax.fill_between(sizes, mean - error, mean + error, color=colour, alpha=0.15, lw=0)
ax.axhline(np.log(len(stages)), color="0.7", lw=1, ls=(0, (1, 2)))
ax.set(xlabel="patients to learn from", ylabel="log loss of new patients", xticks=sizes)
ax.legend(frameon=False)
plt.show()
