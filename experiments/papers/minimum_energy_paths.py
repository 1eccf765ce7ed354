"""Compute minimum-energy paths, the application that section 5 of Park, Bobrow and Ploen 1995 proposes.

Of all paths q(t), t from 0 to 1, between two configurations, the script finds the one with the least integral of the
kinetic energy T = 1/2 sum m_ij(q) v_i v_j. The energy along this path is constant, and the path is a geodesic of the
metric M: without torques and gravity, the robot follows it from its initial velocity. Paths are polynomials, the energy
is integrated by Gauss' rule, and BFGS minimises it. Proposition 1 of the paper gives the exact gradient by a recursion
of O(n), without derivatives of M and without finite differences. docs/explanation/minimum-energy-paths.md explains it.

    python experiments/papers/minimum_energy_paths.py [--quick]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

import geomctrl as gc
from geomctrl import inertia, models, se3
from geomctrl.papers import curvature

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.residuals import relative
from lib.script import Out, Quick, run_script

# --- the energy and its exact gradient ---------------------------------------------------------------------------


class Energy(NamedTuple):
    """Kinetic energy (...,) and its gradients with respect to configuration and velocity (..., nv)."""

    T: np.ndarray
    dq: np.ndarray
    dv: np.ndarray


def kinetic_energy(robot: gc.Robot, q, v) -> Energy:
    """T = 1/2 sum V_i . J_i V_i and its gradients in two passes, for joints with one degree of freedom.

    Outwards V_i = X_i V_p + S_i v_i (24), inwards the momenta P_i = J_i V_i + sum over children X^T P. A rotation
    of joint k changes the twists of all bodies behind it by [X_k V_p, S_k], transformed to these bodies (53), so
    dT/dq_k = P_k . [X_k V_p, S_k].
    """
    n, lead = robot.nbodies, np.shape(q)[:-1]
    X, U, P = np.zeros((n, *lead, 6, 6)), np.zeros((n, *lead, 6, 1)), np.zeros((n, *lead, 6, 1))
    T, dq, dv = np.zeros(lead), np.zeros((*lead, n)), np.zeros((*lead, n))
    S, J = [joint.S for joint in robot.joints], inertia.spatial(robot.parameters)
    for i, p in enumerate(robot.parents):
        X[i] = se3.Ad(se3.inverse(robot.placements[i] @ se3.exp(q[..., i, None] * S[i][:, 0])))
        if p >= 0:
            U[i] = X[i] @ (U[p] + S[p] * v[..., p, None, None])  # the parent's twist
        V = U[i] + S[i] * v[..., i, None, None]
        P[i] = J[i] @ V
        T = T + 0.5 * (V * P[i]).sum((-2, -1))
    for i in reversed(range(n)):
        dq[..., i] = (P[i] * (se3.ad(U[i][..., 0]) @ S[i])).sum((-2, -1))
        dv[..., i] = (P[i] * S[i]).sum((-2, -1))
        if robot.parents[i] >= 0:
            P[robot.parents[i]] += X[i].swapaxes(-1, -2) @ P[i]
    return Energy(T, dq, dv)


def basis(t, degree: int):
    """Values, first and second derivatives (..., degree) of polynomials that vanish at 0 and 1.

    Their first derivatives are Legendre's polynomials from degree one on, orthonormal on [0, 1].
    """
    x, k = 2.0 * np.asarray(t) - 1.0, np.arange(1, degree + 1)
    P, scale = legendre.legvander(x, degree + 1).reshape(*x.shape, -1), np.sqrt(2.0 * k + 1.0)
    slopes = np.moveaxis(legendre.legval(x, legendre.legder(np.eye(degree + 2))), 0, -1)
    return (P[..., k + 1] - P[..., k - 1]) / (2.0 * scale), scale * P[..., k], 2.0 * scale * slopes[..., k]


def action(robot: gc.Robot, q0, q1, coefficients, nodes: int):
    """Return the energy, by Gauss quadrature of T along the path, and the exact gradient of that sum (degree, nv)."""
    x, weights = legendre.leggauss(nodes)
    t, weights = 0.5 * (x + 1.0), 0.5 * weights
    phi, rate, _ = basis(t, len(coefficients))
    state = kinetic_energy(robot, q0 + t[:, None] * (q1 - q0) + phi @ coefficients, (q1 - q0) + rate @ coefficients)
    return weights @ state.T, phi.T @ (weights[:, None] * state.dq) + rate.T @ (weights[:, None] * state.dv)


# --- paths of least energy ---------------------------------------------------------------------------------------


class Geodesic(NamedTuple):
    """A path q(t), t from 0 to 1: the straight line and polynomials that vanish at its ends."""

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


def geodesic(robot: gc.Robot, q0, q1, degree: int = 30, nodes: int = 60) -> Geodesic:
    """The path of least energy between two configurations; the search starts from the straight line."""
    q0, q1, shape = np.asarray(q0, float), np.asarray(q1, float), (degree, robot.nv)
    straight = action(robot, q0, q1, np.zeros(shape), nodes)[0]
    # BFGS starts with the identity as Hessian, which is about right in units of a mean mass matrix
    mean = robot.mass_matrix(q0 + np.linspace(0, 1, 20)[:, None] * (q1 - q0)).mean(0)
    unit = np.linalg.inv(np.linalg.cholesky(mean / straight)).T

    def cost(y):
        E, gradient = action(robot, q0, q1, y.reshape(shape) @ unit.T, nodes)
        return E / straight, (gradient @ unit).ravel() / straight

    solution = minimize(
        cost, np.zeros(degree * robot.nv), jac=True, method="BFGS", options={"gtol": 1e-8, "maxiter": 2000}
    )
    return Geodesic(q0, q1, solution.x.reshape(shape) @ unit.T, solution.fun * straight, straight, solution.nit)


class Check(NamedTuple):
    """Errors of the conditions that a path of least energy satisfies; they vanish as the degree grows."""

    turn: float  # largest |v grad_v v| along it, in the metric M, divided by |v|^2: curvature times length
    energy: float  # variation of the kinetic energy, relative
    arrival: float  # distance from q1 of a robot without torques that starts with the path's initial velocity, relative


def check(robot: gc.Robot, path: Geodesic) -> Check:
    """The necessary conditions at 101 points."""
    q, v, a = path(np.linspace(0.0, 1.0, 101))
    energies, turn = robot.kinetic_energy(q, v), curvature.covariant_derivative(robot, q, v, v, a)
    size = np.sqrt(curvature.inner_product(robot, q, turn, turn)).max() / (2.0 * path.energy)
    end = thrown(robot, path.q0, path(0.0)[1], [1.0])[-1]
    return Check(float(size), float(np.ptp(energies) / energies.mean()), relative(end, path.q1))


def thrown(robot: gc.Robot, q0, v0, t) -> np.ndarray:
    """Motion q (len(t), nv) of the robot without torques and gravity, from q0 with velocity v0."""
    n = robot.nv
    y = solve_ivp(
        lambda t, y: np.concatenate((y[n:], robot.forward_dynamics(y[:n], y[n:], np.zeros(n)))),
        (0.0, t[-1]), np.concatenate((q0, v0)), method="DOP853", t_eval=t, rtol=1e-11, atol=1e-12,
    ).y  # fmt: skip
    return y[:n].T


EXAMPLES = {  # robot, from, to, degree
    "two-link": (models.two_link, (-1.0, 2.6), (1.0, -1.2), 70),
    "panda": (models.panda, (-0.8, -0.6, 0.5, -2.4, 0.4, 1.2, 0.0), (0.9, 0.7, -0.6, -0.7, -0.8, 2.4, 1.0), 45),
}


def example(name: str, degree: int | None = None) -> tuple[gc.Robot, Geodesic]:
    make, q0, q1, full = EXAMPLES[name]
    robot, degree = make().with_gravity((0, 0, 0)), degree or full
    return robot, geodesic(robot, q0, q1, degree, 2 * degree)


# --- the figure --------------------------------------------------------------------------------------------------


def draw_joints(figure, axes, robot: gc.Robot, solution: Geodesic, t) -> None:
    """Plot the two-link arm's path and other geodesics from its start, over the sectional curvature."""
    q2 = np.linspace(-np.pi, np.pi, 241)
    q, ones, zeros = np.stack((np.zeros_like(q2), q2), -1), np.ones_like(q2), np.zeros_like(q2)
    K = curvature.sectional_curvature(robot, q, np.stack((ones, zeros), -1), np.stack((zeros, ones), -1))
    shade = axes.imshow(
        np.repeat(K[:, None], 2, 1), origin="lower", aspect="auto", extent=(-np.pi, np.pi, -np.pi, np.pi),
        cmap="RdBu_r", vmin=-abs(K).max(), vmax=abs(K).max(),
    )  # fmt: skip
    figure.colorbar(shade, ax=axes, label="sectional curvature K [1/(kg m$^2$)]")
    for angle in np.linspace(0, 2 * np.pi, 24, endpoint=False):
        v0 = np.array([np.cos(angle), np.sin(angle)])
        v0 *= np.sqrt(2.0 * solution.energy / curvature.inner_product(robot, solution.q0, v0, v0))
        label = "geodesics of the same length" if angle == 0 else None
        axes.plot(*thrown(robot, solution.q0, v0, t).T, color="0.45", lw=0.6, label=label)
    axes.plot(*np.stack((solution.q0, solution.q1)).T, "k--", lw=1.4, label=f"straight, {solution.straight:.2f} J")
    axes.plot(*solution(t)[0].T, "k", lw=2.0, label=f"least energy, {solution.energy:.2f} J")
    axes.set(xlabel="$q_1$ [rad]", ylabel="$q_2$ [rad]", title="two-link arm")
    axes.set(xlim=(-np.pi, np.pi), ylim=(-np.pi, np.pi))
    axes.legend(fontsize=8, loc="lower left")


def draw_space(axes, robot: gc.Robot, solution: Geodesic, t) -> None:
    for style, x in (("k--", solution.q0 + t[:, None] * (solution.q1 - solution.q0)), ("k", solution(t)[0])):
        tip = robot.pose(x, "tip")[:, :3, 3]
        axes.plot(tip[:, 0], tip[:, 2], style, label="straight in q" if style == "k--" else "least energy")
    for s in np.linspace(0, 1, 9):
        x = solution(s)[0]
        elbow, tip = robot.pose(x, "link2")[:3, 3], robot.pose(x, "tip")[:3, 3]
        axes.plot([0, elbow[0], tip[0]], [0, elbow[2], tip[2]], "o-", color="C0", ms=3, lw=1, alpha=0.25 + 0.6 * s)
    axes.set(xlabel="x [m]", ylabel="z [m]", title="the arm along the path of least energy", aspect="equal")
    axes.legend(fontsize=8)


def draw_energy(axes, robot: gc.Robot, solution: Geodesic, t) -> None:
    line = np.broadcast_to(solution.q1 - solution.q0, (len(t), robot.nv))
    straight = robot.kinetic_energy(solution.q0 + t[:, None] * line, line)
    axes.plot(t, straight, "k--", label=f"straight, mean {solution.straight:.2f} J")
    axes.plot(t, robot.kinetic_energy(*solution(t)[:2]), "k", label=f"least energy, {solution.energy:.2f} J")
    axes.set(xlabel="t [s]", ylabel="kinetic energy [J]", title="Panda", ylim=(0, None))
    axes.legend(fontsize=8)


def draw(path: Path, examples: dict[str, tuple[gc.Robot, Geodesic]]) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure, t = Figure(figsize=(13.5, 4.4), layout="constrained"), np.linspace(0, 1, 200)
    joints, space, energy = figure.subplots(1, 3)
    draw_joints(figure, joints, *examples["two-link"], t)
    draw_space(space, *examples["two-link"], t)
    draw_energy(energy, *examples["panda"], t)
    path.parent.mkdir(parents=True, exist_ok=True)
    FigureCanvasAgg(figure).print_figure(path, dpi=100)


def main(*, quick: Quick = False, out: Out = Path("out")) -> None:
    examples = {name: example(name, full // 3 if quick else None) for name, (*_, full) in EXAMPLES.items()}
    for name, (robot, path) in examples.items():
        turn, energy, arrival = check(robot, path)
        saved = 100.0 * (1.0 - path.energy / path.straight)
        print(
            f"{name}: {path.energy:.6f} J, {saved:.1f} % less than the straight line's {path.straight:.6f} J,"
            f" degree {len(path.coefficients)}, {path.iterations} steps of BFGS\n"
            f"  from a geodesic by {turn:.1e}, energy from constant by {energy:.1e};"
            f" the torque-free robot misses by {arrival:.1e}"
        )
    target = out / "minimum_energy_paths.png"
    draw(target, examples)
    print(f"figure: {target}")


if __name__ == "__main__":
    run_script(main)
