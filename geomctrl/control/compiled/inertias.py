"""The inertial parameters of a twin: which inputs of a trace they are."""

from __future__ import annotations

from typing import Any

from geomctrl.kernels import tree


def inertial_parameters(robot: Any) -> list[Any]:
    """The symbols that the terms of a twin of a robot know as its parameters, ten a body, one body after the other."""
    rows = robot._model[: robot.nbodies * tree.WIDTH].reshape(-1, tree.WIDTH)
    return rows[:, tree.J : tree.S].ravel().tolist()
