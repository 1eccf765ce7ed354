"""Independent check of Lyapunov certificates: enclosures by python-flint, quadratic forms in rational arithmetic.

It checks that the boxes cover the domain, and that each box is decided. For this it uses enclosures of the code in
another library's arithmetic and a factorisation L D L^T in fractions. The form, the fraction and the point that decide
a box are chosen in floating point, because any verified choice suffices. The lemmas are tested at other random points.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from fractions import Fraction
from typing import Any

import numpy as np

from geomctrl.errors import GeomctrlError
from geomctrl.tracing.proofs.certificates import saved_claim
from geomctrl.tracing.proofs.claims import Claim as SavedClaim
from geomctrl.tracing.proofs.rechecking import in_processes
from geomctrl.tracing.proofs.saved_code import Code
from geomctrl.tracing.traces import Trace

from .deciding import SHARES, bound_correction, correction_fractions, signs, tightened
from .equations import TIME
from .quadratic import Bounds, Boxes, Form, inverse, perron, scaled_eigenvalues, settled
from .resuming import uncovered_start
from .task import Task

MAX_PARTS = 60  # largest number of parts of one box


class CheckError(GeomctrlError):
    """A proof that can not be confirmed."""


def arrays(task: Task, lo: np.ndarray, hi: np.ndarray) -> dict[str, Any]:
    """A proved inequality as arrays, independent of classes of the library."""
    above = {} if task.above is None else {f"above_{k}": x for k, x in _code(task.above, task.box).items()}
    box, starts = task.box, task.starts
    return {
        **_code(task.bounds, box), **above,
        "ball": np.zeros(0) if task.ball is None else task.ball, "allowed": task.allowed, "level": task.level,
        "starts_lo": starts[0], "starts_hi": starts[1],
        "monotone": np.array(task.bounds.equations.monotone, int) + len(task.bounds.equations.x),
        "domain": np.concatenate(box.ends), "lo": lo, "hi": hi,
    }  # fmt: skip


def _code(bounds: Bounds, box: Boxes) -> dict[str, Any]:
    """F with its derivatives and the entries of M as saved code."""
    e = bounds.equations
    kinks = [] if bounds.degree <= 3 else settled(e.graph, bounds.kinks.expressions)
    with_angle = [i for i, k in enumerate(e.angles) if k is not None]
    places = [e.places[i] for i in with_angle] if e.places else []
    outputs = [e.graph.operand(x) for x in (*bounds.expressions, *kinks, *e.mass, *places)]
    time = [] if e.timed else [e.loop.t.index]
    groups = [e.x, [k for k in e.angles if k is not None], e.parameters, e.errors, e.inverse, time]
    coordinates = tuple(tuple(e.graph.nodes[k][1:]) for group in groups for k in group)
    n = len(coordinates)
    trace = Trace(e.graph, (), tuple(outputs), (len(outputs),), None)
    claim = SavedClaim(trace, np.zeros(n), np.zeros(n), coordinates, e.loop.numbers, True)
    return {
        "code": saved_claim(claim)["claim"], "numbers": e.loop.numbers, "q_d": e.q_d, "model": e.model,
        "with_angle": np.array(with_angle), "places": len(places),
        "degree": bounds.degree, "scale": bounds.scale, "inverse": len(e.inverse),
        "kinks": len(kinks), "timed": e.timed, "flat": bounds.is_flat(box),
    }  # fmt: skip


def recheck(tasks: Mapping[str, Task], lemmas: Sequence[Any], leaves: Mapping[str, Any], processes: int = 1) -> str:
    """Check the boxes of each inequality (tasks by statement) and the lemmas at other points; returns a summary.

    Raises CheckError if something can not be confirmed.
    """
    boxes = cuts = 0
    for k, (statement, task) in enumerate(tasks.items()):
        n = len(task.box.lo[0])
        lo, hi = (np.asarray(leaves[f"{k}_{end}"], float) for end in ("lo", "hi"))
        if lo.shape != hi.shape or lo.ndim != 2 or lo.shape[1] != n + len(task.box.p_lo[0]) or not len(lo):
            raise CheckError(f"{statement}: expected boxes with {n + len(task.box.p_lo[0])} sides, got {lo.shape}")
        here, taken = check(arrays(task, lo, hi), statement, processes)
        boxes, cuts = boxes + here, cuts + taken
    for k, lemma in enumerate(lemmas):
        if not lemma.holds(1000 + k):
            raise CheckError(f"not an identity: {lemma.claim}")
    message = f"confirmed with python-flint: {len(tasks)} inequalities on {boxes} boxes ({cuts} evaluated)"
    return f"{message}; {len(lemmas)} lemmas at other points"


class Inequality:
    """A saved inequality, evaluated with python-flint."""

    def __init__(self, saved: Any, prefix: str = ""):
        self.saved = {
            k: saved[prefix + k] for k in ("code", "numbers", "q_d", "model", "with_angle", "degree", "scale")
        }
        self.inverses, self.flat = int(saved[prefix + "inverse"]), bool(saved[prefix + "flat"])
        self.places = int(saved[prefix + "places"])
        self.kinks, self.timed = int(saved[prefix + "kinks"]), bool(saved[prefix + "timed"])
        self.code = Code(json.loads(str(self.saved["code"])), np.asarray(self.saved["numbers"], float).ravel())
        self.arb = self.code.arithmetic.arb
        self.n = len(self.saved["scale"])
        self.degree = float(self.saved["degree"])

    def form(self, lo: np.ndarray, hi: np.ndarray) -> tuple[Any, ...]:
        """(value, top, (g, slack), N, R): fractions that bound F on a box of (x, parameters), or None."""
        n = self.n
        zero = self._values(lo, hi, np.zeros(n), np.zeros(n))
        x_lo, x_hi = lo[:n], hi[:n]
        there = self._values(lo, hi, x_lo, x_hi)
        value = None if self.first is None else self.first[1]
        outer = there if self.degree <= 3 else self._values(lo, hi, np.minimum(x_lo, 0.0), np.maximum(x_hi, 0.0))
        count = n * (n + 1) // 2
        H0, H1, gradient = zero[1 + n : 1 + n + count], outer[1 + n : 1 + n + count], zero[1 : 1 + n]
        kinks = outer[1 + n + count :][: self.kinks]  # F too must be free of undecided branches and cuts of angles
        jumps = self.degree > 3 and (outer[0] is None or not all(k and (k[0] >= 0 or k[1] <= 0) for k in kinks))
        if jumps or zero[0] is None or None in H0 or None in H1 or None in gradient:
            return value, None, None, None, None
        share = (Fraction(1, 2), Fraction(0)) if self.degree <= 2 else (Fraction(1, 3), Fraction(1, 6))
        share = share if self.degree <= 3 else (Fraction(0), Fraction(1, 2))
        N, R = ([[Fraction(0)] * n for _ in range(n)] for _ in range(2))
        for k, (i, j) in enumerate(zip(*np.triu_indices(n))):
            parts = [(w * (b + a) / 2, w * (b - a) / 2) for w, (a, b) in zip(share, (H0[k], H1[k]))]
            N[i][j] = N[j][i] = -parts[0][0] - parts[1][0]
            R[i][j] = R[j][i] = parts[0][1] + parts[1][1]
        slope = [((a + b) / 2, (b - a) / 2) for a, b in gradient]
        if self.flat:  # proved separately as an identity
            return value, Fraction(0), [(Fraction(0), Fraction(0))] * n, N, R
        return value, zero[0][1], slope, N, R

    def _values(self, lo: np.ndarray, hi: np.ndarray, x_lo: np.ndarray, x_hi: np.ndarray) -> list[Any]:
        """Enclosures of the outputs, pairs of fractions or None, for x in [x_lo, x_hi]."""
        n, arb, saved = self.n, self.arb, self.saved
        half = len(saved["q_d"])
        q_d, model = [arb(float(x)) for x in saved["q_d"]], [arb(float(x)) for x in saved["model"]]

        def interval(a: Any, b: Any, by: Any = None) -> Any:
            by = arb(0) if by is None else by
            return self.code.arithmetic.hull(arb(float(a)) + by, arb(float(b)) + by)

        box = [interval(x_lo[i], x_hi[i], q_d[i] if i < half else None) for i in range(n)]
        with_angle = np.asarray(saved["with_angle"], int)
        angles = [interval(lo[i], hi[i], q_d[i]) for i in with_angle]
        box += [interval(lo[n + k], hi[n + k]) for k in range(len(model))]
        box += [interval(lo[n + k], hi[n + k], -m) for k, m in enumerate(model)]
        rest = [] if self.timed else [interval(TIME, TIME)]
        unknown = [interval(0.0, 0.0)] * self.inverses
        if self.places:  # the angles depend on the errors of the whole box, and on time
            errors = [interval(lo[i], hi[i]) for i in range(n)]
            ends = self._enclosures([*errors, *angles, *box[n:], *unknown, *rest])[-self.places :]
            angles = [None if x is None else interval(*x) for x in ends]
        box[n:n] = angles
        if self.inverses:
            outputs = self._enclosures([*box, *unknown, *rest])
            box += self._inverse(outputs[len(outputs) - self.places - self.inverses :][: self.inverses], half)
        return self._enclosures([*box, *rest])

    def _enclosures(self, box: list[Any]) -> list[Any]:
        values, smooth = self.code.forward(box)
        first, out = values[self.code.outputs[0]], []  # F itself may contain undecided branches
        self.first = None if first is None else (_fraction(first[0], -1), _fraction(first[1], 1))
        for k in self.code.outputs:
            is_known = values[k] is not None and smooth[k]
            out.append((_fraction(values[k][0], -1), _fraction(values[k][1], 1)) if is_known else None)
        return out

    def _inverse(self, entries: list[Any], n: int) -> list[Any]:
        """Bounds of M^-1 from floating point, verified in fractions: |1 - C M| u < u and |M^-1 - C| <= off."""
        arb = self.arb
        if None in entries:
            return [None] * len(entries)
        lo, hi = (np.array([float(x[k]) for x in entries]).reshape(1, n, n) for k in (0, 1))
        bounds = inverse(np.nextafter(lo, -np.inf), np.nextafter(hi, np.inf))
        if not np.isfinite(bounds[0]).all():
            return [None] * len(entries)
        C = [[Fraction(float(x)) for x in row] for row in 0.5 * (bounds[0] + bounds[1])[0]]
        margin = 0.5 * (bounds[1] - bounds[0]) * (1.0 + 1e-6)
        off = [[Fraction(float(x)) for x in row] for row in margin[0]]
        M = [[entries[n * i + j] for j in range(n)] for i in range(n)]
        D = [[_largest_entry(C, M, i, j) for j in range(n)] for i in range(n)]
        size = [[sum(D[i][k] * abs(C[k][j]) for k in range(n)) for j in range(n)] for i in range(n)]
        # off >= D |C| + D off implies off >= (D + D^2 + ...) |C|, because D off <= off and D has no fixed point
        good = all(
            size[i][j] + sum(D[i][k] * off[k][j] for k in range(n)) < off[i][j] for i in range(n) for j in range(n)
        )
        if not (good and positive_definite(C)):
            return [None] * len(entries)
        ends = [(c - d, c + d) for row, widths in zip(C, off) for c, d in zip(row, widths)]
        return [self.code.arithmetic.hull(arb(float(_fraction(a, -1))), arb(float(_fraction(b, 1)))) for a, b in ends]


def _largest_entry(C: Any, M: Any, i: int, j: int) -> Fraction:
    """The largest |(1 - C M)_ij| for M within its intervals."""
    lo = hi = Fraction(int(i == j))
    for k, c in enumerate(C[i]):
        a, b = sorted((-c * M[k][j][0], -c * M[k][j][1]))
        lo, hi = lo + a, hi + b
    return max(abs(lo), abs(hi))


def _fraction(x: Any, side: int) -> Fraction:
    """A floating-point number outside an arb or a fraction, as a fraction."""
    near = float(x)
    return Fraction(near if x == near else float(np.nextafter(near, side * np.inf)))


def decided(f: tuple[Any, ...], lo: Any, hi: Any, ball: np.ndarray, allowed: float, scale: np.ndarray) -> bool:
    """Whether F < allowed on the box, outside the ball (without ball and with allowed zero: for x != 0)."""
    value, top, slope, N, R = f
    limit = Fraction(float(allowed))
    if value is not None and value < limit:
        return True
    if top is None:
        return False
    n = len(slope)
    u = [Fraction(float(x)) for x in perron(np.array(R, float)[None], scale)[0] * scale]
    cover = [sum(R[i][j] * u[j] for j in range(n)) / u[i] for i in range(n)]
    P = [[N[i][j] - (cover[i] if i == j else 0) for j in range(n)] for i in range(n)]
    return _far(P, top, slope, lo, hi, ball, limit, scale) or _near(P, top, slope, ball, limit, scale)


def _near(P: Any, top: Fraction, slope: Any, ball: np.ndarray, limit: Fraction, scale: np.ndarray) -> bool:
    n, slope = len(slope), [abs(g) + slack for g, slack in slope]
    weights = [max(P[i][i], Fraction(1, 10**300)) for i in range(n)]
    for share in SHARES if any(slope) else (0.0,):
        s = Fraction(share)
        cost = top - limit + sum((g * g / (4 * s * w) for g, w in zip(slope, weights) if g), Fraction(0))
        if not len(ball) and cost > 0:
            continue
        hold = max(cost, Fraction(0)) if len(ball) else Fraction(0)
        rest = [row[:] for row in P]
        for i in range(n):
            rest[i][i] -= s * weights[i] + (hold / Fraction(float(ball[i])) ** 2 if len(ball) else 0)
        if scaled_eigenvalues(np.array(rest, float)[None], scale)[0] > 0.0 and positive_definite(rest):
            return True
    return False


def _far(
    P: Any, top: Fraction, slope: Any, lo: Any, hi: Any, ball: np.ndarray, limit: Fraction, scale: np.ndarray
) -> bool:
    boxes = Boxes(np.array(lo)[None], np.array(hi)[None], np.zeros((1, 0)), np.zeros((1, 0)))
    g, slack = [x for x, _ in slope], [x for _, x in slope]
    parts = np.array([g], float), np.array([slack], float), np.array(P, float)[None]
    form = Form(np.array([float(top)]), *parts, np.array([np.inf]), scale)
    outside = ball if len(ball) else None
    for share, hold in correction_fractions(form, outside):
        h, t = bound_correction(form, boxes, share, outside, hold)
        there = tightened(form, boxes, h, t, outside)
        hs, ts = [Fraction(float(x)) for x in h[0]], Fraction(float(t[0]))
        squares = [s / (2 * x) if x else Fraction(0) for s, x in zip(slack, hs)]
        if outside is not None:
            squares = [x + ts / Fraction(float(b)) ** 2 for x, b in zip(squares, ball)]
        Q = [[P[i][j] - (squares[i] if i == j else 0) for j in range(len(g))] for i in range(len(g))]
        linear = [x + int(sign) * s for x, s, sign in zip(g, slack, signs(boxes)[0])]
        rest = [s if kept else Fraction(0) for s, kept in zip(slack, there.slack[0])]
        cost = top - ts + sum(s * x / 2 for s, x in zip(slack, hs))
        if _below(there, boxes, Q, cost, linear, rest, limit):
            return True
    return False


def _below(form: Form, boxes: Boxes, P: Any, top: Fraction, g: Any, slack: Any, limit: Fraction) -> bool:
    """Whether top + g . x + slack . |x| - x . P x < limit on the box, using the choice of `form` in floating point."""
    form, lift, _ = form.lifted(boxes)
    if not np.isfinite(lift[0]).all():
        return False
    n, lifts = len(g), [Fraction(float(x)) for x in lift[0]]
    P = [[P[i][j] + (lifts[i] if i == j else 0) for j in range(n)] for i in range(n)]
    c = [Fraction(float(x)) for x in form.least(boxes)[0]]
    a, b = ([Fraction(float(x)) for x in ends[0]] for ends in (boxes.lo, boxes.hi))
    Pc = [sum(P[i][j] * c[j] for j in range(n)) for i in range(n)]
    plane = [x - 2 * y for x, y in zip(g, Pc)]
    linear = sum(max(s * x, s * y) for s, x, y in zip(plane, a, b)) + sum(x * y for x, y in zip(Pc, c))
    reach = [max(abs(x), abs(y)) for x, y in zip(a, b)]
    lost = sum(s * x for s, x in zip(slack, reach)) + sum(s * x * x for s, x in zip(lifts, reach))
    return top + linear + lost < limit and positive_definite(P)


def positive_definite(A: Sequence[Sequence[Fraction]]) -> bool:
    """Whether A is positive definite, by an exact L D L^T factorisation."""
    A, n = [list(row) for row in A], len(A)
    for j in range(n):
        if A[j][j] <= 0:
            return False
        for i in range(j + 1, n):
            factor = A[i][j] / A[j][j]
            for k in range(i, n):
                A[i][k] -= factor * A[j][k]
                A[k][i] = A[i][k]
    return True


def starts_at_all_ends(domain: np.ndarray, lo: np.ndarray, hi: np.ndarray, monotone: np.ndarray) -> bool:
    """Whether the boxes are the domain, or one for each choice of ends of some monotone parameters."""
    fixed = (lo == hi).all(0) & (domain[0] < domain[1])
    whole = (lo[:, ~fixed] == domain[0, ~fixed]).all() and (hi[:, ~fixed] == domain[1, ~fixed]).all()
    ends = {tuple(row) for row in lo[:, fixed].tolist()}
    wanted = set(itertools.product(*domain[:, fixed].T.tolist()))
    return bool(whole and set(np.flatnonzero(fixed)) <= set(monotone.tolist()) and wanted <= ends)


class Checker:
    """A saved inequality, whose boxes are checked one at a time."""

    def __init__(self, saved: Any):
        self.domain, self.lo, self.hi = (np.asarray(saved[k], float) for k in ("domain", "lo", "hi"))
        self.F = Inequality(saved)
        self.above = Inequality(saved, "above_") if "above_code" in saved else None
        self.ball, self.n, self.scale = np.asarray(saved["ball"], float), self.F.n, self.F.saved["scale"]
        self.allowed, self.level = float(saved["allowed"]), float(saved["level"])

    def cuts(self, leaf: int) -> int | None:
        """The number of parts of a box that are needed to decide all of them; None beyond `MAX_PARTS`."""
        waiting, taken = [(self.lo[leaf], self.hi[leaf])], 0
        with self.F.code.arithmetic.precision():
            while waiting:  # a box that floating point barely decides is divided
                a, b = waiting.pop()
                taken += 1
                if self._holds(a, b):
                    continue
                if taken > MAX_PARTS:
                    return None
                k = int(np.argmax((b - a) / np.maximum(self.domain[1] - self.domain[0], 1e-300)))
                below, over = b.copy(), a.copy()
                below[k] = over[k] = 0.5 * (a[k] + b[k])
                waiting += [(a, below), (over, b)]
        return taken

    def _holds(self, a: np.ndarray, b: np.ndarray) -> bool:
        n, ball = self.n, self.ball
        if len(ball):
            reach = [Fraction(max(abs(float(x)), abs(float(y)))) for x, y in zip(a[:n], b[:n])]
            if sum((x / Fraction(float(r))) ** 2 for x, r in zip(reach, ball)) <= 1:
                return True
        if decided(self.F.form(a, b), a[:n], b[:n], ball, self.allowed, self.scale):
            return True
        above = self.above
        return above is not None and decided(above.form(a, b), a[:n], b[:n], np.zeros(0), -self.level, self.scale)


def check(saved: Any, statement: str, processes: int = 1) -> tuple[int, int]:
    """(boxes, boxes after division) of a confirmed inequality; raises CheckError otherwise."""
    domain, lo, hi = (np.asarray(saved[k], float) for k in ("domain", "lo", "hi"))
    starts = saved["starts_lo"], saved["starts_hi"]
    reason = uncovered_start(domain, starts, lo, hi)
    if reason is not None:
        raise CheckError(f"{statement}: {reason}")
    if not starts_at_all_ends(domain, *starts, saved["monotone"]):
        raise CheckError(f"{statement}: the first boxes do not cover the domain")
    boxes = 0
    with closing(in_processes(min(processes, len(lo)), Checker, saved, Checker.cuts, len(lo))) as counts:
        for leaf, taken in enumerate(counts):
            if taken is None:
                a, b = lo[leaf].tolist(), hi[leaf].tolist()
                raise CheckError(f"{statement}: not shown on the box from {a} to {b}")
            boxes += taken
    return len(lo), boxes
