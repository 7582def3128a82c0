"""Tables as papers print them: rounded by what is known, intervals in one cell, LaTeX and HTML."""

from __future__ import annotations

import html
import re
from typing import Any

import numpy as np

from skbayes_sg.inspection.table import table as made

_END = re.compile(r"(?P<stem>.*?)_?(?P<kind>eti|hdi)(?P<level>[\d.]+)_lb$")
_HEADERS = {"p_direction": "p(direction)", "p_rope": "p(ROPE)", "r_hat": "R-hat"}
_LATEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": r"$<$", ">": r"$>$"}
)


def rounded(table: Any):
    """A table of posterior figures as text, with as many digits as the posterior determines.

    A mean and its interval are rounded to two digits of the standard deviation, and odds and rate
    ratios likewise by the relative standard deviation. Both ends of an interval are in one cell.

    Parameters
    ----------
    table : pandas.DataFrame or Bunch
        Of `summary`, `average_effects`, `contrast`, `prediction_summary` or `totals`.

    Returns
    -------
    pandas.DataFrame
        Of text, with the index and the facts (``attrs``) of the table. Without pandas, a Bunch.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skbayes_sg import BayesianLogisticRegression
    >>> from skbayes_sg.inspection import rounded
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = BayesianLogisticRegression(random_state=0).fit(X.iloc[:, :2], y)
    >>> rounded(model.summary()).columns.tolist()
    ['mean', 'sd', '95 % interval', 'odds ratio (95 %)']
    """
    columns = {name: np.asarray(table[name]) for name in _columns(table)}
    cells: dict[str, list[str]] = {}
    low_ends = {name: match for name in columns if (match := _END.match(name))}
    for name, values in columns.items():
        if name.endswith("_ub"):
            continue
        if name not in low_ends:
            if not any(end["stem"] == name for end in low_ends.values()):
                cells[_HEADERS.get(name, name.replace("_", " "))] = _column(
                    name, values, columns.get("sd")
                )
            continue
        stem, kind, level = low_ends[name].group("stem", "kind", "level")
        low, high = values, columns[f"{name[:-2]}ub"]
        if stem not in ("", "obs"):  # of a ratio
            with np.errstate(invalid="ignore"):  # of what overflows
                spread = np.log(high / low) / 4  # relative to each of its numbers
            three = (_column("", x, spread * x) for x in (columns[stem], low, high))
            cells[f"{stem.replace('_', ' ')} ({level} %)"] = [
                f"{m} [{a}, {b}]" if m else "" for m, a, b in zip(*three, strict=True)
            ]
            continue
        if stem and not (np.append(low, high) % 1).any():  # of counts, which are whole
            low, high = low.astype(int), high.astype(int)
        pairs = zip(*(_column("", x, columns["sd"]) for x in (low, high)), strict=True)
        header = f"{level} % " + ("HDI" if kind == "hdi" else "interval")
        header += " of a new y" if stem else ""
        cells[header] = [f"[{a}, {b}]" for a, b in pairs]
    labels, names = _index(table)
    texts_of = {header: np.array(column, dtype=object) for header, column in cells.items()}
    return made(labels, names, texts_of, dict(table.attrs))


def to_latex(table: Any, *, caption: str | None = None, label: str | None = None) -> str:
    """A table of posterior figures in LaTeX, ready to print.

    Parameters
    ----------
    table : pandas.DataFrame or Bunch
        As in `rounded`.
    caption : str, optional
    label : str, optional
        For ``\\ref``.

    Returns
    -------
    str
        A ``table`` with the rules of the package booktabs. The levels that others are compared with
        are named below it.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sg import BayesianLinearRegression
    >>> from skbayes_sg.inspection import to_latex
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = BayesianLinearRegression(random_state=0).fit(X, y)
    >>> print(to_latex(model.summary(), caption="Progression of diabetes.").splitlines()[3])
    \\begin{tabular}{lrrrr}
    """
    heading, rows, notes = _parts(table)
    n_labels = len(_index(table)[1])
    lines = [
        " & ".join(cell.translate(_LATEX) for cell in row) + r" \\" for row in (heading, *rows)
    ]
    top = [r"\begin{table}", r"\centering"]
    top += [rf"\caption{{{caption}}}"] if caption else []
    top += [rf"\label{{{label}}}"] if label else []
    form = "l" * n_labels + "r" * (len(heading) - n_labels)
    top += [rf"\begin{{tabular}}{{{form}}}", r"\toprule", lines[0], r"\midrule", *lines[1:]]
    below = [rf"\par\footnotesize {' '.join(notes).translate(_LATEX)}"] if notes else []
    return "\n".join([*top, r"\bottomrule", r"\end{tabular}", *below, r"\end{table}"])


def to_html(table: Any, *, caption: str | None = None) -> str:
    """A table of posterior figures in HTML, ready to print.

    Parameters
    ----------
    table : pandas.DataFrame or Bunch
        As in `rounded`.
    caption : str, optional

    Returns
    -------
    str
        A ``table`` element without styles. The levels that others are compared with are named in
        its foot.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sg import BayesianLinearRegression
    >>> from skbayes_sg.inspection import to_html
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = BayesianLinearRegression(random_state=0).fit(X, y)
    >>> print(to_html(model.summary(), caption="Progression of diabetes.").splitlines()[1])
    <caption>Progression of diabetes.</caption>
    """
    heading, rows, notes = _parts(table)
    n_labels = len(_index(table)[1])

    def line(cells: list[str], n_heads: int) -> str:
        kinds = ["th"] * n_heads + ["td"] * (len(cells) - n_heads)
        pairs = zip(kinds, cells, strict=True)
        return "<tr>" + "".join(f"<{k}>{html.escape(c)}</{k}>" for k, c in pairs) + "</tr>"

    lines = ["<table>"] + ([f"<caption>{html.escape(caption)}</caption>"] if caption else [])
    lines += [f"<thead>{line(heading, len(heading))}</thead>", "<tbody>"]
    lines += [*(line(row, n_labels) for row in rows), "</tbody>"]
    if notes:
        foot = html.escape(" ".join(notes))
        lines.append(f'<tfoot><tr><td colspan="{len(heading)}">{foot}</td></tr></tfoot>')
    return "\n".join([*lines, "</table>"])


def _parts(table: Any) -> tuple[list[str], list[list[str]], list[str]]:
    """Heading, rows and notes, as text."""
    texts = rounded(table)
    labels, names = _index(table)
    facts, columns = table.attrs, _columns(texts)
    first = [str(facts.get("quantity", "")), *[""] * (len(names) - 1)]
    rows = []
    for k, label in enumerate(labels):
        parts = list(label) if isinstance(label, tuple) else [label]
        rows.append([*map(str, parts), *(str(np.asarray(texts[name])[k]) for name in columns)])
    prefix = "reference of "
    notes = [
        f"Reference of {name.removeprefix(prefix)}: {value}."
        for name, value in facts.items()
        if name.startswith(prefix)
    ]
    return [*first, *columns], rows, notes


def _columns(table: Any) -> list[str]:
    return [name for name in table if name not in ("index", "attrs")]


def _index(table: Any) -> tuple[list, list[str]]:
    """Labels of the rows, and names of their levels, which a table without pandas has not."""
    labels = list(table.index)
    nameless = [""] * (len(labels[0]) if isinstance(labels[0], tuple) else 1)
    return labels, list(getattr(table.index, "names", nameless))


def _column(name: str, values: Any, scale: Any) -> list[str]:
    """The values of a column as text, with two digits of what each is known to."""
    if values.dtype.kind not in "fiu":
        return [str(value) for value in values]
    if values.dtype.kind in "iu" or name.startswith("ess"):
        return ["" if np.isnan(value) else f"{value:.0f}" for value in values]
    if name.startswith("p_"):
        return ["<0.01" if v < 0.005 else ">0.99" if v > 0.995 else f"{v:.2f}" for v in values]
    if name == "r_hat" or scale is None:
        return ["" if np.isnan(v) else f"{v:.2f}" for v in values]
    if name.startswith("mcse"):
        scale = values
    return [_written(value, error) for value, error in zip(values, scale, strict=True)]


def _written(value: float, scale: float) -> str:
    if np.isnan(value):
        return ""
    if not 0 < scale < np.inf:
        return f"{value:.3g}"
    digits = 1 - int(np.floor(np.log10(scale)))
    if abs(value) >= 1e7 or (digits > 6 and abs(value) < 0.1):
        return f"{value:.2e}"
    return f"{round(value, digits) + 0.0:.{max(digits, 0)}f}"  # + 0.0 takes the sign of zero
