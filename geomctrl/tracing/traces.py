"""`Trace`: the operations of a function as nodes of a graph, with inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .graph import Graph, Symbol, operands


@dataclass(frozen=True, eq=False)
class Trace:
    """The operations of an algorithm: nodes of `graph` for every number of its outputs, concatenated.

    `inputs`: sizes of the input arrays after the model array, which is array 0. `sizes`: sizes of the output arrays.
    `flag`: the node that says whether there is a result, or None.
    """

    graph: Graph
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    sizes: tuple[int, ...]
    flag: int | None

    @property
    def operations(self) -> int:
        """Number of scalar operations per evaluation."""
        nodes = self.graph.nodes
        return sum(nodes[index][0] not in ("const", "load") for index in self.graph.needed(self.ends))

    @property
    def symbols(self) -> list[Symbol]:
        """The numbers of its outputs."""
        return [Symbol(self.graph, index) for index in self.outputs]

    @property
    def ends(self) -> tuple[int, ...]:
        return self.outputs if self.flag is None else (*self.outputs, self.flag)


def without_unused(traces: Sequence[Trace]) -> list[Trace]:
    """Copies of the traces without unneeded operations; traces that share a graph share its copy."""
    ends: dict[Graph, set[int]] = {}
    for trace in traces:
        ends.setdefault(trace.graph, set()).update(trace.ends)
    graphs = {graph: _part(graph, graph.needed(indices)) for graph, indices in ends.items()}
    return [
        replace(trace, graph=graph, outputs=tuple(map(new.get, trace.outputs)), flag=new.get(trace.flag))
        for trace in traces
        for graph, new in [graphs[trace.graph]]
    ]


def _part(graph: Graph, needed: Sequence[int]) -> tuple[Graph, dict[int | None, int]]:
    """A graph with these nodes alone, and the new number of each."""
    new: dict[int | None, int] = {index: k for k, index in enumerate(needed)}
    nodes = [(x[0], *map(new.get, x[1:])) if operands(x) else x for x in map(graph.nodes.__getitem__, needed)]
    return Graph.of(nodes, map(new.__getitem__, graph.exact & new.keys()), graph.finite), new
