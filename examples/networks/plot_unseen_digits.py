"""
Digits of classes never seen
============================

A network learns the digits 0 to 7. Then it is shown eights and nines, for
which it has no class, and for which a good model should be uncertain. The
default of ``BayesianMLPClassifier``, a cold posterior and so not strictly
Bayesian, is compared with scikit-learn's ``MLPClassifier``.
"""

import numpy as np
from matplotlib import pyplot as plt
from skbayes_sg import BayesianMLPClassifier
from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

ORANGE, BLUE = "#D55E00", "#0072B2"

# %%
# Learn
# -----

X, y = load_digits(return_X_y=True)
X = X / 16
unseen = X[y > 7]
X_train, known, y_train, y_known = train_test_split(
    X[y < 8], y[y < 8], train_size=0.5, stratify=y[y < 8], random_state=0
)
point = MLPClassifier(
    (30,), activation="logistic", max_iter=3000, random_state=0
)
point.fit(X_train, y_train)
model = BayesianMLPClassifier((30,), random_state=0).fit(X_train, y_train)

# %%
# How well does doubt tell unseen digits from known ones?
# -------------------------------------------------------
# The area under the ROC curve is 1 if every unseen digit is doubted more than
# every known one.

everything = np.concatenate([known, unseen])
is_unseen = np.arange(len(everything)) >= len(known)
doubts = {
    "MLPClassifier, 1 - largest probability": 1
    - point.predict_proba(everything).max(axis=1),
    "posterior, 1 - largest probability": 1
    - model.predict_proba(everything).max(axis=1),
    "posterior, epistemic": model.predict_uncertainty(everything).epistemic,
}
for name, each in (("MLPClassifier", point), ("posterior", model)):
    accuracy = accuracy_score(y_known, each.predict(known))
    print(f"accuracy on known digits: {name} {accuracy:.3f}")
for name, doubt in doubts.items():
    print(f"{name:40} area {roc_auc_score(is_unseen, doubt):.3f}")

# %%
# The picture
# -----------
# Above: how sure each network is of digits that it knows and of digits that it
# does not. Below: the unseen digits that the posterior is surest of, and those
# that it doubts most.

figure = plt.figure(figsize=(9, 6.4), layout="constrained")
upper, lower = figure.subfigures(2, 1, height_ratios=(1.5, 1))
axes = upper.subplots(1, 2, sharey=True, sharex=True)
grid = np.linspace(0, 1, 400)
for ax, (name, doubt), colour in zip(
    axes, list(doubts.items())[:2], (ORANGE, BLUE), strict=True
):
    for group, line, label in (
        (~is_unseen, "-", "known"),
        (is_unseen, "--", "8 and 9, unseen"),
    ):
        share = [(1 - doubt[group] >= sure).mean() for sure in grid]
        ax.plot(grid, share, line, color=colour, linewidth=2)
        at = 250 if label == "known" else 330
        ax.annotate(
            label,
            (grid[at], share[at]),
            (0, 8 if label == "known" else -14),
            textcoords="offset points",
            ha="right",
            color=colour,
        )
    ax.set_title(name.split(",")[0], loc="left")
    ax.set(xlabel="sure to at least", xlim=(0.2, 1), ylim=(0, 1.08))
axes[0].set_ylabel("share of the digits")
epistemic = doubts["posterior, epistemic"][is_unseen]
order = np.argsort(epistemic)
n = 10
answers = model.predict(unseen)
for row, (title, chosen) in zip(
    lower.subplots(2, n),
    (("surest", order[:n]), ("doubted", order[::-1][:n])),
    strict=True,
):
    for ax, i in zip(row, chosen, strict=True):
        ax.imshow(unseen[i].reshape(8, 8), cmap="gray_r")
        ax.set(xticks=[], yticks=[])
        ax.set_title(f"“{answers[i]}”", fontsize="medium")
    row[0].set_ylabel(title)
plt.show()

# %%
# What is left
# ------------

limit = np.quantile(doubts["posterior, epistemic"][~is_unseen], 0.95)
p_limit = np.quantile(
    doubts["MLPClassifier, 1 - largest probability"][~is_unseen], 0.95
)
caught = np.mean(epistemic > limit)
p_caught = np.mean(
    doubts["MLPClassifier, 1 - largest probability"][is_unseen] > p_limit
)
print("If one known digit in twenty may be refused, of the unseen ones")
print(f"the posterior refuses {caught:.0%} and MLPClassifier {p_caught:.0%}.")
