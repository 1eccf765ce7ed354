"""The contract of a sensor."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, count, number
from geomctrl.described import Described
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot


class Truth(NamedTuple):
    """What is true at a sample: the state, the command that was at work up to then, the plant's own state x (None
    without), and the plant as it is now."""

    t: float
    q: np.ndarray
    v: np.ndarray
    command: np.ndarray
    x: Any
    plant: Any

    @property
    def tau(self) -> np.ndarray:
        """The torques (nv,) at the joints."""
        return self.plant._applied(*self[:5])

    @property
    def net_torque(self) -> np.ndarray:
        """The torques (nv,) that move the robot: those less what friction, springs and stops take."""
        return self.plant._net(*self[:5])

    @property
    def acceleration(self) -> np.ndarray:
        """vdot (nv,) under them."""
        return self.plant.acceleration(*self[:5])


class Sensor(Described):
    """Something that measures at samples. The implementer's contract:

    1. `name` says whose noise it is: two sensors of a plant have two names. `dt` is its period [s], None that of the
       controller; `delay` [s] how much later the controller knows; `seed` that of the noise. `__init__` takes them.
    2. `check(plant)` raises ArgumentError where the sensor does not fit the plant; called when the plant is made.
    3. `outputs(robot)` names what is measured, {name: shape}. "q" (nq,) and "v" (nv,) are what a law is called with in
       the place of the truth; a law whose attribute `measurements` is True is called as law(t, q, v, z, y) with all of
       them, y[name]. A run keeps them as `run.measured`.
    4. `draws(robot)` is how many standard normal numbers it wants a sample.
    5. `start(truth, period)` is its memory before the first sample, (m,) numbers, which has settled.
    6. `measure(truth, memory, draws, period)` returns (measurements in one array, as `outputs` lists them; the memory
       until the next sample), by Python, numpy and math on numbers and arrays: compiled loops trace it. It may
       depend on nothing else, and write on nothing.
    7. `between(robot, y0, y1, s)` is what was measured at the fraction s from y0 to y1, for delays that are no multiple
       of the period; a straight line unless overridden.
    """

    def __init__(self, name: str, dt: float | None = None, delay: float = 0.0, seed: int = 0):
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"name: expected a word, got {name!r:.60}")
        self.name = name
        self.dt = None if dt is None else number("dt", dt, "None or seconds > 0", lambda x: x > 0.0)
        self.delay = number("delay", delay, "seconds >= 0", lambda x: x >= 0.0)
        self.seed = count("seed", seed)
        self.keys = round_keys(self.seed, name)

    def check(self, plant: Any) -> None:
        """Raise ArgumentError where the sensor does not fit the plant; rule 2."""

    def outputs(self, robot: Robot) -> dict[str, tuple[int, ...]]:
        """What is measured, {name: shape}; rule 3."""
        raise NotImplementedError

    def draws(self, robot: Robot) -> int:
        """How many standard normal numbers a sample takes; rule 4."""
        return 0

    def start(self, truth: Truth, period: float) -> np.ndarray:
        """The memory (m,) before the first sample; rule 5."""
        return np.zeros(0)

    def measure(
        self, truth: Truth, memory: np.ndarray, draws: np.ndarray, period: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """(the measurements in one array, the memory until the next sample); rule 6."""
        raise NotImplementedError

    def between(self, robot: Robot, y0: np.ndarray, y1: np.ndarray, s: float) -> np.ndarray:
        """What was measured at the fraction s of the time from y0 to y1; rule 7."""
        return (1.0 - s) * y0 + s * y1


def some_numbers(name: str, x: ArrayLike, least: float = -np.inf) -> np.ndarray:
    """A number or one a coordinate, () or (n,), none below `least`, as a new array; errors name the argument `name`."""
    a = checked(name, x, ())
    if a.ndim > 1 or not a.size or (a < least).any():
        expected = "a number" if least == -np.inf else f"a number >= {least:g}"
        raise ArgumentError(f"{name}: expected {expected}, or one for each coordinate, got {x!r:.80}")
    return a.copy()


def numbers_of(name: str, x: ArrayLike, n: int, least: float = -np.inf) -> np.ndarray:
    """(n,) numbers from one or n, none below `least`; errors name the argument `name`."""
    a = some_numbers(name, x, least)
    if a.shape not in ((), (n,)):
        raise ArgumentError(f"{name}: expected a number or {n} of them, got shape {a.shape}")
    return np.broadcast_to(a, n).copy()


ROUNDS = 16
WORD, HALF = 2.0**24, 2.0**12
GOLDEN = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio
WEYL = 0x9E3779, 0xBB67AE  # the golden ratio, the square root of three less one


def round_keys(seed: int, stream: str) -> np.ndarray:
    """(ROUNDS, 2) whole numbers: the keys of a stream of noise. seed: a whole number from 0 on."""
    x = count("seed", seed) * GOLDEN + zlib.crc32(stream.encode()) * 0xD1B54A32D192ED03
    for shift, multiplier in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):  # the end of splitmix64
        x %= 2**64
        x = (x ^ x >> shift) * multiplier
    start = x & 0xFFFFFF, x >> 24 & 0xFFFFFF
    return np.array([[(a + k * w) % 2**24 for a, w in zip(start, WEYL)] for k in range(ROUNDS)], float)


def normals(keys: np.ndarray, sample: Any, n: int) -> np.ndarray:
    """(..., n) independent standard normal numbers of samples (...,), whole numbers from 0 on, or symbols."""
    pairs = np.arange((n + 1) // 2, dtype=float)
    c0 = np.asarray(sample)[..., None] + 0.0 * pairs
    high = np.floor(c0 / WORD)
    c0, c1, c2, c3 = c0 - WORD * high, high, pairs + 0.0 * c0, 0.0 * c0
    for k0, k1 in keys:
        c0, c1, c2, c3 = _wrapped(c1 + _middle(c0 + k0)), c2, _wrapped(c3 + _middle(c2 + k1)), c0
    radius = np.sqrt(-2.0 * np.log((c0 + (c1 + 0.5) / WORD) / WORD))
    angle = (2.0 * np.pi) * ((c2 + c3 / WORD) / WORD)
    both = np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=-1)
    return both.reshape(*both.shape[:-2], 2 * len(pairs))[..., :n]


def _middle(x: Any) -> Any:
    """The middle word of the square of a word."""
    x = _wrapped(x)
    square = x * x
    return np.floor(square / HALF) - WORD * np.floor(square / (HALF * WORD))


def _wrapped(x: Any) -> Any:
    return x - WORD * np.floor(x / WORD)
