"""Where a classifier does not know: iris flowers by petal size, in a regression and a network.

Draws the total, epistemic and aleatoric uncertainty over both petal measurements, far beyond the
data too. Prints the epistemic uncertainty in the data and at a corner of the picture.
"""

import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLogisticRegressionSGFS, BayesianMLPClassifier, UncertaintyDisplay

PICTURE = Path(__file__).with_name("uncertainty.png")


def main():
    """Fit both, draw, print."""
    data = load_iris(as_frame=True)
    X, y = data.data.iloc[:, 2:], data.target_names[data.target]
    models = [
        BayesianLogisticRegressionSGFS(n_predict_draws=500, random_state=0),
        BayesianMLPClassifier((6,), n_chains=6, n_draws=20, random_state=0),
    ]
    figure, rows = plt.subplots(
        2, 3, figsize=(11, 6.5), layout="constrained", sharex=True, sharey=True
    )
    for axes, model in zip(rows, models, strict=True):
        pipeline = make_pipeline(StandardScaler(), model)
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            pipeline.fit(X, y)  # few draws of a network with many modes
        display = UncertaintyDisplay.from_estimator(pipeline, X, y=y, margin=1.0, ax=axes)
        axes[0].set_ylabel(f"{type(model).__name__}\n{axes[0].get_ylabel()}")
        inside = model.predict_uncertainty(pipeline[:-1].transform(X)).epistemic
        corner = display.values["epistemic"][-1, 0]
        print(
            f"{type(model).__name__:32}epistemic uncertainty (nats): "
            f"{np.median(inside):.3f} at the median flower, {corner:.3f} at short wide petals"
        )
    figure.savefig(PICTURE, dpi=110)
    print(f"picture: {PICTURE}")
    print(
        "\nWhat you saw: aleatoric uncertainty lies where two species overlap, and more flowers"
        "\nwould not remove it. Epistemic uncertainty grows away from the flowers, where the"
        "\nborders of the classes are anyone's guess."
    )


if __name__ == "__main__":
    main()
