"""What a user's code can remember outside of its objects: globals, what they hold, attributes of classes, random
numbers. A law that is tried on symbols, or at random states, leaves all that as it was.
"""

from __future__ import annotations

import random
import types
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from geomctrl.kernels.primitives import codes

MOST = 10_000  # things that are looked at
MISSING = object()


class Outside:
    """The memory that functions and classes reach by global names; `restored` puts it back, saying what had changed."""

    def __init__(self, functions: Iterable[types.FunctionType], classes: Iterable[type], is_own: Any):
        self._is_own = is_own
        self._seen: set[int] = set()
        self._names: list[tuple[dict, str, Any]] = []
        self._held: list[tuple[str, Any, Any]] = []
        for function in functions:
            self._function(function)
        for kind in classes:
            self._class(kind)
        self._random = random.getstate(), np.random.get_state()  # noqa: NPY002 (the user's own)

    def restored(self) -> str:
        """The name of what is not what it was, "" where all is; then it is again."""
        found = ""
        for space, name, value in self._names:
            if space.get(name, MISSING) is not value:
                found, space[name] = found or name, value
        for name, x, before in self._held:
            if _differs(x, before):
                found = found or name
                _put_back(x, before)
        states = random.getstate(), np.random.get_state()  # noqa: NPY002
        if repr(states) != repr(self._random):
            found = found or "the state of random numbers"
            random.setstate(self._random[0])
            np.random.set_state(self._random[1])  # noqa: NPY002
        return found

    def _function(self, x: types.FunctionType) -> None:
        if id(x) in self._seen or not self._is_own(x.__module__) or (x.__module__ or "").startswith("geomctrl."):
            return
        self._seen.add(id(x))
        space = x.__globals__
        for name in dict.fromkeys(n for code in codes(x.__code__) for n in code.co_names):
            if name in space:
                value = space[name]
                if not isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type)):
                    self._names.append((space, name, value))
                self._visit(value, name)
        for name, cell in zip(x.__code__.co_freevars, x.__closure__ or ()):
            self._held.append((name, cell, _cell(cell)))
            self._visit(_cell(cell), name)

    def _class(self, kind: type) -> None:
        for cls in kind.__mro__:
            if id(cls) in self._seen or not self._is_own(cls.__module__) or cls.__module__.startswith("geomctrl."):
                continue
            self._seen.add(id(cls))
            for name, value in list(vars(cls).items()):
                inner = getattr(value, "__func__", getattr(value, "fget", value))
                if isinstance(inner, types.FunctionType):
                    self._function(inner)
                elif not name.startswith("__"):
                    self._visit(value, f"{cls.__name__}.{name}")

    def _visit(self, x: Any, name: str) -> None:
        if isinstance(x, types.FunctionType):
            self._function(x)
        elif isinstance(x, type):
            self._class(x)
        elif id(x) not in self._seen and len(self._held) < MOST and (content := _content(x, self._is_own)) is not None:
            self._seen.add(id(x))
            self._held.append((name, x, content))
            inner = content.values() if isinstance(content, dict) else content if isinstance(content, list) else ()
            for value in inner:
                self._visit(value, name)


def _content(x: Any, is_own: Any) -> Any:
    """A copy of what something that can change holds; None for all else."""
    if isinstance(x, np.ndarray):
        return x.copy()
    if isinstance(x, np.random.Generator):
        return x.bit_generator.state
    if isinstance(x, dict):
        return dict(x)
    if isinstance(x, (list, deque, set, bytearray)):
        return list(x)
    kind = type(x)
    if is_own(kind.__module__) and not kind.__module__.startswith("geomctrl.") and hasattr(x, "__dict__"):
        return dict(vars(x))
    return None


def _cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return MISSING


def _differs(x: Any, before: Any) -> bool:
    if isinstance(x, types.CellType):
        return _cell(x) is not before
    if isinstance(x, np.ndarray):
        return x.shape != before.shape or x.tobytes() != before.tobytes()
    if isinstance(x, np.random.Generator):
        return repr(x.bit_generator.state) != repr(before)
    if isinstance(before, dict):
        now = x if isinstance(x, dict) else vars(x)
        return list(now) != list(before) or any(now[name] is not value for name, value in before.items())
    return len(x) != len(before) or any(a is not b for a, b in zip(x, before))


def _put_back(x: Any, before: Any) -> None:
    if isinstance(x, types.CellType):
        x.cell_contents = before
    elif isinstance(x, np.ndarray):
        x[...] = before
    elif isinstance(x, np.random.Generator):
        x.bit_generator.state = before
    elif isinstance(before, dict):
        now = x if isinstance(x, dict) else vars(x)
        now.clear()
        now.update(before)
    else:
        x.clear()
        x.update(before) if isinstance(x, set) else x.extend(before)
