"""Impedances, operational space and energy tank: motion under a force, passivity at ports, V', and sampled runs."""

import numpy as np
import pytest
from oracles import assert_close, without_limits
from postures import AXES, POSTURES
from scipy.spatial.transform import Rotation
from simulation_options import COMPILED

import geomctrl as gc
from geomctrl import controllers, models, se3, testing
from geomctrl.control.references import Sinusoids, hold
from geomctrl.errors import ArgumentError

FRAMES = {"two_link": "tip"}
ON_FRAMES = [controllers.OperationalSpace, controllers.CartesianImpedance, controllers.GeometricImpedance]


def arm(name, amplitude=0.15):
    robot = models.load(name)
    q = np.array(POSTURES[name])
    return robot, Sinusoids(robot, q, amplitude, 0.3) if amplitude else hold(robot, q)


def law_of(kind, name, amplitude=0.15, **options):
    robot, reference = arm(name, amplitude)
    if kind is controllers.JointImpedance:
        return kind(robot, reference, **options)
    if name in AXES and kind is not controllers.GeometricImpedance:
        options["axes"] = AXES[name]
    return kind(robot, reference, FRAMES.get(name, robot.body_names[-1]), **options)


def state(law, seed=0, off=0.1):
    rng, desired = np.random.default_rng(seed), law.reference(0.4)
    return law.robot.integrate(desired.q, off * rng.normal(size=law.robot.nv)), desired.v + rng.normal(
        size=law.robot.nv
    )


# --- the laws do what they say ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("inertia", [None, 0.5])
def test_joint_impedance_answers_a_push_as_the_spring_and_damper_it_says(inertia):
    push = np.array([1.0, -2.0, 0.5, 1.0, -0.3, 0.2, 0.1])
    measured_push = None if inertia is None else (lambda t, q, v: push)
    law = law_of(controllers.JointImpedance, "panda", inertia=inertia, external=measured_push)
    robot, (q, v) = law.robot, state(law)
    q_d, v_d, a_d = law.reference(0.4)
    e, w = q - q_d, v - v_d
    a = robot.forward_dynamics(q, v, law(0.4, q, v, None).tau + push)
    if inertia is None:
        felt = robot.mass_matrix(q) @ (a - a_d) + robot.coriolis_matrix(q, v) @ w
    else:
        felt = inertia * (a - a_d)
    assert_close(felt + law.damping @ w + law.stiffness @ e, push, 1e-9, 10.0)


@pytest.mark.parametrize("name", ["panda", "ur10"])
def test_a_frame_in_operational_space_moves_as_a_unit_mass(name):
    law = law_of(controllers.OperationalSpace, name)
    robot, (q, v), f = law.robot, state(law), law.frame
    a = robot.forward_dynamics(q, v, law(0.4, q, v, None).tau)
    q_d, v_d, a_d = law.reference(0.4)
    steps = []  # W' by differences along both motions, without brackets and Jacobians
    for h in (-1e-5, 1e-5):
        qs, qr = robot.integrate(q, h * v + 0.5 * h * h * a), law.reference(0.4 + h).q
        E = se3.inverse(robot.pose(qr, f)) @ robot.pose(qs, f)
        V = robot.jacobian(qs, f) @ (v + h * a)
        steps.append(V - se3.Ad(se3.inverse(E)) @ robot.jacobian(qr, f) @ law.reference(0.4 + h).v)
    rate, W = (steps[1] - steps[0]) / 2e-5, 0.5 * (steps[0] + steps[1])
    E = se3.log(se3.inverse(robot.pose(q_d, f)) @ robot.pose(q, f))
    wanted = -law.kd @ W - se3.dexp_inv(-E).T @ law.kp @ E
    assert_close(rate, wanted, 1e-6)
    assert a_d.any()
    assert v_d.any()


def test_the_posture_is_followed_where_the_task_leaves_room():
    """The Panda's elbow returns, and the hand does not move."""
    law = law_of(controllers.CartesianImpedance, "panda", 0.0)
    robot, q_d = law.robot, law.reference(0.0).q
    null = np.linalg.svd(robot.jacobian(q_d, law.frame))[2][-1]
    q = robot.inverse_kinematics({law.frame: robot.pose(q_d, law.frame)}, q_d + 0.3 * null).q
    assert np.abs(q - q_d).max() > 0.1
    run = gc.simulate(robot, law, q, np.zeros(7), 1.5, 2e-3, monitors=None, options=COMPILED)
    assert np.abs(run.q[-1] - q_d).max() < 0.03 * np.abs(q - q_d).max()
    poses = robot.pose(run.q, law.frame)
    assert np.abs(poses - poses[0]).max() < 1e-6


@pytest.mark.slow
def test_a_posture_without_stiffness_is_damped_and_stays():
    law = law_of(controllers.CartesianImpedance, "panda", 0.0, posture=(0.0, 10.0))
    robot, q_d = law.robot, law.reference(0.0).q
    null = np.linalg.svd(robot.jacobian(q_d, law.frame))[2][-1]
    run = gc.simulate(robot, law, q_d, 0.3 * null, 1.0, 2e-3, monitors=None, options=COMPILED)
    assert np.abs(run.v[-1]).max() < 1e-3
    assert np.abs(run.q[-1] - q_d).max() > 0.01
    with pytest.raises(ArgumentError, match="posture: expected a positive semidefinite"):
        law_of(controllers.CartesianImpedance, "panda", posture=(-1.0, 10.0))


def test_the_geometric_potential_is_a_spring_in_the_quaternion_and_its_force_the_gradient():
    law = law_of(controllers.GeometricImpedance, "ur10", stiffness=np.array([3.0, 5.0, 2.0, 100.0, 200.0, 300.0]))
    K, rng = law.stiffness, np.random.default_rng(0)
    for E in se3.exp(rng.normal(size=(5, 6)) * 1.5):
        U, force = law._potential(E, K)
        eps = Rotation.from_matrix(E[:3, :3]).as_quat(canonical=True)[:3]
        assert pytest.approx(2.0 * eps @ K[:3, :3] @ eps + 0.5 * E[:3, 3] @ K[3:, 3:] @ E[:3, 3]) == U
        steps = [se3.exp(1e-5 * x) for x in np.eye(6)]
        slopes = [law._potential(E @ T, K)[0] - law._potential(E @ se3.inverse(T), K)[0] for T in steps]
        assert_close(np.array(slopes) / 2e-5, force, 1e-7)
    half_turn = se3.exp(np.array([np.pi, 0.0, 0.0, 0.0, 0.0, 0.0]))
    assert law._potential(half_turn, K)[0] == pytest.approx(2.0 * 3.0)


# --- promises --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [controllers.JointImpedance, *ON_FRAMES], ids=lambda kind: kind.__name__)
def test_lyapunov(kind):
    law = law_of(kind, "two_link" if kind is not controllers.GeometricImpedance else "ur10")
    search = 0 if kind is controllers.GeometricImpedance else 100  # search at the port of the law
    testing.assert_lyapunov(
        law, law.robot, states=5, search=search, runs=testing.Runs(1, duration=0.05, dt=2e-3), region=0.2
    )


def test_lyapunov_with_an_inertia_of_its_own():
    law = law_of(controllers.JointImpedance, "two_link", inertia=[2.0, 0.5])
    testing.assert_lyapunov(law, law.robot, states=6, search=150, runs=testing.Runs(1, duration=0.1))


@pytest.mark.parametrize("kind", ON_FRAMES, ids=lambda kind: kind.__name__)
def test_the_rate_is_exact_beside_a_posture_that_is_off(kind):
    law = law_of(kind, "panda")
    for seed in range(3):
        q, v = state(law, seed)
        x = testing.lyapunov_at(law, law.robot, 0.4, q, v)
        assert x.actual == pytest.approx(x.promised, rel=1e-7, abs=1e-7)


def test_a_wrong_model_breaks_the_promise():
    law = law_of(controllers.CartesianImpedance, "ur10")
    heavier = law.robot.with_payload(5.0, (0.0, 0.0, 0.1), 0.01 * np.eye(3))
    with pytest.raises(AssertionError):
        testing.assert_lyapunov(law, heavier, states=5, search=0, runs=0)


def test_impedances_are_passive_at_their_ports():
    joints = law_of(controllers.JointImpedance, "two_link", 0.0)
    testing.assert_passive_port(joints, joints.robot, search=100, region=0.3)
    for kind in (controllers.CartesianImpedance, controllers.GeometricImpedance):
        law = law_of(kind, "ur10", 0.0)
        testing.assert_passive_port(law, law.robot, port=law.frame, search=15, region=0.2)


def test_operational_space_is_not_passive_at_the_frame():
    """The robot's inertia is replaced by a unit mass, so the power of a wrench is not the rate of V."""
    law = law_of(controllers.OperationalSpace, "ur10", 0.0)
    with pytest.raises(AssertionError, match="not passive"):
        testing.assert_passive_port(law, law.robot, port=law.frame, search=40, region=0.2)


# --- energy tank -----------------------------------------------------------------------------------------------------


class Wind:
    """A torque that adds energy to moving joints, or with the other sign removes it."""

    def __init__(self, robot, sign=1.0):
        self.robot, self.sign = robot, sign

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(3.0 * self.sign * v)


def tank(**options):
    passive = law_of(controllers.JointImpedance, "two_link", 0.0, damping=0.5)
    return controllers.EnergyTank(passive, Wind(passive.robot), **options)


@pytest.mark.slow
def test_a_tank_makes_a_law_that_pumps_energy_passive():
    law = tank()
    testing.assert_passive_port(law, law.robot, search=400, region=0.3)
    alone = law.passive
    with pytest.raises(AssertionError, match="not passive"):
        testing.assert_passive_port(_Sum(alone, law.active), law.robot, search=400, region=0.3)


class _Sum:
    """The same two laws without a tank."""

    def __init__(self, passive, active):
        self.passive, self.active, self.reference, self.robot = passive, active, passive.reference, passive.robot

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(self.passive(t, q, v, z).tau + self.active(t, q, v, z).tau)

    def lyapunov(self, t, q, v, z, plant):
        return self.passive.lyapunov(t, q, v, z, plant)


def test_the_tank_s_rate_is_exact_from_empty_to_full():
    """V' of the passive law and the tank, at energies in both margins and between, whether the other law takes or
    gives energy.
    """
    law = tank()
    robot, rng, active = law.robot, np.random.default_rng(3), []
    for E in (0.1, 0.13, 0.19, 1.0, 1.92, 1.98, 2.0):
        for sign in (1.0, -1.0):
            law.active = Wind(robot, sign)
            q, v = law.passive.reference(0.0).q + 0.2 * rng.normal(size=2), rng.normal(size=2)
            x = testing.lyapunov_at(law, robot, 0.4, q, v, np.array([E]))
            assert x.actual == pytest.approx(x.promised, rel=1e-7, abs=1e-9)
            active.append(abs(law(0.4, q, v, np.array([E])).tau - law.passive(0.4, q, v, None).tau).max())
    assert active[0] == active[1] == 0.0
    assert min(active[2:]) > 0.0


def test_a_tank_does_not_run_over():
    """Braking fills the tank, up to `full`."""
    law = tank(recovered=1.0)
    law.active = Wind(law.robot, -1.0)
    run = gc.simulate(law.robot, law, law.passive.reference(0.0).q + 0.8, np.zeros(2), 1.0, 1e-3, options=COMPILED)
    assert run.z is not None
    assert run.ok
    assert 1.9 < run.z[:, -1].max() <= law.full
    assert np.diff(run.z[:, -1]).min() >= 0.0


def test_energy_given_is_energy_paid_and_an_empty_tank_lets_the_robot_come_to_rest():
    law = tank(start=1.5)
    q0, still = law.passive.reference(0.0).q + 0.2, np.zeros(2)
    run = gc.simulate(law.robot, law, q0, still, 8.0, 1e-3, options=COMPILED)
    assert run.z is not None
    E, V = (
        run.z[:, -1],
        np.array([law.passive.lyapunov(0.0, q, v, None, law.nominal).value for q, v in zip(run.q, run.v)]),
    )
    assert run.ok
    assert E.min() >= law.lowest
    assert E.max() <= law.full
    assert E.min() < 0.3
    assert V.max() <= V[0] + 1.5 - law.lowest
    assert V[-1] < 0.1 * V[0]
    wild = gc.simulate(law.robot, _Sum(law.passive, law.active), q0, still, 0.6, 1e-3, monitors=None)
    assert law.passive.lyapunov(0.0, wild.q[-1], wild.v[-1], None, law.nominal).value > 5.0 * V[0]


# --- runs and words --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", POSTURES)
@pytest.mark.parametrize("kind", [controllers.JointImpedance, *ON_FRAMES], ids=lambda kind: kind.__name__)
def test_default_gains_work_at_1_khz_on_every_arm(kind, name):
    if name in AXES and kind is controllers.GeometricImpedance:
        with pytest.raises(ArgumentError, match="a task of at most"):
            law_of(kind, name)
        return
    law = law_of(kind, name)
    q0 = law.robot.integrate(law.reference(0.0).q, np.full(law.robot.nv, 0.05))
    free = without_limits(law.robot)
    run = gc.simulate(free, law, q0, law.reference(0.0).v, 2.0, 1e-3, control_dt=1e-3, options=COMPILED)
    assert run.ok, run.summary()
    assert np.abs(law.robot.difference(law.reference(2.0).q, run.q[-1])).max() < 2e-3


def test_what_is_no_task_is_refused():
    robot, reference = arm("panda")
    for options, words in [
        ({"frame": "world"}, "fixed to the world"),
        ({"axes": "yx"}, "axes: expected"),
        ({"stiffness": np.ones((2, 2))}, "stiffness"),
        ({"posture": 3.0}, "posture: expected"),
    ]:
        with pytest.raises(ArgumentError, match=words):
            controllers.CartesianImpedance(robot, reference, **{"frame": robot.body_names[-1], **options})
    K = np.eye(6)
    K[0, 3] = K[3, 0] = 0.1
    with pytest.raises(ArgumentError, match="no coupling"):
        controllers.GeometricImpedance(robot, reference, robot.body_names[-1], K)
    with pytest.raises(ArgumentError, match="external: expected None"):
        controllers.JointImpedance(robot, reference, external=lambda t, q, v: v)
    with pytest.raises(ArgumentError, match="full: expected more than lowest"):
        tank(full=0.05)
    with pytest.raises(ArgumentError, match="start: expected an energy"):
        tank(start=5.0)


def test_an_impedance_has_no_default_where_the_frame_can_not_move():
    """The straight arm can not move its tip along itself; with a stiffness the law is made there, too."""
    robot = models.two_link()
    straight = gc.references.hold(robot, np.zeros(2))
    with pytest.raises(ArgumentError, match=r"stiffness: .* q = \[0. 0.\]; pass stiffness"):
        controllers.CartesianImpedance(robot, straight, "tip", axes="xz")
    controllers.CartesianImpedance(robot, straight, "tip", 100.0, 20.0, axes="xz")
