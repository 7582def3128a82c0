"""
Learned relevance of features
=============================

Diabetes has ten columns. Twenty more are made of them by shuffling, so that they cannot matter. A
prior precision for every column, learned while sampling, finds out which columns do (automatic
relevance determination). It stands beside one learned precision for all columns, and beside
scikit-learn's ``ARDRegression``.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.linear_model import ARDRegression, LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLinearRegressionSGFS, VariationalEM

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.55"
N_PROBES = 20

# %%
# Columns that matter, and probes
# -------------------------------

X, y = load_diabetes(return_X_y=True, as_frame=True)
rng = np.random.default_rng(0)
for k in range(N_PROBES):
    X[f"probe {k}"] = rng.permutation(X[rng.choice(X.columns[:10])])
X[:] = StandardScaler().fit_transform(X)
is_probe = X.columns.str.startswith("probe")

models = {
    "least squares": LinearRegression(),
    "one precision": BayesianLinearRegressionSGFS(random_state=0),
    "one for each column": BayesianLinearRegressionSGFS(
        prior_precision=VariationalEM(per="feature"), random_state=0
    ),
    "ARDRegression": ARDRegression(),
}

# %%
# On new patients
# ---------------
# Six splits of 150 patients to learn from, and the others to test. Least squares shows what the
# probes cost without a prior.

scores = {name: [] for name in models}
for seed in range(6):
    split = train_test_split(X, y, train_size=150, random_state=seed)
    for name, model in models.items():
        scores[name].append(r2_score(split[3], model.fit(split[0], split[2]).predict(split[1])))
for name, each in scores.items():
    print(f"{name:20} R2 of new patients {np.mean(each):.3f} ± {np.std(each, ddof=1) / 6**0.5:.3f}")

# %%
# The picture
# -----------
# All patients. A precision is drawn as the standard deviation of the prior, the root of noise
# variance over precision, which has the unit of a coefficient. On the right are the coefficients
# with two posterior standard deviations.

for model in models.values():
    model.fit(X, y)
one, each = models["one precision"], models["one for each column"]
prior_sd = np.sqrt(each.noise_variance_ / each.prior_precision_[: X.shape[1]])
sd_of_all = np.sqrt(one.noise_variance_ / one.prior_precision_[0])
order = np.argsort(prior_sd)
place = np.arange(len(order))
figure, (left, right) = plt.subplots(
    1, 2, figsize=(9.5, 6), layout="constrained", sharey=True, width_ratios=(1, 1.6)
)
colours = np.where(is_probe, GREY, BLUE)[order]
left.hlines(place, prior_sd.min() / 1.5, prior_sd[order], color=colours, linewidth=1)
left.scatter(prior_sd[order], place, color=colours, s=22)
left.axvline(sd_of_all, color=ORANGE, linewidth=1, linestyle="--")
left.annotate(
    "one precision\nfor all",
    (sd_of_all, 3),
    (-5, 0),
    textcoords="offset points",
    ha="right",
    color=ORANGE,
)
left.set(xscale="log", xlabel="standard deviation of the learned prior")
left.set_yticks(place, X.columns[order], fontsize="small")
for label, colour in zip(left.get_yticklabels(), colours, strict=True):
    label.set_color(colour)
for shift, colour, marker, name, model in (
    (-0.16, ORANGE, "s", "one precision for all", one),
    (0.16, BLUE, "o", "one for each column", each),
):
    mean, sd = model.coef_[order], model.coef_std_[order]
    right.hlines(place + shift, mean - 2 * sd, mean + 2 * sd, color=colour, linewidth=1.5)
    right.plot(mean, place + shift, marker, color=colour, markersize=4, label=name)
right.axvline(0, color="0.6", linewidth=0.8, zorder=0)
right.set(xlabel="coefficient")
right.legend(frameon=False, loc="lower right")
plt.show()

# %%
# What was switched off
# ---------------------
# Nothing protects from chance: a probe that happens to go along with the outcome of these
# patients keeps its coefficient, under both priors.

narrow = each.coef_std_ < 0.5 * one.coef_std_
print(f"switched off (less than half as wide): {narrow[is_probe].sum()} of {N_PROBES} probes,")
print(f"and of the ten columns: {', '.join(X.columns[narrow & ~is_probe]) or 'none'}")
for name, model in (("one precision", one), ("one for each column", each)):
    clear = np.abs(model.coef_) > 1.96 * model.coef_std_
    print(
        f"{name}: 95 % intervals without 0 are those of {clear[~is_probe].sum()} columns ", end=""
    )
    print(f"and {clear[is_probe].sum()} probes")
