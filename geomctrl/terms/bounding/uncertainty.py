"""Inertial parameters in intervals, and bodies heavier than all of them.

A body's pseudo-inertia P (4x4) is linear in its ten parameters, P = sum_p pi_p E_p, and the kinetic energy is linear
and increasing in P. With |E| = (E^2)^(1/2) >= +-E, taken in the body's own measure of length about its nominal centre
of mass, every P of the intervals pi_p +- d_p therefore lies between plus and minus the heavier body's P_nominal + sum_p
d_p |E_p|, and is off the nominal one by at most plus and minus the sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import exactly, number
from geomctrl.errors import ArgumentError
from geomctrl.mechanism import inertia
from geomctrl.mechanism.mechanism import Mechanism


@dataclass(frozen=True)
class Bodies:
    """Ten parameters (nbodies, 10) a body: nominal, of heavier bodies, and half the intervals."""

    nominal: np.ndarray
    heavier: np.ndarray
    deviation: np.ndarray

    @property
    def certain(self) -> bool:
        return not self.deviation.any()


def bodies_of(robot: Mechanism, parameters: float | tuple[ArrayLike, ArrayLike] | None) -> Bodies:
    """The robot's bodies with their parameters in intervals: None, a relative error, or (lower, upper)."""
    nominal, deviation = _interval(robot, parameters)
    # of a thin rod or a point P >= 0 but for rounding
    lacking = np.maximum(-2.0 * np.linalg.eigvalsh(inertia.pseudo(nominal))[:, 0], 0.0)
    heavier = nominal + inertia.from_pseudo(lacking[:, None, None] * np.eye(4))
    if deviation.any():
        heavier = heavier + np.array([_majorant(pi, d) for pi, d in zip(nominal, deviation)])
    return Bodies(nominal, heavier, deviation)


def _interval(robot: Mechanism, parameters) -> tuple[np.ndarray, np.ndarray]:
    shape, pi = robot.parameters.shape, np.array(robot.parameters)
    if parameters is None:
        return pi, np.zeros(shape)
    if isinstance(parameters, (tuple, list)):
        if len(parameters) != 2:
            raise ArgumentError(f"parameters: expected (lower, upper), got {len(parameters)} things")
        lower, upper = (exactly(f"parameters: {x}", a, shape) for x, a in zip(("lower", "upper"), parameters))
        if (lower > upper).any():
            body, p = np.argwhere(lower > upper)[0].tolist()
            raise ArgumentError(
                f"parameters: expected lower <= upper, got {lower[body, p]:.6g} > {upper[body, p]:.6g} for parameter"
                f" {p} of body {robot.body_names[body]!r}"
            )
        return 0.5 * (lower + upper), 0.5 * (upper - lower)
    error = number(
        "parameters", parameters, "a relative error from 0 to below 1, or (lower, upper)", lambda x: 0.0 <= x < 1.0
    )
    return pi, error * np.abs(pi)


def _majorant(pi: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """The parameters of sum_p d_p |E_p|."""
    center, radius = _measure(pi)
    to_own = np.eye(4)  # coordinates x -> (x - center) / radius
    to_own[:3] /= radius
    to_own[:3, 3] = -center / radius
    back = np.linalg.inv(to_own)
    total = np.zeros((4, 4))
    for d, E in zip(deviation, inertia.pseudo(np.eye(10))):
        eigenvalues, U = np.linalg.eigh(to_own @ E @ to_own.T)
        total += d * (U * np.abs(eigenvalues)) @ U.T
    return inertia.from_pseudo(back @ total @ back.T)


def _measure(pi: np.ndarray) -> tuple[np.ndarray, float]:
    """A body's centre of mass and radius of gyration; the origin and 1 m where it has none."""
    if pi[0] <= 0.0:
        return np.zeros(3), 1.0
    gyration = np.sqrt(max(np.trace(inertia.com_tensor(pi)), 0.0) / (2.0 * pi[0]))
    return inertia.com(pi), float(gyration) or 1.0
