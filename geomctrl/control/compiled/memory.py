"""What a user's code knows and can remember outside of its objects: globals, what they hold, attributes of classes and
modules, random numbers. A law that is tried on symbols, or at random states, leaves all that as it was.
"""

from __future__ import annotations

import abc
import builtins
import dis
import functools
import hashlib
import random
import re
import sys
import types
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from geomctrl.kernels.primitives import codes
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.tracing.symbols import UntraceableError

from .ownership import PLAIN, is_own, is_own_class, is_own_function, leaves_nothing, slots_of, word

MOST = 10_000  # things that are looked at
LONG = 1024  # bytes of an array that are a word; of a longer one their digest is
MISSING = object()
QUIET = {"typing", "dataclasses"}  # whose objects change nothing
IMPURE = {"breakpoint", "eval", "exec", "globals", "input", "locals", "open", "__import__"}
ANYWHERE = {"getattr", "setattr", "delattr", "vars", "attrgetter", "methodcaller"}  # attributes that no code names
OUTSIDE = {"IMPORT_NAME": "modules", "LOAD_GLOBAL": "loaded", "LOAD_NAME": "loaded", "STORE_GLOBAL": "loaded"}
ASKED = {  # of a law
    *("coriolis_matrix", "lyapunov", "allowance", "true_parameters", "reference", "robot", "group", "form", "q_d")
}
MADE = ("__new__", "__init__", "__post_init__")  # asked when an object is made
FUNCTIONS = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)
INNER = ("__func__", "fget", "func", "__wrapped__")  # of methods, properties, partial functions, caches


class Names(NamedTuple):
    """What a code names: globals, modules that it imports, attributes."""

    loaded: tuple[str, ...]
    modules: tuple[str, ...]
    attributes: frozenset[str]


LIBRARY = (np.ufunc, np.dtype, type(np.full), re.Pattern, types.GenericAlias, type(Names.loaded),
           types.GetSetDescriptorType, types.MemberDescriptorType, types.MethodWrapperType,
           types.ClassMethodDescriptorType, type(vars(abc.ABC)["_abc_impl"]))  # fmt: skip


@functools.lru_cache(maxsize=4096)
def names_of(code: types.CodeType) -> Names:
    found: dict[str, dict[str, None]] = {"loaded": {}, "modules": {}, "attributes": {}}
    for c in codes(code):
        for i in dis.get_instructions(c):
            if i.opname in OUTSIDE or "ATTR" in i.opname or i.opname in ("LOAD_METHOD", "IMPORT_FROM"):
                found[OUTSIDE.get(i.opname, "attributes")][i.argval] = None
    return Names(tuple(found["loaded"]), tuple(found["modules"]), frozenset(found["attributes"]))


# --- outside -----------------------------------------------------------------------------------------------------


class Outside:
    """What functions and classes reach by names. `words`: what that is; two of equal words are the same code with the
    same constants. `restored` puts it back, saying what had changed.

    roots: functions, classes and modules with what they are called; kinds: classes of objects that are there already;
    twinned: functions whose closures and defaults are somebody else's care.
    Raises UntraceableError where something is reached that can remember and can not be put back.
    """

    def __init__(
        self, roots: Iterable[tuple[Any, str]], kinds: Iterable[type], twinned: Iterable[types.FunctionType] = ()
    ):
        self.words: list[Any] = []
        self.spaces: dict[int, dict[str, Any]] = {}  # globals of the functions
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []
        self._attributes = set(ASKED)  # that are named somewhere
        self._named: list[tuple[Any, str, Any]] = []
        self._held: list[tuple[str, Any, Any]] = []
        self._owners: list[Any] = []  # classes and modules
        self._known: dict[int, frozenset[str]] = {}  # names in them
        self._visited: set[tuple[int, str]] = set()
        self._twinned = set(map(id, twinned))
        for x, name in roots:
            self._visit(x, name)
        for kind in kinds:
            self._class(kind, kind.__name__)
        while self._more():
            pass

    def begin(self) -> None:
        self._random = random.getstate(), np.random.get_state()  # noqa: NPY002 (the user's own)

    def restored(self) -> str:
        """The name of what is not what it was since `begin`, "" where all is; then it is again."""
        found = ""
        for owner, name, value in self._named:
            if _space(owner).get(name, MISSING) is not value:
                found = found or name
                _set(owner, name, value)
        for owner in self._owners:
            for name in _space(owner).keys() - self._known[id(owner)] if isinstance(owner, type) else ():
                if not name.startswith("__"):
                    found = found or f"{owner.__name__}.{name}"
                    delattr(owner, name)
        for name, x, before in self._held:
            if _differs(x, before):
                found = found or name
                _put_back(x, before)
        before, now = self._random, (random.getstate(), np.random.get_state())  # noqa: NPY002
        if now[0] != before[0] or not all(map(np.array_equal, now[1], before[1])):
            found = found or "the state of random numbers"
            random.setstate(self._random[0])
            np.random.set_state(self._random[1])  # noqa: NPY002
        return found

    # --- the walk ------------------------------------------------------------------------------------------------

    def _more(self) -> bool:
        """Visit attributes of classes and modules that the code seen so far names; False where there are none."""
        anything = not self._attributes.isdisjoint(ANYWHERE)
        todo = [
            (owner, name)
            for owner in self._owners
            for name, x in list(_space(owner).items())
            if (id(owner), name) not in self._visited
            and (name in self._attributes or (isinstance(owner, type) and (anything or _is_implicit(name, x))))
        ]
        for owner, name in todo:
            self._visited.add((id(owner), name))
            value = _space(owner)[name]
            self._named.append((owner, name, value))
            self._visit(value, f"{owner.__name__}.{name}")
        return bool(todo)

    def _visit(self, x: Any, name: str) -> None:
        if isinstance(x, PLAIN):
            self.words.append((name, *word(x)))
            return
        seen = self._seen.get(id(x))
        if seen is not None:
            self.words.append((name, seen))
            return
        self._seen[id(x)] = len(self._seen)
        self._kept.append(x)
        if len(self._kept) > MOST:
            raise UntraceableError(f"the code reaches more than {MOST} things, by way of {name}")
        if isinstance(x, types.FunctionType):
            self._function(x, name)
        elif isinstance(x, type):
            self._class(x, name)
            self._attributes.update(MADE)
        elif isinstance(x, types.ModuleType):
            self._module(x, name)
        elif isinstance(x, FUNCTIONS):
            self._builtin(x, name)
        else:
            self._thing(x, name)

    def _function(self, x: types.FunctionType, name: str) -> None:
        self.words.append((name, id(x.__code__)))
        self._kept.append(x.__code__)
        if not leaves_nothing(x.__module__):
            raise UntraceableError(f"{name} (of {x.__module__}) may leave something behind, or know more than numbers")
        if not is_own_function(x) or (x.__module__ or "").startswith("geomctrl."):
            return
        space = x.__globals__
        self.spaces[id(space)] = space
        names = names_of(x.__code__)
        self._attributes |= names.attributes
        for other in names.loaded:
            if other in space:
                self._named.append((space, other, space[other]))
                self._visit(space[other], other)
            elif other in IMPURE:
                raise UntraceableError(
                    f"{name} calls {other}: it may leave something behind, or know more than numbers"
                )
            elif other in ANYWHERE:
                self._attributes.add(other)
            elif not hasattr(builtins, other):
                self._named.append((space, other, MISSING))
        for module in names.modules:
            if module in sys.modules:
                self._visit(sys.modules[module], module)
        self._held.append((name, x.__dict__, dict(x.__dict__)))
        for other, value in x.__dict__.items():
            self._visit(value, f"{name}.{other}")
        if id(x) in self._twinned:
            return
        for other, cell in zip(x.__code__.co_freevars, x.__closure__ or ()):
            self._held.append((other, cell, in_cell(cell)))
            self._visit(in_cell(cell), other)
        self._visit(x.__defaults__, f"{name}.__defaults__")
        self._visit(x.__kwdefaults__, f"{name}.__kwdefaults__")

    def _class(self, kind: type, name: str) -> None:
        self.words.append((name, id(kind)))
        for cls in kind.__mro__:
            if cls.__module__.startswith("geomctrl."):  # which calls what it knows of
                self._attributes.update(vars(cls).keys() - {"start", "value", *MADE})
            if id(cls) not in self._known and is_own_class(cls) and not cls.__module__.startswith("geomctrl."):
                self._known[id(cls)] = frozenset(vars(cls))
                self._owners.append(cls)

    def _module(self, x: types.ModuleType, name: str) -> None:
        self.words.append((name, id(x)))
        if not leaves_nothing(x.__name__):
            raise UntraceableError(f"{name} is used: it may leave something behind, or know more than numbers")
        if is_own(x.__name__) and not x.__name__.startswith("geomctrl"):
            self._owners.append(x)

    def _builtin(self, x: Any, name: str) -> None:
        self.words.append((name, id(x)))
        whose = getattr(x, "__self__", None)
        known = whose is None or isinstance(whose, (type, types.ModuleType)) or isinstance(x, FUNCTIONS[1:])
        if not known or not leaves_nothing(getattr(x, "__module__", None) or "builtins"):
            raise UntraceableError(f"{name} ({x.__name__}) may leave something behind, or know more than numbers")

    def _thing(self, x: Any, name: str) -> None:
        """Something that holds others, or can change."""
        kind = type(x)
        content = _content(x)
        if isinstance(x, (Mechanism, *LIBRARY)) or kind.__module__ in QUIET or x is MISSING:
            self.words.append((name, id(x)))
        elif isinstance(x, types.MethodType):
            self._several(name, kind, x.__func__, x.__self__)
        elif isinstance(x, functools.partial):
            self._several(name, kind, x.func, x.args, x.keywords)
        elif content is not None:
            self._held.append((name, x, content))
            self._several(name, kind, *_values(x, content))
            self._class(kind, name)
        elif isinstance(x, tuple):
            self._several(name, kind, *x)
        elif isinstance(x, frozenset):
            self._several(name, kind, *sorted(x, key=repr))
        elif inner := [y for n in INNER if (y := getattr(x, n, None)) is not None]:
            self._several(name, kind, *inner)
        else:
            raise UntraceableError(f"{name} ({kind.__name__}) may be a memory: keep what lasts in the state z")

    def _several(self, name: str, kind: type, *xs: Any) -> None:
        self.words.append((name, kind, len(xs)))
        for x in xs:
            self._visit(x, name)


def _is_implicit(name: str, x: Any) -> bool:
    """Whether Python asks for an attribute of a class although no code names it."""
    return name.startswith("__") and name not in (*MADE, "__repr__", "__str__") and isinstance(x, types.FunctionType)


def _space(owner: Any) -> Any:
    return owner if isinstance(owner, dict) else vars(owner)


def _set(owner: Any, name: str, value: Any) -> None:
    if value is MISSING:
        owner.pop(name)
    elif isinstance(owner, dict):
        owner[name] = value
    else:
        setattr(owner, name, value)


def array_word(x: np.ndarray) -> tuple:
    """What an array is; equal for arrays of equal numbers."""
    content = x.tobytes()
    return x.shape, x.dtype.str, content if len(content) <= LONG else hashlib.sha256(content).digest()


def _values(x: Any, content: Any) -> list[Any]:
    """What is to be looked at of a copy of x's content."""
    if isinstance(x, np.ndarray):
        return [*content.ravel().tolist()] if x.dtype == object else [repr(array_word(x))]
    if isinstance(x, np.random.Generator):
        return []
    if isinstance(content, dict):
        return [y for pair in content.items() for y in pair]
    return list(content)


def _content(x: Any) -> Any:
    """A copy of what something that can change holds; None for all else."""
    if isinstance(x, np.ndarray):
        return x.copy()
    if isinstance(x, np.random.Generator):
        return x.bit_generator.state
    if isinstance(x, (dict, types.MappingProxyType)):
        return dict(x)
    if isinstance(x, (list, deque, set, bytearray)):
        return list(x)
    if isinstance(x, (tuple, types.FunctionType)) or not is_own_class(type(x)):
        return None
    return slots_of(x)


def in_cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return MISSING


def _now(x: Any) -> dict[Any, Any]:
    return dict(x) if isinstance(x, (dict, types.MappingProxyType)) else slots_of(x)


def _differs(x: Any, before: Any) -> bool:
    if isinstance(x, types.CellType):
        return in_cell(x) is not before
    if isinstance(x, np.ndarray):
        return x.shape != before.shape or x.tobytes() != before.tobytes()
    if isinstance(x, np.random.Generator):
        return repr(x.bit_generator.state) != repr(before)
    if isinstance(before, dict):
        now = _now(x)
        return list(now) != list(before) or any(now[name] is not value for name, value in before.items())
    return len(x) != len(before) or any(a is not b for a, b in zip(x, before))


def _put_back(x: Any, before: Any) -> None:
    if isinstance(x, types.CellType):
        x.cell_contents = before
    elif isinstance(x, np.ndarray):
        x[...] = before
    elif isinstance(x, np.random.Generator):
        x.bit_generator.state = before
    elif isinstance(x, dict):
        x.clear()
        x.update(before)
    elif isinstance(before, dict):
        for name in _now(x).keys() - before.keys():
            object.__delattr__(x, name)
        for name, value in before.items():
            object.__setattr__(x, name, value)
    else:
        x.clear()
        x.update(before) if isinstance(x, set) else x.extend(before)
