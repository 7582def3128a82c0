"""`to_arviz`: names, groups and numbers, and what ArviZ makes of them."""

import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.base import clone, is_classifier

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianOrdinalClassifier,
    DRBMClassifier,
    VariationalEM,
)
from skbayes_sg.samplers import SGLD, CosineCycle, PolynomialDecay

pytestmark = [
    pytest.mark.usefixtures("_short_searches"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
SHORT = {"n_chains": 4, "n_draws": 40, "burn_in": 20, "random_state": 0}
RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 3))
FRAME = pd.DataFrame(X, columns=["age", "income", "debt"])
PAIR = np.where(X @ [1, -1, 0.5] + RNG.logistic(size=80) > 0, "yes", "no")
TRIPLE = np.array(["cold", "mild", "hot"])[
    (X @ RNG.standard_normal((3, 3)) + RNG.gumbel(size=(80, 3))).argmax(axis=1)
]
NUMBERS = X @ [1, -1, 0.5] + RNG.standard_normal(80)
EM = VariationalEM(n_updates=12)

LOGISTIC = BayesianLogisticRegression(**SHORT)
LINEAR = BayesianLinearRegression(**SHORT)
MODELS = {
    "binary": (LOGISTIC, PAIR),
    "multinomial, learned prior": (clone(LOGISTIC).set_params(prior_precision=EM), TRIPLE),
    "linear": (LINEAR, NUMBERS),
    "linear, given noise, learned prior": (
        clone(LINEAR).set_params(prior_precision=EM, noise_variance=1.5, fit_intercept=False),
        NUMBERS,
    ),
    "network": (BayesianMLPClassifier((2,), **SHORT), TRIPLE),
    "binary network": (BayesianMLPClassifier((2,), **SHORT), PAIR),
    "machine": (DRBMClassifier(2, **SHORT), PAIR),
}
EVERY = pytest.mark.parametrize("name", MODELS)


@pytest.fixture(scope="module")
def fits():
    return {name: clone(model).fit(FRAME, y) for name, (model, y) in MODELS.items()}


# -- names --------------------------------------------------------------------------------------

DIMS = {
    "binary": {"coef": ["feature"], "intercept": [], "prior_sd": ["group"]},
    "multinomial, learned prior": {"coef": ["class", "feature"], "intercept": ["class"]},
    "linear": {"coef": ["feature"], "intercept": [], "noise_variance": [], "prior_sd": ["group"]},
    "linear, given noise, learned prior": {"coef": ["feature"]},
    "network": {
        "coef_0": ["hidden_0", "feature"],
        "intercept_0": ["hidden_0"],
        "coef_1": ["class", "hidden_0"],
        "intercept_1": ["class"],
    },
    "binary network": {
        "coef_0": ["hidden_0", "feature"],
        "intercept_0": ["hidden_0"],
        "coef_1": ["hidden_0"],
        "intercept_1": [],
    },
    "machine": {
        "W": ["hidden", "feature"],
        "U": ["hidden", "class"],
        "c": ["hidden"],
        "d": ["class"],
    },
}


@EVERY
def test_parameters_have_the_names_of_features_and_classes(fits, name):
    model = fits[name]
    posterior = model.to_arviz()["posterior"]
    found = {key: list(variable.dims[2:]) for key, variable in posterior.data_vars.items()}
    assert found == DIMS[name]
    assert posterior["feature"].values.tolist() == ["age", "income", "debt"]
    if "class" in posterior.coords:
        assert posterior["class"].values.tolist() == model.classes_.tolist()
    blocks = model.model_.unpack(model.draws_)
    for (_, block), variable in zip(blocks.items(), posterior.data_vars.values(), strict=False):
        expected = np.exp(block) if variable.name == "noise_variance" else block
        if variable.dims[2:3] == ("class",) and "coef" in blocks:  # less their mean
            expected = block - block.mean(axis=2, keepdims=True)
        np.testing.assert_array_equal(variable.values.ravel(), expected.ravel())


def test_labels_reach_the_right_numbers(fits):
    model = fits["multinomial, learned prior"]
    hot = model.to_arviz()["posterior"]["coef"].sel({"class": "hot", "feature": "debt"})
    position = model.classes_.tolist().index("hot")
    np.testing.assert_array_equal(hot, model.coef_samples_[:, :, position, 2])


def test_a_tree_says_where_it_comes_from(fits):
    attributes = fits["network"].to_arviz().attrs
    assert attributes["inference_library"] == "skbayes_sg"
    assert attributes["sampler"].startswith("SGHMC(")
    assert attributes["temperature"] < 1
    assert attributes["r_hat_max"] == fits["network"].diagnostics_["r_hat_max"]


# -- data ---------------------------------------------------------------------------------------


@EVERY
def test_log_likelihoods_are_those_of_the_predictions(fits, name):
    model, y = fits[name], MODELS[name][1]
    tree = model.to_arviz(FRAME, y, log_likelihood=True)
    found = tree["log_likelihood"]["y"].values.reshape(160, 80)
    if is_classifier(model):
        codes = np.searchsorted(model.classes_, y)
        expected = np.log(model.predict_draws(FRAME, kind="mean")[:, np.arange(80), codes])
        np.testing.assert_array_equal(tree["observed_data"]["y"], codes)
    else:
        flat = model.coef_samples_.reshape(-1, 3)
        mean = X @ flat.T + model.intercept_samples_.ravel()
        sd = np.sqrt(model.noise_variance_samples_.ravel())
        expected = stats.norm.logpdf(y[:, None], mean, sd).T
        np.testing.assert_array_equal(tree["observed_data"]["y"], y)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(tree["constant_data"]["X"], X)


@EVERY
@pytest.mark.parametrize("weight", [None, np.arange(80) % 3], ids=["rows", "weights"])
def test_the_log_posterior_is_that_of_the_fit(fits, name, weight):
    """Up to a constant: it is the energy that the chains moved in."""
    model, y = MODELS[name]
    weighted = weight is not None
    model = clone(model).fit(FRAME, y, sample_weight=weight) if weighted else fits[name]
    tree = model.to_arviz(FRAME, y, sample_weight=weight, log_likelihood=True)
    theta = model.draws_.reshape(160, -1).astype(float)
    lp = tree["sample_stats"]["lp"].values.ravel()
    summed = tree["log_likelihood"]["y"].values.sum(axis=2).ravel()
    rest = lp - summed / model.diagnostics_.get("temperature", 1.0)
    at = theta.copy()
    if "intercept" in model.model_.shapes:  # whose prior is where columns have their means
        blocks = model.model_.unpack(np.arange(theta.shape[1]))
        coef, intercept = (np.atleast_2d(blocks[of]) for of in ("coef", "intercept"))
        at[:, intercept.ravel()] += theta[:, coef] @ np.average(X, axis=0, weights=weight)
    own = [] if name != "linear" else [theta[:, -1], np.exp(-theta[:, -1])]
    precision = np.tile(model.prior_precision_, (160, 1))
    if hasattr(model, "prior_precision_draws_"):
        rho = np.log(model.prior_precision_draws_.reshape(160, 1).astype(float))
        precision[:, :3] *= np.exp(rho) / model.prior_precision_blocks_["coef"]
        if name == "linear":  # precisions are in units of the noise
            precision[:, :3] *= np.exp(-theta[:, -1:])
        own += [rho[:, 0], np.exp(rho[:, 0]), np.exp(-rho[:, 0])]  # its logarithm's prior
        found = tree["posterior"]["prior_sd"].values.ravel()
        expected_sd = np.sqrt(np.mean(1 / precision[:, :3], axis=1))
        np.testing.assert_allclose(found, expected_sd, rtol=1e-5)
    priors = {each: of.values.ravel() for each, of in tree["log_prior"].data_vars.items()}
    atol = 1e-5 if own else 1e-9  # draws of a precision are in single precision
    np.testing.assert_allclose(np.ptp(sum(priors.values()) - rest), 0, atol=atol)
    assert ("hyperparameters" in priors) == hasattr(model, "prior_precision_draws_")
    if "hyperparameters" in priors:  # of the logarithm of the precision, by Gamma and its end
        of_rho = np.column_stack([np.ones(160), np.exp(rho[:, 0]), np.exp(-rho[:, 0]), rho[:, 0]])
        left = priors["hyperparameters"]
        left = left - of_rho @ np.linalg.lstsq(of_rho, left)[0]
        np.testing.assert_allclose(left, 0, atol=atol)
    of_each = stats.norm(0.0, precision**-0.5).logpdf(at[:, : precision.shape[1]]).sum(axis=1)
    others = np.column_stack([np.ones(160), *own])
    left = rest - of_each
    left -= others @ np.linalg.lstsq(others, left)[0]
    np.testing.assert_allclose(left, 0, atol=atol)
    # that of the parameters alone has nothing of the precision's own prior in it
    others = np.column_stack([np.ones(160), *own[: 2 * (name == "linear")]])
    left = priors["parameters"] - of_each
    left -= others @ np.linalg.lstsq(others, left)[0]
    np.testing.assert_allclose(left, 0, atol=atol)
    assert np.ptp(rest) > 0  # the prior is in lp alone
    if weight is not None:
        assert (tree["log_likelihood"]["y"].isel(row=0) == 0).all()


@pytest.mark.parametrize("name", ["binary", "multinomial, learned prior", "network", "machine"])
def test_new_labels_have_the_probabilities_of_the_predictions(fits, name, seed):
    model, rows = fits[name], FRAME.sample(frac=1, replace=True, random_state=seed)
    new = model.to_arviz(rows, posterior_predictive=True)["posterior_predictive"]["y"].values
    proba = model.predict_draws(rows, kind="mean")
    counts = np.stack([(new == code).sum(axis=(0, 1, 2)) for code in range(len(model.classes_))])
    expected = proba.sum(axis=(0, 1))
    error = np.sqrt((proba * (1 - proba)).sum(axis=(0, 1)))
    assert (np.abs(counts - expected) < 5 * error).all()
    assert new.shape == (4, 40, 80)
    again = model.to_arviz(rows, posterior_predictive=True)["posterior_predictive"]["y"]
    np.testing.assert_array_equal(again, new)


@pytest.mark.parametrize("name", ["linear", "linear, given noise, learned prior"])
def test_new_numbers_have_the_moments_of_the_predictions(fits, name):
    model = fits[name]
    new = model.to_arviz(FRAME, posterior_predictive=True)["posterior_predictive"]["y"].values
    mean = np.einsum("rf,csf->csr", X, model.coef_samples_) + model.intercept_samples_[..., None]
    z = (new - mean) / np.sqrt(model.noise_variance_samples_)[..., None]
    assert abs(z.mean()) < 5 / np.sqrt(z.size)
    assert abs(z.var() - 1) < 5 * np.sqrt(2 / z.size)
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-4


def test_sparse_rows_are_dense_rows(fits):
    model = BayesianLogisticRegression(**SHORT).fit(X, PAIR)
    asked = {"log_likelihood": True, "posterior_predictive": True}
    dense, thin = (
        model.to_arviz(X, PAIR, **asked),
        model.to_arviz(sparse.csr_array(X), PAIR, **asked),
    )
    for group in ("log_likelihood", "posterior_predictive", "constant_data", "sample_stats"):
        assert dense[group].equals(thin[group])


def test_rows_need_not_be_those_of_the_fit(fits):
    for name in ("binary", "linear"):
        model, y = fits[name], MODELS[name][1]
        one = model.to_arviz(FRAME[:1], y[:1], log_likelihood=True)["log_likelihood"]["y"]
        every = model.to_arviz(FRAME, y, log_likelihood=True)["log_likelihood"]["y"]
        np.testing.assert_allclose(one.values[..., 0], every.values[..., 0], rtol=1e-12)


# -- draws --------------------------------------------------------------------------------------


def test_draws_are_repeated_in_proportion_to_their_weights():
    sampler = SGLD(PolynomialDecay(0.05, 3.0, 0.6), batch_size=50)
    model = clone(LOGISTIC).set_params(sampler=sampler).fit(X, PAIR)
    coef = model.to_arviz()["posterior"]["coef"].values
    assert coef.shape == (4, 40, 3)
    draws = model.coef_samples_[..., 0, 0].T
    counts = [(coef[:, :, 0] == draw[:, None]).sum(axis=1) for draw in draws]
    expected = 40 * model.draw_weights_
    assert (np.ptp(counts, axis=1) == 0).all()
    assert (np.abs(np.array(counts)[:, 0] - expected) < 1).all()


def test_thresholds_are_those_of_the_draws_beside_them():
    """Also where draws are repeated in proportion to their weights."""
    model = BayesianOrdinalClassifier(
        prior_precision=1.0, categories=["cold", "mild", "hot"], **SHORT
    )
    model.fit(X, TRIPLE)
    model.draw_weights_ = np.geomspace(1.0, 0.01, 40) / np.geomspace(1.0, 0.01, 40).sum()
    found = model.to_arviz()["posterior"]
    beside = np.concatenate([found["coef"].values, found["thresholds"].values], axis=2)
    own = np.concatenate([model.coef_samples_, model.threshold_samples_], axis=2)
    for chain, draws in zip(beside, own, strict=True):
        same = (chain[:, None] == draws).all(axis=2)
        assert same.any(axis=1).all()
        assert not same.any(axis=0).all()


def test_draws_of_weight_zero_are_left_out():
    sampler = SGLD(CosineCycle(0.01, 0.001, 20), batch_size=50)
    model = clone(LOGISTIC).set_params(sampler=sampler, thin=1).fit(X, PAIR)
    counting = model.draw_weights_ > 0
    model.draw_weights_ = counting / counting.sum()
    coef = model.to_arviz()["posterior"]["coef"].values
    np.testing.assert_array_equal(coef, model.coef_samples_[:, counting, 0])


def test_a_stream_has_no_log_posterior_of_these_rows():
    model = BayesianLinearRegression(**SHORT)
    tree = model.partial_fit(X, NUMBERS).to_arviz(X, NUMBERS, log_likelihood=True)
    assert not {"sample_stats", "log_prior"} & set(tree.children)
    assert tree["log_likelihood"]["y"].shape == (*model.draws_.shape[:2], 80)


# -- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"log_likelihood": True}, "log_likelihood needs y"),
        ({"X": X, "log_likelihood": True}, "log_likelihood needs y"),
        ({"posterior_predictive": True}, "posterior_predictive needs X"),
        ({"y": PAIR}, "y needs X"),
        ({"X": X, "sample_weight": np.ones(80)}, "sample_weight needs y"),
        ({"X": X[:, :2]}, "X has 2 features"),
        ({"X": X, "y": TRIPLE}, "not among the classes"),
    ],
)
def test_data_that_are_missing_or_do_not_fit_are_named(given, message):
    model = clone(LOGISTIC).fit(X, PAIR)
    with pytest.raises(ValueError, match=message):
        model.to_arviz(**given)


def test_arviz_that_is_not_installed_is_named(fits, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz_base", None)
    with pytest.raises(ImportError, match="pip install arviz-base"):
        fits["binary"].to_arviz()


# -- what ArviZ makes of it -------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")  # those of ArviZ
@EVERY
@pytest.mark.quick("multinomial, learned prior", "network")
def test_arviz_summarises_compares_and_leaves_out_as_it_is(fits, name):
    pytest.importorskip("xarray_einstats")
    import arviz_stats as az

    model, y = fits[name], MODELS[name][1]
    tree = model.to_arviz(FRAME, y, log_likelihood=True)
    rows = az.summary(tree, round_to="none")
    size = model.draws_.shape[2] + hasattr(model, "prior_precision_draws_")
    assert len(rows) == size
    if name == "multinomial, learned prior":
        assert "coef[hot, debt]" in rows.index
    elif hasattr(model, "coef_"):
        np.testing.assert_allclose(rows["mean"][:3], model.coef_.ravel())
        assert rows.index[0] == "coef[age]"
    assert np.isfinite(az.loo(tree).elpd)
    assert len(az.compare({"one": tree, "other": tree})) == 2


LONG = {"n_chains": 8, "n_draws": 250, "thin": 2}
LEFT_OUT = {
    "binary": (BayesianLogisticRegression(n_chains=8, n_draws=250), PAIR),
    # under a given precision: each refit would learn another
    "multinomial": (
        BayesianLogisticRegression(prior_precision=1.0, n_chains=8, n_draws=250),
        TRIPLE,
    ),
    "linear": (BayesianLinearRegression(n_chains=8, n_draws=250), NUMBERS),
    # at temperature 1: a colder fit is no posterior of which a row can be left out
    "network": (
        BayesianMLPClassifier((2,), prior_precision=1.0, temperature=1.0, **LONG),
        PAIR,
    ),
    "machine": (DRBMClassifier(2, prior_precision=1.0, temperature=1.0, **LONG), PAIR),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of ArviZ
@pytest.mark.parametrize("name", LEFT_OUT)
def test_leaving_rows_out_by_importance_agrees_with_refits(name):
    """60 rows: PSIS of one fit, and 60 fits of 59 rows, each six times."""
    pytest.importorskip("xarray_einstats")
    import arviz_stats as az

    model, y = LEFT_OUT[name]
    Z, y, found, refitted = X[:60], y[:60], [], []
    for seed in range(6):
        model.set_params(random_state=seed)
        tree = clone(model).fit(Z, y).to_arviz(Z, y, log_likelihood=True)
        found.append(az.loo(tree).elpd)
        each = []
        for row in range(60):
            others = np.delete(np.arange(60), row)
            twin = clone(model).fit(Z[others], y[others])
            left = twin.to_arviz(Z[[row]], y[[row]], log_likelihood=True)["log_likelihood"]["y"]
            each.append(np.log(np.exp(left.values).mean()))
        refitted.append(np.sum(each))
    error = np.sqrt((np.var(found, ddof=1) + np.var(refitted, ddof=1)) / 6)
    print(name, np.mean(found), np.mean(refitted), error)
    assert abs(np.mean(found) - np.mean(refitted)) < 5 * error
