"""The learned prior against a grid: Mandt, Hoffman & Blei (2017), Fig. 6, and what each way costs.

    python benchmarks/mandt_fig6.py [--data mnist covertype] [--grid 10]

The model is multinomial regression, on MNIST (60,000 rows, 784 pixels / 255; validation on the
10,000 test rows) and on a sample of Covertype (92,962 rows, 54 columns, the ten numeric ones
standardised; a quarter for validation). For each, the table has

- validation loss of posterior averages over prior precisions, each fit from where the last one
  stopped;
- the precision that variational EM learns with SGFS, and with constant SGD;
- the one of mean-field variational EM (NumPyro's AutoNormal, the precision a parameter of the
  evidence bound, Adam on minibatches of 500; needs the extra ``bench``);
- LogisticRegressionCV over ten values in five folds.

Losses are in nats; passes are rows read over training rows, of all chains; seconds on all cores.
The EM fit may lose 1 % against the best of the grid, and take a third of the time of
cross-validation.
"""

from __future__ import annotations

import warnings

import numpy as np
from datasets import covertype, mnist, standardised
from harness import Claim, Report, benchmark
from internals import learned_precisions
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from timing import Clock

from skbayes_sg import BayesianLogisticRegressionSGFS, VariationalEM, hyperparameter_path
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
    "mnist": {"n_chains": 4, "n_draws": 40, "burn_in": 250, "thin": 7, "n_jobs": 2},
    "covertype": {"n_chains": 4, "n_draws": 40, "burn_in": 400, "thin": 15, "n_jobs": 2},
}
SAMPLERS = {
    "mnist": SGFS(3.0, structure="kron", B="precision", batch_size=2000),
    "covertype": SGFS(
        6.0, structure="kron", B="precision", batch_size=2000
    ),  # rare columns throw bolder chains
}


def learned(data: Split, name: str, sampler, **run) -> dict:
    """Variational EM inside a sampler: its precision, validation loss and cost."""
    X, X_val, y, y_val = data
    model = BayesianLogisticRegressionSGFS(sampler, prior_precision=EM, random_state=0, **run)
    try:
        with Clock() as clock:
            model.fit(X, y)
    except (ValueError, FloatingPointError) as error:
        return {"method": name, "refused": str(error)[:60]}
    return {
        "method": name,
        "precision": learned_precisions(model)[0],
        "loss": float(log_loss(y_val, model.predict_proba(X_val))),
        "passes": model.n_passes_,
        "s": clock.seconds,
        "stein ratio": model.diagnostics_["stein_ratio"],
        "sampler": repr(model.sampler_),
    }


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
        "s": seconds,
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

    with Clock() as clock:
        state = svi.init(jax.random.PRNGKey(0), X_jax[:batch_size], y_jax[:batch_size])
        for key in jax.random.split(jax.random.PRNGKey(1), n_steps):
            state, _ = advance(state, key)
        params = {name: np.asarray(value) for name, value in svi.get_params(state).items()}
    return params, clock.seconds


def cross_validated(data: Split) -> dict:
    """LogisticRegressionCV over ten values, five folds, a hundred iterations of lbfgs at most."""
    X, X_val, y, y_val = data
    options = {"cv": 5, "max_iter": 100, "scoring": "neg_log_loss", "use_legacy_attributes": False}
    with Clock() as clock:
        model = LogisticRegressionCV(Cs=np.logspace(-4, 4, 10), **options).fit(X, y)
        loss = float(log_loss(y_val, model.predict_proba(X_val)))
    return {
        "method": "LogisticRegressionCV",
        "precision": float(1 / np.ravel(model.C_)[0]),
        "loss": loss,
        "passes": float(np.sum(model.n_iter_) * 0.8),
        "s": clock.seconds,
    }


def grid(data: Split, name: str, n_values: int) -> list[dict]:
    """Validation loss over prior precisions from .1 to 1e3."""
    X, X_val, y, y_val = data
    model = BayesianLogisticRegressionSGFS(SAMPLERS[name], random_state=0, **RUNS[name])
    options = {"prior_precisions": np.logspace(-1, 3, n_values), "em": EM, "n_jobs": 2}
    with Clock() as clock:
        path = hyperparameter_path(model, X, y, X_val, y_val, **options)
    print(f"the grid took {clock.seconds:.0f} s")
    columns = path.prior_precisions, path.loss, path.n_passes
    return [
        {
            "method": "grid, SGFS",
            "precision": float(p),
            "loss": float(loss),
            "passes": float(passes),
        }
        for p, loss, passes in zip(*columns, strict=True)
    ]


def run(name: str, n_values: int, skip: list[str]) -> list[dict]:
    """All methods on one data set."""
    data, options, table = SPLITS[name](), RUNS[name], []

    def add(row: dict) -> None:
        table.append({"data": name} | row)
        print(row, flush=True)

    add(learned(data, "EM, SGFS", SAMPLERS[name], **options))
    add(learned(data, "EM, default sampler", None, **options))
    # the step of theory, then down to one that these data bear
    for step_size in ("auto", 0.3, 0.1, 0.03, 0.01):
        sampler = ConstantSGD("kron", step_size=step_size, batch_size=2000)
        add(learned(data, f"EM, constant SGD (step {step_size})", sampler, **options))
        if "loss" in table[-1]:
            break
    for label, method in {"mean-field": mean_field, "cv": cross_validated}.items():
        if label not in skip:
            add(method(data))
    return table + [{"data": name} | row for row in grid(data, name, n_values)]


def claims(rows: list[dict]) -> list[Claim]:
    """The learned precision is as good as the best of the grid, and cheaper to find."""
    em = rows[0]
    best = min(row["loss"] for row in rows if row["method"] == "grid, SGFS")
    seconds = [row["s"] for row in rows if row["method"] == "LogisticRegressionCV"]
    ratio = em["s"] / seconds[0] if seconds else None
    label = "seconds of the EM fit over LogisticRegressionCV's"
    return [
        Claim(f"loss at the EM value, best on the grid {best:.4f}", em["loss"], high=1.01 * best),
        Claim(label, ratio, high=1 / 3, strict=True),
    ]


def draw(name: str, table: list[dict]) -> Figure:
    """Loss over the grid, and where each method ends."""
    figure = Figure(figsize=(6, 4), layout="constrained", dpi=130)
    ax = figure.subplots()
    on_grid = [row for row in table if row["method"] == "grid, SGFS"]
    others = [row for row in table if row not in on_grid and "loss" in row]
    x, loss = [row["precision"] for row in on_grid], [row["loss"] for row in on_grid]
    ax.plot(x, loss, ".-", color="grey", label="SGFS at a grid")
    for row, marker in zip(others, "osD^v", strict=False):
        label = f"{row['method']}, {row['passes']:.0f} passes"
        ax.plot(row["precision"], row["loss"], marker, label=label)
    losses = [row["loss"] for row in table if "loss" in row]
    ax.set(xscale="log", xlabel="prior precision", ylabel="validation loss (nats)", title=name)
    ax.set_ylim(min(losses) * 0.99, min(max(losses), 1.5 * min(losses)))
    ax.legend(frameon=False)
    return figure


def main(report: Report, data: list[str], grid: int, skip: list[str]) -> None:
    """Both data sets."""
    warnings.simplefilter("ignore")
    for name in data:
        rows = run(name, grid, skip)
        key = f"mandt_fig6_{name}"
        report.save(rows, claims(rows), {key: draw(name, rows)}, name=key)


if __name__ == "__main__":
    benchmark(
        main,
        data={"nargs": "+", "choices": list(SPLITS), "default": list(SPLITS)},
        grid={"type": int, "default": 10, "help": "values between .1 and 1e3"},
        skip={"nargs": "+", "choices": ["mean-field", "cv"], "default": []},
    )
