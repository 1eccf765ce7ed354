"""Numba's way to run kernels: entries and what they inline, compiled once and kept on disk.

A kernel is a plain Python function whose globals name other plain functions. Numba wants its own objects there, so each
is compiled from a twin: the same code, with the primitives among its globals and cells replaced by numba's.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

import numba
from numba.core import caching, config, sigutils

from . import uncompiled
from .primitives import FLAGS, KernelTypeError, fingerprint, python_function, references


@functools.cache
def entry(function: Callable[..., Any], signature: str, announce: Callable[[str], None]) -> Any:
    """Numba's dispatcher of an entry from Python: compiled or loaded at its first call, for `signature` alone.

    announce: called with the entry's name before it is compiled, not where it is loaded.
    """
    if getattr(config, "DISABLE_JIT", False):
        return uncompiled.entry(function, signature)
    twin = _twin(function)
    dispatcher: Any = numba.njit(nogil=function.__name__.endswith("_many"), **FLAGS)(twin)  # batches: see `threads`

    def fill():
        announce(function.__name__)
        _fill(twin, function)

    try:
        dispatcher._cache = _Cache(twin, function, fill)
    except RuntimeError:  # no writable place for a cache: kernels then live for one process
        fill()
    declared, _ = sigutils.normalize_signature(signature)

    def compile_declared(*args, **kwargs):
        if dispatcher.overloads:
            raise KernelTypeError(function.__name__, declared, args)
        dispatcher.compile(declared)
        return dispatcher

    dispatcher._compile_for_args = compile_declared
    dispatcher.py_func = function
    return dispatcher


@functools.cache
def inlined(function: Callable[..., Any]) -> Any:
    """Numba's dispatcher of a primitive."""
    twin = _twin(function)
    _fill(twin, function)
    njit: Any = numba.njit
    return njit(forceinline=True, _nrt=_allocates(function), **FLAGS)(twin)


@functools.cache
def _allocates(function: Callable[..., Any]) -> bool:
    """Whether a primitive makes arrays. The others need no reference counts, a third of a small kernel's time."""
    if not {"empty", "zeros", "eye", "copy", "ravel", "reshape"}.isdisjoint(function.__code__.co_names):
        return True
    called = map(python_function, references(function).values())
    cells = (python_function(cell.cell_contents) for cell in function.__closure__ or ())
    return any(_allocates(inner) for inner in (*called, *cells) if inner is not None)


def _twin(function: Callable[..., Any]) -> FunctionType:
    cells = tuple(CellType() for _ in function.__closure__ or ())
    twin = FunctionType(function.__code__, {}, function.__name__, function.__defaults__, cells)
    twin.__module__, twin.__qualname__ = function.__module__, function.__qualname__
    return twin


def _fill(twin: FunctionType, function: Callable[..., Any]) -> None:
    """Give the twin its globals and cells: only when it is compiled, as loading from disk needs none of them."""
    twin.__globals__["__builtins__"] = __builtins__
    twin.__globals__.update({name: _for_numba(value) for name, value in references(function).items()})
    for cell, original in zip(twin.__closure__ or (), function.__closure__ or ()):
        cell.cell_contents = _for_numba(original.cell_contents)


def _for_numba(value: Any) -> Any:
    inner = python_function(value)
    return value if inner is None else inlined(inner)


# --- on disk -----------------------------------------------------------------------------------------------------


def _fingerprinted(locator: type) -> type:
    """A place for files that tells stale ones by what the kernel computes, not by when its file was written."""
    return type("Fingerprinted" + locator.__name__, (locator,), {"get_source_stamp": lambda self: ""})


class _CacheImpl(caching.CompileResultCacheImpl):
    _locator_classes = [  # noqa: RUF012 (numba's own attribute)
        _fingerprinted(caching.UserProvidedCacheLocator),
        _fingerprinted(caching.InTreeCacheLocator),
        _fingerprinted(caching.UserWideCacheLocator),
    ]


class _Cache(caching.FunctionCache):
    _impl_class = _CacheImpl

    def __init__(self, twin, function, fill):
        super().__init__(twin)
        self.fill, self.key = (
            fill,
            fingerprint(function) + repr((FLAGS["error_model"], sorted(FLAGS["fastmath"]), "nogil")),
        )
        self._cache_file._source_stamp = self.key

    def load_overload(self, sig, target_context):
        found = None
        with contextlib.suppress(Exception):  # whatever a damaged file raises, compiling is the remedy
            found = super().load_overload(sig, target_context)
        if found is None:
            self.fill()
        return found

    def save_overload(self, sig, data):
        try:
            super().save_overload(sig, data)
        except Exception:  # the index is damaged: begin another
            with contextlib.suppress(OSError):
                self.flush()
                super().save_overload(sig, data)

    def _index_key(self, sig, codegen):  # numba's own would hash closures, which differ from process to process
        return sig, codegen.magic_tuple(), self.key
