"""How well a motion tells base parameters apart: criteria of the base regressor, with their gradients.

Rows are divided by the standard deviation of their joint's torque noise. With W the rows of one period,

    condition   half the logarithm of the condition number of W^T W
    log_det     minus the mean logarithm of the eigenvalues of the information W^T W, a row's average

scaling="length": columns of unit length, for the condition number; the determinant's optimum needs none.
scaling="prior": columns times the parameters' typical magnitudes, D W^T W D; the determinant is then that of what is
known after a log and what was before, D W^T W D + 1: parameters that are small anyway are not fought for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomctrl.identification.estimators.conditioning import inertial_scale
from geomctrl.identification.model.regressor_model import RegressorModel

FRICTION = 0.05  # of the effort limit: a typical friction torque

Graded = tuple[float, np.ndarray]


def typical(model: RegressorModel, effort: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    """(base parameters,) typical magnitudes: of masses and lengths of the robot, friction of 5 % of the efforts, rotors
    that need them to reach the greatest velocity in a second."""
    scale = np.ones(model.size)
    scale[: model.inertial] = np.tile(inertial_scale(model.robot), model.robot.nbodies)
    torque = FRICTION * np.where(np.isfinite(effort), effort, 20.0)
    at_joints = np.abs(model.transmission)
    torque, speed = at_joints @ torque, at_joints @ velocity
    for kind, size in (("viscous", torque / speed), ("coulomb", torque), ("offset", torque), ("rotor", torque / speed)):
        scale[model.indices(kind)] = size[model.acts[kind]]
    return np.linalg.norm(model.base.projection * scale, axis=1)


@dataclass(frozen=True, eq=False)
class Criterion:
    """objective, scaling: see the module. noise (nv,), scale (base parameters,); rows: of a log for one of W."""

    objective: str
    scaling: str
    noise: np.ndarray
    scale: np.ndarray
    rows: float = 1.0

    def whitened(self, W: np.ndarray) -> np.ndarray:
        """(N nv, nb) from W (N, nv, nb)."""
        return (W / self.noise[:, None]).reshape(-1, W.shape[-1])

    def __call__(self, W: np.ndarray) -> Graded:
        """(cost, its derivative (N, nv, nb) by W (N, nv, nb)); infinite where parameters are not told apart."""
        scale = self.scale if self.scaling == "prior" else np.ones(W.shape[-1])
        function = _log_det if self.objective == "log_det" else _condition
        f, G = function(self.whitened(W) * scale, self.scaling == "prior", self.rows)
        return f, (G * scale).reshape(W.shape) / self.noise[:, None]


def _log_det(W: np.ndarray, prior: bool, rows: float) -> Graded:
    nb = W.shape[1]
    count = 1.0 if prior else len(W)
    stacked = np.vstack((W * np.sqrt(rows), np.eye(nb))) if prior else W
    R = np.linalg.qr(stacked, mode="r")
    diagonal = np.abs(np.diag(R))
    if diagonal.min() <= 1e-12 * diagonal.max():
        return np.inf, W
    f = -2.0 * np.log(diagonal / np.sqrt(count)).sum() / nb
    inverse = np.linalg.inv(R)
    return f, -(2.0 / nb) * (rows if prior else 1.0) * (W @ inverse) @ inverse.T


def _condition(W: np.ndarray, prior: bool, rows: float) -> Graded:
    length = np.linalg.norm(W, axis=0)
    if length.min() <= 1e-12 * length.max():
        return np.inf, W
    U = W if prior else W / length
    _, s, V = np.linalg.svd(np.linalg.qr(U, mode="r"))  # of U^T U's eigenvalues, half the digits would be lost
    if s[-1] <= 1e-10 * s[0]:
        return np.inf, W
    G = np.outer(U @ V[0], V[0]) / s[0] ** 2 - np.outer(U @ V[-1], V[-1]) / s[-1] ** 2
    return np.log(s[0] / s[-1]), G if prior else (G - U * np.sum(U * G, axis=0)) / length


def measures(W: np.ndarray) -> tuple[float, float]:
    """(condition number with columns of unit length, mean log of the information's eigenvalues, a row's average) of
    whitened rows."""
    s = np.linalg.svd(W / np.maximum(np.linalg.norm(W, axis=0), 1e-300), compute_uv=False)
    diagonal = np.abs(np.diag(np.linalg.qr(W, mode="r")))
    with np.errstate(divide="ignore"):
        return float(s[0] / max(s[-1], 1e-300)), float(2.0 * np.log(diagonal / np.sqrt(len(W))).mean())


def deviations(W: np.ndarray, rows: float) -> np.ndarray:
    """Standard deviations (nb,) of least squares on `rows` rows of a log for every whitened one of W: the roots of the
    diagonal of (W^T W)^-1."""
    length = np.linalg.norm(W, axis=0)
    inverse = np.linalg.inv(np.linalg.qr(W / length, mode="r"))
    return np.linalg.norm(inverse, axis=1) / length / np.sqrt(rows)
