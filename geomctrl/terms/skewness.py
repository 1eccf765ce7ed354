"""Check that Mdot - 2C is skew and that C is a Coriolis matrix, by independent computations (`kernels.skewness`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from geomctrl.kernels import skewness as kernels
from geomctrl.mechanism.mechanism import Mechanism

from .batches import over_states
from .dynamics import Form, form_number


def mass_matrix_in_motion(robot: Mechanism, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return M (nv, nv) and its rate along v, computed differently from C and `Robot.mass_matrix_rate`."""
    result = robot._code.at(kernels.mass_matrix_in_motion)(q, v)
    return over_states(robot, kernels.mass_matrix_in_motion, q=q, v=v) if result is None else result


def residual_of_terms(robot: Mechanism, q: np.ndarray, v: np.ndarray, s: np.ndarray, form: Form) -> float:
    """Return the largest relative error of the robot's own terms, for C in this form and any velocity s (nv,)."""
    return _number(robot, kernels.skewness, form_number(form), q=q, v=v, s=s)


def residual_of(robot: Mechanism, q: np.ndarray, v: np.ndarray, C: np.ndarray) -> float:
    """Return the largest relative error of a given C (nv, nv)."""
    return _number(robot, kernels.skewness_of, q=q, v=v, C=C)


def _number(robot: Mechanism, algorithm: Any, *options: int, **state: Any) -> Any:
    """Return the output of an algorithm with a single number as output, at one state."""
    result = robot._code.at(algorithm, *options)(*state.values())
    return (over_states(robot, algorithm, *options, **state) if result is None else result).item(0)
