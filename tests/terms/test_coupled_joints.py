"""Robots with joints that follow others: all terms against explicit projection of the tree, and published equations."""

import numpy as np
import pytest
from simulation_options import flat_simulate

import geomctrl as gc
from geomctrl import controllers, derivatives, inertia, references
from geomctrl.errors import ModelError
from geomctrl.papers import articulated_bodies
from geomctrl.papers import higher_order_kinematics as higher
from geomctrl.papers.constrained import ClosedLoops, Constraint
from geomctrl.testing.robot_terms import check_robot
from geomctrl.tracing.arrays import symbol_array
from geomctrl.tracing.derivatives import tangents
from geomctrl.tracing.proofs.identities import identical
from geomctrl.tracing.symbols import Graph, add, mul

Y = (0.0, 1.0, 0.0)


def place(p):
    T = np.eye(4)
    T[:3, 3] = p
    return T


def body(name, parent, joint, at, mass=1.0):
    pi = inertia.from_com(mass, (0.25, -0.125, 0.0625 * mass), np.diag([0.03125, 0.0625, 0.046875]))
    return gc.Body(name, parent, joint, place(at), pi)


def branched(floating=False):
    """Two branches; one joint follows one that follows another, one follows two. All numbers are binary fractions,
    of which products are exact."""
    base = [body("base", None, gc.Joint.free(name="root"), (0, 0, 0), 3.0)] if floating else []
    on = "base" if floating else None
    options = {"lower": -1.0, "upper": 1.0, "velocity": 3.0, "effort": 8.0, "damping": 0.2, "friction": 0.4}
    bodies = [
        body("a", on, gc.Joint.revolute((0, 0, 1), name="q1", armature=0.25, damping=0.1), (0.125, 0, 0.25)),
        body("b", "a", gc.Joint.revolute(Y, name="q2", armature=0.125, **options), (0.25, 0, 0.125), 2.0),
        body("c", "b", gc.Joint.prismatic((0, 0, 1), name="q3"), (0.25, 0, 0.125)),
        body("d", "a", gc.Joint.revolute((1, 0, 0), name="q4"), (0.25, 0.125, 0.25), 1.5),
        body("e", "d", gc.Joint.revolute(Y, name="q5", armature=0.5), (0.25, 0, 0.125)),
        body("f", "c", gc.Joint.revolute(Y, name="q6", armature=0.5), (0.0, 0.25, 0.0)),
    ]
    couplings = [
        gc.Coupling("q6", {"q2": 0.5}, 0.25),
        gc.Coupling("q2", {"q1": -2.0}, 0.5),
        gc.Coupling("q4", {"q2": 0.5, "q5": -1.0}, -0.25),
    ]
    return gc.Robot.build([*base, *bodies], couplings=couplings)


@pytest.fixture(params=[False, True], ids=["fixed", "floating"], scope="module")
def case(request):
    robot = branched(request.param)
    rng = np.random.default_rng(7)
    q, moving = robot.random_configuration(rng), rng.normal(size=(4, robot.nv))
    return robot, robot.coupling.tree, robot.coupling.matrix, q, robot.coupling.tree_configuration(q), moving


def same(x, y):
    np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10 * max(1.0, np.abs(y).max()))


def test_coordinates_of_all_joints():
    robot, q = branched(), np.array([0.3, 0.1, -0.4])  # q1, q3, q5
    q2 = -2.0 * 0.3 + 0.5
    same(robot.coupling.tree_configuration(q), [0.3, q2, 0.1, 0.5 * q2 + 0.4 - 0.25, -0.4, 0.5 * q2 + 0.25])
    assert robot.dof_names == ("q1", "q3", "q5")
    tree = robot.coupling.tree
    assert (tree.nv, tree.couplings) == (6, ())
    assert tree.coupling.tree is tree


def test_limits_and_losses_are_those_that_coordinates_feel():
    limits = branched().limits
    same([limits.lower[0], limits.upper[0]], [-0.25, 0.75])  # -1 <= 0.5 - 2 q1 <= 1
    assert (limits.velocity[0], limits.effort[0]) == (1.5, 16.0)
    same(branched().damping[0], 0.1 + 4 * 0.2)
    same(branched().friction[0], 2 * 0.4)
    same(branched().armature, [0.25 + 4 * 0.125 + 0.5, 0.0, 0.5])


def test_equations_of_motion(case, kernels):
    robot, tree, A, q, x, (v, a, v_ref, tau) = case
    f_ext = np.random.default_rng(1).normal(size=(robot.nbodies, 6))
    for form in ("ploen", "christoffel", "adjoint"):
        M, Mdot, C, g = tree.terms(x, A @ v, form)
        ours = robot.terms(q, v, form)
        for mine, theirs in zip(ours[:3], (M, Mdot, C)):
            same(mine, A.T @ theirs @ A)
        same(ours.g, A.T @ g)
        same(robot.inverse_dynamics(q, v, a, v_ref, form=form), ours.M @ a + ours.C @ v_ref + ours.g)
        same(robot.regressor(q, v, a, v_ref, form), A.T @ tree.regressor(x, A @ v, A @ a, A @ v_ref, form))
    same(robot.mass_matrix(q), ours.M)
    same(robot.gravity_force(q), ours.g)
    same(robot.inverse_dynamics(q, v, a), ours.M @ a + ours.C @ v + ours.g)
    same(robot.inverse_dynamics(q, v, a, f_ext=f_ext), A.T @ tree.inverse_dynamics(x, A @ v, A @ a, f_ext=f_ext))
    same(robot.mass_matrix_inverse(q), np.linalg.inv(ours.M))
    same(robot.mass_matrix_solve(q, tau), np.linalg.solve(ours.M, tau))
    same(robot.forward_dynamics(q, v, tau), np.linalg.solve(ours.M, tau - ours.C @ v - ours.g))
    same(robot.inverse_dynamics(q, v, robot.forward_dynamics(q, v, tau, f_ext), f_ext=f_ext), tau)
    same(robot.energy(q, v), tree.energy(x, A @ v))
    same(robot.momentum(q, v), tree.momentum(x, A @ v))


def test_kinematics(case, kernels):
    robot, tree, A, q, x, (v, a, *_) = case
    same(robot.pose(q, "f"), tree.pose(x, "f"))
    for form in ("body", "spatial", "hybrid", "mixed"):
        same(robot.jacobian(q, "f", form), tree.jacobian(x, "f", form) @ A)
        same(robot.jacobian_rate(q, v, "f", form), tree.jacobian_rate(x, A @ v, "f", form) @ A)
        rates = np.stack((v, a))
        expected = higher.twist_derivatives(tree, x, rates @ A.T, "f", form)
        same(higher.twist_derivatives(robot, q, rates, "f", form), expected)
        same(
            higher.jacobian_partial_derivatives(robot, q, "f", 1, form) @ v,
            robot.jacobian_rate(q, v, "f", form),
        )


def test_derivatives(case, kernels):
    robot, tree, A, q, x, (v, a, _, tau) = case

    def slopes(f, *at):  # of f(q, v, last) with respect to each argument, by central differences
        h, one, columns = 1e-6, np.eye(robot.nv), ([], [], [])
        for e in one:
            shifted = [(robot.integrate(q, s * h * e), v + 0 * e, at[0]) for s in (1, -1)]
            moved = [(q, v + s * h * e, at[0]) for s in (1, -1)]
            pushed = [(q, v, at[0] + s * h * e) for s in (1, -1)]
            for out, (up, down) in zip(columns, (shifted, moved, pushed)):
                out.append((f(*up) - f(*down)) / (2 * h))
        return [np.stack(c, 1) for c in columns]

    for mine, theirs in zip(robot.inverse_dynamics_derivatives(q, v, a), slopes(robot.inverse_dynamics, a)):
        np.testing.assert_allclose(mine, theirs, atol=2e-7 * max(1.0, np.abs(theirs).max()))
    for mine, theirs in zip(robot.forward_dynamics_derivatives(q, v, tau), slopes(robot.forward_dynamics, tau)):
        np.testing.assert_allclose(mine, theirs, atol=2e-6 * max(1.0, np.abs(theirs).max()))
    for mine, theirs in zip(
        derivatives.inverse_dynamics_second_derivatives(robot, q, v, a),
        derivatives.inverse_dynamics_second_derivatives(tree, x, A @ v, A @ a),
    ):
        same(mine, np.einsum("ijk,ia,jb,kc->abc", theirs, A, A, A))
    same(derivatives.mass_matrix_derivative(robot, q) @ v, robot.mass_matrix_rate(q, v))
    rates = np.stack((v, a, tau))
    same(
        derivatives.inverse_dynamics_rates(robot, q, rates),
        derivatives.inverse_dynamics_rates(tree, x, rates @ A.T) @ A,
    )


@pytest.mark.slow
def test_batches_and_loops_of_numba(case, monkeypatch):
    robot = case[0]
    rng = np.random.default_rng(3)
    q = np.stack([robot.random_configuration(rng) for _ in range(40)])
    v = rng.normal(size=(40, robot.nv))
    M, a = robot.mass_matrix(q), robot.forward_dynamics(q, v, v)
    same(M[7], robot.mass_matrix(q[7]))
    monkeypatch.setenv("GEOMCTRL_COMPILER", "off")
    other = branched(robot.nq != robot.nv)
    same(other.mass_matrix(q), M)
    same(other.forward_dynamics(q, v, v), a)
    same(other.mass_matrix(q[0]), M[0])


@pytest.mark.parametrize("floating", [False, True])
def test_all_properties_hold(floating, kernels):
    failed = [check for check in check_robot(branched(floating), 3, 0) if not check.ok]
    assert not failed


@pytest.mark.parametrize("form", ["ploen", "christoffel"])
def test_skew_symmetry_is_an_identity(form):
    """Mdot, the derivative of M along v, and C, for all q and v."""
    robot, graph = branched(), Graph()
    n = robot.nv
    q, v = (symbol_array([graph.load(k, i) for i in range(n)], (n,)) for k in (1, 2))
    M, C = robot.mass_matrix(q), robot.coriolis_matrix(q, v, form)
    seeds = {x.index: rate for x, rate in zip(q.tolist(), v.tolist())}
    Mdot = np.array(tangents(graph, M.ravel().tolist(), seeds), object).reshape(n, n)
    pairs = [(mul(2.0, Mdot[i, j]), mul(2.0, add(C[i, j], C[j, i]))) for i in range(n) for j in range(i, n)]
    assert identical(graph, pairs, {})
    assert not identical(graph, [(Mdot[0, 1], mul(2.0, C[0, 1]))], {})


# --- others' equations -------------------------------------------------------------------------------------------

L1, L2, M_, CENTRE, I_ = 0.8, 0.5, (2.0, 1.5, 1.0, 3.0), (0.3, 0.2, 0.35, -0.4), (0.05, 0.04, 0.03, 0.06)


def parallelogram():
    """Two links on the ground and two parallel to them; the angles of the first two are the coordinates."""
    hang = ((None, 0.0), (None, 0.0), ("link2", L2), ("link1", L1))
    bodies = [
        gc.Body(f"link{k + 1}", parent, gc.Joint.revolute((0, -1, 0), name=f"q{k + 1}"), place((at, 0, 0)),
                inertia.from_com(M_[k], (CENTRE[k], 0, 0), np.diag([0.01, I_[k], I_[k]])))
        for k, (parent, at) in enumerate(hang)
    ]  # fmt: skip
    couplings = [gc.Coupling("q3", {"q1": 1.0, "q2": -1.0}), gc.Coupling("q4", {"q2": 1.0, "q1": -1.0})]
    return gc.Robot.build(bodies, couplings=couplings)


def test_parallelogram_arm_in_closed_form(kernels):
    """Spong, Hutchinson and Vidyasagar 2006, section 7.4.1, with the fourth link's centre on either side."""
    robot, g = parallelogram(), 9.81
    rng = np.random.default_rng(2)
    for q, v, a in rng.normal(size=(5, 3, 2)):
        c = M_[2] * L2 * CENTRE[2] + M_[3] * L1 * CENTRE[3]
        m11 = M_[0] * CENTRE[0] ** 2 + M_[2] * CENTRE[2] ** 2 + M_[3] * L1**2 + I_[0] + I_[2]
        m22 = M_[1] * CENTRE[1] ** 2 + M_[2] * L2**2 + M_[3] * CENTRE[3] ** 2 + I_[1] + I_[3]
        m12, s = c * np.cos(q[1] - q[0]), np.sin(q[1] - q[0])
        weight = g * np.cos(q) * (M_[0] * CENTRE[0] + M_[2] * CENTRE[2] + M_[3] * L1,
                                  M_[1] * CENTRE[1] + M_[2] * L2 + M_[3] * CENTRE[3])  # fmt: skip
        tau = np.array([[m11, m12], [m12, m22]]) @ a + c * s * np.array([-(v[1] ** 2), v[0] ** 2]) + weight
        same(robot.inverse_dynamics(q, v, a), tau)
        same(robot.forward_dynamics(q, v, tau), a)


def test_four_bar_parallelogram_against_its_closed_loop(kernels):
    """A crank, a coupler that stays parallel to the ground and a rocker, closed by a pin with multipliers."""
    bodies = [
        body("crank", None, gc.Joint.revolute(Y, name="q1"), (0, 0, 0)),
        body("coupler", "crank", gc.Joint.revolute(Y, name="q2"), (0, 0, 1.0), 2.0),
        body("rocker", "coupler", gc.Joint.revolute(Y, name="q3"), (1.2, 0, 0)),
    ]
    free = gc.Robot.build(bodies)
    robot = gc.Robot.build(bodies, couplings=[gc.Coupling("q2", {"q1": -1.0}), gc.Coupling("q3", {"q1": 1.0})])
    pin = Constraint("revolute", "pin", ("world", "rocker"), point=(1.2, 0, 0), point_b=(0, 0, -1.0), axis=Y, axis_b=Y)
    loops = ClosedLoops(free, [pin])
    for angle, rate in ((0.4, 1.5), (-1.1, -0.7)):
        q, v = np.array([angle]), np.array([rate])
        y = loops.state(robot.coupling.tree_configuration(q), robot.coupling.matrix @ v)
        same(robot.coupling.matrix @ robot.forward_dynamics(q, v, np.zeros(1)), loops.accelerations(0.0, y))


# --- closed loops ------------------------------------------------------------------------------------------------


@pytest.mark.quick(1)
@pytest.mark.parametrize("law", [controllers.ComputedTorque, controllers.SlotineLi, controllers.Passivity])
def test_simulation_compiled_and_in_python(law, kernels):
    """All monitors hold: energy, skewness and the Lyapunov functions of the laws."""
    robot = branched()
    rng = np.random.default_rng(4)
    q = robot.random_configuration(rng)
    reference = references.Sinusoids(robot, q, np.full((1, robot.nv), 0.2), np.full((1, robot.nv), 2.0))
    ends = []
    for compiled in (True, False):
        run = flat_simulate(
            gc.Plant(robot), law(robot, reference), q + 0.05, np.zeros(3), 0.02, 1e-3, compiled=compiled
        )
        for name in ("skew", "energy", "lyapunov"):
            assert run.monitors[name].ok, run.monitors[name]
        ends.append(run.q[-1])
    np.testing.assert_allclose(*ends, atol=1e-12)


def test_plant_follows_the_constrained_tree(kernels):
    """The energy of a free motion is constant, and a swing equals its time-reversed self."""
    robot = branched()
    q, v = np.array([0.2, 0.1, -0.3]), np.array([1.0, -0.5, 0.8])
    energies = []
    for _ in range(200):
        energies.append(robot.energy(q, v))
        k1 = robot.forward_dynamics(q, v, np.zeros(3))
        k2 = robot.forward_dynamics(q + 5e-4 * v, v + 5e-4 * k1, np.zeros(3))
        q, v = q + 1e-3 * (v + 5e-4 * k1), v + 1e-3 * k2
    assert np.ptp(energies) < 1e-4 * np.abs(energies).max()


@pytest.mark.parametrize(
    "ask",
    [
        lambda r: r.bounds(),
        lambda r: articulated_bodies.articulated_bodies(r, r.neutral(), np.zeros(3), np.zeros(3)),
        lambda r: gc.rollout(r, r.neutral(), np.zeros(3), None, 0.01, 1e-3),
    ],
    ids=["bounds", "articulated_bodies", "rollout"],
)
def test_what_needs_free_joints_says_so(ask):
    with pytest.raises(
        ModelError, match=r"not supported for joints that follow others \('q6', 'q2', 'q4'\).*robot.coupling.tree"
    ):
        ask(branched())
