"""The desired motion is evaluated once per time and stored with the run; arguments of user code are read-only."""

import itertools

import numpy as np
import pytest
from simulation_options import grouped

import geomctrl as gc
from geomctrl import control, controllers, models, testing
from geomctrl.control.monitors import Monitor, default_monitors
from geomctrl.control.references import Sinusoids
from geomctrl.errors import ArgumentError, SimulationError

ARM = models.two_link()
TREE = testing.random_robot(np.random.default_rng(2), ["free", "spherical", "revolute"], [-1, 0, 1])


class Counted:
    """A reference as a user writes it; it records the times at which it is called."""

    def __init__(self, robot):
        self.motion, self.times = Sinusoids(robot, robot.neutral(), 0.3, 0.4, 0.5), []

    def __call__(self, t):
        self.times.append(t)
        return self.motion(t)


def law_of(robot, reference):
    return controllers.SlotineLi(robot, reference, 3.0, 5.0)


def run_of(robot, law, monitors="default", t_end=0.05, **options):
    desired = law.reference(0.0)
    q0 = robot.integrate(desired.q, 0.1 * np.ones(robot.nv))
    return gc.simulate(robot, law, q0, desired.v, t_end, 1e-3, **grouped(monitors=monitors, **options))


@pytest.mark.parametrize("robot", [ARM, TREE], ids=["arm", "tree"])
@pytest.mark.parametrize("method", ["MK4", "MK54"])
def test_law_monitors_and_record_share_one_evaluation_a_time(robot, method):
    reference = Counted(robot)
    law = law_of(robot, reference)
    reference.times.clear()
    run = run_of(robot, law, method=method)
    assert run.ok
    times = reference.times[1:]  # the first call is that of run_of
    assert times.count(0.0) == 1
    assert all(a != b for a, b in itertools.pairwise(times))
    if method == "MK4":
        # beginning, middle and end of a step; the end is the next sample up to rounding
        assert len(times) <= 3 * 50 + 1


def test_a_run_keeps_the_desired_motion_of_its_samples():
    reference = Counted(TREE)
    run = run_of(TREE, law_of(TREE, reference), every=7)
    for k, t in enumerate(run.t):
        for row, x in zip(run.desired, reference.motion(t)):
            np.testing.assert_array_equal(row[k], x)
    assert len(run.desired.q) == len(run.t) == 9
    asked = len(reference.times)
    run.summary()
    assert run.tracking_error().shape == (9, TREE.nv)
    assert len(reference.times) == asked


def test_a_run_without_a_reference_has_no_desired_motion(tmp_path):
    idle = lambda t, q, v, z: gc.Command(np.zeros(2))  # noqa: E731
    run = gc.simulate(ARM, idle, [0.1, 0.2], [0.0, 0.0], 0.01, 1e-3)
    assert run.desired is run.tracking_error() is run.tracking_rms() is None
    assert gc.Run.load(run.save(tmp_path / "run.npz")).desired is None


def test_outside_a_run_nothing_is_remembered():
    law = law_of(ARM, Counted(ARM))
    run_of(ARM, law)
    q, v, z = np.array([0.1, 0.2]), np.zeros(2), law.start()
    before = law(0.05, q, v, z).tau
    law.reference.motion = Sinusoids(ARM, ARM.neutral(), 0.6, 0.4, 0.5)
    assert np.abs(law(0.05, q, v, z).tau - before).max() > 1e-3
    np.testing.assert_array_equal(law(0.05, q, v, z).tau, law_of(ARM, law.reference.motion)(0.05, q, v, z).tau)


def test_a_run_within_a_run_does_not_disturb_it():
    class Looking(Monitor):
        limit = 1.0

        def measure(self, sample):
            other = law_of(ARM, Sinusoids(ARM, ARM.neutral(), 0.9, 0.3))
            gc.simulate(ARM, other, sample.q, sample.v, 0.002, 1e-3, monitors=None)
            return 0.0

    law = law_of(ARM, Counted(ARM))
    alone, disturbed = (run_of(ARM, law, monitors=m) for m in (None, [Looking()]))
    np.testing.assert_array_equal(disturbed.q, alone.q)
    np.testing.assert_array_equal(disturbed.desired.q, alone.desired.q)


def test_two_references_at_one_time_are_two():
    class Comparing(Monitor):
        limit, other = 1.0, Sinusoids(ARM, ARM.neutral(), 0.9, 0.3, 0.2)

        def measure(self, sample):
            for reference in (self.other, law.reference, self.other):
                for x, y in zip(control.desired_at(reference, sample.t), reference(sample.t)):
                    np.testing.assert_array_equal(x, y)
            return 0.0

    law = law_of(ARM, Counted(ARM))
    assert run_of(ARM, law, [Comparing()]).ok


@pytest.mark.parametrize("robot", [ARM, TREE], ids=["arm", "tree"])
@pytest.mark.parametrize("every", [1, 7])
def test_what_a_law_keeps_or_uses_again_changes_no_sample(robot, every):
    law = law_of(robot, Counted(robot))
    clean = run_of(robot, law, every=every)

    class Keeping(controllers.SlotineLi):
        """Stores its arguments, and returns the same arrays each time."""

        seen, tau, z_rate = {}, np.zeros(robot.nv), np.zeros(len(law.start()))

        def __call__(self, t, q, v, z):
            self.seen[t] = q, v, z
            command = super().__call__(t, q, v, z)
            self.tau[:], self.z_rate[:] = command.tau, command.z_rate
            return gc.Command(self.tau, self.z_rate, command.signals)

        def lyapunov(self, t, q, v, z, plant):
            self(t + 1.0, q, v, z)
            return super().lyapunov(t, q, v, z, plant)

    keeping = Keeping(robot, law.reference, 3.0, 5.0)
    run = run_of(robot, keeping, default_monitors(), every=every)
    for name in ("t", "q", "v", "z", "tau"):
        np.testing.assert_array_equal(getattr(run, name), getattr(clean, name))
    np.testing.assert_array_equal(run.desired.q, clean.desired.q)
    for k, t in enumerate(clean.t):
        for x, y in zip(keeping.seen[t], (clean.q[k], clean.v[k], clean.z[k])):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    ("reference", "error", "message"),
    [
        (np.zeros(2), ArgumentError, r"controller.reference: expected a function t -> Desired\(q, v, a\), got array"),
        (lambda t: None, SimulationError, r"reference: expected Desired\(q, v, a\) at t = 0 s, got None"),
        (lambda t: gc.Desired(np.zeros(2), 0.0, 0.0), SimulationError, r"reference: expected Desired.*got Desired"),
        (lambda t: (np.zeros(2), np.zeros(2)), SimulationError, r"reference: expected Desired.*got \(array"),
        (lambda t: gc.Desired(np.zeros(3), *np.zeros((2, 2))), SimulationError, "reference: expected Desired"),
    ],
)
def test_a_reference_that_is_none_is_named(reference, error, message):
    class Idle:
        def __call__(self, t, q, v, z):
            return gc.Command(np.zeros(2))

    law = Idle()
    law.reference = reference
    with pytest.raises(error, match=message):
        gc.simulate(ARM, law, [0.1, 0.2], [0.0, 0.0], 0.01, 1e-3)


def test_a_monitors_further_numbers_are_signals_of_the_run():
    class Speed(Monitor):
        name, limit = "speed", 1e3

        def start(self, plant, controller):
            self.signals = dict.fromkeys(("speed", "fastest_joint"), np.nan)
            return True

        def measure(self, sample):
            speeds = np.abs(sample.v)
            self.signals = {"speed": speeds.max(), "fastest_joint": speeds.argmax()}
            return float(speeds.max())

    law = law_of(ARM, Counted(ARM))
    run = run_of(ARM, law, [*default_monitors(), Speed()], every=7)
    assert {"lyapunov", "lyapunov_rate", "speed", "fastest_joint"} <= run.signals.keys()
    np.testing.assert_array_equal(run.signals["speed"], np.abs(run.v).max(axis=1))
    np.testing.assert_array_equal(run.signals["fastest_joint"], np.abs(run.v).argmax(axis=1))

    class Loud(controllers.Passivity):
        def __call__(self, t, q, v, z):
            return gc.Command(np.zeros(2), None, {"speed": 1.0})

    with pytest.raises(SimulationError, match="controller: signal 'speed': the name is that of the monitor 'speed'"):
        run_of(ARM, Loud(ARM, law.reference), [Speed()])


def test_a_rate_of_the_controllers_state_may_not_be_missing_at_a_stage():
    class Forgetful(controllers.SlotineLi):
        def __call__(self, t, q, v, z):
            command = super().__call__(t, q, v, z)
            return command if t == 0.0 else gc.Command(command.tau)

    with pytest.raises(SimulationError, match=r"z_rate, finite numbers of shape \(20,\), at t = 0.0005 s, got None"):
        run_of(ARM, Forgetful(ARM, Counted(ARM), 3.0, 5.0))
