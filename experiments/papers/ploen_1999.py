"""Ploen 1999, "A skew-symmetric form of the recursive Newton-Euler algorithm": each numbered result with its residual.

The residuals are relative, the largest over random trees of six bodies, some with joints of several degrees of freedom;
* marks equations that are corrected as in docs/reference/formulas.md. The figure in out/ shows how far Mdot - 2C is
from skew for the recursion's own C (25), and for those of (37), of Christoffel and of Cbar = J ad_V - ad_V^T J.

    python experiments/papers/ploen_1999.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.linalg import expm

from geomctrl import inertia, models, se3, so3, testing
from geomctrl.papers import curvature, factored
from geomctrl.testing.random_robots import random_inertia

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.residuals import STEP, Case, Residual, Section, along, case, gradient, relative, show, tabulate, worst
from lib.robots import without_its_base


def algebra(seed: int) -> list[Residual]:
    """Section 2: SE(3), and section 3's exponentials and inertia."""
    rng = np.random.default_rng(seed)
    x, y, z = rng.normal(size=(3, 6))
    X = se3.exp(rng.normal(size=6))
    R, b, (m, f) = X[:3, :3], so3.hat(X[:3, 3]), np.split(z, 2)
    P = x / np.linalg.norm(x[:3])
    phi, W = 0.9, so3.hat(P[:3])
    turn = np.eye(3) + np.sin(phi) * W + (1 - np.cos(phi)) * W @ W  # (10)
    shift = (phi * np.eye(3) + (1 - np.cos(phi)) * W + (phi - np.sin(phi)) * W @ W) @ P[3:]  # (11)
    closed = np.column_stack((turn, shift))  # (9)
    pi = random_inertia(rng)
    mass, r, I = pi[0], so3.hat(inertia.com(pi)), inertia.com_tensor(pi)
    J = np.block([[I - mass * r @ r, mass * r], [-mass * r, mass * np.eye(3)]])  # (12)
    bracket = se3.hat(x) @ se3.hat(y) - se3.hat(y) @ se3.hat(x)
    dual = np.concatenate((R.T @ m + R.T @ b.T @ f, R.T @ f))  # (5)
    small_dual = np.concatenate((-np.cross(x[:3], m) - np.cross(x[3:], f), -np.cross(x[:3], f)))  # (7)
    return [
        Residual(
            "(4)", "Ad_X x = X x X^-1", "se3.Ad",
            relative(se3.hat(se3.Ad(X) @ x), X @ se3.hat(x) @ np.linalg.inv(X)),
        ),
        Residual("(5)", "Ad*_X (m, f), the transpose", "se3.Ad", relative(se3.Ad(X).T @ z, dual)),
        Residual("(6)", "ad_x y is the commutator", "se3.ad", relative(se3.hat(se3.ad(x) @ y), bracket)),
        Residual("(7)", "ad*_x (m, f), the transpose", "se3.ad", relative(se3.ad(x).T @ z, small_dual)),
        Residual(
            "(9)-(11)", "closed form of the exponential", "se3.exp",
            max(relative(closed, se3.exp(phi * P)[:3]), relative(closed, expm(phi * se3.hat(P))[:3])),
        ),
        Residual("(12)", "J_i from mass, centre and inertia", "inertia.spatial", relative(J, inertia.spatial(pi))),
    ]  # fmt: skip


class Motion(NamedTuple):
    """Results of the recursion, body by body."""

    V: np.ndarray  # (n, 6)
    V_rate: np.ndarray  # (n, 6)
    F: np.ndarray  # (n, 6)
    tau: np.ndarray  # (nv,)


def recursion(robot, q, v, a) -> Motion:
    """(13)-(18), corrected, over a tree."""
    n = robot.nbodies
    V, A, F, X = np.zeros((n, 6)), np.zeros((n, 6)), np.zeros((n, 6)), np.zeros((n, 6, 6))
    A_0 = np.concatenate((np.zeros(3), -robot.gravity))  # (13)
    for i, (p, joint) in enumerate(zip(robot.parents, robot.joints)):
        s, V_p, A_p = robot.v_slices[i], V[p] if p >= 0 else np.zeros(6), A[p] if p >= 0 else A_0
        f = robot.placements[i] @ factored.joint_motion(joint.S, q[robot.q_slices[i]])  # (14)
        X[i] = se3.Ad(se3.inverse(f))
        V[i] = X[i] @ V_p + joint.S @ v[s]  # (15)
        A[i] = joint.S @ a[s] + X[i] @ A_p - se3.ad(joint.S @ v[s]) @ X[i] @ V_p  # (16)
    tau = np.zeros(robot.nv)
    for i in reversed(range(n)):
        J, p = inertia.spatial(robot.parameters[i]), robot.parents[i]
        F[i] += J @ A[i] - se3.ad(V[i]).T @ J @ V[i]  # (17)
        if p >= 0:
            F[p] += X[i].T @ F[i]
        tau[robot.v_slices[i]] = robot.joints[i].S.T @ F[i]  # (18)
    return Motion(V, A, F, tau)


def moved(robot, q, v):
    """q exp(i STEP v), for the complex step along a motion of any joints."""
    out = q.astype(complex)
    for joint, s, k in zip(robot.joints, robot.q_slices, robot.v_slices):
        if joint.dof == 1:
            out[s] += 1j * STEP * v[k]
        else:
            out[s] += 1j * STEP * (factored.joint_motion(joint.S, q[s]) @ se3.hat(joint.S @ v[k]))[:3].ravel()
    return out


def skewness(N: np.ndarray, size: float) -> float:
    return float(np.abs(N + N.swapaxes(-1, -2)).max() / size)


def motion(c: Case) -> list[Residual]:
    """Sections 3 to 5, on any tree."""
    robot, q, v, a, _ = c
    f, plain = factored.factors(robot, q, v), factored.factors(robot, q, v, "plain")
    S, G, Gamma, J, P0 = f.S, f.G, f.Gamma, f.J, f.P0
    n, tau = robot.nbodies, robot.inverse_dynamics(q, v, a)
    A_0 = np.concatenate((np.zeros(3), -robot.gravity))
    M, Mdot, g = robot.mass_matrix(q), robot.mass_matrix_rate(q, v), robot.gravity_force(q)
    scale = max(np.abs(Mdot).max(), np.abs(M).max() * np.abs(v).max())
    V = G @ S @ v
    V_rate = G @ S @ a + G @ f.ad_Sv @ Gamma @ V + G @ P0 @ A_0
    F = G.T @ J @ V_rate + G.T @ f.ad_V_dual @ J @ V
    C25, C37 = factored.coriolis_matrix(robot, q, v, "plain"), factored.coriolis_matrix(robot, q, v, "ploen")
    at, one_by_one = moved(robot, q, v), recursion(robot, q, v, a)
    G_rate = np.imag(factored.factors(robot, at, v).G) / STEP
    M_rate = np.imag(factored.mass_matrix(robot, at)) / STEP
    N = S.T @ G.T @ Gamma.T @ f.ad_Sv.T @ G.T @ J @ G @ S
    expected = N - N.T - 2.0 * S.T @ G.T @ f.ad_V_dual @ J @ G @ S
    own_force = (one_by_one.F.ravel() - Gamma.T @ one_by_one.F.ravel()) - J @ one_by_one.V_rate.ravel()  # (30)
    C_i, Cbar_i = plain.C_bar, f.C_bar
    w = V.reshape(n, 6)[:, :3]
    tops = np.linalg.matrix_power(Gamma, n)
    C, christoffels, adjoint = (robot.coriolis_matrix(q, v, form) for form in ("ploen", "christoffel", "adjoint"))
    ad_V = -f.ad_V_dual.T
    return [
        Residual(
            "(1), (35)", "M qdd + C qd + phi = tau",
            "Robot.mass_matrix, Robot.coriolis_matrix, Robot.gravity_force, Robot.inverse_dynamics",
            relative(M @ a + C @ v + g, tau),
        ),
        Residual("(13)-(18)*", "the recursion", "Robot.inverse_dynamics", relative(one_by_one.tau, tau)),
        Residual("(19)", "V = G S qd", "factored.factors", relative(V.reshape(n, 6), one_by_one.V)),
        Residual(
            "(19)", "which Jacobians give too", "Robot.jacobian",
            relative(V.reshape(n, 6), [robot.jacobian(q, b) @ v for b in robot.body_names]),
        ),
        Residual("(20)", "Vdot in global form", "factored.factors", relative(V_rate.reshape(n, 6), one_by_one.V_rate)),
        Residual("(21)", "F in global form", "factored.factors", relative(F.reshape(n, 6), one_by_one.F)),
        Residual("(22)", "tau in global form", "Robot.inverse_dynamics, factored.factors", relative(S.T @ F, tau)),
        Residual("section 3", "Gamma is nilpotent", "factored.factors", float(np.abs(tops).max())),
        Residual(
            "section 3", "G = (1 - Gamma)^-1", "factored.factors",
            relative(G @ (np.eye(6 * n) - Gamma), np.eye(6 * n)),
        ),
        Residual(
            "(23), (25)", "the recursion's C gives the bias", "factored.coriolis_matrix, Robot.coriolis_matrix",
            relative(C25 @ v, C @ v, scale),
        ),
        Residual(
            "(24), (36)", "M = S^T G^T J G S", "Robot.mass_matrix, factored.factors",
            relative(S.T @ G.T @ J @ G @ S, M),
        ),
        Residual(
            "(26)*, (38)*", "phi = S^T G^T J G P0 Vdot_0", "Robot.gravity_force, factored.factors",
            relative(S.T @ G.T @ J @ G @ P0 @ A_0, g),
        ),
        Residual(
            "(27)", "dG/dt = G ad_Sqd Gamma G", "factored.factors",
            relative(G @ f.ad_Sv @ Gamma @ G, G_rate, 1.0),
        ),
        Residual(
            "(28)", "dM/dt from it", "factored.factors, factored.mass_matrix, Robot.mass_matrix_rate",
            max(relative(N + N.T, M_rate, scale), relative(N + N.T, Mdot, scale)),
        ),
        Residual(
            "(29)", "Mdot - 2C of (25)", "Robot.mass_matrix_rate, factored.coriolis_matrix",
            relative(Mdot - 2.0 * C25, expected, scale),
        ),
        Residual("(30)", "F_i - Ad* F_j = J Vdot + C_i V_i", "factored.factors", relative(C_i @ V, own_force)),
        Residual("(31)-(34), Prop. 1", "C_i V_i = Cbar_i V_i", "factored.factors", relative(Cbar_i @ V, C_i @ V)),
        Residual("Prop. 1", "Cbar_i is skew", "factored.factors", skewness(Cbar_i, np.abs(Cbar_i).max())),
        Residual(
            "(37)", "C = S^T G^T (J G ad_Sqd Gamma + Cbar) G S", "Robot.coriolis_matrix, factored.coriolis_matrix",
            relative(C, C37, scale),
        ),
        Residual(
            "Prop. 2", "Mdot - 2C is skew", "Robot.coriolis_matrix, Robot.mass_matrix_rate",
            skewness(Mdot - 2.0 * C, scale),
        ),
        Residual(
            "after (2)", "so is Christoffel's", "Robot.coriolis_matrix, Robot.mass_matrix_rate",
            skewness(Mdot - 2.0 * christoffels, scale),
        ),
        Residual(
            "docs/reference/formulas.md", "so is that of J ad_V - ad_V^T J",
            "Robot.coriolis_matrix, Robot.mass_matrix_rate",
            skewness(Mdot - 2.0 * adjoint, scale),
        ),
        Residual(
            "(37)", "with J ad_V - ad_V^T J for Cbar", "Robot.coriolis_matrix",
            relative(adjoint, S.T @ G.T @ (J @ G @ f.ad_Sv @ Gamma + J @ ad_V - ad_V.T @ J) @ G @ S, scale),
        ),
        Residual("(23)", "whose bias is the same", "Robot.coriolis_matrix", relative(adjoint @ v, C25 @ v, scale)),
        Residual(
            "introduction", "qd^T (Mdot - 2C) qd = 0 even for (25)", "factored.coriolis_matrix, Robot.mass_matrix_rate",
            abs(v @ (Mdot - 2 * C25) @ v) / (scale * (v @ v)),
        ),
        Residual(
            "docs/reference/formulas.md", "C_ploen - C_christoffel", "Robot.coriolis_matrix",
            difference(robot, q, v, w, f, scale),
        ),
    ]  # fmt: skip


def moving_base(c: Case) -> list[Residual]:
    """(13), (19), (20) with V_0 and Vdot_0: a robot on a free base, in the moving frame of that base."""
    robot, q, v, a, v_ref = c
    base = robot.joints[0].S
    carried = without_its_base(robot, q)
    V_0, A_0 = base @ v[:6], base @ a[:6]
    state, names = (q[12:], v[6:]), robot.body_names[1:]
    V = factored.body_twists(carried, *state, V_0)
    A = factored.body_accelerations(carried, *state, a[6:], V_0, A_0)
    tau = factored.inverse_dynamics(carried, *state, a[6:], base_twist=V_0, base_acceleration=A_0)
    reference = factored.inverse_dynamics(
        carried, *state, a[6:], v_ref[6:], "christoffel", base_twist=V_0, base_acceleration=A_0
    )
    expected = robot.inverse_dynamics(q, v, a, np.concatenate((v[:6], v_ref[6:])), form="christoffel")[6:]
    rates = [robot.jacobian(q, x) @ a + robot.jacobian_rate(q, v, x) @ v for x in names]
    return [
        Residual(
            "(13), (19)", "V = G S qd + G P0 V_0", "factored.body_twists",
            relative(V, [robot.jacobian(q, x) @ v for x in names]),
        ),
        Residual("(13), (20)", "Vdot with V_0 and Vdot_0", "factored.body_accelerations", relative(A, rates)),
        Residual(
            "(13), (22)", "tau with them", "factored.inverse_dynamics, Robot.inverse_dynamics",
            relative(tau, robot.inverse_dynamics(q, v, a)[6:]),
        ),
        Residual(
            "(13), (37)", "and with a reference velocity", "factored.inverse_dynamics, Robot.inverse_dynamics",
            relative(reference, expected),
        ),
    ]  # fmt: skip


def difference(robot, q, v, w, f, scale) -> float:
    """C_ploen - C_christoffel = sum_i 1/2 tr(I_i) Jw_i^T [w_i] Jw_i."""
    Jw = (f.G @ f.S).reshape(robot.nbodies, 6, robot.nv)[:, :3]
    traces = np.trace(inertia.tensor(robot.parameters), axis1=1, axis2=2)
    exact = 0.5 * np.einsum("i,iaj,iab,ibk->jk", traces, Jw, so3.hat(w), Jw)
    return relative(robot.coriolis_matrix(q, v) - robot.coriolis_matrix(q, v, "christoffel"), exact, scale)


def christoffel(c: Case) -> list[Residual]:
    """Equations in coordinates, for joints with one degree of freedom."""
    robot, q, v, _, _ = c
    dM = gradient(lambda x: factored.mass_matrix(robot, x), q)
    Gamma = 0.5 * (np.einsum("kji->ijk", dM) + np.einsum("kij->ijk", dM) - dM)  # (3)
    T = np.eye(4)
    for M, joint, x in zip(robot.placements, robot.joints, q):
        T = T @ M @ expm(se3.hat(joint.S[:, 0]) * x)
    C = np.einsum("ijk,i->kj", Gamma, v)
    symbols = curvature.christoffel_symbols(robot, q)
    from_symbols = np.einsum("ijk,i->kj", symbols, v)
    rate = along(lambda x: factored.mass_matrix(robot, x), q, v)
    return [
        Residual(
            "(2)", "C_kj = sum Gamma_ijk qd_i", "Robot.coriolis_matrix",
            relative(robot.coriolis_matrix(q, v, "christoffel"), C),
        ),
        Residual("(3)", "Gamma from the derivatives of M", "curvature.christoffel_symbols", relative(symbols, Gamma)),
        Residual(
            "(2), (3)", "Mdot - 2C is skew for it", "curvature.christoffel_symbols",
            skewness(rate - 2.0 * from_symbols, np.abs(rate).max()),
        ),
        Residual(
            "(8)", "f = M_1 e^{P_1 q_1} ... M_n e^{P_n q_n}", "Robot.pose",
            relative(T, robot.pose(q, robot.body_names[-1])),
        ),
    ]  # fmt: skip


def tree(seed: int) -> Case:
    """A random tree with a spherical joint and a free base among its six joints."""
    rng = np.random.default_rng(seed)
    robot = testing.random_robot(rng, ["free", "revolute", "spherical", "helical", "planar", "revolute"])
    return Case(robot, robot.random_configuration(rng), *rng.normal(size=(3, robot.nv)))


def motions(seed: int) -> list[Residual]:
    """`motion` on a tree of joints with one degree of freedom and on one of joints with several."""
    return worst((motion(case(seed, chain=False)), motion(tree(seed))))


def floating(seed: int) -> Case:
    """A random tree on a free base."""
    rng = np.random.default_rng(seed)
    kinds = ["free", "revolute", "spherical", "helical", "planar", "revolute"]
    robot = testing.random_robot(rng, kinds, [-1, 0, 1, 1, 0, 4])
    return Case(robot, robot.random_configuration(rng), *rng.normal(size=(3, robot.nv)))


SECTIONS: tuple[Section, ...] = (
    algebra,
    lambda seed: christoffel(case(seed)),
    motions,
    lambda seed: moving_base(floating(seed)),
)


def table(seeds=range(4)) -> list[Residual]:
    return tabulate(SECTIONS, seeds)


def panda_skewness(states: int = 200) -> dict[str, np.ndarray]:
    """|N + N^T| of N = Mdot - 2C over max(|Mdot|, 2 |C|), (states,) for each C of the Panda at random states."""
    robot, rng = models.panda(), np.random.default_rng(0)
    q = np.array([robot.random_configuration(rng) for _ in range(states)])
    v = rng.normal(size=q.shape)
    out, Mdot = {}, robot.mass_matrix_rate(q, v)
    for form in ("plain", "ploen", "christoffel", "adjoint"):
        C = factored.coriolis_matrix(robot, q, v, "plain") if form == "plain" else robot.coriolis_matrix(q, v, form)
        N = Mdot - 2.0 * C
        size = np.maximum(np.abs(Mdot).max((1, 2)), 2.0 * np.abs(C).max((1, 2)))
        out[form] = np.abs(N + N.swapaxes(1, 2)).max((1, 2)) / size
    return out


def figure(path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6.4, 4.0), layout="constrained")
    FigureCanvasAgg(fig)
    axes = fig.subplots()
    names = {
        "plain": "(25), the recursion's own",
        "ploen": "(37), Ploen's",
        "christoffel": "(2), Christoffel's",
        "adjoint": "J ad_V - ad_V^T J",
    }
    for k, (form, values) in enumerate(panda_skewness().items()):
        axes.semilogy(np.maximum(values, 1e-18), ".", color=f"C{k}", ms=4, label=names[form])
    axes.set(xlabel="random state of the Panda", ylabel=r"$|N + N^T|$, $N = \dot M - 2C$, relative", ylim=(1e-18, 10))
    axes.legend(title="C of", loc="center right")
    axes.grid(alpha=0.3)
    path.parent.mkdir(exist_ok=True)
    fig.savefig(path, dpi=130)


def main() -> None:
    show("Ploen 1999 (* corrected)", table())
    worst_of = {form: x.max() for form, x in panda_skewness().items()}
    print(
        "\nMdot - 2C of the Panda, how far from skew at most: " + ", ".join(f"{k} {x:.1e}" for k, x in worst_of.items())
    )
    target = Path("out/ploen_1999.png")
    figure(target)
    print(f"figure: {target}")


if __name__ == "__main__":
    main()
