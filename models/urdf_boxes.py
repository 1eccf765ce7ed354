"""Boxes about the geometry of a URDF file's links: where their mass can be."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import instance, listed, path_of
from geomctrl.models.source import locate, read_xml
from geomctrl.models.urdf_collisions import numbers_of, placed
from geomctrl.models.urdf_looks import UrdfLooks
from geomctrl.robot import Robot

__all__ = ["link_boxes"]

SIGNS = np.array(np.meshgrid([-1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0])).reshape(3, 8).T


def link_boxes(source: str | Path, robot: Robot, *, package_dirs: Iterable[str | Path] = ()) -> dict[str, np.ndarray]:
    """{body: (2, 3) its lower and upper corner in its frame [m]} about a URDF's visual and collision geometry, for the
    robot that `load_urdf` made of the file.

    Spheres, cylinders, boxes and meshes that trimesh reads, of links merged into a body too. Bodies of which a mesh is
    not found or not read are left out, for their box would be too small; so are those without geometry. package_dirs:
    where package://name/... is; what is relative starts at the file. Raises ModelError, ArgumentError.
    """
    instance("robot", robot, Robot, "a geomctrl.Robot")
    package_dirs = [path_of("package_dirs", folder) for folder in listed("package_dirs", package_dirs)]
    found = locate(source, package_dirs)
    looks = UrdfLooks(found, tuple(package_dirs))
    corners: dict[int, list[np.ndarray]] = {}
    unknown = set()
    for name, body, T, element in placed(read_xml(found), robot, "visual", "collision"):
        for shape in element.find("geometry") if element.find("geometry") is not None else ():
            held = _points(shape, name, looks)
            if held is None:
                unknown.add(body)
                continue
            points = held[0] @ T[:3, :3].T + T[:3, 3]
            corners.setdefault(body, []).extend((points - held[1], points + held[1]))
    boxes = {b: np.concatenate(points) for b, points in corners.items() if b >= 0 and b not in unknown}
    return {robot.body_names[b]: np.array([x.min(0), x.max(0)]) for b, x in sorted(boxes.items())}


def _points(shape: Any, link: str, looks: UrdfLooks) -> tuple[np.ndarray, float] | None:
    """(points (n, 3) in the geometry's own axes, radius): their hull and what is nearer to it than the radius holds the
    shape. None for what is not known."""
    if shape.tag == "sphere":
        return np.zeros((1, 3)), numbers_of(shape, "radius", 1, link)[0]
    if shape.tag in ("cylinder", "capsule"):
        (r,), (length,) = numbers_of(shape, "radius", 1, link), numbers_of(shape, "length", 1, link)
        half = np.array([0.0, 0.0, 0.5 * length])
        return (SIGNS * [r, r, 0.5 * length], 0.0) if shape.tag == "cylinder" else (np.array([-half, half]), r)
    if shape.tag == "box":
        return 0.5 * SIGNS * numbers_of(shape, "size", 3, link), 0.0
    bounds = _mesh_bounds(looks, shape.get("filename", "")) if shape.tag == "mesh" else None
    if bounds is None:
        return None
    middle, half = bounds.mean(0), 0.5 * (bounds[1] - bounds[0])
    return (middle + SIGNS * half) * numbers_of(shape, "scale", 3, link, "1 1 1"), 0.0


def _mesh_bounds(looks: UrdfLooks, name: str) -> np.ndarray | None:
    """(2, 3), None where the file is not found or can not be read."""
    file = looks.file(name)
    if file is None:
        return None
    from geomctrl.viewing.visuals import read_mesh  # here: trimesh is slow to import

    try:
        points = np.concatenate([vertices for vertices, *_ in read_mesh(file)])
    except Exception:  # readers of many formats raise all kinds
        return None
    return np.array([points.min(0), points.max(0)]) if np.isfinite(points).all() else None
