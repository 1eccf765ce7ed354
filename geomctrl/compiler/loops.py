"""LLVM code for a closed loop as one function: explicit Runge-Kutta steps on a Lie group with samples in between.

    run(numbers, memory, rows, first, last, every, total, dt, t_end, alive, phase) -> 2 k + phase

takes steps `first` to `last` of parallel lanes. It stops before the first step or sample without a result in an active
lane: phase 0, step k, with the state before it; phase 1, sample k, with the state at it. The caller explains the
failure and continues without that lane. `memory` contains everything about a lane; see `Layout`. A step is the interval
between two samples; for an adaptive method it is computed by `adaptive_steps`. The argument `phase` is 1 to begin with
sample `first`, plus 2 to end before the sample at `last`.

    look(numbers, memory) -> lanes without a result

computes a single sample at the state in memory, with a new command.

    over_rows(numbers, memory, rows, count, failed)

computes monitors of `count` stored samples of a single run that depend only on their rows, as many in parallel as the
processor has lanes. `failed` contains the samples of a block without a result, one bit per sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from geomctrl.tracing.backends.elementary import library, sin_cos, waves
from geomctrl.tracing.backends.ir import Function, Vector
from geomctrl.tracing.backends.llvm import core
from geomctrl.tracing.fusion import fused
from geomctrl.tracing.partition import Plan

from .adaptive_steps import Interval
from .loop_memory import Equations, Layout, Numbers, Rows
from .loop_steps import Steps

STRETCH = 250  # operations per part: with 150 to 300 the Panda's loop is 10 % faster than with 600
EXACT = ""  # no relaxations, so that results do not depend on the number of lanes or on monitors


def module(equations: Equations, width: int, numbers: Numbers, side: int) -> tuple[str, Layout]:
    """The module's text for `width` lanes, and the layout of its memory. side: the processor's lanes."""
    kinds = sorted({width, max(width, side)})
    vector = Vector(width)
    plans = {
        name: Plan(fused(trace), max(side // width, 1), stretch=STRETCH) for name, trace in equations.traces.items()
    }
    lanes, slots = Vector(max(kinds)), max(plan.slots for plan in plans.values())
    rows = None if equations.rows is None else Plan(fused(equations.rows.trace), stretch=STRETCH)
    layout = Layout(equations, width, slots, rows.slots if rows else 0, lanes.width)
    parts = [
        library(kinds, equations.all_traces, () if equations.pair is None else ("exp", "log")),
        *(sin_cos(Vector(k)) for k in kinds),
        *(waves(Vector(k)) for k in kinds),
    ]
    parts += [core(plan, vector, name, side, numbers.place, EXACT) for name, plan in plans.items()]
    if equations.pair is not None:
        parts.append(Interval(equations, layout, vector, equations.pair).text())
    parts += [Loop(equations, layout, vector).text(), Loop(equations, layout, vector).look()]
    if equations.rows is not None and rows is not None:
        parts.append(core(rows, lanes, "row", lanes.width, numbers.place, EXACT))
        parts.append(_OverRows(equations.rows, rows, layout, lanes).text())
    return "\n".join(parts), layout


class Loop(Steps):
    """The loop around the equations, under construction."""

    head, row_pointer = "define i64 @run", "ptr"
    arguments = (
        "ptr noalias %numbers, ptr noalias %memory, ptr noalias %rows, i64 %first, i64 %last, i64 %every,"
        " i64 %total, double %dt, double %t_end, i64 %alive, i64 %phase"
    )

    def __init__(self, equations: Equations, layout: Layout, vector: Vector):
        super().__init__(equations, layout, vector, clock=Vector(1))

    def text(self) -> str:
        self.lines = [f"{self.head}({self.arguments}) nounwind {{", "entry:"]
        self._addresses()
        resumed = self.let(f"icmp ne i64 {self.let('and i64 %phase, 1')}, 0")
        self.do(f"br i1 {resumed}, label %sample, label %head")
        self._label("head")
        tail = "tail" if self.equations.renewed is None else "renewed"
        self.do(f"%k = phi i64 [%first, %entry], [%next, %{tail}]")
        self.do(f"%row_before = phi {self.row_pointer} [%rows, %entry], [%row_next, %{tail}]")
        self.do("%more = icmp slt i64 %k, %last")
        self.do("br i1 %more, label %step, label %exit")
        self._label("step")
        self._step()
        self._label("step_done")
        self._arrive()
        bound = self.let(f"select i1 {self.let('icmp uge i64 %phase, 2')}, i64 %last, i64 -1")
        ends = self.let(f"icmp eq i64 %arrived, {bound}")
        self.do(f"br i1 {ends}, label %exit_before_sample, label %step_to_sample")
        self._label("exit_before_sample")
        twice = self.let("shl i64 %arrived, 1")
        self.do(f"ret i64 {self.let(f'or i64 {twice}, 1')}")
        self._label("step_to_sample")
        self.do("br label %sample")
        self._label("sample")
        self.do("%next = phi i64 [%first, %entry], [%arrived, %step_to_sample]")
        self.do(f"%row = phi {self.row_pointer} [%rows, %entry], [%row_before, %step_to_sample]")
        self._sample()
        self._branch_if_done(self._bits(self._without_result()), "sample_done", "%next", 1)
        self._label("sample_done")
        self._commit()
        self.do("br label %tail")
        self._label("tail")
        self.do(f"%row_next = phi {self.row_pointer} [%row, %commit_done], [%row_stored, %stored]")
        self._renew()
        self.do("br label %head")
        self._label("exit")
        self.do("%reached = shl i64 %last, 1")
        self.do("ret i64 %reached")
        self.lines.append("}")
        return "\n".join(self.lines)

    def look(self) -> str:
        e = self.equations
        self.lines = ["define i64 @look(ptr noalias %numbers, ptr noalias %memory) nounwind {", "entry:"]
        self._addresses()
        for k in range(e.before):
            self._renew_sampled(k)
        if e.law is not None:
            self._call("law", self.x, self.command)
            self._copy(self.x_command, self.command, e.held - e.commanded)
        for k in range(e.before, len(e.sampled)):
            self._renew_sampled(k)
        self._call("sample", self.x, self.out)
        self.do(f"ret i64 {self._bits(self._without_result())}")
        return "\n".join([*self.lines, "}"])

    def _addresses(self) -> None:
        super()._addresses()
        first = self.equations.commanded * self.vector.width
        self.x_command, self.stage_command = self.address(self.x_held, first), self.address(self.stage_held, first)
        self.before = self._at(self.layout.before)

    def _step(self) -> None:
        e = self.equations
        self.good, self.bad = [], []
        t = self._time("%k")
        left = self.let(f"fsub double %t_end, {t}")
        short = self.let(f"fcmp olt double {left}, %dt")
        self.h = self.let(f"select i1 {short}, double {left}, double %dt")
        if e.pair is None:
            self._stages(t)
            self._look_whether_step_is_finite()
            self._branch_if_done(self._bits(self._without_result()), "step_done", "%k", 0)
        else:
            bits = f"call i64 @interval(ptr %numbers, ptr %memory, double {self.h}, i64 %alive)"
            self._branch_if_done(self.let(bits), "step_done", "%k", 0)

    def _arrive(self) -> None:
        """Move the result of a step or interval into the state, and advance the time."""
        e = self.equations
        if e.pair is None:
            self._copy(self.x_y, self.stage_y, e.y)
        self.do("%arrived = add i64 %k, 1")
        self._store_time(self.x, self._time("%arrived"))

    def _time(self, k: str) -> str:
        """The time of sample k, which all lanes share, without their own start."""
        t = self.let(f"fmul double {self.let(f'sitofp i64 {k} to double')}, %dt")
        beyond = self.let(f"fcmp olt double %t_end, {t}")
        return self.let(f"select i1 {beyond}, double %t_end, double {t}")

    def _store_time(self, x: str, t: str) -> None:
        v = self.vector
        start = self.let(f"load {v.type}, ptr {self._at(self.layout.start)}, align 8")
        t = self.let(f"fadd {v.type} {start}, {self._spread(v, t)}")
        self.do(f"store {v.type} {t}, ptr {x}, align 8")

    def _sample(self) -> None:
        e = self.equations
        self.good, self.bad = [], []
        if e.restored:
            self._copy(self.before, self.x_held, e.held)
        for k in range(e.before):
            self._if_due(1 + k, f"sampled{k}", lambda k=k: self._renew_sampled(k))
        if e.law is not None:
            self.asked = self._if_due(0, "law", self._ask)
        for k in range(e.before, len(e.sampled)):
            self._if_due(1 + k, f"sampled{k}", lambda k=k: self._renew_sampled(k))
        self._call("sample", self.x, self.out)
        self._look_whether_finite(self.out, e.dim)

    def _ask(self) -> None:
        """Store a new command and copy it to where it is read."""
        e = self.equations
        self._call("law", self.x, self.command)
        self._copy(self.x_command, self.command, e.held - e.commanded)
        self._copy(self.stage_command, self.command, e.held - e.commanded)

    def _renew_sampled(self, k: int) -> None:
        _, first, size = self.equations.sampled[k]
        self._call(f"sampled{k}", self.x, self.command)
        self._copy(self.address(self.x_held, first * self.vector.width), self.command, size)
        if k >= self.equations.before:  # the stages of the plant read it
            self._copy(self.address(self.stage_held, first * self.vector.width), self.command, size)

    def _if_due(self, which: int, name: str, do: Callable[[], None]) -> str:
        """Code executed every so many samples; returns whether at this one."""
        v = self.vector
        period = self.let(f"load i64, ptr {self.address(self._at(self.layout.hold), which)}")
        due = self.let(f"icmp eq i64 {self.let(f'srem i64 %next, {period}')}, 0")
        self.do(f"br label %before_{name}")
        self._label(f"before_{name}")
        self.do(f"br i1 {due}, label %{name}_due, label %{name}_done")
        self._label(f"{name}_due")
        do()
        good = self.good.pop()
        self.do(f"br label %{name}_done")
        self._label(f"{name}_done")
        truth = "true" if v.width == 1 else "splat (i1 true)"
        self.good.append(self.let(f"phi {v.bool} [{truth}, %before_{name}], [{good}, %{name}_due]"))
        return due

    def _commit(self) -> None:
        """Store the outputs of a sample, and a row if it is due."""
        e, w = self.equations, self.vector.width
        for source, place, numbers in _runs(e.remembered):
            self._copy(self._at(self.memory_at + place * w), self._at(self.layout.out + source * w), numbers)
        since = self.let("srem i64 %next, %every")
        due = self.let(f"icmp eq i64 {since}, 0")
        end = self.let("icmp eq i64 %next, %total")
        stored = self.let(f"or i1 {due}, {end}")
        self.do("br label %commit_done")
        self._label("commit_done")
        self.do(f"br i1 {stored}, label %stored, label %tail")
        self._label("stored")
        self._store_row()

    def _store_row(self) -> None:
        e, l, w = self.equations, self.layout, self.vector.width
        first, rest = 1 + e.y + e.held, e.sample.sizes[1]
        self._copy("%row", self.x, first)
        self._copy(self.let(f"getelementptr double, ptr %row, i64 {first * w}"), self._at(l.out + e.dim * w), rest)
        self.do(f"%row_stored = getelementptr double, ptr %row, i64 {l.row}")

    def _renew(self) -> None:
        """Update the state by z_next, after the old one was observed and stored."""
        if self.equations.renewed is None:
            return
        source, target, numbers = self.equations.renewed
        w = self.vector.width
        self.do(f"br i1 {self.asked}, label %renew, label %renewed")
        self._label("renew")
        self._copy(self._at(self.layout.x + (1 + target) * w), self.address(self.x_held, source * w), numbers)
        self.do("br label %renewed")
        self._label("renewed")

    def _branch_if_done(self, bits: str, on: str, number: str, phase: int) -> None:
        """Branch to the block `on` if all active lanes have a result."""
        concerned = self.let(f"and i64 {bits}, %alive")
        fine = self.let(f"icmp eq i64 {concerned}, 0")
        self.do(f"br i1 {fine}, label %{on}, label %{on}_not")
        self._label(f"{on}_not")
        place = self._at(self.layout.stopped)
        self.do(f"store i64 {concerned}, ptr {place}")
        if phase and self.equations.restored:  # this sample will be taken again
            self._copy(self.x_held, self.before, self.equations.held)
        twice = self.let(f"shl i64 {number}, 1")
        self.do(f"ret i64 {self.let(f'or i64 {twice}, {phase}')}")


class _OverRows(Function):
    """Quantities that depend only on the row of their sample, by blocks of rows, under construction."""

    def __init__(self, rows: Rows, plan: Plan, layout: Layout, lanes: Vector):
        super().__init__(lanes)
        self.rows, self.layout = rows, layout
        nodes, starts = plan.nodes, plan.starts
        loads = (nodes[index] for index in plan.trace.graph.needed(plan.trace.ends) if nodes[index][0] == "load")
        self.inputs = sorted({starts[array - 1] + k for _, array, k in loads if array})

    def text(self) -> str:
        l, w = self.layout, self.vector.width
        arguments = "ptr noalias %numbers, ptr noalias %memory, ptr noalias %rows, i64 %count, ptr noalias %failed"
        self.lines = [f"define void @over_rows({arguments}) nounwind {{", "entry:"]
        turned, out, scratch = (self.let(f"getelementptr double, ptr %memory, i64 {x}") for x in l.block)
        self.do(f"%blocks = udiv i64 {self.let(f'add i64 %count, {w - 1}')}, {w}")
        self.lines += ["  br label %head", "head:"]
        self.do("%b = phi i64 [0, %entry], [%next, %body]")
        self.do("%more = icmp slt i64 %b, %blocks")
        self.lines += ["  br i1 %more, label %body, label %exit", "body:"]
        rows = [self._row(lane) for lane in range(w)]
        for k in self.inputs:  # transposed into lanes
            place = self.address(turned, k * w)
            self.do(f"store {self.vector.type} {self._gathered(rows, k)}, ptr {place}, align 8")
        bits = self.let(f"call {self.vector.bool} @row(ptr %numbers, ptr {turned}, ptr {out}, ptr {scratch})")
        for k, place in enumerate(self.rows.places):
            x = self.let(f"load {self.vector.type}, ptr {self.address(out, k * w)}, align 8")
            self._scatter(x, rows, place)
        whole = self.let(f"bitcast {self.vector.bool} {bits} to i{w}")
        wrong = self.let(f"zext i{w} {self.let(f'xor i{w} {whole}, -1')} to i64")
        self.do(f"store i64 {wrong}, ptr {self.let('getelementptr i64, ptr %failed, i64 %b')}")
        self.do("%next = add i64 %b, 1")
        self.lines += ["  br label %head", "exit:", "  ret void", "}"]
        return "\n".join(self.lines)

    def _row(self, lane: int) -> str:
        """The address of a row of the block; the last row is repeated beyond the end."""
        k = self.let(f"add i64 {self.let(f'mul i64 %b, {self.vector.width}')}, {lane}")
        last = self.let("sub i64 %count, 1")
        k = self.let(f"call i64 @llvm.smin.i64(i64 {k}, i64 {last})")
        return self.let(f"getelementptr double, ptr %rows, i64 {self.let(f'mul i64 {k}, {self.layout.row}')}")

    def _gathered(self, rows: Sequence[str], k: int) -> str:
        """Number k of all rows."""
        x = "poison"
        for lane, row in enumerate(rows):
            number = self.let(f"load double, ptr {self.address(row, k)}")
            x = self.let(f"insertelement {self.vector.type} {x}, double {number}, i64 {lane}")
        return x

    def _scatter(self, x: str, rows: Sequence[str], k: int) -> None:
        for lane, row in enumerate(rows):
            number = self.let(f"extractelement {self.vector.type} {x}, i64 {lane}")
            self.do(f"store double {number}, ptr {self.address(row, k)}")


def _runs(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """(source, target) of single numbers as (source, target, length) of runs."""
    runs: list[tuple[int, int, int]] = []
    for source, target in pairs:
        if runs and (source, target) == (runs[-1][0] + runs[-1][2], runs[-1][1] + runs[-1][2]):
            runs[-1] = *runs[-1][:2], runs[-1][2] + 1
        else:
            runs.append((source, target, 1))
    return runs
