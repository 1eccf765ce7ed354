"""Identify robot parameters from logs: data, models, base parameters, estimators, excitation, reports.

    data = Dataset.read("log.npz").filtered(cutoff=10.0)
    model = RegressorModel(robot, rotor=True)
    result = fit(model, data, "consistent", mass_max=30.0)  # result.robot, .is_physical, .relative_error()
    report = identify(robot, "log.npz", filtering=Filtering(cutoff=10.0))  # all steps: report.text(), .save("out")

A name is imported when it is first used, and cvxpy and matplotlib are imported only by the functions that need them.
`__init__.pyi` repeats the list of names for type checkers; a test compares the two.
"""

import importlib
from typing import Any

from geomctrl.other_names import UnknownName

NAMES = {
    "Column": "model.columns",
    "ControllerLoop": "output_error",
    "Curve": "model.columns",
    "DataError": "errors",
    "Dataset": "logs",
    "ESTIMATORS": "estimators",
    "Estimate": "estimators",
    "ExcitationError": "errors",
    "Filtering": "settings",
    "JointMapping": "logs",
    "KnownLoad": "drives",
    "Reading": "logs",
    "RecursiveLeastSquares": "online",
    "RegressorModel": "model.regressor_model",
    "Result": "report",
    "SampledReference": "output_error",
    "ServoLoop": "output_error",
    "Settings": "settings",
    "SolverError": "errors",
    "Validation": "settings",
    "WristSensor": "loads",
    "base_parameters": "geomctrl.terms.base_parameters",
    "choose_prior": "estimators",
    "closed_loop_fit": "output_error",
    "drive_gains": "drives",
    "fit": "estimators",
    "fit_curves": "model.friction_curves",
    "fit_friction": "model.friction_curves",
    "identify": "pipeline",
    "identify_load": "loads",
}

__all__ = sorted(NAMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise UnknownName(__name__, name, __all__)
    home = NAMES[name] if NAMES[name].startswith("geomctrl.") else f"{__name__}.{NAMES[name]}"
    value = globals()[name] = getattr(importlib.import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
