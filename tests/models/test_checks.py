"""The checker of families finds what is wrong with one, and the family of the page is right."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from scipy.stats import poisson

from skbayes_sg.inspection import average_effects, totals
from skbayes_sg.models import (
    BetaBinomial,
    Binomial,
    Gamma,
    Linear,
    NegativeBinomial,
    Poisson,
    Student,
    check_family,
)

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
RIGHT = [Poisson, NegativeBinomial, Gamma, Student, Binomial, BetaBinomial]


@pytest.fixture(scope="module")
def page():
    """Names of the program that declares the family of the page and its estimator."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    imports = "import numpy as np\nfrom scipy.special import gammaln\n"
    (block,) = (each for each in blocks if "class ZeroInflatedPoisson(" in each)
    names = {}
    exec(compile(imports + block, "extending.md", "exec"), names)
    return names


@pytest.mark.parametrize("family", RIGHT)
def test_families_of_the_package_are_right(family):
    check_family(family)


def test_a_family_is_checked_where_it_is_asked_for():
    """Rare successes of many trials, whose rows are asked for as an instance."""
    outputs = np.empty((2, 3, 4))
    outputs[:, 0] = [-7.0, -5.0, 0.0, 6.0]
    outputs[:, 1] = [[-6.0], [-2.0]]
    outputs[:, 2] = [4000, 300, 500, 90]
    check_family(BetaBinomial(3, fit_intercept=False), outputs)
    check_family(Binomial, outputs[:, ::2])


def test_the_family_of_the_page_is_right(page):
    check_family(page["ZeroInflatedPoisson"])


def of(base, method, change):
    """A family whose method returns something else."""

    def wrong(self, *given):
        return change(getattr(base, method)(self, *given), *given)

    return type("Mistaken", (base,), {method: wrong})


def turned(found, *_):
    found[:, 1] *= -1
    return found


FAULTS = {
    "a sign": (of(NegativeBinomial, "residual", turned), r"residual\[:, 1\] is -1 times the der"),
    "a factor of a curvature": (
        of(Student, "observed_at", lambda found, *_: 2 * found),
        r"observed_at\[:, 0, 0\] is 2 times minus the derivative of residual\[:, 0\]",
    ),
    "a weight": (
        of(Gamma, "residual", lambda found, o, y: found * np.exp(o[:, 1:])),
        r"residual\[:, 0\] is not the derivative of value",
    ),
    "trials": (
        of(Binomial, "residual", lambda found, o, y: found / o[:, 1:]),
        r"residual\[:, 0\] is not the derivative of value",
    ),
    "a mixed derivative": (
        of(Gamma, "observed_at", lambda found, *_: found * np.eye(2)[:, :, None]),
        r"observed_at\[:, 1, 0\] is 0 times minus the derivative",
    ),
    "a variance in cumulants": (
        of(NegativeBinomial, "cumulants", lambda found, *_: found * [[[1]], [[2]], [[1]], [[1]]]),
        r"cumulants\[1\] is 2 times variance",
    ),
    "a third cumulant": (
        of(Gamma, "cumulants", lambda found, *_: found * [[[1]], [[1]], [[2]], [[1]]]),
        r"cumulants\[2\] is not that of draws",
    ),
    "a fourth cumulant": (
        of(Poisson, "cumulants", lambda found, *_: found * [[[1]], [[1]], [[1]], [[9]]]),
        r"cumulants\[3\] is not that of draws",
    ),
    "information": (
        of(Student, "expected", lambda found, *_: 2 * found),
        r"expected\[:, 2, 2\] is not the mean of observed_at over draws",
    ),
    "information that is not definite": (
        of(NegativeBinomial, "expected", lambda found, *_: -found),
        "expected is not positive semi-definite",
    ),
    "information of a canonical link": (
        type(
            "Mistaken",
            (Poisson,),
            {
                "expected": lambda self, o: 0.8 * Poisson.expected(self, o),
                "observed_at": lambda self, o, y: Poisson.expected(self, o),
            },
        ),
        "expected is 0.8 times observed_at, which it is where canonical = True",
    ),
    "a constant": (
        of(Poisson, "value", lambda found, *_: found + 0.1),
        r"exp\(value\) is 1.11 times the jump or slope of distribution",
    ),
    "a term of a parameter": (
        type(
            "Mistaken",
            (Gamma,),
            {
                "value": lambda self, o, y: Gamma.value(self, o, y) + o[:, 1],
                "residual": lambda self, o, y: (
                    np.array([[0.0], [1.0]]) + Gamma.residual(self, o, y)
                ),
            },
        ),
        r"the mean of residual\[:, 1\] over draws is not zero",
    ),
    "a mean": (of(Student, "mean", lambda found, *_: found + 0.2), "mean is not that of draws"),
    "a variance": (
        of(NegativeBinomial, "variance", lambda found, o: np.exp(o[:, 0])),
        "variance is not that of draws",
    ),
    "draws": (
        of(Student, "draw", lambda found, o, rng: o[:, 0] + 2 * (found - o[:, 0])),
        "variance is not that of draws",
    ),
    "a distribution function": (
        of(Poisson, "distribution", lambda found, y, o: poisson.cdf(y - 1, np.exp(o[:, 0]))),
        "distribution is not the share of draws below",
    ),
    "its complement": (
        of(Gamma, "distribution", lambda found, *_: 1 - found),
        "distribution is not between 0 and 1, or decreases",
    ),
    "counts": (type("Mistaken", (Poisson,), {"counts": False}), "counts has to be True"),
    "no counts": (type("Mistaken", (Gamma,), {"counts": True}), "drawn that are not whole"),
    "canonical": (
        type("Mistaken", (Gamma,), {"canonical": True}),
        "observed_at depends on y, so that canonical has to be False",
    ),
    "no axis of outputs": (
        of(Poisson, "residual", lambda found, *_: found[:, 0]),
        r"residual has the shape \(4, 7\), and should have \(chains, outputs, rows\) = \(4, 1, 7\)",
    ),
    "axes that changed places": (
        of(Gamma, "observed_at", lambda found, *_: found.swapaxes(0, 3)),
        r"observed_at has the shape \(7, 2, 2, 4\), .*= \(4, 2, 2, 7\)",
    ),
    "an error": (
        of(Poisson, "expected", lambda found, *_: found[:, 3]),
        "expected raises IndexError",
    ),
    "infinity": (
        of(Poisson, "value", lambda found, *_: np.log(0 * found)),
        "value has numbers that are not finite",
    ),
    "a link": (
        of(Poisson, "mean", lambda found, o: found**2),
        r"mean of eta \+ log 2 is 2 times 2 mean of eta",
    ),
    "an expansion": (
        of(Poisson, "remainder", lambda found, *_: -found),
        "remainder is -1 times the change of residual",
    ),
    "a value beyond": (
        of(Binomial, "bregman_remainder", lambda found, *_: (0.5 * found[0], found[1])),
        r"bregman_remainder\[0\] is 0.5 times",
    ),
    "terms of rows": (
        of(Poisson, "row_terms", lambda found, *_: (found[0], 2 * found[1])),
        r"row_terms\[1\] is 2 times expected",
    ),
    "a prior": (type("Mistaken", (Gamma,), {"own_sd": ()}), r"own_sd has 0 number\(s\)"),
}


@pytest.mark.parametrize(("family", "words"), FAULTS.values(), ids=FAULTS)
def test_what_is_wrong_is_named(family, words):
    with pytest.raises(AssertionError, match=words) as error:
        check_family(family)
    assert str(error.value).startswith("Mistaken is wrong in what follows.")


def test_targets_that_are_drawn_and_refused_are_named():
    class Positive(Poisson):
        @classmethod
        def require_targets(cls, y):
            if not (y > 0).all():
                raise ValueError("y holds zeros")

    with pytest.raises(AssertionError, match="refuses numbers that were drawn: y holds zeros"):
        check_family(Positive)


def test_outputs_that_are_written_into_are_named():
    class Careless(Poisson):
        def mean(self, outputs):
            return np.exp(outputs, out=outputs)[:, 0]

    with pytest.raises(AssertionError, match="mean writes into its argument outputs"):
        check_family(Careless)


def test_a_model_that_is_no_family_is_refused():
    with pytest.raises(TypeError, match=r"^Linear must derive from Family and Response"):
        check_family(Linear)


# -- the family of the page, fitted -------------------------------------------------------------


@pytest.fixture(scope="module")
def visits():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((1500, 2))
    mu = np.exp(0.7 + X @ [0.4, -0.3])
    return X, np.where(rng.random(1500) < 0.35, 0, rng.poisson(mu))


@pytest.fixture(scope="module")
def fitted(page, visits):
    return page["ZeroInflatedPoissonRegressor"](prior_precision=1e-4, random_state=0).fit(*visits)


def test_the_posterior_is_near_that_of_maximum_likelihood(fitted, visits):
    X, y = visits
    inputs = np.column_stack([X, np.ones(len(X))])

    def loss(theta):
        of_counts = log_expit(-theta[3]) + poisson.logpmf(y, np.exp(inputs @ theta[:3]))
        either = np.logaddexp(log_expit(theta[3]), of_counts)
        return -np.where(y == 0, either, of_counts).sum()

    start = [0.0, 0.0, np.log(y.mean()), -1.0]
    found = minimize(loss, start, method="BFGS", options={"gtol": 1e-3})
    step = 1e-3 * np.eye(4)
    hessian = [
        [
            (loss(found.x + a + b) - loss(found.x + a - b) - loss(found.x - a + b))
            + loss(found.x - a - b)
            for b in step
        ]
        for a in step
    ]
    sd = np.sqrt(np.diag(np.linalg.inv(np.array(hessian) / 4e-6)))
    draws = fitted.draws_.reshape(-1, 4)
    error = sd / np.sqrt(fitted.diagnostics_["ess_min"])
    assert (np.abs(draws.mean(axis=0) - found.x) < 5 * error + 0.1 * sd).all()  # a skewed posterior
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.1)
    assert fitted.zero_share_ == pytest.approx(expit(found.x[3]), abs=0.01)


def test_its_predictions_are_those_of_its_draws(fitted, visits):
    X = visits[0][:4]
    each = fitted.predict_draws(np.repeat(X, 50, axis=0)).reshape(-1, 4, 50)
    each = each.transpose(0, 2, 1).reshape(-1, 4)
    levels = [0.3, 0.5, 0.9]
    for level, quantile in zip(levels, fitted.predict_quantiles(X, levels).T, strict=True):
        assert ((each <= quantile).mean(axis=0) > level - 0.01).all()
        assert ((each <= quantile - 1).mean(axis=0) < level + 0.01).all()
    np.testing.assert_allclose(fitted.predict(X), each.mean(axis=0), rtol=0.03)
    np.testing.assert_allclose(fitted.predict(X, True)[1], each.std(axis=0), rtol=0.05)


def test_its_effects_are_those_of_the_mean_with_the_zeros(fitted, visits):
    X = visits[0]
    effects = average_effects(fitted, X, n_draws=None)["mean"]
    coef, share = fitted.coef_samples_.reshape(-1, 2), fitted.zero_share_samples_.ravel()
    mean = np.exp(X @ coef.T + fitted.intercept_samples_.ravel()) * (1 - share)
    np.testing.assert_allclose(effects, (mean.mean(axis=0)[:, None] * coef).mean(axis=0), rtol=1e-3)
    total = totals(fitted, X)["mean"].iloc[0]
    assert total == pytest.approx(mean.sum(axis=0).mean(), rel=0.01)


def test_its_stream_is_its_fit(page, fitted, visits):
    stream = page["ZeroInflatedPoissonRegressor"](prior_precision=1e-4, random_state=0)
    for rows in np.array_split(np.arange(1500), 3):
        stream.partial_fit(*(each[rows] for each in visits))
    np.testing.assert_allclose(stream.coef_, fitted.coef_, atol=0.15 * fitted.coef_std_.min())
    np.testing.assert_allclose(stream.coef_std_, fitted.coef_std_, rtol=0.1)
