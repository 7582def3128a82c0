"""Who may import whom: imports run downwards, and models and samplers never see each other."""

import ast
import importlib
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import skbayes_sg
from skbayes_sg.samplers import SAMPLERS

pytestmark = pytest.mark.repository

PACKAGE = Path(__file__).parents[2] / "skbayes_sg"
FLOORS = (  # from the ground up; a room imports from the floors below
    {"version", "bases", "validation", "frames", "linalg", "theory", "diagnostics"},
    {"data", "priors", "stored"},
    {"models", "samplers", "inspection"},
    {"posterior", "chains"},
    {"inference"},
    {"callbacks", "streams"},
    {"estimators"},
    {"__init__"},
)
FILES = sorted(PACKAGE.rglob("*.py"))


def room(path):
    """The folder or file of the package that a path belongs to."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@cache
def nodes(path):
    """All nodes of a file's syntax tree."""
    return list(ast.walk(ast.parse(path.read_text())))


def calls(path, name):
    """Calls of a function by its name, dotted as in the file."""
    last = name.rpartition(".")[2]
    for node in nodes(path):
        if isinstance(node, ast.Call):
            found = getattr(node.func, "attr", getattr(node.func, "id", None))
            if found == last and ast.unparse(node.func) == name:
                yield node


def imported(path):
    for node in nodes(path):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and node.module.split(".")[0] == "skbayes_sg"
        ):
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from [
                alias.name.split(".")[1]
                for alias in node.names
                if alias.name.startswith("skbayes_sg.")
            ]


def floor_of(name):
    return next(level for level, rooms in enumerate(FLOORS) if name in rooms)


def test_every_room_has_a_floor():
    assert {room(path) for path in FILES} == set().union(*FLOORS)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_file_imports_only_from_floors_below(path):
    others = set(imported(path)) - {room(path)}
    assert {name for name in others if floor_of(name) >= floor_of(room(path))} == set()


@pytest.mark.parametrize("name", sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py")))
def test_a_room_says_what_it_imports(name):
    others = {x for path in FILES if room(path) == name for x in imported(path)} - {name}
    said = " ".join(importlib.import_module(f"skbayes_sg.{name}").__doc__.split())
    if name == "estimators":
        assert said.endswith("Imports all that is below, and callbacks.")
        return
    listed = re.search(r"Imports ([a-z, ]+)[.;]", said)[1]
    expected = set() if listed == "nothing of the package" else set(re.split(r", | and ", listed))
    assert expected == others


def test_no_file_imports_itself_by_a_detour():
    """Each import leads to the file that it names, or to the `__init__` that passes a name on."""
    names = {".".join(path.relative_to(PACKAGE).with_suffix("").parts): path for path in FILES}
    graph = {}
    for name, path in names.items():
        ifs = [node for node in nodes(path) if isinstance(node, ast.If)]
        of_types = [
            part for node in ifs if "TYPE_CH" in ast.unparse(node.test) for part in node.body
        ]
        asked = [
            f"{node.module}.{alias.name}".removeprefix("skbayes_sg.")
            for node in nodes(path)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("skbayes_sg.")
            if node not in of_types
            for alias in node.names
        ]
        modules = {whole if whole in names else whole.rpartition(".")[0] for whole in asked}
        graph[name] = {one if one in names else f"{one}.__init__" for one in modules} & names.keys()
    assert sum(map(len, graph.values())) > 300  # imports were found
    assert set(TopologicalSorter(graph).static_order()) == set(names)  # or CycleError


def test_joblib_validation_and_warnings_live_in_one_place_each():
    users = {"joblib": set(), "sklearn.utils.parallel": set(), "sklearn.utils.validation": set()}
    warning, of_library = set(), {"dask": set(), "narwhals": set()}
    for path in FILES:
        for node in nodes(path):
            module = getattr(node, "module", None) if isinstance(node, ast.ImportFrom) else None
            if module in users:
                users[module].add(room(path))
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [module or ""]
            for library in {name.split(".")[0] for name in names} & of_library.keys():
                of_library[library].add(path.relative_to(PACKAGE).as_posix())
        if any(calls(path, "warnings.warn")):
            warning.add(path.relative_to(PACKAGE).as_posix())
    assert users["joblib"] | users["sklearn.utils.parallel"] == {"chains"}
    assert users["sklearn.utils.validation"] <= {"estimators", "inspection"}
    assert warning == {"validation.py"}
    assert of_library == {"dask": {"data/dask.py"}, "narwhals": {"frames.py"}}


def test_draws_are_read_together_with_their_weights():
    """Weights of draws are read where `Draws` is made, so that no reader can leave them out."""
    readers = [
        path.relative_to(PACKAGE).as_posix()
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr == "draw_weights_"
    ]
    assert readers == ["estimators/base.py"]


def test_no_room_outside_samplers_asks_of_what_kind_a_sampler_is():
    names = {cls.__name__ for cls in SAMPLERS.values()}
    for path in FILES:
        for node in calls(path, "isinstance") if room(path) != "samplers" else ():
            kinds = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
            assert not kinds & names, f"{path.name}: {ast.unparse(node)}"


def may_have_many_parameters(path, node, owner):
    """What users call with keywords, and the posterior of arrays.

    These are constructors of estimators and samplers, displays, public functions, and methods that
    take what is known of rows, or have many options.
    """
    if room(path) in {"theory", "inspection"}:
        return node.name == "__init__" or not node.name.startswith("_")
    if node.name == "__init__":
        return room(path) in {"estimators", "samplers"}
    many = {
        ("Posterior", "of"),
        ("LinearModel", "summary"),
        ("LinearModel", "predicted_covariance"),
        ("BayesianEstimator", "to_arviz"),
        ("BayesianRegressor", "fit"),
        ("LinearRegressor", "partial_fit"),
    }
    return node.name in skbayes_sg.__all__ or (owner, node.name) in many


def test_functions_have_at_most_five_parameters():
    for path in FILES:
        owners = {
            id(part): node.name
            for node in nodes(path)
            if isinstance(node, ast.ClassDef)
            for part in node.body
        }
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef):
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                given = [each.arg for each in given if each.arg not in {"self", "cls"}]
                owner = owners.get(id(node))
                free = may_have_many_parameters(path, node, owner)
                assert free or len(given) <= 5, f"{path.name}: {node.name}"
