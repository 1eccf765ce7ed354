"""The `Joint` class: a lower pair, whose motions are the subgroup exp(span S)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, frozen, number, shown, vector, without_overflow_warnings
from geomctrl.described import ReadableRepr
from geomctrl.errors import ArgumentError, ModelError
from geomctrl.lie import se3

DOFS = {  # degrees of freedom
    "revolute": 1,
    "prismatic": 1,
    "helical": 1,
    "cylindrical": 2,
    "planar": 3,
    "spherical": 3,
    "free": 6,
    "fixed": 0,
}
TURNING = {  # degrees of freedom that are rotations
    "revolute": 1,
    "prismatic": 0,
    "helical": 1,
    "cylindrical": 1,
    "planar": 1,
    "spherical": 3,
    "free": 3,
    "fixed": 0,
}

LIMITS = ("lower", "upper", "velocity", "effort")  # may be infinite
FINITE = ("damping", "friction", "stiffness", "rest", "armature", "gear_ratio")


def _screw(axis: ArrayLike, point: ArrayLike, pitch: float) -> np.ndarray:
    """The screw (6, 1) of a rotation with a translation along it."""
    w, p = _axis("axis", axis), vector("point", point, 3)
    return np.concatenate((w, np.cross(p, w) + number("pitch", pitch) * w))[:, None]


def _axis(name: str, x: ArrayLike) -> np.ndarray:
    a = vector(name, x, 3)
    largest = np.abs(a).max()
    if largest > 1e100:  # whose square may overflow
        a /= largest
    norm = np.linalg.norm(a)
    if norm < 1e-12:
        raise ModelError(f"{name}: expected a direction, got the zero vector {x!r}")
    return a / norm


@without_overflow_warnings
def _check_basis(label: str, S: np.ndarray) -> None:
    """Check that S (6, d) spans a motion subgroup: finite, independent, closed under the bracket; a single column is
    unit.
    """
    if S.ndim != 2 or S.shape[0] != 6 or not np.isfinite(S).all():
        raise ModelError(f"{label}: S: expected a finite (6, d) basis, got shape {S.shape}")
    d = S.shape[1]
    if d == 1:
        length = np.linalg.norm(S[:3]) or np.linalg.norm(S[3:])
        if abs(length - 1.0) > 1e-9:
            raise ModelError(f"{label}: S: expected a unit axis, got {S[:, 0]}")
    elif d:
        if np.linalg.matrix_rank(S) < d:
            raise ModelError(f"{label}: S: expected {d} independent screws, got rank {np.linalg.matrix_rank(S)}")
        brackets = np.array([se3.ad(a) @ b for a in S.T for b in S.T]).T
        outside = np.abs(brackets - S @ np.linalg.pinv(S) @ brackets).max()
        if outside > 1e-9 * max(1.0, np.abs(S).max() ** 2):
            raise ModelError(
                f"{label}: S: not a motion subgroup (a bracket leaves the span by {outside:.3g}); model it as a chain"
                " of joints with massless bodies between"
            )


def _check_kind(label: str, kind: str, S: np.ndarray) -> None:
    """Check that S (6, d) is a basis for joints of this kind: number of directions, number of rotations."""
    d, is_rotational = DOFS[kind], TURNING[kind]
    if S.shape[1] != d:
        raise ModelError(f"{label}: S: expected shape (6, {d}), {kind}, got {S.shape}")
    if d and np.linalg.matrix_rank(S[:3], tol=1e-9) != is_rotational:
        raise ModelError(f"{label}: S: expected {is_rotational} rotational direction(s) for {kind}, got {S.tolist()}")
    if kind == "revolute" and abs(pitch := S[:3, 0] @ S[3:, 0]) > 1e-9 * max(1.0, np.abs(S[3:, 0]).max()):
        raise ModelError(f"{label}: S: expected no pitch, revolute, got {pitch:.3g} m/rad")


def _limit(name: str, x: Any) -> float:
    """Return x as a float, which may be infinite."""
    try:
        a = checked(name, x, (), finite=False)
    except ArgumentError:
        a = np.empty(0)
    if a.shape != () or np.isnan(a):
        raise ModelError(f"{name}: expected a number, got {shown(x)}")
    return float(a)


class JointProperties(TypedDict, total=False):
    """Keyword arguments of `Joint` other than its name."""

    lower: float
    upper: float
    velocity: float
    effort: float
    damping: float
    friction: float
    stiffness: float
    rest: float
    armature: float
    gear_ratio: float


class JointOptions(JointProperties, total=False):
    """Keyword arguments that every kind of joint accepts."""

    name: str | None


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Joint(ReadableRepr):
    """A lower pair: the motion subgroup exp(span S) with S (6, d) constant in the body frame, angular part first.

    The classmethods (`Joint.revolute`, `Joint.prismatic`, ...) compute S.

    Parameters
    ----------
    kind : str
        "revolute", "prismatic", "helical", "cylindrical", "planar", "spherical", "free" or "fixed".
    S : array_like, shape (6, d)
        Screws that span the motions of the joint; a single screw has unit length.
    name : str, optional
        Default: the name of the body that the joint carries.
    lower, upper : float
        Limits of the coordinate [rad, m] for a joint with one degree of freedom. Default: infinite.
    velocity, effort : float
        Limits of speed [rad/s, m/s] and of torque or force [N m, N]. Default: infinite.
    damping, friction : float
        Viscous [N m s/rad, N s/m] and Coulomb friction [N m, N]. The model terms ignore them; a plant can apply them.
        Default 0.
    stiffness, rest : float
        Spring of a joint with one degree of freedom: a `Plant` applies the torque -stiffness (q - rest)
        [N m/rad, N/m; rad, m]. Default 0.
    armature : float
        Reflected inertia of motor and gears [kg m^2, kg]: the rotor's inertia times gear_ratio^2, see `with_motor`. It
        is added to the diagonal of M. It has no weight and does not react on the base; as in MuJoCo and Pinocchio, the
        motion of the rotor with its link is neglected, which is accurate for high gear ratios. Default 0.
    gear_ratio : float
        Motor speed divided by joint speed [rad/rad, rad/m], negative if they rotate in opposite directions. Default 1.

    Raises
    ------
    ArgumentError, ModelError
        If a property is invalid; the message names the joint and the property.

    Examples
    --------
    >>> import geomctrl as gc
    >>> hinge = gc.Joint.revolute((0, 0, 2), lower=-1.5, upper=1.5)
    >>> hinge.S.ravel()  # the axis is normalised
    array([0., 0., 1., 0., 0., 0.])
    >>> hinge.with_motor(rotor=1e-5, gear_ratio=100.0).armature
    0.1
    >>> J = gc.Joint
    >>> z = (0, 0, 1)
    >>> joints = J.prismatic(z), J.helical(z), J.cylindrical(z), J.planar(z), J.spherical(), J.free(), J.fixed()
    >>> [joint.dof for joint in joints]
    [1, 1, 2, 3, 3, 6, 0]
    >>> gc.Joint.from_screw([0, 0, 1, 0, 0, 0.1]).kind
    'helical'
    """

    kind: str
    S: np.ndarray
    name: str | None = None
    lower: float = -np.inf
    upper: float = np.inf
    velocity: float = np.inf
    effort: float = np.inf
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    armature: float = 0.0
    gear_ratio: float = 1.0

    def __init__(self, kind: str, S: ArrayLike, name: str | None = None, **properties: Unpack[JointProperties]):
        names = (*LIMITS, *FINITE)
        for key in properties:
            if key not in names:
                raise ArgumentError(f"{key}: a joint has no such property; expected some of {', '.join(names)}")
        values = {key: properties.get(key, getattr(Joint, key)) for key in names}
        self._check(kind, S, name, values)

    def _check(self, kind: Any, S: Any, name: Any, properties: dict[str, Any]) -> None:
        """Check the arguments and set the fields."""
        put = object.__setattr__
        if not isinstance(kind, str) or str(kind) not in DOFS:
            raise ModelError(f"kind: expected one of {', '.join(map(repr, DOFS))}, got {shown(kind)}")
        if name is not None and (not isinstance(name, str) or not name):
            raise ArgumentError(f"name: expected a name, or None for that of the body, got {shown(name)}")
        label = f"joint {name or kind!r}"
        S = checked(f"{label}: S", S, (), finite=False)
        _check_basis(label, S)
        _check_kind(label, kind, S)
        for key, value in {"kind": kind, "S": frozen(S), "name": name}.items():
            put(self, key, value)
        for key, value in properties.items():
            put(self, key, _limit(f"{label}: {key}", value))
        if self.lower > self.upper:
            raise ModelError(f"{label}: lower limit {self.lower} above upper limit {self.upper}")
        for key in ("velocity", "effort", "damping", "friction", "stiffness", "armature"):
            if getattr(self, key) < 0.0:
                raise ModelError(f"{label}: {key} must not be negative: {getattr(self, key)}")
        for key in FINITE:
            if not np.isfinite(getattr(self, key)):
                raise ModelError(f"{label}: {key}: expected a finite number, got {getattr(self, key)}")
        if not self.gear_ratio:
            raise ModelError(f"{label}: gear_ratio: expected a number other than 0")
        for key, device in (("stiffness", "a spring"), ("armature", "a motor"), ("gear_ratio", "a motor")):
            if getattr(self, key) != getattr(Joint, key) and S.shape[1] != 1:
                expected = f"a joint with one degree of freedom has {device}, {kind} has none"
                raise ModelError(f"{label}: {key}: {expected}")

    def with_motor(self, rotor: float, gear_ratio: float = 1.0) -> Joint:
        """Return the same joint driven by a motor through gears; its armature is rotor * gear_ratio^2.

        Parameters
        ----------
        rotor : float
            Inertia of the rotor about its own axis [kg m^2].
        gear_ratio : float
            Motor speed divided by joint speed, default 1.

        Returns
        -------
        Joint

        Raises
        ------
        ArgumentError
            If a number is not finite, or `rotor` is negative.
        ModelError
            If the joint has several degrees of freedom, or `gear_ratio` is 0.

        Examples
        --------
        >>> import geomctrl as gc
        >>> gc.Joint.revolute((0, 0, 1)).with_motor(rotor=1e-5, gear_ratio=100.0).armature
        0.1
        """
        rotor, gear_ratio = (
            number("rotor", rotor, "an inertia >= 0", lambda x: x >= 0.0),
            number("gear_ratio", gear_ratio),
        )
        return replace(self, armature=rotor * gear_ratio * gear_ratio, gear_ratio=gear_ratio)

    @property
    def dof(self) -> int:
        """Number of velocity coordinates."""
        return self.S.shape[1]

    @property
    def is_rotational(self) -> np.ndarray:
        """Whether each velocity coordinate (dof,) is a rotation [rad/s, N m]; otherwise it is a translation [m/s,
        N].
        """
        return np.asarray(self.S[:3].any(axis=0))

    @property
    def nq(self) -> int:
        """Number of configuration entries: 1 with one degree of freedom, 12 for a pose [R | p] with more."""
        return 12 if self.dof > 1 else self.dof

    @classmethod
    def revolute(cls, axis: ArrayLike, point: ArrayLike = (0, 0, 0), **options: Unpack[JointOptions]) -> Joint:
        """Rotation about `axis` through `point`, both in the body frame.

        Parameters
        ----------
        axis : array_like, shape (3,)
            Direction; it is normalised.
        point : array_like, shape (3,)
            A point on the axis [m]. Default: the origin of the body frame.
        **options
            name, lower, upper, velocity, effort, damping, friction, stiffness, rest, armature, gear_ratio: see `Joint`.

        Returns
        -------
        Joint

        Raises
        ------
        ArgumentError, ModelError
            As for `Joint`, or if a vector has another length or is zero.

        Examples
        --------
        >>> import geomctrl as gc
        >>> gc.Joint.revolute((0, 0, 1), lower=-1.5, upper=1.5, effort=40.0).effort
        40.0
        """
        return cls("revolute", _screw(axis, point, 0.0), **options)

    @classmethod
    def prismatic(cls, axis: ArrayLike, **options: Unpack[JointOptions]) -> Joint:
        """Translation along an axis.

        Parameters
        ----------
        axis : array_like, shape (3,)
            Direction in the body frame; it is normalised.
        **options
            As for `Joint.revolute`.

        Returns
        -------
        Joint

        Raises
        ------
        ArgumentError, ModelError
            As for `Joint`, or if a vector has another length or is zero.

        Examples
        --------
        >>> import geomctrl as gc
        >>> gc.Joint.prismatic((0, 0, 2)).S.ravel()
        array([0., 0., 0., 0., 0., 1.])
        """
        return cls("prismatic", np.concatenate((np.zeros(3), _axis("axis", axis)))[:, None], **options)

    @classmethod
    def helical(
        cls,
        axis: ArrayLike,
        point: ArrayLike = (0, 0, 0),
        pitch: float = 0.0,
        **options: Unpack[JointOptions],
    ) -> Joint:
        """Screw motion: rotation about an axis, with a translation along it that is proportional to the angle.

        Parameters
        ----------
        axis : array_like, shape (3,)
            Direction in the body frame; it is normalised.
        point : array_like, shape (3,)
            A point on the axis, in the body frame [m]. Default: the origin.
        pitch : float
            Translation per angle [m/rad]. Default: 0, a revolute joint.
        **options
            As for `Joint.revolute`.

        Returns
        -------
        Joint

        Raises
        ------
        ArgumentError, ModelError
            As for `Joint`, or if a vector has another length or is zero.

        Examples
        --------
        >>> import geomctrl as gc
        >>> gc.Joint.helical((0, 0, 1), pitch=0.01).S.ravel()
        array([0.  , 0.  , 1.  , 0.  , 0.  , 0.01])
        """
        return cls("helical", _screw(axis, point, pitch), **options)

    @classmethod
    @without_overflow_warnings
    def from_screw(cls, screw: ArrayLike, **options: Unpack[JointOptions]) -> Joint:
        """Joint with one degree of freedom and a given screw.

        Parameters
        ----------
        screw : array_like, shape (6,)
            S = (omega, v) in the body frame, with |omega| = 1, or with omega = 0 and |v| = 1.
        **options
            As for `Joint.revolute`.

        Returns
        -------
        Joint

        Raises
        ------
        ModelError
            If the screw has another length.

        Examples
        --------
        >>> import geomctrl as gc
        >>> gc.Joint.from_screw([0, 0, 1, 0, 0, 0.1]).kind
        'helical'
        """
        S = vector("screw", screw, 6)
        w, v = np.linalg.norm(S[:3]), np.linalg.norm(S[3:])
        if max(w, v) < 1e-12:
            raise ModelError("screw: expected a non-zero screw, got zeros")
        unit = w if w > 1e-12 else v
        if abs(unit - 1.0) > 1e-9:
            raise ModelError(f"screw: expected a unit axis, got {S} with |{'w' if w > 1e-12 else 'v'}| = {unit:.9g}")
        kind = "prismatic" if w <= 1e-12 else "revolute" if abs(S[:3] @ S[3:]) < 1e-12 * max(v, 1.0) else "helical"
        if w <= 1e-12:
            S[:3] = 0.0
        return cls(kind, (S / unit)[:, None], **options)

    @classmethod
    def cylindrical(cls, axis: ArrayLike, point: ArrayLike = (0, 0, 0), **options: Unpack[JointOptions]) -> Joint:
        """Rotation about an axis and translation along it; v = (rotation [rad/s], translation [m/s]).

        Parameters
        ----------
        axis : array_like, shape (3,)
            Direction in the body frame; it is normalised.
        point : array_like, shape (3,)
            A point on the axis, in the body frame [m]. Default: the origin.
        **options
            As for `Joint.revolute`.

        Returns
        -------
        Joint

        Raises
        ------
        ArgumentError, ModelError
            As for `Joint`, or if a vector has another length or is zero.

        Examples
        --------
        >>> import geomctrl as gc
        >>> gc.Joint.cylindrical((0, 0, 1)).dof
        2
        """
        turn, slide = cls.revolute(axis, point).S, cls.prismatic(axis).S
        return cls("cylindrical", np.hstack((turn, slide)), **options)

    @classmethod
    def planar(cls, normal: ArrayLike, **options: Unpack[JointOptions]) -> Joint:
        """Motion in a plane; v = (along e1 [m/s], along e2 [m/s], about the normal [rad/s]).

        Parameters
        ----------
        normal : array_like, shape (3,)
            Normal of the plane in the body frame; it is normalised. e1, e2 and the normal are right-handed: (x, y) for
            the normal z, (y, z) for x and (z, x) for y. For other normals e1 is the projection on the plane of the axis
            that follows, in the order x, y, z, x, the one nearest to the normal. `S` contains e1 and e2.
        **options
            As for `Joint.revolute`.

        Returns
        -------
        Joint

        Raises
        ------
        ArgumentError, ModelError
            As for `Joint`, or if a vector has another length or is zero.

        Examples
        --------
        >>> import geomctrl as gc
        >>> gc.Joint.planar((0, 0, 1)).dof
        3
        """
        n = _axis("normal", normal)
        next_axis = np.eye(3)[(np.argmax(np.abs(n)) + 1) % 3]
        e1 = next_axis - n.dot(next_axis) * n
        e1 /= np.linalg.norm(e1)
        S = np.zeros((6, 3))
        S[3:, 0], S[3:, 1], S[:3, 2] = e1, np.cross(n, e1), n
        return cls("planar", S, **options)

    @classmethod
    def spherical(cls, point: ArrayLike = (0, 0, 0), **options: Unpack[JointOptions]) -> Joint:
        """Rotation about a point; v is the body-fixed angular velocity (3,) [rad/s].

        Parameters
        ----------
        point : array_like, shape (3,)
            Centre of rotation in the body frame [m]. Default: the origin.
        **options
            As for `Joint.revolute`.

        Returns
        -------
        Joint

        Raises
        ------
        ArgumentError, ModelError
            As for `Joint`, or if a vector has another length.

        Examples
        --------
        >>> import geomctrl as gc
        >>> gc.Joint.spherical().dof
        3
        """
        p = vector("point", point, 3)
        return cls("spherical", np.vstack((np.eye(3), np.cross(p, np.eye(3)).T)), **options)

    @classmethod
    def free(cls, **options: Unpack[JointOptions]) -> Joint:
        """Six degrees of freedom; v is the body twist (omega, v) [rad/s, m/s].

        Parameters
        ----------
        **options
            As for `Joint.revolute`.

        Returns
        -------
        Joint

        Raises
        ------
        ArgumentError, ModelError
            As for `Joint`.

        Examples
        --------
        >>> import geomctrl as gc
        >>> gc.Joint.free().dof
        6
        """
        return cls("free", np.eye(6), **options)

    @classmethod
    def fixed(cls, **options: Unpack[JointOptions]) -> Joint:
        """No motion: `Robot.build` merges the body into its parent and keeps its name as a frame.

        Parameters
        ----------
        **options
            As for `Joint.revolute`.

        Returns
        -------
        Joint

        Raises
        ------
        ArgumentError, ModelError
            As for `Joint`.

        Examples
        --------
        >>> import geomctrl as gc
        >>> gc.Joint.fixed().dof
        0
        """
        return cls("fixed", np.zeros((6, 0)), **options)
