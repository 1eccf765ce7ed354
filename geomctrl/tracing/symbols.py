"""Symbols: numbers that remember how they came about, in a graph of scalar operations.

Arithmetic on a `Symbol` adds a node to its `Graph`. Constants are folded, neutral elements vanish, signs move outward
and equal expressions are one node. Python's own numbers stay Python's: an operation on two floats is done at once.

Two modes of folding (`Graph.finite`). A user's code is traced in the strict one: only what IEEE arithmetic gives for
every operand is folded, so that nan, infinities and the sign of zero come out as in Python, and its sums and products
are rounded one by one. Kernels of robots are traced for finite numbers: 0 x = 0 and x - x = 0 there, which removes the
structural zeros of a robot and makes its code several times shorter. That is no difference to Python, where terms
refuse states that are not finite; on symbols the caller of a kernel requires its inputs to be finite. Proofs trace
users' code so too, as what cancels is to vanish; what is left out is then required to be finite (`watched`).

A comparison of symbols is a symbol too, a `Condition`: `if` on it asks `asker`, which `branches` sets, or raises.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np

from .boundedness import is_bounded
from .operations import EVEN, ODD, VALUES, value
from .requirements import on_symbols, require
from .untraceable import UntraceableError, asker, caller

COMMUTATIVE = {"add", "mul", "eq", "and", "or"}
ROUNDED = {"add", "sub", "mul", "div"}
LARGEST = float(np.finfo(float).max)


class Graph:
    """Operations in the order in which they can be done: node k is (operation, operands), operands being smaller nodes.

    Operations are those of `operations.VALUES`, const (a float and its sign) and load (number of an array, index).
    finite: whether numbers are taken for finite, and zeros for unsigned, in what is folded; see the module's docstring.
    watched: whether what that leaves out is then required to be finite.
    """

    def __init__(self, *, finite: bool = True, watched: bool = False):
        self.nodes: list[tuple] = []
        self._known: dict[tuple, int] = {}
        self.finite, self.watched = finite, watched
        self._bounded: dict[int, bool] = {}
        self.exact: set[int] = set()  # nodes of strict code: each is rounded by itself, never fused with another

    @contextmanager
    def of_finite_numbers(self) -> Iterator[None]:
        """Inside, numbers are taken for finite: for kernels, whose inputs are, and for derivatives."""
        before, self.finite, self.watched = (self.finite, self.watched), True, False
        try:
            yield
        finally:
            self.finite, self.watched = before

    def leave_out(self, at: int) -> None:
        """Require a node to be finite that folding leaves out of a result."""
        if self.watched and not is_bounded(self.nodes, at, self._bounded):
            require(is_finite(Symbol(self, at)))

    def node(self, *key: Any) -> int:
        at = self._known.get(key)
        if at is None:
            at = self._known[key] = len(self.nodes)
            self.nodes.append(key)
        return at

    def load(self, array: int, index: int) -> Symbol:
        """Number `index` of input array number `array`; it may be Python's own float."""
        return Symbol(self, self.node("load", array, index), True)

    def constant(self, x: float) -> int:
        x = float(x)
        return self.node("const", x, math.copysign(1.0, x)) if x == x else self.node("const", "nan", 1.0)

    def operand(self, x: Any) -> int:
        """The node of a symbol or number."""
        if isinstance(x, (Symbol, Condition)):
            if x.graph is not self:
                raise UntraceableError("symbols of two traces meet in one expression")
            return x.at
        if isinstance(x, bool):
            return self.node("const", x, 1.0)
        return self.constant(x)

    def needed(self, outputs: Iterable[int]) -> list[int]:
        """The nodes that the outputs depend on, in order."""
        wanted = set(outputs)
        for at in range(len(self.nodes) - 1, -1, -1):
            if at in wanted:
                wanted.update(operands(self.nodes[at]))
        return sorted(wanted)


def operands(node: tuple) -> tuple[int, ...]:
    return () if node[0] in ("const", "load") else node[1:]


class Symbol:
    """A real number that is not known yet.

    python: whether it may be Python's own float, which raises where numpy's numbers become nan or infinite; False where
    it is certainly numpy's, as the entries of arrays are. Where Python would raise there is no result (`require`).
    """

    __slots__ = ("at", "graph", "python")
    __array_ufunc__: Any = None  # numpy's numbers leave the operation to us; `arrays` knows what to do beside an array
    __array_function__: Any

    def __init__(self, graph: Graph, at: int, python: bool = False):
        self.graph, self.at, self.python = graph, at, python

    def __bool__(self):
        return bool(invert(compare("eq", self, 0.0)))

    def __copy__(self, *_):
        return self

    def item(self):
        return as_python(self)

    __deepcopy__ = conjugate = __copy__
    real, imag = property(lambda self: self), property(lambda self: 0.0)


class Condition:
    """A comparison of symbols: true or false, not known yet. python: whether it may be Python's own bool."""

    __slots__ = ("at", "graph", "python")
    __array_ufunc__: Any = None
    __array_function__: Any

    def __init__(self, graph: Graph, at: int, python: bool = False):
        self.graph, self.at, self.python = graph, at, python

    def __and__(self, other):
        return NotImplemented if _holds_symbols(other) else both(self, other)

    __rand__ = __and__

    def __or__(self, other):
        return NotImplemented if _holds_symbols(other) else invert(both(invert(self), invert(other)))

    __ror__ = __or__

    def __xor__(self, other):
        return NotImplemented if _holds_symbols(other) else differ(self, other)

    __rxor__ = __ne__ = __xor__

    def __eq__(self, other):
        return NotImplemented if _holds_symbols(other) else invert(differ(self, other))

    def __invert__(self):
        if self.python:
            raise UntraceableError(f"~ of a bool is a whole number{caller()}: write np.logical_not")
        return invert(self)

    def __copy__(self, *_):
        return self

    __deepcopy__ = __copy__

    def __bool__(self):
        if (ask := asker.get()) is None:
            raise UntraceableError(f"a branch depends on a symbol{caller()}: choose with where(condition, a, b)")
        return ask(self)


# --- operations --------------------------------------------------------------------------------------------------


def is_symbol(x: Any) -> bool:
    return type(x) is Symbol


def is_number(x: Any) -> bool:
    kind = type(x)
    if kind is Symbol or kind is float or kind is int:
        return True
    return kind is not Condition and (isinstance(x, Real) or (getattr(x, "shape", None) == () and x.dtype != object))


def is_python(x: Any) -> bool:
    """Whether x may be one of Python's own numbers: beside one of numpy's, numpy computes, and nothing is raised."""
    return x.python if type(x) is Symbol else type(x) in (float, int, bool)


def as_python(x: Any) -> Any:
    """The same number as Python's own float, which functions of math and `item` answer."""
    return Symbol(x.graph, x.at, True) if type(x) is Symbol and not x.python else x


def _holds_symbols(x: Any) -> bool:
    """Whether x is an array, which then knows what to do beside a symbol."""
    return hasattr(x, "dtype") and x.dtype == object


def _made(op: str, *args: Any) -> Symbol:
    graph = next(x.graph for x in args if isinstance(x, (Symbol, Condition)))
    ends = [graph.operand(x) for x in args]
    if op in COMMUTATIVE and ends[0] > ends[1]:
        ends.reverse()
    at = graph.node(op, *ends)
    if op in ROUNDED and not graph.finite:
        graph.exact.add(at)
    return Symbol(graph, at)


def _is_zero(x: Any) -> bool:
    """Whether x is 0.0, of which a sum takes nothing but the sign of its zero."""
    return x == 0.0 and math.copysign(1.0, x) > 0.0


def _negated(x: Any) -> Symbol | None:
    """y where x is -y."""
    if is_symbol(x):
        node = x.graph.nodes[x.at]
        if node[0] == "neg":
            return Symbol(x.graph, node[1])
    return None


def neg(a: Any) -> Any:
    if not is_symbol(a):
        return -a
    inner = _negated(a)
    if inner is not None:
        return inner
    if (node := a.graph.nodes[a.at])[0] == "sub" and a.graph.finite:  # -(a - b) = b - a
        return Symbol(a.graph, a.graph.node("sub", node[2], node[1]))
    return _made("neg", a)


def add(a: Any, b: Any) -> Any:
    if not is_symbol(a):
        if not is_symbol(b):
            return a + b
        a, b = b, a
    if not is_symbol(b):
        return _plus_constant(a, b)
    if not a.graph.finite:
        for x, y in ((a, b), (b, a)):
            if _vanishes(y):
                return add(x, 0.0)
    minus_a, minus_b = _negated(a), _negated(b)
    if minus_a is not None and minus_b is not None:
        return neg(add(minus_a, minus_b)) if a.graph.finite else _made("sub", a, minus_b)
    if minus_b is not None:
        return sub(a, minus_b)
    return sub(b, minus_a) if minus_a is not None else _made("add", a, b)


def _plus_constant(a: Symbol, b: Any) -> Any:
    if a.graph.finite:
        return a if b == 0.0 else _made("add", a, b)
    if b == 0.0 and (not _is_zero(b) or _has_been_added(a)):
        return a
    return b + 0.0 if _vanishes(a) else _made("add", a, b)


def _has_been_added(a: Symbol) -> bool:
    """Whether a is a sum with 0.0, which is no -0.0."""
    op, *ends = a.graph.nodes[a.at]
    return op == "add" and ("const", 0.0, 1.0) in (a.graph.nodes[k] for k in ends)


def _vanishes(a: Symbol) -> bool:
    """Whether a is a product with 0, as of diagonal gains: a sum leaves it out and requires its factor to be finite."""
    op, *ends = a.graph.nodes[a.at]
    if op == "neg":
        op, *ends = a.graph.nodes[ends[0]]
    if op != "mul" or not on_symbols():
        return False
    for k, other in (ends, ends[::-1]):
        if a.graph.nodes[k][:2] == ("const", 0.0):
            require(is_finite(Symbol(a.graph, other)))
            return True
    return False


def sub(a: Any, b: Any) -> Any:
    if not is_symbol(b):
        return a - b if not is_symbol(a) else add(a, -b)
    finite, minus_b = b.graph.finite, _negated(b)
    if minus_b is not None:
        return add(a, minus_b)
    if not is_symbol(a):
        return neg(b) if a == 0.0 and (finite or not _is_zero(a)) else _made("sub", a, b)
    if not finite:
        return add(a, 0.0) if _vanishes(b) else _made("sub", a, b)
    if a.at == b.at:
        b.graph.leave_out(a.at)
        return 0.0
    minus_a = _negated(a)
    return neg(add(minus_a, b)) if minus_a is not None else _made("sub", a, b)


def mul(a: Any, b: Any) -> Any:
    if not is_symbol(a):
        if not is_symbol(b):
            return a * b
        a, b = b, a
    minus_a = _negated(a)
    if not is_symbol(b):
        if b == 0.0 and a.graph.finite:
            a.graph.leave_out(a.at)
            return 0.0
        if b == 1.0:
            return a
        if minus_a is not None:
            return mul(minus_a, -b)
        negative = math.copysign(1.0, b) < 0.0
        return neg(a) if b == -1.0 else neg(_made("mul", a, -b)) if negative else _made("mul", a, b)
    minus_b = _negated(b)
    if minus_a is not None:
        return mul(minus_a, minus_b) if minus_b is not None else neg(mul(minus_a, b))
    return neg(mul(a, minus_b)) if minus_b is not None else _made("mul", a, b)


def div(a: Any, b: Any) -> Any:
    if not is_symbol(b):
        if not is_symbol(a):
            return a / b if b else value("div", a, b)  # as machine code has it, not an error
        return a if b == 1.0 else neg(a) if b == -1.0 else _made("div", a, b)
    minus_b = _negated(b)
    if minus_b is not None:
        return neg(div(a, minus_b))
    if not is_symbol(a):
        quotient = _made("div", a, b)  # kept of 0 / b, so that a proof sees where b is zero
        if a == 0.0 and b.graph.finite:
            b.graph.leave_out(quotient.at)
            return 0.0
        return quotient
    minus_a = _negated(a)
    return neg(div(minus_a, b)) if minus_a is not None else _made("div", a, b)


def unary(op: str, a: Any) -> Any:
    if not is_symbol(a):
        return value(op, a)
    inner = _negated(a)
    if inner is not None:
        if op in EVEN:
            return unary(op, inner)
        if op in ODD:
            return neg(unary(op, inner))
    return _made(op, a)


def binary(op: str, a: Any, b: Any) -> Any:
    """An operation of `operations.BINARY`."""
    return _made(op, a, b) if is_symbol(a) or is_symbol(b) else value(op, a, b)


def relation(op: str, a: Any, b: Any) -> Any:
    """lt, le or eq of two numbers: a condition, or True or False where it is known; a finite number equals itself."""
    if is_symbol(a) and is_symbol(b) and a.at == b.at and a.graph.finite:
        a.graph.leave_out(a.at)
        return op != "lt"
    return compare(op, a, b) if is_symbol(a) or is_symbol(b) else bool(VALUES[op](a, b))


def compare(op: str, a: Any, b: Any) -> Any:
    return Condition((made := _made(op, a, b)).graph, made.at)


def is_finite(x: Any) -> Any:
    return relation("le", unary("abs", x), LARGEST)


def both(a: Any, b: Any) -> Any:
    if not isinstance(a, Condition):
        a, b = b, a
    if not isinstance(b, Condition):
        return a if b else False
    return Condition((made := _made("and", a, b)).graph, made.at)


def truth(x: Any) -> Any:
    """Whether x counts as true: numbers other than zero do, nan too."""
    return x if isinstance(x, Condition) else invert(compare("eq", x, 0.0)) if is_symbol(x) else bool(x)


def invert(a: Any) -> Any:
    if not isinstance(a, Condition):
        return not a
    made = _made("not", a)
    return Condition(made.graph, made.at)


def differ(a: Any, b: Any) -> Any:
    """Whether one condition holds and the other does not."""
    if any(not isinstance(x, (Condition, bool, np.bool_)) for x in (a, b)):
        raise UntraceableError(f"a condition is compared with what is none{caller()}: choose with where()")
    return invert(both(invert(both(a, invert(b))), invert(both(invert(a), b))))


def where(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, else b, for numbers and, entry by entry, tuples of numbers."""
    if not isinstance(condition, Condition):
        return a if condition else b
    if isinstance(a, tuple):
        chosen = [where(condition, x, y) for x, y in zip(a, b, strict=True)]
        return type(a)(*chosen) if hasattr(a, "_fields") else tuple(chosen)
    if not is_symbol(a) and not is_symbol(b) and a == b and math.copysign(1.0, a) == math.copysign(1.0, b):
        return a
    if is_symbol(a) and is_symbol(b) and a.at == b.at:
        return a
    graph = condition.graph
    return Symbol(graph, graph.node("where", condition.at, graph.operand(a), graph.operand(b)))
