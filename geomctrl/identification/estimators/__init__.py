"""Estimators: from a log and a model to parameters, their uncertainty, and a robot.

All but `irls` and `iv` work on the triangular factors of a log (`Compressed`), so that what they cost does not depend
on its length. `ESTIMATORS` holds them by name; `fit(model, data, method)` is the front door.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from geomctrl.arguments import instance
from geomctrl.errors import ArgumentError
from geomctrl.identification.compressed import Compressed
from geomctrl.identification.data import Dataset
from geomctrl.identification.errors import DataError
from geomctrl.identification.model import RegressorModel

from .conditioning import check, compressed, excitation
from .estimate import Estimate
from .estimator import Estimator
from .instrumental import IV, iv, period_instruments
from .least_squares import OLS, WLS, ols, wls
from .log_cholesky import MANIFOLD, manifold
from .reweighted import IRLS, irls
from .ridge_regression import RIDGE, ridge
from .semidefinite import CONSISTENT, consistent
from .total_least_squares import TLS, tls

ESTIMATORS = {e.name: e for e in (OLS, WLS, IRLS, TLS, RIDGE, IV, CONSISTENT, MANIFOLD)}

__all__ = [
    "ESTIMATORS",
    "Estimate",
    "Estimator",
    "consistent",
    "cross_validate",
    "excitation",
    "fit",
    "irls",
    "iv",
    "manifold",
    "named",
    "ols",
    "period_instruments",
    "ridge",
    "tls",
    "wls",
]


def named(method: str) -> Estimator:
    """The estimator of a name. Raises ArgumentError."""
    if not isinstance(method, str) or method not in ESTIMATORS:
        raise ArgumentError(f"method: expected one of {', '.join(ESTIMATORS)}, got {method!r:.60}")
    return ESTIMATORS[method]


def fit(model: RegressorModel, data: Dataset | Compressed, method: str = "ols", **options: Any) -> Estimate:
    """Estimate the model's parameters from a log; see the function of the method's name for its options.

    method: a name in `ESTIMATORS`: "ols", "wls", "irls", "tls", "ridge", "iv", "consistent" (semidefinite, physically
    consistent) or "manifold" (log-Cholesky, physically consistent without a semidefinite solver).
    """
    estimator = named(method)
    check(model, data)
    known = estimator.options
    for name in options:
        if name not in known:
            raise ArgumentError(f"options: {method} has no option {name!r}; known: {', '.join(known) or 'none'}")
    return estimator.function(model, data, **options)


def cross_validate(
    model: RegressorModel, folds: Sequence[Dataset | Compressed], method: str = "ols", **options: Any
) -> float:
    """|tau - tau_hat| / |tau| over all folds, each predicted from the others; folds should be stretches of time."""
    instance("model", model, RegressorModel, "a RegressorModel")
    for fold in instance("folds", folds, Sequence, "parts of a log"):
        instance("folds", fold, (Dataset, Compressed), "parts of a log")
    if len(folds) < 2:
        raise DataError(f"folds: expected at least two parts of the log, got {len(folds)}")
    parts = [compressed(model, f) for f in folds]
    error = size = 0.0
    for k, held in enumerate(parts):
        rest = [p for i, p in enumerate(parts) if i != k]
        x = fit(model, sum(rest[1:], start=rest[0]), method, **options).x
        error += float((held.residuals(x) ** 2).sum())
        size += float((held.norms**2).sum())
    return float(np.sqrt(error / size))
