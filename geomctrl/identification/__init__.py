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
    "BaseParameters": "geomctrl.terms.base_parameters",
    "Column": "columns",
    "Compressed": "compressed",
    "ControllerLoop": "simulated",
    "Curve": "columns",
    "CurveFit": "friction",
    "Cutoffs": "cutoffs",
    "DataError": "errors",
    "Dataset": "data",
    "Doubt": "doubts",
    "DriveGains": "drives",
    "ESTIMATORS": "estimators",
    "Estimate": "estimators",
    "Estimator": "estimators",
    "ExcitationError": "errors",
    "Filtering": "settings",
    "IdentificationReport": "report",
    "JointMapping": "data",
    "LoadReport": "loads",
    "OutputErrorFit": "simulated",
    "PriorChoice": "estimators",
    "Reading": "settings",
    "RecursiveLeastSquares": "online",
    "RegressorModel": "model",
    "SampledReference": "simulated",
    "ServoLoop": "simulated",
    "SolverError": "errors",
    "Validation": "settings",
    "Verdict": "verdict",
    "base_parameters": "geomctrl.terms.base_parameters",
    "choose_cutoffs": "cutoffs",
    "choose_prior": "estimators",
    "cloe": "simulated",
    "consistent": "estimators",
    "cross_validate": "estimators",
    "didim": "simulated",
    "drive_gains": "drives",
    "exact_base_parameters": "geomctrl.terms.base_parameters",
    "excitation": "estimators",
    "fit": "estimators",
    "fit_curves": "friction",
    "identify": "pipeline",
    "identify_load": "loads",
    "irls": "estimators",
    "load_columns": "formulas",
    "ols": "estimators",
    "output_error": "simulated",
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
