"""What a log tells of the unknowns of an output error, and what it does not, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from geomctrl.terms.base_parameters import combinations

from .unknowns import Unknowns

CLOSE = 0.98  # correlation from which two parameters are hardly told apart
SHARE = 0.1  # of the largest of its kind: the natural unit of what is small or zero
LEAST = 1.0  # N m, kg m^2, ...: the same where all of a kind are zero
NAMED = 0.02  # share of a direction from which a parameter is named


def units(unknown: Unknowns, theta: np.ndarray) -> np.ndarray:
    """(size,): a natural unit of each unknown, by which "not at all" is judged: its value, here or at first, SHARE of
    the largest of its kind at least; a sample's time for the delay; 1 for where parts begin."""
    model, n, first = unknown.made.model, unknown.n, np.maximum(np.abs(unknown.first()), np.abs(theta))
    inertial = [f"inertial {0 if k % 10 == 0 else 1 if k % 10 < 4 else 2}" for k in range(model.inertial)]
    own = [*inertial, *model.kinds[model.inertial :]]
    kinds = [own[k] for k in model.base.columns] + [g for g in unknown.gains for _ in range(n)]
    out = np.ones(unknown.size)
    for kind in set(kinds):
        at = np.array([k for k, x in enumerate(kinds) if x == kind])
        out[at] = np.maximum(first[at], SHARE * first[at].max()) if first[at].any() else LEAST
    if unknown.delay:
        out[unknown.shared - 1] = unknown.made.loop.period
    return out


def untold(unknown: Unknowns, lost: np.ndarray, scale: np.ndarray) -> tuple[str, ...]:
    """The directions lost (k, size), in units `scale`: as few parameters each as there are, in words."""
    from scipy.linalg import qr  # slow to import

    shared = unknown.shared
    lost = lost[:, :shared]
    _, s, Vt = np.linalg.svd(lost, full_matrices=False)
    lost = Vt[s > NAMED]  # without those of where parts begin
    if not len(lost):
        return ()
    names = [name if " " not in name else f"({name})" for name in unknown.names[:shared]]
    pivoted: Any = qr(lost, mode="r", pivoting=True)
    leads = pivoted[1][: len(lost)]
    words = []
    for lead, v in sorted(zip(leads, np.linalg.solve(lost[:, leads], lost)), key=lambda x: x[0]):
        used = np.abs(v) > NAMED
        direction = np.where(used, v * scale[:shared], 0.0) / scale[lead]
        text = combinations(direction[None], [int(lead)], names)[0]
        together = ", changed so together" if used.sum() > 1 else ""
        words.append(f"{text}{together}: nothing measured depends on it")
    return tuple(words)


def close(names: Sequence[str], covariance: np.ndarray) -> tuple[str, ...]:
    """Pairs that are hardly told apart, with their correlation."""
    d = np.sqrt(np.diag(covariance).clip(0.0))
    with np.errstate(all="ignore"):
        r = covariance / np.outer(d, d)
    pairs = np.argwhere(np.triu(np.abs(np.nan_to_num(r)), 1) > CLOSE)
    return tuple(f"{names[i]} and {names[j]}: correlation {r[i, j]:.4f}" for i, j in pairs)
