"""LLVM code for the adaptive steps of an embedded Runge-Kutta pair between two samples.

    interval(numbers, memory, span, alive) -> the lanes that have no result

advances the state in `memory` by `span`, with steps of each lane's own length, by the rules of `integrators.march` and
`integrators.step_control`. Lanes take steps together, and a lane that has arrived waits. If an active lane has no
result, even for a step that would be rejected, all lanes return to the beginning.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from geomctrl.kernels.marches import (
    END_STRETCH,
    GROW,
    MIN_ERROR,
    MIN_LAST_ERROR,
    MIN_STEP_ULPS,
    PI_GAIN,
    SAFETY,
    SHRINK,
)
from geomctrl.tracing.backends.ir import Vector

from .loop_memory import TAKEN, Equations, Layout, Pair
from .loop_steps import Steps

SIGN_AND_EXPONENT = -(1 << 52)  # mask of sign and exponent of a double


class Interval(Steps):
    """The function under construction."""

    def __init__(self, equations: Equations, layout: Layout, vector: Vector, pair: Pair):
        super().__init__(equations, layout, vector, clock=vector)
        self.pair = pair

    def text(self) -> str:
        arguments = "ptr noalias %numbers, ptr noalias %memory, double %span, i64 %alive"
        self.lines = [f"define internal i64 @interval({arguments}) noinline nounwind {{", "entry:"]
        self._addresses()
        self._begin()
        self.do("br label %head")
        self._label("head")
        t = self._load(self.x)
        active = self._both(self.alive, self._compare("olt", t, self.end))
        ended = self.let(f"icmp eq i64 {self._bits(active)}, 0")
        self.do(f"br i1 {ended}, label %arrived, label %step")
        self._label("step")
        t_next = self._step(t)
        error = self._error()
        self._compare_error(active, error)
        self._accept(t, t_next)
        self._choose_next(error)
        self.do("br label %head")
        self._label("arrived")
        self._store(self.pace, self.let(f"fdiv {self.vector.type} {self.span}, {self._load(self.taken['count'])}"))
        self.do("ret i64 0")
        self._label("stop")
        self._copy(self.x, self.begun, 1 + self.equations.y)
        self._copy(self.slopes[0], self.begun_k, self.equations.dim)
        self.do(f"ret i64 {self.failed}")
        return "\n".join([*self.lines, "}"])

    def _begin(self) -> None:
        """Variables that persist between steps, with their initial values saved."""
        e, l, v = self.equations, self.layout, self.vector
        w = v.width
        self.begun, self.begun_k = self._at(l.begun), self._at(l.begun + w * (1 + e.y))
        self.pace, self.rtol, self.atol = self._at(l.pace), self._at(l.tolerances), self._at(l.tolerances + w)
        self.taken = {name: self._at(l.taken + k * w) for k, name in enumerate(TAKEN)}
        self.ratios = self._at(l.ratios)
        self.sizes = self._at(l.sizes), self._at(l.sizes + w * e.dim)
        self._copy(self.begun, self.x, 1 + e.y)
        self._copy(self.begun_k, self.slopes[0], e.dim)
        bits = self.let(f"trunc i64 %alive to i{w}")
        self.alive = bits if w == 1 else self.let(f"bitcast i{w} {bits} to {v.bool}")
        self.span = "%span"
        if w > 1:
            one = self.let(f"insertelement {v.type} poison, double %span, i64 0")
            self.span = self.let(f"shufflevector {v.type} {one}, {v.type} poison, <{w} x i32> zeroinitializer")
        self.end = self.let(f"fadd {v.type} {self._load(self.x)}, {self.span}")
        kept = str(SIGN_AND_EXPONENT) if w == 1 else f"splat (i64 {SIGN_AND_EXPONENT})"
        bits = self.let(f"bitcast {v.type} {self.end} to {v.whole}")
        exponent = self.let(f"and {v.whole} {bits}, {kept}")
        power = self.let(f"bitcast {v.whole} {exponent} to {v.type}")
        self.smallest = self._times(MIN_STEP_ULPS * 2.0**-52, power)
        self._store(self.taken["h"], self._least(self._load(self.pace), self.span))
        for name, x in (("grow", GROW), ("before", MIN_LAST_ERROR), ("count", 0.0)):
            self._store(self.taken[name], v.constant(x))

    # --- a step ------------------------------------------------------------------------------------------------

    def _step(self, t: str) -> str:
        """A step from time t without error test; returns its end, where the last slope is the field."""
        v = self.vector
        remaining = self.let(f"fsub {v.type} {self.end}, {t}")
        h = self._load(self.taken["h"])
        self.good = [self._compare("oge", h, self._least(self.smallest, remaining))]
        self.bad = []
        last = self._compare("oge", self._times(END_STRETCH, h), remaining)
        self.h = self._select(last, remaining, h)
        t_next = self._select(last, self.end, self.let(f"fadd {v.type} {t}, {self.h}"))
        self._stages(t)
        self._slope(len(self.slopes) - 1, t_next, self.equations.pull is not None)
        self._look_whether_step_is_finite()
        return t_next

    def _error(self) -> str:
        """The root mean square of the errors relative to their tolerances."""
        e, v = self.equations, self.vector
        places = self.x_y, self.stage_y
        if e.size is not None:
            for y, place in zip(places, self.sizes):
                self._call("size", y, place)
            places = self.sizes
        self._combine(self.ratios, None, self.pair.weights, e.dim)
        rtol = self._load(self.rtol)

        def entries(kind: Vector, address: Callable[[str], str]) -> None:
            x, atol, *ends = (
                self.let(f"load {kind.type}, ptr {address(y)}, align 8") for y in (self.ratios, self.atol, *places)
            )
            a, b = (self.let(f"call {kind.type} @llvm.fabs.{kind.suffix}({kind.type} {y})") for y in ends)
            larger = self.let(f"fcmp ogt {kind.type} {a}, {b}")
            size = self.let(f"select {kind.bool} {larger}, {kind.type} {a}, {kind.type} {b}")
            relative = self.let(f"fmul {kind.type} {self._spread(kind, rtol)}, {size}")
            allowed = self.let(f"fadd {kind.type} {atol}, {relative}")
            ratio = self.let(f"fdiv {kind.type} {x}, {allowed}")
            zero = self.let(f"fcmp oeq {kind.type} {x}, {kind.constant(0.0)}")
            ratio = self.let(f"select {kind.bool} {zero}, {kind.type} {kind.constant(0.0)}, {kind.type} {ratio}")
            square = self.let(f"fmul {kind.type} {ratio}, {ratio}")
            self.do(f"store {kind.type} {square}, ptr {address(self.ratios)}, align 8")

        self._for_each(e.dim * v.width, entries)
        mean = self.let(f"fdiv {v.type} {self._sum(self.ratios, e.dim)}, {v.constant(float(e.dim))}")
        return self.call(f"llvm.sqrt.{v.suffix}", mean)

    def _sum(self, x: str, numbers: int) -> str:
        """The sum in order, so that one lane gives the same result as many."""
        v = self.vector
        self.do("br label %sum.before")
        self._label("sum.before")
        self.do("br label %sum")
        self._label("sum")
        self.do("%sum.k = phi i64 [0, %sum.before], [%sum.next, %sum]")
        self.do(f"%sum.total = phi {v.type} [{v.constant(0.0)}, %sum.before], [%sum.more, %sum]")
        self.do(f"%sum.more = fadd {v.type} %sum.total, {self._load(self.address(x, '%sum.k'))}")
        self.do(f"%sum.next = add i64 %sum.k, {v.width}")
        self.do(f"%sum.on = icmp slt i64 %sum.next, {numbers * v.width}")
        self.do("br i1 %sum.on, label %sum, label %sum.done")
        self._label("sum.done")
        return "%sum.more"

    def _compare_error(self, active: str, error: str) -> None:
        """Lanes whose step is accepted; returns to the beginning unless all active lanes have a result."""
        v = self.vector
        self.good.append(self._compare("olt", error, v.constant(inf)))
        self.accepted = self._both(active, self._compare("ole", error, v.constant(1.0)))
        accepted = self.let(f"uitofp {v.bool} {self.accepted} to {v.type}")
        count = self.let(f"fadd {v.type} {self._load(self.taken['count'])}, {accepted}")
        self._store(self.taken["count"], count)
        self.good.append(self._compare("ole", count, v.constant(float(self.pair.max_steps))))
        self.failed = self._bits(self._both(active, self._without_result()))
        fine = self.let(f"icmp eq i64 {self.failed}, 0")
        self.do(f"br i1 {fine}, label %go_on, label %stop")
        self._label("go_on")

    def _accept(self, t: str, t_next: str) -> None:
        """Advance the lanes whose step is accepted."""
        e = self.equations
        rates = self.slopes[-1] if e.pull is None else self.pulled_k  # slopes before the pull-back
        self._store(self.x, self._select(self.accepted, t_next, t))
        for target, source, numbers in ((self.x_y, self.stage_y, e.y), (self.slopes[0], rates, e.dim)):

            def entries(
                kind: Vector, address: Callable[[str], str], target: str = target, source: str = source
            ) -> None:
                new, old = (self.let(f"load {kind.type}, ptr {address(x)}, align 8") for x in (source, target))
                x = self.let(f"select {self.vector.bool} {self.accepted}, {kind.type} {new}, {kind.type} {old}")
                self.do(f"store {kind.type} {x}, ptr {address(target)}, align 8")

            self._for_each(numbers * self.vector.width, entries)

    def _choose_next(self, error: str) -> None:
        """The next step size by a proportional-integral controller, and its largest growth."""
        v = self.vector
        before = self._load(self.taken["before"])
        exponents = (0.75 * PI_GAIN - 1.0 / self.pair.order, self._most(error, MIN_ERROR)), (PI_GAIN, before)
        terms = [self._times(a, self.call(f"log_{v.width}", x)) for a, x in exponents]
        power = self.call(f"exp_{v.width}", self.let(f"fadd {v.type} {terms[0]}, {terms[1]}"))
        factor = self._most(self._times(SAFETY, power), SHRINK)
        longest = self._select(self.accepted, self._load(self.taken["grow"]), v.constant(SAFETY))
        h = self.let(f"fmul {v.type} {self.h}, {self._least(factor, longest)}")
        self._store(self.taken["h"], h)
        self._store(self.taken["grow"], self._select(self.accepted, v.constant(GROW), v.constant(1.0)))
        self._store(self.taken["before"], self._select(self.accepted, self._most(error, MIN_LAST_ERROR), before))

    # --- pieces --------------------------------------------------------------------------------------------------

    def _load(self, x: str) -> str:
        return self.let(f"load {self.vector.type}, ptr {x}, align 8")

    def _store(self, x: str, value: str) -> None:
        self.do(f"store {self.vector.type} {value}, ptr {x}, align 8")

    def _compare(self, how: str, a: str, b: str) -> str:
        return self.let(f"fcmp {how} {self.vector.type} {a}, {b}")

    def _both(self, a: str, b: str) -> str:
        return self.let(f"and {self.vector.bool} {a}, {b}")

    def _select(self, condition: str, a: str, b: str) -> str:
        v = self.vector
        return self.let(f"select {v.bool} {condition}, {v.type} {a}, {v.type} {b}")

    def _least(self, a: str, b: str) -> str:
        return self._select(self._compare("olt", b, a), b, a)

    def _most(self, a: str, least: float) -> str:
        b = self.vector.constant(least)
        return self._select(self._compare("ogt", b, a), b, a)
