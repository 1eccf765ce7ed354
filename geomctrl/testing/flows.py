"""`Flow`: a function of a closed loop's state, its rate along the loop, and the effect of inputs at a port.

    flow = Flow(controller, plant, port=Inputs(plant.robot, Port("tool0")))
    flow.at(state)      # S, its promised rate, dS/dt, how each input changes dS/dt, and the port's output

Rates are exact, by the chain rule on the traced law, plant and function, or differences if the loop can not be traced.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import checked, exactly
from geomctrl.control.compiled.proving import trace_closed_loop
from geomctrl.control.contracts import Command, moved
from geomctrl.control.plant import Plant
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.robot import Robot

from .domain import State
from .lyapunov_rate import compared_with_python, continuous, flat, rates_in_python, settled_derivative
from .settings import Port

FIRST_STEP = 4e-3  # s, the first step of the differences, which are halved until they converge
CONVERGENCE_TOLERANCE = 1e-9  # convergence tolerance, relative to S per second

Function = Callable[..., Any]  # (t, q, v, z, plant) -> a number


class Rates(NamedTuple):
    """Rates at one state.

    S, its promised rate (nan without promise), dS/dt without input, and at a port with m inputs u, which add the joint
    torques B u: d(dS/dt)/du (m,) and the output y (m,)."""

    value: float
    promised: float
    slope: float
    push: np.ndarray
    output: np.ndarray


class Inputs:
    """A `Port` of a robot: joint torques B(q) u of its inputs, and its output. Raises ArgumentError."""

    def __init__(self, robot: Robot, port: Port):
        of, output = port.at, port.output
        self.frame = of if isinstance(of, str) and of != "joints" else None
        self.moving: Function | None = None
        if callable(of):
            self.moving = of
            of = self.moving(robot, robot.neutral())
        self.matrix, self.own = np.eye(robot.nv), output
        if self.frame is not None:
            try:
                if robot.frame(self.frame).body < 0:
                    raise ArgumentError(f"port: {self.frame!r} is fixed to the world: no wrench moves it")
            except NameNotFoundError as error:
                raise NameNotFoundError(f"port: expected 'joints', a frame, or an array; {error}") from None
        elif self.moving is not None or not isinstance(of, str):
            self.matrix = checked("port", of, ())
            if self.matrix.ndim != 2 or len(self.matrix) != robot.nv:
                raise ArgumentError(
                    f"port: expected 'joints', a frame, an array ({robot.nv}, m) or a function (robot, q) of one, got "
                    f"shape {self.matrix.shape}"
                )
        self.size = 6 if self.frame is not None else self.matrix.shape[1]

    def torques(self, robot: Robot, q: Any) -> Any:
        """B (nv, m)."""
        if self.moving is not None:
            return self.moving(robot, q)
        return self.matrix if self.frame is None else robot.jacobian(q, self.frame).T

    def output(self, robot: Robot, t: Any, q: Any, v: Any, z: Any) -> Any:
        return self.torques(robot, q).T.dot(v) if self.own is None else self.own(t, q, v, z)


def rates_code(port: Port, storage: Any = None) -> str:
    """Code that prints the rates at a state; complex ports and storage functions come from the test."""
    options = "port=" + (repr(port.at) if isinstance(port.at, str) and port.output is None else "port")
    options += ", storage=storage" * (storage is not None)
    call = f"print(rates_at(controller, plant, t, q, v, z, {options}))"
    return f"from geomctrl.testing.passivity import rates_at\n\n{call}"


class Flow:
    """S(t, q, v, z, plant), default the controller's V, along its loop with a plant and at a port."""

    def __init__(self, controller: Any, plant: Plant, function: Function | None = None, port: Inputs | None = None):
        self.controller, self.plant, self.port = controller, plant, port
        self.function, self.size = function, 0 if port is None else port.size
        self.traced: Any = None
        with suppress(Exception):  # user code may raise anything for symbols; numerical evaluation remains
            self.traced = self._traced()

    def at(self, x: State) -> Rates:
        if self.traced is None:
            return self._by_differences(x)
        numbers, m = self.traced(x), self.size
        if numbers is None:
            self.traced = None
            return self._by_differences(x)
        S, promised, slope, *ports = numbers[: len(numbers) - self.further]
        return Rates(float(S), float(promised), float(slope), np.array(ports[:m]), np.array(ports[m:]))

    def value(self, x: State, plant: Any = None) -> tuple[Any, Any]:
        """(S, its promised rate)."""
        plant = self.plant if plant is None else plant
        if self.function is not None:
            return exactly("storage(t, q, v, z, plant)", self.function(*x, plant), (), finite=False), np.nan
        return tuple(self.controller.lyapunov(*x, plant))

    def _traced(self) -> Callable[[State], np.ndarray | None]:
        if self.plant.switches:
            raise ArgumentError("plant: changes")
        own = self.function is None and self.port is None  # only the controller's V
        loop = trace_closed_loop(self.plant, self.controller, None if own else self._extra)
        self.loop, S = loop, loop.value if self.function is None else loop.extra["S"]
        still, rest = [0.0] * self.plant.robot.nv, [0.0] * (loop.group.dim - 2 * self.plant.robot.nv)
        push = [loop.along(S, [*still, *loop.extra[f"a{k}"].tolist(), *rest], pace=0.0) for k in range(self.size)]
        y = [] if self.port is None else np.ravel(loop.extra["y"]).tolist()
        promised = np.nan if self.function is not None else loop.rate
        rates = loop.field[self.plant.robot.nv : -1]
        self.further = len(rates)
        f = loop.function([S, promised, loop.along(S), *push, *y, *rates])
        compared = [0, 1, *range(-self.further, 0)]
        return compared_with_python(lambda x: f(x.t, flat(x)), compared, self._in_python, self.controller)

    def _in_python(self, x: State) -> list[float]:
        """S, its promised rate, the accelerations and z_rate."""
        S, promised = self.value(x, self.plant)
        return [S, promised, *rates_in_python(self.controller, self.plant, x)]

    def _extra(self, parts: Any, t: Any, q: Any, v: Any, z: Any, command: Command) -> dict[str, Any]:
        extra = {} if self.function is None else {"S": self.function(t, q, v, z, parts.plant)}
        if self.port is not None:
            B = self.port.torques(parts.plant.robot, q)
            at_rest = parts.plant.acceleration(t, q, v, command.tau)
            for k in range(self.size):
                extra[f"a{k}"] = parts.plant.acceleration(t, q, v, command.tau + B[:, k]) - at_rest
            extra["y"] = self.port.output(parts.plant.robot, t, q, v, z)
        return extra

    def _by_differences(self, x: State) -> Rates:
        t, q, v, z = x
        plant, robot = self.plant.at(t), self.plant.robot
        tau, z_rate = continuous(self.controller(*x))
        a = plant.acceleration(t, q, v, tau)
        S, promised = map(float, self.value(x, plant))

        def along(s: float) -> float:
            own = moved(self.controller, z, s, z_rate)
            return float(self.value(State(t + s, robot.integrate(q, s * v), v + s * a, own), plant)[0])

        def pushed(more: np.ndarray) -> float:
            return settled(lambda s: float(self.value(State(t, q, v + s * more, z), plant)[0]))

        def settled(f: Callable[[float], float]) -> float:
            return settled_derivative(f, FIRST_STEP, CONVERGENCE_TOLERANCE * (abs(S) + 1e-9))[0]

        slope = (
            settled(along)
            if t > FIRST_STEP
            else settled_derivative(along, FIRST_STEP, CONVERGENCE_TOLERANCE * abs(S), one_sided=True)[0]
        )
        if self.port is None:
            return Rates(S, promised, slope, np.zeros(0), np.zeros(0))
        B = self.port.torques(robot, q)
        push = [pushed(plant.acceleration(t, q, v, tau + column) - a) for column in B.T]
        return Rates(S, promised, slope, np.array(push), np.asarray(self.port.output(robot, t, q, v, z), float))
