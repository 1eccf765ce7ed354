"""Read the geometry of a URDF: shapes for pictures, collision capsules and bounding boxes of links."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from geomctrl.arguments import instance, listed, number, path_of
from geomctrl.errors import GeomctrlError, ModelError
from geomctrl.lie import so3
from geomctrl.mechanism.capsules import Capsule, link_capsules
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.mechanism.origin import Shape
from geomctrl.models.io.xml_text import locate, read_numbers, read_xml
from geomctrl.robot import Robot

SIZES = {"box": (("size", 3),), "sphere": (("radius", 1),), "cylinder": (("radius", 1), ("length", 1))}
SHAPES = (*SIZES, "mesh")


@dataclass(frozen=True)
class UrdfVisuals:
    """The shapes of a URDF file, or of its text.

    A mesh package://name/file is looked up in `package_dirs`, in the folders of ROS_PACKAGE_PATH, in share/ of those of
    AMENT_PREFIX_PATH, and next to each folder that contains the file. If such a folder is the package under another
    name, the mesh is looked up in it. Other paths are relative to the file.
    """

    source: str | Path
    package_dirs: tuple[Path, ...] = ()

    def shapes(self, robot: Mechanism) -> tuple[list[Shape], list[str]]:
        """Return the shapes of the robot's links, and messages about those that are missing or can not be read."""
        try:
            document = read_xml(self.source)
        except (GeomctrlError, OSError) as error:
            return [], [f"{self.source}: {error}"]
        palette = {m.get("name"): _colour(m) for m in document.iterfind("material")}
        shapes: list[Shape] = []
        missing: list[str] = []
        for link in document.iterfind("link"):
            name = link.get("name", "")
            for visual in link.iterfind("visual"):
                try:
                    shapes += self._shapes(robot, name, visual, palette, missing)
                except GeomctrlError as error:
                    missing.append(str(error))
        return shapes, list(dict.fromkeys(missing))

    def _shapes(
        self, robot: Mechanism, link: str, visual: Any, palette: dict[str, Any], missing: list[str]
    ) -> list[Shape]:
        """The shapes of one <visual>; meshes whose files do not exist are added to `missing`."""
        where, material, out = robot.frame(link), visual.find("material"), []
        T = where.placement @ origin_of(visual, link)
        colour = None if material is None else _colour(material) or palette.get(material.get("name"))
        geometry = visual.find("geometry")
        for shape in geometry if geometry is not None else ():
            if shape.tag == "mesh":
                written = shape.get("filename", "")
                file = self.file(written)
                scale = tuple(numbers_of(shape, "scale", 3, link, "1 1 1"))
                if file is None:
                    missing.append(written or f"link {link!r}, line {shape.sourceline}: a mesh without a filename")
                else:
                    out.append(Shape(where.body, T, "mesh", scale, colour, file))
            elif shape.tag in SIZES:
                size = tuple(x for key, n in SIZES[shape.tag] for x in numbers_of(shape, key, n, link))
                if min(size) <= 0.0:
                    missing.append(f"link {link!r}, line {shape.sourceline}: a {shape.tag} of size {min(size):g}")
                else:
                    out.append(Shape(where.body, T, shape.tag, size, colour))
            else:
                missing.append(f"link {link!r}, line {shape.sourceline}: <{shape.tag}> is none of {', '.join(SHAPES)}")
        return out

    def file(self, written: str) -> Path | None:
        """Path of the mesh; None if it is not found."""
        for scheme in ("package://", "model://"):
            if written.startswith(scheme):
                return self._in_a_package(Path(unquote(written.removeprefix(scheme)).lstrip("/")))
        path = Path(unquote(written.removeprefix("file://")))
        if not written:
            return None
        return _first([path if path.is_absolute() else folder / path for folder in self._folders()[:1] or [Path()]])

    def _in_a_package(self, path: Path) -> Path | None:
        roots = [Path(x) for x in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep) if x]
        roots += [Path(x) / "share" for x in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if x]
        folders = self._folders()
        inside = [folder.joinpath(*path.parts[1:]) for folder in folders]
        return _first([*(d / path for d in (*self.package_dirs, *roots, *folders)), *inside])

    def _folders(self) -> list[Path]:
        """The folders that contain the file, from the innermost; none for a text."""
        return list(self.source.resolve().parents) if isinstance(self.source, Path) else []


def _first(paths: list[Path]) -> Path | None:
    for path in paths:
        try:
            if path.is_file():
                return path
        except (OSError, ValueError):  # too long, or with a null byte: not a path
            continue
    return None


def _colour(material: Any) -> Any:
    """The colour that a <material> defines; None if it only has a name."""
    element = material.find("color")
    try:
        rgba = [min(max(x, 0.0), 1.0) for x in read_numbers(element.get("rgba", ""))] if element is not None else []
    except ValueError:
        rgba = []
    return tuple(rgba) if len(rgba) == 4 else None


MAX_CAPSULES_PER_SIDE = 4  # maximum number of capsules along each short side of a box


def collision_capsules(
    source: str | Path, robot: Robot, *, radius: float | None = None, package_dirs: Iterable[str | Path] = ()
) -> tuple[tuple[Capsule, ...], tuple[str, ...]]:
    """Return capsules that contain the spheres, cylinders and boxes of a URDF's collision geometry.

    Parameters
    ----------
    source : str or Path
        The URDF file, or its text.
    robot : Robot
        The robot that `load_urdf` returns for this file.
    radius : float, optional
        Radius [m] of the capsules between joints for links whose geometry consists of meshes (`link_capsules`).
    package_dirs : iterable of str or Path
        As for `load_urdf`.

    Returns
    -------
    capsules : tuple of Capsule
        A cylinder becomes a longer capsule that contains it. A box is covered by up to 4 x 4 parallel capsules.
    missing : tuple of str
        Moving links without such geometry. Meshes are not opened: links that only have meshes get the capsules between
        joints and are listed here.

    Raises
    ------
    ModelError, ArgumentError
        If the URDF does not belong to the robot or has invalid sizes.
    """
    instance("robot", robot, Robot, "a geomctrl.Robot")
    if radius is not None:
        number("radius", radius, "a length > 0", lambda x: x > 0.0)
    package_dirs = [path_of("package_dirs", folder) for folder in listed("package_dirs", package_dirs)]
    document = read_xml(locate(source, package_dirs))
    capsules: list[Capsule] = []
    for name, body, T, element in placed(document, robot, "collision"):
        for start, end, r in _shapes(element.find("geometry"), name):
            p0, p1 = (T[:3, :3] @ x + T[:3, 3] for x in (start, end))
            capsules.append(Capsule(body, p0, p1, r))
    covered = {c.body for c in capsules}
    missing = [b for b in range(-1, robot.nbodies) if b not in covered]
    capsules += [c for c in link_capsules(robot, radius) if c.body in missing]
    return tuple(capsules), tuple(robot.body_names[b] for b in missing if b >= 0)


def placed(document: Any, robot: Robot, *tags: str) -> Iterator[tuple[str, int, np.ndarray, Any]]:
    """Return (link, its body, pose (4, 4) of the element in the body's frame, element) of elements of a URDF's links.

    Raises ModelError if the URDF does not belong to the robot.
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
    """Return capsules along the longest side that cover a box. The other sides are cut so that cells are nearly square.

    Each capsule contains its cell: its radius is half the diagonal of the cell's cross-section.
    """
    along, b, c = np.argsort(-size, kind="stable")
    if size[c] <= 0.0:
        return [(np.zeros(3), np.zeros(3), float(size[c]))]  # the caller raises the error
    n = min(MAX_CAPSULES_PER_SIDE, max(1, round(float(size[b] / size[c]))))
    cell = size[b] / n
    m = min(MAX_CAPSULES_PER_SIDE, max(1, round(float(size[c] / cell))))
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


SIGNS = np.array(np.meshgrid([-1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0])).reshape(3, 8).T


def link_boxes(source: str | Path, robot: Robot, *, package_dirs: Iterable[str | Path] = ()) -> dict[str, np.ndarray]:
    """Return the bounding box of each body's visual and collision geometry, including that of merged links.

    Parameters
    ----------
    source : str or Path
        The URDF file, or its text.
    robot : Robot
        The robot that `load_urdf` returns for this file.
    package_dirs : iterable of str or Path
        As for `load_urdf`.

    Returns
    -------
    dict of str to ndarray, shape (2, 3)
        Lower and upper corner [m] in the frame of each body. Bodies without geometry are left out, and so are bodies
        with a mesh that is not found or that trimesh can not read, because their box would be too small.

    Raises
    ------
    ModelError, ArgumentError
        If the URDF does not belong to the robot or has invalid sizes.

    Examples
    --------
    >>> import geomctrl as gc
    >>> text = '''<robot name="block"><link name="base"><inertial><mass value="1"/>
    ... <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>
    ... <visual><geometry><box size="0.2 0.4 0.6"/></geometry></visual></link></robot>'''
    >>> robot = gc.load_urdf(text, floating_base=True)
    >>> gc.models.link_boxes(text, robot)["base"]
    array([[-0.1, -0.2, -0.3],
           [ 0.1,  0.2,  0.3]])
    """
    instance("robot", robot, Robot, "a geomctrl.Robot")
    package_dirs = [path_of("package_dirs", folder) for folder in listed("package_dirs", package_dirs)]
    located = locate(source, package_dirs)
    visuals = UrdfVisuals(located, tuple(package_dirs))
    corners: dict[int, list[np.ndarray]] = {}
    unknown = set()
    for name, body, T, element in placed(read_xml(located), robot, "visual", "collision"):
        for shape in element.find("geometry") if element.find("geometry") is not None else ():
            held = _points(shape, name, visuals)
            if held is None:
                unknown.add(body)
                continue
            points = held[0] @ T[:3, :3].T + T[:3, 3]
            corners.setdefault(body, []).extend((points - held[1], points + held[1]))
    boxes = {b: np.concatenate(points) for b, points in corners.items() if b >= 0 and b not in unknown}
    return {robot.body_names[b]: np.array([x.min(0), x.max(0)]) for b, x in sorted(boxes.items())}


def _points(shape: Any, link: str, visuals: UrdfVisuals) -> tuple[np.ndarray, float] | None:
    """Return (points (n, 3) in the geometry's own axes, radius): the shape lies within the radius of the points' hull.

    None if the shape is unknown.
    """
    if shape.tag == "sphere":
        return np.zeros((1, 3)), numbers_of(shape, "radius", 1, link)[0]
    if shape.tag in ("cylinder", "capsule"):
        (r,), (length,) = numbers_of(shape, "radius", 1, link), numbers_of(shape, "length", 1, link)
        half = np.array([0.0, 0.0, 0.5 * length])
        return (SIGNS * [r, r, 0.5 * length], 0.0) if shape.tag == "cylinder" else (np.array([-half, half]), r)
    if shape.tag == "box":
        return 0.5 * SIGNS * numbers_of(shape, "size", 3, link), 0.0
    bounds = _mesh_bounds(visuals, shape.get("filename", "")) if shape.tag == "mesh" else None
    if bounds is None:
        return None
    middle, half = bounds.mean(0), 0.5 * (bounds[1] - bounds[0])
    return (middle + SIGNS * half) * numbers_of(shape, "scale", 3, link, "1 1 1"), 0.0


def _mesh_bounds(visuals: UrdfVisuals, name: str) -> np.ndarray | None:
    """Return lower and upper corner (2, 3) of a mesh; None if the file is not found or can not be read."""
    file = visuals.file(name)
    if file is None:
        return None
    from geomctrl.viewing.visuals import read_mesh  # imported here because trimesh is slow to import

    try:
        points = np.concatenate([vertices for vertices, *_ in read_mesh(file)])
    except Exception:  # the readers of the many formats raise different exceptions
        return None
    return np.array([points.min(0), points.max(0)]) if np.isfinite(points).all() else None
