"""Some random cases, and the cases that `make fuzz` found broken."""

import fuzz
import pytest
from hypothesis import HealthCheck, given, settings

from skbayes_sg import (
    BayesianBinomialRegressor,
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
    DRBMClassifier,
    VariationalEM,
)
from skbayes_sg.samplers import IASG, SGHMC, SGLD, ConstantSGD, CosineCycle

PLAIN = {
    "shape": "small",
    "columns": "normal",
    "change": "",
    "container": "float64",
    "labels": "integers",
    "numbers": "noise",
    "weights": "none",
    "seed": 0,
}
SHORT = {"n_chains": 2, "n_draws": 8, "burn_in": 10, "thin": 1, "random_state": 0}


def found(model, *calls, **data):
    first, *others = calls or ["fit"]
    data = {**PLAIN, **data}
    return {"model": model, "first": (first, data), "calls": [(name, data) for name in others]}


LINEAR = BayesianLinearRegression(**SHORT)
FOUND = {
    "y whose squares overflow": found(LINEAR, numbers="times 1e300"),
    "residuals whose squares overflow": found(LINEAR, numbers="times 1e20", container="float16"),
    "a step that underflows": found(
        BayesianLinearRegression(SGLD(), noise_variance=1e300, intercept_precision=1e300, **SHORT),
        weights="tiny",
        columns="cauchy",
    ),
    "labels that cannot be sorted": found(DRBMClassifier(3, **SHORT), labels="None among them"),
    "a chunk of the rows of one class": found(
        BayesianMLPClassifier((3,), sampler="sgfs", class_weight={0: 0.0}, **SHORT),
        "partial_fit",
        labels="one class",
    ),
    "curvature that overflows": found(
        DRBMClassifier(2, class_weight={0: 1e300}, sampler=ConstantSGD(), **SHORT), shape="few"
    ),
    "a metric that overflows": found(LINEAR, numbers="times 1e20", weights="huge", seed=1),
    "remainders of rows that overflow": found(
        BayesianLinearRegression(prior_precision=1.0, noise_variance=1e-12, **SHORT),
        shape="few",
        numbers="times 1e300",
        seed=9,
    ),
    "a noise variance without bounds": found(
        BayesianLinearRegression(**SHORT), "partial_fit", weights="tiny", columns="zero"
    ),
    "a noise variance without bounds and without rows": found(
        BayesianLinearRegression(noise_prior=(1e-300, 1e-300), **SHORT),
        "partial_fit",
        shape="wide",
        weights="tiny",
        seed=4,
    ),
    "a prior mean whose square overflows": found(
        BayesianLinearRegression(prior_mean=1e300, prior_precision=1.0, **SHORT),
        "partial_fit",
        shape="row",
        weights="tiny",
        container="csc",
    ),
    "y whose squares overflow, with a known noise variance": found(
        BayesianLinearRegression(noise_variance=1e12, **SHORT),
        "partial_fit",
        "summary",
        container="csr",
        columns="lognormal",
        numbers="times 1e300",
    ),
    "one draw of weight in a chain": found(
        BayesianLinearRegression(
            SGHMC(CosineCycle(0.001, 0.1, length=10, keep=0.5), temperature=0.0),
            noise_variance=1e-12,
            **SHORT | {"n_draws": 4, "thin": 2},
        ),
        container="frame",
        columns="counts",
        shape="few",
        seed=7,
    ),
    "a precision that no chains can learn": found(
        BayesianLinearRegression(
            prior_precision=VariationalEM("feature", (0.0, 0.0), n_updates=8),
            noise_prior=(1e-300, 1e-300),
            **SHORT | {"burn_in": 0, "n_chains": 5, "n_draws": 4},
        ),
        "partial_fit",
        shape="wide",
        change="column times 1e6",
        container="frame",
        seed=9,
    ),
    "a window of many heavy rows": found(
        BayesianLinearRegression(IASG(batch_size=5), noise_variance=1.0, **SHORT),
        weights="large",
    ),
    "questions to a stream": found(LINEAR, "partial_fit", "summary", "predict", "fit"),
}


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("case", FOUND.values(), ids=FOUND)
def test_what_was_broken_is_mended(case):
    fuzz.run(case)


@pytest.mark.filterwarnings("default")
@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(fuzz.CASES)
def test_a_call_ends_with_a_finite_model_or_an_error_that_says_what_to_do(case):
    fuzz.run(case)


RARE = {
    "n": 50,
    "events": "one in fifty",
    "levels": "one row each",
    "copies": "none",
    "unit of X": 1e4,
    "unit of y": 1.0,
    "far": 100.0,
    "classes": 2,
    "call": "fit",
    "seed": 0,
}
SLOWER = {BayesianMLPClassifier, BayesianMLPRegressor, DRBMClassifier}  # a second or more
SLOWER |= {BayesianLinearRegression, BayesianNegativeBinomialRegressor, BayesianOrdinalClassifier}
SLOWER |= {BayesianBinomialRegressor, BayesianPoissonRegressor}


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    "cls",
    [
        pytest.param(cls, marks=[pytest.mark.slow] * (cls in SLOWER))
        for cls in [*fuzz.OWN, BayesianMLPRegressor]
    ],
)
def test_a_default_fit_to_rare_events_and_levels_leaks_no_warning(cls, call):
    end = fuzz.run_default(RARE | {"cls": cls, "call": call})
    if cls is BayesianGammaRegressor:  # amounts that are all one but for a level of one row
        assert "singular" in end
    else:
        assert end == "fitted"
