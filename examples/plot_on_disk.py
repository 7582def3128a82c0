"""
Rows on disk
============

A memory map, a zarr array or an HDF5 dataset goes into ``fit`` as it is. Above 64 MB it is read in
blocks, a few times, and the chains then run on some thousand rows that stand for all. The memory
that a fit takes does not grow with the rows.
"""

import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from skbayes_sg import BayesianLogisticRegressionSGFS

BLUE, ORANGE = "#0072B2", "#D55E00"

# %%
# Write a table, block by block
# -----------------------------
# It has twenty correlated columns. The labels follow known coefficients, so that the intervals
# can be judged.

MOST, COLUMNS, BLOCK = 2_400_000, 20, 100_000
rng = np.random.default_rng(0)
coef = rng.normal(0, 0.5, COLUMNS)
folder = tempfile.TemporaryDirectory()
paths = Path(folder.name, "rows.npy"), Path(folder.name, "labels.npy")
X = np.lib.format.open_memmap(paths[0], "w+", np.float32, (MOST, COLUMNS))
y = np.lib.format.open_memmap(paths[1], "w+", np.int8, (MOST,))
for start in range(0, MOST, BLOCK):
    rows = rng.standard_normal((BLOCK, COLUMNS), dtype=np.float32)
    rows[:, 1:] += 0.8 * rows[:, :-1]
    X[start : start + BLOCK] = rows
    y[start : start + BLOCK] = rng.random(BLOCK) < 1 / (1 + np.exp(-rows @ coef))
X.flush(), y.flush()
print(f"{paths[0].stat().st_size / 1e6:.0f} MB on disk")

# %%
# Fit more and more of it
# -----------------------
# The smallest part is below 64 MB and is read into memory as a whole. The others are not.

X, y = (np.load(path, mmap_mode="r") for path in paths)
sizes = (24_000, 240_000, MOST // 2, MOST)
fits, figures = {}, {}
for n in sizes:
    tracemalloc.start()
    begin = time.process_time()
    fits[n] = BayesianLogisticRegressionSGFS(random_state=0).fit(X[:n], y[:n])
    seconds = time.process_time() - begin
    figures[n] = seconds, tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    print(
        f"{n:9,} rows, {n * COLUMNS * 4 / 1e6:5.0f} MB: {seconds:4.1f} s of CPU, "
        f"arrays of at most {figures[n][1]:3.0f} MB"
    )

# %%
# The picture
# -----------
# Distance of each coefficient from the truth, with its 95 % interval. Ten times the rows make
# intervals narrower by the square root of ten.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4.2), layout="constrained", width_ratios=(2.4, 1)
)
shades = ("#9ecae1", "#4292c6", "#08306b")
for shift, shade, n in zip((-0.25, 0, 0.25), shades, (24_000, 240_000, MOST), strict=True):
    model = fits[n]
    place = np.arange(COLUMNS) + shift
    low, high = np.quantile(model.coef_samples_[:, :, 0], [0.025, 0.975], axis=(0, 1)) - coef
    left.vlines(place, low, high, color=shade, linewidth=2.5, label=f"{n:,} rows")
    held = np.mean((low < 0) & (high > 0))
    print(f"{n:9,} rows: {held:.0%} of the 95 % intervals hold the truth")
left.axhline(0, color="0.4", linewidth=0.8)
left.set(xlabel="coefficient", ylabel="interval - truth", xticks=range(0, COLUMNS, 5))
left.legend(frameon=False, loc="upper right", ncols=3)
size = np.array([n * COLUMNS * 4 / 1e6 for n in sizes])
right.plot(size, size, "s--", color=ORANGE, label="the rows themselves")
right.plot(size, [mb for _, mb in figures.values()], "o-", color=BLUE, label="arrays of the fit")
right.set(xscale="log", yscale="log", xlabel="MB of rows", ylabel="MB in memory")
right.legend(frameon=False)
plt.show()

# %%
# Clean up.

del X, y
folder.cleanup()
