"""The law that `--controller` names: a bundled one, or a class in a file of the user's."""

from __future__ import annotations

import inspect
from functools import cache
from pathlib import Path
from typing import Any

from geomctrl import controllers
from geomctrl.control.contracts import Controller
from geomctrl.control.tuning import Tuning
from geomctrl.errors import ArgumentError, NameNotFoundError

from .user_files import names_in


def law_class(name: str) -> type[Any]:
    """The class of a bundled controller, or, as "my.py:Law", one in a file; raises GeomctrlError children."""
    path, colon, own = name.rpartition(":")
    if colon and path.endswith(".py"):
        return _own(Path(path).resolve(), own)
    known = controllers.tuned()
    if name not in known:
        raise NameNotFoundError(f"controller: expected one of {', '.join(known)}, or FILE.py:CLASS, got {name!r}")
    return known[name]


def gains_of(law: type[Any]) -> dict[str, str]:
    """The gains that may be given for a law, with meanings."""
    return dict(getattr(law, "GAINS", {}))


def made(law: type[Any], tuning: Tuning) -> Any:
    """The controller: by its own `tuned(tuning)`, or as law(robot, reference)."""
    made = law.tuned(tuning) if hasattr(law, "tuned") else law(tuning.robot, tuning.motion)
    if not isinstance(made, Controller):
        raise ArgumentError(f"controller: expected {law.__name__} to be a geomctrl.Controller, got {made!r:.60}")
    return made


@cache
def _own(path: Path, name: str) -> type[Any]:
    found = names_in("controller", path, "__controller__")
    law = found.get(name)
    if not isinstance(law, type):
        classes = [k for k, x in found.items() if isinstance(x, type) and x.__module__ == "__controller__"]
        raise NameNotFoundError(f"controller: {path.name} has no class {name!r}; it has {', '.join(classes) or 'none'}")
    if not hasattr(law, "tuned"):
        try:
            inspect.signature(law).bind(None, None)
        except TypeError:
            raise ArgumentError(
                f"controller: expected {name} to have a classmethod tuned(tuning), or to be made as {name}(robot,"
                f" reference), got {name}{inspect.signature(law)}"
            ) from None
    return law
