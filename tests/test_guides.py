"""The guide: its code runs and prints what the page shows, and its sentences are short."""

import re
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
RUN = ["index", "quickstart", "streams", "extending", "paper_ahn", "paper_mandt", "paper_handout"]
PAGES = ["README.md", *(f"docs/{path.name}" for path in sorted(DOCS.glob("*.md")))]
CODE = re.compile(r"^```python\n(.*?)^```\n(?:\s*```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
NO_PROSE = re.compile(
    r"^```.*?^```|<!--.*?-->|^\|.*?$|^#.*?$|^!\[.*?$|^    .*?$|\$\$.*?\$\$",
    re.DOTALL | re.MULTILINE,
)
LONGEST_MEDIAN = 13


def sentences(text):
    """Number of words of each sentence outside code, tables and headings."""
    prose = NO_PROSE.sub("", text)
    prose = re.sub(r"\$[^$]*\$|`[^`]*`", "x", prose)
    prose = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", prose)
    blocks = re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) ", prose)
    ends = re.compile(r"(?<!al)(?<!\bet)[.!?:][*)\"]*\s+")
    split = [part.split() for block in blocks for part in ends.split(block + " ")]
    words = [[word for word in part if re.search(r"\w", word)] for part in split]
    return [len(part) for part in words if part]


def test_sentences_are_counted():
    text = (
        "# No\n\nOne two `a b` three. Four of [five six](x.md).\n\n```python\nno\n```\n- a *b c.*\n"
    )
    assert sentences(text) == [4, 4, 3]


@pytest.mark.parametrize("path", PAGES)
def test_half_of_the_sentences_have_at_most_thirteen_words(path):
    assert statistics.median(sentences((ROOT / path).read_text())) <= LONGEST_MEDIAN


@pytest.mark.parametrize("name", RUN)
def test_the_code_of_a_page_prints_what_it_shows(name, monkeypatch, capsys):
    monkeypatch.chdir(DOCS)
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *args, **kwargs: None)
    blocks, names = CODE.findall((DOCS / f"{name}.md").read_text()), {}
    assert blocks
    for number, (code, shown) in enumerate(blocks, 1):
        exec(compile(code, f"{name}.md, block {number}", "exec"), names)
        assert capsys.readouterr().out.split() == shown.split(), f"block {number}"
