"""No message names a parameter that the estimator in play does not have.

Every string of the package that could be a message is read from its source. A string inside a class
may name parameters that all public classes below it have; any other string those that every
estimator has. Both may name parameters of a class that the string names too, as in
``HMC(target_accept=0.9)``. What remains is listed in `FOR`, with the classes that it is said for.
"""

import ast
import copy
import importlib
import inspect
import pkgutil
import re
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, is_classifier

import skbayes_sg
from skbayes_sg import VariationalEM, callbacks, samplers
from skbayes_sg.priors.shrinkage import Horseshoe, StudentT
from skbayes_sg.samplers import SAMPLERS
from skbayes_sg.samplers.independent_draws import IndependentDraws

ROOT = Path(skbayes_sg.__file__).parent
for module in pkgutil.walk_packages([str(ROOT)], "skbayes_sg."):
    importlib.import_module(module.name)
ESTIMATORS = {
    cls
    for name in skbayes_sg.__all__
    if isinstance(cls := getattr(skbayes_sg, name), type)
    and issubclass(cls, BaseEstimator)
    and hasattr(cls, "fit")
}
PUBLIC = ESTIMATORS | {*SAMPLERS.values(), IndependentDraws, VariationalEM, Horseshoe, StudentT}
PUBLIC |= {getattr(callbacks, name) for name in ("Checkpoint", "ConvergenceStop", "TimeLimit")}
COEFFICIENTS = {cls for cls in ESTIMATORS if "prior_groups" in inspect.signature(cls).parameters}
NETWORKS = ESTIMATORS - COEFFICIENTS
BY_DEFAULT = {"IndependentDraws", "UnderdampedLangevin", "HMC", "SGHMC", "SGFS"}


@cache
def parameters(cls):
    return {*inspect.signature(cls).parameters}


def of_all(classes):
    return set.intersection(*map(parameters, classes))


EVERY = set().union(*map(parameters, PUBLIC))
ALWAYS = of_all(ESTIMATORS)
ASKED = r"(?:raise|lower|set|give|leave|take|choose|use|with|or|and)"
PLAIN = {"every", "per", "prior"}  # words of which sentences are made too


def named(text):
    """Parameters that a text names: words that are no others, or that it asks to change."""
    found = set()
    for word in {*re.findall(r"(?<![\w.`])[A-Za-z]\w*", text)} & EVERY:
        begins = rf"^{word}\b(?=: |=| must| is | has | holds )"
        asked = "$^" if word in PLAIN else rf"^{word}\b|\b{ASKED} {word}\b(?! of)"
        if "_" in word or re.search(rf"\b{word}=|{begins}|{asked}", text):
            found.add(word)
    return found


def owners(text):
    """Classes that a text names, samplers by the name of `sampler=` too."""
    words, quoted = {*re.findall(r"\w+", text)}, {*re.findall(r'"(\w+)"', text)}
    by_name = {SAMPLERS[word] for word in quoted & {*SAMPLERS}}
    return {cls for cls in PUBLIC if cls.__name__ in words} | by_name


def strange(text, *users):
    """Parameters that a text names, which neither all of some users have, nor an owner in it."""
    known = ALWAYS.union(*(of_all(group) for group in users if group))
    return named(text) - known.union(*map(parameters, owners(text)))


# -- a walk of the source ---------------------------------------------------------------------


class Strings(ast.NodeVisitor):
    """Strings of a file with at least two words, but for docstrings, and where they stand."""

    def __init__(self, tree):
        self.place, self.found = [], []
        self.visit(tree)

    def visit(self, node):
        kinds = (ast.ClassDef, ast.FunctionDef, ast.Raise, ast.Assign)
        self.place += [node] * isinstance(node, kinds)
        if isinstance(node, ast.JoinedStr):
            parts = (getattr(part, "value", "{}") for part in node.values)
            self._add(node, "".join(part if isinstance(part, str) else "{}" for part in parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            self._add(node, node.value)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            pass
        else:
            self.generic_visit(node)
        if isinstance(node, kinds):
            self.place.pop()

    def _add(self, node, text):
        if " " in text.strip():
            self.found.append((node.lineno, text, list(self.place)))


@cache
def strings():
    """(file, line, text, name of the class or None, whether of a fit by default)."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        for line, text, place in Strings(ast.parse(path.read_text())).found:
            cls = next((node.name for node in place if isinstance(node, ast.ClassDef)), None)
            raised = any(isinstance(node, ast.Raise) for node in place)
            targets = {
                getattr(target, "id", None)
                for node in place
                if isinstance(node, ast.Assign)
                for target in node.targets
            }
            targets |= {node.name for node in place if isinstance(node, ast.FunctionDef)}
            warned = not raised and not targets & {"remedy", "bias_remedy"}
            found.append((str(path.relative_to(ROOT)), line, text, cls, warned))
    return found


def users_of(name):
    """Public classes that have the methods of a class by their bases."""
    return {cls for cls in PUBLIC if name in {base.__name__ for base in cls.__mro__}}


def having(*names):
    return {cls for cls in PUBLIC if {*names} <= parameters(cls)}


FOR = [
    ("callbacks.py", "raise seconds", {callbacks.TimeLimit}),
    ("chains/tuning.py", "; alpha=", {samplers.SGFS}),  # of the reason for a sampler
    ("estimators/binomial.py", "counts of successes vary", having("overdispersed")),
    ("models/binomial.py", "trials are 1 in all rows", having("overdispersed")),
    ("estimators/classifier.py", "sample_weight or class_weight", having("class_weight")),
    ("estimators/gaussian_posterior.py", "prior: new levels", COEFFICIENTS),
    ("estimators/coefficient_prior.py", "", COEFFICIENTS),  # functions of these estimators
    ("estimators/gaussian_posterior.py", "prior", COEFFICIENTS),
    ("estimators/classifier.py", "class_weight", having("class_weight")),
    ("estimators/new_levels.py", "", COEFFICIENTS),  # functions of these estimators
    ("estimators/predicted_covariance.py", "", COEFFICIENTS),
    ("estimators/one_hot.py", "", COEFFICIENTS),
    ("data/factors.py", "prior_groups", COEFFICIENTS),
    ("inspection/summary.py", "reference: without an intercept", having("fit_intercept")),
    ("estimators/warnings_of_rows.py", "one value, as an intercept", having("fit_intercept")),
    ("estimators/mlp.py", "hidden_layer_sizes", having("hidden_layer_sizes")),
    ("estimators/ordinal.py", "categories must", having("categories")),
    ("estimators/coefficient_prior.py", "prior must", COEFFICIENTS),
    ("estimators/coefficient_prior.py", "prior_groups", COEFFICIENTS),
    ("estimators/coefficient_prior.py", "{} has a scale for each column", COEFFICIENTS),
    ("estimators/updating.py", "", COEFFICIENTS),  # functions of these estimators
    ("diagnostics/judgements.py", "{}do not agree on which columns", COEFFICIENTS),
    ("diagnostics/judgements.py", ", or temperature", NETWORKS),
    ("inspection/coefficients.py", "odds_ratio: the", having("per")),  # that of the picture
    ("inference/warm_up.py", "prior_groups, and a prior", COEFFICIENTS),
    ("priors/shrinkage.py", "prior: ", COEFFICIENTS),
    ("samplers/constant_sgd.py", "the gradient has no noise", having("correction")),
    ("samplers/constant_sgd.py", 'structure="sqrt"', {samplers.ConstantSGD}),
    ("samplers/sgfs.py", "alpha={} is too small for this C", {samplers.SGFS}),
    ("samplers/sghmc.py", "a step_size or temperature that changes", {samplers.SGHMC}),
    ("samplers/stationary.py", "the posterior has no covariance", having("noise_variance")),
]
"""File, beginning of a string, and classes that have what it names where it is said."""


def test_no_string_names_a_parameter_that_its_estimator_does_not_have():
    found, used = [], set()
    for file, line, text, cls, warned in strings():
        users = [] if warned and cls in BY_DEFAULT else [users_of(cls)]
        listed = {
            k for k, (of, begins, _) in enumerate(FOR) if of == file and text.startswith(begins)
        }
        rest = strange(text, *users, *(FOR[k][2] for k in listed))
        used |= listed
        if rest:
            found.append(f"{file}:{line} names {sorted(rest)}: {text}")
    assert found == []
    assert [one for k, one in enumerate(FOR) if k not in used] == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("stein_ratio is 2; lower step_size", {"step_size"}),
        ("raise alpha or batch_size", {"alpha", "batch_size"}),
        ("chains do not agree; raise n_draws or thin", {"thin", "n_draws"}),
        ("scale the columns of X, or use clip", {"clip"}),
        ('use structure="full", or SGFS', {"structure"}),
        ("the step has no window of its own, and the prior decides", set()),
        ("prior_precision_path_ and model.n_draws", set()),
    ],
)
def test_a_name_is_told_from_a_word(text, names):
    """Else the walk could find nothing."""
    assert named(text) == names


def test_the_walk_finds_what_it_is_for():
    """That HMC would name a step_size, a default a target_accept, a network its prior_groups."""
    assert strange("lower step_size", {samplers.HMC}) == {"step_size"}
    assert strange("raise target_accept") == {"target_accept"}
    assert not strange("give HMC(target_accept=0.9)")
    assert strange("set prior_groups=None", NETWORKS) == {"prior_groups"}
    assert strange("give VariationalEM a hyperprior, or n_updates") == set()


# -- remedies ---------------------------------------------------------------------------------

FORMS = {
    "structure": ["full", "diag", "scalar"],
    "variant": ["exact", "paper", "mandt"],
    "curvature": ["model", "empirical"],
    "step_size": [0.1],
}


@pytest.mark.parametrize("cls", sorted({*SAMPLERS.values(), IndependentDraws}, key=str))
def test_remedies_name_parameters_of_the_sampler_or_of_every_estimator(cls):
    forms = [
        cls(**{name: value})
        for name, values in FORMS.items()
        if name in parameters(cls)
        for value in values
    ]
    for sampler in [cls(), *forms]:
        for remedy in (sampler.remedy, sampler.bias_remedy):
            assert not strange(remedy, {cls})
            # no parameter is to be given the value that it has
            for name, value in re.findall(r"use (\w+)=\"(\w+)\"", remedy):
                assert getattr(sampler, name) != value
        assert (sampler.advice, sampler.bias_advice) == (sampler.remedy, sampler.bias_remedy)
    assert not strange(cls.remedy_of_default)
    sampler = cls()
    sampler.asked_for = False
    twin = copy.copy(sampler)
    assert (twin.advice, twin.bias_advice) == (cls.remedy_of_default,) * 2


# -- what fits say ----------------------------------------------------------------------------

RNG = np.random.default_rng(0)
HOSTILE = {
    "far": RNG.standard_normal((24, 3)) * [1, 1, 1e4] + [0, 0, 1e6],
    "heavy": RNG.standard_t(1, (24, 3)) * [1, 1e-4, 1e4],
    "few": RNG.standard_normal((6, 8)),
}
SHORT = {"n_chains": 2, "n_draws": 8, "burn_in": 2, "thin": 1, "random_state": 0}


def said_by(model, X):
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)
    y = y if is_classifier(model) else y + (np.arange(len(y)) % 3) + 1.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(X, y)
        except (ValueError, FloatingPointError, TypeError) as error:
            return [str(each.message) for each in caught] + [str(error)]
    return [str(each.message) for each in caught]


FITS = [(None, data) for data in HOSTILE]
OTHERS = [(name, data) for name in SAMPLERS for data in HOSTILE]


@pytest.mark.parametrize(
    ("sampler", "data"), FITS + [pytest.param(*one, marks=pytest.mark.slow) for one in OTHERS]
)
@pytest.mark.parametrize("cls", sorted(ESTIMATORS, key=str))
@pytest.mark.quick("heavy")
@pytest.mark.usefixtures("_short_searches")
def test_no_fit_names_a_parameter_that_its_user_does_not_have(cls, sampler, data):
    """Of data that no sampler likes, in runs far too short.

    Who asks for a sampler by its name has its parameters.
    """
    model = cls(sampler=sampler, **SHORT)
    users = [{cls}] if sampler is None else [{cls}, {SAMPLERS[sampler]}]
    for message in said_by(model, HOSTILE[data]):
        assert not strange(re.sub(r"^\w+\([^)]*\)", "", message), *users), message
