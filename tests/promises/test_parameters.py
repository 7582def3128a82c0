"""Parameters that all estimators share: their order, and a sampler by name with its parameters."""

import inspect
import re
import warnings

import numpy as np
import pytest
from conftest import differences, leaves
from helpers import OfManyTrials, scaled_iris
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skbayes_sg
from skbayes_sg import (
    BayesianGammaRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
    BayesianRobustRegressor,
    DRBMClassifier,
)
from skbayes_sg.estimators import foreign_parameters
from skbayes_sg.samplers import SAMPLERS, SGFS, ConstantSGD

LOG_LINKS = [BayesianPoissonRegressor, BayesianNegativeBinomialRegressor, BayesianGammaRegressor]
CLASSIFIERS = [BayesianLogisticRegression, BayesianOrdinalClassifier]
COEFFICIENTS = [
    *CLASSIFIERS,
    BayesianLinearRegression,
    BayesianRobustRegressor,
    *LOG_LINKS,
    OfManyTrials,
]
NETWORKS = [BayesianMLPClassifier, DRBMClassifier]
EACH = pytest.mark.parametrize("cls", [*COEFFICIENTS, *NETWORKS, BayesianMLPRegressor])
SHORT = {"n_chains": 2, "n_draws": 10, "random_state": 0}
pytestmark = pytest.mark.usefixtures("_short_runs_may_warn")


@pytest.fixture(scope="module")
def iris():
    return scaled_iris()


# -- the constructors -------------------------------------------------------------------------

ORDER = (
    *("hidden_layer_sizes", "activation", "n_hidden"),  # of the model, as in MLPClassifier
    *("sampler", "prior_precision"),
    *(
        "categories",
        "noise_variance",
        "noise_prior",
        "overdispersed",
    ),  # of the model, as the next two
    *("fit_intercept", "intercept_precision"),
    *("prior_mean", "prior", "prior_groups", "new_levels", "forgetting_factor"),
    *("temperature", "categorical_features"),
    *("n_chains", "n_draws", "burn_in", "thin", "warm_start", "n_jobs", "random_state"),
    *("class_weight", "n_predict_draws"),
)
SHARED = {"sampler", "prior_precision", "prior_mean", *ORDER[ORDER.index("n_chains") :][:7]}


@EACH
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("random_sate", "did you mean random_state?"),
        ("prior_precison", "did you mean prior_precision?"),
        ("seed", "give random_state"),
        ("alpha", "give prior_precision, the strength of the penalty"),
        ("solver", "give sampler"),
        ("step_size", "ConstantSGD, .* in skbayes_sg.samplers; give one as sampler"),
        ("verbose", "ProgressBar"),
        ("learning_rate_init", "SGLD"),
        ("zzz", "it has .*sampler, .*random_state"),
    ],
)
def test_a_parameter_of_other_libraries_is_refused_by_what_it_is_called_here(cls, name, said):
    with pytest.raises(TypeError, match=rf"^{cls.__name__} has no parameter '{name}'; .*{said}"):
        cls(**{name: 1})
    with pytest.raises(TypeError, match=rf"^{cls.__name__} has no parameter '{name}'"):
        cls(random_state=0, **{name: 1})


def test_what_is_said_of_a_foreign_parameter_is_a_parameter_of_some_estimator():
    known = set().union(*(inspect.signature(cls).parameters for cls in [*COEFFICIENTS, *NETWORKS]))
    assert {name for name, _ in foreign_parameters._HERE.values()} <= known
    with pytest.raises(TypeError, match=r"has no parameter 'C'; give prior_precision=1 / C"):
        BayesianLogisticRegression(C=1.0)
    with pytest.raises(TypeError, match="has no parameter 'n_components'; give n_hidden"):
        DRBMClassifier(n_components=3)
    with pytest.raises(TypeError, match=r"no parameter 'penalty'; give prior, .*horseshoe"):
        BayesianPoissonRegressor(penalty="l1")
    with pytest.raises(TypeError, match=r"no parameter 'exposure'; give it to fit"):
        BayesianPoissonRegressor(exposure=1.0)
    with pytest.raises(TypeError, match=r"no parameter 'epochs'; give n_draws"):
        BayesianMLPClassifier(epochs=10)
    with pytest.raises(TypeError, match=r"no parameter 'family'; .* BayesianPoissonRegressor"):
        BayesianLinearRegression(family="poisson")
    with pytest.raises(TypeError, match=r"no parameter 'weights'; give fit .*sample_weight"):
        BayesianLogisticRegression(weights=[1.0, 2.0])
    with pytest.raises(TypeError, match=r"no parameter 'class_weight'; give fit .*sample_weight"):
        BayesianPoissonRegressor(class_weight="balanced")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"prior": "normal"}, "got 'normal'; None is the normal prior$"),
        ({"prior": "L1"}, "got 'L1'; \"horseshoe\" is for few columns that matter$"),
        ({"prior": "flat"}, "got 'flat'; None, with prior_precision=1e-6$"),
        ({"prior": "cauchy"}, "got 'cauchy'; \"student_t\" has heavy tails$"),
        ({"prior": "spike"}, "got 'spike'$"),
        ({"sampler": "NUTS"}, "got 'NUTS'; \"hmc\" is"),
        ({"sampler": "y ~ x"}, "got 'y ~ x'; formulas are for"),
        ({"sampler": "laplace"}, "got 'laplace'; None, whose posterior_ is"),
        ({"sampler": "gibbs"}, "got 'gibbs'$"),
    ],
)
def test_a_value_of_other_libraries_is_refused_by_what_it_is_called_here(given, said):
    model = BayesianLogisticRegression(**given)
    with pytest.raises(ValueError, match=said):
        model.fit([[0.0], [1.0], [2.0]], [0, 1, 0])


def test_every_value_that_is_advised_is_taken():
    """None, or a word in quotation marks, of the parameter whose value was refused."""
    for parameter, of_words in foreign_parameters._VALUES.items():
        for advice in set(of_words.values()):
            value = re.match(r'None|"\w+"', advice)[0].strip('"')
            model = BayesianLogisticRegression(n_chains=2, n_draws=8, random_state=0)
            model.set_params(**{parameter: None if value == "None" else value})
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                assert model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]).coef_.shape == (1, 1)


PUBLIC = [skbayes_sg, skbayes_sg.models] + [
    module for name in skbayes_sg.__all__ if inspect.ismodule(module := getattr(skbayes_sg, name))
]


@pytest.mark.parametrize("module", PUBLIC, ids=lambda module: module.__name__)
def test_a_public_module_lists_its_public_names_alone(module):
    assert sorted(module.__all__) == dir(module)


@EACH
def test_the_signature_is_that_of_the_constructor(cls):
    """A refusal of other names takes any; what reads signatures must not see that."""
    of_init = list(inspect.signature(cls.__init__).parameters.values())[1:]
    assert list(inspect.signature(cls).parameters.values()) == of_init
    first = [one.name for one in of_init if one.kind is not one.KEYWORD_ONLY]
    with pytest.raises(TypeError, match=rf"^{cls.__name__} takes {', '.join(first)} by position"):
        cls(*[None] * (len(first) + 1))

    class Own(cls):
        """Whoever takes any keyword decides on them."""

        def __init__(self, **given):
            super().__init__(**given)

    assert Own(n_chains=3).n_chains == 3


@EACH
def test_every_constructor_has_its_parameters_in_one_order(cls):
    parameters = inspect.signature(cls).parameters
    assert list(parameters) == [name for name in ORDER if name in parameters]
    assert set(parameters) >= SHARED
    run_length_and_later = list(parameters.values())[list(parameters).index("n_chains") :]
    assert {each.kind for each in run_length_and_later} == {inspect.Parameter.KEYWORD_ONLY}


@EACH
def test_documentation_has_the_parameters_in_the_order_of_the_constructor(cls):
    section = inspect.getdoc(cls).partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    documented = re.findall(r"^(\w+) : ", section, flags=re.MULTILINE)
    assert documented == list(inspect.signature(cls).parameters)


def test_defaults_that_do_not_depend_on_the_model_are_the_same():
    named = ("sampler", "burn_in", "thin", "warm_start", "n_jobs", "random_state")
    assert (
        len({str([cls().get_params()[n] for n in named]) for cls in COEFFICIENTS + NETWORKS}) == 1
    )


# -- a sampler by name ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        pytest.param(cls, name, marks=[pytest.mark.slow] * ((cls, name) != (NETWORKS[0], "sgld")))
        for cls in NETWORKS
        for name in sorted(set(SAMPLERS) - {"hmc", "underdamped_langevin"})
    ],
)
def test_every_name_learns_iris_in_a_network(cls, name, iris, monkeypatch):
    """The limit is midway between .68, the best of the samplers' own defaults, and .98 of None."""
    for name_of, shorter in (("_SETTLING", 300), ("_STEPS", 200), ("_PASSES", 60)):
        monkeypatch.setattr(f"skbayes_sg.chains.tuning.{name_of}", shorter)
    model = cls(5, sampler=name, **SHORT | {"n_chains": 1}).fit(*iris)
    assert model.score(*iris) > 0.83
    assert type(model.sampler_) is SAMPLERS[name]
    assert model.sampler_reason_.startswith(f'"{name}" stands for {SAMPLERS[name].__name__}(')


@pytest.mark.parametrize("cls", NETWORKS)
def test_sgfs_by_name_is_that_of_many_rows_and_hmc_that_of_few(cls, iris, monkeypatch):
    """The sampler of sampler=None; "hmc" does not merge equal rows before it, as None does."""
    for module in ("inference.warm_up", "inference.many_modes"):  # alpha = 0 will do
        monkeypatch.setattr(f"skbayes_sg.{module}.choose_alpha", None)
    for name, most in (("hmc", np.inf), ("sgfs", 0.0)):
        monkeypatch.setattr("skbayes_sg.inference.many_modes.has_cheap_gradients", most.__ge__)
        model = cls(2, temperature=1.0, burn_in=5, thin=1, **SHORT)
        default, named = (clone(model).set_params(sampler=s).fit(*iris) for s in (None, name))
        assert repr(named.sampler_) == repr(default.sampler_)
        if name == "sgfs":
            np.testing.assert_array_equal(named.draws_, default.draws_)


def test_sgfs_by_name_is_exact_on_few_rows_and_never_refused():
    """Control variates would be, below some hundred rows."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), rng.standard_normal(60)
    model = BayesianLinearRegression("sgfs", burn_in=5, thin=1, **SHORT).fit(X, y)
    assert model.sampler_.variance_reduction is None
    assert model.sampler_.structure == "full"
    assert "exact for any number of rows" in model.sampler_reason_


@pytest.mark.slow
def test_names_have_no_full_matrices_above_a_thousand_parameters():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1020, 340)), rng.integers(3, size=1020)
    model = BayesianLogisticRegression("sgfs", prior_precision=1.0, burn_in=8, thin=1, **SHORT)
    model.set_params(n_chains=1, n_draws=4).fit(X, y)
    assert model.sampler_.structure == "kron"
    assert "1023 parameters are too many for full matrices" in model.sampler_reason_
    model.set_params(sampler="constant_sgd").fit(X, y)
    assert (model.sampler_.structure, model.sampler_.batch_size) == ("kron", 51)
    with pytest.raises(ValueError, match=r"ConstantSGD\(.*structure='kron'\) is unstable"):
        model.set_params(sampler=ConstantSGD("kron", batch_size=500)).fit(X, y)


@EACH
@pytest.mark.quick("BayesianLogisticRegression", "BayesianLinearRegression")
def test_names_are_the_same_in_capitals(cls):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 2)), rng.permutation(np.arange(30) % 2 + 1)
    model = cls(burn_in=4, thin=1, **SHORT)
    small, capital = (clone(model).set_params(sampler=name).fit(X, y) for name in ("sgld", "SGLD"))
    np.testing.assert_array_equal(capital.draws_, small.draws_)
    assert capital.sampler_reason_.lower() == small.sampler_reason_.lower()
    with pytest.raises(ValueError, match=r"must be one of .*'underdamped_langevin'.*got 'NUTS'"):
        model.set_params(sampler="NUTS").fit(X, y)


def test_underdamped_langevin_by_name_is_the_default_or_refused_in_its_own_words(iris):
    X, y = iris[0][:120], iris[1][:120]  # without equal rows, which only the default merges
    model = BayesianLogisticRegression(prior_precision=1.0, **SHORT)
    default, named = (
        clone(model).set_params(sampler=s).fit(X, y == 1) for s in (None, "Underdamped_Langevin")
    )
    assert repr(named.sampler_) == repr(default.sampler_)
    assert named.sampler_reason_.startswith('"underdamped_langevin" stands for Underdamped')
    steep = named.set_params(prior_precision=1e-3)
    with pytest.raises(
        ValueError, match=r'too far from Gaussian.*; use sampler="hmc", or'
    ) as error:
        steep.fit(X, y == 0)  # separated
    assert "variance_reduction" not in str(error.value)


# -- its parameters ---------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("name", sorted(SAMPLERS))
def test_parameters_are_set_on_the_form_that_the_name_stands_for(cls, name):
    form = cls(sampler=name)._asked(name).sampler
    (parameter, default), *_ = form.get_params().items()
    model = cls(sampler=name).set_params(**{f"sampler__{parameter}": "new"})
    assert model.sampler.get_params() == form.get_params() | {parameter: "new"}
    assert type(model.sampler) is SAMPLERS[name]
    assert cls(sampler=name)._asked(name).sampler.get_params()[parameter] == default


@EACH
def test_name_and_parameter_in_one_call_in_any_order(cls):
    for model in (cls(), cls(sampler="hmc"), cls(sampler=SGFS(batch_size=7))):
        one = clone(model).set_params(sampler="sgfs", sampler__alpha=2.0, n_chains=3)
        two = clone(model).set_params(n_chains=3, sampler__alpha=2.0, sampler="sgfs")
        assert repr(one) == repr(two)
        assert one.sampler.alpha == 2.0
        assert one.sampler.batch_size == "auto"
        assert one.n_chains == 3


@EACH
def test_parameters_go_round_through_get_params_clone_and_pipelines(cls):
    for sampler in (None, "sgfs", SGFS(3.0)):
        model = cls(sampler=sampler)
        assert repr(cls().set_params(**model.get_params())) == repr(model)
        assert repr(clone(model)) == repr(model)
    pipeline = make_pipeline(StandardScaler(), cls(sampler="sgfs"))
    step = pipeline.steps[-1][0]
    pipeline.set_params(**{f"{step}__sampler__alpha": 4.0})
    assert clone(pipeline)[-1].sampler.alpha == 4.0
    assert pipeline.get_params()[f"{step}__sampler__alpha"] == 4.0


@EACH
def test_parameters_that_do_not_exist_are_refused_and_change_nothing(cls):
    refused = [
        (None, {"sampler__alpha": 1.0}, ValueError, r"sampler=None.*sampler=\"sgfs\", sampler__al"),
        ("sgfs", {"sampler__beta": 1.0}, ValueError, "Invalid parameter 'beta' for estimator SGFS"),
        ("sgfs", {"sampler__alpha": 1.0, "chains": 3}, ValueError, "Invalid parameter 'chains'"),
        ("sgfs", {"sampler": None, "sampler__alpha": 1.0}, ValueError, "sampler=None"),
        ("nuts", {"sampler__alpha": 1.0}, ValueError, "sampler must be one of"),
        (SGFS, {"sampler__alpha": 1.0}, TypeError, "sampler must be a Sampler instance"),
    ]
    for sampler, parameters, error, message in refused:
        model = cls(sampler=sampler)
        before = leaves(model)
        with pytest.raises(error, match=message):
            model.set_params(**parameters)
        assert not differences(before, leaves(model))
