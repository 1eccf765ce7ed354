"""LLVM code from a trace in single precision, with doubles where the result needs them.

Inputs, outputs and the numbers of the model are doubles in memory. Three kinds of operations are computed in double
precision (see `double_nodes`), the others in single precision; a number is converted where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from geomctrl.tracing.partition import Plan
from geomctrl.tracing.symbols import operands
from geomctrl.tracing.traces import Trace

from .ir import Vector
from .llvm import CONDITIONS, Place, PlanSegment

DOUBLE, FLOAT = Vector(1), Vector(1, "float")
FLOAT_RANGE = 2.0**-126, (2.0 - 2.0**-23) * 2.0**127  # of normal floats
Load = Callable[[int, int], bool]  # of an array's number and an index in it


def double_nodes(trace: Trace, state: Load, memory: Load, exact: Collection[int], sums: Collection[int]) -> set[int]:
    """The operations of a trace that are computed in double precision.

    - Everything that the outputs `exact` depend on.
    - What updates a number that persists: what leads from loads of `memory` to the outputs `sums`.
    - What does not depend on the state, such as functions of time and random numbers. Functions of the model's numbers
      alone are among them if one of these operations uses them.

    Operations with a constant that no float can represent are doubles as well.

    Parameters
    ----------
    trace : Trace
        The trace.
    state, memory : callable
        Whether a load is a part of the state, and whether it is a number that persists between calls.
    exact, sums : collection of int
        Numbers of outputs.

    Returns
    -------
    set of int
        Nodes of the trace's graph.
    """
    graph, nodes = trace.graph, trace.graph.nodes
    needed = graph.needed(trace.ends)
    of_state, of_memory, of_others = set(), set(), set()
    for index in needed:
        op, *rest = nodes[index]
        if op == "load":
            array = rest[0]
            of_state |= {index} if array and state(*rest) else set()
            of_memory |= {index} if array and memory(*rest) else set()
            of_others |= {index} if array else set()
        elif op != "const":
            for kind in (of_state, of_memory, of_others):
                if not kind.isdisjoint(operands(nodes[index])):
                    kind.add(index)
    double = set(graph.needed([trace.outputs[k] for k in exact]))
    double |= of_memory.intersection(graph.needed([trace.outputs[k] for k in sums]))
    double |= of_others - of_state
    double |= {index for index in needed if any(map(_beyond_float, map(nodes.__getitem__, operands(nodes[index]))))}
    for index in reversed(needed):  # users follow their operands
        if index in double and nodes[index][0] not in ("load", "const"):
            double |= {x for x in operands(nodes[index]) if x not in of_others}
    return {index for index in double if nodes[index][0] not in ("load", "const")}


def _beyond_float(node: Sequence) -> bool:
    """Whether a node is a finite constant that overflows or underflows as a float."""
    if node[0] != "const" or not isinstance(node[1], float) or not 0.0 < abs(node[1]) < float("inf"):
        return False
    return not FLOAT_RANGE[0] <= abs(node[1]) <= FLOAT_RANGE[1]


class MixedSegment(PlanSegment):
    """A function under construction that computes some of a plan's nodes, those in `double` in double precision."""

    def __init__(self, plan: Plan, vector: Vector, place: Place | None, flags: str, double: Collection[int]):
        super().__init__(plan, vector, place, flags)
        self.double = double
        self.converted: dict[tuple[int, str], str] = {}
        self.waves_of: dict[str, dict[int, tuple[str, str]]] = {DOUBLE.real: {}, FLOAT.real: {}}

    def angles(self, side: int) -> None:
        self.operations([index for index in self.plan.slot if self.plan.is_wave(index)])

    def operations(self, nodes: list[int]) -> None:
        for index in nodes:
            self.vector = self._kind(index)
            super().operations([index])
        self.vector = DOUBLE

    def address(self, base: str, index: int | str) -> str:
        return self.let(f"getelementptr double, ptr {base}, i64 {index}")  # a float takes the place of a double, too

    def store(self, index: int, k: int) -> None:
        before, self.vector = self.vector, DOUBLE
        super().store(index, k)
        self.vector = before

    def wave(self, x: int) -> tuple[str, str]:
        self.waves = self.waves_of[self.vector.real]
        return super().wave(x)

    def value(self, index: int) -> str:
        """The name or literal of a node, in the precision of the operation that uses it."""
        op, *rest = self.nodes[index]
        if op == "const":
            return self.literal(*rest)
        wanted, own = self.vector, self._kind(index)
        self.vector = own
        x = super().value(index)
        self.vector = wanted
        if op in CONDITIONS or own is wanted:
            return x
        if (index, wanted.real) not in self.converted:
            how = "fpext" if wanted is DOUBLE else "fptrunc"
            self.converted[index, wanted.real] = self.let(f"{how} {own.type} {x} to {wanted.type}")
        return self.converted[index, wanted.real]

    def _kind(self, index: int) -> Vector:
        return DOUBLE if index in self.double or self.nodes[index][0] == "load" else FLOAT
