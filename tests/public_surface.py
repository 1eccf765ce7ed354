"""The public surface of geomctrl: every callable that its public names lead to, and what a stranger has to learn.

Public are the names and modules of `geomctrl/__init__.py`, what the `__all__` of these modules lists, and the methods
of the classes among them. A method that overrides one of a base class counts once, as the base class documents it.

The reference of the site lists the same names by autosummary; tests/test_public_surface.py counts them.
"""

import enum
import functools
import inspect
import re
import types
from collections.abc import Iterator
from typing import NamedTuple

import geomctrl as gc

OWN = "geomctrl"


class Public(NamedTuple):
    """A callable with its path, "se3.exp" or "Plant.at", the part of the surface that it belongs to, and the object."""

    path: str
    part: str
    object: object


def parts() -> Iterator[tuple[str, types.ModuleType | None]]:
    """The parts that are counted separately: "" for the names of geomctrl itself, then its modules."""
    yield "", None
    yield from ((name, getattr(gc, name)) for name in sorted(gc.MODULES))


def listed(module: types.ModuleType) -> list[str]:
    return sorted(getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")])


@functools.cache
def contracts() -> dict[type, set[str]]:
    """Public contracts that classes fulfil without deriving from them, and the methods that they declare.

    Optional methods are those that the numbered rules of the docstring name: `lyapunov(t, q, v, z, plant)`.
    """
    result = [getattr(gc, name) for name in gc.NAMES]
    result += [getattr(module, name) for _, module in parts() if module is not None for name in listed(module)]
    protocols = [x for x in result if isinstance(x, type) and getattr(x, "_is_protocol", False)]
    return {
        x: {name for name in vars(x) if not name.startswith("_")} | set(re.findall(r"`(\w+)\(", x.__doc__ or ""))
        for x in protocols
    }


def fulfilled(owner: type) -> list[type]:
    """The contracts that a class fulfils: laws are Controllers, and so on for every class with a contract's methods."""
    if owner.__module__.startswith(f"{OWN}.controllers."):
        return [gc.Controller]
    return [
        x for x in contracts() if all(hasattr(owner, name) for name in vars(x) if inspect.isfunction(vars(x)[name]))
    ]


def members(owner: type) -> Iterator[tuple[str, tuple[type, str], object]]:
    """Return (name, class that first declares it, function) of the public methods that geomctrl defines."""
    for name in sorted({n for base in owner.__mro__ for n in vars(base) if not n.startswith("_")}):
        homes = [base for base in owner.__mro__ if name in vars(base) and base.__module__.startswith(OWN)]
        value = vars(homes[0])[name] if homes else None
        value = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if inspect.isfunction(value):
            homes += [contract for contract in fulfilled(owner) if name in contracts()[contract]]
            yield name, (homes[-1], name), value


def surface(errors: bool = False) -> list[Public]:
    """Return every public callable once, in the order of `parts`; error classes only on request."""
    seen: set[object] = set()
    out: list[Public] = []

    def add(path: str, part: str, value: object, key: object) -> bool:
        if key in seen:
            return False
        seen.add(key)
        out.append(Public(path, part, value))
        return True

    def add_name(path: str, part: str, value: object) -> None:
        if isinstance(value, types.ModuleType):
            if value in seen or not value.__name__.startswith(OWN):
                return
            seen.add(value)
            for name in listed(value):
                add_name(f"{path}.{name}", part, getattr(value, name))
        elif isinstance(value, type):
            if issubclass(value, BaseException) and not errors:
                seen.add(value)
            elif value.__module__.startswith(OWN) and add(path, part, value, value):
                for name, key, function in members(value) if not issubclass(value, enum.Enum) else ():
                    add(f"{path}.{name}", part, function, function if function in seen else key)
        elif callable(value) and str(getattr(value, "__module__", "")).startswith(OWN):
            value = inspect.unwrap(value)
            add(path, part, value, value)

    for part, module in parts():
        for name in sorted(gc.NAMES) if module is None else listed(module):
            add_name(f"{part}.{name}".lstrip("."), part, getattr(gc if module is None else module, name))
    return out
