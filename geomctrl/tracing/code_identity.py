"""Identity of code: who owns a module, class or function, and which other code it uses.

Code belongs to Python, to a numerical library (`LIBRARIES`), to geomctrl, to another installed package, or to the user.
Code of users and installed packages is followed; libraries are identified by their release.
"""

from __future__ import annotations

import dis
import enum
import functools
import hashlib
import importlib.metadata
import sys
import sysconfig
import traceback
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

PLAIN = (bool, int, float, str, bytes, complex, type(None), type(...), np.generic, enum.Enum, range, slice)
BUILTIN = {bool, int, float, complex, type(None), type(...), range, slice}
LIBRARIES = {"numpy", "scipy", "numba", "llvmlite", "sympy", "casadi", "jax", "torch", "matplotlib", "pandas", "pytest"}
STATELESS = {"numpy", "scipy", "numba", "llvmlite", "sympy"}  # libraries whose functions have no side effects
PURE = {
    *("abc", "bisect", "builtins", "cmath", "collections", "contextlib", "copy", "dataclasses", "decimal", "enum"),
    *("fractions", "functools", "itertools", "math", "numbers", "operator", "random", "re", "statistics", "string"),
    *("types", "typing", "_collections_abc", "_functools", "_operator"),
}  # modules of the standard library without side effects
STDLIB = tuple(dict.fromkeys(sysconfig.get_path(name) for name in ("stdlib", "platstdlib")))
# folders of installed packages; numpy's own is another one with Debian's packages, and where PYTHONPATH names one
PLACES = [*(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")), Path(np.__file__).parents[1]]
PACKAGES = tuple(dict.fromkeys(str(path) for place in PLACES for path in (place, place.resolve())))
OWN = __name__.partition(".")[0]
UNCHANGING: dict[type, set[str]] = {}  # classes whose objects never change, with the names of their attributes
HEAP_TYPE = 1 << 9  # flag of classes created by a class statement
CACHE = type(functools.lru_cache(len))
WRAPPERS = {
    types.MethodType, functools.partial, functools.partialmethod, property, staticmethod, classmethod,
    functools.cached_property, CACHE,
}  # fmt: skip


def origin(module: str | None) -> str:
    """Return the owner of a module: "python", "library", "geomctrl", "installed" or "user".

    Code created by `exec` has no module and belongs to the user.
    """
    top = (module or "").partition(".")[0]
    named_origin = _origin_by_name(top)
    if named_origin:
        return named_origin
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    if top in sys.stdlib_module_names and (not file or file.startswith(STDLIB)):
        return "python"
    file = getattr(sys.modules.get(module or ""), "__file__", None) or file
    return "installed" if file.startswith(PACKAGES) else "user"


@functools.lru_cache(maxsize=256)
def _origin_by_name(top: str) -> str:
    if top == OWN:
        return "geomctrl"
    if top in LIBRARIES:
        return "library"
    return "python" if top in sys.builtin_module_names and top != "__main__" else ""


def is_followed(module: str | None) -> bool:
    """Return whether a module's code is followed: the user's and that of installed packages."""
    return origin(module) in ("user", "installed")


def is_own_class(kind: type) -> bool:
    """Return whether a class comes from a class statement of the user, an installed package or geomctrl."""
    by_statement = bool(kind.__flags__ & HEAP_TYPE)
    return kind is types.SimpleNamespace or (
        by_statement and (kind.__module__ == "builtins" or is_own(kind.__module__))
    )


def is_own_function(function: types.FunctionType) -> bool:
    """Like `is_own_class`, for functions."""
    return function.__module__ == "builtins" or is_own(function.__module__)


def without_recording(function: types.FunctionType) -> types.FunctionType:
    """A user's constructor without the recording of its arguments that `described` puts around it."""
    recording = function.__globals__.get("__name__") == "geomctrl.described"
    return vars(function).get("__wrapped__", function) if recording else function


def is_own(module: str | None) -> bool:
    return origin(module) in ("user", "installed", "geomctrl")


def is_pure_module(module: str | None, allowed: frozenset[str] = frozenset()) -> bool:
    """Return whether a module's functions have no side effects and depend on their arguments alone, or are allowed.

    For code that is followed, the code itself decides.
    """
    top, whose = (module or "").partition(".")[0], origin(module)
    return module in allowed or {"python": top in PURE, "library": top in STATELESS}.get(whose, True)


def raised_in(error: BaseException) -> traceback.FrameSummary | None:
    """Return the innermost line of a caller's code in the traceback of an error."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        code = frame.f_code
        if origin(frame.f_globals.get("__name__")) == "user" and not code.co_filename.startswith("<"):
            return traceback.FrameSummary(code.co_filename, line, code.co_name)
    return None


@functools.lru_cache(maxsize=1024)
def release(module: str) -> str:
    """Return the identity of an installed module: its distribution's version and a hash of its file."""
    top = module.partition(".")[0]
    try:
        version = importlib.metadata.version(top)
    except importlib.metadata.PackageNotFoundError:
        version = str(getattr(sys.modules.get(top), "__version__", ""))
    file = getattr(sys.modules.get(module), "__file__", None)
    data = Path(file).read_bytes() if file and Path(file).is_file() else b""
    return f"{module} {version} {hashlib.sha256(data).hexdigest()}"


class Names(NamedTuple):
    """Names in a code object: globals, imported modules, attributes, and those that it sets, as np.linalg.tol."""

    loaded: tuple[str, ...]
    modules: tuple[str, ...]
    attributes: frozenset[str]
    assigned: tuple[tuple[str, ...], ...]


OUTSIDE = {"IMPORT_NAME": "modules", "LOAD_GLOBAL": "loaded", "LOAD_NAME": "loaded", "STORE_GLOBAL": "loaded"}
OUTSIDE |= {"DELETE_GLOBAL": "loaded"}


# With these, attributes are used without being named in code.
DYNAMIC_LOOKUPS = {"getattr", "setattr", "delattr", "vars", "attrgetter", "methodcaller", "__dict__"}
CONSTRUCTORS = ("__new__", "__init__", "__post_init__")  # called when an object is created


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function and of the functions and comprehensions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


@functools.lru_cache(maxsize=4096)
def names_of(code: types.CodeType) -> Names:
    """Return the names that a function's code, and the code inside it, looks up outside of the function."""
    names: dict[str, dict[str, None]] = {"loaded": {}, "modules": {}, "attributes": {}}
    assigned: list[tuple[str, ...]] = []
    for c in codes(code):
        path: tuple[str, ...] = ()  # the object that the last instructions have loaded
        for i in dis.get_instructions(c):
            if i.opname in ("STORE_ATTR", "DELETE_ATTR") and path:
                assigned.append((*path, i.argval))
            path = (i.argval,) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME") else path and (*path, i.argval)
            path = path if i.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR") else ()
            if i.opname in OUTSIDE or "ATTR" in i.opname or i.opname in ("LOAD_METHOD", "IMPORT_FROM"):
                names[OUTSIDE.get(i.opname, "attributes")][i.argval] = None
    return Names(tuple(names["loaded"]), tuple(names["modules"]), frozenset(names["attributes"]), tuple(assigned))


def locate_use(error: Exception, code: types.CodeType, name: str) -> None:
    """Add to the message the file and the line where code uses a name, unless it has one."""
    if ", line " not in str(error):
        uses = (i.positions for c in codes(code) for i in dis.get_instructions(c) if i.argval == name)
        line = next((x.lineno for x in uses if x is not None), code.co_firstlineno)
        problem, colon, advice = str(error).partition(": ")
        error.args = (f"{problem}, in {code.co_filename}, line {line}{colon}{advice}",)


class Identity(int):
    """The id() of an object in a signature: equal for one and the same object, which this keeps alive."""

    object: Any


def identity(x: Any) -> Identity:
    number = Identity(id(x))
    number.object = x
    return number


CREATED = {"__annotations__", "__annotations_cache__", "__slotnames__"}  # members of classes that Python adds itself
MISSING = object()


def in_cell(cell: types.CellType) -> Any:
    """Return the contents of a closure cell, MISSING if it is empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def parts_of(x: Any) -> tuple[Any, ...] | None:
    """Return the parts of a method, property, partial function or other wrapper; None for anything else."""
    kind = type(x)
    if kind not in WRAPPERS:
        return None
    if kind is types.MethodType:
        return x.__func__, x.__self__
    if kind in (functools.partial, functools.partialmethod):
        return x.func, x.args, x.keywords, getattr(x, "__dict__", None)
    if kind is property:
        return x.fget, x.fset, x.fdel
    if kind in (staticmethod, classmethod):
        return (x.__func__,)
    if kind is functools.cached_property:
        return x.func, x.attrname
    return (x.__wrapped__,)  # a function under functools.cache


@functools.lru_cache(maxsize=1024)
def names_in_class(kind: type, members: int, without: frozenset[str]) -> frozenset[str]:
    """Return the names of a class's own attributes but for special ones and others; members: their number, all told."""
    return frozenset(name for name in vars(kind) if name[:2] != "__") - without


@functools.lru_cache(maxsize=1024)
def slots_of(kind: type) -> dict[str, types.MemberDescriptorType]:
    """Return the slots of a class and its bases by name; hidden ones are named with their class."""
    slots: dict[str, types.MemberDescriptorType] = {}
    for cls in kind.__mro__:
        for name, x in vars(cls).items() if cls.__flags__ & HEAP_TYPE else ():
            if type(x) is types.MemberDescriptorType:
                slots[f"{cls.__qualname__}.{name}" if name in slots else name] = x
    return slots


def attributes_of(x: Any) -> dict[str, Any]:
    """Return an object's attributes by name, including slots, without running code of its class."""
    attributes = {}
    for name, slot in slots_of(type(x)).items():
        try:
            attributes[name] = slot.__get__(x)
        except AttributeError:  # not set
            continue
    return attributes | (dict_of(x) or {})


def dict_of(x: Any) -> dict[str, Any] | None:
    try:
        return object.__getattribute__(x, "__dict__")
    except AttributeError:
        return None


def set_attributes(x: Any, attributes: dict[str, Any]) -> None:
    """Set an object's attributes to exactly these, without running code of its class."""
    slots = slots_of(type(x))
    for name, slot in slots.items():
        if name in attributes:
            slot.__set__(x, attributes[name])
        else:
            try:
                slot.__delete__(x)
            except AttributeError:  # not set
                continue
    own = dict_of(x)
    if own is not None:
        own.clear()
        own.update({name: value for name, value in attributes.items() if name not in slots} if slots else attributes)


def plain_value(x: Any) -> tuple:
    """Return the type and value of a plain object, equal for objects that no computation distinguishes."""
    kind = type(x)
    if kind is str or kind is bytes:
        return kind, x
    if kind in BUILTIN:
        return kind, repr(x)
    if issubclass(kind, enum.Enum):
        return kind, identity(x)
    for base in (str, bytes, int, float, complex):
        if issubclass(kind, base) and not issubclass(kind, np.generic):
            return kind, base.__repr__(x)  # the repr of a user's subclass may hide the value
    return kind, repr(x)


def is_foreign(x: Any, package: str) -> bool:
    """Return whether a member of a package's module or class has code from outside the package and the libraries."""
    return any(_is_elsewhere(f, package) for f in functions_in(x))


def _is_elsewhere(function: types.FunctionType, package: str) -> bool:
    module, code = function.__globals__.get("__name__", ""), function.__code__
    top = package.partition(".")[0]
    if module.partition(".")[0] != top:
        return is_followed(module) and not module.startswith("namedtuple_")
    if code.co_filename == "<string>":  # generated by dataclass
        return code.co_name != function.__name__
    files = (getattr(sys.modules.get(name), "__file__", None) or "" for name in (top, module))
    return not code.co_filename.startswith(tuple(map(_folder, files)))


@functools.lru_cache(maxsize=1024)
def _folder(file: str) -> str:
    return str(Path(file).parent)


def replaced_in(*packages: str) -> dict[str, Any]:
    """Return functions from outside that have been put into modules and classes of packages, by location."""
    replaced = {}
    for name, module in list(sys.modules.items()):
        if f"{name}.".startswith(tuple(f"{x}." for x in packages)) and isinstance(module, types.ModuleType):
            spaces = {name: module} | {
                f"{name}.{x.__qualname__}": x
                for x in list(vars(module).values())
                if isinstance(x, type) and x.__module__ == name
            }
            for place, owner in spaces.items():
                for member, x in list(vars(owner).items()):
                    if is_foreign(x, name):
                        replaced[f"{place}.{member}"] = x
    return replaced


def functions_in(x: Any) -> Iterator[types.FunctionType]:
    """The functions inside a member of a class or module."""
    if isinstance(x, types.FunctionType):
        yield x
    for part in parts_of(x) or ():
        yield from functions_in(part)
