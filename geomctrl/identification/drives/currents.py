"""Read logs of motor currents, and fit drive gains to them.

Drive gains g and parameters theta of one robot from its motors' currents i, for each joint k:

    g_k i_k = Z_k theta + kappa_k

Z theta are torques of unknown parameters, kappa those of known ones: a weighed load, or bodies with CAD data. Without
kappa only ratios of gains would be determined. The fit begins with total least squares, which assumes equal errors in
all columns of [i, Z, kappa] after scaling to unit length (Gautier and Briot 2014). As the noise is in the currents,
maximum likelihood follows: the least sum of (i_k - (Z_k theta + kappa_k) / g_k)^2 over the noise of the currents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import path_of
from geomctrl.identification.errors import DataError, ExcitationError
from geomctrl.identification.estimators.conditioning import MIN_SINGULAR_VALUE, correlation_factors
from geomctrl.identification.loads.torque_rows import FactoredLogs
from geomctrl.identification.logs import Dataset, Reading
from geomctrl.identification.logs.dataset import check_robot, joints_of, read_log
from geomctrl.identification.logs.reading.formats import recorded
from geomctrl.identification.logs.reading.naming import ALIASES, named
from geomctrl.identification.logs.reading.recording import Recording
from geomctrl.identification.logs.samples import derive
from geomctrl.robot import Robot


def read_currents(
    source: Dataset | str | Path, robot: Robot, options: Reading, resample: float | None = None
) -> Dataset:
    """The log with currents [A] in its `tau`, as `read_log` returns logs; for a Dataset, tau are currents."""
    if isinstance(source, Dataset):
        data = source
    else:
        options = replace(options, joints=joints_of(robot, options), current_gains=1.0)
        recording = recorded(path_of("log", source), options.topic)
        options = replace(options, keys=_keys(recording, options))
        data = Dataset._of_recording(recording, options, Path(source).stem)
    check_robot(data, robot, units=False)
    if options.check_units:  # except torques, which here are currents
        check_robot(derive(data, tau=robot.gravity_force(data.q)), robot)
    return read_log(data, robot, replace(options, current_gains=None, check_units=False), resample)


def _keys(recording: Recording, options: Reading) -> dict:
    """Column names of the caller, and names of currents for logs that also have torques."""
    keys = dict(options.keys or {})
    arrays = named(recording, keys, options.joints, options.topic).arrays
    if "i" not in arrays:
        raise DataError(
            f"{recording.label}: i: expected motor currents, got none; {recording.available_names()}; say what they are"
            " called by keys={'i': ...} (--column i=NAME)"
        )
    if "i" in keys or "tau" not in arrays:
        return keys
    for alias in ALIASES["i"]:
        try:
            again = named(recording, keys | {"i": alias}, options.joints, options.topic).arrays
        except DataError:
            continue
        if np.array_equal(again["i"], arrays["i"]):
            return keys | {"i": alias}
    return keys


# --- the fit ---------------------------------------------------------------------------------------------------------


PASSES = 3  # iterations of the noise


@dataclass(frozen=True, eq=False)
class Gains:
    """g (nv,) [N m/A], their standard deviations (infinite where the logs leave them open), theta (p,), noise of the
    currents per log and joint [A].
    """

    g: np.ndarray
    std: np.ndarray
    theta: np.ndarray
    noise: np.ndarray


def fitted(data: FactoredLogs) -> Gains:
    """Fit gains; raises ExcitationError if the currents do not depend on the known torques."""
    nv = len(data.sources[0].channels)
    problem = _Problem(data, nv, _row_space(data))
    weights = np.ones(len(data.factors))
    g, theta = np.ones(nv), np.zeros(problem.size)
    for _ in range(PASSES):
        g, theta = problem.total_least_squares(weights)
        weights = 1.0 / problem.noise(g, theta) / np.abs(g[problem.joints])
    for _ in range(PASSES):
        g, theta = problem.likeliest(g, theta, 1.0 / problem.noise(g, theta))
    noise = problem.noise(g, theta)
    std = problem.std(g, theta, 1.0 / (noise * np.sqrt(problem.correlation(g, theta))))
    return Gains(g, std, problem.basis @ theta, noise)


def _row_space(data: FactoredLogs) -> np.ndarray:
    """(p, r): the directions of theta that the logs excite, in columns of unit length."""
    Z = np.vstack([R[:, :-2] for R in data.factors])
    length = np.linalg.norm(Z, axis=0)
    length[length <= 1e-12 * length.max()] = np.inf
    _, s, Vt = np.linalg.svd(np.linalg.qr(Z / length, mode="r"))
    return Vt[s > MIN_SINGULAR_VALUE * s[0]].T / length[:, None]


class _Problem:
    """The problem in theta', where theta = basis @ theta'."""

    def __init__(self, data: FactoredLogs, nv: int, basis: np.ndarray):
        self.data, self.nv, self.basis, self.size = data, nv, basis, basis.shape[1]
        self.joints = np.tile(np.arange(nv), len(data.sources))  # of the factors
        self.Z = [R[:, :-2] @ basis for R in data.factors]
        self.kappa = [R[:, -2] for R in data.factors]
        self.i = [R[:, -1] for R in data.factors]
        self.counts = np.maximum(data.counts, 1)
        self.share = np.sqrt(max(1.0 - (self.size + nv) / self.counts.sum(), 1e-3))

    def total_least_squares(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The right singular vector of [V -Z -kappa] for the smallest singular value, with last entry 1."""
        rows = []
        for k, w, Z, kappa, i in zip(self.joints, weights, self.Z, self.kappa, self.i):
            V = np.zeros((len(i), self.nv))
            V[:, k] = i
            rows.append(w * np.column_stack((V, -Z, -kappa)))
        W: Any = np.linalg.qr(np.vstack(rows), mode="r")
        length: np.ndarray = np.linalg.norm(W, axis=0)
        still = [self.data.sources[0].channels[int(k)] for k in np.flatnonzero(length[: self.nv] == 0.0)]
        if still:
            raise ExcitationError(f"{self.data.sources[0].label}: no current in joint {still[0]!r}")
        if length[-1] == 0.0:
            raise ExcitationError(f"{self.data.sources[0].label}: the known bodies or load cause no torque")
        v: np.ndarray = np.linalg.svd(W / length)[2][-1]
        if abs(v[-1]) < 1e-9:
            raise ExcitationError(
                f"{self.data.sources[0].label}: the currents do not depend on the known bodies or load, so only ratios"
                " of gains are determined: use a heavier load, or more motion of the joints that lift it"
            )
        x = v / length / (v[-1] / length[-1])
        return x[: self.nv], x[self.nv : -1]

    def likeliest(self, g: np.ndarray, theta: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        from scipy.optimize import least_squares

        minimise: Any = least_squares
        x0 = np.concatenate((1.0 / g, theta))
        solution = minimise(
            lambda x: self._residual(x, weights), x0, lambda x: self._jacobian(x, weights), x_scale="jac", method="lm",
            xtol=1e-12, ftol=1e-12, gtol=1e-12, max_nfev=60,
        )  # fmt: skip
        return 1.0 / solution.x[: self.nv], solution.x[self.nv :]

    def noise(self, g: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Standard deviation of each factor's currents [A]."""
        x = np.concatenate((1.0 / g, theta))
        norms = np.array([np.linalg.norm(r) for r in self._residuals(x)])
        size = max(np.linalg.norm(np.concatenate(self.i)), 1e-300)
        return np.maximum(norms, 1e-12 * size) / np.sqrt(self.counts) / self.share

    def correlation(self, g: np.ndarray, theta: np.ndarray) -> np.ndarray:
        out = []
        full = np.append(self.basis @ theta, 1.0)
        for source in self.data.sources:
            r = np.concatenate([np.where(mask, i - (A @ full) / g, 0.0) for A, i, mask in source.rows()])
            out.append(correlation_factors(r))
        return np.concatenate(out)

    def std(self, g: np.ndarray, theta: np.ndarray, weights: np.ndarray) -> np.ndarray:
        J = np.linalg.qr(self._jacobian(np.concatenate((1.0 / g, theta)), weights), mode="r")
        length = np.linalg.norm(J, axis=0)
        open_ = length[: self.nv] == 0.0
        length[length == 0.0] = np.inf
        _, s, Vt = np.linalg.svd(J / length)
        seen = s > MIN_SINGULAR_VALUE * s[0]
        open_ |= np.abs(Vt[~seen, : self.nv]).max(0, initial=0.0) > 1e-6
        variance = ((Vt[seen, : self.nv] / s[seen, None]) ** 2).sum(0) / length[: self.nv] ** 2
        return np.where(open_, np.inf, np.sqrt(variance) * g**2)  # of 1 / g to g

    def _residuals(self, x: np.ndarray) -> list[np.ndarray]:
        inverse, theta = x[: self.nv], x[self.nv :]
        parts = zip(self.joints, self.Z, self.kappa, self.i)
        return [inverse[k] * (Z @ theta + kappa) - i for k, Z, kappa, i in parts]

    def _residual(self, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return np.concatenate([w * r for w, r in zip(weights, self._residuals(x))])

    def _jacobian(self, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
        inverse, theta = x[: self.nv], x[self.nv :]
        rows = []
        for k, w, Z, kappa in zip(self.joints, weights, self.Z, self.kappa):
            J = np.zeros((len(Z), len(x)))
            J[:, k], J[:, self.nv :] = Z @ theta + kappa, inverse[k] * Z
            rows.append(w * J)
        return np.vstack(rows)
