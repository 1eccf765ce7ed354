"""A readable repr for objects: the call that creates them, with short arrays and robots by name."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

MAX_ENTRIES = 12  # largest number of array entries that are written out
EMPTY = inspect.Parameter.empty
MAX_CHARACTERS = 80  # largest number of characters of other values


class ReadableRepr:
    """Base class with a readable repr: `Passivity(panda, Sinusoids(...), Lambda=5, K=20)`.

    It shows the constructor arguments that are also attributes and differ from their defaults. Subclasses that store
    their arguments in another form override `_constructed_with`.
    """

    def __repr__(self) -> str:
        try:
            return self._call()
        except Exception:  # a partly constructed object in an error message: repr must not hide that error
            return object.__repr__(self)

    def _call(self) -> str:
        parameters = inspect.signature(type(self)).parameters
        parts = []
        for name, value in self._constructed_with(list(parameters)).items():
            default = parameters[name].default if name in parameters else getattr(type(self), name, EMPTY)
            if not _same(value, default):
                parts.append(described(value) if name == "robot" else f"{name}={described(value)}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def _constructed_with(self, names: Sequence[str]) -> dict[str, Any]:
        """Name and value of each argument that is stored, in the constructor's order."""
        values = {name: getattr(self, name, self) for name in names}
        return {name: value for name, value in values.items() if value is not self and not _own_method(self, value)}


def described(x: Any) -> str:
    """Describe one value briefly: a gain matrix g I as g, a diagonal one as diag(...), a robot by its name."""
    if isinstance(x, np.ndarray) and x.dtype != object:
        return _array(x)
    if isinstance(x, (float, np.floating)):
        return f"{float(x):.6g}"
    if isinstance(x, types.FunctionType | types.MethodType | type):
        return x.__qualname__
    if isinstance(x, (list, tuple)) and type(x) in (list, tuple):
        inside = ", ".join(map(described, x[:MAX_ENTRIES])) + (", ..." if len(x) > MAX_ENTRIES else "")
        return f"[{inside}]" if isinstance(x, list) else f"({inside}{',' if len(x) == 1 else ''})"
    if isinstance(x, Mapping):
        inside = ", ".join(f"{k!r}: {described(v)}" for k, v in list(x.items())[:MAX_ENTRIES])
        return "{" + inside + (", ..." if len(x) > MAX_ENTRIES else "") + "}"
    if isinstance(x, ReadableRepr):
        return repr(x)
    if hasattr(x, "joint_names"):  # a robot; this module can not import the class
        return str(getattr(x, "name", "robot"))
    text = repr(x)
    return text if len(text) <= MAX_CHARACTERS else f"<{type(x).__name__}>"


def _array(a: np.ndarray) -> str:
    if a.ndim == 2 and a.shape[0] == a.shape[1] and a.shape[0] > 1:
        diagonal = np.diag(a)
        if np.array_equal(a, np.diag(diagonal)):
            return f"{diagonal[0]:.6g}" if (diagonal == diagonal[0]).all() else f"diag({_numbers(diagonal)})"
    if a.size > MAX_ENTRIES:
        return f"<array {a.shape}>"
    if a.ndim == 0:
        return f"{a[()]:.6g}" if a.dtype.kind == "f" else str(a[()])
    return f"[{_numbers(a)}]" if a.ndim == 1 else f"[{', '.join(_array(row) for row in a)}]"


def _numbers(a: np.ndarray) -> str:
    shown = [f"{x:.6g}" if a.dtype.kind == "f" else str(x) for x in a[:MAX_ENTRIES].tolist()]
    return ", ".join(shown + ["..."] * (len(a) > MAX_ENTRIES))


def _own_method(owner: object, value: Any) -> bool:
    return inspect.ismethod(value) and value.__self__ is owner


def _same(value: Any, default: Any) -> bool:
    """Whether the value is the default; arrays are equal if all entries are."""
    if value is default:
        return True
    if default is EMPTY or value is None or default is None:
        return False
    if np.ndim(default) and np.shape(value) != np.shape(default):
        return False
    try:
        return bool(np.all(np.equal(value, default)))
    except (TypeError, ValueError):
        return False
