"""Draws of fifty small fits, to the last bit: a redesign keeps them.

A change of numbers is a commit of its own that says why; ``OMP_NUM_THREADS=1
OPENBLAS_CORETYPE=SkylakeX python tests/promises/test_golden.py`` writes golden.json anew, and the
file says on which kernel of BLAS. On another machine (other NumPy, SciPy, kernels, threads) the
last bits differ. The random numbers are the same there, so means and standard deviations must agree
far better than two runs would: to a tenth of the Monte Carlo error of as many independent draws, in
single precision too.
"""

import hashlib
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy
from scipy import sparse
from threadpoolctl import threadpool_info

from skbayes_sg import (
    BayesianBinomialRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    DRBMClassifier,
    VariationalEM,
)
from skbayes_sg.samplers import (
    HMC,
    IASG,
    SGD,
    SGFS,
    SGLD,
    ConstantSGD,
    CosineCycle,
    MomentumSGD,
    PolynomialDecay,
    UnderdampedLangevin,
)

STORE = Path(__file__).with_name("golden.json")
SHORT = {"n_chains": 3, "n_draws": 20, "random_state": 0}
GIVEN = SHORT | {"prior_precision": 1.0}


def rows(n_rows, n_features=4, n_classes=2, seed=0):
    """X, and labels that depend on it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features)) * np.linspace(0.5, 2, n_features)
    logits = np.tanh(X) @ rng.standard_normal((n_features, n_classes)) + rng.gumbel(
        size=(n_rows, n_classes)
    )
    return X, logits.argmax(axis=1)


def numbers(n_rows, n_features=4, seed=0):
    X, _ = rows(n_rows, n_features, seed=seed)
    rng = np.random.default_rng(seed + 1)
    return X, X @ rng.standard_normal(n_features) + 2 + rng.standard_normal(n_rows)


def logistic(sampler=None, n_rows=400, n_classes=2, weight=None, data=rows, **parameters):
    X, y = data(n_rows, n_classes=n_classes)
    if sampler is not None:
        parameters = {"burn_in": 100} | parameters
    model = BayesianLogisticRegression(sampler, **(GIVEN | parameters))
    return model.fit(X, y, sample_weight=weight)


def linear(sampler=None, n_rows=400, **parameters):
    return BayesianLinearRegression(sampler, **(GIVEN | parameters)).fit(*numbers(n_rows))


def binomial(**parameters):
    X, y = rows(200, n_classes=6)
    return BayesianBinomialRegressor(**GIVEN | parameters).fit(X, y, trials=5)


def mlp(sampler=None, n_rows=150, n_classes=3, **parameters):
    X, y = rows(n_rows, n_classes=n_classes)
    bayes = SHORT | {"n_draws": 10, "temperature": 1.0}
    return BayesianMLPClassifier((3,), sampler=sampler, **(bayes | parameters)).fit(X, y)


def drbm(sampler=None, n_rows=150, n_classes=3, **parameters):
    X, y = rows(n_rows, n_classes=n_classes)
    bayes = SHORT | {"n_draws": 10, "temperature": 1.0}
    return DRBMClassifier(3, sampler=sampler, **(bayes | parameters)).fit(X, y)


def again(model, *data):
    """A second fit of a warm-started model, on the same data or others."""
    X, y = data or rows(400)
    return model.fit(X, y)


def warm_em():
    return again(
        logistic(SGFS(batch_size=50), warm_start=True, prior_precision="learned", burn_in=100)
    )


def streamed(model, data, **more):
    """Three chunks."""
    X, y = data
    if hasattr(model, "diagnose"):  # a network
        more["n_total"] = 3000
    for part in np.array_split(np.arange(len(y)), 3):
        model.partial_fit(X[part], y[part], **more)
        more.pop("classes", None)
    return model


def stream_of_classes(model):
    return streamed(model, rows(300, n_classes=3), classes=[0, 1, 2])


def stream_after_fit():
    model = logistic(n_classes=3, burn_in=100)
    return streamed(model, rows(300, n_classes=3, seed=5))


def stream_of_network_after_fit():
    return streamed(mlp(burn_in=4, n_draws=4), rows(300, n_classes=3, seed=5))


def sparse_rows():
    X, y = rows(400)
    X[np.abs(X) < 0.5] = 0
    return BayesianLogisticRegression(SGFS(batch_size=50), **GIVEN).fit(sparse.csr_array(X), y)


def single_precision():
    X, y = rows(6000)
    return BayesianLogisticRegression(**GIVEN).fit(X.astype(np.float32), y)


def heavy(n_rows, n_classes):
    """Standardised indicators of rare categories: control variates are refused."""
    rng = np.random.default_rng(0)
    level = rng.zipf(1.8, n_rows)
    X = (level[:, None] == np.arange(1, 41)).astype(float)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, (rng.random(n_rows) < 0.3 + 0.3 * (level % 2)).astype(int)


def nearly_separable(n_rows, n_classes):
    """The precision is sampled by HMC."""
    X, _ = rows(n_rows)
    logits = 3 * X @ np.random.default_rng(1).standard_normal((X.shape[1], n_classes))
    return X, logits.argmax(axis=1)


def many_parameters():
    X, y = rows(600, n_features=100, n_classes=11)
    return BayesianLogisticRegression(prior_precision=1.0, random_state=0, **BRIEF).fit(X, y)


def many_parameters_learned():
    X, y = rows(600, n_features=100, n_classes=11)
    return BayesianLogisticRegression(prior_precision=SOON, random_state=0, **BRIEF).fit(X, y)


WEIGHTS = np.linspace(0.2, 2.0, 400)
BRIEF = {"n_chains": 2, "n_draws": 5, "burn_in": 16, "thin": 1}
SOON = VariationalEM(n_updates=12)
BRIEF_EM = VariationalEM(per="feature", n_updates=40)

FITS = {
    "logistic": lambda: logistic(),
    "logistic, weighted, three classes": lambda: logistic(
        n_classes=3, weight=WEIGHTS, class_weight="balanced"
    ),
    "logistic, control variates": lambda: logistic(n_rows=6000),
    "logistic, control variates, three classes": lambda: logistic(n_rows=6000, n_classes=3),
    "logistic, float32": single_precision,
    "logistic, sparse": sparse_rows,
    "logistic, heavy tails": lambda: logistic(n_rows=6000, data=heavy, **BRIEF),
    "logistic, refused": lambda: logistic(n_rows=6000, data=heavy, prior_precision=0.01, **BRIEF),
    "logistic, thrown, em": lambda: logistic(
        n_rows=6000, data=heavy, prior_precision=SOON, **BRIEF
    ),
    "logistic, thrown, em, many rows": lambda: logistic(
        n_rows=20_500, data=heavy, prior_precision=VariationalEM("feature", n_updates=12), **BRIEF
    ),
    "logistic, nearly separable": lambda: logistic(
        n_rows=100, n_classes=3, data=nearly_separable, prior_precision="learned", **BRIEF
    ),
    "logistic, horseshoe": lambda: logistic(
        n_rows=100, prior_precision="learned", prior="horseshoe", **BRIEF
    ),
    "logistic, many parameters": many_parameters,
    "logistic, many parameters, em": many_parameters_learned,
    "SGFS": lambda: logistic(SGFS(batch_size=50), n_classes=3),
    "SGFS, diag, pilots": lambda: logistic(
        SGFS(structure="diag", batch_size=50), burn_in=100, thin=9
    ),
    "SGFS, block": lambda: logistic(SGFS(1.0, structure="block", batch_size=50), n_classes=3),
    "SGFS, kron": lambda: logistic(SGFS(1.0, structure="kron", batch_size=50), n_classes=3),
    "SGFS, scalar, annealed": lambda: logistic(
        SGFS(PolynomialDecay(30.0, 100.0, 0.3), structure="scalar", batch_size=50), thin=9
    ),
    "SGFS, paper": lambda: logistic(
        SGFS(1.0, variant="paper", adapt="always", refresh_every=1, replace=True, batch_size=50)
    ),
    "SGFS, mandt": lambda: logistic(
        SGFS(0.5, structure="diag", variant="mandt", h_max=0.01, batch_size=50)
    ),
    "SGFS, single row": lambda: logistic(SGFS(1.0, covariance="single_row", batch_size=50)),
    "SGFS, B": lambda: logistic(SGFS(2.0, B=30.0, curvature="empirical", batch_size=50)),
    "SGFS, large minibatches": lambda: logistic(SGFS(B="bounded", alpha=1.0, batch_size=300)),
    "UnderdampedLangevin": lambda: logistic(UnderdampedLangevin(1.5, batch_size=20), n_rows=3000),
    "SGLD": lambda: logistic(SGLD(batch_size=50)),
    "SGLD, annealed, clipped": lambda: logistic(
        SGLD(PolynomialDecay(0.05, 100.0, 0.5), 0.9, "diag", ("norm", 300.0), batch_size=50)
    ),
    "SGLD, control variates": lambda: logistic(
        SGLD(batch_size=50, variance_reduction="control_variate")
    ),
    "SGD": lambda: logistic(SGD(batch_size=50)),
    "ConstantSGD": lambda: logistic(ConstantSGD(batch_size=50)),
    "ConstantSGD, three classes": lambda: logistic(ConstantSGD("diag", batch_size=50), n_classes=3),
    "ConstantSGD, scalar": lambda: logistic(ConstantSGD("scalar", "ou", batch_size=20)),
    "MomentumSGD": lambda: logistic(MomentumSGD(batch_size=50)),
    "IASG": lambda: logistic(IASG(batch_size=50)),
    "IASG, scalar": lambda: logistic(IASG(structure="scalar", batch_size=50)),
    "HMC": lambda: logistic(HMC(n_leapfrog=3, structure="diag")),
    "em": lambda: logistic(prior_precision="learned"),
    "em, per feature, control variates": lambda: logistic(n_rows=6000, prior_precision=BRIEF_EM),
    "em, warm start": warm_em,
    "warm start": lambda: again(logistic(SGFS(batch_size=50), warm_start=True)),
    "warm start, control variates": lambda: again(
        logistic(n_rows=6000, warm_start=True), *rows(6000)
    ),
    "warm start, other data": lambda: again(logistic(warm_start=True), *rows(500, seed=3)),
    "linear": lambda: linear(),
    "linear, given noise": lambda: linear("constant_sgd", 3000, noise_variance=1.0),
    "linear, control variates": lambda: linear(n_rows=6000),
    "linear, em": lambda: linear(prior_precision="learned"),
    "binomial": lambda: binomial(),
    "beta-binomial": lambda: binomial(overdispersed=True),
    "mlp": lambda: mlp(burn_in=20),  # longer chains end elsewhere by rounding
    "mlp, two classes, em": lambda: mlp(
        "sghmc", n_classes=2, prior_precision=VariationalEM(n_updates=40)
    ),
    "mlp, cycles": lambda: mlp(
        SGLD(CosineCycle(0.003, 0.0003, 100), batch_size=50), burn_in=200, thin=10
    ),
    "mlp, cold": lambda: mlp(temperature=None),
    "drbm": lambda: drbm(burn_in=100),
    "stream": lambda: stream_of_classes(BayesianLogisticRegression(**GIVEN)),
    "stream, em": lambda: stream_of_classes(
        BayesianLogisticRegression(prior_precision=SOON, forgetting_factor=0.9, **SHORT)
    ),
    "stream, SGFS": lambda: stream_of_classes(
        BayesianMLPClassifier(
            (3,),
            sampler=SGFS(structure="diag", alpha=2.0, batch_size=10),
            **SHORT | {"burn_in": 10, "thin": 1},
        )
    ),
    "stream, SGLD": lambda: stream_of_classes(
        BayesianMLPClassifier(
            (3,), sampler=SGLD(1e-4, batch_size=10), **SHORT | {"burn_in": 4, "thin": 3}
        )
    ),
    "stream, default after fit": stream_after_fit,
    "stream, linear": lambda: streamed(BayesianLinearRegression(**GIVEN), numbers(3000)),
    "stream, mlp, after fit": stream_of_network_after_fit,
    "stream, mlp": lambda: stream_of_classes(
        BayesianMLPClassifier((3,), **SHORT | {"burn_in": 0, "thin": 1})
    ),
}


def run(fit):
    """What a fit says of itself, and its draws as a hash."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit()
    draws = np.ascontiguousarray(model.draws_)
    return {
        "hash": hashlib.sha256(draws.tobytes() + model.draw_weights_.tobytes()).hexdigest()[:16],
        "shape": list(draws.shape),
        "mean": np.average(draws.mean(axis=0), axis=0, weights=model.draw_weights_)[:5].tolist(),
        "sd": draws.std(axis=(0, 1))[:5].tolist(),
        "reason": getattr(model, "sampler_reason_", ""),
        "sampler": repr(getattr(model, "sampler_", None)),
        "n_iter": getattr(model, "n_iter_", 0),
        "n_passes": getattr(model, "n_passes_", 0.0),
        "diagnostics": model.diagnostics_,
        "prior": np.unique(model.prior_precision_)[:5].tolist(),
        "warnings": [str(w.message) for w in caught],
    }


def machine():
    """What the last bits of a result depend on."""
    libraries = threadpool_info()
    blas = sorted({f"{one['internal_api']} {one.get('architecture')}" for one in libraries})
    threads = max(one["num_threads"] for one in libraries if one["user_api"] == "blas")
    features = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    return {
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "blas": blas,
        "threads": threads,
        "simd": features,
    }


SHARE = 0.1  # of a Monte Carlo error, on another machine
ROUNDING = 1e-5  # of a mean; of the largest, where one draw has no Monte Carlo error to be known
GOLDEN = json.loads(STORE.read_text()) if STORE.exists() else {"machine": None, "fits": {}}
SAME_MACHINE = GOLDEN["machine"] == machine()


def in_order(value):
    """As text, in which nan is nan and the order of keys does not matter."""
    return json.dumps(value, sort_keys=True)


LONG = (  # half of the seconds of all
    "SGFS, diag, pilots",
    "linear, given noise",
    "logistic, many parameters, em",
    "logistic, refused",
    "logistic, sparse",
    "logistic, thrown, em",
    "logistic, thrown, em, many rows",
    "mlp, cold",
    "mlp, two classes, em",
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in FITS]
)
def test_a_fit_is_what_it_was(name):
    found, expected = json.loads(json.dumps(run(FITS[name]))), GOLDEN["fits"][name]
    if SAME_MACHINE:
        differing = [key for key in expected if in_order(found[key]) != in_order(expected[key])]
        assert not differing, {key: (found[key], expected[key]) for key in differing}
        return
    assert found["shape"] == expected["shape"]
    assert found["n_iter"] == expected["n_iter"]
    n_draws, sd = np.prod(expected["shape"][:2]), np.array(expected["sd"])
    off_mean, off_sd = (np.abs(np.subtract(found[key], expected[key])) for key in ("mean", "sd"))
    size = np.abs(expected["mean"])
    rounding = ROUNDING * np.where(sd > 0, size, size.max())  # trajectories mix all coordinates
    assert (off_mean <= SHARE * sd / np.sqrt(n_draws) + rounding).all()
    assert (off_sd <= SHARE * sd / np.sqrt(2 * n_draws)).all()


if __name__ == "__main__":
    fits = {name: run(fit) for name, fit in FITS.items()}
    STORE.write_text(
        json.dumps({"machine": machine(), "fits": fits}, indent=1, sort_keys=True) + "\n"
    )
