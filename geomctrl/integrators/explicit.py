"""Explicit integration on a Lie group G: dy/dt = y field(t, y), y in G, field(t, y) in the Lie algebra as a vector.

Crouch-Grossman, commutator-free and Munthe-Kaas methods are the `Tableau`s of tableaus.py; one step of any of them
is `rk_step`. Two drivers loop over it: `steps` stores nothing and `integrate` returns a `Solution`. Equation numbers
are those of Park and Chung 2005; being left-trivialised, the increment stands on the right and dexp^-1 is taken at
-Theta (41). The embedded pair and its step control follow Hairer, Norsett and Wanner, Solving ODEs I, sections II.4-5.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from geomctrl.arguments import number
from geomctrl.errors import ArgumentError, IntegrationError
from geomctrl.kernels import runge_kutta
from geomctrl.kernels.jit import KernelTypeError
from geomctrl.lie.groups import Product, Rn, rotation

from . import tableaus
from .tableaus import Tableau

LARGEST_ANGLE = 2.0 * math.pi - 0.1  # rad by which a Munthe-Kaas increment u may turn


# --- one step --------------------------------------------------------------------------------------------------


def step(method: str | Tableau, field: Callable, t: float, y, h: float, group) -> np.ndarray:
    """y(t + h) from y(t) by one step, h of either sign: for people who write the loop themselves.

    y is taken for an element of the group without looking. Raises ArgumentError for arguments, and IntegrationError
    when the field or the step fails.
    """
    if not number("h", h):
        raise ArgumentError("h must not be zero, got 0")
    _check_field_and_group(field, group)
    y_next, _ = rk_step(field, number("t", t), _element("y", y, group), h, tableaus.method(method), group)
    if not _finite(y_next):
        raise IntegrationError(f"the solution overflows between t = {t:.9g} and {t + h:.9g}")
    return y_next


def rk_step(field: Callable, t: float, y, h: float, tableau: Tableau, group, k1=None) -> tuple[np.ndarray, np.ndarray]:
    """The kernel: y(t + h) and the slopes K (s, group.dim); K[0] is field(t, y), or k1 if that is known already.

    K holds the field's values, for Munthe-Kaas pulled back to the algebra at y: F of (42). Raises IntegrationError.
    """
    return (_vector_step if _is_vector_space(group) else _group_step)(field, t, y, h, tableau, group, k1)


def _group_step(field, t, y, h, tableau, group, k1):
    times, stages = _scaled_stages(tableau, h)
    n, munthe_kaas, advance = len(times), tableau.family == "MK", group.advance
    K, Y = np.empty((n, group.dim)), [y]
    for i, (base, rows) in enumerate(stages):
        z = Y[base]
        for row in rows:
            u = row.dot(K[:i])  # Theta_i for Munthe-Kaas, whose stages have at most one row
            z = advance(z, u)  # (37), (39), (42b)
        if i == 0 and k1 is not None:
            K[0] = k1
        elif i < n:
            k = _slope(field, t + times[i], z.copy(), group.dim, i, n)
            K[i] = _pull_back(group, u, k, t, h) if munthe_kaas and rows else k  # (42h)
        if i:
            Y.append(z)
    return z, K


def _vector_step(field, t, y, h, tableau, group, k1):
    """All exponentials commute: the classical method, with A and b summed over them (39d)."""
    times, rows = _scaled_rows(tableau, h)
    n, dim = len(times), group.dim
    K = np.empty((n, dim))
    K[0] = _slope(field, t, y.copy(), dim, 0, n) if k1 is None else k1
    for i in range(1, n):
        K[i] = _slope(field, t + times[i], _moved(y, rows[i], K), dim, i, n)
    return _moved(y, rows[n], K), K


def _moved(y, row, K):
    """y + row @ K[: len(row)]."""
    try:
        out = np.empty(y.shape)
        runge_kutta.moved_one(y, row, K, out)
        return out
    except KernelTypeError:  # not one contiguous row of floats
        return y + row.dot(K[: len(row)])


def _known_finite(x):
    """False also for what the kernel was not compiled for: then a slower look decides."""
    try:
        return runge_kutta.finite_one(x)
    except KernelTypeError:
        return False


def _finite(x):
    return _known_finite(x.ravel()) or np.isfinite(x).all()


def _is_vector_space(group):
    return isinstance(group, Rn) or (isinstance(group, Product) and group._vector is not None)


@lru_cache(maxsize=32)
def _scaled_stages(tableau, h):
    return (tableau.c * h).tolist(), [(base, [h * row for row in rows]) for base, rows in tableau.stages]


@lru_cache(maxsize=32)
def _scaled_rows(tableau, h):
    rows = [h * row[:i] for i, row in enumerate(tableau.A_classical)]
    return (tableau.c * h).tolist(), [*rows, h * tableau.b_classical]


def _slope(field, t, y, dim, stage, n):
    """field(t, y), looked at; y is the field's to write on."""
    k = field(t, y)
    if type(k) is np.ndarray and k.shape == (dim,) and _known_finite(k):
        return k
    where = f"at t = {t:.9g}, stage {stage + 1} of {n}"
    try:
        k = np.asarray(k)
        if k.dtype.kind not in "fiu":
            raise TypeError(f"dtype {k.dtype}")
    except (TypeError, ValueError) as error:
        raise IntegrationError(f"field must return {dim} real numbers, got {error}, {where}") from None
    if k.shape != (dim,):
        raise IntegrationError(f"field must return shape ({dim},), got {k.shape}, {where}")
    if not np.isfinite(k).all():
        raise IntegrationError(f"field must return finite numbers, got {k}, {where}")
    return k


def _pull_back(group, u, k, t, h):
    """dexp^-1_{-u} k (41). Raises IntegrationError near and beyond its singularity, a rotation by 2 pi in one step."""
    F = group.dexp_inv_mul(-u, k)
    if (_is_small(u) or rotation(group, u) < LARGEST_ANGLE) and _finite(F):
        return F
    angle = rotation(group, u)
    turn = f"turns by {angle:.3g} rad, but dexp^-1 is singular at 2 pi: halve h"
    raise IntegrationError(f"the step of h = {h:.6g} from t = {t:.9g} {turn}")


def _is_small(u):
    """Too short for 2 pi, if no basis vector of the algebra turns by more than 2 rad."""
    return u.size < 500 and math.hypot(*u.tolist()) < math.pi  # of more numbers `rotation` knows as fast


# --- arguments -------------------------------------------------------------------------------------------------


def _check_field_and_group(field, group):
    if not callable(field):
        raise ArgumentError(f"field must be a callable field(t, y), got {field!r}")
    if isinstance(group, type) or not hasattr(group, "dexp_inv_mul"):
        raise ArgumentError(f"group must be a LieGroup, SO3() for example, got {group!r}")


def _element(name, value, group):
    try:
        y = np.array(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name} must be an array of numbers: {error}") from None
    if y.shape != tuple(group.shape):
        raise ArgumentError(f"{name} must have the group's shape {tuple(group.shape)}, got {y.shape}")
    if not np.isfinite(y).all():
        raise ArgumentError(f"{name} must be finite, got {y}")
    return y
