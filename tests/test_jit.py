"""Kernels: one signature each, and a cache that no edit makes stale."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import geomctrl
from geomctrl.kernels import jit
from geomctrl.kernels.jit import KernelTypeError, kernel

CORE = Path(geomctrl.__file__).parent


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
from {package}.jit import primitive

@primitive
def scale(x):
    return {factor} * x
"""
CALLER = """
from {package}.jit import kernel
from {package}.callee import scale

@kernel("f8(f8)")
def scaled(x):
    return scale(x)
"""


@pytest.fixture
def package(tmp_path):
    """A package of our jit.py, a kernel and, in another file, the primitive it calls."""
    root = tmp_path / "scratch"
    root.mkdir()
    shutil.copy(CORE / "jit.py", root)
    (root / "__init__.py").touch()
    (root / "caller.py").write_text(CALLER.format(package="scratch"))
    return root


def write_callee(package, factor):
    (package / "callee.py").write_text(LIBRARY.format(package="scratch", factor=factor))


def run(package, code, hash_seed="0"):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", code]
    out = subprocess.run(command, cwd=package.parent, env=environment, capture_output=True, text=True, check=True)
    return out.stdout.split()


CALL = (
    "from scratch.caller import scaled; from scratch.jit import source_stamp;"
    "print(scaled(1.0), source_stamp(), sum(scaled.stats.cache_hits.values()))"
)


def test_editing_a_callees_file_recompiles_its_callers(package):
    write_callee(package, 2.0)
    value, stamp, hits = run(package, CALL)
    assert (float(value), int(hits)) == (2.0, 0)
    again = run(package, CALL)
    assert (float(again[0]), again[1], int(again[2])) == (2.0, stamp, 1)
    write_callee(package, 3.0)
    edited = run(package, CALL)
    assert (float(edited[0]), int(edited[2])) == (3.0, 0)
    assert edited[1] != stamp


def test_stamp_is_the_same_in_every_process(package):
    """Sets of strings print in an order that changes from process to process."""
    stamp = "from scratch.jit import source_stamp; print(source_stamp())"
    assert len({run(package, stamp, str(seed))[0] for seed in range(4)}) == 1


def test_files_without_kernels_do_not_count(package):
    write_callee(package, 2.0)
    _, stamp, _ = run(package, CALL)
    (package / "notes.py").write_text("# no kernels here\n")
    _, other, hits = run(package, CALL)
    assert (other, int(hits)) == (stamp, 1)


def test_compiler_flags_count(package):
    write_callee(package, 2.0)
    _, stamp, _ = run(package, CALL)
    source = (package / "jit.py").read_text()
    (package / "jit.py").write_text(source.replace('"arcp"', '"afn"'))
    assert '"afn"' in (package / "jit.py").read_text()
    assert run(package, CALL)[1] != stamp


def test_stamp_covers_every_file_of_the_core_that_holds_kernels():
    """It looks in the package's own folder only: kernels elsewhere would go stale unseen."""
    texts = {p: p.read_text() for p in CORE.rglob("*.py")}
    holders = {p for p, text in texts.items() if "@kernel(" in text or "@primitive" in text}
    assert {p.parent for p in holders} == {CORE}
    assert jit.source_stamp() == jit.source_stamp()
