"""Certified Lyapunov functions and regions of attraction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, count, number
from geomctrl.compiler.symbols import add, mul, neg
from geomctrl.control.plant import Plant, plant_of
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.states import one_configuration
from geomctrl.proofs.interpreted import enclosed
from geomctrl.robot import Robot

from .certificates.bodies import share
from .certificates.branching import Outcome, Task, prove
from .certificates.certificate import PROVED, REFUTED, UNDECIDED, Claim, Counterexample, LyapunovCertificate
from .certificates.equations import Equations, equations
from .certificates.quadratic import Bounds, Boxes
from .certificates.region import least_on_boundary, most_in_ball
from .certificates.searching import search

POSSIBLE = "the true robot's bodies are physically possible ones, each with a positive definite inertia"
NEGLIGIBLE = 1e-12  # of V or V' at a corner of the box: zero
SHELL = 0.1  # of the box: where V and V' must be off zero at the latest


def certify_lyapunov(
    controller: Any,
    plant: Plant | Robot,
    box: tuple[ArrayLike, ArrayLike],
    *,
    outside: float | tuple[ArrayLike, ArrayLike] | None = None,
    parameters: float | tuple[ArrayLike, ArrayLike] = 0.0,
    rate: float = 0.0,
    offset: float = 0.0,
    equilibrium: ArrayLike | None = None,
    boxes: int = 200_000,
    seconds: float = 60.0,
    region: bool = True,
    seed: int = 0,
    progress: Callable[[int, float], None] | None = None,
) -> LyapunovCertificate:
    """Prove, for the law and plant as they are, that V > 0 and V' < - rate V + offset for all states of a box and all
    true robots near the model; and the region of attraction that follows.

    box: half widths (q, v) about the equilibrium at rest, rad or m and rad/s or m/s, numbers or (nv,) each.
    outside: V' is asked for outside the ellipsoid with these half axes (q, v); a number r stands for (r, r / 0.2 s).
    None: everywhere, at the equilibrium V' <= offset. An uncertain model needs the one or the other, as its equilibrium
    is elsewhere. parameters: by how much every inertial parameter of the true robot may be off, relative to the plant's
    (0.2: 20 %), or their (smallest, largest) values (nbodies, 10) each. rate [1/s] and offset [V/s], not negative.
    equilibrium: q (nq,); by default the controller's `reference`, which then holds still, or its `q_d`. boxes, seconds:
    the budget of each inequality. region: whether level sets are looked for. progress(boxes done, share decided).

    The answer is proved, refuted (with a state and a robot at which the inequality is violated, in interval arithmetic)
    or undecided. Proved is the inequality for the model in exact arithmetic, its numbers being the doubles that they
    are; what rounding does in the code that runs is not. See docs/certificates.md.

    Raises ArgumentError for a box that is empty or infinite, joints with several degrees of freedom, controllers with a
    state (their V' is not negative in the parameters' errors: `assert_lyapunov` judges those) and references that
    move; UntraceableError, with file and line, for a law that does not trace.
    """
    plant = plant_of("plant", plant)
    robot = plant.robot
    _autonomous(controller, plant)
    q_d = _equilibrium(controller, robot, equilibrium)
    half, p_lo, p_hi = _halves("box", box, robot), *_parameters(parameters, robot)
    ball = None if outside is None else _ball(outside, robot)
    rate, offset = (number(k, x, "not negative", lambda x: x >= 0.0) for k, x in (("rate", rate), ("offset", offset)))
    most, time = count("boxes", boxes, 1), number("seconds", seconds, "seconds > 0", lambda x: x > 0.0)
    e = equations(controller, plant, q_d)
    domain = Boxes(-half[None], half[None], p_lo[None], p_hi[None])
    claims = [
        _positive(e, domain, most, time, seed),
        _decreasing(e, domain, ball, rate, offset, most, time, seed, progress),
    ]
    words = _domain(half, robot, parameters)
    found = LyapunovCertificate(type(controller).__name__, words, claims, e.lemmas, e.form, e)
    if found.proved and region:
        _levels(found, domain, ball, rate, offset)
    return found


# --- the claims --------------------------------------------------------------------------------------------------


def _scale(e: Equations, half: np.ndarray) -> np.ndarray:
    """Lengths of x at which V' of the model loses alike; the box's where it does not say."""
    start = Bounds(e, e.decrease, half)
    zero = np.zeros((1, len(half)))
    N = np.diag(start.form(Boxes(zero, zero, e.model[None], e.model[None])).N[0])
    good = np.isfinite(N) & (N > 1e-9 * np.abs(N).max(initial=0.0))
    return np.where(good, 1.0 / np.sqrt(np.where(good, N, 1.0)), half)


def _positive(e: Equations, box: Boxes, most: int, seconds: float, seed: int) -> Claim:
    words, scale = "V > 0 off the equilibrium", _scale(e, box.hi[0])
    task = Task(Bounds(e, neg(e.value), scale), box, None)
    size = abs(float(_values(task.bounds, box.hi, _centre(box))[0]))
    for robots in (_centre(box), box):
        bad = search(e, neg(e.loop.value), robots, SHELL * box.hi[0], 0.0, seed, size)
        if bad.excess >= -NEGLIGIBLE * size:
            if robots is box and e.potential is not None:  # a robot that is none, as a rule
                break
            return Claim(words, REFUTED, counterexample=_state(e, bad.x, bad.p, bad.excess))
    else:
        if e.potential is None:
            return _claim(words, task, prove(task, most, seconds))
        outcome = prove(task, min(most, 4_000), seconds)
        if outcome.proved:
            return _claim(words, task, outcome)
    squares: Any = 0.0
    for k, d in zip(e.x[e.n :], scale[e.n :]):
        squares = add(squares, mul(mul(e.symbol(k), e.symbol(k)), 1.0 / d**2))
    task = Task(Bounds(e, neg(add(e.potential, squares)), scale), box, None)
    words = "V = 1/2 w . M w + U(q) > 0 off the equilibrium: U > 0 where q is off, and M is positive definite"
    sure = share(box.p_lo.reshape(-1, 10), box.p_hi.reshape(-1, 10)) > 0.0
    return _claim(words, task, prove(task, most, seconds), "" if sure else POSSIBLE)


def _centre(box: Boxes) -> Boxes:
    return Boxes(box.lo, box.hi, *(0.5 * (box.p_lo + box.p_hi),) * 2)


def _claim(words: str, task: Task, outcome: Outcome, assumes: str = "") -> Claim:
    return Claim(words, PROVED if outcome.proved else UNDECIDED, outcome, task, assumes=assumes)


def _decreasing(
    e: Equations, box: Boxes, ball: np.ndarray | None, rate: float, offset: float, most: int, seconds: float,
    seed: int, progress: Any,
) -> Claim:  # fmt: skip
    words = "V' < " + (" + ".join([f"- {rate:g} V"] * (rate > 0) + [f"{offset:g}"] * (offset > 0)) or "0")
    words += " off the equilibrium" if ball is None and offset == 0.0 else "" if ball is None else " outside the ball"
    task = Task(Bounds(e, e.plus(rate), _scale(e, box.hi[0])), box, ball, offset)
    everywhere = ball is None and offset == 0.0
    size = abs(float(_values(task.bounds, box.hi, _centre(box))[0])) if everywhere else 0.0
    bad = search(e, e.as_it_comes(rate), box, SHELL * box.hi[0] if everywhere else ball, offset, seed, size)
    if everywhere and bad.excess >= -NEGLIGIBLE * size:
        return Claim(words, REFUTED, counterexample=_state(e, bad.x, bad.p, bad.excess))
    if bad.excess > 0.0:
        low = enclosed(e.graph, [e.as_it_comes(rate)], {k: (x, x) for k, x in e.at(bad.x[None], bad.p[None]).items()}, 1)
        if low[0][0, 0] > offset:
            return Claim(words, REFUTED, counterexample=_state(e, bad.x, bad.p, float(low[0][0, 0] - offset)))
    return _claim(words, task, prove(task, most, seconds, progress))


def _levels(found: LyapunovCertificate, box: Boxes, ball: np.ndarray | None, rate: float, offset: float) -> None:
    e = found.equations
    scale = _scale(e, box.hi[0])
    level = least_on_boundary(Bounds(e, neg(e.value), scale), box)
    found.level = level or None
    ends = 0.0
    if ball is not None:
        ends = most_in_ball(Bounds(e, e.value, scale), box, ball)
    elif offset > 0.0:
        ends = offset / rate if rate > 0.0 else np.inf
    found.ends_in = ends if ends < level else None


def _values(bounds: Bounds, x: np.ndarray, boxes: Boxes) -> np.ndarray:
    """An upper bound of F at points."""
    return bounds.values(Boxes(x, x, boxes.p_lo, boxes.p_hi))[1]


def _state(e: Equations, x: np.ndarray, p: np.ndarray, excess: float) -> Counterexample:
    return Counterexample(e.q_d + x[: e.n], x[e.n :], p.reshape(-1, 10), excess)


# --- arguments ---------------------------------------------------------------------------------------------------


def _autonomous(controller: Any, plant: Plant) -> None:
    robot = plant.robot
    for joint in robot.joints:
        if joint.dof > 1:
            raise ArgumentError(
                "plant: expected joints with one degree of freedom, whose configurations are vectors; got one with"
                f" {joint.dof} ({robot.nv} velocities, {robot.nq} numbers in q)"
            )
    if plant.changes:
        raise ArgumentError(f"plant: expected one that does not change, got changes at {[t for t, _ in plant.changes]}")
    start = controller.start() if hasattr(controller, "start") else None
    if start is not None:
        raise ArgumentError(
            f"controller: expected one without a state z, got {type(controller).__name__} with {np.size(start)} numbers:"
            " its V' does not see them (V' = 0 wherever the tracking error is), so that V' < 0 can not hold;"
            " testing.assert_lyapunov judges V' = what is promised"
        )


def _equilibrium(controller: Any, robot: Robot, given: Any) -> np.ndarray:
    if given is not None:
        return one_configuration(robot, "equilibrium", given)
    reference = getattr(controller, "reference", None)
    if reference is None:
        q_d = getattr(controller, "q_d", None)
        if q_d is None:
            name = type(controller).__name__
            raise ArgumentError(f"equilibrium: {name} has neither a reference nor q_d; expected the q at which V = 0")
        return one_configuration(robot, "controller.q_d", q_d)
    first, later = reference(0.0), reference(1.0)
    if np.any(first.v) or np.any(later.v) or not np.array_equal(first.q, later.q):
        raise ArgumentError("controller: expected a reference that holds still, such as references.hold, got a motion")
    return one_configuration(robot, "controller.reference", first.q)


def _halves(name: str, given: Any, robot: Robot) -> np.ndarray:
    """(2 nv,): positive lengths of q and of v."""
    expected = f"{name}: expected a pair (q, v) of half widths, numbers or ({robot.nv},) each, positive and finite"
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise ArgumentError(f"{expected}; got {given!r:.80}")
    try:
        parts = [np.broadcast_to(np.asarray(x, float), (robot.nv,)) for x in given]
    except (TypeError, ValueError):
        raise ArgumentError(f"{expected}; got {given!r:.80}") from None
    half = np.concatenate(parts)
    if not (np.isfinite(half).all() and (half > 0.0).all()):
        raise ArgumentError(f"{expected}; got {given!r:.80}")
    return half


def _ball(given: Any, robot: Robot) -> np.ndarray:
    if isinstance(given, (tuple, list)):
        return _halves("outside", given, robot)
    r = number("outside", given, "a positive number or a pair (q, v) of half axes", lambda x: 0.0 < x < np.inf)
    return _halves("outside", (r, 5.0 * r), robot)


def _parameters(given: Any, robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    p = robot.parameters
    if isinstance(given, (tuple, list)) and len(given) == 2:
        lo, hi = (checked("parameters", x, p.shape) for x in given)
        if lo.shape != p.shape or hi.shape != p.shape or not (lo <= hi).all():
            raise ArgumentError(f"parameters: expected two arrays {p.shape}, smallest and largest values, got {given!r:.80}")
        return lo.ravel(), hi.ravel()
    share = number("parameters", given, "a share, not negative, such as 0.2 for 20 %", lambda x: x >= 0.0)
    return (p - share * np.abs(p)).ravel(), (p + share * np.abs(p)).ravel()


def _domain(half: np.ndarray, robot: Robot, parameters: Any) -> str:
    n = robot.nv

    def words(x: np.ndarray) -> str:
        return f"{x[0]:g}" if (x == x[0]).all() else np.array2string(x, separator=", ", precision=4)

    of = "intervals" if isinstance(parameters, (tuple, list)) else f"{100.0 * float(parameters):g} %"
    sure = isinstance(parameters, (int, float)) and parameters == 0
    robots = "" if sure else f", every inertial parameter within {of}"
    return f"q within {words(half[:n])}, v within {words(half[n:])} of the equilibrium ({2 * n} dimensions){robots}"
