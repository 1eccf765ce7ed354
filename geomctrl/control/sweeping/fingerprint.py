"""Digests of everything that determines the results of a sweep: two sweeps are the same if their digests agree.

A function is identified by its code, defaults, closure, and the globals that it uses, followed recursively through
functions, classes and modules of users and installed packages. Compiled code of installed packages and numerical
libraries are identified by version and file, geomctrl by its version and by replaced (monkeypatched) attributes.
Comments and formatting do not matter.
"""

from __future__ import annotations

import enum
import hashlib
import importlib.metadata
import platform
import sys
import types
from dataclasses import replace
from typing import Any

import numpy as np

from geomctrl.control.compiled.object_kinds import CALLED
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.tracing.code_identity import (
    PLAIN,
    attributes_of,
    in_cell,
    is_followed,
    is_foreign,
    is_own_class,
    names_of,
    origin,
    parts_of,
    plain_value,
    release,
    replaced_in,
)

SKIPPED = {"__dict__", "__weakref__", "__module__", "__doc__", "__firstlineno__", "__static_attributes__"}
CREATED = {"__annotations__", "__annotations_cache__"}  # attributes that appear when they are first read


def versions() -> dict[str, str]:
    """Versions of Python, geomctrl and numerical libraries."""
    return {
        "geomctrl": importlib.metadata.version("geomctrl"),
        "numpy": np.__version__,
        "python": ".".join(platform.python_version_tuple()[:2]),
    }


def fingerprint(x: Any) -> dict[str, str]:
    """Digest of x under the key "", and digests by name of the user's functions and classes that it uses."""
    digests = _Digests()
    whole = digests.of(x)
    for name, value in replaced_in(*CALLED).items():
        digests.named[name] = digests.of(value)
    return {"": whole, **digests.named}


def same_result(x: Any, y: Any) -> bool:
    """Whether two objects have the same contents and code, so that a loop with one computes what it does with other."""
    digests = _Digests()
    return x is y or digests.of(x) == digests.of(y)


class _Digests:
    def __init__(self):
        self.named: dict[str, str] = {}
        self.seen: dict[int, str] = {}
        self.kept: list[Any] = []  # keeps visited objects alive, so that their id() is not reused

    def of(self, x: Any) -> str:
        kind = type(x)
        if issubclass(kind, PLAIN) and not issubclass(kind, enum.Enum) and not is_own_class(kind):
            return _short(f"{kind.__name__} {plain_value(x)[1]!r}")
        if kind is np.ndarray and x.dtype != object:
            return _short(f"{x.dtype.str} {x.shape}", np.ascontiguousarray(x).tobytes())
        if id(x) not in self.seen:
            self.kept.append(x)
            self.seen[id(x)] = "within itself"
            self.seen[id(x)] = self._visit(x)
        return self.seen[id(x)]

    def all(self, *parts: Any) -> str:
        return _short(" ".join(self.of(part) for part in parts))

    def _visit(self, x: Any) -> str:
        if isinstance(x, types.CodeType):
            return self.all(x.co_code, x.co_names, x.co_varnames, x.co_freevars, x.co_consts)
        if type(x) in (list, tuple):
            return self.all(type(x).__name__, *x)
        if type(x) in (set, frozenset):
            return self.all("set", *sorted(self.of(item) for item in x))
        if type(x) in (dict, types.MappingProxyType):
            return self.all("dict", *(part for item in x.items() for part in item))
        if isinstance(x, types.ModuleType):
            return self.of(f"module {x.__name__}")
        if (parts := parts_of(x)) is not None:
            return self.all(type(x).__name__, *parts)
        if isinstance(x, (types.BuiltinFunctionType, types.MethodDescriptorType)):
            return self._compiled(x)
        if isinstance(x, types.FunctionType):
            return self._named(x, x.__globals__.get("__name__"), self._function)
        if isinstance(x, type):
            return self._named(x, x.__module__, self._class)
        if origin(type(x).__module__) == "library" and hasattr(x, "__wrapped__"):  # for example a numba dispatcher
            return self.all("wrapped", x.__wrapped__)
        return self._object(x)

    def _named(self, x: Any, module: Any, describe: Any) -> str:
        """A reference to an entry listed by name; objects that are not followed need no entry."""
        if not is_followed(module):
            place = release(module) if origin(module) == "library" else module
            replaced = self._replaced(x) if origin(module) == "geomctrl" else []
            return self.all(f"{place}.{x.__qualname__}", *replaced)
        name = x.__qualname__.replace("<locals>.", "")
        count = sum(other.partition("#")[0] == name for other in self.named)
        name = f"{name}#{count + 1}" if count else name
        self.named[name] = ""  # reserves the position before those of the objects it uses
        self.named[name] = describe(x)
        return self.of(name)

    def _function(self, x: types.FunctionType) -> str:
        cells = [in_cell(cell) for cell in x.__closure__ or ()]
        return self.all(x.__code__, x.__defaults__, x.__kwdefaults__, x.__dict__, cells, self._globals(x))

    def _compiled(self, x: Any) -> str:
        """A compiled function: its name, and the identity of its package if that is installed."""
        module = getattr(getattr(x, "__objclass__", x), "__module__", None) or "builtins"
        whose = getattr(x, "__self__", None)
        place = module if origin(module) == "python" else release(module)
        bound = [] if whose is None or isinstance(whose, types.ModuleType) else [whose]
        return self.all(f"{place}.{x.__qualname__}", *bound)

    def _replaced(self, x: Any) -> list[Any]:
        """Attributes of a class or function of geomctrl that users have replaced, and plain class attributes."""
        if isinstance(x, types.FunctionType):
            return [x.__code__, x.__defaults__] if is_foreign(x, "geomctrl") else []
        return [
            part
            for cls in x.__mro__
            if cls.__module__.startswith("geomctrl.")
            for k, v in vars(cls).items()
            if not k.startswith("__") and (isinstance(v, PLAIN) or is_foreign(v, "geomctrl"))
            for part in (k, v)
        ]

    def _globals(self, x: types.FunctionType) -> list[Any]:
        """Objects that the function and its inner functions refer to: globals, and attributes of user modules."""
        used = names_of(x.__code__)
        names = [*used.loaded, *sorted(used.attributes), *used.modules]
        names = [name for name in names if not name.startswith("__")]  # ignores __name__ and __file__ of a script
        read = {*used.loaded, *used.modules}  # an attribute, as in `point.rng`, is not the global with this name
        values = [x.__globals__[name] for name in names if name in read and name in x.__globals__]
        imported = [sys.modules[name] for name in used.modules if name in sys.modules]
        modules = [m for m in (*values, *imported) if isinstance(m, types.ModuleType)]
        asked = [(m, vars(m)[name]) for m in modules for name in names if name in vars(m)]
        return values + [value for m, value in asked if is_followed(m.__name__) or is_foreign(value, m.__name__)]

    def _class(self, x: type) -> str:
        members = [(k, v) for k, v in vars(x).items() if k not in SKIPPED and not k.startswith("_abc")]
        return self.all(type(x), x.__bases__, *((k, v) for k, v in members if v or k not in CREATED))

    def _object(self, x: Any) -> str:
        if isinstance(x, Mechanism) and x.origin.visual is not None:
            x = replace(x, origin=replace(x.origin, visual=None))  # the location of meshes does not affect results
        if isinstance(x, enum.Enum):
            return self.all(type(x), vars(x))
        if isinstance(x, np.ndarray) and type(x) is not np.ndarray:
            return self.all(type(x), np.array(x), attributes_of(x))
        try:
            reduced = x.__reduce_ex__(4)  # any object that can be pickled reports its parts
        except Exception:  # user classes may raise anything
            return self.all(type(x), getattr(x, "__dict__", {}))
        if isinstance(reduced, str):
            return self.of(f"{type(x).__qualname__} {reduced}")
        return self.all(*(list(part) if k > 2 and part is not None else part for k, part in enumerate(reduced)))


def _short(text: str, data: bytes = b"") -> str:
    return hashlib.sha256(text.encode() + data).hexdigest()[:16]
