"""Learned prior precisions against the evidence in closed form, and what is said of poor ones."""

import matplotlib
import numpy as np
import pytest
from known_evidence import evidence_optimum, rows_of_the_figures
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    DRBMClassifier,
    PriorPrecisionDisplay,
    VariationalEM,
)
from skbayes_sg.chains.run import start_chains
from skbayes_sg.inference.variational_em import StochasticEM, fit_prior
from skbayes_sg.models import DRBM, MLP, Linear, Softmax
from skbayes_sg.posterior import Posterior
from skbayes_sg.posterior.control_variates import Expanded
from skbayes_sg.posterior.gaussian import find_mode
from skbayes_sg.posterior.target import ChainTarget
from skbayes_sg.samplers import HMC, SGFS, SGLD, ConstantSGD, UnderdampedLangevin
from skbayes_sg.samplers.base import RunLength

matplotlib.use("Agg")
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning"
)  # chains are short


def learn(sampler, X, y, seed, n_updates, per="block", **em):
    """A fit of few draws, which learned precisions in units of the columns."""
    return BayesianLinearRegression(
        sampler,
        VariationalEM(per, n_updates=n_updates, **em),
        noise_variance=1.0,
        fit_intercept=False,
        n_chains=16,
        n_draws=4,
        burn_in=50,
        thin=1 if isinstance(sampler, HMC) else 2,
        random_state=seed,
    ).fit(X, y)


def in_units(kind):
    """Rows whose columns have a variance of one, or zero."""
    X, y = rows_of_the_figures(kind)
    sd = X.std(axis=0)
    return X / np.where(sd > 0, sd, 1.0), y


# -- the fixed point --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "sampler"),
    [
        ("informative", SGFS(batch_size=100)),
        pytest.param("null", ConstantSGD(batch_size=100), marks=pytest.mark.slow),
        pytest.param("informative", ConstantSGD(batch_size=100), marks=pytest.mark.slow),
        pytest.param("null", SGFS(batch_size=100), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_the_evidence_is_maximised(kind, sampler, seed):
    """Constant SGD too, though its null columns stand still: uncorrected it would be 33 % off."""
    X, y = in_units(kind)
    learned = learn(sampler, X, y, seed, 250).prior_precision_blocks_
    assert learned == {"coef": pytest.approx(evidence_optimum(X, y), rel=0.01)}


@pytest.mark.slow
def test_a_scalar_step_learns_the_evidence_of_a_normal_posterior_that_it_samples_wrongly():
    """The control variate leaves nothing of the iterates but their mean, which is right."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 6)) @ (0.3 + rng.standard_normal((6, 6)))
    X = X / X.std(axis=0)
    y = X @ rng.standard_normal(6) / 2 + rng.standard_normal(500)
    em, logs = VariationalEM(n_updates=1000), []
    for i in range(6):
        model = BayesianLinearRegression(
            ConstantSGD("scalar", batch_size=20),
            em,
            noise_variance=1.0,
            fit_intercept=False,
            n_chains=4,
            n_draws=250,
            random_state=i,
        )
        with pytest.warns(ConvergenceWarning, match="sd_ratio"):
            model.fit(X, y)
        logs.append(np.log(model.prior_precision_[0]))
    se = np.std(logs, ddof=1) / np.sqrt(6)
    assert np.mean(logs) == pytest.approx(np.log(evidence_optimum(X, y)), abs=5 * se)
    assert se < 0.02


def test_the_steps_are_those_that_are_given():
    """Eq. 26 of Mandt et al.: half the steps, half the first move; none after some steps stops."""
    X, y = (part[:400] for part in rows_of_the_figures("informative"))
    X = X[:, :10]

    def path(**rho):
        return learn(SGFS(batch_size=100), X, y, 0, 12, **rho).prior_precision_path_

    np.testing.assert_array_equal(path(rho=lambda t: 0.5 * (1 + t / 50) ** -0.6), path())
    start, half, quarter = (np.log(path(rho=rho)[0]) for rho in (1e-12, 0.02, 0.01))
    np.testing.assert_allclose(half - start, 2 * (quarter - start), rtol=1e-6)
    still = path(rho=lambda t: 1e-1 if t < 5 else 1e-12)
    np.testing.assert_allclose(still[5:], np.broadcast_to(still[5], still[5:].shape))


def test_each_feature_has_a_precision_of_its_own(seed):
    """Against MacKay's iteration on the exact posterior."""
    rng = np.random.default_rng(1)
    X = scale(rng.standard_normal((500, 8)))
    y = X @ np.array([1.0, -0.5, 0.3, 0.8, 0.0, 0.0, 0.0, 0.0]) + rng.standard_normal(500)
    lam = np.ones(8)
    for _ in range(5000):
        S = np.linalg.inv(X.T @ X + np.diag(lam))
        lam = np.minimum((1 - lam * S.diagonal()) / (S @ X.T @ y) ** 2, 1e6)
    learned = learn(HMC(), X, y, seed, 400, per="feature").prior_precision_blocks_
    assert list(learned)[3] == "coef[:, 3]"
    learned = np.array([*learned.values()])
    np.testing.assert_allclose(learned[:4], lam[:4], rtol=0.1)
    off = lam > 1e3
    assert off.any()
    assert (learned[off] > 500).all()  # twice the data's precision and more: switched off


def test_a_gamma_hyperprior_moves_the_fixed_point(seed):
    """lambda = (P/2 + a) / (E||theta||^2 / 2 + b)."""
    X, y = in_units("informative")
    learned = learn(HMC(), X, y, seed, 250, hyperprior=(30.0, 20.0))
    lam = learned.prior_precision_blocks_["coef"]
    S = np.linalg.inv(X.T @ X + lam * np.eye(40))
    square = np.sum((S @ X.T @ y) ** 2) + np.trace(S)
    assert lam == pytest.approx((20 + 30) / (square / 2 + 20), rel=0.01)


def test_a_learned_precision_is_as_vague_as_its_expected_evidence_is_curved():
    """Over y that the precision itself would give, for any number of rows for each weight.

    The log evidence is that of y ~ N(0, C), C = I + X X^T / lambda; its mean is taken over
    y of the learned lambda, and its curvature along log lambda by differences.
    """
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 8)) * np.geomspace(0.03, 1.0, 8)
    y = X @ rng.standard_normal(8) + rng.standard_normal(60)
    posterior = Posterior.of(Linear(8, False, 1.0), X, y, 1.0)
    em, sampler, blocks = VariationalEM(n_updates=40), HMC(), {"coef": np.arange(8)}
    following = StochasticEM(em, sampler, blocks, RunLength(20, 1))
    states = start_chains(sampler, posterior, np.zeros((4, 8)), np.random.SeedSequence(0))
    learned, _ = fit_prior(following, posterior, states)
    rho = np.log(learned.values[0])

    def expected(at):
        C, known = (np.eye(60) + X @ X.T * np.exp(-r) for r in (at, rho))
        return -0.5 * np.linalg.slogdet(C)[1] - 0.5 * np.trace(np.linalg.solve(C, known))

    step = 1e-3
    curvature = (expected(rho + step) - 2 * expected(rho) + expected(rho - step)) / step**2
    assert learned.uncertainty[0] == pytest.approx((-curvature) ** -0.5, rel=1e-3)


def test_blocks_of_the_models():
    def labels(model, per):
        blocks = model.prior_blocks(per)
        together = np.concatenate(list(blocks.values()))
        assert len(np.unique(together)) == len(together)
        return list(blocks)

    assert labels(Softmax(2, 3), "block") == ["coef"]
    assert labels(Softmax(2, 3), "class") == ["coef[0]", "coef[1]", "coef[2]"]
    assert labels(Softmax(2, 3), "feature") == ["coef[:, 0]", "coef[:, 1]"]
    np.testing.assert_array_equal(Softmax(2, 3).prior_blocks("feature")["coef[:, 1]"], [1, 3, 5])
    assert labels(MLP(2, 3, (4,)), "block") == ["coef_0", "coef_1"]
    assert labels(MLP(2, 3, (4,)), "feature") == ["coef_0[:, 0]", "coef_0[:, 1]", "coef_1"]
    assert labels(MLP(2, 3, (4,)), "class") == ["coef_0", "coef_1[0]", "coef_1[1]", "coef_1[2]"]
    assert labels(DRBM(2, 3, 4), "class") == ["W", "U[:, 0]", "U[:, 1]", "U[:, 2]"]
    np.testing.assert_array_equal(DRBM(2, 2, 3).prior_blocks("class")["U[:, 1]"], [7, 9, 11])


# -- samplers under a prior that changes ------------------------------------------------------


@pytest.mark.parametrize("noise_variance", [1.0, None])
def test_hmc_follows_the_prior_exactly(noise_variance):
    X, y = rows_of_the_figures("informative")
    model = Linear(40, True, noise_variance)
    lam = np.where(np.arange(model.dim) < 41, 1.0, 0.0)
    posterior = Posterior.of(model, X, y, lam)
    state = HMC().init(posterior, 0.1 * np.ones((2, model.dim)), np.random.default_rng(0))
    other = posterior.with_prior(posterior.prior.with_precision(50 * lam))
    HMC().change_prior(state, other)
    np.testing.assert_allclose(state.memory.log_prob, other.log_prob(state.theta), rtol=1e-12)
    np.testing.assert_allclose(
        state.memory.gradient, other.full_gradient(state.theta), rtol=1e-10, atol=1e-9
    )


def under(posterior, precision):
    """The same data under another prior."""
    prior = posterior.prior.with_precision(np.full(posterior.dim, precision))
    return posterior.with_prior(prior)


def test_matrices_follow_the_prior():
    X, y = rows_of_the_figures("informative")
    posterior = Posterior.of(Linear(40, False, 1.0), X, y, 1.0)
    for sampler in (
        SGFS(batch_size=100),
        SGFS(batch_size=100, structure="kron"),
        SGLD(batch_size=100),
    ):
        changed, fresh = (
            sampler.init(p, np.zeros((1, 40)), np.random.default_rng(0))
            for p in (posterior, posterior)
        )
        sampler.change_prior(changed, under(posterior, 1.001))
        assert changed.memory.prior is not None
        gain_before = getattr(changed.memory, "preconditioner", None)
        sampler.change_prior(changed, under(posterior, 1e5))
        if isinstance(sampler, SGLD):
            assert changed.memory.step_size == pytest.approx(
                0.2 / (0.2 / fresh.memory.step_size + 1e5 - 1)
            )
        else:
            assert changed.memory.preconditioner is not gain_before
            fresh.memory.prior.values[:] = 1e5
            sampler.refresh(fresh, posterior)
            v = np.ones((1, 40))
            np.testing.assert_allclose(
                changed.memory.preconditioner.matvec(v), fresh.memory.preconditioner.matvec(v)
            )


def test_an_anchored_posterior_takes_another_prior():
    X, y = rows_of_the_figures("informative")
    posterior = Posterior.of(Linear(40, False, 1.0), X, y, 1.0)
    mode = find_mode(posterior, np.zeros((1, 40)), np.random.default_rng(0))
    anchored = ChainTarget(Expanded.at(posterior, mode)).with_prior(under(posterior, 30.0).prior)
    here = anchored.coordinates
    curvature = here.pullback_matrix(X.T @ X + 30 * np.eye(40))
    np.testing.assert_allclose(anchored.anchor.curvature.dense(), curvature, atol=1e-8)
    theta = mode.theta + 0.1
    expected = posterior.with_prior(under(posterior, 30.0).prior).full_gradient(theta)
    np.testing.assert_allclose(
        anchored.full_gradient(here.transform(theta)),
        here.pullback(expected),
        atol=1e-5,  # rows in single precision
    )


# -- estimators -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sampler", [None, pytest.param(SGFS(batch_size=50), marks=pytest.mark.slow)], ids=str
)
def test_bayesian_ridge_agrees_on_diabetes(sampler):
    X, y = load_diabetes(return_X_y=True)
    ridge = BayesianRidge().fit(X, y)
    em = VariationalEM(n_updates=200)
    model = BayesianLinearRegression(sampler, prior_precision=em, random_state=0).fit(X, y)
    assert model.prior_precision_[0] == pytest.approx(ridge.lambda_ / ridge.alpha_, rel=0.05)
    (mean, std), (expected, expected_std) = (m.predict(X, return_std=True) for m in (model, ridge))
    assert np.abs(mean - expected).max() < 0.03 * expected_std.mean()
    np.testing.assert_allclose(std, expected_std, rtol=0.02)


@pytest.mark.slow
def test_control_variates_are_anchored_where_the_prior_leads(seed):
    """Weak data: the precision to start from is four thousand times too small, and the first anchor
    far off.
    """
    X, y = rows_of_the_figures("weak")
    X, y = np.tile(X, (3, 1)), np.tile(y, 3)
    sampler = UnderdampedLangevin()
    model = BayesianLinearRegression(
        sampler, VariationalEM(n_updates=500), 1.0, fit_intercept=False, random_state=seed
    ).fit(X, y)
    assert len(model.prior_precision_path_) > 500
    assert model.prior_precision_[0] == pytest.approx(evidence_optimum(X, y), rel=0.1)
    assert model.diagnostics_["stein_ratio"] == pytest.approx(1, abs=0.05)
    predicted = model.predicted_covariance(X, y)
    assert model.draws_.reshape(-1, 40).var(axis=0).mean() == pytest.approx(
        predicted.diagonal().mean(), rel=0.1
    )


@pytest.mark.usefixtures("_short_searches")
def test_the_networks_learn_a_precision_per_layer():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3)).astype(np.float32)
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(300) > 0, "yes", "no")
    short = {
        "prior_precision": VariationalEM(n_updates=12),
        "n_chains": 2,
        "n_draws": 8,
        "random_state": 0,
    }
    for model, n_blocks in (
        (BayesianMLPClassifier((4,), **short), 2),
        (DRBMClassifier(3, **short), 2),
    ):
        model.fit(X, y)
        assert model.prior_precision_path_.shape == (12, n_blocks)
        learned = model.prior_precision_
        biases = np.setdiff1d(
            np.arange(len(learned)),
            np.concatenate(list(model.model_.prior_blocks("block").values())),
        )
        reference = model.model_.reference_precision(np.square(X).sum(axis=1).mean())
        np.testing.assert_allclose(learned[biases], reference[biases])
        assert not np.allclose(
            np.setdiff1d(learned, learned[biases]), np.setdiff1d(reference, reference[biases])
        )


def test_pipelines_grids_weights_and_clones(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 5))
    y = np.where(X[:, 0] + rng.standard_normal(400) > 0, "a", "b")
    model = BayesianLogisticRegression(
        prior_precision=VariationalEM(n_updates=40), n_draws=20, random_state=0
    )
    name = "bayesianlogisticregression__prior_precision"
    grid = GridSearchCV(make_pipeline(StandardScaler(), model), {name: ["learned", 1.0]}, cv=2)
    assert grid.fit(X, y).best_score_ > 0.6
    pipeline = clone(grid.estimator).set_params(**{f"{name}__per": "feature"}).fit(X, y)
    assert pipeline[-1].prior_precision_path_.shape[1] == 5
    weight = rng.integers(0, 3, 400)
    a = clone(model).fit(X, y, sample_weight=weight)
    b = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert a.prior_precision_[0] == pytest.approx(b.prior_precision_[0], rel=0.2)


@pytest.mark.usefixtures("as_drawn")
def test_a_warm_start_goes_on_under_the_learned_prior():
    X, y = (part[:400] for part in rows_of_the_figures("informative"))
    em = VariationalEM(n_updates=60)
    long = BayesianLinearRegression(prior_precision=em, n_draws=40, random_state=0).fit(X, y)
    short = BayesianLinearRegression(
        prior_precision=em, n_draws=20, warm_start=True, random_state=0
    ).fit(X, y)
    first, path = short.draws_, short.prior_precision_path_
    short.fit(X, y)
    assert short.prior_precision_path_ is path
    np.testing.assert_array_equal(np.concatenate([first, short.draws_], axis=1), long.draws_)
    short.set_params(prior_precision=VariationalEM(n_updates=40)).fit(X, y)
    assert len(short.prior_precision_path_) == 40
    assert not hasattr(short.set_params(prior_precision=1.0).fit(X, y), "prior_precision_path_")


def test_burn_in_may_be_nothing():
    X, y = rows_of_the_figures("informative")
    sampler = SGFS(batch_size=100)
    model = BayesianLinearRegression(
        sampler, "learned", 1.0, burn_in=0, n_draws=20, random_state=0
    ).fit(X, y)
    assert not model.states_[0].memory.adapting


@pytest.mark.parametrize(
    ("em", "error", "message"),
    [
        (VariationalEM("row"), ValueError, "per must be one of"),
        (VariationalEM(n_updates=3), ValueError, "n_updates must be at least 8"),
        (VariationalEM(n_updates=2.5), TypeError, "n_updates must be an integer"),
        (VariationalEM(hyperprior=1.0), ValueError, "hyperprior must be None or a pair"),
        (VariationalEM(rho=lambda t: -1.0), ValueError, r"rho must be positive, rho\(0\) is -1"),
        (VariationalEM(rho="fast"), ValueError, "rho must be a finite number"),
        (VariationalEM(hyperprior=(-1.0, 1.0)), ValueError, "hyperprior must hold finite numbers"),
        (VariationalEM("class"), ValueError, 'per="class" needs classes'),
        ("map", ValueError, 'prior_precision must be "learned"'),
    ],
)
def test_bad_parameters_are_named(em, error, message):
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(error, match=message):
        BayesianLinearRegression(prior_precision=em).fit(X, y)


# -- where precisions cannot be learned -------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("zero columns", "the data say nothing about coef"),
        ("constant columns", "the data say nothing about coef"),
        ("few rows of many features", "hardly determine"),
        ("separable", "a plane separates the classes"),
    ],
)
@pytest.mark.quick("the data say nothing about coef", "hardly determine")
def test_degenerate_data_end_in_a_finite_precision_and_a_warning(case, message):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), np.arange(60) % 2
    if case == "zero columns":
        X[:] = 0
    elif case == "constant columns":
        X[:] = 3.0
    elif case == "few rows of many features":
        X = rng.standard_normal((4, 60))
        y = y[:4]
    else:
        y = (X[:, 0] > 0).astype(int)
    model = BayesianLogisticRegression(prior_precision=VariationalEM(), n_draws=50, random_state=0)
    with pytest.warns(ConvergenceWarning, match=message):
        model.fit(X, y)
    assert 1e-6 <= model.prior_precision_blocks_["coef"] <= 1e6
    assert np.isfinite(model.draws_).all()


@pytest.mark.slow
def test_a_path_that_still_moves_says_so():
    X, y = (part[:300] for part in rows_of_the_figures("weak"))
    X = X[:, :8]
    model = BayesianLinearRegression(
        "sgfs", VariationalEM(n_updates=8), noise_variance=1.0, n_draws=20, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="still moves for coef.*raise n_updates"):
        model.fit(X, y)


def test_rounds_go_on_while_the_precision_moves():
    X, y = rows_of_the_figures("weak")
    short, long = (
        BayesianLinearRegression(
            prior_precision=VariationalEM(n_updates=n),
            noise_variance=1.0,
            n_draws=20,
            random_state=0,
        ).fit(X, y)
        for n in (12, 80)
    )
    assert len(short.prior_precision_path_) > 12
    away = np.log(short.prior_precision_path_[-1] / long.prior_precision_path_[-1])
    assert abs(away) < long._fit.engine.learned.uncertainty


# -- pictures ---------------------------------------------------------------------------------


def test_the_display_draws_every_block():
    X, y = load_diabetes(return_X_y=True)
    model = BayesianLinearRegression(
        prior_precision=VariationalEM("feature", n_updates=40), n_draws=8, random_state=0
    )
    display = PriorPrecisionDisplay.from_estimator(model.fit(X, y))
    assert len(display.lines_) == 10
    assert display.ax_.get_yscale() == "log"
    np.testing.assert_array_equal(display.lines_[3].get_ydata(), model.prior_precision_path_[:, 3])
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    order = np.argsort(-display.values)  # as the lines end, from the top
    assert legend == [f"x{j}: {display.values[j]:.3g}" for j in order]
    styles = {(one.get_color(), one.get_linestyle(), one.get_marker()) for one in display.lines_}
    assert len(styles) == 7  # of ten lines; the names stand in their order
    with pytest.raises(ValueError, match="was not learned"):
        PriorPrecisionDisplay.from_estimator(
            BayesianLinearRegression(n_draws=8, random_state=0, prior_precision=1.0).fit(X, y)
        )
    matplotlib.pyplot.close("all")


def test_blocks_are_named_after_features_and_classes():
    X, y = load_iris(return_X_y=True, as_frame=True)
    short = {"n_chains": 2, "n_draws": 8, "burn_in": 8, "thin": 1, "random_state": 0}
    for per, names in (
        ("feature", X.columns.tolist()),
        ("class", ["class 0", "class 1", "class 2"]),
        ("block", ["coef"]),
    ):
        em = VariationalEM(per, n_updates=8)
        model = BayesianLogisticRegression(prior_precision=em, **short)
        display = PriorPrecisionDisplay.from_estimator(model.fit(X, [f"class {k}" for k in y]))
        assert display.labels == names
    matplotlib.pyplot.close("all")


def test_of_many_blocks_the_ten_smallest_precisions_are_named():
    path = np.exp(np.random.default_rng(0).standard_normal((5, 30)))
    labels = [f"feature {j}" for j in range(30)]
    display = PriorPrecisionDisplay(path, path[-1], labels).plot()
    smallest = np.argsort(path[-1])[:10]
    shown = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert shown == ["20 larger ones", *(f"feature {j}: {path[-1, j]:.3g}" for j in smallest[::-1])]
    grey = [j for j, line in enumerate(display.lines_) if line.get_color() == "0.8"]
    assert set(grey) == set(range(30)) - set(smallest)
    for j, line in enumerate(display.lines_):
        np.testing.assert_array_equal(line.get_ydata(), path[:, j])
    matplotlib.pyplot.close("all")
