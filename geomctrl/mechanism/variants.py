"""Copies of a robot with other inertial parameters, payload, armature or gravity; check of a positive mass matrix."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, flag, number, shown, vector
from geomctrl.errors import ArgumentError, InertiaError, ModelError
from geomctrl.kernels import composite_bodies
from geomctrl.kernels.couplings import fitting

from . import inertia as _inertia
from .configuration import neutral, random_configuration
from .mechanism import Mechanism, require_robot

R = TypeVar("R", bound=Mechanism)

TEST_CONFIGURATIONS = 30  # number of configurations at which M > 0 is tested if the bodies' inertias do not prove it


def with_parameters(robot: R, parameters: ArrayLike, *, physical: bool = True) -> R:
    """Return the same robot with other inertial parameters.

    Parameters
    ----------
    parameters : array_like, shape (nbodies, 10) or (10 nbodies,)
        Ten parameters for each body, see `geomctrl.mechanism.inertia`.
    physical : bool
        Reject parameters that no rigid body can have. Default True.

    Returns
    -------
    Robot

    Raises
    ------
    InertiaError
        If no rigid body can have the parameters and `physical` is True.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q = gc.models.two_link(), np.zeros(2)
    >>> heavier = robot.with_parameters(1.1 * robot.parameters)
    >>> bool(np.allclose(heavier.gravity_force(q), 1.1 * robot.gravity_force(q)))
    True
    """
    require_robot("robot", robot)
    flag("physical", physical)
    pi = np.array(checked("parameters", parameters, (), finite=False))
    if pi.shape not in ((robot.nbodies, 10), (10 * robot.nbodies,)):
        raise ArgumentError(f"parameters: expected shape ({robot.nbodies}, 10), got {pi.shape}")
    pi = pi.reshape(robot.nbodies, 10)
    if not np.isfinite(pi).all():
        raise ArgumentError(f"parameters: not finite in body {robot.body_names[np.argmin(np.isfinite(pi).all(1))]!r}")
    changed = robot._with_parameters(pi)
    if physical and not _inertia.is_physical(pi, strict=True).all():
        _inertia.check_all(pi, robot.body_names)
        check_positive_mass_matrix(changed)
    return changed


def with_payload(
    robot: R, mass: float, com: ArrayLike = (0, 0, 0), I_com: ArrayLike | None = None, frame: str | None = None
) -> R:
    """Return the same robot with a payload fixed to a frame.

    Parameters
    ----------
    mass : float
        Mass of the payload [kg].
    com : array_like, shape (3,)
        Its centre of mass in `frame` [m]. Default: the origin.
    I_com : array_like, shape (3, 3), optional
        Its inertia about the centre of mass in the axes of `frame` [kg m^2]. Default: a point mass.
    frame : str, optional
        The frame to which the payload is fixed. Default: the last body.

    Returns
    -------
    Robot

    Raises
    ------
    ArgumentError
        If a number is not finite or has the wrong shape.
    InertiaError
        If no rigid body can have this mass and inertia.
    NameNotFoundError
        If the robot has no frame of this name.

    Examples
    --------
    >>> import geomctrl as gc
    >>> robot = gc.models.panda().with_payload(1.5, com=(0, 0, 0.05), frame="panda_hand_tcp")
    """
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
    """Return the same robot with other reflected motor inertias. Gear ratios do not change.

    Parameters
    ----------
    armature : array_like, shape (nv,) or float
        Reflected inertia [kg m^2, kg]. One number applies to all joints with one degree of freedom; joints with several
        degrees of freedom have none.

    Returns
    -------
    Robot

    Raises
    ------
    ArgumentError
        If a value is negative, or not zero for a joint with several degrees of freedom.
    ModelError
        If the mass matrix is singular without the previous armature.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q = gc.models.two_link(), np.zeros(2)
    >>> M, M0 = (robot.with_armature(x).mass_matrix(q) for x in (0.1, 0.0))
    >>> bool(np.allclose(M, M0 + 0.1 * np.eye(2)))
    True
    """
    require_robot("robot", robot)
    requested = checked("armature", armature, ())
    if requested.shape not in ((), (robot.nv,)) or (requested < 0.0).any():
        raise ArgumentError(f"armature: expected a number >= 0 or {robot.nv} of them, got {shown(armature)}")
    single = np.array([j.dof == 1 for j in robot.coupling.independent_joints for _ in range(j.dof)])
    if requested.shape and requested[~single].any():
        name = robot.dof_names[np.flatnonzero(~single & (requested != 0.0))[0]]
        raise ArgumentError(f"armature: expected 0 at {name!r}, whose joint has several degrees of freedom")
    values = np.where(single, requested, 0.0)
    each = (values[s][:1].sum() for s in robot.v_slices)  # zero for joints that follow others: their slice is empty
    joints = (replace(j, armature=float(x)) for j, x in zip(robot.joints, each))
    changed = robot._with_joints(tuple(joints))
    if not _inertia.is_physical(robot.parameters, strict=True).all():
        check_positive_mass_matrix(changed)
    return changed


def with_gravity(robot: R, gravity: ArrayLike) -> R:
    """Return the same robot with another gravitational acceleration.

    Parameters
    ----------
    gravity : array_like, shape (3,)
        In world axes [m/s^2], for example (0, 0, -9.81).

    Returns
    -------
    Robot

    Raises
    ------
    ArgumentError
        If `gravity` does not consist of three finite numbers.

    Examples
    --------
    >>> import geomctrl as gc
    >>> float(abs(gc.models.two_link().with_gravity((0, 0, 0)).gravity_force([0.3, -0.5])).max())
    0.0
    """
    require_robot("robot", robot)
    return replace(robot, gravity=gravity)


def positive_bodies(robot: Mechanism) -> bool:
    """Return whether the bodies' 6x6 inertias prove M(q) > 0 for all q: J_i >= 0 and S_i^T J_i S_i + armature > 0.

    In any motion some body moves while its parent rests. Its energy 1/2 v_i^T S_i^T J_i S_i v_i is positive and that of
    the others is not negative. Positive moments that violate the triangle inequality pass, because J > 0 is weaker.
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
    """Raise ModelError unless M(q) > 0.

    If `positive_bodies` proves it for all q, only the neutral configuration is tested, because the numbers may be too
    far apart for double precision. Otherwise `TEST_CONFIGURATIONS` configurations are tested: the neutral one and
    random ones within the limits. Massless bodies are allowed as long as every motion moves some mass.
    """
    rng, more = np.random.default_rng(0), 0 if positive_bodies(robot) else TEST_CONFIGURATIONS - 1
    for q in [neutral(robot), *(random_configuration(robot, rng) for _ in range(more))]:
        M = np.zeros((robot.nv, robot.nv))
        fitting(composite_bodies.mass_matrix, robot._model).entry("one", robot._model)(robot._model, q, M)
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
