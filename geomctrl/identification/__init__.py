"""Identification of robots from logs: data, models, base parameters, estimators, excitation, reports.

    data = Dataset.from_npz("log.npz").filtered(cutoff=10.0)
    model = RegressorModel(robot, rotor=True)
    result = fit(model, data, "consistent", mass_max=30.0)  # result.robot, .is_physical, .relative_error()
    report = identify(robot, "log.npz", filtering=Filtering(cutoff=10.0))  # all at once: report.text(), .save("out")

Nothing here imports cvxpy or matplotlib before it is used.
"""

from .base_parameters import BaseParameters, base_parameters, exact_base_parameters
from .columns import Column, Curve
from .compressed import Compressed
from .data import Dataset, JointMapping
from .errors import DataError, ExcitationError, SolverError
from .estimators import (
    ESTIMATORS,
    Estimate,
    Estimator,
    consistent,
    cross_validate,
    excitation,
    fit,
    irls,
    iv,
    manifold,
    ols,
    period_instruments,
    ridge,
    tls,
    wls,
)
from .export import load_extra, load_model, save_model, save_urdf
from .friction import CurveFit, fit_curves
from .model import RegressorModel
from .pipeline import identify
from .report import IdentificationReport
from .settings import Filtering, Reading, Validation

__all__ = [
    "ESTIMATORS",
    "BaseParameters",
    "Column",
    "Compressed",
    "Curve",
    "CurveFit",
    "DataError",
    "Dataset",
    "Estimate",
    "Estimator",
    "ExcitationError",
    "Filtering",
    "IdentificationReport",
    "JointMapping",
    "Reading",
    "RegressorModel",
    "SolverError",
    "Validation",
    "base_parameters",
    "consistent",
    "cross_validate",
    "exact_base_parameters",
    "excitation",
    "fit",
    "fit_curves",
    "identify",
    "irls",
    "iv",
    "load_extra",
    "load_model",
    "manifold",
    "ols",
    "period_instruments",
    "ridge",
    "save_model",
    "save_urdf",
    "tls",
    "wls",
]
