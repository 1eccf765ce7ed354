"""Whole models from and to MuJoCo."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from geomctrl.errors import ModelError
from geomctrl.mechanism.mechanism import require_robot
from geomctrl.models.io.mjcf import read_model, require_mujoco
from geomctrl.models.io.writing import mjcf_text
from geomctrl.robot import Robot


def from_mujoco_model(model: Any, *, ignore: Iterable[str] = ()) -> Robot:
    """See `geomctrl.Robot.from_mujoco`."""
    return read_model(model, ignore, "from_mujoco")


def to_mujoco_model(robot: Robot) -> Any:
    """Return the robot as a compiled mujoco.MjModel with the same dynamics, up to rounding.

    Parameters
    ----------
    robot : Robot
        A robot with revolute, prismatic and spherical joints, and free ones on the world.

    Returns
    -------
    mujoco.MjModel
        `to_mujoco` and `from_mujoco` convert states between the robot and it.

    Raises
    ------
    ModelError
        If MuJoCo has no such joint (helical, cylindrical, planar, free on a body that moves), or it refuses a body, for
        instance one that moves without mass.
    GeomctrlError
        If the package is not installed or too old.

    Notes
    -----
    The model is that of `geomctrl.models.save(robot, "robot.xml")`; without geometry and actuators. MuJoCo enforces
    couplings by constraints, which are not exact. It has no limits of velocity and no gear ratios, and it has limits of
    effort only at joints with one degree of freedom.

    Examples
    --------
    >>> import geomctrl as gc
    >>> gc.interop.to_mujoco_model(gc.models.panda()).nv
    7
    """
    require_robot("robot", robot)
    mujoco = require_mujoco("to_mujoco_model")
    try:
        return mujoco.MjModel.from_xml_string(mjcf_text(robot))
    except ValueError as error:
        raise ModelError(f"robot {robot.name!r}: MuJoCo refuses it: {error}") from None
