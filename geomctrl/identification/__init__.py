"""Identification of robots from logs: data, models, base parameters, estimators, excitation, reports.

    data = Dataset.from_npz("log.npz").filtered(cutoff=10.0)
    model = RegressorModel(robot, rotor=True)
    result = fit(model, data, "consistent", mass_max=30.0)  # result.robot, .is_physical, .relative_error()
    report = identify(robot, "log.npz")  # all of it at once: print(report.text()), report.save("out")

Nothing here imports cvxpy or matplotlib before it is used.
"""

from .base_parameters import BaseParameters, base_parameters, exact_base_parameters
from .consistent import consistent, manifold
from .dataset import Dataset
from .errors import DataError, ExcitationError, SolverError
from .estimators import Estimate, cross_validate, excitation, fit, irls, iv, ols, period_instruments, ridge, tls, wls
from .export import load_extra, load_model, save_model, save_urdf
from .friction import CurveFit, fit_curves
from .model import Column, Compressed, Curve, RegressorModel
from .pipeline import identify
from .reading import JointMapping
from .report import IdentificationReport

__all__ = [
    "BaseParameters",
    "Column",
    "Compressed",
    "Curve",
    "CurveFit",
    "DataError",
    "Dataset",
    "Estimate",
    "ExcitationError",
    "IdentificationReport",
    "JointMapping",
    "RegressorModel",
    "SolverError",
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
