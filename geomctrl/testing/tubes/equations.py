"""The equations of a closed loop as tubes need them: state, uncertain parameters and time are inputs of one graph."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from geomctrl.arguments import shown
from geomctrl.control.compiled.proving import NUMBERS, STATE, TIME, TracedClosedLoop, trace_closed_loop
from geomctrl.control.compiled.robot_numbers import inertial_parameters
from geomctrl.control.compiled.trace_parts import one_number
from geomctrl.control.contracts import started
from geomctrl.control.plant import Plant, plant_of
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.states import require_vectors
from geomctrl.robot import Robot
from geomctrl.testing.certificates.forms import Lemma
from geomctrl.testing.certificates.tracking import apart
from geomctrl.tracing.arrays import symbol_array
from geomctrl.tracing.numbers import where
from geomctrl.tracing.proofs.interpreted import Program
from geomctrl.tracing.proofs.operation_rows import OperationRows
from geomctrl.tracing.proofs.substitution import substituted
from geomctrl.tracing.untraceable import UntraceableError

from .programs import by_accelerations, law_symbols, program_symbols
from .steps import Dynamics

HELD = 11  # array of the graph: the held command
COMMUTATIVE = {"add", "mul", "and", "or", "eq"}
COMPARED_STATES = 48
ROUNDING_TOLERANCE = 1e-7  # relative difference (absolute below 1) that rounding of M^-1 may cause
SIGNALS = "'q[0]', 'v[0]', 'z[0]', 'tau[0]', 'V', or a function (t, q, v, z, plant) that returns a number"


def checked_plant(plant: Any) -> Plant:
    """The plant, if it is one whose motions tubes can enclose."""
    plant = plant_of("plant", plant, state=False)
    require_vectors("plant", plant.robot)
    if plant.switches:
        raise ArgumentError(f"plant: expected a plant that does not change, got changes at {list(plant.switches)}")
    if plant.sensors:
        raise ArgumentError("plant: expected no sensors, got some: enclose the law with the true state")
    return plant


class LoopEquations:
    """State y = (q, v, z), then the uncertain inertial parameters `uncertain` (indices), then time.

    signal: a further expression, one of SIGNALS. held: whether `held_rates` are needed, for a held command. control_dt:
    period of samples; the state is then (q, v), and the held command follows it. is_program: whether the controller is
    the program of a law, whose accelerations are then inputs.
    """

    def __init__(
        self, controller: Any, plant: Plant, uncertain: np.ndarray, signal: Any = None, held: bool = False,
        control_dt: float | None = None, is_program: bool = False,
    ):  # fmt: skip
        if hasattr(controller, "_program_torques"):
            raise ArgumentError(
                f"controller: expected a law whose command is a formula, got {type(controller).__name__}, which solves"
                " a quadratic program (certify_barrier takes such laws)"
            )
        self.arguments = controller, plant, uncertain, signal, held, control_dt, is_program
        self.controller, self.plant, self.uncertain, self.control_dt = controller, plant, uncertain, control_dt
        self.held = held or control_dt is not None
        has_model = is_program or (not self.held and isinstance(getattr(controller, "robot", None), Robot))
        try:
            loop = self._traced(has_model)
        except (UntraceableError, ArgumentError, AttributeError, TypeError):
            if is_program or not has_model:
                raise
            loop = self._traced(has_model=False)  # what a law has besides its command may be anything
        self.loop = loop
        graph = loop.graph
        self.n = len(loop.y) - 1  # without the work
        self.lemmas: list[Lemma] = []
        if "acceleration" in loop.extra:
            self.loop, self.lemmas = by_accelerations(loop, controller.robot, uncertain)
        parameters = loop.extra.get("parameters", [])
        if control_dt is not None and loop.split(loop.y)[2] is not None:
            raise ArgumentError("control_dt: expected None for a controller with a state z")
        self.commands = 0 if control_dt is None else len(self.command)
        self.inputs = [(STATE, k) for k in range(self.n)] + [(HELD, k) for k in range(self.commands)]
        self.inputs += [tuple(graph.nodes[parameters[k].index][1:]) for k in uncertain.tolist()]
        self.inputs += [(TIME, 0)]
        self.constants = {(NUMBERS, k): x for k, x in enumerate(loop.numbers.tolist())}
        rates = self.loop.field[: self.n] if control_dt is None else self.held_rates
        self.rates = [*rates, *[0.0] * (self.commands + len(uncertain)), 1.0]
        self.name: Any = signal
        self.signal = self._signal(signal)

    def _traced(self, has_model: bool) -> TracedClosedLoop:
        controller, plant, uncertain, signal, *_, is_program = self.arguments
        needs_trace = len(uncertain) or signal is not None or self.held or has_model
        extra = self._extra(signal, is_program, has_model) if needs_trace else None
        traced_plant = apart(plant) if len(uncertain) or is_program else plant
        return trace_closed_loop(traced_plant, controller, extra, lyapunov=signal == "V")

    def _extra(self, signal: Any, is_program: bool, has_model: bool) -> Callable[..., dict[str, Any]]:
        """What the trace has besides the loop. has_model: whether that includes terms of vdot = a + M^-1 r."""
        weightless = self.controller.robot.with_gravity((0.0, 0.0, 0.0)) if has_model else None

        def extra(parts: Any, t: Any, q: Any, v: Any, z: Any, command: Any) -> dict[str, Any]:
            needs_parameters = has_model or len(self.uncertain)
            symbols = {"parameters": inertial_parameters(parts.plant.robot) if needs_parameters else []}
            if self.held:
                tau = symbol_array([t.graph.load(HELD, k) for k in range(len(command.tau))], (len(command.tau),))
                symbols["vdot"] = parts.plant.acceleration(t, q, v, tau)
            if is_program:
                symbols |= program_symbols(self.controller, parts.plant, t, q, v, z, command.tau)
            elif has_model:
                symbols |= law_symbols(parts.controller, weightless, parts.plant, t, q, v, z, command.tau)
            return symbols | ({"signal": signal(t, q, v, z, parts.plant)} if callable(signal) else {})

        return extra

    def _signal(self, signal: Any) -> Any:
        if signal is None:
            return None
        if callable(signal):
            return _number(self.loop.extra["signal"])
        if signal == "V":
            if self.loop.value is None:
                raise ArgumentError(f"signal: {type(self.controller).__name__} has no lyapunov(t, q, v, z, plant)")
            return self.loop.value
        q, v, z = self.loop.split(self.loop.y)
        held = [self.loop.graph.load(HELD, k) for k in range(self.commands)]
        arrays = {"q": q, "v": v, "z": [] if z is None else z, "tau": held or self.command}
        name, _, index = str(signal).partition("[")
        if name in arrays and index.endswith("]") and index[:-1].isdigit():
            numbers = np.asarray(arrays[name], object).ravel()
            if int(index[:-1]) < len(numbers):
                return numbers[int(index[:-1])]
        raise ArgumentError(f"signal: expected {SIGNALS}, got {shown(signal)}")

    @property
    def command(self) -> list[Any]:
        return np.ravel(self.loop.command.tau).tolist()

    @property
    def held_rates(self) -> list[Any]:
        """The rates of (q, v) with the command as input (HELD, k)."""
        _, v, _ = self.loop.split(self.loop.y)
        return [*v.tolist(), *np.ravel(self.loop.extra["vdot"]).tolist()]

    @property
    def good(self) -> list[Any]:
        """The condition under which the loop exists, if there is one."""
        return [] if self.loop.good is True else [self.loop.good]

    def rows(self, further: list[Any], inputs: list[Any] | None = None) -> OperationRows:
        """Operations that compute further values, and `good`."""
        inputs = self.inputs if inputs is None else inputs
        return OperationRows(self.loop.graph, inputs, [], self.constants, [*further, *self.good])

    def identity(self) -> tuple[Any, ...]:
        """Equal for equal equations, however their graphs number the operations, and wherever they take numbers from.

        A number of a class is a constant of the trace, one of an object is an input: both are constants here.
        """
        graph, signal = self.loop.graph, [] if self.signal is None else [self.signal]
        limits, feasible = self.loop.extra.get("program", ([], []))
        further = [*signal, *limits, *feasible, *self.good]
        ends = [*self.rates, *(self.held_rates if self.held else []), *self.command, *further]
        numbers = {graph.load(*key).index: x for key, x in self.constants.items() if key not in self.inputs}
        ends = [graph.operand(x) for x in substituted(graph, ends, numbers)]
        inputs = {key: k for k, key in enumerate(self.inputs)}
        digests: dict[int, str] = {}
        for k in graph.needed(ends):
            op, *rest = graph.nodes[k]
            parts = rest if op in ("const", "load") else [digests[x] for x in rest]
            if op == "load":
                parts = [inputs.get(tuple(rest), rest)]
            elif op in COMMUTATIVE:
                parts.sort()
            digests[k] = hashlib.sha256(repr((op, *parts)).encode()).hexdigest()
        # as text: nan is itself, and -0.0 is not 0.0
        of_inputs = repr([self.constants.get(key) for key in self.inputs])
        return [digests[k] for k in ends], of_inputs, self.control_dt

    def require_unchanged(self) -> None:
        """Raise ArgumentError if law, plant or signal compute something else than when they were traced."""
        try:
            is_same = LoopEquations(*self.arguments).identity() == self.identity()
        except (UntraceableError, ArgumentError):
            is_same = False
        if not is_same:
            raise ArgumentError(
                f"controller, plant: expected those of the proof, got a {type(self.controller).__name__} or plant that"
                " was changed after it: compute the tube or certificate again"
            )

    def dynamics(self) -> Dynamics:
        good = self.good
        rows = OperationRows(self.loop.graph, self.inputs, self.rates, self.constants, good)
        law = self.rows(self.command) if self.commands else None
        return Dynamics(rows, self.n + self.commands, law, self.commands, self.control_dt)

    def signal_rows(self) -> OperationRows:
        """Operations that compute the signal and, if there is one, the condition under which the loop exists."""
        return self.rows([self.signal])

    def evaluated(self, expressions: list[Any], x: np.ndarray) -> np.ndarray:
        """(m, expressions) in floating point at inputs x (m, inputs); nan where the loop is undefined."""
        graph, good = self.loop.graph, self.loop.good
        values = {graph.load(*key).index: number for key, number in self.constants.items()}
        values |= {graph.load(*key).index: x[:, k] for k, key in enumerate(self.inputs)}
        exists = 1.0 if good is True else where(good, 1.0, np.nan)
        result = Program(graph, [exists, *expressions]).values(values, len(x))
        return result[:, 1:] * result[:, :1]

    def compare_with_python(self, lower: np.ndarray, upper: np.ndarray, t_end: float) -> None:
        """Raise UntraceableError if the traced rates or signal differ from Python at states in and near the box."""
        rng, p = np.random.default_rng(0), self.plant.robot.parameters.ravel()[self.uncertain]
        x = rng.uniform(lower, upper, (COMPARED_STATES, self.n))
        x[COMPARED_STATES // 2 :] += rng.normal(0.0, 0.5, (COMPARED_STATES - COMPARED_STATES // 2, self.n))
        t = rng.uniform(0.0, t_end, (COMPARED_STATES, 1))
        expressions = [*self.rates[: self.n], *([] if self.signal is None else [self.signal])]
        traced = self.evaluated(expressions, self.with_command(x, np.tile(p, (len(x), 1)), t))
        for row, state, now in zip(traced, x, t[:, 0].tolist()):
            try:
                with np.errstate(all="ignore"):
                    python = np.append(self.python_rates(now, state), self._python_signal(now, state))
            except Exception:  # the law may raise anything outside its domain
                if np.isnan(row).any():
                    continue  # no motion in either
                python = np.full(len(row), np.nan)
            size = np.abs(python[np.isfinite(python)]).max(initial=1.0)
            with np.errstate(invalid="ignore"):
                same = (np.abs(row - python) <= ROUNDING_TOLERANCE * size) | (row == python)
            same |= np.isnan(row) & np.isnan(python)
            if not same.all():
                k = int(np.argmin(same))
                name = f"rate {k} of the state" if k < self.n else "the signal"
                raise UntraceableError(
                    f"the traced loop differs from Python: {name} is {row[k]:.9g} in the trace and"
                    f" {python[k]:.9g} in Python, at t = {now:.6g}, x = {state.tolist()}"
                )

    def with_command(self, x: np.ndarray, p: np.ndarray, t: np.ndarray) -> np.ndarray:
        """(m, inputs) of states, parameters and times (m, 1), with the command of the law at them if it is held."""
        inputs = np.hstack([x, np.zeros((len(x), self.commands)), p, t])
        if self.commands:
            inputs[:, self.n : self.n + self.commands] = self.evaluated(self.command, inputs)
        return inputs

    def _python_signal(self, t: float, x: np.ndarray) -> list[float]:
        """The signal in Python, if there is one."""
        if self.signal is None:
            return []
        q, v, z = self.loop.split(np.append(x, 0.0))
        if callable(self.name):
            return [_number(self.name(t, q, v, z, self.plant))]
        if self.name == "V":
            return [float(self.controller.lyapunov(t, q, v, z, self.plant)[0])]
        name, _, index = self.name.partition("[")
        if name == "tau":
            return [float(self.controller(t, q, v, z).tau[int(index[:-1])])]
        return [float(x[{"q": 0, "v": len(q), "z": 2 * len(v)}[name] + int(index[:-1])])]

    def python_command(self, t: float, x: np.ndarray) -> np.ndarray:
        """The torques of the law in Python."""
        return np.ravel(np.asarray(self.controller(t, *self.loop.split(np.append(x, 0.0))).tau, float))

    def python_rates(self, t: float, x: np.ndarray, plant: Plant | None = None, held: Any = None) -> np.ndarray:
        """The rates of (q, v, z), computed by the law and the plant in Python; held: the command, if it is held."""
        plant = self.plant if plant is None else plant
        q, v, z = self.loop.split(np.append(x, 0.0))
        if held is not None:
            return np.append(v, plant.acceleration(t, q, v, held))
        command = self.controller(t, q, v, z)
        vdot = plant.acceleration(t, q, v, command.tau)
        z_rate = [] if z is None else np.ravel(command.z_rate)
        return np.concatenate([v, np.asarray(vdot, float), np.asarray(z_rate, float)])

    def start(self) -> np.ndarray:
        """The controller's initial state z, as a flat array."""
        z = started(self.controller, self.plant.robot)
        return np.zeros(0) if z is None else np.ravel(np.asarray(z, float))

    def plant_with(self, p: np.ndarray) -> Plant:
        """The plant with values of the uncertain parameters."""
        if not len(self.uncertain):
            return self.plant
        plant, parameters = apart(self.plant), self.plant.robot.parameters.ravel().copy()
        parameters[self.uncertain] = p
        robot = self.plant.robot.with_parameters(parameters.reshape(self.plant.robot.parameters.shape))
        object.__setattr__(plant, "robot", robot)
        return plant


def _number(x: Any) -> Any:
    try:
        return one_number(x)
    except (TypeError, ValueError):
        raise ArgumentError(f"signal, barrier: expected a function that returns a number, got {shown(x)}") from None
