"""Files of fitted models that released versions wrote: they predict as then, or name the version.

`python tests/promises/test_versions.py` writes those of this version, once for each release. A
change of fitted attributes raises `FORMAT` of estimators/persistence.py; files of a version that is
not released are then written anew.
"""

import json
import pickle
import re
import sys
import warnings
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import InconsistentVersionWarning

from skbayes_sg import (
    BayesianLinearRegressionSGFS,
    BayesianLogisticRegressionSGFS,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianOrdinalClassifier,
    BayesianPoissonRegressor,
    BayesianRobustRegressor,
    DRBMClassifier,
)
from skbayes_sg.estimators.persistence import FORMAT
from skbayes_sg.version import __version__

sys.path.insert(0, str(Path(__file__).parents[1]))

from conftest import leaves

SHORT = {"n_chains": 3, "n_draws": 8, "burn_in": 8, "thin": 2, "random_state": 0}
MODELS = {
    "logistic": BayesianLogisticRegressionSGFS(**SHORT),
    "linear": BayesianLinearRegressionSGFS(**SHORT),
    "counts": BayesianPoissonRegressor(**SHORT),
    "ordered": BayesianOrdinalClassifier(**SHORT),
    "robust": BayesianRobustRegressor(**SHORT),
    "network": BayesianMLPClassifier((2,), **SHORT),
    "network of numbers": BayesianMLPRegressor((2,), **SHORT),
    "machine": DRBMClassifier(2, **SHORT),
}
X = np.sin(np.arange(180.0) ** 2).reshape(60, 3)
NUMBERS = X[:, 0] + np.cos(np.arange(60.0) ** 3)
FOLDER = Path(__file__).parent / "versions"
RECORDS = {path.parent.name: json.loads(path.read_text()) for path in FOLDER.glob("*/record.json")}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
FILES = [
    pytest.param(version, name, kind, id=f"{version}-{name}-{kind}")
    for version in RECORDS
    for name in RECORDS[version]["predictions"]
    for kind in ("pickle", "skops")
]


def y_of(model):
    if isinstance(model, BayesianOrdinalClassifier):
        return np.digitize(NUMBERS, [-0.5, 0.5])
    if isinstance(model, BayesianPoissonRegressor):
        return np.floor(np.exp(NUMBERS))
    return np.where(NUMBERS > 0, "yes", "no") if is_classifier(model) else NUMBERS


@cache
def fitted(name):
    return clone(MODELS[name]).fit(X, y_of(MODELS[name]))


def predicted(model):
    return model.predict_proba(X)[:9, 1] if is_classifier(model) else model.predict(X)[:9]


def loaded(version, name, kind):
    path = FOLDER / version / f"{name}.{kind}"
    if kind == "pickle":
        return pickle.loads(path.read_bytes())
    io = pytest.importorskip("skops.io")
    types = io.get_untrusted_types(file=path)
    assert all(one.startswith("skbayes_sg.") for one in types)
    return io.load(path, trusted=types)


def attributes(model):
    """The names of all that a model holds, at any depth."""
    return {re.sub(r"\[\d+\]", "[]", path) for path in leaves(model)}


@pytest.mark.parametrize(("version", "name", "kind"), FILES)
def test_a_file_predicts_as_when_it_was_written_or_names_its_version(version, name, kind):
    record = RECORDS[version]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", InconsistentVersionWarning)  # scikit-learn's own
        model = loaded(version, name, kind)
    if record["format"] != FORMAT:
        assert f"was written by skbayes_sg {version} in format" in str(caught[0].message)
        return
    assert not caught
    one = fitted(name) if kind == "pickle" else fitted(name).compact()
    changed = attributes(model) ^ attributes(one)
    assert not changed, f"raise FORMAT of estimators/persistence.py, see {__file__}"
    precision = 1e-9 if kind == "pickle" else 1e-4  # draws of a compact model are single
    np.testing.assert_allclose(predicted(model), record["predictions"][name], rtol=precision)
    assert repr(model) == repr(clone(model)) == repr(MODELS[name])
    again = model.set_params(warm_start=True).fit(X, y_of(model))
    assert again.draws_.shape == one.draws_.shape


def test_this_version_has_files():
    """They are small, for they stay."""
    assert RECORDS[__version__]["format"] == FORMAT
    assert all(path.stat().st_size < 20_000 for path in FOLDER.rglob("*") if path.is_file())


def write():
    """The files of this version."""
    from skops import io

    folder, predictions = FOLDER / __version__, {}
    folder.mkdir(parents=True, exist_ok=True)
    for name in MODELS:
        model = fitted(name)
        predictions[name] = predicted(model).tolist()
        (folder / f"{name}.pickle").write_bytes(pickle.dumps(model, protocol=4))
        small = {"compression": zipfile.ZIP_DEFLATED, "compresslevel": 9}
        io.dump(model.compact(), folder / f"{name}.skops", **small)
    record = {"format": FORMAT, "predictions": predictions}
    (folder / "record.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    write()
