"""Export of C functions as files: NAME.h, NAME.c, and NAME_test.c, which compares them with Python on the target."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from geomctrl.arguments import choice, path_of, shown
from geomctrl.errors import ArgumentError
from geomctrl.files import whole

from . import c
from .c_names import FILES, is_name

PRECISIONS = ("double", "float")


class Unit(NamedTuple):
    """The parts of a function in the three files: header, source, and main() of the test."""

    declaration: str
    definition: str
    test: str


def exported(f: c.Function, summary: str, failure: str, cases: Sequence[c.Case]) -> Unit:
    """A traced function with its test cases. summary: a phrase; failure: when it returns 0."""
    tests = [c.comparison(f, case, aliased=k == 0) for k, case in enumerate(cases)]
    if f.static:
        return Unit("", c.definition(f), "")
    summary = f"{summary}, {f.trace.operations} operations"
    failure = "" if f.trace.flag is None else failure
    parameters = [*f.inputs, *f.outputs]
    return Unit(declaration(c.prototype(f), summary, parameters, failure), c.definition(f), "\n".join(tests))


def declaration(prototype: str, summary: str, parameters: Sequence[c.Parameter], failure: str = "") -> str:
    """A function's prototype with a comment about its purpose and its parameters."""
    lines = [f" * {x.name}{'' if x.scalar else f'[{x.size}]'}: {comment(x.meaning)}" for x in parameters]
    result = [f" * Returns 0 {failure}, and leaves its outputs as they are; else 1."] if failure else []
    return "\n".join([f"/* {comment(summary)}", *lines, *result, " */", f"{prototype};\n"])


def write(folder: str | Path, name: str, heading: Sequence[str], real: str, units: Sequence[Unit]) -> tuple[Path, ...]:
    """Write the three files, all or none; `heading` starts the header. Returns their paths."""
    folder = path_of("path", folder)
    include = f'#include "{name}.h"\n\n#include <math.h>\n#include <string.h>\n'
    texts = {
        f"{name}.h": _header(name, heading, [x.declaration for x in units if x.declaration]),
        f"{name}.c": "\n".join([include, *(x.definition for x in units)]),
        f"{name}_test.c": _test(name, real, [x.test for x in units if x.test]),
    }
    with contextlib.ExitStack() as files:
        for file, text in texts.items():
            files.enter_context(whole(folder / file)).write(text.encode())
    return tuple(folder / file for file in texts)


def prefix(argument: str, name: object) -> str:
    """Validate the name of the files and the prefix NAME_ of their functions.

    The prefix avoids conflicts with functions of C, POSIX and other libraries; headers may still conflict."""
    if not isinstance(name, str) or not is_name(name):
        rule = "letters, digits and single underscores, a letter first"
        raise ArgumentError(f"{argument}: expected a name in C, got {shown(name)} ({rule})")
    if name.lower() in FILES:
        raise ArgumentError(f"{argument}: expected a name that no system header or device has, got {name!r:.60}")
    return name


def prefix_of(name: str, kind: str) -> str:
    """A valid prefix from any name; kind: inserted before a name that does not begin with a letter."""
    name = re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9]", "_", name)).strip("_")
    return name if is_name(name) and name.lower() not in FILES else f"{kind}_{name}".rstrip("_")


def checked_precision(precision: str) -> str:
    return choice("precision", precision, PRECISIONS)


def comment(text: str) -> str:
    """Text that is safe inside a C comment; "??/" would be a trigraph."""
    return re.sub(r"\?(?=\?)", "? ", re.sub(r"\s", " ", text)).replace("*/", "* /").replace("/*", "/ *")


def numbered(names: Sequence[str]) -> list[str]:
    return [f"  {k}: {comment(name)}" for k, name in enumerate(names)]


def _header(name: str, heading: Sequence[str], declarations: Sequence[str]) -> str:
    guard = f"GEOMCTRL_{name.upper()}_H"
    lines = [
        f"/* {heading[0]}",
        *(f" * {line}" for line in heading[1:]),
        " * Inputs and outputs may be the same arrays.",
        " */",
    ]
    guards = [f"#ifndef {guard}", f"#define {guard}", "", "#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    end = ["#ifdef __cplusplus", "}", "#endif", "", "#endif"]
    return "\n".join([*lines, *guards, *declarations, *end]) + "\n"


def _test(name: str, real: str, tests: Sequence[str]) -> str:
    comment = f"/* Compares {name}.c with Python; exit status 0 where they agree. */"
    includes = f'{comment}\n#include "{name}.h"\n\n#include <math.h>\n#include <stdio.h>\n#include <string.h>\n'
    compare = c.COMPARE.format(real=real)
    main = ["int main(void)", "{", "    int failed = 0;", *tests, "    return failed ? 1 : 0;", "}"]
    return "\n".join([includes, compare, *main]) + "\n"
