"""Arguments that work for each public callable; callables without arguments are left out, with the reason."""

import functools
import importlib
from types import ModuleType

from hostile.calls import Example

GROUPS = (
    "lie",
    "mechanism",
    "terms",
    "integrators",
    "control",
    "controllers",
    "flight",
    "compliance",
    "adaptive",
    "constrained",
    "identification",
    "simulated",
    "others",
    "plants",
    "friction",
    "promises",
    "wrenches",
    "sensors",
)


@functools.cache
def group(name: str) -> ModuleType:
    return importlib.import_module(f"hostile.examples.{name}")


def examples(name: str) -> dict[str, Example]:
    return group(name).EXAMPLES


def callable_of(name: str) -> str:
    """Return the callable of the example "Robot.pose" or "simulate#adaptive"."""
    return name.partition("#")[0]


def left_out() -> dict[str, str]:
    """Public callables without an example, with the reason."""
    return {name: why for r in GROUPS for name, why in getattr(group(r), "LEFT_OUT", {}).items()}
