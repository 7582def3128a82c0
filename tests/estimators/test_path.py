"""Prior precisions learned in two samplers beside a grid, against the evidence and HMC."""

import matplotlib
import numpy as np
import pytest
from joblib import parallel_config
from known_evidence import evidence_optimum, rows_of_the_figures
from scipy import stats
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    DRBMClassifier,
    PriorPrecisionDisplay,
    VariationalEM,
    hyperparameter_path,
)
from skbayes_sg.data import InMemory, of_columns
from skbayes_sg.estimators import path as module

matplotlib.use("Agg")
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning"
)  # chains are short
ENTRIES = {"precisions", "path", "loss", "n_passes", "sampler", "warnings"}


def regression(**params):
    """Linear regression with noise variance 1 and without an intercept."""
    fixed = {"noise_variance": 1.0, "fit_intercept": False, "n_chains": 4, "n_draws": 4}
    return BayesianLinearRegression(random_state=0, **({"prior_precision": 1.0} | fixed | params))


@pytest.mark.slow
def test_both_fits_find_the_maximum_of_the_evidence():
    X, y = rows_of_the_figures("informative")
    em = VariationalEM(n_updates=80)
    path = hyperparameter_path(regression(), X, y, X, y, prior_precisions=[1.0], em=em)
    for learned in (path.em_precisions, path.sgd_em_precisions):
        assert learned[0] == pytest.approx(evidence_optimum(X, y), rel=0.01)
    assert path.sgd_em_sampler.get_params()["structure"] == "full"
    assert path.sgd_em_sampler.batch_size == 20  # a two-hundredth of the rows would be 10
    assert path.sgd_em_path.shape == path.em_path.shape == (80, 1)
    assert path.sgd_em_loss == pytest.approx(path.em_loss, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_constant_sgd_agrees_with_hmc_for_any_number_of_classes(n_classes, seed):
    """Uncorrected, the direction without data would make it 3/2 of HMC's for three classes.

    Steps of log precision r move it by the order of r times the variance of an excess: with 2
    chains and 120 updates by 3%. With these the log ratio has a Monte-Carlo error of .003.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 4))
    utilities = X @ rng.standard_normal((4, n_classes))
    y = (utilities + rng.gumbel(size=utilities.shape)).argmax(axis=1)
    model = BayesianLogisticRegression("hmc", n_chains=16, n_draws=8, random_state=seed)
    em = VariationalEM(n_updates=480)
    path = hyperparameter_path(model, X, y, X, y, prior_precisions=[1.0], em=em)
    assert abs(np.log(path.sgd_em_precisions[0] / path.em_precisions[0])) < 5 * 0.003


@pytest.mark.slow
def test_processes_change_nothing_and_names_are_those_documented():
    X, y = (part[:200] for part in rows_of_the_figures("weak"))
    X = X[:, :6]
    em, grid = VariationalEM("feature", n_updates=8), [12.0, 1e4, 0.1]
    with parallel_config(backend="threading"):
        one, two = (
            hyperparameter_path(
                regression(burn_in=20), X, y, X, y, prior_precisions=grid, em=em, n_jobs=n
            )
            for n in (None, 2)
        )
    assert set(one) == {"prior_precisions", "loss", "n_passes", "em_blocks"} | {
        prefix + entry for prefix in ("em_", "sgd_em_") for entry in ENTRIES
    }
    for name in set(one) - {"em_sampler", "sgd_em_sampler"}:
        np.testing.assert_array_equal(one[name], two[name], err_msg=name)
    np.testing.assert_array_equal(one.prior_precisions, [1e4, 12, 0.1])
    assert one.em_blocks == [f"coef[:, {i}]" for i in range(6)]
    assert one.sgd_em_precisions.shape == one.em_precisions.shape == (6,)
    assert one.loss.shape == one.n_passes.shape == (3,)
    assert one.loss[0] > one.em_loss  # the strongest prior lets nothing be learned
    assert one.em_sampler.__class__ is not one.sgd_em_sampler.__class__


def test_values_that_are_refused():
    X, y = (part[:400] for part in rows_of_the_figures("weak"))
    np.testing.assert_array_equal(module._grid(2), [1e4, 1e-4])
    for wrong in ([1.0, -1.0], 0, "many"):
        with pytest.raises(ValueError, match="prior_precisions must"):
            hyperparameter_path(regression(), X, y, X, y, prior_precisions=wrong)


@pytest.fixture
def scalar_step(monkeypatch):
    """That of regressions with more parameters than a matrix may have."""
    monkeypatch.setattr(module, "has_matrix", lambda dim: False)


def test_an_unstable_step_takes_smaller_minibatches(scalar_step, monkeypatch):
    """Largest over mean curvature r is 10, and 2 r n/N below 2 for n < 40."""
    monkeypatch.setattr(module, "_BATCHES_PER_PASS", 4)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 1)) + 0.1 * rng.standard_normal((400, 10))
    y = X.sum(axis=1) / 10 + rng.standard_normal(400)
    em = VariationalEM(n_updates=16)
    path = hyperparameter_path(regression(), X, y, X, y, prior_precisions=[1.0], em=em)
    assert path.sgd_em_sampler.structure == "scalar"
    assert path.sgd_em_sampler.batch_size in (25, 50)
    assert np.isfinite(path.sgd_em_precisions).all()


SHORT = BayesianLogisticRegression(
    prior_precision=1.0, n_chains=2, n_draws=8, burn_in=40, thin=1, random_state=0
)


def by_minibatches_on_iris(model):
    X, y = load_iris(return_X_y=True)
    em = VariationalEM(n_updates=8)
    return hyperparameter_path(model, scale(X), y, scale(X), y, prior_precisions=[1.0], em=em)


@pytest.mark.slow
def test_minibatches_of_few_rows_run_where_those_of_twenty_do_not(scalar_step):
    """Three classes nearly separated: hardly any gradient noise, so the scalar step is long."""
    path = by_minibatches_on_iris(SHORT)
    assert path.sgd_em_sampler.batch_size in (1, 2, 5)
    assert np.isfinite([path.sgd_em_precisions[0], path.sgd_em_loss]).all()


def test_a_step_that_cannot_run_gives_no_number_but_the_reason(scalar_step, monkeypatch):
    monkeypatch.setattr(module, "_SMALLEST_BATCH", 20)
    with pytest.warns(ConvergenceWarning, match="constant SGD .sgd_em_.*: .* cannot run"):
        path = by_minibatches_on_iris(SHORT)
    assert np.isnan([path.sgd_em_precisions[0], path.sgd_em_loss, path.sgd_em_n_passes]).all()
    assert path.sgd_em_path.shape == (0, 1)
    assert path.sgd_em_sampler is None
    assert "rely on em_precisions" in path.sgd_em_warnings[0]
    assert "spectral radius" in path.sgd_em_warnings[0]
    display = PriorPrecisionDisplay.from_hyperparameter_path(path)
    assert display.ax_.get_legend().get_texts()[2].get_text() == "EM in constant SGD: refused"
    matplotlib.pyplot.close("all")


def test_a_regression_has_the_step_of_a_matrix():
    """On rows where one step for all directions needs minibatches of a few rows."""
    path = by_minibatches_on_iris(SHORT)
    assert (path.sgd_em_sampler.structure, path.sgd_em_sampler.batch_size) == ("full", 20)
    assert np.isfinite([path.sgd_em_precisions[0], path.sgd_em_loss]).all()


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_step_of_a_regression_has_the_spread_of_the_posterior(n_classes):
    """Columns are correlated, so that one variance for all directions would be wrong and be told.

    Along a common shift of four logits the gradient has no noise, and what lacks is injected.
    """
    rng = np.random.default_rng(3)
    X = rng.standard_normal((700, 3))
    X[:, 2] += 2 * X[:, 0]
    utilities = X @ rng.standard_normal((3, n_classes))
    y = (utilities + rng.gumbel(size=utilities.shape)).argmax(axis=1)
    model = BayesianLogisticRegression(n_draws=150, random_state=0)
    em = VariationalEM(n_updates=40)
    path = hyperparameter_path(model, X, y, X, y, prior_precisions=[1.0], em=em)
    assert path.sgd_em_sampler.structure == "full"
    assert not [one for one in path.sgd_em_warnings if "sd_ratio" in one or "noise" in one]
    assert path.sgd_em_precisions == pytest.approx(path.em_precisions, rel=0.1)


@pytest.mark.slow
def test_a_step_too_slow_to_learn_says_so(scalar_step):
    """The weak columns, thirty times smaller, take some 900 times the passes of the others."""
    X, y = rows_of_the_figures("weak")
    X[:, :20] *= 30
    em = VariationalEM(n_updates=40)
    with pytest.warns(ConvergenceWarning, match="constant SGD .sgd_em_.*above 1.05"):
        path = hyperparameter_path(regression(), X, y, X, y, prior_precisions=[1.0], em=em)
    optimum = evidence_optimum(X / of_columns(InMemory.of(X, y)).unit, y)
    assert not 0.9 < path.sgd_em_precisions[0] / optimum < 1.1
    assert any("r_hat_max" in warning for warning in path.sgd_em_warnings)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [BayesianMLPClassifier((4,)), DRBMClassifier(3)],
    ids=lambda model: type(model).__name__,
)
def test_networks(model, monkeypatch):
    monkeypatch.setattr("skbayes_sg.chains.tuning._BURN_INS", 1)
    X, y = load_iris(return_X_y=True)
    model.set_params(n_chains=2, n_draws=8, burn_in=30, thin=1, random_state=0)
    em = VariationalEM(n_updates=8)
    path = hyperparameter_path(model, scale(X), y, scale(X), y, prior_precisions=[1.0], em=em)
    assert len(path.em_blocks) == 2
    assert path.sgd_em_precisions.shape == (2,)
    assert path.sgd_em_sampler.structure == "scalar"
    assert path.sgd_em_warnings


@pytest.mark.slow
def test_the_display_shows_both_points():
    """Open marks of two shapes, so that neither hides the other where they agree."""
    X, y = (part[:100] for part in rows_of_the_figures("informative"))
    em = VariationalEM(n_updates=8)
    path = hyperparameter_path(regression(), X, y, X, y, prior_precisions=[1.0, 10.0], em=em)
    display = PriorPrecisionDisplay.from_hyperparameter_path(path)
    curve, circle, cross = display.lines_
    np.testing.assert_array_equal(curve.get_xydata(), np.c_[path.prior_precisions, path.loss])
    np.testing.assert_array_equal(circle.get_xydata(), [[path.em_precisions[0], path.em_loss]])
    np.testing.assert_array_equal(
        cross.get_xydata(), [[path.sgd_em_precisions[0], path.sgd_em_loss]]
    )
    assert circle.get_fillstyle() == "none"
    assert (circle.get_marker(), cross.get_marker()) == ("o", "x")
    assert display.ax_.get_xscale() == "log"
    matplotlib.pyplot.close("all")


def test_the_loss_of_a_regression_is_the_negative_log_density_of_its_predictions():
    rng = np.random.default_rng(4)
    X, new = rng.standard_normal((80, 2)), rng.standard_normal((30, 2)) * 2
    y, y_new = (3 * part[:, 0] + 0.3 * rng.standard_normal(len(part)) for part in (X, new))
    model = regression(noise_variance=0.09, n_draws=20)
    loss = module._Data(X, y, None, new, y_new).fit(model)
    mean, std = model.predict(new, return_std=True)
    assert loss == pytest.approx(-stats.norm.logpdf(y_new, mean, std).mean(), rel=1e-9)
