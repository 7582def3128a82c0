"""The picture of the site's front page, front_picture.png: ``python docs/front_picture.py``."""

from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from scipy.stats import gaussian_kde
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLogisticRegressionSGFS

NAMES = {
    "s5": "triglycerides",
    "bmi": "body mass index",
    "bp": "blood pressure",
    "age": "age",
    "s6": "glucose",
    "s3": "HDL cholesterol",
    "sex": "sex",
}
LIGHT, DARK, EDGE = "#9ecae1", "#08519c", "#4292c6"
LOW, HIGH, HEIGHT = 0.14, 15, 0.7

X, y = load_diabetes(return_X_y=True, as_frame=True)
X = StandardScaler().set_output(transform="pandas").fit_transform(X)
y = y > y.median()
few, _, few_y, _ = train_test_split(X, y, train_size=60, stratify=y, random_state=0)
draws = {}
for rows, labels in ((few, few_y), (X, y)):
    model = BayesianLogisticRegressionSGFS(random_state=0).fit(rows, labels)
    draws[len(rows)] = model.coef_samples_[:, :, 0].reshape(-1, X.shape[1])

figure, ax = plt.subplots(figsize=(6.4, 6.0), layout="constrained")
grid = np.linspace(np.log(LOW), np.log(HIGH), 400)
for place, name in enumerate(reversed(NAMES)):
    column = X.columns.get_loc(name)
    densities = {n: gaussian_kde(of[:, column], 0.3)(grid) for n, of in draws.items()}
    tallest = max(density.max() for density in densities.values())
    for shift, (n, density) in zip((-0.09, -0.17), densities.items(), strict=True):
        colour, edge = (LIGHT, EDGE) if n < 100 else (DARK, DARK)
        top = place + HEIGHT * density / tallest
        ax.fill_between(np.exp(grid), place, top, color=colour, alpha=0.75, lw=0)
        ax.plot(np.exp(grid), top, color=edge, lw=0.8)
        low, middle, high = np.exp(np.quantile(draws[n][:, column], [0.025, 0.5, 0.975]))
        ax.plot([low, high], [place + shift] * 2, color=edge, lw=2.2, solid_capstyle="round")
        ax.plot(middle, place + shift, "o", color=edge, ms=5)
ax.axvline(1, color="0.45", lw=1, zorder=0)
ax.set(xscale="log", xlim=(LOW, HIGH), ylim=(-0.35, len(NAMES) - 0.1))
ax.set_xticks([0.2, 0.5, 1, 2, 5, 10], ["1/5", "1/2", "1", "2", "5", "10"])
ax.set_yticks(range(len(NAMES)), reversed(NAMES.values()))
ax.minorticks_off()
ax.tick_params(axis="both", labelsize=14, length=0)
ax.set_xlabel("odds ratio per standard deviation", fontsize=14)
ax.spines[["top", "right", "left"]].set_visible(False)
top = len(NAMES) - 0.2
ax.text(LOW, top, "60 patients", color=EDGE, fontsize=15, weight="bold", va="top")
ax.text(LOW, top - 0.36, "442 patients", color=DARK, fontsize=15, weight="bold", va="top")
figure.savefig(Path(__file__).with_suffix(".png"), dpi=140)
