"""Shapes of bodies from the robot's file: meshes, boxes, cylinders and spheres, as triangles with one colour each.

trimesh reads the files (STL, OBJ, DAE, PLY, glTF). The colour of a mesh takes precedence over that of the URDF, as in
RViz; of a texture the mean is used. Robots with more than `MAX_TRIANGLES` triangles are simplified, see `coarser`.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.mechanism.origin import Shape
from geomctrl.output import printable

from .shapes import Mesh, capsules, reach

MAX_TRIANGLES = 40_000  # largest number of triangles of a robot
SHARP_ANGLE = np.radians(35.0)  # angle between neighbouring triangles above which their edge looks sharp
MILLIMETRE_RATIO = 100.0  # a mesh that is larger than its robot by this factor is probably in mm
MAX_LISTED_FILES = 4  # missing files that one warning lists
DEFAULT = (205, 209, 216)

Triangles = tuple[np.ndarray, np.ndarray]  # vertices (n, 3), faces (m, 3)
Part = tuple[np.ndarray, np.ndarray, tuple[int, ...] | None]  # and a colour, with an opacity


def meshes(robot: Mechanism) -> list[Mesh]:
    """Return the shapes of a robot's bodies: those of its file, otherwise capsules.

    If the file of a moving body with mass is missing, that body is a capsule. One warning lists what is missing.
    """
    if robot.origin.visual is None:
        return capsules(robot)
    shapes, missing = robot.origin.visual.shapes(robot)
    drawn, unread = _drawn(shapes)
    missing += unread
    if missing:
        more = f" and {len(missing) - MAX_LISTED_FILES} more" if len(missing) > MAX_LISTED_FILES else ""
        instead = "capsules" if not drawn else "capsules where nothing else is left of a body"
        files = printable(", ".join(missing[:MAX_LISTED_FILES])) + more
        warnings.warn(f"{robot.name}: not there, or not readable: {files}; drawn as {instead}", stacklevel=2)
    _doubt_units(robot, shapes, drawn)
    if not drawn:
        return capsules(robot)
    if missing:
        bare = set(range(robot.nbodies)) - {m.body for m in drawn}
        drawn += [m for m in capsules(robot) if m.body in bare]
    return drawn


def _doubt_units(robot: Mechanism, shapes: list[Shape], drawn: list[Mesh]) -> None:
    """Warn about meshes that are much larger than their robot."""
    largest = max((float(np.ptp(m.vertices, axis=0).max()) for m in drawn), default=0.0)
    if any(s.file is not None for s in shapes) and largest > MILLIMETRE_RATIO * reach(robot):
        said = f"a mesh is {largest:.3g} m large, the robot about {reach(robot):.2g} m: if its file is in mm, it needs"
        warnings.warn(f'{robot.name}: {said} scale="0.001 0.001 0.001" in the URDF', stacklevel=3)


def _drawn(shapes: list[Shape]) -> tuple[list[Mesh], list[str]]:
    """(triangles of the shapes, files that could not be read)."""
    files: dict[Path, list[Part]] = {}
    unread = []
    for file in dict.fromkeys(s.file for s in shapes if s.file is not None):
        try:
            files[file] = read_mesh(file)
        except Exception as error:  # the readers of the many formats raise different exceptions
            unread.append(f"{file} ({type(error).__name__}: {error!s:.60})")
    parts = [
        (shape, V, F, colour)
        for shape in shapes
        for V, F, colour in (_scaled(files.get(shape.file, []), shape.size) if shape.file else [_primitive(shape)])
    ]
    side = _cell([(V, F) for shape, V, F, _ in parts if shape.file])
    drawn = []
    for shape, V, F, colour in parts:
        V, F = creased(*(coarser(V, F, side) if side and shape.file else (V, F)))
        rgba = colour or (shape.colour and tuple(round(255 * x) for x in shape.colour)) or (*DEFAULT, 255)
        if len(F) and rgba[3] > 0:
            V = V @ shape.placement[:3, :3].T + shape.placement[:3, 3]
            drawn.append(Mesh(shape.body, "link", V, F, rgba[:3], rgba[3] / 255.0))
    return _joined(drawn), unread


def _scaled(parts: list[Part], scale: tuple[float, ...]) -> list[Part]:
    """Scale meshes; the faces of a mirrored one are flipped so that they point outwards."""
    turn = slice(None, None, -1 if np.prod(scale) < 0.0 else 1)
    return [(V * scale, F[:, turn], colour) for V, F, colour in parts]


def read_mesh(file: Path) -> list[Part]:
    """Return the meshes in a file [m], each with its colour (red, green, blue, opacity from 0 to 255) if it has one."""
    import trimesh

    scene = trimesh.load_scene(file, process=False)
    unit = _unit(scene)
    out = []
    for name in scene.graph.nodes_geometry:
        T, key = scene.graph[name]
        mesh = scene.geometry[key]
        if isinstance(mesh, trimesh.Trimesh) and len(mesh.faces):
            V = np.asarray(mesh.vertices, float) @ T[:3, :3].T + T[:3, 3]
            V, F = welded(unit * V, np.asarray(mesh.faces))
            out.append((V, F[:, ::-1] if np.linalg.det(T[:3, :3]) < 0.0 else F, _own_colour(mesh.visual)))
    if not out:
        raise ValueError("no triangles")
    return out


def _unit(scene: Any) -> float:
    """Metres per unit of the file: COLLADA files state it; for others URDF assumes metres."""
    units = str(next((g.metadata.get("units") for g in scene.geometry.values() if g.metadata.get("units")), ""))
    try:
        return float(units.partition(" * ")[0]) if " * " in units else 1.0
    except ValueError:
        return 1.0


def _own_colour(visual: Any) -> tuple[int, ...] | None:
    material = getattr(visual, "material", None)
    image = getattr(material, "image", None) or getattr(material, "baseColorTexture", None)
    if image is not None:
        return (*(int(x) for x in np.asarray(image.convert("RGB")).reshape(-1, 3).mean(axis=0)), 255)
    if material is not None:
        said = getattr(material, "diffuse", None) if hasattr(material, "diffuse") else material.main_color
        rgba = tuple(int(x) for x in np.asarray(said if said is not None else material.main_color).ravel()[:4])
        return None if rgba == (102, 102, 102, 255) else (*rgba, 255)[:4]  # trimesh's default for files without colour
    if getattr(visual, "defined", False) and visual.kind in ("vertex", "face"):
        colours = visual.vertex_colors if visual.kind == "vertex" else visual.face_colors
        return tuple(int(x) for x in np.asarray(colours).reshape(-1, 4).mean(axis=0))
    return None


def _primitive(shape: Shape) -> Part:
    from trimesh import creation

    if shape.kind == "box":
        mesh = creation.box(extents=shape.size)
    elif shape.kind == "sphere":
        mesh = creation.icosphere(subdivisions=2, radius=shape.size[0])
    else:
        mesh = creation.cylinder(radius=shape.size[0], height=shape.size[1], sections=24)
    return np.asarray(mesh.vertices), np.asarray(mesh.faces), None


def _joined(meshes: list[Mesh]) -> list[Mesh]:
    """Merge the meshes of a body with the same colour, so that fewer objects are drawn."""
    groups: dict[Any, list[Mesh]] = {}
    for mesh in meshes:
        groups.setdefault((mesh.body, mesh.colour, mesh.opacity), []).append(mesh)
    out = []
    for (body, colour, opacity), same in groups.items():
        starts = np.cumsum([0, *(len(m.vertices) for m in same[:-1])])
        faces = np.concatenate([m.faces + start for m, start in zip(same, starts)])
        out.append(Mesh(body, "link", np.concatenate([m.vertices for m in same]), faces, colour, opacity))
    return out


# --- triangles -----------------------------------------------------------------------------------------------------


def welded(V: np.ndarray, F: np.ndarray) -> Triangles:
    """Merge vertices at the same place, and remove triangles without area."""
    V, new = np.unique(V.astype(np.float32), axis=0, return_inverse=True)
    return V.astype(float), _proper(new.reshape(-1)[F])


def _proper(F: np.ndarray) -> np.ndarray:
    return F[(F[:, 0] != F[:, 1]) & (F[:, 1] != F[:, 2]) & (F[:, 2] != F[:, 0])]


def _cell(parts: list[Triangles]) -> float:
    """Side of cells [m] for which the total has at most `MAX_TRIANGLES` triangles; 0 if no simplification is needed."""
    if sum(len(F) for _, F in parts) <= MAX_TRIANGLES:
        return 0.0
    side = 1e-3 * max(float(np.ptp(V, axis=0).max()) for V, _ in parts)
    while sum(len(_merged(V, F, side)[1]) for V, F in parts) > MAX_TRIANGLES:
        side *= 1.25
    return side


def _merged(V: np.ndarray, F: np.ndarray, side: float) -> tuple[np.ndarray, np.ndarray]:
    """(the cell of each vertex, the remaining triangles if each cell has one vertex)."""
    _, cell = np.unique(np.floor(V / side).astype(np.int64), axis=0, return_inverse=True)
    cell = cell.reshape(-1)
    left = _proper(cell[F])
    return cell, left[np.unique(np.sort(left, axis=1), axis=0, return_index=True)[1]]


def coarser(V: np.ndarray, F: np.ndarray, side: float) -> Triangles:
    """Simplify a mesh: one vertex in each cell of a grid, at the point with the least squared distances to the
    triangles' planes.

    P. Lindstrom, Out-of-core simplification of large polygonal models, SIGGRAPH 2000.
    """
    cell, left = _merged(V, F, side)
    n = cell.max() + 1
    counts = np.bincount(cell, minlength=n)[:, None]
    middle = np.stack([np.bincount(cell, V[:, k], minlength=n) for k in range(3)], axis=1) / counts
    normals = np.cross(V[F[:, 1]] - V[F[:, 0]], V[F[:, 2]] - V[F[:, 0]])
    A, b = np.zeros((n, 3, 3)), np.zeros((n, 3))  # normal equations, about the centre
    for k in range(3):
        c = cell[F[:, k]]
        off = np.einsum("ij,ij->i", normals, V[F[:, k]] - middle[c])
        np.add.at(A, c, normals[:, :, None] * normals[:, None, :])
        np.add.at(b, c, normals * off[:, None])
    # the centre in directions that the planes do not determine
    A += (1e-3 * np.trace(A, axis1=1, axis2=2) + 1e-30)[:, None, None] * np.eye(3)
    moved = np.linalg.solve(A, b[:, :, None])[:, :, 0]
    stray = np.linalg.norm(moved, axis=1) > side
    moved[stray] = 0.0
    used, F = np.unique(left, return_inverse=True)
    return (middle + moved)[used], F.reshape(-1, 3)


def creased(V: np.ndarray, F: np.ndarray) -> Triangles:
    """Duplicate the vertices of edges that should look sharp, because viewers shade by vertex."""
    if not len(F):
        return V, F
    from trimesh import Trimesh, graph

    smooth = graph.smooth_shade(Trimesh(V, F, process=False), angle=SHARP_ANGLE, facet_minarea=None)
    return np.asarray(smooth.vertices), np.asarray(smooth.faces)
