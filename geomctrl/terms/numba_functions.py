"""Terms of a robot as functions that numba code calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from geomctrl.compiler.numba_calls import njit
from geomctrl.errors import ModelError
from geomctrl.mechanism.mechanism import Mechanism, require_robot

from .kinematics import Representation
from .requested_terms import compiled_term


def to_numba(
    robot: Mechanism, term: str, *, frame: str | None = None, representation: Representation = "body"
) -> Callable[..., Any]:
    """Return a term as a function that `@numba.njit` functions can call: arrays in, new arrays out.

    Parameters
    ----------
    robot : Robot
        The robot.
    term : str
        As for `Robot.to_c`.
    frame, representation : str
        Of "pose", "jacobian" and "jacobian_rate", as for `Robot.jacobian`.

    Returns
    -------
    callable
        Its arguments are float64 arrays of one state in the order of the term's inputs: q (nq,), v (nv,), f_ext
        (nbodies, 6). It raises ValueError for other shapes and if there is no result. nan and infinity are not checked
        and propagate.

    Raises
    ------
    ModelError
        If the robot is too large for compiled code of its own (`geomctrl.compiler.code`).

    Notes
    -----
    The call goes directly to the machine code, by its address. numba therefore can not cache functions that call it on
    disk (`cache=True`).

    Examples
    --------
    >>> import numba
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> inverse_dynamics = gc.interop.to_numba(gc.models.two_link(), "inverse_dynamics")
    >>> @numba.njit
    ... def law(q, v, a):
    ...     return inverse_dynamics(q, v, a) - 5.0 * v
    >>> law(np.zeros(2), np.ones(2), np.zeros(2)).shape
    (2,)
    """
    require_robot("robot", robot)
    compiled = compiled_term(robot, term, frame, representation)
    sizes = robot._code.sizes
    core = robot._code.core(compiled.algorithm, compiled.optional, **compiled.numbers)
    if core is None:
        raise ModelError(
            f"robot {robot.name!r}: {term} is too long for code of its own, or the compiler is off"
            " (GEOMCTRL_COMPILER=off): call the method of the robot"
        )
    return njit(
        term,
        core,
        robot._model,
        {x.name: sizes.shape(x) for x in compiled.inputs},
        list(compiled.arrays.values()),
        {y.name: sizes.shape(y) for y in compiled.algorithm.outputs},
        compiled.result,
    )
