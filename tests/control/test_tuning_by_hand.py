"""Tuning by hand, without a browser: controls and ranges, history, pins, late results, edges, maps, saved files."""

import dataclasses
import functools
import sys
import threading
import time

import numpy as np
import pytest
from mechanism.parts import Z, body
from simulation_options import IN_PYTHON

import geomctrl as gc
from geomctrl import actuators, controllers, models, references, sensors
from geomctrl.control.compiled import choice
from geomctrl.control.hand_tuning import outcomes, saving
from geomctrl.control.hand_tuning.controls import Control, Controls, guessed_range
from geomctrl.control.hand_tuning.edges import Edge, find_edge, map_region
from geomctrl.control.hand_tuning.outcomes import V_RATE, Outcome, lyapunov_rates, outcome_of
from geomctrl.control.hand_tuning.session import MAX_PINS, Session

ROBOT = models.two_link()
MOTION = references.Sinusoids(ROBOT, [0.3, 0.5], amplitude=0.4, frequency=0.5)
LAW = controllers.Passivity(ROBOT, MOTION, Lambda=5.0, K=[20.0, 10.0])
PLANT = gc.Plant(ROBOT, gc.Friction(0.0, 0.0))


def controls_of(plant=PLANT, law=LAW, **options):
    return Controls(plant, law, 0.3, 1e-3, **options)


@pytest.fixture
def session():
    session = Session(controls_of())
    yield session
    session.close()


def test_numbers_of_law_reference_plant_and_load_are_controls():
    plant = gc.Plant(
        ROBOT,
        gc.Friction([0.1, 0.2], 0.0, 0.05),
        actuators=[actuators.TransportDelay(0.002), actuators.Saturation(50.0)],
        sensors=[sensors.Encoder(noise=1e-4)],
    )
    controls = controls_of(plant, control_dt=1e-3)
    expected = {
        "law.Lambda", "law.K", "law.K[1]", "law.reference.amplitude", "law.reference.frequency",
        "plant.friction.viscous", "plant.friction.viscous[0]", "plant.friction.coulomb", "plant.friction.smoothing",
        "plant.actuators[0].delay", "plant.actuators[1].upper", "plant.sensors[0].noise", "load.mass",
        "load.centre[2]", "dt",
    }  # fmt: skip
    assert expected <= controls.by_key.keys()
    assert not controls.notes
    assert controls["law.Lambda"].unit == "1/s"
    assert controls["plant.sensors[0].noise"].logarithmic
    assert not controls["plant.friction.coulomb"].logarithmic


def test_ranges_are_guessed_from_values_and_can_be_set():
    assert guessed_range(5.0) == (0.5, 50.0)
    assert guessed_range(0.0) == (0.0, 1.0)
    assert guessed_range(-2.0) == (-6.0, 6.0)
    assert (controls_of(ranges={"law.Lambda": (1.0, 100.0)})["law.Lambda"].high) == 100.0
    control = controls_of()["law.Lambda"]
    assert [control.at(p) for p in (0.0, 0.5, 1.0)] == [0.5, 5.0, 50.0]
    assert [control.at(p) for p in (-5.0, -1e308, 5.0, 1e308, np.inf)] == [0.5, 0.5, 50.0, 50.0, 50.0]
    assert control.position(control.at(0.25)) == pytest.approx(0.25, abs=1e-5)
    beyond = controls_of(ranges={"law.Lambda": (10.0, 50.0)})["law.Lambda"]
    assert [beyond.at(p) for p in (0.0, 1.0)] == [10.0, 50.0]  # although the value is 5
    with pytest.raises(gc.NameNotFoundError, match=r"ranges: .*law\.k"):
        controls_of(ranges={"law.k": (1.0, 2.0)})
    with pytest.raises(gc.ArgumentError, match="low < high"):
        controls_of(ranges={"law.Lambda": (2.0, 1.0)})


@pytest.mark.parametrize("value", [1e308, -1e308, 5e-324, -5e-324, sys.float_info.max])
def test_ranges_of_extreme_values_are_finite(value):
    low, high = guessed_range(value)
    control = Control("k", value, low, high)
    ends = [control.at(p) for p in (0.0, 0.5, 1.0)]
    assert np.isfinite(ends).all()
    assert low < high
    assert ends == sorted(ends)
    assert 0.0 <= control.position(value) <= 1.0


@pytest.mark.parametrize("limits", [3.0, (1.0,), (1.0, np.inf), (-1e308, 1e308), ("a", 2.0), None])
def test_a_range_that_is_none_is_refused(limits):
    with pytest.raises(gc.GeomctrlError, match=r"ranges: law\.Lambda"):
        controls_of(ranges={"law.Lambda": limits})


class Gains:
    """A user's law with numbers that can not be tuned, and one that can."""

    def __init__(self, count=3, table=None, **others):
        self.count, self.table, self.λ = count, table, 2.0
        self.tensor = np.zeros((2, 2, 2))
        self.__dict__.update(others)

    def __call__(self, t, q, v, z):
        return gc.Command(-self.λ * v)


def test_numbers_without_a_control_are_named_with_the_remedy():
    law = Gains(table={"kp": 3.0}, **{"<b>": 1.0, "a.b": 2.0})
    controls = controls_of(law=law)
    keys = {key for key in controls.by_key if key.startswith("law")}
    assert keys == {"law.λ"}
    notes = "\n".join(controls.notes)
    for text in (
        "law.count: an int is taken as a count; write 3.0",
        "law.table: a dict",
        "law.tensor",
        "'<b>'",
        "'a.b'",
    ):
        assert text in notes
    changed = controls.loop(controls.settings | {"law.λ": 7.0}).controller
    assert changed.λ == 7.0


def test_keywords_of_a_partial_function_are_controls():
    def law(t, q, v, z, kp=1.0, kd=1.0):
        return gc.Command(-kp * q - kd * v)

    controls = controls_of(law=functools.partial(law, kp=30.0, kd=4.0))
    changed = controls.loop(controls.settings | {"law.kp": 60.0}).controller
    assert changed.keywords == {"kp": 60.0, "kd": 4.0}


def test_metadata_of_a_dataclass_field_sets_unit_and_range():
    @dataclasses.dataclass
    class Gains:
        kp: float = dataclasses.field(default=30.0, metadata={"unit": "N m/rad", "range": (1.0, 90.0)})

    class Law:
        def __init__(self, gains):
            self.gains, self.kd = gains, 4.0

        def __call__(self, t, q, v, z):
            return gc.Command(-self.gains.kp * q - self.kd * v)

    control = controls_of(law=Law(Gains()))["law.gains.kp"]
    assert (control.unit, control.low, control.high) == ("N m/rad", 1.0, 90.0)


def test_a_setting_is_the_loop_that_one_would_write_by_hand():
    controls = controls_of()
    settings = controls.settings | {
        "law.K": 2.0, "law.K[1]": 7.0, "law.reference.amplitude": 0.2, "load.mass": 0.5, "load.centre[0]": 0.1,
        "plant.friction.viscous": 0.3, "dt": 5e-4,
    }  # fmt: skip
    loop = controls.loop(settings)
    motion = references.Sinusoids(ROBOT, [0.3, 0.5], amplitude=0.2, frequency=0.5)
    law = controllers.Passivity(ROBOT, motion, Lambda=5.0, K=[40.0, 14.0])
    plant = gc.Plant(ROBOT.with_payload(0.5, (0.1, 0.0, 0.0)), gc.Friction(0.3, 0.0))
    begin = motion(0.0)
    options = IN_PYTHON
    runs = [
        gc.simulate(loop.plant, loop.controller, loop.q0, loop.v0, 0.05, loop.dt, options=options),
        gc.simulate(plant, law, begin.q, begin.v, 0.05, 5e-4, options=options),
    ]
    assert runs[0].q.tobytes() == runs[1].q.tobytes()
    assert runs[0].tau.tobytes() == runs[1].tau.tobytes()


def test_history_joins_a_drag_and_undo_returns(session, monkeypatch):
    start, now = session.settings, [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    for value in (6.0, 7.0, 8.0):
        now[0] += 0.1
        session.change("law.Lambda", value)
    now[0] += 0.1
    session.change("load.mass", 0.4)
    now[0] += 5.0
    session.change("load.mass", 0.5)
    assert session.undo()
    assert session.settings["load.mass"] == 0.4
    assert session.undo()
    assert (session.settings["law.Lambda"], session.settings["load.mass"]) == (8.0, 0.0)
    assert session.undo()
    assert session.settings == start
    assert not session.undo()
    with pytest.raises(gc.NameNotFoundError, match="known"):
        session.change("law.nothing", 1.0)


def test_two_controls_that_are_dragged_at_once_are_two_steps_of_the_history(session):
    start = session.settings
    for k in range(5):
        session.change("law.Lambda", 6.0 + k)
        session.change("load.mass", 0.1 + k)
    assert session.undo()
    assert session.undo()
    assert session.settings == start
    session.change("law.Lambda", 6.0)
    assert session.undo()  # a change after undo is a new step
    assert session.settings == start


def test_a_new_range_forgets_the_edge(session):
    session.edges["law.Lambda"] = session.edges["law.K"] = Edge("law.Lambda", 7.0, 8.0, 3)
    with pytest.raises(gc.ArgumentError, match=r"range: law\.Lambda"):
        session.set_range("law.Lambda", (3.0, 1.0))
    assert session.edges.keys() == {"law.Lambda", "law.K"}
    session.set_range("law.Lambda", (-3.0, 9.0))
    assert session.edges.keys() == {"law.K"}
    assert session.controls["law.Lambda"].at(0.5) == 3.0
    assert session.settings["law.Lambda"] == 5.0


def test_the_last_setting_is_computed_and_a_refused_one_is_reported(session):
    results = []
    session.show = results.append
    session.start()
    assert session.wait()
    assert session.outcome.ok
    session.change("load.mass", 1.0)
    assert session.wait()
    assert session.outcome.run.monitors["lyapunov"].verdict == "VIOLATED"
    verdict = next(v for v in session.outcome.verdicts if v.name == "lyapunov")
    assert session.outcome.run.monitors["lyapunov"].explanation in verdict.text
    session.apply({"load.mass": 0.0, "plant.friction.coulomb": -1.0})
    assert session.wait()
    assert "coulomb" in str(results[-1])
    session.undo()
    assert session.wait()
    assert isinstance(results[-1], Outcome)


def test_late_results_are_dropped_and_the_last_is_shown(session, monkeypatch):
    import geomctrl.control.hand_tuning.session as module

    started, release, results = threading.Event(), threading.Event(), []
    session.start()
    assert session.wait()
    session.show = results.append

    def slow(loop, **options):
        started.set()
        assert release.wait(30)
        session._shown_at = time.perf_counter()  # as if an outcome had just been shown
        return outcome_of(loop, **options)

    monkeypatch.setattr(module, "outcome_of", slow)
    monkeypatch.setattr(module, "MIN_INTERVAL", 30.0)
    session.change("law.Lambda", 6.0)
    assert started.wait(30)
    session.change("law.Lambda", 7.0)
    release.set()
    assert session.wait()
    assert session.dropped == 1
    assert [outcome.loop.controller.Lambda[0, 0] for outcome in results] == [7.0]


def test_a_verdict_is_checked_while_a_slider_is_dragged_and_confirmed_when_it_rests(session, tmp_path, monkeypatch):
    import geomctrl.control.hand_tuning.session as module

    session.start()
    assert session.wait()
    results = []
    session.show = results.append
    monkeypatch.setattr(module, "AT_REST", 3600.0)
    session.change("load.mass", 1.0)
    deadline = time.perf_counter() + 60.0
    while not results and time.perf_counter() < deadline:
        time.sleep(0.01)
    verdict = next(v for v in results[0].verdicts if v.name == "lyapunov")
    assert results[0].checking
    assert verdict.verdict == "checking"
    assert not session.wait(0.0)
    saved = gc.Run.load(session.save("run.npz", tmp_path))
    assert saved.monitors["lyapunov"].verdict == "VIOLATED"
    latencies = len(session.latencies)
    monkeypatch.setattr(module, "AT_REST", 0.0)
    session.change("load.mass", 0.9)
    assert session.wait()
    assert not results[-1].checking
    assert next(v for v in results[-1].verdicts if v.name == "lyapunov").verdict == "VIOLATED"
    assert len(session.latencies) == latencies + 1
    first = results[0].run
    loop = session.controls.loop(session.settings | {"load.mass": 1.0})
    assert outcome_of(loop).run.q.tobytes() == first.q.tobytes()


def test_four_pins_are_kept(session):
    session.start()
    assert session.wait()
    for k in range(MAX_PINS + 1):
        session.apply({"law.Lambda": 5.0 + k})
        assert session.wait()
        session.pin()
    assert [pin.settings["law.Lambda"] for pin in session.pins] == [6.0, 7.0, 8.0, 9.0]
    assert session.pins[0].outcome.loop.controller.Lambda[0, 0] == 6.0


def test_measures_agree_with_the_stored_run():
    outcome = outcome_of(controls_of().loop(controls_of().settings | {"load.mass": 0.5}))
    run = outcome.run
    error = run.q - run.desired.q
    assert outcome.measures["RMS of the tracking error"][0] == pytest.approx(np.sqrt((error**2).sum(axis=1).mean()))
    assert outcome.measures["largest torque"][0] == np.abs(run.applied).max()
    V = run.signals["lyapunov"]
    growth = max(V[j] - V[i] for i in range(len(V)) for j in range(i, len(V)))
    assert outcome.measures["largest growth of V"][0] == pytest.approx(growth)


def test_a_law_that_can_not_be_compiled_runs_in_python_and_says_so():
    class Law:
        def __call__(self, t, q, v, z):
            return gc.Command(np.array([float(str(-x)) for x in q]))

    controls = Controls(ROBOT, Law(), 3.0, 1e-3)
    outcome = outcome_of(controls.loop(controls.settings))
    assert "runs in Python, the first 1 s only" in outcome.notes[0]
    assert outcome.run.t[-1] == pytest.approx(1.0)


class Slow:
    """A law that can not be compiled, and takes its time."""

    def __init__(self, gain, pause=2e-3):
        self.gain, self.pause = gain, pause

    def __call__(self, t, q, v, z):
        time.sleep(self.pause)
        return gc.Command(np.array([-self.gain * float(str(x)) for x in q]))


def test_a_slow_law_is_shortened_to_seconds(monkeypatch):
    monkeypatch.setattr(outcomes, "SECONDS_IN_PYTHON", 0.4)
    controls = Controls(ROBOT, Slow(1.0), 3.0, 1e-3)
    begin = time.perf_counter()
    outcome = outcome_of(controls.loop(controls.settings))
    assert time.perf_counter() - begin < 30.0  # 3000 steps would sleep for 24 s at least
    assert outcome.run.success
    assert 0.02 <= outcome.run.t[-1] <= 0.06  # 8 ms of sleep a step
    assert f"the first {outcome.run.t[-1]:g} s only" in outcome.notes[0]


def test_a_run_in_python_is_given_up_for_a_newer_setting():
    session, results = Session(Controls(ROBOT, Slow(1.0, 1e-4), 1.0, 1e-3)), []
    session.start()
    assert session.wait()
    try:
        session.show = results.append
        session._shown_at = time.perf_counter() + 60.0  # as if an outcome had just been shown
        for gain in (2.0, 3.0, 4.0):
            session.change("law.gain", gain)
            time.sleep(0.2)
        assert session.wait()
        assert session.dropped >= 1
        assert results[-1].loop.controller.gain == 4.0
    finally:
        session.close()


def test_the_structures_beside_zero_are_compiled_in_the_background():
    """Afterwards no movement from zero friction or load, or back to it, compiles anything."""
    session = Session(
        controls_of(gc.Plant(ROBOT, gc.Friction(0.0, 0.3)), ranges={"plant.friction.coulomb": (0.0, 1.0)})
    )
    session.start()
    session.compile_other_structures()
    try:
        assert session.wait(120)
        traces = {*choice._traces}
        settings = session.settings
        for key in ("load.mass", "plant.friction.viscous", "plant.friction.coulomb"):
            control = session.controls[key]
            other = 0.0 if control.value else 0.7 * control.high
            outcome_of(session.controls.loop({**settings, key: other}))
        assert {*choice._traces} == traces
    finally:
        session.close()


class Damped:
    """A law whose monitor holds up to a gain that is known."""

    def __init__(self, gain):
        self.gain = gain

    def __call__(self, t, q, v, z):
        return gc.Command((self.gain - 2.0) * v)

    def lyapunov(self, t, q, v, z, plant):
        return gc.Lyapunov(plant.robot.energy(q, v), (self.gain - 2.0) * v.dot(v))  # decreases for gains below 2


def test_the_edge_is_where_the_promise_becomes_false():
    controls = Controls(ROBOT, Damped(1.0), 0.3, 1e-3, start=(np.array([0.3, 0.5]), np.array([1.0, -2.0])))
    edge = find_edge(controls, controls.settings, "law.gain")
    assert edge.held <= 2.0 + 1e-3
    assert edge.failed >= 2.0 - 1e-3
    assert edge.failed / edge.held < 1.01
    from_above = find_edge(controls, controls.settings | {"law.gain": 5.0}, "law.gain")
    assert from_above.held == pytest.approx(edge.held, rel=0.01)
    assert find_edge(controls, controls.settings, "law.gain", stopped=lambda: True) is None
    harmless = find_edge(controls, controls.settings, "dt")
    assert harmless.failed is None or harmless.held < harmless.failed
    region = map_region(controls, controls.settings, "law.gain", "dt")
    expected = np.where(region.x_values <= 2.0, 1.0, -1.0)
    assert (region.verdicts[:3] == expected).all()


class Claiming(Damped):
    """The same law with a proof that claims more, and allows some growth."""

    def __init__(self, gain, excess, allowed):
        super().__init__(gain)
        self.excess, self.allowed = excess, allowed

    def lyapunov(self, t, q, v, z, plant):
        value, rate = super().lyapunov(t, q, v, z, plant)
        return gc.Lyapunov(value, rate - self.excess * v.dot(v))

    def allowance(self, plant):
        return self.allowed * plant.robot.parameters[0, 0]


def test_the_rate_of_v_is_drawn_with_its_promised_bound():
    heavy = ROBOT.with_parameters(2.0 * ROBOT.parameters)
    plant = gc.Plant(ROBOT, changes=[(0.1505, heavy)])
    mass, start = ROBOT.parameters[0, 0], (np.array([0.3, 0.5]), np.array([1.0, -2.0]))
    controls = Controls(plant, Claiming(0.5, 2.0, 0.3), 0.3, 1e-3, start=start)
    outcome = outcome_of(controls.loop(controls.settings))
    run = outcome.run
    t, rate, bound = lyapunov_rates(run, outcome.loop.controller)
    dissipated = np.interp(t, run.t, (run.v**2).sum(axis=1))  # V' of a gain of 1 N m s/rad
    allowed = np.where(t < 0.1505, 0.3 * mass, 0.6 * mass)
    jump = np.isnan(rate)
    assert jump.sum() == 1
    assert abs(t[jump][0] - 0.1505) < 1e-3
    np.testing.assert_allclose(rate[~jump], -1.5 * dissipated[~jump], rtol=0.01, atol=0.01)
    np.testing.assert_allclose(bound[~jump], (allowed - 3.5 * dissipated)[~jump], rtol=0.05, atol=0.05)
    assert (rate > bound)[~jump].any()
    drawn = np.isfinite(outcome.curves[V_RATE])
    assert drawn.sum() > 490
    worst = max(abs(outcome.promised[V_RATE][drawn] - np.interp(outcome.t[drawn], t[~jump], bound[~jump])))
    assert worst < 0.02 * np.ptp(bound[~jump])


def test_a_pose_of_a_configuration_has_no_controls():
    """Its twelve numbers hold a rotation, and any other value of one would be refused."""
    robot = gc.Robot.build([body("puck", None, gc.Joint.planar(Z)), body("arm", "puck")], name="mixed")
    motion = references.Sinusoids(robot, robot.neutral(), 0.2, 0.5)
    law = controllers.Passivity(robot, motion, Lambda=5.0, K=20.0)
    controls = Controls(robot, law, 0.05, 1e-3)
    assert [key for key in controls.by_key if "q0" in key] == [f"law.reference.q0[{robot.nq - 1}]"]
    for key, control in controls.by_key.items():
        controls.loop(controls.settings | {key: control.at(0.6)})  # no value is refused


def test_saved_settings_and_code_repeat_the_run(session, tmp_path):
    session.start()
    session.apply({"law.K": 1.7, "load.mass": 0.3, "plant.friction.viscous": 0.1})
    assert session.wait()
    first = session.outcome.run
    names = {}
    exec(session.code(), names)
    assert names["run"].q.tobytes() == first.q.tobytes()
    path = session.save("settings.toml", tmp_path)
    assert saving.read_settings(session.controls, path) == session.controls.moved(session.settings)
    assert gc.Run.load(session.save("run.npz", tmp_path)).q.tobytes() == first.q.tobytes()
    assert "law_step(double t" in session.save("law.c", tmp_path).read_text()
    with pytest.raises(gc.ArgumentError, match="kind"):
        session.save("other", tmp_path)
    (tmp_path / "bad.toml").write_text('[settings]\n"law.x" = 1.0\n')
    with pytest.raises(gc.NameNotFoundError, match=r"law\.x"):
        saving.read_settings(session.controls, tmp_path / "bad.toml")


def test_code_of_a_loop_that_fails_repeats_the_run_up_to_there(session, tmp_path):
    session.start()
    session.apply({"law.K": 1e4, "dt": 4e-3})
    assert session.wait()
    first = session.outcome.run
    assert not first.success
    assert first.t[-1] < 0.3
    names = {}
    exec(session.save("loop.py", tmp_path).read_text(), names)
    assert names["run"].reason == first.reason
    assert names["run"].q.tobytes() == first.q.tobytes()


def test_code_of_an_elastic_loop_that_fails_is_compiled_like_the_run():
    """An unstable loop amplifies rounding, so that Python and compiled code differ."""
    plant = gc.Plant(ROBOT, actuators=[actuators.SeriesElasticity(2000.0, 0.1, damping=1.0)])
    session = Session(controls_of(plant))
    session.start()
    try:
        session.apply({"law.K": 10.0})
        assert session.wait()
        first, names = session.outcome.run, {}
        exec(session.code(), names)
        assert not first.success
        assert names["run"].q.tobytes() == first.q.tobytes()
    finally:
        session.close()


@pytest.mark.parametrize("key", ["law.K", "law.K[0]", "plant.friction.viscous", "load.mass", "load.centre[1]"])
def test_a_saved_sweep_varies_one_control_around_the_setting(session, tmp_path, key):
    session.start()
    session.apply({"law.K": 1.7, "load.mass": 0.3, "law.Lambda": 4.0})
    assert session.wait()
    names = {}
    exec(session.save("sweep.py", tmp_path, key).read_text(), names)
    ((name, values),) = names["space"].items()
    plant, law, q0, v0 = names["make"]({name: values[3]})
    control = session.controls[key]
    loop = session.controls.loop(session.settings | {key: control.at(3 / 8)})
    state = 0.1, np.array([0.2, 0.4]), np.array([1.0, -1.0]), None
    assert np.allclose(law(*state).tau, loop.controller(*state).tau, rtol=1e-12)
    assert np.allclose(plant.robot.parameters, loop.plant.robot.parameters, rtol=1e-12)
    assert np.allclose(plant.friction.viscous, loop.plant.friction.viscous)
    assert (q0 == loop.q0).all()
    assert (v0 == loop.v0).all()
