"""Measures as formulas on stored runs and as accumulations agree, and are right for known runs."""

import math

import numpy as np
import pytest
from simulation_options import IN_PYTHON, grouped

import geomctrl as gc
from geomctrl import controllers, measures, models
from geomctrl.control.compiled.machine import Machine
from geomctrl.control.many import Case, outcomes
from geomctrl.control.monitors import Monitor
from geomctrl.control.references import Sinusoids
from geomctrl.errors import ArgumentError
from geomctrl.tracing.backends import host

ARM = models.two_link()
ALL = [
    measures.TrackingRMS(),
    measures.TrackingRMS(after=0.05, joints=True),
    measures.TrackingRMS(after=9.0),
    measures.SettlingTime(0.1),
    measures.SettlingTime(1e-9),
    measures.SettlingTime(1e9),
    measures.ParameterError(),
    measures.PeakTorque(),
    measures.PeakTorque(joints=True),
    measures.WorstMonitor("energy"),
    measures.WorstMonitor("lyapunov"),
]


class Along(Monitor):
    """Pass the samples of a loop to a measure while it runs."""

    def __init__(self, measure, number):
        self.of, self.name = measure, f"along {number}"

    def start(self, plant, controller):
        self.of.start(plant, controller)
        return True

    def measure(self, sample):
        self.of.add(sample)
        return 0.0


def adaptive_run(**options):
    reference = Sinusoids(ARM, [0.0, 0.0], 0.4, 0.5)
    law = controllers.SlotineLi(ARM, reference, 4.0, 5.0)
    plant = gc.Plant(ARM.with_payload(1.0), changes=[(0.07, ARM.with_payload(2.0))])
    return gc.simulate(plant, law, [0.2, -0.1], reference(0.0).v, 0.2, 2e-3, **grouped(**options))


def test_accumulated_along_the_loop_is_what_the_stored_run_says():
    run = adaptive_run(
        monitors=[*map(Along, ALL, range(len(ALL))), gc.monitors.EnergyBalance(), gc.monitors.LyapunovDecrease()]
    )
    for measure in ALL:
        np.testing.assert_allclose(measure(run), measure.value(), rtol=1e-12, err_msg=measure.name)
        if not isinstance(measure, measures.WorstMonitor):
            np.testing.assert_allclose(measures.Measure.__call__(measure, run), measure(run), rtol=1e-12)


def test_measures_of_a_run_agree_with_its_arrays():
    run = adaptive_run()
    e = run.tracking_error()
    assert measures.TrackingRMS()(run) == pytest.approx(math.sqrt((e**2).sum(axis=1).mean()), rel=1e-14)
    np.testing.assert_allclose(measures.TrackingRMS(joints=True)(run), run.tracking_rms(), rtol=1e-14)
    assert measures.PeakTorque()(run) == np.abs(run.tau).max()
    assert measures.WorstMonitor("skew")(run) == run.monitors["skew"].worst
    settled = measures.SettlingTime(0.1)(run)
    largest = np.abs(e).max(axis=1)
    assert (largest[run.t >= settled] <= 0.1).all()
    assert largest[run.t < settled][-1] > 0.1
    loaded, law = ARM.with_payload(2.0), run.controller
    nominal, first = law.start(), law.true_parameters(gc.Plant(ARM.with_payload(1.0)))
    left = np.linalg.norm(run.z[-1] - law.true_parameters(gc.Plant(loaded))) / np.linalg.norm(nominal - first)
    assert measures.ParameterError()(run) == pytest.approx(left, rel=1e-14)
    assert left > 1.0  # the load that the law was learning has changed


def test_a_setpoint_is_enough_for_a_tracking_error():
    class Held:
        q_d = np.array([0.1, 0.2])

        def start(self):
            return None

        def __call__(self, t, q, v, z):
            return gc.Command(ARM.gravity_force(q) - 50.0 * (q - self.q_d) - 10.0 * v)

    settle = measures.SettlingTime(0.3)
    run = gc.simulate(ARM, Held(), [0.1, 0.7], [0.0, 0.0], 0.5, 1e-3, monitors=[Along(settle, 0)])
    assert settle(run) == settle.value() > 0.0
    assert measures.TrackingRMS()(run) == pytest.approx(np.sqrt(((run.q - Held.q_d) ** 2).sum(axis=1).mean()))
    del Held.q_d
    with pytest.raises(ArgumentError, match=r"tracking_rms: expected a controller with a reference or a q_d, got <"):
        measures.TrackingRMS()(run)
    with pytest.raises(ArgumentError, match="parameter_error: expected a controller with true_parameters"):
        measures.ParameterError()(run)


def test_wrong_settings_are_refused():
    with pytest.raises(ArgumentError, match="tolerance: expected a positive error, got -1"):
        measures.SettlingTime(-1)
    with pytest.raises(ArgumentError, match="after: expected seconds >= 0, got nan"):
        measures.TrackingRMS(np.nan)
    with pytest.raises(
        ArgumentError,
        match=r"monitor: expected one of skew, energy, lyapunov, holding, .*, or a Monitor, got 'en",
    ):
        measures.WorstMonitor("enrgy")
    with pytest.raises(
        ArgumentError,
        match=r"monitor: expected one of skew, energy, lyapunov, holding, .*, or a Monitor, got 3",
    ):
        measures.WorstMonitor(3)


def test_in_compiled_code_they_are_what_they_are_of_the_run_in_python(monkeypatch):
    """Accumulated in lanes without stored samples, compared with the formulas on every sample of runs in Python."""
    widths, run = [], Machine.run
    monkeypatch.setattr(Machine, "run", lambda self, *args: widths.append(self.width) or run(self, *args))
    rng, cases = np.random.default_rng(0), []
    for _ in range(3):
        motion = Sinusoids(ARM, np.zeros(2), rng.uniform(0.2, 0.5), 0.7)
        law = controllers.SlotineLi(ARM, motion, 3.0, 10.0, rate=0.1)
        cases.append(Case(ARM.with_payload(rng.uniform(0.5, 2.0)), law, 0.3 * rng.normal(size=2), np.zeros(2)))
    result = outcomes(cases, {str(k): measure for k, measure in enumerate(ALL)}, 0.4, 1e-3)
    assert widths == [host.lanes()]
    for case, outcome in zip(cases, result):
        python = gc.simulate(case.plant, case.controller, case.q0, case.v0, 0.4, 1e-3, options=IN_PYTHON)
        assert (outcome.success, outcome.t, outcome.steps) == (True, 0.4, 400)
        for k, measure in enumerate(ALL):
            np.testing.assert_allclose(outcome.values[str(k)], measure(python), rtol=1e-6, atol=1e-12)
