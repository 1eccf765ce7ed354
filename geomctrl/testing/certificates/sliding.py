"""Bounds of tracking errors from a V that vanishes wherever w = e' + Lambda e does, such as 1/2 w . M w.

|w_i| <= sigma_i sqrt(2 V) with sigma_i^2 = max (M^-1)_ii. With r_i the bound of |w_i| and C = Lambda_ii on the
diagonal and - |Lambda_ij| elsewhere, the box |e| <= E is invariant if C E > r, because there |e_i|' <= r_i - (C E)_i.
If |w| <= r in the limit, then |e| <= C^-1 r in the limit (comparison lemma; C is an M-matrix, as C E > 0 for an E > 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from geomctrl.tracing.derivatives import tangents
from geomctrl.tracing.proofs.interpreted import Program
from geomctrl.tracing.proofs.substitution import substituted

from .equations import Equations
from .forms import comparison
from .quadratic import Boxes, inputs, perron

MARGIN = 1e-9  # relative: covers rounding, and makes inequalities strict
CLOSE = 1.1  # precision of sigma^2
MAX_PARTS, CHUNK = 4_000, 512


@dataclass(frozen=True)
class SlidingBounds:
    """Bounds of w and e where V <= level: r = sigma sqrt(2 level), |e| <= shape sqrt(2 level)."""

    sigma: np.ndarray
    shape: np.ndarray

    def errors(self, level: float) -> np.ndarray:
        """The bounds (nv,) of |e|."""
        return self.shape * np.sqrt(2.0 * level) * (1.0 + MARGIN)

    def level(self, half: np.ndarray) -> float:
        """The largest level at which (e, w) is in the box with these half widths (2 nv,)."""
        sizes = np.concatenate([self.errors(0.5), self.sigma])
        return 0.5 * float((half / sizes).min()) ** 2 * (1.0 - MARGIN)


def sliding_bounds(e: Equations, box: Boxes) -> SlidingBounds | None:
    """The bounds for all states of the box, all times and parameters; None if none are found."""
    squares = _largest_inverses(e, box)
    C = None if e.gain is None else comparison(e.gain)
    if C is None or not np.isfinite(squares).all():
        return None
    sigma = np.sqrt(squares) * (1.0 + MARGIN)
    shape = np.linalg.solve(C, sigma) * (1.0 + MARGIN)
    return SlidingBounds(sigma, shape) if (shape > 0.0).all() and (C @ shape > sigma).all() else None


def _largest_inverses(e: Equations, box: Boxes) -> np.ndarray:
    """Upper bounds (nv,) of the diagonal of M^-1 on the box, by branch and bound over angles; infinite without any.

    M is affine in the parameters and smooth in the angles: M = M(centre) + sum_k d_k M_k, with M_k for angles from the
    mean value theorem, of the centre's parameters. If no eigenvalue of W M W^T is below 1 - r, for any W,
    then M^-1 <= W^T W / (1 - r). W belongs to the middle of a part of the box.
    """
    lo, hi, n = box.p_lo[0, e.robots], box.p_hi[0, e.robots], e.n
    centre, parameters = 0.5 * (lo + hi), e.parameters[e.robots]
    radius = np.maximum(hi - centre, centre - lo) * (1.0 + MARGIN)
    inexact = np.flatnonzero(radius)
    ends = substituted(e.graph, e.inertia, dict(zip(parameters, centre.tolist())))
    slopes = [x for k in inexact for x in tangents(e.graph, e.inertia, {parameters[k]: 1.0})]
    felt = set(e.graph.needed([e.graph.operand(x) for x in [*ends, *slopes]]))
    angles = [k for k in e.angles if k is not None and k in felt]
    slopes += [x for k in angles for x in tangents(e.graph, ends, {k: 1.0})]
    M, rates, whole = Program(e.graph, ends), Program(e.graph, slopes), inputs(e, box, box.lo, box.hi)

    def diagonals(low: np.ndarray, high: np.ndarray) -> np.ndarray:
        point = 0.5 * (low + high)
        ranges = [{k: (x[:, i], y[:, i]) for i, k in enumerate(angles)} for x, y in ((point, point), (low, high))]
        ends = [p.enclosed({**whole, **r}, len(low)) for p, r in zip((M, rates), ranges)]
        a, b = (np.concatenate([x, y], 1).reshape(len(low), -1, n, n) for x, y in zip(*ends))
        reach = np.maximum(high - point, point - low) * (1.0 + MARGIN)
        exact = np.ones((len(low), 1)), np.broadcast_to(radius[inexact], (len(low), len(inexact)))
        weights = np.concatenate([*exact, reach], 1)[:, :, None, None]
        good: Any = np.isfinite(a).all((1, 2, 3)) & np.isfinite(b).all((1, 2, 3))
        a, b = (np.where(good[:, None, None, None], x, np.eye(n)) for x in (a, b))
        middle, off = 0.5 * (a + b), 0.5 * (b - a) * (1.0 + MARGIN) + MARGIN**1.5 * np.abs(a + b)
        good &= np.linalg.eigvalsh(middle[:, 0])[:, 0] > 0.0
        middle[~good] = np.eye(n)
        W = np.linalg.inv(np.linalg.cholesky(middle[:, 0]))[:, None]
        size, V = np.abs(W), W.swapaxes(2, 3)
        at_middle = np.abs(W @ middle @ V - np.eye(n) * (np.arange(middle.shape[1]) == 0)[:, None, None])
        cover = ((at_middle + size @ off @ size.swapaxes(2, 3)) * weights).sum(1)
        u = perron(cover, np.ones(n))
        r = (np.einsum("bij,bj->bi", cover, u) / u).max(1) * (1.0 + MARGIN) + MARGIN
        squares = np.einsum("bij,bij->bj", W[:, 0], W[:, 0]) / np.maximum(1.0 - r, 1e-300)[:, None] * (1.0 + MARGIN)
        return np.where((good & (r < 1.0))[:, None], squares, np.inf)

    low, high = (np.array([[float(np.ravel(whole[k][end])[0]) for k in angles]]) for end in (0, 1))
    seen, largest, count = np.zeros(n), np.zeros(n), 0
    while len(low):
        now, rest = (low[-CHUNK:], high[-CHUNK:]), (low[:-CHUNK], high[:-CHUNK])
        count += len(now[0])
        middle, above = 0.5 * (now[0] + now[1]), diagonals(*now)
        seen = np.maximum(seen, diagonals(middle, middle).max(0))
        wide = (above > CLOSE * seen).any(1) & (now[1] > now[0]).any(1) & (count < MAX_PARTS)
        largest = np.maximum(largest, above[~wide].max(0, initial=0.0))
        (low, high), middle = (x[wide] for x in now), middle[wide]
        upper, lower = high.copy(), low.copy()
        if len(low):
            rows, sides = np.arange(len(low)), np.argmax(high - low, axis=1)
            upper[rows, sides] = lower[rows, sides] = middle[rows, sides]
        low, high = np.concatenate([rest[0], low, lower]), np.concatenate([rest[1], upper, high])
        if not np.isfinite(largest).all():
            break
    return largest * (1.0 + MARGIN)
