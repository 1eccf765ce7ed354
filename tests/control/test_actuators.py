"""Actuators against closed forms, the power balance, and MuJoCo, in every mode of running a loop."""

import numpy as np
import pytest
from scipy.linalg import expm
from simulation_options import IN_PYTHON, grouped

import geomctrl as gc
from geomctrl import ArgumentError, NameNotFoundError, actuators, models
from geomctrl.control import ElasticPlant
from geomctrl.control.actuators import (
    CurrentDrive,
    DCMotor,
    Lag,
    Saturation,
    Selection,
    SeriesElasticity,
    TorqueSpeedLimits,
)

ARM = models.two_link()
MASS, INERTIA = 2.5, 0.4
CART = gc.Robot.build(
    [gc.Body("cart", None, gc.Joint.prismatic((1, 0, 0)), None, gc.inertia.from_com(MASS, (0, 0, 0), np.eye(3)))]
)
WHEEL = gc.Robot.build(
    [
        gc.Body(
            "wheel", None, gc.Joint.revolute((0, 0, 1)), None, gc.inertia.from_com(1.0, (0, 0, 0), INERTIA * np.eye(3))
        )
    ]
)


class Constant:
    def __init__(self, *u):
        self.u = np.array(u, float)

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(self.u)


class Wave:
    """A command that is smooth in time and depends a little on the state."""

    def __init__(self, size, gain):
        self.size, self.gain = np.asarray(size, float), gain

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(self.size * np.sin(3.0 * t + 1.0) - self.gain * v[: len(self.size)])


STORING = [
    SeriesElasticity([400.0, 300.0], [0.2, 0.1], [1.0, 0.5], 0.3),
    DCMotor([0.05, 0.1], 0.8, 0.02, [30.0, -20.0]),
]
CHAINS = {
    "limits": [Saturation([6.0, 4.0], [-3.0, -4.0])],
    "speed": [TorqueSpeedLimits(8.0, [3.0, 5.0], 6.0)],
    "lag": [Lag(0.03)],
    "slope": [Lag(0.01, 100.0, 1.0)],
    "current": [CurrentDrive([0.1, 0.2], 50.0)],
    "voltage": [DCMotor(0.05, 0.8, gear_ratio=30.0)],
    "coil": STORING[1:],
    "spring": STORING[:1],
    "play": [SeriesElasticity([400.0, 300.0], [0.2, 0.1], [1.0, 0.5], 0.3, [0.02, 0.01])],
    "selection": [Selection([[1.0], [-0.5]])],
    "all": [
        Saturation(9.0),
        Selection([[1.0, 0.5], [0.0, 2.0]]),
        Lag(0.02),
        TorqueSpeedLimits(20.0, 9.0),
        STORING[0],
    ],
}


def run_of(chain, compiled=False, t_end=0.3, **options):
    plant = gc.Plant(ARM, gc.Friction(0.2), actuators=chain)
    law = Wave([5.0, 3.0][: plant.inputs], 0.1)
    return gc.simulate(plant, law, [0.3, -0.7], [0.5, -0.2], t_end, 1e-3, **grouped(compiled=compiled, **options))


# --- closed forms ------------------------------------------------------------------------------------------------


def test_a_lag_on_a_mass():
    T, u = 0.05, 3.0
    run = gc.simulate(gc.Plant(CART, actuators=Lag(T)), Constant(u), [0.0], [0.0], 0.2, 1e-3)
    rest = 1.0 - np.exp(-run.t / T)
    np.testing.assert_allclose(run.x[:, 0], u * rest, rtol=0, atol=1e-7)
    np.testing.assert_allclose(run.applied[:, 0], u * rest, rtol=0, atol=1e-7)
    np.testing.assert_allclose(run.v[:, 0], u / MASS * (run.t - T * rest), rtol=0, atol=1e-8)
    np.testing.assert_array_equal(run.tau, np.full((201, 1), u))


def test_a_slope_that_is_limited_and_then_a_lag():
    """x = rate t while (u - x) / T > rate; from then on the exponential of the lag."""
    T, u, rate = 0.01, 4.0, 100.0
    run = gc.simulate(gc.Plant(CART, actuators=Lag(T, rate)), Constant(u), [0.0], [0.0], 0.08, 1e-4)
    until = u / rate - T
    expected = np.where(run.t < until, rate * run.t, u - rate * T * np.exp(-(run.t - until) / T))
    np.testing.assert_allclose(run.x[:, 0], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("n", [1.0, -6.0])
def test_a_dc_motor_steps(n):
    """The equations of current and speed of a wheel are linear: exp(A t)."""
    k, R, L, U, friction = 0.2, 1.5, 0.01, 12.0, 0.05
    plant = gc.Plant(WHEEL, gc.Friction(friction), actuators=DCMotor(k, R, L, n))
    run = gc.simulate(plant, Constant(U), [0.0], [0.0], 0.1, 1e-4)
    A = np.array([[-R / L, -n * k / L], [n * k / INERTIA, -friction / INERTIA]])
    rest = np.linalg.solve(A, [-U / L, 0.0])
    for i in (10, 100, 1000):
        x = rest - expm(A * run.t[i]) @ rest
        np.testing.assert_allclose([run.x[i, 0], run.v[i, 0]], x, rtol=1e-7)
    assert run.monitors["energy"].ok


def test_a_dc_motor_without_inductance_is_a_first_order_lag_in_speed():
    k, R, U = 0.2, 1.5, 12.0
    run = gc.simulate(gc.Plant(WHEEL, actuators=DCMotor(k, R)), Constant(U), [0.0], [0.0], 2.0, 1e-2)
    assert run.x is None
    np.testing.assert_allclose(
        run.v[:, 0], U / k * (1.0 - np.exp(-k * k / (R * INERTIA) * run.t)), rtol=1e-8, atol=1e-12
    )


def test_a_spring_before_the_joint_is_the_plant_of_links_and_motors():
    """Springs with the deflection as a state agree with motors as separate bodies."""
    stiffness, rotor, friction = np.array([400.0, 300.0]), np.array([0.2, 0.1]), gc.Friction([0.3, 0.2])
    both = ElasticPlant(ARM, stiffness, rotor, gc.Friction([0.3, 0.2, 0.0, 0.0]))
    law = Wave([5.0, 3.0], 0.0)
    q0, v0 = np.array([0.3, -0.7]), np.array([0.5, -0.2])
    one = gc.simulate(gc.Plant(ARM, friction, actuators=SeriesElasticity(stiffness, rotor)), law, q0, v0, 0.3, 1e-3)
    motors = Selection(np.vstack((np.zeros((2, 2)), np.eye(2))))
    plant = ElasticPlant(ARM, stiffness, rotor, both.friction, actuators=motors)
    two = gc.simulate(plant, law, np.tile(q0, 2), np.tile(v0, 2), 0.3, 1e-3)
    np.testing.assert_allclose(one.q, two.q[:, :2], rtol=0, atol=1e-8)
    np.testing.assert_allclose(one.x[:, :2], two.q[:, 2:] - two.q[:, :2], rtol=0, atol=1e-8)
    np.testing.assert_allclose(one.x[:, 2:], two.v[:, 2:], rtol=0, atol=1e-6)
    assert one.monitors["energy"].ok
    assert two.monitors["energy"].ok


def test_a_bundled_law_and_reference_through_springs():
    """The stiffer the springs, the closer to the rigid robot with the rotors as armature."""
    reference = gc.references.Sinusoids(ARM, [0.2, -0.3], 0.3, 0.5)
    law, rms = gc.controllers.ComputedTorque(ARM.with_armature(0.02), reference), []
    for stiffness in (1e3, 1e4):
        plant = gc.Plant(ARM, actuators=SeriesElasticity(stiffness, 0.02, damping=40.0))
        run = gc.simulate(plant, law, *reference(0.0)[:2], 0.1, 5e-4, monitors=None)
        rms.append(np.linalg.norm(run.tracking_rms()))
    assert rms[0] > 4.0 * rms[1]
    assert rms[1] < 1e-3


def test_play_before_the_teeth_touch_and_after():
    """u turns the motor alone for sqrt(backlash B / u) seconds; then both move, with the spring stretched beyond
    half of it.
    """
    play, rotor, u, K = 0.05, 0.2, 3.0, 5e3
    gears = SeriesElasticity(K, rotor, damping=40.0, backlash=play)
    touch = np.sqrt(play * rotor / u)
    run = gc.simulate(gc.Plant(WHEEL, actuators=gears), Constant(u), [0.0], [0.0], 2.0, 1e-4)
    before = run.t < touch - 2e-4
    assert before.sum() > 100
    assert not run.q[before].any()
    np.testing.assert_allclose(run.x[before, 0], 0.5 * u / rotor * run.t[before] ** 2, atol=1e-12)
    a = u / (INERTIA + rotor)
    np.testing.assert_allclose(run.x[-1, 0], 0.5 * play + INERTIA * a / K, atol=1e-7)
    np.testing.assert_allclose(run.v[-1, 0], run.x[-1, 1], rtol=1e-5)
    assert run.applied.min() >= 0.0  # gear teeth do not pull
    pushed = gc.simulate(gc.Plant(WHEEL, actuators=gears), Constant(-u), [0.0], [0.0], 2.0, 1e-4)
    np.testing.assert_allclose(pushed.x, -run.x, atol=1e-12)


def test_teeth_push_and_do_not_pull():
    gears = SeriesElasticity(100.0, 0.1, damping=50.0, backlash=0.2)
    x = np.array([0.15, -0.15, 0.05, 0.15, -0.15, -1.0, 1.0, 3.0, 3.0, -3.0])
    outcome = gears.torque(0.0, np.zeros(5), np.zeros(5), x)
    np.testing.assert_allclose(outcome, [0.0, 0.0, 0.0, 5.0 + 150.0, -5.0 - 150.0])


def test_the_torque_speed_line_in_four_quadrants():
    limits, u = TorqueSpeedLimits(10.0, 5.0, 12.0), np.array([50.0, -50.0, 1.0])
    for speed, outcome in ((0.0, [10, -10, 1]), (2.5, [5, -12, 1]), (-2.5, [12, -5, 1]), (6.0, [-2, -12, -2])):
        np.testing.assert_allclose(limits.torque(0.0, u, np.full(3, speed), None), outcome, atol=1e-12)


def test_a_base_that_is_not_driven():
    """Without gravity the torques of the legs change neither momentum nor angular momentum."""
    kinds = ["free", "revolute", "revolute"]
    dog = gc.testing.random_robot(np.random.default_rng(1), kinds, [-1, 0, 0], gravity=(0.0, 0.0, 0.0))
    B = Selection.joints(dog)
    assert B.B.shape == (dog.nv, dog.nv - 6)
    plant = gc.Plant(dog, None, actuators=B)
    rng = np.random.default_rng(0)
    q, v, u = dog.random_configuration(rng), rng.normal(size=dog.nv), rng.normal(size=plant.inputs)
    tau = np.concatenate((np.zeros(6), u))
    np.testing.assert_allclose(plant.acceleration(0.0, q, v, u), gc.Plant(dog, None).acceleration(0.0, q, v, tau))
    np.testing.assert_array_equal(plant._applied(0.0, q, v, u, None), tau)
    run = gc.simulate(plant, Constant(*u), q, v, 0.01, 1e-3)
    assert run.tau.shape == (11, dog.nv - 6)
    np.testing.assert_array_equal(run.applied[3], tau)
    momentum = dog.momentum(run.q, run.v)
    np.testing.assert_allclose(momentum, np.broadcast_to(momentum[0], momentum.shape), atol=1e-6 * abs(momentum).max())
    assert abs(run.v[-1] - run.v[0]).max() > 0.01


# --- power -------------------------------------------------------------------------------------------------------


def links(chain):
    """Return (link, u, w, x) of each link of a chain at one random state."""
    rng = np.random.default_rng(1)
    plant = gc.Plant(ARM, None, actuators=chain)
    inputs, sizes = [], []
    n = ARM.nv
    for link in reversed(plant.actuators):
        sizes.append(n)
        n = link.inputs(n)
        inputs.append(n)
    for link, n_in, n_out in zip(plant.actuators, reversed(inputs), reversed(sizes)):
        x = link.start(np.zeros(n_out))
        x = None if x is None else rng.normal(size=x.shape)
        yield link, rng.normal(size=n_in), rng.normal(size=n_out), x


@pytest.mark.parametrize("link", STORING, ids=lambda x: type(x).__name__)
def test_what_flows_into_a_store_is_the_rate_of_its_energy(link):
    """Compare dE/dx x', by a complex step, with the balance of power."""
    rng = np.random.default_rng(2)
    for _ in range(5):
        u, w, x = rng.normal(size=2), rng.normal(size=2), rng.normal(size=len(link.start(np.zeros(2))))
        rate = link.state_rate(0.0, u, w, x)
        h = 1e-30
        slope = np.imag(np.asarray(_energy(link, x + 1j * h * rate))) / h
        np.testing.assert_allclose(link.storage_power(0.0, u, w, x), slope, rtol=1e-12)


def _energy(link, x):
    if isinstance(link, SeriesElasticity):
        return 0.5 * (link.stiffness * x[:2] ** 2).sum() + 0.5 * (link.rotor * x[2:] ** 2).sum()
    return 0.5 * (link.inductance * x**2).sum()


@pytest.mark.parametrize("chain", [CHAINS["selection"], CHAINS["current"]], ids=["selection", "current"])
def test_what_only_transmits_loses_no_power(chain):
    for link, u, w, x in links(chain):
        np.testing.assert_allclose(u @ link.speed(w, x), link.torque(0.0, u, w, x) @ w, rtol=1e-12)


@pytest.mark.parametrize("name", ["spring", "coil", "all"])
def test_the_energy_balance_counts_what_is_stored(name):
    run = run_of(CHAINS[name])
    assert run.monitors["energy"].ok, run.monitors["energy"]
    assert run.plant.stores_energy


def test_the_energy_balance_through_play():
    """The motion has a kink where gear teeth meet, so steps must be short, or adapted to their error."""
    plant, law = gc.Plant(ARM, actuators=CHAINS["play"]), Wave([5.0, 3.0], 0.1)
    for method, dt, options in (("MK4", 1e-4, {}), ("MK54", 1e-3, {"rtol": 1e-9, "atol": 1e-10})):
        run = gc.simulate(plant, law, [0.3, -0.7], [0.5, -0.2], 0.2, dt, **grouped(method=method, **options))
        assert run.monitors["energy"].ok, run.monitors["energy"]
        assert (np.abs(run.x[:, :2]) < 0.5 * np.array(CHAINS["play"][0].backlash)).any(axis=0).all()


def test_links_see_the_speed_of_the_rotor_behind_them():
    """A limit in front of a spring uses the speed of the motor, one behind it that of the joint."""
    limits, spring = TorqueSpeedLimits(8.0, 2.0), SeriesElasticity(100.0, 0.1)
    plant = gc.Plant(ARM, None, actuators=[limits, spring])
    q, v, u, x = np.zeros(2), np.array([0.5, 1.0]), np.full(2, 9.0), np.array([0.0, 0.0, 1.0, -1.0])
    out = np.zeros(2 * 2 + 4 + 1)
    plant.rate(0.0, q, v, u, out, x)
    np.testing.assert_allclose(out[4:6], x[2:] - v)
    np.testing.assert_allclose(out[6:8], limits.torque(0.0, u, x[2:], None) / 0.1)


# --- MuJoCo ------------------------------------------------------------------------------------------------------

XML = """
<mujoco><option gravity="0 0 -9.81"/><compiler angle="radian"/><worldbody>
<body name="a"><joint name="a" axis="0 1 0"/><inertial pos="0.2 0 0.1" mass="2" diaginertia="0.1 0.2 0.15"/>
<body name="b" pos="0.4 0 0"><joint name="b" axis="0 1 0"/><inertial pos="0.1 0 0" mass="1" diaginertia=".02 .05 .04"/>
</body></body></worldbody><actuator>
<general joint="a" gear="12" ctrlrange="-0.5 0.8" ctrllimited="true" dyntype="filter" dynprm="0.05" gainprm="3"/>
<general joint="b" gear="-7" ctrlrange="-0.4 0.4" ctrllimited="true" dyntype="filter" dynprm="0.2" gainprm="2"/>
</actuator></mujoco>"""


def test_mujocos_actuators():
    """gear, ctrlrange and a filter: accelerations and rates of the activations agree at random states."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(XML)
    data = mujoco.MjData(model)
    robot = models.load_mjcf(XML)
    chain = [Saturation([0.8, 0.4], [-0.5, -0.4]), Lag([0.05, 0.2]), Selection(np.diag([3.0 * 12.0, -2.0 * 7.0]))]
    plant, rng = gc.Plant(robot, None, actuators=chain), np.random.default_rng(0)
    for _ in range(5):
        q, v, u, x = rng.normal(size=(4, 2))
        data.qpos[:], data.qvel[:], data.ctrl[:], data.act[:] = q, v, u, x
        mujoco.mj_forward(model, data)
        out = np.zeros(2 * 2 + 2 + 1)
        plant.rate(0.0, q, v, u, out, x)
        np.testing.assert_allclose(out[2:4], data.qacc, rtol=1e-9)
        np.testing.assert_allclose(out[4:6], data.act_dot, rtol=1e-12)
        np.testing.assert_allclose(plant._applied(0.0, q, v, u, x), data.qfrc_actuator, rtol=1e-12)


# --- every way of running ----------------------------------------------------------------------------------------


@pytest.mark.quick(5)
@pytest.mark.parametrize("options", [{}, {"control_dt": 5e-3}, {"method": "MK54", "rtol": 1e-8, "atol": 1e-8}], ids=str)
@pytest.mark.parametrize("name", ["all", "coil", "slope"])
def test_compiled_is_the_same(name, options):
    python, compiled = (run_of(CHAINS[name], way, 0.05, **options) for way in (False, True))
    for field in ("q", "v", "tau", "x", "applied"):
        a, b = getattr(python, field), getattr(compiled, field)
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(a).max())
    for monitor, result in python.monitors.items():
        np.testing.assert_allclose(compiled.monitors[monitor].values, result.values, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", [x for x in CHAINS if x not in ("all", "coil", "slope")])
def test_each_alone_compiles(name):
    python, compiled = (run_of(CHAINS[name], way, 0.02) for way in (False, True))
    np.testing.assert_allclose(python.q, compiled.q, rtol=0, atol=1e-11)
    np.testing.assert_allclose(python.applied, compiled.applied, rtol=0, atol=1e-9)


def test_side_by_side():
    """Loops that differ in an actuator's numbers share compiled code, and each equals a single run."""
    plants = [gc.Plant(ARM, actuators=[Lag(T), Saturation(limit)]) for T in (0.01, 0.03) for limit in (2.0, 5.0, 9.0)]
    law = Wave([6.0, 4.0], 0.1)
    runs = gc.simulate_many(plants, law, [0.3, -0.7], [0.0, 0.0], 0.2, 1e-3)
    for plant, run in zip(plants, runs):
        alone = gc.simulate(plant, law, [0.3, -0.7], [0.0, 0.0], 0.2, 1e-3, options=IN_PYTHON)
        np.testing.assert_allclose(run.q, alone.q, rtol=0, atol=1e-10)
        np.testing.assert_allclose(run.x, alone.x, rtol=0, atol=1e-9)
        np.testing.assert_allclose(run.applied, alone.applied, rtol=0, atol=1e-9)


def test_a_sweep_over_an_actuators_number():
    def make(point):
        return gc.Plant(ARM, actuators=Saturation(point["limit"])), Wave([6.0, 4.0], 0.0), [0.3, -0.7], [0.0, 0.0]

    table = gc.sweep(make, {"limit": [1.0, 3.0]}, [gc.measures.PeakTorque()], 0.2, 1e-2)
    np.testing.assert_allclose(table["peak_torque"], [1.0, 3.0])


def test_a_saved_run_keeps_both_torques(tmp_path):
    run = run_of(CHAINS["all"], t_end=0.01)
    back = gc.Run.load(run.save(tmp_path / "run.npz"))
    for field in ("tau", "applied", "x"):
        np.testing.assert_array_equal(getattr(back, field), getattr(run, field))
    plain = gc.simulate(ARM, Constant(0.0, 0.0), [0.0, 0.0], [0.0, 0.0], 0.01, 1e-3)
    assert plain.applied is not None
    assert plain.x is None
    np.testing.assert_array_equal(gc.Run.load(plain.save(tmp_path / "plain.npz")).applied, plain.tau)


# --- bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Saturation(1.0, 2.0), r"lower: expected limits below upper"),
        (lambda: Saturation(-1.0), r"lower: expected limits below upper"),
        (
            lambda: Saturation([1.0, 2.0], [1.0, 1.0, 1.0]),
            r"lower: expected as many as upper, \(2,\), got shape \(3,\)",
        ),
        (
            lambda: gc.Plant(ARM, actuators=Saturation([1.0, 2.0, 3.0])),
            r"actuators\[0\]: Saturation: upper: .*\(2,\)",
        ),
        (lambda: Selection([1.0, 2.0]), r"B: expected a matrix"),
        (lambda: gc.Plant(ARM, actuators=Selection(np.eye(3))), r"Selection: B: expected 2 rows.*\(3, 3\)"),
        (
            lambda: gc.Plant(ARM, actuators=[Lag([0.1] * 3), Selection(np.ones((2, 1)))]),
            r"actuators\[0\]: Lag: .*\(1,\)",
        ),
        (lambda: Lag(0.0), "time_constant: expected a positive time"),
        (lambda: Lag(0.1, -1.0), "rate: expected a positive slope"),
        (lambda: DCMotor(0.1, 1.0, [0.1, 0.0]), "inductance: expected positive"),
        (lambda: SeriesElasticity(1.0, 0.0), "rotor: expected a positive number"),
        (lambda: TorqueSpeedLimits(1.0, -1.0), "no_load: expected a positive speed"),
        (lambda: gc.Plant(ARM, actuators=[3.0]), r"actuators\[0\]: expected a geomctrl.actuators.Actuator"),
        (lambda: gc.Plant(ARM, actuators="limits"), "actuators: expected a list"),
    ],
    ids=range(14),
)
def test_what_does_not_fit(make, said):
    with pytest.raises(ArgumentError, match=said):
        make()


def test_joints_that_are_not_there():
    with pytest.raises(NameNotFoundError, match="elbow"):
        Selection.joints(ARM, ["elbow!"])


def test_a_command_of_another_size():
    plant = gc.Plant(ARM, actuators=Selection(np.ones((2, 1))))
    with pytest.raises(gc.SimulationError, match=r"an array of 1 finite numbers, at t = 0 s, got shape \(2,\)"):
        gc.simulate(plant, Constant(1.0, 2.0), [0.0, 0.0], [0.0, 0.0], 0.01, 1e-3)


# --- one's own ---------------------------------------------------------------------------------------------------


class Hysteretic(actuators.Actuator):
    """tau = u + c x, x' = w - x |w|: an actuator with any smooth state."""

    def start(self, w):
        return np.zeros(len(w))

    def state_rate(self, t, u, w, x):
        return w - x * np.abs(w)

    def torque(self, t, u, w, x):
        return u - 2.0 * x


def test_an_actuator_of_ones_own():
    python, compiled = (run_of([Hysteretic()], way, 0.05) for way in (False, True))
    assert np.abs(python.x).max() > 1e-3
    np.testing.assert_allclose(python.q, compiled.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(python.applied, python.tau - 2.0 * python.x, atol=1e-12)


def test_what_belongs_together_in_an_actuator():
    with pytest.raises(ArgumentError, match="overrides `start` without `state_rate`"):
        type("Forgetful", (actuators.Actuator,), {"start": lambda self, w: w})
    with pytest.raises(ArgumentError, match=r"torque: expected it to take \(self, t, u, w, x\)"):
        type("Short", (actuators.Actuator,), {"torque": lambda self, u, w: u})
