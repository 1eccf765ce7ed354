"""State outside of a user's objects that their code can read or change.

It consists of globals, attributes of classes and modules, and the state of random generators. It is restored after
calls of a law with symbols or at random states.
"""

from __future__ import annotations

import abc
import builtins
import dataclasses
import random
import types
from collections.abc import Iterable
from typing import Any

import numpy as np

from . import object_kinds
from .code_identity import (
    CACHE,
    CONSTRUCTORS,
    CREATED,
    DYNAMIC_LOOKUPS,
    MISSING,
    PLAIN,
    UNCHANGING,
    attributes_of,
    identity,
    in_cell,
    is_followed,
    is_own_class,
    is_own_function,
    is_pure_module,
    locate_use,
    names_in_class,
    names_of,
    origin,
    parts_of,
    plain_value,
    without_recording,
)
from .containers import (
    CONTAINERS,
    GETTERS,
    RANDOM_STATE,
    content,
    difference,
    put_back,
    restored_attributes,
    set_member,
    space_of,
    underlying,
    values_in,
)
from .floating_point_errors import refuse_decorated, refuse_raised_errors
from .object_kinds import FUNCTIONS, consists_of_attributes, is_printed
from .rebinding import without_data
from .rotations import is_rotation
from .type_tests import refuse_identity_with_truth
from .untraceable import UntraceableError
from .untraceable_attribute import imported, outside_of_the_law, refuse_files, refuse_library_changes, unknown_object


class ExternalState:
    """The objects that functions and classes refer to by name.

    `signature` identifies these objects: equal signatures mean the same code with the same constants. `restored` undoes
    changes since `begin` and returns the name of the first changed object.

    roots: functions, classes and modules with their names. kinds: classes of the copied objects. copied: functions
    whose closures and defaults the caller checks itself. Raises UntraceableError for an object that may store data
    between calls and can not be restored.
    """

    of_copies = True  # whether calls use copies of functions
    allowed: frozenset[str] = frozenset()  # further modules that code may use

    def __init__(
        self, roots: Iterable[tuple[Any, str]], kinds: Iterable[type], copied: Iterable[types.FunctionType] = ()
    ):
        refuse_raised_errors()  # also where a stored trace is used
        self.signature: list[Any] = []
        self.spaces: dict[int, dict[str, Any]] = {}  # globals of the functions
        self._seen: dict[int, int] = {}
        self.reached: list[Any] = []  # all visited objects; copied functions without their data
        self._attributes: set[str] = set()  # names of attributes that the visited code uses
        self.named: list[tuple[Any, str, Any]] = []
        self.held: list[tuple[str, Any, Any, bool]] = []  # name, object, its contents or (if True) its attributes
        self._special: list[tuple[str, Any, str, Any]] = []  # name, object, special attribute, its value
        self._owners: dict[int, Any] = {}  # classes and modules
        self._libraries: dict[int, types.ModuleType] = {}
        self._known: dict[int, frozenset[str]] = {}  # names in the owners before the first call
        self._package_classes: set[int] = set()  # whose attributes are in _attributes
        self._visited: set[tuple[int, str]] = set()
        self._copied_functions = set(map(id, copied))
        try:
            self._search(roots, kinds)
        except RecursionError:
            raise UntraceableError("the code refers to objects that are nested too deeply") from None

    def _search(self, roots: Iterable[tuple[Any, str]], kinds: Iterable[type]) -> None:
        for x, name in roots:
            self._visit(x, name, copied=id(x) in self._copied_functions)
        for kind in kinds:
            self._class(kind, kind.__name__)
        while self._more():
            pass

    def begin(self) -> None:
        self._random = random.getstate(), np.random.get_state()  # noqa: NPY002 (the user's own)
        self._unwarned = [space for space in self.spaces.values() if "__warningregistry__" not in space]

    def restored(self) -> str:
        """Restore everything that has changed since `begin`; return the first changed name, "" if there is none."""
        changed = ""
        for owner, name, value in self.named:
            if space_of(owner).get(name, MISSING) is not value:
                changed = changed or (f"{owner.__name__}.{name}" if isinstance(owner, type) else name)
                set_member(owner, name, value)
        for owner in self._owners.values():
            for name in space_of(owner).keys() - self._known[id(owner)]:
                if own := not name.startswith("__"):
                    changed = changed or f"{owner.__name__}.{name}"
                if own or name in CREATED:
                    delattr(owner, name)
        changed = restored_attributes(self._special) or changed
        for name, x, before, attributes in self.held:
            if (place := difference(x, before, attributes)) is not None:
                changed = changed or f"{name}{place}"
                put_back(x, before, attributes)
        before, now = self._random, (random.getstate(), np.random.get_state())  # noqa: NPY002
        if now[0] != before[0] or not all(map(np.array_equal, now[1], before[1])):
            changed = changed or RANDOM_STATE
            random.setstate(self._random[0])
            np.random.set_state(self._random[1])  # noqa: NPY002
        for space in self._unwarned:
            space.pop("__warningregistry__", None)
        return changed

    def _more(self) -> bool:
        """Visit attributes of classes and modules that visited code names; return False if there are no new ones."""
        anything = not self._attributes.isdisjoint(DYNAMIC_LOOKUPS)
        if "getattr" in self._attributes:  # may look up __class__
            self._attributes.update(CONSTRUCTORS)
        todo = [
            (owner, name)
            for owner in self._owners.values()
            for name, x in list(space_of(owner).items())
            if (id(owner), name) not in self._visited
            and (
                name in self._attributes
                or object_kinds.is_implicit(owner, name, x)
                or (anything and not name.startswith("__"))
            )
        ]
        for owner, name in todo:
            self._visited.add((id(owner), name))
            value = space_of(owner)[name]
            if name in CREATED and (not value or name == "__slotnames__"):
                continue
            self.named.append((owner, name, value))
            if issubclass(type(value), classmethod) and object_kinds.may_create(value.__func__, of_class=True):
                self._attributes.update(CONSTRUCTORS)
            if isinstance(owner, type) and CACHE in (type(value), type(getattr(value, "__func__", None))):
                raise UntraceableError(
                    f"{owner.__name__}.{name} is cached by functools, which keeps its arguments: cache a function of"
                    " the module instead, or compute the value in __init__"
                )
            self._visit(value, f"{owner.__name__}.{name}")
        asked = [
            (module, name)
            for module in self._libraries.values()
            for name in sorted(self._attributes & vars(module).keys())
            if (id(module), name) not in self._visited
        ]
        for module, name in asked:
            self._visited.add((id(module), name))
            try:
                self._of_library(vars(module)[name], f"{module.__name__}.{name}")
            except UntraceableError as error:
                self._locate(error, name)
                raise
        return bool(todo or asked)

    def _locate(self, error: UntraceableError, name: str) -> None:
        """Add to the message the line of a function that uses an attribute of this name."""
        functions = (x.__code__ for x in self.reached if type(x) is types.FunctionType)
        code = next((code for code in functions if name in names_of(code).attributes), None)
        if code is not None:
            locate_use(error, code, name)

    def _of_library(self, x: Any, name: str) -> None:
        """Visit a member of a library's module: user code is followed, the library's own code is identified by id()."""
        self.signature.append((name, identity(x)))
        self.reached.append(x)
        if type(x) is types.ModuleType:
            self._libraries.setdefault(id(x), x)
        elif type(x) is types.FunctionType or x is type or id(x) in object_kinds.READERS or is_printed(x):
            self._visit(x, name)
        refuse_files(x, name)

    def _visit(self, x: Any, name: str, *, copied: bool = False) -> None:
        """Visit an object. copied: a function of which calls use a copy, unless code also reaches it by name."""
        kind = type(x)
        if issubclass(kind, PLAIN) and not object_kinds.has_more(kind):
            self.signature.append((name, *plain_value(x)))
            return
        if (seen := self._seen.get(id(x))) is not None:
            self.signature.append((name, seen))
            if not copied and id(x) in self._copied_functions:
                self._data(x, name)
            return
        self._seen[id(x)] = len(self._seen)
        self.reached.append(without_data(x) if copied else x)
        if len(self.reached) > object_kinds.MAX_THINGS:
            raise UntraceableError(f"the code refers to more than {object_kinds.MAX_THINGS} objects, through {name}")
        if id(x) in object_kinds.READERS:
            self._attributes.add("getattr")
        if kind is types.FunctionType:
            self._function(without_recording(x), name, copied)
        elif issubclass(kind, type):
            self._class(x, name)
            self._attributes.update(CONSTRUCTORS)
        elif issubclass(kind, types.ModuleType):
            self._module(x, name)
        elif issubclass(kind, FUNCTIONS):
            self._builtin(x, name)
        else:
            self._visit_object(x, name)

    def _function(self, x: types.FunctionType, name: str, copied: bool) -> None:
        if self.of_copies:
            refuse_decorated(x)
        self.signature.append((name, identity(x.__code__)))
        self.reached.append(x.__code__)
        if not is_pure_module(x.__module__, self.allowed):
            raise UntraceableError(f"{name} is used: {outside_of_the_law(x.__module__)}")
        if x.__module__ in object_kinds.CREATORS:
            self._attributes.update(("__dataclass_fields__", *CONSTRUCTORS))
        if not is_own_function(x) or (x.__module__ or "").startswith("geomctrl."):
            refuse_files(x, name)
            return
        refuse_identity_with_truth(x.__code__)
        self._names(x, name)
        if not copied:
            self._data(x, name)

    def _data(self, x: types.FunctionType, name: str) -> None:
        """Visit the closure, the defaults and the attributes of a function."""
        self._special += [(name, x, special, getattr(x, special)) for special in ("__defaults__", "__kwdefaults__")]
        if id(x) in self._copied_functions:
            self._copied_functions.remove(id(x))
            self.reached.append(x)
        for other, cell in zip(x.__code__.co_freevars, x.__closure__ or ()):
            self.held.append((other, cell, content(cell), False))
            self._visit(in_cell(cell), other)
        self.held.append((name, x.__dict__, content(x.__dict__), False))
        for other, value in x.__dict__.items():
            self._visit(value, f"{name}.{other}")
        self._visit(x.__defaults__, f"{name}.__defaults__")
        self._visit(x.__kwdefaults__, f"{name}.__kwdefaults__")

    def _names(self, x: types.FunctionType, name: str) -> None:
        """Visit the names that a function's code looks up in its globals, in builtins and in imported modules."""
        space, names = x.__globals__, names_of(x.__code__)
        self.spaces[id(space)] = space
        self._attributes |= names.attributes
        if object_kinds.may_create(x):
            self._attributes.update(CONSTRUCTORS)
        for other in sorted(names.attributes & object_kinds.REFUSED_ATTRIBUTES):
            error = UntraceableError(
                f"{name} reads {other}: its result may depend on more than numbers; call the functions by their names"
            )
            locate_use(error, x.__code__, other)
            raise error
        refuse_library_changes(x, names.assigned, replaceable="geomctrl" if self.of_copies else "")
        other = ""
        try:
            for other in names.loaded:
                self._loaded(other, space, name)
            for other in names.modules:
                self._visit(imported(other, space, name), other)
        except UntraceableError as error:
            locate_use(error, x.__code__, other)
            raise

    def _loaded(self, other: str, space: dict[str, Any], name: str) -> None:
        if other in space:
            self.named.append((space, other, space[other]))
            self._visit(space[other], other)
        elif other in object_kinds.IMPURE:
            raise UntraceableError(f"{name} calls {other}: {outside_of_the_law(None)}")
        elif other in DYNAMIC_LOOKUPS:
            self._attributes.add(other)
        else:
            self.named.append((space, other, MISSING))
            own = vars(builtins).get(other, MISSING)
            self.signature.append((other, identity(own)))
            self.reached.append(own)
            if isinstance(own, types.FunctionType):
                self._visit(own, other)

    def _class(self, kind: type, name: str) -> None:
        mro = kind.__mro__
        self.signature.append((name, mro if type(kind) in (type, abc.ABCMeta) else tuple(map(identity, mro))))
        self.reached.append(mro)
        if is_own_class(type(kind)) and not type(kind).__module__.startswith("geomctrl."):
            self._visit(type(kind), f"type({name})")
        for cls in mro:
            if id(cls) in self._package_classes:
                continue
            if cls.__module__.startswith("geomctrl."):  # a class of the package may call any of its attributes
                self._package_classes.add(id(cls))
                self._attributes |= names_in_class(cls, len(vars(cls)), object_kinds.NOT_READ)
            elif object_kinds.has_creating_methods(cls):
                self._attributes.update(CONSTRUCTORS)
            elif id(cls) not in self._known and is_own_class(cls):
                if "__del__" in vars(cls):
                    raise UntraceableError(f"{cls.__name__} has __del__, which copies of its objects would call too")
                self._owns(cls)

    def _owns(self, x: Any) -> None:
        self._known[id(x)] = frozenset(vars(x))
        self._owners[id(x)] = x

    def _module(self, x: types.ModuleType, name: str) -> None:
        self.signature.append((name, identity(x)))
        if not is_pure_module(x.__name__, self.allowed):
            raise UntraceableError(f"{name} is used: {outside_of_the_law(x.__name__)}")
        if x.__name__ == "dataclasses":
            self._attributes.add("__dataclass_fields__")
        if is_followed(x.__name__):
            self._owns(x)
        elif origin(x.__name__) != "geomctrl":
            self._libraries[id(x)] = x

    def _builtin(self, x: Any, name: str) -> None:
        self.signature.append((name, identity(x)))
        whose = getattr(x, "__self__", None)
        module = getattr(getattr(x, "__objclass__", x), "__module__", None) or "builtins"
        owned = isinstance(whose, (type(None), type, types.ModuleType, np.ufunc)) or issubclass(type(x), FUNCTIONS[1:])
        if not owned or not is_pure_module(module, self.allowed) or is_followed(module) or is_printed(x):
            raise UntraceableError(f"{name} ({x.__name__}) is used: {outside_of_the_law(module)}")

    def _visit_object(self, x: Any, name: str) -> None:
        """Visit an object that is no function, class or module: its parts, its contents and its attributes."""
        kind = type(x)
        if (unchanging := next((UNCHANGING[base] for base in kind.__mro__ if base in UNCHANGING), None)) is not None:
            self.signature.append((name, identity(x), kind))
            own = {k: y for k, y in vars(x).items() if k not in unchanging}
            self._several(name, kind, *own, *own.values())
        elif kind is dataclasses.Field:
            self._several(name, kind, *attributes_of(x).values())
        elif issubclass(type(x), object_kinds.LIBRARY) or kind.__module__ in object_kinds.PURE_MODULES or x is MISSING:
            self.signature.append((name, identity(x)))
            refuse_files(x, name)
        elif kind is object:  # a mark that code recognizes by its identity
            self.signature.append((name, identity(x)))
        elif (parts := parts_of(x)) is not None:
            self._several(name, kind, *parts)
        elif kind is np.vectorize:
            own = {special: getattr(x, special) for special in ("pyfunc", "otypes", "signature", "cache", "excluded")}
            self._special += [(name, x, special, value) for special, value in own.items()]
            self._several(name, kind, *own.values())
        elif kind in GETTERS:
            self._several(name, kind, *x.__reduce__())
        elif issubclass(kind, types.MappingProxyType):
            self._several(name, kind, underlying(x))
        elif issubclass(kind, (*CONTAINERS, np.random.Generator)):
            self.held.append((name, x, contents := content(x), False))
            if issubclass(kind, np.ndarray):
                self._special.append((name, x, "strides", x.strides))
            self._several(name, kind, *values_in(x, contents))
            self._own_attributes(x, name)
        elif issubclass(kind, (tuple, frozenset)):
            self._several(name, kind, *(tuple if issubclass(kind, tuple) else frozenset).__iter__(x))
            self._own_attributes(x, name)
        elif is_rotation(x):
            self.signature.append((name, kind, x.as_quat().tobytes()))
        elif (consists_of_attributes(kind) or issubclass(kind, PLAIN)) and not object_kinds.has_hidden_contents(kind):
            self.signature.append((name, *plain_value(x)) if issubclass(kind, PLAIN) else (name, kind))
            self._own_attributes(x, name)
        elif origin(kind.__module__) == "library" and (wrapped := getattr(x, "__wrapped__", None)) is not None:
            self._several(name, kind, wrapped)
        else:
            raise UntraceableError(": ".join(unknown_object(name, kind)))

    def _own_attributes(self, x: Any, name: str) -> None:
        """Visit the attributes and the class of an object of a user's class, or of a table."""
        if consists_of_attributes(type(x)):
            attributes = attributes_of(x)
            self._special.append((name, x, "__class__", type(x)))
            self.held.append((name, x, attributes, True))
            self.signature.append((name, type(x), tuple(attributes)))
            for attribute, value in attributes.items():
                self._visit(value, f"{name}.{attribute}")
            self._class(type(x), name)

    def _several(self, name: str, kind: type, *xs: Any) -> None:
        self.signature.append((name, kind, len(xs)))
        for x in xs:
            self._visit(x, name)
