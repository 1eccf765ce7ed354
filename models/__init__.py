"""Where robots come from: bundled ones, URDF and MJCF files, Denavit-Hartenberg tables.

    robot = models.panda()            # or models.load("panda"); models.names() lists them
    robot = models.load_urdf("arm.urdf")
    robot = models.load_mjcf("arm.xml")
    robot = models.load_dh("arm.toml")

Each bundled robot has a file, which says where its numbers come from, and a place in `_BUNDLED` below. The parsers are
imported when a file is loaded, not before.
"""

import difflib
from typing import Any

from geomctrl.errors import NameNotFoundError
from geomctrl.models.c_header import save_c_header as save_c_header
from geomctrl.models.cart_pole import cart_pole as cart_pole
from geomctrl.models.dh_file import load_dh as load_dh
from geomctrl.models.in_place import update_model_file as update_model_file
from geomctrl.models.mjcf import load_mjcf as load_mjcf
from geomctrl.models.mjcf_writing import save_mjcf as save_mjcf
from geomctrl.models.model_file import load_extra as load_extra
from geomctrl.models.model_file import load_model as load_model
from geomctrl.models.model_file import save_model as save_model
from geomctrl.models.panda import panda as panda
from geomctrl.models.puma560 import puma560 as puma560
from geomctrl.models.quadrotor import quadrotor as quadrotor
from geomctrl.models.quadruped import quadruped as quadruped
from geomctrl.models.satellite import satellite as satellite
from geomctrl.models.scara import scara as scara
from geomctrl.models.three_spheres import three_spheres as three_spheres
from geomctrl.models.two_link import two_link as two_link
from geomctrl.models.ur10 import ur10 as ur10
from geomctrl.models.urdf import load_urdf as load_urdf
from geomctrl.models.urdf_boxes import link_boxes as link_boxes
from geomctrl.models.urdf_collisions import collision_capsules as collision_capsules
from geomctrl.models.urdf_writing import save_urdf as save_urdf
from geomctrl.robot import Robot

_ALL = (two_link, puma560, panda, ur10, scara, three_spheres, quadruped, satellite, quadrotor, cart_pole)
_BUNDLED = {f.__name__: f for f in _ALL}

__all__ = [
    "cart_pole",
    "collision_capsules",
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
    """The names of the bundled robots."""
    return tuple(_BUNDLED)


def load(name: str, **options: Any) -> Robot:
    """The bundled robot of that name; options as for the function of that name."""
    if not isinstance(name, str) or name not in _BUNDLED:
        near = difflib.get_close_matches(str(name), _BUNDLED, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise NameNotFoundError(f"name: no bundled robot named {name!r:.80}; {hint}known: {', '.join(_BUNDLED)}")
    return _BUNDLED[name](**options)
