"""
Answers of persons who use a scale differently
==============================================

A hundred persons rated eight messages each, from "never" to "always"
convincing. Half of the messages named a source. Does a source help? Some
persons say "always" to nearly everything and some to nothing, so that the
eight answers of a person are far from eight independent rows.

Answers with an order need an ordinal model, and each person a random
intercept. The ratings are simulated, so that the truth is known: a source
doubles the odds of a better answer.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from skbayes_sg import BayesianOrdinalClassifier
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.55"
ANSWERS = ["never", "rarely", "often", "always"]
EFFECT, SPREAD = np.log(2), 2.0
N_PERSONS, N_MESSAGES = 100, 8

# %%
# The ratings
# -----------
# A person's own level shifts all of her answers.

rng = np.random.default_rng(3)
person = np.repeat(np.arange(N_PERSONS), N_MESSAGES)
source = np.tile([0, 1], N_PERSONS * N_MESSAGES // 2)
own = rng.normal(0, SPREAD, N_PERSONS)
heard = EFFECT * source + own[person] + rng.logistic(size=len(person))
rating = np.array(ANSWERS)[np.digitize(heard, [-1.5, 0.5, 2.5])]
table = pd.DataFrame({"person": person.astype(str), "source": source})
counts = pd.crosstab(source, rating, rownames=["source"], colnames=[""])
print(counts[ANSWERS].to_string())

# %%
# Two models
# ----------
# One has the source as its only column. The other has a column for each
# person as well, whose coefficients share a standard deviation that is
# learned: random intercepts, or a mixed model.

levels = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
columns = ColumnTransformer(
    [("person", levels, ["person"]), ("message", "passthrough", ["source"])]
).set_output(transform="pandas")
X = columns.fit_transform(table)
simple = BayesianOrdinalClassifier(categories=ANSWERS, random_state=0)
simple.fit(X[["message__source"]], rating)
mixed = BayesianOrdinalClassifier(
    categories=ANSWERS, prior_groups="prefix", random_state=0
).fit(X, rating)
spread = mixed.summary(groups=True).loc["person"]
print(f"persons differ with a standard deviation of {spread['mean']:.1f}")
for name, model in (("without persons", simple), ("with persons", mixed)):
    odds = model.summary().loc["message__source"].filter(like="odds_ratio")
    middle, low, high = odds
    print(f"{name:16} odds ratio {middle:.2f} [{low:.2f}, {high:.2f}]")

# %%
# The picture
# -----------
# Left: without persons the effect of a source is drowned in their
# differences, and its odds ratio is too small: averaging over persons flattens
# it. Right: what the next person will answer to a message with a source. Of a
# person who answered before much is known. Of a new one only the distribution
# of persons is, and the probability of each answer may be almost anything.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9.5, 4), layout="constrained", width_ratios=(1, 1.4)
)
for model, colour, label in (
    (simple, ORANGE, "without persons"),
    (mixed, BLUE, "with persons"),
):
    draws = np.asarray(model.coef_samples_)[..., -1].ravel()
    left.hist(
        draws,
        bins=40,
        density=True,
        color=colour,
        alpha=0.5,
        label=label,
    )
left.axvline(EFFECT, color="0.2", linewidth=1.5, label="truth")
left.set(xlabel="log odds ratio of a source", yticks=[])
left.legend(frameon=False, fontsize="small")

most = str(np.argmax(own))
new = pd.DataFrame({"person": [most, "a new one"], "source": [1, 1]})
ends = mixed.predict_interval(columns.transform(new))
order = [list(mixed.classes_).index(answer) for answer in ANSWERS]
for row, (shift, colour, label) in enumerate(
    ((-0.12, BLUE, "the most convinced person"), (0.12, GREY, "a new person"))
):
    place = np.arange(len(ANSWERS)) + shift
    low, high = ends[row, order].T
    right.vlines(place, low, high, color=colour, linewidth=6, label=label)
    right.plot(
        place,
        mixed.predict_proba(columns.transform(new))[row, order],
        "o",
        color="white",
        markeredgecolor=colour,
        zorder=3,
    )
right.set_xticks(range(len(ANSWERS)), ANSWERS)
right.set(ylabel="probability, 95 % interval", ylim=(0, 1))
right.legend(frameon=False, loc="upper center")
plt.show()
