"""Read a posterior: which measurements speak for a benign tumour, and did the chains agree?

Draws odds ratios with intervals, and traces and ranks of the parameters that agree least. Prints
the features whose 95 % interval leaves out 1.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sg import BayesianLogisticRegressionSGFS, CoefficientsDisplay, TraceDisplay

COEFFICIENTS = Path(__file__).with_name("coefficients.png")
TRACES = Path(__file__).with_name("traces.png")


def main():
    """Fit, draw both pictures, print the clear effects."""
    data = load_breast_cancer(as_frame=True)
    model = BayesianLogisticRegressionSGFS(random_state=0)
    pipeline = make_pipeline(StandardScaler(), model).fit(data.data, data.target)
    effects = CoefficientsDisplay.from_estimator(pipeline, odds_ratio=True)
    effects.ax_.set_title(f"{data.target_names[1]} tumours: odds ratio per standard deviation")
    effects.figure_.savefig(COEFFICIENTS, dpi=110)
    traces = TraceDisplay.from_estimator(pipeline, n_worst=3)
    traces.figure_.savefig(TRACES, dpi=110)

    below, above = effects.outer[0, :, 1] < 0, effects.outer[0, :, 0] > 0
    for side, clear in (("below", below), ("above", above)):
        names = [name for name, out in zip(effects.feature_names, clear, strict=True) if out]
        print(f"odds ratio {side} 1: {', '.join(names) or 'none'}")
    print(f"largest R-hat: {traces.r_hat.max():.3f} ({traces.names[0]})")
    print(f"pictures: {COEFFICIENTS}, {TRACES}")
    print(
        "\nWhat you saw: columns that measure nearly the same share one effect, so that the"
        "\nintervals of most of them hold 1, although the model predicts well. A point estimate"
        "\ngives each a number and does not say so."
    )


if __name__ == "__main__":
    main()
