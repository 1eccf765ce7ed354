"""Identification of robots from logs: data, models, base parameters, estimators, excitation, reports.

    data = Dataset.from_npz("log.npz").filtered(cutoff=10.0)
    model = RegressorModel(robot, rotor=True)
    result = fit(model, data, "consistent", mass_max=30.0)  # result.robot, .is_physical, .relative_error()
    report = identify(robot, "log.npz", filtering=Filtering(cutoff=10.0))  # all at once: report.text(), .save("out")

Names are loaded when they are asked for, and nothing here imports cvxpy or matplotlib before it is used. `__init__.pyi`
says the same to type checkers; a test compares the two.
"""

import importlib
from typing import Any

NAMES = {
    "Assessment": "assessment",
    "BaseParameters": "geomctrl.terms.base_parameters",
    "Column": "model.columns",
    "Compressed": "model.compressed",
    "ControllerLoop": "output_error",
    "Curve": "model.columns",
    "CurveFit": "model.friction_curves",
    "Cutoffs": "estimators.cutoffs",
    "DataError": "errors",
    "Dataset": "logs",
    "DriveGains": "drives",
    "ESTIMATORS": "estimators",
    "Estimate": "estimators",
    "Estimator": "estimators",
    "ExcitationError": "errors",
    "Filtering": "settings",
    "Finding": "findings",
    "FrictionFit": "model.friction_curves",
    "JointMapping": "logs",
    "LoadReport": "loads",
    "OutputErrorFit": "output_error",
    "PriorChoice": "estimators",
    "Reading": "logs",
    "RecursiveLeastSquares": "online",
    "RegressorModel": "model.regressor_model",
    "Result": "report",
    "SampledReference": "output_error",
    "ServoLoop": "output_error",
    "Settings": "settings",
    "SolverError": "errors",
    "Validation": "settings",
    "base_parameters": "geomctrl.terms.base_parameters",
    "choose_cutoffs": "estimators.cutoffs",
    "choose_prior": "estimators",
    "cloe": "output_error",
    "closed_loop_fit": "output_error",
    "consistent": "estimators",
    "cross_validate": "estimators",
    "didim": "output_error",
    "drive_gains": "drives",
    "exact_base_parameters": "geomctrl.terms.base_parameters",
    "fit": "estimators",
    "fit_curves": "model.friction_curves",
    "fit_friction": "model.friction_curves",
    "friction_columns": "model.friction_curves",
    "friction_torque": "model.friction_curves",
    "identify": "pipeline",
    "identify_load": "loads",
    "irls": "estimators",
    "load_columns": "model.columns",
    "ols": "estimators",
    "regressor_condition": "estimators",
    "ridge": "estimators",
    "wls": "estimators",
}

__all__ = sorted(NAMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = NAMES[name] if NAMES[name].startswith("geomctrl.") else f"{__name__}.{NAMES[name]}"
    value = globals()[name] = getattr(importlib.import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
