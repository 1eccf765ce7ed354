"""Time derivatives of the equations of motion to any order: tau, tau', tau'', ... from q and v, v', v'', ... in O(n).

Mueller 2018 section 6.3 asks for them for the flatness of robots with elastic joints. `kernels.time_derivatives` says
how: by power series in inertial axes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked
from geomctrl.errors import ArgumentError
from geomctrl.kernels import time_derivatives
from geomctrl.kernels.couplings import fitting
from geomctrl.mechanism.mechanism import Mechanism, require_robot
from geomctrl.mechanism.states import as_batch


def inverse_dynamics_rates(robot: Mechanism, q: ArrayLike, rates: ArrayLike) -> np.ndarray:
    """tau and its time derivatives (..., m - 1, nv) from the velocity and its rates (..., m, nv), m >= 2, O(n m^2).

    rates = (v, a, a', a'', ...) gives (tau, tau', tau'', ...), in N m, N m/s, N m/s^2 for revolute joints: as many as
    the motion determines, (v, a) the inverse dynamics alone, four rates tau'' as well (Mueller 2018 section 6.3). For
    joints with several degrees of freedom v is the body-fixed velocity and a, a', ... its time derivatives. Raises
    ArgumentError like the other terms.
    """
    require_robot("robot", robot)
    if isinstance(rates, np.ndarray) and rates.ndim == 2 and len(rates) > 1:
        tau = robot._code.at(time_derivatives.inverse_dynamics_rates, len(rates) - 1)(q, rates.reshape(-1))
        if tau is not None:
            return tau
    lead, (q,) = as_batch(robot, q=q)
    rates = checked("rates", rates, ())
    m = rates.shape[-2] if rates.ndim > 1 else 0
    if m < 2:
        raise ArgumentError(f"rates: expected v, a and more, shape (..., m, {robot.nv}) with m >= 2, got {rates.shape}")
    rates = checked("rates", rates, (m, robot.nv))
    if rates.shape[:-2] != lead:
        raise ArgumentError(
            f"rates: expected the leading axes of q, {lead}, got {rates.shape[:-2]} (nothing is broadcast)"
        )
    call = fitting(time_derivatives.inverse_dynamics_rates, robot._model)
    tau = call.many(robot._model, q, rates.reshape(len(q), m * robot.nv), m - 1)
    return tau.reshape(*lead, m - 1, robot.nv)
