"""Records: named tuples of numbers, vectors and frames, stored row by row in a flat array of work memory.

The memory of a kernel is flat, because views of rows would count references. A row is a NamedTuple whose fields are
numbers, tuples of numbers or such NamedTuples; their positions are computed from the types:

    class Motion(NamedTuple):
        V: Twist
        A: Twist

    get_motion, put_motion = reader(Motion), writer(Motion)
    put_motion(rows, i, Motion(V, A));  get_motion(rows, i).V

Reading more fields than are used costs nothing: the compiler removes unused loads.
"""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from typing import Any, get_args, get_origin, get_type_hints

from .primitives import primitive
from .screws import Inertia, Pose, Twist, Wrench


def width(record: Any) -> int:
    """Number of floats that a record takes in memory.

    It is a multiple of the vector register, unless external arrays contain such records row by row.
    """
    n = sum(1 for _ in _paths(record, ""))
    return n if record in (Twist, Wrench, Inertia, Pose) else -(-n // 4) * 4


@cache
def reader(record: Any) -> Callable[..., Any]:
    """The primitive get(rows, i): record number i."""
    n, classes = width(record), {}
    return _defined(f"def get(rows, i):\n    k = {n} * i\n    return {_expression(record, count(), classes)}", classes)


@cache
def writer(record: Any) -> Callable[..., Any]:
    """The primitive put(rows, i, x): store x as record number i."""
    stores = "".join(f"    rows[k + {j}] = x{path}\n" for j, path in enumerate(_paths(record, "")))
    return _defined(f"def put(rows, i, x):\n    k = {width(record)} * i\n{stores}", {})


@cache
def adder(record: Any) -> Callable[..., Any]:
    """The primitive add(rows, i, x): add x to record number i, number by number."""
    stores = "".join(f"    rows[k + {j}] += x{path}\n" for j, path in enumerate(_paths(record, "")))
    return _defined(f"def add(rows, i, x):\n    k = {width(record)} * i\n{stores}", {})


@cache
def _fields(record: Any) -> list[Any]:
    """The types of a record's or tuple's entries; empty for a number."""
    if record is float:
        return []
    if get_origin(record) is tuple:
        return list(get_args(record))
    hints = get_type_hints(record)
    return [hints[name] for name in record._fields]


def _paths(record: Any, path: str) -> Iterator[str]:
    if record is float:
        yield path
    for k, field in enumerate(_fields(record)):
        yield from _paths(field, f"{path}[{k}]")


def _expression(record: Any, count: Iterator[int], classes: dict[str, Any]) -> str:
    if record is float:
        return f"rows[k + {next(count)}]"
    entries = ", ".join(_expression(field, count, classes) for field in _fields(record))
    if get_origin(record) is tuple:
        return f"({entries},)"
    classes[record.__name__] = record
    return f"{record.__name__}({entries})"


def _defined(source: str, scope: dict[str, Any]) -> Callable[..., Any]:
    exec(source, scope)
    return primitive(next(scope[name] for name in ("get", "put", "add") if name in scope))


get_twist, put_twist = reader(Twist), writer(Twist)
get_wrench, put_wrench = reader(Wrench), writer(Wrench)
get_inertia, put_inertia = reader(Inertia), writer(Inertia)


# --- other places ------------------------------------------------------------------------------------------------


@primitive
def vec(a, k):
    """Three numbers of a flat array, from number k on."""
    return a[k], a[k + 1], a[k + 2]


@primitive
def put(a, k, x):
    a[k] = x[0]
    a[k + 1] = x[1]
    a[k + 2] = x[2]


@primitive
def twist_at(a, k):
    return Twist(vec(a, k), vec(a, k + 3))


@primitive
def wrench_at(a, k):
    return Wrench(vec(a, k), vec(a, k + 3))


@primitive
def put6(a, k, X):
    """Store a twist or a wrench."""
    put(a, k, X[0])
    put(a, k + 3, X[1])


@primitive
def inertia_at(a, k):
    return Inertia(a[k], vec(a, k + 1), (a[k + 4], a[k + 5], a[k + 6], a[k + 7], a[k + 8], a[k + 9]))


@primitive
def pose_at(a, k):
    """A frame stored as the 3x4 matrix [R | p] row by row, as in a configuration q."""
    return Pose((vec(a, k), vec(a, k + 4), vec(a, k + 8)), (a[k + 3], a[k + 7], a[k + 11]))


@primitive
def put_pose(a, k, T):
    put(a, k, T.R[0])
    put(a, k + 4, T.R[1])
    put(a, k + 8, T.R[2])
    a[k + 3], a[k + 7], a[k + 11] = T.p[0], T.p[1], T.p[2]


@primitive
def finite(x):
    """Whether a flat array has no nan and no infinity."""
    zero = 0.0
    for i in range(x.shape[0]):
        zero += 0.0 * x[i]
    return zero == 0.0
