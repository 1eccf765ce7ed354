"""The same robot with other frames on its bodies: Mueller 2018 section 4.4.

`representations` exports the functions.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.errors import ArgumentError
from geomctrl.lie import se3
from geomctrl.mechanism import inertia
from geomctrl.mechanism.configuration import neutral
from geomctrl.mechanism.mechanism import Mechanism, require_robot
from geomctrl.mechanism.states import as_batch
from geomctrl.terms.kinematics import pose

from .conversions import checked_together


def with_body_frames(robot: Mechanism, placements: ArrayLike) -> Mechanism:
    """Return the same robot with other frames on its bodies (section 4.4).

    Screws, inertias and named frames are converted. Velocities, the coordinates of joints with one degree of freedom
    and all terms of the equations of motion are unchanged; only poses and Jacobians of the bodies change. A joint with
    several degrees of freedom stores the relative pose of body frames in q: `configuration_in_frames` converts it.

    Parameters
    ----------
    robot : Robot
        The robot.
    placements : array_like, shape (nbodies, 4, 4)
        Pose of each body's new frame in its old one.

    Returns
    -------
    Robot

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import representations
    >>> robot, q = gc.models.two_link(), np.array([0.3, -0.5])
    >>> N = gc.se3.exp(0.1 * np.arange(12.0).reshape(2, 6))
    >>> other = representations.with_body_frames(robot, N)
    >>> bool(np.allclose(other.mass_matrix(q), robot.mass_matrix(q)))
    True
    >>> name = robot.body_names[1]
    >>> bool(np.allclose(other.pose(q, name), robot.pose(q, name) @ N[1]))
    True
    """
    N = _placements(robot, placements)
    back = se3.inverse(N)
    M, joints = np.array(robot.placements), []
    for i, (p, joint) in enumerate(zip(robot.parents, robot.joints)):
        M[i] = M[i] @ N[i] if p < 0 else back[p] @ M[i] @ N[i]
        joints.append(replace(joint, S=se3.Ad(back[i]) @ joint.S))
    frames = tuple(
        f if f.body < 0 or f.name in robot.body_names else f._replace(placement=back[f.body] @ f.placement)
        for f in robot.frames
    )
    parameters = inertia.transform(back, robot.parameters)
    return replace(robot, joints=tuple(joints), placements=M, parameters=parameters, frames=frames)


def configuration_in_frames(robot: Mechanism, q: ArrayLike, placements: ArrayLike) -> np.ndarray:
    """Return the configuration of `with_body_frames(robot, placements)` that equals q of `robot` (section 4.4).

    Parameters
    ----------
    robot : Robot
        The robot with its original frames.
    q : array_like, shape (..., nq)
        Configuration of `robot` [rad, m].
    placements : array_like, shape (nbodies, 4, 4)
        Pose of each body's new frame in its old one.

    Returns
    -------
    ndarray, shape (..., nq)

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import representations
    >>> robot, N = gc.models.quadrotor(), gc.se3.exp(np.full((1, 6), 0.2))
    >>> q, (name,) = robot.integrate(robot.neutral(), np.arange(6.0)), robot.body_names
    >>> other = representations.with_body_frames(robot, N)
    >>> q_other = representations.configuration_in_frames(robot, q, N)
    >>> bool(np.allclose(other.pose(q_other, name), robot.pose(q, name) @ N[0]))
    True
    """
    lead, (x,) = as_batch(robot, q=q)
    N, out = _placements(robot, placements), x.copy()
    for i, (joint, s) in enumerate(zip(robot.joints, robot.q_slices)):
        if joint.dof > 1:
            T = np.concatenate((x[:, s].reshape(-1, 3, 4), np.tile([[[0.0, 0.0, 0.0, 1.0]]], (len(x), 1, 1))), 1)
            out[:, s] = (se3.inverse(N[i]) @ T @ N[i])[:, :3].reshape(-1, 12)
    return out.reshape(*lead, robot.nq)


def without_body_frames(robot: Mechanism) -> Mechanism:
    """Return the same robot with all body frames at the world's in the neutral configuration: A_i = 1 (section 4.4).

    Its screws are then the spatial screws at zero, Y_i, and its inertias are about the world's origin.

    Parameters
    ----------
    robot : Robot
        The robot.

    Returns
    -------
    Robot

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import representations
    >>> robot, q = gc.models.two_link(), np.array([0.3, -0.5])
    >>> other = representations.without_body_frames(robot)
    >>> bool(np.allclose(other.pose(np.zeros(2), robot.body_names[1]), np.eye(4)))
    True
    >>> bool(np.allclose(other.mass_matrix(q), robot.mass_matrix(q)))
    True
    """
    require_robot("robot", robot)
    q = neutral(robot)
    return with_body_frames(robot, se3.inverse(np.array([pose(robot, q, name) for name in robot.body_names])))


def _placements(robot: Mechanism, placements: ArrayLike) -> np.ndarray:
    require_robot("robot", robot)
    (N,) = checked_together(placements=placements)
    if N.shape != (robot.nbodies, 4, 4):
        raise ArgumentError(f"placements: expected shape ({robot.nbodies}, 4, 4), got {N.shape}")
    return N
