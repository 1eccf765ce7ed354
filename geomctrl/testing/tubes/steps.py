"""Enclosures of the solutions of y' = f(y) by Taylor models, one time step after the other.

The states of all solutions at time t are a set {P(e) + F s: all |e_j| and |s_k| <= 1}: P is a polynomial of order 2 in
the initial symbols e, and F s is a sum of parallelepipeds for everything that is not known as a polynomial. A step to
t + h:

1. An a priori enclosure E of the solutions for all times of the step. Each solution x(t + s) is its own parabola
   p(s) = x + c s + d s^2 plus g(s). While |g| <= G, g' = f - p' is in f(E) - p'. If h |f(E) - p'| <= G in every
   coordinate, then |g| <= G for the whole step (Picard and Lindeloef; Makino and Berz 2003).
2. The Taylor series of the solution in time from the set, to order K, with Lagrange's remainder: coefficient K + 1 on
   E. Where f is not smooth on E, because a branch is not decided there, the state at the end is p(h) + [-G, G] instead.
3. P is kept unchanged. The step's error, a box, gets symbols of its own, so that the flow contracts it as it contracts
   the set. When all symbols of `SYMBOL_STEPS` steps are in use, these boxes and the old frame are enclosed in a new
   frame Q: a QR factorisation of all columns in order of length, each state in units of its own width (Lohner 1987;
   Nedialkov, Jackson and Corliss 1999, section 6; Kuehn 1998 for sums of boxes).

Parameters and held inputs are states at rest, and time is a state of rate 1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from geomctrl.kernels import taylor_models
from geomctrl.kernels.taylor_functions import ALL, EPS, ERR, LEAST, UP
from geomctrl.tracing.proofs.operation_rows import OperationRows

PICARD_ITERATIONS = 12
SYMBOL_STEPS = 16  # steps whose errors have symbols of their own
MAX_SPARE = 256  # symbols of errors within a law
INFLATION = 1.2  # of the a priori enclosure per iteration
MIN_STEP_RATIO = 2.0**-16  # shortest step relative to the duration
MAX_GROWTH = 1e3  # of the widths, relative to the initial ones and to 1: the enclosure has blown up
NEGLIGIBLE = 1e-3  # error of a step without Taylor series, relative to the widths; half width relative to the numbers
MAX_HALVED_STEP_ERROR = 0.8  # error of two half steps relative to that of one step
STEP_TOLERANCE = 1e-4  # remainder of a step relative to the widths of the set, per step


@dataclass(frozen=True)
class Layout:
    """Symbols of the rows: `initial` ones, one for time, per moving state one of the frame, `recent` ones of errors of
    the last steps, and one of G; and `spare` ones.
    """

    initial: int
    moving: int
    recent: int = 1
    spare: int = 0

    @cached_property
    def symbols(self) -> int:
        return self.initial + 1 + (2 + self.recent) * self.moving + self.spare

    @cached_property
    def quadratic(self) -> int:
        """The number of symbols with quadratic coefficients: the initial ones, time and those of the frame."""
        return self.initial + 1 + self.moving

    @cached_property
    def coefficients(self) -> int:
        return 1 + self.symbols + self.quadratic * (self.quadratic + 1) // 2

    @property
    def time(self) -> int:
        return self.initial + 1

    def group(self, k: int) -> slice:
        """Columns of the frame (k = 0), of recent errors (1 to `recent`) and of G (the last)."""
        start = self.initial + 2 + k * self.moving
        return slice(start, start + self.moving)

    @property
    def frame(self) -> slice:
        return self.group(0)

    @property
    def remnants(self) -> slice:
        """The columns of the frame and of recent errors."""
        return slice(self.frame.start, self.defect.start)

    @property
    def defect(self) -> slice:
        return self.group(self.recent + 1)

    @cached_property
    def dropped(self) -> np.ndarray:
        """The quadratic coefficients that a step does not keep: all that are not of two initial symbols."""
        _, j = np.triu_indices(self.quadratic)
        return 1 + self.symbols + np.flatnonzero(j >= self.initial)

    def polynomial(self, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """b and the symmetric A of the part c + b.e + e.A e of a row that has initial symbols e only."""
        n = self.initial
        A, (i, j) = np.zeros((n, n)), np.triu_indices(self.quadratic)
        kept = j < n
        A[i[kept], j[kept]] = 0.5 * row[1 + self.symbols : ERR][kept]
        return row[1 : 1 + n], A + A.T

    def forms(self, C: np.ndarray, err: np.ndarray | float = 0.0) -> np.ndarray:
        """Rows of Taylor models from coefficients and bounds of errors."""
        m = self.symbols
        lin, quad = np.abs(C[:, 1 : m + 1]).sum(1) * UP, np.abs(C[:, m + 1 :]).sum(1) * UP
        return np.ascontiguousarray(np.column_stack([C, err + 0.0 * lin, (lin + quad + err) * UP, lin, quad]))

    def plus(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        C = a[:, :ERR] + b[:, :ERR]
        return self.forms(C, (a[:, ERR] + b[:, ERR] + EPS * np.abs(C).sum(1)) * UP)

    def times(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The products of row a with rows b."""
        return np.array([taylor_models.product_many(a, x, self.symbols, self.quadratic) for x in b]).reshape(b.shape)

    def box(self, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
        """Rows of a box; its sides of positive length get the initial symbols in order."""
        wide = np.flatnonzero(hi > lo)
        centre = np.where(lo == hi, lo, 0.5 * lo + 0.5 * hi)
        C = np.zeros((len(lo), self.coefficients))
        C[:, 0] = centre
        half = np.nextafter(np.maximum(hi - centre, centre - lo), np.inf)
        C[wide, 1 + np.arange(len(wide))] = half[wide]
        return self.forms(C)


def bounds(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(lower, upper) bounds of rows."""
    return np.nextafter(X[..., 0] - X[..., ALL], -np.inf), np.nextafter(X[..., 0] + X[..., ALL], np.inf)


@dataclass(frozen=True, eq=False)
class Segment:
    """An enclosure E (rows) of all states at the times from start to end, and bounds of the states at `end`."""

    start: float
    end: float
    E: np.ndarray
    lo: np.ndarray
    hi: np.ndarray

    @cached_property
    def hull(self) -> tuple[np.ndarray, np.ndarray]:
        return bounds(self.E)


@dataclass(frozen=True, eq=False)
class Dynamics:
    """y' = f(y) with `moving` states, then `resting` ones of rate zero, then time.

    rows: the operations of f; further row 0 is the condition under which f exists, or there is none. The last
    `commands` moving states are set to the values of `law` at the times 0, control_dt, 2 control_dt and so on.
    """

    rows: OperationRows
    moving: int
    law: OperationRows | None = None
    commands: int = 0
    control_dt: float | None = None

    @property
    def states(self) -> int:
        return self.rows.states

    def start(self, x: np.ndarray) -> np.ndarray:
        """All states at time 0, before the first sample, from the others."""
        n = self.moving - self.commands
        return np.concatenate([x[:n], np.zeros(self.commands), x[n:], [0.0]])

    def series(self, layout: Layout, X: np.ndarray, order: int, hulls: bool = False) -> tuple[np.ndarray, np.ndarray]:
        return series(self.rows, layout, X, order, hulls)


def series(
    rows: OperationRows, layout: Layout, X: np.ndarray, order: int, hulls: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """(Taylor coefficients (states, order + 1, width), further rows) of operations at the states X."""
    coefficients = np.zeros((len(X), order + 1, X.shape[1]))
    values = np.zeros((len(rows.further), X.shape[1]))
    taylor_models.series_many(
        rows.rows, rows.constants, rows.rates, rows.further, X, order, layout.symbols, layout.quadratic,
        layout.symbols - layout.spare + 1, hulls, coefficients, values,
    )  # fmt: skip
    return coefficients, values


def sample_times(control_dt: float | None, end: float) -> np.ndarray:
    """Times at which a held command changes, from 0 on, and the end."""
    times = np.arange(1.0 if control_dt is None else np.ceil(end / control_dt) + 1.0) * (control_dt or 0.0)
    return np.append(times[times < end], end)


class Enclosure:
    """The set of states of all solutions from a box, at the current time; `advance` moves it to a later time.

    `largest_rest`: half width of what is not known as a polynomial of the initial state, relative to the largest half
    width of the polynomial so far, above which `advance` ends. Default: none.
    """

    def __init__(self, dynamics: Dynamics, lo: np.ndarray, hi: np.ndarray, order: int, recent: int = SYMBOL_STEPS):
        self.dynamics, self.order, self.t = dynamics, order, 0.0
        self.layout = Layout(int((hi[:-1] > lo[:-1]).sum()), dynamics.moving, recent)
        self.X = self.layout.box(lo, hi)
        self.scale = np.maximum(0.5 * (hi - lo)[: dynamics.moving], 0.0)
        self.width, self.largest_rest = self.scale, np.inf

    def hold(self, law: OperationRows, states: slice, as_symbols: bool = False) -> bool:
        """Set states to the values of a law at the current states, with new symbols for errors; False if undefined."""
        end, commands = 1 + self.layout.symbols, states.stop - states.start
        layout = dataclasses.replace(self.layout, spare=min(law.nonlinear, MAX_SPARE))
        _, values = series(law, layout, np.insert(self.X, [end] * layout.spare, 0.0, axis=1), 1)
        if not np.isfinite(values[:commands, 0]).all() or (len(values) > commands and values[-1, 0] != 1.0):
            return False
        spare = slice(end, end + layout.spare)
        err = (values[:commands, ERR] + np.abs(values[:commands, spare]).sum(1)) * UP
        self.X[states] = self.layout.forms(np.delete(values[:commands, :ERR], spare, 1), err)
        if as_symbols:
            moving = self.X[: self.layout.moving]
            X = self._reframed(moving[:, :ERR].copy(), moving[:, ERR].copy())
            if X is None:
                return False
            self.X = X
        return True

    def until(
        self, t_end: float, step: float, shortest: float, report: Callable[[float], Any] = lambda fraction: None
    ) -> list[Segment]:
        """The segments up to time t_end, or as far as possible, with samples of the law at `sample_times`."""
        segments: list[Segment] = []
        d, longest = self.dynamics, step
        for end in sample_times(d.control_dt, t_end)[1:].tolist():
            if d.law is not None and not self.hold(d.law, slice(d.moving - d.commands, d.moving), as_symbols=True):
                break
            more, step = self.advance(end, step, shortest, lambda x, end=end: report(x * end / t_end))
            segments += more
            step = min(2.0 * step, longest)
            if self.t < end:
                break
        return segments

    def advance(
        self, end: float, step: float, shortest: float, report: Callable[[float], Any] = lambda fraction: None
    ) -> tuple[list[Segment], float]:
        """(The segments up to time `end`, or up to the time where no step succeeds; the last step size)."""
        segments: list[Segment] = []
        while self.t < end:
            c, taylor = self._series()
            result, h = None, 0.0
            while result is None or (result[2] > 1.0 and step > 16.0 * shortest):
                h = step if step < (end - self.t) * (1.0 - 2.0**-20) else end - self.t
                result = self._step(c, taylor, h)
                if result is None or result[2] > 1.0:
                    while step > h * (1.0 - 2.0**-20):
                        step *= 0.5
                    if step < shortest:
                        return segments, step
            X, E, error = result
            if not self._is_bounded(X):
                return segments, step  # at the time before the step, so that no time is left out
            start, self.t, self.X = self.t, self.t + h if h < end - self.t else end, X
            self.X[-1, 0] = self.t
            segments.append(Segment(start, self.t, E, *bounds(X)))
            report(self.t / end)
            if error < 2.0 ** -(self.order + 2) and h == step and self.t % (2.0 * step) == 0.0:
                step *= 2.0
        return segments, step

    def _is_bounded(self, X: np.ndarray) -> bool:
        """Whether a set X is narrow enough to continue from; updates `width`."""
        X, layout = X[: self.dynamics.moving], self.layout
        rest = np.abs(X[:, layout.remnants]).sum(1) + X[:, ERR]
        self.width = np.maximum(self.width, X[:, ALL] - rest)
        least = NEGLIGIBLE * np.maximum(1.0, np.abs(X[:, 0]))
        if (rest > self.largest_rest * np.maximum(self.width, least)).any():
            return False
        return bool((X[:, ALL] <= MAX_GROWTH * max(1.0, float(self.scale.max(initial=0.0)))).all())

    def _series(self) -> tuple[np.ndarray, bool]:
        """Taylor coefficients of the current set, and whether they are those of a smooth function."""
        c, _ = self.dynamics.series(self.layout, self.X, self.order)
        if np.isfinite(c[:, :, 0]).all():
            return c, True
        return self.dynamics.series(self.layout, self.X, 2, hulls=True)[0], False

    def endpoint(self, h: float) -> np.ndarray | None:
        """The rows of the moving states after h, in as few steps as succeed; None if none do."""
        start = self.X
        for parts in (1, 4, 16):
            self.X, self.t = start, 0.0
            for _ in range(parts):
                result = self._step(*self._series(), h / parts)
                if result is None:
                    break
                self.X, self.t = result[0], self.t + h / parts
                self.X[-1, 0] = self.t
            else:
                return self.X[: self.dynamics.moving]
        return None

    def during(self, h: float) -> np.ndarray | None:
        """Rows that contain the states at all times up to h; None if h is too large for one step."""
        a_priori = self._a_priori(self._series()[0], h)
        return None if a_priori is None else a_priori[0]

    def _step(self, c: np.ndarray, taylor: bool, h: float) -> tuple[np.ndarray, np.ndarray, float] | None:
        """(State after h, enclosure meanwhile, error relative to the tolerance); None if h is too large."""
        result = self._moved(c, taylor, h)
        if result is None:
            return None
        total, err, E, error = result
        X = self._reframed(total, err)
        return None if X is None else (X, E, error)

    def _moved(self, c: np.ndarray, taylor: bool, h: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, float] | None:
        n, layout = self.dynamics.moving, self.layout
        a_priori = self._a_priori(c, h)
        if a_priori is None:
            return None
        E, G = a_priori
        width = np.maximum(self.X[:n, ALL], 1e-9 * np.maximum(1.0, np.abs(self.X[:n, 0])))
        K = self.order
        last = self.dynamics.series(layout, E, K + 1)[0][:n, K + 1] if taylor else np.full_like(E[:n], np.nan)
        smooth = bool(np.isfinite(last).all())
        if smooth:
            lo, hi = bounds(last)
            start = 0.5 * lo + 0.5 * hi
            rest = (0.5 * (hi - lo) + EPS * (np.abs(lo) + np.abs(hi))) * UP + LEAST
            error = float((h ** (K + 1) * rest / width).max())
            if error <= STEP_TOLERANCE or error <= float((G / width).max()):  # large near a root of zero
                total, err = self._horner(c[:n], K, h, start, rest)
                return total, err, E, error / STEP_TOLERANCE
        total, err = self._horner(c[:n], 2, h, np.zeros(n), np.zeros(n))
        err = (err + G) * UP
        return total, err, E, self._excess(c, h, G / width)

    def _excess(self, c: np.ndarray, h: float, error: np.ndarray) -> float:
        """A number above 1 if two steps of h / 2 have a clearly smaller error than one without a Taylor series.

        error: of this step, relative to the widths.
        """
        if error.max() < NEGLIGIBLE:
            return 0.0
        half = self._a_priori(c, 0.5 * h)
        if half is None:
            return 0.0
        n = self.dynamics.moving
        width = np.maximum(self.X[:n, ALL], 1e-9 * np.maximum(1.0, np.abs(self.X[:n, 0])))
        ratio = 2.0 * float((half[1] / width).max()) / float(error.max())
        return 2.0 if ratio < MAX_HALVED_STEP_ERROR else 0.5 if ratio < 0.5 * (1.0 + MAX_HALVED_STEP_ERROR) else 0.0

    def _horner(
        self, c: np.ndarray, order: int, h: float, start: np.ndarray, rest: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(Coefficients, errors) of the sum of c_k h^k for k <= order, and of (start +- rest) h^(order + 1).

        Multiplication by h is off by the rounding of the product and of h, half an EPS each.
        """
        total, err = np.zeros_like(c[:, 0, :ERR]), rest
        total[:, 0] = start
        for k in range(order, -1, -1):
            total *= h
            size = np.abs(total).sum(1)
            total += c[:, k, :ERR]
            size += np.abs(total).sum(1)
            err = (err * h + c[:, k, ERR] + EPS * size) * UP + LEAST
        return total, err

    def _a_priori(self, c: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray] | None:
        """(Rows that contain all solutions for times 0..h, bounds G of their distance from parabolas), or None."""
        n, layout, X = self.dynamics.moving, self.layout, self.X
        t = np.zeros((1, layout.coefficients))
        t[0, 0] = t[0, layout.time] = 0.5 * h
        t = layout.forms(t, EPS * h)  # h is the difference of two times, which is rounded
        one, two = np.ascontiguousarray(c[:n, 1]), np.ascontiguousarray(c[:n, 2])
        moved = layout.plus(one, layout.times(t[0], two))
        P = np.concatenate([layout.plus(X[:n], layout.times(t[0], moved)), X[n:-1], layout.plus(X[-1:], t)])
        slope = layout.plus(one, layout.times(t[0], layout.plus(two, two)))
        slope[:, :ERR] *= -1.0
        G = 1e-14 * np.maximum(np.abs(X[:n, 0]), 1e-3) + 1e-3 * h * X[:n, ALL]
        G[n - self.dynamics.commands :] = LEAST  # held commands do not move
        for _ in range(PICARD_ITERATIONS):
            E = self._widened(P, G)
            rates, further = self.dynamics.series(layout, E, 1)
            distance = np.abs(bounds(layout.plus(rates[:n, 1], slope))).max(0) * h * UP
            if not np.isfinite(distance).all():
                return None
            if (distance <= G).all():
                return (E, G) if len(further) == 0 or further[0, 0] == 1.0 else None
            G = np.maximum(G, INFLATION * distance)
        return None

    def _widened(self, P: np.ndarray, G: np.ndarray) -> np.ndarray:
        """P plus the symbols of G."""
        C = P[:, :ERR].copy()
        C[np.arange(len(G)), np.arange(self.layout.defect.start, self.layout.defect.stop)] = G
        return self.layout.forms(C, P[:, ERR])

    def _reframed(self, total: np.ndarray, err: np.ndarray) -> np.ndarray | None:
        """The state with the error as new symbols, or as part of a new frame; None if not finite."""
        layout = self.layout
        err = (err + np.abs(total[:, layout.dropped]).sum(1)) * UP
        total[:, layout.dropped] = 0.0
        if not (np.isfinite(total).all() and np.isfinite(err).all()):
            return None
        free = [k for k in range(1, layout.recent + 1) if not total[:, layout.group(k)].any()]
        if free:
            total[:, layout.group(free[0])] = np.diag(err)
            rounding = 0.0 * err
        else:
            B = total[:, layout.remnants]
            scale = 2.0 ** np.round(np.log2(np.abs(B).sum(1) + err + LEAST))  # exact factors, a width each
            B, err = B / scale[:, None], err / scale
            frame = np.linalg.qr(B[:, np.argsort(-np.linalg.norm(B, axis=0), kind="stable")])[0]
            r = half_lengths(frame, B, err)
            if r is None:
                return None
            total[:, layout.remnants] = 0.0
            total[:, layout.frame] = frame * r * scale[:, None]
            rounding = 2.0 * EPS * (np.abs(frame) @ r) * UP * scale + LEAST
        return np.concatenate([layout.forms(total, rounding), self.X[len(total) :]])


def half_lengths(Q: np.ndarray, B: np.ndarray, err: np.ndarray) -> np.ndarray | None:
    """r such that B s + e = Q r s' with |s'| <= 1, for all |s| <= 1 and |e| <= err; Q is nearly orthogonal.

    With Q^T Q = 1 - D, Q^-1 = Q^T + (1 - D)^-1 D Q^T. d bounds the row sums of |D|, rounding of Q^T Q included.
    """
    n, gamma = len(Q), 4.0 * (len(Q) + 2) * EPS
    d = np.abs(np.eye(n) - Q.T @ Q).sum(1).max() * UP + gamma * (np.abs(Q.T) @ np.abs(Q)).sum(1).max() * 2.0
    if not d < 0.1:
        return None
    size = np.abs(B).sum(1) + err
    correction = 2.0 * d * np.abs(Q).sum() * size.sum()
    return (np.abs(Q.T @ B).sum(1) + np.abs(Q.T) @ err + gamma * (np.abs(Q.T) @ size) + correction) * UP + LEAST
