"""Compliant contact of points with half-spaces.

The normal force is that of Hunt and Crossley, "Coefficient of restitution interpreted as damping in vibroimpact",
J. Applied Mechanics 42 (1975): with the depth x of the point below the surface

    N = k x^p (1 + d xdot)        where x > 0 and the bracket is positive, else 0,

which grows from zero at touch-down, never pulls, and stores the energy k x^(p+1) / (p + 1). Friction is Coulomb's,
smoothed about zero slip: f_t = -mu N s / sqrt(|s|^2 + u^2) with the velocity s of the point along the surface. Marhefka
and Orin, "A compliant contact model with nonlinear damping for simulation of robotic systems", IEEE Trans. SMC-A 29
(1999), use this normal force for robots and relate d to the coefficient of restitution. A mass that lands at speed v
leaves at speed w,

    d v - log(1 + d v) = -d w - log(1 - d w),        w / v = 1 - 2/3 d v + ... for small d v.

A smoothed Coulomb force does not hold a point: under a force F along the surface the point creeps at
F u / sqrt((mu N)^2 - F^2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import exactly, frozen, instance, listed, number, shown
from geomctrl.described import ReadableRepr
from geomctrl.errors import ArgumentError
from geomctrl.kernels import plant as kernels
from geomctrl.mechanism.mechanism import require_robot
from geomctrl.other_names import named_arguments
from geomctrl.robot import Robot
from geomctrl.terms.batches import over_states
from geomctrl.terms.kinematics import on_a_body

from .wrenches import External


@named_arguments()
@dataclass(frozen=True, eq=False, repr=False)
class HalfSpace(ReadableRepr):
    """The solid half-space of all x with normal . (x - point) <= 0, in world axes.

    Parameters
    ----------
    normal : array (3,)
        Outward normal, of any length. Default: (0, 0, 1).
    point : array (3,)
        A point of the surface [m]. Default: the origin.

    Examples
    --------
    >>> import geomctrl as gc
    >>> gc.HalfSpace(normal=(0.0, 0.0, 2.0)).normal
    array([0., 0., 1.])
    """

    normal: ArrayLike = (0.0, 0.0, 1.0)
    point: ArrayLike = (0.0, 0.0, 0.0)

    def __post_init__(self):
        n = exactly("normal", self.normal, (3,))
        length = math.hypot(*n)  # also of components whose squares overflow
        if not 0.0 < length < np.inf:
            raise ArgumentError(f"normal: expected a direction, got {shown(self.normal)}")
        object.__setattr__(self, "normal", frozen(n / length))
        object.__setattr__(self, "point", frozen(exactly("point", self.point, (3,))))

    @property
    def offset(self) -> float:
        """normal . point [m]."""
        return float(np.dot(self.normal, self.point))


GROUND = HalfSpace()


class ContactState(NamedTuple):
    """The state of a contact.

    For each of its m points: depth (..., m) [m], negative above the surface, and force on the robot (..., m, 3) [N] in
    world axes. For all points together: elastic energy (...,) [J] and dissipated power (...,) [W], never negative.
    """

    depth: np.ndarray
    force: np.ndarray
    energy: np.ndarray
    dissipation: np.ndarray


@named_arguments()
@dataclass(frozen=True, eq=False, repr=False)
class Contact(External):
    """Compliant contact of points of the robot with a half-space, for `Plant(f_ext=...)`.

    Parameters
    ----------
    points : list of str or (str, array (3,))
        Names of frames, or pairs (frame, offset) with the offset [m] in frame axes.
    stiffness : float
        k > 0 [N/m^p], see Notes.
    dissipation : float
        d >= 0 [s/m]. Default 0.
    friction : float
        Coefficient mu >= 0. Default 0.
    surface : HalfSpace
        The solid. Default: the ground, z <= 0.
    exponent : float
        p >= 1. Default 3/2, that of a sphere (Hertz).
    slip_speed : float
        u > 0 [m/s]: at this speed friction has 71 % of its full force. Default 0.01.

    Raises
    ------
    ArgumentError
        If an argument is invalid. `Plant` checks that the frames exist.

    Notes
    -----
    A point at the depth x, with the velocity s along the surface, feels the normal force N = k x^p max(1 + d x', 0) and
    the friction -mu N s / sqrt(|s|^2 + u^2) (Hunt and Crossley 1975). For an effective mass m at the point, a fixed
    step must resolve both rates, sqrt(p k x^(p-1) / m) and mu N / (m u).

    Examples
    --------
    >>> import geomctrl as gc
    >>> contact = gc.Contact(["tip"], stiffness=1e5, dissipation=1.0, friction=0.5)
    >>> plant = gc.Plant(gc.models.two_link(), f_ext=contact)
    """

    points: Sequence[str | tuple[str, ArrayLike]]
    stiffness: float
    dissipation: float = 0.0
    friction: float = 0.0
    surface: HalfSpace = GROUND
    exponent: float = 1.5
    slip_speed: float = 0.01
    _law: np.ndarray = field(init=False, repr=False)

    def __post_init__(self):
        points = self.points
        if isinstance(points, str):
            raise ArgumentError(f"points: expected a list of frames, got {shown(points)}")
        object.__setattr__(self, "points", tuple(_point(x) for x in listed("points", points)))
        if not self.points:
            raise ArgumentError("points: expected at least one, got none")
        instance("surface", self.surface, HalfSpace, "a geomctrl.HalfSpace")
        for name, least, expected in (
            ("stiffness", 0.0, "a positive number"),
            ("dissipation", None, "a number, not negative"),
            ("friction", None, "a number, not negative"),
            ("slip_speed", 0.0, "a positive speed"),
        ):
            good = (lambda x: x >= 0.0) if least is None else (lambda x: x > 0.0)
            object.__setattr__(self, name, number(name, getattr(self, name), expected, good))
        object.__setattr__(
            self, "exponent", number("exponent", self.exponent, "a number from 1 on", lambda x: x >= 1.0)
        )
        s = self.surface
        law = *np.asarray(s.normal), s.offset, self.stiffness, self.dissipation, self.exponent, self.friction
        object.__setattr__(self, "_law", np.array([*law, self.slip_speed]))

    def _bound(self, robot: Robot) -> _BoundContact:
        return _BoundContact(self._bodies(robot), self._law)

    def _bodies(self, robot: Robot) -> tuple[tuple[int, np.ndarray], ...]:
        """(body, placement (12,)) of each point; the axes of its frame do not matter."""
        bodies = []
        for name, offset in self.points:
            body, placement = on_a_body(robot, name)  # pyright: ignore[reportArgumentType]
            T = placement.reshape(3, 4)
            pose = np.eye(3, 4)
            pose[:, 3] = T[:, :3] @ np.asarray(offset) + T[:, 3]
            bodies.append((body, pose.ravel()))
        return tuple(bodies)

    def state(self, robot: Robot, q: ArrayLike, v: ArrayLike) -> ContactState:
        """Depth, force, elastic energy and dissipated power of the contact at given states.

        Parameters
        ----------
        robot : Robot
            The robot that touches the surface.
        q : array_like, shape (..., nq)
            Configuration [rad, m].
        v : array_like, shape (..., nv)
            Velocity [rad/s, m/s].

        Returns
        -------
        ContactState

        Raises
        ------
        ArgumentError
            For wrong shapes.
        NameNotFoundError
            If the robot does not have the contact's frame.

        Examples
        --------
        >>> import geomctrl as gc
        >>> arm = gc.models.two_link()  # stretched along x, its tip is at x = 2 m
        >>> wall = gc.HalfSpace(normal=(-1.0, 0.0, 0.0), point=(1.9, 0.0, 0.0))  # solid for x >= 1.9 m
        >>> contact = gc.Contact(["tip"], stiffness=1000.0, surface=wall, exponent=1.0)
        >>> state = contact.state(arm, [0.0, 0.0], [0.0, 0.0])
        >>> round(float(state.depth[0]), 9), round(float(state.energy), 9)  # k x^2 / 2
        (0.1, 5.0)
        """
        require_robot("robot", robot)
        states = []
        for body, placement in self._bodies(robot):
            states.append(over_states(robot, kernels.contact_wrenches, body, placement, self._law, q=q, v=v)[1])
        state = np.stack(states, axis=-2)
        return ContactState(state[..., 0], state[..., 1:4], state[..., 4].sum(axis=-1), state[..., 5].sum(axis=-1))


@dataclass(frozen=True, eq=False)
class _BoundContact:
    """A contact with its points expressed on the bodies of a robot."""

    points: tuple[tuple[int, np.ndarray], ...]
    law: np.ndarray
    switches: tuple[float, ...] = ()

    def _acts(self, t: float) -> bool:
        return True

    def _wrenches(self, robot: Robot, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        total = np.zeros((robot.nbodies, 6))
        for body, placement in self.points:
            result = robot._code.at(kernels.contact_wrenches, body)(q, v, placement, self.law)
            if result is None:  # invalid state: the checked methods raise the error
                result = over_states(robot, kernels.contact_wrenches, body, placement, self.law, q=q, v=v)
            total = total + result[0]
        return total


def _point(x: object) -> tuple[str, np.ndarray]:
    """(frame, offset) of one contact point."""
    name, offset = (x, np.zeros(3)) if isinstance(x, str) else x if isinstance(x, tuple) and len(x) == 2 else (None, x)
    if not isinstance(name, str):
        raise ArgumentError(f"points: expected names of frames or pairs (frame, offset), got {shown(x)}")
    return name, frozen(exactly(f"points: offset in {name!r}", offset, (3,)))  # pyright: ignore[reportArgumentType]
