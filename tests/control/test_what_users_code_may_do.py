"""Arguments of user code are protected against modification, and its results are checked at every stage."""

import operator

import numpy as np
import pytest
from simulation_options import flat_simulate

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.control.monitors import Monitor
from geomctrl.control.references import Sinusoids
from geomctrl.errors import SimulationError
from geomctrl.lie.groups import SO3

ARM = models.two_link()
QUADRUPED = models.quadruped()
REFERENCE = Sinusoids(ARM, ARM.neutral(), 0.3, 0.4)
READ_ONLY = r"ValueError in the closed loop \(test_what_users_code_may_do.py, line \d+, in [\w<>]+\): .*read-only.*copy"


class Law:
    """PD control about a reference, with a state; `spoils` modifies the law's arguments."""

    reference = REFERENCE

    def __init__(self, spoils=lambda q, v, z, desired: None, of_v=lambda *x: None):
        self.spoils, self.of_v = spoils, of_v

    def start(self):
        return np.zeros(2)

    def __call__(self, t, q, v, z):
        desired = gc.control.desired_at(self.reference, t)
        self.spoils(q, v, z, desired)
        return gc.Command(-10.0 * (q - desired.q) - 5.0 * v, q - z)

    def lyapunov(self, t, q, v, z, plant):
        self.of_v(q, v, z, gc.control.desired_at(self.reference, t))
        return gc.Lyapunov(float(v @ v), 0.0)


class Spoiler(Monitor):
    name = "spoiler"

    def __init__(self, spoils):
        self.spoils = spoils

    def measure(self, sample):
        self.spoils(sample)
        return 0.0


def halve(x):
    x *= 0.5


def subtract(q, v, z, desired):
    e = q
    e -= desired.q


SPOILED = {
    "q": subtract,
    "v": lambda q, v, z, desired: halve(v),
    "z": lambda q, v, z, desired: z.fill(0.0),
    "desired": lambda q, v, z, desired: halve(desired.q),
    "desired a": lambda q, v, z, desired: np.negative(desired.a, out=desired.a),
}


def simulated(law, plant=ARM, compiled=False, monitors=None, control_dt=None):
    return flat_simulate(
        plant, law, [0.2, 0.1], [0.0, 0.3], 0.05, 1e-2, monitors=monitors, control_dt=control_dt, compiled=compiled
    )


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("control_dt", [None, 2e-2])
@pytest.mark.parametrize("case", SPOILED)
def test_a_law_can_not_write_on_the_loops_state(case, control_dt, compiled):
    with pytest.raises(SimulationError, match=READ_ONLY) as caught:
        simulated(Law(SPOILED[case]), compiled=compiled, control_dt=control_dt)
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("case", SPOILED)
def test_nor_can_its_lyapunov_function(case):
    with pytest.raises(SimulationError, match=READ_ONLY):
        simulated(Law(of_v=SPOILED[case]), monitors="default")


@pytest.mark.parametrize("case", ["q", "v", "z", "state.y", "tau"])
def test_nor_can_a_monitor(case):
    with pytest.raises(SimulationError, match=READ_ONLY):
        simulated(Law(), monitors=[Spoiler(lambda sample: halve(operator.attrgetter(case)(sample)))])


def test_nor_can_a_monitor_give_the_others_another_sample():
    def another(sample):
        sample.q = np.zeros(2)

    with pytest.raises(SimulationError, match=r"AttributeError"):
        simulated(Law(), monitors=[Spoiler(another)])


@pytest.mark.parametrize("which", [0, 1])
def test_nor_can_a_wrench(which):
    def wrench(t, q, v):
        halve((q, v)[which])
        return np.zeros((2, 6))

    with pytest.raises(SimulationError, match=READ_ONLY):
        simulated(Law(), gc.Plant(ARM, f_ext=wrench))


def test_nor_can_a_plant_write_on_the_command():
    class Weak(gc.Plant):
        def net_torque(self, t, q, v, tau, x):
            halve(tau)
            return super().net_torque(t, q, v, tau, x)

    with pytest.raises(SimulationError, match=READ_ONLY):
        simulated(Law(), Weak(ARM))


@pytest.mark.parametrize("control_dt", [None, 2e-2])
def test_a_law_may_use_its_arrays_again(control_dt):
    """Held commands stay as they are, too, whatever a monitor makes the law compute in between."""

    class Thrifty(Law):
        tau = np.zeros(2)
        rate = np.zeros(2)

        def __call__(self, t, q, v, z):
            command = super().__call__(t, q, v, z)
            self.tau[:], self.rate[:] = command.tau, command.z_rate
            return gc.Command(self.tau, self.rate)

    thrifty, law = Thrifty(), Law()
    calls = [Spoiler(lambda s: thrifty(s.t, s.q + 1.0, s.v, s.z))]
    run = simulated(thrifty, monitors=calls, control_dt=control_dt)
    expected = simulated(law, control_dt=control_dt)
    np.testing.assert_array_equal(run.q, expected.q)
    np.testing.assert_array_equal(run.z, expected.z)
    np.testing.assert_array_equal(run.tau, expected.tau)


def test_a_reference_keeps_arrays_that_are_its_own():
    """Arguments are passed read-only, and remain unchanged."""
    own = gc.Desired(np.zeros(2), np.zeros(2), np.zeros(2))

    class Held(Law):
        reference = staticmethod(lambda t: own)

    simulated(Held())
    assert all(x.flags.writeable for x in own)


def test_an_assertion_hands_out_the_same():
    class Spoils(controllers.Passivity):
        def __call__(self, t, q, v, z):
            halve(v)
            return super().__call__(t, q, v, z)

    law = Spoils(ARM, REFERENCE, 3.0, [1.0, 0.3])
    with pytest.raises(ValueError, match="read-only"):
        testing.assert_lyapunov(law, ARM, states=1, runs=0)


# --- commands ----------------------------------------------------------------------------------------------------

COMMANDS = {
    "no Command": (lambda tau, rate: tau, r"expected a geomctrl.Command at t = 0.01 s, got array"),
    "None": (lambda tau, rate: None, r"expected a geomctrl.Command at t = 0.01 s, got None"),
    "tau of one": (lambda tau, rate: gc.Command(tau[:1], rate), r"tau, an array of 2 finite .* got shape \(1,\)"),
    "a list": (lambda tau, rate: gc.Command(list(tau), rate), r"tau, an array of 2 finite numbers, .* got \["),
    "complex": (lambda tau, rate: gc.Command(tau * 1j, rate), r"tau, an array of 2 finite numbers, .* got array"),
    "nan": (lambda tau, rate: gc.Command(tau * np.nan, rate), r"tau, an array of 2 finite .* got array\(\[nan, nan"),
    "no rate": (lambda tau, rate: gc.Command(tau), r"z_rate, finite numbers of shape \(2,\), .* got None"),
    "rate of one": (lambda tau, rate: gc.Command(tau, rate[:1]), r"z_rate, finite .* got shape \(1,\)"),
    "a number": (lambda tau, rate: gc.Command(tau, 0.0), r"z_rate, finite numbers of shape \(2,\), .* got 0.0"),
    "rate nan": (lambda tau, rate: gc.Command(tau, rate + np.inf), r"z_rate, finite numbers .* got array\(\[inf, inf"),
}


@pytest.mark.parametrize("stage", [1, 2, 3, 4], ids="stage {}".format)
@pytest.mark.parametrize("kind", COMMANDS)
@pytest.mark.parametrize("method", ["MK4", "MK54"])
def test_every_stages_command_is_looked_at(kind, stage, method):
    """An invalid command ends the run at that stage of the second step; the run contains the first step."""
    spoil, words = COMMANDS[kind]
    calls = []

    class Fails(Law):
        def __call__(self, t, q, v, z):
            calls.append(t)
            tau, rate = super().__call__(t, q, v, z)[:2]
            now = sum(t >= 0.01 - 1e-12 for t in calls)
            return spoil(tau, rate) if now >= stage + (method == "MK54") else gc.Command(tau, rate)

    with pytest.raises(SimulationError, match=words.replace("t = 0.01 s", r"t = 0.01\d* s")) as caught:
        flat_simulate(ARM, Fails(), [0.2, 0.1], [0.0, 0.3], 0.05, 1e-2, method=method, compiled=False)
    assert len(caught.value.run.t) in (1, 2)
    assert np.isfinite(caught.value.run.z).all()


def test_a_state_on_a_group_has_its_rates_looked_at_as_well():
    """Also for quadrupeds, whose velocities and configurations have different sizes."""
    n = QUADRUPED.nv

    class Fails:
        calls = 0

        def start(self):
            return np.eye(3)

        group = SO3()

        def __call__(self, t, q, v, z):
            self.calls += 1
            return gc.Command(np.zeros(n), np.ones(3) if self.calls < 3 else np.ones((3, 3)))

    with pytest.raises(SimulationError, match=r"z_rate, finite numbers of shape \(3,\), .* got shape \(3, 3\)"):
        gc.simulate(QUADRUPED, Fails(), QUADRUPED.neutral(), np.zeros(n), 0.01, 1e-3)
