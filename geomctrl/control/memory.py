"""What an object of the user's remembers, so that two moments can be compared: its attributes, and theirs."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from geomctrl.mechanism.mechanism import Mechanism

MOST = 10_000  # values that are looked at
PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)


def remembered(x: Any) -> dict[str, Any]:
    """Values by their paths (".gains[0]"): attributes, what functions close over, and the globals that they name."""
    found: dict[str, Any] = {}
    _visit(x, "", found, set())
    return found


def changed(before: dict[str, Any], after: dict[str, Any]) -> str:
    """What differs, in words; "" where nothing does."""
    for path in [*before, *after]:
        old, new = before.get(path, "nothing"), after.get(path, "nothing")
        if old is not new and old != new:
            return f"{path.lstrip('.')} changes from {_shown(old)} to {_shown(new)}"
    return ""


def _shown(x: Any) -> str:
    return "an array" if isinstance(x, tuple) else f"{x!r:.40}"


def _visit(x: Any, path: str, found: dict[str, Any], seen: set[int]) -> None:
    if len(found) >= MOST:
        return
    if isinstance(x, PLAIN):
        found[path] = x if x == x else "nan"
        return
    if id(x) in seen or isinstance(x, (Mechanism, types.ModuleType, type)):
        return
    seen.add(id(x))
    if isinstance(x, np.ndarray):
        found[path] = (x.shape, x.dtype.str, x.tobytes() if x.dtype != object else repr(x.tolist()))
    elif isinstance(x, np.random.Generator):
        found[path] = repr(x.bit_generator.state)
    elif isinstance(x, dict):
        for key, value in x.items():
            _visit(value, f"{path}[{key!r}]", found, seen)
    elif isinstance(x, (list, tuple, set, frozenset)):
        found[f"the length of {path.lstrip('.')}"] = len(x)
        for k, value in enumerate(x):
            _visit(value, f"{path}[{k}]", found, seen)
    elif isinstance(x, types.MethodType):
        _visit(x.__self__, path, found, seen)
        _visit(x.__func__, path, found, seen)
    elif isinstance(x, types.FunctionType):
        _function(x, path, found, seen)
    else:
        _object(x, path, found, seen)


def _function(x: types.FunctionType, path: str, found: dict[str, Any], seen: set[int]) -> None:
    for name, cell in zip(x.__code__.co_freevars, x.__closure__ or ()):
        try:
            _visit(cell.cell_contents, f"{path}.{name}", found, seen)
        except ValueError:  # not filled yet
            continue
    if x.__module__.startswith("geomctrl."):
        return
    for name in x.__code__.co_names:
        if name in x.__globals__ and not callable(x.__globals__[name]):
            _visit(x.__globals__[name], f"{path}.{name}", found, seen)


def _object(x: Any, path: str, found: dict[str, Any], seen: set[int]) -> None:
    for name, value in list(getattr(x, "__dict__", {}).items()):
        _visit(value, f"{path}.{name}", found, seen)
    for cls in type(x).__mro__:
        for name in getattr(cls, "__slots__", ()):
            if hasattr(x, name) and not name.startswith("__"):
                _visit(getattr(x, name), f"{path}.{name}", found, seen)
        for name, value in vars(cls).items():
            if isinstance(value, types.FunctionType) and not value.__module__.startswith("geomctrl."):
                _visit(value, f"{path}.{name}", found, seen)
