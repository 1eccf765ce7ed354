"""Kinds of objects that `ExternalState` reaches: libraries' functions, what is refused, and what is followed."""

from __future__ import annotations

import abc
import builtins
import operator
import re
import types
from typing import Any

import numpy as np

from geomctrl.tracing.code_identity import CONSTRUCTORS, Names, is_own_class, parts_of
from geomctrl.tracing.replacements import Replacements

from .containers import TABLES

MAX_THINGS = 10_000  # largest number of inspected objects
PURE_MODULES = {"typing", "dataclasses"}  # modules whose objects have no side effects
IMPURE = {"breakpoint", "eval", "exec", "globals", "input", "locals", "open", "__import__"}
PRINTED = [getattr(builtins, name) for name in (*IMPURE, "print")]  # by value: an attribute, another name
READERS = {id(f): f for f in (getattr, setattr, delattr, vars, operator.attrgetter, operator.methodcaller)}
REFUSED_ATTRIBUTES = {"__globals__", "__builtins__", "__subclasses__", "__code__"}  # give access to unnamed objects
CONTRACT_ATTRIBUTES = {  # attributes of a controller
    *("coriolis_matrix", "lyapunov", "allowance", "true_parameters", "reference", "robot", "group", "form", "q_d")
}
NOT_READ = frozenset(("start", "value"))  # attributes of the package's classes that no code of a law reads
NOT_IMPLICIT = {*CONSTRUCTORS, "__repr__", "__str__", "__init_subclass__", "__set_name__"}
COMPARISONS = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__"}  # as dataclasses define them
FUNCTIONS = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)
LIBRARY = (np.ufunc, np.dtype, type(np.where), re.Pattern, types.GenericAlias, type(Names.loaded),
           types.GetSetDescriptorType, types.MemberDescriptorType, types.MethodWrapperType,
           types.ClassMethodDescriptorType, type(vars(abc.ABC)["_abc_impl"]))  # fmt: skip
OF_ROBOTS = {"_model", "_code", "_frames", "parameters", "placements", "gravity", "joints", "frames"}
NUMERICAL = ("arguments", "lie", "integrators", "mechanism", "terms", "papers", "robot", "constrained", "motion")
CALLED = [f"geomctrl.{name}" for name in (*NUMERICAL, "control", "controllers")]  # packages that laws may call
NOT_CALLED = ("compiled", "group_members", "loop", "loop_runner", "many", "side_by_side")  # by laws
REPLACEMENTS = Replacements(*CALLED, without=tuple(f"geomctrl.control.{name}" for name in NOT_CALLED))


def has_attributes(kind: type) -> bool:
    """Whether objects of a class consist of their attributes: those of users' classes, tables, polynomials."""
    return is_own_class(kind) or kind.__module__.startswith(TABLES) or kind is np.poly1d


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
