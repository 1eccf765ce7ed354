"""Sensors: what a controller measures, in Python and in compiled loops."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from simulation_options import IN_PYTHON, both_ways, grouped

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.control import sensing
from geomctrl.control.compiled.choice import known_trace
from geomctrl.control.compiled.machine import Machine
from geomctrl.control.loop_runner import Case, LoopRunner
from geomctrl.control.sensors import IMU, Encoder, JointTorque, Sensor, Truth
from geomctrl.control.sensors.sensor import normals, round_keys
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.configuration import configuration_group
from geomctrl.mechanism.joint import Joint

MASS, PERIOD = 2.0, 0.02  # kg, s
SLIDER = gc.Robot.build(
    [Body("m", None, Joint.prismatic([1.0, 0.0, 0.0]), np.eye(4), inertia.from_com(MASS, np.zeros(3), np.eye(3)))],
    gravity=(0.0, 0.0, 0.0),
)
ARM = models.two_link()
MOTION = gc.references.Sinusoids(ARM, ARM.neutral(), 0.2, 0.7, 0.3)


class PD:
    def __init__(self, kp, kd):
        self.kp, self.kd = kp, kd

    def __call__(self, t, q, v, z):
        return gc.Command(-self.kp * q - self.kd * v)


class Free:
    """A law without torques that ignores its measurements."""

    def __init__(self, n):
        self.n = n

    def __call__(self, t, q, v, z):
        return gc.Command(np.zeros(self.n) + 0.0 * t)


def measured(sensors, robot=SLIDER, law=None, v0=(0.3,), t_end=1.0, **options):
    q0 = options.pop("q0", robot.neutral())
    options = {"control_dt": PERIOD, "monitors": None, "compiled": False} | options
    plant = gc.Plant(robot, sensors=sensors)
    return gc.simulate(plant, law or Free(robot.nv), q0, v0, t_end, options.pop("dt", PERIOD / 2), **grouped(**options))


# --- noise -----------------------------------------------------------------------------------------------------------


def test_noise_is_normal_white_and_independent_over_channels_seeds_and_streams():
    n = 20_000
    samples = np.arange(n, dtype=float)
    columns = [
        normals(round_keys(seed, stream), samples, 5) for seed, stream in ((0, "a"), (1, "a"), (2**30, "a"), (0, "b"))
    ]
    x = np.hstack(columns)
    error = 1.0 / np.sqrt(n)
    assert np.abs(x.mean(axis=0)).max() < 4.5 * error
    assert np.abs(x.var(axis=0) - 1.0).max() < 4.5 * np.sqrt(2.0) * error
    assert min(stats.kstest(column, "norm").pvalue for column in x.T) > 1e-3 / x.shape[1]
    correlation = np.corrcoef(x.T) - np.eye(x.shape[1])
    assert np.abs(correlation).max() < 4.5 * error
    for lag in (1, 2, 3, 16, 256):
        assert np.abs((x[lag:].T @ x[:-lag]) / (n - lag)).max() < 5.0 * error  # auto- and cross-correlations
    squares = np.corrcoef((x**2).T) - np.eye(x.shape[1])
    assert np.abs(squares).max() < 4.5 * error


def test_neighbouring_seeds_and_samples_differ_everywhere():
    x = np.array([[normals(round_keys(seed, "s"), np.array(float(k)), 4) for k in range(8)] for seed in range(8)])
    assert len(np.unique(x)) == x.size


def test_noise_is_a_function_of_the_sample_in_whatever_order():
    keys = round_keys(7, "imu")
    samples = np.array([3.0, 2.0**24 + 5.0, 0.0, 3.0, 2.0**40])
    x = normals(keys, samples, 7)
    for k, row in zip(samples, x):
        np.testing.assert_array_equal(normals(keys, np.array(k), 7), row)
    np.testing.assert_array_equal(normals(keys, samples, 3), x[:, :3])
    assert np.abs(x[0] - x[1]).min() > 0.0


# --- encoders --------------------------------------------------------------------------------------------------------


def test_a_ramp_in_counts():
    """q_m is the nearest count; differences are whole counts per period, and right on average."""
    resolution = 2.0 * np.pi / 2**8
    run = measured([Encoder(8)], dt=PERIOD)
    q, v = run.measured["q"][:, 0], run.measured["v"][:, 0]
    counts = q / resolution
    np.testing.assert_allclose(counts, np.round(counts), rtol=0.0, atol=1e-12)
    np.testing.assert_array_equal(np.round(counts), np.round(run.q[:, 0] / resolution))
    steps = v * PERIOD / resolution
    np.testing.assert_allclose(steps, np.round(steps), rtol=0.0, atol=1e-9)
    assert set(np.round(steps[1:])) == {0.0, 1.0}
    assert v[1:].mean() == pytest.approx(0.3, abs=resolution / (len(v) - 1) / PERIOD)


def test_a_filter_answers_a_step_of_velocity_as_the_analog_one():
    cutoff, sensor, plant = 3.0, Encoder(cutoff=3.0), gc.Plant(SLIDER)
    zero = np.zeros(1)
    memory, found = sensor.start(Truth(0.0, zero, zero, zero, None, plant), PERIOD), []
    for k in range(1, 20):  # at rest until t = 0, then at 1 m/s
        truth = Truth(k * PERIOD, np.array([k * PERIOD]), np.ones(1), zero, None, plant)
        y, memory = sensor.measure(truth, memory, np.zeros(0), PERIOD)
        found.append(y[1])
    expected = 1.0 - np.exp(-2.0 * np.pi * cutoff * PERIOD * np.arange(1, 20))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("compiled", [False, True])
def test_at_the_start_the_filter_has_settled_on_the_velocity(compiled):
    run = measured([Encoder(cutoff=2.0)], compiled=compiled)
    np.testing.assert_allclose(run.measured["v"], 0.3, rtol=1e-12)


@pytest.mark.parametrize("compiled", [False, True])
def test_offset_and_noise_of_positions(compiled):
    run = measured([Encoder(offset=0.1, noise=0.02, seed=3)], dt=PERIOD, t_end=6.0, compiled=compiled)
    error = run.measured["q"][:, 0] - run.q[:, 0] - 0.1
    draws = normals(round_keys(3, "encoder"), np.arange(len(error), dtype=float), 1)[:, 0]
    np.testing.assert_allclose(error, 0.02 * draws, rtol=0.0, atol=1e-13)


def test_a_tachometer_has_noise_of_its_own():
    run = measured([Encoder(noise=0.02, tachometer=0.5)], dt=PERIOD, t_end=60.0, compiled=True)
    q, v = (run.measured[x][:, 0] - getattr(run, x)[:, 0] for x in "qv")
    assert q.std() == pytest.approx(0.02, rel=0.05)
    assert v.std() == pytest.approx(0.5, rel=0.05)
    assert abs(np.corrcoef(q, v)[0, 1]) < 0.1


def test_on_a_group_offset_and_noise_are_in_the_algebra():
    robot = models.three_spheres()
    offset = 0.1 * np.arange(robot.nv)
    run = measured([Encoder(offset=offset, tachometer=0.0)], robot, v0=np.ones(robot.nv), t_end=0.2)
    away = robot.difference(run.q[::2], run.measured["q"][::2])
    np.testing.assert_allclose(away, np.tile(offset, (len(away), 1)), atol=1e-12)
    noisy = measured([Encoder(noise=0.2)], robot, v0=np.ones(robot.nv), t_end=0.2)
    residuals = [configuration_group(robot).residual(q) for q in noisy.measured["q"]]
    assert max(residuals) < 1e-12
    assert np.abs(robot.difference(noisy.q, noisy.measured["q"])).min(axis=1).max() > 0.0


# --- delay -----------------------------------------------------------------------------------------------------------


def delayed(kp, kd, steps):
    """The map (q_k, v_k, and those of the samples before) one period ahead, for a PD law with delayed measurements."""
    T, late = PERIOD, int(np.floor(steps))
    s = steps - late
    n = 2 * (late + 2)
    A = np.zeros((n, n))
    A[:2, :2] = [[1.0, T], [0.0, 1.0]]
    A[2:, :-2] = np.eye(n - 2)
    for at, weight in ((late, 1.0 - s), (late + 1, s)):
        force = -weight * np.array([kp, kd])
        A[0, 2 * at : 2 * at + 2] += 0.5 * T**2 / MASS * force
        A[1, 2 * at : 2 * at + 2] += T / MASS * force
    return A


@pytest.fixture
def interpolation_is_known():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sensing, "_warn_once", lambda message: None)
        yield


@pytest.mark.usefixtures("interpolation_is_known")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("steps", [0.0, 1.0, 3.0, 0.25, 2.5])
def test_a_delayed_law_is_its_difference_equation(steps, compiled):
    sensors = [Encoder(tachometer=0.0, delay=steps * PERIOD)]
    run = measured(sensors, law=PD(30.0, 8.0), q0=[0.2], v0=[-0.3], compiled=compiled)
    x = np.column_stack((run.q, run.v))[::2]
    A = delayed(30.0, 8.0, steps)
    y = np.tile(x[0], len(A) // 2)  # before the start a signal has the value of the first sample
    for row in x:
        np.testing.assert_allclose(y[:2], row, rtol=0.0, atol=1e-13)
        y = A @ y


@pytest.mark.parametrize("factor", [0.97, 1.03])
def test_the_delay_at_which_a_law_becomes_unstable(factor):
    """The gain at which an eigenvalue of the delayed loop leaves the unit circle, found by bisection."""
    low, high = 1.0, 400.0
    while high > 1.0001 * low:
        kd = 0.5 * (low + high)
        low, high = (kd, high) if np.abs(np.linalg.eigvals(delayed(4.0 * kd, kd, 2.0))).max() < 1.0 else (low, kd)
    law = PD(factor * 4.0 * low, factor * low)
    run = measured([Encoder(tachometer=0.0, delay=2 * PERIOD)], law=law, q0=[0.2], v0=[0.0], t_end=20.0, compiled=True)
    early, late = (np.abs(run.q[part]).max() for part in (slice(0, 400), slice(-400, None)))
    assert (late < early) == (factor < 1.0)


def test_a_delay_that_is_no_multiple_is_said_once():
    sensing._warned.clear()
    sensors = [Encoder(delay=0.3 * PERIOD)]
    with pytest.warns(RuntimeWarning, match=r"delay of 'encoder', 0.006 s, is no multiple of its period, 0.02 s"):
        measured(sensors, t_end=0.1)
    measured(sensors, t_end=0.1)


# --- periods ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [False, True])
def test_sensor_law_and_plant_each_at_its_own_period(compiled):
    """The sensor samples every three steps, the law every two, the plant every one."""
    dt = 0.01
    run = measured(
        [Encoder(tachometer=0.0, dt=3 * dt)], law=PD(20.0, 5.0), q0=[0.2], dt=dt, control_dt=2 * dt, compiled=compiled
    )
    k = np.arange(len(run.t))
    for name in ("q", "v"):
        np.testing.assert_array_equal(run.measured[name], getattr(run, name)[3 * (k // 3)])
    asked = 2 * (k // 2)  # the last sample at which the law was called
    reference = 3 * (asked // 3)
    np.testing.assert_allclose(run.tau, -20.0 * run.q[reference] - 5.0 * run.v[reference], rtol=0.0, atol=1e-13)


@pytest.mark.parametrize(
    ("dt", "options", "message"),
    [
        (0.015, {}, r"sensors: dt of 'encoder': expected a multiple of dt = 0.01 s, got 0.015"),
        (0.001, {}, r"sensors: dt of 'encoder': expected a multiple"),
        (None, {"control_dt": 0.015}, r"control_dt: expected a multiple of dt"),
        (None, {"control_dt": None}, r"control_dt: expected a multiple of dt, as the plant has sensors"),
    ],
    ids=["no multiple", "too short", "law", "continuous law"],
)
def test_periods_that_do_not_fit(dt, options, message):
    with pytest.raises(ArgumentError, match=message):
        measured([Encoder(dt=dt)], **{"dt": 0.01} | options)


# --- inertial measurement, torques -----------------------------------------------------------------------------------


def test_an_imu_at_rest_and_in_free_fall():
    holding = controllers.PDGravity(ARM, ARM.neutral(), 100.0, 20.0)
    run = measured([IMU("tip")], ARM, holding, v0=[0.0, 0.0], t_end=0.1)
    up = ARM.pose(run.q[-1], "tip")[:3, :3].T @ -ARM.gravity
    np.testing.assert_allclose(run.measured["imu"][-1], [0.0, 0.0, 0.0, *up], atol=1e-9)
    falling = models.quadruped()
    run = measured([IMU(falling.body_names[0])], falling, v0=np.zeros(falling.nv), t_end=0.1)
    assert np.abs(run.measured["imu"][1:]).max() < 1e-9


def test_an_imu_on_a_pendulum():
    """Return (rate, centripetal and tangential acceleration minus gravity) of a point at l under g sin(q) / l."""
    l, g = 0.7, 9.81
    load = inertia.from_com(1.0, (l, 0.0, 0.0), 1e-12 * np.eye(3))
    bob = [Body("bob", None, Joint.revolute([0.0, 1.0, 0.0]), np.eye(4), load)]
    T = np.eye(4)
    T[0, 3] = l
    robot = gc.Robot.build(bob, gravity=(0.0, 0.0, -g), frames=[("end", "bob", T)])
    run = measured([IMU("end", bias=[0.0] * 5 + [0.5])], robot, v0=[1.5], q0=[0.4])
    q, v = run.q[::2, 0], run.v[::2, 0]
    expected = np.zeros((len(q), 6))
    expected[:, 1] = v
    # x points to the bob, which falls tangentially, along -z; the rod alone pushes it, along x
    expected[:, 3] = -l * v**2 - g * np.sin(q)
    expected[:, 5] = 0.5
    np.testing.assert_allclose(run.measured["imu"][::2], expected, atol=1e-9)


def test_an_imu_is_mujocos(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    xml = """<mujoco><option timestep="0.001" gravity="0.5 0 -9.81"/><worldbody>
      <body name="a" pos="0 0 1"><joint name="j1" type="hinge" axis="0 1 0"/>
        <inertial pos="0.2 0 0.1" mass="2" diaginertia="0.1 0.2 0.3"/>
        <body name="b" pos="0.5 0 0" quat="0.9 0.1 0.2 0.3"><joint name="j2" type="hinge" axis="0 0 1"/>
          <inertial pos="0.1 0.3 0" mass="1" diaginertia="0.05 0.06 0.07"/>
          <site name="imu" pos="0.1 0.2 0.3" quat="0.3 0.5 0.2 0.7"/></body></body></worldbody>
      <actuator><motor joint="j1"/><motor joint="j2"/></actuator>
      <sensor><gyro site="imu"/><accelerometer site="imu"/></sensor></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = [0.3, -0.8], [1.2, -2.0], [3.0, -1.5]
    mujoco.mj_forward(model, data)
    (tmp_path / "arm.xml").write_text(xml[: xml.index("<sensor>")] + "</mujoco>")
    plant = gc.Plant(models.load_mjcf(tmp_path / "arm.xml"))
    truth = Truth(0.0, np.array([0.3, -0.8]), np.array([1.2, -2.0]), np.array([3.0, -1.5]), None, plant)
    y, _ = IMU("imu").measure(truth, np.zeros(0), np.zeros(0), 1e-3)
    np.testing.assert_allclose(y, data.sensordata, rtol=1e-9, atol=1e-9)


def test_torque_behind_the_gears_is_what_moves_the_link():
    """M_link a + C v + g, with the armature on the motor's side, by another recursion than the plant's."""
    robot = ARM.with_armature(0.3)
    plant = gc.Plant(
        robot, gc.Friction(0.4, 0.2, 0.1), sensors=[JointTorque(), JointTorque(side="motor", name="motor")]
    )
    law = controllers.ComputedTorque(ARM, MOTION)
    q0, v0, _ = MOTION(0.0)
    run = gc.simulate(plant, law, q0, v0, 0.4, 0.005, control_dt=0.01, monitors=None, options=IN_PYTHON)
    for k in range(2, len(run.t), 2):  # computed from the torques up to this sample
        a = plant.acceleration(run.t[k], run.q[k], run.v[k], run.tau[k - 1])
        link = robot.with_armature(0.0).inverse_dynamics(run.q[k], run.v[k], a)
        np.testing.assert_allclose(run.measured["torque"][k], link, rtol=1e-9)
        np.testing.assert_array_equal(run.measured["motor"][k], run.tau[k - 1])


def test_torque_behind_the_gears_is_a_stops_where_one_holds_the_arm():
    """At rest on its stop with motors off, the link side measures gravity's torque and the motor side measures zero."""
    robot = replace(ARM, joints=tuple(replace(joint, lower=-0.5, upper=0.5) for joint in ARM.joints))
    sensors = [JointTorque(), JointTorque(side="motor", name="motor")]
    plant = gc.Plant(robot, gc.Friction(5.0), sensors=sensors, stops=gc.JointStops(1e4, 1.0))
    runs = both_ways(plant, Free(2), [0.5, 0.5], [0.0, 0.0], 4.0, 1e-3, control_dt=2e-3, monitors=None)
    for run in runs:
        assert np.abs(run.v[-1]).max() < 1e-3
        at_rest = robot.inverse_dynamics(run.q[-1], np.zeros(2), np.zeros(2))
        assert np.abs(at_rest).max() > 1.0
        np.testing.assert_allclose(run.measured["torque"][-1], at_rest, atol=1e-2 * np.abs(at_rest).max())
        np.testing.assert_array_equal(run.measured["motor"][-1], np.zeros(2))


# --- loops -----------------------------------------------------------------------------------------------------------


def everything(robot, frame, dt):
    noise = 1e-3 * np.arange(1.0, robot.nv + 1.0)
    return [
        Encoder(14, offset=1e-3, noise=noise, cutoff=60.0, delay=2 * dt, seed=5),
        IMU(frame, noise=0.1, bias=0.01, dt=2 * dt, delay=4 * dt, seed=5),
        JointTorque(noise=0.3, dt=3 * dt),
    ]


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    ("name", "frame"),
    [("two_link", "tip"), ("panda", "panda_link5"), ("three_spheres", "")],
    ids=["arm", "panda", "spheres"],
)
def test_compiled_loops_measure_what_python_does(name, frame):
    robot, dt = getattr(models, name)(), 1e-3
    motion = gc.references.Sinusoids(robot, robot.neutral(), 0.2, 0.7, 0.3)
    plant = gc.Plant(robot, sensors=everything(robot, frame or robot.body_names[-1], dt))
    q0, v0, _ = motion(0.0)
    law = controllers.ComputedTorque(robot, motion)
    runs = both_ways(plant, law, q0, v0, 0.04, dt, control_dt=2 * dt, every=3)
    assert set(runs[0].measured) == {"q", "v", "imu", "torque"}
    for key, x in runs[0].measured.items():
        np.testing.assert_allclose(runs[1].measured[key], x, rtol=1e-9, atol=1e-9, err_msg=key)
    for key in ("q", "v", "tau"):
        np.testing.assert_allclose(getattr(runs[1], key), getattr(runs[0], key), rtol=1e-9, atol=1e-9, err_msg=key)


def test_loops_with_other_seeds_share_compiled_code():
    traced = set()
    for seed in (0, 5, 2**24 - 1, 2**30):
        encoder = Encoder(12, noise=1e-3, seed=seed)
        assert (encoder.seed, type(encoder.seed)) == (seed, int)
        runner = LoopRunner(
            Case(gc.Plant(ARM, sensors=[encoder]), controllers.PDGravity(ARM, [0.3, 0.2]), [0.0, 0.0], [0.0, 0.0]),
            0.5, 1e-3, 2e-3, [], gc.SimulationOptions(),
        )  # fmt: skip
        runner.begin()
        traced.add(id(known_trace(runner.loop, runner.record.watchers, False).traced))
    assert len(traced) == 1


def test_lanes_measure_what_a_run_alone_does_each_with_its_seed():
    dt = 1e-3
    plants = [gc.Plant(ARM, sensors=[Encoder(12, noise=1e-3, delay=dt, seed=seed)]) for seed in range(9)]
    q0, v0, _ = MOTION(0.0)
    options = {"control_dt": dt, "monitors": None, "compiled": True}
    law = controllers.ComputedTorque(ARM, MOTION)
    runs = gc.simulate_many(plants, law, q0, v0, 0.4, dt, **grouped(**options))
    assert len({float(run.q[-1, 0]) for run in runs}) == 9
    for plant, run in zip(plants, runs):
        alone = gc.simulate(plant, law, q0, v0, 0.4, dt, **grouped(**options))
        np.testing.assert_array_equal(run.q, alone.q)
        for key, x in alone.measured.items():
            np.testing.assert_array_equal(run.measured[key], x)


class Pole(PD):
    """At some samples the law formats the time as text: compiled code has no result there, Python has."""

    def __call__(self, t, q, v, z):
        one = 1.0
        for k in (10, 24, 25, 60):
            if t == k * (PERIOD / 2):
                one = one * float(f"{t}") / t
        return gc.Command(super().__call__(t, q, v, z).tau * one)


def test_a_sample_that_compiled_code_leaves_to_python_is_measured_once(monkeypatch):
    sensors, stops, run = [Encoder(noise=1e-3, cutoff=5.0, delay=2 * PERIOD)], [], Machine.run
    monkeypatch.setattr(Machine, "run", lambda *x, **options: stops.append(found := run(*x, **options)) or found)
    law = Pole(3.0, 3.0)
    runs = [measured(sensors, law=law, q0=[0.2], compiled=compiled) for compiled in (False, True)]
    assert sum(stopped for _, _, stopped, _ in stops) == 3
    for key in ("q", "v"):
        np.testing.assert_allclose(runs[1].measured[key], runs[0].measured[key], rtol=0.0, atol=1e-11)


def test_monitors_and_lyapunov_see_the_truth():
    class Law(PD):
        def lyapunov(self, t, q, v, z, plant):
            return gc.Lyapunov(0.5 * MASS * v[0] ** 2 + 0.5 * self.kp * q[0] ** 2, -self.kd * v[0] ** 2)

    plant = gc.Plant(SLIDER, sensors=[Encoder(offset=0.1, noise=0.05)])
    run = gc.simulate(plant, Law(30.0, 8.0), [0.2], [0.0], 1.0, 0.01, control_dt=0.02, options=IN_PYTHON)
    V = 0.5 * MASS * run.v[:, 0] ** 2 + 15.0 * run.q[:, 0] ** 2
    np.testing.assert_allclose(run.signals["lyapunov"], V, rtol=1e-14)
    assert "holding" not in run.monitors  # the hold is not the only cause of growth, noise is another


class FeelsTorque:
    """A law that needs measurements besides q and v."""

    measurements = True

    def __call__(self, t, q, v, z, y):
        return gc.Command(-20.0 * q - 5.0 * v + 0.1 * y["torque"])


def test_a_law_that_wants_measurements():
    sensors = [JointTorque(delay=PERIOD, noise=0.1)]
    runs = [measured(sensors, law=FeelsTorque(), q0=[0.2], compiled=compiled) for compiled in (False, True)]
    expected = -20.0 * runs[0].q - 5.0 * runs[0].v + 0.1 * runs[0].measured["torque"]
    np.testing.assert_allclose(runs[0].tau[::2], expected[::2], rtol=1e-14)
    np.testing.assert_allclose(runs[1].tau, runs[0].tau, rtol=0.0, atol=1e-12)
    with pytest.raises(ArgumentError, match="it wants measurements, but the plant has no sensors"):
        gc.simulate(SLIDER, FeelsTorque(), [0.2], [0.0], 0.1, 0.01, control_dt=0.02)


def test_a_sensor_of_ones_own(tmp_path):
    class Switch(Sensor):
        """A sensor that is 1 where the slider is beyond a position, and counts its samples there."""

        def __init__(self, place):
            super().__init__("switch")
            self.place = place

        def outputs(self, robot):
            return {"beyond": (1,), "count": (1,)}

        def start(self, truth, period):
            return np.zeros(1)

        def measure(self, truth, memory, draws, period):
            beyond = np.where(truth.q > self.place, 1.0, 0.0)
            return np.concatenate((beyond, memory + beyond)), memory + beyond

    for compiled in (False, True):
        run = measured([Switch(0.1)], v0=[0.25], compiled=compiled)
        beyond = run.q[::2, 0] > 0.1
        np.testing.assert_array_equal(run.measured["beyond"][::2, 0], beyond)
        counts = np.cumsum(beyond)
        np.testing.assert_array_equal(run.measured["count"][2::2, 0], counts[1:])
        again = gc.Run.load(run.save(tmp_path / "run.npz"))
        np.testing.assert_array_equal(again.measured["count"], run.measured["count"])


def test_sweeps_have_sensors():
    table = gc.sweep(
        noisy, {"seed": [0, 1, 2], "bits": [10, 16]}, {"worst": worst}, t_end=0.5, dt=PERIOD / 2, control_dt=PERIOD
    )
    x = table["worst"].values
    assert np.isfinite(x).all()
    assert len(np.unique(x)) == x.size


def noisy(point):
    plant = gc.Plant(SLIDER, sensors=[Encoder(int(point["bits"]), noise=1e-3, seed=int(point["seed"]))])
    return plant, PD(30.0, 8.0), [0.2], [0.0]


def worst(run):
    return np.abs(run.measured["q"] - run.q).max()


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Encoder(0), "bits: expected a whole number from 1 to 52, got 0"),
        (lambda: Encoder(12, resolution=0.1), "bits, resolution: expected one of them"),
        (lambda: Encoder(noise=-1.0), "noise: expected a number >= 0"),
        (lambda: Encoder(delay=-1e-3), "delay: expected seconds >= 0, got -0.001"),
        (lambda: Encoder(dt=0.0), "dt: expected None or seconds > 0, got 0.0"),
        (lambda: Encoder(cutoff=0.0), "cutoff: expected None or Hz > 0, got 0.0"),
        (lambda: Encoder(tachometer="true"), "tachometer: expected real numbers"),
        (lambda: Encoder(tachometer=-0.1), "tachometer: expected a number >= 0"),
        (lambda: Encoder(tachometer=0.0, cutoff=1.0), "cutoff: expected None"),
        (lambda: Encoder(seed=-1), "seed: expected a whole number from 0"),
        (lambda: Encoder(seed=1.5), "seed: expected a whole number from 0"),
        (lambda: Encoder(name=""), "name: expected a word"),
        (lambda: IMU("tip", noise=[1.0, 2.0]), "noise: expected a number or 6 of them"),
        (lambda: JointTorque(side="left"), "side: expected 'link' or 'motor'"),
        (lambda: gc.Plant(ARM, sensors=[Encoder(noise=np.ones(3))]), "encoder: noise: expected a number or 2 of them"),
        (lambda: gc.Plant(ARM, sensors=[Encoder(), Encoder()]), "sensors: two are named 'encoder'"),
        (lambda: gc.Plant(ARM, sensors=[Encoder(), Encoder(name="b")]), "sensors: expected one that measures 'q'"),
        (lambda: gc.Plant(ARM, sensors=["encoder"]), "sensors: expected geomctrl.sensors.Sensor, got 'encoder'"),
        (lambda: gc.Plant(ARM, sensors=3), "sensors: expected geomctrl.sensors, got 3"),
        (
            lambda: gc.Plant(models.three_spheres(), sensors=[Encoder(resolution=np.ones(8))]),
            "resolution: expected 0 for joints with several degrees of freedom",
        ),
    ],
)
def test_sensors_that_are_none(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_one_sensor_needs_no_list():
    encoder = Encoder(12)
    assert gc.Plant(ARM, sensors=encoder).sensors == (encoder,)


def test_an_unknown_frame():
    with pytest.raises(NameNotFoundError, match="'tipp'"):
        gc.Plant(ARM, sensors=[IMU("tipp")])
