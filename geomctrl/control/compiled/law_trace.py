"""The trace of a controller's law, and the states at which it is compared with Python."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection
from typing import Any, TypeAlias

import numpy as np

from geomctrl.arguments import shown
from geomctrl.compiler import code
from geomctrl.control.contracts import Command, Controller
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.configuration import random_configuration
from geomctrl.robot import Robot
from geomctrl.tracing.arrays import SymbolArray, has_symbols, symbol_array
from geomctrl.tracing.branches import joined
from geomctrl.tracing.code_identity import raised_in
from geomctrl.tracing.patched_numpy import numpy_on_symbols
from geomctrl.tracing.requirements import requirements
from geomctrl.tracing.symbols import (
    Condition,
    Graph,
    UntraceableError,
    where,
)
from geomctrl.tracing.tracer import finished
from geomctrl.tracing.traces import Trace

from .contents import ADVICE, BUFFERS, LAW, SideEffectError, with_work_buffers
from .symbolic_copies import SymbolicCopies

OF_STATE = ("z_rate", "z_next")  # fields of a Command about the controller's state

State: TypeAlias = tuple[float, np.ndarray, np.ndarray, np.ndarray | None]


def require_compilable_size(owner: str, numbers: int) -> None:
    """Raise UntraceableError for a state with more numbers than allowed operations, before tracing."""
    if numbers > code.OPERATIONS:
        raise UntraceableError(
            f"{owner}: a state of {numbers} numbers ({8e-6 * numbers:.3g} MB), at most {code.OPERATIONS} are compiled"
        )


def traced(controller: Controller, robot: Robot, z0: np.ndarray | None) -> tuple[Trace, dict[str, tuple[int, ...]]]:
    """The law's trace, inputs t, q, v and z, and the shapes of its outputs by name."""
    try:
        return with_work_buffers(lambda buffers: _traced(controller, robot, z0, buffers, False))
    except UntraceableError as error:  # perhaps the law writes symbols into its own array
        try:
            return with_work_buffers(lambda buffers: _traced(controller, robot, z0, buffers, True))
        except UntraceableError as other:
            raise (other if isinstance(other, SideEffectError) else error) from None


def _traced(
    controller: Controller, robot: Robot, z0: np.ndarray | None, buffers: frozenset[str], writable: bool
) -> tuple[Trace, dict[str, tuple[int, ...]]]:
    graph, lengths = Graph(finite=False), [1, robot.nq, robot.nv, *([] if z0 is None else [z0.size])]
    t, q, v, *z = (symbol_array([graph.load(k + 1, j) for j in range(n)], (n,)) for k, n in enumerate(lengths))
    for x in (q, v, *z):
        x.setflags(write=False)  # as in a running loop
    state = None if z0 is None else z[0].reshape(z0.shape)
    space = getattr(type(controller).__call__, "__globals__", {})
    time_ = t.item()
    copies = SymbolicCopies(
        buffer=lambda k: graph.load(BUFFERS, k), buffers=buffers, advice=ADVICE["compile"], writable=writable
    )
    clone = copies.of(controller, LAW)
    states, rates = (set(), set()) if z0 is None else ({z0.shape}, _rate_shapes(controller, z0))

    def called() -> dict[str, Any]:
        command = named(clone, lambda: clone(time_, q, v, state))
        return outputs_of(controller, command, robot.nv, rates, states)

    with copies.used(), requirements() as required, numpy_on_symbols(space, roots=copies.external_state.reached):
        outputs = joined(called, copies.reset)
        arrays = [np.asarray(y, object) for y in outputs.values()]
        copies.traced.append((graph, [graph.operand(x) for y in arrays for x in y.ravel().tolist()]))
        copies.traced.append((graph, [graph.operand(x) for x in required]))
    trace = finished(graph, [(n,) for n in lengths], arrays, required)
    if trace is None:
        raise UntraceableError(f"{class_name(controller)}: a term of the robot is undefined at every state")
    return trace, {name: tuple(map(int, np.shape(y))) for name, y in outputs.items()}


def _rate_shapes(controller: Any, z0: np.ndarray) -> set[tuple[int, ...]]:
    """The possible shapes of z_rate: on a group also a vector of its algebra."""
    group = getattr(controller, "group", None)
    dim = z0.size if group is None else group.dim
    return {(dim,), *([z0.shape] if z0.size == dim else [])}


def named(whose: Any, call: Callable[[], Any]) -> Any:
    """The call's result; exceptions of user code for symbols are reported with their line."""
    try:
        return call()
    except UntraceableError as error:
        error.args = (f"{class_name(whose)} can not be traced: {error}",)
        raise
    except Exception as error:
        frame = raised_in(error) or traceback.extract_tb(error.__traceback__)[-1]
        hint = "; arguments, and arrays that share memory, can not be written: copy them"
        raise UntraceableError(
            f"{class_name(whose)} can not be traced: {type(error).__name__}: {error!s:.200}, in {frame.filename},"
            f" line {frame.lineno}{hint if 'read-only' in str(error) else ''}"
        ) from error


def outputs_of(
    controller: Controller,
    command: Any,
    nv: int,
    rates: Collection[tuple[int, ...]],
    states: Collection[tuple[int, ...]] = (),
) -> dict[str, Any]:
    """The results of a law for symbols, by name.

    rates: possible shapes of z_rate, none without a state; states: those of z_next, none in continuous time."""
    if not isinstance(command, Command):
        shape = getattr(command, "shape", None)  # symbols have no text
        got = f"{type(command).__name__}" if shape is None else f"numbers of shape {shape}"
        raise ArgumentError(f"controller: expected a Command from {class_name(controller)}, got {got}")
    for name in ("tau", *OF_STATE):
        if name in command.signals:
            raise ArgumentError(f"controller: expected no signal {name!r}, which the Command has already")
    outputs = parts_of(command)
    if "z_next" in outputs and not states:
        raise ArgumentError(
            f"controller: expected no z_next of {class_name(controller)}, which has no state or no sampling period"
        )
    if bool(rates) != ("z_rate" in outputs or "z_next" in outputs):
        name = class_name(controller)
        expected = (
            f"Command(tau, z_rate=...), or with z_next=..., because {name}.start() returns a state"
            if rates
            else f"no z_rate, because {name} has no start() that returns a state"
        )
        raise ArgumentError(f"controller: expected {expected}")
    shapes = {"tau": {(nv,)}, "z_rate": rates, "z_next": states}
    for name, x in outputs.items():
        if not has_symbols(x) and not isinstance(x, (int, float, np.ndarray, np.generic)):
            raise UntraceableError(f"{class_name(controller)}: {name} is neither a number nor an array, got {shown(x)}")
        if name in shapes and np.shape(x) not in shapes[name]:
            expected = " or ".join(map(str, shapes[name]))
            raise ArgumentError(f"controller: expected {name} of shape {expected}, got {np.shape(x)}")
        if isinstance(x, Condition):
            outputs[name] = where(x, 1.0, 0.0)
        elif isinstance(x, SymbolArray) and any(isinstance(y, Condition) for y in x.ravel().tolist()):
            outputs[name] = np.where(x, 1.0, 0.0)
        elif isinstance(x, np.ndarray):
            outputs[name] = x.copy()  # the law may keep its array, which is restored before the next call
    return outputs


def parts_of(command: Command) -> dict[str, Any]:
    """The results of a law by name."""
    state = {name: x for name in OF_STATE if (x := getattr(command, name)) is not None}
    return {"tau": command.tau, **state, **command.signals}


def class_name(whose: Any) -> str:
    return type(whose).__name__


def trial_state(controller: Any, robot: Robot, z0: np.ndarray | None, rng: np.random.Generator, k: int) -> State:
    """State k of a comparison, (t, q, v, z): the initial one, then random ones, every other near it."""
    z, scale = z0, 0.0 if k == 0 else 0.05 if k % 2 else 1.0
    t, v = (0.7 * k if k < 8 else 10.0 * rng.uniform()), scale * rng.normal(size=robot.nv)
    q = random_configuration(robot, rng) if scale == 1.0 else robot.neutral()
    q = robot.integrate(q, scale * rng.normal(size=robot.nv)) if 0.0 < scale < 1.0 else q
    if z is not None and getattr(controller, "group", None) is None:
        z = z + 0.1 * scale * (1.0 + np.abs(z)) * rng.normal(size=z.shape)
    return t, q, v, None if z is None else z.copy()
