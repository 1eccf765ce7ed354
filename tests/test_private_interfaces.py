"""What other packages do not document is used where it is there; each use falls back on what they document.

These are all: the memory layout of numpy's arrays and its C API's table (`entries.works`), and in numba the hooks of
dispatchers, what a compiled function is pickled as, and options of its compiler.
"""

import ast
import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from numba.core.options import DefaultOptions

from geomctrl import models
from geomctrl.kernels import numba_loops
from geomctrl.kernels.primitives import KernelTypeError
from geomctrl.tracing.backends import entries

ROOT = Path(__file__).parents[1]
LIBRARY = [path for name in ("geomctrl", "models", "controllers") for path in sorted((ROOT / name).rglob("*.py"))]
USES = {
    "geomctrl/kernels/numba_loops.py": {"_cache", "_compile_for_args", "_rebuild", "_reduce"},
    "geomctrl/tracing/backends/entries.py": {"_core", "_ARRAY_API"},
}
SIGNATURE = "void(float64[::1], float64[::1])"


def doubled(x, y):
    for i in range(len(x)):
        y[i] = 2.0 * x[i]


def entry(monkeypatch, folder):
    monkeypatch.setenv("GEOMCTRL_CACHE", str(folder))
    monkeypatch.setattr(numba_loops.config, "CACHE_DIR", "")
    numba_loops.entry.cache_clear()
    return numba_loops.entry(doubled, SIGNATURE, lambda name: None)


def assert_it_works(call):
    x, y = np.array([1.5, -2.0]), np.zeros(2)
    call(x, y)
    assert y.tolist() == [3.0, -4.0]
    with pytest.raises(KernelTypeError, match="doubled is compiled for"):
        call([1.5], y)
    assert call.py_func is doubled


def test_the_hooks_of_numba_are_used_where_they_are(monkeypatch, tmp_path):
    assert_it_works(entry(monkeypatch, tmp_path))
    assert len(list(tmp_path.glob("*.nbc"))) == 1


def test_without_numbas_compiler_kernels_are_python_functions(monkeypatch, tmp_path):
    monkeypatch.setattr(numba_loops.config, "DISABLE_JIT", True)
    call = entry(monkeypatch, tmp_path)
    assert_it_works(call)
    assert not hasattr(call, "overloads")  # of numba's dispatchers
    assert not list(tmp_path.iterdir())


def test_without_the_hooks_of_numba_every_process_compiles(monkeypatch, tmp_path):
    monkeypatch.setattr(numba_loops, "HOOKS", ("_cache", "_renamed"))
    assert_it_works(entry(monkeypatch, tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["_reduce", "codegen"])
def test_without_what_numba_pickles_nothing_is_kept(name, monkeypatch, tmp_path):
    from numba.core.compiler import CompileResult

    def missing(result):
        raise AttributeError(name)

    monkeypatch.setattr(CompileResult, name, property(missing), raising=False)
    assert_it_works(entry(monkeypatch, tmp_path))
    assert not list(tmp_path.iterdir())


def test_without_options_that_numba_does_not_document_kernels_are_compiled(monkeypatch, tmp_path):
    assert {"forceinline", "no_cpython_wrapper", "no_cfunc_wrapper", "_nrt"} <= vars(DefaultOptions).keys()
    monkeypatch.setattr(numba_loops, "_internal_options", frozenset)
    assert_it_works(entry(monkeypatch, tmp_path))


def test_without_numpys_table_calls_go_through_python(monkeypatch):
    """Without numpy's C API table, or with another layout of its arrays, `works` is False."""
    entries._addresses.cache_clear()
    imported = importlib.import_module

    def without(name, *arguments):
        if name.endswith("_multiarray_umath"):
            raise ImportError(name)
        return imported(name, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(importlib, "import_module", without)
        assert not entries.works.__wrapped__()
    entries._addresses.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(entries, "DATA", entries.DIMENSIONS)
        assert not entries.works.__wrapped__()
    assert entries.works.__wrapped__()


def test_without_numpys_layout_robots_calculate_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    q, v, a = rng.standard_normal((3, 7))
    expected = models.panda().inverse_dynamics(q, v, a)
    monkeypatch.setattr(entries, "works", lambda: False)
    assert np.array_equal(models.panda().inverse_dynamics(q, v, a), expected)


def test_this_is_the_list_of_them():
    """Attributes with an underscore of objects of numpy, numba, llvmlite and pytest; types set on ctypes.pythonapi."""
    foreign = r"\b(?:np|numpy|numba|llvm|llvmlite|pytest|scipy|dispatcher|cres|CompileResult)\.(?:\w+\.)*(_[a-z]\w*)"
    outcome = {}
    for path in LIBRARY:
        text = path.read_text(encoding="utf-8")
        names = set(re.findall(foreign, text))
        if "_ARRAY_API" in text:
            names |= {"_ARRAY_API", "_core"}
        imports_private = re.search(r"_pytest|numpy\._?core", text)  # only these files are parsed
        for node in ast.walk(ast.parse(text)) if imports_private else ():
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not [m for m in modules if m.startswith(("_pytest", "numpy.core", "numpy._core"))], path
        if names := {name for name in names if not name.startswith("__")}:
            outcome[path.relative_to(ROOT).as_posix()] = names
        assert not re.search(r"pythonapi[\w.]*\.(restype|argtypes)", text), path
    assert outcome == USES
