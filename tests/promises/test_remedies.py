"""What an error says to do can be done, and helps: each message, then what it advises.

A case is a call that is refused, and the same call after the remedy in the words of the message.
Every message of the package that is raised and ends with a remedy has a case here, or stands in
`ELSEWHERE` with the test that tries it. Warnings are in test_remedies_of_warnings.py.
"""

import tempfile
from functools import cache
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from messages import remedies, said_by, untried
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler, scale

from skbayes_sg import (
    AbstentionDisplay,
    BayesianBinomialRegressor,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianNegativeBinomialRegressor,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
    CoefficientsDisplay,
    DRBMClassifier,
    UncertaintyDisplay,
    VariationalEM,
    callbacks,
)
from skbayes_sg.inspection import (
    average_effects,
    contrast,
    prediction_summary,
    prior_sensitivity,
    sandwich_summary,
    totals,
)
from skbayes_sg.priors import Horseshoe
from skbayes_sg.samplers import HMC, SGFS, SGLD, ConstantSGD, CosineCycle
from skbayes_sg.samplers.independent_draws import IndependentDraws

mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
pytestmark = [
    pytest.mark.usefixtures("_short_searches"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
SHORT = {"n_chains": 2, "n_draws": 8, "burn_in": 4, "thin": 1, "random_state": 0}
GIVEN = SHORT | {"prior_precision": 1.0}
N = 40
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.standard_normal((N, 3)), columns=["age", "income", "debt"])
LINE = X["age"].to_numpy() + RNG.standard_normal(N)
PAIR = np.where(LINE > 0, "yes", "no")
THREE = np.array(["cold", "mild", "hot"])[np.digitize(LINE, [-0.7, 0.7])]
COUNTS = RNG.poisson(np.exp(0.3 * LINE))
EXPOSURE = RNG.uniform(1, 9, N)
WEIGHT = 1.0 + np.arange(N) % 3
TOWN = np.array(["Ghent", "Bruges"])[np.arange(N) % 2]
LEVELS = pd.get_dummies(pd.Series(TOWN)).astype(float).add_prefix("town__").assign(rest__age=LINE)

FACTOR = pd.DataFrame({"town": pd.Categorical(TOWN), "age": X["age"]})
HOLE = (np.arange(N) != 3) * 1.0  # a row to leave out; a number over it is infinite
HALVES = np.column_stack([np.arange(N) % 2, np.arange(N) % 3])
GHENT = {"town": "Ghent"}
OF_SLOPES = {"prior_precision": "learned", "prior_groups": {("age", "town"): "own"}}
HALF = np.array(["first", "second"])[np.arange(N) // (N // 2)]
BOTH = pd.get_dummies(pd.DataFrame({"town": TOWN, "half": HALF})).astype(float).add_prefix("all__")
OF_THREE = pd.get_dummies(pd.Series(np.arange(N) % 3)).astype(float).iloc[:, 1:].add_prefix("k")


def logistic(**changes):
    return BayesianLogisticRegression(**GIVEN | changes)


OF_AGE = {"prior_precision": "learned", "prior_groups": {"a": ["age"]}}


def linear(**changes):
    return BayesianLinearRegression(**GIVEN | changes)


def poisson(**changes):
    return BayesianPoissonRegressor(**GIVEN | changes)


def negative_binomial(**changes):
    return BayesianNegativeBinomialRegressor(**GIVEN | changes)


def network(sampler):
    return BayesianMLPRegressor((2,), sampler=sampler, temperature=1.0, **GIVEN)


class Interrupt(callbacks.Callback):
    """Ends a fit once it has a draw."""

    def after_block(self, progress):
        raise KeyboardInterrupt


def with_checkpoint(path, *more):
    return linear(sampler="hmc").set_callbacks(callbacks.Checkpoint(path, every=1e-9), *more)


@cache
def kept_checkpoint():
    """Of a fit to X and LINE that was interrupted."""
    path = Path(tempfile.mkdtemp()) / "fit"
    with pytest.raises(KeyboardInterrupt):
        with_checkpoint(path, Interrupt()).fit(X, LINE)
    return path


def in_parts(rows):
    """A dask array, or a dask data frame, of two partitions."""
    if isinstance(rows, pd.DataFrame):
        return pytest.importorskip("dask.dataframe").from_pandas(rows, npartitions=2)
    return pytest.importorskip("dask.array").from_array(np.asarray(rows), chunks=N // 2)


@cache
def fitted(kind):
    """Models of which something is asked; none is changed by it."""
    models = {
        "two": lambda: logistic().fit(X, PAIR),
        "three": lambda: logistic().fit(X, THREE),
        "line": lambda: linear().fit(X, LINE),
        "learned": lambda: linear(prior_precision="learned").fit(X, LINE),
        "means": lambda: linear().fit(X, LINE, var_weights=np.full(N, 3)),
        "rates": lambda: poisson().fit(X, COUNTS, exposure=EXPOSURE),
        "offset": lambda: logistic().fit(X, PAIR, offset=LINE),
        "stream": lambda: linear().partial_fit(X, LINE),
        "words": lambda: make_pipeline(OneHotEncoder(sparse_output=False), linear()).fit(
            pd.DataFrame({"town": TOWN, "same": "x"}), LINE
        ),
        "known words": lambda: make_pipeline(
            OneHotEncoder(sparse_output=False, handle_unknown="ignore"), linear()
        ).fit(towns(), LINE),
        "counts": lambda: poisson().fit(X, COUNTS),
        "shares": lambda: BayesianBinomialRegressor(**SHORT).fit(X, COUNTS % 20, trials=20),
        "ordered": lambda: ordinal(["cold", "mild", "hot"]).fit(X, THREE),
        "raw": lambda: BayesianLogisticRegression(**SHORT).fit(*cancer()),
    }
    return models[kind]()


@cache
def cancer():
    return load_breast_cancer(return_X_y=True, as_frame=True)


def scaled_cancer():
    rows, y = cancer()
    return scale(rows), y


def ordinal(categories, **changes):
    return BayesianOrdinalClassifier(
        categories=categories, **SHORT | {"prior_precision": "learned"} | changes
    )


def ordered(names):
    return pd.Series(pd.Categorical(THREE, categories=names.split(), ordered=True))


def stream(model, *chunks, **first):
    """After chunks of rows, each with its keywords."""
    for rows, y, more in chunks:
        model.partial_fit(rows, y, **first | more)
        first = {}
    return model


CASES = {
    # -- constructors --
    "C": (
        "give prior_precision=1 / C",
        lambda: BayesianLogisticRegression(C=0.1),
        lambda: BayesianLogisticRegression(prior_precision=1 / 0.1),
    ),
    "by position": (
        "give the others by keyword",
        lambda: BayesianLogisticRegression(None, 1.0, True),
        lambda: BayesianLogisticRegression(None, 1.0, fit_intercept=True),
    ),
    "no layers": (
        "give at least one hidden layer, or use BayesianLogisticRegression",
        lambda: BayesianMLPClassifier((), **SHORT).fit(X, PAIR),
        lambda: BayesianLogisticRegression(**GIVEN).fit(X, PAIR),
    ),
    # -- X and y --
    "text": (
        "give such a column the type category",
        lambda: linear().fit(pd.DataFrame({"town": TOWN}), LINE),
        lambda: linear().fit(pd.DataFrame({"town": TOWN}).astype("category"), LINE),
    ),
    "text by name": (
        "or name it in categorical_features",
        lambda: linear().fit(pd.DataFrame({"town": TOWN}), LINE),
        lambda: linear(categorical_features=["town"]).fit(pd.DataFrame({"town": TOWN}), LINE),
    ),
    "text in columns": (
        "or encode it, for example with OneHotEncoder",
        lambda: linear().fit(pd.DataFrame({"town": TOWN}), LINE),
        lambda: make_pipeline(OneHotEncoder(sparse_output=False), linear()).fit(
            pd.DataFrame({"town": TOWN}), LINE
        ),
    ),
    "factors as one word": (
        'must be "from_dtype", None, or a list of names',
        lambda: linear(categorical_features="town").fit(pd.DataFrame({"town": TOWN}), LINE),
        lambda: linear(categorical_features=["town"]).fit(pd.DataFrame({"town": TOWN}), LINE),
    ),
    "factors in a sparse matrix": (
        'give an array or a data frame, or leave categorical_features at "from_dtype"',
        lambda: linear(categorical_features=[0]).fit(sparse.csr_array(X.round()), LINE),
        lambda: linear(categorical_features=[0]).fit(X.round().to_numpy(), LINE),
    ),
    "a mask that is short": (
        "has 2 truth values, and X has 3 columns; give one for each",
        lambda: linear(categorical_features=[True, False]).fit(X.round(), LINE),
        lambda: linear(categorical_features=[True, False, False]).fit(X.round(), LINE),
    ),
    "a factor that is not there": (
        "X has no column 'ages'; its columns are 'age', 'income', 'debt'",
        lambda: linear(categorical_features=["ages"]).fit(X.round(), LINE),
        lambda: linear(categorical_features=["age"]).fit(X.round(), LINE),
    ),
    "levels of another type": (
        "give the column the type that it had",
        lambda: linear().fit(FACTOR, LINE).predict(FACTOR.assign(town=1.0)),
        lambda: linear().fit(FACTOR, LINE).predict(FACTOR.assign(town="elsewhere")),
    ),
    "dates": (
        '(dates - numpy.datetime64("2020-01-01")) / numpy.timedelta64(1, "D")',
        lambda: linear().fit(pd.DataFrame({"when": pd.date_range("2021", periods=N)}), LINE),
        lambda: linear().fit(
            pd.DataFrame(
                {
                    "when": (
                        pd.Series(pd.date_range("2021", periods=N)) - np.datetime64("2020-01-01")
                    )
                    / np.timedelta64(1, "D")
                }
            ),
            LINE,
        ),
    ),
    "large X": (
        "scale its columns, for example by MaxAbsScaler, which takes no squares",
        lambda: linear().fit(1e200 * X, LINE),
        lambda: linear().fit(MaxAbsScaler().fit_transform(1e200 * X), LINE),
    ),
    "small X": (
        "multiply such columns by a constant, or leave them out",
        lambda: linear().fit(1e-200 * X, LINE),
        lambda: linear().fit(1e200 * (1e-200 * X), LINE),
    ),
    "small y": (
        "divide y by its scale",
        lambda: linear().fit(X, 1e-300 * LINE),
        lambda: linear().fit(X, (1e-300 * LINE) / np.abs(1e-300 * LINE).max()),
    ),
    "large y": (
        "divide it by its scale",
        lambda: linear().fit(X, 1e200 * LINE),
        lambda: linear().fit(X, (1e200 * LINE) / np.abs(1e200 * LINE).max()),
    ),
    "far column": (
        "or leave out a column that has one value",
        lambda: linear(prior_precision="learned").fit(X.assign(age=X["age"] * 1e3 + 1e18), LINE),
        lambda: linear(prior_precision="learned").fit(X.drop(columns="age"), LINE),
    ),
    "y with gaps": (
        "Input y contains NaN",
        lambda: linear().fit(X, np.where(np.arange(N) == 3, np.nan, LINE)),
        lambda: linear().fit(X[np.arange(N) != 3], LINE[np.arange(N) != 3]),
    ),
    "labels with gaps": (
        "leave out the rows without one",
        lambda: logistic().fit(X, np.where(np.arange(N) == 3, None, PAIR)),
        lambda: logistic().fit(X[np.arange(N) != 3], PAIR[np.arange(N) != 3]),
    ),
    "labels of two types": (
        "give them one type, for example by np.asarray(labels).astype(str)",
        lambda: logistic().fit(X, np.array([1, "a"] * 20, dtype=object)),
        lambda: logistic().fit(X, np.array([1, "a"] * 20, dtype=object).astype(str)),
    ),
    "one class": (
        "at least two classes are needed",
        lambda: logistic().fit(X, np.zeros(N)),
        lambda: logistic().fit(X, PAIR),
    ),
    "weights leave one class": (
        "at least two classes are needed",
        lambda: logistic().fit(X, PAIR, sample_weight=(PAIR == "yes") * 1.0),
        lambda: logistic().fit(X, PAIR, sample_weight=WEIGHT),
    ),
    "no weight": (
        "at least one row needs a positive weight",
        lambda: linear().fit(X, LINE, sample_weight=np.zeros(N)),
        lambda: linear().fit(X, LINE, sample_weight=WEIGHT),
    ),
    "no class has a weight": (
        "at least two classes need a positive weight",
        lambda: logistic(class_weight={"yes": 0, "no": 0}).fit(X, PAIR),
        lambda: logistic(class_weight={"yes": 1, "no": 2}).fit(X, PAIR),
    ),
    "y of objects with gaps": (
        "leave out the rows without a target",
        lambda: linear().fit(X, pd.Series([None, *LINE[1:]], dtype=object)),
        lambda: linear().fit(X[1:], LINE[1:]),
    ),
    # -- what is known of rows --
    "offset of other rows": (
        "offset must have shape (40,)",
        lambda: linear().fit(X, LINE, offset=np.zeros(N - 1)),
        lambda: linear().fit(X, LINE, offset=np.zeros(N)),
    ),
    "exposure of other rows": (
        "exposure must have shape (40,), one for each row",
        lambda: poisson().fit(X, COUNTS, exposure=EXPOSURE[1:]),
        lambda: poisson().fit(X, COUNTS, exposure=EXPOSURE),
    ),
    "no exposure": (
        "leave out rows without exposure",
        lambda: poisson().fit(X, COUNTS, exposure=EXPOSURE * (WEIGHT > 1)),
        lambda: poisson().fit(X[WEIGHT > 1], COUNTS[WEIGHT > 1], exposure=EXPOSURE[WEIGHT > 1]),
    ),
    "exposure twice": (
        "give one of them",
        lambda: poisson().fit(X, COUNTS, exposure=EXPOSURE, offset=np.log(EXPOSURE)),
        lambda: poisson().fit(X, COUNTS, exposure=EXPOSURE),
    ),
    "exposure without a log link": (
        "give offset, which is added to the linear predictor",
        lambda: linear().fit(X, LINE, exposure=EXPOSURE),
        lambda: linear().fit(X, LINE, offset=EXPOSURE),
    ),
    "two columns of one name": (
        "rename or drop one",
        lambda: linear().fit(towns().set_axis(["town", "town"], axis=1), LINE),
        lambda: linear(categorical_features=[0, 1]).fit(towns(), LINE),
    ),
    "prediction without exposure": (
        "offset=0, or exposure=1, predicts for a unit",
        lambda: fitted("rates").predict(X),
        lambda: (fitted("rates").predict(X, offset=0), fitted("rates").predict(X, exposure=1)),
    ),
    "prediction without offset": (
        "give that of the rows too: offset=0 predicts",
        lambda: fitted("offset").predict_proba(X),
        lambda: fitted("offset").predict_proba(X, offset=0),
    ),
    "rows of the fit without exposure": (
        "give it again as offset, of an exposure its logarithm",
        lambda: prior_sensitivity(fitted("rates"), X, COUNTS),
        lambda: (
            prior_sensitivity(fitted("rates"), X, COUNTS, offset=np.log(EXPOSURE)),
            fitted("rates").predicted_covariance(X, COUNTS, offset=np.log(EXPOSURE)),
            fitted("rates").to_arviz(X, COUNTS, offset=np.log(EXPOSURE)),
            sandwich_summary(fitted("rates"), X, COUNTS, offset=np.log(EXPOSURE)),
        ),
    ),
    "rows of the fit without their numbers of observations": (
        "which are a part of the likelihood of its rows; give them again",
        lambda: sandwich_summary(fitted("means"), X, LINE),
        lambda: (
            sandwich_summary(fitted("means"), X, LINE, var_weights=np.full(N, 3)),
            prior_sensitivity(fitted("means"), X, LINE, var_weights=np.full(N, 3)),
        ),
    ),
    "covariance without exposure": (
        "give it again as offset, of an exposure its logarithm",
        lambda: fitted("rates").predicted_covariance(X, COUNTS),
        lambda: fitted("rates").predicted_covariance(X, COUNTS, offset=np.log(EXPOSURE)),
    ),
    "means of labels": (
        "leave them out",
        lambda: prior_sensitivity(fitted("two"), X, PAIR, var_weights=WEIGHT),
        lambda: prior_sensitivity(fitted("two"), X, PAIR),
    ),
    "means of other rows": (
        "the number of observations of which each y is the mean",
        lambda: linear().fit(X, LINE, var_weights=WEIGHT[1:]),
        lambda: linear().fit(X, LINE, var_weights=WEIGHT),
    ),
    "means of nothing": (
        "leave out rows of no observation",
        lambda: linear().fit(X, LINE, var_weights=WEIGHT - 1),
        lambda: linear().fit(X[WEIGHT > 1], LINE[WEIGHT > 1], var_weights=WEIGHT[WEIGHT > 1] - 1),
    ),
    # -- samplers --
    "unknown sampler": (
        "sampler must be one of ['constant_sgd', 'hmc'",
        lambda: linear(sampler="nuts").fit(X, LINE),
        lambda: linear(sampler="hmc").fit(X, LINE),
    ),
    "parameter of no sampler": (
        'set_params(sampler="sgfs", sampler__alpha=2.0)',
        lambda: linear().set_params(sampler__alpha=2.0),
        lambda: linear().set_params(sampler="sgfs", sampler__alpha=2.0),
    ),
    **{
        f"{wrong}": (
            remedy,
            lambda wrong=wrong: logistic(sampler=wrong).fit(*scaled_cancer()),
            lambda right=right: logistic(sampler=right).fit(*scaled_cancer()),
        )
        for remedy, wrong, right in (
            (
                'use variant="exact"',
                SGFS(variant="paper", batch_size=50),
                SGFS(variant="exact", batch_size=50),
            ),
            (
                "or raise alpha",
                SGFS(variant="paper", batch_size=51),
                SGFS(100.0, variant="paper", batch_size=51),
            ),
            (
                'use curvature="model"',
                SGFS(curvature="empirical", batch_size=50),
                SGFS(curvature="model", batch_size=50),
            ),
            (
                "or raise alpha",
                SGFS(curvature="empirical", batch_size=51),
                SGFS(9.0, curvature="empirical", batch_size=51),
            ),
            (
                "give a smaller step_size",
                ConstantSGD(step_size=5.0, batch_size=50),
                ConstantSGD(step_size=0.5, batch_size=50),
            ),
        )
    },
    # -- priors --
    "precision of zero": (
        "use a small number for a weak prior",
        lambda: linear(prior_precision=0.0).fit(X, LINE),
        lambda: linear(prior_precision=1e-6).fit(X, LINE),
    ),
    "precision of zero for a column": (
        "use small numbers",
        lambda: linear(prior_precision=[1.0, 0.0, 1.0]).fit(X, LINE),
        lambda: linear(prior_precision=[1.0, 1e-6, 1.0]).fit(X, LINE),
    ),
    "prior of another order": (
        "give the categories of that fit",
        lambda: ordinal(["hot", "mild", "cold"], prior=fitted("ordered").posterior_).fit(X, THREE),
        lambda: ordinal(["cold", "mild", "hot"], prior=fitted("ordered").posterior_).fit(X, THREE),
    ),
    "precision and horseshoe": (
        'prior_precision must be "learned"',
        lambda: linear(prior="horseshoe").fit(X, LINE),
        lambda: linear(prior="horseshoe", prior_precision="learned").fit(X, LINE),
    ),
    "groups and horseshoe": (
        "prior_groups must be None",
        lambda: linear(prior="horseshoe", prior_precision="learned", prior_groups="feature").fit(
            X, LINE
        ),
        lambda: linear(prior="horseshoe", prior_precision="learned").fit(X, LINE),
    ),
    "prior and precision": (
        "leave it at 0.0, its default, or set prior=None",
        lambda: linear(
            prior=fitted("line").posterior_, prior_precision="learned", prior_mean=1.0
        ).fit(X, LINE),
        lambda: (
            linear(prior=fitted("line").posterior_, prior_precision="learned").fit(X, LINE),
            linear(prior=None, prior_precision="learned", prior_mean=1.0).fit(X, LINE),
        ),
    ),
    "prior of other columns": (
        "select the columns of X by prior.feature_names",
        lambda: linear(prior=fitted("line").posterior_, prior_precision="learned").fit(
            X[["debt", "age", "income"]], LINE
        ),
        lambda: linear(prior=fitted("line").posterior_, prior_precision="learned").fit(
            X[["debt", "age", "income"]][list(fitted("line").posterior_.feature_names)], LINE
        ),
    ),
    "prior of another model": (
        "give the posterior_ of a fit of the same kind of estimator",
        lambda: poisson(prior=fitted("line").posterior_, prior_precision="learned").fit(X, COUNTS),
        lambda: poisson(prior=fitted("rates").posterior_, prior_precision="learned").fit(X, COUNTS),
    ),
    "prior and groups": (
        "leave it at None, its default",
        lambda: linear(
            prior=fitted("line").posterior_, prior_precision="learned", prior_groups="feature"
        ).fit(X, LINE),
        lambda: linear(prior=fitted("line").posterior_, prior_precision="learned").fit(X, LINE),
    ),
    "rows of a query": (
        "give X.collect()",
        lambda: linear().fit(polars().from_pandas(X).lazy(), LINE),
        lambda: linear().fit(polars().from_pandas(X).lazy().collect(), LINE),
    ),
    "groups without names": (
        'give a DataFrame (of a transformer: set_output(transform="pandas"), with sparse_output',
        lambda: linear(prior_precision="learned", prior_groups="prefix").fit(X.to_numpy(), LINE),
        lambda: (
            linear(prior_precision="learned", prior_groups="prefix").fit(LEVELS, LINE),
            linear(prior_precision="learned", prior_groups={"a": [0, 1]}).fit(X.to_numpy(), LINE),
        ),
    ),
    "names without groups": (
        "give a dict of columns",
        lambda: linear(prior_precision="learned", prior_groups="prefix").fit(X, LINE),
        lambda: linear(prior_precision="learned", prior_groups={"a": ["age"]}).fit(X, LINE),
    ),
    "a group of nothing": (
        "leave it out",
        lambda: linear(prior_precision="learned", prior_groups={"a": []}).fit(X, LINE),
        lambda: linear(prior_precision="learned", prior_groups={"b": ["age"]}).fit(X, LINE),
    ),
    "two groups of a column": (
        "a column has one prior precision",
        lambda: linear(
            prior_precision="learned", prior_groups={"a": ["age"], "b": ["age", "debt"]}
        ).fit(X, LINE),
        lambda: linear(prior_precision="learned", prior_groups={"a": ["age"], "b": ["debt"]}).fit(
            X, LINE
        ),
    ),
    "a group called other": (
        "give it another name, or all its columns",
        lambda: linear(prior_precision="learned", prior_groups={"other": ["age"]}).fit(X, LINE),
        lambda: linear(prior_precision="learned", prior_groups={"another": ["age"]}).fit(X, LINE),
    ),
    "an unknown column in a group": (
        "columns are names or numbers",
        lambda: linear(prior_precision="learned", prior_groups={"a": ["ages"]}).fit(X, LINE),
        lambda: linear(prior_precision="learned", prior_groups={"a": ["age", 2]}).fit(X, LINE),
    ),
    "covariance under groups": (
        "set prior_groups=None and prior=None",
        lambda: (
            linear(prior_precision="learned", prior_groups="feature")
            .fit(X, LINE)
            .predicted_covariance(X, LINE)
        ),
        lambda: linear(prior_precision="learned").fit(X, LINE).predicted_covariance(X, LINE),
    ),
    "a prior learned at a temperature": (
        "give prior_precision numbers",
        lambda: BayesianMLPRegressor(
            (2,), prior_precision=VariationalEM(), temperature=0.5, **SHORT
        ).fit(X, LINE),
        lambda: BayesianMLPRegressor((2,), prior_precision=1.0, temperature=0.5, **SHORT).fit(
            X, LINE
        ),
    ),
    # -- streams --
    "a stream without its classes": (
        "classes must be given in the first call of partial_fit",
        lambda: logistic().partial_fit(X, PAIR),
        lambda: logistic().partial_fit(X, PAIR, classes=["no", "yes"]),
    ),
    "balanced classes of a stream": (
        "give a dict",
        lambda: logistic(class_weight="balanced").partial_fit(X, PAIR, classes=["no", "yes"]),
        lambda: logistic(class_weight={"no": 1, "yes": 2}).partial_fit(
            X, PAIR, classes=["no", "yes"]
        ),
    ),
    "offsets of some chunks": (
        "give offset=0 where it is zero",
        lambda: stream(linear(), (X, LINE, {"offset": np.ones(N)}), (X, LINE, {})),
        lambda: stream(linear(), (X, LINE, {"offset": np.ones(N)}), (X, LINE, {"offset": 0.0})),
    ),
    "means of some chunks": (
        "give ones where each y is one observation",
        lambda: stream(linear(), (X, LINE, {"var_weights": np.full(N, 3)}), (X, LINE, {})),
        lambda: stream(
            linear(),
            (X, LINE, {"var_weights": np.full(N, 3)}),
            (X, LINE, {"var_weights": np.ones(N)}),
        ),
    ),
    "weights of nothing in a stream": (
        "give larger weights, or noise_prior a larger shape, or noise_variance a number",
        lambda: linear().partial_fit(X, LINE, sample_weight=np.full(N, 1e-9)).coef_,
        lambda: (
            linear().partial_fit(X, LINE, sample_weight=np.ones(N)).coef_,
            linear(noise_prior=(3.0, 1.0))
            .partial_fit(X, LINE, sample_weight=np.full(N, 1e-9))
            .coef_,
            linear(noise_variance=1.0).partial_fit(X, LINE, sample_weight=np.full(N, 1e-9)).coef_,
        ),
    ),
    "a prior learned from one row": (
        "give a larger first chunk, or numbers",
        lambda: linear(prior_precision=VariationalEM()).partial_fit(X[:1], LINE[:1]),
        lambda: (
            linear(prior_precision=VariationalEM()).partial_fit(X, LINE),
            linear(prior_precision=1.0).partial_fit(X[:1], LINE[:1]),
        ),
    ),
    "a stream of two orders": (
        "give all chunks one type, or give categories",
        lambda: stream(
            ordinal(None), (X, ordered("cold mild hot"), {}), (X, ordered("hot mild cold"), {})
        ),
        lambda: (
            stream(ordinal(None), *[(X, ordered("cold mild hot"), {})] * 2),
            stream(
                ordinal(["cold", "mild", "hot"]),
                (X, ordered("cold mild hot"), {}),
                (X, ordered("hot mild cold"), {}),
            ),
        ),
    ),
    "a stream by a sampler": (
        "set sampler=None",
        lambda: linear(sampler="hmc").partial_fit(X, LINE),
        lambda: linear(sampler=None).partial_fit(X, LINE),
    ),
    "a stream under a horseshoe": (
        "call fit, or set prior=None",
        lambda: linear(prior="horseshoe", prior_precision="learned").partial_fit(X, LINE),
        lambda: (
            linear(prior="horseshoe", prior_precision="learned").fit(X, LINE),
            linear(prior=None).partial_fit(X, LINE),
        ),
    ),
    "a stream that forgets all": (
        "1 forgets nothing",
        lambda: linear(forgetting_factor=0.0).partial_fit(X, LINE),
        lambda: linear(forgetting_factor=1).partial_fit(X, LINE),
    ),
    "an intercept in mid-stream": (
        "take a new estimator, or call fit",
        lambda: (
            stream(linear(), (X, LINE, {})).set_params(fit_intercept=False).partial_fit(X, LINE)
        ),
        lambda: (
            clone(linear()).set_params(fit_intercept=False).partial_fit(X, LINE),
            stream(linear(), (X, LINE, {})).set_params(fit_intercept=False).fit(X, LINE),
        ),
    ),
    "a network that learns its prior from a stream": (
        "learn it with fit on a part of the data, and give the numbers",
        lambda: BayesianMLPRegressor(
            (2,), prior_precision=VariationalEM(), temperature=1.0, **SHORT
        ).partial_fit(X, LINE, n_total=1000),
        lambda: BayesianMLPRegressor(
            (2,), prior_precision=1.0, temperature=1.0, **SHORT
        ).partial_fit(X, LINE, n_total=1000),
    ),
    "likelihood of a stream": (
        "fit the model to rows at hand",
        lambda: prior_sensitivity(fitted("stream"), X, LINE),
        lambda: prior_sensitivity(linear().fit(X, LINE), X, LINE),
    ),
    # -- levels and orders --
    "a new level that nothing shrinks": (
        "leave out such rows, or let its levels be shrunken",
        lambda: (
            linear(prior_precision="learned", prior_groups={"town": "flat"})
            .fit(FACTOR, LINE)
            .predict(FACTOR.assign(town="elsewhere"))
        ),
        lambda: (
            linear(prior_precision="learned")
            .fit(FACTOR, LINE)
            .predict(FACTOR.assign(town="elsewhere"))
        ),
    ),
    "nothing is shrunken": (
        "give prior_precision a small number instead",
        lambda: linear(prior_precision="learned", prior_groups={"town": "flat"}).fit(
            FACTOR[["town"]], LINE
        ),
        lambda: linear(prior_precision=1e-6).fit(FACTOR[["town"]], LINE),
    ),
    "a reference without an intercept": (
        "fit with fit_intercept=True",
        lambda: linear(fit_intercept=False).fit(FACTOR, LINE).summary(reference=GHENT),
        lambda: linear(fit_intercept=True).fit(FACTOR, LINE).summary(reference=GHENT),
    ),
    "slopes before a scaler": (
        "leave scaler out",
        lambda: linear(**OF_SLOPES).fit(FACTOR, LINE).summary(scaler=StandardScaler()),
        lambda: linear(**OF_SLOPES).fit(FACTOR, LINE).summary(),
    ),
    "slopes that are not shrunken": (
        'slopes of a column of numbers by the levels of a factor are {("number", "factor"): "own"}',
        lambda: linear(prior_precision="learned", prior_groups={("age", "town"): "flat"}).fit(
            FACTOR, LINE
        ),
        lambda: linear(**OF_SLOPES).fit(FACTOR, LINE),
    ),
    "two factors of a prefix": (
        "give the data frame with its columns of categories as it is",
        lambda: linear(prior_precision="learned", prior_groups="prefix").fit(BOTH, LINE),
        lambda: linear(prior_precision="learned").fit(
            pd.DataFrame({"town": TOWN, "half": HALF}).astype("category"), LINE
        ),
    ),
    "two factors of a prefix, each with a transformer": (
        "or a transformer for each factor",
        lambda: linear(prior_precision="learned", prior_groups="prefix").fit(BOTH, LINE),
        lambda: linear(prior_precision="learned", prior_groups="prefix").fit(
            BOTH.rename(columns=lambda name: name.replace("all__half_", "half__")), LINE
        ),
    ),
    "levels that cannot be refused": (
        "give the factor as one column of categories (categorical_features)",
        lambda: linear(
            prior_precision="learned", prior_groups={"k": [0, 1]}, new_levels="refuse"
        ).fit(OF_THREE, LINE),
        lambda: linear(prior_precision="learned", new_levels="refuse").fit(FACTOR, LINE),
    ),
    "levels that are zeros": (
        'set new_levels="zero" if zeros are a level',
        lambda: linear(
            prior_precision="learned", prior_groups={"k": [0, 1]}, new_levels="refuse"
        ).fit(OF_THREE, LINE),
        lambda: linear(
            prior_precision="learned", prior_groups={"k": [0, 1]}, new_levels="zero"
        ).fit(OF_THREE, LINE),
    ),
    "a new level": (
        'leave out such rows, or set new_levels to "sample" or "zero"',
        lambda: (
            linear(prior_precision="learned", prior_groups="prefix", new_levels="refuse")
            .fit(LEVELS, LINE)
            .predict(LEVELS * [0, 0, 1])
        ),
        lambda: (
            linear(prior_precision="learned", prior_groups="prefix", new_levels="zero")
            .fit(LEVELS, LINE)
            .predict(LEVELS * [0, 0, 1])
        ),
    ),
    "categories without a label": (
        "categories must have all labels, from the lowest to the highest",
        lambda: BayesianOrdinalClassifier(categories=["cold", "hot"], **GIVEN).fit(X, THREE),
        lambda: BayesianOrdinalClassifier(categories=["cold", "mild", "hot"], **GIVEN).fit(
            X, THREE
        ),
    ),
    # -- tables --
    "groups of a given prior": (
        'as those of prior_precision="learned" are',
        lambda: fitted("line").summary(groups=True),
        lambda: fitted("learned").summary(groups=True),
    ),
    "positive of three": (
        "with more, and in an order, leave it out",
        lambda: fitted("three").summary(positive="hot"),
        lambda: fitted("three").summary(),
    ),
    "a reference of two": (
        "with two, coefficients are those of classes_[1] against classes_[0]",
        lambda: fitted("two").summary(reference="yes"),
        lambda: fitted("two").summary(),
    ),
    "a level of 95": (
        "give a probability such as 0.95",
        lambda: fitted("two").summary(95),
        lambda: fitted("two").summary(0.95),
    ),
    "no region": (
        "give the largest effect that does not matter, or two ends",
        lambda: fitted("two").summary(rope=-0.1),
        lambda: (fitted("two").summary(rope=0.1), fitted("two").summary(rope=(-0.1, 0.2))),
    ),
    "a scaler that turns": (
        "scaler must be fitted and shift and stretch each column, as StandardScaler does",
        lambda: fitted("two").summary(scaler=PCA(3).fit(X)),
        lambda: fitted("two").summary(scaler=StandardScaler().fit(X)),
    ),
    "a scaler of other columns": (
        "give the step that comes right before the estimator",
        lambda: fitted("two").summary(scaler=StandardScaler().fit(X[["age"]])),
        lambda: fitted("two").summary(scaler=StandardScaler().fit(X)),
    ),
    "other rows than those of the fit": (
        "needs X and y of the fit",
        lambda: prior_sensitivity(fitted("line"), X[:9], LINE[:9]),
        lambda: prior_sensitivity(fitted("line"), X, LINE),
    ),
    "one group of scores": (
        "leave groups out, or give labels of rows that depend on each other",
        lambda: sandwich_summary(fitted("line"), X, LINE, groups=np.zeros(N)),
        lambda: (
            sandwich_summary(fitted("line"), X, LINE),
            sandwich_summary(fitted("line"), X, LINE, groups=np.arange(N) // 4),
        ),
    ),
    "totals by nothing": (
        "give one of its names, or an array",
        lambda: totals(fitted("line"), X, by="town"),
        lambda: (totals(fitted("line"), X, by="age"), totals(fitted("line"), X, by=TOWN)),
    ),
    "totals by gaps": (
        "give such rows a label of their own, or leave them out",
        lambda: totals(fitted("line"), X, by=np.where(WEIGHT > 1, TOWN, None)),
        lambda: totals(fitted("line"), X, by=np.where(WEIGHT > 1, TOWN, "other")),
    ),
    "queries": (
        "give some of them by X.collect() or X.compute()",
        lambda: prediction_summary(fitted("line"), polars().from_pandas(X).lazy()),
        lambda: prediction_summary(fitted("line"), polars().from_pandas(X).lazy().collect()),
    ),
    # -- effects --
    "odds of a regression": (
        'take "ratio", or "difference"',
        lambda: average_effects(fitted("line"), X, scale="odds_ratio"),
        lambda: average_effects(fitted("line"), X, scale="difference"),
    ),
    "effects on one of three": (
        "with more, each has a row",
        lambda: average_effects(fitted("three"), X, positive="hot"),
        lambda: average_effects(fitted("three"), X),
    ),
    "ratios of numbers of any sign": (
        'take "difference"',
        lambda: contrast(fitted("line"), X[:5] - 3, X[:5] + 3, scale="ratio"),
        lambda: contrast(fitted("line"), X[:5] - 3, X[:5] + 3, scale="difference"),
    ),
    "effects of an unknown column": (
        "give positions below 3, or names such as 'age'",
        lambda: average_effects(fitted("line"), X, ["ages"]),
        lambda: (
            average_effects(fitted("line"), X, [0]),
            average_effects(fitted("line"), X, "age"),
        ),
    ),
    "derivatives of words": (
        'leave it out, or set kind="auto"',
        lambda: average_effects(fitted("words"), towns(), "town", kind="derivative"),
        lambda: average_effects(fitted("words"), towns(), "town", kind="auto"),
    ),
    "effects of one value": (
        "leave it out of features",
        lambda: average_effects(fitted("words"), towns(), ["town", "same"]),
        lambda: average_effects(fitted("words"), towns(), ["town"]),
    ),
    "an unknown level": (
        "give one such as 'Bruges'",
        lambda: average_effects(fitted("words"), towns(), "town", reference={"town": "Rome"}),
        lambda: average_effects(fitted("words"), towns(), "town", reference={"town": "Ghent"}),
    ),
    "a level of what is not compared": (
        "leave it out",
        lambda: average_effects(fitted("line"), X, "age", reference={"debt": 0.0}),
        lambda: average_effects(fitted("line"), X, "age"),
    ),
    "effects with exposures of other rows": (
        "a number for each of 40 rows, or one for all",
        lambda: average_effects(fitted("rates"), X, exposure=EXPOSURE[1:]),
        lambda: (
            average_effects(fitted("rates"), X, exposure=EXPOSURE),
            average_effects(fitted("rates"), X, exposure=1.0),
        ),
    ),
    "effects of gaps": (
        "leave it out of features",
        lambda: average_effects(fitted("line"), X.assign(debt=np.nan), ["debt"]),
        lambda: average_effects(fitted("line"), X, ["age"]),
    ),
    "levels of two types": (
        "give them one type, for example str",
        lambda: average_effects(fitted("words"), towns().assign(town=["x", 1] * 20), "town"),
        lambda: average_effects(
            fitted("known words"), towns().assign(town=["x", "1"] * 20), "town"
        ),
    ),
    "rows beyond numbers": (
        "leave out rows so far from those of the fit",
        lambda: average_effects(fitted("counts"), pd.concat([X, 1e5 * X[:1]]), "age"),
        lambda: average_effects(fitted("counts"), X, "age"),
    ),
    # -- pictures --
    "axes of another picture": (
        "leave ax out for a figure of its own",
        lambda: CoefficientsDisplay.from_estimator(fitted("three"), ax=plt.figure().subplots()),
        lambda: CoefficientsDisplay.from_estimator(fitted("three")),
    ),
    "a slice of one column": (
        "a slice needs two",
        lambda: UncertaintyDisplay.from_estimator(logistic().fit(X[["age"]], PAIR), X[["age"]]),
        lambda: UncertaintyDisplay.from_estimator(fitted("two"), X, features=["age", "debt"]),
    ),
    "a slice through gaps": (
        "all cells of column 'debt' are missing; leave it out",
        lambda: UncertaintyDisplay.from_estimator(
            fitted("two"), X.assign(debt=np.nan), features=["age", "income"]
        ),
        lambda: UncertaintyDisplay.from_estimator(
            logistic().fit(X[["age", "income"]], PAIR), X[["age", "income"]]
        ),
    ),
    "probabilities without labels": (
        "give classes, the label of each column",
        lambda: AbstentionDisplay.from_predictions([0, 1, 1], np.full((3, 3), 1 / 3)),
        lambda: AbstentionDisplay.from_predictions(
            [0, 1, 1], np.full((3, 3), 1 / 3), classes=[0, 1, 2]
        ),
    ),
    "odds ratios of raw columns": (
        'give per="sd" and X, or leave odds_ratio out',
        lambda: CoefficientsDisplay.from_estimator(fitted("raw"), odds_ratio=True),
        lambda: (
            CoefficientsDisplay.from_estimator(
                fitted("raw"), cancer()[0], per="sd", odds_ratio=True
            ),
            CoefficientsDisplay.from_estimator(fitted("raw")),
        ),
    ),
    "odds ratios of a regression": (
        "leave it out",
        lambda: CoefficientsDisplay.from_estimator(fitted("line"), odds_ratio=True),
        lambda: CoefficientsDisplay.from_estimator(fitted("line")),
    ),
    "standard deviations without rows": (
        "give some of them",
        lambda: CoefficientsDisplay.from_estimator(fitted("line"), per="sd"),
        lambda: CoefficientsDisplay.from_estimator(fitted("line"), X, per="sd"),
    ),
    "classes of two": (
        "leave it out",
        lambda: CoefficientsDisplay.from_estimator(fitted("two"), classes=["yes"]),
        lambda: CoefficientsDisplay.from_estimator(fitted("two")),
    ),
    "trials that a fit had": (
        "give them again",
        lambda: sandwich_summary(fitted("shares"), X, COUNTS % 20),
        lambda: sandwich_summary(fitted("shares"), X, COUNTS % 20, trials=20),
    ),
    "trials of a regression": (
        "BayesianBinomialRegressor",
        lambda: sandwich_summary(fitted("line"), X, LINE, trials=20),
        lambda: sandwich_summary(fitted("line"), X, LINE),
    ),
    "rows without trials": (
        "leave out rows without trials",
        lambda: BayesianBinomialRegressor(**SHORT).fit(X, np.zeros(N), trials=np.arange(N) % 4),
        lambda: BayesianBinomialRegressor(**SHORT).fit(
            X[np.arange(N) % 4 > 0], COUNTS[np.arange(N) % 4 > 0] % 2, trials=2
        ),
    ),
    # -- what other parts refuse --
    "a checkpoint of another fit": (
        "remove it, or give another path",
        lambda: with_checkpoint(kept_checkpoint()).fit(X, LINE + 1),
        lambda: (
            with_checkpoint(tempfile.mkdtemp() + "/another").fit(X, LINE + 1),
            with_checkpoint(kept_checkpoint()).fit(X, LINE),
        ),
    ),
    "a cycle without a draw": (
        "raise n_draws",
        lambda: linear(sampler=SGLD(CosineCycle(1e-6, 1e-5, 400, keep=0.1))).fit(X, LINE),
        lambda: linear(sampler=SGLD(CosineCycle(1e-6, 1e-5, 400, keep=0.1)), n_draws=500).fit(
            X, LINE
        ),
    ),
    "precisions of classes that are not there": (
        'use "block" or "feature"',
        lambda: linear(prior_precision=VariationalEM("class", n_updates=8)).fit(X, LINE),
        lambda: (
            linear(prior_precision=VariationalEM("block", n_updates=8), burn_in=32).fit(X, LINE),
            linear(prior_precision=VariationalEM("feature", n_updates=8), burn_in=32).fit(X, LINE),
        ),
    ),
    "counts with fractions": (
        "give the count as y, and exposure",
        lambda: negative_binomial().fit(X, COUNTS / EXPOSURE),
        lambda: negative_binomial().fit(X, COUNTS, exposure=EXPOSURE),
    ),
    "shares of trials": (
        "where y is a share, give y * trials",
        lambda: BayesianBinomialRegressor(**SHORT).fit(X, COUNTS / 20, trials=20),
        lambda: BayesianBinomialRegressor(**SHORT).fit(X, COUNTS / 20 * 20, trials=20),
    ),
    "a horseshoe of all columns": (
        "where all columns matter use prior=None",
        lambda: linear(prior=Horseshoe(3), prior_precision="learned").fit(X, LINE),
        lambda: linear(prior=None, prior_precision="learned").fit(X, LINE),
    ),
    "groups by a sampler": (
        "set sampler=None, or prior_groups=None and prior=None",
        lambda: linear(sampler="sgld", **OF_AGE).fit(X, LINE),
        lambda: (
            linear(sampler=None, **OF_AGE).fit(X, LINE),
            linear(sampler="sgld", prior_precision="learned").fit(X, LINE),
        ),
    ),
    "control variates of a network": (
        'use sampler="hmc", or sampler=None',
        lambda: network(SGLD(variance_reduction="control_variate")).fit(X, LINE),
        lambda: (network("hmc").fit(X, LINE), network(None).fit(X, LINE)),
    ),
    "a closed form that is not there": (
        "use HMC",
        lambda: logistic(sampler=IndependentDraws()).fit(X, PAIR),
        lambda: logistic(sampler=HMC()).fit(X, PAIR),
    ),
    **{
        name: (
            remedy,
            lambda wrong=wrong: logistic(sampler=wrong).fit(X, PAIR),
            lambda right=right: logistic(sampler=right).fit(X, PAIR),
        )
        for name, remedy, wrong, right in (
            (
                "h_max of a matrix",
                'use structure="diag" or "scalar"',
                SGFS(h_max=0.1),
                SGFS(3.0, h_max=0.1, structure="diag"),
            ),
            (
                "C in other coordinates",
                'use "full"',
                SGFS(50.0, structure="kron", C=np.eye(4)),
                SGFS(50.0, structure="full", C=np.eye(4)),
            ),
            (
                "C that is too large",
                "alpha must be above",
                SGFS(0.1, C=np.eye(4)),
                SGFS(50.0, C=np.eye(4)),
            ),
            (
                "C that is not symmetric",
                "give (C + C.T) / 2",
                SGFS(50.0, C=np.eye(4) + np.eye(4, k=1)),
                SGFS(50.0, C=np.eye(4) + (np.eye(4, k=1) + np.eye(4, k=-1)) / 2),
            ),
            (
                "B that is not definite",
                "add a multiple of the identity",
                SGFS(B=-np.eye(4)),
                SGFS(B=-np.eye(4) + 2 * np.eye(4)),
            ),
            (
                "one row beside itself",
                'leave covariance at "minibatch"',
                SGFS(covariance="single_row", batch_size=1),
                SGFS(batch_size=1),
            ),
            (
                "a step of many preconditioners",
                "give a step_size, a number or a callable",
                SGLD(preconditioner=lambda t: np.eye(4)),
                SGLD(1e-3, preconditioner=lambda t: np.eye(4)),
            ),
            (
                "the noise of all rows",
                'use correction="discrete" or SGFS',
                ConstantSGD(correction="ou", batch_size=N),
                ConstantSGD(correction="discrete", batch_size=N),
            ),
            (
                "roots of no noise",
                'use "diag"',
                ConstantSGD("sqrt", batch_size=N),
                ConstantSGD("diag", batch_size=N),
            ),
        )
    },
    "the paper's step of three classes": (
        'variant="exact" and curvature="empirical"',
        lambda: logistic(sampler=SGFS(1.0, variant="paper")).fit(X, THREE),
        lambda: logistic(sampler=SGFS(1.0, variant="exact", curvature="empirical")).fit(X, THREE),
    ),
    "scores of weighted rows": (
        'use variant="exact" with curvature="model"',
        lambda: logistic(sampler=SGFS(curvature="empirical")).fit(X, PAIR, sample_weight=WEIGHT),
        lambda: logistic(sampler=SGFS(variant="exact", curvature="model")).fit(
            X, PAIR, sample_weight=WEIGHT
        ),
    ),
    "a negative weight": (
        "0 leaves a row out",
        lambda: linear().fit(X, LINE, sample_weight=WEIGHT - 2),
        lambda: linear().fit(X, LINE, sample_weight=np.maximum(WEIGHT - 2, 0)),
    ),
    "single precision": (
        "divide all by a constant",
        lambda: logistic().fit(X.astype(np.float32), PAIR, sample_weight=1e39 * WEIGHT),
        lambda: logistic().fit(X.astype(np.float32), PAIR, sample_weight=1e39 * WEIGHT / 1e39),
    ),
    "a level of 1": (
        "give a probability such as 0.95",
        lambda: fitted("two").summary(1),
        lambda: fitted("two").summary(0.95),
    ),
    "a precision that is a word": (
        "use a small number for a weak prior",
        lambda: linear(intercept_precision="weak").fit(X, LINE),
        lambda: linear(intercept_precision=1e-6).fit(X, LINE),
    ),
    # -- rows on workers and in files --
    **{
        name: (
            remedy,
            lambda wrong=wrong: wrong(in_parts(X)),
            lambda right=right: right(in_parts(X)),
        )
        for name, remedy, wrong, right in (
            (
                "a stream of partitions",
                "call fit, which reads them where they are, or give one partition after the other",
                lambda parts: linear().partial_fit(parts, LINE),
                lambda parts: (
                    linear().fit(parts.to_dask_array(lengths=True), LINE),
                    stream(
                        linear(),
                        *[
                            (each.compute(), LINE[k * N // 2 :][: N // 2], {})
                            for k, each in enumerate(parts.partitions)
                        ],
                    ),
                ),
            ),
            (
                "gaps on workers",
                "impute or leave out such rows",
                lambda parts: linear().fit(in_parts(X.to_numpy() / HOLE[:, None]), LINE),
                lambda parts: linear().fit(in_parts(X.to_numpy()[HOLE > 0]), LINE[HOLE > 0]),
            ),
            (
                "no targets on workers",
                "leave out such rows",
                lambda parts: linear().fit(in_parts(X.to_numpy()), LINE / HOLE),
                lambda parts: linear().fit(in_parts(X.to_numpy()[HOLE > 0]), LINE[HOLE > 0]),
            ),
            (
                "large X on workers",
                "scale its columns, for example by MaxAbsScaler",
                lambda parts: linear().fit(in_parts(1e200 * X.to_numpy()), LINE),
                lambda parts: linear().fit(
                    in_parts(MaxAbsScaler().fit_transform(1e200 * X.to_numpy())), LINE
                ),
            ),
            (
                "text on workers",
                "give such a column the type category",
                lambda parts: linear().fit(in_parts(pd.DataFrame({"town": TOWN})), LINE),
                lambda parts: linear().fit(
                    in_parts(pd.DataFrame({"town": pd.Categorical(TOWN)})), LINE
                ),
            ),
            (
                "factors of an array on workers",
                "give a dask data frame, or an array in memory",
                lambda parts: linear(categorical_features=[0]).fit(in_parts(HALVES), LINE),
                lambda parts: (
                    linear().fit(
                        in_parts(pd.DataFrame(HALVES, columns=["a", "b"]).astype("category")), LINE
                    ),
                    linear(categorical_features=[0]).fit(HALVES, LINE),
                ),
            ),
            (
                "partitions of two kinds",
                "give both the same",
                lambda parts: linear().fit(parts, in_parts(pd.DataFrame({"y": LINE}))["y"][:5]),
                lambda parts: linear().fit(parts, in_parts(pd.DataFrame({"y": LINE}))["y"]),
            ),
            (
                "no exposure on workers",
                "exposures positive and finite",
                lambda parts: poisson().fit(
                    in_parts(X.to_numpy()), COUNTS, exposure=in_parts(EXPOSURE * HOLE)
                ),
                lambda parts: poisson().fit(
                    in_parts(X.to_numpy()), COUNTS, exposure=in_parts(EXPOSURE)
                ),
            ),
            (
                "means on workers",
                "or arrays in memory",
                lambda parts: linear().fit(in_parts(X.to_numpy()), LINE, var_weights=WEIGHT),
                lambda parts: linear().fit(X.to_numpy(), LINE, var_weights=WEIGHT),
            ),
            (
                "a sampler of rows on workers",
                "which needs rows at random; give np.asarray(X)",
                lambda parts: linear(sampler="sgld").fit(in_parts(X.to_numpy()), LINE),
                lambda parts: linear(sampler="sgld").fit(np.asarray(in_parts(X.to_numpy())), LINE),
            ),
            (
                "draws on workers",
                'give kind="mean", or rows in memory',
                lambda parts: fitted("line").predict_draws(parts, "observation"),
                lambda parts: (
                    fitted("line").predict_draws(parts, kind="mean"),
                    fitted("line").predict_draws(X, "observation"),
                ),
            ),
        )
    },
    "trials of many digits": (
        "give X in float64",
        lambda: BayesianBinomialRegressor(**SHORT).fit(
            X.astype(np.float32), COUNTS, trials=(1 << 24) + 1
        ),
        lambda: BayesianBinomialRegressor(**SHORT).fit(X, COUNTS, trials=(1 << 24) + 1),
    ),
    "coefficients of a network": (
        "give one of the",
        lambda: CoefficientsDisplay.from_estimator(DRBMClassifier(2, **SHORT).fit(X, PAIR)),
        lambda: CoefficientsDisplay.from_estimator(fitted("two")),
    ),
}

ELSEWHERE = {
    "": [  # without a remedy, or none that a call could try
        "is not finite; ",
        "parameters are too many for one",
        "to the highest; got ",
        "one per class and feature, shape .*; got ",
        " must be one number or .*, for .*; got ",
        "cannot undo any numbers",
        "derive it from skbayes_sg.models.predictor.Predictor",
        "others need scikit-learn 1.9",  # of scikit-learn before it
        "unstable: ",  # of functions of matrices
        "is not definite at its mean",
        "cannot be learned from the first chunk",
        "is 0 for all but very few rows",
        "the covariance of these averages is not known",  # of theory beside draws
        "the posterior has no covariance",
    ],
    "samplers/test_hmc.py": ["or divide the weights by a constant"],
    "estimators/test_predict_draws.py": ["predict fewer rows"],
    "estimators/test_row_meaning.py": ["give the single observations"],
    "inference/test_deferred.py": ["singular in double precision"],
    "test_stored.py": ["is no type of skbayes_sg"],
    "promises/test_messages.py": ["under each of"],
    "data/test_on_disk.py": ["must hold real numbers"],
    "data/test_on_workers.py": ["visits rows at each step"],
    "chains/test_chains.py": ["diverged by step"],
}
"""Parts of messages by the test that tries their remedy, and that holds these words."""


def towns():
    return pd.DataFrame({"town": TOWN, "same": "x"})


def polars():
    return pytest.importorskip("polars")


@cache
def said(name):
    """The message of a case."""
    return said_by(CASES[name][1])


@pytest.mark.parametrize("name", CASES)
def test_a_remedy_can_be_applied_and_helps(name):
    remedy, _, right = CASES[name]
    assert remedy in said(name)
    right()


def test_every_remedy_is_tried():
    patterns = [pattern for _, raised, pattern in remedies() if raised]
    assert not untried(patterns, [said(name) for name in CASES], ELSEWHERE)
