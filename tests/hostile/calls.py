"""Calls of public callables with one argument replaced, and what came of them."""

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hostile.discovery import Public, parameters
from hostile.values import Argument, Fresh, bad_values, legal_by_kind, legal_forms

from geomctrl.errors import GeomctrlError


@dataclass
class Example:
    """Arguments by name with which a callable works; for a method, the object it is called `on`.

    One that has arguments which exclude one another has several, "name#one" and "name#other". `star` names the
    argument that is written *name. `compare` is False where two right results may differ. `forms`: the only arguments
    whose legal forms are tried, where a call takes long. `called`: what messages say for an argument.
    """

    arguments: dict[str, Any] = field(default_factory=dict)
    on: Any = None
    star: str | None = None
    compare: bool = True
    forms: list[str] | None = None
    called: dict[str, str] = field(default_factory=dict)


def call(public: Public, example: Example, replaced: dict[str, Any] | None = None) -> Any:
    """Return the result; for an iterator its first item."""
    replaced = replaced or {}
    values = {name: replaced[name] if name in replaced else good(x) for name, x in example.arguments.items()}
    star = [*values.pop(example.star)] if example.star in values else []
    before = [good(example.on)] if public.of_instance else []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = public.function(*before, *star, **values)
        if hasattr(result, "__next__"):
            result = next(result)
    if inside := [w for w in caught if " encountered in " in str(w.message)]:  # numpy's, of the library's arithmetic
        raise AssertionError(f"a warning: {inside[0].message}, {inside[0].filename}, line {inside[0].lineno}")
    return result


def good(x: Any) -> Any:
    return x.make() if isinstance(x, Fresh) else good(x.value) if isinstance(x, Argument) else x


def substitutions(public: Public, example: Example) -> Iterator[tuple[str, str, Any]]:
    """Return (argument, kind of bad value, the value) for every argument of the example and all values that are not
    legal there.
    """
    signature = parameters(public)
    for name, given in example.arguments.items():
        value, argument = good(given), given if isinstance(given, Argument) else Argument(given)
        legal = (argument.legal | legal_by_kind(value)) - argument.bad
        default = signature[name].default if name in signature else ...
        if default is None:
            legal.add("none")
        if isinstance(default, tuple) and default == ():
            legal.add("empty")
        for what, bad in bad_values(value).items():
            if what not in legal and "all" not in legal:
                yield name, what, [*value[:-1], bad] if name == example.star else bad


# --- what came of a bad value ------------------------------------------------------------------------------------

NAMED, UNNAMED, FOREIGN, SILENT, DEATH = "named", "unnamed", "foreign", "silent", "death"


def verdict(public: Public, example: Example, name: str, bad: Any) -> tuple[str, str]:
    """Return (kind of the outcome of the bad value, its description)."""
    try:
        result = call(public, example, {name: bad})
    except GeomctrlError as error:
        # not the article "a"; "no joint named 3" does name the argument `name`
        after = "[^ ]*:" if name == "a" else r"d?(?!\w)"
        named = re.search(rf"(?<!\w){re.escape(example.called.get(name, name))}{after}", str(error))
        return NAMED if named else UNNAMED, f"{type(error).__name__}: {error}"
    except MemoryError:
        return DEATH, "MemoryError"
    except Exception as error:
        return FOREIGN, _words(error)
    return SILENT, f"a {type(result).__name__}"


# --- what came of a legal form -----------------------------------------------------------------------------------


def wrong_forms(public: Public, example: Example) -> Iterator[tuple[str, str, str]]:
    """Return (argument, form, difference) for every legal form whose result differs from that of float64 in C order."""
    for name, given in example.arguments.items():
        tried = example.forms is None or name in example.forms
        if name == example.star or not tried or (isinstance(given, Argument) and not given.forms):
            continue
        outcomes: dict[tuple[str, bytes], tuple[Any, str]] = {}  # most forms have the same numbers
        for form, value, same in legal_forms(good(given)):
            key = type(same).__name__, np.asarray(same).tobytes()
            if key not in outcomes:
                outcomes[key] = _outcome(public, example, name, same)
            expected, error = outcomes[key]
            if error:  # the rounded value is not valid: a matrix of integers is no rotation
                continue
            found, error = _outcome(public, example, name, value)
            if error:
                yield name, form, error
            elif example.compare and (difference := differs(expected, found)):
                yield name, form, difference


def _outcome(public: Public, example: Example, name: str, value: Any) -> tuple[Any, str]:
    try:
        return call(public, example, {name: value}), ""
    except Exception as error:
        return None, _words(error)


def _words(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as again:  # numba's error for arguments whose type it does not know
        return f"{type(error).__name__}, and no words for it: {again}"


def differs(a: Any, b: Any, depth: int = 0) -> str:
    """Describe how b differs from a: numbers to a relative 1e-12, containers and objects by their contents."""
    if isinstance(a, float | np.floating | np.ndarray) or (isinstance(a, int) and not isinstance(a, bool)):
        try:
            x, y = np.asarray(a, float), np.asarray(b, float)
        except (TypeError, ValueError):
            return "" if np.array_equal(a, b) else f"expected {a!r:.60}, got {b!r:.60}"
        scale = np.abs(x[np.isfinite(x)]).max(initial=0.0)
        close = x.shape == y.shape and np.allclose(x, y, rtol=1e-12, atol=1e-12 * scale, equal_nan=True)
        return "" if close else f"expected {x!r:.60}, got {y!r:.60}"
    if type(a) is not type(b):
        return f"expected a {type(a).__name__}, got a {type(b).__name__}"
    if isinstance(a, str | bytes | Path | bool | None) or callable(a) or depth > 4:
        return "" if callable(a) or depth > 4 or a == b else f"expected {a!r:.60}, got {b!r:.60}"
    return next((d for x, y in _contents(a, b) if (d := differs(x, y, depth + 1))), "")


def _contents(a: Any, b: Any) -> list[tuple[Any, Any]]:
    if isinstance(a, dict):
        return [(a[k], b.get(k)) for k in a]
    if isinstance(a, list | tuple):
        return [(len(a), len(b)), *zip(a, b)]
    names = [f.name for f in fields(a)] if is_dataclass(a) else [*getattr(a, "__dict__", {})]
    return [(getattr(a, n, None), getattr(b, n, None)) for n in names if n not in ("wall_time", "_options")]
