"""Problems of IFToMM's library of computational benchmark problems, against closed forms and published values.

A01, A02: González, Dopico, Lugrís and Cuadrado, A benchmarking system for MBS simulation software, Multibody System
Dynamics 16 (2006). Their precision "high" is 1e-3. The pendulum has a closed form. All links of the N-four-bar turn by
one angle, so that its energy gives one equation, which scipy integrates. A03 is Andrews' squeezer: equations,
parameters, and the state at 0.03 s with all printed digits are those of the Bari test set of initial value problems
(2003), and of Hairer and Wanner II (VII.7). A04 and A05 have the dimensions, masses and starts of Tagliapietra, Vivian,
Ceseracciu and Reggiani, MBS benchmarks in OpenSim (2013-2015). Their references are curves without digits, so the
oracles are Lagrange's equations in one and in two coordinates, which scipy integrates.
"""

from functools import cache

import numpy as np
import pytest
from numpy.polynomial import Chebyshev
from scipy.integrate import solve_ivp
from scipy.special import ellipj, ellipk

import geomctrl as gc
from geomctrl import inertia
from geomctrl.lie.groups import SE3, SO3xR3
from geomctrl.papers.constrained.integration import integrate_index1
from geomctrl.papers.constrained.joints import ConstrainedBody, Constraint
from geomctrl.papers.constrained.loops import ClosedLoops
from geomctrl.papers.constrained.maximal import ConstrainedSystem

G, Z = 9.81, (0.0, 0.0, 1.0)


def place(x, y=0.0):
    T = np.eye(4)
    T[:2, 3] = x, y
    return T


def bar(name, parent, joint_at, mass, com, moment):
    """A body that turns about z at a point of its parent; `moment` is about its centre of mass."""
    body = inertia.from_com(mass, (*com, 0.0), np.diag([0.6, 0.6, 1.0]) * moment)
    return gc.Body(name, parent, gc.Joint.revolute(Z, name=name), place(*joint_at), body)


# --- A01: a point mass of 1 kg on a massless rod of 1 m, released at the horizontal ----------------------------------


def test_the_simple_pendulum_is_that_of_elliptic_functions():
    """sin(theta / 2) = k sn(K(k) + sqrt(g / L) t, k) from rest at 90 degrees, so k = sin 45 degrees."""
    point = bar("rod", None, (0.0, 0.0), 1.0, (0.0, -1.0), 1e-12)
    pendulum = gc.Robot.build([point], gravity=(0.0, -G, 0.0))
    rest = gc.control.Command(np.zeros(1))
    run = gc.simulate(pendulum, lambda t, q, v, z: rest, [-0.5 * np.pi], [0.0], 10.0, 1e-3)
    sn = ellipj(ellipk(0.5) + np.sqrt(G) * run.t, 0.5)[0]
    angle = -2.0 * np.arcsin(np.sqrt(0.5) * sn)
    assert np.abs(run.q[:, 0] - angle).max() < 1e-8
    assert np.ptp(run.q[:, 0]) > 3.0


# --- A02: N four-bars side by side, 2 N + 1 rods of 1 kg and 1 m, upright, B0 at 1 m/s --------------------------------


def four_bars(n):
    bodies, pins = [], []
    for k in range(n + 1):
        bodies.append(bar(f"upright {k}", None, (float(k), 0.0), 1.0, (0.0, 0.5), 1.0 / 12.0))
    for k in range(n):
        bodies.append(bar(f"coupler {k}", f"upright {k}", (0.0, 1.0), 1.0, (0.5, 0.0), 1.0 / 12.0))
        ends = (f"coupler {k}", f"upright {k + 1}")
        pins.append(Constraint("spherical", f"pin {k}", ends, point=(1.0, 0.0, 0.0), point_b=(0.0, 1.0, 0.0)))
    return ClosedLoops(gc.Robot.build(bodies, gravity=(0.0, -G, 0.0)), pins)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "t_end"), [(1, 1.0), (2, 10.0)])
def test_the_four_bars_pass_their_singular_position(n, t_end):
    """The horizontal position, where the links may fold, is passed; the closed equation has all angles equal."""
    loop = four_bars(n)
    turn = [1.0 if x.startswith("upright") else -1.0 for x in loop.robot.body_names]
    y = loop.state(np.zeros(2 * n + 1), -np.array(turn))
    h = 2.5e-3
    run = integrate_index1(loop, y, (0.0, t_end), h, project=True)

    moment, lever = (n + 1) / 3.0 + n, (0.5 * (n + 1) + n) * G

    def field(t, x):
        return [x[1], lever * np.sin(x[0]) / moment]

    exact = solve_ivp(field, (0.0, t_end), [0.0, 1.0], "DOP853", run.t, rtol=1e-11, atol=1e-12).y[0]
    angle = -run.y[:, loop.robot.body_names.index("upright 0")]
    assert np.abs(np.sin(angle) - np.sin(exact)).max() < 1e-3  # x of B0 [m]
    assert np.abs(np.cos(angle) - np.cos(exact)).max() < 1e-3
    assert exact[-1] > np.pi / 2.0
    energies = loop.energy(run.y)
    assert np.ptp(energies) < 1e-4 * lever


# --- A03: Andrews' squeezer, 7 bodies in 3 loops, driven by a torque against a spring ------------------------

A, B, C = np.array([-0.06934, -0.00227]), np.array([-0.03635, 0.03273]), np.array([0.014, 0.072])  # m
START = [
    -0.0617138900142764496358948458001, 0.0, 0.455279819163070380255912382449, 0.222668390165885884674473185609,
    0.487364979543842550225598953530, -0.222668390165885884674473185609, 1.23054744454982119249735015568,
]  # fmt: skip
END = [
    0.1581077119629904e2, -0.1575637105984298e2, 0.4082224013073101e-1, -0.5347301163226948, 0.5244099658805304,
    0.5347301163226948, 0.1048080741042263e1,
]  # fmt: skip
SPEEDS = [
    0.1139920302151208e4, -0.1424379294994111e4, 0.1103291221937134e2, 0.1929337464421385e2, 0.5735699284790808,
    -0.1929337464421385e2, 0.3231791658026955,
]  # fmt: skip
SPRING, REST, TORQUE = 4530.0, 0.07785, 0.033  # N/m, m, N m


def spring_torque(gamma):
    """The torque (about B) of the spring from C to the point (20, -18) mm of body 3."""
    c, s = np.cos(gamma), np.sin(gamma)
    lever = np.array([0.02 * c + 0.018 * s, 0.02 * s - 0.018 * c])
    x = B + lever - C
    length = np.linalg.norm(x)
    force = -SPRING * (length - REST) / length * x
    return lever[0] * force[1] - lever[1] * force[0]


def squeezer():
    bodies = [
        bar("1", None, (0.0, 0.0), 0.04325, (0.00092, 0.0), 2.194e-6),
        bar("2", "1", (0.007, 0.0), 0.00365, (-0.0115, 0.0), 4.410e-7),
        bar("3", None, B, 0.02373, (0.01874, 0.01043), 5.255e-6),
        bar("5", None, A, 0.07050, (0.02308, 0.00916), 1.169e-5),
        bar("4", "5", (0.04, 0.0), 0.00706, (0.0, -0.02 + 0.01421), 5.667e-7),
        bar("7", None, A, 0.05498, (0.01228, -0.00449), 1.912e-5),
        bar("6", "7", (0.0, -0.04), 0.00706, (0.02 - 0.01421, 0.0), 5.667e-7),
    ]
    ends = {"3": (0.0, -0.035, 0.0), "4": (0.0, -0.02, 0.0), "6": (0.02, 0.0, 0.0)}
    arm = (-0.028, 0.0, 0.0)
    pins = [Constraint("spherical", f"at {k}", ("2", k), point=arm, point_b=end) for k, end in ends.items()]
    robot = gc.Robot.build(bodies, gravity=(0.0, 0.0, 0.0))
    order = [robot.dof_names.index(str(k)) for k in range(1, 8)]

    def torque(t, q, v):
        tau = np.zeros(7)
        tau[order[0]], tau[order[2]] = TORQUE, spring_torque(q[order[2]])
        return tau

    return ClosedLoops(robot, pins, torque=torque), order


def in_order(order, values):
    """Values in the order (beta, Theta, gamma, Phi, delta, Omega, epsilon) as joints of the robot."""
    out = np.zeros(7)
    out[order] = values
    return out


def test_the_squeezer_begins_with_the_published_accelerations():
    loop, order = squeezer()
    y = loop.consistent(in_order(order, START))
    assert np.abs(y[:7] - in_order(order, START)).max() < 1e-12
    expected = [14222.4439199541138705911625887, -10666.8329399685855029433719415, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert np.abs(loop.accelerations(0.0, y)[order] - expected).max() < 1e-6


@pytest.mark.slow
def test_the_squeezer_ends_where_it_is_published():
    loop, order = squeezer()
    y = loop.consistent(in_order(order, START))
    end = integrate_index1(loop, y, (0.0, 0.03), 5e-5, "MK8", project=True, every=10**6).y[-1]
    assert np.abs(end[:7][order] - END).max() < 1e-6
    assert np.abs(end[7:][order] - SPEEDS).max() < 1e-3


# --- A04: Bricard's mechanism, five rods of 1 kg and 1 m along edges of a cube, an overconstrained loop --------------

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [1, -1, 0], [1, -1, 1], [0, -1, 1], [0, 0, 1]], dtype=float)  # m
AXES = np.eye(3)[[1, 2, 0, 1, 2, 0]]  # of the joints at the corners
WIDTH = 0.1  # m, of the rods' square section


def rod(i):
    """Inertia of rod i in axes at its first corner."""
    along = CORNERS[i + 1] - CORNERS[i]
    across = np.diag(1.0 - along**2) * (1.0 + WIDTH**2) / 12.0
    return inertia.from_com(1.0, 0.5 * along, across + np.diag(along**2) * WIDTH**2 / 6.0)


def bricard_loop(last_axis=AXES[5]):
    bodies = []
    for i in range(5):
        T = np.eye(4)
        T[:3, 3] = CORNERS[i] - CORNERS[max(i - 1, 0)]
        joint = gc.Joint.revolute(AXES[i], name=f"joint {i}")
        bodies.append(gc.Body(f"rod {i}", f"rod {i - 1}" if i else None, joint, T, rod(i)))
    at = CORNERS[5] - CORNERS[4]
    last = Constraint("revolute", "last", ("world", "rod 4"), CORNERS[5], point_b=at, axis=last_axis, axis_b=last_axis)
    return ClosedLoops(gc.Robot.build(bodies, gravity=(0.0, -G, 0.0)), [last])


def bricard_bodies(group=None):
    """The same mechanism in maximal coordinates: six revolute joints, 30 rows for 30 velocities."""
    bodies, joints = [], []
    for i in range(5):
        T = np.eye(4)
        T[:3, 3] = CORNERS[i]
        bodies.append(ConstrainedBody(f"rod {i}", rod(i), T))
    for i in range(6):
        ends = ("world" if i in (0, 5) else f"rod {i - 1}", f"rod {min(i, 4)}")
        point = CORNERS[i] - (CORNERS[i - 1] if 0 < i < 5 else 0.0)
        joints.append(Constraint("revolute", f"joint {i}", ends, point, axis=AXES[i]))
    return ConstrainedSystem(bodies, joints, gravity=(0.0, -G, 0.0), group=group)


def other_angle(x):
    """Angle of joints 1 and 3 where joints 0, 2 and 4 are at x: (1 + sin x) (1 + sin y) = 1.

    From the closure of Bricard loops of threefold symmetry: Chen, You and Tarnai 2005 (IJSS 42), alpha = 90 degrees.
    """
    return np.arcsin(-np.sin(x) / (1.0 + np.sin(x)))


def rods_of(x):
    """Centres (5, 3), axes (5, 3, 3) of the rods, and corners 3 and 5, by products of rotations."""
    R, p, corners, centres, frames = np.eye(3), np.zeros(3), [], [], []
    for i in range(5):
        angle = other_angle(x) if i % 2 else x
        K = np.cross(np.eye(3), AXES[i])
        R = R @ (np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K)
        along = R @ (CORNERS[i + 1] - CORNERS[i])
        centres.append(p + 0.5 * along)
        frames.append(R)
        p = p + along
        corners.append(p)
    return np.array(centres), np.array(frames), corners[2], corners[4]


@cache
def bricard_motion():
    """x(t) of M x'' + M' x'^2 / 2 + U' = 0, with M and U from the complex derivatives of points of the rods."""

    def inertia_of(x):
        centres, frames, _, _ = rods_of(x + 1e-20j)
        size = np.where(np.abs(np.diff(CORNERS, axis=0)) > 0.5, 1.0, WIDTH)
        return ((np.imag(centres) ** 2).sum() + (np.imag(frames) ** 2 * size[:, None] ** 2 / 12.0).sum()) * 1e40

    ends = [-0.2, np.pi + 0.2]
    M = Chebyshev.interpolate(np.vectorize(inertia_of), 60, ends)
    U = Chebyshev.interpolate(np.vectorize(lambda x: G * rods_of(x)[0][:, 1].sum()), 60, ends)
    dM, dU = M.deriv(), U.deriv()

    def field(t, s):
        return [s[1], -(0.5 * dM(s[0]) * s[1] ** 2 + dU(s[0])) / M(s[0])]

    return solve_ivp(field, (0.0, 10.0), [0.0, 0.0], "DOP853", rtol=1e-12, atol=1e-12, dense_output=True).sol


def test_the_closed_form_of_bricards_mechanism_closes():
    for x in np.linspace(0.0, np.pi, 7):
        assert np.abs(rods_of(x)[3] - CORNERS[5]).max() < 1e-14


@pytest.mark.parametrize(
    ("h", "method", "tolerance"), [(0.05, "MK4", 1e-4), pytest.param(0.02, "MK8", 1e-8, marks=pytest.mark.slow)]
)
def test_bricards_mechanism_moves_like_its_closed_form(h, method, tolerance):
    loop = bricard_loop()
    run = integrate_index1(loop, loop.state(np.zeros(5)), (0.0, 10.0), h, method, project=True)
    x = bricard_motion()(run.t)[0]
    expected = np.array([rods_of(angle)[2] for angle in x])
    corner = np.array([(loop.robot.pose(q, "rod 3"))[:3, 3] for q in run.y[:, :5]])
    assert np.abs(corner - expected).max() < tolerance  # m
    assert np.ptp(loop.energy(run.y)) < tolerance
    assert loop.violation(run.y).max() < 1e-12
    assert {loop.rank(y) for y in run.y[::20]} == {4}  # of 5 rows
    assert x.min() > -1e-9
    assert x.max() > 3.14


@pytest.mark.parametrize("group", [SE3(), SO3xR3()], ids=repr)
@pytest.mark.parametrize(
    ("h", "method", "tolerance"), [(0.05, "MK4", 2e-3), pytest.param(0.02, "MK8", 1e-6, marks=pytest.mark.slow)]
)
def test_bricards_mechanism_of_free_bodies_moves_like_its_closed_form(h, method, tolerance, group):
    system = bricard_bodies(group)
    run = integrate_index1(system, system.state(), (0.0, 10.0), h, method, project=True)
    x = bricard_motion()(run.t)[0]
    expected = np.array([rods_of(angle)[2] for angle in x])
    corner = system.poses(run.y)[:, 3, :3, 3]
    assert np.abs(corner - expected).max() < tolerance  # m
    assert np.ptp(system.energy(run.y)) < tolerance
    assert system.violation(run.y).max() < 1e-12
    assert {system.rank(y) for y in run.y[::20]} == {29}  # of 30 rows


@pytest.mark.parametrize("at", [0.3, 0.6, 1.1, 1.7])
def test_free_bodies_of_bricards_mechanism_have_the_accelerations_of_its_joints(at):
    """Also off the constraints, as at the stages of an integrator."""
    system, loop, rng = bricard_bodies(), bricard_loop(), np.random.default_rng(1)
    x, speed = bricard_motion()(at)
    y = other_angle(x)
    rate = -np.cos(x) / (1.0 + np.sin(x)) ** 2 / np.cos(y) * speed
    q, v = np.array([x, y, x, y, x]), np.array([speed, rate, speed, rate, speed])
    robot, a = loop.robot, loop.accelerations(0.0, loop.state(q, v))
    names = [f"rod {i}" for i in range(5)]
    poses = np.array([robot.pose(q, name) for name in names])
    twists = np.array([robot.jacobian(q, name) @ v for name in names])
    exact = np.array([robot.jacobian(q, name) @ a + robot.jacobian_rate(q, v, name) @ v for name in names])
    state = system.state(poses, twists)
    assert np.abs(system.accelerations(0.0, state) - exact).max() < 1e-7 * np.abs(exact).max()
    for violation in (1e-8, 1e-6, 1e-4):
        off = system.group.advance(state, violation * rng.normal(size=60) * (np.arange(60) < 30))
        error = system.accelerations(0.0, off) - exact
        assert np.abs(error).max() < 1e3 * violation * np.abs(exact).max()


@pytest.mark.parametrize("violation", [1e-8, 1e-6, 1e-4])
def test_a_small_violation_changes_the_accelerations_of_an_overconstrained_loop_little(violation):
    """Off the constraints the redundant row is independent; its multiplier alone would change these by up to 100 %."""
    loop = bricard_loop()
    rng, (x, speed) = np.random.default_rng(0), bricard_motion()(0.6)
    y = other_angle(x)
    rate = -np.cos(x) / (1.0 + np.sin(x)) ** 2 / np.cos(y) * speed
    q, v = np.array([x, y, x, y, x]), np.array([speed, rate, speed, rate, speed])
    exact = loop.accelerations(0.0, loop.state(q, v))
    for _ in range(5):
        off = np.concatenate((q + violation * rng.normal(size=5), v))
        assert np.abs(loop.accelerations(0.0, off) - exact).max() < 100.0 * violation


def test_a_tilted_axis_locks_bricards_mechanism():
    tilted = bricard_loop((1.0, 0.01, 0.02))
    y = tilted.state(np.zeros(5))
    assert tilted.rank(y) == 5
    assert np.abs(tilted.accelerations(0.0, y)).max() < 1e-9
    assert np.abs(bricard_loop().accelerations(0.0, y)).min() > 1.0


# --- A05: flyball governor, its coupler rods are stiff springs with dampers; turned at 1 Hz and left alone -----------

STIFFNESS, DAMPING, LENGTH = 8e5, 4e4, 0.5  # N/m, N s/m, m
BALL, ROD, SLIDER, HINGE = 5.0, 0.3, 3.0, 0.05  # kg, kg, kg; m from the axis to a rod's hinge and to a spring's end
ACROSS, ALONG = ROD * (1.0 + 1e-4) / 12.0, ROD * 1e-4 / 6.0  # kg m^2, of a rod with a section of 1 cm
START_ANGLE = np.pi / 6.0  # of the rods below the horizontal


def governor():
    def moved(x, z):
        T = np.eye(4)
        T[[0, 2], 3] = x, z
        return T

    box = np.eye(3) * SLIDER * 0.1**2 / 6.0
    bodies = [
        gc.Body(
            "shaft",
            None,
            gc.Joint.revolute(Z),
            np.eye(4),
            inertia.from_com(ROD, (0, 0, 0.5), np.diag((ACROSS, ACROSS, ALONG))),
        ),
        gc.Body("slider", "shaft", gc.Joint.prismatic(Z), np.eye(4), inertia.from_com(SLIDER, (0, 0, 0), box)),
    ]
    for side, name in ((1.0, "right"), (-1.0, "left")):
        arm = inertia.from_com(ROD, (0.5 * side, 0, 0), np.diag((ALONG, ACROSS, ACROSS)))
        arm = arm + inertia.from_com(BALL, (side, 0, 0), np.zeros((3, 3)))
        bodies.append(gc.Body(name, "shaft", gc.Joint.revolute((0, side, 0)), moved(HINGE * side, 1.0), arm))
    return gc.Robot.build(bodies, gravity=(0.0, 0.0, -G))


def springs(t, q, v):
    """Wrenches (m, f) of the springs between the slider and the middles of the rods, in the axes of the bodies."""
    out = np.zeros((4, 6))
    for body, side in ((2, 1.0), (3, -1.0)):
        c, s = np.cos(q[body]), np.sin(q[body])
        x, z = 0.5 * side * c, 1.0 - 0.5 * s - q[1]  # from the slider to the rod
        xdot, zdot = -0.5 * side * s * v[body], -0.5 * c * v[body] - v[1]
        length = np.sqrt(x * x + z * z)
        tension = STIFFNESS * (length - LENGTH) + DAMPING * (x * xdot + z * zdot) / length
        fx, fz = tension * x / length, tension * z / length  # on the slider, in the axes of the shaft
        out[1, 1] = out[1, 1] - HINGE * side * fz
        out[1, 3] = out[1, 3] + fx
        out[1, 5] = out[1, 5] + fz
        along, up = -c * fx + side * s * fz, -side * s * fx - c * fz  # on the rod, in its axes
        out[body, 3], out[body, 5] = along, up
        out[body, 1] = -0.5 * side * up
    return out


def governor_motion(t):
    """Angle of the rods, position of the slider, speed of the shaft: Lagrange with the conserved angular momentum."""

    def spin_inertia(a):
        c, s = np.cos(a), np.sin(a)
        slider = SLIDER * 0.1**2 / 6.0
        arm = ALONG * s * s + ACROSS * c * c + ROD * (HINGE + 0.5 * c) ** 2 + BALL * (HINGE + c) ** 2
        return ALONG + slider + 2.0 * arm

    def slope(a):
        return spin_inertia(a + 1e-20j).imag * 1e20

    spin = spin_inertia(START_ANGLE) * 2.0 * np.pi
    swing = 2.0 * (ACROSS + 0.25 * ROD + BALL)

    def field(t, y):
        a, s, da, ds = y
        x, z = 0.5 * np.cos(a), 1.0 - 0.5 * np.sin(a) - s
        length = np.sqrt(x * x + z * z)
        by_a, by_s = (-0.5 * np.sin(a) * x - 0.5 * np.cos(a) * z) / length, -z / length
        pull = 2.0 * (STIFFNESS * (length - LENGTH) + DAMPING * (by_a * da + by_s * ds))
        gravity = 2.0 * G * (0.5 * ROD + BALL) * np.cos(a)
        rate = spin / spin_inertia(a)
        return [da, ds, (0.5 * slope(a) * rate**2 + gravity - pull * by_a) / swing, -G - pull * by_s / SLIDER]

    y0 = [START_ANGLE, 0.5, 0.0, 0.0]
    angle, slider, *_ = solve_ivp(field, (0.0, t[-1]), y0, "Radau", t, rtol=1e-9, atol=1e-11).y
    return angle, slider, spin / spin_inertia(angle)


@pytest.mark.parametrize("t_end", [1.0, pytest.param(10.0, marks=pytest.mark.slow)])
def test_the_flyball_governor_moves_as_lagrange_says(t_end):
    """The slider oscillates by 0.24 m, while the springs' own motion decays within a millisecond."""
    robot, rest = governor(), gc.control.Command(np.zeros(4))
    q0, v0 = [0.0, 0.5, START_ANGLE, START_ANGLE], [2.0 * np.pi, 0.0, 0.0, 0.0]
    every = gc.SimulationOptions(every=100)
    run = gc.simulate(gc.Plant(robot, f_ext=springs), lambda t, q, v, z: rest, q0, v0, t_end, 1e-4, options=every)
    assert run.ok  # the balance of energy, with the power of the springs, among others
    angle, slider, rate = governor_motion(run.t)
    assert np.abs(run.q[:, 1] - slider).max() < 1e-8  # m
    assert np.abs(run.q[:, 2:] - angle[:, None]).max() < 1e-8
    assert np.abs(run.v[:, 0] - rate).max() < 1e-7
    assert np.ptp(slider) > 0.2
    spin = [robot.mass_matrix(q)[0] @ v for q, v in zip(run.q, run.v)]
    assert np.ptp(spin) < 1e-10 * spin[0]
