"""
A hundred million rows on disk
==============================

A shop shows a discount on some of its pages and wants to know whether it pays.
Visits were not randomised: visitors who buy anyway saw it more often, so that
raw shares of buyers are confounded, and visits must be compared that are alike
in all other columns. The effect is small, and the log is large. Is a sample of
it enough to decide?

The log is made here, because then the true effect is known. Its size is a
parameter. The default takes a fifth of a gigabyte; a hundred million rows of
fifty columns take 20 GB, and the program is the same.
"""

import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from scipy.stats import gaussian_kde
from skbayes_sg import BayesianLogisticRegression
from sklearn.linear_model import LogisticRegression

BLUE, ORANGE = "#0072B2", "#D55E00"
ROWS = 1_000_000  # 100_000_000 make 20 GB
COLUMNS, BLOCK = 50, 50_000

# %%
# Write the log, block by block
# -----------------------------
# Each visit has 49 measurements, whether the discount was shown, and whether
# something was bought. Only a block is in memory at any time. A memory map
# makes the file look like an array.

rng = np.random.default_rng(0)
buys = rng.normal(0, 0.15, COLUMNS - 1)
EFFECT, INTERCEPT = 0.05, -3.0  # of the discount on the log odds; of all else
folder = tempfile.TemporaryDirectory()
paths = Path(folder.name, "visits.npy"), Path(folder.name, "bought.npy")
X = np.lib.format.open_memmap(paths[0], "w+", np.float32, (ROWS, COLUMNS))
y = np.lib.format.open_memmap(paths[1], "w+", np.int8, (ROWS,))
begin = time.perf_counter()
for start in range(0, ROWS, BLOCK):
    visits = rng.standard_normal(
        (min(BLOCK, ROWS - start), COLUMNS), dtype=np.float32
    )
    visits[:, 2:] += 0.6 * visits[:, 1:-1]
    interest = visits[:, 1:] @ buys
    visits[:, 0] = rng.random(len(visits)) < 1 / (1 + np.exp(-interest))
    log_odds = INTERCEPT + EFFECT * visits[:, 0] + interest
    X[start : start + BLOCK] = visits
    y[start : start + BLOCK] = rng.random(len(visits)) < 1 / (
        1 + np.exp(-log_odds)
    )
X.flush(), y.flush()
print(
    f"{ROWS:,} visits, {paths[0].stat().st_size / 1e9:.1f} GB, "
    f"written in {time.perf_counter() - begin:.0f} s"
)

# %%
# Fit a hundredth, a tenth and all of it
# --------------------------------------
# ``fit`` takes the memory map as it is. A table of more than 64 MB is read
# block by block, a few times: to validate it, to find a point near the
# posterior mean and the curvature there, and to choose the rows on which the
# chains then run. These are some thousand rows, weighted so that they stand
# for all. The memory that a fit takes therefore does not grow with the table.

X, y = (np.load(path, mmap_mode="r") for path in paths)
sizes = (ROWS // 100, ROWS // 10, ROWS)
fits, megabytes = {}, {}
for n in sizes:
    tracemalloc.start()
    begin = time.perf_counter()
    fits[n] = BayesianLogisticRegression(random_state=0).fit(X[:n], y[:n])
    seconds = time.perf_counter() - begin
    megabytes[n] = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    draws = fits[n].coef_samples_[:, :, 0, 0]
    low, high = np.quantile(draws, [0.025, 0.975])
    print(
        f"{n:9,} rows: {seconds:4.1f} s, arrays of {megabytes[n]:.0f} MB, ",
        end="",
    )
    print(f"effect {low:.3f} to {high:.3f}")

# %%
# For comparison, ``LogisticRegression`` with all rows: it takes the memory map
# too, and its effect has no interval.

tracemalloc.start()
begin = time.perf_counter()
point = LogisticRegression().fit(X, y)
seconds = time.perf_counter() - begin
print(
    f"LogisticRegression: {seconds:.1f} s, arrays of "
    f"{tracemalloc.get_traced_memory()[1] / 1e6:.0f} MB, "
    f"effect {point.coef_[0, 0]:.3f}"
)
tracemalloc.stop()

# %%
# What would a comparison of shares have said?
# --------------------------------------------
# The discount was shown to those who buy. So the share of buyers among them is
# much higher, whatever the discount does, and more rows only make this error
# more certain.

bought, shown = (np.zeros(2) for _ in range(2))
for start in range(0, ROWS, BLOCK):
    discount = X[start : start + BLOCK, 0].astype(int)
    shown += np.bincount(discount, minlength=2)
    bought += np.bincount(
        discount, weights=y[start : start + BLOCK], minlength=2
    )
shares = bought / shown
print(f"bought without the discount {shares[0]:.2%}, with it {shares[1]:.2%}")
odds = shares / (1 - shares)
print(f"odds ratio {odds[1] / odds[0]:.2f}", end=", ")
print(f"its true value {np.exp(EFFECT):.2f}")

# %%
# The decision
# ------------
# A purchase brings 20, and a discount that is shown costs .03 on average. So
# it pays if it raises the probability of a purchase by more than .0015. The
# effect on the probability differs from visit to visit; two thousand of them
# suffice for its average. Under each draw of the posterior it is the mean of
# the probabilities with the discount less the mean without. The shop launches
# the discount if it pays with a probability of at least 95 %, drops it if that
# is at most 5 %, and looks at more rows otherwise.

PURCHASE, COST = 20, 0.03
some = np.sort(rng.choice(ROWS, 2000, replace=False))
with_it, without = X[some], X[some]
with_it[:, 0], without[:, 0] = 1, 0
gains = {}
for n, model in fits.items():
    model.set_params(n_predict_draws=None)
    raised = [
        model.predict_draws(visits, kind="mean")[:, :, 1].mean(axis=1)
        for visits in (with_it, without)
    ]
    gains[n] = 1000 * (PURCHASE * (raised[0] - raised[1]) - COST)
    pays = np.mean(gains[n] > 0)
    decision = (
        "launch"
        if pays >= 0.95
        else "drop"
        if pays <= 0.05
        else "look at more rows"
    )
    low, high = np.quantile(gains[n], [0.025, 0.975])
    print(f"{n:9,} rows: gain {low:4.0f} to {high:3.0f}, ", end="")
    print(f"positive with {pays:.3f}: {decision}")

# %%
# The picture
# -----------
# Left, what the shop would gain by a thousand discounts. Right, the memory
# that the fits took.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4.2), layout="constrained", width_ratios=(1.8, 1)
)
grid = np.linspace(*np.quantile(gains[sizes[0]], [0.01, 0.99]), 400)
for n, shade in zip(sizes, ("#9ecae1", "#4292c6", "#08306b"), strict=True):
    density = gaussian_kde(gains[n])(grid)
    left.fill_between(
        grid,
        density / density.max(),
        color=shade,
        alpha=0.6,
        label=f"{n:,} rows",
    )
left.axvline(0, color="0.3", lw=1)
left.set(
    xlabel="gain by a thousand discounts",
    yticks=[],
    ylim=(0, 1.05),
    ylabel="posterior density, of equal height",
)
left.legend(frameon=False, loc="upper left")
size = np.array([n * COLUMNS * 4 / 1e6 for n in sizes])
right.plot(size, size, "s--", color=ORANGE, label="the rows themselves")
right.plot(
    size, [*megabytes.values()], "o-", color=BLUE, label="arrays of the fit"
)
right.set(
    xscale="log", yscale="log", xlabel="MB of rows", ylabel="MB in memory"
)
right.legend(frameon=False)
plt.show()

# %%
# A hundred million
# -----------------
# With ``ROWS = 100_000_000`` the program is the same, and needs 20 GB of disk
# and patience while it writes them. The fit reads the table five times, so
# that its time grows with the rows, and its memory hardly does: forty million
# rows of fifty columns took 42 s and 62 MB beyond the interpreter on two busy
# cores. The decision above did not need them. They would pay for a smaller
# effect: ten times the rows make intervals narrower by the square root of ten.

del X, y
folder.cleanup()
