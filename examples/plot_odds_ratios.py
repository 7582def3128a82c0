"""
Odds ratios beside Wald intervals
=================================

Tables of odds ratios usually come from maximum likelihood with Wald intervals, as in statsmodels.
Here is the same table from a posterior, for many patients and for few. The Wald intervals are those
of statsmodels if it is installed, and three lines of NumPy otherwise.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLogisticRegressionSGFS
from skbayes_sg.inspection import average_effects, prior_sensitivity

try:
    import statsmodels.api as statsmodels
except ImportError:
    statsmodels = None

ORANGE, BLUE = "#D55E00", "#0072B2"

# %%
# Data
# ----
# Ten measurements of diabetes patients, in standard deviations. The outcome: is the disease a
# year later further on than in half of the patients?

X, y = load_diabetes(return_X_y=True, as_frame=True)
X = StandardScaler().set_output(transform="pandas").fit_transform(X)
y = (y > y.median()).to_numpy()

# %%
# Wald intervals
# --------------
# The covariance is the inverse of the expected information at the maximum of the likelihood.


def wald(X, y):
    """Coefficients of maximum likelihood, and the ends of their 95 % intervals."""
    columns = np.column_stack([X, np.ones(len(X))])
    if statsmodels is not None:
        fit = statsmodels.Logit(y, columns).fit(disp=False)
        return fit.params, fit.conf_int()
    fit = LogisticRegression(C=np.inf, max_iter=5000, tol=1e-8).fit(X, y)
    coef = np.append(fit.coef_, fit.intercept_)
    p = fit.predict_proba(X)[:, 1]
    information = columns.T @ (columns * (p * (1 - p))[:, None])
    half = 1.96 * np.sqrt(np.linalg.inv(information).diagonal())
    return coef, np.column_stack([coef - half, coef + half])


print(f"Wald intervals by {'statsmodels' if statsmodels is not None else 'NumPy'}")

# %%
# All patients, and 60 of them
# ----------------------------
# ``summary()`` has an odds ratio and its interval for each column.

few = train_test_split(X, y, train_size=60, stratify=y, random_state=0)
samples = {f"{len(y)} patients": (X, y), "60 patients": (few[0], few[2])}
tables = {}
for name, (rows, labels) in samples.items():
    model = BayesianLogisticRegressionSGFS(random_state=0).fit(rows, labels)
    table = model.summary().filter(like="odds").iloc[:-1]
    coef, ends = wald(rows.to_numpy(), labels)
    table["wald"], table["wald_lb"], table["wald_ub"] = np.exp([coef, *ends.T])[:, :-1]
    tables[name] = table
    shown = table.set_axis(["posterior", "from", "to", "Wald", "from", "to"], axis=1)
    print(f"\n{name}\n{shown.to_string(float_format='{:.2g}'.format)}")

# %%
# In probabilities
# ----------------
# An odds ratio is no change of probability. ``average_effects`` has the average change over the
# patients, here per standard deviation of a column, with its interval.

effects = average_effects(model, rows).loc[["bmi", "bp", "s5"], ["mean", "eti95_lb", "eti95_ub"]]
print(f"\n{effects.round(2).to_string()}")

# %%
# Prior or rows?
# --------------
# ``prior_sensitivity`` says how fast each posterior moves with the power of the prior and of the
# likelihood. The precision of the coefficients is learned, and the prior in question is that of the
# precision. It matters where few rows leave the precision open.

for name, (rows, labels) in samples.items():
    model = BayesianLogisticRegressionSGFS(random_state=0).fit(rows, labels)
    values = prior_sensitivity(model, rows, labels).loc[["age", "bmi", "s1", "s2", "s5"]]
    print(f"\n{name}\n{values[['prior', 'likelihood']].round(2).to_string()}")

# %%
# The picture
# -----------
# Intervals that leave the picture end in an arrow.

LIMIT = 30
figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained", sharey=True, sharex=True)
order = np.argsort(tables[next(iter(samples))]["odds_ratio"].to_numpy())
for ax, (name, table) in zip(axes, tables.items(), strict=True):
    for shift, marker, colour, label, columns in (
        (0.15, "o", BLUE, "posterior", table.columns[:3]),
        (-0.15, "s", ORANGE, "maximum likelihood, Wald", table.columns[3:]),
    ):
        point, low, high = table[columns].to_numpy()[order].T
        rows = np.arange(len(order)) + shift
        ax.hlines(rows, np.maximum(low, 1 / LIMIT), np.minimum(high, LIMIT), color=colour, lw=2)
        seen = (point > 1 / LIMIT) & (point < LIMIT)
        ax.plot(point[seen], rows[seen], marker, color=colour, markersize=5, label=label)
        for end, arrow, beyond in ((1 / LIMIT, "<", low < 1 / LIMIT), (LIMIT, ">", high > LIMIT)):
            for row in rows[beyond]:
                ax.plot(end, row, arrow, color=colour, clip_on=False)
    ax.axvline(1.0, color="0.6", linewidth=0.8, zorder=0)
    ax.set(xscale="log", xlabel="odds ratio per standard deviation", xlim=(1 / LIMIT, LIMIT))
    ax.set_xticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
    ax.minorticks_off()
    ax.set_title(name, loc="left")
axes[0].set(yticks=np.arange(len(order)), yticklabels=X.columns[order])
figure.legend(
    *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False
)
plt.show()

# %%
# How wide
# --------
# The blood serum columns s1 to s5 measure partly the same. Maximum likelihood cannot tell their
# parts from each other, and less so the fewer the patients are. The prior, whose strength is
# learned from the same rows, keeps such coefficients small until the rows speak.

for name, table in tables.items():
    ours = np.log(table["odds_ratio_eti95_ub"] / table["odds_ratio_eti95_lb"])
    theirs = np.log(table["wald_ub"] / table["wald_lb"])
    least, most = (theirs / ours).idxmin(), (theirs / ours).idxmax()
    print(
        f"{name}: Wald intervals are {(theirs / ours)[least]:.2f} ({least}) to "
        f"{(theirs / ours)[most]:.1f} times ({most}) as wide on the scale of the logit"
    )
