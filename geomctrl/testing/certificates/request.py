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
from geomctrl.tracing.branch_and_bound import BranchAndBound, Ends, Progress, no_progress
from geomctrl.tracing.proofs.identities import degree_in
from geomctrl.tracing.proofs.interpreted import enclosed, valued
from geomctrl.tracing.proofs.substitution import substituted

from . import arguments, validity
from .arguments import half_axes, half_widths, share
from .certificate import PROVED, REFUTED, UNDECIDED, Claim, LyapunovCertificate, Violation
from .conditions import NEGLIGIBLE, Conditions
from .equations import equations
from .level_sets import (
    largest_level,
    least_by_energy,
    least_on_boundary,
    lowest_violation,
    max_in_ball,
)
from .quadratic import Bounds, Boxes, lengths
from .running import ProofRunner
from .searching import LargestExcess, search, zero_on_surface
from .sliding import inverse_masses, sliding_bounds
from .task import Task

PHYSICAL_INERTIAS_NOTE = "each body of the true robot has a positive definite inertia that a rigid body can have"
STABLE = "so it is stable; attraction also needs LaSalle's theorem: no other motion stays in {which} = 0"
SLIDING = "V = 1/2 w . M w > 0 where w = e' + Lambda e is not zero, which bounds e"
SLIDING_ADAPTIVE = "V = 1/2 w . M w + 1/2 z . P z > 0 where w = e' + Lambda e or z is not zero, which bounds e"
FULL_TURN = float(np.nextafter(2.0 * np.pi, 7.0))  # rad, rounded up
UNLIKELY_BOXES = 4_000  # budget for an inequality that is probably undecidable
SHELL_FRACTION = 0.1  # fraction of the box beyond which V and V' must not vanish


class CertificateRequest(Conditions):
    """The claims of a certificate, with checked arguments and the equations of the loop."""

    def __init__(
        self, controller: Any, plant: Any, box: Any, outside: Any, parameters: Any, rate: float, offset: float,
        budget: Any,
    ):  # fmt: skip
        claim = controller, plant, box, outside, parameters, rate, offset, 1
        plant, box, self.budget = plant_of("plant", plant, state=False), box_of(box), budget_of(budget)
        self.run = ProofRunner(self.budget, (CertificateRequest, claim), self.statements)
        robot, times, self.seed = plant.robot, box.times, self.budget.seed
        true = arguments.require_autonomous(controller, plant, adaptive=True)
        widths = arguments.estimation_errors(box.z, true)
        if len(true) and outside is not None:
            raise ArgumentError("outside: expected None for an adaptive law, got an ellipsoid; use `rate` and `offset`")
        self.desired = None if box.equilibrium is not None else arguments.moving_reference(controller)
        moving = self.desired is not None
        q_d = np.zeros(robot.nv) if moving else arguments.equilibrium_of(controller, robot, box.equilibrium)
        half, p_lo, p_hi = half_widths("box", (box.q, box.v), robot), *arguments.parameter_intervals(parameters, robot)
        self.ball = None if outside is None else half_axes(outside, robot)
        if self.ball is not None and validity.vacuous(half, self.ball):
            raise ArgumentError(
                f"outside: expected an ellipsoid smaller than the box, got half axes {self.ball.tolist()} and half"
                f" widths {half.tolist()}: the claim would be empty"
            )
        half = np.append(half, widths)
        self.rate, self.offset = (
            number(k, x, "not negative", lambda x: x >= 0.0) for k, x in (("rate", rate), ("offset", offset))
        )
        n, t = robot.nv, ([-np.inf], [np.inf]) if times is None else ([times[0]], [times[1]])
        q_lo, q_hi = np.nextafter(q_d - half[:n], -np.inf), np.nextafter(q_d + half[:n], np.inf)
        p_lo, p_hi = arguments.with_others(box, plant, p_lo, p_hi)
        v = half[n : 2 * n]
        within = {"q": (q_lo, q_hi), "v": (-v, v), "z": (-widths, widths), "p": (p_lo, p_hi), "t": t}
        others = box.disturbance is not None, box.friction is not None
        asked = controller, plant, q_d, times is not None
        self.sliding = self.ball is None and (len(true) > 0 or (self.offset > 0.0 and self.rate > 0.0))
        self.e = equations(*asked, within, moving, *others, self.sliding)
        gain = self.e.gain
        self.sliding = self.sliding and gain is not None
        if self.sliding and gain is not None:  # v = w - Lambda e
            v = (v + np.abs(gain) @ half[:n]) * (1.0 + 1e-9)
            self.e = equations(*asked, {**within, "v": (-v, v)}, moving, *others, True)
            if self.e.gain is None or not np.array_equal(self.e.gain, gain):
                raise ArgumentError("controller: expected w = e' + Lambda e with one Lambda on the whole box")
        self.bounded = times is not None and self.e.timed  # the claim is about these times alone
        if self.e.timed:
            turns = np.zeros(len(self.e.phases)), np.full(len(self.e.phases), FULL_TURN)
            (p_lo, p_hi), (first, last) = (np.append(x, y) for x, y in zip((p_lo, p_hi), turns)), self.e.times
            p_lo, p_hi = np.append(p_lo, first), np.append(p_hi, last)
        self.box = Boxes(-half[None], half[None], p_lo[None], p_hi[None])
        estimates = true if len(true) else None
        validity.compare_with_python(controller, plant, self.e, self.box, self.seed, self.desired, estimates)
        self.scale = lengths(self.e, half)
        self.name, self.robot, self.domain = (
            type(controller).__name__,
            robot,
            arguments.domain_text(half[: 2 * n], robot, parameters),
        )
        self.describe(box, times, moving, widths)
        self.everywhere = self.ball is None and self.offset == 0.0

    def describe(self, box: Any, times: Any, moving: bool, widths: np.ndarray) -> None:
        """Add what else the claim is about to the text of its domain."""
        self.domain += f", at times from {times[0]:g} to {times[1]:g} s" if times is not None and self.bounded else ""
        self.domain = self.domain.replace("the equilibrium", "the reference") if moving else self.domain
        self.domain = self.domain.replace("v within", "w = e' + Lambda e within") if self.sliding else self.domain
        self.domain += f", z within {arguments.numbers_text(widths)} of its true value" if len(widths) else ""
        self.domain += "" if box.disturbance is None else f", disturbances up to {box.disturbance} N m"
        self.domain += (
            "" if box.friction is None else f", every coefficient of friction within {100.0 * box.friction:g} %"
        )

    def certificate(self, claims: list[Claim]) -> LyapunovCertificate:
        if not self.is_zero_at_rest():
            claims.append(self.zero_at_rest())
        if not validity.is_continuous(self.e, self.box):
            claims.append(self.continuous())
        if not validity.exists(self.e, self.box):
            claims.append(self.existing())
        return LyapunovCertificate(self.name, self.domain, claims, self.e.lemmas, self.e.form, self.e)

    def recorded(self, certificate: LyapunovCertificate) -> LyapunovCertificate:
        if certificate.proved:
            record("proved", f"V and V' of {self.name} on {self.robot.name}", boxes=certificate.boxes)
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
        tasks = {statement: Task(self.bounds(-e.value), self.box, None)}
        if e.potential is not None:
            squares: Any = 0.0  # of v, which is zero in the boxes: U does not depend on it
            for k, d in zip(e.x[e.n : 2 * e.n], self.scale[e.n :]):
                squares = squares + e.symbol(k) * e.symbol(k) * (1.0 / d**2)
            lo, hi = self.box.lo.copy(), self.box.hi.copy()
            lo[:, e.n : 2 * e.n] = hi[:, e.n : 2 * e.n] = 0.0
            at_rest = Boxes(lo, hi, self.box.p_lo, self.box.p_hi)
            statement = "V = 1/2 w . M w + U(q) > 0 off the equilibrium: U > 0 for other q, and M is positive definite"
            tasks[statement] = Task(self.bounds(-(e.potential + squares)), at_rest, None)
        return tasks

    def positive(self) -> Claim:
        """V > 0 for all parameters; otherwise, if M is a term of V, for robots with a positive definite M."""
        if self.sliding:
            return Claim(SLIDING_ADAPTIVE if self.e.weights.size else SLIDING, PROVED, assumes=self.positive_inertias())
        e, box, max_boxes = self.e, self.box, self.budget.boxes
        (statement, task), *others = self.positive_tasks().items()
        size, shell = self.size(task.bounds), SHELL_FRACTION * box.hi[0]
        near = None
        for robots in (Boxes(box.lo, box.hi, *self.model(box)), box):
            bad = search(e, -e.loop.value, robots, shell, 0.0, self.seed, size)
            if bad.excess < -NEGLIGIBLE * size:
                continue
            if robots is box and others:  # the counterexample is usually not a physical robot
                break
            wrong = self.wrong(-e.loop.value, e.value, bad, 0.0)
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
        angles = [*e.angles, *[None] * (len(e.x) - e.n)]
        felt = [bool(degree_in(e.graph, F, {k, k if x is None else x})) for k, x in zip(e.x, angles)]
        if all(felt) or not any(felt):
            return None
        for k, origin, d, feels in zip(e.x, [*e.q_d.tolist(), *[0.0] * (len(e.x) - e.n)], self.scale, felt):
            if not feels:
                off = e.symbol(k) - origin
                F = F - off * off * (1.0 / d**2)
        letter = "w" if self.sliding else "v"
        groups = [("q", range(e.n)), (letter, range(e.n, 2 * e.n)), ("z", range(2 * e.n, len(e.x)))]
        names = ", ".join(f"{name}[{i - group[0]}]" for name, group in groups for i in group if felt[i])
        which = letter if [i for i, feels in enumerate(felt) if feels] == list(groups[1][1]) else names
        proof = self.proof(f"V' <= 0, and V' < 0 wherever {which} is not zero", Task(self.bounds(F), box, None))
        if proof.status == PROVED:
            proof.needs = STABLE.format(which=which)
        return proof

    def decrease(self) -> tuple[Task, str]:
        terms = [f"- {self.rate:g} V"] * (self.rate > 0) + [f"{self.offset:g}"] * (self.offset > 0)
        statement = "V' < " + (" + ".join(terms) or "0")
        statement += (
            " outside the ellipsoid" if self.ball is not None else " off the equilibrium" if self.everywhere else ""
        )
        return Task(self.bounds(self.e.plus(self.rate)), self.box, self.ball, self.offset), statement

    def proof(
        self, statement: str, task: Task, max_boxes: int | None = None, progress: Progress = no_progress
    ) -> Claim:
        outcome = self.run(statement, task, max_boxes, progress)
        return Claim(statement, PROVED if outcome.proved else UNDECIDED, outcome, task)

    def attempted(self, level: float) -> BranchAndBound:
        """The outcome of the decrease of V where V <= level."""
        task, statement = self.below(*self.decrease(), level)
        return self.run(statement, task, level=level)

    def statements(self, level: float | None) -> dict[str, Task]:
        """The inequalities that other processes derive by their statement."""
        task, statement = self.decrease()
        if level is not None:
            task, statement = self.below(task, statement, level)
            return {statement: task}
        return {**self.positive_tasks(), statement: task}

    def state(self, x: np.ndarray, p: np.ndarray, excess: float) -> Violation:
        e = self.e
        t = float(p[-1]) if e.timed else None
        q, v = (e.q_d, 0.0) if self.desired is None else self.desired(0.0 if t is None else t)[:2]
        z = None
        if len(x) > 2 * e.n:
            z = x[2 * e.n :] + valued(e.graph, e.loop.extra["estimated"], e.at(x[None], p[None]), 1)[0]
        return Violation(q + x[: e.n], v + e.velocities(x), p[e.robots].reshape(-1, 10), excess, t, z)

    def levels(self, certificate: LyapunovCertificate) -> None:
        e, box = self.e, self.box
        squares = inverse_masses(e, box, self.robot) if self.sliding or e.potential is not None else None
        if self.sliding and squares is not None:
            bounds = certificate.sliding = sliding_bounds(e, squares)
            if bounds is not None:
                certificate.level, ends = bounds.level(self.box.hi[0]), self.ends_in()
                certificate.ends_in = ends if certificate.proved and ends < certificate.level else None
            return
        if squares is not None and np.isfinite(squares).all():
            level = least_by_energy(e, box, self.scale, squares)
        else:
            level = least_on_boundary(self.bounds(-e.value), box)
        certificate.level, ends = level or None, self.ends_in()
        certificate.ends_in = ends if ends < level else None

    def ends_in(self) -> float:
        """The level below which all solutions end that remain where the inequality holds."""
        ends = 0.0 if self.ball is None else max_in_ball(self.bounds(self.e.value), self.box, self.ball)
        if self.offset > 0.0:
            ends = max(ends, self.offset / self.rate if self.rate > 0.0 else np.inf)
        return ends

    def within_level(self, certificate: LyapunovCertificate) -> list[Ends]:
        """Add the claim with the largest level below which the inequality is proved; returns what higher ones left."""
        e, (task, statement) = self.e, self.decrease()
        certificate.sampled = lowest_violation(e, self.box, self.ball, self.rate, self.offset, self.seed)
        bound = min(certificate.sampled, least_on_boundary(self.bounds(-e.value), self.box))
        level, outcomes = largest_level(bound, self.attempted) if bound > 0.0 else (bound, [])
        task, statement = self.below(task, statement, level)
        outcome = outcomes[-1] if outcomes else None
        is_proved = outcome is not None and outcome.proved
        certificate.claims.append(Claim(statement, PROVED if is_proved else UNDECIDED, outcome, task))
        if is_proved:
            certificate.level = level
            certificate.ends_in = ends if (ends := self.ends_in()) < level else None
        return [outcomes[0].left] if outcomes else []

    def below(self, task: Task, statement: str, level: float) -> tuple[Task, str]:
        """The same task restricted to V <= level."""
        above = Bounds(self.e, -self.e.value, self.scale)
        return replace(task, above=above, level=level), f"{statement} where V <= {level!r}"


def _middle(box: Boxes) -> tuple[np.ndarray, np.ndarray]:
    middle = 0.5 * (box.p_lo + box.p_hi)
    return middle, middle
