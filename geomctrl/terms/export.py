"""A robot's terms as C99 source, for controllers that run without Python."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from geomctrl.compiler import c
from geomctrl.compiler.catalogue import CATALOGUE
from geomctrl.compiler.tracing import Sizes, structure, trace
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.files import whole
from geomctrl.mechanism.mechanism import Mechanism

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
    "out": "kinetic energy, potential energy [J], spatial momentum about the world's origin, angular part first",
}


def to_c(
    robot: Mechanism,
    path: str | Path,
    terms: Sequence[str] = ("inverse_dynamics",),
    *,
    name: str | None = None,
    precision: str = "double",
) -> tuple[Path, Path]:
    """Write NAME.c and NAME.h into the folder `path`: C99 with the robot's numbers in it.

    The code depends on nothing but libm; it allocates nothing and has no loops.

    terms: names of `geomctrl.compiler.catalogue`, "inverse_dynamics" or "terms_ploen" for example. name: of the files
    and the functions' prefix, default the robot's. precision: "double" or "float". The header says sizes, units, the
    order of joints and bodies, and how many operations a call takes; every call takes as many. Returns the two paths.

    Raises NameNotFoundError for an unknown term and ArgumentError for what can not be a name in C.
    """
    name = _identifier("name", re.sub(r"\W", "_", robot.name) if name is None else name)
    if precision not in ("double", "float"):
        raise ArgumentError(f"precision: expected 'double' or 'float', got {precision!r:.40}")
    functions = [_function(robot, name, term, precision) for term in _known(terms)]
    folder = Path(path)
    header, source = folder / f"{name}.h", folder / f"{name}.c"
    body = "\n".join(definition for _, definition in functions)
    start = f'/* Made by geomctrl; {name}.h says what it holds. */\n#include "{name}.h"\n\n#include <math.h>\n\n'
    with whole(source) as c_file, whole(header) as h_file:
        c_file.write((start + body).encode())
        h_file.write(_header(robot, name, [declaration for declaration, _ in functions], precision).encode())
    return header, source


def _function(robot: Mechanism, prefix: str, term: str, precision: str) -> tuple[str, str]:
    """(prototype with its comment, definition)."""
    algorithm, options = CATALOGUE[term]
    pattern = structure(robot._model)
    numbers = np.where(np.isnan(pattern), robot._model, pattern)  # all known: a zero inertia costs nothing either
    sizes, traced = Sizes(pattern), trace(algorithm, numbers, options)
    inputs = [c.Parameter(x.name, sizes.of(x), MEANINGS[x.name]) for x in algorithm.inputs if not x.optional]
    outputs = [c.Parameter(y.name, sizes.of(y), MEANINGS[y.name]) for y in algorithm.outputs]
    lines = [f" * {x.name}[{x.size}]: {x.meaning}" for x in (*inputs, *outputs)]
    failure = "" if traced.flag is None else "\n * Returns 0 where the mass matrix is not positive definite, else 1."
    words = "\n".join([f"/* {term}, {traced.operations} operations", *lines]) + failure + " */\n"
    function = f"{prefix}_{term}"
    declaration = words + c.prototype(function, inputs, outputs, precision) + ";"
    return declaration, c.function(function, traced, inputs, outputs, precision)


def _header(robot: Mechanism, name: str, declarations: list[str], precision: str) -> str:
    guard = f"{name.upper()}_H"
    what = f"{_comment(robot.name)}: {robot.nbodies} bodies, nq = {robot.nq}, nv = {robot.nv}"
    words = [
        f"/* {what}; made by geomctrl in {precision} precision.",
        " * SI units, radians; the angular part of twists and wrenches first. All functions return 1 where not said.",
        " * Velocity coordinates:", *_numbered(robot.dof_names), " * Bodies:", *_numbered(robot.body_names), " */",
    ]  # fmt: skip
    guards = [f"#ifndef {guard}", f"#define {guard}", "", "#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    end = ["", "#ifdef __cplusplus", "}", "#endif", "", "#endif"]
    return "\n".join([*words, *guards, "\n\n".join(declarations), *end]) + "\n"


def _numbered(names: Sequence[str]) -> list[str]:
    return [f" *   {k}: {_comment(name)}" for k, name in enumerate(names)]


def _comment(text: str) -> str:
    """Text that can stand in a comment of C, whatever it says."""
    return re.sub(r"\s", " ", text).replace("*/", "* /").replace("/*", "/ *")


def _known(terms: Sequence[str]) -> list[str]:
    names = [terms] if isinstance(terms, str) else list(terms)
    for term in names:
        if term not in CATALOGUE:
            raise NameNotFoundError(f"terms: expected some of {', '.join(CATALOGUE)}, got {term!r:.40}")
    if not names:
        raise ArgumentError("terms: expected at least one, got none")
    return names


def _identifier(argument: str, name: object) -> str:
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ArgumentError(f"{argument}: expected a name in C, got {name!r:.60}")
    return name
