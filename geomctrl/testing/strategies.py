"""Strategies for hypothesis: physical robots, random and bundled, and states of a robot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from geomctrl import models
from geomctrl.arguments import count, flag, number
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.mechanism import require_robot
from geomctrl.robot import Robot

from .random_robots import KINDS, known_kinds, random_inertia, random_robot

if TYPE_CHECKING:  # an optional dependency
    from hypothesis.strategies import SearchStrategy


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
    driven: bool | None = None,
) -> SearchStrategy[Robot]:
    """Random physical robots of one to `max_bodies` bodies on joints of `kinds`, shrinking to few and simple joints.

    `floating_base` puts the first body on a free joint and all others on it (None: sometimes, among other roots);
    `chain` gives every body one child;
    `aligned` axes and placements lie along coordinate axes (None: sometimes);
    `driven` robots have motors with armature at some joints with one degree of freedom (None: sometimes).
    Raises ArgumentError for no or unknown `kinds` and for `max_bodies` below one.
    """
    st = _strategies()
    kinds, max_bodies, chain = known_kinds(kinds), count("max_bodies", max_bodies, 1), flag("chain", chain)
    if not kinds:
        raise ArgumentError(f"kinds: expected some of {', '.join(map(repr, KINDS))}, got none")
    floating_base = None if floating_base is None else flag("floating_base", floating_base)
    aligned = None if aligned is None else flag("aligned", aligned)
    driven = None if driven is None else flag("driven", driven)

    body = st.tuples(st.sampled_from(kinds), st.just(0) if chain else st.integers(0, max_bodies))

    @st.composite
    def robot(draw):
        bodies = draw(st.lists(body, min_size=1, max_size=max_bodies))  # a body's choices together: they go together
        joints = [kind for kind, _ in bodies]
        if draw(st.booleans()) if floating_base is None else floating_base:
            joints[0] = "free"
        roots = 0 if floating_base else 1  # further bodies that may hang on the world
        back = [min(k, i - 1 + roots) if i else 0 for i, (_, k) in enumerate(bodies)]  # shrinks to a chain
        parents = [i - 1 - k for i, k in enumerate(back)]
        straight = draw(st.booleans()) if aligned is None else aligned
        motors = draw(st.booleans()) if driven is None else driven
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        return random_robot(rng, joints, parents, aligned=straight, driven=motors)

    return robot()


def bundled_robots() -> SearchStrategy[Robot]:
    """The robots of `geomctrl.models`, shrinking to the two-link arm."""
    return _strategies().sampled_from(models.names()).map(models.load)


def velocities(robot: Robot, bound: float = 3.0) -> SearchStrategy[np.ndarray]:
    """Velocities, accelerations or torques (nv,) within `bound`, in thousandths of it, shrinking to zero."""
    st = _strategies()
    require_robot("robot", robot)
    bound = number("bound", bound, "a number > 0", lambda x: x > 0.0)

    @st.composite
    def velocity(draw):
        x = np.zeros(robot.nv)
        for i in range(robot.nv):
            k = draw(st.integers(0, 2001))  # 0: zeros from here on, so that a robot can lose joints while it shrinks
            if k == 0:
                break
            x[i] = (k // 2 if k % 2 == 0 else -(k // 2)) * bound / 1000
        return x

    return velocity()


def configurations(robot: Robot) -> SearchStrategy[np.ndarray]:
    """Configurations (nq,): every joint moved by up to 3 [rad, m] along its screws, shrinking to neutral."""
    return velocities(robot).map(lambda x: robot.integrate(robot.neutral(), x))


def states(robot: Robot) -> SearchStrategy[tuple[np.ndarray, np.ndarray]]:
    """(q, v)."""
    return _strategies().tuples(configurations(robot), velocities(robot))


def motions(robot: Robot) -> SearchStrategy[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """(q, v, a, v_ref): what inverse dynamics with a reference velocity takes."""
    return _strategies().tuples(configurations(robot), *(velocities(robot) for _ in range(3)))
