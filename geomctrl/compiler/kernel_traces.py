"""Trace an algorithm of `kernels`: run it once on symbols for a robot's structure.

The structure is constant in the trace: the tree, the kinds of joints, the numbers of placements, screws and gravity
that are 0 or +-1, and whether joints have armature. All other numbers of the model array, mainly the inertial
parameters, are inputs at run time, so robots that differ only in these share one trace."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from geomctrl.kernels import tree
from geomctrl.kernels.algorithms import Algorithm
from geomctrl.tracing.arrays import holds_symbols, wrapped
from geomctrl.tracing.requirements import require
from geomctrl.tracing.symbols import (
    Graph,
    UntraceableError,
    add,
    binary,
    both,
    is_finite,
    is_symbol,
    unary,
    where,
)
from geomctrl.tracing.traces import Trace

from .arithmetic import Arithmetic, Sizes, evaluated, on

STRUCTURAL = 4e-16  # distance up to which a number counts as 0, 1 or -1: rounding, not a property of the robot


class _Functions:
    """math on symbols."""

    pi = np.pi

    def __getattr__(self, name: str):
        if name == "atan2":
            return lambda a, b: binary("atan2", a, b)
        if name in ("sqrt", "sin", "cos", "tan", "asin", "acos", "exp", "log", "tanh"):
            return lambda a: unary(name, a)
        raise UntraceableError(f"math.{name} can not be traced")


def _fold(op: str):
    def chosen(*args):
        result = args[0]
        for x in args[1:]:
            result = binary(op, result, x)
        return result

    return chosen


def symbolic() -> Arithmetic:
    return Arithmetic(
        _Functions(), where=where, minimum=_fold("min"), maximum=_fold("max"), absolute=lambda a: unary("abs", a)
    )


def run(kernel: Callable[..., Any], *arrays: Any) -> Any:
    """kernel(*arrays), an entry of `kernels` that Python calls; on symbols if an argument holds one."""
    try:
        return kernel(*arrays)
    except (TypeError, ValueError):  # it refuses symbols; a test before each call would take time
        if not any(map(holds_symbols, arrays)):
            raise
    taken = [_objects(x) for x in arrays]
    with finite_numbers(x for x in taken if isinstance(x, np.ndarray)):
        return wrapped(on(kernel, symbolic())(*taken))


@contextmanager
def finite_numbers(arrays: Iterable[np.ndarray]) -> Iterator[None]:
    """Context in which a kernel runs on these arrays, whose numbers must be finite, as in Python."""
    arrays = list(arrays)
    graph = next((y.graph for x in arrays for y in x.flat if is_symbol(y)), None)
    if graph is None:  # an array of a law that holds numbers only, such as a constant reference's
        yield
        return
    required = (
        []
        if graph.finite
        else [is_finite(functools.reduce(add, unsure)) for x in arrays if (unsure := _not_known_finite(x))]
    )
    with graph.of_finite_numbers():
        for condition in required:
            require(condition)
        yield


def _not_known_finite(x: np.ndarray) -> list[Any]:
    """The numbers of an array that might be nan or infinite; their sum is finite only if all of them are."""
    return [y for y in x.flat if not (y.graph.is_finite_input(y) if is_symbol(y) else math.isfinite(y))]


def _objects(x: Any) -> Any:
    """An argument in the form for kernels on symbols: the memory of an array of symbols, a copy of one of numbers."""
    if not isinstance(x, np.ndarray):
        return x
    return x.view(np.ndarray) if x.dtype == object else x.astype(object)


def structure(model: np.ndarray) -> np.ndarray:
    """The model array with nan where a number is an input at run time, and its structural numbers exact.

    Robots that differ only in their inertias share the result, which is read-only.
    """
    rest = model.copy()
    bodies = tree.body_records(rest)
    bodies[:, tree.J : tree.S] = 0.0
    bodies[:, tree.ARMATURE] = bodies[:, tree.ARMATURE] != 0.0
    return _pattern(rest.tobytes())


@functools.lru_cache(maxsize=256)
def _pattern(numbers: bytes) -> np.ndarray:
    model = np.frombuffer(numbers)
    rows = model.reshape(-1, tree.WIDTH)
    whole = np.zeros(rows.shape, bool)
    first, bodies = int(rows[-1, tree.FIRST]), np.arange(len(tree.body_records(model)))
    ends = [-1]
    if first:  # the independent joints of a coupled robot form a second tree
        ends, bodies = [len(bodies), -2, -1], np.r_[bodies, first : len(rows) - 2]
    whole[bodies, : tree.A] = whole[ends, : tree.GRAVITY] = True
    pattern = np.where(np.abs(rows - np.round(rows)) <= STRUCTURAL, np.round(rows), np.nan)
    pattern[np.abs(pattern) > 1.0] = np.nan
    pattern[bodies, tree.J : tree.S] = np.nan
    pattern[bodies, tree.ARMATURE] = np.where(rows[bodies, tree.ARMATURE] == 0.0, 0.0, np.nan)
    pattern = (np.where(whole, rows, pattern) + 0.0).ravel()  # no -0.0
    pattern.flags.writeable = False
    return pattern


def symbolic_model(graph: Graph, pattern: np.ndarray) -> np.ndarray:
    """The model array of a structure with symbols, array 0 of the graph, for the numbers that are inputs."""
    return np.array([graph.load(0, k) if np.isnan(x) else x for k, x in enumerate(pattern.tolist())] + [None])[:-1]


def trace(
    algorithm: Algorithm,
    pattern: np.ndarray,
    options: dict[str, Any],
    optional: tuple[str, ...] = (),
    *,
    guarded: bool = False,
    limit: float = math.inf,
) -> Trace:
    """Run the algorithm on symbols for a robot of structure `pattern`.

    options: values of its integer options; an array that is left out is an input at run time. optional: the optional
    inputs that are passed. guarded: the flag is also false for a configuration with invalid poses. Raises
    UntraceableError if the kernel needs the value of a symbol, and if the graph exceeds `limit` operations.
    """
    graph = Graph(limit=limit)
    model = symbolic_model(graph, pattern)
    sizes = Sizes(pattern, options)
    arrays, lengths = [], []

    def fresh(length: int) -> np.ndarray:
        lengths.append(length)
        out = np.empty(length, object)
        out[:] = [graph.load(len(lengths), k) for k in range(length)]
        return out

    for x in algorithm.inputs:
        arrays.append(np.empty(0, object) if x.optional and x.name not in optional else fresh(sizes.of(x)))
    for x in algorithm.options:
        runtime = x.is_array and x.name not in options
        arrays.append(fresh(sizes.of(x)).reshape(sizes.shape(x)) if runtime else options[x.name])
    good, outputs = evaluated(algorithm, sizes, model, arrays, symbolic())
    for x, q in zip(algorithm.inputs, arrays):
        if guarded and x.shape == ("nq",):
            good = both(good, on(tree.good_poses, symbolic())(model, q))
    flag = None if good is True else graph.operand(good)
    ends = tuple(graph.operand(x if is_symbol(x) else float(x)) for y in outputs for x in y.ravel())
    return Trace(graph, tuple(lengths), ends, tuple(y.size for y in outputs), flag)
