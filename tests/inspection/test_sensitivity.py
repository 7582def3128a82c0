"""Power scaling: closed forms, ArviZ on the same draws, names, diagnoses, what is refused."""

import logging
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import xlogy
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import (
    BayesianLinearRegressionSGFS,
    BayesianLogisticRegressionSGFS,
    BayesianMLPClassifier,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianRobustRegressor,
)
from skbayes_sg.inspection import prior_sensitivity
from skbayes_sg.inspection.sensitivity import rate_of_change
from skbayes_sg.samplers import SGLD, PolynomialDecay

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = {"n_chains": 4, "n_draws": 250, "random_state": 0}
RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 3))
FRAME = pd.DataFrame(X, columns=["age", "income", "debt"])
NUMBERS = X @ [1, -1, 0.5] + RNG.standard_normal(80)
PAIR = np.where(NUMBERS > 0, "yes", "no")
TRIPLE = np.array(["cold", "mild", "hot"])[np.digitize(NUMBERS, [-1, 1])]
COUNTS = RNG.poisson(np.exp(0.3 * NUMBERS))
LINEAR = BayesianLinearRegressionSGFS(prior_precision=1.0, **SHORT)
MODELS = {
    "linear": (LINEAR, NUMBERS),
    "linear, sampled precision": (BayesianLinearRegressionSGFS(**SHORT), NUMBERS),
    "binary": (BayesianLogisticRegressionSGFS(prior_precision=1.0, **SHORT), PAIR),
    "multinomial": (BayesianLogisticRegressionSGFS(**SHORT), TRIPLE),
    "counts": (BayesianNegativeBinomialRegressor(**SHORT), COUNTS),
    "robust": (BayesianRobustRegressor(**SHORT), NUMBERS),
    "horseshoe": (BayesianLinearRegressionSGFS(prior="horseshoe", **SHORT), NUMBERS),
}


# -- closed forms -----------------------------------------------------------------------------


def rate_of_normals(base, scaled, low, high):
    """Distance per doubling between two ends, from means and sds, and those for each alpha."""
    x, found = np.linspace(low, high, 20_001), []
    for alpha, other in scaled.items():
        ratios = []
        for side in ("cdf", "sf"):
            p, q = (getattr(stats.norm(*distribution), side)(x) for distribution in (base, other))
            divergence = xlogy(p, 2 * p / (p + q)) + xlogy(q, 2 * q / (p + q))
            ratios.append(divergence.sum() / np.log(2) / (p + q).sum())
        found.append(np.sqrt(max(ratios)) / abs(np.log2(alpha)))
    return np.mean(found)


def normal_posterior(y, of_prior=1.0, of_rows=1.0):
    """Means and sds of the coefficients, prior and likelihood to a power each."""
    covariance = np.linalg.inv(of_rows * X.T @ X + of_prior * 20.0 * np.eye(3))
    return covariance @ (of_rows * X.T @ y), np.sqrt(covariance.diagonal())


def test_normal_posteriors_have_the_values_of_quadrature(seed):
    """Six fits: the mean difference is within five of its Monte Carlo errors."""
    model = BayesianLinearRegressionSGFS(
        prior_precision=20.0, noise_variance=1.0, fit_intercept=False, n_chains=8, n_draws=500
    )
    off = []
    for k in range(6):
        model.set_params(random_state=100 * seed + k).fit(FRAME, NUMBERS)
        found = prior_sensitivity(model, FRAME, NUMBERS)
        draws = model.coef_samples_.reshape(-1, 3)
        base, expected = normal_posterior(NUMBERS), []
        for power in ("of_prior", "of_rows"):
            other = {alpha: normal_posterior(NUMBERS, **{power: alpha}) for alpha in (0.99, 1.01)}
            expected.append(
                [
                    rate_of_normals(
                        [each[j] for each in base],
                        {
                            alpha: [each[j] for each in distribution]
                            for alpha, distribution in other.items()
                        },
                        draws[:, j].min(),
                        draws[:, j].max(),
                    )
                    for j in range(3)
                ]
            )
        off.append(found[["prior", "likelihood"]].to_numpy().T - expected)
    assert np.min(expected) > 0.05  # far from what chance alone makes
    error = np.std(off, axis=0, ddof=1) / np.sqrt(6)
    assert (np.abs(np.mean(off, axis=0)) < 5 * error).all(), (np.mean(off, axis=0), error)


def test_chance_alone_moves_a_value_as_little_as_the_docstring_says(seed):
    """A quantity that has nothing to do with the prior, of 4000 independent draws."""
    rng = np.random.default_rng(seed)
    pairs = rng.standard_normal((100, 2, 4000))
    found = [rate_of_change(values, 5.0 * log_density) for values, log_density in pairs]
    mean, error = np.mean(found), np.std(found, ddof=1) / 10
    assert abs(mean - 5.0 / np.sqrt(4000) / 3) < 5 * error + 0.1 * mean


# -- what ArviZ makes of the same draws -------------------------------------------------------


def named_as_there(tree, table):
    """Values of a table beside those of `psense_summary`, which has terms in another order."""
    import arviz_stats as az

    theirs = az.psense_summary(tree, var_names=["~prior_sd"], round_to=12)
    coefs = [name for name in theirs.index if name.startswith("coef[")]
    if table.index.nlevels == 1:
        return table, theirs.loc[[*coefs, *(n for n in theirs.index if n not in coefs)]]
    order = [
        f"intercept[{one}]" if term == "intercept" else f"coef[{one}, {term}]"
        for one, term in table.index
    ]
    return table, theirs.loc[order]


@pytest.mark.filterwarnings("ignore")  # those of ArviZ
@pytest.mark.parametrize("name", MODELS)
def test_the_values_are_those_of_arviz(name, caplog):
    """It smooths the ends of the weights, which near alpha = 1 changes a value by a twentieth."""
    pytest.importorskip("xarray_einstats")
    caplog.set_level(logging.ERROR)
    model, y = MODELS[name]
    model = clone(model).fit(FRAME, y)
    found = prior_sensitivity(model, FRAME, y)
    assert found.index.equals(model.summary().index)
    ours, theirs = named_as_there(model.to_arviz(FRAME, y, log_likelihood=True), found)
    for column in ("prior", "likelihood"):
        values = ours[column].to_numpy(float)
        np.testing.assert_allclose(values, theirs[column].to_numpy(float), rtol=0.05, atol=1e-3)
    agree = (ours["diagnosis"] == "-").to_numpy() == ~theirs["diagnosis"].str.contains("pot")
    near = np.abs(theirs[["prior", "likelihood"]].to_numpy(float) - 0.05).min(axis=1) < 0.003
    assert (agree | near).all()


@pytest.mark.filterwarnings("ignore")
def test_weights_of_rows_and_of_draws_count_as_in_arviz():
    pytest.importorskip("xarray_einstats")
    weight = np.arange(80) % 3
    sampler = SGLD(PolynomialDecay(0.05, 3.0, 0.6), batch_size=50)
    model = BayesianLogisticRegressionSGFS(prior_precision=1.0, sampler=sampler, **SHORT)
    model.fit(FRAME, PAIR, sample_weight=weight)
    found = prior_sensitivity(model, FRAME, PAIR, sample_weight=weight)
    tree = model.to_arviz(FRAME, PAIR, sample_weight=weight, log_likelihood=True)
    ours, theirs = named_as_there(tree, found)
    columns = ["prior", "likelihood"]
    values = theirs[columns].to_numpy(float)
    np.testing.assert_allclose(ours[columns].to_numpy(float), values, rtol=0.05, atol=2e-3)


# -- names and diagnoses ----------------------------------------------------------------------


def test_a_prior_far_from_the_rows_is_in_conflict_and_a_weak_one_is_not():
    far = BayesianLinearRegressionSGFS(prior_precision=50.0, prior_mean=3.0, **SHORT)
    found = prior_sensitivity(far.fit(FRAME, NUMBERS), FRAME, NUMBERS)
    assert (found.loc[["age", "income", "debt"], "diagnosis"].str.endswith("conflict")).all()
    weak = clone(LINEAR).set_params(prior_precision=1e-4).fit(FRAME, NUMBERS)
    found = prior_sensitivity(weak, FRAME, NUMBERS)
    assert (found.loc[["age", "income", "debt"], "diagnosis"] == "-").all()
    assert (found.loc[["age", "income", "debt"], "prior"] < 0.05).all()
    assert (found["likelihood"] > 0.05).all()


def test_a_column_that_says_nothing_has_its_prior_alone():
    wide = FRAME.assign(debt=1e-3 * FRAME["debt"])
    model = clone(LINEAR).set_params(noise_variance=1.0).fit(wide, NUMBERS)
    found = prior_sensitivity(model, wide, NUMBERS)
    assert found.loc["debt", "diagnosis"] == "potential strong prior or weak likelihood"
    constant = clone(LINEAR).fit(FRAME.assign(debt=1.0), NUMBERS)
    assert prior_sensitivity(constant, FRAME.assign(debt=1.0), NUMBERS)["prior"].notna().all()


def test_a_pipeline_names_the_columns_that_it_is_given():
    pipeline = make_pipeline(StandardScaler(), clone(LINEAR)).fit(FRAME, NUMBERS)
    found = prior_sensitivity(pipeline, FRAME, NUMBERS)
    alone = prior_sensitivity(pipeline[-1], pipeline[0].transform(FRAME), NUMBERS)
    assert found.index[:3].tolist() == list(FRAME)
    np.testing.assert_array_equal(found["prior"], alone["prior"])


def test_classes_in_an_order_have_thresholds():
    answers = ["cold", "mild", "hot"]
    model = BayesianOrdinalClassifier(categories=answers, **SHORT).fit(FRAME, TRIPLE)
    found = prior_sensitivity(model, FRAME, TRIPLE)
    assert found.index.equals(model.summary().index)
    assert (found["likelihood"] > 0.05).all()


def test_without_pandas_words_print_in_the_table(monkeypatch):
    model = clone(LINEAR).fit(X, NUMBERS)
    monkeypatch.setitem(sys.modules, "pandas", None)
    found = prior_sensitivity(model, X, NUMBERS)
    assert repr(found).splitlines()[0].split() == ["prior", "likelihood", "diagnosis"]
    assert repr(found).splitlines()[1].startswith("x0")


# -- what is refused --------------------------------------------------------------------------


def test_what_has_no_sensitivity_is_named():
    model = clone(LINEAR).fit(FRAME, NUMBERS)
    for rows, y in ((FRAME[:40], NUMBERS[:40]), (FRAME, None)):
        with pytest.raises(ValueError, match=r"needs X and y of the fit.* it had 80 rows"):
            prior_sensitivity(model, rows, y)
    stream = clone(LINEAR).partial_fit(FRAME, NUMBERS)
    with pytest.raises(ValueError, match="those that partial_fit has seen are not kept"):
        prior_sensitivity(stream, FRAME, NUMBERS)
    network = BayesianMLPClassifier((2,), n_chains=2, n_draws=5, burn_in=10, thin=1)
    with pytest.raises(ValueError, match="which BayesianMLPClassifier has not; give one of the"):
        prior_sensitivity(network.fit(X, PAIR), X, PAIR)
    with pytest.raises(ValueError, match="draws_, which LinearRegression has not"):
        prior_sensitivity(LinearRegression().fit(X, NUMBERS), X, NUMBERS)
    with pytest.raises(NotFittedError):
        prior_sensitivity(clone(LINEAR), FRAME, NUMBERS)
    few = clone(LINEAR).fit(FRAME, NUMBERS)
    few.draw_weights_ = (np.arange(100) < 3) / 3
    with pytest.raises(ValueError, match="prior_sensitivity needs at least 4 draws"):
        prior_sensitivity(few, FRAME, NUMBERS)
