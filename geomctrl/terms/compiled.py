"""The terms that code can be made for, by name, and the ways out of Python: C, and a user's own numba functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from geomctrl.compiler.catalogue import CATALOGUE
from geomctrl.errors import ArgumentError, ModelError, NameNotFoundError
from geomctrl.kernels import frames
from geomctrl.kernels.algorithms import Algorithm, Array
from geomctrl.mechanism.mechanism import Mechanism, require_robot

from .kinematics import Representation, representation_number

FRAME_TERMS = {"pose": frames.pose, "jacobian": frames.jacobian, "jacobian_rate": frames.jacobian_rate}


class Term(NamedTuple):
    """An algorithm with its options: whole numbers, and arrays that are the robot's own. inputs: those that there are;
    given: the optional ones among them. result: what several outputs come as."""

    algorithm: Algorithm
    numbers: dict[str, int]
    arrays: dict[str, np.ndarray]
    inputs: list[Array]
    given: tuple[str, ...]
    result: type


def compiled_term(
    robot: Mechanism,
    term: str,
    frame: str | None = None,
    representation: Representation = "body",
    argument: str = "term",
) -> Term:
    """The term of that name; `frame` and `representation` for "pose", "jacobian" and "jacobian_rate".

    argument: what the caller's callers know the name as. Raises NameNotFoundError for an unknown term or frame,
    ArgumentError for a frame that is missing or not wanted.
    """
    if not isinstance(term, str) or (term not in CATALOGUE and term not in FRAME_TERMS):
        raise NameNotFoundError(
            f"{argument}: expected one of {', '.join([*CATALOGUE, *FRAME_TERMS])}, got {term!r:.40}"
        )
    form = representation_number(representation)
    if (frame is None) == (term in FRAME_TERMS):
        wanted = "the name of one" if term in FRAME_TERMS else "None"
        raise ArgumentError(f"frame: expected {wanted} for the term {term!r}, got {frame!r:.40}")
    if frame is None:
        algorithm, numbers, result, given = CATALOGUE[term]
        inputs = [x for x in algorithm.inputs if not x.optional or x.name in given]
        return Term(algorithm, numbers, {}, inputs, given, result)
    algorithm, at = FRAME_TERMS[term], robot.frame(frame)
    numbers = {"i": at.body} | ({} if term == "pose" else {"form": form})
    placement = {"placement": at.placement[:3].flatten()}
    return Term(algorithm, numbers, placement, list(algorithm.inputs), (), tuple)


def to_numba(
    robot: Mechanism, term: str, *, frame: str | None = None, representation: Representation = "body"
) -> Callable[..., Any]:
    """A term as a function that a user's own `@numba.njit` functions can call: arrays in, new arrays out.

        inverse_dynamics = robot.to_numba("inverse_dynamics")

        @numba.njit
        def law(q, v, a): return inverse_dynamics(q, v, a) - 5.0 * v

    The call goes straight to the machine code. Arguments are float64 arrays of one state, in the order of the term's
    inputs: a (nv,), q (nq,), f_ext (nbodies, 6). The function raises ValueError for other shapes and where there is no
    result; nan and infinity in the arguments are not looked for, and come out again.

    term: as for `to_c`; "pose", "jacobian" and "jacobian_rate" are those of `frame`. Functions that call it can not be
    cached on disk by numba (`cache=True`), since it is an address. Raises ModelError where the robot is too large for
    code of its own (`geomctrl.compiler.budget`).
    """
    from geomctrl.compiler.numba_calls import njit

    require_robot("robot", robot)
    made = compiled_term(robot, term, frame, representation)
    sizes = robot._code.sizes
    core = robot._code.core(made.algorithm, made.given, **made.numbers)
    if core is None:
        raise ModelError(
            f"robot {robot.name!r}: {term} is too long for code of its own, or the compiler is off"
            " (GEOMCTRL_COMPILER=off): call the method of the robot"
        )
    return njit(
        term,
        core,
        robot._model,
        {x.name: sizes.shape(x) for x in made.inputs},
        list(made.arrays.values()),
        {y.name: sizes.shape(y) for y in made.algorithm.outputs},
        made.result,
    )
