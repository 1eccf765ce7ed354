"""For unit tests: random physical robots and states, and assertions of the properties that control proofs rest on.

    from hypothesis import given, strategies as st
    from geomctrl import testing

    @given(testing.robots(kinds=("revolute", "prismatic")).flatmap(lambda r: st.tuples(st.just(r), testing.states(r))))
    def test_energy_is_not_negative(case):
        robot, (q, v) = case
        assert robot.kinetic_energy(q, v) >= 0.0

    def test_my_coriolis_matrix():
        testing.assert_skew_symmetric(robot, my_coriolis_matrix)

The strategies need hypothesis, an optional dependency, when they are called; `random_robot` and the assertions do not.
Assertions raise AssertionError with the state that breaks the property. Tolerances are relative, see each docstring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import inertia, models, se3
from .checks import check_count, derivative
from .control import Command, configuration_argument
from .errors import ArgumentError, SimulationError
from .monitors import LyapunovDecrease
from .plant import Plant
from .robot import Body, Joint, Robot
from .simulate import simulate

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

KINDS = ("revolute", "prismatic", "helical", "cylindrical", "planar", "spherical", "free")

Coriolis = Callable[[np.ndarray, np.ndarray], np.ndarray]
InverseDynamics = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


# --- random robots ---------------------------------------------------------------------------------------------


def random_inertia(rng: np.random.Generator) -> np.ndarray:
    """Ten parameters (10,) of a random body: 0.1 to 10 kg, size and offset of its centre of mass about 0.1 to 0.5 m."""
    mass = np.exp(rng.uniform(np.log(0.1), np.log(10.0)))
    R = se3.exp(rng.normal(size=6))[:3, :3]
    second_moment = mass * R @ np.diag(rng.uniform(0.1, 0.5, 3) ** 2) @ R.T  # any positive one is a body's
    I_com = np.trace(second_moment) * np.eye(3) - second_moment
    return inertia.from_com(mass, rng.uniform(-0.3, 0.3, 3), 0.5 * (I_com + I_com.T))


def random_joint(rng: np.random.Generator, kind: str, aligned: bool = False, **options) -> Joint:
    """A joint of a kind in KINDS, random axis through a random point; `aligned`: a coordinate axis, the origin."""
    axis = np.eye(3)[rng.integers(3)] if aligned else rng.normal(size=3)
    point = np.zeros(3) if aligned else rng.uniform(-0.3, 0.3, 3)
    make = {
        "revolute": partial(Joint.revolute, axis, point),
        "prismatic": partial(Joint.prismatic, axis),
        "helical": partial(Joint.helical, axis, point, rng.uniform(-0.2, 0.2)),
        "cylindrical": partial(Joint.cylindrical, axis, point),
        "planar": partial(Joint.planar, axis),
        "spherical": partial(Joint.spherical, point),
        "free": Joint.free,
    }
    if kind not in make:
        raise ArgumentError(f"kind: expected one of {', '.join(map(repr, KINDS))}, got {kind!r}")
    return make[kind](**options)


def random_robot(
    rng: np.random.Generator,
    kinds: Sequence[str] | None = None,
    parents: Sequence[int] | None = None,
    *,
    aligned: bool = False,
    **options,
) -> Robot:
    """A random physical robot: body i on a joint of `kinds[i]` to body `parents[i]` (-1: the world).

    Without `kinds` one to eight joints of any kind; without `parents` a random tree. `aligned`: axes and placements
    along coordinate axes, as in datasheets. Further options as for `Robot.build`.
    """
    if kinds is None:
        kinds = [str(k) for k in rng.choice(KINDS, size=rng.integers(1, 9))]
    if parents is None:
        parents = [int(rng.integers(-1, i)) for i in range(len(kinds))]
    if len(parents) != len(kinds) or not all(-1 <= p < i for i, p in enumerate(parents)):
        raise ArgumentError(f"parents: expected for each of {len(kinds)} bodies a body before it or -1, got {parents}")
    bodies = []
    for i, (kind, p) in enumerate(zip(kinds, parents)):
        M = np.eye(4)
        if aligned:
            M[:3, :3] = np.roll(np.eye(3), rng.integers(3), axis=0)
            M[rng.integers(3), 3] = rng.uniform(-0.5, 0.5)
        else:
            M = se3.exp(np.concatenate((rng.normal(size=3), rng.uniform(-0.5, 0.5, 3))))
        joint = random_joint(rng, kind, aligned, name=f"joint{i}")
        bodies.append(Body(f"body{i}", None if p < 0 else f"body{p}", joint, M, random_inertia(rng)))
    return Robot.build(bodies, **{"name": "random", **options})


# --- hypothesis strategies -------------------------------------------------------------------------------------


def _strategies():
    try:
        from hypothesis import strategies
    except ImportError:
        raise ImportError(
            "geomctrl.testing's strategies need hypothesis, which is not installed: pip install 'geomctrl[test]'"
        ) from None
    return strategies


def inertias() -> SearchStrategy[np.ndarray]:
    """Ten physical inertial parameters (10,)."""
    return _strategies().integers(0, 2**32 - 1).map(lambda seed: random_inertia(np.random.default_rng(seed)))


def robots(
    kinds: Sequence[str] = KINDS,
    max_bodies: int = 8,
    *,
    floating_base: bool | None = False,
    chain: bool = False,
    aligned: bool | None = None,
) -> SearchStrategy[Robot]:
    """Random physical robots of one to `max_bodies` bodies on joints of `kinds`, shrinking to few and simple joints.

    `floating_base` puts the first body on a free joint and all others on it (None: sometimes, among other roots);
    `chain` gives every body one child;
    `aligned` axes and placements lie along coordinate axes (None: sometimes).
    Raises ArgumentError for no or unknown `kinds` and for `max_bodies` below one.
    """
    st = _strategies()
    if not kinds or not set(kinds) <= set(KINDS):
        raise ArgumentError(f"kinds: expected some of {', '.join(map(repr, KINDS))}, got {kinds!r}")
    check_count("max_bodies", max_bodies)

    @st.composite
    def robot(draw):
        n = draw(st.integers(1, max_bodies))
        joints = [draw(st.sampled_from(kinds)) for _ in range(n)]
        if draw(st.booleans()) if floating_base is None else floating_base:
            joints[0] = "free"
        roots = 0 if floating_base else 1  # further bodies that may hang on the world
        back = [0 if chain or i == 0 else draw(st.integers(0, i - 1 + roots)) for i in range(n)]  # shrinks to a chain
        parents = [i - 1 - k for i, k in enumerate(back)]
        straight = draw(st.booleans()) if aligned is None else aligned
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        return random_robot(rng, joints, parents, aligned=straight)

    return robot()


def bundled_robots() -> SearchStrategy[Robot]:
    """The robots of `geomctrl.models`, shrinking to the two-link arm."""
    return _strategies().sampled_from(models.names()).map(models.load)


def velocities(robot: Robot, bound: float = 3.0) -> SearchStrategy[np.ndarray]:
    """Velocities, accelerations or torques (nv,) within `bound`, in thousandths of it, shrinking to zero."""
    st = _strategies()
    number = st.integers(-1000, 1000).map(lambda k: k * bound / 1000)
    return st.lists(number, min_size=robot.nv, max_size=robot.nv).map(np.array)


def configurations(robot: Robot) -> SearchStrategy[np.ndarray]:
    """Configurations (nq,): every joint moved by up to 3 [rad, m] along its screws, shrinking to neutral."""
    return velocities(robot).map(lambda x: robot.integrate(robot.neutral(), x))


def states(robot: Robot) -> SearchStrategy[tuple[np.ndarray, np.ndarray]]:
    """(q, v)."""
    return _strategies().tuples(configurations(robot), velocities(robot))


def motions(robot: Robot) -> SearchStrategy[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """(q, v, a, v_ref): what inverse dynamics with a reference velocity takes."""
    return _strategies().tuples(configurations(robot), *(velocities(robot) for _ in range(3)))


# --- assertions ------------------------------------------------------------------------------------------------


def _random_states(robot: Robot, states: int, seed: int):
    check_count("states", states)
    rng = np.random.default_rng(seed)
    for _ in range(states):
        yield robot.random_configuration(rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)


def _at(q: np.ndarray, v: np.ndarray) -> str:
    return f"at q = {np.array2string(q, separator=', ')}, v = {np.array2string(v, separator=', ')}"


def assert_skew_symmetric(
    robot: Robot,
    coriolis: Coriolis | None = None,
    *,
    mass_matrix_rate: Coriolis | None = None,
    states: int = 20,
    seed: int = 0,
    rtol: float = 1e-11,
) -> None:
    """Assert that N = Mdot - 2C is skew at random states: |N + N^T| <= rtol max(|Mdot|, 2 |C|, |M| |v|), by entries.

    `coriolis`: the C(q, v) under test, (nv, nv); None tests both of the robot's. `mass_matrix_rate`: Mdot(q, v) if not
    the robot's. The message names a vector s with s . N s != 0: the term left over in a Lyapunov function's derivative.
    Skewness alone does not make C right (Mdot/2 passes): see `assert_passive` for C v.
    """
    if coriolis is None:
        for form in ("ploen", "christoffel"):
            C = partial(robot.coriolis_matrix, form=form)
            assert_skew_symmetric(robot, C, mass_matrix_rate=mass_matrix_rate, states=states, seed=seed, rtol=rtol)
        return
    rate = robot.mass_matrix_rate if mass_matrix_rate is None else mass_matrix_rate
    for q, v, _ in _random_states(robot, states, seed):
        Mdot, C = np.asarray(rate(q, v), float), np.asarray(coriolis(q, v), float)
        for name, A in (("Mdot", Mdot), ("C", C)):
            if A.shape != (robot.nv, robot.nv) or not np.isfinite(A).all():
                raise AssertionError(f"{name}: expected a finite {robot.nv} x {robot.nv} matrix, got {A} {_at(q, v)}")
        N = Mdot - 2.0 * C
        error = np.abs(N + N.T)
        size = np.abs(robot.mass_matrix(q)).max() * np.abs(v).max()  # C may well be zero
        scale = max(np.abs(Mdot).max(), 2.0 * np.abs(C).max(), size)
        if error.max() > rtol * scale:
            j, k = (int(x) for x in np.unravel_index(np.argmax(error), error.shape))
            values, vectors = np.linalg.eigh(N + N.T)
            s = vectors[:, np.argmax(np.abs(values))]
            raise AssertionError(
                f"Mdot - 2C is not skew: N + N^T has {N[j, k] + N[k, j]:.6g} at [{j}, {k}],"
                f" {error.max() / scale:.3g} of max(|Mdot|, 2 |C|, |M| |v|), allowed {rtol:.3g};"
                f" s . N s = {s @ N @ s:.6g} for s = {np.array2string(s, separator=', ')} {_at(q, v)}"
            )


def assert_passive(
    robot: Robot,
    inverse_dynamics: InverseDynamics | None = None,
    *,
    states: int = 20,
    seed: int = 0,
    rtol: float = 1e-7,
) -> None:
    """Assert the power balance dE/dt = v . tau along short random motions q exp(v t), v + a t.

    `inverse_dynamics`: the tau(q, v, a) under test, M a + C v + g; None tests the robot's. The energy is the robot's,
    its derivative a sixth-order difference over 6 ms. Allowed error: rtol sum |v_k tau_k| and the energy's rounding.
    """
    torque = robot.inverse_dynamics if inverse_dynamics is None else inverse_dynamics
    for q, v, a in _random_states(robot, states, seed):
        tau = np.asarray(torque(q, v, a), float)
        if tau.shape != (robot.nv,) or not np.isfinite(tau).all():
            raise AssertionError(f"tau: expected {robot.nv} finite numbers, got {tau} {_at(q, v)}, a = {a}")

        def energy(t, q=q, v=v, a=a):
            return robot.energy(robot.integrate(q, t * v + 0.5 * t**2 * a), v + t * a)

        rate, power = float(derivative(energy)), float(v @ tau)
        rounding = 8e3 * np.finfo(float).eps * (abs(energy(0.0)) + robot.kinetic_energy(q, v))  # over steps of 1 ms
        if not abs(rate - power) <= rtol * np.abs(v * tau).sum() + rounding:
            raise AssertionError(
                f"energy is not balanced: dE/dt = {rate:.9g} W but v . tau = {power:.9g} W"
                f" {_at(q, v)}, a = {np.array2string(a, separator=', ')}"
            )


# --- Lyapunov functions ----------------------------------------------------------------------------------------

NOTHING = 1e-12  # of V at a state drawn: a V below this is zero


class State(NamedTuple):
    """The closed loop at one time: q (nq,), v (nv,) and the controller's own state z (None if it has none)."""

    t: float
    q: np.ndarray
    v: np.ndarray
    z: np.ndarray | None

    def __str__(self):
        z = "" if self.z is None else f", z = {np.array2string(self.z, separator=', ')}"
        return f"at t = {self.t:.6g}, {_at(self.q, self.v)[3:]}{z}"


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

    Raises AssertionError with the state that breaks the promise; ArgumentError for `states` below one, and where the
    equilibrium is not known or does not fit.
    """
    plant = plant if isinstance(plant, Plant) else Plant(plant)
    check_count("states", states)
    check_count("runs", runs, least=0)
    if not hasattr(controller, "lyapunov"):
        raise AssertionError(f"{type(controller).__name__} has no lyapunov(t, q, v, z, plant) to check")
    rng, rest = np.random.default_rng(seed), _equilibria(controller, plant, equilibrium)
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
        return State(t, configuration_argument(robot, "equilibrium", q), np.asarray(v, float), z)

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
        return State(x.t, q, v, None)
    group = getattr(controller, "group", None)
    if group is not None:
        return State(x.t, q, v, _moved(controller, x.z, spread * rng.normal(size=group.dim)))
    size = np.abs(x.z)
    some = size > 1e-12
    scale = np.where(some, size, np.median(size[some]) if some.any() else 1.0)
    return State(x.t, q, v, _moved(controller, x.z, spread * scale * rng.normal(size=size.shape)))


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
    monitor, at = LyapunovDecrease(), f"the run started {_at(x.q, x.v)}"
    try:
        run = simulate(plant, controller, x.q, x.v, duration, dt, monitors=[monitor])
    except SimulationError as error:
        raise AssertionError(f"{error}; {at}") from error
    result = run.monitors[monitor.name]
    if not result.ok:
        raise AssertionError(
            f"V grows along a run: by {result.worst:.3e} of its largest value in the step before t ="
            f" {result.t_worst:.6g} s, allowed {result.limit:.0e}; {at}"
        )
