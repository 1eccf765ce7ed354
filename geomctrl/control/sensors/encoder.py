"""`Encoder`: joint position in counts, and velocity from differences or a tachometer."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import count, number, shown
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.configuration import joint_coordinates, single_coordinates
from geomctrl.robot import Robot

from .sensor import Sensor, Truth, numbers_of, some_numbers


class Encoder(Sensor):
    """Measure q with quantisation, offset and noise, and v from filtered differences of q or with a tachometer.

    Parameters
    ----------
    bits : int, optional
        Resolution of 2^bits counts per turn. Give either `bits` or `resolution`.
    resolution : float or (nv,), optional
        Size of one count [rad, m]; zero for no quantisation. Joints with several degrees of freedom have no counts:
        their entries must be zero, and a single number does not apply to them.
    offset : float or (nv,)
        Constant error of q [rad, m]. Default 0.
    noise : float or (nv,)
        Standard deviation of q per sample, added before quantisation [rad, m]. Default 0.
    tachometer : float, (nv,) or None
        Standard deviation of a velocity measurement [rad/s, m/s]; None (default) computes v from differences of q.
    cutoff : float or None
        Cut-off frequency of the first-order low-pass filter of differences [Hz]; None (default) for no filter.
    dt, delay, seed, name
        As for `Sensor`.

    Raises
    ------
    ArgumentError
        If a number has the wrong shape or sign, or if options exclude each other.

    Notes
    -----
    On joints with several degrees of freedom, offset and noise are in the algebra: q exp(offset + noise). The filter
    v+ = v + (1 - exp(-2 pi cutoff period)) (dq/period - v) has the step response of its analog counterpart at the
    samples. It starts in steady state at the true velocity.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> encoder = gc.sensors.Encoder(bits=12, cutoff=50.0, noise=1e-4)
    >>> plant = gc.Plant(gc.models.two_link(), sensors=encoder)  # calls encoder.check(plant)
    >>> encoder.outputs(plant.robot), encoder.draws(plant.robot)
    ({'q': (2,), 'v': (2,)}, 2)
    >>> encoder.between(plant.robot, np.zeros(4), np.ones(4), 0.25)
    array([0.25, 0.25, 0.25, 0.25])
    >>> truth = gc.sensors.Truth(0.0, np.zeros(2), np.array([1.0, 2.0]), np.zeros(2), None, plant)
    >>> gc.sensors.Encoder(bits=12, tachometer=0.0).measure(truth, np.zeros(2), np.zeros(4), 0.001)[0]
    array([0., 0., 1., 2.])
    """

    def __init__(
        self,
        bits: int | None = None,
        *,
        resolution: ArrayLike = 0.0,
        offset: ArrayLike = 0.0,
        noise: ArrayLike = 0.0,
        cutoff: float | None = None,
        tachometer: ArrayLike | None = None,
        dt: float | None = None,
        delay: float = 0.0,
        seed: int = 0,
        name: str = "encoder",
    ):
        super().__init__(name, dt, delay, seed)
        self.resolution, self.noise = some_numbers("resolution", resolution, 0.0), some_numbers("noise", noise, 0.0)
        if bits is not None:
            if self.resolution.any():
                raise ArgumentError(f"bits, resolution: expected one of them, got {bits!r} and {shown(resolution)}")
            self.resolution = np.array(2.0 * pi / 2.0 ** count("bits", bits, 1, 52))
        self.offset = some_numbers("offset", offset)
        self.tachometer = None if tachometer is None else some_numbers("tachometer", tachometer, 0.0)
        self.cutoff = None if cutoff is None else number("cutoff", cutoff, "None or Hz > 0", lambda x: x > 0.0)
        if tachometer is not None and cutoff is not None:
            raise ArgumentError(f"cutoff: expected None, as a tachometer measures the velocity, got {cutoff!r}")
        self.counted = tuple((self.resolution > 0.0).ravel().tolist())  # a tuple of bool, because it selects a trace
        self.noisy = bool(self.noise.any())
        self.noisy_velocity = self.tachometer is not None and bool(self.tachometer.any())

    def check(self, plant: Any) -> None:
        robot = plant.robot
        for key in ("resolution", "offset", "noise", "tachometer"):
            if getattr(self, key) is not None:
                numbers_of(f"{self.name}: {key}", getattr(self, key), robot.nv)
        wide = ~np.isin(np.arange(robot.nv), single_coordinates(robot)[1])
        if self.resolution.ndim and self.resolution[wide].any():
            raise ArgumentError(
                f"{self.name}: resolution: expected 0 for joints with several degrees of freedom, got {self.resolution}"
            )

    def outputs(self, robot: Robot) -> dict[str, tuple[int, ...]]:
        return {"q": (robot.nq,), "v": (robot.nv,)}

    def draws(self, robot: Robot) -> int:
        return (self.noisy + self.noisy_velocity) * robot.nv

    def start(self, truth: Truth, period: float) -> np.ndarray:
        if self.tachometer is not None:
            return np.zeros(0)
        robot = truth.plant.robot
        before = robot.integrate(truth.q, -period * truth.v)
        return np.concatenate((self._position(robot, before, np.zeros(robot.nv)), truth.v))

    def measure(self, truth: Truth, memory: Any, draws: Any, period: float) -> tuple[Any, Any]:
        robot: Robot = truth.plant.robot
        q = self._position(robot, truth.q, draws[: robot.nv])
        if self.tachometer is not None:
            v = truth.v + self.tachometer * draws[-robot.nv :] if self.noisy_velocity else truth.v
            return np.concatenate((q, v)), memory
        before, v = memory[: robot.nq], memory[robot.nq :]
        speed = robot.difference(before, q) * (1.0 / period)
        v = speed if self.cutoff is None else v + (1.0 - np.exp(-2.0 * pi * period * self.cutoff)) * (speed - v)
        return np.concatenate((q, v)), np.concatenate((q, v))

    def _position(self, robot: Robot, q: Any, draws: Any) -> Any:
        """q with offset, noise and quantisation."""
        away = self.offset + self.noise * draws if self.noisy else self.offset + np.zeros(robot.nv)
        q, steps, parts = robot.integrate(q, away), self.resolution + np.zeros(robot.nv), []
        counted = self.counted * robot.nv if len(self.counted) == 1 else self.counted
        for joint, coordinate, rate in joint_coordinates(robot):
            in_counts = joint.dof == 1 and counted[rate.start]
            parts.append(steps[rate] * np.floor(q[coordinate] / steps[rate] + 0.5) if in_counts else q[coordinate])
        return np.concatenate(parts)

    def between(self, robot: Robot, y0: Any, y1: Any, s: float) -> Any:
        q = robot.integrate(y0[: robot.nq], s * robot.difference(y0[: robot.nq], y1[: robot.nq]))
        return np.concatenate((q, super().between(robot, y0[robot.nq :], y1[robot.nq :], s)))
