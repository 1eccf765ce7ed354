"""The API reference: a page for geomctrl's own names and one a module, written when the site is built."""

from __future__ import annotations

import enum
import importlib
import inspect
import operator
import pkgutil
import types
from pathlib import Path
from typing import Any

from writing import write_pages

import geomctrl

DOCS = Path(__file__).parents[1]
FOLDER = DOCS / "reference" / "api"
CORE = {
    "robots": ("Robots", ["Robot", "Body", "Joint", "Frame", "Coupling", "Terms", "load_urdf", "load_mjcf"]),
    "loops": ("Plants and loops", [
        "Plant", "Friction", "JointStops", "Wrench", "Contact", "HalfSpace", "simulate", "simulate_many", "rollout",
        "SimulationOptions", "SweepExecution", "Run", "compile", "sweep", "replay", "LiveView",
    ]),
    "contracts": ("Contracts", ["Controller", "Command", "Reference", "Desired", "Lyapunov"]),
}  # fmt: skip
MODULES = {  # the order in which they are listed
    "controllers": "Control laws, one a file.",
    "references": "Desired motions.",
    "friction": "Models of friction of joints.",
    "actuators": "What is between a command and a joint's torque.",
    "sensors": "What a law sees of the truth.",
    "monitors": "What is checked while a loop runs.",
    "measures": "What a sweep keeps of a run.",
    "control": "Pieces for laws of one's own.",
    "testing": "Assertions, searches, certificates.",
    "models": "Bundled robots, readers of URDF, MJCF and Denavit-Hartenberg tables.",
    "identification": "Robots from logs.",
    "derivatives": "Derivatives of the terms.",
    "operational_space": "Inertia of a frame, redundancy.",
    "inertia": "Inertial parameters.",
    "so3": "Rotations.",
    "se3": "Rigid displacements.",
    "groups": "Lie groups behind one protocol.",
    "integrators": "Integration on Lie groups.",
    "structure_preserving": "Methods that keep momentum, the symplectic form or energy.",
    "constrained": "Bodies in maximal coordinates, loop closures.",
    "papers": "Equations as the papers print them.",
    "interop": "python-control, Pinocchio, MuJoCo.",
    "errors": "All errors.",
}


def write(app: Any) -> None:
    """Sphinx's event builder-inited."""
    listed = {name for _, names in CORE.values() for name in names} | {n for n in geomctrl.NAMES if n.endswith("Error")}
    assert listed == set(geomctrl.NAMES), f"not in the reference: {sorted(set(geomctrl.NAMES) ^ listed)}"
    assert set(MODULES) == set(geomctrl.MODULES), f"not listed: {set(MODULES) ^ set(geomctrl.MODULES)}"
    pages = {f"{page}.rst": core_page(title, names) for page, (title, names) in CORE.items()}
    pages |= {f"{name}.rst": module_page(name) for name in MODULES}
    write_pages(FOLDER, pages)


def core_page(title: str, names: list[str]) -> str:
    return "\n".join([title, "=" * len(title), "", *(line for name in names for line in directive(f"geomctrl.{name}"))])


def module_page(name: str) -> str:
    title, module = f"geomctrl.{name}", getattr(geomctrl, name)
    lines = [title, "=" * len(title), "", f".. automodule:: {module.__name__}", "   :no-members:", "   :no-index:", ""]
    core = {id(getattr(geomctrl, known)) for known in geomctrl.NAMES if not known.endswith("Error")}
    for public in public_names(module):
        if id(getattr(module, public)) in core:  # shown where geomctrl's own names are
            continue
        lines += directive(f"geomctrl.{name}.{public}")
    inner = [x for x in getattr(module, "__all__", ()) if isinstance(getattr(module, x), types.ModuleType)]
    for part in inner:
        lines += [part, "-" * len(part), ""]
        for public in public_names(getattr(module, part)):
            lines += directive(f"geomctrl.{name}.{part}.{public}")
    return "\n".join(lines)


def public_names(module: types.ModuleType) -> list[str]:
    """What a module offers: its list, or what it defines, or what the files of its package do."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if not isinstance(getattr(module, name), types.ModuleType)]
    files = [module.__name__]
    if hasattr(module, "__path__"):
        files += [f"{module.__name__}.{file.name}" for file in pkgutil.iter_modules(module.__path__)]
    names = {name for name in dir(module) if not name.startswith("_")}
    return sorted(name for name in names if getattr(getattr(module, name), "__module__", None) in files)


def directive(path: str) -> list[str]:
    owner, _, name = path.rpartition(".")
    found = getattr(importlib.import_module(owner) if owner == "geomctrl" else _module(owner), name)
    if inspect.isclass(found):
        options = ["   :members:", "   :undoc-members:"] if issubclass(found, enum.Enum) else ["   :members:"]
        return [f".. autoclass:: {path}", *options, ""]
    return [f".. {'autofunction' if callable(found) else 'autodata'}:: {path}", ""]


def _module(path: str) -> types.ModuleType:
    return operator.attrgetter(path.removeprefix("geomctrl."))(geomctrl)
