"""What a subclass overrides, looked at when it is made: what belongs together, with which arguments it is called."""

from __future__ import annotations

import inspect

from geomctrl.errors import ArgumentError


def require_together(kind: type, *names: str, why: str) -> None:
    """Raise ArgumentError unless one class among kind's bases defines all the methods `names`, the last to do so."""
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
            f"{kind.__name__}: {name}: expected a method {name}(self, {arguments}), got {function!r:.60}"
        )
    count = len(arguments.split(",")) + 1
    try:
        inspect.signature(function).bind(*range(count))
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{kind.__name__}: {name}: expected it to take (self, {arguments}), got {inspect.signature(function)}"
        ) from None


def overrides(kind: type, base: type, name: str) -> bool:
    """Whether a method of `base` is another one in its subclass `kind`."""
    return getattr(kind, name) is not getattr(base, name)


def _listed(names: list[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)
