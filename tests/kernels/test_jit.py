"""Kernels have one signature each, and their cache never returns code of an earlier version."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import geomctrl
from geomctrl.kernels import numba_loops, tree
from geomctrl.kernels.interrupts import interrupts_deferred
from geomctrl.kernels.jit import kernel
from geomctrl.kernels.primitives import KernelTypeError, fingerprint, primitive, references

CORE = Path(geomctrl.__file__).parent / "kernels"


@kernel("f8(f8[::1])")
def first(x):
    return x[0]


@kernel("f8(f8[::1])")
def second(x):
    return x[1]


def test_a_kernel_takes_its_declared_types_alone():
    x = np.array([0.1, 0.2])
    assert second(x) == 0.2
    for wrong in (x.astype(np.float32), x.astype(int), x[:, None], np.zeros(4)[::2], [0.1, 0.2], None, 0.1):
        with pytest.raises(KernelTypeError, match="second is compiled for"):
            second(wrong)
    assert len(second.overloads) == 1


def test_a_first_call_with_other_types_does_not_compile_for_them():
    for _ in range(2):
        with pytest.raises(KernelTypeError, match="first is compiled for"):
            first(np.array([1, 2]))
    assert first(np.array([2.5])) == 2.5
    assert len(first.overloads) == 1


def test_kernel_type_error_is_a_type_error_and_names_what_came():
    first(np.ones(1))
    with pytest.raises(TypeError, match=r"got \(array\(float32, 1d, C\)\)"):
        first(np.ones(1, dtype=np.float32))


LIBRARY = """
from {package}.primitives import primitive

FACTOR = {factor}

@primitive
def scale(x):
    return FACTOR * x
"""
CALLER = """
from {package}.jit import kernel
from {package}.callee import scale

@kernel("f8(f8)")
def scaled(x):
    return scale(x)

def times(function):
    def twice(x):
        return 2.0 * function(x)
    twice.__name__ = twice.__qualname__ = "doubled"
    return kernel("f8(f8)")(twice)

doubled = times(scale)
"""


@pytest.fixture
def package(tmp_path):
    """A package with a copy of our jit, a kernel and, in another file, the primitive that it calls."""
    root = tmp_path / "scratch"
    root.mkdir()
    for name in ("jit", "interrupts", "primitives", "numba_loops"):
        shutil.copy(CORE / f"{name}.py", root)
    (root / "__init__.py").touch()
    (root / "caller.py").write_text(CALLER.format(package="scratch"))
    return root


def write_callee(package, factor, comment=""):
    (package / "callee.py").write_text(comment + LIBRARY.format(package="scratch", factor=factor))


def run(package, code, hash_seed="0"):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "GEOMCTRL_"))}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", code]
    out = subprocess.run(command, cwd=package.parent, env=environment, capture_output=True, text=True, check=True)
    return out.stdout.split()


CALL = (
    "from scratch import caller; from scratch.primitives import fingerprint;"
    "value = caller.{name}(1.0); function = caller.{name}.py_func;"
    "print(value, fingerprint(function), sum(caller.{name}.stats.cache_hits.values()))"
)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "times"), [("scaled", 1.0), ("doubled", 2.0)])
def test_editing_what_a_kernel_calls_recompiles_it(package, name, times):
    """`doubled` is defined in a closure, whose hash would differ between processes."""
    call = CALL.format(name=name)
    write_callee(package, 2.0)
    value, stamp, hits = run(package, call)
    assert (float(value), int(hits)) == (2.0 * times, 0)
    again = run(package, call, hash_seed="1")
    assert (float(again[0]), again[1], int(again[2])) == (2.0 * times, stamp, 1)
    write_callee(package, 3.0)
    edited = run(package, call)
    assert (float(edited[0]), int(edited[2])) == (3.0 * times, 0)
    assert edited[1] != stamp


def test_comments_and_other_files_recompile_nothing(package):
    call = CALL.format(name="scaled")
    write_callee(package, 2.0)
    _, stamp, _ = run(package, call)
    write_callee(package, 2.0, "# a comment\n")
    (package / "notes.py").write_text("# no kernels here\n")
    _, other, hits = run(package, call)
    assert (other, int(hits)) == (stamp, 1)


def test_compiler_flags_count(package):
    call = CALL.format(name="scaled")
    write_callee(package, 2.0)
    run(package, call)
    source = (package / "primitives.py").read_text()
    (package / "primitives.py").write_text(source.replace('"arcp"', '"afn"'))
    assert '"afn"' in (package / "primitives.py").read_text()
    assert int(run(package, call)[2]) == 0


@pytest.mark.slow
def test_damaged_files_of_the_cache_are_compiled_again(package):
    call = CALL.format(name="scaled")
    write_callee(package, 2.0)
    run(package, call)
    files = [p for p in package.rglob("*.nb?") if "scaled" in p.name]
    assert files
    for damage in (b"", b"garbage"):
        for path in files:
            path.write_bytes(damage)
        assert float(run(package, call)[0]) == 2.0


def test_who_watches_hears_of_compiling_and_not_of_loading(package):
    watched = (
        "from scratch import caller; from scratch.jit import watch_compiling\n"
        "heard = []\nwith watch_compiling(heard.append): caller.scaled(1.0), caller.scaled(2.0)\n"
        "caller.doubled(1.0); print(heard)"
    )
    write_callee(package, 2.0)
    assert run(package, watched) == ["['scaled']"]
    assert run(package, watched) == ["[]"]


def test_ctrl_c_takes_effect_once_a_kernel_is_compiled(package):
    interrupted = (
        "import signal; from scratch import caller; from scratch.jit import watch_compiling\n"
        "try:\n with watch_compiling(lambda name: signal.raise_signal(signal.SIGINT)): caller.scaled(1.0)\n"
        "except KeyboardInterrupt: print(len(caller.scaled.overloads), caller.scaled(1.0))"
    )
    write_callee(package, 2.0)
    assert run(package, interrupted) == ["1", "2.0"]


def test_a_second_ctrl_c_takes_effect_at_once():
    before, steps = signal.getsignal(signal.SIGINT), []

    def press():
        with interrupts_deferred():
            for _ in range(3):
                signal.raise_signal(signal.SIGINT)
                steps.append("next")

    with pytest.raises(KeyboardInterrupt):
        press()
    assert steps == ["next"]
    assert signal.getsignal(signal.SIGINT) is before
    with interrupts_deferred():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


@kernel("f8(f8)")
def plain(x):
    return 2.0 * x


def test_a_kernel_runs_on_anything_as_plain_python():
    assert plain.py_func(2 + 1j) == 4 + 2j
    model = np.zeros(3 * tree.WIDTH)
    model[2 * tree.WIDTH + tree.NB] = 2.0
    assert tree.n_bodies(model) == 2


def test_a_kernel_refers_to_nothing_that_has_no_fingerprint():
    with pytest.raises(TypeError, match=r"uses os = <module 'os'.*a kernel can only use"):
        fingerprint(uses_a_foreign_module)


def uses_a_foreign_module():
    return os.getpid()


def test_decorating_does_not_import_numba():
    code = "import sys, geomctrl.kernels.composite_bodies, geomctrl.robot; print('numba' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False"]


def test_what_numba_compiles_lives_in_kernels():
    for path in CORE.parent.rglob("*.py"):
        text = path.read_text()
        if "@kernel(" in text or "@primitive" in text:
            assert path.parent == CORE, path


@primitive
def ancestor(x):
    return x.ancestor + 1.0


class Record(NamedTuple):
    ancestor: float


def test_a_field_is_no_global_of_its_name():
    assert "ancestor" not in references(ancestor)
    assert fingerprint(ancestor)
    assert ancestor(Record(2.0)) == 3.0


@primitive
def half(x):
    return 0.5 * x


def test_primitives_have_no_wrappers():
    """Wrappers for Python and C that are never called: they would take two fifths of the compilation time."""
    dispatcher = numba_loops.inlined(half)
    dispatcher.compile("f8(f8)")
    (made,) = dispatcher.overloads.values()
    assert [x.name for x in made.library.get_defined_functions() if "cpython" in x.name or "cfunc" in x.name] == []


def test_numba_without_internal_options(monkeypatch):
    def eighth(x):
        return half(half(half(x[0])))

    monkeypatch.setattr("numba.core.options.DefaultOptions", type("DefaultOptions", (), {}))
    numba_loops._internal_options.cache_clear()
    numba_loops.inlined.cache_clear()
    try:
        assert numba_loops.entry(eighth, "f8(f8[::1])", print)(np.array([3.0])) == 0.375
        assert not numba_loops.inlined(half).targetoptions.keys() & {"forceinline", "_nrt"}
    finally:
        numba_loops._internal_options.cache_clear()
        numba_loops.inlined.cache_clear()
