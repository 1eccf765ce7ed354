"""The `Robot` class: a tree of rigid bodies whose terms of the equations of motion are methods."""

import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from geomctrl.errors import ArgumentError
from geomctrl.mechanism import building, configuration, variants
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.other_names import ON_ROBOT, missing_attribute
from geomctrl.terms import (
    bounds,
    derivatives,
    dynamics,
    energy_and_momentum,
    export,
    inverse_kinematics,
    kinematics,
    regressor,
)


class _RobotType(type):
    """Metaclass of `Robot`: `Robot.mass_matrix(robot, q)` checks its first argument. Calls on an instance do not pass
    here.
    """

    def __getattribute__(cls, name: str):
        value = super().__getattribute__(name)
        return value if name.startswith("_") or not inspect.isfunction(value) else _of_a_robot(value)

    def __getattr__(cls, name: str):
        raise AttributeError(missing_attribute(cls.__name__, name, ON_ROBOT, [] if name.startswith("__") else dir(cls)))


@functools.cache
def _of_a_robot(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the method so that a first argument that is not a Robot raises ArgumentError."""

    @functools.wraps(method)
    def checked(robot: Mechanism, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(robot, Mechanism):
            raise ArgumentError(f"robot: expected a Robot, got {robot!r:.80}; call it as robot.{method.__name__}(...)")
        return method(robot, *args, **kwargs)

    return checked


class Robot(Mechanism, metaclass=_RobotType):
    """A tree of rigid bodies, with the terms of its equations of motion as methods. Instances are immutable.

    Create one with `geomctrl.load_urdf`, `geomctrl.load_mjcf`, a function of `geomctrl.models`, `Robot.build`,
    `Robot.from_dh`, `Robot.from_screws`, `Robot.from_pinocchio` or `Robot.from_mujoco`.

    Notes
    -----
    - The configuration q has shape (nq,). A joint with one degree of freedom stores its coordinate [rad or m]; a joint
      with more stores its relative pose [R | p] row by row (12 numbers). Joints follow each other in the order of the
      bodies.
    - The velocity v has shape (nv,). It holds the coordinates of each joint's body-fixed relative twist in the basis S
      of the joint [rad/s or m/s].
    - Every method that takes q and v accepts any leading batch axes, the same for all arguments.
    - Bodies are numbered so that parents come first. If the input already has this order, it is kept; otherwise
      `origin.renumbered` is True.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> q, v = np.array([0.3, -0.5]), np.array([1.0, 0.2])
    >>> M, C, g = robot.mass_matrix(q), robot.coriolis_matrix(q, v), robot.gravity_force(q)
    >>> np.allclose(robot.inverse_dynamics(q, v, np.zeros(2)), C @ v + g)
    True
    """

    build = classmethod(building.build)
    from_dh = classmethod(building.from_dh)
    from_screws = classmethod(building.from_screws)
    with_parameters = variants.with_parameters
    with_payload = variants.with_payload
    with_armature = variants.with_armature
    with_gravity = variants.with_gravity

    @classmethod
    def from_urdf(cls, source: str | Path, **options: Any) -> "Robot":
        """Load a robot from a URDF file.

        Parameters
        ----------
        source : str or Path
            The file, or the XML text itself.
        **options
            Keyword arguments of `geomctrl.load_urdf`, for example `floating_base=True`.

        Returns
        -------
        Robot
        """
        return import_module("geomctrl.models.io.urdf").load_urdf(source, **options)  # which imports this module

    @classmethod
    def from_mujoco(cls, model: Any, **options: Any) -> "Robot":
        """Convert a mujoco.MjModel.

        Parameters
        ----------
        model : mujoco.MjModel
            The model.
        **options
            Keyword arguments of `geomctrl.interop.from_mujoco_model`, for example `ignore=("flex",)`.

        Returns
        -------
        Robot
        """
        return import_module("geomctrl.interop.mujoco_model").from_mujoco_model(model, **options)

    @classmethod
    def from_pinocchio(cls, model: Any, **options: Any) -> "Robot":
        """Convert a pinocchio.Model.

        Parameters
        ----------
        model : pinocchio.Model
            The model.
        **options
            Keyword arguments of `geomctrl.interop.from_pinocchio_model`, for example `physical="required"`.

        Returns
        -------
        Robot
        """
        return import_module("geomctrl.interop.pinocchio_model").from_pinocchio_model(model, **options)

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
    kinetic_energy = energy_and_momentum.kinetic_energy
    potential_energy = energy_and_momentum.potential_energy
    energy = energy_and_momentum.energy
    momentum = energy_and_momentum.momentum
    center_of_mass = energy_and_momentum.center_of_mass
    centroidal_momentum_matrix = energy_and_momentum.centroidal_momentum_matrix
    centroidal_momentum_matrix_rate = energy_and_momentum.centroidal_momentum_matrix_rate
    regressor = regressor.regressor
    mass_matrix_inverse = dynamics.mass_matrix_inverse
    mass_matrix_solve = dynamics.mass_matrix_solve

    inverse_dynamics_derivatives = derivatives.inverse_dynamics_derivatives
    forward_dynamics_derivatives = derivatives.forward_dynamics_derivatives
    linearize = derivatives.linearize
    bounds = bounds.bounds

    to_c = export.to_c
    to_casadi = export.to_casadi
    to_jax = export.to_jax
    to_numba = export.to_numba
    to_ptx = export.to_ptx
    to_cuda = export.to_cuda

    def __getattr__(self, name: str):
        public = [] if name.startswith("_") else dir(self)
        raise AttributeError(missing_attribute("Robot", name, ON_ROBOT, public))
