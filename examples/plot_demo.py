"""What a posterior is worth: inputs unlike any seen, intervals, and knowing when to abstain.

Two point estimates stand beside it, LogisticRegression and LogisticRegressionCV. Prints tables,
one of what a posterior does not improve, and draws three panels.
"""

import time
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot as plt
from skbayes_sg import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
)
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    RidgeCV,
)
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

PICTURE = Path(__file__).with_name("what_a_posterior_is_worth.png")
POINT, VALIDATED, POSTERIOR = (
    "LogisticRegression",
    "LogisticRegressionCV",
    "posterior",
)
STYLE = {
    POINT: {"color": "#D55E00", "linestyle": "--"},
    VALIDATED: {"color": "0.45", "linestyle": ":"},
    POSTERIOR: {"color": "#0072B2", "linestyle": "-"},
}


def models():
    """By name, unfitted."""
    return {
        POINT: LogisticRegression(max_iter=5000),
        VALIDATED: LogisticRegressionCV(
            Cs=10,
            l1_ratios=(0,),
            scoring="neg_log_loss",
            cv=5,
            max_iter=5000,
            use_legacy_attributes=False,
        ),
        POSTERIOR: BayesianLogisticRegression(random_state=0),
    }


def probabilities(X_train, y_train, *others):
    """Seconds of the fit and class probabilities of each model."""
    scaler = StandardScaler().fit(X_train)
    found = {}
    for name, model in models().items():
        begin = time.perf_counter()
        model.fit(scaler.transform(X_train), y_train)
        seconds = time.perf_counter() - begin
        found[name] = (
            seconds,
            *(model.predict_proba(scaler.transform(X)) for X in others),
        )
    return found


def unseen_digits():
    """Learn threes and eights from 100 rows; then come more of them, and all the other digits."""
    X, y = load_digits(return_X_y=True)
    known = np.isin(y, (3, 8))
    X_train, X_test, y_train, y_test = train_test_split(
        X[known], y[known], train_size=100, stratify=y[known], random_state=0
    )
    print(
        "\nDigits: 100 threes and eights to learn from. Others come that are neither."
    )
    print(
        f"{'':22}above 95 % sure  above 99 %   told apart from    accuracy    log loss  seconds"
    )
    print(
        f"{'':22}of a new digit   sure of it   known ones (AUC)   on known    on known"
    )
    found = {}
    for name, (seconds, p, q) in probabilities(
        X_train, y_train, X_test, X[~known]
    ).items():
        sure, doubt = q.max(axis=1), 1 - np.concatenate([p, q]).max(axis=1)
        wrong = np.concatenate(
            [np.array([3, 8])[p.argmax(axis=1)] != y_test, np.ones(len(q))]
        )
        auc = roc_auc_score(np.repeat([0, 1], [len(p), len(q)]), doubt)
        accuracy, loss = 1 - wrong[: len(p)].mean(), log_loss(y_test, p)
        print(
            f"{name:22}{np.mean(sure > 0.95):9.0%}{np.mean(sure > 0.99):16.0%}{auc:17.2f}"
            f"{accuracy:16.3f}{loss:12.3f}{seconds:10.2f}"
        )
        found[name] = sure, doubt, wrong
    return found


def intervals():
    """Coverage of 90 % intervals on diabetes, from few rows to more, over ten splits."""
    X, y = load_diabetes(return_X_y=True)
    sizes, coverage = (15, 25, 50, 100, 200), {"ridge": [], POSTERIOR: []}
    for size in sizes:
        inside = np.array([covered(X, y, size, seed) for seed in range(10)])
        for name, share in zip(coverage, inside.T, strict=True):
            coverage[name].append(share)
    print(
        "\nDiabetes: share of new patients within their 90 % interval, by rows to learn from"
    )
    print(f"{'':22}" + "".join(f"{size:8}" for size in sizes))
    for name, shares in coverage.items():
        print(
            f"{name:22}"
            + "".join(f"{np.mean(share):8.1%}" for share in shares)
        )
    return sizes, coverage


def covered(X, y, size, seed):
    """Of one split: share within RidgeCV's interval by its residuals, and the posterior's."""
    split = train_test_split(X, y, train_size=size, random_state=seed)
    scaler = StandardScaler().fit(split[0])
    X_train, X_test, y_train, y_test = (
        *map(scaler.transform, split[:2]),
        *split[2:],
    )
    ridge = RidgeCV(np.logspace(-3, 3, 13)).fit(X_train, y_train)
    half = 1.645 * np.sqrt(np.mean((y_train - ridge.predict(X_train)) ** 2))
    ends = (
        BayesianLinearRegression(random_state=0)
        .fit(X_train, y_train)
        .predict_interval(X_test, level=0.9)
    )
    return (
        np.mean(np.abs(y_test - ridge.predict(X_test)) < half),
        np.mean((ends[:, 0] < y_test) & (y_test < ends[:, 1])),
    )


def no_gain():
    """Breast cancer: many rows like those to come."""
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, stratify=y, random_state=0
    )
    print(
        "\nBreast cancer, where it gains nothing: 426 rows, and test rows like them"
    )
    print(f"{'':22}accuracy  log loss  seconds")
    for name, (seconds, p) in probabilities(X_train, y_train, X_test).items():
        accuracy = accuracy_score(y_test, p.argmax(axis=1))
        print(
            f"{name:22}{accuracy:8.3f}{log_loss(y_test, p):10.3f}{seconds:9.2f}"
        )


def draw(digits, sizes, coverage):
    """Three panels."""
    fig, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
    grid = np.linspace(0.5, 1, 200)
    for name, (sure, doubt, wrong) in digits.items():
        share = [(sure > level).mean() for level in grid]
        axes[0].plot(grid, share, label=name, linewidth=2, **STYLE[name])
        kept = np.argsort(doubt, kind="stable")
        errors = np.cumsum(wrong[kept]) / np.arange(1, len(kept) + 1)
        answered = np.arange(1, len(kept) + 1) / len(kept)
        axes[2].plot(
            answered[20:], errors[20:], label=name, linewidth=2, **STYLE[name]
        )
    axes[0].set(
        title="Digits never seen: how sure is the model?",
        xlabel="probability of the predicted class, at least",
        ylabel="share of the unseen digits",
        xlim=(0.5, 1),
        ylim=(0, 1.02),
    )
    axes[0].legend(frameon=False, loc="lower left")
    style = {"ridge": STYLE[POINT], POSTERIOR: STYLE[POSTERIOR]}
    label = {"ridge": "RidgeCV ± 1.645 residual sd", POSTERIOR: POSTERIOR}
    for name, shares in coverage.items():
        mean = np.mean(shares, axis=1)
        error = np.std(shares, axis=1, ddof=1) / np.sqrt(np.shape(shares)[1])
        axes[1].errorbar(
            sizes,
            mean,
            error,
            label=label[name],
            marker="o",
            capsize=3,
            linewidth=2,
            **style[name],
        )
    axes[1].axhline(0.9, color="0.7", linewidth=1, zorder=0)
    axes[1].set(
        title="90 % intervals: how many hold the truth?",
        xlabel="rows to learn from",
        ylabel="share of new patients within",
        xscale="log",
        xticks=sizes,
        ylim=(None, 1.0),
    )
    axes[1].set_xticklabels(sizes)
    axes[1].minorticks_off()
    axes[1].legend(frameon=False, loc="lower right")
    axes[2].set(
        title="Answering the surest first: how many errors?",
        xlabel="share of all digits answered",
        ylabel="share of the answers that are wrong",
        xlim=(0, 1),
        ylim=(0, 1),
    )
    axes[2].legend(frameon=False, loc="lower right")
    fig.savefig(PICTURE, dpi=110)


def main():
    """Where it is worth something, where it is not, and the picture."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 15 rows are few for any model
        digits = unseen_digits()
        sizes, coverage = intervals()
        no_gain()
    draw(digits, sizes, coverage)
    print(f"\nthe picture: {PICTURE}")
    print(
        "\nWhat you saw: a point estimate is as sure of digits that it has never seen as of those"
        "\nit knows, and its intervals are too narrow where rows are few. The posterior knows both,"
        "\nand abstains where it should. On rows like those it has learnt from it is no more"
        "\naccurate; its log loss can be larger, since it hedges, and its fit takes longer."
    )


if __name__ == "__main__":
    main()
