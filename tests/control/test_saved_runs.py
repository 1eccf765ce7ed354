"""Saved runs: what is restored, and refusal of other files."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.control.references import Sinusoids
from geomctrl.errors import ArgumentError

ARM = models.two_link()
LAW = controllers.SlotineLi(ARM, Sinusoids(ARM, ARM.neutral(), 0.3, 0.4))
RUN = gc.simulate(ARM, LAW, [0.2, 0.1], [0.0, 0.3], 0.02, 1e-3)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return RUN.save(tmp_path_factory.mktemp("saved") / "run.npz")


def same(run):
    for name in ("t", "q", "v", "tau", "z"):
        np.testing.assert_array_equal(getattr(run, name), getattr(RUN, name))
    for name, signal in RUN.signals.items():
        np.testing.assert_array_equal(run.signals[name], signal)
    for name, monitor in RUN.monitors.items():
        assert str(run.monitors[name]) == str(monitor)
    assert (run.reason, run.success, run.steps, run.ok) == (RUN.reason, RUN.success, RUN.steps, RUN.ok)
    return True


def test_what_is_saved_comes_back(saved):
    run = gc.Run.load(saved, ARM)
    assert same(run)
    np.testing.assert_array_equal(run.tracking_error(), RUN.tracking_error())


def test_a_plant_of_another_robot_is_refused(saved):
    with pytest.raises(ArgumentError, match=r"plant: its robot 'panda' has nq = 7 .*, the run 2 and 2"):
        gc.Run.load(saved, models.panda())


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_refused_or_what_it_was(saved, tmp_path_factory, data):
    """Files that are truncated or have some changed bytes raise this error, and never give other numbers."""
    content = bytearray(saved.read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        for _ in range(data.draw(st.integers(1, 5))):
            content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    path.write_bytes(content)
    try:
        run = gc.Run.load(path)
    except ArgumentError as error:
        said = str(error)
    else:
        assert same(run)
        return
    assert "damaged.npz' is not a saved run" in said


def about(**changes):
    """The arrays of a saved run, some replaced; None removes one."""

    def write(path):
        with np.load(RUN.save(path)) as f:
            arrays = {name: f[name] for name in f.files} | changes
        np.savez(path, **{name: x for name, x in arrays.items() if x is not None})

    return write


def with_limit(limit):
    """A saved run whose first monitor has this limit."""

    def write(path):
        with np.load(RUN.save(path)) as f:
            document = json.loads(str(f["about"]))
        next(iter(document["monitors"].values()))[1] = limit
        about(about=np.array(json.dumps(document)))(path)

    return write


FOREIGN = {
    "text": lambda path: path.write_text("t,q,v\n"),
    "nothing": lambda path: path.touch(),
    "a folder": lambda path: path.mkdir(),
    "one array": lambda path: np.save(path.open("wb"), np.zeros(3)),
    "other arrays": lambda path: np.savez(path, a=np.zeros(3)),
    "objects": about(t=np.array([{}, {}], object)),
    "no t": about(t=None),
    "no tau": about(tau=None),
    "no monitor": about(**{"monitor/energy": None}),
    "fewer q": about(q=RUN.q[1:]),
    "a number for v": about(v=np.array(1.0)),
    "text for tau": about(tau=RUN.tau.astype(str)),
    "no JSON": about(about=np.array("{")),
    "a list": about(about=np.array("[]")),
    "no reason": about(about=np.array('{"monitors": {}}')),
    "half a desired motion": about(v_desired=None),
    "text for a limit": with_limit("1.0"),
    "a truth value for a limit": with_limit(True),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the test's own call of open
@pytest.mark.parametrize("kind", FOREIGN)
def test_what_is_no_run_is_refused(kind, tmp_path):
    path = tmp_path / "run.npz"
    FOREIGN[kind](path)
    with pytest.raises(ArgumentError, match=r"^path: '.*run.npz' is not a saved run: \w+: "):
        gc.Run.load(path)


@pytest.mark.parametrize("path", [3, None, b"run.npz", 1.5, ["run.npz"], True])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(ArgumentError, match=r"^path: expected a path, got"):
        gc.Run.load(path)


def test_a_number_closes_nobodys_file(tmp_path):
    with open(tmp_path / "file", "w+") as file:
        with pytest.raises(ArgumentError):
            gc.Run.load(file.fileno())
        assert os.fstat(file.fileno())
        file.write("still open")


def test_a_plant_that_is_none_is_refused(saved):
    with pytest.raises(ArgumentError, match=r"^plant: expected a geomctrl.Plant, a Robot or None, got 'panda'"):
        gc.Run.load(saved, "panda")


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_files_have_the_mode_that_the_umask_says(mask, tmp_path):
    """In a separate process, because the umask belongs to the process."""
    path = tmp_path / "run.npz"
    program = f"""
import os
from pathlib import Path
from geomctrl import files
os.umask({mask})
files.write_text(Path({str(path)!r}), "text")
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_file_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(ArgumentError, match=r"^path: no such file: '.*run.npz'$"):
        gc.Run.load(tmp_path / "run.npz")
