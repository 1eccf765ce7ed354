"""A trace: what a function computes, as nodes of a graph for each of its output numbers."""

from __future__ import annotations

from dataclasses import dataclass

from .symbols import Graph


@dataclass(frozen=True, eq=False)
class Trace:
    """What an algorithm computes: nodes of `graph` for every number of its outputs, one below the other.

    `inputs`: sizes of the input arrays after the model array, which is array 0 of the graph's loads. `sizes`: those of
    the output arrays. `flag`: the node that says whether there is a result, or None.
    """

    graph: Graph
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    sizes: tuple[int, ...]
    flag: int | None

    @property
    def operations(self) -> int:
        """How many scalar operations one evaluation takes."""
        nodes = self.graph.nodes
        return sum(nodes[index][0] not in ("const", "load") for index in self.graph.needed(self.ends))

    @property
    def ends(self) -> tuple[int, ...]:
        return self.outputs if self.flag is None else (*self.outputs, self.flag)
