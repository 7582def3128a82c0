"""Power scaling: closed forms, ArviZ on the same draws, names, diagnoses, what is refused."""

import logging
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr, xlogy
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianRobustRegressor,
)
from skbayes_sg.inspection import prior_sensitivity
from skbayes_sg.inspection.sensitivity import _by_chance, rate_of_change
from skbayes_sg.samplers import SGLD, PolynomialDecay

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = {"n_chains": 4, "n_draws": 250, "random_state": 0}
RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 3))
FRAME = pd.DataFrame(X, columns=["age", "income", "debt"])
FEW = X[:12]
NUMBERS = X @ [1, -1, 0.5] + RNG.standard_normal(80)
PAIR = np.where(NUMBERS > 0, "yes", "no")
TRIPLE = np.array(["cold", "mild", "hot"])[np.digitize(NUMBERS, [-1, 1])]
COUNTS = RNG.poisson(np.exp(0.3 * NUMBERS))
LINEAR = BayesianLinearRegression(prior_precision=1.0, **SHORT)
MODELS = {
    "linear": (LINEAR, NUMBERS),
    "linear, sampled precision": (BayesianLinearRegression(**SHORT), NUMBERS),
    "binary": (BayesianLogisticRegression(prior_precision=1.0, **SHORT), PAIR),
    "multinomial": (BayesianLogisticRegression(**SHORT), TRIPLE),
    "counts": (BayesianNegativeBinomialRegressor(**SHORT), COUNTS),
    "robust": (BayesianRobustRegressor(**SHORT), NUMBERS),
    "horseshoe": (BayesianLinearRegression(prior="horseshoe", **SHORT), NUMBERS),
}


# -- closed forms -----------------------------------------------------------------------------


def rate_of_mixtures(base, scaled, low, high):
    """Distance per doubling between two ends, of mixtures of normal distributions.

    They are means, sds and weights, and those for each alpha.
    """
    x, found = np.linspace(low, high, 2001), []
    for alpha, other in scaled.items():
        ratios = []
        for side in (1.0, -1.0):  # P(. < x), P(. > x)
            p, q = (
                ndtr(side * (x[:, None] - means) / sds) @ weights
                for means, sds, weights in (base, other)
            )
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
    model = BayesianLinearRegression(
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
                    rate_of_mixtures(
                        [each[[j]] for each in (*base, np.ones(3))],
                        {
                            alpha: [each[[j]] for each in (*distribution, np.ones(3))]
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
    error = np.sqrt(np.var(off, axis=0, ddof=1).mean(axis=1, keepdims=True) / 6)
    assert (np.abs(np.mean(off, axis=0)) < 5 * error).all(), (np.mean(off, axis=0), error)


def under_a_learned_precision(model, y, of_prior=1.0, of_hyperprior=1.0):
    """Means, sds (grid, coefficients) and weights (grid,), by quadrature over the precision."""
    scales, unit = model._fit.scales, model._fit.prior.unit
    eta, of_rows, towards = np.linspace(-10, 10, 61), FEW.T @ FEW, FEW.T @ y
    means, sds, weights = [], [], of_hyperprior * scales.log_hyperprior(eta[:, None])
    for k, ell in enumerate(eta):
        lam = np.exp(ell) * unit
        covariance = np.linalg.inv(of_rows + of_prior * np.diag(lam))
        means.append(covariance @ towards)
        sds.append(np.sqrt(covariance.diagonal()))
        weights[k] += 0.5 * (of_prior * np.log(lam).sum() + np.linalg.slogdet(covariance)[1])
        weights[k] += 0.5 * towards @ means[-1]
    weights = np.exp(weights - weights.max())
    return np.array(means), np.array(sds), weights / weights.sum()


@pytest.mark.slow
def test_the_pooling_under_a_learned_precision_is_that_of_quadrature(seed):
    """Five fits, as above; the prior of the coefficients and that of the precision apart."""
    y = np.random.default_rng(seed).standard_normal(len(FEW)) + FEW @ [1.0, -0.7, 0.7]
    model = BayesianLinearRegression(
        noise_variance=1.0, fit_intercept=False, n_chains=8, n_draws=500
    )
    off = []
    for k in range(5):
        model.set_params(random_state=100 * seed + k).fit(FEW, y)
        found = prior_sensitivity(model, FEW, y)
        draws, expected = model.coef_samples_.reshape(-1, 3), []
        *base, of_base = under_a_learned_precision(model, y)
        for power in ("of_prior", "of_hyperprior"):
            row = []
            for j in range(3):
                scaled = {}
                for alpha in (0.99, 1.01):
                    *other, weights = under_a_learned_precision(model, y, **{power: alpha})
                    scaled[alpha] = [*(each[:, j] for each in other), weights]
                of_column = [*(each[:, j] for each in base), of_base]
                ends = draws[:, j].min(), draws[:, j].max()
                row.append(rate_of_mixtures(of_column, scaled, *ends))
            expected.append(row)
        off.append(found[["prior", "hyperprior"]].to_numpy().T - expected)
    assert np.max(expected[0]) > 0.05
    error = np.sqrt(np.var(off, axis=0, ddof=1).mean(axis=1, keepdims=True) / 5)
    # chance alone makes small values larger
    chance = 1 / np.sqrt(4000) / 3
    off = np.mean(off, axis=0)
    assert (np.abs(off) < 5 * error + chance).all(), (off, error, expected)


def test_a_level_with_one_case_is_said_to_depend_on_the_pooling():
    """As an age group in which one of a hundred is ill, beside others with strong effects."""
    level = np.repeat(np.arange(5), 120)
    y = np.tile(np.arange(120), 5) < np.array([8, 1, 30, 40, 60])[level]
    rows = pd.get_dummies(level).iloc[:, 1:].astype(float).rename(columns="level {}".format)
    model = BayesianLogisticRegression(random_state=0).fit(rows, y)
    found = prior_sensitivity(model, rows, y)
    assert found.columns.tolist() == ["prior", "hyperprior", "likelihood", "diagnosis"]
    assert found.loc["level 1", "diagnosis"] == "potential prior-data conflict"
    assert (found["hyperprior"] < found["prior"] / 5).all()
    flat = BayesianLogisticRegression(prior_precision=1e-4, random_state=0).fit(rows, y)
    found = prior_sensitivity(flat, rows, y)
    assert found.columns.tolist() == ["prior", "likelihood", "diagnosis"]
    assert found.loc["level 1", "diagnosis"] == "-"


def test_what_chance_alone_moves_has_no_diagnosis(seed):
    """Twenty coefficients that the rows determine, beside 300 of which only the prior knows."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((500, 320)) * np.repeat([1.0, 1e-4], [20, 300])
    y = 10 * rows[:, :20].sum(axis=1) + rng.standard_normal(500)
    model = BayesianLinearRegression(
        prior_precision=1e-4, noise_variance=1.0, n_chains=4, n_draws=128, random_state=seed
    )
    found = prior_sensitivity(model.fit(rows, y), rows, y)[:20]
    assert found["prior"].max() > 0.05
    assert (found["diagnosis"] != "-").sum() <= 1


def test_chance_alone_moves_a_value_as_little_as_the_docstring_says(seed):
    """A quantity that has nothing to do with the prior, of 4000 independent draws."""
    rng = np.random.default_rng(seed)
    pairs = rng.standard_normal((100, 2, 4000))
    found = [rate_of_change(values, 5.0 * log_density) for values, log_density in pairs]
    mean, error = np.mean(found), np.std(found, ddof=1) / 10
    assert abs(mean - 5.0 / np.sqrt(4000) / 3) < 5 * error + 0.1 * mean
    assert np.max(found) < 1.2 * _by_chance(5.0 * pairs[0, 1].reshape(4, 1000))
    assert np.max(found) > 0.6 * _by_chance(5.0 * pairs[0, 1].reshape(4, 1000))


# -- what ArviZ makes of the same draws -------------------------------------------------------


def named_as_there(tree, table, prior="parameters"):
    """Values of a table beside those of `psense_summary`, which has terms in another order."""
    import arviz_stats as az

    theirs = az.psense_summary(tree, var_names=["~prior_sd"], prior_var_names=[prior], round_to=12)
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
@pytest.mark.quick("linear, sampled precision", "binary", "linear", "multinomial")
def test_the_values_are_those_of_arviz(name, caplog):
    """It smooths the ends of the weights, which near alpha = 1 changes a value by a twentieth."""
    pytest.importorskip("xarray_einstats")
    caplog.set_level(logging.ERROR)
    model, y = MODELS[name]
    model = clone(model).fit(FRAME, y)
    found = prior_sensitivity(model, FRAME, y)
    assert found.index.equals(model.summary().index)
    tree = model.to_arviz(FRAME, y, log_likelihood=True)
    ours, theirs = named_as_there(tree, found)
    for column in ("prior", "likelihood"):
        values = ours[column].to_numpy(float)
        np.testing.assert_allclose(values, theirs[column].to_numpy(float), rtol=0.05, atol=1e-3)
    if "hyperprior" in found:
        _, of_hyper = named_as_there(tree, found, "hyperparameters")
        values = found["hyperprior"].to_numpy(float)
        np.testing.assert_allclose(values, of_hyper["prior"], rtol=0.05, atol=1e-3)
    assert ("hyperprior" in found) == hasattr(model, "prior_precision_draws_")
    agree = (ours["diagnosis"] == "-").to_numpy() == ~theirs["diagnosis"].str.contains("pot")
    limits = np.array([found.attrs[f"limit of {name}"] for name in ("prior", "likelihood")])
    values = theirs[["prior", "likelihood"]].to_numpy(float)  # which have the limit 0.05
    near = ((values > 0.047) & (values < limits + 0.003)).any(axis=1)
    assert (agree | near).all()


@pytest.mark.filterwarnings("ignore")
def test_weights_of_rows_and_of_draws_count_as_in_arviz():
    pytest.importorskip("xarray_einstats")
    weight = np.arange(80) % 3
    sampler = SGLD(PolynomialDecay(0.05, 3.0, 0.6), batch_size=50)
    model = BayesianLogisticRegression(prior_precision=1.0, sampler=sampler, **SHORT)
    model.fit(FRAME, PAIR, sample_weight=weight)
    found = prior_sensitivity(model, FRAME, PAIR, sample_weight=weight)
    tree = model.to_arviz(FRAME, PAIR, sample_weight=weight, log_likelihood=True)
    ours, theirs = named_as_there(tree, found)
    columns = ["prior", "likelihood"]
    values = theirs[columns].to_numpy(float)
    np.testing.assert_allclose(ours[columns].to_numpy(float), values, rtol=0.05, atol=2e-3)


# -- names and diagnoses ----------------------------------------------------------------------


def test_a_prior_far_from_the_rows_is_in_conflict_and_a_weak_one_is_not():
    far = BayesianLinearRegression(prior_precision=50.0, prior_mean=3.0, **SHORT)
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


@pytest.mark.usefixtures("_short_searches")
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
