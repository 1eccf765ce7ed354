"""Which parameters a model has, in which order: (name, kind, owner) of each, and the checks of what was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from geomctrl.arguments import checked, count, listed
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.mechanism.states import require_vectors
from geomctrl.robot import Robot

from .columns import Column, Curve

INERTIAL = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
AT_ACTUATORS = {"viscous": "fv", "coulomb": "fc", "offset": "fo", "rotor": "Ir"}
AT_SPRINGS = {"stiffness": "ks", "preload": "k0"}
NONE = np.zeros(0, int)
Parameter = tuple[str, str, str]


def in_order(
    robot: Robot,
    acts: Mapping[str, np.ndarray],
    actuators: Sequence[str],
    springs: Sequence[int],
    curves: Sequence[Curve],
    columns: Sequence[Column],
) -> list[Parameter]:
    """All parameters: of bodies, actuators, springs, friction curves, columns of one's own."""
    listed: list[Parameter] = [
        (f"{kind}{i + 1}", kind, body) for i, body in enumerate(robot.body_names) for kind in INERTIAL
    ]
    listed += [
        (f"{symbol}{k + 1}", kind, actuators[int(k)]) for kind, symbol in AT_ACTUATORS.items() for k in acts[kind]
    ]
    listed += [(f"{symbol}{k + 1}", kind, robot.dof_names[k]) for kind, symbol in AT_SPRINGS.items() for k in springs]
    listed += [(c.symbol, "curve", actuators[c.actuator]) for c in curves]
    listed += [(c.name, "user", c.name) for c in columns]
    names = [name for name, _, _ in listed]
    twice = [x for x in names if names.count(x) > 1]
    if twice:
        raise ArgumentError(f"columns: the name {twice[0]!r} is used twice")
    return listed


def transmission_matrix(given, n: int) -> np.ndarray:
    """(actuators, n), checked; None: the identity."""
    T = np.eye(n) if given is None else np.array(checked("transmission", given, (n,)))
    if T.ndim != 2 or not len(T) or not np.abs(T).max(1).all():
        raise ArgumentError(f"transmission: expected finite rows (actuators, {n}), none of them zero, got {T.shape}")
    return T


def actuator_names(robot: Robot, transmission: np.ndarray | None) -> list[str]:
    """The joints' names, or which joints each row of a transmission adds up."""
    if transmission is None:
        return list(robot.dof_names)
    return [" + ".join(_term(c, robot.dof_names[k]) for k, c in enumerate(row) if c) for row in transmission]


def _term(coefficient: float, name: str) -> str:
    return name if coefficient == 1.0 else f"{coefficient:g} {name}"


def chosen_actuators(kind: str, chosen: bool | Sequence[int], n: int, driven: np.ndarray = NONE) -> np.ndarray:
    """Numbers of the actuators that have friction of a kind: `driven` ones for True, none for False, or those given."""
    if isinstance(chosen, (bool, np.bool_)):
        return driven if chosen else driven[:0]
    try:
        at = np.array(listed(kind, chosen))
    except ValueError:
        at = np.zeros(1)
    if at.size and (at.dtype.kind not in "iu" or at.min() < 0 or at.max() >= n):
        raise ArgumentError(f"{kind}: expected actuator numbers from 0 to {n - 1}, got {chosen!r:.60}")
    return at.astype(int)


def spring_joints(robot: Robot, given: Sequence[str | int]) -> list[int]:
    """Numbers of the joints with springs, given by name or number."""
    springs = [_joint(robot, k) for k in listed("springs", given)]
    if springs:
        require_vectors("springs", robot)
    if any(not 0 <= k < robot.nv for k in springs):
        raise ArgumentError(f"springs: expected joints' names or numbers from 0 to {robot.nv - 1}, got {list(given)}")
    return springs


def _joint(robot: Robot, k: Any) -> int:
    try:
        return robot.joint(k) if isinstance(k, str) else count("springs", k)
    except NameNotFoundError as error:
        raise NameNotFoundError(f"springs: {error}") from None


def check_curves(curves: Sequence[Curve], n: int) -> None:
    for c in curves:
        if not isinstance(c, Curve) or not c.actuator < n:
            raise ArgumentError(
                f"curves: expected a sigmoid or stribeck of a positive speed on one of {n} actuators, got {c}"
            )
