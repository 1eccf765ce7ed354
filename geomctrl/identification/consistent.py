"""Physically consistent estimators: parameters that rigid bodies can have.

`consistent` is a semidefinite program: a body's pseudo-inertia P_i is positive semidefinite if and only if a rigid
body has it (Wensing, Kim, Slotine 2018), and P_i is linear in the parameters. `manifold` stays inside by construction,
P_i = U U^T with U upper triangular and exp(.) on its diagonal (Rucker and Wensing 2022), and needs no semidefinite
solver. Both see the log through its triangular factors only, so that their size does not depend on the number of
samples.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.mechanism import inertia

from .dataset import Dataset
from .errors import SolverError
from .estimators import Estimate, _finish, _prior, _weights, compressed, excitation, natural_scale
from .model import Compressed, RegressorModel


def consistent(
    model: RegressorModel,
    data: Dataset | Compressed,
    *,
    mass_max: ArrayLike | None = None,
    mass_min: ArrayLike | None = None,
    total_mass: float | None = None,
    com_box: ArrayLike | None = None,
    com_ellipsoid: Sequence[tuple[ArrayLike, ArrayLike] | None] | None = None,
    prior: ArrayLike | None = None,
    entropic: float = 0.0,
    regularization: float = 1e-6,
    friction_signs: bool = True,
    margin: float = 1e-6,
    fixed: Sequence[str] = (),
    weights: ArrayLike | str | None = None,
    solver: str = "CLARABEL",
    solver_options: dict[str, Any] | None = None,
) -> Estimate:
    """Least squares under P_i > 0 for every body, by a semidefinite program (cvxpy).

    Minimises |w (Y x - tau)|^2 / |w tau|^2 + regularization |S^-1 (x - prior)|^2 + entropic sum_i D(P_i || P0_i) /
    nbodies subject to P_i >= margin mass diag(l^2, l^2, l^2, 1) in the robot's natural units (`natural_scale`),
    viscous and Coulomb friction, rotor inertias and stiffnesses not negative (`friction_signs`), and, where given,
    mass_min <= m_i <= mass_max [kg] (a number or one a body), the sum of all masses total_mass, com_box (nbodies, 2,
    3): lower and upper corner of each centre of mass [m] (nan: no bound), com_ellipsoid: per body None or (centre,
    radii) [m] in axes of the body.

    prior (size,) or the inertial (nbodies, 10): default the model's own; for `entropic` its bodies must be physical.
    fixed: names of bodies whose parameters are known and stay the prior's (a payload on a known arm: all but the last).
    weights: None, "noise" (one over each joint's noise) or one a joint.
    No covariance: where bounds are active the estimate is biased towards them and its errors are one-sided, so that
    no ellipsoid about it is a confidence region; the unconstrained estimate's intervals say what the log determines.
    Raises SolverError (infeasible, or status and what to try), ArgumentError.
    """
    import cvxpy as cp

    robot, n = model.robot, model.robot.nbodies
    c = compressed(model, data)
    w, x0 = _weights(model, c, weights), _prior(model, prior)
    low, high = _masses(robot, mass_min, mass_max)
    _check(regularization=regularization, entropic=entropic, margin=margin, total_mass=total_mass or 0.0)
    A, b = c.system(w)
    scale = natural_scale(model, A, b)
    mass, length = scale[0], scale[1] / scale[0]
    size = np.linalg.norm(b)
    y = cp.Variable(model.size)  # x = scale y: every entry of order one
    links = [y[10 * i : 10 * i + 10] for i in range(n)]
    map_P = inertia.pseudo(np.eye(10)).reshape(10, 16).T  # P in units of mass and length
    pseudo = [cp.reshape(map_P @ link, (4, 4), order="C") for link in links]
    known = _fixed(robot, fixed)
    constraints: list[Any] = [P >> margin * np.eye(4) for i, P in enumerate(pseudo) if i not in known]
    constraints += [links[i] == x0[10 * i : 10 * i + 10] / scale[:10] for i in known]
    for i, link in enumerate(links):
        if i in known:
            continue
        if np.isfinite(high[i]):
            constraints.append(link[0] <= high[i] / mass)
        if low[i] > 0.0:
            constraints.append(link[0] >= low[i] / mass)
    if total_mass is not None:
        constraints.append(cp.sum([link[0] for link in links]) == total_mass / mass)
    constraints += _com_bounds(cp, robot, links, length, com_box, com_ellipsoid)
    if friction_signs and len(model.positive):
        constraints.append(y[model.positive] >= 0.0)
    objective = cp.sum_squares((A * scale / size) @ y - b / size)
    if regularization:
        objective += regularization * cp.sum_squares(y - x0 / scale)
    if entropic:
        P0 = inertia.pseudo(x0[: model.inertial].reshape(-1, 10))
        _require_prior(robot, x0)
        S = np.diag([length, length, length, 1.0])
        for P, Q in zip(pseudo, P0):
            L = np.linalg.inv(np.linalg.cholesky(Q)) @ S * np.sqrt(mass)  # whitened: L P L^T = 1 at the prior
            white = L @ P @ L.T
            objective += (entropic / n) * (cp.trace(white) - cp.log_det(white) - 4.0)
    problem = cp.Problem(cp.Minimize(objective), constraints)
    status = _run(cp, problem, solver, solver_options or {})
    if status not in ("optimal", "optimal_inaccurate"):
        _explain(status, low, high, total_mass, com_box, com_ellipsoid)
    x = scale * y.value
    if friction_signs and len(model.positive):
        x[model.positive] = np.maximum(x[model.positive], 0.0)  # the solver's rounding
    x[: model.inertial].reshape(-1, 10)[known] = x0[: model.inertial].reshape(-1, 10)[known]
    out = _finish(
        model, c, x, w, "consistent", condition=excitation(model, c, w)[0],
        notes={"status": status, "solver": solver, "seconds": problem.solver_stats.solve_time, "margin": margin,
               "entropic": entropic, "regularization": regularization},
    )  # fmt: skip
    bad = {body: why for i, (body, why) in enumerate(out.verdicts.items()) if why and i not in known}
    if bad:
        body, why = next(iter(bad.items()))
        raise SolverError(
            f"{solver}: status {status}, but body {body!r} is not physical: {why}; try a larger margin than {margin:g}"
        )
    return out


def manifold(
    model: RegressorModel,
    data: Dataset | Compressed,
    *,
    prior: ArrayLike | None = None,
    start: ArrayLike | None = None,
    entropic: float = 0.0,
    regularization: float = 1e-6,
    friction_signs: bool = True,
    margin: float = 1e-6,
    weights: ArrayLike | str | None = None,
    iterations: int = 200,
) -> Estimate:
    """The objective and the cone of `consistent` without a semidefinite solver.

    P_i = margin 1 + U_i U_i^T in natural units, U_i in log-Cholesky coordinates. No covariance, as for `consistent`.

    Every iterate is strictly physical. start: first inertial parameters (nbodies, 10), strictly physical; default the
    prior where it is, else a ball of the robot's mean mass. Nonlinear least squares (trust region, exact Jacobian).
    """
    from scipy.optimize import least_squares

    minimise: Any = least_squares

    robot, n = model.robot, model.robot.nbodies
    _check(regularization=regularization, entropic=entropic, margin=margin)
    if iterations < 1:
        raise ArgumentError(f"iterations: expected at least 1, got {iterations}")
    if start is not None and np.size(start) != model.inertial:
        raise ArgumentError(f"start: expected shape ({n}, 10), got {np.shape(start)}")
    c = compressed(model, data)
    w, x0 = _weights(model, c, weights), _prior(model, prior)
    if entropic:
        _require_prior(robot, x0)
    A, b = c.system(w)
    scale = natural_scale(model, A, b)
    unit = scale[:10]
    size = np.linalg.norm(b)
    A, b, y0 = A * scale / size, b / size, x0 / scale
    first = (x0[: model.inertial] if start is None else np.ravel(np.asarray(start, float))).reshape(-1, 10) / unit
    ball = inertia.from_com(1.0, np.zeros(3), 0.4 * np.eye(3))
    good = inertia.is_physical(first, strict=True)
    if start is not None and not good.all():
        raise ArgumentError(f"start: body {robot.body_names[int(np.argmin(good))]!r} is not strictly physical")
    least = inertia.from_pseudo(margin * np.eye(4))
    inside = good & (np.linalg.eigvalsh(inertia.pseudo(first))[:, 0] > 1.1 * margin)
    theta0 = np.concatenate(
        [log_cholesky((pi if ok else ball) - least) for pi, ok in zip(first, inside)] + [y0[model.inertial :]]
    )
    lower, upper = np.full(model.size, -np.inf), np.full(model.size, np.inf)
    for i in range(n):  # logarithms: beyond, exp(.) over- or underflows and nothing changes any more
        lower[10 * i : 10 * i + 4], upper[10 * i : 10 * i + 4] = -15.0, 8.0
        theta0[10 * i : 10 * i + 4] = np.clip(theta0[10 * i : 10 * i + 4], -14.0, 7.0)
    if friction_signs:
        lower[model.positive] = 0.0
        theta0[model.positive] = np.maximum(theta0[model.positive], 1e-3)
    Q = (
        [np.linalg.inv(np.linalg.cholesky(P)) for P in inertia.pseudo(y0[: model.inertial].reshape(-1, 10))]
        if entropic
        else []
    )

    def expand(theta):
        y, dy = theta.copy(), np.eye(model.size)
        for i in range(n):
            at = slice(10 * i, 10 * i + 10)
            y[at], dy[at, at] = from_log_cholesky(theta[at])
            y[at] += least
        return y, dy

    def residual(theta):
        y, _ = expand(theta)
        rows = [A @ y - b, np.sqrt(regularization) * (y - y0)]
        for i, L in enumerate(Q):  # D is a sum of four terms e - log e - 1 >= 0, each a square
            e = np.linalg.eigvalsh(L @ inertia.pseudo(y[10 * i : 10 * i + 10]) @ L.T)
            rows.append([np.sqrt(entropic / n * max(e.sum() - np.log(e).sum() - 4.0, 0.0))])
        return np.concatenate(rows)

    def jacobian(theta):
        y, dy = expand(theta)
        rows = [A @ dy, np.sqrt(regularization) * dy]
        for i, L in enumerate(Q):
            at = slice(10 * i, 10 * i + 10)
            P = inertia.pseudo(y[at])
            value = max(float(inertia.divergence(y[at], y0[at])), 1e-24)
            gradient = np.einsum("ij,kij->k", L.T @ L - np.linalg.inv(P), inertia.pseudo(np.eye(10))) @ dy[at, at]
            row = np.zeros((1, model.size))
            row[0, at] = np.sqrt(entropic / n) * gradient / (2.0 * np.sqrt(value))
            rows.append(row)
        return np.vstack(rows)

    solution = minimise(
        residual, theta0, jacobian, bounds=(lower, upper), x_scale="jac", max_nfev=iterations,
        ftol=1e-9, xtol=1e-9, gtol=1e-12,
    )  # fmt: skip
    if solution.status < 0 or not np.isfinite(solution.x).all():
        raise SolverError(f"log-Cholesky: {solution.message}; try another start or more regularization")
    notes = {"status": solution.message, "evaluations": solution.nfev, "converged": bool(solution.status > 0)}
    return _finish(
        model, c, scale * expand(solution.x)[0], w, "manifold", condition=excitation(model, c, w)[0], notes=notes
    )


UPPER_ROWS, UPPER_COLUMNS = np.array([0, 0, 0, 1, 1, 2]), np.array([1, 2, 3, 2, 3, 3])


def log_cholesky(parameters: np.ndarray) -> np.ndarray:
    """theta (10,) with P = U U^T, U upper triangular: the logarithms of its diagonal, then the entries above it."""
    flip = np.eye(4)[::-1]
    U = flip @ np.linalg.cholesky(flip @ inertia.pseudo(parameters) @ flip) @ flip
    return np.concatenate((np.log(np.diag(U)), U[UPPER_ROWS, UPPER_COLUMNS]))


def from_log_cholesky(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(parameters (10,), their derivative (10, 10)) at theta."""
    U = np.diag(np.exp(theta[:4]))
    U[UPPER_ROWS, UPPER_COLUMNS] = theta[4:]
    dU = np.zeros((10, 4, 4))
    dU[range(4), range(4), range(4)] = np.diag(U)
    dU[range(4, 10), UPPER_ROWS, UPPER_COLUMNS] = 1.0
    dP = dU @ U.T
    return inertia.from_pseudo(U @ U.T), inertia.from_pseudo(dP + dP.swapaxes(-1, -2)).T


# --- pieces --------------------------------------------------------------------------------------------------------


def _run(cp, problem, solver, options):
    if solver == "CLARABEL":
        options = {"tol_gap_rel": 1e-9, "tol_gap_abs": 1e-12, "tol_feas": 1e-10, **options}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # cvxpy's "inaccurate" comes back as a status
            problem.solve(solver=solver, **options)
    except cp.error.SolverError as error:
        raise SolverError(
            f"{solver} failed: {error}; try weights='noise', more regularization, or method='manifold'"
        ) from None
    return problem.status


def _explain(status, low, high, total, box, ellipsoid):
    given = [
        f"masses between {low.min():g} and {high.max():g} kg",
        *([f"total mass {total:g} kg"] if total is not None else []),
        *(["com_box"] if box is not None else []),
        *(["com_ellipsoid"] if ellipsoid is not None else []),
    ]
    if "infeasible" in status:
        raise SolverError(
            f"no physical robot satisfies the bounds together (solver status {status}): {', '.join(given)}; widen them,"
            " or lower `margin`, which keeps pseudo-inertias away from zero"
        )
    raise SolverError(
        f"the solver stopped with status {status}; try mass_max and regularization=1e-6 (the problem may be unbounded"
        " in directions no torque depends on), solver='SCS', or method='manifold'"
    )


def _fixed(robot, names) -> list[int]:
    if isinstance(names, str):
        raise ArgumentError(f"fixed: expected a list of body names, got {names!r}")
    for name in names:
        if name not in robot.body_names:
            raise NameNotFoundError(f"fixed: no body named {name!r}; known: {', '.join(map(repr, robot.body_names))}")
    return sorted(robot.body_names.index(name) for name in names)


def _masses(robot, mass_min, mass_max):
    n = robot.nbodies
    bounds = []
    for name, given, default in (("mass_min", mass_min, 0.0), ("mass_max", mass_max, np.inf)):
        x = np.full(n, default) if given is None else np.asarray(given, float)
        if (
            x.shape not in ((), (n,))
            or np.isnan(x).any()
            or (x < 0.0).any()
            or (name == "mass_min" and np.isinf(x).any())
        ):
            raise ArgumentError(f"{name}: expected a mass or {n}, one a body, not negative, got {given!r}")
        bounds.append(np.broadcast_to(x, (n,)))
    low, high = bounds
    if (low > high).any():
        i = int(np.argmax(low > high))
        raise SolverError(f"body {robot.body_names[i]!r}: mass_min {low[i]:g} kg is above mass_max {high[i]:g} kg")
    return low, high


def _com_bounds(cp, robot, links, length, box, ellipsoid):
    n, out = robot.nbodies, []
    if box is not None:
        corners = np.asarray(box, float)
        if corners.shape != (n, 2, 3):
            raise ArgumentError(f"com_box: expected shape ({n}, 2, 3), got {corners.shape}")
        for i, (link, (lo, hi)) in enumerate(zip(links, corners / length)):
            if (lo > hi).any():
                raise SolverError(
                    f"body {robot.body_names[i]!r}: com_box: lower corner {lo * length} above upper {hi * length}"
                )
            for k in range(3):
                if np.isfinite(lo[k]):
                    out.append(link[1 + k] >= lo[k] * link[0])
                if np.isfinite(hi[k]):
                    out.append(link[1 + k] <= hi[k] * link[0])
    if ellipsoid is not None:
        if len(ellipsoid) != n:
            raise ArgumentError(f"com_ellipsoid: expected {n} entries, one a body, got {len(ellipsoid)}")
        for link, entry in zip(links, ellipsoid):
            if entry is None:
                continue
            centre, radii = (np.asarray(x, float) / length for x in entry)
            if centre.shape != (3,) or radii.shape != (3,) or not (np.isfinite(centre).all() and (radii > 0.0).all()):
                raise ArgumentError("com_ellipsoid: expected (centre (3,), radii (3,) > 0) or None per body")
            out.append(cp.norm(cp.multiply(1.0 / radii, link[1:4] - centre * link[0])) <= link[0])
    return out


def _require_prior(robot, x0):
    physical = inertia.is_physical(x0[: 10 * robot.nbodies].reshape(-1, 10), strict=True)
    if not physical.all():
        raise SolverError(
            f"prior: an entropic distance needs strictly physical bodies;"
            f" {robot.body_names[int(np.argmin(physical))]!r} is not"
        )


def _check(**numbers):
    for name, value in numbers.items():
        if not isinstance(value, (int, float, np.number)) or not (np.isfinite(value) and value >= 0.0):
            raise ArgumentError(f"{name}: expected a number >= 0, got {value!r}")
