"""Random physical robots, from numpy's generators and as hypothesis strategies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from geomctrl.arguments import choice, choices, count, flag, generator, shown
from geomctrl.errors import ArgumentError
from geomctrl.lie import se3
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint
from geomctrl.mechanism.mechanism import require_robot
from geomctrl.other_names import named_arguments
from geomctrl.robot import Robot

if TYPE_CHECKING:  # an optional dependency
    from hypothesis.strategies import SearchStrategy

KINDS = ("revolute", "prismatic", "helical", "cylindrical", "planar", "spherical", "free")
MAX_COORDINATE = 3.0  # rad, m, and their rates


@named_arguments()
def random_inertia(rng: np.random.Generator) -> np.ndarray:
    """Return the inertial parameters of a random body.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, shape (10,)
        0.1 to 10 kg; extent and offset of the centre of mass 0.1 to 0.5 m.
    """
    generator("rng", rng)
    mass = np.exp(rng.uniform(np.log(0.1), np.log(10.0)))
    R = se3.exp(rng.normal(size=6))[:3, :3]
    second_moment = mass * R @ np.diag(rng.uniform(0.1, 0.5, 3) ** 2) @ R.T  # any positive definite one is physical
    I_com = np.trace(second_moment) * np.eye(3) - second_moment
    return inertia.from_com(mass, rng.uniform(-0.3, 0.3, 3), 0.5 * (I_com + I_com.T))


def random_joint(rng: np.random.Generator, kind: str, aligned: bool = False, **options) -> Joint:
    """A joint of the given kind with a random axis and point; `aligned`: along a coordinate axis at the origin."""
    generator("rng", rng)
    choice("kind", kind, KINDS)
    axis = np.eye(3)[rng.integers(3)] if flag("aligned", aligned) else rng.normal(size=3)
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
    return make[kind](**options)


@named_arguments()
def random_robot(
    rng: np.random.Generator,
    kinds: Sequence[str] | None = None,
    parents: Sequence[int] | None = None,
    *,
    aligned: bool = False,
    driven: bool = False,
    **options,
) -> Robot:
    """Return a random robot with physical inertias.

    Parameters
    ----------
    rng : numpy Generator
        Source of randomness.
    kinds : sequence of str, optional
        Kind of the joint of each body; default one to eight joints of any kind.
    parents : sequence of int, optional
        Parent of each body, -1 for the world; default a random tree.
    aligned : bool
        Axes and placements along coordinate axes, as in datasheets.
    driven : bool
        About two thirds of the joints with one degree of freedom get motors with an armature of 0.01 to 10 kg m^2 or
        kg; everything else is the same as without.
    **options
        As for `Robot.build`.

    Returns
    -------
    Robot

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import testing
    >>> testing.random_robot(np.random.default_rng(0), ["revolute", "prismatic", "spherical"]).nv
    5
    """
    generator("rng", rng)
    aligned = flag("aligned", aligned)
    if kinds is None:
        kinds = [str(k) for k in rng.choice(KINDS, size=rng.integers(1, 9))]
    kinds = choices("kinds", kinds, KINDS, ordered=True)
    if parents is None:
        parents = [int(rng.integers(-1, i)) for i in range(len(kinds))]
    array = isinstance(parents, np.ndarray) and parents.ndim == 1
    numbers = (array or isinstance(parents, Sequence)) and all(isinstance(p, (int, np.integer)) for p in parents)
    if not numbers or len(parents) != len(kinds) or not all(-1 <= p < i for i, p in enumerate(parents)):
        raise ArgumentError(
            f"parents: expected for each of {len(kinds)} bodies a body before it or -1, got {shown(parents)}"
        )
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
    robot = Robot.build(bodies, **{"name": "random", **options})
    return robot.with_armature(random_armature(rng, robot)) if flag("driven", driven) else robot


def random_armature(rng: np.random.Generator, robot: Robot) -> np.ndarray:
    """Random armatures (nv,) as in `random_robot`."""
    generator("rng", rng)
    require_robot("robot", robot)
    single = np.array([joint.dof == 1 for joint in robot.coupling.independent_joints for _ in range(joint.dof)])
    armature = np.exp(rng.uniform(np.log(0.01), np.log(10.0), robot.nv))
    return np.where(single & (rng.random(robot.nv) < 2.0 / 3.0), armature, 0.0)


def _strategies():
    try:
        from hypothesis import strategies
    except ImportError:
        raise ImportError(
            "geomctrl.testing's strategies need hypothesis, which is not installed: pip install 'geomctrl[test]'"
        ) from None
    return strategies


def robots(
    kinds: Sequence[str] = KINDS,
    max_bodies: int = 8,
    *,
    floating_base: bool | None = False,
    chain: bool = False,
    aligned: bool | None = None,
    driven: bool | None = None,
) -> SearchStrategy[Robot]:
    """Return a hypothesis strategy for random physical robots, which shrinks to few and simple joints.

    Parameters
    ----------
    max_bodies : int
        Largest number of bodies.
    kinds : sequence of str
        Kinds of joints.
    floating_base : bool or None
        Whether the first body is on a free joint and carries all others (None: sometimes, among other roots).
    chain : bool
        Whether every body has one child.
    aligned : bool or None
        Whether axes and placements are along coordinate axes (None: sometimes).
    driven : bool or None
        Whether some joints with one degree of freedom have motors with armature (None: sometimes).

    Returns
    -------
    SearchStrategy
        A hypothesis strategy.

    Raises
    ------
    ArgumentError
        For missing or unknown `kinds` and for `max_bodies` below one.

    Examples
    --------
    >>> from hypothesis import HealthCheck, given, settings
    >>> from geomctrl import testing
    >>> @settings(max_examples=5, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    ... @given(testing.robots(["revolute", "prismatic"], max_bodies=2))
    ... def test_mass_matrix(robot):
    ...     assert robot.mass_matrix(robot.neutral()).shape == (robot.nv, robot.nv)
    >>> test_mass_matrix()
    """
    st = _strategies()
    kinds = choices("kinds", kinds, KINDS, ordered=True)  # a set has another order in each process
    max_bodies, chain = count("max_bodies", max_bodies, 1), flag("chain", chain)
    if not kinds:
        raise ArgumentError(f"kinds: expected some of {', '.join(KINDS)}, got none")
    floating_base = None if floating_base is None else flag("floating_base", floating_base)
    aligned = None if aligned is None else flag("aligned", aligned)
    driven = None if driven is None else flag("driven", driven)

    body = st.tuples(st.sampled_from(kinds), st.just(0) if chain else st.integers(0, max_bodies))

    @st.composite
    def robot(draw):
        bodies = draw(st.lists(body, min_size=1, max_size=max_bodies))  # one draw per body, removed as a whole
        joints = [kind for kind, _ in bodies]
        if draw(st.booleans()) if floating_base is None else floating_base:
            joints[0] = "free"
        roots = 0 if floating_base else 1  # whether further bodies may be attached to the world
        back = [min(k, i - 1 + roots) if i else 0 for i, (_, k) in enumerate(bodies)]  # shrinks to a chain
        parents = [i - 1 - k for i, k in enumerate(back)]
        straight = draw(st.booleans()) if aligned is None else aligned
        motors = draw(st.booleans()) if driven is None else driven
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        return random_robot(rng, joints, parents, aligned=straight, driven=motors)

    return robot()


def states(robot: Robot, velocities: int = 1) -> SearchStrategy[tuple[np.ndarray, ...]]:
    """Return a hypothesis strategy for (q, v), or (q, v, a, v_ref) with `velocities=3`.

    It shrinks to the robot at rest in its neutral configuration.

    Parameters
    ----------
    robot : Robot
        The robot. Its joints are moved by up to 3 [rad, m] along their screws.
    velocities : int
        Number of vectors (nv,) after q: velocities, accelerations or torques of up to 3 in steps of 1/1000 of it.

    Returns
    -------
    SearchStrategy
        A hypothesis strategy.

    Examples
    --------
    >>> from hypothesis import given, settings
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> @settings(max_examples=5, database=None)
    ... @given(gc.testing.states(arm))
    ... def test_sizes(state):
    ...     q, v = state
    ...     assert q.shape == v.shape == (2,)
    >>> test_sizes()
    """
    require_robot("robot", robot)
    vector = _vectors(robot)
    configuration = vector.map(lambda x: robot.integrate(robot.neutral(), x))
    return _strategies().tuples(configuration, *[vector] * count("velocities", velocities))


def _vectors(robot: Robot) -> SearchStrategy[np.ndarray]:
    st = _strategies()

    @st.composite
    def vector(draw):
        x = np.zeros(robot.nv)
        for i in range(robot.nv):
            k = draw(st.integers(0, 2001))  # 0: only zeros follow, so that a robot can lose joints while it shrinks
            if k == 0:
                break
            x[i] = (k // 2 if k % 2 == 0 else -(k // 2)) * MAX_COORDINATE / 1000
        return x

    return vector()
