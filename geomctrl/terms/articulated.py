"""M^-1 and its products by articulated bodies, without forming M (`kernels.mass_matrix_inverse`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked
from geomctrl.errors import ArgumentError
from geomctrl.kernels import mass_matrix_inverse as inverses
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.mechanism.states import as_batch
from geomctrl.tracing.arrays import has_symbols

from .batches import REFUSED, not_positive, over_states, plain


def mass_matrix_inverse(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """M(q)^-1 (..., nv, nv), exactly symmetric, without forming M, O(n^2), by articulated bodies
    (`kernels.mass_matrix_inverse`).

    Raises ModelError where the mass matrix is not positive definite.
    """
    inverse = robot._code.mass_matrix_inverse(q)
    return over_states(robot, inverses.mass_matrix_inverse, q=q) if inverse is None else inverse


def mass_matrix_solve(robot: Mechanism, q: ArrayLike, b: ArrayLike) -> np.ndarray:
    """M(q)^-1 b without forming M, O(n) a column: the accelerations that forces b (..., nv) cause from rest.

    b may hold columns, (..., nv, m), with the leading axes of q. Raises ModelError where M is not positive definite.
    """
    try:
        tree = not robot.couplings and not any(map(has_symbols, (robot._model, q, b)))
        if tree and plain(q, b) and np.ndim(b) == 1:
            x = np.empty(robot.nv)
            inverses.mass_matrix_solve_one(robot._model, q, b, x)
            return x
    except REFUSED:
        pass
    lead, (q,) = as_batch(robot, q=q)
    b = checked("b", b, ())
    columns = b.ndim == len(lead) + 2
    b = checked("b", b, (robot.nv, b.shape[-1]) if columns else (robot.nv,))
    if b.shape[: b.ndim - 1 - columns] != lead:
        raise ArgumentError(f"b: expected the leading axes of q, {lead}, then nv = {robot.nv}, got shape {b.shape}")
    flat = b.reshape(len(q), robot.nv, b.shape[-1] if columns else 1)
    if robot.couplings or any(map(has_symbols, (robot._model, q, b))):
        return (mass_matrix_inverse(robot, q) @ flat).reshape(b.shape)
    out, singular = inverses.mass_matrix_solve_many(robot._model, q, flat)
    if singular >= 0:
        raise not_positive(robot, q[singular])
    return out.reshape(b.shape)
