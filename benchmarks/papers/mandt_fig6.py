"""The learned prior against a grid: Mandt, Hoffman & Blei (2017), Fig. 6, and what each way costs.

    python -m benchmarks.papers.mandt_fig6 [--data mnist covertype] [--grid 10]
        [--maximiser]

The model is multinomial regression, on MNIST (60,000 rows, 784 pixels / 255; validation on the
10,000 test rows) and on a sample of Covertype (92,962 rows, 54 columns, the ten numeric ones
standardised; a quarter for validation). For each, the table has

- validation loss of posterior averages in SGFS over prior precisions from 1e3 down to .1. They are
  fitted in runs of five, each from where the last one of its run stopped, as in
  `hyperparameter_path`. Weaker priors would need a far longer burn-in on Covertype;
- the precision that variational EM learns with SGFS;
- the one that it learns with constant SGD and the scalar step of Theorem 1, with minibatches of S
  rows. With S = 50 MNIST is expected to be refused: where curvature is noise, the scalar step
  needs S below rows x mean over largest curvature, which is 72, and the scores at the mode have two
  thirds of the noise that curvature promises;
- the one of mean-field variational EM (NumPyro's AutoNormal, the precision a parameter of the
  evidence bound, Adam on minibatches of 500; needs the extra ``bench``);
- LogisticRegressionCV over ten values in five folds.

``--keep cv`` (or ``sgfs``, ``mean-field``, ``grid``) does not run that method again, and takes its
rows from the table of the last run, with their date. Losses are in nats. Passes are rows read over
training rows, of all chains. Seconds are those of one process on all its threads (CPU time). The
column ``s`` has wall seconds on two cores, of kept rows.

The paper's curve is the loss at the maximiser of Eq. 48, not of averages. ``--maximiser`` finds
that curve alone, by LogisticRegression from the strongest prior to the weakest, each from where the
last one stopped, until its tolerance of 1e-5 or 3,000 iterations (none where that is within the
tolerance). The precisions that EM learned in the last run are among them. It writes
mandt_fig6_<data>_maximiser.csv. On this curve, too, those of EM may lose 1 %.

The EM fits may lose 1 % (in constant SGD: .5 %) against the best of the grid. The one in SGFS may
read a third of the rows, and take a third of the time, of cross-validation.
"""

from __future__ import annotations

import csv
import datetime
import re
import time
import warnings

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from benchmarks.common.datasets import covertype, mnist, standardised
from benchmarks.common.harness import RESULTS, Claim, Report, benchmark, read_rows
from benchmarks.common.internals import learned_precisions
from benchmarks.common.timing import Clock
from skbayes_sg import BayesianLogisticRegression, VariationalEM
from skbayes_sg.samplers import SGFS, ConstantSGD

EM = VariationalEM(n_updates=150)
Split = tuple[NDArray, NDArray, NDArray, NDArray]


def mnist_split() -> Split:
    """Training and test files, pixels in [0, 1]."""
    (X, y), (X_test, y_test) = mnist(), mnist("test")
    return (X / 255).astype(np.float32), (X_test / 255).astype(np.float32), y, y_test


def covertype_split() -> Split:
    """Three quarters and one; the ten numeric columns standardised."""
    X, y = covertype()
    X[:, :10] = standardised(X[:, :10])
    return tuple(train_test_split(X, y, random_state=0, stratify=y))


SPLITS = {"mnist": mnist_split, "covertype": covertype_split}
RUNS: dict[str, dict] = {
    "mnist": {"n_chains": 4, "n_draws": 40, "burn_in": 250, "thin": 7},
    "covertype": {"n_chains": 4, "n_draws": 40, "burn_in": 400, "thin": 15},
}
SAMPLERS = {  # rare columns of Covertype throw bolder chains
    "mnist": SGFS(3.0, structure="kron", B="precision", batch_size=2000),
    "covertype": SGFS(6.0, structure="kron", B="precision", batch_size=2000),
}
BATCHES = {"mnist": (20, 40, 50), "covertype": (100,)}
"""rows of a minibatch of constant SGD"""
TITLES = {
    "mnist": "MNIST, 60,000 rows, 7,850 parameters",
    "covertype": "Covertype, 69,721 rows, 385 parameters",
}


def learned(data: Split, name: str, sampler, **run) -> dict:
    """Variational EM inside a sampler: its precision, validation loss and cost."""
    X, X_val, y, y_val = data
    model = BayesianLogisticRegression(sampler, prior_precision=EM, random_state=0, **run)
    try:
        with Clock(time.process_time) as clock:
            model.fit(X, y)
    except (ValueError, FloatingPointError) as error:
        return {"method": name, "refused": str(error)}
    return {
        "method": name,
        "precision": learned_precisions(model)[0],
        "loss": float(log_loss(y_val, model.predict_proba(X_val))),
        "passes": model.n_passes_,
        "CPU s": clock.seconds,
        "stein ratio": model.diagnostics_["stein_ratio"],
        "sampler": repr(model.sampler_),
    }


def by_constant_sgd(data: Split, batch_size: int) -> dict:
    """EM in constant SGD with a scalar step; a burn-in of three passes from the mode.

    A tenth of a pass lies between two updates of the precision, or between two draws.
    """
    tenth = len(data[0]) // (10 * batch_size)
    sampler = ConstantSGD("scalar", batch_size=batch_size)
    run = {"n_chains": 2, "n_draws": 80, "burn_in": 30 * tenth, "thin": tenth}
    return learned(data, f"EM, constant SGD, S = {batch_size}", sampler, **run)


def mean_field(data: Split, n_steps: int = 20_000, batch_size: int = 500) -> dict:
    """Mean-field variational EM by NumPyro: AutoNormal on the coefficients."""
    X, X_val, y, y_val = data
    codes = np.searchsorted(np.unique(y), y)
    params, seconds = fit_mean_field(X, codes, n_steps, batch_size)
    rng, proba = np.random.default_rng(0), 0.0
    for _ in range(100):
        coef, intercept = (
            params[f"{name}_auto_loc"]
            + params[f"{name}_auto_scale"] * rng.standard_normal(params[f"{name}_auto_loc"].shape)
            for name in ("coef", "intercept")
        )
        z = X_val @ coef + intercept
        p = np.exp(z - z.max(axis=1, keepdims=True))
        proba = proba + p / p.sum(axis=1, keepdims=True) / 100
    return {
        "method": "EM, mean field",
        "precision": float(np.exp(params["log_precision"])),
        "loss": float(log_loss(y_val, proba)),
        "passes": n_steps * batch_size / len(X),
        "CPU s": seconds,
    }


def fit_mean_field(X: NDArray, codes: NDArray, n_steps: int, batch_size: int) -> tuple[dict, float]:
    """Parameters of the guide and the log precision, a parameter of the model; and seconds."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import SVI, Trace_ELBO
    from numpyro.infer.autoguide import AutoNormal

    k, d, n = codes.max() + 1, X.shape[1], len(X)

    def model(rows, labels):
        log_precision = numpyro.param("log_precision", jnp.array(0.0))
        prior = dist.Normal(0, jnp.exp(-0.5 * log_precision)).expand([d, k]).to_event(2)
        coef = numpyro.sample("coef", prior)
        intercept = numpyro.sample("intercept", dist.Normal(0, 10.0).expand([k]).to_event(1))
        with numpyro.plate("rows", n, subsample_size=batch_size):
            numpyro.sample("y", dist.Categorical(logits=rows @ coef + intercept), obs=labels)

    adam = numpyro.optim.Adam(lambda t: 0.01 / (1 + t / 2000))
    svi = SVI(model, AutoNormal(model, init_scale=0.05), adam, Trace_ELBO())
    X_jax, y_jax = jnp.asarray(X), jnp.asarray(codes)

    @jax.jit
    def advance(state, key):
        rows = jax.random.randint(key, (batch_size,), 0, n)
        return svi.update(state, X_jax[rows], y_jax[rows])

    with Clock(time.process_time) as clock:
        state = svi.init(jax.random.PRNGKey(0), X_jax[:batch_size], y_jax[:batch_size])
        for key in jax.random.split(jax.random.PRNGKey(1), n_steps):
            state, _ = advance(state, key)
        params = {name: np.asarray(value) for name, value in svi.get_params(state).items()}
    return params, clock.seconds


def cross_validated(data: Split) -> dict:
    """LogisticRegressionCV over ten values, five folds, a hundred iterations of lbfgs at most."""
    X, X_val, y, y_val = data
    options = {"cv": 5, "max_iter": 100, "scoring": "neg_log_loss", "use_legacy_attributes": False}
    with Clock(time.process_time) as clock:
        model = LogisticRegressionCV(Cs=np.logspace(-4, 4, 10), **options).fit(X, y)
        loss = float(log_loss(y_val, model.predict_proba(X_val)))
    return {
        "method": "LogisticRegressionCV",
        "precision": float(1 / np.ravel(model.C_)[0]),
        "loss": loss,
        "passes": float(np.sum(model.n_iter_) * 0.8),
        "CPU s": clock.seconds,
    }


def grid(data: Split, name: str, n_values: int) -> list[dict]:
    """Validation loss over prior precisions."""
    X, X_val, y, y_val = data
    options = RUNS[name] | {"warm_start": True, "random_state": 0}
    model, rows = BayesianLogisticRegression(SAMPLERS[name], **options), []
    for i, value in enumerate(np.logspace(3, -1, n_values)):
        if i % 5 == 0:
            model = clone(model)
        with Clock(time.process_time) as clock:
            model.set_params(prior_precision=value).fit(X, y)
            loss = float(log_loss(y_val, model.predict_proba(X_val)))
        cost = {"passes": model.n_passes_, "CPU s": clock.seconds}
        rows.append({"method": "grid, SGFS", "precision": float(value), "loss": loss} | cost)
        print(rows[-1], flush=True)
    return rows


def kept(name: str, method: str) -> list[dict]:
    """The rows of a method from the table of the last run, with their date."""
    lines = (RESULTS / f"mandt_fig6_{name}.csv").read_text().splitlines()
    table = csv.DictReader([line for line in lines if not line.startswith("#")])
    found = re.search(r"\d{4}-\d\d-\d\d$", lines[0])
    assert found
    numbers = ("precision", "loss", "passes", "CPU s", "s", "stein ratio")
    return [
        {"data": name, "date": row.get("date") or found[0], "method": method}
        | {key: float(row[key]) for key in numbers if row.get(key)}
        for row in table
        if row["method"] == method
    ]


def run(name: str, n_values: int, keep: list[str]) -> list[dict]:
    """All methods on one data set."""
    data, table = SPLITS[name](), []
    today = str(datetime.date.today())

    def add(row: dict) -> None:
        table.append({"data": name, "date": today} | row)
        print(table[-1], flush=True)

    methods = {
        "sgfs": ("EM, SGFS", lambda: [learned(data, "EM, SGFS", SAMPLERS[name], **RUNS[name])]),
        "sgd": ("EM, constant SGD", lambda: [by_constant_sgd(data, n) for n in BATCHES[name]]),
        "mean-field": ("EM, mean field", lambda: [mean_field(data)]),
        "cv": ("LogisticRegressionCV", lambda: [cross_validated(data)]),
        "grid": ("grid, SGFS", lambda: grid(data, name, n_values)),
    }
    for label, (method, rows) in methods.items():
        for row in kept(name, method) if label in keep else rows():
            add(row)
    return table


def claims(rows: list[dict]) -> list[Claim]:
    """The learned precision is as good as the best of the grid, and cheaper to find."""
    em = rows[0]
    best = min(row["loss"] for row in rows if row["method"] == "grid, SGFS")
    (cv,) = (row for row in rows if row["method"] == "LogisticRegressionCV")
    by_sgd = [row["loss"] for row in rows if "constant SGD" in row["method"] and "loss" in row]
    seconds = em["CPU s"] / cv["CPU s"] if "CPU s" in em and "CPU s" in cv else None
    return [
        Claim(
            f"loss at EM's value in SGFS, best on the grid {best:.4f}", em["loss"], high=1.01 * best
        ),
        Claim("loss at EM's value in constant SGD", by_sgd or None, high=1.005 * best),
        Claim(
            "rows of EM in SGFS over cross-validation's", em["passes"] / cv["passes"], high=1 / 3
        ),
        Claim("seconds of EM in SGFS over cross-validation's", seconds, high=1 / 3, strict=True),
    ]


def draw(name: str, table: list[dict]) -> Figure:
    """Loss over the grid, and where each method ends: the whole curve, and its bottom."""
    figure = Figure(figsize=(10, 4.8), layout="constrained", dpi=130)
    on_grid = [row for row in table if row["method"] == "grid, SGFS"]
    points = [row for row in table if row not in on_grid and "loss" in row]
    axes = figure.subplots(1, 2)
    for ax, title in zip(axes, ("the whole grid", "its bottom"), strict=True):
        x, loss = [row["precision"] for row in on_grid], [row["loss"] for row in on_grid]
        ax.plot(x, loss, ".-", color="grey", label="SGFS at given precisions")
        for row, marker in zip(points, "osD^vP", strict=False):  # open marks hide no other
            shape = {"fillstyle": "none", "markersize": 9, "linestyle": "none", "mew": 1.6}
            mode = " (of the mode)" if row["method"] == "LogisticRegressionCV" else ""
            label = f"{row['method']}: {row['precision']:.2g}, {row['passes']:.0f} passes{mode}"
            ax.plot(row["precision"], row["loss"], marker, label=label, **shape)
        ax.set(xscale="log", xlabel="prior precision", ylabel="validation loss (nats)", title=title)
    found = np.array([[row["precision"], row["loss"]] for row in points])
    low, high = min(found[:, 1].min(), min(loss)), found[:, 1].max()
    top = min(max(loss), 1.5 * low)
    axes[0].set_ylim(low - 0.06 * (top - low), top)
    axes[1].set(xlim=(found[:, 0].min() / 2, found[:, 0].max() * 2))
    axes[1].set(ylim=(low - 0.2 * (high - low), high + 0.4 * (high - low)))
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)
    refused = [row["method"].removeprefix("EM, ") for row in table if "loss" not in row]
    note = f"; not stable and refused: {', '.join(refused)}" if refused else ""
    figure.suptitle(
        f"{TITLES[name]}: learned prior precisions (Mandt et al. 2017, Fig. 6)\n"
        f"To see: each learned value lies on the flat bottom of the curve{note}",
        fontsize=10,
    )
    return figure


def at_maximiser(name: str, n_values: int) -> tuple[list[dict], Claim]:
    """Validation loss of the maximiser of Eq. 48 over precisions, and at those that EM learned."""
    X, X_val, y, y_val = SPLITS[name]()
    table = read_rows(RESULTS / f"mandt_fig6_{name}.csv")
    of = {float(value): "grid" for value in np.logspace(3, -1, n_values)}
    em = [row for row in table if row["method"].startswith("EM") and "precision" in row]
    of |= {row["precision"]: row["method"] for row in em}
    X = X.astype(np.float64)  # in single precision the search stops where the last one did
    model, rows = LogisticRegression(max_iter=3000, tol=1e-5, warm_start=True), []
    for precision in sorted(of, reverse=True):
        with Clock(time.process_time) as clock:
            model.set_params(C=1 / precision).fit(X, y)
        row = {"data": name, "method": of[precision], "precision": precision}
        row |= {"loss": float(log_loss(y_val, model.predict_proba(X_val)))}
        rows.append(row | {"iterations": int(model.n_iter_[0]), "CPU s": clock.seconds})
        print(rows[-1], flush=True)
    best = min(row["loss"] for row in rows if row["method"] == "grid")
    learned = [row["loss"] for row in rows if row["method"] != "grid"]
    sentence = f"{name}: loss of the maximiser at EM's precisions, best on the grid {best:.4f}"
    return rows, Claim(sentence, learned, high=1.01 * best)


def main(report: Report, data: list[str], grid: int, keep: list[str], maximiser: bool) -> None:
    """Both data sets."""
    warnings.simplefilter("ignore")
    for name in data:
        key = f"mandt_fig6_{name}"
        if maximiser:
            rows, claim = at_maximiser(name, grid)
            report.save(rows, [claim], name=f"{key}_maximiser")
            continue
        rows = run(name, grid, keep)
        report.save(rows, claims(rows), {key: draw(name, rows)}, name=key)


if __name__ == "__main__":
    benchmark(
        main,
        threads=1,
        data={"nargs": "+", "choices": list(SPLITS), "default": list(SPLITS)},
        grid={"type": int, "default": 10, "help": "values between .1 and 1e3"},
        keep={"nargs": "+", "choices": ["sgfs", "mean-field", "cv", "grid"], "default": []},
        maximiser={"action": "store_true", "help": "the curve of the maximiser alone"},
    )
