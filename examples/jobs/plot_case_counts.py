"""
Odds ratios for an epidemiologist
=================================

Do smokers have more children of low weight, given their race (Hosmer &
Lemeshow, 1989)? A paper wants an odds ratio that can be compared with those of
other papers, and the change of the risk itself.
"""

import numpy as np
import pandas as pd
import statsmodels.api as sm
from matplotlib import pyplot as plt
from skbayes_sg import BayesianBinomialRegressor
from skbayes_sg.inspection import average_effects, to_latex

births = pd.DataFrame(
    {
        "race": ["white", "black", "other"] * 2,
        "smoker": [1, 1, 1, 0, 0, 0],
        "light": [19, 6, 5, 4, 5, 20],
        "born": [52, 10, 12, 44, 16, 55],
    }
)
X = pd.get_dummies(births[["smoker", "race"]], dtype=float)
X = X.drop(columns="race_white")

# %%
# The same study by maximum likelihood
# ------------------------------------
# statsmodels has six rows of successes and failures, as the posterior has.
# Without shrinkage both agree, up to the difference of a mean and a mode; the
# default prior pulls the three coefficients towards zero.

born, light = births["born"], births["light"]
both = np.column_stack([light, born - light])
glm = sm.GLM(both, sm.add_constant(X), sm.families.Binomial()).fit()
found = {"maximum likelihood": (glm.params[X.columns], glm.bse[X.columns])}
fits = {"nothing shrunken": 1e-6, "default": "learned"}
for name, precision in fits.items():
    model = BayesianBinomialRegressor(
        prior_precision=precision, random_state=0
    )
    table = model.fit(X, light, trials=born).summary().loc[X.columns]
    found[name] = table["mean"], table["sd"]
for name, (mean, sd) in found.items():
    pairs = zip(X.columns, mean, sd, strict=True)
    print(f"{name:18}", *(f"{c} {m:.2f} ({s:.2f})" for c, m, s in pairs))

# %%
# Odds ratios, and the risk
# -------------------------

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for shift, (name, (mean, sd)) in enumerate(found.items()):
    rows = np.arange(len(X.columns)) + 0.2 * (shift - 1)
    ends = np.exp(mean - 1.96 * sd), np.exp(mean + 1.96 * sd)
    ax.hlines(rows, *ends, color=f"C{shift}")
    ax.plot(np.exp(mean), rows, "o", color=f"C{shift}", label=name)
ax.axvline(1, color="0.7", zorder=0)
ax.set(xscale="log", xlabel="odds ratio, 95 %")
ax.set_yticks(np.arange(len(X.columns)), X.columns)
ax.legend(frameon=False, fontsize="small")
plt.show()

risk = average_effects(model, X, ["smoker"], sample_weight=born)
print(risk[["mean", "eti95_lb", "eti95_ub"]].round(3).to_string())
print(to_latex(risk).splitlines()[3])
