"""The `Mechanism` class: a tree of rigid bodies connected by lower pairs, as immutable data.

It holds the data that do not depend on the state: tree, joint screws, placements, inertial parameters, named frames,
limits, gravity. Quantities that depend on the state (mass matrix, Jacobians, ...) are functions in `geomctrl.terms` and
methods of `Robot`.
"""

from __future__ import annotations

import difflib
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, frozen, is_a, shown
from geomctrl.errors import ArgumentError, ModelError, NameNotFoundError
from geomctrl.kernels.tree import pack, pack_coupled, with_armatures, with_inertias
from geomctrl.tables import html_table
from geomctrl.tracing.code_identity import UNCHANGING

from .checks import checked_tree
from .coupling import Coupling, Reduction, checked_couplings
from .joint import Joint
from .origin import BUILT, WORLD, Frame, Origin

if TYPE_CHECKING:  # the compiler imports llvmlite, which plain data do not need
    from geomctrl.compiler.code import Code


MAX_SHOWN_FRAMES = 6  # in the printed table of a robot


class Limits(NamedTuple):
    """Limits for each velocity coordinate, shape (nv,) each; infinite where there is no limit."""

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


class GravityVector(np.ndarray):
    """The gravitational acceleration (3,) [m/s^2]. Calling it raises an error that names `gravity_force`."""

    def __call__(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("robot.gravity is the acceleration (3,) [m/s^2]; the joint torques are robot.gravity_force(q)")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        plain = (np.asarray(x) if isinstance(x, GravityVector) else x for x in inputs)
        return getattr(ufunc, method)(*plain, **options)


class Springs(NamedTuple):
    """Springs for each velocity coordinate, shape (nv,) each: stiffness [N m/rad, N/m] and rest position [rad, m]."""

    stiffness: np.ndarray
    rest: np.ndarray


class _DeferredFunctions:
    """Placeholder for a robot's compiled functions until the first is used, so that llvmlite is imported only then."""

    def __init__(self, robot: Mechanism):
        self.model, self.robot = robot._model, weakref.ref(robot)

    def __getattr__(self, name: str):
        from geomctrl.compiler.code import Code

        if "code" not in self.__dict__:
            self.code, robot = Code(self.model), self.robot()
            if robot is not None:
                object.__setattr__(robot, "_code", self.code)
        return getattr(self.code, name)


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism:
    """A tree of rigid bodies connected by lower pairs, as immutable data. `Robot` adds the dynamics.

    Raises
    ------
    ArgumentError, ModelError
        If the fields do not describe a tree, with the name of the field: wrong shapes, body numbers that do not exist,
        loops, numbers that are not finite, matrices that are not transforms. Inertial parameters are not checked here.

    Notes
    -----
    - Bodies are numbered so that parents come first. If the input already has this order, it is kept; otherwise
      `origin.renumbered` is True.
    - The configuration q has shape (nq,): body by body the coordinate of a joint with one degree of freedom, or the
      relative pose [R | p] row by row (12 numbers) of a joint with more.
    - The velocity v has shape (nv,): the coordinates of the body-fixed relative twists in the joints' bases S.
    - Joints that follow others (`couplings`) have no coordinates: their slices of q and v are empty.
    """

    name: str
    body_names: tuple[str, ...]
    parents: tuple[int, ...]
    joints: tuple[Joint, ...]
    placements: np.ndarray
    parameters: np.ndarray
    gravity: np.ndarray
    frames: tuple[Frame, ...]
    couplings: tuple[Coupling, ...] = ()
    origin: Origin = BUILT
    nbodies: int = field(init=False)
    nq: int = field(init=False)
    nv: int = field(init=False)
    q_slices: tuple[slice, ...] = field(init=False)
    v_slices: tuple[slice, ...] = field(init=False)
    _model: np.ndarray = field(init=False)  # the kernels' input; writable, because numba is slow on read-only arrays
    _frames: Mapping[str, Frame] = field(init=False)
    _reduction: Reduction | None = field(init=False)  # of the couplings
    _properties: dict[str, np.ndarray] = field(init=False)  # cache of `_kept`
    _code: Code = field(init=False, repr=False)  # the compiled functions

    def __post_init__(self):
        put = object.__setattr__
        tree = (self.name, self.body_names, self.parents, self.joints, self.placements)
        for key, value in checked_tree(*tree, self.parameters, self.gravity, self.frames).items():
            put(self, key, frozen(value) if isinstance(value, np.ndarray) else value)
        put(self, "gravity", self.gravity.view(GravityVector))
        put(self, "frames", tuple(f._replace(placement=frozen(f.placement)) for f in self.frames))
        if not is_a(self.origin, Origin):
            raise ArgumentError(f"origin: expected a mechanism.origin.Origin, got {shown(self.origin)}")
        put(self, "couplings", checked_couplings(self.couplings, self.joints))
        reduction = Reduction(self.joints, self.couplings) if self.couplings else None
        put(self, "_reduction", reduction)
        put(self, "_properties", {})
        free = range(len(self.joints)) if reduction is None else reduction.independent
        sizes = [(j.nq, j.dof) if i in free else (0, 0) for i, j in enumerate(self.joints)]
        q_ends, v_ends = np.cumsum(sizes, axis=0).T.tolist()
        put(self, "nbodies", len(self.joints))
        put(self, "nq", q_ends[-1])
        put(self, "nv", v_ends[-1])
        put(self, "q_slices", tuple(slice(e - n, e) for e, (n, _) in zip(q_ends, sizes)))
        put(self, "v_slices", tuple(slice(e - d, e) for e, (_, d) in zip(v_ends, sizes)))
        model = pack(self.parents, self.joints, self.placements, self.parameters, self.gravity)
        if reduction is not None:
            joints = [self.joints[i] for i in free]
            model = pack_coupled(model, reduction.A, reduction.b, list(free), joints)
        put(self, "_model", model)
        put(self, "_frames", MappingProxyType({f.name: f for f in self.frames}))
        put(self, "_code", _DeferredFunctions(self))

    def __reduce__(self):
        tree = (self.name, self.body_names, self.parents, self.joints, self.placements)
        return type(self), (
            *tree,
            self.parameters,
            self.gravity,
            self.frames,
            self.couplings,
            self.origin,
        )

    def _with_parameters(self, parameters: np.ndarray) -> Self:
        """Return the same tree with other inertial parameters.

        Only what differs is packed again, because sweeps create a robot for each run.
        """
        return self._changed(parameters=frozen(parameters), _model=with_inertias(self._model, parameters))

    def _with_joints(self, joints: tuple[Joint, ...]) -> Self:
        """Return the same tree with joints that differ only in armature."""
        return self._changed(joints=joints, _model=with_armatures(self._model, [j.armature for j in joints]))

    def _changed(self, **changes: Any) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update((x.name, getattr(self, x.name)) for x in fields(self))
        twin.__dict__.update(changes)
        object.__setattr__(twin, "_code", _DeferredFunctions(twin))
        return twin

    # --- properties -------------------------------------------------------------------------------------------

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints, one for each body in the order of the bodies."""
        return tuple(str(j.name) for j in self.joints)

    @property
    def frame_names(self) -> tuple[str, ...]:
        """The names that `frame`, `pose` and `jacobian` accept: bodies, merged links, added frames and "world"."""
        return tuple(self._frames)

    @property
    def dof_names(self) -> tuple[str, ...]:
        """One name for each velocity coordinate: the joint's name, with a number if the joint has several
        coordinates.
        """
        joints = self.coupling.independent_joints
        return tuple(str(j.name) if j.dof == 1 else f"{j.name}[{k}]" for j in joints for k in range(j.dof))

    @property
    def coupling(self) -> JointCoupling:
        """The independent joints, and how the coordinates of all joints follow from theirs."""
        return JointCoupling(self)

    @property
    def is_rotational(self) -> np.ndarray:
        """Whether each velocity coordinate is a rotation [rad/s, N m]; otherwise it is a translation [m/s, N]. Shape
        (nv,).
        """
        return self._kept(
            "is_rotational", lambda: np.concatenate([j.is_rotational for j in self.coupling.independent_joints])
        )

    @property
    def limits(self) -> Limits:
        """Named tuple of `lower`, `upper` [rad, m], `velocity` [rad/s, m/s] and `effort` [N m, N], shape (nv,) each.

        A limit that the model does not state is infinite.

        Examples
        --------
        >>> import geomctrl as gc
        >>> gc.models.panda().limits.effort  # torque limits [N m]
        array([87., 87., 87., 87., 12., 12., 12.])
        """
        return Limits(*(self._per_dof(key) for key in Limits._fields))

    @property
    def damping(self) -> np.ndarray:
        """Viscous friction coefficient of each velocity coordinate (nv,) [N m s/rad, N s/m], from the model file."""
        return self._per_dof("damping")

    @property
    def friction(self) -> np.ndarray:
        """Coulomb friction of each velocity coordinate (nv,) [N m, N], from the model file."""
        return self._per_dof("friction")

    @property
    def springs(self) -> Springs:
        """Stiffness and rest position of the joint springs for each velocity coordinate, from the model file."""
        return Springs(self._per_dof("stiffness"), self._per_dof("rest"))

    @property
    def armature(self) -> np.ndarray:
        """Reflected motor inertia of each velocity coordinate (nv,) [kg m^2, kg], which is part of the diagonal of
        M.
        """
        return self._per_dof("armature")

    @property
    def gear_ratio(self) -> np.ndarray:
        """Motor speed divided by joint speed for each velocity coordinate (nv,) [rad/rad, rad/m]; 1 if unknown."""
        return self._per_dof("gear_ratio")

    def _per_dof(self, key: str) -> np.ndarray:
        def per_dof() -> np.ndarray:
            if self._reduction is not None:
                return self._reduction.per_dof(key, self.joints)
            return np.array([x for j in self.joints for x in [getattr(j, key)] * j.dof])

        return per_dof() if key == "armature" else self._kept(key, per_dof)

    def _kept(self, key: str, compute: Callable[[], np.ndarray]) -> np.ndarray:
        """A copy of a property of the joints, computed once for all robots that differ in inertias and armatures."""
        if key not in self._properties:
            self._properties[key] = compute()
        return self._properties[key].copy()

    def frame(self, name: str) -> Frame:
        """Return the frame with this name: a body, a merged link, an added frame or "world".

        Parameters
        ----------
        name : str

        Returns
        -------
        Frame
            Its name, the number of its body and its pose there.

        Raises
        ------
        NameNotFoundError
            If there is no such frame; the message lists similar names.

        Examples
        --------
        >>> import geomctrl as gc
        >>> gc.models.two_link().frame("tip").body
        1
        """
        try:
            return self._frames[name]
        except Exception:  # of the object's own hash, too
            raise NameNotFoundError(_no_such("frame", name, list(self._frames))) from None

    def joint(self, name: str) -> int:
        """Return the number of the joint with this name, which is also the number of the body that it carries.

        Parameters
        ----------
        name : str

        Returns
        -------
        int

        Raises
        ------
        NameNotFoundError
            If there is no such joint; the message lists similar names.

        Examples
        --------
        >>> import geomctrl as gc
        >>> gc.models.two_link().joint("joint2")
        1
        """
        try:
            return self.joint_names.index(name)
        except Exception:  # of the object's own comparison, too
            raise NameNotFoundError(_no_such("joint", name, list(self.joint_names))) from None

    def __repr__(self):
        width = max(len(n) for n in self.joint_names)
        lines = [self._heading()]
        for i, name, kind, on, body, mass, limits, following in self._rows():
            line = f"  {i:3d} {name:{width}} {kind:11}{on} -> {body}, {mass} kg"
            lines.append(line + (f" {limits}" if limits else "") + (f", {following}" if following else ""))
        return "\n".join([*lines, f"  {self._frame_line()}"])

    def _repr_html_(self) -> str:
        columns = ["", "joint", "kind", "on", "body", "mass [kg]", "limits [rad, m]", ""]
        return html_table(f"{self._heading()}; {self._frame_line()}", columns, self._rows())

    def _frame_line(self) -> str:
        """Return a line with the first frames other than bodies and the world."""
        added = [name for name in self._frames if name not in (*self.body_names, WORLD)]
        names = ", ".join(map(repr, added[:MAX_SHOWN_FRAMES])) + (", ..." if len(added) > MAX_SHOWN_FRAMES else "")
        return f"frames: {names + ', ' if added else ''}the bodies and {WORLD!r}; robot.frame_names lists all"

    def _heading(self) -> str:
        base = "free base" if self.joints[0].kind == "free" else "fixed base"
        bodies = "1 body" if self.nbodies == 1 else f"{self.nbodies} bodies"
        size = f"{bodies}, nv = {self.nv}, nq = {self.nq}, {base}, {self.parameters[:, 0].sum():.6g} kg"
        order = "; renumbered so that parents come first" if self.origin.renumbered else ""
        return f"Robot {self.name!r}: {size}{order}"

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        """One row for each joint: number, name, kind, parent body, body, mass, limits, joints that it follows."""
        following = {c.joint: f"follows {', '.join(c.follows) or 'none'}" for c in self.couplings}
        for i, (joint, name, body, p) in enumerate(zip(self.joints, self.joint_names, self.body_names, self.parents)):
            limits = f"[{joint.lower:.4g}, {joint.upper:.4g}]" if np.isfinite([joint.lower, joint.upper]).any() else ""
            on, mass = self.body_names[p] if p >= 0 else WORLD, f"{self.parameters[i, 0]:.4g}"
            yield i, name, joint.kind, on, body, mass, limits, following.get(name, "")


UNCHANGING[Mechanism] = {x.name for x in fields(Mechanism)}


class JointCoupling:
    """The independent joints of a robot, and how the coordinates of all joints follow from theirs.

    Attributes
    ----------
    independent_joints : tuple of Joint
        The joints whose coordinates are the robot's, in order.
    matrix : ndarray, shape (tree.nv, nv)
        Maps v to the velocities of all joints, A v. It is the identity if no joint follows another.
    """

    def __init__(self, robot: Mechanism):
        reduction = robot._reduction
        self._robot = robot
        self.independent_joints = (
            robot.joints if reduction is None else tuple(robot.joints[i] for i in reduction.independent)
        )
        self.matrix = np.eye(robot.nv) if reduction is None else reduction.A

    @property
    def tree(self) -> Mechanism:
        """The same robot with every joint independent. It is the robot itself if no joint follows another."""
        return replace(self._robot, couplings=()) if self._robot.couplings else self._robot

    def tree_configuration(self, q: ArrayLike) -> np.ndarray:
        """Return the configuration (..., tree.nq) of all joints, A q + b: the argument q for the methods of
        `tree`.
        """
        robot, reduction = self._robot, self._robot._reduction
        q = checked("q", q, (robot.nq,))
        if reduction is None:
            return q
        out, own = [], [np.s_[..., s] for s in robot.q_slices]
        single = [(s, v) for j, s, v in zip(robot.joints, robot.q_slices, robot.v_slices) if j.dof == 1]
        x = q[..., [s.start for s, _ in single if s.start < s.stop]]
        columns = [v.start for _, v in single if v.start < v.stop]
        row = 0
        for joint, entries, b in zip(robot.joints, own, reduction.b):
            moved = x @ reduction.A[row, columns] + b if joint.dof == 1 else None
            out.append(q[entries] if moved is None else np.asarray(moved)[..., None])
            row += joint.dof
        return np.concatenate(out, axis=-1)


def require_robot(name: str, x: object) -> None:
    """Raise ArgumentError, naming the argument `name`, unless x is a Robot."""
    if not is_a(x, Mechanism):
        raise ArgumentError(f"{name}: expected a Robot, got {shown(x)}")


def require_free_joints(label: str, robot: object) -> None:
    """Raise ModelError if joints of the robot follow others; `label` names the function that does not support it."""
    if isinstance(robot, Mechanism) and robot.couplings:
        names = ", ".join(repr(c.joint) for c in robot.couplings)
        raise ModelError(
            f"{label}: not supported for joints that follow others ({names}); use robot.coupling.tree,"
            " where all joints are independent"
        )


def _no_such(label: str, name: object, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, n=3) if isinstance(name, str) else []
    hint = (
        f"did you mean {', '.join(map(repr, near))}?"
        if near
        else f"known: {', '.join(map(repr, names[:12]))}" + (", ..." if len(names) > 12 else "")
    )
    return f"no {label} named {shown(name)}; {hint}"
