"""C functions as files: NAME.h, NAME.c, and NAME_test.c, which compares them with Python on the target."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from geomctrl.arguments import choice, path_of
from geomctrl.errors import ArgumentError
from geomctrl.files import whole

from . import c

TOLERANCES = {"double": 1e-13, "float": 1e-4}


class Exported(NamedTuple):
    """A function, what it is in words, when it returns 0, and a case: arrays `given` and what Python makes of them,
    None where there is no result."""

    function: c.Function
    words: str
    failure: str
    given: list[np.ndarray]
    expected: list[np.ndarray] | None


def write(folder: str | Path, name: str, heading: Sequence[str], functions: Sequence[Exported]) -> tuple[Path, ...]:
    """Write the three files, all or none; `heading` opens the header. Returns their paths."""
    folder = path_of("path", folder)
    include = f'#include "{name}.h"\n\n#include <math.h>\n'
    texts = {
        f"{name}.h": _header(name, heading, functions),
        f"{name}.c": "\n".join([include, *(c.definition(x.function) for x in functions)]),
        f"{name}_test.c": _test(name, functions),
    }
    with contextlib.ExitStack() as files:
        for file, text in texts.items():
            files.enter_context(whole(folder / file)).write(text.encode())
    return tuple(folder / file for file in texts)


def identifier(argument: str, name: object) -> str:
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ArgumentError(f"{argument}: expected a name in C, got {name!r:.60}")
    return name


def real(precision: str) -> str:
    return choice("precision", precision, TOLERANCES)


def comment(text: str) -> str:
    """Text that can stand in a comment of C, whatever it says."""
    return re.sub(r"\s", " ", text).replace("*/", "* /").replace("/*", "/ *")


def numbered(names: Sequence[str]) -> list[str]:
    return [f"  {k}: {comment(name)}" for k, name in enumerate(names)]


def _header(name: str, heading: Sequence[str], functions: Sequence[Exported]) -> str:
    guard = f"{name.upper()}_H"
    words = [f"/* {heading[0]}", *(f" * {line}" for line in heading[1:]), " */"]
    guards = [f"#ifndef {guard}", f"#define {guard}", "", "#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    end = ["#ifdef __cplusplus", "}", "#endif", "", "#endif"]
    return "\n".join([*words, *guards, *map(_declaration, functions), *end]) + "\n"


def _declaration(x: Exported) -> str:
    f = x.function
    lines = [f" * {y.name}[{y.size}]: {y.meaning}" for y in (*f.inputs, *f.outputs)]
    failure = [] if f.trace.flag is None else [f" * Returns 0 {x.failure}, else 1."]
    return "\n".join(
        [f"/* {x.words}, {f.trace.operations} operations", *lines, *failure, " */", f"{c.prototype(f)};\n"]
    )


def _test(name: str, functions: Sequence[Exported]) -> str:
    precision = functions[0].function.real
    words = f"/* Compares {name}.c with Python at a random state; exit status 0 where they agree. */"
    includes = f'{words}\n#include "{name}.h"\n\n#include <math.h>\n#include <stdio.h>\n'
    compare = c.COMPARE.format(real=precision, tolerance=TOLERANCES[precision])
    parts = [c.comparison(x.function, x.given, x.expected) for x in functions]
    main = ["int main(void)", "{", "    int failed = 0;", *parts, "    return failed ? 1 : 0;", "}"]
    return "\n".join([includes, compare, *main]) + "\n"
