"""Compiled derivatives of a controller's law with respect to q, v and z."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from geomctrl.arguments import shown
from geomctrl.compiler import code
from geomctrl.control.contracts import Controller
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot
from geomctrl.tracing.backends import entries
from geomctrl.tracing.backends.machine_code import address_of_one
from geomctrl.tracing.derivatives import tangents
from geomctrl.tracing.symbols import Symbol, UntraceableError
from geomctrl.tracing.traces import Trace

from .law import compile
from .law_trace import OF_STATE

NO_MODEL = np.zeros(1)  # placeholder for the model array


def law_slopes(controller: Controller, robot: Robot) -> Callable[..., dict[str, np.ndarray]]:
    """f(t, q, v, z) -> {"tau": (nv, n), "z_rate", "z_next": (m, n)}, derivatives with respect to (q, v, z).

    n = nq + nv + m, for a law whose state is a vector or None. Raises UntraceableError with file and line if the law
    can not be traced, differs from its trace (see `compile`) or is too long.
    """
    compiled = compile(controller, robot)
    law, shapes, z0 = compiled._trace, compiled.outputs, compiled._z0
    graph, columns = law.graph, sum(law.inputs[1:])
    wanted, place = {}, 0
    for name, size in zip(shapes, law.sizes, strict=True):
        if name in ("tau", *OF_STATE):
            wanted[name] = law.outputs[place : place + size]
        place += size
    moved = [graph.load(k, j).index for k, size in enumerate(law.inputs[1:], start=2) for j in range(size)]
    values = [Symbol(graph, x) for ends in wanted.values() for x in ends]
    rates = [tangents(graph, values, {node: 1.0}) for node in moved]
    outputs = tuple(graph.operand(along[i]) for i in range(len(values)) for along in rates)
    sizes = [(len(ends), columns) for ends in wanted.values()]
    trace = Trace(graph, law.inputs, outputs, tuple(a * b for a, b in sizes), law.flag)
    if trace.operations > code.OPERATIONS:
        raise UntraceableError(
            f"{type(controller).__name__}: {trace.operations} operations for its derivatives, at most"
            f" {code.OPERATIONS} are compiled"
        )
    input_shapes = [(), (robot.nq,), (robot.nv,), *([] if z0 is None else [z0.shape])]
    call: Any = entries.entry(address_of_one(trace), NO_MODEL, input_shapes, sizes)

    def slopes(t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray | None) -> dict[str, np.ndarray]:
        results = call(t, q, v) if z0 is None else call(t, q, v, z)
        if results is None:
            raise ArgumentError(f"t, q, v, z: the law has no derivatives at this state, t = {shown(t)}")
        return dict(zip(wanted, [results] if len(wanted) == 1 else results, strict=True))

    return slopes
