"""Robot: a tree of rigid bodies joined by lower pairs, as frozen data.

A robot holds what does not move: the tree, the joints' screws, placements, inertial parameters, named frames, limits,
gravity. What moves (mass matrix, Jacobians, ...) are functions of it, defined once in `kinematics`, `dynamics`,
`regressor`, ... and bound here as methods by the decorator `term`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from . import inertia as _inertia
from .arrays import checked, frozen, number, require_rotation, rotation_residual, vector
from .errors import ArgumentError, ModelError, NameNotFoundError
from .joint import Joint
from .packed import SUBGROUP_TOLERANCE, off_subgroup_many, pack

WORLD = "world"
F = TypeVar("F", bound=Callable[..., Any])


def term(function: F) -> F:
    """Bind a function of (robot, ...) as the method of the same name, so that each term has one definition."""
    setattr(Robot, function.__name__, function)
    return function


def check_transform(name: str, T: ArrayLike | None) -> np.ndarray:
    """A 4x4 rigid transform, checked and its rotation made exact (a file gives seven digits); None is the identity."""
    if T is None:
        return np.eye(4)
    try:
        A = np.array(T, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name}: expected a 4x4 transform, got {T!r:.80}") from None
    if A.shape != (4, 4) or not np.isfinite(A).all():
        raise ArgumentError(
            f"{name}: expected a finite 4x4 transform, got {'shape ' + str(A.shape) if A.shape != (4, 4) else A}"
        )
    R = A[:3, :3]
    require_rotation(name, R)
    if np.abs(A[3] - (0, 0, 0, 1)).max() > 0.0:
        raise ArgumentError(f"{name}: expected the last row (0, 0, 0, 1), got {A[3]}")
    if rotation_residual(R) > 1e-14:
        U, _, Vt = np.linalg.svd(R)
        A[:3, :3] = U @ Vt
    return A


@dataclass(frozen=True, eq=False)
class Body:
    """A rigid body and its joint: f(q) = placement exp(S q) in the frame of `parent` (None: the world)."""

    name: str
    parent: str | None
    joint: Joint
    placement: ArrayLike | None = None
    inertia: ArrayLike | None = None  # ten parameters about the body frame's origin; None: massless


class Frame(NamedTuple):
    """A named frame fixed in body number `body` (-1: the world) at `placement`, T_body_frame."""

    name: str
    body: int
    placement: np.ndarray


class Limits(NamedTuple):
    """Limits per velocity coordinate, (nv,) each; infinite where there is none."""

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Robot:
    """A tree of rigid bodies; frozen. Make one with `Robot.build`, `from_dh`, `from_screws` or `geomctrl.models`.

    Bodies are numbered parents first. A configuration q (nq,) holds, body by body, the coordinate of a joint with one
    degree of freedom or the relative pose [R | p] row by row (12 numbers) of a joint with more; a velocity v (nv,)
    holds the coordinates of the body-fixed relative twist in the joint's basis S. All terms take leading batch axes.
    """

    name: str
    body_names: tuple[str, ...]
    parents: tuple[int, ...]
    joints: tuple[Joint, ...]
    placements: np.ndarray
    parameters: np.ndarray
    gravity: np.ndarray
    frames: tuple[Frame, ...]
    nbodies: int = field(init=False)
    nq: int = field(init=False)
    nv: int = field(init=False)
    q_slices: tuple[slice, ...] = field(init=False)
    v_slices: tuple[slice, ...] = field(init=False)
    _model: np.ndarray = field(init=False)  # what kernels read; writable, as numba takes read-only arrays the slow way
    _frames: Mapping[str, Frame] = field(init=False)

    if TYPE_CHECKING:  # bound by `term` in the modules that define them
        from .articulated import (
            articulated_bodies,
            mass_matrix_inverse,
            mass_matrix_solve,
            operational_inertia,
            operational_inertia_rate,
            operational_mobility,
            operational_mobility_rate,
        )
        from .configuration import difference, integrate, neutral, random_configuration
        from .derivatives import (
            forward_dynamics_derivatives,
            forward_dynamics_second_derivatives,
            geometric_sensitivity,
            inverse_dynamics_derivatives,
            inverse_dynamics_derivatives_along,
            inverse_dynamics_second_derivatives,
            linearize,
            mass_matrix_derivative,
            mass_matrix_inverse_derivative,
            mass_matrix_inverse_rate,
            pose_sensitivity,
        )
        from .dynamics import (
            coriolis_matrix,
            energy,
            forward_dynamics,
            gravity_force,
            inverse_dynamics,
            kinetic_energy,
            mass_matrix,
            mass_matrix_rate,
            momentum,
            potential_energy,
            terms,
        )
        from .geometry import (
            christoffel_symbols,
            covariant_derivative,
            inner_product,
            ricci_curvature,
            riemann_curvature,
            scalar_curvature,
            sectional_curvature,
        )
        from .higher_order import (
            acceleration,
            jacobian_derivatives,
            jacobian_partial_derivatives,
            jacobian_second_rate,
            jerk,
            joint_motion_of_bodies,
            twist_derivatives,
        )
        from .kinematics import jacobian, jacobian_rate, pose
        from .rates import inverse_dynamics_rates
        from .regressor import regressor

    def __post_init__(self):
        put = object.__setattr__
        for key in ("placements", "parameters", "gravity"):
            put(self, key, frozen(getattr(self, key)))
        put(self, "frames", tuple(f._replace(placement=frozen(f.placement)) for f in self.frames))
        q_ends, v_ends = np.cumsum([(j.nq, j.dof) for j in self.joints], axis=0).T.tolist()
        put(self, "nbodies", len(self.joints))
        put(self, "nq", q_ends[-1])
        put(self, "nv", v_ends[-1])
        put(self, "q_slices", tuple(slice(e - j.nq, e) for e, j in zip(q_ends, self.joints)))
        put(self, "v_slices", tuple(slice(e - j.dof, e) for e, j in zip(v_ends, self.joints)))
        put(self, "_model", pack(self.parents, self.joints, self.placements, self.parameters, self.gravity))
        put(self, "_frames", MappingProxyType({f.name: f for f in self.frames}))

    def __reduce__(self):
        tree = (self.name, self.body_names, self.parents, self.joints, self.placements)
        return Robot, (*tree, self.parameters, self.gravity, self.frames)

    # --- making one --------------------------------------------------------------------------------------------

    @classmethod
    def build(
        cls,
        bodies: Iterable[Body],
        *,
        name: str = "robot",
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        frames: Iterable[tuple[str, str, ArrayLike]] = (),
        physical: bool = True,
    ) -> Robot:
        """A robot from its bodies, in any order.

        A body on a fixed joint is merged into its parent and its name stays as a frame; one fixed to the world only
        leaves the frame. `frames` are further (name, body name, T_body_frame). `physical=False` accepts inertial
        parameters that no rigid body has, as long as the mass matrix is positive definite. Raises ModelError for
        orphans, loops, duplicate names, trees that do not
        move or whose mass matrix is singular, InertiaError for parameters no rigid body has.
        """
        order = _parents_first(_items("bodies", bodies, "geomctrl.Body objects"))
        tree = []
        merged: dict[str | None, tuple[int, np.ndarray]] = {None: (-1, np.eye(4))}  # a name's (body, T_body_name)
        parameters = []
        for body in order:
            pi = _body_parameters(body, physical)
            anchor, T = merged[body.parent]
            M = T @ check_transform(f"body {body.name!r}: placement", body.placement)
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
        for item in _items("frames", frames, "tuples (name, body name, T_body_frame)"):
            try:
                frame, body_name, T = item
            except (TypeError, ValueError):
                raise ArgumentError(f"frames: expected (name, body name, T_body_frame), got {item!r:.80}") from None
            _check_name("frames", frame)
            if frame in merged or frame == WORLD:
                raise ModelError(f"frame {frame!r}: the name is taken")
            if not isinstance(body_name, str) or (body_name not in merged and body_name != WORLD):
                raise NameNotFoundError(_no_such("body", body_name, [n for n in merged if n]))
            i, T_i = merged[None if body_name == WORLD else body_name]
            merged[frame] = (i, T_i @ check_transform(f"frame {frame!r}", T))
        names, parents, joints, placements = zip(*tree)
        merged[WORLD] = merged.pop(None)
        joints = tuple(j if j.name else replace(j, name=n) for n, j in zip(names, joints))
        _no_duplicates("joint", [j.name for j in joints])
        robot = cls(
            name, names, parents, joints, np.array(placements), np.array(parameters), vector("gravity", gravity, 3),
            tuple(Frame(str(n), i, T) for n, (i, T) in merged.items()),
        )  # fmt: skip
        if not _inertia.is_physical(robot.parameters, strict=True).all():
            robot._check_positive_mass_matrix()
        return robot

    @classmethod
    def from_dh(
        cls,
        a: ArrayLike,
        alpha: ArrayLike,
        d: ArrayLike,
        theta: ArrayLike,
        *,
        convention: str,
        inertias: Sequence[ArrayLike],
        prismatic: Sequence[int] = (),
        **options: Any,
    ) -> Robot:
        """A serial chain from Denavit-Hartenberg parameters [m, rad], (n,) each, at zero joint coordinates.

        `convention="standard"`: link i's frame is at its far end, T = Rz(theta) Tz(d) Tx(a) Rx(alpha), the joint axis
        is the previous frame's z. `"modified"` (Craig): T = Rx(alpha) Tx(a) Rz(theta) Tz(d), the axis is its own z.
        `inertias`: ten parameters a link, in the link's frame of that convention. `prismatic`: numbers (from 0) of
        sliding joints, whose coordinate adds to d. Further options as for `build`.
        """
        n = len(_items("a", a, "numbers"))
        table = [vector(k, x, n) for k, x in (("a", a), ("alpha", alpha), ("d", d), ("theta", theta))]
        if convention not in ("standard", "modified"):
            raise ArgumentError(f"convention: expected 'standard' or 'modified', got {convention!r}")
        inertias = _items("inertias", inertias, f"{n} times ten parameters")
        if len(inertias) != n:
            raise ArgumentError(f"inertias: expected {n}, one a link, got {len(inertias)}")
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
        return cls.build(bodies, **options)

    @classmethod
    def from_screws(
        cls, screws: ArrayLike, homes: ArrayLike, *, inertias: Sequence[ArrayLike], parents=None, **options: Any
    ) -> Robot:
        """A tree of 1-DOF joints from the space-frame product of exponentials (Park, Bobrow, Ploen 1995 section 2).

        `screws` (n, 6): the joints' screws A_i in the world frame at zero; `homes` (n, 4, 4): the bodies' poses at
        zero; `inertias`: ten parameters each, in the body's frame; `parents` (n,): numbers, -1 for the world (default:
        a chain).
        """
        A, H = checked("screws", screws, (6,)), checked("homes", homes, (4, 4))
        inertias = _items("inertias", inertias, "ten parameters a body")
        n = len(A)
        if A.shape != (n, 6) or H.shape != (n, 4, 4) or len(inertias) != n:
            raise ArgumentError(
                f"screws, homes, inertias: expected (n, 6), (n, 4, 4), n, got {A.shape}, {H.shape}, {len(inertias)}"
            )
        words = f"{n} numbers from -1 to {n - 1}"
        parents = _numbers_of("parents", range(-1, n - 1) if parents is None else parents, words, range(-1, n))
        if len(parents) != n:
            raise ArgumentError(f"parents: expected {words}, got {parents}")
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
        return cls.build(bodies, **options)

    def with_parameters(self, parameters: ArrayLike, *, physical: bool = True) -> Robot:
        """The same robot with other inertial parameters (nbodies, 10), or that many numbers in a row.

        Raises InertiaError for a body that can not be, unless `physical=False`.
        """
        pi = np.array(checked("parameters", parameters, (), finite=False))
        if pi.shape not in ((self.nbodies, 10), (10 * self.nbodies,)):
            raise ArgumentError(f"parameters: expected shape ({self.nbodies}, 10), got {pi.shape}")
        pi = pi.reshape(self.nbodies, 10)
        if not np.isfinite(pi).all():
            raise ArgumentError(
                f"parameters: not finite in body {self.body_names[np.argmin(np.isfinite(pi).all(1))]!r}"
            )
        if physical:
            for body, row in zip(self.body_names, pi):
                _inertia.check(row, body)
        robot = replace(self, parameters=pi)
        if physical and not _inertia.is_physical(pi, strict=True).all():
            robot._check_positive_mass_matrix()
        return robot

    def with_payload(
        self, mass: float, com: ArrayLike = (0, 0, 0), I_com: ArrayLike | None = None, frame: str | None = None
    ) -> Robot:
        """The same robot carrying `mass` [kg] at `com` [m] in `frame` (default: the last body's), with I_com (3, 3)."""
        at = self.frame(frame if frame is not None else self.body_names[-1])
        if at.body < 0:
            raise ArgumentError(f"frame: {at.name!r} is fixed to the world and can not carry a load")
        load = _inertia.from_com(
            number("mass", mass), vector("com", com, 3), np.zeros((3, 3)) if I_com is None else I_com
        )
        _inertia.check(load, "payload")
        pi = self.parameters.copy()
        pi[at.body] += _inertia.transform(at.placement, load)
        return self.with_parameters(pi)

    def with_gravity(self, gravity: ArrayLike) -> Robot:
        """The same robot under another gravitational acceleration (3,) [m/s^2]."""
        return replace(self, gravity=vector("gravity", gravity, 3))

    # --- reading one -------------------------------------------------------------------------------------------

    @property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(str(j.name) for j in self.joints)

    @property
    def dof_names(self) -> tuple[str, ...]:
        """One name per velocity coordinate: the joint's, numbered where it has several."""
        return tuple(str(j.name) if j.dof == 1 else f"{j.name}[{k}]" for j in self.joints for k in range(j.dof))

    @property
    def limits(self) -> Limits:
        return Limits(*(self._per_dof(key) for key in Limits._fields))

    @property
    def damping(self) -> np.ndarray:
        """Viscous friction per velocity coordinate (nv,), as the model file says."""
        return self._per_dof("damping")

    @property
    def friction(self) -> np.ndarray:
        """Coulomb friction per velocity coordinate (nv,), as the model file says."""
        return self._per_dof("friction")

    def _per_dof(self, key: str) -> np.ndarray:
        return np.array([getattr(j, key) for j in self.joints for _ in range(j.dof)])

    def frame(self, name: str) -> Frame:
        """The named frame: a body, merged link, added frame or "world". Raises NameNotFoundError with near misses."""
        try:
            return self._frames[name]
        except (KeyError, TypeError):
            raise NameNotFoundError(_no_such("frame", name, list(self._frames))) from None

    def joint(self, name: str) -> int:
        """The number of the named joint (and of the body it carries)."""
        if name not in self.joint_names:
            raise NameNotFoundError(_no_such("joint", name, list(self.joint_names)))
        return self.joint_names.index(name)

    def __repr__(self):
        base = "free base" if self.joints[0].kind == "free" else "fixed base"
        lines = [
            f"Robot {self.name!r}: {self.nbodies} bodies, nv = {self.nv}, nq = {self.nq}, {base}, "
            f"{self.parameters[:, 0].sum():.6g} kg"
        ]
        width = max(len(n) for n in self.joint_names)
        for i, (joint, body, p) in enumerate(zip(self.joints, self.body_names, self.parents)):
            on = self.body_names[p] if p >= 0 else WORLD
            limits = f" [{joint.lower:.4g}, {joint.upper:.4g}]" if np.isfinite([joint.lower, joint.upper]).any() else ""
            lines.append(
                f"  {i:3d} {joint.name:{width}} {joint.kind:11}{on} -> {body}, {self.parameters[i, 0]:.4g} kg{limits}"
            )
        return "\n".join(lines)

    def _check_positive_mass_matrix(self):
        """Massless bodies are fine as long as every motion moves some mass: tried at a few configurations."""
        rng = np.random.default_rng(0)
        for q in [self.neutral()] + [self.random_configuration(rng) for _ in range(3)]:
            M = self.mass_matrix(q)
            scale = np.sqrt(np.maximum(np.diagonal(M), 0.0))
            if (scale > 0.0).all():
                values, vectors = np.linalg.eigh(M / np.outer(scale, scale))
                if values[0] > 1e-12:
                    continue
                moving = np.abs(vectors[:, 0]) > 0.1
            else:
                moving = scale <= 0.0
            masses = self.parameters[self.parameters[:, 0] > 0.0, 0]
            if masses.max(initial=0.0) > 1e12 * masses.min(initial=np.inf):
                raise ModelError(
                    f"robot {self.name!r}: the mass matrix is not positive definite in double precision: masses from"
                    f" {masses.min():.3g} to {masses.max():.3g} kg"
                )
            culprits = ", ".join(repr(n) for n, m in zip(self.dof_names, moving) if m)
            raise ModelError(
                f"robot {self.name!r}: the mass matrix is singular or not positive: joint(s) {culprits} can move"
                " without moving any mass (massless bodies, or a point mass on the axis); give the bodies they carry"
                " an inertia"
            )


# --- checking arguments ----------------------------------------------------------------------------------------


def as_batch(robot: Robot, **arguments: ArrayLike) -> tuple[tuple[int, ...], list[np.ndarray]]:
    """Validate states and flatten their leading axes for a kernel: (leading shape, arrays (batch, n)).

    Keys name the arguments and with them what is expected: q, q0, q1, q_d (nq), f_ext (nbodies, 6), others (nv).
    Nothing is broadcast: all arguments must have the same leading axes.
    """
    arrays, leads = [], {}
    for key, x in arguments.items():
        configuration = key in ("q", "q0", "q1", "q_d")
        trailing = (robot.nq,) if configuration else (robot.nbodies, 6) if key == "f_ext" else (robot.nv,)
        a = checked(key, x, trailing)
        lead = leads[key] = a.shape[: a.ndim - len(trailing)]
        flat = a.reshape(int(np.prod(lead)), *trailing)
        if configuration and robot.nq != robot.nv:
            _check_poses(robot, key, flat)
        arrays.append(flat)
    first = next(iter(leads))
    for key, lead in leads.items():
        if lead != leads[first]:
            raise ArgumentError(
                f"{key}: expected the leading axes of {first}, {leads[first]}, got {lead} (nothing is broadcast)"
            )
    return leads[first], arrays


def _check_poses(robot: Robot, key: str, q: np.ndarray) -> None:
    """Every pose of q (batch, nq) is one, and one that its joint can reach."""
    outside = off_subgroup_many(robot._model, q).max(axis=0, initial=0.0)
    for joint, s, off in zip(robot.joints, robot.q_slices, outside):
        if joint.dof > 1:
            where = f"{key}: entries {s.start} to {s.stop - 1}, the pose [R | p] of joint {joint.name!r}"
            require_rotation(where + ", hold no rotation", q[:, s].reshape(-1, 3, 4)[:, :, :3], "")
            if off > SUBGROUP_TOLERANCE:
                raise ArgumentError(
                    f"{where}, are not one of a {joint.kind} joint: |log T - S S^+ log T| / (1 + |p|) = {off:.3g}"
                )


def _no_such(what: str, name: object, known: list[str]) -> str:
    near = difflib.get_close_matches(str(name), known, n=3)
    hint = (
        f"did you mean {', '.join(map(repr, near))}?"
        if near
        else f"known: {', '.join(map(repr, known[:12]))}" + (", ..." if len(known) > 12 else "")
    )
    return f"no {what} named {name!r}; {hint}"


# --- building --------------------------------------------------------------------------------------------------


def _items(name: str, values: Any, expected: str) -> list:
    try:
        return list(values)
    except TypeError:
        raise ArgumentError(f"{name}: expected {expected}, got {values!r:.80}") from None


def _numbers_of(name: str, values: Any, expected: str, known: range) -> list[int]:
    numbers = _items(name, values, expected)
    if not all(isinstance(k, Integral) and not isinstance(k, bool) and k in known for k in numbers):
        raise ArgumentError(f"{name}: expected {expected}, got {numbers!r:.80}")
    return [int(k) for k in numbers]


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"{what}: expected a name, got {name!r:.80}")


def _body_parameters(body: Body, physical: bool) -> np.ndarray:
    if body.inertia is None:
        return np.zeros(10)
    try:
        pi = np.array(body.inertia, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"body {body.name!r}: inertia: expected ten numbers, got {body.inertia!r:.80}") from None
    if pi.shape != (10,):
        raise ArgumentError(f"body {body.name!r}: inertia: expected ten parameters (m, h, I), got shape {pi.shape}")
    if physical or not np.isfinite(pi).all():
        _inertia.check(pi, body.name)
    return pi


def _no_duplicates(what: str, names: list) -> None:
    for n in names:
        if names.count(n) > 1:
            raise ModelError(f"{what} {n!r}: the name is used {names.count(n)} times")


def _parents_first(bodies: list[Body]) -> list[Body]:
    """Depth-first, children in the order given."""
    if not bodies:
        raise ModelError("bodies: expected at least one, got none")
    for body in bodies:
        if not isinstance(body, Body):
            raise ArgumentError(f"bodies: expected geomctrl.Body, got {body!r:.80}")
        _check_name("body", body.name)
        if not isinstance(body.parent, str | None):
            raise ArgumentError(f"body {body.name!r}: parent: expected a name or None, got {body.parent!r:.80}")
        if not isinstance(body.joint, Joint):
            raise ArgumentError(f"body {body.name!r}: joint: expected a geomctrl.Joint, got {body.joint!r:.80}")
    names = [b.name for b in bodies]
    _no_duplicates("body", names)
    if WORLD in names:
        raise ModelError("body 'world': the name is reserved for the world frame")
    children: dict[str | None, list[Body]] = {n: [] for n in [None, *names]}
    for body in bodies:
        if body.parent not in children:
            raise ModelError(f"body {body.name!r}: an orphan, {_no_such('parent', body.parent, names)}")
        children[body.parent].append(body)
    order, stack = [], children[None][::-1]
    while stack:
        body = stack.pop()
        order.append(body)
        stack.extend(children[body.name][::-1])
    if len(order) < len(bodies):
        reached = {b.name for b in order}
        loop = [n for n in names if n not in reached]
        raise ModelError(
            f"bodies {', '.join(map(repr, loop))}: a loop, or hanging on one; none of them reaches the world"
        )
    return order


def _screw_x(a: float, alpha: float) -> np.ndarray:
    c, s = np.cos(alpha), np.sin(alpha)
    return np.array([[1, 0, 0, a], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1.0]])


def _screw_z(d: float, theta: float) -> np.ndarray:
    c, s = np.cos(theta), np.sin(theta)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, d], [0, 0, 0, 1.0]])
