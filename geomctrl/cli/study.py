"""A study: a Python file that sets the arguments of a sweep, or of one run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from geomctrl.errors import ArgumentError

from .user_files import names_in


def arguments_of(study: Path, function: Callable[..., Any], ours: Collection[str]) -> dict[str, Any]:
    """The arguments of `function` that a study sets, by their names, but for the command's own, `ours`.

    Raises ArgumentError where one is missing; whatever the study raises.
    """
    found = names_in("STUDY.py", study, "__study__")
    parameters = inspect.signature(function).parameters.values()
    missing = [p.name for p in parameters if p.default is p.empty and p.name not in found]
    if missing:
        raise ArgumentError(f"STUDY.py: expected {', '.join(missing)} in {str(study)!r}, which sets no such name")
    return {p.name: found[p.name] for p in parameters if p.name in found and p.name not in ours}
