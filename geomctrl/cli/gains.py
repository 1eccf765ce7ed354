"""Gains for any robot, from its mass matrix.

The rule that all controllers share is `geomctrl.control.tuning`'s, and each says what it makes of it. kappa and
Lambda are lowered where the fastest rate of the closed loop, the largest eigenvalue of M^-1 K at random configurations
and the motion's, would exceed 1.5 / dt.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np

from geomctrl.control.contracts import Reference
from geomctrl.control.tuning import KAPPA, LAMBDA, Design
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot

FASTEST = 1.5  # / dt: explicit Runge-Kutta methods of order 4 end at 2.8, a held torque at 2
START = 0.01  # rad/s or m/s, largest initial velocity error


def design(robot: Robot, dt: float, motion: Reference | None = None, seconds: float = 0.0, samples: int = 50) -> Design:
    """Gains by the module's rule, for a controller evaluated each `dt` seconds, at the motion's configurations too."""
    rng = np.random.default_rng(0)
    anywhere = [robot.random_configuration(rng) for _ in range(samples)]
    along = [] if motion is None else [motion(t).q for t in np.linspace(0.0, seconds, samples)]
    M = robot.mass_matrix(np.array([*anywhere, *along]))
    D = np.diagonal(M[:samples], axis1=-2, axis2=-1).mean(axis=0)
    rates = KAPPA * (D.max() / D) ** (1.0 / 3.0)
    root = np.sqrt(rates * D)
    fastest = float(1.0 / np.linalg.eigvalsh(M / np.outer(root, root))[:, 0].min())
    slower = min(1.0, FASTEST / (fastest * dt))
    return Design(D, slower * LAMBDA, slower * rates, slower * fastest, dt)


def start(robot: Robot, motion: Reference, rule: Design) -> tuple[np.ndarray, np.ndarray]:
    """(q0, v0): on the motion, with a small velocity error to remove in the direction that K damps most slowly.

    In that direction no fast mode is excited, which a step of dt would follow less well.
    """
    q, v, _ = motion(0.0)
    root = np.sqrt(rule.kappa * rule.D)
    slowest = np.linalg.eigh(robot.mass_matrix(q) / np.outer(root, root))[1][:, -1] / root
    return q, v + START * slowest / np.abs(slowest).max()


def parse_gains(controller: str, known: Collection[str], text: str | None) -> dict[str, float]:
    """ "Lambda=8,kappa=30" as a dict, checked against the gains that the controller is known to have."""
    gains: dict[str, float] = {}
    for part in (text or "").replace(" ", "").split(","):
        if not part:
            continue
        name, _, number = part.partition("=")
        if name not in known:
            raise ArgumentError(f"gains: {controller} has no gain {name!r}; known: {', '.join(known)}")
        try:
            gains[name] = float(number)
        except ValueError:
            raise ArgumentError(f"gains: expected {name}=number, got {part!r}") from None
        if not (math.isfinite(gains[name]) and gains[name] > 0.0):
            raise ArgumentError(f"gains: {name}: expected a positive number, got {number}")
    return gains
