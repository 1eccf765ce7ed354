"""The physically consistent estimator by a semidefinite program.

A body's pseudo-inertia P_i is positive semidefinite if and only if a rigid body has it (Wensing, Kim, Slotine 2018),
and P_i is linear in the parameters. The log enters through its triangular factors only, so that the program's size does
not depend on the number of samples.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, flag, listed, number, one_or_each, shown
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.identification.errors import DataError, SolverError
from geomctrl.identification.logs import Dataset
from geomctrl.identification.model.compressed import Compressed
from geomctrl.identification.model.regressor_model import RegressorModel
from geomctrl.mechanism import inertia
from geomctrl.robot import Robot

from .conditioning import compressed, natural_scale, regressor_condition
from .estimate import Estimate, Estimator
from .least_squares import finish, prior_of, weights_of

SOLVER, SOLVER_OPTIONS = "CLARABEL", {"tol_gap_rel": 1e-9, "tol_gap_abs": 1e-12, "tol_feas": 1e-10}
MAX_NUMBER = 1e15  # in natural units, in which |b|^2 is 1: larger numbers would lose the log in rounding


@dataclass(frozen=True)
class Penalties:
    """|A y - b|^2 + regularization |y - y0|^2 + entropic sum_i D(P_i || P0_i) / nbodies, P_i >= margin 1 in units
    natural to the robot; friction_signs: friction, rotor inertias and stiffnesses not negative.
    """

    regularization: float
    entropic: float
    margin: float
    friction_signs: bool

    def __post_init__(self):
        flag("friction_signs", self.friction_signs)
        for name in ("regularization", "entropic", "margin"):
            x = number(name, getattr(self, name), "a number >= 0", lambda x: x >= 0.0)
            if x > MAX_NUMBER:
                raise ArgumentError(
                    f"{name}: expected at most {MAX_NUMBER:g}; a larger weight makes the log negligible; got {x!r}"
                )
            object.__setattr__(self, name, x)


@dataclass(frozen=True, eq=False)
class Scaled:
    """A log A y = b with x = scale y, so that every entry of y is of order one and |b| is 1; `prior`: x0."""

    model: RegressorModel
    weights: np.ndarray
    prior: np.ndarray
    scale: np.ndarray
    A: np.ndarray
    b: np.ndarray

    @property
    def mass(self) -> float:
        return self.scale[0]

    @property
    def length(self) -> float:
        return self.scale[1] / self.scale[0]

    def prior_bodies(self) -> np.ndarray:
        """The bodies' parameters (nbodies, 10) in x0. Raises SolverError unless they are strictly physical."""
        bodies = self.prior[: self.model.inertial].reshape(-1, 10)
        good = inertia.is_physical(bodies, strict=True)
        if not good.all():
            raise SolverError(
                f"prior: an entropic distance needs strictly physical bodies;"
                f" {self.model.robot.body_names[int(np.argmin(good))]!r} is not"
            )
        return bodies


def in_natural_units(
    model: RegressorModel, c: Compressed, weights: ArrayLike | str | None, prior: ArrayLike | None
) -> Scaled:
    w, x0 = weights_of(model, c, weights), prior_of(model, prior)
    with np.errstate(all="ignore"):  # the error below names what overflowed
        A, b = c.system(w)
        scale, size = natural_scale(model, A, b), np.linalg.norm(b)
        A, b = A * scale / size, b / size
    if not (0.0 < size < np.inf and np.isfinite(A).all()):
        raise DataError(
            f"weighted torques: expected a norm above 0 and finite, got {size:g}: see `weights` and the log"
        )
    return Scaled(model, w, x0, scale, A, b)


def consistent(
    model: RegressorModel,
    data: Dataset | Compressed,
    *,
    mass_max: ArrayLike | None = None,
    mass_min: ArrayLike | None = None,
    total_mass: float | None = None,
    com_box: ArrayLike | None = None,
    prior: ArrayLike | None = None,
    entropic: float = 0.0,
    regularization: float = 1e-6,
    friction_signs: bool = True,
    margin: float = 1e-6,
    fixed: Sequence[str] = (),
    weights: ArrayLike | str | None = None,
) -> Estimate:
    """Least squares under P_i > 0 for every body by a semidefinite program; `fit` has the objective."""
    penalties = Penalties(regularization, entropic, margin, friction_signs)
    c = compressed(model, data)
    problem = in_natural_units(model, c, weights, prior)
    limits = BodyBounds.of(model.robot, mass_min, mass_max, total_mass, com_box, fixed)
    x, notes = _solved(problem, penalties, limits)
    notes |= {"margin": margin, "entropic": entropic, "regularization": regularization}
    w = problem.weights
    out = finish(model, c, x, w, "consistent", condition=regressor_condition(model, c, w)[0], notes=notes)
    _require_physical(out, limits, penalties)
    return out


CONSISTENT = Estimator(
    "consistent",
    consistent,
    "every link a body that can exist, by a semidefinite program",
    prior_weight="regularization",
    physical=True,
    uncertainty="constraints and priors bias it",
)


# --- pieces --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BodyBounds:
    """Bounds of masses (nbodies,) [kg] and centres of mass (nbodies, 2, 3) [m], infinite for none; the sum of all
    masses; numbers of the fixed bodies, which have no bounds.
    """

    low: np.ndarray
    high: np.ndarray
    boxes: np.ndarray
    total: float | None
    fixed: list[int]

    @classmethod
    def of(
        cls,
        robot: Robot,
        mass_min: ArrayLike | None = None,
        mass_max: ArrayLike | None = None,
        total_mass: float | None = None,
        com_box: ArrayLike | None = None,
        fixed: Sequence[str] = (),
    ) -> BodyBounds:
        """Options of `consistent`, checked. Raises ArgumentError, and SolverError if nothing satisfies them."""
        if total_mass is not None:
            total_mass = number("total_mass", total_mass, "a number >= 0", lambda x: x >= 0.0)
        low, high = _mass_bounds(robot, mass_min, mass_max)
        numbers = _numbers_of(robot, fixed)
        out = cls(low, high, _boxes(robot, com_box), total_mass, numbers)
        total = low.sum() if total_mass is None or numbers else total_mass  # fixed bodies keep the prior's masses
        if not low.sum() * (1.0 - 1e-9) <= total <= high.sum() * (1.0 + 1e-9):
            _explain("infeasible", out)
        return out

    @classmethod
    def of_options(cls, robot: Robot, options: Mapping[str, Any]) -> BodyBounds:
        """The same from all options of an estimator."""
        names = ("mass_min", "mass_max", "total_mass", "com_box", "fixed")
        return cls.of(robot, **{name: options[name] for name in names if name in options})

    @property
    def free(self) -> np.ndarray:
        """(nbodies,): whether a body is not fixed."""
        return ~np.isin(np.arange(len(self.low)), self.fixed)

    def linear(self, scaled: Scaled, signs: bool, slack: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """C (rows, size), d with C y <= d: bounds widened by `slack`, and friction >= 0 if `signs`."""
        model, unit = scaled.model, np.eye(scaled.model.size)
        rows = list(-unit[model.positive]) if signs else []
        d = [0.0] * len(rows)
        bounds = zip(self.low / scaled.mass, self.high / scaled.mass, self.boxes / scaled.length)
        for i, (low, high, box) in enumerate(bounds):
            if i in self.fixed:
                continue
            mass = unit[10 * i]
            if high < MAX_NUMBER:
                rows, d = [*rows, mass], [*d, high + slack]
            if low > 0.0:
                rows, d = [*rows, -mass], [*d, slack - low]
            for moment, lower, upper in zip(unit[10 * i + 1 : 10 * i + 4], *box):
                if upper < MAX_NUMBER:
                    rows, d = [*rows, moment - upper * mass], [*d, slack]
                if lower > -MAX_NUMBER:
                    rows, d = [*rows, lower * mass - moment], [*d, slack]
        return np.array(rows).reshape(len(rows), model.size), np.array(d)

    def __str__(self) -> str:
        limits = [f"masses between {self.low.min():g} and {self.high.max():g} kg"]
        limits += [f"total mass {self.total:g} kg"] if self.total is not None else []
        return ", ".join(limits + ["com_box"] * bool(np.isfinite(self.boxes).any()))


def _solved(problem: Scaled, penalties: Penalties, limits: BodyBounds) -> tuple[np.ndarray, dict]:
    """(x, notes) of the program's solution."""
    import cvxpy as cp

    model = problem.model
    y = cp.Variable(model.size)
    links = [y[10 * i : 10 * i + 10] for i in range(model.robot.nbodies)]
    map_P = inertia.pseudo(np.eye(10)).reshape(10, 16).T  # P in units of mass and length
    pseudo = [cp.reshape(map_P @ link, (4, 4), order="C") for link in links]
    constraints: list[Any] = [P >> penalties.margin * np.eye(4) for i, P in enumerate(pseudo) if i not in limits.fixed]
    constraints += [links[i] == problem.prior[10 * i : 10 * i + 10] / problem.scale[:10] for i in limits.fixed]
    C, d = limits.linear(problem, penalties.friction_signs)
    constraints += [C @ y <= d] if len(d) else []
    if limits.total is not None:
        constraints.append(cp.sum([link[0] for link in links]) == limits.total / problem.mass)
    program = cp.Problem(cp.Minimize(_objective(cp, problem, penalties, y, pseudo)), constraints)
    status = _run(program)
    if status not in ("optimal", "optimal_inaccurate"):
        _explain(status, limits)
    x = problem.scale * y.value
    if penalties.friction_signs:
        x[model.positive] = np.maximum(x[model.positive], 0.0)  # remove the solver's rounding
    fixed, prior = limits.fixed, problem.prior[: model.inertial].reshape(-1, 10)
    x[: model.inertial].reshape(-1, 10)[fixed] = prior[fixed]
    return x, {
        "status": status,
        "converged": status == "optimal",
        "solver": SOLVER,
        "seconds": program.solver_stats.solve_time,
    }


def _objective(cp, problem, penalties, y, pseudo):
    objective = cp.sum_squares(problem.A @ y - problem.b)
    if penalties.regularization:
        objective += penalties.regularization * cp.sum_squares(y - problem.prior / problem.scale)
    if penalties.entropic:
        S = np.diag([problem.length] * 3 + [1.0])
        for P, Q in zip(pseudo, inertia.pseudo(problem.prior_bodies())):
            L = np.linalg.inv(np.linalg.cholesky(Q)) @ S * np.sqrt(problem.mass)  # whitened: L P L^T = 1 at the prior
            white = L @ P @ L.T
            objective += (penalties.entropic / len(pseudo)) * (cp.trace(white) - cp.log_det(white) - 4.0)
    return objective


def _run(program) -> str:
    """The status of the program; every exception of the solver is raised as SolverError."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # the status reports cvxpy's warning "inaccurate"
            program.solve(solver=SOLVER, **SOLVER_OPTIONS)
    except BaseException as error:
        # a panic of a solver written in Rust is no Exception; Ctrl-C and other exits of the process are passed on
        if not (isinstance(error, Exception) or type(error).__name__ == "PanicException"):
            raise
        status = program.status or "failed"
        raise SolverError(
            f"{SOLVER} failed (status {status}): {type(error).__name__}: {error}; try joints weighted by their noise"
            " (identify: --noise-weights), or a stronger prior (--prior-weight)",
            status=status,
        ) from error
    return program.status


def _explain(status: str, limits: BodyBounds):
    if "infeasible" in status:
        raise SolverError(
            f"no physical robot satisfies the bounds together (solver status {status}): {limits}; widen"
            " them, or lower `margin`, which keeps pseudo-inertias away from zero",
            status=status,
        )
    raise SolverError(
        f"the solver stopped with status {status}; bound the masses (identify: --mass-max) and give the prior a"
        " weight (--prior-weight 1e-6): no torque depends on some directions of the parameters",
        status=status,
    )


def _require_physical(estimate: Estimate, limits: BodyBounds, penalties: Penalties) -> None:
    bad = {body: why for i, (body, why) in enumerate(estimate.verdicts.items()) if why and i not in limits.fixed}
    if bad:
        body, why = next(iter(bad.items()))
        raise SolverError(
            f"{SOLVER}: status {estimate.notes['status']}, but body {body!r} is not physical: {why};"
            f" try a larger margin than {penalties.margin:g}",
            status=estimate.notes["status"],
        )


def _numbers_of(robot, names) -> list[int]:
    names = listed("fixed", names, "a list of body names", ordered=False)
    for name in names:
        if not isinstance(name, str) or name not in robot.body_names:
            raise NameNotFoundError(
                f"fixed: no body named {shown(name)}; known: {', '.join(map(repr, robot.body_names))}"
            )
    return sorted(robot.body_names.index(name) for name in names)


def _mass_bounds(robot, mass_min, mass_max):
    n = robot.nbodies
    low = one_or_each(
        "mass_min", 0.0 if mass_min is None else mass_min, n, "a mass >= 0", lambda x: np.isfinite(x) & (x >= 0), "body"
    )
    high = one_or_each(
        "mass_max", np.inf if mass_max is None else mass_max, n, "a mass >= 0", lambda x: x >= 0.0, "body"
    )
    if (low > high).any():
        i = int(np.argmax(low > high))
        raise SolverError(f"body {robot.body_names[i]!r}: mass_min {low[i]:g} kg is above mass_max {high[i]:g} kg")
    return low, high


def _boxes(robot, box) -> np.ndarray:
    """(nbodies, 2, 3): corners of `com_box`, infinite without a bound."""
    everywhere = np.broadcast_to(np.array([[-np.inf] * 3, [np.inf] * 3]), (robot.nbodies, 2, 3))
    if box is None:
        return everywhere
    corners = checked("com_box", box, (robot.nbodies, 2, 3), finite=False)
    if corners.shape != everywhere.shape:
        raise ArgumentError(f"com_box: expected shape {everywhere.shape}, got {corners.shape}")
    if np.isnan(corners).any():
        raise ArgumentError(f"com_box: expected numbers, infinite where there is no bound, got nan: {shown(box)}")
    for name, (lo, hi) in zip(robot.body_names, corners):
        if (lo > hi).any():
            raise SolverError(f"body {name!r}: com_box: lower corner {lo} above upper {hi}")
    return corners
