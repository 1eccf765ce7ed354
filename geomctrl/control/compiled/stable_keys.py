"""Keys of traces that are valid in other processes: the key in memory, with a description for each object in it.

Code of users and installed packages is described by its contents. Objects of libraries are described by their name and
the release of their package, and only if that name leads to the object. geomctrl is described by its files, and by what
its modules contain now, so that edits, updates and replaced members give another key. Anything else, such as replaced
members of modules that laws call, has no description: the trace is then not stored.
"""

from __future__ import annotations

import dis
import enum
import functools
import hashlib
import marshal
import re
import sys
import types
from collections.abc import Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.integrators.tableaus import Tableau
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.tracing.backends import host
from geomctrl.tracing.code_identity import (
    HEAP_TYPE,
    MISSING,
    PLAIN,
    Identity,
    Names,
    codes,
    functions_in,
    is_followed,
    origin,
    plain_value,
    release,
)
from geomctrl.tracing.object_kinds import PURE_MODULES

from .object_kinds import REPLACEMENTS
from .robot_numbers import constants

OWN_MODULES = "geomctrl."
NO_REFERENCES = 2  # version of marshal in which equal objects give equal bytes
SHAPE_OF_CODE = attrgetter(
    *("co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_flags", "co_names", "co_varnames", "co_freevars"),
    *("co_cellvars", "co_name", "co_qualname"),
)
UNNAMED = {"__dict__", "__weakref__", "__doc__", "_abc_impl", "__annotations__", "__annotations_cache__"}
OF_PROCESS, BUILD_SET = {"set", "frozenset", "hash", "id"}, dis.opmap["BUILD_SET"]
MARSHALLED = {str, bytes, int, float, bool, type(None)}
FIELD = type(Names.loaded)  # of a named tuple
UFUNCS = ("numpy", "scipy.special")  # modules of functions that do not name one


class UndescribedError(Exception):
    """An object can not be identified in another process."""


def stable_key(key: tuple) -> str:
    """The digest of a trace's key, equal in every process with the same code; "" if it can not be described."""
    try:
        if REPLACEMENTS.now():
            return ""
        parts = repr(_described(key)), _package(len(sys.modules)), sys.version, sys.platform, np.__version__
    except UndescribedError:
        return ""
    return hashlib.sha256(repr((*parts, host.description())).encode()).hexdigest()


def _described(x: Any) -> Any:
    """A part of a key as nested tuples of plain values, whose repr identifies it."""
    kind = type(x)
    if kind is Identity:
        return "object", *_object(x.object)
    if kind in (str, bytes, int, bool, float, type(None)):
        return x
    if kind in (tuple, list):
        return kind.__name__, *map(_described, x)
    if issubclass(kind, type):
        return "class", *_class(x)
    if issubclass(kind, PLAIN):
        return "plain", *map(_described, plain_value(x))
    if kind is np.ndarray and x.dtype != object:
        return "array", x.dtype.str, x.shape, x.tobytes()
    if kind is Tableau:
        return "tableau", *((name, _described(value)) for name, value in sorted(vars(x).items()) if name in FIELDS)
    raise UndescribedError(f"{kind.__name__} in a key")


FIELDS = {"family", "A", "b", "c", "order", "b_hat"}  # of a tableau, but for its name and what follows from them


def _object(x: Any) -> tuple:
    """The description of an object that a key names by its id()."""
    kind = type(x)
    if x is MISSING or x is NotImplemented:
        return ("missing" if x is MISSING else "NotImplemented",)
    if issubclass(kind, type):
        return _class(x)
    if issubclass(kind, enum.Enum):
        return "member", *_class(kind), x.name, _member(x.value)
    if issubclass(kind, PLAIN):
        return "plain", *map(_described, plain_value(x))
    if kind is types.CodeType:
        return ("code", *_code(x))
    if kind is types.ModuleType:
        return "module", x.__name__, _release(x.__name__)
    if kind is types.FunctionType and is_followed(x.__module__):
        return "function", x.__module__, x.__qualname__, *_code(x.__code__)
    if issubclass(kind, Mechanism):
        return "robot", *_class(kind), constants(x)
    if kind.__module__ in PURE_MODULES:
        return "pure", *_class(kind), repr(x)
    if kind is re.Pattern:
        return "pattern", x.pattern, x.flags
    if kind is FIELD:
        return "field", *x.__reduce__()[1]
    if isinstance(x, np.dtype):
        return "dtype", x.str, repr(x)
    if kind is types.BuiltinFunctionType and isinstance(x.__self__, type):  # as tuple.__new__
        return "bound", *_class(x.__self__), x.__name__, getattr(x.__self__, x.__name__, None) == x or _undescribed(x)
    owner = getattr(x, "__objclass__", None)
    if owner is not None:
        return "method", *_class(owner), x.__name__, vars(owner).get(x.__name__) is x or _undescribed(x)
    return _of_library(x)


def _of_library(x: Any) -> tuple:
    """A function or class of a library or of geomctrl: its name, the module there, and the module's release."""
    names = {getattr(x, "__qualname__", None): None, getattr(x, "__name__", None): None}
    for name in filter(None, names):
        for module in filter(None, (getattr(x, "__module__", None), *UFUNCS)):
            member = sys.modules.get(module)
            for part in name.split("."):
                member = getattr(member, part, None)
            if member is x:
                return module, name, _release(module)
    return _undescribed(x)


def _class(x: type) -> tuple:
    if not x.__flags__ & HEAP_TYPE:  # written in C, of which some have no name in their module
        return x.__module__, x.__qualname__, _release(x.__module__)
    if not is_followed(x.__module__):
        return _of_library(x)
    members = ((name, *_member(value)) for name, value in vars(x).items() if name not in UNNAMED)
    return x.__module__, x.__qualname__, tuple(members)


def _member(x: Any) -> tuple:
    """A member of a class or module: the code of functions, the value of plain objects, the class of others."""
    kind = type(x)
    if issubclass(kind, PLAIN) and not issubclass(kind, enum.Enum):
        return kind.__qualname__, repr(plain_value(x)[1])
    if kind is np.ndarray and x.dtype != object:
        return x.dtype.str, x.shape, x.tobytes()
    if kind is tuple:
        return tuple(map(_member, x))
    return kind.__qualname__, *(part for f in functions_in(x) for part in (*_content(f.__code__), *_defaults(f)))


def _defaults(f: types.FunctionType) -> Iterator[Any]:
    yield _member(f.__defaults__)
    yield tuple((name, _member(x)) for name, x in (f.__kwdefaults__ or {}).items())


def _code(code: types.CodeType) -> tuple:
    """What a user's code computes, without its file and lines."""
    for c in codes(code):
        if BUILD_SET in c.co_code[::2] or not OF_PROCESS.isdisjoint(c.co_names):
            raise UndescribedError(f"{c.co_name}: the order of a set, hash() and id() differ between processes")
    return _content(code)


def _content(code: types.CodeType) -> tuple:
    parts = []
    for c in codes(code):
        constants = [_constant(x) for x in c.co_consts if type(x) is not types.CodeType]
        parts += c.co_code, c.co_exceptiontable, *SHAPE_OF_CODE(c), *constants
    return tuple(parts)


def _constant(x: Any) -> str:
    """The repr of a constant, with the elements of a set in an order that does not depend on their hashes."""
    return repr((frozenset, sorted(map(repr, x)))) if type(x) is frozenset else repr(x)


def _release(module: str) -> str:
    return release(module) if origin(module) == "library" else ""


def _undescribed(x: Any) -> Any:
    raise UndescribedError(f"{type(x).__name__} {getattr(x, '__name__', '')}")


@functools.lru_cache(maxsize=1)
def _package(modules: int) -> str:
    """A digest of geomctrl: its files, and the code and constants in its modules. modules: imported ones, all told."""
    digest = hashlib.blake2b()
    for name, module in sorted(sys.modules.items()):
        is_module = isinstance(module, types.ModuleType) and module.__name__ == name  # under its own name
        if is_module and name.startswith(OWN_MODULES):
            file, contents = getattr(module, "__file__", None), list(_contents(vars(module), name))
            digest.update(f"{name};".encode() + (Path(file).read_bytes() if file else b""))
            try:
                digest.update(marshal.dumps(contents, NO_REFERENCES))
            except ValueError:  # code with slices, in Python 3.14
                digest.update(repr([_content(x) if type(x) is types.CodeType else x for x in contents]).encode())
    return digest.hexdigest()


def _contents(members: Mapping[str, Any], module: str) -> Iterator[Any]:
    """Members of a module of geomctrl, or of its classes, but for what other modules of geomctrl define."""
    space = vars(sys.modules[module])
    for name, x in members.items():
        kind = type(x)
        if kind in MARSHALLED:
            yield name, x
        elif kind is types.FunctionType:
            yield name, x.__module__, x.__qualname__
            if x.__globals__ is space:
                yield x.__code__
                yield None if x.__defaults__ is None else repr(_member(x.__defaults__))
            else:
                _require_known(x)
        elif issubclass(kind, type):
            yield name, x.__module__, x.__qualname__
            if x.__module__ == module and members is space:
                yield from _contents(vars(x), module)
            elif is_followed(x.__module__):
                yield repr(_class(x))
        elif kind is not types.ModuleType and name not in UNNAMED:
            for f in functions_in(x):
                if f.__globals__ is not space:
                    _require_known(f)
            yield name, repr(_member(x))


def _require_known(f: types.FunctionType) -> None:
    """Raise UndescribedError for a user's function in a module of geomctrl, because it may use any other object."""
    module = f.__globals__.get("__name__", "")
    if module and origin(module) == "user" and not module.startswith("namedtuple_"):
        raise UndescribedError(f"{f.__qualname__} in geomctrl")
