"""
A classifier that may abstain
=============================

Some answers are better left to a human. If probabilities are calibrated, costs
decide which: ask wherever the expected cost of an error exceeds that of a
question. Are probabilities reliable enough when training rows are few?
"""

import warnings

import numpy as np
from matplotlib import pyplot as plt
from skbayes_sg import AbstentionDisplay, BayesianLogisticRegression
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

COST = 20  # of an error, in units of the cost of asking

# %%
# Learn from 40 rows, in twelve splits
# ------------------------------------
# A plane separates the classes of 40 rows with 30 columns. Rows bound the size
# of the coefficients from one side only then, chains are slow to explore the
# other, and some fits say so. Probabilities are what counts here.

warnings.filterwarnings("ignore", category=ConvergenceWarning)
X, y = load_breast_cancer(return_X_y=True)
models = {
    "LogisticRegression": LogisticRegression(max_iter=5000),
    "LogisticRegressionCV": LogisticRegressionCV(
        Cs=10,
        l1_ratios=(0,),
        scoring="neg_log_loss",
        max_iter=5000,
        use_legacy_attributes=False,
    ),
    "posterior": BayesianLogisticRegression(random_state=0),
}
styles = {
    name: {"color": colour, "linestyle": line, "linewidth": 2}
    for name, colour, line in zip(
        models, ("#D55E00", "0.45", "#0072B2"), ("--", ":", "-"), strict=True
    )
}
probabilities, labels = {name: [] for name in models}, []
for seed in range(12):
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, train_size=40, stratify=y, random_state=seed
    )
    labels.append(y_test)
    for name, model in models.items():
        pipeline = make_pipeline(StandardScaler(), model).fit(X_train, y_train)
        probabilities[name].append(pipeline.predict_proba(X_test))
labels = np.concatenate(labels)
probabilities = {
    name: np.concatenate(each) for name, each in probabilities.items()
}

# %%
# The picture
# -----------
# On the left the surest rows are answered first: the lower the curve, the
# better a model knows which of its answers are wrong. On the right a row is
# answered if the probability of the predicted class is above a threshold. The
# vertical line is the threshold that follows from the costs. The lines below
# the picture set what it costs beside the cost that the model's own
# probabilities let one expect. Cross-validation in 40 rows often chooses a
# weak penalty, and then expects too little. The posterior expects too much,
# and so asks more than it must. The default penalty of ``LogisticRegression``
# happens to suit these data.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4.2), layout="constrained"
)
thresholds = 1 - np.logspace(np.log10(0.5), -3.5, 200)
rule = 1 - 1 / COST
for name, proba in probabilities.items():
    AbstentionDisplay.from_predictions(
        labels, proba, name=name, ax=left, **styles[name]
    )
    sure, wrong = proba.max(axis=1), proba.argmax(axis=1) != labels
    costs = [
        np.mean(np.where(sure > t, COST * wrong, 1.0)) for t in thresholds
    ]
    right.plot(1 - thresholds, costs, label=name, **styles[name])
    answered = sure > rule
    expected = np.mean(np.where(answered, COST * (1 - sure), 1.0))
    cost = np.mean(np.where(answered, COST * wrong, 1.0))
    print(f"{name:22}answers {answered.mean():.0%}, costs {cost:.3f}", end="")
    print(f", expected {expected:.3f}, at best {min(costs):.3f}")
left.set_title("answer the surest rows first", loc="left")
right.axvline(1 / COST, color="0.6", linewidth=1, zorder=0)
right.annotate(
    "the rule",
    (1 / COST, 1),
    (4, -4),
    xycoords=("data", "axes fraction"),
    textcoords="offset points",
    va="top",
    color="0.4",
)
right.set(
    xscale="log",
    xlabel="answer if the probability of an error is below",
    ylabel="cost per row (asking costs 1)",
    ylim=(0, None),
)
right.set_title(f"an error costs {COST} questions", loc="left")
plt.show()
