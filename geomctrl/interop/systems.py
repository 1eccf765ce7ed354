"""Convert robots to python-control systems with named signals.

For `control.lqr`, `control.input_output_response` and other functions the state is x = (e, v). e (nv,) are the
exponential coordinates log(q0^-1 q) of the configuration about q0; for joints with one degree of freedom e = q - q0. v
(nv,) is the velocity. With q0 = 0 on such robots x is (q, v) itself. Signals have the names of `Robot.dof_names`:
states and outputs q_<name>, v_<name>, inputs tau_<name>.
"""

from __future__ import annotations

import control
import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import shown
from geomctrl.control.plant import Plant, plant_of
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.configuration import ConfigurationGroup, difference
from geomctrl.mechanism.mechanism import require_robot
from geomctrl.mechanism.states import as_batch, one_configuration
from geomctrl.robot import Robot
from geomctrl.terms.derivatives import linearize


def _signal_names(robot: Robot) -> dict[str, list[str]]:
    """Return the names of "states" and "outputs", q_<name> and v_<name>, and of "inputs", tau_<name>.

    Dots in names become underscores.
    """
    require_robot("robot", robot)
    names = [name.replace(".", "_") for name in robot.dof_names]
    states = [f"{x}_{name}" for x in ("q", "v") for name in names]
    return {"states": states, "outputs": list(states), "inputs": [f"tau_{name}" for name in names]}


def to_state(robot: Robot, q: ArrayLike, v: ArrayLike, q0: ArrayLike | None = None) -> np.ndarray:
    """Return the state of a control system for a configuration and a velocity.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s].
    q0 : array_like, shape (nq,), optional
        Origin of the coordinates. Default: neutral.

    Returns
    -------
    ndarray, shape (..., 2 nv)
        x = (log(q0^-1 q), v).

    Examples
    --------
    >>> import geomctrl as gc
    >>> gc.interop.to_state(gc.models.two_link(), [0.3, -0.5], [1.0, 0.2])
    array([ 0.3, -0.5,  1. ,  0.2])
    """
    lead, (q, v) = as_batch(robot, q=q, v=v)
    base = robot.neutral() if q0 is None else one_configuration(robot, "q0", q0)
    x = np.concatenate((difference(robot, np.tile(base, (len(q), 1)), q), v), axis=-1)
    return x.reshape(*lead, 2 * robot.nv)


def state_space(robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike, name: str | None = None):
    """Return the linearisation of a robot at one state as a control.StateSpace, with all states as outputs.

    Parameters
    ----------
    robot : Robot
        The robot alone. Springs and friction belong to a `Plant`, which `nonlinear_system` accepts.
    q : array_like, shape (nq,)
        Configuration [rad, m].
    v : array_like, shape (nv,)
        Velocity [rad/s, m/s].
    tau : array_like, shape (nv,)
        Joint torques [N m, N].
    name : str, optional
        Name of the system. Default: the robot's name.

    Returns
    -------
    control.StateSpace

    Notes
    -----
    For joints with several degrees of freedom and v != 0, x is measured from the moving q(t), see
    `derivatives.linearize`, while that of `nonlinear_system` is measured from a fixed q0. At rest they are the same.

    Examples
    --------
    >>> import control
    >>> import geomctrl as gc
    >>> from geomctrl.interop import systems
    >>> robot = gc.models.cart_pole()
    >>> system = systems.state_space(robot, [0, 0], [0, 0], [0, 0])
    >>> len(system.poles())
    4
    """
    name = _name(name, robot)
    lead, _ = as_batch(robot, q=q, v=v, tau=tau)
    if lead:
        raise ArgumentError(f"q, v, tau: expected one state, got leading axes {lead}: use linearize for many")
    A, B, _ = linearize(robot, q, v, tau)
    n, m = B.shape
    return control.StateSpace(A, B, np.eye(n), np.zeros((n, m)), name=name, **_signal_names(robot))


def _name(name: str | None, robot: Robot) -> str:
    """The name of a system: the argument, or the robot's name."""
    require_robot("robot", robot)
    if name is not None and not isinstance(name, str):
        raise ArgumentError(f"name: expected a string or None, got {shown(name)}")
    if name and "." in name:
        raise ArgumentError(f"name: expected a name without dots, which python-control refuses, got {shown(name)}")
    return name or robot.name.replace(".", "_")


def nonlinear_system(plant: Robot | Plant, q0: ArrayLike | None = None, name: str | None = None):
    """Return a robot or a `Plant` as a control.NonlinearIOSystem.

    Parameters
    ----------
    plant : Robot or Plant
        The system; a plant includes friction, wrenches and changing loads. It has no state of its own, such as that of
        an actuator, no sensors and no actuators that act at samples.
    q0 : array_like, shape (nq,), optional
        Origin of the coordinates e = log(q0^-1 q). Default: neutral.
    name : str, optional
        Name of the system. Default: the robot's name.

    Returns
    -------
    control.NonlinearIOSystem
        Its inputs are the joint torques, or the inputs of the plant's actuators. Its outputs are the true states.

    Raises
    ------
    ArgumentError
        If the plant has a state of its own, sensors or actuators that act at samples, or if `q0` or `name` is invalid.

    Notes
    -----
    x' = (dexp_{-e}^-1 v, vdot). For joints with several degrees of freedom this holds for rotations by less than 2 pi
    from q0.

    Examples
    --------
    >>> import geomctrl as gc
    >>> system = gc.interop.nonlinear_system(gc.models.cart_pole())
    >>> system.nstates, system.ninputs
    (4, 2)
    """
    if not isinstance(plant, (Robot, Plant)):
        raise ArgumentError(f"plant: expected a Robot or a Plant, got {shown(plant)}")
    plant = plant_of("plant", plant, state=False)
    sampled = [sensor.name for sensor in plant.sensors] + [type(x).__name__ for x in plant.sampled_actuators]  # pyright: ignore
    if sampled:
        raise ArgumentError(
            "plant: expected one without sensors and sampled actuators, which systems in continuous time do not have,"
            f" got one with {', '.join(sampled)}: remove them by dataclasses.replace(plant, sensors=(), actuators=...)"
        )
    name = _name(name, plant.robot)
    names = _signal_names(plant.robot)
    if plant.actuators:
        names["inputs"] = [f"u_{k}" for k in range(plant.inputs)]
    robot, n = plant.robot, plant.robot.nv
    base = robot.neutral() if q0 is None else one_configuration(robot, "q0", q0)
    group = None if robot.nq == n else ConfigurationGroup(robot)

    def update(t, x, u, params):
        x = np.ascontiguousarray(x, dtype=float)
        e, v = x[:n], x[n:]
        q = base + e if group is None else group.advance(base, e)
        e_rate = v if group is None else group.dexp_inv_mul(-e, v)
        return np.concatenate((e_rate, plant.at(t).acceleration(t, q, v, np.ascontiguousarray(u, dtype=float))))

    return control.NonlinearIOSystem(update, None, name=name, **names)
