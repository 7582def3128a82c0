"""
Active learning by epistemic uncertainty
========================================

Labels are expensive, rows are cheap, and a classifier can choose the rows to
be labelled next. Here it chooses those of the largest epistemic uncertainty,
the part of its uncertainty that a label can remove (BALD, Houlsby et al.
2011), which is compared with random rows and with the total uncertainty.
"""

import warnings

import numpy as np
from matplotlib import pyplot as plt
from skbayes_sg import BayesianLogisticRegression
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

MODEL = BayesianLogisticRegression(
    prior_precision=1.0, n_predict_draws=200, random_state=0
)
START, ROUNDS, RUNS = 10, 20, 6
STYLES = {
    "random": ("0.45", ":"),
    "total": ("#D55E00", "--"),
    "epistemic": ("#0072B2", "-"),
}

# %%
# Two tasks
# ---------
# The classes of tumours are hardly noisy: with enough rows few errors remain.
# Whether diabetes goes on faster than in half of the patients is noisy: many
# answers stay wrong however many rows there are. In a round four labels are
# asked for in the first task, and eight in the second.

patients, progression = load_diabetes(return_X_y=True)
tasks = {
    "breast cancer": (*load_breast_cancer(return_X_y=True), 4),
    "diabetes": (
        patients,
        (progression > np.median(progression)).astype(int),
        8,
    ),
}

# %%
# The loop
# --------
# After each round ``partial_fit`` updates the posterior by the new labels
# alone. It takes milliseconds, because it needs no sampler. Of ten rows no
# normal distribution is the posterior, as a stream warns; later rows mend it.

warnings.simplefilter("ignore", ConvergenceWarning)


def learn(X, y, step, chosen_by, seed):
    """Log loss and share of errors on test rows, after each round."""
    pool, test, y_pool, y_test = train_test_split(
        X, y, test_size=0.3, stratify=y, random_state=seed
    )
    scaler = StandardScaler().fit(pool)
    pool, test = scaler.transform(pool), scaler.transform(test)
    rng = np.random.default_rng(seed)
    unlabelled = rng.permutation(len(pool))
    asked, unlabelled = unlabelled[:START], unlabelled[START:]
    model, figures = clone(MODEL), []
    for _ in range(ROUNDS + 1):
        model.partial_fit(pool[asked], y_pool[asked], classes=[0, 1])
        proba = model.predict_proba(test)
        figures.append(
            (log_loss(y_test, proba), np.mean(proba.argmax(axis=1) != y_test))
        )
        if chosen_by == "random":
            worth = rng.random(len(unlabelled))
        else:
            worth = model.predict_uncertainty(pool[unlabelled])[chosen_by]
        best_first = np.argsort(-worth)
        asked, unlabelled = (
            unlabelled[best_first[:step]],
            unlabelled[best_first[step:]],
        )
    return figures


found = {
    (task, by): np.array([learn(*rows, by, seed) for seed in range(RUNS)])
    for task, rows in tasks.items()
    for by in STYLES
}

# %%
# In numbers
# ----------

for task, (_, _, step) in tasks.items():
    labels = START + step * np.arange(ROUNDS + 1)
    rounds = [3, 5, 10, 20]
    print(f"{task:14}" + "".join(f"{n:>9} labels" for n in labels[rounds]))
    for by in STYLES:
        losses, errors = found[task, by][:, rounds].mean(axis=0).T
        shown = "".join(
            f"{loss:8.3f} {error:7.1%}"
            for loss, error in zip(losses, errors, strict=True)
        )
        print(f"  {by:12}{shown}")
print("log loss, and share of errors")

# %%
# The picture
# -----------
# Lines are means over six divisions into pool and test rows, bands their
# standard errors. Of clean labels, those that the model asks for are worth
# several random ones, and the total uncertainty finds them too. Of noisy
# labels no choice is much better than chance. There the total uncertainty asks
# for rows whose labels say little.

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, (task, (_, _, step)) in zip(axes, tasks.items(), strict=True):
    labels = START + step * np.arange(ROUNDS + 1)
    for by, (colour, line) in STYLES.items():
        losses = found[task, by][..., 0]
        mean, error = (
            losses.mean(axis=0),
            losses.std(axis=0, ddof=1) / np.sqrt(RUNS),
        )
        ax.fill_between(
            labels,
            mean - error,
            mean + error,
            color=colour,
            alpha=0.15,
            linewidth=0,
        )
        ax.plot(
            labels, mean, color=colour, linestyle=line, linewidth=2, label=by
        )
    ax.set(xlabel="labels asked for", ylabel="log loss, test rows")
    ax.set_title(task, loc="left")
axes[0].set_ylim(bottom=0)
axes[0].legend(frameon=False, title="rows chosen by", alignment="left")
plt.show()
