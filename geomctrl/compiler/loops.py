"""A closed loop as one function: explicit Runge-Kutta steps on a Lie group, and what is looked at between them.

    run(numbers, memory, rows, first, last, every, total, dt, t_end, alive, phase) -> 2 k + phase

takes steps `first` to `last` of lanes that run side by side, and stops before the first thing that has no result in a
lane that is alive: phase 0, step k, the state being that before it; phase 1, sample k, the state being that at it. From
there another call goes on, without that lane. What has no result is the caller's to find words for. `memory` holds all
that a lane knows, `Layout` says where.

    look(numbers, memory) -> which lanes have no result

is a sample alone, at the state that the memory holds, a held command asked for anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .elementary import library, sin_cos, waves
from .fusion import fused
from .ir import Function, Vector, literal
from .llvm import core
from .loop_memory import BLOCK, Equations, Layout, Numbers, Stage
from .stretches import Plan

EXACT = ""  # no freedoms: a run has the same bits in one lane or many, watched or not


def module(equations: Equations, width: int, numbers: Numbers, side: int) -> tuple[str, Layout]:
    """The module's text, for `width` lanes, and where its memory has what. side: the processor's lanes."""
    kinds = sorted({width, max(width, side)})
    vector = Vector(width)
    plans = {name: Plan(fused(trace), max(side // width, 1)) for name, trace in equations.traces.items()}
    layout = Layout(equations, width, max(plan.slots for plan in plans.values()))
    parts = [library(kinds), *(sin_cos(Vector(k)) for k in kinds), *(waves(Vector(k)) for k in kinds)]
    parts += [core(plan, vector, name, side, numbers.place, EXACT) for name, plan in plans.items()]
    parts += [_Loop(equations, layout, vector).text(), _Loop(equations, layout, vector).look()]
    return "\n".join(parts), layout


class _Loop(Function):
    """The loop around the equations, while it is written."""

    def __init__(self, equations: Equations, layout: Layout, vector: Vector):
        super().__init__(vector)
        self.equations, self.layout = equations, layout
        self.good: list[str] = []  # conditions, one a lane
        self.bad: list[str] = []

    def text(self) -> str:
        arguments = (
            "ptr noalias %numbers, ptr noalias %memory, ptr noalias %rows, i64 %first, i64 %last, i64 %every,"
            " i64 %total, double %dt, double %t_end, i64 %alive, i64 %phase"
        )
        self.lines = [f"define i64 @run({arguments}) nounwind {{", "entry:"]
        self._addresses()
        resumed = self.let("icmp ne i64 %phase, 0")
        self.do(f"br i1 {resumed}, label %sample, label %head")
        self._label("head")
        self.do("%k = phi i64 [%first, %entry], [%next, %tail]")
        self.do("%row_before = phi ptr [%rows, %entry], [%row_next, %tail]")
        self.do("%more = icmp slt i64 %k, %last")
        self.do("br i1 %more, label %step, label %exit")
        self._label("step")
        self._step()
        self._stop_unless_good("step_done", "%k", 0)
        self._label("step_done")
        self._arrive()
        self.do("br label %sample")
        self._label("sample")
        self.do("%next = phi i64 [%first, %entry], [%arrived, %step_done]")
        self.do("%row = phi ptr [%rows, %entry], [%row_before, %step_done]")
        self._sample()
        self._stop_unless_good("sample_done", "%next", 1)
        self._label("sample_done")
        self._commit()
        self.do("br label %tail")
        self._label("tail")
        self.do("%row_next = phi ptr [%row, %commit_done], [%row_stored, %stored]")
        self.do("br label %head")
        self._label("exit")
        self.do("%reached = shl i64 %last, 1")
        self.do("ret i64 %reached")
        self.lines.append("}")
        return "\n".join(self.lines)

    def look(self) -> str:
        e, v = self.equations, self.vector
        self.lines = ["define i64 @look(ptr noalias %numbers, ptr noalias %memory) nounwind {", "entry:"]
        self._addresses()
        if e.law is not None:
            self._call("law", self.x, self.command)
            self._copy(self.x_held, self.command, e.held)
        self._call("sample", self.x, self.out)
        good = self.good[0]
        for other in self.good[1:]:
            good = self.let(f"and {v.bool} {good}, {other}")
        bits = good if v.width == 1 else self.let(f"bitcast {v.bool} {good} to i{v.width}")
        wrong = self.let(f"xor i{v.width} {bits}, -1")
        self.do(f"ret i64 {self.let(f'zext i{v.width} {wrong} to i64')}")
        return "\n".join([*self.lines, "}"])

    def _label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def _at(self, start: int) -> str:
        """The address of an area."""
        return self.let(f"getelementptr double, ptr %memory, i64 {start}")

    def _addresses(self) -> None:
        e, l, w = self.equations, self.layout, self.vector.width
        self.x, self.stage, self.out = self._at(l.x), self._at(l.stage), self._at(l.out)
        self.x_y, self.stage_y = self._at(l.x + w), self._at(l.stage + w)
        self.x_held, self.stage_held = self._at(l.x + w * (1 + e.y)), self._at(l.stage + w * (1 + e.y))
        self.memory_at = l.x + w * (1 + e.y + e.held)
        self.scratch, self.command = self._at(l.scratch), self._at(l.command)
        self.slopes = [self._at(l.slopes + k * l.slope) for k in range(len(e.stages) - 1)]
        self.moved, self.moved_u = self._at(l.moved), self._at(l.moved + w * e.y)
        self.pulled, self.pulled_k = self._at(l.pulled), self._at(l.pulled + w * e.dim)

    # --- a step ------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        e = self.equations
        self.good, self.bad = [], []
        t = self.let(f"load double, ptr {self.x}")
        left = self.let(f"fsub double %t_end, {t}")
        short = self.let(f"fcmp olt double {left}, %dt")
        self.h = self.let(f"select i1 {short}, double {left}, double %dt")
        for i, stage in enumerate(e.stages):
            if i == 0:
                continue
            time = self.let(f"fmul double {literal(stage.c)}, {self.h}")
            time = self.let(f"fadd double {t}, {time}")
            pull = self._element(i, stage)
            if i == len(e.stages) - 1:
                break
            self._store_time(self.stage, time)
            target = self.pulled_k if pull else self.slopes[i]
            self._call("field", self.stage, target)
            if pull:
                self._copy(self.pulled, self.moved_u, e.dim)
                self._call("pull", self.pulled, self.slopes[i])
        for at, count in [*((k, e.dim) for k in self.slopes), (self.stage_y, e.y)]:
            self._look_whether_finite(at, count)

    def _element(self, i: int, stage: Stage) -> bool:
        """y of a stage into the stage's place; whether its slope is to be pulled back."""
        e, w = self.equations, self.vector.width
        if e.move is None:
            self._combine(self.stage_y, self.x_y, stage.classical, e.dim)
            return False
        kept = [s.base for s in e.stages]
        base = self.x_y if stage.base == 0 else self._at(self.layout.kept + stage.base * e.y * w)
        self._copy(self.stage_y, base, e.y)
        for row in stage.rows:
            self._copy(self.moved, self.stage_y, e.y)
            self._combine(self.moved_u, None, row, e.dim)
            self._call("move", self.moved, self.stage_y)
        if i in kept and i < len(e.stages) - 1:
            self._copy(self._at(self.layout.kept + i * e.y * w), self.stage_y, e.y)
        return e.munthe_kaas and len(stage.rows) > 0

    def _combine(self, target: str, y: str | None, row: Sequence[float], numbers: int) -> None:
        """target = y + h sum_j row[j] K_j, entry by entry."""
        terms = [(self.let(f"fmul double {literal(a)}, {self.h}"), k) for a, k in zip(row, self.slopes) if a != 0.0]

        def entries(kind: Vector, at: Callable[[str], str]) -> None:
            total = self.let(f"load {kind.type}, ptr {at(y)}, align 8") if y else kind.constant(0.0)
            for factor, slope in terms:
                k = self.let(f"load {kind.type}, ptr {at(slope)}, align 8")
                ends = ", ".join(f"{kind.type} {x}" for x in (self._spread(kind, factor), k, total))
                total = self.let(f"call {kind.type} @llvm.fmuladd.{kind.suffix}({ends})")
            self.do(f"store {kind.type} {total}, ptr {at(target)}, align 8")

        self._for_each(numbers * self.vector.width, entries)

    def _look_whether_finite(self, x: str, numbers: int) -> None:
        """Lanes in which one of these numbers is not finite, into `bad`."""
        w = self.vector.width
        kind = Vector(w if w > 1 else BLOCK)
        total = kind.constant(0.0)
        count = numbers * w
        whole = count // kind.width
        self.blocks += 1
        name = f"finite{self.blocks}"
        if whole:
            before = f"{name}.before"
            self.do(f"br label %{before}")
            self._label(before)
            self.do(f"br label %{name}")
            self._label(name)
            self.do(f"%{name}.b = phi i64 [0, %{before}], [%{name}.next, %{name}]")
            self.do(f"%{name}.sum = phi {kind.type} [{total}, %{before}], [%{name}.more, %{name}]")
            place = self.let(f"getelementptr double, ptr {x}, i64 %{name}.b")
            y = self.let(f"load {kind.type}, ptr {place}, align 8")
            zero = self.let(f"fsub {kind.type} {y}, {y}")
            self.do(f"%{name}.more = fadd {kind.type} %{name}.sum, {zero}")
            self.do(f"%{name}.next = add i64 %{name}.b, {kind.width}")
            self.do(f"%{name}.on = icmp slt i64 %{name}.next, {whole * kind.width}")
            self.do(f"br i1 %{name}.on, label %{name}, label %{name}.done")
            self._label(f"{name}.done")
            total = f"%{name}.more"
        wrong = self.let(f"fcmp uno {kind.type} {total}, {kind.constant(0.0)}")
        if w > 1:
            self.bad.append(wrong)
            return
        bits = self.let(f"bitcast <{kind.width} x i1> {wrong} to i{kind.width}")
        self.bad.append(self.let(f"icmp ne i{kind.width} {bits}, 0"))
        for k in range(whole * kind.width, count):
            y = self.let(f"load double, ptr {self.address(x, k)}")
            zero = self.let(f"fsub double {y}, {y}")
            self.bad.append(self.let(f"fcmp uno double {zero}, {literal(0.0)}"))

    # --- a sample ----------------------------------------------------------------------------------------------

    def _arrive(self) -> None:
        """The state is that of the stage now; time goes on."""
        e = self.equations
        self._copy(self.x_y, self.stage_y, e.y)
        self.do("%arrived = add i64 %k, 1")
        steps = self.let("sitofp i64 %arrived to double")
        t = self.let(f"fmul double {steps}, %dt")
        beyond = self.let(f"fcmp olt double %t_end, {t}")
        self._store_time(self.x, self.let(f"select i1 {beyond}, double %t_end, double {t}"))

    def _sample(self) -> None:
        e = self.equations
        self.good, self.bad = [], []
        if e.law is not None:
            self._held_or_asked_for()
        self._call("sample", self.x, self.out)
        self._look_whether_finite(self.out, e.dim)

    def _held_or_asked_for(self) -> None:
        """A new command at every so many samples, into the memory of commands, from there to where it is read."""
        e, v = self.equations, self.vector
        since = self.let(f"srem i64 %next, {self.let(f'load i64, ptr {self._at(self.layout.hold)}')}")
        asked = self.let(f"icmp eq i64 {since}, 0")
        self.do("br label %before_law")
        self._label("before_law")
        self.do(f"br i1 {asked}, label %law_asked, label %law_done")
        self._label("law_asked")
        self._call("law", self.x, self.command)
        good = self.good.pop()
        self._copy(self.x_held, self.command, e.held)
        self._copy(self.stage_held, self.command, e.held)
        self.do("br label %law_done")
        self._label("law_done")
        truth = "true" if v.width == 1 else "splat (i1 true)"
        self.good.append(self.let(f"phi {v.bool} [{truth}, %before_law], [{good}, %law_asked]"))

    def _commit(self) -> None:
        """What a sample has found is kept, and a row of it where one is stored."""
        e, l, w = self.equations, self.layout, self.vector.width
        self._copy(self.slopes[0], self.out, e.dim)
        for found, place, numbers in _runs(e.remembered):
            self._copy(self._at(self.memory_at + place * w), self._at(l.out + found * w), numbers)
        since = self.let("srem i64 %next, %every")
        due = self.let(f"icmp eq i64 {since}, 0")
        end = self.let("icmp eq i64 %next, %total")
        stored = self.let(f"or i1 {due}, {end}")
        self.do("br label %commit_done")
        self._label("commit_done")
        self.do(f"br i1 {stored}, label %stored, label %tail")
        self._label("stored")
        first, rest = 1 + e.y + e.held, sum(e.sample.sizes) - e.dim
        self._copy("%row", self.x, first)
        self._copy(self.let(f"getelementptr double, ptr %row, i64 {first * w}"), self._at(l.out + e.dim * w), rest)
        self.do(f"%row_stored = getelementptr double, ptr %row, i64 {l.row}")

    def _stop_unless_good(self, on: str, number: str, phase: int) -> None:
        """To the block `on`, unless something has no result in a lane that is alive."""
        v = self.vector
        ones = "true" if v.width == 1 else "splat (i1 true)"
        bad = "false" if v.width == 1 else "zeroinitializer"
        for good in self.good:
            bad = self.let(f"or {v.bool} {bad}, {self.let(f'xor {v.bool} {good}, {ones}')}")
        for wrong in self.bad:
            bad = self.let(f"or {v.bool} {bad}, {wrong}")
        bits = bad if v.width == 1 else self.let(f"bitcast {v.bool} {bad} to i{v.width}")
        wide = self.let(f"zext i{v.width} {bits} to i64")
        concerned = self.let(f"and i64 {wide}, %alive")
        fine = self.let(f"icmp eq i64 {concerned}, 0")
        self.do(f"br i1 {fine}, label %{on}, label %{on}_not")
        self._label(f"{on}_not")
        place = self._at(self.layout.stopped)
        self.do(f"store i64 {concerned}, ptr {place}")
        twice = self.let(f"shl i64 {number}, 1")
        self.do(f"ret i64 {self.let(f'or i64 {twice}, {phase}')}")

    # --- pieces ------------------------------------------------------------------------------------------------

    def _call(self, name: str, x: str, y: str) -> None:
        kind = self.vector.bool
        self.good.append(self.let(f"call {kind} @{name}(ptr %numbers, ptr {x}, ptr {y}, ptr {self.scratch})"))

    def _copy(self, target: str, source: str, numbers: int) -> None:
        if numbers:
            size = 8 * numbers * self.vector.width
            self.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")

    def _store_time(self, x: str, t: str) -> None:
        v = self.vector
        self.do(f"store {v.type} {self._spread(v, t)}, ptr {x}, align 8")

    def _spread(self, kind: Vector, scalar: str) -> str:
        if kind.width == 1:
            return scalar
        one = self.let(f"insertelement {kind.type} poison, double {scalar}, i64 0")
        return self.let(f"shufflevector {kind.type} {one}, {kind.type} poison, <{kind.width} x i32> zeroinitializer")

    def _for_each(self, count: int, entries: Callable[[Vector, Callable[[str], str]], None]) -> None:
        """entries(kind, at) for all of `count` doubles, BLOCK at once, the last few one by one."""
        whole = count // BLOCK
        if whole:
            self.blocks += 1
            name = f"each{self.blocks}"
            self.do(f"br label %{name}.before")
            self._label(f"{name}.before")
            self.do(f"br label %{name}")
            self._label(name)
            self.do(f"%{name}.b = phi i64 [0, %{name}.before], [%{name}.next, %{name}]")
            entries(Vector(BLOCK), lambda base: self.let(f"getelementptr double, ptr {base}, i64 %{name}.b"))
            self.do(f"%{name}.next = add i64 %{name}.b, {BLOCK}")
            self.do(f"%{name}.on = icmp slt i64 %{name}.next, {whole * BLOCK}")
            self.do(f"br i1 %{name}.on, label %{name}, label %{name}.done")
            self._label(f"{name}.done")
        for k in range(whole * BLOCK, count):
            entries(Vector(1), lambda base, k=k: self.address(base, k))


def _runs(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """(source, target) of single numbers as (source, target, how many in a row)."""
    runs: list[tuple[int, int, int]] = []
    for source, target in pairs:
        if runs and (source, target) == (runs[-1][0] + runs[-1][2], runs[-1][1] + runs[-1][2]):
            runs[-1] = *runs[-1][:2], runs[-1][2] + 1
        else:
            runs.append((source, target, 1))
    return runs
