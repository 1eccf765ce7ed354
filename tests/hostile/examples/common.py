"""A small robot, a state, and what else many examples need."""

import functools
import tempfile
from pathlib import Path

import numpy as np
from hostile.values import Argument, Fresh, text

import geomctrl as gc
from geomctrl import models

ROBOT = models.two_link()
N = ROBOT.nv
Q, V, A = np.array([0.3, -0.7]), np.array([0.5, -1.25]), np.array([1.5, 0.25])
F_EXT = 0.25 * np.arange(12.0).reshape(2, 6)
T = np.array([[0.0, -1.0, 0.0, 0.5], [1.0, 0.0, 0.0, -0.25], [0.0, 0.0, 1.0, 2.0], [0.0, 0.0, 0.0, 1.0]])
BODY = gc.inertia.from_com(2.0, (0.25, 0.0, 0.5), np.diag([0.5, 0.5, 0.25]))
FRAME = "tip"
DESIRED = gc.Desired(0.5 * Q, 0.25 * V, 0.5 * A)
REFERENCE = gc.references.Quintic(ROBOT, Q, [1.0, 0.5], 2.0)
_folder = tempfile.TemporaryDirectory(prefix="geomctrl-hostile-")  # deleted at the end of the process
FOLDER = Path(_folder.name)
PATH = "string"  # for paths: any text is a path


def subclasses(module, base: type) -> list[str]:
    """The public classes of a module that derive from `base`, except those that are names of geomctrl itself."""
    classes = {name: getattr(module, name) for name in module.__all__ if name not in gc.NAMES}
    return [name for name, x in classes.items() if isinstance(x, type) and issubclass(x, base)]


def rng() -> Fresh:
    return Fresh(lambda: np.random.default_rng(0))


def path(name: str) -> Argument:
    return Argument(FOLDER / name, PATH, forms=False)


def words(value: str) -> Argument:
    return text(value)


@functools.cache
def run() -> gc.Run:
    law = gc.controllers.PDGravity(ROBOT, [1.0, 0.5])
    return gc.simulate(ROBOT, law, Q, V, 0.02, 0.001)
