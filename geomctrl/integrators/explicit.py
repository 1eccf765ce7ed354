"""One step of an explicit method on a Lie group G: dy/dt = y field(t, y) with y in G, field(t, y) in the Lie algebra.

Crouch-Grossman, commutator-free and Munthe-Kaas methods are `Tableau`s of `tableaus`; `rk_step` makes one step of any
of them. Equation numbers are those of Park and Chung 2005. The formulation is left-trivialised, so the increment is on
the right and dexp^-1 is evaluated at -Theta (41). `kernels.marches` has the same step in compiled code, for robot
states.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from geomctrl.arguments import function, has_attributes, number, shown
from geomctrl.errors import ArgumentError, IntegrationError
from geomctrl.kernels.exponentials import LARGEST_ANGLE
from geomctrl.lie.contract import rotation
from geomctrl.lie.groups import Product, Rn

from . import tableaus
from .march import Step, element
from .tableaus import Tableau

SMALL_SIZE = 64  # up to this size, a loop in Python checks numbers faster than numpy

# --- one step --------------------------------------------------------------------------------------------------


def step(method: str | Tableau, field: Callable, t: float, y, h: float, group) -> np.ndarray:
    """Take one step of a differential equation on a Lie group. Use it to write the loop yourself.

    Parameters
    ----------
    method : str or Tableau
        Name of a method, as for `integrate`, or a tableau.
    field : callable
        field(t, y) -> (dim,), the rate in the algebra.
    t : float
        Time [s].
    y : array
        Element of the group; it is not checked.
    h : float
        Length of the step [s], which may be negative.
    group : LieGroup
        The group.

    Returns
    -------
    ndarray
        y(t + h).

    Raises
    ------
    ArgumentError
        For invalid arguments.
    IntegrationError
        If the field or the step fails.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import groups, integrators
    >>> integrators.step("MK4", lambda t, y: -y, 0.0, np.ones(1), 0.1, groups.Rn(1)).round(4)
    array([0.9048])
    """
    t, h = number("t", t), number("h", h, "a finite number other than zero", bool)
    tableau = tableaus.method(method)
    check_field_and_group(field, group)
    y_next, _ = rk_step(field, t, element("y", y, group), h, tableau, group)
    if not _finite(y_next):
        raise IntegrationError(f"the solution overflows between t = {t:.9g} and {t + h:.9g}")
    return y_next


def rk_step(field, t, y, h, tableau, group, k1=None):
    """Return y(t + h) and the slopes K (s, group.dim); K[0] is field(t, y), or k1 (group.dim,) if it is already known.

    The arguments are checked already. K holds the values of the field; for Munthe-Kaas methods they are pulled back to
    the algebra at y: F of (42).
    """
    vector, dim = is_vector_space(group), group.dim
    n, pulled, stages = _plan(tableau, h, vector)
    K, Y, z = np.zeros((n, dim)), [y], y
    for i, (time, base, rows, kept) in enumerate(stages):
        if not vector:
            z = Y[base]
            try:
                for row in rows:
                    u = row.dot(K[:i])  # Theta_i for Munthe-Kaas, whose stages have at most one row
                    z = group.advance(z, u)  # (37), (39), (42b)
            except ArgumentError as error:
                raise IntegrationError(f"the solution overflows between t = {t:.9g} and {t + h:.9g}: {error}") from None
            if i:
                Y.append(z)
        elif i:  # all exponentials commute: the classical method, with A and b summed over them (39d)
            z = y + np.dot(rows, K)
        if i == n:
            break
        if k1 is not None and i == 0:
            K[0] = k1
            continue
        k = _slope(field, t + time, z.copy() if kept else z, dim, i, n)
        K[i] = _pull_back(group, u, k, t, h) if pulled and rows else k  # (42h)
    return z, K


def _finite(x):
    is_small = x.size < SMALL_SIZE
    return (is_small and math.isfinite(sum(x.tolist() if x.ndim == 1 else x.ravel().tolist()))) or np.isfinite(x).all()


def is_vector_space(group):
    return isinstance(group, Rn) or (isinstance(group, Product) and group._vector is not None)


@lru_cache(maxsize=32)
def _plan(tableau, h, vector):
    """Return (number of slopes, whether they are pulled back, stages); the last stage is the update.

    A stage is (time, base, rows, whether another stage starts from it), with times and rows multiplied by h. On R^n it
    has the one row of the classical method.
    """
    times, n = [*(tableau.c * h).tolist(), h], len(tableau.c)
    if vector:
        classical = [*tableau.A_classical, tableau.b_classical]
        return n, False, [(t, 0, h * row, i == 0) for i, (t, row) in enumerate(zip(times, classical))]
    bases = {base for base, _ in tableau.stages}
    stages = [
        (t, base, [h * row for row in rows], i in bases)
        for i, (t, (base, rows)) in enumerate(zip(times, tableau.stages))
    ]
    return n, tableau.family == "MK", stages


def _slope(field, t, y, dim, stage, n):
    """Return field(t, y) after checking it; the field may modify y."""
    k = field(t, y)
    if type(k) is np.ndarray and k.dtype.kind == "f" and k.shape == (dim,) and _finite(k):
        return k  # otherwise a slower check decides
    where = f"at t = {t:.9g}, stage {stage + 1} of {n}"
    try:
        if np.ma.is_masked(k):
            raise TypeError("masked ones")
        k = np.asarray(k)
        if k.dtype.kind not in "fiu":
            raise TypeError(f"dtype {k.dtype}")
    except (TypeError, ValueError) as error:
        raise IntegrationError(f"field must return {dim} real numbers, got {error}, {where}") from None
    if k.shape != (dim,):
        raise IntegrationError(f"field must return shape ({dim},), got {k.shape}, {where}")
    if not np.isfinite(k).all():
        index = int(np.argmin(np.isfinite(k)))
        raise IntegrationError(f"field must return finite numbers, got {k[index]} at index {index} of {dim}, {where}")
    return k


def _pull_back(group, u, k, t, h):
    """Return dexp^-1_{-u} k (41). Raises IntegrationError near its singularity, a rotation by 2 pi."""
    F = group.dexp_inv_mul(-u, k)
    if (_is_small(u) or rotation(group, u) < LARGEST_ANGLE) and _finite(F):
        return F
    angle = rotation(group, u)
    turn = f"turns by {angle:.3g} rad, but dexp^-1 is singular at 2 pi: halve h"
    raise IntegrationError(f"the step of h = {h:.6g} from t = {t:.9g} {turn}")


def _is_small(u):
    """Whether u is too short for a rotation by 2 pi, if no basis vector of the algebra rotates by more than 2 rad."""
    return u.size < 500 and math.hypot(*u.tolist()) < math.pi  # for longer vectors `rotation` is as fast


# --- steps of a march --------------------------------------------------------------------------------------------


class Explicit:
    """A `march.Stepper` for any tableau. It remembers the field at the end of a step once it has been evaluated."""

    def __init__(self, field: Callable, tableau: Tableau, group):
        check_field_and_group(field, group)
        self.field, self.tableau, self.group, self.nfev = field, tableau, group, 0

    def step(self, t, y, h, t_next, k1=None) -> Step:
        self.nfev += len(self.tableau.c) - (k1 is not None)
        y_next, K = rk_step(self.field, t, y, h, self.tableau, self.group, k1)
        if not _finite(y_next):
            raise IntegrationError(f"the solution overflows between t = {t:.9g} and {t_next:.9g}")
        return Step(t, y, h, t_next, y_next, K)

    def slope(self, t, y) -> np.ndarray:
        self.nfev += 1
        k = _slope(self.field, t, y.copy(), self.group.dim, 0, len(self.tableau.c))
        return np.array(k, dtype=float)  # a copy: the field may reuse its buffer

    def end_slopes(self, taken: Step) -> tuple[np.ndarray, np.ndarray]:
        """Return K, with the slope at the end of the step pulled back to its beginning as last row, and u."""
        if taken.memory is None:
            taken.memory = self.slope(taken.t_next, taken.y_next)
        group = self.group
        if self.tableau.family == "MK":
            u = taken.h * self.tableau.b.dot(taken.K)
        else:
            u = group.log(group.compose(group.inverse(taken.y), taken.y_next))
        if is_vector_space(group):
            return np.vstack((taken.K, taken.memory)), u
        return np.vstack((taken.K, _pull_back(group, u, taken.memory, taken.t, taken.h))), u

    def interpolant(self, taken: Step) -> np.ndarray:
        """Return C (degree, dim) with y(t + theta h) = y exp(sum_j C[j] theta^(j+1))."""
        F, u = self.end_slopes(taken)
        if self.tableau.interpolant is not None:
            return taken.h * self.tableau.interpolant.T.dot(F)
        d0, d1 = taken.h * F[0], taken.h * F[-1]
        return np.array([d0, 3.0 * u - 2.0 * d0 - d1, d0 + d1 - 2.0 * u])


# --- arguments -------------------------------------------------------------------------------------------------


def check_field_and_group(field, group):
    """Raise ArgumentError unless they are a function and a Lie group."""
    function("field", field, "field(t, y)", 2)
    if isinstance(group, type) or not has_attributes(group, "dexp_inv_mul"):
        raise ArgumentError(f"group: expected a LieGroup, SO3() for example, got {shown(group)}")
