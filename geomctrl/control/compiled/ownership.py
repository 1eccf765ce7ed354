"""Whose a class, a function or a module is, and what plain things are."""

from __future__ import annotations

import enum
import functools
import sys
import sysconfig
import types
from typing import Any

import numpy as np

PLAIN = (bool, int, float, str, bytes, complex, type(None), type(...), np.generic, enum.Enum, range, slice)
LIBRARIES = {"numpy", "scipy", "numba", "llvmlite", "sympy", "casadi", "jax", "torch", "matplotlib", "pandas", "pytest"}
PURE = """
    abc bisect builtins cmath collections contextlib copy dataclasses decimal enum fractions functools itertools math
    numbers operator random re statistics string types typing _collections_abc _functools _operator
"""  # rooms of the standard library in which a call leaves nothing behind


@functools.lru_cache(maxsize=1024)
def is_own(module: str | None) -> bool:
    """Whether a module is the user's or geomctrl's, not of Python or of a library that computes."""
    if module is None:
        return True
    top = module.partition(".")[0]
    if top in ("geomctrl", "__main__"):
        return True
    if top in LIBRARIES or top in sys.builtin_module_names:
        return False
    file = getattr(sys.modules.get(top), "__file__", None)
    standard = top in sys.stdlib_module_names and (file is None or file.startswith(sysconfig.get_path("stdlib")))
    return not standard


def is_own_class(kind: type) -> bool:
    """As for modules; what `exec` has made has none."""
    made = bool(kind.__flags__ & 1 << 9)  # by a class statement
    return kind is types.SimpleNamespace or (made and (kind.__module__ == "builtins" or is_own(kind.__module__)))


def is_own_function(x: types.FunctionType) -> bool:
    return x.__module__ == "builtins" or is_own(x.__module__)


def leaves_nothing(module: str | None) -> bool:
    """Whether calls of a module's functions leave nothing behind, and depend on their arguments alone."""
    top = (module or "").partition(".")[0]
    return top in PURE.split() or is_own(module) or top not in sys.stdlib_module_names


def slots_of(x: Any) -> dict[str, Any]:
    """The attributes of an object by name, those in slots among them."""
    slots = {n for c in type(x).__mro__ for n in _names(getattr(c, "__slots__", ())) if not n.startswith("__")}
    found = {name: getattr(x, name) for name in sorted(slots) if hasattr(x, name)}
    return found | getattr(x, "__dict__", {})


def _names(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def word(x: Any) -> tuple:
    """What a plain thing is."""
    if isinstance(x, enum.Enum):
        return type(x), id(x)
    return type(x), x if isinstance(x, (str, bytes)) else repr(x)
