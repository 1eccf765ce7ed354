"""`Sensor`: the base class of sensors, with `Truth`, what they measure, and their reproducible noise."""

from __future__ import annotations

import copy
import zlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, count, number, shown
from geomctrl.described import ReadableRepr
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.checks import check_text
from geomctrl.robot import Robot


class Truth(NamedTuple):
    """True quantities at a sample.

    Attributes
    ----------
    t : float
        Time [s].
    q, v : array (nq,), (nv,)
        State of the robot.
    command : array (inputs,)
        Command that was applied until now.
    x : array (nx,) or None
        State of the plant; None without one.
    plant : Plant

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> truth = gc.sensors.Truth(0.0, np.zeros(2), np.array([1.0, 2.0]), np.zeros(2), None, gc.Plant(arm))
    >>> gc.sensors.Encoder(bits=12, tachometer=0.0).measure(truth, np.zeros(2), np.zeros(4), 0.001)[0]
    array([0., 0., 1., 2.])
    """

    t: float
    q: np.ndarray
    v: np.ndarray
    command: np.ndarray
    x: Any
    plant: Any

    @property
    def tau(self) -> np.ndarray:
        """The actuator torques (nv,) at the joints."""
        return self.plant._applied(*self[:5])

    @property
    def net_torque(self) -> np.ndarray:
        """The torques (nv,) that move the robot, after friction, springs and stops."""
        return self.plant._net(*self[:5])

    @property
    def acceleration(self) -> np.ndarray:
        """vdot (nv,) under the net torque."""
        return self.plant.acceleration(*self[:5])


class Sensor(ReadableRepr):
    """Base class of sensors, which measure at samples. A subclass follows these rules:

    1. `__init__` takes `name`, which also selects the noise (the sensors of a plant have distinct names), the period
       `dt` [s] (None for that of the controller), the `delay` [s] until the controller receives a measurement, and the
       `seed` of the noise.
    2. `check(plant)` raises ArgumentError if the sensor does not fit the plant. Creating the plant calls it.
    3. `outputs(robot)` returns {name: shape}. Outputs "q" (nq,) and "v" (nv,) replace the true values in the calls of
       the controller. A controller with `measurements = True` is called as law(t, q, v, z, y), where y[name] is the
       output `name`. A run stores all outputs as `run.measured`.
    4. `draws(robot)` returns the number of standard normal random numbers per sample.
    5. `start(truth, period)` returns the initial memory (m,), in steady state.
    6. `measure(truth, memory, draws, period)` returns all outputs in one array, in the order of `outputs`, and the
       memory for the next sample. It uses Python, numpy and math on numbers and arrays, because compiled loops trace
       it. It depends on nothing but its arguments and modifies nothing.
    7. `between(robot, y0, y1, s)` interpolates at the fraction s from y0 to y1, for delays that are no multiple of the
       period; linearly unless overridden.

    Parameters
    ----------
    name : str
        Name in `run.measured`, distinct among the sensors of a plant.
    dt : float, optional
        Sampling period [s]. Default: the controller's.
    delay : float
        Time [s] from a measurement until the controller receives it. Default: 0.
    seed : int
        Seed of the noise. Default: 0.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> class Potentiometer(gc.sensors.Sensor):
    ...     def outputs(self, robot):
    ...         return {"q": (robot.nq,)}
    ...
    ...     def draws(self, robot):
    ...         return robot.nq
    ...
    ...     def measure(self, truth, memory, draws, period):
    ...         return truth.q + 1e-3 * draws, memory  # noise of 1 mrad
    >>> plant = gc.Plant(gc.models.two_link(), sensors=Potentiometer("potentiometer", seed=1))
    >>> law = gc.controllers.PDGravity(plant.robot, [0.0, 0.0], kp=50.0, kd=10.0)
    >>> run = gc.simulate(plant, law, [0.1, 0.0], [0.0, 0.0], t_end=0.01, dt=1e-3, control_dt=1e-3)
    >>> bool(0.0 < np.abs(run.measured["q"] - run.q).max() < 6e-3)
    True
    """

    def __init__(self, name: str, dt: float | None = None, delay: float = 0.0, seed: int = 0):
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"name: expected a word, got {shown(name)}")
        check_text("name", name)
        self.name = name
        self.dt = None if dt is None else number("dt", dt, "None or seconds > 0", lambda x: x > 0.0)
        self.delay = number("delay", delay, "seconds >= 0", lambda x: x >= 0.0)
        self._seed = words_of(count("seed", seed))
        self.keys = round_keys(self.seed, name)

    @property
    def seed(self) -> int:
        """The seed of the noise. It is kept as floats, so that loops with other seeds share compiled code."""
        return sum((int(word) - 1) * int(WORD) ** k for k, word in enumerate(self._seed.tolist()))

    def _with_seed(self, seed: int) -> Sensor:
        """Return the same sensor with the noise of another seed."""
        other = copy.copy(self)
        other._seed, other.keys = words_of(seed), round_keys(seed, self.name)
        return other

    def check(self, plant: Any) -> None:
        """Check that the sensor fits a plant (rule 2).

        Parameters
        ----------
        plant : Plant
            The plant.

        Raises
        ------
        ArgumentError
            If it does not.
        """

    def outputs(self, robot: Robot) -> dict[str, tuple[int, ...]]:
        """Return what the sensor measures (rule 3).

        Parameters
        ----------
        robot : Robot
            The true robot.

        Returns
        -------
        dict of str to tuple of int
            {name: shape} of each output.
        """
        raise NotImplementedError

    def draws(self, robot: Robot) -> int:
        """Return the number of standard normal random numbers per sample (rule 4).

        Parameters
        ----------
        robot : Robot
            The true robot.

        Returns
        -------
        int
        """
        return 0

    def start(self, truth: Truth, period: float) -> np.ndarray:
        """Return the initial memory (m,) (rule 5)."""
        return np.zeros(0)

    def measure(
        self, truth: Truth, memory: np.ndarray, draws: np.ndarray, period: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Measure at a sample (rule 6).

        Parameters
        ----------
        truth : Truth
            True quantities at the sample.
        memory : array (m,)
            Memory from the sample before.
        draws : array (draws,)
            Standard normal random numbers.
        period : float
            Sampling period [s].

        Returns
        -------
        outputs : array
            All outputs, in the order of `outputs`.
        memory : array (m,)
            For the next sample.
        """
        raise NotImplementedError

    def between(self, robot: Robot, y0: np.ndarray, y1: np.ndarray, s: float) -> np.ndarray:
        """Interpolate between the outputs of two samples, for delays that are no multiple of the period (rule 7).

        Parameters
        ----------
        robot : Robot
            The true robot.
        y0, y1 : array
            Outputs of two samples.
        s : float
            Fraction from y0 to y1, 0 to 1.

        Returns
        -------
        array
            Outputs.
        """
        return (1.0 - s) * y0 + s * y1


def some_numbers(name: str, x: ArrayLike, least: float = -np.inf) -> np.ndarray:
    """x () or (n,) as a new array with no entry below `least`; errors name the argument `name`."""
    a = checked(name, x, ())
    if a.ndim > 1 or not a.size or (a < least).any():
        expected = "a number" if least == -np.inf else f"a number >= {least:g}"
        raise ArgumentError(f"{name}: expected {expected}, or one for each coordinate, got {shown(x)}")
    return a.copy()


def numbers_of(name: str, x: ArrayLike, n: int, least: float = -np.inf) -> np.ndarray:
    """x, a number or (n,), as (n,) with no entry below `least`; errors name the argument `name`."""
    a = some_numbers(name, x, least)
    if a.shape not in ((), (n,)):
        raise ArgumentError(f"{name}: expected a number or {n} of them, got shape {a.shape}")
    return np.broadcast_to(a, n).copy()


ROUNDS = 16
WORD, HALF = 2.0**24, 2.0**12
GOLDEN = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio
WEYL = 0x9E3779, 0xBB67AE  # the golden ratio, the square root of three less one


def words_of(seed: int) -> np.ndarray:
    """Digits of 24 bits of a number, lowest first, each increased by one, because zeros are constants in traces."""
    return np.array([(seed >> 24 * k) % int(WORD) + 1 for k in range(3)], float)


def round_keys(seed: int, stream: str) -> np.ndarray:
    """Keys (ROUNDS, 2) of a noise stream, integers. seed: a nonnegative integer."""
    x = count("seed", seed) * GOLDEN + zlib.crc32(stream.encode()) * 0xD1B54A32D192ED03
    for shift, multiplier in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):  # the end of splitmix64
        x %= 2**64
        x = (x ^ x >> shift) * multiplier
    start = x & 0xFFFFFF, x >> 24 & 0xFFFFFF
    return np.array([[(a + k * w) % 2**24 for a, w in zip(start, WEYL)] for k in range(ROUNDS)], float)


def normals(keys: np.ndarray, sample: Any, n: int) -> np.ndarray:
    """(..., n) independent standard normal numbers for samples (...,), which are nonnegative integers or symbols."""
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
    """The middle 32 bits of the square of a 32-bit word."""
    x = _wrapped(x)
    square = x * x
    return np.floor(square / HALF) - WORD * np.floor(square / (HALF * WORD))


def _wrapped(x: Any) -> Any:
    return x - WORD * np.floor(x / WORD)
