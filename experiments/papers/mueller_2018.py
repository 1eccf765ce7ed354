"""Mueller 2018, "Screw and Lie group theory in multibody dynamics": each numbered result with its residual.

The residuals are relative, the largest over random chains of six joints; * marks equations that are corrected as in
docs/reference/formulas.md. The explicit sums of brackets are compared with the recursions of `higher_order_kinematics`,
partial derivatives with the complex step, and the recursions in three representations with each other. The figure in
out/ shows acceleration and jerk of a Panda's hand on one motion, in the four representations.

    python experiments/papers/mueller_2018.py
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.linalg import expm

import geomctrl as gc
from geomctrl import derivatives as by_derivatives
from geomctrl import inertia, models, se3, so3
from geomctrl.papers import closed_forms, curvature, factored, higher_order_kinematics, representations, sensitivities
from geomctrl.papers import one_body as halves
from geomctrl.papers.factored import ad

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.residuals import STEP, Case, Residual, Section, along, case, gradient, relative, show, tabulate

FORMS = ("body", "spatial", "hybrid", "mixed")
LOCAL = ("body", "hybrid", "mixed")

JACOBIANS = "higher_order_kinematics.jacobian_derivatives"
TWISTS = "higher_order_kinematics.twist_derivatives"
PARTIALS = "higher_order_kinematics.jacobian_partial_derivatives"
NEWTON_EULER = "representations.newton_euler"
IN_FRAME = "representations.newton_euler_in_frame"
INERTIA = "representations.convert_inertia"
WRENCH = "representations.convert_wrench"
FACTORS = "factored.factors"
RATES = "derivatives.inverse_dynamics_rates"
SYMBOLS = "curvature.christoffel_symbols"
BODY_C, BODY_RATE = "representations.coriolis_matrix_of_body", "representations.mass_matrix_rate_of_body"
AT_COM, FROM_COM = "one_body.mass_matrix_at_com", "one_body.mass_matrix_from_com"
OF_COM, ABOUT_COM = "one_body.motion_of_com", "one_body.wrench_about_com"
APART, APART_AT_COM = "one_body.newton_and_euler", "one_body.newton_and_euler_at_com"


def br(x, y):
    """The bracket [x, y] of two twists (6,), or of x with the columns of y (6, n)."""
    return se3.ad(x) @ y


def turning(x):
    """(w, 0)."""
    return np.concatenate((x[:3], np.zeros(3)))


def moving(x):
    """(0, v)."""
    return np.concatenate((np.zeros(3), x[-3:]))


def ad_of(w=None, v=None):
    """ad of a pure rotation or translation."""
    return se3.ad(np.concatenate((np.zeros(3) if w is None else w, np.zeros(3) if v is None else v)))


def Ad_of(R=None, r=None):
    """Ad_R and Ad_r of (96)."""
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = np.eye(3) if R is None else R, np.zeros(3) if r is None else r
    return se3.Ad(T)


class Bodies:
    """Poses, Jacobians, twists, accelerations and jerks of all bodies of a chain, in the four representations."""

    def __init__(self, c: Case):
        robot, q, v, a, b = c
        names, rates = robot.body_names, np.stack((v, a, b))
        self.n = robot.nv
        self.T = np.array([robot.pose(q, name) for name in names])
        self.R, self.r = self.T[:, :3, :3], self.T[:, :3, 3]
        self.J, self.V = {}, {}  # [representation][i, derivative]
        for form in FORMS:
            self.J[form] = np.array(
                [higher_order_kinematics.jacobian_derivatives(robot, q, rates, x, form) for x in names]
            )
            self.V[form] = np.array(
                [higher_order_kinematics.twist_derivatives(robot, q, rates, x, form) for x in names]
            )
        self.S = np.array([joint.S[:, 0] for joint in robot.joints])  # the iX_i
        self.X = np.array([Ad_of(R) @ S for R, S in zip(self.R, self.S)])  # the 0X_i^i
        self.rates = self.V["hybrid"][:, :, 3:]  # rdot, rddot, ...
        self.M = inertia.spatial(robot.parameters)

    def path(self, i: int, j: int) -> np.ndarray:
        """Ad_{C_i,j}."""
        return se3.Ad(se3.inverse(self.T[i]) @ self.T[j])


# --- sections 2.1 to 2.4: accelerations and jerks ----------------------------------------------------------------


def pose(robot: gc.Robot, x, i: int, j: int = -1) -> np.ndarray:
    """C_j^-1 C_i at complex x; C_i for j = -1."""
    out = np.eye(4)
    for k in range(j + 1, i + 1):
        out = out @ robot.placements[k] @ factored.joint_motion(robot.joints[k].S, x[k : k + 1])
    return out


def body_fixed(c: Case, s: Bodies, i: int) -> list[Residual]:
    robot, q, v, a, b = c
    J, rate, V = s.J["body"][i, 0].T, s.J["body"][i, 1], s.V["body"]
    f, upto = factored.factors(robot, q, v), range(i + 1)
    pairs = [(j, k) for k in upto for j in range(k)]

    def columns(x):
        """J_i (6, n) at complex x."""
        g = factored.factors(robot, x, v)
        return (g.G @ g.S)[6 * i : 6 * i + 6]

    hats = [se3.hat(x) for x in J]
    apart = [inverse(pose(robot, q, i, j)) for j in upto]  # C_i^-1 C_j
    grow = [gradient(lambda x, j=j: inverse(pose(robot, x, i, j)), q) for j in upto]
    grow_back = [gradient(lambda x, j=j: pose(robot, x, i, j), q) for j in upto]
    poses = [relative(grow[j][..., k], -hats[k] @ apart[j]) for j, k in pairs]
    reverse = [relative(grow_back[j][..., k], inverse(apart[j]) @ hats[k]) for j, k in pairs]
    by_product = [  # of C_i^-1 C_j X_j C_j^-1 C_i
        grow[j][..., k] @ se3.hat(s.S[j]) @ inverse(apart[j]) + apart[j] @ se3.hat(s.S[j]) @ grow_back[j][..., k]
        for j, k in pairs
    ]
    ours = higher_order_kinematics.jacobian_partial_derivatives(robot, q, robot.body_names[i], 1)
    partial = gradient(columns, q)  # [:, j, k]
    first, by_path = np.zeros_like(partial), np.zeros_like(partial)
    for j, k in pairs:
        first[:, j, k] = br(J[j], J[k])
        by_path[:, j, k] = -s.path(i, k) @ br(s.S[k], s.J["body"][k, 0][:, j])
    acceleration = a @ J + sum(br(J[j], J[k]) * v[j] * v[k] for j, k in pairs)
    jerk = b @ J + sum(br(J[j], J[k]) * (2.0 * a[j] * v[k] + v[j] * a[k]) for j, k in pairs)
    jerk = jerk + sum(
        (2.0 if k < r else 1.0) * br(br(J[j], J[k]), J[r]) * v[j] * v[k] * v[r]
        for j, k in pairs
        for r in range(k, i + 1)
    )
    G, a_b = f.G, -f.ad_Sv
    V_all, A_all = V[:, 0].ravel(), V[:, 1].ravel()
    D = f.Gamma
    X = f.S
    joints = np.linalg.solve(X.T @ X, X.T @ ((np.eye(len(D)) - D) @ A_all + a_b @ V_all))
    library = higher_order_kinematics.joint_motion_of_bodies(robot, q, V[:, 0], V[:, 1])
    return [
        Residual(
            "(2)", "acceleration by partial derivatives", TWISTS,
            relative(columns(q) @ a + partial @ v @ v, V[i, 1]),
        ),
        Residual(
            "(2)", "d/dq_k J_ij by those of the poses", PARTIALS,
            relative([se3.hat(ours[:, j, k]) for j, k in pairs], by_product),
        ),
        Residual("(3)*", "d/dq_k C_i^-1 C_j", JACOBIANS, max(poses)),
        Residual("(4)*", "d/dq_k C_j^-1 C_i", JACOBIANS, max(reverse)),
        Residual("(5)", "d/dq_k J_ij = [J_ij, J_ik]", JACOBIANS, relative(first, partial)),
        Residual("(6)", "acceleration, explicitly", TWISTS, relative(acceleration, V[i, 1])),
        Residual("(7)", "d/dq_k J_ij through body k", JACOBIANS, relative(by_path, partial)),
        Residual(
            "(8), (9)", "Jdot = -A a J", f"{JACOBIANS}, {FACTORS}",
            relative((-G @ a_b @ G @ X)[6 * i : 6 * i + 6], rate),
        ),
        Residual(
            "(10)", "all accelerations at once", f"{TWISTS}, {FACTORS}",
            relative(G @ X @ a - G @ a_b @ V_all, A_all),
        ),
        Residual("(11)", "inverse kinematics of accelerations", f"{TWISTS}, {FACTORS}", relative(joints, a)),
        Residual(
            "(11)", "the same joint by joint", "higher_order_kinematics.joint_motion_of_bodies",
            relative(library.a, a),
        ),
        Residual(
            "Remark 3", "and without joint velocities", "higher_order_kinematics.joint_accelerations_of_bodies",
            relative(higher_order_kinematics.joint_accelerations_of_bodies(robot, q, V[:, 0], V[:, 1]), a),
        ),
        Residual("(12)", "second partial derivatives", PARTIALS, partial_error(c, i, 2, "body")),
        Residual("(13)*", "jerk, explicitly", TWISTS, relative(jerk, V[i, 2])),
        Residual("(14)", "third partial derivatives", PARTIALS, partial_error(c, i, 3, "body")),
    ]  # fmt: skip


def inverse(T):
    """T^-1; T may be complex."""
    R = T[:3, :3].T
    return np.vstack((np.column_stack((R, -R @ T[:3, 3])), [[0, 0, 0, 1]]))


def partial_error(c: Case, i: int, order: int, form: str) -> float:
    """Compare partial derivatives by the recursion with the complex step of nested brackets of one order less."""
    robot, q, v, _, _ = c
    ours = higher_order_kinematics.jacobian_partial_derivatives(robot, q, robot.body_names[i], order, form)
    rng, error = np.random.default_rng(0), 0.0
    ad = factored.ad
    for _ in range(12):
        j, *ks = rng.integers(
            0, i + 1, size=order
        )  # a column and order - 1 coordinates; the last derivative is by all coordinates

        def nested(x, j=j, ks=ks):
            g = factored.factors(robot, x, v)
            J = (g.G @ g.S)[6 * i : 6 * i + 6].T
            X = J[j]
            if form == "body":
                for k in sorted(ks):  # (14)
                    X = ad(X) @ J[k] if k > j else np.zeros(6)
                return X
            J = np.linalg.solve((g.G @ g.P0)[6 * i : 6 * i + 6], J.T).T  # Ad_{C_i} of the body-fixed ones
            X = J[j]
            for k in sorted(ks, reverse=True):  # (23)
                X = ad(J[k]) @ X if k < j else np.zeros(6)
            return X

        error = max(error, relative(ours[(slice(None), j, *ks)], gradient(nested, q), 1.0))
    return error


def spatial(c: Case, s: Bodies, i: int) -> list[Residual]:
    robot, q, v, a, b = c
    J, rate, V = s.J["spatial"][i, 0].T, s.J["spatial"][i, 1].T, s.V["spatial"]
    n, upto = s.n, range(i + 1)
    U = np.vstack((np.zeros(6), V[:, 0]))  # U[j] = V_{j-1}, with this code's numbers of bodies

    def columns(x):
        g = factored.factors(robot, x, v)
        return np.linalg.solve((g.G @ g.P0)[6 * i : 6 * i + 6], (g.G @ g.S)[6 * i : 6 * i + 6])

    partial = gradient(columns, q)
    first = np.zeros_like(partial)
    for j in upto:
        for k in range(j):
            first[:, j, k] = br(J[k], J[j])
    carried = np.array([br(V[j, 0], J[j]) for j in upto])
    by_pairs = a @ J + sum(br(J[k], J[j]) * v[j] * v[k] for j in upto for k in range(j))
    by_twists = a @ J + v[: i + 1] @ carried
    full = s.J["spatial"][n - 1, 0]
    diagonal = np.zeros((6 * n, n))
    for j in range(n):
        diagonal[6 * j : 6 * j + 6, j] = br(V[j, 0], full[:, j])  # b^s diag(J^s)
    L = np.kron(np.tril(np.ones((n, n))), np.eye(6))
    everything = s.J["spatial"][:, 0].reshape(6 * n, n) @ a + L @ diagonal @ v
    jerk21 = sum(
        J[j] * b[j] + 2.0 * carried[j] * a[j] + sum((br(J[k] * a[k], J[j]) * v[j] for k in range(j)), np.zeros(6))
        + br(U[j] + V[j, 0] - V[i, 0], carried[j]) * v[j] for j in upto
    )  # fmt: skip
    jerk22 = sum(
        J[j] * b[j] + br(carried[j], V[i, 0] - 2.0 * V[j, 0]) * v[j]
        + br(sum(J[k] * a[k] for k in range(j + 1)) + carried[j] * v[j], J[j]) * v[j] + 2.0 * carried[j] * a[j]
        for j in upto
    )  # fmt: skip
    return [
        Residual("(15)", "d/dq_k J_j = [J_k, J_j]", JACOBIANS, relative(first, partial)),
        Residual("(16)", "Jdot_j = [V_j, J_j]", JACOBIANS, relative(carried, rate[: i + 1])),
        Residual("(17)", "acceleration, explicitly", TWISTS, max(relative(x, V[i, 1]) for x in (by_pairs, by_twists))),
        Residual("(18), (19)", "all accelerations at once", TWISTS, relative(everything, V[:, 1].ravel())),
        Residual("(20)", "second partial derivatives", PARTIALS, partial_error(c, i, 2, "spatial")),
        Residual("(21)*", "jerk, explicitly", TWISTS, relative(jerk21, V[i, 2])),
        Residual("(22)", "the same in another order", TWISTS, relative(jerk22, V[i, 2])),
        Residual("(23)", "third partial derivatives", PARTIALS, partial_error(c, i, 3, "spatial")),
    ]


def hybrid_partials(c: Case, s: Bodies, i: int) -> list[Residual]:
    robot, q, v, _, _ = c
    J, upto, none = s.J["hybrid"][i, 0].T, range(i + 1), np.zeros(6)

    def columns(x):
        g = factored.factors(robot, x, v)
        R = (g.G @ g.P0)[6 * i : 6 * i + 3, :3].T  # R_i from Ad of C_i^-1
        Jb = (g.G @ g.S)[6 * i : 6 * i + 6]
        return np.vstack((R @ Jb[:3], R @ Jb[3:]))

    partial = gradient(columns, q)
    first, convective = np.zeros_like(partial), np.zeros_like(partial)
    for j in upto:
        for k in upto:
            first[:, j, k] = br(J[j], moving(J[k])) if j <= k else br(turning(J[k]), J[j])
            convective[:, j, k] = br(turning(J[k]), J[j]) + (br(J[j], J[k]) if j < k else none)

    name = robot.body_names[i]
    by_library = [higher_order_kinematics.jacobian_partial_derivatives(robot, q, name, k, "hybrid") for k in (1, 2)]

    def brackets(x):
        """(25) at complex x."""
        Jx, out = columns(x).T, np.zeros(partial.shape, complex)
        for j in upto:
            for k in upto:
                out[:, j, k] = ad(Jx[j]) @ moving(Jx[k]) if j <= k else ad(turning(Jx[k])) @ Jx[j]
        return out

    return [
        Residual("(24), (25)*", "all first partial derivatives", PARTIALS, relative(by_library[0], partial)),
        Residual(
            "(24), (25)*", "second ones, from those of (25)", PARTIALS, relative(by_library[1], gradient(brackets, q))
        ),
        Residual("(24)", "d/dq_k J_ij from the body-fixed", JACOBIANS, relative(convective, partial)),
        Residual("(25)*", "d/dq_k J_ij with linear parts only", JACOBIANS, relative(first, partial)),
    ]


def hybrid(c: Case, s: Bodies, i: int) -> list[Residual]:
    _, _, v, a, b = c
    J, rate, second = (s.J["hybrid"][i, k].T for k in range(3))
    V, w, r = s.V["hybrid"], s.V["hybrid"][:, 0, :3], s.r
    w_rate, upto = s.V["hybrid"][:, 1, :3], range(i + 1)
    none = np.zeros(6)

    def before(j):
        return V[j - 1, 0] if j else none

    def shift(j):
        return Ad_of(r=r[j] - r[i])  # Ad_{r_i,j}

    gap = [V[i, 0] - (Ad_of(r=(r[j - 1] if j else 0.0) - r[i]) @ before(j)) for j in upto]
    r26 = np.array([br(J[j], moving(gap[j])) + br(turning(before(j)), J[j]) for j in upto])
    rd, rdd = s.rates[:, 0], s.rates[:, 1]
    r27 = np.array([(ad_of(v=rd[j] - rd[i]) + shift(j) @ ad_of(w=w[j])) @ s.X[j] for j in upto])
    last = np.array([shift(j) @ (se3.ad(V[j, 0]) - ad_of(v=rd[i])) @ s.X[j] for j in upto])
    r30 = []
    for j in upto:
        ww = ad_of(w=w_rate[j]) + ad_of(w=w[j]) @ ad_of(w=w[j])
        r30.append((ad_of(v=rdd[j] - rdd[i]) + 2 * ad_of(v=rd[j] - rd[i]) @ ad_of(w=w[j]) + shift(j) @ ww) @ s.X[j])
    r30 = np.array(r30)
    jerk = J.T @ b + 2.0 * r27.T @ a[: i + 1] + r30.T @ v[: i + 1]
    return [
        Residual("(26)*", "Jdot by relative twists", JACOBIANS, relative(r26, rate[: i + 1])),
        Residual("(27)*", "Jdot by positions", JACOBIANS, max(relative(x, rate[: i + 1]) for x in (r27, last))),
        Residual("(28)*", "acceleration by relative twists", TWISTS, relative(J.T @ a + r26.T @ v[: i + 1], V[i, 1])),
        Residual("(29)", "acceleration by positions", TWISTS, relative(J.T @ a + r27.T @ v[: i + 1], V[i, 1])),
        Residual("(30)", "Jddot", JACOBIANS, relative(r30, second[: i + 1])),
        Residual("(31), (32)*", "jerk, explicitly", TWISTS, relative(jerk, V[i, 2])),
    ]


def mixed(c: Case, s: Bodies, i: int) -> list[Residual]:
    robot, q, v, _, _ = c
    partials = higher_order_kinematics.jacobian_partial_derivatives(robot, q, robot.body_names[i], 1, "mixed")

    def columns(x):
        g = factored.factors(robot, x, v)
        Jb = (g.G @ g.S)[6 * i : 6 * i + 6]
        return np.vstack((Jb[:3], (g.G @ g.P0)[6 * i : 6 * i + 3, :3].T @ Jb[3:]))

    turn = np.eye(6)
    turn[:3, :3] = s.R[i].T
    V, w = s.V["hybrid"][i], s.V["hybrid"][i, 0, :3]
    jac, jac_rate = s.J["hybrid"][i, 0], s.J["hybrid"][i, 1].copy()
    jac_rate[:3] -= so3.hat(w) @ jac[:3]
    jerk = V[2].copy()
    jerk[:3] -= np.cross(w, V[1, :3])
    return [
        Residual("(33)", "first partial derivatives", PARTIALS, relative(partials, gradient(columns, q))),
        Residual("(33)*", "Jacobian's rate", JACOBIANS, relative(turn @ jac_rate, s.J["mixed"][i, 1])),
        Residual("(33)", "acceleration", TWISTS, relative(turn @ V[1], s.V["mixed"][i, 1])),
        Residual("(33)*", "jerk", TWISTS, relative(turn @ jerk, s.V["mixed"][i, 2])),
    ]


# --- section 3: one body -----------------------------------------------------------------------------------------


def one_body(c: Case, s: Bodies, i: int) -> list[Residual]:
    robot, q, v, _, _ = c
    pi, T, R = robot.parameters[i], s.T[i], s.R[i]
    m, d, Theta_c = pi[0], inertia.com(pi), inertia.com_tensor(pi)
    V, A = {f: s.V[f][i, 0] for f in FORMS}, {f: s.V[f][i, 1] for f in FORMS}
    M = {f: representations.convert_inertia(T, s.M[i], "body", f) for f in FORMS}
    W = {f: representations.newton_euler(pi, T, V[f], A[f], f) for f in FORMS}
    apart = [relative(representations.convert_wrench(T, W[x], x, y), W[y]) for x in FORMS for y in FORMS]
    Pi = {f: representations.momentum_of_body(pi, T, V[f], f) for f in FORMS}
    w, vb = np.split(V["body"], 2)
    w_rate, vb_rate = np.split(A["body"], 2)
    ws, ws_rate = V["hybrid"][:3], A["hybrid"][:3]
    rd, rdd = V["hybrid"][3:], A["hybrid"][3:]
    Theta_b = inertia.tensor(pi)
    Theta_h = R @ Theta_b @ R.T
    dh = R @ d
    x = np.cross

    def M_s(y):
        """The spatial inertia at complex configurations."""
        g = factored.factors(robot, y, v)
        back = (g.G @ g.P0)[6 * i : 6 * i + 6]
        return back.T @ s.M[i] @ back

    M_rate = -se3.ad(V["spatial"]).T @ M["spatial"] - M["spatial"] @ se3.ad(V["spatial"])
    rng = np.random.default_rng(i)
    S_bc = np.eye(4)
    S_bc[:3, :3], S_bc[:3, 3] = so3.exp(rng.normal(size=3)), d
    Rc = R @ S_bc[:3, :3]
    Theta = S_bc[:3, :3].T @ Theta_c @ S_bc[:3, :3]
    M_c = np.block([[Theta, np.zeros((3, 3))], [np.zeros((3, 3)), m * np.eye(3)]])
    down = se3.Ad(np.linalg.inv(S_bc))
    at_com = inertia.spatial(inertia.transform(se3.inverse(S_bc), pi))
    from_com = representations.convert_inertia(T @ S_bc, at_com, "body", "hybrid")
    V_c, A_c, W_c = down @ V["body"], down @ A["body"], se3.Ad(S_bc).T @ W["body"]
    moment42 = Theta_b @ w_rate + x(w, Theta_b @ w) + m * x(d, vb_rate + x(w, vb))
    force43 = m * (vb_rate + x(w, vb) + x(w_rate, d) + x(w, x(w, d)))
    r_c = rdd + x(ws_rate, dh) + x(ws, x(ws, dh))
    moment56 = Theta_b @ w_rate + x(w, Theta_b @ w) + m * x(d, R.T @ rdd)
    Mh_c = np.block([[R @ Theta_c @ R.T, np.zeros((3, 3))], [np.zeros((3, 3)), m * np.eye(3)]])
    Vh_c, Ah_c = np.concatenate((ws, rd + x(ws, dh))), np.concatenate((ws_rate, r_c))
    Wh_c = np.concatenate((W["hybrid"][:3] - x(dh, W["hybrid"][3:]), W["hybrid"][3:]))
    Pi_h_rate = M["hybrid"] @ A["hybrid"] + (-ad_of(w=ws).T @ M["hybrid"] - M["hybrid"] @ ad_of(w=ws)) @ V["hybrid"]
    other = min(i + 1, s.n - 1)
    cases = arbitrary_frames(s, pi, i, other)
    convert = [relative(representations.convert_acceleration(T, V[a], A[a], a, b), A[b]) for a in FORMS for b in FORMS]
    return [
        Residual(
            "(34)", "M^s = Ad_C^-T M^b Ad_C^-1", f"{INERTIA}, inertia.transform",
            relative(M["spatial"], inertia.spatial(inertia.transform(T, pi))),
        ),
        Residual(
            "(35)", "Pi^s = Ad_C^-T Pi^b", f"representations.momentum_of_body, {WRENCH}",
            relative(Pi["spatial"], representations.convert_wrench(T, Pi["body"], "body", "spatial")),
        ),
        Residual(
            "(36)", "momentum balance", NEWTON_EULER,
            relative(M_s(q) @ A["spatial"] + along(M_s, q, v) @ V["spatial"], W["spatial"]),
        ),
        Residual("(37)", "dM^s/dt", INERTIA, relative(M_rate, along(M_s, q, v))),
        Residual(
            "(38)", "spatial Newton-Euler", NEWTON_EULER,
            relative(M["spatial"] @ A["spatial"] - se3.ad(V["spatial"]).T @ M["spatial"] @ V["spatial"], W["spatial"]),
        ),
        Residual(
            "(39), (40)", "M^b from the centre-of-mass frame", "inertia.spatial, inertia.com_tensor",
            relative(down.T @ M_c @ down, s.M[i]),
        ),
        Residual(
            "(41)", "body-fixed Newton-Euler", NEWTON_EULER,
            relative(s.M[i] @ A["body"] - se3.ad(V["body"]).T @ s.M[i] @ V["body"], W["body"]),
        ),
        Residual(
            "(42)*, (43)", "Newton and Euler apart", NEWTON_EULER,
            relative(np.concatenate((moment42, force43)), W["body"]),
        ),
        Residual(
            "(44)", "in the centre-of-mass frame", NEWTON_EULER,
            relative(M_c @ A_c - se3.ad(turning(V_c)).T @ M_c @ V_c, W_c),
        ),
        Residual(
            "(45), (46)", "the same apart", NEWTON_EULER,
            relative(
                np.concatenate((Theta @ A_c[:3] + x(V_c[:3], Theta @ V_c[:3]), m * (A_c[3:] + x(V_c[:3], V_c[3:])))),
                W_c,
            ),
        ),
        Residual(
            "(47)*", "hybrid inertia at the centre of mass", f"{INERTIA}, inertia.transform",
            max(relative(x, Mh_c) for x in (Ad_of(R=Rc) @ at_com @ Ad_of(R=Rc).T, from_com)),
        ),
        Residual(
            "(48)*", "hybrid Newton-Euler there", NEWTON_EULER,
            relative(Mh_c @ Ah_c - ad_of(w=ws).T @ Mh_c @ turning(Vh_c), Wh_c),
        ),
        Residual(
            "(49), (50)*", "decoupled", NEWTON_EULER,
            relative(np.concatenate((R @ Theta_c @ R.T @ ws_rate + x(ws, R @ Theta_c @ R.T @ ws), m * r_c)), Wh_c),
        ),
        Residual("(51)", "hybrid inertia", INERTIA, relative(Ad_of(r=-dh).T @ Mh_c @ Ad_of(r=-dh), M["hybrid"])),
        Residual(
            "(52)*", "dPi^h/dt - ad_rdot^T Pi^h = W^h", f"representations.momentum_of_body, {NEWTON_EULER}",
            relative(hybrid_momentum_rate(c, s, i) - ad_of(v=rd).T @ Pi["hybrid"], W["hybrid"]),
        ),
        Residual(
            "(53)", "hybrid Newton-Euler", NEWTON_EULER,
            relative(M["hybrid"] @ A["hybrid"] - ad_of(w=ws).T @ M["hybrid"] @ turning(V["hybrid"]), W["hybrid"]),
        ),
        Residual("(53)", "its helper, dM^h/dt", INERTIA, relative(Pi_h_rate, hybrid_momentum_rate(c, s, i))),
        Residual(
            "(54), (55)", "the same apart", NEWTON_EULER,
            relative(np.concatenate((Theta_h @ ws_rate + x(ws, Theta_h @ ws) + m * x(dh, rdd), m * r_c)), W["hybrid"]),
        ),
        Residual(
            "(56)*, (57)", "mixed Newton-Euler", NEWTON_EULER,
            relative(np.concatenate((moment56, m * r_c)), W["mixed"]),
        ),
        Residual(
            "(58)", "mixed at the centre of mass", NEWTON_EULER,
            relative(
                np.concatenate((Theta @ A_c[:3] + x(V_c[:3], Theta @ V_c[:3]), m * r_c)),
                np.concatenate((W_c[:3], W["hybrid"][3:])),
            ),
        ),
        Residual("(41), (38), (53), (56)", "are one wrench", f"{NEWTON_EULER}, {WRENCH}", max(apart)),
        Residual("(59)*-(61)", "in another body's frame", IN_FRAME, cases[0]),
        Residual("(62)*-(64)*", "measured at one, resolved in another", IN_FRAME, cases[1]),
        Residual("(63)*", "spatial, body-fixed, hybrid are special cases", IN_FRAME, cases[2]),
        Residual(
            "(98)-(100)", "accelerations between all representations", "representations.convert_acceleration",
            max(convert),
        ),
    ]  # fmt: skip


class AtCom:
    """Body i with rotated axes at its centre of mass: the wrench of (41), and the same by transformations."""

    def __init__(self, c: Case, s: Bodies, i: int):
        self.pi, self.T, self.R, self.M_b = c.robot.parameters[i], s.T[i], s.R[i], s.M[i]
        self.V, self.A = ({f: s.V[f][i, k] for f in FORMS} for k in (0, 1))
        self.axes = so3.exp(np.random.default_rng(i).normal(size=3))
        self.S_bc = np.eye(4)
        self.S_bc[:3, :3], self.S_bc[:3, 3] = self.axes, inertia.com(self.pi)
        one, none = np.eye(3), np.zeros((3, 3))
        self.turn = {"body": np.eye(6), "hybrid": Ad_of(R=self.R), "mixed": np.block([[one, none], [none, self.R]])}
        V, A = self.V["body"], self.A["body"]
        self.W = self.M_b @ A - se3.ad(V).T @ self.M_b @ V  # (41)
        Ad, R_c = se3.Ad(self.S_bc), self.R @ self.axes
        self.M_c = Ad.T @ self.M_b @ Ad  # (40), solved for the other side
        self.M_hc = Ad_of(R=R_c) @ self.M_c @ Ad_of(R=R_c).T  # (47)
        self.V_c, self.A_c, self.W_c = np.linalg.solve(Ad, V), np.linalg.solve(Ad, A), Ad.T @ self.W
        self.about = {
            "body": self.W_c,
            "hybrid": Ad_of(R=R_c) @ self.W_c,
            "mixed": np.concatenate((self.W_c[:3], R_c @ self.W_c[3:])),
        }


def body_matrices(c: Case, s: Bodies, i: int) -> list[Residual]:
    """Mass matrices at the centre of mass and from there, their rates, C of one body and Remark 2."""
    robot, q, v, _, _ = c
    x = AtCom(c, s, i)
    M_com = {f: halves.mass_matrix_at_com(x.pi, x.T, f, x.axes) for f in LOCAL}
    back = {f: halves.mass_matrix_from_com(x.pi, x.T, f, x.axes) for f in LOCAL}

    def M_at(y, form):
        """The body's mass matrix at complex configurations."""
        g = factored.factors(robot, y, v)
        Ad = (g.G @ g.P0)[6 * i : 6 * i + 6]
        up = np.kron(np.eye(2), Ad[:3, :3]) if form == "hybrid" else Ad
        return up.T @ x.M_b @ up

    rates = {f: representations.mass_matrix_rate_of_body(x.pi, x.T, x.V[f], f) for f in ("spatial", "hybrid")}
    exact = {f: along(lambda y, f=f: M_at(y, f), q, v) for f in rates}
    C = {f: representations.coriolis_matrix_of_body(x.pi, x.T, x.V[f], f) for f in FORMS}
    skew = rates["spatial"] - 2.0 * C["spatial"]
    M = {f: representations.convert_inertia(x.T, x.M_b, "body", f) for f in LOCAL}
    by_C = [relative(M[f] @ x.A[f] + C[f] @ x.V[f], x.turn[f] @ x.W) for f in LOCAL]
    M_h = x.turn["hybrid"] @ x.M_b @ x.turn["hybrid"].T
    return [
        Residual("(37)", "dM^s/dt by the library", BODY_RATE, relative(rates["spatial"], exact["spatial"])),
        Residual("(48), (53)", "dM^h/dt", BODY_RATE, relative(rates["hybrid"], exact["hybrid"])),
        Residual("Remark 2", "dM^s/dt - 2C^s is skew", f"{BODY_RATE}, {BODY_C}", relative(skew, -skew.T)),
        Residual("(41), (53), (56)", "W = M Vdot + C V", BODY_C, max(by_C)),
        Residual("(39)", "M_c", AT_COM, max(relative(M_com[f], x.M_c) for f in ("body", "mixed"))),
        Residual("(40)", "M^b from M_c", FROM_COM, relative(back["body"], x.M_b)),
        Residual("(47)*", "M_c^h", AT_COM, relative(M_com["hybrid"], x.M_hc)),
        Residual("(51)", "M^h from M_c^h", FROM_COM, relative(back["hybrid"], M_h)),
    ]


def centre_of_mass(c: Case, s: Bodies, i: int) -> list[Residual]:
    """The library's equations of sections 3.2 to 3.4, moment and force separately, and about the centre of mass."""
    robot, q, v, _, _ = c
    x = AtCom(c, s, i)
    motion = {f: halves.motion_of_com(x.pi, x.T, x.V[f], x.A[f], f, x.axes) for f in LOCAL}
    about = {f: halves.wrench_about_com(x.pi, x.T, x.turn[f] @ x.W, f, x.axes) for f in LOCAL}
    at_com = {
        f: np.concatenate(halves.newton_and_euler_at_com(x.pi, x.T, motion[f].V, motion[f].A, f, x.axes)) for f in LOCAL
    }
    apart = {
        f: relative(np.concatenate(halves.newton_and_euler(x.pi, x.T, x.V[f], x.A[f], f)), x.turn[f] @ x.W)
        for f in LOCAL
    }
    by_screws = x.M_c @ x.A_c - se3.ad(turning(x.V_c)).T @ x.M_c @ x.V_c  # (44)
    _, V_h, A_h = motion["hybrid"]
    by_hybrid = x.M_hc @ A_h - ad_of(w=V_h[:3]).T @ x.M_hc @ turning(V_h)  # (48)
    with_frame = replace(robot, frames=(*robot.frames, gc.Frame("com", i, x.S_bc)))
    moves = [relative(motion[f].V, with_frame.jacobian(q, "com", f) @ v) for f in LOCAL]
    both = f"{APART_AT_COM}, {ABOUT_COM}"
    return [
        Residual("(40)", "twist of the centre-of-mass frame", OF_COM, max(moves)),
        Residual("(42)*, (43)", "body-fixed, apart", APART, apart["body"]),
        Residual("(44)", "about the centre of mass", f"{APART_AT_COM}, {OF_COM}", relative(at_com["body"], by_screws)),
        Residual("(45), (46)", "apart", both, relative(at_com["body"], about["body"])),
        Residual("(45), (46)", "its wrench", ABOUT_COM, max(relative(about[f], x.about[f]) for f in LOCAL)),
        Residual("(48)*", "hybrid, about the centre of mass", APART_AT_COM, relative(at_com["hybrid"], by_hybrid)),
        Residual("(49), (50)*", "decoupled", both, relative(at_com["hybrid"], about["hybrid"])),
        Residual("(54), (55)", "hybrid, apart", APART, apart["hybrid"]),
        Residual("(56)*, (57)", "mixed, apart", APART, apart["mixed"]),
        Residual(
            "(58)", "mixed, about the centre of mass", f"{both}, {OF_COM}", relative(at_com["mixed"], about["mixed"])
        ),
    ]


def hybrid_momentum_rate(c: Case, s: Bodies, i: int) -> np.ndarray:
    """d/dt Pi^h = d/dt (M^h V^h), where the rate of M^h is computed by the complex step."""
    robot, q, v, _, _ = c

    def M_h(y):
        g = factored.factors(robot, y, v)
        R = (g.G @ g.P0)[6 * i : 6 * i + 3, :3]  # R_i^T
        back = np.block([[R, np.zeros((3, 3))], [np.zeros((3, 3)), R]])
        return back.T @ s.M[i] @ back

    return along(M_h, q, v) @ s.V["hybrid"][i, 0] + M_h(q).real @ s.V["hybrid"][i, 1]


def arbitrary_frames(s: Bodies, pi, i: int, j: int) -> tuple[float, float, float]:
    """(60) in body j's frame, (63) at j's origin in body 0's axes, and the special cases."""
    W_s = representations.newton_euler(pi, s.T[i], s.V["spatial"][i, 0], s.V["spatial"][i, 1], "spatial")

    def error(frame, U):
        """V = Ad_frame^-1 V^s, and Vdot = Ad_frame^-1 Vdot^s - ad_U V."""
        back = se3.Ad(se3.inverse(frame))
        V = back @ s.V["spatial"][i, 0]
        A = back @ s.V["spatial"][i, 1] - se3.ad(U) @ V
        W = representations.newton_euler_in_frame(pi, s.T[i], frame, U, V, A)
        return relative(W, se3.Ad(frame).T @ W_s)

    axes = s.T[j].copy()
    axes[:3, :3] = s.R[0]
    U = np.concatenate((s.V["body"][0, 0, :3], s.R[0].T @ s.rates[j, 0]))
    still = np.eye(4)
    still[:3, 3] = s.r[i]
    special = (
        error(np.eye(4), np.zeros(6)),
        error(s.T[i], s.V["body"][i, 0]),
        error(still, moving(s.V["hybrid"][i, 0])),
    )
    return error(s.T[j], s.V["body"][j, 0]), error(axes, U), max(special)


# --- section 4: recursions ---------------------------------------------------------------------------------------


def recursions(c: Case, s: Bodies) -> list[Residual]:
    robot, q, v, a, _ = c
    tau = robot.inverse_dynamics(q, v, a)
    errors = {name: [] for name in ("65a", "65b", "65c", "69", "70d", "72", "73", "74", "108", "109", "110")}
    Vb, Vs, Vh = (s.V[f] for f in FORMS[:3])
    for i in range(1, s.n):
        X, S, Js = s.path(i, i - 1), s.S[i], s.J["spatial"][i, 0][:, i]
        XV, base = X @ Vb[i - 1, 0], X @ Vb[i - 1, 1] + S * a[i]
        shift, rd = Ad_of(r=s.r[i - 1] - s.r[i]), s.rates[:, 0]
        hb = shift @ Vh[i - 1, 1] + s.X[i] * a[i]
        drop, w = ad_of(v=rd[i - 1] - rd[i]), ad_of(w=Vh[i, 0, :3])
        forms = {
            "108": (XV + S * v[i], Vb[i, 0]),
            "65a": (base + br(XV, S * v[i]), Vb[i, 1]),
            "65b": (base + br(XV, Vb[i, 0]), Vb[i, 1]),
            "65c": (base + br(Vb[i, 0], S * v[i]), Vb[i, 1]),
            "109": (Vs[i - 1, 0] + Js * v[i], Vs[i, 0]),
            "69": (Vs[i - 1, 1] + br(Vs[i, 0], Js) * v[i] + Js * a[i], Vs[i, 1]),
            "70d": (Vs[i - 1, 1] + Js * a[i] + br(Vs[i - 1, 0], Vs[i, 0]), Vs[i, 1]),
            "110": (shift @ Vh[i - 1, 0] + s.X[i] * v[i], Vh[i, 0]),
            "72": (hb + drop @ Vh[i - 1, 0] + w @ s.X[i] * v[i], Vh[i, 1]),
            "73": (
                hb + ad_of(v=rd[i - 1]) @ Vh[i - 1, 0] - ad_of(v=rd[i]) @ Vh[i, 0] + br(Vh[i, 0], s.X[i]) * v[i],
                Vh[i, 1],
            ),
            "74": (hb + drop @ Vh[i, 0] + (se3.ad(Vh[i, 0]) - ad_of(v=rd[i - 1])) @ s.X[i] * v[i], Vh[i, 1]),
        }
        for name, (ours, exact) in forms.items():
            errors[name].append(relative(ours, exact))
    e = {name: max(x) for name, x in errors.items()}
    plain = representations.without_body_frames(robot)
    rng = np.random.default_rng(0)
    frames = se3.exp(rng.normal(size=(s.n, 6)))
    turned = representations.with_body_frames(robot, frames)
    Y = np.array([se3.Ad(robot.pose(robot.neutral(), x)) @ S for x, S in zip(robot.body_names, s.S)])
    return [
        Residual("(65a)-(65c)", "acceleration of the next body", TWISTS, max(e["65a"], e["65b"], e["65c"])),
        Residual(
            "(66), (67)*", "the body-fixed recursion", "Robot.inverse_dynamics, factored.inverse_dynamics",
            relative(tau, factored.inverse_dynamics(robot, q, v, a)),
        ),
        Residual("(69)*, (70d)*", "spatial acceleration of the next body", TWISTS, max(e["69"], e["70d"])),
        Residual(
            "(70), (71)", "the spatial recursion", "representations.inverse_dynamics",
            relative(representations.inverse_dynamics(robot, q, v, a, representation="spatial"), tau),
        ),
        Residual("(72)-(74)", "hybrid acceleration of the next body", TWISTS, max(e["72"], e["73"], e["74"])),
        Residual(
            "(75), (76)*", "the hybrid recursion", "representations.inverse_dynamics",
            relative(representations.inverse_dynamics(robot, q, v, a, representation="hybrid"), tau),
        ),
        Residual(
            "4.4", "A_i = 1: screws are the Y_i", "representations.without_body_frames",
            relative(np.array([j.S[:, 0] for j in plain.joints]), Y),
        ),
        Residual(
            "4.4", "A_i = 1: forces stay", "representations.without_body_frames",
            relative(plain.inverse_dynamics(q, v, a), tau),
        ),
        Residual(
            "4.4", "any body frames: M stays", "representations.with_body_frames",
            relative(turned.mass_matrix(q), robot.mass_matrix(q)),
        ),
        Residual(
            "4.4", "any body frames: forces stay", "representations.with_body_frames",
            relative(turned.inverse_dynamics(q, v, a), tau),
        ),
        Residual("(68), (108)-(110)", "twist of the next body", TWISTS, max(e["108"], e["109"], e["110"])),
    ]  # fmt: skip


# --- section 5: closed forms -------------------------------------------------------------------------------------


def closed(c: Case, s: Bodies) -> list[Residual]:
    robot, q, v, a, _ = c
    tau, n = robot.inverse_dynamics(q, v, a), s.n
    f = factored.factors(robot, q, v)
    J, b = f.G @ f.S, -f.ad_V_dual.T
    mA, aJ = f.J @ f.G @ -f.ad_Sv, -f.ad_Sv @ J
    C83 = -J.T @ (mA.T + mA) @ J - (f.J @ f.G @ b @ f.S).T @ J
    C83_second = -(aJ + b @ f.S).T @ f.G.T @ f.J @ J - J.T @ mA @ J
    bias = robot.coriolis_matrix(q, v) @ v
    dT = gradient(lambda x: 0.5 * v @ factored.mass_matrix(robot, x) @ v, q)
    Gamma = curvature.christoffel_symbols(robot, q)
    Pi = closed_forms.spatial_momenta(robot, q, v)
    C84 = closed_forms.mueller_coriolis_matrix(robot, q, v)
    f_ext = np.random.default_rng(n).normal(size=(n, 6))
    return [
        Residual(
            "(77), (78)", "Euler-Jourdain equations", "closed_forms.euler_jourdain",
            relative(closed_forms.euler_jourdain(robot, q, v, a), tau),
        ),
        Residual(
            "(77), (78)", "with applied wrenches", "closed_forms.euler_jourdain",
            relative(closed_forms.euler_jourdain(robot, q, v, a, f_ext), robot.inverse_dynamics(q, v, a, f_ext=f_ext)),
        ),
        Residual(
            "(79)", "momentum form", "closed_forms.momentum_form",
            relative(closed_forms.momentum_form(robot, q, v, a), tau),
        ),
        Residual(
            "(79)", "sum of Pi^s is the robot's momentum", "closed_forms.spatial_momenta",
            relative(Pi.sum(0), robot.momentum(q, v)),
        ),
        Residual(
            "(80)", "Lagrange's equations", "closed_forms.lagrange",
            relative(closed_forms.lagrange(robot, q, v, a), tau),
        ),
        Residual("(81)", "M = J^T M J", f"Robot.mass_matrix, {FACTORS}", relative(J.T @ f.J @ J, robot.mass_matrix(q))),
        Residual("(82)*", "dT/dq = (M A b X)^T V", FACTORS, relative((f.J @ f.G @ b @ f.S).T @ f.V, dT)),
        Residual(
            "(83)", "its C gives the bias, in both forms", f"Robot.coriolis_matrix, {FACTORS}",
            max(relative(x @ v, bias) for x in (C83, C83_second)),
        ),
        Residual("(84)", "so does the short one", "closed_forms.mueller_coriolis_matrix", relative(C84 @ v, bias)),
        Residual(
            "(84)", "which is Ploen's (25)", "closed_forms.mueller_coriolis_matrix, factored.coriolis_matrix",
            relative(C84, factored.coriolis_matrix(robot, q, v, "plain")),
        ),
        Residual(
            "(1), (85)", "the equations of motion in components",
            f"Robot.mass_matrix, {SYMBOLS}, Robot.gravity_force, Robot.inverse_dynamics",
            relative(robot.mass_matrix(q) @ a + np.einsum("ijk,i,j->k", Gamma, v, v) + robot.gravity_force(q), tau),
        ),
        Residual(
            "(86)*", "Christoffel symbols", f"closed_forms.mueller_christoffel_symbols, {SYMBOLS}",
            relative(closed_forms.mueller_christoffel_symbols(robot, q), Gamma),
        ),
        Residual(
            "(87)*", "Christoffel symbols with Binet's inertia", f"closed_forms.binet_christoffel_symbols, {SYMBOLS}",
            relative(closed_forms.binet_christoffel_symbols(robot, q), Gamma),
        ),
    ]  # fmt: skip


# --- section 6: derivatives of the equations of motion ------------------------------------------------------------


def with_massless_joint(robot: gc.Robot, i: int, U: np.ndarray, behind: bool) -> gc.Robot:
    """The robot with one more joint of screw U before or behind joint i: exp(U pi) in B_i, at pi = 0."""
    parents = [robot.body_names[p] if p >= 0 else None for p in robot.parents]
    bodies = [gc.Body(*x) for x in zip(robot.body_names, parents, robot.joints, robot.placements, robot.parameters)]
    own, extra = bodies[i], gc.Joint.from_screw(U, name="pi")
    if behind:
        bodies[i] = gc.Body("massless", own.parent, own.joint, own.placement)
        bodies.insert(i + 1, gc.Body(own.name, "massless", extra, None, own.inertia))
    else:
        bodies.insert(i, gc.Body("massless", own.parent, extra, own.placement))
        bodies[i + 1] = gc.Body(own.name, "massless", own.joint, None, own.inertia)
    return gc.Robot.build(bodies, gravity=robot.gravity, physical=False)


def derivatives(c: Case) -> list[Residual]:
    robot, q, v, a, b = c
    n, E, snap = robot.nv, np.eye(robot.nv), v - a
    d, second = (
        robot.inverse_dynamics_derivatives(q, v, a),
        sensitivities.inverse_dynamics_derivatives_along(robot, q, v, a, v, a, b),
    )

    def torques(x):
        return factored.inverse_dynamics(robot, x, v, a)

    dv = np.stack([np.imag(factored.inverse_dynamics(robot, q, v + 1j * STEP * e, a)) / STEP for e in E], -1)
    dM = gradient(lambda x: factored.mass_matrix(robot, x), q)
    inverse = robot.mass_matrix_inverse(q)
    dI = -np.einsum("ij,jkr,kl->ilr", inverse, dM, inverse)
    tau = by_derivatives.inverse_dynamics_rates(robot, q, np.stack((v, a, b, snap)))
    step = 1j * STEP
    rate = np.imag(factored.inverse_dynamics(robot, q + step * v, v + step * a, a + step * b)) / STEP
    rate2 = d.dq @ a + d.dv @ b + d.da @ snap + second.dq @ v + second.dv @ a + second.da @ b
    sensitivity, i = sensitivities.geometric_sensitivity(robot, q, v, a), n // 2
    U = np.array([0.6, -0.64, 0.48, 0.3, 0.2, -0.4])
    columns = []
    for behind in (
        False,
        True,
    ):  # derivatives of the equations of n + 1 joints with respect to pi; behind the joint, to -pi
        longer, k = with_massless_joint(robot, i, U, behind), i + behind
        locked = [np.insert(x, k, 0.0) for x in (q, v, a)]
        grow = gradient(lambda x, r=longer, y=locked: factored.inverse_dynamics(r, x, *y[1:]), locked[0])
        columns.append(np.delete(grow[:, k], k))
    return [
        Residual(
            "6.1", "inverse dynamics by q", "Robot.inverse_dynamics_derivatives",
            relative(d.dq, gradient(torques, q)),
        ),
        Residual("6.1", "inverse dynamics by velocities", "Robot.inverse_dynamics_derivatives", relative(d.dv, dv)),
        Residual(
            "6.1", "M by q", "derivatives.mass_matrix_derivative",
            relative(by_derivatives.mass_matrix_derivative(robot, q), dM),
        ),
        Residual(
            "6.1", "the inverse of M by q", "sensitivities.mass_matrix_inverse_derivative",
            relative(sensitivities.mass_matrix_inverse_derivative(robot, q), dI),
        ),
        Residual(
            "6.2", "forces by a placement B_i", "sensitivities.geometric_sensitivity",
            relative(sensitivity.placement[:, i] @ U, columns[0]),
        ),
        Residual(
            "6.2", "forces by a screw iX_i", "sensitivities.geometric_sensitivity",
            relative(sensitivity.screw[:, i] @ U, columns[0] - columns[1]),
        ),
        Residual("6.3", "first time derivative of the forces", RATES, relative(tau[1], rate)),
        Residual(
            "6.3", "second time derivative",
            f"{RATES}, Robot.inverse_dynamics_derivatives, sensitivities.inverse_dynamics_derivatives_along",
            relative(tau[2], rate2),
        ),
    ]  # fmt: skip


# --- section 7 and the appendix ----------------------------------------------------------------------------------


def appendix(c: Case, s: Bodies) -> list[Residual]:
    robot, q, v, _, _ = c
    n, i = s.n, s.n - 1
    rng = np.random.default_rng(n)
    X, X_rate, Z, Y = rng.normal(size=(4, 6))
    X *= 0.7
    h = se3.hat(X)
    exp_rate = expm(np.block([[h, se3.hat(X_rate)], [np.zeros((4, 4)), h]]))[:4, 4:]  # d/dt exp(X), exactly
    left, right = np.linalg.inv(expm(h)) @ exp_rate, exp_rate @ np.linalg.inv(expm(h))
    closed92, closed93 = np.eye(4), np.eye(4)
    A = [robot.pose(robot.neutral(), x) for x in robot.body_names]
    for k in range(n):
        closed92 = closed92 @ robot.placements[k] @ expm(se3.hat(s.S[k]) * q[k])
        closed93 = closed93 @ expm(se3.hat(se3.Ad(A[k]) @ s.S[k]) * q[k])
    T, V, J = s.T[i], {f: s.V[f][i, 0] for f in FORMS}, {f: s.J[f][i, 0] for f in FORMS}
    moving_pose = along(lambda x: pose(robot, x, i), q, v)
    exact = {"body": unhat(inverse(T) @ moving_pose), "spatial": unhat(moving_pose @ inverse(T))}
    exact["hybrid"] = np.concatenate((exact["spatial"][:3], moving_pose[:3, 3]))
    exact["mixed"] = np.concatenate((exact["body"][:3], moving_pose[:3, 3]))
    convert = [relative(representations.convert_twist(T, V[x], x, y), V[y]) for x in FORMS for y in FORMS]
    jac = [relative(representations.convert_jacobian(T, J[x], x, y), J[y]) for x in FORMS for y in FORMS]
    jac_rate = [
        relative(representations.convert_jacobian_rate(T, V[x], J[x], s.J[x][i, 1], x, y), s.J[y][i, 1])
        for x in FORMS
        for y in FORMS
    ]
    power = [relative(representations.convert_wrench(T, Y, "body", x) @ V[x], Y @ V["body"]) for x in FORMS]
    f = factored.factors(robot, q, v)
    Js = J["spatial"]
    by_C = np.column_stack([se3.Ad(s.T[k]) @ s.S[k] for k in range(n)])
    by_Y = np.column_stack([se3.Ad(s.T[k] @ np.linalg.inv(A[k])) @ se3.Ad(A[k]) @ s.S[k] for k in range(n)])
    by_r = np.column_stack([Ad_of(r=s.r[k] - s.r[i]) @ s.X[k] for k in range(n)])
    shifted = np.column_stack([Ad_of(r=-s.r[k]) @ Js[:, k] for k in range(n)])
    numbers = (br(X, br(Z, Y)) + br(Z, br(Y, X)) + br(Y, br(X, Z)), np.abs(br(X, br(Z, Y))).max())

    def carried(x):
        """Ad_{C_i} Z along the motion."""
        g = factored.factors(robot, x, v)
        return np.linalg.solve((g.G @ g.P0)[6 * i : 6 * i + 6], Z)

    euler = np.linalg.inv(se3.Ad(T)) @ along(carried, q, v)
    return [
        Residual(
            "(88), (89)", "V^b = dexp_{-X} Xdot, V^s = dexp_X Xdot", "se3.dexp",
            max(relative(se3.dexp(-X) @ X_rate, unhat(left)), relative(se3.dexp(X) @ X_rate, unhat(right))),
        ),
        Residual("(90)-(92)", "product of exponentials, body frames", "Robot.pose", relative(closed92, T)),
        Residual("(93), (94)", "product of exponentials, spatial screws", "Robot.pose", relative(closed93 @ A[i], T)),
        Residual(
            "(95)-(99)*, (100)", "twists between all representations", "representations.convert_twist",
            max(convert),
        ),
        Residual("(101), (102)", "twists from poses", TWISTS, max(relative(V[x], exact[x]) for x in FORMS)),
        Residual("(101), (102)", "twists from Jacobians", JACOBIANS, max(relative(J[x] @ v, exact[x]) for x in FORMS)),
        Residual(
            "(103)", "body-fixed Jacobian", f"{JACOBIANS}, {FACTORS}",
            relative((f.G @ f.S)[6 * i : 6 * i + 6], J["body"]),
        ),
        Residual("(104)", "spatial Jacobian", JACOBIANS, max(relative(by_C, Js), relative(by_Y, Js))),
        Residual("(105)", "hybrid Jacobian", JACOBIANS, relative(by_r, J["hybrid"])),
        Residual("(106)", "Jacobians between all representations", "representations.convert_jacobian", max(jac)),
        Residual("(106)", "and their rates", "representations.convert_jacobian_rate", max(jac_rate)),
        Residual("(107)*", "0X_j = Ad_{-r_j} J^s_j", JACOBIANS, relative(shifted, s.X.T)),
        Residual(
            "(111), (112)", "all twists at once", f"{TWISTS}, {FACTORS}",
            relative(f.G @ f.S @ v, s.V["body"][:, 0].ravel()),
        ),
        Residual(
            "(113)-(115)", "the bracket is the commutator", "se3.ad, se3.hat",
            relative(se3.hat(br(X, Z)), h @ se3.hat(Z) - se3.hat(Z) @ h),
        ),
        Residual("(116)*", "Jacobi's identity", "se3.ad", float(np.abs(numbers[0]).max() / numbers[1])),
        Residual("(117)", "Euler's formula for screws", f"se3.ad, {TWISTS}", relative(euler, br(V["body"], Z))),
        Residual("(120)", "wrenches keep their power", WRENCH, max(power)),
    ]  # fmt: skip


def unhat(A) -> np.ndarray:
    return np.array([A[2, 1], A[0, 2], A[1, 0], *A[:3, 3]])


def section(rows, *body: int) -> Section:
    """A section with `rows` of random chains. Rows about one body take its number from the end: 0 is the last."""

    def of(seed: int) -> list[Residual]:
        c = case(seed)
        s = Bodies(c)
        return rows(c, s, *(s.n - 1 - k for k in body))

    return of


SECTIONS: tuple[Section, ...] = (
    section(body_fixed, 0),
    section(spatial, 0),
    section(hybrid_partials, 0),
    section(hybrid, 0),
    section(mixed, 0),
    section(one_body, 1),
    section(body_matrices, 1),
    section(centre_of_mass, 1),
    section(recursions),
    section(closed),
    lambda seed: derivatives(case(seed)),
    section(appendix),
)


def table(seeds=range(3)) -> list[Residual]:
    return tabulate(SECTIONS, seeds)


def figure(path: Path) -> None:
    """Angular and linear acceleration and jerk of the Panda's last link, on one motion."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    robot, t = models.panda(), np.linspace(0.0, 2.0, 300)
    rng = np.random.default_rng(3)
    q0, size, rate, phase = (
        rng.uniform(-0.5, 0.5, 7),
        rng.uniform(0.2, 0.5, 7),
        rng.uniform(1, 3, 7),
        rng.uniform(0, 6, 7),
    )
    angle = t[:, None] * rate + phase
    q = q0 + size * np.sin(angle)
    rates = np.stack([size * rate**k * np.sin(angle + k * np.pi / 2) for k in (1, 2, 3)], 1)
    fig = Figure(figsize=(10.5, 6.0), layout="constrained")
    FigureCanvasAgg(fig)
    axes = fig.subplots(2, 2, sharex=True)
    for k, form in enumerate(FORMS):
        V = higher_order_kinematics.twist_derivatives(robot, q, rates, robot.body_names[-1], form)
        for row, order in enumerate((1, 2)):
            for column, part in enumerate((slice(0, 3), slice(3, 6))):
                style = {"lw": 3.5, "alpha": 0.4} if form in ("body", "hybrid") else {"lw": 1.2}
                axes[row, column].plot(t, np.linalg.norm(V[:, order, part], axis=1), color=f"C{k}", label=form, **style)
    labels = ((r"rad/s$^2$", r"m/s$^2$"), (r"rad/s$^3$", r"m/s$^3$"))
    for row, what in enumerate(("acceleration", "jerk")):
        for column, part in enumerate(("angular", "linear")):
            axes[row, column].set(title=f"{part} part of the {what}", ylabel=labels[row][column], ylim=(0, None))
            axes[row, column].grid(alpha=0.3)
    for ax in axes[1]:
        ax.set_xlabel("t [s]")
    axes[0, 0].legend(title="representation")
    path.parent.mkdir(exist_ok=True)
    fig.savefig(path, dpi=130)


def main() -> None:
    show("Mueller 2018 (* corrected)", table())
    target = Path("out/mueller_2018.png")
    figure(target)
    print(f"figure: {target}")


if __name__ == "__main__":
    main()
