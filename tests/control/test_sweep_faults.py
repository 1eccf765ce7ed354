"""Sweeps with a store: gone on with after whatever ended them, bit-identical; another sweep is refused.

What ends them here: SIGKILL, Ctrl-C, a full disk, a block that raises, a worker of a cluster that dies.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import sweep_studies
import xarray
import zarr
from simulation_options import grouped_sweep
from sweep_studies import ARM, SHORT, SPACE, WANTED, make, swept

import geomctrl as gc
from geomctrl import controllers, measures
from geomctrl.compiler import code
from geomctrl.control.sweeping.executors import _Processes, spread
from geomctrl.control.sweeping.fingerprint import fingerprint
from geomctrl.control.sweeping.sweep import load
from geomctrl.errors import ArgumentError, GeomctrlError, SweepError

THREAD = {"executor": ThreadPoolExecutor(1)}


@pytest.fixture(autouse=True)
def terms_are_compiled_as_in_a_process_of_their_own(monkeypatch):
    """Bits are compared with those of other processes, which compile the terms of their first robots at once."""
    monkeypatch.setattr(code.Structure, "worthwhile", lambda *_: True)


@pytest.fixture(scope="module")
def table():
    """Sweep in a separate process, like those that are killed. A process that has used many robots may compute the
    first sample's terms by loops, which differ in the last bit.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return swept(executor=pool)


def stopped_after(count):
    """Return a progress function that raises when `count` blocks of six are complete."""

    def progress(fraction):
        if fraction >= count / 6:
            raise KeyboardInterrupt

    return progress


def chunks(store):
    """Return when each file of a store was written."""
    return {path: path.stat().st_mtime_ns for path in Path(store).rglob("*") if path.is_file()}


def started(store, *arguments, script=sweep_studies.__file__):
    """Run a script that sweeps in a process group of its own."""
    folders = Path(gc.__file__).parents[1], Path(__file__).parents[1]
    path = os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, script, str(store), *map(str, arguments)]
    return subprocess.Popen(
        command, env=os.environ | {"PYTHONPATH": path}, start_new_session=True, stderr=subprocess.PIPE, text=True
    )


def done(store):
    """Return the blocks that a store contains."""
    return len(list(Path(store).glob("done/c/*[0-9]")))


# --- stores ------------------------------------------------------------------------------------------------------


def test_what_a_store_gives_back_is_what_was_put_in(table, tmp_path):
    store = tmp_path / "deep" / "sweep.zarr"
    xarray.testing.assert_identical(swept(store=store, **THREAD), table)
    before = chunks(store)
    xarray.testing.assert_identical(swept(store=store, executor=NoExecutor()), table)
    assert chunks(store) == before
    xarray.testing.assert_identical(load(store), table)
    flat = xarray.open_zarr(store, consolidated=False).load()
    assert dict(flat.sizes) == {"run": 48, "joint": 2, "checksum_block": 6, "checksum_array": 5}
    np.testing.assert_array_equal(flat.peak, table.peak.values.reshape(48, 2))
    assert flat.peak.attrs == table.peak.attrs
    assert flat.payload.attrs == {"units": "kg"}
    assert flat.done.all()
    assert [p.name for p in store.parent.iterdir()] == ["sweep.zarr"]


@pytest.mark.filterwarnings("ignore:sweep. no point has a run")
def test_every_kind_of_parameter_comes_back(tmp_path):
    space = {
        "text": ["a", "bb"],
        "whole": ("sample", [1, 2, 3]),
        "small": ("sample", np.array([0.1, 0.2, 0.3], np.float32)),
        "true": [True, False],
        "square": (("true", "text"), [[1.0, 2.0], [3.0, 4.0]]),
        "one": 2.5,
    }
    seen = []

    def remember(point):
        seen.append(dict(point))
        raise ValueError(f"{point['text']}")

    result = gc.sweep(remember, space, WANTED, 0.1, 0.1, **grouped_sweep(store=tmp_path / "s", **THREAD))
    assert result.settling.isnull().all()
    assert result.sizes == {"text": 2, "sample": 3, "true": 2}
    assert str(result.reason[1, 0, 0].item()) == "make: ValueError: bb"
    for at in seen:
        assert at["square"] == [[1.0, 2.0], [3.0, 4.0]][1 - at["true"]][at["text"] == "bb"]
    first = dict(seen[7])
    seen.clear()
    xarray.testing.assert_identical(load(tmp_path / "s"), result)
    for store in (tmp_path / "s", result):
        with pytest.raises(ValueError, match=r"^(bb|a)$"):
            gc.replay(store, 7, remember)
        assert seen.pop() == first
        assert [type(x) for x in first.values()] == [str, int, float, bool, float, float]


class NoExecutor:
    def submit(self, *arguments):
        raise AssertionError("there was nothing left to do")


def test_interrupted_it_does_the_missing_blocks_only(table, tmp_path):
    store = tmp_path / "s.zarr"
    with pytest.raises(KeyboardInterrupt):
        swept(store=store, progress=stopped_after(2), **THREAD)
    assert done(store) == 2
    part, before = load(store), chunks(store)
    assert int(part.success.sum()) == 16
    assert int(part.settling.isnull().sum()) >= 32
    run = gc.replay(store, 40, make)  # also for a store that does not exist yet
    np.testing.assert_array_equal(WANTED["peak"](run), table.peak.values.reshape(48, 2)[40])
    fractions = []
    result = swept(store=store, progress=fractions.append, **THREAD)
    assert fractions == [pytest.approx(k / 6) for k in (3, 4, 5, 6)]
    xarray.testing.assert_identical(result, table)
    assert before.items() <= chunks(store).items()


def test_an_incomplete_block_without_its_mark_is_done_again(table, tmp_path):
    store = tmp_path / "s.zarr"
    swept(store=store, **THREAD)
    zarr.open_group(store)["peak"][8:16] = -1.0
    (store / "done" / "c" / "1").unlink()  # as if it had been killed in this block: no warning
    assert load(store).peak.isnull().sum() == 16
    xarray.testing.assert_identical(swept(store=store, **THREAD), table)
    shutil.rmtree(store / "done")  # complete blocks need no mark
    xarray.testing.assert_identical(load(store), table)
    shutil.rmtree(store / "checksum")  # as if it had been killed in its first block
    assert load(store).peak.isnull().all()
    xarray.testing.assert_identical(swept(store=store, **THREAD), table)


# --- another sweep -----------------------------------------------------------------------------------------------


def helper(x):
    return x


def uses_helper(point):
    return make({**point, "kp": helper(point["kp"])})


class Law(controllers.PDGravity):
    def __call__(self, t, q, v, z):
        return super().__call__(t, q, v, z)


def uses_class(point):
    return ARM, Law(ARM, sweep_studies.GOAL), [0.0, 0.0], [0.0, 0.0]


def test_another_sweep_is_refused_with_what_differs(tmp_path):
    store = tmp_path / "s.zarr"
    with pytest.raises(KeyboardInterrupt):
        swept(store=store, progress=stopped_after(1), **THREAD)
    before = chunks(store)
    for options, printed in [
        ({"seed": 1}, "seed is 0 there, 1 here$"),
        ({"t_end": 0.03}, "t_end is 0.02 there, 0.03 here$"),
        ({"method": "MK2"}, "method is 'MK4' there, 'MK2' here$"),
        ({"block": 16}, "block is 8 there, 16 here$"),
        ({"monitors": [gc.monitors.Skew()]}, "monitors is 'default' there, something here$"),
    ]:
        with pytest.raises(ArgumentError, match=r"store: '.*s.zarr' has another sweep: " + printed):
            swept(store=store, **options)
    for changed, printed in [
        ({"space": SPACE | {"payload": [0.0, 1.0, 2.5]}}, r"space: payload is 0.0, 1.0, 2.0 \(3 along payload, .*2.5"),
        (
            {"space": SPACE | {"kp": SPACE["kp"][:-1]}},
            "space: kp is 10.0, .*; space is payload 3, kp 16 there, .* kp 15 here",
        ),
        ({"space": SPACE | {"more": 1.0}}, r"space: more is nothing there, 1.0 \(1 along nothing"),
        ({"measures": {**WANTED, "peak": measures.PeakTorque()}}, "measures differs$"),
        ({"make": uses_helper}, "make differs; make: uses_helper is nothing there, something here"),
    ]:
        with pytest.raises(ArgumentError, match=printed):
            gc.sweep(
                **grouped_sweep(**{"make": make, "space": SPACE, "measures": WANTED} | SHORT | changed, store=store)
            )
    assert chunks(store) == before


@pytest.mark.filterwarnings("ignore:sweep. no point has a run")
def test_a_function_or_class_that_make_uses_is_followed(tmp_path, monkeypatch):
    def go(name, make, **options):
        return gc.sweep(
            make, {"kp": [50.0], "payload": 0.0}, WANTED, **grouped_sweep(**SHORT | options, store=tmp_path / name)
        )

    def with_gain(gain):
        return lambda point: (ARM, controllers.PDGravity(ARM, sweep_studies.GOAL, kp=gain), [0.0, 0.0], [0.0, 0.0])

    go("a", uses_helper), go("b", uses_class), go("c", with_gain(50.0)), go("c", with_gain(50.0))
    with pytest.raises(ArgumentError, match=r"make: .*with_gain.<lambda> differs$"):
        go("c", with_gain(51.0))
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "helper", lambda x: 2.0 * x)
        with pytest.raises(ArgumentError, match=r"make: uses_helper differs; make: helper is something there, nothing"):
            go("a", uses_helper)
    with monkeypatch.context() as patch:
        patch.setattr(Law, "__call__", lambda self, t, q, v, z: controllers.PDGravity.__call__(self, t, q, v, z))
        with pytest.raises(ArgumentError, match="make: Law differs"):
            go("b", uses_class)
    with monkeypatch.context() as patch:
        patch.setattr(sweep_studies, "ARM", ARM.with_payload(0.1))
        with pytest.raises(ArgumentError, match="make: make differs"):
            go("a", uses_helper)
    monkeypatch.setattr("geomctrl.control.sweeping.sweep.versions", lambda: {"numpy": "0.1"})
    with pytest.raises(ArgumentError, match=r"version of numpy is .* there, 0.1 here"):
        go("a", uses_helper)
    with pytest.raises(ArgumentError, match=r"make: expected the sweep's: version of .*0.1 here"):
        gc.replay(tmp_path / "a", 0, uses_helper)


rng = np.random.default_rng()


def test_a_global_with_the_name_of_an_attribute_is_not_used():
    def noisy(point):
        return make({**point, "q": point.rng.standard_normal()})

    before = fingerprint(noisy)
    rng.standard_normal()
    assert fingerprint(noisy) == before


@pytest.mark.parametrize("kind", [_Processes, ThreadPoolExecutor])
def test_blocks_of_an_interrupted_sweep_are_cancelled_by_the_pool_itself_or_here(kind):
    """A pool of processes prints a traceback if others have cancelled its futures."""
    futures = []

    class Pool(kind):
        def submit(self, function, *args):
            futures.append(Future())
            if len(futures) == 1:
                futures[0].set_result(function(*args))
            return futures[-1]

    with Pool(1) as pool:
        answers = spread(pool, abs, [(-1,), (-2,)])
        assert next(answers) == (0, 1)
        answers.close()
    assert futures[1].cancelled() == (kind is ThreadPoolExecutor)


def test_what_is_no_store_is_refused(tmp_path):
    (tmp_path / "file").write_text("no store")
    (tmp_path / "folder").mkdir()
    zarr.create_group(tmp_path / "other.zarr")
    for name in ("file", "folder", "other.zarr"):
        with pytest.raises(ArgumentError, match=f"store: expected a sweep's store, got '.*{name}'"):
            swept(store=tmp_path / name)
    for name in ("file", "absent"):
        with pytest.raises(ArgumentError, match=f"store: expected a sweep's store, got '.*{name}'"):
            gc.replay(tmp_path / name, 0, make)
    with pytest.raises(GeomctrlError, match=r"store: .* could not be made: "):
        swept(store=tmp_path / "file" / "s.zarr")


def test_two_sweeps_on_one_store_are_refused(table, tmp_path):
    printed = []

    def second(fraction):
        with pytest.raises(GeomctrlError, match=r"store: '.*s.zarr' is in use by another sweep") as e:
            swept(store=tmp_path / "s.zarr")
        printed.append(e)

    xarray.testing.assert_identical(swept(store=tmp_path / "s.zarr", progress=second, **THREAD), table)
    assert len(printed) == 6
    swept(store=tmp_path / "s.zarr")


# --- faults ------------------------------------------------------------------------------------------------------


def test_a_full_disk_leaves_what_was_written(table, tmp_path, monkeypatch):
    store, put = tmp_path / "s.zarr", zarr.storage.LocalStore.set

    async def full(self, key, value, *rest):
        if key.startswith("peak/c/3"):
            raise OSError(28, "No space left on device", str(self.root / key))
        await put(self, key, value, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(zarr.storage.LocalStore, "set", full)
        with pytest.raises(
            SweepError, match=r"the block from run 24 on could not be written: .* No space left on device"
        ):
            swept(store=store, **THREAD)
    assert done(store) == 3
    part = load(store)
    assert int(part.success.sum()) == int(part.t_reached.notnull().sum()) == int((part.reason != "").sum()) == 24
    before = chunks(store)
    xarray.testing.assert_identical(swept(store=store, **THREAD), table)
    assert {path: t for path, t in before.items() if path.parts[-3] == "done"}.items() <= chunks(store).items()


def test_a_block_that_raises_leaves_the_others(table, tmp_path):
    class Failing:
        """A measure that fails in the block from run 16 on."""

        def submit(self, function, job, first, rows):
            if first == 16:
                return THREAD["executor"].submit(np.linalg.inv, np.zeros((1, 1)))
            return THREAD["executor"].submit(function, job, first, rows)

        _max_workers = 1

    with pytest.raises(SweepError, match="the block from run 16 on failed 2 times: LinAlgError: Singular matrix"):
        swept(store=tmp_path / "s.zarr", executor=Failing())
    assert done(tmp_path / "s.zarr") >= 2
    xarray.testing.assert_identical(swept(store=tmp_path / "s.zarr", **THREAD), table)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGINT])
def test_killed_and_started_again_the_numbers_are_the_same(fault, table, tmp_path):
    """In processes of this machine, none of which is left running."""
    store = tmp_path / "s.zarr"
    process = started(store, 0.05)
    deadline = time.monotonic() + 60.0
    while done(store) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(fault)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == (-fault if fault == signal.SIGKILL else -signal.SIGINT), said
    assert 2 <= done(store) < 6
    before = {path: t for path, t in chunks(store).items() if path.parts[-3] == "done"}
    while group_lives(process.pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not group_lives(process.pid)
    xarray.testing.assert_identical(swept(store=store, **THREAD), table)
    assert before.items() <= chunks(store).items()


def group_lives(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_a_script_need_not_guard_itself(tmp_path):
    """The script's functions are sent to other processes by value, and the script does not run again there."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nimport numpy as np\nimport geomctrl as gc\nfrom geomctrl import controllers, models\n"
        "print('once', flush=True)\n"
        "arm = models.two_link()\n"
        "def peak(run):\n    return np.abs(run.tau).max()\n"
        "def make(point):\n    return arm, controllers.PDGravity(arm, [0.1, 0.2], kp=point['kp']), [0, 0], [0, 0]\n"
        "execution = gc.SweepExecution(block=4)\n"
        "found = gc.sweep(make, {'kp': np.arange(1.0, 17.0)}, [peak], 0.01, 1e-3, execution=execution)\n"
        "assert found.success.all() and gc.replay(found, 3, make).tau.max() <= found.peak[3]\n"
    )
    path = os.pathsep.join([str(Path(gc.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        [sys.executable, script], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert (ran.stdout, ran.stderr, ran.returncode) == ("once\n", "", 0)


@pytest.mark.slow
def test_processes_of_this_machine_that_are_killed_are_told(tmp_path):
    def kill(point):
        if point["n"] == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return make({"payload": 0.0, "kp": 50.0} | point)

    with pytest.raises(SweepError, match=r"executor: its workers have stopped \(killed, out of memory, or shut down\)"):
        gc.sweep(kill, {"n": range(16)}, WANTED, **grouped_sweep(**SHORT))


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # warnings of distributed about the workers that are killed here
def test_a_dask_worker_killed_in_the_middle(table, tmp_path):
    from distributed import Client, LocalCluster

    local = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    folder = str(tmp_path / "dask")
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=folder, env=local
        ) as cluster,
        Client(cluster) as client,
    ):
        killed = []

        def kill(fraction):
            if not killed:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        result = swept(store=tmp_path / "s.zarr", executor=client, progress=kill)
        xarray.testing.assert_identical(result, table)
        assert killed
        with pytest.raises(SweepError, match="executor: its workers have stopped"):
            swept(store=tmp_path / "t.zarr", executor=client, progress=lambda fraction: client.close())
    xarray.testing.assert_identical(swept(store=tmp_path / "t.zarr", **THREAD), table)
    shutil.rmtree(folder, ignore_errors=True)
