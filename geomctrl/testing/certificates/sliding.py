"""Bounds of tracking errors from a V that vanishes wherever w = e' + Lambda e does, such as 1/2 w . M w.

|w_i| <= sigma_i sqrt(2 V) with sigma_i^2 = max (M^-1)_ii. With r_i the bound of |w_i| and C = Lambda_ii on the
diagonal and - |Lambda_ij| elsewhere, the box |e| <= E is invariant if C E > r, because there |e_i|' <= r_i - (C E)_i.
If |w| <= r in the limit, then |e| <= C^-1 r in the limit (comparison lemma; C is an M-matrix, as C E > 0 for an E > 0).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomctrl.tracing.derivatives import tangents
from geomctrl.tracing.proofs.interpreted import Program
from geomctrl.tracing.proofs.substitution import substituted

from .equations import Equations
from .forms import comparison, inverse_diagonal
from .quadratic import Boxes, inputs, perron

MARGIN = 1e-9  # relative: covers rounding, and makes inequalities strict
CLOSE = 1.1  # precision of sigma^2
MAX_PARTS, CHUNK = 20_000, 512


@dataclass(frozen=True)
class SlidingBounds:
    """Bounds of w, e and z where V <= level: r = sigma sqrt(2 level), |e| <= shape sqrt(2 level), likewise for z."""

    sigma: np.ndarray
    shape: np.ndarray
    estimates: np.ndarray

    def errors(self, level: float) -> np.ndarray:
        """The bounds (nv,) of |e|."""
        return self.shape * np.sqrt(2.0 * level) * (1.0 + MARGIN)

    def level(self, half: np.ndarray) -> float:
        """The largest level at which (e, w, z) is in the box with these half widths."""
        sizes = np.concatenate([self.errors(0.5), self.sigma, self.estimates])
        return 0.5 * float((half / sizes).min()) ** 2 * (1.0 - MARGIN)


def sliding_bounds(e: Equations, box: Boxes) -> SlidingBounds | None:
    """The bounds for all states of the box, all times and parameters; None if none are found."""
    squares = _largest_inverses(e, box)
    C, estimates = None if e.gain is None else comparison(e.gain), inverse_diagonal(*e.weights)
    if C is None or estimates is None or not np.isfinite(squares).all():
        return None
    sigma = np.sqrt(squares) * (1.0 + MARGIN)
    shape = np.linalg.solve(C, sigma) * (1.0 + MARGIN)
    estimates = np.sqrt(estimates) * (1.0 + MARGIN)
    return SlidingBounds(sigma, shape, estimates) if (shape > 0.0).all() and (C @ shape > sigma).all() else None


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

    def diagonals(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(Upper bounds (boxes, n), how much each angle's width contributes to them (boxes, angles))."""
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
        parts = (at_middle + size @ off @ size.swapaxes(2, 3)) * weights
        cover = parts.sum(1)
        u = perron(cover, np.ones(n))
        r = (np.einsum("bij,bj->bi", cover, u) / u).max(1) * (1.0 + MARGIN) + MARGIN
        squares = np.einsum("bij,bij->bj", W[:, 0], W[:, 0]) / np.maximum(1.0 - r, 1e-300)[:, None] * (1.0 + MARGIN)
        squares = np.where((good & (r < 1.0))[:, None], squares, np.inf)
        return squares, np.einsum("bi,bkij,bj->bk", u, parts[:, parts.shape[1] - len(angles) :], u)

    low, high = (np.array([[float(np.ravel(whole[k][end])[0]) for k in angles]]) for end in (0, 1))
    return _largest(diagonals, low, high)


def _largest(diagonals: Callable, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The largest of the bounds on a box, divided where they are largest."""
    boxes: list[np.ndarray] = [low, high, *diagonals(low, high)]  # low, high, bounds, effect of halving each side
    seen, count = np.zeros(boxes[2].shape[1]), 0
    while (boxes[2] > CLOSE * seen).any() and count < MAX_PARTS and low.size:
        order = np.argsort((boxes[2] / np.maximum(seen, 1e-300)).max(1), kind="stable")
        rest, now = order[:-CHUNK], order[-CHUNK:]
        starts, ends, _, effects = (x[now] for x in boxes)
        sides, rows, middle = np.argmax(effects, axis=1), np.arange(len(now)), 0.5 * (starts + ends)
        seen = np.maximum(seen, diagonals(middle, middle)[0].max(0))
        upper, lower = ends.copy(), starts.copy()
        lower[rows, sides] = upper[rows, sides] = middle[rows, sides]
        halves = np.concatenate([starts, lower]), np.concatenate([upper, ends])
        boxes = [np.concatenate([x[rest], y]) for x, y in zip(boxes, (*halves, *diagonals(*halves)))]
        count += len(halves[0])
    return boxes[2].max(0) * (1.0 + MARGIN)
