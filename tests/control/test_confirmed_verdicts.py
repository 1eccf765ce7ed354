"""A monitor's suspected violation is confirmed before a run reports VIOLATED; undecided ones are UNRESOLVED."""

import math

import numpy as np
import pytest
from simulation_options import IN_PYTHON, grouped

import geomctrl as gc
from geomctrl import controllers, inertia, measures, models
from geomctrl.control.monitors.refinement import STAYS, UNDECIDED, VANISHES, extrapolated, refined
from geomctrl.control.references import Sinusoids

PANDA, ARM = models.panda(), models.two_link()
HOME = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
MOTION = Sinusoids(PANDA, HOME, 0.2, 0.4)
SWING = Sinusoids(ARM, [0.3, -0.5], 0.2, 0.4)
SLIDER = gc.Robot.build(
    [gc.Body("cart", None, gc.Joint.prismatic((1, 0, 0)), None, inertia.from_com(2.0, (0, 0, 0), 0.01 * np.eye(3)))]
)


class Spring:
    """tau = -k q - d v on a cart of 2 kg, V = energy + `extra`(t, q, v)."""

    def __init__(self, k=8.0, d=1.0, extra=None):
        self.robot, self.k, self.d, self.q_d, self.extra = SLIDER, k, d, np.zeros(1), extra

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(-self.k * q - self.d * v)

    def lyapunov(self, t, q, v, z, plant):
        more = 0.0 if self.extra is None else self.extra(t, q, v)
        return gc.Lyapunov((v @ v) + 0.5 * self.k * q @ q + more, -self.d * v @ v)


def on_reference(plant, dt=2e-3, **options):
    start = MOTION(0.0)
    return gc.simulate(plant, controllers.Passivity(PANDA, MOTION), start.q, start.v, 0.2, dt, **grouped(**options))


# --- the order test -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, 4, 6])
@pytest.mark.parametrize(("left", "outcome"), [(0.0, VANISHES), (-3.0, VANISHES), (2e-3, STAYS), (1.0, STAYS)])
def test_growth_is_extrapolated_with_the_order_of_the_method(order, left, outcome):
    result = refined(lambda n: left + 0.5 * n**-order, 1e-3, order)
    assert result.outcome == (UNDECIDED if order == 1 and left in (0.0, 2e-3) else outcome)
    if order > 1:
        assert result.order == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize("order", [0.5, 1.0, 2.0, 3.0, 4.0, 6.0])
@pytest.mark.parametrize("left", [-1.0, 0.0, 0.3])
def test_the_limit_is_within_the_error_of_the_last_growth(order, left):
    for count in (3, 4, 6):
        growths = [left + 0.5 * 2.0 ** (-k * order) for k in range(count)]
        assert abs(growths[-1] - left) <= extrapolated(growths, 1e-3, 4).error


def test_growth_that_wanders_is_undecided():
    rng = np.random.default_rng(3)
    for wandering in (lambda n: rng.uniform(-0.7, 1.3), lambda n: rng.uniform() / n, lambda n: rng.normal() / n):
        assert [refined(wandering, 1e-3, 4).outcome for _ in range(2000)].count(STAYS) <= 2
    assert refined(lambda n: np.inf, 1e-3, 4).outcome == UNDECIDED
    assert refined(lambda n: 1.0 if n == 2 else np.nan, 1e-3, 4).outcome == UNDECIDED


# --- Lyapunov functions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("every", [1, 7, 1000])
def test_truncation_on_the_reference_is_no_violation_and_a_milligram_is_one(compiled, every):
    right = on_reference(PANDA, compiled=compiled, every=every)
    assert right.monitors["lyapunov"].worst > right.monitors["lyapunov"].limit
    assert right.ok is True
    assert "rounding" in right.monitors["lyapunov"].explanation
    wrong = on_reference(PANDA.with_payload(1e-6, (0, 0, 0.1)), compiled=compiled, every=every)
    assert wrong.ok is False
    assert "VIOLATED (V grows by" in wrong.summary()


@pytest.mark.parametrize("compiled", [False, True])
def test_the_worst_step_is_repeated_where_it_was_not_stored(compiled):
    """V grows only near q = 0.12, for a moment; only the first and the last sample are stored."""
    law = Spring(extra=lambda t, q, v: 0.05 * np.exp(-(((q[0] - 0.12) / 2e-3) ** 2)))
    run = gc.simulate(SLIDER, law, [0.1], [0.2], 0.5, 1e-3, options=gc.SimulationOptions(every=1000, compiled=compiled))
    assert len(run.t) == 2
    assert run.monitors["lyapunov"].ok is False
    assert f"in the step from t = {run.monitors['lyapunov'].t_worst - 1e-3:.6g} s" in run.summary()


def test_the_step_that_is_advised_resolves():
    law, start = controllers.Passivity(ARM, SWING), SWING(0.0)
    coarse = gc.simulate(ARM, law, start.q, start.v, 0.1, 1e-2)
    result = coarse.monitors["lyapunov"]
    assert (result.verdict, result.ok, coarse.ok) == ("UNRESOLVED", None, None)
    assert f"dt = {result.finding.dt:.1g} s" in coarse.summary()
    assert result.finding.dt < 1e-2
    fine = gc.simulate(ARM, law, start.q, start.v, 0.1, 1e-2 / math.ceil(1e-2 / result.finding.dt))
    assert fine.ok is True, fine.summary()


@pytest.mark.parametrize(("dt", "steps"), [(0.04, 10), (0.052, 2)])
def test_a_stiff_loop_is_told_its_rate_and_the_step_of_the_textbook(dt, steps):
    """x' = -100 x; RK4's interval of stability ends at -2.785293563405282 (Hairer and Wanner 1996, IV.2)."""
    law = Spring(k=8.0, d=200.0)
    result = gc.simulate(SLIDER, law, [0.1], [0.1], steps * dt, dt).monitors["lyapunov"]
    assert result.verdict == "UNRESOLVED"
    fastest = np.abs(np.roots([2.0, 200.0, 8.0])).max()
    assert f"fastest rate is {fastest:.3g} 1/s" in result.finding.reason
    bound = 2.785293563405282 / fastest
    assert f"dt at most {bound:.2g} s, or damping gains at most {bound / dt:.2g} times theirs" in result.finding.advice
    assert result.finding.dt <= 0.9 * bound * (1.0 + 1e-6)
    assert gc.simulate(SLIDER, law, [0.1], [0.1], 0.4, 0.02).monitors["lyapunov"].ok


@pytest.mark.parametrize("size", [1.0, 1e-3, 1e-6])
@pytest.mark.parametrize("dt", [1e-3, 1e-2])
def test_growth_that_is_real_is_a_violation_however_small(size, dt):
    extra = Spring(d=1e-4, extra=lambda t, q, v: size * np.sin(20.0 * t) ** 2)
    assert gc.simulate(SLIDER, extra, [0.1], [0.0], 0.3, dt).monitors["lyapunov"].ok is False


@pytest.mark.parametrize(("sign", "ok"), [(1.0, False), (-1.0, True)])
def test_a_step_of_V_upwards_is_a_violation_and_one_downwards_is_none(sign, ok):
    law = Spring(extra=lambda t, q, v: np.where(q[0] < 0.05, 0.1 * sign, 0.0) + 0.1)
    run = gc.simulate(SLIDER, law, [0.1], [0.0], 1.0, 1e-3)
    assert (run.q < 0.05).any()
    assert run.monitors["lyapunov"].ok is ok, run.summary()


def test_a_stencil_across_a_drop_of_V_accuses_no_held_law():
    """Differences of V across the drop have the sign of growth, but V falls along the motion of the law."""
    accused = 0
    for place in 0.05 + 4e-5 * np.arange(1, 6, 2):
        law = Spring(extra=lambda t, q, v, place=place: np.where(q[0] < place, 0.0, 0.1))
        run = gc.simulate(SLIDER, law, [0.1], [0.0], 0.6, 1e-3, control_dt=2e-3)
        accused += run.monitors["lyapunov"].worst > run.monitors["lyapunov"].limit
        assert run.monitors["lyapunov"].ok is True, run.summary()
    assert accused


def without_measurements(sign):
    """The y that the law uses when it is called without measurements, of the right or of the wrong sign."""
    return lambda q, v: {"q": sign * q, "v": sign * v}


@pytest.mark.parametrize("instead", [None, without_measurements(1.0), without_measurements(-1.0)])
def test_a_law_that_acts_on_measurements_is_not_accused_for_its_sensors(instead):
    class Measured(Spring):
        measurements = True

        def __call__(self, t, q, v, z, y=None):
            y = instead(q, v) if y is None else y
            return gc.Command(-self.k * y["q"] - self.d * y["v"])

    plant = gc.Plant(SLIDER, sensors=[gc.sensors.Encoder(8)])
    run = gc.simulate(plant, Measured(), [0.1], [0.0], 1.0, 1e-3, control_dt=1e-3)
    result = run.monitors["lyapunov"]
    assert result.worst > result.limit
    assert (result.verdict, run.ok) == ("UNRESOLVED", None)
    assert "the law acts on measurements" in result.explanation


def test_what_raises_while_it_is_repeated_leaves_the_verdict_open():
    law = Spring(extra=lambda t, q, v: 0.1 * np.sin(20.0 * t))
    calls = {"open": True}

    class Once(gc.monitors.LyapunovDecrease):
        def confirm(self, replay):
            calls["open"] = False
            raise OSError("the instrument is gone")

    run = gc.simulate(SLIDER, law, [0.1], [0.0], 0.1, 1e-3, monitors=[Once()])
    assert calls == {"open": False}
    assert (run.monitors["lyapunov"].verdict, run.ok) == ("UNRESOLVED", None)
    assert "OSError: the instrument is gone" in run.summary()


# --- energy, holding, limits ----------------------------------------------------------------------------------------


class Springs(gc.Plant):
    """Springs at the joints; a `share` of the power into them is missing."""

    share = 0.0

    def net_torque(self, t, q, v, tau, x):
        return super().net_torque(t, q, v, tau, x) - 10.0 * q

    def stored_energy(self, q, x):
        return 5.0 * q @ q

    def storage_power(self, t, q, v, tau, x):
        return 10.0 * (1.0 - self.share) * q @ v


@pytest.mark.quick(3)
@pytest.mark.parametrize("share", [0.5, 1e-3, 1e-5])
@pytest.mark.parametrize("every", [1, 20])
def test_energy_that_is_not_the_power_is_a_violation(share, every):
    class Wrong(Springs):
        pass

    Wrong.share = share
    run = gc.simulate(Wrong(SLIDER, None), Spring(), [0.5], [1.0], 1.0, 1e-3, options=gc.SimulationOptions(every=every))
    assert run.monitors["energy"].ok is False
    assert "W at t =" in run.monitors["energy"].explanation


@pytest.mark.parametrize("dt", [0.2, 0.1])
def test_energy_that_the_integrator_loses_is_unresolved_and_the_advice_resolves(dt):
    options = {"monitors": [gc.monitors.EnergyBalance()]}
    coarse = gc.simulate(Springs(SLIDER, None), Spring(), [0.5], [1.0], 1.0, dt, **grouped(**options))
    result = coarse.monitors["energy"]
    assert (result.verdict, coarse.ok) == ("UNRESOLVED", None)
    fine = gc.simulate(
        Springs(SLIDER, None), Spring(), [0.5], [1.0], 1.0, dt / math.ceil(dt / result.finding.dt), **grouped(**options)
    )
    assert fine.monitors["energy"].ok is True


def test_a_loop_that_is_held_too_long_is_a_violation_and_a_wrong_law_is_not_blamed_on_holding():
    run = gc.simulate(SLIDER, Spring(k=200.0, d=40.0), [0.1], [0.0], 2.0, 1e-3, control_dt=0.2)
    assert run.monitors["holding"].ok is False
    assert "control_dt below" in run.monitors["holding"].explanation
    start = SWING(0.0)
    law = controllers.Passivity(ARM, SWING)
    wrong = gc.simulate(ARM.with_payload(1.0), law, start.q, start.v, 0.2, 1e-3, control_dt=1e-3)
    assert wrong.monitors["lyapunov"].ok is False
    assert wrong.monitors["holding"].ok is not False


def test_a_law_that_chatters_while_it_is_held_is_not_accused():
    class Sliding(Spring):
        def __call__(self, t, q, v, z):
            return gc.Command(-self.k * q - self.d * v - 3.0 * np.sign(v))

        def lyapunov(self, t, q, v, z, plant):
            V, rate = super().lyapunov(t, q, v, z, plant)
            return gc.Lyapunov(V, rate - 3.0 * np.abs(v).sum())

    run = gc.simulate(SLIDER, Sliding(), [0.0], [1e-3], 0.3, 1e-3, control_dt=5e-3)
    assert run.monitors["holding"].worst > 0.5
    assert run.monitors["holding"].ok is None
    assert "chatter" in run.monitors["holding"].explanation


@pytest.mark.parametrize(("beyond", "verdict"), [(0.0, "held"), (4e-15, "held"), (1e-9, "VIOLATED")])
def test_a_joint_at_its_limit_is_within_rounding_of_it(beyond, verdict):
    joint = gc.Joint.prismatic((1, 0, 0), lower=-1.0, upper=0.5)
    robot = gc.Robot.build([gc.Body("cart", None, joint, None, inertia.from_com(2.0, (0, 0, 0), 0.01 * np.eye(3)))])
    run = gc.simulate(robot, Spring(), [0.5 + beyond], [0.0], 0.1, 1e-3)
    assert run.monitors["position_limits"].verdict == verdict


# --- what a run says ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [False, True])
def test_strict_goes_on_after_what_is_cleared_and_stops_at_what_is_confirmed(compiled):
    right = on_reference(PANDA, compiled=compiled, strict=True)
    assert right.ok is True
    assert right.monitors["lyapunov"].worst > right.monitors["lyapunov"].limit
    with pytest.raises(
        gc.SimulationError, match=r"strict: monitor 'lyapunov' at t = .* limit 1e-08: V grows"
    ) as stopped:
        on_reference(PANDA.with_payload(0.1), compiled=compiled, strict=True)
    assert stopped.value.run.t[-1] == pytest.approx(2e-3)


def test_what_nobody_confirmed_is_unresolved():
    """As in a run that Ctrl-C ended."""

    def stop(fraction):
        if fraction > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        gc.simulate(SLIDER, Spring(d=-1.0), [0.1], [0.1], 1.0, 1e-3, progress=stop, options=IN_PYTHON)
    result = stopped.value.run.monitors["lyapunov"]
    assert result.worst > result.limit
    assert (result.verdict, result.ok, result.explanation) == ("UNRESOLVED", None, "not confirmed")


def test_three_verdicts_are_kept_in_files(tmp_path):
    law, start = controllers.Passivity(ARM, SWING), SWING(0.0)
    for plant, dt, ok in ((ARM, 1e-2, None), (ARM.with_payload(0.1), 1e-3, False), (ARM, 5e-4, True)):
        run = gc.simulate(plant, law, start.q, start.v, 0.1, dt)
        assert run.ok is ok
        loaded = gc.Run.load(run.save(tmp_path / "run.npz"))
        assert loaded.ok is ok
        assert loaded.summary().split("\n")[-3:] == run.summary().split("\n")[-3:]
        assert {None: "UNRESOLVED: lyapunov", False: "VIOLATED: lyapunov", True: "4 monitors held"}[ok] in repr(loaded)
        assert ("UNRESOLVED" if ok is None else "held") in run._repr_html_()


def test_a_sweep_tells_verdicts_and_advice():
    def make(point):
        start = SWING(0.0)
        return ARM.with_payload(point["load"]), controllers.Passivity(ARM, SWING), start.q, start.v

    table = gc.sweep(make, {"load": [0.0, 0.1]}, [measures.Verdict("lyapunov"), measures.Verdict("energy")], 0.1, 1e-2)
    assert table.verdict_lyapunov.values.tolist() == [0.0, -1.0]
    assert "lyapunov UNRESOLVED: V grows in the step" in table.reason.values[0]
    assert "lyapunov VIOLATED: V grows by" in table.reason.values[1]


def test_a_monitor_of_a_user_s_own_observes_or_confirms():
    class Speed(gc.monitors.Monitor):
        name, what, limit = "speed", "speed [m/s]", 0.1

        def measure(self, sample):
            return float(abs(sample.v[0]))

    class Patient(Speed):
        def confirm(self, replay):
            k = replay.beyond(self)[0]
            assert replay.state(k)[1][1] == replay.run.v[k, 0]
            return gc.monitors.Finding(gc.monitors.HELD, "slow enough after all")

    for monitor, ok in ((Speed(), False), (Patient(), True)):
        run = gc.simulate(SLIDER, Spring(), [0.5], [0.0], 1.0, 1e-3, monitors=[monitor])
        assert run.ok is ok
