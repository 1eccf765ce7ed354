"""Looks: what draws a robot, and no more than that. No term and no controller asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np


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


class Looks(Protocol):
    """Where a robot's shapes are. They are read when somebody draws it."""

    @property
    def source(self) -> str | Path:
        """The file, or the text itself."""
        ...

    def shapes(self, robot: Any) -> tuple[list[Shape], list[str]]:
        """(the shapes that are there, in words what is not)."""
        ...
