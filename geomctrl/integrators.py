"""Explicit integration on a Lie group G: dy/dt = y field(t, y), y in G, field(t, y) in the Lie algebra as a vector.

Crouch-Grossman, commutator-free and Munthe-Kaas methods are the `Tableau`s of tableaus.py; one step of any of them
is `rk_step`. Two drivers loop over it: `steps` stores nothing and `integrate` returns a `Solution`. Equation numbers
are those of Park and Chung 2005; being left-trivialised, the increment stands on the right and dexp^-1 is taken at
-Theta (41). The embedded pair and its step control follow Hairer, Norsett and Wanner, Solving ODEs I, sections II.4-5.
"""

import math
import numbers
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from . import tableaus
from .arrays import number
from .errors import ArgumentError, IntegrationError
from .groups import Product, Rn, rotation
from .jit import KernelTypeError, kernel
from .screw import finite
from .tableaus import Tableau, method, methods

__all__ = ["DenseOutput", "Event", "Solution", "Tableau", "integrate", "method", "methods", "rk_step", "step", "steps"]

OFF_GROUP = 1e-6  # residual of y0 above which it is not taken for a group element
LARGEST_ANGLE = 2.0 * math.pi - 0.1  # rad by which a Munthe-Kaas increment u may turn
SAFETY, SHRINK, GROW, PI_GAIN = 0.9, 0.2, 5.0, 0.04  # step control


@dataclass(frozen=True)
class Event:
    """A scalar g(t, y) whose sign changes are located. direction: +1 rising only, -1 falling only, 0 both.

    Any callable with attributes `terminal` and `direction` serves as well (as in scipy).
    """

    function: Callable
    terminal: bool = False
    direction: int = 0
    name: str = "event"

    def __post_init__(self):
        if not callable(self.function):
            raise ArgumentError(f"function must be a callable g(t, y), got {self.function!r}")
        _direction_of(self, repr(self.name))

    def __call__(self, t, y):
        return self.function(t, y)


def _direction_of(event, name):
    direction = getattr(event, "direction", 0)
    if isinstance(direction, bool) or not isinstance(direction, numbers.Real) or math.isnan(direction):
        raise ArgumentError(f"event {name}: direction must be +1, -1 or 0, got {direction!r}")
    return direction


@dataclass(frozen=True)
class Solution:
    """What `integrate` returns; the first axis is the stored sample.

    t (n,); y (n, *group.shape); h (n,): length of the step that ended there, 0 for the first.
    t_events, y_events: one array per event. sol: t -> y, with dense=True.
    """

    t: np.ndarray
    y: np.ndarray
    h: np.ndarray
    nfev: int
    n_steps: int
    n_rejected: int
    success: bool
    reason: str
    t_events: list
    y_events: list
    sol: Callable | None = None


# --- one step --------------------------------------------------------------------------------------------------


def step(method: str | Tableau, field: Callable, t: float, y, h: float, group) -> np.ndarray:
    """y(t + h) from y(t) by one step, h of either sign: for people who write the loop themselves.

    y is taken for an element of the group without looking. Raises ArgumentError for arguments, and IntegrationError
    when the field or the step fails.
    """
    if not number("h", h):
        raise ArgumentError("h must not be zero, got 0")
    _check_field_and_group(field, group)
    y_next, _ = rk_step(field, number("t", t), _element("y", y, group), h, tableaus.method(method), group)
    if not _finite(y_next):
        raise IntegrationError(f"the solution overflows between t = {t:.9g} and {t + h:.9g}")
    return y_next


def rk_step(field: Callable, t: float, y, h: float, tableau: Tableau, group, k1=None) -> tuple[np.ndarray, np.ndarray]:
    """The kernel: y(t + h) and the slopes K (s, group.dim); K[0] is field(t, y), or k1 if that is known already.

    K holds the field's values, for Munthe-Kaas pulled back to the algebra at y: F of (42). Raises IntegrationError.
    """
    return (_vector_step if _is_vector_space(group) else _group_step)(field, t, y, h, tableau, group, k1)


def _group_step(field, t, y, h, tableau, group, k1):
    times, stages = _scaled_stages(tableau, h)
    n, munthe_kaas, advance = len(times), tableau.family == "MK", group.advance
    K, Y = np.empty((n, group.dim)), [y]
    for i, (base, rows) in enumerate(stages):
        z = Y[base]
        for row in rows:
            u = row.dot(K[:i])  # Theta_i for Munthe-Kaas, whose stages have at most one row
            z = advance(z, u)  # (37), (39), (42b)
        if i == 0 and k1 is not None:
            K[0] = k1
        elif i < n:
            k = _slope(field, t + times[i], z.copy(), group.dim, i, n)
            K[i] = _pull_back(group, u, k, t, h) if munthe_kaas and rows else k  # (42h)
        if i:
            Y.append(z)
    return z, K


def _vector_step(field, t, y, h, tableau, group, k1):
    """All exponentials commute: the classical method, with A and b summed over them (39d)."""
    times, rows = _scaled_rows(tableau, h)
    n, dim = len(times), group.dim
    K = np.empty((n, dim))
    K[0] = _slope(field, t, y.copy(), dim, 0, n) if k1 is None else k1
    for i in range(1, n):
        K[i] = _slope(field, t + times[i], _moved(y, rows[i], K), dim, i, n)
    return _moved(y, rows[n], K), K


@kernel("void(f8[::1], f8[::1], f8[:,::1], f8[::1])")
def moved_one(y, row, K, out):
    for j in range(y.shape[0]):
        out[j] = y[j]
    for i in range(row.shape[0]):
        for j in range(y.shape[0]):
            out[j] += row[i] * K[i, j]


def _moved(y, row, K):
    """y + row @ K[: len(row)]."""
    try:
        out = np.empty(y.shape)
        moved_one(y, row, K, out)
        return out
    except KernelTypeError:  # not one contiguous row of floats
        return y + row.dot(K[: len(row)])


@kernel("b1(f8[::1])")
def finite_one(x):
    return finite(x)


def _known_finite(x):
    """False also for what the kernel was not compiled for: then a slower look decides."""
    try:
        return finite_one(x)
    except KernelTypeError:
        return False


def _finite(x):
    return _known_finite(x.ravel()) or np.isfinite(x).all()


def _is_vector_space(group):
    return isinstance(group, Rn) or (isinstance(group, Product) and group._vector is not None)


@lru_cache(maxsize=32)
def _scaled_stages(tableau, h):
    return (tableau.c * h).tolist(), [(base, [h * row for row in rows]) for base, rows in tableau.stages]


@lru_cache(maxsize=32)
def _scaled_rows(tableau, h):
    rows = [h * row[:i] for i, row in enumerate(tableau.A_classical)]
    return (tableau.c * h).tolist(), [*rows, h * tableau.b_classical]


def _slope(field, t, y, dim, stage, n):
    """field(t, y), looked at; y is the field's to write on."""
    k = field(t, y)
    if type(k) is np.ndarray and k.shape == (dim,) and _known_finite(k):
        return k
    where = f"at t = {t:.9g}, stage {stage + 1} of {n}"
    try:
        k = np.asarray(k)
        if k.dtype.kind not in "fiu":
            raise TypeError(f"dtype {k.dtype}")
    except (TypeError, ValueError) as error:
        raise IntegrationError(f"field must return {dim} real numbers, got {error}, {where}") from None
    if k.shape != (dim,):
        raise IntegrationError(f"field must return shape ({dim},), got {k.shape}, {where}")
    if not np.isfinite(k).all():
        raise IntegrationError(f"field must return finite numbers, got {k}, {where}")
    return k


def _pull_back(group, u, k, t, h):
    """dexp^-1_{-u} k (41). Raises IntegrationError near and beyond its singularity, a rotation by 2 pi in one step."""
    F = group.dexp_inv_mul(-u, k)
    if (_is_small(u) or rotation(group, u) < LARGEST_ANGLE) and _finite(F):
        return F
    angle = rotation(group, u)
    turn = f"turns by {angle:.3g} rad, but dexp^-1 is singular at 2 pi: halve h"
    raise IntegrationError(f"the step of h = {h:.6g} from t = {t:.9g} {turn}")


def _is_small(u):
    """Too short for 2 pi, if no basis vector of the algebra turns by more than 2 rad."""
    return u.size < 500 and math.hypot(*u.tolist()) < math.pi  # of more numbers `rotation` knows as fast


# --- the loop --------------------------------------------------------------------------------------------------


def steps(field: Callable, y0, t_span, h, method: str | Tableau, group, *, rtol=None, atol=None):
    """Generator of (t, y), the initial one included, that stores nothing. Arguments and errors as for `integrate`.

    Tolerances that can not be met raise IntegrationError.
    """
    march = _March(field, y0, t_span, h, method, group, rtol, atol)  # now, not at the first next()

    def walk():
        yield march.t0, march.y0.copy()
        for taken in march:
            yield taken.t_next, taken.y_next.copy()  # the caller's to write on
        if march.failure is not None:
            raise IntegrationError(march.failure)

    return walk()


@dataclass(slots=True)
class _Step:
    """An accepted step; `end` is the field at its end once somebody has asked for it."""

    t: float
    y: np.ndarray
    h: float
    t_next: float
    y_next: np.ndarray
    K: np.ndarray
    end: np.ndarray | None = None


class _March:
    """Validates, then iterates over accepted steps and counts. `failure` says why it ended before t_end."""

    def __init__(self, field, y0, t_span, h, method, group, rtol, atol):
        _check_field_and_group(field, group)
        self.field, self.group, self.tableau = field, group, tableaus.method(method)
        self.adaptive = self.tableau.b_hat is not None
        self.t0, self.t_end = _checked_span(t_span)
        self.h: Any = _checked_h(h, self.t0, self.t_end, self.adaptive)
        self.y0 = _checked_y0(y0, group)
        self.rtol, self.atol = checked_tolerances(rtol, atol, self.tableau, group)
        self.rk_step = _vector_step if _is_vector_space(group) else _group_step
        self.nfev = self.n_steps = self.n_rejected = 0
        self.failure = None

    def __iter__(self):
        return self._adaptive() if self.adaptive else self._fixed()

    def _fixed(self):
        whole = (self.t_end - self.t0) / self.h
        n = round(whole) if abs(whole - round(whole)) < 1e-9 else math.ceil(whole)
        t, y, k1 = self.t0, self.y0, None
        for k in range(1, n + 1):
            t_next, h = (self.t0 + k * self.h, self.h) if k < n else (self.t_end, self.t_end - t)
            taken = self._try(t, y, h, t_next, k1)
            self.n_steps += 1
            yield taken
            t, y, k1 = t_next, taken.y_next, taken.end

    def _adaptive(self):
        t, y, h, last_error = self.t0, self.y0, self.h, 1e-4
        k1 = self.slope(t, y)
        h = self._first_step(k1) if h is None else h
        exponent, grow = 1.0 / self.tableau.order, GROW
        while t < self.t_end:
            smallest, remaining = 10.0 * math.ulp(max(abs(t), abs(self.t_end))), self.t_end - t
            if h < min(smallest, remaining):
                wanted = f"rtol = {self.rtol:g} and atol = {np.max(self.atol):g}"
                self.failure = f"{wanted} can not be met at t = {t:.9g}: that would take steps of h = {h:.1e}"
                return
            h = remaining if 1.01 * h >= remaining else h
            t_next = self.t_end if h == remaining else t + h
            try:
                taken = self._try(t, y, h, t_next, k1)
                error = self._error(taken)
                factor = SAFETY * max(error, 1e-10) ** (0.75 * PI_GAIN - exponent) * last_error**PI_GAIN
            except IntegrationError:
                if 0.25 * h < smallest:
                    raise
                error, factor = math.inf, 0.25
            if error <= 1.0:
                self.n_steps += 1
                yield taken
                t, y, k1, last_error = t_next, taken.y_next, taken.end, max(error, 1e-4)
                h, grow = h * min(max(factor, SHRINK), grow), GROW
            else:
                self.n_rejected += 1
                h, grow = h * min(max(factor, SHRINK), SAFETY), 1.0

    def _try(self, t, y, h, t_next, k1):
        self.nfev += len(self.tableau.c) - (k1 is not None)
        y_next, K = self.rk_step(self.field, t, y, h, self.tableau, self.group, k1)
        if not _finite(y_next):
            raise IntegrationError(f"the solution overflows between t = {t:.9g} and {t_next:.9g}")
        return _Step(t, y, h, t_next, y_next, K)

    def slope(self, t, y):
        self.nfev += 1
        k = _slope(self.field, t, y.copy(), self.group.dim, 0, len(self.tableau.c))
        return np.array(k, dtype=float)  # a copy: the field may reuse its buffer

    def end_slopes(self, taken):
        """K and, below it, the slope at the end of the step pulled back to its beginning; and the increment u."""
        if taken.end is None:
            taken.end = self.slope(taken.t_next, taken.y_next)
        group = self.group
        if self.tableau.family == "MK":
            u = taken.h * self.tableau.b.dot(taken.K)
        else:
            u = group.log(group.compose(group.inverse(taken.y), taken.y_next))
        if _is_vector_space(group):
            return np.vstack((taken.K, taken.end)), u
        return np.vstack((taken.K, _pull_back(group, u, taken.end, taken.t, taken.h))), u

    def interpolant(self, taken):
        """C (degree, dim) with y(t + theta h) = y exp(sum_j C[j] theta^(j+1))."""
        F, u = self.end_slopes(taken)
        if self.tableau.interpolant is not None:
            return taken.h * self.tableau.interpolant.T.dot(F)
        d0, d1 = taken.h * F[0], taken.h * F[-1]
        return np.array([d0, 3.0 * u - 2.0 * d0 - d1, d0 + d1 - 2.0 * u])

    def _scale(self, y):
        return np.abs(self.group.log(y))

    def _error(self, taken):
        F, _ = self.end_slopes(taken)
        defect = taken.h * (self.tableau.b_hat.dot(F) - self.tableau.b.dot(taken.K))
        error = self._norm(defect, np.maximum(self._scale(taken.y), self._scale(taken.y_next)))
        return error if math.isfinite(error) else math.inf

    def _norm(self, x, scale):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.where(x == 0.0, 0.0, x / (self.atol + self.rtol * scale))
            return math.sqrt(ratio.dot(ratio) / max(len(ratio), 1))

    def _first_step(self, k1):
        """Hairer, Norsett and Wanner, section II.4, with the increment in the algebra."""
        scale = self._scale(self.y0)
        size, speed = self._norm(scale, scale), self._norm(k1, scale)
        usual = min(size, speed) > 1e-5 and max(size, speed) < math.inf
        h = min(0.01 * size / speed if usual else 1e-6, self.t_end - self.t0)
        k = self.slope(self.t0 + h, self.group.advance(self.y0, h * k1))
        sharpest = max(self._norm(k - k1, scale) / h, speed)
        longest = (0.01 / sharpest) ** (1.0 / self.tableau.order) if sharpest > 1e-15 else max(1e-6, 1e-3 * h)
        return min(100.0 * h, longest, self.t_end - self.t0)


def _evaluate(group, y, C, theta):
    """y exp(sum_j C[j] theta^(j+1))."""
    u = C[-1]
    for c in C[-2::-1]:
        u = c + theta * u
    return group.advance(y, theta * u)


class DenseOutput:
    """t -> y between the steps: y_k exp(u(theta)), t (), or (n,) for y (n, *group.shape)."""

    def __init__(self, group, pieces, t_end):
        self._group, self._pieces = group, pieces
        self._starts = np.array([piece[0] for piece in pieces])
        self.t_min, self.t_max = float(self._starts[0]), float(t_end)

    def __call__(self, t):
        try:
            times = np.asarray(t, dtype=float)
        except (TypeError, ValueError):
            times = np.array(math.nan)
        if times.ndim > 1 or not np.all((self.t_min <= times) & (times <= self.t_max)):
            raise ArgumentError(f"t must lie in [{self.t_min:g}, {self.t_max:g}], a number or a 1-D array; got {t}")
        if times.ndim:
            return np.array([self(time) for time in times]).reshape(-1, *self._group.shape)
        start, h, y, C = self._pieces[np.searchsorted(self._starts, times, side="right") - 1]
        return _evaluate(self._group, y, C, (float(times) - start) / h)


# --- integrate -------------------------------------------------------------------------------------------------


def integrate(
    field: Callable,
    y0,
    t_span,
    h,
    method: str | Tableau,
    group,
    *,
    every: int = 1,
    events=(),
    rtol=None,
    atol=None,
    dense: bool = False,
    progress: Callable | None = None,
) -> Solution:
    """Integrate dy/dt = y field(t, y) from y0 (group.shape) over t_span = (t0, t_end).

    field(t, y) returns (group.dim,). Samples are at t0 + k h exactly; the last step is shortened to end at t_end.
    With an embedded pair ("MK54"), h is the first step to try, or None, and each step's error, in exponential
    coordinates at its beginning, is kept below atol + rtol |log y| component by component in the root mean square
    (on R^n: scipy's rule); atol may be (group.dim,). Defaults 1e-9 and 1e-6.
    every: store each every-th sample, and the last. dense: also keep what `Solution.sol` needs, every step. Dense
    output and event times err by O(h^5) for MK5 and MK54, by O(h^4) for the others of order three and more.
    events: `Event`s; a terminal one ends the solution just past its crossing, so that a restart does not meet it
    again, and an event that is zero at t0 has not crossed; an even number of crossings within one step goes unseen.
    The y that field and events get is theirs to write on. progress: called with the fraction done.

    Raises ArgumentError or NameNotFoundError for arguments, and IntegrationError, whose `solution` holds the samples
    so far, when the field fails or a Munthe-Kaas step turns by 2 pi. Tolerances that can not be met end the solution
    with success=False.
    """
    march = _March(field, y0, t_span, h, method, group, rtol, atol)
    if isinstance(every, bool) or not isinstance(every, (int, np.integer)) or every < 1:
        raise ArgumentError(f"every must be a positive integer, got {every!r}")
    if progress is not None and not callable(progress):
        raise ArgumentError(f"progress must be a callable progress(fraction) or None, got {progress!r}")
    watch = _Watch(events, march)
    samples = [(march.t0, march.y0, 0.0)]
    pieces, last, shown = [], None, 0.0

    def solution(success, reason):
        if last is not None and last.t_next != samples[-1][0]:
            samples.append((last.t_next, last.y_next, last.h))
        t, y, lengths = (np.array(column) for column in zip(*samples))
        sol = DenseOutput(group, pieces, t[-1]) if pieces else None
        counts = march.nfev, march.n_steps, march.n_rejected
        return Solution(t, y, lengths, *counts, success, reason, *watch.found(group), sol)

    try:
        for taken in march:
            last = taken
            if dense:
                pieces.append((taken.t, taken.h, taken.y, march.interpolant(taken)))
            if (crossing := watch.look(taken)) is not None:
                t_hit, y_hit, name = crossing
                last = replace(taken, t_next=t_hit, y_next=y_hit, h=t_hit - taken.t)
                return solution(True, f"terminal event {name} at t = {t_hit:.9g}")
            if march.n_steps % every == 0:
                samples.append((taken.t_next, taken.y_next, taken.h))
            fraction = (taken.t_next - march.t0) / (march.t_end - march.t0)
            if progress is not None and (fraction >= shown + 0.01 or fraction == 1.0):
                shown = fraction
                progress(fraction)
    except IntegrationError as error:
        raise IntegrationError(str(error), solution(False, str(error))) from None
    if march.failure is not None:
        return solution(False, march.failure)
    return solution(True, f"reached t_end = {march.t_end:.9g}")


class _Watch:
    """Looks for the events' sign changes, from step to step."""

    def __init__(self, events, march):
        if not callable(events) and not isinstance(events, Iterable):
            raise ArgumentError(f"events must be callables g(t, y), got {events!r}")
        self.events, self.march = (events,) if callable(events) else tuple(events), march
        for event in self.events:
            if not callable(event):
                raise ArgumentError(f"events must be callables g(t, y), got {event!r}")
        self.directions = [_direction_of(event, self._name(k)) for k, event in enumerate(self.events)]
        self.values = None
        self.hits = [[] for _ in self.events]

    def _name(self, k):
        return repr(getattr(self.events[k], "name", None) or getattr(self.events[k], "__name__", f"number {k}"))

    def _value(self, k, t, y):
        value = np.asarray(self.events[k](t, y.copy()))
        if value.shape not in ((), (1,)) or value.dtype.kind not in "fiub" or not np.isfinite(value).all():
            raise IntegrationError(f"event {self._name(k)} must return one finite number, got {value} at t = {t:.9g}")
        return float(value.reshape(()))

    def look(self, taken):
        """Record the crossings within the step; (t, y, name) of the first terminal one, else None."""
        if not self.events:
            return None
        indices = range(len(self.events))
        before = self.values or [self._value(k, taken.t, taken.y) for k in indices]
        self.values = [self._value(k, taken.t_next, taken.y_next) for k in indices]
        crossed = [k for k in range(len(before)) if self._crosses(k, before[k], self.values[k])]
        if not crossed:
            return None
        C = self.march.interpolant(taken)
        for theta, k in sorted((self._locate(k, taken, C, before[k]), k) for k in crossed):
            t = taken.t_next if theta == 1.0 else taken.t + theta * taken.h
            y = taken.y_next if theta == 1.0 else _evaluate(self.march.group, taken.y, C, theta)
            self.hits[k].append((t, y))
            if getattr(self.events[k], "terminal", False):
                return t, y, self._name(k)
        return None

    def _crosses(self, k, before, after):
        direction = self.directions[k]
        return (before < 0.0 <= after and direction >= 0) or (before > 0.0 >= after and direction <= 0)

    def _locate(self, k, taken, C, before):
        """Bisection to the last bit of t; the end past the crossing."""
        low, high = 0.0, 1.0
        while (high - low) * taken.h > math.ulp(max(abs(taken.t), abs(taken.t_next), 1e-300)):
            theta = 0.5 * (low + high)
            if theta in (low, high):
                break
            value = self._value(k, taken.t + theta * taken.h, _evaluate(self.march.group, taken.y, C, theta))
            low, high = (theta, high) if value * before > 0.0 else (low, theta)
        return high

    def found(self, group):
        times = [np.array([t for t, _ in hits]) for hits in self.hits]
        return times, [np.array([y for _, y in hits]).reshape(-1, *group.shape) for hits in self.hits]


# --- arguments -------------------------------------------------------------------------------------------------


def _check_field_and_group(field, group):
    if not callable(field):
        raise ArgumentError(f"field must be a callable field(t, y), got {field!r}")
    if isinstance(group, type) or not hasattr(group, "dexp_inv_mul"):
        raise ArgumentError(f"group must be a LieGroup, SO3() for example, got {group!r}")


def _checked_span(t_span):
    try:
        t0, t_end = t_span
    except (TypeError, ValueError):
        raise ArgumentError(f"t_span must be a pair (t0, t_end), got {t_span!r}") from None
    t0, t_end = number("t_span[0]", t0), number("t_span[1]", t_end)
    if not t0 < t_end:
        raise ArgumentError(f"t_span must run forward, t0 < t_end; got ({t0:g}, {t_end:g})")
    return t0, t_end


def _checked_h(h, t0, t_end, adaptive):
    if h is None and adaptive:
        return None
    h = number("h", h)
    if not 0.0 < h <= (t_end - t0) * (1.0 + 1e-9):
        raise ArgumentError(f"h must be positive and at most the span t_end - t0 = {t_end - t0:g}, got {h:g}")
    if h < 10.0 * math.ulp(max(abs(t0), abs(t_end))):
        raise ArgumentError(f"h must be resolvable beside t = {max(t0, t_end, key=abs):g}, got {h:g}")
    return h


def _element(name, value, group):
    try:
        y = np.array(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name} must be an array of numbers: {error}") from None
    if y.shape != tuple(group.shape):
        raise ArgumentError(f"{name} must have the group's shape {tuple(group.shape)}, got {y.shape}")
    if not np.isfinite(y).all():
        raise ArgumentError(f"{name} must be finite, got {y}")
    return y


def _checked_y0(y0, group):
    y = _element("y0", y0, group)
    if (residual := float(np.max(group.residual(y), initial=0.0))) > OFF_GROUP:
        raise ArgumentError(f"y0 must be an element of {group}, residual below {OFF_GROUP:g}; got {residual:.3g}")
    return y


def checked_tolerances(rtol, atol, tableau, group):
    if tableau.b_hat is None:
        if rtol is not None or atol is not None:
            raise ArgumentError(f"rtol and atol need an embedded pair such as MK54; {tableau.name} steps by h")
        return 0.0, np.zeros(())
    rtol = 1e-6 if rtol is None else number("rtol", rtol)
    try:
        atol = np.array(1e-9 if atol is None else atol, dtype=float)
    except (TypeError, ValueError):
        atol = np.array(math.nan)
    if atol.shape not in ((), (group.dim,)) or not (np.isfinite(atol).all() and (atol >= 0.0).all()) or rtol < 0.0:
        raise ArgumentError(
            f"rtol must be a number and atol a number or shape ({group.dim},), none negative; got {rtol} and {atol}"
        )
    if rtol == 0.0 and not (atol > 0.0).all():
        raise ArgumentError(f"atol must be positive where rtol is zero, got {atol}")
    return rtol, atol
