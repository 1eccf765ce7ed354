"""Constrained bodies and the kinds of constraints between them, with checks of their arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import checked, function, listed, number, require_rotation, shown
from geomctrl.errors import ArgumentError, ModelError
from geomctrl.lie.groups import SE3, SO3xR3
from geomctrl.mechanism import inertia as _inertia

WORLD = "world"
MIN_DISTANCE = 1e-9  # m between points that are not the same

X_, Y_, Z_ = 0, 1, 2
# offsets along which axes of frame A vanish; which axes of frames A and B are perpendicular
LOWER_PAIRS: dict[str, tuple[tuple[int, ...], tuple[tuple[int, int], ...]]] = {
    "spherical": ((X_, Y_, Z_), ()),
    "revolute": ((X_, Y_, Z_), ((X_, Z_), (Y_, Z_))),
    "prismatic": ((X_, Y_), ((X_, Z_), (Y_, Z_), (X_, Y_))),
    "cylindrical": ((X_, Y_), ((X_, Z_), (Y_, Z_))),
    "universal": ((X_, Y_, Z_), ((Z_, Z_),)),
    "planar": ((Z_,), ((X_, Z_), (Y_, Z_))),
    "fixed": ((X_, Y_, Z_), ((X_, Z_), (Y_, Z_), (X_, Y_))),
}


@dataclass(frozen=True, eq=False)
class ConstrainedBody:
    """A rigid body of a `ConstrainedSystem`.

    Parameters
    ----------
    name : str
        Name of the body.
    inertia : array_like, shape (10,)
        Inertial parameters (see `geomctrl.inertia`). The 6x6 inertia must be positive definite, since maximal
        coordinates need its inverse.
    pose : array_like, shape (4, 4), optional
        Reference pose. Default: the world's frame.
    group : SE3 or SO3xR3, optional
        Group of the pose. Default: that of the system.

    Raises
    ------
    ArgumentError, ModelError, InertiaError
        If an argument is invalid, with the name of the body.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers.constrained import ConstrainedBody
    >>> ball = gc.inertia.from_com(1.0, [0.0, 0.0, 0.0], 0.01 * np.eye(3))
    >>> ConstrainedBody("ball", ball).name
    'ball'
    """

    name: str
    inertia: Any
    pose: Any = None
    group: SE3 | SO3xR3 | None = None

    def __post_init__(self):
        if not isinstance(self.name, str):
            raise ArgumentError(f"body {shown(self.name)}: name: expected a string")
        checked_parameters(self)
        checked_pose(f"body {self.name!r}: pose", self.pose)
        if self.group is not None:
            checked_group(self, None)


class HolonomicFunctions(NamedTuple):
    """The user's functions of a `Constraint.holonomic`."""

    function: Any
    jacobian: Any
    bias: Any = None


@dataclass(frozen=True, eq=False)
class Constraint:
    """A constraint between bodies a and b.

        kind            motion of body b relative to body a                                                   rows
        "spherical"     turn about the point in any direction                                                 3
        "revolute"      turn about the axis through the point                                                 5
        "prismatic"     slide along the axis                                                                  5
        "cylindrical"   turn about the axis through the point and slide along it                              4
        "universal"     turn about the point, while `axis`, fixed in a, stays perpendicular to `axis_b`       4
        "planar"        slide on the plane through the point with normal `axis`, and turn about the normal    3
        "fixed"         nothing                                                                               6
        "distance"      all motions that keep the points `length` apart: (s . s - L^2) / (2 L) = 0            1
        "holonomic"     any motion for which the function of `Constraint.holonomic` vanishes

    Parameters
    ----------
    kind : str
        See the table.
    name : str
        Name of the constraint.
    bodies : (str, str)
        Names of a and b; a may be "world".
    point, point_b : (3,)
        The point in a's frame and in b's frame [m]. Default of `point`: the origin. Default of `point_b`: such that the
        constraint holds in the reference poses. A distance needs both.
    axis, axis_b : (3,)
        The axis in a's frame and in b's frame, of any length. Default of `axis_b`: such that the constraint holds in
        the reference poses. A universal joint needs both.
    length : float, optional
        Distance of the points [m]; default as in the reference poses.
    functions : HolonomicFunctions, optional
        Set by `holonomic`.

    Raises
    ------
    ArgumentError, ModelError
        If an argument is invalid, with the name of the constraint.

    Examples
    --------
    >>> from geomctrl.papers.constrained import Constraint
    >>> pin = Constraint("spherical", "pin", ("world", "rod"), point=(0.0, 0.0, 1.0))
    >>> pin.kind, pin.bodies
    ('spherical', ('world', 'rod'))
    >>> import numpy as np
    >>> height = lambda poses: poses[0, 2:3, 3] - 1.0  # the body stays at z = 1 m
    >>> rows = lambda poses: np.concatenate((np.zeros((1, 1, 3)), poses[:1, 2:3, :3]), axis=2)
    >>> Constraint.holonomic("plane", ["rod"], height, rows).kind
    'holonomic'
    """

    kind: str
    name: str
    bodies: Sequence[str]
    point: Any = (0.0, 0.0, 0.0)
    point_b: Any = None
    axis: Any = None
    axis_b: Any = None
    length: float | None = None
    functions: HolonomicFunctions | None = None

    def __post_init__(self):
        if not isinstance(self.name, str):
            raise ArgumentError(f"constraint {shown(self.name)}: name: expected a string")
        # a string is not a sequence of names
        if not isinstance(self.bodies, str) and isinstance(self.bodies, Sequence):
            object.__setattr__(self, "bodies", tuple(listed("bodies", self.bodies)))
        label, kinds = f"constraint {self.name!r}", (*LOWER_PAIRS, "distance", "holonomic")
        if not isinstance(self.kind, str) or str(self.kind) not in kinds:
            raise ModelError(f"{label}: kind: expected one of {', '.join(kinds)}, got {shown(self.kind)}")
        if self.kind != "holonomic" and len(bodies_of(self)) != 2:
            raise ModelError(f"{label}: bodies: expected two, got {self.bodies!r}")
        if not bodies_of(self):
            raise ModelError(f"{label}: bodies: expected at least one, got none")
        (self._check_functions if self.kind == "holonomic" else self._check_numbers)(label)

    def _check_functions(self, label: str) -> None:
        chosen = HolonomicFunctions(None, None) if self.functions is None else self.functions
        if not isinstance(chosen, HolonomicFunctions):
            raise ArgumentError(
                f"{label}: functions: expected those of `Constraint.holonomic`, got {shown(self.functions)}"
            )
        function(f"{label}: function", chosen.function, "function(poses)")
        function(f"{label}: jacobian", chosen.jacobian, "jacobian(poses)")
        if chosen.bias is not None:
            function(f"{label}: bias", chosen.bias, "bias(poses, twists), or None")

    def _check_numbers(self, label: str) -> None:
        point(f"{label}: point", self.point)
        if self.point_b is not None:
            point(f"{label}: point_b", self.point_b)
        elif self.kind == "distance":
            raise ArgumentError(f"{label}: point_b: a distance needs both points")
        if self.length is not None and number(f"{label}: length", self.length) <= MIN_DISTANCE:
            raise ModelError(
                f"{label}: length: expected more than 0 [m], got {self.length}; points that coincide are spherical"
            )
        if self.axis is not None or (self.kind not in ("distance", "fixed") and LOWER_PAIRS[self.kind][1]):
            direction(f"{label}: axis", self.axis)
        if self.axis_b is not None:
            direction(f"{label}: axis_b", self.axis_b)
        elif self.kind == "universal":
            raise ArgumentError(f"{label}: axis_b: a universal joint needs both axes")

    @classmethod
    def holonomic(
        cls, name: str, bodies: Sequence[str], function: Callable, jacobian: Callable, bias: Callable | None = None
    ) -> Constraint:
        """Create a constraint function(poses) = 0 of k bodies from functions of the user.

        When the system is built, the Jacobian is compared with finite differences of the function.

        Parameters
        ----------
        name : str
            Name of the constraint.
        bodies : sequence of str
            Names of the k bodies.
        function : callable
            function(poses (k, 4, 4)) -> (r,), the residuals.
        jacobian : callable
            jacobian(poses) -> (r, k, 6), the map from the k body-fixed twists to the rates of the residuals.
        bias : callable, optional
            bias(poses, twists (k, 6)) -> (r,), the product Jdot V. Default: finite differences of the Jacobian along
            the motion, with relative errors of about 1e-11.

        Returns
        -------
        Constraint
        """
        return cls("holonomic", name, bodies, functions=HolonomicFunctions(function, jacobian, bias))


# --- input ---------------------------------------------------------------------------------------------------------


def checked_items(name, items):
    return tuple(listed(name, items, f"a sequence of {name}"))


def bodies_of(c):
    """Return the names of the bodies of a constraint."""
    if not isinstance(c.bodies, tuple) or not all(isinstance(name, str) for name in c.bodies):
        raise ArgumentError(f"constraint {c.name!r}: bodies: expected a tuple of names, got {shown(c.bodies)}")
    return c.bodies


def checked_names(noun, items, kind):
    names = []
    for i, item in enumerate(items):
        if not isinstance(item, kind):
            of = "bodies" if noun == "body" else "constraints"
            raise ArgumentError(f"{of}: {noun} {i}: expected a {kind.__name__}, got {shown(item)}")
        if item.name in names or (noun == "body" and item.name == WORLD):
            raise ModelError(f"{noun} {item.name!r}: the name is taken")
        names.append(item.name)
    return tuple(names)


def checked_group(body, default):
    group = default if body.group is None else body.group
    if not isinstance(group, (SE3, SO3xR3)):
        raise ArgumentError(f"body {body.name!r}: group: expected SE3() or SO3xR3(), got {shown(group)}")
    return group


def checked_parameters(body):
    label = f"body {body.name!r}: inertia"
    pi = checked(label, body.inertia, (10,))
    if pi.shape != (10,):
        raise ArgumentError(f"{label}: expected shape (10,), got {pi.shape}")
    _inertia.check(pi, body.name)
    least = np.linalg.eigvalsh(_inertia.com_tensor(pi))[0] if pi[0] > 0.0 else 0.0
    if least <= 0.0 or least <= 1e-12 * np.abs(pi[4:]).max():
        raise ModelError(
            f"{label}: maximal coordinates need a positive mass and moments of inertia, got a mass of"
            f" {pi[0]:.6g} kg and a least moment of {least:.3g} kg m^2"
        )
    return pi


def checked_pose(label, pose):
    T = np.eye(4) if pose is None else checked(label, pose, (4, 4)).copy()
    if T.shape != (4, 4) or np.abs(T[3] - (0.0, 0.0, 0.0, 1.0)).max() > 0.0:
        raise ArgumentError(f"{label}: expected one 4x4 transform, got {shown(pose)}")
    require_rotation(label, T[:3, :3])
    return T


def point(label, value):
    p = checked(label, value, (3,))
    if p.shape != (3,):
        raise ArgumentError(f"{label}: expected shape (3,), got {p.shape}")
    return p


def direction(label, value):
    """Return the unit vector along `value`."""
    a = point(label, value)
    if (norm := math.hypot(*a)) < 1e-12:
        raise ModelError(f"{label}: expected a direction, got the zero vector")
    return a / norm
