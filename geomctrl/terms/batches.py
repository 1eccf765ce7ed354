"""What the terms share: the fast way for one state, and the way with words for everything else.

A term first hands its arguments to the algorithm's entry for one state, which refuses whatever it was not made for at
no cost. What it refuses goes through `over_states`: checked with words, then run over the leading axes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from geomctrl.errors import ModelError
from geomctrl.kernels.algorithms import Algorithm
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.mechanism.states import as_batch

REFUSED = (ValueError, TypeError, KeyError)  # what an entry, or a table of options, raises for what it was not made for


def over_states(robot: Mechanism, algorithm: Algorithm, *options: Any, **states: Any) -> Any:
    """The algorithm's output (or outputs) for states with any leading axes, the same for all of them.

    `states`: the algorithm's inputs by name; None leaves an optional one out. Raises ArgumentError as `as_batch` does,
    and ModelError where the algorithm fails for a state: where M is not positive definite.
    """
    left_out = {x.name for x in algorithm.inputs if x.optional and states.get(x.name) is None}
    names = [name for name in states if name not in left_out]
    lead, arrays = as_batch(robot, **{name: states[name] for name in names})
    given = dict(zip(names, arrays))
    found = _by_code(robot, algorithm, given, options)
    out, failed = _by_loops(robot, algorithm, given, options) if found is None else found
    if failed >= 0:
        raise not_positive(robot, arrays[0][failed])
    if len(algorithm.outputs) > 1:
        return tuple(y.reshape(*lead, *y.shape[1:]) for y in out)
    return out.reshape(*lead, *out.shape[1:])


def _by_code(robot: Mechanism, algorithm: Algorithm, given: dict[str, np.ndarray], options: tuple) -> Any:
    """(outputs, number of the first state without a result or -1); None where loops are to do it."""
    rows = [_flat(given[x.name]) for x in algorithm.inputs if x.name in given]
    present = tuple(x.name for x in algorithm.inputs if x.optional and x.name in given)
    return robot._code.over(algorithm, rows, present, dict(zip((x.name for x in algorithm.options), options)))


def _by_loops(robot: Mechanism, algorithm: Algorithm, given: dict[str, np.ndarray], options: tuple) -> tuple[Any, int]:
    rows = [_flat(given[x.name]) if x.name in given else np.empty((0, 0)) for x in algorithm.inputs]
    out = algorithm.many(robot._model, *rows, *options)
    return out if algorithm.may_fail else (out, -1)


def _flat(a: np.ndarray) -> np.ndarray:
    return a if a.ndim == 2 else a.reshape(len(a), int(np.prod(a.shape[1:])))


def not_positive(robot: Mechanism, q: np.ndarray) -> ModelError:
    return ModelError(f"robot {robot.name!r}: the mass matrix is not positive definite at q = {q}")
