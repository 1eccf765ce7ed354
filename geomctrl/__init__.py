"""geomctrl: write a control law with its Lyapunov function, simulate the closed loop on a robot, and check the proof.

The tables below list the public names and the modules that define them. A name is imported when it is first used, so
`import geomctrl` itself loads nothing else. `__init__.pyi` repeats the list for type checkers; a test compares the two.
"""

import importlib
import os
import sys
from importlib.machinery import ModuleSpec

_FOLDER = os.path.dirname(__file__)
if not os.path.isdir(os.path.join(_FOLDER, "models")):  # the repository has models/ and controllers/ next to geomctrl/
    __path__.append(os.path.dirname(_FOLDER))

__version__ = "0.1.0"  # pyproject.toml reads the version from here

NAMES = {
    "Body": "mechanism.building",
    "Coupling": "mechanism.coupling",
    "Frame": "mechanism.origin",
    "Joint": "mechanism.joint",
    "Robot": "robot",
    "Command": "control.contracts",
    "Controller": "control.contracts",
    "Desired": "control.contracts",
    "Lyapunov": "control.contracts",
    "Reference": "control.contracts",
    "Contact": "control.contact",
    "HalfSpace": "control.contact",
    "Friction": "control.friction.coulomb",
    "JointStops": "control.stops",
    "Plant": "control.plant",
    "SimulationOptions": "control.options",
    "SweepExecution": "control.sweeping.executors",
    "Wrench": "control.wrenches",
    "Run": "control.run",
    "LiveView": "viewing.live",
    "compile": "control.compiled.law",
    "replay": "control.sweeping.sweep",
    "simulate": "control.loop",
    "simulate_many": "control.many",
    "sweep": "control.sweeping.sweep",
    "tune": "control.hand_tuning.tune",
    "rollout": "motion.rollout",
    "se3": "lie.groups",
    "so3": "lie.groups",
    "load_mjcf": "models.io.mjcf",
    "load_urdf": "models.io.urdf",
    "ArgumentError": "errors",
    "GeomctrlError": "errors",
    "InertiaError": "errors",
    "IntegrationError": "errors",
    "ModelError": "errors",
    "NameNotFoundError": "errors",
    "SimulationError": "errors",
    "SweepError": "errors",
    "WriteError": "errors",
}
MODULES = {
    "actuators": "control.actuators",
    "control": "control",
    "controllers": "controllers",
    "derivatives": "terms.derivatives",
    "errors": "errors",
    "friction": "control.friction",
    "groups": "lie.groups",
    "identification": "identification",
    "inertia": "mechanism.inertia",
    "integrators": "integrators",
    "interop": "interop",
    "measures": "control.measures",
    "models": "models",
    "monitors": "control.monitors",
    "operational_space": "terms.operational_space",
    "papers": "papers",
    "references": "control.references",
    "sensors": "control.sensors",
    "testing": "testing",
}

__all__ = sorted([*NAMES, *MODULES])  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str):
    if name in NAMES:
        value = getattr(importlib.import_module(f"{__name__}.{NAMES[name]}"), name)
    elif name in MODULES:
        value = importlib.import_module(f"{__name__}.{MODULES[name]}")
    elif name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    else:
        from geomctrl.other_names import UnknownName

        raise UnknownName(__name__, name, __all__)
    globals()[name] = value
    return value


class _PublicModules:
    """Import hook: `geomctrl.references`, and what is below it, are the modules that `MODULES` names."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        package, public, *below = (*name.split("."), "")[: max(2, name.count(".") + 1)]
        place = MODULES.get(public, public) if package == __name__ else public
        return None if place == public else ModuleSpec(name, self, loader_state=".".join((package, place, *below)))  # pyright: ignore

    def create_module(self, spec: ModuleSpec):
        module = importlib.import_module(spec.loader_state)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = module.__spec__.loader_state  # the import system has replaced it; the module has run already

    def get_code(self, name: str) -> None:
        """None: `python -m` does not run these modules."""


sys.meta_path.insert(0, _PublicModules())  # pyright: ignore  # first: a public package has the __path__ of its files


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__file__", "__name__", "__path__", "__version__"]
