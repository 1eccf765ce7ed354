"""Constants that stability theorems need: m1 <= M(q) <= m2, |C(q, v)| <= k_C |v|, |dg/dq| <= k_g, |g(q)| <= g.

docs/how-to/bounds.md explains the statements and their proofs; the modules of `terms.bounding` implement them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import choice, count, function, number
from geomctrl.errors import ArgumentError, InertiaError
from geomctrl.mechanism import inertia
from geomctrl.mechanism.mechanism import Mechanism, require_free_joints, require_robot
from geomctrl.terms.bounding.quantities import Bodies, Domain, Extreme, Measure, bodies_of, domain_of, extreme, measures
from geomctrl.tracing.branch_and_bound import BranchAndBound

from .bounding import inertia_extremes
from .bounding.box_bounds import JOINTS, BoundClaim, Budget, quantity_of
from .bounding.closed_form import ClosedForm
from .bounding.reach import Reach
from .dynamics import FORMS, Form

Method = Literal["auto", "closed form", "branch and bound"]
METHODS = ("auto", "closed form", "branch and bound")
NAMES = ("m1", "m2", "k_C", "k_g", "g")
NEGLIGIBLE = 1e-10  # relative to the size of the terms that make up a constant
CLOSED, CERTIFIED, BRANCHED = "triangle inequalities", "matrix inequalities", "branch and bound"


class Bound(NamedTuple):
    """A proved bound and the most extreme value that was found.

    Attributes
    ----------
    value : float
        The proved bound.
    sampled : float
        The most extreme value found.
    q : ndarray, shape (nq,)
        Where it was found; for k_C also the unit velocity `v` (nv,).
    method : str
        The method of the proof.
    finished : bool
        Whether branch and bound reached its tolerance; otherwise its budget ended.
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
        """|value - sampled| relative to |sampled|: the true constant is between the two."""
        away = abs(self.value - self.sampled)
        return away / abs(self.sampled) if self.sampled else float("inf") if away else 0.0

    def __float__(self) -> float:
        return self.value


class Bounds(NamedTuple):
    """m1 |x|^2 <= x . M(q) x <= m2 |x|^2, |C(q, x) y| <= k_C |x| |y|, |dg/dq| <= k_g, |g(q)| <= g: a `Bound` each.

    Units are those of the joint coordinates (rad and m are mixed if both kinds exist).
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
        parts = {
            "m1": "m1 <= lambda(M)",
            "m2": "lambda(M) <= m2",
            "k_C": f"|C(q, v)| <= k_C |v|, {self.form}",
            "k_g": "|dg/dq| <= k_g",
            "g": "|g(q)| <= g",
        }
        width = max(map(len, parts.values()))
        lines = [f"{self.robot}, {self.seconds:.2g} s", f"{'':{width}} {'proved':>11} {'found':>11} {'gap':>8}  by"]
        for name in NAMES:
            x: Bound = getattr(self, name)
            by = f"{x.method}, {x.boxes} boxes" if x.boxes else x.method
            by += "" if x.finished else ", not finished"
            proved = _rounded(x.value, ROUND_FLOOR if name == "m1" else ROUND_CEILING)
            lines.append(f"{parts[name]:{width}} {proved:11g} {x.sampled:11.5g} {100.0 * x.gap:7.2g}%  {by}")
        return "\n".join(lines)


def _rounded(x: float, away: str) -> float:
    """Round a bound to five digits so that it remains a bound."""
    return float(Context(prec=5, rounding=away).create_decimal(repr(float(x))))


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
    """Compute constants m1, m2, k_C, k_g and g that hold at every configuration.

    They satisfy m1 |x|^2 <= x . M(q) x <= m2 |x|^2, |C(q, x) y| <= k_C |x| |y|, |dg/dq| <= k_g and |g(q)| <= g.

    Parameters
    ----------
    box : tuple of array_like, shape (nv,) each, optional
        Lower and upper end of the coordinates, infinite if there is none. Default: the joint limits. A prismatic joint
        that is not the first joint of its tree needs a finite range. Ranges of revolute joints affect only branch and
        bound.
    parameters : float or tuple of array_like, shape (nbodies, 10) each, optional
        Relative error of every inertial parameter, or lower and upper bounds. The constants hold for all parameters in
        these intervals. Default: the robot's parameters.
    form : {"ploen", "christoffel", "adjoint"}
        The Coriolis matrix, see `terms`. Default "ploen".
    method : {"auto", "closed form", "branch and bound"}
        "closed form" works for any robot, "branch and bound" for up to three joints with one degree of freedom. "auto"
        (default) uses branch and bound if it is possible and the gap exceeds `tolerance`.
    tolerance : float
        Relative gap at which branch and bound stops. Default 0.01.
    boxes, seconds : int, float
        Budget of branch and bound for each constant; after that it returns what is proved. Defaults 2 000 000 and 300
        s.
    progress : callable, optional
        Called with the completed fraction, for each constant.

    Returns
    -------
    Bounds
        The constants with the gap to the most extreme values found. The search is seeded: results are reproducible
        unless the time runs out.

    Raises
    ------
    ArgumentError
        If a joint has no bound, or the robot has too many joints for branch and bound.
    InertiaError
        If a body is physically impossible.

    Notes
    -----
    Kelly, Santibanez and Loria 2005, chapter 4; norms are Euclidean and spectral. docs/how-to/bounds.md has the exact
    statements.

    Examples
    --------
    >>> import geomctrl as gc
    >>> constants = gc.models.two_link().bounds(method="closed form")
    >>> constants.m1.value <= constants.m1.sampled and constants.m2.value >= constants.m2.sampled
    True
    """
    started = time.monotonic()
    require_robot("robot", robot)
    require_free_joints("bounds", robot)
    choice("form", form, FORMS)
    choice("method", method, METHODS)
    tolerance = number("tolerance", tolerance, "a number > 0", lambda x: x > 0.0)
    boxes = count("boxes", boxes, 1)
    seconds = number("seconds", seconds, "a number > 0", lambda x: x > 0.0)
    report = (lambda fraction: None) if progress is None else function("progress", progress, "of the fraction done", 1)
    bodies, domain = bodies_of(robot, parameters), domain_of(robot, box)
    _check_bodies(robot, bodies.nominal, "robot" if parameters is None else "parameters")
    why_not = _why_not(robot)
    if method == "branch and bound" and why_not:
        raise ArgumentError(f"method: {why_not}; method='closed form' is for any robot")
    closed = ClosedForm(robot, bodies, Reach(robot, domain.lower, domain.upper), form)
    outcome = {}
    for name, measure in measures(form).items():
        x = _closed(name, measure, closed, domain)
        budget = Budget(tolerance, NEGLIGIBLE * _size(name, closed), boxes, seconds, report)
        near = abs(x.value - x.sampled) <= budget.slack(x.sampled)
        if method == "branch and bound" or (method == "auto" and not why_not and not near):
            x = _branched(name, measure, x, closed, domain, budget)
        outcome[name] = x
    return Bounds(robot.name, form, **outcome, seconds=time.monotonic() - started)


def _check_bodies(robot: Mechanism, parameters: np.ndarray, argument: str) -> None:
    for pi, name in zip(parameters, robot.body_names):
        if not inertia.is_physical(pi):
            raise InertiaError(
                f"{argument}: body {name!r}: {inertia.violation(pi) or 'its pseudo-inertia is not >= 0'}"
            )


def _why_not(robot: Mechanism) -> str | None:
    """Return the reason why branch and bound does not support this robot, or None."""
    if robot.nq != robot.nv:
        joint = next(j for j in robot.joints if j.dof > 1)
        return f"branch and bound supports joints with one degree of freedom, {joint.name!r} has {joint.dof}"
    if robot.nv > JOINTS:
        boxes = 50.0 ** (robot.nv - 1)  # about as many as measured with two and three joints, for a tolerance of 1 %
        return (
            f"branch and bound supports up to {JOINTS} joints, {robot.name!r} has {robot.nv} and would need about"
            f" {boxes:.0e} boxes, at some hundreds per second"
        )
    return None


def _size(name: str, closed: ClosedForm) -> float:
    """Return the size of the terms in a constant; if they cancel completely, only rounding remains."""
    if name in ("k_g", "g"):
        return float(np.linalg.norm(closed.robot.gravity) * closed.U.sum())
    return closed.m2()


def _closed(name: str, measure: Measure, closed: ClosedForm, domain: Domain) -> Bound:
    """Return the bound by closed form, with the most extreme value found."""
    robot, bodies = closed.robot, closed.bodies
    if name in ("m1", "m2"):
        certified = inertia_extremes.least if name == "m1" else inertia_extremes.greatest
        value, method = certified(robot, bodies, closed.reach, closed.m2()), CERTIFIED
        if name == "m2" and value >= closed.m2():
            value, method = closed.m2(), CLOSED
    else:
        value, method = {"k_C": closed.k_C, "k_g": closed.k_g, "g": closed.g}[name](), CLOSED
    outcome = extreme(robot, bodies, domain, measure)
    v = _velocity(measure, outcome) if name == "k_C" else None
    return Bound(value, measure.sign * outcome.value, outcome.q, method, v)


def _velocity(measure: Measure, extreme: Extreme) -> np.ndarray:
    """Return the unit v with the largest |C(q, v)|."""
    G = measure.support(measure.array(extreme.robot, extreme.q[None]))[1][0]
    return np.linalg.svd(G.reshape(len(G), -1))[0][:, 0]


def _branched(name: str, measure: Measure, bound: Bound, closed: ClosedForm, domain: Domain, budget: Budget) -> Bound:
    """Return the bound by branch and bound if it is better, otherwise the closed form.

    For uncertain parameters it is the bound of the nominal robot plus the effect of the deviations by closed form. M is
    excluded, because the matrix inequalities give better bounds.
    """
    robot, bodies, addition = closed.robot, closed.bodies, 0.0
    if not bodies.certain:
        if name in ("m1", "m2"):
            return bound
        spread, none = bodies.heavier - bodies.nominal, np.zeros_like(bodies.nominal)
        added = ClosedForm(robot, Bodies(none, spread, bodies.deviation), closed.reach, closed.form)
        addition = {"k_C": added.k_C, "k_g": added.k_g, "g": added.g}[name]()
    nominal = Bodies(bodies.nominal, bodies.nominal, np.zeros_like(bodies.nominal))
    start = extreme(robot, nominal, domain, measure)
    quantity = quantity_of(name, start.robot, measure, ClosedForm(robot, nominal, closed.reach, closed.form))
    claim = BoundClaim(quantity, domain, start.value, start.q, budget)
    out = BranchAndBound(claim)
    out.run(budget.boxes, budget.seconds, lambda share, cost: budget.progress(share))
    if claim.best > measure.sign * bound.sampled and bodies.certain:
        there = start._replace(q=claim.where)
        v = _velocity(measure, there) if name == "k_C" else None
        bound = bound._replace(sampled=measure.sign * claim.best, q=claim.where, v=v)
    value = measure.sign * max(out.largest_bound, claim.best) + addition
    if measure.sign * value < measure.sign * bound.value:
        bound = bound._replace(value=value, method=BRANCHED)
    return bound._replace(boxes=out.count, finished=out.proved)
