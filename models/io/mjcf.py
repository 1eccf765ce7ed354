"""Load MJCF files: the optional package `mujoco` compiles them, and the compiled model is read body by body."""

import copy
import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import choices, is_a, optional_package, shown
from geomctrl.errors import ArgumentError, GeomctrlError, ModelError
from geomctrl.lie import so3
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.coupling import Coupling
from geomctrl.mechanism.joint import Joint
from geomctrl.mechanism.mechanism import WORLD
from geomctrl.models.io.xml_text import locate, read_xml, unique_name
from geomctrl.other_names import named_arguments
from geomctrl.output import UNWRITABLE
from geomctrl.robot import Robot

IGNORABLE = ("armature", "stiffness", "damping", "equality", "tendon", "gravcomp", "fluid", "flex", "plugin")
UNLIMITED = 1e10  # MuJoCo's largest number; it means infinity if a joint has a limit only on the other side
MAX_LISTED = 6  # elements that an error message lists for each reason


@named_arguments()
def load_mjcf(source: str | Path, *, ignore: Iterable[str] = (), gravity: ArrayLike | None = None) -> Robot:
    """Load a robot from an MJCF file, or from a string of XML.

    This needs the package `mujoco` (pip install 'geomctrl[mjcf]').

    Parameters
    ----------
    source : str or Path
        The file, or the XML text itself.
    ignore : iterable of str
        Features of the file that a rigid-body tree does not represent and that are left out instead of raising
        ModelError:

        - "armature": of ball and free joints, and of actuators that do not drive a hinge or slide. If ignored, no
          armature is read at all.
        - "stiffness": springs other than linear ones of hinges and slides.
        - "damping": the nonlinear part.
        - "equality": constraints other than linear ones between joints or fixed tendons (those become
          `geomctrl.Coupling`).
        - "tendon": tendons with a spring, damping, friction, inertia or limits. Others only transmit.
        - "gravcomp", "fluid", "flex", and "plugin" (of bodies).
    gravity : array_like, shape (3,), optional
        Gravitational acceleration [m/s^2]. Default: that of the file.

    Returns
    -------
    Robot

    Raises
    ------
    ModelError
        If the file is invalid, or has features that are not in `ignore`; the message lists each element with its line.
    ArgumentError
        If `source` does not exist or `ignore` has an unknown entry.

    Notes
    -----
    - Coordinates are MuJoCo's, including a joint's `ref`, except for joints with several degrees of freedom. A free
      joint stores the pose of the body in the world and a ball joint its relative pose, both as [R | p]. The velocity
      of a free joint is its body twist, while MuJoCo's linear velocity is in world axes.
    - Bodies and joints keep MuJoCo's numbers. Those without a name are called "body3", "joint5", and
      `interop.to_mujoco` finds them by these names.
    - A body with several joints becomes a chain whose first joints carry massless bodies named "body/joint".
    - Named sites become frames ("name_site" if a body has the name).
    - Damping and frictionloss become `damping` and `friction`, springs become `stiffness` and `rest`. For each
      actuator, gear^2 times its armature is added to the `armature` of its joint, and its gear is the `gear_ratio`.
    - Geometry, contacts, actuators and sensors are not read.

    Examples
    --------
    >>> import geomctrl as gc
    >>> text = '''<mujoco><worldbody><body name="rod"><joint axis="0 1 0"/>
    ... <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.02"/></body></worldbody></mujoco>'''
    >>> gc.load_mjcf(text).body_names
    ('rod',)
    """
    mujoco = require_mujoco("load_mjcf")
    ignored = _ignored(ignore)
    label, lines, m = compile_mjcf(mujoco, source)
    return _read(mujoco, label, lines, m, ignored, gravity)


def read_model(model: Any, ignore: Iterable[str], caller: str) -> Robot:
    """Return the robot of a mujoco.MjModel; raises as `load_mjcf` does, with names but without lines."""
    mujoco, ignored = require_mujoco(caller), _ignored(ignore)
    return _read(mujoco, "model", _no_lines, _checked_model(mujoco, model), ignored, None)


def _ignored(ignore):
    return choices("ignore", [ignore] if is_a(ignore, str) else ignore, IGNORABLE)


def _checked_model(mujoco, model):
    if isinstance(model, mujoco.MjSpec):
        raise ArgumentError("model: expected a mujoco.MjModel, got a mujoco.MjSpec: pass spec.compile()")
    if not isinstance(model, mujoco.MjModel):
        hint = ": use load_mjcf" if isinstance(model, (str, Path)) else ""
        raise ArgumentError(f"model: expected a mujoco.MjModel, got {shown(model)}{hint}")
    return model


def _read(mujoco, label, lines, m, ignored, gravity):
    try:
        _check_represented(mujoco, lines, m, ignored)
        return robot_of(mujoco, m, ignored, gravity)
    except GeomctrlError as error:
        raise type(error)(f"{label}: {error}") from None


def with_descriptions(source: Any, caller: str) -> tuple[Any, Any, Robot, tuple[str, ...]]:
    """Return (mujoco, compiled model, its tree, descriptions of features that the tree does not represent).

    The compiled model is that of an MJCF, or a copy of the given mujoco.MjModel. caller: the function that needs the
    package, for its error message. Raises as `load_mjcf` does, except for features that a tree does not represent.
    """
    mujoco = require_mujoco(caller)
    if isinstance(source, mujoco.MjModel):
        label, lines, m = "source", _no_lines, copy.copy(source)
    else:
        label, lines, m = compile_mjcf(mujoco, source)
    try:
        beyond = {key: where for key, where in _beyond(mujoco, lines, m, coupled=False) if where}
        robot = robot_of(mujoco, m, (*beyond, "equality"))
    except GeomctrlError as error:
        raise type(error)(f"{label}: {error}") from None
    return mujoco, m, robot, tuple(f"{key} of {element}" for key, where in beyond.items() for element in where)


def require_mujoco(caller: str) -> Any:
    """Import mujoco for the function `caller`; raises GeomctrlError if it is missing or too old."""
    return optional_package(caller, "mujoco", "mjcf", "3.3")


def robot_of(mujoco: Any, m: Any, ignored: Iterable[str] = IGNORABLE, gravity: ArrayLike | None = None) -> Robot:
    """Return the tree of a compiled model, without the rest of the model."""
    tree = _Tree(mujoco, m, ignored)
    off = _disabled(mujoco, m, "GRAVITY")
    g = gravity if gravity is not None else np.zeros(3) if off else m.opt.gravity.copy()
    couplings = [] if "equality" in ignored else [c for c in _couplings(mujoco, m) if c is not None]
    return Robot.build(tree.bodies, name=_model_name(m), gravity=g, frames=tree.frames(), couplings=couplings)


def compile_mjcf(mujoco, source):
    """Return (label for errors, function of an element's kind, number and name that returns its lines, MjModel)."""
    located = locate(source)
    is_text = isinstance(located, str)
    label = "MJCF text" if is_text else str(located)
    try:
        root = read_xml(located)
        if root.tag != "mujoco":
            hint = ": use load_urdf" if root.tag == "robot" else ""
            raise ModelError(f"not an MJCF: expected the root element <mujoco>, got <{root.tag}>{hint}")
        types = root.getroottree().docinfo.internalDTD
        for entity in () if types is None else types.iterentities():
            raise ModelError(f"entity {entity.name!r}: MuJoCo does not expand XML entities")
        spec = mujoco.MjSpec.from_string(located) if is_text else mujoco.MjSpec.from_file(str(located))
        documents = {"the text": root} if is_text else _included(located, root, located.parent)
        return label, functools.partial(_lines, documents, spec), spec.compile()
    except ValueError as error:  # MuJoCo quotes the file as it is
        text = "\n".join(UNWRITABLE.sub("_", line) for line in str(error).splitlines())
        raise ModelError(f"{label}: {text}") from None


def _included(path, root, folder):
    """XML of a file and of the files it includes, by name; their paths are relative to the folder of the first file."""
    documents = {path.name: root}
    for element in root.iter("include"):
        path = folder / element.get("file", "")
        if path.is_file() and path.name not in documents:
            documents |= _included(path, read_xml(path), folder)
    return documents


def _disabled(mujoco, m, *flags):
    """Whether the file sets one of these disable flags; MuJoCo's versions have different flags."""
    bits = (getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}", 0) for flag in flags)
    return any(m.opt.disableflags & int(bit) for bit in bits)


def _model_name(m):
    return m.names[: m.names.index(b"\0")].decode() or "robot"


# --- names -------------------------------------------------------------------------------------------------------


def joint_names(model: Any) -> list[str]:
    """Names of the joints of a mujoco.MjModel, by number; "joint5" if MuJoCo has no name."""
    return _all_named("joint", [model.joint(j).name for j in range(model.njnt)])


def body_names(model: Any) -> list[str]:
    """Names of the bodies of a mujoco.MjModel, by number; "body3" if MuJoCo has no name."""
    return _all_named("body", [model.body(i).name for i in range(model.nbody)])


def _all_named(kind, names):
    taken = set(names)
    return [name or unique_name(f"{kind}{k}", taken) for k, name in enumerate(names)]


# --- what a tree does not represent -------------------------------------------------------------------------------


def _check_represented(mujoco, lines, m, ignore):
    refused = {key: where for key, where in _beyond(mujoco, lines, m) if where and key not in ignore}
    if refused:
        reasons = "; ".join(
            f"{key} of {', '.join(where[:MAX_LISTED])}"
            + f" and {len(where) - MAX_LISTED} more" * (len(where) > MAX_LISTED)
            for key, where in refused.items()
        )
        raise ModelError(f"can not be represented: {reasons}. Load with ignore={tuple(refused)} to leave it out")


WHERE = {  # XPath of the elements of each kind
    "joint": "//*[self::joint or self::freejoint][not(parent::equality)]", "body": "//body", "flex": "//flex",
    "actuator": "//actuator/*", "equality": "//equality/*", "tendon": "//tendon/*",
}  # fmt: skip
OF_SPEC = {"joint": "joints", "body": "bodies", "flex": "flexes", "actuator": "actuators", "equality": "equalities",
           "tendon": "tendons"}  # fmt: skip


def _no_lines(kind, number, name):
    return [""]


def _lines(documents, spec, kind, number, name):
    """Return texts with the lines of an element; MuJoCo has no lines for elements of included files."""
    if kind == "option":
        options = [(file, e) for file, root in documents.items() for e in root.iter("option")]
        return [f" (line {e.sourceline} of {f})" for f, e in options if e.get("density") or e.get("viscosity")]
    line = next((e.info for e in getattr(spec, OF_SPEC[kind]) if int(e.id) == number), "")
    if line and line != "line 0":
        return [f" ({line})"]
    for file, root in documents.items():
        for element in root.xpath(WHERE[kind]):
            if element.get("name") == name:
                return [f" (line {element.sourceline} of {file})"]
    return [" (of an included file)"]


def _beyond(mujoco, lines, m, coupled=True):
    """Return the features that a tree does not represent, each with its elements and their lines."""

    def elements(kind, flags):
        object_type = getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
        names = [(int(i), mujoco.mj_id2name(m, object_type, int(i)) or f"#{i}") for i in np.flatnonzero(flags)]
        return [f"{name!r}{line}" for i, name in names for line in lines(kind, i, name)]

    def nonzero(name, rows):  # older versions of MuJoCo lack some of these
        x = np.asarray(getattr(m, name, ()))
        return x.reshape(rows, -1).any(axis=1) if x.size else np.zeros(rows, bool)

    def of_joints(flags):
        return np.bincount(m.dof_jntid[flags], minlength=m.njnt) > 0

    linear = np.isin(m.jnt_type, (mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE))
    driven = _joints_of_actuators(mujoco, m)
    elsewhere = nonzero("actuator_armature", m.nu) & ~(driven >= 0)
    heavy = of_joints(nonzero("dof_armature", m.nv)) & ~linear
    yield "armature", elements("joint", heavy) + elements("actuator", elsewhere)
    curved = nonzero("jnt_stiffnesspoly", m.njnt) | nonzero("jnt_springyield", m.njnt)
    yield "stiffness", elements("joint", curved | (nonzero("jnt_stiffness", m.njnt) & ~linear))
    losses, first = np.stack((m.dof_damping, m.dof_frictionloss)), m.jnt_dofadr[m.dof_jntid]
    uneven = (losses != losses[:, first]).any(axis=0)  # an edited model may have them
    yield "damping", elements("joint", of_joints(nonzero("dof_dampingpoly", m.nv) | uneven))
    other = np.array([c is None or not coupled for c in _couplings(mujoco, m)], bool)
    yield "equality", elements("equality", _active(mujoco, m) & other)
    acting = ("stiffness", "stiffnesspoly", "damping", "dampingpoly", "frictionloss", "armature", "limited")
    acts = [nonzero(f"tendon_{key}", m.ntendon) for key in acting]
    yield "tendon", elements("tendon", np.logical_or.reduce(acts))
    yield "gravcomp", elements("body", m.body_gravcomp)
    fluid = [f"'option'{line}" for line in lines("option", 0, "")]
    yield "fluid", fluid if m.opt.density or m.opt.viscosity else []
    yield "flex", elements("flex", np.ones(m.nflex))
    yield "plugin", elements("body", m.body_plugin >= 0)


def _active(mujoco, m):
    return m.eq_active0.astype(bool) & (not _disabled(mujoco, m, "EQUALITY"))


def _couplings(mujoco, m):
    """Return the `Coupling` of each equality constraint; None if it is disabled, not linear or not between joints.

    MuJoCo's constraints are polynomials of the distance from qpos0: y1 = p(y2), or y1 = p(0) without a second element.
    Each y is the coordinate of a joint or the sum of those in a fixed tendon. The first joint of y1 follows.
    """
    types, names, couplings, following = mujoco.mjtEq, joint_names(m), [], set()
    for k, active in enumerate(_active(mujoco, m)):
        sums = {int(types.mjEQ_JOINT): _one_joint, int(types.mjEQ_TENDON): _fixed_tendon}.get(int(m.eq_type[k]))
        objects = m.eq_obj1id[k], m.eq_obj2id[k]
        first, second = (sums(mujoco, m, i) if sums and i >= 0 else {} for i in objects)
        a, slope, *curved = map(float, m.eq_data[k, :5])
        free = [j for j in first or {} if j not in following]
        if not active or not free or second is None or (second and any(curved)):
            couplings.append(None)
            continue
        joint = free[0]
        following.add(joint)
        ratios = {j: -c / first[joint] for j, c in first.items() if j != joint}
        for j, c in second.items():
            ratios[j] = ratios.get(j, 0.0) + slope * c / first[joint]
        zeros = [float(m.qpos0[m.jnt_qposadr[j]]) for j in (joint, *ratios)]
        offset = zeros[0] + a / first[joint] - sum(r * x for r, x in zip(ratios.values(), zeros[1:]))
        couplings.append(Coupling(names[joint], {names[j]: r for j, r in ratios.items()}, offset))
    return couplings


def _one_joint(mujoco, m, j):
    return {int(j): 1.0}


def _fixed_tendon(mujoco, m, i):
    """Return the coefficients by joint of a fixed tendon; None for a spatial tendon."""
    wraps = slice(m.tendon_adr[i], m.tendon_adr[i] + m.tendon_num[i])
    if (m.wrap_type[wraps] != mujoco.mjtWrap.mjWRAP_JOINT).any():
        return None
    return {int(j): float(c) for j, c in zip(m.wrap_objid[wraps], m.wrap_prm[wraps]) if c}


def _joints_of_actuators(mujoco, m):
    """Return for each actuator the number of the hinge or slide that it drives; -1 if it drives something else."""
    at_joint = np.isin(m.actuator_trntype, (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT))
    single = np.append(np.isin(m.jnt_type, (mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE)), False)
    joints = np.where(at_joint, m.actuator_trnid[:, 0], m.njnt)
    return np.where(single[joints], joints, -1)


# --- bodies ------------------------------------------------------------------------------------------------------


class _Tree:
    """Reads MuJoCo's compiled model body by body."""

    def __init__(self, mujoco, m, ignore):
        self.mujoco, self.m = mujoco, m
        self.joints, self.names = joint_names(m), body_names(m)
        springs = "stiffness" not in ignore and not _disabled(mujoco, m, "SPRING", "PASSIVE")
        self.damping = m.dof_damping * (not _disabled(mujoco, m, "DAMPER", "PASSIVE"))
        self.friction = m.dof_frictionloss * (not _disabled(mujoco, m, "FRICTIONLOSS"))
        self.stiffness = m.jnt_stiffness * springs
        self.armature, self.gear_ratio = self.motors("armature" not in ignore)
        self.bodies = [body for i in range(1, m.nbody) for body in self.chain(i)]

    def motors(self, wanted):
        """Return armature and gear ratio of every joint with one degree of freedom.

        Armatures of actuators are multiplied by gear^2.
        """
        m = self.m
        armature, ratio = m.dof_armature[m.jnt_dofadr] * wanted, np.ones(m.njnt)
        rotors = np.asarray(getattr(m, "actuator_armature", np.zeros(m.nu))) * wanted  # older versions have none
        for joint, rotor, gear in zip(_joints_of_actuators(self.mujoco, m), rotors, m.actuator_gear[:, 0]):
            if joint >= 0 and rotor:
                armature[joint] += rotor * gear**2
                ratio[joint] = gear or 1.0
        return armature, ratio

    def transform(self, position, quaternion):
        T, R = np.eye(4), np.empty(9)
        self.mujoco.mju_quat2Mat(R, quaternion)
        T[:3, :3], T[:3, 3] = R.reshape(3, 3), position
        return T

    def chain(self, i):
        """Convert MuJoCo's body i to Bodies: one for each joint; the last one has its name and its inertia."""
        m, name, up = self.m, self.names[i], int(self.m.body_parentid[i])
        parent = self.names[up] if up else None
        placement = self.transform(m.body_pos[i], m.body_quat[i])
        R = self.transform(np.zeros(3), m.body_iquat[i])[:3, :3]
        I = R @ np.diag(m.body_inertia[i]) @ R.T
        parameters = inertia.from_com(m.body_mass[i], m.body_ipos[i], 0.5 * (I + I.T))
        first, count = int(m.body_jntadr[i]), int(m.body_jntnum[i])
        if count == 0:
            return [Body(name, parent, Joint.fixed(), placement, parameters)]
        bodies = []
        for j in range(first, first + count):
            joint, rest = self.joint(j)
            if joint.kind == "free":
                placement = np.eye(4)  # its coordinates are the pose in the world
            last = j == first + count - 1
            body = name if last else unique_name(f"{name}/{joint.name}", set(self.names))
            bodies.append(Body(body, parent, joint, placement @ rest, parameters if last else None))
            parent, placement = body, np.eye(4)
        return bodies

    def joint(self, j):
        """Return joint j, and the displacement for which its coordinate equals MuJoCo's."""
        m, types = self.m, self.mujoco.mjtJoint
        dof, place, kind, point = int(m.jnt_dofadr[j]), m.jnt_qposadr[j], m.jnt_type[j], m.jnt_pos[j]
        options = {"damping": float(self.damping[dof]), "friction": float(self.friction[dof]), "name": self.joints[j]}
        if kind == types.mjJNT_FREE:
            return Joint.free(**options), np.eye(4)
        if kind == types.mjJNT_BALL:
            return Joint.spherical(point, **options), np.eye(4)
        if m.jnt_limited[j]:
            bounds = np.where(np.abs(m.jnt_range[j]) < UNLIMITED, m.jnt_range[j], (-np.inf, np.inf))
            options["lower"], options["upper"] = map(float, bounds)
        if m.jnt_actfrclimited[j]:
            options["effort"] = float(np.abs(m.jnt_actfrcrange[j]).max())
        if self.stiffness[j]:
            options["stiffness"], options["rest"] = float(self.stiffness[j]), float(m.qpos_spring[place])
        options["armature"], options["gear_ratio"] = float(self.armature[j]), float(self.gear_ratio[j])
        rest, axis, q0 = np.eye(4), m.jnt_axis[j], float(m.qpos0[place])
        if kind == types.mjJNT_SLIDE:
            rest[:3, 3] = -q0 * axis
            return Joint.prismatic(axis, **options), rest
        rest[:3, :3] = so3.exp(-q0 * axis)
        rest[:3, 3] = point - rest[:3, :3] @ point
        return Joint.revolute(axis, point, **options), rest

    def frames(self):
        m, frames = self.m, []
        sites, taken = [m.site(k).name for k in range(m.nsite)], {WORLD, *(body.name for body in self.bodies)}
        for k, name in enumerate(sites):
            if name:
                on = int(m.site_bodyid[k])
                called = unique_name(f"{name}_site", {*taken, *sites}) if name in taken else name
                T = self.transform(m.site_pos[k], m.site_quat[k])
                frames.append((called, self.names[on] if on else WORLD, T))
        return frames
