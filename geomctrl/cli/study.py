"""A study: a Python file that sets the arguments of a sweep."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from geomctrl.control.sweeping.sweep import sweep
from geomctrl.errors import ArgumentError

from .user_files import names_in

OURS = {"store", "executor", "progress"}  # the command's own


def arguments_of(study: Path) -> dict[str, Any]:
    """The arguments of `sweep` that a study sets, by their names.

    Raises ArgumentError where one is missing; whatever the study raises.
    """
    found = names_in("STUDY.py", study, "__study__")
    parameters = inspect.signature(sweep).parameters.values()
    missing = [p.name for p in parameters if p.default is p.empty and p.name not in found]
    if missing:
        raise ArgumentError(f"STUDY.py: expected {', '.join(missing)} in {str(study)!r}, which sets no such name")
    return {p.name: found[p.name] for p in parameters if p.name in found and p.name not in OURS}
