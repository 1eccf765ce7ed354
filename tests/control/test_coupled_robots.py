"""Robots whose joints follow others: every law, sensor, actuator, monitor, measure and picture takes their coordinates.

A follower stands between two joints with coordinates, and another one last: whoever counts joints instead of
coordinates reads the wrong one, or beyond the end.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from scipy.optimize import brentq
from simulation_options import flat_simulate, run_both_ways

import geomctrl as gc
from geomctrl import actuators, controllers, measures, monitors, references, sensors
from geomctrl.cli.motions import _excess, middle
from geomctrl.control.stops import bounded
from geomctrl.errors import ArgumentError, ModelError
from geomctrl.mechanism.configuration import joint_coordinates, single_coordinates
from geomctrl.viewing import joints as views


def arm(floating=False, **first):
    """The robot has q1, its follower, q3, and a finger that follows both."""

    def body(name, parent, joint, mass=1.0):
        at = np.eye(4)
        at[:3, 3] = 0.3, 0.1, 0.2
        return gc.Body(name, parent, joint, at, gc.inertia.from_com(mass, (0.1, -0.05, 0.02), 0.02 * np.eye(3)))

    turn = gc.Joint.revolute
    base = [body("base", None, gc.Joint.free(name="root"), 5.0)] if floating else []
    limits = {"lower": -0.5, "upper": 0.5, "velocity": 2.0, "effort": 30.0, "armature": 0.3} | first
    bodies = [
        body("a", "base" if floating else None, turn((0, 1, 0), name="q1", **limits), 2.0),
        body("b", "a", turn((0, 1, 0), name="follower", armature=0.2, lower=-1.0, upper=1.0)),
        body("c", "b", turn((1, 0, 0), name="q3", lower=-3.0, upper=1.0, velocity=4.0, effort=20.0), 1.5),
        body("d", "c", gc.Joint.prismatic((0, 0, 1), name="finger", lower=-2.0, upper=2.0), 0.2),
    ]
    couplings = [gc.Coupling("follower", {"q1": -0.5}, 0.1), gc.Coupling("finger", {"q1": 0.2, "q3": 0.1})]
    return gc.Robot.build([*base, *bodies], couplings=couplings)


ROBOT = arm()
HOME = np.array([0.1, -0.4])
MOTION = references.Sinusoids(ROBOT, HOME, 0.2, 0.5)
PASSIVE = controllers.JointImpedance(ROBOT, MOTION)
pytestmark = pytest.mark.usefixtures("kernels")


def simulated(law=None, plant=ROBOT, q=HOME + 0.05, t_end=0.05, simulate=flat_simulate, **options):
    law = controllers.ComputedTorque(ROBOT, MOTION) if law is None else law
    return simulate(plant, law, q, np.zeros(ROBOT.nv), t_end, 1e-3, **options)


same_compiled = partial(simulated, simulate=run_both_ways)


# --- coordinates -----------------------------------------------------------------------------------------------------


def test_coordinates_of_joints():
    outcome = [(str(x.joint.name), x.q, x.v) for x in joint_coordinates(arm(floating=True))]
    assert outcome == [
        ("root", np.s_[0:12], np.s_[0:6]),
        ("q1", np.s_[12:13], np.s_[6:7]),
        ("q3", np.s_[13:14], np.s_[7:8]),
    ]
    assert [x.tolist() for x in single_coordinates(arm(floating=True))] == [[12, 13], [6, 7]]
    ranges = bounded(ROBOT)
    assert (ranges.dofs.tolist(), ranges.places.tolist()) == ([0, 1], [0, 1])
    assert (ranges.lower.tolist(), ranges.upper.tolist()) == ([-0.5, -3.0], [0.5, 1.0])


def test_stops_push_once_and_at_the_joint_that_is_beyond():
    stops = gc.JointStops(100.0)._of(ROBOT)
    np.testing.assert_allclose(stops._torque(np.array([0.6, 0.0]), np.zeros(2)), [-10.0, 0.0])
    np.testing.assert_allclose(stops._torque(np.array([0.0, 1.3]), np.zeros(2)), [0.0, -30.0])
    plant = gc.Plant(ROBOT, stops=gc.JointStops(1e3, 0.1))
    run = same_compiled(controllers.PDGravity(ROBOT, [0.9, 0.0], kp=200.0), plant, q=[0.45, -0.35], t_end=0.06)
    assert 0.5 < run.q[:, 0].max() < 0.65


def test_what_is_beyond_a_limit_is_reported():
    run = same_compiled(
        controllers.PDGravity(ROBOT, [3.0, 0.0], kp=200.0), t_end=0.06, monitors=[monitors.JointLimits()]
    )
    result = run.monitors["position_limits"]
    assert not run.ok
    assert result.worst == pytest.approx(run.q[:, 0].max() - 0.5, abs=1e-9)


# --- laws ------------------------------------------------------------------------------------------------------------

SLIDING = ("Passivity", "SlotineLi", "SigmaModification", "EModification", "DeadZone", "SmoothProjection", "Composite",
           "ConcurrentLearning", "NaturalAdaptation", "MomentumAdaptation", "Robust", "SuperTwisting",
           "ComputedTorque", "JointImpedance", "QPInverseDynamics")  # fmt: skip
LAWS = {name: lambda kind: kind(ROBOT, MOTION) for name in SLIDING} | {
    "DREM": lambda kind: kind(ROBOT, MOTION, adapt=["d"]),
    "PDGravity": lambda kind: kind(ROBOT, HOME),
    "LQR": lambda kind: kind(ROBOT, HOME),
    "OperationalSpace": lambda kind: kind(ROBOT, MOTION, "c", axes="x"),
    "CartesianImpedance": lambda kind: kind(ROBOT, MOTION, "c", axes="x"),
    "MomentumObserver": lambda kind: kind(PASSIVE),
    "EnergyTank": lambda kind: kind(PASSIVE, controllers.PDGravity(ROBOT, HOME)),
    "OnlineIdentification": lambda kind: kind(PASSIVE, period=0.004),
    "SwingUp": lambda kind: kind(ROBOT, balanced(), [0]),
}
REFUSED = {  # laws for other kinds of robots
    "GeometricImpedance": lambda kind: kind(ROBOT, MOTION, "c"),  # needs six axes, more than this arm has
    "AttitudeTracking": lambda kind: kind(ROBOT, MOTION),
    "QuadrotorTracking": lambda kind: kind(ROBOT, MOTION),
    "ElasticJoint": lambda kind: kind(ROBOT, MOTION, 100.0, 0.5),
}


def balanced():
    """A configuration near HOME at which gravity does not move q3."""
    return np.array([0.1, brentq(lambda x: ROBOT.gravity_force([0.1, x])[1], -2.5, 0.9)])


@pytest.mark.slow
@pytest.mark.parametrize("name", [c.__name__ for c in controllers.classes().values() if "geomctrl" in c.__module__])
def test_every_law(name):
    """If this table lacks a law, this test fails: add how to create it, or why it is for other robots."""
    kind = getattr(controllers, name)
    if name in REFUSED:
        with pytest.raises((ArgumentError, ModelError)):
            REFUSED[name](kind)
        return
    law = LAWS[name](kind)
    options = {"control_dt": 0.004} if name == "OnlineIdentification" else {}
    q = law.q_d + 0.01 if name in ("LQR", "SwingUp") else HOME + 0.05
    run = simulated(law, q=q, **options) if name == "QPInverseDynamics" else same_compiled(law, q=q, **options)
    assert run.success
    for monitor in ("skew", "energy", "lyapunov"):
        assert monitor not in run.monitors or run.monitors[monitor].ok, run.monitors[monitor]


# --- actuators, sensors, measures -------------------------------------------------------------------------------------

ACTUATORS = {
    "Saturation": [actuators.Saturation(9.0), actuators.Saturation([5.0, 4.0])],
    "Lag": [actuators.Lag(0.005)],
    "RateLimit": [actuators.RateLimit([900.0, 800.0])],
    "TransportDelay": [actuators.TransportDelay(0.002)],
    "Selection": [actuators.Selection.joints(ROBOT), actuators.Selection.joints(ROBOT, ["q1", "q3"])],
    "TorqueSpeedLimits": [actuators.TorqueSpeedLimits([30.0, 20.0], [10.0, 10.0])],
    "SeriesElasticity": [actuators.SeriesElasticity([900.0, 800.0], [0.3, 0.2])],
    "DCMotor": [actuators.DCMotor(0.05, 1.0, 1e-3, gear_ratio=100.0)],
    "CurrentDrive": [actuators.CurrentDrive(0.05, gear_ratio=100.0)],
}
SENSORS = {
    "Encoder": [sensors.Encoder(12), sensors.Encoder(resolution=[1e-3, 0.0], noise=[1e-4, 0.0], offset=[0.01, 0.0])],
    "IMU": [sensors.IMU("b"), sensors.IMU("d")],
    "JointTorque": [sensors.JointTorque(), sensors.JointTorque(side="link")],
}
MEASURES = [measures.TrackingRMS(joints=True), measures.SettlingTime(0.5), measures.PeakTorque(joints=True),
            measures.WorstMonitor("skew")]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", [x for x in actuators.__all__ if x not in ("Actuator", "Sampled")])
def test_every_actuator(name):
    for actuator in ACTUATORS[name]:
        run = same_compiled(plant=gc.Plant(ROBOT, actuators=[actuator]), control_dt=2e-3)
        assert run.success


@pytest.mark.slow
@pytest.mark.parametrize("name", [x for x in sensors.__all__ if x not in ("Sensor", "Truth")])
def test_every_sensor(name):
    for sensor in SENSORS[name]:
        run = same_compiled(plant=gc.Plant(ROBOT, sensors=[sensor]), control_dt=2e-3)
        assert run.success


def test_an_encoder_counts_the_coordinates_that_there_are():
    run = simulated(plant=gc.Plant(ROBOT, sensors=[sensors.Encoder(resolution=[0.1, 0.0])]), control_dt=1e-3)
    q = run.signals["encoder.q"] if "encoder.q" in run.signals else run.measured["q"]
    np.testing.assert_allclose(q[:, 0], 0.1 * np.round(q[:, 0] / 0.1), atol=1e-12)
    assert np.abs(q[:, 1] - run.q[:, 1]).max() < 1e-9


def test_a_follower_can_not_be_driven():
    with pytest.raises(ArgumentError, match="'follower' is coupled to other joints"):
        actuators.Selection.joints(ROBOT, ["q1", "follower"])


def test_every_measure_every_monitor_and_a_sweep():
    run = simulated(monitors=[kind() for kind in (monitors.Skew, monitors.EnergyBalance, monitors.LyapunovDecrease,
                                                   monitors.JointLimits)])  # fmt: skip
    for measure in MEASURES:
        assert np.isfinite(measure(run)).all()
    table = gc.sweep(
        lambda point: (ROBOT, controllers.PDGravity(ROBOT, HOME, kp=point["kp"]), HOME + 0.05, np.zeros(2)),
        {"kp": [10.0, 100.0]},
        MEASURES,
        0.02,
        1e-3,
        execution=gc.SweepExecution(executor=ThreadPoolExecutor(1)),
    )
    assert table.success.all()


# --- pictures and the command line -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_picture(tmp_path):
    law = controllers.SlotineLi(ROBOT, MOTION)
    run = simulated(law, gc.Plant(ROBOT.with_payload(0.5)), t_end=0.05)
    assert {p.stem for p in run.plot(tmp_path)} >= {
        "overview",
        "tracking",
        "torques",
        "lyapunov",
        "estimates",
        "monitors",
    }
    assert run.save_html(tmp_path / "run.html").stat().st_size > 1000
    t, q = views.joint_tour(ROBOT)
    assert q.shape == (len(t), 2)
    assert np.ptp(q, axis=0).min() > 0.1


def test_postures_and_motions_of_the_command_line():
    np.testing.assert_allclose(middle(ROBOT), [0.0, -1.0])
    inside = references.Sinusoids(ROBOT, [0.0, -1.0], amplitude=0.1, frequency=0.1)
    outside = references.Sinusoids(ROBOT, [0.0, 0.95], amplitude=0.1, frequency=0.1)
    assert _excess(ROBOT, inside, 10.0) < 1.0 < _excess(ROBOT, outside, 10.0)


def test_inverse_kinematics_stays_in_the_ranges():
    q = np.array([0.4, 0.8])
    outcome = ROBOT.inverse_kinematics({"c": ROBOT.pose(q, "c")}, q0=[0.0, 0.0])
    np.testing.assert_allclose(ROBOT.pose(outcome.q, "c"), ROBOT.pose(q, "c"), atol=1e-6)
    assert np.abs(outcome.q[0]) <= 0.5
