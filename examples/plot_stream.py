"""
A stream that drifts
====================

Rows come in chunks, and what they follow changes. ``partial_fit`` updates the posterior chunk by
chunk. With ``forgetting_factor`` below 1 earlier rows count less and less. How much to forget can
be read off the stream itself: each chunk is predicted before it is learned.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss

from skbayes_sg import BayesianLogisticRegressionSGFS

BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"

# %%
# The stream
# ----------
# One coefficient swings slowly and then jumps. Four others stand still.

N_CHUNKS, ROWS = 150, 50
rng = np.random.default_rng(0)
time = np.arange(N_CHUNKS)
drifting = np.where(time < 100, 1.5 * np.sin(time / 16), 2.0)
still = np.array([1.0, -0.5, 0.3, 0.0])
chunks = []
for first in drifting:
    X = rng.standard_normal((ROWS, 5))
    p = 1 / (1 + np.exp(-X @ [first, *still]))
    chunks.append((X, (rng.random(ROWS) < p).astype(int), p))

# %%
# Predict, then learn
# -------------------


def follow(model):
    """Log loss of each chunk before it is learned, and the path of the first coefficient."""
    losses, path = [], []
    for t, (X, y, _) in enumerate(chunks):
        if t > 0:
            losses.append(log_loss(y, model.predict_proba(X), labels=[0, 1]))
        model.partial_fit(X, y, classes=[0, 1])
        path.append((model.coef_[0, 0], getattr(model, "coef_std_", np.zeros((1, 1)))[0, 0]))
    return np.array(losses), np.array(path).T


factors = (0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)
found = {
    factor: follow(
        BayesianLogisticRegressionSGFS(
            prior_precision=1.0, forgetting_factor=factor, n_predict_draws=200, random_state=0
        )
    )
    for factor in factors
}
steps = (0.01, 0.03, 0.1, 0.3)
sgd = {
    step: follow(
        SGDClassifier(loss="log_loss", learning_rate="constant", eta0=step, random_state=0)
    )
    for step in steps
}
truth = np.mean([log_loss(y, p) for _, y, p in chunks[1:]])
print(f"{'the truth itself':24} log loss {truth:.3f}")
for factor, (losses, _) in found.items():
    print(f"{f'forgetting_factor={factor}':24} log loss {losses.mean():.3f}")
for step, (losses, _) in sgd.items():
    print(f"{f'SGDClassifier, eta0={step}':24} log loss {losses.mean():.3f}")
best_sgd = min(losses.mean() for losses, _ in sgd.values())
best = min(found, key=lambda factor: found[factor][0].mean())

# %%
# The picture
# -----------
# Bands are two posterior standard deviations. Without forgetting the posterior is narrow around
# a mean of all times. With it the band is as wide as few recent rows make it, and holds the
# truth most of the time. ``SGDClassifier`` forgets too, at a speed that its step size sets. The
# best of four steps predicts about as well; what it does not have is the band.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4.2), layout="constrained", width_ratios=(2, 1)
)
left.plot(time, drifting, color="0.2", linewidth=1.5)
for factor, colour in ((1.0, ORANGE), (best, BLUE)):
    mean, sd = found[factor][1]
    left.fill_between(time, mean - 2 * sd, mean + 2 * sd, color=colour, alpha=0.2, linewidth=0)
    left.plot(time, mean, color=colour, linewidth=1.5)
    left.annotate(
        f"factor {factor}",
        (time[-1], mean[-1]),
        (4, 0),
        textcoords="offset points",
        color=colour,
        va="center",
        annotation_clip=False,
    )
left.annotate("truth", (102, 2.0), (-4, 8), textcoords="offset points", ha="right", color="0.2")
left.set(xlabel="chunk of 50 rows", ylabel="coefficient that drifts", xlim=(0, N_CHUNKS - 1))
means = [found[factor][0].mean() for factor in factors]
right.plot(range(len(factors)), means, "o-", color=BLUE)
right.axhline(truth, color="0.2", linewidth=1)
right.annotate("truth", (0, truth), (0, 4), textcoords="offset points", color="0.2")
right.axhline(best_sgd, color=GREEN, linewidth=1, linestyle="--")
right.annotate(
    "SGDClassifier, best eta0", (2.6, best_sgd), (0, 4), textcoords="offset points", color=GREEN
)
right.set(
    xticks=range(len(factors)),
    xticklabels=factors,
    xlabel="forgetting_factor",
    ylabel="log loss of the chunk to come",
)
plt.show()

# %%
# Does the band hold the truth?
# -----------------------------

for factor in (1.0, best):
    mean, sd = found[factor][1]
    share = np.mean(abs(drifting - mean) < 2 * sd)
    print(f"forgetting_factor={factor}: truth within two sd in {share:.0%}")
