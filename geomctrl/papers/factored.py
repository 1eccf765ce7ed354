"""The equations of motion as products of block matrices, in the form of Ploen 1999 section 3.

    M = S^T G^T J G S + B,   C = S^T G^T (J G ad_Sv Gamma + C_bar) G S,   g = S^T G^T J G P0 Vdot_0

S holds the joints' bases, Gamma maps the parents' twists to their children, G = (1 - Gamma)^-1, and C_bar is skew.
B = diag(armature) is the inertia of the joints' motors, which Ploen's robots do not have. The form holds for trees and
for joints with several degrees of freedom: S_i is 6 x d, and Gamma has a block at (body, its parent).

The recursions are tested against this module, which is slow. It computes the joints' transforms from
`robot.placements` and the screws and shares no code with the kernels. Complex q and v are allowed, so that derivatives
can be computed by the complex step. All functions take any leading batch axes. Equation numbers are Ploen's.

The base may move: `base_twist` V_0 and `base_acceleration` Vdot_0 (..., 6) are its body-fixed twist and that twist's
rate, at the instant in which its frame coincides with the world's. (13), (19) and (20) then read

    V = G S v + G P0 V_0,    Vdot = G S a + G ad_Sv Gamma V + G ad_Sv P0 V_0 + G P0 Vdot_0

Examples
--------
>>> import numpy as np
>>> import geomctrl as gc
>>> from geomctrl.papers import factored
>>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 2.0])
>>> f: factored.Factors = factored.factors(robot, q, v)
>>> M, g = factored.mass_matrix(robot, q), factored.gravity_force(robot, q)
>>> bool(np.allclose(f.S.T @ f.G.T @ f.J @ f.G @ f.S, M)), bool(np.allclose(M, robot.mass_matrix(q)))
(True, True)
>>> N = factored.mass_matrix_rate(robot, q, v) - 2.0 * factored.coriolis_matrix(robot, q, v)
>>> bool(np.allclose(N, -N.T)), bool(np.allclose(factored.inverse_dynamics(robot, q, 0 * v, 0 * v), g))
(True, True)
>>> factored.body_twists(robot, q, v).shape, factored.body_accelerations(robot, q, v, 0 * v).shape
((2, 6), (2, 6))
>>> bool(np.isclose(factored.potential_energy(robot, q), robot.potential_energy(q)))
True
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, choice
from geomctrl.errors import ArgumentError
from geomctrl.mechanism import inertia
from geomctrl.mechanism.mechanism import Mechanism, require_free_joints
from geomctrl.mechanism.states import as_batch

from .blocks import Ad_inverse, ad, blocks, hat, mul, transpose

__all__ = [
    "Factors",
    "body_accelerations",
    "body_twists",
    "coriolis_matrix",
    "factors",
    "gravity_force",
    "inverse_dynamics",
    "mass_matrix",
    "mass_matrix_rate",
    "potential_energy",
]

Form = Literal["ploen", "christoffel", "adjoint", "plain"]
FORMS = ("ploen", "christoffel", "adjoint", "plain")


class Factors(NamedTuple):
    """Block matrices of a robot with n bodies at one state (Ploen 1999 section 3.2); G S stacks the body Jacobians.

    Attributes
    ----------
    S : ndarray, shape (6n, nv)
        diag(S_i), the joints' bases. Constant.
    G : ndarray, shape (..., 6n, 6n)
        (1 - Gamma)^-1. Block (i, j) maps a twist of body j to its descendant i.
    Gamma : ndarray, shape (..., 6n, 6n)
        Ad_{f_i^-1} at block (i, parent of i).
    J : ndarray, shape (6n, 6n)
        diag(J_i), the bodies' spatial inertias [kg m^2, kg m, kg]. Constant.
    ad_Sv : ndarray, shape (..., 6n, 6n)
        diag(-ad_{S_i v_i}), with Ploen's sign.
    ad_V_dual : ndarray, shape (..., 6n, 6n)
        diag(-ad_{V_i}^T).
    P0 : ndarray, shape (..., 6n, 6)
        Ad_{f_i^-1} for the bodies whose parent is the world, zero for the others.
    V : ndarray, shape (..., 6n)
        Body-fixed twists of the bodies [rad/s, m/s].
    C_bar : ndarray, shape (..., 6n, 6n)
        diag(C_bar_i), skew unless form="plain".
    """

    S: np.ndarray
    G: np.ndarray
    Gamma: np.ndarray
    J: np.ndarray
    ad_Sv: np.ndarray
    ad_V_dual: np.ndarray
    P0: np.ndarray
    V: np.ndarray
    C_bar: np.ndarray


def factors(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, form: Form = "ploen", base_twist: ArrayLike | None = None
) -> Factors:
    """Return all factors of M, C and g at a state.

    `form` chooses C_bar_i: "ploen" (Proposition 1), "christoffel", "adjoint" (J ad_V - ad_V^T J), or "plain", the
    -ad_V^T J of (25). With "plain", C v is right but Mdot - 2C is not skew.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s].
    form : {"ploen", "christoffel", "adjoint", "plain"}
        Form of C. Default: "ploen".
    base_twist : array_like, shape (..., 6), optional
        Twist of the base in its own axes. Default: at rest.

    Returns
    -------
    Factors
        Named tuple of the block matrices.
    """
    q, v = states(robot, q=q, v=v)
    choice("form", form, FORMS)
    V_0 = _of_base("base_twist", base_twist, q)
    n, lead, dtype = robot.nbodies, q.shape[:-1], np.result_type(q, v, V_0, float)
    block = [slice(6 * i, 6 * i + 6) for i in range(n)]
    S, J = np.zeros((6 * n, robot.nv)), np.zeros((6 * n, 6 * n))
    Gamma, G, ad_Sv, ad_V_dual, C_bar = (np.zeros((*lead, 6 * n, 6 * n), dtype) for _ in range(5))
    P0, V = np.zeros((*lead, 6 * n, 6), dtype), np.zeros((*lead, 6 * n), dtype)
    for i, (parent, joint, M) in enumerate(zip(robot.parents, robot.joints, robot.placements)):
        b, square = block[i], (..., block[i], block[i])
        X = Ad_inverse(M @ joint_motion(joint.S, q[..., robot.q_slices[i]]))  # (14)
        Sv = v[..., robot.v_slices[i]] @ joint.S.T
        S[b, robot.v_slices[i]] = joint.S
        J[square] = inertia.spatial(robot.parameters[i])  # (12)
        if parent < 0:
            P0[..., b, :] = X
            V[..., b] = mul(X, V_0) + Sv
        else:
            Gamma[..., b, block[parent]] = X
            G[..., b, :] = X @ G[..., block[parent], :]
            V[..., b] = mul(X, V[..., block[parent]]) + Sv  # (15)
        G[square] += np.eye(6)
        ad_Sv[square] = -ad(Sv)
        ad_V_dual[square] = -transpose(ad(V[..., b]))  # (7)
        C_bar[square] = body_coriolis(J[square], V[..., b], form)
    return Factors(S, G, Gamma, J, ad_Sv, ad_V_dual, P0, V, C_bar)


def mass_matrix(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Return the mass matrix M(q): (36).

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].

    Returns
    -------
    ndarray, shape (..., nv, nv)
    """
    f = at_rest(robot, q)
    return f.S.T @ transpose(f.G) @ f.J @ f.G @ f.S + np.diag(robot.armature)  # (36)


def mass_matrix_rate(robot: Mechanism, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Return the time derivative of the mass matrix along the motion: (28).

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s].

    Returns
    -------
    ndarray, shape (..., nv, nv)
    """
    f = factors(robot, q, v)
    G_rate = f.G @ f.ad_Sv @ f.Gamma @ f.G  # (27)
    half = f.S.T @ transpose(f.G) @ f.J @ G_rate @ f.S
    return transpose(half) + half  # (28)


def coriolis_matrix(robot: Mechanism, q: ArrayLike, v: ArrayLike, form: Form = "ploen") -> np.ndarray:
    """Return the Coriolis matrix C(q, v): (37). With form="plain" it is that of (25), for which Mdot - 2C is not skew.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s].
    form : {"ploen", "christoffel", "adjoint", "plain"}
        Form of C. Default: "ploen".

    Returns
    -------
    ndarray, shape (..., nv, nv)
    """
    f = factors(robot, q, v, form)
    return f.S.T @ transpose(f.G) @ (f.J @ f.G @ f.ad_Sv @ f.Gamma + f.C_bar) @ f.G @ f.S  # (37)


def gravity_force(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Return the gravity force g(q): (38).

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].

    Returns
    -------
    ndarray, shape (..., nv)
    """
    f = at_rest(robot, q)
    return mul(f.S.T @ transpose(f.G) @ f.J @ f.G @ f.P0, _base_acceleration(robot))  # (38)


def potential_energy(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Return the gravitational energy, minus the sum of g . (R_i h_i + m_i p_i) over bodies at poses (R_i, p_i).

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].

    Returns
    -------
    ndarray, shape (...,)
        Energy [J].
    """
    (q,) = states(robot, q=q)
    poses, energy = [], np.zeros(q.shape[:-1], np.result_type(q, float))
    for i, (parent, joint, M) in enumerate(zip(robot.parents, robot.joints, robot.placements)):
        T = M @ joint_motion(joint.S, q[..., robot.q_slices[i]])
        poses.append(poses[parent] @ T if parent >= 0 else T)
        energy = energy - mul(poses[i][..., :3, :], robot.parameters[i, [1, 2, 3, 0]]) @ robot.gravity
    return energy


def inverse_dynamics(
    robot: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    v_ref: ArrayLike | None = None,
    form: Form = "ploen",
    base_twist: ArrayLike | None = None,
    base_acceleration: ArrayLike | None = None,
) -> np.ndarray:
    """Return tau = M a + C v_ref + g, by the global form of the recursion: (19) to (22).

    If the base moves, the torques that its motion needs are added; the reference twist of the base is `base_twist`.
    Gravity is the robot's, in the axes of the base.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s].
    a : array_like, shape (..., nv)
        Acceleration [rad/s^2, m/s^2].
    v_ref : array_like, shape (..., nv), optional
        Reference velocity. Default: v.
    form : {"ploen", "christoffel", "adjoint", "plain"}
        Form of C. Default: "ploen".
    base_twist : array_like, shape (..., 6), optional
        Twist of the base in its own axes. Default: at rest.
    base_acceleration : array_like, shape (..., 6), optional
        Rate of `base_twist`. Default: at rest.

    Returns
    -------
    ndarray, shape (..., nv)
    """
    q, v, a, v_ref = states(robot, q=q, v=v, a=a, v_ref=v if v_ref is None else v_ref)
    f = factors(robot, q, v, form, base_twist)
    V_0, A_0 = _of_base("base_twist", base_twist, q), _of_base("base_acceleration", base_acceleration, q)
    V = _twists(f, v_ref, V_0)
    F = mul(f.J, _accelerations(f, a, V, V_0, A_0 + _base_acceleration(robot))) + mul(f.C_bar, V)  # (21)
    return mul(f.S.T @ transpose(f.G), F) + robot.armature * a  # (22)


def body_twists(robot: Mechanism, q: ArrayLike, v: ArrayLike, base_twist: ArrayLike | None = None) -> np.ndarray:
    """Return the body-fixed twists of the bodies: (19).

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s].
    base_twist : array_like, shape (..., 6), optional
        Twist of the base in its own axes. Default: at rest.

    Returns
    -------
    ndarray, shape (..., nbodies, 6)
    """
    q, v = states(robot, q=q, v=v)
    f, V_0 = factors(robot, q, v, base_twist=base_twist), _of_base("base_twist", base_twist, q)
    V = _twists(f, v, V_0)
    return V.reshape(*V.shape[:-1], robot.nbodies, 6)


def body_accelerations(
    robot: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    base_twist: ArrayLike | None = None,
    base_acceleration: ArrayLike | None = None,
) -> np.ndarray:
    """Return the rates of the bodies' twists, without gravity: (20).

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s].
    a : array_like, shape (..., nv)
        Acceleration [rad/s^2, m/s^2].
    base_twist : array_like, shape (..., 6), optional
        Twist of the base in its own axes. Default: at rest.
    base_acceleration : array_like, shape (..., 6), optional
        Rate of `base_twist`. Default: at rest.

    Returns
    -------
    ndarray, shape (..., nbodies, 6)
    """
    q, v, a = states(robot, q=q, v=v, a=a)
    f = factors(robot, q, v, base_twist=base_twist)
    V_0, A_0 = _of_base("base_twist", base_twist, q), _of_base("base_acceleration", base_acceleration, q)
    A = _accelerations(f, a, f.V, V_0, A_0)
    return A.reshape(*A.shape[:-1], robot.nbodies, 6)


def _twists(f: Factors, v: np.ndarray, V_0: np.ndarray) -> np.ndarray:
    return mul(f.G @ f.S, v) + mul(f.G @ f.P0, V_0)  # (19)


def _accelerations(f: Factors, a: np.ndarray, V: np.ndarray, V_0: np.ndarray, A_0: np.ndarray) -> np.ndarray:
    bias = mul(f.ad_Sv @ f.Gamma, V) + mul(f.ad_Sv @ f.P0, V_0)
    return mul(f.G, mul(f.S, a) + bias + mul(f.P0, A_0))  # (20)


def states(robot: Mechanism, **arguments: ArrayLike) -> list[np.ndarray]:
    """Return the arguments as arrays of doubles or of complex numbers; raise ArgumentError for invalid ones."""
    require_free_joints("closed forms", robot)
    arrays = {name: _double(name, x) for name, x in arguments.items()}
    as_batch(robot, **{name: np.real(x) for name, x in arrays.items()})
    return list(arrays.values())


def _double(name: str, x: ArrayLike) -> np.ndarray:
    try:
        if np.iscomplexobj(x):
            return checked(name, np.real(x), ()) + 1j * checked(name, np.imag(x), ())
    except Exception:  # `checked` raises the error
        pass
    return checked(name, x, ())


# --- blocks ------------------------------------------------------------------------------------------------------


def joint_motion(S: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return exp(S q) (..., 4, 4); for a joint with several degrees of freedom, the pose [R | p] stored in q."""
    T = np.zeros((*q.shape[:-1], 4, 4), np.result_type(q, float))
    T[..., 3, 3] = 1.0
    if S.shape[1] > 1:
        T[..., :3, :] = q.reshape(*q.shape[:-1], 3, 4)
        return T
    W, v, x = hat(S[:3, 0]), S[3:, 0], q[..., None]
    T[..., :3, :3] = np.eye(3) + np.sin(x) * W + (1.0 - np.cos(x)) * W @ W  # (10)
    T[..., :3, 3] = (x * np.eye(3) + (1.0 - np.cos(x)) * W + (x - np.sin(x)) * W @ W) @ v  # (11)
    return T


def body_coriolis(J: np.ndarray, V: np.ndarray, form: Form) -> np.ndarray:
    """Return C_bar_i (..., 6, 6) of one body, with C_bar_i V_i = -ad_{V_i}^T J_i V_i."""
    if form == "plain":
        return -transpose(ad(V)) @ J
    if form == "adjoint":
        return J @ ad(V) - transpose(ad(V)) @ J
    w, I, H = hat(V[..., :3]), J[:3, :3], J[:3, 3:]
    if form == "ploen":
        angular = w @ I + I @ w  # Proposition 1
    else:
        angular = hat(V[..., :3] @ (0.5 * np.trace(I) * np.eye(3) - I))
    return blocks(angular, H @ w, -w @ H, J[5, 5] * w)


def at_rest(robot: Mechanism, q: ArrayLike) -> Factors:
    """Return all factors at q with zero velocity."""
    (q,) = states(robot, q=q)
    return factors(robot, q, np.zeros((*q.shape[:-1], robot.nv)))


def _of_base(name: str, x: ArrayLike | None, q: ArrayLike) -> np.ndarray:
    """Return a twist of the base, or its rate, with the leading axes of q; None is zero."""
    lead = np.shape(q)[:-1]
    if x is None:
        return np.zeros((*lead, 6))
    x = _double(name, x)
    if x.shape != (*lead, 6):
        raise ArgumentError(f"{name}: expected shape {(*lead, 6)}, got {x.shape} (nothing is broadcast)")
    return x


def _base_acceleration(robot: Mechanism) -> np.ndarray:
    """Return (0, -g), the acceleration of the base that stands for gravity."""
    return np.concatenate((np.zeros(3), -robot.gravity))
