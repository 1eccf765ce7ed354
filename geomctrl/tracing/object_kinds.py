"""Kinds of objects that `ExternalState` reaches: libraries' functions, what is refused, and what is followed."""

from __future__ import annotations

import abc
import builtins
import dis
import enum
import operator
import re
import types
from typing import Any, Generic, Protocol

import numpy as np

from .code_identity import CONSTRUCTORS, PLAIN, Names, codes, is_own_class, names_of, parts_of
from .containers import TABLES

MAX_THINGS = 10_000  # largest number of inspected objects
PURE_MODULES = {"typing", "dataclasses"}  # modules whose objects have no side effects
IMPURE = {"breakpoint", "eval", "exec", "globals", "input", "locals", "open", "__import__"}
PRINTED = [getattr(builtins, name) for name in (*IMPURE, "print")]  # by value: an attribute, another name
READERS = {id(f): f for f in (getattr, setattr, delattr, vars, operator.attrgetter, operator.methodcaller)}
REFUSED_ATTRIBUTES = {"__globals__", "__builtins__", "__subclasses__", "__code__"}  # give access to unnamed objects
NOT_READ = frozenset(("start", "value"))  # attributes of the package's classes that no code of a law reads
NOT_IMPLICIT = {*CONSTRUCTORS, "__repr__", "__str__"}
CREATORS = {"copy", "copyreg", "dataclasses", "enum", "types", "typing"}  # functions that may create users' objects
GIVEN_CLASSES = {"__get__", "__array_function__"}  # methods to which Python and numpy pass classes
FUNCTIONS = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)
LIBRARY = (np.ufunc, np.dtype, type(np.where), re.Pattern, types.GenericAlias, type(Names.loaded),
           types.GetSetDescriptorType, types.MemberDescriptorType, types.MethodWrapperType,
           types.ClassMethodDescriptorType, type(vars(abc.ABC)["_abc_impl"]))  # fmt: skip
POLYNOMIALS = (np.poly1d, np.polynomial.Polynomial)


def consists_of_attributes(kind: type) -> bool:
    """Whether objects of a class consist of their attributes: those of users' classes, tables, polynomials."""
    return is_own_class(kind) or kind.__module__.startswith(TABLES) or kind in POLYNOMIALS


def has_hidden_contents(kind: type) -> bool:
    """Whether a user's class has a base class in C, as `random.Random`, whose objects are more than attributes."""
    if issubclass(kind, (*PLAIN, types.SimpleNamespace)):
        return False
    return is_own_class(kind) and any(
        type(vars(base).get("__new__")) is types.BuiltinFunctionType for base in kind.__mro__[:-1]
    )


def is_printed(x: Any) -> bool:
    return any(x is y for y in PRINTED)


def has_more(kind: type) -> bool:
    """Whether the class of a plain object is a user's class, whose objects may have attributes and methods."""
    return kind.__module__ != "builtins" and is_own_class(kind)


def is_implicit(owner: Any, name: str, x: Any) -> bool:
    """Whether Python may look up an attribute of a class or module that no code names."""
    if not isinstance(owner, type):
        return name == "__getattr__"
    special = name.startswith("__") and name not in NOT_IMPLICIT
    return special and (type(x) is types.FunctionType or parts_of(x) is not None or is_own_class(type(x)))


def has_creating_methods(cls: type) -> bool:
    """Whether methods of a base class may create objects of its subclasses, as `int.from_bytes` and slices of lists."""
    return not is_own_class(cls) and cls not in (object, tuple, enum.Enum, abc.ABC, Generic, Protocol)


def may_create(x: Any, *, of_class: bool = False) -> bool:
    """Whether a function may create objects of classes that it does not name, such as the class of another object.

    of_class: x is the function of a class method, whose first argument is the class. Attributes of such a class may be
    read, as in `type(self).GAIN`, and the class may be compared.
    """
    if not isinstance(x, types.FunctionType):
        return of_class
    names = names_of(x.__code__)
    if x.__name__ in GIVEN_CLASSES or any(map(_is_special, (names.attributes - {"__class__"}).union(names.loaded))):
        return True
    own = x.__code__.co_varnames[: of_class and 1]
    return any(_uses_classes(code, own) for code in codes(x.__code__))


def _is_special(name: Any) -> bool:
    return str(name).startswith("__") and str(name).endswith("__")


def _uses_classes(code: types.CodeType, classes: tuple[str, ...]) -> bool:
    """Whether code does more with classes of objects, and with variables of these names, than read and compare them."""
    todo = [i for i in dis.get_instructions(code) if i.opname not in ("PRECALL", "PUSH_NULL", "COPY_FREE_VARS")]
    for k, i in enumerate(todo):
        if i.opname in ("LOAD_BUILD_CLASS", "MATCH_CLASS"):
            return True
        end = k + 1
        if i.argval == "type":
            end = _operand(todo, end)
            if todo[end].opname != "CALL":
                return True
            end += 1
        elif i.argval != "__class__" and not any(name in _variables(i) for name in classes):
            continue
        read = todo[end].opname in ("LOAD_ATTR", "LOAD_METHOD") and not _is_special(todo[end].argval)
        if not read and "IS_OP" not in (todo[end].opname, todo[_operand(todo, end)].opname):
            return True
    return False


def _operand(instructions: list[dis.Instruction], k: int) -> int:
    """The index after a name and its attributes that are loaded at k."""
    k += instructions[k].opname.startswith(("LOAD_FAST", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_NAME"))
    while k < len(instructions) - 1 and instructions[k].opname == "LOAD_ATTR":
        k += 1
    return min(k, len(instructions) - 1)


def _variables(i: dis.Instruction) -> tuple[Any, ...]:
    if i.opname.startswith(("STORE_", "MAKE_CELL")):
        return ()
    return i.argval if isinstance(i.argval, tuple) else (i.argval,)
