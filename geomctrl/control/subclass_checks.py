"""Checks of subclasses when they are created: paired methods, argument names, and overrides that nothing calls."""

from __future__ import annotations

import dis
import inspect
from types import CodeType
from typing import Any

from geomctrl.arguments import shown
from geomctrl.errors import ArgumentError

# Methods of a controller that closed loops, monitors, assertions and tuning call: the entry points of a law.
CONTRACT = (
    "__init__", "__call__", "start", "reference", "lyapunov", "allowance", "coriolis_matrix", "true_parameters",
    "settled", "sample_state", "tuned",
)  # fmt: skip


def require_together(kind: type, *names: str, why: str) -> None:
    """Raise ArgumentError unless the class that last overrides one of the methods `names` overrides all of them."""
    owners = [next(c for c in kind.__mro__ if name in vars(c)) for name in names]
    last = min(owners, key=kind.__mro__.index)
    own = [name for name, owner in zip(names, owners) if owner is last]
    if len(own) < len(names):
        others = _listed([name for name in names if name not in own])
        raise ArgumentError(f"{last.__name__}: overrides {_listed(own)} without {others}: they belong together, {why}")


def require_arguments(kind: type, name: str, arguments: str) -> None:
    """Raise ArgumentError unless the method `name` of a class can be called with arguments like "t, q, v"."""
    function = inspect.getattr_static(kind, name)
    if isinstance(function, (staticmethod, classmethod)) or not callable(function):
        raise ArgumentError(
            f"{kind.__name__}: {name}: expected a method {name}(self, {arguments}), got {shown(function)}"
        )
    count = len(arguments.split(",")) + 1
    try:
        inspect.signature(function).bind(*range(count))
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{kind.__name__}: {name}: expected it to take (self, {arguments}), got {inspect.signature(function)}"
        ) from None


def require_called(kind: type, package: str) -> None:
    """Raise ArgumentError if a class overrides a public method of a base in `package` that nothing would call.

    The methods that are called are found by following names in the code from the methods of `CONTRACT`.
    """
    called = _names_called(kind)
    for name in vars(kind):
        owner = next((c for c in kind.__mro__[1:] if name in vars(c)), None)
        if name.startswith("_") or name in called or owner is None or not owner.__module__.startswith(package):
            continue
        if callable(getattr(owner, name)):
            raise ArgumentError(
                f"{kind.__name__}: overrides `{name}`, which the law of {owner.__name__} does not call, so that the"
                " law would not change. Override `__call__`, and with it `lyapunov`, or give the method another name"
            )


def _names_called(kind: type) -> set[str]:
    """The names in the code of the methods of `CONTRACT`, followed through all methods of the class."""
    called, waiting = set(), list(CONTRACT)
    while waiting:
        name = waiting.pop()
        if name in called:
            continue
        called.add(name)
        for owner in kind.__mro__:  # a method may call super()
            waiting += _names_in(_function(vars(owner).get(name)))
    return called


def _function(x: Any) -> Any:
    """The code of a function, property, class method or cached property; None for anything else."""
    for attribute in ("__func__", "fget", "func", "__wrapped__"):
        x = getattr(x, attribute, x)
    return getattr(x, "__code__", None)


def _names_in(code: CodeType | None, own: str | None = None) -> list[str]:
    """Attributes that a method, or a function inside it, reads from its first argument or from super()."""
    if code is None:
        return []
    own = own or (code.co_varnames[0] if code.co_argcount else None)
    names, receiver = [], None
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR") and receiver in (own, "super"):
            names.append(step.argval)
        value = step.argval[-1] if isinstance(step.argval, tuple) else step.argval
        if step.opname.startswith(("LOAD_FAST", "LOAD_DEREF")) or value == "super":
            receiver = value
        elif not (receiver == "super" and step.opname in ("PRECALL", "CALL", "CACHE", "LOAD_GLOBAL", "PUSH_NULL")):
            receiver = None
    return [*names, *(name for x in code.co_consts if isinstance(x, CodeType) for name in _names_in(x, own))]


def overrides(kind: type, base: type, name: str) -> bool:
    """Whether `kind` overrides a method of `base`."""
    return getattr(kind, name) is not getattr(base, name)


def _listed(names: list[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)
