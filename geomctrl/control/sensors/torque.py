"""`JointTorque`: torque sensors in the joints."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from geomctrl.arguments import choice
from geomctrl.robot import Robot

from .sensor import Sensor, Truth, numbers_of, some_numbers


class JointTorque(Sensor):
    """Measure the joint torques (nv,) [N m, N].

    Parameters
    ----------
    side : {"link", "motor"}
        "link" is behind the gears: the total torque of the joint on its link, from motor, springs and stops, minus
        friction and the inertia torque of the armature. "motor" is the actuator torque, as estimated from motor
        currents.
    bias : float or (nv,)
        Constant error [N m, N].
    noise : float or (nv,)
        Standard deviation per sample [N m, N].
    name : str
        The controller receives y[name], by default y["torque"].
    dt, delay, seed
        As for `Sensor`.

    Raises
    ------
    ArgumentError
        If `side` is unknown, or if a number has the wrong shape or sign.

    Examples
    --------
    >>> import geomctrl as gc
    >>> plant = gc.Plant(gc.models.two_link(), sensors=gc.sensors.JointTorque(noise=0.1))
    >>> plant.sensors[0].outputs(plant.robot)
    {'torque': (2,)}
    """

    def __init__(
        self,
        *,
        side: str = "link",
        bias: ArrayLike = 0.0,
        noise: ArrayLike = 0.0,
        dt: float | None = None,
        delay: float = 0.0,
        seed: int = 0,
        name: str = "torque",
    ):
        super().__init__(name, dt, delay, seed)
        self.side = choice("side", side, ("link", "motor"))
        self.bias, self.noise = some_numbers("bias", bias), some_numbers("noise", noise, 0.0)
        self.noisy = bool(self.noise.any())

    def check(self, plant: Any) -> None:
        for key in ("bias", "noise"):
            numbers_of(f"{self.name}: {key}", getattr(self, key), plant.robot.nv)

    def outputs(self, robot: Robot) -> dict[str, tuple[int, ...]]:
        return {self.name: (robot.nv,)}

    def draws(self, robot: Robot) -> int:
        return robot.nv * self.noisy

    def measure(self, truth: Truth, memory: Any, draws: Any, period: float) -> tuple[Any, Any]:
        if self.side == "link":
            tau = truth.net_torque - truth.plant.robot.armature * truth.acceleration
        else:
            tau = truth.tau
        tau = tau + self.bias
        return tau + self.noise * draws if self.noisy else tau, memory
