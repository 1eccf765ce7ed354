"""LLVM code from a trace: one state, or as many side by side as the processor's vectors hold.

A trace becomes a straight line of operations, `core(model, x, y)`: x holds the inputs one after the other, y the
outputs, each number for all lanes. Around it stand two entries,

    one(model, x, y)                           a single state
    many(model, inputs, outputs, first, end)   states in C order, transposed in blocks of lanes

The only freedoms that the code generator gets are `contract`, `nsz` and `arcp`: nan and infinity keep their meaning.
Sine and cosine are a polynomial after Cody and Waite's reduction, an ulp accurate up to `REDUCIBLE` and libm's beyond.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable
from typing import NamedTuple

from geomctrl.kernels.scalars import COSINE, HALF_PI, REDUCIBLE, SINE

from .tracing import Trace

FLAGS = "contract nsz arcp"
ARITHMETIC = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "neg": "fneg"}
INTRINSICS = {"sqrt": "sqrt", "abs": "fabs"}
COMPARISON = {"lt": "olt", "le": "ole", "eq": "oeq"}
LIBRARY = {"tan": 1, "asin": 1, "acos": 1, "exp": 1, "log": 1, "tanh": 1, "atan2": 2}  # of libm: number of arguments


def literal(x: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


class Vector:
    """Numbers of `width` lanes, double or float, in LLVM's words."""

    def __init__(self, width: int, real: str = "double"):
        self.width, self.real, bits = width, real, 64 if real == "double" else 32
        self.type = real if width == 1 else f"<{width} x {real}>"
        self.bool = "i1" if width == 1 else f"<{width} x i1>"
        self.whole = f"i{bits}" if width == 1 else f"<{width} x i{bits}>"
        self.suffix = f"f{bits}" if width == 1 else f"v{width}f{bits}"

    def constant(self, x: float) -> str:
        x = x if self.real == "double" else ctypes.c_float(x).value  # a float is written as the double that it is
        return literal(x) if self.width == 1 else f"splat ({self.real} {literal(x)})"


class Function:
    """The text of a function while it is written."""

    def __init__(self, vector: Vector):
        self.vector, self.lines, self.count, self.blocks = vector, [], 0, 0

    def let(self, expression: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {expression}")
        return f"%v{self.count}"

    def do(self, statement: str) -> None:
        self.lines.append(f"  {statement}")

    def operation(self, op: str, *args: str, type: str | None = None) -> str:
        return self.let(f"{op} {FLAGS} {type or self.vector.type} {', '.join(args)}")

    def call(self, name: str, *args: str) -> str:
        t = self.vector.type
        return self.let(f"call {t} @{name}({', '.join(f'{t} {a}' for a in args)})")

    def address(self, base: str, index: int | str) -> str:
        return self.let(f"getelementptr {self.vector.real}, ptr {base}, i64 {index}")


def module(trace: Trace, widths: Iterable[int], name: str = "f") -> str:
    """The module's text: a core for each width, `NAME_one` where one is 1, `NAME_many` for the widest above 1."""
    widths = sorted(set(widths))
    parts = [_library(widths)]
    for width in widths:
        parts.append(_sin_cos(Vector(width)))
        parts.append(Core(trace, Vector(width)).text(f"{name}_core{width}"))
    if 1 in widths:
        parts.append(_one(name))
    if max(widths) > 1:
        parts.append(_many(trace, max(widths), name))
    return "\n".join(parts)


# --- the straight line -------------------------------------------------------------------------------------------


class Core(Function):
    """The straight line of a trace while it is written: each node's name, and what it is made of."""

    def __init__(self, trace: Trace, vector: Vector):
        super().__init__(vector)
        self.trace, self.nodes = trace, trace.graph.nodes
        self.starts = [0, *_running(trace.inputs)]
        self.values: dict[int, str] = {}
        self.waves: dict[int, tuple[str, str]] = {}

    def compute(self, ends: Iterable[int]) -> None:
        """Write what the nodes `ends` are made of, as far as it is not there yet."""
        for at in self.trace.graph.needed(ends):
            op, *args = self.nodes[at]
            if at in self.values:
                continue
            if op in ("sin", "cos"):
                self.values[at] = self.wave(args[0])[op == "cos"]
            elif op not in ("const", "load"):
                self.values[at] = self.made(op, [self.value(x) for x in args])

    def text(self, name: str) -> str:
        self.compute(self.trace.ends)
        width, kind = self.vector.width, self.vector.bool
        for k, at in enumerate(self.trace.outputs):
            self.do(f"store {self.vector.type} {self.value(at)}, ptr {self.address('%y', k * width)}, align 8")
        good = _truth(self.vector, True) if self.trace.flag is None else self.value(self.trace.flag)
        header = f"define internal {kind} @{name}(ptr noalias %model, ptr noalias %x, ptr noalias %y) nounwind {{"
        return "\n".join([header, *self.lines, f"  ret {kind} {good}", "}"])

    def value(self, at: int) -> str:
        """The name or literal of a node; what is loaded is loaded where it is first used."""
        if at not in self.values:
            op, a, b = self.nodes[at]
            self.values[at] = self.loaded(a, b) if op == "load" else self.literal(a, b)
        return self.values[at]

    def literal(self, a: float | bool | str, sign: float) -> str:
        if isinstance(a, bool):
            return _truth(self.vector, a)
        return self.vector.constant(sign * float("nan") if isinstance(a, str) else a)

    def loaded(self, array: int, index: int) -> str:
        if array == 0:
            return _splat(self, self.let(f"load double, ptr {self.address('%model', index)}, align 8"))
        at = (self.starts[array - 1] + index) * self.vector.width
        return self.let(f"load {self.vector.type}, ptr {self.address('%x', at)}, align 8")

    def wave(self, x: int) -> tuple[str, str]:
        """(sine, cosine) of node x, computed together."""
        if x not in self.waves:
            t = self.vector.type
            both = self.let(f"call {{{t}, {t}}} @sin_cos{self.vector.width}({t} {self.value(x)})")
            sine, cosine = (self.let(f"extractvalue {{{t}, {t}}} {both}, {k}") for k in (0, 1))
            self.waves[x] = sine, cosine
        return self.waves[x]

    def made(self, op: str, ends: list[str]) -> str:
        v = self.vector
        if op in ARITHMETIC:
            return self.operation(ARITHMETIC[op], *ends)
        if op in COMPARISON:
            return self.let(f"fcmp {COMPARISON[op]} {v.type} {ends[0]}, {ends[1]}")
        if op in ("and", "or"):
            return self.let(f"{op} {v.bool} {ends[0]}, {ends[1]}")
        if op == "not":
            return self.let(f"xor {v.bool} {ends[0]}, {_truth(v, True)}")
        if op == "where":
            return self.let(f"select {v.bool} {ends[0]}, {v.type} {ends[1]}, {v.type} {ends[2]}")
        if op in INTRINSICS:
            return self.call(f"llvm.{INTRINSICS[op]}.{v.suffix}", *ends)
        if op in ("min", "max"):  # as Python's: the second where it is smaller (larger), else the first
            less = self.let(f"fcmp {'olt' if op == 'min' else 'ogt'} {v.type} {ends[1]}, {ends[0]}")
            return self.let(f"select {v.bool} {less}, {v.type} {ends[1]}, {v.type} {ends[0]}")
        return self.call(f"{op}{v.width}", *ends)


def _truth(vector: Vector, x: bool) -> str:
    word = "true" if x else "false"
    return word if vector.width == 1 else f"splat (i1 {word})"


def _splat(f: Function, scalar: str) -> str:
    v = f.vector
    if v.width == 1:
        return scalar
    first = f.let(f"insertelement {v.type} poison, double {scalar}, i64 0")
    return f.let(f"shufflevector {v.type} {first}, {v.type} poison, <{v.width} x i32> zeroinitializer")


def _running(lengths: Iterable[int]) -> list[int]:
    total, out = 0, []
    for n in lengths:
        total += n
        out.append(total)
    return out


# --- functions of one number -------------------------------------------------------------------------------------


def _sin_cos(vector: Vector) -> str:
    """(sin x, cos x) as `kernels.scalars.reduced_sin_cos` computes it, libm's where a lane is not within REDUCIBLE."""
    f, c, t = Function(vector), vector.constant, vector.type
    size = f.call(f"llvm.fabs.{vector.suffix}", "%x")
    near = f.let(f"fcmp ole {t} {size}, {c(REDUCIBLE)}")
    all_near = (
        near if vector.width == 1 else f.let(f"call i1 @llvm.vector.reduce.and.v{vector.width}i1({vector.bool} {near})")
    )
    f.do(f"br i1 {all_near}, label %fast, label %slow, !prof !0")
    f.lines.append("fast:")
    s1, c1 = reduced_sin_cos(f, "%x", WAVE)
    f.do("br label %done")
    f.lines.append("slow:")
    s2, c2 = f.call(f"sin{vector.width}", "%x"), f.call(f"cos{vector.width}", "%x")
    f.do("br label %done")
    f.lines.append("done:")
    s3 = f.let(f"phi {t} [{s1}, %fast], [{s2}, %slow]")
    c3 = f.let(f"phi {t} [{c1}, %fast], [{c2}, %slow]")
    pair = f"{{{t}, {t}}}"
    first = f.let(f"insertvalue {pair} poison, {t} {s3}, 0")
    f.do(f"ret {pair} {f.let(f'insertvalue {pair} {first}, {t} {c3}, 1')}")
    header = f"define internal {pair} @sin_cos{vector.width}({t} %x) alwaysinline nounwind {{"
    return "\n".join([header, *f.lines, "}"])


class Wave(NamedTuple):
    """Pi / 2 as a sum of numbers with exact products, and the polynomials between -pi / 4 and pi / 4."""

    half_pi: tuple[float, ...]
    sine: tuple[float, ...]
    cosine: tuple[float, ...]


WAVE = Wave(HALF_PI, SINE, COSINE)


def reduced_sin_cos(f: Function, x: str, wave: Wave) -> tuple[str, str]:
    """(sin x, cos x) of an x that the sum for pi/2 reduces exactly enough."""
    vector, c, t, whole = f.vector, f.vector.constant, f.vector.type, f.vector.whole
    k = f.call(f"llvm.rint.{vector.suffix}", f.operation("fmul", x, c(0.6366197723675814)))
    r = x
    for part in wave.half_pi:
        r = f.operation("fsub", r, f.operation("fmul", k, c(part)))
    u = f.operation("fmul", r, r)
    s, w = _polynomial(f, wave.sine, u), _polynomial(f, wave.cosine, u)
    sine = f.operation("fadd", r, f.operation("fmul", f.operation("fmul", r, u), s))
    cosine = f.operation("fsub", c(1.0), f.operation("fmul", u, c(0.5)))
    cosine = f.operation("fadd", cosine, f.operation("fmul", f.operation("fmul", u, u), w))
    number = (lambda n: str(n)) if vector.width == 1 else (lambda n: f"splat (i64 {n})")
    quadrant = f.let(f"fptosi {t} {k} to {whole}")

    def bit(n: int, of: str) -> str:
        return f.let(f"icmp ne {whole} {f.let(f'and {whole} {of}, {number(n)}')}, {number(0)}")

    odd = bit(1, quadrant)
    s0 = f.let(f"select {vector.bool} {odd}, {t} {cosine}, {t} {sine}")
    c0 = f.let(f"select {vector.bool} {odd}, {t} {sine}, {t} {cosine}")
    s1 = f.let(f"select {vector.bool} {bit(2, quadrant)}, {t} {f.operation('fneg', s0)}, {t} {s0}")
    next_one = f.let(f"add {whole} {quadrant}, {number(1)}")
    c1 = f.let(f"select {vector.bool} {bit(2, next_one)}, {t} {f.operation('fneg', c0)}, {t} {c0}")
    return s1, c1


def _polynomial(f: Function, coefficients: tuple[float, ...], x: str) -> str:
    y = f.vector.constant(coefficients[-1])
    for a in reversed(coefficients[:-1]):
        y = f.operation("fadd", f.operation("fmul", y, x), f.vector.constant(a))
    return y


def _library(widths: list[int]) -> str:
    """libm's functions, lane by lane."""
    functions = {"sin": 1, "cos": 1, **LIBRARY}
    lines = ['!0 = !{!"branch_weights", i32 100000, i32 1}']
    for name, n in functions.items():
        lines.append(f"declare double @{name}({', '.join(['double'] * n)}) nounwind")
    for width in widths:
        v = Vector(width)
        for intrinsic in ("sqrt", "fabs", "rint"):
            lines.append(f"declare {v.type} @llvm.{intrinsic}.{v.suffix}({v.type})")
        if width > 1:
            lines.append(f"declare i1 @llvm.vector.reduce.and.v{width}i1({v.bool})")
        for name, n in functions.items():
            names = [f"%x{k}" for k in range(n)] if n > 1 else ["%x"]
            f, result = Function(v), "poison"
            if width == 1:
                ends = ", ".join(f"double {x}" for x in names)
                result = f.let(f"call double @{name}({ends})")
                f.do(f"ret double {result}")
            else:
                for lane in range(width):
                    ends = [f.let(f"extractelement {v.type} {x}, i64 {lane}") for x in names]
                    one = f.let(f"call double @{name}({', '.join(f'double {x}' for x in ends)})")
                    result = f.let(f"insertelement {v.type} {result}, double {one}, i64 {lane}")
                f.do(f"ret {v.type} {result}")
            signature = ", ".join(f"{v.type} {x}" for x in names)
            lines.append(f"define internal {v.type} @{name}{width}({signature}) noinline cold nounwind {{")
            lines += [*f.lines, "}"]
    return "\n".join(lines)


# --- entries -----------------------------------------------------------------------------------------------------


def _one(name: str) -> str:
    return f"""define i1 @{name}_one(ptr noalias %model, ptr noalias %x, ptr noalias %y) nounwind {{
  %good = call i1 @{name}_core1(ptr %model, ptr %x, ptr %y)
  ret i1 %good
}}"""


def _many(trace: Trace, width: int, name: str) -> str:
    """many(model, inputs, y, first, end) -> the first state without a result, or -1.

    `inputs` is an array of pointers to states in C order, y the outputs, one state after the other. States from `first`
    to `end`, a multiple of the lanes apart.
    """
    sizes, total, v = trace.inputs, len(trace.outputs), Vector(width)
    arguments = "ptr noalias %model, ptr noalias %inputs, ptr noalias %y, i64 %first, i64 %end"
    heads = [
        f"  %p{a} = getelementptr ptr, ptr %inputs, i64 {a}\n  %in{a} = load ptr, ptr %p{a}" for a in range(len(sizes))
    ]
    lines = [
        f"define i64 @{name}_many({arguments}) nounwind {{",
        "entry:",
        f"  %xs = alloca double, i64 {max(sum(sizes), 1) * width}, align 64",
        f"  %ys = alloca double, i64 {total * width}, align 64",
        *heads,
        "  br label %head",
        "head:",
        "  %b = phi i64 [%first, %entry], [%next, %tail]",
        "  %more = icmp slt i64 %b, %end",
        "  br i1 %more, label %gather0, label %exit",
    ]
    start = 0
    for a, n in enumerate(sizes):
        lines += _transposition(f"gather{a}", f"%in{a}", "%xs", n, start, width, True)
        lines += [f"gather{a}.done:", f"  br label %{f'gather{a + 1}' if a + 1 < len(sizes) else 'work'}"]
        start += n
    lines += [
        "work:",
        f"  %good = call {v.bool} @{name}_core{width}(ptr %model, ptr %xs, ptr %ys)",
        f"  %bits = bitcast {v.bool} %good to i{width}",
        f"  %all = icmp eq i{width} %bits, -1",
        "  br i1 %all, label %scatter, label %failed",
        *_transposition("scatter", "%y", "%ys", total, 0, width, False),
        "scatter.done:",
        "  br label %tail",
        "tail:",
        f"  %next = add i64 %b, {width}",
        "  br label %head",
        "failed:",
        f"  %bad = xor i{width} %bits, -1",
        f"  %lane = call i{width} @llvm.cttz.i{width}(i{width} %bad, i1 false)",
        f"  %lane64 = zext i{width} %lane to i64",
        "  %which = add i64 %b, %lane64",
        "  ret i64 %which",
        "exit:",
        "  ret i64 -1",
        "}",
        f"declare i{width} @llvm.cttz.i{width}(i{width}, i1)",
    ]
    return "\n".join(lines)


def _transposition(label: str, array: str, buffer: str, n: int, start: int, width: int, gather: bool) -> list[str]:
    """Blocks that copy rows b ... b + width - 1 of n numbers to buffer[start + k][lane], or back."""
    p = f"%{label}"
    lines = [f"{label}:", f"  br label {p}.k", f"{label}.k:", f"  {p}.i = phi i64 [0, {p}], [{p}.j, {p}.k]"]
    for lane in range(width):
        source, target = ("a", "b") if gather else ("b", "a")
        lines += [
            f"  {p}.r{lane} = add i64 %b, {lane}",
            f"  {p}.o{lane} = mul i64 {p}.r{lane}, {n}",
            f"  {p}.q{lane} = add i64 {p}.o{lane}, {p}.i",
            f"  {p}.a{lane} = getelementptr double, ptr {array}, i64 {p}.q{lane}",
            f"  {p}.s{lane} = mul i64 {p}.i, {width}",
            f"  {p}.t{lane} = add i64 {p}.s{lane}, {start * width + lane}",
            f"  {p}.b{lane} = getelementptr double, ptr {buffer}, i64 {p}.t{lane}",
            f"  {p}.x{lane} = load double, ptr {p}.{source}{lane}, align 8",
            f"  store double {p}.x{lane}, ptr {p}.{target}{lane}, align 8",
        ]
    lines += [f"  {p}.j = add i64 {p}.i, 1", f"  {p}.m = icmp slt i64 {p}.j, {n}"]
    return [*lines, f"  br i1 {p}.m, label {p}.k, label {p}.done"]
