"""Default gains: one rule that gives all controllers comparable gains for a robot and a motion.

D_i is the mean of M_ii over random configurations. Each joint gets two rates [1/s], Lambda and
kappa_i = kappa (max D / D_i)^(1/3), so that light joints are faster but not stiffer, as on real arms. All controllers
use them for the same nominal error dynamics e'' + (kappa_i + Lambda) e' + kappa_i Lambda e = 0. Comparisons of
controllers therefore compare laws and not stiffnesses. kappa and Lambda are reduced if the fastest rate of the closed
loop, the largest eigenvalue of M^-1 K at random configurations and those of the motion, would exceed 1.5 / dt. A
controller created without gains uses this rule with a torque held for one millisecond.
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
CONTROL_DT = 1e-3  # s, assumed time between commands for default gains
MAX_RATE_TIMES_DT = 1.5  # explicit Runge-Kutta methods of order 4 are stable up to 2.8, a held torque up to 2
RATES = {"Lambda": "1/s", "kappa": "1/s, K = kappa D"}  # gains of laws with v_ref = v_d - Lambda e, and their units
ADAPTED = ("load", "links", "base")  # adapted parameters: the body with the load, all links, base parameters


@dataclass(frozen=True, eq=False)
class Design:
    """Gains of this module's rule: D (nv,), Lambda, kappa (nv,), fastest rate of the closed loop [1/s], dt [s]."""

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
        """Fraction of the default rates that remains; less than 1 if a step of dt requires slower rates."""
        return self.Lambda / LAMBDA

    def smoothing(self, coulomb: np.ndarray) -> float:
        """A smoothing speed of Coulomb friction whose slope adds no rate faster than that of K."""
        return max(0.02, float((coulomb / (self.kappa * self.D)).max()))


def design(
    robot: Robot,
    dt: float = CONTROL_DT,
    motion: Reference | None = None,
    seconds: float = 0.0,
    samples: int = 50,
) -> Design:
    """Default gains for a controller evaluated every `dt` seconds; `motion` adds its configurations to the rule."""
    rng = np.random.default_rng(0)
    anywhere = [robot.random_configuration(rng) for _ in range(samples)]
    along = [] if motion is None else [motion(t).q for t in np.linspace(0.0, seconds, samples)]
    M = robot.mass_matrix(np.array([*anywhere, *along]))
    D = np.diagonal(M[:samples], axis1=-2, axis2=-1).mean(axis=0)
    rates = KAPPA * (D.max() / D) ** (1.0 / 3.0)
    root = np.sqrt(rates * D)
    M /= np.outer(root, root)  # in place: the matrices of a thousand bodies have megabytes
    fastest = float(1.0 / np.linalg.eigvalsh(M)[:, 0].min())
    slower = min(1.0, MAX_RATE_TIMES_DT / (fastest * dt))
    return Design(D, slower * LAMBDA, slower * rates, slower * fastest, dt)


@dataclass(frozen=True, eq=False)
class Tuning:
    """What `tuned` needs to create a controller: its model, the motion to track, the gains, and what to adapt."""

    robot: Robot
    motion: Reference
    rule: Design
    seconds: float
    gains: Mapping[str, float] = field(default_factory=dict)
    adapt: str = "load"  # one of ADAPTED
    load_body: str | None = None
    friction: Friction | None = None  # the plant's friction model, whose parameters adaptive laws estimate from zero

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


class TunableController(Protocol):
    """A class of controllers that can choose its gains.

    `GAINS` maps the names of gains to their units or meaning. `tuned` returns a controller with the given gains and
    default values for all others.
    """

    GAINS: ClassVar[Mapping[str, str]]

    @classmethod
    def tuned(cls, tuning: Tuning) -> Controller: ...
