"""What a sweep is computed from, as digests: two sweeps are one if these agree.

A function is its code, defaults, what it closes over, and the globals that it names, followed through the user's own
functions, classes and modules; what is installed is its name, and its version is looked at on its own. Comments and
formatting do not count.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import platform
import sys
import sysconfig
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.mechanism.mechanism import Mechanism

PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), np.generic)
PATHS = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
INSTALLED = tuple({str(Path(path).resolve()) for path in PATHS})
SKIPPED = {"__dict__", "__weakref__", "__module__", "__doc__", "__firstlineno__", "__static_attributes__"}


def versions() -> dict[str, str]:
    """Of what computes."""
    return {
        "geomctrl": importlib.metadata.version("geomctrl"),
        "numpy": np.__version__,
        "python": ".".join(platform.python_version_tuple()[:2]),
    }


def fingerprint(x: Any) -> dict[str, str]:
    """Digests of x, under "", and of the user's functions and classes that it uses, by their names."""
    found = _Digests()
    return {"": found.of(x), **found.named}


class _Digests:
    def __init__(self):
        self.named: dict[str, str] = {}
        self.known: dict[int, str] = {}
        self.kept: list[Any] = []  # nothing visited may go, or another object would get its id

    def of(self, x: Any) -> str:
        if isinstance(x, PLAIN):
            return _short(f"{type(x).__name__} {x!r}")
        if isinstance(x, np.ndarray) and x.dtype != object:
            return _short(f"{x.dtype.str} {x.shape}", np.ascontiguousarray(x).tobytes())
        if id(x) not in self.known:
            self.kept.append(x)
            self.known[id(x)] = "within itself"
            self.known[id(x)] = self._visit(x)
        return self.known[id(x)]

    def all(self, *parts: Any) -> str:
        return _short(" ".join(self.of(part) for part in parts))

    def _visit(self, x: Any) -> str:
        if isinstance(x, types.CodeType):
            return self.all(x.co_code, x.co_names, x.co_varnames, x.co_freevars, x.co_consts)
        if isinstance(x, (list, tuple)):
            return self.all(type(x).__name__, *x)
        if isinstance(x, (set, frozenset)):
            return self.all("set", *sorted(self.of(item) for item in x))
        if isinstance(x, (dict, types.MappingProxyType)):
            return self.all("dict", *(part for item in x.items() for part in item))
        if isinstance(x, types.ModuleType):
            return self.of(f"module {x.__name__}")
        if isinstance(x, types.MethodType):
            return self.all("method", x.__self__, x.__func__)
        if isinstance(x, (staticmethod, classmethod)):
            return self.all(type(x).__name__, x.__func__)
        if isinstance(x, property):
            return self.all("property", x.fget, x.fset)
        if isinstance(x, functools.cached_property):
            return self.all("property", x.func)
        if isinstance(x, types.FunctionType):
            return self._named(x, x.__globals__.get("__name__"), self._function)
        if isinstance(x, type):
            return self._named(x, x.__module__, self._class)
        if hasattr(x, "__wrapped__"):  # a cache, or a compiler's dispatcher
            return self.all("wrapped", x.__wrapped__)
        return self._object(x)

    def _named(self, x: Any, module: Any, describe: Any) -> str:
        """A reference to what is listed by its name; installed things need no list."""
        if installed(module):
            return self.of(f"{module}.{x.__qualname__}")
        name = x.__qualname__.replace("<locals>.", "")
        count = sum(known.partition("#")[0] == name for known in self.named)
        name = f"{name}#{count + 1}" if count else name
        self.named[name] = ""  # its place, before those it uses
        self.named[name] = describe(x)
        return self.of(name)

    def _function(self, x: types.FunctionType) -> str:
        cells = [_content(cell) for cell in x.__closure__ or ()]
        return self.all(x.__code__, x.__defaults__, x.__kwdefaults__, cells, self._globals(x))

    def _globals(self, x: types.FunctionType) -> list[Any]:
        """What the function and those inside it name: globals, and attributes of the user's own modules."""
        names, codes = [], [x.__code__]
        for code in codes:
            names += code.co_names
            codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
        names = [name for name in dict.fromkeys(names) if not name.startswith("__")]  # nor what a script is called
        found = [x.__globals__[name] for name in names if name in x.__globals__]
        modules = [m for m in found if isinstance(m, types.ModuleType) and not installed(m.__name__)]
        return found + [vars(m)[name] for m in modules for name in names if name in vars(m)]

    def _class(self, x: type) -> str:
        members = [(k, v) for k, v in vars(x).items() if k not in SKIPPED and not k.startswith("_abc")]
        return self.all(x.__bases__, *members)

    def _object(self, x: Any) -> str:
        if isinstance(x, Mechanism) and x.looks is not None:
            x = replace(x, looks=None)  # a sweep is the same one, wherever the meshes are
        try:
            reduced = x.__reduce_ex__(4)  # whatever can be pickled says what it is made of
        except Exception:  # other libraries' objects raise what they like
            return self.all(type(x), getattr(x, "__dict__", {}))
        if isinstance(reduced, str):
            return self.of(f"{type(x).__qualname__} {reduced}")
        return self.all(*(list(part) if k > 2 and part is not None else part for k, part in enumerate(reduced)))


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


@functools.cache
def installed(module: str | None) -> bool:
    """Whether a module is Python's, this library's or another's, not the user's."""
    top = str(module).partition(".")[0]
    if top in ("geomctrl", "None") or top in sys.builtin_module_names or top in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(str(module)), "__file__", None)
    return file is not None and str(Path(file).resolve()).startswith(INSTALLED)


def _short(text: str, data: bytes = b"") -> str:
    return hashlib.sha256(text.encode() + data).hexdigest()[:16]
