"""`CertificateRequest`: the claims of a certificate, and their proofs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from geomctrl.arguments import number
from geomctrl.control.plant import plant_of
from geomctrl.errors import ArgumentError
from geomctrl.testing.evidence import record
from geomctrl.testing.settings import box_of, budget_of
from geomctrl.tracing.proofs.identities import degree_in
from geomctrl.tracing.proofs.interpreted import enclosed, valued
from geomctrl.tracing.proofs.substitution import substituted
from geomctrl.tracing.symbols import add, mul, neg, sub

from . import arguments, validity
from .arguments import half_axes, half_widths, share
from .branching import Progress, Task, no_progress, prove
from .certificate import PROVED, REFUTED, UNDECIDED, Claim, LyapunovCertificate, Violation
from .equations import equations
from .level_sets import (
    SHARES,
    largest_level,
    least_on_boundary,
    lower_value,
    lowest_violation,
    max_in_ball,
)
from .quadratic import Bounds, Boxes, lengths
from .searching import LargestExcess, search, zero_on_surface
from .sliding import sliding_bounds

PHYSICAL_INERTIAS_NOTE = "each body of the true robot has a positive definite inertia that a rigid body can have"
STABLE = "so it is stable; attraction also needs LaSalle's theorem: no other motion stays in {which} = 0"
SLIDING = "V = 1/2 w . M w > 0 where w = e' + Lambda e is not zero, which bounds e"
FULL_TURN = float(np.nextafter(2.0 * np.pi, 7.0))  # rad, rounded up
NEGLIGIBLE = 1e-12  # relative to V or V' at a corner of the box
UNLIKELY_BOXES = 4_000  # budget for an inequality that is probably undecidable
SHELL_FRACTION = 0.1  # fraction of the box beyond which V and V' must not vanish


class CertificateRequest:
    """The claims of a certificate, with checked arguments and the equations of the loop."""

    def __init__(
        self, controller: Any, plant: Any, box: Any, outside: Any, parameters: Any, rate: float, offset: float,
        budget: Any,
    ):  # fmt: skip
        plant, box, self.budget = plant_of("plant", plant, state=False), box_of(box), budget_of(budget)
        robot, times, self.seed = plant.robot, box.times, self.budget.seed
        arguments.require_autonomous(controller, plant)
        self.desired = None if box.equilibrium is not None else arguments.moving_reference(controller)
        moving = self.desired is not None
        q_d = np.zeros(robot.nv) if moving else arguments.equilibrium_of(controller, robot, box.equilibrium)
        half, p_lo, p_hi = half_widths("box", (box.q, box.v), robot), *arguments.parameter_intervals(parameters, robot)
        self.ball = None if outside is None else half_axes(outside, robot)
        if self.ball is not None and validity.vacuous(half, self.ball):
            raise ArgumentError(
                f"outside: expected a ball smaller than the box, got half axes {self.ball.tolist()} and half widths"
                f" {half.tolist()}: the claim would be empty"
            )
        self.rate, self.offset = (
            number(k, x, "not negative", lambda x: x >= 0.0) for k, x in (("rate", rate), ("offset", offset))
        )
        n, t = robot.nv, ([-np.inf], [np.inf]) if times is None else ([times[0]], [times[1]])
        q_lo, q_hi = np.nextafter(q_d - half[:n], -np.inf), np.nextafter(q_d + half[:n], np.inf)
        p_lo, p_hi = arguments.with_others(box, plant, p_lo, p_hi)
        within = {"q": (q_lo, q_hi), "v": (-half[n:], half[n:]), "p": (p_lo, p_hi), "t": t}
        others = box.disturbance is not None, box.friction is not None
        asked = controller, plant, q_d, times is not None
        self.sliding = self.ball is None and self.offset > 0.0 and self.rate > 0.0
        self.e = equations(*asked, within, moving, *others, self.sliding)
        self.sliding = self.sliding and self.e.gain is not None
        if self.sliding:  # v = w - Lambda e
            v = (half[n:] + np.abs(self.e.gain) @ half[:n]) * (1.0 + 1e-9)
            gain, self.e = self.e.gain, equations(*asked, {**within, "v": (-v, v)}, moving, *others, True)
            if not np.array_equal(self.e.gain, gain):
                raise ArgumentError("controller: expected w = e' + Lambda e with one Lambda on the whole box")
        self.bounded = times is not None and self.e.timed  # the claim is about these times alone
        if self.e.timed:
            turns = np.zeros(len(self.e.phases)), np.full(len(self.e.phases), FULL_TURN)
            (p_lo, p_hi), (first, last) = (np.append(x, y) for x, y in zip((p_lo, p_hi), turns)), self.e.times
            p_lo, p_hi = np.append(p_lo, first), np.append(p_hi, last)
        self.box = Boxes(-half[None], half[None], p_lo[None], p_hi[None])
        validity.compare_with_python(controller, plant, self.e, self.box, self.seed, self.desired)
        self.scale = lengths(self.e, half)
        self.name, self.robot, self.domain = (
            type(controller).__name__,
            robot.name,
            arguments.domain_text(half, robot, parameters),
        )
        self.domain += f", at times from {times[0]:g} to {times[1]:g} s" if times is not None and self.bounded else ""
        self.domain = self.domain.replace("the equilibrium", "the reference") if moving else self.domain
        self.domain = self.domain.replace("v within", "w = e' + Lambda e within") if self.sliding else self.domain
        self.domain += "" if box.disturbance is None else f", disturbances up to {box.disturbance} N m"
        self.domain += (
            "" if box.friction is None else f", every coefficient of friction within {100.0 * box.friction:g} %"
        )
        self.everywhere = self.ball is None and self.offset == 0.0

    def certificate(self, claims: list[Claim]) -> LyapunovCertificate:
        if not self.is_zero_at_rest():
            claims.append(self.zero_at_rest())
        if not validity.is_continuous(self.e, self.box):
            claims.append(self.continuous())
        if not validity.exists(self.e, self.box):
            claims.append(self.existing())
        return LyapunovCertificate(self.name, self.domain, claims, self.e.lemmas, self.e.form, self.e)

    def is_zero_at_rest(self) -> bool:
        """Whether V is shown to be zero at the equilibrium.

        This is required for all robots, or only for the model if the claim has `outside` or `offset`.
        """
        p = (self.box.p_lo, self.box.p_hi) if self.everywhere else self.model(self.box)
        return validity.vanishes(self.e, self.e.loop.value, *p)

    def zero_at_rest(self) -> Claim:
        """The refuted or undecided claim that V is zero at the equilibrium, without which V > 0 proves nothing."""
        e, (p, _) = self.e, self.model(self.box)
        low, high = (float(x[0, 0]) for x in validity.at_rest(e, [e.loop.value], p, p))
        least = NEGLIGIBLE * self.size(self.bounds(e.value))
        statement, rest = "V is zero at the equilibrium", self.state(np.zeros(2 * e.n), p[0], max(low, -high))
        if low > least or high < -least:
            return Claim(f"{statement}: it is {low:.6g}", REFUTED, counterexample=rest)
        return Claim(statement, UNDECIDED, nearly=f"V lies between {low:.3g} and {high:.3g} there")

    def moving_at_rest(self) -> Claim | None:
        """The refuted claim of V' < 0 if the robot accelerates at the set point, where V is zero and grows."""
        if not self.everywhere:
            return None
        e, (p, _) = self.e, self.model(self.box)
        low, high = (x[0] for x in validity.at_rest(e, e.loop.field[e.n : 2 * e.n], p, p))
        away = np.maximum(low, -high)  # the smallest acceleration that the intervals allow
        corner = e.at(self.box.hi, _middle(self.box)[0])
        size = np.nan_to_num(np.abs(valued(e.graph, e.loop.field[e.n : 2 * e.n], corner, 1)[0]))
        i = int(np.argmax(np.nan_to_num(away, nan=-np.inf) - NEGLIGIBLE * size))
        if not away[i] > NEGLIGIBLE * size[i]:
            return None
        vdot, (_, statement) = 0.5 * (low[i] + high[i]), self.decrease()
        statement += f": the set point is no equilibrium, vdot[{i}] = {vdot:.6g} there"
        return Claim(statement, REFUTED, counterexample=self.state(np.zeros(2 * e.n), p[0], float(away[i])))

    def continuous(self) -> Claim:
        """The claim that V is continuous, for a V whose branches are not shown to agree."""
        jump = validity.jump_of(self.e, self.box, self.seed)
        if jump is None:
            return Claim("V is continuous", UNDECIDED)
        here, there = jump.values
        state = self.state(jump.x, jump.p, abs(here - there))
        return Claim(f"V is continuous: it jumps from {here:.6g} to {there:.6g}", REFUTED, counterexample=state)

    def existing(self) -> Claim:
        """The claim that the loop is defined on the whole box, if that is not proved otherwise."""
        missing, statement = validity.undefined_at(self.e, self.box, self.seed), "law and plant have a value"
        if missing is None:
            return Claim(statement, UNDECIDED)
        return Claim(statement, REFUTED, counterexample=self.state(*missing, np.nan))

    def recorded(self, certificate: LyapunovCertificate) -> LyapunovCertificate:
        if certificate.proved:
            record("proved", f"V and V' of {self.name} on {self.robot}", boxes=certificate.boxes)
        return certificate

    def bounds(self, F: Any) -> Bounds:
        return Bounds(self.e, F, self.scale)

    def size(self, bounds: Bounds) -> float:
        """|F| of the nominal model at a corner of the box; 0 if it is undefined there."""
        hi = self.box.hi
        size = abs(float(bounds.values(Boxes(hi, hi, *_middle(self.box)))[1][0]))
        return size if np.isfinite(size) else 0.0

    def model(self, box: Boxes) -> tuple[np.ndarray, np.ndarray]:
        """The nominal parameters, and the times of the box."""
        (lo, hi), end = _middle(box), self.e.robots.stop
        return np.append(lo[:, :end], box.p_lo[:, end:], 1), np.append(hi[:, :end], box.p_hi[:, end:], 1)

    def positive_tasks(self) -> dict[str, Task]:
        """Inequalities by statement, each of which implies V > 0: for V itself, or U(q) > 0 if M is a term of V."""
        e, statement = self.e, "V > 0 off the equilibrium"
        if self.sliding:
            return {}
        tasks = {statement: Task(self.bounds(neg(e.value)), self.box, None)}
        if e.potential is not None:
            squares: Any = 0.0
            for k, d in zip(e.x[e.n :], self.scale[e.n :]):
                squares = add(squares, mul(mul(e.symbol(k), e.symbol(k)), 1.0 / d**2))
            statement = "V = 1/2 w . M w + U(q) > 0 off the equilibrium: U > 0 for other q, and M is positive definite"
            tasks[statement] = Task(self.bounds(neg(add(e.potential, squares))), self.box, None)
        return tasks

    def positive(self) -> Claim:
        """V > 0 for all parameters; otherwise, if M is a term of V, for robots with a positive definite M."""
        if self.sliding:
            return Claim(SLIDING, PROVED, assumes=self.positive_inertias())
        e, box, max_boxes = self.e, self.box, self.budget.boxes
        (statement, task), *others = self.positive_tasks().items()
        size, shell = self.size(task.bounds), SHELL_FRACTION * box.hi[0]
        near = None
        for robots in (Boxes(box.lo, box.hi, *self.model(box)), box):
            bad = search(e, neg(e.loop.value), robots, shell, 0.0, self.seed, size)
            if bad.excess < -NEGLIGIBLE * size:
                continue
            if robots is box and others:  # the counterexample is usually not a physical robot
                break
            wrong = self.wrong(neg(e.loop.value), e.value, bad, 0.0)
            if wrong is not None:
                return Claim(statement, REFUTED, counterexample=wrong)
            near, max_boxes = bad, min(max_boxes, UNLIKELY_BOXES)
        else:
            claim = self.proof(statement, task, min(max_boxes, UNLIKELY_BOXES) if others else max_boxes)
            if claim.status == PROVED or not others:
                claim.nearly = self.nearly("V", claim, near)
                return claim
        claim = self.proof(*others[0])
        claim.assumes = self.positive_inertias()
        return claim

    def positive_inertias(self) -> str:
        """The assumption without which M may be indefinite for some parameters; empty if it is not needed."""
        p = (x[:, self.e.robots].reshape(-1, 10) for x in (self.box.p_lo, self.box.p_hi))
        return "" if share(*p) > 0.0 else PHYSICAL_INERTIAS_NOTE

    def decreasing(self, progress: Progress) -> Claim:
        task, statement = self.decrease()
        size = self.size(task.bounds) if self.everywhere else 0.0
        away = SHELL_FRACTION * self.box.hi[0] if self.everywhere else self.ball
        F = self.e.along_vector_field(self.rate)
        bad = search(self.e, F, self.box, away, self.offset, self.seed, size)
        near = bad if self.everywhere and bad.excess >= -NEGLIGIBLE * size else None
        some = self.semidefinite() if near is not None and bad.excess <= NEGLIGIBLE * size else None
        if some is not None and some.status == PROVED:
            return some
        if near is not None or bad.excess > 0.0:
            wrong = self.wrong(F, self.e.plus(self.rate), bad, self.offset)
            if wrong is not None:
                return Claim(statement, REFUTED, counterexample=wrong)
        claim = some or self.proof(statement, task, progress=progress)
        claim.nearly = self.nearly("V'", claim, near)
        return claim

    def wrong(self, F: Any, form: Any, bad: LargestExcess, allowed: float) -> Violation | None:
        """A verified violation of F < allowed; None if rounding may explain the state found.

        It is verified by intervals at that state, or because `form`, which is equivalent to F, is identically zero on a
        surface through the box.
        """
        e = self.e
        point = {k: (x, x) for k, x in e.at(bad.x[None], bad.p[None]).items()}
        low = float(enclosed(e.graph, [F], point, 1)[0][0, 0])
        if low >= allowed:
            return self.state(bad.x, bad.p, low - allowed)
        x = zero_on_surface(e, form, bad.x, self.box.hi[0]) if self.everywhere and not e.places else None
        return None if x is None else self.state(x, bad.p, 0.0)

    def nearly(self, name: str, claim: Claim, near: LargestExcess | None) -> str:
        if near is None or claim.status == PROVED:
            return ""
        return f"{name} is zero to rounding at {self.state(near.x, near.p, near.excess)}"

    def semidefinite(self) -> Claim | None:
        """V' <= 0, and V' < 0 unless the coordinates in V' are zero; None if V' depends on all coordinates.

        It follows from V' minus the squares of the other coordinates being negative except at the equilibrium.
        """
        e, box, F, robots = self.e, self.box, self.e.plus(self.rate), self.e.robots
        if all((p[0, robots] == e.model[robots]).all() for p in (box.p_lo, box.p_hi)):
            (F,) = substituted(e.graph, [F], dict.fromkeys(e.errors[robots], 0.0))
        angles = [*e.angles, *[None] * e.n]
        felt = [bool(degree_in(e.graph, F, {k, k if x is None else x})) for k, x in zip(e.x, angles)]
        if all(felt) or not any(felt):
            return None
        for k, origin, d, feels in zip(e.x, [*e.q_d.tolist(), *[0.0] * e.n], self.scale, felt):
            if not feels:
                off = sub(e.symbol(k), origin)
                F = sub(F, mul(mul(off, off), 1.0 / d**2))
        names = ", ".join(f"{'qv'[i >= e.n]}[{i % e.n}]" for i, feels in enumerate(felt) if feels)
        which = "v" if felt == [False] * e.n + [True] * e.n else names
        proof = self.proof(f"V' <= 0, and V' < 0 wherever {which} is not zero", Task(self.bounds(F), box, None))
        if proof.status == PROVED:
            proof.needs = STABLE.format(which=which)
        return proof

    def decrease(self) -> tuple[Task, str]:
        terms = [f"- {self.rate:g} V"] * (self.rate > 0) + [f"{self.offset:g}"] * (self.offset > 0)
        statement = "V' < " + (" + ".join(terms) or "0")
        statement += " outside the ball" if self.ball is not None else " off the equilibrium" if self.everywhere else ""
        return Task(self.bounds(self.e.plus(self.rate)), self.box, self.ball, self.offset), statement

    def proof(
        self, statement: str, task: Task, max_boxes: int | None = None, progress: Progress = no_progress
    ) -> Claim:
        outcome = prove(task, self.budget.boxes if max_boxes is None else max_boxes, self.budget.seconds, progress)
        return Claim(statement, PROVED if outcome.proved else UNDECIDED, outcome, task)

    def state(self, x: np.ndarray, p: np.ndarray, excess: float) -> Violation:
        e = self.e
        t = float(p[-1]) if e.timed else None
        q, v = (e.q_d, 0.0) if self.desired is None else self.desired(0.0 if t is None else t)[:2]
        return Violation(q + x[: e.n], v + e.velocities(x), p[e.robots].reshape(-1, 10), excess, t)

    def levels(self, certificate: LyapunovCertificate) -> None:
        if self.sliding:
            bounds = certificate.sliding = sliding_bounds(self.e, self.box)
            if bounds is not None:
                certificate.level, ends = bounds.level(self.box.hi[0]), self.ends_in()
                certificate.ends_in = ends if ends < certificate.level else None
            return
        level = least_on_boundary(self.bounds(neg(lower_value(self.e, self.box))), self.box)
        certificate.level, ends = level or None, self.ends_in()
        certificate.ends_in = ends if ends < level else None

    def ends_in(self) -> float:
        """The level below which all solutions end that remain where the inequality holds."""
        ends = 0.0 if self.ball is None else max_in_ball(self.bounds(self.e.value), self.box, self.ball)
        if self.offset > 0.0:
            ends = max(ends, self.offset / self.rate if self.rate > 0.0 else np.inf)
        return ends

    def within_level(self, certificate: LyapunovCertificate) -> None:
        """Add the claim with the largest level below which the inequality is proved."""
        e, (task, statement) = self.e, self.decrease()
        certificate.sampled = lowest_violation(e, self.box, self.ball, self.rate, self.offset, self.seed)
        bound = min(certificate.sampled, least_on_boundary(self.bounds(neg(e.value)), self.box))
        proved = largest_level(e, task, self.scale, bound, self.budget) if bound > 0.0 else None
        if proved is None:
            certificate.claims.append(Claim(f"{statement} where V <= {SHARES[-1] * bound:.6g}", UNDECIDED, None, task))
            return
        certificate.level, _, outcome = proved
        task, statement = self.below(task, statement, certificate.level)
        certificate.claims.append(Claim(statement, PROVED, outcome, task))
        certificate.ends_in = ends if (ends := self.ends_in()) < certificate.level else None

    def below(self, task: Task, statement: str, level: float) -> tuple[Task, str]:
        """The same task restricted to V <= level."""
        above = Bounds(self.e, neg(self.e.value), self.scale)
        return replace(task, above=above, level=level), f"{statement} where V <= {level!r}"


def _middle(box: Boxes) -> tuple[np.ndarray, np.ndarray]:
    middle = 0.5 * (box.p_lo + box.p_hi)
    return middle, middle
