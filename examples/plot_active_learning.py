"""
Active learning: ask where the model does not know
==================================================

Labels are dear, rows are cheap. A classifier may choose the rows that somebody labels next. Here it
asks for those of the largest epistemic uncertainty, the part of its doubt that a label can remove
(Houlsby et al. 2011 call it BALD), and is set beside random rows and beside the total uncertainty.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLogisticRegressionSGFS

X, y = load_breast_cancer(return_X_y=True)
MODEL = BayesianLogisticRegressionSGFS(prior_precision=1.0, n_predict_draws=200, random_state=0)
START, STEP, ROUNDS, RUNS = 10, 4, 20, 8

# %%
# The loop
# --------
# After each round ``partial_fit`` updates the posterior by the new labels alone. It takes
# milliseconds, because it needs no sampler.


def learn(chosen_by, seed):
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
        figures.append((log_loss(y_test, proba), np.mean(proba.argmax(axis=1) != y_test)))
        if chosen_by == "random":
            worth = rng.random(len(unlabelled))
        else:
            worth = model.predict_uncertainty(pool[unlabelled])[chosen_by]
        best_first = np.argsort(-worth)
        asked, unlabelled = unlabelled[best_first[:STEP]], unlabelled[best_first[STEP:]]
    return figures


found = {
    by: np.array([learn(by, seed) for seed in range(RUNS)])
    for by in ("random", "total", "epistemic")
}

# %%
# The picture
# -----------
# Lines are means over eight divisions into pool and test rows, bands their standard errors.

labels = START + STEP * np.arange(ROUNDS + 1)
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
styles = {"random": ("0.45", ":"), "total": ("#D55E00", "--"), "epistemic": ("#0072B2", "-")}
for k, (ax, what) in enumerate(zip(axes, ("log loss", "share of errors"), strict=True)):
    for by, (colour, line) in styles.items():
        mean = found[by][..., k].mean(axis=0)
        error = found[by][..., k].std(axis=0, ddof=1) / np.sqrt(RUNS)
        ax.fill_between(labels, mean - error, mean + error, color=colour, alpha=0.15, linewidth=0)
        ax.plot(labels, mean, color=colour, linestyle=line, linewidth=2, label=by)
    ax.set(xlabel="labels asked for", ylabel=f"{what}, test rows", ylim=(0, None))
axes[0].legend(frameon=False, title="rows chosen by", alignment="left")
plt.show()

# %%
# In numbers
# ----------

print(f"{'chosen by':12}" + "".join(f"{n:>10} labels" for n in labels[[5, 10, 20]]))
for by in styles:
    mean = found[by][:, [5, 10, 20], 1].mean(axis=0)
    print(f"{by:12}" + "".join(f"{error:>11.1%} wrong" for error in mean))
enough = found["random"][:, -1, 1].mean()
for by in ("total", "epistemic"):
    first = np.flatnonzero(found[by][..., 1].mean(axis=0) <= enough)[0]
    print(f"{by}: {labels[first]} labels are as good as {labels[-1]} at random")
