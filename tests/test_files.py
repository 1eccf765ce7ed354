"""Files are complete or absent."""

import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from geomctrl import WriteError, files
from geomctrl.files import whole, write_text


def test_a_failure_leaves_what_was_there(tmp_path):
    path = write_text(tmp_path / "deep" / "er" / "file.txt", "first")
    with pytest.raises(TypeError), whole(path) as file:
        file.writelines([b"half of the sec", None])
    assert path.read_text() == "first"
    assert os.listdir(path.parent) == ["file.txt"]


def test_a_file_is_seen_only_when_it_is_whole(tmp_path):
    path = tmp_path / "file.bin"
    with whole(path) as file:
        file.write(b"half")
        assert not path.exists()
    assert path.read_bytes() == b"half"


def test_others_may_read_it(tmp_path):
    ordinary = tmp_path / "ordinary"
    ordinary.write_text("")
    assert write_text(tmp_path / "ours", "").stat().st_mode == ordinary.stat().st_mode


def test_what_a_killed_process_has_left_is_cleared_by_the_next_write(tmp_path):
    path = tmp_path / "run [1].npz"
    program = f"""
import os, signal
from pathlib import Path
from geomctrl.files import whole
with whole(Path({str(path)!r})) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.read_bytes() == b"half"
    others = [tmp_path / name for name in ("run [1].npz.tmp", "run [1].npz.mine.tmp", "run 1.npz", "notes.txt")]
    for other in others:
        other.write_text("somebody's")
    write_text(path, "whole")
    assert {*tmp_path.iterdir()} == {path, *others}


def test_what_another_still_writes_is_left_alone(tmp_path):
    path = tmp_path / "file"
    with whole(path) as first:
        first.write(b"first")
        write_text(path, "second")
        assert len([*tmp_path.iterdir()]) == 2
    assert path.read_text() == "first"
    assert [*tmp_path.iterdir()] == [path]


def test_a_file_that_vanishes_under_its_lock_is_made_again(tmp_path, monkeypatch):
    """The file is removed by another process between its creation and its lock."""
    lock, seen = files._lock, []

    def late(file, **options):
        if not seen:
            os.unlink(file.name)
        seen.append(file.name)
        return lock(file, **options)

    monkeypatch.setattr(files, "_lock", late)
    assert write_text(tmp_path / "file", "text").read_text() == "text"
    assert len(seen) == 2


@pytest.mark.skipif(files.fcntl is None, reason="files are not locked here")
def test_a_file_that_another_process_is_about_to_clear_away_is_made_again(tmp_path, monkeypatch):
    """The other process locks the file before its creator does, and removes it a moment later."""
    lock, cleared = files._lock, []

    def late(file, **options):
        if not cleared:
            other = open(file.name, "rb")  # noqa: SIM115 - the timer closes it
            files.fcntl.flock(other, files.fcntl.LOCK_EX | files.fcntl.LOCK_NB)
            cleared.append(threading.Timer(0.2, lambda: (os.unlink(file.name), other.close())))
            cleared[0].start()
        return lock(file, **options)

    monkeypatch.setattr(files, "_lock", late)
    assert write_text(tmp_path / "file", "text").read_text() == "text"
    assert [*tmp_path.iterdir()] == [tmp_path / "file"]


def test_a_full_disk_is_named(tmp_path):
    """A limit on the size of files takes the place of a full disk in a test."""
    path = tmp_path / "run.npz"
    path.write_text("before")
    program = f"""
import resource, sys
import numpy as np
import geomctrl as gc
from geomctrl import controllers, models
arm = models.two_link()
run = gc.simulate(arm, controllers.PDGravity(arm, arm.neutral(), 1.0, 1.0), [0.1, 0.2], [0.0, 0.0], 1.0, 1e-3)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
try:
    run.save({str(path)!r})
except OSError as error:
    assert len(run.t) == 1001
    print(error.strerror, error.filename, sep="|")
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == f"File too large|{path}\n"
    assert path.read_text() == "before"
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_only_files_are_replaced(tmp_path):
    """A device that is replaced, such as /dev/null, would break all programs."""
    pipe, link, plain = tmp_path / "pipe", tmp_path / "link", tmp_path / "plain"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    plain.write_text("before")
    for path, reason in {
        pipe: "not a regular file",
        link: "not a regular file",
        tmp_path: "not a regular file",
        plain / "inside": "Not a directory|File exists",
        tmp_path / ("x" * 300): "File name too long",
    }.items():
        with pytest.raises(WriteError, match=f"^path: can not write .*: ({reason})$") as caught:
            write_text(path, "after")
        assert isinstance(caught.value, OSError)
        assert caught.value.filename == str(path)
    assert pipe.is_fifo()
    assert plain.read_text() == "before"
    assert len([*tmp_path.iterdir()]) == 3


class Planted:
    """A pickle of it creates a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def member(content):
    """Return a function that writes an archive with one member, q.npy."""

    def write(path):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("q.npy", content)

    return write


def header(shape):
    text = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def cut(path):
    np.savez(path, q=np.arange(50.0))
    path.write_bytes(path.read_bytes()[:-40])


def flipped(path):
    np.savez_compressed(path, q=np.arange(50.0))
    content = bytearray(path.read_bytes())
    content[120] ^= 1
    path.write_bytes(bytes(content))


NO_ARRAYS = {
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path),
    "a folder": Path.mkdir,
    "nothing": lambda path: None,
    "empty": Path.touch,
    "text": lambda path: path.write_text("q"),
    "a pickle": lambda path: path.write_bytes(pickle.dumps(Planted(path.with_name("planted")))),
    "a pickled member": lambda path: np.savez(path, q=np.array([Planted(path.with_name("planted"))], dtype=object)),
    "one array": lambda path: path.write_bytes(header((0,))),
    "cut": cut,
    "a flipped bit": flipped,
    "a member without a header": member(b"1.0"),
    "more numbers announced than are there": member(header((1 << 50,))),
    "a negative shape": member(header((-3,))),
    "a header of brackets": member(b"\x93NUMPY\x01\x00" + (9000).to_bytes(2, "little") + b"[" * 9000),
    "more than the memory": member(header((1 << 20,)) + bytes(1 << 23)),
}
if hasattr(os, "mkfifo"):
    NO_ARRAYS["a pipe"] = os.mkfifo


@pytest.mark.parametrize("kind", NO_ARRAYS)
def test_what_is_no_archive_of_arrays_is_refused(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "memory_size", lambda: 1e6)
    NO_ARRAYS[kind](tmp_path / "a.npz")
    with pytest.raises((OSError, ValueError)) as refusal:
        files.read_arrays(tmp_path / "a.npz")
    assert str(refusal.value)
    assert not (tmp_path / "planted").exists()


def test_arrays_are_read_as_they_were_written(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", q=np.arange(3.0), name=np.array("arm"))
    (tmp_path / "link.npz").symlink_to(tmp_path / "a.npz")
    arrays = files.read_arrays(tmp_path / "link.npz")
    assert [*arrays] == ["q", "name"]
    assert arrays["q"].tolist() == [0.0, 1.0, 2.0]
    assert str(arrays["name"]) == "arm"


def test_archives_are_read_in_one_place():
    script = "with np.load(HERE"  # of a counterexample: the user's own file
    readers = {
        path.name
        for path in Path(files.__file__).parent.rglob("*.py")
        if re.search(r"np\.load\(|pickle=True", path.read_text(encoding="utf-8").replace(script, ""))
    }
    assert readers == {"files.py"}
