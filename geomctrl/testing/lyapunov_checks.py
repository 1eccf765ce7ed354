"""`Checks`: the properties of a Lyapunov function at one state; each check raises Counterexample for a violation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np

from geomctrl.control.rebuilding import with_arguments

from .counterexample import MEASURED, Counterexample, paste
from .domain import Domain, State
from .lyapunov_rate import LyapunovAt, LyapunovClaim
from .search import Repeatable
from .shrinking import literal, shrunk

NEGLIGIBLE = 1e-12  # relative to typical V: smaller values are zero
POSITIVE = 1e-10  # relative to |rate| + V / s: larger rates are positive
V_TOLERANCE = 1e-6  # relative to typical V: smaller differences are rounding
MIN_POSITIVE_DISTANCE = 0.05  # spreads: distance from the equilibrium beyond which V must be positive
MAX_RATE_ERROR = 1e-2  # relative to |rate| + V / s: with a larger error dV/dt is useless

PARTS = {"friction": None, "actuators": (), "f_ext": None, "stops": None}  # of a plant, and a plant without them

Check = Callable[[State], None]


class Checks:
    """The checks for one controller, plant and domain. typical: V at random states about the equilibrium."""

    def __init__(self, promise: LyapunovClaim, domain: Domain, rtol: float, bound: bool):
        self.promise, self.domain, self.rtol, self.bound = promise, domain, rtol, bound
        self.typical = 0.0
        self.repeatable = Repeatable(promise.controller, promise.plant)

    def positive(self, x: State) -> None:
        V = self.promise.value(x)
        if not 0.0 < V < np.inf and (not np.isfinite(V) or self.distance(x) >= MIN_POSITIVE_DISTANCE):
            raise Counterexample(f"V is not positive: V = {V:.9g}", x, "definite")

    def positive_alone(self, name: str, tiny: float) -> Check:
        """Check that V exceeds `tiny` where only the part `name` differs from the equilibrium."""

        def check(x: State) -> None:
            point = self.domain.point(x)
            alone = self.domain.state(self.domain.only(point, name))
            same = all(_same(a, b, 1e-9) for a, b in zip(alone[1:], x[1:]))
            V = self.promise.value(x)
            if same and self.distance(x) >= MIN_POSITIVE_DISTANCE and not tiny < V < np.inf:
                raise Counterexample(
                    f"V is not positive where only {name} differs from the equilibrium: V = {V:.9g}",
                    x,
                    f"definite in {name}",
                )

        return check

    def zero_at_rest(self, tiny: float) -> Check:
        """Check that V is zero at the equilibrium."""

        def check(x: State) -> None:
            rest = self.domain.rest(x.t)
            if all(_same(a, b) for a, b in zip(rest[1:], x[1:])):
                V = self.promise.value(x)
                if not abs(V) <= tiny:
                    raise Counterexample(
                        f"V is not zero at the equilibrium (set by `Region.equilibrium`): V = {V:.9g}",
                        x,
                        "zero",
                    )

        return check

    def not_growing(self, x: State) -> None:
        """Check that the promised rate is not positive and V is finite."""
        V, rate = self.promise.at(x)
        if not np.isfinite(V):
            raise Counterexample(f"V is not finite: V = {V:.9g}", x, "definite")
        if not rate <= POSITIVE * self.size(V, rate):
            raise Counterexample(f"the promised rate is positive: {rate:.9g}", x, "rate")

    def check_promised_rate(self, x: State) -> None:
        """Check that dV/dt equals the promised rate, or with `bound` is at most that."""
        rates = self.promise.checked_rate(x, 1e-3 * self.rtol)
        size = self.size(rates.value, rates.promised)
        numbers = f"dV/dt = {rates.actual:.9g}, promised {rates.promised:.9g}"
        if not rates.error <= MAX_RATE_ERROR * size:
            message = (
                f"dV/dt can not be measured: finite differences do not converge, {numbers}, error {rates.error:.3g}"
            )
            raise Counterexample(message, x, "smooth")
        if not self.excess(rates) <= self.rtol * size + rates.error:
            raise Counterexample(f"V does not change as promised: {numbers}", x, "derivative")

    def excess(self, rates: LyapunovAt) -> float:
        """Amount by which dV/dt violates the promise."""
        return rates.excess if self.bound else abs(rates.excess)

    def size(self, V: float, rate: float) -> float:
        """Reference for errors of dV/dt: |rate| + V / s, plus a fraction of typical V near the equilibrium."""
        return abs(rate) + abs(V) + V_TOLERANCE * self.typical

    def distance(self, x: State) -> float:
        """Distance of x from the equilibrium in spreads, by its largest coordinate; infinite if z was drawn."""
        domain = self.domain
        if domain.draw is not None and not _same(x.z, domain.rest(x.t).z):
            return np.inf
        free = domain.free[domain.free > 0]
        return float(np.abs(domain.point(x).x[free] / domain.scale[free]).max(initial=0.0))

    def hold(self, check: Check, x: State, source: str = "sampled", shrink: bool = True) -> None:
        """Raise the simplest Counterexample to `check` near x, if x violates it."""
        try:
            check(x)
        except Counterexample as error:
            self.repeatable.check(x, self.domain.rest(x.t))
            raise self.simplest(error, check, source, shrink) from None

    def simplest(self, first: Counterexample, check: Check, source: str, shrink: bool = True) -> Counterexample:
        worst, code = first, literal(first.state)

        def fails(x: State) -> bool:
            nonlocal worst
            try:
                check(x)
            except Counterexample as error:
                if error.promise == first.promise:
                    worst = error
                    return True
            except Exception:  # a law may raise for a simplified state it was not designed for
                return False
            return False

        if shrink and self.domain.contains(first.state):
            simple = shrunk(fails, first.state, self.domain)
            fails(simple.state)
            code = simple.code
        script = paste(self.promise.plant, code, MEASURED)
        hint = self.hint(worst.state) if worst.promise == "derivative" else ""
        return Counterexample(worst.message, worst.state, worst.promise, script, source, hint)

    def hint(self, x: State) -> str:
        """Say what else explains that dV/dt is not the promised rate at x; "" if nothing is found."""
        hints, plant = [], self.promise.plant
        rates = self.promise.along(x)
        if not self.bound and rates.actual < rates.promised:
            hints.append("V falls faster than promised here: if the proof says V' <= rate, pass bound=True.")
        for part, absent in PARTS.items():
            if not getattr(plant, part):
                continue
            with contextlib.suppress(Exception):  # a law may raise for a plant that it was not designed for
                bare = with_arguments(plant, {part: absent})
                alone = Checks(LyapunovClaim(self.promise.controller, bare), self.domain, self.rtol, self.bound)
                alone.typical = self.typical
                alone.check_promised_rate(x)
                hints.append(f"Without the plant's {part} the claim holds here: Plant(..., {part}={absent}).")
        return "\n".join(hints)


def _same(a: np.ndarray | None, b: np.ndarray | None, allowed: float = 0.0) -> bool:
    return a is None or b is None or bool(np.abs(a - b).max(initial=0.0) <= allowed)
