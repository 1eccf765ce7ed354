"""Loop closures on relative coordinates against the same mechanism in maximal coordinates."""

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import inertia, so3
from geomctrl.closures import ClosedLoops
from geomctrl.constrained import Baumgarte, ConstrainedBody, ConstrainedSystem, Constraint
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.integrators import integrate

Y = np.array([0.0, 1.0, 0.0])
LEG = inertia.from_com(1.0, (0.2, 0.1, 0.3), np.diag([0.05, 0.06, 0.04]))
PLATE = inertia.from_com(3.0, (0.0, 0.0, 0.05), np.diag([0.2, 0.25, 0.4]))


def place(p, R=None):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = np.eye(3) if R is None else R, p
    return T


def four_bar(**options):
    """Bars of 1, 1.2 and 1.3 m in the plane y = 0, the last one's end pinned to the ground."""
    bars = [
        gc.Body("crank", None, gc.Joint.revolute(Y, (0, 0, 0)), place((0, 0, 0)), LEG),
        gc.Body("coupler", "crank", gc.Joint.revolute(Y, (0, 0, 0)), place((0, 0, 1.0)), LEG),
        gc.Body("rocker", "coupler", gc.Joint.revolute(Y, (0, 0, 0)), place((1.2, 0, 0)), LEG),
    ]
    robot = gc.Robot.build(bars, gravity=(0, 0, -9.81))
    pin = Constraint.revolute("pin", "world", "rocker", (1.4, 0, 0), Y, (0, 0, -1.3), Y)
    loop = ClosedLoops(robot, [pin], **options)
    hinges = [
        Constraint.revolute("a", "world", "crank", (0, 0, 0), Y, (0, 0, 0), Y),
        Constraint.revolute("b", "crank", "coupler", (0, 0, 1.0), Y, (0, 0, 0), Y),
        Constraint.revolute("c", "coupler", "rocker", (1.2, 0, 0), Y, (0, 0, 0), Y),
    ]
    names = ("crank", "coupler", "rocker")
    return loop, ConstrainedSystem([ConstrainedBody(n, LEG) for n in names], [*hinges, pin])


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
        hinges.append(Constraint.revolute(f"hinge {k}", "world", hip, foot, turn @ Y, (0, 0, 0), Y))
        slides.append(Constraint.prismatic(f"slide {k}", hip, leg, (0, 0, 1)))
        balls.append(Constraint.spherical(f"ball {k}", leg, "plate", (0, 0, 0.4), corner))
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
    if name == "3-RPS":  # no redundant rows: the reactions are unique too
        ours, theirs = loop.reactions(0.0, y), system.reactions(0.0, state)
        for ball in loop.names:
            np.testing.assert_allclose(ours[ball], theirs[ball], rtol=0, atol=1e-8)


@pytest.mark.parametrize(("name", "rank", "freedom"), [("four-bar", 2, 1), ("3-RPS", 9, 3)])
def test_rank_and_freedom(name, rank, freedom):
    loop, _ = MECHANISMS[name]()
    assert loop.rank(begin(name, loop)) == rank == loop.robot.nv - freedom


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_run_keeps_loops_and_energy(name):
    loop, _ = MECHANISMS[name]()
    y = begin(name, loop)
    end = integrate(loop.field, y, (0.0, 0.2), 2e-3, "MK4", loop.group, every=1000).y[-1]
    assert loop.violation(end).max() < 1e-7
    assert abs(loop.energy(end) - loop.energy(y)) < 1e-7


def test_torque_does_work_and_baumgarte_pulls_back():
    loop, _ = four_bar(torque=lambda t, q, v: np.array([2.0, 0.0, 0.0]), stabilisation=Baumgarte(20.0, 20.0))
    y = begin("four-bar", loop)
    off = y.copy()
    off[2] += 1e-3
    end = integrate(loop.field, off, (0.0, 0.5), 2e-3, "MK4", loop.group, every=1000).y[-1]
    assert loop.violation(off).max() > 1e-4
    assert loop.violation(end).max() < 1e-6
    exact = integrate(loop.field, y, (0.0, 0.2), 2e-3, "MK4", loop.group, every=1000).y[-1]
    assert loop.energy(exact) - loop.energy(y) == pytest.approx(2.0 * (exact[0] - y[0]), abs=1e-6)


def test_bad_input():
    loop, _ = four_bar()
    q = loop.robot.neutral()
    with pytest.raises(ArgumentError, match=r"positions violate constraint 'pin' \(revolute\): residual"):
        loop.state(q)
    y = begin("four-bar", loop)
    with pytest.raises(ArgumentError, match=r"velocities violate constraint 'pin'"):
        loop.state(y[:3], (1.0, 0.0, 0.0))
    np.testing.assert_array_equal(loop.state(y[:3], y[3:]), y)
    far = Constraint.spherical("far", "world", "rocker", (9.0, 0, 0), (0, 0, 0))
    with pytest.raises(ArgumentError, match=r"no consistent configuration .* 'far' \(spherical\): residual"):
        ClosedLoops(loop.robot, [far]).consistent(q)
    with pytest.raises(NameNotFoundError, match="constraint 'x': no body named 'nobody'"):
        ClosedLoops(loop.robot, [Constraint.spherical("x", "world", "nobody", (0, 0, 0))])
    with pytest.raises(ArgumentError, match="stabilisation: expected None or Baumgarte"):
        ClosedLoops(loop.robot, [], stabilisation="GGL")
    with pytest.raises(ArgumentError, match=r"q: expected shape"):
        loop.state(np.zeros(2))
    with pytest.raises(ArgumentError, match=r"reference: expected"):
        ClosedLoops(loop.robot, [], reference=[np.nan, 0.0, 0.0])
