"""Look up terms by name for export: their inputs, outputs and traces, and their comparison with Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from geomctrl.arguments import shown
from geomctrl.compiler.arithmetic import Arithmetic, Sizes, evaluated
from geomctrl.compiler.catalogue import CATALOGUE, Function
from geomctrl.compiler.differentiable import Differentiable, differentiable
from geomctrl.compiler.kernel_traces import structure, trace
from geomctrl.errors import ArgumentError, GeomctrlError, NameNotFoundError
from geomctrl.kernels import configuration, frames
from geomctrl.kernels.algorithms import Algorithm, Array
from geomctrl.mechanism.configuration import random_configuration
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.tracing.backends.rounding import differing
from geomctrl.tracing.traces import Trace

from .kinematics import Representation, representation_number

STATES = 4  # at which a term in another library is compared with Python

MEANINGS = {
    "q": "configuration, joint by joint [rad or m; a pose [R | p] row by row]",
    "v": "velocity [rad/s, m/s]",
    "a": "acceleration [rad/s^2, m/s^2]",
    "v_ref": "reference velocity [rad/s, m/s]",
    "tau": "torques or forces of the joints [N m, N]",
    "g": "torques that hold the robot against gravity [N m, N]",
    "M": "mass matrix, row by row",
    "Mdot": "its rate along v, row by row",
    "C": "Coriolis matrix, row by row, with Mdot - 2C skew",
    "Y": "regressor, row by row; columns: ten for each body, (m, hx, hy, hz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz)",
    "f_ext": "wrenches (moment, force) on the bodies in their frames about their origins [N m, N], body by body",
    "pi": "inertial parameters, ten for each body",
    "x": "a vector of the joints",
    "T": "pose of the frame in the world, 4 x 4, row by row",
    "J": "Jacobian of the frame, 6 x nv, row by row, angular part first",
    "dJ": "its rate, 6 x nv, row by row",
    "inverse": "inverse of the mass matrix, row by row",
    "dq": "derivative with respect to the configuration, row by row",
    "dv": "derivative with respect to the velocity, row by row",
    "da": "derivative with respect to the acceleration: the mass matrix, row by row",
    "dtau": "derivative with respect to the torques: the inverse of the mass matrix, row by row",
    "state": "kinetic energy, potential energy [J], spatial momentum about the world's origin, angular part first",
}

ON_GROUP = {"integrate": Function(configuration.moved), "difference": Function(configuration.difference)}
FRAME_TERMS = {"pose": frames.pose, "jacobian": frames.jacobian, "jacobian_rate": frames.jacobian_rate}


class Term(NamedTuple):
    """An algorithm with its options, which are integers and arrays of the robot.

    inputs: names of its inputs; given: the optional ones among them; result: type of several outputs.
    """

    algorithm: Algorithm
    numbers: dict[str, int]
    arrays: dict[str, np.ndarray]
    inputs: list[Array]
    optional: tuple[str, ...]
    result: type


def compiled_term(
    robot: Mechanism,
    term: str,
    frame: str | None = None,
    representation: Representation = "body",
    argument: str = "term",
    others: Mapping[str, Function] | None = None,
) -> Term:
    """Return the term with this name; `frame` and `representation` apply to "pose", "jacobian" and "jacobian_rate".

    argument: name of the caller's argument, for errors. others: terms that only the caller has. Raises
    NameNotFoundError for an unknown term or frame, ArgumentError for a frame that is missing or not needed.
    """
    functions = {**CATALOGUE, **(others or {})}
    term = str(term) if isinstance(term, str) else term  # a subclass may compare in its own way
    if not isinstance(term, str) or (term not in functions and term not in FRAME_TERMS):
        raise NameNotFoundError(
            f"{argument}: expected one of {', '.join([*functions, *FRAME_TERMS])}, got {shown(term)}"
        )
    form = representation_number(representation)
    if (frame is None) == (term in FRAME_TERMS):
        wanted = "the name of a frame" if term in FRAME_TERMS else "None"
        raise ArgumentError(f"frame: expected {wanted} for the term {term!r}, got {shown(frame)}")
    if frame is None:
        algorithm, numbers, result, optional = functions[term]
        inputs = [x for x in algorithm.inputs if not x.optional or x.name in optional]
        return Term(algorithm, numbers, {}, inputs, optional, result)
    algorithm, place = FRAME_TERMS[term], robot.frame(frame)
    numbers = {"i": place.body} | ({} if term == "pose" else {"form": form})
    placement = {"placement": place.placement[:3].flatten()}
    return Term(algorithm, numbers, placement, list(algorithm.inputs), (), tuple)


def traced_term(robot: Mechanism, term: Term) -> tuple[Trace, Sizes]:
    """Return the trace of a term with the robot's numbers as constants, and the sizes of its arrays."""
    pattern = structure(robot._model)
    numbers = np.where(np.isnan(pattern), robot._model, pattern)  # terms with a zero inertia are dropped
    return trace(term.algorithm, numbers, {**term.numbers, **term.arrays}, term.optional), Sizes(pattern)


def expected_outputs(robot: Mechanism, term: Term, inputs: list[np.ndarray]) -> list[np.ndarray] | None:
    """Return the results of the kernel in plain Python, for comparison; None if it has no result."""
    rows = {x.name: values.ravel() for x, values in zip(term.inputs, inputs)}  # kernels read wrenches one after another
    arrays = [rows.get(x.name, np.empty(0)) for x in term.algorithm.inputs]
    arrays += [{**term.numbers, **term.arrays}[x.name] for x in term.algorithm.options]
    try:
        good, outputs = evaluated(term.algorithm, Sizes(robot._model), robot._model, arrays, Arithmetic(math))
    except ZeroDivisionError:
        return None
    return [y.astype(float) for y in outputs] if good else None


def differentiable_term(robot: Mechanism, term: Term) -> tuple[Differentiable, np.ndarray, np.ndarray, Sizes]:
    """Return a term as a function with derivatives, the robot's constants and parameters, and the sizes of arrays."""
    function = differentiable(term.algorithm, structure(robot._model), {**term.numbers, **term.arrays}, term.optional)
    constants, parameters = robot._model[function.constants], robot._model[function.parameters]
    if not function.trial:
        rows = [x.ravel() for x in random_inputs(robot, term, np.random.default_rng(0))]
        function.trial = [constants, parameters, *rows]
    return function, constants, parameters, Sizes(robot._model)


def compare_with_python(
    robot: Mechanism, term: Term, trace: Trace, call: Callable[[list[np.ndarray]], Sequence[np.ndarray]]
) -> None:
    """Raise GeomctrlError unless a term in another library agrees with the kernel in plain Python.

    call: the term in the other library, for inputs with the states on their first axis. trace: used to compute an upper
    limit of rounding errors. States at which Python has no result are skipped.
    """
    rng = np.random.default_rng(1)
    states = [random_inputs(robot, term, rng) for _ in range(STATES)]
    outputs = [np.asarray(y, float) for y in call([np.stack(x) for x in zip(*states)])]
    for k, inputs in enumerate(states):
        expected = expected_outputs(robot, term, [x.ravel() for x in inputs])
        if expected is None:
            continue
        j = differing(trace, [*inputs, robot._model], expected, [y[k] for y in outputs])
        if j is not None:
            values = ", ".join(f"{x.name} = {value.tolist()}" for x, value in zip(term.inputs, inputs))
            raise GeomctrlError(
                f"robot {robot.name!r}: {term.algorithm.outputs[j].name} of the compiled function differs from Python"
                f" at {values:.400}"
            )


def random_inputs(
    robot: Mechanism, term: Term, rng: np.random.Generator, q: np.ndarray | None = None
) -> list[np.ndarray]:
    """Return random inputs of one state. q: the configuration; default: random."""
    sizes = Sizes(structure(robot._model))
    return [
        (random_configuration(robot, rng) if q is None else q)
        if x.shape == ("nq",)
        else rng.normal(size=sizes.shape(x))
        for x in term.inputs
    ]
