"""`Graph`, `Symbol` and `Condition`: the recorded operations in order, and references to them.

`symbols` defines the operations and their folding, `operators` Python's operators on symbols.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .code_identity import is_followed
from .untraceable import UntraceableError, asker, caller

BOUNDED = {"load", "const", "add", "sub", "mul", "neg", "abs", "min", "max", "sin", "cos", "tanh", "floor", "rint"}


class Graph:
    """Operations in executable order: node k is (operation, operands), and operands are earlier nodes.

    Operations are those of `operations.VALUES`, const (a float and its sign) and load (number of an array, index).
    finite: whether folding assumes finite numbers and unsigned zeros; see the module `symbols`.
    watched: whether terms omitted by that are then required to be finite.
    finite_arrays: arrays whose numbers the caller knows to be finite.
    limit: the number of nodes beyond which tracing raises UntraceableError.
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
        self.relied_upon: set[tuple[int, int]] = set()  # used numbers of `finite_arrays`: (array, index)
        self._bounded: dict[int, bool] = {}
        self.exact: set[int] = set()  # nodes of strict code: rounded separately, never fused

    @staticmethod
    def of(nodes: list[tuple], exact: Iterable[int], finite: bool) -> Graph:
        """A graph with these nodes, in order, and the numbers of the exact ones."""
        graph = Graph(finite=finite)
        graph.nodes, graph.exact, graph._known = nodes, set(exact), {node: k for k, node in enumerate(nodes)}
        return graph

    @contextmanager
    def of_finite_numbers(self) -> Iterator[None]:
        """Context that assumes finite numbers: for kernels with checked inputs, and for derivatives."""
        before, self.finite, self.watched = (self.finite, self.watched), True, False
        try:
            yield
        finally:
            self.finite, self.watched = before

    def is_bounded(self, index: int) -> bool:
        """Whether a node is finite on every bounded set of inputs."""
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
                raise UntraceableError(f"the code needs more than {self.limit} operations and inputs")
            index = self._known[key] = len(self.nodes)
            self.nodes.append(key)
        return index

    def load(self, array: int, index: int) -> Symbol:
        """Number `index` of input array `array`, as a Python float."""
        return Symbol(self, self.node("load", array, index), FLOAT)

    def is_finite_input(self, x: Symbol) -> bool:
        """Whether a symbol is a number of `finite_arrays`; it is then recorded as relied upon."""
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
        if type(x) is Symbol or type(x) is Condition:  # isinstance would call `__class__` of each symbol
            if x.graph is not self:
                raise UntraceableError("an expression combines symbols of two calls: do not store values between calls")
            return x.index
        if isinstance(x, bool):
            return self.node("const", x, 0.0)  # numbers have 1.0 there: as a key, True equals 1.0
        number = float(x)
        if isinstance(x, (int, np.integer)) and int(number) != int(x):
            raise UntraceableError(f"no float is equal to the integer {x}{caller()}: write float({x}), or use floats")
        return self.constant(number)

    def needed(self, outputs: Iterable[int]) -> list[int]:
        """The nodes on which the outputs depend, in order."""
        nodes, wanted = self.nodes, set(outputs)
        waiting = [*wanted]
        while waiting:
            for k in operands(nodes[waiting.pop()]):
                if k not in wanted:
                    wanted.add(k)
                    waiting.append(k)
        return sorted(wanted)


def operands(node: tuple) -> tuple[int, ...]:
    return () if node[0] in ("const", "load") else node[1:]


NUMPY, FLOAT, INT, INT64 = range(4)  # kinds: np.float64, float, int, np.int64; for conditions np.bool_ and bool
CLASSES = np.float64, float, int, np.int64
PYTHON, WHOLE = (FLOAT, INT), (INT, INT64)
MAX_DEPTH = 4  # of kinds that depend on nested conditions


class ConditionalKind:
    """A kind that depends on a condition: of stored memory, or of the larger of two numbers."""

    __slots__ = ("condition", "no", "yes")

    def __init__(self, condition: Condition, yes: Any, no: Any):
        self.condition, self.yes, self.no = condition, yes, no


def kinds_in(kind: Any) -> set[int]:
    """The possible kinds of a number."""
    return kinds_in(kind.yes) | kinds_in(kind.no) if type(kind) is ConditionalKind else {kind}


def combined(rule: Callable[..., int], *kinds: Any, depth: int = 0) -> Any:
    """The kind of a result, by a rule for certain kinds; beyond `MAX_DEPTH` conditions become branches."""
    for k, kind in enumerate(kinds):
        if type(kind) is ConditionalKind:
            chosen = (kind.yes, kind.no) if depth < MAX_DEPTH else (kind.yes if kind.condition else kind.no,)
            results = [
                combined(rule, *(_under(x, kind.condition, y is kind.yes) for x in kinds[:k]), y,
                         *(_under(x, kind.condition, y is kind.yes) for x in kinds[k + 1 :]), depth=depth + 1)
                for y in chosen
            ]  # fmt: skip
            return results[0] if results[0] is results[-1] else ConditionalKind(kind.condition, *results)
    return rule(*kinds)


def _under(kind: Any, condition: Condition, holds: bool) -> Any:
    """A kind under a known condition."""
    if type(kind) is not ConditionalKind:
        return kind
    if kind.condition.index == condition.index:
        return _under(kind.yes if holds else kind.no, condition, holds)
    yes, no = (_under(x, condition, holds) for x in (kind.yes, kind.no))
    return yes if yes is no else ConditionalKind(kind.condition, yes, no)


def certain(kind: Any) -> int:
    """The kind on the current path; if it depends on a condition, this branches."""
    while type(kind) is ConditionalKind:
        kind = kind.yes if kind.condition else kind.no
    return kind


def python_type(x: Any) -> type:
    """The Python class of the number that a symbol or condition represents."""
    kind = certain(x.kind)
    return CLASSES[kind] if type(x) is Symbol else truth_class(kind)


def truth_class(kind: int) -> type:
    """The class of the truth value that a condition of that kind represents."""
    return np.bool_ if kind == NUMPY else bool


def called_by_user(*libraries: str) -> bool:
    """Whether the caller of this function was called by user code or by one of the libraries."""
    module = sys._getframe(2).f_globals.get("__name__", "")
    return is_followed(module) or module.partition(".")[0] in libraries


def _class(self: Any) -> type:
    if type(self.kind) is ConditionalKind and (asker.get() is None or not called_by_user()):
        return float if called_by_user("numpy", "abc") else type(self)  # also for np.float64, a subclass of float
    return python_type(self) if called_by_user("numpy", "abc", "typing") else type(self)


class Symbol:
    """A real number that is unknown while tracing.

    kind: the type of number it represents, `NUMPY`, `FLOAT`, `INT`, `INT64` or `ConditionalKind`. Where Python
    numbers raise and numpy's become nan or infinite, there is no result (`require`).
    in_array: whether it is stored in an array, see `as_entry`.
    """

    __slots__ = ("graph", "in_array", "index", "kind")
    __class__ = property(_class)  # pyright: ignore[reportAssignmentType]
    __array_ufunc__: Any = None  # numpy's numbers return NotImplemented, so that our operators apply
    __array_function__: Any
    __array__: Any

    def __init__(self, graph: Graph, index: int, kind: Any = NUMPY):
        self.graph, self.index, self.kind, self.in_array = graph, index, kind, False

    def __copy__(self, *_):
        return self

    __deepcopy__ = conjugate = __copy__
    real, imag = property(lambda self: self), property(lambda self: 0.0)


class Condition:
    """A comparison of symbols, unknown while tracing.

    kind: `NUMPY`, `FLOAT` for Python's bool, or `ConditionalKind`.
    in_array: whether it is stored in an array, see `as_entry`.
    """

    __slots__ = ("graph", "in_array", "index", "kind")
    __class__ = property(_class)  # pyright: ignore[reportAssignmentType]
    __array_ufunc__: Any = None
    __array_function__: Any
    __array__: Any

    def __init__(self, graph: Graph, index: int, kind: Any = NUMPY):
        self.graph, self.index, self.kind, self.in_array = graph, index, kind, False

    def __copy__(self, *_):
        return self

    __deepcopy__ = __copy__
