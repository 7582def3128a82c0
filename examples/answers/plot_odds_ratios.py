"""
Odds ratios of a table of factors
=================================

In 1974 the magazine Redbook asked its readers about their marriages. Of the
6,366 women in the data that statsmodels ships (Fair, 1978), a third had had an
affair. Suppose that the answers are to become a table of odds ratios: by the
rating of the marriage, religion, education, and the occupations of the wife
and of the husband. Which factors deserve a place in it? And does it matter how
the two occupations are *paired*?

The pairs make the question difficult. There are 36 of them, and some hold two
or three women. Maximum likelihood, here by statsmodels, estimates each from
its own women alone. A hierarchical prior learns from the rows how much the
levels of each factor differ, and pulls rare levels towards their mean as far
as that suggests.
"""

import numpy as np
import pandas as pd
import statsmodels.api as sm
from matplotlib import pyplot as plt
from scipy.stats import chi2
from skbayes_sg import BayesianLogisticRegression
from skbayes_sg.inspection import contrast
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

ORANGE, BLUE = "#D55E00", "#0072B2"

# %%
# The answers
# -----------
# Ratings and occupations were given as numbers; as factors they have names.
# The pair of occupations is a factor of its own.

raw = sm.datasets.fair.load_pandas().data
names = {
    "marriage": ("rate_marriage", "very poor, poor, fair, good, very good"),
    "religious": ("religious", "not, mildly, fairly, strongly"),
    "wife": (
        "occupation",
        "student, unskilled, white-collar, skilled, manager, professional",
    ),
    "husband": (
        "occupation_husb",
        "student, unskilled, white-collar, skilled, manager, professional",
    ),
}
numbers = ["age", "yrs_married", "children"]
women = raw[numbers].assign(
    school=raw["educ"].astype(int).astype(str) + " years"
)
for name, (column, levels) in names.items():
    women[name] = raw[column].map(dict(enumerate(levels.split(", "), start=1)))
women["pair"] = women["wife"] + " & " + women["husband"]
affair = (raw["affairs"] > 0).to_numpy()
factors = ["marriage", "religious", "school", "wife", "husband"]
print(f"{len(women)} women, {affair.mean():.0%} with an affair")
print(
    women["pair"]
    .value_counts()
    .describe()[["count", "min", "50%", "max"]]
    .to_string()
)

# %%
# Maximum likelihood
# ------------------
# Each factor needs a level to which the others are compared. The pairs contain
# the occupations, and replace them in the second model. A likelihood-ratio
# test asks whether they explain more than the two occupations do by
# themselves.


def maximum_likelihood(factors):
    """The fit by statsmodels and its columns: levels, numbers, a constant."""
    levels = pd.get_dummies(women[factors], drop_first=True, dtype=float)
    scaled = (women[numbers] - women[numbers].mean()) / women[numbers].std()
    columns = pd.concat([levels, scaled], axis=1).assign(constant=1.0)
    return sm.Logit(affair, columns).fit(
        disp=False, warn_convergence=False
    ), columns


separate, _ = maximum_likelihood(factors)
paired, columns = maximum_likelihood(
    ["marriage", "religious", "school", "pair"]
)
more = int(paired.df_model - separate.df_model)
p_value = chi2.sf(2 * (paired.llf - separate.llf), more)
print(f"{more} more coefficients for pairs: p = {p_value:.2f}")

# %%
# So the test does not ask for pairs. But that is all it says: neither how
# large their effects may be, nor what to print for one of them. Take each pair
# against the most common one. No student whose husband has a white collar had
# an affair. The estimate of this pair is minus infinity, the search does not
# converge, and the interval is whatever it left behind. statsmodels would
# warn.

sizes = women["pair"].value_counts()
common = sizes.index[0]
rows = pd.DataFrame(0.0, sizes.index, columns.columns)
for pair in sizes.index:
    for sign, level in ((1, f"pair_{pair}"), (-1, f"pair_{common}")):
        if level in rows:
            rows.loc[pair, level] += sign
test = paired.t_test(rows.to_numpy())
ends = np.column_stack([test.effect, test.conf_int()])
wald = pd.DataFrame(ends, sizes.index, ["mid", "low", "high"])
print(
    "the most common pair:",
    common,
    " converged:",
    paired.mle_retvals["converged"],
)
print(wald.iloc[[1, 2, -3, -2, -1]].round(2).assign(women=sizes).to_string())

# %%
# A hierarchical prior
# --------------------
# All levels have a column now, as none has to be left out.
# ``ColumnTransformer`` puts the factor before the names of its levels, and
# ``prior_groups="prefix"`` gives every factor a standard deviation of its own,
# which is sampled with the coefficients. Occupations and pairs stand side by
# side: the pairs have to explain only what the two occupations leave. There
# are twice as many draws as by default, because spreads are slow to explore
# where rows are few; a fit of the 600 women further down would warn.


def hierarchical(factors):
    """A pipeline from the table of answers to the posterior."""
    levels = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    table = ColumnTransformer(
        [
            *((name, levels, [name]) for name in factors),
            ("numbers", StandardScaler(), numbers),
        ]
    ).set_output(transform="pandas")
    model = BayesianLogisticRegression(
        prior_groups="prefix", n_draws=250, random_state=0
    )
    return make_pipeline(table, model)


everything = hierarchical([*factors, "pair"]).fit(women, affair)
model = everything[-1]
spread = model.summary(groups=True)
print(
    spread[["n_coefficients", "mean", "eti95_lb", "eti95_ub"]]
    .round(2)
    .to_string()
)

# %%
# The table answers the question about factors. A standard deviation of .1
# changes odds by ten per cent, which is less than anyone would print. Those of
# the husband's occupation and of the pairs are mostly below it; ratings of the
# marriage differ by far more.
#
# The picture
# -----------
# Left, each pair against the most common one, the rarest pairs at the bottom.
# Wald intervals grow without bound where women are few. In the posterior a
# rare pair has about the odds that the two occupations give it, with about
# their uncertainty. Right, the spread of each factor.


def coefficients(model):
    """One row for each draw, one named column for each coefficient."""
    draws = model.coef_samples_[:, :, 0].reshape(-1, model.n_features_in_)
    return pd.DataFrame(draws, columns=model.feature_names_in_)


coef = coefficients(model)
effect = pd.DataFrame(
    {
        pair: coef[f"wife__wife_{wife}"]
        + coef[f"husband__husband_{husband}"]
        + coef[f"pair__pair_{pair}"]
        for pair in sizes.index
        for wife, husband in [pair.split(" & ")]
    }
)
effect = effect.sub(effect[common], axis=0)
posterior = effect.quantile([0.5, 0.025, 0.975]).T.set_axis(
    ["mid", "low", "high"], axis=1
)

figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 7.5), layout="constrained", width_ratios=(2.2, 1)
)
LIMIT = 20
order = sizes.index[::-1]
for shift, table, colour, label in (
    (-0.18, wald, ORANGE, "maximum likelihood, Wald"),
    (0.18, posterior, BLUE, "hierarchical prior"),
):
    mid, low, high = np.exp(table.loc[order].clip(-20, 20).to_numpy().T)
    rows = np.arange(len(order)) + shift
    left.hlines(
        rows, low.clip(1 / LIMIT), high.clip(max=LIMIT), color=colour, lw=1.8
    )
    seen = (mid > 1 / LIMIT) & (mid < LIMIT)
    left.plot(mid[seen], rows[seen], "o", color=colour, ms=3.5, label=label)
left.axvline(1, color="0.6", lw=0.8, zorder=0)
left.set(
    xscale="log",
    xlim=(1 / LIMIT, LIMIT),
    ylim=(-1, len(order)),
    xlabel=f"odds ratio to {common}",
)
left.set_xticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
left.minorticks_off()
left.set_yticks(
    range(len(order)),
    [f"{pair} ({sizes[pair]})" for pair in order],
    fontsize=8,
)
left.set_title("wife & husband (number of women)", loc="left")
left.legend(frameon=False, loc="upper left", fontsize=9)
shown = spread.loc[
    ["pair", "husband", "school", "wife", "religious", "marriage"]
]
right.hlines(
    range(len(shown)), shown["eti95_lb"], shown["eti95_ub"], color=BLUE, lw=2
)
right.plot(shown["mean"], range(len(shown)), "o", color=BLUE)
right.axvline(0.1, color="0.6", lw=0.8, zorder=0)
right.set_yticks(range(len(shown)), shown.index)
right.set(
    xlim=(0, None),
    ylim=(-0.6, len(shown) - 0.4),
    xlabel="standard deviation of log odds ratios",
)
right.set_title("how much levels differ", loc="left")
plt.show()

# %%
# Does it predict better?
# -----------------------
# A prior that is right about the levels should help most where women are few.
# Learn from 600 of them, and predict the others: with the pairs and without,
# by both methods.

losses = {}
for seed in range(2):
    train, test, y_train, y_test = train_test_split(
        women, affair, train_size=600, stratify=affair, random_state=seed
    )
    for chosen, name in (
        (factors, "without pairs"),
        ([*factors, "pair"], "with pairs"),
    ):
        posterior_fit = hierarchical(chosen).fit(train, y_train)
        # a penalty of 1e-4 only chooses among equal solutions
        plain = make_pipeline(
            posterior_fit[0], LogisticRegression(C=1e4, max_iter=5000)
        )
        for method, fit in (
            ("hierarchical prior", posterior_fit),
            ("maximum likelihood", plain.fit(train, y_train)),
        ):
            losses.setdefault((method, name), []).append(
                log_loss(y_test, fit.predict_proba(test)[:, 1])
            )
print(
    pd.Series({key: np.mean(value) for key, value in losses.items()})
    .unstack()
    .round(3)
    .to_string()
)

# %%
# The decision
# ------------
# A factor is printed if its levels probably differ by more than ten per cent
# in the odds, that is, if its interval of the spread lies above .1. The model
# is then fitted again with these factors alone. Each level is compared with
# the average woman, draw by draw. So no level has to be the one that all
# others are compared with; the student wives, 41 women, would have made a poor
# one.

kept = [name for name in factors if spread.loc[name, "eti95_lb"] > 0.1]
final = hierarchical(kept).fit(women, affair)
coef = coefficients(final[-1])
rows = {}
for name in kept:
    levels = coef.filter(like=f"{name}__")
    average = levels @ final[0].transform(women)[levels.columns].mean()
    low, mid, high = np.exp(
        levels.sub(average, axis=0).quantile([0.025, 0.5, 0.975]).to_numpy()
    )
    for level, *ends in zip(levels, mid, low, high, strict=True):
        rows[level.split("__")[1].replace("_", ": ")] = ends
print(pd.DataFrame(rows, ["odds ratio", "from", "to"]).T.round(2).to_string())

# %%
# An odds ratio is not what readers ask for. ``contrast`` answers in
# probabilities: if all wives were managers instead of white-collar workers,
# and all else as it is, how many more affairs would be expected? The survey
# cannot say what causes what; this is a comparison of women who are alike in
# the other columns.

managers, others = (
    women.assign(wife="manager"),
    women.assign(wife="white-collar"),
)
print(
    contrast(final, managers, others)[["mean", "eti95_lb", "eti95_ub"]]
    .round(3)
    .to_string()
)
