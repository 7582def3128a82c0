"""Tables as papers print them."""

import re
import sys
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegressor,
)
from skbayes_sg.inspection import average_effects, prediction_summary, rounded, to_html, to_latex

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"a_b": RNG.normal(size=300), "town": RNG.choice(["Ghent", "R&D <x>"], 300)})
X = FRAME[["a_b"]].assign(big=1e6 * RNG.normal(size=300), small=1e-9 * RNG.normal(size=300))
LINE = 1 + X["a_b"] + RNG.normal(size=300)


@pytest.fixture(scope="module")
def line():
    return BayesianLinearRegression(random_state=0).fit(X, LINE)


@pytest.fixture(scope="module")
def effects():
    columns = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    model = make_pipeline(columns, BayesianLogisticRegression(random_state=0))
    return average_effects(model.fit(FRAME, LINE > 1), FRAME, rope=0.05)


def table_of(rows, **attrs):
    frame = pd.DataFrame(rows).set_index("term")
    frame.attrs = attrs
    return frame


def test_digits_are_those_that_the_posterior_knows():
    rows = [
        {"mean": 1.23456, "sd": 0.0234, "eti95_lb": 1.18872, "eti95_ub": 1.28},
        {"mean": -0.001, "sd": 0.5, "eti95_lb": -1.0, "eti95_ub": 1.0},
        {"mean": 123456.0, "sd": 2345.0, "eti95_lb": 118800.0, "eti95_ub": 128049.0},
        {"mean": 3e-9, "sd": 1e-9, "eti95_lb": 1e-9, "eti95_ub": 5e-9},
    ]
    more = [
        {"odds_ratio": 3.43745, "odds_ratio_eti95_lb": 3.2831, "odds_ratio_eti95_ub": 3.5966},
        {"odds_ratio": 0.999, "odds_ratio_eti95_lb": 0.36788, "odds_ratio_eti95_ub": 2.71828},
        dict.fromkeys(("odds_ratio", "odds_ratio_eti95_lb", "odds_ratio_eti95_ub"), np.inf),
        dict.fromkeys(("odds_ratio", "odds_ratio_eti95_lb", "odds_ratio_eti95_ub"), np.nan),
    ]
    last = [{"p_direction": p, "ess_bulk": 1234.5, "r_hat": 1.0049} for p in (1, 0.5, 0.987, 0.75)]
    found = rounded(
        table_of(
            [
                {"term": t, **a, **b, **c}
                for t, a, b, c in zip("abcd", rows, more, last, strict=True)
            ]
        )
    )
    expected = {
        "mean": ["1.235", "0.00", "123500", "3.00e-09"],
        "sd": ["0.023", "0.50", "2300", "1.00e-09"],
        "95 % interval": [
            "[1.189, 1.280]",
            "[-1.00, 1.00]",
            "[118800, 128000]",
            "[1.00e-09, 5.00e-09]",
        ],
        "odds ratio (95 %)": ["3.437 [3.283, 3.597]", "1.00 [0.37, 2.7]", "inf [inf, inf]", ""],
        "p(direction)": [">0.99", "0.50", "0.99", "0.75"],
        "ess bulk": ["1234", "1234", "1234", "1234"],
        "R-hat": ["1.00"] * 4,
    }
    assert found.to_dict("list") == expected


def test_no_figure_moves_by_more_than_rounding(line):
    table = line.summary(full=True)
    found = rounded(table)
    assert found.index.equals(table.index)
    for name in ("mean", "sd"):
        error = (found[name].astype(float) - table[name]).abs()
        assert (error <= 0.0501 * table["sd"]).all()
        assert (error > 0).any()
    for kind, header in (("eti", "95 % interval"), ("hdi", "95 % HDI")):
        ends = found[header].str.strip("[]").str.split(", ", expand=True).astype(float)
        error = (ends - table[[f"{kind}95_lb", f"{kind}95_ub"]].to_numpy()).abs()
        assert (error.to_numpy() <= 0.0501 * table[["sd"]].to_numpy()).all()


def test_rates_and_rows_have_their_columns(line):
    y = RNG.poisson(np.exp(0.3 * FRAME["a_b"]))
    counts = BayesianPoissonRegressor(random_state=0).fit(FRAME[["a_b"]], y)
    assert "rate ratio (95 %)" in rounded(counts.summary())
    rows = rounded(prediction_summary(line, X[:4], level=0.8))
    assert rows.columns.tolist() == ["mean", "sd", "80 % interval", "80 % interval of a new y"]


def test_latex_has_a_line_for_each_row_and_names_the_reference(effects):
    text = to_latex(effects, caption="Effects", label="tab:effects")
    lines = text.splitlines()
    first, last = (lines.index(f"\\{rule}") for rule in ("toprule", "bottomrule"))
    rows = [re.split(r" (?<!\\)& ", line.removesuffix(r" \\")) for line in lines[first + 1 : last]]
    heading, middle, *body = rows
    assert middle == [r"\midrule"]
    texts = rounded(effects)
    assert heading == ["probability of True", *(name.replace("%", r"\%") for name in texts)]
    assert [row[0] for row in body] == [r"a\_b", r"town[R\&D $<$x$>$]"]
    assert [row[1:3] for row in body] == texts.iloc[:, :2].to_numpy().tolist()
    assert rf"\begin{{tabular}}{{l{'r' * texts.shape[1]}}}" in lines
    assert r"\caption{Effects}" in lines
    assert r"\label{tab:effects}" in lines
    assert r"\par\footnotesize Reference of town: Ghent." in lines
    assert text.count("{") == text.count("}")
    assert "caption" not in to_latex(effects)


def test_html_has_the_cells_of_the_rounded_table(effects):
    tree = ElementTree.fromstring(to_html(effects, caption="A & B"))
    texts = rounded(effects)
    assert tree.find("caption").text == "A & B"
    heading = [cell.text for cell in tree.findall("thead/tr/th")]
    assert heading == ["probability of True", *texts.columns]
    rows = [[cell.text for cell in row] for row in tree.findall("tbody/tr")]
    assert rows == [
        [label, *cells] for label, cells in zip(texts.index, texts.to_numpy().tolist(), strict=True)
    ]
    assert tree.find("tfoot/tr/td").text == "Reference of town: Ghent."
    assert tree.find("tfoot/tr/td").attrib == {"colspan": str(1 + texts.shape[1])}


def test_classes_are_a_column_of_their_own():
    labels = np.digitize(LINE, [0, 2])
    three = BayesianLogisticRegression(random_state=0).fit(X[["a_b"]], labels)
    table = three.summary(reference=0)
    tree = ElementTree.fromstring(to_html(table))
    assert [cell.text for cell in tree.findall("thead/tr/th")][:2] == ["against 0", None]
    rows = [[cell.text for cell in row.findall("th")] for row in tree.findall("tbody/tr")]
    assert rows == [[str(label), term] for label, term in table.index]
    assert r"\begin{tabular}{llrrrr}" in to_latex(table)


def test_without_pandas_texts_are_the_same(line, monkeypatch):
    expected = to_latex(line.summary()), to_html(line.summary())
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert (to_latex(line.summary()), to_html(line.summary())) == expected
    assert repr(rounded(line.summary())).splitlines()[0].split()[:2] == ["mean", "sd"]


def test_ends_of_new_counts_are_whole_numbers():
    model = BayesianPoissonRegressor(random_state=0).fit(X[["a_b"]], np.arange(300) % 5)
    table = prediction_summary(model, X[["a_b"]][:4])
    text = rounded(table)["95 % interval of a new y"]
    ends = table[["obs_eti95_lb", "obs_eti95_ub"]].to_numpy().astype(int)
    assert text.tolist() == [f"[{low}, {high}]" for low, high in ends]
    assert "." in rounded(table)["95 % interval"].iloc[0]
