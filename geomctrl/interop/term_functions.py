"""A robot's term as a function of another library's arrays: what the functions of `to_jax` and `to_torch` share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from geomctrl.errors import ArgumentError
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.terms.kinematics import Representation
from geomctrl.terms.requested_terms import ON_GROUP, compare_with_python, compiled_term, differentiable_term

MIN_BATCH = 2  # from more states on, several are evaluated at a time


class TermFunction(ABC):
    """f(*inputs, parameters=None), compared with Python when it is made.

    Attributes
    ----------
    robot : Mechanism
    term : str
    inputs : dict of str to tuple of int
        Names of the arguments and their shapes, without leading axes.
    """

    same_for_all = ""  # advice to those who pass one row for many states

    def __init__(self, robot: Mechanism, term: str, frame: str | None, representation: Representation):
        compiled = compiled_term(robot, term, frame, representation, others=ON_GROUP)
        self._function, constants, parameters, sizes = differentiable_term(robot, compiled)
        self.robot, self.term, self._arguments = robot, term, (robot, term, frame, representation)
        self.inputs = {x.name: sizes.shape(x) for x in compiled.inputs}
        self._outputs = [sizes.shape(y) for y in compiled.algorithm.outputs]
        self._result = compiled.result
        self._prepare(constants, parameters)
        compare_with_python(robot, compiled, self._function.trace, self._called_with_numpy)

    @abstractmethod
    def _prepare(self, constants: np.ndarray, parameters: np.ndarray) -> None:
        """Create what calls need from the robot's numbers."""

    @abstractmethod
    def _called_with_numpy(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """The outputs for numpy arrays in double precision, computed by the library."""

    @abstractmethod
    def _array(self, name: str, x: Any) -> Any:
        """An argument as an array of the library; raises ArgumentError."""

    @abstractmethod
    def _evaluated(self, arrays: Sequence[Any], parameters: Any) -> Any:
        """The result for arrays of the library."""

    def __call__(self, *arrays: Any, parameters: Any = None, **others: Any) -> Any:
        count = len(self.inputs)
        for name in others:
            expected = f"{', '.join(self.inputs)} by position, and optionally parameters"
            raise ArgumentError(f"{name}: no argument of {self.term} by name; expected {expected}")
        if len(arrays) == count + 1 and parameters is None:
            arrays, parameters = arrays[:-1], arrays[-1]
        if len(arrays) != count:
            names = ", ".join(self.inputs)
            raise ArgumentError(f"{self.term}: expected {names} and optionally parameters, got {len(arrays)} arrays")
        rows = [self._array(name, x) for name, x in zip(self.inputs, arrays)]
        return self._evaluated(rows, None if parameters is None else self._array("parameters", parameters))

    def __repr__(self) -> str:
        names = ", ".join([*self.inputs, "parameters=None"])
        return f"{type(self).__name__}({self.robot.name}: {self.term}({names}))"

    def __reduce__(self) -> tuple:
        return type(self), self._arguments

    def _lead(self, arrays: Sequence[Any]) -> tuple[int, ...]:
        """The leading axes of all arrays."""
        leads = {}
        for (name, shape), x in zip(self.inputs.items(), arrays):
            actual = tuple(x.shape)
            cut = len(actual) - len(shape)
            if cut < 0 or actual[cut:] != shape:
                expected = ", ".join(map(str, ("...", *shape)))
                raise ArgumentError(f"{name}: expected shape ({expected}), got {actual}")
            leads[name] = actual[:cut]
        first, lead = next(iter(leads.items()))
        for name, other in leads.items():
            if other != lead:
                message = f"expected the leading axes of {first}, {lead}, got {other} (nothing is broadcast)"
                raise ArgumentError(f"{name}: {message}; {self.same_for_all}")
        return lead

    def _parameter_rows(self, parameters: Any, lead: tuple[int, ...]) -> Any:
        """Inertial parameters as one row of numbers, or one for each state."""
        shape, actual = (self.robot.nbodies, 10), tuple(parameters.shape)
        if actual == (10 * shape[0],):
            return parameters
        if actual[-2:] != shape or actual[:-2] not in ((), lead):
            raise ArgumentError(
                f"parameters: expected shape {shape}, or {(*lead, *shape)} for each state its own, got {actual}"
            )
        return parameters.reshape(*actual[:-2], 10 * shape[0])

    def _packed(self, results: Sequence[Any], lead: tuple[int, ...]) -> Any:
        """The result in the form of the robot's method, from flat outputs."""
        results = [y.reshape(*lead, *shape) for y, shape in zip(results, self._outputs)]
        return results[0] if len(results) == 1 else tuple.__new__(self._result, results)
