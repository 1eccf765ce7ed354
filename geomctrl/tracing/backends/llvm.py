"""LLVM code from a trace, for one state or for as many as the processor's vectors hold.

A trace becomes straight-line code, `core(model, x, y, s)`: x contains all inputs, y all outputs, s intermediate values,
each number for all lanes. Two entry points call it:

    one(model, x, ys)                                a single state, each output in its own array
    many(model, inputs, outputs, first, end, work)   states in C order, transposed in blocks of lanes
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable

from geomctrl.tracing.fusion import FUSED
from geomctrl.tracing.partition import Plan
from geomctrl.tracing.traces import Trace

from .elementary import library, sin_cos, waves
from .host import ALLOCATE, RELEASE, STACK
from .ir import FLAGS, Function, Vector
from .transposition import declarations, transposition

ARITHMETIC = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "neg": "fneg"}
INTRINSICS = {"sqrt": "sqrt", "abs": "fabs", "floor": "floor", "rint": "rint", "copysign": "copysign"}
COMPARISON = {"lt": "olt", "le": "ole", "eq": "oeq"}
CONDITIONS = {*COMPARISON, "and", "or", "not"}

Place = Callable[[int, int], tuple[int, bool]]


def module(trace: Trace, widths: Iterable[int], name: str = "f", *, side: int = 1, flags: str = FLAGS) -> str:
    """The module's text: a core for each width, `NAME_one` where one is 1, `NAME_many` for the widest above 1.

    side: number of lanes of the processor, for parallel parts of a single state. flags: relaxations for the arithmetic
    of the trace; sine and cosine have their own.
    """
    widths = sorted(set(widths))
    kinds = sorted({*widths, *(max(width, side) for width in widths)})
    parts = [
        library(kinds, [trace]),
        *(sin_cos(Vector(width)) for width in kinds),
        *(waves(Vector(width)) for width in kinds),
    ]
    plans = {width: Plan(trace, max(side // width, 1), apart=width == 1) for width in widths}
    parts += [core(plan, Vector(width), f"{name}_core{width}", side, flags=flags) for width, plan in plans.items()]
    if 1 in widths:
        parts.append(_one(name, plans[1].slots))
    if max(widths) > 1:
        parts.append(_many(trace, plans[max(widths)].slots, max(widths), name))
    return "\n".join(parts)


def core(
    plan: Plan,
    vector: Vector,
    name: str,
    side: int,
    place: Place | None = None,
    flags: str = FLAGS,
    segment: Callable[[Plan, Vector, Place | None, str], PlanSegment] | None = None,
) -> str:
    """core(model, x, y, s) -> whether there is a result, and the functions that it consists of; s: the plan's slots.

    place: position of a number of the model, and whether each lane has its own; default that in the model array.
    flags: relaxations for the arithmetic. segment: what writes the parts; default `PlanSegment`.
    """
    segment = segment or PlanSegment
    trace, kind = plan.trace, vector.bool
    arguments = "ptr noalias %model, ptr noalias %x, ptr noalias %y, ptr noalias %s"
    whole = segment(plan, vector, place, flags)
    whole.angles(max(side, vector.width))
    whole.constants()
    stretches = []
    for k, nodes in enumerate(plan.stretches):
        if len(plan.stretches) == 1:
            whole.operations(nodes)
            break
        part = segment(plan, vector, place, flags)
        part.operations(nodes)
        header = f"define internal void @{name}_{k}({arguments}) noinline nounwind {{"
        stretches.append("\n".join([header, *part.lines, "  ret void", "}"]))
        whole.do(f"call void @{name}_{k}(ptr %model, ptr %x, ptr %y, ptr %s)")
    good = _truth(vector, True) if trace.flag is None else whole.value(trace.flag)
    header = f"define internal {kind} @{name}({arguments}) nounwind {{"
    return "\n".join([*stretches, header, *whole.lines, f"  ret {kind} {good}", "}"])


class Line(Function):
    """Straight-line code of a trace under construction: the LLVM name of each node."""

    def __init__(self, trace: Trace, vector: Vector, flags: str = FLAGS):
        super().__init__(vector, flags)
        self.trace, self.nodes = trace, trace.graph.nodes
        self.values: dict[int, str] = {}
        self.waves: dict[int, tuple[str, str]] = {}

    def value(self, index: int) -> str:
        """The name or literal of a node; inputs are loaded at their first use."""
        if index not in self.values:
            op, *rest = self.nodes[index]
            self.values[index] = self.loaded(*rest) if op == "load" else self.literal(*rest)
        return self.values[index]

    def loaded(self, array: int, index: int) -> str:
        """Number `index` of an input array; array 0 is the model."""
        raise NotImplementedError

    def literal(self, a: float | bool | str, sign: float) -> str:
        if isinstance(a, bool):
            return _truth(self.vector, a)
        return self.vector.constant(sign * float("nan") if isinstance(a, str) else a)

    def wave(self, x: int) -> tuple[str, str]:
        """(sine, cosine) of node x, computed together."""
        if x not in self.waves:
            t = self.vector.type
            both = self.let(f"call {{{t}, {t}}} @sin_cos{self.vector.width}{self.vector.mark}({t} {self.value(x)})")
            sine, cosine = (self.let(f"extractvalue {{{t}, {t}}} {both}, {k}") for k in (0, 1))
            self.waves[x] = sine, cosine
        return self.waves[x]

    def made(self, op: str, ends: list[str]) -> str:
        v = self.vector
        if op in ARITHMETIC:
            return self.operation(ARITHMETIC[op], *ends)
        if op in FUSED:
            a, b, c = ends
            a = self.let(f"fneg {v.type} {a}") if op == "minus_product" else a
            c = self.let(f"fneg {v.type} {c}") if op == "product_minus" else c
            return self.call(f"llvm.fmuladd.{v.suffix}", a, b, c)
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
        if op in ("min", "max"):  # as in Python: the second if it is smaller (larger), else the first
            less = self.let(f"fcmp {'olt' if op == 'min' else 'ogt'} {v.type} {ends[1]}, {ends[0]}")
            return self.let(f"select {v.bool} {less}, {v.type} {ends[1]}, {v.type} {ends[0]}")
        return self.call(f"{op}_{v.width}{v.mark}", *ends)


class PlanSegment(Line):
    """A function under construction that computes some of a plan's nodes."""

    def __init__(self, plan: Plan, vector: Vector, place: Place | None = None, flags: str = FLAGS):
        super().__init__(plan.trace, vector, flags)
        self.plan, self.place = plan, place
        self.arrays: dict[int, str] = {}

    def constants(self) -> None:
        """Store outputs that no part computes; most are zeros."""
        outputs, zero = self.plan.trace.outputs, ("const", 0.0, 1.0)
        for first, size in zip(self.plan.output_starts, self.plan.trace.sizes):
            if any(self.nodes[index] == zero for index in outputs[first : first + size]):
                size *= 8 * self.vector.width
                self.do(f"call void @llvm.memset.p0.i64(ptr {self.output(first)}, i8 0, i64 {size}, i1 false)")
        for k, index in enumerate(outputs):
            if not self.plan.is_operation(index) and self.nodes[index] != zero:
                self.store(index, k)

    def angles(self, side: int) -> None:
        """Sines and cosines of inputs, as many in parallel as the processor has lanes."""
        plan, width = self.plan, self.vector.width
        if not plan.angles:
            return
        zeros = [self.vector.constant(0.0)] * (plan.rows - len(plan.angles))
        for k, x in enumerate([*(self.value(index) for index in plan.angles), *zeros]):
            self.do(f"store {self.vector.type} {x}, ptr {self.address('%s', k * width)}, align 8")
        sines, cosines = (self.address("%s", k * plan.rows * width) for k in (1, 2))
        self.do(f"call void @waves{side}(ptr %s, ptr {sines}, ptr {cosines}, i64 {plan.rows * width // side})")

    def operations(self, nodes: list[int]) -> None:
        for index in nodes:
            op, *args = self.nodes[index]
            if op in ("sin", "cos"):
                self.values[index] = self.wave(args[0])[op == "cos"]
            else:
                self.values[index] = self.made(op, [self.value(x) for x in args])
            for k in self.plan.outputs.get(index, ()):
                self.store(index, k)
            if index in self.plan.slot:
                x, place = self.values[index], self.address("%s", self.plan.slot[index] * self.vector.width)
                if self.nodes[index][0] in CONDITIONS:
                    v = self.vector
                    x = self.let(f"select {v.bool} {x}, {v.type} {v.constant(1.0)}, {v.type} {v.constant(0.0)}")
                self.do(f"store {self.vector.type} {x}, ptr {place}, align 8")

    def store(self, index: int, k: int) -> None:
        """Store node `index` as output number k."""
        self.do(f"store {self.vector.type} {self.value(index)}, ptr {self.output(k)}, align 8")

    def output(self, k: int) -> str:
        """The address of output number k."""
        if not self.plan.apart:
            return self.address("%y", k * self.vector.width)
        array = bisect_right(self.plan.output_starts, k) - 1
        if array not in self.arrays:
            self.arrays[array] = self.let(f"load ptr, ptr {self.let(f'getelementptr ptr, ptr %y, i64 {array}')}")
        return self.address(self.arrays[array], k - self.plan.output_starts[array])

    def value(self, index: int) -> str:
        if index not in self.values and index in self.plan.slot:
            self.values[index] = self.recalled(index)
        return super().value(index)

    def recalled(self, index: int) -> str:
        """A value computed by another part."""
        v = self.vector
        x = self.let(f"load {v.type}, ptr {self.address('%s', self.plan.slot[index] * v.width)}, align 8")
        return self.let(f"fcmp une {v.type} {x}, {v.constant(0.0)}") if self.nodes[index][0] in CONDITIONS else x

    def loaded(self, array: int, index: int) -> str:
        if array == 0:
            offset, own = (index, False) if self.place is None else self.place(index, self.vector.width)
            if own:
                return self.let(f"load {self.vector.type}, ptr {self.address('%model', offset)}, align 8")
            return _splat(self, self.let(f"load double, ptr {self.address('%model', offset)}, align 8"))
        offset = (self.plan.starts[array - 1] + index) * self.vector.width
        return self.let(f"load {self.vector.type}, ptr {self.address('%x', offset)}, align 8")


def _truth(vector: Vector, x: bool) -> str:
    word = "true" if x else "false"
    return word if vector.width == 1 else f"splat (i1 {word})"


def _splat(f: Function, scalar: str) -> str:
    v = f.vector
    if v.width == 1:
        return scalar
    first = f.let(f"insertelement {v.type} poison, double {scalar}, i64 0")
    return f.let(f"shufflevector {v.type} {first}, {v.type} poison, <{v.width} x i32> zeroinitializer")


def _one(name: str, slots: int) -> str:
    head = f"define zeroext i1 @{name}_one(ptr noalias %model, ptr noalias %x, ptr noalias %y) nounwind {{"
    run = f"%good = call i1 @{name}_core1(ptr %model, ptr %x, ptr %y, ptr %scratch)"
    if slots <= STACK:
        return f"{head}\n  %scratch = alloca double, i64 {max(slots, 1)}, align 64\n  {run}\n  ret i1 %good\n}}"
    return f"""{head}
  %scratch = call ptr @{ALLOCATE}(i64 {8 * slots})
  %none = icmp eq ptr %scratch, null
  br i1 %none, label %full, label %run
run:
  {run}
  call void @{RELEASE}(ptr %scratch)
  ret i1 %good
full:
  ret i1 false
}}
declare ptr @{ALLOCATE}(i64)
declare void @{RELEASE}(ptr)"""


def _many(trace: Trace, slots: int, width: int, name: str) -> str:
    """many(model, inputs, y, first, end, work) -> index of the first state without a result, or -1.

    `inputs`: array of pointers to states in C order; y: outputs of all states. States from `first` to `end`, a multiple
    of the lanes apart. `work`: memory for the numbers of all lanes, of size `NAME_work`.
    """
    sizes, total, v = trace.inputs, len(trace.outputs), Vector(width)
    arguments = "ptr noalias %model, ptr noalias %inputs, ptr noalias %y, i64 %first, i64 %end, ptr noalias %work"
    places = width * sum(sizes), width * (sum(sizes) + total)
    heads = [
        f"  %p{a} = getelementptr ptr, ptr %inputs, i64 {a}\n  %in{a} = load ptr, ptr %p{a}" for a in range(len(sizes))
    ]
    lines = [
        f"define i64 @{name}_many({arguments}) nounwind {{",
        "entry:",
        f"  %ys = getelementptr double, ptr %work, i64 {places[0]}",
        f"  %scratch = getelementptr double, ptr %work, i64 {places[1]}",
        *heads,
        "  br label %head",
        "head:",
        "  %b = phi i64 [%first, %entry], [%next, %tail]",
        "  %more = icmp slt i64 %b, %end",
        "  br i1 %more, label %gather0, label %exit",
    ]
    start = 0
    for a, n in enumerate(sizes):
        lines += transposition(f"gather{a}", f"%in{a}", "%work", n, start, width, gather=True)
        lines += [f"gather{a}.done:", f"  br label %{f'gather{a + 1}' if a + 1 < len(sizes) else 'compute'}"]
        start += n
    lines += [
        "compute:",
        f"  %good = call {v.bool} @{name}_core{width}(ptr %model, ptr %work, ptr %ys, ptr %scratch)",
        f"  %bits = bitcast {v.bool} %good to i{width}",
        f"  %all = icmp eq i{width} %bits, -1",
        "  br i1 %all, label %scatter, label %failed",
        *transposition("scatter", "%y", "%ys", total, 0, width, gather=False),
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
        f"@{name}_work = constant i64 {places[1] + width * slots}",
        *declarations(width),
        f"declare i{width} @llvm.cttz.i{width}(i{width}, i1)",
    ]
    return "\n".join(lines)
