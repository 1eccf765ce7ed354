"""How far parameters scatter, from estimates that leave out one stretch of the log after the other.

Residuals of robots are no white noise: friction that the model lacks repeats with the motion, hangs together over
seconds and over joints, and is largest where it has most leverage. What formulas with a residual's autocorrelation or
heteroscedasticity-consistent (HAC) sums leave out then is most of it. The delete-a-block jackknife (Kunsch 1989; Shao
and Wu 1989) assumes only that stretches are nearly independent:

    v_i = (K - 1) / K sum_k (theta_i(k) - theta_i)^2,    theta(k) without the k-th of K stretches

and needs triangular factors only. K of ten leaves each v_i nine degrees of freedom, so that its ratio to the formula's
variance is moderated over parameters (Smyth 2004): r_i = v_i / formula_i is s0^2 chi^2_(K-1) / (K-1) about a variance
that itself scatters as s0^2 d0 / chi^2_d0; d0 and s0 by moments of log r_i, and (d0 s0^2 + (K - 1) r_i) / (d0 + K - 1),
on d0 + K - 1 degrees of freedom, is what formula_i is multiplied with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from geomctrl.identification.compressed import Compressed
from geomctrl.identification.data import Dataset
from geomctrl.identification.errors import DataError
from geomctrl.identification.model import RegressorModel

from .conditioning import excitation
from .folds import folds_of

STRETCHES = (10, 5)  # K: the first with which whatever is left determines all parameters
MODERATE = 1e6  # d0 from which ratios scatter no more than their degrees of freedom say


def scatter(
    model: RegressorModel,
    data: Dataset,
    solve: Callable[[Compressed], np.ndarray],
    values: np.ndarray,
    formula: np.ndarray,
    prior: bool = False,
) -> tuple[np.ndarray, float]:
    """((nb,) factors for standard deviations, degrees of freedom) of base parameters `values` with variances `formula`.

    solve: base parameters from factors; prior: it answers for logs that do not determine all, too. (1, inf) where the
    log is too short to leave anything out.
    """
    for K in STRETCHES:
        try:
            rest = folds_of(model, data, K, guard=0.0).rest
        except DataError:
            continue
        if prior or not any(excitation(model, c)[1] for c in rest):
            return moderated([solve(c) for c in rest], values, formula)
    return np.ones(len(values)), np.inf


def moderated(left_out: Sequence[np.ndarray], values: np.ndarray, formula: np.ndarray) -> tuple[np.ndarray, float]:
    """The same from the K estimates (nb,) themselves."""
    from scipy.special import digamma, polygamma

    K = len(left_out)
    d = K - 1.0
    v = d / K * ((np.array(left_out) - values) ** 2).sum(0)
    good = (formula > 0.0) & (v > 0.0)
    if not good.any():
        return np.ones(len(values)), np.inf
    r = v[good] / formula[good]
    e = np.log(r) - digamma(0.5 * d) + np.log(0.5 * d)
    excess = float(np.var(e, ddof=1)) - float(polygamma(1, 0.5 * d)) if len(e) > 2 else 0.0
    d0 = 2.0 * _inverse_trigamma(excess) if excess > 0.0 else np.inf
    if d0 > MODERATE:
        ratio, dof = np.full(len(r), np.exp(e.mean())), np.inf
    else:
        s0 = np.exp(float(e.mean()) + digamma(0.5 * d0) - np.log(0.5 * d0))
        ratio, dof = (d0 * s0 + d * r) / (d0 + d), d0 + d
    out = np.ones(len(values))
    out[good] = np.sqrt(ratio)
    return out, dof


def _inverse_trigamma(y: float) -> float:
    """x with trigamma(x) = y, by Newton's method (Smyth 2004, appendix)."""
    from scipy.special import polygamma

    if y > 1e7:
        return 1.0 / np.sqrt(y)
    if y < 1e-6:
        return 1.0 / y
    x = 0.5 + 1.0 / y
    for _ in range(50):
        trigamma = float(polygamma(1, x))
        step = trigamma * (1.0 - trigamma / y) / float(polygamma(2, x))
        x += step
        if -step / x < 1e-8:
            break
    return x
