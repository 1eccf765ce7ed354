"""Values of monitors against closed forms: growth of V beyond an allowance, energy that the power does not explain."""

import itertools
import re

import numpy as np
import pytest
from scipy.linalg import expm
from simulation_options import IN_PYTHON, grouped

import geomctrl as gc
from geomctrl import inertia

CART = gc.Robot.build(
    [gc.Body("cart", None, gc.Joint.prismatic((1, 0, 0)), None, inertia.from_com(2.0, (0, 0, 0), 0.01 * np.eye(3)))]
)
DT = 1e-2


class Growing:
    """No torque, and V = 2 + slope t, with an allowance: V exceeds it by (slope - c) dt in each step."""

    def __init__(self, slope, c):
        self.robot, self.q_d, self.slope, self.c = CART, np.zeros(1), slope, c

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(0.0 * v)

    def lyapunov(self, t, q, v, z, plant):
        return gc.Lyapunov(2.0 + self.slope * t, 0.0 * v[0])

    def allowance(self, plant):
        return self.c


def monitored(slope, c, **options):
    monitors = [gc.monitors.LyapunovDecrease()]
    run = gc.simulate(
        CART, Growing(slope, c), [0.0], [0.1], 0.2, DT, **grouped(monitors=monitors, compiled=False, **options)
    )
    return run.monitors["lyapunov"]


@pytest.mark.parametrize("options", [{}, {"control_dt": DT}])
@pytest.mark.parametrize(("slope", "c"), [(0.3, 0.1), (0.3, 0.0), (0.3, 0.29)])
def test_growth_counts_beyond_the_allowance_times_the_time(slope, c, options):
    result = monitored(slope, c, **options)
    assert result.ok is False
    largest = 2.0 + slope * DT  # growth is largest relative to V in the first step
    assert result.worst == pytest.approx((slope - c) * DT / largest, rel=1e-9)
    repeated = float(re.search(r"V grows by ([\d.e+-]+) in the step", result.explanation)[1])
    assert repeated == pytest.approx((slope - c) * DT, rel=0.05)  # printed with two digits


@pytest.mark.parametrize("options", [{}, {"control_dt": DT}])
@pytest.mark.parametrize(("slope", "c"), [(0.3, 0.300001), (0.3, 1.0), (-0.3, 0.0)])
def test_growth_within_the_allowance_is_none(slope, c, options):
    result = monitored(slope, c, **options)
    assert result.ok is True
    assert result.worst == 0.0


class Leaking(gc.Plant):
    """A spring at the joint; a constant power is missing in the balance."""

    leak = 0.0  # W

    def net_torque(self, t, q, v, tau, x):
        return super().net_torque(t, q, v, tau, x) - 10.0 * q

    def stored_energy(self, q, x):
        return 5.0 * q @ q

    def storage_power(self, t, q, v, tau, x):
        return 10.0 * q @ v - self.leak


class Coasting(Growing):
    def __init__(self):
        super().__init__(0.0, 0.0)


@pytest.mark.parametrize("leak", [0.25, -0.25, 1e-4])
def test_power_that_is_missing_is_named_in_watts(leak):
    plant = Leaking(CART, None)
    plant.leak = leak
    run = gc.simulate(
        plant, Coasting(), [0.5], [1.0], 0.3, 1e-3, monitors=[gc.monitors.EnergyBalance()], options=IN_PYTHON
    )
    result = run.monitors["energy"]
    assert result.ok is False
    missing = float(re.search(r"differs from the power by ([\d.e+-]+) W", result.explanation)[1])
    assert missing == pytest.approx(leak, rel=2e-3)  # printed with three digits


def test_a_violation_of_the_energy_balance_needs_the_limit_and_no_more():
    """The drift, leak times time, is divided by the energy that lifts the cart by a centimetre, because the energy
    is constant.
    """
    energy = 2.0 * 9.81 * 0.01
    for share, ok in ((1.5, False), (0.7, True)):
        plant = Leaking(CART, None)
        plant.leak = share * 1e-3 * energy / 0.3
        monitor = gc.monitors.EnergyBalance(limit=1e-3)
        run = gc.simulate(plant, Coasting(), [0.5], [1.0], 0.3, 1e-3, monitors=[monitor], options=IN_PYTHON)
        assert run.monitors["energy"].ok is ok, share


@pytest.mark.parametrize(("residual", "error", "verdict"), [(0.9, 1.0, "UNRESOLVED"), (3.0, 1.0, "VIOLATED")])
def test_what_differences_of_the_energy_may_be_off_by_accuses_nobody(monkeypatch, residual, error, verdict):
    """In units of the limit over the run: of 3 +- 1 at least 2 are missing, of 0.9 +- 1 possibly nothing is."""
    plant, T = Leaking(CART, None), 0.3
    unit = 1e-3 * 2.0 * 9.81 * 0.01 / T  # W
    plant.leak = 5.0 * unit
    monkeypatch.setattr(gc.monitors.EnergyBalance, "_residual", lambda *_: (1.0, residual * unit, error * unit))
    run = gc.simulate(
        plant, Coasting(), [0.5], [1.0], T, 1e-3, monitors=[gc.monitors.EnergyBalance(limit=1e-3)], options=IN_PYTHON
    )
    assert run.monitors["energy"].verdict == verdict
    monkeypatch.setattr(gc.monitors.EnergyBalance, "_residual", lambda *_: (1.0, 1.5 * unit, error * unit))
    again = gc.monitors.EnergyBalance(limit=1e-3)
    run = gc.simulate(plant, Coasting(), [0.5], [1.0], T, 1e-3, monitors=[again], options=IN_PYTHON)
    assert run.monitors["energy"].verdict == "UNRESOLVED"


class Pushed(Coasting):
    def __call__(self, t, q, v, z):
        return gc.Command(0.0 * v + 3.0)


def test_work_of_a_constant_force_is_the_energy_gained():
    plant = Leaking(CART, None)
    run = gc.simulate(
        plant, Pushed(), [0.5], [1.0], 0.3, 1e-3, monitors=[gc.monitors.EnergyBalance()], options=IN_PYTHON
    )
    assert abs(run.q[-1, 0] - 0.5) > 0.05  # the force works
    assert run.monitors["energy"].worst < 1e-9


def test_energy_that_is_missing_is_compared_with_the_energy_that_is_exchanged():
    """A force F moves a mass m from rest: its work is F^2 t^2 / 2 m, of which leak t are missing."""
    plant, T, m, F = Leaking(CART, None), 0.3, 2.0, 30.0
    plant.leak = 1.0

    class Strong(Coasting):
        def __call__(self, t, q, v, z):
            return gc.Command(F + 10.0 * q)  # it also holds the spring

    options = IN_PYTHON
    run = gc.simulate(plant, Strong(), [0.0], [0.0], T, 1e-3, monitors=[gc.monitors.EnergyBalance()], options=options)
    t = run.t[1:]
    least, kinetic, spring = 0.01 * m * 9.81, F**2 * t**2 / (2.0 * m), 5.0 * (F * t**2 / (2.0 * m)) ** 2
    scale = np.maximum.accumulate(np.maximum(least, kinetic + spring))
    assert scale[-1] > 50.0 * least
    assert run.monitors["energy"].worst == pytest.approx((plant.leak * t / scale).max(), rel=2e-2)
    assert run.monitors["energy"].values[-1] == pytest.approx(plant.leak * T / scale[-1], rel=2e-2)


class Kinetic(Coasting):
    def lyapunov(self, t, q, v, z, plant):
        return gc.Lyapunov(plant.robot.kinetic_energy(q, v), 0.0 * v[0])


def test_a_load_that_is_gripped_is_no_growth_of_v():
    """V = m v^2 / 2 doubles with the mass at 0.1 s, where the velocity is continuous."""
    body = gc.Body(
        "cart", None, gc.Joint.prismatic((1, 0, 0)), None, inertia.from_com(4.0, (0, 0, 0), 0.01 * np.eye(3))
    )
    plant = gc.Plant(CART, changes=[(0.1, gc.Robot.build([body]))])
    monitor, options = gc.monitors.LyapunovDecrease(), IN_PYTHON
    run = gc.simulate(plant, Kinetic(), [0.0], [1.0], 0.2, DT, monitors=[monitor], options=options)
    assert run.signals["lyapunov"][[0, -1]] == pytest.approx([1.0, 2.0], rel=1e-9)
    assert run.monitors["lyapunov"].worst < 1e-12
    assert run.monitors["lyapunov"].ok is True


class Noisy(Coasting):
    """V with an error that varies irregularly between states, like that of an iteration that stops early."""

    def lyapunov(self, t, q, v, z, plant):
        return gc.Lyapunov(2.0 + 1e-7 * np.sin(1e13 * q[0]), 0.0 * v[0])


def test_noise_of_v_is_measured_and_accuses_nobody():
    monitor, options = gc.monitors.LyapunovDecrease(), IN_PYTHON
    run = gc.simulate(CART, Noisy(), [0.1], [0.1], 0.2, DT, monitors=[monitor], options=options)
    assert run.monitors["lyapunov"].worst > 2.0 * run.monitors["lyapunov"].limit
    assert run.monitors["lyapunov"].verdict != "VIOLATED"


class Undefined(Coasting):
    """V is undefined beyond a position that the cart reaches."""

    def lyapunov(self, t, q, v, z, plant):
        return gc.Lyapunov(2.0 - q[0] if q[0] < 0.15 else np.nan, -v[0])


def test_a_v_without_a_value_at_a_state_of_the_run_is_a_violation():
    monitor, options = gc.monitors.LyapunovDecrease(), IN_PYTHON
    run = gc.simulate(CART, Undefined(), [0.0], [1.0], 0.2, DT, monitors=[monitor], options=options)
    assert run.monitors["lyapunov"].verdict == "VIOLATED"
    assert "V is not finite" in run.monitors["lyapunov"].explanation


class Turning(Coasting):
    """A law whose state is a rotation; each sample stretches it by 1 + d."""

    group = gc.groups.SO3()

    def start(self):
        return np.eye(3)

    def __call__(self, t, q, v, z):
        return gc.Command(0.0 * v, z_next=z * (1.0 + 1e-3))


def test_a_rotation_of_the_law_that_is_none_any_more_is_a_violation():
    """A Newton step to the nearest rotation leaves 1 - 3 d^2 / 2 of the length 1 + d, so that z^T z - 1 = -3 d^2."""
    monitor, options = gc.monitors.GroupResidual(), IN_PYTHON
    run = gc.simulate(CART, Turning(), [0.0], [1.0], 0.2, DT, control_dt=DT, monitors=[monitor], options=options)
    assert run.monitors["group"].worst == pytest.approx(3e-6, rel=0.01)
    assert run.monitors["group"].ok is False


# --- steps that are repeated ------------------------------------------------------------------------------------------


class Watching(gc.monitors.Monitor):
    """A monitor beyond its limit at every sample, so that steps of its run can be repeated."""

    name, description, limit = "watching", "nothing", -1.0

    def measure(self, sample):
        return 0.0

    def confirm(self, replay):
        self.replay = replay
        return gc.monitors.Finding(gc.monitors.HELD, "looked at")


class Damped(Coasting):
    """tau = - 8 q - d v on the cart of 2 kg: x' = A x."""

    def __init__(self, d=1.0):
        super().__init__()
        self.d = d

    def __call__(self, t, q, v, z):
        return gc.Command(-8.0 * q - self.d * v)

    def after(self, h):
        return expm(h * np.array([[0.0, 1.0], [-4.0, -0.5 * self.d]])) @ START


START = np.array([0.1, 0.2])


def replay_of(law, plant=CART, **options):
    watching = Watching()
    gc.simulate(plant, law, START[:1], START[1:], 0.1, 1e-3, **grouped(monitors=[watching], compiled=False, **options))
    return watching.replay


@pytest.mark.parametrize(
    ("sensors", "options"), [([], {}), ([], {"control_dt": 1e-2}), ([gc.sensors.Encoder(8)], {"control_dt": 1e-2})]
)
def test_steps_are_repeated_with_the_true_state_and_the_law_at_every_stage(sensors, options):
    law = Damped()
    replay, y = replay_of(law, gc.Plant(CART, sensors=sensors), **options), np.append(START, 0.0)
    np.testing.assert_allclose(replay.after(0.0, y, 0.5, 64)[:2], law.after(0.5), atol=1e-9)
    pushed = replay.after(0.0, y, 0.5, 1, np.array([3.0]))  # a held command: q + v h + 3 / 2 h^2 / 2
    np.testing.assert_allclose(pushed[:2], [0.1 + 0.2 * 0.5 + 1.5 * 0.125, 0.2 + 1.5 * 0.5], rtol=1e-12)


def test_the_tolerances_of_adaptive_steps_follow_the_parts():
    law = Damped(d=0.0)
    replay, y = replay_of(law, rtol=1e-4, atol=1e-6), np.append(START, 0.0)
    errors = [np.abs(replay.after(0.0, y, 20.0, parts)[:2] - law.after(20.0)).max() for parts in (1, 4)]
    assert errors[1] < 4.0**-replay.order * 10.0 * errors[0]


@pytest.mark.parametrize("d", [40.0, 400.0])
def test_the_fastest_rate_and_the_longest_stable_step_are_those_of_the_textbook(d):
    """RK4's interval of stability ends at -2.785293563405282 (Hairer and Wanner 1996, IV.2)."""
    replay = replay_of(Damped(d), method="MK4")
    fastest, longest = replay._fastest_rate(0.0, np.append(START, 0.0))
    exact = np.abs(np.roots([2.0, d, 8.0])).max()
    assert fastest == pytest.approx(exact, rel=1e-6)
    assert longest == pytest.approx(2.785293563405282 / exact, rel=1e-5)


@pytest.mark.parametrize(("others", "verdict"), [(1.0, "VIOLATED"), (0.0, "UNRESOLVED")])
def test_growth_that_other_numbers_of_parts_do_not_show_is_not_confirmed(monkeypatch, others, verdict):
    """The result for 1 in 1, 2, 4, ... parts looks converged; it is only if 63 parts, for example, agree."""
    growth = staticmethod(lambda parts, stretch=1.0: 1.0 if parts & (parts - 1) == 0 else others)
    monkeypatch.setattr("geomctrl.control.monitors.lyapunov._RepeatedStep.growth", growth)
    assert monitored(0.3, 0.0).verdict == verdict


@pytest.mark.parametrize(("neighbours", "verdict"), [([2.0, 3.0, 2.0], "VIOLATED"), ([2.0, 0.5, 2.0], "UNRESOLVED")])
def test_an_asymmetry_is_confirmed_by_all_neighbours_of_a_state(monkeypatch, neighbours, verdict):
    """In units of the limit: a violated identity is violated everywhere, rounding exceeds it in places only."""
    monitor, residuals = gc.monitors.Skew(), itertools.cycle(neighbours)
    monkeypatch.setattr(gc.monitors.Skew, "measure", lambda self, sample: 2.0 * self.limit)
    monkeypatch.setattr(gc.monitors.Skew, "_residual", lambda self, q, v, s: self.limit * next(residuals))
    run = gc.simulate(
        CART, Coasting(), [0.0], [0.1], 0.05, DT, **grouped(monitors=[monitor], compiled=False)
    )  # fmt: skip
    assert run.monitors["skew"].verdict == verdict


class Ratchet(Coasting):
    """A state that each sample increases by `up`; V = 2 + z, which nothing else changes."""

    def __init__(self, up):
        super().__init__()
        self.up = up

    def start(self):
        return np.zeros(1)

    def __call__(self, t, q, v, z):
        return gc.Command(0.0 * v, z_next=z + self.up)

    def lyapunov(self, t, q, v, z, plant):
        return gc.Lyapunov(2.0 + z[0], 0.0 * v[0])


@pytest.mark.parametrize(("up", "verdict"), [(0.1, "VIOLATED"), (-0.01, "held"), (0.0, "held")])
def test_what_a_sample_does_to_the_laws_own_state_is_growth_of_v(up, verdict):
    run = gc.simulate(
        CART, Ratchet(up), [0.0], [0.1], 0.2, DT,
        **grouped(monitors=[gc.monitors.LyapunovDecrease()], compiled=False, control_dt=DT),
    )  # fmt: skip
    result = run.monitors["lyapunov"]
    assert result.verdict == verdict
    if up > 0.0:
        grown = float(re.search(r"V grows by ([\d.e+-]+) in the step", result.explanation)[1])
        assert grown == pytest.approx(up, rel=0.05)  # printed with two digits


def test_excess_over_limits_is_that_of_the_worst_joint_and_end():
    """Two carts move at constant speeds, so their positions and the excess of each limit are known."""
    limits = [{"lower": -0.1, "upper": 0.3, "velocity": 0.3}, {"lower": -0.5, "upper": 0.05, "velocity": 1.0}]
    mass = inertia.from_com(2.0, (0, 0, 0), 0.01 * np.eye(3))
    bodies = [
        gc.Body(f"cart{k}", None, gc.Joint.prismatic((1, 0, 0), name=f"joint{k}", **ends), None, mass)
        for k, ends in enumerate(limits)
    ]
    robot = gc.Robot.build(bodies, gravity=(0.0, 0.0, 0.0))
    law = Growing(0.0, 0.0)
    law.robot, law.q_d = robot, np.zeros(2)
    run = gc.simulate(robot, law, [0.0, 0.0], [0.2, -0.4], 1.0, DT, monitors=[
        gc.monitors.JointLimits(of="position"), gc.monitors.JointLimits(of="velocity"),
    ])  # fmt: skip
    # at t = 1 s: q = (0.2, -0.4), below 0.3 and above -0.5 by 0.1 each; at the start q1 = 0 is below 0.05 by 0.05
    assert run.monitors["position_limits"].worst == pytest.approx(-0.05, abs=1e-9)
    assert run.monitors["velocity_limits"].worst == pytest.approx(-0.1, abs=1e-9)  # |0.2| of 0.3, |-0.4| of 1
