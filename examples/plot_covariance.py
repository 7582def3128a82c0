"""Theory of a sampler beside its draws: constant SGD with one step size for all directions.

Its stationary covariance is not the posterior's, but it is known from theory. Draws the predicted
and drawn covariance of its chains, and those of the default sampler, on diabetes data.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

from skbayes_sg import BayesianLinearRegressionSGFS, CovarianceDisplay
from skbayes_sg.samplers import ConstantSGD

PICTURE = Path(__file__).with_name("covariance.png")


def main():
    """Fit both samplers, draw, print the covariance of two coefficients."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X = X[["bmi", "bp", "s3", "s5", "s6"]]
    X = X.assign(**dict(zip(X, scale(X).T, strict=True)))
    figure, rows = plt.subplots(2, 2, figsize=(9, 8.5), layout="constrained")
    samplers = {"default": None, "constant SGD": ConstantSGD("scalar", batch_size=40)}
    print(f"{'covariance of s3 and s5':28}{'predicted':>10}{'drawn':>8}")
    for axes, (name, sampler) in zip(rows, samplers.items(), strict=True):
        model = BayesianLinearRegressionSGFS(
            sampler, prior_precision=1e-3, noise_variance=3000.0, random_state=0
        ).fit(X, y)
        display = CovarianceDisplay.from_estimator(model, X, y, parameters=["s3", "s5"], ax=axes)
        axes[0].set_title(f"{name}: {axes[0].get_title()}", fontsize="medium")
        i, j = display.pair
        print(f"{name:28}{display.predicted[i, j]:10.2f}{display.drawn[i, j]:8.2f}")
    figure.savefig(PICTURE, dpi=110)
    print(f"picture: {PICTURE}")
    print(
        "\nWhat you saw: the draws of each sampler have the covariance that theory predicts for it."
        "\nThe default's is that of the posterior. That of constant SGD is smaller and rounder: its"
        "\nbias is known, and so it can be reported."
    )


if __name__ == "__main__":
    main()
