"""
Probabilities beside LogisticRegressionCV
=========================================

``LogisticRegressionCV`` chooses its penalty by cross-validation. The posterior learns its prior
from the same rows and averages over what is left unknown. Which of the two gives better
probabilities where rows are few, and where is each of them too sure?
"""

import warnings
from itertools import pairwise

import numpy as np
from matplotlib import pyplot as plt
from scipy.stats import binomtest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLogisticRegressionSGFS

ORANGE, BLUE = "#D55E00", "#0072B2"

# %%
# Five tasks
# ----------
# Each is learned from 50 rows, and tested on all its other rows. Diabetes is made a question of
# yes or no: is the disease further on than in half of the patients?

digits = load_digits(return_X_y=True)
threes_and_eights = np.isin(digits[1], (3, 8))
patients, progression = load_diabetes(return_X_y=True)
tasks = {
    "diabetes": (patients, progression > np.median(progression)),
    "breast cancer": load_breast_cancer(return_X_y=True),
    "digits, 3 or 8": (digits[0][threes_and_eights], digits[1][threes_and_eights]),
    "iris": load_iris(return_X_y=True),
    "wine": load_wine(return_X_y=True),
}


def models():
    """Both, unfitted."""
    return {
        "LogisticRegressionCV": LogisticRegressionCV(
            Cs=10,
            l1_ratios=(0,),
            scoring="neg_log_loss",
            max_iter=5000,
            use_legacy_attributes=False,
        ),
        "posterior": BayesianLogisticRegressionSGFS(random_state=0),
    }


# %%
# Six splits of each
# ------------------
# For the picture of reliability, an answer is the class of the largest probability. It is right
# or wrong, and its probability is what the model claims. Fifty rows that a line nearly separates
# say little of the prior's strength. A fit may then warn that what it learned of it is not
# settled, and such warnings are counted.

losses = {name: {task: [] for task in tasks} for name in models()}
claims = {name: [] for name in models()}
rights = {name: [] for name in models()}
unsettled = []
for task, (X, y) in tasks.items():
    for seed in range(6):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, train_size=50, stratify=y, random_state=seed
        )
        for name, model in models().items():
            model = make_pipeline(StandardScaler(), model)
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always", ConvergenceWarning)
                model.fit(X_train, y_train)
            unsettled += [task for warning in said]
            proba = model.predict_proba(X_test)
            losses[name][task].append(log_loss(y_test, proba))
            claims[name].append(proba.max(axis=1))
            rights[name].append(model.classes_[proba.argmax(axis=1)] == y_test)

print(f"{'log loss':16}{'LogisticRegressionCV':>22}{'posterior':>12}{'difference':>13}")
for task in tasks:
    cv, ours = (np.array(losses[name][task]) for name in losses)
    error = np.std(ours - cv, ddof=1) / np.sqrt(len(cv))
    difference = f"{np.mean(ours - cv):+.3f} ± {error:.3f}"
    print(f"{task:16}{cv.mean():22.3f}{ours.mean():12.3f}{difference:>17}")
print(f"fits that warn: {len(unsettled)} of {6 * len(tasks)} {unsettled or ''}")

# %%
# The picture
# -----------
# On the left small dots are single splits, large ones means. On the right are the answers of all
# tasks by the error that the model claims, 1 minus the probability of its answer. Above the
# diagonal a model errs more often than it says: it is too sure. Bars are 95 % intervals.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
rows = np.arange(len(tasks))
for shift, colour, marker, (name, of_task) in zip(
    (0.14, -0.14), (ORANGE, BLUE), "so", losses.items(), strict=True
):
    each = np.array(list(of_task.values()))
    left.plot(each, rows + shift, ".", color=colour, markersize=4, alpha=0.5)
    left.plot(each.mean(axis=1), rows + shift, marker, color=colour, label=name)
    claimed = 1 - np.concatenate(claims[name])
    wrong = ~np.concatenate(rights[name])
    for low, high in pairwise((0.0, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5)):
        inside = wrong[(claimed >= low) & (claimed < high)]
        ends = binomtest(int(inside.sum()), len(inside)).proportion_ci(method="wilson")
        at = claimed[(claimed >= low) & (claimed < high)].mean() * (1.0 + 0.4 * shift)
        right.plot([at, at], ends, color=colour, linewidth=1.5)
        right.plot(at, max(inside.mean(), 1e-4), marker, color=colour, markersize=5)
right.plot([1e-4, 0.5], [1e-4, 0.5], color="0.6", linewidth=1, zorder=0)
left.set(yticks=rows, yticklabels=tasks, xscale="log", xlabel="log loss of new rows")
left.set_xticks([0.06, 0.1, 0.2, 0.4, 0.6], [0.06, 0.1, 0.2, 0.4, 0.6])
left.minorticks_off()
left.invert_yaxis()
left.legend(frameon=False, loc="lower right")
left.set_title("50 rows to learn from", loc="left")
right.set(xscale="log", yscale="log", xlim=(3e-4, 0.6), ylim=(3e-4, 0.7))
ticks = [0.001, 0.01, 0.1, 0.5]
right.set_xticks(ticks, ticks)
right.set_yticks(ticks, ticks)
right.set(xlabel="error that is claimed", ylabel="share of wrong answers")
right.set_title("all tasks and splits together", loc="left")
right.annotate("too sure", (0.05, 0.9), xycoords="axes fraction", color="0.4")
right.annotate("too careful", (0.95, 0.06), xycoords="axes fraction", ha="right", color="0.4")
plt.show()

# %%
# Claims of at least 99 %
# -----------------------
# The surest answers are those that a decision rests on.

for name in losses:
    claim, right_ones = np.concatenate(claims[name]), np.concatenate(rights[name])
    sure = claim > 0.99
    print(
        f"{name:22}claims above .99: {sure.mean():5.1%} of the answers, "
        f"wrong {np.mean(~right_ones[sure]):.2%} of them, as claimed {np.mean(1 - claim[sure]):.2%}"
    )
