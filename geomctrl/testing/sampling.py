"""Where properties are looked at: random states, and derivatives along motions through them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from geomctrl.arguments import count
from geomctrl.mechanism.mechanism import require_robot
from geomctrl.robot import Robot


def random_states(robot: Robot, states: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(q, v, a) so many times, always the same ones for a seed."""
    require_robot("robot", robot)
    states, rng = count("states", states, 1), np.random.default_rng(count("seed", seed))
    for _ in range(states):
        yield robot.random_configuration(rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)


def at_state(q: np.ndarray, v: np.ndarray) -> str:
    """The state (q, v) written out, for messages."""
    return f"at q = {np.array2string(q, separator=', ')}, v = {np.array2string(v, separator=', ')}"


def derivative(f: Callable[[float], Any], h: float = 1e-3) -> Any:
    """df/dt at t = 0 of a smooth f(t), a number or an array: the sixth-order central difference over +-3h."""
    return sum(w * (f(k * h) - f(-k * h)) for k, w in ((1, 45.0), (2, -9.0), (3, 1.0))) / (60.0 * h)
