"""Base parameters: the combinations of inertial parameters that the dynamics depend on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ..errors import ArgumentError
from ..robot import Robot


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """tau = Y[:, columns] @ (projection @ pi) for every state, with as few columns as possible.

    `columns` (nb,): the regressor's independent columns; `projection` (nb, 10 nbodies): base from full parameters.
    """

    columns: np.ndarray
    projection: np.ndarray

    @property
    def size(self) -> int:
        return len(self.columns)


def base_parameters(
    robot: Robot, form: str | None = None, samples: int | None = None, seed: int = 0, tolerance: float = 1e-9
) -> BaseParameters:
    """Base parameters by pivoted QR of the regressor stacked over random states (Gautier 1990).

    form=None: of inverse dynamics. form="ploen" or "christoffel": of the reference-velocity dynamics
    M a + C v_ref + g with that C, for adaptive control; Ploen's C depends on parameters that motion does not.
    Columns whose remainder is below `tolerance` of the largest count as dependent.
    """
    rng = np.random.default_rng(seed)
    n = samples if samples is not None else 12 * robot.nbodies + 20
    if n * robot.nv < 10 * robot.nbodies:
        raise ArgumentError(f"samples: expected at least {-(-10 * robot.nbodies // robot.nv)} for robot {robot.name!r}, got {n}")
    q = np.array([robot.random_configuration(rng) for _ in range(n)])
    v, a, v_ref = rng.normal(size=(3, n, robot.nv))
    Y = robot.regressor(q, v, a) if form is None else robot.regressor(q, v, a, v_ref, form)
    Y = Y.reshape(-1, Y.shape[-1])
    scale = np.linalg.norm(Y, axis=0)
    scale[scale == 0.0] = 1.0
    R, order = scipy.linalg.qr(Y / scale, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(R))
    rank = int((diagonal > tolerance * diagonal[0]).sum()) if diagonal[0] > 0.0 else 0
    dependent = np.linalg.solve(R[:rank, :rank], R[:rank, rank:])
    keep = np.argsort(order[:rank])
    columns = order[:rank][keep]
    projection = np.zeros((rank, Y.shape[1]))
    projection[np.arange(rank), columns] = 1.0
    projection[:, order[rank:]] = dependent[keep] * scale[order[rank:]] / scale[columns][:, None]
    projection[np.abs(projection) < 1e-12] = 0.0
    return BaseParameters(columns, projection)
