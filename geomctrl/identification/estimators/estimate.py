"""The `Estimate` of a model's parameters with their uncertainty and robot, and the `Estimator` interface."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import instance, number
from geomctrl.identification.logs import Dataset
from geomctrl.identification.model.compressed import Compressed
from geomctrl.identification.model.regressor_model import RegressorModel
from geomctrl.mechanism import inertia
from geomctrl.robot import Robot
from geomctrl.terms.base_parameters import BaseParameters


def intervals(values: np.ndarray, std: ArrayLike, level: float, dof: float = np.inf) -> np.ndarray:
    """Confidence intervals (n, 2) by Student's t, with infinite degrees of freedom by the normal distribution."""
    from scipy.stats import norm, t  # slow to import

    level = number("level", level, "a probability between 0 and 1", lambda x: 0.0 < x < 1.0)
    half = (norm if np.isinf(dof) else t(dof)).ppf(0.5 + 0.5 * level) * np.asarray(std)
    return np.stack((values - half, values + half), -1)


class Uncertainty(NamedTuple):
    """Covariance (nb, nb) of base parameters, its degrees of freedom, and the factor (nv,) of correlated residuals."""

    covariance: np.ndarray | None = None
    dof: float = np.inf
    correlation: np.ndarray | None = None


UNKNOWN = Uncertainty()


@dataclass(frozen=True, eq=False, repr=False)
class Estimate:
    """Estimated parameters of a model, with their uncertainty.

    Attributes
    ----------
    x : ndarray, shape (size,)
        Full parameters. If only combinations are determined, this is the choice nearest to the model's own parameters,
        or the choice of the estimator's constraints and prior.
    values : ndarray, shape (nb,)
        Base parameters.
    noise : ndarray, shape (nv,)
        Root mean square residual of each joint [N m], with degrees of freedom taken into account.
    uncertainty : Uncertainty
        Covariance of `values` with its degrees of freedom; `covariance`, `dof` and `correlation` are its fields.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.identification import Dataset, RegressorModel, fit
    >>> arm, rng = gc.models.two_link(), np.random.default_rng(0)
    >>> q, v, a = rng.normal(size=(3, 200, 2))
    >>> tau = arm.inverse_dynamics(q, v, a) + 0.01 * rng.normal(size=(200, 2))
    >>> estimate = fit(RegressorModel(arm), Dataset(np.arange(200) / 100.0, q, tau, v=v, a=a))
    >>> lower, upper = estimate.intervals(level=0.95).T
    >>> bool((lower < estimate.values).all() and (estimate.values < upper).all())
    True
    """

    model: RegressorModel
    method: str
    x: np.ndarray
    training: Compressed
    weights: np.ndarray
    noise: np.ndarray
    uncertainty: Uncertainty = UNKNOWN
    condition: float = np.nan
    notes: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        physical = "physical" if self.is_physical else "not physical"
        ended = "" if self.converged else " not converged,"
        return (
            f"<Estimate of {self.model.robot.name!r} by {self.method}: {self.base.size} base parameters, {physical},"
            f"{ended} training error {100.0 * self.relative_error():.3g} %>"
        )

    @property
    def converged(self) -> bool:
        """Whether the optimiser met its tolerances; `notes` has the numbers if not. Closed-form estimators always
        converge.
        """
        return bool(self.notes.get("converged", True))

    @property
    def base(self) -> BaseParameters:
        return self.model.base

    @property
    def values(self) -> np.ndarray:
        """Base parameters (nb,)."""
        return self.base.projection @ self.x

    @property
    def covariance(self) -> np.ndarray | None:
        """Covariance (nb, nb) of `values`; None if the estimator has none (`Estimator.uncertainty` says why)."""
        return self.uncertainty.covariance

    @property
    def dof(self) -> float:
        """Degrees of freedom of the covariance, for Student's t."""
        return self.uncertainty.dof

    @property
    def correlation(self) -> np.ndarray | None:
        """Factor (nv,) by which correlated residuals increase the variance."""
        return self.uncertainty.correlation

    @property
    def std(self) -> np.ndarray | None:
        """Standard deviations of `values`; None if there is no covariance."""
        return None if self.covariance is None else np.sqrt(np.diag(self.covariance).clip(0.0))

    def intervals(self, level: float = 0.95) -> np.ndarray | None:
        """Return confidence intervals of `values` by Student's t.

        Parameters
        ----------
        level : float
            Confidence level, between 0 and 1. Default: 0.95.

        Returns
        -------
        ndarray, shape (nb, 2), or None
            Lower and upper ends; None if there is no covariance.
        """
        box = intervals(self.values, np.inf if self.std is None else self.std, level, self.dof)
        return None if self.std is None else box

    @cached_property
    def robot(self) -> Robot:
        """The model's robot with the estimated inertial parameters.

        It also has the estimated damping, friction and armature if they belong to its joints. If other rotors were
        estimated, it has no armature.
        """
        robot = self.model.robot.with_parameters(self.x[: self.model.inertial], physical=False)
        joint_of = [i for i, s in enumerate(robot.v_slices) for _ in range(s.stop - s.start)]
        armature = self.model.known_armature
        none = dict.fromkeys(("armature", *self.held_by_robot.values()), 0.0)  # at joints that follow others
        changes: list[dict[str, float]] = [
            {"armature": float(armature[s.start])} if s.start < s.stop else none for s in robot.v_slices
        ]
        for kind, key in self.held_by_robot.items():
            for i, k in zip(self.model.by_kind[kind], self.model.acts[kind]):
                changes[joint_of[k]][key] = max(float(self.x[i]), 0.0)
        return replace(robot, joints=tuple(replace(j, **c) for j, c in zip(robot.joints, changes)))

    @property
    def held_by_robot(self) -> dict[str, str]:
        """Estimated parameters other than inertial ones that `robot` holds, {"viscous": "damping", ...}.

        These are friction and rotor inertias at joints with one degree of freedom. Offsets, springs and curves are not
        included.
        """
        robot = self.model.robot
        several = any(j.dof > 1 and j.kind != "free" for j in robot.joints)
        if several or not np.array_equal(self.model.transmission, np.eye(robot.nv)):
            return {}
        held = {"viscous": "damping", "coulomb": "friction"}
        single = np.array([j.dof == 1 for j in robot.coupling.independent_joints for _ in range(j.dof)])
        return held | {"rotor": "armature"} if single[self.model.acts["rotor"]].all() else held

    @property
    def verdicts(self) -> dict[str, str | None]:
        """For each body, why no rigid body can have its parameters; None if one can, with mass in all three
        directions.
        """
        out = {}
        for name, pi in zip(self.model.robot.body_names, self.x[: self.model.inertial].reshape(-1, 10)):
            why = inertia.violation(pi)
            if why is None and not inertia.is_physical(pi, strict=True):
                why = "only just: a point mass, a rod, or nothing at all (pseudo-inertia singular)"
            out[name] = why
        return out

    @property
    def is_physical(self) -> bool:
        """Whether every body's pseudo-inertia is positive definite."""
        return all(why is None for why in self.verdicts.values())

    def predict(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Return the torques that the model predicts at N states.

        Parameters
        ----------
        q : ndarray, shape (N, nq)
            Configurations.
        v, a : ndarray, shape (N, nv)
            Velocities and accelerations.

        Returns
        -------
        ndarray, shape (N, nv)
            Joint torques [N m or N].

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> arm = gc.models.two_link()
        >>> model = gc.identification.RegressorModel(arm, viscous=False, coulomb=False, offset=False)
        >>> q, v, a = np.random.default_rng(0).normal(size=(3, 50, 2))
        >>> log = gc.identification.Dataset(np.arange(50) / 100, q, arm.inverse_dynamics(q, v, a), v=v, a=a)
        >>> estimate = gc.identification.fit(model, log)
        >>> bool(np.allclose(estimate.predict(q, v, a), log.tau))
        True
        """
        return self.model.torque(self.x, q, v, a)

    def relative_error(self, data: Dataset | Compressed | None = None) -> float:
        """Return |tau - tau_hat| / |tau| over all joints and used samples.

        Parameters
        ----------
        data : Dataset, optional
            A filtered log. Default: the training data.

        Returns
        -------
        float
            0.05 is an error of 5 %.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> arm = gc.models.two_link()
        >>> model = gc.identification.RegressorModel(arm, viscous=False, coulomb=False, offset=False)
        >>> q, v, a = np.random.default_rng(0).normal(size=(3, 50, 2))
        >>> log = gc.identification.Dataset(np.arange(50) / 100, q, arm.inverse_dynamics(q, v, a), v=v, a=a)
        >>> estimate = gc.identification.fit(model, log)
        >>> estimate.relative_error() < 1e-9
        True
        """
        if not isinstance(data, Compressed):
            data = self.training if data is None else self.model.compress(instance("data", data, Dataset, "a Dataset"))
        return data.relative_error(self.x)


OPTION_HELP = {  # of the estimators' options, for the docstring of `fit` and for the command line
    "iterations": "Largest number of iterations.",
    "prior": "Prior parameters, (size,) or, of the bodies only, (nbodies, 10); None: the model's own.",
    "strength": "Weight of the distance from the prior, relative to a relative squared error.",
    "regularization": "Weight of the distance from the prior, relative to a relative squared error.",
    "entropic": "Weight of the log-det distance from the bodies of the prior, which must be physical.",
    "weights": 'Weights of the joints: one per joint, "noise" for the inverse of their noise, or None: equal.',
    "mass_max": "Upper bound of masses [kg], one number or one per body.",
    "mass_min": "Lower bound of masses [kg], one number or one per body.",
    "total_mass": "Known sum of all masses [kg].",
    "com_box": "Lower and upper corners (nbodies, 2, 3) [m] of the centres of mass, infinite for no bound.",
    "friction_signs": "Whether friction, rotor inertias and stiffnesses can not be negative.",
    "margin": "Least pseudo-inertia: P_i >= margin mass diag(l^2, l^2, l^2, 1).",
    "fixed": "Names of bodies whose parameters are known and equal the prior.",
}


@dataclass(frozen=True)
class Estimator:
    """An estimation method.

    Notes
    -----
    To add one, write its function and this object in a new file, and add the object to `ESTIMATORS` (in `__init__` of
    this package). `fit`, `identify`, reports and the command line then support it.

    1. `name` is the name for `fit(model, data, name)` and `--method`.
    2. `function(model, data, **options)` returns an `Estimate` whose method is `name`. data is a Dataset or, unless the
       function refuses it, the log's `Compressed` factors. All options have defaults, and a text in `OPTION_HELP`.
    3. `summary` says in a few words what it minimises or what it is for.
    4. `needs_samples`: it needs more than the triangular factors, for example the correlation of residuals.
    5. `prior_weight` is the name of the option that weighs a prior, None without a prior. An estimator with a prior
       also works for logs that do not determine all parameters, and reports compare it with unconstrained least
       squares.
    6. `physical`: every body of its estimate is physically possible.
    7. `uncertainty`: a remark on its standard deviations, or why it has none, as a clause.
    """

    name: str
    function: Callable[..., Estimate]
    summary: str
    needs_samples: bool = False
    prior_weight: str | None = None
    physical: bool = False
    uncertainty: str = ""

    @property
    def has_prior(self) -> bool:
        return self.prior_weight is not None

    @property
    def options(self) -> dict[str, Any]:
        """The options of `function` with their defaults."""
        return {p.name: p.default for p in list(signature(self.function).parameters.values())[2:]}

    @property
    def documentation(self) -> str:
        """What it minimises, and its options with their defaults, for the docstring of `fit`."""
        lines = [f'"{self.name}": {self.summary}.']
        for name, default in self.options.items():
            text = f"- `{name}` ({default!r}): {OPTION_HELP[name]}"
            lines += textwrap.wrap(text, 112, subsequent_indent="  ", break_long_words=False)
        return "\n".join([lines[0], *([""] if lines[1:] else []), *lines[1:]])
