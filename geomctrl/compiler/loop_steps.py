"""LLVM code for a step of an explicit Runge-Kutta method on a Lie group."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from geomctrl.tracing.backends.ir import Function, Vector, literal

from .loop_memory import BLOCK, Equations, Layout, Stage


class Steps(Function):
    """A function under construction that takes steps in a loop's memory.

    `clock` is the type of time and step size: one number for all lanes, or one per lane. Conditions for a result are
    collected per lane in `good` and `bad`.
    """

    def __init__(self, equations: Equations, layout: Layout, vector: Vector, *, clock: Vector):
        super().__init__(vector)
        self.equations, self.layout, self.clock = equations, layout, clock
        self.block = BLOCK if clock.width == 1 else clock.width  # doubles per elementwise operation
        self.good: list[str] = []
        self.bad: list[str] = []
        self.h = ""  # step size

    def _stages(self, t: str) -> None:
        """Compute the stages from time t with a given first slope; the last stage's y is that at the end."""
        e = self.equations
        for i, stage in enumerate(e.stages):
            if i == 0:
                continue
            pull = self._element(i, stage)
            if i == len(e.stages) - 1:
                break
            self._slope(i, self.let(f"fadd {self.clock.type} {t}, {self._times(stage.c, self.h)}"), pull)

    def _slope(self, i: int, time: str, pull: bool) -> None:
        """The field at the stage, pulled back to the beginning of the step if the state is no vector."""
        self._store_time(self.stage, time)
        self._call("field", self.stage, self.pulled_k if pull else self.slopes[i])
        if pull:
            self._copy(self.pulled, self.moved_u, self.equations.dim)
            self._call("pull", self.pulled, self.slopes[i])

    def _look_whether_step_is_finite(self) -> None:
        """Look at y at the end, and at slopes of which it is no sum: others make it infinite or nan too."""
        e = self.equations
        last = e.stages[-1]
        rows = [last.classical] if e.move is None else last.rows
        for k, slope in enumerate(self.slopes):
            if all(k >= len(row) or row[k] == 0.0 for row in rows):
                self._look_whether_finite(slope, e.dim)
        self._look_whether_finite(self.stage_y, e.y)

    def _element(self, i: int, stage: Stage) -> bool:
        """Compute y of a stage; returns whether its slope must be pulled back."""
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
        """target = y + h sum_j row[j] K_j, entrywise."""
        terms = [(self._times(a, self.h), k) for a, k in zip(row, self.slopes) if a != 0.0]

        def entries(kind: Vector, address: Callable[[str], str]) -> None:
            total = self.let(f"load {kind.type}, ptr {address(y)}, align 8") if y else kind.constant(0.0)
            for factor, slope in terms:
                k = self.let(f"load {kind.type}, ptr {address(slope)}, align 8")
                ends = ", ".join(f"{kind.type} {x}" for x in (self._spread(kind, factor), k, total))
                total = self.let(f"call {kind.type} @llvm.fmuladd.{kind.suffix}({ends})")
            self.do(f"store {kind.type} {total}, ptr {address(target)}, align 8")

        self._for_each(numbers * self.vector.width, entries)

    def _look_whether_finite(self, x: str, numbers: int) -> None:
        """Add lanes in which one of these numbers is not finite to `bad`."""
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

    def _without_result(self) -> str:
        """The lanes without a result."""
        v = self.vector
        failed = "false" if v.width == 1 else "zeroinitializer"
        for good in self.good:
            failed = self.let(f"or {v.bool} {failed}, {self._not(good)}")
        for wrong in self.bad:
            failed = self.let(f"or {v.bool} {failed}, {wrong}")
        return failed

    def _addresses(self) -> None:
        e, l, w = self.equations, self.layout, self.vector.width
        self.x, self.stage, self.out = self._at(l.x), self._at(l.stage), self._at(l.out)
        self.x_y, self.stage_y = self._at(l.x + w), self._at(l.stage + w)
        self.x_held, self.stage_held = self._at(l.x + w * (1 + e.y)), self._at(l.stage + w * (1 + e.y))
        self.memory_at = l.x + w * (1 + e.y + e.held)
        self.scratch, self.command = self._at(l.scratch), self._at(l.command)
        further = range(len(e.stages) - 1 - (e.pair is None))
        self.slopes = [self.out, *(self._at(l.further_slopes + k * l.slope) for k in further)]
        self.moved, self.moved_u = self._at(l.moved), self._at(l.moved + w * e.y)
        self.pulled, self.pulled_k = self._at(l.pulled), self._at(l.pulled + w * e.dim)

    def _at(self, start: int) -> str:
        """The address of an area."""
        return self.let(f"getelementptr double, ptr %memory, i64 {start}")

    def _label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def _not(self, condition: str) -> str:
        v = self.vector
        return self.let(f"xor {v.bool} {condition}, {'true' if v.width == 1 else 'splat (i1 true)'}")

    def _bits(self, condition: str) -> str:
        """A condition as an integer with one bit per lane."""
        v = self.vector
        bits = condition if v.width == 1 else self.let(f"bitcast {v.bool} {condition} to i{v.width}")
        return self.let(f"zext i{v.width} {bits} to i64")

    def _times(self, a: float, x: str) -> str:
        """a x, for x of the clock's type."""
        return self.let(f"fmul {self.clock.type} {self.clock.constant(a)}, {x}")

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
        """A number of the clock's type as one of this type."""
        if kind.width == self.clock.width:
            return scalar
        one = self.let(f"insertelement {kind.type} poison, double {scalar}, i64 0")
        return self.let(f"shufflevector {kind.type} {one}, {kind.type} poison, <{kind.width} x i32> zeroinitializer")

    def _for_each(self, count: int, entries: Callable[[Vector, Callable[[str], str]], None]) -> None:
        """Apply entries(kind, at) to all `count` doubles, by blocks and then one by one."""
        whole, block = count // self.block, self.block
        if whole:
            self.blocks += 1
            name = f"each{self.blocks}"
            self.do(f"br label %{name}.before")
            self._label(f"{name}.before")
            self.do(f"br label %{name}")
            self._label(name)
            self.do(f"%{name}.b = phi i64 [0, %{name}.before], [%{name}.next, %{name}]")
            entries(Vector(block), lambda base: self.let(f"getelementptr double, ptr {base}, i64 %{name}.b"))
            self.do(f"%{name}.next = add i64 %{name}.b, {block}")
            self.do(f"%{name}.on = icmp slt i64 %{name}.next, {whole * block}")
            self.do(f"br i1 %{name}.on, label %{name}, label %{name}.done")
            self._label(f"{name}.done")
        for k in range(whole * block, count):
            entries(Vector(1), lambda base, k=k: self.address(base, k))
