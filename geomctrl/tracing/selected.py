"""Parts of arrays that symbols select: by a mask (`Selected`, of unknown number), and by an integer (`connect`)."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from .requirements import require
from .symbols import UntraceableError, caller


class Selected(np.lib.mixins.NDArrayOperatorsMixin):
    """The entries of an array where a condition holds, in unknown number.

    Elementwise functions can be traced, storing the result where the same condition holds, sums and extremes.
    """

    def __init__(self, array: np.ndarray, mask: np.ndarray):
        self._array, self._mask = np.array(np.broadcast_to(array, np.shape(mask)), object).view(type(mask)), mask
        if np.shape(array) != np.shape(mask):
            raise UntraceableError(f"rows that a condition selects can not be traced{caller()}: use np.where")

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        out = kwargs.pop("out", None)
        if method != "__call__" or kwargs:
            _refuse_selected(self)
        result = ufunc(*(self._like(x) for x in inputs))
        if out is None:
            return Selected(result, self._mask)
        out[0]._array[...] = result
        return out[0]

    def _like(self, x: Any) -> Any:
        if isinstance(x, Selected):
            return x.of(self._array, self._mask)
        return x if np.ndim(x) == 0 else _refuse_selected(self)

    def of(self, array: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """All entries, for an array indexed by the same condition."""
        same = np.shape(array) == np.shape(mask) == np.shape(self._mask)
        pairs = zip(_entries(mask), _entries(self._mask))
        if not same or not all(x is y or getattr(x, "index", x) == getattr(y, "index", y) for x, y in pairs):
            raise UntraceableError(f"entries that different conditions select are combined{caller()}: use np.where")
        return self._array

    def sum(self) -> Any:
        return np.sum(self._array, where=self._mask)

    def mean(self) -> Any:
        return np.divide(self.sum(), self.size)

    def max(self) -> Any:
        return self._extreme(np.max, -np.inf)

    def min(self) -> Any:
        return self._extreme(np.min, np.inf)

    def any(self) -> Any:
        return np.any(np.logical_and(self._array, self._mask))

    def all(self) -> Any:
        return np.all(np.logical_or(self._array, np.logical_not(self._mask)))

    @property
    def size(self) -> Any:
        return np.count_nonzero(self._mask)

    def _extreme(self, extreme: Callable[..., Any], initial: float) -> Any:
        require(np.any(self._mask))  # otherwise numpy raises
        return extreme(self._array, initial=initial, where=self._mask)

    def __array_function__(self, func, types, args, kwargs):
        method = REDUCTIONS.get(func)
        return getattr(self, method)() if method and not kwargs and args == (self,) else _refuse_selected(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _refuse_selected(self)


REDUCTIONS = {getattr(np, name): name for name in ("sum", "mean", "max", "min", "any", "all", "size")}


def _refuse_selected(self: Any, *_: Any, **__: Any) -> Any:
    raise UntraceableError(
        f"the number of entries that a condition selects is unknown{caller()}: use np.where(condition, x, 0.0) on all"
    )


for _name in ("__len__", "__iter__", "__getitem__", "__setitem__", "__array__", "__float__", "__bool__", "__matmul__",
              "__rmatmul__"):  # fmt: skip
    setattr(Selected, _name, _refuse_selected)


def _entries(x: Any) -> list:
    return np.asarray(x, object).view(np.ndarray).ravel().tolist()


# --- parts that an integer selects -----------------------------------------------------------------------------------

_parts: dict[int, list[tuple[weakref.ref, Callable[[], np.ndarray]]]] = {}  # by the owner of the array's memory


def owner_of(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory of a view."""
    while isinstance(base := np.ndarray.base.__get__(array), np.ndarray):
        array = base
    return array


def connect(part: np.ndarray, array: np.ndarray, entries: Callable[[], np.ndarray]) -> None:
    """Let a copied part of an array follow it, as a view does; entries: computes the part's entries now."""
    place = id(owner_of(array))

    def forget(reference: weakref.ref) -> None:
        remaining = [x for x in _parts.get(place, ()) if x[0] is not reference]
        if remaining:
            _parts[place] = remaining
        else:
            _parts.pop(place, None)

    part.flags.writeable = False  # writing goes through the array
    _parts.setdefault(place, []).append((weakref.ref(part, forget), entries))


def refresh(array: np.ndarray) -> None:
    """Update the parts of an array that has been written."""
    for reference, entries in list(_parts.get(id(owner_of(array)), ())) if _parts else ():
        part = reference()
        if part is not None:
            part.flags.writeable = True
            part.view(np.ndarray)[...] = entries()
            part.flags.writeable = False
            refresh(part)


def follows(array: Any) -> bool:
    """Whether an array is such a part, or a view of one."""
    while isinstance(array, np.ndarray):
        if "selection" in getattr(array, "__dict__", {}):
            return True
        array = np.ndarray.base.__get__(array)
    return False
