"""Symbols: numbers that record their operations in a graph, and the functions that compute with them.

Arithmetic on a `Symbol` adds a node to its `Graph`. Constants are folded, neutral elements are removed, signs move
outwards, and equal expressions share one node. An operation on two Python floats is executed at once.

There are two modes of folding (`Graph.finite`). User code is traced in the strict mode: only identities of IEEE
arithmetic are used, so that nan, infinities and signed zeros agree with Python, and sums and products are rounded
separately. Kernels of robots are traced for finite numbers: 0 x = 0 and x - x = 0, which removes the structural zeros
of a robot and makes its code several times shorter. The results agree with Python, whose terms refuse states that are
not finite; with symbols the caller of a kernel requires finite inputs. Proofs trace user code in this mode too, so that
cancelling terms vanish; omitted terms are then required to be finite (`watched`).

A comparison of symbols is a `Condition`. `if` on a condition calls `asker`, which `branches` sets, or raises.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np

from .graph import FLOAT as FLOAT
from .graph import INT as INT
from .graph import INT64 as INT64
from .graph import NUMPY as NUMPY
from .graph import PYTHON as PYTHON
from .graph import WHOLE as WHOLE
from .graph import Condition as Condition
from .graph import ConditionalKind as ConditionalKind
from .graph import Graph as Graph
from .graph import Symbol as Symbol
from .graph import certain as certain
from .graph import combined as combined
from .graph import kinds_in as kinds_in
from .graph import operands as operands
from .operations import EVEN, ODD, VALUES, value
from .requirements import on_symbols, require
from .untraceable import UntraceableError as UntraceableError
from .untraceable import caller

COMMUTATIVE = {"add", "mul", "eq", "and", "or"}
ROUNDED = {"add", "sub", "mul", "div"}
LOGICAL = {"and", "or", "not"}
TRUTHS = {Condition, bool, np.bool_}
LARGEST = float(np.finfo(float).max)


def record_omitted(graph: Graph, index: int) -> None:
    """Record that folding omitted this node, which is valid if the node is finite."""
    if graph.watched and not graph.is_bounded(index):
        require(is_finite(Symbol(graph, index)))


def is_symbol(x: Any) -> bool:
    return type(x) is Symbol


def _is_traced(x: Any) -> bool:
    return type(x) is Symbol or type(x) is Condition


def is_number(x: Any) -> bool:
    kind = type(x)
    if kind is Symbol or kind is float or kind is int:
        return True
    return kind is not Condition and (isinstance(x, Real) or (getattr(x, "shape", None) == () and x.dtype != object))


def kind_of(x: Any) -> Any:
    """The kind of a number: `NUMPY`, `FLOAT`, `INT`, `INT64`, or `ConditionalKind` of a symbol."""
    if type(x) is Symbol:
        return x.kind
    if type(x) is Condition:
        return combined(lambda kind: INT if kind in PYTHON else INT64, x.kind)
    if type(x) in (float, int, bool):
        return FLOAT if type(x) is float else INT
    return INT64 if isinstance(x, (np.integer, np.bool_)) or getattr(x, "dtype", None) == np.int64 else NUMPY


def may_raise(*xs: Any) -> bool:
    """Whether all may be Python numbers; with a numpy number numpy computes, and nothing is raised."""
    return all(not kinds_in(kind_of(x)).isdisjoint(PYTHON) for x in xs)


def with_kind(x: Any, kind: Any) -> Any:
    """x as a number of the given kind; integers have no -0 and are exact below 2^53."""
    if type(x) is not Symbol or (x.kind is kind and kind not in WHOLE):
        return x
    if type(kind) is ConditionalKind:
        yes, no = (with_kind(x, y) for y in (kind.yes, kind.no))
        x = yes if yes.index == no.index else where(kind.condition, yes, no)
    elif kind in WHOLE:
        x = add(x, 0.0)
    return Symbol(x.graph, x.index, kind)


def as_python(x: Any) -> Any:
    """The same number or truth value as a Python object, the result of functions of math and of `item`."""
    return type(x)(x.graph, x.index, combined(lambda k: INT if k in WHOLE else FLOAT, x.kind)) if _is_traced(x) else x


def as_numpy(x: Any) -> Any:
    """The same number or truth value as a numpy object, as in arrays."""
    if not _is_traced(x) or x.kind in (NUMPY, INT64):
        return x
    return type(x)(x.graph, x.index, combined(lambda k: INT64 if k in WHOLE else NUMPY, x.kind))


def as_whole(x: Any, kind: Any = INT) -> Any:
    """A symbol without fractional part as a Python int, which has no -0."""
    return with_kind(x, kind)


def _made(op: str, *args: Any) -> Symbol:
    graph = next(filter(_is_traced, args)).graph
    # isinstance would call `__class__` of each symbol
    if op not in LOGICAL and not TRUTHS.isdisjoint(map(type, args)):
        args = tuple(_as_numbers(op, args))
    ends = [x.index if type(x) is Symbol and x.graph is graph else graph.operand(x) for x in args]
    if op in COMMUTATIVE and ends[0] > ends[1]:
        ends.reverse()
    index = graph.node(op, *ends)
    if op in ROUNDED and not graph.finite:
        graph.exact.add(index)
    return Symbol(graph, index)


def _as_numbers(op: str, args: tuple) -> Iterator[Any]:
    """Operands with conditions converted to 0 and 1 next to numbers, as in numpy."""
    numbers = [x for x in args if not isinstance(x, (Condition, bool, np.bool_))]
    whole = not any(is_symbol(x) or isinstance(x, float) for x in numbers)  # numpy then computes with integers
    if not numbers or (whole and op not in ("add", "sub", "mul")):
        raise UntraceableError(f"a condition is used as a number{caller()}: write np.where(condition, 1.0, 0.0)")
    for x in args:
        yield where(x, 1.0, 0.0) if isinstance(x, Condition) else float(x) if isinstance(x, (bool, np.bool_)) else x


def _is_zero(x: Any) -> bool:
    """Whether x is 0.0, which changes a sum only by the sign of zero."""
    return x == 0.0 and math.copysign(1.0, x) > 0.0


def _negated(x: Any) -> Symbol | None:
    """y if x is -y."""
    node: tuple = x.graph.nodes[x.index] if type(x) is Symbol else ("",)
    return Symbol(x.graph, node[1]) if node[0] == "neg" else None


def _minus(b: Any) -> Any:
    """-b of a number, exact for an integer; -0 is a float, because that of an integer is 0."""
    return -int(b) if isinstance(b, (int, np.integer)) and b else -float(b)


def neg(a: Any) -> Any:
    if not is_symbol(a):
        return -a
    inner = _negated(a)
    if inner is not None:
        return inner
    if (node := a.graph.nodes[a.index])[0] == "sub" and a.graph.finite:  # -(a - b) = b - a
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
    if b == 0.0 and (not _is_zero(b) or _is_never_minus_zero(a.graph.nodes, a.index)):
        return a
    return b + 0.0 if _vanishes(a) else _made("add", a, b)


def _is_never_minus_zero(nodes: list[tuple], index: int, depth: int = 30) -> bool:
    """Whether a number can not be -0.0, such as a sum with 0.0 or a square."""
    op, *ends = nodes[index]
    if op == "const":
        return ends != [0.0, -1.0]
    if op == "mul":
        return ends[0] == ends[1]
    if not depth or op not in ("add", "sub"):
        return op in ("abs", "exp")
    return any(_is_never_minus_zero(nodes, k, depth - 1) for k in (ends if op == "add" else ends[:1]))


def _vanishes(a: Symbol) -> bool:
    """Whether a is a product with 0, as from diagonal gains; sums omit it and require its factor to be finite."""
    node = a.graph.nodes[a.index]
    if node[0] == "neg":
        node = a.graph.nodes[node[1]]
    if node[0] != "mul" or not on_symbols():
        return False
    for k, other in (node[1:], node[:0:-1]):
        if a.graph.nodes[k][:2] == ("const", 0.0):
            require(is_finite(Symbol(a.graph, other)))
            return True
    return False


def sub(a: Any, b: Any) -> Any:
    if not is_symbol(b):
        return a - b if not is_symbol(a) else add(a, _minus(b))
    finite, minus_b = b.graph.finite, _negated(b)
    if minus_b is not None:
        return add(a, minus_b)
    if not is_symbol(a):
        return neg(b) if a == 0.0 and (finite or not _is_zero(a)) else _made("sub", a, b)
    if not finite:
        return add(a, 0.0) if _vanishes(b) else _made("sub", a, b)
    if a.index == b.index:
        record_omitted(b.graph, a.index)
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
            record_omitted(a.graph, a.index)
            return 0.0
        if b == 1.0:
            return a
        if minus_a is not None:
            return mul(minus_a, _minus(b))
        negative = math.copysign(1.0, b) < 0.0
        return neg(a) if b == -1.0 else neg(_made("mul", a, _minus(b))) if negative else _made("mul", a, b)
    minus_b = _negated(b)
    if minus_a is not None:
        return mul(minus_a, minus_b) if minus_b is not None else neg(mul(minus_a, b))
    return neg(mul(a, minus_b)) if minus_b is not None else _made("mul", a, b)


def div(a: Any, b: Any) -> Any:
    if not is_symbol(b):
        if not is_symbol(a):
            return a / b if b else value("div", a, b)  # infinity or nan as in machine code, not ZeroDivisionError
        return a if b == 1.0 else neg(a) if b == -1.0 else _made("div", a, b)
    minus_b = _negated(b)
    if minus_b is not None:
        return neg(div(a, minus_b))
    if not is_symbol(a):
        quotient = _made("div", a, b)  # 0 / b is kept, so that proofs see where b is zero
        if a == 0.0 and b.graph.finite:
            record_omitted(b.graph, quotient.index)
            return 0.0
        return quotient
    minus_a = _negated(a)
    return neg(div(minus_a, b)) if minus_a is not None else _made("div", a, b)


def unary(op: str, a: Any) -> Any:
    if not is_symbol(a):
        return _made(op, a) if isinstance(a, Condition) else value(op, a)
    inner = _negated(a)
    if inner is not None:
        if op in EVEN:
            return unary(op, inner)
        if op in ODD:
            return neg(unary(op, inner))
    return _made(op, a)


def binary(op: str, a: Any, b: Any) -> Any:
    """An operation of `operations.BINARY`; the smaller or larger of a number and itself is that number."""
    if op in ("min", "max") and is_symbol(a) and is_symbol(b) and a.index == b.index and a.kind is b.kind:
        return a
    return _made(op, a, b) if _is_traced(a) or _is_traced(b) else value(op, a, b)


def relation(op: str, a: Any, b: Any) -> Any:
    """lt, le or eq of two numbers: a condition, or True or False if known; a finite number equals itself."""
    if is_symbol(a) and is_symbol(b) and a.index == b.index and a.graph.finite:
        record_omitted(a.graph, a.index)
        return op != "lt"
    return compare(op, a, b) if _is_traced(a) or _is_traced(b) else bool(VALUES[op](a, b))


def compare(op: str, a: Any, b: Any) -> Any:
    return Condition((relation := _made(op, a, b)).graph, relation.index)


def is_finite(x: Any) -> Any:
    return relation("le", unary("abs", x), LARGEST)


def both(a: Any, b: Any) -> Any:
    if not isinstance(a, Condition):
        a, b = b, a
    if not isinstance(b, Condition):
        return a if b else False
    return Condition((conjunction := _made("and", a, b)).graph, conjunction.index)


def truth(x: Any) -> Any:
    """Whether x is true: numbers except zero are, nan included."""
    return x if isinstance(x, Condition) else invert(compare("eq", x, 0.0)) if is_symbol(x) else bool(x)


def invert(a: Any) -> Any:
    if not isinstance(a, Condition):
        return not a
    negation = _made("not", a)
    return Condition(negation.graph, negation.index)


def differ(a: Any, b: Any) -> Any:
    """Whether exactly one of two conditions holds."""
    if any(not isinstance(x, (Condition, bool, np.bool_)) for x in (a, b)):
        raise UntraceableError(f"a condition is compared with something else{caller()}: use np.where")
    return invert(both(invert(both(a, invert(b))), invert(both(invert(a), b))))


def where(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, else b, for numbers and entry by entry for tuples of numbers."""
    if type(condition) is not Condition:
        return a if condition else b
    if not is_symbol(a) and isinstance(a, tuple):  # isinstance would call `__class__` of each symbol
        chosen = [where(condition, x, y) for x, y in zip(a, b, strict=True)]
        return type(a)(*chosen) if hasattr(a, "_fields") else tuple(chosen)
    if (truths := [type(x) in TRUTHS for x in (a, b)]) != [False, False]:
        if all(truths):
            return invert(both(invert(both(condition, a)), invert(both(invert(condition), b))))
        a, b = (where(x, 1.0, 0.0) if truth else x for x, truth in zip((a, b), truths))
    if not is_symbol(a) and not is_symbol(b) and a == b and math.copysign(1.0, a) == math.copysign(1.0, b):
        return a
    if is_symbol(a) and is_symbol(b) and a.index == b.index and a.kind is b.kind:
        return a
    graph, kinds = condition.graph, [x.kind for x in (a, b) if is_symbol(x)]
    kind = kinds[0] if len(kinds) == 2 and kinds[0] is kinds[1] else NUMPY
    return Symbol(graph, graph.node("where", condition.index, graph.operand(a), graph.operand(b)), kind)
