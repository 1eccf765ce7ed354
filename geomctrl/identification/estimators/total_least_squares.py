"""Total least squares: errors in the regressor, too."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.identification.compressed import Compressed
from geomctrl.identification.data import Dataset
from geomctrl.identification.errors import ExcitationError
from geomctrl.identification.model import RegressorModel

from .conditioning import compressed, require_excitation
from .estimate import Estimate
from .estimator import Estimator
from .least_squares import finish, weights_of


def tls(model: RegressorModel, data: Dataset | Compressed, weights: ArrayLike | None = None) -> Estimate:
    """Total least squares: errors in the regressor too, equally large in all columns once those have unit length.

    Offset columns are known exactly and stay so (Golub, Hoffman, Stewart 1987). No covariance: what is known of it is
    for errors in Y that are independent and alike in all columns, which filtered kinematics never are.
    """
    c = compressed(model, data)
    w = weights_of(model, c, weights)
    condition = require_excitation(model, c, w)
    A, b = c.system(w)
    at = model.base.columns
    exact = np.array([model.kinds[k] in ("offset", "preload") for k in at])
    order = np.concatenate((np.flatnonzero(exact), np.flatnonzero(~exact)))
    W = A[:, at[order]]
    length = np.linalg.norm(W, axis=0)
    R: Any = np.linalg.qr(np.column_stack((W / length, b / np.linalg.norm(b))), mode="r")
    k = int(exact.sum())
    _, _, Vt = np.linalg.svd(R[k:, k:])
    v = Vt[-1]
    if abs(v[-1]) < 1e-12:
        raise ExcitationError(
            "total least squares has no solution: the torques are orthogonal to what the model explains"
        )
    free = -v[:-1] / v[-1]
    fixed = np.linalg.solve(R[:k, :k], R[:k, -1] - R[:k, k:-1] @ free) if k else np.zeros(0)
    values = np.empty(len(at))
    values[order] = np.concatenate((fixed, free)) / length * np.linalg.norm(b)
    return finish(model, c, model.base.lift(values, model.prior), w, "tls", condition=condition)


TLS = Estimator(
    "tls",
    tls,
    "total least squares, for errors in the regressor",
    uncertainty="it is known for errors that are independent and alike in all columns only",
)
