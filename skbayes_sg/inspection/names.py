"""Names of the coefficients of a fitted estimator, for rows of tables and labels of pictures."""

from __future__ import annotations

from sklearn.utils.validation import check_is_fitted


def feature_names(estimator) -> list[str]:
    """Column names of X; x0, x1, ... where X had none.

    Parameters
    ----------
    estimator : fitted estimator

    Returns
    -------
    list of str
        In the order of the columns of X.
    """
    check_is_fitted(estimator)
    named = getattr(estimator, "feature_names_in_", None)
    if named is None:
        return [f"x{column}" for column in range(estimator.n_features_in_)]
    return [str(name) for name in named]


def logit_names(estimator) -> list[str]:
    """Class of each row of `coef_`; none where there is one row.

    Two classes have one logit, that of ``classes_[1]`` against ``classes_[0]``, and classes in an
    order have one, that of higher classes against lower ones.
    """
    check_is_fitted(estimator)
    one = estimator.model_.shapes.get("coef", (0,))[0] == 1
    return [] if one else [str(label) for label in getattr(estimator, "classes_", ())]


def coefficient_names(estimator) -> list[str]:
    """Label of each coefficient: the feature, with the class behind it if there are more than two.

    Parameters
    ----------
    estimator : fitted estimator with `coef_`

    Returns
    -------
    list of str
        In the order of ``numpy.ravel(estimator.coef_)``, without intercepts.

    Raises
    ------
    ValueError
        If the estimator has no coefficients.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skbayes_sg import BayesianLogisticRegressionSGFS
    >>> from skbayes_sg.inspection.names import coefficient_names
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = BayesianLogisticRegressionSGFS(random_state=0).fit(X, y)
    >>> coefficient_names(model)[3:5]
    ['petal width (cm)[0]', 'sepal length (cm)[1]']
    """
    features = feature_names(estimator)
    if not hasattr(estimator, "coef_"):
        raise ValueError(f"{type(estimator).__name__} has no coefficients that could be named")
    logits = logit_names(estimator)
    if not logits:
        return features
    return [f"{feature}[{label}]" for label in logits for feature in features]
