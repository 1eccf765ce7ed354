"""Estimators: from a log and a model to parameters, their uncertainty, and a robot.

All but `irls` work on the triangular factors of a log (`Compressed`), so that what they cost does not depend
on its length. `ESTIMATORS` holds them by name; `fit(model, data, method)` is the front door.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from geomctrl.arguments import instance
from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import DataError
from geomctrl.identification.logs import Dataset
from geomctrl.identification.model.compressed import Compressed
from geomctrl.identification.model.regressor_model import RegressorModel

from .choosing import PriorChoice, chosen, is_auto
from .conditioning import check, compressed, regressor_condition
from .estimate import Estimate, Estimator
from .folds import FOLDS
from .least_squares import IRLS, OLS, RIDGE, WLS, irls, ols, ridge, wls
from .semidefinite import CONSISTENT, consistent

ESTIMATORS = {e.name: e for e in (OLS, WLS, IRLS, RIDGE, CONSISTENT)}

__all__ = [
    "ESTIMATORS",
    "Estimate",
    "Estimator",
    "PriorChoice",
    "choose_prior",
    "consistent",
    "cross_validate",
    "fit",
    "irls",
    "named",
    "ols",
    "regressor_condition",
    "ridge",
    "wls",
]


def named(method: str) -> Estimator:
    """The estimator of a name. Raises ArgumentError."""
    if not isinstance(method, str) or method not in ESTIMATORS:
        raise ArgumentError(f"method: expected one of {', '.join(ESTIMATORS)}, got {method!r:.60}")
    return ESTIMATORS[method]


def fit(model: RegressorModel, data: Dataset | Compressed, method: str = "ols", **options: Any) -> Estimate:
    """Estimate the parameters of a model from a log.

    Parameters
    ----------
    model : RegressorModel
    data : Dataset or compressed log
        A filtered log, or what `model.compress` made of one. "irls", and options that are "auto", need the samples.
    method : str, default "ols"
        A name in `ESTIMATORS`: "ols", "wls", "irls", "ridge" or "consistent".
    **options
        Options of the method, see Notes. The weight of a prior, `entropic` and `weights` may be "auto", which
        chooses them by cross-validation (`choose_prior`).

    Returns
    -------
    Estimate
        The full parameters `x`, base parameters `values` with their covariance, and the identified `robot`.

    Raises
    ------
    DataError, ExcitationError
        The log can not be used, or does not determine what is asked for.
    SolverError
        The semidefinite program has no solution.
    ArgumentError

    Notes
    -----
    "ols": ordinary least squares; no options.

    "wls": least squares with each joint weighted by one over its own noise, which is estimated in turn (Gautier 1997).
    `iterations` (5).

    "irls": as "wls", with samples weighted by how far off they are. `loss` ("huber" or "bisquare"), `threshold` in
    robust standard deviations (1.345, 4.685), `iterations` (50).

    "ridge": minimises |w (Y x - tau)|^2 / |w tau|^2 + strength |S^-1 (x - prior)|^2 over all parameters, S being
    each parameter's natural unit. `prior` (size,) (the model's own parameters), `strength` (1e-3), `weights` (nv,).

    "consistent": least squares under a positive definite pseudo-inertia P_i of every body, by a semidefinite program
    (cvxpy): minimises the cost of "ridge" with `regularization` (1e-6) for the strength, plus `entropic` (0)
    sum_i D(P_i || P0_i) / nbodies. Its options are

    - `mass_max`, `mass_min` [kg], a number or one a body; `total_mass` [kg];
    - `com_box` (nbodies, 2, 3) [m], lower and upper corner of each centre of mass, infinite for no bound;
      `com_ellipsoid`, per body None or (centre, radii) [m] in axes of the body;
    - `prior` (size,) or, of the bodies alone, (nbodies, 10); bodies must be physical for `entropic`;
    - `friction_signs` (True): friction, rotor inertias and stiffnesses are not negative; `margin` (1e-6): P_i >=
      margin mass diag(l^2, l^2, l^2, 1);
    - `fixed`: names of bodies whose parameters are known and stay the prior's;
    - `weights`: None, "noise" (one over each joint's noise) or one a joint; `solver` ("CLARABEL"), `solver_options`.

    It has no covariance: where bounds are active the errors are one-sided. Intervals of the unconstrained estimate say
    what the log determines.
    """
    estimator = named(method)
    check(model, data)
    _require_options(estimator, options)
    if not any(map(is_auto, options.values())):
        return estimator.function(model, data, **options)
    choice = choose_prior(model, data, method, **options)  # type: ignore[arg-type]
    estimate = estimator.function(model, data, **choice.options)
    return replace(estimate, notes={**estimate.notes, **choice.notes})


def choose_prior(
    model: RegressorModel,
    data: Dataset,
    method: str = "consistent",
    *,
    folds: int = FOLDS,
    guard: float | None = None,
    period: float | None = None,
    **options: Any,
) -> PriorChoice:
    """What options of `fit(model, data, method, ...)` that are "auto" should be, by cross-validation (`choosing`).

        choice = choose_prior(model, data)
        estimate = fit(model, data, "consistent", **choice.options)

    options: as `fit` takes them; "auto" may be the weight of the prior ("regularization", of ridge "strength"),
    "entropic" and "weights". With none of them, all that the method has are. Bodies of the prior that can not exist or
    are placeholders are replaced by geometric ones (`prior_problem`).
    folds: how many, with as many used samples each. guard [s] between them: default one period of the low-pass.
    period [s] of a motion that repeats: default looked for; folds are then stretches of its phase.
    Raises ArgumentError, DataError, SolverError.
    """
    estimator = named(method)
    instance("model", model, RegressorModel, "a RegressorModel")
    instance("data", data, Dataset, "a Dataset, as folds are made of samples,")
    if estimator.prior_weight is None:
        having = ", ".join(e.name for e in ESTIMATORS.values() if e.has_prior)
        raise ArgumentError(f"method: expected one with a prior ({having}), got {method!r}")
    _require_options(estimator, options)
    asked = options or dict.fromkeys(("entropic", estimator.prior_weight, "weights"), "auto")
    estimator_options = {name: value for name, value in asked.items() if name in estimator.options}
    return chosen(model, data, estimator, estimator_options, folds, guard, data.period() if period is None else period)


def _require_options(estimator: Estimator, options: Mapping[str, Any]) -> None:
    names = estimator.options
    for name in options:
        if name not in names:
            having = ", ".join(names) or "none"
            raise ArgumentError(f"options: {estimator.name} has no option {name!r}; known: {having}")


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
