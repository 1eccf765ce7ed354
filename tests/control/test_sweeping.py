"""Sweeps: spaces, results, random numbers, replay and refused arguments."""

from concurrent.futures import Future, ThreadPoolExecutor

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray
from scipy.stats import qmc
from simulation_options import grouped_sweep
from sweep_studies import ARM, GOAL, SPACE, WANTED, make, swept

import geomctrl as gc
from geomctrl import controllers, measures
from geomctrl.control.sweeping.space import checked_space, points
from geomctrl.control.sweeping.sweep import _block_size
from geomctrl.errors import ArgumentError, GeomctrlError, SweepError

ONE = {"t_end": 0.004, "dt": 1e-3}


def peak(run):
    return np.abs(run.tau).max()


# --- spaces ------------------------------------------------------------------------------------------------------


def test_a_dict_of_lists_is_a_full_factorial_with_the_last_dimension_fastest():
    space = checked_space({"a": [1, 2], "b": ["x", "y", "z"], "c": 0.5})
    assert (len(space), space.sizes) == (6, {"a": 2, "b": 3})
    result = [dict(p) for p in points(0, space.rows(0, 6), 0)]
    assert result == [{"a": a, "b": b, "c": 0.5} for a in (1, 2) for b in "xyz"]
    assert [type(x) for x in result[0].values()] == [int, str, float]
    assert [dict(p) for p in points(4, space.rows(4, 6), 0)] == result[4:]


def test_listed_samples_share_a_dimension_and_cross_with_others():
    space = checked_space({"a": ("sample", [1.0, 2.0]), "b": ("sample", [3.0, 4.0]), "c": [True, False]})
    result = [tuple(p.values()) for p in points(0, space.rows(0, 4), 0)]
    assert result == [(1.0, 3.0, True), (1.0, 3.0, False), (2.0, 4.0, True), (2.0, 4.0, False)]


def test_a_dataset_says_the_same_as_a_dict():
    dataset = xarray.Dataset({"a": ("sample", [1.0, 2.0], {"units": "kg"})}, {"c": [5, 6, 7], "d": 1.5})
    space = checked_space(dataset)
    assert space.sizes == dict(dataset.sizes)
    assert space.parameters["a"].attrs == {"units": "kg"}
    assert [p["c"] for p in points(0, space.rows(0, 6), 0)] == [5, 6, 7, 5, 6, 7]


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"a": [1.0, np.nan]}, r"'a': expected finite numbers, got nan at index \[1\]"),
        ({"a": ("s", [np.inf, 1.0])}, r"'a': expected finite numbers, got inf"),
        ({"a": [[1.0], [2.0, 3.0]]}, "'a': expected values of one length"),
        ({"a": ("s", [1, 2]), "b": ("s", [1, 2, 3])}, "'b': expected 2 values along 's', as others have, got 3"),
        ({"a": [[1.0, 2.0]]}, r"'a': expected values along \('a',\), got an array of shape \(1, 2\)"),
        ({"a": []}, "'a': expected at least one value"),
        ({"a": [1, "x"]}, "'a': expected values of one kind"),
        ({"a": [None, 1]}, "'a': expected numbers, strings or booleans"),
        ({"a": ("s", [1, 2], {}, 3)}, r"'a': expected \(dimensions, values\)"),
        ({1: [1, 2]}, "expected names that are text, without '/', got 1"),
        ({"a": ("b", [1, 2]), "b": ("s", [1, 2])}, r"'b' is both a dimension and a parameter along \('s',\)"),
        ({"settling": [1, 2]}, "'settling' occurs twice: in the space and in the results"),
        ({"reason": [1, 2]}, "'reason' occurs twice"),
        ({"a": ("run", [1, 2])}, "'run' occurs twice"),
        ({}, "expected at least one parameter"),
        ([1, 2], r"space: expected a dict or an xarray.Dataset, got \[1, 2\]"),
    ],
)
def test_spaces_that_are_none_are_refused(space, message):
    with pytest.raises(ArgumentError, match=message) as e:
        gc.sweep(make, space, WANTED, **grouped_sweep(**ONE))
    assert str(e.value).startswith("space: ")


def test_random_numbers_depend_on_seed_and_number_alone():
    def drawn(first, seed):
        return [p.rng.random() for p in points(first, {"a": np.zeros(4)}, seed)]

    assert drawn(0, 7)[2:] == drawn(2, 7)[:2]
    assert len({*drawn(0, 7), *drawn(0, 8), *drawn(4, 7)}) == 12
    key = np.random.Philox(key=np.array([7, 3], np.uint64))
    assert drawn(3, 7)[0] == np.random.Generator(key).random()


# --- what comes back ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table():
    return swept(executor=ThreadPoolExecutor(2))


def test_the_answer_is_a_dataset_with_units_that_simulate_would_give(table):
    assert dict(table.sizes) == {"payload": 3, "kp": 16, "joint": 2}
    assert table.payload.attrs == {"units": "kg"}
    assert (table.settling.attrs["units"], table.peak.attrs["units"]) == ("s", "N m")
    np.testing.assert_array_equal(table.run.values.ravel(), np.arange(48))
    assert table.success.all()
    assert set(table.reason.values.ravel()) == {"reached t = 0.02 s"}
    rng = np.random.Generator(np.random.Philox(key=np.array([0, 37], np.uint64)))
    q0 = GOAL + 0.1 * rng.standard_normal(2)
    law = controllers.PDGravity(ARM, GOAL, kp=SPACE["kp"][5], kd=5.0)
    run = gc.simulate(ARM.with_payload(2.0), law, q0, np.zeros(2), 0.02, 1e-3)
    result = table.sel(payload=2.0).isel(kp=5)
    assert int(result.run) == 37
    np.testing.assert_array_equal(result.peak, np.abs(run.tau).max(axis=0))
    assert float(result.settling) == WANTED["settling"](run)


def test_the_answer_does_not_depend_on_blocks_and_executors(table):
    inline = swept(block=48)
    xarray.testing.assert_equal(inline, table)
    xarray.testing.assert_equal(swept(block=17, executor=ThreadPoolExecutor(1)), table)
    assert not swept(block=48, seed=1).equals(table)


def test_a_replayed_run_is_the_one_that_was_measured(table):
    at = table.peak.max("joint").argmax(...)
    for index in (at, int(table.run.isel(at))):
        run = gc.replay(table, index, make)
        np.testing.assert_array_equal(WANTED["peak"](run), table.peak.isel(at))
        assert len(run.t) == 21
    for index, told in [(48, "index: expected a run's number, from 0 to 47, got 48"), ({"kp": 1}, "positions along")]:
        with pytest.raises(ArgumentError, match=told):
            gc.replay(table, index, make)
    with pytest.raises(
        ArgumentError, match=r"make: expected the sweep's: make differs; make: test_a_.*<lambda> is nothing there"
    ):
        gc.replay(table, 0, lambda point: make(point))
    with pytest.raises(ArgumentError, match="store: expected a sweep's store or its Dataset"):
        gc.replay(xarray.Dataset(), 0, make)


def test_monitors_and_options_of_simulate_are_the_sweeps_own(table):
    class Count(gc.monitors.Monitor):
        name = "count"

        def measure(self, sample):
            return sample.t

    worst = measures.WorstMonitor(Count())
    result = gc.sweep(
        make,
        {"payload": 1.0, "kp": 50.0},
        [worst],
        0.02,
        1e-3,
        monitors=[Count()],
        options=gc.SimulationOptions(method="MK2", every=20),
    )
    assert float(result.worst_count) == 0.02
    run = gc.replay(result, 0, make, monitors=[Count()])
    assert len(run.t) == 2
    assert run.monitors["count"].worst == 0.02
    with pytest.raises(ArgumentError, match="monitors: "):
        gc.replay(result, 0, make, monitors=[gc.monitors.Skew()])


def test_runs_that_fail_are_marked_and_the_rest_goes_on():
    def some(point):
        if point["kind"] == "make":
            raise KeyError("no such gain")
        if point["kind"] == "shape":
            return ARM, law, [0.0], [0.0, 0.0]
        if point["kind"] == "three":
            return ARM, law, [0.0, 0.0]
        return ARM, (unstable if point["kind"] == "unstable" else law), [0.0, 0.0], [0.0, 0.0]

    def unstable(t, q, v, z):
        return gc.Command(np.full(2, np.nan if t > 0.0024 else 0.0))

    def picky(run):
        if run.controller is law:
            return 1 // 0
        return 2.0

    law = controllers.PDGravity(ARM, GOAL)
    kinds = ["make", "good", "shape", "three", "unstable"]
    result = gc.sweep(some, {"kind": kinds}, {"peak": peak, "picky": picky}, **grouped_sweep(**ONE))
    assert result.success.values.tolist() == [False] * 5
    reasons = result.reason.values
    assert reasons[0] == "make: KeyError: 'no such gain'"
    assert reasons[1] == "reached t = 0.004 s; measure 'picky': ZeroDivisionError: integer division or modulo by zero"
    assert "q0" in reasons[2]
    assert reasons[3] == "make: ArgumentError: expected (plant, controller, q0, v0), got a tuple of 3"
    assert reasons[4].startswith("stopped at t = 0.002 s: ")
    assert "controller: expected tau, an array of 2 finite numbers, at t = 0.002 s, got array([nan" in reasons[4]
    np.testing.assert_array_equal(result.t_reached, [np.nan, 0.004, np.nan, np.nan, 0.002])
    np.testing.assert_array_equal(np.isnan(result.peak), [True, False, True, True, False])
    np.testing.assert_array_equal(result.picky, [np.nan, np.nan, np.nan, np.nan, 2.0])


def test_a_warning_says_that_make_fails_at_every_point():
    def law_alone(point):
        return controllers.PDGravity(ARM, GOAL, kp=point["kp"])

    with pytest.warns(UserWarning, match=r"^sweep: no point has a run; at the first, make: ArgumentError: expected \("):
        result = gc.sweep(law_alone, {"kp": [10.0, 20.0]}, {"peak": peak}, **grouped_sweep(**ONE))
    assert np.isnan(result.peak).all()


# --- executors ---------------------------------------------------------------------------------------------------


class Counting:
    """An executor that checks that no more than `most` tasks wait; `faults` are raised in turn."""

    def __init__(self, faults=()):
        self.pool, self.now, self.most, self.faults = ThreadPoolExecutor(1), 0, 0, list(faults)

    def submit(self, function, *arguments):
        self.now += 1
        self.most = max(self.most, self.now)
        future = (
            self.pool.submit(self.fail, self.faults.pop(0)) if self.faults else self.pool.submit(function, *arguments)
        )
        future.add_done_callback(self.less)
        return future

    def less(self, future):
        self.now -= 1

    @staticmethod
    def fail(error):
        raise error

    _max_workers = 1


def test_a_bounded_number_of_blocks_is_under_way(table):
    executor = Counting()
    xarray.testing.assert_equal(swept(block=2, executor=executor), table)
    assert executor.most <= 3  # two tasks, and one that is about to be removed


def test_a_block_that_raises_is_tried_again_once(table):
    xarray.testing.assert_equal(swept(executor=Counting([OSError("lost")])), table)
    with pytest.raises(SweepError, match="the block from run 0 on failed 2 times: OSError: other"):
        swept(executor=Counting([OSError("lost"), OSError("other"), OSError("lost")]), block=48)


def test_an_executor_that_is_shut_down_is_told():
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(SweepError, match=r"executor: its workers have stopped .*after shutdown"):
        swept(executor=executor)


def test_axes_of_measures_do_not_clash_with_the_space():
    space = {"joint": ("sample", [1.0, 2.0]), "kp": 50.0, "payload": 0.0}
    result = gc.sweep(make, space, WANTED, **grouped_sweep(**ONE))
    assert result.peak.dims == ("sample", "peak_0")


def test_samples_of_scipys_quasi_monte_carlo():
    """The example of the docstring."""
    listed = qmc.scale(qmc.Sobol(2, seed=0).random(4), [0.0, 10.0], [2.0, 1000.0])
    space = {"payload": ("sample", listed[:, 0], {"units": "kg"}), "kp": ("sample", listed[:, 1])}
    result = gc.sweep(make, space, [measures.PeakTorque()], **grouped_sweep(**ONE))
    assert (result.peak_torque.dims, result.payload.dims, result.payload.attrs) == (
        ("sample",),
        ("sample",),
        {"units": "kg"},
    )
    assert len(np.unique(result.peak_torque)) == 4
    plt.switch_backend("Agg")
    result.plot.scatter(x="payload", y="peak_torque")  # unchanged
    swept(block=48).settling.plot()
    plt.close("all")


def test_workers_with_other_versions_are_refused(monkeypatch):
    monkeypatch.setattr("geomctrl.control.sweeping.sweep.versions", lambda: {"numpy": "0.1"})
    with pytest.raises(GeomctrlError, match=r"executor: its workers have geomctrl .*; this process has numpy 0.1"):
        swept(executor=ThreadPoolExecutor(1))


def test_blocks_are_multiples_of_eight_and_neither_small_nor_large():
    assert [_block_size(None, n, False) for n in (1, 512, 513, 1000, 16384, 10**6)] == [8, 8, 16, 16, 256, 256]
    assert [_block_size(None, n, True) for n in (3, 16384, 10**6)] == [3, 16384, 32_768]


# --- what is refused ---------------------------------------------------------------------------------------------


def changing(run):
    return np.zeros(2 if run.plant.robot is ARM else 3)


def wordy(run):
    return "good"


def scalar(run):
    return run.tau.max() + 1j


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": [peak, peak]}, "measures: 'peak' occurs twice"),
        ({"measures": [lambda run: 1.0]}, "measures: expected a name for <function"),
        ({"measures": []}, "measures: expected at least one"),
        ({"measures": peak}, "measures: expected functions of a Run, got <function"),
        ({"measures": [measures.PeakTorque]}, "measures: expected a function of a Run, got <class"),
        ({"measures": {"reason": peak}}, "measures: 'reason' is a reserved name"),
        ({"measures": [wordy]}, "measures: 'wordy': expected numbers, got 'good' in run"),
        ({"measures": [scalar]}, "measures: 'scalar': expected numbers"),
        ({"make": 3}, "make: expected a function of a point, got 3"),
        ({"executor": 4}, r"executor: expected None or an object with submit\(function, \*args\), got 4"),
        ({"seed": -1}, "seed: expected a whole number from 0"),
        ({"seed": 1.5}, "seed: expected a whole number from 0"),
        ({"block": 0}, "block: expected a whole number from 1, got 0"),
        ({"t_end": -1.0}, "t_end: expected a positive"),
        ({"dt": np.nan}, "dt: expected a positive"),
        ({"method": "MK5000"}, "MK5000"),
        ({"method": gc.integrators.methods()["MK4"]}, "method: expected the name of a method"),
        ({"control_dt": 1.5e-3}, "control_dt: expected a multiple"),
        ({"monitors": "all"}, "monitors: expected 'default'"),
        ({"every": 0}, "every: expected a positive integer"),
    ],
)
def test_arguments_that_are_none_are_refused(options, message):
    with pytest.raises(GeomctrlError, match=message):
        gc.sweep(**grouped_sweep(**{"make": make, "space": SPACE, "measures": WANTED, "block": 48} | ONE | options))


def test_a_measure_that_changes_its_shape_is_refused():
    def two(point):
        return (ARM if point["n"] == 9 else ARM.with_payload(1.0)), controllers.PDGravity(ARM, GOAL), GOAL, [0.0, 0.0]

    with pytest.raises(ArgumentError, match=r"'changing': .* got \(3,\) in run 0 and \(2,\) in run 9"):
        gc.sweep(two, {"n": range(12)}, [changing], **grouped_sweep(**ONE, block=20))
    with pytest.raises(
        ArgumentError, match=r"measures: 'changing': .* got \(2,\) in the block from run 9 on, and \(3,\)"
    ):
        gc.sweep(two, {"n": range(10)}, [changing], **grouped_sweep(**ONE, block=9, executor=ThreadPoolExecutor(1)))


@pytest.mark.slow
def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "xarray", None)
    with pytest.raises(
        GeomctrlError, match=r"sweep needs the optional package xarray: pip install 'geomctrl\[sweep\]'"
    ):
        swept()


def test_what_can_not_be_sent_is_named():
    import threading

    lock = threading.Lock()

    class Elsewhere:
        def submit(self, *arguments):
            return Future()

    with pytest.raises(ArgumentError, match="make, measures, monitors: expected objects that can be pickled"):
        gc.sweep(lambda point: lock, SPACE, WANTED, **grouped_sweep(**ONE, executor=Elsewhere()))
