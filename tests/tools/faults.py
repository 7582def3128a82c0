"""Do the tests see what they should? Faults seeded one at a time into a copy of the package.

``python tests/tools/faults.py`` tries all, ``python tests/tools/faults.py prior EM`` those whose
reason holds one of the words. A fault is killed if the tests most likely to see it fail, and
survives if they pass; the exit code is 1 if one survives, or does not apply because the package's
text has changed.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Fault(NamedTuple):
    """What to write in place of what, why that is wrong, and which tests should see it."""

    file: str
    old: str
    new: str
    why: str
    tests: str


FAULTS = [
    Fault(
        "inspection/drawing.py",
        'layout="constrained"',
        "layout=None",
        "labels of pictures are clipped",
        "inspection/test_displays.py",
    ),
    Fault(
        "inspection/coefficients.py",
        "draws = draws - draws.mean(axis=2, keepdims=True)",
        "pass",
        "coefficients of several classes are drawn with what only the prior knows",
        "inspection/test_coefficients_display.py",
    ),
    Fault(
        "inspection/abstention.py",
        'order = np.argsort(tied, kind="stable")',
        'order = np.argsort(tied, kind="stable")[::-1]',
        "a classifier abstains on the rows that it is sure of",
        "inspection/test_abstention.py",
    ),
    Fault(
        "samplers/sgfs.py",
        "P = F + I_N * c + memory.prior",
        "P = F + I_N * c",
        "the prior is dropped from P of SGFS",
        "samplers/test_sgfs.py",
    ),
    Fault(
        "samplers/sgfs.py",
        "* memory.alpha**2 + W",
        "* memory.alpha + W",
        "SGFS injects alpha B instead of alpha^2 B",
        "samplers/test_sgfs.py",
    ),
    Fault(
        "samplers/preconditioned.py",
        "1 / memory.count if",
        "3 / (memory.count + 2) if",
        "the t-th measurement weighs 3 / (t + 2) instead of 1 / t",
        "samplers/test_averages.py",
    ),
    Fault(
        "samplers/sgfs.py",
        "C.inverse() * alpha**2, P * -1.0",
        "C.inverse() * alpha**2, P * -0.5",
        "half of the gradient noise is taken from what a given C injects",
        "samplers/test_injection.py",
    ),
    Fault(
        "samplers/sgfs.py",
        "layout.keep(W))), W",
        "layout.keep(W))), W if W is None else layout.keep(W)",
        "a given B is cut to the structure before it is injected",
        "samplers/test_injection.py",
    ),
    Fault(
        "samplers/sgfs.py",
        "weight_at(self.alpha, state.t) * state.memory.step",
        "weight_at(self.alpha, state.t)",
        "draws of an annealed SGFS have equal weights",
        "samplers/test_annealing.py",
    ),
    Fault(
        "samplers/preconditioned.py",
        "(self.scale * (1.0 - weight))",
        "self.scale",
        "noise over steps has the error of its running mean in it",
        "samplers/test_averages.py",
    ),
    Fault(
        "samplers/sgfs.py",
        "2.0 / self.h_max",
        "1.0 / self.h_max",
        "h_max is doubled",
        "samplers/test_injection.py",
    ),
    Fault(
        "samplers/momentum_sgd.py",
        "return Lam * (1 / (2 - self.damping)) + M * (1 / self.damping)",
        "P = Lam * (1 / (2 - self.damping)) + M * (1 / self.damping)\n"
        '        return P if self.structure == "full" else P * 0.5',
        "the automatic step of MomentumSGD is doubled but for full matrices",
        "samplers/test_sgd.py",
    ),
    Fault(
        "samplers/sgld.py",
        "memory.step_size = 0.2 / memory.stiffness",
        "memory.step_size = 0.05 / memory.stiffness",
        "the automatic step of SGLD is a quarter",
        "samplers/test_sgld.py",
    ),
    Fault(
        "samplers/sgld.py",
        "value_at(self.temperature, state.t, ",
        "value_at(self.temperature, 0, ",
        "the schedule of SGLD's temperature is ignored",
        "samplers/test_sgld.py",
    ),
    Fault(
        "samplers/sgld.py",
        'given_matrix(f"preconditioner({t})", P(t), dim)',
        'given_matrix(f"preconditioner({t})", P(0), dim)',
        "the schedule of SGLD's preconditioner is ignored",
        "samplers/test_sgld.py",
    ),
    Fault(
        "samplers/hmc.py",
        "wide = (vectors * (scale / roots)) / d[:, None]",
        "wide = (scale / d)[:, None] * vectors / roots",
        "the metric is rescaled along coordinates, so that directions without data get stiff",
        "samplers/test_hmc.py",
    ),
    Fault(
        "posterior/control_variates.py",
        "rest += 0.5 * np.einsum",
        "rest -= 0.5 * np.einsum",
        "the energy of a pool has the second-order term with the wrong sign",
        "posterior/test_control_variates.py",
    ),
    Fault(
        "samplers/hmc.py",
        "length = min(state.normals.uniform(0.7, 2.8), 100 * h)",
        "length = math.pi",
        "the trajectories of HMC are half a period",
        "samplers/test_hmc.py",
    ),
    Fault(
        "chains/tuning.py",
        "return abs(figure - expected) <=",
        "return figure - expected <=",
        "short runs are judged from one side only, so that chains on their way pass",
        "chains/test_tuning.py",
    ),
    Fault(
        "chains/tuning.py",
        ".sum(axis=-1) + _injected_energy(state)",
        ".sum(axis=-1)",
        "the balance of energies leaves out the injected noise",
        "chains/test_tuning.py",
    ),
    Fault(
        "data/minibatches.py",
        "n_total / self.size - (0.0 if replace else 1.0)",
        "n_total / self.size",
        "the noise factor without replacement is N/n instead of N/n - 1",
        "data/test_rows.py",
    ),
    Fault(
        "data/minibatches.py",
        "return rows[0] if self.shared else rows",
        "return rows[0] if self.shared else np.repeat(rows[:1], len(rows), axis=0)",
        "the chains of a group share their rows",
        "data/test_rows.py promises/test_contract.py",
    ),
    Fault(
        "linalg/scores.py",
        "return centred * (1.0 / (n - 1))",
        "return centred * (1.0 / n)",
        "the score covariance has divisor n instead of n - 1",
        "linalg/test_scores.py",
    ),
    Fault(
        "posterior/base.py",
        "return self.model.scores(theta, X, y).scaled(weight)",
        "return self.model.scores(theta, X, y)",
        "weights are ignored by gradients",
        "posterior/test_posterior.py",
    ),
    Fault(
        "posterior/base.py",
        "gradient *= self.n_total / scores.n_rows\n        gradient += self.prior.gradient(theta)",
        "gradient += self.prior.gradient(theta)\n        gradient *= self.n_total / scores.n_rows",
        "the prior's gradient is multiplied by N/n",
        "posterior/test_posterior.py",
    ),
    Fault(
        "chains/run.py",
        "draws[kept], weights[kept] = sampler.draw(state)",
        "draws[kept], weights[kept] = sampler.draw(state)[0][::-1], sampler.draw(state)[1]",
        "chains are swapped within their group",
        "chains/test_chains.py",
    ),
    Fault(
        "chains/run.py",
        "if start + i in recorded",
        "if start + i + 1 - recorded.step in recorded",
        "thinning is off: the last of each few points is kept",
        "samplers/test_sgld.py chains/test_chains.py",
    ),
    Fault(
        "chains/run.py",
        "burn(sampler, target, state, burn_in, keep)",
        "burn(sampler, target, state, 0, keep)",
        "burn-in is not run",
        "estimators/test_logistic.py samplers/test_hmc.py",
    ),
    Fault(
        "chains/run.py",
        "        sampler.restart(state, target)\n        done = until",
        "        done = until",
        "what was learnt far out is never forgotten",
        "samplers/test_hmc.py chains/test_chains.py samplers/test_sgfs.py",
    ),
    Fault(
        "chains/run.py",
        "burn(sampler, target, state, burn_in, keep)\n            sampler.freeze(state, target)",
        "burn(sampler, target, state, burn_in, keep)",
        "the sampler is not frozen after burn-in",
        "samplers/test_sgfs.py samplers/test_hmc.py",
    ),
    Fault(
        "samplers/sgld.py",
        "math.sqrt(2.0 * temperature * eta)",
        "math.sqrt(temperature * eta)",
        "SGLD injects sqrt(eta T) instead of sqrt(2 eta T)",
        "samplers/test_sgld.py",
    ),
    Fault(
        "samplers/hmc.py",
        "return np.where(np.isfinite(change), change, -np.inf)",
        "return np.where(np.isnan(change), -np.inf, change)",
        "HMC accepts a density that overflows",
        "samplers/test_hmc.py -k overflows",
    ),
    Fault(
        "posterior/non_centred.py",
        "volume = n * log_scale + np.log(",
        "volume = n * log_scale - np.log(",
        "a move along the scale has the wrong volume",
        "posterior/test_hierarchical.py -k volumes",
    ),
    Fault(
        "posterior/marginal_scales.py",
        "each = -0.5 * lam * (covariance.diagonal() + factor * mean**2)",
        "each = -0.5 * lam * covariance.diagonal()",
        "the search for several precisions forgets the coefficients",
        "posterior/test_marginal_scales.py",
    ),
    Fault(
        "samplers/hmc.py",
        "chance = np.exp(np.minimum(0.0, _or_never(change)))",
        "chance = np.exp(np.minimum(0.0, _or_never(-change)))",
        "HMC accepts with the wrong sign",
        "samplers/test_hmc.py",
    ),
    Fault(
        "samplers/hmc.py",
        "momentum += (0.5 * long) * (gradient - force)  # in",
        "momentum += long * (gradient - force)  # in",
        "the first kick of a leapfrog trajectory is whole instead of half",
        "samplers/test_hmc.py",
    ),
    Fault(
        "samplers/iasg.py",
        "if window.filled >= window.length:",
        "if window.filled > window.length:",
        "the window of IASG is one too long",
        "samplers/test_sgd.py",
    ),
    Fault(
        "inference/variational_em.py",
        "np.clip(rho - step",
        "np.clip(rho + step",
        "EM moves the precision in the wrong direction",
        "inference/test_empirical_bayes.py -k evidence",
    ),
    Fault(
        "posterior/control_variates.py",
        "rest += self._gradient_there",
        "rest += 0",
        "the gradient at the anchor is dropped",
        "posterior/test_control_variates.py -k gradients",
    ),
    Fault(
        "posterior/control_variates.py",
        "_rows)\n            return self._with_expansion(rest, change, self._hessian.",
        "_rows)\n            return self._with_expansion(rest, change, self.anchor.curvature.",
        "the prior of a sampled noise variance enters twice",
        "posterior/test_control_variates.py -k gradients",
    ),
    Fault(
        "posterior/control_variates.py",
        "weight = (weight / (posterior.data.n_rows * pool.probability))",
        "weight = (weight / posterior.data.n_rows)",
        "rows drawn more often weigh as much as others",
        "posterior/test_control_variates.py -k gradients",
    ),
    Fault(
        "posterior/control_variates.py",
        "np.sum(of_row**2 * (1 - inclusion))",
        "np.sum(of_row**2)",
        "a pool of all rows has an error",
        "posterior/test_control_variates.py -k pool",
    ),
    Fault(
        "posterior/control_variates.py",
        "weight = 1 / inclusion",
        "weight = np.ones(len(size))",
        "rows of a pool do not stand for those left out",
        "posterior/test_control_variates.py -k pool",
    ),
    Fault(
        "posterior/control_variates.py",
        "return tuple([a[kept]] for a in (batch.X, batch.y, weight, size, inclusion))",
        "return tuple([a[kept]] for a in (batch.X, batch.y, weight, size, np.ones(len(size))))",
        "rows of a pool from disk do not stand for those left out",
        "data/test_on_disk.py -k pool",
    ),
    Fault(
        "data/blockwise.py",
        "start=start + block.start",
        "start=0",
        "rows are counted from the start of their block",
        "data/test_on_disk.py -k names_row",
    ),
    Fault(
        "data/blockwise.py",
        "return np.unique(np.random.default_rng(0).integers(self.n_rows, size=size))",
        "return np.arange(size)",
        "the sample of rows on disk is the first rows",
        "data/test_on_disk.py -k few_times",
    ),
    Fault(
        "data/dask.py",
        "self._starts = np.concatenate([[0], ends[:-1]])",
        "self._starts = np.zeros_like(ends)",
        "an error names the wrong partition",
        "data/test_on_workers.py -k partition",
    ),
    Fault(
        "data/dask.py",
        "return function(part, **of_rows) if len(part) else empty",
        "return function(part, **of_rows)",
        "predictions fail at an empty partition",
        "data/test_on_workers.py -k empty",
    ),
    Fault(
        "data/threads.py",
        "running.popleft().result()\n        while",
        "running.pop().result()\n        while",
        "sums depend on the number of threads",
        "data/test_on_disk.py -k threads",
    ),
    Fault(
        "samplers/langevin.py",
        "rest = (M * 4.0 + Lam * (4.0 - delta**2)).inverse()",
        "rest = (M * 4.0 + Lam * 4.0).inverse()",
        "the injected noise leaves out that a step is finite",
        "samplers/test_momentum_step.py -k stationary",
    ),
    Fault(
        "samplers/langevin.py",
        "drift = (0.5 * delta * (1 + c)) * velocity",
        "drift = delta * velocity",
        "the second half of the drift forgets that the velocity was damped",
        "posterior/test_control_variates.py -k gaussian_posterior_is_exact",
    ),
    Fault(
        "inference/diagnose.py",
        "draws = draws[:, :, diagnostics.least_agreed(draws, worst)]",
        "draws = draws[:, :, : 2 * worst]",
        "of many parameters the first are ranked, not the worst",
        "diagnostics/test_diagnostics.py -k agree_least",
    ),
    Fault(
        "posterior/control_variates.py",
        "for sign in (1.0, -1.0):",
        "for sign in (-1.0,):",
        "steepness looks at one side only",
        "posterior/test_control_variates.py -k steepness",
    ),
    Fault(
        "estimators/classifier.py",
        "codes, streaming = np.searchsorted(classes, y),",
        "codes, streaming = len(classes) - 1 - np.searchsorted(classes, y),",
        "the order of the classes is reversed",
        "estimators/test_logistic.py",
    ),
    Fault(
        "estimators/mixture_predictions.py",
        "[0.5 - 0.5 * level, 0.5 + 0.5 * level]",
        "[0.05, 0.95]",
        "the level of an interval of probabilities is ignored",
        "estimators/test_predictive.py estimators/test_logistic.py -k interval",
    ),
    Fault(
        "callbacks.py",
        "fingerprint.draws == written.draws and ",
        "",
        "a fit goes on from the checkpoint of another seed",
        "test_callbacks.py -k another",
    ),
    Fault(
        "chains/run.py",
        "draws[:, k] = target.coordinates.inverse_transform(draw)",
        "draws[:, k] = target.coordinates.inverse_transform(block.draws[0])",
        "all draws of a block of steps are the first",
        "chains/test_chains.py",
    ),
    Fault(
        "posterior/control_variates.py",
        "steep = (ends * _ENDS[-1] > limit).any(axis=0)",
        "steep = (ends > limit).any(axis=0)",
        "a wall between two places along a line is not looked for",
        "inference/test_rare_levels.py",
    ),
    Fault(
        "data/columns.py",
        "np.where(others < 0.5 * of_rows, away, variance)",
        "variance",
        "a rare level has the unit of its standard deviation",
        "promises/test_columns.py",
    ),
    Fault(
        "priors/normal.py",
        "rest[..., : self._n_outputs] + of_means",
        "rest[..., : self._n_outputs]",
        "the intercept has its prior where the columns are zero",
        "promises/test_columns.py",
    ),
    Fault(
        "estimators/base.py",
        'with np.errstate(over="ignore", invalid="ignore", divide="ignore"):',
        "with np.errstate():",
        "warnings of overflow reach the user",
        "promises/test_messages.py",
    ),
    Fault(
        "estimators/linear.py",
        "scale_mixture_quantile(each, weights, noise) for each in q",
        "scale_mixture_quantile(0.95, weights, noise) for each in q",
        "the level of an interval of y is ignored",
        "estimators/test_linear.py -k coverage",
    ),
    Fault(
        "diagnostics/convergence.py",
        "mean = np.tensordot(each, draws, axes=(0, 1)).mean(axis=0)",
        "mean = draws.mean(axis=(0, 1))",
        "the weights of the draws are ignored in coef_",
        "estimators/test_logistic.py -k weighted",
    ),
    Fault(
        "diagnostics/convergence.py",
        "influence = each.size * each * (x - mean)",
        "influence = x - mean",
        "the weights of the draws do not lower the effective sizes",
        "diagnostics/test_diagnostics.py -k weighted",
    ),
    Fault(
        "inspection/summary.py",
        "intercept = intercept - shift if intercept.size else -shift",
        "intercept = intercept + shift if intercept.size else shift",
        "the intercept is moved the wrong way when a scaler is undone",
        "inspection/test_summary.py -k scaler",
    ),
    Fault(
        "inspection/summary.py",
        "found = found - found.mean(axis=2, keepdims=True)",
        "pass",
        "summary() has coefficients of classes with the shift that only the prior knows",
        "inspection/test_summary.py -k contrasts",
    ),
    Fault(
        "inspection/summary.py",
        "before + stretch * origin",
        "before + origin",
        "a step before a scaler is undone in units of the scaler",
        "inspection/test_summary.py -k imputed",
    ),
    Fault(
        "inspection/export.py",
        "lp += (above + of_coefficients).reshape(shape)",
        "lp += (0 * above + of_coefficients).reshape(shape)",
        "the log posterior for ArviZ lacks the prior",
        "inspection/test_arviz.py -k log_posterior",
    ),
    Fault(
        "inspection/under_draws.py",
        "log_prior(prior, flat, eta) - of_coefficients, of_coefficients",
        "log_prior(prior, flat, eta), 0.0",
        "the prior whose power is changed has that of coefficients under a sampled precision in it",
        "inspection/test_arviz.py -k log_posterior",
    ),
    Fault(
        "inspection/sensitivity.py",
        "rates.append(max(below, above) / abs(np.log2(alpha)))",
        "rates.append(below / abs(np.log2(alpha)))",
        "a sensitivity looks at one side of the distribution only",
        "inspection/test_sensitivity.py -k quadrature",
    ),
    Fault(
        "inspection/under_draws.py",
        "yield each if given.weight is None else each * given.weight",
        "yield each",
        "log likelihoods for ArviZ ignore the weights of the rows",
        "inspection/test_arviz.py -k log_posterior",
    ),
    Fault(
        "data/minibatches.py",
        "self.rng.bit_generator.state = self._before",
        "pass",
        "a pickled stream of rows goes on with other rows",
        "promises/test_persistence.py -k ahead",
    ),
    Fault(
        "inference/sample.py",
        "if not ((error <= _BLUR * spread) & np.isfinite(error)).all():",
        "if False:",
        "draws far from zero are blurred by single precision",
        "promises/test_persistence.py -k blur",
    ),
    Fault(
        "inference/sample.py",
        "least = (float((error / scale).max()) / _BLUR) ** 2",
        "least = 0.0",
        "single precision blurs a direction in which draws hardly move",
        "promises/test_persistence.py -k direction",
    ),
    Fault(
        "samplers/base.py",
        "return self.bias_remedy if self.asked_for else self.remedy_of_default",
        "return self.bias_remedy",
        "fits by default name parameters of a sampler that nobody gave",
        "repository/test_words.py -k no_fit_names",
    ),
    Fault(
        "inference/sample.py",
        "draws = np.concatenate([chain.draws for chain in chains])",
        "draws = np.concatenate([chain.draws for chain in chains[::-1]])",
        "the groups of chains are swapped: draws_ are not those of states_",
        "promises/test_promises.py -k warm_start_goes_on",
    ),
    Fault(
        "inference/sample.py",
        "step = last.t - (n_draws - k) * engine.length.thin",
        "step = k",
        "a precision after a warm start has the random numbers of the first fit",
        "promises/test_promises.py -k warm_start_goes_on",
    ),
    Fault(
        "inference/sample.py",
        "if engine.sampled is None:",
        "if True:",
        "the next engine keeps a precision that the first one did not find",
        "posterior/test_row_space.py -k orthogonal",
    ),
    Fault(
        "inference/engine.py",
        "return OneByOneTarget(posterior, found, anchor.theta)",
        "return OneByOneTarget(self.under(posterior), found, anchor.theta)",
        "a warm start has other coordinates than its chains",
        "posterior/test_one_by_one.py -k warm_start",
    ),
    Fault(
        "inference/engine.py",
        "posterior.full_gradient(somewhere / max(size, 1.0))",
        "posterior.full_gradient(somewhere)",
        "rows far from zero are not told apart at a warm start",
        "estimators/test_logistic.py -k far_from_zero",
    ),
    Fault(
        "posterior/row_space.py",
        "if (q == q[0]).all() else None",
        "if True else None",
        "classes with precisions of their own have those of the first",
        "posterior/test_row_space.py -k serves_few",
    ),
    Fault(
        "estimators/base.py",
        "form = form or Choice(",
        "form = Choice(",
        "names stand for a sampler's own defaults in every family",
        "promises/test_parameters.py -k many_rows",
    ),
    Fault(
        "estimators/base.py",
        'sampler = params.get("sampler", self.sampler)',
        "sampler = self.sampler",
        "the name in a call of set_params comes after its parameters",
        "promises/test_parameters.py -k one_call",
    ),
    Fault(
        "diagnostics/gradients.py",
        "(one.product + (one.origin - mean) * one.gradient)",
        "(one.product + one.origin * one.gradient)",
        "the Stein ratio is not about the mean",
        "diagnostics/test_diagnostics.py",
    ),
    Fault(
        "data/kept_rows.py",
        "block.repeated(share) for block",
        "block.repeated(1.0) for block",
        "rows of a stream that are kept are not forgotten",
        "inference/test_stream.py -k forgetting",
    ),
    Fault(
        "inference/bayesian_updating.py",
        "square > min(",
        "square < min(",
        "the kept rows of a stream are not expanded where the posterior has moved",
        "inference/test_stream_orders.py -k any_order",
    ),
    Fault(
        "inference/folded_rows.py",
        "self.residual - np.einsum",
        "self.residual + np.einsum",
        "the remainders of folded rows have a term of the wrong sign",
        "inference/test_stream_orders.py -k remainder",
    ),
    Fault(
        "inference/folded_rows.py",
        "factor = np.maximum(1.0, self.threshold / np.maximum(self.size, _TINY))",
        "factor = np.ones(len(self.size))",
        "a sample of folded rows does not stand for all",
        "inference/test_stream_orders.py -k stands_for_all",
    ),
    Fault(
        "priors/normal.py",
        "other.operator.plain() * (1 - share)",
        "other.operator.plain() * 0.0",
        "a stream forgets its prior too",
        "priors/test_priors.py",
    ),
    Fault(
        "priors/normal_inverse_gamma.py",
        "- 0.5 * np.sum(step * scaled)",
        "- np.sum(step * scaled)",
        "the rate of the noise after an update is too small",
        "priors/test_priors.py",
    ),
    Fault(
        "models/softmax.py",
        "softmax(spread @ nodes.T + z[0].T[:, :, None])",
        "softmax(spread @ (0 * nodes.T) + z[0].T[:, :, None])",
        "a stream takes gradient and curvature at the mode, not in the mean",
        "inference/test_stream.py",
    ),
    Fault(
        "priors/scales.py",
        "each = self.shape * eta - self.rate * np.exp(eta)",
        "each = self.shape * eta",
        "nothing holds the sampled precision of noise",
        "inference/test_evidence.py -k noise",
    ),
    Fault(
        "posterior/non_centred.py",
        "each += volume - 0.5",
        "each += -0.5",
        "the gradient of a sampled precision misses the Jacobian",
        "posterior/test_hierarchical.py -k jacobian",
    ),
    Fault(
        "posterior/non_centred.py",
        "informed = np.append(0.0, np.full(outputs - 1, outputs / (outputs - 1)))",
        "informed = np.full(outputs, 0.3)",
        "coordinates take the sum of the classes for something that rows know of",
        "posterior/test_hierarchical.py -k standard",
    ),
    Fault(
        "priors/scales.py",
        "less = self._at - self._integrated.mean_precision(squares)",
        "less = 0.0 * squares",
        "samplers by name follow the prior under one precision",
        "priors/test_integrated_precision.py -k integral",
    ),
    Fault(
        "inference/variational_em.py",
        "return (theta - posterior.prior.mean) *",
        "return theta *",
        "the control variate of EM is not around the prior mean",
        "priors/test_prior_mean.py",
    ),
    Fault(
        "callbacks.py",
        "suppress(OSError):\n                beside.unlink(missing_ok=True)",
        "suppress(OSError):\n                pass",
        "a full disk leaves a part of a checkpoint",
        "promises/test_failures.py -k disk",
    ),
    Fault(
        "inference/stored.py",
        "if _digest(file, size) != file.read():",
        "if False:",
        "a damaged checkpoint is read",
        "promises/test_failures.py -k damaged",
    ),
    Fault(
        "inference/stored.py",
        "if not name.startswith(_ROOMS) or module",
        "if module",
        "a checkpoint makes things of any loaded type",
        "inference/test_stored.py -k types",
    ),
    Fault(
        "inference/stored.py",
        "return [known[id(part)][0]]",
        "pass",
        "what two things share is stored twice",
        "inference/test_stored.py -k shared",
    ),
    Fault(
        "callbacks.py",
        "complete, checkpoint = n_drawn >= n_draws or self.enough, self.checkpoint",
        "complete, checkpoint = True, self.checkpoint",
        "a fit that a callback ends removes its checkpoint without a word",
        "test_callbacks.py -k early",
    ),
    Fault(
        "inference/diagnose.py",
        "ENOUGH_ESS if n_drawn >= most else ENOUGH_ESS / 2",
        "ESS_LIMIT",
        "draws that end short of what a fit goes on to are not mentioned",
        "estimators/test_number_of_draws.py -k promise",
    ),
    Fault(
        "data/threads.py",
        "limit = _INSIDE.pop()",
        "limit = _INSIDE.pop(0)",
        "the first of two fits in threads to end gives BLAS its threads again",
        "promises/test_failures.py -k blas",
    ),
]


def outcome(folder: Path, tests: str) -> tuple[str, str]:
    """What the tests say of the package beside them: in a word, and the first that failed."""
    plain = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    alone = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", *plain, *tests.split()]
    where = {"cwd": folder / "tests", "env": os.environ | alone}
    run = subprocess.run(command, **where, capture_output=True, text=True)
    failed = re.search(r"^FAILED \S+::(\w+)", run.stdout, re.MULTILINE)
    if run.returncode == 1 and failed:
        return "killed", f"by {failed[1]}"
    return ("survived", "") if run.returncode == 0 else ("error", f"pytest ended {run.returncode}")


def tried(folder: Path, fault: Fault) -> tuple[str, str]:
    """The same of a fault, which is taken back afterwards."""
    file = folder / "skbayes_sg" / fault.file
    text = file.read_text() if file.exists() else ""
    if text.count(fault.old) != 1:
        return "error", f"the fault does not apply: its text occurs {text.count(fault.old)} times"
    file.write_text(text.replace(fault.old, fault.new))
    try:
        return outcome(folder, fault.tests)
    finally:
        file.write_text(text)


def main(words: list[str]) -> int:
    """Try the faults, print what became of each, and say whether all were killed."""
    asked = [fault for fault in FAULTS if not words or any(word in fault.why for word in words)]
    bad = 0 if asked else 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("skbayes_sg", "tests", "docs"):
            hidden = shutil.ignore_patterns("__pycache__", "_build", "gallery", "generated")
            shutil.copytree(ROOT / part, folder / part, ignore=hidden)
        shutil.copy(ROOT / "pyproject.toml", folder)
        for tests in sorted({fault.tests for fault in asked}):
            said, more = outcome(folder, tests)
            if said != "survived":
                bad += 1
                print(f"without any fault, {tests}: {said} {more}", flush=True)
        for fault in asked:
            begin = time.perf_counter()
            said, more = tried(folder, fault)
            bad += said != "killed"
            seconds = time.perf_counter() - begin
            print(f"{said:8} {seconds:3.0f} s  {fault.file}: {fault.why}; {more}", flush=True)
    print(f"{len(asked)} faults; {bad} faults, or runs without one, not as they should be")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
