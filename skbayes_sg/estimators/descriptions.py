"""Descriptions that docstrings take over from base classes."""

from __future__ import annotations

import re
from inspect import cleandoc

_NAMES = r"^(\w+(?:, \w+)*)"
_DESCRIBED = re.compile(_NAMES + r" : .*\n((?:    .*\n)+)", re.MULTILINE)
_NAMED = re.compile(_NAMES + r"(?: : .*)?\n(?!    )", re.MULTILINE)


def complete(cls: type) -> None:
    """Complete the entries of a docstring that have no description, or not even a type.

    So a class says all of its parameters and attributes on its own page, and each paragraph is
    written once, where the parameter is declared.
    """
    if cls.__doc__ is None:  # as under python -OO
        return
    described: dict[str, tuple[str, str]] = {}
    for base in reversed(cls.__mro__[1:]):
        of_base = cleandoc(base.__doc__ or "") + "\n"
        described |= {match[1]: (match[0], match[2]) for match in _DESCRIBED.finditer(of_base)}

    def completed(entry: re.Match[str]) -> str:
        whole, body = described.get(entry[1], (entry[0], ""))
        return entry[0] + body if " : " in entry[0] else whole

    before, parameters, remainder = (cleandoc(cls.__doc__) + "\n").partition("\nParameters\n")
    entries, notes, after = remainder.partition("\nNotes\n")
    entries = _NAMED.sub(completed, entries)
    cls.__doc__ = before + parameters + entries + notes + after
