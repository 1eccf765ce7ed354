"""Problems of IFToMM's library of computational benchmark problems, against closed forms and published values.

A01, A02: González, Dopico, Lugrís and Cuadrado, A benchmarking system for MBS simulation software, Multibody System
Dynamics 16 (2006). Their precision "high" is 1e-3. The pendulum has a closed form. All links of the N-four-bar turn by
one angle, so that its energy gives one equation, which scipy integrates. A03 is Andrews' squeezer: equations,
parameters, and the state at 0.03 s with all printed digits are those of the Bari test set of initial value problems
(2003), and of Hairer and Wanner II (VII.7).
"""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ellipj, ellipk

import geomctrl as gc
from geomctrl import inertia
from geomctrl.papers.constrained.integration import integrate_index1
from geomctrl.papers.constrained.joints import Constraint
from geomctrl.papers.constrained.loops import ClosedLoops

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
