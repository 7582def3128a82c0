"""Coordinates of one coefficient at a time: their density, and the law of chains in them."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
    BayesianRobustRegressor,
    diagnostics,
)
from skbayes_sg.callbacks import TimeLimit
from skbayes_sg.chains import run
from skbayes_sg.chains.run import Execution, Length, run_chains, start_chains
from skbayes_sg.data.row_metadata import RowMetadata, metadata_of_fit
from skbayes_sg.diagnostics.judgements import of_disagreement
from skbayes_sg.inference.precision import Hyperprior
from skbayes_sg.linalg.scores import dense
from skbayes_sg.models import Gamma, Linear, NegativeBinomial, Ordinal, Softmax, Student
from skbayes_sg.posterior import Posterior, one_by_one
from skbayes_sg.posterior.one_by_one import OneByOneTarget
from skbayes_sg.priors import Horseshoe, StudentT
from skbayes_sg.priors.joint import JointPrior
from skbayes_sg.priors.scales import Groups, Sampled
from skbayes_sg.samplers import HMC, SGFS

CERTAIN = 4.5  # Monte Carlo errors
N_ROWS, N_COLUMNS = 20, 6
MODELS = {
    "linear": (Linear(N_COLUMNS, True, None, (0.5, 0.7)), lambda eta: eta),
    "linear without intercept": (Linear(N_COLUMNS, False, None, (0.5, 0.7)), lambda eta: eta),
    "known noise": (Linear(N_COLUMNS, True, 0.5), lambda eta: eta),
    "two classes": (Softmax(N_COLUMNS, 2), np.sign),
    "three classes": (Softmax(N_COLUMNS, 3), lambda eta: np.digitize(eta, [-0.5, 0.5])),
    "grades": (Ordinal(N_COLUMNS, np.arange(4.0)), lambda eta: np.digitize(eta, [-1.0, 0.0, 1.0])),
    "counts": (NegativeBinomial(N_COLUMNS), lambda eta: np.floor(np.exp(eta))),
    "outliers": (Student(N_COLUMNS), lambda eta: eta),
    "amounts": (Gamma(N_COLUMNS), np.exp),
}


def posterior_of(name, centred=False, weighted=False, as_csr=False):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, N_COLUMNS)) + np.eye(N_COLUMNS)[0] * 3
    model, answer = MODELS[name]
    weight = rng.random(N_ROWS) + 0.5 if weighted else None
    rows = sparse.csr_matrix(X) if as_csr else X
    posterior = Posterior.of(model, rows, answer(X[:, 0] - 3), sample_weight=weight)
    n_coef = model.unpack(np.arange(model.dim))["coef"].size
    precision, units = np.where(np.arange(model.dim) < n_coef, 1.0, 0.1), {}
    if centred:
        units = {"centre": X.mean(axis=0), "unit": np.linspace(0.5, 2, model.dim)}
        if isinstance(model, Linear) and model.noise_variance is None:
            units["unit"] = units["unit"][:-1]
    return posterior.with_prior(model.prior(precision, **units))


def scales_of(posterior, kind):
    coef = posterior.model.unpack(np.arange(posterior.dim))["coef"]
    group = np.broadcast_to(np.arange(N_COLUMNS), coef.shape)
    if kind == "two groups":
        return Groups(coef.ravel(), group.ravel() % 2, ["even", "odd"], 0.1)
    columns = Groups(coef.ravel(), group.ravel(), list("abcdef"), 0.1)
    return {"horseshoe": Horseshoe(2.0), "student_t": StudentT()}[kind].scales(columns, 10.0)


def target_of(posterior, scales):
    theta = 0.1 * np.random.default_rng(1).standard_normal((1, posterior.dim))
    start = scales.start(posterior.prior)[0]
    return OneByOneTarget(posterior, Sampled(scales, start, np.ones(scales.dim)), theta)


def check_density(posterior, scales):
    """It is likelihood, priors and the Jacobian; and its gradient is its derivative."""
    target = target_of(posterior, scales)
    x = np.random.default_rng(2).standard_normal((3, target.dim))
    value, gradient = target.logdensity_and_grad(x)
    np.testing.assert_allclose(target.transform(target.inverse_transform(x)), x, atol=1e-9)
    np.testing.assert_allclose(target.grad_estimate(x, slice(None)), gradient, atol=1e-9)
    single = target.single.grad_estimate(x, slice(None))
    np.testing.assert_allclose(single, gradient, atol=1e-4 * np.abs(gradient).max())

    step = 1e-5 * np.eye(target.dim)
    wanted = []
    for one in x:
        ends = [target.logdensity_and_grad(one + sign * step)[0] for sign in (1, -1)]
        derivative = (ends[0] - ends[1]) / 2e-5
        np.testing.assert_allclose(derivative, gradient[len(wanted)], rtol=1e-5, atol=1e-5)
        ends = [target.inverse_transform(one + sign * step) for sign in (1, -1)]
        jacobian = np.linalg.slogdet((ends[0] - ends[1]) / 2e-5)[1]
        theta, eta = np.split(target.inverse_transform(one[None]), [posterior.dim], axis=1)
        log_prob = posterior.log_prob(theta)
        wanted.append(
            float((log_prob + JointPrior(scales, posterior.prior).log_density(theta, eta))[0])
            + jacobian
        )
    assert np.ptp(value - wanted) < 1e-6


@pytest.mark.parametrize("kind", ["horseshoe", "student_t", "two groups"])
@pytest.mark.parametrize("name", MODELS)
def test_the_density_is_that_of_parameters_and_hyperparameters(name, kind):
    posterior = posterior_of(name)
    check_density(posterior, scales_of(posterior, kind))


@pytest.mark.parametrize(
    "options", [{"centred": True}, {"weighted": True}, {"as_csr": True}], ids=str
)
@pytest.mark.parametrize("name", ["linear", "two classes"])
def test_the_density_is_right_for_any_rows_and_prior(name, options):
    posterior = posterior_of(name, **options)
    check_density(posterior, scales_of(posterior, "horseshoe"))


@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"as_csr": True}], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_the_density_is_right_along_axes_that_whiten_groups(name, options, monkeypatch):
    """They serve thousands of levels, beside which some columns may not be shrunken."""
    monkeypatch.setattr(one_by_one, "has_matrix", lambda dim: False)
    posterior = posterior_of(name, **options)
    check_density(posterior, scales_of(posterior, "two groups"))
    coef = posterior.model.unpack(np.arange(posterior.dim))["coef"]
    group = np.broadcast_to(np.arange(N_COLUMNS), coef.shape)
    shrunken = group != 2
    of_some = Groups(coef[shrunken], group[shrunken] % 2, ["even", "odd"], 0.1)
    check_density(posterior, of_some)


@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"as_csr": True}], ids=str)
@pytest.mark.parametrize("name", ["linear", "linear without intercept", "outliers", "amounts"])
def test_a_move_along_the_noise_scales_residuals(name, options):
    """It has an inverse, the volume of its Jacobian, and leaves the prior's precisions in y.

    Those of a linear regression are in units of the noise, and so grow as that.
    """
    posterior = posterior_of(name, **options).of_rows(np.arange(4))  # of six columns
    if options.get("as_csr"):
        rows = posterior.data.sample
        rows = replace(rows, X=sparse.csr_array(rows.X), sparse_rows=True)
        posterior = Posterior(posterior.model, rows, posterior.prior)
    target = target_of(posterior, scales_of(posterior, "student_t"))
    x = 0.3 * np.random.default_rng(3).standard_normal((3, target.dim))
    assert target.scale_move is not None
    log_scale = np.array([-2.0, 0.3, 1.0])
    moved, volume = target.rescaled(x, log_scale)
    back, shrunk = target.rescaled(moved, -log_scale)
    np.testing.assert_allclose(back, x, atol=1e-8)
    np.testing.assert_allclose(shrunk, -volume)

    sample, dim = posterior.data.sample, posterior.dim
    before, after = (target.inverse_transform(points) for points in (x, moved))
    fitted = np.log(sample.y) if name == "amounts" else sample.y
    residuals = [
        fitted - posterior.model.outputs(theta[:, :dim], dense(sample.X))[:, 0]
        for theta in (before, after)
    ]
    np.testing.assert_allclose(residuals[1], np.exp(log_scale)[:, None] * residuals[0], atol=1e-9)
    scale, times = (dim - 2, 1) if name == "outliers" else (dim - 1, 2)
    np.testing.assert_allclose(after[:, scale], before[:, scale] + times * log_scale)
    of_precision = 0 if name in ("outliers", "amounts") else 2 * log_scale
    np.testing.assert_allclose(after[:, dim], before[:, dim] + of_precision)
    np.testing.assert_allclose(after[:, dim + 1 :], before[:, dim + 1 :])

    steps = 1e-6 * np.eye(target.dim)
    for one, log_s, wanted in zip(x, log_scale, volume, strict=True):
        log_s = np.full(target.dim, log_s)
        ends = [target.rescaled(one + sign * steps, log_s)[0] for sign in (1, -1)]
        assert np.linalg.slogdet((ends[0] - ends[1]) / 2e-6)[1] == pytest.approx(wanted, abs=1e-5)


def test_the_noise_is_moved_along_where_rows_may_be_interpolated():
    posterior = posterior_of("linear")
    few = posterior.of_rows(np.arange(4))
    assert target_of(posterior, scales_of(posterior, "student_t")).scale_move is None
    assert target_of(few, scales_of(few, "two groups")).scale_move is not None
    assert target_of(few, scales_of(few, "horseshoe")).scale_move is None
    for name in ("known noise", "outliers", "amounts", "counts"):
        few = posterior_of(name).of_rows(np.arange(4))
        move = target_of(few, scales_of(few, "student_t")).scale_move
        assert (move is not None) == (name in ("outliers", "amounts"))


def test_rows_that_occur_twice_and_may_be_interpolated_have_next_to_no_dispersion(seed):
    """The width of the posterior across the rows is a ten-thousandth of that along the others.

    As the dispersion phi falls, the density of w rows grows as phi^(-w / 2), and the volume of the
    coefficients that fit n distinct ones of more columns falls as phi^(n / 2). So log phi with its
    normal prior is normal too. How many draws that takes differs from seed to seed by five times,
    so the fit decides it.
    """
    rng = np.random.default_rng(seed)
    X, y, weight = rng.random((5, 11)), rng.gamma(2.0, 1.0, 5), rng.integers(2, 5, 5)
    model = BayesianGammaRegressor(n_chains=8, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y, sample_weight=weight)
    log_phi, prior_mean, prior_variance = model.draws_[..., -1], -1.0, 1.5**2
    ess = float(diagnostics.ess_mean(log_phi[..., None], np.ones(log_phi.shape[1]))[0])
    wanted = prior_mean - 0.5 * (weight.sum() - len(y)) * prior_variance
    assert abs(log_phi.mean() - wanted) < CERTAIN * 1.5 / np.sqrt(ess)
    assert abs(log_phi.std() / 1.5 - 1) < CERTAIN / np.sqrt(ess)


@pytest.mark.parametrize("n_rows", [60, 15])
@pytest.mark.quick("60")
def test_chains_follow_a_law_that_is_known(n_rows, seed):
    """A regression under one precision: beside independent draws of the same posterior.

    The coordinates do not care how many coefficients a scale has; of one that all share, the joint
    distribution with the noise variance is known in closed form. Fewer rows than the twenty columns
    may be interpolated.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 20)) + 1.0
    y = X[:, :5] @ [2.0, -1.0, 1.0, -1.0, 0.5] + rng.standard_normal(n_rows)
    exact = BayesianLinearRegression(n_draws=400, random_state=seed).fit(X, y)
    independent = np.append(exact.draws_, np.log(exact.prior_precision_draws_), axis=2)

    posterior = exact._posterior_of(X, y, metadata_of_fit(exact, RowMetadata()))
    scales = Hyperprior().of(posterior)
    mean = independent.mean(axis=(0, 1))
    sampled = Sampled(scales, mean[-1:], np.ones(1))
    target = OneByOneTarget(posterior, sampled, mean[None, :-1])
    assert (target.scale_move is not None) == (n_rows < 20)
    sampler = HMC(structure="diag", single_gradients=True)
    points = independent[:16, 0]  # from the posterior, so that nothing is on its way
    states = start_chains(sampler, target, points, np.random.SeedSequence(seed))
    chains = run_chains(sampler, target, states, Length(400, 100), Execution())
    found = np.concatenate([chain.draws for chain in chains])

    sd, n = independent.std(axis=(0, 1)), independent[..., 0].size
    ess = np.minimum(diagnostics.ess_mean(found, np.ones(400)), found[..., 0].size)
    assert ess.min() > 200
    error = np.sqrt(1 / ess + 1 / n)
    assert np.abs((found.mean(axis=(0, 1)) - mean) / sd / error).max() < CERTAIN
    # of squared deviations, whose tails are heavier
    squares = [((each - mean) / sd) ** 2 for each in (found, independent)]
    ess = diagnostics.ess_mean(squares[0], np.ones(400))
    spread = squares[1].std(axis=(0, 1)) * np.sqrt(1 / ess + 1 / n)
    assert np.abs((squares[0].mean(axis=(0, 1)) - 1) / spread).max() < CERTAIN


def test_the_metric_starts_at_what_members_know_of_the_scale_of_their_group(seed):
    """With a column for each of many levels v is standard normal whatever the scale is, so that
    the second derivative of the density along z is that of the scale's own distribution."""
    n, rng = 1000, np.random.default_rng(seed)
    effects, model = rng.standard_normal(n), Linear(n, False, 0.5)
    X = sparse.csr_matrix(np.repeat(np.eye(n), 2, axis=0))
    y = np.repeat(effects, 2) + 0.5**0.5 * rng.standard_normal(2 * n)
    posterior = Posterior.of(model, X, y).with_prior(model.prior(np.ones(n)))
    scales = Groups(np.arange(n), np.zeros(n, int), ["level"], 0.1)
    target = target_of(posterior, scales)
    x = target.transform(np.append(effects, 0.0)[None])
    step = 0.02 * np.eye(target.dim)[-1]
    ends = [target.logdensity_and_grad(x + sign * step)[0][0] for sign in (1, 0, -1)]
    curvature = -(ends[0] - 2 * ends[1] + ends[2]) / 0.02**2
    # a sum over members of multiples of squared normal numbers
    error = CERTAIN * (2 / n) ** 0.5
    assert target.anchor.curvature.diagonal()[-1] == pytest.approx(curvature, rel=error)


@pytest.mark.parametrize("kind", ["horseshoe", "two groups"])
def test_gradients_are_finite_where_precisions_overflow_single_precision(kind):
    """A chain that came to scales of e^-44 had gradients that are NaN, and stayed there."""
    posterior = posterior_of("linear")
    scales = scales_of(posterior, kind)
    target = target_of(posterior, scales)
    theta = 0.1 * np.random.default_rng(0).standard_normal((3, target.dim))
    theta[:, :N_COLUMNS] = 0.0
    theta[:, posterior.dim] = -60.0 if kind == "horseshoe" else 120.0
    x = target.transform(theta)
    with np.errstate(over="ignore"):
        single = target.single.full_gradient(x)
    gradient = target.full_gradient(x)
    np.testing.assert_allclose(single, gradient, atol=1e-4 * np.abs(gradient).max())


def few_that_matter(n_rows, n_columns, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_columns))
    return X, X[:, :3] @ [3.0, -2.0, 2.0], rng


@pytest.mark.slow
def test_a_sparse_truth_is_found_among_more_columns_than_rows(seed):
    X, mean, rng = few_that_matter(60, 90, seed)
    y = mean + rng.standard_normal(60)
    model = BayesianLinearRegression(prior="horseshoe", random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)
    assert np.argsort(-np.abs(model.coef_))[:3].tolist() in ([0, 1, 2], [0, 2, 1])
    assert (np.abs(model.coef_[:3] - [3.0, -2.0, 2.0]) < CERTAIN * model.coef_std_[:3]).all()
    assert model.diagnostics_["r_hat_max"] < 1.05
    assert "scales of their own" in model.sampler_reason_


@pytest.mark.slow
def test_chains_of_counts_do_not_start_at_means_that_overflow(seed):
    """A point of the prior may have a mean of e^50, where chains stay or diverge."""
    rng = np.random.default_rng([3, seed])
    X = rng.standard_normal((30, 40))
    y = rng.poisson(np.exp(X[:, :2] @ [2.0, -2.0]))
    how = {"fit_intercept": False, "n_draws": 64, "n_chains": 4, "random_state": seed}
    model = BayesianPoissonRegressor(prior=Horseshoe(3), **how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few draws
        model.fit(X, y)
    truth = np.append([2.0, -2.0], np.zeros(38))
    assert np.abs(model.coef_ - truth).max() < 1.0
    rates = model.predict_draws(X, kind="mean")
    assert rates.max() < 30 * max(y.max(), 1)


@pytest.mark.parametrize("columns", [34, 60])
@pytest.mark.parametrize("prior", [None, Horseshoe(3)], ids=["normal", "horseshoe"])
@pytest.mark.parametrize("cls", [BayesianGammaRegressor, BayesianRobustRegressor])
@pytest.mark.slow
def test_a_scale_does_not_vanish_where_coefficients_may_fit_all_rows(cls, prior, columns, seed):
    """The joint density has its mode there, which has next to no mass."""
    rng = np.random.default_rng([5, columns, seed])
    X = rng.standard_normal((40, columns))
    eta, is_gamma = 0.5 + X[:, :2] @ [1.0, -0.7], cls is BayesianGammaRegressor
    y = rng.gamma(2.0, 0.5, 40) * np.exp(eta) if is_gamma else eta + rng.standard_t(3, 40)
    model = cls(prior=prior, n_draws=64, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few draws
        model.fit(X, y)
    log_scale = model.draws_[..., columns + 1]  # of the dispersion 1 / 2, or the scale 1
    assert abs(log_scale.mean() - (np.log(0.5) if is_gamma else 0.0)) < 1.5
    assert log_scale.std() < 1.5


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_sampler_that_is_asked_for_keeps_one_precision_integrated_out():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((10, 15)), rng.gamma(2.0, 0.5, 10)
    model = BayesianGammaRegressor(sampler="sgfs", n_chains=2, n_draws=8, burn_in=8, random_state=0)
    model.fit(X, y)
    assert type(model.sampler_) is SGFS
    assert model.states_[0].theta.shape[1] == model.model_.dim
    model.set_params(sampler=None).fit(X, y)
    assert model.states_[0].theta.shape[1] == model.model_.dim + 1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.slow
def test_more_columns_than_a_matrix_has_run_under_groups(seed):
    """Random intercepts of more levels than columns of a matrix, in sparse rows."""
    rng, n_levels = np.random.default_rng(seed), 1100
    level = np.repeat(np.arange(n_levels), 4)
    effects, x = 0.8 * rng.standard_normal(n_levels), rng.standard_normal(4 * n_levels)
    one_hot = sparse.csr_matrix((np.ones(len(level)), (np.arange(len(level)), level)))
    X = sparse.hstack([sparse.csr_matrix(x[:, None]), one_hot]).tocsr()
    y = 1.5 * x + effects[level] + rng.standard_normal(len(level))
    groups = {"slope": [0], "level": range(1, n_levels + 1)}
    model = BayesianLinearRegression(
        prior_groups=groups, n_chains=4, n_draws=64, burn_in=32, random_state=seed
    ).fit(X, y)
    low, high = model.summary(groups=True, full=True).loc["level", ["eti95_lb", "eti95_ub"]]
    assert low < effects.std() < high
    assert np.corrcoef(model.coef_[1:], effects)[0, 1] > 0.75
    assert model.coef_[0] == pytest.approx(1.5, abs=CERTAIN * model.coef_std_[0])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("looks", [1, 2, 9])
@pytest.mark.quick("2")
def test_chains_go_on_from_where_the_time_is_up_in_a_round_of_burn_in(monkeypatch, looks):
    """By a clock that stands until it has been looked at so many times."""
    left = iter(range(looks))
    monkeypatch.setattr(run, "wall_clock", lambda: 0.0 if next(left, None) is not None else 1e12)
    X, mean, _ = few_that_matter(30, 40, 0)
    model = BayesianLogisticRegression(prior="horseshoe", random_state=0)
    model.set_callbacks(TimeLimit(1.0)).fit(X, mean > 0)
    assert next(left, None) is None
    assert np.isfinite(model.draws_).all()


@pytest.mark.usefixtures("as_drawn")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("prior", ["horseshoe", None])
def test_a_warm_start_goes_on_where_the_chains_stopped(prior):
    X, mean, _ = few_that_matter(30, 40, 0)
    cls = BayesianLogisticRegression if prior else BayesianGammaRegressor
    y = mean > 0 if prior else np.exp(mean / 5)
    model = cls(prior=prior, n_chains=4, n_draws=8, burn_in=16, warm_start=True, random_state=0)
    first = model.fit(X, y).draws_
    second = model.fit(X, y).draws_
    again = cls(prior=prior, n_chains=4, n_draws=16, burn_in=16, random_state=0)
    both = np.concatenate([first, second], axis=1)
    np.testing.assert_array_equal(again.fit(X, y).draws_, both)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weights_are_repetitions_and_offsets_are_parts_of_y():
    X, mean, rng = few_that_matter(15, 20, 0)
    y, offset = mean + rng.standard_normal(15), rng.standard_normal(15)
    model = BayesianLinearRegression(
        prior="horseshoe", n_chains=2, n_draws=8, burn_in=8, random_state=0
    )
    plain = clone(model).fit(X, y).draws_
    np.testing.assert_allclose(clone(model).fit(X, y + offset, offset=offset).draws_, plain)
    times = rng.integers(1, 4, 15)
    weighted = clone(model).fit(X, y, sample_weight=times.astype(float)).draws_
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(y, times)).draws_
    np.testing.assert_allclose(weighted, repeated)


@pytest.mark.convergence_warnings
@pytest.mark.slow
def test_chains_in_selections_of_their_own_are_told_in_words(seed):
    """Two classes of few rows are explained by many sets of columns, if many may matter."""
    X, mean, _ = few_that_matter(30, 150, seed)
    how = {"n_chains": 4, "n_draws": 32, "burn_in": 32, "random_state": seed}
    model = BayesianLogisticRegression(prior=Horseshoe(10), **how)
    with pytest.warns(ConvergenceWarning) as said:
        model.fit(X, mean > 0)
    message = next(str(each.message) for each in said if "r_hat_max" in str(each.message))
    for words in (
        "do not agree on which columns matter",
        "has found a set of columns",
        "predictions average over these sets",
        "Horseshoe(expected_nonzero=...)",
        "raise n_draws",
    ):
        assert words in message
    assert model.diagnostics_["r_hat_coef"] > model.diagnostics_["r_hat_limit"]
    sizes = np.abs(model.draws_[..., :150]).mean(axis=1)
    assert len({frozenset(np.argsort(-each)[:10]) for each in sizes}) > 1  # it is true

    with pytest.warns(ConvergenceWarning) as said:
        BayesianLogisticRegression(prior="student_t", **how).fit(X, mean > 0)
    assert not any("which columns matter" in str(each.message) for each in said)


def test_chains_that_agree_on_columns_are_not_said_to_differ_in_them():
    figures = {"r_hat_max": 1.4, "r_hat_limit": 1.05, "r_hat_coef": 1.01, "ess_min": 150.0}
    assert "which columns" not in of_disagreement(figures, 100)[0]


@pytest.mark.parametrize(
    ("sampler", "said"), [("sgfs", "set sampler=None"), ("sgld", "set sampler=None")]
)
def test_samplers_that_cannot_are_refused(sampler, said):
    X, mean, _ = few_that_matter(30, 40, 0)
    with pytest.raises(ValueError, match=said):
        BayesianLogisticRegression(sampler, prior="horseshoe").fit(X, mean > 0)
