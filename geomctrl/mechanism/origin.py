"""Named frames of a robot, its shapes for pictures, and the record of how it was built."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from geomctrl.arguments import flag, shown
from geomctrl.errors import ArgumentError

WORLD = "world"


class Frame(NamedTuple):
    """A named frame that is fixed to a body.

    Attributes
    ----------
    name : str
    body : int
        Number of the body; -1: the world.
    placement : array (4, 4)
        Pose T_body_frame of the frame in the body.

    Examples
    --------
    >>> import geomctrl as gc
    >>> frame = gc.models.two_link().frame("tip")
    >>> frame.name, frame.body, frame.placement[:3, 3]
    ('tip', 1, array([1., 0., 0.]))
    """

    name: str
    body: int
    placement: np.ndarray


class Shape(NamedTuple):
    """A shape fixed to body number `body` (-1: the world) with the pose `placement`, T_body_shape (4, 4).

    Attributes
    ----------
    kind : str
        "box", "cylinder" (along z), "sphere" or "mesh".
    size : tuple of float
        Box: the three side lengths [m]. Cylinder: radius and length [m]. Sphere: radius [m]. Mesh: scale along its
        axes.
    file : str
        The file of a mesh.
    colour : tuple of float or None
        Red, green, blue and opacity from 0 to 1; None if the file does not define it.
    """

    body: int
    placement: np.ndarray
    kind: str
    size: tuple[float, ...]
    colour: tuple[float, float, float, float] | None = None
    file: Path | None = None


class Visual(Protocol):
    """Protocol for the shapes of a robot, which are read from their file when the robot is drawn."""

    @property
    def source(self) -> str | Path:
        """The file, or its text."""
        ...

    def shapes(self, robot: Any) -> tuple[list[Shape], list[str]]:
        """Return the shapes that could be read, and messages about those that could not."""
        ...


@dataclass(frozen=True)
class Origin:
    """Information about the bodies or the file that a robot was built from; the dynamics do not use it.

    Parameters
    ----------
    renumbered : bool
        Whether the bodies were reordered so that parents come first.
    visual : Visual, optional
        The shapes that draw the robot; None if no file describes them.
    """

    renumbered: bool = False
    visual: Visual | None = None

    def __post_init__(self):
        flag("renumbered", self.renumbered)
        if self.visual is not None and not callable(getattr(self.visual, "shapes", None)):
            raise ArgumentError(f"visual: expected None or an object with a method `shapes`, got {shown(self.visual)}")


BUILT = Origin()
