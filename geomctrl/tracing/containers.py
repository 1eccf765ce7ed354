"""Contents of objects, containers, arrays and random generators: copying, comparing and restoring them."""

from __future__ import annotations

import functools
import gc
import hashlib
import operator
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .code_identity import (
    MISSING,
    PLAIN,
    attributes_of,
    identity,
    in_cell,
    plain_value,
    set_attributes,
)
from .rotations import is_rotation

MAX_INLINE_BYTES = 1024  # arrays up to this size are part of a key; longer ones by digest
TABLES = "scipy.interpolate", "scipy.spatial.transform"  # modules of objects without side effects
GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)  # functions with constants, as objects
RANDOM_STATE = "the state of random numbers"  # name of what numpy and random share among all code
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
    """The parts of the `content` of a container, array or random generator x that must be inspected."""
    if issubclass(type(x), np.ndarray):
        return [*content.ravel().tolist()] if x.dtype == object else [repr(array_signature(content))]
    if issubclass(type(x), np.random.Generator):
        return []
    if issubclass(type(x), dict):
        factory = (x.default_factory,) if issubclass(type(x), defaultdict) else ()
        return [*factory, *(y for pair in content.items() for y in pair)]
    values = content if issubclass(type(x), set) else content.values()
    return [x.maxlen, *values] if issubclass(type(x), deque) else [*values]


@functools.lru_cache(maxsize=1024)
def _base(kind: type) -> Any:
    """The built-in container type of a class; None for other classes."""
    return next((base for base in (OrderedDict, dict, list, set, deque, bytearray) if issubclass(kind, base)), None)


def content(x: Any, attributes: bool = False) -> Any:
    """A copy of what x contains, by key, index or name: of an array an array, of a random generator its state.

    The copy of an array is read-only if the array is.

    attributes: of a container the attributes instead. Code of a user's class does not run.
    """
    kind = type(x)
    if attributes:
        return attributes_of(x)
    if issubclass(kind, np.ndarray):
        copy = np.array(x)
        copy.flags.writeable = x.flags.writeable
        return copy
    if issubclass(kind, np.random.Generator):
        return x.bit_generator.state
    if kind is types.CellType:
        return {} if (contents := in_cell(x)) is MISSING else {"": contents}
    base = _base(kind)
    if base is None:
        return attributes_of(x)
    if issubclass(base, dict):
        return dict(base.items(x))
    return dict.fromkeys(set.__iter__(x)) if base is set else dict(enumerate(base.__iter__(x)))


def difference(x: Any, before: Any, attributes: bool = False) -> str | None:
    """What differs from the earlier `content` of x: ".name" of an attribute, "" for anything else; None if nothing."""
    kind = type(x)
    if isinstance(before, np.ndarray):
        same = x.shape == before.shape and x.dtype == before.dtype and x.flags.writeable is before.flags.writeable
        return None if same and np.ndarray.tobytes(x) == np.ndarray.tobytes(before) else ""
    now = content(x, attributes)
    if issubclass(kind, np.random.Generator) and not attributes:
        return None if repr(now) == repr(before) else ""
    keys = now.keys() != before.keys() if attributes else other_keys(x, now, before)
    if not keys and all(_is_same(now[key], before[key]) for key in now):
        return None
    if kind is types.CellType or not (attributes or _base(kind) is None):
        return ""
    return "." + next(name for name in [*before, *now] if now.get(name, now) is not before.get(name, before))


def other_keys(x: Any, now: Mapping, before: Mapping) -> bool:
    """Whether the keys of x have changed: for a dict or a set, also their order."""
    if not issubclass(type(x), (dict, set)):
        return now.keys() != before.keys()
    return len(now) != len(before) or not all(map(_is_same_key, now, before))


def _is_same_key(a: Any, b: Any) -> bool:
    return _is_same(a, b) or (None not in (key_signature(a), key_signature(b)) and a == b)


def _is_same(a: Any, b: Any) -> bool:
    """Whether two values are one object, or tuples of the same objects."""
    return a is b or (
        type(a) is type(b) and issubclass(type(a), tuple) and len(a) == len(b) and all(map(_is_same, a, b))
    )


def put_back(x: Any, before: Any, attributes: bool = False) -> None:
    """Restore the `content` of x."""
    kind, base = type(x), _base(type(x))
    if attributes:
        set_attributes(x, before)
    elif issubclass(kind, np.ndarray):
        x.shape = before.shape
        x.flags.writeable = True
        x.view(np.ndarray)[...] = before
        x.flags.writeable = before.flags.writeable
    elif issubclass(kind, np.random.Generator):
        x.bit_generator.state = before
    elif kind is types.CellType:
        del x.cell_contents
        if before:
            x.cell_contents = before[""]
    elif base is None:
        set_attributes(x, before)
    else:
        base.clear(x)
        if issubclass(base, dict):
            for key, value in before.items():
                base.__setitem__(x, key, value)
        else:
            base.update(x, before) if base is set else base.extend(x, before.values())


def restored_attributes(special: Iterable[tuple[str, Any, str, Any]]) -> str:
    """Restore special attributes, (path, object, attribute, value); return the path of the first changed one, or ""."""
    changed = ""
    for path, x, name, value in special:
        now = type(x) if name == "__class__" else getattr(x, name)
        if now is not value and now != value:
            changed = changed or f"{path}.{name}"
            object.__setattr__(x, name, value)
    return changed


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
