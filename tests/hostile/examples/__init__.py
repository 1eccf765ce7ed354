"""With which arguments each public callable works; what has no arguments to get wrong is left out, with the reason."""

import functools
import importlib
from types import ModuleType

from hostile.calls import Example

ROOMS = (
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
def room(name: str) -> ModuleType:
    return importlib.import_module(f"hostile.examples.{name}")


def examples(name: str) -> dict[str, Example]:
    return room(name).EXAMPLES


def callable_of(name: str) -> str:
    """Return the callable of the example "Robot.pose" or "simulate#adaptive"."""
    return name.partition("#")[0]


def left_out() -> dict[str, str]:
    """Public callables without an example, with the reason."""
    return {name: why for r in ROOMS for name, why in getattr(room(r), "LEFT_OUT", {}).items()}
