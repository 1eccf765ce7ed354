"""Frames by name, and where a robot comes from: the order of its bodies, its shapes. No term needs the latter."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from geomctrl.arguments import flag
from geomctrl.errors import ArgumentError

WORLD = "world"


class Frame(NamedTuple):
    """A named frame fixed in body number `body` (-1: the world) at `placement`, T_body_frame."""

    name: str
    body: int
    placement: np.ndarray


class Shape(NamedTuple):
    """A shape fixed in body number `body` (-1: the world) at `placement`, T_body_shape.

    kind and size [m]: "box", its sides; "cylinder", radius and length along z; "sphere", radius; "mesh", the scale of
    its three axes, with the `file` it is in. colour: red, green, blue, opacity from 0 to 1, or None where the file does
    not say.
    """

    body: int
    placement: np.ndarray
    kind: str
    size: tuple[float, ...]
    colour: tuple[float, float, float, float] | None = None
    file: Path | None = None


class Visual(Protocol):
    """The shapes of a robot, read from their file when the robot is drawn."""

    @property
    def source(self) -> str | Path:
        """The file, or the text itself."""
        ...

    def shapes(self, robot: Any) -> tuple[list[Shape], list[str]]:
        """(the shapes that could be read, messages about those that could not)."""
        ...


@dataclass(frozen=True)
class Origin:
    """What a robot keeps of the bodies or the file that it was built from.

    Parameters
    ----------
    renumbered : bool
        Whether the bodies have another order than the one they were given in, since parents come first.
    visual : Visual, optional
        The shapes that draw the robot; None where no file describes them.
    """

    renumbered: bool = False
    visual: Visual | None = None

    def __post_init__(self):
        flag("renumbered", self.renumbered)
        if self.visual is not None and not callable(getattr(self.visual, "shapes", None)):
            raise ArgumentError(f"visual: expected None or an object with a method `shapes`, got {self.visual!r:.80}")


BUILT = Origin()
