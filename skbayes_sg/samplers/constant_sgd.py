"""Stochastic gradient descent as a sampler (Mandt, Hoffman & Blei 2017)."""

from __future__ import annotations

from skbayes_sg.linalg import Operator
from skbayes_sg.samplers.constant_step import ConstantStep
from skbayes_sg.samplers.target import Target
from skbayes_sg.validation import require_choice


class ConstantSGD(ConstantStep):
    """Constant-step SGD, stationary at the posterior's Gaussian approximation, or near it.

    SGD with a step that never shrinks moves about the mode for ever. The step is chosen so that
    this motion is as wide as the posterior. Noise is injected only where the gradient has less than
    the curvature: in directions that only the prior knows, and in all for large minibatches.

    ``theta += step_size H (gradient + eta)``,  ``eta ~ N(0, W)``

    With P = Lam + M, the sum of measured curvature and gradient noise (M + W in place of M for
    "full", "kron" and "diag"):

    ===========  ==================  =============================  ==========================
    structure    H                   step_size="auto"               Mandt et al.
    ===========  ==================  =============================  ==========================
    "full"       P^-1                2: exact, for any Lam and M    Theorem 2
    "kron"       1 / P_kk, rotated   2
    "diag"       1 / P_kk            2                              Corollary 1
    "scalar"     1                   2 D / Tr P                     Theorem 1
    "sqrt"       M_kk^-1/2           2 D / sum_k P_kk M_kk^-1/2     Appendix E
    ===========  ==================  =============================  ==========================

    Parameters
    ----------
    structure : {"full", "kron", "diag", "scalar", "sqrt"}, default="full"
        Preconditioner. "kron": the diagonal in the eigenvectors of the Kronecker factors of each
        layer's Fisher. All but "full" give wrong variances along correlated directions;
        `predicted_covariance` of the estimators computes them.
    correction : {"discrete", "ou"}, default="discrete"
        "ou": P = M, the paper's formulas, which hold in continuous time; nothing is injected. Where
        the model is right, the variances are too large by about 1 + n/N, and the chain may be
        unstable.
    step_size : float or "auto", default="auto"
        Multiplies H gradient.
    batch_size : int or "auto", default="auto"
        Rows per minibatch, n. "auto": a twentieth of the rows, at least 2 and at most 500.
    replace : bool, default=False
        Draw the rows of a minibatch with replacement.
    covariance : {"minibatch", "single_row"}, default="minibatch"
        Estimator of the gradient noise: all rows of the minibatch, or one of them, at random (Mandt
        et al. Eq. 25, bias removed), which needs n times as many steps. Minibatches of one row
        measure it over steps (math/gradient_noise.md#minibatches-of-one-row).

    Notes
    -----
    Source: Mandt et al. 2017, section 3.1 and Appendix E, with errata math/errata.md#e2 and
    math/errata.md#e12; math/constant_sgd.md#constant-sgd. Without W the chain would change sign at
    every step where the gradient has no noise (F = -1). "scalar" and "sqrt", as printed, inject
    nothing, and the fit warns with the number of directions without noise.

    Examples
    --------
    >>> from skbayes_sg.samplers import ConstantSGD
    >>> ConstantSGD(structure="scalar", correction="ou")
    ConstantSGD(correction='ou', structure='scalar')
    """

    structures = ("full", "kron", "diag", "scalar", "sqrt")

    def __init__(
        self,
        structure: str = "full",
        correction: str = "discrete",
        step_size: float | str = "auto",
        batch_size: int | str = "auto",
        replace: bool = False,
        covariance: str = "minibatch",
    ) -> None:
        self._keep_parameters(locals())

    def validate(self, target: Target) -> None:
        super().validate(target)
        require_choice("correction", self.correction, ("discrete", "ou"))

    @property
    def _fills(self) -> bool:
        return super()._fills and self.correction == "discrete"

    def _precision(self, M: Operator, Lam: Operator) -> Operator:
        return Lam + M if self.correction == "discrete" else M

    def _always_stable(self) -> bool:
        return super()._always_stable() and self.correction == "discrete"
