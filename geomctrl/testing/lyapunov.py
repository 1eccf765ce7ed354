"""The assertion that a controller's Lyapunov function is one, in closed loop with a plant."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from geomctrl.arguments import ROTATION_TOLERANCE, checked, count, flag, function, number, tolerance
from geomctrl.control.contracts import Controller, started
from geomctrl.control.loop import simulate
from geomctrl.control.monitors import LyapunovDecrease
from geomctrl.control.plant import Plant, plant_of
from geomctrl.errors import ArgumentError, SimulationError
from geomctrl.lie.contract import require_group
from geomctrl.mechanism.states import one_configuration

from . import evidence
from .along import LyapunovAt, Promise
from .counterexample import Counterexample, paste
from .domain import Box, Domain, State, box, untouchable
from .lyapunov_checks import NOTHING, Checks
from .lyapunov_search import LyapunovSearch
from .shrinking import literal

SECONDS = 10.0  # of processor time, after which a search gives up, whatever its evaluations


def assert_lyapunov(
    controller: Any,
    plant: Plant | Any,
    *,
    equilibrium: Any = None,
    states: int = 20,
    search: int = 6000,
    runs: int = 2,
    duration: float = 0.3,
    dt: float = 1e-3,
    spread: float | Mapping[str, Any] = 0.5,
    domain: Box | None = None,
    seed: int = 0,
    rtol: float = 1e-6,
    bound: bool = False,
) -> None:
    """Assert what the controller's `lyapunov(t, q, v, z, plant)` promises in closed loop with `plant`.

    1. V is zero at the equilibrium, finite and positive at random states about it and where only q, only v or only
       z is off. Zero means: within 1e-12 of V at the random state.
    2. The promised rate is not positive, and equals dV/dt along the closed loop (`bound=True`: is at least dV/dt), at
       the same states. Allowed error: rtol (|rate| + V / s), and what dV/dt may be off by.
    3. A search of `search` evaluations, 0 for none, finds no state that breaks either: it climbs on the promised rate,
       on dV/dt less the promised rate and on -V from random states, the best first, over t, q, v and z.
    4. On shells about the equilibrium V has no zero, or the loop returns from there to the equilibrium, as from s = 0
       in a sliding law: then the proof stands (Iggidr and Sallet 2003). An orbit with V = 0 is refused.
    5. V does not grow along `runs` simulations of `duration` seconds in steps dt, controller at every stage.

    dV/dt is found in two ways: exactly, by the chain rule on what `lyapunov` computes along the plant's own field, and
    by differences of V in Python, the law and the plant evaluated as they are, with steps halved until they settle.
    The first is believed where the second, which knows nothing of it, agrees; a law that does not trace has the second
    alone. The promised rate is in neither. The law runs on symbols to be traced, so it must not count its calls.

    equilibrium: q (nq,) at rest, or the pair (q, z), or a function t -> (q, v, z). By default the controller's
    `reference`, or at rest its `q_d`; z is its `true_parameters(plant)`, or what it starts with.

    Random states lie about `spread` (rad, m, rad/s, m/s) off the equilibrium, three times that at most, at times up to
    3 s after the plant's last change; z is off by `spread` times each of its entries (times the median one where it is
    zero, 1 where all are), or in the algebra of the controller's `group`, or as its `sample_state` draws it. spread can
    be told by part, {"q": 0.5, "v": 1.0, "z": 0.2}, as numbers or arrays; domain={"t": (0, 5), "q": (lower, upper)} are
    sides of the box themselves, relative to the equilibrium, which is inside. A revolute joint turned by 2 pi is
    another configuration, off the equilibrium; the domain reaches there only if told to. V is that of the plant then.

    Raises Counterexample, an AssertionError, with the simplest state found that breaks the promise and code that
    reproduces it; ArgumentError for `states` below one, an `rtol` that is negative, infinite or nan, a spread that is
    not positive or a domain that is empty, a `sample_state` that draws no state, and an equilibrium that is not known
    or does not fit.
    """
    plant, rtol, bound = plant_of("plant", plant, state=False), tolerance("rtol", rtol), flag("bound", bound)
    states, runs, search = count("states", states, 1), count("runs", runs), count("search", search)
    duration, dt = (number(k, x, "seconds > 0", lambda x: x > 0.0) for k, x in (("duration", duration), ("dt", dt)))
    _require_controller(controller)
    if not hasattr(controller, "lyapunov"):
        raise AssertionError(f"{type(controller).__name__} has no lyapunov(t, q, v, z, plant) to check")
    seed = count("seed", seed)
    where = _domain(controller, plant, equilibrium, spread, domain)
    checks = Checks(Promise(controller, plant, where.moved_z), where, rtol, bound)
    what = f"V and V' of {type(controller).__name__} on {plant.robot.name}"
    _known(checks, what)
    _sample(checks, np.random.default_rng(seed), states)
    evidence.record("sampled", what, states=states, seed=seed)
    if search:
        hunt = LyapunovSearch(checks, np.random.default_rng([seed, 1]), search, SECONDS)
        try:
            hunt.run()
        finally:
            facts = {"starts": hunt.starts, "evaluations": hunt.evaluations, "gradients": hunt.how, "seed": seed}
            evidence.record("searched", what, **facts)
    rng = np.random.default_rng([seed, 2])
    for _ in range(runs):
        _assert_decrease(checks, _start_of_run(checks, rng), duration, dt)
    if runs:
        evidence.record("simulated", f"V of {type(controller).__name__} on {plant.robot.name}", runs=runs, seed=seed)


def lyapunov_at(controller: Any, plant: Plant | Any, t: float, q: Any, v: Any, z: Any = None) -> LyapunovAt:
    """What `assert_lyapunov` looks at, at one state: (V, promised rate, dV/dt along the closed loop, its error).

    dV/dt is found by differences of V, whose estimated error is the last number; nothing is traced. q (nq,), v (nv,),
    z as the controller's `start()` gives it, None without. Raises ArgumentError for a state that does not fit and for a
    time that is negative.
    """
    plant = plant_of("plant", plant, state=False)
    _require_controller(controller)
    if not hasattr(controller, "lyapunov"):
        raise ArgumentError(f"controller: expected one with lyapunov(t, q, v, z, plant), got {controller!r:.60}")
    t = number("t", t, "a time that is not negative", lambda t: t >= 0.0)
    q, v = one_configuration(plant.robot, "q", q), checked("v", v, (plant.robot.nv,))
    start = _own_start(controller, plant)
    if v.ndim != 1:
        raise ArgumentError(f"v: expected one velocity ({plant.robot.nv},), got shape {v.shape}")
    if (start is None) != (z is None):
        raise ArgumentError(f"z: expected it as the controller's start() gives it, {start}, got {z!r:.80}")
    if start is not None:
        z = checked("z", z, start.shape)
        if z.shape != start.shape:
            raise ArgumentError(f"z: expected shape {start.shape}, got {z.shape}")
    group = getattr(controller, "group", None)
    return Promise(controller, plant, _mover(group)).along(untouchable(State(t, q, v, z)))


def _require_controller(x: Any) -> None:
    if isinstance(x, type) or not isinstance(x, Controller):
        raise ArgumentError(f"controller: expected a geomctrl.Controller, got {x!r:.60}")


# --- the domain ----------------------------------------------------------------------------------------------------


def _mover(group: Any) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """(z, x) -> z moved by x in its algebra."""
    return lambda z, x: z + np.reshape(x, z.shape) if group is None else group.advance(z, np.ravel(x))


def _own_start(controller: Any, plant: Plant) -> np.ndarray | None:
    start = started(controller, plant.robot)
    return None if start is None else np.asarray(start, float)


def _domain(controller: Any, plant: Plant, equilibrium: Any, spread: Any, given: Any) -> Domain:
    if not isinstance(spread, Mapping):
        number("spread", spread, "a positive number", lambda x: x > 0.0)
    group = getattr(controller, "group", None)
    if group is not None:
        require_group("controller.group", group)
    rest = _equilibria(controller, plant, equilibrium)
    end = 3.0 + max(plant.switches, default=0.0)
    zero = rest(0.01)
    n, own = plant.robot.nv, np.zeros(0)
    draw = None if zero.z is None else _drawn(controller, plant, zero.z)
    if zero.z is not None and draw is None:
        own = np.ones(group.dim) if group is not None else _typical(np.ravel(zero.z))
    times = (0.01, end)  # not from 0 on: a difference looks back
    lower, upper = box({"q": n, "v": n, "z": len(own)}, spread, times, given, own)
    domain = Domain(
        plant.robot, rest, lower, upper, group, draw, _sources(controller, equilibrium),
        lambda t: _equilibria(controller, _unchanging(plant.at(t)), equilibrium),
    )  # fmt: skip
    if not domain.names:
        raise ArgumentError("domain: expected states besides the equilibrium, got spreads or sides that are all zero")
    return domain


def _unchanging(plant: Plant) -> Plant:
    """The plant as it is, for ever."""
    plant = copy.copy(plant)  # a subclass keeps what it adds
    object.__setattr__(plant, "changes", ())
    return plant


def _typical(z: np.ndarray) -> np.ndarray:
    """The size of each entry; of those that are zero, the median one's."""
    size = np.abs(z)
    some = size > 1e-12
    return np.where(some, size, np.median(size[some]) if some.any() else 1.0)


def _drawn(controller: Any, plant: Plant, z: np.ndarray) -> Callable[[np.random.Generator, float], np.ndarray] | None:
    """(rng, t) -> what the controller's `sample_state` draws; None where it has none, or any z is one of its states."""
    sample = getattr(controller, "sample_state", None)
    if sample is not None:
        function("controller.sample_state", sample, "(rng, plant) -> z")
    if sample is None or sample(np.random.default_rng(0), plant.at(0.0)) is None:
        return None

    group = getattr(controller, "group", None)

    def draw(rng: np.random.Generator, t: float) -> np.ndarray:
        drawn = sample(rng, plant.at(t))
        expected = f"finite numbers of shape {z.shape} as start() gives them"
        if not isinstance(drawn, np.ndarray) or drawn.shape != z.shape or drawn.dtype.kind not in "fiu":
            raise ArgumentError(f"controller.sample_state(rng, plant): expected {expected}, got {drawn!r:.80}")
        if not np.isfinite(drawn).all() or (group is not None and not group.residual(drawn) < ROTATION_TOLERANCE):
            on = "" if group is None else f", an element of {group!r}"
            raise ArgumentError(f"controller.sample_state(rng, plant): expected {expected}{on}, got {drawn!r:.80}")
        return np.array(drawn, float)

    draw(np.random.default_rng(0), 0.0)
    return draw


def _sources(controller: Any, equilibrium: Any) -> dict[str, str]:
    """Code for the parts of the equilibrium."""
    found = {}
    if equilibrium is None and getattr(controller, "reference", None) is not None:
        found = {"q": "controller.reference(t).q", "v": "controller.reference(t).v"}
    if equilibrium is None:
        own = hasattr(controller, "true_parameters")
        found["z"] = "controller.true_parameters(plant.at(t))" if own else "controller.start()"
    return found


def _equilibria(controller: Any, plant: Plant, given: Any) -> Callable[[float], State]:
    """t -> the State in which V must vanish; `given` is assert_lyapunov's `equilibrium`."""
    motion, robot = _motion(controller, plant, given), plant.robot
    start = _own_start(controller, plant)
    shape, known = None if start is None else start.shape, []

    def state(t: float) -> State:
        q, v, z = motion(t)
        if z is None:
            z = controller.true_parameters(plant.at(t)) if hasattr(controller, "true_parameters") else start
        z = None if z is None else np.asarray(z, float)
        if (None if z is None else z.shape) != shape:
            raise ArgumentError(f"equilibrium: expected z as the controller's start() gives it, {start}, got {z}")
        if not known:  # what fits once does so later
            known.append((one_configuration(robot, "equilibrium", q), checked("equilibrium", v, (robot.nv,))))
        return untouchable(State(t, np.asarray(q, float), np.asarray(v, float), z))

    return state


def _motion(controller: Any, plant: Plant, given: Any) -> Callable[[float], Any]:
    """t -> (q, v, z) of the equilibrium, z None if it is not given."""
    if callable(given):
        return given
    if given is None:
        reference = getattr(controller, "reference", None)
        if reference is not None:
            return lambda t: (*reference(t)[:2], None)
        given = getattr(controller, "q_d", None)
    if given is None:
        name = type(controller).__name__
        raise ArgumentError(f"equilibrium: {name} has neither a reference nor q_d; expected the q at which V = 0")
    pair = isinstance(given, tuple) and len(given) == 2 and np.ndim(given[0]) == 1
    q, z = given if pair else (given, None)
    return lambda t: (q, np.zeros(plant.robot.nv), z)


# --- samples and runs ----------------------------------------------------------------------------------------------


def _known(checks: Checks, what: str) -> None:
    """Look first at what has failed before."""
    robot, start = checks.domain.robot, _own_start(checks.promise.controller, checks.promise.plant)
    known = [State(*x) for x in evidence.known(robot.nq, robot.nv, None if start is None else start.shape)]
    known = [x for x in known if checks.domain.contains(x)]
    for x in known:
        for check in (checks.positive, checks.not_growing, checks.as_promised):
            checks.hold(check, untouchable(x), "known")
    if known:
        evidence.record("sampled", f"{what}, where it failed before", states=len(known))


def _sample(checks: Checks, rng: np.random.Generator, states: int) -> None:
    """Random states, the equilibrium at the same times, and where only a part is off."""
    domain, values = checks.domain, []
    for _ in range(states):
        point = domain.random(rng, "about")
        off, zero = domain.state(point), domain.state(domain.only(point))
        checks.hold(checks.positive, off)
        V = checks.promise.value(off)
        values.append(V)
        checks.typical = float(np.median(values))
        checks.hold(checks.zero_at_rest(NOTHING * V), zero)
        parts = {name: domain.state(domain.only(point, name)) for name in domain.names}
        for name, x in parts.items():
            checks.hold(checks.positive_alone(name, NOTHING * V), x)
        for x in (off, *parts.values()):
            checks.hold(checks.not_growing, x)
            checks.hold(checks.as_promised, x)


def _start_of_run(checks: Checks, rng: np.random.Generator) -> State:
    """Where a run starts: at t = 0, the controller in the state it starts with."""
    domain, point = checks.domain, checks.domain.random(rng, "about")
    point.x[0] = 0.0
    x = domain.state(point)
    return untouchable(State(0.0, x.q, x.v, _own_start(checks.promise.controller, checks.promise.plant)))


def _assert_decrease(checks: Checks, x: State, duration: float, dt: float) -> None:
    promise, monitor = checks.promise, LyapunovDecrease()
    code = f"print(simulate(plant, controller, q, v, {duration!r}, {dt!r}).summary())"
    script = "from geomctrl import simulate\n" + paste(promise.plant, literal(x), code)
    try:
        run = simulate(promise.plant, promise.controller, x.q, x.v, duration, dt, monitors=[monitor])
    except SimulationError as error:
        raise Counterexample(f"{error}; the run started", x, "decrease", script, "simulated") from error
    result = run.monitors[monitor.name]
    if not result.ok:
        words = (
            f"V grows along a run: by {result.worst:.3e} of its largest value in the step before t ="
            f" {result.t_worst:.6g} s, allowed {result.limit:.0e}; the run started"
        )
        raise Counterexample(words, x, "decrease", script, "simulated")
