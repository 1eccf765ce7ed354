"""Frame: a place on a body, by name."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

WORLD = "world"


class Frame(NamedTuple):
    """A named frame fixed in body number `body` (-1: the world) at `placement`, T_body_frame."""

    name: str
    body: int
    placement: np.ndarray
