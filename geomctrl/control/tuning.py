"""One rule by which all controllers find gains for a robot and a motion, and what they find them from.

With D_i the mean of M_ii over random configurations, each joint gets two rates [1/s], Lambda and
kappa_i = kappa (max D / D_i)^(1/3): light joints are faster, as on real arms, not stiffer. All controllers make of
them the same nominal error dynamics e'' + (kappa_i + Lambda) e' + kappa_i Lambda e = 0, so that a comparison is between
laws, not between stiffnesses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from geomctrl.robot import Robot

from .contracts import Controller, Reference
from .friction import Friction

LAMBDA, KAPPA = 5.0, 20.0  # 1/s
RATES = {"Lambda": "1/s", "kappa": "1/s, K = kappa D"}  # the gains of laws in v_ref = v_d - Lambda e, with meanings
ADAPTED = ("load", "links", "base")  # what laws adapt: the body with the load, all links, the base parameters


@dataclass(frozen=True, eq=False)
class Design:
    """The module's rule for a robot: D (nv,), Lambda, kappa (nv,), the closed loop's fastest rate [1/s], dt [s]."""

    D: np.ndarray
    Lambda: float
    kappa: np.ndarray
    fastest: float
    dt: float

    @property
    def slowed(self) -> float:
        """What is left of the default rates: less than 1 where a step of dt could not follow them."""
        return self.Lambda / LAMBDA

    def smoothing(self, coulomb: np.ndarray) -> float:
        """The speed over which Coulomb friction sets in, such that its slope adds no faster rate than K does."""
        return max(0.02, float((coulomb / (self.kappa * self.D)).max()))


@dataclass(frozen=True, eq=False)
class Tuning:
    """What a controller is made for: the model it may know, the motion to track, and gains that override the rule's."""

    robot: Robot
    motion: Reference
    rule: Design
    seconds: float
    gains: Mapping[str, float] = field(default_factory=dict)
    adapt: str = "load"  # one of ADAPTED
    load_body: str | None = None
    friction: Friction | None = None  # the plant's, for laws that adapt to it, from zero

    @property
    def Lambda(self) -> float:
        return self.gains.get("Lambda", self.rule.Lambda)

    @property
    def kappa(self) -> np.ndarray:
        return self.rule.kappa * (self.gains["kappa"] / KAPPA if "kappa" in self.gains else 1.0)

    @property
    def K(self) -> np.ndarray:
        return self.kappa * self.rule.D

    @property
    def kp(self) -> float | np.ndarray:
        return self.gains.get("kp", self.kappa * self.Lambda)

    @property
    def kd(self) -> float | np.ndarray:
        return self.gains.get("kd", self.kappa + self.Lambda)


class Tuned(Protocol):
    """A class of controllers that finds its gains.

    `GAINS`: the gains that may be given, by name, with their meaning. `tuned`: a controller, the others by the rule.
    """

    GAINS: ClassVar[Mapping[str, str]]

    @classmethod
    def tuned(cls, tuning: Tuning) -> Controller: ...
