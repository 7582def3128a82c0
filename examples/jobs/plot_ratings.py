"""
Ratings by several judges for a psychologist
============================================

Nine judges rated the bitterness of wine from 1 to 5: eight bottles, pressed at
two temperatures, with or without contact of juice and skins (Randall, 1989).
Judges use the scale differently: a cumulative logit model with an intercept
for each judge.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from skbayes_sg import BayesianOrdinalClassifier, CoefficientsDisplay

# %%
# The ratings
# -----------
# A line for each judge; two bottles of each of the four kinds.

ratings = """
23344455 12132354 23325544 32323253 23433333
32322454 11222323 22233334 12323244
"""
wine = pd.DataFrame(
    {
        "warm": np.tile([0, 0, 0, 0, 1, 1, 1, 1], 9),
        "contact": np.tile([0, 0, 1, 1, 0, 0, 1, 1], 9),
        "judge": pd.Categorical(np.repeat(list("ABCDEFGHI"), 8)),
    }
)
rating = np.array([int(digit) for digit in "".join(ratings.split())])

# %%
# The fit
# -------
# The two effects are the question, and are not shrunken. ``clmm`` of R's
# package ordinal has 3.06 for the temperature and 1.83 for the contact, and a
# standard deviation of 1.13 for the judges (Christensen, *A tutorial on
# fitting cumulative link mixed models*, 2019). These are modes, from which the
# means of a skewed posterior differ.

model = BayesianOrdinalClassifier(
    prior_groups={"warm": "flat", "contact": "flat"}, random_state=0
).fit(wine, rating)
table = model.summary().loc[["warm", "contact"]]
published = pd.DataFrame({"clmm": [3.06, 1.83]}, table.index)
print(table[["mean", "sd"]].join(published).round(2).to_string())
judges = model.summary(groups=True).loc["judge", ["mean", "sd"]]
print("sd of judges: {:.2f} ({:.2f}), clmm 1.13".format(*judges))

# %%
# The judges
# ----------
# Positive: a judge who gives higher ratings to the same wine.

display = CoefficientsDisplay.from_estimator(model, features="judge")
display.ax_.set_xlabel("intercept of a judge")
plt.show()
