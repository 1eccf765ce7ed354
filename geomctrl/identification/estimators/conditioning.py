"""Which parameters a log can separate, natural units of parameters, and the correlation of residuals in time."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import instance
from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import ExcitationError
from geomctrl.identification.logs import Dataset
from geomctrl.identification.model.compressed import Compressed
from geomctrl.identification.model.regressor_model import RegressorModel
from geomctrl.robot import Robot
from geomctrl.terms.base_parameters import combinations

# length of a column relative to the longest, up to which it is rounding: a joint that does not move
MIN_COLUMN_LENGTH = 1e-10
MIN_NAMED_PART = 0.05  # of a direction of length 1: smaller parts are not written
# relative singular value of the scaled base regressor below which parameters count as not excited
MIN_SINGULAR_VALUE = 1e-7


def compressed(model: RegressorModel, data: Dataset | Compressed) -> Compressed:
    """The log's factors; a compressed log is returned unchanged."""
    instance("model", model, RegressorModel, "a RegressorModel")
    instance("data", data, (Dataset, Compressed), "a Dataset or a Compressed")
    if isinstance(data, Compressed):
        if data.model is not model:
            raise ArgumentError("data: was compressed for another model")
        return data
    return model.compress(data)


def regressor_condition(
    model: RegressorModel, data: Dataset | Compressed, weights: ArrayLike | None = None
) -> tuple[float, list[str]]:
    """(condition number, directions that the log does not excite) of the base regressor with columns of unit length."""
    A, _ = compressed(model, data).system(weights)
    A = A[:, model.base.columns]
    A = np.vstack((A, np.zeros((max(0, A.shape[1] - len(A)), A.shape[1]))))  # fewer rows than parameters
    length = np.linalg.norm(A, axis=0)
    longest = length.max(initial=0.0)
    names = model.base_names
    dead = length <= MIN_COLUMN_LENGTH * longest
    exchanges = [f"{names[k]}: the log does not excite it" for k in np.flatnonzero(dead)]
    live = np.flatnonzero(~dead)
    if not len(live):
        return np.inf, exchanges
    symbols = [names[k] if " " not in names[k] else f"({names[k]})" for k in live]
    s, directions = weak_directions(A[:, live], 1.0 / length[live], symbols)
    exchanges += [text for _, text, _ in directions]
    return (np.inf if dead.any() else float(s[0] / max(s[-1], 1e-300))), exchanges


def weak_directions(
    A: np.ndarray, unit: np.ndarray, symbols: list[str], largest: float = 0.0
) -> tuple[np.ndarray, list[tuple[float, str, np.ndarray]]]:
    """(singular values of A with columns in these units; for those that are rounding, or at most `largest`: the value,
    what can be exchanged as text, and the direction (columns,), of length 1).
    """
    _, s, Vt = np.linalg.svd(A * unit, full_matrices=False)
    out = []
    for j in np.flatnonzero(s <= max(largest, MIN_SINGULAR_VALUE * s[0])):
        change = np.where(np.abs(Vt[j]) > MIN_NAMED_PART, Vt[j] * unit, 0.0)
        lead = int(np.argmax(np.abs(Vt[j])))
        out.append((float(s[j]), combinations((change / change[lead])[None], [lead], symbols)[0], Vt[j]))
    return s, out


def require_excitation(model: RegressorModel, data: Compressed, weights: ArrayLike | None = None) -> float:
    """The condition number; raises ExcitationError naming the parameters that can not be separated."""
    condition, exchanges = regressor_condition(model, data, weights)
    if exchanges:
        raise ExcitationError(
            f"too little excitation: the log does not determine {len(exchanges)} of {model.base.size} base parameters: "
            + "; ".join(exchanges[:8])
            + ("; ..." if len(exchanges) > 8 else "")
            + " (use a richer trajectory, leave those columns out, or use ridge or consistent, which have a prior)"
        )
    return condition


def natural_scale(model: RegressorModel, A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(size,) typical magnitudes of parameters.

    Inertial: m, m l, m l^2 of the robot's mean mass (1 kg if it has none) and the mean distance l between joints.
    Others: the value that alone would explain the torques of a log A x = b; 1 if the log does not excite it.
    """
    lengths = np.linalg.norm(A, axis=0)
    moved = lengths > MIN_COLUMN_LENGTH * lengths.max()
    scale = np.where(moved, np.linalg.norm(b) / np.where(moved, lengths, 1.0), 1.0)
    scale[: model.inertial] = np.tile(inertial_scale(model.robot), model.robot.nbodies)
    return scale


def inertial_scale(robot: Robot) -> np.ndarray:
    """(10,) m, m l, m l^2 of the robot's mean mass and the mean distance between joints, see `natural_scale`."""
    steps = np.linalg.norm(robot.placements[:, :3, 3], axis=1)
    length = max(float(steps[steps > 1e-6].mean()) if (steps > 1e-6).any() else 0.0, 0.05)
    mass = float(robot.parameters[:, 0].mean())
    return (mass if mass > 1e-6 else 1.0) * np.array([1.0] + [length] * 3 + [length**2] * 6)


def autocorrelation_factor(model: RegressorModel, x: np.ndarray, data: Dataset) -> np.ndarray:
    """1 + 2 sum of the residuals' autocorrelations up to the first negative one, per joint (nv,), at least 1."""
    _, tau, predicted, mask = model._predict(x, data)
    residual = np.where(mask, tau - predicted, 0.0)
    return correlation_factors(residual)


def correlation_factors(residuals: np.ndarray) -> np.ndarray:
    """The same for the columns of residuals (N, channels)."""
    return np.array([correlation_factor(autocorrelation(r)) for r in residuals.T])


def correlation_factor(rho: np.ndarray) -> float:
    """The same for one autocorrelation, lags from 0."""
    negative = np.flatnonzero(rho < 0.0)
    return max(1.0, float(1.0 + 2.0 * rho[1 : negative[0] if len(negative) else len(rho)].sum()))


def autocorrelation(r: np.ndarray) -> np.ndarray:
    """Autocorrelation of a residual about zero, lags 0 to a quarter of its length (at most 2000)."""
    n = len(r)
    power = np.abs(np.fft.rfft(r, 2 * n)) ** 2
    lags = np.fft.irfft(power)[: max(2, min(n // 4, 2000))]
    return lags / lags[0] if lags[0] > 0.0 else np.eye(1, len(lags))[0]
