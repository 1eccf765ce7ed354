"""The assertion that a controller's Lyapunov function is one, in closed loop with a plant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from geomctrl.arguments import count, flag, instance, number, read_only, tolerance
from geomctrl.control.contracts import Command, Controller
from geomctrl.control.loop import simulate
from geomctrl.control.monitors import LyapunovDecrease
from geomctrl.control.plant import Plant, plant_of
from geomctrl.errors import ArgumentError, SimulationError
from geomctrl.mechanism.states import one_configuration
from geomctrl.robot import Robot

from .domain import State
from .sampling import at_state, derivative

NOTHING = 1e-12  # of V at a state drawn: a V below this is zero


def assert_lyapunov(
    controller: Any,
    plant: Plant | Robot,
    *,
    equilibrium: Any = None,
    states: int = 20,
    runs: int = 2,
    duration: float = 0.3,
    dt: float = 1e-3,
    spread: float = 0.5,
    seed: int = 0,
    rtol: float = 1e-6,
    bound: bool = False,
) -> None:
    """Assert what the controller's `lyapunov(t, q, v, z, plant)` promises in closed loop with `plant`.

    1. V is zero at the equilibrium, finite and positive at random states about it and where only q, only v or only
       z is off. Zero means: within 1e-12 of V at the random state.
    2. The promised rate is not positive, and equals dV/dt along the closed loop (`bound=True`: is at least dV/dt).
       dV/dt is a sixth-order difference; allowed error rtol (|rate| + V / s) and V's rounding.
    3. V does not grow along `runs` simulations of `duration` seconds in steps dt, controller at every stage.

    equilibrium: q (nq,) at rest, or the pair (q, z), or a function t -> (q, v, z). By default the controller's
    `reference`, or at rest its `q_d`; z is its `true_parameters(plant)`, or what it starts with.
    Random states lie within about `spread` (rad, m, rad/s, m/s) of the equilibrium at times up to 3 s after the
    plant's last change; z is off by `spread` times each of its entries (times the median one where it is zero, 1
    where all are), or in the algebra of the controller's `group`. V is that of the plant at that time.

    Raises AssertionError with the state that breaks the promise; ArgumentError for `states` below one, an `rtol` that
    is negative, infinite or nan, a `spread` that is not positive, and an equilibrium that is not known or does not fit.
    """
    plant, rtol, bound = plant_of("plant", plant), tolerance("rtol", rtol), flag("bound", bound)
    states, runs = count("states", states, 1), count("runs", runs)
    duration, dt = (number(k, x, "seconds > 0", lambda x: x > 0.0) for k, x in (("duration", duration), ("dt", dt)))
    spread = number("spread", spread, "a positive number", lambda x: x > 0.0)
    instance("controller", controller, Controller, "a geomctrl.Controller")
    if not hasattr(controller, "lyapunov"):
        raise AssertionError(f"{type(controller).__name__} has no lyapunov(t, q, v, z, plant) to check")
    rng, rest = np.random.default_rng(count("seed", seed)), _equilibria(controller, plant, equilibrium)
    end = 3.0 + max((t for t, _ in plant.changes), default=0.0)
    for _ in range(states):
        zero = rest(float(rng.uniform(0.01, end)))  # not 0: the difference looks 3 ms back
        off = _displaced(controller, plant.robot, zero, spread, rng)
        now = plant.at(zero.t)
        _assert_definite(controller, now, zero, off)
        _assert_rate(controller, now, off, rtol, bound)
    for _ in range(runs):
        off = _displaced(controller, plant.robot, rest(0.0), spread, rng)
        _assert_decrease(controller, plant, off, duration, dt)


def _equilibria(controller: Any, plant: Plant, given: Any) -> Callable[[float], State]:
    """t -> the State in which V must vanish; `given` is assert_lyapunov's `equilibrium`."""
    motion, robot = _motion(controller, plant, given), plant.robot
    start = controller.start() if hasattr(controller, "start") else None
    shape = None if start is None else np.shape(start)

    def state(t: float) -> State:
        q, v, z = motion(t)
        if z is None:
            z = controller.true_parameters(plant.at(t)) if hasattr(controller, "true_parameters") else start
        z = None if z is None else np.asarray(z, float)
        if (None if z is None else z.shape) != shape:
            raise ArgumentError(f"equilibrium: expected z as the controller's start() gives it, {start}, got {z}")
        return _read_only(State(t, one_configuration(robot, "equilibrium", q), np.asarray(v, float), z))

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


def _displaced(controller: Any, robot: Robot, x: State, spread: float, rng: np.random.Generator) -> State:
    """A random state about x."""
    q = robot.integrate(x.q, spread * rng.normal(size=robot.nv))
    v = x.v + spread * rng.normal(size=robot.nv)
    if x.z is None:
        return _read_only(State(x.t, q, v, None))
    group = getattr(controller, "group", None)
    if group is not None:
        return _read_only(State(x.t, q, v, _moved(controller, x.z, spread * rng.normal(size=group.dim))))
    size = np.abs(x.z)
    some = size > 1e-12
    scale = np.where(some, size, np.median(size[some]) if some.any() else 1.0)
    return _read_only(State(x.t, q, v, _moved(controller, x.z, spread * scale * rng.normal(size=size.shape))))


def _read_only(x: State) -> State:
    """x, on which the law under test does not write, as in a closed loop."""
    return State(x.t, read_only(x.q), read_only(x.v), None if x.z is None else read_only(x.z))


def _moved(controller: Any, z: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The controller's state z, moved by x in the algebra of its group; without one z + x."""
    group = getattr(controller, "group", None)
    return z + np.reshape(x, z.shape) if group is None else group.advance(z, np.ravel(x))


def _lyapunov(controller: Any, plant: Plant, x: State) -> tuple[float, float]:
    """(V, promised rate) at x."""
    found = controller.lyapunov(*x, plant)
    try:
        V, rate = map(float, found)
    except (TypeError, ValueError):
        raise AssertionError(f"lyapunov: expected two numbers, V and its rate, got {found!r:.80} {x}") from None
    return V, rate


def _assert_definite(controller: Any, plant: Plant, zero: State, off: State) -> None:
    V = _lyapunov(controller, plant, off)[0]
    if not 0.0 < V < np.inf:
        raise AssertionError(f"V is not positive: V = {V:.9g} {off}")
    tiny = NOTHING * V
    V = _lyapunov(controller, plant, zero)[0]
    if not abs(V) <= tiny:
        raise AssertionError(f"V is not zero at the equilibrium: V = {V:.9g} {zero}")
    for name in ("q", "v") if off.z is None else ("q", "v", "z"):
        x = zero._replace(**{name: getattr(off, name)})
        V = _lyapunov(controller, plant, x)[0]
        if not tiny < V < np.inf:
            raise AssertionError(f"V is not positive where only {name} is off: V = {V:.9g} {x}")


def _assert_rate(controller: Any, plant: Plant, x: State, rtol: float, bound: bool) -> None:
    V, rate = _lyapunov(controller, plant, x)
    if not rate <= 0.0:
        raise AssertionError(f"the promised rate is positive: {rate:.9g} {x}")
    actual = _rate_along(controller, plant, x)
    error = actual - rate
    rounding = 3.2e4 * np.finfo(float).eps * V  # over steps of 1 ms
    if not (error if bound else abs(error)) <= rtol * (abs(rate) + V) + rounding:
        raise AssertionError(f"V does not change as promised: dV/dt = {actual:.9g}, promised {rate:.9g} {x}")


def _rate_along(controller: Any, plant: Plant, x: State) -> float:
    """dV/dt at x along the closed loop."""
    t, q, v, z = x
    command = controller(t, q, v, z)
    if not isinstance(command, Command):
        raise AssertionError(f"controller: expected a geomctrl.Command, got {command!r:.60} {x}")
    tau, z_rate, _ = command
    if (z_rate is None) != (z is None):
        raise AssertionError(f"controller: expected a z_rate if and only if it has a state z, got {z_rate} {x}")
    a = plant.acceleration(t, q, v, tau)

    def value(s: float) -> float:
        moved = None if z is None else _moved(controller, z, s * np.asarray(z_rate))
        return _lyapunov(controller, plant, State(t + s, plant.robot.integrate(q, s * v), v + s * a, moved))[0]

    return float(derivative(value))


def _assert_decrease(controller: Any, plant: Plant, x: State, duration: float, dt: float) -> None:
    monitor, start = LyapunovDecrease(), f"the run started {at_state(x.q, x.v)}"
    try:
        run = simulate(plant, controller, x.q, x.v, duration, dt, monitors=[monitor])
    except SimulationError as error:
        raise AssertionError(f"{error}; {start}") from error
    result = run.monitors[monitor.name]
    if not result.ok:
        raise AssertionError(
            f"V grows along a run: by {result.worst:.3e} of its largest value in the step before t ="
            f" {result.t_worst:.6g} s, allowed {result.limit:.0e}; {start}"
        )
