"""`trace`: a numpy function of arrays as machine code, C, interval enclosures and exact derivatives."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import CodeType, MethodType
from typing import Any

import numpy as np

from geomctrl.arguments import checked, count, function
from geomctrl.errors import ArgumentError

from .backends import c, c_files, entries
from .backends.batches import Batch
from .backends.c_names import parameter
from .backends.machine_code import MAX_OPERATIONS, address_of_one, addresses_of_many
from .backends.rounding import differing, evaluated, has_result, rounded, tolerances
from .derivatives import tangents
from .proofs.enclosure import Enclosure
from .tracer import Shape, TraceResult, traced
from .trial import unchanged
from .untraceable import UntraceableError

POINTS, TRIALS = 8, 64  # points of the comparison of a trace with its function, and attempts to find them
WIDTHS = (0.5, 3.0, 0.02, 30.0)  # standard deviations of these points about zero


def trace(f: Callable[..., Any], *shapes: Shape | int) -> TracedFunction:
    """Trace a function of arrays: run it once with symbols and record its scalar operations.

    Parameters
    ----------
    f : callable
        f(*arrays) in Python, numpy and math. It returns a number, an array, a list of numbers, or a tuple of those, and
        has no side effects. It is called with symbols, and with numbers for comparison.
    *shapes : tuple of int, or int
        The shape of each argument: () for a float, n for (n,).

    Returns
    -------
    TracedFunction
        With `to_llvm`, `to_c`, `enclose` and `derivative`.

    Raises
    ------
    UntraceableError
        If f needs the numerical value of a symbol or changes something (the message has file and line), or if trace and
        f differ at a point.
    ArgumentError
        If f is no function, returns something else or is defined nowhere, or if a shape is invalid.

    Notes
    -----
    The trace is compared with f in Python at eight random points where f is defined. These calls have no effect: all
    that f reaches is restored, and a function that may change what can not be restored is refused before.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl.tracing import trace
    >>> pendulum = trace(lambda x, u: np.array([x[1], u - 9.81 * np.sin(x[0])]), (2,), ())
    >>> pendulum
    TracedFunction((2,), () -> (2,), 3 operations)
    >>> pendulum.to_llvm()(np.array([0.0, 0.5]), 1.0)
    array([0.5, 1. ])
    >>> lo, hi = pendulum.enclose([[0.0, -1.0], [0.1, 1.0]], [0.0, 0.0])
    >>> bool(lo[1] <= -9.81 * np.sin(0.1) and hi[1] >= 0.0)
    True
    >>> pendulum.derivative().to_llvm()(np.array([0.0, 0.5]), 1.0)
    array([[ 0.  ,  1.  ],
           [-9.81,  0.  ]])
    """
    function("f", f, "a function of arrays")
    inputs = tuple(_shape(k, shape) for k, shape in enumerate(shapes))
    with unchanged(f, "f"):
        traced_function = TracedFunction(traced(f, *inputs), inputs, _names(f, len(inputs)), f)
        traced_function.compare()
    return traced_function


def _shape(k: int, shape: Any) -> Shape:
    lengths = shape if isinstance(shape, (tuple, list)) else (shape,)
    lengths = tuple(count(f"shapes[{k}]", n) for n in lengths)
    if math.prod(lengths) > MAX_OPERATIONS:
        raise ArgumentError(f"shapes[{k}]: expected at most {MAX_OPERATIONS} numbers, got {math.prod(lengths)}")
    return lengths


def _names(f: Callable[..., Any], n: int) -> list[str]:
    """The names of f's first n parameters, as far as they exist."""
    try:
        named = [p.name for p in inspect.signature(f).parameters.values() if p.kind <= p.POSITIONAL_OR_KEYWORD]
    except (TypeError, ValueError):
        named = []
    return [named[k] if k < len(named) else f"x{k}" for k in range(n)]


class TracedFunction:
    """A function of arrays and its trace; see `trace`.

    Attributes
    ----------
    function : callable or None
        The function in Python; None for a derivative.
    trace : Trace
        The operations.
    inputs, outputs : tuple of shapes
        Shapes of the arguments and of the results.
    several : bool
        Whether it returns a tuple of outputs.
    """

    def __init__(
        self, traced_f: TraceResult, inputs: Sequence[Shape], names: Sequence[str], f: Callable[..., Any] | None
    ):
        self.trace, self.outputs, self.several = traced_f
        self.inputs, self.names, self.function = tuple(inputs), tuple(names), f

    @property
    def operations(self) -> int:
        """Number of scalar operations per evaluation."""
        return self.trace.operations

    def __repr__(self) -> str:
        shapes = (", ".join(map(str, x)) for x in (self.inputs, self.outputs))
        return f"TracedFunction({' -> '.join(shapes)}, {self.operations} operations)"

    def compare(self) -> None:
        """Raise UntraceableError unless trace and function agree at random points where the function is defined."""
        for point, expected in self._points(POINTS):
            if has_result(self.trace, point):  # elsewhere the compiled function calls Python
                self._require(expected, [np.array(x) for x in evaluated(self.trace, point)], point, "traced")

    def arguments(self, flat: Sequence[np.ndarray]) -> list[Any]:
        """Arrays and floats with the shapes of the arguments, from flat arrays; always new."""
        return [x.reshape(shape).copy() if shape else float(x.item()) for x, shape in zip(flat, self.inputs)]

    def to_llvm(self) -> CompiledFunction:
        """Compile for this processor.

        Returns
        -------
        CompiledFunction
            Called like the function, for one point, or for many if all arrays have the same leading axes. It has been
            compared with the function in Python.

        Raises
        ------
        UntraceableError
            If there are too many operations, or if compiled code and Python differ at a point.
        """
        if self.operations > MAX_OPERATIONS:
            raise UntraceableError(f"f: {self.operations} operations, at most {MAX_OPERATIONS} are compiled")
        call = CompiledFunction(self)
        with self._unchanged():
            for point, expected in self._points(POINTS):
                result = call(*self.arguments(point))
                outputs = [np.ravel(y) for y in (result if self.several else [result])]
                self._require(expected, outputs, point, "compiled")
        return call

    def to_c(self, path: str | Path, name: str = "f", *, precision: str = "double") -> tuple[Path, ...]:
        """Write `int NAME_value(inputs..., outputs...)` as C99: NAME.h, NAME.c and NAME_test.c in the folder `path`.

        Parameters
        ----------
        path : str or Path
            The folder.
        name : str
            Name of the files and prefix of the function.
        precision : {"double", "float"}
            Floating-point type of all numbers.

        Returns
        -------
        tuple of Path
            The three files. NAME_test.c compares the function with Python's results on the target.

        Raises
        ------
        ArgumentError
            If C or its libraries use the name.
        """
        name, real = c_files.prefix("name", name), c_files.checked_precision(precision)
        parameters: list[c.Parameter] = []
        for own, shape in zip(self.names, self.inputs, strict=True):
            meaning = f"argument {own!r}, shape {shape}"
            own = parameter(own, [x.name for x in parameters])
            parameters.append(c.Parameter(own, math.prod(shape), meaning, not shape))
        for k, shape in enumerate(self.outputs):
            own = parameter(f"result{k}" if self.several else "result", [x.name for x in parameters])
            parameters.append(c.Parameter(own, math.prod(shape), f"result, shape {shape}"))
        n = len(self.inputs)
        f = c.Function(f"{name}_value", self.trace, parameters[:n], parameters[n:], real)
        with self._unchanged():
            cases = [
                c.Case(point, expected, tolerances(self.trace, point, expected, real))
                for point, expected in self._points(4, real)
            ]
        heading = [f"A function with {self.operations} operations, in {real} precision."]
        unit = c_files.exported(f, "The function's value", "where it has none", cases)
        return c_files.write(path, name, heading, real, [unit])

    def enclose(self, *boxes: Any) -> Any:
        """Bounds of the outputs that hold at every point of a box, with outward rounding.

        Parameters
        ----------
        *boxes : pair of array_like
            (lo, hi) for each argument, two arrays of its shape.

        Returns
        -------
        pair of arrays
            (lo, hi) of the output, or a tuple of pairs. The bounds are -inf and inf if nothing is known, or if the
            function is not defined somewhere in the box.

        Raises
        ------
        ArgumentError
            If a box is empty, infinite, or has another shape.
        UntraceableError
            If Python returns a value outside of the bounds at a point of the box.
        """
        if len(boxes) != len(self.inputs):
            raise ArgumentError(f"boxes: expected {len(self.inputs)}, one for each argument, got {len(boxes)}")
        pairs = [checked(f"boxes[{k}]", box, (2, *shape)) for k, (box, shape) in enumerate(zip(boxes, self.inputs))]
        for k, (pair, shape) in enumerate(zip(pairs, self.inputs)):
            if pair.shape != (2, *shape) or np.any(pair[0] > pair[1]):
                raise ArgumentError(f"boxes[{k}]: expected (lo, hi) with lo <= hi, each of shape {shape}, got {pair}")
        lo, hi = (np.concatenate([pair[side].ravel() for pair in pairs]) for side in (0, 1))
        bounds = Enclosure(self.trace)(lo[None], hi[None])
        lows, highs = (self._outputs(np.split(x[0], np.cumsum(self.trace.sizes)[:-1])) for x in bounds)
        with self._unchanged():
            self._require_inside(lo, hi, *bounds)
        return tuple(zip(lows, highs, strict=True)) if self.several else (lows, highs)

    def derivative(self, argument: int = 0) -> TracedFunction:
        """The exact derivative with respect to one argument; its shape is that of the output followed by the argument.

        Parameters
        ----------
        argument : int
            Position of the argument.

        Returns
        -------
        TracedFunction
            A function of the same arguments. At a kink it is the derivative of the active branch.
        """
        k = count("argument", argument, 0, len(self.inputs) - 1)
        graph, shape = self.trace.graph, self.inputs[k]
        values = self.trace.symbols
        moved = [graph.load(k + 1, j).index for j in range(math.prod(shape))]
        rates = [tangents(graph, values, {first: 1.0}) for first in moved]
        columns, outputs, first = np.array(rates, object).reshape(len(moved), len(values)).T, [], 0
        for own in self.outputs:
            outputs.append(columns[first : first + math.prod(own)].reshape((*own, *shape)))
            first += math.prod(own)
        ends = tuple(graph.operand(x) for y in outputs for x in y.ravel().tolist())
        slopes = replace(self.trace, outputs=ends, sizes=tuple(y.size for y in outputs))
        traced_slopes = TraceResult(slopes, tuple(y.shape for y in outputs), self.several)
        return TracedFunction(traced_slopes, self.inputs, self.names, None)

    # --- comparison ----------------------------------------------------------------------------------------------

    def _points(self, wanted: int, real: str = "double") -> Iterator[tuple[list[np.ndarray], list[np.ndarray]]]:
        """Random points where Python returns a value, and the values; for a derivative those of the trace."""
        rng, raised, count = np.random.default_rng(0), "", 0
        for k in range(TRIALS):
            point = [rounded(WIDTHS[k % 4] * rng.normal(size=math.prod(shape)), real) for shape in self.inputs]
            try:
                expected = evaluated(self.trace, point) if self.function is None else self._in_python(point)
            except Exception as error:
                raised = f"{type(error).__name__}: {error!s:.200}"
                if self.function is not None and has_result(self.trace, point):
                    where = [x.tolist() for x in point]
                    raise UntraceableError(
                        f"f: the traced function has a value at {where!s:.200}, where Python raises {raised}"
                    ) from error
                continue
            yield point, expected
            count += 1
            if count == wanted:
                return
        if not count:
            raise UntraceableError(
                f"f: Python raises at all {TRIALS} points of the comparison: {raised}{self._line()}; change the units"
                " of the arguments, so that numbers about 1 are in the domain of f"
            )

    def _unchanged(self) -> AbstractContextManager[None]:
        return nullcontext() if self.function is None else unchanged(self.function, "f")

    def _line(self) -> str:
        """Text ", in FILE, line N" for the first line of the function."""
        f = self.function
        while isinstance(f, (functools.partial, MethodType)):
            f = f.func if isinstance(f, functools.partial) else f.__func__
        code = getattr(f, "__code__", None) or getattr(type(f).__call__, "__code__", None)
        return f", in {code.co_filename}, line {code.co_firstlineno}" if isinstance(code, CodeType) else ""

    def _in_python(self, point: list[np.ndarray]) -> list[np.ndarray]:
        assert self.function is not None
        with np.errstate(all="ignore"):
            result = self.function(*self.arguments(point))
        arrays = [np.ravel(np.asarray(y)) for y in (result if self.several else [result])]
        if any(map(np.iscomplexobj, arrays)):
            raise TypeError("f returns complex numbers")
        return [y.astype(float) for y in arrays]

    def _require(self, expected: list, actual: list, point: list, how: str) -> None:
        """Raise UntraceableError unless actual and expected outputs agree up to rounding."""
        if [x.size for x in expected] != list(self.trace.sizes) or differing(
            self.trace, point, expected, actual
        ) is not None:
            raise UntraceableError(
                f"f: {how}, it differs from Python at {[x.tolist() for x in point]!s:.200}{self._line()}: it draws"
                " random numbers, or depends on more than its arguments; pass these as arguments"
            )

    def _require_inside(self, lo: np.ndarray, hi: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        """Raise UntraceableError if the function has a value outside of the bounds, apart from rounding."""
        rng, cuts = np.random.default_rng(0), np.cumsum(self.trace.inputs)[:-1]
        for part in (0.5, 0.0, 1.0, rng.uniform(size=lo.size), rng.uniform(size=lo.size)):
            point = np.split(np.clip(lo + part * (hi - lo), lo, hi), cuts)
            try:
                expected = [] if self.function is None else self._in_python(point)
            except Exception:
                continue  # undefined there; the bounds are infinite
            if expected:
                x, allowed = np.concatenate(expected), np.concatenate(tolerances(self.trace, point, expected, "double"))
                if np.any((x < low[0] - allowed) | (x > high[0] + allowed)):
                    raise UntraceableError(
                        f"f: Python returns a value outside of the bounds at {[y.tolist() for y in point]!s:.200}: it"
                        " draws random numbers, or depends on more than its arguments"
                    )

    def _outputs(self, flat: Sequence[np.ndarray]) -> Any:
        """Outputs in the form that the function returns, from flat arrays; leading axes are kept."""
        outputs = [_shaped(y, shape) for y, shape in zip(flat, self.outputs, strict=True)]
        return tuple(outputs) if self.several else outputs[0]


def _shaped(y: np.ndarray, shape: Shape) -> Any:
    y = y.reshape((*y.shape[:-1], *shape))
    return y if y.ndim else float(y)


class CompiledFunction:
    """f(*arrays) in machine code, see `TracedFunction.to_llvm`.

    If compiled code has no result, or arguments are not finite, the function is called in Python, and may raise.
    """

    def __init__(self, traced_function: TracedFunction):
        self.traced, trace = traced_function, traced_function.trace
        self._flat = [shape if len(shape) <= 2 else (math.prod(shape),) for shape in self.traced.inputs]
        self._fast = tuple(self._flat) == self.traced.inputs
        self._numbers = np.zeros(1)  # placeholder for the model array
        self._one = entries.entry(address_of_one(trace), self._numbers, self._flat, [(n,) for n in trace.sizes])
        self._many: Batch | None = None

    def __call__(self, *arrays: Any) -> Any:
        own = self.traced
        result = self._one(*arrays) if self._fast else None
        if result is not None:
            return own._outputs([result] if len(own.outputs) == 1 else result)
        if len(arrays) != len(own.inputs):
            raise ArgumentError(f"arguments: expected {len(own.inputs)}, got {len(arrays)}")
        rows, leads = [], []
        for name, x, shape in zip(own.names, arrays, own.inputs, strict=True):
            x = checked(name, x, shape, finite=False)
            leads.append(x.shape[: x.ndim - len(shape)])
            rows.append(np.ascontiguousarray(x.reshape(*leads[-1], math.prod(shape)), float))
        for name, lead in zip(own.names, leads):
            if lead != leads[0]:
                raise ArgumentError(f"{name}: expected the leading axes of {own.names[0]}, {leads[0]}, got {lead}")
        return self._of_one(rows) if not leads or leads[0] == () else self._of_many(rows, leads[0])

    def _of_one(self, flat: list[np.ndarray]) -> Any:
        own = self.traced
        result = self._one(*(x.reshape(shape) if shape else float(x.item()) for x, shape in zip(flat, self._flat)))
        if result is not None:
            return own._outputs([result] if len(own.outputs) == 1 else result)
        if own.function is None:
            raise ArgumentError("arguments: the derivative has no value there, or they are not finite")
        return own.function(*own.arguments(flat))

    def _of_many(self, flat: list[np.ndarray], lead: Shape) -> Any:
        own, n = self.traced, math.prod(lead)
        flat = [x.reshape(n, x.shape[-1]) for x in flat]
        if self._many is None:
            self._many = Batch(self._numbers, addresses_of_many(own.trace), len(own.trace.outputs))
        out, failed = np.empty((n, len(own.trace.outputs))), 0
        if n and all(np.isfinite(x).all() for x in flat):
            out, failed = self._many(*flat)
        if failed >= 0:  # Python computes the points without result one by one
            for k in range(n):
                result = self._of_one([x[k] for x in flat])
                out[k] = np.concatenate([np.ravel(y) for y in (result if own.several else [result])])
        cuts = np.cumsum(own.trace.sizes)[:-1]
        return own._outputs([y.reshape((*lead, y.shape[-1])) for y in np.split(out, cuts, axis=1)])
