"""V and dV/dt of a closed loop at a state: the promised rate, and the true one, computed in two independent ways.

Differences of V in Python along the plant's vector field use none of the library's derivatives. If the loop can be
traced, the chain rule on the traced V gives the exact rate, which is used where the differences agree. Neither uses the
rate that the controller promises.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import shown
from geomctrl.compiler import code
from geomctrl.control.compiled.proving import TracedClosedLoop, trace_closed_loop
from geomctrl.control.contracts import Command, moved
from geomctrl.control.plant import Plant
from geomctrl.errors import ArgumentError
from geomctrl.tracing.untraceable import UntraceableError

from .counterexample import Counterexample
from .domain import State

FIRST_STEP = 8e-3  # [s] first step of the differences, which are halved until they converge
HALVINGS = 14
NOISE_STEPS = 4  # number of smallest steps that estimate the noise of V
AGREEMENT = 1e-6  # between differences and exact rate, relative to |rate| + V / s, besides the differences' own error
GRADIENTS = 10_000  # operations of V, V' and the rate up to which gradients (four times as many) are compiled: 3 s
EPS = float(np.finfo(float).eps)
COMPARED_STATES, ROUNDING_TOLERANCE = 20, 1e-6  # of the comparison of traced loops with Python, relative above 1


def continuous(command: Command) -> tuple[Any, Any]:
    """(tau, z_rate) of a law in continuous time. Raises ArgumentError for a law with z_next."""
    if command.z_next is not None:
        raise ArgumentError(
            "controller: its state is updated at samples (z_next), so that V has no derivative along the loop:"
            " use testing.assert_sampled"
        )
    return command.tau, command.z_rate


class LyapunovAt(NamedTuple):
    """V, its promised rate, its rate along the closed loop and the error of that, at one state."""

    value: float
    promised: float
    actual: float
    error: float

    @property
    def excess(self) -> float:
        """Amount by which V grows faster than promised [1/s times V's unit]."""
        return self.actual - self.promised


def settled_derivative(
    f: Callable[[float], float], step: float, enough: float, one_sided: bool = False
) -> tuple[float, float]:
    """(df/dt at 0, its estimated error), by differences over steps halved until their extrapolation converges.

    Richardson extrapolation, using the entry with the smallest error estimate (Ridders 1982): large steps for smooth f,
    small ones for stiff f. Without convergence the noise of f, estimated at the smallest steps, is added to the error,
    because two of many entries may agree by chance. one_sided: use f at t >= 0 only.
    """
    best, error, used = np.nan, np.inf, step
    before: list[float] = []
    plain: list[tuple[float, float]] = []  # (width, difference) without extrapolation
    start, ratio = f(0.0), 2.0 if one_sided else 4.0
    for _ in range(HALVINGS):
        low, high = (start, f(step)) if one_sided else (f(-step), f(step))
        width = step if one_sided else 2.0 * step
        rounding = 2.0 * EPS * max(abs(low), abs(high)) / width
        row, factor = [(high - low) / width], ratio
        plain.append((width, row[0]))
        for j, previous in enumerate(before):
            row.append(row[j] + (row[j] - previous) / (factor - 1.0))
            factor *= ratio
            off = max(abs(row[j + 1] - row[j]), abs(row[j + 1] - previous)) + rounding
            if off <= error:
                best, error, used = row[j + 1], off, width
        if len(before) > 1 and error <= enough:
            return best, error
        before, step = row, 0.5 * step
    noise = max(width * abs(slope - best) for width, slope in plain[-NOISE_STEPS:])
    return best, max(error, 4.0 * noise / used)


class LyapunovClaim:
    """A controller's `lyapunov` in closed loop with a plant, which at time t is `plant.at(t)`."""

    def __init__(self, controller: Any, plant: Plant):
        self.controller, self.plant = controller, plant
        self.doubt: str | None = None  # why exact derivatives are not used
        self._exact: dict[int, ExactRate] = {}

    def at(self, x: State, now: Plant | None = None) -> tuple[float, float]:
        """(V, promised rate)."""
        answer = self.controller.lyapunov(*x, self.plant.at(x.t) if now is None else now)
        numbers = tuple(answer) if isinstance(answer, tuple | list) else ()
        if len(numbers) != 2 or not all(map(_is_real, numbers)):
            message = f"lyapunov: expected two numbers, V and its rate, got {shown(answer)}"
            raise Counterexample(message, x, "numbers")
        return float(np.asarray(numbers[0]).item()), float(np.asarray(numbers[1]).item())

    def value(self, x: State) -> float:
        return self.at(x)[0]

    def along(self, x: State, enough: float = 1e-9) -> LyapunovAt:
        """The rate by differences, which converge to `enough` relative to |rate| + V / s."""
        V, promised = self.at(x)
        one_sided = x.t < 1e-3 * FIRST_STEP
        step = FIRST_STEP if one_sided else min(FIRST_STEP, x.t)
        actual, error = settled_derivative(self.onward(x), step, enough * (abs(promised) + abs(V)), one_sided)
        return LyapunovAt(V, promised, actual, error)

    def onward(self, x: State) -> Callable[[float], float]:
        """V as a function of the time s during which the state moves at its velocity at x, with a constant plant."""
        t, q, v, z = x
        now = self.plant.at(t)
        tau, z_rate = self._commanded(x)
        a = now.acceleration(t, q, v, tau)

        def V_after(s: float) -> float:
            own = moved(self.controller, z, s, z_rate)
            return self.at(State(t + s, now.robot.integrate(q, s * v), v + s * a, own), now)[0]

        return V_after

    def checked_rate(self, x: State, enough: float = 1e-9) -> LyapunovAt:
        """The exact rate if the differences agree with it, otherwise the differences."""
        rates = self.along(x, enough)
        exact = self.exact(x.t)
        if exact is None:
            return rates
        actual = exact.numbers(x)[2]
        rounding = AGREEMENT * (abs(rates.promised) + abs(rates.value))
        if abs(actual - rates.actual) <= rates.error + rounding:
            return rates._replace(actual=actual, error=1e-3 * rounding)
        if np.isfinite(actual) and np.isfinite(rates.error):
            self.doubt = f"the traced dV/dt is {actual:.9g}, by finite differences {rates.actual:.9g}, {x}"
        return rates

    def exact(self, t: float) -> ExactRate | None:
        """The traced loop with the plant at time t; None if it can not be traced or is not trusted."""
        if self.doubt is not None:
            return None
        now = self.plant.at(t)
        if id(now.robot) not in self._exact:
            try:
                self._exact[id(now.robot)] = ExactRate(trace_closed_loop(now, self.controller))
            except Exception as error:  # user code may raise anything for symbols; numerical evaluation remains
                self.doubt = f"not traced: {error!s:.200}"
                return None
        return self._exact[id(now.robot)]

    def _commanded(self, x: State) -> tuple[np.ndarray, Any]:
        command = self.controller(*x)
        if not isinstance(command, Command):
            raise Counterexample(f"controller: expected a geomctrl.Command, got {shown(command)}", x, "command")
        tau, z_rate = continuous(command)
        if (z_rate is None) != (x.z is None):
            message = f"controller: expected a z_rate if and only if it has a state z, got {z_rate}"
            raise Counterexample(message, x, "command")
        return tau, z_rate


class ExactRate:
    """V, the promised rate, dV/dt and their gradients, compiled."""

    def __init__(self, loop: TracedClosedLoop):
        self.loop, self.dim = loop, loop.group.dim  # t replaces the work, which nothing depends on
        self.outputs = [loop.value, loop.rate, loop.slope]
        if (operations := loop.trace(self.outputs).operations) > code.OPERATIONS:
            raise UntraceableError(f"{operations} operations, at most {code.OPERATIONS} are compiled")
        self.has_gradients = operations <= GRADIENTS
        self._three = loop.function(self.outputs)

    def numbers(self, x: State) -> np.ndarray:
        """(V, promised rate, dV/dt)."""
        return self._three(x.t, flat(x))

    def gradients(self, x: State) -> tuple[np.ndarray, np.ndarray]:
        """`numbers`, and their gradients (3, 1 + dim) with respect to t and the state's displacement."""
        values = self._all(x.t, flat(x))
        return values[:3], values[3:].reshape(3, -1)[:, : self.dim]

    @cached_property
    def _all(self):
        return self.loop.function([*self.outputs, *(g for f in self.outputs for g in self.loop.gradient(f))])

    @cached_property
    def field(self):
        return self.loop.function(self.loop.field)


def flat(x: State) -> np.ndarray:
    """The state as one array of a closed loop, with zero work."""
    return np.concatenate((x.q, x.v, [] if x.z is None else np.ravel(x.z), [0.0]))


def rates_in_python(controller: Any, plant: Plant, x: State) -> list[float]:
    """The accelerations and z_rate of the closed loop, computed by the law and the plant in Python."""
    tau, z_rate = continuous(controller(*x))
    a = plant.at(x.t).acceleration(x.t, x.q, x.v, tau)
    return [*np.asarray(a).tolist(), *([] if z_rate is None else np.ravel(z_rate).tolist())]


def compared_with_python(
    traced: Callable[[State], np.ndarray], compared: Iterable[int], python: Callable[[State], Any], controller: Any
) -> Callable[[State], np.ndarray | None]:
    """A function that returns `traced(x)`, or None once Python has other values, with a warning.

    compared: the indices of the numbers that `python` also computes. The first `COMPARED_STATES` states are compared.
    """
    indices, count, differs = [*compared], 0, False

    def checked(x: State) -> np.ndarray | None:
        nonlocal count, differs
        numbers = traced(x)
        if count < COMPARED_STATES and not differs:
            count += 1
            expected, values = np.asarray(python(x), float), numbers[indices]
            size = np.maximum(np.abs(expected), 1.0)
            same = (np.abs(values - expected) <= ROUNDING_TOLERANCE * size) | (np.isnan(values) & np.isnan(expected))
            differs = not same.all()
            if differs:
                name = type(controller).__name__
                warnings.warn(
                    f"{name}: the traced loop differs from Python {x}: derivatives are differences",
                    RuntimeWarning,
                    stacklevel=2,
                )
        return None if differs else numbers

    return checked


def _is_real(x: Any) -> bool:
    """Whether x is one real number; strings, booleans, complex numbers and arrays are not."""
    if isinstance(x, float | int):
        return not isinstance(x, bool)
    try:
        a = np.asarray(x)
    except (TypeError, ValueError):
        return False
    return a.size == 1 and a.dtype.kind in "iuf"
