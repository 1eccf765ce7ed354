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
from typing import TYPE_CHECKING, Any

import numpy as np

from . import inertia, se3
from .errors import ArgumentError
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
    """
    st = _strategies()

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
    h = 1e-3  # s
    steps, weights = np.arange(1, 4), np.array([45.0, -9.0, 1.0]) / (60.0 * h)
    for q, v, a in _random_states(robot, states, seed):
        tau = np.asarray(torque(q, v, a), float)
        if tau.shape != (robot.nv,) or not np.isfinite(tau).all():
            raise AssertionError(f"tau: expected {robot.nv} finite numbers, got {tau} {_at(q, v)}, a = {a}")

        def energy(t, q=q, v=v, a=a):
            return robot.energy(robot.integrate(q, t * v + 0.5 * t**2 * a), v + t * a)

        ahead, behind = (np.array([energy(sign * k * h) for k in steps]) for sign in (1, -1))
        rate, power = float(weights @ (ahead - behind)), float(v @ tau)
        rounding = 8.0 * np.finfo(float).eps * (np.abs(ahead).max() + robot.kinetic_energy(q, v)) / h
        if not abs(rate - power) <= rtol * np.abs(v * tau).sum() + rounding:
            raise AssertionError(
                f"energy is not balanced: dE/dt = {rate:.9g} W but v . tau = {power:.9g} W"
                f" {_at(q, v)}, a = {np.array2string(a, separator=', ')}"
            )


# --- Lyapunov functions ----------------------------------------------------------------------------------------


def assert_lyapunov(
    controller: Any,
    plant: Plant | Robot,
    *,
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

    1. V is finite and positive at random states, and zero on the reference (with the true parameters, where the
       controller has `true_parameters(plant)`).
    2. The promised rate is not positive, and equals dV/dt along the closed loop (`bound=True`: is at least dV/dt).
       dV/dt is a sixth-order difference; allowed error rtol (|rate| + V / s) and V's rounding.
    3. V does not grow along `runs` simulations of `duration` seconds in steps dt, controller at every stage.

    Random states lie within about `spread` (rad, m, rad/s, m/s; relative for z) of the reference, or of the neutral
    configuration at rest. Each failure names the state that breaks the promise.
    """
    plant = plant if isinstance(plant, Plant) else Plant(plant)
    robot, rng = plant.robot, np.random.default_rng(seed)
    if not hasattr(controller, "lyapunov"):
        raise AssertionError(f"{type(controller).__name__} has no lyapunov(t, q, v, z, plant) to check")
    reference = getattr(controller, "reference", None)

    def draw():
        t = float(rng.uniform(0.0, 3.0))
        q, v = (robot.neutral(), np.zeros(robot.nv)) if reference is None else reference(t)[:2]
        z = controller.start()
        if z is not None:
            z = np.asarray(z, float)
            z = z + spread * np.abs(z) * rng.normal(size=z.shape)
        q = robot.integrate(q, spread * rng.normal(size=robot.nv))
        return t, q, v + spread * rng.normal(size=robot.nv), z

    if reference is not None and hasattr(controller, "true_parameters"):
        _assert_zero_on_reference(controller, plant, reference, controller.true_parameters(plant))
    elif reference is not None and controller.start() is None:
        _assert_zero_on_reference(controller, plant, reference, None)
    for _ in range(states):
        t, q, v, z = draw()
        at = f"at t = {t:.6g}, {_at(q, v)[3:]}" + ("" if z is None else f", z = {np.array2string(z, separator=', ')}")
        V, rate = map(float, controller.lyapunov(t, q, v, z, plant))
        if not (np.isfinite(V) and V > 0.0):
            raise AssertionError(f"V is not positive: V = {V:.9g} {at}")
        if not rate <= 0.0:
            raise AssertionError(f"the promised rate is positive: {rate:.9g} {at}")
        actual, rounding = _rate_along(controller, plant, t, q, v, z)
        error = actual - rate
        if not (error if bound else abs(error)) <= rtol * (abs(rate) + V) + rounding:
            raise AssertionError(f"V does not change as promised: dV/dt = {actual:.9g}, promised {rate:.9g} {at}")
    for _ in range(runs):
        t, q, v, z = draw()
        q, v = (q, v) if reference is None else _near(robot, reference(0.0), spread, rng)
        monitor = LyapunovDecrease()
        run = simulate(plant, controller, q, v, duration, dt, monitors=[monitor])
        result = run.monitors[monitor.name]
        if not result.ok:
            raise AssertionError(
                f"V grows along a run: by {result.worst:.3e} of its largest value in the step before t ="
                f" {result.t_worst:.6g} s, allowed {result.limit:.0e}; the run started {_at(q, v)}"
            )


def _near(robot: Robot, desired, spread: float, rng: np.random.Generator):
    noise = spread * rng.normal(size=(2, robot.nv))
    return robot.integrate(desired.q, noise[0]), desired.v + noise[1]


def _assert_zero_on_reference(controller: Any, plant: Plant, reference, z) -> None:
    for t in (0.0, 0.7):
        desired = reference(t)
        V = float(controller.lyapunov(t, desired.q, desired.v, z, plant)[0])
        if not abs(V) <= 1e-20 * max(1.0, float(plant.robot.kinetic_energy(desired.q, np.ones(plant.robot.nv)))):
            raise AssertionError(f"V is not zero on the reference: V = {V:.9g} {_at(desired.q, desired.v)}, t = {t}")


def _rate_along(controller, plant: Plant, t, q, v, z) -> tuple[float, float]:
    """(dV/dt along the closed loop at one state, its rounding error)."""
    robot, h = plant.robot, 1e-3
    command = controller(t, q, v, z)
    a = plant.at(t).acceleration(t, q, v, command.tau)
    group = getattr(controller, "group", None)

    def value(s):
        moved = z
        if z is not None:
            moved = z + s * command.z_rate if group is None else group.advance(z, s * command.z_rate)
        return float(controller.lyapunov(t + s, robot.integrate(q, s * v), v + s * a, moved, plant)[0])

    steps, weights = np.arange(1, 4), np.array([45.0, -9.0, 1.0]) / (60.0 * h)
    ahead, behind = (np.array([value(sign * k * h) for k in steps]) for sign in (1, -1))
    return float(weights @ (ahead - behind)), float(32.0 * np.finfo(float).eps * np.abs(ahead).max() / h)
