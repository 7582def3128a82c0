"""
A stream that drifts, and decisions that cost
=============================================

A desk reviews payments. A review costs 1, and a fraud that is missed costs 15.
Each morning the desk decides which of the day's payments to review; by the
next morning all frauds are known. From time to time the frauds change their
pattern without notice. How fast should the desk forget, and what does the
wrong choice cost?

``partial_fit`` updates the posterior day by day, and with
``forgetting_factor`` below 1 earlier days count less and less. The payments
are generated, because then the cost of the best decisions is known.
"""

import warnings

import numpy as np
from matplotlib import pyplot as plt
from skbayes_sg import BayesianLogisticRegression
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss

BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
REVIEW, FRAUD = 1, 15

# %%
# The payments
# ------------
# Two hundred each day, with six measurements. On day 60 one of them ceases to
# be a sign of fraud and another one starts; on day 110 this happens again.

DAYS, ROWS = 150, 200
rng = np.random.default_rng(0)
day = np.arange(DAYS)
truth = np.tile([1.2, 0.8, 0.0, 0.0, -0.5, 0.0], (DAYS, 1))
truth[60:, :3] = 0.0, 0.8, 1.4
truth[110:, 1:4] = 0.0, 1.0, 1.4
X = rng.standard_normal((DAYS, ROWS, 6))
p = 1 / (1 + np.exp(4.0 - np.einsum("dri,di->dr", X, truth)))
y = (rng.random((DAYS, ROWS)) < p).astype(int)
print(f"{y.mean():.1%} are frauds, {y.sum(axis=1).mean():.0f} a day")

# %%
# Predict, decide, learn
# ----------------------
# A payment is reviewed if its expected loss, 15 times the probability of
# fraud, exceeds the cost of the review. The probability is that of
# ``predict_proba``, which averages over the posterior. Before the first day
# nothing is known, and everything is reviewed. A posterior that forgets too
# little for what it sees warns once, on the evening that is printed.


def follow(model):
    """Probabilities in the morning, and coefficients in the evening."""
    probability, path = np.ones((DAYS, ROWS)), []
    for t in range(DAYS):
        if t > 0:
            probability[t] = model.predict_proba(X[t])[:, 1]
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", ConvergenceWarning)
            model.partial_fit(X[t], y[t], classes=[0, 1])
        if said:
            print(f"evening {t}, {model.forgetting_factor}: the truth moves")
        path.append(
            (model.coef_[0], getattr(model, "coef_std_", model.coef_)[0])
        )
    return probability, np.array(path)


def cost(probability):
    """What each day costs under the rule."""
    reviewed = FRAUD * probability > REVIEW
    return REVIEW * reviewed.sum(axis=1) + FRAUD * (y * ~reviewed).sum(axis=1)


factors = (0.7, 0.8, 0.9, 0.95, 1.0)
followed = {
    factor: follow(
        BayesianLogisticRegression(
            prior_precision=1.0,
            forgetting_factor=factor,
            n_predict_draws=200,
            random_state=0,
        )
    )
    for factor in factors
}
costs = {
    f"forgetting_factor={factor}": cost(found)
    for factor, (found, _) in followed.items()
}

# %%
# How much to forget, without hindsight
# -------------------------------------
# The five posteriors may run side by side, as an update takes milliseconds.
# Each morning the desk uses the one that predicted the past 30 days best, by
# its log loss before those days were learned.

losses = np.array(
    [
        [
            log_loss(y[t], np.clip(found[t], 1e-9, 1 - 1e-9), labels=[0, 1])
            for t in range(1, DAYS)
        ]
        for found, _ in followed.values()
    ]
)
chosen = np.full(DAYS, len(factors) - 1)
for t in range(2, DAYS):
    chosen[t] = losses[:, max(0, t - 31) : t - 1].mean(axis=1).argmin()
mixed = np.array([followed[factors[chosen[t]]][0][t] for t in range(DAYS)])
costs["best of the past 30 days"] = cost(mixed)

# %%
# For comparison: no reviews, reviews of all, ``SGDClassifier`` with four step
# sizes, which set how fast it forgets, and the true probabilities, which
# nobody has.

for step in (0.003, 0.01, 0.03, 0.1):
    sgd = SGDClassifier(
        loss="log_loss", learning_rate="constant", eta0=step, random_state=0
    )
    costs[f"SGDClassifier, eta0={step}"] = cost(follow(sgd)[0])
costs["review nothing"] = cost(np.zeros((DAYS, ROWS)))
costs["review everything"] = cost(np.ones((DAYS, ROWS)))
best = cost(p)
for name, each in {"true probabilities": best, **costs}.items():
    print(f"{name:26} {each[1:].mean():5.0f} a day")

# %%
# The picture
# -----------
# Left, the coefficient of the measurement that matters from day 60 on, with
# two posterior standard deviations. A posterior that forgets nothing averages
# over all patterns that there ever were, and its narrow band says how sure it
# is of this average. With forgetting the band is as wide as the recent days
# make it. Right, what each policy has cost beyond the true probabilities. The
# two changes cost every policy something; one that remembers goes on paying.

quick = 0.9
figure, (left, right) = plt.subplots(
    1, 2, figsize=(10.5, 4.4), layout="constrained"
)
left.plot(day, truth[:, 2], color="0.2", lw=1.5, label="truth")
for factor, colour in ((1.0, ORANGE), (quick, BLUE)):
    mean, sd = followed[factor][1][:, :, 2].T
    left.fill_between(
        day, mean - 2 * sd, mean + 2 * sd, color=colour, alpha=0.2, lw=0
    )
    left.plot(
        day, mean, color=colour, lw=1.5, label=f"forgetting_factor={factor}"
    )
left.set(
    xlabel="day",
    ylabel="coefficient of the third measurement",
    xlim=(0, DAYS - 1),
)
left.legend(frameon=False)
for name, colour, style in (
    ("forgetting_factor=1.0", ORANGE, "-"),
    (f"forgetting_factor={quick}", BLUE, "-"),
    ("best of the past 30 days", BLUE, ":"),
    ("SGDClassifier, eta0=0.003", GREEN, "--"),
    ("SGDClassifier, eta0=0.03", GREEN, "-"),
):
    right.plot(
        day[1:],
        np.cumsum((costs[name] - best)[1:]),
        style,
        color=colour,
        label=name,
    )
for ax in (left, right):
    for change in (60, 110):
        ax.axvline(change, color="0.8", lw=0.8, zorder=0)
right.set(
    xlabel="day",
    ylabel="cost beyond the true probabilities, in sum",
    xlim=(0, DAYS - 1),
)
right.legend(frameon=False)
plt.show()

# %%
# Does the band hold the truth?
# -----------------------------
# Over all days and coefficients:

for factor in factors:
    mean, sd = followed[factor][1].transpose(1, 0, 2)
    held = np.mean(abs(truth - mean) < 2 * sd)
    print(f"forgetting_factor={factor}: truth within two sd in {held:.0%}")

# %%
# The decision
# ------------
# The desk forgets, and lets the past month choose how much: that costs about
# as much as the best factor in hindsight. Reviewers are hired for the reviews
# of a busy day. ``SGDClassifier`` with a good step is as cheap, and its step
# could be chosen in the same way. What it does not have is the band, which
# says when the coefficients are known well enough to ask the payment provider
# about the third measurement.

reviews = (FRAUD * mixed > REVIEW)[30:].sum(axis=1)
busy = np.quantile(reviews, 0.95)
print(f"reviews: {reviews.mean():.0f} a day, on a busy day {busy:.0f}")
policy = costs["best of the past 30 days"][1:].mean()
for name in ("review nothing", "forgetting_factor=1.0"):
    print(
        f"saved against '{name}': {costs[name][1:].mean() - policy:.0f} a day"
    )
