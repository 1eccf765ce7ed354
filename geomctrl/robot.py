"""Robot: a mechanism with the terms of its equations of motion as methods, one line a term."""

import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from geomctrl.errors import ArgumentError
from geomctrl.mechanism import building, configuration
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.other_names import ON_ROBOT, missing_attribute
from geomctrl.terms import bounds, derivatives, dynamics, export, inverse_kinematics, kinematics, regressor


class _RobotType(type):
    """Attributes of the class itself: `Robot.mass_matrix(robot, q)`. Calls on an instance never come here."""

    def __getattribute__(cls, name: str):
        value = super().__getattribute__(name)
        return value if name.startswith("_") or not inspect.isfunction(value) else _of_a_robot(value)

    def __getattr__(cls, name: str):
        raise AttributeError(missing_attribute(cls.__name__, name, ON_ROBOT, [] if name.startswith("__") else dir(cls)))


@functools.cache
def _of_a_robot(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, with an ArgumentError for a first argument that is no robot."""

    @functools.wraps(method)
    def checked(robot: Mechanism, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(robot, Mechanism):
            raise ArgumentError(f"robot: expected a Robot, got {robot!r:.80}; call it as robot.{method.__name__}(...)")
        return method(robot, *args, **kwargs)

    return checked


class Robot(Mechanism, metaclass=_RobotType):
    """A tree of rigid bodies with its equations of motion as methods; frozen.

    Make one with `geomctrl.load_urdf`, `geomctrl.load_mjcf`, `geomctrl.models`, `Robot.build` or `Robot.from_dh`.

    Bodies are numbered parents first, as they were given where that was so too; else `origin.renumbered` is True. A
    configuration q (nq,) holds, body by body, the coordinate of a joint with one degree of freedom or the relative pose
    [R | p] row by row (12 numbers) of a joint with more; a velocity v (nv,) holds the coordinates of the body-fixed
    relative twist in the joint's basis S. All terms take leading batch axes.
    """

    build = classmethod(building.build)
    from_dh = classmethod(building.from_dh)
    from_screws = classmethod(building.from_screws)
    with_parameters = building.with_parameters
    with_payload = building.with_payload
    with_armature = building.with_armature
    with_gravity = building.with_gravity

    @classmethod
    def from_urdf(cls, source: str | Path, **options: Any) -> "Robot":
        """The robot of a URDF file: `geomctrl.load_urdf`, which says what the options are."""
        return import_module("geomctrl.models.io.urdf").load_urdf(source, **options)  # models are made of robots

    neutral = configuration.neutral
    random_configuration = configuration.random_configuration
    integrate = configuration.integrate
    difference = configuration.difference

    pose = kinematics.pose
    inverse_kinematics = inverse_kinematics.inverse_kinematics
    jacobian = kinematics.jacobian
    jacobian_rate = kinematics.jacobian_rate
    body_wrenches = kinematics.body_wrenches

    terms = dynamics.terms
    mass_matrix = dynamics.mass_matrix
    mass_matrix_rate = dynamics.mass_matrix_rate
    coriolis_matrix = dynamics.coriolis_matrix
    mass_matrix_product = dynamics.mass_matrix_product
    coriolis_transpose_product = dynamics.coriolis_transpose_product
    gravity_force = dynamics.gravity_force
    inverse_dynamics = dynamics.inverse_dynamics
    forward_dynamics = dynamics.forward_dynamics
    kinetic_energy = dynamics.kinetic_energy
    potential_energy = dynamics.potential_energy
    energy = dynamics.energy
    momentum = dynamics.momentum
    center_of_mass = dynamics.center_of_mass
    centroidal_momentum_matrix = dynamics.centroidal_momentum_matrix
    centroidal_momentum_matrix_rate = dynamics.centroidal_momentum_matrix_rate
    regressor = regressor.regressor
    mass_matrix_inverse = dynamics.mass_matrix_inverse
    mass_matrix_solve = dynamics.mass_matrix_solve

    inverse_dynamics_derivatives = derivatives.inverse_dynamics_derivatives
    forward_dynamics_derivatives = derivatives.forward_dynamics_derivatives
    linearize = derivatives.linearize
    bounds = bounds.bounds

    to_c = export.to_c
    to_numba = export.to_numba
    to_ptx = export.to_ptx
    to_cuda = export.to_cuda

    def __getattr__(self, name: str):
        public = [] if name.startswith("_") else dir(self)
        raise AttributeError(missing_attribute("Robot", name, ON_ROBOT, public))
