"""Constrained bodies: Mueller and Terze's numbers, closed forms, relative coordinates and dense algebra as oracles."""

import numpy as np
import pytest
from lib import mueller_terze as cases
from mechanisms import four_bar, swinging
from papers import bruels_cardona_arnold_2012 as top
from papers import mueller_terze_2013 as paper

import geomctrl as gc
from geomctrl import inertia, se3, so3
from geomctrl.lie.groups import SE3, SO3xR3
from geomctrl.papers.constrained.equations import GGL, Baumgarte
from geomctrl.papers.constrained.integration import integrate_index1
from geomctrl.papers.constrained.joints import ConstrainedBody, Constraint
from geomctrl.papers.constrained.maximal import ConstrainedSystem

GROUPS = {"SE3": SE3(), "SO3xR3": SO3xR3()}
BODY = inertia.from_com(2.0, (0.1, -0.2, 0.05), np.diag([0.4, 0.7, 1.0]))
GRAVITY = np.array([0.3, -0.2, -9.81])


def pose(rng):
    return np.vstack((SO3xR3().random(rng), (0, 0, 0, 1)))


def one_of_each(a="a", b="b"):
    point, axis, other = (0.1, 0.2, -0.3), (0.5, -1.0, 2.0), (2.0, 1.0, 0.3)
    return {
        "spherical": Constraint("spherical", "c", (a, b), point=point),
        "revolute": Constraint("revolute", "c", (a, b), point=point, axis=axis),
        "prismatic": Constraint("prismatic", "c", (a, b), axis=axis),
        "cylindrical": Constraint("cylindrical", "c", (a, b), point=point, axis=axis),
        "universal": Constraint("universal", "c", (a, b), point=point, axis=axis, axis_b=other),
        "planar": Constraint("planar", "c", (a, b), point=point, axis=axis),
        "fixed": Constraint("fixed", "c", (a, b)),
        "distance": Constraint("distance", "c", (a, b), point=point, point_b=(0.3, 0.1, 0.2)),
        "holonomic": Constraint.holonomic("c", (a, b), hold_apart, hold_apart_jacobian),
    }


ROWS = {"spherical": 3, "revolute": 5, "prismatic": 5, "cylindrical": 4, "universal": 4, "planar": 3, "fixed": 6}
ROWS |= {"distance": 1, "holonomic": 2}


def hold_apart(T):
    """Constraints: the heights of two bodies have a constant sum, and their x axes a constant angle."""
    return np.array([T[0, 2, 3] + T[1, 2, 3] - 1.0, T[0, :3, 0] @ T[1, :3, 0] - 0.2])


def hold_apart_jacobian(T):
    J = np.zeros((2, 2, 6))
    J[0, :, 3:] = T[:, 2, :3]
    for i in (0, 1):
        J[1, i, :3] = np.cross((1.0, 0.0, 0.0), T[i, :3, :3].T @ T[1 - i, :3, 0])
    return J


def pair(kind, group, rng=7, world=False):
    rng = np.random.default_rng(rng)
    bodies = [ConstrainedBody("a", BODY, pose(rng)), ConstrainedBody("b", BODY, pose(rng))]
    return ConstrainedSystem(bodies, [one_of_each("world" if world else "a")[kind]], group=group, gravity=GRAVITY)


# --- Mueller and Terze ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", cases.GROUPS)
@pytest.mark.parametrize("name", cases.CASES)
def test_mueller_and_terze_at_one_second(name, group):
    result = paper.run(cases.CASES[name](cases.GROUPS[group]), 1.0)
    for ours, expected in zip(result.violation[-1], paper.EXPECTED[name, group][0]):
        if expected < 1e-12:
            assert ours < 5e-13
        else:
            assert ours == pytest.approx(expected, rel=0.03)


def test_the_heavy_top_has_the_kinetic_energy_of_its_data():
    case = cases.heavy_top(SE3())
    weight = case.system.parameters[0, 0] * 9.81 * case.system.poses(case.y0)[0, 2, 3]
    assert case.system.energy(case.y0) - weight == pytest.approx(13972.398951, abs=1e-6)


def test_where_the_body_moves_in_a_subgroup_only_se3_keeps_it_there():
    violation = {g: paper.run(cases.heavy_top(cases.GROUPS[g]), 0.2, 4e-3).violation.max() for g in cases.GROUPS}
    assert violation["SE(3)"] < 1e-12
    assert violation["SO(3)xR3"] > 1e-5


def test_each_body_on_the_group_that_suits_it():
    """Try the outlook of the paper: SE(3) for bodies on the ground, SO(3) x R^3 for others."""
    bodies = [
        cases.bar("bar 1", cases.place(np.eye(3), (0.1, 0, 0))),
        cases.bar("bar 2", cases.place(np.eye(3), (0.3, 0, 0))),
    ]
    bodies[1] = ConstrainedBody("bar 2", bodies[1].inertia, bodies[1].pose, SO3xR3())
    plain = cases.double_pendulum(SE3())
    mixed = ConstrainedSystem(bodies, plain.system.constraints)
    y0 = mixed.state(None, plain.system.twists(plain.y0))
    end = integrate_index1(mixed, y0, (0.0, 0.2), 1e-3, every=1000).y[-1]
    assert mixed.violation(end)[0] < 1e-14
    reference = integrate_index1(plain.system, plain.y0, (0.0, 0.2), 1e-3, every=1000).y[-1]
    np.testing.assert_allclose(mixed.poses(end), plain.system.poses(reference), rtol=0, atol=1e-5)


@pytest.mark.parametrize("group", top.GROUPS)
def test_the_heavy_top_of_bruels_cardona_and_arnold(group):
    """Measure the order on the fast spin of the benchmark, up to the digits of the reference."""
    system, y0 = top.top(top.GROUPS[group])
    assert system.energy(y0) == pytest.approx(top.ENERGY, abs=1e-10)
    coarse, fine = (top.maximal(group, "MK8", n) for n in (400, 800))
    assert np.log2(coarse.error / fine.error) > 7.5
    assert fine.error < 5e-9
    assert abs(fine.energy) < 1e-6
    assert abs(fine.spin) < 1e-10
    assert fine.violation < (1e-13 if group == "SE(3)" else 1e-9)


# --- rows ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "world"),
    [(kind, world) for kind in ROWS for world in (False, True) if not (kind == "holonomic" and world)],
)
def test_the_jacobian_and_its_rate_are_derivatives_of_the_residual(kind, world):
    rng, h = np.random.default_rng(1), 1e-5
    system = pair(kind, SE3(), world=world)
    y = system._pack(system.reference @ se3.exp(0.3 * rng.normal(size=(2, 6))), rng.normal(size=(2, 6)))
    J = system.jacobian(y)
    assert J.shape == (ROWS[kind], 12)
    for k in range(12):
        step = np.zeros(24)
        step[k] = h
        slope = (system.residual(system.group.advance(y, step)) - system.residual(system.group.advance(y, -step))) / (
            2 * h
        )
        np.testing.assert_allclose(J[:, k], slope, rtol=0, atol=1e-9)
    step = np.concatenate((system.twists(y).ravel(), np.zeros(12)))
    rows = system._evaluate(y)
    there, back = (system._evaluate(system.group.advance(y, s * step)).gdot for s in (h, -h))
    np.testing.assert_allclose(rows.bias, (there - back) / (2 * h), rtol=0, atol=1e-8)


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("kind", [k for k in ROWS if k != "holonomic"])
def test_every_kind_leaves_the_freedom_it_should_and_is_kept_by_a_motion(kind, group):
    system = pair(kind, GROUPS[group])
    y = system.consistent(None, np.random.default_rng(3).normal(size=(2, 6)))
    assert system.rank(y) == ROWS[kind] == np.linalg.matrix_rank(system.jacobian(y))
    assert system.violation(y, "velocity").max() < 1e-13
    end = integrate_index1(system, y, (0.0, 0.1), 1e-3, every=1000).y[-1]
    assert system.violation(end).max() < 1e-9
    assert abs(system.energy(end) - system.energy(y)) < 1e-8
    assert system.group.residual(end) < 1e-13


def test_the_constraint_does_not_depend_on_the_group():
    systems = [pair("revolute", g) for g in GROUPS.values()]
    V = np.random.default_rng(5).normal(size=(2, 6))
    a, b = (s.accelerations(0.0, s.consistent(None, V)) for s in systems)
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-11)


# --- closed forms and relative coordinates -------------------------------------------------------------------------


def test_the_reaction_of_a_swinging_rod():
    """A rod of length 2 l on a hinge along y, at an angle th from hanging, with angular velocity w."""
    m, l, th, w, g = 3.0, 0.7, 0.4, 2.5, 9.81
    I = m * l**2 / 3.0
    along = np.array([np.sin(th), 0.0, -np.cos(th)])
    rod = ConstrainedBody(
        "rod", inertia.from_com(m, (0, 0, 0), np.diag([I, I, 0.01])), cases.place(so3.exp((0, -th, 0)), l * along)
    )
    system = ConstrainedSystem(
        [rod], [Constraint("revolute", "hinge", ("world", "rod"), point=(0, 0, 0), axis=(0, 1, 0))]
    )
    omega = np.array([0.0, -w, 0.0])  # th grows about -y
    v = np.cross(omega, l * along)
    R = system.reference[0, :3, :3]
    y = system.state(None, [[*omega, *(R.T @ v)]])
    thdd = -m * g * l * np.sin(th) / (I + m * l**2)
    across = np.array([np.cos(th), 0.0, np.sin(th)])
    force = m * l * (thdd * across - w**2 * along) + m * g * np.array([0.0, 0.0, 1.0])
    reaction = system.reactions(0.0, y)["hinge"]
    np.testing.assert_allclose(reaction[:3], 0.0, atol=1e-12)
    np.testing.assert_allclose(R @ reaction[3:], force, rtol=0, atol=1e-12)
    np.testing.assert_allclose(system.accelerations(0.0, y)[0, :3], (0.0, -thdd, 0.0), rtol=0, atol=1e-12)


def test_a_cantilever_carries_the_moment_about_its_joint():
    beam = ConstrainedBody(
        "beam", inertia.from_com(2.0, (0, 0, 0), 0.1 * np.eye(3)), cases.place(np.eye(3), (0.5, 0, 0))
    )
    system = ConstrainedSystem([beam], [Constraint("fixed", "wall", ("world", "beam"))])
    wrench = system.reactions(0.0, system.state())["wall"]
    np.testing.assert_allclose(wrench, (0, -2.0 * 9.81 * 0.5, 0, 0, 0, 2.0 * 9.81), rtol=0, atol=1e-12)


JOINTS = {
    "spherical": gc.Joint.spherical((0.1, 0.2, -0.3)),
    "revolute": gc.Joint.revolute((0.5, -1.0, 2.0), (0.1, 0.2, -0.3)),
    "prismatic": gc.Joint.prismatic((0.5, -1.0, 2.0)),
    "cylindrical": gc.Joint.cylindrical((0.5, -1.0, 2.0), (0.1, 0.2, -0.3)),
    "planar": gc.Joint.planar((0.5, -1.0, 2.0)),
    "fixed": gc.Joint.fixed(),
}


def chain(kinds, inertias):
    """Return (robot, system): the same chain in relative and in maximal coordinates; joints are in the child's
    frame.
    """
    point, axis = np.array([0.1, 0.2, -0.3]), np.array([0.5, -1.0, 2.0])
    bodies = [
        gc.Body(f"b{i}", f"b{i - 1}" if i else None, JOINTS[k], None, J)
        for i, (k, J) in enumerate(zip(kinds, inertias))
    ]
    robot = gc.Robot.build(bodies, gravity=GRAVITY)
    joints = []
    for i, kind in enumerate(kinds):
        at_origin, no_axis = kind in ("planar", "prismatic", "fixed"), kind in ("spherical", "fixed")
        places: dict = {} if kind == "fixed" else {"point": (0, 0, 0), "point_b": (0, 0, 0)}
        if not at_origin:
            places = {"point": point, "point_b": point}
        if not no_axis:
            places |= {"axis": axis, "axis_b": axis}
        joints.append(Constraint(kind, f"j{i}", (f"b{i - 1}" if i else "world", f"b{i}"), **places))
    return robot, ConstrainedSystem(
        [ConstrainedBody(f"b{i}", J) for i, J in enumerate(inertias)], joints, gravity=GRAVITY
    )


@pytest.mark.parametrize(
    "kinds", [("revolute", "spherical", "prismatic", "cylindrical"), ("planar", "revolute", "revolute", "spherical")]
)
def test_a_chain_accelerates_as_in_relative_coordinates(kinds):
    rng = np.random.default_rng(8)
    inertias = [
        inertia.from_com(rng.uniform(0.5, 2.0), 0.2 * rng.normal(size=3), np.diag([0.5, 0.6, 0.7])) for _ in kinds
    ]
    robot, system = chain(kinds, inertias)
    q, v = robot.random_configuration(rng), rng.normal(size=robot.nv)
    vdot = robot.forward_dynamics(q, v, np.zeros(robot.nv))
    names = robot.body_names
    poses = np.array([robot.pose(q, n) for n in names])
    J, Jdot = (
        np.array([f(*a) for n in names for a in [(*state, n)]])
        for f, state in ((robot.jacobian, (q,)), (robot.jacobian_rate, (q, v)))
    )
    y = system.state(poses, J @ v)
    np.testing.assert_allclose(system.accelerations(0.0, y), J @ vdot + Jdot @ v, rtol=0, atol=1e-10)
    assert system.energy(y) == pytest.approx(robot.energy(q, v), rel=1e-12)
    np.testing.assert_allclose(system.momentum(y), robot.momentum(q, v), rtol=0, atol=1e-12)


def test_a_universal_joint_is_two_hinges():
    middle = inertia.from_com(1e-9, (0, 0, 0), 1e-9 * np.eye(3))
    bodies = [ConstrainedBody("a", BODY), ConstrainedBody("b", BODY)]
    point, x, z = (0.1, 0.2, -0.3), (1.0, 0, 0), (0, 0, 1.0)
    hold = Constraint("revolute", "base", ("world", "a"), point=(0, 0, 0), axis=(0, 1, 0))
    one = ConstrainedSystem(bodies, [hold, Constraint("universal", "u", ("a", "b"), point=point, axis=x, axis_b=z)])
    two = ConstrainedSystem(
        [*bodies, ConstrainedBody("cross", middle)],
        [
            hold,
            Constraint("revolute", "first", ("a", "cross"), point=point, axis=x),
            Constraint("revolute", "second", ("cross", "b"), point=point, axis=z),
        ],
    )
    V = two.twists(two.consistent(None, np.random.default_rng(2).normal(size=(3, 6))))
    a = one.accelerations(0.0, one.state(None, V[:2]))
    b = two.accelerations(0.0, two.state(None, V))[:2]
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)  # the cross has a small inertia


# --- multipliers, rank and sparsity --------------------------------------------------------------------------------


def dense_solution(system, y):
    """Vdot of (3) by the dense pseudo-inverse."""
    J, rows = system.jacobian(y), system._evaluate(y)
    n = len(system.bodies)
    M, Q = np.zeros((6 * n, 6 * n)), np.zeros(6 * n)
    for i, (V, T) in enumerate(zip(system.twists(y), system.poses(y))):
        at = slice(6 * i, 6 * i + 6)
        M[at, at] = inertia.spatial(system.parameters[i])
        weight = np.concatenate((np.zeros(3), T[:3, :3].T @ system.gravity))
        Q[at] = se3.ad(V).T @ M[at, at] @ V + M[at, at] @ weight
    bias = rows.bias[np.argsort(system._owner, kind="stable")]
    KKT = np.block([[M, -J.T], [J, np.zeros((len(J), len(J)))]])
    x = np.linalg.pinv(KKT, rcond=1e-12) @ np.concatenate((Q, -bias))
    return x[: 6 * n].reshape(n, 6), J, M, Q


@pytest.mark.parametrize("group", GROUPS)
def test_redundant_rows_change_neither_motion_nor_balance(group):
    system = four_bar(GROUPS[group])
    y = swinging(system)
    assert np.abs(system.twists(y)).max() > 0.2  # rad/s, so that it moves
    assert len(system.residual(y)) == 20
    assert system.rank(y) == np.linalg.matrix_rank(system.jacobian(y)) == 17
    Vdot, J, M, Q = dense_solution(system, y)
    np.testing.assert_allclose(system.accelerations(0.0, y), Vdot, rtol=0, atol=1e-10)
    minimal = four_bar(GROUPS[group], loop="spherical")
    np.testing.assert_allclose(
        minimal.accelerations(0.0, minimal.state(None, system.twists(y))), Vdot, rtol=0, atol=1e-10
    )
    rows = system._factorised(y)
    lam = system._least_norm(rows, system._accelerate(0.0, rows)[1])[np.argsort(system._owner, kind="stable")]
    np.testing.assert_allclose(J.T @ lam, M @ Vdot.ravel() - Q, rtol=0, atol=1e-10)
    np.testing.assert_allclose(lam, np.linalg.pinv(J.T) @ (M @ Vdot.ravel() - Q), rtol=0, atol=1e-8)
    end = integrate_index1(system, y, (0.0, 0.5), 2e-3, every=1000).y[-1]
    assert system.violation(end).max() < 1e-7
    assert abs(system.energy(end) - system.energy(y)) < 1e-7


def test_a_joint_given_twice_carries_half_each_time():
    once = cases.heavy_top(SE3())
    top = once.system.bodies[0]
    twice = ConstrainedSystem(
        [top],
        [
            Constraint("spherical", name, ("world", "top"), point=(0, 0, 0), point_b=(-0.5, 0, 0))
            for name in ("first", "second")
        ],
        gravity=(0, 0, 0),
    )
    assert twice.rank(once.y0) == 3
    half = 0.5 * once.system.reactions(0.0, once.y0)["pivot"]
    for wrench in twice.reactions(0.0, once.y0).values():
        np.testing.assert_allclose(wrench, half, rtol=0, atol=1e-9)


def hanging_chain(n, **options):
    bodies = [cases.bar(f"b{i}", cases.place(np.eye(3), (0.1 + 0.2 * i, 0, 0))) for i in range(n)]
    names = ["world", *(b.name for b in bodies)]
    joints = [
        Constraint(
            "spherical", f"j{i}", (names[i], names[i + 1]), point=(0.1 if i else 0.0, 0, 0), point_b=(-0.1, 0, 0)
        )
        for i in range(n)
    ]
    order = np.random.default_rng(0).permutation(n)  # the order of the constraints does not matter
    return ConstrainedSystem([bodies[i] for i in order], [joints[i] for i in order[::-1]], **options)


def test_factors_grow_linearly_along_a_chain():
    sizes = [hanging_chain(n)._size for n in (10, 20, 40)]
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])
    assert sizes[2] < 40 * 20


def test_a_long_chain_against_dense_algebra():
    system = hanging_chain(30)
    y = system.consistent(None, np.random.default_rng(1).normal(size=(30, 6)))
    np.testing.assert_allclose(system.accelerations(0.0, y), dense_solution(system, y)[0], rtol=1e-9, atol=1e-8)


def test_a_body_without_constraints_moves_freely():
    system = ConstrainedSystem([ConstrainedBody("a", BODY)], [], gravity=(0, 0, 0))
    y = system.state(None, [[1.0, 2.0, -1.0, 0.3, 0.2, 0.1]])
    end = integrate_index1(system, y, (0.0, 1.0), 1e-2, every=1000).y[-1]
    np.testing.assert_allclose(system.momentum(end), system.momentum(y), rtol=0, atol=1e-7)
    assert system.reactions(0.0, y) == {}
    assert system.violation(end).shape == (0,)


def test_an_applied_wrench_acts_in_the_bodys_axes():
    W = np.array([[0.1, 0.2, 0.3, 1.0, 2.0, 3.0]])
    system = ConstrainedSystem(
        [ConstrainedBody("a", BODY, pose(np.random.default_rng(4)))],
        [],
        gravity=(0, 0, 0),
        wrench=lambda t, T, V: t * W,
    )
    expected = np.linalg.solve(inertia.spatial(BODY), 2.0 * W[0])
    np.testing.assert_allclose(system.accelerations(2.0, system.state())[0], expected, rtol=1e-12)


# --- stabilisation -------------------------------------------------------------------------------------------------


def drift(stabilisation=None, project=False, t_end=0.5, h=1e-3):
    case = cases.double_pendulum(SO3xR3(), stabilisation=stabilisation)
    solution = integrate_index1(case.system, case.y0, (0.0, t_end), h, project=project, every=10)
    return case.system.violation(solution.y).max(), case.system.violation(solution.y, "velocity").max()


def test_stabilisation():
    none = drift()
    baumgarte = drift(Baumgarte(50.0, 50.0))
    ggl = drift(GGL(50.0))
    projected = drift(project=True)
    assert 1e-6 < none[0] < 1e-4
    assert baumgarte[0] < 0.5 * none[0]
    assert ggl[0] < 0.2 * none[0]
    assert projected[0] < 1e-12
    assert projected[1] < 1e-11


def test_ggl_without_a_rate_keeps_positions_though_velocities_drift():
    """With velocity errors of 1e-3 the index-1 equations alone drift at that speed; the GGL method does not."""

    def end(stabilisation):
        case = cases.double_pendulum(SE3(), stabilisation=stabilisation)
        V = case.system.twists(case.y0)
        V[1, 3] += 1e-3
        y = case.system._pack(case.system.reference, V)
        return case.system.violation(integrate_index1(case.system, y, (0.0, 0.1), 1e-3, every=1000).y[-1]).max()

    assert end(None) > 0.9e-4
    assert end(GGL()) < 1e-5


def test_projection_keeps_the_order_of_the_method():
    case = cases.three_bar(SO3xR3())
    ends = [
        integrate_index1(case.system, case.y0, (0.0, 0.4), h, project=True, every=10**6).y[-1]
        for h in (0.01, 0.005, 0.0025, 5e-4)
    ]
    errors = [np.abs(y - ends[-1]).max() for y in ends[:-1]]
    slopes = np.diff(np.log(errors)) / np.log(0.5)
    assert slopes[0] > 3.6
    assert slopes[1] > 3.8


def test_projection_is_the_nearest_and_leaves_consistent_states_alone():
    case = cases.double_pendulum(SE3())
    np.testing.assert_allclose(case.system.project(case.y0), case.y0, rtol=0, atol=1e-12)
    off = case.system.group.advance(case.y0, 1e-3 * np.random.default_rng(0).normal(size=24))
    y = case.system.project(off)
    assert case.system.violation(y).max() < 1e-13
    assert case.system.violation(y, "velocity").max() < 1e-12
    change = np.concatenate([se3.log(se3.inverse(a) @ b) for a, b in zip(case.system.poses(off), case.system.poses(y))])
    M = np.zeros((12, 12))
    M[:6, :6], M[6:, 6:] = inertia.spatial(case.system.parameters)
    J = case.system.jacobian(y)
    along = np.linalg.lstsq(J.T, M @ change, rcond=None)[0]
    np.testing.assert_allclose(J.T @ along, M @ change, rtol=0, atol=2e-3 * np.abs(M @ change).max())
