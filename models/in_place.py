"""A robot's numbers into the URDF or MJCF file that it came from, and nothing else of it changed.

A robot has less than its file: links on fixed joints are merged into the body that moves. That body's own link then
carries the identified inertia as a whole, and the merged links' inertias go: a comment stands in their place, or a zero
where a file's meaning needs one. So the sum is right for every reader, and the split, which no motion shows, is not
made up. What was made is loaded again and compared with the robot before anything is written.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np

from geomctrl.arguments import flag, instance, path_of
from geomctrl.errors import ArgumentError, ModelError
from geomctrl.files import whole
from geomctrl.mechanism import inertia
from geomctrl.robot import Robot

__all__ = ["update_model_file"]

ROUNDING = 1e-9  # of the largest number of a body


def update_model_file(
    source: str | Path, robot: Robot, out: str | Path | None = None, *, friction: bool = False, limits: bool = False
) -> Path:
    """Write a robot's inertial parameters into the URDF or MJCF file it was loaded from; all else stays, byte for byte.

    out: where to; default `source` itself. friction: damping and friction of its joints, too; limits: and their limits.
    The file must be the robot's: its bodies, joints and placements are compared. Links on fixed joints are merged into
    the body that moves: its link gets the sum, theirs are taken out (URDF) or set to zero (MJCF); a link on a locked
    mimic joint keeps its own, and the rest of the sum goes to the moving link. Bodies that have not changed are left as
    they are. Returns the path. Raises ModelError for what can not be written so (xacro, entities, included files,
    UTF-16, a compiler's inertiafromgeom, bodies no file can hold), ArgumentError for another robot's file and for files
    that can not be written; nothing is half written.
    """
    source, robot = path_of("source", source), instance("robot", robot, Robot, "a geomctrl.Robot")
    flag("friction", friction), flag("limits", limits)
    target = source if out is None else path_of("out", out)
    if not source.is_file():
        raise ArgumentError(f"source: no such file: {str(source)!r}")
    require_writable(target)
    from geomctrl.models import mjcf_in_place, urdf_in_place  # here: one asks mujoco

    text = source.read_bytes()
    mjcf = source.suffix.lower() in (".xml", ".mjcf")
    updated: Callable[..., bytes] = mjcf_in_place.updated if mjcf else urdf_in_place.updated
    new = updated(source, text, robot, friction, limits)
    if new == text and target == source:
        return target
    real = target.resolve()  # a link stays one
    mode = stat.S_IMODE((real if real.exists() else source).stat().st_mode)
    with whole(real) as file:
        if hasattr(os, "fchmod"):
            os.fchmod(file.fileno(), mode)
        file.write(new)
    return target


def require_writable(path: Path) -> None:
    """Raises ArgumentError for a file that is read-only, or in a folder that is, or a folder."""
    real = path.resolve()
    if real.is_dir():
        raise ArgumentError(f"out: {str(path)!r} is a folder, expected a file")
    if real.exists() and not (os.access(real, os.W_OK) and real.stat().st_mode & 0o222):
        raise ArgumentError(f"out: {str(path)!r} is read-only: write to another file, or make it writable")
    folder = next(p for p in real.parents if p.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ArgumentError(f"out: {str(path)!r}: no permission to write in {str(folder)!r}")


def require_same(label: str, own: Robot, robot: Robot) -> None:
    """Raises ArgumentError unless a file's robot is this one but for inertias, friction and limits."""
    for what in ("body_names", "joint_names", "parents"):
        a, b = getattr(own, what), getattr(robot, what)
        if a != b:
            raise ArgumentError(f"{label}: robot: is not of this file: expected {what} {a}, got {b}")
    for body, joint, theirs, M, given in zip(
        own.body_names, own.joints, robot.joints, own.placements, robot.placements
    ):
        same = joint.kind == theirs.kind and np.allclose(joint.S, theirs.S, atol=ROUNDING)
        if not same or not np.allclose(M, given, atol=ROUNDING):
            raise ArgumentError(f"{label}: robot: is not of this file: joint or placement of {body!r} is another")


def require_arrived(label: str, back: Robot, robot: Robot, hint: str) -> None:
    """Raises ModelError unless the file that was made has the robot's inertias."""
    scale = np.abs(robot.parameters).max(1) + np.abs(back.parameters).max(1) + 1e-300
    off = np.abs(back.parameters - robot.parameters).max(1) / scale
    if (off > ROUNDING).any():
        k = int(np.argmax(off))
        raise ModelError(
            f"{label}: body {robot.body_names[k]!r}: the file would be read with other inertias than were written, off"
            f" by {off[k]:.3g}: {hint}"
        )


def require_body(label: str, name: str, pi: np.ndarray) -> None:
    """Raises ModelError for an inertia that neither file can hold, whose centre of mass is nowhere."""
    if pi[0] <= 0.0 and pi.any():
        raise ModelError(f"{label}: body {name!r}: can not hold a mass of {pi[0]:g} kg with a first moment or inertia")


def central(pi: np.ndarray) -> tuple[str, str, dict[str, float]]:
    """(centre of mass, mass, inertia about it as ixx, ixy, ...), as texts that read back to the same numbers."""
    I, axes = inertia.com_tensor(pi), "xyz"
    moments = {f"i{a}{b}": float(I[axes.index(a), axes.index(b)]) for a, b in ("xx", "xy", "xz", "yy", "yz", "zz")}
    return numbers(pi[1:4] / pi[0]), repr(float(pi[0])), moments


def numbers(x) -> str:
    return " ".join(repr(float(a)) for a in x)
