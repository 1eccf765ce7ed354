"""The collision geometry of a URDF file as capsules on a robot's bodies."""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import instance, listed, number, path_of
from geomctrl.errors import GeomctrlError, ModelError
from geomctrl.lie import so3
from geomctrl.mechanism.capsules import Capsule, link_capsules
from geomctrl.models.source import locate, read_numbers, read_xml
from geomctrl.robot import Robot

__all__ = ["collision_capsules", "numbers_of", "origin_of"]

SIDE = 4  # capsules side by side in a box, at most


def collision_capsules(
    source: str | Path, robot: Robot, *, radius: float | None = None, package_dirs: Iterable[str | Path] = ()
) -> tuple[tuple[Capsule, ...], tuple[str, ...]]:
    """(capsules that contain a URDF's spheres, cylinders and boxes, the links that have none of these) for the robot
    that `load_urdf` made of the file.

    A cylinder's capsule is round at both ends, beyond the cylinder by its radius; a box is filled with up to 4 x 4
    capsules side by side. Meshes are not opened: links of which all geometry is meshes get capsules between joints
    (`link_capsules` with `radius`) and are named; so are moving links without any. Raises ModelError, ArgumentError.
    """
    instance("robot", robot, Robot, "a geomctrl.Robot")
    if radius is not None:
        number("radius", radius, "a length > 0", lambda x: x > 0.0)
    package_dirs = [path_of("package_dirs", folder) for folder in listed("package_dirs", package_dirs)]
    document = read_xml(locate(source, package_dirs))
    found: list[Capsule] = []
    for name, body, T, element in placed(document, robot, "collision"):
        for start, end, r in _shapes(element.find("geometry"), name):
            p0, p1 = (T[:3, :3] @ x + T[:3, 3] for x in (start, end))
            found.append(Capsule(body, p0, p1, r))
    covered = {c.body for c in found}
    missing = [b for b in range(-1, robot.nbodies) if b not in covered]
    found += [c for c in link_capsules(robot, radius) if c.body in missing]
    return tuple(found), tuple(robot.body_names[b] for b in missing if b >= 0)


def placed(document: Any, robot: Robot, *tags: str) -> Iterator[tuple[str, int, np.ndarray, Any]]:
    """(link, its body, pose (4, 4) of the element in the body's frame, element) of elements of a URDF's links.

    Raises ModelError for what is not the robot's URDF.
    """
    if document.tag != "robot":
        raise ModelError(f"not a URDF: expected the root element <robot>, got <{document.tag}>")
    for link in document.iterfind("link"):
        name = link.get("name", "")
        try:
            where = robot.frame(name)
        except GeomctrlError:
            raise ModelError(f"link {name!r}: the robot {robot.name!r} has no such body or frame") from None
        for tag in tags:
            for element in link.iterfind(tag):
                yield name, where.body, where.placement @ origin_of(element, name), element


def origin_of(element: Any, link: str) -> np.ndarray:
    T, origin = np.eye(4), element.find("origin")
    if origin is not None:
        T[:3, 3] = numbers_of(origin, "xyz", 3, link, "0 0 0")
        roll, pitch, yaw = numbers_of(origin, "rpy", 3, link, "0 0 0")
        T[:3, :3] = so3.exp([0, 0, yaw]) @ so3.exp([0, pitch, 0]) @ so3.exp([roll, 0, 0])
    return T


def numbers_of(element: Any, key: str, n: int, link: str, default: str | None = None) -> list[float]:
    text = element.get(key, default)
    try:
        x = read_numbers(text or "")
    except ValueError:
        x = []
    if len(x) != n or not np.isfinite(x).all():
        where = f"link {link!r}, line {element.sourceline}: {element.tag} {key}"
        raise ModelError(f"{where}: expected {n} finite number(s), got {text!r}")
    return x


def _shapes(geometry: Any, link: str) -> list[tuple[np.ndarray, np.ndarray, float]]:
    """(start, end, radius) in the geometry's own axes."""
    out = []
    for shape in geometry if geometry is not None else ():
        if shape.tag == "sphere":
            out.append((np.zeros(3), np.zeros(3), *numbers_of(shape, "radius", 1, link)))
        elif shape.tag in ("cylinder", "capsule"):
            (r,), (length,) = numbers_of(shape, "radius", 1, link), numbers_of(shape, "length", 1, link)
            half = np.array([0.0, 0.0, 0.5 * length])
            out.append((-half, half, r))
        elif shape.tag == "box":
            out += _box(np.array(numbers_of(shape, "size", 3, link)))
    bad = [r for _, _, r in out if not r > 0.0]
    if bad:
        raise ModelError(f"link {link!r}: collision geometry: expected sizes > 0, got {bad[0]:g}")
    return out


def _box(size: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, float]]:
    """Capsules along the longest side that fill a box: its other sides are cut so that cells are nearly square.

    Each contains its cell, as no point of a cell is farther from its middle line than half the cell's diagonal.
    """
    along, b, c = np.argsort(-size, kind="stable")
    if size[c] <= 0.0:
        return [(np.zeros(3), np.zeros(3), float(size[c]))]  # refused by the caller
    n = min(SIDE, max(1, round(float(size[b] / size[c]))))
    cell = size[b] / n
    m = min(SIDE, max(1, round(float(size[c] / cell))))
    out = []
    for i in range(n):
        for j in range(m):
            end = np.zeros(3)
            end[b] = (i + 0.5) * cell - 0.5 * size[b]
            end[c] = (j + 0.5) * size[c] / m - 0.5 * size[c]
            start = end.copy()
            start[along], end[along] = -0.5 * size[along], 0.5 * size[along]
            out.append((start, end, 0.5 * math.hypot(cell, size[c] / m)))
    return out
