"""The examples run, and the README's own example prints what the README shows."""

import re
import runpy
import warnings
from pathlib import Path

import pytest

from skbayes_sg import BayesianLinearRegressionSGFS, BayesianLogisticRegressionSGFS

ROOT = Path(__file__).parents[1]


EXAMPLES = pytest.mark.parametrize(
    "path", sorted((ROOT / "examples").glob("plot_*.py")), ids=lambda p: p.stem
)


def run(path, monkeypatch, capsys):
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *args, **kwargs: None)
    runpy.run_path(str(path), run_name="__main__")
    assert "What you saw" in capsys.readouterr().out


@EXAMPLES
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_examples_run_with_a_few_draws(path, monkeypatch, capsys):
    def short(fit):
        return lambda model, *data, **more: fit(
            model.set_params(n_draws=10, burn_in=20), *data, **more
        )

    for estimator in (BayesianLinearRegressionSGFS, BayesianLogisticRegressionSGFS):
        monkeypatch.setattr(estimator, "fit", short(estimator.fit))
    run(path, monkeypatch, capsys)


@EXAMPLES
@pytest.mark.slow
def test_examples_run(path, monkeypatch, capsys):
    run(path, monkeypatch, capsys)


def test_the_readme_example_prints_what_it_shows(capsys):
    text = (ROOT / "README.md").read_text()
    code, shown = re.search(r"```python\n(.*?)```\s*```text\n(.*?)```", text, re.DOTALL).groups()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.split() == shown.split()
