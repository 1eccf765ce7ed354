"""Park, Bobrow and Ploen 1995, "A Lie group formulation of robot dynamics": each numbered result with its residual.

The residuals are relative, the largest over random chains of six joints; * marks equations that are corrected as in
docs/reference/formulas.md. Section 5 proposes paths of least energy by exact gradients; minimum_energy_paths.py
computes them.

    python experiments/papers/park_bobrow_ploen_1995.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.linalg import expm

import geomctrl as gc
from geomctrl import inertia, models, se3, so3
from geomctrl.papers import closed_forms, curvature, factored, higher_order_kinematics, representations

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.residuals import Case, Residual, Section, case, gradient, relative, show, tabulate

POE = "closed_forms.product_of_exponentials"
NEWTON_EULER = "representations.newton_euler"
TWISTS = "higher_order_kinematics.twist_derivatives"
FACTORS = "factored.factors"
SYMBOLS = "closed_forms.product_christoffel_symbols"
GRAVITY = "closed_forms.product_gravity_force"
FIRST, SECOND = "closed_forms.adjoint_derivatives", "closed_forms.adjoint_second_derivatives"

# --- sections 2 and the appendix: SE(3), one body ----------------------------------------------------------------


def geometry_of_motions(seed: int) -> list[Residual]:
    """Section 2: SE(3), and the inertia of one body."""
    rng = np.random.default_rng(seed)
    x, y, z, V = rng.normal(size=(4, 6))
    X, Y = se3.exp(rng.normal(size=6)), se3.exp(rng.normal(size=6))
    Theta, b, (m, f) = X[:3, :3], X[:3, 3], np.split(z, 2)
    (w1, v1), (w2, v2) = np.split(x, 2), np.split(y, 2)
    hx, hy = se3.hat(x), se3.hat(y)
    moved_twist = np.concatenate((Theta @ w1, np.cross(b, Theta @ w1) + Theta @ v1))  # (2)
    dual = np.concatenate((Theta.T @ m + Theta.T @ so3.hat(b).T @ f, Theta.T @ f))  # (4)
    bracket = np.concatenate((np.cross(w1, w2), np.cross(w1, v2) - np.cross(w2, v1)))  # (5)
    small_dual = np.concatenate((-np.cross(w1, m) - np.cross(v1, f), -np.cross(w1, f)))  # (7)
    S = np.concatenate((w1 / np.linalg.norm(w1), v1))  # a unit axis
    phi, W = 1.3, so3.hat(S[:3])
    R = np.eye(3) + np.sin(phi) * W + (1 - np.cos(phi)) * W @ W  # (16)
    p = (phi * np.eye(3) + (1 - np.cos(phi)) * W + (phi - np.sin(phi)) * W @ W) @ S[3:]  # (17)
    closed = np.column_stack((R, p))  # (15)
    moved = np.linalg.inv(se3.Ad(X)) @ np.concatenate((f, m))  # (9)
    matrix = np.linalg.inv(X) @ np.block([[so3.hat(f), m[:, None]], [np.zeros((1, 4))]]) @ X  # (10)
    mass, I = 2.0, np.diag((0.7, 0.8, 0.9))
    J, r = inertia.spatial(inertia.from_com(mass, y[:3], I)), so3.hat(y[:3])
    printed = np.block([[I - mass * r @ r, mass * r], [-mass * r, mass * np.eye(3)]])  # (21)
    featherstone = np.block([[-mass * r, mass * np.eye(3)], [I - mass * r @ r, mass * r]])  # (28)
    return [
        Residual(
            "(1)", "the bracket of se(3) is the commutator", "se3.ad, se3.hat",
            relative(se3.hat(se3.ad(x) @ y), hx @ hy - hy @ hx),
        ),
        Residual(
            "(2), (3)", "Ad_X x = X x X^-1", "se3.Ad",
            max(relative(se3.Ad(X) @ x, moved_twist), relative(se3.hat(se3.Ad(X) @ x), X @ hx @ np.linalg.inv(X))),
        ),
        Residual("(2), (3)", "Ad_X Ad_Y = Ad_XY", "se3.Ad", relative(se3.Ad(X) @ se3.Ad(Y), se3.Ad(X @ Y))),
        Residual("(4)", "Ad*_X (m, f), the transpose", "se3.Ad", relative(se3.Ad(X).T @ z, dual)),
        Residual("(5), (6)", "ad_x y in vectors", "se3.ad", relative(se3.ad(x) @ y, bracket)),
        Residual("(7)", "ad*_x (m, f), the transpose", "se3.ad", relative(se3.ad(x).T @ z, small_dual)),
        Residual("(8), (10)", "a wrench as a matrix of se(3)", "se3.Ad, se3.hat", relative(se3.hat(moved), matrix)),
        Residual("(9)", "forces move like angular velocities", "se3.Ad", relative(np.roll(moved, 3), se3.Ad(X).T @ z)),
        Residual(
            "(11)", "m' = Theta^T (m - b x f)", "se3.Ad",
            relative(se3.Ad(X).T @ z, np.concatenate((Theta.T @ (m - np.cross(b, f)), Theta.T @ f))),
        ),
        Residual(
            "(15)-(17)", "closed form of the exponential", "se3.exp",
            max(relative(closed, se3.exp(phi * S)[:3]), relative(closed, expm(phi * se3.hat(S))[:3])),
        ),
        Residual(
            "(21)", "J_i from mass, centre and inertia", "inertia.spatial, inertia.from_com",
            relative(printed, J),
        ),
        Residual(
            "(28)", "Featherstone's, in his inner product", "inertia.spatial, inertia.from_com",
            relative(np.roll(V, 3) @ featherstone @ V, V @ J @ V),
        ),
    ]  # fmt: skip


def one_body(seed: int) -> list[Residual]:
    """The appendix: Newton's and Euler's equations of a link."""
    rng = np.random.default_rng(seed)
    V, A, y = rng.normal(size=(3, 6))
    m, I, c = 2.0, np.diag((0.7, 0.8, 0.9)), y[:3]
    (w, v), (w_rate, v_rate), r = np.split(V, 2), np.split(A, 2), so3.hat(c)
    W, W_rate = so3.hat(w), so3.hat(w_rate)
    moment, force = np.split(representations.newton_euler(inertia.from_com(m, c, I), np.eye(4), V, A), 2)
    a_com = v_rate + np.cross(w, v) + np.cross(w_rate, c) + np.cross(w, np.cross(w, c))  # (76), (77)
    return [
        Residual(
            "(74), (76), (77)", "Newton: mass times the acceleration of its centre", NEWTON_EULER,
            relative(m * a_com, force),
        ),
        Residual(
            "(78), (81)", "the same in brackets", NEWTON_EULER,
            relative(m * (v_rate + W @ v + W_rate @ c + W @ W @ c), force),
        ),
        Residual(
            "(75)", "Euler: the moment about the frame's origin", NEWTON_EULER,
            relative(I @ w_rate + np.cross(w, I @ w) + np.cross(c, m * a_com), moment),
        ),
        Residual(
            "(79)", "the same in brackets", NEWTON_EULER,
            relative(I @ w_rate + W @ I @ w + m * r @ (v_rate + W @ v + W_rate @ c + W @ W @ c), moment),
        ),
        Residual(
            "(82)*, (83)*", "the same from J Vdot - ad* J V", NEWTON_EULER,
            relative(
                I @ w_rate - m * r @ r @ w_rate + m * r @ v_rate + W @ I @ w
                - m * W @ r @ r @ w + m * W @ r @ v + m * so3.hat(v) @ W @ c, moment
            ),
        ),
    ]  # fmt: skip


# --- sections 2.4 to 4: chains -----------------------------------------------------------------------------------


def newton_euler(robot: gc.Robot, q, v, a):
    """(22)-(27), corrected, on arrays: tau, and V, Vdot, F of the bodies."""
    n = robot.nbodies
    V, A, F, X = np.zeros((n, 6)), np.zeros((n, 6)), np.zeros((n, 6)), np.zeros((n, 6, 6))
    V_p, A_p = np.zeros(6), np.concatenate((np.zeros(3), -robot.gravity))  # (22)
    for i in range(n):
        S = robot.joints[i].S[:, 0]
        X[i] = se3.Ad(se3.inverse(robot.placements[i] @ se3.exp(S * q[i])))  # (23)
        V[i] = X[i] @ V_p + S * v[i]  # (24)
        A[i] = S * a[i] + X[i] @ A_p + se3.ad(X[i] @ V_p) @ S * v[i]  # (25)
        V_p, A_p = V[i], A[i]
    for i in reversed(range(n)):
        J = inertia.spatial(robot.parameters[i])
        F[i] = J @ A[i] - se3.ad(V[i]).T @ J @ V[i] + (X[i + 1].T @ F[i + 1] if i + 1 < n else 0.0)  # (26)
    return np.array([robot.joints[i].S[:, 0] @ F[i] for i in range(n)]), V, A, F  # (27)


class Exponentials:
    """A chain as sections 2.4 and 4 describe it, at a state."""

    def __init__(self, c: Case):
        robot, q, v, _, _ = c
        n = robot.nv
        self.P = closed_forms.product_of_exponentials(robot, q)
        self.A = self.P.A[np.arange(6 * n).reshape(n, 6), np.arange(n)[:, None]]  # the screws A_i, row by row
        self.homes = [robot.pose(robot.neutral(), name) for name in robot.body_names]  # M_i, in the world
        self.poses = np.array([robot.pose(q, name) for name in robot.body_names])
        self.W = (self.P.L @ self.P.A).reshape(n, 6, n)  # W_k column i: Ad_k^{i+1}(A_i)
        self.velocities = self.W @ v  # (38)
        self.D = np.array([self.P.D[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] for i in range(n)])


def forward_kinematics(c: Case) -> list[Residual]:
    """Section 2.4."""
    robot, q, v, _, _ = c
    e, n, name = Exponentials(c), robot.nv, robot.body_names[-1]
    A, T, home = e.A, e.poses[-1], e.homes[-1]
    B = A @ se3.Ad(np.linalg.inv(home)).T
    frames = product = np.eye(4)
    products, other = [], home
    for M, joint, Ai, Bi, x in zip(robot.placements, robot.joints, A, B, q):
        P = se3.Ad(M) @ joint.S[:, 0]
        frames = frames @ expm(se3.hat(P) * x) @ M  # (12)
        product = product @ expm(se3.hat(Ai) * x)  # (13)
        other = other @ expm(se3.hat(Bi) * x)  # (14)
        products.append(product)
    by_B, by_A, tip_B, tip_A = np.zeros((6, n)), np.zeros((6, n)), np.eye(4), np.eye(4)
    for i in reversed(range(n)):
        by_B[:, i] = se3.Ad(tip_B) @ B[i]  # (18): e^{-B_n x_n} ... B_i ... e^{B_n x_n}
        by_A[:, i] = se3.Ad(tip_A) @ A[i]
        tip_B, tip_A = tip_B @ expm(-se3.hat(B[i]) * q[i]), tip_A @ expm(-se3.hat(A[i]) * q[i])
    conjugated = np.linalg.inv(home) @ se3.hat(by_A @ v) @ home  # (19)
    Jac = robot.jacobian(q, name)
    step = se3.hat(Jac @ v)
    body_fixed = []
    for M, V in zip(e.homes, e.velocities):
        Theta, b = M[:3, :3], M[:3, 3]
        matrix = np.block([[Theta.T, np.zeros((3, 3))], [-so3.hat(Theta.T @ b) @ Theta.T, Theta.T]])  # (34)
        body_fixed.append((se3.Ad(np.linalg.inv(M)) @ V, matrix @ V))
    V = [robot.jacobian(q, x) @ v for x in robot.body_names]
    L = np.block([[ad_map(A, q, j + 1, i) if j <= i else np.zeros((6, 6)) for j in range(n)] for i in range(n)])
    g = np.linalg.inv(products[0]) @ products[-1]  # e^{A_2 x_2} ... e^{A_n x_n}
    H = np.arange(1.0, 7.0)
    return [
        Residual("(12)", "f = e^{P_1 x_1} M_1 ... e^{P_n x_n} M_n", "Robot.pose", relative(frames, T)),
        Residual("(13), (30)", "f = e^{A_1 x_1} ... e^{A_n x_n} M", f"Robot.pose, {POE}", relative(product @ home, T)),
        Residual("(14)", "f = M e^{B_1 x_1} ... e^{B_n x_n}", f"Robot.pose, {POE}", relative(other, T)),
        Residual("(18)", "the Jacobian's columns from the B_i", f"Robot.jacobian, {POE}", relative(by_B, Jac)),
        Residual("(19)", "f^-1 fdot from the A_i", f"Robot.jacobian, {POE}", relative(conjugated, step)),
        Residual(
            "(20)", "the same by Ad_{M^-1}", f"Robot.jacobian, {POE}",
            relative(se3.Ad(np.linalg.inv(home)) @ by_A, Jac),
        ),
        Residual(
            "(31)", "f_i = e^{A_1 x_1} ... e^{A_i x_i} M_i", f"Robot.pose, {POE}",
            max(relative(e.P.F @ e.homes, e.poses), relative(np.array(products) @ e.homes, e.poses)),
        ),
        Residual(
            "(33), (38)*", "body-fixed velocities", f"Robot.jacobian, {POE}",
            relative([x for x, _ in body_fixed], V),
        ),
        Residual("(34)", "the same as a matrix", f"Robot.jacobian, {POE}", relative([x for _, x in body_fixed], V)),
        Residual(
            "(37)", "Ad_j^i H = e^{-A_j x_j} ... H ... e^{A_j x_j}", POE,
            relative(se3.hat(e.P.L[6 * (n - 1) :, :6] @ H), np.linalg.inv(g) @ se3.hat(H) @ g),
        ),
        Residual("(42), (43)", "L of the matrices of Ad_i^{j+1}", POE, relative(L, e.P.L)),
    ]  # fmt: skip


def recursion(c: Case) -> list[Residual]:
    """Section 3 and its derivation in the appendix."""
    robot, q, v, a, _ = c
    tau, V, V_rate, F = newton_euler(robot, q, v, a)
    rates = np.stack((v, a))
    by_series = np.stack([higher_order_kinematics.twist_derivatives(robot, q, rates, b) for b in robot.body_names])
    poses = np.array([robot.pose(q, b) for b in robot.body_names])
    gravity = np.concatenate((np.zeros(3), -robot.gravity))
    lifted = V_rate - np.array(
        [se3.Ad(se3.inverse(T)) @ gravity for T in poses]
    )  # without the acceleration of the base, which stands for gravity
    carried = [se3.Ad(se3.inverse(T) @ U).T @ W for T, U, W in zip(poses[1:], poses, F[1:])]  # Ad* F_{i+1}
    own = representations.newton_euler(robot.parameters, poses, V, V_rate)
    return [
        Residual(
            "(22)-(27)*", "the recursion", "Robot.inverse_dynamics",
            relative(tau, robot.inverse_dynamics(q, v, a)),
        ),
        Residual("(67)-(70)", "velocities", TWISTS, relative(V, by_series[:, 0])),
        Residual("(71)-(73)*", "accelerations", TWISTS, relative(lifted, by_series[:, 1])),
        Residual("(80)", "F_i - Ad* F_{i+1} moves link i", NEWTON_EULER, relative(F[:-1] - carried, own[:-1])),
    ]  # fmt: skip


def mass_matrix(c: Case) -> list[Residual]:
    """Section 4.1, and the pullback of section 4.4."""
    robot, q, v, a, _ = c
    n, e, M = robot.nv, Exponentials(c), robot.mass_matrix(q)
    f, P, W, D = factored.factors(robot, q, v), e.P, e.W, e.D
    entries = [[sum(W[k, :, i] @ D[k] @ W[k, :, j] for k in range(max(i, j), n)) for j in range(n)] for i in range(n)]
    energies = 0.5 * np.einsum("ka,kab,kb->k", e.velocities, D, e.velocities)  # (39)
    printed = []  # (36)
    for pi, home in zip(robot.parameters, e.homes):
        centre = home[:3, :3] @ inertia.com(pi) + home[:3, 3]
        m, b, I_com = pi[0], so3.hat(centre), home[:3, :3] @ inertia.com_tensor(pi) @ home[:3, :3].T
        printed.append(np.block([[I_com - m * b @ b, m * b], [m * b.T, m * np.eye(3)]]))
    each = [0.5 * V @ J @ V for V, J in zip(f.V.reshape(n, 6), inertia.spatial(robot.parameters))]
    screws, Q_inverse = (f.G @ f.S).reshape(n, 6, n), np.linalg.inv(P.Q)
    J = np.array([f.J[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] for i in range(n)])
    tau, g = robot.inverse_dynamics(q, v, a), closed_forms.product_gravity_force(robot, q)
    bias = np.einsum("ijk,i,j->k", closed_forms.product_christoffel_symbols(robot, q), v, v)
    return [
        Residual(
            "(29)", "M qdd + Gamma qd qd + phi", f"Robot.mass_matrix, {SYMBOLS}, {GRAVITY}, Robot.inverse_dynamics",
            relative(M @ a + bias + g, tau),
        ),
        Residual("(32)*", "T = 1/2 sum m_ij xd_i xd_j", "Robot.mass_matrix", relative(0.5 * v @ M @ v, sum(each))),
        Residual("(35), (36), (44)", "the D_i from mass, centre and inertia", POE, relative(printed, D)),
        Residual("(39)*", "the links' kinetic energies", POE, relative(energies, each)),
        Residual(
            "(39)*", "and their sum", f"{POE}, Robot.kinetic_energy",
            relative(energies.sum(), robot.kinetic_energy(q, v)),
        ),
        Residual(
            "(40)", "m_ij = sum <Ad_k^{i+1} A_i, Ad_k^{j+1} A_j>_k", f"{POE}, Robot.mass_matrix",
            relative(np.array(entries), M),
        ),
        Residual(
            "(41)-(46)", "M = A^T L^T D L A", f"{POE}, closed_forms.product_mass_matrix, Robot.mass_matrix",
            max(relative(x, M) for x in (P.A.T @ P.L.T @ P.D @ P.L @ P.A, closed_forms.product_mass_matrix(robot, q))),
        ),
        Residual("(47)-(51)", "M = S^T G^T J G S", FACTORS, relative(f.S.T @ f.G.T @ f.J @ f.G @ f.S, M)),
        Residual("(50)*", "A = Q S", f"{POE}, {FACTORS}", relative(P.Q @ f.S, P.A)),
        Residual("(50)*", "L = Q G Q^-1", f"{POE}, {FACTORS}", relative(P.Q @ f.G @ Q_inverse, P.L)),
        Residual("(50)*", "D = Q^-T J Q^-1", f"{POE}, {FACTORS}", relative(Q_inverse.T @ f.J @ Q_inverse, P.D)),
        Residual(
            "(65)", "M is the pullback of the bodies' inertias", f"{FACTORS}, Robot.mass_matrix",
            relative(np.einsum("kai,kab,kbj->ij", screws, J, screws), M),
        ),
    ]  # fmt: skip


def christoffel(c: Case) -> list[Residual]:
    """Sections 4.2 and 4.3, and the curvature of section 5."""
    robot, q = c.robot, c.q
    e, A = Exponentials(c), Exponentials(c).A
    Gamma, symbols = closed_forms.product_christoffel_symbols(robot, q), curvature.christoffel_symbols(robot, q)
    dM = gradient(lambda x: factored.mass_matrix(robot, x), q)
    by_definition = 0.5 * (np.einsum("kji->ijk", dM) + np.einsum("kij->ijk", dM) - dM)  # (52)
    first, second = closed_forms.adjoint_derivatives(robot, q), closed_forms.adjoint_second_derivatives(robot, q)
    g = closed_forms.product_gravity_force(robot, q)
    com_home = inertia.transform(e.homes, robot.parameters)
    height = gradient(lambda x: potential(robot, closed_forms.product_of_exponentials(robot, x).F, com_home), q)
    return [
        Residual("(52)", "Gamma is the metric's", "curvature.christoffel_symbols", relative(symbols, by_definition)),
        Residual("(53), Prop. 1", "d/dx_k Ad_j^i as printed", FIRST, printed_derivatives(A, q, first, 1)),
        Residual(
            "(53), Prop. 1", "by the complex step", FIRST,
            relative(first, gradient(lambda x: closed_forms.product_of_exponentials(robot, x).L, q)),
        ),
        Residual("(54)*, Prop. 2", "d/dx_l d/dx_k Ad_j^i as printed", SECOND, printed_derivatives(A, q, second, 2)),
        Residual(
            "(54)*, Prop. 2", "by the complex step", SECOND,
            relative(second, gradient(lambda x: closed_forms.adjoint_derivatives(robot, x), q)),
        ),
        Residual("(55)-(57)*", "Gamma by three cases", SYMBOLS, relative(Gamma, by_definition)),
        Residual("(58)*", "phi is the gradient of the potential", GRAVITY, relative(height, g)),
        Residual(
            "(59)*", "phi by products of exponentials", f"{GRAVITY}, Robot.gravity_force",
            relative(g, robot.gravity_force(q)),
        ),
        Residual(
            "(66)", "the curvature from Gamma's derivatives", f"curvature.riemann_curvature, {SYMBOLS}",
            relative(curvature.riemann_curvature(robot, q), curvature_by_steps(robot, q)),
        ),
        Residual(
            "(66)", "the same by Propositions 1 and 2", f"curvature.riemann_curvature, {FIRST}, {SECOND}",
            relative(curvature.riemann_curvature(robot, q), curvature_by_propositions(robot, q)),
        ),
    ]  # fmt: skip


def potential(robot: gc.Robot, F: np.ndarray, home_parameters: np.ndarray) -> np.ndarray:
    """U = -sum m_i g . c_i from the products of exponentials F (n, 4, 4): (58). Takes complex F."""
    first = inertia.pseudo(home_parameters)[:, :, 3]
    return -np.einsum("a,iab,ib->", robot.gravity, F[:, :3], first)


def ad_map(A, x, i: int, j: int) -> np.ndarray:
    """The matrix of Ad_j^i (37), joints counted from 0."""
    out = np.eye(6)
    for k in range(i, j + 1):
        out = factored.Ad_inverse(factored.joint_motion(A[k][:, None], x[k : k + 1])) @ out
    return out


def bracket_sequence(A, x, i: int, j: int, ks: list[int], X: np.ndarray) -> np.ndarray:
    """Ad_j^{k_m}([... Ad_{k_1 - 1}^i(X), A_{k_1}] ..., A_{k_m}]), 0 where a k is outside i..j."""
    if any(not i <= k <= j for k in ks):
        return np.zeros(6)
    start = i
    for k in sorted(ks):
        X = factored.ad(ad_map(A, x, start, k - 1) @ X) @ A[k]
        start = k
    return ad_map(A, x, start, j) @ X


def printed_derivatives(A, q, library: np.ndarray, order: int) -> float:
    """Compare printed (53) or (54), for some i, j and all k, l, with blocks of dL: Ad_j^i is block (j, i - 1) of L."""
    X, n, errors = np.arange(1.0, 7.0), len(q), []
    for i, j in ((1, n - 1), (2, 4), (3, 3)):
        block = np.einsum("xy...,y->x...", library[6 * j : 6 * j + 6, 6 * i - 6 : 6 * i], X)
        printed = np.zeros_like(block)
        for ks in np.ndindex(*(n,) * order):
            printed[(slice(None), *ks)] = bracket_sequence(A, q, i, j, list(ks), X)
        errors.append(relative(block, printed))
    return max(errors)


def riemann(robot: gc.Robot, q, Gamma: np.ndarray, d: np.ndarray) -> np.ndarray:
    """R_ijkl by (66) from Gamma and d [i, j, k, l], the derivative of Gamma_ijk by x_l."""
    raised = Gamma @ np.linalg.inv(robot.mass_matrix(q))
    R = np.einsum("jlik->ijkl", d) - np.einsum("jkil->ijkl", d)
    return R + np.einsum("ilr,jkr->ijkl", Gamma, raised) - np.einsum("ikr,jlr->ijkl", Gamma, raised)


def curvature_by_steps(robot: gc.Robot, q) -> np.ndarray:
    """(66) with Gamma from (55)-(57) and its derivatives by the complex step."""
    d = gradient(lambda x: closed_forms.product_christoffel_symbols(robot, x), q)
    return riemann(robot, q, closed_forms.product_christoffel_symbols(robot, q), d)


def curvature_by_propositions(robot: gc.Robot, q) -> np.ndarray:
    """(66) with the derivatives of M = A^T L^T D L A by Propositions 1 and 2, without numerical differentiation."""
    P = closed_forms.product_of_exponentials(robot, q)
    W, D = P.L @ P.A, P.D
    dW = np.einsum("xyk,yi->xik", closed_forms.adjoint_derivatives(robot, q), P.A)
    ddW = np.einsum("xykl,yi->xikl", closed_forms.adjoint_second_derivatives(robot, q), P.A)
    dM = np.einsum("xik,xy,yj->ijk", dW, D, W)
    ddM = np.einsum("xikl,xy,yj->ijkl", ddW, D, W) + np.einsum("xik,xy,yjl->ijkl", dW, D, dW)
    dM, ddM = dM + dM.swapaxes(0, 1), ddM + ddM.swapaxes(0, 1)
    Gamma = 0.5 * (np.einsum("kji->ijk", dM) + np.einsum("kij->ijk", dM) - dM)  # (52)
    d = 0.5 * (np.einsum("kjil->ijkl", ddM) + np.einsum("kijl->ijkl", ddM) - ddM)
    return riemann(robot, q, Gamma, d)


def two_joints(c: Case) -> list[Residual]:
    """The example of section 4.3.1, and the planar arm's curvature in closed form."""
    robot, q, v, _, _ = c
    P = closed_forms.product_of_exponentials(robot, q)
    D1, D2 = P.D[:6, :6], P.D[6:, 6:]
    A1, A2 = P.A[:6, 0], P.A[6:, 1]
    Ad = P.L[6:, :6]
    M = [[A1 @ D1 @ A1 + (Ad @ A1) @ D2 @ (Ad @ A1), (Ad @ A1) @ D2 @ A2], [(Ad @ A1) @ D2 @ A2, A2 @ D2 @ A2]]
    moved = Ad @ se3.ad(A1) @ A2
    h, g = moved @ D2 @ (Ad @ A1), moved @ D2 @ A2
    C = np.array([[h * v[1], h * v[0] + g * v[1]], [-h * v[0], 0.0]])
    arm, x = models.two_link((0.8, 0.6), (1.3, 0.7)), np.array([0.4, 1.1])
    a = 1.3 * 0.8**2 / 3 + 0.7 * (0.8**2 + 0.6**2 / 3)
    b, d, c2 = 0.7 * 0.8 * 0.3, 0.7 * 0.6**2 / 3, np.cos(x[1])
    K = b * c2 * ((a - d) * d - b**2) / np.linalg.det(arm.mass_matrix(x)) ** 2
    return [
        Residual("(60)", "M of two joints", f"{POE}, Robot.mass_matrix", relative(np.array(M), robot.mass_matrix(q))),
        Residual(
            "(61)-(64)*", "C of two joints, with Mdot - 2C skew", f"{POE}, Robot.coriolis_matrix",
            relative(C, robot.coriolis_matrix(q, v, "christoffel")),
        ),
        Residual(
            "(66)", "curvature of the planar arm", "curvature.sectional_curvature",
            relative(curvature.sectional_curvature(arm, x, [1.0, 0.0], [0.0, 1.0]), K),
        ),
    ]  # fmt: skip


SECTIONS: tuple[Section, ...] = (
    geometry_of_motions,
    one_body,
    lambda seed: forward_kinematics(case(seed)),
    lambda seed: recursion(case(seed)),
    lambda seed: mass_matrix(case(seed)),
    lambda seed: christoffel(case(seed)),
    lambda seed: two_joints(case(seed, 2)),
)


def table(seeds=range(4)) -> list[Residual]:
    return tabulate(SECTIONS, seeds)


if __name__ == "__main__":
    show("Park, Bobrow, Ploen 1995 (* corrected)", table())
