"""The regressor of many states, joint by joint: what least squares stack, without the zeros and ready for LAPACK.

Joint k's torque depends on the bodies it carries only. Block k holds, one a row, the columns of those bodies (ten
each, in the order of `Robot.parameters`) over all states, so that its transpose is a matrix in Fortran order. Bodies'
twists, and their Jacobians' columns, are carried outward in body frames, on LANES states at once (see `lanes`),
v_ref being v.
"""

from __future__ import annotations

import numpy as np

from geomctrl.kernels import stacked_regressor as kernels
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.mechanism.states import as_batch


def carried_bodies(robot: Mechanism) -> list[np.ndarray]:
    """Per velocity coordinate, the numbers of the bodies it moves."""
    carried = []
    for body, dofs in enumerate(robot.v_slices):
        below = [body]  # bodies are numbered parents first
        for i in range(body + 1, robot.nbodies):
            if robot.parents[i] in below:
                below.append(i)
        carried += [np.array(below)] * (dofs.stop - dofs.start)
    return carried


def stacked_regressor(robot: Mechanism, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> list[np.ndarray]:
    """Per velocity coordinate k, its rows of the regressor over N states (N, .): (10 per body carried, N), bodies in
    the
    order of `carried_bodies`. Raises ArgumentError like `Robot.regressor`."""
    _, (q, v, a) = as_batch(robot, q=q, v=v, a=a)
    carried, N = carried_bodies(robot), len(q)
    sizes = [10 * len(c) for c in carried]
    out = np.empty((sum(sizes), N))
    blocks = np.split(out, np.cumsum(sizes)[:-1])
    done = 0
    if robot.nq == robot.nv == robot.nbodies:
        at = np.zeros((robot.nbodies, robot.nbodies), dtype=np.int64)
        for k, (c, first) in enumerate(zip(carried, np.cumsum([0, *sizes[:-1]]))):
            at[k, c] = first + 10 * np.arange(len(c))
        done = kernels.stack_lanes(robot._model, q, v, a, at, out)
    if done < N:
        Y = robot.regressor(q[done:], v[done:], a[done:]).reshape(N - done, robot.nv, robot.nbodies, 10)
        for k, (block, c) in enumerate(zip(blocks, carried)):
            block[:, done:] = Y[:, k, c].reshape(N - done, -1).T
    return blocks
