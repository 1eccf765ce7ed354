"""Friction that drives, inertia that is negative: what a sign leaves that least squares can make up for.

A joint that moves little but itself is explained as well with all its torques turned around, by negative parameters.
So the power that friction takes, mean of v tau_friction, and the joint's own inertia, mean of M_kk, must be positive.
"""

from __future__ import annotations

import numpy as np

from geomctrl.identification.findings import Finding
from geomctrl.identification.model.regressor_model import RegressorModel

from .evidence import Evidence, FreeFit
from .rows import Rows

DISSIPATIVE = ("viscous", "coulomb", "curve")
SURE = 5.0  # standard deviations, correlated residuals counted
SMALL = 0.05  # of a joint's torques: friction less than that is not looked at


def driving(evidence: Evidence, rows: Rows, fit: FreeFit) -> list[Finding]:
    """Joints whose friction drives them, or whose inertia is negative, in least squares without constraints."""
    advice = "Look at the drive's or the model's axis; turn the sign of that column of the log"
    return [
        Finding(
            "sign", f"the torque of {evidence.names[k]!r}, or its position, has the other sign: {signs}", advice, True
        )
        for k, signs in negative(evidence.model, rows, fit).items()
    ]


def negative(model: RegressorModel, rows: Rows, fit: FreeFit) -> dict[int, str]:
    """What of joints is negative and can not be, in words."""
    columns = model.base.columns
    Y = model.regressor(rows.q, rows.v, rows.a)[..., columns]
    rubs = np.isin(np.array(model.kinds)[columns], DISSIPATIVE)
    still = np.zeros_like(rows.v)
    weight = model.regressor(rows.q, still, still)[..., columns]
    torques, out = rows.torques(model), {}
    for k in np.flatnonzero(rows.used.any(axis=0)).tolist():
        e = still.copy()
        e[:, k] = 1.0
        own = (model.regressor(rows.q, still, e)[:, k, columns] - weight[:, k]).mean(axis=0)
        power = (rows.v[:, [k]] * Y[:, k] * rubs).mean(axis=0)
        z_inertia, z_power = (_deviations(row, fit.values, fit.covariance) for row in (own, power))
        size = np.sqrt(np.mean((Y[:, k] * rubs @ fit.values) ** 2) / max(np.mean(torques[:, k] ** 2), 1e-300))
        signs = []
        if z_power < -SURE and size > SMALL:
            signs.append(f"its friction drives it, by {-power @ fit.values:.3g} W on average")
        if z_inertia < -SURE and size * z_power <= 0.0:
            signs.append(f"its own inertia comes out as {own @ fit.values:.3g} kg m^2")
        if signs:
            out[k] = ", and ".join(signs)
    return out


def _deviations(row: np.ndarray, values: np.ndarray, covariance: np.ndarray) -> float:
    """A linear function of the parameters in terms of its standard deviation; 0 where the log does not tell."""
    variance = float(row @ covariance @ row)
    return float(row @ values) / np.sqrt(variance) if variance > 0.0 else 0.0
