"""Loop closures on relative coordinates against the same mechanism in maximal coordinates."""

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import inertia, models, so3
from geomctrl.errors import ArgumentError, IntegrationError, NameNotFoundError
from geomctrl.papers.constrained.equations import GGL, Baumgarte
from geomctrl.papers.constrained.integration import integrate_index1
from geomctrl.papers.constrained.joints import ConstrainedBody, Constraint
from geomctrl.papers.constrained.loops import ClosedLoops
from geomctrl.papers.constrained.maximal import ConstrainedSystem

Y = np.array([0.0, 1.0, 0.0])
LEG = inertia.from_com(1.0, (0.2, 0.1, 0.3), np.diag([0.05, 0.06, 0.04]))
PLATE = inertia.from_com(3.0, (0.0, 0.0, 0.05), np.diag([0.2, 0.25, 0.4]))


def place(p, R=None):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = np.eye(3) if R is None else R, p
    return T


def four_bar(turn=None, **options):
    """Bars of 1, 1.2 and 1.3 m in the plane y = 0, the last one's end pinned to the ground; all turned by `turn`, the
    bodies in their frames too."""
    R = np.eye(3) if turn is None else turn
    axis, leg = R @ Y, inertia.from_com(1.0, R @ (0.2, 0.1, 0.3), R @ np.diag([0.05, 0.06, 0.04]) @ R.T)
    names, ends = ("crank", "coupler", "rocker"), [R @ p for p in ((0, 0, 0), (0, 0, 1.0), (1.2, 0, 0), (0, 0, -1.3))]
    before = (None, *names[:2])
    robot = gc.Robot.build(
        [gc.Body(n, b, gc.Joint.revolute(axis), place(p), leg) for n, b, p in zip(names, before, ends)],
        gravity=R @ (0, 0, -9.81),
    )
    pin = Constraint(
        "revolute", "pin", ("world", "rocker"), point=R @ (1.4, 0, 0), point_b=ends[3], axis=axis, axis_b=axis
    )
    hinges = [
        Constraint("revolute", f"at {n}", (b or "world", n), point=p, point_b=(0, 0, 0), axis=axis, axis_b=axis)
        for n, b, p in zip(names, before, ends)
    ]
    system = ConstrainedSystem([ConstrainedBody(n, leg) for n in names], [*hinges, pin], gravity=robot.gravity)
    return ClosedLoops(robot, [pin], **options), system


def three_legs(**options):
    """A 3-RPS parallel robot: three legs that hinge and slide, ball joints to a platform that is a free body."""
    bodies = [gc.Body("plate", None, gc.Joint.free(), None, PLATE)]
    hinges, slides, balls, masses = [], [], [], [ConstrainedBody("plate", PLATE)]
    for k in range(3):
        turn = so3.exp((0, 0, 2.0 * np.pi * k / 3.0))
        foot, corner = turn @ (0.8, 0, 0), turn @ (0.5, 0, 0)
        hip, leg = f"hip {k}", f"leg {k}"
        bodies.append(gc.Body(hip, None, gc.Joint.revolute(Y), place(foot, turn), LEG))
        bodies.append(gc.Body(leg, hip, gc.Joint.prismatic((0, 0, 1)), None, LEG))
        masses += [ConstrainedBody(hip, LEG), ConstrainedBody(leg, LEG)]
        hinges.append(
            Constraint("revolute", f"hinge {k}", ("world", hip), point=foot, point_b=(0, 0, 0), axis=turn @ Y, axis_b=Y)
        )
        slides.append(Constraint("prismatic", f"slide {k}", (hip, leg), axis=(0, 0, 1)))
        balls.append(Constraint("spherical", f"ball {k}", (leg, "plate"), point=(0, 0, 0.4), point_b=corner))
    robot = gc.Robot.build(bodies, gravity=(0, 0, -9.81))
    poses = {name: robot.pose(robot.neutral(), name) for name in robot.body_names}
    masses = [ConstrainedBody(b.name, b.inertia, poses[b.name]) for b in masses]
    return ClosedLoops(robot, balls, **options), ConstrainedSystem(masses, [*hinges, *slides, *balls])


MECHANISMS = {"four-bar": four_bar, "3-RPS": three_legs}


def begin(name, loop):
    robot = loop.robot
    q = robot.neutral()
    if name == "3-RPS":
        q[robot.q_slices[0]] = place((0.05, 0.02, 0.7), so3.exp((0.1, -0.15, 0.05)))[:3].ravel()
    else:
        q[:] = 0.3, 0.1, -0.6
    return loop.consistent(q, np.random.default_rng(1).normal(size=robot.nv))


@pytest.mark.parametrize("name", MECHANISMS)
def test_loops_in_relative_and_in_maximal_coordinates_are_the_same(name):
    loop, system = MECHANISMS[name]()
    y = begin(name, loop)
    robot, q, v = loop.robot, y[: loop.robot.nq], y[loop.robot.nq :]
    assert loop.violation(y).max() < 1e-12
    assert np.abs(v).max() > 0.05
    poses = np.array([robot.pose(q, b) for b in system.body_names])
    J = np.array([robot.jacobian(q, b) for b in system.body_names])
    Jdot = np.array([robot.jacobian_rate(q, v, b) for b in system.body_names])
    state = system.state(poses, J @ v)
    np.testing.assert_allclose(
        J @ loop.accelerations(0.0, y) + Jdot @ v, system.accelerations(0.0, state), rtol=0, atol=1e-9
    )
    assert loop.energy(y) == pytest.approx(system.energy(state), abs=1e-10)
    if name == "3-RPS":  # without redundant rows the reactions are unique, too
        ours, theirs = loop.reactions(0.0, y), system.reactions(0.0, state)
        for ball in loop.names:
            np.testing.assert_allclose(ours[ball], theirs[ball], rtol=0, atol=1e-8)


@pytest.mark.parametrize(("name", "rank", "freedom"), [("four-bar", 2, 1), ("3-RPS", 9, 3)])
def test_rank_and_freedom(name, rank, freedom):
    loop, _ = MECHANISMS[name]()
    assert loop.rank(begin(name, loop)) == rank == loop.robot.nv - freedom


@pytest.mark.parametrize(("apart", "rank"), [(1e-2, 2), (1e-5, 2), (1e-10, 1)])
def test_closures_that_differ_a_little_count_and_the_same_twice_does_not(apart, rank):
    robot = models.panda()
    rods = [
        Constraint(
            "distance", name, ("world", robot.body_names[-1]), point=(1.0 + x, 0.0, 0.0), point_b=(0.0, 0.0, 0.0)
        )
        for name, x in (("rod", 0.0), ("next", apart))
    ]
    loop = ClosedLoops(robot, rods)
    assert loop.rank(loop.state(robot.neutral())) == rank


def test_a_planar_mechanism_does_not_feel_how_its_plane_is_turned():
    """In a plane that is not aligned with the axes, redundant rows are not zero but rounding errors, and still
    recognised.
    """
    upright, _ = four_bar()
    y = begin("four-bar", upright)
    for seed in range(5):
        turned, _ = four_bar(so3.exp(2.0 * np.random.default_rng(seed).normal(size=3)))
        state = turned.consistent(y[:3], y[3:])
        assert turned.rank(state) == 2
        np.testing.assert_allclose(state, y, rtol=0, atol=1e-12)
        np.testing.assert_allclose(turned.accelerations(0.0, state), upright.accelerations(0.0, y), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_tree_under_the_closures_reactions_moves_as_the_mechanism(name):
    """Cut the loops and apply the reactions as forces: the recursion of the tree must give the same motion."""
    turn = so3.exp((0.4, -0.3, 0.8))
    loop, _ = four_bar(turn) if name == "four-bar" else three_legs()
    y = begin(name, loop)
    robot, q, v = loop.robot, y[: loop.robot.nq], y[loop.robot.nq :]
    tau = np.zeros(robot.nv)
    for c in loop.constraints:
        T = {n: np.eye(4) if n == "world" else robot.pose(q, n) for n in c.bodies}
        W = loop.reactions(0.0, y)[c.name]
        a, b = c.bodies
        m, f = T[b][:3, :3] @ W[:3], T[b][:3, :3] @ W[3:]
        point = T[b][:3, :3] @ c.point_b + T[b][:3, 3]
        for body, sign in ((b, 1.0), (a, -1.0)):
            if body != "world":
                R, arm = T[body][:3, :3], point - T[body][:3, 3]
                about = np.concatenate((R.T @ (m + np.cross(arm, f)), R.T @ f))
                tau += sign * robot.jacobian(q, body).T @ about
    np.testing.assert_allclose(robot.forward_dynamics(q, v, tau), loop.accelerations(0.0, y), rtol=0, atol=1e-9)
    assert np.abs(tau).max() > 1.0


def test_reactions_in_the_plane_are_those_of_maximal_coordinates():
    """Reactions out of the plane are not unique; the force of the pin in the plane is."""
    loop, system = four_bar()
    y = begin("four-bar", loop)
    poses = np.array([loop.robot.pose(y[:3], n) for n in system.body_names])
    J = np.array([loop.robot.jacobian(y[:3], n) for n in system.body_names])
    ours, theirs = (s.reactions(0.0, x)["pin"] for s, x in ((loop, y), (system, system.state(poses, J @ y[3:]))))
    np.testing.assert_allclose(ours[[3, 5]], theirs[[3, 5]], rtol=0, atol=1e-9)
    # the least norm among reactions that do no work
    np.testing.assert_allclose(ours[[0, 2, 4]], 0.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_run_keeps_loops_and_energy(name):
    loop, _ = MECHANISMS[name]()
    y = begin(name, loop)
    end = integrate_index1(loop, y, (0.0, 0.2), 2e-3, every=1000).y[-1]
    assert loop.violation(end).max() < 1e-7
    assert abs(loop.energy(end) - loop.energy(y)) < 1e-7


@pytest.mark.parametrize("name", MECHANISMS)
def test_projection_holds_loops_at_round_off_and_keeps_the_order(name):
    loop, _ = MECHANISMS[name]()
    y = begin(name, loop)
    ends = []
    for h in (0.02, 0.01, 0.005):
        solution = integrate_index1(loop, y, (0.0, 0.4), h, project=True)
        assert loop.violation(solution.y).max() < 2e-13
        assert loop.violation(solution.y, "velocity").max() < 1e-12
        ends.append(solution.y[-1])
    plain = integrate_index1(loop, y, (0.0, 0.4), 0.02, every=1000).y[-1]
    assert loop.violation(plain).max() > 1e-8
    exact = integrate_index1(loop, y, (0.0, 0.4), 5e-3, "MK6", project=True, every=1000).y[-1]
    errors = [np.abs(end - exact).max() for end in ends]
    assert np.log2(errors[1] / errors[2]) > 3.7
    losses = [abs(loop.energy(end) - loop.energy(y)) for end in ends]
    assert losses[2] < losses[0] / 100.0


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_stabilisation_brings_loops_back(name):
    """From errors of 1e-3 in position and velocity, stabilisation returns to the constraints; without it the errors
    stay.
    """

    def end(stabilisation):
        loop, _ = MECHANISMS[name](stabilisation=stabilisation)
        y = begin(name, loop)
        off = y + np.r_[np.zeros(loop.robot.nq), 1e-3 * np.ones(loop.robot.nv)]
        off[-1 - loop.robot.nv] += 1e-3
        assert loop.violation(off).max() > 1e-4
        y = integrate_index1(loop, off, (0.0, 0.5), 5e-3, every=1000).y[-1]
        return loop.violation(y).max(), loop.violation(y, "velocity").max()

    assert end(None)[0] > 5e-4
    assert max(end(Baumgarte(20.0, 20.0))) < 2e-5
    assert max(end(GGL(20.0))) < 2e-5


def test_ggl_without_a_rate_keeps_positions_though_velocities_are_off():
    def end(stabilisation):
        loop, _ = four_bar(stabilisation=stabilisation)
        y = begin("four-bar", loop)
        y[5] += 1e-2
        return loop.violation(integrate_index1(loop, y, (0.0, 0.2), 5e-3, every=1000).y[-1]).max()

    assert end(None) > 1e-3
    assert end(GGL()) < 1e-6


def test_torque_does_work():
    loop, _ = four_bar(torque=lambda t, q, v: np.array([2.0, 0.0, 0.0]))
    y = begin("four-bar", loop)
    end = integrate_index1(loop, y, (0.0, 0.2), 2e-3, project=True, every=1000).y[-1]
    assert loop.energy(end) - loop.energy(y) == pytest.approx(2.0 * (end[0] - y[0]), abs=1e-6)


def test_a_users_closure_is_the_one_written_by_hand():
    """A rod from the ground to the end of the rocker, as a distance and as a function with its Jacobian."""
    robot, anchor, end, length = four_bar()[0].robot, np.array([2.0, 0.3, -0.5]), np.array([0.1, 0.2, -1.3]), 1.1

    def function(T):
        s = T[0, :3, :3] @ end + T[0, :3, 3] - anchor
        return np.array([0.5 * (s @ s / length - length)])

    def jacobian(T):
        s = T[0, :3, :3].T @ (T[0, :3, :3] @ end + T[0, :3, 3] - anchor) / length
        return np.concatenate((np.cross(end, s), s))[None, None]

    rods = [
        Constraint("distance", "rod", ("world", "rocker"), point=anchor, point_b=end, length=length),
        Constraint.holonomic("rod", ["rocker"], function, jacobian),
    ]
    loops = [ClosedLoops(robot, [rod]) for rod in rods]
    states = [loop.consistent((0.3, 0.1, -0.6), (1.0, -2.0, 0.5)) for loop in loops]
    np.testing.assert_allclose(states[1], states[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(*(loop.accelerations(0.0, states[0]) for loop in loops), rtol=0, atol=1e-8)
    by_hand, users = (loop.reactions(0.0, states[0])["rod"].ravel() for loop in loops)
    np.testing.assert_allclose(users[3:], by_hand[3:], rtol=0, atol=1e-8)
    np.testing.assert_allclose(users[:3], np.cross(end, by_hand[3:]), rtol=0, atol=1e-8)
    thrice = Constraint.holonomic("thrice", ["rocker"], lambda T: 3 * function(T), lambda T: 3 * jacobian(T))
    both = ClosedLoops(robot, [rods[0], thrice])
    assert both.rank(states[0]) == 1
    # the multipliers x and 3 x of least norm: the forces are in the ratio 1 to 9
    shares = both.reactions(0.0, states[0])
    np.testing.assert_allclose(shares["rod"], 0.1 * by_hand, rtol=0, atol=1e-8)
    np.testing.assert_allclose(shares["thrice"].ravel(), 0.9 * users, rtol=0, atol=1e-8)


def test_velocities_held_fixed_stay():
    """The speed of a crank is given; the other speeds are the derivatives of the configurations."""
    loop, _ = four_bar()
    q, drives, h = begin("four-bar", loop)[:3], np.array([False, True, True]), 1e-5
    y = loop.consistent(q, (0.7, 0.0, 0.0), free=drives)
    assert y[3] == 0.7
    there, back = (loop.consistent(q + s * h * y[3:])[:3] for s in (1, -1))
    slope = (there - back) / (2 * h)
    np.testing.assert_allclose(slope, y[3:], rtol=0, atol=1e-8)
    with pytest.raises(ArgumentError, match="held fixed contradict constraint 'pin'"):
        loop.consistent(q, (0.7, 0.0, 0.0), free=[False, True, False])
    with pytest.raises(ArgumentError, match=r"free: expected booleans of shape \(3,\)"):
        loop.consistent(q, free=[True])


def test_no_closures_leave_the_robot_free():
    loop = ClosedLoops(four_bar()[0].robot, [])
    y = loop.consistent((0.1, 0.2, 0.3), (1.0, 0.0, -1.0))
    np.testing.assert_array_equal(y, (0.1, 0.2, 0.3, 1.0, 0.0, -1.0))
    np.testing.assert_allclose(loop.accelerations(0.0, y), loop.robot.forward_dynamics(y[:3], y[3:], np.zeros(3)))
    assert (loop.rank(y), loop.reactions(0.0, y)) == (0, {})


def test_a_torque_that_fails_says_when_and_keeps_the_run_so_far():
    for bad in (np.full(3, np.nan), np.zeros(2)):
        loop, _ = four_bar(torque=lambda t, q, v, bad=bad: bad if t > 0.095 else np.zeros(3))
        for project in (False, True):
            with pytest.raises(IntegrationError, match=r"torque\(t, q, v\): expected .* at t = 0\.1") as caught:
                integrate_index1(loop, begin("four-bar", loop), (0.0, 1.0), 0.02, project=project)
            assert 4 <= caught.value.solution.n_steps <= 5


def test_bad_input():
    loop, _ = four_bar()
    q = loop.robot.neutral()
    with pytest.raises(ArgumentError, match=r"positions violate constraint 'pin' \(revolute\): residual"):
        loop.state(q)
    y = begin("four-bar", loop)
    with pytest.raises(ArgumentError, match=r"velocities violate constraint 'pin'"):
        loop.state(y[:3], (1.0, 0.0, 0.0))
    np.testing.assert_array_equal(loop.state(y[:3], y[3:]), y)
    far = Constraint("spherical", "far", ("world", "rocker"), point=(9.0, 0, 0), point_b=(0, 0, 0))
    with pytest.raises(ArgumentError, match=r"no consistent configuration .* 'far' \(spherical\): residual"):
        ClosedLoops(loop.robot, [far]).consistent(q)
    with pytest.raises(NameNotFoundError, match="constraint 'x': no body named 'nobody'"):
        ClosedLoops(loop.robot, [Constraint("spherical", "x", ("world", "nobody"), point=(0, 0, 0))])
    with pytest.raises(ArgumentError, match="stabilisation: expected None, Baumgarte or GGL"):
        ClosedLoops(loop.robot, [], stabilisation="GGL")
    with pytest.raises(ArgumentError, match="every: expected a positive integer, got 0"):
        integrate_index1(loop, y, (0.0, 1.0), 0.1, project=True, every=0)
    opposite = Constraint(
        "revolute", "pin", ("world", "rocker"), point=(1.4, 0, 0), point_b=(0, 0, -1.3), axis=Y, axis_b=-Y
    )
    with pytest.raises(ArgumentError, match=r"'pin' .* opposite"):
        ClosedLoops(loop.robot, [opposite]).state(y[:3])
    with pytest.raises(ArgumentError, match=r"q: expected shape"):
        loop.state(np.zeros(2))
    with pytest.raises(ArgumentError, match=r"reference: expected"):
        ClosedLoops(loop.robot, [], reference=[np.nan, 0.0, 0.0])


@pytest.mark.parametrize("speed", [1e160, 1e200, -1e308])
def test_accelerations_that_overflow_are_refused(speed):
    robot = models.panda()
    loop = ClosedLoops(
        robot,
        [
            Constraint(
                "distance", "rod", ("world", robot.body_names[-1]), point=(1.0, 0.0, 0.0), point_b=(0.0, 0.0, 0.0)
            )
        ],
    )
    y = loop.state(robot.neutral())
    y[-1] = speed
    for method in (loop.accelerations, loop.reactions):
        with pytest.raises(ArgumentError, match=r"^y: expected a state with finite accelerations"):
            method(0.0, y)


def test_the_coupler_of_a_four_bar_may_be_light():
    """Its singular value is below the violation at the stages of long steps, but both rows are independent."""

    def at_the_end(mass):
        def bar(name, parent, x, m):
            T = np.eye(4)
            T[0, 3] = x
            parameters = inertia.from_com(m, (0.5, 0.0, 0.0), m * np.diag([0.01, 0.1, 0.1]))
            return gc.Body(name, parent, gc.Joint.revolute((0.0, 1.0, 0.0)), T, parameters)

        robot = gc.Robot.build([bar("a", None, 0.0, 1.0), bar("b", "a", 1.0, mass), bar("c", None, 1.4, 1.0)])
        pin = Constraint("spherical", "pin", ("b", "c"), point=(1.3, 0.0, 0.0), point_b=(1.2, 0.0, 0.0))
        loop = ClosedLoops(robot, [pin])
        y0 = loop.consistent([-1.0, 1.0, -1.2], [3.0, 0.0, 0.0])
        return integrate_index1(loop, y0, (0.0, 2.0), 0.03, project=True).y[-1, :3]

    assert np.abs(at_the_end(1e-8) - at_the_end(1e-4)).max() < 3e-3
