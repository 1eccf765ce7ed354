"""Estimators: from a log and a model to parameters, their uncertainty, and a robot.

All estimators work on the triangular factors of a log (`Compressed`), so their cost does not depend on its length.
`ESTIMATORS` lists them by name; call `fit(model, data, method)`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from geomctrl.arguments import instance, shown, without_overflow_warnings
from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import SolverError
from geomctrl.identification.logs import Dataset
from geomctrl.identification.model.compressed import Compressed
from geomctrl.identification.model.regressor_model import RegressorModel

from .choosing import PriorChoice, chosen, is_auto
from .estimate import Estimate as Estimate
from .estimate import Estimator
from .folds import FOLDS
from .least_squares import OLS, RIDGE, WLS
from .semidefinite import CONSISTENT

ESTIMATORS = {e.name: e for e in (OLS, WLS, RIDGE, CONSISTENT)}


def named(method: str) -> Estimator:
    """Return the estimator with this name. Raises ArgumentError."""
    if not isinstance(method, str) or str(method) not in ESTIMATORS:
        raise ArgumentError(f"method: expected one of {', '.join(ESTIMATORS)}, got {shown(method)}")
    return ESTIMATORS[str(method)]


@without_overflow_warnings
def fit(model: RegressorModel, data: Dataset | Compressed, method: str = "ols", **options: Any) -> Estimate:
    """Estimate the parameters of a model from a log.

    Parameters
    ----------
    model : RegressorModel
    data : Dataset or compressed log
        A filtered log, or the result of `model.compress`. Options that are "auto" need the samples.
    method : str, default "ols"
        A name in `ESTIMATORS`: "ols", "wls", "ridge" or "consistent".
    **options
        Options of the method, see Notes. The weight of a prior, `entropic` and `weights` may be "auto": those
        that predict samples left out of the fit best (`choose_prior`).

    Returns
    -------
    Estimate
        The full parameters `x`, base parameters `values` with their covariance, and the identified `robot`.

    Raises
    ------
    DataError, ExcitationError
        The log can not be used, or does not determine the parameters.
    SolverError
        The semidefinite program has no solution.
    ArgumentError

    Notes
    -----
    "wls" estimates the noise of the joints iteratively (Gautier 1997). "ridge" minimises |w (Y x - tau)|^2 /
    |w tau|^2 + strength |S^-1 (x - prior)|^2 over all parameters, S being each parameter's natural unit. "consistent"
    minimises the same, with `regularization` for the strength, plus entropic sum_i D(P_i || P0_i) / nbodies, under a
    positive definite pseudo-inertia P_i of every body, by a semidefinite program (cvxpy).

    {options}

    "consistent" has no covariance, because errors are one-sided where bounds are active. Intervals of the unconstrained
    estimate show what the log determines.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.identification import Dataset, RegressorModel, fit
    >>> model, rng = RegressorModel(gc.models.two_link()), np.random.default_rng(0)
    >>> q, v, a = rng.normal(size=(3, 200, 2))
    >>> log = Dataset(np.arange(200) / 100.0, q, gc.models.two_link().inverse_dynamics(q, v, a), v=v, a=a)
    >>> estimate = fit(model, log)
    >>> model.size, estimate.values.shape  # only 12 combinations of the parameters have an effect
    (26, (12,))
    """
    estimator = named(method)
    instance("model", model, RegressorModel, "a RegressorModel")
    instance("data", data, (Dataset, Compressed), "a Dataset or a Compressed")
    _require_options(estimator, options)
    if not any(map(is_auto, options.values())):
        return _solved(estimator, model, data, options)
    choice = choose_prior(model, data, method, **options)  # type: ignore[arg-type]
    estimate = _solved(estimator, model, data, choice.options)
    return replace(estimate, notes={**estimate.notes, **choice.notes})


def _solved(estimator: Estimator, model: RegressorModel, data: Any, options: dict[str, Any]) -> Estimate:
    try:
        return estimator.function(model, data, **options)
    except np.linalg.LinAlgError as error:
        raise SolverError(
            f"{', '.join(options) or 'data'}: expected numbers of usual sizes, got some for which the"
            f" equations have no solution ({error})"
        ) from error


if fit.__doc__:  # python -OO leaves it out
    fit.__doc__ = fit.__doc__.replace(
        "    {options}\n", textwrap.indent("\n\n".join(e.documentation for e in ESTIMATORS.values()), "    ") + "\n"
    )


def choose_prior(
    model: RegressorModel,
    data: Dataset,
    method: str = "consistent",
    *,
    period: float | None = None,
    **options: Any,
) -> PriorChoice:
    """Choose the weights of a prior and of joints by cross-validation.

    Parameters
    ----------
    model : RegressorModel
    data : Dataset
        A filtered log.
    method : str
        An estimator with a prior. Default "consistent".
    period : float, optional
        Period of a motion that repeats [s]: the parts held back are then intervals of its phase. Default: detected.
    **options
        Options of `fit`. "auto" can be the weight of the prior ("regularization", for ridge "strength"), "entropic" and
        "weights". If none is "auto", all that the method has are chosen.

    Returns
    -------
    PriorChoice
        Its `options` are for `fit`.

    Raises
    ------
    ArgumentError, DataError, SolverError

    Notes
    -----
    Bodies of the prior that are impossible or placeholders are replaced by bodies of uniform density (`prior_problem`).
    The module `choosing` describes the method.

    Examples
    --------
    A log is needed for it::

        choice = choose_prior(model, data)
        estimate = fit(model, data, "consistent", **choice.options)
    """
    estimator = named(method)
    instance("model", model, RegressorModel, "a RegressorModel")
    instance("data", data, Dataset, "a Dataset: the choice needs samples")
    if estimator.prior_weight is None:
        having = ", ".join(e.name for e in ESTIMATORS.values() if e.has_prior)
        raise ArgumentError(f"method: expected one with a prior ({having}), got {method!r}")
    _require_options(estimator, options)
    asked = options or dict.fromkeys(("entropic", estimator.prior_weight, "weights"), "auto")
    estimator_options = {name: value for name, value in asked.items() if name in estimator.options}
    return chosen(model, data, estimator, estimator_options, FOLDS, None, period)


def _require_options(estimator: Estimator, options: Mapping[str, Any]) -> None:
    names = estimator.options
    for name in options:
        if name not in names:
            having = ", ".join(names) or "none"
            raise ArgumentError(f"options: {estimator.name} has no option {name!r}; known: {having}")
