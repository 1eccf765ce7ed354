"""`ElasticPlant`: a robot with elastic joints, simulated with its motor coordinates (Spong 1987).

A spring connects the motor and the link of each joint. With link coordinates q, motor coordinates theta (after the
gears), stiffness K and rotor inertia B per joint

    M(q) a + C(q, v) v + g(q) = K (theta - q),        B theta'' + K (theta - q) = tau_m.

All joints have one degree of freedom.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, shown
from geomctrl.errors import ArgumentError
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint
from geomctrl.mechanism.mechanism import require_free_joints, require_robot
from geomctrl.robot import Robot

from .actuators.actuator import Actuator
from .friction.model import FrictionModel
from .plant import Plant


def per_joint(name: str, x: ArrayLike, n: int) -> np.ndarray:
    """A number or n numbers as n positive numbers, one per joint; errors name the argument `name`."""
    a = checked(name, x, ())
    if a.shape not in ((), (n,)) or (a <= 0.0).any():
        raise ArgumentError(f"{name}: expected a positive number or {n} of them, one per joint, got {shown(x)}")
    return np.broadcast_to(a, n).copy()


def with_rotors(robot: Robot, rotor: ArrayLike) -> Robot:
    """The robot and its n rotors as 2n bodies, with configuration (q, theta) and mass matrix diag(M(q), B).

    rotor: inertia B per joint after the gears [kg m^2, kg], a number or (nv,). Rotors spin about axes fixed in the
    world: Spong neglects the motion of their housings with the links, which is accurate for high gear ratios. They
    replace the robot's armature.
    """
    require_robot("robot", robot)
    require_free_joints("elastic joints", robot)
    if robot.nq != robot.nv or any(joint.dof != 1 for joint in robot.joints):
        wide = next(joint.name for joint in robot.joints if joint.dof != 1)
        raise ArgumentError(
            f"robot: elastic joints must have one degree of freedom, {wide!r} of {robot.name!r} has more"
        )
    B = per_joint("rotor", rotor, robot.nv)
    robot = robot.with_armature(0.0)
    names = [robot.body_names[p] if p >= 0 else None for p in robot.parents]
    bodies = [Body(*x) for x in zip(robot.body_names, names, robot.joints, robot.placements, robot.parameters)]
    for joint, b in zip(robot.joints, B):
        spin = Joint.revolute((0, 0, 1), name=f"{joint.name}_rotor")
        load = inertia.from_com(b, (0, 0, 0), b * np.eye(3))  # the mass is on the axis at height zero: no gravity load
        bodies.append(Body(f"{joint.name}_rotor", None, spin, None, load))
    own = (*robot.body_names, "world")
    frames = [
        (f.name, robot.body_names[f.body] if f.body >= 0 else "world", f.placement)
        for f in robot.frames
        if f.name not in own
    ]
    return Robot.build(
        bodies, name=f"{robot.name} with elastic joints", gravity=robot.gravity, frames=frames, physical=False
    )


class ElasticPlant(Plant):
    """The true robot with elastic joints: configuration (q, theta), torques (2 nv,) on links and motors.

    Parameters
    ----------
    robot : Robot
        The rigid robot.
    stiffness : float or (nv,)
        K [N m/rad, N/m].
    rotor : float or (nv,)
        Rotor inertia B after the gears [kg m^2, kg].
    friction, f_ext, actuators
        As for `Plant`, for the 2 nv coordinates and the bodies of `with_rotors`. The load of a link's friction is the
        spring torque, that of a motor's friction is the motor torque.

    Notes
    -----
    The first nv torques act on the links and are usually zero. A controller that measures and commands only the link
    coordinates runs on `Plant(robot, actuators=SeriesElasticity(...))`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> plant = gc.control.ElasticPlant(gc.models.two_link(), stiffness=2000.0, rotor=0.1)
    >>> plant.robot.nv, plant.inputs
    (4, 4)
    """

    links: Robot
    stiffness: np.ndarray

    def __init__(
        self,
        robot: Robot,
        stiffness: ArrayLike,
        rotor: ArrayLike,
        friction: FrictionModel | Sequence[FrictionModel] | str | None = "model",
        f_ext=None,
        *,
        actuators: Sequence[Actuator] | Actuator = (),
    ):
        super().__init__(with_rotors(robot, rotor), friction, f_ext, actuators=actuators)
        object.__setattr__(self, "links", robot.with_armature(0.0))
        object.__setattr__(self, "stiffness", per_joint("stiffness", stiffness, robot.nv))

    def _load(self, q, tau):
        n = len(self.stiffness)
        return np.concatenate((tau[:n] + self.stiffness * (q[n:] - q[:n]), tau[n:]))

    def net_torque(self, t, q, v, tau, x):
        n = len(self.stiffness)
        spring = self.stiffness * (q[n:] - q[:n])
        return super().net_torque(t, q, v, tau + np.concatenate((spring, -spring)), x)
