"""LLVM code for closed loops on an NVIDIA GPU: each thread runs the loop of `loops` for itself.

Experimental: tested on the CPU with a stand-in for CUDA's driver, not yet on a GPU.

    NAME(threads, numbers, state, rows, reached, first, last, every, total, dt, t_end)

Number k of thread b is at [k * threads + b] of `numbers`, `state` and `rows`, so that neighbouring threads access
neighbouring addresses. A thread copies its `numbers` (of the model) and its `state` (see `Image`) to local memory, runs
from step `first` to step `last` as a single lane of `loops` does, and copies the state back. Stored samples go to
`rows`, one after the other.

reached: 2 k + phase for each thread, as the result of `loops`. A thread takes part if it is 2 first at the beginning;
others have stopped and keep their numbers. A thread that stops does not stop its neighbours.

The state of all active threads exceeds every cache, so that local memory probably limits the speed, which has not been
measured. Longer parts exchange fewer numbers, and beyond some length ptxas spills as many. Loads and stores of local
memory in a step of MK4, doubles, sm_90, those spilled included (CUDA 12.9):

                    operations per part     250    1000    1500    2000
    Panda, Slotine-Li, monitors            9099    5255    5090    4655
    Panda, Slotine-Li                      4953    2576    2406    1789
    Panda, PD, monitors                    5303    2954    2727    2708
    quadruped, passivity, monitors        25439   15635   15283

Long parts use all 255 registers, so that 256 threads share a multiprocessor. Whether twice as many with parts of 250
operations are faster for short loops has not been measured.

Pointers to local memory have its address space: loads and stores by a generic address need two registers for it, and
the hardware must find out which memory it is.

Elementary functions other than sine, cosine and square root are those of NVIDIA's libdevice.

In single precision the rates, the law and the plant are computed with floats. Memory contains doubles, and double are:
the sums of a step (on a group, y exp(u)) and its error estimate, the time and its functions, random numbers, sensors,
monitors with everything that they depend on, and what persists between samples (measures, the law's memory). See
`backends.mixed`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import accumulate

from geomctrl.tracing.backends.angles import reduced
from geomctrl.tracing.backends.elementary import library, reduced_sin_cos, sin_cos, waves
from geomctrl.tracing.backends.ir import Function, Vector
from geomctrl.tracing.backends.llvm import core
from geomctrl.tracing.backends.mixed import MixedSegment, double_nodes
from geomctrl.tracing.backends.ptx import GLOBAL, STATE, THREADS, WAVES
from geomctrl.tracing.fusion import fused
from geomctrl.tracing.operations import LIBRARY
from geomctrl.tracing.partition import Plan

from .adaptive_steps import Interval
from .loop_memory import HELD, MEMORY, Equations, Layout, Numbers
from .loop_memory import STATE as LOOP_STATE
from .loop_steps import Steps
from .loops import EXACT, Loop

ONE, FLOAT = Vector(1), Vector(1, "float")
LOCAL = "ptr addrspace(5)"
STRETCH = 1000  # operations per part; see the module's docstring
DOUBLE = re.compile(r"move|sampled\d+")  # traces that are computed in double precision
PAIR_FUNCTIONS = "exp", "log"  # called by adaptive methods
SYMBOLS = {name: f"__nv_{name}" for name in LIBRARY} | {"sin": "sine", "cos": "cosine"}


class Image:
    """Positions of a run's numbers in the arrays that host and device exchange, for `width` runs.

    Attributes as of `Layout`, of which these are the areas that persist between calls.
    """

    def __init__(self, equations: Equations, width: int):
        e, pair = equations, equations.pair is not None
        self.width, self.row = width, width * e.row
        lengths = 1 + e.y + e.held + e.memory, e.held, e.dim, int(pair), pair * (1 + e.dim)
        self.places = [*accumulate(lengths, initial=0)]
        self.x, held, self.slopes, self.pace, self.tolerances, self.hold = (k * width for k in self.places)
        self.stage = held - width * (1 + e.y)
        self.periods = 1 + len(e.sampled)  # at `hold`, common to all runs
        self.size = self.hold + self.periods
        self.lengths = lengths

    def areas(self, equations: Equations, layout: Layout) -> list[tuple[int, int, int]]:
        """(Start in a thread's memory, place, length) of each area of a run's own."""
        starts = layout.x, layout.stage + 1 + equations.y, layout.slopes, layout.pace, layout.tolerances
        return [x for x in zip(starts, self.places, self.lengths) if x[2]]


def module(
    equations: Equations, numbers: Numbers, name: str, precision: str = "double", monitored: Collection[int] = ()
) -> str:
    """The kernel's module as text, of equations without `rows`.

    precision: "double" or "float"; monitored: outputs of `sample` for monitors.
    """
    plans = {trace: Plan(fused(x), stretch=STRETCH) for trace, x in equations.traces.items()}
    layout = Layout(equations, 1, max(plan.slots for plan in plans.values()))
    used, others = library_functions(equations), () if equations.pair is None else PAIR_FUNCTIONS
    single = precision == "float"
    parts = [
        library([1], equations.all_traces, others, SYMBOLS, single),
        *(part for vector in ([ONE, FLOAT] if single else [ONE]) for part in _functions(vector, used)),
        waves(ONE),
    ]
    doubles = doubles_of(equations, plans, monitored) if single else {}
    for trace, plan in plans.items():
        segment = partial(MixedSegment, double=doubles[trace]) if trace in doubles else None
        parts.append(core(plan, ONE, trace, 1, numbers.place, EXACT, segment))
    if equations.pair is not None:
        parts.append(Interval(equations, layout, ONE, equations.pair).text())
    parts += [_ThreadLoop(equations, layout, ONE).text(), _kernel(equations, layout, numbers, name)]
    bound = f'!nvvm.annotations = !{{!1}}\n!1 = !{{ptr @{name}, !"maxntidx", i32 {THREADS}}}'
    return "\n".join([STATE, reduced(), *map(_with_local_pointers, parts), bound])


def _with_local_pointers(text: str) -> str:
    """The text with pointers to local memory where it has pointers without an address space."""
    return re.sub(r"\bptr\b(?! addrspace)", LOCAL, text).replace(".p0", ".p5")


def library_functions(equations: Equations) -> list[str]:
    """The functions of NVIDIA's libdevice that the loop uses."""
    used = {node[0] for trace in equations.all_traces for node in trace.graph.nodes}
    return sorted((used | set(() if equations.pair is None else PAIR_FUNCTIONS)) & set(LIBRARY))


def doubles_of(equations: Equations, plans: Mapping[str, Plan], monitored: Collection[int]) -> dict[str, set[int]]:
    """The nodes of each trace that are computed in double precision, for traces that are not so as a whole."""
    e = equations
    source, target, size = e.renewed or (0, 0, 0)  # z_next in the held command, z in y
    first = source - e.commanded
    sums = {
        "sample": {output for output, _ in e.remembered},
        "law": {*range(e.law_memory), *range(first, first + size)},
    }

    def state(name: str, array: int, k: int) -> bool:
        return array == LOOP_STATE or name in ("pull", "size")

    def memory(array: int, k: int) -> bool:
        return array in (HELD, MEMORY) or (array == LOOP_STATE and target <= k < target + size)

    return {
        name: double_nodes(
            plan.trace, partial(state, name), memory, monitored if name == "sample" else (), sums.get(name, ())
        )
        for name, plan in plans.items()
        if not DOUBLE.fullmatch(name)
    }


def _functions(vector: Vector, used: Sequence[str]) -> list[str]:
    """Functions of libdevice that are used, and sine and cosine."""
    t, (wave, largest) = vector.type, WAVES[vector.real]
    declared = [f"declare {t} @{SYMBOLS[x]}{vector.mark}({', '.join([t] * LIBRARY[x])}) nounwind" for x in used]
    return [*declared, *(_wave(vector, name) for name in ("sine", "cosine")), sin_cos(vector, wave, largest)]


def _wave(vector: Vector, name: str) -> str:
    """Sine or cosine of angles beyond the range of the polynomials' reduction."""
    f, t, x = Function(vector), vector.type, "%x"
    if vector is FLOAT:
        x = f.let("fpext float %x to double")
    angle = f.let(f"call double @reduced(double {x})")
    if vector is FLOAT:
        angle = f.let(f"fptrunc double {angle} to float")
    result = reduced_sin_cos(f, angle, WAVES[vector.real][0])[name == "cosine"]
    header = f"define internal {t} @{name}{vector.mark}({t} %x) noinline cold nounwind {{"
    return "\n".join([header, *f.lines, f"  ret {t} {result}", "}"])


class _ThreadLoop(Loop):
    """The loop of a thread, which stores rows with a stride."""

    head, row_pointer = "define internal i64 @run", GLOBAL
    arguments = Loop.arguments.replace("ptr noalias %rows", f"{GLOBAL} %rows, i64 %threads")
    _store_time = Steps._store_time  # all threads have one clock

    def _store_row(self) -> None:
        e = self.equations
        first, rest = 1 + e.y + e.held, e.sample.sizes[1]
        self.do(f"call void @put({GLOBAL} %row, ptr {self.x}, i64 {first}, i64 %threads)")
        further = self.let(f"getelementptr double, {GLOBAL} %row, i64 {self.let(f'mul i64 {first}, %threads')}")
        self.do(f"call void @put({GLOBAL} {further}, ptr {self.address(self.out, e.dim)}, i64 {rest}, i64 %threads)")
        length = self.let(f"mul i64 {e.row}, %threads")
        self.do(f"%row_stored = getelementptr double, {GLOBAL} %row, i64 {length}")


def _kernel(equations: Equations, layout: Layout, numbers: Numbers, name: str) -> str:
    image, own = Image(equations, 1), len(numbers.used)
    arguments = (
        f"i64 %threads, {GLOBAL} %numbers, {GLOBAL} %state, {GLOBAL} %rows, {GLOBAL} %reached,"
        " i64 %first, i64 %last, i64 %every, i64 %total, double %dt, double %t_end"
    )
    f = Function(ONE)
    for array, size in (("memory", layout.size), ("own", max(own, 1))):
        f.do(f"%{array}.generic = alloca double, i64 {size}, align 64")
        f.do(f"%{array} = addrspacecast ptr addrspace(0) %{array}.generic to {LOCAL}")
    f.do("%b = call i64 @state()")
    f.do("%inside = icmp slt i64 %b, %threads")
    f.do("br i1 %inside, label %ask, label %exit")
    f.lines.append("ask:")
    f.do(f"%place = getelementptr i64, {GLOBAL} %reached, i64 %b")
    f.do(f"%before = load i64, {GLOBAL} %place")
    f.do("%start = shl i64 %first, 1")
    f.do("%here = icmp eq i64 %before, %start")
    f.do("br i1 %here, label %run, label %exit")
    f.lines.append("run:")

    def far(array: str, place: int, thread: str = "%b") -> str:
        offset = f.let(f"add i64 {f.let(f'mul i64 {place}, %threads')}, {thread}")
        return f.let(f"getelementptr double, {GLOBAL} {array}, i64 {offset}")

    def near(start: int) -> str:
        return f.let(f"getelementptr double, ptr %memory, i64 {start}")

    areas = [(far("%state", place), near(start), length) for start, place, length in image.areas(equations, layout)]
    f.do(f"call void @get({GLOBAL} {far('%numbers', 0)}, ptr %own, i64 {own}, i64 %threads)")
    for there, here, length in areas:
        f.do(f"call void @get({GLOBAL} {there}, ptr {here}, i64 {length}, i64 %threads)")
    periods = far("%state", image.hold, "0")
    f.do(f"call void @get({GLOBAL} {periods}, ptr {near(layout.hold)}, i64 {image.periods}, i64 1)")
    f.do(
        f"%end = call i64 @run(ptr %own, ptr %memory, {GLOBAL} {far('%rows', 0)}, i64 %threads, i64 %first, i64 %last,"
        " i64 %every, i64 %total, double %dt, double %t_end, i64 1, i64 0)"
    )
    for there, here, length in areas:
        f.do(f"call void @put({GLOBAL} {there}, ptr {here}, i64 {length}, i64 %threads)")
    f.do(f"store i64 %end, {GLOBAL} %place")
    f.do("br label %exit")
    f.lines += ["exit:", "  ret void"]
    moves = [_move("get", f"{GLOBAL} %f", "ptr %n"), _move("put", "ptr %n", f"{GLOBAL} %f")]
    return "\n".join([*moves, f"define ptx_kernel void @{name}({arguments}) nounwind {{", "entry:", *f.lines, "}"])


def _move(name: str, source: str, target: str) -> str:
    """get or put(far, near, count, stride): `count` numbers, those at `far` a stride apart, as bits."""
    return f"""define internal void @{name}({GLOBAL} %far, ptr %near, i64 %count, i64 %stride) noinline nounwind {{
entry:
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %body, label %done
body:
  %k = phi i64 [0, %entry], [%next, %body]
  %offset = mul i64 %k, %stride
  %f = getelementptr i64, {GLOBAL} %far, i64 %offset
  %n = getelementptr i64, ptr %near, i64 %k
  %x = load i64, {source}
  store i64 %x, {target}
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %body, label %done
done:
  ret void
}}"""
