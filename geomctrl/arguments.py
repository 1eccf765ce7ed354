"""Check and convert arguments of public functions: shapes, finite numbers, choices, leading axes."""

import contextlib
import dataclasses
import functools
import inspect
import io
import itertools
import math
import operator
import os
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from .errors import ArgumentError, GeomctrlError

T = TypeVar("T")
FLOAT64 = np.dtype(np.float64)
NO_NUMBERS = (str, bytes, bool, np.bool_, type(None))  # refused, although numpy converts them to floats
SCALARS = (int, float, np.generic)
MAX_FILE_NAME = 255  # bytes of the name of a file or folder, on all usual file systems
MAX_COUNT = 2**31 - 1  # largest accepted count of anything
MAX_ITEMS = 10**6  # most items of a list; an iterator may have no end
ROTATION_TOLERANCE = 1e-6  # |R^T R - 1| above which a matrix is refused as a rotation


def shown(x: object) -> str:
    """Return the first characters of repr(x) for messages, or the type's name where repr fails: deep nesting does."""
    try:
        return f"{x!r:.80}"
    except Exception:
        return f"an object of type {type(x).__name__}"


def is_a(x: object, kinds: type[T] | tuple[type[T], ...]) -> TypeGuard[T]:
    """`isinstance`, and False for an object whose class can not be read, such as a dead weak proxy, and for one of a
    class of this package whose constructor has not run.
    """
    try:
        return isinstance(x, kinds) and not (getattr(x, "__dict__", None) == {} and _stores_arguments(type(x)))
    except Exception:
        issubclass(object, kinds)  # raises TypeError if `kinds` is the reason
        return False


@functools.cache
def _stores_arguments(kind: type) -> bool:
    """Whether the constructor of a class of this package has arguments, so that each object has attributes.

    That of a Protocol takes any arguments and stores none.
    """
    if dataclasses.is_dataclass(kind) and kind.__module__.startswith("geomctrl."):
        return bool(dataclasses.fields(kind))
    home = next(base for base in kind.__mro__ if "__init__" in vars(base))
    parameters = inspect.signature(home.__init__).parameters.values() if home.__module__.startswith("geomctrl.") else ()
    return len(parameters) > 1 and all(x.kind != x.VAR_KEYWORD for x in parameters)


def has_attributes(x: object, *names: str) -> bool:
    """Whether x has all attributes with these names, and they can be read."""
    try:
        return all(hasattr(x, name) for name in names)
    except Exception:  # of the object's own code
        return False


def is_masked(x: object) -> bool:
    """Whether x is a numpy array with masked entries."""
    return is_a(x, np.ma.MaskedArray) and np.ma.is_masked(x)


def _finite(a: np.ndarray) -> bool:
    """Whether there is no nan and no infinity; the sum of squares, three times faster, decides except for huge
    numbers.
    """
    if a.size > 100 and a.dtype == np.float64 and a.flags.c_contiguous:
        flat = a.reshape(-1)
        with np.errstate(over="ignore"):
            if flat.dot(flat) < np.inf:
                return True
    return bool(np.isfinite(a).all())


def checked(name: str, value: ArrayLike, trailing: tuple[int, ...], finite: bool = True) -> np.ndarray:
    """Return `value` in the form that the kernels take (float64, C order, writable), with the trailing axes `trailing`.

    Raises ArgumentError, naming the argument `name`, for other shapes, for anything but real numbers (bools, strings,
    complex and masked ones included) and, unless `finite` is False, for nan and infinity.
    """
    if type(value) is np.ndarray and value.dtype == FLOAT64 and value.flags.carray:
        a = value
    else:
        a = _converted(name, value, trailing)
    if a.ndim < len(trailing) or a.shape[a.ndim - len(trailing) :] != trailing:
        raise ArgumentError(f"{name}: expected {_shape(trailing)}, got {a.shape}")
    if finite and a.dtype == FLOAT64 and not _finite(a):
        where = tuple(np.argwhere(~np.isfinite(a))[0].tolist())
        place = f" at index {list(where)}" if where else ""
        raise ArgumentError(f"{name}: expected finite numbers, got {a[where]}{place}")
    return a


def _shape(trailing: tuple[int, ...]) -> str:
    return f"shape ({', '.join(['...', *map(str, trailing)])})"


def _converted(name: str, value: ArrayLike, trailing: tuple[int, ...]) -> np.ndarray:
    """Return real numbers, in an array or not, in the form that the kernels take; an array of symbols stays as it
    is.
    """
    try:
        _require_unmasked(name, value)
        if isinstance(value, (bytearray, memoryview)):  # numpy reads their bytes as numbers
            raise TypeError
        a = np.asanyarray(value)
        if type(a).__name__ == "SymbolArray":  # of `tracing.arrays`, while a control law is traced
            return a
        if a.dtype.kind not in "iufO" or (a.dtype.kind == "O" and any(isinstance(x, NO_NUMBERS) for x in a.flat)):
            raise TypeError
        with np.errstate(over="ignore"):  # an infinity is refused below
            return np.require(a, np.float64, ["C", "W", "E"])
    except ArgumentError:
        raise
    except Exception as error:  # of the object's own conversion, too: a tensor with gradients raises RuntimeError
        reason = "" if isinstance(error, (TypeError, ValueError, OverflowError)) else f": {error!s:.200}"
        raise ArgumentError(
            f"{name}: expected real numbers of {_shape(trailing)}, got {shown(value)}{reason}"
        ) from None


def _require_unmasked(name: str, value: ArrayLike) -> None:
    """Raise ArgumentError if `value` has masked entries: numpy would use the values under the mask."""
    parts = value if isinstance(value, (list, tuple)) else (value,)
    masked = (
        [x for x in parts if isinstance(x, np.ma.MaskedArray)]
        if any(issubclass(kind, np.ma.MaskedArray) for kind in {*map(type, parts)})
        else ()
    )
    if count := sum(int(np.ma.getmaskarray(x).sum()) for x in masked):
        raise ArgumentError(f"{name}: expected no masked entries, got {count} masked: fill or remove them")


def exactly(name: str, value: ArrayLike, shape: tuple[int, ...], finite: bool = True) -> np.ndarray:
    """`checked` for exactly this shape, as a new array that shares no memory with the caller's."""
    a = checked(name, value, shape, finite)
    if a.ndim != len(shape):
        raise ArgumentError(f"{name}: expected shape {shape}, got {a.shape}")
    return np.array(a, dtype=float)


def vector(name: str, x: ArrayLike, n: int) -> np.ndarray:
    """Return x as a new array of n finite floats; raises ArgumentError, naming the argument `name`, otherwise."""
    try:
        return exactly(name, x, (n,))
    except ArgumentError:
        raise ArgumentError(f"{name}: expected {n} finite numbers, got {shown(x)}") from None


def one_state(name: str, x: ArrayLike, n: int) -> np.ndarray:
    """Return n finite numbers, or symbols; errors name the argument `name`."""
    a = checked(name, x, (n,))
    if a.ndim != 1:
        raise ArgumentError(f"{name}: expected shape ({n},), got {a.shape}")
    return a


def per_coordinate(name: str, x: ArrayLike, expected: str, good: Callable[[np.ndarray], Any]) -> np.ndarray:
    """Return x as a read-only number or (n,) numbers, all of them `good`; raises ArgumentError otherwise."""
    a = checked(name, x, ())
    if a.ndim > 1 or not a.size or not np.all(good(a)):
        raise ArgumentError(f"{name}: expected {expected}, a number or (n,) of them, got {shown(x)}")
    return frozen(a)


def positive(x: np.ndarray) -> np.ndarray:
    """Whether each number is finite and above zero."""
    return np.isfinite(x) & (x > 0.0)


def one_or_each(
    name: str,
    x: ArrayLike,
    n: int,
    expected: str = "a number",
    good: Callable[[np.ndarray], Any] = np.isfinite,
    of: str = "joint",
) -> np.ndarray:
    """Return a number, or n numbers, one for each `of` something, as (n,); raises ArgumentError unless all are
    `good`.
    """
    a = checked(name, x, (), finite=False)
    if a.shape not in ((), (n,)) or not np.all(good(a)):
        raise ArgumentError(f"{name}: expected {expected} or {n}, one a {of}, got {shown(x)}")
    return np.broadcast_to(a, (n,)).copy()


def number(
    name: str, x: object, expected: str = "a finite number", good: Callable[[float], bool] = lambda x: True
) -> float:
    """x as a float; raises ArgumentError, naming the argument `name`, unless it is a finite number that is `good`."""
    if type(x) is float and math.isfinite(x) and good(x):
        return x
    value = math.nan
    if is_a(x, (np.ndarray, *SCALARS)) and not is_masked(x):
        with contextlib.suppress(Exception):  # of a subclass that converts in its own way
            a = np.asarray(x)
            value = float(a) if a.shape == () and a.dtype.kind in "iuf" else math.nan
    if not math.isfinite(value) or not good(value):
        raise ArgumentError(f"{name}: expected {expected}, got {shown(x)}")
    return value


def count(name: str, x: object, least: int = 0, largest: int = MAX_COUNT, expected: str = "") -> int:
    """Return x as an int; raises ArgumentError, naming the argument `name`, unless it is an integer from least to
    largest.

    Floats are refused, even 3.0. The upper bound catches mistakes like 1e30 that would exhaust the machine.
    """
    try:
        n = None if isinstance(x, bool) or is_masked(x) else operator.index(x)  # pyright: ignore[reportArgumentType]
    except Exception:  # of the object itself, too
        n = None
    if n is None or not least <= n <= largest:
        whole = f"a whole number from {least}" + (f" to {largest}" if largest < MAX_COUNT else "")
        raise ArgumentError(f"{name}: expected {expected or whole}, got {shown(x)}")
    return n


def flag(name: str, x: object) -> bool:
    """x as a bool; raises ArgumentError, naming the argument `name`, unless it is True or False."""
    if not is_a(x, (bool, np.bool_)):
        raise ArgumentError(f"{name}: expected True or False, got {shown(x)}")
    return bool(x)


def choice(name: str, x: object, options: Iterable[str]) -> str:
    """Return x; raises ArgumentError, naming the argument `name`, unless it is one of the `options`."""
    allowed = tuple(options)
    good = False
    with contextlib.suppress(Exception):  # of a subclass that compares in its own way
        good = isinstance(x, str) and x in allowed
    if not good:
        raise ArgumentError(f"{name}: expected {_one_of(allowed)}, got {shown(x)}")
    return str(x)


def choices(name: str, x: object, options: Iterable[str], ordered: bool = False) -> list[str]:
    """Return the items of x; raises ArgumentError, naming the argument `name`, unless each is one of the `options`."""
    allowed = tuple(options)
    expected = f"some of {', '.join(allowed)}"
    unknown = items = listed(name, x, expected, ordered)
    with contextlib.suppress(Exception):  # of a subclass that compares in its own way
        unknown = [item for item in items if not isinstance(item, str) or item not in allowed]
    if unknown:
        raise ArgumentError(f"{name}: expected {expected}, got {shown(unknown)}")
    return [str(item) for item in items]


def _one_of(options: Sequence[str]) -> str:
    quoted = [repr(w) for w in options]
    return " or ".join(quoted) if len(quoted) < 3 else "one of " + ", ".join(quoted)


def function(name: str, x: object, expected: str, inputs: int | None = None) -> Any:
    """Return x; raises ArgumentError, naming the argument `name`, unless it is callable, with `inputs` arguments by
    position if that is known. expected: for example "f(t, q)".
    """
    if not callable(x) or not bool(is_a(x, object)):
        raise ArgumentError(f"{name}: expected a function {expected}, got {shown(x)}")
    if inputs is not None and not accepts(x, inputs):
        raise ArgumentError(
            f"{name}: expected a function {expected}, got {shown(x)}, which takes {inspect.signature(x)}"
        )
    return x


def accepts(function: Any, count: int) -> bool:
    """Whether a function can be called with so many arguments by position."""
    is_function = isinstance(function, types.FunctionType)
    called = function if is_function or isinstance(function, types.MethodType) else type(function).__call__
    code = getattr(inspect.unwrap(called), "__code__", None)
    if code is not None and not code.co_kwonlyargcount:  # as `inspect` says, which takes longer than several samples
        if code.co_argcount == count + (not is_function):
            return True
        is_method, any_number = isinstance(function, types.MethodType), code.co_flags & inspect.CO_VARARGS
        if (is_function or is_method) and not any_number and code.co_argcount < count + is_method:
            return False
    try:
        signature = inspect.signature(function)
    except Exception:  # of some functions in C, and of an object that raises
        return True
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def path_of(name: str, x: object) -> Path:
    """Return x as a Path; raises ArgumentError, naming the argument `name`, unless it is the name of a file or
    folder.
    """
    if is_a(x, (str, os.PathLike)):
        with contextlib.suppress(Exception):  # of names that no file can have, with half of a character, or its own
            encoded, lengths = os.fsencode(x), [len(os.fsencode(part)) for part in Path(x).parts]
            if encoded and b"\0" not in encoded and max(lengths, default=0) <= MAX_FILE_NAME:
                return Path(x)
    raise ArgumentError(f"{name}: expected a path, got {shown(x)}")


def listed(name: str, x: object, expected: str = "a list", ordered: bool = True) -> list:
    """Return the items of x; raises ArgumentError, naming the argument `name`, for strings, dicts, files, non-iterables
    and, if the order of the items matters, sets.
    """
    if ordered and is_a(x, (set, frozenset)):
        raise ArgumentError(f"{name}: expected {expected} in order, got {shown(x)}")
    refused = (str, bytes, bytearray, memoryview, Mapping, io.IOBase)
    if not is_a(x, refused) and is_a(x, Iterable) and not is_masked(x):
        with contextlib.suppress(TypeError):  # an array without axes
            return _items(name, x, expected)
    raise ArgumentError(f"{name}: expected {expected}, got {shown(x)}")


def _items(name: str, x: Any, expected: str) -> list:
    """The items of an iterable, at most `MAX_ITEMS`."""
    try:
        items = list(itertools.islice(x, MAX_ITEMS + 1))
    except TypeError:
        raise
    except Exception as error:  # of the iterator itself
        raise ArgumentError(f"{name}: expected {expected}, got {shown(x)}: {error!s:.200}") from error
    if len(items) > MAX_ITEMS:
        raise ArgumentError(f"{name}: expected {expected} of at most {MAX_ITEMS} items, got {shown(x)}")
    return items


def mapped(name: str, x: object, expected: str) -> dict[Any, Any]:
    """Return a mapping as a dict; raises ArgumentError, naming the argument `name`, for anything else."""
    if is_a(x, Mapping):
        with contextlib.suppress(Exception):  # of a mapping whose items can not be read
            return dict(x)
    raise ArgumentError(f"{name}: expected {expected}, got {shown(x)}")


def pair(name: str, x: object, expected: str) -> tuple[Any, Any]:
    """Return the two items of x; raises ArgumentError, naming the argument `name`, unless it is a tuple, a list or an
    array of two.
    """
    items = listed(name, x, expected) if is_a(x, (tuple, list, np.ndarray)) else []
    if len(items) != 2:
        raise ArgumentError(f"{name}: expected {expected}, got {shown(x)}")
    return items[0], items[1]


def instance(name: str, x: object, kind: type | tuple[type, ...], expected: str) -> Any:
    """Return x; raises ArgumentError, naming the argument `name`, unless it is an instance of `kind`. expected: "a
    Plant".
    """
    if not is_a(x, kind):
        raise ArgumentError(f"{name}: expected {expected}, got {shown(x)}")
    return x


def generator(name: str, x: object) -> np.random.Generator:
    """Return x; raises ArgumentError, naming the argument `name`, unless it is a numpy.random.Generator."""
    if not is_a(x, np.random.Generator):
        raise ArgumentError(f"{name}: expected a numpy.random.Generator, got {shown(x)}")
    return x


def optional_package(caller: str, package: str, extra: str, oldest: str) -> types.ModuleType:
    """Import an optional package of at least version `oldest`; raises GeomctrlError that says how to install it."""
    remedy = f"pip install 'geomctrl[{extra}]'"
    try:
        module = import_module(package)
    except ImportError:
        raise GeomctrlError(f"{caller} needs the optional package {package}: {remedy}") from None
    version = getattr(module, "__version__", None) or metadata.version(package)  # of pin, by its module's name
    if _numbers_of(version) < _numbers_of(oldest):
        raise GeomctrlError(f"{caller} needs {package} {oldest} or newer, got {version}: {remedy}")
    return module


def _numbers_of(version: str) -> list[int]:
    return [int(x) for x in re.findall(r"\d+", version)[:3]]


def frozen(a: np.ndarray) -> np.ndarray:
    """Return a copy of `a` that can not be made writable again: its memory belongs to a bytes object."""
    return np.ndarray(a.shape, float, np.ascontiguousarray(a, dtype=float).tobytes())


def read_only(a: np.ndarray) -> np.ndarray:
    """Return a read-only view of `a`, to pass to code of others."""
    a = a.view()
    a.setflags(write=False)
    return a


def same_batch(names: tuple[str, str], a: np.ndarray, b: np.ndarray, core: tuple[int, int]) -> tuple[int, ...]:
    """Return the leading axes of `a` (all but the last core[0]), which must be those of `b` (all but the last
    core[1]).
    """
    first, second = a.shape[: a.ndim - core[0]], b.shape[: b.ndim - core[1]]
    if first != second:
        message = f"{names[1]}: expected the leading axes of {names[0]}, {first}, got {second} (nothing is broadcast)"
        raise ArgumentError(message)
    return first


def without_overflow_warnings(function: Callable[..., T]) -> Callable[..., T]:
    """Decorate a function that computes with numpy: what overflows is infinite or nan, as in compiled kernels, and
    numpy does not warn.
    """

    @functools.wraps(function)
    def quiet(*args: Any, **options: Any) -> T:
        with np.errstate(over="ignore", invalid="ignore"):
            return function(*args, **options)

    return quiet


def require_rotation(name: str, R: np.ndarray, problem: str = "expected a rotation, got ") -> None:
    """Raise ArgumentError unless every R (..., 3, 3) is a rotation to ROTATION_TOLERANCE."""
    if not rotation_residual(R).max(initial=0.0) <= ROTATION_TOLERANCE:
        with np.errstate(over="ignore", invalid="ignore"):
            error, det = _off_orthogonal(R).max(), np.linalg.det(R).min()
        raise ArgumentError(f"{name}: {problem}|R^T R - 1| = {error:.3g}, det R = {det:.3g}")


def rotation_residual(R: np.ndarray) -> np.ndarray:
    """max |R^T R - 1| of every R (..., 3, 3), plus 2, a reflection's distance from SO(3), where det R < 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _off_orthogonal(R) + np.where(np.linalg.det(R) < 0.0, 2.0, 0.0)


def _off_orthogonal(R: np.ndarray) -> np.ndarray:
    return np.abs(R.swapaxes(-1, -2) @ R - np.eye(3)).max(axis=(-2, -1))


def tolerance(name: str, x: object) -> float:
    """Return x as a float; raises ArgumentError, naming the argument `name`, unless it is finite and not negative.

    A comparison with nan always fails and one with infinity always passes, so neither is a check.
    """
    return number(name, x, "a finite number, not negative", lambda x: x >= 0.0)
