"""Terms of a robot and compiled laws as CasADi functions, which CasADi differentiates and generates code from.

A function repeats the scalar operations of a trace with CasADi's SX symbols. Branches become `if_else`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import optional_package
from geomctrl.control.compiled.law_trace import parts_of, trial_state
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.mechanism import require_robot
from geomctrl.robot import Robot
from geomctrl.terms.kinematics import Representation
from geomctrl.terms.requested_terms import ON_GROUP, compare_with_python, compiled_term, traced_term
from geomctrl.tracing.backends.c_names import parameter
from geomctrl.tracing.backends.rounding import differing
from geomctrl.tracing.operations import LIBRARY
from geomctrl.tracing.traces import Trace
from geomctrl.tracing.untraceable import UntraceableError

OLDEST_VERSION = "3.6.4"  # of casadi, with all functions that are used
STATES = 6  # at which a law is compared with Python
STATE = ("tau", "z_rate", "z_next")  # outputs of a law that are no signals


class Matrix(NamedTuple):
    """An input or output: its name, and its shape with at most two axes."""

    name: str
    shape: tuple[int, ...]

    @property
    def rows_and_columns(self) -> tuple[int, int]:
        rows, columns, *_ = (*self.shape, 1, 1)
        return rows, columns


def term_to_casadi(robot: Robot, term: str, frame: str | None, representation: Representation) -> Any:
    """The casadi.Function of a term; see `Robot.to_casadi`."""
    require_robot("robot", robot)
    casadi = optional_package("to_casadi", "casadi", "casadi", OLDEST_VERSION)
    requested = compiled_term(robot, term, frame, representation, others=ON_GROUP)
    trace, sizes = traced_term(robot, requested)
    inputs = [Matrix(x.name, sizes.shape(x)) for x in requested.inputs]
    outputs = [Matrix(y.name, sizes.shape(y)) for y in requested.algorithm.outputs]
    function = _function(casadi, term, trace, inputs, outputs)

    def call(arrays: list[np.ndarray]) -> list[np.ndarray]:
        results = zip(*(function.call([np.asarray(x) for x in state]) for state in zip(*arrays)))
        return [np.stack([np.asarray(y) for y in several]) for several in results]

    compare_with_python(robot, requested, trace, call)
    return function


def law_to_casadi(law: Any) -> Any:
    """The casadi.Function of a `CompiledLaw`; see `CompiledLaw.to_casadi`."""
    casadi = optional_package("to_casadi", "casadi", "casadi", OLDEST_VERSION)
    inputs = [Matrix(name, shape) for name, shape in law.inputs.items()]
    outputs: list[Matrix] = []
    for name, shape in law.outputs.items():
        if len(shape) > 2:
            raise ArgumentError(f"law: CasADi has no arrays of more than two axes, as its signal {name!r} of {shape}")
        own = name if name in STATE else parameter(f"signal_{name}", [y.name for y in outputs])
        outputs.append(Matrix(own, shape))
    name = parameter(type(law.uncompiled).__name__).rstrip("_")
    function = _function(casadi, name, law._trace, inputs, outputs)
    _compare(law, function)
    return function


def _compare(law: Any, function: Any) -> None:
    """Raise UntraceableError unless the function and the controller in Python agree at `STATES` states."""
    rng = np.random.default_rng(0)
    for k in range(STATES):
        state = trial_state(law.uncompiled, law._robot, law._z0, rng, k)
        try:
            expected = [np.asarray(x, float) for x in parts_of(law.uncompiled(*state)).values()]
        except Exception:  # the law has no result there, and the function nan
            continue
        arrays = [np.asarray(x) for x in state if x is not None]
        actual = [np.asarray(y) for y in function.call(arrays)]
        if differing(law._trace, [np.ravel(x) for x in arrays], expected, actual) is not None:
            raise UntraceableError(f"{function.name()}: the CasADi function differs from Python at t = {state[0]:g}")


def _function(casadi: Any, name: str, trace: Trace, inputs: Sequence[Matrix], outputs: Sequence[Matrix]) -> Any:
    """A trace as a casadi.Function with named inputs and outputs; its results are nan where the trace has none."""
    symbols = [casadi.SX.sym(x.name, *x.rows_and_columns) for x in inputs]
    value = _replayed(casadi, trace, [_row_by_row(casadi, x) for x in symbols])
    good = None if trace.flag is None else value[trace.flag]
    results, first = [], 0
    for y, size in zip(outputs, trace.sizes, strict=True):
        numbers = casadi.vertcat(casadi.SX(0, 1), *(value[k] for k in trace.outputs[first : first + size]))
        numbers = numbers if good is None else casadi.if_else(good, numbers, math.nan)
        rows, columns = y.rows_and_columns
        results.append(casadi.reshape(numbers, columns, rows).T)
        first += size
    return casadi.Function(name, symbols, results, [x.name for x in inputs], [y.name for y in outputs])


def _row_by_row(casadi: Any, x: Any) -> list[Any]:
    """The numbers of a matrix in the order of a trace; CasADi stores columns."""
    return casadi.vertsplit(casadi.vec(x.T)) if x.numel() else []


def _replayed(casadi: Any, trace: Trace, inputs: Sequence[Sequence[Any]]) -> dict[int, Any]:
    """The value of each node that the outputs need."""
    operations, value = _operations(casadi), {}
    for k in trace.graph.needed(trace.ends):
        op, *operands = trace.graph.nodes[k]
        if op == "const":
            number, sign = operands
            value[k] = casadi.SX(math.nan if number == "nan" else math.copysign(number, sign))
        elif op == "load":
            array, index = operands
            value[k] = inputs[array - 1][index]
        else:
            value[k] = operations[op](*(value[x] for x in operands))
    return value


def _operations(casadi: Any) -> dict[str, Callable[..., Any]]:
    """CasADi's expressions for the operations of a graph, with their meaning for nan."""
    own = {name: getattr(casadi, name) for name in LIBRARY if hasattr(casadi, name)}
    return own | {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
        "neg": lambda a: -a,
        "lt": lambda a, b: a < b,
        "le": lambda a, b: a <= b,
        "eq": lambda a, b: a == b,
        "and": casadi.logic_and,
        "or": casadi.logic_or,
        "not": casadi.logic_not,
        "where": casadi.if_else,
        "min": lambda a, b: casadi.if_else(b < a, b, a),
        "max": lambda a, b: casadi.if_else(a < b, b, a),
        "abs": casadi.fabs,
        "sqrt": casadi.sqrt,
        "sin": casadi.sin,
        "cos": casadi.cos,
        "floor": casadi.floor,
        "rint": lambda a: a - casadi.remainder(a, 1.0),
        "copysign": casadi.copysign,
        "pow": casadi.power,
        "exp2": lambda a: casadi.power(2.0, a),
        "log2": lambda a: casadi.log(a) / math.log(2.0),
        "cbrt": lambda a: casadi.copysign(casadi.power(casadi.fabs(a), 1.0 / 3.0), a),
    }
