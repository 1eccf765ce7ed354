"""Making mechanisms: from bodies, Denavit-Hartenberg tables, products of exponentials, or from other mechanisms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from statistics import mode
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, choice, flag, frozen, listed, number, vector
from geomctrl.described import Described
from geomctrl.errors import ArgumentError, InertiaError, ModelError, NameNotFoundError
from geomctrl.kernels import composite_bodies
from geomctrl.kernels.couplings import fitting

from . import inertia as _inertia
from .checks import check_name, check_transform, no_duplicates
from .configuration import neutral, random_configuration
from .coupling import Coupling
from .joint import Joint
from .mechanism import Mechanism, _no_such, require_robot
from .origin import WORLD, Frame, Origin

R = TypeVar("R", bound=Mechanism)

TRIED = 30  # configurations, where the bodies' inertias do not show that M > 0


@dataclass(frozen=True, eq=False, repr=False)
class Body(Described):
    """A rigid body and the joint of screws S that moves it in its parent: f(q) = placement exp(S q).

    Parameters
    ----------
    name : str
    parent : str or None
        The parent body's name; None is the world.
    joint : Joint
    placement : array_like (4, 4), optional
        Pose of the body frame in the parent's where the joint's coordinates are zero; default the identity.
    inertia : array_like (10,), optional
        Ten parameters about the body frame's origin, see `inertia.from_com`, checked by `build`; default massless.

    Raises
    ------
    ArgumentError, InertiaError
    """

    name: str
    parent: str | None
    joint: Joint
    placement: ArrayLike | None = None
    inertia: ArrayLike | None = None  # ten parameters about the body frame's origin; None: massless

    def __post_init__(self):
        check_name("name", self.name)
        label = f"body {self.name!r}"
        if not isinstance(self.parent, str | None):
            raise ArgumentError(f"{label}: parent: expected a name or None, got {self.parent!r:.80}")
        if not isinstance(self.joint, Joint):
            raise ArgumentError(f"{label}: joint: expected a geomctrl.Joint, got {self.joint!r:.80}")
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
    """A robot from its bodies, in any order; they are numbered as given where that has parents first.

    Where a body comes before one that it hangs on, that one is brought forward and numbered just before it:
    `body_names` has the order, `origin.renumbered` and the robot's repr say that it is another. A body on a fixed
    joint is merged into its parent and its name stays as a frame; one fixed to the world only leaves the frame.
    `frames` are further (name, body name, T_body_frame). `couplings`: joints that follow others, whose coordinates the
    robot then does not have (`geomctrl.Coupling`). `physical=False` accepts inertial parameters that no rigid body
    has, as long as the mass matrix is positive definite. Raises ModelError for orphans, loops, duplicate names, trees
    that do not move or whose mass matrix is singular, InertiaError for parameters no rigid body has.
    """
    flag("physical", physical)
    sequence = listed("bodies", bodies, "geomctrl.Body objects")
    _check_bodies(sequence)
    tree = []
    merged: dict[str | None, tuple[int, np.ndarray]] = {None: (-1, np.eye(4))}  # a name's (body, T_body_name)
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
            raise ArgumentError(f"frames: expected (name, body name, T_body_frame), got {item!r:.80}") from None
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
    """A serial chain from Denavit-Hartenberg parameters [m, rad], (n,) each, at zero joint coordinates.

    `convention="standard"`: link i's frame is at its far end, T = Rz(theta) Tz(d) Tx(a) Rx(alpha), the joint axis
    is the previous frame's z. `"modified"` (Craig): T = Rx(alpha) Tx(a) Rz(theta) Tz(d), the axis is its own z.
    `inertias`: ten parameters a link, in the link's frame of that convention. `prismatic`: numbers (from 0) of
    sliding joints, whose coordinate adds to d. Further options as for `build`.
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
    """A tree of 1-DOF joints from the space-frame product of exponentials (Park, Bobrow, Ploen 1995 section 2).

    `screws` (n, 6): the joints' screws A_i in the world frame at zero; `homes` (n, 4, 4): the bodies' poses at
    zero; `inertias`: ten parameters each, in the body's frame; `parents` (n,): numbers, -1 for the world (default:
    a chain). Row i of every array is "link{i+1}" on "joint{i+1}". The robot's bodies and coordinates are in the order
    of the rows where that has parents first; else in that of `body_names`, as `build` says.
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


def with_parameters(robot: R, parameters: ArrayLike, *, physical: bool = True) -> R:
    """The same robot with other inertial parameters (nbodies, 10), or that many numbers in a row.

    Raises InertiaError for a body that can not be, unless `physical=False`.
    """
    require_robot("robot", robot)
    flag("physical", physical)
    pi = np.array(checked("parameters", parameters, (), finite=False))
    if pi.shape not in ((robot.nbodies, 10), (10 * robot.nbodies,)):
        raise ArgumentError(f"parameters: expected shape ({robot.nbodies}, 10), got {pi.shape}")
    pi = pi.reshape(robot.nbodies, 10)
    if not np.isfinite(pi).all():
        raise ArgumentError(f"parameters: not finite in body {robot.body_names[np.argmin(np.isfinite(pi).all(1))]!r}")
    if physical:
        _inertia.check_all(pi, robot.body_names)
    changed = robot._with_parameters(pi)
    if physical and not _inertia.is_physical(pi, strict=True).all():
        check_positive_mass_matrix(changed)
    return changed


def with_payload(
    robot: R, mass: float, com: ArrayLike = (0, 0, 0), I_com: ArrayLike | None = None, frame: str | None = None
) -> R:
    """The same robot carrying `mass` [kg] at `com` [m] in `frame` (default: the last body's), with I_com (3, 3)."""
    require_robot("robot", robot)
    carrier = robot.frame(frame if frame is not None else robot.body_names[-1])
    if carrier.body < 0:
        raise ArgumentError(f"frame: {carrier.name!r} is fixed to the world and can not carry a load")
    if (mass := number("mass", mass)) < 0.0:
        raise InertiaError(f"mass: body 'payload': mass {mass:.6g} is negative")
    load = _inertia.from_com(mass, vector("com", com, 3), np.zeros((3, 3)) if I_com is None else I_com)
    _inertia.check(load, "payload")
    pi = robot.parameters.copy()
    pi[carrier.body] += _inertia.transform(carrier.placement, load)
    return with_parameters(robot, pi)


def with_armature(robot: R, armature: ArrayLike) -> R:
    """The same robot with motors of other inertia: `armature` [kg m^2, kg] at the joints, (nv,) or one number for all
    joints with one degree of freedom; the others have none. Gear ratios stay.

    Raises ArgumentError for negative ones, ModelError where the mass matrix without them is singular.
    """
    require_robot("robot", robot)
    requested = checked("armature", armature, ())
    if requested.shape not in ((), (robot.nv,)) or (requested < 0.0).any():
        raise ArgumentError(f"armature: expected a number >= 0 or {robot.nv} of them, got {armature!r:.80}")
    single = np.array([j.dof == 1 for j in robot.coupling.independent_joints for _ in range(j.dof)])
    if requested.shape and requested[~single].any():
        name = robot.dof_names[np.flatnonzero(~single & (requested != 0.0))[0]]
        raise ArgumentError(f"armature: expected 0 at {name!r}, whose joint has several degrees of freedom")
    values = np.where(single, requested, 0.0)
    each = (values[s][:1].sum() for s in robot.v_slices)  # none for joints that follow others
    joints = (replace(j, armature=float(x)) for j, x in zip(robot.joints, each))
    changed = robot._with_joints(tuple(joints))
    if not _inertia.is_physical(robot.parameters, strict=True).all():
        check_positive_mass_matrix(changed)
    return changed


def with_gravity(robot: R, gravity: ArrayLike) -> R:
    """The same robot under another gravitational acceleration (3,) [m/s^2]."""
    require_robot("robot", robot)
    return replace(robot, gravity=gravity)


def positive_bodies(robot: Mechanism) -> bool:
    """Whether the bodies' 6x6 inertias J_i alone show that M(q) > 0 for all q: J_i >= 0, S_i^T J_i S_i + armature > 0.

    In any motion some body moves whose parent rests: its energy 1/2 v_i^T S_i^T J_i S_i v_i is positive, that of the
    others is not negative. Moments that fail the triangle inequality pass where they are positive: J > 0 is weaker.
    """
    with np.errstate(invalid="ignore"):
        masses, moments = robot.parameters[:, 0], np.linalg.eigvalsh(_inertia.com_tensor(robot.parameters))
    least = -_inertia.TOLERANCE * np.abs(moments).max(axis=1)
    if not ((moments[:, 0] >= least) & ((masses > 0.0) | ~robot.parameters.any(axis=1))).all():
        return False
    for joint, J in zip(robot.joints, _inertia.spatial(robot.parameters)):
        own = joint.S.T @ J @ joint.S + joint.armature * np.eye(joint.dof)
        scale = np.sqrt(np.diagonal(own))
        if not (scale > 0.0).all() or np.linalg.eigvalsh(own / np.outer(scale, scale))[0] <= 1e-12:
            return False
    return True


def check_positive_mass_matrix(robot: Mechanism) -> None:
    """Raises ModelError unless M(q) > 0: for all q where `positive_bodies` says so, else at `TRIED` configurations, the
    neutral one and random ones within the limits. Massless bodies are fine as long as every motion moves some mass.
    At the neutral one it is looked at in any case, as numbers may be too far apart for double precision.
    """
    rng, more = np.random.default_rng(0), 0 if positive_bodies(robot) else TRIED - 1
    for q in [neutral(robot), *(random_configuration(robot, rng) for _ in range(more))]:
        M = np.zeros((robot.nv, robot.nv))
        fitting(composite_bodies.mass_matrix, robot._model).one(robot._model, q, M)
        scale = np.sqrt(np.maximum(np.diagonal(M), 0.0))
        if (scale > 0.0).all():
            values, vectors = np.linalg.eigh(M / np.outer(scale, scale))
            if values[0] > 1e-12:
                continue
            moving = np.abs(vectors[:, 0]) > 0.1
        else:
            moving = scale <= 0.0
        masses = robot.parameters[robot.parameters[:, 0] > 0.0, 0]
        if masses.max(initial=0.0) > 1e12 * masses.min(initial=np.inf):
            raise ModelError(
                f"robot {robot.name!r}: the mass matrix is not positive definite in double precision: masses from"
                f" {masses.min():.3g} to {masses.max():.3g} kg"
            )
        culprits = ", ".join(repr(n) for n, m in zip(robot.dof_names, moving) if m)
        raise ModelError(
            f"robot {robot.name!r}: the mass matrix is singular or not positive: joint(s) {culprits} can move"
            " without moving any mass (massless bodies, or a point mass on the axis); give the bodies they carry"
            " an inertia"
        )


# --- checking what was given -------------------------------------------------------------------------------------


def _inertias(inertias: Any, n: int) -> list[np.ndarray]:
    """Ten parameters for each of n bodies."""
    rows = listed("inertias", inertias, "ten parameters a body")
    if len(rows) != n:
        raise ArgumentError(f"inertias: expected {n}, one a body, got {len(rows)}")
    return [_ten_parameters(f"inertias[{i}]", row) for i, row in enumerate(rows)]


def _numbers_of(name: str, values: Any, expected: str, allowed: range) -> list[int]:
    numbers = listed(name, values, expected)
    if not all(isinstance(k, Integral) and not isinstance(k, bool) and k in allowed for k in numbers):
        raise ArgumentError(f"{name}: expected {expected}, got {numbers!r:.80}")
    return [int(k) for k in numbers]


def _check_bodies(bodies: list[Body]) -> None:
    """What they are, and that every parent is there."""
    if not bodies:
        raise ModelError("bodies: expected at least one, got none")
    for body in bodies:
        if not isinstance(body, Body):
            raise ArgumentError(f"bodies: expected geomctrl.Body, got {body!r:.80}")
    names = [b.name for b in bodies]
    no_duplicates("body", names)
    if WORLD in names:
        raise ModelError("body 'world': the name is reserved for the world frame")
    for body in bodies:
        if body.parent is not None and body.parent not in names:
            raise ModelError(f"body {body.name!r}: an orphan, {_no_such('parent', body.parent, names)}")


def _parents_first(bodies: list[Body]) -> list[Body]:
    """In the order given; a body that comes before one it hangs on brings that forward, just before itself."""
    named = {b.name: b for b in bodies}
    order: dict[str, Body] = {}
    lost: dict[str, Body] = {}
    for body in bodies:
        path: dict[str, Body] = {}  # to the world, or to a body that has its place
        ancestor = body.name
        while ancestor is not None and ancestor not in order and ancestor not in path and ancestor not in lost:
            path[ancestor] = named[ancestor]
            ancestor = named[ancestor].parent
        reached = ancestor is None or ancestor in order
        (order if reached else lost).update(reversed(path.items()))
    if lost:
        loop = ", ".join(repr(b.name) for b in bodies if b.name in lost)
        raise ModelError(f"bodies {loop}: a loop, or hanging on one; none of them reaches the world")
    return list(order.values())


def _screw_x(a: float, alpha: float) -> np.ndarray:
    c, s = np.cos(alpha), np.sin(alpha)
    return np.array([[1, 0, 0, a], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1.0]])


def _screw_z(d: float, theta: float) -> np.ndarray:
    c, s = np.cos(theta), np.sin(theta)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, d], [0, 0, 0, 1.0]])
