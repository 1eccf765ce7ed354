"""Random physical robots, bodies and states: generators for numpy's rng and strategies for hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from geomctrl import models
from geomctrl.errors import ArgumentError
from geomctrl.lie import se3
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint
from geomctrl.robot import Robot

from .properties import check_count

if TYPE_CHECKING:  # an optional dependency
    from hypothesis.strategies import SearchStrategy

KINDS = ("revolute", "prismatic", "helical", "cylindrical", "planar", "spherical", "free")


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
