"""Elementary functions in LLVM code: our own sine and cosine, and libm's functions for each lane.

Sine and cosine use polynomials after Cody-Waite reduction, accurate to an ulp up to `REDUCIBLE`, and libm beyond.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from geomctrl.tracing.operations import LIBRARY
from geomctrl.tracing.polynomials import COSINE, HALF_PI, REDUCIBLE, SINE
from geomctrl.tracing.traces import Trace

from .ir import Function, Vector


class Wave(NamedTuple):
    """Pi / 2 as a sum of numbers with exact products, and the polynomials between -pi / 4 and pi / 4."""

    half_pi: tuple[float, ...]
    sine: tuple[float, ...]
    cosine: tuple[float, ...]


WAVE = Wave(HALF_PI, SINE, COSINE)


def sin_cos(vector: Vector, wave: Wave = WAVE, largest: float = REDUCIBLE) -> str:
    """(sin x, cos x) as in `kernels.exponentials.reduced_sin_cos`; libm's if a lane exceeds `largest`."""
    f, c, t = Function(vector), vector.constant, vector.type
    size = f.call(f"llvm.fabs.{vector.suffix}", "%x")
    near = f.let(f"fcmp ole {t} {size}, {c(largest)}")
    all_near = (
        near if vector.width == 1 else f.let(f"call i1 @llvm.vector.reduce.and.v{vector.width}i1({vector.bool} {near})")
    )
    f.do(f"br i1 {all_near}, label %fast, label %slow, !prof !0")
    f.lines.append("fast:")
    s1, c1 = reduced_sin_cos(f, "%x", wave)
    f.do("br label %done")
    f.lines.append("slow:")
    s2, c2 = (f.call(f"{name}_{vector.width}{vector.mark}", "%x") for name in ("sin", "cos"))
    if vector.width > 1:  # the result of a lane must not depend on other lanes
        s4, c4 = reduced_sin_cos(f, "%x", wave)
        s2 = f.let(f"select {vector.bool} {near}, {t} {s4}, {t} {s2}")
        c2 = f.let(f"select {vector.bool} {near}, {t} {c4}, {t} {c2}")
    f.do("br label %done")
    f.lines.append("done:")
    s3 = f.let(f"phi {t} [{s1}, %fast], [{s2}, %slow]")
    c3 = f.let(f"phi {t} [{c1}, %fast], [{c2}, %slow]")
    pair = f"{{{t}, {t}}}"
    first = f.let(f"insertvalue {pair} poison, {t} {s3}, 0")
    f.do(f"ret {pair} {f.let(f'insertvalue {pair} {first}, {t} {c3}, 1')}")
    header = f"define internal {pair} @sin_cos{vector.width}{vector.mark}({t} %x) alwaysinline nounwind {{"
    return "\n".join([header, *f.lines, "}"])


def reduced_sin_cos(f: Function, x: str, wave: Wave) -> tuple[str, str]:
    """(sin x, cos x) for an x that the sum for pi/2 reduces with sufficient accuracy."""
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
    zero = f.let(f"fcmp oeq {t} {x}, {c(0.0)}")
    s1 = f.let(f"select {vector.bool} {zero}, {t} {x}, {t} {s1}")  # the sine of -0.0 is -0.0
    next_one = f.let(f"add {whole} {quadrant}, {number(1)}")
    c1 = f.let(f"select {vector.bool} {bit(2, next_one)}, {t} {f.operation('fneg', c0)}, {t} {c0}")
    return s1, c1


def waves(vector: Vector) -> str:
    """Code for the sines s and cosines c of n rows of lanes x."""
    t, w = vector.type, vector.width
    pair = f"{{{t}, {t}}}"
    arguments = "ptr noalias %x, ptr noalias %s, ptr noalias %c, i64 %n"
    return f"""define internal void @waves{w}({arguments}) noinline nounwind {{
entry:
  br label %row
row:
  %k = phi i64 [0, %entry], [%j, %row]
  %at = mul i64 %k, {w}
  %xp = getelementptr double, ptr %x, i64 %at
  %sp = getelementptr double, ptr %s, i64 %at
  %cp = getelementptr double, ptr %c, i64 %at
  %a = load {t}, ptr %xp, align 8
  %both = call {pair} @sin_cos{w}({t} %a)
  %sine = extractvalue {pair} %both, 0
  %cosine = extractvalue {pair} %both, 1
  store {t} %sine, ptr %sp, align 8
  store {t} %cosine, ptr %cp, align 8
  %j = add i64 %k, 1
  %more = icmp slt i64 %j, %n
  br i1 %more, label %row, label %end
end:
  ret void
}}"""


def _polynomial(f: Function, coefficients: tuple[float, ...], x: str) -> str:
    y = f.vector.constant(coefficients[-1])
    for a in reversed(coefficients[:-1]):
        y = f.operation("fadd", f.operation("fmul", y, x), f.vector.constant(a))
    return y


def library(
    widths: Iterable[int],
    traces: Iterable[Trace],
    others: Iterable[str] = (),
    symbols: Mapping[str, str] = MappingProxyType({}),
    single: bool = False,
) -> str:
    """Code for the libm functions of the traces, and for `others`, by lane.

    symbols: other names for them, which the module that contains this code declares or defines. single: also those of
    a float, whose names end in f.
    """
    used = {node[0] for trace in traces for node in trace.graph.nodes} | set(others)
    functions = {"sin": 1, "cos": 1, **{name: n for name, n in LIBRARY.items() if name in used}}
    lines = ['!0 = !{!"branch_weights", i32 100000, i32 1}', "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"]
    for name, n in functions.items():
        if not symbols:
            lines.append(f"declare double @{name}({', '.join(['double'] * n)}) nounwind")
    for v in [*map(Vector, widths), *([Vector(1, "float")] if single else [])]:
        width = v.width
        for intrinsic in ("sqrt", "fabs", "rint", "floor"):
            lines.append(f"declare {v.type} @llvm.{intrinsic}.{v.suffix}({v.type})")
        lines.append(f"declare {v.type} @llvm.copysign.{v.suffix}({v.type}, {v.type})")
        if width > 1:
            lines.append(f"declare i1 @llvm.vector.reduce.and.v{width}i1({v.bool})")
        for name, n in functions.items():
            names = [f"%x{k}" for k in range(n)] if n > 1 else ["%x"]
            f, result = Function(v), "poison"
            if width == 1:
                ends = ", ".join(f"{v.type} {x}" for x in names)
                result = f.let(f"call {v.type} @{symbols.get(name, name)}{v.mark}({ends})")
                f.do(f"ret {v.type} {result}")
            else:
                for lane in range(width):
                    ends = [f.let(f"extractelement {v.type} {x}, i64 {lane}") for x in names]
                    one = f.let(f"call double @{symbols.get(name, name)}({', '.join(f'double {x}' for x in ends)})")
                    result = f.let(f"insertelement {v.type} {result}, double {one}, i64 {lane}")
                f.do(f"ret {v.type} {result}")
            signature = ", ".join(f"{v.type} {x}" for x in names)
            lines.append(f"define internal {v.type} @{name}_{width}{v.mark}({signature}) noinline cold nounwind {{")
            lines += [*f.lines, "}"]
    return "\n".join(lines)
