"""What a URDF's robot looks like: its <visual> elements, read when somebody draws it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from geomctrl.errors import GeomctrlError
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.mechanism.origin import Shape
from geomctrl.models.source import read_numbers, read_xml
from geomctrl.models.urdf_collisions import numbers_of, origin_of

__all__ = ["UrdfLooks"]

SIZES = {"box": (("size", 3),), "sphere": (("radius", 1),), "cylinder": (("radius", 1), ("length", 1))}
KNOWN = (*SIZES, "mesh")


@dataclass(frozen=True)
class UrdfLooks:
    """The shapes of a URDF, a file or the text itself.

    A mesh package://name/file is looked for in `package_dirs`, in the folders of ROS_PACKAGE_PATH, in share/ of those
    of AMENT_PREFIX_PATH, beside each of the folders that the file is in, and, where such a folder is the package under
    another name, in it. Other paths are relative to the file.
    """

    source: str | Path
    package_dirs: tuple[Path, ...] = ()

    def shapes(self, robot: Mechanism) -> tuple[list[Shape], list[str]]:
        """(shapes of the links that the robot has, in words what is not there or can not be read)."""
        try:
            document = read_xml(self.source)
        except (GeomctrlError, OSError) as error:
            return [], [f"{self.source}: {error}"]
        palette = {m.get("name"): _colour(m) for m in document.iterfind("material")}
        found: list[Shape] = []
        missing: list[str] = []
        for link in document.iterfind("link"):
            name = link.get("name", "")
            for visual in link.iterfind("visual"):
                try:
                    found += self._shapes(robot, name, visual, palette, missing)
                except GeomctrlError as error:
                    missing.append(str(error))
        return found, list(dict.fromkeys(missing))

    def _shapes(
        self, robot: Mechanism, link: str, visual: Any, palette: dict[str, Any], missing: list[str]
    ) -> list[Shape]:
        """Those of one <visual>; meshes whose files are not there are added to the `missing`."""
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
                missing.append(f"link {link!r}, line {shape.sourceline}: <{shape.tag}> is none of {', '.join(KNOWN)}")
        return out

    def file(self, written: str) -> Path | None:
        """Where the mesh is; None where it is nowhere."""
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
        """The folders that the file is in, from the innermost; none of a text."""
        return list(self.source.resolve().parents) if isinstance(self.source, Path) else []


def _first(paths: list[Path]) -> Path | None:
    for path in paths:
        try:
            if path.is_file():
                return path
        except (OSError, ValueError):  # too long, a null byte: no path at all
            continue
    return None


def _colour(material: Any) -> Any:
    """What a <material> says itself; None where it only has a name."""
    element = material.find("color")
    try:
        rgba = [min(max(x, 0.0), 1.0) for x in read_numbers(element.get("rgba", ""))] if element is not None else []
    except ValueError:
        rgba = []
    return tuple(rgba) if len(rgba) == 4 else None
