"""Compiled code on disk, numba's and the compiler's: damaged files give a warning, and results are right."""

import os
import pwd
import signal
import subprocess
import sys
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from geomctrl import caches

NAME = caches.file_name(("a kernel", 1), ".o")
CODE = bytes(range(90))


def bits(content):
    """Yield every content that differs in one bit."""
    for i in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[i // 8] ^= 1 << i % 8
        yield bytes(flipped)


def read(*folders, name=NAME, load=bytes):
    """Return (what is read, the warnings)."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        return caches.read(folders, name, load), [str(w.message) for w in said]


def kept(folder, code=CODE, name=NAME):
    caches.write([folder], name, code)
    return folder / name


def test_any_flipped_bit_any_length_and_any_other_name_is_noticed(tmp_path):
    path = kept(tmp_path)
    whole = path.read_bytes()
    damages = [*bits(whole), *(whole[:n] for n in range(len(whole))), whole + b"\0", bytes(len(whole)), b"garbage" * 30]
    assert read(tmp_path) == (CODE, [])
    for damage in damages:
        path.write_bytes(damage)
        outcome, said = read(tmp_path)
        assert outcome is None
        assert len(said) == 1
        assert str(path) in said[0]
        assert read(tmp_path) == (None, [])  # removed: it is not found again
    other = caches.file_name(("another kernel", 1), ".o")
    kept(tmp_path).rename(tmp_path / other)
    assert read(tmp_path, name=other)[0] is None


def test_what_can_not_be_loaded_is_set_aside_though_it_is_whole(tmp_path):
    def load(code):
        raise MemoryError(code)

    path = kept(tmp_path)
    outcome, (said,) = read(tmp_path, load=load)
    assert outcome is None
    assert str(path) in said
    assert not path.exists()


def test_the_next_folder_may_have_it(tmp_path, monkeypatch):
    first, second = tmp_path / "first", tmp_path / "second"
    kept(second)
    assert read(first, second) == (CODE, [])
    kept(first).write_bytes(b"garbage")
    outcome, said = read(first, second)
    assert outcome == CODE
    assert len(said) == 1
    kept(first).write_bytes(b"garbage")
    # as in a read-only folder: the file can not be repaired, and another one is right
    monkeypatch.setattr(os, "replace", refuse)
    assert read(first, second) == (CODE, [])


def refuse(*_):
    raise PermissionError(1, "not permitted")


@pytest.fixture
def unsaid(monkeypatch):
    monkeypatch.setattr(caches, "_unusable_reported", False)


@pytest.mark.usefixtures("unsaid")
def test_folders_that_can_not_be_written_are_said_once(tmp_path):
    blocked = tmp_path / "file"
    blocked.touch()
    places = [blocked / "here", blocked / "there"]
    with pytest.warns(RuntimeWarning, match=r"here \(Not a directory\).*there.*GEOMCTRL_CACHE"):
        caches.write(places, NAME, CODE)
    caches.write(places, NAME, CODE)  # pytest turns warnings into errors


STRANGER = 65534  # the user "nobody"


def planted_by_a_stranger(path):
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(path, STRANGER, STRANGER, follow_symlinks=False)


FOLDERS = {  # permissions of a folder that others could have written to
    "world": lambda folder: folder.chmod(0o777),
    "group": lambda folder: folder.chmod(0o770),
    "sticky": lambda folder: folder.chmod(0o1777),
    "owner": planted_by_a_stranger,
}


@pytest.mark.usefixtures("unsaid")
@pytest.mark.parametrize("spoil", FOLDERS.values(), ids=FOLDERS)
def test_a_folder_that_others_can_write_is_neither_read_nor_written(tmp_path, spoil):
    path = kept(tmp_path / "open")
    spoil(path.parent)
    before = path.read_bytes(), sorted(path.parent.iterdir())
    outcome, said = read(path.parent)
    assert outcome is None
    assert len(said) == 1
    assert str(path.parent) in said[0]
    assert "GEOMCTRL_CACHE" in said[0]
    assert read(path.parent) == (None, [])  # one warning
    kept(path.parent, b"other code")
    caches.keep_newest([path.parent], "*", 1)
    assert (path.read_bytes(), sorted(path.parent.iterdir())) == before
    kept(tmp_path / "closed")
    assert read(path.parent, tmp_path / "closed") == (CODE, [])


def _link(path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def _device(path):
    path.unlink()
    path.symlink_to("/dev/zero")


def _pipe(path):
    path.unlink()
    os.mkfifo(path)


def _folder(path):
    path.unlink()
    path.mkdir()


def _sparse(path):
    os.truncate(path, 1 << 40)  # takes no room on the disk, and exceeds the memory


FILES = {"link": _link, "sparse": _sparse, "device": _device, "pipe": _pipe, "folder": _folder,
         "owner": planted_by_a_stranger,
         "group": lambda path: path.chmod(0o664), "world": lambda path: path.chmod(0o646)}  # fmt: skip


@pytest.mark.parametrize("plant", FILES.values(), ids=FILES)
def test_a_file_that_others_could_have_planted_is_set_aside(tmp_path, plant):
    path = kept(tmp_path)
    plant(path)
    signal.alarm(20)  # a pipe or /dev/zero would block the process forever
    outcome, said = read(tmp_path)
    signal.alarm(0)
    assert outcome is None
    assert len(said) == 1
    assert str(path) in said[0]
    kept(tmp_path)
    assert read(tmp_path) == (CODE, [])


@pytest.mark.usefixtures("unsaid")
def test_links_to_a_folder_are_followed_if_they_are_the_users_own(tmp_path):
    folder, link = tmp_path / "folder", tmp_path / "link"
    path = kept(folder)
    link.symlink_to(folder)
    assert read(link) == (CODE, [])
    planted_by_a_stranger(link)
    assert read(link)[0] is None
    path.unlink()
    kept(link)
    assert not path.exists()


@pytest.mark.usefixtures("unsaid")
def test_links_that_lead_to_themselves_are_no_folder(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    for place in (loop, loop / "below"):
        caches._unusable_reported = False
        outcome, (said,) = read(place)
        assert outcome is None
        assert f"{place} (a link to itself)" in said
        assert read(place) == (None, [])
        kept_nothing = caches.write([place], NAME, CODE)
        assert kept_nothing is None
    assert read(loop, tmp_path) == (None, [])


def test_modes_do_not_depend_on_the_umask(tmp_path):
    before = os.umask(0)
    try:
        path = kept(tmp_path / "made")
    finally:
        os.umask(before)
    assert [p.stat().st_mode & 0o777 for p in (path, path.parent)] == [0o644, 0o700]
    assert read(path.parent) == (CODE, [])


@pytest.mark.usefixtures("unsaid")
def test_the_first_folder_that_can_be_written_is_taken(tmp_path):
    (tmp_path / "file").touch()
    places = [tmp_path / "file" / "here", tmp_path / "there", tmp_path / "last"]
    caches.write(places, NAME, CODE)
    assert [p.name for p in tmp_path.iterdir() if p.is_dir()] == ["there"]
    assert read(*places) == (CODE, [])


def test_who_has_no_home_keeps_code_next_to_the_source(tmp_path, monkeypatch):
    for name in ("GEOMCTRL_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: {}[uid])
    assert caches.folders(tmp_path) == (tmp_path / "__pycache__",)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert str(caches.folders(tmp_path)[1]) == "/home/somebody/.cache/geomctrl"
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert str(caches.folders(tmp_path)[1]) == "/caches/geomctrl"
    monkeypatch.setenv("GEOMCTRL_CACHE", "/chosen")
    assert list(map(str, caches.folders(tmp_path))) == ["/chosen"]


@pytest.mark.parametrize("frozen", [False, True])
def test_a_frozen_application_keeps_code_with_the_user(frozen, tmp_path, monkeypatch):
    """The folder of an application in one file is removed at its end."""
    monkeypatch.delenv("GEOMCTRL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "frozen", frozen, raising=False)
    beside, user = tmp_path / "source" / "__pycache__", tmp_path / "geomctrl"
    assert caches.folders(tmp_path / "source") == ((user,) if frozen else (beside, user))


def digest_in_archive(folder, monkeypatch, **modules):
    """The digest of a package `archived` with these modules, which has no files of its own."""
    with zipfile.ZipFile(folder / "packages.zip", "w") as archive:
        for name, source in {"__init__": "", **modules}.items():
            archive.writestr(f"archived/{name}.py", source)
    with monkeypatch.context() as patch:
        patch.syspath_prepend(str(folder / "packages.zip"))
        for name in [x for x in sys.modules if x.startswith("archived")]:
            del sys.modules[name]
        return caches.package_digest("archived")


def test_versions_in_archives_differ_if_their_code_does(tmp_path, monkeypatch):
    sources = ["x = 1.0", "x = 2.0", "y = 2.0", "x = 1.0  # one", "def f(): return 1.0", "def f(): return 2.0"]
    outcome = []
    for k, source in enumerate(sources):
        (tmp_path / str(k)).mkdir()
        outcome.append(digest_in_archive(tmp_path / str(k), monkeypatch, part=source, other="z = 3.0"))
    assert outcome[3] == outcome[0]
    assert len({*outcome}) == len(outcome) - 1


def test_versions_whose_code_can_not_be_read_share_nothing(tmp_path, monkeypatch):
    assert digest_in_archive(tmp_path, monkeypatch) == digest_in_archive(tmp_path, monkeypatch)
    monkeypatch.setattr(caches.importlib.util, "find_spec", lambda name: None)
    assert digest_in_archive(tmp_path, monkeypatch) != digest_in_archive(tmp_path, monkeypatch)


def test_files_of_killed_writers_and_of_old_versions_go(tmp_path):
    abandoned, at_work, foreign = (tmp_path / f"{name}.tmp" for name in (f"{NAME}.0", f"{NAME}.1", "notes"))
    for path in (abandoned, at_work, foreign):
        path.touch()
    for path in (abandoned, foreign):
        os.utime(path, (time.time() - 2 * caches.MAX_UNFINISHED_AGE,) * 2)
    kept(tmp_path)
    assert {*tmp_path.glob("*.tmp")} == {at_work, foreign}
    for age in range(5):
        path = kept(tmp_path, name=f"kernel.{age}.nbc")
        os.utime(path, (time.time() - age,) * 2)
    caches.keep_newest([tmp_path / "none", tmp_path], "kernel.*.nbc", 3)
    assert sorted(p.name for p in tmp_path.glob("*.nbc")) == ["kernel.0.nbc", "kernel.1.nbc", "kernel.2.nbc"]


# --- in processes of their own ---------------------------------------------------------------------------------------

KERNELS = """
from geomctrl.kernels.primitives import primitive
from geomctrl.kernels.jit import kernel

@primitive
def square(x):
    return x * x

@kernel("f8(f8[::1])")
def norm(x):
    total = 0.0
    for value in x:
        total += square(value)
    return total
"""
PROGRAM = """
import numpy as np
import kernels
from geomctrl import models
robot = models.two_link()
q = np.array([0.3, 0.4])
print(repr([kernels.norm(np.array([3.0, 4.0])), *robot.mass_matrix(q).ravel().tolist()]))
"""
KINDS = (".nbc", ".o")


class Place:
    """A folder for compiled code, and processes that use both caches."""

    def __init__(self, root):
        self.root, self.cache = root, root / "cache"
        (root / "kernels.py").write_text(KERNELS)

    def start(self, before="", cache=None):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
        environment["GEOMCTRL_CACHE"] = str(cache or self.cache)
        return subprocess.Popen(
            [sys.executable, "-W", "always", "-c", before + PROGRAM],
            cwd=self.root, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def result(self, process):
        """The lines with warnings, after the numbers have been compared."""
        out, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
        np.testing.assert_allclose(eval(out), [25.0, *self.expected], rtol=1e-13)
        return [line for line in said.splitlines() if "Warning" in line]

    @property
    def expected(self):
        """Numbers of the two-link arm: 1 kg rods of 1 m, see `models.two_link`."""
        from geomctrl import models
        from geomctrl.papers import factored

        return factored.mass_matrix(models.two_link(), np.array([0.3, 0.4])).ravel()

    def run(self, before="", cache=None):
        return self.result(self.start(before, cache))

    def files(self):
        outcome = sorted(p for p in self.cache.iterdir() if p.suffix in KINDS)
        assert {p.suffix for p in outcome} == set(KINDS)
        return outcome


@pytest.mark.slow
def test_two_versions_of_the_library_share_a_folder_and_no_file(place):
    """Their sources differ by a comment in the code generator: file names contain a hash of it."""
    tree = Path(__file__).parents[1] / ".ci" / "tree.py"
    files = []
    for version in ("one", "other"):
        folder = place.root / version
        subprocess.run([sys.executable, tree, folder], check=True)
        with open(folder / "geomctrl" / "tracing" / "backends" / "llvm.py", "a", encoding="utf-8") as source:
            source.write(f"# {version}\n")
        assert place.result(place.start(f"import sys; sys.path.insert(0, {str(folder)!r})\n")) == []
        files.append({path.name for path in place.cache.glob("*.o")})
    first, both = files
    entries = 1  # the code that all calls share depends on its own text only
    assert len(first) > entries
    assert len(both) == 2 * len(first) - entries


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("filled"))
    assert place.run() == []
    return place


def flipped(at):
    return lambda whole: whole[: (k := int(at * len(whole)))] + bytes([whole[k] ^ 0x10]) + whole[k + 1 :]


DAMAGES = {
    "empty": lambda whole: b"",
    "half": lambda whole: whole[: len(whole) // 2],
    "garbage": lambda whole: b"garbage",
    "a flipped bit inside": flipped(0.6),
    "a flipped bit last": flipped(0.99999),
    "another's": None,
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
def test_every_damaged_file_is_said_once_and_healed(filled, damage):
    files = filled.files()
    contents = [path.read_bytes() for path in files]
    spoil = DAMAGES[damage]
    for path, other, whole in zip(files, contents[1:] + contents[:1], contents):
        path.write_bytes(other if spoil is None else spoil(whole))
    said = filled.run()
    assert len(said) == len(files)
    for path in files:
        assert sum(str(path) in line for line in said) == 1
    assert filled.run() == []
    assert filled.files() == files


@pytest.mark.slow
def test_processes_that_begin_together_with_nothing_compiled(place):
    together = [place.start() for _ in range(4)]
    assert [place.result(process) for process in together] == [[], [], [], []]
    assert place.run() == []
    assert not list(place.cache.glob("*.tmp"))


@pytest.mark.slow
@pytest.mark.parametrize("nth", [0, 2])
def test_a_writer_that_is_killed_before_its_nth_file_is_in_place(place, nth):
    killer = (
        "import itertools, os, signal\nfiles, replace = itertools.count(), os.replace\n"
        "def killed(*paths):\n"
        f"    os.kill(os.getpid(), signal.SIGKILL) if next(files) == {nth} else replace(*paths)\n"
        "os.replace = killed\n"
    )
    process = place.start(killer)
    process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL
    assert len(list(place.cache.glob("*.tmp"))) == 1
    assert place.run() == []
    assert place.run() == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_writer_that_is_killed_at_any_time(place, seed):
    process = place.start()
    try:
        process.wait(timeout=np.random.default_rng(seed).uniform(0.8, 3.0))
    except subprocess.TimeoutExpired:
        process.kill()
    process.communicate()
    assert place.run() == []
    assert place.run() == []


@pytest.mark.slow
def test_no_room_on_the_disk_and_no_folder(place):
    full = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
    (said,) = place.run(full)
    assert "File too large" in said
    assert not place.cache.exists() or not list(place.cache.iterdir())
    (said,) = place.run(cache="/proc/none")
    assert "/proc/none (" in said
    assert "GEOMCTRL_CACHE" in said
