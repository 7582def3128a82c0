"""Every limit of a warning stands on one page, with its value."""

import re
from fractions import Fraction
from pathlib import Path

import numpy as np

from skbayes_sg.diagnostics import limits

PAGE = Path(__file__).parents[2] / "docs" / "math" / "diagnostics.md"


def test_the_page_lists_every_limit_with_its_value():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    for name, value in vars(limits).items():
        if not name.isupper() or name == "CERTAIN_ERRORS":  # in words
            continue
        (cell,) = [cell for line in lines for cell in line.split("|") if f"`{name}`" in cell]
        told = {Fraction(number) for number in re.findall(r"\d+/\d+|\d+(?:\.\d+)?", cell)}
        for number in np.atleast_1d(value):
            assert Fraction(float(number)).limit_denominator(1000) in told, name
