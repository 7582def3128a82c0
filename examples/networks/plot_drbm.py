"""
A restricted Boltzmann machine of black and white digits
========================================================

A discriminative restricted Boltzmann machine is a network of hidden units
that are on or off, for binary columns. Is it worth having with few rows? Here
it learns the ten digits from twenty examples of each, and is compared with
logistic regression and a network of ordinary units.
"""

import numpy as np
from matplotlib import pyplot as plt
from skbayes_sg import (
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    DRBMClassifier,
)
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

# %%
# Twenty of each
# --------------

X, y = load_digits(return_X_y=True)
X = (X > 7).astype(float)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, train_size=200, stratify=y, random_state=0
)
models = {
    "logistic regression": BayesianLogisticRegression(
        prior_precision=1.0, random_state=0
    ),
    "network": BayesianMLPClassifier((30,), random_state=0),
    "DRBM": DRBMClassifier(30, random_state=0),
}
proba = {}
for name, model in models.items():
    proba[name] = model.fit(X_train, y_train).predict_proba(X_test)
    error = np.mean(proba[name].argmax(axis=1) != y_test)
    loss = log_loss(y_test, proba[name])
    print(f"{name:20} errors {error:.1%}, log loss {loss:.2f}")

# %%
# The hidden units let the pixels of a digit depend on one another, as the
# strokes of a nine do, which no single pixel says. So both networks make
# fewer errors, and the DRBM has the best probabilities.
#
# The picture
# -----------
# Above, the weights of some units in one draw: violet pixels switch a unit on,
# orange ones off. No single unit is a digit, and another draw has other ones.
# Below, the digits that the DRBM doubts most, with its two best guesses.

machine = models["DRBM"]
weights = machine.model_.unpack(machine.draws_[0, -1])["W"][:10]
p = proba["DRBM"]
doubted = np.argsort(p.max(axis=1))[:10]
figure, rows = plt.subplots(2, 10, figsize=(9.5, 2.8), layout="constrained")
for ax, weight in zip(rows[0], weights, strict=True):
    size = np.abs(weight).max()
    ax.imshow(weight.reshape(8, 8), cmap="PuOr", vmin=-size, vmax=size)
for ax, i in zip(rows[1], doubted, strict=True):
    ax.imshow(X_test[i].reshape(8, 8), cmap="gray_r")
    second, first = np.argsort(p[i])[-2:]
    ax.set_title(f"{first} or {second}", fontsize="medium")
    guesses = f"{first} {p[i, first]:.0%}, {second} {p[i, second]:.0%}"
    print(f"a {y_test[i]}: {guesses}")
for ax in rows.flat:
    ax.set(xticks=[], yticks=[])
rows[0, 0].set_ylabel("units")
rows[1, 0].set_ylabel("doubted")
plt.show()
