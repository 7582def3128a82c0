"""Who may import whom; models and samplers never see each other."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "skbayes_sg"
ALLOWED = {
    "linalg": set(),
    "diagnostics": set(),
    "rows": set(),
    "theory": set(),
    "priors": {"linalg"},
    "scores": {"linalg"},
    "mode": {"linalg", "posterior"},
    "models": {"models", "priors", "scores"},
    "posterior": {"linalg", "scores", "rows"},
    "samplers/schedules": set(),
    "samplers": {"samplers", "linalg", "theory"},
    "chains": {"samplers", "diagnostics"},
    "pilots": {"chains", "samplers", "diagnostics"},
    "empirical_bayes": {"chains", "samplers", "diagnostics"},
    "control_variates": {"linalg", "mode", "scores", "rows", "posterior"},
    "estimators": {
        "control_variates",
        "empirical_bayes",
        "estimators",
        "models",
        "samplers",
        "chains",
        "posterior",
        "mode",
        "pilots",
        "diagnostics",
        "rows",
        "linalg",
    },
    "__init__": {"empirical_bayes", "estimators", "samplers", "theory", "diagnostics"},
}
FILES = sorted(PACKAGE.rglob("*.py"))


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "skbayes_sg":
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from [alias.name.split(".")[1] for alias in node.names if alias.name.startswith("skbayes_sg.")]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_file_imports_only_what_its_layer_may(path):
    name = path.relative_to(PACKAGE).with_suffix("").as_posix()
    layer = name if name in ALLOWED else name.split("/")[0]
    assert set(imported(path)) <= ALLOWED[layer]


def test_joblib_and_validation_live_in_one_place_each():
    users = {"joblib": set(), "sklearn.utils.parallel": set(), "sklearn.utils.validation": set()}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            module = getattr(node, "module", None) if isinstance(node, ast.ImportFrom) else None
            if module in users:
                users[module].add(path.relative_to(PACKAGE).parts[0])
    assert users["joblib"] | users["sklearn.utils.parallel"] == {"chains.py"}
    assert users["sklearn.utils.validation"] == {"estimators"}
