"""`trace_closed_loop`: a closed loop as equations for differentiation, search and enclosure of its Lyapunov function.

    loop = trace_closed_loop(plant, controller)
    f = loop.function([loop.slope, loop.rate])      # compiled: f(t, y) -> (V', promised rate)

The law, the plant and `lyapunov` run once with symbols. V' is the derivative of V along the plant's vector field by the
chain rule, independent of the rate that the controller promises.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from geomctrl.compiler.code import enabled
from geomctrl.control.closed_loop import Loop
from geomctrl.control.contracts import Command, evaluated_each_time
from geomctrl.control.plant import Plant
from geomctrl.integrators.explicit import is_vector_space
from geomctrl.tracing.arrays import SymbolArray, symbol_array
from geomctrl.tracing.backends import cache, entries, host
from geomctrl.tracing.backends.batches import Batch
from geomctrl.tracing.backends.llvm import module
from geomctrl.tracing.branches import joined
from geomctrl.tracing.derivatives import loads, pullback, tangents
from geomctrl.tracing.fusion import fused
from geomctrl.tracing.locks import renewed_lock
from geomctrl.tracing.patched_numpy import numpy_on_symbols
from geomctrl.tracing.requirements import requirements
from geomctrl.tracing.symbols import Condition, Graph, UntraceableError, as_python, both, where
from geomctrl.tracing.traces import Trace

from .choice import MAX_TRACES
from .law_trace import named, outputs_of
from .loop_parts import LoopParts, copied_parts, loop_parts
from .symbolic_copies import SymbolicCopies
from .trace_parts import as_symbols, one_number, plant_rate

NUMBERS, TIME, STATE, DISPLACEMENT = range(4)  # the graph's arrays; the last is zero in every evaluation

Extra = Callable[[LoopParts, Any, Any, Any, Any, Command], Mapping[str, Any]]


@dataclasses.dataclass(eq=False)
class TracedClosedLoop:
    """The equations at time t in the state y = (q, v, z, work), as symbols of `graph`.

    `numbers`: array 0 of the graph, all numbers of plant, controller and reference. `field`: (v, vdot, z_rate, power),
    the rate of y in the algebra of `group`. `value`, `rate`, `slope`: V, the promised V' and the true one, None without
    `lyapunov`. `extra`: further requested symbols. `good`: the condition under which all of them exist.
    """

    graph: Graph
    numbers: np.ndarray
    group: Any
    t: Any
    y: SymbolArray
    command: Command
    field: list[Any]
    value: Any
    rate: Any
    extra: dict[str, Any]
    good: Any
    displacement: tuple[list[Any], list[Any]] | None  # (u, y exp(u)) with an input u; None if that is y + u
    copies: SymbolicCopies  # keeps objects alive whose id() is part of the cache key
    split: Callable[[Any], Any]  # y -> (q, v, z)
    _calls: dict[str, Any] = dataclasses.field(default_factory=dict)

    @cached_property
    def slope(self) -> Any:
        return None if self.value is None else self.along(self.value)

    def along(self, x: Any, direction: Sequence[Any] | None = None, pace: Any = 1.0) -> Any:
        """dx/dt along the closed loop, or for y moving along `direction` in its algebra and time at `pace`."""
        rates = self.motion(self.field if direction is None else direction)
        seeds = {self.t.index: pace, **{y.index: rate for y, rate in zip(self.y.tolist(), rates)}}
        return tangents(self.graph, [one_number(x)], seeds)[0]

    def motion(self, direction: Sequence[Any]) -> list[Any]:
        """The rates of y's numbers if it moves along `direction` in its algebra: of y exp(u) at u = 0."""
        if self.displacement is None:
            return list(direction)
        u, moved = self.displacement
        return tangents(self.graph, moved, dict(zip(loads(u), direction)))

    def gradient(self, x: Any) -> list[Any]:
        """[dx/dt, dx/du_0, ...]: derivatives with respect to time and a displacement u of y in its algebra."""
        y = self.y.tolist()
        of_time, *of_state = pullback(self.graph, [one_number(x)], [1.0], loads([self.t, *y]))
        if self.displacement is None:
            return [of_time, *of_state]
        u, moved = self.displacement
        return [of_time, *pullback(self.graph, moved, of_state, loads(u))]

    def trace(self, outputs: Sequence[Any]) -> Trace:
        """A trace of those symbols, nan where undefined; inputs are t, y and the displacement (zeros)."""
        numbers = map(one_number, outputs)
        ends = [self.graph.operand(x if self.good is True else where(self.good, x, np.nan)) for x in numbers]
        return Trace(self.graph, (1, len(self.y), self.group.dim), tuple(ends), (len(ends),), None)

    def function(self, outputs: Sequence[Any]) -> Callable[[float, np.ndarray], np.ndarray]:
        """f(t, y) -> their values (outputs,), compiled; all nan if t or y are not finite."""
        trace, n = self.trace(outputs), len(outputs)
        address = self._loaded(trace, "one", ["f_one"])[0]
        zero = np.zeros(self.group.dim)
        call = entries.entry(address, self.numbers, [(), (len(self.y),), (self.group.dim,)], [(n,)])

        def f(t: float, y: np.ndarray) -> np.ndarray:
            result = call(float(t), y, zero)
            return np.full(n, np.nan) if result is None else result

        f.numbers = self.numbers  # pyright: ignore[reportFunctionMemberAccess]  # keeps alive what the code reads
        return f

    def over(self, outputs: Sequence[Any]) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """f(t (n,), y (n, ny)) -> their values (n, outputs) for many states."""
        trace = self.trace(outputs)
        batch = Batch(self.numbers, self._loaded(trace, "many", ["f_many", "f_work"]), len(outputs))

        def f(t: np.ndarray, y: np.ndarray) -> np.ndarray:
            t = np.ascontiguousarray(t, float).reshape(-1, 1)
            return batch(t, np.ascontiguousarray(y, float), np.zeros((len(t), self.group.dim)))[0]

        return f

    def _loaded(self, trace: Trace, kind: str, names: list[str]) -> list[host.Address]:
        """Addresses of a trace's code, new or from disk."""
        widths = [1] if kind == "one" else [host.lanes()]
        trace = fused(trace)
        # a copy, because the graph may grow
        nodes = [(index, trace.graph.nodes[index]) for index in trace.graph.needed(trace.ends)]
        identity = (nodes, trace.outputs, trace.inputs, kind, cache.version(), host.lanes())
        key = hashlib.sha256(repr(identity).encode()).hexdigest()
        if key not in self._calls:
            code = cache.kept(key, lambda: host.object_code(module(trace, widths, side=host.lanes(), flags="")))
            self._calls[key] = host.load(code, names)
        return self._calls[key]


_lock = renewed_lock()
_known: OrderedDict[tuple, TracedClosedLoop] = OrderedDict()


def trace_closed_loop(
    plant: Plant, controller: Any, extra: Extra | None = None, *, lyapunov: bool = True
) -> TracedClosedLoop:
    """The closed loop of a plant at t = 0 and a controller in continuous time.

    lyapunov: whether V is part of it. Otherwise the loop exists where V does not, and V need not be traceable.
    extra: (clone, t, q, v, z, command) -> further symbols by name, where `clone` has the copied plant and controller.
    Without it, loops that differ only in numbers share a graph. Raises UntraceableError, with file and line, for code
    that can not be traced, and if the compiler is off.
    """
    if not enabled():
        raise UntraceableError("the compiler is off (GEOMCTRL_COMPILER=off)")
    robot = plant.robot
    loop = Loop(plant, controller, robot.neutral(), np.zeros(robot.nv), 1e-3)
    if extra is not None:
        return _traced(loop, extra, lyapunov)
    copies, _ = copied_parts(loop, [])
    key = *copies.key(), loop.z_shape, lyapunov
    with _lock:
        if (traced := _known.get(key)) is None:
            traced = _known[key] = _traced(loop, None, lyapunov)
            while len(_known) > MAX_TRACES:
                _known.popitem(last=False)
        _known.move_to_end(key)
    return dataclasses.replace(traced, numbers=copies.values)


def _traced(loop: Loop, extra: Extra | None, lyapunov: bool) -> TracedClosedLoop:
    robot, graph = loop.plant.robot, Graph(watched=True)
    copies = SymbolicCopies(lambda k: graph.load(NUMBERS, k))
    clone = loop_parts(loop, [], copies, lambda *_: None)
    t = as_python(graph.load(TIME, 0))
    y = symbol_array([graph.load(STATE, k) for k in range(len(loop.y))], (len(loop.y),))
    y.setflags(write=False)
    outside = copies.external_state
    spaces = getattr(type(clone.controller).__call__, "__globals__", {}), *outside.spaces.values()
    patched = numpy_on_symbols(*spaces, roots=outside.reached)
    with copies.used(), evaluated_each_time(), patched, requirements() as required:
        q, v, z = state = loop.split(y)
        command = joined(lambda: _command(loop, clone.controller, t, state), copies.reset)
        outputs = outputs_of(clone.controller, command, loop.inputs, loop.rate_shapes)
        rates = joined(lambda: plant_rate(loop, clone.plant, t, y, outputs["tau"]), copies.reset)
        z_rate = as_symbols(outputs["z_rate"]).ravel().tolist() if "z_rate" in outputs else []
        value = rate = None
        if lyapunov and hasattr(clone.controller, "lyapunov"):
            value, rate = joined(lambda: _lyapunov(clone, t, state), copies.reset)
        extras = {} if extra is None else joined(lambda: dict(extra(clone, t, q, v, z, command)), copies.reset)
        displacement = None if is_vector_space(loop.group) else _displaced(graph, loop.group, y)
    good: Any = functools.reduce(both, required, True)
    if not (good is True or isinstance(good, Condition)):
        raise UntraceableError("a term of the robot is undefined at every state")
    n = 2 * robot.nv
    return TracedClosedLoop(
        graph, copies.values, loop.group, t, y, command, [*rates[:n], *z_rate, *rates[n:]], value, rate, extras, good,
        displacement, copies, loop.split,
    )  # fmt: skip


def _command(loop: Loop, law: Any, t: Any, state: tuple) -> Command:
    """The results of a law, with checked shapes."""
    command = named(law, lambda: law(t, *state))
    outputs_of(law, command, loop.inputs, loop.rate_shapes)
    return command


def _lyapunov(clone: LoopParts, t: Any, state: tuple) -> tuple[Any, Any]:
    """V and the rate that the controller promises."""
    value, rate = named(clone.controller, lambda: clone.controller.lyapunov(t, *state, clone.plant))
    return one_number(value), one_number(rate)


def _displaced(graph: Graph, group: Any, y: SymbolArray) -> tuple[list[Any], list[Any]]:
    u = symbol_array([graph.load(DISPLACEMENT, k) for k in range(group.dim)], (group.dim,))
    return u.tolist(), [one_number(x) for x in group.advance(y, u)]
