"""`UntraceableAttribute`: replaces attributes that can not be copied, such as open files, iterators and locks."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import FunctionType, ModuleType
from typing import Any

from .code_identity import is_followed, locate_use, origin
from .floating_point_errors import INSTEAD
from .untraceable import UntraceableError, assigned, caller

ASKED = """
    __call__ __iter__ __next__ __len__ __getitem__ __setitem__ __delitem__ __contains__ __enter__ __exit__ __bool__
    __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __float__ __int__ __index__ __array__ __str__ __repr__
    __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __matmul__ __rmatmul__ __pow__
    __rpow__ __neg__ __abs__ __and__ __or__ __getattribute__ __setattr__ __delattr__ __reduce_ex__
"""

FILES = {  # functions and methods of numpy that access files
    *("save", "savez", "savez_compressed", "savetxt", "load", "loadtxt", "genfromtxt", "fromfile", "memmap", "tofile"),
    *("fromregex", "dump", "DataSource", "open_memmap"),
}
SETTINGS = {"set_printoptions", "seterr", "seterrcall", "setbufsize"}


_at_work: ContextVar[bool] = ContextVar("at_work", default=False)


class UntraceableAttribute:
    """Placeholder for an attribute that may be memory; any use raises UntraceableError."""

    __slots__ = ("_what",)

    def __init__(self, path: str, kind: type):
        object.__setattr__(self, "_what", unknown_object(path.lstrip("."), kind))


class Unavailable(UntraceableAttribute):
    """Placeholder for a result that is not computed; problem, advice: the message of any use."""

    __slots__ = ()

    def __init__(self, problem: str, advice: str):
        object.__setattr__(self, "_what", (problem, advice))


def unknown_object(name: str, kind: type) -> tuple[str, str]:
    """Why an object can not be copied, and what to write instead."""
    if kind.__module__ == "logging":
        return f"{name} ({kind.__name__}) writes messages", REPORT
    if origin(kind.__module__) == "library" and not kind.__module__.startswith("numpy.random"):
        library, calls = kind.__module__.partition(".")[0], kind.__name__ == "vectorize"
        advice = "write a loop, as in np.array([f(y) for y in x])" if calls else "compute with arrays"
        return f"{name} ({kind.__name__}) is an object of {library} that can not be traced", advice
    advice = next((text for base, text in INSTEAD_OF.items() if issubclass(kind, base)), OTHERWISE)
    return f"{name} ({kind.__name__}) may keep data between calls", advice


INSTEAD_OF = {
    set: "write a frozenset, or a dict with fixed keys",
    Mapping: "write a dict",
    Iterator: "write a list, and an index as an attribute",
    Sequence: "write a list",
}
OTHERWISE = "keep them in the state z, or in numbers, arrays, lists, dicts and objects of your own classes"


def outside_of_the_law(module: str | None) -> str:
    """The reason for refusing functions of a module, and what to write instead."""
    advice = REPORT if module in REPORTING else TIME if module in CLOCKS else BEFORE
    return f"it may change or read data outside of the law; {advice}"


CLOCKS = {"time", "datetime"}
TIME = "use the argument t"
BEFORE = "do that before the law is created, and pass the numbers to its constructor"


REPORTING = {"warnings", "logging"}
REPORT = "return the value as a signal, Command(tau, signals={'name': value}), and report it after the run"


def at_work() -> AbstractContextManager[bool]:
    """Context for calls of symbolic copies, in which even type tests of placeholders raise."""
    return assigned(_at_work, True)


def _refuse(self: Any, *args: Any, **_: Any) -> Any:
    if [*map(type, args)] == [str] and args[0] == "__class__" and not _at_work.get():
        return UntraceableAttribute
    problem, advice = object.__getattribute__(self, "_what")
    raise UntraceableError(f"{problem}: {advice}{caller()}")


for _name in ASKED.split():
    setattr(UntraceableAttribute, _name, _refuse)


def refuse_files(x: Any, name: str) -> None:
    """Raise UntraceableError for functions of libraries that access files or change numpy's settings."""
    own = getattr(x, "__name__", "")
    if origin(getattr(x, "__module__", None)) != "library":
        return
    if own in FILES:
        raise UntraceableError(f"{name} reads or writes files: read them before, and keep the numbers in an array")
    if own in SETTINGS:
        raise UntraceableError(f"{name} changes the settings of numpy: {INSTEAD}")


def imported(module: str, space: dict[str, Any], name: str) -> ModuleType:
    """The module that a function `name` with these globals imports."""
    if module in ("math", "statistics"):  # tracing replaces their functions in the globals of user modules only
        raise UntraceableError(f"{name} imports {module}: import it at the top of the module")
    package = space.get("__package__") or ""
    module_found = sys.modules.get(module) or sys.modules.get(f"{package}.{module}".strip("."))
    if module_found is None:
        raise UntraceableError(f"{name} imports {module}, not yet loaded: import it at the top of the module")
    return module_found


def refuse_library_changes(f: FunctionType, paths: Iterable[tuple[str, ...]], replaceable: str) -> None:
    """Raise UntraceableError if a function sets an attribute, the end of a path, of a module of a library.

    replaceable: origin of modules whose members laws may replace.
    """
    for root, *path in paths:
        x = f.__globals__.get(root)
        for name in path[:-1]:
            x = vars(x).get(name) if isinstance(x, ModuleType) else None
        if isinstance(x, ModuleType) and not is_followed(x.__name__) and origin(x.__name__) != replaceable:
            error = UntraceableError(f"{'.'.join((root, *path))} is set: do that at the top of the module")
            locate_use(error, f.__code__, path[-1])
            raise error
