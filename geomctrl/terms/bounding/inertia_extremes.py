"""Bounds of the mass matrix's eigenvalues at every configuration, certified by linear matrix inequalities.

Let x be the joint velocities. Twice the kinetic energy minus t |x|^2 is a sum over joints. Let X_k, a quadratic form in
the parent's twist Z in the frame of joint k on the parent, be a lower bound of the part of the subtree of body k, for
all velocities of its joints. With Q_k = J_k + sum of the children's X_c in the frame of body k, this requires

    Q_k(Z + S_k x_k) - t |x_k|^2 >= X_k(Z)      for all twists Z of the parent and all x_k,

and Q_k(S_k x_k) >= t |x_k|^2 for a joint on the world. If X_k is invariant under the joint's motions, X ad_S + ad_S^T X
= 0, the inequality holds at every q if it holds at one. The sum over all joints is then M(q) >= t. The inequalities are
linear in t and all X_k, so the largest t is the solution of a semidefinite program with one inequality of size 6 + dof
per joint. (This is the elimination of articulated bodies, made independent of q.) With all signs reversed the result is
M(q) <= t. For this bound a sliding joint has no useful invariant forms. There Q_k >= 0, so it is sufficient that the
inequality holds at both ends of the range, with any form X_k, invariant under rotation about the axis of a helical
joint.

For inertial parameters in intervals pi_p +- d_p, J_k = sum_p pi_p E_p is between J_nominal -+ sum_p d_p W_p for any
W_p >= +-E_p. If E_p >= 0 (mass, moments of inertia), W_p = E_p. The other E_p couple two projections P and P' of a
twist; there W_p = a P + b P' with a b >= 1, and a and b are variables of the program.

The solution is verified: t is corrected by the smallest eigenvalues of the inequalities at the t and X_k of the solver,
times bounds of the sizes of twists. Errors of the solver therefore weaken the bound but do not invalidate it.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from geomctrl.lie import se3
from geomctrl.mechanism import inertia
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.terms.bounding.quantities import Bodies

from .reach import Reach

ROUNDING = 1e-13  # largest error of computed eigenvalues and entries of a small matrix, relative to its size


class JointInequality(NamedTuple):
    """The data of a joint in the inequalities.

    S: screws. move: map of the parent's twists to the body, in the middle of its sliding range. ends: further maps to
    the ends of this range. forms: basis of X_k. size: bound of |Z|^2 + |x_k|^2 for |x| = 1. armature: the motor's
    inertia in units of the mass matrix, with the sign of the inequality. weights: of the joint's rates in |x|^2.
    """

    S: np.ndarray
    move: np.ndarray
    ends: list[np.ndarray]
    forms: list[np.ndarray]
    size: float
    armature: float
    weights: np.ndarray


def least(robot: Mechanism, bodies: Bodies, reach: Reach, largest: float) -> float:
    """Return t with M(q) >= t. largest: an upper bound of M, used as unit.

    t is zero if no better bound is found, for example for point masses. It can be negative for uncertain parameters.
    """
    t = -sum(_certified(robot, bodies, reach, largest, -1.0, np.ones(robot.nv)))
    return max(t, 0.0) if bodies.certain else t


def inverse_diagonal(robot: Mechanism, bodies: Bodies, reach: Reach, largest: float) -> np.ndarray:
    """Return upper bounds (nv,) of the diagonal of M(q)^-1, infinite where none is found; arguments as for `least`.

    M >= m and M >= t u u^T - d with a unit vector u imply M (1 + d / m) >= t u u^T, so u . M^-1 u <= (1 + d / m) / t.
    """
    m, out = least(robot, bodies, reach, largest), np.full(robot.nv, np.inf)
    for i, u in enumerate(np.eye(robot.nv) if m > 0.0 else ()):
        t, d = _certified(robot, bodies, reach, largest, -1.0, u)
        if t < 0.0:
            out[i] = (1.0 + d / m) / -t * (1.0 + 1e-12)
    return out


def greatest(robot: Mechanism, bodies: Bodies, reach: Reach, largest: float) -> float:
    """Return t with M(q) <= t; arguments as for `least`."""
    return sum(_certified(robot, bodies, reach, largest, 1.0, np.ones(robot.nv)))


def _certified(
    robot: Mechanism, bodies: Bodies, reach: Reach, largest: float, sign: float, weights: np.ndarray
) -> tuple[float, float]:
    """Return (t, d) with sign x . M(q) x <= t sum_i weights_i x_i^2 + d |x|^2, d >= 0."""
    length = max(float(reach.speeds.max(initial=0.0)), 1e-6)
    scale = np.diag([1.0, 1.0, 1.0, *[length] * 3])  # twists in units of `length`
    uncertain = [_uncertain(d, scale, largest) for d in bodies.deviation]
    certain = sign * scale @ inertia.spatial(bodies.nominal) @ scale / largest
    J = certain + np.array([block for block, _ in uncertain])
    joints = [_joint_inequality(robot, reach, i, length, sign, largest, weights) for i in range(robot.nbodies)]
    t, X, ratios = _solved(robot, J, [pairs for _, pairs in uncertain], joints)
    J = [j + _chosen(pairs, a, 1.0 / a) for j, (_, pairs), a in zip(J, uncertain, ratios)]
    return t * largest, _lacking(t, joints, _composites(robot, J, joints, X), X) * largest


def _uncertain(deviation: np.ndarray, scale: np.ndarray, largest: float):
    """Return (sum of d_p W_p for E_p >= 0, list of (P, P') with the factor d_p for the other parameters)."""
    certain, pairs = np.zeros((6, 6)), []
    for d, E in zip(deviation, inertia.spatial(np.eye(10))):
        if d == 0.0:
            continue
        E = d * scale @ E @ scale / largest
        if np.linalg.eigvalsh(E)[0] >= 0.0:
            certain += E
        else:  # all entries have the same size, and each row has at most one
            rows = np.flatnonzero(E.any(axis=1))
            half = [k for k in rows if k < 3 and (np.abs(E[k]).argmax() >= 3 or np.abs(E[k]).argmax() > k)]
            P = np.zeros((2, 6))
            P[0, half] = P[1, np.setdiff1d(rows, half)] = np.abs(E).max()
            pairs.append((np.diag(P[0]), np.diag(P[1])))
    return certain, pairs


def _chosen(pairs, a, b):
    return sum((x * P + y * other for x, y, (P, other) in zip(a, b, pairs)), np.zeros((6, 6)))


def _joint_inequality(
    robot: Mechanism, reach: Reach, i: int, length: float, sign: float, largest: float, weights: np.ndarray
) -> JointInequality:
    armature = sign * robot.joints[i].armature / largest
    scale, link, S = np.diag([1.0, 1.0, 1.0, *[length] * 3]), reach.links.get(i), robot.joints[i].S
    inside, own = np.linalg.inv(scale) @ S, np.diag(weights[robot.v_slices[i]])
    if link is None:
        return JointInequality(inside, np.eye(6), [], [], 1.0, armature, own)
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = link.R, link.p
    move = np.linalg.inv(scale) @ se3.Ad(np.linalg.inv(T)) @ scale
    size = 1.0 + _twist_size(robot, reach, robot.parents[i], link.p, length)
    if sign > 0.0 and link.slide.any():
        ends = []
        for d in (-link.slide, link.slide):
            T = np.eye(4)
            T[:3, 3] = -d
            ends.append(np.linalg.inv(scale) @ se3.Ad(T) @ scale)
        turning = np.concatenate((S[:3], np.cross(link.point, S[:3, 0])[:, None]))  # without its pitch
        forms = _invariant_forms(np.linalg.inv(scale) @ turning)
        return JointInequality(inside, move, ends, forms, size, armature, own)
    return JointInequality(inside, move, [np.eye(6)], _invariant_forms(inside), size, armature, own)


def _twist_size(robot: Mechanism, reach: Reach, body: int, point: np.ndarray, length: float) -> float:
    """Bound |w|^2 + |v|^2 / length^2 of the body's twist about the point, for |x| = 1."""
    masses, firsts = np.zeros(robot.nbodies), np.zeros((robot.nbodies, 3))
    masses[body], firsts[body] = 1.0, point
    path = reach.paths[body]
    speeds = np.array([reach.moment(k, masses, firsts) for k in path]) / length
    return float(speeds @ speeds + (reach.rates[path] ** 2).sum())


def _invariant_forms(S: np.ndarray) -> list[np.ndarray]:
    """Return a basis of the symmetric 6x6 matrices X with X ad_S + ad_S^T X = 0 for all columns of S."""
    forms = []
    for i in range(6):
        for j in range(i + 1):
            E = np.zeros((6, 6))
            E[i, j] = E[j, i] = 1.0
            forms.append(E)
    changes = np.array([np.concatenate([(E @ a + a.T @ E).ravel() for a in map(se3.ad, S.T)]) for E in forms]).T
    _, sizes, rows = np.linalg.svd(changes)
    return [_combined(forms, row) for row in rows[(sizes > 1e-10 * sizes[0]).sum() :]]


def _combined(forms: list[np.ndarray], coefficients) -> np.ndarray:
    return sum((c * E for c, E in zip(coefficients, forms)), np.zeros((6, 6)))


def _composites(robot: Mechanism, J, joints: list[JointInequality], X) -> list:
    """Return Q_k = J_k + sum of Ad^T X_c Ad over the children c, with the signs of `_certified`."""
    Q = list(J)
    for c, p in enumerate(robot.parents):
        if p >= 0:
            Q[p] = Q[p] + joints[c].move.T @ X[c] @ joints[c].move
    return Q


def _inequality(block, joint: JointInequality, Q, X, t, end: np.ndarray | None):
    """Return the matrix of t |x|^2 + X(Z) - Q(end Z + S x) - armature x^2, which must be positive.

    For a joint on the world there are no X, end and Z.
    """
    S = joint.S
    own = t * joint.weights - joint.armature * np.eye(S.shape[1]) - S.T @ Q @ S
    if end is None:
        return own
    across = -(end.T @ Q @ S)
    return block([[X - end.T @ Q @ end, across], [across.T, own]])


def _solved(
    robot: Mechanism, J, pairs, joints: list[JointInequality]
) -> tuple[float, list[np.ndarray | None], list[np.ndarray]]:
    """Return t, X_k and the factors a of uncertain parameters; t is infinite and X_k zero if the solver fails."""
    import cvxpy

    cp: Any = cvxpy
    t = cp.Variable()
    coefficients = [cp.Variable(len(x.forms)) if x.forms else None for x in joints]
    X = [None if c is None else sum(c[i] * E for i, E in enumerate(x.forms)) for c, x in zip(coefficients, joints)]
    factors: Any = [[cp.Variable(len(p)) if p else None for p in pairs] for _ in range(2)]
    a, b = factors
    constraints = [cp.bmat([[x[i], 1.0], [1.0, y[i]]]) >> 0 for x, y, p in zip(a, b, pairs) for i in range(len(p))]
    J = [j + _chosen(p, x, y) if p else j for j, p, x, y in zip(J, pairs, a, b)]
    for joint, Q, x in zip(joints, _composites(robot, J, joints, X), X):
        for end in joint.ends or [None]:
            F = _inequality(cp.bmat, joint, Q, x, t, end)
            constraints.append(0.5 * (F + F.T) >> 0)
        if len(joint.ends) > 1 and isinstance(Q, cp.Expression):  # without children Q is a constant inertia
            constraints.append(0.5 * (Q + Q.T) >> 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an inexact solution is verified like any other
        try:
            cp.Problem(cp.Minimize(t), constraints).solve(solver=cp.CLARABEL)
        except BaseException as error:  # a panic of the compiled solver is not derived from Exception
            if not (isinstance(error, Exception) or type(error).__name__ == "PanicException"):
                raise
    if t.value is None:
        return np.inf, [None if c is None else np.zeros((6, 6)) for c in coefficients], [np.ones(len(p)) for p in pairs]
    X = [None if c is None else _combined(x.forms, np.asarray(c.value)) for c, x in zip(coefficients, joints)]
    return float(t.value), X, [np.zeros(0) if x is None else np.maximum(x.value, 1e-12) for x in a]


def _lacking(t: float, joints: list[JointInequality], Q, X) -> float:
    """Return the violation of the inequalities, in |x|^2: an eigenvalue -d costs d (|Z|^2 + |x_k|^2)."""
    if not np.isfinite(t):
        return 0.0
    lacking = 0.0
    for joint, q, x in zip(joints, Q, X):
        rounding = ROUNDING * (np.linalg.norm(q) + (0.0 if x is None else np.linalg.norm(x)) + abs(t))
        worst = rounding
        for end in joint.ends or [None]:
            smallest = np.linalg.eigvalsh(_inequality(np.block, joint, q, x, t, end))[0]
            worst = max(worst, rounding * (1.0 if end is None else np.linalg.norm(end) ** 2) - smallest)
        if len(joint.ends) > 1:  # a violation of Q >= 0 adds an error between the ends of the range
            worst += max(0.0, rounding - np.linalg.eigvalsh(q)[0]) * np.linalg.norm(joint.ends[1] - np.eye(6)) ** 2
        lacking += worst * joint.size
    return float(lacking)
