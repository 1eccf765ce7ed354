"""Run an algorithm over states with leading axes: validate the arguments, explain errors, loop over the batch.

A term first passes its arguments to the compiled function for one state, which rejects everything that it does not
support. Rejected arguments go through `over_states`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from geomctrl.arguments import count
from geomctrl.errors import ModelError
from geomctrl.kernels.algorithms import Algorithm
from geomctrl.kernels.couplings import fitting
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.mechanism.states import as_batch
from geomctrl.tracing.backends.batches import SHARE
from geomctrl.tracing.numbers import has_symbols

REFUSED = (ValueError, TypeError, KeyError)  # raised by compiled functions and option tables for unsupported arguments


ONE = 1  # default of `threads`, compared by identity so that validation costs nothing in the default case


def check_threads(threads: int) -> None:
    count("threads", threads, 1, expected="a whole number from 1 on")


def plain(*arrays: Any) -> bool:
    """Whether all are plain numpy arrays; compiled loops would use the masked values of a masked array."""
    return all(type(x) is np.ndarray for x in arrays)


def not_positive(robot: Mechanism, q: np.ndarray) -> ModelError:
    return ModelError(f"robot {robot.name!r}: the mass matrix is not positive definite at q = {q}")


def over_states(
    robot: Mechanism,
    algorithm: Algorithm,
    *options: Any,
    threads: int = 1,
    failure: Callable[[Mechanism, np.ndarray], ModelError] = not_positive,
    **states: Any,
) -> Any:
    """Return the algorithm's output (or outputs) for states with any leading axes, the same for all arguments.

    `states`: the algorithm's inputs by name; None omits an optional one. threads: number of threads that share a large
    batch; the results do not depend on it. Raises ArgumentError as `as_batch` does. If the algorithm fails for a state,
    because M is not positive definite, raises the ModelError that `failure` creates from the robot and q.
    """
    check_threads(threads)
    left_out = {x.name for x in algorithm.inputs if x.optional and states.get(x.name) is None}
    names = [name for name in states if name not in left_out]
    lead, arrays = as_batch(robot, **{name: states[name] for name in names})
    rows_of = dict(zip(names, arrays))
    if any(map(has_symbols, (robot._model, *arrays))):
        return _on_symbols(robot, algorithm, lead, rows_of, options)
    outcome = _by_code(robot, algorithm, rows_of, options, threads)
    out, failed = _by_loops(robot, algorithm, rows_of, options, threads) if outcome is None else outcome
    if failed >= 0:
        raise failure(robot, arrays[0][failed])
    if len(algorithm.outputs) > 1:
        return tuple(y.reshape(*lead, *y.shape[1:]) for y in out)
    return out.reshape(*lead, *out.shape[1:])


def _by_code(
    robot: Mechanism, algorithm: Algorithm, rows_of: dict[str, np.ndarray], options: tuple, threads: int
) -> Any:
    """Return (outputs, number of the first state without a result or -1); None if interpreted loops must do it."""
    rows = [_flat(rows_of[x.name]) for x in algorithm.inputs if x.name in rows_of]
    present = tuple(x.name for x in algorithm.inputs if x.optional and x.name in rows_of)
    return robot._code.over(algorithm, rows, present, dict(zip((x.name for x in algorithm.options), options)), threads)


def _on_symbols(
    robot: Mechanism, algorithm: Algorithm, lead: tuple[int, ...], rows_of: dict[str, np.ndarray], options: tuple
) -> Any:
    """Run the algorithm on symbolic states, which control laws use while they are traced."""
    numbers = {x.name: value for x, value in zip(algorithm.options, options) if not x.is_array}
    shared = [value for x, value in zip(algorithm.options, options) if x.is_array]
    rows = [rows_of[x.name] for x in algorithm.inputs if x.name in rows_of]
    present = tuple(x.name for x in algorithm.inputs if x.optional and x.name in rows_of)
    results = [
        robot._code.on_symbols(algorithm, present, numbers, tuple, *(x[b].astype(object) for x in rows), *shared)
        for b in range(len(rows[0]))
    ]

    def stacked(outputs: list) -> np.ndarray:
        return np.stack(outputs).reshape(*lead, *np.shape(outputs[0]))

    return stacked(results) if len(algorithm.outputs) == 1 else tuple(stacked(list(y)) for y in zip(*results))


def _by_loops(
    robot: Mechanism, algorithm: Algorithm, rows_of: dict[str, np.ndarray], options: tuple, threads: int
) -> tuple[Any, int]:
    rows = [_flat(rows_of[x.name]) if x.name in rows_of else np.empty((0, 0)) for x in algorithm.inputs]
    states = len(rows[0])
    entry = fitting(algorithm, robot._model).entry("many", robot._model, states)

    def run(first: int, end: int) -> tuple[Any, int]:
        out = entry(robot._model, *(x[first:end] for x in rows), *options)
        out, failed = out if algorithm.may_fail else (out, -1)
        return out, failed if failed < 0 else first + failed

    shares = min(threads, states // SHARE)
    if shares < 2:
        return run(0, states)
    cuts = [states * k // shares for k in range(shares + 1)]
    with ThreadPoolExecutor(shares) as pool:
        parts = list(pool.map(run, cuts, cuts[1:]))
    failed = next((failed for _, failed in parts if failed >= 0), -1)
    if len(algorithm.outputs) == 1:
        return np.concatenate([out for out, _ in parts]), failed
    return tuple(np.concatenate(y) for y in zip(*(out for out, _ in parts))), failed


def _flat(a: np.ndarray) -> np.ndarray:
    return a if a.ndim == 2 else a.reshape(len(a), int(np.prod(a.shape[1:])))
