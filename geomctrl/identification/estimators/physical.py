"""What the physically consistent estimators share: the same least squares, in units natural to the robot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import flag, number
from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import DataError, SolverError
from geomctrl.identification.model.compressed import Compressed
from geomctrl.identification.model.regressor_model import RegressorModel
from geomctrl.mechanism import inertia

from .conditioning import natural_scale
from .least_squares import prior_of, weights_of

LARGEST = 1e15  # in natural units, where the log's |b|^2 is 1: beside more, the log is lost in rounding


@dataclass(frozen=True)
class Penalties:
    """|A y - b|^2 + regularization |y - y0|^2 + entropic sum_i D(P_i || P0_i) / nbodies, P_i >= margin 1 in units
    natural to the robot; friction_signs: friction, rotor inertias and stiffnesses not negative.
    """

    regularization: float
    entropic: float
    margin: float
    friction_signs: bool

    def __post_init__(self):
        flag("friction_signs", self.friction_signs)
        for name in ("regularization", "entropic", "margin"):
            x = number(name, getattr(self, name), "a number >= 0", lambda x: x >= 0.0)
            if x > LARGEST:
                raise ArgumentError(f"{name}: expected at most {LARGEST:g}, beside which the log counts, got {x!r}")
            object.__setattr__(self, name, x)


@dataclass(frozen=True, eq=False)
class Scaled:
    """A log A y = b with x = scale y, so that every entry of y is of order one and |b| is 1; `prior`: x0."""

    model: RegressorModel
    weights: np.ndarray
    prior: np.ndarray
    scale: np.ndarray
    A: np.ndarray
    b: np.ndarray

    @property
    def mass(self) -> float:
        return self.scale[0]

    @property
    def length(self) -> float:
        return self.scale[1] / self.scale[0]

    def prior_bodies(self) -> np.ndarray:
        """The bodies' parameters (nbodies, 10) in x0. Raises SolverError unless they are strictly physical."""
        bodies = self.prior[: self.model.inertial].reshape(-1, 10)
        good = inertia.is_physical(bodies, strict=True)
        if not good.all():
            raise SolverError(
                f"prior: an entropic distance needs strictly physical bodies;"
                f" {self.model.robot.body_names[int(np.argmin(good))]!r} is not"
            )
        return bodies


def in_natural_units(
    model: RegressorModel, c: Compressed, weights: ArrayLike | str | None, prior: ArrayLike | None
) -> Scaled:
    w, x0 = weights_of(model, c, weights), prior_of(model, prior)
    with np.errstate(all="ignore"):  # said in words
        A, b = c.system(w)
        scale, size = natural_scale(model, A, b), np.linalg.norm(b)
        A, b = A * scale / size, b / size
    if not (0.0 < size < np.inf and np.isfinite(A).all()):
        raise DataError(
            f"weighted torques: expected a norm above 0 and finite, got {size:g}: see `weights` and the log"
        )
    return Scaled(model, w, x0, scale, A, b)
