"""Bounds by quadratic forms, which decide whole boxes about an equilibrium; intervals alone would need 2^14 divisions.

Let x = (q - q_d, v), and let the angles a = q inside sines and cosines be separate inputs. V and V' are then
polynomials in x of low degree with coefficients that depend on a. For every a, exactly,

    F(x, a) = F(0, a) + g(a) . x + x . A(x, a) x,      A = H(0, a) / 3 + H(x, a) / 6

for degree three or less, with the second derivatives H. A = H(0, a) / 2 for degree two. For any other function that is
smooth in between, A is H / 2 at some point between 0 and x. Nothing is expanded in a, which is only known to lie in its
interval; that a and q are the same number is not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from geomctrl.tracing.derivatives import pullback, tangents
from geomctrl.tracing.proofs.identities import degree_in, identical
from geomctrl.tracing.proofs.interpreted import Program
from geomctrl.tracing.proofs.intervals import EPS
from geomctrl.tracing.proofs.substitution import substituted
from geomctrl.tracing.symbols import Symbol, sub

from .equations import Equations

EIGENVALUE_ERROR = 1e-13  # relative to the largest entry: bounds the error of an eigenvalue of a symmetric matrix


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes of x = (q - q_d, v), (boxes, 2n) twice, and of the true parameters, (boxes, 10 nbodies) twice."""

    lo: np.ndarray
    hi: np.ndarray
    p_lo: np.ndarray
    p_hi: np.ndarray

    def __getitem__(self, k: Any) -> Boxes:
        return Boxes(self.lo[k], self.hi[k], self.p_lo[k], self.p_hi[k])

    def __len__(self) -> int:
        return len(self.lo)

    @classmethod
    def of(cls, lo: np.ndarray, hi: np.ndarray, n: int) -> Boxes:
        """Boxes from bounds of all sides, of which those from the n-th on are parameters."""
        return cls(lo[:, :n], hi[:, :n], lo[:, n:], hi[:, n:])

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """(lo, hi) of all sides."""
        return np.concatenate([self.lo, self.p_lo], 1), np.concatenate([self.hi, self.p_hi], 1)

    @property
    def far(self) -> np.ndarray:
        """The largest |x| of each box (boxes, 2n)."""
        return np.maximum(np.abs(self.lo), np.abs(self.hi))


class Form(NamedTuple):
    """F <= top + g . x + slack . |x| - x . N x on a box: (boxes,), (boxes, 2n) twice, (boxes, 2n, 2n).

    value: upper bound of F on the box by intervals alone. scale: see `Bounds`.
    """

    top: np.ndarray
    g: np.ndarray
    slack: np.ndarray
    N: np.ndarray
    value: np.ndarray
    scale: np.ndarray

    @property
    def slope(self) -> np.ndarray:
        """Coefficients of a bound in |x| alone."""
        return np.abs(self.g) + self.slack

    def rows(self, k: Any) -> Form:
        """The form for some boxes."""
        return Form(self.top[k], self.g[k], self.slack[k], self.N[k], self.value[k], self.scale)

    def lifted(self, boxes: Boxes) -> tuple[Form, np.ndarray, np.ndarray]:
        """The form with N + diag(lift) positive definite, the lift (boxes, 2n), 0 if N is, and whether that is shown.

        The lift is proportional to 1 / scale^2, or costs equally much in every coordinate of a box if this is cheaper.
        """
        finite = np.abs(self.N).max((1, 2)) < 1e200
        N, reach = np.where(finite[:, None, None], self.N, np.eye(len(self.scale))), boxes.far
        wide = np.broadcast_to(self.scale, reach.shape)
        lifts = []
        for unit in (wide, np.maximum(reach, 1e-6 * wide)):
            lifts.append(np.maximum(-1.01 * scaled_eigenvalues(N, unit), 0.0)[:, None] / unit**2)
        cheaper = (lifts[1] * reach**2).sum(1) < (lifts[0] * reach**2).sum(1)
        lift, unit = np.where(cheaper[:, None], lifts[1], lifts[0]), np.where(cheaper[:, None], unit, wide)
        lifted = N + np.eye(len(self.scale)) * lift[:, None, :]
        convex = scaled_eigenvalues(lifted, unit) > 0.0
        return self._replace(N=lifted), np.where(finite[:, None], lift, np.inf), convex

    def least(self, boxes: Boxes, sweeps: int = 4) -> np.ndarray:
        """Approximate minimum of x . N x - g . x on each box (boxes, 2n)."""
        c = np.clip(0.0, boxes.lo, boxes.hi)
        diagonal = np.maximum(np.einsum("bii->bi", self.N), 1e-300)
        for _ in range(sweeps):
            for i in range(c.shape[1]):
                rest = np.einsum("bj,bj->b", self.N[:, i], c) - self.N[:, i, i] * c[:, i]
                c[:, i] = np.clip((0.5 * self.g[:, i] - rest) / diagonal[:, i], boxes.lo[:, i], boxes.hi[:, i])
        return c


class Bounds:
    """Upper bounds of an expression F of the equations on boxes.

    scale (2n,): lengths of x used for trade-offs between the terms of a form.
    """

    def __init__(self, equations: Equations, F: Any, scale: np.ndarray):
        self.equations, self.F, self.scale = equations, F, scale
        self.degree = degree_in(equations.graph, F, set(equations.x))

    @cached_property
    def expressions(self) -> list[Any]:
        """F, its gradient, and the upper triangle of its second derivatives."""
        graph, x = self.equations.graph, self.equations.x
        branches = any(graph.nodes[k][0] == "where" for k in graph.needed([graph.operand(self.F)]))
        if branches:  # forward mode, without the guards of unused sides, which intervals can not decide
            gradient = [tangents(graph, [self.F], {k: 1.0})[0] for k in x]
        else:
            gradient = pullback(graph, [self.F], [1.0], x)
        rows = [tangents(graph, gradient, {k: 1.0}) for k in x]
        upper = [rows[i][j] for i in range(len(x)) for j in range(i, len(x))]
        return settled(graph, [self.F, *gradient, *upper])

    @cached_property
    def flat(self) -> bool:
        """Whether F and its gradient are identically zero at x = 0, for all angles and parameters."""
        return self._is_flat({})

    @cached_property
    def flat_at_model(self) -> bool:
        """The same for the parameters of the model."""
        e = self.equations
        values = {key_of(e.graph, k): x for k, x in zip(e.parameters[e.robots], e.model.tolist())}
        return self.flat or self._is_flat(values | {key_of(e.graph, k): 0.0 for k in e.errors[e.robots]})

    def _is_flat(self, values: dict[tuple[int, int], float]) -> bool:
        e, n = self.equations, len(self.equations.x)
        values = values | {key_of(e.graph, k): x for k, x in e.numbers.items()}
        values |= {key_of(e.graph, k): (float(e.q_d[i]) if i < e.n else 0.0) for i, k in enumerate(e.x)}
        return identical(e.graph, [(x, 0.0) for x in self.expressions[: 1 + n]], values)

    def is_flat(self, boxes: Boxes) -> bool:
        """Whether F and its gradient are known to be zero at x = 0 for the parameters of the boxes."""
        robots, model = self.equations.robots, self.equations.model[self.equations.robots]
        right = (boxes.p_lo[:, robots] == model).all() and (boxes.p_hi[:, robots] == model).all()
        return self.flat_at_model if right else self.flat

    def form(self, boxes: Boxes) -> Form:
        n, m = len(self.equations.x), len(boxes)
        zero, twice = np.zeros((m, n)), boxes[np.tile(np.arange(m), 2)]
        polynomial = self.degree <= 3
        lo = np.concatenate([zero, boxes.lo if polynomial else np.minimum(boxes.lo, 0.0)])
        hi = np.concatenate([zero, boxes.hi if polynomial else np.maximum(boxes.hi, 0.0)])
        low, high = self.enclosed(self._form, twice, lo, hi)
        value = high[m:, 0]
        if not polynomial:  # `value` bounds F on the box only, not on the segments from 0 to x
            value = self.values(boxes)[1]
        (A0, R0), (A1, R1) = (symmetric(low[k, 1 + n :], high[k, 1 + n :], n) for k in (slice(0, m), slice(m, None)))
        if self.degree <= 2:
            A, R = A0 / 2.0, R0 / 2.0
        elif polynomial:
            A, R = A0 / 3.0 + A1 / 6.0, R0 / 3.0 + R1 / 6.0
        else:
            A, R = A1 / 2.0, R1 / 2.0
        R = R + 4.0 * EPS * (np.abs(A) + R)
        if not polynomial:  # the expansion needs a continuous F
            smooth = np.isfinite(low[m:, 0]) & np.isfinite(high[m:, 0])
            smooth &= self.kinks.absent(inputs(self.equations, boxes, lo[m:], hi[m:]), m)
            R = np.where(smooth[:, None, None], R, 1e300)
        g_lo, g_hi = low[:m, 1 : 1 + n], high[:m, 1 : 1 + n]
        finite = np.isfinite(g_lo) & np.isfinite(g_hi)
        g = 0.5 * np.where(finite, g_lo, 0.0) + 0.5 * np.where(finite, g_hi, 0.0)
        slack = np.maximum(g_hi - g, g - g_lo) * (1.0 + 4.0 * EPS)
        top = high[:m, 0]
        if (top.any() or slack.any()) and self.is_flat(boxes):
            top, g, slack = np.zeros(m), np.zeros((m, n)), np.zeros((m, n))
        return Form(top, g, slack, self._definite(-A, R), value, self.scale)

    def values(self, boxes: Boxes) -> tuple[np.ndarray, np.ndarray]:
        """(lo, hi), (boxes,) each, of F by intervals alone."""
        low, high = self.enclosed(self._value, boxes, boxes.lo, boxes.hi)
        return low[:, 0], high[:, 0]

    def _definite(self, N: np.ndarray, R: np.ndarray) -> np.ndarray:
        """N minus a diagonal that bounds every symmetric matrix with entries within R.

        2 |x_i x_j| <= x_i^2 u_j / u_i + x_j^2 u_i / u_j for all u > 0; u is the Perron vector of the scaled R.
        """
        u = perron(R, self.scale) * self.scale
        cover = np.einsum("bij,bj->bi", np.minimum(R, 1e300), u) / u * (1.0 + 1e-12)
        return N - np.eye(len(self.scale)) * cover[:, None, :]

    @cached_property
    def kinks(self) -> Kinks:
        return Kinks(self.equations.graph, self.F, set(self.equations.x))

    @cached_property
    def _form(self) -> Program:
        return Program(self.equations.graph, self.expressions)

    @cached_property
    def _value(self) -> Program:
        return Program(self.equations.graph, [self.F], branches=True)

    def enclosed(self, program: Program, boxes: Boxes, lo: Any, hi: Any) -> tuple[np.ndarray, np.ndarray]:
        """Enclosures of expressions for x in [lo, hi] and angles and parameters in the boxes."""
        return program.enclosed(inputs(self.equations, boxes, lo, hi), len(boxes))


def lengths(e: Equations, half: np.ndarray) -> np.ndarray:
    """Lengths in each coordinate over which V' of the nominal model changes equally; the box's if undefined."""
    zero = np.zeros((1, len(half)))
    N = np.diag(Bounds(e, e.decrease, half).form(Boxes(zero, zero, e.model[None], e.model[None])).N[0])
    good = np.isfinite(N) & (1e-9 * np.abs(N).max(initial=0.0) < N) & (N < 1e200)
    return np.where(good, 1.0 / np.sqrt(np.where(good, N, 1.0)), half)


class Kinks:
    """Expressions whose constant sign excludes kinks of absolute values, minima and maxima in F."""

    def __init__(self, graph: Any, F: Any, x: set[int]):
        self.expressions = []
        for k in graph.needed([graph.operand(F)]):
            op, *rest = graph.nodes[k]
            if op in ("abs", "min", "max") and degree_in(graph, Symbol(graph, k), x):
                a, *b = (Symbol(graph, node) for node in rest)
                self.expressions.append(sub(a, *b) if b else a)
        self.program = Program(graph, self.expressions)

    def absent(self, intervals: Mapping[int, Any], boxes: int) -> np.ndarray:
        """(boxes,): whether F has no kink on a box."""
        low, high = self.program.enclosed(intervals, boxes)
        return np.asarray(((low >= 0.0) | (high <= 0.0)).all(1))


def key_of(graph: Any, node: int) -> tuple[int, int]:
    """(array, index) of an input's node."""
    return graph.nodes[node][1:]


def perron(R: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Approximate first eigenvectors (boxes, n), positive, of symmetric matrices in coordinates x / scale."""
    S = np.minimum(R, 1e200) * scale[:, None] * scale
    u = np.ones(S.shape[:2])
    for _ in range(8):
        u = np.einsum("bij,bj->bi", S, u)
        u = u / np.maximum(u.max(1, keepdims=True), 1e-300) + 1e-9
    return u


def scaled_eigenvalues(N: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Lower bound of the smallest eigenvalue (boxes,) in coordinates x / scale, (2n,) or (boxes, 2n)."""
    y = N * scale[..., :, None] * scale[..., None, :]
    return np.linalg.eigvalsh(y)[:, 0] - EIGENVALUE_ERROR * y.shape[1] * np.abs(y).max((1, 2))


def inputs(e: Equations, boxes: Boxes, lo: np.ndarray, hi: np.ndarray) -> dict[int, tuple[Any, Any]]:
    """The interval of every input: x in [lo, hi], angles and parameters in the boxes."""
    intervals: dict[int, tuple[Any, Any]] = {k: (x, x) for k, x in e.numbers.items()}
    intervals[e.loop.t.index] = e.times  # of all states; a loop that depends on time has it as a parameter, set below
    for i, node in enumerate(e.x):
        intervals[node] = moved(e.q_d[i], lo[:, i], hi[:, i]) if i < e.n else (lo[:, i], hi[:, i])
    errors = moved(-e.model, boxes.p_lo, boxes.p_hi)
    for k, (node, error) in enumerate(zip(e.parameters, e.errors)):
        intervals[node] = boxes.p_lo[:, k], boxes.p_hi[:, k]
        intervals[error] = errors[0][:, k], errors[1][:, k]
    if e.phases:
        intervals[e.loop.t.index] = (0.0, np.inf)
    low, high = positions(e, boxes, intervals)
    intervals |= {node: (low[:, i], high[:, i]) for i, node in enumerate(e.angles) if node is not None}
    if e.inverse:
        low, high = e.masses.enclosed(intervals, len(boxes))
        low, high = inverse(low.reshape(-1, e.n, e.n), high.reshape(-1, e.n, e.n))
        for k, node in enumerate(e.inverse):
            intervals[node] = low.reshape(len(boxes), -1)[:, k], high.reshape(len(boxes), -1)[:, k]
    return intervals


def positions(e: Equations, boxes: Boxes, intervals: Mapping[int, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Bounds (boxes, n) of q on the boxes, with the intervals of all other inputs."""
    lo, hi = boxes.lo[:, : e.n], boxes.hi[:, : e.n]
    if not e.places:
        return moved(e.q_d, lo, hi)
    return e.placed.enclosed({**intervals, **dict(zip(e.x[: e.n], zip(lo.T, hi.T)))}, len(boxes))


def inverse(lo: np.ndarray, hi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds (boxes, n, n) of the entries of M^-1 for all lo <= M <= hi; infinite unless all M are positive definite.

    With C approximately the inverse of the centre and |1 - C M| <= D: |M^-1 - C| <= (D + D^2 + ...) |C|, summed in the
    norm max |x_i| / u_i with the Perron vector u of D.
    """
    n = lo.shape[1]
    middle, radius = 0.5 * (lo + hi), 0.5 * (hi - lo) * (1.0 + 4.0 * EPS) + 4.0 * EPS * np.abs(lo + hi)
    good: Any = np.isfinite(middle).all((1, 2)) & np.isfinite(radius).all((1, 2))
    middle = np.where(good[:, None, None], middle, np.eye(n))
    good &= np.linalg.eigvalsh(middle)[:, 0] > 0.0
    middle = np.where(good[:, None, None], middle, np.eye(n))
    C = np.linalg.inv(middle)
    size = np.abs(C)
    D = np.abs(np.eye(n) - C @ middle) + size @ (
        np.where(good[:, None, None], radius, 0.0) + n * 4 * EPS * np.abs(middle)
    )
    u = np.ones((len(lo), n, 1))
    for _ in range(6):
        u = D @ u
        u = u / np.maximum(u.max(1, keepdims=True), 1e-300) + 1e-9
    share: Any = np.max((D @ u) / u, axis=(1, 2)) * (1.0 + 1e-12)
    Y = D @ size
    DY = D @ Y
    rest = share / np.maximum(1.0 - share, 1e-300)
    off = (Y + DY + rest[:, None, None] * u * (DY / u).max(1, keepdims=True)) * (1.0 + 1e-10)
    off = np.where((good & (share < 1.0))[:, None, None], off, np.inf)
    return C - off, C + off


def moved(by: Any, lo: np.ndarray, hi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The interval lo to hi, shifted, with outward rounding; exact for points without rounding."""
    a, b = lo + by, hi + by
    exact_a, exact_b = (a - by == lo) & (a - lo == by), (b - by == hi) & (b - hi == by)
    return np.where(exact_a, a, a - np.abs(a) * EPS), np.where(exact_b, b, b + np.abs(b) * EPS)


def settled(graph: Any, ends: list[Any]) -> list[Any]:
    """`ends` without the guards of derivatives against 0 times infinity, which intervals handle."""
    new: dict[int, Any] = {}
    for k in graph.needed([graph.operand(x) for x in ends]):
        node = graph.nodes[k]
        if node[0] == "where" and graph.nodes[node[1]][0] == "eq" and graph.nodes[node[2]][:2] == ("const", 0.0):
            w = graph.nodes[node[1]][1:]
            other = graph.nodes[node[3]]
            zero = any(graph.nodes[x][:2] == ("const", 0.0) for x in w)
            if zero and other[0] in ("mul", "neg") and _has_factor(graph, node[3], set(w)):
                new[k] = node[3]
    for k in new:  # replacements may be replaced themselves
        while new[k] in new:
            new[k] = new[new[k]]
    return ends if not new else substituted_chain(graph, ends, new)


def _has_factor(graph: Any, node: int, factors: set[int]) -> bool:
    op, *rest = graph.nodes[node]
    if node in factors and op != "const":
        return True
    return op in ("mul", "neg") and any(_has_factor(graph, x, factors) for x in rest)


def substituted_chain(graph: Any, ends: list[Any], new: Mapping[int, int]) -> list[Any]:
    """Like `substituted`, if replacements contain nodes that are replaced themselves."""
    values: dict[int, Any] = {}
    nodes = [graph.operand(x) for x in ends]
    for k in graph.needed(nodes):
        values[k] = None
    for k in sorted(values):
        values[k] = substituted(graph, [Symbol(graph, new.get(k, k))], {j: values[j] for j in values if j < k})[0]
    return [values[k] for k in nodes]


def symmetric(lo: np.ndarray, hi: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """(centre, radius), (boxes, n, n), of the symmetric matrices with these upper triangles."""
    rows, columns = np.triu_indices(n)
    middle, radius = np.empty((len(lo), n, n)), np.empty((len(lo), n, n))
    finite = np.isfinite(lo) & np.isfinite(hi)
    lo, hi = np.where(finite, lo, -1e300), np.where(finite, hi, 1e300)
    m = 0.5 * lo + 0.5 * hi
    r = np.maximum(hi - m, m - lo) * (1.0 + EPS)
    middle[:, rows, columns] = middle[:, columns, rows] = m
    radius[:, rows, columns] = radius[:, columns, rows] = r
    return middle, radius
