"""Park, Bobrow and Ploen 1995, "A Lie group formulation of robot dynamics": each numbered result with its residual.

The residuals are relative, the worst over random chains of six joints; * marks equations corrected as in
docs/formulas.md. Then section 5: the curvature of the kinetic-energy metric, and minimum-energy paths by exact
gradients, with a figure in out/.

    python experiments/papers/park_bobrow_ploen_1995.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.optimize import minimize

import geomctrl as gc
from geomctrl import closed_forms, factored, inertia, models, se3, so3
from geomctrl.terms import curvature as curvature_
from geomctrl.terms import higher_order_kinematics

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.residuals import Case, Residual, case, gradient, relative, show, worst

# --- sections 2 and the appendix: SE(3), one body ----------------------------------------------------------------


def geometry_of_motions(seed: int) -> list[Residual]:
    """Section 2, and the appendix's equations of one body."""
    rng = np.random.default_rng(seed)
    x, y, z, V, A = rng.normal(size=(5, 6))
    X, Y = se3.exp(rng.normal(size=6)), se3.exp(rng.normal(size=6))
    Theta, b, m, f = X[:3, :3], X[:3, 3], z[:3], z[3:]
    hx, hy = se3.hat(x), se3.hat(y)
    S = np.concatenate((x[:3] / np.linalg.norm(x[:3]), x[3:]))  # a unit axis
    phi, W = 1.3, so3.hat(S[:3])
    R = np.eye(3) + np.sin(phi) * W + (1 - np.cos(phi)) * W @ W  # (16)
    p = (phi * np.eye(3) + (1 - np.cos(phi)) * W + (phi - np.sin(phi)) * W @ W) @ S[3:]  # (17)
    moved = np.linalg.inv(se3.Ad(X)) @ np.concatenate((f, m))  # (9)
    dual = se3.Ad(X).T @ z  # (11)
    swapped = np.linalg.inv(X) @ np.block([[so3.hat(f), m[:, None]], [np.zeros((1, 4))]]) @ X  # (10)
    pi = inertia.from_com(2.0, y[:3], np.diag((0.7, 0.8, 0.9)))
    J, r, I = inertia.spatial(pi), so3.hat(y[:3]), np.diag((0.7, 0.8, 0.9))
    (w, v), (w_rate, v_rate) = np.split(V, 2), np.split(A, 2)
    a_com = v_rate + np.cross(w, v) + np.cross(w_rate, y[:3]) + np.cross(w, np.cross(w, y[:3]))  # (76), (77)
    force = 2.0 * a_com  # (74)
    moment = I @ w_rate + np.cross(w, I @ w) + 2.0 * np.cross(y[:3], a_com)  # (75)
    geometric = J @ A - se3.ad(V).T @ J @ V
    expanded = (  # (82), (83)
        I @ w_rate - 2.0 * r @ r @ w_rate + 2.0 * r @ v_rate + np.cross(w, I @ w)
        - 2.0 * np.cross(w, r @ r @ w) + 2.0 * np.cross(w, r @ v) + 2.0 * np.cross(v, np.cross(w, y[:3]))
    )  # fmt: skip
    return [
        Residual("(1)", "the bracket of se(3) is the commutator", relative(se3.hat(se3.ad(x) @ y), hx @ hy - hy @ hx)),
        Residual("(2), (3)", "Ad_X x = X x X^-1", relative(se3.hat(se3.Ad(X) @ x), X @ hx @ np.linalg.inv(X))),
        Residual("(2), (3)", "Ad_X Ad_Y = Ad_XY", relative(se3.Ad(X) @ se3.Ad(Y), se3.Ad(X @ Y))),
        Residual("(4)", "Ad* pairs wrenches with moved twists", relative((se3.Ad(X).T @ z) @ x, z @ (se3.Ad(X) @ x))),
        Residual(
            "(5)-(7)", "ad* is the transpose of the bracket", relative((se3.ad(x).T @ z) @ y, z @ (se3.ad(x) @ y))
        ),
        Residual("(9), (11)", "forces move like angular velocities", relative(np.roll(moved, 3), dual)),
        Residual("(10)", "the same as a matrix", relative(se3.vee(swapped), moved)),
        Residual("(11)", "m' = Theta^T (m - b x f)", relative(dual[:3], Theta.T @ (m - np.cross(b, f)))),
        Residual(
            "(15)-(17)", "closed form of the exponential", relative(np.column_stack((R, p)), expm(phi * se3.hat(S))[:3])
        ),
        Residual(
            "(21), (28)",
            "J_i from mass, centre and inertia",
            relative(np.block([[I - 2 * r @ r, 2 * r], [-2 * r, 2 * np.eye(3)]]), J),
        ),
        Residual("(74), (78), (81)", "Newton: the force of J Vdot - ad* J V", relative(geometric[3:], force)),
        Residual("(75)-(80)", "Euler: its moment about the frame's origin", relative(geometric[:3], moment)),
        Residual("(82)*, (83)*", "the same expanded", relative(expanded, moment)),
    ]


# --- sections 2.4 to 4: chains -----------------------------------------------------------------------------------


def newton_euler(robot: gc.Robot, q, v, a):
    """PBP (22)-(27), corrected, on arrays: (tau, V, Vdot)."""
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
    return np.array([robot.joints[i].S[:, 0] @ F[i] for i in range(n)]), V, A  # (27)


def chain(c: Case) -> list[Residual]:
    """Sections 2.4, 3 and 4."""
    robot, q, v, a, _ = c
    n, name = robot.nv, robot.body_names[-1]
    f, P, M = factored.factors(robot, q, v), closed_forms.product_of_exponentials(robot, q), robot.mass_matrix(q)
    T, home = robot.pose(q, name), robot.pose(robot.neutral(), name)
    A = P.A[np.arange(6 * n).reshape(n, 6), np.arange(n)[:, None]]  # the screws A_i, row by row
    B = A @ se3.Ad(np.linalg.inv(home)).T  # (14)
    product = np.eye(4)
    for Ai, x in zip(A, q):
        product = product @ expm(se3.hat(Ai) * x)
    other = home.copy()
    for Bi, x in zip(B, q):
        other = other @ expm(se3.hat(Bi) * x)
    columns, tip = [], np.eye(4)  # (18): Ad of e^{-B_n x_n} ... e^{-B_{i+1} x_{i+1}} on B_i
    for Bi, x in zip(B[::-1], q[::-1]):
        columns.insert(0, se3.Ad(tip) @ Bi)
        tip = tip @ expm(-se3.hat(Bi) * x)
    W = (P.L @ P.A).reshape(n, 6, n)  # W_k column i: Ad_k^{i+1}(A_i)
    D = closed_forms._diagonal(P.D)
    tau, V, V_rate = newton_euler(robot, q, v, a)
    entries = [[sum(W[k, :, i] @ D[k] @ W[k, :, j] for k in range(max(i, j), n)) for j in range(n)] for i in range(n)]
    energy = 0.5 * sum((W[k] @ v) @ D[k] @ (W[k] @ v) for k in range(n))  # (39)
    Gamma = closed_forms.product_christoffel_symbols(robot, q)
    dM = gradient(lambda x: factored.mass_matrix(robot, x), q)
    by_definition = 0.5 * (np.einsum("kji->ijk", dM) + np.einsum("kij->ijk", dM) - dM)  # (52)
    bias = np.einsum("ijk,i,j->k", Gamma, v, v)
    g = closed_forms.product_gravity_force(robot, q)
    screws = (f.G @ f.S).reshape(n, 6, n)
    poses = np.array([robot.pose(q, b) for b in robot.body_names])
    com_home = inertia.transform(closed_forms._homes(robot), robot.parameters)
    Q_inverse = np.linalg.inv(P.Q)
    height = gradient(lambda x: potential(robot, closed_forms.product_of_exponentials(robot, x).F, com_home), q)
    V_bodies = np.stack(
        [higher_order_kinematics.twist_derivatives(robot, q, np.stack((v, a)), b) for b in robot.body_names]
    )
    gravity = np.concatenate((np.zeros(3), -robot.gravity))
    lifted = V_rate - np.array([se3.Ad(se3.inverse(Ti)) @ gravity for Ti in poses])  # without the base's acceleration
    return [
        Residual("(12), (13), (30)", "f = e^{A_1 x_1} ... e^{A_n x_n} M", relative(product @ home, T)),
        Residual("(14)", "f = M e^{B_1 x_1} ... e^{B_n x_n}", relative(other, T)),
        Residual(
            "(18)-(20)",
            "the Jacobian's columns from the B_i",
            relative(np.column_stack(columns), robot.jacobian(q, name)),
        ),
        Residual("(22)-(27)*", "the recursion", relative(tau, robot.inverse_dynamics(q, v, a))),
        Residual("(29)", "M qdd + Gamma qd qd + phi", relative(M @ a + bias + g, tau)),
        Residual("(31)", "f_i = e^{A_1 x_1} ... e^{A_i x_i} M_i", relative(P.F @ closed_forms._homes(robot), poses)),
        Residual(
            "(33), (34), (38)*",
            "body-fixed velocities",
            relative(W @ v, np.stack([se3.Ad(h) @ Vi for h, Vi in zip(closed_forms._homes(robot), V)])),
        ),
        Residual("(35), (36), (39)*", "kinetic energy", relative(energy, robot.kinetic_energy(q, v))),
        Residual("(32)*", "T = 1/2 sum m_ij xd_i xd_j", relative(0.5 * v @ M @ v, energy)),
        Residual("(37), (42)", "Ad_j^i as a matrix", relative(ad_map(A, q, 1, n - 1), P.L[6 * (n - 1) :, :6])),
        Residual("(40)", "m_ij = sum <Ad_k^{i+1} A_i, Ad_k^{j+1} A_j>_k", relative(np.array(entries), M)),
        Residual("(41)-(46)", "M = A^T L^T D L A", relative(closed_forms.product_mass_matrix(robot, q), M)),
        Residual("(47)-(51)", "M = S^T G^T J G S", relative(f.S.T @ f.G.T @ f.J @ f.G @ f.S, M)),
        Residual("(50)*", "A = Q S", relative(P.Q @ f.S, P.A)),
        Residual("(50)*", "L = Q G Q^-1", relative(P.Q @ f.G @ Q_inverse, P.L)),
        Residual("(50)*", "D = Q^-T J Q^-1", relative(Q_inverse.T @ f.J @ Q_inverse, P.D)),
        Residual("(52)", "Gamma is the metric's", relative(curvature_.christoffel_symbols(robot, q), by_definition)),
        Residual("(53)", "d/dx_k Ad_j^i", first_derivative(A, q)),
        Residual("(54)*", "d/dx_l d/dx_k Ad_j^i", second_derivative(A, q)),
        Residual("(55)-(57)*", "Gamma by three cases", relative(Gamma, by_definition)),
        Residual("(58)*", "phi is the gradient of the potential", relative(height, g)),
        Residual("(59)*", "phi by products of exponentials", relative(g, robot.gravity_force(q))),
        Residual(
            "(65)",
            "M is the pullback of the bodies' inertias",
            relative(np.einsum("kai,kab,kbj->ij", screws, closed_forms._diagonal(f.J), screws), M),
        ),
        Residual(
            "(66)",
            "the curvature from Gamma's derivatives",
            relative(curvature_.riemann_curvature(robot, q), curvature(robot, q)),
        ),
        Residual("(67)-(70)", "velocities", relative(V, V_bodies[:, 0])),
        Residual("(71)-(73)*", "accelerations", relative(lifted, V_bodies[:, 1])),
    ]


def potential(robot: gc.Robot, F: np.ndarray, home_parameters: np.ndarray) -> np.ndarray:
    """U = -sum m_i g . c_i from the products of exponentials F (n, 4, 4): (58). Takes complex F."""
    first = inertia.pseudo(home_parameters)[:, :, 3]
    return -np.einsum("a,iab,ib->", robot.gravity, F[:, :3], first)


def ad_map(A, x, i: int, j: int) -> np.ndarray:
    """The matrix of Ad_j^i (37), joints counted from 0; takes complex x."""
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


def first_derivative(A, q) -> float:
    """(53) for all k and a few i, j, as differences from the complex step."""
    X, errors = np.arange(1.0, 7.0), []
    for i, j in ((0, len(q) - 1), (1, 3), (2, 2)):
        exact = gradient(lambda x, i=i, j=j: ad_map(A, x, i, j) @ X, q)
        printed = np.stack([bracket_sequence(A, q, i, j, [k], X) for k in range(len(q))], -1)
        errors.append(relative(printed, exact))
    return max(errors)


def second_derivative(A, q) -> float:
    """(54) for all k, l and a few i, j."""
    X, n, errors = np.arange(1.0, 7.0), len(q), []
    for i, j in ((0, n - 1), (1, 3)):
        for k in range(n):
            exact = gradient(lambda x, i=i, j=j, k=k: bracket_sequence(A, x, i, j, [k], X), q)
            printed = np.stack([bracket_sequence(A, q, i, j, [k, l], X) for l in range(n)], -1)
            errors.append(relative(printed, exact, 1.0))
    return max(errors)


def curvature(robot: gc.Robot, q) -> np.ndarray:
    """R_ijkl by (66), Gamma from (55)-(57) and its derivatives by the complex step."""
    Gamma = closed_forms.product_christoffel_symbols(robot, q)
    d = gradient(lambda x: closed_forms.product_christoffel_symbols(robot, x), q)  # [i, j, k, l]: dGamma_ijk/dx_l
    raised = Gamma @ np.linalg.inv(robot.mass_matrix(q))
    R = np.einsum("jlik->ijkl", d) - np.einsum("jkil->ijkl", d)
    return R + np.einsum("ilr,jkr->ijkl", Gamma, raised) - np.einsum("ikr,jlr->ijkl", Gamma, raised)


def two_joints(c: Case) -> list[Residual]:
    """The example of section 4.3.1, and the planar arm's curvature in closed form."""
    robot, q, v, _, _ = c
    P = closed_forms.product_of_exponentials(robot, q)
    D1, D2 = closed_forms._diagonal(P.D)
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
        Residual("(60)", "M of two joints", relative(np.array(M), robot.mass_matrix(q))),
        Residual(
            "(61)-(64)*",
            "C of two joints, with Mdot - 2C skew",
            relative(C, robot.coriolis_matrix(q, v, "christoffel")),
        ),
        Residual(
            "(66)",
            "curvature of the planar arm",
            relative(curvature_.sectional_curvature(arm, x, [1.0, 0.0], [0.0, 1.0]), K),
        ),
    ]


# --- section 5: minimum-energy paths -----------------------------------------------------------------------------


class Geodesic(NamedTuple):
    """A path q(t), t from 0 to 1, that minimises the energy integral of T = 1/2 v . M v."""

    q0: np.ndarray
    q1: np.ndarray
    coefficients: np.ndarray  # (degree, nv) in `basis`
    energy: float
    straight: float  # the energy of the straight line
    iterations: int

    def __call__(self, t):
        """q, v, a (..., nv) at times t (...)."""
        t = np.asarray(t)[..., None]
        phi = basis(t[..., 0], len(self.coefficients))
        d = self.q1 - self.q0
        values = [np.einsum("...k,kn->...n", p, self.coefficients) for p in phi]
        return self.q0 + t * d + values[0], d + values[1], values[2]


def basis(t, degree: int):
    """Values, first and second derivatives (..., degree) of polynomials that vanish at 0 and 1.

    Their first derivatives are Legendre's polynomials from the first on, orthonormal on [0, 1].
    """
    from numpy.polynomial import legendre

    x, k = 2.0 * np.asarray(t) - 1.0, np.arange(1, degree + 1)
    P, scale = legendre.legvander(x, degree + 1).reshape(*x.shape, -1), np.sqrt(2.0 * k + 1.0)
    slopes = np.moveaxis(legendre.legval(x, legendre.legder(np.eye(degree + 2))), 0, -1)
    return (P[..., k + 1] - P[..., k - 1]) / (2.0 * scale), scale * P[..., k], 2.0 * scale * slopes[..., k]


def action(robot: gc.Robot, q0, q1, coefficients, nodes: int):
    """(energy, its gradient (degree, nv)): Gauss quadrature of T along the path, and the exact derivative of that.

    dT/dv = M v and dT/dq = C^T v with the Christoffel-consistent C, so no derivative of M is formed.
    """
    x, weights = np.polynomial.legendre.leggauss(nodes)
    t, weights = 0.5 * (x + 1.0), 0.5 * weights
    phi, rate, _ = basis(t, len(coefficients))
    q = q0 + t[:, None] * (q1 - q0) + phi @ coefficients
    v = (q1 - q0) + rate @ coefficients
    terms = robot.terms(q, v, "christoffel")
    p = (terms.M @ v[..., None])[..., 0]
    force = (terms.C.swapaxes(1, 2) @ v[..., None])[..., 0]
    energy = 0.5 * weights @ (v * p).sum(1)
    return energy, phi.T @ (weights[:, None] * force) + rate.T @ (weights[:, None] * p)


def geodesic(robot: gc.Robot, q0, q1, degree: int = 30, nodes: int = 60) -> Geodesic:
    """The path of least energy between two configurations, a polynomial that begins as the straight line."""
    q0, q1, shape = np.asarray(q0, float), np.asarray(q1, float), (degree, robot.nv)
    straight = action(robot, q0, q1, np.zeros(shape), nodes)[0]
    # in units of a mean mass matrix the Hessian is about the identity, which is what BFGS begins with
    mean = robot.mass_matrix(q0 + np.linspace(0, 1, 20)[:, None] * (q1 - q0)).mean(0)
    unit = np.linalg.inv(np.linalg.cholesky(mean / straight)).T

    def cost(y):
        E, gradient = action(robot, q0, q1, y.reshape(shape) @ unit.T, nodes)
        return E / straight, (gradient @ unit).ravel() / straight

    found = minimize(
        cost, np.zeros(degree * robot.nv), jac=True, method="BFGS", options={"gtol": 1e-8, "maxiter": 2000}
    )
    return Geodesic(q0, q1, found.x.reshape(shape) @ unit.T, found.fun * straight, straight, found.nit)


EXAMPLES = {  # robot, from, to, degree
    "two-link": (models.two_link, (-1.0, 2.6), (1.0, -1.2), 70),
    "panda": (models.panda, (-0.8, -0.6, 0.5, -2.4, 0.4, 1.2, 0.0), (0.9, 0.7, -0.6, -0.7, -0.8, 2.4, 1.0), 45),
}


def minimum_energy(name: str) -> tuple[Geodesic, list[Residual]]:
    """A minimum-energy path and what shows that it is one: how far it is from being a geodesic measures the degree."""
    make, q0, q1, degree = EXAMPLES[name]
    robot = make().with_gravity((0, 0, 0))
    path = geodesic(robot, q0, q1, degree, 2 * degree)
    q, v, a = path(np.linspace(0.0, 1.0, 101))
    energies = robot.kinetic_energy(q, v)
    turn = curvature_.covariant_derivative(robot, q, v, v, a)
    size = np.sqrt(curvature_.inner_product(robot, q, turn, turn)).max() / (
        2.0 * path.energy
    )  # curvature of the path, 1 / length
    (start, v0, _), n = path(0.0), robot.nv
    end = solve_ivp(  # the torque-free robot, thrown with the path's initial velocity
        lambda t, y: np.concatenate((y[n:], robot.forward_dynamics(y[:n], y[n:], np.zeros(n)))),
        (0.0, 1.0), np.concatenate((start, v0)), method="DOP853", rtol=1e-11, atol=1e-12,
    ).y[:n, -1]  # fmt: skip
    rows = [
        Residual("section 5", f"{name}: v grad_v v = 0 along the path", float(size)),
        Residual("section 5", f"{name}: constant kinetic energy", float(np.ptp(energies) / energies.mean())),
        Residual("section 5", f"{name}: the torque-free robot arrives", relative(end, np.asarray(q1))),
    ]
    return path, rows


def exact_gradient(name: str, seed: int = 0) -> Residual:
    """The gradient of the discretised energy, against the complex step along a random direction."""
    make, q0, q1, _ = EXAMPLES[name]
    robot, rng = make(), np.random.default_rng(seed)
    x, y = 0.3 * rng.normal(size=(2, 5, robot.nv))
    t, weights = np.polynomial.legendre.leggauss(12)
    t, weights = 0.5 * (t + 1.0), 0.5 * weights
    phi, rate, _ = basis(t, 5)

    def energy(c):
        q = q0 + t[:, None] * np.subtract(q1, q0) + phi @ c
        v = np.subtract(q1, q0) + rate @ c
        return 0.5 * weights @ np.einsum("ti,tij,tj->t", v, factored.mass_matrix(robot, q), v)

    exact = np.imag(energy(x + 1e-30j * y)) / 1e-30
    ours = (action(robot, np.asarray(q0), np.asarray(q1), x, 12)[1] * y).sum()
    return Residual("section 5", f"{name}: the gradient of the energy of paths", relative(ours, exact))


def table(seeds=range(4)) -> list[Residual]:
    """All results but the optimised paths, which converge instead of being exact."""
    rows = worst(geometry_of_motions(s) for s in seeds) + worst(chain(case(s)) for s in seeds)
    return rows + worst(two_joints(case(s, 2)) for s in seeds) + [exact_gradient(name) for name in EXAMPLES]


def figure(path: Path, geodesics: dict[str, Geodesic]) -> None:
    """Geodesics of the two-link arm over its curvature, its two paths in space, and the Panda's energy."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    fig = Figure(figsize=(13.5, 4.4), layout="constrained")
    FigureCanvasAgg(fig)
    joint, space, power = fig.subplots(1, 3)
    robot, found, t = models.two_link().with_gravity((0, 0, 0)), geodesics["two-link"], np.linspace(0, 1, 200)
    q2 = np.linspace(-np.pi, np.pi, 241)
    q = np.stack((np.zeros_like(q2), q2), -1)
    ones, zeros = np.ones_like(q2), np.zeros_like(q2)
    K = curvature_.sectional_curvature(robot, q, np.stack((ones, zeros), -1), np.stack((zeros, ones), -1))
    shade = joint.imshow(
        np.repeat(K[:, None], 2, 1), origin="lower", aspect="auto", extent=(-np.pi, np.pi, -np.pi, np.pi),
        cmap="RdBu_r", vmin=-abs(K).max(), vmax=abs(K).max(),
    )  # fmt: skip
    fig.colorbar(shade, ax=joint, label="sectional curvature K [1/(kg m$^2$)]")
    for angle in np.linspace(0, 2 * np.pi, 24, endpoint=False):
        v0 = np.array([np.cos(angle), np.sin(angle)])
        v0 *= np.sqrt(2.0 * found.energy / curvature_.inner_product(robot, found.q0, v0, v0))
        y = solve_ivp(
            lambda t, y: np.concatenate((y[2:], robot.forward_dynamics(y[:2], y[2:], np.zeros(2)))),
            (0, 1), np.concatenate((found.q0, v0)), t_eval=t, rtol=1e-8, atol=1e-9,
        ).y  # fmt: skip
        joint.plot(y[0], y[1], color="0.45", lw=0.6, label="geodesics of the same length" if angle == 0 else None)
    joint.plot(*np.stack((found.q0, found.q1)).T, "k--", lw=1.4, label=f"straight, {found.straight:.2f} J")
    joint.plot(*found(t)[0].T, "k", lw=2.0, label=f"least energy, {found.energy:.2f} J")
    joint.set(
        xlabel="$q_1$ [rad]", ylabel="$q_2$ [rad]", title="two-link arm", xlim=(-np.pi, np.pi), ylim=(-np.pi, np.pi)
    )
    joint.legend(fontsize=8, loc="lower left")
    for style, x in (("k--", found.q0 + t[:, None] * (found.q1 - found.q0)), ("k", found(t)[0])):
        tip = robot.pose(x, "tip")[:, :3, 3]
        space.plot(tip[:, 0], tip[:, 2], style, label="straight in q" if style == "k--" else "least energy")
    for s in np.linspace(0, 1, 9):
        x = found(s)[0]
        elbow, tip = robot.pose(x, "link2")[:3, 3], robot.pose(x, "tip")[:3, 3]
        space.plot([0, elbow[0], tip[0]], [0, elbow[2], tip[2]], "o-", color="C0", ms=3, lw=1, alpha=0.25 + 0.6 * s)
    space.set(xlabel="x [m]", ylabel="z [m]", title="the arm along the path of least energy", aspect="equal")
    space.legend(fontsize=8)
    panda, found = models.panda(), geodesics["panda"]
    line = np.broadcast_to(found.q1 - found.q0, (len(t), 7))
    power.plot(
        t,
        panda.kinetic_energy(found.q0 + t[:, None] * line, line),
        "k--",
        label=f"straight, mean {found.straight:.2f} J",
    )
    power.plot(t, panda.kinetic_energy(*found(t)[:2]), "k", label=f"least energy, {found.energy:.2f} J")
    power.set(xlabel="t [s]", ylabel="kinetic energy [J]", title="Panda", ylim=(0, None))
    power.legend(fontsize=8)
    path.parent.mkdir(exist_ok=True)
    fig.savefig(path, dpi=130)


def main() -> None:
    show("Park, Bobrow, Ploen 1995 (* corrected)", table())
    geodesics, rows = {}, []
    for name in EXAMPLES:
        geodesics[name], more = minimum_energy(name)
        rows += more
    show("Paths of least energy, by polynomials", rows)
    for name, g in geodesics.items():
        print(f"{name}: {g.energy:.6f} J, straight line {g.straight:.6f} J, {g.iterations} steps of BFGS")
    target = Path("out/park_bobrow_ploen_1995.png")
    figure(target, geodesics)
    print(f"figure: {target}")


if __name__ == "__main__":
    main()
