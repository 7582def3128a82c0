"""No table of benchmarks/results is of an older package than a page says it is.

A table that is older than `MOST_CHANGES` is to be made again, or to be named in the list
``older`` of docs/tables.toml: then a page says with which commit it was made. One that is named
has more than half as many.
"""

import ages
import pytest
import tables

pytestmark = pytest.mark.repository

MOST_CHANGES = 10


def test_tables_of_an_older_package_say_so():
    if not ages.has_history():
        pytest.skip("the history of git says how old a table is")
    found, named = ages.ages(), set(tables.stored()["older"])
    old = {file for file, age in found.items() if age > MOST_CHANGES}
    assert not sorted(old - named), "make them again, or name them in docs/tables.toml"
    assert not [file for file in sorted(named) if found[file] <= MOST_CHANGES / 2], "made again"


@pytest.mark.parametrize("file", tables.stored()["older"])
def test_a_page_has_the_commit_of_each_older_table(file):
    *_, commit = tables.header(file)
    blocks = [match[2] for text in tables.pages().values() for match in tables.BLOCK.finditer(text)]
    lines = [line for block in blocks for line in block.splitlines() if f"`{file}`" in line]
    assert lines
    assert all(f"`{commit}`" in line for line in lines)


@pytest.mark.parametrize(
    ("fit", "names", "expected"),
    [
        ("SGFS, paper", {"SGFS", "DRBM"}, True),
        ("SGLD", {"SGFS", "DRBM"}, False),
        ("drbm", {"SGFS", "DRBM"}, True),
        ("logistic, horseshoe", {"BayesianPoissonRegressor"}, True),
        ("logistic, horseshoe", {"BayesianLinearRegression"}, False),
        ("linear, em", {"BayesianLinearRegression"}, False),
        ("linear, em", {"BayesianLinearRegression", "VariationalEM"}, True),
        ("mlp, cold", {"BayesianMLPRegressor"}, True),
        ("stream, linear", {"BayesianLinearRegression"}, False),
        ("stream, linear", {"BayesianLinearRegression", "partial_fit"}, True),
    ],
)
def test_a_script_runs_the_fits_of_what_it_imports(fit, names, expected):
    assert ages.measures(fit, names) is expected


def test_imports_are_followed_through_the_files_of_benchmarks():
    through = ages.imported(ages.ROOT / "benchmarks" / "papers" / "ahn_kdd_letter.py")
    assert {"SGFS", "SGD", "SGLD", "DRBM"} <= through  # the second and third by ahn_kdd.py
