"""Compliant contact against closed forms, MuJoCo and the energy balance."""

import mujoco
import numpy as np
import pytest
from oracles import assert_close
from scipy.optimize import brentq
from simulation_options import grouped

import geomctrl as gc
from geomctrl import models, monitors

MASS, G = 1.3, 9.81
FEET = ("FR_foot", "FL_foot", "RR_foot", "RL_foot")
SOLID = gc.inertia.from_com(MASS, (0.0, 0.0, 0.0), 0.01 * np.eye(3))
NOTHING = gc.inertia.from_com(0.0, (0.0, 0.0, 0.0), np.zeros((3, 3)))


class Idle:
    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(0.0 * v)


def ball(gravity=0.0):
    """A mass that moves along z."""
    body = gc.Body("ball", None, gc.Joint.prismatic((0, 0, 1), name="z"), None, SOLID)
    return gc.Robot.build([body], gravity=(0, 0, -gravity))


def puck(gravity=G):
    """A mass that moves along x and z."""
    bodies = [
        gc.Body("rail", None, gc.Joint.prismatic((1, 0, 0), name="x"), None, NOTHING),
        gc.Body("puck", "rail", gc.Joint.prismatic((0, 0, 1), name="z"), None, SOLID),
    ]
    return gc.Robot.build(bodies, gravity=(0, 0, -gravity), physical=False)


def run(robot, f_ext, q0, v0, t_end, dt, **options):
    options = {"compiled": False} | options
    law = options.pop("law", None) or Idle()
    return gc.simulate(gc.Plant(robot, f_ext=f_ext), law, q0, v0, t_end, dt, **grouped(**options))


# --- the normal force --------------------------------------------------------------------------------------------


def restitution(d, speed):
    """For Hunt and Crossley's force alone: the first integral of m x'' = -k x^p (1 + d x')."""
    lost = d * speed - np.log1p(d * speed)
    return brentq(lambda w: -d * w - np.log1p(-d * w) - lost, 1e-9, min(speed, (1.0 - 1e-12) / d)) / speed


@pytest.mark.quick(4)
@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.2])
@pytest.mark.parametrize("d", [0.05, 0.2, 0.8])
def test_a_ball_bounces_as_hunt_and_crossleys_force_has_it(d, exponent):
    """The coefficient of restitution does not depend on mass, stiffness or exponent, and is 1 - 2/3 d v to first
    order.
    """
    stiffness = 2e4 * 200.0 ** (exponent - 1.0)
    result = run(ball(), gc.Contact(["ball"], stiffness, d, exponent=exponent), [0.005], [-1.0], 0.06, 2e-4)
    e = result.v[-1, 0]
    assert result.q[-1, 0] > 0.0
    assert e == pytest.approx(restitution(d, 1.0), abs=1e-4)
    assert abs(e - (1.0 - 2.0 / 3.0 * d)) < 0.5 * d**2


def test_what_a_bounce_loses_is_what_the_contact_dissipates():
    robot, contact = ball(), gc.Contact(["ball"], 1e5, 0.5)
    result = run(robot, contact, [0.01], [-1.0], 0.05, 5e-5)
    state = contact.state(robot, result.q, result.v)
    lost = np.trapezoid(state.dissipation, result.t)
    total = robot.energy(result.q, result.v) + state.energy
    assert lost == pytest.approx(0.5 * MASS * (1.0 - restitution(0.5, 1.0) ** 2), rel=1e-4)
    assert total[0] - total[-1] == pytest.approx(lost, rel=1e-4)
    assert (np.diff(total) <= 1e-9).all(), "no contact feeds energy"
    assert state.force[:, 0, 2].max() == pytest.approx(np.abs(np.diff(result.v[:, 0]) / 5e-5).max() * MASS, rel=2e-3)


def test_the_energy_balance_closes_to_the_integrators_order():
    """Order of the method through touch-down, up to the smoothness of the force x^1.5."""
    worst = [
        run(ball(G), gc.Contact(["ball"], 1e5, 0.5), [0.03], [-0.5], 0.08, dt).monitors["energy"].worst
        for dt in (4e-4, 2e-4, 1e-4)
    ]
    slopes = np.log2(np.array(worst[:-1]) / worst[1:])
    assert worst[-1] < 1e-8
    assert slopes.min() > 3.5, worst


def test_a_weight_rests_where_the_spring_holds_it():
    result = run(ball(G), gc.Contact(["ball"], 1e4, 2.0), [0.01], [0.0], 4.0, 1e-3, compiled=True)
    assert result.q[-1, 0] == pytest.approx(-((MASS * G / 1e4) ** (2.0 / 3.0)), rel=1e-9)
    assert result.monitors["energy"].ok


@pytest.mark.parametrize("v", [-1.0, 0.5, 3.0])
def test_contact_pushes_and_never_pulls(v):
    """Also for a point that leaves faster than the material recovers."""
    robot, contact = ball(), gc.Contact(["ball"], 1e4, 0.7)
    state = contact.state(robot, [-0.01], [v])
    assert state.depth == [0.01]
    assert state.force[0, 2] == pytest.approx(1e4 * 0.01**1.5 * max(1.0 - 0.7 * v, 0.0))
    above = contact.state(robot, [0.01], [v])
    assert not above.force.any()
    assert (above.energy, above.dissipation) == (0.0, 0.0)


# --- friction ----------------------------------------------------------------------------------------------------


def at_rest(k=1e5):
    """The penetration depth at rest, as a configuration of the puck."""
    return [0.0, -((MASS * G / k) ** (2.0 / 3.0))]


@pytest.mark.parametrize("compiled", [False, True], ids=["python", "compiled"])
def test_a_puck_slides_as_far_as_coulomb_says(compiled):
    mu, u, speed = 0.4, 0.02, 1.5
    result = run(puck(), gc.Contact(["puck"], 1e5, 0.5, mu, slip_speed=u), at_rest(), [speed, 0.0], 0.8, 1e-3,
                compiled=compiled)  # fmt: skip
    smoothed = 0.5 * (speed * np.hypot(speed, u) + u**2 * np.arcsinh(speed / u)) / (mu * G)
    assert result.q[-1, 0] == pytest.approx(smoothed, rel=1e-8)
    assert result.q[-1, 0] == pytest.approx(speed**2 / (2.0 * mu * G), rel=1e-3)
    assert result.monitors["energy"].ok


def test_a_held_puck_creeps_as_the_smoothing_says():
    mu, u, N = 0.6, 0.02, MASS * G
    push = gc.Wrench("puck", (0.0, 0.0, 0.0, 0.5 * mu * N, 0.0, 0.0))
    result = run(puck(), [gc.Contact(["puck"], 1e5, 0.5, mu, slip_speed=u), push], at_rest(), [0.0, 0.0], 0.3, 1e-3)
    assert result.v[-1, 0] == pytest.approx(0.5 * u / np.sqrt(1.0 - 0.25), rel=1e-9)


@pytest.mark.parametrize("mu", [0.3, 0.9])
def test_on_a_slope_it_slides_where_friction_does_not_hold_it(mu):
    angle = np.deg2rad(30.0)
    surface = gc.HalfSpace((np.sin(angle), 0.0, np.cos(angle)), (0.0, 0.0, 0.1))
    contact = gc.Contact(["puck"], 1e5, 0.5, mu, surface=surface, slip_speed=1e-3)
    deep = (MASS * G * np.cos(angle) / 1e5) ** (2.0 / 3.0)
    result = run(puck(), contact, [0.0, 0.1 - deep / np.cos(angle)], [0.0, 0.0], 0.5, 2e-4, compiled=True)
    a = G * (np.sin(angle) - mu * np.cos(angle))
    down = result.v[-1] @ [np.cos(angle), -np.sin(angle)]
    if a > 0.0:
        assert down == pytest.approx(a * 0.5, rel=5e-3)
    else:
        share = np.tan(angle) / mu
        assert down == pytest.approx(1e-3 * share / np.sqrt(1.0 - share**2), rel=1e-6)


# --- power and energy --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("seed", range(4))
def test_power_is_lost_or_stored(seed):
    """-f . v = dE/dt + dissipation at any state, with dissipation >= 0; the plant has the same force."""
    rng = np.random.default_rng(seed)
    robot = models.quadruped()
    q, v = robot.random_configuration(rng), rng.normal(size=robot.nv)
    middle = np.mean([robot.pose(q, foot)[:3, 3] for foot in FEET], axis=0)
    surface = gc.HalfSpace(rng.normal(size=3), middle)
    contact = gc.Contact([*FEET, ("trunk", (0.1, -0.2, 0.3))], 3e3, 0.7, 0.6, surface, exponent=1.7)
    plant, bare = gc.Plant(robot, f_ext=contact), gc.Plant(robot)
    tau = np.zeros(robot.nv)
    power = plant.power(0.0, q, v, tau) - bare.power(0.0, q, v, tau)
    state = contact.state(robot, q, v)
    assert (state.depth > 0.0).any()
    assert (state.depth < 0.0).any()
    h = 1e-5
    rate = (
        contact.state(robot, robot.integrate(q, h * v), v).energy
        - contact.state(robot, robot.integrate(q, -h * v), v).energy
    ) / (2 * h)
    assert state.dissipation >= 0.0
    assert -power == pytest.approx(rate + state.dissipation, rel=1e-6)
    points = [robot.jacobian(q, foot, "hybrid")[3:] for foot in FEET]
    J = robot.jacobian(q, "trunk", "body")
    T = robot.pose(q, "trunk")
    points.append(T[:3, :3] @ (J[3:] + np.cross(J[:3].T, [0.1, -0.2, 0.3]).T))
    push = sum(P.T @ f for P, f in zip(points, state.force))
    assert_close(plant.acceleration(0.0, q, v, tau), robot.forward_dynamics(q, v, push), 1e-9)


def test_states_of_a_whole_run_at_once():
    robot, contact = models.quadruped(), gc.Contact(FEET, 1e4, 0.5, 0.7)
    rng = np.random.default_rng(5)
    q = np.array([robot.random_configuration(rng) for _ in range(6)]).reshape(2, 3, robot.nq)
    v = rng.normal(size=(2, 3, robot.nv))
    result = contact.state(robot, q, v)
    assert [x.shape for x in result] == [(2, 3, 4), (2, 3, 4, 3), (2, 3), (2, 3)]
    for at in np.ndindex(2, 3):
        for x, y in zip(result, contact.state(robot, q[at], v[at])):
            assert_close(x[at], y, 1e-12, 1e-9)


# --- robots ------------------------------------------------------------------------------------------------------


class Stand:
    """PD control of the joints; the trunk is not actuated."""

    def __init__(self, stance, kp, kd):
        self.stance, self.kp, self.kd = stance, kp, kd

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        tau = -self.kp * (q[12:] - self.stance) - self.kd * v[6:]
        return gc.Command(np.concatenate((np.zeros(6), tau)))


@pytest.mark.slow
def test_a_quadruped_stands():
    robot, stance = models.quadruped(), np.tile([0.0, 0.8, -1.6], 4)
    q0 = robot.neutral()
    q0[12:] = stance
    q0[11] = 0.01 - robot.pose(q0, "FR_foot")[2, 3]
    contact = gc.Contact(FEET, stiffness=2e5, dissipation=1.0, friction=0.8, slip_speed=0.05)
    result = run(robot, contact, q0, np.zeros(robot.nv), 2.0, 5e-4, law=Stand(stance, 80.0, 2.0), compiled=True,
                monitors=[monitors.EnergyBalance(), monitors.GroupResidual()])  # fmt: skip
    assert result.ok, result.summary()
    state = contact.state(robot, result.q[-1], result.v[-1])
    weight = robot.parameters[:, 0].sum() * G
    assert state.force.sum(axis=0) == pytest.approx([0.0, 0.0, weight], abs=2e-3 * weight)
    assert (state.depth > 0.0).all()
    R, height = result.q[-1, :12].reshape(3, 4)[:, :3], result.q[-1, 11]
    assert np.rad2deg(np.arccos(R[2, 2])) < 1.0
    assert 0.25 < height < 0.28
    assert np.abs(result.v[-1]).max() < 5e-3
    touching = gc.Plant(robot, f_ext=contact)
    still = touching.acceleration(0.0, result.q[-1], result.v[-1], result.tau[-1])
    assert np.abs(still[:6]).max() < 0.05


def test_an_end_effector_pushes_on_a_wall():
    """At rest the wall's force balances the command, tau = g - Jac^T f, and f follows from its depth."""
    robot = models.two_link()
    inside = np.array([0.6, 0.7])
    x = robot.pose(inside, "tip")[0, 3]
    wall = gc.HalfSpace((-1.0, 0.0, 0.0), (x - 0.05, 0.0, 0.0))
    contact = gc.Contact(["tip"], 3e4, 1.0, 0.3, wall, slip_speed=0.05)
    law = gc.controllers.PDGravity(robot, inside, kp=60.0, kd=15.0)
    q0 = inside + 0.3
    assert contact.state(robot, q0, np.zeros(2)).depth < 0.0
    ways = [run(robot, contact, q0, [0.0, 0.0], 3.0, 1e-3, law=law, compiled=c) for c in (True, False)]
    np.testing.assert_allclose(ways[0].q, ways[1].q, atol=1e-9)
    q, v, tau = ways[0].q[-1], ways[0].v[-1], ways[0].tau[-1]
    state = contact.state(robot, q, v)
    f = np.concatenate((np.zeros(3), state.force[0]))
    assert f[3] < -0.5
    assert f[3] == pytest.approx(-3e4 * state.depth[0] ** 1.5, rel=1e-3)
    balance = tau + robot.jacobian(q, "tip", "hybrid").T @ f - robot.gravity_force(q)
    assert np.abs(balance).max() < 5e-3 * np.abs(tau).max()
    assert ways[0].monitors["energy"].ok


BLOCK = """
<mujoco><option timestep="0.0005" cone="elliptic" impratio="20"/>
<worldbody><geom type="plane" size="5 5 .1" friction="0.5 0 0" condim="3" priority="1" solref="0.004 1"/>
<body pos="0 0 0.05"><freejoint/><geom type="box" size=".1 .1 .05" mass="2"/></body></worldbody></mujoco>"""


def test_a_block_slides_as_far_as_in_mujoco():
    """MuJoCo's contact is a soft constraint, which differs; Coulomb's law and the balance of weight are the same."""
    model = mujoco.MjModel.from_xml_string(BLOCK)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 400)
    start = data.qpos[0]
    data.qvel[0] = 1.2
    mujoco.mj_step(model, data, 1000)
    box = gc.inertia.from_com(2.0, (0, 0, 0), 2.0 / 3.0 * np.diag([0.0125, 0.0125, 0.02]))
    robot = gc.Robot.build([gc.Body("block", None, gc.Joint.free(name="block"), None, box)])
    corners = [("block", (x, y, -0.05)) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
    q0 = robot.neutral()
    q0[11] = 0.05 - (2.0 * G / 4.0 / 1e5) ** (2.0 / 3.0)
    contact = gc.Contact(corners, 1e5, 1.0, 0.5)
    result = run(
        robot, contact, q0, [0, 0, 0, 1.2, 0, 0], 0.5, 5e-4, compiled=True, monitors=[monitors.EnergyBalance()]
    )
    theirs, ours = data.qpos[0] - start, result.q[-1, 3]
    assert ours == pytest.approx(1.2**2 / (2.0 * 0.5 * G), rel=0.01)
    assert ours == pytest.approx(theirs, rel=0.02)
    assert result.ok


# --- arguments ---------------------------------------------------------------------------------------------------


def test_a_point_is_a_frame_or_one_beside_it():
    robot = models.two_link()
    q, v = np.array([0.4, 0.6]), np.array([0.5, -1.0])
    wall = gc.HalfSpace((-1.0, 0.2, 0.0), (-5.0, 0.0, 0.0))
    a = gc.Contact([("tip", (0.1, 0.0, -0.05))], 10.0, 0.1, 0.5, wall).state(robot, q, v)
    world = robot.pose(q, "tip") @ np.array([0.1, 0.0, -0.05, 1.0])
    assert a.depth[0] == pytest.approx(np.dot(wall.normal, np.asarray(wall.point) - world[:3]), rel=1e-12)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: gc.Contact("tip", 1e3), "points: expected a list of frames, got 'tip'"),
        (lambda: gc.Contact([], 1e3), "points: expected at least one"),
        (lambda: gc.Contact([3], 1e3), "points: expected names of frames or pairs .frame, offset., got 3"),
        (lambda: gc.Contact([("tip", (0, 0))], 1e3), "points: offset in 'tip': expected shape"),
        (lambda: gc.Contact(["tip"], 0.0), "stiffness: expected a positive number, got 0.0"),
        (lambda: gc.Contact(["tip"], 1e3, -1.0), "dissipation: expected a number, not negative, got -1.0"),
        (lambda: gc.Contact(["tip"], 1e3, 0.0, np.nan), "friction: expected a number, not negative, got nan"),
        (lambda: gc.Contact(["tip"], 1e3, slip_speed=0.0), "slip_speed: expected a positive speed, got 0.0"),
        (lambda: gc.Contact(["tip"], 1e3, exponent=0.5), "exponent: expected a number from 1 on, got 0.5"),
        (lambda: gc.Contact(["tip"], 1e3, surface=(0, 0, 1)), "surface: expected a geomctrl.HalfSpace"),
        (lambda: gc.HalfSpace((0, 0, 0)), "normal: expected a direction"),
        (lambda: gc.HalfSpace((0, 0, np.inf)), "normal: expected finite numbers"),
        (lambda: gc.Plant(models.two_link(), f_ext=gc.Contact(["world"], 1e3)), "frame: expected one on a body"),
        (lambda: gc.Contact(["tip"], 1e3).state(models.two_link(), [0.0], [0.0, 0.0]), "q: expected shape"),
    ],
)  # fmt: skip
def test_what_is_no_contact_is_refused(make, said):
    with pytest.raises(gc.ArgumentError, match=said):
        make()


def test_unknown_frames_are_named():
    with pytest.raises(gc.NameNotFoundError, match="no frame named 'top'; did you mean 'tip'"):
        gc.Plant(models.two_link(), f_ext=gc.Contact(["top"], 1e3))
