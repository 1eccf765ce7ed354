"""Monitors of sampled loops: the continuous law, and the effect of the zero-order hold."""

import numpy as np
import pytest
from oracles import without_limits
from scipy.optimize import brentq
from simulation_options import both_ways

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.control import references
from geomctrl.control.monitors import Holding
from geomctrl.control.references import Sinusoids
from geomctrl.control.sample import Sample, State
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint

MASS, KP, KD = 2.0, 50.0, 8.0  # kg, N/m, N s/m
SLIDER = gc.Robot.build(
    [
        Body(
            "m",
            None,
            Joint.prismatic([1.0, 0.0, 0.0], name="x"),
            np.eye(4),
            inertia.from_com(MASS, np.zeros(3), np.eye(3)),
        )
    ],
    gravity=(0.0, 0.0, 0.0),
)
PANDA = without_limits(models.panda())
MOTION = Sinusoids(PANDA, np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8]), 0.3, 0.4)
INERTIA = 1.0 / np.diag(np.linalg.inv(PANDA.mass_matrix(MOTION(0.0).q)))


class PD:
    """A law for the slider: V = 1/2 m v^2 + 1/2 kp q^2, V' = -kd v^2."""

    def __init__(self, kp=KP, kd=KD, promised=KD):
        self.kp, self.kd, self.promised = kp, kd, promised

    def __call__(self, t, q, v, z):
        return gc.Command(-self.kp * q - self.kd * v)

    def lyapunov(self, t, q, v, z, plant):
        m = plant.robot.parameters[0, 0]
        return gc.Lyapunov(0.5 * m * v[0] * v[0] + 0.5 * self.kp * q[0] * q[0], -self.promised * v[0] * v[0])


def held_pd(period, mass=MASS, kp=KP, kd=KD):
    """The exact map from (q, v) to (q, v) one period later."""
    return np.array(
        [
            [1.0 - 0.5 * period**2 * kp / mass, period - 0.5 * period**2 * kd / mass],
            [-period * kp / mass, 1.0 - period * kd / mass],
        ]
    )


def critical_period():
    """The period at which an eigenvalue of the held loop leaves the unit circle."""
    return brentq(lambda T: np.abs(np.linalg.eigvals(held_pd(T))).max() - 1.0, 0.05, 0.6)


def test_the_map_of_a_held_loop_is_what_simulate_does():
    run = gc.simulate(SLIDER, PD(), [0.3], [-0.2], 1.0, 0.05, control_dt=0.1)
    x = np.column_stack((run.q, run.v))[::2]
    np.testing.assert_allclose(x[1:], x[:-1] @ held_pd(0.1).T, rtol=0.0, atol=1e-13)


def test_what_a_held_command_feeds_is_kept_as_an_energy():
    """It is v times the change of the desired torque times the period. As a power its rounding would be that of V
    divided by the period, in which compiled code and Python need not agree.
    """

    class Rising(PD):
        def __call__(self, t, q, v, z):
            return gc.Command(np.array([3.0 + 10.0 * t]) + super().__call__(t, q, v, z).tau)

    period, v, monitor, plant = 2e-3, np.array([0.1]), Holding(), gc.Plant(SLIDER)
    monitor.held = period
    assert monitor.start(plant, Rising())
    for t in (0.0, 1e-3):
        state = State(np.zeros(1), v, None, None, 0.0, np.array([0.0, *v, 0.0]))
        monitor.measure(Sample(t, state, gc.Command(np.array([3.0])), plant, reference=references.hold(SLIDER, [0.0])))
    assert monitor.gain == pytest.approx(v[0] * -10.0 * 1e-3 * period, rel=1e-9)
    assert monitor.fed == pytest.approx(0.5 * v[0] * -10.0 * 1e-3 * 1e-3, rel=1e-9)


@pytest.mark.parametrize("factor", [0.5, 0.8, 1.05])
def test_a_law_that_is_held_too_long_is_seen_in_its_run(factor):
    """The law is right at any sampling rate; if an eigenvalue is outside the unit circle, V grows without bound."""
    period = factor * critical_period()
    run = gc.simulate(SLIDER, PD(), [0.3], [0.0], 60.0 * period, period / 4.0, control_dt=period)
    assert run.monitors["lyapunov"].worst < 1e-12
    assert run.monitors["holding"].ok == (factor < 1.0), run.summary()


def test_no_command_is_held_in_a_continuous_loop():
    run = gc.simulate(SLIDER, PD(), [0.3], [0.0], 0.1, 0.01)
    assert set(run.monitors) == {"skew", "energy", "lyapunov", "group"}
    assert "control_dt" not in str(run.monitors["lyapunov"])


@pytest.mark.parametrize("kd", [-1e-4, -0.1, -2.0])
def test_a_wrong_law_is_seen_however_it_is_held(kd):
    """V' = -kd v^2 is positive; nothing is measured at rest and before the first step."""
    monitor, period = gc.monitors.LyapunovDecrease(), 2e-3
    run = gc.simulate(SLIDER, PD(kd=kd), [0.3], [0.2], 0.5, 1e-3, control_dt=period, monitors=[monitor])
    V, v = run.signals["lyapunov"], run.v[:, 0]
    expected = (-kd * period * v**2 / np.maximum.accumulate(V))[1:]
    np.testing.assert_allclose(run.monitors["lyapunov"].values[1:], expected, rtol=0.0, atol=1e-10)
    assert run.monitors["lyapunov"].ok is False
    assert "if the law were not held" in str(run.monitors["lyapunov"])
    continuous = gc.simulate(SLIDER, PD(kd=kd), [0.3], [0.2], 0.5, 1e-3, monitors=[monitor])
    assert "if the law were not held" not in str(continuous.monitors["lyapunov"])


def laws():
    loaded = PANDA.with_payload(2.0, (0.0, 0.0, 0.1))
    yield PANDA, controllers.PDGravity(PANDA, MOTION(0.0).q, 100.0 * INERTIA, 20.0 * INERTIA)
    yield PANDA, controllers.ComputedTorque(PANDA, MOTION, 100.0, 20.0)
    yield PANDA, controllers.Passivity(PANDA, MOTION, 10.0, 10.0 * INERTIA)
    yield loaded, controllers.SlotineLi(PANDA, MOTION, 10.0, 10.0 * INERTIA)


@pytest.mark.parametrize("off", [0.0, 0.1])
@pytest.mark.parametrize("loop", list(laws()), ids=lambda loop: type(loop[1]).__name__)
def test_the_bundled_laws_at_1_kHz_keep_what_a_held_law_can_promise(loop, off):
    """V itself grows at times, especially where it starts at zero, on the reference."""
    plant, law = loop
    run = gc.simulate(plant, law, MOTION(0.0).q + off, MOTION(0.0).v, 1.0, 1e-3, control_dt=1e-3)
    assert run.ok, run.summary()
    assert run.monitors["holding"].worst < 1e-2
    if not off and not isinstance(law, controllers.PDGravity):
        V = run.signals["lyapunov"]
        assert np.diff(V).max() > 1e-8 * V.max()


def forgetful():
    """Sigma modification: p decays to zero instead of to the true value."""

    class Sigma(controllers.SlotineLi):
        def _adaptation(self, g, z):
            return super()._adaptation(g, z) - 0.5 * self.Gamma.dot(z)

    return PANDA.with_payload(2.0, (0.0, 0.0, 0.1)), Sigma(PANDA, MOTION, 10.0, 10.0 * INERTIA)


WRONG = {
    "sigma modification": forgetful,
    "wrong model": lambda: (
        PANDA.with_payload(2.0, (0.0, 0.0, 0.1)),
        controllers.Passivity(PANDA, MOTION, 10.0, 10.0 * INERTIA),
    ),
    "friction": lambda: (
        gc.Plant(PANDA, gc.Friction(coulomb=2.0, smoothing=1.0)),
        controllers.Passivity(PANDA, MOTION, 10.0, 10.0 * INERTIA),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_holding_excuses_no_wrong_law(name):
    """The growth due to the law is that in continuous time, up to the change of the motion by the hold."""
    plant, law = WRONG[name]()
    start = MOTION(0.0).q + 0.1, MOTION(0.0).v
    worst = [
        gc.simulate(plant, law, *start, 1.0, 1e-3, control_dt=held).monitors["lyapunov"].worst for held in (None, 1e-3)
    ]
    assert min(worst) > 1e-5
    assert worst[1] == pytest.approx(worst[0], rel=0.02)


@pytest.mark.quick(2)
@pytest.mark.parametrize("dt", [1e-3, 2.5e-4])
@pytest.mark.parametrize("own", [False, True], ids=["", "compiled by itself"])
def test_held_loops_are_judged_alike_in_python_and_compiled(dt, own):
    plant, law = list(laws())[-1]
    law = gc.compile(law) if own else law
    runs = both_ways(plant, law, MOTION(0.0).q, MOTION(0.0).v, 0.04, dt, control_dt=1e-3)
    for name in ("lyapunov", "holding"):
        a, b = (run.monitors[name].values for run in runs)
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-12)
