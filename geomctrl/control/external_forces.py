"""`external_forces`: the forces on a robot from outside, as vectors at points of the world, for plots and viewers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import exactly
from geomctrl.robot import Robot

from .contact import Contact
from .wrenches import ExternalWrenches, Wrench


class ExternalForce(NamedTuple):
    """An external force over n samples, in world axes; zero while it does not act.

    Its point of application (n, 3) [m], the force (n, 3) [N] and the moment (n, 3) [N m] about the point.
    """

    name: str
    point: np.ndarray
    force: np.ndarray
    moment: np.ndarray


def external_forces(plant: Any, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> list[ExternalForce]:
    """The external forces of a plant at samples t (n,), q (n, nq), v (n, nv).

    One entry per contact point, per wrench (at its frame) and per body on which a function acts.
    """
    f_ext, robot = getattr(plant, "f_ext", None), plant.robot
    if f_ext is None:
        return []
    if not isinstance(f_ext, ExternalWrenches):
        return _of_bodies(robot, q, _rows(robot, t, q, v, f_ext))
    out: list[ExternalForce] = []
    for source, part in zip(f_ext.sources, f_ext.parts):
        if isinstance(source, Contact):
            out += _of_contact(robot, source, q, v)
            continue
        F = _rows(robot, t, q, v, lambda *x, part=part: part._wrenches(robot, *x) if part._acts(x[0]) else 0.0)
        if isinstance(source, Wrench):
            frame = robot.frame(source.frame)
            point = robot.pose(q, source.frame)[..., :3, 3]
            out.append(_moved(source.frame, robot, q, frame.body, F[:, frame.body], point))
        else:
            out += _of_bodies(robot, q, F)
    return out


def _rows(robot: Robot, t: np.ndarray, q: np.ndarray, v: np.ndarray, f: Any) -> np.ndarray:
    """Wrenches (n, nbodies, 6) in body frames."""
    out = np.zeros((len(t), robot.nbodies, 6))
    for k, now in enumerate(zip(t.tolist(), q, v)):
        F = f(*now)
        out[k] = F if np.ndim(F) == 0 else exactly("f_ext", F, (robot.nbodies, 6))
    return out


def _of_contact(robot: Robot, contact: Contact, q: np.ndarray, v: np.ndarray) -> list[ExternalForce]:
    force, out = contact.state(robot, q, v).force, []
    for k, (frame, offset) in enumerate(contact.points):
        T = robot.pose(q, str(frame))
        point = T[..., :3, 3] + T[..., :3, :3] @ np.asarray(offset)
        out.append(ExternalForce(f"contact at {frame}", point, force[:, k], np.zeros_like(point)))
    return out


def _of_bodies(robot: Robot, q: np.ndarray, F: np.ndarray) -> list[ExternalForce]:
    """Forces of wrenches F (n, nbodies, 6), at the origins of the bodies with a nonzero wrench."""
    pushed = np.flatnonzero(F.any(axis=(0, 2))).tolist()
    names = [robot.body_names[i] for i in pushed]
    return [_moved(name, robot, q, i, F[:, i], None) for name, i in zip(names, pushed)]


def _moved(name: str, robot: Robot, q: np.ndarray, body: int, F: np.ndarray, point: np.ndarray | None) -> ExternalForce:
    """The wrench (m, f) (n, 6) of a body, moved to a point (n, 3) of the world; default the body's origin."""
    T = robot.pose(q, robot.body_names[body])
    moment, force = (np.einsum("nij,nj->ni", T[:, :3, :3], x) for x in (F[:, :3], F[:, 3:]))
    if point is None:
        return ExternalForce(name, T[:, :3, 3], force, moment)
    return ExternalForce(name, point, force, moment - np.cross(point - T[:, :3, 3], force))
