"""Functions of many states from a trace, which other libraries call on their own buffers.

A function evaluates a trace for all states of a call, `width` of them at a time. Its operands are float64 arrays in C
order: the model's constants, its parameters (shared by all states, or one row a state), and the trace's inputs, one row
a state. Results are the trace's outputs, one row a state. A state without a result gives nan. Work memory has `f_work`
numbers.

`f_call` takes pointers. `f_xla` is a handler of XLA's foreign function interface, which XLA calls with its own structs;
the work memory is its last result, and `f_version` the version of the interface that it replies. Offsets are those of
the structs in xla/ffi/api/c_api.h, which jaxlib contains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from geomctrl.tracing.partition import Plan
from geomctrl.tracing.traces import Trace

from .elementary import library, sin_cos, waves
from .ir import Vector
from .llvm import core
from .transposition import declarations, transposition

NAMES = ["f_call", "f_xla", "f_version", "f_work"]
# XLA_FFI_CallFrame: the extension, its arrays of pointers to operands and to results; XLA_FFI_Buffer
EXTENSION, OPERANDS, RESULTS = 8, 72, 112
DATA, RANK, DIMENSIONS = 24, 32, 40
# XLA_FFI_Metadata_Extension: its type (1), XLA_FFI_Metadata; in that the version of the interface and the traits
TYPE, METADATA, VERSION, TRAITS = 8, 24, 24, 32
LINE = 8  # numbers of a cache line


class Sizes(NamedTuple):
    """constants, parameters: positions in the model array. shared: whether all states have the same parameters."""

    constants: Sequence[int]
    parameters: Sequence[int]
    shared: bool


def module(trace: Trace, model: Sizes, width: int, side: int) -> str:
    """The text of a function with `width` lanes; side: lanes of the processor."""
    kinds = sorted({width, max(width, side)})
    plan, vector = Plan(trace, max(side // width, 1)), Vector(width)
    offsets = {position: k for k, position in enumerate(model.constants)}
    own = {position: len(offsets) + k * (1 if model.shared else width) for k, position in enumerate(model.parameters)}

    def place(index: int, _: int) -> tuple[int, bool]:
        return (own[index], not model.shared) if index in own else (offsets[index], False)

    rows = (*trace.inputs, *(() if model.shared else (len(model.parameters),)))  # what each state has
    layout = _layout(trace, model, plan, width, sum(rows))
    parts = [
        library(kinds, [trace]),
        *(sin_cos(Vector(k)) for k in kinds),
        *(waves(Vector(k)) for k in kinds),
        core(plan, vector, "f_core", side, place),
        _run(trace, rows, vector, layout, len(offsets)),
        _call(trace, model, rows, width, layout),
        _xla_handler(len(trace.inputs), len(trace.sizes)),
        "@f_version = global i64 0",
        f"@f_work = constant i64 {layout['end'] + LINE}",
    ]
    return "\n".join([*parts, *_declarations(width)])


def _layout(trace: Trace, model: Sizes, plan: Plan, width: int, numbers: int) -> dict[str, int]:
    """Where the parts of the work memory begin: lanes of inputs, outputs and intermediate values, the model, rows."""
    parameters = len(model.parameters)
    sizes = {
        "y": width * sum(trace.inputs),
        "s": width * len(trace.outputs),
        "model": width * plan.slots,
        "rows": len(model.constants) + parameters * (1 if model.shared else width),
        "end": width * (numbers + len(trace.outputs)),
    }
    return dict(zip(sizes, accumulate(-(-size // LINE) * LINE for size in sizes.values())))


def _run(trace: Trace, rows: Sequence[int], vector: Vector, layout: dict[str, int], constants: int) -> str:
    """run(inputs, outputs, first, end, work): evaluate these states, a multiple of the lanes."""
    width, total, t = vector.width, len(trace.outputs), vector.type
    lines = [
        "define internal void @f_run(ptr noalias %inputs, ptr noalias %outputs, i64 %first, i64 %end, ptr noalias %x)"
        " nounwind {",
        "entry:",
        *(f"  %{part} = getelementptr double, ptr %x, i64 {layout[part]}" for part in ("y", "s", "model")),
        f"  %parameters = getelementptr double, ptr %model, i64 {constants}",
        *_loaded("%inputs", "in", len(rows)),
        *_loaded("%outputs", "out", len(trace.sizes)),
        "  br label %head",
        "head:",
        "  %b = phi i64 [%first, %entry], [%next, %tail]",
        "  %more = icmp slt i64 %b, %end",
        "  br i1 %more, label %gather0, label %exit",
    ]
    starts = [*accumulate(trace.inputs, initial=0)]
    for k, n in enumerate(rows):
        own = k == len(trace.inputs)  # the parameters of each state, after the constants of the model
        buffer, start = ("%parameters", 0) if own else ("%x", starts[k])
        lines += transposition(f"gather{k}", f"%in{k}", buffer, n, start, width, gather=True)
        lines += [f"gather{k}.done:", f"  br label %{f'gather{k + 1}' if k + 1 < len(rows) else 'compute'}"]
    good = "%good" if width == 1 else "%all"
    lines += ["compute:", f"  %good = call {vector.bool} @f_core(ptr %model, ptr %x, ptr %y, ptr %s)"]
    if width > 1:
        lines.append(f"  %all = call i1 @llvm.vector.reduce.and.v{width}i1({vector.bool} %good)")
    lines += [
        f"  br i1 {good}, label %scatter0, label %mark",
        "mark:",  # states without a result
        "  %k = phi i64 [0, %compute], [%k1, %mark]",
        f"  %place = mul i64 %k, {width}",
        "  %p = getelementptr double, ptr %y, i64 %place",
        f"  %value = load {t}, ptr %p, align 8",
        f"  %marked = select {vector.bool} %good, {t} %value, {t} {vector.constant(float('nan'))}",
        f"  store {t} %marked, ptr %p, align 8",
        "  %k1 = add i64 %k, 1",
        f"  %left = icmp slt i64 %k1, {total}",
        "  br i1 %left, label %mark, label %scatter0",
    ]
    for k, (n, start) in enumerate(zip(trace.sizes, accumulate(trace.sizes, initial=0))):
        lines += transposition(f"scatter{k}", f"%out{k}", "%y", n, start, width, gather=False)
        lines += [f"scatter{k}.done:", f"  br label %{f'scatter{k + 1}' if k + 1 < len(trace.sizes) else 'tail'}"]
    lines += ["tail:", f"  %next = add i64 %b, {width}", "  br label %head", "exit:", "  ret void", "}"]
    return "\n".join(lines)


def _call(trace: Trace, model: Sizes, rows: Sequence[int], width: int, layout: dict[str, int]) -> str:
    """f_call(constants, inputs, outputs, first, end, work): evaluate these states; the last input: the parameters."""
    count, outputs = len(trace.inputs), trace.sizes
    lines = [
        "define void @f_call(ptr %constants, ptr %ins, ptr %outs, i64 %first, i64 %end, ptr %work) nounwind {",
        "entry:",
        "  %address = ptrtoint ptr %work to i64",
        f"  %up = add i64 %address, {8 * LINE - 1}",
        f"  %even = and i64 %up, {-8 * LINE}",
        "  %x = inttoptr i64 %even to ptr",
        *(f"  %{part} = getelementptr double, ptr %x, i64 {layout[part]}" for part in ("model", "rows")),
        *_loaded("%ins", "input", count + 1),
        *_loaded("%outs", "output", len(outputs)),
        f"  %row_ins = alloca ptr, i64 {len(rows)}\n  %row_outs = alloca ptr, i64 {len(outputs)}",
        f"  call void @llvm.memcpy.p0.p0.i64(ptr %model, ptr %constants, i64 {8 * len(model.constants)}, i1 false)",
    ]
    if model.shared:
        size = 8 * len(model.parameters)
        lines += [
            f"  %pi = getelementptr double, ptr %model, i64 {len(model.constants)}",
            f"  call void @llvm.memcpy.p0.p0.i64(ptr %pi, ptr %input{count}, i64 {size}, i1 false)",
        ]
    lines += [
        "  %states = sub i64 %end, %first",
        f"  %rest = urem i64 %states, {width}\n  %whole = sub i64 %end, %rest",
        "  call void @f_run(ptr %ins, ptr %outs, i64 %first, i64 %whole, ptr %x)",
        "  %complete = icmp eq i64 %rest, 0",
        "  br i1 %complete, label %done, label %fill",
    ]
    return "\n".join([*lines, *_rest(rows, outputs, width), "done:\n  ret void\n}"])


def _rest(rows: Sequence[int], outputs: Sequence[int], width: int) -> list[str]:
    """Evaluate the last states, fewer than the lanes: their rows are copied, and the last is repeated."""
    lines = [
        "fill:\n  %last = sub i64 %end, 1\n  br label %lane",
        "lane:\n  %l = phi i64 [0, %fill], [%l1, %lane]",
        "  %beyond = add i64 %whole, %l",
        "  %state = call i64 @llvm.smin.i64(i64 %beyond, i64 %last)",
    ]
    starts = [*accumulate((width * n for n in (*rows, *outputs)), initial=0)]
    places = [f"%part{k}" for k in range(len(rows) + len(outputs))]
    lines += [f"  {place} = getelementptr double, ptr %rows, i64 {start}" for place, start in zip(places, starts)]
    for k, n in enumerate(rows):
        lines += _copied(f"c{k}", (places[k], "%l"), (f"%input{k}", "%state"), n)
    lines += [
        f"  %l1 = add i64 %l, 1\n  %again = icmp slt i64 %l1, {width}",
        "  br i1 %again, label %lane, label %filled",
        "filled:",
        *stored("%row_ins", places[: len(rows)], "row_in"),
        *stored("%row_outs", places[len(rows) :], "row_out"),
        f"  call void @f_run(ptr %row_ins, ptr %row_outs, i64 0, i64 {width}, ptr %x)",
        "  br label %return",
        "return:\n  %r = phi i64 [0, %filled], [%r1, %return]\n  %to = add i64 %whole, %r",
    ]
    for k, n in enumerate(outputs):
        lines += _copied(f"d{k}", (f"%output{k}", "%to"), (places[len(rows) + k], "%r"), n)
    lines += ["  %r1 = add i64 %r, 1\n  %some = icmp slt i64 %r1, %rest", "  br i1 %some, label %return, label %done"]
    return lines


def _xla_handler(inputs: int, outputs: int) -> str:
    """f_xla(frame): reply with the version of the interface, or evaluate all states."""
    body = [
        f"  %ins = alloca ptr, i64 {inputs + 1}\n  %outs = alloca ptr, i64 {outputs}",
        *stored("%ins", [*(f"%operand{2 + k}" for k in range(inputs)), "%operand1"], "in"),
        *stored("%outs", [f"%result{k}" for k in range(outputs)], "out"),
        f"  call void @f_call(ptr %operand0, ptr %ins, ptr %outs, i64 0, i64 %states, ptr %result{outputs})",
        "  ret ptr null",
    ]
    return xla_handler("f", 2 + inputs, outputs + 1, body)


def xla_handler(name: str, operands: int, results: int, body: Sequence[str]) -> str:
    """NAME_xla(frame): reply with the version of the interface, or continue with the body.

    The body has the addresses %operandK and %resultK, and the number %states: the product of the leading axes of the
    third operand.
    """
    lines = [
        f"define ptr @{name}_xla(ptr %frame) nounwind {{\nentry:\n  {field('%frame', EXTENSION, 'extension')}",
        "  %none = icmp eq ptr %extension, null",
        "  br i1 %none, label %call, label %extended",
        f"extended:\n  {field('%extension', TYPE, 'type', 'i32')}",
        "  %asked = icmp eq i32 %type, 1",
        "  br i1 %asked, label %metadata, label %call",
        f"metadata:\n  {field('%extension', METADATA, 'm')}",
        f"  %m.version = getelementptr i8, ptr %m, i64 {VERSION}\n  %version = load i64, ptr @{name}_version",
        "  store i64 %version, ptr %m.version, align 4",
        f"  %m.traits = getelementptr i8, ptr %m, i64 {TRAITS}\n  store i32 0, ptr %m.traits",
        "  ret ptr null",
        f"call:\n  {field('%frame', OPERANDS, 'operands')}\n  {field('%frame', RESULTS, 'results')}",
        *_buffers("operand", "%operands", operands),
        *_buffers("result", "%results", results),
        f"  {field('%operands.b2', RANK, 'rank', 'i64')}\n  {field('%operands.b2', DIMENSIONS, 'dims')}",
        "  %axes = sub i64 %rank, 1",
        "  br label %count",
        "count:",
        "  %axis = phi i64 [0, %call], [%axis1, %times]\n  %states = phi i64 [1, %call], [%states1, %times]",
        "  %open = icmp slt i64 %axis, %axes",
        "  br i1 %open, label %times, label %counted",
        "times:",
        "  %dim.p = getelementptr i64, ptr %dims, i64 %axis\n  %dim = load i64, ptr %dim.p",
        "  %states1 = mul i64 %states, %dim\n  %axis1 = add i64 %axis, 1",
        "  br label %count",
        "counted:",
        *body,
        "}",
    ]
    return "\n".join(lines)


def field(base: str, offset: int, name: str, kind: str = "ptr") -> str:
    """%name: what a struct has at this offset."""
    return f"%{name}.p = getelementptr i8, ptr {base}, i64 {offset}\n  %{name} = load {kind}, ptr %{name}.p"


def _buffers(name: str, array: str, count: int) -> Iterator[str]:
    """%nameK: the data of buffer k; ARRAY.bK: the buffer."""
    for k in range(count):
        yield f"  {array}.a{k} = getelementptr ptr, ptr {array}, i64 {k}\n  {array}.b{k} = load ptr, ptr {array}.a{k}"
        yield f"  {field(f'{array}.b{k}', DATA, f'{name}{k}')}"


def _loaded(array: str, name: str, count: int) -> Iterator[str]:
    """%nameK: pointer k of an array."""
    for k in range(count):
        yield f"  %{name}{k}.p = getelementptr ptr, ptr {array}, i64 {k}\n  %{name}{k} = load ptr, ptr %{name}{k}.p"


def stored(array: str, pointers: Sequence[str], name: str) -> Iterator[str]:
    for k, pointer in enumerate(pointers):
        yield f"  %{name}.{k} = getelementptr ptr, ptr {array}, i64 {k}\n  store ptr {pointer}, ptr %{name}.{k}"


def _copied(name: str, to: tuple[str, str], source: tuple[str, str], n: int) -> Iterator[str]:
    """A row of n numbers: to and source are arrays with the number of the row."""
    for part, (array, row) in (("t", to), ("s", source)):
        yield f"  %{name}.{part}n = mul i64 {row}, {n}"
        yield f"  %{name}.{part} = getelementptr double, ptr {array}, i64 %{name}.{part}n"
    yield f"  call void @llvm.memcpy.p0.p0.i64(ptr %{name}.t, ptr %{name}.s, i64 {8 * n}, i1 false)"


def _declarations(width: int) -> list[str]:
    return [
        *(declarations(width) if width > 1 else []),
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        "declare i64 @llvm.smin.i64(i64, i64)",
    ]
