"""The desired motion while a loop runs: evaluated once a time, however many ask.

At one sample the law, its Lyapunov function, monitors and the record want the same values of the reference, and a
Runge-Kutta method comes back to the same time. `desired_at` remembers the last of them, but only while `simulate` runs:
elsewhere, where a reference may be changed between two calls, it is evaluated each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from geomctrl.arguments import function, number, read_only
from geomctrl.tracing.arrays import holds_symbols

from .contracts import Desired, Reference


@dataclass(slots=True)
class _Latest:
    """The reference evaluated last, when, and what it gave."""

    reference: Any = None
    t: float | None = None
    desired: Any = None


_latest: ContextVar[_Latest | None] = ContextVar("latest", default=None)


def time(t: Any) -> Any:
    """t as a float, a symbol as it is; raises ArgumentError, naming t, unless it is a finite number."""
    if type(t) is float and -inf < t < inf:
        return t
    return t if holds_symbols(t) else number("t", t, "a finite time")


def desired_at(reference: Reference, t: float) -> Desired:
    """reference(t), from memory if a running `simulate` asked for it last: to be read, not to be written on."""
    latest = _latest.get()
    if latest is None:
        try:
            return reference(t)
        except TypeError:
            function("reference", reference, "t -> Desired(q, v, a)")
            raise
    if latest.t != t or latest.reference is not reference:
        latest.desired = _read_only(reference(t))
        latest.reference, latest.t = reference, t
    return latest.desired


def _read_only(desired: Any) -> Any:
    """`desired`, on which no reader of it writes; what is no Desired of arrays passes, to be named by who stores it."""
    if type(desired) is Desired:
        q, v, a = desired
        if type(q) is type(v) is type(a) is np.ndarray:
            return Desired(read_only(q), read_only(v), read_only(a))
    return desired


@contextmanager
def evaluated_once() -> Iterator[None]:
    """While this context lasts, `desired_at` remembers, in this thread."""
    token = _latest.set(_Latest())
    try:
        yield
    finally:
        _latest.reset(token)


@contextmanager
def evaluated_each_time() -> Iterator[None]:
    """While this context lasts, `desired_at` remembers nothing: times that are symbols can not be compared."""
    token = _latest.set(None)
    try:
        yield
    finally:
        _latest.reset(token)
