"""
Rows on the workers of a dask cluster
=====================================

``fit`` takes dask arrays and data frames as they are. Each pass over the
rows is a task for every partition and a tree of sums, so the rows stay where
they are. Here eight hospitals have a partition each, and none sees the
patients of the others.
"""

import numpy as np
from matplotlib import pyplot as plt
from skbayes_sg import BayesianLogisticRegression

try:
    import dask.array as da
    from dask.distributed import Client, LocalCluster
except ImportError:  # the example then runs without workers
    da = None
    print("without workers: pip install 'dask[array,distributed]'")

BLUE, GREY = "#0072B2", "0.55"

# %%
# Eight hospitals
# ---------------
# The same coefficients hold everywhere. But each hospital has few cases of its
# own, other patients, and one measurement that it hardly ever takes.

rng = np.random.default_rng(3)
coef = np.array([0.8, -0.6, 0.4, -0.3, 0.2, 0.1, -0.1, 0.0])
n_hospitals = len(coef)
hospitals = []
for k in range(n_hospitals):
    n = int(rng.integers(400, 3000))
    X = rng.standard_normal((n, len(coef))) + rng.normal(0, 0.5, len(coef))
    X[:, k] = np.where(rng.random(n) < 0.02, X[:, k], 0.0)
    p = 1 / (1 + np.exp(2.5 - X @ coef))
    hospitals.append((X, (rng.random(n) < p).astype(int)))

# %%
# One fit over all of them
# ------------------------
# ``LocalCluster`` runs in this process here.
# ``Client("tcp://scheduler:8786")`` would be another cluster; nothing else
# changes.

X, y = (np.concatenate(part) for part in zip(*hospitals, strict=True))
if da is None:
    together = BayesianLogisticRegression(random_state=0).fit(X, y)
else:
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        parts = tuple(len(rows) for rows, _ in hospitals)
        together = BayesianLogisticRegression(random_state=0).fit(
            da.from_array(X, chunks=(parts, len(coef))),
            da.from_array(y, chunks=(parts,)),
        )
        workers = client.scheduler_info()["workers"]
        print(f"{len(workers)} workers, {len(parts)} partitions")
alone = [
    BayesianLogisticRegression(random_state=0).fit(*rows) for rows in hospitals
]

# %%
# It is the posterior of all rows, as a fit in memory finds it.

in_memory = BayesianLogisticRegression(random_state=0).fit(X, y)
apart = np.abs(together.coef_ - in_memory.coef_) / in_memory.coef_std_
print(f"means differ from those in memory by {apart.max():.2f} sd at most")

# %%
# The picture
# -----------
# Thin grey bars are the 95 % intervals of each hospital alone, thick blue ones
# those of the fit over all partitions. The widest grey bar of a measurement is
# that of the hospital that hardly takes it.


def interval(model):
    """Ends for each coefficient, (2, coefficients)."""
    return np.quantile(
        model.coef_samples_[:, :, 0], [0.025, 0.975], axis=(0, 1)
    )


figure, ax = plt.subplots(figsize=(9, 4.4), layout="constrained")
place = np.arange(len(coef))
for k, model in enumerate(alone):
    ax.vlines(
        place + 0.08 * (k - 4.5), *interval(model), color=GREY, linewidth=1.5
    )
ax.vlines(place + 0.36, *interval(together), color=BLUE, linewidth=5)
ax.hlines(coef, place - 0.42, place + 0.42, color="black", linewidth=1)
ax.set(
    xticks=place,
    xticklabels=[f"x{j}" for j in place],
    ylabel="coefficient, 95 % interval",
)
ax.plot([], [], color=GREY, label="each hospital alone")
ax.plot([], [], color=BLUE, linewidth=5, label="all partitions")
ax.plot([], [], color="black", linewidth=1, label="truth")
ax.legend(frameon=False, ncols=3, loc="upper right")
plt.show()
