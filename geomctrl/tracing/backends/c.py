"""C99 code from a trace: one function without allocation and without dependencies except libm."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from geomctrl.tracing.operations import LIBRARY
from geomctrl.tracing.traces import Trace

OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "eq": "==", "and": "&&", "or": "||"}
FUNCTIONS = ("sqrt", "sin", "cos", "floor", "rint", "copysign", *LIBRARY)


class Parameter(NamedTuple):
    """An argument of a C function: name, number of values, and meaning. scalar: passed by value."""

    name: str
    size: int
    meaning: str
    scalar: bool = False

    def declared(self, real: str, *, constant: bool = True) -> str:
        """The declaration in a prototype. An empty array becomes a pointer, because C has no empty arrays."""
        kind = f"const {real}" if constant else real
        return (
            f"{real} {self.name}"
            if self.scalar
            else f"{kind} {self.name}[{self.size}]".replace(f" {self.name}[0]", f" *{self.name}")
        )


class Function(NamedTuple):
    """`int NAME(real t, const real q[7], ..., real tau[7])`: 0 where there is no result, else 1.

    Outputs are written last, so that they may be the same arrays as inputs, and are unchanged if there is no result.
    All model numbers of `trace` are known. `real`: "double" or "float". static: visible only in its file.
    """

    name: str
    trace: Trace
    inputs: list[Parameter]
    outputs: list[Parameter]
    real: str = "double"
    static: bool = False


def prototype(f: Function) -> str:
    inputs = [x.declared(f.real) for x in f.inputs]
    outputs = [y.declared(f.real, constant=False) for y in f.outputs]
    return f"{'static ' if f.static else ''}int {f.name}({', '.join([*inputs, *outputs])})"


def definition(f: Function) -> str:
    writer = _Writer(f)
    needed = f.trace.graph.needed(f.trace.ends)
    body = [writer.statement(index) for index in needed if writer.is_operation(index)]
    body += [writer.copied(index) for index in sorted(set(f.trace.outputs)) if writer.is_load(index)]
    ends = iter(f.trace.outputs)
    stores = [f"    {y.name}[{k}] = {writer.value(next(ends))};" for y in f.outputs for k in range(y.size)]
    check = [] if f.trace.flag is None else [f"    if (!{writer.value(f.trace.flag)}) {{", "        return 0;", "    }"]
    unused = [
        f"    (void){x.name};"
        for x in (*f.inputs, *f.outputs)
        if x.name not in writer.used and not (x in f.outputs and x.size)
    ]
    return "\n".join([prototype(f), "{", *unused, *body, *check, *stores, "    return 1;", "}"]) + "\n"


COMPARE = """\
static int differs(const char *what, const {real} *made, const {real} *expected, const double *tolerance, int n)
{{
    double worst = 0.0;
    int failed = 0;
    for (int k = 0; k < n; k++) {{
        const double a = (double)made[k], b = (double)expected[k], d = a == b ? 0.0 : fabs(a - b);
        const int same = d <= tolerance[k] || (isnan(a) && isnan(b));
        failed |= !same;
        worst = d <= worst ? worst : d; /* nan too */
    }}
    printf("%s: off by %g\\n", what, worst);
    return failed;
}}
"""


class Case(NamedTuple):
    """A test case: input arrays, expected outputs, and the tolerance of each number.

    expected: None if there is no result.
    """

    arguments: list[np.ndarray]
    expected: list[np.ndarray] | None
    tolerances: list[np.ndarray]


def comparison(f: Function, case: Case, *, aliased: bool = False) -> str:
    """Statements that call f on a case and increase `failed` if the result is not as expected.

    aliased: call it again for each output in the memory of one of its inputs.
    """
    lines = [constant(f.real, x, a) for x, a in zip(f.inputs, case.arguments)]
    lines += [f"        {f.real} {y.name}[{max(y.size, 1)}];" for y in f.outputs]
    names = [x.name for x in (*f.inputs, *f.outputs)]
    lines.append(f"        failed += {f.name}({', '.join(names)}) != {0 if case.expected is None else 1};")
    for y, a, tolerance in zip(f.outputs, case.expected or [], case.tolerances):
        lines.append(constant(f.real, y._replace(name=f"expected_{y.name}"), a))
        lines.append(constant("double", y._replace(name=f"tolerance_{y.name}"), tolerance))
        lines.append(_compared(f, y, y.name))
        arrays = [x for x in f.inputs if not x.scalar and x.size >= max(y.size, 1)]
        if aliased and arrays and y.size:
            x = arrays[0]
            shared = ["shared" if name in (x.name, y.name) else name for name in names]
            lines += [
                "        {",
                f"            {f.real} shared[{x.size}];",
                f"            memcpy(shared, {x.name}, sizeof shared);",
                f"            failed += {f.name}({', '.join(shared)}) != 1;",
                f"    {_compared(f, y, 'shared', f', in the memory of {x.name}')}",
                "        }",
            ]
    return "\n".join(["    {", *lines, "    }"])


def _compared(f: Function, y: Parameter, name: str, remark: str = "") -> str:
    label = f'"{f.name}, {y.name}{remark}"'
    return f"        failed += differs({label}, {name}, expected_{y.name}, tolerance_{y.name}, {y.size});"


def constant(real: str, x: Parameter, a: np.ndarray) -> str:
    """The declaration of an argument with its numbers."""
    numbers = ", ".join(literal(float(y), real) for y in np.ravel(a)) or "0"
    return (
        f"        const {real} {x.name} = {numbers};"
        if x.scalar
        else f"        const {real} {x.name}[] = {{{numbers}}};"
    )


def literal(x: float, real: str) -> str:
    """A number that is read back exactly; values outside the range of float become its smallest or largest number.

    Programs use 1e-300 for a number that must not be zero, and 1e300 for no limit.
    """
    if not np.isfinite(x):
        return "NAN" if np.isnan(x) else "INFINITY" if x > 0 else "(-INFINITY)"
    if real == "float":
        limits = np.finfo(np.float32)
        size = min(max(abs(x), float(limits.tiny)), float(limits.max)) if x else 0.0
        x = math.copysign(float(np.float32(size)), x)
    text = repr(x)
    text = text if any(c in text for c in ".en") else text + ".0"
    text += "" if real == "double" else "f"
    return f"({text})" if math.copysign(1.0, x) < 0.0 else text


class _Writer:
    def __init__(self, f: Function):
        self.nodes, self.inputs, self.real = f.trace.graph.nodes, f.inputs, f.real
        self.suffix = "f" if f.real == "float" else ""
        self.used: set[str] = set()
        self.copies: set[int] = set()

    def is_operation(self, index: int) -> bool:
        return self.nodes[index][0] not in ("const", "load")

    def is_load(self, index: int) -> bool:
        return self.nodes[index][0] == "load"

    def copied(self, index: int) -> str:
        """An input that is an output too: read before any output is written, which may use the same memory."""
        line = f"    const {self.real} t{index} = {self.value(index)};"
        self.copies.add(index)
        return line

    def value(self, index: int) -> str:
        op, a, *rest = self.nodes[index]
        if op == "load" and index not in self.copies:
            x = self.inputs[a - 1]
            self.used.add(x.name)
            return x.name if x.scalar else f"{x.name}[{rest[0]}]"
        if op != "const":
            return f"t{index}"
        if isinstance(a, bool):
            return "1" if a else "0"
        return literal(rest[0] * float("nan") if isinstance(a, str) else a, self.real)

    def statement(self, index: int) -> str:
        op, *ends = self.nodes[index]
        kind = "int" if op in ("lt", "le", "eq", "and", "or", "not") else self.real
        return f"    const {kind} t{index} = {self.expression(op, [self.value(x) for x in ends])};"

    def expression(self, op: str, x: list[str]) -> str:
        if op in OPERATORS:
            return f"{x[0]} {OPERATORS[op]} {x[1]}"
        if op in ("min", "max"):  # as in Python: the second if it is smaller (larger), else the first
            return f"({x[1]} {'<' if op == 'min' else '>'} {x[0]}) ? {x[1]} : {x[0]}"
        if op == "where":
            return f"{x[0]} ? {x[1]} : {x[2]}"
        if op == "abs":
            return f"fabs{self.suffix}({x[0]})"
        if op in FUNCTIONS:
            return f"{op}{self.suffix}({', '.join(x)})"
        return f"{'!' if op == 'not' else '-'}{x[0]}"
