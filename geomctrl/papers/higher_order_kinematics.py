"""Higher-order kinematics: time derivatives of twists and Jacobians, and partial derivatives, of any order.

In inertial axes about a fixed point, a screw S fixed to body i changes as S' = ad_{V_i} S, and V_i = V_p + S v
(Mueller 2018 (16), (68)). Let x_k be the k-th time derivative over k!. Products are then convolutions, and

    (k + 1) S_{k+1} = sum_j ad_{V_j} S_{k-j},      V_k = V_p,k + sum_j S_j v_{k-j}

gives acceleration, jerk and higher derivatives in the spatial representation, (17), (21), (22). The other
representations follow from it by their definitions, for twists and for columns of a Jacobian:

    body    d^k/dt^k (Ad_T^-1 X) = Ad_T^-1 D^k X,   D X = X' - ad_V X                  (6), (8), (13), (117)
    hybrid  (w, v + w x r), with r' = v + w x r of the frame itself                    (27)-(32)
    mixed   angular part of the first, linear part of the second                       (33)

The fixed point is the frame's current position, so that robots far from the world's origin lose no digits. The
functions take leading batch axes and support trees and joints with several degrees of freedom. Equation numbers are
Mueller's and identify the quantities. The printed sums of (13), (21), (26)-(28), (31), (32) and, for jerks and
Jacobians, (33) have misprints; the convolutions do not use them.

Examples
--------
>>> import numpy as np
>>> import geomctrl as gc
>>> from geomctrl.papers import higher_order_kinematics as kinematics
>>> robot, q = gc.models.two_link(), np.array([0.3, -0.5])
>>> v, a, a_rate = np.array([[1.0, 2.0], [0.5, -1.0], [0.2, 0.1]])
>>> rates = kinematics.twist_derivatives(robot, q, [v, a, a_rate], "tip")  # twist, acceleration, jerk
>>> bool(np.allclose(rates[2], kinematics.jerk(robot, q, v, a, a_rate, "tip")))
True
>>> J = kinematics.jacobian_derivatives(robot, q, [v], "tip")
>>> bool(np.allclose(J[1], robot.jacobian_rate(q, v, "tip")))
True
>>> partial = kinematics.jacobian_partial_derivatives(robot, q, "tip", 1)
>>> bool(np.allclose(partial @ v, J[1]))
True
>>> from geomctrl.papers.factored import body_accelerations, body_twists
>>> V, A = body_twists(robot, q, v), body_accelerations(robot, q, v, a)
>>> motion: kinematics.JointMotion = kinematics.joint_motion_of_bodies(robot, q, V, A)
>>> bool(np.allclose(motion.v, v)), bool(np.allclose(kinematics.joint_accelerations_of_bodies(robot, q, V, A), a))
(True, True)
"""

from __future__ import annotations

from itertools import combinations
from math import comb, factorial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, count
from geomctrl.errors import ArgumentError
from geomctrl.lie import se3
from geomctrl.mechanism.mechanism import Mechanism, require_free_joints, require_robot
from geomctrl.mechanism.states import as_batch
from geomctrl.terms.kinematics import Representation, jacobian, poses, representation_number

from .blocks import mul

__all__ = [
    "JointMotion",
    "jacobian_derivatives",
    "jacobian_partial_derivatives",
    "jerk",
    "joint_accelerations_of_bodies",
    "joint_motion_of_bodies",
    "twist_derivatives",
]

CROSS = np.cross(np.eye(3)[:, None], np.eye(3)).transpose(2, 0, 1)  # (a x b)_x = CROSS_xyz a_y b_z
SLOTS = "klmnopqrstuv"  # letters of einsum for the derivatives; more axes would not fit into memory


class JointMotion(NamedTuple):
    """Velocities and accelerations of the joints.

    Attributes
    ----------
    v, a : ndarray, shape (..., nv)
        Velocities [rad/s, m/s] and accelerations [rad/s^2, m/s^2].
    """

    v: np.ndarray
    a: np.ndarray


def jacobian_derivatives(
    robot: Mechanism, q: ArrayLike, rates: ArrayLike, frame: str, representation: Representation = "body"
) -> np.ndarray:
    """Return the frame's Jacobian and its first K time derivatives along a motion: (8), (16), (27), (30).

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    rates : array_like, shape (..., K, nv)
        Velocity, acceleration, jerk, ... of the joints at q; K >= 1.
    frame : str
        Name of a body, a merged link or an added frame.
    representation : {"body", "spatial", "hybrid", "mixed"}
        Representation of the result. Default: "body".

    Returns
    -------
    ndarray, shape (..., K + 1, 6, nv)
        Entry k is the k-th time derivative.
    """
    q, rates, lead = _motion(robot, q, rates)
    K = rates.shape[1]
    series = _jacobian_series(robot, q, rates, frame, representation)
    return (series * _factorials(K + 1)[:, None, None]).reshape(*lead, K + 1, 6, robot.nv)


def twist_derivatives(
    robot: Mechanism, q: ArrayLike, rates: ArrayLike, frame: str, representation: Representation = "body"
) -> np.ndarray:
    """Return the frame's twist, acceleration, jerk and so on in one representation.

    Each is the time derivative of the components of the one before: body (6), (13), spatial (17), (21), hybrid (28),
    (31), mixed (33). The cost is O(K^2 depth).

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    rates : array_like, shape (..., K, nv)
        Velocity, acceleration, jerk, ... of the joints at q; K >= 1.
    frame : str
        Name of a body, a merged link or an added frame.
    representation : {"body", "spatial", "hybrid", "mixed"}
        Representation of the result. Default: "body".

    Returns
    -------
    ndarray, shape (..., K, 6)
        Entry k is the k-th time derivative of the twist.
    """
    q, rates, lead = _motion(robot, q, rates)
    K = rates.shape[1]
    Jac = _jacobian_series(robot, q, rates[:, : K - 1], frame, representation) * _factorials(K)[:, None, None]
    out = np.zeros((len(q), K, 6))
    for k in range(K):
        for j in range(k + 1):
            out[:, k] += comb(k, j) * (Jac[:, j] @ rates[:, k - j, :, None])[..., 0]  # Leibniz on V = Jac v
    return out.reshape(*lead, K, 6)


def jerk(
    robot: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    a_rate: ArrayLike,
    frame: str,
    representation: Representation = "body",
) -> np.ndarray:
    """Return the frame's jerk, the second time derivative of its twist: (13), (21), (22), (31), (32), (33).

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    v, a, a_rate : array_like, shape (..., nv)
        Velocity, acceleration and jerk of the joints [rad/s, rad/s^2, rad/s^3, or with m].
    frame : str
        Name of a body, a merged link or an added frame.
    representation : {"body", "spatial", "hybrid", "mixed"}
        Representation of the result. Default: "body".

    Returns
    -------
    ndarray, shape (..., 6)
    """
    require_robot("robot", robot)
    lead, (q, v, a, a_rate) = as_batch(robot, q=q, v=v, a=a, a_rate=a_rate)
    return twist_derivatives(robot, q, np.stack((v, a, a_rate), 1), frame, representation)[:, 2].reshape(*lead, 6)


def _jacobian_series(robot: Mechanism, q: np.ndarray, rates: np.ndarray, frame: str, representation: str) -> np.ndarray:
    """Return the power series of the Jacobian in t, (batch, K + 1, 6, nv)."""
    if robot.couplings:
        A, x = robot.coupling.matrix, robot.coupling.tree_configuration(q)
        return _jacobian_series(robot.coupling.tree, x, rates @ A.T, frame, representation) @ A
    representation_number(representation)
    T = poses(robot, q, frame)
    S, V = _spatial_series(robot, q, rates, frame, T[:, :3, 3])
    if representation == "spatial":
        shift = np.tile(np.eye(4), (len(q), 1, 1))
        shift[:, :3, 3] = T[:, :3, 3]
        return se3.Ad_of(shift)[:, None] @ S
    body = _body_series(S, V, T) if representation in ("body", "mixed") else S
    if representation == "body":
        return body
    hybrid = _hybrid_series(S, V)
    return hybrid if representation == "hybrid" else np.concatenate((body[:, :, :3], hybrid[:, :, 3:]), 2)


def _spatial_series(robot: Mechanism, q: np.ndarray, rates: np.ndarray, frame: str, origin: np.ndarray):
    """Return screws (batch, K + 1, 6, nv) and twist (batch, K, 6) in inertial axes about `origin`, as power series."""
    K = rates.shape[1]
    v = rates / _factorials(K)[:, None]
    S, V = np.zeros((len(q), K + 1, 6, robot.nv)), np.zeros((len(q), K, 6))
    for i in path_to(robot, frame):
        T = poses(robot, q, robot.body_names[i])
        T[:, :3, 3] -= origin
        s = robot.v_slices[i]
        S[:, 0, :, s] = se3.Ad_of(T) @ robot.joints[i].S  # (70b)
        for k in range(K):
            for j in range(k + 1):
                V[:, k] += (S[:, j, :, s] @ v[:, k - j, s, None])[..., 0]  # (68)
            for j in range(k + 1):
                S[:, k + 1, :, s] += se3.ad(V[:, j]) @ S[:, k - j, :, s] / (k + 1)  # (16)
    return S, V


def _body_series(S: np.ndarray, V: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Return the series of Ad_T^-1 S, with T at the origin: its k-th derivative is Ad_T^-1 D^k S."""
    rotation = np.array(T)
    rotation[:, :3, 3] = 0.0
    turn, out, X = se3.Ad_of(se3.inverse_of(rotation)), np.empty_like(S), S
    for k in range(S.shape[1]):
        out[:, k] = turn @ X[:, 0] / factorial(k)
        Y = np.empty_like(X[:, 1:])
        for n in range(Y.shape[1]):
            Y[:, n] = (n + 1) * X[:, n + 1] - sum(se3.ad(V[:, n - j]) @ X[:, j] for j in range(n + 1))
        X = Y
    return out


def _hybrid_series(S: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Return (w, v + w x r) of each column, with r the frame's displacement from its current position."""
    K = V.shape[1]
    r = np.zeros((len(V), K + 1, 3))
    for k in range(K):
        r[:, k + 1] = (V[:, k, 3:] + sum(np.cross(V[:, j, :3], r[:, k - j]) for j in range(k + 1))) / (k + 1)
    out = S.copy()
    for k in range(K + 1):
        for j in range(k):
            out[:, k, 3:] += np.cross(S[:, j, :3], r[:, k - j, :, None], axis=1)
    return out


def path_to(robot: Mechanism, frame: str) -> list[int]:
    """Return the bodies from the root to the body of the named frame."""
    path, i = [], robot.frame(frame).body
    while i >= 0:
        path.append(i)
        i = robot.parents[i]
    return path[::-1]


def _motion(robot: Mechanism, q: ArrayLike, rates: ArrayLike):
    require_robot("robot", robot)
    x = checked("rates", rates, (robot.nv,))
    if x.ndim < 2 or x.shape[-2] == 0:
        raise ArgumentError(f"rates: expected shape (..., K, {robot.nv}) with K >= 1, got {x.shape}")
    lead, (q,) = as_batch(robot, q=q)
    if x.shape[:-2] != lead:
        raise ArgumentError(f"rates: expected the leading axes of q, {lead}, got {x.shape[:-2]} (nothing is broadcast)")
    return q, x.reshape(len(q), *x.shape[-2:]), lead


def _factorials(n: int) -> np.ndarray:
    return np.array([float(factorial(k)) for k in range(n)])


def jacobian_partial_derivatives(
    robot: Mechanism, q: ArrayLike, frame: str, order: int, representation: Representation = "body"
) -> np.ndarray:
    """Return all partial derivatives of one order of the frame's Jacobian.

    Entry [:, j, k1, ..., kn] is column j differentiated with respect to coordinate k1, then k2, and so on. Let (w, v)
    be the parts of a column. If both joints are on the path to the frame, the first derivatives are

        body     [J_j, J_k] for k in the subtree of j                                                  (5), (14)
        spatial  [J_k, J_j] for k an ancestor of j                                                     (15), (23)
        hybrid   [J_j, (0, v_k)] for k in the subtree of j, j itself included, else [(w_k, 0), J_j]    (24), (25)
        mixed    angular part of the body-fixed, linear part of the hybrid ones                        (33)

    Each further order adds a bracket, with the derivatives nearest to j first; for the hybrid ones it adds a sum of
    brackets. For a joint with several degrees of freedom, derivatives are along q exp(S_k d) and do not commute.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    frame : str
        Name of a body, a merged link or an added frame.
    order : int
        Order of the derivatives, 0 to 12.
    representation : {"body", "spatial", "hybrid", "mixed"}
        Representation of the result. Default: "body".

    Returns
    -------
    ndarray, shape (..., 6, nv, nv, ..., nv)
        The Jacobian's axes are followed by `order` axes for the derivatives.
    """
    require_robot("robot", robot)
    representation_number(representation)
    order = count("order", order, 0, len(SLOTS), expected=f"a number of derivatives, 0 to {len(SLOTS)}")
    lead, (q,) = as_batch(robot, q=q)
    if robot.couplings:
        out = jacobian_partial_derivatives(
            robot.coupling.tree, robot.coupling.tree_configuration(q), frame, order, representation
        )
        for axis in range(2, out.ndim):
            out = np.moveaxis(np.tensordot(out, robot.coupling.matrix, (axis, 0)), -1, axis)
        return out.reshape(*lead, 6, *(robot.nv,) * (order + 1))
    joint = np.repeat(np.arange(robot.nbodies), [j.dof for j in robot.joints])
    if representation in ("body", "spatial"):
        out = _bracket_chains(jacobian(robot, q, frame, representation), joint, order, representation == "body")
    else:
        out = _hybrid_partial_derivatives(jacobian(robot, q, frame, "hybrid"), joint, order)
    if representation == "mixed":
        out[:, :3] = _bracket_chains(jacobian(robot, q, frame, "body"), joint, order, True)[:, :3]
    return out.reshape(*lead, 6, *(robot.nv,) * (order + 1))


def _bracket_chains(Jac: np.ndarray, joint: np.ndarray, order: int, body: bool) -> np.ndarray:
    """Return derivatives of a body-fixed or spatial Jacobian about any fixed point, (batch, 6, n, n, ..., n)."""
    n = len(joint)
    ad_J = se3.ad(Jac.swapaxes(1, 2))  # (batch, nv, 6, 6)
    # after[j, k]: a bracket with J_k may follow one with J_j
    after = joint[:, None] <= joint if body else joint[:, None] >= joint
    first = joint[:, None] < joint if body else after
    out = Jac.copy()
    for step in range(order):
        sign = -1.0 if body else 1.0  # [X, J_k] = -ad_{J_k} X
        chain = np.einsum("bkxy,by...->bx...k", sign * ad_J, out)
        allowed = first if step == 0 else after
        out = chain * (allowed if step == 0 else np.broadcast_to(allowed, (n,) * (step + 2)))
    return _in_any_order(out, joint, order, body) if order > 1 else out


def _hybrid_partial_derivatives(Jac: np.ndarray, joint: np.ndarray, order: int) -> np.ndarray:
    """Return the derivatives of (w, v + w x r) by the product rule.

    (w, v) is spatial and r the frame's displacement from its current position, so r = 0 and dr/dq_k = v_k.
    """
    spatial = [_bracket_chains(Jac, joint, m, False) for m in range(order + 1)]
    hybrid: list[np.ndarray] = []
    for m in range(order + 1):
        out, slots = spatial[m].copy(), SLOTS[:m]
        for of_r in range(1, m + 1):
            for theirs in combinations(slots, of_r):  # the derivatives applied to r, in their order
                others = "".join(k for k in slots if k not in theirs)
                subscripts = f"xyz,ayj{others},az{''.join(theirs)}->axj{slots}"
                out[:, 3:] += np.einsum(subscripts, CROSS, spatial[m - of_r][:, :3], hybrid[of_r - 1][:, 3:])
        hybrid.append(out)
    return hybrid[order]


def _in_any_order(chain: np.ndarray, joint: np.ndarray, order: int, body: bool) -> np.ndarray:
    """Fill in the entries of all index sequences from those in the order of the brackets.

    Joints nearest to column j come first. Within a joint, the body representation has the last derivative first,
    because the inverse of a pose is differentiated; the spatial one keeps the order.
    """
    n = len(joint)
    k = np.stack(np.meshgrid(*[np.arange(n)] * order, indexing="ij"), -1)  # (n, ..., n, order)
    taken = np.arange(order)
    key = joint[k] * order + (order - 1 - taken) if body else -joint[k] * order + taken
    sequence = np.take_along_axis(k, np.argsort(key, axis=-1), -1)
    index = tuple(sequence[..., s] for s in range(order))
    return chain[(slice(None), slice(None), slice(None), *index)]


def joint_motion_of_bodies(robot: Mechanism, q: ArrayLike, V: ArrayLike, A: ArrayLike) -> JointMotion:
    """Return joint velocities and accelerations from the bodies' twists and their rates: (11), joint by joint.

    v_i = S_i^+ (V_i - X V_p) and a_i = S_i^+ (A_i - X A_p + ad_{S_i v_i} V_i). If V and A are not a motion of the
    robot, the result is the least-squares solution of each joint.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    V, A : array_like, shape (..., nbodies, 6)
        Body-fixed twists of the bodies [rad/s, m/s] and their rates [rad/s^2, m/s^2].

    Returns
    -------
    JointMotion
    """
    require_robot("robot", robot)
    lead, (V, A), parents = _motion_of_bodies(robot, q, V, A)
    v, a = np.zeros((len(V), robot.nv)), np.zeros((len(V), robot.nv))
    for i, (joint, s, (XV, XA)) in enumerate(zip(robot.joints, robot.v_slices, parents)):
        back = np.linalg.pinv(joint.S).T
        v[:, s] = (V[:, i] - XV) @ back
        a[:, s] = (A[:, i] - XA + mul(se3.ad(v[:, s] @ joint.S.T), V[:, i])) @ back  # (11)
    return JointMotion(v.reshape(*lead, robot.nv), a.reshape(*lead, robot.nv))


def joint_accelerations_of_bodies(robot: Mechanism, q: ArrayLike, V: ArrayLike, A: ArrayLike) -> np.ndarray:
    """Return joint accelerations from the bodies' twists and their rates, without joint velocities: (65b) solved.

    a_i = S_i^+ (A_i - X A_p + [V_i, X V_p]), Remark 3 corrected: its first term is the acceleration.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    V, A : array_like, shape (..., nbodies, 6)
        Body-fixed twists of the bodies [rad/s, m/s] and their rates [rad/s^2, m/s^2].

    Returns
    -------
    ndarray, shape (..., nv)
    """
    require_robot("robot", robot)
    lead, (V, A), parents = _motion_of_bodies(robot, q, V, A)
    a = np.zeros((len(V), robot.nv))
    for i, (joint, s, (XV, XA)) in enumerate(zip(robot.joints, robot.v_slices, parents)):
        a[:, s] = (A[:, i] - XA + mul(se3.ad(V[:, i]), XV)) @ np.linalg.pinv(joint.S).T
    return a.reshape(*lead, robot.nv)


def _motion_of_bodies(
    robot: Mechanism, q: ArrayLike, V: ArrayLike, A: ArrayLike
) -> tuple[tuple[int, ...], list[np.ndarray], list[list[np.ndarray]]]:
    """Return the leading axes, V and A with one leading axis, and X V_p and X A_p of each body's parent p."""
    require_free_joints("the motion of joints from that of bodies", robot)
    lead, (q,) = as_batch(robot, q=q)
    shape, flat = (*lead, robot.nbodies, 6), []
    for name, x in (("V", V), ("A", A)):
        x = checked(name, x, shape[-2:])
        if x.shape != shape:
            raise ArgumentError(f"{name}: expected shape {shape}, got {x.shape} (nothing is broadcast)")
        flat.append(x.reshape(len(q), *shape[-2:]))
    T = [poses(robot, q, name) for name in robot.body_names]
    parents = []
    for i, p in enumerate(robot.parents):
        X = se3.Ad_of(se3.inverse_of(T[i]) @ T[p]) if p >= 0 else np.zeros((6, 6))
        parents.append([mul(X, x[:, max(p, 0)]) for x in flat])
    return lead, flat, parents
