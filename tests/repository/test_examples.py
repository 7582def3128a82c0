"""The examples run, and the README's own example prints what the README shows."""

import ast
import importlib
import io
import re
import runpy
import warnings
from pathlib import Path

import pytest

pytestmark = pytest.mark.repository

ROOT = Path(__file__).parents[2]


DEMO = ROOT / "examples" / "plot_demo.py"  # a program, with a main()
GALLERY = sorted((ROOT / "examples").glob("*/plot_*.py"))
QUICK = [path for path in GALLERY if path.stem in ("plot_coefficients", "plot_uncertainty")]


def each(paths):
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.stem)


@each(GALLERY)
def test_an_example_has_a_title_cells_and_names_that_exist(path):
    tree = ast.parse(path.read_text())
    title, line, empty, *prose = ast.get_docstring(tree).splitlines()
    assert line == "=" * len(title)
    assert empty == ""
    assert len(prose) >= 2
    assert path.read_text().count("\n# %%\n") >= 2
    assert max(map(len, path.read_text().splitlines())) <= 79  # else the site cuts it
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("skbayes_sg"):
            module = importlib.import_module(node.module)
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


@each(QUICK)
def test_quick_examples_draw_and_print_without_a_warning(path, monkeypatch, capsys):
    run(path, monkeypatch, capsys)


@each(GALLERY)
@pytest.mark.slow
def test_examples_draw_and_print_without_a_warning(path, monkeypatch, capsys):
    run(path, monkeypatch, capsys)


def run(path, monkeypatch, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    if "import statsmodels" in path.read_text():
        pytest.importorskip("statsmodels.api")
    plt.switch_backend("Agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    try:
        runpy.run_path(str(path), run_name="__main__")
        assert plt.get_fignums()
        for number in plt.get_fignums():
            plt.figure(number).savefig(io.BytesIO())
    finally:
        plt.close("all")
    printed = capsys.readouterr().out
    assert printed
    assert max(map(len, printed.splitlines())) <= 88


@pytest.mark.slow
def test_the_demo_says_what_was_seen(monkeypatch, capsys):
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *args, **kwargs: None)
    runpy.run_path(str(DEMO), run_name="__main__")
    assert "What you saw" in capsys.readouterr().out


def test_the_readme_example_prints_what_it_shows(capsys):
    text = (ROOT / "README.md").read_text()
    code, shown = re.search(r"```python\n(.*?)```\s*```text\n(.*?)```", text, re.DOTALL).groups()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.split() == shown.split()
