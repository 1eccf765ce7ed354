"""Operations that have been done on symbols, in their order; symbols and conditions, which are places among them.

What operations mean and fold to is in `symbols`, Python's operators on symbols are in `operators`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .code_identity import is_followed
from .untraceable import UntraceableError, caller

BOUNDED = {"load", "const", "add", "sub", "mul", "neg", "abs", "min", "max", "sin", "cos", "tanh", "floor", "rint"}


class Graph:
    """Operations in the order in which they can be done: node k is (operation, operands), operands being smaller nodes.

    Operations are those of `operations.VALUES`, const (a float and its sign) and load (number of an array, index).
    finite: whether numbers are taken for finite, and zeros for unsigned, in what is folded; see the module's docstring.
    watched: whether what that leaves out is then required to be finite.
    finite_arrays: numbers of the arrays that whoever runs the code knows to be finite.
    limit: the number of nodes beyond which a trace is given up with UntraceableError.
    """

    def __init__(
        self,
        *,
        finite: bool = True,
        watched: bool = False,
        finite_arrays: Collection[int] = (),
        limit: float = math.inf,
    ):
        self.nodes: list[tuple] = []
        self._known: dict[tuple, int] = {}
        self.finite, self.watched, self.finite_arrays, self.limit = finite, watched, frozenset(finite_arrays), limit
        self.relied_upon: set[tuple[int, int]] = set()  # numbers of such arrays that were asked for: (array, index)
        self._bounded: dict[int, bool] = {}
        self.whole: set[int] = set()  # nodes that are Python's own whole numbers, as of math.floor
        self.exact: set[int] = set()  # nodes of strict code: each is rounded by itself, never fused with another

    @contextmanager
    def of_finite_numbers(self) -> Iterator[None]:
        """Inside, numbers are taken for finite: for kernels, whose inputs are, and for derivatives."""
        before, self.finite, self.watched = (self.finite, self.watched), True, False
        try:
            yield
        finally:
            self.finite, self.watched = before

    def is_bounded(self, index: int) -> bool:
        """Whether a node is finite on every bounded set of inputs, whatever they are."""
        open_nodes = [index]
        while open_nodes:
            k = open_nodes[-1]
            op, *rest = self.nodes[k]
            waiting = [x for x in operands(self.nodes[k]) if x not in self._bounded]
            if k in self._bounded or not waiting:
                inner = all(self._bounded[x] for x in operands(self.nodes[k]))
                self._bounded[k] = inner and op in BOUNDED and not (op == "const" and rest[0] == "nan")
                open_nodes.pop()
            else:
                open_nodes += waiting
        return self._bounded[index]

    def node(self, *key: Any) -> int:
        index = self._known.get(key)
        if index is None:
            if len(self.nodes) >= self.limit:
                raise UntraceableError(f"more than {self.limit} operations and inputs")
            index = self._known[key] = len(self.nodes)
            self.nodes.append(key)
        return index

    def load(self, array: int, index: int) -> Symbol:
        """Number `index` of input array number `array`; it may be Python's own float."""
        return Symbol(self, self.node("load", array, index), True)

    def is_finite_input(self, x: Symbol) -> bool:
        """Whether a symbol is a number of `finite_arrays`; it is then relied upon."""
        op, *place = self.nodes[x.index]
        is_finite = op == "load" and place[0] in self.finite_arrays
        if is_finite:
            self.relied_upon.add((place[0], place[1]))
        return is_finite

    def constant(self, x: float) -> int:
        x = float(x)
        return self.node("const", x, math.copysign(1.0, x)) if x == x else self.node("const", "nan", 1.0)

    def operand(self, x: Any) -> int:
        """The node of a symbol or number."""
        if isinstance(x, (Symbol, Condition)):
            if x.graph is not self:
                raise UntraceableError("symbols of two traces meet in one expression")
            return x.index
        if isinstance(x, bool):
            return self.node("const", x, 1.0)
        return self.constant(x)

    def needed(self, outputs: Iterable[int]) -> list[int]:
        """The nodes that the outputs depend on, in order."""
        wanted = set(outputs)
        for index in range(len(self.nodes) - 1, -1, -1):
            if index in wanted:
                wanted.update(operands(self.nodes[index]))
        return sorted(wanted)


def operands(node: tuple) -> tuple[int, ...]:
    return () if node[0] in ("const", "load") else node[1:]


UNCERTAIN = 2  # of a symbol: it may be Python's own number or one of numpy's


def python_type(x: Any) -> type:
    """The class of the number that Python has in the place of a symbol or condition."""
    if x.python == UNCERTAIN:
        raise UntraceableError(
            f"the type of a number is asked for{caller()}, which may be Python's or numpy's: make it one of them, as by"
            " np.float64(x), where it comes from"
        )
    if type(x) is Condition:
        return bool if x.python else np.bool_
    return (int if x.index in x.graph.whole else float) if x.python else np.float64


def asked_by_user(*libraries: str) -> bool:
    """Whether the code that asks the caller of this function for something is a user's, or one of the libraries'."""
    module = sys._getframe(2).f_globals.get("__name__", "")
    return is_followed(module) or module.partition(".")[0] in libraries


def _class(self: Any) -> type:
    if not asked_by_user("numpy", "abc"):
        return type(self)
    return float if self.python == UNCERTAIN else python_type(self)  # a float in any case, as numpy's is one too


class Symbol:
    """A real number that is not known yet.

    python: whether it may be Python's own float, which raises where numpy's numbers become nan or infinite; False where
    it is certainly numpy's, as the entries of arrays are; UNCERTAIN where it may be either. Where Python would raise
    there is no result (`require`).
    """

    __slots__ = ("graph", "index", "python")
    __class__ = property(_class)  # pyright: ignore[reportAssignmentType]
    __array_ufunc__: Any = None  # numpy's numbers leave the operation to us; `arrays` knows what to do beside an array
    __array_function__: Any

    def __init__(self, graph: Graph, index: int, python: int = False):
        self.graph, self.index, self.python = graph, index, python

    def __copy__(self, *_):
        return self

    __deepcopy__ = conjugate = __copy__
    real, imag = property(lambda self: self), property(lambda self: 0.0)


class Condition:
    """A comparison of symbols: true or false, not known yet. python: whether it may be Python's own bool."""

    __slots__ = ("graph", "index", "python")
    __class__ = property(_class)  # pyright: ignore[reportAssignmentType]
    __array_ufunc__: Any = None
    __array_function__: Any

    def __init__(self, graph: Graph, index: int, python: bool = False):
        self.graph, self.index, self.python = graph, index, python

    def __copy__(self, *_):
        return self

    __deepcopy__ = __copy__
