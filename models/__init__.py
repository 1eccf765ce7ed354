"""Load robots: bundled models, URDF and MJCF files, Denavit-Hartenberg tables.

    robot = models.panda()            # or models.load("panda"); models.names() lists all
    robot = models.load_urdf("arm.urdf")
    robot = models.load_mjcf("arm.xml")
    robot = models.load_dh("arm.toml")

The bundled robots are in `fixed_base` and `floating_base`, where each function cites the source of its numbers. The
parsers in `io` are imported when the first file is loaded.
"""

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from geomctrl.errors import NameNotFoundError
from geomctrl.models.fixed_base import cart_pole, panda, puma560, scara, two_link, ur10
from geomctrl.models.floating_base import quadrotor, quadruped, satellite, three_spheres
from geomctrl.models.io.in_place import update_model_file
from geomctrl.models.io.mjcf import load_mjcf
from geomctrl.models.io.model_file import file_format, load_dh, load_extra, load_model, save_model
from geomctrl.models.io.urdf import load_urdf
from geomctrl.models.io.urdf_geometry import link_boxes
from geomctrl.models.io.writing import save_c_header, save_mjcf, save_urdf
from geomctrl.robot import Robot

_ALL = (two_link, puma560, panda, ur10, scara, three_spheres, quadruped, satellite, quadrotor, cart_pole)
_BUNDLED: dict[str, Callable[..., Robot]] = {f.__name__: f for f in _ALL}
_LOADERS: dict[str, Callable[..., Robot]] = {"urdf": load_urdf, "mjcf": load_mjcf, "dh": load_dh, "json": load_model}

__all__ = [
    "cart_pole",
    "link_boxes",
    "load",
    "load_dh",
    "load_extra",
    "load_mjcf",
    "load_model",
    "load_urdf",
    "names",
    "panda",
    "puma560",
    "quadrotor",
    "quadruped",
    "satellite",
    "save_c_header",
    "save_mjcf",
    "save_model",
    "save_urdf",
    "scara",
    "three_spheres",
    "two_link",
    "update_model_file",
    "ur10",
]


def __dir__() -> list[str]:
    return [*__all__, "__all__", "__doc__", "__file__", "__name__", "__path__"]


def names() -> tuple[str, ...]:
    """Return the names of the bundled robots.

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
        Keyword arguments of the bundled robot's function, or of `load_urdf`, `load_mjcf`, `load_dh`, `load_model`.

    Returns
    -------
    Robot

    Raises
    ------
    NameNotFoundError
        If no bundled robot has this name and the suffix is not a known file format.
    ModelError, ArgumentError
        If the function for this format raises it.

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
    near = difflib.get_close_matches(str(name), _BUNDLED, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise NameNotFoundError(f"name: no bundled robot named {name!r:.80}; {hint}known: {', '.join(_BUNDLED)}")
