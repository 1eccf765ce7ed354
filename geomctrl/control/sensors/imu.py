"""`IMU`: an inertial measurement unit at a frame of the robot."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import shown
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot

from .sensor import Sensor, Truth, numbers_of


class IMU(Sensor):
    """Measure angular velocity and specific force (6,) [rad/s, m/s^2] at the origin of a frame, in its axes.

    Parameters
    ----------
    frame : str
        Name of the frame.
    bias : float or (6,)
        Constant error.
    noise : float or (6,)
        Standard deviation per sample.
    name : str
        The controller receives y[name], by default y["imu"].
    dt, delay, seed
        As for `Sensor`.

    Raises
    ------
    ArgumentError
        If a number has the wrong shape or sign.

    Notes
    -----
    The specific force is acceleration minus gravity; at rest it points up. The acceleration is that at the sample,
    under the torques applied before it.

    Examples
    --------
    >>> import geomctrl as gc
    >>> plant = gc.Plant(gc.models.two_link(), sensors=gc.sensors.IMU("tip", noise=0.01))
    >>> plant.sensors[0].outputs(plant.robot)
    {'imu': (6,)}
    """

    def __init__(
        self,
        frame: str,
        *,
        bias: ArrayLike = 0.0,
        noise: ArrayLike = 0.0,
        dt: float | None = None,
        delay: float = 0.0,
        seed: int = 0,
        name: str = "imu",
    ):
        super().__init__(name, dt, delay, seed)
        if not isinstance(frame, str) or not frame:
            raise ArgumentError(f"frame: expected the name of a frame, got {shown(frame)}")
        self.frame = frame
        self.bias, self.noise = numbers_of("bias", bias, 6), numbers_of("noise", noise, 6, 0.0)
        self.noisy = bool(self.noise.any())

    def check(self, plant: Any) -> None:
        plant.robot.frame(self.frame)

    def outputs(self, robot: Robot) -> dict[str, tuple[int, ...]]:
        return {self.name: (6,)}

    def draws(self, robot: Robot) -> int:
        return 6 * self.noisy

    def measure(self, truth: Truth, memory: Any, draws: Any, period: float) -> tuple[Any, Any]:
        robot: Robot = truth.plant.robot
        q, v = truth.q, truth.v
        jacobian = robot.jacobian(q, self.frame)
        twist = jacobian @ v
        rate = jacobian @ truth.acceleration + robot.jacobian_rate(q, v, self.frame) @ v
        up = robot.pose(q, self.frame)[:3, :3].T @ -robot.gravity
        force = rate[3:] + np.cross(twist[:3], twist[3:]) + up
        y = np.concatenate((twist[:3], force)) + self.bias
        return y + self.noise * draws if self.noisy else y, memory
