"""`line_of_change`: the line of users' code that changes a value."""

from __future__ import annotations

import dis
import itertools
import re
from collections.abc import Iterable
from typing import Any

from .code_identity import codes, is_own_function
from .containers import RANDOM_STATE

ASSIGNED = "STORE_GLOBAL", "STORE_DEREF"  # instructions that assign to a global or to a variable of a closure
USES = "_ATTR", "_GLOBAL", "_DEREF", "_METHOD", "_NAME"  # ends of instructions that read or write a name


def line_of_change(path: str, kinds: Iterable[Any]) -> str:
    """Text ", in FILE, line N" where a user's class or function writes the last name of a path; "" if unknown.

    Of a name that no code writes, as of a list to which it appends, it is the first line that reads it; of one that
    code does not contain, as with `setattr`, that of the name before.
    """
    names = re.findall(r"(?:^|\.)(\w+)", re.sub(r"\.__(dict|defaults|kwdefaults)__\b|\[[^]]*]?", "", path))
    names = ["random"] if path == RANDOM_STATE else names
    return next(filter(None, (_line_of_change(name, kinds) for name in reversed(names))), "")


def _line_of_change(name: str, kinds: Iterable[Any]) -> str:
    lines: dict[str, str] = {}
    for kind in kinds:
        members = vars(kind).values() if isinstance(kind, type) else (kind,)
        for f in members if not f"{kind.__module__}".startswith("geomctrl.") else ():
            code = getattr(f, "__code__", None)
            if code is None or f.__name__ == "__init__" or not is_own_function(f):
                continue
            for i in itertools.chain.from_iterable(map(dis.get_instructions, codes(code))):
                if i.argval == name and i.opname.endswith(USES) and i.positions is not None:
                    lines.setdefault(i.opname, f", in {code.co_filename}, line {i.positions.lineno}")
    return next((lines[name] for name in ("STORE_ATTR", *ASSIGNED) if name in lines), next(iter(lines.values()), ""))
