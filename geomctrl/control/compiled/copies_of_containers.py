"""Symbolic copies of dicts, views of dicts, frozensets and random generators."""

from __future__ import annotations

import types
from collections import Counter, OrderedDict, defaultdict
from typing import Any

import numpy as np

from geomctrl.tracing.containers import key_signature, underlying

from .law_memory import place_of


def copy_of_frozenset(copies: Any, x: frozenset, path: str) -> Any:
    keys = tuple(map(key_signature, x))  # in their order, because code may depend on it
    copies.signature.append((frozenset, keys))
    return copies._unknown(x, path) if None in keys else x


def copy_of_dict(copies: Any, x: Any, path: str) -> Any:
    keys = tuple(map(key_signature, x))
    if None in keys:
        return copies._unknown(x, path)
    kind = type(x)
    clone: Any = copies._begin(x, kind() if kind in (OrderedDict, defaultdict, Counter) else {}, keys)
    if kind is defaultdict:
        clone.default_factory = copies.of(x.default_factory, f"{path}.default_factory")
    for key, value in x.items():
        clone[key] = copies.of(value, place_of(path, key, True))
    return copies._done(clone, path)


def copy_of_proxy(copies: Any, x: types.MappingProxyType, path: str) -> Any:
    shown = copies.of(underlying(x), path)
    return copies._begin(x, types.MappingProxyType(shown)) if isinstance(shown, dict) else copies._unknown(x, path)


def copy_of_generator(copies: Any, x: np.random.Generator, path: str) -> Any:
    clone = np.random.Generator(type(x.bit_generator)())
    clone.bit_generator.state = x.bit_generator.state
    copies._begin(x, clone)
    copies.filled.append((clone, path, x.bit_generator.state))
    return clone
