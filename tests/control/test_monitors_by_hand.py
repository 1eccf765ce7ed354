"""Numbers of monitors against closed forms: growth of V beyond an allowance, energy that the power does not explain."""

import re

import numpy as np
import pytest
from simulation_options import grouped

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
    found = monitored(slope, c, **options)
    assert found.ok is False
    largest = 2.0 + slope * DT  # where growth is largest relative to V: in the first step
    assert found.worst == pytest.approx((slope - c) * DT / largest, rel=1e-9)
    repeated = float(re.search(r"V grows by ([\d.e+-]+) in the step", found.explanation)[1])
    assert repeated == pytest.approx((slope - c) * DT, rel=0.05)  # printed with two digits


@pytest.mark.parametrize("options", [{}, {"control_dt": DT}])
@pytest.mark.parametrize(("slope", "c"), [(0.3, 0.300001), (0.3, 1.0), (-0.3, 0.0)])
def test_growth_within_the_allowance_is_none(slope, c, options):
    found = monitored(slope, c, **options)
    assert found.ok is True
    assert found.worst == 0.0


class Leaking(gc.Plant):
    """A spring at the joint; a constant power that is not counted."""

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
        plant,
        Coasting(),
        [0.5],
        [1.0],
        0.3,
        1e-3,
        monitors=[gc.monitors.EnergyBalance()],
        options=gc.SimulationOptions(compiled=False),
    )
    found = run.monitors["energy"]
    assert found.ok is False
    missing = float(re.search(r"differs from the power by ([\d.e+-]+) W", found.explanation)[1])
    assert missing == pytest.approx(leak, rel=2e-3)  # printed with three digits


def test_a_violation_of_the_energy_balance_needs_the_limit_and_no_more():
    """The drift, leak times time, is compared with lifting the cart by a centimetre, as the true energy is constant."""
    energy = 2.0 * 9.81 * 0.01
    for share, ok in ((1.5, False), (0.7, True)):
        plant = Leaking(CART, None)
        plant.leak = share * 1e-3 * energy / 0.3
        monitor = gc.monitors.EnergyBalance(limit=1e-3)
        run = gc.simulate(
            plant, Coasting(), [0.5], [1.0], 0.3, 1e-3, monitors=[monitor], options=gc.SimulationOptions(compiled=False)
        )
        assert run.monitors["energy"].ok is ok, share


class Pushed(Coasting):
    def __call__(self, t, q, v, z):
        return gc.Command(0.0 * v + 3.0)


def test_work_of_a_constant_force_is_the_energy_gained():
    plant = Leaking(CART, None)
    run = gc.simulate(
        plant,
        Pushed(),
        [0.5],
        [1.0],
        0.3,
        1e-3,
        monitors=[gc.monitors.EnergyBalance()],
        options=gc.SimulationOptions(compiled=False),
    )
    assert abs(run.q[-1, 0] - 0.5) > 0.05  # the force works
    assert run.monitors["energy"].worst < 1e-9
