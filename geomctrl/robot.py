"""The `Robot` class: a tree of rigid bodies whose terms of the equations of motion are methods."""

import functools
import inspect
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from geomctrl.arguments import is_a, shown
from geomctrl.errors import ArgumentError
from geomctrl.mechanism import building, configuration, variants
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.other_names import ON_ROBOT, missing_attribute, named_arguments
from geomctrl.terms import (
    bounds,
    derivatives,
    dynamics,
    energy_and_momentum,
    export,
    gpu,
    inverse_kinematics,
    kinematics,
    regressor,
)


class _RobotType(type):
    """Metaclass of `Robot`: `Robot.mass_matrix(robot, q)` checks its first argument. Calls on an instance do not pass
    here.
    """

    @property
    def __signature__(cls) -> inspect.Signature:  # otherwise that of __call__
        return inspect.signature(Mechanism)

    def __call__(cls, *args: Any, **options: Any) -> Any:
        try:
            return super().__call__(*args, **options)
        except TypeError:
            got = ", ".join([*map(shown, args), *options]) or "nothing"
            raise ArgumentError(
                f"Robot: expected the fields of a robot, got {got}; use geomctrl.load_urdf(path),"
                " geomctrl.models.load(name) or geomctrl.Robot.build(bodies)"
            ) from None

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
        if not is_a(robot, Mechanism):
            raise ArgumentError(f"robot: expected a Robot, got {shown(robot)}; call it as robot.{method.__name__}(...)")
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
    >>> np.allclose(robot.mass_matrix_product(q, v), M @ v), np.allclose(robot.mass_matrix_inverse(q) @ M, np.eye(2))
    (True, True)
    >>> np.allclose(robot.mass_matrix_solve(q, M @ v), v)
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
    @named_arguments()
    def from_mujoco(cls, model: Any, *, ignore: Iterable[str] = ()) -> "Robot":
        """Return the robot of a mujoco.MjModel, with the numbers that the model has now.

        Parameters
        ----------
        model : mujoco.MjModel
            A compiled model; it may have been edited since.
        ignore : iterable of str
            Features of the model that a rigid-body tree does not represent and that are left out instead of raising
            ModelError, as for `geomctrl.load_mjcf`: "armature", "stiffness", "damping", "equality", "tendon",
            "gravcomp", "fluid", "flex", "plugin".

        Returns
        -------
        Robot
            `interop.to_mujoco` and `interop.from_mujoco` convert its states.

        Raises
        ------
        ModelError
            If the model has features that are not in `ignore`.
        ArgumentError
            If `model` is not a mujoco.MjModel.
        GeomctrlError
            If the package is not installed or too old.

        Notes
        -----
        The robot is what `geomctrl.load_mjcf` loads from the model's file; its notes hold here. Geometry, contacts,
        actuators and sensors are not read. To simulate them with a controller, use `interop.mujoco_plant`.

        Examples
        --------
        >>> import geomctrl as gc
        >>> model = gc.interop.to_mujoco_model(gc.models.two_link())
        >>> model.body("link1").mass = 2.0
        >>> float(gc.Robot.from_mujoco(model).parameters[0, 0])
        2.0
        """
        return import_module("geomctrl.interop.mujoco_model").from_mujoco_model(model, ignore=ignore)

    @classmethod
    def from_urdf(cls, source: str | Path, **options: Any) -> "Robot":
        """Return the robot of a URDF file.

        Parameters
        ----------
        source : str or Path
            The file, or the XML text itself.
        **options
            Keyword arguments of `geomctrl.load_urdf`, for example `floating_base=True`.

        Returns
        -------
        Robot
            The result of `geomctrl.load_urdf`, which names the errors.

        Raises
        ------
        ModelError, InertiaError, ArgumentError
            As for `geomctrl.load_urdf`.

        Examples
        --------
        >>> import geomctrl as gc
        >>> text = '<robot name="block"><link name="base"/></robot>'
        >>> gc.Robot.from_urdf(text, floating_base=True, physical="unchecked").nv
        6
        """
        return import_module("geomctrl.models.io.urdf").load_urdf(source, **options)  # which imports this module

    @classmethod
    @named_arguments()
    def from_pinocchio(cls, model: Any, *, ignore: Iterable[str] = (), physical: str = "reported") -> "Robot":
        """Return the robot of a pinocchio.Model, with the numbers that the model has now.

        Parameters
        ----------
        model : pinocchio.Model
            A model, for example of `pinocchio.buildModelFromUrdf` or the `model` of a RobotWrapper.
        ignore : iterable of str
            "armature": leave out all armatures, instead of raising ModelError for a joint that has several degrees of
            freedom and an armature, which a robot does not represent.
        physical : {"reported", "required", "unchecked"}
            What to do with inertias that no rigid body can have, as for `geomctrl.load_urdf`.

        Returns
        -------
        Robot
            `interop.to_pinocchio` and `interop.from_pinocchio` convert its states.

        Raises
        ------
        ModelError
            If the model has a joint, an armature or a gravity that a robot does not represent; the message names it.
        InertiaError
            If inertias are impossible and `physical` refuses them.
        ArgumentError
            If an argument is invalid.
        GeomctrlError
            If the package is not installed or too old.

        Notes
        -----
        - All joints but JointModelEllipsoid are read. Composite, universal, SphericalZYX and translation joints become
          chains of joints "name/1", "name/2", ... with massless bodies between. Mimic joints become
          `geomctrl.Coupling`.
        - A body has the name and the frame of its joint's first body frame, or those of the joint if there is none. All
          other frames are kept but those of joints.
        - Limits of velocity and effort are the upper ones; those of position are read for joints with one degree of
          freedom. Friction and damping become the joints' `friction` and `damping`. If they differ within one joint,
          the robot has none there, and a warning says so.
        - The rotors' inertias of a model have no effect in Pinocchio and are not read; its armatures are. Reference
          configurations are not read.

        Examples
        --------
        >>> import pinocchio
        >>> import geomctrl as gc
        >>> gc.Robot.from_pinocchio(pinocchio.buildSampleModelManipulator()).nv
        6
        """
        read = import_module("geomctrl.interop.pinocchio_model").from_pinocchio_model
        return read(model, ignore=ignore, physical=physical)

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
    bounds = bounds.bounds

    to_c = export.to_c
    to_casadi = export.to_casadi
    to_jax = export.to_jax
    to_torch = export.to_torch
    to_cuda = gpu.to_cuda

    def __getattr__(self, name: str):
        public = [] if name.startswith("_") else dir(self)
        raise AttributeError(missing_attribute("Robot", name, ON_ROBOT, public))
