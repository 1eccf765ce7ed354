"""A robot's terms as C99 source, for controllers that run without Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from geomctrl.arguments import listed, path_of
from geomctrl.compiler.arithmetic import Arithmetic, Sizes, evaluated
from geomctrl.compiler.kernel_traces import structure, trace
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.configuration import random_configuration
from geomctrl.mechanism.mechanism import Mechanism, require_robot
from geomctrl.tracing.backends import c, c_files
from geomctrl.tracing.backends.rounding import rounded, tolerances

from .compiled import FRAME_TERMS, Term, compiled_term
from .kinematics import Representation, representation_number

FAILURE = "where the mass matrix is not positive definite"

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
    "Y": "regressor, row by row; columns: ten a body, (m, hx, hy, hz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz)",
    "f_ext": "wrenches (moment, force) on the bodies in their frames about their origins [N m, N], body by body",
    "pi": "inertial parameters, ten a body",
    "x": "a vector of the joints",
    "T": "pose of the frame in the world, 4 x 4, row by row",
    "J": "Jacobian of the frame, 6 x nv, row by row, angular part first",
    "dJ": "its rate, 6 x nv, row by row",
    "inverse": "inverse of the mass matrix, row by row",
    "dq": "derivative by the configuration, row by row",
    "dv": "derivative by the velocity, row by row",
    "da": "derivative by the acceleration: the mass matrix, row by row",
    "dtau": "derivative by the torques: the inverse of the mass matrix, row by row",
    "state": "kinetic energy, potential energy [J], spatial momentum about the world's origin, angular part first",
}


def to_c(
    robot: Mechanism,
    path: str | Path,
    terms: Sequence[str] = ("inverse_dynamics",),
    *,
    name: str | None = None,
    precision: str = "double",
    frame: str | None = None,
    representation: Representation = "body",
) -> tuple[Path, ...]:
    """Write NAME.h, NAME.c and NAME_test.c into the folder `path`: C99 with the robot's numbers in it.

    The code depends on nothing but libm; it allocates nothing and has no loops. Functions are named NAME_term.

    terms: names of `geomctrl.compiler.catalogue`, "inverse_dynamics" or "terms" for example; also "pose", "jacobian"
    and "jacobian_rate" of the `frame`, in that `representation`. name: of the files and the functions' prefix, default
    the robot's. precision: "double" or "float". The header says sizes, units, the
    order of joints and bodies, and how many operations a call takes; every call takes as many. NAME_test.c
    compares with Python on the target, each number to what rounding may make of it. Returns the paths.

    Raises NameNotFoundError for an unknown term and ArgumentError for what can not be a name in C.
    """
    require_robot("robot", robot)
    path = path_of("path", path)
    representation_number(representation)
    name = c_files.prefix("name", c_files.prefix_of(robot.name, "robot") if name is None else name)
    c_files.checked_precision(precision)
    known = _known(terms)
    if frame is not None and not any(term in FRAME_TERMS for term in known):
        raise ArgumentError(f"frame: expected one of {', '.join(FRAME_TERMS)} among the terms, got {', '.join(known)}")
    rng = np.random.default_rng(0)
    q, units = random_configuration(robot, rng), []
    for word in known:
        term = compiled_term(robot, word, frame if word in FRAME_TERMS else None, representation, "terms")
        f = _function(robot, f"{name}_{word}", term, precision)
        given = [rounded(q if x.name == "q" else rng.normal(size=x.size), precision) for x in f.inputs]
        expected = _expected(robot, term, given)
        allowed = [] if expected is None else tolerances(f.trace, given, expected, precision)
        units.append(c_files.exported(f, word, FAILURE, [c.Case(given, expected, allowed)]))
    return c_files.write(path, name, _heading(robot, precision), precision, units)


def _heading(robot: Mechanism, precision: str) -> list[str]:
    what = f"{c_files.comment(robot.name)}: {robot.nbodies} bodies, nq = {robot.nq}, nv = {robot.nv}"
    return [
        f"{what}; made by geomctrl in {precision} precision.",
        "SI units, radians; the angular part of twists and wrenches first. All functions return 1 where not said.",
        *("Velocity coordinates:", *c_files.numbered(robot.dof_names)),
        *("Bodies:", *c_files.numbered(robot.body_names)),
    ]


def _function(robot: Mechanism, name: str, term: Term, precision: str) -> c.Function:
    pattern = structure(robot._model)
    numbers = np.where(np.isnan(pattern), robot._model, pattern)  # all known: a zero inertia costs nothing either
    sizes = Sizes(pattern)
    inputs = [c.Parameter(x.name, sizes.of(x), MEANINGS[x.name]) for x in term.inputs]
    outputs = [c.Parameter(y.name, sizes.of(y), MEANINGS[y.name]) for y in term.algorithm.outputs]
    traced = trace(term.algorithm, numbers, {**term.numbers, **term.arrays}, term.given)
    return c.Function(name, traced, inputs, outputs, precision)


def _expected(robot: Mechanism, term: Term, given: list[np.ndarray]) -> list[np.ndarray] | None:
    """What the kernel itself computes, in plain Python; None where there is no result."""
    rows = dict(zip((x.name for x in term.inputs), given))
    arrays = [rows.get(x.name, np.empty(0)) for x in term.algorithm.inputs]
    arrays += [{**term.numbers, **term.arrays}[x.name] for x in term.algorithm.options]
    try:
        good, outputs = evaluated(term.algorithm, Sizes(robot._model), robot._model, arrays, Arithmetic(math))
    except ZeroDivisionError:
        return None
    return [y.astype(float) for y in outputs] if good else None


def _known(terms: Sequence[str]) -> list[str]:
    if isinstance(terms, str):
        return [terms]
    names = listed("terms", terms)
    if not names or not all(isinstance(name, str) for name in names):
        raise ArgumentError(f"terms: expected at least one name of a term, got {terms!r:.80}")
    return names
