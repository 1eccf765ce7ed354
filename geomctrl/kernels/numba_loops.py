"""Compile kernels with numba: entries and the primitives that they inline, cached on disk.

A kernel is a plain Python function that calls other plain functions by global names. Numba needs its own objects under
these names. So each kernel is compiled from a copy, the twin, whose globals and cells contain numba's objects.

With NUMBA_DISABLE_JIT=1 kernels run as they are, in Python, for debugging: breakpoints and prints work in every kernel,
and with GEOMCTRL_COMPILER=off all computations use them. An entry then accepts the same arguments as when compiled and
raises the same errors.
"""

from __future__ import annotations

import contextlib
import functools
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
import numpy as np
from numba.core import config, sigutils, types
from numba.np import numpy_support

from geomctrl import caches
from geomctrl.tracing.rebinding import empty_cells, rebind

from .interrupts import interrupts_deferred
from .primitives import FLAGS, STRICT_FLAGS, KernelTypeError, fingerprint, modules, python_function, references


@functools.cache
def uncompiled_entry(function: Callable[..., Any], signature: str) -> Callable[..., Any]:
    """Return the function, which raises KernelTypeError for other types than in `signature`, like compiled code."""
    declared, _ = sigutils.normalize_signature(signature)
    fits = [_fits(kind) for kind in declared]

    def call(*args):
        if len(args) != len(fits) or not all(good(x) for good, x in zip(fits, args)):
            raise KernelTypeError(function.__name__, declared, args)
        with np.errstate(all="ignore"):  # compiled code gives no warnings either
            return function(*args)

    called: Any = functools.wraps(function)(call)
    called.py_func = function
    return called


def _fits(kind: Any) -> Callable[[Any], bool]:
    if isinstance(kind, types.Array):
        dtype, axes = numpy_support.as_dtype(kind.dtype), kind.ndim
        return lambda x: type(x) is np.ndarray and x.dtype == dtype and x.ndim == axes and x.flags.carray
    if isinstance(kind, types.Integer):
        return lambda x: isinstance(x, (int, np.integer))
    if isinstance(kind, types.Float):
        return lambda x: isinstance(x, (int, float, np.number)) and not isinstance(x, np.complexfloating)
    return lambda x: True


# Only compiled code calls primitives. Wrappers for Python and C would take two fifths of a kernel's compilation time.
WITHOUT_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
HOOKS = ("_cache", "_compile_for_args")  # attributes of numba's dispatchers that it does not document
MAX_VERSIONS = 16  # of a kernel, kept on disk: for other processors and versions of numba, before and after an edit


@functools.cache
def entry(function: Callable[..., Any], signature: str, announce: Callable[[str], None], strict: bool = False) -> Any:
    """Return numba's dispatcher of an entry from Python, compiled or loaded at its first call, only for `signature`.

    announce: called with the entry's name before it is compiled, but not before it is loaded.
    """
    if getattr(config, "DISABLE_JIT", False):
        return uncompiled_entry(function, signature)
    twin = rebind(function, {}, empty_cells(function))
    flags: Any = STRICT_FLAGS if strict else FLAGS
    dispatcher: Any = numba.njit(nogil=function.__name__.endswith("_many"), **flags)(twin)  # batches: see `threads`

    def fill():
        announce(function.__name__)
        _fill(twin, function, strict)

    declared, _ = sigutils.normalize_signature(signature)
    if not all(hasattr(dispatcher, name) for name in HOOKS):
        return _without_internals(dispatcher, function, declared, fill)
    dispatcher._cache = _Cache(function, signature, fill, flags)

    def compile_declared(*args, **kwargs):
        if dispatcher.overloads:
            raise KernelTypeError(function.__name__, declared, args)
        with interrupts_deferred():
            dispatcher.compile(declared)
        return dispatcher

    dispatcher._compile_for_args = compile_declared
    dispatcher.py_func = function
    return dispatcher


def _without_internals(dispatcher: Any, function: Callable[..., Any], declared: Any, fill: Callable[[], None]) -> Any:
    """Return the entry for versions of numba with other internals. It is not cached: each process compiles it."""
    with interrupts_deferred():
        fill()
        dispatcher.compile(declared)
    dispatcher.disable_compile()

    @functools.wraps(function)
    def call(*args):
        try:
            return dispatcher(*args)
        except TypeError:
            raise KernelTypeError(function.__name__, declared, args) from None

    call.py_func = function  # pyright: ignore[reportAttributeAccessIssue]
    return call


def needs_no_compilation(call: Any) -> bool:
    """Whether an entry is a Python function, compiled in this process, or stored on disk."""
    if getattr(call, "overloads", True):  # of numba's dispatchers
        return True
    cache = getattr(call, "_cache", None)
    with contextlib.suppress(AttributeError):  # a version of numba with other internals
        return isinstance(cache, _Cache) and cache.is_stored(call.targetctx)
    return False


@functools.cache
def inlined(function: Callable[..., Any], strict: bool = False) -> Any:
    """Numba's dispatcher of a primitive."""
    twin = rebind(function, {}, empty_cells(function))
    _fill(twin, function, strict)
    internal = {"forceinline": True, **WITHOUT_WRAPPERS, "_nrt": _allocates(function)}
    njit: Any = numba.njit
    flags = STRICT_FLAGS if strict else FLAGS
    return njit(**{name: value for name, value in internal.items() if name in _internal_options()}, **flags)(twin)


@functools.cache
def _internal_options() -> frozenset[str]:
    """Return undocumented options of this version's compiler; without them compilation is slower."""
    try:
        from numba.core.options import DefaultOptions
    except ImportError:
        return frozenset()
    return frozenset(vars(DefaultOptions))


@functools.cache
def _allocates(function: Callable[..., Any]) -> bool:
    """Whether a primitive creates arrays. Others need no reference counts, which take a third of a small kernel."""
    if not {"empty", "zeros", "eye", "copy", "ravel", "reshape"}.isdisjoint(function.__code__.co_names):
        return True
    called = map(python_function, references(function).values())
    cells = (python_function(cell.cell_contents) for cell in function.__closure__ or ())
    return any(_allocates(inner) for inner in (*called, *cells) if inner is not None)


def _fill(twin: FunctionType, function: Callable[..., Any], strict: bool) -> None:
    """Set the twin's globals and cells. This is done when it is compiled; loading from disk does not need them."""
    twin.__globals__["__builtins__"] = __builtins__
    twin.__globals__.update({name: _for_numba(value, strict) for name, value in references(function).items()})
    for cell, original in zip(twin.__closure__ or (), function.__closure__ or ()):
        cell.cell_contents = _for_numba(original.cell_contents, strict)


def _for_numba(value: Any, strict: bool) -> Any:
    inner = python_function(value)
    return value if inner is None else inlined(inner, strict)


# --- on disk -----------------------------------------------------------------------------------------------------


class _Cache:
    """A dispatcher's machine code in one file, named by a hash of all that it depends on, with a checksum.

    Numba's own cache has an index and numbered files without checksums: flipped bytes end the process. If two processes
    write at once, or one is killed while writing, the index may refer to the code of another kernel.
    """

    def __init__(self, function: Callable[..., Any], signature: str, fill: Callable[[], None], options: Any = FLAGS):
        self.fill = fill
        chosen = getattr(config, "CACHE_DIR", "")  # NUMBA_CACHE_DIR
        self.folders = (Path(chosen),) if chosen else caches.folders(Path(__file__).parent)
        name = function.__qualname__.translate({ord(c): None for c in "<>"})  # not in names of Windows' files
        self.title = f"{function.__module__}.{name}.{sys.implementation.cache_tag}"
        flags = options["error_model"], sorted(options.get("fastmath", ())), "nogil"
        self.key = fingerprint(function), signature, flags, numba.__version__, modules(function)

    @property
    def cache_path(self):
        return str(self.folders[0])

    def _name(self, codegen: Any) -> str:
        processor = codegen.magic_tuple()
        return f"{self.title}.{caches.file_name((self.key, processor), '.nbc')}"

    def is_stored(self, target_context) -> bool:
        return any((folder / self._name(target_context.codegen())).is_file() for folder in self.folders)

    def load_overload(self, sig, target_context):
        target_context.refresh()

        def load(code: bytes) -> Any:
            from numba.core.compiler import CompileResult

            return CompileResult._rebuild(target_context, *pickle.loads(code))

        loaded = None
        with contextlib.suppress(AttributeError):  # a version of numba with other internals: nothing is cached
            loaded = caches.read(self.folders, self._name(target_context.codegen()), load)
        if loaded is None:
            self.fill()
        return loaded

    def save_overload(self, sig, cres):
        try:
            from numba.core.serialize import dumps

            if cres.library.has_dynamic_globals:  # addresses of this process
                return
            name, code = self._name(cres.codegen), dumps(cres._reduce())
        except (AttributeError, ImportError):
            return
        caches.write(self.folders, name, code)
        caches.keep_newest(self.folders, f"{self.title}.*.nbc", MAX_VERSIONS)
