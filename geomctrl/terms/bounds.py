"""The constants that theorems assume of a robot: m1 <= M(q) <= m2, |C(q, v)| <= k_C |v|, |dg/dq| <= k_g, |g(q)| <= g.

docs/bounds.md says what is proved and how; the modules of `terms.bounding` do it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import choice, count, function, number
from geomctrl.errors import ArgumentError, InertiaError
from geomctrl.mechanism import inertia
from geomctrl.mechanism.mechanism import Mechanism, require_robot

from .bounding import branch_and_bound, inertia_extremes, quantities
from .bounding.closed_form import ClosedForm
from .bounding.domain import Domain, domain_of
from .bounding.extremes import Sampled, extreme, robots_of
from .bounding.reach import Reach
from .bounding.uncertainty import Bodies, bodies_of
from .dynamics import FORMS, Form, coriolis_matrix

Method = Literal["auto", "closed form", "branch and bound"]
METHODS = ("auto", "closed form", "branch and bound")
NAMES = ("m1", "m2", "k_C", "k_g", "g")
SAMPLES = 200
CLOSED, CERTIFIED, BRANCHED = "triangle inequalities", "matrix inequalities", "branch and bound"


class Bound(NamedTuple):
    """A proved bound `value`, the most extreme value found, `sampled`, and where: q (nq,), for k_C also the unit v (nv,).

    `method`: what proved it. `finished`: whether branch and bound came within its tolerance (else its budget ended).
    """

    value: float
    sampled: float
    q: np.ndarray
    method: str
    v: np.ndarray | None = None
    boxes: int = 0
    finished: bool = True

    @property
    def gap(self) -> float:
        """|value - sampled| in terms of |sampled|: the true constant lies between the two."""
        away = abs(self.value - self.sampled)
        return away / abs(self.sampled) if self.sampled else float("inf") if away else 0.0

    def __float__(self) -> float:
        return self.value


class Bounds(NamedTuple):
    """m1 |x|^2 <= x . M(q) x <= m2 |x|^2, |C(q, x) y| <= k_C |x| |y|, |dg/dq| <= k_g, |g(q)| <= g: a `Bound` each.

    In the units of the joints' coordinates (rad and m mixed, where both kinds are).
    """

    robot: str
    form: str
    m1: Bound
    m2: Bound
    k_C: Bound
    k_g: Bound
    g: Bound
    seconds: float

    def __str__(self) -> str:
        words = {
            "m1": "m1 <= lambda(M)",
            "m2": "lambda(M) <= m2",
            "k_C": f"|C(q, v)| <= k_C |v|, {self.form}",
            "k_g": "|dg/dq| <= k_g",
            "g": "|g(q)| <= g",
        }
        width = max(map(len, words.values()))
        lines = [f"{self.robot}, {self.seconds:.2g} s", f"{'':{width}} {'proved':>11} {'found':>11} {'gap':>8}  by"]
        for name in NAMES:
            x: Bound = getattr(self, name)
            by = f"{x.method}, {x.boxes} boxes" if x.boxes else x.method
            by += "" if x.finished else ", not finished"
            lines.append(f"{words[name]:{width}} {x.value:11.5g} {x.sampled:11.5g} {100.0 * x.gap:7.2g}%  {by}")
        return "\n".join(lines)


def bounds(
    robot: Mechanism,
    *,
    box: tuple[ArrayLike, ArrayLike] | None = None,
    parameters: float | tuple[ArrayLike, ArrayLike] | None = None,
    form: Form = "ploen",
    method: Method = "auto",
    tolerance: float = 0.01,
    boxes: int = 2_000_000,
    seconds: float = 300.0,
    progress: Callable[[float], Any] | None = None,
) -> Bounds:
    """Constants m1, m2, k_C, k_g and g that hold at every configuration, and the gap to the extremes found.

    m1 |x|^2 <= x . M(q) x <= m2 |x|^2, |C(q, x) y| <= k_C |x| |y| for the C of `form`, |dg/dq| <= k_g (Kelly, Santibanez
    and Loria 2005, chapter 4; norms are Euclidean and spectral), |g(q)| <= g.

    box: (lower, upper), (nv,) each, infinite where there is no range; default the joints' limits. What slides and is not
    the first joint of its tree needs a finite range. Ranges of joints that turn tighten branch and bound alone.
    parameters: a relative error of every inertial parameter, or (lower, upper), (nbodies, 10) each: the constants hold
    for every choice in the intervals. method: "closed form" for any robot, "branch and bound" for up to three joints with
    one degree of freedom; "auto" turns to it where it can and the gap is larger than `tolerance`, relative. It ends after
    `boxes` boxes or `seconds` a constant, with what is proved by then. progress: a function of the fraction done of each
    constant. The search for extremes is seeded: the same call gives the same result unless time runs out.

    Raises ArgumentError for a joint without a bound, for more joints than branch and bound can do, and InertiaError for
    bodies that can not be. docs/bounds.md: what is proved, and what is not.
    """
    started = time.monotonic()
    require_robot("robot", robot)
    choice("form", form, FORMS)
    choice("method", method, METHODS)
    tolerance = number("tolerance", tolerance, "a number > 0", lambda x: x > 0.0)
    boxes = count("boxes", boxes, 1)
    seconds = number("seconds", seconds, "a number > 0", lambda x: x > 0.0)
    report = (lambda fraction: None) if progress is None else function("progress", progress, "of the fraction done")
    bodies, domain = bodies_of(robot, parameters), domain_of(robot, box)
    _check_bodies(robot, bodies.nominal)
    reach = Reach(robot, domain.lower, domain.upper)
    closed = ClosedForm(robot, bodies, reach)
    why_not = _why_not(robot)
    if method == "branch and bound" and why_not:
        raise ArgumentError(f"method: {why_not}; method='closed form' is for any robot")
    search = _Search(robot, bodies, domain, form)
    found = {name: _closed(name, search, closed) for name in NAMES}
    if method != "closed form" and not why_not:
        for name, bound in found.items():
            if method == "branch and bound" or bound.gap > tolerance:
                found[name] = _branched(name, bound, search, closed, tolerance, boxes, seconds, report)
    return Bounds(robot.name, form, **found, seconds=time.monotonic() - started)


def _check_bodies(robot: Mechanism, parameters: np.ndarray) -> None:
    for pi, name in zip(parameters, robot.body_names):
        if not inertia.is_physical(pi):
            raise InertiaError(f"robot: body {name!r}: {inertia.violation(pi) or 'its pseudo-inertia is not >= 0'}")


def _why_not(robot: Mechanism) -> str | None:
    """Why branch and bound is not for this robot."""
    if robot.nq != robot.nv:
        joint = next(j for j in robot.joints if j.dof > 1)
        return f"branch and bound takes joints with one degree of freedom, {joint.name!r} has {joint.dof}"
    if robot.nv > branch_and_bound.JOINTS:
        boxes = 30.0 ** (robot.nv - 1)  # as measured of robots with two and three joints, for a tolerance of 1 %
        return (
            f"branch and bound takes up to {branch_and_bound.JOINTS} joints, {robot.name!r} has {robot.nv}: it would need"
            f" about {boxes:.0e} boxes"
        )
    return None


class _Search:
    """The most extreme values found, over configurations and corners of the parameters' intervals."""

    def __init__(self, robot: Mechanism, bodies: Bodies, domain: Domain, form: Form):
        self.robot, self.bodies, self.domain, self.form = robot, bodies, domain, form
        self.robots = robots_of(robot, bodies, np.random.default_rng(0))

        def frozen(robot: Mechanism, q: np.ndarray):
            x, y, z = quantities.trilinear_norm(quantities.coriolis_tensor(robot, q[None], form))[1][0]
            return lambda there: float(z @ coriolis_matrix(robot, there, x, form) @ y)

        self.sampled = {
            "m1": Sampled(quantities.least_eigenvalue, -1.0),
            "m2": Sampled(quantities.greatest_eigenvalue),
            "k_C": Sampled(partial(quantities.coriolis_norm, form=form), 1.0, frozen),
            "k_g": Sampled(quantities.gravity_stiffness),
            "g": Sampled(quantities.gravity_norm),
        }

    def extreme(self, name: str, robots: list[Mechanism] | None = None):
        return extreme(robots or self.robots, self.domain, self.sampled[name], SAMPLES, np.random.default_rng(1))

    def velocity(self, robot: Mechanism, q: np.ndarray) -> np.ndarray:
        """The unit v with the largest |C(q, v)|."""
        return quantities.trilinear_norm(quantities.coriolis_tensor(robot, q[None], self.form))[1][0, 0]


def _closed(name: str, search: _Search, closed: ClosedForm) -> Bound:
    robot, bodies, triangles = search.robot, search.bodies, closed.m2()
    method = CLOSED
    if name == "m1":
        value, method = inertia_extremes.least(robot, bodies.lighter, closed.reach, triangles), CERTIFIED
    elif name == "m2":
        value = inertia_extremes.greatest(robot, bodies.heavier, closed.reach, triangles)
        value, method = (value, CERTIFIED) if value < triangles else (triangles, CLOSED)
    elif name == "k_C":
        value = closed.k_C(search.form)
    else:
        value = closed.k_g() if name == "k_g" else closed.g()
    found = search.extreme(name)
    v = search.velocity(robot._with_parameters(found.parameters), found.q) if name == "k_C" else None
    return Bound(value, found.value, found.q, method, v)


def _branched(name, bound: Bound, search: _Search, closed: ClosedForm, tolerance, boxes, seconds, report) -> Bound:
    """The bound by branch and bound, where that is the better one; for uncertain parameters of the heavier or lighter
    robot for M, else of the nominal one and by closed form for what the parameters' deviations add."""
    bodies, robot, sign = search.bodies, search.robot, -1.0 if name == "m1" else 1.0
    spread = bodies.heavier - bodies.nominal
    parameters = {"m1": bodies.lighter, "m2": bodies.heavier}.get(name, bodies.nominal)
    closed = ClosedForm(robot, Bodies(parameters, bodies.heavier, parameters, np.zeros_like(spread)), closed.reach)
    about, addition = robot._with_parameters(parameters), 0.0
    if not bodies.certain and name not in ("m1", "m2"):
        added = ClosedForm(robot, Bodies(np.zeros_like(spread), spread, spread, bodies.deviation), closed.reach)
        addition = {"k_C": lambda: added.k_C(search.form), "k_g": added.k_g, "g": added.g}[name]()
    quantity = {
        "m1": lambda x: x.least_eigenvalue(),
        "m2": lambda x: x.greatest_eigenvalue(),
        "k_C": lambda x: x.coriolis(search.form),
        "k_g": lambda x: x.gravity_stiffness(),
        "g": lambda x: x.gravity_norm(),
    }[name](branch_and_bound.Quantities(about, closed))
    start = search.extreme(name, [about])
    until = time.monotonic() + seconds
    best = sign * start.value
    out = branch_and_bound.searched(quantity, search.domain, best, start.q, tolerance, boxes, until, report)
    value = sign * (out.bound + addition)
    if sign * value >= sign * bound.value:
        return bound._replace( boxes=out.boxes, finished=out.finished)
    found = sign * out.found
    if bodies.certain and sign * found > sign * bound.sampled:
        v = search.velocity(robot, out.q) if name == "k_C" else None
        bound = bound._replace( sampled=found, q=out.q, v=v)
    return bound._replace( value=value, method=BRANCHED, boxes=out.boxes, finished=out.finished)
