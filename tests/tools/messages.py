"""Every message of the package that says what to do, and what a call says."""

import ast
import re
import warnings
from functools import cache
from pathlib import Path

import skbayes_sg

ROOT = Path(skbayes_sg.__file__).parent
TESTS = Path(__file__).parents[1]


@cache
def remedies():
    """[(file, whether it is raised right there, pattern)] of each text that goes on after a ";".

    Docstrings are no messages, and what begins with a semicolon is a part of one.
    """
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        for text, raised in _texts(ast.parse(path.read_text()), False):
            pieces = getattr(text, "values", [text])
            words = [getattr(piece, "value", None) for piece in pieces]
            words = [word if isinstance(word, str) else None for word in words]
            said = any("; " in word for word in words if word)
            if said and not (words[0] or "").startswith("; "):
                pattern = "".join(".*" if word is None else re.escape(word) for word in words)
                pattern = re.sub(r"\\{[^{}]*\\}", ".*", pattern)  # of `format`
                found.append((path.relative_to(ROOT).as_posix(), raised, pattern))
    return found


def _texts(node, raised):
    """The strings below a node, whole, and whether a raise statement makes them an error."""
    if isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str):
        yield node, raised
        return
    raised |= isinstance(node, ast.Raise)
    for child in ast.iter_child_nodes(node):
        docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        if not docstring:
            yield from _texts(child, raised)


def said_by(call):
    """The message of the error that a call raises, or of all its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except AttributeError as error:  # of a method that is hidden; its cause says why
            return str(error.__cause__)
        except (ValueError, TypeError, FloatingPointError) as error:
            return str(error)
    return "\n".join(str(one.message) for one in caught)


def untried(patterns, said, elsewhere):
    """Messages that no text of `said` matches and no test of `elsewhere` is named for.

    `elsewhere` has parts of messages by the file that tries their remedy, which must hold these
    words too; parts of messages that are no more, or not in the file, are reported as well.
    """
    patterns = [one for one in patterns if not any(re.search(one, s, re.DOTALL) for s in said)]
    plain = {re.sub(r"\\(.)", r"\1", pattern) for pattern in patterns}
    parts = [(file, part) for file, some in elsewhere.items() for part in some]
    missing = {text for text in plain if not any(part in text for _, part in parts)}
    unknown = {part for _, part in parts if not any(part in text for text in plain)}
    unnamed = {part for file, part in parts if file and part not in words_of(file)}
    return missing | unknown | unnamed


def words_of(file):
    """The text of a test, strings joined as Python does and without the escapes of patterns."""
    text = re.sub(r'"\s*\n\s*r?f?"', "", (TESTS / file).read_text())
    return re.sub(r"\\(.)", r"\1", text)
