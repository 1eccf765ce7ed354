"""C99 from a trace: one function, no dependency but libm, no allocation, no branch on more than a selection."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .tracing import Trace

OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "eq": "==", "and": "&&", "or": "||"}
LIBRARY = ("sqrt", "sin", "cos", "tan", "asin", "acos", "exp", "log", "tanh", "atan2")


class Parameter(NamedTuple):
    """An argument of the C function: its name, how many numbers, and what they are."""

    name: str
    size: int
    meaning: str


def function(name: str, trace: Trace, inputs: list[Parameter], outputs: list[Parameter], real: str = "double") -> str:
    """The function's definition: `int name(const real q[7], ..., real tau[7])`, 0 where there is no result, else 1.

    The trace is of a robot whose numbers are all known. real: "double" or "float".
    """
    writer = _Writer(trace, [x.name for x in inputs], real)
    body = [writer.statement(at) for at in trace.graph.needed(trace.ends) if writer.is_operation(at)]
    ends = iter(trace.outputs)
    stores = [f"    {y.name}[{k}] = {writer.value(next(ends))};" for y in outputs for k in range(y.size)]
    result = "1" if trace.flag is None else f"{writer.value(trace.flag)} ? 1 : 0"
    unused = [f"    (void){x.name};" for x in inputs if x.name not in writer.used]
    lines = [f"{prototype(name, inputs, outputs, real)}", "{", *unused, *body, *stores, f"    return {result};", "}"]
    return "\n".join(lines) + "\n"


def prototype(name: str, inputs: list[Parameter], outputs: list[Parameter], real: str = "double") -> str:
    given = [f"const {real} {x.name}[{x.size}]" for x in inputs]
    return f"int {name}({', '.join([*given, *(f'{real} {y.name}[{y.size}]' for y in outputs)])})"


class _Writer:
    def __init__(self, trace: Trace, inputs: list[str], real: str):
        self.nodes, self.inputs, self.real = trace.graph.nodes, inputs, real
        self.suffix = "f" if real == "float" else ""
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
        return self.number(rest[0] * float("nan") if isinstance(a, str) else a)

    def number(self, x: float) -> str:
        if not np.isfinite(x):
            return "NAN" if np.isnan(x) else "INFINITY" if x > 0 else "(-INFINITY)"
        text = repr(float(np.float32(x)) if self.suffix else x)
        text = text if any(c in text for c in ".en") else text + ".0"
        return f"({text}{self.suffix})" if x < 0.0 else f"{text}{self.suffix}"

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
        if op in LIBRARY:
            return f"{op}{self.suffix}({', '.join(x)})"
        return f"{'!' if op == 'not' else '-'}{x[0]}"
