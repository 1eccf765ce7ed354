"""What a model can hold beside inertia and plain friction: friction curves, columns of one's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from geomctrl.arguments import checked, choice, count, flag, function, instance, number

SHAPES = {"sigmoid": "fs", "stribeck": "fb"}  # of friction curves, and the symbols of their amplitudes


@dataclass(frozen=True)
class Column:
    """A column of one's own: torque(q, v, a) (N, nv) is what one unit of the parameter adds to the torques [N m]."""

    name: str
    torque: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    positive: bool = False  # physically consistent estimators keep the parameter >= 0
    initial: float = 0.0

    def __post_init__(self):
        instance("name", self.name, str, "words")
        function("torque", self.torque, "(q, v, a)")
        flag("positive", self.positive)
        number("initial", self.initial)


@dataclass(frozen=True)
class Curve:
    """Friction of actuator number `actuator` beyond Coulomb's and viscous, one amplitude [N m] and a fixed `speed`
    [rad/s].

    shape="sigmoid": tanh(v / speed), friction that levels off; "stribeck": sign(v) exp(-(v / speed)^2), what standing
    friction exceeds Coulomb's by. `friction.fit_curves` finds the speeds.
    """

    actuator: int
    shape: str
    speed: float

    def __post_init__(self):
        count("actuator", self.actuator)
        choice("shape", self.shape, SHAPES)
        object.__setattr__(self, "speed", number("speed", self.speed, "a number > 0", lambda x: x > 0.0))

    @property
    def symbol(self) -> str:
        return f"{SHAPES[self.shape]}{self.actuator + 1}"

    def torque(self, v: np.ndarray, smoothing: float) -> np.ndarray:
        """Of unit amplitude, like v."""
        v, smoothing = checked("v", v, ()), number("smoothing", smoothing, "a speed >= 0", lambda x: x >= 0.0)
        u = v / self.speed
        if self.shape == "sigmoid":
            return np.tanh(u)
        return coulomb(v, smoothing) * np.exp(-(u**2))

    def torque_by_log_speed(self, v: np.ndarray, smoothing: float) -> np.ndarray:
        """Derivative of `torque` by log(speed)."""
        v, smoothing = checked("v", v, ()), number("smoothing", smoothing, "a speed >= 0", lambda x: x >= 0.0)
        u = v / self.speed
        if self.shape == "sigmoid":
            return -u / np.cosh(np.clip(u, -300.0, 300.0)) ** 2
        return 2.0 * u**2 * self.torque(v, smoothing)


def coulomb(v: np.ndarray, smoothing: float) -> np.ndarray:
    """Friction of unit amplitude: sign(v), or tanh(v / smoothing) where smoothing > 0 [rad/s]."""
    return np.sign(v) if smoothing == 0.0 else np.tanh(v / smoothing)
