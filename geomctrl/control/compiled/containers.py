"""Contents of containers, arrays and random generators: copying, comparing and restoring them."""

from __future__ import annotations

import gc
import hashlib
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from geomctrl.tracing.code_identity import MISSING, PLAIN, attributes_of, identity, in_cell, plain_value
from geomctrl.tracing.rotations import is_rotation

MAX_INLINE_BYTES = 1024  # arrays up to this size are part of a key; longer ones by digest
TABLES = "scipy.interpolate", "scipy.spatial.transform"  # modules of objects without side effects
CONTAINERS = (dict, list, set, deque, bytearray, np.ndarray)


def array_signature(x: np.ndarray) -> tuple:
    """The identity of an array, equal for arrays of equal numbers."""
    content = x.tobytes()
    return (
        x.shape,
        x.dtype.str,
        storage(x),
        content if len(content) <= MAX_INLINE_BYTES else hashlib.sha256(content).digest(),
    )


def owner_of(x: Any) -> Any:
    """The array, or the other object, that owns the memory of an array."""
    while isinstance(x, np.ndarray) and x.base is not None:
        x = x.base
    return x


def table_signature(x: Any) -> Any:
    """The identity of a table of scipy, equal for equal contents."""
    if issubclass(type(x), PLAIN):
        return plain_value(x)
    if isinstance(x, np.ndarray):
        return array_signature(x)
    if isinstance(x, (tuple, list)):
        return type(x), *(table_signature(y) for y in x)
    if is_rotation(x):
        return type(x), array_signature(np.asarray(x.as_quat()))
    if type(x).__module__.startswith(TABLES):
        return type(x), *((name, table_signature(y)) for name, y in sorted(attributes_of(x).items()))
    return identity(x)


def storage(x: np.ndarray) -> tuple[bool, bool, bool]:
    """What code can ask about the memory of an array."""
    flags = x.flags
    return flags.c_contiguous, flags.f_contiguous, flags.writeable


def key_signature(key: Any) -> Any:
    """The identity of a dict's key; None for objects with user-defined equality."""
    if issubclass(type(key), PLAIN):
        return plain_value(key)
    signatures = [key_signature(k) for k in key] if type(key) is tuple else [None]
    return None if None in signatures else tuple(signatures)


def is_named_tuple(x: Any) -> bool:
    return issubclass(type(x), tuple) and hasattr(type(x), "_fields")


def underlying(x: Any) -> Any:
    """The mapping that a read-only view shows, the object of a bound method, or x itself."""
    if issubclass(type(x), types.MethodType):
        return x.__self__
    return gc.get_referents(x)[0] if issubclass(type(x), types.MappingProxyType) else x


def values_in(x: Any, content: Any) -> list[Any]:
    """The parts of a copy of x's contents that must be inspected."""
    if issubclass(type(x), np.ndarray):
        return [*content.ravel().tolist()] if x.dtype == object else [repr(array_signature(content))]
    if issubclass(type(x), np.random.Generator):
        return []
    if isinstance(content, dict):
        factory = (x.default_factory,) if issubclass(type(x), defaultdict) else ()
        return [*factory, *(y for pair in content.items() for y in pair)]
    return [x.maxlen, *content] if issubclass(type(x), deque) else list(content)


def content_of(x: Any) -> Any:
    """A copy of the contents of a container or random generator; code of a user's class does not run."""
    if issubclass(type(x), np.ndarray):
        return np.array(x)
    if issubclass(type(x), np.random.Generator):
        return x.bit_generator.state
    base = _base(x)
    return dict(base.items(x)) if issubclass(base, dict) else list(base.__iter__(x))


def _base(x: Any) -> Any:
    """The built-in container type of x."""
    return next(kind for kind in (OrderedDict, dict, list, set, deque, bytearray) if issubclass(type(x), kind))


def differs(x: Any, before: Any, attributes: bool = False) -> bool:
    if type(x) is types.CellType:
        return in_cell(x) is not before
    if isinstance(before, np.ndarray):
        return x.shape != before.shape or x.dtype != before.dtype or x.tobytes() != before.tobytes()
    now = attributes_of(x) if attributes else content_of(x)
    if issubclass(type(x), np.random.Generator):
        return repr(now) != repr(before)
    if isinstance(before, dict):
        return list(map(id, now)) != list(map(id, before)) or any(now[k] is not y for k, y in before.items())
    return len(now) != len(before) or any(a is not b for a, b in zip(now, before))


def put_back(x: Any, before: Any) -> None:
    if type(x) is types.CellType:
        if before is MISSING:
            del x.cell_contents
        else:
            x.cell_contents = before
    elif issubclass(type(x), np.ndarray):
        x.shape = before.shape
        np.asarray(x)[...] = before
    elif issubclass(type(x), np.random.Generator):
        x.bit_generator.state = before
    else:
        base = _base(x)
        base.clear(x)
        if isinstance(before, dict):
            for key, value in before.items():
                base.__setitem__(x, key, value)
        else:
            (base.update if base is set else base.extend)(x, before)


def space_of(owner: Any) -> Any:
    """The members of a class or module, or a dict itself."""
    return owner if isinstance(owner, dict) else vars(owner)


def set_member(owner: Any, name: str, value: Any) -> None:
    """Set or delete a member."""
    if isinstance(owner, type):
        type.__delattr__(owner, name) if value is MISSING else type.__setattr__(owner, name, value)
    elif value is MISSING:
        space_of(owner).pop(name)
    else:
        space_of(owner)[name] = value


def shared_array(reached: Iterable[Any], copies: Mapping[int, tuple[int, Any]], filled: Iterable[tuple]) -> str:
    """The path of a copied array that code also reaches by a name; "" if there is none."""
    named = [copies[id(x)][1] for x in reached if type(x) is np.ndarray and id(x) in copies]
    return next((path for x, path, _ in filled if any(x is y for y in named)), "")
