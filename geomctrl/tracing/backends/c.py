"""C99 from a trace: one function, no dependency but libm, no allocation, no branch on more than a selection."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from geomctrl.tracing.operations import LIBRARY
from geomctrl.tracing.traces import Trace

OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "eq": "==", "and": "&&", "or": "||"}
FUNCTIONS = ("sqrt", "sin", "cos", "floor", "rint", "copysign", *LIBRARY)


class Parameter(NamedTuple):
    """An argument of a C function: its name, how many numbers, and what they are."""

    name: str
    size: int
    meaning: str


class Function(NamedTuple):
    """`int NAME(const real q[7], ..., real tau[7])`: 0 where there is no result, else 1.

    `trace` is of a robot whose numbers are all known. `real`: "double" or "float".
    """

    name: str
    trace: Trace
    inputs: list[Parameter]
    outputs: list[Parameter]
    real: str = "double"


def prototype(f: Function) -> str:
    given = [f"const {f.real} {x.name}[{x.size}]" for x in f.inputs]
    return f"int {f.name}({', '.join([*given, *(f'{f.real} {y.name}[{y.size}]' for y in f.outputs)])})"


def definition(f: Function) -> str:
    writer = _Writer(f)
    body = [writer.statement(at) for at in f.trace.graph.needed(f.trace.ends) if writer.is_operation(at)]
    ends = iter(f.trace.outputs)
    stores = [f"    {y.name}[{k}] = {writer.value(next(ends))};" for y in f.outputs for k in range(y.size)]
    result = "1" if f.trace.flag is None else f"{writer.value(f.trace.flag)} ? 1 : 0"
    unused = [f"    (void){x.name};" for x in f.inputs if x.name not in writer.used]
    return "\n".join([prototype(f), "{", *unused, *body, *stores, f"    return {result};", "}"]) + "\n"


COMPARE = """\
static int differs(const char *what, const {real} *made, const {real} *expected, int n)
{{
    double scale = 1.0, worst = 0.0;
    for (int k = 0; k < n; k++) {{
        const double size = fabs((double)expected[k]), d = fabs((double)made[k] - (double)expected[k]);
        scale = size > scale ? size : scale;
        worst = d <= worst ? worst : d; /* nan too */
    }}
    printf("%s: off by %g of %g\\n", what, worst, scale);
    return !(worst <= {tolerance} * scale);
}}
"""


def comparison(f: Function, given: list[np.ndarray], expected: list[np.ndarray] | None) -> str:
    """Statements that call f with the `given` arrays, and add to `failed` where it does not return the `expected`.

    None is expected where there is no result.
    """
    lines = [_constant(f, x.name, a) for x, a in zip(f.inputs, given)]
    lines += [f"        {f.real} {y.name}[{y.size}];" for y in f.outputs]
    names = ", ".join(x.name for x in (*f.inputs, *f.outputs))
    lines.append(f"        failed += {f.name}({names}) != {0 if expected is None else 1};")
    for y, a in zip(f.outputs, expected or []):
        lines.append(_constant(f, f"expected_{y.name}", a))
        lines.append(f'        failed += differs("{f.name}, {y.name}", {y.name}, expected_{y.name}, {y.size});')
    return "\n".join(["    {", *lines, "    }"])


def _constant(f: Function, name: str, a: np.ndarray) -> str:
    numbers = ", ".join(literal(float(x), f.real) for x in a.ravel())
    return f"        const {f.real} {name}[] = {{{numbers}}};"


def literal(x: float, real: str) -> str:
    """A number that reads back as it was."""
    if not np.isfinite(x):
        return "NAN" if np.isnan(x) else "INFINITY" if x > 0 else "(-INFINITY)"
    largest = float(np.finfo(np.float32).max)
    text = repr(x if real == "double" else float(np.float32(min(max(x, -largest), largest))))
    text = text if any(c in text for c in ".en") else text + ".0"
    text += "" if real == "double" else "f"
    return f"({text})" if x < 0.0 else text


class _Writer:
    def __init__(self, f: Function):
        self.nodes, self.inputs, self.real = f.trace.graph.nodes, [x.name for x in f.inputs], f.real
        self.suffix = "f" if f.real == "float" else ""
        self.used: set[str] = set()

    def is_operation(self, at: int) -> bool:
        return self.nodes[at][0] not in ("const", "load")

    def value(self, at: int) -> str:
        op, a, *rest = self.nodes[at]
        if op == "load":
            self.used.add(self.inputs[a - 1])
            return f"{self.inputs[a - 1]}[{rest[0]}]"
        if op != "const":
            return f"t{at}"
        if isinstance(a, bool):
            return "1" if a else "0"
        return literal(rest[0] * float("nan") if isinstance(a, str) else a, self.real)

    def statement(self, at: int) -> str:
        op, *ends = self.nodes[at]
        kind = "int" if op in ("lt", "le", "eq", "and", "or", "not") else self.real
        return f"    const {kind} t{at} = {self.expression(op, [self.value(x) for x in ends])};"

    def expression(self, op: str, x: list[str]) -> str:
        if op in OPERATORS:
            return f"{x[0]} {OPERATORS[op]} {x[1]}"
        if op in ("min", "max"):  # as Python's: the second where it is smaller (larger), else the first
            return f"({x[1]} {'<' if op == 'min' else '>'} {x[0]}) ? {x[1]} : {x[0]}"
        if op == "where":
            return f"{x[0]} ? {x[1]} : {x[2]}"
        if op == "abs":
            return f"fabs{self.suffix}({x[0]})"
        if op in FUNCTIONS:
            return f"{op}{self.suffix}({', '.join(x)})"
        return f"{'!' if op == 'not' else '-'}{x[0]}"
