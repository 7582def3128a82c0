"""The guide: its code runs and prints what the page shows.

``python tests/repository/test_guides.py`` writes the outputs anew that no longer are what is
printed.
"""

import contextlib
import io
import os
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.repository

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RUN = ["../README", "index", "quickstart", "which_model", "counts", "amounts", "grades"]
RUN += ["outliers", "groups", "which_prior", "posterior", "rows", "priors", "streams"]
RUN += ["extending", "paper_table", "papers"]
CODE = re.compile(r"^```python\n(.*?)^```\n(?:\s*```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
DECIMAL = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")


def same(printed, shown):
    """Whether words are equal, and decimal numbers but for a twentieth or the last digit."""
    if DECIMAL.sub("#", printed).split() != DECIMAL.sub("#", shown).split():
        return False
    for one, other in zip(DECIMAL.findall(printed), DECIMAL.findall(shown), strict=True):
        digit = 0.0 if "e" in other else 10.0 ** -len(other.partition(".")[2])
        if abs(float(one) - float(other)) > max(0.05 * abs(float(other)), 1.01 * digit):
            return False
    return True


def test_outputs_are_compared():
    assert same("a 1.24  [ 0.00\n5", "a 1.25 [ 0.01 5")
    assert same("a -0.0", "a 0.0")
    assert not same("a 1.20", "a 1.30")
    assert not same("a -1.2", "a 1.2")
    assert not same("a 1.25 5", "a 1.25 6")
    assert not same("a 1.25", "b 1.25")


@pytest.mark.parametrize("name", RUN)
def test_the_code_of_a_page_prints_what_it_shows(name, monkeypatch, capsys):
    monkeypatch.chdir(DOCS)
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *args, **kwargs: None)
    blocks, names = CODE.findall((DOCS / f"{name}.md").read_text()), {}
    assert blocks
    for number, (code, shown) in enumerate(blocks, 1):
        exec(compile(code, f"{name}.md, block {number}", "exec"), names)
        printed = capsys.readouterr().out
        assert same(printed, shown), f"block {number} prints\n{printed}"


def write(name):
    """The page with the outputs that its code has now; pictures are drawn anew too."""
    path, names = DOCS / f"{name}.md", {}

    def with_output(match):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(match[1], path.name, "exec"), names)
        lines = [line.rstrip() for line in out.getvalue().rstrip().splitlines()]
        if same(out.getvalue(), match[2] or ""):
            return match[0]
        end = "\n" if match[2] is None else ""
        return "\n".join([f"```python\n{match[1]}```\n", "```text", *lines, "```"]) + end

    path.write_text(CODE.sub(with_output, path.read_text()))


if __name__ == "__main__":
    os.chdir(DOCS)
    for page in RUN:
        write(page)
