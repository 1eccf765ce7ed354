"""Symbols: numbers that remember how they came about, in a graph of scalar operations.

Arithmetic on a `Symbol` adds a node to its `Graph`. Constants are folded, neutral elements vanish, signs move outward
and equal expressions are one node, so that what a kernel computes with a robot's zeros and ones costs nothing later.
Python's own numbers stay Python's: an operation on two floats is done at once.

A comparison of symbols is a symbol too, a `Condition`; it has no truth value while the graph is made, so that `if` on
it raises `UntraceableError` with the file and line. `where(condition, a, b)` is the way to choose.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .untraceable import UntraceableError, caller

COMMUTATIVE = {"add", "mul", "min", "max", "eq", "and", "or"}
FOLDED = {
    **{x: getattr(math, x) for x in ("sqrt", "sin", "cos", "tan", "asin", "acos", "exp", "log", "tanh", "atan2")},
    "abs": abs,
    "floor": lambda x: math.floor(x) * 1.0 if math.isfinite(x) else x,
    "min": min,
    "max": max,
}


class Graph:
    """Operations in the order in which they can be done: node k is (operation, operands), operands being smaller nodes.

    Operations are neg sqrt sin cos tan asin acos exp log tanh abs floor, add sub mul div atan2 min max; lt le eq and or
    not; where (condition, a, b); const (a float and its sign) and load (the number of an array, an index).
    """

    def __init__(self):
        self.nodes: list[tuple] = []
        self._known: dict[tuple, int] = {}
        self.of_terms: list[range] = []  # nodes that kernels made, which look before they divide

    def node(self, *key: Any) -> int:
        at = self._known.get(key)
        if at is None:
            at = self._known[key] = len(self.nodes)
            self.nodes.append(key)
        return at

    def load(self, array: int, index: int) -> Symbol:
        """Number `index` of input array number `array`."""
        return Symbol(self, self.node("load", array, index))

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
    """A real number that is not known yet."""

    __slots__ = ("at", "graph")
    __array_ufunc__: Any = None  # numpy's numbers leave the operation to us; `arrays` knows what to do beside an array
    __array_function__: Any

    def __init__(self, graph: Graph, at: int):
        self.graph, self.at = graph, at

    def __add__(self, other):
        return add(self, other) if is_number(other) else NotImplemented

    def __radd__(self, other):
        return add(other, self) if is_number(other) else NotImplemented

    def __sub__(self, other):
        return sub(self, other) if is_number(other) else NotImplemented

    def __rsub__(self, other):
        return sub(other, self) if is_number(other) else NotImplemented

    def __mul__(self, other):
        return mul(self, other) if is_number(other) else NotImplemented

    def __rmul__(self, other):
        return mul(other, self) if is_number(other) else NotImplemented

    def __truediv__(self, other):
        return div(self, other) if is_number(other) else NotImplemented

    def __rtruediv__(self, other):
        return div(other, self) if is_number(other) else NotImplemented

    def __neg__(self):
        return neg(self)

    def __pos__(self):
        return self

    def __abs__(self):
        return unary("abs", self)

    def __pow__(self, exponent):
        if not is_number(exponent):
            return NotImplemented
        if not is_symbol(exponent):
            if abs(exponent) <= 64 and exponent == int(exponent):
                return power(self, int(exponent))
            if exponent == 0.5:
                return unary("sqrt", self)
        raise UntraceableError(f"a symbol to the power {exponent!r:.40}: only whole powers and 0.5 trace{caller()}")

    def __lt__(self, other):
        return compare("lt", self, other) if is_number(other) else NotImplemented

    def __le__(self, other):
        return compare("le", self, other) if is_number(other) else NotImplemented

    def __gt__(self, other):
        return compare("lt", other, self) if is_number(other) else NotImplemented

    def __ge__(self, other):
        return compare("le", other, self) if is_number(other) else NotImplemented

    def __eq__(self, other):
        return compare("eq", self, other) if is_number(other) else NotImplemented

    def __ne__(self, other):
        return invert(compare("eq", self, other)) if is_number(other) else NotImplemented

    def __hash__(self):
        raise UntraceableError(f"a symbol is a key of a dict or set{caller()}")

    def __bool__(self):
        raise UntraceableError(f"the truth of a symbol is asked for{caller()}: compare it, and choose with where()")

    def __float__(self):
        raise UntraceableError(
            f"a symbol is used as a number{caller()}: it is not known while a kernel or law is traced; functions of"
            " numpy and math trace, those of scipy do not"
        )

    __int__ = __index__ = __float__

    def __mod__(self, other):
        return remainder(self, other) if is_number(other) else NotImplemented

    def __rmod__(self, other):
        return remainder(other, self) if is_number(other) else NotImplemented

    def __floordiv__(self, other):
        return unary("floor", div(self, other)) if is_number(other) else NotImplemented

    def __rfloordiv__(self, other):
        return unary("floor", div(other, self)) if is_number(other) else NotImplemented

    def __round__(self, digits=0):
        raise UntraceableError(f"a rounded number of a symbol does not trace{caller()}: np.floor does")

    __floor__ = __ceil__ = __trunc__ = __round__

    def __repr__(self):
        return f"Symbol({self.at}: {self.graph.nodes[self.at][0]})"


class Condition:
    """A comparison of symbols: true or false, not known yet."""

    __slots__ = ("at", "graph")
    __array_ufunc__: Any = None
    __array_function__: Any

    def __init__(self, graph: Graph, at: int):
        self.graph, self.at = graph, at

    def __and__(self, other):
        return NotImplemented if _holds_symbols(other) else both(self, other)

    __rand__ = __and__

    def __or__(self, other):
        return NotImplemented if _holds_symbols(other) else invert(both(invert(self), invert(other)))

    __ror__ = __or__

    def __invert__(self):
        return invert(self)

    def __bool__(self):
        raise UntraceableError(f"a branch depends on a symbol{caller()}: choose with where(condition, a, b)")

    def __repr__(self):
        return f"Condition({self.at}: {self.graph.nodes[self.at][0]})"


# --- operations --------------------------------------------------------------------------------------------------


def is_symbol(x: Any) -> bool:
    return type(x) is Symbol


def is_number(x: Any) -> bool:
    return (
        type(x) is Symbol
        or type(x) is float
        or type(x) is int
        or (hasattr(x, "__float__") and not hasattr(x, "shape"))
        or (getattr(x, "shape", None) == () and x.dtype != object)
    )


def _holds_symbols(x: Any) -> bool:
    """Whether x is an array, which then knows what to do beside a symbol."""
    return hasattr(x, "dtype") and x.dtype == object


def _made(op: str, *args: Any) -> Symbol:
    graph = next(x.graph for x in args if isinstance(x, (Symbol, Condition)))
    ends = [graph.operand(x) for x in args]
    if op in COMMUTATIVE and ends[0] > ends[1]:
        ends.reverse()
    return Symbol(graph, graph.node(op, *ends))


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
    node = a.graph.nodes[a.at]
    if node[0] == "sub":  # -(a - b) = b - a
        return Symbol(a.graph, a.graph.node("sub", node[2], node[1]))
    return _made("neg", a)


def add(a: Any, b: Any) -> Any:
    if not is_symbol(a):
        if not is_symbol(b):
            return a + b
        a, b = b, a
    if not is_symbol(b):
        return a if b == 0.0 else _made("add", a, b)
    minus_a, minus_b = _negated(a), _negated(b)
    if minus_b is not None:
        return sub(a, minus_b) if minus_a is None else neg(add(minus_a, minus_b))
    return sub(b, minus_a) if minus_a is not None else _made("add", a, b)


def sub(a: Any, b: Any) -> Any:
    if not is_symbol(b):
        return a - b if not is_symbol(a) else a if b == 0.0 else _made("add", a, -b)
    minus_b = _negated(b)
    if minus_b is not None:
        return add(a, minus_b)
    if not is_symbol(a):
        return neg(b) if a == 0.0 else _made("sub", a, b)
    if a.at == b.at:
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
        if b == 0.0:
            return 0.0
        if b == 1.0:
            return a
        if minus_a is not None:
            return mul(minus_a, -b)
        return neg(a) if b == -1.0 else neg(_made("mul", a, -b)) if b < 0.0 else _made("mul", a, b)
    minus_b = _negated(b)
    if minus_a is not None:
        return mul(minus_a, minus_b) if minus_b is not None else neg(mul(minus_a, b))
    return neg(mul(a, minus_b)) if minus_b is not None else _made("mul", a, b)


def _over_zero(a: float, b: float) -> float:
    """As machine code has it, not an error: infinite, or nan."""
    return math.nan if a == 0.0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)


def div(a: Any, b: Any) -> Any:
    if not is_symbol(b):
        if not is_symbol(a):
            return a / b if b else _over_zero(a, b)
        return a if b == 1.0 else neg(a) if b == -1.0 else _made("div", a, b)
    minus_b = _negated(b)
    if minus_b is not None:
        return neg(div(a, minus_b))
    if not is_symbol(a):
        quotient = _made("div", a, b)  # kept of 0 / b, so that a proof sees where b is zero
        return 0.0 if a == 0.0 else quotient
    minus_a = _negated(a)
    return neg(div(minus_a, b)) if minus_a is not None else _made("div", a, b)


def power(a: Any, n: int) -> Any:
    if n < 0:
        return div(1.0, power(a, -n))
    result, square = 1.0, a
    while n:
        if n & 1:
            result = mul(result, square)
        n >>= 1
        square = mul(square, square) if n else square
    return result


def unary(op: str, a: Any) -> Any:
    if not is_symbol(a):
        return FOLDED[op](a)
    inner = _negated(a)
    if inner is not None:
        if op in ("cos", "abs"):
            return unary(op, inner)
        if op in ("sin", "tan", "asin", "tanh"):
            return neg(unary(op, inner))
    return _made(op, a)


def binary(op: str, a: Any, b: Any) -> Any:
    """atan2, min or max."""
    return _made(op, a, b) if is_symbol(a) or is_symbol(b) else FOLDED[op](a, b)


def remainder(a: Any, b: Any) -> Any:
    """a - b floor(a / b)."""
    return sub(a, mul(b, unary("floor", div(a, b))))


def compare(op: str, a: Any, b: Any) -> Any:
    made = _made(op, a, b)
    return Condition(made.graph, made.at)


def both(a: Any, b: Any) -> Any:
    if not isinstance(a, Condition):
        a, b = b, a
    if not isinstance(b, Condition):
        return a if b else False
    made = _made("and", a, b)
    return Condition(made.graph, made.at)


def invert(a: Any) -> Any:
    if not isinstance(a, Condition):
        return not a
    made = _made("not", a)
    return Condition(made.graph, made.at)


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
