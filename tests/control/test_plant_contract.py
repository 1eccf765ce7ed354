"""Subclasses of Plant: overridden methods, states, and properties taken from the robot's model."""

from dataclasses import replace

import numpy as np
import pytest
from simulation_options import flat_simulate, grouped

import geomctrl as gc
from geomctrl import ArgumentError, controllers, models, testing
from geomctrl.control.monitors import JointLimits, Monitor

ARM = models.two_link()
Q0, V0 = np.array([0.3, -0.7]), np.array([0.5, -0.2])


class Wave:
    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(np.array([2.0, 1.0]) * np.sin(3.0 * t) - 0.1 * v)


class Dragged(gc.Plant):
    """One overridden method: drag that grows with the square of the speed."""

    def net_torque(self, t, q, v, tau, x):
        return super().net_torque(t, q, v, tau, x) - 0.7 * v * np.abs(v)


class Maxwell(gc.Plant):
    """A spring and a damper in series at each joint; the state is the deflection x of the spring."""

    stiffness, damping = 50.0, 2.0

    def start(self, q0, v0):
        return 0.1 * q0

    def net_torque(self, t, q, v, tau, x):
        return super().net_torque(t, q, v, tau, x) - self.stiffness * x

    def state_rate(self, t, q, v, tau, x):
        return v - self.stiffness / self.damping * x

    def stored_energy(self, q, x):
        return 0.5 * self.stiffness * (x * x).sum()

    def storage_power(self, t, q, v, tau, x):
        return (self.stiffness * x * (v - self.stiffness / self.damping * x)).sum()


def run_of(plant, law=None, compiled=False, **options):
    return gc.simulate(plant, law or Wave(), Q0, V0, 0.3, 1e-3, **grouped(compiled=compiled, **options))


# --- what is overridden ------------------------------------------------------------------------------------------


def test_one_override_is_enough():
    """Acceleration, rate, power and the loop, in Python and compiled, equal those of a law that subtracts the drag."""

    class Braked(Wave):
        def __call__(self, t, q, v, z):
            return gc.Command(super().__call__(t, q, v, z).tau - 0.7 * v * np.abs(v))

    plant, tau = Dragged(ARM, gc.Friction(0.2)), np.array([1.0, -2.0])
    plain, net = gc.Plant(ARM, gc.Friction(0.2)), tau - 0.7 * V0 * np.abs(V0)
    a = plain.acceleration(0.0, Q0, V0, net)
    np.testing.assert_allclose(plant.acceleration(0.0, Q0, V0, tau), a, rtol=1e-12)
    np.testing.assert_allclose(plant.power(0.0, Q0, V0, tau), plain.power(0.0, Q0, V0, net), rtol=1e-12)
    out = np.zeros(5)
    plant.rate(0.0, Q0, V0, tau, out)
    np.testing.assert_allclose(out, [*V0, *a, plain.power(0.0, Q0, V0, net)], rtol=1e-12)
    expected = run_of(plain, Braked())
    for compiled in (False, True):
        run = run_of(plant, compiled=compiled)
        np.testing.assert_allclose(run.q, expected.q, rtol=0, atol=1e-12)
        assert run.monitors["energy"].ok


def test_a_proof_sees_the_override():
    law = controllers.PDGravity(ARM, [1.0, 0.5])
    with pytest.raises(testing.Counterexample):
        testing.assert_lyapunov(law, Dragged(ARM, None), states=10, runs=0, search=10)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["acceleration"], "`acceleration` without `power`"),
        (["power"], "`power` without `acceleration`"),
        (["rate"], "`rate` without `acceleration` and `power`"),
        (["start"], "`start` without `state_rate`"),
        (["state_rate"], "`state_rate` without `start`"),
        (["stored_energy"], "`stored_energy` without `storage_power`"),
        (["storage_power", "net_torque"], "`storage_power` without `stored_energy`"),
    ],
    ids=lambda x: "-".join(x) if isinstance(x, list) else "",
)
def test_what_belongs_together(names, said):
    methods = {name: lambda self, *arguments: None for name in names}
    with pytest.raises(ArgumentError, match=f"Half: overrides {said}: they belong together"):
        type("Half", (gc.Plant,), methods)


def test_a_subclass_of_a_subclass_that_overrides_one_of_two():
    both = {name: lambda self, t, q, v, tau, x=None: None for name in ("acceleration", "power")}
    own = type("Own", (gc.Plant,), both)
    with pytest.raises(ArgumentError, match="Half: overrides `acceleration` without `power`"):
        type("Half", (own,), {"acceleration": both["power"]})


def test_a_method_that_can_not_be_called_as_it_will_be():
    with pytest.raises(
        ArgumentError, match=r"net_torque: expected it to take \(self, t, q, v, tau, x\), got \(self, q"
    ):
        type("Short", (gc.Plant,), {"net_torque": lambda self, q, v: v})


class Massless(gc.Plant):
    """Not the equation of a robot: v' = tau."""

    def acceleration(self, t, q, v, tau, x=None):
        return 1.0 * tau

    def power(self, t, q, v, tau, x=None):
        return 0.0


@pytest.mark.parametrize("compiled", [False, True])
def test_another_equation_of_motion_is_the_loops_too(compiled):
    run = run_of(Massless(ARM), gc.controllers.PDGravity(ARM, Q0), compiled, monitors=None)
    assert np.ptp(run.tau, axis=0).min() > 0.1
    slope = np.gradient(run.v, run.t, axis=0)[1:-1]
    np.testing.assert_allclose(slope, run.tau[1:-1], atol=2e-3 * np.abs(run.tau).max())


# --- a state of its own ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"control_dt": 5e-3}, {"method": "MK54", "rtol": 1e-9, "atol": 1e-9}], ids=str)
def test_a_state_of_its_own(options):
    """Against a controller that has the same element as its own state."""

    class Element(Wave):
        def start(self, q0, v0):
            return 0.1 * q0

        def __call__(self, t, q, v, z):
            return gc.Command(super().__call__(t, q, v, z).tau - 50.0 * z, v - 25.0 * z)

    if not options.get("control_dt"):
        as_law = run_of(gc.Plant(ARM, None), Element(), **options)
        np.testing.assert_allclose(run_of(Maxwell(ARM, None), **options).x, as_law.z, rtol=0, atol=1e-8)
    python, compiled = (run_of(Maxwell(ARM, None), compiled=way, **options) for way in (False, True))
    np.testing.assert_allclose(python.x, compiled.x, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(python.x[0], 0.1 * Q0)
    assert python.monitors["energy"].ok
    assert compiled.monitors["energy"].ok


def test_the_balance_sees_energy_that_is_not_there():
    class Wrong(Maxwell):
        def stored_energy(self, q, x):
            return 0.6 * self.stiffness * (x * x).sum()

        def storage_power(self, t, q, v, tau, x):
            return super().storage_power(t, q, v, tau, x)

    assert run_of(Wrong(ARM, None)).monitors["energy"].ok is False


def test_its_own_state_comes_before_the_actuators():
    plant = Maxwell(ARM, None, actuators=gc.actuators.Lag(0.02, initial=[3.0, 4.0]))
    run = run_of(plant, compiled=True)
    np.testing.assert_array_equal(run.x[0], [*(0.1 * Q0), 3.0, 4.0])
    np.testing.assert_allclose(run.applied, run.x[:, 2:])
    assert run.monitors["energy"].ok


def test_monitors_see_it():
    class Seen(Monitor):
        name, what, limit = "seen", "x", np.inf

        def measure(self, sample):
            return np.abs(sample.x).max() + np.abs(sample.applied).max()

    run = run_of(Maxwell(ARM, None), monitors=[Seen()])
    np.testing.assert_array_equal(run.monitors["seen"].values, np.abs(run.x).max(1) + np.abs(run.applied).max(1))


def test_a_state_that_is_not_given_or_of_another_size():
    plant, plain = gc.Plant(ARM, actuators=gc.actuators.Lag(0.1)), gc.Plant(ARM)
    with pytest.raises(ArgumentError, match="x: expected the plant's own state"):
        plant.acceleration(0.0, Q0, V0, V0)
    with pytest.raises(ArgumentError, match=r"x: expected shape \(2,\), got \(3,\)"):
        plant.power(0.0, Q0, V0, V0, np.zeros(3))
    with pytest.raises(ArgumentError, match="x: expected None"):
        plain.power(0.0, Q0, V0, V0, np.zeros(2))


def test_a_proof_of_a_law_needs_a_plant_without():
    plant = gc.Plant(ARM, actuators=gc.actuators.Lag(0.1))
    with pytest.raises(ArgumentError, match=r"plant: expected one without a state of its own, got one with \(Lag\)"):
        testing.assert_lyapunov(controllers.PDGravity(ARM, Q0), plant)


# --- controllers -------------------------------------------------------------------------------------------------


class Begun(Wave):
    def start(self, q0, v0=None):
        return np.concatenate((q0, v0))

    def __call__(self, t, q, v, z):
        return gc.Command(0.1 * z[:2], np.zeros(4))


class Bare(Begun):
    def start(self):
        return np.arange(4.0)


def test_a_controller_may_begin_where_the_robot_does():
    for compiled in (False, True):
        np.testing.assert_array_equal(run_of(ARM, Begun(), compiled).z[0], [*Q0, *V0])
        np.testing.assert_array_equal(run_of(ARM, Bare(), compiled).z[0], np.arange(4.0))
    law = Begun()
    law.robot = ARM
    np.testing.assert_array_equal(gc.compile(law).start(Q0, V0), [*Q0, *V0])


def test_a_model_of_other_joints_is_named_with_both_counts():
    panda = models.panda()
    law = controllers.PDGravity(ARM, [1.0, 0.5])
    with pytest.raises(ArgumentError, match=r"controller: its model `robot` has 2 velocity .* the plant 7 \('panda'\)"):
        gc.simulate(panda, law, np.zeros(7), np.zeros(7), 0.1, 1e-3)
    for check in (testing.assert_lyapunov, testing.exponential_rate):
        with pytest.raises(ArgumentError, match=r"its model `robot` has 2 velocity .* the plant 7 \('panda'\)"):
            check(law, panda)
    body = gc.inertia.from_com(1.0, (0, 0, 0), np.eye(3))
    cart, wheel = (
        gc.Robot.build([gc.Body("a", None, joint((1, 0, 0), name="a"), None, body)])
        for joint in (gc.Joint.prismatic, gc.Joint.revolute)
    )
    law = controllers.PDGravity(cart, [1.0])
    with pytest.raises(
        ArgumentError, match=r"other joints than the plant .* got 'a', which slides, for 'a', which turns"
    ):
        gc.simulate(wheel, law, [0.0], [0.0], 0.1, 1e-3)


@pytest.mark.parametrize("answer", [1.0, (1.0,), np.float64(2.0), None])
def test_a_lyapunov_function_without_a_rate_is_refused(answer):
    class Law:
        def __call__(self, t, q, v, z):
            return gc.Command(np.zeros(2))

        def lyapunov(self, t, q, v, z, plant):
            return answer

    with pytest.raises(gc.SimulationError, match="expected lyapunov to return a pair, V and its rate, got"):
        gc.simulate(ARM, Law(), Q0, V0, 0.01, 1e-3)


# --- what a model says -------------------------------------------------------------------------------------------


def with_joints(**numbers):
    return replace(ARM, joints=tuple(replace(joint, **numbers) for joint in ARM.joints))


def test_the_models_friction_acts_unless_another_is_given():
    robot = with_joints(damping=0.5, friction=0.2)
    tau = np.zeros(2)
    explicit = gc.Plant(robot, gc.Friction(0.5, 0.2)).acceleration(0.0, Q0, V0, tau)
    np.testing.assert_array_equal(gc.Plant(robot).acceleration(0.0, Q0, V0, tau), explicit)
    none = gc.Plant(robot, None)
    np.testing.assert_array_equal(none.acceleration(0.0, Q0, V0, tau), gc.Plant(ARM).acceleration(0.0, Q0, V0, tau))
    assert none.friction is None
    assert gc.Plant(ARM).friction is None
    np.testing.assert_array_equal(run_of(robot).q, run_of(gc.Plant(robot, "model")).q)


def test_limits_are_reported():
    """Without gravity, a torque of 50 N m on a joint with an effort limit of 3 N m: q = 25 t^2 / I."""
    body = gc.inertia.from_com(1.0, (0.0, 0.0, 0.0), 0.5 * np.eye(3))
    joint = gc.Joint.revolute((0, 0, 1), lower=-1.0, upper=2.0, velocity=30.0, effort=3.0)
    robot = gc.Robot.build([gc.Body("a", None, joint, None, body)], gravity=(0, 0, 0))

    class Push(Wave):
        def __call__(self, t, q, v, z):
            return gc.Command(np.array([-50.0]) + 0.0 * q)

    for compiled in (False, True):
        run = gc.simulate(robot, Push(), [0.0], [0.0], 1.0, 1e-3, options=gc.SimulationOptions(compiled=compiled))
        assert run.success
        assert run.ok is False
        for name, worst in (("position", 50.0 - 1.0), ("velocity", 100.0 - 30.0), ("effort", 50.0 - 3.0)):
            result = run.monitors[f"{name}_limits"]
            np.testing.assert_allclose(result.worst, worst, rtol=1e-9)
            assert not result.ok
    assert "position beyond a joint's limit, rad or m: worst 4.90e+01" in run.summary()
    plant = gc.Plant(robot, actuators=gc.actuators.Saturation(robot.limits.effort))
    assert gc.simulate(plant, Push(), [0.0], [0.0], 0.1, 1e-3).ok


def test_limits_where_there_are_none():
    assert not {"position_limits", "velocity_limits", "effort_limits"} & set(run_of(ARM).monitors)
    with pytest.raises(ArgumentError, match="of: expected"):
        JointLimits(of="torque")


# --- stops -------------------------------------------------------------------------------------------------------


def bouncing(dissipation, method="MK54"):
    """A mass that slides into a stop at 2 m/s."""
    joint = gc.Joint.prismatic((1, 0, 0), lower=-np.inf, upper=0.1)
    body = gc.inertia.from_com(2.0, (0, 0, 0), np.eye(3))
    robot = gc.Robot.build([gc.Body("a", None, joint, None, body)], gravity=(0, 0, 0))
    plant = gc.Plant(robot, stops=gc.JointStops(5e3, dissipation))

    class Rest(Wave):
        def __call__(self, t, q, v, z):
            return gc.Command(0.0 * v)

    return flat_simulate(
        plant, Rest(), [0.0], [2.0], 0.2, 1e-3, method=gc.integrators.Adaptive(method, rtol=1e-10, atol=1e-12)
    )


def test_a_stop_without_losses_gives_back_what_it_takes():
    """Half a period of the oscillator of m and k, then back at the initial speed."""
    run = bouncing(0.0)
    omega = np.sqrt(5e3 / 2.0)
    touching = (run.t > 0.05) & (run.t < 0.05 + np.pi / omega)
    np.testing.assert_allclose(
        run.q[touching, 0], 0.1 + 2.0 / omega * np.sin(omega * (run.t[touching] - 0.05)), atol=1e-7
    )
    np.testing.assert_allclose(run.v[-1], -2.0, rtol=1e-7)
    assert run.monitors["energy"].ok
    assert "position_limits" not in run.monitors


def test_a_stop_that_loses_energy():
    """For an impact with m p'' = -k p (1 + c p'), (1 + c v) exp(-c v) is the same before and after."""
    c, run = 0.3, bouncing(0.3)
    before, after = 2.0, run.v[-1, 0]
    assert -before < after < -0.3
    np.testing.assert_allclose((1 + c * after) * np.exp(-c * after), (1 + c * before) * np.exp(-c * before), rtol=1e-6)
    assert run.monitors["energy"].ok


def test_stops_compile():
    robot = with_joints(lower=-0.69, upper=0.305)
    plant = gc.Plant(robot, gc.Friction(0.1), stops=gc.JointStops([500.0, 300.0], 0.5))
    python, compiled = (run_of(plant, compiled=way) for way in (False, True))
    assert python.q.min() < -0.69
    assert python.q.max() > 0.305
    np.testing.assert_allclose(python.q, compiled.q, rtol=0, atol=1e-11)


def test_stops_without_a_range_or_of_another_size():
    with pytest.raises(ArgumentError, match=r"stops: no joint of .* has a limit of its position"):
        gc.Plant(ARM, stops=gc.JointStops(1e3))
    with pytest.raises(ArgumentError, match=r"stops: stiffness: expected a number or \(2,\)"):
        gc.Plant(with_joints(upper=1.0), stops=gc.JointStops([1.0, 2.0, 3.0]))
    with pytest.raises(ArgumentError, match=r"stops: expected geomctrl\.JointStops or None"):
        gc.Plant(ARM, stops=True)
