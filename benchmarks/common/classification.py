"""The sets of benchmarks/prediction/quality.py: small ones, public or made up.

Made-up sets have seeds of their own. In some the coefficients come from a normal prior, others
break it; in some the classes are separable, rare, or noise. None has more than 300 coefficients.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets as shipped

from benchmarks.common import datasets as data

Set = tuple[NDArray, NDArray]
ROWS = 3000
"""largest number of rows, learnt from and tested on"""


def _labelled(z: NDArray, rng: np.random.Generator) -> NDArray:
    """Labels of logits."""
    return (z + rng.logistic(size=len(z)) > 0).astype(int)


def some(X: NDArray, y: NDArray, n_rows: int = ROWS) -> Set:
    """Rows at random, without classes of fewer than twenty rows."""
    rows = np.random.default_rng(0).permutation(len(y))[:n_rows]
    X, y = np.asarray(X[rows], dtype=np.float64), y[rows]
    labels, counts = np.unique(y, return_counts=True)
    kept = np.isin(y, labels[counts >= 20])
    return X[kept], y[kept]


def diabetes() -> Set:
    """Whether the disease progressed more than in the median patient."""
    X, y = shipped.load_diabetes(return_X_y=True)
    return X, (y > np.median(y)).astype(int)


def wine_grades() -> Set:
    """White wines: poor, middling, good."""
    X, y = data.regression("wine")
    return some(X, np.digitize(y, [5.5, 6.5]))


def covertype() -> Set:
    """The two commonest forest covers, with forty-four indicator columns."""
    X, y = data.covertype()
    kept = y <= 2
    return some(X[kept], y[kept])


def kdd99() -> Set:
    """Attacks or not, by the numeric columns."""
    found = data.kdd99()
    return some(found.X, (found.target_names[found.y] != "normal").astype(int))


def skin() -> Set:
    """Skin or not, by three colours."""
    return some(*data.skin())


def digits_7_vs_9() -> Set:
    """MNIST's sevens and nines in 50 projections."""
    return some(*data.mnist_7_vs_9())


def moderate() -> Set:
    """Coefficients from a prior, ten rows a column."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 20))
    return X, _labelled(X @ rng.standard_normal(20) * 0.5, rng)


def few_rows() -> Set:
    """Eighty rows of five columns."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((80, 5))
    return X, _labelled(X @ rng.standard_normal(5), rng)


def separable() -> Set:
    """A plane separates the classes."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 10))
    return X, (X @ rng.standard_normal(10) > 0).astype(int)


def lognormal() -> Set:
    """Columns with long tails, and a label by their logarithms."""
    rng = np.random.default_rng(4)
    Z = rng.standard_normal((1000, 10))
    return np.exp(1.5 * Z), _labelled(Z @ rng.standard_normal(10), rng)


def heavy_tails() -> Set:
    """Columns of Student's t with two degrees of freedom."""
    rng = np.random.default_rng(5)
    X = rng.standard_t(2, (1000, 10))
    return X, _labelled(X @ rng.standard_normal(10) * 0.5, rng)


def rare_events() -> Set:
    """Two rows in a hundred."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((4000, 15))
    return X, _labelled(X @ rng.standard_normal(15) * 0.4 - 4.5, rng)


def collinear() -> Set:
    """Forty columns out of five, with little noise."""
    rng = np.random.default_rng(7)
    Z = rng.standard_normal((500, 5))
    X = Z @ rng.standard_normal((5, 40)) + 0.1 * rng.standard_normal((500, 40))
    return X, _labelled(Z @ rng.standard_normal(5), rng)


def zipf() -> Set:
    """Three categories one-hot, with frequencies by Zipf's law: sixty columns."""
    rng = np.random.default_rng(8)
    share = 1 / np.arange(1, 21)
    X = np.concatenate(
        [np.eye(20)[rng.choice(20, 2000, p=share / share.sum())] for _ in range(3)], axis=1
    )
    return X, _labelled(X @ rng.standard_normal(60), rng)


def wide() -> Set:
    """Three hundred columns, most of which matter little, and as many rows."""
    rng = np.random.default_rng(9)
    X = rng.standard_normal((600, 300))
    return X, _labelled(X @ rng.standard_normal(300) * 0.15, rng)


def sparse_truth() -> Set:
    """Five of a hundred columns matter."""
    rng = np.random.default_rng(10)
    X = rng.standard_normal((600, 100))
    return X, _labelled(X[:, :5] @ np.array([2.0, -2, 1.5, -1.5, 1]), rng)


def noise() -> Set:
    """Labels that no column knows."""
    rng = np.random.default_rng(11)
    return rng.standard_normal((500, 20)), rng.integers(2, size=500)


def clusters() -> Set:
    """Five classes of two clusters each (make_classification)."""
    return shipped.make_classification(
        1500, 20, n_informative=8, n_classes=5, flip_y=0.05, random_state=12
    )


SETS: dict[str, Callable[[], Set]] = {
    "iris": lambda: shipped.load_iris(return_X_y=True),
    "wine": lambda: shipped.load_wine(return_X_y=True),
    "breast cancer": lambda: shipped.load_breast_cancer(return_X_y=True),
    "diabetes": diabetes,
    "wine grades": wine_grades,
    "covertype": covertype,
    "KDD 99": kdd99,
    "skin": skin,
    "MNIST 7 vs 9": digits_7_vs_9,
    "moderate": moderate,
    "few rows": few_rows,
    "separable": separable,
    "lognormal": lognormal,
    "heavy tails": heavy_tails,
    "rare events": rare_events,
    "collinear": collinear,
    "Zipf": zipf,
    "sparse truth": sparse_truth,
    "noise": noise,
    "clusters": clusters,
    "wide": wide,
}
