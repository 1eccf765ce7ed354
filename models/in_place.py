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

from geomctrl.arguments import flag, instance, path_of
from geomctrl.errors import ArgumentError
from geomctrl.files import whole
from geomctrl.models import mjcf_in_place, urdf_in_place
from geomctrl.robot import Robot

__all__ = ["update_model_file"]


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
    target = source if out is None else path_of("out", out)
    text, new = _updated(source, robot, target, flag("friction", friction), flag("limits", limits))
    if new == text and target == source:
        return target
    real = target.resolve()  # a link stays one
    mode = stat.S_IMODE((real if real.exists() else source).stat().st_mode)
    with whole(real) as file:
        if hasattr(os, "fchmod"):
            os.fchmod(file.fileno(), mode)
        file.write(new)
    return target


def require_updatable(source: str | Path, robot: Robot, out: str | Path | None = None) -> None:
    """What `update_model_file` would raise for this file, before there are numbers to write."""
    source = path_of("source", source)
    _updated(source, robot, source if out is None else path_of("out", out), False, False)


def _updated(source: Path, robot: Robot, target: Path, friction: bool, limits: bool) -> tuple[bytes, bytes]:
    """(the file as it is, as it is to be)."""
    if not source.is_file():
        raise ArgumentError(f"source: no such file: {str(source)!r}")
    require_writable(target)
    text = source.read_bytes()
    mjcf = source.suffix.lower() in (".xml", ".mjcf")
    updated: Callable[..., bytes] = mjcf_in_place.updated if mjcf else urdf_in_place.updated
    return text, updated(source, text, robot, friction, limits)


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
