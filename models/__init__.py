"""Load robots: bundled models, URDF and MJCF files, Denavit-Hartenberg tables.

    robot = models.panda()            # or models.load("panda"); models.names() lists all
    robot = models.load_urdf("arm.urdf")
    robot = models.load_mjcf("arm.xml")
    robot = models.load("arm.toml")   # a Denavit-Hartenberg table; models.save(robot, path) writes a file

The bundled robots are in `fixed_base` and `floating_base`, where each function cites the source of its numbers. The
parsers in `io` are imported when the first file is loaded.
"""

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geomctrl.arguments import path_of, shown
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.models.fixed_base import cart_pole, panda, puma560, scara, two_link, ur10
from geomctrl.models.floating_base import quadrotor, quadruped, satellite, three_spheres
from geomctrl.models.io.mjcf import load_mjcf
from geomctrl.models.io.model_file import file_format, load_dh, load_extra, load_model, save_model
from geomctrl.models.io.urdf import load_urdf
from geomctrl.models.io.urdf_geometry import link_boxes
from geomctrl.models.io.writing import save_c_header, save_mjcf, save_urdf
from geomctrl.other_names import unknown_names
from geomctrl.robot import Robot

_ALL = (two_link, puma560, panda, ur10, scara, three_spheres, quadruped, satellite, quadrotor, cart_pole)
_BUNDLED: dict[str, Callable[..., Robot]] = {f.__name__: f for f in _ALL}
_LOADERS: dict[str, Callable[..., Robot]] = {"urdf": load_urdf, "mjcf": load_mjcf, "dh": load_dh, "json": load_model}
_WRITERS: dict[str, tuple[Callable[..., Path], tuple[str, ...]]] = {  # and the options that each takes
    ".urdf": (save_urdf, ()),
    ".xml": (save_mjcf, ()),
    ".mjcf": (save_mjcf, ()),
    ".json": (save_model, ("extra",)),
    ".h": (save_c_header, ("extra", "name")),
}

__all__ = [
    "cart_pole",
    "link_boxes",
    "load",
    "load_extra",
    "load_mjcf",
    "load_urdf",
    "names",
    "panda",
    "puma560",
    "quadrotor",
    "quadruped",
    "satellite",
    "save",
    "scara",
    "three_spheres",
    "two_link",
    "ur10",
]

if not TYPE_CHECKING:  # type checkers report unknown names themselves
    __getattr__ = unknown_names(__name__, __all__)


def __dir__() -> list[str]:
    return [*__all__, "__all__", "__doc__", "__file__", "__name__", "__path__"]


def names() -> tuple[str, ...]:
    """Return the names of the bundled robots.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> from geomctrl import models
    >>> "panda" in models.names()
    True
    """
    return tuple(_BUNDLED)


def load(name: str | Path, **options: Any) -> Robot:
    """Load a bundled robot by name, or a robot from a file.

    Parameters
    ----------
    name : str or Path
        One of `names()`, or a file. The file's suffix selects the format: .urdf (URDF), .xml or .mjcf (MJCF), .toml
        (Denavit-Hartenberg table) or .json (geomctrl's own model file).
    **options
        Keyword arguments of the bundled robot's function, or of `load_urdf` or `load_mjcf`.

    Returns
    -------
    Robot

    Raises
    ------
    NameNotFoundError
        If no bundled robot has this name and the suffix is not a known file format.
    ModelError, ArgumentError
        If the file is not a complete and valid description of a robot; the message names it.

    Notes
    -----
    A model file has exactly the numbers that `save` wrote. In a Denavit-Hartenberg table each body is a ball with its
    mass and a radius of gyration of 0.1 m, a start for identification. Its table [robot] has these keys:

        [robot]
        name = "arm"
        convention = "standard"    # or "modified" (Craig), see `Robot.from_dh`
        angles = "deg"             # unit of alpha and theta; default "rad"
        a = [0.35, 1.15]           # m
        alpha = [90, 0]
        d = [0.675, 0]             # m
        theta = [0, 0]             # default zeros
        masses = [20, 10]          # kg, estimates
        joints = ["pan", "lift"]   # default joint1, joint2, ...
        prismatic = []             # names of the prismatic joints
        gravity = [0, 0, -9.81]    # m/s^2, in the base frame
        effort = [300, 200]        # limits in SI units, also velocity, lower, upper; default none

    Examples
    --------
    >>> from geomctrl import models
    >>> models.load("panda").nv
    7
    """
    if isinstance(name, str) and name in _BUNDLED:
        return _BUNDLED[name](**options)
    if isinstance(name, (str, Path)) and (kind := file_format(name)):
        return _LOADERS[kind](name, **options)
    near = difflib.get_close_matches(shown(name).strip("'"), _BUNDLED, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise NameNotFoundError(f"name: no bundled robot named {shown(name)}; {hint}known: {', '.join(_BUNDLED)}")


def save(robot: Robot, path: str | Path, extra: Mapping[str, Any] | None = None, *, name: str | None = None) -> Path:
    """Write a robot to a file in the format of the file's suffix.

    Parameters
    ----------
    robot : Robot
        The robot.
    path : str or Path
        The file to write. Its suffix selects the format: .urdf (URDF), .xml or .mjcf (MJCF), .json (geomctrl's own
        model file, exact to the last bit) or .h (a C header, C99 and C++, of the parameters as constants; `Robot.to_c`
        writes complete terms).
    extra : mapping, optional
        For .json: additional data that JSON can hold, which `load_extra` reads. For .h: data from `load_extra`; its
        "identified" becomes NAME_identified[], its "smoothing" NAME_smoothing.
    name : str, optional
        For .h: the prefix NAME of the constants. Default: the robot's name as a C identifier.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    ModelError
        If the format can not represent the robot. URDF has revolute, prismatic and fixed joints without springs, and a
        joint follows at most one other. MJCF has revolute, prismatic and spherical joints, free ones on the world, and
        physically possible bodies.
    ArgumentError
        If no file with this suffix can be written, or if the format has no `extra` or `name`.

    Notes
    -----
    `load` reads .urdf, .xml and .json back: the same dynamics up to rounding, in .json exactly the same numbers. URDF
    has no gravity. In MJCF gravity, damping, friction, springs, limits and armature of the joints are written,
    couplings as constraints, and frames as sites.

    Examples
    --------
    >>> import tempfile
    >>> from geomctrl import models
    >>> folder = tempfile.mkdtemp()
    >>> models.load(models.save(models.two_link(), f"{folder}/arm.json")).nv
    2
    """
    suffix = path_of("path", path).suffix.lower()
    chosen = {key: x for key, x in (("extra", extra), ("name", name)) if x is not None}
    if suffix not in _WRITERS:
        raise ArgumentError(f"path: expected a file that ends in {', '.join(_WRITERS)}, got {str(path)!r:.120}")
    writer, options = _WRITERS[suffix]
    for key in sorted(chosen.keys() - set(options)):
        raise ArgumentError(f"{key}: not an option for {suffix} files")
    return writer(robot, path, **chosen)
