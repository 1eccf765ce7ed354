"""Robots as python-control systems with named signals.

For `control.lqr`, `control.input_output_response` and the rest the state is x = (e, v): e (nv,) the exponential
coordinates log(q0^-1 q) of the configuration about q0, which for joints with one degree of freedom is q - q0, and v
(nv,) the velocity. With q0 = 0 on such robots it is (q, v) itself. Signals are named after `Robot.dof_names`: states
and outputs q_<name>, v_<name>, inputs tau_<name>.
"""

from __future__ import annotations

import control
import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked
from geomctrl.control.plant import Plant, plant_of
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.configuration import ConfigurationGroup, difference, integrate
from geomctrl.mechanism.mechanism import require_robot
from geomctrl.mechanism.states import as_batch, one_configuration
from geomctrl.robot import Robot
from geomctrl.terms.derivatives import linearize


def signal_names(robot: Robot) -> dict[str, list[str]]:
    """Keys "states" and "outputs": q_<name>, v_<name>; "inputs": tau_<name>. Dots in names become underscores."""
    require_robot("robot", robot)
    names = [name.replace(".", "_") for name in robot.dof_names]
    states = [f"{x}_{name}" for x in ("q", "v") for name in names]
    return {"states": states, "outputs": list(states), "inputs": [f"tau_{name}" for name in names]}


def to_state(robot: Robot, q: ArrayLike, v: ArrayLike, q0: ArrayLike | None = None) -> np.ndarray:
    """x = (log(q0^-1 q), v) (..., 2 nv) of q (..., nq), v (..., nv); q0 (nq,), default neutral."""
    lead, (q, v) = as_batch(robot, q=q, v=v)
    base = robot.neutral() if q0 is None else one_configuration(robot, "q0", q0)
    x = np.concatenate((difference(robot, np.tile(base, (len(q), 1)), q), v), axis=-1)
    return x.reshape(*lead, 2 * robot.nv)


def from_state(robot: Robot, x: ArrayLike, q0: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(q (..., nq), v (..., nv)) from x (..., 2 nv): the inverse of `to_state`."""
    require_robot("robot", robot)
    x = checked("x", x, (2 * robot.nv,))
    e, v = x[..., : robot.nv], x[..., robot.nv :]
    base = robot.neutral() if q0 is None else one_configuration(robot, "q0", q0)
    return integrate(robot, np.broadcast_to(base, (*e.shape[:-1], robot.nq)), e), v.copy()


def state_space(robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike, name: str | None = None):
    """`linearize(robot, q, v, tau)` as a control.StateSpace, all states being outputs; one state.

    Of the robot alone: springs and friction are a `Plant`'s, of which `nonlinear_system` takes one. Where joints with
    several degrees of freedom move, v != 0, its x counts from the moving q(t), see `linearize`, and
    that of `nonlinear_system` from a fixed q0; at rest they are the same.
    """
    name = _name(name, robot)
    lead, _ = as_batch(robot, q=q, v=v, tau=tau)
    if lead:
        raise ArgumentError(f"q, v, tau: expected one state, got leading axes {lead}: use linearize for many")
    A, B, _ = linearize(robot, q, v, tau)
    n, m = B.shape
    return control.StateSpace(A, B, np.eye(n), np.zeros((n, m)), name=name, **signal_names(robot))


def _name(name: str | None, robot: Robot) -> str:
    """What a system is called: as said, or as its robot."""
    require_robot("robot", robot)
    if name is not None and not isinstance(name, str):
        raise ArgumentError(f"name: expected a string or None, got {name!r:.80}")
    return name or robot.name


def nonlinear_system(plant: Robot | Plant, q0: ArrayLike | None = None, name: str | None = None):
    """A robot or a `Plant` (with its friction, wrenches and changing loads) as a control.NonlinearIOSystem.

    Inputs are the plant's: torques of the joints, or what its actuators take; it may have no state of its own.

    x' = (dexp_{-e}^-1 v, vdot), with e = log(q0^-1 q), q0 (nq,) default neutral. On joints with several degrees of
    freedom it holds while they turn by less than 2 pi from q0.
    """
    if not isinstance(plant, (Robot, Plant)):
        raise ArgumentError(f"plant: expected a Robot or a Plant, got {plant!r:.80}")
    plant = plant_of("plant", plant, state=False)
    name = _name(name, plant.robot)
    names = signal_names(plant.robot)
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
