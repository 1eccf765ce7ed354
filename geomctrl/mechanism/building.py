"""Build robots from bodies, Denavit-Hartenberg tables or products of exponentials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import mode
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, choice, count, flag, frozen, is_a, listed, shown, vector
from geomctrl.described import ReadableRepr
from geomctrl.errors import ArgumentError, InertiaError, ModelError, NameNotFoundError
from geomctrl.other_names import named_arguments

from . import inertia as _inertia
from .checks import check_name, check_transform, no_duplicates
from .coupling import Coupling
from .joint import Joint
from .mechanism import Mechanism, _no_such
from .origin import WORLD, Frame, Origin
from .variants import check_positive_mass_matrix

R = TypeVar("R", bound=Mechanism)


@named_arguments()
@dataclass(frozen=True, eq=False, repr=False)
class Body(ReadableRepr):
    """A rigid body and the joint that connects it to its parent: T_parent_body(q) = placement exp(S q).

    Parameters
    ----------
    name : str
        Unique name of the body.
    parent : str or None
        Name of the parent body; None is the world.
    joint : Joint
        The joint between parent and body. A joint without a name takes the body's.
    placement : array_like, shape (4, 4)
        Pose of the body in its parent at q = 0. Default: identity.
    inertia : array_like, shape (10,), optional
        (m, hx, hy, hz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz) about the origin of the body frame [kg, kg m, kg m^2], see
        `geomctrl.mechanism.inertia`. Default: a massless body.

    Raises
    ------
    ArgumentError
        If an argument has the wrong type or shape.
    InertiaError
        If the inertia is not finite. `Robot.build` checks whether it is physically possible.

    Examples
    --------
    >>> import geomctrl as gc
    >>> from geomctrl.mechanism import inertia
    >>> rod = inertia.from_com(1.0, [0.5, 0.0, 0.0], [[0.01, 0, 0], [0, 0.08, 0], [0, 0, 0.08]])
    >>> link = gc.Body("link", None, gc.Joint.revolute((0, 1, 0), name="hinge"), inertia=rod)
    >>> gc.Robot.build([link]).nv
    1
    """

    name: str
    parent: str | None
    joint: Joint
    placement: ArrayLike | None = None
    inertia: ArrayLike | None = None

    def __post_init__(self):
        check_name("name", self.name)
        label = f"body {self.name!r}"
        if not isinstance(self.parent, (str, type(None))):
            raise ArgumentError(f"{label}: parent: expected a name or None, got {shown(self.parent)}")
        if not is_a(self.joint, Joint):
            raise ArgumentError(f"{label}: joint: expected a geomctrl.Joint, got {shown(self.joint)}")
        if self.placement is not None:
            object.__setattr__(self, "placement", frozen(check_transform(f"{label}: placement", self.placement)))
        if self.inertia is not None:
            object.__setattr__(self, "inertia", frozen(_ten_parameters(label, self.inertia)))


def _ten_parameters(label: str, inertia: ArrayLike) -> np.ndarray:
    pi = checked(f"{label}: inertia", inertia, (), finite=False)
    if pi.shape != (10,):
        raise ArgumentError(f"{label}: inertia: expected ten parameters (m, h, I), got shape {pi.shape}")
    if not np.isfinite(pi).all():
        raise InertiaError(f"{label}: inertia: parameters are not finite: {pi}")
    return pi


def build(
    cls: type[R],
    bodies: Iterable[Body],
    *,
    name: str = "robot",
    gravity: ArrayLike = (0.0, 0.0, -9.81),
    frames: Iterable[tuple[str, str, ArrayLike]] = (),
    couplings: Iterable[Coupling] = (),
    physical: bool = True,
) -> R:
    """Build a robot from its bodies.

    Parameters
    ----------
    bodies : iterable of Body
        The bodies, in any order. Their order is kept if parents come first. Otherwise each parent is moved just before
        the first body that needs it, `body_names` has the new order and `origin.renumbered` is True. A body on a fixed
        joint is merged into its parent and stays as a frame; a body fixed to the world leaves only the frame.
    name : str
        Default "robot".
    gravity : array_like, shape (3,)
        Gravitational acceleration [m/s^2], default (0, 0, -9.81).
    frames : iterable of (str, str, array_like)
        Further frames: (name, body name, T_body_frame (4, 4)).
    couplings : iterable of Coupling
        Joints that follow others. The robot has no coordinates for them.
    physical : bool
        Reject inertial parameters that no rigid body can have. False accepts them as long as the mass matrix is
        positive definite. Default True.

    Returns
    -------
    Robot

    Raises
    ------
    ModelError
        If a parent is missing, the bodies form a loop, a name occurs twice, no joint moves, or the mass matrix is
        singular.
    InertiaError
        If no rigid body can have the inertial parameters and `physical` is True.

    Examples
    --------
    >>> import geomctrl as gc
    >>> ball = (1.0, 0.0, 0.0, -0.5, 0.26, 0.0, 0.26, 0.0, 0.0, 0.01)
    >>> pendulum = gc.Robot.build([gc.Body("bob", None, gc.Joint.revolute((0, 1, 0)), inertia=ball)], name="pendulum")
    >>> pendulum.dof_names
    ('bob',)
    """
    flag("physical", physical)
    sequence = listed("bodies", bodies, "geomctrl.Body objects")
    _check_bodies(sequence)
    tree = []
    merged: dict[str | None, tuple[int, np.ndarray]] = {None: (-1, np.eye(4))}  # name: (body, T_body_name)
    parameters = []
    for body in _parents_first(sequence):
        pi = np.zeros(10) if body.inertia is None else np.asarray(body.inertia)
        if physical:
            _inertia.check(pi, body.name)
        anchor, T = merged[body.parent]
        M = T if body.placement is None else T @ np.asarray(body.placement)
        if body.joint.dof:
            merged[body.name] = (len(tree), np.eye(4))
            tree.append((body.name, anchor, body.joint, M))
            parameters.append(pi)
        else:
            merged[body.name] = (anchor, M)
            if anchor >= 0:
                parameters[anchor] = parameters[anchor] + _inertia.transform(M, pi)
    if not tree:
        raise ModelError(f"robot {name!r}: no joint that moves")
    for item in listed("frames", frames, "tuples (name, body name, T_body_frame)"):
        try:
            frame, body_name, T = item
        except (TypeError, ValueError):
            raise ArgumentError(f"frames: expected (name, body name, T_body_frame), got {shown(item)}") from None
        check_name("frames", frame)
        if frame in merged or frame == WORLD:
            raise ModelError(f"frame {frame!r}: the name is taken")
        if not isinstance(body_name, str) or (body_name not in merged and body_name != WORLD):
            raise NameNotFoundError(_no_such("body", body_name, [n for n in merged if n]))
        i, T_i = merged[None if body_name == WORLD else body_name]
        merged[frame] = (i, T_i @ check_transform(f"frame {frame!r}", T))
    names, parents, joints, placements = zip(*tree)
    merged[WORLD] = merged.pop(None)
    joints = tuple(j if j.name else replace(j, name=n) for n, j in zip(names, joints))
    no_duplicates("joint", [j.name for j in joints])
    robot = cls(
        name, names, parents, joints, np.array(placements), np.array(parameters), vector("gravity", gravity, 3),
        tuple(Frame(str(n), i, T) for n, (i, T) in merged.items()),
        couplings=tuple(listed("couplings", couplings, "geomctrl.Coupling objects")),
        origin=Origin(renumbered=list(names) != [b.name for b in sequence if b.joint.dof]),
    )  # fmt: skip
    if not _inertia.is_physical(robot.parameters, strict=True).all():
        check_positive_mass_matrix(robot)
    return robot


def from_dh(
    cls: type[R],
    a: ArrayLike,
    alpha: ArrayLike,
    d: ArrayLike,
    theta: ArrayLike,
    *,
    convention: str,
    inertias: Sequence[ArrayLike],
    prismatic: Sequence[int] = (),
    **options: Any,
) -> R:
    """Build a serial chain from Denavit-Hartenberg parameters.

    Parameters
    ----------
    a, alpha, d, theta : array_like, shape (n,)
        Link lengths [m], twists [rad], offsets [m] and angles [rad] at q = 0.
    convention : {"standard", "modified"}
        "standard": T = Rz(theta) Tz(d) Tx(a) Rx(alpha). The frame of link i is at its far end and the joint axis is z
        of the previous frame. "modified" (Craig): T = Rx(alpha) Tx(a) Rz(theta) Tz(d), the joint axis is z of the
        link's own frame.
    inertias : sequence of array_like, shape (10,)
        Inertial parameters for each link in its frame, see `geomctrl.mechanism.inertia`.
    prismatic : sequence of int
        Numbers (from 0) of the prismatic joints, whose coordinate adds to d. Default: none.
    **options
        Keyword arguments of `Robot.build`.

    Returns
    -------
    Robot

    Raises
    ------
    ArgumentError
        If the arrays have different lengths or contain numbers that are not finite, or if `convention` is unknown.
    ModelError, InertiaError
        As for `Robot.build`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> link = gc.inertia.from_com(1.0, [0.0, 0.0, 0.0], 0.01 * np.eye(3))
    >>> arm = gc.Robot.from_dh([0.4, 0.3], [0, 0], [0, 0], [0, 0], convention="standard", inertias=[link, link])
    >>> arm.pose([0.0, np.pi / 2], "link2")[:3, 3].round(3)
    array([0.4, 0.3, 0. ])
    """
    columns = {k: checked(k, x, ()) for k, x in (("a", a), ("alpha", alpha), ("d", d), ("theta", theta))}
    n = mode(x.size for x in columns.values())
    table = [vector(k, x, n) for k, x in columns.items()]
    choice("convention", convention, ("standard", "modified"))
    inertias = _inertias(inertias, n)
    prismatic = _numbers_of("prismatic", prismatic, f"joint numbers from 0 to {n - 1}", range(n))
    bodies = []
    for i, (ai, al, di, th) in enumerate(zip(*table)):
        x, z = _screw_x(ai, al), _screw_z(di, th)
        M = z @ x if convention == "standard" else x @ z
        axis = np.linalg.inv(x)[:3, 2] if convention == "standard" else np.array([0.0, 0.0, 1.0])
        point = np.linalg.inv(x)[:3, 3] if convention == "standard" else np.zeros(3)
        joint = (
            Joint.prismatic(axis, name=f"joint{i + 1}")
            if i in prismatic
            else Joint.revolute(axis, point, name=f"joint{i + 1}")
        )
        bodies.append(Body(f"link{i + 1}", f"link{i}" if i else None, joint, M, inertias[i]))
    return build(cls, bodies, **options)


def from_screws(
    cls: type[R], screws: ArrayLike, homes: ArrayLike, *, inertias: Sequence[ArrayLike], parents=None, **options: Any
) -> R:
    """Build a tree of joints with one degree of freedom from the product of exponentials in the world frame.

    Parameters
    ----------
    screws : array_like, shape (n, 6)
        Screws A_i = (omega, v) of the joints in the world frame at q = 0.
    homes : array_like, shape (n, 4, 4)
        Poses of the bodies in the world at q = 0.
    inertias : sequence of array_like, shape (10,)
        Inertial parameters for each body in its frame, see `geomctrl.mechanism.inertia`.
    parents : array_like, shape (n,), optional
        Numbers of the parent bodies, -1 for the world. Default: a chain.
    **options
        Keyword arguments of `Robot.build`.

    Returns
    -------
    Robot
        Row i of every array is body "link{i+1}" on joint "joint{i+1}". If the rows do not list parents first, the
        bodies are reordered as in `Robot.build`.

    Raises
    ------
    ArgumentError
        If an array has the wrong shape or contains numbers that are not finite.
    ModelError, InertiaError
        As for `Robot.build`.

    Notes
    -----
    Park, Bobrow, Ploen 1995, section 2.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> rod = gc.inertia.from_com(1.0, [0.5, 0.0, 0.0], 0.1 * np.eye(3))
    >>> screws = [[0, -1, 0, 0, 0, 0], [0, -1, 0, 0, 0, 1]]  # axes -y through x = 0 and x = 1
    >>> second = np.eye(4)
    >>> second[0, 3] = 1.0
    >>> arm = gc.Robot.from_screws(screws, [np.eye(4), second], inertias=[rod, rod])
    >>> arm.pose([np.pi / 2, 0.0], "link2")[:3, 3].round(9) + 0.0  # points up
    array([0., 0., 1.])
    """
    A, H = checked("screws", screws, (6,)), checked("homes", homes, (4, 4))
    n = len(A)
    if A.shape != (n, 6) or H.shape != (n, 4, 4):
        raise ArgumentError(f"screws, homes: expected (n, 6), (n, 4, 4), got {A.shape}, {H.shape}")
    inertias = _inertias(inertias, n)
    expected = f"{n} numbers from -1 to {n - 1}"
    parents = _numbers_of("parents", range(-1, n - 1) if parents is None else parents, expected, range(-1, n))
    if len(parents) != n:
        raise ArgumentError(f"parents: expected {expected}, got {parents}")
    bodies = []
    for i, p in enumerate(parents):
        T = check_transform(f"homes[{i}]", H[i])
        R, r = T[:3, :3], T[:3, 3]
        w, v = R.T @ A[i, :3], R.T @ (A[i, 3:] - np.cross(r, A[i, :3]))  # Ad_{T^-1} A_i
        M = T if p < 0 else np.linalg.inv(H[p]) @ T
        try:
            joint = Joint.from_screw(np.concatenate((w, v)), name=f"joint{i + 1}")
        except ModelError as error:
            raise ModelError(f"screws[{i}]: {str(error).removeprefix('screw: ')}") from None
        bodies.append(Body(f"link{i + 1}", f"link{p + 1}" if p >= 0 else None, joint, M, inertias[i]))
    return build(cls, bodies, **options)


# --- checks of arguments ------------------------------------------------------------------------------------------


def _inertias(inertias: Any, n: int) -> list[np.ndarray]:
    """Return ten parameters for each of n bodies."""
    rows = listed("inertias", inertias, "ten parameters for each body")
    if len(rows) != n:
        raise ArgumentError(f"inertias: expected {n}, one for each body, got {len(rows)}")
    return [_ten_parameters(f"inertias[{i}]", row) for i, row in enumerate(rows)]


def _numbers_of(name: str, values: Any, expected: str, allowed: range) -> list[int]:
    numbers = listed(name, values, expected)
    try:
        return [count(name, k, allowed.start, allowed.stop - 1) for k in numbers]
    except ArgumentError:
        raise ArgumentError(f"{name}: expected {expected}, got {shown(numbers)}") from None


def _check_bodies(bodies: list[Body]) -> None:
    """Check types and names of the bodies, and that every parent exists."""
    if not bodies:
        raise ModelError("bodies: expected at least one, got none")
    for body in bodies:
        if not isinstance(body, Body):
            raise ArgumentError(f"bodies: expected geomctrl.Body, got {shown(body)}")
    names = [b.name for b in bodies]
    no_duplicates("body", names)
    if WORLD in names:
        raise ModelError("body 'world': the name is reserved for the world frame")
    for body in bodies:
        if body.parent is not None and body.parent not in names:
            raise ModelError(f"body {body.name!r}: {_no_such('parent', body.parent, names)}")


def _parents_first(bodies: list[Body]) -> list[Body]:
    """Keep the given order, but move a parent just before the first body that needs it."""
    named = {b.name: b for b in bodies}
    order: dict[str, Body] = {}
    lost: dict[str, Body] = {}
    for body in bodies:
        path: dict[str, Body] = {}  # from the body to the world, or to a body that is already placed
        ancestor = body.name
        while ancestor is not None and ancestor not in order and ancestor not in path and ancestor not in lost:
            path[ancestor] = named[ancestor]
            ancestor = named[ancestor].parent
        reached = ancestor is None or ancestor in order
        (order if reached else lost).update(reversed(path.items()))
    if lost:
        loop = ", ".join(repr(b.name) for b in bodies if b.name in lost)
        raise ModelError(f"bodies {loop}: they form a loop or descend from one; none of them is connected to the world")
    return list(order.values())


def _screw_x(a: float, alpha: float) -> np.ndarray:
    c, s = np.cos(alpha), np.sin(alpha)
    return np.array([[1, 0, 0, a], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1.0]])


def _screw_z(d: float, theta: float) -> np.ndarray:
    c, s = np.cos(theta), np.sin(theta)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, d], [0, 0, 0, 1.0]])
