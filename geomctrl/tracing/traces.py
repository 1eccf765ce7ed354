"""`Trace`: the operations of a function as nodes of a graph, with inputs and outputs."""

from __future__ import annotations

from dataclasses import dataclass

from .symbols import Graph


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
    def ends(self) -> tuple[int, ...]:
        return self.outputs if self.flag is None else (*self.outputs, self.flag)
