"""One rule by which all controllers find gains for a robot and a motion, and what they find them from.

With D_i the mean of M_ii over random configurations, each joint gets two rates [1/s], Lambda and
kappa_i = kappa (max D / D_i)^(1/3): light joints are faster, as on real arms, not stiffer. All controllers make of
them the same nominal error dynamics e'' + (kappa_i + Lambda) e' + kappa_i Lambda e = 0, so that a comparison is between
laws, not between stiffnesses. kappa and Lambda are lowered where the fastest rate of the closed loop, the largest
eigenvalue of M^-1 K at random configurations and the motion's, would exceed 1.5 / dt. A law made without gains has
those of this rule for a torque that is held for a millisecond.
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
CONTROL_DT = 1e-3  # s, between a law's commands, for gains that are not given
MAX_RATE_TIMES_DT = 1.5  # / dt: explicit Runge-Kutta methods of order 4 end at 2.8, a held torque at 2
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
    def K(self) -> np.ndarray:
        return self.kappa * self.D

    @property
    def kp(self) -> np.ndarray:
        return self.kappa * self.Lambda

    @property
    def kd(self) -> np.ndarray:
        return self.kappa + self.Lambda

    @property
    def slowed(self) -> float:
        """What is left of the default rates: less than 1 where a step of dt could not follow them."""
        return self.Lambda / LAMBDA

    def smoothing(self, coulomb: np.ndarray) -> float:
        """The speed over which Coulomb friction sets in, such that its slope adds no faster rate than K does."""
        return max(0.02, float((coulomb / (self.kappa * self.D)).max()))


def design(
    robot: Robot,
    dt: float = CONTROL_DT,
    motion: Reference | None = None,
    seconds: float = 0.0,
    samples: int = 50,
) -> Design:
    """Gains by the module's rule, for a controller evaluated each `dt` seconds, at the motion's configurations too."""
    rng = np.random.default_rng(0)
    anywhere = [robot.random_configuration(rng) for _ in range(samples)]
    along = [] if motion is None else [motion(t).q for t in np.linspace(0.0, seconds, samples)]
    M = robot.mass_matrix(np.array([*anywhere, *along]))
    D = np.diagonal(M[:samples], axis1=-2, axis2=-1).mean(axis=0)
    rates = KAPPA * (D.max() / D) ** (1.0 / 3.0)
    root = np.sqrt(rates * D)
    fastest = float(1.0 / np.linalg.eigvalsh(M / np.outer(root, root))[:, 0].min())
    slower = min(1.0, MAX_RATE_TIMES_DT / (fastest * dt))
    return Design(D, slower * LAMBDA, slower * rates, slower * fastest, dt)


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
