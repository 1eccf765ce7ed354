"""`unchanged`: calls of a function, after which everything that the function reaches is as before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from .external_state import ExternalState
from .floating_point_errors import DECORATED
from .lines_of_changes import line_of_change
from .untraceable import UntraceableError


class FunctionState(ExternalState):
    """What a function that is traced reaches by names, in its closure and in its object."""

    of_copies = False
    allowed = frozenset({"warnings"})

    def _function(self, x: FunctionType, name: str, copied: bool) -> None:
        if x.__code__ is DECORATED:  # with np.errstate, whose own objects are numpy's
            self._visit(vars(x)["__wrapped__"], name)
        else:
            super()._function(x, name, copied)


@contextmanager
def unchanged(f: Callable[..., Any], name: str) -> Iterator[None]:
    """Context for calls of f, an argument `name`: afterwards all that f reaches is as before.

    Raises UntraceableError if that can not be known, before the calls, or if a call has changed anything.
    """
    try:
        state = FunctionState([(f, name)], [])
    except UntraceableError as error:
        raise UntraceableError(f"{name} can not be traced: {error}") from error
    state.begin()
    error: Exception | None = None
    try:
        yield
    except Exception as raised:
        error = raised
    finally:
        place = state.restored()
    if place:
        functions = [x for x in state.reached if isinstance(x, (FunctionType, type))]
        raise UntraceableError(
            f"{name} can not be traced: {place} changes during a call{line_of_change(place, functions)}; a traced"
            " function has no memory: pass the value as an argument, and return the new one"
        ) from error
    if error is not None:
        raise error
