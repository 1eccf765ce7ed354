"""A readable repr for objects: the call that creates them, with short arrays and robots by name."""

from __future__ import annotations

import functools
import inspect
import types
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from geomctrl.other_names import explain_call

MAX_ENTRIES = 12  # largest number of array entries that are written out
EMPTY = inspect.Parameter.empty
MAX_CHARACTERS = 80  # largest number of characters of other values


class ReadableRepr:
    """Base class with a readable repr, `Passivity(panda, Sinusoids(...), Lambda=5, K=20)`, from the constructor's
    arguments that differ from their defaults. Attributes come first, because they hold checked values.

    Constructors of subclasses record the arguments of their calls for `recorded`, and raise ArgumentError for unknown
    and missing ones.
    """

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = _recording(cls.__init__)

    def __repr__(self) -> str:
        try:
            return self._call()
        except Exception:  # a partly constructed object in an error message: repr must not hide that error
            return object.__repr__(self)

    def _call(self) -> str:
        parameters, call = inspect.signature(type(self)).parameters, recorded(self) or {}
        parts = []
        for name in dict.fromkeys([*parameters, *call]):
            default = parameters[name].default if name in parameters else getattr(type(self), name, EMPTY)
            value = getattr(self, name, call.get(name, self))
            if inspect.ismethod(value) and value.__self__ is self:
                value = call.get(name, self)
            if value is not self and not _same(value, default):
                parts.append(described(value) if name == "robot" else f"{name}={described(value)}")
        return f"{type(self).__name__}({', '.join(parts)})"


_calls: dict[int, tuple[weakref.ref, dict[str, Any]]] = {}


def recorded(x: object) -> dict[str, Any] | None:
    """Arguments by name of the call that constructed x; None for a copy, or if its class does not record them."""
    reference, arguments = _calls.get(id(x), (None, {}))
    return dict(arguments) if reference is not None and reference() is x else None


def _recording(function: Callable[..., None]) -> Callable[..., None]:
    """A constructor that records its arguments, unless a subclass's constructor calls it."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def constructor(self: Any, *args: Any, **kwargs: Any) -> None:
        entry = _calls.get(id(self))
        if entry is None or entry[0]() is not self:
            _record(signature, self, args, kwargs)
        try:
            function(self, *args, **kwargs)
        except TypeError:
            explain_call(function, (self, *args), kwargs)
            raise

    return constructor


def _record(signature: inspect.Signature, x: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    try:
        arguments = signature.bind(x, *args, **kwargs).arguments
    except TypeError:  # the constructor reports it
        return
    _, *names = arguments
    values = {name: arguments[name] for name in names}
    for name in names:
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            values |= values.pop(name)
    copies = {k: v.copy() if type(v) is np.ndarray else v for k, v in values.items()}
    number = id(x)
    # no Python function is called when x is freed: a Ctrl-C in one would be lost
    _calls[number] = weakref.ref(x, functools.partial(_calls.pop, number)), copies


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
