"""Values to put in the place of a good one: bad ones of eighteen kinds, and the legal forms of numbers and arrays."""

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


class Argument:
    """A good value of an argument, and the bad values that are `legal` for it or additionally bad: see `kind`."""

    def __init__(self, value: Any, legal: str = "", bad: str = "", forms: bool = True):
        self.value, self.legal, self.bad, self.forms = value, set(legal.split()), set(bad.split()), forms


class Raising:
    """An object of which every operation raises an error."""

    def _fail(self, *args, **options):
        raise RuntimeError("an error of the object itself")

    __array__ = __len__ = __iter__ = __getitem__ = __float__ = __index__ = __bool__ = __eq__ = __hash__ = _fail
    __repr__ = __fspath__ = _fail


class Fresh:
    """A good value that is used up by a call, so it is created for each call."""

    def __init__(self, make: Callable[[], Any]):
        self.make = make


def once(make: Callable[[], Any]) -> Fresh:
    """A good value that takes long: it is made by the first call that needs it."""
    return Fresh(functools.cache(make))


def number(value: float, *, positive: bool = False, negative: bool = True, legal: str = "") -> Argument:
    """A number whose sign matters if it must be `positive`, or with negative=False not negative."""
    return Argument(value, legal, "negative" if positive or not negative else "")


def text(value: str, legal: str = "") -> Argument:
    """Any text is accepted."""
    return Argument(value, f"string {legal}")


def gain(value: Any, legal: str = "") -> Argument:
    """Numbers, one for each joint or one for all."""
    return Argument(value, f"huge {legal}")


def kind(value: Any) -> str:
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, int):
        return "count"
    if isinstance(value, float):
        return "number"
    if isinstance(value, np.ndarray):
        return "array" if value.dtype.kind == "f" else "mask" if value.dtype.kind == "b" else "other"
    return "text" if isinstance(value, str) else "other"


def bad_values(value: Any) -> dict[str, Any]:
    """Values, by name, that are invalid in place of `value`; an Argument lists legal exceptions."""
    bad: dict[str, Any] = {
        "endless": itertools.repeat(0.5),
        "raising": Raising(),
        "string": "no such thing",
        "none": None,
        "empty": np.empty(0),
        "mapping": {1: "one"},
        "thing": object(),
        "ragged": [[1.0], [1.0, 2.0]],
        "huge": 1e30,
        "negative": -1,
    }
    if (half_made := made_without_init(value)) is not None:
        bad["half made"] = half_made
    if kind(value) == "array":
        a = np.array(value, dtype=float, ndmin=1)
        nan, inf = a.copy(), a.copy()
        nan.flat[-1], inf.flat[0] = np.nan, -np.inf
        masked = np.ma.masked_array(a, np.arange(a.size).reshape(a.shape) == 0)
        objects = a.astype(object)
        objects.flat[0] = None
        shape = np.concatenate((a, a[..., :1]), axis=-1)
        bools = np.ones(a.shape, bool)
        return bad | {
            "nan": nan,
            "inf": inf,
            "complex": a + 1j,
            "masked": masked,
            "shape": shape,
            "bools": bools,
            "objects": objects,
        }
    bad |= {
        "nan": np.nan,
        "inf": np.inf,
        "complex": 1.0 + 1.0j,
        "masked": np.ma.masked_array([1.0, 2.0], [True, False]),
        "shape": np.zeros((2, 5)),
        "bools": np.ones(3, bool),
        "objects": np.array([None, "x"], dtype=object),
    }
    if kind(value) == "count":
        bad["fraction"] = 1.5
    return bad


def made_without_init(value: Any) -> Any:
    """An object of the value's class whose constructor has not run; None for classes that need no constructor."""
    is_object = type(value).__module__.startswith("geomctrl.") and getattr(value, "__dict__", None)
    return object.__new__(type(value)) if is_object else None


def legal_by_kind(value: Any) -> set[str]:
    """Bad values that are good for a whole kind of argument: a number may be negative, and large."""
    return {"number": {"negative", "huge"}, "mask": {"bools"}}.get(kind(value), set())


def legal_forms(value: Any) -> Iterator[tuple[str, Any, Any]]:
    """Return (name, the value in another form, the float64 array in C order or float that it stands for)."""
    if kind(value) == "count":
        yield "numpy integer", np.int64(value), value
        yield "small integer", np.int16(value), value
        yield "0-d integer", np.array(value), value
    if kind(value) == "number":
        yield "numpy float", np.float64(value), value
        yield "float32", np.float32(value), float(np.float32(value))
        yield "float16", np.float16(value), float(np.float16(value))
        yield "0-d", np.array(value), value
        yield "0-d float32", np.array(value, np.float32), float(np.float32(value))
        if value == round(value):
            yield "int", int(value), value
            yield "numpy integer", np.int64(value), value
    if kind(value) == "array":
        yield from _array_forms(np.array(value, dtype=float))


def _array_forms(a: np.ndarray) -> Iterator[tuple[str, Any, Any]]:
    readonly = a.copy()
    readonly.flags.writeable = False
    wide = np.full([2 * n for n in a.shape], np.nan)
    view = wide[tuple(slice(None, None, 2) for _ in a.shape)]
    view[...] = a
    reverse = np.array(np.flip(a))
    yield "list", a.tolist(), a
    yield "read-only", readonly, a
    yield "Fortran order", np.asfortranarray(a), a
    yield "view", view, a
    yield "negative strides", np.flip(reverse), a
    yield "other byte order", a.astype(">f8"), a
    yield "unaligned", np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(float).reshape(a.shape), a
    yield "subclass", a.view(np.memmap), a
    for name, dtype in (("float32", np.float32), ("float16", np.float16), ("int8", np.int8), ("int", int)):
        with np.errstate(all="ignore"):
            small = a.astype(dtype)
        yield name, small, small.astype(float)
